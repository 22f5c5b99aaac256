/*
 * What each entry of a sample adds to its score, so that all parts and the intercept add up to it.
 *
 *   linear, and a class of a matrix   x w
 *   fm, ffm    x w, and half of the product of each pair that the entry is in
 *   mf         x b, the bias; the product of the two rows' factors is a part of its own
 *
 * Shapes are those of engine/model/drps_model.h; sums are in double, scores in float, so the two
 * differ by rounding. Pure arithmetic. Private to engine/predict/.
 */
#ifndef DRPS_ENGINE_PREDICT_PARTS_H
#define DRPS_ENGINE_PREDICT_PARTS_H

#include "engine/model/drps_model.h"

struct drps_parts {
    double intercept;
    double *of;  /* [n] of the sample's entries; the caller's */
    double pair; /* mf: of the two rows together; else 0 */
};

/* 1: the model's scores have such parts: it is no topic model. */
int drps_parts_exist(const struct drps_model *model);

/* Parts of score `output` of sample s. sums: [factors] scratch of fm; else not used. */
void drps_parts_of(const struct drps_model *model, const struct drps_batch *b, size_t s,
                   const float *params, size_t output, double *sums, struct drps_parts *out);

#endif
