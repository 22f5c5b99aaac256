/* The optimizer's state of a model: a run that has kept its checkpoints has it beside the model.
 * Private to engine/warm/. */
#ifndef DRPS_ENGINE_WARM_STATE_H
#define DRPS_ENGINE_WARM_STATE_H

#include "engine/warm/old.h"

/*
 * Have *old, an open model, be the checkpoints beside it, if there are any whose parameters are the
 * model's, bit for bit: then the rows come with the optimizer's state. Else it stays, and the log
 * is told why. Checkpoints are read once more. -ENOMEM, DRPS_E_INTERRUPTED.
 */
DRPS_MUST_CHECK
int drps_warm_take_state(const struct drps_warm_options *o, const struct warm_about *now,
                         struct warm_old *old, struct drps_err *err);

#endif
