/*
 * The least time of an epoch of a model of J classes: its two products alone, by batches, with
 * nothing else: scores = X W and gradient = X' U.
 *
 *   bench_classes FILE CLASSES [BATCH]      libsvm samples; default: batches of 100
 *
 * dense    both by OpenBLAS (sgemm, one thread), X of a batch with all columns that the file has
 * sparse   both over the entries of X, in plain loops that the compiler makes vectors of; the
 *          batch's rows of W and of the gradient are numbered from 0, as a plan has them
 *
 * Prints seconds of all batches of the file, the least of three passes. What is read, gathered,
 * stepped and written beside is not in it.
 */
#ifndef DRPS_WITH_OPENBLAS
#include <stdio.h>

int main(void)
{
    fprintf(stderr, "bench_classes: this build has no OpenBLAS\n");
    return 77;
}
#else
#include <cblas.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"

enum { PASSES = 3, MOST_COLUMNS = 1 << 20, MOST_CLASSES = 1024, MOST_BATCH = 1 << 16 };

struct samples {
    size_t n, nnz, columns;
    size_t *first; /* [n + 1] */
    uint32_t *column;
    float *value;
};

static void die(const char *what)
{
    fprintf(stderr, "bench_classes: %s\n", what);
    exit(1);
}

static void *grown(void *array, size_t n, size_t size)
{
    if (n & (n - 1)) return array; /* it doubles */
    void *more = realloc(array, (n ? 2 * n : 1) * size);
    if (!more) die("no memory");
    return more;
}

static void add_line(struct samples *s, char *line)
{
    char *at = strchr(line, ' ');
    while (at && *at) {
        char *end;
        const unsigned long column = strtoul(at, &end, 10);
        if (end == at || *end != ':') break;
        if (column >= MOST_COLUMNS) die("a feature's number is too large");
        s->column = grown(s->column, s->nnz, sizeof(*s->column));
        s->value = grown(s->value, s->nnz, sizeof(*s->value));
        s->column[s->nnz] = (uint32_t)column;
        s->value[s->nnz++] = strtof(end + 1, &at);
        if (column >= s->columns) s->columns = column + 1;
    }
    s->n++;
    s->first = grown(s->first, s->n, sizeof(*s->first));
    s->first[s->n] = s->nnz;
}

static void read_all(const char *path, struct samples *s)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    if (!f) die("the file cannot be read");
    s->first = calloc(2, sizeof(*s->first));
    if (!s->first) die("no memory");
    while (getline(&line, &room, f) > 0)
        add_line(s, line);
    free(line);
    fclose(f);
    if (!s->n || !s->nnz) die("the file has no samples");
}

/* What both ways work on. */
struct work {
    size_t classes, batch;
    float *w, *u, *scores, *grads, *dense;
    uint32_t *local; /* [columns] */
};

static float *floats(size_t n)
{
    float *p = malloc(n * sizeof(*p));
    if (!p) die("no memory");
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(i % 13) * .1F;
    return p;
}

static double dense(const struct samples *s, struct work *w, size_t from, size_t to)
{
    const int n = (int)(to - from), k = (int)s->columns, j = (int)w->classes;
    memset(w->dense, 0, (to - from) * s->columns * sizeof(*w->dense));
    for (size_t i = from; i < to; i++)
        for (size_t e = s->first[i]; e < s->first[i + 1]; e++)
            w->dense[(i - from) * s->columns + s->column[e]] = s->value[e];
    const uint64_t start = drps_clock_ns();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, j, k, 1, w->dense, k, w->w, j, 0,
                w->scores, j);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, j, n, 1, w->dense, k, w->u, j, 0,
                w->grads, j);
    return (double)(drps_clock_ns() - start) * 1e-9;
}

/* Numbers the batch's columns from 0; returns how many. */
static size_t number(const struct samples *s, struct work *w, size_t from, size_t to)
{
    uint32_t n = 0;
    for (size_t e = s->first[from]; e < s->first[to]; e++)
        w->local[s->column[e]] = UINT32_MAX;
    for (size_t c = 0; c < s->columns; c++)
        if (w->local[c] == UINT32_MAX) w->local[c] = n++;
    return n;
}

static double sparse(const struct samples *s, struct work *w, size_t from, size_t to)
{
    const size_t j = w->classes, rows = number(s, w, from, to);
    uint32_t *local = malloc((s->first[to] - s->first[from]) * sizeof(*local));
    if (!local) die("no memory");
    for (size_t e = s->first[from]; e < s->first[to]; e++)
        local[e - s->first[from]] = w->local[s->column[e]];
    const uint64_t start = drps_clock_ns();
    memset(w->grads, 0, rows * j * sizeof(*w->grads));
    for (size_t i = from; i < to; i++) {
        float *restrict score = w->scores + (i - from) * j;
        const float *restrict u = w->u + (i - from) * j;
        memset(score, 0, j * sizeof(*score));
        for (size_t e = s->first[i]; e < s->first[i + 1]; e++) {
            const float *restrict row = w->w + local[e - s->first[from]] * j;
            for (size_t c = 0; c < j; c++)
                score[c] += s->value[e] * row[c];
        }
        for (size_t e = s->first[i]; e < s->first[i + 1]; e++) {
            float *restrict grad = w->grads + local[e - s->first[from]] * j;
            for (size_t c = 0; c < j; c++)
                grad[c] += s->value[e] * u[c];
        }
    }
    const double seconds = (double)(drps_clock_ns() - start) * 1e-9;
    free(local);
    return seconds;
}

static double least(const struct samples *s, struct work *w,
                    double (*way)(const struct samples *, struct work *, size_t, size_t))
{
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        double all = 0;
        for (size_t from = 0; from < s->n; from += w->batch)
            all += way(s, w, from, s->n - from < w->batch ? s->n : from + w->batch);
        if (!pass || all < best) best = all;
    }
    return best;
}

int main(int argc, char **argv)
{
    struct samples s = {0};
    struct work w = {.classes = argc > 2 ? strtoul(argv[2], NULL, 10) : 0,
                     .batch = argc > 3 ? strtoul(argv[3], NULL, 10) : 100};
    if (argc < 3 || w.classes < 2 || w.classes > MOST_CLASSES || !w.batch || w.batch > MOST_BATCH)
        die("usage: bench_classes FILE CLASSES [BATCH]");
    read_all(argv[1], &s);
    w.w = floats(s.columns * w.classes);
    w.grads = floats(s.columns * w.classes);
    w.u = floats(w.batch * w.classes);
    w.scores = floats(w.batch * w.classes);
    w.dense = floats(w.batch * s.columns);
    w.local = calloc(s.columns, sizeof(*w.local));
    if (!w.local) die("no memory");
    printf("dense %.4f\n", least(&s, &w, dense));
    printf("sparse %.4f\n", least(&s, &w, sparse));
    free(s.first);
    free(s.column);
    free(s.value);
    free(w.w);
    free(w.grads);
    free(w.u);
    free(w.scores);
    free(w.dense);
    free(w.local);
    return 0;
}
#endif
