/* Whether a plan can be trained as a topic model, with these options. Shared inside engine/. */
#ifndef DRPS_ENGINE_TRAIN_TOPIC_CHECK_H
#define DRPS_ENGINE_TRAIN_TOPIC_CHECK_H

#include "engine/drps_engine.h"

/* The penalty on the dictionary where none is given, which bounds its size. */
#define DRPS_TOPIC_RHO 1.0f

/* DRPS_E_CONFIG says what does not go together, of the optimizer also with another algorithm. */
DRPS_MUST_CHECK
int drps_topic_check(const struct drps_plan *plan, const struct drps_train_options *options,
                     struct drps_err *err);
DRPS_MUST_CHECK
int drps_topic_check_optimizer(const struct drps_plan *plan, const struct drps_optim *optim,
                               struct drps_err *err);

#endif
