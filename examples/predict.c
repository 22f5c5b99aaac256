/*
 * Scores samples with a model: what a service of your own needs of libdrps. The model is opened
 * once; then any number of threads may score.
 *
 *     cc predict.c $(pkg-config --cflags --libs drps) -o predict
 *     ./predict MODEL DATA        prints a score a line
 */
#include <stdio.h>
#include <stdlib.h>

#include <drps.h>

/* The whole file, which the caller frees; NULL: it cannot be read. */
static char *read_file(const char *path, size_t *n_out)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t n = 0, got;
    while (f && (text = realloc(text, n + 65536)) && (got = fread(text + n, 1, 65536, f)) > 0)
        n += got;
    if (f) fclose(f);
    *n_out = n;
    return f ? text : NULL;
}

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *model;
    size_t bytes, n;
    if (argc != 3) {
        fprintf(stderr, "Usage: %s MODEL DATA\n", argv[0]);
        return 2;
    }
    char *text = read_file(argv[2], &bytes);
    if (!text) {
        perror(argv[2]);
        return 1;
    }
    int rc = drps_predictor_open(argv[1], 0, &model, &err);
    if (rc == 0) {
        const size_t outputs = drps_predictor_outputs(model), most = count_lines(text, bytes);
        double *scores = calloc(most * outputs + 1, sizeof(*scores));
        rc = drps_predictor_score_text(model, text, bytes, DRPS_SCORE_USUAL, scores,
                                       scores ? most : 0, &n, &err);
        for (size_t i = 0; rc == 0 && i < n * outputs; i++)
            printf("%.9g%c", scores[i], (i + 1) % outputs ? '\t' : '\n');
        free(scores);
    }
    if (rc < 0) fprintf(stderr, "%s\n", err.text);
    drps_predictor_close(model);
    free(text);
    return rc < 0;
}
