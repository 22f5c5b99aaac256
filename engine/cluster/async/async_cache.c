/*
 * Copies of other servers' rows that a worker keeps for their next use in a batch of its share, and
 * uses again while they are new enough. Which rows have a place, the plan says
 * (index/plan/drps_residuals.h).
 *
 * New enough: with each answer a server says how many gradients of each worker were in its rows,
 * and with each batch the master says how many must be (needs). A copy may be used if its answer
 * had them all. So a bound holds for copies as for values that are asked for. Answers get newer and
 * needs grow: it suffices to know the oldest answer of each server that still does.
 *
 * The worker's own gradients are stepped in its copies as well as it can: sgd's step exactly (but
 * for regularisation), adagrad's from the mean of the row's sums of squares, which comes with the
 * row.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/async/parts.h"
#include "engine/cluster/filters/drps_half.h"

enum { ANSWERS_MOST = 64 }; /* of a server that are remembered */

struct async_cache {
    const struct async_job *job;
    struct drps_slot_reader *reader;        /* own */
    const struct drps_residual_rows *slots; /* of the batch */
    float *values;                          /* own: [slots][dim] */
    float *squares;                         /* own: [slots] adagrad: mean of the sums of squares */
    uint64_t *answer;   /* own: [slots] the answer that the copy is of, from 1; 0: none */
    uint64_t answers;   /* of the epoch, the one that is due included */
    uint64_t remembers; /* answers */
    uint64_t *in;       /* own: [servers][remembers][workers] */
    uint64_t *oldest;   /* own: [servers] first answer that is new enough */
    uint64_t *marks;    /* own: a bit for each row of the batch, by server; 1: asked for */
    size_t *first_mark; /* own: [servers] words before a server's */
    size_t *wanted;     /* own: [servers] rows that are asked for */
    struct drps_traffic sent;
};

/* ---- A batch's rows ---- */

/* The rows of the batch that one server has. */
struct part {
    uint32_t server;
    size_t first, n; /* of the batch; */
    size_t remote;   /* the first one among those that other servers have */
};

static struct part part_of(const struct async_cache *c, const struct drps_feed_share *batch,
                           uint32_t server)
{
    struct part p = {.server = server, .n = batch->shares[server]};
    for (uint32_t s = 0; s < server; s++)
        p.first += batch->shares[s];
    p.remote = p.first - (server > c->job->rank ? batch->shares[c->job->rank] : 0);
    return p;
}

static size_t remote_rows(const struct async_cache *c, const struct drps_feed_share *batch)
{
    return batch->body.rows - batch->shares[c->job->rank];
}

/* ---- What is new enough ---- */

static uint64_t *in_of(const struct async_cache *c, uint32_t server, uint64_t answer)
{
    const uint64_t at = server * c->remembers + answer % c->remembers;
    return c->in + at * c->job->shape->workers;
}

static int has_all(const uint64_t *in, const uint64_t *needs, uint32_t workers)
{
    uint32_t w = 0;
    while (w < workers && in[w] >= needs[w])
        w++;
    return w == workers;
}

static void age(struct async_cache *c, uint32_t server, const uint64_t *needs)
{
    uint64_t *oldest = &c->oldest[server];
    if (c->answers > c->remembers && *oldest < c->answers - c->remembers)
        *oldest = c->answers - c->remembers;
    while (*oldest < c->answers &&
           !has_all(in_of(c, server, *oldest), needs, c->job->shape->workers))
        ++*oldest;
}

/* ---- Which rows are asked for ---- */

/* Takes rows that are whole, which give up their slots, or those that are not. */
static void take_copies(struct async_cache *c, const struct part *p, int whole, float *params)
{
    const uint32_t dim = c->job->dim;
    uint64_t *marks = c->marks + c->first_mark[p->server];
    for (size_t i = 0; i < p->n; i++) {
        const uint32_t slot = c->slots->slot[p->remote + i];
        if (c->slots->whole[p->remote + i] != whole) continue;
        if (slot != DRPS_NO_SLOT && c->answer[slot] >= c->oldest[p->server]) {
            memcpy(params + (p->first + i) * dim, c->values + (size_t)slot * dim,
                   dim * sizeof(*params));
        } else {
            marks[i / 64] |= UINT64_C(1) << i % 64;
            c->wanted[p->server]++;
        }
        if (slot != DRPS_NO_SLOT && whole) c->answer[slot] = 0;
    }
}

static void begin_part(struct async_cache *c, const struct part *p, const uint64_t *needs)
{
    c->wanted[p->server] = 0;
    age(c, p->server, needs);
    memset(c->marks + c->first_mark[p->server], 0, drps_async_mark_bytes(p->n));
}

int drps_async_cache_look(struct async_cache *c, const struct drps_feed_share *batch,
                          const uint64_t *needs, float *params, struct drps_err *err)
{
    const uint32_t servers = c->job->shape->servers;
    size_t words = 0;
    int rc = drps_slot_reader_next(c->reader, remote_rows(c, batch), &c->slots, err);
    if (rc < 0) return drps_err_context(err, "copies of rows");
    c->answers++;
    for (uint32_t s = 0; s < servers; s++) {
        const struct part p = part_of(c, batch, s);
        c->first_mark[s] = words;
        words += drps_async_mark_bytes(p.n) / sizeof(*c->marks);
        if (s != c->job->rank) begin_part(c, &p, needs);
    }
    for (int whole = 1; whole >= 0; whole--) /* others may get the slots of those that are whole */
        for (uint32_t s = 0; s < servers; s++) {
            const struct part p = part_of(c, batch, s);
            if (s != c->job->rank) take_copies(c, &p, whole, params);
        }
    return 0;
}

int drps_async_cache_skip(struct async_cache *c, const struct drps_feed_share *batch,
                          struct drps_err *err)
{
    int rc = drps_slot_reader_next(c->reader, remote_rows(c, batch), &c->slots, err);
    for (size_t i = 0; rc == 0 && i < c->slots->n; i++)
        if (c->slots->whole[i] && c->slots->slot[i] != DRPS_NO_SLOT)
            c->answer[c->slots->slot[i]] = 0;
    return rc < 0 ? drps_err_context(err, "copies of rows") : 0;
}

struct drps_piece drps_async_cache_marks(struct async_cache *c, const struct drps_feed_share *batch,
                                         uint32_t server)
{
    const size_t rows = batch->shares[server], wanted = c->wanted[server];
    drps_traffic_add(&c->sent, DRPS_TRAFFIC_CACHED, server, rows - wanted, 0);
    if (wanted == rows) return (struct drps_piece){NULL, 0};
    const struct drps_piece piece = {c->marks + c->first_mark[server], drps_async_mark_bytes(rows)};
    drps_traffic_add(&c->sent, DRPS_TRAFFIC_MARKS, server, 0, piece.bytes);
    return piece;
}

/* ---- Answers ---- */

/* What lies where in an answer. */
struct answer {
    const unsigned char *values, *squares;
};

static int read_answer(struct async_cache *c, const struct drps_net_message *m, struct answer *out,
                       struct drps_err *err)
{
    const size_t head = drps_message_needs_bytes(c->job->shape->workers);
    const size_t n = c->wanted[m->from], values = n * async_row_bytes(c->job);
    const unsigned char *data = m->data;
    if (m->bytes != head + drps_async_wanted_bytes(c->job, n))
        return drps_async_undue(m, "worker", err);
    memcpy(in_of(c, m->from, c->answers), data, head);
    *out = (struct answer){.values = data + head, .squares = data + head + values};
    return 0;
}

static float square_at(const struct async_cache *c, const unsigned char *squares, size_t i)
{
    if (!async_has_squares(c->job) || !squares[i]) return 0;
    const float root = drps_half_to((uint16_t)(squares[i] << 7 | 1 << 6)); /* the middle */
    return root * root;
}

/* Keep a row until its next use. */
static void keep_row(struct async_cache *c, size_t remote, const float *params, float square)
{
    const uint32_t slot = c->slots->slot[remote], dim = c->job->dim;
    if (c->slots->whole[remote] || slot == DRPS_NO_SLOT) return;
    memcpy(c->values + (size_t)slot * dim, params, dim * sizeof(*params));
    c->squares[slot] = square;
    c->answer[slot] = c->answers;
}

int drps_async_cache_put(struct async_cache *c, const struct drps_feed_share *batch,
                         const struct drps_net_message *m, float *params, struct drps_err *err)
{
    const struct part p = part_of(c, batch, m->from);
    const uint64_t *marks = c->marks + c->first_mark[m->from];
    const size_t row = async_row_bytes(c->job);
    struct answer a = {NULL, NULL};
    size_t n = 0;
    int rc = read_answer(c, m, &a, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < p.n; i++) {
        float *to = params + (p.first + i) * c->job->dim;
        if (!(marks[i / 64] >> i % 64 & 1)) continue;
        drps_async_read_rows(c->job, a.values + n * row, 1, to);
        keep_row(c, p.remote + i, to, square_at(c, a.squares, n));
        n++;
    }
    return 0;
}

/* ---- The worker's own gradients ---- */

static void step_sgd(const struct drps_optim *o, float *w, const float *g, uint32_t dim)
{
    for (uint32_t k = 0; k < dim; k++)
        w[k] -= o->lr * g[k];
}

/* As the server's, but with the mean of the sums of squares in the place of each. */
static void step_adagrad(const struct drps_optim *o, float *w, const float *g, uint32_t dim,
                         float *square)
{
    float sum = 0;
    for (uint32_t k = 0; k < dim; k++) {
        const float a = *square + g[k] * g[k] + o->eps;
        if (a > 0) w[k] -= o->lr * g[k] / sqrtf(a);
        sum += g[k] * g[k];
    }
    *square += sum / (float)dim;
}

void drps_async_cache_step(struct async_cache *c, const struct drps_feed_share *batch,
                           const float *grads)
{
    const struct drps_optim *o = &c->job->o.server->optim;
    const uint32_t dim = c->job->dim;
    const struct part own = part_of(c, batch, c->job->rank);
    for (size_t i = 0; i < c->slots->n; i++) {
        const uint32_t slot = c->slots->slot[i];
        const float *g = grads + (i < own.first ? i : i + own.n) * dim;
        if (c->slots->whole[i] || slot == DRPS_NO_SLOT || !c->answer[slot]) continue;
        if (o->kind == DRPS_OPTIM_SGD)
            step_sgd(o, c->values + (size_t)slot * dim, g, dim);
        else
            step_adagrad(o, c->values + (size_t)slot * dim, g, dim, &c->squares[slot]);
    }
}

/* ---- Opening ---- */

/* A copy is at most as many batches of its worker old as the bound says, which has its own
 * gradients. */
static uint64_t remembers(uint64_t bound)
{
    return bound < ANSWERS_MOST - 2 ? bound + 2 : ANSWERS_MOST;
}

uint64_t drps_async_cache_memory(const struct drps_plan_info *info, uint64_t bound)
{
    const struct drps_plan_ranks *r = &info->ranks;
    const uint64_t slot = info->dim * sizeof(float) + sizeof(float) + sizeof(uint64_t);
    const uint64_t answers = remembers(bound) * r->workers + 4;
    return r->residual_slots * slot + r->servers * answers * sizeof(uint64_t) +
           info->max_batch_rows / 8 + drps_slot_reader_memory(info) +
           r->count * (drps_message_needs_bytes(r->workers) + drps_async_part_rows(info)) +
           drps_async_part_rows(info) * sizeof(uint32_t);
}

void drps_async_cache_begin(struct async_cache *c)
{
    if (!c) return;
    memset(c->answer, 0, (size_t)c->job->o.plan->info.ranks.residual_slots * sizeof(*c->answer));
    c->answers = 0;
    for (uint32_t s = 0; s < c->job->shape->servers; s++)
        c->oldest[s] = 1;
}

static int allocate(struct async_cache *c)
{
    const struct drps_plan_info *info = &c->job->o.plan->info;
    const size_t slots = (size_t)info->ranks.residual_slots, servers = c->job->shape->servers;
    c->values = drps_array_new(slots, c->job->dim * sizeof(*c->values));
    c->squares = drps_array_new(slots, sizeof(*c->squares));
    c->answer = drps_array_new(slots, sizeof(*c->answer));
    c->in = drps_array_new(servers * (size_t)c->remembers, c->job->shape->workers * sizeof(*c->in));
    c->oldest = drps_array_new(servers, sizeof(*c->oldest));
    c->marks = drps_array_new((size_t)info->max_batch_rows / 64 + 1 + servers, sizeof(*c->marks));
    c->first_mark = drps_array_new(servers, sizeof(*c->first_mark));
    c->wanted = drps_array_new(servers, sizeof(*c->wanted));
    return c->values && c->squares && c->answer && c->in && c->oldest && c->marks &&
           c->first_mark && c->wanted;
}

int drps_async_cache_new(const struct async_job *job, struct async_cache **out,
                         struct drps_err *err)
{
    *out = NULL;
    if (!job->cached || !drps_rank_trains(job->shape, job->rank)) return 0;
    struct async_cache *c = *out = calloc(1, sizeof(*c));
    if (!c) return drps_err_set(err, -ENOMEM, "no memory for copies of rows");
    c->job = job;
    c->remembers = remembers(job->bound);
    if (!allocate(c)) return drps_err_set(err, -ENOMEM, "no memory for copies of rows");
    drps_async_cache_begin(c);
    return drps_slot_reader_open(job->o.plan, &job->o.batches, &c->reader, err);
}

void drps_async_cache_free(struct async_cache *c)
{
    if (!c) return;
    drps_slot_reader_close(c->reader);
    free(c->values);
    free(c->squares);
    free(c->answer);
    free(c->in);
    free(c->oldest);
    free(c->marks);
    free(c->first_mark);
    free(c->wanted);
    free(c);
}

void drps_async_cache_traffic(const struct async_cache *c, struct drps_traffic *sum)
{
    if (c) drps_traffic_merge(sum, &c->sent);
}
