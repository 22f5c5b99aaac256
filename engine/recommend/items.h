/*
 * The items that may be recommended, in the order of their rows, a block at a time. They are kept
 * in memory, or each pass reads them again. Private to engine/recommend/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_ITEMS_H
#define DRPS_ENGINE_RECOMMEND_ITEMS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"
#include "engine/recommend/input/drps_rowset.h"

/* Items of a tile meet a tile of queries in one product: scores of DRPS_TILE_QUERIES x
 * DRPS_TILE_ITEMS stay in a processor's cache. */
enum { DRPS_TILE_QUERIES = 480, DRPS_TILE_ITEMS = 256, DRPS_BLOCK_ITEMS = 32 * DRPS_TILE_ITEMS };

/* A block; tile t begins with item t * DRPS_TILE_ITEMS. Borrowed until the next one. */
struct drps_items_block {
    const float *vectors;  /* [n][d] */
    const uint32_t *rows;  /* [n] */
    const double *longest; /* [tiles] norm of the longest vector */
    size_t n;              /* at most DRPS_BLOCK_ITEMS */
};

struct drps_items {
    struct drps_modeldir *md;          /* borrowed */
    const char *model;                 /* borrowed: its name, for texts */
    const struct drps_rowset *allowed; /* borrowed */
    int cosine;                        /* vectors are factors of length 1 behind a 0 */
    size_t d;
    size_t cap;                           /* items in memory: all, or of a block */
    float *vectors;                       /* own: [cap][d] */
    uint32_t *rows;                       /* own: [cap] */
    double *longest;                      /* own: [tiles of cap] */
    size_t loaded;                        /* of those that are held */
    uint64_t at, next_row, passes, bytes; /* at: items of this pass so far */
};

uint64_t drps_items_memory(size_t d, size_t cap);

/* cap: allowed->n, or at least DRPS_BLOCK_ITEMS. -ENOMEM. Destroy it in either case. */
DRPS_MUST_CHECK
int drps_items_init(struct drps_items *it, struct drps_modeldir *md, const char *model,
                    const struct drps_rowset *allowed, int cosine, size_t cap,
                    struct drps_err *err);
void drps_items_destroy(struct drps_items *it); /* zeroed too */

/* Begin with the first item. */
void drps_items_rewind(struct drps_items *it);

/* The next block; block->n is 0 at the end. DRPS_E_CORRUPT: parameters that are no numbers, and
 * what drps_modeldir_gather() finds. */
DRPS_MUST_CHECK
int drps_items_next(struct drps_items *it, struct drps_items_block *block, struct drps_err *err);

/* Read rows [n], strictly increasing, into vectors [n][d]; with `cosine` as above. */
DRPS_MUST_CHECK
int drps_items_read(struct drps_modeldir *md, const char *model, const uint32_t *rows, size_t n,
                    int cosine, float *vectors, struct drps_err *err);

#endif
