/* How many batches of an epoch a run trains and evaluates: all, unless it is a pilot of fewer.
 * Shared inside engine/. */
#ifndef DRPS_ENGINE_CLUSTER_TARGET_PILOT_H
#define DRPS_ENGINE_CLUSTER_TARGET_PILOT_H

#include "engine/drps_engine.h"

/* 1: the run ends before all batches of its epoch are trained. */
static inline int drps_pilot_is_cut(const struct drps_train_options *o,
                                    const struct drps_plan_info *info)
{
    return o->pilot.on && o->pilot.rounds && o->pilot.rounds < info->batches;
}

static inline uint64_t drps_pilot_train_steps(const struct drps_train_options *o,
                                              const struct drps_plan_info *info)
{
    return drps_pilot_is_cut(o, info) ? o->pilot.rounds : info->batches;
}

static inline uint64_t drps_pilot_eval_steps(const struct drps_train_options *o,
                                             const struct drps_plan_info *info)
{
    return drps_pilot_is_cut(o, info) ? 0 : info->eval_batches;
}

#endif
