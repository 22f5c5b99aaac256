/*
 * A model as its description says (index/plan/drps_algorithm.h), and the pass over a batch:
 * forward, loss, backward, in chunks that stay in the caches.
 */
#include "engine/model/kernels.h"

#include <math.h>
#include <string.h>

#include "base/drps_rng.h"
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
                     size_t last, const float *slopes, const float *params, const float *sums,
                     float *grads);
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
                            const float *sums, float *grads)
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
                        size_t last, const float *slopes, const float *params, const float *sums,
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
                        size_t last, const float *slopes, const float *params, const float *sums,
                        float *grads)
{
    drps_fm_backward(b, model->factors, first, last, slopes, params, sums, grads);
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
                            const float *sums, float *grads)
{
    (void)params, (void)sums;
    drps_matrix_backward(b, model->outputs, first, last, slopes, grads);
}

static const struct kernels predictors[] = {
    [DRPS_PREDICTOR_LINEAR] = {DRPS_LINEAR_CHUNK, 0, linear_forward, linear_backward},
    [DRPS_PREDICTOR_MF] = {DRPS_MF_CHUNK, 0, mf_forward, mf_backward},
    [DRPS_PREDICTOR_FM] = {DRPS_FM_CHUNK, 1, fm_forward, fm_backward},
    [DRPS_PREDICTOR_MATRIX] = {DRPS_MATRIX_CHUNK, 0, matrix_forward, matrix_backward},
    [DRPS_PREDICTOR_TOPIC] = {DRPS_LINEAR_CHUNK, 0, NULL, NULL}, /* engine/topic/ has its passes */
};

static const struct kernels *kernels_of(const struct drps_model *model)
{
    const enum drps_predictor one = drps_algorithm(model->algo)->predictor;
    return &predictors[model->outputs > 1 ? DRPS_PREDICTOR_MATRIX : one];
}

/* ---- Settling a model ---- */

static int settle_loss(struct drps_model *m, const char *name, int classification,
                       struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(m->algo);
    char names[DRPS_ALGORITHM_NAMES_BYTES];

    m->loss = drps_algorithm_loss(a, classification);
    if (name && !drps_loss_find(name, &m->loss))
        return drps_err_set(err, DRPS_E_CONFIG, "loss \"%s\" is none of %s", name,
                            drps_loss_names(names));
    if (!drps_algorithm_has_loss(a, m->loss))
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s does not go with the %s loss",
                            a->name, drps_loss_name(m->loss));
    if (!classification && drps_loss_is_classification(m->loss))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the %s loss of %s needs labels of two classes, and these are real numbers",
            drps_loss_name(m->loss), a->name);
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
    m->factors = a->has_factors && !factors ? DRPS_FACTORS_DEFAULT : factors;
    if (is_topic && m->factors < DRPS_TOPICS_LEAST)
        return drps_err_set(err, DRPS_E_CONFIG, "%u topics are too few: at least %d", m->factors,
                            DRPS_TOPICS_LEAST);
    return 0;
}

static int settle_outputs(struct drps_model *m, int classes, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm(m->algo);
    const int named = classes >= DRPS_CLASSES_LEAST;
    if (classes < 0 || classes > DRPS_CLASSES_MOST ||
        (named ? !drps_algorithm_takes_names(a) : a->labels == DRPS_LABELS_NAMES))
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s does not go with %d named classes",
                            a->name, classes);
    m->outputs = named ? (uint32_t)classes : 1;
    m->dim = drps_algorithm_dim(a, m->factors, m->outputs);
    return 0;
}

int drps_model_init(struct drps_model *model, const char *algo, const char *loss, uint32_t factors,
                    int classes, struct drps_err *err)
{
    const struct drps_algorithm *a = drps_algorithm_find(algo);
    char names[DRPS_ALGORITHM_NAMES_BYTES];

    memset(model, 0, sizeof(*model));
    if (!a)
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm \"%s\" is none of %s", algo,
                            drps_algo_names(names));
    struct drps_model m = {.algo = a->algo, .has_bias = 1};
    int rc = settle_loss(&m, loss, classes != 0, err);
    if (rc == 0) rc = settle_factors(&m, factors, err);
    if (rc == 0) rc = settle_outputs(&m, classes, err);
    if (rc == 0) *model = m;
    return rc;
}

size_t drps_model_scratch_bytes(const struct drps_model *model, size_t samples, size_t rows)
{
    const struct kernels *k = kernels_of(model);
    (void)rows; /* no pass keeps anything for each row */
    if (!k->has_sums && model->outputs == 1) return 0;
    const size_t chunk = samples < k->chunk_samples ? samples : k->chunk_samples;
    return chunk * (k->has_sums ? model->factors : model->outputs) * sizeof(float);
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
    const size_t chunk = k->chunk_samples;
    const float bias = bias_of(model, params);

    for (size_t s = first; s < last; s += chunk)
        k->forward(model, b, bias, s, last - s < chunk ? last : s + chunk, params, scores, scratch);
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

/* The loss of n samples of the batch from the first on, times their weights, and its derivatives by
 * their scores. */
static double loss_sum(const struct drps_model *model, const struct drps_batch *b,
                       const float *scores, size_t first, size_t n, float *slopes)
{
    const float *labels = b->labels + first;
    if (b->weights)
        return drps_weighted_loss_sum(model->loss, scores, labels, b->weights + first, n,
                                      model->outputs, slopes);
    if (model->outputs > 1)
        return drps_class_loss_sum(model->loss, scores, labels, n, model->outputs, slopes);
    return drps_loss_sum(model->loss, scores, labels, n, slopes);
}

/* The same; the gradient of a mean is one of smaller slopes. */
static double loss_of(const struct drps_model *model, const struct drps_batch *b, float share,
                      const float *scores, size_t first, size_t n, float *slopes)
{
    const double loss = loss_sum(model, b, scores, first, n, slopes);
    if (!model->mean_of) return loss;
    for (size_t i = 0; i < n * model->outputs; i++)
        slopes[i] *= share;
    return loss;
}

double drps_model_slopes(const struct drps_model *model, const struct drps_batch *b,
                         const float *scores, float *slopes)
{
    return loss_of(model, b, share_of(model, b), scores, 0, b->samples, slopes);
}

void drps_model_backward(const struct drps_model *model, const struct drps_batch *b,
                         const float *slopes, float *grads)
{
    kernels_of(model)->backward(model, b, 0, b->samples, slopes, NULL, NULL, grads);
    add_bias_gradient(model, b->samples, slopes, grads);
}

double drps_model_gradient(const struct drps_model *model, const struct drps_batch *b, size_t first,
                           size_t last, const float *params, float *grads, float *scores,
                           void *scratch)
{
    const struct kernels *k = kernels_of(model);
    const size_t chunk = k->chunk_samples;
    const float bias = bias_of(model, params);
    float of_chunk[DRPS_MAX_CHUNK];
    float *slopes = model->outputs > 1 ? scratch : of_chunk;
    const float share = share_of(model, b);
    double loss = 0;

    for (size_t s = first; s < last; s += chunk) {
        const size_t end = last - s < chunk ? last : s + chunk;
        k->forward(model, b, bias, s, end, params, scores, scratch);
        loss += loss_of(model, b, share, scores + s * model->outputs, s, end - s, slopes);
        k->backward(model, b, s, end, slopes, params, scratch, grads);
        add_bias_gradient(model, end - s, slopes, grads);
    }
    return loss;
}

void drps_model_init_row(const struct drps_model *model, uint64_t id, float *params)
{
    const float scale =
        model->init_scale > 0 ? model->init_scale : 0.1f / sqrtf((float)model->factors);

    if (drps_algorithm_is_topic(drps_algorithm(model->algo))) {
        memset(params, 0, model->dim * sizeof(*params)); /* nothing is coded yet */
        return;
    }
    memset(params, 0, (model->dim - model->factors) * sizeof(*params));
    if (model->has_bias && id == 0) {
        params[0] = model->bias_start;
        for (uint32_t f = 0; f < model->factors; f++)
            params[1 + f] = 0;
        return;
    }
    for (uint32_t f = 0; f < model->factors; f++) {
        /* multiples of 2^-24 between -1 and 1, both excluded, symmetric about 0 */
        const float u = drps_unit_float(drps_rng_at(model->seed, id * model->factors + f));
        params[1 + f] = scale * ((2 * u - 1) + 0x1p-24f);
    }
}
