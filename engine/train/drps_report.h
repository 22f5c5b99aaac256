/*
 * How a training run went, as JSON: what drps-train --json prints and what model.json keeps as
 * "training". One writer for both, so that a script reads either. The members are listed in
 * drps-train(1).
 */
#ifndef DRPS_ENGINE_TRAIN_REPORT_H
#define DRPS_ENGINE_TRAIN_REPORT_H

#include "engine/drps_engine.h"

/* Returns a json_t object, own: json_decref() it; NULL when memory is gone. `options` and `result`
 * are those of drps_train_run(). The model keeps the numbers as they are just before it gets its
 * name; asked again after the run, seconds, phase_seconds.export, peak_rss_bytes and
 * process_*_bytes hold the run's last moments, too. */
void *drps_report_json(const struct drps_train_options *options,
                       const struct drps_train_result *result);

#endif
