/*
 * Block pools without rows, run over the blocks that the steps of a plan use (uses.rec), to count
 * what they would read and write. Private to index/forecast/.
 */
#ifndef DRPS_INDEX_FORECAST_SIMULATION_H
#define DRPS_INDEX_FORECAST_SIMULATION_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "index/plan/drps_steps.h"
#include "index/plan/drps_window.h"
#include "storage/pib/drps_pool.h"

struct simulation {
    const struct drps_window_options *options;
    const struct drps_forecast_disk *disk; /* NULL: requests are not counted */
    const uint32_t *block_first;
    size_t blocks;
    uint32_t unit_rows;
    uint64_t most_blocks, most_units; /* of a step, in the share that is simulated */
    uint64_t all_uses;                /* of an epoch, of all blocks */
    double share;                     /* of the blocks, evenly spread */
    uint64_t share_32;                /* times 2^32 */
    struct steps *uses;
    uint32_t *list, *distance; /* [cap] of one step */
    uint32_t *moved;           /* [cap] blocks that one step writes, then those that it reads */
    uint64_t *order;           /* [cap] of those that it reads */
    uint32_t *frame;           /* [cap] of the blocks of one step */
    size_t list_cap, distance_cap, moved_cap, order_cap, frame_cap;
};

/* Open dir/uses.rec and measure its steps; what is passed is borrowed. disk NULL: requests are not
 * counted. Destroy also after a failure. */
DRPS_MUST_CHECK
int drps_simulation_open(struct simulation *m, const struct drps_io *io, const char *dir,
                         const struct drps_window_options *o, const uint32_t *block_first,
                         size_t blocks, uint32_t unit_rows, const struct drps_forecast_disk *disk,
                         struct drps_err *err);
void drps_simulation_destroy(struct simulation *m);

/* The largest step, by reading all: anew when the share has changed. */
DRPS_MUST_CHECK
int drps_simulation_measure(struct simulation *m, struct drps_err *err);

/* Step `step` of the epoch: its blocks, those of the share, to m->list [*n_out] and m->distance. */
DRPS_MUST_CHECK
int drps_simulation_read(struct simulation *m, uint64_t step, size_t *n_out, struct drps_err *err);

/* 1: a pool of that shape has room for the largest step. */
int drps_simulation_fits(const struct simulation *m, const struct drps_pool_shape *shape);

/* What running one pool takes, at most. */
uint64_t drps_simulation_bytes(const struct simulation *m, const struct drps_pool_shape *shape);

/* Fill the counts of out[0 .. n) for shapes[0 .. n), whose pools are run side by side, and of
 * requests (NULL: nobody asks). */
DRPS_MUST_CHECK
int drps_simulation_run(struct simulation *m, const struct drps_pool_shape *shapes, size_t n,
                        enum drps_evict_rule rule, struct drps_forecast *out,
                        struct drps_forecast_requests *requests, struct drps_err *err);

#endif
