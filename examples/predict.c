/*
 * Scores samples with a model that drps-train made: what a program of your own needs of libdrps.
 *
 *     cc predict.c $(pkg-config --cflags --libs drps) -o predict
 *     ./predict MODEL DATA        prints a score a line
 */
#include <stdio.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/predict/drps_predict.h"

/* What the model is, on standard error. */
static int describe(const char *path, struct drps_err *err)
{
    struct drps_modeldir *model;
    int rc = drps_modeldir_open(drps_io_os(), path, 0, &model, err);
    if (rc < 0) return rc;
    const struct drps_modeldir_info *info = drps_modeldir_info(model);
    fprintf(stderr, "%s: %llu rows, trained on %s data\n", path, (unsigned long long)info->rows,
            info->format);
    drps_modeldir_close(model);
    return 0;
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (argc != 3) {
        fprintf(stderr, "Usage: %s MODEL DATA\n", argv[0]);
        return 2;
    }
    const char *const inputs[] = {argv[2]};
    const struct drps_predict_options options = {
        .model = argv[1], .inputs = inputs, .inputs_n = 1, .output = "-"};
    struct drps_predict_result result;
    int rc = describe(argv[1], &err);
    if (rc == 0) rc = drps_predict_run(drps_io_os(), &options, &result, &err);
    if (rc < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    fprintf(stderr, "%llu samples, %llu of %llu features are not in the model\n",
            (unsigned long long)result.samples, (unsigned long long)result.unseen,
            (unsigned long long)result.nnz);
    return 0;
}
