/* Decimal numbers as text. */
#include "index/classes/decimal.h"

#include <string.h>

static size_t digits(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] >= '0' && text[i] <= '9')
        i++;
    return i;
}

int decimal_read(const char *text, size_t n, struct decimal *out)
{
    const char *end = text + n;
    const int negative = n && *text == '-';
    if (n && (*text == '-' || *text == '+')) text++;
    const size_t whole = digits(text, (size_t)(end - text));
    const int point = text + whole < end && text[whole] == '.';
    const char *part = text + whole + point;
    const size_t part_n = point ? digits(part, (size_t)(end - part)) : 0;
    if (!whole + !part_n == 2 || part + part_n != end) return 0;
    *out = (struct decimal){.whole = text, .part = part, .whole_n = whole, .part_n = part_n};
    for (; out->whole_n && *out->whole == '0'; out->whole_n--)
        out->whole++;
    while (out->part_n && out->part[out->part_n - 1] == '0')
        out->part_n--;
    out->negative = negative && (out->whole_n || out->part_n);
    return 1;
}

static char *append(char *to, const char *text, size_t n)
{
    memcpy(to, text, n);
    return to + n;
}

size_t decimal_write(const struct decimal *d, char *out)
{
    char *at = out;
    if (d->negative) *at++ = '-';
    at = d->whole_n ? append(at, d->whole, d->whole_n) : append(at, "0", 1);
    if (d->part_n) {
        *at++ = '.';
        at = append(at, d->part, d->part_n);
    }
    return (size_t)(at - out);
}

/* Digits behind the point: those that are missing are zeros. */
static int compare_parts(const struct decimal *a, const struct decimal *b)
{
    const size_t n = a->part_n < b->part_n ? a->part_n : b->part_n;
    const int first = memcmp(a->part, b->part, n);
    return first ? first : (a->part_n > n) - (b->part_n > n);
}

static int compare_sizes(const struct decimal *a, const struct decimal *b)
{
    if (a->whole_n != b->whole_n) return a->whole_n < b->whole_n ? -1 : 1;
    const int whole = memcmp(a->whole, b->whole, a->whole_n);
    return whole ? whole : compare_parts(a, b);
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    return a->negative ? compare_sizes(b, a) : compare_sizes(a, b);
}
