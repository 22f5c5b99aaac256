/*
 * The names of a model's files, and of what is kept of a training run before it is a model. The
 * dictionary has the name that it has in the plan.
 */
#ifndef DRPS_ENGINE_PUBLISH_MODEL_FILES_H
#define DRPS_ENGINE_PUBLISH_MODEL_FILES_H

#include "index/plan/drps_plan_files.h"

/* A model: engine/publish/drps_modeldir.h. */
#define DRPS_MODEL_MANIFEST "model.json"
#define DRPS_MODEL_MANIFEST_NEXT "model.json.next" /* while it is written anew */
#define DRPS_MODEL_NAMES DRPS_FILE_NAMES
#define DRPS_MODEL_ROWS "rows" /* folder of the database */

/* While a run trains, in the folder that becomes the model. */
#define DRPS_MODEL_STORE "store"     /* folder of the row store and of windows cut for the run */
#define DRPS_MODEL_SAVED "saved"     /* in the store's folder: rows copied out of a checkpoint */
#define DRPS_MODEL_BEGIN "begin"     /* in that: folder of the rows that a warm start begins with */
#define DRPS_MODEL_TRAINED "trained" /* folder of what is trained and no model yet */

/* What is trained: engine/publish/drps_trained.h. */
#define DRPS_TRAINED_MANIFEST "trained.json"
#define DRPS_TRAINED_NAMES DRPS_FILE_NAMES
#define DRPS_TRAINED_PARAMS "params.bin"
#define DRPS_TRAINED_PARAMS_NEXT "params.next" /* parameters of a later epoch, until complete */
#define DRPS_TRAINED_SUFFIX ".trained"         /* of the model's name, once the run has ended */

#endif
