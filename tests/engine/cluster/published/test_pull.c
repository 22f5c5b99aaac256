/*
 * Pulls that are filtered, on plans: exact ones change no bit of any model, others train, the same
 * whatever store and timing, and go on after an interrupt; what cannot be filtered is refused.
 *
 *   test_pull [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/published/drps_pull.h"
#include "support/world.h"

enum { BATCH = 32 };

static uint64_t seed = 20240613;

static struct drps_pull_counts pulled(const struct drps_train_result *r)
{
    struct drps_pull_counts sum = {0};
    for (size_t i = 0; i < r->ranks_n; i++) {
        const struct drps_pull_counts *c = &r->ranks[i].pull;
        sum.plain_bytes += c->plain_bytes;
        sum.sent_bytes += c->sent_bytes;
        sum.rows += c->rows;
        sum.unchanged += c->unchanged;
        sum.below += c->below;
    }
    return sum;
}

static uint64_t rows_of(const struct drps_train_result *r, enum drps_traffic_kind kind)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        rows += r->ranks[i].sent[kind].rows;
    return rows;
}

/* Train once more, and compare. */
static void check_same(const struct world *w, const struct drps_train_options *o, uint64_t content)
{
    struct drps_train_result r;
    world_train(w, o, &r);
    assert_int_equal(r.content, content);
    drps_train_result_free(&r);
}

/* ---- Exact ---- */

static const struct drps_pull_options exact = {.on = 1, .bits = 32};

/* Gradients that are held back leave rows as they are: these are not sent again. */
static void check_stamps(const struct world *w, struct drps_train_options o, int may_gain)
{
    struct drps_train_result r, plain;
    o.push = (struct drps_push_options){.on = 1, .phi = .3, .chance = 1};
    o.no_fresh = 1; /* nothing but what is left out makes messages longer or shorter */
    world_train(w, &o, &plain);
    o.pull = exact;
    world_train(w, &o, &r);
    const struct drps_pull_counts c = pulled(&r);
    assert_int_equal(r.content, plain.content);
    assert_true(c.unchanged > 0 || !may_gain);
    assert_int_equal(c.below, 0);
    assert_true(c.sent_bytes < c.plain_bytes || !may_gain);
    assert_int_equal(rows_of(&r, DRPS_TRAFFIC_UNCHANGED), c.unchanged);
    drps_train_result_free(&plain);
    drps_train_result_free(&r);
}

static void check_exact(uint32_t workers, const char *algo, enum case_format format,
                        const char *optimizer, uint64_t slots)
{
    struct world *w = world_begin_slots(workers, algo, format, BATCH, slots, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain, r;
    o.optimizer = optimizer;
    o.store = "resident";
    world_train(w, &o, &plain);
    assert_int_equal(pulled(&plain).plain_bytes, 0);
    o.pull = exact;
    world_train(w, &o, &r);
    assert_int_equal(r.content, plain.content);
    assert_true(pulled(&r).rows > 0);
    drps_train_result_free(&r);
    o.store = "relay";
    check_same(w, &o, plain.content);
    o.pull = (struct drps_pull_options){0};
    check_stamps(w, o, strcmp(algo, "lmf") == 0 && slots > 100);
    drps_train_result_free(&plain);
    world_end(w);
}

static void test_exact_pulls_change_nothing(void **state)
{
    static const struct {
        const char *algo;
        enum case_format format;
    } models[] = {
        {"lor", CASE_LIBSVM}, {"fm", CASE_LIBSVM}, {"lmf", CASE_RATINGS}, {"net", CASE_LIBFFM}};
    (void)state;
    for (size_t m = 0; m < 4; m++)
        for (uint32_t workers = 2; workers <= 4; workers++) {
            const int odd = (int)(m + workers) % 2;
            check_exact(workers, models[m].algo, models[m].format, "sgd", odd ? 20 : UINT64_MAX);
            check_exact(workers, models[m].algo, models[m].format, "adagrad",
                        odd ? UINT64_MAX : 20);
        }
}

/* ---- Lossy ---- */

static const struct drps_pull_options lossy[] = {
    {.on = 1, .bits = 16},
    {.on = 1, .bits = 8},
    {.on = 1, .bits = 32, .psi = .05, .decay = .1, .eps = 1},
    {.on = 1, .bits = 8, .psi = .05, .eps = .5},
};

static void check_lossy(const struct world *w, struct drps_train_options o,
                        const struct drps_train_result *plain, int both)
{
    struct drps_train_result r;
    world_train(w, &o, &r);
    const struct drps_pull_counts c = pulled(&r);
    assert_true(c.sent_bytes < c.plain_bytes);
    assert_true(o.pull.psi > 0 ? c.below > 0 : c.sent_bytes < c.plain_bytes * 6 / 10);
    assert_true(r.content != plain->content);
    assert_true(both || fabs(r.epochs[1].test.loss / plain->epochs[1].test.loss - 1) < .1);
    assert_int_equal(rows_of(&r, DRPS_TRAFFIC_BELOW), c.below);
    o.store = "relay";
    check_same(w, &o, r.content);
    o.no_overlap = 1;
    check_same(w, &o, r.content);
    o.no_fresh = 1;
    check_same(w, &o, r.content);
    drps_train_result_free(&r);
}

static void check_model(const char *algo, enum case_format format, uint64_t slots)
{
    struct world *w = world_begin_residuals(algo, format, BATCH, slots, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result plain;
    o.store = "resident";
    world_train(w, &o, &plain);
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++) {
        o.pull = lossy[i];
        if (strcmp(algo, "lor") == 0 && o.pull.bits == 8) o.pull.bits = 16;
        o.push = (struct drps_push_options){0};
        check_lossy(w, o, &plain, 0);
        o.push = (struct drps_push_options){.on = 1, .bits = 8, .top = .2};
        check_lossy(w, o, &plain, 1);
    }
    drps_train_result_free(&plain);
    world_end(w);
}

static void test_lossy_pulls_train(void **state)
{
    (void)state;
    check_model("lor", CASE_LIBSVM, UINT64_MAX);
    check_model("fm", CASE_LIBSVM, 40);
    check_model("lmf", CASE_RATINGS, UINT64_MAX);
    check_model("net", CASE_LIBFFM, UINT64_MAX);
}

/* A loss that is no number ends training as it does without filters. */
static void test_what_diverges_is_seen(void **state)
{
    struct world *w = world_begin_residuals("lmf", CASE_RATINGS, BATCH, UINT64_MAX, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    o.optimizer = "sgd";
    o.lr = 100;
    for (size_t i = 0; i < sizeof(lossy) / sizeof(*lossy); i++) {
        o.pull = lossy[i];
        const int rc = world_run(w, &o, &r, &err);
        assert_true(rc == DRPS_E_PEER_FAILED || rc == -ERANGE);
        if (!strstr(err.text, "diverged")) fail_msg("%zu: %s", i, err.text);
        drps_err_clear(&err);
        drps_train_result_free(&r);
    }
    world_end(w);
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
static void check_stop(const char *algo, enum case_format format,
                       const struct drps_pull_options *pull)
{
    struct world *w = world_begin_residuals(algo, format, 8, 60, seed);
    struct drps_train_options o = world_options(w);
    struct drps_train_result whole, r;
    struct drps_err err = DRPS_ERR_INIT;
    o.pull = *pull;
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
    o.pull = (struct drps_pull_options){0};
    o.resume = 1;
    world_train(w, &o, &r);
    assert_int_equal(r.resumed_epoch, 2);
    assert_int_equal(r.content, whole.content);
    assert_true(pulled(&r).rows > 0);
    drps_train_result_free(&r);
    drps_train_result_free(&whole);
    world_end(w);
}

static void test_ranks_stop_between_epochs(void **state)
{
    static const struct drps_pull_options falling = {.on = 1, .psi = .3, .decay = 3, .eps = .1};
    (void)state;
    check_stop("fm", CASE_LIBSVM, &lossy[3]);
    check_stop("fm", CASE_LIBSVM, &falling);
    check_stop("net", CASE_LIBFFM, &lossy[3]);
}

/* ---- Refused ---- */

static void check_refused(const struct world *w, const struct drps_train_options *o,
                          const char *why)
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
    o.pull = exact;
    check_refused(w, &o, "residual slots");
    world_end(w);
    w = world_begin_residuals("lor", CASE_LIBSVM, BATCH, 50, seed);
    o = world_options(w);
    o.pull = lossy[1];
    check_refused(w, &o, "send parameters in 16");
    o.pull = (struct drps_pull_options){.on = 1, .psi = .1, .eps = 1};
    o.sync = DRPS_SCHED_ASP;
    check_refused(w, &o, "filters of parameters");
    world_end(w);
}

/* Of a version that did not know who has copies. */
static void test_older_plans_are_refused(void **state)
{
    struct world *w = world_begin_residuals("lor", CASE_LIBSVM, BATCH, 50, seed);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *part;
    struct drps_pull *pull;
    (void)state;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 1, &part, NULL), 0);
    struct drps_plan older = *part;
    older.info.ranks.published_slots = 0;
    const struct drps_pull_job job = {.plan = &older, .options = &exact, .epoch = 1, .epochs = 1};
    assert_int_equal(drps_pull_open(&job, &pull, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "published slots"));
    assert_null(pull);
    drps_plan_close(part);
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_pulls_change_nothing),
        cmocka_unit_test(test_lossy_pulls_train),
        cmocka_unit_test(test_what_diverges_is_seen),
        cmocka_unit_test(test_ranks_stop_between_epochs),
        cmocka_unit_test(test_what_cannot_be_filtered_is_refused),
        cmocka_unit_test(test_older_plans_are_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
