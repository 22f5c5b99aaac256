/*
 * Blocks while a builder merges them: their sizes and access counts, which merges are worth it and
 * allowed, and the layout that they end in. Private to index/blocks/builders/. Source: DRPS,
 * section 4.
 *
 * Blocks are numbered as in drps_counts.h: a block has the number of its smallest row. Time is
 * counted in rounds of merges: a candidate holds until one of its blocks has merged.
 */
#ifndef DRPS_INDEX_BLOCKS_BUILDERS_MERGING_H
#define DRPS_INDEX_BLOCKS_BUILDERS_MERGING_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/blocks/builders/candidates.h"
#include "index/blocks/builders/drps_builder.h"
#include "index/blocks/counts/drps_counts.h"

struct merging {
    struct counts *counts; /* borrowed, like the next two */
    const struct block_tables *tables;
    const struct block_options *options;
    uint32_t rows;
    uint32_t time;    /* rounds made */
    uint32_t *count;  /* own: [rows] AccNum; 0: dead, or never accessed */
    uint32_t *size;   /* own: [rows] rows of the block; 0: dead */
    uint32_t *into;   /* own: [rows] the block that took it in; itself: none did */
    uint32_t *merged; /* own: [rows] time of its last merge; 0: none */
    uint8_t *group;   /* own: [rows] 0: a row that is pruned; else of its table */
};

/* Resets the counts, asks for them and tells them which pairs may merge: those of a table, but
 * for rows that are pruned (drps_prune.h). drps_merging_end() in any case. */
DRPS_MUST_CHECK
int drps_merging_begin(struct merging *m, struct counts *counts, const struct block_tables *tables,
                       const struct block_options *options, struct drps_err *err);
void drps_merging_end(struct merging *m);

/* Returns the memory that merging takes. */
uint64_t drps_merging_bytes(uint64_t rows);

/* DRPS_E_MEMORY_BUDGET: merging takes so much in all. */
int drps_merging_refuse(const struct block_options *options, uint64_t needed, struct drps_err *err);

/* Eq. 3: what merging a and b gains when `both` batches touch both. */
double drps_merging_gain(const struct merging *m, uint32_t a, uint32_t b, uint32_t both);

/*
 * Hands to take() every merge that gains more than gamma and is allowed, of the blocks in `with`
 * (n, increasing) with any other; with NULL: of all blocks. Ends at the first failure of take().
 * Counted pairs take at most pairs_bytes at a time, else DRPS_E_MEMORY_BUDGET and *bytes_out says
 * what they take.
 */
typedef int merging_take(void *ctx, const struct candidate *c, struct drps_err *err);
DRPS_MUST_CHECK
int drps_merging_count(struct merging *m, const uint32_t *with, size_t n, uint64_t pairs_bytes,
                       merging_take *take, void *ctx, uint64_t *bytes_out, struct drps_err *err);

static inline int merging_holds(const struct merging *m, const struct candidate *c)
{
    return m->merged[c->a] <= c->time && m->merged[c->b] <= c->time;
}

/* A merge of the round that is being made, of a candidate that holds: c->b goes into c->a. */
void drps_merging_merge(struct merging *m, const struct candidate *c);

/* The round is made: tells the counts what merged. */
DRPS_MUST_CHECK
int drps_merging_round(struct merging *m, const struct block_pair *pairs, size_t n,
                       struct drps_err *err);

/* What greedy merges: `kept` rows that are not pruned, of `rows`; `live` blocks of them, which
 * batches use `accesses` times. */
struct greedy_size {
    uint64_t rows, kept, live, accesses;
};

/* Returns the least memory in which drps_greedy_merge() can go on, drps_merging_begin()'s included:
 * of so much, and from here. */
uint64_t drps_greedy_size_bytes(const struct greedy_size *z);
uint64_t drps_greedy_bytes(const struct merging *m);

/* Merges the k best pairs a round until none gains (greedy.c). DRPS_E_MEMORY_BUDGET when
 * options->memory_bytes are less than drps_greedy_bytes(). */
DRPS_MUST_CHECK
int drps_greedy_merge(struct merging *m, uint32_t k, struct drps_err *err);

/* Blocks in the order of their smallest rows, each with its rows in given order. */
DRPS_MUST_CHECK
int drps_merging_layout(struct merging *m, struct block_layout *layout_out, struct drps_err *err);

#endif
