/*
 * The paper's merging as it is printed, which counts every pair anew in each round (DRPS, section
 * 4.2: the method that its top-k is compared with): what drps builds without that is compared with
 * it, in tests and in bench_blocks.
 */
#ifndef DRPS_TESTS_RECOUNT_BLOCKS_H
#define DRPS_TESTS_RECOUNT_BLOCKS_H

#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/counts/drps_access.h"

/*
 * Merges the k best pairs a round. All batches count, whatever options->sample; memory is 4 bytes a
 * pair of the rows that may merge. Returns 0 or -ENOMEM. Free the layout in any case.
 */
DRPS_MUST_CHECK
int recount_blocks(const struct access *a, const struct block_tables *tables,
                   const struct block_options *options, uint32_t k, struct block_layout *out);

#endif
