/* How a run learns, as plan and options settle it, and what is said where that goes wrong: pure
 * functions of plan, options and results. Shared inside engine/. */
#ifndef DRPS_ENGINE_TRAIN_LEARNING_H
#define DRPS_ENGINE_TRAIN_LEARNING_H

#include "engine/drps_engine.h"
#include "engine/model/drps_model.h"

/* ---- Model and optimizer: learner.c ---- */

/* DRPS_E_CONFIG, DRPS_E_CORRUPT: options and plan do not go together. */
DRPS_MUST_CHECK
int drps_learning_model(const struct drps_plan *plan, const struct drps_train_options *options,
                        struct drps_model *model, struct drps_err *err);
DRPS_MUST_CHECK
int drps_learning_optim(const struct drps_plan *plan, const struct drps_train_options *options,
                        const struct drps_model *model, struct drps_optim *optim,
                        struct drps_err *err);

/* Returns what steps the rows in the first epoch: of a mean over a batch l1 and l2 are smaller than
 * asked for. */
struct drps_optim drps_learning_steps(const struct drps_plan *plan,
                                      const struct drps_train_options *options,
                                      const struct drps_optim *asked);

/* ---- Which epoch is the best: metric.c ---- */

/* DRPS_E_CONFIG: the plan has no test samples for patience, or no such metric. */
DRPS_MUST_CHECK
int drps_learning_check_metric(const struct drps_plan *plan,
                               const struct drps_train_options *options, struct drps_err *err);

/* ---- When it goes wrong: remarks.c ---- */

/* -ERANGE: the loss of the last epoch is finite, but far above that of a constant, and grows. */
DRPS_MUST_CHECK
int drps_learning_check_exploded(const struct drps_train_result *r, struct drps_err *err);

/* Add sentences on the losses of the run's epochs to r->remarks. */
void drps_learning_remark(struct drps_train_result *r, const struct drps_plan_info *info,
                          const struct drps_train_options *options);

#endif
