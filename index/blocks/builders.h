/* The builders that block_builder_find() knows; see builder.h for what they do and promise. Private
 * to index/. */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_H
#define DRPS_INDEX_BLOCKS_BUILDERS_H

#include "index/blocks/builder.h"

#define BLOCK_BUILDERS(X) X(none, 0) X(pattern, 0) X(pairwise, 1) X(topk, 1) X(greedy, 1)

#define BLOCK_BUILDER_DECLARE(name, counts)                                                        \
    int block_build_##name(struct tally *tally, const struct block_tables *tables,                 \
                           const struct block_options *options, struct block_layout *layout_out,   \
                           struct drps_err *err);
BLOCK_BUILDERS(BLOCK_BUILDER_DECLARE)
#undef BLOCK_BUILDER_DECLARE

#endif
