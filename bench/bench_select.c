/*
 * What does choosing C of B sufficient vectors cost?
 *
 *   bench_select [B [J [NNZ [C]]]]      default: 100 samples, 20 floats a u, 80 features, 25 chosen
 *
 * For generated samples, whose features are drawn from 61,188 ids: multiplications and additions of
 * each part, counted; beside them those of computing the batch's gradient, and of Algorithm 2 as it
 * is printed, which projects the vectors themselves. Then the time of a part on this machine, the
 * least of some runs. Fails where Gram matrices of the library and of three loops differ.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "engine/cluster/sv/select/drps_gram.h"
#include "engine/cluster/sv/select/drps_jmcss.h"
#include "engine/cluster/sv/select/drps_select.h"

enum { ROWS = 61188, RUNS = 20, MOST = 4096, DIM_MOST = 1 << 20 };

struct sizes {
    uint32_t n, dim, nnz, count;
};

struct batch {
    struct drps_vectors v;
    float *u, *values;
    uint32_t *first, *ids;
};

static void *must(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_select: out of memory\n");
    exit(1);
}

static void die(const char *text)
{
    fprintf(stderr, "bench_select: %s\n", text);
    exit(1);
}

/* ---- Samples ---- */

/* About nnz increasing ids: steps of a mean of ROWS / nnz. */
static uint32_t draw_ids(const struct sizes *s, uint64_t seed, uint32_t *ids)
{
    const uint64_t step = 2 * (ROWS / s->nnz) - 1;
    uint32_t n = 0;
    for (uint64_t at = 0; n < s->nnz; n++) {
        at += 1 + drps_rng_at(seed, n) % step;
        if (at > ROWS) break;
        ids[n] = (uint32_t)at - 1;
    }
    return n;
}

static struct batch make(const struct sizes *s)
{
    struct batch b = {.u = must(malloc(sizeof(float) * s->n * s->dim)),
                      .values = must(malloc(sizeof(float) * s->n * s->nnz)),
                      .first = must(calloc(s->n + 1, sizeof(uint32_t))),
                      .ids = must(malloc(sizeof(uint32_t) * s->n * s->nnz))};
    for (size_t i = 0; i < (size_t)s->n * s->dim; i++)
        b.u[i] = drps_unit_float(drps_rng_at(1, i)) - .5f;
    for (size_t i = 0; i < (size_t)s->n * s->nnz; i++)
        b.values[i] = drps_unit_float(drps_rng_at(2, i));
    for (uint32_t i = 0; i < s->n; i++)
        b.first[i + 1] = b.first[i] + draw_ids(s, 3 + i, b.ids + b.first[i]);
    b.v = (struct drps_vectors){s->n, s->dim, b.u, b.first, b.ids, b.values};
    return b;
}

/* ---- Counts ---- */

/* Pairs of samples that share an id, for each id; a sample and itself count. */
static double pairs_of(const struct batch *b)
{
    uint32_t *uses = must(calloc(ROWS, sizeof(*uses)));
    double pairs = 0;
    for (uint32_t e = 0; e < b->first[b->v.n]; e++)
        pairs += ++uses[b->ids[e]];
    free(uses);
    return pairs;
}

static void print_counts(const struct sizes *s, double pairs)
{
    const double n = s->n, dim = s->dim, nnz = s->nnz, c = s->count;
    printf("multiplications with an addition, in thousands\n");
    printf("  gradient of the batch       %12.0f\n", n * nnz * dim / 1e3);
    printf("  Gram matrix of u            %12.0f\n", n * (n + 1) / 2 * dim / 1e3);
    printf("  Gram matrix of x            %12.0f\n", pairs / 1e3);
    printf("  choosing from both          %12.0f\n", 2 * n * c * (c + 1) / 2 / 1e3);
    printf("  projecting onto the chosen  %12.0f\n",
           (c * c * c / 6 + (2 * c * n + 3 * c * c) * dim) / 1e3);
    printf("  Algorithm 2 on the vectors  %12.0f\n", 2 * c * n * (dim + ROWS) / 1e3);
}

/* ---- Times ---- */

struct bench {
    const struct sizes *sizes;
    const struct drps_vectors *v;
    void *scratch;
    double *gram_u, *gram_x, *plain;
    struct drps_select_options options;
    struct drps_selected out;
};

static void gram_u(const struct bench *b)
{
    drps_gram_dense(b->v, b->scratch, b->gram_u);
}

static void gram_u_plain(const struct bench *b)
{
    drps_gram_dense_plain(b->v, b->plain);
}

static void gram_x(const struct bench *b)
{
    drps_gram_sparse(b->v, b->scratch, b->gram_x);
}

static void choose(const struct bench *b)
{
    const double *const grams[] = {b->gram_u, b->gram_x};
    const struct drps_jmcss j = {b->sizes->n, b->sizes->count, 2, grams, 1, 0};
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t drawn;
    if (drps_jmcss(&j, b->scratch, b->out.picks, &drawn, NULL, &err) < 0) die(err.text);
}

static void whole(const struct bench *b)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_selected out = b->out;
    if (drps_select(b->v, &b->options, NULL, b->scratch, &out, &err) < 0) die(err.text);
}

static void time_part(const char *name, void (*part)(const struct bench *), const struct bench *b)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        const uint64_t begin = drps_clock_ns();
        part(b);
        const uint64_t ns = drps_clock_ns() - begin;
        least = ns < least ? ns : least;
    }
    printf("  %-27s %12.1f\n", name, (double)least / 1e3);
}

static void check_gram(const struct bench *b)
{
    const size_t n = b->sizes->n;
    for (size_t i = 0; i < n * n; i++)
        if (!(fabs(b->gram_u[i] - b->plain[i]) <=
              1e-12 * sqrt(b->plain[i / n * n + i / n] * b->plain[i % n * n + i % n])))
            die("the Gram matrices differ");
}

static void print_times(struct bench *b)
{
    printf("microseconds\n");
    time_part("Gram matrix of u", gram_u, b);
    time_part("the same by three loops", gram_u_plain, b);
    check_gram(b);
    time_part("Gram matrix of x", gram_x, b);
    time_part("choosing from both", choose, b);
    b->options.rule = DRPS_SELECT_RANDOM;
    time_part("all of it: random", whole, b);
    b->options.rule = DRPS_SELECT_JMCSS;
    time_part("all of it: joint selection", whole, b);
    b->options.rule = DRPS_SELECT_PROJECT;
    b->options.least_captured = 1e-9;
    time_part("all of it: projected", whole, b);
}

static uint32_t number(int argc, char **argv, int i, uint32_t usual, uint32_t most)
{
    const unsigned long v = i < argc ? strtoul(argv[i], NULL, 10) : usual;
    if (v < 1 || v > most) die("usage: bench_select [B [J [NNZ [C]]]]");
    return (uint32_t)v;
}

int main(int argc, char **argv)
{
    const struct sizes s = {number(argc, argv, 1, 100, MOST), number(argc, argv, 2, 20, DIM_MOST),
                            number(argc, argv, 3, 80, ROWS / 2), number(argc, argv, 4, 25, MOST)};
    struct batch batch = make(&s);
    struct bench b = {.sizes = &s, .v = &batch.v};
    const size_t square = sizeof(double) * s.n * s.n;
    b.options = (struct drps_select_options){.rule = DRPS_SELECT_PROJECT, .count = s.count};
    b.scratch = must(malloc(drps_select_scratch(s.n, batch.first[s.n], &b.options)));
    b.gram_u = must(malloc(square));
    b.gram_x = must(malloc(square));
    b.plain = must(malloc(square));
    b.out = (struct drps_selected){.picks = must(malloc(sizeof(uint32_t) * s.n)),
                                   .u = must(malloc(sizeof(float) * s.n * s.dim))};
    printf("%u of %u samples, %u floats a u, %u features\n", s.count, s.n, s.dim, s.nnz);
    print_counts(&s, pairs_of(&batch));
    print_times(&b);
    return 0;
}
