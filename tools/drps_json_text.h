/*
 * Values of a manifest, as text, "-" where they are not known. Numbers that are only shown are not
 * checked before: one below 0 is not known. A text stands until 24 more were made, so that
 * a line can show many.
 */
#ifndef DRPS_TOOLS_JSON_TEXT_H
#define DRPS_TOOLS_JSON_TEXT_H

#include <stdint.h>

#include <jansson.h>

enum { TEXT_BYTES = 48 };

/* Room for one such text: TEXT_BYTES. */
char *text_room(void);

/* The member `key` of j. `format` is for a double. */
const char *text_of(const json_t *j, const char *key);
const char *number_of(const json_t *j, const char *key, const char *format);
const char *count_of(const json_t *j, const char *key);

/* The same with what is counted, in the plural that it has by rule unless there is one: "1 row". */
const char *counted_of(const json_t *j, const char *key, const char *one);
const char *size_of(const json_t *j, const char *key);
const char *forecast_size_of(const json_t *j, const char *key); /* a size; 0 is not known, too */
const char *rate_of(const json_t *j, const char *key); /* bytes a second, in MB */

/* In per cent: a share (0 to 1), and the share of one number in another. */
const char *percent_of(const json_t *j, const char *key);
const char *share_of(const json_t *j, const char *part, const char *whole);
const char *share_text(double part, double whole);

/* Seconds, in microseconds; in older models they have another name and are microseconds. */
const char *micros_of(const json_t *j, const char *key, const char *older);

/* A size that was computed: of bytes, and of n + m rows. */
const char *size_text(double bytes);
const char *rows_text(uint64_t n, uint64_t m, uint64_t row_bytes);

/* A count to compute with; 0 where there is none, or it is below 0. */
uint64_t number_at(const json_t *j, const char *key);

#endif
