#include "index/blocks/price.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

int layout_price(struct tally *tally, const struct block_layout *layout,
                 const struct block_cost *cost, struct layout_price *price_out,
                 struct drps_err *err)
{
    const uint32_t rows = tally->blocks;
    struct layout_io io;

    *price_out = (struct layout_price){0};
    uint32_t *place = drps_array_new(rows, sizeof(*place));
    if (!place) return drps_err_set(err, -ENOMEM, "no memory for the places of %u rows", rows);
    for (uint32_t i = 0; i < rows; i++)
        place[layout->order ? layout->order[i] : i] = i;
    int rc = tally->ops->layout_io(tally, place, layout->first, layout->blocks,
                                   block_cost_gap(cost), &io, err);
    free(place);
    if (rc < 0) return rc;
    price_out->blocks = (double)io.blocks * cost->seek + (double)io.block_rows * cost->row;
    price_out->io = (double)io.requests * cost->seek + (double)io.rows * cost->row;
    return 0;
}
