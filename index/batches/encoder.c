/*
 * A batch is encoded (drps_encoder.h): its entries are sorted by row, which gives the row list,
 * and put back to their samples with the rank of their row.
 */
#include "index/batches/drps_encoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { NARROW_ROWS = 65536 };

/* 1: entries have more than their rows, so that a pair is of an entry, not of a sample. */
static int by_entry(const struct drps_batch *b)
{
    return b->values || b->fields;
}

static int reserve(struct batch_encoder *e, const struct drps_batch *b, uint32_t common)
{
    struct drps_batch most = *b;
    most.rows = b->nnz + common;
    return drps_array_reserve(&e->pairs, &e->pairs_cap, b->nnz, sizeof(*e->pairs)) ||
           drps_array_reserve(&e->aux, &e->aux_cap, b->nnz, sizeof(*e->aux)) ||
           drps_array_reserve(&e->sample, &e->sample_cap, by_entry(b) ? b->nnz : 0,
                              sizeof(*e->sample)) ||
           drps_array_reserve(&e->fields, &e->field_cap, b->fields ? b->nnz : 0,
                              sizeof(*e->fields)) ||
           drps_array_reserve(&e->next, &e->next_cap, b->samples, sizeof(*e->next)) ||
           drps_array_reserve(&e->packed, &e->packed_cap,
                              drps_batch_pack_bound(&most, e->ways.levels), 1);
}

/* Has numbers be levels where these are few: then they are, whatever else is done to the body. */
static int find_levels(struct batch_encoder *e, struct drps_batch *b)
{
    struct drps_dense *d = &b->numbers;
    const size_t n = b->samples * (size_t)d->each;
    if (!d->floats) return 0;
    if (drps_array_reserve(&e->bytes, &e->bytes_cap, n, 1)) return -ENOMEM;
    const uint32_t levels = drps_dense_levels(d->floats, n, e->bytes, e->levels);
    const struct drps_dense few = {
        .each = d->each, .levels_n = levels, .bytes = e->bytes, .levels = e->levels};
    if (levels && drps_dense_plain_bytes(&few, n) < drps_dense_plain_bytes(d, n)) *d = few;
    return 0;
}

/* ---- By row ---- */

/* A stable radix sort by as few digits as do, of one size. */
enum { DIGIT_BITS = 11, DIGITS = 3 };

struct digits {
    unsigned n, bits;
    uint32_t next[DIGITS][1 << DIGIT_BITS]; /* where the next pair with this digit goes */
};

static size_t digit(const struct digits *d, unsigned number, uint64_t row)
{
    return row >> number * d->bits & ((1u << d->bits) - 1);
}

static void count_digits(struct digits *d, const uint32_t *rows, size_t n)
{
    uint32_t all = 0;
    for (size_t j = 0; j < n; j++)
        all |= rows[j];
    const unsigned bits = all ? 32u - (unsigned)__builtin_clz(all) : 1;
    d->n = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    d->bits = (bits + d->n - 1) / d->n;
    for (unsigned k = 0; k < d->n; k++)
        memset(d->next[k], 0, sizeof(d->next[k][0]) << d->bits);
    for (size_t j = 0; j < n; j++)
        for (unsigned k = 0; k < d->n; k++)
            d->next[k][digit(d, k, rows[j])]++;
    for (unsigned k = 0; k < d->n; k++)
        for (uint32_t v = 0, at = 0; v >> d->bits == 0; v++) {
            const uint32_t count = d->next[k][v];
            d->next[k][v] = at;
            at += count;
        }
}

/* The entries' pairs in the order of their last digit. */
static void begin_pairs(struct batch_encoder *e, const struct drps_batch *b, const uint32_t *rows,
                        struct digits *d)
{
    uint64_t *restrict to = e->pairs;
    const int entries = by_entry(b);
    for (size_t s = 0; s < b->samples; s++) {
        const size_t end = drps_batch_start(b, s + 1);
        for (size_t j = drps_batch_start(b, s); j < end; j++) {
            to[d->next[0][digit(d, 0, rows[j])]++] = (uint64_t)rows[j] << 32 | (entries ? j : s);
            if (entries) e->sample[j] = (uint32_t)s;
        }
    }
}

/* Sort e->pairs by row, and by sample where rows are the same. */
static void sort_pairs(struct batch_encoder *e, const struct drps_batch *b, const uint32_t *rows)
{
    struct digits d;
    count_digits(&d, rows, b->nnz);
    begin_pairs(e, b, rows, &d);
    for (unsigned k = 1; k < d.n; k++) {
        const uint64_t *restrict from = e->pairs;
        uint64_t *restrict to = e->aux;
        for (size_t i = 0; i < b->nnz; i++)
            to[d.next[k][digit(&d, k, from[i] >> 32)]++] = from[i];
        e->aux = e->pairs; /* both have the same room: they are reserved together */
        e->pairs = to;
    }
}

/* Distinct rows of the pairs. */
static size_t count_rows(const uint64_t *pairs, size_t n)
{
    size_t rows = n != 0;
    for (size_t i = 1; i < n; i++)
        rows += pairs[i] >> 32 != pairs[i - 1] >> 32;
    return rows;
}

static int reserve_list(struct batch_encoder *e, size_t rows, struct drps_err *err)
{
    if (drps_array_reserve(&e->list, &e->list_cap, rows, sizeof(*e->list)) ||
        drps_array_reserve(&e->listed, &e->listed_cap, drps_list_encode_bound(rows), 1))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu rows", rows);
    return 0;
}

/* ---- By sample ---- */

/* Store that entry `at` has the row of this rank, as 16 or 32 bits. */
static inline void put(void *local, size_t at, uint32_t rank, int wide)
{
    const uint16_t narrow = (uint16_t)rank;
    if (wide)
        memcpy((char *)local + 4 * at, &rank, sizeof(rank));
    else
        memcpy((char *)local + 2 * at, &narrow, sizeof(narrow));
}

/* Put what the pairs have into e->list and e->aux, and into `values` and `fields` if there are any.
 * The first row that an entry has is e->list[first]. */
static inline void regroup(struct batch_encoder *e, const struct drps_batch *b, uint32_t first,
                           int wide, float *restrict values, uint16_t *restrict fields)
{
    const uint64_t *restrict pairs = e->pairs;
    uint32_t *restrict next = e->next, *restrict list = e->list;
    uint32_t rank = first - 1;
    uint64_t before = UINT64_MAX;
    for (size_t i = 0; i < b->nnz; i++) {
        const uint64_t row = pairs[i] >> 32;
        const uint32_t number = (uint32_t)pairs[i];
        const size_t at = next[values || fields ? e->sample[number] : number]++;
        rank += row != before; /* no branch: it could hardly be predicted */
        before = row;
        list[rank] = (uint32_t)row;
        put(e->aux, at, rank, wide);
        if (values) values[at] = b->values[number];
        if (fields) fields[at] = b->fields[number];
    }
}

/* Make e->list, and b's indices, values and fields, from the sorted pairs. */
static void regroup_by_sample(struct batch_encoder *e, uint32_t common, struct drps_batch *b)
{
    const int wide = b->rows > NARROW_ROWS;
    float *values = (float *)(void *)e->aux + b->nnz; /* behind the indices */
    for (size_t s = 0; s < b->samples; s++)
        e->next[s] = (uint32_t)drps_batch_start(b, s);
    for (uint32_t row = 0; row < common; row++)
        e->list[row] = row;
    if (by_entry(b))
        regroup(e, b, common, wide, b->values ? values : NULL, b->fields ? e->fields : NULL);
    else if (wide)
        regroup(e, b, common, 1, NULL, NULL);
    else
        regroup(e, b, common, 0, NULL, NULL);
    if (b->values) b->values = values;
    if (b->fields) b->fields = e->fields;
    b->local32 = wide ? (const uint32_t *)(const void *)e->aux : NULL;
    b->local16 = wide ? NULL : (const uint16_t *)(const void *)e->aux;
}

/* ---- Both ---- */

static uint64_t bytes_of(const struct drps_batch_pieces *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->pieces[i].bytes;
    return sum;
}

/* Takes the pieces if they are smaller than those so far. */
static void take_smaller(const struct drps_batch_pieces *packed, struct drps_batch_pieces *out)
{
    if (bytes_of(packed) >= bytes_of(out)) return;
    *out = *packed;
    drps_batch_pieces_own(packed, out);
}

static int encode_body(struct batch_encoder *e, const struct drps_batch *b,
                       struct drps_batch_pieces *out)
{
    struct drps_batch_pieces packed;
    drps_batch_encode(b, out);
    const uint64_t bytes = bytes_of(out);
    if (bytes > e->max_bytes) e->max_bytes = bytes;
    if (!b->local16 && !b->numbers.each) return 0;
    drps_batch_pack(b, e->ways.levels, e->packed, &packed);
    take_smaller(&packed, out);
    const size_t room = e->ways.dense ? drps_batch_matrix_bound(b) : 0;
    if (!room) return 0;
    if (drps_array_reserve(&e->matrix, &e->matrix_cap, room, 1)) return -ENOMEM;
    if (drps_batch_pack_matrix(b, e->matrix, &packed)) take_smaller(&packed, out);
    return 0;
}

int drps_batch_encoder_encode(struct batch_encoder *e, const struct drps_batch *b,
                              const uint32_t *rows, uint32_t common, struct encoded *out,
                              struct drps_err *err)
{
    struct drps_batch sorted = *b;
    if (find_levels(e, &sorted) || reserve(e, &sorted, common))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu entries", b->nnz);
    sort_pairs(e, b, rows);
    sorted.rows = out->rows = count_rows(e->pairs, b->nnz) + common;
    int rc = reserve_list(e, sorted.rows, err);
    if (rc < 0) return rc;
    regroup_by_sample(e, common, &sorted);
    if (encode_body(e, &sorted, &out->body) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu entries", b->nnz);
    out->list =
        (struct drps_piece){e->listed, drps_list_encode_dense(e->list, sorted.rows, e->listed)};
    return 0;
}

void drps_batch_encoder_end(struct batch_encoder *e)
{
    free(e->pairs);
    free(e->aux);
    free(e->sample);
    free(e->fields);
    free(e->next);
    free(e->list);
    free(e->listed);
    free(e->packed);
    free(e->matrix);
    free(e->bytes);
    *e = (struct batch_encoder){0};
}
