/*
 * Which batches touch which rows: what block builders work on. Private to index/.
 *
 * A plain table in memory, row by row: 4 bytes an incidence (a row in a batch), 8 a row. Batches
 * are the steps of an epoch, evaluation included, as numbered in rows.rec. Rows are placed ids.
 */
#ifndef DRPS_INDEX_BLOCKS_ACCESS_H
#define DRPS_INDEX_BLOCKS_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

struct access {
    uint32_t rows, batches;
    uint64_t *start; /* own: [rows + 1] */
    uint32_t *batch; /* own: [start[rows]] of row r: batch[start[r] .. start[r + 1]), increasing */
};

/*
 * The incidences of batches [first, end) of dir/rows.rec; numbers of batches stay those of the
 * file, `batches` is that of the file. DRPS_E_MEMORY_BUDGET when they take more than memory_bytes.
 */
DRPS_MUST_CHECK
int access_load(const struct drps_io *io, const char *dir, uint32_t rows, uint32_t batches,
                uint32_t first, uint32_t end, uint64_t memory_bytes, struct access *a_out,
                struct drps_err *err);
void access_free(struct access *a);

static inline uint64_t access_bytes(const struct access *a)
{
    return a->start[a->rows] * sizeof(*a->batch) + (a->rows + 2ull) * sizeof(*a->start);
}

#endif
