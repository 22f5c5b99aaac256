/*
 * Trains a loss of your own: multinomial regression by two callbacks, on all ranks of a plan, each
 * a thread of this process.
 *
 *     cc callbacks.c $(pkg-config --cflags --libs drps) -lm -o callbacks
 *     drps-index DATA --algo mlr --workers 3 -o PLAN
 *     ./callbacks PLAN 3 MODEL        prints the loss of each epoch
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/cluster/drps_ranks.h"
#include "engine/model/drps_callbacks.h"

/* u = softmax(scores) - e(label), which NULL does not ask for; returns the loss. */
static double vectors_of_one(size_t outputs, const float *scores, size_t label, float *u)
{
    double most = scores[0], sum = 0;
    for (size_t c = 1; c < outputs; c++)
        most = fmax(most, scores[c]);
    for (size_t c = 0; c < outputs; c++)
        sum += exp(scores[c] - most);
    for (size_t c = 0; c < outputs && u; c++)
        u[c] = (float)(exp(scores[c] - most) / sum - (c == label));
    return log(sum) + most - scores[label];
}

static double compute_svg(void *ctx, size_t n, size_t outputs, const float *scores,
                          const float *labels, float *u)
{
    double loss = 0;
    (void)ctx;
    for (size_t i = 0; i < n; i++)
        loss += vectors_of_one(outputs, scores + i * outputs, (size_t)labels[i],
                               u ? u + i * outputs : NULL);
    return loss;
}

/* The gradient of a row of W: what NULL in its place means. */
static void compute_update(void *ctx, size_t outputs, const float *u, float x, float *grad)
{
    (void)ctx;
    for (size_t c = 0; c < outputs; c++)
        grad[c] += x * u[c];
}

static void print_epoch(void *ctx, const struct drps_epoch *e)
{
    (void)ctx;
    printf("%llu %.6f\n", (unsigned long long)e->epoch, e->train_loss);
}

int main(int argc, char **argv)
{
    static const struct drps_callbacks callbacks = {NULL, compute_svg, compute_update};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result result;
    if (argc != 4) {
        fprintf(stderr, "Usage: %s PLAN RANKS MODEL\n", argv[0]);
        return 2;
    }
    const struct drps_train_options train = {.model_path = argv[3],
                                             .epochs = 3,
                                             .exchange = DRPS_EXCHANGE_VECTORS,
                                             .callbacks = &callbacks,
                                             .on_epoch = print_epoch};
    const struct drps_ranks_options ranks = {
        .plan = argv[1], .train = &train, .transport = DRPS_RANKS_INPROC};
    const int rc =
        drps_ranks_run_local(&ranks, (uint32_t)strtoul(argv[2], NULL, 10), &result, &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    drps_train_result_free(&result);
    return rc < 0;
}
