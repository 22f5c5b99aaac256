#include "tests/support/price.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { AHEAD = 16 }; /* rows whose accesses are requested before they are looked at */

static uint32_t row_at(const struct block_layout *l, uint64_t place)
{
    return l->order ? l->order[place] : (uint32_t)place;
}

static void fetch_rows(const struct access *a, const struct block_layout *l, uint64_t place)
{
    if (place + AHEAD < a->rows) __builtin_prefetch(a->batch + a->start[row_at(l, place + AHEAD)]);
    if (place + 2 * AHEAD < a->rows) __builtin_prefetch(&a->start[row_at(l, place + 2 * AHEAD)]);
}

/* A batch reads the block at places [first, end), blocks in their order. *read_end: where its
 * reading has come to, UINT32_MAX at first. */
static void read_block(uint32_t first, uint32_t end, uint32_t gap_rows, uint32_t *read_end,
                       struct layout_io *io)
{
    if (*read_end == end) return; /* for another row */
    io->blocks++;
    io->block_rows += end - first;
    if (*read_end != UINT32_MAX && first - *read_end <= gap_rows) {
        io->rows += end - *read_end;
    } else {
        io->requests++;
        io->rows += end - first;
    }
    *read_end = end;
}

int layout_io(const struct access *a, const struct block_layout *layout, uint32_t gap_rows,
              struct layout_io *out, struct drps_err *err)
{
    const uint32_t *first = layout->first;
    uint32_t *read_end = drps_array_new(a->batches, sizeof(*read_end));

    *out = (struct layout_io){0};
    if (!read_end) return drps_err_set(err, -ENOMEM, "no memory for %u batches", a->batches);
    memset(read_end, 0xff, a->batches * sizeof(*read_end));
    for (size_t b = 0; b < layout->blocks; b++)
        for (uint32_t place = first[b]; place < first[b + 1]; place++) {
            const uint32_t row = row_at(layout, place);
            fetch_rows(a, layout, place);
            for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++)
                read_block(first[b], first[b + 1], gap_rows, &read_end[a->batch[i]], out);
        }
    free(read_end);
    return 0;
}

int layout_price(const struct access *a, const struct block_layout *layout,
                 const struct block_cost *cost, struct layout_price *price_out,
                 struct drps_err *err)
{
    struct layout_io io;

    *price_out = (struct layout_price){0};
    int rc = layout_io(a, layout, block_cost_gap(cost), &io, err);
    if (rc < 0) return rc;
    price_out->blocks = (double)io.blocks * cost->seek + (double)io.block_rows * cost->row;
    price_out->io = (double)io.requests * cost->seek + (double)io.rows * cost->row;
    return 0;
}
