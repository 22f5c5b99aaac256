/* How workers wait, and the rate for what comes late, as JSON: members of a checkpoint's manifest
 * and of a model's. They are there where somebody has set them. Shared inside engine/. */
#ifndef DRPS_ENGINE_CHECKPOINT_WAITING_JSON_H
#define DRPS_ENGINE_CHECKPOINT_WAITING_JSON_H

#include <jansson.h>

#include "sched/drps_sched.h"
#include "sched/drps_stale.h"

/* Add "wsp" and "lr_stale" to *j, which becomes NULL when memory is gone. */
void drps_waiting_put(json_t **j, const struct drps_sched_tuning *wsp, enum drps_stale stale);

/* Read them; `path` is that of the file, for the text. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_waiting_get(const json_t *j, const char *path, struct drps_sched_tuning *wsp_out,
                     enum drps_stale *stale_out, struct drps_err *err);

#endif
