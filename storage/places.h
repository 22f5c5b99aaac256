/*
 * The fixed place of every block in one file, in placed order, and the runs in which blocks are
 * moved.
 *
 * What moves is sectors, the unit that the file system takes past the page cache. A block of a
 * sector or more begins on one and is padded to whole sectors: it is written without touching a
 * neighbour. Smaller blocks share sectors, as many as fit, so that narrow rows stay narrow; to
 * write one of them its sector is read first, unless all that is stored there is written together.
 * A *page* is such a sector or such a block.
 *
 * A run is what one request moves: pages one after the other, and for reading those between pages
 * that are wanted, where moving them costs less than another request (gap_bytes).
 */
#ifndef DRPS_PLACES_H
#define DRPS_PLACES_H

#include <stddef.h>
#include <stdint.h>

enum { DRPS_RUN_BYTES = 256 << 10 }; /* of a run of more than one page, at most */

struct drps_places {
    const uint32_t *block_first; /* [blocks + 1] borrowed */
    size_t blocks;
    size_t row_bytes;
    uint32_t sector;      /* bytes */
    uint32_t pages;       /* at most as many as blocks */
    uint32_t *page_first; /* own: [pages + 1] first block of each; NULL: page p has block p alone */
    uint32_t *page_at;    /* own: [pages + 1] in sectors */
};

struct drps_run {
    size_t key, keys;     /* which of the blocks asked for */
    uint32_t page, pages; /* the first page, and how many */
    uint64_t offset;      /* in the file */
    uint32_t bytes;
};

/* 0, -ENOMEM, or -EOVERFLOW: the file would have too many sectors. `p` may be destroyed whatever
 * the result. */
int drps_places_init(struct drps_places *p, const uint32_t *block_first, size_t blocks,
                     size_t row_bytes, uint32_t sector);
void drps_places_destroy(struct drps_places *p);

/* Memory that drps_places_init() will take, and the pages and the bytes of the largest. */
uint64_t drps_places_bytes(const uint32_t *block_first, size_t blocks, size_t row_bytes,
                           uint32_t sector, uint32_t *pages_out, uint64_t *page_most_out);

/* The page of a block at or after page `from`. */
uint32_t drps_places_page(const struct drps_places *p, uint32_t block, uint32_t from);

static inline uint32_t drps_places_first(const struct drps_places *p, uint32_t page)
{
    return p->page_first ? p->page_first[page] : page;
}

static inline uint64_t drps_places_offset(const struct drps_places *p, uint32_t page)
{
    return (uint64_t)p->page_at[page] * p->sector;
}

/* Bytes of the rows of blocks [a, b). */
static inline uint64_t drps_places_between(const struct drps_places *p, uint32_t a, uint32_t b)
{
    return (uint64_t)(p->block_first[b] - p->block_first[a]) * p->row_bytes;
}

/*
 * The run that begins with keys[from], from < n: blocks [n], increasing. gap_bytes: of pages
 * between those of the keys, for each gap; 0: none. Pages that are not wanted end no run.
 */
void drps_places_run(const struct drps_places *p, const uint32_t *keys, size_t n, size_t from,
                     uint64_t gap_bytes, struct drps_run *run_out);

/* 1: a page of the run has blocks of the bitmap `stored` that are not among its keys: to write the
 * run, it must be read. */
int drps_places_shared(const struct drps_places *p, const struct drps_run *run,
                       const uint32_t *keys, const uint64_t *stored);

#endif
