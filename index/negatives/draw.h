/*
 * Items are drawn for a user among those that the user has not chosen, without rejection: a random
 * number below the mass of all such items is looked up twice, among the items that the user has
 * chosen and among all. So a user who has chosen nearly all costs no more than any other. Private
 * to index/negatives/.
 */
#ifndef DRPS_INDEX_NEGATIVES_DRAW_H
#define DRPS_INDEX_NEGATIVES_DRAW_H

#include <stddef.h>
#include <stdint.h>

/* Says how often items are drawn. */
struct masses {
    const uint64_t *before; /* [items + 1] sum of the masses of items below each; borrowed */
    uint32_t items;
};

/* Lists what a user has chosen. */
struct chosen {
    const uint32_t *items;  /* [n] increasing */
    const uint64_t *before; /* [n + 1] sum of the masses of those below each in the list */
    size_t n;
};

/* Returns how many items the user has not chosen. */
static inline uint32_t draw_others(const struct masses *m, const struct chosen *c)
{
    return m->items - (uint32_t)c->n;
}

/* Returns the item for a random number `at` below the mass of all that are not chosen. */
uint32_t draw_find(const struct masses *m, const struct chosen *c, uint64_t at);

/*
 * Draws up to `most` different items that are not chosen, in the order of the draws: all of them,
 * in their own order, where there are no more. Draw i of attempt t depends on `stream` alone. marks
 * [items] are the caller's, each below *mark before the first call; *mark grows. Returns how many
 * were drawn.
 */
size_t draw_items(const struct masses *m, const struct chosen *c, uint64_t stream, size_t most,
                  uint64_t *marks, uint64_t *mark, uint32_t *out);

#endif
