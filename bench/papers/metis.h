/* The multilevel graph partitioner that placements are compared with (METIS, where the build has
 * it). */
#ifndef DRPS_BENCH_PAPERS_METIS_H
#define DRPS_BENCH_PAPERS_METIS_H

#include <stdint.h>

#include "partition/drps_partition.h"

/*
 * Partition the graph of samples and rows; of each, every part is to have as many.
 *
 * size         [features_n] how much a row weighs, and each of its edges; NULL: 1
 * samples, rows  [n], [features_n] caller-owned: their parts
 * Returns 1, or 0 if this build has no METIS: then it says so. What else goes wrong ends the
 * program.
 */
int metis_place(const struct drps_sample_set *set, const uint32_t *size, uint32_t machines,
                uint32_t *samples, uint32_t *rows);

#endif
