/*
 * Blocks of rows whose batches are alike, found by minhash: of two sets, the share of hashes whose
 * minima agree is the share of common members (Broder, "On the resemblance and containment of
 * documents", SEQUENCES 1997). Private to index/blocks/builders/.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_SIMILAR_H
#define DRPS_INDEX_BLOCKS_BUILDERS_SIMILAR_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_extsort.h"
#include "index/blocks/builders/merging.h"

/*
 * Merge on from drps_merging_begin(): rows of the same batches first, which costs nothing. Then,
 * round after round, blocks are sorted by fresh minhashes (or by tier and minhash, or as they
 * came), every block is compared with some neighbours, and pairs merge by falling gain. A merge
 * must gain theta * seek for each batch of the block that more batches touch; theta falls from .9
 * to 0, so that blocks which are alike find each other before they are filled with others. Steps
 * are bounded: the more incidences, the fewer rounds and neighbours. Ends as soon as counting all
 * pairs takes at most `enough` steps (drps_counts.h: pair_work); *left_out: how many it takes.
 */
DRPS_MUST_CHECK
int drps_similar_merge(struct merging *m, uint64_t enough, uint64_t *left_out,
                       struct drps_err *err);

#endif
