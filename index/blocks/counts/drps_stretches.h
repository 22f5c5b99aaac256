/*
 * Merging for a store that keeps blocks for a while. Shared inside index/.
 *
 * Eq. 1 counts a block anew for every batch. A pool reads it once for all batches during which it
 * stays, so rows belong together also when neighbouring batches use them, not the same one. So
 * stretches of 8 and of 32 batches are listed as if they were batches too: the same merging then
 * lowers Eq. 1 and what pools read (bench/RESULTS.md).
 */
#ifndef DRPS_INDEX_BLOCKS_COUNTS_STRETCHES_H
#define DRPS_INDEX_BLOCKS_COUNTS_STRETCHES_H

#include "base/drps_err.h"
#include "index/blocks/counts/drps_access.h"

/* A row's list gets at most so many times the incidences that it had. */
enum { STRETCHES_MOST = 3 };

/* The lists of `a`, each followed by the stretches in which it has a batch, numbered from
 * a->batches on: first all of 8 batches, then those of 32. */
DRPS_MUST_CHECK
int drps_stretches_add(const struct access *a, struct access *out, struct drps_err *err);

#endif
