/*
 * Finer access patterns (refine.h): rows of one pattern are sorted by which quarters of
 * its segments use them, and again by quarters of these while pages fill.
 */
#include "index/blocks/builders/refine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum {
    SEGMENTS_BITS = 4, /* 16 of the epoch, as in dict.c; no more in any pattern fit a key */
    PARTS_BITS = 2,    /* of a segment: 4 */
    SEGMENTS = 1 << SEGMENTS_BITS,
    PARTS = 1 << PARTS_BITS,
    PAGES_LEAST = 2, /* fewer rows stay as they are: by first use */
    KEY_BITS = 64,
    BYTE_BITS = 8,
    BYTES = 1 << BYTE_BITS, /* values of one */
    FEW = 32                /* rows that are sorted by insertion */
};

/* Rows of a run have equal segments; key: which quarters of each, the first use on top. */
struct keyed {
    uint64_t key;
    uint32_t row;
};

struct refining {
    const struct access *lists; /* borrowed */
    uint32_t *part; /* own: [batches] which of the smallest parts of the epoch each is in */
    unsigned bits;  /* there are 2^bits of these; 0: too few batches for quarters of segments */
    struct keyed *rows, *aux; /* own: [lists->rows] */
    uint32_t least;           /* rows of a run that is refined */
};

/* Cut segments into quarters, and these into quarters, as long as there are batches for them. Parts
 * nest: the parts of n bits less are these, shifted by n. */
static void cut_epoch(struct refining *r)
{
    const uint32_t batches = r->lists->batches;
    for (unsigned bits = SEGMENTS_BITS + PARTS_BITS; UINT64_C(1) << bits <= batches;
         bits += PARTS_BITS)
        r->bits = bits;
    for (uint32_t b = 0; b < batches; b++)
        r->part[b] = (uint32_t)(((uint64_t)b << r->bits) / batches);
}

/* A row's parts of 2^bits, quarters of segments of which it uses at most SEGMENTS. */
static uint64_t key_of(const struct refining *r, uint32_t row, unsigned bits)
{
    const struct access *a = r->lists;
    const unsigned shift = r->bits - bits;
    uint32_t last = UINT32_MAX, rank = 0;
    uint64_t key = 0;
    for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++) {
        const uint32_t part = r->part[a->batch[i]] >> shift;
        rank += last != UINT32_MAX && part / PARTS != last;
        last = part / PARTS;
        key |= UINT64_C(1) << (KEY_BITS - 1 - PARTS * rank - part % PARTS);
    }
    return key;
}

static uint64_t pattern_of(const struct refining *r, uint32_t row)
{
    const struct access *a = r->lists;
    const unsigned shift = r->bits - SEGMENTS_BITS;
    uint64_t pattern = 0;
    for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++)
        pattern |= UINT64_C(1) << (r->part[a->batch[i]] >> shift);
    return pattern;
}

static void insert_sort(struct keyed *rows, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct keyed row = rows[i];
        uint32_t at = i;
        for (; at > 0 && rows[at - 1].key < row.key; at--)
            rows[at] = rows[at - 1];
        rows[at] = row;
    }
}

/* One pass of a stable radix sort: the greatest byte above `shift` first. */
static void sort_by_byte(const struct keyed *from, struct keyed *to, uint32_t n, unsigned shift)
{
    uint32_t at[BYTES] = {0}, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        at[from[i].key >> shift & (BYTES - 1)]++;
    for (unsigned byte = BYTES; byte-- > 0;) {
        const uint32_t count = at[byte];
        at[byte] = sum;
        sum += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[at[from[i].key >> shift & (BYTES - 1)]++] = from[i];
}

/* Sort rows: those used early come first; equal ones stay as they came. */
static void sort(const struct refining *r, struct keyed *rows, uint32_t n)
{
    struct keyed *from = rows, *to = r->aux;
    uint64_t varies = 0;
    if (n < FEW) {
        insert_sort(rows, n);
        return;
    }
    for (uint32_t i = 1; i < n; i++)
        varies |= rows[i].key ^ rows[0].key;
    for (unsigned shift = 0; shift < KEY_BITS; shift += BYTE_BITS) {
        if (!(varies >> shift & (BYTES - 1))) continue;
        sort_by_byte(from, to, n, shift);
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != rows) memcpy(rows, from, n * sizeof(*rows));
}

/* Refine the order of n rows whose patterns are equal at 2^bits / PARTS segments of the epoch. */
static void refine(const struct refining *r, struct keyed *rows, uint32_t n, unsigned bits)
{
    if (bits > r->bits) return;
    for (uint32_t i = 0; i < n; i++)
        rows[i].key = key_of(r, rows[i].row, bits);
    sort(r, rows, n);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && rows[end].key == rows[i].key; end++)
            continue;
        if (end - i >= r->least && __builtin_popcountll(rows[i].key) <= SEGMENTS)
            refine(r, rows + i, end - i, bits + PARTS_BITS);
    }
}

static void refine_all(struct refining *r)
{
    const uint32_t n = r->lists->rows;
    cut_epoch(r);
    for (uint32_t row = 0; row < n; row++)
        r->rows[row] = (struct keyed){r->bits ? pattern_of(r, row) : 0, row};
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && r->rows[end].key == r->rows[i].key; end++)
            continue;
        if (end - i >= r->least) refine(r, r->rows + i, end - i, SEGMENTS_BITS + PARTS_BITS);
    }
}

int drps_refine_order(const struct access *lists, uint32_t page_rows, uint32_t *order_out,
                      int *moved_out, struct drps_err *err)
{
    const uint32_t n = lists->rows;
    struct refining r = {.lists = lists,
                         .part = drps_array_new(lists->batches, sizeof(*r.part)),
                         .rows = drps_array_new(n, sizeof(*r.rows)),
                         .aux = drps_array_new(n, sizeof(*r.aux))};
    const int made = r.part && r.rows && r.aux;

    *moved_out = 0;
    r.least = page_rows < UINT32_MAX / PAGES_LEAST ? PAGES_LEAST * page_rows : UINT32_MAX;
    if (made) refine_all(&r);
    for (uint32_t i = 0; made && i < n; i++) {
        order_out[i] = r.rows[i].row;
        *moved_out |= r.rows[i].row != i;
    }
    free(r.part);
    free(r.rows);
    free(r.aux);
    return made ? 0 : drps_err_set(err, -ENOMEM, "no memory to order %u rows", n);
}
