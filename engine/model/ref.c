/*
 * The plain twins: the definitions of the models, written down in double with one loop each, slow
 * on purpose. They share no code with the kernels; tests compare the two and check these by finite
 * differences.
 */
#include "engine/model/drps_model.h"

#include <math.h>

#include "engine/model/ranking/drps_ranking.h"

static size_t row_of(const struct drps_batch *b, size_t j)
{
    return b->local32 ? b->local32[j] : b->local16[j];
}

static double value_of(const struct drps_batch *b, size_t j)
{
    return b->values ? (double)b->values[j] : 1.0;
}

static double weight_of(const struct drps_batch *b, size_t s)
{
    return b->weights ? (double)b->weights[s] : 1.0;
}

/* What the values of a sample are multiplied with. */
static double scale_of(const struct drps_model *model, const struct drps_batch *b, size_t s)
{
    double squares = 0;
    for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++)
        squares += value_of(b, j) * value_of(b, j);
    return model->normalized && squares > 0 ? 1 / sqrt(squares) : 1;
}

/* Where the factors begin that entry i's row has for entry j. */
static size_t factors_at(const struct drps_model *model, const struct drps_batch *b, size_t i,
                         size_t j)
{
    return row_of(b, i) * model->dim + 1 + (model->fields ? b->fields[j] * model->factors : 0);
}

/* Factorization machines sum over all pairs of entries, matrix factorization over its one pair. */
static int has_pairs(const struct drps_model *model, size_t entries)
{
    const enum drps_scoring predictor = drps_algorithm(model->algo)->predictor;
    return predictor == DRPS_PREDICTOR_FM || predictor == DRPS_PREDICTOR_FFM ||
           (predictor == DRPS_PREDICTOR_MF && entries == 2);
}

static double score_of(const struct drps_model *model, const struct drps_batch *b, size_t s,
                       const float *params)
{
    const size_t start = drps_batch_start(b, s), end = drps_batch_start(b, s + 1), dim = model->dim;
    const double scale = scale_of(model, b, s);
    double score = model->has_bias ? (double)params[0] : 0;

    for (size_t j = start; j < end; j++)
        score += scale * value_of(b, j) * (double)params[row_of(b, j) * dim];
    if (!has_pairs(model, end - start)) return score;
    for (size_t i = start; i < end; i++)
        for (size_t j = i + 1; j < end; j++) {
            double dot = 0;
            for (size_t f = 0; f < model->factors; f++)
                dot += (double)params[factors_at(model, b, i, j) + f] *
                       (double)params[factors_at(model, b, j, i) + f];
            score += scale * value_of(b, i) * scale * value_of(b, j) * dot;
        }
    return score;
}

static double loss_of(enum drps_loss loss, double score, double y, double *slope_out)
{
    const double margin = 1 - y * score;

    *slope_out = 0;
    switch (loss) {
    case DRPS_LOSS_SQUARED:
        *slope_out = score - y;
        return (score - y) * (score - y) / 2;
    case DRPS_LOSS_LOGISTIC:
        *slope_out = -y / (1 + exp(y * score));
        return y * score > 0 ? log1p(exp(-y * score)) : -y * score + log1p(exp(y * score));
    case DRPS_LOSS_HINGE:
        *slope_out = margin > 0 ? -y : 0;
        return margin > 0 ? margin : 0;
    case DRPS_LOSS_SQUARED_HINGE:
        *slope_out = margin > 0 ? -2 * y * margin : 0;
        return margin > 0 ? margin * margin : 0;
    case DRPS_LOSS_CODING:
        return score;
    case DRPS_LOSS_SOFTMAX:    /* has many scores: class_loss() */
    case DRPS_LOSS_EXPRESSION: /* is compared with finite differences, and with these */
    case DRPS_LOSS_BPR:        /* engine/model/ranking/ref.c */
    case DRPS_LOSS_WARP:
    case DRPS_LOSS_WMF:
        break;
    }
    return 0;
}

/* Score c of a model with several outputs. */
static double output_of(const struct drps_model *model, const struct drps_batch *b, size_t s,
                        const float *params, size_t c)
{
    double score = model->has_bias ? (double)params[c] : 0;
    for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++)
        score += value_of(b, j) * (double)params[row_of(b, j) * model->dim + c];
    return score;
}

/* Log of the sum of exp(score), whatever the scores are. */
static double log_sum(const struct drps_model *model, const struct drps_batch *b, size_t s,
                      const float *params)
{
    double most = -INFINITY, sum = 0;
    for (size_t c = 0; c < model->outputs; c++)
        most = fmax(most, output_of(model, b, s, params, c));
    for (size_t c = 0; c < model->outputs; c++)
        sum += exp(output_of(model, b, s, params, c) - most);
    return most + log(sum);
}

static void add(float *sum, double term)
{
    *sum = (float)((double)*sum + term);
}

void drps_model_predict_ref(const struct drps_model *model, const struct drps_batch *b,
                            size_t first, size_t last, const float *params, float *scores,
                            void *scratch)
{
    (void)scratch; /* the same contract as the fast one */
    if (drps_model_ranks(model) && b->fields) {
        const struct drps_ranking ranking = {model->loss, model->factors, model->items};
        (void)drps_ranking_pass_ref(&ranking, b, first, last, 1, params, NULL, scores);
        return;
    }
    for (size_t s = first; s < last; s++)
        for (size_t c = 0; c < model->outputs; c++)
            scores[s * model->outputs + c] =
                (float)(model->outputs > 1 ? output_of(model, b, s, params, c)
                                           : score_of(model, b, s, params));
}

/* The loss of output c of sample s, and its derivative by that score; `all` is log_sum(). */
static double class_loss(const struct drps_model *model, double score, double all, int is_label,
                         double *slope_out)
{
    if (model->loss != DRPS_LOSS_SOFTMAX)
        return loss_of(model->loss, score, is_label ? 1 : -1, slope_out);
    *slope_out = exp(score - all) - is_label;
    return is_label ? all - score : 0;
}

/* What a sample's slope is multiplied by: 1 of a sum, its share of a mean. */
static double share_of(const struct drps_model *model, const struct drps_batch *b)
{
    double weight = 0;
    for (size_t s = 0; s < b->samples; s++)
        weight += weight_of(b, s);
    return model->mean_of ? 1.0 / (weight * model->mean_of) : 1;
}

/* Adds the gradient of sample s by the floats c of its rows; *loss grows by its loss. */
static void class_gradient(const struct drps_model *model, const struct drps_batch *b, size_t s,
                           const float *params, float *grads, double *loss)
{
    const double all = log_sum(model, b, s, params);
    for (size_t c = 0; c < model->outputs; c++) {
        const double score = output_of(model, b, s, params, c);
        const int is_label = b->labels[s] == (float)c;
        double slope;
        *loss += weight_of(b, s) * class_loss(model, score, all, is_label, &slope);
        slope *= weight_of(b, s) * share_of(model, b);
        if (model->has_bias) add(&grads[c], slope);
        for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++)
            add(&grads[row_of(b, j) * model->dim + c], slope * value_of(b, j));
    }
}

double drps_model_gradient_ref(const struct drps_model *model, const struct drps_batch *b,
                               size_t first, size_t last, const float *params, float *grads,
                               float *scores, void *scratch)
{
    const size_t dim = model->dim;
    double loss = 0;

    if (drps_model_ranks(model) && b->fields) {
        const struct drps_ranking ranking = {model->loss, model->factors, model->items};
        return drps_ranking_pass_ref(&ranking, b, first, last, (float)share_of(model, b), params,
                                     grads, scores);
    }
    if (model->outputs > 1) {
        drps_model_predict_ref(model, b, first, last, params, scores, scratch);
        for (size_t s = first; s < last; s++)
            class_gradient(model, b, s, params, grads, &loss);
        return loss;
    }
    for (size_t s = first; s < last; s++) {
        const size_t start = drps_batch_start(b, s), end = drps_batch_start(b, s + 1);
        const double score = score_of(model, b, s, params), scale = scale_of(model, b, s);
        double slope;
        scores[s] = (float)score;
        loss += weight_of(b, s) * loss_of(model->loss, score, (double)b->labels[s], &slope);
        slope *= weight_of(b, s) * share_of(model, b);
        if (model->has_bias) add(&grads[0], slope);
        for (size_t j = start; j < end; j++)
            add(&grads[row_of(b, j) * dim], slope * scale * value_of(b, j));
        if (!has_pairs(model, end - start)) continue;
        for (size_t i = start; i < end; i++)
            for (size_t j = start; j < end; j++) {
                if (i == j) continue;
                const double x = slope * scale * value_of(b, i) * scale * value_of(b, j);
                for (size_t f = 0; f < model->factors; f++)
                    add(&grads[factors_at(model, b, i, j) + f],
                        x * (double)params[factors_at(model, b, j, i) + f]);
            }
    }
    return loss;
}
