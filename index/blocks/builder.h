/*
 * Block builders: which rows form a parameter index block (PIB). Private to index/.
 *
 * Placed ids are already in an order that puts rows with the same access pattern side by side
 * (dict.c), so the builders here only choose boundaries. A builder that wants its own order returns
 * a renumbering before batches are written; that seam is where the paper's merging builders belong.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDER_H
#define DRPS_INDEX_BLOCKS_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/drps_plan.h"

struct block_builder {
    const char *name;
    /* Cut rows into blocks: *first_out [blocks + 1], free() it. Blocks never span two tables. */
    int (*build)(const struct drps_plan_info *info, uint32_t **first_out, size_t *blocks_out,
                 struct drps_err *err);
};

/* "none": one row a block. "pattern": rows with the same access pattern, cut to info->block_bytes.
 * NULL: unknown. */
const struct block_builder *block_builder_find(const char *name);

#endif
