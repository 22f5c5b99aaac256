#include "storage/places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

/* Pages are made one after the other, to be counted or to be noted. */
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

/* The bytes of the next page, padding included. */
static uint64_t make_page(struct maker *m)
{
    const size_t first = m->next++;
    while (m->next < m->blocks && bytes_of(m, first, m->next + 1) <= m->sector)
        m->next++;
    const uint64_t sectors = (bytes_of(m, first, m->next) + m->sector - 1) / m->sector;
    m->at += sectors;
    return sectors * m->sector;
}

uint64_t drps_places_bytes(const uint32_t *block_first, size_t blocks, size_t row_bytes,
                           uint32_t sector, uint32_t *pages_out, uint64_t *page_most_out)
{
    struct maker m = {block_first, blocks, row_bytes, sector, 0, 0};
    uint32_t pages = 0;
    *page_most_out = 0;
    for (; m.next < blocks; pages++) {
        const uint64_t bytes = make_page(&m);
        if (bytes > *page_most_out) *page_most_out = bytes;
    }
    *pages_out = pages;
    return ((uint64_t)pages + 1) * sizeof(uint32_t) * (pages == blocks ? 1 : 2);
}

int drps_places_init(struct drps_places *p, const uint32_t *block_first, size_t blocks,
                     size_t row_bytes, uint32_t sector)
{
    struct maker m = {block_first, blocks, row_bytes, sector, 0, 0};
    uint64_t most;
    *p = (struct drps_places){
        .block_first = block_first, .blocks = blocks, .row_bytes = row_bytes, .sector = sector};
    (void)drps_places_bytes(block_first, blocks, row_bytes, sector, &p->pages, &most);
    p->page_at = drps_array_new((size_t)p->pages + 1, sizeof(*p->page_at));
    if (!p->page_at) return -ENOMEM;
    if (p->pages < blocks) {
        p->page_first = drps_array_new((size_t)p->pages + 1, sizeof(*p->page_first));
        if (!p->page_first) return -ENOMEM;
        p->page_first[p->pages] = (uint32_t)blocks;
    }
    for (uint32_t page = 0; page < p->pages; page++) {
        if (p->page_first) p->page_first[page] = (uint32_t)m.next;
        p->page_at[page] = (uint32_t)m.at;
        if (make_page(&m) > UINT32_MAX) return -EOVERFLOW;
    }
    if (m.at > UINT32_MAX) return -EOVERFLOW;
    p->page_at[p->pages] = (uint32_t)m.at;
    return 0;
}

void drps_places_destroy(struct drps_places *p)
{
    free(p->page_first);
    free(p->page_at);
    memset(p, 0, sizeof(*p));
}

uint32_t drps_places_page(const struct drps_places *p, uint32_t block, uint32_t from)
{
    if (!p->page_first) return block;
    uint32_t step = 1, low = from; /* page_first[low] <= block; mostly it is near */
    while (low + step < p->pages && p->page_first[low + step] <= block) {
        low += step;
        step *= 2;
    }
    uint32_t high = low + step < p->pages ? low + step : p->pages;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (p->page_first[middle] <= block)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void drps_places_run(const struct drps_places *p, const uint32_t *keys, size_t n, size_t from,
                     uint64_t gap_bytes, struct drps_run *run_out)
{
    const uint32_t first = drps_places_page(p, keys[from], 0);
    const uint64_t offset = drps_places_offset(p, first);
    uint32_t last = first;
    size_t i = from + 1;
    for (; i < n; i++) {
        const uint32_t page = drps_places_page(p, keys[i], last);
        const uint64_t gap =
            page == last ? 0 : drps_places_offset(p, page) - drps_places_offset(p, last + 1);
        if (gap > gap_bytes) break;
        if (page != last && drps_places_offset(p, page + 1) - offset > DRPS_RUN_BYTES) break;
        last = page;
    }
    *run_out = (struct drps_run){
        .key = from,
        .keys = i - from,
        .page = first,
        .pages = last + 1 - first,
        .offset = offset,
        .bytes = (uint32_t)(drps_places_offset(p, last + 1) - offset),
    };
}

int drps_places_shared(const struct drps_places *p, const struct drps_run *run,
                       const uint32_t *keys, const uint64_t *stored)
{
    size_t k = run->key;
    if (!p->page_first) return 0;
    for (uint32_t page = run->page; page < run->page + run->pages; page++)
        for (uint32_t b = p->page_first[page]; b < p->page_first[page + 1]; b++) {
            if (k < run->key + run->keys && keys[k] == b)
                k++;
            else if (stored[b >> 6] >> (b & 63) & 1)
                return 1;
        }
    return 0;
}
