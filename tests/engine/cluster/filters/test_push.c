/*
 * Pushes that are filtered, on plans: nothing is lost of any row over an epoch, filters that hold
 * nothing back change no bit of the model, others train, ranks stop and write checkpoints between
 * epochs, and what cannot be filtered is refused.
 *
 *   test_push [seed]
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
#include "engine/cluster/filters/drps_held.h"
#include "engine/cluster/filters/drps_push.h"
#include "support/round_rows.h"
#include "support/world.h"

enum { WORKERS = WORLD_WORKERS, BATCH = 32, ROWS_MOST = 4096 };

static uint64_t seed = 20240607;

/* ---- Nothing is lost ---- */

/* Worker 1 of a plan, and the sums of each of its rows. */
struct account {
    struct drps_plan *part[WORKERS];
    struct drps_push *push;
    struct drps_push_reader *reader;
    uint32_t dim;
    double *made, *sent, *size; /* own: [ROWS_MOST][dim] gradients, what arrived, and all sizes */
    uint64_t others;            /* another worker executes each so manieth batch; 0: none */
};

enum { WORKER = 1 };

static void add(double *sums, const float *values, uint32_t row, uint32_t dim)
{
    for (uint32_t k = 0; k < dim; k++)
        sums[(size_t)row * dim + k] += (double)values[k];
}

static float random_gradient(uint64_t i)
{
    const uint64_t x = drps_rng_at(seed, i);
    return (x & 8 ? 1.0F : -1.0F) * ldexpf(drps_unit_float(x), (int)(x >> 4 & 7) - 8);
}

static void arrive(struct account *a, uint32_t server, const uint32_t *rows, size_t n, size_t first,
                   const float *grads)
{
    const struct drps_push_shape shape = {n, a->dim, 0};
    unsigned char *data = malloc(drps_push_bound(&shape));
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t *touches;
    const float *arrived;
    const size_t bytes = drps_push_write(a->push, server, first, n, grads, NULL, data);
    assert_true(bytes <= drps_push_bound(&shape));
    if (drps_push_decode(a->reader, &shape, data, bytes, &arrived, &touches, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < n; i++)
        add(a->sent, arrived + i * a->dim, rows[first + i], a->dim);
    free(data);
}

/* What was held back of rows of a batch that another worker executes. */
static void arrive_held(struct account *a, const uint32_t *rows, size_t n, size_t first)
{
    const struct drps_push_shape shape = {n, a->dim, 0};
    unsigned char *data = malloc(drps_push_bound(&shape));
    uint32_t *list = malloc((n + 1) * sizeof(*list));
    float *values = malloc((n + 1) * a->dim * sizeof(*values));
    struct drps_held held = {list, values, 0};
    struct drps_err err = DRPS_ERR_INIT;
    const size_t bytes = drps_push_write_held(a->push, first, n, data);
    assert_true(bytes <= drps_push_bound(&shape));
    if (drps_held_decode(data, bytes, n, a->dim, &held, &err) < 0) fail_msg("%s", err.text);
    for (size_t i = 0; i < held.n; i++)
        add(a->sent, values + i * a->dim, rows[first + list[i]], a->dim);
    free(data);
    free(list);
    free(values);
}

/* A round of the worker; servers get theirs in any order. */
static void work(struct account *a, uint64_t round)
{
    static uint32_t rows[WORKERS * ROWS_MOST];
    size_t first[WORKERS + 1] = {0};
    for (uint32_t s = 0; s < WORKERS; s++)
        first[s + 1] = first[s] + round_rows(a->part[s], WORKER, round, rows + first[s]);
    const size_t n = first[WORKERS], own = first[WORKER + 1] - first[WORKER];
    struct drps_err err = DRPS_ERR_INIT;
    if (a->others && round % a->others == a->others - 1) {
        if (drps_push_skip(a->push, n, first[WORKER], own, &err) < 0) fail_msg("%s", err.text);
        for (uint32_t s = 0; s < WORKERS; s++)
            if (s != WORKER) arrive_held(a, rows, first[s + 1] - first[s], first[s]);
        return;
    }
    float *grads = calloc(n * a->dim + 1, sizeof(*grads));
    for (size_t i = 0; i < n * a->dim; i++)
        grads[i] = random_gradient(round * 100000 + i);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < a->dim; k++) {
            const size_t at = (size_t)rows[i] * a->dim + k;
            if (i >= first[WORKER] && i < first[WORKER + 1]) continue;
            a->made[at] += (double)grads[i * a->dim + k];
            a->size[at] += fabs((double)grads[i * a->dim + k]);
        }
    if (drps_push_begin(a->push, grads, n, first[WORKER], own, &err) < 0) fail_msg("%s", err.text);
    for (uint32_t s = 0; s < WORKERS; s++) {
        const uint32_t to = round % 2 ? s : WORKERS - 1 - s;
        if (to != WORKER) arrive(a, to, rows, first[to + 1] - first[to], first[to], grads);
    }
    free(grads);
}

static void check_account(const struct account *a)
{
    for (size_t i = 0; i < (size_t)ROWS_MOST * a->dim; i++)
        if (!(fabs(a->sent[i] - a->made[i]) <= 1e-6 * a->size[i]))
            fail_msg("%.9g arrived of %.9g", a->sent[i], a->made[i]);
    assert_true(drps_push_kept(a->push) <= 0);
}

static void check_nothing_is_lost(uint64_t slots, const struct drps_push_options *options,
                                  uint64_t others)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, BATCH, slots, seed);
    struct account a = {.others = others};
    struct drps_err err = DRPS_ERR_INIT;
    for (uint32_t r = 0; r < WORKERS; r++)
        if (drps_plan_open_rank(drps_io_os(), w->plan, r, &a.part[r], &err) < 0)
            fail_msg("%s", err.text);
    const struct drps_plan_info *info = &a.part[WORKER]->info;
    const struct drps_push_shape most = drps_push_most(info, 0);
    const struct drps_push_job job = {
        .plan = a.part[WORKER], .options = options, .epoch = 1, .epochs = 2, .seed = seed};
    a.dim = info->dim;
    a.made = calloc((size_t)ROWS_MOST * a.dim, sizeof(*a.made));
    a.sent = calloc((size_t)ROWS_MOST * a.dim, sizeof(*a.sent));
    a.size = calloc((size_t)ROWS_MOST * a.dim, sizeof(*a.size));
    a.reader = drps_push_reader_new(&most);
    if (drps_push_open(&job, &a.push, &err) < 0) fail_msg("%s", err.text);
    for (unsigned epoch = 0; epoch < 2; epoch++) {
        double most_kept = 0;
        for (uint64_t t = 0; t < info->batches; t++) {
            work(&a, t);
            most_kept = fmax(most_kept, drps_push_kept(a.push));
        }
        assert_true(most_kept > 0);
        check_account(&a);
    }
    const struct drps_push_counts *c = drps_push_counts(a.push);
    assert_true(c->sent_bytes < c->plain_bytes && c->whole_rows > 0 && c->whole_rows < c->rows);
    drps_push_close(a.push);
    drps_push_reader_free(a.reader);
    for (uint32_t r = 0; r < WORKERS; r++)
        drps_plan_close(a.part[r]);
    free(a.made);
    free(a.sent);
    free(a.size);
    world_end(w);
}

static const struct drps_push_options lossy[] = {
    {.on = 1, .bits = 8},
    {.on = 1, .bits = 16, .phi = .05, .decay = 1, .chance = .5},
    {.on = 1, .bits = 8, .top = .1},
    {.on = 1, .phi = .2, .chance = 1},
};

static void test_nothing_is_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++)
        for (uint64_t others = 0; others < 4; others += 2)
            check_nothing_is_lost(i % 2 ? UINT64_MAX : 40, &lossy[i], others);
}

/* ---- Training ---- */

static uint64_t pushed(const struct drps_train_result *r, uint64_t *plain_out)
{
    uint64_t sum = 0;
    *plain_out = 0;
    for (size_t i = 0; i < r->ranks_n; i++) {
        sum += r->ranks[i].push.sent_bytes;
        *plain_out += r->ranks[i].push.plain_bytes;
    }
    return sum;
}

static void check_model(const char *algo, enum case_format format, const char *optimizer, float l2)
{
    static const struct drps_push_options exact[] = {{.on = 1}, {.on = 1, .bits = 32, .chance = 1}};
    struct world *w = world_begin_residuals(algo, format, BATCH, 60, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain, r, again;
    uint64_t all;
    o.optimizer = optimizer;
    o.l2 = l2;
    world_train(w, &o, &plain);
    assert_int_equal(pushed(&plain, &all), 0);
    for (size_t i = 0; i < 2; i++) {
        o.push = exact[i];
        o.store = i ? "relay" : "resident";
        world_train(w, &o, &r);
        assert_int_equal(r.content, plain.content);
        assert_true(pushed(&r, &all) > 0);
        drps_train_result_free(&r);
    }
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++) {
        o.push = lossy[i];
        o.store = "resident";
        world_train(w, &o, &r);
        /* Small messages of 32-bit values of one row each gain nothing by marks. */
        assert_true(pushed(&r, &all) < all || !lossy[i].bits);
        assert_true(r.content != plain.content);
        assert_true(fabs(r.epochs[1].test.loss / plain.epochs[1].test.loss - 1) < .1);
        o.store = "relay";
        o.no_overlap = 1;
        world_train(w, &o, &again);
        assert_int_equal(again.content, r.content);
        o.no_overlap = 0;
        drps_train_result_free(&again);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&plain);
    world_end(w);
}

static void test_filters_that_hold_nothing_back_change_nothing(void **state)
{
    (void)state;
    check_model("lor", CASE_LIBSVM, "adagrad", 0);
    check_model("fm", CASE_LIBSVM, "adagrad", 0.001f);
    check_model("lmf", CASE_RATINGS, "sgd", 0);
}

/* ---- Stopping ---- */

static atomic_int stop;

static void stop_now(void *ctx, const struct drps_train_progress *p)
{
    (void)ctx;
    (void)p;
    atomic_store(&stop, 1);
}

/* What is interrupted ends with its epoch, and goes on as if it had not been, with its filters. */
static void check_stop(const struct drps_push_options *push)
{
    struct world *w = world_begin_residuals("fm", CASE_LIBSVM, 8, 60, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result whole, r;
    struct drps_err err = DRPS_ERR_INIT;
    o.push = *push;
    o.epochs = 3;
    world_train(w, &o, &whole);
    o.on_progress = stop_now;
    o.stop = &stop;
    atomic_store(&stop, 0);
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(r.epochs_n, 1);
    assert_int_equal(r.steps, 0);
    drps_train_result_free(&r);
    o.on_progress = NULL;
    o.stop = NULL;
    o.push = (struct drps_push_options){0};
    o.resume = 1;
    world_train(w, &o, &r);
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.content, whole.content);
    drps_train_result_free(&r);
    drps_train_result_free(&whole);
    world_end(w);
}

static void test_ranks_stop_between_epochs(void **state)
{
    static const struct drps_push_options random = {.on = 1, .phi = INFINITY, .chance = .4};
    (void)state;
    check_stop(&lossy[1]);
    check_stop(&lossy[2]);
    check_stop(&random);
}

/* ---- Refused ---- */

static void check_refused(struct world *w, const struct drps_train_options *o, const char *why)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(world_run(w, o, &r, &err), DRPS_E_CONFIG);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
    drps_train_result_free(&r);
}

static void test_what_cannot_be_filtered_is_refused(void **state)
{
    struct world *w = world_begin_residuals("lor", CASE_LIBSVM, BATCH, 0, seed);
    struct drps_train_options o = world_options(w);
    (void)state;
    o.push = lossy[0];
    check_refused(w, &o, "residual slots");
    o.sync = DRPS_SCHED_ASP;
    check_refused(w, &o, "residual slots");
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_filters_that_hold_nothing_back_change_nothing),
        cmocka_unit_test(test_ranks_stop_between_epochs),
        cmocka_unit_test(test_what_cannot_be_filtered_is_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
