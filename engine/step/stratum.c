/* Batches of a stratum: those of the next one are decoded while the threads of the team train this
 * one's lanes. */
#include "engine/step/drps_stratum.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "engine/model/fused/drps_fused.h"

enum {
    LINE = 64,
    IN_CACHES = 4 << 20,       /* bytes of a model's rows that caches hold */
    REQUESTED_MOST = 512 << 10 /* bytes of a batch's rows: more would drive out what is in use */
};

/* One batch of a group: open, or about to be. */
struct entry {
    struct drps_feed_raw record; /* as the plan has it */
    char *body, *list;           /* room for both where the feed does not keep them */
    uint32_t *ids;               /* [rows], then the store's index if that is another one */
    struct drps_feed_batch batch;
    struct drps_rows rows;
    int rc; /* of decoding */
    struct drps_err err;
};

/* Batches of one stratum. */
struct group {
    struct entry entry[DRPS_STRATUM_BATCHES];
    size_t n;
};

/* What each member has beside the worker's arrays of its own. */
struct member {
    float *params, *scores;
};

struct drps_stratum {
    struct drps_stratum_parts parts;
    char *arena; /* own: all that entries and members point to */
    size_t arena_bytes;
    struct member member[DRPS_TRAIN_THREADS_MAX];
    struct group group[2];
    struct group *now, *next; /* the one that is trained, and the one that is decoded meanwhile */
    size_t first, last;       /* of now's entries: those that are open */
    struct drps_stratum_batch batch[DRPS_STRATUM_BATCHES];

    struct drps_feed_raw ahead; /* taken from the feed, but of the stratum after next */
    int has_ahead;

    /* Lanes that a member has taken, a bit each, and the next entry to be decoded. Relaxed: they
     * only hand out numbers, and the team's barriers publish the rest. */
    atomic_uint taken, undecoded;
};

/* ---- Memory ---- */

/* Takes a piece of one allocation; where base is NULL, it only counts. */
static void *take(char *base, size_t *used, size_t n, size_t size)
{
    const size_t at = (*used + LINE - 1) / LINE * LINE;
    *used = at + n * size;
    return base ? base + at : NULL;
}

static size_t list_room(const struct drps_plan_info *info)
{
    return drps_list_encode_bound(info->ranks.max_round_rows);
}

static size_t lay_out(struct drps_stratum *d, const struct drps_plan_info *info,
                      const struct drps_server *server, unsigned members, size_t batches)
{
    char *base = d->arena;
    size_t used = 0;
    for (unsigned k = 0; k < members; k++) {
        d->member[k].params =
            take(base, &used, info->max_batch_rows * server->model.dim, sizeof(float));
        d->member[k].scores = take(base, &used, info->max_batch_samples, sizeof(float));
    }
    for (size_t i = 0; i < 2 * batches; i++) {
        struct entry *s = &d->group[i / batches].entry[i % batches];
        s->ids = take(base, &used, info->ranks.max_round_rows, sizeof(uint32_t));
        s->body = take(base, &used, info->max_body_bytes, 1);
        s->list = take(base, &used, list_room(info), 1);
    }
    return used + LINE;
}

uint64_t drps_stratum_memory(const struct drps_plan_info *info, const struct drps_server *server,
                             unsigned members, size_t batches)
{
    struct drps_stratum counted = {.arena = NULL};
    return lay_out(&counted, info, server, members, batches) + sizeof(counted);
}

int drps_stratum_open(const struct drps_stratum_parts *parts, struct drps_stratum **d_out,
                      struct drps_err *err)
{
    const unsigned members = drps_team_members(parts->worker->team);
    *d_out = NULL;
    struct drps_stratum *d = calloc(1, sizeof(*d));
    if (!d) return drps_err_set(err, -ENOMEM, "no memory for batches of a stratum");
    d->parts = *parts;
    d->now = &d->group[0];
    d->next = &d->group[1];
    d->arena_bytes = lay_out(d, parts->info, parts->server, members, parts->batches);
    d->arena = drps_pages_new(d->arena_bytes);
    if (!d->arena) {
        const size_t bytes = d->arena_bytes;
        drps_stratum_close(d);
        return drps_err_set(err, -ENOMEM, "no memory for batches of a stratum: %zu bytes", bytes);
    }
    (void)lay_out(d, parts->info, parts->server, members, parts->batches);
    *d_out = d;
    return 0;
}

void drps_stratum_close(struct drps_stratum *d)
{
    if (!d) return;
    drps_pages_free(d->arena, d->arena_bytes);
    free(d);
}

/* ---- Reading ---- */

static int take_record(struct drps_stratum *d, struct drps_feed_raw *out, struct drps_err *err)
{
    if (!d->has_ahead) return drps_feed_take(d->parts.feed, out, err);
    *out = d->ahead;
    d->has_ahead = 0;
    return 0;
}

/* A record is borrowed from the feed until the next one is taken, unless the feed keeps it. */
static int hold_record(struct drps_stratum *d, struct entry *s, struct drps_err *err)
{
    const struct drps_plan_info *info = d->parts.info;
    if (drps_feed_keeps(d->parts.feed)) return 0;
    if (s->record.body.bytes > info->max_body_bytes || s->record.list.bytes > list_room(info))
        return drps_err_set(
            err, DRPS_E_CORRUPT,
            "step %llu: a body of %zu bytes and a list of %zu, " DRPS_FILE_MANIFEST " says at "
            "most %llu and %zu",
            (unsigned long long)s->record.step, s->record.body.bytes, s->record.list.bytes,
            (unsigned long long)info->max_body_bytes, list_room(info));
    memcpy(s->body, s->record.body.data, s->record.body.bytes);
    memcpy(s->list, s->record.list.data, s->record.list.bytes);
    s->record.body.data = s->body;
    s->record.list.data = s->list;
    return 0;
}

/* Fills the next group: records of one stratum, or the one of a batch that is in none. */
static int take_records(struct drps_stratum *d, uint64_t left, struct drps_err *err)
{
    const size_t most = left < d->parts.batches ? (size_t)left : d->parts.batches;
    struct group *g = d->next;
    uint32_t stratum = 0;
    atomic_store_explicit(&d->undecoded, 0, memory_order_relaxed);
    for (g->n = 0; g->n < most; g->n++) {
        struct entry *s = &g->entry[g->n];
        int rc = take_record(d, &s->record, err);
        if (rc < 0) return rc;
        const uint32_t its = drps_batch_stratum(s->record.body.data, s->record.body.bytes);
        if (g->n && (its != stratum || !its)) {
            d->ahead = s->record;
            d->has_ahead = 1;
            return 0;
        }
        stratum = its;
        rc = hold_record(d, s, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static void decode_next(struct drps_stratum *d)
{
    for (;;) {
        const unsigned i = atomic_fetch_add_explicit(&d->undecoded, 1, memory_order_relaxed);
        if (i >= d->next->n) return;
        struct entry *s = &d->next->entry[i];
        s->rc = drps_feed_decode(d->parts.feed, &s->record, s->ids, &s->batch, &s->err);
    }
}

static void decode(void *ctx, unsigned member)
{
    (void)member;
    decode_next(ctx);
}

/* The next group becomes the one to train; the one after it is taken from the feed. */
static int read_batches(struct drps_stratum *d, uint64_t left, struct drps_err *err)
{
    int rc = 0;
    if (!d->next->n) { /* the first of an epoch */
        rc = take_records(d, left, err);
        if (rc < 0) return rc;
        drps_team_run(d->parts.worker->team, decode, d);
    }
    struct group *trained = d->now;
    d->now = d->next;
    d->next = trained;
    for (size_t i = 0; i < d->now->n; i++)
        if (d->now->entry[i].rc < 0)
            return drps_err_set(err, d->now->entry[i].rc, "%s", d->now->entry[i].err.text);
    return take_records(d, left - d->now->n, err);
}

/* ---- Training ---- */

/* Member 0 keeps the time of all. */
static uint64_t lap(unsigned member, uint64_t since, uint64_t *sum)
{
    if (member) return 0;
    const uint64_t now = drps_clock_ns();
    *sum += now - since;
    return now;
}

/* Trains one batch by one thread, as a team of one does. */
static double train_plain(struct drps_stratum *d, const struct entry *s, unsigned member)
{
    const struct drps_server *server = d->parts.server;
    const struct drps_model *model = &server->model;
    const struct drps_batch *b = &s->batch.body;
    struct drps_worker *w = d->parts.worker;
    const struct member *m = &d->member[member];
    float *grads = w->grads[member];
    uint32_t *touches = w->has_touches ? w->touches[member] : NULL;
    uint64_t now = member ? 0 : drps_clock_ns();

    drps_rows_gather(&s->rows, model->dim, 0, b->rows, m->params);
    now = lap(member, now, &w->gather_ns);
    memset(grads, 0, b->rows * model->dim * sizeof(float));
    const double loss = drps_model_gradient(model, b, 0, b->samples, m->params, grads, m->scores,
                                            w->scratch[member]);
    if (touches) {
        memset(touches, 0, b->rows * sizeof(uint32_t));
        drps_batch_touches(b, 0, b->samples, model->has_bias, touches);
    }
    (void)lap(member, now, &w->compute_ns);
    drps_server_step(server, &s->rows, 0, b->rows, grads, touches);
    return loss;
}

/* The same where rows lie. The array of parameters is room for counts: a row has two floats at
 * least. */
static double train_fused(struct drps_stratum *d, const struct entry *s, unsigned member)
{
    const struct drps_server *server = d->parts.server;
    struct drps_worker *w = d->parts.worker;
    const struct drps_fused_room room = {.counts = d->member[member].params,
                                         .grads = w->grads[member],
                                         .scores = d->member[member].scores,
                                         .scratch = w->scratch[member]};
    const uint64_t start = member ? 0 : drps_clock_ns();
    const double loss =
        drps_fused_train(&server->model, &server->optim, &s->batch.body, &s->rows, &room);
    (void)lap(member, start, &w->compute_ns);
    return loss;
}

static void train_batch(struct drps_stratum *d, size_t i, unsigned member)
{
    const struct drps_server *server = d->parts.server;
    const struct entry *s = &d->now->entry[i];
    const struct drps_batch *b = &s->batch.body;
    const int fused = drps_fused_fits(&server->model, &server->optim, b) && drps_fused_pays(b);
    d->batch[i] = (struct drps_stratum_batch){.samples = b->samples,
                                              .loss = fused ? train_fused(d, s, member)
                                                            : train_plain(d, s, member)};
    d->batch[i].intercept = d->parts.worker->grads[member][0];
}

/* The next batch of the lane, from i on; d->last: none. */
static size_t next_of_lane(const struct drps_stratum *d, size_t i, uint32_t lane)
{
    while (i < d->last && d->now->entry[i].batch.body.lane != lane)
        i++;
    return i;
}

/* Rows come from memory in random order: those of a batch are requested before the one before it is
 * trained. */
static void request_rows(const struct drps_stratum *d, size_t i)
{
    const struct entry *s = &d->now->entry[i];
    const size_t bytes = d->parts.server->row_bytes, n = s->batch.body.rows;
    if (d->parts.info->rows <= IN_CACHES / bytes || n > REQUESTED_MOST / bytes) return;
    for (size_t k = 0; k < n; k++) {
        const char *row = drps_row_at(&s->rows, k);
        for (size_t at = 0; at < bytes; at += LINE)
            __builtin_prefetch(row + at, 1, 2);
        __builtin_prefetch(row + bytes - 1, 1, 2);
    }
}

static void train_lane(struct drps_stratum *d, uint32_t lane, unsigned member)
{
    size_t next;
    for (size_t i = next_of_lane(d, d->first, lane); i < d->last; i = next) {
        next = next_of_lane(d, i + 1, lane);
        if (next < d->last) request_rows(d, next);
        train_batch(d, i, member);
    }
}

/* A member begins with lanes of its own, which have the same rows of one table in the next
 * stratum: these stay in its cache. Then it takes what others have not begun. Who finds none
 * decodes. */
static void train_lanes(void *ctx, unsigned member)
{
    struct drps_stratum *d = ctx;
    const uint32_t lanes = (uint32_t)d->parts.info->lanes;
    const uint32_t own = lanes * member / drps_team_members(d->parts.worker->team);
    for (uint32_t k = 0; k < lanes; k++) {
        const uint32_t lane = (own + k) % lanes;
        const unsigned bit = 1U << lane;
        if (!(atomic_fetch_or_explicit(&d->taken, bit, memory_order_relaxed) & bit))
            train_lane(d, lane, member);
    }
    decode_next(d);
}

/* The store would wait for its own thread: better train what is open meanwhile. */
static int must_wait(const struct drps_server *server)
{
    return server->ops->step_ready && !server->ops->step_ready(server->store);
}

/* Opens steps from d->first on; the rest is opened later where the store has no room for it yet. */
static int open_steps(struct drps_stratum *d, struct drps_err *err)
{
    struct drps_server *server = d->parts.server;
    for (d->last = d->first; d->last < d->now->n; d->last++) {
        struct entry *s = &d->now->entry[d->last];
        if (d->last > d->first && must_wait(server)) return 0;
        int rc = drps_server_open_step(server, s->ids, s->batch.body.rows, err);
        if (rc == -EAGAIN && d->last > d->first) return 0;
        if (rc < 0) return rc;
        s->rows = server->rows;
        if (s->rows.index == s->ids) continue;
        memcpy(s->ids, s->rows.index, s->rows.n * sizeof(*s->ids)); /* it is the store's */
        s->rows.index = s->ids;
    }
    return 0;
}

static int close_steps(struct drps_stratum *d, int changed, struct drps_err *err)
{
    const uint64_t end = d->parts.server->steps;
    int rc = 0;
    for (uint64_t step = end - (d->last - d->first); step < end && rc == 0; step++)
        rc = drps_server_close_one(d->parts.server, step, changed, err);
    return rc;
}

/* A step of no stratum is alone. It leaves the team time to decode the next ones. */
static int hand_over(struct drps_stratum *d, const struct entry *s, struct drps_err *err)
{
    d->batch[d->first] = (struct drps_stratum_batch){0};
    drps_team_run(d->parts.worker->team, decode, d);
    int rc = d->parts.hand_over(d->parts.hand_over_ctx, &s->batch.body, &s->rows, err);
    return rc < 0 ? rc : close_steps(d, (s->batch.body.hand_over & DRPS_ARRIVES) != 0, err);
}

/* `ends`: these are the last steps of the epoch. */
static int train_open(struct drps_stratum *d, int ends, struct drps_err *err)
{
    const struct entry *s = &d->now->entry[d->first];
    struct drps_server *server = d->parts.server;
    if (s->batch.body.hand_over) return hand_over(d, s, err);
    drps_intercept_begin(server, &s->rows, s->batch.body.stratum);
    atomic_store_explicit(&d->taken, 0, memory_order_relaxed);
    drps_team_run(d->parts.worker->team, train_lanes, d);
    for (size_t i = d->first; i < d->last; i++)
        drps_intercept_add(server, s->batch.body.stratum, d->batch[i].intercept);
    if (ends) drps_intercept_end(server, &s->rows);
    return close_steps(d, 1, err);
}

int drps_stratum_train(struct drps_stratum *d, uint64_t left, struct drps_stratum_done *done,
                       struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    *done = (struct drps_stratum_done){.batch = d->batch};
    int rc = read_batches(d, left, err);
    done->n = d->now->n;
    done->plan_ns = drps_clock_ns() - start;
    for (d->first = 0; d->first < done->n && rc == 0; d->first = d->last) {
        const uint64_t asked = drps_clock_ns();
        rc = open_steps(d, err);
        if (rc < 0) return rc;
        done->wait_ns += drps_clock_ns() - asked;
        rc = train_open(d, d->last == left, err);
    }
    return rc;
}
