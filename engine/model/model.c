/*
 * A model as its description says (index/plan/drps_algorithm.h), and the pass over a batch:
 * forward, loss, backward, in chunks that stay in the caches.
 */
#include "engine/model/ffm/drps_ffm.h"
#include "engine/model/kernels.h"

#include <math.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "base/drps_rng.h"
#include "engine/model/drps_callbacks.h"
#include "engine/model/drps_optim.h"
#include "engine/model/expr/drps_expr_loss.h"
#include "engine/model/layers/drps_layers_pass.h"
#include "engine/model/ranking/drps_ranking.h"
#include "index/classes/drps_classes.h"

/* What a predictor brings: its passes, and how many samples go through both while what they read
 * stays in the caches. */
struct kernels {
    size_t chunk_samples;
    int has_sums; /* 1: scratch holds `factors` floats for each sample of a chunk; 0: with several
                     outputs, as many slopes */
    void (*forward)(const struct drps_model *model, const struct drps_batch *b, float bias,
                    size_t first, size_t last, const float *params, float *scores, float *sums);
    void (*backward)(const struct drps_model *model, const struct drps_batch *b, size_t first,
                     size_t last, const float *slopes, const float *params, float *sums,
                     float *grads);
    /* In training, where that is another; NULL: it is not. */
    void (*forward_training)(const struct drps_model *model, const struct drps_batch *b, float bias,
                             size_t first, size_t last, const float *params, float *scores,
                             float *sums);
};

static void linear_forward(const struct drps_model *model, const struct drps_batch *b, float bias,
                           size_t first, size_t last, const float *params, float *scores,
                           float *sums)
{
    (void)model, (void)sums;
    drps_linear_forward(b, 1, bias, first, last, params, scores);
}

static void linear_backward(const struct drps_model *model, const struct drps_batch *b,
                            size_t first, size_t last, const float *slopes, const float *params,
                            float *sums, float *grads)
{
    (void)model, (void)params, (void)sums;
    drps_linear_backward(b, 1, first, last, slopes, grads);
}

static void mf_forward(const struct drps_model *model, const struct drps_batch *b, float bias,
                       size_t first, size_t last, const float *params, float *scores, float *sums)
{
    (void)sums;
    drps_mf_forward(b, model->factors, bias, first, last, params, scores);
}

static void mf_backward(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last, const float *slopes, const float *params, float *sums,
                        float *grads)
{
    (void)sums;
    drps_mf_backward(b, model->factors, first, last, slopes, params, grads);
}

static void fm_forward(const struct drps_model *model, const struct drps_batch *b, float bias,
                       size_t first, size_t last, const float *params, float *scores, float *sums)
{
    drps_fm_forward(b, model->factors, bias, first, last, params, scores, sums);
}

static void fm_backward(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last, const float *slopes, const float *params, float *sums,
                        float *grads)
{
    drps_fm_backward(b, model->factors, first, last, slopes, params, sums, grads);
}

static void ffm_forward(const struct drps_model *model, const struct drps_batch *b, float bias,
                        size_t first, size_t last, const float *params, float *scores, float *sums)
{
    (void)sums;
    drps_ffm_forward(b, model->factors, model->dim, model->normalized, bias, first, last, params,
                     scores);
}

static void ffm_backward(const struct drps_model *model, const struct drps_batch *b, size_t first,
                         size_t last, const float *slopes, const float *params, float *sums,
                         float *grads)
{
    (void)sums;
    drps_ffm_backward(b, model->factors, model->dim, model->normalized, first, last, slopes, params,
                      grads);
}

static void matrix_forward(const struct drps_model *model, const struct drps_batch *b, float bias,
                           size_t first, size_t last, const float *params, float *scores,
                           float *sums)
{
    (void)bias, (void)sums; /* the intercept is a row of its own */
    drps_matrix_forward(b, model->outputs, model->has_bias ? params : NULL, first, last, params,
                        scores);
}

static void matrix_backward(const struct drps_model *model, const struct drps_batch *b,
                            size_t first, size_t last, const float *slopes, const float *params,
                            float *sums, float *grads)
{
    (void)params, (void)sums;
    drps_matrix_backward(b, model->outputs, first, last, slopes, grads);
}

static void net_forward(const struct drps_model *model, const struct drps_batch *b, float bias,
                        size_t first, size_t last, const float *params, float *scores, float *sums)
{
    const struct drps_dropout none = {0};
    (void)bias; /* it is the first of the net's parameters */
    drps_layers_forward(&model->layers, b, first, last, params, &none, scores, sums);
}

static int has_dropout(const struct drps_layers *l)
{
    int has = 0;
    for (uint32_t i = 0; i < l->n; i++)
        has |= l->layers[i].kind == DRPS_LAYER_DROPOUT;
    return has;
}

/* What is left out differs from step to step, as the intercepts and the parameters of the last
 * layer that has any do. One of them alone may stay what it is: a large intercept does, where a
 * step is below its last digit. */
static struct drps_dropout dropout_of(const struct drps_model *model, const float *params)
{
    const struct drps_layers *l = &model->layers;
    if (!has_dropout(l)) return (struct drps_dropout){0};
    uint64_t sums[2] = {model->seed ^ drps_checksum(params, l->outputs * sizeof(*params)), 0};
    for (uint32_t i = l->n; i-- > 0 && !sums[1];)
        if (l->layers[i].floats)
            sums[1] =
                drps_checksum(params + l->layers[i].first, l->layers[i].floats * sizeof(*params));
    return (struct drps_dropout){.trains = 1, .seed = drps_checksum(sums, sizeof(sums))};
}

static void net_forward_training(const struct drps_model *model, const struct drps_batch *b,
                                 float bias, size_t first, size_t last, const float *params,
                                 float *scores, float *sums)
{
    const struct drps_dropout dropout = dropout_of(model, params);
    (void)bias;
    drps_layers_forward(&model->layers, b, first, last, params, &dropout, scores, sums);
}

static void net_backward(const struct drps_model *model, const struct drps_batch *b, size_t first,
                         size_t last, const float *slopes, const float *params, float *sums,
                         float *grads)
{
    const struct drps_dropout dropout = dropout_of(model, params);
    drps_layers_backward(&model->layers, b, first, last, slopes, params, &dropout, model->vectors,
                         sums, grads);
}

static const struct kernels predictors[] = {
    [DRPS_PREDICTOR_LINEAR] = {DRPS_LINEAR_CHUNK, 0, linear_forward, linear_backward, NULL},
    [DRPS_PREDICTOR_MF] = {DRPS_MF_CHUNK, 0, mf_forward, mf_backward, NULL},
    [DRPS_PREDICTOR_FM] = {DRPS_FM_CHUNK, 1, fm_forward, fm_backward, NULL},
    [DRPS_PREDICTOR_FFM] = {DRPS_FFM_CHUNK, 0, ffm_forward, ffm_backward, NULL},
    [DRPS_PREDICTOR_MATRIX] = {DRPS_MATRIX_CHUNK, 0, matrix_forward, matrix_backward, NULL},
    /* engine/topic/ has its passes */
    [DRPS_PREDICTOR_TOPIC] = {DRPS_LINEAR_CHUNK, 0, NULL, NULL, NULL},
    /* Its chunks depend on its layers. */
    [DRPS_PREDICTOR_NET] = {0, 0, net_forward, net_backward, net_forward_training},
};

static const struct kernels *kernels_of(const struct drps_model *model)
{
    const enum drps_scoring one = drps_algorithm(model->algo)->predictor;
    const int is_matrix = model->outputs > 1 && one != DRPS_PREDICTOR_NET;
    return &predictors[is_matrix ? DRPS_PREDICTOR_MATRIX : one];
}

/* Returns how many samples go through both passes together at most. */
static size_t chunk_of(const struct drps_model *model)
{
    return model->layers.n ? drps_layers_chunk(&model->layers) : kernels_of(model)->chunk_samples;
}

/* Returns where the chunk ends that begins with sample `first`, of those before `last`. */
static size_t chunk_end(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last)
{
    const size_t chunk = kernels_of(model)->chunk_samples;
    if (model->layers.n) return drps_layers_end(&model->layers, b, first, last);
    return last - first < chunk ? last : first + chunk;
}

size_t drps_model_cut(const struct drps_model *model, const struct drps_batch *b, size_t sample)
{
    return model->layers.n ? drps_layers_cut(&model->layers, b, sample) : sample;
}

/* ---- Settling a model ---- */

static int settle_text(struct drps_model *m, const struct drps_model_terms *t, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(m->algo);
    const int given = t->expression && t->expression[0];
    if (drps_algorithm_has_text(a) != given)
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s %s expression", a->name,
                            given ? "does not go with an" : "needs an");
    return given ? drps_expr_parse(&m->expr, t->expression, t->outputs > 0, err) : 0;
}

/* The entry of a model's algorithm, with its text. */
static const struct drps_algorithm *entry_of(const struct drps_model *m)
{
    return m->layers.n ? drps_algorithm_of_net(m->layers.has_classes, m->layers.has_sequences)
                       : drps_algorithm_of(drps_algorithm(m->algo), &m->expr);
}

/* Its widths follow when the fields are known: drps_model_set_fields(). */
static int settle_net(struct drps_model *m, const struct drps_model_terms *t, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(m->algo);
    const int given = t->net && t->net[0];
    if (drps_algorithm_is_net(a) != given)
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s %s net", a->name,
                            given ? "does not go with a" : "needs a");
    return given ? drps_layers_parse(&m->layers, t->net, err) : 0;
}

static int settle_loss(struct drps_model *m, const struct drps_model_terms *t, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(m->algo);
    char names[DRPS_ALGORITHM_NAMES_BYTES];

    m->loss = m->expr.n ? drps_algorithm_text_loss(&m->expr, t->classes)
                        : drps_algorithm_loss(a, t->classes);
    enum drps_loss loss = m->loss;
    if (t->loss && !drps_loss_find(t->loss, &loss))
        return drps_err_set(err, DRPS_E_CONFIG, "loss \"%s\" is none of %s", t->loss,
                            drps_loss_names(names));
    if (m->expr.n && loss != m->loss)
        return drps_err_set(err, DRPS_E_CONFIG, "the expression is not the loss %s but %s", t->loss,
                            drps_loss_name(m->loss));
    m->loss = loss;
    if (!drps_algorithm_has_loss(a, m->loss))
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s does not go with the %s loss",
                            a->name, drps_loss_name(m->loss));
    if (!t->classes && drps_loss_is_classification(m->loss))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the %s loss of %s needs labels of two classes, and these are real numbers",
            drps_loss_name(m->loss), a->name);
    if (m->layers.n && (m->loss == DRPS_LOSS_SOFTMAX) != (t->classes > 1))
        return drps_err_set(err, DRPS_E_CONFIG, "the %s loss does not go with labels of %d classes",
                            drps_loss_name(m->loss), t->classes);
    return 0;
}

static int settle_factors(struct drps_model *m, uint32_t factors, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(m->algo);
    if (!a->has_factors && factors)
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s has no factors: %u do not fit",
                            a->name, factors);
    const int is_topic = drps_algorithm_is_topic(a);
    const int most = is_topic ? DRPS_TOPICS_MOST : DRPS_FACTORS_MAX;
    if (factors > (uint32_t)most)
        return drps_err_set(err, DRPS_E_CONFIG, "%u factors are too many: at most %d", factors,
                            most);
    if (m->layers.n && factors && factors != m->layers.factors)
        return drps_err_set(err, DRPS_E_CONFIG, "%u factors for a net of %u", factors,
                            m->layers.factors);
    m->factors = m->layers.n ? m->layers.factors
                 : factors   ? factors
                             : drps_algorithm_default_factors(a);
    if (is_topic && m->factors < DRPS_TOPICS_LEAST)
        return drps_err_set(err, DRPS_E_CONFIG, "topics: %u are too few, at least %d", m->factors,
                            DRPS_TOPICS_LEAST);
    return 0;
}

static int settle_outputs(struct drps_model *m, const struct drps_model_terms *t,
                          struct drps_err *err)
{
    const struct drps_algorithm *a = entry_of(m);
    const int classes = t->classes, named = classes >= DRPS_CLASSES_LEAST;
    const int is_matrix = m->expr.n && m->expr.vector_scores && !m->expr.vector_y;
    if (classes < 0 || classes > DRPS_CLASSES_MOST ||
        (named ? !drps_algorithm_takes_names(a) : a->labels == DRPS_LABELS_NAMES))
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s does not go with %d named classes",
                            a->name, classes);
    if (is_matrix ? t->outputs < DRPS_EXPR_OUTPUTS_LEAST || t->outputs > DRPS_EXPR_OUTPUTS_MOST
                  : t->outputs != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s does not go with %u outputs", a->name,
                            t->outputs);
    m->classes = classes;
    m->outputs = named ? (uint32_t)classes : is_matrix ? t->outputs : 1;
    m->dim = is_matrix ? m->outputs : drps_algorithm_dim(a, m->factors, m->outputs);
    return 0;
}

int drps_model_settle(struct drps_model *model, const struct drps_model_terms *terms,
                      struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(terms->algo);
    char names[DRPS_ALGORITHM_NAMES_BYTES];

    memset(model, 0, sizeof(*model));
    if (!a)
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm \"%s\" is none of %s", terms->algo,
                            drps_algo_names(names));
    struct drps_model m = {.algo = a->algo, .has_bias = 1};
    int rc = settle_text(&m, terms, err);
    if (rc == 0) rc = settle_net(&m, terms, err);
    if (rc == 0) rc = settle_loss(&m, terms, err);
    if (rc == 0) rc = settle_factors(&m, terms->factors, err);
    if (rc == 0) rc = settle_outputs(&m, terms, err);
    if (rc == 0) *model = m;
    return rc;
}

int drps_model_init(struct drps_model *model, const char *algo, const char *loss, uint32_t factors,
                    int classes, struct drps_err *err)
{
    const struct drps_model_terms terms = {
        .algo = algo, .loss = loss, .factors = factors, .classes = classes};
    return drps_model_settle(model, &terms, err);
}

/* Whether the loss is computed from its text, which none of the others is. */
static int has_text(const struct drps_model *model)
{
    return model->loss == DRPS_LOSS_EXPRESSION && !model->callbacks;
}

/* What a text, or a net, is computed in comes first in scratch, then the slopes of a chunk. Batches
 * of fewer samples take no more. */
static size_t room_bytes(const struct drps_model *model, size_t samples)
{
    const size_t chunk = chunk_of(model);
    if (model->layers.n)
        return drps_layers_scratch_bytes(&model->layers, samples < chunk ? samples : chunk);
    return has_text(model) ? drps_expr_room_bytes(&model->expr, model->outputs) : 0;
}

int drps_model_set_fields(struct drps_model *model, uint32_t fields, int normalized,
                          struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(model->algo);
    const uint32_t dim = drps_algorithm_field_dim(model->factors, fields);
    if (model->layers.n) {
        model->fields = fields;
        return drps_layers_shape(&model->layers, fields, model->outputs, err);
    }
    if (!drps_algorithm_has_fields(a) && !fields && !normalized) return 0;
    if (!drps_algorithm_has_fields(a) || !fields || !dim)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "algorithm %s does not go with %u fields of %u factors", a->name,
                            fields, model->factors);
    model->fields = fields;
    model->dim = dim;
    model->normalized = normalized != 0;
    return 0;
}

size_t drps_model_scratch_bytes(const struct drps_model *model, size_t samples, size_t rows)
{
    const struct kernels *k = kernels_of(model);
    const size_t chunk = samples < chunk_of(model) ? samples : chunk_of(model);
    const size_t slopes = model->outputs > 1 ? chunk * model->outputs * sizeof(float) : 0;
    (void)rows; /* no pass keeps anything for each row */
    return k->has_sums ? chunk * model->factors * sizeof(float)
                       : room_bytes(model, samples) + slopes;
}

/* ---- Implicit feedback ---- */

void drps_model_set_items(struct drps_model *model, uint64_t items)
{
    model->items = items;
}

int drps_model_ranks(const struct drps_model *model)
{
    return drps_algorithm_draws(drps_algorithm(model->algo));
}

size_t drps_model_score_floats(const struct drps_model *model)
{
    return drps_model_ranks(model) ? (size_t)DRPS_RANKED : model->outputs;
}

/* 1: its samples have negatives; what prediction scores are pairs. */
static int is_ranked(const struct drps_model *model, const struct drps_batch *b)
{
    return drps_model_ranks(model) && b->fields;
}

void drps_model_touches(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last, uint32_t *touches)
{
    if (!is_ranked(model, b) || model->loss == DRPS_LOSS_BPR) {
        drps_batch_touches(b, first, last, model->has_bias, touches);
        return;
    }
    const size_t end = drps_batch_start(b, last);
    for (size_t j = drps_batch_start(b, first); j < end; j++)
        touches[drps_batch_local(b, j)] += b->fields[j] < DRPS_ROLE_NEGATIVE;
}

static struct drps_ranking ranking_of(const struct drps_model *model)
{
    return (struct drps_ranking){
        .loss = model->loss, .factors = model->factors, .items = model->items};
}

/* ---- The passes ---- */

static float bias_of(const struct drps_model *model, const float *params)
{
    return model->has_bias ? params[0] : 0.0f;
}

static void add_bias_gradient(const struct drps_model *model, size_t samples, const float *slopes,
                              float *grads)
{
    float total = 0;
    if (!model->has_bias || model->fixed_bias) return;
    if (model->outputs > 1) {
        drps_matrix_bias_backward(model->outputs, samples, slopes, grads);
        return;
    }
    for (size_t s = 0; s < samples; s++)
        total += slopes[s];
    grads[0] += total;
}

void drps_model_predict(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last, const float *params, float *scores, void *scratch)
{
    const struct kernels *k = kernels_of(model);
    const float bias = bias_of(model, params);

    if (is_ranked(model, b)) {
        const struct drps_ranking ranking = ranking_of(model);
        (void)drps_ranking_pass(&ranking, b, first, last, 1, params, NULL, scores);
        return;
    }
    for (size_t s = first, end; s < last; s = end) {
        end = chunk_end(model, b, s, last);
        k->forward(model, b, bias, s, end, params, scores, scratch);
    }
}

/* What slopes are multiplied by: 1 of a sum, else the share of a mean that a weight of 1 has. */
static float share_of(const struct drps_model *model, const struct drps_batch *b)
{
    double weight = b->weights ? 0 : (double)b->samples;
    if (!model->mean_of) return 1;
    for (size_t s = 0; b->weights && s < b->samples; s++)
        weight += (double)b->weights[s];
    return (float)(1 / (weight * model->mean_of));
}

/* The losses that a callback gives, times weights, and slopes. */
static double callback_sum(const struct drps_model *model, const struct drps_batch *b, size_t first,
                           size_t n, const float *scores, float *slopes)
{
    const struct drps_callbacks *calls = model->callbacks;
    const size_t outputs = model->outputs;
    double sum = 0;
    if (!b->weights)
        return calls->compute_svg(calls->ctx, n, outputs, scores, b->labels + first, slopes);
    for (size_t i = 0; i < n; i++) {
        float *of_sample = slopes ? slopes + i * outputs : NULL;
        sum += (double)b->weights[first + i] * calls->compute_svg(calls->ctx, 1, outputs,
                                                                  scores + i * outputs,
                                                                  b->labels + first + i, of_sample);
        for (size_t c = 0; of_sample && c < outputs; c++)
            of_sample[c] *= b->weights[first + i];
    }
    return sum;
}

/* The losses of samples [first, last), times their weights, and their derivatives: by scores to
 * slopes [last - first], by rows of samples, times `share`, to grads. */
static double loss_sum(const struct drps_model *model, const struct drps_batch *b, size_t first,
                       size_t last, const float *params, const float *scores, float share,
                       float *slopes, float *grads, void *room)
{
    const float *of_first = scores + first * model->outputs, *labels = b->labels + first;
    const size_t n = last - first;
    if (model->callbacks) return callback_sum(model, b, first, n, of_first, slopes);
    if (model->loss == DRPS_LOSS_EXPRESSION)
        return drps_expr_loss(&model->expr, model->outputs, b, first, last, params, scores, share,
                              slopes, grads, room);
    if (b->weights)
        return drps_weighted_loss_sum(model->loss, of_first, labels, b->weights + first, n,
                                      model->outputs, slopes);
    if (model->outputs > 1)
        return drps_class_loss_sum(model->loss, of_first, labels, n, model->outputs, slopes);
    return drps_loss_sum(model->loss, of_first, labels, n, slopes);
}

/* The same; the gradient of a mean is one of smaller slopes. */
static double loss_of(const struct drps_model *model, const struct drps_batch *b, size_t first,
                      size_t last, float share, const float *params, const float *scores,
                      float *slopes, float *grads, void *room)
{
    const double loss = loss_sum(model, b, first, last, params, scores, share, slopes, grads, room);
    if (!model->mean_of || !slopes) return loss;
    for (size_t i = 0; i < (last - first) * model->outputs; i++)
        slopes[i] *= share;
    return loss;
}

double drps_model_slopes(const struct drps_model *model, const struct drps_batch *b,
                         const float *scores, float *slopes, void *scratch)
{
    return loss_of(model, b, 0, b->samples, share_of(model, b), NULL, scores, slopes, NULL,
                   scratch);
}

double drps_model_chunk_loss(const struct drps_model *model, const struct drps_batch *b,
                             size_t first, size_t last, const float *scores, float *slopes,
                             float *of_bias, void *scratch)
{
    const double loss =
        loss_of(model, b, first, last, share_of(model, b), NULL, scores, slopes, NULL, scratch);
    add_bias_gradient(model, last - first, slopes, of_bias);
    return loss;
}

double drps_model_loss(const struct drps_model *model, const float *scores, float label,
                       void *scratch)
{
    const struct drps_batch one = {.samples = 1, .labels = &label};
    return loss_of(model, &one, 0, 1, 1, NULL, scores, NULL, NULL, scratch);
}

int drps_model_explain(const struct drps_model *model, const struct drps_batch *b,
                       const float *params, const float *scores, int trains, void *scratch,
                       struct drps_err *err)
{
    if (!has_text(model)) return 0;
    return drps_expr_explain(&model->expr, model->outputs, b, params, scores, trains, scratch, err);
}

/* What the callback makes of each entry's u and x; the intercept is a feature that is always 1. */
static void update_backward(const struct drps_model *model, const struct drps_batch *b,
                            size_t first, size_t last, const float *slopes, float *grads)
{
    const struct drps_callbacks *calls = model->callbacks;
    const size_t n = model->outputs;
    for (size_t s = first; s < last; s++) {
        const float *u = slopes + (s - first) * n;
        const size_t end = drps_batch_start(b, s + 1);
        if (model->has_bias && !model->fixed_bias)
            calls->compute_update(calls->ctx, n, u, 1, grads);
        for (size_t j = drps_batch_start(b, s); j < end; j++)
            calls->compute_update(calls->ctx, n, u, drps_batch_value(b, j),
                                  grads + drps_batch_local(b, j) * n);
    }
}

static void backward(const struct drps_model *model, const struct drps_batch *b, size_t first,
                     size_t last, const float *slopes, const float *params, float *sums,
                     float *grads)
{
    if (model->callbacks && model->callbacks->compute_update) {
        update_backward(model, b, first, last, slopes, grads);
        return;
    }
    kernels_of(model)->backward(model, b, first, last, slopes, params, sums, grads);
    add_bias_gradient(model, last - first, slopes, grads);
}

void drps_model_backward(const struct drps_model *model, const struct drps_batch *b,
                         const float *slopes, float *grads)
{
    backward(model, b, 0, b->samples, slopes, NULL, NULL, grads);
}

/* Samples [first, last), chunk by chunk, whose slopes are `stride` floats a sample apart: 0: each
 * chunk's take the place of those before. */
static double run_chunks(const struct drps_model *model, const struct drps_batch *b, size_t first,
                         size_t last, const float *params, float *grads, float *scores,
                         float *slopes, size_t stride, void *scratch)
{
    const struct kernels *k = kernels_of(model);
    const float bias = bias_of(model, params);
    const float share = share_of(model, b);
    double loss = 0;

    for (size_t s = first, end; s < last; s = end) {
        end = chunk_end(model, b, s, last);
        float *u = slopes + s * stride;
        (k->forward_training ? k->forward_training : k->forward)(model, b, bias, s, end, params,
                                                                 scores, scratch);
        loss += loss_of(model, b, s, end, share, params, scores, u, grads, scratch);
        backward(model, b, s, end, u, params, scratch, grads);
    }
    return loss;
}

static float *chunk_slopes(const struct drps_model *model, const struct drps_batch *b,
                           void *scratch)
{
    return (float *)(void *)((char *)scratch + room_bytes(model, b->samples));
}

double drps_model_gradient(const struct drps_model *model, const struct drps_batch *b, size_t first,
                           size_t last, const float *params, float *grads, float *scores,
                           void *scratch)
{
    float of_chunk[DRPS_MAX_CHUNK];
    if (is_ranked(model, b)) {
        const struct drps_ranking ranking = ranking_of(model);
        return drps_ranking_pass(&ranking, b, first, last, share_of(model, b), params, grads,
                                 scores);
    }
    float *slopes = model->outputs > 1 ? chunk_slopes(model, b, scratch) : of_chunk;
    return run_chunks(model, b, first, last, params, grads, scores, slopes, 0, scratch);
}

double drps_model_gradient_slopes(const struct drps_model *model, const struct drps_batch *b,
                                  size_t first, size_t last, const float *params, float *grads,
                                  float *scores, float *slopes, void *scratch)
{
    return run_chunks(model, b, first, last, params, grads, scores, slopes, model->outputs,
                      scratch);
}

uint32_t drps_model_random(const struct drps_model *model)
{
    const int is_mixed = model->outputs > 1 && model->classes < DRPS_CLASSES_LEAST;
    if (model->layers.n) return model->factors;
    if (model->fields) return model->factors * model->fields;
    return is_mixed ? model->outputs : model->factors;
}

/* A multiple of 2^-24 between -1 and 1, both excluded, symmetric about 0. */
static float uniform(uint64_t bits)
{
    return (2 * drps_unit_float(bits) - 1) + 0x1p-24f;
}

/* Parameters of a net, from another stream of random numbers than those of features. */
static void init_net_row(const struct drps_model *model, uint64_t id, float *params)
{
    for (uint32_t d = 0; d < model->dim; d++) {
        const uint64_t i = id * model->dim + d;
        const float width = i < model->layers.floats ? drps_layers_init(&model->layers, i) : 0;
        params[d] = width > 0 ? width * uniform(drps_rng_at(~model->seed, i)) : 0;
    }
}

void drps_model_init_row(const struct drps_model *model, uint64_t id, float *params)
{
    const struct drps_algorithm *a = entry_of(model);
    const uint32_t random = drps_model_random(model);
    const size_t first = model->dim - random;
    const float init = a->init > 0 ? a->init : DRPS_INIT;
    const uint32_t each = model->fields ? model->factors : random;
    const float scale = model->init_scale > 0 ? model->init_scale : init / sqrtf((float)each);

    if (drps_algorithm_is_topic(a)) {
        memset(params, 0, model->dim * sizeof(*params)); /* nothing is coded yet */
        return;
    }
    memset(params, 0, model->dim * sizeof(*params));
    if (id < drps_model_common_rows(model)) {
        if (model->layers.n) init_net_row(model, id, params);
        if (id == 0) params[0] = model->bias_start;
        return;
    }
    for (uint32_t f = 0; f < random; f++)
        params[first + f] = scale * uniform(drps_rng_at(model->seed, id * random + f));
}
