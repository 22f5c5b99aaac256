/* Plain body records: see drps_batch.h. Layout: head, labels, weights if any, starts unless
 * uniform, values and fields if any, local indices, numbers by place if any. */
#include <string.h>

#include "index/plan/body/body.h"

void drps_body_add_piece(struct drps_batch_pieces *out, const void *data, size_t bytes)
{
    static const char zeros[8];
    out->pieces[out->n++] = (struct drps_piece){data, bytes};
    size_t pad = drps_align_up(bytes, 8) - bytes;
    if (pad) out->pieces[out->n++] = (struct drps_piece){zeros, pad};
}

uint32_t drps_body_flags(const struct drps_batch *b)
{
    return (b->local32 ? DRPS_BATCH_WIDE : 0u) | (b->values ? DRPS_BATCH_VALUES : 0u) |
           (b->starts ? 0u : DRPS_BATCH_UNIFORM) | (b->fields ? DRPS_BATCH_FIELDS : 0u) |
           (b->weights ? DRPS_BATCH_WEIGHTS : 0u) | (b->numbers.each ? DRPS_BATCH_NUMBERS : 0u) |
           b->hand_over;
}

void drps_body_add_head(struct drps_batch_pieces *out, const struct drps_batch *b, uint32_t flags)
{
    memset(out->head, 0, sizeof(out->head));
    out->n = 0;
    drps_put_u32(out->head, (uint32_t)b->samples);
    drps_put_u32(out->head + 4, (uint32_t)b->rows);
    drps_put_u64(out->head + 8, b->nnz);
    drps_put_u32(out->head + BODY_FLAGS_AT, flags);
    drps_put_u32(out->head + 20, b->per_sample);
    drps_put_u32(out->head + BODY_DIAGONAL_AT, b->stratum);
    drps_put_u32(out->head + BODY_DIAGONAL_AT + 4, b->lane);
    drps_body_add_piece(out, out->head, DRPS_BATCH_HEAD_BYTES);
}

void drps_body_add_middle(struct drps_batch_pieces *out, const struct drps_batch *b)
{
    if (b->weights) drps_body_add_piece(out, b->weights, b->samples * sizeof(*b->weights));
    if (b->starts) drps_body_add_piece(out, b->starts, (b->samples + 1) * sizeof(*b->starts));
}

void drps_body_add_fields(struct drps_batch_pieces *out, uint32_t count, enum body_fields of,
                          const void *fields, size_t bytes)
{
    drps_put_u32(out->fields_head, count);
    drps_put_u32(out->fields_head + 4, of);
    drps_body_add_piece(out, out->fields_head, BODY_FIELDS_HEAD);
    drps_body_add_piece(out, fields, bytes);
}

void drps_body_add_numbers(struct drps_batch_pieces *out, const struct drps_batch *b)
{
    const struct drps_dense *d = &b->numbers;
    drps_body_add_piece(out, out->numbers_front, drps_dense_front(d, 0, out->numbers_front));
    if (d->floats)
        drps_body_add_piece(out, d->floats, body_numbers(b) * sizeof(*d->floats));
    else
        drps_body_add_piece(out, d->bytes, body_numbers(b));
}

void drps_body_add_local(struct drps_batch_pieces *out, const struct drps_batch *b)
{
    if (b->local32)
        drps_body_add_piece(out, b->local32, b->nnz * sizeof(*b->local32));
    else
        drps_body_add_piece(out, b->local16, b->nnz * sizeof(*b->local16));
}

void drps_batch_pieces_own(const struct drps_batch_pieces *from, struct drps_batch_pieces *out)
{
    out->pieces[0].data = out->head;
    for (size_t i = 1; i < out->n; i++) {
        if (out->pieces[i].data == from->fields_head) out->pieces[i].data = out->fields_head;
        if (out->pieces[i].data == from->numbers_front) out->pieces[i].data = out->numbers_front;
    }
}

void drps_batch_encode(const struct drps_batch *b, struct drps_batch_pieces *out)
{
    drps_body_add_head(out, b, drps_body_flags(b));
    drps_body_add_piece(out, b->labels, b->samples * sizeof(*b->labels));
    drps_body_add_middle(out, b);
    if (b->values) drps_body_add_piece(out, b->values, b->nnz * sizeof(*b->values));
    if (b->fields)
        drps_body_add_fields(out, b->field_count, BODY_FIELDS_OF_ENTRIES, b->fields,
                             b->nnz * sizeof(*b->fields));
    drps_body_add_local(out, b);
    if (b->numbers.each) drps_body_add_numbers(out, b);
}

/* Labels, weights and starts, values and wide indices: four bytes each; fields two; each section
 * padded. */
uint64_t drps_batch_plain_bound(uint64_t samples, uint64_t nnz, uint32_t numbers)
{
    enum { PADDED = 7 };
    return DRPS_BATCH_HEAD_BYTES + 4 * (3 * samples + 1) + 4 * (2 * nnz) + BODY_FIELDS_HEAD +
           2 * nnz + 6 * PADDED + (numbers ? drps_dense_bound(samples * numbers) : 0);
}
