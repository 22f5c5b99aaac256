/* Access counts that keep a table of batches and blocks and look at all of it: what the others are
 * compared with. */
#ifndef DRPS_TESTS_BRUTE_COUNTS_H
#define DRPS_TESTS_BRUTE_COUNTS_H

#include "index/blocks/counts/drps_counts.h"

/* drps_counts_open() that fails the test instead of returning an error. close() it. */
struct counts *brute_counts_open(const struct access *access, double share, uint64_t seed);

#endif
