/*
 * How long do pull and push of a batch's rows take, from the worker's call until it has its answer?
 *
 *   bench_pull [TIMES]     each, default 400; the medians, in microseconds, and the rows (keys) a
 * second
 *
 * The server's rows and what it does with them are those of drps-train: a pull gathers the batch's
 * rows (drps_rows_gather()), a push steps them (drps_optim_step(), sgd: as much as adding). Both
 * ends know from the plan which rows the batch has, so only values are sent. Pushes are
 * acknowledged, which training does not need. "calls" has no second end: the worker calls the two
 * functions, as a job of one rank does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "bench/ends.h"
#include "engine/model/drps_optim.h"

enum { TABLE = 500000, WARM = 20 };

static const struct {
    uint32_t rows, dim;
} cases[] = {{1000, 1}, {40000, 1}, {1000, 16}, {40000, 16}};
enum { CASES = sizeof(cases) / sizeof(*cases) };

/* A server's rows, and which of them the batch has: increasing, as in a plan. */
struct server {
    struct drps_optim optim;
    struct drps_rows rows;
    uint32_t dim;
    float *base;     /* own */
    uint32_t *index; /* own */
    float *values;   /* own: what a pull sends */
};

static void server_init(struct server *s, uint32_t n, uint32_t dim)
{
    struct drps_err err = DRPS_ERR_INIT;
    *s = (struct server){.dim = dim};
    s->base = calloc((size_t)TABLE * dim, sizeof(float));
    s->index = malloc(n * sizeof(*s->index));
    s->values = calloc((size_t)n * dim, sizeof(float));
    if (!s->base || !s->index || !s->values) die("memory", NULL);
    if (drps_optim_init(&s->optim, "sgd", &err) < 0) die("optimizer", &err);
    memset(s->base, 0, (size_t)TABLE * dim * sizeof(float)); /* its pages are there */
    for (uint32_t i = 0, step = TABLE / n; i < n; i++)
        s->index[i] = i * step + (uint32_t)(drps_rng_at(1, i) % step);
    s->rows = (struct drps_rows){
        .base = (char *)s->base, .stride = dim * sizeof(float), .index = s->index, .n = n};
}

static void server_free(struct server *s)
{
    free(s->base);
    free(s->index);
    free(s->values);
}

static void pull(struct server *s)
{
    drps_rows_gather(&s->rows, s->dim, 0, s->rows.n, s->values);
}

static void push(struct server *s, const float *grads)
{
    drps_optim_step(&s->optim, s->dim, &s->rows, 0, s->rows.n, grads, NULL, 0);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One case: the worker's median microseconds of what[0], pull, and what[1], push. NULL: the worker
 * calls the server. */
static void run_case(struct end *e, struct server *s, unsigned times, double us_out[2])
{
    const size_t bytes = s->rows.n * s->dim * sizeof(float);
    float *grads = malloc(bytes);
    double *us = malloc(times * sizeof(*us));
    if (!grads || !us) die("memory", NULL);
    for (size_t i = 0; i < bytes / sizeof(float); i++)
        grads[i] = 1e-3f;
    for (int what = 0; what < 2; what++) {
        for (unsigned i = 0; i < times + WARM; i++) {
            const uint64_t start = drps_clock_ns();
            if (e && e->rank == 0) {
                end_put(e, grads, what ? bytes : 0);
                (void)end_get(e, what ? 0 : bytes);
            } else {
                const float *got = e ? end_get(e, what ? bytes : 0) : grads;
                if (what)
                    push(s, got);
                else
                    pull(s);
                if (e) end_put(e, s->values, what ? 0 : bytes);
            }
            if (i >= WARM) us[i - WARM] = drps_seconds_since(start) * 1e6;
        }
        qsort(us, times, sizeof(*us), compare);
        us_out[what] = us[times / 2];
    }
    /* Every push took 1e-3 * rate from each row. */
    const float want = -s->optim.lr * 1e-3f * (float)(times + WARM),
                is = s->base[s->index[0] * s->dim];
    if ((!e || e->rank == 1) && !(is < 0.99f * want && is > 1.01f * want))
        die("the rows are wrong", NULL);
    free(grads);
    free(us);
}

static void run(struct end *e, void *arg)
{
    for (int i = 0; i < CASES; i++) {
        struct server s;
        double us[2];
        server_init(&s, cases[i].rows, cases[i].dim);
        run_case(e, &s, *(unsigned *)arg, us);
        if (!e || e->rank == 0)
            printf("%-14s %6u %6u %10.1f %10.1f %10.2f %10.2f\n",
                   e ? transport_names[e->transport] : "calls", cases[i].rows, cases[i].dim, us[0],
                   us[1], cases[i].rows / us[0], cases[i].rows / us[1]);
        (void)fflush(stdout);
        if (e) { /* both are ready before either frees what may be under way */
            end_put(e, s.values, 0);
            (void)end_get(e, 0);
        }
        server_free(&s);
    }
}

int main(int argc, char **argv)
{
    struct ends p;
    unsigned times = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 400;
    if (argc > 2 || times < 1 || times > 1000000) {
        fprintf(stderr, "usage: bench_pull [TIMES]\n");
        return 2;
    }
    ends_here(&p);
    printf("%-14s %6s %6s %10s %10s %10s %10s\n", "ends", "rows", "floats", "pull us", "push us",
           "pull M/s", "push M/s");
    run(NULL, &times);
    for (enum transport t = 0; t < TRANSPORTS; t++)
        run_both(&p, t, run, &times);
    ends_free(&p);
    return 0;
}
