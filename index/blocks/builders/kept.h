/*
 * Which rows may merge as the options say: those that are used most. Private to
 * index/blocks/builders/.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_KEPT_H
#define DRPS_INDEX_BLOCKS_BUILDERS_KEPT_H

#include <stdint.h>

#include "index/blocks/builders/drps_builder.h"

/* Returns how many: all of options->min_count uses, and no more than options->keep_rows. sorted
 * [rows] are the uses of all, which rise. */
uint32_t drps_kept_rows(const uint32_t *sorted, uint32_t rows, const struct block_options *options);

/* A row is kept when more batches use it than `above`, or just as many: then `equal` rows are, the
 * first. The uses are those that are counted, of the share of the batches that is. */
struct kept_limit {
    uint32_t above, equal;
};

/* From the uses of all rows, which rise, and what is to be kept: options->min_count, keep_rows. */
void drps_kept_limit(const uint32_t *sorted, uint32_t rows, const struct block_options *options,
                     struct kept_limit *out);

/* Ask for one row after another: the limit counts down rows of equal use. */
static inline int drps_kept_limit_has(struct kept_limit *limit, uint32_t uses)
{
    return uses > limit->above || (uses == limit->above && limit->equal && limit->equal--);
}

#endif
