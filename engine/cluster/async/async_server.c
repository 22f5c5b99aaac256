/*
 * The server: keeps the steps of two windows open, shows a worker the rows of its batch, and steps
 * them with the gradient that comes back, at once and alone: no sum over workers.
 *
 * A ring holds steps low .. next - 1 of the epoch: where the rows of each share's batch are in the
 * store, and whose gradients are in. A step closes when all are, and leaves the ring when it is the
 * lowest. A pull for a step that cannot be opened yet is put aside until a step has closed, or the
 * store has opened what the step needs; and one whose parameters must contain gradients that are
 * still on their way, until they are in. A pull that is ahead of its worker's turn is answered in
 * the same way, unless the batch is executed by another worker before it can be. A server without
 * rows opens no steps, and answers pulls with records alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/async/parts.h"
#include "net/drps_shared_buffer.h"

/* What has come of a share's batch. */
enum { IN_GRADIENT = 1, IN_HELD = 2, IN_ALL = 3 };

struct open_step {
    uint64_t number; /* the store's */
    struct drps_rows rows;
    uint32_t *index;     /* in the server's, as are the next two */
    size_t *part;        /* [ranks + 1] rows of rank i's share: index[part[i] .. part[i + 1]) */
    unsigned char *done; /* [ranks] what of each share's batch is in, */
    uint32_t done_n;     /* and of how many all */
};

struct async_server {
    const struct async_job *job;
    struct open_step *ring;         /* own: [span] */
    uint64_t span;                  /* 2 * window_steps */
    uint32_t *index;                /* own: [span][max_round_uses] */
    size_t *part;                   /* own: [span][ranks + 1] */
    unsigned char *done;            /* own: [span][ranks] */
    uint64_t low, next;             /* steps of the epoch */
    struct drps_feed_union pending; /* read, and not open yet */
    int has_pending;
    struct drps_net_message **aside; /* own: what cannot be served yet: of each worker a pull, one
                                        that is ahead, and what it has held back of steps that are
                                        not open */
    uint32_t aside_n;
    uint64_t *in_of;          /* own: [workers] gradients of the epoch, by worker, */
    uint64_t in, expected;    /* and of all */
    uint64_t claimed, held;   /* of batches whose own worker says what it held back; and it did */
    int ended;                /* END is in: `expected` is known */
    int has_told;             /* that the rank wants to stop */
    float *here, *here_ahead; /* own: parameters for the rank's own worker, which reads them where
                                 they are */
    struct drps_shared_buffer **there; /* own: [ranks] for each other one */
    struct async_gradients *gradients; /* own */
    struct async_answer *answer;       /* own; NULL: workers keep no copies */
    struct async_early *early;         /* own: what they are sent ahead; NULL: nothing is */
    struct async_fresh *fresh;         /* own; NULL after the first epoch, too */
    struct async_stale *stale;         /* own; NULL: the rate is the same for all gradients */
    size_t part_bytes;                 /* the most that `here`, and each of `there`, holds */
    uint64_t received;                 /* bytes of gradients of other ranks */
    struct drps_traffic traffic;
};

static struct open_step *at(const struct async_server *s, uint64_t step)
{
    return &s->ring[step % s->span];
}

static int is_done(const struct async_server *s, const struct open_step *step)
{
    return step->done_n == s->job->shape->workers;
}

/* How many of the rows that all batches have are here, the first ones. */
static uint32_t common_here(const struct async_server *s)
{
    const uint32_t common = drps_server_common_rows(s->job->o.server);
    const uint64_t rows = s->job->o.plan->info.rows;
    return common < rows ? common : (uint32_t)rows;
}

/* ---- Opening ---- */

/* The rows of a share's batch are gathered and stepped by themselves: there is room for them, and
 * the first one is taken for the intercept. */
static int check_union(const struct async_server *s, const struct drps_feed_union *u,
                       struct drps_err *err)
{
    const struct drps_plan *plan = s->job->o.plan;
    for (uint32_t i = 0; i < s->job->ranks; i++) {
        const size_t n = u->part[i + 1] - u->part[i];
        if (n > plan->info.max_batch_rows)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: step %llu: %zu rows of share %u, " DRPS_FILE_MANIFEST
                                " says at most %llu",
                                plan->dir, (unsigned long long)s->next, n, i,
                                (unsigned long long)plan->info.max_batch_rows);
        const uint32_t common = common_here(s);
        if (n && common &&
            (n < common || u->positions[u->part[i] + (size_t)common - 1] != common - 1))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: step %llu: the batch of share %u does not begin with the rows "
                                "that every batch has",
                                plan->dir, (unsigned long long)s->next, i);
    }
    return 0;
}

static int read_union(struct async_server *s, struct drps_err *err)
{
    if (s->has_pending) return 0;
    int rc = drps_feed_next_union(s->job->o.feed, &s->pending, err);
    if (rc == 0) rc = check_union(s, &s->pending, err);
    s->has_pending = rc == 0;
    return rc;
}

/* Opens the next step. Returns 0, or 1 when an earlier step must close first, or the store says
 * OPENED. */
static int open_next(struct async_server *s, struct drps_err *err)
{
    const struct drps_feed_union *u = &s->pending;
    struct drps_server *server = s->job->o.server;
    if (s->next - s->low == s->span) return 1;
    int rc = read_union(s, err);
    if (rc < 0) return rc;
    if (server->ops->step_ready && !server->ops->step_ready(server->store)) return 1;
    rc = drps_server_open_step(server, u->ids, u->n, err);
    if (rc < 0) return rc == -EAGAIN ? 1 : rc;

    struct open_step *step = at(s, s->next);
    step->number = server->steps - 1;
    step->done_n = 0;
    memset(step->done, 0, s->job->ranks);
    memcpy(step->part, u->part, (s->job->ranks + 1) * sizeof(*step->part));
    const size_t uses = u->part[s->job->ranks];
    for (size_t i = 0; i < uses; i++)
        step->index[i] = server->rows.index[u->positions[i]];
    step->rows = (struct drps_rows){.base = server->rows.base, .stride = server->rows.stride};
    rc = drps_async_fresh_open(s->fresh, s->next, u, err);
    s->has_pending = 0;
    s->next++;
    return rc;
}

/* Opens steps up to this one. Returns as open_next() does. */
static int open_to(struct async_server *s, uint64_t step, struct drps_err *err)
{
    int rc = 0;
    while (s->next <= step && rc == 0)
        rc = open_next(s, err);
    return rc;
}

/* The rows of a share's batch of an open step. */
static struct drps_rows rows_of(const struct open_step *step, uint32_t share)
{
    struct drps_rows rows = step->rows;
    rows.index = step->index + step->part[share];
    rows.n = step->part[share + 1] - step->part[share];
    return rows;
}

/* ---- Pulls ---- */

/* Sends a batch of this rank to the worker of another rank that executes it. */
static int send_record(struct async_server *s, uint32_t to, uint64_t step, struct drps_err *err)
{
    struct drps_feed_record record;
    int rc = drps_feed_read_record(s->job->o.feed, step, &record, err);
    if (rc < 0) return rc;
    const struct drps_piece pieces[2] = {record.body, record.shares};
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_RECORD,
                                       .tag = (uint32_t)record.shares.bytes,
                                       .round = step,
                                       .pieces = pieces,
                                       .n = 2};
    drps_traffic_add(&s->traffic, DRPS_TRAFFIC_BATCHES, to, 0,
                     record.body.bytes + record.shares.bytes);
    return drps_net_send(s->job->o.net, &send, s->job->o.wait_ms, err);
}

/* Answers a worker that keeps copies of rows. */
static int send_wanted(struct async_server *s, const struct drps_net_message *m,
                       const struct drps_rows *rows, struct drps_err *err)
{
    const struct async_job *job = s->job;
    const size_t head = drps_async_needs_bytes(job);
    int rc = drps_shared_buffer_renew(&s->there[m->from], s->part_bytes, err);
    if (rc < 0) return rc;
    unsigned char *data = s->there[m->from]->data;
    size_t n;
    const struct drps_piece piece = {
        data, drps_async_answer_write(s->answer, m, rows, s->in_of, data, &n)};
    const struct drps_net_send send = {.to = m->from,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_PARAMETERS,
                                       .tag = m->tag,
                                       .round = m->round,
                                       .pieces = &piece,
                                       .n = 1};
    drps_traffic_add(&s->traffic, DRPS_TRAFFIC_PULLED, m->from, n, piece.bytes - head);
    drps_traffic_add(&s->traffic, DRPS_TRAFFIC_MARKS, m->from, 0, head);
    return drps_shared_buffer_send(s->there[m->from], job->o.net, &send, job->o.wait_ms, err);
}

/* The parameters of these rows for the worker of another rank; *flag_out: what the tag says. */
static struct drps_piece write_parameters(struct async_server *s, const struct drps_net_message *m,
                                          const struct drps_rows *rows, uint32_t *flag_out)
{
    unsigned char *data = s->there[m->from]->data;
    struct drps_rows sent = *rows;
    const size_t head = drps_async_fresh_write(s->fresh, m->round, m->tag, NULL, &sent, data);
    const size_t bytes = drps_async_write_rows(s->job, &sent, data + head);
    *flag_out = head ? ASYNC_FRESH : 0;
    drps_traffic_add(&s->traffic, DRPS_TRAFFIC_PULLED, m->from, sent.n, bytes);
    drps_traffic_add(&s->traffic, DRPS_TRAFFIC_FRESH, m->from, rows->n - sent.n, 0);
    drps_traffic_add(&s->traffic, DRPS_TRAFFIC_MARKS, m->from, 0, head);
    return (struct drps_piece){data, head + bytes};
}

/* Answers a pull. */
static int send_parameters(struct async_server *s, const struct drps_net_message *m,
                           struct drps_err *err)
{
    const struct async_job *job = s->job;
    const uint32_t to = m->from;
    const struct drps_rows rows = rows_of(at(s, m->round), m->tag);
    const int own = to == job->rank, ahead = m->type == DRPS_MESSAGE_AHEAD;
    if (async_keeps_copies(job, to, m->tag)) return send_wanted(s, m, &rows, err);
    int rc = own ? 0 : drps_shared_buffer_renew(&s->there[to], s->part_bytes, err);
    if (rc < 0) return rc;
    float *values = ahead ? s->here_ahead : s->here;
    const struct drps_message_here here = {.values = values};
    struct drps_piece piece = {&here, sizeof(here)};
    uint32_t fresh = 0;
    if (own)
        drps_rows_gather(&rows, job->dim, 0, rows.n, values);
    else
        piece = write_parameters(s, m, &rows, &fresh);
    const struct drps_net_send send = {.to = to,
                                       .part = DRPS_NET_WORKER,
                                       .type = ahead ? DRPS_MESSAGE_AHEAD : DRPS_MESSAGE_PARAMETERS,
                                       .tag = m->tag | fresh,
                                       .round = m->round,
                                       .pieces = &piece,
                                       .n = 1};
    if (own) return drps_net_send(job->o.net, &send, job->o.wait_ms, err);
    return drps_shared_buffer_send(s->there[to], job->o.net, &send, job->o.wait_ms, err);
}

/* Serves the pull of a rank without rows: there is nothing but the record. */
static int serve_record(struct async_server *s, const struct drps_net_message *m,
                        struct drps_err *err)
{
    if (m->tag == s->job->rank && m->from != s->job->rank)
        return send_record(s, m->from, m->round, err);
    return drps_async_undue(m, "server", err);
}

/* Answers a pull that was ahead and whose worker is not to execute the batch. */
static int send_none(struct async_server *s, const struct drps_net_message *m, struct drps_err *err)
{
    const struct drps_net_send send = {.to = m->from,
                                       .part = DRPS_NET_WORKER,
                                       .type = DRPS_MESSAGE_AHEAD,
                                       .tag = m->tag,
                                       .round = m->round};
    return drps_net_send(s->job->o.net, &send, s->job->o.wait_ms, err);
}

/* The rows of the batch before, of the same share, if its gradient is not in yet; else none. */
static struct drps_rows rows_before(const struct async_server *s, const struct drps_net_message *m)
{
    const uint64_t before = m->round - 1;
    const int changes = m->round > s->low && !(at(s, before)->done[m->tag] & IN_GRADIENT);
    return changes ? rows_of(at(s, before), m->tag) : (struct drps_rows){.n = 0};
}

/* Answers what is asked for ahead. What the rank's own worker gets does not travel: it gets all
 * when the gradient of the batch before is in. Returns 1 until then. */
static int send_ahead(struct async_server *s, const struct drps_net_message *m,
                      struct drps_err *err)
{
    const struct drps_rows now = rows_before(s, m), next = rows_of(at(s, m->round), m->tag);
    if (m->from != s->job->rank)
        return drps_async_early_send(s->early, m->from, m->round, &now, &next, &s->traffic, err);
    return now.n ? 1 : send_parameters(s, m, err);
}

/* A gradient is stepped: rows of its share's next batch may follow now. */
static int send_rest(struct async_server *s, const struct drps_net_message *m, struct drps_err *err)
{
    const uint64_t step = m->round + 1;
    if (!s->early || drps_async_early_step(s->early, m->tag) != step) return 0;
    const struct drps_rows now = rows_of(at(s, m->round), m->tag);
    const struct drps_rows next = rows_of(at(s, step), m->tag);
    const int wanted = !(at(s, step)->done[m->tag] & IN_GRADIENT); /* so the step is open */
    return drps_async_early_rest(s->early, m->tag, &now, wanted ? &next : NULL, &s->traffic, err);
}

/* 1: all gradients are in that the pull's parameters must contain. */
static int has_needs(const struct async_server *s, const struct drps_net_message *m)
{
    const uint64_t *needs = m->data;
    for (uint32_t w = 0; s->job->has_needs && w < s->job->shape->workers; w++)
        if (s->in_of[w] < needs[w]) return 0;
    return 1;
}

/* Gradients that are in of other workers than the one that a message is of. */
static uint64_t of_others(const struct async_server *s, const struct drps_net_message *m)
{
    return s->in - s->in_of[m->from - s->job->shape->first_worker];
}

/* Serves a pull. Returns 0, or 1 when the step cannot be opened yet, or gradients are missing. Of a
 * peer that asks twice, the pull that was put aside may come after the step has closed. */
static int serve_pull(struct async_server *s, const struct drps_net_message *m,
                      struct drps_err *err)
{
    const uint64_t step = m->round;
    int rc = 0;
    if (!async_serves(s->job)) return serve_record(s, m, err);
    if (step < s->low)
        return m->type == DRPS_MESSAGE_AHEAD ? send_none(s, m, err)
                                             : drps_async_undue(m, "server", err);
    rc = open_to(s, step, err);
    if (rc == 0 && !has_needs(s, m)) rc = 1;
    if (rc) return rc;
    drps_async_stale_show(s->stale, m, of_others(s, m));
    if (m->type == DRPS_MESSAGE_AHEAD) return send_ahead(s, m, err);
    if (!drps_async_answer_fits(s->job, m, rows_of(at(s, step), m->tag).n))
        return drps_async_undue(m, "server", err);
    if (m->tag == s->job->rank && m->from != s->job->rank) rc = send_record(s, m->from, step, err);
    return rc == 0 ? send_parameters(s, m, err) : rc;
}

static int is_aside(const struct async_server *s, uint32_t from, uint8_t type, uint64_t round)
{
    uint32_t i = 0;
    while (i < s->aside_n && (s->aside[i]->from != from || s->aside[i]->type != type ||
                              (type == DRPS_MESSAGE_HELD && s->aside[i]->round != round)))
        i++;
    return i < s->aside_n;
}

/* Whether a pull has needs, and after them marks only where it may. */
static int has_size(const struct async_server *s, const struct drps_net_message *m)
{
    const struct async_job *job = s->job;
    const size_t needs = drps_async_needs_bytes(job);
    const int marks = m->type == DRPS_MESSAGE_PULL && async_serves(job) &&
                      async_keeps_copies(job, m->from, m->tag);
    return m->bytes == needs || (marks && m->bytes > needs && m->bytes % sizeof(uint64_t) == 0);
}

/* Only its own share's worker pulls ahead, and only from a server that has rows. */
static int is_pull(const struct async_server *s, const struct drps_net_message *m)
{
    const struct async_job *job = s->job;
    const int of_workers =
        drps_rank_trains(job->shape, m->tag) && drps_rank_trains(job->shape, m->from);
    const int ahead = m->type == DRPS_MESSAGE_AHEAD && s->early && m->tag == m->from &&
                      !drps_async_early_is_due(s->early, m->from);
    const int now = m->type == DRPS_MESSAGE_PULL && m->round >= s->low;
    return of_workers && (now || ahead) && m->round < job->steps && has_size(s, m) &&
           !is_aside(s, m->from, m->type, m->round);
}

/* Those that are left when an epoch ends were ahead. */
static int answer_aside(struct async_server *s, struct drps_err *err)
{
    int rc = 0;
    while (s->aside_n) {
        struct drps_net_message *m = s->aside[--s->aside_n];
        if (rc == 0 && m->type == DRPS_MESSAGE_AHEAD) rc = send_none(s, m, err);
        drps_net_message_free(m);
    }
    for (uint32_t r = 0; s->early && r < s->job->ranks && rc == 0; r++)
        if (drps_async_early_is_due(s->early, r))
            rc = drps_async_early_rest(s->early, r, NULL, NULL, &s->traffic, err);
    return rc;
}

/* ---- Gradients ---- */

static void step_rows(const struct async_server *s, const struct drps_rows *rows,
                      const float *values, const uint32_t *touches, int begins, float divisor)
{
    struct drps_optim optim = s->job->o.server->optim;
    optim.lr /= divisor;
    drps_optim_step(&optim, s->job->dim, rows, 0, rows->n, values, touches,
                    begins ? common_here(s) : 0);
}

/* More of a share's batch is in. When all is of all shares, the step is closed. */
static int note_in(struct async_server *s, uint64_t number, uint32_t share, unsigned char in,
                   struct drps_err *err)
{
    struct open_step *step = at(s, number);
    step->done[share] |= in;
    step->done_n += step->done[share] == IN_ALL;
    int rc = 0;
    if (step->done[share] == IN_ALL && is_done(s, step))
        rc = drps_server_close_one(s->job->o.server, step->number, 1, err);
    while (s->low < s->next && is_done(s, at(s, s->low)))
        s->low++;
    return rc;
}

static int take_gradient(struct async_server *s, const struct drps_net_message *m,
                         struct drps_err *err)
{
    struct drps_message_here here;
    const int claimed = drps_async_held_is_due(s->job, m->from, m->tag);
    const unsigned char may_be_in = claimed ? IN_HELD : 0;
    if (m->round >= s->next || at(s, m->round)->done[m->tag] & ~may_be_in)
        return drps_async_undue(m, "server", err);
    const struct drps_rows rows = rows_of(at(s, m->round), m->tag);
    int rc = drps_async_gradient_read(s->gradients, m, rows.n, &here, err);
    if (rc < 0) return rc;
    if (m->from != s->job->rank) s->received += m->bytes;
    step_rows(s, &rows, here.values, here.touches, 1,
              drps_async_stale_divisor(s->stale, m, of_others(s, m)));
    drps_async_fresh_step(s->fresh, m->round, m->tag);
    at(s, m->round)->done[m->tag] |= IN_GRADIENT;
    s->in_of[m->from - s->job->shape->first_worker]++;
    s->in++;
    s->claimed += (uint64_t)claimed;
    rc = send_rest(s, m, err);
    return rc == 0 ? note_in(s, m->round, m->tag, claimed ? IN_GRADIENT : IN_ALL, err) : rc;
}

static int is_held(const struct async_server *s, const struct drps_net_message *m)
{
    const struct async_job *job = s->job;
    return m->type == DRPS_MESSAGE_HELD && job->filters && async_serves(job) && m->from == m->tag &&
           m->from != job->rank && drps_rank_trains(job->shape, m->from) && m->round >= s->low &&
           m->round < job->steps && m->round - s->low < 2 * s->span &&
           !is_aside(s, m->from, m->type, m->round);
}

/* Takes what a worker has held back of a batch that another one executes. Returns 0, or 1 when the
 * step cannot be opened yet. */
static int take_held(struct async_server *s, const struct drps_net_message *m, struct drps_err *err)
{
    struct async_held held;
    int rc = m->round < s->low ? drps_async_undue(m, "server", err) : open_to(s, m->round, err);
    if (rc) return rc;
    const struct drps_rows rows = rows_of(at(s, m->round), m->tag);
    if (at(s, m->round)->done[m->tag] & IN_HELD) return drps_async_undue(m, "server", err);
    rc = drps_async_held_read(s->gradients, m, &rows, &held, err);
    if (rc < 0) return rc;
    step_rows(s, &held.rows, held.values, held.touches, held.begins, 1);
    drps_async_fresh_step(s->fresh, m->round, m->tag); /* some of them: others are sent, too */
    s->received += m->bytes;
    s->held++;
    return note_in(s, m->round, m->tag, IN_HELD, err);
}

/* ---- Messages that are put aside ---- */

static int serve(struct async_server *s, const struct drps_net_message *m, struct drps_err *err)
{
    return m->type == DRPS_MESSAGE_HELD ? take_held(s, m, err) : serve_pull(s, m, err);
}

/* Serves, in the order in which they came, those that can be. */
static int serve_each_aside(struct async_server *s, struct drps_err *err)
{
    uint32_t kept = 0;
    int rc = 0;
    for (uint32_t i = 0; i < s->aside_n; i++) {
        struct drps_net_message *m = s->aside[i];
        const int later = rc == 0 ? serve(s, m, err) : 1;
        if (later < 0) rc = later;
        if (later > 0)
            s->aside[kept++] = m;
        else
            drps_net_message_free(m);
    }
    s->aside_n = kept;
    return rc;
}

/* What was held back may end a step, for which others wait. */
static int serve_aside(struct async_server *s, struct drps_err *err)
{
    uint64_t low;
    int rc;
    do {
        low = s->low;
        rc = serve_each_aside(s, err);
    } while (rc == 0 && s->low != low);
    return rc;
}

/* ---- An epoch ---- */

/* *m is freed here unless it is put aside. */
static int take(struct async_server *s, struct drps_net_message *m, struct drps_err *err)
{
    const struct async_job *job = s->job;
    const int of_batch = drps_rank_trains(job->shape, m->tag) &&
                         drps_rank_trains(job->shape, m->from) && m->round >= s->low &&
                         m->round < job->steps;
    int rc;
    if (is_pull(s, m) || is_held(s, m)) {
        rc = serve(s, m, err);
        if (rc == 1) s->aside[s->aside_n++] = m;
        if (rc == 1) return 0;
        if (rc == 0 && m->type == DRPS_MESSAGE_HELD) rc = serve_aside(s, err);
    } else if (drps_async_gradient_is_due(job, m) && of_batch && async_serves(job)) {
        rc = take_gradient(s, m, err);
        if (rc == 0) rc = serve_aside(s, err);
    } else if (m->type == DRPS_MESSAGE_OPENED && m->from == job->rank) {
        rc = serve_aside(s, err);
    } else if (m->type == DRPS_MESSAGE_END && m->from == 0 &&
               m->round <= job->steps * job->shape->workers) {
        s->ended = 1;
        s->expected = async_serves(job) ? m->round : 0;
        rc = 0;
    } else {
        rc = drps_async_undue(m, "server", err);
    }
    drps_net_message_free(m);
    return rc;
}

/* Closes the steps that are not complete when all ranks have stopped. */
static int close_open(struct async_server *s, struct drps_err *err)
{
    int rc = 0;
    for (; s->low < s->next && rc == 0; s->low++)
        if (!is_done(s, at(s, s->low)))
            rc = drps_server_close_one(s->job->o.server, at(s, s->low)->number, 1, err);
    return rc;
}

/* The worker of a rank without samples has no arrivals to say with that its rank wants to stop: the
 * server says it, once. */
static int tell_wish(struct async_server *s, struct drps_err *err)
{
    const struct async_job *job = s->job;
    const struct drps_net_send send = {
        .part = DRPS_NET_MASTER, .type = DRPS_MESSAGE_ARRIVE, .tag = DRPS_MESSAGE_STOP};
    if (s->has_told || drps_rank_trains(job->shape, job->rank) || job->filters) return 0;
    const atomic_int *stop = job->o.train->stop;
    if (!stop || !atomic_load_explicit(stop, memory_order_relaxed)) return 0; /* only a flag */
    s->has_told = 1;
    return drps_net_send(job->o.net, &send, job->o.wait_ms, err);
}

int drps_async_server_run(struct async_server *s, struct drps_err *err)
{
    int rc = 0;
    s->low = s->next = s->in = s->claimed = s->held = 0;
    s->ended = s->has_pending = s->has_told = 0;
    if (s->early) drps_async_early_begin(s->early, s->fresh);
    memset(s->in_of, 0, s->job->shape->workers * sizeof(*s->in_of));
    while (rc == 0 && !(s->ended && s->in == s->expected && s->held == s->claimed)) {
        struct drps_net_message *m;
        rc = drps_async_receive(s->job, DRPS_NET_SERVER, ASYNC_TURN_MS, &m, err);
        if (rc == 0) rc = take(s, m, err);
        if (rc == 0 && !s->ended) rc = tell_wish(s, err);
    }
    if (rc == 0) rc = answer_aside(s, err);
    drps_async_fresh_free(s->fresh);
    s->fresh = NULL;
    return rc == 0 ? close_open(s, err) : rc;
}

/* ---- Opening ---- */

int drps_async_server_new(const struct async_job *job, struct async_server **out,
                          struct drps_err *err)
{
    const struct drps_plan_info *info = &job->o.plan->info;
    const size_t uses = (size_t)info->ranks.max_round_uses, ranks = job->ranks;
    *out = calloc(1, sizeof(**out));
    struct async_server *s = *out;
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for asynchronous rounds");
    s->job = job;
    s->span = 2 * job->window_steps;
    s->ring = calloc((size_t)s->span, sizeof(*s->ring));
    s->index = drps_array_new((size_t)s->span * uses, sizeof(*s->index));
    s->part = drps_array_new((size_t)s->span * (ranks + 1), sizeof(*s->part));
    s->done = drps_array_new((size_t)s->span * ranks, sizeof(*s->done));
    const size_t held = job->filters ? 2 * (size_t)s->span : 0;
    s->aside = drps_array_new(ranks, (2 + held) * sizeof(struct drps_net_message *));
    s->in_of = calloc(job->shape->workers, sizeof(*s->in_of));
    s->here = drps_array_new((size_t)drps_async_part_rows(info), job->dim * sizeof(*s->here));
    s->here_ahead = drps_array_new(job->ahead ? (size_t)drps_async_part_rows(info) : 0,
                                   job->dim * sizeof(*s->here));
    s->part_bytes = (size_t)drps_async_part_rows(info) * job->dim * sizeof(*s->here);
    if (job->cached)
        s->part_bytes += drps_async_needs_bytes(job) + (size_t)drps_async_part_rows(info);
    s->there = calloc(ranks, sizeof(struct drps_shared_buffer *));
    if (!s->ring || !s->index || !s->part || !s->done || !s->aside || !s->in_of || !s->here ||
        !s->here_ahead || !s->there)
        return drps_err_set(err, -ENOMEM, "no memory for the rows of %llu steps",
                            (unsigned long long)s->span);
    int rc = job->ahead && async_serves(job) ? drps_async_early_new(job, &s->early, err) : 0;
    if (rc == 0) rc = drps_async_gradients_new(job, &s->gradients, err);
    if (rc == 0) rc = drps_async_answer_new(job, &s->answer, err);
    if (rc == 0) rc = drps_async_fresh_new(job, s->span, &s->fresh, err);
    if (rc == 0) rc = drps_async_stale_new(job, s->span, &s->stale, err);
    if (rc < 0) return rc;
    for (uint64_t i = 0; i < s->span; i++) {
        s->ring[i].index = s->index + i * uses;
        s->ring[i].part = s->part + i * (ranks + 1);
        s->ring[i].done = s->done + i * ranks;
    }
    return 0;
}

void drps_async_server_free(struct async_server *s)
{
    if (!s) return;
    for (uint32_t i = 0; i < s->aside_n; i++)
        drps_net_message_free(s->aside[i]);
    for (uint32_t w = 0; s->there && w < s->job->ranks; w++)
        drps_shared_buffer_release(s->there[w]);
    drps_async_early_free(s->early);
    drps_async_gradients_free(s->gradients);
    drps_async_answer_free(s->answer);
    drps_async_fresh_free(s->fresh);
    drps_async_stale_free(s->stale);
    free(s->ring);
    free(s->index);
    free(s->part);
    free(s->done);
    free(s->aside);
    free(s->in_of);
    free(s->here);
    free(s->here_ahead);
    free(s->there);
    free(s);
}

uint64_t drps_async_server_received(const struct async_server *s)
{
    return s->received;
}

void drps_async_server_traffic(const struct async_server *s, struct drps_traffic *sum)
{
    drps_traffic_merge(sum, &s->traffic);
}
