/*
 * Strata that begin at any step, as they do where a run was cut: the rows and losses of one batch
 * after another, to the last bit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/step/drps_stratum.h"
#include "index/drps_index.h"
#include "support/index_case.h"

enum { SAMPLES = 4000, NAMES = 200, BATCH = 64 };

static struct drps_plan *make_plan(struct scratch *s)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, NAMES, 8), "lmf");
    c.options.factors = 4;
    c.options.order = "grid";
    c.options.grid_users = 2;
    c.options.grid_items = 2;
    c.options.lanes = 4;
    c.options.batch_size = BATCH;
    c.options.test_fraction = 0.1;
    struct drps_plan *plan = case_plan(&c);
    assert_int_equal(plan->info.lanes, 4);
    return plan;
}

/* What trains, without a job around it. */
struct bare {
    const struct drps_plan *plan;
    struct drps_server server;
    struct drps_worker worker;
    struct drps_feed *feed;
    double *loss; /* own: [batches] */
};

static void bare_begin(struct bare *b, const struct drps_plan *plan, unsigned members)
{
    const struct drps_plan_info *info = &plan->info;
    struct drps_store_config config = {.io = drps_io_os(), .open_steps = DRPS_STRATUM_BATCHES};
    const struct drps_worker_size size = {
        .samples = info->max_batch_samples, .rows = info->max_batch_rows, .members = members};
    struct drps_model model;
    struct drps_optim optim;
    *b = (struct bare){.plan = plan, .loss = calloc(info->batches, sizeof(*b->loss))};
    assert_non_null(b->loss);
    assert_int_equal(drps_model_init(&model, info->algo, info->loss, info->factors, 0, NULL), 0);
    assert_int_equal(drps_optim_init(&optim, "adagrad", NULL), 0);
    model.has_bias = drps_plan_common_rows(info) > 0;
    model.fixed_bias = 1;
    model.init_scale = 0.1f;
    drps_server_init(&b->server, &model, &optim);
    assert_int_equal(drps_server_open(&b->server, &drps_store_resident, &config, info->rows, NULL),
                     0);
    assert_int_equal(drps_worker_start(&b->worker, &b->server, &size, NULL), 0);
}

static void bare_end(struct bare *b)
{
    drps_worker_stop(&b->worker);
    drps_server_close(&b->server);
    free(b->loss);
}

static void start_feed(struct bare *b, uint64_t first, int keep)
{
    assert_int_equal(drps_feed_open(b->plan, 1, &b->feed, NULL), 0);
    assert_int_equal(drps_feed_start(b->feed, first, 2, 1 << 16, keep, NULL), 0);
}

static void train_one_by_one(struct bare *b)
{
    struct drps_feed_batch batch;
    start_feed(b, 0, 0);
    for (uint64_t i = 0; i < b->plan->info.batches; i++) {
        assert_int_equal(drps_feed_next(b->feed, &batch, NULL), 0);
        assert_int_equal(drps_server_open_step(&b->server, batch.ids, batch.body.rows, NULL), 0);
        b->loss[i] = drps_worker_train(&b->worker, &batch.body);
        assert_int_equal(drps_server_close_step(&b->server, 1, NULL), 0);
    }
    drps_feed_close(b->feed);
}

/* Trains from step `first` on with a feed and strata of its own, once. Returns the next step. */
static uint64_t train_once(struct bare *b, uint64_t first, size_t batches, int keep)
{
    const struct drps_plan_info *info = &b->plan->info;
    struct drps_stratum *stratum;
    struct drps_stratum_done done;
    struct drps_err err = DRPS_ERR_INIT;
    start_feed(b, first, keep);
    const struct drps_stratum_parts parts = {.info = info,
                                             .feed = b->feed,
                                             .server = &b->server,
                                             .worker = &b->worker,
                                             .batches = batches};
    assert_int_equal(drps_stratum_open(&parts, &stratum, NULL), 0);
    if (drps_stratum_train(stratum, info->batches - first, &done, &err)) fail_msg("%s", err.text);
    assert_true(done.n >= 1 && done.n <= batches);
    for (size_t i = 0; i < done.n; i++)
        b->loss[first + i] = done.batch[i].loss;
    drps_stratum_close(stratum);
    drps_feed_close(b->feed);
    return first + done.n;
}

static int copy_rows(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    const struct bare *b = ((void **)ctx)[0];
    char *out = ((void **)ctx)[1];
    (void)err;
    memcpy(out + first * b->server.row_bytes, rows, n * b->server.row_bytes);
    return 0;
}

/* All rows with their states; free() them. */
static char *rows_of(struct bare *b)
{
    char *rows = calloc(b->plan->info.rows, b->server.row_bytes);
    void *ctx[] = {b, rows};
    assert_non_null(rows);
    assert_int_equal(b->server.ops->scan(b->server.store, 0, copy_rows, ctx, NULL), 0);
    return rows;
}

static void assert_same_run(struct bare *want, struct bare *got)
{
    const struct drps_plan_info *info = &want->plan->info;
    char *a = rows_of(want), *b = rows_of(got);
    assert_memory_equal(want->loss, got->loss, info->batches * sizeof(*want->loss));
    assert_memory_equal(a, b, info->rows * want->server.row_bytes);
    free(a);
    free(b);
}

/* An epoch that is cut after every call, each time with room for another number of batches: strata
 * begin anywhere. */
static void test_stratum_begins_anywhere(void **state)
{
    static const size_t most[] = {1, 2, 3, 5, DRPS_STRATUM_BATCHES};
    enum { N = sizeof(most) / sizeof(*most) };
    struct drps_plan *plan = make_plan(*state);
    struct bare want, got;
    bare_begin(&want, plan, 1);
    train_one_by_one(&want);
    for (size_t k = 0; k <= N; k++) {
        size_t calls = 0;
        bare_begin(&got, plan, 1 + (unsigned)k % 3);
        for (uint64_t step = 0; step < plan->info.batches; calls++)
            step = train_once(&got, step, most[k < N ? k : calls % N], (int)(calls % 2));
        assert_true(k == 0 ? calls == plan->info.batches : calls < plan->info.batches);
        assert_same_run(&want, &got);
        bare_end(&got);
    }
    bare_end(&want);
    drps_plan_close(plan);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_stratum_begins_anywhere),
    };
    return cmocka_run_group_tests_name("stratum_begin", tests, NULL, NULL);
}
