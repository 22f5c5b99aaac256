/*
 * A model from samples in memory: a sparse matrix is compiled into a plan and trained, with the
 * loss of each epoch, and one sample is scored and explained.
 *
 *     cc matrix.c $(pkg-config --cflags --libs drps) -o matrix
 *     ./matrix PLAN MODEL        makes both folders
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <drps.h>

enum { SAMPLES = 1000, COLUMNS = 100, EACH = 3 };

/* Sample i has three columns; it is of the class 1 if the first of them is even. */
static int64_t starts[SAMPLES + 1];
static int32_t indices[SAMPLES * EACH];
static float labels[SAMPLES];

static struct drps_matrix make_samples(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        starts[i + 1] = starts[i] + EACH;
        for (int k = 0; k < EACH; k++)
            indices[i * EACH + k] = (i * 7 + k * 31) % COLUMNS;
        labels[i] = (float)(indices[i * EACH] % 2 == 0);
    }
    return (struct drps_matrix){.samples = SAMPLES,
                                .columns = COLUMNS,
                                .starts = {starts, DRPS_I64},
                                .indices = {indices, DRPS_I32}, /* values: all are 1 */
                                .labels = {labels, DRPS_F32}};
}

/* Settings are the options of drps-index and drps-train. */
static int compile(const char *plan, const struct drps_matrix *m, struct drps_err *err)
{
    struct drps_settings *s;
    int rc = drps_settings_new(DRPS_TASK_INDEX, &s, err);
    if (rc == 0) rc = drps_settings_set(s, "algo", "lor", err);
    if (rc == 0) rc = drps_settings_set(s, "test-fraction", "10%", err);
    if (rc == 0) rc = drps_index_matrix(s, m, NULL, plan, NULL, NULL, err);
    drps_settings_free(s);
    return rc;
}

/* What an epoch came to is JSON; non-zero would stop the run. */
static int print_epoch(void *ctx, const char *json)
{
    const char *loss = strstr(json, "\"test_loss\"");
    (void)ctx;
    if (loss) printf("%.*s\n", (int)strcspn(loss, ",\n"), loss);
    return 0;
}

static int train(const char *plan, const char *model, struct drps_err *err)
{
    const struct drps_watch watch = {.epoch = print_epoch};
    struct drps_settings *s;
    int rc = drps_settings_new(DRPS_TASK_TRAIN, &s, err);
    if (rc == 0) rc = drps_settings_set(s, "epochs", "5", err);
    if (rc == 0) rc = drps_train(s, plan, model, &watch, NULL, err);
    drps_settings_free(s);
    return rc;
}

static int use(const char *path, struct drps_matrix sample, struct drps_err *err)
{
    struct drps_predictor *model;
    double probability;
    char *why = NULL;
    int rc = drps_predictor_open(path, 0, &model, err);
    sample.samples = 1; /* the first one */
    if (rc == 0) rc = drps_predictor_score(model, &sample, DRPS_SCORE_USUAL, &probability, err);
    if (rc == 0) rc = drps_predictor_explain(model, &sample, EACH, &why, err);
    if (rc == 0) printf("probability %.3f, label %g\n%s", probability, (double)labels[0], why);
    drps_free(why);
    drps_predictor_close(model);
    return rc;
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (argc != 3) {
        fprintf(stderr, "Usage: %s PLAN MODEL\n", argv[0]);
        return 2;
    }
    const struct drps_matrix samples = make_samples();
    int rc = compile(argv[1], &samples, &err);
    if (rc == 0) rc = train(argv[1], argv[2], &err);
    if (rc == 0) rc = use(argv[2], samples, &err);
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    return rc < 0;
}
