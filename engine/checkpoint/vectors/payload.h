/*
 * What a frame holds: a round as vectors, or as rows. docs/formats.md has the bytes.
 * Private to engine/checkpoint/vectors/.
 */
#ifndef DRPS_VECTORS_PAYLOAD_H
#define DRPS_VECTORS_PAYLOAD_H

#include "engine/checkpoint/vectors/drps_vector_log.h"

/* What lies before a batch, a round's batches, and a round's rows. */
enum { BATCH_HEAD_BYTES = 16, ROUND_HEAD_BYTES = 8, ROWS_HEAD_BYTES = 8 };

/* ---- Rows that a round changes ---- */

/* A set of rows: a bit for each. */
struct row_set {
    uint64_t rows, n; /* of the matrix, in the set */
    uint64_t *bits;   /* own */
};

int row_set_init(struct row_set *s, uint64_t rows); /* -ENOMEM, without a text */
void row_set_destroy(struct row_set *s);
/* The rows that the round's batches name, or all. */
void row_set_of(struct row_set *s, const struct drps_vector_round *round);

/* ---- Encoding ---- */

/* Write the payload to `at`, of drps_vector_log_bytes() or drps_vector_log_rows_bytes(). */
void payload_put_vectors(const struct drps_matrix_shape *shape,
                         const struct drps_vector_round *round, unsigned char *at);
void payload_put_rows(const struct drps_matrix_shape *shape, const struct row_set *set,
                      const void *matrix, unsigned char *at);

/* ---- Decoding ---- */

struct payload_round; /* opaque: room for what a payload of vectors becomes */

struct payload_round *payload_round_new(const struct drps_matrix_shape *shape);
void payload_round_free(struct payload_round *p); /* NULL-safe */

/* The payload (aligned to 4 bytes) as a round, borrowed until the next call and as long as the
 * payload is there. Returns 0, DRPS_E_CORRUPT with a text that says what is wrong, or -ENOMEM. */
DRPS_MUST_CHECK
int payload_get_vectors(struct payload_round *p, uint64_t number, const void *payload, size_t bytes,
                        const struct drps_vector_round **round_out, struct drps_err *err);

/* Put the payload's rows into the matrix; NULL: they are only checked. */
DRPS_MUST_CHECK
int payload_get_rows(const struct drps_matrix_shape *shape, const void *payload, size_t bytes,
                     void *matrix, struct drps_err *err);

#endif
