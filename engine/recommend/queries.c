/* Arrays side by side; what a query has seen lies behind what those before it have. */
#include "engine/recommend/queries.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/recommend/math/drps_norm.h"
#include "engine/recommend/math/drps_products.h"

uint64_t drps_queries_memory(size_t d, size_t most, size_t cap, size_t seen_cap)
{
    return cap * (d * (uint64_t)sizeof(float) + most * (uint64_t)sizeof(struct drps_best) +
                  4 * sizeof(double) + sizeof(uint64_t) + 2 * sizeof(size_t)) +
           sizeof(size_t) + seen_cap * (uint64_t)sizeof(uint32_t);
}

int drps_queries_init(struct drps_queries *q, size_t d, size_t most, size_t cap, size_t seen_cap,
                      struct drps_err *err)
{
    *q = (struct drps_queries){.cap = cap, .d = d, .most = most, .seen_cap = seen_cap};
    q->vectors = drps_array_new(cap, d * sizeof(*q->vectors));
    q->base = drps_array_new(cap, sizeof(*q->base));
    q->floor = drps_array_new(cap, sizeof(*q->floor));
    q->error = drps_array_new(cap, sizeof(*q->error));
    q->ids = drps_array_new(cap, sizeof(*q->ids));
    q->heaps = drps_array_new(cap, most * sizeof(*q->heaps));
    q->found = drps_array_new(cap, sizeof(*q->found));
    q->seen_starts = drps_array_new(cap + 1, sizeof(*q->seen_starts));
    q->seen = drps_array_new(seen_cap, sizeof(*q->seen));
    if (!q->vectors || !q->base || !q->floor || !q->error || !q->ids || !q->heaps || !q->found ||
        !q->seen_starts || !q->seen)
        return drps_err_set(err, -ENOMEM, "no memory for %zu users at a time", cap);
    q->seen_starts[0] = 0;
    return 0;
}

void drps_queries_destroy(struct drps_queries *q)
{
    free(q->vectors);
    free(q->base);
    free(q->floor);
    free(q->error);
    free(q->ids);
    free(q->heaps);
    free(q->found);
    free(q->seen_starts);
    free(q->seen);
    *q = (struct drps_queries){.cap = 0};
}

void drps_queries_clear(struct drps_queries *q)
{
    const size_t at = q->seen_starts[q->n];
    memmove(q->seen, q->seen + at, (q->seen_n - at) * sizeof(*q->seen));
    q->seen_n -= at;
    q->n = 0;
}

int drps_queries_saw(struct drps_queries *q, uint32_t row)
{
    if (q->seen_n > q->seen_starts[q->n] && q->seen[q->seen_n - 1] == row) return 1;
    if (q->seen_n == q->seen_cap) return 0;
    q->seen[q->seen_n++] = row;
    return 1;
}

void drps_queries_add(struct drps_queries *q, uint64_t id, double base)
{
    q->ids[q->n] = id;
    q->base[q->n] = base;
    q->floor[q->n] = -INFINITY;
    q->found[q->n] = 0;
    q->seen_starts[++q->n] = q->seen_n;
}

void drps_queries_ready(struct drps_queries *q)
{
    const double of_unit = drps_product_error(q->d);
    for (size_t i = 0; i < q->n; i++)
        q->error[i] = of_unit * drps_norm(q->vectors + i * q->d, q->d);
}

struct drps_top drps_queries_top(const struct drps_queries *q, size_t i)
{
    return (struct drps_top){.vector = q->vectors + i * q->d,
                             .d = q->d,
                             .error = q->error[i],
                             .base = q->base[i],
                             .floor = q->floor[i],
                             .seen = q->seen + q->seen_starts[i],
                             .seen_n = q->seen_starts[i + 1] - q->seen_starts[i],
                             .heap = q->heaps + i * q->most,
                             .most = q->most,
                             .n = q->found[i]};
}

void drps_queries_found(struct drps_queries *q, size_t i, const struct drps_top *top)
{
    q->found[i] = top->n;
    q->floor[i] = top->floor;
}
