/*
 * Rows that no rank has trained yet: in the first epoch of a run that begins anew their parameters
 * follow from their placed ids, so they need not travel. A message of n rows that leaves them out
 * is
 *
 *   marks    a bit for each row, in whole u64: 1: it is fresh
 *   ids      u32 placed id of each fresh row; none for models whose rows all begin as zeros but
 *            for those that all batches have (drps_model_random()): these are never left out
 *   values   those of each other row: [dim] float32, or as short as published rows are sent
 *
 * A server knows which rows are fresh: it has stepped none of them. It leaves them out of a message
 * where that makes the message shorter. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FRESH_H
#define DRPS_ENGINE_CLUSTER_FRESH_H

#include <string.h>

#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"

/* ---- The server ---- */

struct drps_fresh; /* opaque: a bit for each row of the server */

/* `slots`: unions list slots, so that ids are read from the plan. Borrows both until close. */
DRPS_MUST_CHECK
int drps_fresh_open(const struct drps_plan *part, const struct drps_server *server, int slots,
                    struct drps_fresh **out, struct drps_err *err);
void drps_fresh_close(struct drps_fresh *f); /* NULL-safe */

/* The row numbers of round t's union to ids_out [u->n]. DRPS_E_CORRUPT: they are not this server's.
 */
DRPS_MUST_CHECK
int drps_fresh_list(struct drps_fresh *f, uint64_t t, const struct drps_feed_union *u,
                    uint32_t *ids_out, struct drps_err *err);

/* These rows are stepped. */
void drps_fresh_step(struct drps_fresh *f, const uint32_t *ids, size_t n);

/*
 * Begin a message of rows ids [*n], whose frames are index [*n], of row_bytes each: write what
 * comes before its values to data, and keep of index those whose values follow, *n of them. Returns
 * the bytes written, or 0 where the message is to have all rows.
 */
size_t drps_fresh_pack(const struct drps_fresh *f, const uint32_t *ids, uint32_t *index, size_t *n,
                       size_t row_bytes, unsigned char *data);

/* ---- The worker ---- */

/* The rows of a message, one after another. */
struct drps_fresh_reader {
    const struct drps_model *model;
    const unsigned char *marks, *ids, *values; /* marks NULL: it has all rows */
    size_t row, row_bytes, head_bytes;
    size_t made; /* rows that it leaves out */
};

/* Returns 0, or -1 where the bytes do not fit a message of `rows` rows of row_bytes each, which are
 * left out if `packed` is not 0. */
DRPS_MUST_CHECK
int drps_fresh_read(const struct drps_model *model, const void *data, size_t bytes, size_t rows,
                    size_t row_bytes, int packed, struct drps_fresh_reader *out);

/* The parameters of a row that is left out to `to` [dim]: as drps_server_fresh() has them. */
void drps_fresh_make(struct drps_fresh_reader *reader, char *to);

/* Returns the next row's bytes; NULL: it is left out, and drps_fresh_make() makes it. */
static inline const unsigned char *drps_fresh_value(struct drps_fresh_reader *reader)
{
    const size_t i = reader->row++;
    const unsigned char *value = reader->values;
    if (reader->marks && reader->marks[i / 8] >> i % 8 & 1) return NULL;
    reader->values += reader->row_bytes;
    return value;
}

/* The next row's parameters to `to` [dim], of rows of float32. */
static inline void drps_fresh_next(struct drps_fresh_reader *reader, char *to)
{
    const unsigned char *value = drps_fresh_value(reader);
    if (value)
        memcpy(to, value, reader->row_bytes);
    else
        drps_fresh_make(reader, to);
}

#endif
