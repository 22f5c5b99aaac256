/*
 * Several block pools run side by side over the same uses, as storage/pib/drps_pool.h with farthest
 * next uses would run each: the same blocks come and go. Nothing but counts comes out. Private to
 * index/.
 *
 * A block that is in a pool waits in the queue of the step that uses it next, and leaves it in no
 * other way than that step, which takes the whole queue, or by being given up, the latest to come
 * first: so queues are stacks, linked from block to block. Pools differ in who was given up alone,
 * and after a step all of them have its blocks: they lie beside each other in memory, and what a
 * step does to a block that all have takes about as long as with one.
 */
#ifndef DRPS_INDEX_FORECAST_POOLS_H
#define DRPS_INDEX_FORECAST_POOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "storage/drps_store.h"

enum { POOLS_MOST = 8 };

struct pools;

struct pools_config {
    const uint32_t *block_first; /* [blocks + 1] borrowed */
    size_t blocks;
    size_t row_bytes;
    uint32_t unit_rows; /* of all shapes, a power of two */
    uint64_t steps;     /* no next use is farther away; below 2^31 */
};

struct pools_count {
    uint64_t read_bytes, written_bytes, ios;
};

/* Returns the memory that so many pools take together, however large they are. */
uint64_t drps_pools_bytes(const struct pools_config *config);

/* shapes [n], n <= POOLS_MOST; any step's blocks fit each. -ENOMEM. */
DRPS_MUST_CHECK
int drps_pools_open(const struct pools_config *config, const struct drps_pool_shape *shapes,
                    size_t n, struct pools **p_out, struct drps_err *err);
void drps_pools_close(struct pools *p);

/*
 * Step `now`, one after the other from 0 on, below 2^32: uses list [n], increasing, which comes
 * again distance [n] steps later, and changes the rows if `changes`. DRPS_E_CORRUPT: the distances
 * contradict what came before.
 */
DRPS_MUST_CHECK
int drps_pools_step(struct pools *p, uint64_t now, const uint32_t *list, const uint32_t *distance,
                    size_t n, int changes, struct drps_err *err);

/* What pool i moved since the last drps_pools_forget(). */
struct pools_count drps_pools_counted(const struct pools *p, size_t i);
void drps_pools_forget(struct pools *p);

#endif
