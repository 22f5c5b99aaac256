/* Sets of rows as bits: what cutting windows and numbering their rows does most. Private to
 * index/windows/. */
#ifndef DRPS_INDEX_WINDOWS_BITS_H
#define DRPS_INDEX_WINDOWS_BITS_H

#include <stddef.h>
#include <stdint.h>

/* Returns how many rows are in the set [words]. */
uint64_t drps_bits_count(const uint64_t *set, size_t words);
/* in a and in b */
uint64_t drps_bits_common(const uint64_t *a, const uint64_t *b, size_t words);
/* before and after, but not in between */
uint64_t drps_bits_staying(const uint64_t *before, const uint64_t *now, const uint64_t *after,
                           size_t words);

/* Add to a set the bits [n] of its words at [n]. fresh [n] gets those that it did not have; the sum
 * of these is returned, and how many are in `other`, too, added to *common. */
uint64_t drps_bits_add(const uint32_t *at, const uint64_t *bits, size_t n, uint64_t *restrict set,
                       const uint64_t *restrict other, uint64_t *restrict fresh, uint64_t *common);

/* rank [words] = how many rows of the set [words] are before each word. */
void drps_bits_before(const uint64_t *restrict set, size_t words, uint32_t *restrict rank);

/* out [n] = how many rows of the set are below rows [n]; rank as above. */
void drps_bits_ranks(const uint64_t *restrict set, const uint32_t *restrict rank,
                     const uint32_t *restrict rows, size_t n, uint32_t *restrict out);

#endif
