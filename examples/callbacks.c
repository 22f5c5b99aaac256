/*
 * Trains a loss of your own: multinomial regression by two callbacks, on all ranks of a plan, each
 * a thread of this process.
 *
 *     cc callbacks.c $(pkg-config --cflags --libs drps) -lm -o callbacks
 *     drps-index DATA --algo mlr --workers 3 -o PLAN
 *     ./callbacks PLAN MODEL        prints the loss of each epoch
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <drps.h>

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

/* An epoch is JSON. */
static int print_epoch(void *ctx, const char *json)
{
    const char *epoch = strstr(json, "\"epoch\""), *loss = strstr(json, "\"train_loss\"");
    unsigned number;
    double value;
    (void)ctx;
    if (epoch && loss && sscanf(epoch, "\"epoch\": %u", &number) == 1 &&
        sscanf(loss, "\"train_loss\": %lf", &value) == 1)
        printf("%u %.6f\n", number, value);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct drps_callbacks loss = {NULL, compute_svg, compute_update};
    static const struct drps_watch watch = {.epoch = print_epoch};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_settings *s;
    if (argc != 3) {
        fprintf(stderr, "Usage: %s PLAN MODEL\n", argv[0]);
        return 2;
    }
    int rc = drps_settings_new(DRPS_TASK_TRAIN, &s, &err);
    if (rc == 0) rc = drps_settings_set(s, "epochs", "3", &err);
    if (rc == 0) rc = drps_settings_set(s, "exchange", "vectors", &err);
    if (rc == 0) rc = drps_train_with_loss(s, argv[1], argv[2], &loss, &watch, NULL, &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    drps_settings_free(s);
    return rc < 0;
}
