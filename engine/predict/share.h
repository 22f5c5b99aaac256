/* Divides the memory of a prediction. Private to engine/predict/. */
#ifndef DRPS_ENGINE_PREDICT_SHARE_H
#define DRPS_ENGINE_PREDICT_SHARE_H

#include "engine/predict/drps_predict.h"
#include "engine/publish/drps_modeldir.h"

/* The most features of a batch, which has room for so many for each sample. */
enum { DRPS_PREDICT_ENTRIES_MOST = 1 << 20, DRPS_PREDICT_SAMPLE_ENTRIES = 2 };

/* Returns the samples of the longest sequence; 0: the model reads none. */
uint32_t drps_predict_sequence(const struct drps_predict_options *options,
                               const struct drps_modeldir_info *info);

struct drps_predict_share {
    uint64_t reader_bytes, model_bytes;
    size_t entries; /* of a batch */
};

/* Gives each part its least, or returns DRPS_E_MEMORY_BUDGET. Of what is left, two pieces of text
 * get a sixteenth each, the model's blocks seven if there are so many, and a batch the rest. */
DRPS_MUST_CHECK
int drps_predict_share_out(const struct drps_predict_options *options, struct drps_modeldir *md,
                           uint64_t limit, struct drps_predict_share *out, struct drps_err *err);

#endif
