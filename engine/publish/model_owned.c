/* The files that a model's folder may hold, also while a run trains in it: drps_stage_begin()
 * replaces and removes them. */
#include "engine/publish/drps_modeldir.h"

#include "base/folder/drps_stage.h"
#include "base/monitor/drps_monitor_out.h"
#include "engine/checkpoint/drps_checkpoint_files.h"

/* Rows that a run begins with, as a checkpoint: engine/checkpoint/drps_checkpoint.h. */
static const struct drps_owned parts_owned[] = {{.name = "#.rec"}, {.name = NULL}};
static const struct drps_owned rows_owned[] = {
    {.name = DRPS_CHECKPOINT_MANIFEST},
    {.name = DRPS_CHECKPOINT_ROWS, .inside = parts_owned},
    {.name = "lock"},
    {.name = NULL},
};
static const struct drps_owned rank_owned[] = {
    {.name = "#", .inside = rows_owned},
    {.name = "#.partial", .inside = rows_owned},
    {.name = NULL},
};
/* Rows copied out of a store that has saved itself. */
static const struct drps_owned saved_owned[] = {
    {.name = DRPS_CHECKPOINT_RANK "#", .inside = rank_owned}, {.name = NULL}};
/* Rows of a warm start, and what they are made of. */
static const struct drps_owned begin_owned[] = {
    {.name = "names.run"}, {.name = "pairs.run"},
    {.name = "pieces"},    {.name = DRPS_CHECKPOINT_RANK "#", .inside = rank_owned},
    {.name = NULL},
};
/* Files of the row stores, and windows that are cut for a run. */
static const struct drps_owned store_owned[] = {
    {.name = "runs"},
    {.name = "streams"}, /* of earlier versions */
    {.name = "transit"}, /* the streams of earlier versions */
    {.name = "scan"},
    {.name = "probe-#"},
    {.name = "probe"}, /* of earlier versions */
    {.name = DRPS_MODEL_BEGIN, .inside = begin_owned},
    {.name = "blocks"}, /* engine file */
    {.name = "blocks", .inside = drps_kv_owned},
    {.name = DRPS_FILE_WINDOWS},
    {.name = DRPS_FILE_WINDOW_ROWS_TMP},
    {.name = DRPS_FILE_WINDOW_NEXT_TMP},
    {.name = DRPS_FILE_WINDOW_PREV_TMP},
    {.name = DRPS_FILE_SLOTS},
    {.name = DRPS_MODEL_SAVED, .inside = saved_owned},
    {.name = NULL},
};
/* What is trained and no model yet: engine/publish/drps_trained.h. */
static const struct drps_owned trained_owned[] = {
    {.name = DRPS_TRAINED_MANIFEST},
    {.name = DRPS_TRAINED_PARAMS},
    {.name = DRPS_TRAINED_PARAMS_NEXT},
    {.name = DRPS_TRAINED_NAMES},
    {.name = NULL},
};
static const struct drps_owned model_owned[] = {
    {.name = DRPS_MODEL_MANIFEST},
    {.name = DRPS_MODEL_MANIFEST_NEXT},
    {.name = DRPS_MODEL_NAMES},
    {.name = DRPS_MODEL_ROWS, .inside = drps_kv_owned},
    {.name = DRPS_MONITOR_FILE, .unfinished = 1},
    {.name = DRPS_MONITOR_FILE_NEXT, .unfinished = 1},
    {.name = DRPS_MODEL_STORE, .inside = store_owned, .unfinished = 1},
    {.name = DRPS_MODEL_TRAINED, .inside = trained_owned, .unfinished = 1},
    {.name = NULL},
};
const struct drps_stage_kind drps_modeldir_kind = {.manifest = DRPS_MODEL_MANIFEST,
                                                   .kind = "drps-model",
                                                   .version = DRPS_MODELDIR_VERSION,
                                                   .owned = model_owned};
