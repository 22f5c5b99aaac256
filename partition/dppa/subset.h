/*
 * The subset of a drawn set that a part should take: line 6 of Algorithm 1. Private to
 * partition/dppa/.
 */
#ifndef DRPS_PARTITION_DPPA_SUBSET_H
#define DRPS_PARTITION_DPPA_SUBSET_H

#include "partition/drps_partition.h"

enum { SUBSET_MOST = 16 }; /* samples that can be taken together */

/* Where to look, and what is found. Set all before `found`; arrays are borrowed. */
struct subset_search {
    const struct drps_sample_set *set;
    const uint64_t *touched; /* bit f: the part touches feature f */
    const uint32_t *drawn;   /* [n] S: rising numbers of samples */
    size_t n;
    uint32_t alpha; /* 1 .. SUBSET_MOST */
    double beta;
    uint32_t *marked; /* [features_n] 0: how many chosen samples have a feature */

    uint32_t chosen[SUBSET_MOST]; /* while searching */
    uint32_t found[SUBSET_MOST];
    uint32_t found_n; /* 0: no subset is better than none */
    uint64_t found_fresh;
    double found_gain; /* f(D_i + S') - f(D_i) - beta |S'| */
};

void drps_subset_find(struct subset_search *s);

/* The sample of S with the fewest features that the part does not have; n is not 0. */
uint32_t drps_subset_cheapest(const struct subset_search *s, uint64_t *fresh_out);

/* Returns how many subsets of 1 to alpha there are of n, or `most` if there are more. */
uint64_t drps_subset_count(uint64_t n, uint32_t alpha, uint64_t most);

#endif
