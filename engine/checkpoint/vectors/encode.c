/* Rounds as bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_endian.h"
#include "engine/checkpoint/vectors/payload.h"

/* ---- Rows that a round changes ---- */

static size_t words_of(uint64_t rows)
{
    return (size_t)(rows / 64 + 1);
}

int row_set_init(struct row_set *s, uint64_t rows)
{
    *s = (struct row_set){.rows = rows, .bits = calloc(words_of(rows), sizeof(uint64_t))};
    return s->bits ? 0 : -ENOMEM;
}

void row_set_destroy(struct row_set *s)
{
    free(s->bits);
    s->bits = NULL;
}

static int has_row(const struct row_set *s, uint64_t row)
{
    return s->bits[row / 64] >> row % 64 & 1;
}

static void add_row(struct row_set *s, uint64_t row)
{
    s->n += !has_row(s, row);
    s->bits[row / 64] |= UINT64_C(1) << row % 64;
}

void row_set_of(struct row_set *s, const struct drps_vector_round *round)
{
    memset(s->bits, 0, words_of(s->rows) * sizeof(*s->bits));
    s->n = 0;
    for (uint64_t row = 0; round->all_rows && row < s->rows; row++)
        add_row(s, row);
    for (uint32_t b = 0; b < round->n && s->n < s->rows; b++)
        for (uint32_t e = 0; e < round->batches[b].first[round->batches[b].n]; e++)
            add_row(s, round->batches[b].ids[e]);
}

/* ---- Sizes ---- */

/* Each x names all rows: their numbers need not be said. */
static int is_dense(const struct drps_matrix_shape *shape, const struct drps_vectors *v)
{
    return v->first[v->n] == v->n * shape->rows;
}

static uint64_t batch_bytes(const struct drps_matrix_shape *shape, const struct drps_vectors *v)
{
    const uint64_t entries = v->first[v->n], u = (uint64_t)v->n * v->dim;
    const uint64_t numbers = is_dense(shape, v) ? 0 : (uint64_t)v->n + 1 + entries;
    return BATCH_HEAD_BYTES + 4 * (u + numbers + entries);
}

uint64_t drps_vector_log_bytes(const struct drps_matrix_shape *shape,
                               const struct drps_vector_round *round)
{
    uint64_t bytes = ROUND_HEAD_BYTES;
    for (uint32_t b = 0; b < round->n; b++)
        bytes += batch_bytes(shape, &round->batches[b]);
    return bytes;
}

uint64_t drps_vector_log_rows_bytes(const struct drps_matrix_shape *shape, uint64_t rows)
{
    const uint64_t numbers = rows == shape->rows ? 0 : rows;
    return ROWS_HEAD_BYTES + 4 * numbers + rows * shape->row_bytes;
}

/* ---- Bytes ---- */

static unsigned char *put(unsigned char *at, const void *data, size_t bytes)
{
    if (bytes) memcpy(at, data, bytes);
    return at + bytes;
}

static unsigned char *put_batch(const struct drps_matrix_shape *shape, const struct drps_vectors *v,
                                uint32_t source, unsigned char *at)
{
    const size_t entries = v->first[v->n], n = v->n;
    drps_put_u32(at, source);
    drps_put_u32(at + 4, v->n);
    drps_put_u32(at + 8, v->first[v->n]);
    drps_put_u32(at + 12, (uint32_t)is_dense(shape, v));
    at = put(at + BATCH_HEAD_BYTES, v->u, n * v->dim * 4);
    if (!is_dense(shape, v)) {
        at = put(at, v->first, (n + 1) * 4);
        at = put(at, v->ids, entries * 4);
    }
    return put(at, v->values, entries * 4);
}

void payload_put_vectors(const struct drps_matrix_shape *shape,
                         const struct drps_vector_round *round, unsigned char *at)
{
    drps_put_u32(at, round->n);
    drps_put_u32(at + 4, 0);
    at += ROUND_HEAD_BYTES;
    for (uint32_t b = 0; b < round->n; b++)
        at = put_batch(shape, &round->batches[b], round->sources[b], at);
}

void payload_put_rows(const struct drps_matrix_shape *shape, const struct row_set *set,
                      const void *matrix, unsigned char *at)
{
    const char *rows = matrix;
    drps_put_u32(at, (uint32_t)set->n);
    drps_put_u32(at + 4, 0);
    at += ROWS_HEAD_BYTES;
    if (set->n == set->rows) {
        (void)put(at, rows, (size_t)set->rows * shape->row_bytes);
        return;
    }
    for (uint64_t row = 0; row < set->rows; row++) {
        if (!has_row(set, row)) continue;
        drps_put_u32(at, (uint32_t)row);
        at += 4;
    }
    for (uint64_t row = 0; row < set->rows; row++)
        if (has_row(set, row)) at = put(at, rows + row * shape->row_bytes, shape->row_bytes);
}
