/* Dates in text, of which the hour, the weekday and the month are categories. */
#ifndef DRPS_READER_TEXT_DATE_H
#define DRPS_READER_TEXT_DATE_H

struct drps_date {
    int month;   /* 1 .. 12 */
    int weekday; /* 0 is Monday */
    int hour;    /* 0 .. 23; -1: it has no time */
};

/*
 * Read the date p .. end, blanks around it aside: YYYY-MM-DD or YYYY/MM/DD, then perhaps a blank or
 * T and HH:MM, then perhaps :SS with a fraction, then perhaps Z or +HH:MM or -HHMM, which changes
 * nothing. The text is readable 8 bytes beyond its end. Returns 0 if it is none.
 */
int drps_date_read(const char *p, const char *end, struct drps_date *out);

/* Read seconds since 1970 of 9 or 10 digits, or milliseconds of 12 or 13, in UTC. Returns 0 if it
 * is none. */
int drps_date_read_seconds(const char *p, const char *end, struct drps_date *out);

#endif
