/* Draws by prefix sums (draw.h). */
#include "index/negatives/draw.h"

#include "base/drps_find.h"
#include "base/drps_rng.h"

enum { TRIES = 64 }; /* of a draw, until it is an item that was not drawn yet */

uint32_t draw_find(const struct masses *m, const struct chosen *c, uint64_t at)
{
    /* The mass of what is not chosen below chosen item j grows with j. */
    size_t low = 0, high = c->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->before[c->items[middle]] - c->before[middle] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    at += c->before[low];
    uint32_t first = 0, end = m->items - 1;
    while (first < end) { /* the last item with no more than `at` before it */
        const uint32_t middle = end - (end - first) / 2;
        if (m->before[middle] <= at)
            first = middle;
        else
            end = middle - 1;
    }
    return first;
}

/* Takes all items that are not chosen; `out` has room for them. */
static size_t take_all(const struct masses *m, const struct chosen *c, uint32_t *out)
{
    size_t n = 0, j = 0;
    for (uint32_t item = 0; item < m->items; item++)
        if (j < c->n && c->items[j] == item)
            j++;
        else
            out[n++] = item;
    return n;
}

/* Returns the next item, going round, that is neither chosen nor marked; there is one. */
static uint32_t next_free(const struct masses *m, const struct chosen *c, const uint64_t *marks,
                          uint64_t mark, uint32_t item)
{
    do
        item = item + 1 < m->items ? item + 1 : 0;
    while (marks[item] == mark || drps_has_number(c->items, c->n, item));
    return item;
}

size_t draw_items(const struct masses *m, const struct chosen *c, uint64_t stream, size_t most,
                  uint64_t *marks, uint64_t *mark, uint32_t *out)
{
    const uint64_t mass = m->before[m->items] - c->before[c->n];
    uint64_t draw = 0;
    if (draw_others(m, c) <= most) return take_all(m, c, out);
    ++*mark;
    for (size_t i = 0; i < most; i++) {
        uint32_t item = 0;
        for (int t = 0; t == 0 || (t < TRIES && marks[item] == *mark); t++) {
            const uint64_t random = drps_rng_at(stream, draw++);
            item = draw_find(m, c, (uint64_t)((__uint128_t)random * mass >> 64));
        }
        if (marks[item] == *mark) item = next_free(m, c, marks, *mark, item);
        marks[item] = *mark;
        out[i] = item;
    }
    return most;
}
