/*
 * What the halves of rounds share: rounds.c opens and closes them and has their sizes,
 * rounds_server.c and rounds_worker.c are the halves, rounds_message.c takes messages for both,
 * rounds_pull.c has what pulls that are filtered leave out, rounds_topic.c the sums of topic
 * models, rounds_common.c copies of common rows. Private to engine/cluster/.
 */
#ifndef DRPS_ENGINE_CLUSTER_ROUNDS_INTERNAL_H
#define DRPS_ENGINE_CLUSTER_ROUNDS_INTERNAL_H

#include <pthread.h>

#include "engine/cluster/drps_messages.h"
#include "engine/cluster/drps_rounds.h"
#include "engine/cluster/traffic/drps_traffic.h"
#include "engine/cluster/drps_fresh.h"
#include "net/drps_shared_buffer.h"

enum { ROUNDS_END = DRPS_MESSAGE_STOP | DRPS_MESSAGE_PAUSE }; /* any of them */

/* A round whose rows the server has open. */
struct rounds_open {
    struct drps_feed_union u;
    struct drps_rows rows; /* rows.index is `frames` */
    uint32_t *frames;      /* own: [max_round_rows] */
    uint8_t *late;         /* own: [max_round_rows]; 1: the round before may still change the row */
    uint32_t *ids;         /* own: [max_round_rows] row numbers, if some rows may be fresh */
    int has_ids;           /* they are those of this round */
    struct drps_published_rows published; /* own arrays, if pulls are filtered */
    int is_filtered;                      /* of this round they are, and published is filled in */
    uint64_t step;                        /* the store's number of it */
    int is_listed;                        /* its lists are there before it is this round's turn */
    int is_open;
    struct drps_lent lent; /* which of its rows workers have, if rows are handed on */
    int is_ahead;          /* workers of other ranks have got the rows that are not late */
};

struct rounds_worker {
    uint64_t round, at; /* of the run, and within the epoch */
    struct drps_feed_share share;
    int has_share;   /* it was taken for a round that the ranks ended before */
    int wants_pause; /* gradients say so, until the next begin */
    uint32_t ended;  /* what the servers said in place of parameters */
    uint32_t heard;  /* what ranks without samples want, as their servers said with parameters */
    uint64_t trained_ns; /* when it had sent the last gradient */
    struct drps_traffic sent;
    struct drps_rounds_bytes traffic;     /* received */
    uint64_t made[DRPS_PLAN_WORKERS_MAX]; /* rows that the server of a rank left out, as fresh */
    struct drps_rounds_times times;
    uint64_t summed_ns;   /* in this round it has waited for the sums of common rows */
    uint64_t products_ns; /* and has computed products of other ranks' vectors */
    uint64_t pushed_ns;   /* when the last gradient was sent; 0: what came of it is counted */
    uint64_t store_ns;    /* of the server's, what is counted */
    struct drps_shared_buffer
        *filtered;              /* own: gradients on their way out, where they are filtered */
    size_t filtered_bytes;      /* of it that are in use */
    struct drps_copies *copies; /* of the round's rows; NULL: its pulls are not filtered */
    struct drps_shared_buffer *handed; /* own: rows on their way out, where they are handed on */
    size_t handed_bytes;               /* of it that are in use */
    struct drps_net_message **early;   /* own: [ranks] rows that came before they were due */
};

struct rounds_server {
    uint64_t round, at; /* of the run, and within the epoch */
    uint64_t trained_ns;
    uint32_t end;       /* what some ranks want */
    uint32_t tells;     /* what its own rank wants, where that has no samples */
    uint64_t end_round; /* the one before which they end, if `end` is set */
    struct rounds_open open[2];
    struct rounds_open *now, *next;
    uint64_t *marks; /* own: a bit a frame of the store, set while the rows of `now` are compared */
    size_t marks_cap;
    struct drps_shared_buffer *values; /* own: parameters on their way out, by worker */
    struct drps_shared_buffer *ahead;  /* own: those of the next round, and which they are */
    uint32_t *index;                   /* own: [max_round_uses] */
    uint32_t *chosen;                  /* own: [max_round_uses] row numbers of those in `index` */
    uint32_t *uses, *order;            /* own: [max_round_uses] numbers of the uses in `index`, and
                                          room; if pulls are filtered, as is */
    float *rounded;                    /* own: [max_round_rows][dim] */
    struct drps_fresh *fresh;          /* own: as are `chosen` and `ids`; NULL: no row is */
    float *sum;                        /* own: [max_round_rows][dim] */
    uint32_t *count;                   /* own: [max_round_rows]; of no rows without touches */
    struct drps_push_reader *reader;   /* own; NULL: gradients are not filtered */
    struct drps_shared_buffer *lent;   /* own: rows on their way out, where they are handed on */
    size_t lent_bytes;                 /* of it that are in use */
    struct drps_traffic sent;
    struct drps_rounds_bytes traffic; /* received */
    uint64_t store_ns; /* opening and closing rounds while the worker cannot go on; the worker reads
                          it between its parameters and its gradient, when it does not change */
    struct drps_err err;
    int rc;
    pthread_t thread;
    int running;
};

/* Copies of the rows that all batches have, on every rank (rounds_common.c). */
struct rounds_common {
    uint32_t n;                       /* of the plan's first rows; 0: there are no copies */
    uint32_t own;                     /* of these the server has: its first ones */
    char *rows;                       /* own: [n] with the optimizer's state */
    uint32_t *index;                  /* own: [n] 0, 1, ... */
    int is_there;                     /* the worker has them: it has had a batch with rows */
    uint32_t *of;                     /* own: [ranks] how many of them came from each server */
    uint8_t *is_sent;                 /* own: [ranks] that worker has those of this server */
    struct drps_rounds_seen seen;     /* own_empty is the worker's, others_empty the server's */
    struct drps_outer_choice vectors; /* layers whose gradients go so */
    struct drps_outer *outer;         /* own; NULL: there are none */
    float *rest;                      /* own: gradients of all others, where there are some */
    struct drps_shared_buffer *sent;  /* own: these, on their way out; between rounds NULL */
};

struct drps_rounds {
    struct drps_rounds_options o;
    uint32_t rank, ranks;
    const struct drps_plan_ranks *shape; /* of the plan */
    uint32_t dim;
    uint64_t train, rounds; /* of an epoch */
    int touches;
    struct rounds_worker worker;
    struct rounds_server server;
    struct rounds_common common;
};

/* 1: the server of this rank takes part: it has rows. */
static inline int rounds_serves(const struct drps_rounds *r)
{
    return drps_rank_serves(r->shape, r->rank);
}

/*
 * 1: that worker and that server have messages for each other: one has samples, and the other rows.
 * The worker of a rank without samples speaks with its own server alone, which passes on to the
 * workers what the rank wants.
 */
static inline int rounds_linked(const struct drps_rounds *r, uint32_t worker, uint32_t server)
{
    return drps_rank_serves(r->shape, server) &&
           (drps_rank_trains(r->shape, worker) || worker == server);
}

/* 1: workers may have rows of the round. */
static inline int rounds_lends(const struct rounds_open *o)
{
    return o->lent.is_of_round;
}

/* The first ones of a worker's rows at this server that do not travel: it has copies. */
static inline uint32_t rounds_skipped(const struct drps_rounds *r, const struct rounds_open *o,
                                      uint32_t worker)
{
    return o->u.part[worker + 1] > o->u.part[worker] ? r->common.own : 0;
}

/* Rows of a worker's batch that it pulls and pushes. */
static inline size_t rounds_plain(const struct drps_rounds *r, const struct rounds_open *o,
                                  uint32_t worker)
{
    if (rounds_lends(o)) return o->lent.plain[worker];
    return o->u.part[worker + 1] - o->u.part[worker] - rounds_skipped(r, o, worker);
}

static inline size_t rounds_row_bytes(const struct drps_plan_info *info)
{
    return info->dim * sizeof(float);
}

/* ---- Rows that are sent ahead: which of a worker's rows, a bit each, then their parameters ----
 */

static inline size_t rounds_mark_bytes(size_t rows)
{
    return (rows + 63) / 64 * sizeof(uint64_t);
}

/* Bytes of such messages to all workers of other ranks, at most; SIZE_MAX where they cannot be
 * counted. */
size_t drps_rounds_ahead_bytes(const struct drps_plan_info *info);

/* ---- Filtered pulls (rounds_pull.c) ---- */

/* Put what is sent of the n rows that were chosen for another rank to data, where n rows have room.
 * Returns the bytes; *tag_out is the message's. */
size_t drps_rounds_put_published(struct drps_rounds *r, const struct rounds_open *o, uint32_t to,
                                 size_t n, unsigned char *data, uint32_t *tag_out);

/* The rows of this training round are stepped. */
void drps_rounds_publish(struct drps_rounds *r);

/* The rows of a message with parameters, filtered or not, one after another. */
struct rounds_reader {
    struct drps_fresh_reader fresh;
    const unsigned char *copies; /* marks of rows of which the worker has a copy; NULL: none */
    size_t row, head_bytes;
    uint32_t bits;
};

/* Returns 0, or -1 where the bytes do not fit a message of `rows` rows, or this round. */
DRPS_MUST_CHECK
int drps_rounds_read(const struct drps_rounds *r, const void *data, size_t bytes, size_t rows,
                     uint32_t tag, struct rounds_reader *out);

/* The next row's parameters to `to` [dim]; it is number `remote` of the batch's rows of other
 * servers. Returns 0, or -1 where it is left out and there is no copy, or is no number. */
DRPS_MUST_CHECK
int drps_rounds_next_row(const struct drps_rounds *r, struct rounds_reader *reader, size_t remote,
                         float *to);

/* ---- Messages (rounds_message.c) ---- */

/*
 * Receive the next message to a part of this rank, and free it unless it is of this round.
 * *out is the caller's to free, and to check beyond that.
 */
DRPS_MUST_CHECK
int drps_rounds_take(struct drps_rounds *r, enum drps_net_part part, uint32_t from, uint64_t round,
                     struct drps_net_message **out, struct drps_err *err);

/* DRPS_E_PROTO: it is another message than the one that was due, of so many bytes. Frees it. */
DRPS_MUST_CHECK
int drps_rounds_unexpected(struct drps_net_message *m, uint8_t type, uint64_t bytes,
                           struct drps_err *err);

/* Tell the other half of this rank that this one has failed. */
void drps_rounds_tell_failed(struct drps_rounds *r, enum drps_net_part part);

/* Bytes of a gradient's message between this rank and another. */
uint64_t drps_rounds_gradient_bytes(const struct drps_rounds *r, uint32_t other, size_t rows);

static inline void rounds_count_sent(const struct drps_rounds *r, struct drps_traffic *sent,
                                     enum drps_traffic_kind kind, uint32_t to, size_t rows,
                                     uint64_t bytes)
{
    if (to != r->rank) drps_traffic_add(sent, kind, to, rows, bytes);
}

/* ---- Times (rounds_times.c) ---- */

/* The worker has begun to wait at `start` and has its parameters at `pulled`. */
void drps_rounds_count_wait(struct drps_rounds *r, uint64_t start, uint64_t pulled);

/* The last rounds are over, and the server's thread. */
void drps_rounds_count_rest(struct drps_rounds *r);

/* ---- Rows that are handed on (rounds_handed.c) ---- */

/* The worker takes the rows that a server lends it, and after the parameters of all servers those
 * of other workers. */
DRPS_MUST_CHECK
int drps_rounds_take_lent(struct drps_rounds *r, uint32_t server, struct drps_err *err);
DRPS_MUST_CHECK
int drps_rounds_arrive(struct drps_rounds *r, struct drps_err *err);

/* The worker sends rows to other workers, before its gradients, and after its gradient to a server
 * those of that server. */
DRPS_MUST_CHECK
int drps_rounds_hand_on(struct drps_rounds *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_rounds_return(struct drps_rounds *r, uint32_t server, struct drps_err *err);

/* The server lends rows to a worker, after its parameters, and takes them back after its gradient.
 */
DRPS_MUST_CHECK
int drps_rounds_begin_lending(struct drps_rounds *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_rounds_lend(struct drps_rounds *r, uint32_t to, struct drps_err *err);
DRPS_MUST_CHECK
int drps_rounds_regain(struct drps_rounds *r, uint32_t from, struct drps_err *err);

/* The server adds a worker's gradient, and steps rows: those of the round that no worker has. */
void drps_rounds_add_plain(struct drps_rounds *r, uint32_t from,
                           const struct drps_message_here *here);
void drps_rounds_step_plain(struct drps_rounds *r);

/* ---- Topic models (rounds_topic.c) ---- */

/* The server tells its worker that the rows of a training round are stepped; the worker adds what
 * the round changes of the sums to that of all ranks. */
DRPS_MUST_CHECK
int drps_rounds_tell_stepped(struct drps_rounds *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_rounds_add_sums(struct drps_rounds *r, struct drps_err *err);

/* ---- Copies of common rows (rounds_common.c, rounds_common_plan.c) ---- */

/* Returns how many floats of common rows go by the all-reduce: all but those of vectors. */
uint64_t drps_rounds_summed(const struct drps_plan_info *info,
                            const struct drps_outer_choice *vectors);

DRPS_MUST_CHECK
int drps_rounds_open_common(struct drps_rounds *r, struct drps_err *err);
void drps_rounds_close_common(struct drps_rounds *r);

/* The server sends a worker its common rows, behind the parameters of the first round in which that
 * has some of them; end of what it sends to all in a round. */
DRPS_MUST_CHECK
int drps_rounds_send_common(struct drps_rounds *r, uint32_t to, struct drps_err *err);
void drps_rounds_end_sending(struct drps_rounds *r);

/* The worker takes them, once: n rows of the copy from row `first` on. */
DRPS_MUST_CHECK
int drps_rounds_take_common(struct drps_rounds *r, uint32_t server, size_t first, uint32_t n,
                            struct drps_err *err);

/* The worker's batch has all common rows, or none. */
DRPS_MUST_CHECK
int drps_rounds_check_common(const struct drps_rounds *r, struct drps_err *err);

/* Their parameters to those of the batch. */
void drps_rounds_put_common(struct drps_rounds *r);

/* The worker: their gradients become those of all ranks, and the copy is stepped. */
DRPS_MUST_CHECK
int drps_rounds_sum_common(struct drps_rounds *r, struct drps_err *err);

/* Returns the sums of the rows that this rank's server has; NULL: it has none of them. */
const float *drps_rounds_own_sums(const struct drps_rounds *r);

/* ---- The server (rounds_server.c) ---- */

/* The server's thread: an epoch's rounds from server.at on. */
void *drps_rounds_serve(void *rounds);

#endif
