/*
 * The numbers of a column, one by one, in little memory: how many there are, mean and spread, and a
 * sample of them for quartiles and bins. Needs no other file of the reader.
 *
 * Mean and squares are added up as Welford does (Technometrics 1962), so that nothing is lost where
 * the mean is large beside the spread. The sample is a reservoir (Vitter's algorithm R, ACM TOMS
 * 1985), drawn by the numbers' order alone: the same numbers in the same order give the same one.
 */
#ifndef DRPS_READER_SCALES_NUMBERS_H
#define DRPS_READER_SCALES_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct drps_numbers {
    uint64_t n, zeros;
    double mean, squares; /* squares: of the distances from the mean, added up */
    float *drawn;         /* own: [drawn_n] all of them, or `most` that are drawn from them */
    size_t drawn_n, drawn_cap, most;
};

/* How many numbers of a column are drawn, where so many columns want samples that take at most
 * room_bytes together: 64 to 16,384, or 0, which says that the room is too little. */
size_t drps_numbers_most(size_t columns, uint64_t room_bytes);
enum { DRPS_NUMBERS_LEAST_BYTES = 64 * sizeof(float) }; /* of a column */

/* Add a finite number. A zeroed struct is one without numbers; `most` is set by the caller, 0 for
 * no sample. -ENOMEM. */
DRPS_MUST_CHECK
int drps_numbers_add(struct drps_numbers *x, float v, struct drps_err *err);
void drps_numbers_destroy(struct drps_numbers *x);

/* 0 where there are none: the mean squared distance from `from`, and from the mean. */
double drps_numbers_variance_about(const struct drps_numbers *x, double from);

/* Put the sample into increasing order. Nothing is added after it. */
void drps_numbers_sort(struct drps_numbers *x);

#endif
