/* Rows of residual slots, in records of 64 KiB, or of one row if that has more. */
#include "engine/checkpoint/held.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { RECORD_BYTES = 1 << 16 };

static uint64_t record_rows(const struct drps_checkpoint_held *held)
{
    return held->row_bytes < RECORD_BYTES ? RECORD_BYTES / held->row_bytes : 1;
}

static uint64_t records(const struct drps_checkpoint_held *held)
{
    const uint64_t rows = record_rows(held);
    return held->slots / rows + (held->slots % rows != 0);
}

/* Bytes of record i. */
static size_t bytes_of(const struct drps_checkpoint_held *held, uint64_t i)
{
    const uint64_t rows = record_rows(held), left = held->slots - i * rows;
    return (size_t)(left < rows ? left : rows) * held->row_bytes;
}

int drps_held_write(const struct drps_io *io, const char *path,
                    const struct drps_checkpoint_held *held, const void *rows, struct drps_err *err)
{
    const char *at = rows;
    struct drps_recwriter *w;
    int rc = drps_recwriter_open(io, path, DRPS_KIND_CHECKPOINT_HELD, &w, err);
    for (uint64_t i = 0; i < records(held) && rc == 0; i++) {
        const struct drps_piece piece = {at, bytes_of(held, i)};
        rc = drps_recwriter_add(w, &piece, 1, err);
        at += piece.bytes;
    }
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    return rc;
}

static int check_records(const struct drps_recfile *f, const char *path,
                         const struct drps_checkpoint_held *held, struct drps_err *err)
{
    const uint64_t due = records(held);
    int fits = drps_recfile_count(f) == due;
    for (uint64_t i = 0; i < due && fits; i++)
        fits = drps_recfile_bytes(f, i) == bytes_of(held, i);
    if (fits) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s does not hold %" PRIu64 " slots of %zu bytes, which are due", path,
                        held->slots, held->row_bytes);
}

static int read_records(struct drps_recfile *f, const struct drps_io *io,
                        const struct drps_checkpoint_held *held, char *out, struct drps_err *err)
{
    const size_t most = bytes_of(held, 0);
    char *record = drps_array_new(most / 8 + 1, 8);
    int rc = record ? 0 : drps_err_set(err, -ENOMEM, "no memory for what was held back");
    for (uint64_t i = 0; i < records(held) && rc == 0; i++) {
        const size_t bytes = bytes_of(held, i);
        rc = drps_io_stopped(io, err);
        if (rc == 0) rc = drps_recfile_read(f, i, 1, record, err);
        if (rc == 0 && out) memcpy(out + i * most, record, bytes);
    }
    free(record);
    return rc;
}

int drps_held_read(const struct drps_io *io, const char *path,
                   const struct drps_checkpoint_held *held, void *rows_out, struct drps_err *err)
{
    struct drps_recfile *f;
    int rc = drps_recfile_open(io, path, DRPS_KIND_CHECKPOINT_HELD, &f, err);
    if (rc < 0) return rc;
    rc = check_records(f, path, held, err);
    if (rc == 0 && held->slots) rc = read_records(f, io, held, rows_out, err);
    drps_recfile_close(f);
    return rc;
}
