/*
 * What the parts of the counts in memory share: lists of batches, merged or not (counts_lists.c),
 * pairs of blocks (counts_pairs.c), and everything else (counts.c). Private to
 * index/blocks/counts/.
 */
#ifndef DRPS_INDEX_BLOCKS_COUNTS_COUNTS_LOCAL_H
#define DRPS_INDEX_BLOCKS_COUNTS_COUNTS_LOCAL_H

#include "index/blocks/counts/drps_counts.h"

/*
 * The inverse of the accesses, from the first call of pairs() on: which blocks of any group a
 * batch touches. Merging only marks the batches of the block that is no more; they are cleaned when
 * next visited.
 */
struct inverse {
    uint64_t *first; /* own: [batches] */
    uint32_t *n;     /* own: [batches] */
    uint32_t *block; /* own: of batch b: block[first[b]] and n[b] - 1 more, in any order; NULL:
                        there is no inverse yet */
    uint8_t *dirty;  /* own: [batches] it still has blocks that are no more */
    uint32_t *into;  /* own: [blocks] the block that took this one in, itself if it lives */
    uint8_t *mark;   /* own: [blocks] of counts_pairs.c; 0 between uses */
    uint32_t *count; /* own: [blocks] batches in common with the block in hand; 0 between uses */
    uint32_t *met, *aux; /* own: [blocks] blocks whose count is not 0; to sort them */
};

struct local {
    struct counts counts;
    const struct access *access; /* borrowed, or &sampled */
    struct access sampled;       /* own: the share that is counted, or what was loaded */
    uint64_t *at;   /* own: [blocks] where the list begins; pool: behind the accesses */
    uint32_t *n;    /* own: [blocks] its length, AccNum; 0: dead or never touched */
    uint8_t *group; /* own: [blocks] */
    uint32_t *pool; /* own: [pool_cap] */
    size_t pool_n, pool_cap, pool_live;
    struct inverse inverse;
    void *table; /* own: [batches] of 8 bytes, of one call */
};

static inline struct local *local_of(struct counts *t)
{
    return (struct local *)t;
}

static inline uint64_t incidences(const struct access *a)
{
    return a->start[a->rows];
}

static inline const uint32_t *list_of(const struct local *l, uint32_t block)
{
    const uint64_t base = incidences(l->access), at = l->at[block];
    return at < base ? l->access->batch + at : l->pool + (at - base);
}

/* ---- Lists ---- */

/* Returns how many batches both blocks have. */
uint32_t drps_counts_common(const struct local *l, struct block_pair p);
/* The list of p.a becomes that of both. */
DRPS_MUST_CHECK
int drps_counts_merge_lists(struct local *l, struct block_pair p, struct drps_err *err);

/* ---- Pairs ---- */

/* The operation of struct counts_ops. */
DRPS_MUST_CHECK
int drps_counts_pairs(struct counts *t, const uint32_t *with, size_t with_n, uint64_t memory_bytes,
                      struct block_pair_count **pairs_out, size_t *n_out, struct drps_err *err);
/* Bring the inverse to what it will be when the lists of p have merged. */
void drps_counts_inverse_merge(const struct local *l, struct inverse *v, struct block_pair p);
/* Drop the inverse, until pairs are asked for. */
void drps_counts_inverse_free(struct inverse *v);

#endif
