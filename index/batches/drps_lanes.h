/*
 * Lanes: batches that may be computed at the same time, gathered side by side.
 *
 * Samples of one stratum (see drps_grid.h) come in any order; those of different lanes share no row
 * but the intercept's. Each lane gathers its samples until they make a batch, which is then cut and
 * marked with its stratum and lane. So the batches of a stratum's lanes alternate as their
 * samples come in, and a trainer that looks some batches ahead finds work for several threads. At
 * the end of a stratum its lanes are emptied: their last batches are smaller. Shared inside index/.
 */
#ifndef DRPS_INDEX_BATCHES_LANES_H
#define DRPS_INDEX_BATCHES_LANES_H

#include "index/batches/drps_batcher.h"
#include "index/samples/drps_spool.h"

struct lanes;

/* Samples of rank_n ids at most two wait in memory: lanes * batch_size of them. */
uint64_t drps_lanes_memory(uint64_t lanes, uint64_t batch_size);

/* Batches go to `to`, borrowed, which must cut at batch_size. */
DRPS_MUST_CHECK
int drps_lanes_open(uint32_t lanes, size_t batch_size, struct batcher *to, struct lanes **l_out,
                    struct drps_err *err);
void drps_lanes_close(struct lanes *l); /* NULL-safe */

/* One sample. stratum >= 1 never falls; lane < lanes. */
DRPS_MUST_CHECK
int drps_lanes_add(struct lanes *l, uint32_t stratum, uint32_t lane,
                   const struct spool_sample *sample, struct drps_err *err);

/* Cut what is left of the last stratum; the batcher's next batches are not marked. */
DRPS_MUST_CHECK
int drps_lanes_finish(struct lanes *l, struct drps_err *err);

#endif
