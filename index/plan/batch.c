/* Body records: see drps_batch.h. Layout: head, labels, weights if any, starts unless uniform,
 * values and fields if any, local indices, numbers by place if any. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "base/drps_endian.h"
#include "index/plan/codec/drps_levels.h"
#include "index/plan/codec/drps_matrix.h"
#include "index/plan/codec/drps_pack16.h"
#include "index/plan/drps_batch.h"

/* Head, 32 bytes: samples u32 | rows u32 | nnz u64 | flags u32 | per_sample u32 | stratum u32 |
 * lane u32. */
enum {
    FLAGS = DRPS_BATCH_WIDE | DRPS_BATCH_VALUES | DRPS_BATCH_UNIFORM | DRPS_BATCH_FIELDS |
            DRPS_BATCH_WEIGHTS | DRPS_BATCH_NUMBERS,
    HANDS = DRPS_DEPARTS | DRPS_ARRIVES,
    HAND_FLAGS = HANDS | DRPS_HANDS_LAST | DRPS_HANDS_PARAMETERS, /* of plain bodies alone */
    FLAGS_AT = 16,
    DIAGONAL_AT = 24
};

/* Fields begin with 8 bytes: how many there are u32 | of what they are u32, in a plain body of
 * entries. Then, 16 bits each, or 8 in a packed body of at most 256 fields: */
enum { FIELDS_HEAD_BYTES = 8, FIELDS_NARROW = 256, FIELDS_MOST = 65535 };
enum fields_of { FIELDS_OF_ENTRIES, FIELDS_OF_ROWS };

static void add_piece(struct drps_batch_pieces *out, const void *data, size_t bytes)
{
    static const char zeros[8];
    out->pieces[out->n++] = (struct drps_piece){data, bytes};
    size_t pad = drps_align_up(bytes, 8) - bytes;
    if (pad) out->pieces[out->n++] = (struct drps_piece){zeros, pad};
}

static uint32_t flags_of(const struct drps_batch *b)
{
    return (b->local32 ? DRPS_BATCH_WIDE : 0u) | (b->values ? DRPS_BATCH_VALUES : 0u) |
           (b->starts ? 0u : DRPS_BATCH_UNIFORM) | (b->fields ? DRPS_BATCH_FIELDS : 0u) |
           (b->weights ? DRPS_BATCH_WEIGHTS : 0u) | (b->numbers.each ? DRPS_BATCH_NUMBERS : 0u) |
           b->hand_over;
}

static void add_head(struct drps_batch_pieces *out, const struct drps_batch *b, uint32_t flags)
{
    memset(out->head, 0, sizeof(out->head));
    out->n = 0;
    drps_put_u32(out->head, (uint32_t)b->samples);
    drps_put_u32(out->head + 4, (uint32_t)b->rows);
    drps_put_u64(out->head + 8, b->nnz);
    drps_put_u32(out->head + 16, flags);
    drps_put_u32(out->head + 20, b->per_sample);
    drps_put_u32(out->head + DIAGONAL_AT, b->stratum);
    drps_put_u32(out->head + DIAGONAL_AT + 4, b->lane);
    add_piece(out, out->head, DRPS_BATCH_HEAD_BYTES);
}

/* The sections between labels and values, which are the same in a packed body. */
static void add_middle(struct drps_batch_pieces *out, const struct drps_batch *b)
{
    if (b->weights) add_piece(out, b->weights, b->samples * sizeof(*b->weights));
    if (b->starts) add_piece(out, b->starts, (b->samples + 1) * sizeof(*b->starts));
}

static void add_fields(struct drps_batch_pieces *out, uint32_t count, enum fields_of of,
                       const void *fields, size_t bytes)
{
    drps_put_u32(out->fields_head, count);
    drps_put_u32(out->fields_head + 4, of);
    add_piece(out, out->fields_head, FIELDS_HEAD_BYTES);
    add_piece(out, fields, bytes);
}

static size_t numbers_of(const struct drps_batch *b)
{
    return b->samples * (size_t)b->numbers.each;
}

/* Numbers as they are, with zeros. */
static void add_numbers(struct drps_batch_pieces *out, const struct drps_batch *b)
{
    const struct drps_dense *d = &b->numbers;
    add_piece(out, out->numbers_front, drps_dense_front(d, 0, out->numbers_front));
    if (d->floats)
        add_piece(out, d->floats, numbers_of(b) * sizeof(*d->floats));
    else
        add_piece(out, d->bytes, numbers_of(b));
}

void drps_batch_pieces_own(const struct drps_batch_pieces *from, struct drps_batch_pieces *out)
{
    out->pieces[0].data = out->head;
    for (size_t i = 1; i < out->n; i++) {
        if (out->pieces[i].data == from->fields_head) out->pieces[i].data = out->fields_head;
        if (out->pieces[i].data == from->numbers_front) out->pieces[i].data = out->numbers_front;
    }
}

static void add_local(struct drps_batch_pieces *out, const struct drps_batch *b)
{
    if (b->local32)
        add_piece(out, b->local32, b->nnz * sizeof(*b->local32));
    else
        add_piece(out, b->local16, b->nnz * sizeof(*b->local16));
}

void drps_batch_encode(const struct drps_batch *b, struct drps_batch_pieces *out)
{
    add_head(out, b, flags_of(b));
    add_piece(out, b->labels, b->samples * sizeof(*b->labels));
    add_middle(out, b);
    if (b->values) add_piece(out, b->values, b->nnz * sizeof(*b->values));
    if (b->fields)
        add_fields(out, b->field_count, FIELDS_OF_ENTRIES, b->fields, b->nnz * sizeof(*b->fields));
    add_local(out, b);
    if (b->numbers.each) add_numbers(out, b);
}

/* Labels, weights and starts, values and wide indices: four bytes each; fields two; each section
 * padded. */
uint64_t drps_batch_plain_bound(uint64_t samples, uint64_t nnz, uint32_t numbers)
{
    enum { PADDED = 7 };
    return DRPS_BATCH_HEAD_BYTES + 4 * (3 * samples + 1) + 4 * (2 * nnz) + FIELDS_HEAD_BYTES +
           2 * nnz + 6 * PADDED + (numbers ? drps_dense_bound(samples * numbers) : 0);
}

/* The next section of a record, or NULL when it would leave it. */
static const void *section(const char *record, size_t bytes, size_t *at, uint64_t n, size_t size)
{
    if (n > bytes / size || drps_align_up((size_t)n * size, 8) > bytes - *at) return NULL;
    const char *start = record + *at;
    *at += drps_align_up((size_t)n * size, 8);
    return start;
}

static uint32_t largest(const uint16_t *numbers, size_t n)
{
    uint32_t most = 0;
    for (size_t j = 0; j < n; j++)
        most = numbers[j] > most ? numbers[j] : most;
    return most;
}

static int indices_fit(const struct drps_batch *b)
{
    uint32_t most = b->local16 ? largest(b->local16, b->nnz) : 0;
    for (size_t j = 0; b->local32 && j < b->nnz; j++)
        most = b->local32[j] > most ? b->local32[j] : most;
    return !b->nnz || most < b->rows;
}

/* Whoever adds weights up relies on it. */
static int weights_fit(const struct drps_batch *b)
{
    int fit = 1;
    for (size_t s = 0; b->weights && s < b->samples; s++)
        fit &= b->weights[s] > 0 && b->weights[s] <= FLT_MAX;
    return fit;
}

static int fields_fit(const struct drps_batch *b)
{
    return !b->fields || !b->nnz || largest(b->fields, b->nnz) < b->field_count;
}

static int starts_fit(const struct drps_batch *b)
{
    if (!b->starts) return b->samples * b->per_sample == b->nnz;
    if (b->starts[0] != 0 || b->starts[b->samples] != b->nnz) return 0;
    for (size_t s = 0; s < b->samples; s++)
        if (b->starts[s] > b->starts[s + 1]) return 0;
    return 1;
}

/* See struct drps_batch. The encoder puts a sample's entries into the order of their rows. */
static uint32_t dense_of(const struct drps_batch *b)
{
    const size_t n = b->per_sample;
    if (b->starts || !b->values || !b->local16 || b->fields || !n || b->rows < n || b->rows > n + 1)
        return 0;
    const uint16_t first = (uint16_t)(b->rows - n);
    unsigned differ = 0;
    for (size_t s = 0; s < b->samples && !differ; s++) {
        const uint16_t *local = b->local16 + s * n;
        for (size_t k = 0; k < n; k++)
            differ |= local[k] ^ (uint16_t)(first + k);
    }
    return differ ? 0 : first + 1u;
}

uint32_t drps_batch_stratum(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0 : drps_get_u32((const char *)record + DIAGONAL_AT);
}

uint32_t drps_batch_lane(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0 : drps_get_u32((const char *)record + DIAGONAL_AT + 4);
}

void drps_batch_unmark(const void *record, char head_out[DRPS_BATCH_HEAD_BYTES])
{
    memcpy(head_out, record, DRPS_BATCH_HEAD_BYTES);
    memset(head_out + DIAGONAL_AT, 0, 8);
}

uint32_t drps_batch_hand_over(const void *record, size_t bytes)
{
    if (bytes < DRPS_BATCH_HEAD_BYTES) return 0;
    return drps_get_u32((const char *)record + FLAGS_AT) & HAND_FLAGS;
}

uint32_t drps_batch_samples(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0 : drps_get_u32(record);
}

uint64_t drps_batch_entries(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0 : drps_get_u64((const char *)record + 8);
}

/* A step that hands rows over does nothing else, and in one direction. */
static int hand_over_fits(const struct drps_batch *b)
{
    const uint32_t hands = b->hand_over & HANDS;
    if (!b->hand_over) return 1;
    return (hands == DRPS_DEPARTS || hands == DRPS_ARRIVES) && b->rows && !b->samples && !b->nnz &&
           !b->stratum;
}

/* Point b to the fields of a plain body. */
static int take_fields(const char *data, size_t bytes, size_t *at, struct drps_batch *b)
{
    const char *head = section(data, bytes, at, FIELDS_HEAD_BYTES, 1);
    if (!head || drps_get_u32(head + 4) != FIELDS_OF_ENTRIES) return 0;
    b->field_count = drps_get_u32(head);
    b->fields = section(data, bytes, at, b->nnz, sizeof(*b->fields));
    return b->fields && b->field_count && b->field_count <= FIELDS_MOST;
}

static int take_numbers(const char *data, size_t bytes, int checked, size_t *at,
                        struct drps_batch *b)
{
    const size_t used =
        drps_dense_decode(data + *at, bytes - *at, b->samples, checked, &b->numbers);
    *at += used;
    return used != 0;
}

/* `checked`: its indices, fields and numbers are in range. */
static int decode(const void *record, size_t bytes, int checked, struct drps_batch *b,
                  struct drps_err *err)
{
    const char *data = record;
    size_t at = DRPS_BATCH_HEAD_BYTES;

    memset(b, 0, sizeof(*b));
    if (bytes < DRPS_BATCH_HEAD_BYTES)
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu bytes has no head", bytes);
    uint32_t flags = drps_get_u32(data + FLAGS_AT);
    b->samples = drps_get_u32(data);
    b->rows = drps_get_u32(data + 4);
    b->nnz = drps_get_u64(data + 8);
    b->per_sample = drps_get_u32(data + 20);
    b->stratum = drps_get_u32(data + DIAGONAL_AT);
    b->lane = drps_get_u32(data + DIAGONAL_AT + 4);
    b->hand_over = flags & HAND_FLAGS;
    if (flags & ~(uint32_t)(FLAGS | HAND_FLAGS))
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch has flags that are not known (%#x)",
                            flags);
    if (flags & DRPS_BATCH_NUMBERS && flags & DRPS_BATCH_FIELDS)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a batch has numbers by place, and entries with fields");
    if (b->lane >= DRPS_BATCH_LANES || (b->lane && !b->stratum))
        return drps_err_set(err, DRPS_E_CORRUPT, "a batch is in lane %u of stratum %u", b->lane,
                            b->stratum);
    if (!hand_over_fits(b))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a step that hands %zu rows over (flags %#x) with %zu samples", b->rows,
                            flags, b->samples);
    b->labels = section(data, bytes, &at, b->samples, sizeof(*b->labels));
    int whole = b->labels != NULL;
    if (whole && flags & DRPS_BATCH_WEIGHTS)
        whole = (b->weights = section(data, bytes, &at, b->samples, sizeof(*b->weights))) != NULL;
    if (whole && !(flags & DRPS_BATCH_UNIFORM))
        whole = (b->starts = section(data, bytes, &at, b->samples + 1, sizeof(*b->starts))) != NULL;
    if (whole && flags & DRPS_BATCH_VALUES)
        whole = (b->values = section(data, bytes, &at, b->nnz, sizeof(*b->values))) != NULL;
    if (whole && flags & DRPS_BATCH_FIELDS) whole = take_fields(data, bytes, &at, b);
    if (whole && flags & DRPS_BATCH_WIDE)
        whole = (b->local32 = section(data, bytes, &at, b->nnz, sizeof(*b->local32))) != NULL;
    else if (whole)
        whole = (b->local16 = section(data, bytes, &at, b->nnz, sizeof(*b->local16))) != NULL;
    if (whole && flags & DRPS_BATCH_NUMBERS) whole = take_numbers(data, bytes, checked, &at, b);
    if (whole && !weights_fit(b))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a batch has a weight that is no finite number above 0");
    if (whole && at == bytes && starts_fit(b) && (checked || (indices_fit(b) && fields_fit(b)))) {
        b->dense = dense_of(b);
        return 0;
    }
    return drps_err_set(
        err, DRPS_E_CORRUPT,
        "a batch of %zu bytes does not hold its %zu samples with %zu entries over %zu rows", bytes,
        b->samples, b->nnz, b->rows);
}

int drps_batch_decode(const void *record, size_t bytes, struct drps_batch *b, struct drps_err *err)
{
    return decode(record, bytes, 0, b, err);
}

int drps_batch_decode_unpacked(const void *plain, size_t bytes, struct drps_batch *b,
                               struct drps_err *err)
{
    return decode(plain, bytes, 1, b, err);
}

/* ---- Packed ---- */

/* 1: numbers take less without those that are 0. */
static int leaves_out(const struct drps_batch *b)
{
    return b->numbers.each && drps_dense_packed_bytes(&b->numbers, numbers_of(b)) <
                                  drps_dense_plain_bytes(&b->numbers, numbers_of(b));
}

size_t drps_batch_pack_bound(const struct drps_batch *b, int levels)
{
    const size_t fields = b->nnz > b->rows ? b->nnz : b->rows;
    return b->samples / 8 + 8 + (levels && b->values ? drps_levels_bound(b->nnz) + 8 : 0) +
           (b->fields ? FIELDS_HEAD_BYTES + fields * sizeof(*b->fields) : 0) +
           drps_pack16_bound(b->nnz) +
           (leaves_out(b) ? drps_dense_packed_bytes(&b->numbers, numbers_of(b)) + 8 : 0);
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
    const size_t each = b->field_count <= FIELDS_NARROW ? 1 : sizeof(*fields);
    if (!of_rows && n) memcpy(fields, b->fields, n * sizeof(*fields));
    for (size_t i = 0; each == 1 && i < n; i++)
        at[i] = (unsigned char)fields[i]; /* behind what is still read */
    add_fields(out, b->field_count, of_rows ? FIELDS_OF_ROWS : FIELDS_OF_ENTRIES, at, n * each);
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
    add_head(out, b,
             flags_of(b) | DRPS_BATCH_PACKED | (signs ? DRPS_BATCH_SIGNS : 0u) |
                 (values ? DRPS_BATCH_LEVELS : 0u));
    if (signs) {
        const size_t bytes = pack_signs(b, at);
        add_piece(out, at, bytes);
        at += bytes;
    } else {
        add_piece(out, b->labels, b->samples * sizeof(*b->labels));
    }
    add_middle(out, b);
    if (values)
        add_piece(out, packed, values);
    else if (b->values)
        add_piece(out, b->values, b->nnz * sizeof(*b->values));
    if (b->fields) {
        at = aligned(room, at);
        at += pack_fields(b, at, out);
    }
    if (b->local32) {
        add_local(out, b);
    } else {
        const size_t bytes = drps_pack16_encode(b->local16, b->nnz, at);
        add_piece(out, at, bytes);
        at += bytes;
    }
    if (leaves_out(b)) {
        at = aligned(room, at);
        add_piece(out, at, drps_dense_pack(&b->numbers, numbers_of(b), at));
    } else if (b->numbers.each) {
        add_numbers(out, b);
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
    add_head(out, b,
             flags_of(b) | DRPS_BATCH_PACKED | DRPS_BATCH_MATRIX |
                 (shape.first ? DRPS_BATCH_MATRIX_AFTER : 0u) | (signs ? DRPS_BATCH_SIGNS : 0u));
    if (signs)
        add_piece(out, room, pack_signs(b, room));
    else
        add_piece(out, b->labels, b->samples * sizeof(*b->labels));
    if (b->weights) add_piece(out, b->weights, b->samples * sizeof(*b->weights));
    add_piece(out, matrix, shape.samples * shape.columns * sizeof(*matrix));
    return 1;
}

int drps_batch_is_matrix(const void *record, size_t bytes)
{
    return bytes >= DRPS_BATCH_HEAD_BYTES &&
           (drps_get_u32((const char *)record + FLAGS_AT) & DRPS_BATCH_MATRIX) != 0;
}

int drps_batch_has_levels(const void *record, size_t bytes)
{
    return bytes >= DRPS_BATCH_HEAD_BYTES &&
           (drps_get_u32((const char *)record + FLAGS_AT) & DRPS_BATCH_LEVELS) != 0;
}

/* A plain body is written at `at`, where there is room for `left` bytes. */
struct plain {
    char *at;
    size_t left;
};

/* Get room for the next section, its padding zeroed; NULL if there is none left. */
static void *next_room(struct plain *p, uint64_t n, size_t size)
{
    if (n > p->left / size || drps_align_up((size_t)n * size, 8) > p->left) return NULL;
    char *start = p->at;
    const size_t bytes = (size_t)n * size, padded = drps_align_up(bytes, 8);
    memset(start + bytes, 0, padded - bytes);
    p->at += padded;
    p->left -= padded;
    return start;
}

struct packed {
    const char *record;
    size_t bytes, at;
};

/* 0; -ENOSPC: no room; DRPS_E_CORRUPT: the record ends. */
static int copy_section(struct packed *r, uint64_t n, size_t size, struct plain *out)
{
    const void *from = section(r->record, r->bytes, &r->at, n, size);
    if (!from) return DRPS_E_CORRUPT;
    void *to = next_room(out, n, size);
    if (to && n) memcpy(to, from, (size_t)n * size);
    return to ? 0 : -ENOSPC;
}

/* A byte of them. */
static void unpack_eight(unsigned signs, float *labels)
{
    for (unsigned k = 0; k < 8; k++)
        labels[k] = signs >> k & 1 ? 1.0F : -1.0F;
}

static int unpack_signs(struct packed *r, uint64_t n, struct plain *out)
{
    const unsigned char *signs = section(r->record, r->bytes, &r->at, n / 8 + (n % 8 != 0), 1);
    if (!signs) return DRPS_E_CORRUPT;
    float last[8], *labels = next_room(out, n, sizeof(*labels));
    if (!labels) return -ENOSPC;
    for (uint64_t s = 0; s < n / 8; s++)
        unpack_eight(signs[s], labels + 8 * s);
    if (n % 8) {
        unpack_eight(signs[n / 8], last);
        memcpy(labels + n / 8 * 8, last, n % 8 * sizeof(*last));
    }
    return 0;
}

static int unpack_levels(struct packed *r, uint64_t n, struct plain *out)
{
    const char *from = r->record + r->at;
    const size_t left = r->bytes - r->at;
    if (n / 8 > left) return DRPS_E_CORRUPT; /* a bit each, at least */
    const size_t used = drps_levels_decode(from, left, (size_t)n, NULL);
    if (!used || !section(r->record, r->bytes, &r->at, used, 1)) return DRPS_E_CORRUPT;
    float *values = next_room(out, n, sizeof(*values));
    if (!values) return -ENOSPC;
    return drps_levels_decode(from, left, (size_t)n, values) ? 0 : DRPS_E_CORRUPT;
}

/* The fields of a packed body, which are given to the entries once these have their rows. */
struct packed_fields {
    uint32_t count;
    enum fields_of of;
    const void *fields; /* [rows or entries] */
    uint16_t *entries;  /* where they go; NULL: there are none */
};

static int find_fields(struct packed *r, uint64_t n, uint32_t rows, struct packed_fields *f,
                       struct plain *out)
{
    const char *head = section(r->record, r->bytes, &r->at, FIELDS_HEAD_BYTES, 1);
    if (!head) return DRPS_E_CORRUPT;
    const uint32_t of = drps_get_u32(head + 4);
    f->count = drps_get_u32(head);
    if (!f->count || f->count > FIELDS_MOST || of > FIELDS_OF_ROWS) return DRPS_E_CORRUPT;
    f->of = (enum fields_of)of;
    f->fields = section(r->record, r->bytes, &r->at, f->of == FIELDS_OF_ROWS ? rows : n,
                        f->count <= FIELDS_NARROW ? 1 : sizeof(uint16_t));
    char *head_out = next_room(out, FIELDS_HEAD_BYTES, 1);
    f->entries = next_room(out, n, sizeof(*f->entries));
    if (!f->fields) return DRPS_E_CORRUPT;
    if (!head_out || !f->entries) return -ENOSPC;
    drps_put_u32(head_out, f->count);
    drps_put_u32(head_out + 4, FIELDS_OF_ENTRIES);
    return 0;
}

static int give_fields(const struct packed_fields *f, size_t n, const uint16_t *local)
{
    const unsigned char *narrow = f->fields;
    const uint16_t *wide = f->fields;
    for (size_t j = 0; j < n; j++) {
        const size_t i = f->of == FIELDS_OF_ROWS ? local[j] : j;
        f->entries[j] = f->count <= FIELDS_NARROW ? narrow[i] : wide[i];
    }
    return !n || largest(f->entries, n) < f->count ? 0 : DRPS_E_CORRUPT;
}

/* Indices below `rows`. */
static int unpack_local(struct packed *r, uint64_t n, uint32_t rows, struct plain *out,
                        const uint16_t **local_out)
{
    const char *from = r->record + r->at;
    const size_t left = r->bytes - r->at;
    uint16_t most, *local = next_room(out, n, sizeof(*local));
    *local_out = local;
    if (!local) return -ENOSPC;
    const size_t used = drps_pack16_decode(from, left, (size_t)n, local, &most);
    if (!used != !n || drps_align_up(used, 8) > left || (n && most >= rows)) return DRPS_E_CORRUPT;
    r->at += drps_align_up(used, 8);
    return 0;
}

/* Indices of 32 bits, which are as they are, below `rows`. */
static int copy_wide(struct packed *r, uint64_t n, uint32_t rows, struct plain *out)
{
    const uint32_t *local = (const uint32_t *)(void *)out->at;
    const int rc = copy_section(r, n, sizeof(*local), out);
    uint32_t most = 0;
    for (uint64_t j = 0; rc == 0 && j < n; j++)
        most = local[j] > most ? local[j] : most;
    return rc == 0 && n && most >= rows ? DRPS_E_CORRUPT : rc;
}

static int unpack_numbers(struct packed *r, uint64_t samples, struct plain *out)
{
    size_t used, plain;
    const int rc = drps_dense_unpack(r->record + r->at, r->bytes - r->at, samples, out->at,
                                     out->left, &used, &plain);
    r->at += used;
    out->at += plain;
    out->left -= plain;
    return rc > 0 ? 0 : rc < 0 ? -ENOSPC : DRPS_E_CORRUPT;
}

/* Makes starts, values and indices of the matrix that ends the record. */
static int unpack_matrix(struct packed *r, const char *head, uint32_t flags, struct plain *out)
{
    const uint32_t samples = drps_get_u32(head), rows = drps_get_u32(head + 4);
    const uint64_t nnz = drps_get_u64(head + 8);
    const int after = (flags & DRPS_BATCH_MATRIX_AFTER) != 0;
    const uint32_t columns = rows - (uint32_t)after;
    if (rows <= (uint32_t)after || rows > UINT16_MAX + 1u || !(flags & DRPS_BATCH_VALUES) ||
        flags & DRPS_BATCH_FIELDS)
        return DRPS_E_CORRUPT;
    const float *matrix = section(r->record, r->bytes, &r->at, (uint64_t)samples * columns, 4);
    if (!matrix || r->at != r->bytes) return DRPS_E_CORRUPT;
    uint32_t *starts = NULL;
    if (!(flags & DRPS_BATCH_UNIFORM)) {
        starts = next_room(out, (uint64_t)samples + 1, sizeof(*starts));
        if (!starts) return -ENOSPC;
    }
    float *values = next_room(out, nnz, sizeof(*values));
    uint16_t *local = values ? next_room(out, nnz, sizeof(*local)) : NULL;
    if (!local) return -ENOSPC;
    const struct drps_matrix_shape shape = {
        .samples = samples, .columns = columns, .nnz = (size_t)nnz, .first = (uint16_t)after};
    return drps_matrix_decode(&shape, matrix, starts, drps_get_u32(head + 20), local, values)
               ? 0
               : DRPS_E_CORRUPT;
}

static int unpack_sections(struct packed *r, struct plain *out)
{
    enum {
        MATRIX = DRPS_BATCH_MATRIX | DRPS_BATCH_MATRIX_AFTER,
        KNOWN = FLAGS | DRPS_BATCH_PACKED | DRPS_BATCH_SIGNS | DRPS_BATCH_LEVELS | MATRIX
    };
    struct packed_fields fields = {0};
    const uint16_t *local = NULL;
    char *head = out->at;
    int rc = copy_section(r, DRPS_BATCH_HEAD_BYTES, 1, out);
    if (rc < 0) return rc;
    const uint32_t flags = drps_get_u32(head + 16);
    const uint64_t samples = drps_get_u32(head), nnz = drps_get_u64(head + 8);
    const int wide = (flags & DRPS_BATCH_WIDE) != 0, numbers = (flags & DRPS_BATCH_NUMBERS) != 0;
    if (flags & ~(uint32_t)KNOWN || (wide && !numbers)) return DRPS_E_CORRUPT;
    if (numbers && flags & (MATRIX | DRPS_BATCH_FIELDS)) return DRPS_E_CORRUPT;
    if (flags & DRPS_BATCH_LEVELS && (flags & MATRIX || !(flags & DRPS_BATCH_VALUES)))
        return DRPS_E_CORRUPT;
    drps_put_u32(head + 16, flags & FLAGS);
    rc = flags & DRPS_BATCH_SIGNS ? unpack_signs(r, samples, out)
                                  : copy_section(r, samples, sizeof(float), out);
    if (rc == 0 && flags & DRPS_BATCH_WEIGHTS) rc = copy_section(r, samples, sizeof(float), out);
    if (rc == 0 && flags & MATRIX)
        return flags & DRPS_BATCH_MATRIX ? unpack_matrix(r, head, flags, out) : DRPS_E_CORRUPT;
    if (rc == 0 && !(flags & DRPS_BATCH_UNIFORM))
        rc = copy_section(r, samples + 1, sizeof(uint32_t), out);
    if (rc == 0 && flags & DRPS_BATCH_VALUES)
        rc = flags & DRPS_BATCH_LEVELS ? unpack_levels(r, nnz, out)
                                       : copy_section(r, nnz, sizeof(float), out);
    const uint32_t rows = drps_get_u32(head + 4);
    if (rc == 0 && flags & DRPS_BATCH_FIELDS) rc = find_fields(r, nnz, rows, &fields, out);
    if (rc == 0) rc = wide ? copy_wide(r, nnz, rows, out) : unpack_local(r, nnz, rows, out, &local);
    if (rc == 0 && numbers) rc = unpack_numbers(r, samples, out);
    if (rc == 0 && r->at != r->bytes) rc = DRPS_E_CORRUPT;
    return rc == 0 && fields.entries ? give_fields(&fields, (size_t)nnz, local) : rc;
}

static int is_packed(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ||
           drps_get_u32((const char *)record + 16) & DRPS_BATCH_PACKED;
}

static int too_large(size_t room_bytes, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "a batch takes more than the %zu bytes of the largest one", room_bytes);
}

static int copy_plain(const void *record, size_t bytes, void *room, size_t room_bytes,
                      size_t *bytes_out, struct drps_err *err)
{
    struct drps_batch b;
    int rc = drps_batch_decode(record, bytes, &b, err);
    if (rc < 0) return rc;
    if (bytes > room_bytes) return too_large(room_bytes, err);
    memcpy(room, record, bytes);
    *bytes_out = bytes;
    return 0;
}

int drps_batch_unpack(const void *record, size_t bytes, void *room, size_t room_bytes,
                      size_t *bytes_out, struct drps_err *err)
{
    struct packed r = {.record = record, .bytes = bytes};
    struct plain out = {.at = room, .left = room_bytes};
    *bytes_out = 0;
    if (!is_packed(record, bytes))
        return copy_plain(record, bytes, room, room_bytes, bytes_out, err);
    int rc = unpack_sections(&r, &out);
    if (rc == -ENOSPC) return too_large(room_bytes, err);
    if (rc < 0)
        return drps_err_set(err, rc, "a packed batch of %zu bytes does not hold what its head says",
                            bytes);
    *bytes_out = (size_t)(out.at - (char *)room);
    return 0;
}
