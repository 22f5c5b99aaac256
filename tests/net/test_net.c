/* What every transport must do. The same tests over inproc, ZeroMQ, ZeroMQ with keys,
 * and MPI, where mpirun has started two processes (support/net_mpi.h). */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "net/drps_transport.h"
#include "net/drps_wire.h"
#include "support/net_job.h"
#include "support/net_mpi.h"

enum { TYPE = DRPS_NET_TYPE_FIRST, SMALL_QUEUE = 4, RANKS = 8 };

/* Bytes that depend on the sender and on the message's number. */
static void fill(unsigned char *data, size_t n, uint32_t from, uint64_t round)
{
    const uint64_t seed = from * UINT64_C(1000003) + round;
    for (size_t i = 0; i < n; i++)
        data[i] = (unsigned char)(drps_mix64(seed + i / 8) >> 8 * (i % 8));
}

static void expect_filled(const struct drps_net_message *m, size_t bytes)
{
    unsigned char *data = malloc(bytes + 1);
    NET_CHECK(data && m->bytes == bytes);
    fill(data, bytes, m->from, m->round);
    NET_CHECK(bytes == 0 || memcmp(data, m->data, bytes) == 0);
    free(data);
}

static int send_bytes(struct drps_net *net, uint32_t to, enum drps_net_part part, uint64_t round,
                      const void *data, size_t bytes, uint32_t timeout_ms, struct drps_err *err)
{
    const struct drps_piece piece = {data, bytes};
    const struct drps_net_send send = {
        .to = to, .part = part, .type = TYPE, .tag = 77, .round = round, .pieces = &piece, .n = 1};
    return drps_net_send(net, &send, timeout_ms, err);
}

/* --- order --- */

enum { MESSAGES = 60 };

static size_t size_of(uint64_t i)
{
    return (size_t)(i * i % 997);
}

static void *serve(void *arg)
{
    struct drps_net *net = arg;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t next[RANKS] = {0};
    for (uint32_t i = 0; i < drps_net_count(net) * MESSAGES; i++) {
        struct drps_net_message *m;
        NET_OK(drps_net_receive(net, DRPS_NET_SERVER, DRPS_NET_ANY, NET_WAIT_MS, &m, &err));
        NET_CHECK(m->from < drps_net_count(net) && m->type == TYPE && m->tag == 77);
        NET_CHECK(m->round == next[m->from]++);
        NET_CHECK((uintptr_t)m->data % 8 == 0);
        expect_filled(m, size_of(m->round));
        drps_net_message_free(m);
    }
    return NULL;
}

static void talk_to_all(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct drps_err err = DRPS_ERR_INIT;
    unsigned char data[1000];
    pthread_t server;
    (void)ctx;
    NET_CHECK(pthread_create(&server, NULL, serve, net) == 0);
    for (uint64_t i = 0; i < MESSAGES; i++)
        for (uint32_t to = 0; to < drps_net_count(net); to++) {
            fill(data, size_of(i), rank, i);
            NET_OK(send_bytes(net, to, DRPS_NET_SERVER, i, data, size_of(i), NET_WAIT_MS, &err));
        }
    NET_CHECK(pthread_join(server, NULL) == 0);
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
}

static void test_net_keeps_order_of_each_rank_for_1_to_8_ranks(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    for (uint32_t count = 1; count <= RANKS; count++) {
        struct net_job job;
        net_job_open(&job, kind, count, &(struct drps_net_options){.queue_messages = SMALL_QUEUE});
        net_job_run(&job, talk_to_all, NULL);
        for (uint32_t r = 0; r < count; r++) {
            struct drps_net_stats stats;
            drps_net_stats(job.nets[r], &stats);
            assert_int_equal(stats.malformed, 0);
            assert_int_equal(stats.replayed, 0);
            assert_int_equal(stats.strangers, 0);
        }
        net_job_close(&job);
    }
}

/* --- large messages, in pieces --- */

static const size_t large[] = {
    0, 1, WIRE_PIECE_BYTES - 1, WIRE_PIECE_BYTES, WIRE_PIECE_BYTES + 1, 5 * WIRE_PIECE_BYTES + 77};
enum { LARGE = sizeof(large) / sizeof(*large), LARGEST = 5 * WIRE_PIECE_BYTES + 77 };

struct payload {
    unsigned char *data;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done; /* times */
};

static void on_done(void *ctx)
{
    struct payload *p = ctx;
    pthread_mutex_lock(&p->lock);
    memset(p->data, 0xee, 1); /* it is the sender's again */
    p->done++;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* Uneven pieces, some of them empty. */
static size_t cut(const unsigned char *data, size_t bytes, struct drps_piece *pieces, size_t most)
{
    size_t n = 0, at = 0;
    while (n + 1 < most && at < bytes) {
        size_t some = n % 3 == 1 ? 0 : (n * 40009 + 1) % (bytes - at + 1);
        pieces[n++] = (struct drps_piece){some ? data + at : NULL, some};
        at += some;
    }
    pieces[n++] = (struct drps_piece){data + at, bytes - at};
    return n;
}

static void send_large(struct drps_net *net, size_t i, int borrow)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_piece pieces[16];
    struct payload p = {.data = malloc(LARGEST), .done = 0};
    NET_CHECK(p.data);
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.changed, NULL);
    fill(p.data, large[i], 0, i);
    const struct drps_net_send send = {.to = 1,
                                       .part = DRPS_NET_WORKER,
                                       .type = TYPE,
                                       .round = i,
                                       .pieces = pieces,
                                       .n = cut(p.data, large[i], pieces, i % 2 ? 1 : 16),
                                       .done = borrow ? on_done : NULL,
                                       .ctx = &p};
    NET_OK(drps_net_send(net, &send, NET_WAIT_MS, &err));
    pthread_mutex_lock(&p.lock);
    while (p.done < borrow)
        pthread_cond_wait(&p.changed, &p.lock);
    NET_CHECK(p.done == borrow);
    pthread_mutex_unlock(&p.lock);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.lock);
    free(p.data);
}

static void move_large(struct drps_net *net, uint32_t rank, void *ctx)
{
    (void)ctx;
    for (int borrow = 0; borrow < 2; borrow++)
        for (size_t i = 0; i < LARGE; i++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_net_message *m;
            if (rank == 0) {
                send_large(net, i, borrow);
                continue;
            }
            NET_OK(drps_net_receive(net, DRPS_NET_WORKER, 0, NET_WAIT_MS, &m, &err));
            NET_CHECK(m->round == i);
            expect_filled(m, large[i]);
            drps_net_message_free(m);
        }
}

static void count_done(void *ctx)
{
    ++*(int *)ctx;
}

/* Within a process a payload of one piece is read where it lies, until the message is freed; of
 * several it is copied. */
static void test_inproc_lends_one_piece(void **state)
{
    static const unsigned char data[] = "lent and given back";
    const struct drps_piece one[] = {{NULL, 0}, {data, sizeof(data)}};
    const struct drps_piece two[] = {{data, 8}, {data + 8, sizeof(data) - 8}};
    struct drps_net *nets[2];
    struct drps_net_message *m;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    NET_OK(drps_net_open_inproc(&(struct drps_net_options){.count = 2}, nets, &err));
    for (int pieces = 1; pieces <= 2; pieces++) {
        int done = 0;
        const struct drps_net_send send = {.to = 1,
                                           .part = DRPS_NET_SERVER,
                                           .type = TYPE,
                                           .pieces = pieces == 1 ? one : two,
                                           .n = 2,
                                           .done = count_done,
                                           .ctx = &done};
        NET_OK(drps_net_send(nets[0], &send, NET_WAIT_MS, &err));
        NET_OK(drps_net_receive(nets[1], DRPS_NET_SERVER, 0, NET_WAIT_MS, &m, &err));
        assert_int_equal(m->bytes, sizeof(data));
        assert_memory_equal(m->data, data, sizeof(data));
        assert_int_equal(m->data == (const void *)data, pieces == 1);
        assert_int_equal(done, pieces == 2);
        drps_net_message_free(m);
        assert_int_equal(done, 1);
    }
    int never_received = 0;
    const struct drps_net_send send = {.to = 1,
                                       .part = DRPS_NET_SERVER,
                                       .type = TYPE,
                                       .pieces = one,
                                       .n = 2,
                                       .done = count_done,
                                       .ctx = &never_received};
    NET_OK(drps_net_send(nets[0], &send, NET_WAIT_MS, &err));
    drps_net_close(nets[0], 0, NULL);
    drps_net_close(nets[1], 0, NULL);
    assert_int_equal(never_received, 1);
}

static void test_net_moves_messages_of_any_size_that_is_allowed(void **state)
{
    struct net_job job;
    struct drps_net_peer_stats sent, received;
    uint64_t bytes = 0;
    net_job_open(&job, net_kind_of(state), 2,
                 &(struct drps_net_options){.message_bytes = {LARGEST, 0, 0}});
    net_job_run(&job, move_large, NULL);
    for (size_t i = 0; i < LARGE; i++)
        bytes += 2 * large[i];
    drps_net_peer_stats(job.nets[0], 1, &sent);
    drps_net_peer_stats(job.nets[1], 0, &received);
    assert_int_equal(sent.sent_messages, 2 * LARGE);
    assert_int_equal(sent.sent_bytes, bytes);
    assert_int_equal(sent.received_messages, 0);
    assert_int_equal(received.received_messages, 2 * LARGE);
    assert_int_equal(received.received_bytes, bytes);
    net_job_close(&job);
}

/* --- long and short messages of several threads --- */

enum {
    TALKERS = 3,
    SHORT_MESSAGES = 200,
    LONG_MESSAGES = 4,
    LONG_BYTES = 3 * WIRE_PIECE_BYTES + 5
};

struct talker { /* a thread that sends to rank 1: the first long messages to its worker */
    struct drps_net *net;
    uint32_t number;
};

/* Rounds tell talkers apart. */
static void *talk(void *arg)
{
    const struct talker *t = arg;
    const enum drps_net_part part = t->number ? DRPS_NET_SERVER : DRPS_NET_WORKER;
    const size_t bytes = t->number ? 0 : LONG_BYTES;
    unsigned char *data = malloc(LONG_BYTES);
    NET_CHECK(data);
    for (uint64_t i = 0; i < (t->number ? SHORT_MESSAGES : LONG_MESSAGES); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const uint64_t round = t->number * UINT64_C(1000) + i;
        const size_t some = bytes ? bytes : size_of(i);
        fill(data, some, 0, round);
        NET_OK(send_bytes(t->net, 1, part, round, data, some, NET_WAIT_MS, &err));
    }
    free(data);
    return NULL;
}

static void *hear_long(void *net)
{
    for (uint64_t i = 0; i < LONG_MESSAGES; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_net_message *m;
        NET_OK(drps_net_receive(net, DRPS_NET_WORKER, 0, NET_WAIT_MS, &m, &err));
        NET_CHECK(m->round == i);
        expect_filled(m, LONG_BYTES);
        drps_net_message_free(m);
    }
    return NULL;
}

static void hear_short(struct drps_net *net)
{
    uint64_t next[TALKERS] = {0};
    for (uint64_t i = 0; i < (TALKERS - 1) * SHORT_MESSAGES; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_net_message *m;
        NET_OK(drps_net_receive(net, DRPS_NET_SERVER, 0, NET_WAIT_MS, &m, &err));
        NET_CHECK(m->round / 1000 > 0 && m->round / 1000 < TALKERS);
        NET_CHECK(m->round % 1000 == next[m->round / 1000]++);
        expect_filled(m, size_of(m->round % 1000));
        drps_net_message_free(m);
    }
}

static void mix_sizes(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct talker talkers[TALKERS];
    pthread_t threads[TALKERS];
    (void)ctx;
    if (rank) {
        NET_CHECK(pthread_create(&threads[0], NULL, hear_long, net) == 0);
        hear_short(net);
        NET_CHECK(pthread_join(threads[0], NULL) == 0);
        return;
    }
    for (uint32_t k = 0; k < TALKERS; k++) {
        talkers[k] = (struct talker){net, k};
        NET_CHECK(pthread_create(&threads[k], NULL, talk, &talkers[k]) == 0);
    }
    for (uint32_t k = 0; k < TALKERS; k++)
        NET_CHECK(pthread_join(threads[k], NULL) == 0);
}

/* Threads send short messages to one part past long ones to another: each thread's arrive whole and
 * in order. */
static void test_net_keeps_order_of_short_messages_past_long_ones(void **state)
{
    struct net_job job;
    net_job_open(
        &job, net_kind_of(state), 2,
        &(struct drps_net_options){.message_bytes = {LONG_BYTES, 0, 0}, .queue_messages = 32});
    net_job_run(&job, mix_sizes, NULL);
    net_job_close(&job);
}

static void test_net_refuses_what_the_receiver_does_not_take(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    static const unsigned char data[101];
    net_job_open(&job, net_kind_of(state), 2,
                 &(struct drps_net_options){.message_bytes = {100, 0, 0}});
    assert_int_equal(send_bytes(job.nets[0], 1, DRPS_NET_WORKER, 0, data, 101, 0, &err), -EMSGSIZE);
    assert_non_null(strstr(err.text, "101 bytes to the worker of rank 1"));
    drps_err_clear(&err);
    assert_int_equal(send_bytes(job.nets[0], 2, DRPS_NET_WORKER, 0, data, 1, 0, &err), -EINVAL);
    drps_err_clear(&err);
    const struct drps_net_send own = {.to = 1, .part = DRPS_NET_WORKER, .type = WIRE_BYE};
    assert_int_equal(drps_net_send(job.nets[0], &own, 0, &err), -EINVAL);
    drps_err_clear(&err);
    assert_int_equal(drps_net_receive(job.nets[0], DRPS_NET_PARTS, 0, 0, &m, &err), -EINVAL);
    assert_null(m);
    drps_err_clear(&err);
    NET_OK(send_bytes(job.nets[0], 1, DRPS_NET_WORKER, 0, data, 100, NET_WAIT_MS, &err));
    NET_OK(drps_net_receive(job.nets[1], DRPS_NET_WORKER, 0, NET_WAIT_MS, &m, &err));
    drps_net_message_free(m);
    net_job_close(&job);
}

/* --- waiting --- */

static void test_net_waits_have_an_end(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    net_job_open(&job, net_kind_of(state), 2, &(struct drps_net_options){0});
    assert_int_equal(drps_net_receive(job.nets[0], DRPS_NET_MASTER, 1, 5, &m, &err), -ETIMEDOUT);
    const uint64_t until = drps_clock_ns() + 3000000;
    assert_int_equal(
        drps_net_receive_until(job.nets[0], DRPS_NET_MASTER, DRPS_NET_ANY, until, &m, NULL),
        -ETIMEDOUT);
    assert_null(m);
    assert_true(drps_clock_ns() >= until);
    assert_int_equal(drps_net_receive_until(job.nets[0], DRPS_NET_PARTS, 1, 0, &m, NULL), -EINVAL);
    assert_null(m);
    assert_non_null(strstr(err.text, "nothing came from rank 1"));
    assert_non_null(strstr(err.text, "for the master within 5 ms"));
    drps_err_clear(&err);
    assert_int_equal(drps_net_receive(job.nets[0], DRPS_NET_MASTER, DRPS_NET_ANY, 0, &m, &err),
                     -ETIMEDOUT);
    drps_err_clear(&err);
    assert_int_equal(drps_net_barrier(job.nets[0], 5, &err), -ETIMEDOUT);
    net_job_close(&job);
}

static void test_net_holds_a_sender_whose_receiver_does_not_take(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    unsigned char data[64];
    uint64_t sent = 0;
    net_job_open(&job, net_kind_of(state), 2,
                 &(struct drps_net_options){.queue_messages = SMALL_QUEUE});
    struct drps_net *from = job.nets[0], *to = job.nets[1];
    for (int lap = 0; lap < 3; lap++) {
        for (; sent < (uint64_t)(lap + 1) * SMALL_QUEUE; sent++) {
            fill(data, sizeof(data), 0, sent);
            NET_OK(send_bytes(from, 1, DRPS_NET_SERVER, sent, data, 64, NET_WAIT_MS, &err));
        }
        assert_int_equal(send_bytes(from, 1, DRPS_NET_SERVER, sent, data, 64, 5, &err), -ETIMEDOUT);
        assert_non_null(strstr(err.text, "the server of rank 1"));
        drps_err_clear(&err);
        /* other parts have room of their own */
        NET_OK(send_bytes(from, 1, DRPS_NET_WORKER, 0, data, 8, NET_WAIT_MS, &err));
        NET_OK(drps_net_receive(to, DRPS_NET_WORKER, 0, NET_WAIT_MS, &m, &err));
        drps_net_message_free(m);
        for (uint64_t i = 0; i < SMALL_QUEUE; i++) {
            NET_OK(drps_net_receive(to, DRPS_NET_SERVER, 0, NET_WAIT_MS, &m, &err));
            assert_int_equal(m->round, sent - SMALL_QUEUE + i);
            expect_filled(m, 64);
            drps_net_message_free(m);
        }
    }
    net_job_close(&job);
}

/* Credit that goes back for several messages at a time must not be kept for ever. */
static void test_net_gives_the_whole_queue_back(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    uint64_t sent = 0, received = 0;
    net_job_open(&job, net_kind_of(state), 2, &(struct drps_net_options){.queue_messages = 5});
    static const unsigned sends[] = {5, 1, 4}, receives[] = {3, 2, 5};
    for (size_t i = 0; i < 3; i++) { /* the last of them needs room that was not told yet */
        for (unsigned k = 0; k < sends[i]; k++)
            NET_OK(send_bytes(job.nets[0], 1, DRPS_NET_SERVER, sent++, NULL, 0, NET_WAIT_MS, &err));
        for (unsigned k = 0; k < receives[i]; k++) {
            NET_OK(drps_net_receive(job.nets[1], DRPS_NET_SERVER, 0, NET_WAIT_MS, &m, &err));
            assert_int_equal(m->round, received++);
            drps_net_message_free(m);
        }
    }
    assert_int_equal(received, sent);
    net_job_close(&job);
}

static void test_net_receives_from_the_rank_that_is_asked_for(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    net_job_open(&job, net_kind_of(state), 3, &(struct drps_net_options){0});
    for (uint32_t r = 0; r < 3; r++)
        for (uint64_t i = 0; i < 2; i++)
            NET_OK(send_bytes(job.nets[r], 0, DRPS_NET_SERVER, i, NULL, 0, NET_WAIT_MS, &err));
    for (uint32_t i = 0; i < 6; i++) {
        const uint32_t from = 2 - i % 3;
        NET_OK(drps_net_receive(job.nets[0], DRPS_NET_SERVER, from, NET_WAIT_MS, &m, &err));
        assert_int_equal(m->from, from);
        assert_int_equal(m->round, i / 3);
        drps_net_message_free(m);
    }
    net_job_close(&job);
}

/* --- closing --- */

struct waiting {
    struct drps_net *net;
    int sends; /* or receives */
    int rc;
    struct drps_err err;
    pthread_barrier_t *begun;
};

static void *wait_inside(void *arg)
{
    struct waiting *w = arg;
    struct drps_net_message *m;
    pthread_barrier_wait(w->begun);
    if (w->sends)
        w->rc = send_bytes(w->net, 1, DRPS_NET_SERVER, 9, NULL, 0, NET_WAIT_MS, &w->err);
    else
        w->rc = drps_net_receive(w->net, DRPS_NET_WORKER, 1, NET_WAIT_MS, &m, &w->err);
    return NULL;
}

/* Both ends see to it that a thread is inside, or about to be, when the job ends. */
static void check_ends_waits(enum net_kind kind, void (*end)(struct net_job *job), int code,
                             const char *text)
{
    for (int sends = 0; sends < 2; sends++) {
        struct net_job job;
        struct drps_err err = DRPS_ERR_INIT;
        pthread_barrier_t begun;
        pthread_t thread;
        net_job_open(&job, kind, 2, &(struct drps_net_options){.queue_messages = 1});
        NET_OK(send_bytes(job.nets[0], 1, DRPS_NET_SERVER, 0, NULL, 0, NET_WAIT_MS, &err));
        pthread_barrier_init(&begun, NULL, 2);
        struct waiting w = {.net = job.nets[0], .sends = sends, .begun = &begun};
        assert_int_equal(pthread_create(&thread, NULL, wait_inside, &w), 0);
        pthread_barrier_wait(&begun);
        end(&job);
        assert_int_equal(pthread_join(thread, NULL), 0);
        if (w.rc != code || !strstr(w.err.text, text))
            fail_msg("%s: %d: %s", sends ? "send" : "receive", w.rc, w.err.text);
        pthread_barrier_destroy(&begun);
        net_job_close(&job);
    }
}

static void peer_leaves(struct net_job *job)
{
    drps_net_close(job->nets[1], 2000, NULL);
    job->nets[1] = NULL;
}

static void peer_gives_up(struct net_job *job)
{
    struct drps_err why = DRPS_ERR_INIT;
    (void)drps_err_set(&why, -ENOSPC, "the disk is full");
    drps_net_close(job->nets[1], 2000, &why);
    job->nets[1] = NULL;
}

static void test_net_names_a_rank_that_has_left(void **state)
{
    check_ends_waits(net_kind_of(state), peer_leaves, DRPS_E_PEER, "has left the job");
}

static void test_net_tells_why_a_rank_gave_up(void **state)
{
    check_ends_waits(net_kind_of(state), peer_gives_up, DRPS_E_PEER, "gave up: the disk is full");
}

/* Rank 1 gives up before or after rank 0 has said that it needs rank 2 alone: that one's messages
 * go on, and rank 1 is as one that has left. Its own loss still ends the job. */
static void test_net_needs_one_rank(void **state)
{
    for (int before = 0; before < 2; before++) {
        struct net_job job;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_net_message *m;
        net_job_open(&job, net_kind_of(state), 3, &(struct drps_net_options){0});
        drps_net_need(job.nets[2], 0);
        if (!before) drps_net_need(job.nets[0], 2);
        peer_gives_up(&job);
        int rc = drps_net_receive(job.nets[0], DRPS_NET_SERVER, 1, NET_WAIT_MS, &m, &err);
        assert_int_equal(rc, DRPS_E_PEER);
        assert_non_null(strstr(err.text, before ? "gave up: the disk is full" : "has left"));
        drps_net_need(job.nets[0], 2);
        drps_err_clear(&err);
        NET_OK(send_bytes(job.nets[2], 0, DRPS_NET_SERVER, 5, NULL, 0, NET_WAIT_MS, &err));
        NET_OK(drps_net_receive(job.nets[0], DRPS_NET_SERVER, 2, NET_WAIT_MS, &m, &err));
        assert_int_equal(m->round, 5);
        drps_net_message_free(m);
        rc = send_bytes(job.nets[0], 1, DRPS_NET_SERVER, 0, NULL, 0, NET_WAIT_MS, &err);
        assert_int_equal(rc, DRPS_E_PEER);
        assert_non_null(strstr(err.text, "has left"));
        const struct drps_err why = {.code = -EIO, .text = "a bad disk"};
        drps_net_close(job.nets[2], 2000, &why);
        job.nets[2] = NULL;
        drps_err_clear(&err);
        rc = drps_net_receive(job.nets[0], DRPS_NET_SERVER, 2, NET_WAIT_MS, &m, &err);
        assert_int_equal(rc, DRPS_E_PEER_FAILED); /* it would be as bad again */
        assert_non_null(strstr(err.text, "gave up: a bad disk"));
        net_job_close(&job);
    }
}

static void *send_until_closed(void *arg)
{
    struct waiting *w = arg;
    do
        w->rc = send_bytes(w->net, 1, DRPS_NET_SERVER, 0, NULL, 0, NET_WAIT_MS, &w->err);
    while (w->rc == 0);
    return NULL;
}

/* A thread has sent so many messages and is inside the next call: there it waits for room, as it
 * otherwise holds the lock until it returns. */
static int is_held_after(struct drps_net *net, uint64_t sent)
{
    pthread_mutex_lock(net->lock);
    const int held = net->callers == 1 && net->peers[1].stats.sent_messages == sent;
    pthread_mutex_unlock(net->lock);
    return held;
}

static void test_net_can_be_closed_while_a_thread_sends(void **state)
{
    struct net_job job;
    pthread_t thread;
    net_job_open(&job, net_kind_of(state), 2,
                 &(struct drps_net_options){.queue_messages = SMALL_QUEUE});
    struct waiting w = {.net = job.nets[0]};
    assert_int_equal(pthread_create(&thread, NULL, send_until_closed, &w), 0);
    while (!is_held_after(job.nets[0], SMALL_QUEUE)) /* no call may begin after closing */
        ;
    drps_net_close(job.nets[0], 2000, NULL);
    job.nets[0] = NULL;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(w.rc, DRPS_E_CLOSED);
    net_job_close(&job);
}

/* --- groups --- */

static void meet(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t count = drps_net_count(net);
    (void)ctx;
    for (uint32_t root = 0; root < count; root++) {
        uint64_t value = rank == root ? 1000 + root : 0;
        NET_OK(drps_net_broadcast(net, root, &value, sizeof(value), NET_WAIT_MS, &err));
        NET_CHECK(value == 1000 + root);
    }
    for (uint64_t lap = 0; lap < 20; lap++) {
        uint64_t mine[2] = {rank, lap}, all[RANKS][2];
        NET_OK(drps_net_gather(net, mine, sizeof(mine), all, NET_WAIT_MS, &err));
        for (uint32_t r = 0; r < count; r++)
            NET_CHECK(all[r][0] == r && all[r][1] == lap);
        NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
    }
}

static void test_net_groups_meet(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    for (uint32_t count = 1; count <= RANKS; count += count < 3 ? 1 : 5) {
        struct net_job job;
        net_job_open(&job, kind, count, &(struct drps_net_options){0});
        net_job_run(&job, meet, NULL);
        net_job_close(&job);
    }
}

/* Four ranks meet, of which the second and the third are lost. */
static void meet_without(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t mine = rank + 10, value = rank ? 0 : 7, all[4] = {1, 1, 1, 1};
    (void)ctx;
    if (!net) return;
    NET_OK(drps_net_gather(net, &mine, sizeof(mine), all, NET_WAIT_MS, &err));
    NET_CHECK(all[0] == 10 && all[1] == 0 && all[2] == 0 && all[3] == 13);
    NET_OK(drps_net_broadcast(net, 0, &value, sizeof(value), NET_WAIT_MS, &err));
    NET_CHECK(value == 7);
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
    NET_CHECK(drps_net_is_missing(net, 1) && drps_net_is_missing(net, 2));
    NET_CHECK(!drps_net_is_missing(net, 0) && !drps_net_is_missing(net, 3));
}

/* Say that a rank is lost, as a transport does when it has fallen silent. */
static void lose(struct drps_net *net, uint32_t rank)
{
    const struct drps_err why = {.code = DRPS_E_PEER, .text = "it is dead"};
    pthread_mutex_lock(net->lock);
    drps_net_lost(net, rank, &why);
    pthread_mutex_unlock(net->lock);
}

/* Whether the others say before or after the loss of two ranks that they need rank 0 alone. */
static void test_net_groups_go_on_without_ranks_that_need_not_stay(void **state)
{
    for (int before = 0; before < 2; before++) {
        struct net_job job;
        net_job_open(&job, net_kind_of(state), 4, &(struct drps_net_options){0});
        struct drps_net *lost[2] = {job.nets[1], job.nets[2]};
        job.nets[1] = job.nets[2] = NULL;
        for (uint32_t r = 0; r < 4; r += 3) {
            if (before) drps_net_need(job.nets[r], 0);
            lose(job.nets[r], 1);
            lose(job.nets[r], 2);
            drps_net_need(job.nets[r], 0);
        }
        net_job_run(&job, meet_without, NULL);
        job.nets[1] = lost[0];
        job.nets[2] = lost[1];
        net_job_close(&job);
    }
}

static void miss(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t mine = rank, all[2];
    (void)ctx;
    if (rank) {
        NET_OK(drps_net_broadcast(net, 1, &mine, sizeof(mine), NET_WAIT_MS, &err));
        return;
    }
    NET_CHECK(drps_net_gather(net, &mine, sizeof(mine), all, NET_WAIT_MS, &err) == DRPS_E_PROTO);
    NET_CHECK(strstr(err.text, "rank 1") && strstr(err.text, "is in another call of the group"));
}

static void test_net_groups_find_out_that_ranks_are_in_different_calls(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    static char data[1];
    net_job_open(&job, net_kind_of(state), 2, &(struct drps_net_options){0});
    net_job_run(&job, miss, NULL);
    assert_int_equal(
        drps_net_broadcast(job.nets[0], 0, data, DRPS_NET_GROUP_BYTES + 1, NET_WAIT_MS, &err),
        -EINVAL);
    net_job_close(&job);
}

static void *meet_once(void *arg)
{
    struct drps_err err = DRPS_ERR_INIT;
    NET_OK(drps_net_barrier(arg, NET_WAIT_MS, &err));
    return NULL;
}

static void test_net_groups_take_one_call_of_a_rank_at_a_time(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    pthread_t threads[2];
    uint64_t value = 0;
    net_job_open(&job, net_kind_of(state), 2, &(struct drps_net_options){0});
    assert_int_equal(pthread_create(&threads[0], NULL, meet_once, job.nets[0]), 0);
    while (!atomic_load(&job.nets[0]->in_group)) /* it waits there for rank 1 */
        ;
    assert_int_equal(drps_net_barrier(job.nets[0], NET_WAIT_MS, &err), -EBUSY);
    assert_non_null(strstr(err.text, "another thread of rank 0 is in a call of the group"));
    drps_err_clear(&err);
    assert_int_equal(drps_net_broadcast(job.nets[0], 0, &value, 8, NET_WAIT_MS, &err), -EBUSY);
    assert_int_equal(pthread_create(&threads[1], NULL, meet_once, job.nets[1]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    net_job_run(&job, meet, NULL);
    net_job_close(&job);
}

static void test_net_checks_its_options(void **state)
{
    static const struct {
        const char *name;
        struct drps_net_options o;
        const char *text;
    } cases[] = {
        {"no ranks", {.count = 0}, "0 ranks"},
        {"too many", {.count = DRPS_NET_RANKS_MAX + 1}, "1025 ranks"},
        {"queue", {.count = 1, .queue_messages = 1025}, "queue_messages 1025"},
        {"silence", {.count = 1, .silence_ms = 99}, "silence_ms 99"},
        {"size", {.count = 1, .message_bytes = {DRPS_NET_MESSAGE_MAX + 1}}, "messages of"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_net *net;
        if (drps_net_open_inproc(&cases[i].o, &net, &err) != -EINVAL ||
            !strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].name, err.text);
    }
    drps_net_close(NULL, 0, NULL);
    drps_net_message_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_OVER_ALL(test_net_keeps_order_of_each_rank_for_1_to_8_ranks),
        NET_OVER_ALL(test_net_moves_messages_of_any_size_that_is_allowed),
        NET_OVER_ALL(test_net_keeps_order_of_short_messages_past_long_ones),
        NET_OVER_ALL(test_net_refuses_what_the_receiver_does_not_take),
        NET_OVER_ALL(test_net_waits_have_an_end),
        NET_OVER_ALL(test_net_holds_a_sender_whose_receiver_does_not_take),
        NET_OVER_ALL(test_net_gives_the_whole_queue_back),
        NET_OVER_ALL(test_net_receives_from_the_rank_that_is_asked_for),
        NET_OVER_ALL(test_net_names_a_rank_that_has_left),
        NET_OVER_ALL(test_net_tells_why_a_rank_gave_up),
        NET_OVER_ALL(test_net_needs_one_rank),
        NET_OVER_ALL(test_net_can_be_closed_while_a_thread_sends),
        NET_OVER_ALL(test_net_groups_meet),
        NET_OVER_ALL(test_net_groups_go_on_without_ranks_that_need_not_stay),
        NET_OVER_ALL(test_net_groups_find_out_that_ranks_are_in_different_calls),
        NET_OVER_ALL(test_net_groups_take_one_call_of_a_rank_at_a_time),
        cmocka_unit_test(test_net_checks_its_options),
        cmocka_unit_test(test_inproc_lends_one_piece),
    };
    if (net_mpi_start()) return 0; /* a mirror */
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    net_mpi_stop();
    return failed;
}
