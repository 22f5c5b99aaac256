/*
 * Splitting a plan's batches and rows by rank: batch k of the training batches is worker k mod N's
 * in round k / N, evaluation batches are split in the same way, and each server's step is the
 * round. Lists by rank are of all ranks: those of one without rows, or without samples, are empty.
 * Private to index/.
 *
 * So the batches of a round are, together, one batch N times as large of a plan for one worker.
 */
#ifndef DRPS_INDEX_RANKS_SPLIT_H
#define DRPS_INDEX_RANKS_SPLIT_H

#include "index/ranks/drps_owners.h"

struct split_job {
    const struct drps_io *io;
    const char *from;                    /* folder of data.rec and rows.rec, all batches */
    uint64_t batches, eval_batches;      /* in them */
    const struct owners *owners;         /* first[] goes on for ranks without rows */
    const struct drps_plan_ranks *ranks; /* how many, and which have samples */
    int numbers; /* 1: of the rows of the worker's batches their numbers are written, too */
    uint64_t memory_bytes;
    uint64_t *batch_rows; /* the rank's rows of its training batches are added, remote or not */
    uint64_t *fresh_rows; /* of its server's rows those that workers of other ranks pull in the
                             first training round that has them are added */
};

/* Returns how many rounds so many batches of N workers take. */
static inline uint64_t split_rounds(uint64_t batches, uint32_t workers)
{
    return (batches + workers - 1) / workers;
}

/*
 * Write data.rec, rows.rec, shares.rec, positions.rec, and numbers.rec if there is to be one, of
 * one rank to the folder `to`, and fill in out: rank, first_row and what was counted. Memory: four
 * buffers of writers, and 24 bytes for each row of each batch of the largest round, and a bit for
 * each row.
 */
DRPS_MUST_CHECK
int drps_split_rank(const struct split_job *job, uint32_t rank, const char *to,
                    struct drps_plan_ranks *out, struct drps_err *err);

#endif
