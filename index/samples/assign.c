/*
 * Samples go through a file in their order, which partition/ walks several times; then each gets
 * the number in the order that its worker's batch gives it.
 */
#include "index/samples/drps_assign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/samples/dppa.h"
#include "partition/drps_balance.h"
#include "partition/drps_partition.h"

/* ---- From any order to a file in it, with placed ids ---- */

struct lining {
    const struct assign_job *job;
    struct spool *to;
    uint64_t n;
    uint64_t *batch; /* [job->rows] the last batch with a row, from 1, were they dealt; or NULL */
    uint64_t dealt_rows;
    uint16_t *owner; /* own: [n] of each sample, where they have theirs */
    size_t owner_cap;
};

/* Count the rows that a sample brings to the batch that it would be dealt with. */
static void count_dealt(struct lining *l, const struct spool_sample *s)
{
    const uint64_t batch = l->n / l->job->batch_size + 1;
    if (!l->batch) return;
    for (uint32_t i = 0; i < s->n; i++) {
        l->dealt_rows += l->batch[s->ids[i]] != batch;
        l->batch[s->ids[i]] = batch;
    }
}

static int no_memory(uint64_t samples, struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to place %" PRIu64 " samples", samples);
}

static int add_to_line(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct lining *l = ctx;
    for (uint32_t i = 0; l->job->map && i < s->n; i++)
        s->ids[i] = l->job->map[s->ids[i]];
    count_dealt(l, s);
    if (l->job->kept) {
        if (drps_array_reserve(&l->owner, &l->owner_cap, l->n + 1, sizeof(*l->owner)))
            return no_memory(l->n, err);
        l->owner[l->n] = (uint16_t)s->owner;
    }
    l->n++;
    return drps_spool_add(l->to, s, err);
}

static int line_up(const struct assign_job *job, struct spool **spool, const char *name,
                   uint64_t *batch, struct lining *out, struct drps_err *err)
{
    struct lining l = {.job = job, .batch = batch};
    const struct spool_visitor lining = {.visit = add_to_line, .ctx = &l};
    int rc = drps_spool_open(job->io, job->dir, name, 1, 0, &l.to, err);
    if (rc == 0) rc = drps_spool_drain(*spool, job->memory_bytes, &lining, err);
    if (rc == 0) rc = drps_spool_finish(l.to, err);
    drps_spool_close(*spool);
    *spool = l.to;
    *out = l; /* with its owners */
    return rc;
}

static int line_up_training(const struct assign_job *job, struct spool **spool, struct lining *out,
                            struct drps_err *err)
{
    uint64_t *batch = calloc((size_t)job->rows + 1, sizeof(*batch));
    int rc = batch ? line_up(job, spool, "train-line", batch, out, err)
                   : drps_err_set(err, -ENOMEM, "no memory for %" PRIu32 " rows", job->rows);
    free(batch);
    return rc;
}

/* ---- Owners ---- */

struct visiting {
    drps_sample_visit visit;
    void *ctx;
};

static int visit_sample(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    const struct visiting *v = ctx;
    return v->visit(v->ctx, s->ids, s->n, err);
}

static int walk(void *ctx, drps_sample_visit visit, void *visit_ctx, struct drps_err *err)
{
    struct visiting v = {visit, visit_ctx};
    const struct spool_visitor visitor = {.visit = visit_sample, .ctx = &v};
    return drps_spool_walk(ctx, &visitor, err);
}

/* Finds the workers of training samples by Algorithm 1. It knows nothing of held-out samples, which
 * are dealt. */
static int find_owners_by_dppa(const struct assign_job *job, const struct drps_sample_stream *train,
                               const struct drps_sample_stream *test, uint16_t *train_owner,
                               uint16_t *test_owner, struct drps_err *err)
{
    for (uint64_t s = 0; s < test->n; s++)
        test_owner[s] = (uint16_t)(s % job->workers);
    return drps_assign_by_dppa(job, train, train_owner, err);
}

static int find_owners(const struct assign_job *job, const struct drps_sample_stream *train,
                       const struct drps_sample_stream *test, uint16_t *train_owner,
                       uint16_t *test_owner, struct drps_err *err)
{
    const struct drps_stream_options options = {
        .features_n = job->rows,
        .machines = job->workers,
        .batch_size = job->batch_size,
        .round = job->rounds ? job->batch_size * job->workers : 0,
        .seed = job->seed,
        .memory_bytes = job->memory_bytes};
    uint32_t least = 0;
    if (job->dppa) return find_owners_by_dppa(job, train, test, train_owner, test_owner, err);
    int rc = drps_streams_place(train, test, &options, train_owner, test_owner, &least, err);
    if (rc == DRPS_E_MEMORY_BUDGET) {
        (void)drps_err_context(err,
                               "placed samples, for which a third of the memory limit is there "
                               "(raise it, or have samples dealt)");
        return rc;
    }
    if (rc == 0 && least > 2)
        drps_log(job->log, DRPS_LOG_INFO,
                 "placed samples: rows that fewer than %" PRIu32
                 " samples use do not count; with a higher memory limit they would",
                 least);
    return rc;
}

/* Share n samples by the workers' shares, nobody more than `most` (NULL: any): each the whole part
 * of its share, and what is left to those that lack most. */
static void apportion(const struct assign_job *job, uint64_t n, const uint64_t *most, uint64_t *out)
{
    uint64_t left = n;
    for (uint32_t w = 0; w < job->workers; w++) {
        const double share = job->share ? job->share[w] : 1.0 / job->workers;
        const uint64_t whole = (uint64_t)((double)n * share);
        out[w] = most && most[w] < whole ? most[w] : whole;
        if (out[w] > left) out[w] = left;
        left -= out[w];
    }
    while (left) { /* ends: there is room for all */
        uint32_t to = job->workers;
        double lacks = 0;
        for (uint32_t w = 0; w < job->workers; w++) {
            const double share = job->share ? job->share[w] : 1.0 / job->workers;
            const double mine = (double)n * share - (double)out[w];
            if ((most && out[w] == most[w]) || (to < job->workers && mine <= lacks)) continue;
            to = w;
            lacks = mine;
        }
        out[to]++;
        left--;
    }
}

/* Deals samples in their order. The samples that a worker has of a round are neighbours. */
static void deal(const struct assign_job *job, uint64_t training, uint64_t held_out,
                 const uint64_t *full, uint16_t *train_owner, uint16_t *test_owner)
{
    const uint64_t round = job->batch_size * job->workers;
    uint64_t last[DRPS_PLAN_WORKERS_MAX];
    apportion(job, training % round, full, last);
    for (uint64_t s = 0; s < training;) {
        const uint64_t *of = training - s < round ? last : full;
        for (uint32_t w = 0; w < job->workers; w++)
            for (uint64_t i = 0; i < of[w]; i++)
                train_owner[s++] = (uint16_t)w;
    }
    for (uint64_t s = 0; s < held_out; s++)
        test_owner[s] = (uint16_t)(s % job->workers);
}

/* ---- Balance ---- */

struct rounds {
    const struct assign_job *job;
    struct assignment *out;
    uint64_t samples, at; /* of training: all, and those that have passed */
    uint16_t *owner;
    uint32_t *entries; /* own: of the round's samples */
    size_t n;
};

/* Balances a round, all of whose samples are there, and empties it for the next. */
static int balance_round(struct rounds *r, struct drps_err *err)
{
    uint16_t *owner = r->owner + (r->at - r->n);
    const uint32_t workers = r->job->workers;
    struct drps_largest largest = {0};
    int rc = drps_round_balance(r->entries, owner, r->n, r->job->share, workers, r->job->balance,
                                &largest, err);
    if (largest.before > r->out->largest_before) r->out->largest_before = largest.before;
    if (largest.after > r->out->largest) r->out->largest = largest.after;
    r->n = 0;
    return rc;
}

static int add_to_round(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct rounds *r = ctx;
    r->entries[r->n++] = s->n;
    r->at++;
    const int full = r->n == r->job->batch_size * r->job->workers;
    return full || r->at == r->samples ? balance_round(r, err) : 0;
}

static int balance_rounds(const struct assign_job *job, struct spool *spool, uint64_t samples,
                          uint16_t *owner, struct assignment *out, struct drps_err *err)
{
    const uint64_t round = job->batch_size * job->workers;
    struct rounds r = {.job = job, .out = out, .samples = samples, .owner = owner};
    const struct spool_visitor visitor = {.visit = add_to_round, .ctx = &r};
    r.entries = drps_array_new(round < samples ? round : samples, sizeof(*r.entries));
    int rc = r.entries ? drps_spool_walk(spool, &visitor, err)
                       : drps_err_set(err, -ENOMEM, "no memory for a round of %" PRIu64 " samples",
                                      round);
    free(r.entries);
    return rc;
}

/* ---- Batches ---- */

static void share(struct assignment *a, uint32_t workers, const uint16_t *owner, uint64_t n,
                  uint64_t batch_size)
{
    uint64_t most = 0;
    *a = (struct assignment){.workers = workers};
    for (uint64_t s = 0; s < n; s++)
        a->samples[owner[s]]++;
    for (uint32_t w = 0; w < workers; w++)
        if (a->samples[w] > most) most = a->samples[w];
    a->rounds = (most + batch_size - 1) / batch_size;
}

static void keep_rounds(const struct assign_job *job, const uint64_t *full, struct assignment *a,
                        uint64_t samples)
{
    const uint64_t round = job->batch_size * job->workers;
    a->whole_rounds = 1;
    a->rounds = (samples + round - 1) / round;
    memcpy(a->full, full, job->workers * sizeof(*full));
}

struct ordering {
    const struct assignment *assignment;
    const uint16_t *owner;
    struct spool *to;
    uint64_t samples, at;                  /* in all; the one at hand */
    uint64_t round[DRPS_PLAN_WORKERS_MAX]; /* of each worker: the batch that is being filled, */
    uint64_t next[DRPS_PLAN_WORKERS_MAX];  /* the number of its next sample, */
    uint64_t left[DRPS_PLAN_WORKERS_MAX];  /* and how many it still takes */
};

/* How many samples lie before batch k. */
static uint64_t batch_place(const struct assignment *a, uint64_t k)
{
    const uint64_t round = k / a->workers;
    uint64_t sum = 0;
    for (uint32_t w = 0; w < a->workers; w++)
        sum += assigned_before(a, w, round + (w < k % a->workers));
    return sum;
}

static void begin_batch(struct ordering *o, uint32_t worker)
{
    const uint64_t k = o->round[worker] * o->assignment->workers + worker;
    o->left[worker] = assigned_batch(o->assignment, k);
    o->next[worker] = batch_place(o->assignment, k);
}

static int order_sample(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    struct ordering *o = ctx;
    const uint32_t worker = o->owner[o->at++];
    while (!o->left[worker]) { /* ends: the worker's batches have room for its samples */
        o->round[worker]++;
        begin_batch(o, worker);
    }
    o->left[worker]--;
    s->order = (uint64_t)(((__uint128_t)o->next[worker]++ << 64) / o->samples);
    return drps_spool_add(o->to, s, err);
}

static int order_by_batch(const struct assign_job *job, struct spool **spool, const char *name,
                          const struct assignment *assignment, const uint16_t *owner,
                          uint64_t samples, struct drps_err *err)
{
    struct ordering o = {.assignment = assignment, .owner = owner, .samples = samples};
    const struct spool_visitor ordering = {.visit = order_sample, .ctx = &o};
    for (uint32_t w = 0; w < assignment->workers && samples; w++)
        begin_batch(&o, w);
    int rc = drps_spool_open(job->io, job->dir, name, SPOOL_BUCKETS, 0, &o.to, err);
    if (rc == 0) rc = drps_spool_drain(*spool, job->memory_bytes, &ordering, err);
    if (rc == 0) rc = drps_spool_finish(o.to, err);
    drps_spool_close(*spool);
    *spool = o.to;
    return rc;
}

/* Samples in line have no owner yet: find one for each. */
static int own_lines(const struct assign_job *job, struct spool *train, struct spool *test,
                     const uint64_t *full, struct lining *train_line, struct lining *test_line,
                     struct drps_err *err)
{
    const struct drps_sample_stream trains = {train_line->n, walk, train};
    const struct drps_sample_stream tests = {test_line->n, walk, test};
    train_line->owner = drps_array_new(trains.n, sizeof(*train_line->owner));
    test_line->owner = drps_array_new(tests.n, sizeof(*test_line->owner));
    if (!train_line->owner || !test_line->owner) return no_memory(trains.n + tests.n, err);
    if (!job->dealt)
        return find_owners(job, &trains, &tests, train_line->owner, test_line->owner, err);
    deal(job, trains.n, tests.n, full, train_line->owner, test_line->owner);
    return 0;
}

int drps_assign_samples(const struct assign_job *job, struct spool **train, struct spool **test,
                        struct assignment *train_out, struct assignment *test_out,
                        struct drps_err *err)
{
    struct lining train_line = {.job = job}, test_line = {.job = job};
    uint64_t full[DRPS_PLAN_WORKERS_MAX];
    int rc = line_up_training(job, train, &train_line, err);
    if (rc == 0) rc = line_up(job, test, "test-line", NULL, &test_line, err);
    apportion(job, job->batch_size * job->workers, NULL, full);
    if (rc == 0 && !job->kept)
        rc = own_lines(job, *train, *test, full, &train_line, &test_line, err);
    if (rc == 0) {
        share(train_out, job->workers, train_line.owner, train_line.n, job->batch_size);
        if (job->rounds) keep_rounds(job, full, train_out, train_line.n);
        train_out->dealt_rows = train_line.dealt_rows;
        if (job->balance > 0)
            rc = balance_rounds(job, *train, train_line.n, train_line.owner, train_out, err);
    }
    if (rc == 0)
        rc = order_by_batch(job, train, "train-placed", train_out, train_line.owner, train_line.n,
                            err);
    if (rc == 0 && !job->tests_dealt) {
        share(test_out, job->workers, test_line.owner, test_line.n, job->batch_size);
        rc = order_by_batch(job, test, "test-placed", test_out, test_line.owner, test_line.n, err);
    }
    free(train_line.owner);
    free(test_line.owner);
    return rc;
}
