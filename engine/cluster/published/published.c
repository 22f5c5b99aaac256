/* Published values, by slot. */
#include "engine/cluster/published/drps_published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "engine/cluster/published/drps_rowvalues.h"

struct drps_published {
    struct drps_pull_options options;
    uint32_t dim, words;
    float *values;       /* own: [slots][dim] */
    uint64_t *copies;    /* own: [slots][words] a bit for each worker: its copy is these values */
    uint8_t *is_changed; /* own: [slots] 1: the row has other values by now */
    float *rounded;      /* own: [dim] */
};

double drps_published_threshold(const struct drps_pull_options *o, uint64_t t)
{
    return o->psi / (1 + o->decay * log((double)t));
}

static uint32_t words_of(uint32_t workers)
{
    return (workers + 63) / 64;
}

uint64_t drps_published_bytes(uint64_t slots, uint32_t dim, uint32_t workers)
{
    return slots * (dim * sizeof(float) + words_of(workers) * sizeof(uint64_t) + 1);
}

struct drps_published *drps_published_new(const struct drps_pull_options *options, uint64_t slots,
                                          uint32_t dim, uint32_t workers)
{
    struct drps_published *p = calloc(1, sizeof(*p));
    if (!p) return NULL;
    p->options = *options;
    if (!p->options.bits) p->options.bits = 32;
    p->dim = dim;
    p->words = words_of(workers);
    p->values = drps_array_new(slots, dim * sizeof(*p->values));
    p->copies = calloc(slots, p->words * sizeof(*p->copies));
    p->is_changed = calloc(slots, sizeof(*p->is_changed));
    p->rounded = drps_array_new(dim, sizeof(*p->rounded));
    if (p->values && p->copies && p->is_changed && p->rounded) return p;
    drps_published_free(p);
    return NULL;
}

void drps_published_free(struct drps_published *p)
{
    if (!p) return;
    free(p->values);
    free(p->copies);
    free(p->is_changed);
    free(p->rounded);
    free(p);
}

/* ---- Copies ---- */

static uint64_t *copies_of(const struct drps_published *p, uint32_t slot)
{
    return p->copies + (size_t)slot * p->words;
}

static float *values_of(const struct drps_published *p, uint32_t slot)
{
    return p->values + (size_t)slot * p->dim;
}

static int has_copies(const struct drps_published *p, uint32_t slot)
{
    const uint64_t *copies = copies_of(p, slot);
    uint64_t any = 0;
    for (uint32_t i = 0; i < p->words; i++)
        any |= copies[i];
    return any != 0;
}

static void mark(struct drps_published *p, uint32_t slot, uint32_t worker, int keeps)
{
    const uint64_t bit = UINT64_C(1) << worker % 64;
    uint64_t *word = &copies_of(p, slot)[worker / 64];
    *word = keeps ? *word | bit : *word & ~bit;
}

int drps_published_has(const struct drps_published *p, uint32_t slot, uint32_t worker)
{
    return (int)(copies_of(p, slot)[worker / 64] >> worker % 64 & 1);
}

/* ---- Sending ---- */

const float *drps_published_send(struct drps_published *p, uint32_t slot, uint32_t worker,
                                 int keeps, const float *row)
{
    float *values = values_of(p, slot);
    if (!has_copies(p, slot)) {
        memcpy(values, row, p->dim * sizeof(*values));
        (void)drps_rowvalues_round(p->options.bits, values, p->dim);
        p->is_changed[slot] = 0;
    }
    mark(p, slot, worker, keeps);
    return values;
}

int drps_published_leave_out(struct drps_published *p, uint32_t slot, uint32_t worker, int keeps)
{
    mark(p, slot, worker, keeps);
    return p->is_changed[slot];
}

/* ---- Stepping ---- */

/* Whether some value is as far from what is published as the threshold, or no number. */
static int is_far(const struct drps_published *p, const float *row, const float *values,
                  double threshold)
{
    for (uint32_t k = 0; k < p->dim; k++) {
        const double most = threshold * fmax(fabs((double)values[k]), p->options.eps);
        if (!(fabs((double)row[k] - (double)values[k]) < most)) return 1;
    }
    return 0;
}

void drps_published_step(struct drps_published *p, uint32_t slot, const float *row,
                         double threshold)
{
    const float *values = values_of(p, slot);
    if (!has_copies(p, slot)) return;
    memcpy(p->rounded, row, p->dim * sizeof(*row));
    (void)drps_rowvalues_round(p->options.bits, p->rounded, p->dim);
    p->is_changed[slot] = memcmp(p->rounded, values, p->dim * sizeof(*values)) != 0;
    if (p->is_changed[slot] && is_far(p, row, values, threshold))
        memset(copies_of(p, slot), 0, p->words * sizeof(uint64_t));
}
