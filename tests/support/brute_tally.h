/* A tally that keeps a table of batches and blocks and counts by looking at all of it: the oracle
 * of the others. */
#ifndef DRPS_TESTS_BRUTE_TALLY_H
#define DRPS_TESTS_BRUTE_TALLY_H

#include "index/blocks/counts/drps_counts.h"

/* As counts_open(); fails the test instead. close() it. */
struct counts *brute_tally(const struct access *access, double share, uint64_t seed);

#endif
