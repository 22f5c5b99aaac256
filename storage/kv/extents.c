/* Pages are cut from blocks here, sorted for reading, and moved for writing; drps_extents.h has the
 * idea. */
#include "storage/kv/drps_extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum {
    SHARE_PARTS = 4, /* of a sector: a block of less shares one */
    SPARE_PART = 2,  /* of all pages' sectors: as many more to move to */
};

/* ---- Pages ---- */

/* Makes pages one after the other: once to count them, once to note them. */
struct maker {
    const uint32_t *block_first;
    size_t blocks, row_bytes;
    uint32_t sector;
    size_t next; /* block */
    uint64_t at; /* sector */
};

static uint64_t bytes_of(const struct maker *m, size_t a, size_t b)
{
    return (uint64_t)(m->block_first[b] - m->block_first[a]) * m->row_bytes;
}

static int is_small(const struct maker *m, size_t block)
{
    return block < m->blocks && bytes_of(m, block, block + 1) < m->sector / SHARE_PARTS;
}

/* The bytes of the next page, padding included. */
static uint64_t make_page(struct maker *m)
{
    const size_t first = m->next++;
    while (is_small(m, first) && is_small(m, m->next) &&
           bytes_of(m, first, m->next + 1) <= m->sector)
        m->next++;
    const uint64_t sectors = (bytes_of(m, first, m->next) + m->sector - 1) / m->sector;
    m->at += sectors;
    return sectors * m->sector;
}

static uint64_t with_spare(uint64_t sectors)
{
    return sectors + sectors / SPARE_PART;
}

void drps_extents_measure(const uint32_t *block_first, size_t blocks, size_t row_bytes,
                          uint32_t sector, struct drps_extents_size *out)
{
    struct maker m = {block_first, blocks, row_bytes, sector, 0, 0};
    *out = (struct drps_extents_size){0};
    for (; m.next < blocks; out->pages++) {
        const uint64_t bytes = make_page(&m);
        if (bytes > out->page_bytes) out->page_bytes = bytes;
    }
    const uint64_t each = sizeof(uint32_t) * (out->pages == blocks ? 1 : 2);
    out->table_bytes =
        (out->pages + UINT64_C(1)) * each + drps_free_sectors_bytes(with_spare(m.at));
}

static int make_tables(struct drps_extents *p, uint32_t sectors)
{
    p->page_at = drps_array_new(p->pages, sizeof(*p->page_at));
    if (p->pages < p->blocks) {
        p->page_first = drps_array_new((size_t)p->pages + 1, sizeof(*p->page_first));
        if (!p->page_first) return -ENOMEM;
        p->page_first[p->pages] = (uint32_t)p->blocks;
    }
    return p->page_at ? drps_free_sectors_init(&p->free, sectors) : -ENOMEM;
}

int drps_extents_init(struct drps_extents *p, const uint32_t *block_first, size_t blocks,
                      size_t row_bytes, uint32_t sector)
{
    struct maker m = {block_first, blocks, row_bytes, sector, 0, 0};
    *p = (struct drps_extents){
        .block_first = block_first, .blocks = blocks, .row_bytes = row_bytes, .sector = sector};
    for (; m.next < blocks; p->pages++)
        if (make_page(&m) > UINT32_MAX) return -EOVERFLOW;
    if (with_spare(m.at) > UINT32_MAX) return -EOVERFLOW;
    p->cursor = (uint32_t)m.at;
    if (make_tables(p, (uint32_t)with_spare(m.at)) < 0) return -ENOMEM;
    drps_free_sectors_mark(&p->free, 0, p->cursor, 1);
    m.next = 0;
    m.at = 0;
    for (uint32_t page = 0; page < p->pages; page++) {
        if (p->page_first) p->page_first[page] = (uint32_t)m.next;
        p->page_at[page] = (uint32_t)m.at;
        (void)make_page(&m);
    }
    return 0;
}

void drps_extents_destroy(struct drps_extents *p)
{
    free(p->page_first);
    free(p->page_at);
    drps_free_sectors_destroy(&p->free);
    memset(p, 0, sizeof(*p));
}

uint32_t drps_extents_page(const struct drps_extents *p, uint32_t block)
{
    if (!p->page_first) return block;
    uint32_t low = 0, high = p->pages; /* page_first[low] <= block < page_first[high] */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (p->page_first[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- Reading ---- */

static int by_offset(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

void drps_extents_sort(const struct drps_extents *p, const uint32_t *keys, size_t n,
                       uint64_t *order_out)
{
    for (size_t i = 0; i < n; i++)
        order_out[i] = (uint64_t)p->page_at[drps_extents_page(p, keys[i])] << 32 | i;
    if (n) qsort(order_out, n, sizeof(*order_out), by_offset);
}

void drps_extents_read_run(const struct drps_extents *p, const uint32_t *keys,
                           const uint64_t *order, size_t n, size_t from, uint64_t gap_bytes,
                           struct drps_run *run_out)
{
    const uint64_t first = order[from] >> 32;
    uint64_t last = first, end = first; /* sectors: of the last page, and behind it */
    size_t i = from;
    for (; i < n; i++) {
        const uint64_t at = order[i] >> 32;
        if (i > from && at == last) continue;
        const uint32_t page = drps_extents_page(p, keys[order[i] & UINT32_MAX]);
        const uint64_t new_end = at + drps_extents_sectors(p, page);
        if (i > from &&
            ((at - end) * p->sector > gap_bytes || (new_end - first) * p->sector > DRPS_RUN_BYTES))
            break;
        last = at;
        end = new_end;
    }
    *run_out = (struct drps_run){
        .key = from,
        .keys = i - from,
        .offset = first * p->sector,
        .bytes = (uint32_t)((end - first) * p->sector),
    };
}

/* ---- Writing ---- */

/* The page of keys[from]: which of the keys are in it, and whether it has other stored blocks. */
struct wanted {
    uint32_t page, sectors;
    size_t end; /* key of the next page */
    int shared;
};

static struct wanted wanted_page(const struct drps_extents *p, const uint32_t *keys, size_t n,
                                 size_t from, const uint64_t *stored)
{
    struct wanted w = {.page = drps_extents_page(p, keys[from]), .end = from + 1};
    w.sectors = drps_extents_sectors(p, w.page);
    if (!p->page_first) return w;
    w.end = from;
    for (uint32_t b = p->page_first[w.page]; b < p->page_first[w.page + 1]; b++) {
        if (w.end < n && keys[w.end] == b)
            w.end++;
        else if (stored[b >> 6] >> (b & 63) & 1)
            w.shared = 1;
    }
    return w;
}

/* Pages that a run would have where they are, or where they would move to. */
struct piece {
    uint32_t sectors;
    size_t end; /* key behind them */
    int open;   /* more may fit */
};

static void extend(struct piece *r, const struct wanted *w, int fits)
{
    r->open = r->open && fits;
    if (!r->open) return;
    r->sectors += w->sectors;
    r->end = w->end;
}

static void move_pages(struct drps_extents *p, const uint32_t *keys, size_t from, size_t end,
                       uint32_t to)
{
    uint32_t page = UINT32_MAX;
    p->cursor = to;
    for (size_t i = from; i < end; i++) {
        if (drps_extents_page(p, keys[i]) == page) continue;
        page = drps_extents_page(p, keys[i]);
        const uint32_t n = drps_extents_sectors(p, page);
        drps_free_sectors_mark(&p->free, p->page_at[page], n, 0);
        p->page_at[page] = p->cursor;
        p->cursor += n;
    }
    drps_free_sectors_mark(&p->free, to, p->cursor - to, 1);
}

void drps_extents_write_run(struct drps_extents *p, const uint32_t *keys, size_t n, size_t from,
                            const uint64_t *stored, struct drps_run *run_out)
{
    struct wanted w = wanted_page(p, keys, n, from, stored);
    const int shared = w.shared;
    const uint32_t most = DRPS_RUN_BYTES / p->sector, here = p->page_at[w.page];
    uint32_t free_at = 0, room = 0;
    if (!shared && n - from > 1) {
        const uint64_t all = (uint64_t)(n - from) * w.sectors;
        room = drps_free_sectors_find(&p->free, p->cursor, all < most ? (uint32_t)all : most,
                                      &free_at);
    }
    struct piece stay = {.sectors = w.sectors, .end = w.end, .open = 1};
    struct piece go = {.end = from, .open = 1};
    extend(&go, &w, w.sectors <= room);
    while ((stay.open || go.open) && w.end < n) {
        w = wanted_page(p, keys, n, w.end, stored);
        const int same = w.shared == shared;
        extend(&stay, &w,
               same && p->page_at[w.page] == here + stay.sectors &&
                   stay.sectors + w.sectors <= most);
        extend(&go, &w, same && go.sectors + w.sectors <= room);
    }
    const int moves = go.sectors > stay.sectors;
    const struct piece *r = moves ? &go : &stay;
    if (moves) move_pages(p, keys, from, go.end, free_at);
    *run_out = (struct drps_run){
        .key = from,
        .keys = r->end - from,
        .offset = (uint64_t)(moves ? free_at : here) * p->sector,
        .bytes = r->sectors * p->sector,
        .shared = shared,
    };
}
