/* Adds up the numbers of a column, and draws a sample of them. */
#include "index/reader/scales/drps_numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"

enum { LEAST_DRAWN = 64, MOST_DRAWN = 16384 };
#define DRAW_STREAM 0x6472617775u /* "drawu" */

size_t drps_numbers_most(size_t columns, uint64_t room_bytes)
{
    const uint64_t each = room_bytes / sizeof(float) / (columns ? columns : 1);
    return each < LEAST_DRAWN ? 0 : each > MOST_DRAWN ? MOST_DRAWN : (size_t)each;
}

/* Room grows by doubling, up to what all of the sample needs. */
static int grow(struct drps_numbers *x, struct drps_err *err)
{
    const size_t most = x->most, twice = x->drawn_cap ? 2 * x->drawn_cap : LEAST_DRAWN;
    const size_t cap = twice < most ? twice : most;
    float *drawn = realloc(x->drawn, cap * sizeof(*drawn));
    if (!drawn) return drps_err_set(err, -ENOMEM, "numbers of a column");
    x->drawn = drawn;
    x->drawn_cap = cap;
    return 0;
}

/* Number n - 1 of a column stays in the sample with the probability most / n. */
static int draw(struct drps_numbers *x, float v, struct drps_err *err)
{
    if (x->drawn_n < x->most) {
        if (x->drawn_n == x->drawn_cap) {
            const int rc = grow(x, err);
            if (rc < 0) return rc;
        }
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
