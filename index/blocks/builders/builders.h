/*
 * The builders that drps_block_builder_find() knows, and what they share; see drps_builder.h for
 * what they do and promise. Private to index/blocks/builders/.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_BUILDERS_H
#define DRPS_INDEX_BLOCKS_BUILDERS_BUILDERS_H

#include "index/blocks/builders/drps_builder.h"

typedef int block_build(struct counts *counts, const struct block_tables *tables,
                        const struct block_options *options, struct block_layout *layout_out,
                        struct drps_err *err);

block_build drps_block_build_none, drps_block_build_pattern; /* pattern.c */
block_build drps_block_build_id, drps_block_build_random, drps_block_build_frequency; /* pages.c */
block_build drps_block_build_greedy, drps_block_build_topk;                           /* greedy.c */
block_build drps_block_build_auto;                                                    /* auto.c */

/* Blocks of `each` rows, the last one of a table shorter; the order stays what it is. */
DRPS_MUST_CHECK
int drps_block_cut(const struct block_tables *tables, uint32_t each, struct block_layout *out,
                   struct drps_err *err);

#endif
