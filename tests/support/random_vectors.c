#include "support/random_vectors.h"

#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"

static void *array(size_t n, size_t size)
{
    void *a = calloc(n ? n : 1, size);
    if (!a) abort();
    return a;
}

static struct own_vectors empty(uint32_t n, uint32_t dim, size_t entries)
{
    struct own_vectors o = {.u = array((size_t)n * dim, sizeof(float)),
                            .values = array(entries, sizeof(float)),
                            .first = array((size_t)n + 1, sizeof(uint32_t)),
                            .ids = array(entries, sizeof(uint32_t))};
    o.v = (struct drps_vectors){n, dim, o.u, o.first, o.ids, o.values};
    return o;
}

static float value_at(uint64_t seed, uint64_t i)
{
    return 2 * drps_unit_float(drps_rng_at(seed, i)) - 1;
}

struct own_vectors random_vectors(uint64_t seed, uint32_t n, uint32_t dim, uint32_t rows,
                                  uint32_t nnz)
{
    struct own_vectors o = empty(n, dim, (size_t)n * rows);
    uint32_t at = 0;
    for (size_t i = 0; i < (size_t)n * dim; i++)
        o.u[i] = value_at(seed, i);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < rows; k++) {
            const uint64_t number = (uint64_t)i * rows + k;
            if (drps_rng_at(seed + 1, number) % rows >= nnz) continue;
            o.ids[at] = k;
            o.values[at++] = value_at(seed + 2, number);
        }
        o.first[i + 1] = at;
    }
    return o;
}

void own_vectors_free(struct own_vectors *o)
{
    free(o->u);
    free(o->values);
    free(o->first);
    free(o->ids);
}

void vectors_add(const struct drps_vectors *v, double by, double *matrix)
{
    for (uint32_t i = 0; i < v->n; i++)
        for (uint32_t e = v->first[i]; e < v->first[i + 1]; e++)
            for (uint32_t k = 0; k < v->dim; k++)
                matrix[(size_t)v->ids[e] * v->dim + k] +=
                    by * (double)v->values[e] * (double)v->u[(size_t)i * v->dim + k];
}

struct own_vectors vectors_picked(const struct drps_vectors *v, const uint32_t *picks, uint32_t n,
                                  const float *u)
{
    struct own_vectors o = empty(n, v->dim, v->first[v->n]);
    memcpy(o.u, u, (size_t)n * v->dim * sizeof(float));
    for (uint32_t c = 0; c < n; c++) {
        const uint32_t from = v->first[picks[c]], entries = v->first[picks[c] + 1] - from;
        memcpy(o.ids + o.first[c], v->ids + from, entries * sizeof(uint32_t));
        memcpy(o.values + o.first[c], v->values + from, entries * sizeof(float));
        o.first[c + 1] = o.first[c] + entries;
    }
    return o;
}
