/* The results of an epoch as JSON, written and read by one table. Shared inside engine/. */
#ifndef DRPS_ENGINE_CHECKPOINT_EPOCH_JSON_H
#define DRPS_ENGINE_CHECKPOINT_EPOCH_JSON_H

#include <jansson.h>

#include "engine/drps_engine.h"

/* Returns an object, own; NULL when memory is gone. What could not be measured is null. */
json_t *drps_epoch_to_json(const struct drps_epoch *e);

/* Read one back; `path` is that of the file, for the text. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_epoch_from_json(const json_t *j, const char *path, struct drps_epoch *out,
                         struct drps_err *err);

#endif
