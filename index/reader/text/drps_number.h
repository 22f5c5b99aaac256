/*
 * Reads numbers in text, many million a second.
 *
 * Both parsers read eight bytes at a time, so up to 8 bytes after the number are loaded: the text
 * must be readable that far, and must be stopped by a byte that is not a digit. Neither looks at
 * the locale.
 */
#ifndef DRPS_READER_TEXT_NUMBER_H
#define DRPS_READER_TEXT_NUMBER_H

#include <stdint.h>
#include <string.h>

/* Load eight characters with '0' taken off each. The first character is the lowest byte. */
static inline uint64_t number_load(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof(x));
    return x ^ 0x3030303030303030u;
}

/*
 * Returns how many of the eight begin the text as digits. A carry disturbs only bytes above the
 * first that is no digit.
 */
static inline unsigned number_run(uint64_t x)
{
    uint64_t other = ((x + 0x7676767676767676u) | x) & 0x8080808080808080u;
    return other ? (unsigned)__builtin_ctzll(other) / 8 : 8;
}

/* Returns the value of the first n digits, 1 <= n <= 8: of pairs, then of fours, then of all eight.
 */
static inline uint64_t number_value(uint64_t x, unsigned n)
{
    x <<= (8 - n) * 8; /* zeros in front */
    x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ffu;
    x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffffu;
    return (x * 10000 + (x >> 32)) & 0xffffffffu;
}

/* Does what drps_number_u64() does, for 0 digits or 8 and more. */
const char *drps_number_u64_long(const char *p, uint64_t *v_out);

/*
 * Read decimal digits at p as a number. Returns the end of the digits: p when there are none, NULL
 * above 2^64 - 1.
 */
static inline const char *drps_number_u64(const char *p, uint64_t *v_out)
{
    uint64_t x = number_load(p);
    unsigned n = number_run(x);
    if (__builtin_expect(n - 1 >= 7, 0)) return drps_number_u64_long(p, v_out);
    *v_out = number_value(x, n);
    return p + n;
}

/*
 * Read a decimal number at p: [+-] digits [. digits] [e [+-] digits], at least one digit, rounded
 * as strtof() does. Returns its end, or NULL when there is none or it is beyond FLT_MAX. "inf",
 * "nan" and hexadecimal are none.
 */
const char *drps_number_float(const char *p, float *v_out);

/*
 * Returns why drps_number_float() refused the text at p: "is not a number", "is NaN or infinite",
 * "is too large".
 */
const char *drps_number_why(const char *p);

#endif
