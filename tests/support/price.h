/*
 * What a layout costs, modelled, nothing being in memory: how tests and benchmarks compare builders
 * and options. Source: DRPS, section 4, Eq. 1.
 */
#ifndef DRPS_TESTS_PRICE_H
#define DRPS_TESTS_PRICE_H

#include "base/drps_err.h"
#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/counts/drps_access.h"

/* What reading every batch's blocks once takes, each block whole: exact counts. */
struct layout_io {
    uint64_t blocks;     /* blocks that batches touch: sum of AccNum(B) */
    uint64_t block_rows; /* their rows: sum of AccNum(B) * |B| */
    uint64_t requests;   /* runs of blocks, gaps of at most gap_rows read through */
    uint64_t rows;       /* that requests read: block_rows and the gaps */
};

DRPS_MUST_CHECK
int layout_io(const struct access *a, const struct block_layout *layout, uint32_t gap_rows,
              struct layout_io *out, struct drps_err *err);

/* Microseconds of all batches. */
struct layout_price {
    double blocks; /* Eq. 1: every block by itself, sum of AccNum(B) * (seek + |B| * row) */
    double io; /* reading through gaps of up to seek / row rows: requests * seek + rows * row. Never
                  more than all rows a batch */
};

DRPS_MUST_CHECK
int layout_price(const struct access *a, const struct block_layout *layout,
                 const struct block_cost *cost, struct layout_price *price_out,
                 struct drps_err *err);

#endif
