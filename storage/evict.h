/*
 * Which block to give up: frames that no step holds, in the order of one of three rules.
 *
 *   farthest  the block needed furthest ahead (nextuse.h): what is known from the plan
 *   clock     the first that was not used since the hand came round last (Corbato, "A paging
 *             experiment with the Multics system", 1968)
 *   lru       the one used longest ago
 *
 * One thread at a time. Memory: drps_evict_bytes().
 */
#ifndef DRPS_EVICT_H
#define DRPS_EVICT_H

#include "storage/drps_store.h"
#include "storage/nextuse.h"

struct drps_evict {
    enum drps_evict_rule rule;
    uint32_t frames;
    uint32_t n; /* frames in here */

    struct drps_nextuse nextuse; /* farthest */

    uint8_t *state; /* clock, own: [frames] see evict.c */
    uint32_t hand;

    struct drps_nextuse_link *link; /* lru, own: [frames] */
    uint32_t oldest, newest;
};

/* 0 or -ENOMEM. `e` may be destroyed in either case. */
int drps_evict_init(struct drps_evict *e, enum drps_evict_rule rule, uint32_t frames);
void drps_evict_destroy(struct drps_evict *e);

/* Memory for `frames` frames and next uses up to `span` steps ahead, whatever the rule. */
uint64_t drps_evict_bytes(uint64_t frames, uint64_t span);

/*
 * A frame that is not in here was used just now and may be given up from now on. next_use >= now,
 * and `now` never falls. 0 or -ENOMEM with nothing changed.
 */
int drps_evict_insert(struct drps_evict *e, uint32_t frame, uint64_t next_use, uint64_t now);

void drps_evict_remove(struct drps_evict *e, uint32_t frame);

/* Remove and return the frame to give up; DRPS_NEXTUSE_NONE when there is none. */
uint32_t drps_evict_pop(struct drps_evict *e);

#endif
