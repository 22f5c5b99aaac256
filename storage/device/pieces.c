/* The memory of pieces. */
#include "storage/device/pieces.h"

#include <string.h>

size_t pieces_rows(size_t row_bytes, uint64_t rows)
{
    const size_t most = row_bytes < PIECE_BYTES ? PIECE_BYTES / row_bytes : 1;
    return rows / PIECE_SHARE + 1 < most ? (size_t)(rows / PIECE_SHARE) + 1 : most;
}

uint64_t pieces_memory(size_t row_bytes, uint64_t rows)
{
    return (uint64_t)2 * PIECES * pieces_rows(row_bytes, rows) * row_bytes;
}

int pieces_open(struct drps_device_use *use, size_t row_bytes, uint64_t rows, struct pieces *out,
                struct drps_err *err)
{
    int rc = 0;
    memset(out, 0, sizeof(*out));
    out->rows = pieces_rows(row_bytes, rows);
    for (int i = 0; i < PIECES && rc == 0; i++) {
        void *memory = NULL;
        rc = DRPS_DEVICE_CALL(use, err, pin, out->rows * row_bytes, &memory);
        out->pinned[i] = memory;
    }
    return rc;
}

void pieces_close(struct drps_device_use *use, struct pieces *pieces)
{
    for (int i = 0; i < PIECES; i++)
        if (pieces->pinned[i]) use->ops->unpin(use->dev, pieces->pinned[i]);
    memset(pieces, 0, sizeof(*pieces));
}
