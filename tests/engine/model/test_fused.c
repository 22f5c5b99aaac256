/*
 * A batch trained where its rows lie: rows, loss and the intercept's gradient have the bytes that
 * gathering, gradients and steps give one after another.
 *
 *   test_fused [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "engine/model/fused/drps_fused.h"

enum { SAMPLES_MOST = 700, FRAMES = 1500 };

static uint64_t seed = 20261127;
static uint64_t counter;

static uint64_t draw(uint64_t below)
{
    return drps_rng_at(seed, counter++) % below;
}

static float uniform(void)
{
    return 2 * drps_unit_float(drps_rng_at(seed, counter++)) - 1;
}

static const struct shape {
    const char *name;
    uint32_t factors;
    size_t samples, users, items; /* of which samples are drawn: few are used often */
    float l2;
    int wide, no_bias, fixed_bias, weights, one_row;
} shapes[] = {
    {.name = "rows used once", .factors = 16, .samples = 60, .users = 600, .items = 600},
    {.name = "rows used often", .factors = 16, .samples = 200, .users = 9, .items = 7, .l2 = .05f},
    {.name = "some of both", .factors = 16, .samples = 100, .users = 90, .items = 40, .l2 = .05f},
    {.name = "several chunks", .factors = 8, .samples = 700, .users = 300, .items = 200, .l2 = .1f},
    {.name = "32 factors", .factors = 32, .samples = 100, .users = 90, .items = 40},
    {.name = "1 factor", .factors = 1, .samples = 50, .users = 40, .items = 40, .l2 = .1f},
    {.name = "21 factors", .factors = 21, .samples = 100, .users = 90, .items = 40, .l2 = .1f},
    {.name = "wide", .factors = 16, .samples = 90, .users = 90, .items = 40, .wide = 1, .l2 = .1f},
    {.name = "no intercept", .factors = 16, .samples = 90, .users = 90, .items = 40, .no_bias = 1},
    {.name = "a fixed one",
     .factors = 16,
     .samples = 90,
     .users = 90,
     .items = 40,
     .fixed_bias = 1},
    {.name = "weights", .factors = 16, .samples = 300, .users = 90, .items = 40, .weights = 1},
    {.name = "the same row twice",
     .factors = 16,
     .samples = 40,
     .users = 40,
     .items = 40,
     .one_row = 1},
};

/* One batch, and two copies of its rows. */
struct bench {
    struct drps_model model;
    struct drps_optim optim;
    struct drps_batch b;
    float labels[SAMPLES_MOST], weights[SAMPLES_MOST];
    uint16_t local16[2 * SAMPLES_MOST];
    uint32_t local32[2 * SAMPLES_MOST], index[FRAMES];
    float *rows[2];
    size_t row_floats;
};

static void fill_batch(struct bench *t, const struct shape *s)
{
    const uint32_t bias = s->no_bias ? 0 : 1;
    t->b = (struct drps_batch){.samples = s->samples,
                               .rows = bias + s->users + s->items,
                               .nnz = 2 * s->samples,
                               .labels = t->labels,
                               .weights = s->weights ? t->weights : NULL,
                               .per_sample = 2,
                               .local16 = s->wide ? NULL : t->local16,
                               .local32 = s->wide ? t->local32 : NULL};
    for (size_t i = 0; i < s->samples; i++) {
        const uint32_t user = bias + (uint32_t)draw(s->users);
        const uint32_t item =
            s->one_row && i % 5 == 0 ? user : bias + (uint32_t)(s->users + draw(s->items));
        t->labels[i] = 1 + (float)draw(5);
        t->weights[i] = 1 + (float)draw(3);
        t->local32[2 * i] = t->local16[2 * i] = (uint16_t)user;
        t->local32[2 * i + 1] = t->local16[2 * i + 1] = (uint16_t)item;
    }
}

static void begin(struct bench *t, const struct shape *s)
{
    memset(t, 0, sizeof(*t));
    assert_int_equal(drps_model_init(&t->model, "lmf", NULL, s->factors, 0, NULL), 0);
    assert_int_equal(drps_optim_init(&t->optim, "adagrad", NULL), 0);
    t->model.has_bias = !s->no_bias;
    t->model.fixed_bias = s->fixed_bias;
    t->optim.l2 = s->l2;
    t->row_floats = 2 * (size_t)t->model.dim;
    fill_batch(t, s);
    for (size_t i = 0; i < FRAMES; i++)
        t->index[i] = (uint32_t)((i * 7 + 3) % FRAMES);
    for (int k = 0; k < 2; k++)
        assert_non_null(t->rows[k] = calloc(FRAMES * t->row_floats, sizeof(float)));
    for (size_t i = 0; i < FRAMES * t->row_floats; i++)
        t->rows[0][i] = i % t->row_floats < t->model.dim ? uniform() : 0;
    memcpy(t->rows[1], t->rows[0], FRAMES * t->row_floats * sizeof(float));
}

static struct drps_rows rows_of(const struct bench *t, int k)
{
    return (struct drps_rows){.base = (char *)t->rows[k],
                              .stride = t->row_floats * sizeof(float),
                              .index = t->index,
                              .n = t->b.rows};
}

/* Steps all rows but the intercept. */
static double train_plain(const struct bench *t, float *params, float *grads, float *scores)
{
    const struct drps_rows rows = rows_of(t, 0);
    const uint32_t dim = t->model.dim;
    uint32_t touches[FRAMES] = {0};
    drps_rows_gather(&rows, dim, 0, t->b.rows, params);
    memset(grads, 0, t->b.rows * dim * sizeof(*grads));
    const double loss =
        drps_model_gradient(&t->model, &t->b, 0, t->b.samples, params, grads, scores, NULL);
    drps_batch_touches(&t->b, 0, t->b.samples, t->model.has_bias, touches);
    drps_optim_step(&t->optim, dim, &rows, (size_t)t->model.has_bias, t->b.rows, grads, touches,
                    drps_model_common_rows(&t->model));
    return loss;
}

static void check_shape(const struct shape *s)
{
    struct bench t;
    begin(&t, s);
    const size_t floats = t.b.rows * t.model.dim;
    float *params = calloc(2 * floats, sizeof(*params)),
          *grads = calloc(2 * floats, sizeof(*grads));
    float scores[2][SAMPLES_MOST] = {{0}};
    assert_true(params && grads);
    assert_int_equal(drps_fused_fits(&t.model, &t.optim, &t.b), 1);
    for (int step = 0; step < 3; step++) {
        const struct drps_rows rows = rows_of(&t, 1);
        const struct drps_fused_room room = {
            .counts = params + floats, .grads = grads + floats, .scores = scores[1]};
        const double want = train_plain(&t, params, grads, scores[0]);
        const double got = drps_fused_train(&t.model, &t.optim, &t.b, &rows, &room);
        if (memcmp(&got, &want, sizeof(got)))
            fail_msg("%s, seed %llu: loss %.17g, plain %.17g", s->name, (unsigned long long)seed,
                     got, want);
        if (memcmp(t.rows[0], t.rows[1], FRAMES * t.row_floats * sizeof(float)))
            fail_msg("%s, seed %llu: other rows in step %d", s->name, (unsigned long long)seed,
                     step);
        assert_memory_equal(scores[0], scores[1], s->samples * sizeof(float));
        if (t.model.has_bias)
            assert_memory_equal(grads, grads + floats, t.model.dim * sizeof(float));
    }
    free(params);
    free(grads);
    free(t.rows[0]);
    free(t.rows[1]);
}

static void test_fused_is_plain(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++)
        check_shape(&shapes[k]);
}

/* What the plain way alone can do is not for it. */
static void test_fused_fits(void **state)
{
    static const float values[2 * SAMPLES_MOST];
    static const uint32_t starts[SAMPLES_MOST + 1];
    struct bench t;
    (void)state;
    begin(&t, &shapes[0]);
    struct drps_model model = t.model;
    struct drps_optim optim = t.optim;
    struct drps_batch b = t.b;
    assert_true(drps_fused_fits(&model, &optim, &b));
    optim.l1 = 0.1f;
    assert_false(drps_fused_fits(&model, &optim, &b));
    optim = t.optim;
    optim.kind = DRPS_OPTIM_SGD;
    assert_false(drps_fused_fits(&model, &optim, &b));
    b.values = values;
    assert_false(drps_fused_fits(&model, &t.optim, &b));
    b = t.b;
    b.starts = starts;
    assert_false(drps_fused_fits(&model, &t.optim, &b));
    b = t.b;
    b.per_sample = 1;
    assert_false(drps_fused_fits(&model, &t.optim, &b));
    assert_int_equal(drps_model_init(&model, "fm", NULL, 16, 0, NULL), 0);
    assert_false(drps_fused_fits(&model, &t.optim, &t.b));
    free(t.rows[0]);
    free(t.rows[1]);
}

static void test_it_pays_where_few_rows_have_several_samples(void **state)
{
    (void)state;
    assert_true(drps_fused_pays(&(struct drps_batch){.rows = 201, .nnz = 200}));
    assert_true(drps_fused_pays(&(struct drps_batch){.rows = 150, .nnz = 200}));
    assert_false(drps_fused_pays(&(struct drps_batch){.rows = 149, .nnz = 200}));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_is_plain),
        cmocka_unit_test(test_fused_fits),
        cmocka_unit_test(test_it_pays_where_few_rows_have_several_samples),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    return cmocka_run_group_tests_name("fused", tests, NULL, NULL);
}
