/* Which product is used: each is timed on a block of numbers that is much as a run's are. */
#include "engine/recommend/choose.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/drps_clock.h"
#include "engine/model/math/drps_blas.h"

enum { TRY_QUERIES = 120, TRY_ITEMS = 512, TRIES = 3 };

/* Returns the least time of some products; the first one warms up. */
static uint64_t time_of(drps_product product, size_t d, float *data)
{
    const float *queries = data, *items = queries + TRY_QUERIES * d;
    float *scores = data + (TRY_QUERIES + TRY_ITEMS) * d;
    uint64_t least = UINT64_MAX;
    for (int i = 0; i <= TRIES; i++) {
        const uint64_t start = drps_clock_ns();
        product(queries, TRY_QUERIES, items, TRY_ITEMS, d, scores,
                scores + TRY_QUERIES * TRY_ITEMS);
        const uint64_t ns = drps_clock_ns() - start;
        if (i && ns < least) least = ns;
    }
    return least;
}

static drps_product fastest(size_t d)
{
    const size_t floats = (TRY_QUERIES + TRY_ITEMS) * d;
    float *data = calloc(floats + TRY_QUERIES * TRY_ITEMS + drps_product_scratch(d), sizeof(*data));
    drps_product found = drps_product_own;
    if (!data) return found; /* either does */
    for (size_t i = 0; i < floats; i++)
        data[i] = (float)(i % 7);
    if (time_of(drps_product_blas, d, data) < time_of(drps_product_own, d, data))
        found = drps_product_blas;
    free(data);
    return found;
}

drps_product drps_product_choose(enum drps_products wanted, size_t d, unsigned threads)
{
    if (!drps_product_has_blas()) return drps_product_own;
    if (wanted == DRPS_PRODUCTS_OPENBLAS) return drps_product_blas;
    if (wanted == DRPS_PRODUCTS_OWN || (threads > 1 && drps_blas_takes_turns()))
        return drps_product_own;
    return fastest(d);
}

const char *drps_product_name(drps_product product)
{
    return product == drps_product_own ? "own" : "openblas";
}
