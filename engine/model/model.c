/* Models by name, and the pass over a batch: forward, loss, backward, in chunks that stay in the
 * caches. */
#include "engine/model/kernels.h"

#include <math.h>
#include <string.h>

#include "base/drps_rng.h"

enum { DEFAULT_RANK = 16, MAX_RANK = 4096 };

enum predictor { LINEAR, MF, FM };

static const struct {
    const char *name;
    enum predictor predictor;
    unsigned losses; /* bit i: the algorithm can have loss i */
    enum drps_loss usual;
} algos[] = {
    [DRPS_ALGO_LIR] = {"lir", LINEAR, 1u << DRPS_LOSS_SQUARED, DRPS_LOSS_SQUARED},
    [DRPS_ALGO_LOR] = {"lor", LINEAR, 1u << DRPS_LOSS_LOGISTIC, DRPS_LOSS_LOGISTIC},
    [DRPS_ALGO_SVM] = {"svm", LINEAR, 1u << DRPS_LOSS_HINGE | 1u << DRPS_LOSS_SQUARED_HINGE,
                       DRPS_LOSS_HINGE},
    [DRPS_ALGO_LMF] = {"lmf", MF, 1u << DRPS_LOSS_SQUARED, DRPS_LOSS_SQUARED},
    [DRPS_ALGO_FM] = {"fm", FM, 1u << DRPS_LOSS_LOGISTIC | 1u << DRPS_LOSS_SQUARED,
                      DRPS_LOSS_LOGISTIC},
};

static const char *const losses[] = {
    [DRPS_LOSS_SQUARED] = "squared",
    [DRPS_LOSS_LOGISTIC] = "logistic",
    [DRPS_LOSS_HINGE] = "hinge",
    [DRPS_LOSS_SQUARED_HINGE] = "squared-hinge",
};

enum { ALGOS = sizeof(algos) / sizeof(algos[0]), LOSSES = sizeof(losses) / sizeof(losses[0]) };

const char *drps_algo_name(enum drps_algo algo)
{
    return (size_t)algo < ALGOS ? algos[algo].name : "unknown";
}

const char *drps_loss_name(enum drps_loss loss)
{
    return (size_t)loss < LOSSES ? losses[loss] : "unknown";
}

int drps_loss_is_classification(enum drps_loss loss)
{
    return loss != DRPS_LOSS_SQUARED;
}

static int find_algo(const char *name, enum drps_algo *algo_out)
{
    for (size_t i = 0; i < ALGOS; i++)
        if (strcmp(algos[i].name, name) == 0) {
            *algo_out = (enum drps_algo)i;
            return 1;
        }
    return 0;
}

static int find_loss(const char *name, enum drps_loss *loss_out)
{
    for (size_t i = 0; i < LOSSES; i++)
        if (strcmp(losses[i], name) == 0) {
            *loss_out = (enum drps_loss)i;
            return 1;
        }
    return 0;
}

int drps_model_init(struct drps_model *model, const char *algo, const char *loss, uint32_t rank,
                    int classification, struct drps_err *err)
{
    struct drps_model m = {.has_bias = 1};

    memset(model, 0, sizeof(*model));
    if (!find_algo(algo, &m.algo))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "algorithm \"%s\" is none of lir, lor, svm, lmf, fm", algo);

    m.loss = algos[m.algo].usual;
    if (m.algo == DRPS_ALGO_FM && !classification) m.loss = DRPS_LOSS_SQUARED;
    if (loss && !find_loss(loss, &m.loss))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "loss \"%s\" is none of squared, logistic, hinge, squared-hinge", loss);
    if (!(algos[m.algo].losses & 1u << m.loss))
        return drps_err_set(err, DRPS_E_CONFIG, "algorithm %s does not go with the %s loss", algo,
                            drps_loss_name(m.loss));
    if (!classification && drps_loss_is_classification(m.loss))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "the %s loss of %s needs labels of two classes, and these are real numbers",
            drps_loss_name(m.loss), algo);

    if (algos[m.algo].predictor == LINEAR) {
        if (rank)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "algorithm %s has no factors: rank %u does not fit", algo, rank);
    } else {
        m.rank = rank ? rank : DEFAULT_RANK;
        if (m.rank > MAX_RANK)
            return drps_err_set(err, DRPS_E_CONFIG, "rank %u is above %d", rank, MAX_RANK);
    }
    m.dim = 1 + m.rank;
    *model = m;
    return 0;
}

size_t drps_model_scratch_bytes(const struct drps_model *model, size_t samples, size_t rows)
{
    (void)rows; /* no pass keeps anything for each row */
    if (algos[model->algo].predictor != FM) return 0;
    const size_t chunk = samples < DRPS_FM_CHUNK ? samples : DRPS_FM_CHUNK;
    return chunk * model->rank * sizeof(float);
}

static size_t chunk_samples(enum predictor predictor)
{
    switch (predictor) {
    case LINEAR:
        return DRPS_LINEAR_CHUNK;
    case MF:
        return DRPS_MF_CHUNK;
    case FM:
        break;
    }
    return DRPS_FM_CHUNK;
}

static void forward(const struct drps_model *model, const struct drps_batch *b, size_t first,
                    size_t last, const float *params, float *scores, void *scratch)
{
    const float bias = model->has_bias ? params[0] : 0.0f;

    switch (algos[model->algo].predictor) {
    case LINEAR:
        drps_linear_forward(b, 1, bias, first, last, params, scores);
        break;
    case MF:
        drps_mf_forward(b, model->rank, bias, first, last, params, scores);
        break;
    case FM:
        drps_fm_forward(b, model->rank, bias, first, last, params, scores, scratch);
        break;
    }
}

static void backward(const struct drps_model *model, const struct drps_batch *b, size_t first,
                     size_t last, const float *slopes, const float *params, float *grads,
                     const void *scratch)
{
    switch (algos[model->algo].predictor) {
    case LINEAR:
        drps_linear_backward(b, 1, first, last, slopes, grads);
        break;
    case MF:
        drps_mf_backward(b, model->rank, first, last, slopes, params, grads);
        break;
    case FM:
        drps_fm_backward(b, model->rank, first, last, slopes, params, scratch, grads);
        break;
    }
    if (model->has_bias && !model->fixed_bias) {
        float total = 0;
        for (size_t s = first; s < last; s++)
            total += slopes[s - first];
        grads[0] += total;
    }
}

void drps_model_predict(const struct drps_model *model, const struct drps_batch *b, size_t first,
                        size_t last, const float *params, float *scores, void *scratch)
{
    const size_t chunk = chunk_samples(algos[model->algo].predictor);

    for (size_t s = first; s < last; s += chunk)
        forward(model, b, s, last - s < chunk ? last : s + chunk, params, scores, scratch);
}

double drps_model_gradient(const struct drps_model *model, const struct drps_batch *b, size_t first,
                           size_t last, const float *params, float *grads, float *scores,
                           void *scratch)
{
    const size_t chunk = chunk_samples(algos[model->algo].predictor);
    float slopes[DRPS_MAX_CHUNK];
    double loss = 0;

    for (size_t s = first; s < last; s += chunk) {
        const size_t end = last - s < chunk ? last : s + chunk;
        forward(model, b, s, end, params, scores, scratch);
        loss += drps_loss_sum(model->loss, scores + s, b->labels + s, end - s, slopes);
        backward(model, b, s, end, slopes, params, grads, scratch);
    }
    return loss;
}

void drps_model_init_row(const struct drps_model *model, uint64_t id, float *params)
{
    const float scale =
        model->init_scale > 0 ? model->init_scale : 0.1f / sqrtf((float)model->rank);

    params[0] = 0;
    if (model->has_bias && id == 0) {
        params[0] = model->bias_start;
        for (uint32_t f = 0; f < model->rank; f++)
            params[1 + f] = 0;
        return;
    }
    for (uint32_t f = 0; f < model->rank; f++) {
        /* multiples of 2^-24 between -1 and 1, both excluded, symmetric about 0 */
        const float u = drps_unit_float(drps_rng_at(model->seed, id * model->rank + f));
        params[1 + f] = scale * ((2 * u - 1) + 0x1p-24f);
    }
}
