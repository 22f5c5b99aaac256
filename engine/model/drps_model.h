/*
 * Models: pure arithmetic on one gathered batch. No I/O, no threads, no memory of their own.
 *
 * Shapes: n samples, m distinct rows in the batch, D = dim floats a row, J = outputs: scores of a
 * sample, 1 but for models of named classes, which have D = J. Sample s has entries j in
 * [start(s), start(s + 1)); entry j touches batch-local row l = local[j] < m with value x (1 when
 * values is NULL).
 *   params [m][D]  the batch's rows, gathered
 *   grads  [m][D]  sums over samples of the loss's derivative by each parameter, or means
 *                  (`mean_of`); kernels add to it
 *   scores [n][J], of implicit feedback [n][3] (engine/model/ranking/drps_ranking.h)
 * In a field-aware model entry j also has a field, fields[j] < F = model->fields.
 * A loss that is a text (model->expr) may use a row of the sample itself, `own`, which
 * drps_batch_sample_row() finds.
 * Row 0 of a batch is the intercept where `has_bias` is set: its first float is added to every
 * score; with J scores float c to score c.
 *
 * Which predictor and losses an algorithm has, index/plan/drps_algorithm.h says. The rows of a
 * sample's entries are distinct. mf takes at most two entries a sample, user and item; with one or
 * none (unknown rows are left out in evaluation) the score has biases only. Labels are -1 or +1 for
 * logistic and hinge losses, real for the squared loss, which is (score - y)^2 / 2, and of J > 1
 * outputs the number of a class, 0 to J - 1: score c of a sample is the sum of x times float c of
 * its rows, and the loss is log(sum over c of exp(score c)) - score y. A hinge loss of several
 * classes is one versus the rest: the sum over c of the hinge of score c, with +1 for class y and
 * -1 for others.
 *
 * ffm: score = bias + sum of x w + sum over pairs of entries i, j of x_i x_j <v_i[f_j], v_j[f_i]>,
 * w a row's first float, v[f] its factors for field f, which begin at 1 + f * factors. With
 * `normalized` x is divided by the sample's length, the root of the sum of x^2. A row may have
 * several entries in a sample, of different fields.
 *
 * Sources: fm is Rendle (ICDM 2010), Eq. 1; ffm is Juan et al. (RecSys 2016), Eq. 4; mf is Koren,
 * Bell and Volinsky (Computer 2009), with biases.
 */
#ifndef DRPS_ENGINE_MODEL_MODEL_H
#define DRPS_ENGINE_MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "engine/model/layers/drps_layers_vectors.h"
#include "index/expr/drps_expr.h"
#include "index/layers/drps_layers.h"
#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_batch.h"
#include "storage/drps_store.h"

struct drps_model {
    enum drps_algo algo;
    enum drps_loss loss;
    uint32_t factors; /* of a row; 0 for linear models */
    uint32_t fields;  /* F: a row has factors for each; 0: the model is not field-aware */
    uint32_t dim;     /* floats a row: the bias or weight, then the factors; or J weights */
    int normalized;   /* field-aware: each sample is divided by its length |x| */
    uint32_t outputs; /* J: scores of a sample */
    int classes;      /* of labels: 0: they are numbers; 1: -1 and +1; else how many have names */
    struct drps_expr expr;                  /* the loss as a text; n is 0 where it is none */
    struct drps_layers layers;              /* of a net, with its widths; n is 0 where it is none */
    const struct drps_callbacks *callbacks; /* borrowed; in place of the loss. NULL: none */
    const struct drps_layers_vectors *vectors; /* borrowed; of a net: where gradients leave what
                                                  they are made of. NULL: nowhere */
    int has_bias;                              /* row 0 of every batch is the intercept */
    uint32_t mean_of; /* 0: gradients are sums over samples; else they are means over the batch's,
                         and divided by so many workers, whose gradients are summed */
    int fixed_bias;   /* it stays as it starts, without gradient: many batches may read it */
    int late_bias;    /* it has a gradient, but no step of a batch: engine/step/drps_intercept.h */
    float bias_start; /* initial intercept: the mean label, or its log-odds for the logistic loss */
    float init_scale; /* random numbers (drps_model_random(), n of a row) start uniform in
                          (-init_scale, init_scale); 0: the algorithm's `init` over sqrt(n), or of
                          factors for a field over the root of these */
    uint64_t seed;
    uint64_t items; /* of implicit feedback: how many the model has; see drps_model_set_items() */
};

/* What a model is, as plans and models say. */
struct drps_model_terms {
    const char *algo;
    const char *loss; /* a name; NULL: the algorithm's usual one, or the one that the text is */
    const char *expression; /* the loss as a text; "" or NULL: it is none */
    const char *net;        /* a net as a text; "" or NULL: it is none */
    uint32_t factors;       /* as drps_model_init() takes them, as are classes */
    uint32_t outputs;       /* J of a text with W*x and labels that are numbers; else 0 */
    int classes;
};

/* Returns how many rows every batch has, which are its first and no entry's: the intercept's, or
 * those of a net. */
static inline uint32_t drps_model_common_rows(const struct drps_model *model)
{
    if (!model->has_bias) return 0;
    return model->layers.n ? drps_layers_rows(&model->layers, model->dim) : 1;
}

/* drps_model_init() for these, also of algorithms whose loss is a text. */
DRPS_MUST_CHECK
int drps_model_settle(struct drps_model *model, const struct drps_model_terms *terms,
                      struct drps_err *err);

/*
 * Fill in algo, loss, factors, dim, has_bias (1); the other members become 0, so set them after.
 * `algo` and `loss` are names of index/plan/drps_algorithm.h; a NULL loss is the algorithm's usual
 * one. `classes` is 0 where labels are real numbers, 1 where they are -1 and +1, else how many
 * named classes there are, which algorithms of such labels need and others refuse; `factors` 0
 * means DRPS_FACTORS_DEFAULT for algorithms with factors, and must be 0 for others. DRPS_E_CONFIG
 * names what does not fit.
 */
DRPS_MUST_CHECK
int drps_model_init(struct drps_model *model, const char *algo, const char *loss, uint32_t factors,
                    int classes, struct drps_err *err);

/* After drps_model_init(), set fields, dim and normalized of a field-aware model; of any other both
 * numbers must be 0. DRPS_E_CONFIG: they do not fit the algorithm, or a row would be too long. */
DRPS_MUST_CHECK
int drps_model_set_fields(struct drps_model *model, uint32_t fields, int normalized,
                          struct drps_err *err);

/* Returns 1 for a model of implicit feedback. Its samples with roles are a user, an item, and items
 * drawn against it; those without are pairs, as of mf. */
int drps_model_ranks(const struct drps_model *model);
/* After drps_model_init(), set how many items there are, of which warp makes ranks. */
void drps_model_set_items(struct drps_model *model, uint64_t items);

/* touches[l] += how often l2 and l1 count for row l in samples [first, last): as
 * drps_batch_touches() has it (engine/model/drps_optim.h). Of warp and wmf what was drawn does not
 * count: there are many for each choice, and l2 would hold items back far more than users. */
void drps_model_touches(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last, uint32_t *touches);

/* Returns how many floats of `scores` a training sample has: J, or DRPS_RANKED of implicit
 * feedback. */
size_t drps_model_score_floats(const struct drps_model *model);

/* Returns the bytes of scratch (aligned for doubles) that one thread needs for any batch with at
 * most `samples` samples and `rows` rows. It may be 0; scratch may then be NULL. */
size_t drps_model_scratch_bytes(const struct drps_model *model, size_t samples, size_t rows);

/* Returns sample s of a batch, or the next one where it may be divided: a net's sequences stay
 * whole. It may be the number of samples. */
size_t drps_model_cut(const struct drps_model *model, const struct drps_batch *b, size_t sample);

/* scores[s] for s in [first, last), drps_model_score_floats() of them each; scores is indexed by s.
 */
void drps_model_predict(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last, const float *params, float *scores, void *scratch);

/*
 * Scores of samples [first, last), then their loss's gradient added to grads. scores [n] is filled
 * for the range. Returns the sum of the losses. grads must be zeroed by the caller before the first
 * range.
 */
double drps_model_gradient(const struct drps_model *model, const struct drps_batch *b, size_t first,
                           size_t last, const float *params, float *grads, float *scores,
                           void *scratch);

/* The same of models with J > 1 scores, which leaves the slopes that the gradient is made of:
 * slopes [n][J], of the range alone, as drps_model_slopes() has them. */
double drps_model_gradient_slopes(const struct drps_model *model, const struct drps_batch *b,
                                  size_t first, size_t last, const float *params, float *grads,
                                  float *scores, float *slopes, void *scratch);

enum { DRPS_MF_CHUNK = 256 }; /* samples of mf that go through both passes together */

/* The losses of samples [first, last), one chunk, and their slopes [last - first], as
 * drps_model_gradient() has them; adds to the intercept's gradient, if it has one. */
double drps_model_chunk_loss(const struct drps_model *model, const struct drps_batch *b,
                             size_t first, size_t last, const float *scores, float *slopes,
                             float *of_bias, void *scratch);

/*
 * The two halves of drps_model_gradient() that do not need parameters, for models with J > 1
 * scores, whose gradient is a sum of outer products: slopes u [n][J], the loss's derivatives by the
 * scores of the whole batch; and what is added to grads for given slopes, from first sample to
 * last. The first returns the sum of the losses; its scratch is that of any samples. Not for losses
 * with rows of samples.
 */
double drps_model_slopes(const struct drps_model *model, const struct drps_batch *b,
                         const float *scores, float *slopes, void *scratch);
void drps_model_backward(const struct drps_model *model, const struct drps_batch *b,
                         const float *slopes, float *grads);

/* Loss of one sample that has no row of its own; scratch is that of any samples. */
double drps_model_loss(const struct drps_model *model, const float *scores, float label,
                       void *scratch);

/* After a loss that is no finite number: err gets which sample of the batch, and where in the text
 * of the loss. `params` may be NULL; `trains`: derivatives count, too. Returns err's code; 0: the
 * loss is no text, or all are finite. */
int drps_model_explain(const struct drps_model *model, const struct drps_batch *b,
                       const float *params, const float *scores, int trains, void *scratch,
                       struct drps_err *err);

/* The plain twins of drps_model_predict() and drps_model_gradient(), with their contracts: one
 * obvious loop each, for tests. */
void drps_model_predict_ref(const struct drps_model *model, const struct drps_batch *b,
                            size_t first, size_t last, const float *params, float *scores,
                            void *scratch);
double drps_model_gradient_ref(const struct drps_model *model, const struct drps_batch *b,
                               size_t first, size_t last, const float *params, float *grads,
                               float *scores, void *scratch);

/* Loss of one sample in double, and its derivative by the score in *slope_out (NULL allowed). */
double drps_loss_value(enum drps_loss loss, float score, float label, float *slope_out);

/*
 * Returns the sum of the losses of n samples; slopes [n] get their derivatives, and may be NULL.
 * The logistic loss is computed in float vectors, within a few ulp of drps_loss_value().
 */
double drps_loss_sum(enum drps_loss loss, const float *scores, const float *labels, size_t n,
                     float *slopes);

/*
 * Softmax of J >= 2 scores a sample. Returns the sum of the losses of n samples, scores [n][J];
 * slopes [n][J] get the derivatives by the scores, and may be NULL. A label that is no class has no
 * loss: the sum is NaN.
 */
double drps_softmax_sum(const float *scores, const float *labels, size_t n, size_t outputs,
                        float *slopes);
/* The same for hinge losses of classes, one versus the rest. */
double drps_hinges_sum(enum drps_loss loss, const float *scores, const float *labels, size_t n,
                       size_t outputs, float *slopes);
/* One of the two, as the loss says. */
double drps_class_loss_sum(enum drps_loss loss, const float *scores, const float *labels, size_t n,
                           size_t outputs, float *slopes);
/* Returns the sum of n losses of any kind, each times its weight; slopes [n][outputs] get their
 * derivatives, times the weight too, and may be NULL. */
double drps_weighted_loss_sum(enum drps_loss loss, const float *scores, const float *labels,
                              const float *weights, size_t n, size_t outputs, float *slopes);
/* Returns the class of the largest score, the first of several. */
size_t drps_softmax_best(const float *scores, size_t outputs);
/* probabilities [outputs], in double: exp(score) over their sum. */
void drps_softmax_probabilities(const float *scores, size_t outputs, double *probabilities);

/* Returns how many floats of a row, the last ones, start as random numbers: its factors, or the
 * outputs that no label tells apart, which would stay alike if they were so; others are 0. */
uint32_t drps_model_random(const struct drps_model *model);

/* Initial parameters of row `id` (placed id; id 0 is the intercept when has_bias): params [dim]. */
void drps_model_init_row(const struct drps_model *model, uint64_t id, float *params);

#endif
