/*
 * Products in floats are only a filter. While the worst of the best has score t, an item whose
 * product is below t - base by more than the error that a product may have cannot be better; nearly
 * all are passed over so, many at a time. What is left is computed in double.
 */
#include "engine/recommend/math/drps_top.h"

#include <float.h>
#include <math.h>

#include "base/drps_find.h"
#include "base/kernel/drps_level.h"
#include "engine/recommend/math/drps_products.h"

enum { RUN = 256, SMALL_RUN = 32, SUMS = 8 };

/* Products of floats are exact in double, so that only the order of additions matters: eight sums
 * of every eighth product, added pairwise. */
DRPS_KERNEL(double, drps_top_score, (const struct drps_top *t, const float *vector), (t, vector))
{
    double sums[SUMS] = {0};
    size_t k = 0;
    for (; k + SUMS <= t->d; k += SUMS)
#pragma omp simd
        for (size_t i = 0; i < SUMS; i++)
            sums[i] += (double)t->vector[k + i] * (double)vector[k + i];
    for (size_t i = 0; k + i < t->d; i++)
        sums[i] += (double)t->vector[k + i] * (double)vector[k + i];
    for (size_t half = SUMS / 2; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            sums[i] += sums[i + half];
    return t->base + sums[0];
}

/* ---- The heap ---- */

/* The heap has changed. What is rounded, in double and in floats, is taken off. */
static void set_floor(struct drps_top *t)
{
    const double worst = t->heap[0].score, off = worst - t->base;
    if (t->n < t->most) return;
    t->floor = off - DRPS_PRODUCT_TINY - (double)FLT_EPSILON * fabs(off) -
               1e-14 * (fabs(worst) + fabs(t->base));
}

static void add(struct drps_top *t, struct drps_best best)
{
    if (drps_best_offer(t->heap, &t->n, t->most, best)) set_floor(t);
}

DRPS_KERNEL(void, drps_top_sort, (struct drps_top * t), (t))
{
    drps_best_sort(t->heap, t->n);
}

/* ---- The filter ---- */

/* No sum of products whose error is below this overflows. */
#define LARGEST_ERROR ((double)FLT_EPSILON / 2 * (double)FLT_MAX / 4)

/* Products below what this returns are of items that are not better; -infinity: any may be. The
 * error is taken a little larger, for what is rounded in the bound itself. */
static float bound_of(const struct drps_top *t, double item_norm)
{
    const double error = t->error * item_norm, bound = t->floor - 1.001 * error;
    if (!(error < LARGEST_ERROR) || !(fabs(bound) < (double)FLT_MAX)) return -INFINITY;
    return (float)bound;
}

/* Whether one of so many products is not below the bound. */
static inline int any_of(const float *products, size_t n, float bound)
{
    int any = 0;
    for (size_t j = 0; j < n; j++)
        any |= !(products[j] < bound);
    return any;
}

/* The same; whole runs, which most are, at a known length. */
static int any_left(const float *products, size_t n, float bound)
{
    if (n == RUN) return any_of(products, RUN, bound);
    return n == SMALL_RUN ? any_of(products, SMALL_RUN, bound) : any_of(products, n, bound);
}

static int is_seen(const struct drps_top *t, uint32_t row)
{
    return drps_has_number(t->seen, t->seen_n, row);
}

/* Items [from, end) one by one; the bound grows. Returns how many scores it computed. */
static uint64_t look_at(struct drps_top *t, const struct drps_top_items *items, size_t from,
                        size_t end, float *bound)
{
    uint64_t computed = 0;
    for (size_t j = from; j < end; j++) {
        if (items->products[j] < *bound || is_seen(t, items->rows[j])) continue;
        add(t, (struct drps_best){drps_top_score(t, items->vectors + j * t->d), items->rows[j]});
        *bound = bound_of(t, items->norm);
        computed++;
    }
    return computed;
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

DRPS_KERNEL(uint64_t, drps_top_look, (struct drps_top * t, const struct drps_top_items *items),
            (t, items))
{
    float bound = bound_of(t, items->norm);
    uint64_t computed = 0;
    for (size_t from = 0, end; from < items->n; from = end) {
        end = from + least_of(items->n - from, RUN);
        if (!any_left(items->products + from, end - from, bound)) continue;
        for (size_t at = from, n; at < end; at += n) {
            n = least_of(end - at, SMALL_RUN);
            if (any_left(items->products + at, n, bound))
                computed += look_at(t, items, at, at + n, &bound);
        }
    }
    return computed;
}
