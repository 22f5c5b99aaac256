/*
 * Block builders: which rows form a parameter index block (PIB), and in which order blocks lie on
 * disk. Shared inside index/. Source: DRPS, section 4 (Eq. 1-3, Algorithm 1).
 *
 * A builder sees which batches touch which rows (drps_access.h) and what a read costs, and returns
 * an order of the rows with boundaries. Blocks never span two tables. All builders are
 * deterministic.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_BUILDER_H
#define DRPS_INDEX_BLOCKS_BUILDERS_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/plan/drps_plan.h"

/* What I/O costs, in microseconds. Eq. 1: cost(B) = AccNum(B) * (seek + |B| * row). */
struct block_cost {
    double seek; /* ts: one more request */
    double row;  /* ta: a row moved */
};

/*
 * The most rows that are read through rather than left out: those of one seek. So every gap costs
 * what is less, a seek or its rows: in this order nothing is read in less time, nor are all rows.
 */
static inline uint32_t block_cost_gap(const struct block_cost *cost)
{
    return cost->seek < (double)UINT32_MAX * cost->row ? (uint32_t)(cost->seek / cost->row)
                                                       : UINT32_MAX;
}

/* Gains, weights and counts of batches are those of the whole epoch: where a share is counted, they
 * are estimated from it. */
struct block_options {
    struct block_cost cost;
    uint32_t top_k;     /* topk: pairs merged a round, k */
    double min_gain;    /* gamma, microseconds: pairs that gain no more are not merged */
    uint32_t min_count; /* f: rows of fewer batches stay alone (frequency pruning); 0, 1: none */
    uint32_t keep_rows; /* rows that may merge, the most used, of equally used ones the first: all
                           others stay alone; 0: all may */
    double sample;      /* p: share of the batches that is counted; 1: all */
    uint32_t max_rows;  /* of a block */
    double max_weight;  /* of a block: AccNum * (seek + rows * row), microseconds; 0: no limit */
    uint64_t seed;
    unsigned threads;       /* auto: how many may work, the layout being the same; 0: 1 */
    uint64_t memory_bytes;  /* of the builder, the accesses not counted */
    const uint32_t *by_key; /* [rows] the rows in the order of their keys; borrowed; NULL unless the
                               builder asks for it */
};

/* Rows of table t: first[t] .. first[t + 1] - 1; first[n]: all rows. */
struct block_tables {
    uint32_t first[DRPS_PLAN_TABLES + 1];
    size_t n;
};

/* The result. Own arrays. */
struct block_layout {
    uint32_t *order; /* [rows] the row at each new position; NULL: rows stay where they are */
    uint32_t *first; /* [blocks + 1] positions at which blocks begin, first[blocks] = rows */
    size_t blocks;
    char note[200]; /* for the user: what the builder had to leave out, and why; empty: nothing */
};
void drps_block_layout_free(struct block_layout *layout);

struct counts;
struct block_builder {
    const char *name;
    int counts; /* 1: it asks for access counts; 0: build() gets NULL for them */
    int keys;   /* 1: it needs options.by_key */
    int orders; /* 1: it may renumber rows; 0: order is NULL always */
    int merges; /* 1: a block is what it merged; 0: it is a page, cut where max_rows are full */
    int single; /* 1: a block is one row, also once rows are renumbered for several machines */
    int prunes; /* 1: it compares all pairs of rows that may merge: drps_prune.h says how many can
                 */
    /* DRPS_E_MEMORY_BUDGET names the memory that would do. Free the layout in any case. */
    int (*build)(struct counts *counts, const struct block_tables *tables,
                 const struct block_options *options, struct block_layout *layout_out,
                 struct drps_err *err);
};

/*
 * The builder of this name; NULL if there is none.
 *   none       one row a block
 *   pattern    rows stay in placed order (dict.c: hot rows first, then those of one access pattern
 *              side by side), cut every max_rows
 *   pairwise, topk   the paper's: merge the best pair, or k pairs, a round (greedy.c)
 *   greedy     another name of pairwise
 *   auto       the best of several, also of far more rows (auto.c)
 * Of equal gains, the pair with the smaller rows merges first; pairwise, topk and greedy order
 * blocks by their smallest rows, which come first, and leave the counts with their blocks merged.
 *
 * To compare with, pages of max_rows rows:
 *   id         by the key of the feature, user or item
 *   random     by chance
 *   frequency  by AccNum, most first; then in placed order
 */
const struct block_builder *drps_block_builder_find(const char *name);

#endif
