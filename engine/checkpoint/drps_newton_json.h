/* The state of a quasi-Newton method in a checkpoint's manifest. Shared inside engine/. */
#ifndef DRPS_ENGINE_CHECKPOINT_NEWTON_JSON_H
#define DRPS_ENGINE_CHECKPOINT_NEWTON_JSON_H

#include <jansson.h>

#include "engine/newton/drps_newton.h"

/* Returns an object, own; NULL when memory is gone. */
json_t *drps_newton_to_json(const struct drps_newton_state *s);

/* DRPS_E_CORRUPT names `path`. */
DRPS_MUST_CHECK
int drps_newton_from_json(const json_t *j, const char *path, const struct drps_optim *optim,
                          struct drps_newton_state *out, struct drps_err *err);

#endif
