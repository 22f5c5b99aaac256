/* A heap of merges that could be made, best first (candidates.h). */
#include "index/blocks/builders/candidates.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

/* Put `c` at the free position `at` or below it. */
static void sink(struct candidates *h, size_t at, struct candidate c)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < h->n && candidate_before(&h->list[child + 1], &h->list[child])) child++;
        if (child >= h->n || !candidate_before(&h->list[child], &c)) break;
        h->list[at] = h->list[child];
        at = child;
    }
    h->list[at] = c;
}

int drps_candidates_push(struct candidates *h, const struct candidate *c, struct drps_err *err)
{
    if (drps_array_reserve(&h->list, &h->cap, h->n + 1, sizeof(*h->list)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu candidates", h->n + 1);
    size_t at = h->n++;
    while (at > 0 && candidate_before(c, &h->list[(at - 1) / 2])) {
        h->list[at] = h->list[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->list[at] = *c;
    return 0;
}

struct candidate drps_candidates_pop(struct candidates *h)
{
    const struct candidate best = h->list[0];
    const struct candidate last = h->list[--h->n];
    if (h->n) sink(h, 0, last);
    return best;
}

void drps_candidates_order(struct candidates *h)
{
    for (size_t at = h->n / 2; at-- > 0;)
        sink(h, at, h->list[at]);
}

void drps_candidates_free(struct candidates *h)
{
    free(h->list);
    *h = (struct candidates){0};
}
