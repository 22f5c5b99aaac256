/*
 * Training where rows circulate between ranks: whatever the number of workers, the store, the
 * transport and the threads, the model has the bytes that one worker makes of the same lanes. Then
 * how it is stopped, resumed and refused.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/cluster/drps_circulation.h"
#include "engine/cluster/drps_messages.h"
#include "engine/cluster/drps_ranks.h"
#include "support/index_case.h"
#include "support/net_job.h"
#include "support/scratch.h"

enum { SAMPLES = 5000, NAMES = 150, BATCH = 40, LANES = 4, EPOCHS = 3, RANKS_MOST = 4 };

struct grid {
    uint32_t users, items;
};

/* Random ratings, and rows of so many factors. */
struct data {
    uint64_t seed;
    size_t names;
    uint32_t factors;
};
static const struct data usual_data = {8, NAMES, 5};

/* A plan of so many workers, in the folder of its name. */
static void make_plan_of(struct scratch *s, const struct data *data, const char *name,
                         uint32_t workers, struct grid grid, int no_bias)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, data->names, data->seed),
               "lmf");
    (void)snprintf(c.out, sizeof(c.out), "%s", scratch_path(s, name));
    c.options.out = c.out;
    c.options.factors = data->factors;
    c.options.order = "grid";
    c.options.grid_users = grid.users;
    c.options.grid_items = grid.items;
    c.options.lanes = LANES;
    c.options.workers = workers;
    c.options.batch_size = BATCH;
    c.options.test_fraction = 0.1;
    c.options.no_bias = no_bias;
    c.options.force = 1;
    if (drps_index_run(drps_io_os(), &c.options, &c.result, &err)) fail_msg("%s", err.text);
}

static void make_plan(struct scratch *s, const char *name, uint32_t workers, struct grid grid,
                      int no_bias)
{
    make_plan_of(s, &usual_data, name, workers, grid, no_bias);
}

static void make_plans(struct scratch *s, struct grid grid, int no_bias)
{
    make_plan(s, "plan-1", 1, grid, no_bias);
    make_plan(s, "plan-2", 2, grid, no_bias);
    make_plan(s, "plan-4", 4, grid, no_bias);
}

static struct drps_train_options usual(struct scratch *s)
{
    static char model[SCRATCH_PATH_BYTES];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    return (struct drps_train_options){.model_path = model,
                                       .replace = 1,
                                       .epochs = EPOCHS,
                                       .seed = 7,
                                       .init_scale = 0.1f,
                                       .memory_bytes = 512 << 20,
                                       .checkpoint_every = {.unit = DRPS_CHECKPOINT_NEVER}};
}

static int train(struct scratch *s, uint32_t workers, const struct drps_train_options *o,
                 struct drps_train_result *r, struct drps_err *err)
{
    char dir[SCRATCH_PATH_BYTES + 16];
    struct drps_plan *plan;
    (void)snprintf(dir, sizeof(dir), "%s-%u", scratch_path(s, "plan"), workers);
    const struct drps_ranks_options ranks = {
        .plan = dir, .train = o, .transport = DRPS_RANKS_INPROC, .wait_ms = 60000};
    if (workers > 1) return drps_ranks_run_local(&ranks, workers, r, err);
    int rc = drps_plan_open(drps_io_os(), dir, &plan, err);
    if (rc == 0) rc = drps_train_run(plan, o, r, err);
    drps_plan_close(plan);
    return rc;
}

static struct drps_train_result must_train(struct scratch *s, uint32_t workers,
                                           const struct drps_train_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    if (train(s, workers, o, &r, &err)) fail_msg("%u workers: %s", workers, err.text);
    return r;
}

/* Losses are sums in another order. */
static void assert_close(const char *what, double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * fabs(b))) fail_msg("%s: %.12g, not %.12g", what, a, b);
}

static void assert_same(const char *what, const struct drps_train_result *r,
                        const struct drps_train_result *want)
{
    if (r->content != want->content) fail_msg("%s: the model is another one", what);
    assert_int_equal(r->epochs_n, want->epochs_n);
    for (size_t e = 0; e < r->epochs_n; e++) {
        assert_close(what, r->epochs[e].train_loss, want->epochs[e].train_loss);
        assert_close(what, r->epochs[e].test.loss, want->epochs[e].test.loss);
        assert_close(what, r->epochs[e].test.rmse, want->epochs[e].test.rmse);
    }
}

static void assert_bytes_as_planned(const struct drps_train_result *r)
{
    uint64_t sent = 0, received = 0;
    for (size_t i = 0; i < r->ranks_n; i++) {
        assert_true(r->ranks[i].sent_bytes > 0);
        assert_int_equal(r->ranks[i].sent_bytes, r->ranks[i].forecast_sent_bytes);
        assert_int_equal(r->ranks[i].received_bytes, r->ranks[i].forecast_received_bytes);
        sent += r->ranks[i].sent_bytes;
        received += r->ranks[i].received_bytes;
    }
    assert_int_equal(sent, received);
}

/* --- the same bytes ----------------------------------------------------------------------------
 */

static void check_workers(struct scratch *s, const char *name, struct drps_train_options o,
                          const char *const *stores)
{
    struct drps_train_result want = must_train(s, 1, &o);
    for (; *stores; stores++)
        for (uint32_t workers = 2; workers <= RANKS_MOST; workers *= 2)
            for (o.threads = 1; o.threads <= 2; o.threads++) {
                char what[96];
                o.store = *stores;
                struct drps_train_result r = must_train(s, workers, &o);
                (void)snprintf(what, sizeof(what), "%s, %s, %u workers, %u threads", name, o.store,
                               workers, o.threads);
                assert_same(what, &r, &want);
                assert_bytes_as_planned(&r);
                drps_train_result_free(&r);
            }
    drps_train_result_free(&want);
}

static void test_the_model_does_not_depend_on_the_workers(void **state)
{
    static const struct {
        const char *name, *optimizer;
        float lr, l2;
        struct grid grid;
        int no_bias;
    } cases[] = {
        {"users outside", "adagrad", 0.1f, 0, {1, 2}, 0},
        {"items outside", "adagrad", 0.1f, 0, {2, 1}, 0},
        {"sgd with l2", "sgd", 0.02f, 0.01f, {1, 2}, 0},
        {"ftrl", "ftrl", 0.1f, 0, {1, 2}, 0},
        {"adam", "adam", 0.01f, 0.001f, {2, 1}, 0},
        {"no intercept", "adagrad", 0.1f, 0, {1, 2}, 1},
        {"a single cell", "sgd", 0.02f, 0, {1, 1}, 0},
        {"more cells", "sgd", 0.02f, 0, {1, 5}, 0},
    };
    static const char *const in_memory[] = {"resident", NULL};
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        struct drps_train_options o = usual(s);
        make_plans(s, cases[k].grid, cases[k].no_bias);
        o.optimizer = cases[k].optimizer;
        o.lr = cases[k].lr;
        o.l2 = cases[k].l2;
        check_workers(s, cases[k].name, o, in_memory);
    }
}

static void test_the_model_does_not_depend_on_the_store(void **state)
{
    static const char *const stores[] = {"relay", "file", NULL};
    struct scratch *s = *state;
    struct drps_train_options o = usual(s);
    make_plans(s, (struct grid){1, 2}, 0);
    o.optimizer = "adagrad";
    o.lr = 0.1f;
    check_workers(s, "stores", o, stores);
}

/* The least memory of all ranks that such a run takes, by their own refusals. */
static uint64_t least_memory(struct scratch *s, uint32_t workers, struct drps_train_options o)
{
    for (o.memory_bytes = workers;;) {
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = train(s, workers, &o, &r, &err);
        drps_train_result_free(&r);
        if (rc == 0) return o.memory_bytes;
        const char *at = strstr(err.text, "at least ");
        const double mib = at ? strtod(at + strlen("at least "), NULL) : 0;
        const uint64_t more = workers * (uint64_t)(mib * (1 << 20) + 1);
        if (more <= o.memory_bytes) fail_msg("%s", err.text);
        o.memory_bytes = more;
    }
}

/* Rows that have arrived leave the memory before they are used again. */
static void test_ranges_go_to_disk_where_memory_is_short(void **state)
{
    static const char *const stores[] = {"relay", "file"};
    static const struct data large = {8, 2000, 60};
    struct scratch *s = *state;
    make_plan_of(s, &large, "plan-1", 1, (struct grid){1, 2}, 0);
    make_plan_of(s, &large, "plan-2", 2, (struct grid){1, 2}, 0);
    struct drps_train_options o = usual(s);
    struct drps_train_result want = must_train(s, 1, &o);
    for (size_t k = 0; k < sizeof(stores) / sizeof(*stores); k++)
        for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
            o = usual(s);
            o.store = stores[k];
            o.one_by_one = one_by_one;
            o.threads = one_by_one ? 1 : 2;
            o.prefetch_steps = 1;
            o.memory_bytes = least_memory(s, 2, o);
            struct drps_train_result r = must_train(s, 2, &o);
            assert_same(stores[k], &r, &want);
            assert_true(r.ranks[0].written_bytes > 0 && r.ranks[1].read_bytes > 0);
            drps_train_result_free(&r);
        }
    drps_train_result_free(&want);
}

static void test_one_after_another_is_the_same(void **state)
{
    struct scratch *s = *state;
    struct drps_train_options o = usual(s);
    make_plans(s, (struct grid){1, 2}, 0);
    struct drps_train_result want = must_train(s, 1, &o);
    o.one_by_one = 1;
    struct drps_train_result r = must_train(s, 2, &o);
    assert_same("one by one", &r, &want);
    drps_train_result_free(&r);
    drps_train_result_free(&want);
}

/* --- stopping and going on ---------------------------------------------------------------------
 */

struct stopping {
    atomic_int stop;
    uint64_t after;
};

static void stop_after(void *ctx, const struct drps_epoch *epoch)
{
    struct stopping *t = ctx;
    if (epoch->epoch == t->after) atomic_store(&t->stop, 1);
}

static void test_training_stops_between_epochs_and_goes_on(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    struct scratch *s = *state;
    make_plans(s, (struct grid){1, 2}, 0);
    struct drps_train_options o = usual(s);
    struct drps_train_result want = must_train(s, 1, &o);
    for (size_t k = 0; k < sizeof(stores) / sizeof(*stores); k++)
        for (uint32_t workers = 2; workers <= RANKS_MOST; workers *= 2) {
            struct stopping t = {.after = 1 + k % 2};
            struct drps_train_result r;
            struct drps_err err = DRPS_ERR_INIT;
            o = usual(s);
            o.store = stores[k];
            o.checkpoint_every.unit = DRPS_CHECKPOINT_USUAL;
            o.stop = &t.stop;
            o.on_epoch = stop_after;
            o.ctx = &t;
            assert_int_equal(train(s, workers, &o, &r, &err), DRPS_E_INTERRUPTED);
            assert_int_equal(r.epochs_n, t.after);
            assert_int_equal(r.steps, 0);
            drps_train_result_free(&r);
            atomic_store(&t.stop, 0);
            o.resume = 1;
            o.replace = 0;
            o.on_epoch = NULL;
            r = must_train(s, workers, &o);
            assert_int_equal(r.resumed_epoch, t.after + 1);
            assert_same(stores[k], &r, &want);
            drps_train_result_free(&r);
        }
    drps_train_result_free(&want);
}

/* Rows of an earlier run are found by name; its intercept goes to all ranks. */
static void test_training_begins_with_the_rows_of_an_earlier_run(void **state)
{
    struct scratch *s = *state;
    char from[SCRATCH_PATH_BYTES];
    (void)snprintf(from, sizeof(from), "%s", scratch_path(s, "earlier"));
    const struct data other = {9, NAMES, 5}; /* of another mean rating */
    make_plan_of(s, &other, "plan-1", 1, (struct grid){1, 2}, 0);
    struct drps_train_options o = usual(s);
    o.model_path = from;
    o.epochs = 1;
    struct drps_train_result r = must_train(s, 1, &o);
    drps_train_result_free(&r);
    make_plans(s, (struct grid){1, 2}, 0);
    o = usual(s);
    o.from = from;
    struct drps_train_result want = must_train(s, 1, &o);
    for (uint32_t workers = 2; workers <= RANKS_MOST; workers *= 2) {
        r = must_train(s, workers, &o);
        assert_same("from a model", &r, &want);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&want);
}

/* Rows have the same numbers for any number of workers with the same lanes: checkpoints of one
 * number are rows to begin with for any other, to the bit. */
static void test_other_workers_go_on(void **state)
{
    static const uint32_t workers[] = {1, 2, 4};
    struct scratch *s = *state;
    char from[SCRATCH_PATH_BYTES + 16];
    (void)snprintf(from, sizeof(from), "%s.checkpoint", scratch_path(s, "earlier"));
    make_plans(s, (struct grid){1, 2}, 0);
    struct drps_train_options o = usual(s);
    struct drps_train_result want = must_train(s, 1, &o);
    o.model_path = scratch_path(s, "earlier");
    o.epochs = EPOCHS - 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every = (struct drps_checkpoint_every){.unit = DRPS_CHECKPOINT_EPOCHS, .n = 1};
    struct drps_train_result r = must_train(s, 2, &o);
    drps_train_result_free(&r);
    for (size_t k = 0; k < sizeof(workers) / sizeof(*workers); k++) {
        o = usual(s);
        o.from = from;
        o.epochs = 1;
        r = must_train(s, workers[k], &o);
        if (r.content != want.content) fail_msg("%u workers went on to another model", workers[k]);
        drps_train_result_free(&r);
    }
    drps_train_result_free(&want);
}

/* --- what is refused ---------------------------------------------------------------------------
 */

static void expect(struct scratch *s, const struct drps_train_options *o, int code,
                   const char *says)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = train(s, 2, o, &r, &err);
    if (rc != code || !strstr(err.text, says)) fail_msg("%d: %s", rc, err.text);
    drps_train_result_free(&r);
}

/* Ratings of 1, but for one user's. */
static void make_steep_plan(struct scratch *s, unsigned steep)
{
    enum { USERS = 8, ITEMS = 20, LINE = 32 };
    static char text[USERS * ITEMS * LINE];
    struct drps_err err = DRPS_ERR_INIT;
    struct case_run c;
    size_t n = 0;
    for (unsigned u = 0; u < USERS; u++)
        for (unsigned i = 0; i < ITEMS; i++)
            n +=
                (size_t)snprintf(text + n, LINE, "u%u\ti%u\t%s\n", u, i, u == steep ? "1e30" : "1");
    scratch_write(scratch_path(s, "steep"), text, n);
    case_begin(&c, s, scratch_path(s, "steep"), "lmf");
    (void)snprintf(c.out, sizeof(c.out), "%s", scratch_path(s, "plan-2"));
    c.options.out = c.out;
    c.options.order = "grid";
    c.options.workers = 2;
    c.options.no_bias = 1;
    c.options.force = 1;
    if (drps_index_run(drps_io_os(), &c.options, &c.result, &err)) fail_msg("%s", err.text);
}

/* Where one rank alone diverges at first, rank 0 ends as that one does. */
static void test_all_hear_of_a_rank_that_diverges(void **state)
{
    struct scratch *s = *state;
    for (unsigned steep = 0; steep < 4; steep++) {
        struct drps_train_options o = usual(s);
        make_steep_plan(s, steep);
        o.optimizer = "sgd";
        o.lr = 0.1f;
        expect(s, &o, -ERANGE, "diverged");
    }
}

static void test_what_does_not_fit_is_refused(void **state)
{
    struct scratch *s = *state;
    make_plans(s, (struct grid){1, 2}, 0);
    struct drps_train_options o = usual(s);
    o.sync = DRPS_SCHED_ASP;
    expect(s, &o, DRPS_E_CONFIG, "rows circulate");
    o = usual(s);
    o.optimizer = "sgd";
    o.lr = 1e20f;
    expect(s, &o, -ERANGE, "diverged");
}

/* --- messages ----------------------------------------------------------------------------------
 */

enum { DIM = 2, RANGE_ROWS = 3 };

/* Rank 0 of two, which takes a range of three rows in two steps. */
struct taking {
    struct net_job job;
    struct drps_plan plan;
    struct drps_server server;
    struct drps_circulation *c;
    float frames[RANGE_ROWS + 1][2 * DIM];
    uint32_t index[RANGE_ROWS + 1];
};

static void take_begin(struct taking *t)
{
    static char dir[] = "plan";
    const struct drps_net_options net = {.queue_messages = 2};
    *t = (struct taking){.plan = {.dir = dir, .info = {.dim = DIM}}};
    t->plan.info.ranks = drps_plan_ranks_of(2, 2, 0);
    t->plan.info.ranks.rank = 0;
    t->plan.info.ranks.max_range_rows = RANGE_ROWS;
    t->server.model = (struct drps_model){.dim = DIM, .has_bias = 1};
    t->server.row_bytes = sizeof(t->frames[0]);
    net_job_open(&t->job, NET_INPROC, 2, &net);
    const struct drps_circulation_options options = {
        .plan = &t->plan, .net = t->job.nets[0], .server = &t->server, .wait_ms = 60000};
    assert_int_equal(drps_circulation_open(&options, &t->c, NULL), 0);
    for (uint32_t i = 0; i <= RANGE_ROWS; i++)
        t->index[i] = i;
}

static void take_end(struct taking *t)
{
    drps_circulation_close(t->c);
    net_job_close(&t->job);
}

/* A step of the intercept and the rows [first, end) of the range. */
static int step(struct taking *t, uint32_t hand_over, size_t first, size_t end,
                struct drps_err *err)
{
    uint32_t index[RANGE_ROWS + 1] = {0};
    const struct drps_batch batch = {.rows = 1 + end - first, .hand_over = hand_over};
    const struct drps_rows rows = {.base = (char *)t->frames,
                                   .stride = sizeof(t->frames[0]),
                                   .index = index,
                                   .n = 1 + end - first};
    for (size_t i = first; i < end; i++)
        index[1 + i - first] = (uint32_t)i + 1;
    return drps_circulation_step(t->c, &batch, &rows, err);
}

static void send(struct taking *t, uint8_t type, uint64_t round, size_t bytes)
{
    static const float values[(RANGE_ROWS + 1) * 2 * DIM] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const struct drps_piece piece = {values, bytes};
    const struct drps_net_send message = {
        .part = DRPS_NET_WORKER, .type = type, .round = round, .pieces = &piece, .n = 1};
    assert_int_equal(drps_net_send(t->job.nets[1], &message, 1000, NULL), 0);
}

static void test_a_range_is_taken_apart(void **state)
{
    struct taking t;
    (void)state;
    take_begin(&t);
    send(&t, DRPS_MESSAGE_RANGE, 0, RANGE_ROWS * sizeof(t.frames[0]));
    assert_int_equal(step(&t, DRPS_ARRIVES, 0, 2, NULL), 0);
    assert_int_equal(step(&t, DRPS_ARRIVES | DRPS_HANDS_LAST, 2, 3, NULL), 0);
    for (int i = 0; i < RANGE_ROWS * 2 * DIM; i++)
        assert_true(t.frames[1 + i / (2 * DIM)][i % (2 * DIM)] == (float)(i + 1));
    send(&t, DRPS_MESSAGE_RANGE, 1, sizeof(float) * DIM); /* of a row, parameters alone */
    assert_int_equal(step(&t, DRPS_ARRIVES | DRPS_HANDS_LAST | DRPS_HANDS_PARAMETERS, 2, 3, NULL),
                     0);
    assert_true(t.frames[3][0] == 1 && t.frames[3][2] == 11);
    for (int k = 0; k < 2 * DIM; k++)
        assert_true(t.frames[0][k] == 0); /* the intercept stays */
    take_end(&t);
}

static void test_other_messages_are_refused(void **state)
{
    static const struct {
        const char *name;
        uint8_t type;
        uint64_t round;
        size_t rows;
    } cases[] = {
        {"another type", DRPS_MESSAGE_GRADIENT, 0, 2},
        {"the next range", DRPS_MESSAGE_RANGE, 1, 2},
        {"fewer rows", DRPS_MESSAGE_RANGE, 0, 1},
        {"more rows", DRPS_MESSAGE_RANGE, 0, 3},
        {"none", DRPS_MESSAGE_RANGE, 0, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++)
        for (int pieces = 1; pieces <= 2; pieces++) {
            struct taking t;
            struct drps_err err = DRPS_ERR_INIT;
            take_begin(&t);
            send(&t, cases[k].type, cases[k].round, cases[k].rows * sizeof(t.frames[0]));
            int rc = pieces == 2 ? step(&t, DRPS_ARRIVES, 0, 1, &err) : 0;
            if (rc == 0) rc = step(&t, DRPS_ARRIVES | DRPS_HANDS_LAST, (size_t)pieces - 1, 2, &err);
            if (rc != DRPS_E_PROTO || !strstr(err.text, "rank 1"))
                fail_msg("%s in %d: %d '%s'", cases[k].name, pieces, rc, err.text);
            take_end(&t);
        }
}

static void test_a_range_that_is_too_large_does_not_depart(void **state)
{
    struct taking t;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    take_begin(&t);
    assert_int_equal(step(&t, DRPS_DEPARTS, 0, 3, &err), 0);
    assert_int_equal(step(&t, DRPS_DEPARTS | DRPS_HANDS_LAST, 0, 1, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "more than the 3 rows"));
    take_end(&t);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_the_model_does_not_depend_on_the_workers),
        SCRATCH_TEST(test_the_model_does_not_depend_on_the_store),
        SCRATCH_TEST(test_ranges_go_to_disk_where_memory_is_short),
        SCRATCH_TEST(test_one_after_another_is_the_same),
        SCRATCH_TEST(test_training_stops_between_epochs_and_goes_on),
        SCRATCH_TEST(test_training_begins_with_the_rows_of_an_earlier_run),
        SCRATCH_TEST(test_other_workers_go_on),
        SCRATCH_TEST(test_all_hear_of_a_rank_that_diverges),
        SCRATCH_TEST(test_what_does_not_fit_is_refused),
        cmocka_unit_test(test_a_range_is_taken_apart),
        cmocka_unit_test(test_other_messages_are_refused),
        cmocka_unit_test(test_a_range_that_is_too_large_does_not_depart),
    };
    return cmocka_run_group_tests_name("circulating", tests, NULL, NULL);
}
