/*
 * One part of the rows, for the builder `auto`: pages of its rows as they are, pages in a finer
 * order, or merged blocks, whichever costs least. Private to index/blocks/builders/.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_AUTO_PART_H
#define DRPS_INDEX_BLOCKS_BUILDERS_AUTO_PART_H

#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/counts/drps_access.h"
#include "index/blocks/counts/drps_counts.h"

enum { AUTO_MERGE_ACCESS_BYTES = 64 }; /* memory, while a part is merged */

/* Rows [first, end) of a table. */
struct auto_part {
    uint32_t first, end;
    uint64_t accesses;
    struct block_layout layout; /* own: of these rows, counted from `first` on; order NULL: pages */
};

struct portfolio {
    struct counts *counts;
    const struct block_tables *tables;
    const struct block_options *options;
    uint32_t *count;        /* own: [rows] AccNum */
    struct auto_part *part; /* own: [n] */
    size_t n, cap;
    uint64_t fixed_bytes; /* of memory, of all rows */
    uint64_t lacked;      /* memory that greedy lacked, or 0 */
    int merges;           /* the data are few enough to merge */
    unsigned threads;
};

/*
 * Cut rows [from, end) into pages as large as the limits allow, the first row being `base` in
 * first_out; AccNum of a page is taken for the sum over its rows, which it cannot exceed. Returns
 * how many.
 */
size_t drps_auto_cut_pages(const struct portfolio *p, uint32_t from, uint32_t end, uint32_t base,
                           uint32_t *first_out);

/* Decide the layout of a part, whose rows' lists are `lists`: part->layout. */
DRPS_MUST_CHECK
int drps_auto_choose(struct portfolio *p, const struct access *lists, struct auto_part *part,
                     struct drps_err *err);

#endif
