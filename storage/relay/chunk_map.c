#include "storage/relay/chunk_map.h"

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

int drps_chunk_map_init(struct drps_chunk_map *slots, uint64_t n)
{
    const size_t words = (size_t)n / 64 + 1;
    *slots = (struct drps_chunk_map){.n = n};
    slots->sums = drps_array_new((size_t)n, sizeof(*slots->sums));
    slots->bytes = drps_array_new((size_t)n, sizeof(*slots->bytes));
    slots->next = drps_array_new((size_t)n, sizeof(*slots->next));
    slots->vacant = calloc(words, sizeof(*slots->vacant));
    slots->busy = calloc(words, sizeof(*slots->busy));
    if (!slots->sums || !slots->bytes || !slots->next || !slots->vacant || !slots->busy)
        return -ENOMEM;
    for (uint64_t i = 0; i < n; i++)
        set(slots->vacant, i);
    return 0;
}

void drps_chunk_map_destroy(struct drps_chunk_map *slots)
{
    free(slots->sums);
    free(slots->bytes);
    free(slots->next);
    free(slots->vacant);
    free(slots->busy);
}

/* The first vacant slot of [from, end), or end. */
static uint64_t find_vacant(const struct drps_chunk_map *slots, uint64_t from, uint64_t end)
{
    while (from < end) {
        const uint64_t word = slots->vacant[from / 64] >> from % 64;
        if (word) {
            from += (uint64_t)__builtin_ctzll(word);
            return from < end ? from : end;
        }
        from = (from / 64 + 1) * 64;
    }
    return end;
}

uint64_t drps_chunk_map_take(struct drps_chunk_map *slots, uint32_t n, uint32_t *n_out)
{
    uint64_t first = find_vacant(slots, slots->cursor, slots->n);
    if (first == slots->n) first = find_vacant(slots, 0, slots->n);
    uint64_t end = first;
    for (; end < slots->n && end - first < n && has(slots->vacant, end); end++)
        clear(slots->vacant, end);
    *n_out = (uint32_t)(end - first);
    slots->cursor = end < slots->n ? end : 0;
    return first;
}

void drps_chunk_map_append(struct drps_chunk_map *slots, struct drps_slot_list *list, uint32_t slot,
                           uint32_t bytes, uint64_t sum)
{
    slots->sums[slot] = sum;
    slots->bytes[slot] = bytes;
    slots->next[slot] = DRPS_NO_SLOT;
    if (list->last == DRPS_NO_SLOT)
        list->first = slot;
    else
        slots->next[list->last] = slot;
    list->last = slot;
    set(slots->busy, slot);
}

void drps_chunk_map_written(struct drps_chunk_map *slots, uint32_t slot)
{
    clear(slots->busy, slot);
}

int drps_chunk_map_is_busy(const struct drps_chunk_map *slots, uint32_t slot)
{
    return has(slots->busy, slot);
}

void drps_chunk_map_give_back(struct drps_chunk_map *slots, struct drps_slot_list *list)
{
    set(slots->vacant, list->first);
    list->first = slots->next[list->first];
    if (list->first == DRPS_NO_SLOT) list->last = DRPS_NO_SLOT;
}
