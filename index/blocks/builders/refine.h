/*
 * Rows of one access pattern, ordered by when they are used in more detail. Private to
 * index/blocks/builders/.
 *
 * Rows lie by pattern already: in which of 16 segments of the epoch they are used (dict.c). Of
 * large data thousands share one, and a page of these is read again for nearly every use of its
 * rows. So those that share a pattern are ordered by the pattern in quarters of its segments, those
 * that share this one by quarters of the quarters, as long as pages are filled.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_REFINE_H
#define DRPS_INDEX_BLOCKS_BUILDERS_REFINE_H

#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/counts/drps_access.h"

/* order_out [rows]: the rows of `lists`, of which page_rows fill a page. *moved_out: whether any is
 * not where it was. */
DRPS_MUST_CHECK
int drps_refine_order(const struct access *lists, uint32_t page_rows, uint32_t *order_out,
                      int *moved_out, struct drps_err *err);

#endif
