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
#include <string.h>

#include "engine/async/parts.h"

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
    s->plan.info.ranks.max_round_uses = 10;
    s->plan.info.max_batch_rows = 5;
    s->train.sync = mode;
    s->job = (struct async_job){.o = {.plan = &s->plan,
                                      .net = s->nets[0],
                                      .server = &s->server,
                                      .train = &s->train,
                                      .wait_ms = wait_ms},
                                .workers = WORKERS,
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
        cmocka_unit_test(test_failures_of_other_parts_end_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
