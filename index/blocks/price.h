/*
 * What a layout costs, modelled: how builders and options are compared. Private to index/.
 * Source: DRPS, section 4, Eq. 1.
 */
#ifndef DRPS_INDEX_BLOCKS_PRICE_H
#define DRPS_INDEX_BLOCKS_PRICE_H

#include "base/drps_err.h"
#include "index/blocks/builder.h"
#include "index/blocks/tally.h"

/* Microseconds of the batches that the tally counts. */
struct layout_price {
    double blocks; /* Eq. 1: every block by itself, sum of AccNum(B) * (seek + |B| * row) */
    double io; /* reading through gaps of up to seek / row rows: requests * seek + rows * row. Never
                  more than all rows a batch */
};

DRPS_MUST_CHECK
int layout_price(struct tally *tally, const struct block_layout *layout,
                 const struct block_cost *cost, struct layout_price *price_out,
                 struct drps_err *err);

#endif
