/*
 * Which frame to give up: a queue of frames keyed by the step that needs their block next, largest
 * first (Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
 * Journal 5, 1966).
 *
 * A bucket a step, in a ring, with a tree of bitmaps over the buckets: insert, remove and
 * take-the-largest touch a few words each, exactly and whatever the number of frames. One thread at
 * a time.
 */
#ifndef DRPS_STORAGE_PIB_NEXT_USE_H
#define DRPS_STORAGE_PIB_NEXT_USE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_bit_tree.h"

enum { DRPS_NEXTUSE_NONE = UINT32_MAX };

struct drps_nextuse_link {
    uint32_t prev, next; /* frames of the same bucket; NONE at the ends */
};

struct drps_nextuse {
    struct drps_nextuse_link *link; /* [frames] borrowed */
    uint64_t *key;                  /* [frames] borrowed: the next use of a frame in the queue */
    uint32_t *head;                 /* [buckets] own: first frame of each */
    struct drps_bit_tree filled;    /* buckets that have frames */
    uint64_t buckets;               /* a power of two, at least 64 */
    uint64_t floor; /* every key in the queue is in [floor, floor + buckets) or UINT64_MAX */
    uint32_t never; /* frames whose block no step needs: given up first */
    uint32_t n;     /* frames in the queue */
};

/* Several queues may share the arrays: a frame is in one of them at most. 0 or -ENOMEM. `q` may be
 * destroyed in either case. */
int drps_nextuse_init(struct drps_nextuse *q, struct drps_nextuse_link *link, uint64_t *key);
void drps_nextuse_destroy(struct drps_nextuse *q);

/* Memory for `frames` frames, arrays included, and next uses up to `span` steps ahead. */
uint64_t drps_nextuse_bytes(uint64_t frames, uint64_t span);

/*
 * Insert a frame that is not in the queue. floor: no key in the queue, `key` included, is smaller;
 * it never falls. 0 or -ENOMEM with the queue unchanged.
 */
int drps_nextuse_insert(struct drps_nextuse *q, uint32_t frame, uint64_t key, uint64_t floor);

void drps_nextuse_remove(struct drps_nextuse *q, uint32_t frame);

/* The frame needed furthest ahead; NONE when the queue is empty. */
uint32_t drps_nextuse_last(const struct drps_nextuse *q);

/* Remove and return it; NONE when the queue is empty. */
uint32_t drps_nextuse_pop(struct drps_nextuse *q);

#endif
