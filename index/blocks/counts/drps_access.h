/*
 * Which batches touch which rows: what block builders work on. Shared inside index/.
 *
 * A plain table in memory, row by row: 4 bytes an incidence (a row in a batch), 8 a row. Batches
 * are the steps of an epoch, evaluation included, as numbered in rows.rec. Rows are placed ids.
 */
#ifndef DRPS_INDEX_BLOCKS_COUNTS_ACCESS_H
#define DRPS_INDEX_BLOCKS_COUNTS_ACCESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

/* Where accesses come from, and how they are counted. Everything is borrowed. */
struct access_source {
    const struct drps_io *io;
    const char *dir;        /* of rows.rec, */
    uint32_t rows, batches; /* which has lists of so many batches */
    double share;           /* p: share of the batches that is counted, see drps_counts_open() */
    uint64_t seed;          /* of that share */
    uint64_t memory_bytes;  /* of the accesses, all shards together */
    const atomic_int *stop; /* once it is not 0, whoever counts returns DRPS_E_INTERRUPTED within a
                               fraction of a second; NULL: never */
};

static inline int access_stopped(const atomic_int *stop, struct drps_err *err)
{
    if (!stop || !atomic_load_explicit(stop, memory_order_relaxed)) return 0;
    return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted while accesses were counted");
}

struct access {
    uint32_t rows, batches;
    uint64_t *start; /* own: [rows + 1] */
    uint32_t *batch; /* own: [start[rows]] of row r: batch[start[r] .. start[r + 1]), increasing */
};

/*
 * The incidences of batches [first, end); numbers of batches stay those of the file, `batches` is
 * that of the file. All of them, whatever the share. DRPS_E_MEMORY_BUDGET when they take more than
 * from->memory_bytes.
 */
DRPS_MUST_CHECK
int drps_access_load(const struct access_source *from, uint32_t first, uint32_t end,
                     struct access *a_out, struct drps_err *err);
void drps_access_free(struct access *a);

/* Make room for n incidences of so many rows, whose start[] is all 0; the caller's to
 * drps_access_free() in any case. DRPS_E_MEMORY_BUDGET when it takes more than memory_bytes. */
DRPS_MUST_CHECK
int drps_access_new(uint32_t rows, uint32_t batches, uint64_t n, uint64_t memory_bytes,
                    struct access *a_out, struct drps_err *err);

static inline uint64_t access_bytes(const struct access *a)
{
    return a->start[a->rows] * sizeof(*a->batch) + (a->rows + 2ull) * sizeof(*a->start);
}

#endif
