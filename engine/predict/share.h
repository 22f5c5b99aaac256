/* How the memory of a prediction is divided. Private to engine/predict/. */
#ifndef DRPS_ENGINE_PREDICT_SHARE_H
#define DRPS_ENGINE_PREDICT_SHARE_H

#include "engine/predict/drps_predict.h"
#include "engine/publish/drps_modeldir.h"

/* The most features of a batch. */
enum { DRPS_PREDICT_ENTRIES_MOST = 1 << 20 };

struct drps_predict_share {
    uint64_t reader_bytes, model_bytes;
    size_t entries; /* of a batch */
};

/* The least of everything, or DRPS_E_MEMORY_BUDGET; of what is left a sixteenth each for two pieces
 * of text, seven for the model's blocks, if it has so many, and the rest for a batch. */
DRPS_MUST_CHECK
int drps_predict_share_out(const struct drps_predict_options *options, struct drps_modeldir *md,
                           uint64_t limit, struct drps_predict_share *out, struct drps_err *err);

#endif
