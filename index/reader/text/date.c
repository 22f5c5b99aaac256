/* Reads dates. The weekday is Sakamoto's, the month of a day number Hinnant's civil_from_days. */
#include "index/reader/text/drps_date.h"

#include <stdint.h>
#include <stddef.h>

#include "index/reader/text/drps_number.h"

static int is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void trim(const char **p, const char **end)
{
    while (*p < *end && is_blank(**p))
        (*p)++;
    while (*p < *end && is_blank((*end)[-1]))
        (*end)--;
}

/* Read exactly `n` digits into *v_out, `least` to `most`. Returns what follows, or NULL. */
static const char *take_digits(const char *p, const char *end, int n, int least, int most,
                               int *v_out)
{
    int v = 0;
    if (!p || end - p < n) return NULL;
    for (int i = 0; i < n; i++, p++) {
        if (*p < '0' || *p > '9') return NULL;
        v = v * 10 + (*p - '0');
    }
    *v_out = v;
    return v >= least && v <= most ? p : NULL;
}

static const char *take_char(const char *p, const char *end, const char *of)
{
    if (!p || p == end || !*p) return NULL;
    for (; *of; of++)
        if (*p == *of) return p + 1;
    return NULL;
}

/* Read ":SS", a fraction, and a zone, each of which may be missing. */
static const char *take_rest(const char *p, const char *end)
{
    int v;
    if (p && p < end && *p == ':') p = take_digits(p + 1, end, 2, 0, 60, &v);
    if (p && p < end && (*p == '.' || *p == ',')) {
        const char *digits = ++p;
        while (p < end && *p >= '0' && *p <= '9')
            p++;
        if (p == digits) return NULL;
    }
    if (p && p < end && *p == 'Z') return p + 1;
    if (p && p < end && (*p == '+' || *p == '-')) {
        p = take_digits(p + 1, end, 2, 0, 23, &v);
        if (p && p < end && *p == ':') p++;
        if (p && p < end) p = take_digits(p, end, 2, 0, 59, &v);
    }
    return p;
}

static int is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int weekday(int year, int month, int day)
{
    static const int shifts[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
    if (month < 3) year--;
    return (year + year / 4 - year / 100 + year / 400 + shifts[month - 1] + day + 6) % 7;
}

int drps_date_read(const char *p, const char *end, struct drps_date *out)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = 0, month = 0, day = 0, minute;
    trim(&p, &end);
    p = take_digits(p, end, 4, 1, 9999, &year);
    const char between = p && p < end ? *p : '\0';
    p = take_char(p, end, "-/");
    p = take_digits(p, end, 2, 1, 12, &month);
    if (p && p < end && *p != between) return 0;
    p = take_char(p, end, "-/");
    p = take_digits(p, end, 2, 1, 31, &day);
    if (!p || day > days[month - 1] + (month == 2 && is_leap(year))) return 0;
    *out = (struct drps_date){month, weekday(year, month, day), -1};
    if (p == end) return 1;
    p = take_char(p, end, " T");
    p = take_digits(p, end, 2, 0, 23, &out->hour);
    p = take_char(p, end, ":");
    p = take_digits(p, end, 2, 0, 59, &minute);
    return take_rest(p, end) == end;
}

/* The month of a day, counted from 1970-01-01, not negative. */
static int month_of_day(uint64_t day)
{
    const uint64_t z = day + 719468; /* from 0000-03-01 */
    const uint64_t of_era = z % 146097;
    const uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int march = (int)((5 * of_year + 2) / 153);
    return march < 10 ? march + 3 : march - 9;
}

int drps_date_read_seconds(const char *p, const char *end, struct drps_date *out)
{
    uint64_t v;
    trim(&p, &end);
    const ptrdiff_t digits = end - p;
    if ((digits != 9 && digits != 10 && digits != 12 && digits != 13) ||
        drps_number_u64(p, &v) != end)
        return 0;
    if (digits > 10) v /= 1000;
    const uint64_t day = v / 86400;
    *out = (struct drps_date){month_of_day(day), (int)((day + 3) % 7), (int)(v % 86400 / 3600)};
    return 1;
}
