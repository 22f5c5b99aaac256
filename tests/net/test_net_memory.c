/*
 * Jobs in which a rank runs out of memory or threads: at each call once. That rank ends with that
 * error; the others end, too, and say why. The sanitised build sees that nothing leaks.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/drps_allreduce.h"
#include "net/drps_meet.h"
#include "support/alloc_fault.h"
#include "support/net_job.h"
#include "support/scratch.h"

enum {
    RANKS = 2,
    TYPE = DRPS_NET_TYPE_FIRST,
    LARGE = 700000, /* bytes: several pieces */
};

struct rank {
    struct drps_net_options options;
    const struct drps_peers *peers; /* NULL: `net` is open */
    const struct drps_net_keys *keys;
    struct drps_net *net;
    const void *large;          /* [LARGE] */
    atomic_int *stop;           /* a rank has not come: nobody waits for it */
    pthread_barrier_t *created; /* all ranks' threads are there: later ones are what is tested */
    int rc;
    struct drps_err err;
};

static int tell(struct rank *r, uint32_t to, const void *data, size_t bytes)
{
    const struct drps_piece piece = {data, bytes};
    const struct drps_net_send send = {.to = to, .type = TYPE, .pieces = &piece, .n = 1};
    return drps_net_send(r->net, &send, NET_WAIT_MS, &r->err);
}

static int hear(struct rank *r, uint32_t from, const void *data, size_t bytes)
{
    struct drps_net_message *m;
    const int rc = drps_net_receive(r->net, DRPS_NET_WORKER, from, NET_WAIT_MS, &m, &r->err);
    if (rc == 0) NET_CHECK(m->bytes == bytes && memcmp(m->data, data, bytes) == 0);
    drps_net_message_free(m);
    return rc;
}

static int sum(struct rank *r)
{
    double value = 1;
    const struct drps_net_allreduce sum = {.values = &value, .n = 1, .type = DRPS_NET_FLOAT64};
    const int rc = drps_net_allreduce(r->net, &sum, NET_WAIT_MS, &r->err);
    if (rc == 0) NET_CHECK(value == RANKS);
    return rc;
}

/* A small and a large message from each rank to each, and a sum. */
static int exchange(struct rank *r)
{
    int rc = drps_net_barrier(r->net, NET_WAIT_MS, &r->err);
    for (uint32_t to = 0; to < RANKS && rc == 0; to++) {
        rc = tell(r, to, "small", 6);
        if (rc == 0) rc = tell(r, to, r->large, LARGE);
    }
    for (uint32_t from = 0; from < RANKS && rc == 0; from++) {
        rc = hear(r, from, "small", 6);
        if (rc == 0) rc = hear(r, from, r->large, LARGE);
    }
    if (rc == 0) rc = sum(r);
    return rc == 0 ? drps_net_barrier(r->net, NET_WAIT_MS, &r->err) : rc;
}

static void *take_part(void *arg)
{
    struct rank *r = arg;
    (void)pthread_barrier_wait(r->created);
    if (r->peers) r->rc = drps_net_open_zmq(&r->options, r->peers, r->keys, 0, &r->net, &r->err);
    if (!r->net) atomic_store(r->stop, 1);
    if (r->rc == 0) r->rc = exchange(r);
    drps_net_close(r->net, NET_WAIT_MS, r->rc < 0 ? &r->err : NULL);
    return NULL;
}

/* All ranks, each in a thread. */
static void run_ranks(struct rank ranks[RANKS])
{
    pthread_t threads[RANKS];
    pthread_barrier_t created;
    assert_int_equal(pthread_barrier_init(&created, NULL, RANKS), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        ranks[i].created = &created;
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_part, &ranks[i]), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&created), 0);
}

static void open_inproc(struct rank ranks[RANKS])
{
    struct drps_net *nets[RANKS] = {NULL};
    const int rc = drps_net_open_inproc(&ranks[0].options, nets, &ranks[0].err);
    for (uint32_t i = 0; i < RANKS; i++) {
        ranks[i].net = nets[i];
        ranks[i].rc = rc;
        ranks[i].err = ranks[0].err;
        if (rc < 0) assert_null(nets[i]);
    }
}

/* Run the job with the k-th call failing. Returns whether one did. */
static int run_with_fault(enum net_kind kind, enum alloc_fault fault, long k, const void *large)
{
    const int want = fault == FAULT_MEMORY ? -ENOMEM : -EAGAIN;
    struct drps_peers peers = {0};
    struct drps_net_keys keys[RANKS];
    struct rank ranks[RANKS];
    atomic_int stop = 0;
    int told = 0, failed = 0;
    if (kind != NET_INPROC) net_peers(&peers, RANKS, kind == NET_CURVE ? keys : NULL);
    for (uint32_t i = 0; i < RANKS; i++)
        ranks[i] = (struct rank){.options = {.rank = i,
                                             .count = RANKS,
                                             .job_id = 7,
                                             .message_bytes = {LARGE, LARGE, LARGE},
                                             .stop = &stop},
                                 .peers = kind == NET_INPROC ? NULL : &peers,
                                 .keys = kind == NET_CURVE ? &keys[i] : NULL,
                                 .large = large,
                                 .stop = &stop,
                                 .err = DRPS_ERR_INIT};
    /* The ranks' own threads are this test's. */
    alloc_fault_arm(fault, fault == FAULT_THREAD ? RANKS + k : k);
    if (kind == NET_INPROC) open_inproc(ranks);
    run_ranks(ranks);
    const int fired = alloc_fault_disarm();
    for (uint32_t i = 0; i < RANKS; i++) {
        if (ranks[i].rc == 0) continue;
        failed++;
        told += ranks[i].rc == want;
        if (!fired || ranks[i].err.code != ranks[i].rc || !ranks[i].err.text[0])
            fail_msg("%s, call %ld (%#zx), rank %u: %d '%s'", net_kind_names[kind], k,
                     alloc_fault_where(), i, ranks[i].rc, ranks[i].err.text);
    }
    if (failed && !told)
        fail_msg("%s, call %ld (%#zx): %d '%s', %d '%s'", net_kind_names[kind], k,
                 alloc_fault_where(), ranks[0].rc, ranks[0].err.text, ranks[1].rc,
                 ranks[1].err.text);
    drps_peers_destroy(&peers);
    return fired;
}

static void each_call(enum alloc_fault fault)
{
    unsigned char *large = malloc(LARGE);
    assert_non_null(large);
    memset(large, 0x5a, LARGE);
    for (enum net_kind kind = NET_INPROC; kind < NET_KINDS; kind++) {
        long k = 1;
        if (kind == NET_UNIX || kind == NET_MPI || !net_kind_there(kind))
            continue; /* the first is NET_ZMQ elsewhere */
        while (run_with_fault(kind, fault, k, large))
            k++;
        print_message("%s: %ld calls\n", net_kind_names[kind], k - 1);
    }
    free(large);
}

static void test_net_without_memory(void **state)
{
    (void)state;
    each_call(FAULT_MEMORY);
}

static void test_net_without_threads(void **state)
{
    (void)state;
    each_call(FAULT_THREAD);
}

/* ---- Before the job ---- */

static int meet(struct scratch *s, struct drps_err *err)
{
    struct drps_meet m;
    (void)s;
    const int rc = drps_meet_open(3, &m, err);
    drps_meet_close(&m);
    return rc;
}

static int read_peers(struct scratch *s, struct drps_err *err)
{
    struct drps_peers peers;
    const int rc = drps_peers_read(drps_io_os(), scratch_path(s, "peers"), &peers, err);
    drps_peers_destroy(&peers);
    return rc;
}

static int make_keys(struct scratch *s, struct drps_err *err)
{
    struct drps_net_keys keys;
    return drps_net_keys_make(drps_io_os(), scratch_path(s, "keys"), &keys, err);
}

static int load_keys(struct scratch *s, struct drps_err *err)
{
    struct drps_net_keys keys;
    return drps_net_keys_load(drps_io_os(), scratch_path(s, "mine"), &keys, err);
}

static void test_meeting_without_memory(void **state)
{
    static const struct {
        const char *name;
        int (*run)(struct scratch *s, struct drps_err *err);
        int needs_zmq;
    } cases[] = {
        {"meet", meet, 0},
        {"read peers", read_peers, 0},
        {"make keys", make_keys, 1},
        {"load keys", load_keys, 1},
    };
    struct scratch *s = *state;
    struct drps_net_keys keys;
    struct drps_err err = DRPS_ERR_INIT;
    (void)scratch_file(s, "peers", "# two\n127.0.0.1:7000\n127.0.0.1:7001\n", SIZE_MAX);
    if (net_kind_there(NET_CURVE) &&
        drps_net_keys_make(drps_io_os(), scratch_path(s, "mine"), &keys, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (cases[i].needs_zmq && !net_kind_there(NET_CURVE)) continue;
        for (long k = 1, fired = 1; fired; k++) {
            drps_err_clear(&err);
            alloc_fault_arm(FAULT_MEMORY, k);
            const int rc = cases[i].run(s, &err);
            fired = alloc_fault_disarm();
            (void)drps_io_remove_tree(drps_io_os(), scratch_path(s, "keys"), NULL);
            if (rc != (fired ? -ENOMEM : 0) || (fired && !err.text[0]))
                fail_msg("%s, call %ld (%#zx): %d '%s'", cases[i].name, k, alloc_fault_where(), rc,
                         err.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_net_without_memory),
        cmocka_unit_test(test_net_without_threads),
        cmocka_unit_test_setup_teardown(test_meeting_without_memory, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
