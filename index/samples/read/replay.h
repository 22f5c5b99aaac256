/* Samples of an earlier plan once more: a share of those that it trains on comes with the new ones,
 * from its batches, without the text. Private to index/samples/read/. */
#ifndef DRPS_INDEX_SAMPLES_READ_REPLAY_H
#define DRPS_INDEX_SAMPLES_READ_REPLAY_H

#include "index/plan/drps_plan.h"
#include "index/samples/drps_spool.h"

/* A sample whose ids are rows of the earlier plan, whose label is as the data had it (of classes
 * their numbers), and whose order is its number in the plan. */
typedef int (*drps_replay_visit)(void *ctx, struct spool_sample *s, struct drps_err *err);

/* Visit about this share of the training samples, each drawn by seed and number, in the plan's
 * order. DRPS_E_CONFIG: the plan is for several workers; DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_replay(const struct drps_plan *plan, double share, uint64_t seed, drps_replay_visit visit,
                void *ctx, struct drps_err *err);

#endif
