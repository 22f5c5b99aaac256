/* Bits and lists of the chunk map; chunk_map.h has the idea. */
#include "storage/relay/streams/chunk_map.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

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

int drps_chunk_map_init(struct drps_chunk_map *map, uint64_t n)
{
    const size_t words = (size_t)n / 64 + 1;
    *map = (struct drps_chunk_map){.n = n};
    map->sums = drps_array_new((size_t)n, sizeof(*map->sums));
    map->bytes = drps_array_new((size_t)n, sizeof(*map->bytes));
    map->next = drps_array_new((size_t)n, sizeof(*map->next));
    map->free = calloc(words, sizeof(*map->free));
    map->busy = calloc(words, sizeof(*map->busy));
    if (!map->sums || !map->bytes || !map->next || !map->free || !map->busy) return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        set(map->free, i);
    return 0;
}

void drps_chunk_map_destroy(struct drps_chunk_map *map)
{
    free(map->sums);
    free(map->bytes);
    free(map->next);
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

uint64_t drps_chunk_map_take(struct drps_chunk_map *map, uint32_t n, uint32_t *n_out)
{
    uint64_t first = find_free(map, map->cursor, map->n);
    if (first == map->n) first = find_free(map, 0, map->n);
    uint64_t end = first;
    for (; end < map->n && end - first < n && has(map->free, end); end++)
        clear(map->free, end);
    *n_out = (uint32_t)(end - first);
    map->cursor = end < map->n ? end : 0;
    return first;
}

void drps_chunk_map_append(struct drps_chunk_map *map, struct drps_chunk_list *list, uint32_t chunk,
                           uint32_t bytes, uint64_t sum)
{
    map->sums[chunk] = sum;
    map->bytes[chunk] = bytes;
    map->next[chunk] = DRPS_NO_CHUNK;
    if (list->last == DRPS_NO_CHUNK)
        list->first = chunk;
    else
        map->next[list->last] = chunk;
    list->last = chunk;
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
    set(map->free, list->first);
    list->first = map->next[list->first];
    if (list->first == DRPS_NO_CHUNK) list->last = DRPS_NO_CHUNK;
}
