/* Adds up the numbers of a column, and draws a sample of them. */
#include "index/reader/scales/drps_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

enum { LEAST_DRAWN = 64, MOST_DRAWN = 16384 };
#define DRAW_STREAM 0x6472617775u /* "drawu" */

size_t drps_numbers_most(size_t columns)
{
    const size_t each = columns ? DRPS_NUMBERS_DRAWN / columns : MOST_DRAWN;
    return each < LEAST_DRAWN ? LEAST_DRAWN : each > MOST_DRAWN ? MOST_DRAWN : each;
}

/* Number n - 1 of a column stays in the sample with the probability most / n. */
static int draw(struct drps_numbers *x, float v, struct drps_err *err)
{
    if (x->drawn_n < x->most) {
        if (drps_array_reserve(&x->drawn, &x->drawn_cap, x->drawn_n + 1, sizeof(*x->drawn)))
            return drps_err_set(err, -ENOMEM, "numbers of a column");
        x->drawn[x->drawn_n++] = v;
        return 0;
    }
    const uint64_t at = drps_rng_at(DRAW_STREAM, x->n) % x->n;
    if (at < x->most) x->drawn[at] = v;
    return 0;
}

int drps_numbers_add(struct drps_numbers *x, float v, struct drps_err *err)
{
    const double before = (double)v - x->mean;
    x->n++;
    x->zeros += v == 0;
    x->mean += before / (double)x->n;
    x->squares += before * ((double)v - x->mean);
    return x->most ? draw(x, v, err) : 0;
}

void drps_numbers_destroy(struct drps_numbers *x)
{
    free(x->drawn);
    memset(x, 0, sizeof(*x));
}

double drps_numbers_variance_about(const struct drps_numbers *x, double from)
{
    const double off = x->mean - from;
    return x->n ? x->squares / (double)x->n + off * off : 0;
}

static int compare_floats(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void drps_numbers_sort(struct drps_numbers *x)
{
    if (x->drawn_n) qsort(x->drawn, x->drawn_n, sizeof(*x->drawn), compare_floats);
}
