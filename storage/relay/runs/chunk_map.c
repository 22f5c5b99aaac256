/* Bits and lists of the chunk map; chunk_map.h has the idea. */
#include "storage/relay/runs/chunk_map.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { GAPS = 64 }; /* that are looked at for chunks side by side */

static int has(const uint64_t *bits, uint64_t i)
{
    return (int)(bits[i / 64] >> i % 64 & 1);
}

static void set(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

static void clear(uint64_t *bits, uint64_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

static size_t words_of(uint64_t n)
{
    return (size_t)n / 64 + 1;
}

uint64_t drps_chunk_map_bytes(uint64_t n)
{
    const struct drps_chunk_map *map = NULL;
    const uint64_t each = sizeof(*map->sums) + sizeof(*map->needs) + sizeof(*map->bytes) +
                          sizeof(*map->next) + sizeof(*map->pins);
    return n * each + 3 * words_of(n) * sizeof(uint64_t);
}

int drps_chunk_map_init(struct drps_chunk_map *map, uint64_t n)
{
    *map = (struct drps_chunk_map){0};
    return drps_chunk_map_grow(map, n);
}

void drps_chunk_map_destroy(struct drps_chunk_map *map)
{
    free(map->sums);
    free(map->needs);
    free(map->bytes);
    free(map->next);
    free(map->pins);
    free(map->taken);
    free(map->free);
    free(map->busy);
}

/* The first free chunk of [from, end); end if there is none. */
static uint64_t find_free(const struct drps_chunk_map *map, uint64_t from, uint64_t end)
{
    while (from < end) {
        const uint64_t word = map->free[from / 64] >> from % 64;
        if (word) {
            from += (uint64_t)__builtin_ctzll(word);
            return from < end ? from : end;
        }
        from = (from / 64 + 1) * 64;
    }
    return end;
}

/* Free chunks side by side; n is 0 where there are none. */
struct gap {
    uint64_t first, n;
};

/* The first gap of [from, end), no more than `most` chunks of it. */
static struct gap find_gap(const struct drps_chunk_map *map, uint64_t from, uint64_t end,
                           uint64_t most)
{
    struct gap gap = {.first = find_free(map, from, end)};
    while (gap.first + gap.n < end && gap.n < most && has(map->free, gap.first + gap.n))
        gap.n++;
    return gap;
}

/* The first of the next gaps behind the cursor that has `most` chunks; else the longest of them. */
static struct gap choose_gap(const struct drps_chunk_map *map, uint64_t most)
{
    struct gap best = {0};
    uint64_t from = map->cursor, end = map->n;
    for (unsigned seen = 0; seen < GAPS && best.n < most;) {
        const struct gap gap = find_gap(map, from, end, most);
        if (gap.n > best.n) best = gap;
        from = gap.first + gap.n;
        seen += gap.n > 0;
        if (from < end) continue;
        if (end == map->cursor) break; /* round the file */
        from = 0;
        end = map->cursor;
    }
    return best;
}

uint64_t drps_chunk_map_take(struct drps_chunk_map *map, uint32_t n, uint32_t *n_out)
{
    const struct gap gap = choose_gap(map, n);
    const uint64_t end = gap.first + gap.n;
    for (uint64_t i = gap.first; i < end; i++)
        clear(map->free, i);
    *n_out = (uint32_t)gap.n;
    map->cursor = end < map->n ? end : 0;
    return gap.first;
}

void drps_chunk_map_append(struct drps_chunk_map *map, struct drps_chunk_list *list, uint32_t chunk,
                           uint32_t bytes, uint64_t sum, uint64_t need)
{
    map->sums[chunk] = sum;
    map->needs[chunk] = need;
    map->bytes[chunk] = bytes;
    map->next[chunk] = DRPS_NO_CHUNK;
    if (list->last == DRPS_NO_CHUNK)
        list->first = chunk;
    else
        map->next[list->last] = chunk;
    list->last = chunk;
    set(map->taken, chunk);
    set(map->busy, chunk);
}

void drps_chunk_map_written(struct drps_chunk_map *map, uint32_t chunk)
{
    clear(map->busy, chunk);
}

int drps_chunk_map_is_busy(const struct drps_chunk_map *map, uint32_t chunk)
{
    return has(map->busy, chunk);
}

void drps_chunk_map_give_back(struct drps_chunk_map *map, struct drps_chunk_list *list)
{
    clear(map->taken, list->first);
    if (!map->pins[list->first]) set(map->free, list->first);
    list->first = map->next[list->first];
    if (list->first == DRPS_NO_CHUNK) list->last = DRPS_NO_CHUNK;
}

/* ---- Pins ---- */

/* Copy the first `from` elements of *array to a new one of n, whose others are zero. */
static int grow_array(void *array, size_t from, size_t n, size_t size)
{
    void *old, *more = calloc(n, size);
    memcpy(&old, array, sizeof(old));
    if (!more) return -ENOMEM;
    if (from) memcpy(more, old, from * size);
    free(old);
    memcpy(array, &more, sizeof(more));
    return 0;
}

int drps_chunk_map_grow(struct drps_chunk_map *map, uint64_t n)
{
    const size_t had = (size_t)map->n, words = map->n ? words_of(map->n) : 0;
    int rc = grow_array(&map->sums, had, (size_t)n, sizeof(*map->sums));
    if (rc == 0) rc = grow_array(&map->needs, had, (size_t)n, sizeof(*map->needs));
    if (rc == 0) rc = grow_array(&map->bytes, had, (size_t)n, sizeof(*map->bytes));
    if (rc == 0) rc = grow_array(&map->next, had, (size_t)n, sizeof(*map->next));
    if (rc == 0) rc = grow_array(&map->pins, had, (size_t)n, sizeof(*map->pins));
    if (rc == 0) rc = grow_array(&map->taken, words, words_of(n), sizeof(*map->taken));
    if (rc == 0) rc = grow_array(&map->free, words, words_of(n), sizeof(*map->free));
    if (rc == 0) rc = grow_array(&map->busy, words, words_of(n), sizeof(*map->busy));
    if (rc < 0) return rc; /* larger arrays do no harm */
    for (uint64_t i = had; i < n; i++)
        set(map->free, i);
    map->n = n;
    return 0;
}

void drps_chunk_map_pin(struct drps_chunk_map *map, uint32_t chunk, unsigned save)
{
    map->pins[chunk] |= (uint8_t)(1u << save);
    clear(map->free, chunk);
}

void drps_chunk_map_pin_taken(struct drps_chunk_map *map, unsigned save)
{
    for (uint64_t i = 0; i < map->n; i++)
        if (has(map->taken, i)) drps_chunk_map_pin(map, (uint32_t)i, save);
}

void drps_chunk_map_unpin(struct drps_chunk_map *map, unsigned save)
{
    for (uint64_t i = 0; i < map->n; i++) {
        map->pins[i] &= (uint8_t) ~(1u << save);
        if (!map->pins[i] && !has(map->taken, i)) set(map->free, i);
    }
}

int drps_chunk_map_is_taken(const struct drps_chunk_map *map, uint32_t chunk)
{
    return has(map->taken, chunk);
}

int drps_chunk_map_is_pinned(const struct drps_chunk_map *map, uint32_t chunk)
{
    return map->pins[chunk] != 0;
}

uint64_t drps_chunk_map_kept(const struct drps_chunk_map *map)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < map->n; i++)
        n += map->pins[i] || has(map->taken, i);
    return n;
}
