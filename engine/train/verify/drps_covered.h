/* What a run could go on from: the checkpoints of a folder, and the rounds of vectors that are
 * logged beside them. */
#ifndef DRPS_ENGINE_TRAIN_COVERED_H
#define DRPS_ENGINE_TRAIN_COVERED_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

/* Of a rank. */
struct drps_covered {
    uint32_t rank;
    uint64_t checkpoints, newest; /* how many, and the number of the newest */
    uint64_t epoch, step; /* the newest: the epoch under way, and its batches that are done */
    int logged;           /* 1: vectors are logged: */
    uint64_t first, last; /* rounds that can be gone on from, where no log is damaged */
    uint64_t log_bytes;   /* of all its logs */
};

/* Returns 0, or a code that ends the listing, with err set. */
typedef int (*drps_covered_visit)(void *ctx, const struct drps_covered *rank, struct drps_err *err);

/*
 * Visit each rank below `root`, the folder MODEL.checkpoint, that has checkpoints; logs are read
 * and checked, rows are not. DRPS_E_NOT_FOUND: nobody has. DRPS_E_CORRUPT names what is damaged.
 * DRPS_E_INTERRUPTED by io->stop.
 */
DRPS_MUST_CHECK
int drps_checkpoints_covered(const struct drps_io *io, const char *root, drps_covered_visit visit,
                             void *ctx, struct drps_err *err);

/* The ranks that the folder may have: one more than the largest number of a "rank-R". */
DRPS_MUST_CHECK
int drps_checkpoints_ranks(const char *root, uint32_t *n_out, struct drps_err *err);

#endif
