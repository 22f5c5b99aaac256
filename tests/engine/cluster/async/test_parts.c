/*
 * Master, worker and server of asynchronous rounds, each alone, with the test in the place of the
 * others: what they say, and that they refuse what is not due. Whole runs are in test_async.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/async/parts.h"
#include "support/world.h"

enum { WORKERS = 2, STEPS = 5, WAIT_MS = 20000 };

struct stage {
    struct drps_net *nets[WORKERS];
    struct drps_plan plan;
    struct drps_server server;
    struct drps_train_options train;
    struct async_job job; /* of rank 0 */
};

static void stage_begin(struct stage *s, enum drps_sched_mode mode, uint32_t wait_ms)
{
    const struct drps_net_options net = {.count = WORKERS};
    memset(s, 0, sizeof(*s));
    assert_int_equal(drps_net_open_inproc(&net, s->nets, NULL), 0);
    s->plan.info.ranks = drps_plan_ranks_of(WORKERS, WORKERS, 0);
    s->plan.info.ranks.max_round_uses = 10;
    s->plan.info.max_batch_rows = 5;
    s->train.sync = mode;
    s->job = (struct async_job){.o = {.plan = &s->plan,
                                      .net = s->nets[0],
                                      .server = &s->server,
                                      .train = &s->train,
                                      .wait_ms = wait_ms},
                                .ranks = WORKERS,
                                .shape = &s->plan.info.ranks,
                                .dim = 1,
                                .steps = STEPS,
                                .window_steps = 2};
}

static void stage_end(struct stage *s)
{
    for (uint32_t r = 0; r < WORKERS; r++)
        drps_net_close(s->nets[r], 0, NULL);
}

static void say(struct stage *s, uint32_t from, enum drps_net_part part, uint8_t type, uint32_t tag,
                uint64_t round)
{
    const struct drps_net_send send = {.part = part, .type = type, .tag = tag, .round = round};
    assert_int_equal(drps_net_send(s->nets[from], &send, WAIT_MS, NULL), 0);
}

/* ---- The master ---- */

struct running {
    struct stage *stage;
    pthread_t thread;
    struct drps_err err;
    int rc;
};

static void *run_master(void *running)
{
    struct running *r = running;
    struct async_master *m;
    r->rc = drps_async_master_new(&r->stage->job, &m, &r->err);
    if (r->rc == 0) r->rc = drps_async_master_run(m, &r->err);
    drps_async_master_free(m);
    return NULL;
}

static void start_master(struct running *r, struct stage *s)
{
    *r = (struct running){.stage = s, .err = DRPS_ERR_INIT};
    assert_int_equal(pthread_create(&r->thread, NULL, run_master, r), 0);
}

/* The next message of the master to a worker. */
static struct drps_net_message hear(struct stage *s, uint32_t rank, enum drps_net_part part)
{
    struct drps_net_message *m;
    assert_int_equal(drps_net_receive(s->nets[rank], part, 0, WAIT_MS, &m, NULL), 0);
    const struct drps_net_message copy = *m;
    drps_net_message_free(m);
    return copy;
}

static void expect_go(struct stage *s, uint32_t rank, uint32_t share, uint64_t step)
{
    const struct drps_net_message m = hear(s, rank, DRPS_NET_WORKER);
    assert_int_equal(m.type, DRPS_MESSAGE_GO);
    assert_int_equal(m.tag, share);
    assert_int_equal(m.round, step);
}

static void expect_end(struct stage *s, uint32_t tag, uint64_t batches)
{
    for (uint32_t r = 0; r < WORKERS; r++)
        for (unsigned part = DRPS_NET_WORKER; part <= DRPS_NET_SERVER; part++) {
            const struct drps_net_message m = hear(s, r, (enum drps_net_part)part);
            assert_int_equal(m.type, DRPS_MESSAGE_END);
            assert_int_equal(m.tag, tag);
            assert_int_equal(m.round, batches);
            assert_int_equal(m.bytes, part == DRPS_NET_WORKER ? sizeof(struct async_end) : 0);
        }
}

/* Worker 1 stays with its first batch, and worker 0 does all else that two windows hold: its own,
 * then those of share 1. The third window opens when the first one is done. */
static void test_master_hands_out_what_a_slow_worker_leaves(void **state)
{
    struct stage s;
    struct running r;
    (void)state;
    stage_begin(&s, DRPS_SCHED_ASP, WAIT_MS);
    start_master(&r, &s);
    expect_go(&s, 1, 1, 0);
    static const struct {
        uint32_t share;
        uint64_t step;
    } order[] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}};
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        expect_go(&s, 0, order[i].share, order[i].step);
        say(&s, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, order[i].step);
    }
    say(&s, 1, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 0);
    expect_go(&s, 1, 1, 4); /* it asked first: worker 0 joins after it */
    expect_go(&s, 0, 0, 4);
    say(&s, 1, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 4);
    say(&s, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 4);
    expect_end(&s, 0, WORKERS * STEPS);
    (void)pthread_join(r.thread, NULL);
    if (r.rc < 0) fail_msg("%s", r.err.text);
    stage_end(&s);
}

static void test_master_waits_for_batches_under_way_before_it_stops(void **state)
{
    struct stage s;
    struct running r;
    (void)state;
    stage_begin(&s, DRPS_SCHED_SSP, WAIT_MS);
    start_master(&r, &s);
    expect_go(&s, 0, 0, 0);
    expect_go(&s, 1, 1, 0);
    say(&s, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, DRPS_MESSAGE_STOP, 0);
    say(&s, 1, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 0);
    expect_end(&s, DRPS_MESSAGE_STOP, 2);
    (void)pthread_join(r.thread, NULL);
    assert_int_equal(r.rc, 0);
    stage_end(&s);
}

static void test_master_names_who_is_late(void **state)
{
    struct stage s;
    struct running r;
    (void)state;
    stage_begin(&s, DRPS_SCHED_ASP, 100);
    start_master(&r, &s);
    expect_go(&s, 0, 0, 0);
    (void)pthread_join(r.thread, NULL);
    assert_int_equal(r.rc, -ETIMEDOUT);
    assert_string_equal(r.err.text,
                        "no batch was done within 100 ms; one is under way on rank 0, 1");
    stage_end(&s);
}

static void test_master_refuses_what_is_not_due(void **state)
{
    static const struct {
        uint8_t type, twice;
        int rc;
    } bad[] = {{DRPS_MESSAGE_GRADIENT, 0, DRPS_E_PROTO},
               {DRPS_MESSAGE_FAILED, 0, DRPS_E_PROTO}, /* another rank's */
               {DRPS_MESSAGE_ARRIVE, 1, -EINVAL}};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stage s;
        struct running r;
        stage_begin(&s, DRPS_SCHED_SSP, WAIT_MS);
        s.train.staleness = 1;
        start_master(&r, &s);
        say(&s, 1, DRPS_NET_MASTER, bad[i].type, 0, 0);
        for (unsigned n = 0; n < 2 && bad[i].twice; n++) /* at label 2 it is held */
            say(&s, 1, DRPS_NET_MASTER, bad[i].type, 0, 0);
        (void)pthread_join(r.thread, NULL);
        assert_int_equal(r.rc, bad[i].rc);
        assert_non_null(strstr(r.err.text, bad[i].rc == -EINVAL ? "worker 1" : "rank 1 sent"));
        stage_end(&s);
    }
}

/* ---- The worker ---- */

static void test_worker_refuses_what_is_not_due(void **state)
{
    static const struct {
        uint32_t from, tag;
        uint8_t type;
        uint64_t round;
    } bad[] = {
        {0, 0, DRPS_MESSAGE_GO, STEPS},     /* no such step */
        {0, WORKERS, DRPS_MESSAGE_GO, 0},   /* no such share */
        {1, 0, DRPS_MESSAGE_GO, 0},         /* not the master's */
        {0, 0, DRPS_MESSAGE_END, 0},        /* without its counters */
        {1, 0, DRPS_MESSAGE_PARAMETERS, 0}, /* of no batch */
        {1, 0, DRPS_MESSAGE_RECORD, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stage s;
        struct async_worker *w;
        struct drps_round round;
        struct drps_err err = DRPS_ERR_INIT;
        stage_begin(&s, DRPS_SCHED_ASP, WAIT_MS);
        assert_int_equal(drps_async_worker_new(&s.job, &w, NULL), 0);
        drps_async_worker_begin(w);
        say(&s, bad[i].from, DRPS_NET_WORKER, bad[i].type, bad[i].tag, bad[i].round);
        assert_int_equal(drps_async_worker_step(w, &round, &err), DRPS_E_PROTO);
        assert_non_null(strstr(err.text, "which was not due"));
        drps_async_worker_free(w);
        stage_end(&s);
    }
}

/* ---- The server ---- */

static void test_server_refuses_what_is_not_due(void **state)
{
    static const struct {
        uint32_t from, tag;
        uint8_t type;
        uint64_t round;
    } bad[] = {
        {1, 0, DRPS_MESSAGE_PULL, STEPS},              /* no such step */
        {1, WORKERS, DRPS_MESSAGE_PULL, 0},            /* no such share */
        {1, 0, DRPS_MESSAGE_GRADIENT, 0},              /* of a step that is not open */
        {1, WORKERS, DRPS_MESSAGE_GRADIENT, 0},        /* no such share */
        {0, 0, DRPS_MESSAGE_END, WORKERS * STEPS + 1}, /* more batches than there are */
        {1, 0, DRPS_MESSAGE_END, 0},                   /* not the master's */
        {1, 0, DRPS_MESSAGE_ARRIVE, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stage s;
        struct async_server *server;
        struct drps_err err = DRPS_ERR_INIT;
        stage_begin(&s, DRPS_SCHED_ASP, WAIT_MS);
        assert_int_equal(drps_async_server_new(&s.job, &server, NULL), 0);
        say(&s, bad[i].from, DRPS_NET_SERVER, bad[i].type, bad[i].tag, bad[i].round);
        assert_int_equal(drps_async_server_run(server, &err), DRPS_E_PROTO);
        assert_non_null(strstr(err.text, "which was not due"));
        drps_async_server_free(server);
        stage_end(&s);
    }
}

/* Rows of a batch are on their way to each worker at once: as many as the batch has, or those of a
 * round that the server has if they are fewer. */
static void test_server_has_a_buffer_for_each_worker(void **state)
{
    static const struct {
        uint64_t round_uses, part_rows;
    } cases[] = {{3000, 1000}, {100, 100}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_plan_info info = {.dim = 8,
                                      .max_batch_rows = 1000,
                                      .ranks = {.count = 2, .max_round_uses = cases[i].round_uses}};
        assert_int_equal(drps_async_part_rows(&info), cases[i].part_rows);
        const uint64_t two = drps_async_memory(&info, 0);
        info.ranks.count = 5;
        assert_true(drps_async_memory(&info, 0) - two >=
                    3 * cases[i].part_rows * info.dim * sizeof(float));
    }
}

/* ---- The server, with rows ---- */

enum { RANKS = WORLD_WORKERS };

/* Rank 0's server of a plan, in a thread; the test is the worker of ranks 1 and 2. */
struct serving {
    struct world *world;
    struct drps_plan *part;
    struct drps_feed *feed;
    struct drps_server server;
    struct drps_net *nets[RANKS];
    struct async_job job;
    struct async_server *async;
    pthread_t thread;
    struct drps_err err;
    int rc;
};

/* A store that holds two steps, and says so itself. */
static uint64_t steps_closed;

static int open_reluctantly(struct drps_store *st, uint64_t step, const uint32_t *ids, size_t n,
                            struct drps_rows *rows, struct drps_err *err)
{
    if (step >= steps_closed + 2) return -EAGAIN;
    return drps_store_resident.step_open(st, step, ids, n, rows, err);
}

static int close_and_count(struct drps_store *st, uint64_t step, int changed, struct drps_err *err)
{
    steps_closed++;
    return drps_store_resident.step_close(st, step, changed, err);
}

static void *run_server(void *serving)
{
    struct serving *s = serving;
    s->rc = drps_async_server_run(s->async, &s->err);
    return NULL;
}

static void serving_begin(struct serving *s, const struct drps_store_ops *ops,
                          uint64_t window_steps)
{
    struct drps_model model;
    struct drps_optim optim;
    struct drps_store_config config = {.io = drps_io_os(), .open_steps = 8};
    struct drps_net_options net;
    memset(s, 0, sizeof(*s));
    s->world = world_begin("lor", CASE_LIBSVM, 32, 32, 5);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), s->world->plan, 0, &s->part, NULL), 0);
    const struct drps_plan_info *info = &s->part->info;
    assert_int_equal(drps_model_init(&model, info->algo, info->loss, 0, 1, NULL), 0);
    model.has_bias = 1;
    assert_int_equal(drps_optim_init(&optim, "sgd", NULL), 0);
    drps_server_init(&s->server, &model, &optim);
    assert_int_equal(drps_server_open(&s->server, ops, &config, info->rows, NULL), 0);
    assert_int_equal(drps_feed_open(s->part, 1, &s->feed, NULL), 0);
    assert_int_equal(drps_feed_start(s->feed, 0, 1, 1 << 20, 0, NULL), 0);
    drps_train_net_options(s->part, &net);
    assert_int_equal(drps_net_open_inproc(&net, s->nets, NULL), 0);
    s->job = (struct async_job){.o = {.plan = s->part,
                                      .net = s->nets[0],
                                      .feed = s->feed,
                                      .server = &s->server,
                                      .wait_ms = WAIT_MS},
                                .ranks = RANKS,
                                .shape = &info->ranks,
                                .dim = info->dim,
                                .steps = info->batches,
                                .window_steps = window_steps};
    assert_true(info->batches > 4);
    assert_int_equal(drps_async_server_new(&s->job, &s->async, NULL), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run_server, s), 0);
}

static void serving_end(struct serving *s)
{
    for (uint32_t r = 0; r < RANKS; r++)
        drps_net_close(s->nets[r], 0, NULL);
    drps_async_server_free(s->async);
    drps_feed_close(s->feed);
    drps_server_close(&s->server);
    drps_plan_close(s->part);
    world_end(s->world);
}

static void send_to_server(struct serving *s, uint32_t rank, uint8_t type, uint32_t share,
                           uint64_t step, const void *data, size_t bytes)
{
    const struct drps_piece piece = {data, bytes};
    const struct drps_net_send send = {.part = DRPS_NET_SERVER,
                                       .type = type,
                                       .tag = share,
                                       .round = step,
                                       .pieces = &piece,
                                       .n = 1};
    assert_int_equal(drps_net_send(s->nets[rank], &send, WAIT_MS, NULL), 0);
}

/* What the server answers to a pull; bytes of the parameters. */
static size_t expect_parameters(struct serving *s, uint32_t rank, uint32_t share, uint64_t step)
{
    struct drps_net_message *m;
    for (unsigned record = share == 0;; record = 0) { /* rank 0's own batch comes first */
        assert_int_equal(drps_net_receive(s->nets[rank], DRPS_NET_WORKER, 0, WAIT_MS, &m, NULL), 0);
        assert_int_equal(m->type, record ? DRPS_MESSAGE_RECORD : DRPS_MESSAGE_PARAMETERS);
        assert_int_equal(m->round, step);
        const size_t bytes = m->bytes;
        drps_net_message_free(m);
        if (!record) return bytes;
    }
}

static void push_zeros(struct serving *s, uint32_t rank, uint32_t share, uint64_t step,
                       size_t bytes)
{
    void *zeros = calloc(1, bytes + 1);
    assert_non_null(zeros);
    send_to_server(s, rank, DRPS_MESSAGE_GRADIENT, share, step, zeros, bytes);
    free(zeros);
}

static void execute(struct serving *s, uint32_t rank, uint32_t share, uint64_t step)
{
    send_to_server(s, rank, DRPS_MESSAGE_PULL, share, step, NULL, 0);
    push_zeros(s, rank, share, step, expect_parameters(s, rank, share, step));
}

static void expect_nothing(struct serving *s, uint32_t rank)
{
    struct drps_net_message *m;
    assert_int_equal(drps_net_receive(s->nets[rank], DRPS_NET_WORKER, 0, 0, &m, NULL), -ETIMEDOUT);
}

/* A pull of step 2 comes first, while there is room for two steps: it is answered when step 0 is
 * complete, and not before. */
static void check_aside(const struct drps_store_ops *ops, uint64_t window_steps)
{
    struct serving s;
    steps_closed = 0;
    serving_begin(&s, ops, window_steps);
    send_to_server(&s, 1, DRPS_MESSAGE_PULL, 1, 2, NULL, 0);
    execute(&s, 2, 2, 1); /* step 1 is open */
    execute(&s, 2, 0, 0);
    execute(&s, 2, 2, 0);
    send_to_server(&s, 2, DRPS_MESSAGE_PULL, 1, 0, NULL, 0);
    const size_t bytes = expect_parameters(&s, 2, 1, 0);
    expect_nothing(&s, 1); /* all that came before is served */
    push_zeros(&s, 2, 1, 0, bytes);
    push_zeros(&s, 1, 1, 2, expect_parameters(&s, 1, 1, 2));
    send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 5, NULL, 0);
    (void)pthread_join(s.thread, NULL);
    if (s.rc < 0) fail_msg("%s", s.err.text);
    assert_int_equal(steps_closed, ops == &drps_store_resident ? 0 : 3); /* two not complete */
    serving_end(&s);
}

static void test_server_puts_a_pull_aside_until_its_step_can_open(void **state)
{
    struct drps_store_ops reluctant = drps_store_resident;
    (void)state;
    reluctant.step_open = open_reluctantly;
    reluctant.step_close = close_and_count;
    check_aside(&drps_store_resident, 1); /* its own ring is full */
    check_aside(&reluctant, 4);           /* the store says no */
}

static void test_server_takes_each_gradient_once(void **state)
{
    struct serving s;
    (void)state;
    serving_begin(&s, &drps_store_resident, 4);
    send_to_server(&s, 1, DRPS_MESSAGE_PULL, 1, 0, NULL, 0);
    const size_t bytes = expect_parameters(&s, 1, 1, 0);
    push_zeros(&s, 1, 1, 0, bytes);
    push_zeros(&s, 2, 1, 0, bytes);
    (void)pthread_join(s.thread, NULL);
    assert_int_equal(s.rc, DRPS_E_PROTO);
    assert_non_null(strstr(s.err.text, "rank 2 sent the server message 17"));
    serving_end(&s);

    serving_begin(&s, &drps_store_resident, 4);
    send_to_server(&s, 1, DRPS_MESSAGE_PULL, 1, 0, NULL, 0);
    push_zeros(&s, 1, 1, 0, expect_parameters(&s, 1, 1, 0) + 4); /* a row too many */
    (void)pthread_join(s.thread, NULL);
    assert_int_equal(s.rc, DRPS_E_PROTO);
    serving_end(&s);
}

static void test_failures_of_other_parts_end_each(void **state)
{
    struct stage s;
    struct running r;
    struct async_worker *w;
    struct async_server *server;
    struct drps_round round;
    (void)state;
    stage_begin(&s, DRPS_SCHED_ASP, WAIT_MS);
    assert_int_equal(drps_async_worker_new(&s.job, &w, NULL), 0);
    assert_int_equal(drps_async_server_new(&s.job, &server, NULL), 0);
    drps_async_tell_failed(&s.job, DRPS_NET_WORKER); /* before the master's first message */
    drps_async_tell_failed(&s.job, DRPS_NET_SERVER);
    drps_async_tell_failed(&s.job, DRPS_NET_MASTER);
    start_master(&r, &s);
    assert_int_equal(drps_async_worker_step(w, &round, NULL), DRPS_E_CLOSED);
    assert_int_equal(drps_async_server_run(server, NULL), DRPS_E_CLOSED);
    (void)pthread_join(r.thread, NULL);
    assert_int_equal(r.rc, DRPS_E_CLOSED);
    drps_async_worker_free(w);
    drps_async_server_free(server);
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_master_hands_out_what_a_slow_worker_leaves),
        cmocka_unit_test(test_master_waits_for_batches_under_way_before_it_stops),
        cmocka_unit_test(test_master_names_who_is_late),
        cmocka_unit_test(test_master_refuses_what_is_not_due),
        cmocka_unit_test(test_worker_refuses_what_is_not_due),
        cmocka_unit_test(test_server_refuses_what_is_not_due),
        cmocka_unit_test(test_server_has_a_buffer_for_each_worker),
        cmocka_unit_test(test_server_puts_a_pull_aside_until_its_step_can_open),
        cmocka_unit_test(test_server_takes_each_gradient_once),
        cmocka_unit_test(test_failures_of_other_parts_end_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
