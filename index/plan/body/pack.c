/* Packed body records: labels, values, fields, indices and numbers in fewer bytes, or all entries
 * as a matrix. */
#include <string.h>

#include "index/plan/body/body.h"
#include "index/plan/codec/drps_levels.h"
#include "index/plan/codec/drps_matrix.h"
#include "index/plan/codec/drps_pack16.h"

/* 1: numbers take less without those that are 0. */
static int leaves_out(const struct drps_batch *b)
{
    return b->numbers.each && drps_dense_packed_bytes(&b->numbers, body_numbers(b)) <
                                  drps_dense_plain_bytes(&b->numbers, body_numbers(b));
}

size_t drps_batch_pack_bound(const struct drps_batch *b, int levels)
{
    const size_t fields = b->nnz > b->rows ? b->nnz : b->rows;
    return b->samples / 8 + 8 + (levels && b->values ? drps_levels_bound(b->nnz) + 8 : 0) +
           (b->fields ? BODY_FIELDS_HEAD + fields * sizeof(*b->fields) : 0) +
           drps_pack16_bound(b->nnz) +
           (leaves_out(b) ? drps_dense_packed_bytes(&b->numbers, body_numbers(b)) + 8 : 0);
}

static int labels_are_signs(const struct drps_batch *b)
{
    for (size_t s = 0; s < b->samples; s++)
        if (b->labels[s] != 1 && b->labels[s] != -1) return 0;
    return 1;
}

static size_t pack_signs(const struct drps_batch *b, unsigned char *out)
{
    const size_t bytes = (b->samples + 7) / 8;
    memset(out, 0, bytes);
    for (size_t s = 0; s < b->samples; s++)
        out[s / 8] |= (unsigned char)((b->labels[s] > 0) << s % 8);
    return bytes;
}

/* Each row's field to rows [b->rows]; 0: one has several. */
static int fields_of_rows(const struct drps_batch *b, uint16_t *rows)
{
    uint16_t differ = 0;
    memset(rows, 0, b->rows * sizeof(*rows));
    for (size_t j = 0; j < b->nnz; j++)
        rows[drps_batch_local(b, j)] = b->fields[j];
    for (size_t j = 0; j < b->nnz; j++)
        differ |= rows[drps_batch_local(b, j)] ^ b->fields[j];
    return !differ;
}

/* Pack the fields to `at`, aligned to 8 bytes. Returns how many bytes they take there. */
static size_t pack_fields(const struct drps_batch *b, unsigned char *at,
                          struct drps_batch_pieces *out)
{
    uint16_t *fields = (uint16_t *)(void *)at;
    const int of_rows = fields_of_rows(b, fields);
    const size_t n = of_rows ? b->rows : b->nnz;
    const size_t each = b->field_count <= BODY_FIELDS_NARROW ? 1 : sizeof(*fields);
    if (!of_rows && n) memcpy(fields, b->fields, n * sizeof(*fields));
    for (size_t i = 0; each == 1 && i < n; i++)
        at[i] = (unsigned char)fields[i]; /* behind what is still read */
    drps_body_add_fields(out, b->field_count,
                         of_rows ? BODY_FIELDS_OF_ROWS : BODY_FIELDS_OF_ENTRIES, at, n * each);
    return n * each;
}

/* Returns `at`, filled up to 8 bytes from `room`. */
static unsigned char *aligned(void *room, unsigned char *at)
{
    return (unsigned char *)room + drps_align_up((size_t)(at - (unsigned char *)room), 8);
}

void drps_batch_pack(const struct drps_batch *b, int levels, void *room,
                     struct drps_batch_pieces *out)
{
    unsigned char *at = room;
    const int signs = labels_are_signs(b);
    const size_t values = levels && b->values ? drps_levels_encode(b->values, b->nnz, at) : 0;
    const unsigned char *packed = at;
    if (values) at = aligned(room, at + values);
    drps_body_add_head(out, b,
                       drps_body_flags(b) | DRPS_BATCH_PACKED | (signs ? DRPS_BATCH_SIGNS : 0u) |
                           (values ? DRPS_BATCH_LEVELS : 0u));
    if (signs) {
        const size_t bytes = pack_signs(b, at);
        drps_body_add_piece(out, at, bytes);
        at += bytes;
    } else {
        drps_body_add_piece(out, b->labels, b->samples * sizeof(*b->labels));
    }
    drps_body_add_middle(out, b);
    if (values)
        drps_body_add_piece(out, packed, values);
    else if (b->values)
        drps_body_add_piece(out, b->values, b->nnz * sizeof(*b->values));
    if (b->fields) {
        at = aligned(room, at);
        at += pack_fields(b, at, out);
    }
    if (b->local32) {
        drps_body_add_local(out, b);
    } else {
        const size_t bytes = drps_pack16_encode(b->local16, b->nnz, at);
        drps_body_add_piece(out, at, bytes);
        at += bytes;
    }
    if (leaves_out(b)) {
        at = aligned(room, at);
        drps_body_add_piece(out, at, drps_dense_pack(&b->numbers, body_numbers(b), at));
    } else if (b->numbers.each) {
        drps_body_add_numbers(out, b);
    }
}

/* Returns the shape of the matrix: it has all rows, but for the first one if no entry has it. */
static struct drps_matrix_shape shape_of(const struct drps_batch *b)
{
    struct drps_matrix_shape shape = {
        .samples = b->samples, .columns = b->rows, .nnz = b->nnz, .first = 1};
    for (size_t j = 0; shape.first && j < b->nnz; j++)
        shape.first = b->local16[j] != 0;
    shape.columns -= shape.first;
    return shape;
}

size_t drps_batch_matrix_bound(const struct drps_batch *b)
{
    if (!b->values || !b->local16 || b->fields || b->numbers.each || !b->rows || !b->nnz) return 0;
    const struct drps_matrix_shape shape = shape_of(b);
    const size_t bytes = shape.samples * shape.columns * sizeof(*b->values); /* below 2^50 */
    const size_t plain = b->nnz * (sizeof(*b->values) + sizeof(*b->local16)) +
                         (b->starts ? (b->samples + 1) * sizeof(*b->starts) : 0);
    return bytes < plain ? drps_align_up(b->samples / 8 + 1, 8) + bytes : 0;
}

int drps_batch_pack_matrix(const struct drps_batch *b, void *room, struct drps_batch_pieces *out)
{
    const struct drps_matrix_shape shape = shape_of(b);
    const int signs = labels_are_signs(b);
    const size_t before = signs ? drps_align_up((b->samples + 7) / 8, 8) : 0;
    float *matrix = (float *)(void *)((unsigned char *)room + before);
    if (!drps_matrix_encode(&shape, b->starts, b->per_sample, b->local16, b->values, matrix))
        return 0;
    drps_body_add_head(out, b,
                       drps_body_flags(b) | DRPS_BATCH_PACKED | DRPS_BATCH_MATRIX |
                           (shape.first ? DRPS_BATCH_MATRIX_AFTER : 0u) |
                           (signs ? DRPS_BATCH_SIGNS : 0u));
    if (signs)
        drps_body_add_piece(out, room, pack_signs(b, room));
    else
        drps_body_add_piece(out, b->labels, b->samples * sizeof(*b->labels));
    if (b->weights) drps_body_add_piece(out, b->weights, b->samples * sizeof(*b->weights));
    drps_body_add_piece(out, matrix, shape.samples * shape.columns * sizeof(*matrix));
    return 1;
}
