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

struct ahead_go {
    uint32_t rank, tag;
    uint64_t step, needs[WORKERS];
};

static void expect_ahead_go(struct stage *s, const struct ahead_go *go)
{
    struct drps_net_message *m;
    assert_int_equal(drps_net_receive(s->nets[go->rank], DRPS_NET_WORKER, 0, WAIT_MS, &m, NULL), 0);
    assert_int_equal(m->type, DRPS_MESSAGE_GO);
    assert_int_equal(m->tag, go->tag);
    assert_int_equal(m->round, go->step);
    assert_int_equal(m->bytes, sizeof(go->needs));
    assert_memory_equal(m->data, go->needs, sizeof(go->needs));
    drps_net_message_free(m);
}

/* With a bound of 1. Worker 0 runs ahead until it is held: it must pull anew, and what it has asked
 * for could not contain more. Worker 1 has slack all the time. */
static void test_master_says_who_may_ask_ahead(void **state)
{
    enum { AHEAD = ASYNC_GO_AHEAD, ANEW = ASYNC_GO_ANEW };
    struct stage s;
    struct running r;
    (void)state;
    stage_begin(&s, DRPS_SCHED_SSP, WAIT_MS);
    s.train.staleness = 1;
    s.train.no_claim = 1;
    s.job.ahead = s.job.has_needs = 1;
    s.job.bound = 1;
    start_master(&r, &s);
    expect_ahead_go(&s, &(struct ahead_go){0, 0 | AHEAD | ANEW, 0, {0, 0}});
    expect_ahead_go(&s, &(struct ahead_go){1, 1 | AHEAD | ANEW, 0, {0, 0}});
    say(&s, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 0);
    expect_ahead_go(&s, &(struct ahead_go){0, 0, 1, {0, 0}});
    say(&s, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 1); /* held */
    say(&s, 1, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 0);
    expect_ahead_go(&s, &(struct ahead_go){0, 0 | ANEW, 2, {1, 1}});
    expect_ahead_go(&s, &(struct ahead_go){1, 1 | AHEAD, 1, {1, 1}});
    say(&s, 1, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 1);
    expect_ahead_go(&s, &(struct ahead_go){1, 1 | AHEAD, 2, {2, 2}});
    say(&s, 1, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, DRPS_MESSAGE_STOP, 2);
    say(&s, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, 2);
    expect_end(&s, DRPS_MESSAGE_STOP, 6);
    (void)pthread_join(r.thread, NULL);
    assert_int_equal(r.rc, 0);
    stage_end(&s);
}

static void expect_claimed(struct stage *s, uint32_t rank, uint64_t end)
{
    const struct drps_net_message m = hear(s, rank, DRPS_NET_WORKER);
    assert_int_equal(m.type, DRPS_MESSAGE_CLAIMED);
    assert_int_equal(m.tag, rank);
    assert_int_equal(m.round, end);
    assert_int_equal(m.bytes, 0);
}

/* Worker 1 hears of its batches that worker 0 executes when it has none itself. */
static void test_master_says_what_others_execute(void **state)
{
    static const struct {
        uint32_t share;
        uint64_t step;
    } order[] = {{0, 0}, {0, 1}, {1, 1}, {0, 2}, {0, 3}};
    struct stage s;
    struct running r;
    (void)state;
    stage_begin(&s, DRPS_SCHED_SSP, WAIT_MS);
    s.train.staleness = 4;
    s.job.filters = 1;
    start_master(&r, &s);
    expect_go(&s, 1, 1, 0);
    for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
        expect_go(&s, 0, order[i].share, order[i].step);
        say(&s, 0, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, 0, order[i].step);
    }
    say(&s, 1, DRPS_NET_MASTER, DRPS_MESSAGE_ARRIVE, DRPS_MESSAGE_STOP, 0);
    expect_claimed(&s, 1, 2);
    expect_end(&s, DRPS_MESSAGE_STOP, 6);
    (void)pthread_join(r.thread, NULL);
    assert_int_equal(r.rc, 0);
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
        {1, 0, DRPS_MESSAGE_RECORD, 0},     {1, 0, DRPS_MESSAGE_AHEAD, 0},
        {0, 0, DRPS_MESSAGE_CLAIMED, 1}, /* nothing is held back */
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

static void test_worker_refuses_what_it_may_not_be_told(void **state)
{
    static const struct {
        int ahead, has_needs;
        uint32_t tag;
        size_t bytes;
    } bad[] = {
        {0, 0, ASYNC_GO_AHEAD, 0},             /* nobody pulls ahead */
        {0, 0, ASYNC_GO_ANEW, 0},              /* nobody does */
        {1, 0, 1 << 18, 0},                    /* no such flag */
        {1, 0, UINT32_MAX, 0},                 /* nor these */
        {0, 0, 0, WORKERS * sizeof(uint64_t)}, /* needs where there are none */
        {0, 1, 0, 0},                          /* none where there are */
        {0, 1, 0, WORKERS * sizeof(uint64_t) - 1},
        {0, 1, 0, (WORKERS + 1) * sizeof(uint64_t)},
    };
    static const uint64_t zeros[WORKERS + 1];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stage s;
        struct async_worker *w;
        struct drps_round round;
        const struct drps_piece piece = {zeros, bad[i].bytes};
        const struct drps_net_send send = {.part = DRPS_NET_WORKER,
                                           .type = DRPS_MESSAGE_GO,
                                           .tag = bad[i].tag,
                                           .pieces = &piece,
                                           .n = 1};
        stage_begin(&s, DRPS_SCHED_SSP, WAIT_MS);
        s.job.ahead = bad[i].ahead;
        s.job.has_needs = bad[i].has_needs;
        assert_int_equal(drps_async_worker_new(&s.job, &w, NULL), 0);
        drps_async_worker_begin(w);
        assert_int_equal(drps_net_send(s.nets[0], &send, WAIT_MS, NULL), 0);
        assert_int_equal(drps_async_worker_step(w, &round, NULL), DRPS_E_PROTO);
        drps_async_worker_free(w);
        stage_end(&s);
    }
}

static void test_worker_refuses_claims_that_are_none(void **state)
{
    static const struct {
        uint32_t from, tag;
        uint64_t round;
        size_t bytes;
    } bad[] = {
        {0, 0, 0, 0},         /* of no batch */
        {0, 0, STEPS + 1, 0}, /* no such step */
        {0, 1, 1, 0},         /* another's share */
        {1, 0, 1, 0},         /* not the master's */
        {0, 0, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stage s;
        struct async_worker *w;
        struct drps_round round;
        const struct drps_piece piece = {"", bad[i].bytes};
        const struct drps_net_send send = {.part = DRPS_NET_WORKER,
                                           .type = DRPS_MESSAGE_CLAIMED,
                                           .tag = bad[i].tag,
                                           .round = bad[i].round,
                                           .pieces = &piece,
                                           .n = 1};
        stage_begin(&s, DRPS_SCHED_ASP, WAIT_MS);
        s.job.filters = 1;
        assert_int_equal(drps_async_worker_new(&s.job, &w, NULL), 0);
        drps_async_worker_begin(w);
        assert_int_equal(drps_net_send(s.nets[bad[i].from], &send, WAIT_MS, NULL), 0);
        assert_int_equal(drps_async_worker_step(w, &round, NULL), DRPS_E_PROTO);
        drps_async_worker_free(w);
        stage_end(&s);
    }
}

/* Rank 0 has rows alone; rank 1 has all samples, and no rows. */
static void stage_separate(struct stage *s, int has_needs)
{
    stage_begin(s, DRPS_SCHED_SSP, WAIT_MS);
    s->plan.info.ranks = drps_plan_ranks_of(1, 1, 1);
    s->plan.info.ranks.max_round_uses = 10;
    s->job.ahead = 1;
    s->job.has_needs = has_needs;
}

static void test_a_rank_without_samples_is_given_no_batch(void **state)
{
    struct stage s;
    struct async_worker *w;
    struct drps_round round;
    (void)state;
    stage_separate(&s, 0);
    assert_int_equal(drps_async_worker_new(&s.job, &w, NULL), 0);
    drps_async_worker_begin(w);
    say(&s, 0, DRPS_NET_WORKER, DRPS_MESSAGE_GO, 1, 0);
    assert_int_equal(drps_async_worker_step(w, &round, NULL), DRPS_E_PROTO);
    drps_async_worker_free(w);
    stage_end(&s);
}

/* It asks the ranks that have rows, and they alone may answer. */
static void test_ranks_without_rows_are_not_asked(void **state)
{
    struct stage s;
    struct async_ahead a;
    struct drps_net_message *m;
    static const uint64_t needs[1] = {3};
    (void)state;
    memset(&a, 0, sizeof(a));
    stage_separate(&s, 1);
    s.job.rank = 1;
    s.job.o.net = s.nets[1];
    assert_int_equal(drps_async_ahead_ask(&a, &s.job, 3, needs, NULL), 0);
    assert_int_equal(a.due, 1);
    assert_int_equal(drps_net_receive(s.nets[1], DRPS_NET_SERVER, 1, 0, &m, NULL), -ETIMEDOUT);
    assert_int_equal(drps_net_receive(s.nets[0], DRPS_NET_SERVER, 1, WAIT_MS, &m, NULL), 0);
    assert_true(m->type == DRPS_MESSAGE_AHEAD && m->tag == 1 && m->bytes == sizeof(needs));
    drps_net_message_free(m);
    for (uint32_t from = 2; from-- > 0;) {
        struct drps_net_message answer = {
            .from = from, .type = DRPS_MESSAGE_AHEAD, .tag = 1, .round = 3};
        assert_int_equal(drps_async_ahead_take(&a, &s.job, &answer), from == 0);
    }
    assert_int_equal(a.due, 0);
    stage_end(&s);
}

/* What has come is known before it is known how many rows a batch has: values, without marks. */
static void test_worker_counts_the_values_that_came_ahead(void **state)
{
    enum { ROWS = 150, DIM = 3, WORDS = 3 };
    const struct drps_plan_ranks shape = drps_plan_ranks_of(2, 2, 0);
    const struct async_job job = {.rank = 0, .ranks = 2, .shape = &shape, .dim = DIM};
    static uint64_t data[WORDS + ROWS * DIM];
    (void)state;
    for (unsigned n = 0; n <= ROWS; n++) {
        struct drps_net_message m = {
            .from = 1, .type = DRPS_MESSAGE_AHEAD, .tag = ASYNC_AHEAD_MORE, .data = data};
        struct async_ahead a = {.due = 2, .wanted = 1};
        memset(data, 0xff, sizeof(data)); /* values have bits, too */
        memset(data, 0, WORDS * sizeof(*data));
        for (unsigned i = ROWS - n; i < ROWS; i++)
            data[i / 64] |= UINT64_C(1) << i % 64;
        m.bytes = WORDS * sizeof(*data) + n * DIM * sizeof(float);
        assert_int_equal(drps_async_ahead_take(&a, &job, &m), 1);
        assert_int_equal(a.received, n * DIM * sizeof(float));
        m.tag = 0; /* the others */
        m.bytes = (ROWS - n) * DIM * sizeof(float);
        assert_int_equal(drps_async_ahead_take(&a, &job, &m), 1);
        assert_int_equal(a.received, ROWS * DIM * sizeof(float));
    }
}

/* ---- What was asked for ahead ---- */

/* An answer to worker 0 as it comes; 1: it was due. */
static int offer(struct stage *s, struct async_ahead *a, uint32_t from, uint8_t type, uint32_t tag,
                 uint64_t step)
{
    struct drps_net_message *m;
    say(s, from, DRPS_NET_WORKER, type, tag, step);
    assert_int_equal(drps_net_receive(s->nets[0], DRPS_NET_WORKER, from, WAIT_MS, &m, NULL), 0);
    const int took = drps_async_ahead_take(a, &s->job, m);
    if (!took) drps_net_message_free(m);
    return took;
}

static void test_each_server_answers_once(void **state)
{
    struct stage s;
    struct async_ahead a;
    (void)state;
    memset(&a, 0, sizeof(a));
    stage_begin(&s, DRPS_SCHED_ASP, WAIT_MS);
    assert_false(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, 0, 0)); /* nothing was asked */
    for (int wanted = 0; wanted < 2; wanted++) {
        assert_int_equal(drps_async_ahead_ask(&a, &s.job, 3, NULL, NULL), 0);
        if (!wanted) drps_async_ahead_drop(&a, &s.job);
        assert_false(offer(&s, &a, 1, DRPS_MESSAGE_PARAMETERS, 0, 3));
        assert_false(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, 1, 3)); /* another's batch */
        assert_false(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, 0, 2));
        assert_false(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, 1 << 18, 3));
        assert_true(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, ASYNC_AHEAD_MORE, 3));
        assert_false(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, ASYNC_AHEAD_MORE, 3));
        assert_int_equal(a.due, 2);
        assert_true(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, 0, 3));
        assert_false(offer(&s, &a, 1, DRPS_MESSAGE_AHEAD, 0, 3)); /* twice */
        assert_int_equal(a.due, 1);
        assert_true(offer(&s, &a, 0, DRPS_MESSAGE_AHEAD, 0, 3));
        assert_false(offer(&s, &a, 0, DRPS_MESSAGE_AHEAD, 0, 3));
        assert_int_equal(a.due, 0);
        assert_int_equal(a.from[0] && a.from[1] && a.rest[1] && !a.rest[0], wanted);
        drps_async_ahead_drop(&a, &s.job);
        assert_true(!a.from[0] && !a.from[1]);
    }
    stage_end(&s);
}

/* Three rows of rank 1, of which the first and the third come first; and what does not fit. */
static void test_worker_puts_only_what_fits(void **state)
{
    static const struct {
        uint64_t marks;
        size_t bytes, rest; /* of the values */
        int rc;
    } cases[] = {
        {5, 8, 4, 0},
        {7, 12, 0, 0},
        {0, 0, 12, 0},
        {5, 8, 0, DRPS_E_PROTO}, /* no rest */
        {5, 8, 8, DRPS_E_PROTO},
        {5, 4, 8, DRPS_E_PROTO}, /* more bits than values */
        {5, 12, 0, DRPS_E_PROTO},
        {9, 8, 4, DRPS_E_PROTO}, /* a fourth row */
    };
    static const float rest[3] = {20, 21, 22};
    const struct drps_plan_ranks shape = drps_plan_ranks_of(2, 2, 0);
    struct drps_worker worker = {.model = NULL};
    const struct async_job job = {
        .o = {.worker = &worker}, .rank = 0, .ranks = 2, .shape = &shape, .dim = 1};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct {
            uint64_t marks;
            float values[3];
        } data = {cases[i].marks, {10, 11, 12}};
        struct drps_net_message first = {
            .from = 1, .data = &data, .bytes = sizeof(data.marks) + cases[i].bytes};
        struct drps_net_message second = {.from = 1, .data = rest, .bytes = cases[i].rest};
        struct async_ahead a = {.from = {NULL, &first},
                                .rest = {NULL, second.bytes ? &second : NULL}};
        float out[3] = {0, 0, 0};
        assert_int_equal(drps_async_ahead_put(&a, &job, 1, 3, (char *)out, NULL), cases[i].rc);
        if (i == 0) assert_true(out[0] > 9 && out[0] < 11 && out[1] > 19 && out[2] < 12);
    }
    struct drps_net_message none = {.from = 1}; /* another worker executes the batch */
    struct async_ahead a = {.from = {&none, &none}};
    for (uint32_t server = 0; server < 2; server++)
        assert_int_equal(drps_async_ahead_put(&a, &job, server, 3, NULL, NULL), DRPS_E_PROTO);
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
        {1, 1, DRPS_MESSAGE_AHEAD, 0}, /* nobody pulls ahead */
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

/* A server without rows sends batches of its own worker, in their turn, and nothing else. */
static void test_server_without_rows_refuses_what_it_has_not(void **state)
{
    static const struct {
        uint8_t type;
        uint32_t tag;
    } bad[] = {{DRPS_MESSAGE_AHEAD, 0}, {DRPS_MESSAGE_PULL, 0}, {DRPS_MESSAGE_GRADIENT, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct stage s;
        struct async_server *server;
        struct drps_err err = DRPS_ERR_INIT;
        stage_begin(&s, DRPS_SCHED_ASP, WAIT_MS);
        s.plan.info.ranks = drps_plan_ranks_of(WORKERS, 1, 0);
        s.plan.info.ranks.max_round_uses = 10;
        s.job.ahead = 1;
        s.job.rank = 1;
        s.job.o.net = s.nets[1];
        assert_int_equal(drps_async_server_new(&s.job, &server, NULL), 0);
        const struct drps_net_send send = {
            .to = 1, .part = DRPS_NET_SERVER, .type = bad[i].type, .tag = bad[i].tag};
        assert_int_equal(drps_net_send(s.nets[0], &send, WAIT_MS, NULL), 0);
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

/* What the server answers to a rank that has asked ahead; returns the bytes. */
static size_t expect_ahead(struct serving *s, uint32_t rank, uint64_t step, uint32_t more)
{
    struct drps_net_message *m;
    assert_int_equal(drps_net_receive(s->nets[rank], DRPS_NET_WORKER, 0, WAIT_MS, &m, NULL), 0);
    assert_int_equal(m->type, DRPS_MESSAGE_AHEAD);
    assert_int_equal(m->tag, rank | more);
    assert_int_equal(m->round, step);
    const size_t bytes = m->bytes;
    drps_net_message_free(m);
    return bytes;
}

/* End the server's epoch, and begin another one with what is set in s->job. */
static void serving_stop(struct serving *s)
{
    serving_begin(s, &drps_store_resident, 1);
    send_to_server(s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 0, NULL, 0);
    (void)pthread_join(s->thread, NULL);
    assert_int_equal(s->rc, 0);
    drps_async_server_free(s->async);
}

static void serving_begin_filters(struct serving *s)
{
    serving_stop(s);
    s->job.filters = 1;
    s->server.optim.lr = 0.5f;
    assert_int_equal(drps_async_server_new(&s->job, &s->async, NULL), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run_server, s), 0);
}

static void serving_begin_fresh(struct serving *s, int has_needs, int fresh)
{
    serving_stop(s);
    s->job.ahead = 1;
    s->job.has_needs = has_needs;
    s->job.o.fresh = fresh;
    assert_int_equal(drps_async_server_new(&s->job, &s->async, NULL), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, run_server, s), 0);
}

static void serving_begin_ahead(struct serving *s, int has_needs)
{
    serving_begin_fresh(s, has_needs, 0);
}

/* Rank 1 asks ahead for step 2, while there is room for two steps: it is answered when step 0 is
 * complete. Rank 2 asks for step 4 and gets no parameters, as the epoch ends before; so does rank 1
 * for step 0, which another has executed. */
static void test_server_answers_what_was_asked_ahead(void **state)
{
    struct serving s;
    (void)state;
    serving_begin_ahead(&s, 0);
    send_to_server(&s, 1, DRPS_MESSAGE_AHEAD, 1, 2, NULL, 0);
    send_to_server(&s, 2, DRPS_MESSAGE_AHEAD, 2, 4, NULL, 0);
    execute(&s, 2, 0, 0);
    execute(&s, 2, 1, 0);
    expect_nothing(&s, 1);
    send_to_server(&s, 2, DRPS_MESSAGE_PULL, 2, 0, NULL, 0); /* of the same rank, in its turn */
    push_zeros(&s, 2, 2, 0, expect_parameters(&s, 2, 2, 0));
    assert_true(expect_ahead(&s, 1, 2, ASYNC_AHEAD_MORE) > 0);
    execute(&s, 1, 1, 1);
    assert_true(expect_ahead(&s, 1, 2, 0) > 0);
    send_to_server(&s, 1, DRPS_MESSAGE_AHEAD, 1, 0, NULL, 0);
    assert_int_equal(expect_ahead(&s, 1, 0, 0), 0);
    expect_nothing(&s, 2);
    send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 4, NULL, 0);
    assert_int_equal(expect_ahead(&s, 2, 4, 0), 0);
    (void)pthread_join(s.thread, NULL);
    if (s.rc < 0) fail_msg("%s", s.err.text);
    serving_end(&s);
}

static struct drps_net_message *answer_to(struct serving *s, uint32_t rank, uint8_t type,
                                          uint32_t tag)
{
    struct drps_net_message *m;
    assert_int_equal(drps_net_receive(s->nets[rank], DRPS_NET_WORKER, 0, WAIT_MS, &m, NULL), 0);
    assert_int_equal(m->type, type);
    assert_int_equal(m->tag, tag);
    return m;
}

/* What the worker of another rank knows. */
static struct async_job job_of_worker(const struct serving *s, uint32_t rank)
{
    static struct drps_worker worker;
    worker.model = &s->server.model;
    return (struct async_job){.o = {.worker = &worker},
                              .rank = rank,
                              .ranks = RANKS,
                              .shape = s->job.shape,
                              .dim = s->job.dim};
}

/* The parameters of (share 1, step 1) as rank 1 puts them together are those of a pull now. */
static void check_put(struct serving *s, struct async_ahead *a)
{
    const size_t row = s->job.dim * sizeof(float);
    const struct async_job to = job_of_worker(s, 1);
    send_to_server(s, 2, DRPS_MESSAGE_PULL, 1, 1, NULL, 0);
    struct drps_net_message *now = answer_to(s, 2, DRPS_MESSAGE_PARAMETERS, 1);
    char *values = calloc(1, now->bytes + row);
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_async_ahead_put(a, &to, 0, now->bytes / row, values, &err) < 0)
        fail_msg("%s", err.text);
    assert_memory_equal(values, now->data, now->bytes);
    for (int more = -1; more <= 1; more += 2)
        assert_int_equal(
            drps_async_ahead_put(a, &to, 0, now->bytes / row + (size_t)more, values, NULL),
            DRPS_E_PROTO);
    free(values);
    drps_net_message_free(now);
    drps_async_ahead_drop(a, &to);
}

/* Rank 1 computes step 0 and asks for step 1: rows that step 0 has, too, come when its gradient is
 * in, with what that has changed. Once it is in, all rows come at once. */
static void test_server_sends_what_is_changed_later(void **state)
{
    struct async_ahead a = {.step = 1};
    struct serving s;
    (void)state;
    serving_begin_ahead(&s, 0);
    s.server.optim.lr = 0.5f;
    send_to_server(&s, 1, DRPS_MESSAGE_PULL, 1, 0, NULL, 0);
    const size_t bytes = expect_parameters(&s, 1, 1, 0);
    send_to_server(&s, 1, DRPS_MESSAGE_AHEAD, 1, 1, NULL, 0);
    a.from[0] = answer_to(&s, 1, DRPS_MESSAGE_AHEAD, 1 | ASYNC_AHEAD_MORE);
    expect_nothing(&s, 1);
    float *ones = calloc(1, bytes);
    for (size_t i = 0; i < bytes / sizeof(*ones); i++)
        ones[i] = 1;
    send_to_server(&s, 1, DRPS_MESSAGE_GRADIENT, 1, 0, ones, bytes);
    free(ones);
    a.rest[0] = answer_to(&s, 1, DRPS_MESSAGE_AHEAD, 1);
    assert_true(a.from[0]->bytes > 0 && a.rest[0]->bytes > 0);
    assert_int_equal((uintptr_t)a.rest[0]->data % sizeof(uint64_t), 0);
    check_put(&s, &a);
    send_to_server(&s, 1, DRPS_MESSAGE_AHEAD, 1, 1, NULL, 0);
    a.from[0] = answer_to(&s, 1, DRPS_MESSAGE_AHEAD, 1);
    check_put(&s, &a);
    send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 1, NULL, 0);
    (void)pthread_join(s.thread, NULL);
    if (s.rc < 0) fail_msg("%s", s.err.text);
    serving_end(&s);
}

/* What rank 1 puts together of (share 1, step 1), [*rows], of which it asks while it computes step
 * 0, and how many bytes came. *rows and *rows_before, of step 0: 0 where they are to be found out.
 */
static float *put_ahead(int fresh, size_t *rows_before, size_t *rows, size_t *bytes_out)
{
    struct async_ahead a = {.step = 1};
    struct serving s;
    serving_begin_fresh(&s, 0, fresh);
    s.server.optim.lr = 0.5f;
    const struct async_job to = job_of_worker(&s, 1);
    send_to_server(&s, 1, DRPS_MESSAGE_PULL, 1, 0, NULL, 0);
    struct drps_net_message *m =
        answer_to(&s, 1, DRPS_MESSAGE_PARAMETERS, fresh ? 1 | ASYNC_FRESH : 1);
    if (!fresh) *rows_before = m->bytes / sizeof(float);
    *bytes_out = m->bytes;
    drps_net_message_free(m);
    send_to_server(&s, 1, DRPS_MESSAGE_AHEAD, 1, 1, NULL, 0);
    a.from[0] =
        answer_to(&s, 1, DRPS_MESSAGE_AHEAD, (fresh ? ASYNC_FRESH : 0) | 1 | ASYNC_AHEAD_MORE);
    float *ones = calloc(*rows_before, sizeof(*ones));
    for (size_t i = 0; i < *rows_before; i++)
        ones[i] = 1;
    send_to_server(&s, 1, DRPS_MESSAGE_GRADIENT, 1, 0, ones, *rows_before * sizeof(*ones));
    free(ones);
    a.rest[0] = answer_to(&s, 1, DRPS_MESSAGE_AHEAD, 1);
    if (!fresh) { /* a bit a row, to whole words, and the values */
        size_t n = (a.from[0]->bytes + a.rest[0]->bytes) / sizeof(float);
        while (n * sizeof(float) + drps_async_mark_bytes(n) > a.from[0]->bytes + a.rest[0]->bytes)
            n--;
        *rows = n;
    }
    *bytes_out += a.from[0]->bytes + a.rest[0]->bytes;
    float *values = calloc(*rows, sizeof(*values));
    assert_int_equal(drps_async_ahead_put(&a, &to, 0, *rows, (char *)values, NULL), 0);
    for (int more = -1; more <= 1 && fresh; more += 2)
        assert_int_equal(
            drps_async_ahead_put(&a, &to, 0, *rows + (size_t)more, (char *)values, NULL),
            DRPS_E_PROTO);
    drps_async_ahead_drop(&a, &to);
    send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 1, NULL, 0);
    (void)pthread_join(s.thread, NULL);
    if (s.rc < 0) fail_msg("%s", s.err.text);
    serving_end(&s);
    return values;
}

/* Rows that nobody has trained are not sent, in time or ahead, and are what they are if they are.
 */
static void test_fresh_rows_are_left_out(void **state)
{
    size_t before = 0, rows = 0, plain_bytes, bytes;
    (void)state;
    float *plain = put_ahead(0, &before, &rows, &plain_bytes);
    float *made = put_ahead(1, &before, &rows, &bytes);
    assert_memory_equal(made, plain, rows * sizeof(*made));
    assert_true(bytes < plain_bytes);
    free(plain);
    free(made);
}

/* Whoever asks must not expect the rest of what another executes, nor of an epoch that ends. */
static void test_server_owes_no_rest(void **state)
{
    struct serving s;
    (void)state;
    for (int executed = 0; executed < 2; executed++) {
        serving_begin_ahead(&s, 0);
        send_to_server(&s, 1, DRPS_MESSAGE_PULL, 1, 0, NULL, 0);
        const size_t bytes = expect_parameters(&s, 1, 1, 0);
        send_to_server(&s, 1, DRPS_MESSAGE_AHEAD, 1, 1, NULL, 0);
        assert_true(expect_ahead(&s, 1, 1, ASYNC_AHEAD_MORE) > 0);
        if (executed) execute(&s, 2, 1, 1);
        if (executed) push_zeros(&s, 1, 1, 0, bytes);
        send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 2 * (uint64_t)executed, NULL, 0);
        assert_int_equal(expect_ahead(&s, 1, 1, 0), 0);
        (void)pthread_join(s.thread, NULL);
        if (s.rc < 0) fail_msg("%s", s.err.text);
        serving_end(&s);
    }
}

/* A pull waits for the gradients that it needs, of each rank, and not for others. */
static void test_server_waits_for_what_a_pull_needs(void **state)
{
    static const uint64_t none[RANKS], two[RANKS] = {0, 2, 0};
    const size_t n = sizeof(none);
    struct serving s;
    (void)state;
    for (int ahead = 0; ahead < 2; ahead++) {
        serving_begin_ahead(&s, 1);
        send_to_server(&s, 2, ahead ? DRPS_MESSAGE_AHEAD : DRPS_MESSAGE_PULL, 2, 0, two, n);
        for (uint32_t share = 0; share < 2; share++) {
            expect_nothing(&s, 2);
            send_to_server(&s, 1, DRPS_MESSAGE_PULL, share, 0, none, n);
            push_zeros(&s, 1, share, 0, expect_parameters(&s, 1, share, 0));
        }
        assert_true((ahead ? expect_ahead(&s, 2, 0, 0) : expect_parameters(&s, 2, 2, 0)) > 0);
        send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 2, NULL, 0);
        (void)pthread_join(s.thread, NULL);
        if (s.rc < 0) fail_msg("%s", s.err.text);
        serving_end(&s);
    }
}

/* The rank's own worker may still read parameters where they are when those of the next batch come.
 * These come when they have all that the batch before changes. */
static void test_server_keeps_what_is_ahead_apart(void **state)
{
    static const uint8_t types[] = {DRPS_MESSAGE_PULL, DRPS_MESSAGE_AHEAD};
    struct drps_message_here here[2];
    struct serving s;
    (void)state;
    serving_begin_ahead(&s, 0);
    for (size_t i = 0; i < 2; i++) {
        struct drps_net_message *m;
        send_to_server(&s, 0, types[i], 0, 0, NULL, 0);
        assert_int_equal(drps_net_receive(s.nets[0], DRPS_NET_WORKER, 0, WAIT_MS, &m, NULL), 0);
        assert_int_equal(m->bytes, sizeof(here[i]));
        memcpy(&here[i], m->data, sizeof(here[i]));
        drps_net_message_free(m);
    }
    assert_ptr_not_equal(here[0].values, here[1].values);
    send_to_server(&s, 0, DRPS_MESSAGE_AHEAD, 0, 1, NULL, 0);
    execute(&s, 1, 1, 0);
    expect_nothing(&s, 0);
    send_to_server(&s, 0, DRPS_MESSAGE_GRADIENT, 0, 0, &here[0], sizeof(here[0]));
    assert_int_equal(expect_ahead(&s, 0, 1, 0), sizeof(here[1]));
    send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 2, NULL, 0);
    (void)pthread_join(s.thread, NULL);
    assert_int_equal(s.rc, 0);
    serving_end(&s);
}

static void test_server_refuses_to_be_asked_otherwise(void **state)
{
    static const struct {
        uint8_t type, twice;
        uint32_t share;
        uint64_t step;
        size_t bytes;
    } bad[] = {
        {DRPS_MESSAGE_AHEAD, 0, 2, 0, 24},          /* another rank's batch */
        {DRPS_MESSAGE_AHEAD, 0, 1, UINT64_MAX, 24}, /* no such step */
        {DRPS_MESSAGE_AHEAD, 0, 1, 0, 0},           /* no needs */
        {DRPS_MESSAGE_AHEAD, 0, 1, 0, 23},
        {DRPS_MESSAGE_AHEAD, 0, 1, 0, 32},
        {DRPS_MESSAGE_AHEAD, 1, 1, 4, 24}, /* again before it was answered */
        {DRPS_MESSAGE_AHEAD, 1, 1, 1, 24}, /* or before the rest came */
        {DRPS_MESSAGE_PULL, 0, 1, 0, 0},
        {DRPS_MESSAGE_PULL, 1, 1, 4, 24},
    };
    static const uint64_t needs[RANKS + 1];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct serving s;
        serving_begin_ahead(&s, 1);
        for (unsigned n = 0; n <= bad[i].twice; n++)
            send_to_server(&s, 1, bad[i].type, bad[i].share, bad[i].step, needs, bad[i].bytes);
        (void)pthread_join(s.thread, NULL);
        assert_int_equal(s.rc, DRPS_E_PROTO);
        assert_non_null(strstr(s.err.text, "rank 1 sent the server message"));
        serving_end(&s);
    }
}

/* What rank `share` has held back of its rows of that step: of the first row, `value`. */
static void send_held(struct serving *s, uint32_t share, uint64_t step, float value)
{
    unsigned char data[64];
    uint32_t first = 0;
    const struct drps_held held = {&first, &value, 1};
    assert_int_equal(s->job.dim, 1);
    send_to_server(s, share, DRPS_MESSAGE_HELD, share, step, data,
                   drps_held_encode(&held, 1, data));
}

/* The first of the rows of a batch that are pulled now, and put back as a claimed batch of zeros if
 * `execute` is set. */
static float first_of(struct serving *s, uint32_t rank, uint32_t share, uint64_t step, int execute)
{
    struct drps_net_message *m;
    float first;
    send_to_server(s, rank, DRPS_MESSAGE_PULL, share, step, NULL, 0);
    assert_int_equal(drps_net_receive(s->nets[rank], DRPS_NET_WORKER, 0, WAIT_MS, &m, NULL), 0);
    assert_int_equal(m->type, DRPS_MESSAGE_PARAMETERS);
    const size_t bytes = m->bytes;
    memcpy(&first, m->data, sizeof(first));
    drps_net_message_free(m);
    if (execute) push_zeros(s, rank, share, step, bytes);
    return first;
}

/* Steps 0 and 1 are open. Others execute share 1's batches and share 0's, so that step 0 is
 * complete when rank 1 has said what it has held back; step 2's it has said before. */
static void test_server_waits_for_what_was_held_back(void **state)
{
    struct serving s;
    (void)state;
    serving_begin_filters(&s);
    send_held(&s, 1, 2, 1);
    execute(&s, 2, 0, 0);
    execute(&s, 1, 2, 0); /* rank 2's */
    const float before = first_of(&s, 2, 1, 0, 1);
    send_to_server(&s, 2, DRPS_MESSAGE_PULL, 1, 2, NULL, 0);
    send_held(&s, 2, 0, 0);
    (void)first_of(&s, 1, 2, 1, 0); /* all that came before is served */
    expect_nothing(&s, 2);
    send_held(&s, 1, 0, 3);
    const size_t bytes = expect_parameters(&s, 2, 1, 2);
    push_zeros(&s, 2, 1, 2, bytes);
    const float after = first_of(&s, 1, 2, 2, 0);
    /* of all batches the first row is the intercept, rank 0's first */
    if (!(after - before < -1.99F && after - before > -2.01F))
        fail_msg("%g became %g", (double)before, (double)after);
    send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, 4, NULL, 0);
    (void)pthread_join(s.thread, NULL);
    if (s.rc < 0) fail_msg("%s", s.err.text);
    serving_end(&s);
}

static void test_server_refuses_what_was_not_held_back(void **state)
{
    static const unsigned char none[4];
    static const struct {
        uint32_t from, share;
        uint64_t step;
        uint8_t type, twice;
        size_t bytes;
    } bad[] = {
        {1, 2, 0, DRPS_MESSAGE_HELD, 0, 4},          /* another's share */
        {0, 0, 0, DRPS_MESSAGE_HELD, 0, 4},          /* its own rank's */
        {1, 1, UINT64_MAX, DRPS_MESSAGE_HELD, 0, 4}, /* no such step */
        {1, 1, 4, DRPS_MESSAGE_HELD, 0, 4},          /* beyond what can be handed out */
        {1, 1, 0, DRPS_MESSAGE_HELD, 0, 3},          /* no list */
        {1, 1, 0, DRPS_MESSAGE_HELD, 1, 4},          /* twice: open, */
        {1, 1, 3, DRPS_MESSAGE_HELD, 1, 4},          /* and not */
        {1, 1, 0, DRPS_MESSAGE_GRADIENT, 0, 4},      /* not filtered */
        {1, 2, 0, DRPS_MESSAGE_FILTERED, 0, 4},      /* another's share, filtered */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct serving s;
        serving_begin_filters(&s);
        for (unsigned n = 0; n <= bad[i].twice; n++)
            send_to_server(&s, bad[i].from, bad[i].type, bad[i].share, bad[i].step, none,
                           bad[i].bytes);
        (void)pthread_join(s.thread, NULL);
        if (s.rc != DRPS_E_PROTO) fail_msg("case %zu: %d", i, s.rc);
        serving_end(&s);
    }
}

/* Rank 1 has copies of rows, and asks for some; marks that do not fit its batch are refused, and
 * marks of others'. */
static void test_server_refuses_marks_that_do_not_fit(void **state)
{
    static const struct {
        uint32_t share;
        int cached;
        size_t words, beyond;
    } bad[] = {
        {1, 0, 0, 0},               /* nobody has copies */
        {2, 1, 0, 0},               /* of another's batch */
        {1, 1, 1, 0},               /* a word too many, */
        {1, 1, 4, 0}, {1, 1, 0, 1}, /* a bit */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct serving s;
        serving_stop(&s);
        s.job.has_needs = 1;
        s.job.cached = bad[i].cached;
        assert_int_equal(drps_async_server_new(&s.job, &s.async, NULL), 0);
        assert_int_equal(pthread_create(&s.thread, NULL, run_server, &s), 0);
        uint64_t *pull = calloc(RANKS + 100, sizeof(*pull));
        send_to_server(&s, 1, DRPS_MESSAGE_PULL, 1, 0, pull, RANKS * sizeof(*pull));
        struct drps_net_message *m;
        assert_int_equal(drps_net_receive(s.nets[1], DRPS_NET_WORKER, 0, WAIT_MS, &m, NULL), 0);
        const size_t head = bad[i].cached ? RANKS * sizeof(*pull) : 0;
        const size_t rows = (m->bytes - head) / drps_async_wanted_bytes(&s.job, 1);
        const size_t words = (rows + 63) / 64;
        drps_net_message_free(m);
        assert_true(rows > 0 && rows % 64);
        if (bad[i].beyond) pull[RANKS + words - 1] = UINT64_C(1) << rows % 64;
        send_to_server(&s, 1, DRPS_MESSAGE_PULL, bad[i].share, 0, pull,
                       (RANKS + words + bad[i].words) * sizeof(*pull));
        (void)pthread_join(s.thread, NULL);
        if (s.rc != DRPS_E_PROTO) fail_msg("case %zu: %d", i, s.rc);
        free(pull);
        serving_end(&s);
    }
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

/* ---- Stale gradients ---- */

/* The intercept, first of a batch's parameters, as a worker gets it; *bytes_out: of them all. */
static float pull_intercept(struct serving *s, uint32_t rank, uint32_t share, uint64_t step,
                            size_t *bytes_out)
{
    float first;
    send_to_server(s, rank, DRPS_MESSAGE_PULL, share, step, NULL, 0);
    struct drps_net_message *m = answer_to(s, rank, DRPS_MESSAGE_PARAMETERS, share);
    *bytes_out = m->bytes;
    assert_true(m->bytes >= sizeof(first));
    memcpy(&first, m->data, sizeof(first));
    drps_net_message_free(m);
    return first;
}

static void push_one(struct serving *s, uint32_t rank, uint64_t step, size_t bytes)
{
    float *gradient = calloc(1, bytes);
    assert_non_null(gradient);
    gradient[0] = 1;
    send_to_server(s, rank, DRPS_MESSAGE_GRADIENT, rank, step, gradient, bytes);
    free(gradient);
}

/* So many batches of others, at most 3. */
static void others_execute(struct serving *s, uint64_t n)
{
    static const struct {
        uint32_t share;
        uint64_t step;
    } batches[] = {{2, 0}, {0, 0}, {0, 1}};
    for (uint64_t i = 0; i < n; i++)
        execute(s, 2, batches[i].share, batches[i].step);
}

/* How far a gradient of 1 moves the intercept, in rates, that lacks so many batches of others.
 * Ahead: the parameters were sent while the worker computed a batch before, which it does have. */
static float moved_by(enum drps_stale rule, uint64_t others, int ahead)
{
    const struct drps_train_options train = {.lr_stale = rule};
    const uint64_t step = ahead ? 1 : 0;
    struct serving s;
    size_t bytes, probed;
    serving_stop(&s);
    s.job.ahead = 1;
    s.job.o.train = &train;
    assert_int_equal(drps_async_server_new(&s.job, &s.async, NULL), 0);
    assert_int_equal(pthread_create(&s.thread, NULL, run_server, &s), 0);
    const float before = pull_intercept(&s, 1, 1, 0, &bytes);
    if (ahead) send_to_server(&s, 1, DRPS_MESSAGE_AHEAD, 1, 1, NULL, 0);
    if (ahead) (void)expect_ahead(&s, 1, 1, ASYNC_AHEAD_MORE);
    others_execute(&s, others);
    if (ahead) push_zeros(&s, 1, 1, 0, bytes);
    if (ahead) (void)expect_ahead(&s, 1, 1, 0);
    if (ahead) (void)pull_intercept(&s, 2, 1, 1, &bytes); /* which another may do, too */
    push_one(&s, 1, step, bytes);
    const float after = pull_intercept(&s, 2, 2, 1, &probed);
    push_zeros(&s, 2, 2, 1, probed);
    send_to_server(&s, 0, DRPS_MESSAGE_END, DRPS_MESSAGE_STOP, others + 2 + step, NULL, 0);
    (void)pthread_join(s.thread, NULL);
    if (s.rc < 0) fail_msg("%s", s.err.text);
    const float moved = (before - after) / s.server.optim.lr;
    serving_end(&s);
    return moved;
}

static void test_stale_gradients_move_rows_less(void **state)
{
    static const struct {
        enum drps_stale rule;
        uint64_t others;
        float divisor;
    } cases[] = {{DRPS_STALE_SAME, 3, 1},     {DRPS_STALE_BATCHES, 0, 1},
                 {DRPS_STALE_BATCHES, 1, 1},  {DRPS_STALE_BATCHES, 3, 3},
                 {DRPS_STALE_ROUNDS, 1, 1},   {DRPS_STALE_ROUNDS, 2, 1},
                 {DRPS_STALE_ROUNDS, 3, 1.5f}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int ahead = 0; ahead < 2; ahead++) {
            const float moved = moved_by(cases[i].rule, cases[i].others, ahead);
            if (!(moved > 0.9999f / cases[i].divisor && moved < 1.0001f / cases[i].divisor))
                fail_msg("%s, %llu of others, ahead %d: moved by %g rates, not 1 / %g",
                         drps_stale_name(cases[i].rule), (unsigned long long)cases[i].others, ahead,
                         (double)moved, (double)cases[i].divisor);
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
        cmocka_unit_test(test_master_says_who_may_ask_ahead),
        cmocka_unit_test(test_master_says_what_others_execute),
        cmocka_unit_test(test_master_waits_for_batches_under_way_before_it_stops),
        cmocka_unit_test(test_master_names_who_is_late),
        cmocka_unit_test(test_master_refuses_what_is_not_due),
        cmocka_unit_test(test_worker_refuses_what_is_not_due),
        cmocka_unit_test(test_worker_refuses_what_it_may_not_be_told),
        cmocka_unit_test(test_worker_refuses_claims_that_are_none),
        cmocka_unit_test(test_each_server_answers_once),
        cmocka_unit_test(test_a_rank_without_samples_is_given_no_batch),
        cmocka_unit_test(test_ranks_without_rows_are_not_asked),
        cmocka_unit_test(test_worker_counts_the_values_that_came_ahead),
        cmocka_unit_test(test_server_without_rows_refuses_what_it_has_not),
        cmocka_unit_test(test_worker_puts_only_what_fits),
        cmocka_unit_test(test_server_refuses_what_is_not_due),
        cmocka_unit_test(test_server_has_a_buffer_for_each_worker),
        cmocka_unit_test(test_server_puts_a_pull_aside_until_its_step_can_open),
        cmocka_unit_test(test_server_answers_what_was_asked_ahead),
        cmocka_unit_test(test_server_waits_for_what_a_pull_needs),
        cmocka_unit_test(test_server_sends_what_is_changed_later),
        cmocka_unit_test(test_fresh_rows_are_left_out),
        cmocka_unit_test(test_server_owes_no_rest),
        cmocka_unit_test(test_server_keeps_what_is_ahead_apart),
        cmocka_unit_test(test_server_refuses_to_be_asked_otherwise),
        cmocka_unit_test(test_server_waits_for_what_was_held_back),
        cmocka_unit_test(test_server_refuses_what_was_not_held_back),
        cmocka_unit_test(test_server_refuses_marks_that_do_not_fit),
        cmocka_unit_test(test_server_takes_each_gradient_once),
        cmocka_unit_test(test_stale_gradients_move_rows_less),
        cmocka_unit_test(test_failures_of_other_parts_end_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
