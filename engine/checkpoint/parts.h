/*
 * The rows of a checkpoint lie in parts, files of the folder "rows": part i has rows i * part_rows
 * and on, as records of record_rows rows. Here parts are written, or get the name of the part of an
 * earlier checkpoint, in which no row has changed since. Private to engine/checkpoint/.
 */
#ifndef DRPS_ENGINE_CHECKPOINT_PARTS_H
#define DRPS_ENGINE_CHECKPOINT_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

struct drps_parts_shape {
    uint64_t rows; /* may be 0: a rank may have none */
    size_t row_bytes;
    uint64_t record_rows; /* the last record of a part may have fewer */
    uint64_t part_rows;   /* a multiple of that; the last part may have fewer */
};

/* For so many rows, in parts of about part_bytes; 0: the usual size. */
void drps_parts_shape(uint64_t rows, size_t row_bytes, uint64_t part_bytes,
                      struct drps_parts_shape *out);

static inline uint64_t drps_parts_count(const struct drps_parts_shape *shape)
{
    return shape->rows / shape->part_rows + (shape->rows % shape->part_rows != 0);
}

/* The name of a part below the folder of a checkpoint, in a new string (free() it); NULL when
 * memory is gone. */
char *drps_part_path(const char *dir, uint64_t part);

struct drps_parts; /* opaque: parts that are written */

/* Make the folder of parts in `dir`. `before`: another checkpoint of the same shape, for parts
 * whose rows do not come; NULL: all come. Both are borrowed until drps_parts_close(). */
DRPS_MUST_CHECK
int drps_parts_begin(const struct drps_io *io, const char *dir, const char *before,
                     const struct drps_parts_shape *shape, struct drps_parts **p_out,
                     struct drps_err *err);

/* Rows of whole parts, in order. -EINVAL: there is a gap of another kind. -ENOENT: `before` lacks
 * a part. */
DRPS_MUST_CHECK
int drps_parts_add(struct drps_parts *p, uint64_t first, size_t n, const void *rows,
                   struct drps_err *err);

/* No more rows come: all parts are there, and synced, but for the folder's names. *bytes_out: of
 * the parts that were written. */
DRPS_MUST_CHECK
int drps_parts_finish(struct drps_parts *p, uint64_t *bytes_out, struct drps_err *err);
void drps_parts_close(struct drps_parts *p); /* NULL-safe */

#endif
