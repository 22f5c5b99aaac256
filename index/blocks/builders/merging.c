/*
 * What builders that merge share (merging.h): access counts and sizes of blocks, which merges
 * are allowed, and the layout at the end.
 */
#include "index/blocks/builders/merging.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "base/drps_size.h"
#include "index/blocks/builders/kept.h"

enum { ROW_BYTES = 4 * sizeof(uint32_t) + 1 };

uint64_t drps_merging_bytes(uint64_t rows)
{
    return rows * ROW_BYTES;
}

int drps_merging_refuse(const struct block_options *options, uint64_t needed, struct drps_err *err)
{
    char given[32], wanted[32];
    drps_err_clear(err);
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "merging blocks needs %s (%" PRIu64
                        " bytes) of memory and may take %s: give more",
                        drps_size_format(needed, wanted, sizeof(wanted)), needed,
                        drps_size_format(options->memory_bytes, given, sizeof(given)));
}

/* Rows that are used often enough to merge, table by table. */
static int tell_groups(struct merging *m, struct drps_err *err)
{
    struct kept_limit limit;
    uint32_t *sorted = m->into, *aux = m->merged; /* which are filled in later */
    memcpy(sorted, m->count, m->rows * sizeof(*sorted));
    drps_sort_u32(sorted, aux, m->rows);
    drps_kept_limit(sorted, m->rows, m->options, &limit);
    for (size_t t = 0; t < m->tables->n; t++)
        for (uint32_t row = m->tables->first[t]; row < m->tables->first[t + 1]; row++)
            m->group[row] = drps_kept_limit_has(&limit, m->count[row]) ? (uint8_t)(t + 1) : 0;
    return m->counts->ops->groups(m->counts, m->group, err);
}

int drps_merging_begin(struct merging *m, struct counts *counts, const struct block_tables *tables,
                       const struct block_options *options, struct drps_err *err)
{
    const uint32_t rows = tables->first[tables->n];

    *m = (struct merging){.counts = counts, .tables = tables, .options = options, .rows = rows};
    m->count = drps_array_new(rows, sizeof(*m->count));
    m->size = drps_array_new(rows, sizeof(*m->size));
    m->into = drps_array_new(rows, sizeof(*m->into));
    m->merged = drps_array_new(rows, sizeof(*m->merged));
    m->group = drps_array_new(rows, sizeof(*m->group));
    if (!m->count || !m->size || !m->into || !m->merged || !m->group)
        return drps_err_set(err, -ENOMEM, "no memory to merge %u rows", rows);
    int rc = counts->ops->reset(counts, err);
    if (rc == 0) rc = counts->ops->counts(counts, m->count, err);
    if (rc == 0) rc = tell_groups(m, err);
    for (uint32_t row = 0; row < rows; row++) {
        m->size[row] = 1;
        m->into[row] = row;
        m->merged[row] = 0;
    }
    return rc;
}

void drps_merging_end(struct merging *m)
{
    free(m->count);
    free(m->size);
    free(m->into);
    free(m->merged);
    free(m->group);
}

double drps_merging_gain(const struct merging *m, uint32_t a, uint32_t b, uint32_t both)
{
    const struct block_cost *cost = &m->options->cost;
    const uint64_t extra =
        (uint64_t)(m->count[a] - both) * m->size[b] + (uint64_t)(m->count[b] - both) * m->size[a];
    return cost->seek * both - cost->row * (double)extra;
}

/* Whether the merged block keeps within the limits. */
static int is_allowed(const struct merging *m, const struct candidate *c)
{
    const struct block_options *o = m->options;
    const uint64_t size = (uint64_t)m->size[c->a] + m->size[c->b];
    const double count = (double)m->count[c->a] + m->count[c->b] - c->both;
    return size <= o->max_rows &&
           (o->max_weight <= 0 ||
            count * (o->cost.seek + (double)size * o->cost.row) <= o->max_weight * o->sample);
}

int drps_merging_count(struct merging *m, const uint32_t *with, size_t with_n, uint64_t pairs_bytes,
                       merging_take *take, void *ctx, uint64_t *bytes_out, struct drps_err *err)
{
    const double least = m->options->min_gain * m->options->sample;
    struct block_pair_count *pairs;
    size_t n;

    int rc = m->counts->ops->pairs(m->counts, with, with_n, pairs_bytes, &pairs, &n, err);
    *bytes_out = (uint64_t)n * sizeof(*pairs);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct candidate c = {.a = pairs[i].a, .b = pairs[i].b, .both = pairs[i].count};
        c.gain = drps_merging_gain(m, c.a, c.b, c.both);
        c.time = m->time;
        if (c.gain > least && is_allowed(m, &c)) rc = take(ctx, &c, err);
    }
    free(pairs);
    return rc;
}

void drps_merging_merge(struct merging *m, const struct candidate *c)
{
    m->count[c->a] += m->count[c->b] - c->both;
    m->size[c->a] += m->size[c->b];
    m->count[c->b] = 0;
    m->size[c->b] = 0;
    m->into[c->b] = c->a;
    m->merged[c->a] = m->merged[c->b] = m->time + 1;
}

int drps_merging_round(struct merging *m, const struct block_pair *pairs, size_t n,
                       struct drps_err *err)
{
    m->time++;
    return m->counts->ops->merge(m->counts, pairs, n, err);
}

/* into[row] becomes the block that holds the row: it is smaller, so it is known before. */
static void find_blocks(struct merging *m)
{
    for (uint32_t row = 0; row < m->rows; row++)
        m->into[row] = m->into[m->into[row]];
}

int drps_merging_layout(struct merging *m, struct block_layout *out, struct drps_err *err)
{
    size_t blocks = 0;
    uint32_t position = 0;

    *out = (struct block_layout){0};
    for (uint32_t row = 0; row < m->rows; row++)
        blocks += m->size[row] > 0;
    out->order = drps_array_new(m->rows, sizeof(*out->order));
    out->first = drps_array_new(blocks + 1, sizeof(*out->first));
    if (!out->order || !out->first)
        return drps_err_set(err, -ENOMEM, "no memory for a layout of %u rows", m->rows);
    find_blocks(m);
    uint32_t *next = m->merged; /* the next position in each block; times are over */
    for (uint32_t row = 0; row < m->rows; row++) {
        if (!m->size[row]) continue;
        out->first[out->blocks++] = next[row] = position;
        position += m->size[row];
    }
    out->first[blocks] = m->rows;
    for (uint32_t row = 0; row < m->rows; row++)
        out->order[next[m->into[row]]++] = row;
    return 0;
}
