/* What encoding, decoding, packing and unpacking of body records share. Private to
 * index/plan/body/.
 */
#ifndef DRPS_INDEX_PLAN_BODY_BODY_H
#define DRPS_INDEX_PLAN_BODY_BODY_H

#include "base/drps_endian.h"
#include "index/plan/drps_batch.h"

/* Head, 32 bytes: samples u32 | rows u32 | nnz u64 | flags u32 | per_sample u32 | stratum u32 |
 * lane u32. */
enum {
    BODY_FLAGS = DRPS_BATCH_WIDE | DRPS_BATCH_VALUES | DRPS_BATCH_UNIFORM | DRPS_BATCH_FIELDS |
                 DRPS_BATCH_WEIGHTS | DRPS_BATCH_NUMBERS,
    BODY_HANDS = DRPS_DEPARTS | DRPS_ARRIVES,
    BODY_HAND_FLAGS =
        BODY_HANDS | DRPS_HANDS_LAST | DRPS_HANDS_PARAMETERS, /* of plain bodies alone */
    BODY_FLAGS_AT = 16,
    BODY_DIAGONAL_AT = 24
};

/* Fields begin with 8 bytes: how many there are u32 | of what they are u32, in a plain body of
 * entries. Then, 16 bits each, or 8 in a packed body of at most 256 fields: */
enum { BODY_FIELDS_HEAD = 8, BODY_FIELDS_NARROW = 256, BODY_FIELDS_MOST = 65535 };
enum body_fields { BODY_FIELDS_OF_ENTRIES, BODY_FIELDS_OF_ROWS };

static inline size_t body_numbers(const struct drps_batch *b)
{
    return b->samples * (size_t)b->numbers.each;
}

/* ---- Sections that are written; each is padded to 8 bytes ---- */

void drps_body_add_piece(struct drps_batch_pieces *out, const void *data, size_t bytes);

/* Begins *out with a head of these flags; drps_body_flags() has those of a plain body. */
void drps_body_add_head(struct drps_batch_pieces *out, const struct drps_batch *b, uint32_t flags);
uint32_t drps_body_flags(const struct drps_batch *b);

/* Adds weights and starts, if there are any: the sections between labels and values, which are the
 * same in a packed body. */
void drps_body_add_middle(struct drps_batch_pieces *out, const struct drps_batch *b);
void drps_body_add_fields(struct drps_batch_pieces *out, uint32_t count, enum body_fields of,
                          const void *fields, size_t bytes);
void drps_body_add_local(struct drps_batch_pieces *out, const struct drps_batch *b);

/* Adds numbers as they are, with zeros. */
void drps_body_add_numbers(struct drps_batch_pieces *out, const struct drps_batch *b);

/* ---- Sections that are read; inlined, since loops over entries follow ---- */

/* The next section of a record, or NULL when it would leave it. */
static inline const void *body_section(const char *record, size_t bytes, size_t *at, uint64_t n,
                                       size_t size)
{
    if (n > bytes / size || drps_align_up((size_t)n * size, 8) > bytes - *at) return NULL;
    const char *start = record + *at;
    *at += drps_align_up((size_t)n * size, 8);
    return start;
}

static inline uint32_t body_largest(const uint16_t *numbers, size_t n)
{
    uint32_t most = 0;
    for (size_t j = 0; j < n; j++)
        most = numbers[j] > most ? numbers[j] : most;
    return most;
}

#endif
