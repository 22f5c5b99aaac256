/*
 * Extents: where blocks lie in one file, and the runs in which they are moved. Pure bookkeeping;
 * the engine `file` does the I/O, and index/forecast counts the requests that it would make.
 *
 * The file is moved in sectors, the unit that the file system takes past the page cache. A *page*
 * is a block padded to whole sectors, or a sector that blocks of less than a quarter of it share,
 * so that narrow rows stay narrow. To write a shared page it is read first, unless all that is
 * stored there is written together.
 *
 * Pages begin in placed order, and the file is half as long again: pages that are written together,
 * from anywhere, go to one piece of free sectors, and leave their old sectors free (copy on write).
 * So the blocks that a step evicts take few requests, and blocks that left together lie together
 * when they come back. A page stays where it is when that takes no more requests, or when it must
 * be read first: moving is never necessary.
 *
 * A run is what one request moves: pages one after the other. A run that is read may also have
 * pages between those that are wanted, where moving them costs less than another request
 * (gap_bytes).
 */
#ifndef DRPS_STORAGE_KV_EXTENTS_H
#define DRPS_STORAGE_KV_EXTENTS_H

#include <stddef.h>
#include <stdint.h>

#include "storage/kv/free_sectors.h"

enum { DRPS_RUN_BYTES = 256 << 10 }; /* of a run of more than one page, at most */

struct drps_extents {
    const uint32_t *block_first; /* [blocks + 1] borrowed */
    size_t blocks;
    size_t row_bytes;
    uint32_t sector;      /* bytes */
    uint32_t cursor;      /* sector behind the last piece taken */
    uint32_t pages;       /* at most as many as blocks */
    uint32_t *page_first; /* own: [pages + 1] first block of each; NULL: page p has block p alone */
    uint32_t *page_at;    /* own: [pages] first sector of each */
    struct drps_free_sectors free; /* own: sectors of the file that belong to no page */
};

/* What one request moves. */
struct drps_run {
    size_t key, keys; /* the first of the blocks asked for that it has, and how many */
    uint64_t offset;  /* bytes from the file's start */
    uint32_t bytes;
    int shared; /* 1: a run to write has other stored blocks, too, and must be read before */
};

/* What drps_extents_init() will make. */
struct drps_extents_size {
    uint32_t pages;
    uint64_t table_bytes; /* memory */
    uint64_t page_bytes;  /* of the largest page */
};
void drps_extents_measure(const uint32_t *block_first, size_t blocks, size_t row_bytes,
                          uint32_t sector, struct drps_extents_size *out);

/* Lay out all blocks in placed order. sector: bytes. 0, -ENOMEM, or -EOVERFLOW when the file would
 * have too many sectors. `p` may be destroyed whatever the result. */
int drps_extents_init(struct drps_extents *p, const uint32_t *block_first, size_t blocks,
                      size_t row_bytes, uint32_t sector);
void drps_extents_destroy(struct drps_extents *p);

/* Returns the page of a block. */
uint32_t drps_extents_page(const struct drps_extents *p, uint32_t block);

static inline uint32_t drps_extents_first(const struct drps_extents *p, uint32_t page)
{
    return p->page_first ? p->page_first[page] : page;
}

/* Returns the bytes from the file's start to where a page is now. */
static inline uint64_t drps_extents_offset(const struct drps_extents *p, uint32_t page)
{
    return (uint64_t)p->page_at[page] * p->sector;
}

/* Returns the bytes of the rows of blocks [a, b). */
static inline uint64_t drps_extents_between(const struct drps_extents *p, uint32_t a, uint32_t b)
{
    return (uint64_t)(p->block_first[b] - p->block_first[a]) * p->row_bytes;
}

/* Returns how many sectors a page has. */
static inline uint32_t drps_extents_sectors(const struct drps_extents *p, uint32_t page)
{
    const uint64_t bytes =
        drps_extents_between(p, drps_extents_first(p, page), drps_extents_first(p, page + 1));
    return (uint32_t)((bytes + p->sector - 1) / p->sector);
}

/*
 * Sort blocks `keys` [n], increasing, by where they lie, to be read so: order_out[i] gets the index
 * of a key in its lower half, and its page's first sector in its upper half.
 */
void drps_extents_sort(const struct drps_extents *p, const uint32_t *keys, size_t n,
                       uint64_t *order_out);

/* The run to read that begins with order[from], from < n. gap_bytes: the most that may lie between
 * two pages that are wanted. run_out->key and keys count in `order`. */
void drps_extents_read_run(const struct drps_extents *p, const uint32_t *keys,
                           const uint64_t *order, size_t n, size_t from, uint64_t gap_bytes,
                           struct drps_run *run_out);

/* The run to write that begins with keys[from], from < n, of blocks keys [n], increasing. From now
 * on its pages are where the run says. `stored`: bit b % 64 of word b / 64 is set when the file has
 * block b. run_out->key and keys count in `keys`. */
void drps_extents_write_run(struct drps_extents *p, const uint32_t *keys, size_t n, size_t from,
                            const uint64_t *stored, struct drps_run *run_out);

#endif
