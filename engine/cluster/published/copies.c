/* Copies, by residual slot. */
#include "engine/cluster/published/drps_copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

struct drps_copies {
    uint32_t dim;
    float *values;                  /* own: [slots][dim] */
    uint8_t *is_there;              /* own: [slots] 1: a copy is in it */
    struct drps_residual_rows rows; /* own: of the batch that other servers have */
    uint8_t *has;                   /* own: [rows] 1: its slot has a copy of it */
};

uint64_t drps_copies_bytes(uint64_t slots, uint32_t dim, uint64_t most_rows)
{
    return slots * (dim * sizeof(float) + 1) + most_rows * (3 * sizeof(uint32_t) + 2);
}

struct drps_copies *drps_copies_new(uint64_t slots, uint32_t dim, uint64_t most_rows)
{
    struct drps_copies *c = calloc(1, sizeof(*c));
    if (!c) return NULL;
    c->dim = dim;
    c->values = drps_array_new(slots, dim * sizeof(*c->values));
    c->is_there = calloc(slots, sizeof(*c->is_there));
    c->rows.slot = drps_array_new(most_rows, sizeof(*c->rows.slot));
    c->rows.whole = drps_array_new(most_rows, sizeof(*c->rows.whole));
    c->rows.room = drps_array_new(2 * most_rows, sizeof(*c->rows.room));
    c->has = drps_array_new(most_rows, sizeof(*c->has));
    if (c->values && c->is_there && c->rows.slot && c->rows.whole && c->rows.room && c->has)
        return c;
    drps_copies_free(c);
    return NULL;
}

void drps_copies_free(struct drps_copies *c)
{
    if (!c) return;
    free(c->values);
    free(c->is_there);
    free(c->rows.slot);
    free(c->rows.whole);
    free(c->rows.room);
    free(c->has);
    free(c);
}

struct drps_residual_rows *drps_copies_rows(struct drps_copies *c)
{
    return &c->rows;
}

/* Rows that give their slot up come first: others of the batch may get it. */
void drps_copies_begin(struct drps_copies *c)
{
    const struct drps_residual_rows *r = &c->rows;
    memset(c->has, 0, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        if (!r->whole[i] || r->slot[i] == DRPS_NO_SLOT) continue;
        c->has[i] = c->is_there[r->slot[i]];
        c->is_there[r->slot[i]] = 0;
    }
    for (uint32_t i = 0; i < r->n; i++)
        if (!r->whole[i]) c->has[i] = c->is_there[r->slot[i]];
}

static float *values_of(const struct drps_copies *c, size_t i)
{
    return c->values + (size_t)c->rows.slot[i] * c->dim;
}

const float *drps_copies_at(const struct drps_copies *c, size_t i)
{
    return i < c->rows.n && c->has[i] ? values_of(c, i) : NULL;
}

void drps_copies_keep(struct drps_copies *c, const float *params, size_t own_first, size_t own_n)
{
    for (size_t i = 0; i < c->rows.n; i++) {
        const size_t row = i < own_first ? i : i + own_n;
        if (c->rows.whole[i]) continue;
        memcpy(values_of(c, i), params + row * c->dim, c->dim * sizeof(*params));
        c->is_there[c->rows.slot[i]] = 1;
    }
}
