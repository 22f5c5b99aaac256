/* Whether a plan can be trained with a quasi-Newton method, with these options. Shared inside
 * engine/. */
#ifndef DRPS_ENGINE_TRAIN_NEWTON_CHECK_H
#define DRPS_ENGINE_TRAIN_NEWTON_CHECK_H

#include "engine/drps_engine.h"

/* Settle what `optim`, which says which method, has from the options. DRPS_E_CONFIG says what does
 * not go together, also with another optimizer. */
DRPS_MUST_CHECK
int drps_newton_settle(const struct drps_plan *plan, const struct drps_train_options *options,
                       const struct drps_model *model, struct drps_optim *optim,
                       struct drps_err *err);

#endif
