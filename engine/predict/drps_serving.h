/*
 * A model in use: samples in memory, and lines of text, are scored and explained. Scores are those
 * of prediction (drps_predict.h), to the bit: samples pass the same reader and the same scorer.
 * Shared with api/.
 *
 * Threads: any number may call at a time, but for drps_serving_close(). Where all rows are in
 * memory they share nothing that changes; else they take turns.
 */
#ifndef DRPS_ENGINE_PREDICT_SERVING_H
#define DRPS_ENGINE_PREDICT_SERVING_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"
#include "engine/readout/drps_readout.h"
#include "index/reader/matrix/drps_matrix.h"

struct drps_serving; /* opaque: own */

/* memory_bytes: for rows and names; 0: all of them are in memory. Errors are those of
 * drps_modeldir_open(), and -ENOMEM. */
DRPS_MUST_CHECK
int drps_serving_open(const char *model, uint64_t memory_bytes, struct drps_serving **out,
                      struct drps_err *err);
void drps_serving_close(struct drps_serving *s); /* NULL-safe */

const struct drps_modeldir_info *drps_serving_info(const struct drps_serving *s);
const void *drps_serving_json(const struct drps_serving *s); /* a json_t object; borrowed */

/* Returns the scores of a sample: J, or of topics one each. */
size_t drps_serving_outputs(const struct drps_serving *s);

/* The samples: one of the two. Of a model of users and items a sample of a matrix has two entries,
 * a user and an item, by number. */
struct drps_serving_input {
    const struct drps_matrix *matrix; /* NULL: text [bytes], in the format of the training data */
    const char *text;
    size_t bytes;
};

/*
 * Score samples.
 *
 * raw      1: scores as the model computes them; 0: probabilities of logistic losses (calibrated
 *          where the model is) and of softmax
 * scores   [most][outputs] to fill in
 * n_out    how many samples there were
 *
 * DRPS_E_FORMAT, DRPS_E_CONFIG (input of another kind than the model's), -ERANGE (more samples than
 * `most`), -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_serving_score(struct drps_serving *s, const struct drps_serving_input *in, int raw,
                       double *scores, size_t most, size_t *n_out, struct drps_err *err);

/* JSON lines of what adds up to each raw score, as engine/predict/explain.h has them, with `most`
 * features each. *text_out is own: free(). */
DRPS_MUST_CHECK
int drps_serving_explain(struct drps_serving *s, const struct drps_serving_input *in, size_t most,
                         char **text_out, struct drps_err *err);

/* Requests that read blocks of rows and pages of names since it was opened, and their bytes. */
uint64_t drps_serving_reads(struct drps_serving *s, uint64_t *bytes_out);

/* Visit all rows by name; find one: drps_readout_rows(), drps_readout_find(). */
DRPS_MUST_CHECK
int drps_serving_rows(struct drps_serving *s, drps_readout_visit visit, void *ctx,
                      struct drps_err *err);
DRPS_MUST_CHECK
int drps_serving_row(struct drps_serving *s, const char *name, float *params, struct drps_err *err);

#endif
