/* One loop for each predictor, in double. */
#include "engine/predict/parts.h"

#include <math.h>
#include <string.h>

/* A sample: its entries and the rows that they touch. */
struct sample {
    const struct drps_model *model;
    const struct drps_batch *b;
    const float *params;
    size_t first, n;
    double scale; /* of values: 1, or 1 / |x| */
};

static const float *row_of(const struct sample *s, size_t i)
{
    return s->params + drps_batch_local(s->b, s->first + i) * s->model->dim;
}

static double value_of(const struct sample *s, size_t i)
{
    return (double)drps_batch_value(s->b, s->first + i) * s->scale;
}

static double dot(const float *u, const float *v, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)u[k] * (double)v[k];
    return sum;
}

static void add_weights(const struct sample *s, size_t output, double *of)
{
    for (size_t i = 0; i < s->n; i++)
        of[i] = value_of(s, i) * (double)row_of(s, i)[output];
}

/* Half of x_i <v_i, S - x_i v_i>, where S is the sum of all x v. */
static void add_fm(const struct sample *s, double *sums, double *of)
{
    const size_t factors = s->model->factors;
    memset(sums, 0, factors * sizeof(*sums));
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < factors; k++)
            sums[k] += value_of(s, i) * (double)row_of(s, i)[1 + k];
    for (size_t i = 0; i < s->n; i++) {
        const float *v = row_of(s, i) + 1;
        const double x = value_of(s, i);
        double product = 0;
        for (size_t k = 0; k < factors; k++)
            product += (double)v[k] * (sums[k] - x * (double)v[k]);
        of[i] += x * product / 2;
    }
}

static const float *factors_for(const struct sample *s, size_t i, size_t j)
{
    return row_of(s, i) + 1 + s->b->fields[s->first + j] * s->model->factors;
}

static void add_ffm(const struct sample *s, double *of)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = i + 1; j < s->n; j++) {
            const double half = value_of(s, i) * value_of(s, j) *
                                dot(factors_for(s, i, j), factors_for(s, j, i), s->model->factors) /
                                2;
            of[i] += half;
            of[j] += half;
        }
}

static double length_of(const struct sample *s)
{
    double squares = 0;
    for (size_t i = 0; i < s->n; i++)
        squares += value_of(s, i) * value_of(s, i);
    return sqrt(squares);
}

static enum drps_scoring predictor_of(const struct drps_model *model)
{
    return drps_algorithm_of(drps_algorithm(model->algo), &model->expr)->predictor;
}

int drps_parts_exist(const struct drps_model *model)
{
    const enum drps_scoring p = predictor_of(model);
    return p != DRPS_PREDICTOR_TOPIC && p != DRPS_PREDICTOR_NET;
}

void drps_parts_of(const struct drps_model *model, const struct drps_batch *b, size_t s,
                   const float *params, size_t output, double *sums, struct drps_parts *out)
{
    struct sample sample = {.model = model, .b = b, .params = params, .scale = 1};
    const enum drps_scoring predictor = predictor_of(model);
    sample.first = drps_batch_start(b, s);
    sample.n = drps_batch_start(b, s + 1) - sample.first;
    if (model->normalized && length_of(&sample) > 0) sample.scale = 1 / length_of(&sample);
    out->intercept = model->has_bias ? (double)params[output] : 0;
    out->pair = 0;
    add_weights(&sample, output, out->of);
    if (predictor == DRPS_PREDICTOR_FM) add_fm(&sample, sums, out->of);
    if (predictor == DRPS_PREDICTOR_FFM) add_ffm(&sample, out->of);
    if (predictor == DRPS_PREDICTOR_MF && sample.n == 2)
        out->pair = value_of(&sample, 0) * value_of(&sample, 1) *
                    dot(row_of(&sample, 0) + 1, row_of(&sample, 1) + 1, model->factors);
}
