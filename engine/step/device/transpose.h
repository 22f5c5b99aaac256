/* A batch's entries in the order of its rows, as a device steps them. Private to
 * engine/step/device/. */
#ifndef DRPS_ENGINE_STEP_DEVICE_TRANSPOSE_H
#define DRPS_ENGINE_STEP_DEVICE_TRANSPOSE_H

#include "device/drps_device.h"
#include "index/plan/drps_batch.h"

/* What is made, in the caller's arrays. */
struct transposed {
    uint32_t *ends;    /* [rows + 2] row r has ends[r] to ends[r + 1]; the last is room alone */
    uint32_t *samples; /* [entries] */
    uint32_t *entries; /* [entries], or NULL: not wanted */
    float *values;     /* [entries], or NULL: all are 1 */
    struct drps_device_piece *pieces;       /* [transposed_pieces_most()] */
    struct drps_device_long_row *long_rows; /* [transposed_long_most()] */
    uint32_t n_pieces, n_long;
};

/* Entries of one row stay in the order of samples. */
void transpose(const struct drps_batch *batch, struct transposed *t);

/* How many long rows, and pieces of them, a batch of so many entries has at most. */
static inline size_t transposed_long_most(size_t entries)
{
    return entries / (DRPS_DEVICE_LONG + 1);
}
static inline size_t transposed_pieces_most(size_t entries)
{
    return entries / DRPS_DEVICE_PIECE + transposed_long_most(entries);
}

#endif
