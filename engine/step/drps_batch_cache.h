/*
 * Batches that are decoded and checked once, when each is first needed, and stay in memory as they
 * are trained: where a feed keeps their records and there is room for their row lists, too.
 * Decoding is one thread's work, a seventh of the time of logistic regression, and what it reads
 * comes to the other threads from its cache. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_STEP_BATCH_CACHE_H
#define DRPS_ENGINE_STEP_BATCH_CACHE_H

#include <stdint.h>

#include "engine/step/drps_feed.h"

struct drps_batch_cache; /* opaque */

/* Returns the bytes beside the feed's; 0: the plan is too old to say how many rows its batches
 * have. */
uint64_t drps_batch_cache_memory(const struct drps_plan_info *info);

/* `feed` is started, keeps its records, and nothing is taken from it but by
 * drps_batch_cache_next(); it and info are borrowed. */
DRPS_MUST_CHECK
int drps_batch_cache_open(const struct drps_plan_info *info, struct drps_feed *feed,
                          struct drps_batch_cache **cache_out, struct drps_err *err);
void drps_batch_cache_close(struct drps_batch_cache *cache); /* NULL-safe; before the feed */

/* The next batch, as drps_feed_next() gives it, from the feed's first step on, but valid until
 * drps_batch_cache_close(). */
DRPS_MUST_CHECK
int drps_batch_cache_next(struct drps_batch_cache *cache, struct drps_feed_batch *out,
                          struct drps_err *err);

#endif
