/*
 * What the files share that find rows to hand on: uses.c reads the batches of a round, next.c
 * decides by a walk backwards, limit.c where slots are few takes them away, resolve.c settles what
 * becomes of each use, write*.c write the records. Private to index/ranks/handed/.
 */
#ifndef DRPS_INDEX_RANKS_HANDING_H
#define DRPS_INDEX_RANKS_HANDING_H

#include "index/plan/drps_steps.h"
#include "index/ranks/handed/drps_handed_on.h"

/* What the walk backwards says of a use (struct handing_next). */
enum {
    HANDING_ALONE = 1, /* one worker alone has the row, and it is not that of its server */
    HANDING_TAKE = 2,  /* if the server has the row, it lends it */
    HANDING_KEEP = 4,  /* if the worker has it, it does not return it */
};

struct handing_next {
    uint32_t round; /* of the row's next use, and its worker, if the worker may keep the row */
    uint16_t rank;
    uint16_t bits;
};

/* What becomes of a use. */
enum { HANDING_HAS = 1, HANDING_TAKEN = 2 }; /* the worker has the row; it gets it now */

struct handing_fate {
    uint32_t bits;
    uint32_t to; /* a rank, DRPS_HANDED_KEPT or DRPS_HANDED_RETURNED */
};

struct handing {
    const struct handing_job *job;
    const struct split_job *split;
    uint32_t all; /* rows of the plan */
    uint64_t rounds;
    uint64_t uses; /* of all training rounds */
    struct steps *lists;

    /* The round that was read last: its uses, by worker, in the order of rows. */
    uint32_t *row; /* own: [n] */
    size_t n, cap;
    size_t part[DRPS_PLAN_WORKERS_MAX + 1]; /* worker w's are part[w] to part[w + 1] - 1 */
    uint8_t *users; /* own: [all] workers that have the row in that round; 2: several */

    uint64_t *links; /* own: a bit a use, in order: its worker may go on to the row's next one;
                        NULL: all may */
    struct steps_scratch next;  /* [n] struct handing_next a round, the last round first */
    struct steps_scratch fates; /* [n] struct handing_fate a round */
};

/* ---- Uses (uses.c) ---- */

/* Count the uses of all rounds. */
DRPS_MUST_CHECK
int handing_count(struct handing *h, struct drps_err *err);

/* Read the uses of a round. */
DRPS_MUST_CHECK
int handing_read(struct handing *h, uint64_t round, struct drps_err *err);

/* The round has no uses. */
void handing_forget(struct handing *h);

/* 1: one worker alone has the row of use i, and it is not that of the row's server. */
static inline int handing_is_alone(const struct handing *h, uint32_t worker, size_t i)
{
    const uint32_t row = h->row[i], *first = h->split->owners->first;
    const int own = row >= first[worker] && row < first[worker + 1];
    return row && !own && h->users[row] == 1; /* row 0 may be the intercept, which all have */
}

static inline int handing_may_go_on(const struct handing *h, uint64_t use)
{
    return !h->links || (h->links[use / 64] >> use % 64 & 1);
}

/* ---- Decisions ---- */

/* Make h->next, from the last round to the first. */
DRPS_MUST_CHECK
int handing_find_next(struct handing *h, struct drps_err *err);

/* Make h->links, so that no worker keeps more than `most` rows from a round to the next. */
DRPS_MUST_CHECK
int handing_limit(struct handing *h, struct drps_err *err);
uint64_t handing_limit_bytes(const struct handing *h);

/* Make h->fates. */
DRPS_MUST_CHECK
int handing_resolve(struct handing *h, struct drps_err *err);

/* ---- Records ---- */

/* Get the fates of the round that was read last. */
DRPS_MUST_CHECK
int handing_fates(struct handing *h, uint64_t round, const struct handing_fate **out,
                  struct drps_err *err);

/* Writes a rank's records of training rounds; the round's uses were read, and its fates. */
struct handing_side {
    struct handing *h;
    uint32_t rank;
    struct drps_plan_handed *counts;
    const struct handing_fate *fates;
    struct drps_recwriter *out;
    unsigned char *packed; /* own */
    size_t packed_cap;
};

static inline int handing_add_record(struct handing_side *side, size_t bytes, struct drps_err *err)
{
    const struct drps_piece piece = {side->packed, bytes};
    return drps_recwriter_add(side->out, &piece, 1, err);
}

/* write_worker.c */
struct handing_worker;
DRPS_MUST_CHECK
int handing_worker_new(struct handing_side *side, struct handing_worker **out,
                       struct drps_err *err);
DRPS_MUST_CHECK
int handing_worker_round(struct handing_worker *w, struct drps_err *err);
void handing_worker_free(struct handing_worker *w);

/* write_server.c */
DRPS_MUST_CHECK
int handing_server_round(struct handing_side *side, struct drps_err *err);

#endif
