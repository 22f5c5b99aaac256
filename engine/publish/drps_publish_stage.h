/* The part of engine/publish/drps_publish.h that a training run shares. Shared inside engine/. */
#ifndef DRPS_ENGINE_PUBLISH_PUBLISH_STAGE_H
#define DRPS_ENGINE_PUBLISH_PUBLISH_STAGE_H

#include "base/folder/drps_stage.h"
#include "engine/publish/drps_publish.h"
#include "storage/kv/drps_kv.h"

/* The engine of that name that a model can be written with; NULL: the preferred one. */
DRPS_MUST_CHECK
int drps_publish_engine(const char *name, const struct drps_kv_ops **kv_out, struct drps_err *err);

/* Make the model of `folder` in the stage, give it its name, remove the folder; one that lies in the
 * stage goes before, as no model has it. memory_bytes: for the engine. Of the options log, on_progress and ctx count. */
DRPS_MUST_CHECK
int drps_publish_stage(struct drps_stage *stage, const char *folder, const struct drps_kv_ops *kv,
                       uint64_t memory_bytes, const struct drps_publish_options *options,
                       struct drps_publish_result *result, struct drps_err *err);

#endif
