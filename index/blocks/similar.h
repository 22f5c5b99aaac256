/*
 * Blocks of rows whose batches are alike, found by minhash: of two sets, the share of hashes whose
 * minima agree is the share of common members (Broder, "On the resemblance and containment of
 * documents", SEQUENCES 1997). Private to index/.
 */
#ifndef DRPS_INDEX_BLOCKS_SIMILAR_H
#define DRPS_INDEX_BLOCKS_SIMILAR_H

#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/merging.h"
#include "index/extsort.h"

/* Memory, bytes a row, of the two functions below; merging_begin() not counted. */
enum { SIMILAR_ORDER_BYTES = 64, SIMILAR_MERGE_BYTES = 60 };

/*
 * Rows by table, tier (floor(log2 AccNum), falling), minhash and signature, so that rows of the
 * same batches are neighbours; rows of no batch come last in their table. No block is merged.
 * count [rows]: AccNum of the rows; order_out [rows].
 */
DRPS_MUST_CHECK
int similar_order(struct tally *tally, const struct block_tables *tables, const uint32_t *count,
                  uint32_t *order_out, struct drps_err *err);

/*
 * Merge on from merging_begin(): rows of the same batches first, which costs nothing. Then, round
 * after round, blocks are sorted by fresh minhashes (or by tier and minhash, or as they came),
 * every block is compared with some neighbours, and pairs merge by falling gain. A merge must gain
 * theta * seek for each batch of the block that more batches touch; theta falls from .9 to 0, so
 * that blocks which are alike find each other before they are filled with others. Steps are
 * bounded: the more incidences, the fewer rounds and neighbours. Ends as soon as counting all pairs
 * takes at most `enough` steps (tally.h: pair_work); *left_out: how many it takes.
 */
DRPS_MUST_CHECK
int similar_merge(struct merging *m, uint64_t enough, uint64_t *left_out, struct drps_err *err);

/*
 * The same blocks in another order: by table, tier and minhash. Blocks of no batch come last in
 * their table and are joined, up to max_rows. The tally has the blocks merged, numbered by their
 * first rows in `blocks`.
 */
DRPS_MUST_CHECK
int similar_arrange(struct tally *tally, const struct block_tables *tables, uint32_t max_rows,
                    const struct block_layout *blocks, struct block_layout *out,
                    struct drps_err *err);

#endif
