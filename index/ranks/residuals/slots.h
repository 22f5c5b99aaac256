/*
 * What the files share that make residual slots: rows.c finds the rows of a worker's batches,
 * keep.c decides which of them keep a slot until their next use where there are too few, slots.c
 * writes the records. Private to index/ranks/residuals/.
 */
#ifndef DRPS_INDEX_RANKS_RESIDUALS_SLOTS_H
#define DRPS_INDEX_RANKS_RESIDUALS_SLOTS_H

#include "index/plan/drps_steps.h"
#include "index/ranks/residuals/drps_residual_slots.h"

struct slotting {
    const struct split_job *job;
    uint32_t rank, all; /* rows of the plan */
    uint64_t rounds;
    struct steps *lists;
    uint32_t *remote; /* own: [n] rows of the round's batch that other servers have */
    size_t n, cap;
    uint64_t uses;  /* sum of n over all rounds */
    uint32_t *last; /* own: [all] the round that uses the row last */
    uint32_t *slot; /* own: [all] */
    uint64_t slots;
    uint64_t *keeps; /* own: a bit a use, in order: the row keeps its slot until its next one;
                        NULL: each row keeps it until its last use */
};

/* The rows of the worker's batch of a round that other servers have, to remote[0 .. n). */
DRPS_MUST_CHECK
int residual_rows(struct slotting *s, uint64_t round, struct drps_err *err);

/* Make `keeps`, so that at most s->slots rows have a slot at a time. `to` is for a scratch file. */
DRPS_MUST_CHECK
int residual_keep(struct slotting *s, const char *to, struct drps_err *err);

/* Bytes that residual_keep() takes. */
uint64_t residual_keep_bytes(const struct slotting *s);

#endif
