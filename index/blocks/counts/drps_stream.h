/*
 * Counts over accesses that stay on disk, for data sets whose accesses are larger than memory.
 * Shared inside index/.
 *
 * Every answer is a sum or a minimum over batches, so each is found by reading the row lists of
 * rows.rec once, front to back, with what is known of blocks in memory: exactly what counts in
 * memory answers. Only pairs() cannot do that: it loads the batches of the blocks that are of any
 * group, as they have merged by then. So it is for builders that prune, or have merged before.
 */
#ifndef DRPS_INDEX_BLOCKS_COUNTS_STREAM_H
#define DRPS_INDEX_BLOCKS_COUNTS_STREAM_H

#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/counts/drps_access.h"
#include "index/blocks/counts/drps_counts.h"

/*
 * Counts over batches [first, end), as drps_counts_open() counts them. It takes 13 bytes a row and
 * 8 a row of the largest batch; with these, what pairs() loads (21 bytes a row, 8 a batch, 10 an
 * incidence) may take from->memory_bytes. DRPS_E_MEMORY_BUDGET: it does not, here or in pairs().
 * from->io and from->dir are borrowed until close.
 */
DRPS_MUST_CHECK
int drps_counts_stream(const struct access_source *from, uint32_t first, uint32_t end,
                       struct counts **t_out, struct drps_err *err);

/* Returns how many accesses of blocks of any group pairs() has room for, of so much memory. */
uint64_t drps_stream_pair_accesses(uint64_t blocks, uint64_t batches, uint64_t memory_bytes);

/* Counts in memory if the accesses take no more than from->memory_bytes, else streamed ones, as
 * t->streamed says. */
DRPS_MUST_CHECK
int drps_counts_make(const struct access_source *from, uint32_t first, uint32_t end,
                     struct counts **t_out, struct drps_err *err);

#endif
