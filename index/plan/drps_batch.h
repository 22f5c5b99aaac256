/*
 * Batch records: one mini-batch of samples as the plan stores it.
 *
 * A batch is two records with the same number: its *row list* (rows.rec: the sorted placed ids of
 * the distinct rows it touches) and its *body* (data.rec: labels and, per entry, a batch-local
 * index into that list). A plain body is used in place; bodies on disk are mostly packed, and
 * unpacked when they are read. docs/formats.md has the byte tables.
 */
#ifndef DRPS_INDEX_PLAN_BATCH_H
#define DRPS_INDEX_PLAN_BATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_checksum.h"
#include "base/drps_err.h"
#include "index/plan/codec/drps_dense.h"
#include "index/plan/codec/drps_list.h"

/*
 * A step without samples hands rows over between ranks: rows of one range depart to the rank before
 * this one, or arrive from the rank after it (index/ranks/drps_circulation.h). Its row list begins
 * with the intercept, as all lists do, which is not handed over.
 */
enum drps_hand_over {
    DRPS_DEPARTS = 32,
    DRPS_ARRIVES = 64,
    DRPS_HANDS_LAST = 128,       /* with one of the two before: the range ends with this step */
    DRPS_HANDS_PARAMETERS = 256, /* with one of them: without the optimizer's state */
};

/* One batch, decoded; all pointers borrowed. */
struct drps_batch {
    size_t samples; /* n */
    size_t rows;    /* m: distinct rows, the intercept included */
    size_t nnz;
    const float *labels;    /* [n] */
    const float *weights;   /* [n], finite and above 0, or NULL: all 1 */
    const uint32_t *starts; /* [n + 1], or NULL when every sample has `per_sample` entries */
    uint32_t per_sample;
    const uint16_t *local16; /* [nnz] when m <= 65536, else NULL */
    const uint32_t *local32; /* [nnz] otherwise */
    /* 1 or 2: entry k of each sample has row dense - 1 + k, up to the last row, so that the values
     * are a matrix [samples][per_sample]. 0: that is not so, or not looked for. */
    uint32_t dense;
    const float *values;       /* [nnz], or NULL: all 1 */
    const uint16_t *fields;    /* [nnz] each below field_count; NULL: entries have none */
    uint32_t field_count;      /* 0 where entries have none */
    struct drps_dense numbers; /* of each sample, known by their place; `each` 0: there are none */
    uint32_t stratum, lane; /* batches of one stratum, not 0, and different lanes share no row but
                             the intercept's; they follow on each other */
    uint32_t hand_over;     /* of drps_hand_over; 0: the step is a batch */
};

static inline size_t drps_batch_start(const struct drps_batch *b, size_t s)
{
    return b->starts ? b->starts[s] : s * b->per_sample;
}

/* Returns the index of an entry in the row list, and its value. */
static inline size_t drps_batch_local(const struct drps_batch *b, size_t entry)
{
    return b->local32 ? b->local32[entry] : b->local16[entry];
}
static inline float drps_batch_value(const struct drps_batch *b, size_t entry)
{
    return b->values ? b->values[entry] : 1.0f;
}

/* Returns the index of a sample's own row, which its entry of value 0 has; b->rows: it has none.
 * See drps_algorithm_has_sample_rows(). */
static inline size_t drps_batch_sample_row(const struct drps_batch *b, size_t sample)
{
    const size_t end = drps_batch_start(b, sample + 1);
    for (size_t j = drps_batch_start(b, sample); j < end; j++)
        if (drps_batch_value(b, j) == 0) return drps_batch_local(b, j);
    return b->rows;
}

/* Head of a body record, 32 bytes, then labels, weights, starts, values, fields, local indices,
 * numbers by place (codec/drps_dense.h), each padded to 8 bytes. */
enum { DRPS_BATCH_HEAD_BYTES = 32, DRPS_BATCH_LANES = 16 };
enum {
    DRPS_BATCH_WIDE = 1,
    DRPS_BATCH_VALUES = 2,
    DRPS_BATCH_UNIFORM = 4,
    DRPS_BATCH_PACKED = 8, /* not in a plain body */
    DRPS_BATCH_SIGNS = 16, /* of a packed one: labels are -1 or 1, a bit each */
    /* 32 to 256: drps_hand_over */
    DRPS_BATCH_FIELDS = 512,
    DRPS_BATCH_WEIGHTS = 1024, /* its samples have weights */
    /* In a packed body the entries are a matrix of all rows (codec/drps_matrix.h). */
    DRPS_BATCH_MATRIX = 2048,
    DRPS_BATCH_MATRIX_AFTER = 4096, /* set as well: a matrix of all rows but the first */
    DRPS_BATCH_LEVELS = 8192,       /* of a packed one: values are few (codec/drps_levels.h) */
    DRPS_BATCH_NUMBERS = 16384,     /* its samples have numbers by place */
};

/* The pieces of a body record: head filled from b's counts; the arrays are borrowed from b. */
enum { DRPS_BATCH_PIECES = 17 };
struct drps_batch_pieces {
    unsigned char head[DRPS_BATCH_HEAD_BYTES], fields_head[8], numbers_front[DRPS_DENSE_FRONT_MOST];
    struct drps_piece pieces[DRPS_BATCH_PIECES];
    size_t n;
};
void drps_batch_encode(const struct drps_batch *b, struct drps_batch_pieces *out);

/* No plain body of so many samples and entries, with weights, is larger, where a sample has
 * `numbers` of them by place. Both are below 2^48, and samples below 2^32 where there are numbers.
 */
uint64_t drps_batch_plain_bound(uint64_t samples, uint64_t nnz, uint32_t numbers);

/* Have all pieces that *out borrows from itself be those of its own, after it was copied from
 * *from. */
void drps_batch_pieces_own(const struct drps_batch_pieces *from, struct drps_batch_pieces *out);

/* Returns the stratum, and the lane, of a body record, packed or not, that is not decoded yet; 0 as
 * well where it has no head. */
uint32_t drps_batch_stratum(const void *record, size_t bytes);
uint32_t drps_batch_lane(const void *record, size_t bytes);

/* Copies the head of a body record without stratum and lane. */
void drps_batch_unmark(const void *record, char head_out[DRPS_BATCH_HEAD_BYTES]);
/* Returns what it hands over, of drps_hand_over. */
uint32_t drps_batch_hand_over(const void *record, size_t bytes);
/* Returns how many samples and entries the record of a batch says that it has; 0 if it is too
 * short. */
uint32_t drps_batch_samples(const void *record, size_t bytes);
uint64_t drps_batch_entries(const void *record, size_t bytes);

/* Point b into a body record (8-byte aligned). DRPS_E_CORRUPT when the counts do not fit its bytes
 * or an index is out of range. */
DRPS_MUST_CHECK
int drps_batch_decode(const void *record, size_t bytes, struct drps_batch *b, struct drps_err *err);

/*
 * Packed bodies: labels of -1 and 1 take a bit, local indices 6 to 18 bits (drps_pack16.h), and
 * fields a byte or two for each row, where no row has entries of two fields; with `levels` values
 * take 1 to 4 bits where there are few different ones. Numbers by place are left out where they are
 * 0, if that is smaller. All readers of data.rec unpack them; a plain body comes out as it is.
 */
size_t drps_batch_pack_bound(const struct drps_batch *b, int levels);
/* Encode as drps_batch_encode() does, packed, a batch of narrow indices or with numbers; `room` has
 * drps_batch_pack_bound() bytes and is borrowed, too. */
void drps_batch_pack(const struct drps_batch *b, int levels, void *room,
                     struct drps_batch_pieces *out);
/*
 * The same, its entries as a matrix. Returns 1, or 0 if an entry has the value 0. `room` has
 * drps_batch_matrix_bound() bytes: 0 where a matrix is no way to pack the batch, or would take more
 * than the plain body.
 */
size_t drps_batch_matrix_bound(const struct drps_batch *b);
int drps_batch_pack_matrix(const struct drps_batch *b, void *room, struct drps_batch_pieces *out);
/* 1: the record, packed or not, has its entries as a matrix. */
int drps_batch_is_matrix(const void *record, size_t bytes);
/* 1: the record, packed or not, has its values as numbers of a short list. */
int drps_batch_has_levels(const void *record, size_t bytes);
/*
 * Write the plain body of a record to `room`, which has room_bytes; both are 8-byte aligned.
 * plan.json has the size of the largest plain body as max_body_bytes. DRPS_E_CORRUPT when the
 * record's counts do not fit its bytes, an index is out of range, or the body leaves the room.
 */
DRPS_MUST_CHECK
int drps_batch_unpack(const void *record, size_t bytes, void *room, size_t room_bytes,
                      size_t *bytes_out, struct drps_err *err);
/* Decode what drps_batch_unpack() made, as drps_batch_decode() does, but for a check of the
 * indices. */
DRPS_MUST_CHECK
int drps_batch_decode_unpacked(const void *plain, size_t bytes, struct drps_batch *b,
                               struct drps_err *err);

#endif
