/*
 * Ranks that exchange vectors without rounds, by the history of whole runs over inproc: who was
 * handed which batch, to whom its vectors were sent, and which replica was stepped with them, when.
 * With it a checker proves of each epoch:
 *
 *   - each batch is computed once, by the rank that it was handed to;
 *   - a replica is stepped with its gradient once where that rank has sent it to, and on that rank,
 *     and never elsewhere; with the same gradient, where it counts the same;
 *   - a rank's own batches are in its replica when it begins its next one;
 *   - when replicas meet all that was sent is applied, so that with sgd, whose steps add up in any
 *     order, they differ by rounding alone.
 *
 * Ranks dawdle where they send and where they take. The linker puts the history's functions in the
 * place of the calls that it records.
 *
 *   test_apart [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/sv/exchange_internal.h"
#include "engine/cluster/drps_messages.h"
#include "sched/drps_claim.h"
#include "support/scratch.h"
#include "support/world.h"

enum {
    RANKS = WORLD_WORKERS,
    STEPS_MAX = 256,
    EPOCHS = 2,
    ROWS_MOST = 4096,
    VALUES_MOST = 1 << 16
};

static uint64_t seed = 20261126;

/* A batch of an epoch. */
struct batch {
    unsigned handed_out, computed;
    uint32_t by;
    unsigned sent[RANKS], applied[RANKS];
    uint64_t gradient[RANKS]; /* a hash of that which each replica was stepped with */
};

static struct {
    pthread_mutex_t lock; /* guards what is below */
    struct random_source random;
    int epoch;
    struct batch batches[EPOCHS][RANKS][STEPS_MAX];
    int alike;     /* replicas are to be alike when they meet */
    int miscounts; /* ranks say that they have sent one batch more than they have */
    unsigned met;
    uint64_t steps;
    float values[VALUES_MOST]; /* of the replica that has met first in this epoch */
    size_t values_n;
} history = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What this thread applies. */
static _Thread_local struct batch *under_way;
static _Thread_local uint32_t at_rank;

static struct batch *batch_of(uint32_t share, uint64_t step)
{
    assert_true(share < RANKS && step < STEPS_MAX && history.epoch >= 0 && history.epoch < EPOCHS);
    return &history.batches[history.epoch][share][step];
}

/* Let the others run for a while that is drawn. */
static void dawdle(unsigned most)
{
    pthread_mutex_lock(&history.lock);
    unsigned n = (unsigned)random_below(&history.random, most);
    pthread_mutex_unlock(&history.lock);
    while (n--)
        (void)sched_yield();
}

/* ---- Who computes what ---- */

int __real_drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                          int claimable, struct drps_claim **claim_out, struct drps_err *err);
int __wrap_drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                          int claimable, struct drps_claim **claim_out, struct drps_err *err);
int __wrap_drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                          int claimable, struct drps_claim **claim_out, struct drps_err *err)
{
    pthread_mutex_lock(&history.lock);
    history.epoch++;
    history.steps = steps;
    history.met = 0;
    pthread_mutex_unlock(&history.lock);
    return __real_drps_claim_new(workers, steps, starts, windows, claimable, claim_out, err);
}

int __real_drps_claim_next(struct drps_claim *c, unsigned worker,
                           struct drps_claim_batch *batch_out, struct drps_err *err);
int __wrap_drps_claim_next(struct drps_claim *c, unsigned worker,
                           struct drps_claim_batch *batch_out, struct drps_err *err);
int __wrap_drps_claim_next(struct drps_claim *c, unsigned worker,
                           struct drps_claim_batch *batch_out, struct drps_err *err)
{
    int rc = __real_drps_claim_next(c, worker, batch_out, err);
    if (rc != 1) return rc;
    pthread_mutex_lock(&history.lock);
    struct batch *b = batch_of(batch_out->share, batch_out->step);
    b->handed_out++;
    b->by = worker;
    pthread_mutex_unlock(&history.lock);
    return rc;
}

/* Are all batches that this rank has computed in its replica? */
static int own_are_in(uint32_t rank)
{
    const struct batch *b = &history.batches[history.epoch][0][0];
    for (size_t i = 0; i < (size_t)RANKS * STEPS_MAX; i++)
        if (b[i].computed && b[i].by == rank && b[i].applied[rank] != 1) return 0;
    return 1;
}

int __real_drps_exchange_turn(struct drps_exchanging *x, const struct drps_net_message *record,
                              uint32_t share, struct drps_round *out, struct drps_err *err);
int __wrap_drps_exchange_turn(struct drps_exchanging *x, const struct drps_net_message *record,
                              uint32_t share, struct drps_round *out, struct drps_err *err);
int __wrap_drps_exchange_turn(struct drps_exchanging *x, const struct drps_net_message *record,
                              uint32_t share, struct drps_round *out, struct drps_err *err)
{
    dawdle(30);
    pthread_mutex_lock(&history.lock);
    assert_true(own_are_in(x->rank));
    under_way = batch_of(share, record->round);
    under_way->computed++;
    assert_int_equal(under_way->by, x->rank);
    pthread_mutex_unlock(&history.lock);
    at_rank = x->rank;
    int rc = __real_drps_exchange_turn(x, record, share, out, err);
    under_way = NULL;
    return rc;
}

/* ---- Where it goes ---- */

int __real_drps_net_send(struct drps_net *net, const struct drps_net_send *send,
                         uint32_t timeout_ms, struct drps_err *err);
int __wrap_drps_net_send(struct drps_net *net, const struct drps_net_send *send,
                         uint32_t timeout_ms, struct drps_err *err);
int __wrap_drps_net_send(struct drps_net *net, const struct drps_net_send *send,
                         uint32_t timeout_ms, struct drps_err *err)
{
    if (send->type == DRPS_MESSAGE_VECTORS) {
        dawdle(20);
        pthread_mutex_lock(&history.lock);
        assert_int_equal(send->part, DRPS_NET_SERVER);
        batch_of(send->tag, send->round)->sent[send->to]++;
        pthread_mutex_unlock(&history.lock);
    }
    struct drps_net_send sent = *send;
    if (history.miscounts && send->type == DRPS_MESSAGE_END && send->part == DRPS_NET_SERVER)
        sent.round++;
    return __real_drps_net_send(net, &sent, timeout_ms, err);
}

int __real_drps_exchange_take(struct drps_exchanging *x, const struct drps_net_message *m,
                              struct drps_err *err);
int __wrap_drps_exchange_take(struct drps_exchanging *x, const struct drps_net_message *m,
                              struct drps_err *err);
int __wrap_drps_exchange_take(struct drps_exchanging *x, const struct drps_net_message *m,
                              struct drps_err *err)
{
    dawdle(x->rank ? 20 : 60);
    if (m->type == DRPS_MESSAGE_VECTORS) under_way = batch_of(m->tag, m->round);
    at_rank = x->rank;
    int rc = __real_drps_exchange_take(x, m, err);
    under_way = NULL;
    return rc;
}

void __real_replica_step(struct replica *r, const uint32_t *ids, size_t n, const float *grads,
                         const uint32_t *touches);
void __wrap_replica_step(struct replica *r, const uint32_t *ids, size_t n, const float *grads,
                         const uint32_t *touches);
void __wrap_replica_step(struct replica *r, const uint32_t *ids, size_t n, const float *grads,
                         const uint32_t *touches)
{
    const size_t values = n * r->server->model.dim * sizeof(*grads);
    pthread_mutex_lock(&history.lock);
    assert_non_null(under_way);
    under_way->applied[at_rank]++;
    under_way->gradient[at_rank] =
        drps_checksum(ids, n * sizeof(*ids)) ^ drps_checksum(grads, values);
    pthread_mutex_unlock(&history.lock);
    __real_replica_step(r, ids, n, grads, touches);
}

/* ---- Where it ends ---- */

/* All that was sent to this rank, and what it has computed, is in its replica. */
static void check_complete(uint32_t rank)
{
    for (uint32_t share = 0; share < RANKS; share++)
        for (uint64_t step = 0; step < history.steps; step++) {
            const struct batch *b = batch_of(share, step);
            const unsigned due = b->by == rank ? 1 : b->sent[rank];
            if (b->applied[rank] != due || due > 1)
                fail_msg("rank %u: share %u, step %llu of rank %u is applied %u times, and was "
                         "sent %u times",
                         rank, share, (unsigned long long)step, b->by, b->applied[rank],
                         b->sent[rank]);
        }
}

/* They differ by rounding alone: sums of some hundred steps in another order. */
static void check_alike(const struct drps_exchanging *x)
{
    const size_t n = (size_t)x->replica.rows * (x->replica.row_bytes / sizeof(float));
    const float *values = (const float *)(const void *)x->replica.data;
    assert_true(n <= VALUES_MOST);
    if (!history.values_n) memcpy(history.values, values, n * sizeof(*values));
    history.values_n = n;
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(values[i] - history.values[i]) <= 1e-5F + 1e-4F * fabsf(values[i])))
            fail_msg("rank %u: value %zu is %g, and %g elsewhere", x->rank, i, (double)values[i],
                     (double)history.values[i]);
}

int __real_drps_exchange_end(struct drps_exchanging *x, struct drps_err *err);
int __wrap_drps_exchange_end(struct drps_exchanging *x, struct drps_err *err);
int __wrap_drps_exchange_end(struct drps_exchanging *x, struct drps_err *err)
{
    pthread_mutex_lock(&history.lock);
    check_complete(x->rank);
    if (history.alike) check_alike(x);
    if (++history.met == RANKS) history.values_n = 0;
    pthread_mutex_unlock(&history.lock);
    return __real_drps_exchange_end(x, err);
}

/* ---- Runs ---- */

/* `copies`: how many ranks each batch's vectors go to; 0: it varies. */
static void check_batch(const struct batch *b, unsigned copies, int same)
{
    unsigned sent = 0;
    assert_int_equal(b->handed_out, 1);
    assert_int_equal(b->computed, 1);
    assert_int_equal(b->sent[b->by], 0);
    for (uint32_t r = 0; r < RANKS; r++) {
        sent += b->sent[r];
        if (same && b->sent[r]) assert_int_equal(b->gradient[r], b->gradient[b->by]);
    }
    if (copies) assert_int_equal(sent, copies);
}

static void history_begin(void)
{
    memset(history.batches, 0, sizeof(history.batches));
    history.epoch = -1;
    history.values_n = 0;
}

static uint64_t lent_bytes(const struct drps_train_result *r)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        bytes += r->ranks[i].sent[DRPS_TRAFFIC_BATCHES].bytes;
    return bytes;
}

/* Returns how many batches ranks have computed of others. */
static uint64_t check_run(const struct world *w, const struct drps_train_options *o,
                          unsigned copies)
{
    struct drps_train_result r;
    uint64_t claimed = 0, done = 0, reported = 0;
    history_begin();
    world_train(w, o, &r);
    assert_int_equal(history.epoch, EPOCHS - 1);
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (uint32_t share = 0; share < RANKS; share++)
            for (uint64_t step = 0; step < history.steps; step++) {
                const struct batch *b = &history.batches[epoch][share][step];
                check_batch(b, copies, o->multicast.to == 0);
                claimed += b->by != share;
                done++;
            }
    for (size_t i = 0; i < r.ranks_n; i++) {
        reported += r.ranks[i].claimed;
        done -= r.ranks[i].iterations;
    }
    assert_int_equal(done, 0);
    assert_int_equal(reported, claimed);
    assert_true((lent_bytes(&r) > 0) == (claimed > 0));
    world_check_model(w, &r);
    drps_train_result_free(&r);
    return claimed;
}

static struct drps_train_options options_of(const struct world *w)
{
    struct drps_train_options o = world_options(w);
    o.exchange = DRPS_EXCHANGE_VECTORS;
    o.epochs = EPOCHS;
    return o;
}

static const enum drps_sched_mode modes[] = {DRPS_SCHED_ASP, DRPS_SCHED_WSP,
                                             DRPS_SCHED_WSP_LITERAL};

static void test_each_gradient_is_applied_once_on_each_replica(void **state)
{
    struct world *w = world_begin("mlr", CASE_LIBSVM, 5, 5, seed);
    struct drps_train_options o = options_of(w);
    (void)state;
    o.optimizer = "sgd";
    history.alike = 1;
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        o.sync = modes[i];
        o.no_claim = 0;
        (void)check_run(w, &o, RANKS - 1);
        o.no_claim = 1;
        assert_int_equal(check_run(w, &o, RANKS - 1), 0);
    }
    history.alike = 0;
    world_end(w);
}

static void test_some_vectors_and_some_receivers(void **state)
{
    struct world *w = world_begin("mlr", CASE_LIBSVM, 10, 10, seed + 1);
    struct drps_train_options o = options_of(w);
    (void)state;
    o.sync = DRPS_SCHED_WSP;
    o.l2 = 1e-4F;
    o.sv_count = 4;
    (void)check_run(w, &o, RANKS - 1);
    o.sv_rule = DRPS_SV_PROJECT;
    (void)check_run(w, &o, RANKS - 1);
    o.sv_count = 0;
    o.sv_rule = DRPS_SV_JMCSS;
    o.multicast.to = 1;
    for (int rule = DRPS_MULTICAST_RANDOM; rule <= DRPS_MULTICAST_FIXED; rule++) {
        o.multicast.rule = (enum drps_multicast_rule)rule;
        (void)check_run(w, &o, 1);
    }
    o.multicast = (struct drps_train_multicast){.loss = .3};
    (void)check_run(w, &o, 0);
    world_end(w);
}

static int is_taken_over(uint32_t share)
{
    int is = 0;
    pthread_mutex_lock(&history.lock);
    for (uint64_t step = 0; step < history.steps; step++) {
        const struct batch *b = batch_of(share, step);
        is |= b->computed && b->by != share;
    }
    pthread_mutex_unlock(&history.lock);
    return is;
}

/* The last rank does not begin its first batch until another one has computed a later one. */
static void on_batch(void *ctx, const struct drps_train_batch *b)
{
    (void)ctx;
    while (b->moment == DRPS_BATCH_BEGINS && b->rank == RANKS - 1 && b->step == 0 &&
           b->share == b->rank && !is_taken_over(b->rank))
        (void)sched_yield();
}

static void test_batches_of_a_slow_rank_are_taken_over(void **state)
{
    struct world *w = world_begin("mlr", CASE_LIBSVM, 5, 5, seed + 2);
    struct drps_train_options o = options_of(w);
    (void)state;
    o.sync = DRPS_SCHED_ASP;
    o.on_batch = on_batch;
    assert_true(check_run(w, &o, RANKS - 1) > 0);
    world_end(w);
}

/* ---- Ending early ---- */

static atomic_int stop;

static void stop_in_epoch(void *ctx, const struct drps_train_batch *b)
{
    (void)ctx;
    if (b->moment == DRPS_BATCH_DONE) atomic_store(&stop, 1);
}

static void test_ranks_stop_between_epochs(void **state)
{
    struct world *w = world_begin("mlr", CASE_LIBSVM, 5, 5, seed + 3);
    struct drps_train_options o = options_of(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    history_begin();
    o.sync = DRPS_SCHED_WSP;
    o.on_batch = stop_in_epoch;
    o.stop = &stop;
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(history.epoch, 0);
    assert_int_equal(history.met, RANKS);
    drps_train_result_free(&r);
    o.on_batch = NULL;
    o.stop = NULL;
    o.resume = 1;
    history_begin();
    world_train(w, &o, &r);
    assert_int_equal(history.epoch, 0); /* one was left */
    world_check_model(w, &r);
    drps_train_result_free(&r);
    world_end(w);
}

static void test_a_rank_that_fails_ends_all(void **state)
{
    static const char *const files[] = {"data.rec", "numbers.rec"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct world *w = world_begin("mlr", CASE_LIBSVM, 10, 10, seed);
        struct drps_train_options o = options_of(w);
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        world_damage(w, files[i]);
        history_begin();
        o.sync = DRPS_SCHED_WSP;
        const int rc = world_run(w, &o, &r, &err);
        assert_true(rc == DRPS_E_PEER_FAILED || rc == DRPS_E_CORRUPT);
        if (!strstr(err.text, files[i]) ||
            !(strstr(err.text, "rank 1") || strstr(err.text, "rank-1")))
            fail_msg("%s of rank 1 is damaged: %s", files[i], err.text);
        drps_train_result_free(&r);
        world_end(w);
    }
}

static void test_vectors_that_are_missing_end_all(void **state)
{
    struct world *w = world_begin("mlr", CASE_LIBSVM, 10, 10, seed);
    struct drps_train_options o = options_of(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    history_begin();
    history.miscounts = 1;
    o.sync = DRPS_SCHED_WSP;
    const int rc = world_run(w, &o, &r, &err);
    history.miscounts = 0;
    if (rc != DRPS_E_PEER && rc != DRPS_E_PROTO) fail_msg("%d: %s", rc, err.text);
    if (!strstr(err.text, "has sent vectors of")) fail_msg("%s", err.text);
    drps_train_result_free(&r);
    world_end(w);
}

static void test_a_loss_without_end_ends_all(void **state)
{
    struct world *w = world_begin("mlr", CASE_LIBSVM, 10, 10, seed);
    struct drps_train_options o = options_of(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    history_begin();
    o.sync = DRPS_SCHED_WSP;
    o.optimizer = "sgd";
    o.lr = 3e38F;
    const int rc = world_run(w, &o, &r, &err);
    assert_true(rc == DRPS_E_PEER_FAILED || rc == -ERANGE);
    assert_non_null(strstr(err.text, "try a smaller learning rate"));
    drps_train_result_free(&r);
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_gradient_is_applied_once_on_each_replica),
        cmocka_unit_test(test_some_vectors_and_some_receivers),
        cmocka_unit_test(test_batches_of_a_slow_rank_are_taken_over),
        cmocka_unit_test(test_ranks_stop_between_epochs),
        cmocka_unit_test(test_a_rank_that_fails_ends_all),
        cmocka_unit_test(test_vectors_that_are_missing_end_all),
        cmocka_unit_test(test_a_loss_without_end_ends_all),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    history.random = random_begin("apart");
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
