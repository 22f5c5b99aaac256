#include "index/blocks/refine.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

enum {
    SEGMENTS = 16,   /* of the epoch, as in dict.c; no more in any pattern fit a key */
    PAGES_LEAST = 2, /* fewer rows stay as they are: by first use */
    PARTS = 4        /* of a segment */
};

/* Rows of a run have equal segments; key: which quarters of each, the first use on top. */
struct keyed {
    uint64_t key;
    uint32_t row;
};

struct refining {
    const struct access *lists; /* borrowed */
    struct keyed *rows;         /* own: [lists->rows] */
    uint32_t least;             /* rows of a run that is refined */
};

static uint32_t segment_of(const struct refining *r, uint32_t batch, uint64_t segments)
{
    return (uint32_t)(batch * segments / r->lists->batches);
}

/* A row's quarters of the segments, of which it uses at most SEGMENTS. */
static uint64_t key_of(const struct refining *r, uint32_t row, uint64_t segments)
{
    const struct access *a = r->lists;
    uint32_t last = UINT32_MAX, rank = 0;
    uint64_t key = 0;
    for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++) {
        const uint32_t part = segment_of(r, a->batch[i], segments * PARTS);
        if (last != UINT32_MAX && part / PARTS != last) rank++;
        last = part / PARTS;
        key |= UINT64_C(1) << (63 - PARTS * rank - part % PARTS);
    }
    return key;
}

static uint64_t pattern_of(const struct refining *r, uint32_t row)
{
    const struct access *a = r->lists;
    uint64_t pattern = 0;
    for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++)
        pattern |= UINT64_C(1) << segment_of(r, a->batch[i], SEGMENTS);
    return pattern;
}

/* Who is used early comes first; then as they came. */
static int before(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* n rows of equal pattern at so many segments of the epoch. */
static void refine(const struct refining *r, struct keyed *rows, uint32_t n, uint64_t segments)
{
    if (segments * PARTS > r->lists->batches) return;
    for (uint32_t i = 0; i < n; i++)
        rows[i].key = key_of(r, rows[i].row, segments);
    qsort(rows, n, sizeof(*rows), before);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && rows[end].key == rows[i].key; end++)
            continue;
        if (end - i >= r->least && __builtin_popcountll(rows[i].key) <= SEGMENTS)
            refine(r, rows + i, end - i, segments * PARTS);
    }
}

int refine_order(const struct access *lists, uint32_t page_rows, uint32_t *order_out,
                 int *moved_out, struct drps_err *err)
{
    const uint32_t n = lists->rows;
    struct refining r = {.lists = lists, .rows = drps_array_new(n, sizeof(*r.rows))};

    *moved_out = 0;
    if (!r.rows) return drps_err_set(err, -ENOMEM, "no memory to order %u rows", n);
    r.least = page_rows < UINT32_MAX / PAGES_LEAST ? PAGES_LEAST * page_rows : UINT32_MAX;
    for (uint32_t row = 0; row < n; row++)
        r.rows[row] = (struct keyed){pattern_of(&r, row), row};
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && r.rows[end].key == r.rows[i].key; end++)
            continue;
        if (end - i >= r.least) refine(&r, r.rows + i, end - i, SEGMENTS);
    }
    for (uint32_t i = 0; i < n; i++) {
        order_out[i] = r.rows[i].row;
        *moved_out |= r.rows[i].row != i;
    }
    free(r.rows);
    return 0;
}
