/*
 * What parameters contain, by the history of whole runs over inproc: who was released with which
 * label for which batch, when each server took each gradient, and when it answered each pull. With
 * it a checker proves what drps_async.h says of every value that was used:
 *
 *   ssp  a batch of label t has, from every server, all gradients of labels up to t - bound - 1
 *   ssp  so have rows of which the worker uses copies, when these were answered
 *   all  it has those of its worker's own batches; of the last one, where its parameters were asked
 *        for ahead, in the rows that come with a second message
 *
 * Gradients are late: they leave their worker after it has said that the batch is done; and servers
 * dawdle, so that answers come when an epoch is over, and a gradient that stays where it is (that
 * for the rank's own server) waits there. The linker puts the history's functions in the place of
 * the calls that it records.
 *
 *   test_async_history [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/async/drps_async.h"
#include "engine/cluster/drps_messages.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/drps_round.h"
#include "sched/drps_claim.h"
#include "sched/drps_sched.h"
#include "support/scratch.h"
#include "support/world.h"

enum {
    WORKERS = WORLD_WORKERS,
    STEPS_MAX = 512,
    EPOCHS = 2,
    HELD_BYTES = 1 << 16,
    ROWS_MOST = 4096,
    USES_MOST = 1 << 20
};

static uint64_t seed = 20240607;

/* A batch of an epoch: who executed it, and for each server the time of its log. 0: never. */
struct batch {
    int handed_out, pulled; /* pulled: in its turn */
    unsigned by;
    uint64_t label, number; /* number: of the worker's batches of the epoch, from 0 */
    uint64_t taken[WORKERS], answered[WORKERS], ahead[WORKERS], rest[WORKERS];
    float first; /* of the gradient for the worker's own server */
};

/* A batch has a row of which its worker has a copy. */
struct use {
    const struct batch *batch, *copied; /* copied: with that one's answer */
    unsigned server;
};

/* The rows that a server has of a batch, as numbers of the server. */
struct batch_rows {
    uint32_t *ids; /* own */
    size_t n;
};

/* A gradient that has not left yet. */
struct held {
    struct drps_net_send send;
    struct drps_piece piece;
    unsigned char data[HELD_BYTES];
    int full;
};

static struct {
    pthread_mutex_t lock; /* guards what is below */
    atomic_int recording; /* training is under way: evaluation has messages of the same types */
    struct random_source random;
    const struct drps_sched *sched;
    int epoch;
    uint64_t time;
    uint64_t numbers[EPOCHS][WORKERS];
    struct batch batches[EPOCHS][WORKERS][STEPS_MAX];
    const struct batch *answer[WORKERS][WORKERS][ROWS_MOST]; /* by worker, server and row: with
                                                                which it came; of the epoch */
    struct use uses[USES_MOST];
    size_t uses_n;
    struct batch_rows rows[WORKERS][WORKERS][STEPS_MAX]; /* by server, share and step; of plans
                                                            with slots */
} history = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct held late[WORKERS][WORKERS]; /* by sender, which alone uses it, and receiver */

static struct batch *batch_of(uint32_t share, uint64_t step)
{
    assert_true(share < WORKERS && step < STEPS_MAX && history.epoch < EPOCHS);
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

/* ---- Who starts what ---- */

int __real_drps_sched_new(const struct drps_sched_config *config, uint64_t now_ns,
                          struct drps_sched **sched_out, struct drps_err *err);
int __wrap_drps_sched_new(const struct drps_sched_config *config, uint64_t now_ns,
                          struct drps_sched **sched_out, struct drps_err *err);
int __wrap_drps_sched_new(const struct drps_sched_config *config, uint64_t now_ns,
                          struct drps_sched **sched_out, struct drps_err *err)
{
    int rc = __real_drps_sched_new(config, now_ns, sched_out, err);
    history.sched = *sched_out;
    return rc;
}

int __real_drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                          int claimable, struct drps_claim **claim_out, struct drps_err *err);
int __wrap_drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                          int claimable, struct drps_claim **claim_out, struct drps_err *err);
int __wrap_drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                          int claimable, struct drps_claim **claim_out, struct drps_err *err)
{
    pthread_mutex_lock(&history.lock);
    history.epoch++;
    memset(history.answer, 0, sizeof(history.answer));
    pthread_mutex_unlock(&history.lock);
    atomic_store(&history.recording, 1);
    return __real_drps_claim_new(workers, steps, starts, windows, claimable, claim_out, err);
}

/* It ends with a barrier, so that nobody trains when it returns. */
int __real_drps_async_end(struct drps_async *async, int rc, struct drps_err *err);
int __wrap_drps_async_end(struct drps_async *async, int rc, struct drps_err *err);
int __wrap_drps_async_end(struct drps_async *async, int rc, struct drps_err *err)
{
    rc = __real_drps_async_end(async, rc, err);
    atomic_store(&history.recording, 0);
    return rc;
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
    assert_false(b->handed_out);
    b->handed_out = 1;
    b->by = worker;
    b->label = drps_sched_workers(history.sched)[worker].label;
    b->number = history.numbers[history.epoch][worker]++;
    pthread_mutex_unlock(&history.lock);
    return rc;
}

/* ---- Messages ---- */

int __real_drps_net_send(struct drps_net *net, const struct drps_net_send *send,
                         uint32_t timeout_ms, struct drps_err *err);
int __wrap_drps_net_send(struct drps_net *net, const struct drps_net_send *send,
                         uint32_t timeout_ms, struct drps_err *err);

static int let_go(struct drps_net *net, uint32_t to, struct drps_err *err)
{
    struct held *h = &late[drps_net_rank(net)][to];
    if (!h->full) return 0;
    h->full = 0;
    return __real_drps_net_send(net, &h->send, 60000, err);
}

/* A gradient to another rank's server is kept until its worker waits for its next message, or has
 * one more for that server. Messages that the sender lends are let go as its net does. */
static int keep(struct drps_net *net, const struct drps_net_send *send, struct drps_err *err)
{
    struct held *h = &late[drps_net_rank(net)][send->to];
    int rc = let_go(net, send->to, err);
    size_t bytes = 0;
    for (size_t i = 0; i < send->n; bytes += send->pieces[i++].bytes) {
        assert_true(bytes + send->pieces[i].bytes <= HELD_BYTES);
        if (send->pieces[i].bytes)
            memcpy(h->data + bytes, send->pieces[i].data, send->pieces[i].bytes);
    }
    h->piece = (struct drps_piece){h->data, bytes};
    h->send = *send;
    h->send.pieces = &h->piece;
    h->send.n = 1;
    h->send.done = NULL;
    h->full = 1;
    if (send->done) send->done(send->ctx);
    return rc;
}

/* Buffers of gradients hold a row more than a batch has: there is a first value. */
static float first_value(const void *message)
{
    struct drps_message_here here;
    memcpy(&here, message, sizeof(here));
    return here.values[0];
}

/* A worker asks for some rows of its batch, and has copies of the others. */
static void note_pull(uint32_t worker, const struct drps_net_send *send)
{
    const struct batch_rows *rows = &history.rows[send->to][worker][send->round];
    const struct batch *b = batch_of(send->tag, send->round);
    const uint64_t *marks = send->n > 1 ? send->pieces[1].data : NULL;
    for (size_t i = 0; i < rows->n && send->tag == worker && send->to != worker; i++) {
        const struct batch **answer = &history.answer[worker][send->to][rows->ids[i]];
        if (!marks || marks[i / 64] >> i % 64 & 1) {
            *answer = b;
            continue;
        }
        assert_non_null(*answer);
        assert_true(history.uses_n < USES_MOST);
        history.uses[history.uses_n++] = (struct use){b, *answer, send->to};
    }
}

static void note_sent(uint32_t from, const struct drps_net_send *send)
{
    pthread_mutex_lock(&history.lock);
    if (send->part == DRPS_NET_SERVER && send->type == DRPS_MESSAGE_GRADIENT && send->to == from)
        batch_of(send->tag, send->round)->first = first_value(send->pieces[0].data);
    if (send->part == DRPS_NET_SERVER && send->type == DRPS_MESSAGE_PULL) {
        batch_of(send->tag, send->round)->pulled = 1;
        note_pull(from, send);
    }
    if (send->part == DRPS_NET_WORKER && send->type == DRPS_MESSAGE_PARAMETERS)
        batch_of(send->tag, send->round)->answered[from] = ++history.time;
    if (send->part == DRPS_NET_WORKER && send->type == DRPS_MESSAGE_AHEAD) {
        struct batch *b = batch_of(send->tag & 0xffff, send->round);
        *(b->ahead[from] ? &b->rest[from] : &b->ahead[from]) = ++history.time;
    }
    pthread_mutex_unlock(&history.lock);
}

int __wrap_drps_net_send(struct drps_net *net, const struct drps_net_send *send,
                         uint32_t timeout_ms, struct drps_err *err)
{
    const uint32_t from = drps_net_rank(net);
    if (!atomic_load(&history.recording)) return __real_drps_net_send(net, send, timeout_ms, err);
    note_sent(from, send);
    const int pull = send->type == DRPS_MESSAGE_PULL || send->type == DRPS_MESSAGE_AHEAD;
    const int gradient = send->type == DRPS_MESSAGE_GRADIENT || send->type == DRPS_MESSAGE_FILTERED;
    if (send->part != DRPS_NET_SERVER || send->to == from || !(pull || gradient))
        return __real_drps_net_send(net, send, timeout_ms, err);
    if (gradient) return keep(net, send, err);
    int rc = let_go(net, send->to, err);
    return rc == 0 ? __real_drps_net_send(net, send, timeout_ms, err) : rc;
}

int __real_drps_net_receive(struct drps_net *net, enum drps_net_part part, uint32_t from,
                            uint32_t timeout_ms, struct drps_net_message **message_out,
                            struct drps_err *err);
int __wrap_drps_net_receive(struct drps_net *net, enum drps_net_part part, uint32_t from,
                            uint32_t timeout_ms, struct drps_net_message **message_out,
                            struct drps_err *err);
int __wrap_drps_net_receive(struct drps_net *net, enum drps_net_part part, uint32_t from,
                            uint32_t timeout_ms, struct drps_net_message **message_out,
                            struct drps_err *err)
{
    const uint32_t rank = drps_net_rank(net);
    int rc = 0;
    if (atomic_load(&history.recording)) dawdle(part == DRPS_NET_SERVER ? 60 : 40);
    for (uint32_t to = 0;
         atomic_load(&history.recording) && part == DRPS_NET_WORKER && to < WORKERS; to++)
        if (rc == 0) rc = let_go(net, to, err);
    if (rc == 0) rc = __real_drps_net_receive(net, part, from, timeout_ms, message_out, err);
    if (rc < 0 || !atomic_load(&history.recording) || part != DRPS_NET_SERVER ||
        ((*message_out)->type != DRPS_MESSAGE_GRADIENT &&
         (*message_out)->type != DRPS_MESSAGE_FILTERED))
        return rc;
    pthread_mutex_lock(&history.lock); /* it is taken before the next message, and any answer */
    struct batch *b = batch_of((*message_out)->tag, (*message_out)->round);
    b->taken[rank] = ++history.time;
    if ((*message_out)->from == rank)
        assert_float_equal(first_value((*message_out)->data), b->first, 0);
    pthread_mutex_unlock(&history.lock);
    return rc;
}

static void on_batch(void *ctx, const struct drps_train_batch *b)
{
    (void)ctx;
    if (b->moment == DRPS_BATCH_BEGINS && b->rank == WORKERS - 1) dawdle(20);
    if (b->moment == DRPS_BATCH_PULLED) dawdle(20);
}

/* ---- The checker ---- */

static void check_value(const struct batch *b, const struct batch *other, unsigned server,
                        uint64_t bound)
{
    const uint64_t at = b->pulled ? b->answered[server] : b->ahead[server];
    const int in = other->taken[server] && other->taken[server] < at;
    const int due = bound < b->label && other->label < b->label - bound;
    const int own = other->by == b->by && other->number + !b->pulled < b->number;
    const int last = other->by == b->by && !b->pulled && other->number + 1 == b->number;
    const int lost = last && b->rest[server] &&
                     !(other->taken[server] && other->taken[server] < b->rest[server]);
    assert_true(at > 0);
    if (((due || own) && !in) || lost)
        fail_msg("server %u, worker %u, label %llu, %s: lacks worker %u's of label %llu", server,
                 b->by, (unsigned long long)b->label, b->pulled ? "pulled" : "ahead", other->by,
                 (unsigned long long)other->label);
}

/* The copy has what is due to the batch. */
static void check_use(const struct use *u, const struct batch *other, uint64_t bound)
{
    const uint64_t at = u->copied->answered[u->server], taken = other->taken[u->server];
    const int due = bound < u->batch->label && other->label < u->batch->label - bound;
    assert_true(at > 0 && u->copied->by == u->batch->by);
    if (due && !(taken && taken < at))
        fail_msg("server %u, worker %u, label %llu, a copy of label %llu: lacks worker %u's of "
                 "label %llu",
                 u->server, u->batch->by, (unsigned long long)u->batch->label,
                 (unsigned long long)u->copied->label, other->by, (unsigned long long)other->label);
}

static void check_uses(uint64_t steps, uint64_t bound)
{
    for (size_t i = 0; i < history.uses_n; i++) {
        const struct use *u = &history.uses[i];
        const int epoch = u->batch >= &history.batches[1][0][0];
        for (unsigned share = 0; share < WORKERS; share++)
            for (uint64_t step = 0; step < steps; step++)
                check_use(u, &history.batches[epoch][share][step], bound);
    }
}

static void check_batch(int epoch, const struct batch *b, uint64_t steps, uint64_t bound)
{
    assert_true(b->handed_out);
    for (unsigned share = 0; share < WORKERS; share++)
        for (uint64_t step = 0; step < steps; step++)
            for (unsigned server = 0; server < WORKERS; server++)
                check_value(b, &history.batches[epoch][share][step], server, bound);
}

/* Returns how many batches were computed with what was asked for ahead. */
static uint64_t check_history(uint64_t steps, uint64_t bound)
{
    uint64_t ahead = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (unsigned share = 0; share < WORKERS; share++)
            for (uint64_t step = 0; step < steps; step++) {
                const struct batch *b = &history.batches[epoch][share][step];
                check_batch(epoch, b, steps, bound);
                ahead += !b->pulled;
            }
    return ahead;
}

/* ---- Runs ---- */

static uint64_t steps_of(const struct world *w)
{
    struct drps_plan *part;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, 0, &part, NULL), 0);
    const uint64_t steps = part->info.batches;
    assert_true(steps <= STEPS_MAX);
    drps_plan_close(part);
    return steps;
}

static void history_begin(void)
{
    memset(history.batches, 0, sizeof(history.batches));
    memset(history.numbers, 0, sizeof(history.numbers));
    memset(late, 0, sizeof(late));
    history.epoch = -1;
    history.time = 0;
    history.uses_n = 0;
}

struct totals {
    uint64_t asked, used, there;
};

static struct totals totals_of(const struct drps_train_result *r)
{
    struct totals t = {0, 0, 0};
    for (size_t i = 0; i < r->ranks_n; i++) {
        t.asked += r->ranks[i].ahead_asked;
        t.used += r->ranks[i].ahead_used;
        t.there += r->ranks[i].ahead_there;
    }
    return t;
}

static uint64_t cached_rows(const struct drps_train_result *r)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < r->ranks_n; i++)
        rows += r->ranks[i].sent[DRPS_TRAFFIC_CACHED].rows;
    return rows;
}

static void check_run(const struct world *w, struct drps_train_options o, uint64_t bound)
{
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    o.epochs = EPOCHS;
    o.on_batch = on_batch;
    history_begin();
    const int rc = world_run(w, &o, &r, &err);
    if (rc < 0) fail_msg("%s: %s", drps_sched_mode_name(o.sync), err.text);
    const uint64_t ahead = check_history(steps_of(w), bound);
    check_uses(steps_of(w), bound);
    assert_int_equal(cached_rows(&r), history.uses_n);
    assert_true(o.pull_cached ? history.uses_n > 0 : !history.uses_n);
    const struct totals t = totals_of(&r);
    assert_int_equal(t.used, ahead);
    assert_true(t.there <= t.used && t.used <= t.asked);
    if (o.no_overlap || o.pull_cached)
        assert_int_equal(t.asked, 0);
    else
        assert_true(t.used > 0);
    drps_train_result_free(&r);
}

static void check_modes(const struct world *w, struct drps_train_options o)
{
    for (int no_claim = 0; no_claim < 2; no_claim++) {
        o.no_claim = no_claim;
        o.sync = DRPS_SCHED_SSP;
        for (uint64_t bound = 1; bound <= 4; bound += bound) {
            o.staleness = bound;
            check_run(w, o, bound);
        }
        o.staleness = 0;
        o.sync = DRPS_SCHED_ASP;
        check_run(w, o, DRPS_SCHED_NEVER);
        o.sync = DRPS_SCHED_WSP;
        check_run(w, o, DRPS_SCHED_NEVER);
    }
}

/* Messages have all rows, so that their values are where the checks look. */
static struct drps_train_options options_of(const struct world *w)
{
    struct drps_train_options o = world_options(w);
    o.no_fresh = 1;
    return o;
}

static void test_values_have_what_the_mode_promises(void **state)
{
    struct world *w = world_begin("lor", CASE_LIBSVM, 4, 4, seed);
    struct drps_train_options o = options_of(w);
    (void)state;
    check_modes(w, o);
    o.no_overlap = 1;
    check_modes(w, o);
    world_end(w);
}

/* ---- Copies ---- */

static void *read_record(const struct drps_plan *plan, const char *name, uint32_t kind, uint64_t i,
                         size_t *bytes_out)
{
    struct drps_recfile *file;
    assert_int_equal(drps_plan_file(plan, name, kind, &file, NULL), 0);
    *bytes_out = (size_t)drps_recfile_bytes(file, i);
    void *data = malloc((size_t)drps_recfile_run_bytes(file, i, 1) + 8);
    assert_int_equal(drps_recfile_read(file, i, 1, data, NULL), 0);
    drps_recfile_close(file);
    return data;
}

/* The rows of a server in a step, of each share. */
static void load_step(const struct drps_plan *part, unsigned server, uint64_t step)
{
    static uint32_t ids[ROWS_MOST], positions[WORKERS * ROWS_MOST];
    size_t bytes, first[WORKERS + 1];
    void *record = read_record(part, "rows.rec", DRPS_KIND_ROWS, step, &bytes);
    const uint32_t rows = drps_list_count(record);
    assert_int_equal(drps_list_decode(record, bytes, ids, NULL, NULL), 0);
    free(record);
    record = read_record(part, "positions.rec", DRPS_KIND_POSITIONS, step, &bytes);
    assert_int_equal(drps_positions_decode(record, bytes, WORKERS, rows, WORKERS * ROWS_MOST,
                                           positions, first, NULL),
                     0);
    free(record);
    for (unsigned share = 0; share < WORKERS; share++) {
        struct batch_rows *to = &history.rows[server][share][step];
        to->n = first[share + 1] - first[share];
        to->ids = calloc(to->n + 1, sizeof(*to->ids));
        for (size_t i = 0; i < to->n; i++)
            to->ids[i] = ids[positions[first[share] + i]];
    }
}

static void load_rows(const struct world *w)
{
    for (unsigned server = 0; server < WORKERS; server++) {
        struct drps_plan *part;
        assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, server, &part, NULL), 0);
        for (uint64_t step = 0; step < part->info.batches; step++)
            load_step(part, server, step);
        drps_plan_close(part);
    }
}

static void forget_rows(void)
{
    for (unsigned server = 0; server < WORKERS; server++)
        for (unsigned share = 0; share < WORKERS; share++)
            for (uint64_t step = 0; step < STEPS_MAX; step++)
                free(history.rows[server][share][step].ids);
    memset(history.rows, 0, sizeof(history.rows));
}

static void check_cached(const struct world *w, struct drps_train_options o)
{
    o.sync = DRPS_SCHED_SSP;
    o.pull_cached = 1;
    load_rows(w);
    for (int no_claim = 0; no_claim < 2; no_claim++)
        for (uint64_t bound = 1; bound <= 8; bound += bound) {
            o.no_claim = no_claim;
            o.staleness = bound;
            check_run(w, o, bound);
        }
    forget_rows();
}

static void test_copies_have_what_the_bound_promises(void **state)
{
    static const struct drps_push_options push = {.on = 1, .bits = 8, .top = .1};
    struct world *w = world_begin_residuals("lor", CASE_LIBSVM, 4, UINT64_MAX, seed);
    struct drps_train_options o = options_of(w);
    (void)state;
    check_cached(w, o);
    o.push = push;
    o.store = "relay";
    check_cached(w, o);
    world_end(w);
    w = world_begin_residuals("fm", CASE_LIBSVM, 4, 40, seed);
    o = options_of(w);
    o.optimizer = "sgd";
    check_cached(w, o);
    world_end(w);
}

static void test_stores_on_disk(void **state)
{
    static const char *const stores[] = {"relay", "file"};
    struct world *w = world_begin_sized("fm", CASE_LIBSVM, 1200, 20000, 8, 8, seed);
    struct drps_train_options o = options_of(w);
    (void)state;
    for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
        o.store = stores[i];
        check_modes(w, o);
    }
    world_end(w);
}

static uint64_t least_memory(const struct world *w, const struct drps_train_options *o)
{
    history_begin();
    return world_least_memory(w, o);
}

/* In the least memory nothing is asked for ahead: a job needs no more than without. */
static void test_the_least_memory_is_the_same(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    struct world *w = world_begin_sized("fm", CASE_LIBSVM, 1200, 20000, 8, 8, seed);
    struct drps_train_options o = options_of(w);
    (void)state;
    o.sync = DRPS_SCHED_SSP;
    for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
        struct drps_train_result r;
        o.store = stores[i];
        o.no_overlap = 1;
        const uint64_t least = least_memory(w, &o);
        o.no_overlap = 0;
        assert_int_equal(least_memory(w, &o), least);
        o.memory_bytes = least;
        history_begin();
        world_train(w, &o, &r);
        assert_int_equal(totals_of(&r).asked, 0);
        drps_train_result_free(&r);
    }
    world_end(w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_have_what_the_mode_promises),
        cmocka_unit_test(test_copies_have_what_the_bound_promises),
        cmocka_unit_test(test_stores_on_disk),
        cmocka_unit_test(test_the_least_memory_is_the_same),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    history.random = random_begin("history");
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
