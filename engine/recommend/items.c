/* Items that are held are read in the first pass. */
#include "engine/recommend/items.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "engine/recommend/math/drps_norm.h"

static size_t tiles_of(size_t items)
{
    return (items + DRPS_TILE_ITEMS - 1) / DRPS_TILE_ITEMS;
}

uint64_t drps_items_memory(size_t d, size_t cap)
{
    return cap * (d * (uint64_t)sizeof(float) + sizeof(uint32_t)) + tiles_of(cap) * sizeof(double);
}

int drps_items_init(struct drps_items *it, struct drps_modeldir *md, const char *model,
                    const struct drps_rowset *allowed, int cosine, size_t cap, struct drps_err *err)
{
    const size_t d = drps_modeldir_info(md)->model.dim;
    *it = (struct drps_items){
        .md = md, .model = model, .allowed = allowed, .cosine = cosine, .d = d, .cap = cap};
    it->vectors = drps_array_new(cap, d * sizeof(*it->vectors));
    it->rows = drps_array_new(cap, sizeof(*it->rows));
    it->longest = drps_array_new(tiles_of(cap), sizeof(*it->longest));
    if (it->vectors && it->rows && it->longest) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for %zu items", cap);
}

void drps_items_destroy(struct drps_items *it)
{
    free(it->vectors);
    free(it->rows);
    free(it->longest);
    *it = (struct drps_items){.cap = 0};
}

void drps_items_rewind(struct drps_items *it)
{
    it->at = it->next_row = 0;
}

int drps_items_read(struct drps_modeldir *md, const char *model, const uint32_t *rows, size_t n,
                    int cosine, float *vectors, struct drps_err *err)
{
    const size_t d = drps_modeldir_info(md)->model.dim;
    int rc = drps_modeldir_gather(md, rows, n, vectors, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        float *v = vectors + i * d;
        if (!isfinite(drps_norm(v, d)))
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: parameters of row %u are no numbers",
                                model, rows[i]);
        if (!cosine) continue;
        v[0] = 0;
        drps_normalise(v + 1, d - 1);
    }
    return rc;
}

/* Read the next items of the pass to place `to`. */
static int load(struct drps_items *it, size_t to, size_t n, struct drps_err *err)
{
    for (size_t i = to; i < to + n; i++) {
        const uint64_t row = drps_rowset_next(it->allowed, it->next_row);
        it->rows[i] = (uint32_t)row;
        it->next_row = row + 1;
    }
    const int rc = drps_items_read(it->md, it->model, it->rows + to, n, it->cosine,
                                   it->vectors + to * it->d, err);
    for (size_t i = to; rc == 0 && i < to + n; i++) {
        double *longest = &it->longest[i / DRPS_TILE_ITEMS];
        const double norm = drps_norm(it->vectors + i * it->d, it->d);
        if (i % DRPS_TILE_ITEMS == 0 || norm > *longest) *longest = norm;
    }
    it->bytes += n * it->d * sizeof(float);
    return rc;
}

int drps_items_next(struct drps_items *it, struct drps_items_block *block, struct drps_err *err)
{
    const int held = it->cap >= it->allowed->n;
    const uint64_t left = it->allowed->n - it->at;
    const size_t n = left < DRPS_BLOCK_ITEMS ? (size_t)left : DRPS_BLOCK_ITEMS;
    const size_t from = held ? (size_t)it->at : 0;
    int rc = 0;

    *block = (struct drps_items_block){.n = 0};
    if (!held || from >= it->loaded) {
        rc = n ? load(it, from, n, err) : 0;
        it->passes += !it->at && n;
        it->loaded = from + n;
    }
    if (rc < 0) return rc;
    it->at += n;
    *block = (struct drps_items_block){.vectors = it->vectors + from * it->d,
                                       .rows = it->rows + from,
                                       .longest = it->longest + from / DRPS_TILE_ITEMS,
                                       .n = n};
    return 0;
}
