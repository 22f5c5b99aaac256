/* Decimal numbers as text: a sign, digits, a point and digits. They are compared exactly, however
 * long they are. */
#ifndef DRPS_CLASSES_DECIMAL_H
#define DRPS_CLASSES_DECIMAL_H

#include <stddef.h>

/* Its digits, borrowed, without zeros in front of `whole` and behind `part`. */
struct decimal {
    int negative; /* 0 for zero */
    const char *whole, *part;
    size_t whole_n, part_n;
};

/* 1: the text is such a number; 0: it is not. */
int decimal_read(const char *text, size_t n, struct decimal *out);

/* Write it as short as can be: "-0.5", "12". Returns how many bytes; at most one more than were
 * read. */
size_t decimal_write(const struct decimal *d, char *out);

/* Below 0, 0 or above, as by value a < b, a = b, a > b. */
int decimal_compare(const struct decimal *a, const struct decimal *b);

#endif
