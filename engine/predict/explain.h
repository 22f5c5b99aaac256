/*
 * Explained predictions: for each sample its score and what the features add to it, the largest
 * first. As lines with tabs, below a head:
 *
 *   sample  feature      value  contribution
 *   1       (intercept)  1      -1.5
 *   1       C7=ab        1      0.53
 *   1       (others)            0.02     features that are not shown, together; left out if there
 *                                        are none
 *   1       (score)             -0.95    the sum; of a model of named classes that of class c,
 * which was predicted, as "(score of c)"
 *
 * or as JSON lines, an object a sample: sample, class, score, intercept, features (an array of
 * feature, value, contribution), others. Private to engine/predict/.
 */
#ifndef DRPS_ENGINE_PREDICT_EXPLAIN_H
#define DRPS_ENGINE_PREDICT_EXPLAIN_H

#include "base/folder/drps_textfile.h"
#include "engine/predict/parts.h"
#include "engine/predict/scorer.h"
#include "engine/readout/drps_readout.h"

struct drps_explain {
    const struct drps_modeldata *data; /* borrowed, as is the next one */
    struct drps_textfile *out;
    const struct drps_modeldir_info *info;
    struct drps_readout names; /* own */
    size_t most;               /* features shown of a sample */
    int json;
    double *of, *sums;               /* own: [cap] parts of a sample, [factors] */
    struct drps_explain_part *parts; /* own: [cap] */
    size_t cap;
};

/* Bytes that a feature of the longest sample takes. */
enum { DRPS_EXPLAIN_ENTRY_BYTES = 32 };

/* For samples of at most `entries` features; writes the head. DRPS_E_CONFIG: the model's scores
 * have no parts. Close it in either case. */
DRPS_MUST_CHECK
int drps_explain_open(struct drps_explain *e, struct drps_modeldir *md, size_t entries,
                      struct drps_err *err);
void drps_explain_close(struct drps_explain *e); /* zeroed too */

/* Explain sample s of the batch that was scored last, whose entries are those of the data's piece.
 * `number` is what the sample is called. */
DRPS_MUST_CHECK
int drps_explain_sample(struct drps_explain *e, const struct drps_scorer *scorer, size_t s,
                        uint64_t number, struct drps_err *err);

#endif
