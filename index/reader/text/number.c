/*
 * Reads decimal text as float, exactly rounded, for all formats.
 *
 * A decimal is w x 10^e. In double, w x 10^e is off by a few units in the last place; rounding that
 * to float gives the right float unless the double lies within those few units of the middle
 * between two floats (one number in ten million). Only then, and at the ends of float's range,
 * strtof() decides; it gets an integer and an exponent, so that the locale's decimal point does not
 * matter.
 */
#include "index/reader/text/drps_number.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum {
    WORD_DIGITS = 19,  /* decimal digits that always fit into 64 bits */
    KEPT_DIGITS = 128, /* more than the 113 of the longest middle between two floats */
    POW_MAX = 22,      /* largest power of ten that a double holds exactly */
    SHORT_DIGITS = 7,  /* decimal digits that a float always holds exactly */
};

static const uint64_t pow10_u64[9] = {1,      10,      100,      1000,     10000,
                                      100000, 1000000, 10000000, 100000000};

static const double pow10_double[POW_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const char *drps_number_u64_long(const char *p, uint64_t *v_out)
{
    uint64_t v = 0;
    unsigned n;

    do {
        uint64_t x = number_load(p);
        n = number_run(x);
        if (n == 0) break;
        if (__builtin_mul_overflow(v, pow10_u64[n], &v)) return NULL;
        if (__builtin_add_overflow(v, number_value(x, n), &v)) return NULL;
        p += n;
    } while (n == 8);
    *v_out = v;
    return p;
}

/* Append the digits at p to *w, modulo 2^64; the caller counts them. */
static inline const char *take_digits(const char *p, uint64_t *w)
{
    unsigned n;

    do {
        uint64_t x = number_load(p);
        n = number_run(x);
        if (n == 0) break;
        *w = *w * pow10_u64[n] + number_value(x, n);
        p += n;
    } while (n == 8);
    return p;
}

/*
 * Make w x 10^e a float, where the true value may exceed w by less than one part in 10^18. Returns
 * 0 when this cannot tell the right float. There are at most four roundings of 2^-53 each, less
 * than 8 units of the double.
 */
static inline int round_to_float(uint64_t w, int64_t e, float *v_out)
{
    if (e < -2 * POW_MAX || e > 2 * POW_MAX) return 0;
    double d = (double)w;
    if (e < -POW_MAX) {
        d /= 1e22;
        e += POW_MAX;
    } else if (e > POW_MAX) {
        d *= 1e22;
        e -= POW_MAX;
    }
    d = e < 0 ? d / pow10_double[-e] : d * pow10_double[e];
    if (!(d > 0x1p-125 && d < 0x1p127)) return 0;
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    uint64_t below = bits & 0x1fffffffu; /* what float cuts off; its middle is 2^28 */
    if (below - (0x10000000u - 8) <= 16) return 0;
    *v_out = (float)d;
    return 1;
}

/* Take the exponent at p, if there is a whole one. Huge exponents stay huge and do not overflow. */
static const char *take_exponent(const char *p, int64_t *e)
{
    const char *q = p;
    if (*q != 'e' && *q != 'E') return p;
    q++;
    int negative = *q == '-';
    if (*q == '-' || *q == '+') q++;
    if (*q < '0' || *q > '9') return p;
    int64_t v = 0;
    for (; *q >= '0' && *q <= '9'; q++)
        if (v < INT64_C(1000000000000)) v = v * 10 + (*q - '0');
    *e += negative ? -v : v;
    return q;
}

/* Read a number of any digits and any exponent, from the first digit on, the careful way. */
static const char *parse_long(const char *p, float *v_out)
{
    char digits[KEPT_DIGITS + 32];
    size_t n = 0;
    int64_t e = 0;
    int point = 0, more = 0;
    uint64_t w = 0;

    for (;; p++) {
        if (*p == '.' && !point) {
            point = 1;
            continue;
        }
        if (*p < '0' || *p > '9') break;
        if (point) e--;
        if (n == 0 && *p == '0') continue;
        if (n == KEPT_DIGITS) {
            e++;
            more |= *p != '0';
            continue;
        }
        digits[n++] = *p;
        if (n <= WORD_DIGITS) w = w * 10 + (uint64_t)(*p - '0');
    }
    p = take_exponent(p, &e);
    *v_out = 0;
    if (n == 0) return p;
    if (round_to_float(w, e + (n > WORD_DIGITS ? (int64_t)n - WORD_DIGITS : 0), v_out)) return p;
    if (more)
        digits[n - 1] |=
            1; /* any non-zero last digit breaks the tie alike: an even one becomes odd */
    if (e > 100000) e = 100000;
    if (e < -100000) e = -100000;
    (void)snprintf(digits + n, sizeof(digits) - n, "e%d", (int)e); /* fits: 32 bytes are left */
    int kept = errno; /* strtof() reports ranges there; nobody asked */
    float v = strtof(digits, NULL);
    errno = kept;
    *v_out = v;
    return isfinite(v) ? p : NULL;
}

/* Take up to 7 digits, with a point among them or without: they are a float, and so is the power of
 * ten, so that the quotient is rounded once. Returns NULL for any other number. */
static inline const char *take_short(const char *p, float *v_out)
{
    static const float pow10_float[SHORT_DIGITS] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f};
    const uint64_t x = number_load(p);
    const unsigned n = number_run(x);
    if (n - 1 >= SHORT_DIGITS) return NULL;
    uint64_t w = number_value(x, n);
    unsigned behind = 0;
    p += n;
    if (*p == '.') {
        const uint64_t y = number_load(++p);
        behind = number_run(y);
        if (n + behind > SHORT_DIGITS) return NULL;
        if (behind) w = w * pow10_u64[behind] + number_value(y, behind);
        p += behind;
    }
    if (*p == 'e' || *p == 'E') return NULL;
    *v_out = (float)w / pow10_float[behind];
    return p;
}

/* Take any number. */
static const char *take_float(const char *p, float *v_out)
{
    int negative = *p == '-';
    if (*p == '-' || *p == '+') p++;
    const char *start = p;
    uint64_t w = 0;
    int64_t e = 0;

    p = take_digits(p, &w);
    int64_t digits = p - start;
    if (*p == '.') {
        const char *point = p + 1;
        p = take_digits(point, &w);
        e = point - p;
        digits -= e;
    }
    if (digits == 0) return NULL;
    p = take_exponent(p, &e);

    float v = 0;
    if (digits > WORD_DIGITS)
        p = parse_long(start, &v);
    else if (e == 0)
        v = (float)w; /* the conversion rounds once: always right */
    else if (w != 0 && !round_to_float(w, e, &v))
        p = parse_long(start, &v);
    *v_out = negative ? -v : v;
    return p;
}

const char *drps_number_float(const char *p, float *v_out)
{
    const char *end = take_short(p, v_out);
    return end ? end : take_float(p, v_out);
}

const char *drps_number_why(const char *p)
{
    if (*p == '-' || *p == '+') p++;
    if (strncasecmp(p, "inf", 3) == 0 || strncasecmp(p, "nan", 3) == 0) return "is NaN or infinite";
    float v;
    if ((*p == '.' || (*p >= '0' && *p <= '9')) && !drps_number_float(p, &v) &&
        p[*p == '.'] >= '0' && p[*p == '.'] <= '9')
        return "is too large";
    return "is not a number";
}
