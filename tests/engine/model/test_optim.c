/*
 * Optimizers: steps worked out by hand, the kernels against the plain twin bit for bit, and what
 * regularisation leaves alone.
 *
 *   test_optim [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/model/drps_optim.h"

static uint64_t seed = 20240607;
static uint64_t counter;

static double uniform(double low, double high)
{
    return low + (high - low) * drps_unit_double(drps_rng_at(seed, counter++));
}

static void *must(void *p)
{
    assert_non_null(p);
    return p;
}

enum { STEPS = 3 };

/*
 * One float, three gradients, the parameter after each step. From the formulas of drps_optim.h in
 * exact arithmetic; for example ftrl: z = 3, n = 9, w = -3 / ((1 + 3) / .5) = -.375; then z = 3 + 4
 * + (5 - 3) / .5 * .375 = 8.5, n = 25, w = -8.5 / 12. Of adam as Algorithm 1 of the paper has it,
 * in 40 decimal digits: first m = .3, v = .009, w = .5 - .1 (.3 / .1) / (sqrt(.009 / .001) + 1e-8).
 */
static const struct golden {
    const char *name;
    struct drps_optim o;
    float start;
    uint32_t touches;
    float grads[STEPS];
    double params[STEPS];
} goldens[] = {
    {.name = "sgd",
     .o = {.kind = DRPS_OPTIM_SGD, .lr = 0.25f},
     .start = 1,
     .touches = 1,
     .grads = {2, -1, 2},
     .params = {0.5, 0.75, 0.25}},
    {.name = "sgd l1 l2, 2 touches",
     .o = {.kind = DRPS_OPTIM_SGD, .lr = 0.25f, .l1 = 0.5f, .l2 = 0.125f},
     .start = 1,
     .touches = 2,
     .grads = {2, -1, 2},
     .params = {0.1875, 0.17578125, -0.085205078125}},
    {.name = "sgd l1 stops at 0",
     .o = {.kind = DRPS_OPTIM_SGD, .lr = 0.5f, .l1 = 1},
     .start = 0.25f,
     .touches = 1,
     .grads = {0, 0, 2},
     .params = {0, 0, -0.5}},
    {.name = "adagrad",
     .o = {.kind = DRPS_OPTIM_ADAGRAD, .lr = 0.1f},
     .start = 0.5f,
     .touches = 1,
     .grads = {3, 4, -12},
     .params = {0.4, 0.32, 0.41230769230769}},
    {.name = "adagrad eps",
     .o = {.kind = DRPS_OPTIM_ADAGRAD, .lr = 0.5f, .eps = 16},
     .start = 0,
     .touches = 1,
     .grads = {3, 0, 12},
     .params = {-0.3, -0.3, -0.76153846}},
    {.name = "adagrad l1 l2, 2 touches",
     .o = {.kind = DRPS_OPTIM_ADAGRAD, .lr = 0.1f, .l1 = 0.01f, .l2 = 0.1f},
     .start = 0.5f,
     .touches = 2,
     .grads = {3, 4, -12},
     .params = {0.3993548387620422, 0.31934170015279156, 0.41107848884936293}},
    {.name = "ftrl",
     .o = {.kind = DRPS_OPTIM_FTRL, .lr = 0.5f},
     .start = 0,
     .touches = 1,
     .grads = {3, 4, -12},
     .params = {-0.375, -0.70833333333, -0.27976190476}},
    {.name = "ftrl l1 l2",
     .o = {.kind = DRPS_OPTIM_FTRL, .lr = 0.5f, .l1 = 2, .l2 = 1},
     .start = 0,
     .touches = 7,
     .grads = /* no matter */
     {3, 4, -12},
     .params = {-0.11111111111, -0.41880341880, -0.0050103153551}},
    {.name = "ftrl below l1",
     .o = {.kind = DRPS_OPTIM_FTRL, .lr = 0.5f, .l1 = 8},
     .start = 0,
     .touches = 1,
     .grads = {3, 4, 0},
     .params = {0, 0, 0}},
    {.name = "adam",
     .o = {.kind = DRPS_OPTIM_ADAM, .lr = 0.1f},
     .start = 0.5f,
     .touches = 1,
     .grads = {3, 4, -12},
     .params = {0.400000000333333, 0.300267712829667, 0.329606949506597}},
    {.name = "adam goes on without a gradient",
     .o = {.kind = DRPS_OPTIM_ADAM, .lr = 0.1f},
     .start = 0.5f,
     .touches = 1,
     .grads = {3, 0, 0},
     .params = {0.400000000333333, 0.332994175235627, 0.281198478286290}},
    {.name = "adam eps",
     .o = {.kind = DRPS_OPTIM_ADAM, .lr = 0.5f, .eps = 16},
     .start = 0,
     .touches = 1,
     .grads = {3, 4, -12},
     .params = {-0.078947368421053, -0.169200112800640, -0.122345845241822}},
    {.name = "adam betas",
     .o = {.kind = DRPS_OPTIM_ADAM, .lr = 0.1f, .beta1 = 0.5f, .beta2 = 0.75f},
     .start = 0.5f,
     .touches = 1,
     .grads = {3, 4, -12},
     .params = {0.400000000333333, 0.298304964640759, 0.361640484017699}},
    {.name = "adam l1 l2, 2 touches",
     .o = {.kind = DRPS_OPTIM_ADAM, .lr = 0.1f, .l1 = 0.01f, .l2 = 0.1f},
     .start = 0.5f,
     .touches = 2,
     .grads = {3, 4, -12},
     .params = {0.399354839034339, 0.299016334378986, 0.327058761895302}},
};

typedef void (*step_fn)(const struct drps_optim *, uint32_t, const struct drps_rows *, size_t,
                        size_t, const float *, const uint32_t *, size_t);
static const step_fn steps[] = {drps_optim_step, drps_optim_step_ref};

static void test_optim_steps_match_values_by_hand(void **state)
{
    const uint32_t index[] = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(goldens) / sizeof(goldens[0]); i++)
        for (int k = 0; k < 2; k++) {
            const struct golden *g = &goldens[i];
            float row[4] = {g->start};
            const struct drps_rows rows = {
                .base = (char *)row, .stride = sizeof(row), .index = index, .n = 1};
            drps_optim_init_row(&g->o, 1, 0, row);
            for (int t = 0; t < STEPS; t++) {
                steps[k](&g->o, 1, &rows, 0, 1, &g->grads[t], &g->touches, 0);
                /* a few roundings of numbers of the order of 1 to 20 */
                if (!(fabs((double)row[0] - g->params[t]) <= 1e-6))
                    fail_msg("%s%s, step %d, gradient %g: expected %.9g, found %.9g", g->name,
                             k ? " (twin)" : "", t, (double)g->grads[t], g->params[t],
                             (double)row[0]);
            }
        }
}

/* Rows at random slots of a table whose stride leaves a gap; gaps and other slots must stay as they
 * are. */
struct table {
    char *base;
    size_t bytes, stride;
    uint32_t *index;
    float *grads;
    uint32_t *touches;
    size_t m;
};

static void make_table(struct table *t, const struct drps_optim *o, uint32_t dim, size_t m)
{
    const size_t floats = drps_optim_row_floats(o, dim) + dim % 3;

    t->m = m;
    t->stride = floats * sizeof(float);
    t->bytes = 2 * m * t->stride;
    t->base = must(malloc(t->bytes + 1));
    t->index = must(malloc((m + 1) * sizeof(uint32_t)));
    t->grads = must(malloc((m * dim + 1) * sizeof(float)));
    t->touches = must(malloc((m + 1) * sizeof(uint32_t)));
    for (size_t i = 0; i < 2 * m * floats; i++) {
        const float v = (float)uniform(-1, 1);
        memcpy(t->base + i * sizeof(float), &v, sizeof(v));
    }
    for (size_t i = 0; i < m; i++) {
        t->index[i] =
            (uint32_t)(2 * ((i * 7 + 3) % m) + (i & 1)); /* m is no multiple of 7: distinct */
        float *row = (float *)(void *)(t->base + t->index[i] * t->stride);
        drps_optim_init_row(o, dim, i == 0, row);
        for (size_t d = dim; d < drps_optim_row_floats(o, dim); d++)
            row[d] = (float)uniform(0, 2);
        if (o->kind == DRPS_OPTIM_ADAM) row[3 * dim] = (float)(drps_rng_at(seed, counter++) % 50);
        t->touches[i] = (uint32_t)(drps_rng_at(seed, counter++) % 5);
        for (uint32_t d = 0; d < dim; d++)
            t->grads[i * dim + d] = (float)uniform(-3, 3);
    }
}

static void drop_table(struct table *t)
{
    free(t->base);
    free(t->index);
    free(t->grads);
    free(t->touches);
}

static struct drps_rows rows_of(const struct table *t, char *base)
{
    return (struct drps_rows){.base = base, .stride = t->stride, .index = t->index, .n = t->m};
}

static const uint32_t dims[] = {1, 2, 5, 9, 10, 17, 20, 31, 33, 65};
enum { DIMS = sizeof(dims) / sizeof(dims[0]), KINDS = 4 };

/* Bits of `regular`: l1, l2, and l1 for all floats of a row. */
enum { REGULARS = 8 };
static struct drps_optim optim_of(unsigned kind, unsigned regular)
{
    return (struct drps_optim){.kind = (enum drps_optim_kind)kind,
                               .lr = 0.125f,
                               .l1 = regular & 1 ? 0.02f : 0,
                               .l2 = regular & 2 ? 0.03f : 0,
                               .l1_all = regular >> 2 & 1};
}

/* Bits, not tolerances: all operations are correctly rounded and none is fused. */
static void test_optim_step_equals_the_twin_bit_for_bit(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned regular = 0; regular < REGULARS; regular++)
            for (size_t d = 0; d < DIMS; d++)
                for (size_t common = 0; common < 40; common = 3 * common + 1) {
                    const struct drps_optim o = optim_of(kind, regular);
                    struct table t;
                    make_table(&t, &o, dims[d], dims[d] == 1 ? 333 : 45);
                    char *twin = must(malloc(t.bytes));
                    memcpy(twin, t.base, t.bytes);
                    const struct drps_rows rows = rows_of(&t, t.base), twins = rows_of(&t, twin);
                    for (int step = 0; step < 3; step++) {
                        drps_optim_step(&o, dims[d], &rows, 0, t.m, t.grads, t.touches, common);
                        drps_optim_step_ref(&o, dims[d], &twins, 0, t.m, t.grads, t.touches,
                                            common);
                    }
                    for (size_t i = 0; i < t.bytes / sizeof(float); i++) {
                        float expected, found;
                        memcpy(&expected, twin + i * sizeof(float), sizeof(float));
                        memcpy(&found, t.base + i * sizeof(float), sizeof(float));
                        if (expected != found)
                            fail_msg(
                                "%s, l1 %g, l2 %g, dim %u, %zu common rows, seed %llu: float %zu "
                                "expected %.9g, found %.9g",
                                drps_optim_name(o.kind), (double)o.l1, (double)o.l2, dims[d],
                                common, (unsigned long long)seed, i, (double)expected,
                                (double)found);
                    }
                    free(twin);
                    drop_table(&t);
                }
}

/* What diverges must be seen by whoever looks at parameters: neither l1 nor an infinite sum of
 * squares makes a number of it again, nor leaves it where it was. */
static void test_optim_what_is_no_number_stays_none(void **state)
{
    static const struct {
        const char *name;
        float gradient, parameter; /* of one float; 0: as it is */
        int squares;               /* only of optimizers that sum these */
    } cases[] = {{"gradient NaN", NAN, 0, 0},
                 {"gradient infinite", INFINITY, 0, 0},
                 {"square of the gradient infinite", 1e30f, 0, 1},
                 {"parameter NaN", 0, NAN, 0},
                 {"parameter infinite", 0, -INFINITY, 0}};
    enum { AT = 71, ROWS = 200 };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++)
        for (unsigned kind = cases[c].squares ? 1 : 0; kind < KINDS; kind++)
            for (unsigned regular = 0; regular < REGULARS; regular++)
                for (size_t d = 0; d < DIMS; d++)
                    for (size_t s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
                        const struct drps_optim o = optim_of(kind, regular);
                        struct table t;
                        make_table(&t, &o, dims[d], ROWS);
                        const struct drps_rows rows = rows_of(&t, t.base);
                        const size_t column = c % dims[d];
                        float *w = (float *)drps_row_at(&rows, AT) + column;
                        float *g = &t.grads[AT * dims[d] + column];
                        if (cases[c].gradient != 0) *g = cases[c].gradient;
                        if (cases[c].parameter != 0) *w = cases[c].parameter;
                        for (int step = 0; step < 3; step++) {
                            steps[s](&o, dims[d], &rows, 0, t.m, t.grads, t.touches, 0);
                            if (isfinite(*w))
                                fail_msg("%s, %s, l1 %g, l2 %g, dim %u, %s: %g after step %d",
                                         cases[c].name, drps_optim_name(o.kind), (double)o.l1,
                                         (double)o.l2, dims[d], s ? "twin" : "kernel", (double)*w,
                                         step);
                            *g = 0.5f;
                        }
                        drop_table(&t);
                    }
}

static void test_optim_step_does_not_depend_on_ranges(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (unsigned regular = 0; regular < REGULARS; regular += 7)
            for (size_t d = 0; d < DIMS; d++) {
                const struct drps_optim o = optim_of(kind, regular);
                struct table t;
                make_table(&t, &o, dims[d], 331);
                char *parts = must(malloc(t.bytes));
                memcpy(parts, t.base, t.bytes);
                const struct drps_rows whole = rows_of(&t, t.base), cut = rows_of(&t, parts);
                drps_optim_step(&o, dims[d], &whole, 0, t.m, t.grads, t.touches, 1);
                for (size_t i = 0; i < t.m;) {
                    const size_t end = i + 1 + drps_rng_at(seed, counter++) % (t.m - i);
                    drps_optim_step(&o, dims[d], &cut, i, end, t.grads, t.touches, 1);
                    i = end;
                }
                if (memcmp(t.base, parts, t.bytes) != 0)
                    fail_msg("%s, regular %u, dim %u, seed %llu: bytes differ",
                             drps_optim_name(o.kind), regular, dims[d], (unsigned long long)seed);
                free(parts);
                drop_table(&t);
            }
}

static void test_optim_empty_range_changes_nothing(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        const struct drps_optim o = optim_of(kind, 0);
        struct table t;
        make_table(&t, &o, 9, 5);
        char *before = must(malloc(t.bytes));
        memcpy(before, t.base, t.bytes);
        const struct drps_rows rows = rows_of(&t, t.base);
        drps_optim_step(&o, 9, &rows, 3, 3, t.grads, NULL, 0);
        assert_memory_equal(before, t.base, t.bytes);
        free(before);
        drop_table(&t);
    }
}

/* A step with gradient 0 applies only ftrl's closed form: it must give back what init_row was told.
 */
static void test_optim_ftrl_init_reproduces_the_parameters(void **state)
{
    static const float starts[] = {0, 0.5f, -0.5f, 1e-6f, -3e4f};
    enum { DIM = 5 };

    (void)state;
    for (unsigned regular = 0; regular < REGULARS; regular++)
        for (unsigned intercept = 0; intercept < 2; intercept++) {
            const struct drps_optim o = optim_of(DRPS_OPTIM_FTRL, regular);
            const uint32_t index[] = {1, 0}; /* row i = 0 is the intercept, in slot 1 */
            const float grads[2 * DIM] = {0};
            float table[2][3 * DIM] = {{0}};
            const struct drps_rows rows = {
                .base = (char *)table, .stride = sizeof(table[0]), .index = index, .n = 2};
            for (size_t s = 0; s < DIM; s++) {
                for (size_t d = 0; d < DIM; d++)
                    table[0][d] = table[1][d] = starts[(s + d) % DIM];
                drps_optim_init_row(&o, DIM, 0, table[0]);
                drps_optim_init_row(&o, DIM, (int)intercept, table[1]);
                drps_optim_step(&o, DIM, &rows, 0, 2, grads, NULL, intercept);
                for (size_t r = 0; r < 2; r++)
                    for (size_t d = 0; d < DIM; d++) {
                        const double expected = (double)starts[(s + d) % DIM];
                        /* two roundings of the product; adding and taking l1 loses what is below
                         * its ulp */
                        const double slack = 4 * 0x1p-24 * fabs(expected) + 0x1p-24 * (double)o.l1;
                        if (!(fabs((double)table[r][d] - expected) <= slack))
                            fail_msg("l1 %g, l2 %g, row %zu, float %zu: expected %.9g, found %.9g",
                                     (double)o.l1, (double)o.l2, r, d, expected,
                                     (double)table[r][d]);
                    }
            }
        }
}

static void test_optim_init_row_zeroes_other_states(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++) {
        const struct drps_optim o = optim_of(kind, 3);
        float row[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        if (kind == DRPS_OPTIM_FTRL) continue;
        drps_optim_init_row(&o, 2, 0, row);
        for (size_t i = 0; i < 8; i++) {
            const size_t end = drps_optim_row_floats(&o, 2);
            assert_true(row[i] == (i < 2 || i >= end ? (float)(i + 1) : 0.0f));
        }
    }
}

/* Step rows of `dim` with gradient 0 from the given row; returns row [3 * dim] of batch row i in
 * out. */
static void step_one(const struct drps_optim *o, uint32_t dim, uint32_t touches, size_t has_bias,
                     int k, float *row)
{
    const uint32_t index[] = {0};
    const float grads[8] = {0};
    const struct drps_rows rows = {
        .base = (char *)row, .stride = 24 * sizeof(float), .index = index, .n = 1};
    steps[k](o, dim, &rows, 0, 1, grads, &touches, has_bias);
}

static void test_optim_intercept_is_not_regularised(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (uint32_t dim = 1; dim <= 3; dim += 2)
            for (int k = 0; k < 2; k++) {
                const struct drps_optim o = optim_of(kind, 3);
                float bias[24] = {1}, other[24] = {1};
                drps_optim_init_row(&o, dim, 1, bias);
                drps_optim_init_row(&o, dim, 1,
                                    other); /* ftrl: with regularisation this z gives a smaller w */
                step_one(&o, dim, 9, 1, k, bias);
                step_one(&o, dim, 9, 0, k, other);
                if (!(fabsf(bias[0] - 1) < 1e-6f && other[0] < 0.999f))
                    fail_msg("%s, dim %u%s: intercept %.9g, other row %.9g",
                             drps_optim_name(o.kind), dim, k ? " (twin)" : "", (double)bias[0],
                             (double)other[0]);
            }
}

static void test_optim_l1_spares_factors(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (int k = 0; k < 2; k++) {
            const struct drps_optim o = optim_of(kind, 1);
            float row[24] = {1, 1, 1};
            drps_optim_init_row(&o, 3, 0, row);
            row[3] = kind == DRPS_OPTIM_FTRL
                         ? 0
                         : 1; /* ftrl: z below l1; adagrad: a rate that is not huge */
            if (kind == DRPS_OPTIM_ADAM) row[3] = 0, row[6] = 1e-4f; /* the same: m, v */
            step_one(&o, 3, 1, 0, k, row);
            if (!(row[0] < 0.999f && fabsf(row[1] - 1) < 1e-6f && fabsf(row[2] - 1) < 1e-6f))
                fail_msg("%s%s: %.9g, %.9g, %.9g", drps_optim_name(o.kind), k ? " (twin)" : "",
                         (double)row[0], (double)row[1], (double)row[2]);
        }
}

static void test_optim_touches_weigh_regularisation(void **state)
{
    /* sgd with gradient 0: w - lr * t * l2 * w, then - lr * t * l1: 1 - .125 * .03 t - .125 * .02 t
     */
    const struct drps_optim o = optim_of(DRPS_OPTIM_SGD, 3);

    (void)state;
    for (uint32_t t = 0; t < 10; t++)
        for (int k = 0; k < 2; k++) {
            float row[24] = {1};
            step_one(&o, 1, t, 0, k, row);
            const double expected = 1 - 0.125 * 0.05 * t;
            if (!(fabs((double)row[0] - expected) < 1e-6)) /* roundings near 1 */
                fail_msg("touches %u%s: expected %.9g, found %.9g", t, k ? " (twin)" : "", expected,
                         (double)row[0]);
        }
}

/* How many steps a row has seen decides its rate: of both rows with what they have seen, beside
 * each other, and where floats do not count on. A file may hold any number. */
static void test_optim_adam_counts_the_steps_of_each_row(void **state)
{
    static const float counts[] = {0, 1, 2, 9, 999, 4095, 100000, 1 << 23, 1 << 24};
    enum { N = sizeof(counts) / sizeof(*counts) };
    const struct drps_optim o = {
        .kind = DRPS_OPTIM_ADAM, .lr = 0.25f, .eps = 1e-20f, .beta2 = 0.99999f};
    (void)state;
    for (uint32_t dim = 1; dim <= 2; dim++)
        for (int k = 0; k < 2; k++) {
            float table[N][7] = {{0}}, grads[2 * N];
            uint32_t index[N];
            const struct drps_rows rows = {
                .base = (char *)table, .stride = sizeof(table[0]), .index = index, .n = N};
            for (uint32_t i = 0; i < N; i++) {
                index[i] = i;
                grads[i * dim] = grads[i * dim + dim - 1] = 2;
                table[i][3 * dim] = counts[i];
            }
            steps[k](&o, dim, &rows, 0, N, grads, NULL, 0);
            for (size_t i = 0; i < N; i++) {
                const double t = (double)counts[i] + (counts[i] < 1 << 24);
                const double m = (1 - pow((double)0.9f, t)), v = 1 - pow((double)0.99999f, t);
                const double expected =
                    -0.25 * ((double)(1 - 0.9f) / m) * sqrt(v / (double)(1 - 0.99999f));
                if (!(fabs((double)table[i][0] / expected - 1) < 1e-6) ||
                    (double)table[i][3 * dim] != t)
                    fail_msg("step %g, dim %u%s: expected %.9g, found %.9g after %.9g", t, dim,
                             k ? " (twin)" : "", expected, (double)table[i][0],
                             (double)table[i][3 * dim]);
            }
        }
}

static void test_optim_adam_takes_any_count_that_a_file_holds(void **state)
{
    static const float counts[] = {NAN, INFINITY, -INFINITY, -7, 1e30f, 0.5f};
    const struct drps_optim o = {.kind = DRPS_OPTIM_ADAM, .lr = 0.25f};
    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
        float row[4] = {0, 0, 0, counts[c]};
        const uint32_t index[] = {0};
        const float gradient = 1;
        const struct drps_rows rows = {
            .base = (char *)row, .stride = sizeof(row), .index = index, .n = 1};
        drps_optim_step(&o, 1, &rows, 0, 1, &gradient, NULL, 0);
        if (!(row[0] < 0 && row[0] >= -1))
            fail_msg("count %g: a step of %g", (double)counts[c], (double)row[0]);
    }
}

static void test_batch_touches_counts_samples(void **state)
{
    const uint32_t starts[] = {0, 2, 2, 5, 6};
    const uint16_t local16[] = {1, 2, 2, 3, 1, 3};
    const uint32_t local32[] = {1, 2, 2, 3, 1, 3};
    const struct {
        const char *name;
        struct drps_batch b;
        size_t first, last;
        int has_bias;
        uint32_t expected[4];
    } cases[] = {
        {.name = "16 bits",
         .b = {.samples = 4, .rows = 4, .starts = starts, .local16 = local16},
         .first = 0,
         .last = 4,
         .has_bias = 1,
         .expected = {14, 12, 12, 12}},
        {.name = "32 bits",
         .b = {.samples = 4, .rows = 4, .starts = starts, .local32 = local32},
         .first = 0,
         .last = 4,
         .has_bias = 0,
         .expected = {10, 12, 12, 12}},
        {.name = "range",
         .b = {.samples = 4, .rows = 4, .starts = starts, .local16 = local16},
         .first = 1,
         .last = 3,
         .has_bias = 1,
         .expected = {12, 11, 11, 11}},
        {.name = "no range",
         .b = {.samples = 4, .rows = 4, .starts = starts, .local16 = local16},
         .first = 2,
         .last = 2,
         .has_bias = 1,
         .expected = {10, 10, 10, 10}},
        {.name = "fixed",
         .b = {.samples = 3, .rows = 4, .per_sample = 2, .local16 = local16},
         .first = 1,
         .last = 3,
         .has_bias = 1,
         .expected = {12, 11, 11, 12}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t touches[4] = {10, 10, 10, 10};
        drps_batch_touches(&cases[i].b, cases[i].first, cases[i].last, cases[i].has_bias, touches);
        for (int l = 0; l < 4; l++)
            if (touches[l] != cases[i].expected[l])
                fail_msg("%s: row %d expected %u, found %u", cases[i].name, l, cases[i].expected[l],
                         touches[l]);
    }
}

static void test_rows_gather_copies_parameters(void **state)
{
    (void)state;
    for (size_t d = 0; d < DIMS; d++) {
        const struct drps_optim o = optim_of(DRPS_OPTIM_ADAGRAD, 0);
        const uint32_t dim = dims[d];
        struct table t;
        make_table(&t, &o, dim, 100);
        const struct drps_rows rows = rows_of(&t, t.base);
        float *params = must(calloc(t.m * dim, sizeof(float)));
        drps_rows_gather(&rows, dim, 10, 90, params);
        for (size_t i = 0; i < t.m; i++) {
            const float zeros[65] = {0};
            const void *expected = i >= 10 && i < 90 ? drps_row_at(&rows, i) : zeros;
            if (memcmp(params + i * dim, expected, dim * sizeof(float)) != 0)
                fail_msg("dim %u, seed %llu: row %zu differs", dim, (unsigned long long)seed, i);
        }
        free(params);
        drop_table(&t);
    }
}

static void test_optim_init_knows_the_kinds(void **state)
{
    static const struct {
        const char *kind;
        int code;
        uint32_t states;
    } cases[] = {{"sgd", 0, 0},
                 {"adagrad", 0, 1},
                 {"ftrl", 0, 2},
                 {"adam", 0, 2},
                 {"adamax", DRPS_E_CONFIG, 0},
                 {"", DRPS_E_CONFIG, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_optim o;
        const int rc = drps_optim_init(&o, cases[i].kind, &err);
        if (rc != cases[i].code)
            fail_msg("\"%s\": expected %d, found %d", cases[i].kind, cases[i].code, rc);
        if (rc) {
            assert_non_null(strstr(err.text, "none of sgd, adagrad, ftrl, adam"));
            continue;
        }
        assert_string_equal(drps_optim_name(o.kind), cases[i].kind);
        assert_int_equal(drps_optim_states(&o), cases[i].states);
        assert_true(o.lr > 0 && o.l1 == 0 && o.l2 == 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optim_steps_match_values_by_hand),
        cmocka_unit_test(test_optim_step_equals_the_twin_bit_for_bit),
        cmocka_unit_test(test_optim_step_does_not_depend_on_ranges),
        cmocka_unit_test(test_optim_what_is_no_number_stays_none),
        cmocka_unit_test(test_optim_empty_range_changes_nothing),
        cmocka_unit_test(test_optim_ftrl_init_reproduces_the_parameters),
        cmocka_unit_test(test_optim_init_row_zeroes_other_states),
        cmocka_unit_test(test_optim_intercept_is_not_regularised),
        cmocka_unit_test(test_optim_l1_spares_factors),
        cmocka_unit_test(test_optim_touches_weigh_regularisation),
        cmocka_unit_test(test_optim_adam_counts_the_steps_of_each_row),
        cmocka_unit_test(test_optim_adam_takes_any_count_that_a_file_holds),
        cmocka_unit_test(test_batch_touches_counts_samples),
        cmocka_unit_test(test_rows_gather_copies_parameters),
        cmocka_unit_test(test_optim_init_knows_the_kinds),
    };

    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
