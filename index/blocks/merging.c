#include "index/blocks/merging.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"

enum { ROW_BYTES = 4 * sizeof(uint32_t) }; /* beside the masks of the tables */

uint64_t merging_bytes(const struct block_tables *tables)
{
    return (uint64_t)tables->first[tables->n] * (ROW_BYTES + tables->n);
}

int merging_refuse(const struct merging *m, uint64_t needed, struct drps_err *err)
{
    char given[32], wanted[32];
    drps_err_clear(err);
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "merging blocks needs %s (%" PRIu64
                        " bytes) of memory and may take %s: give more, or leave rows of few "
                        "batches alone (min count %" PRIu32 " now)",
                        drps_size_format(needed, wanted, sizeof(wanted)), needed,
                        drps_size_format(m->options->memory_bytes, given, sizeof(given)),
                        m->options->min_count);
}

/* Rows that are used often enough to merge, table by table. */
static int make_masks(struct merging *m, struct drps_err *err)
{
    const double least = m->options->min_count * m->options->sample;
    for (size_t t = 0; t < m->tables->n; t++) {
        m->keep[t] = calloc((size_t)m->rows + 1, 1);
        if (!m->keep[t]) return drps_err_set(err, -ENOMEM, "no memory to merge %u rows", m->rows);
        for (uint32_t row = m->tables->first[t]; row < m->tables->first[t + 1]; row++)
            m->keep[t][row] = m->count[row] >= least;
    }
    return 0;
}

int merging_begin(struct merging *m, struct tally *tally, const struct block_tables *tables,
                  const struct block_options *options, struct drps_err *err)
{
    const uint32_t rows = tables->first[tables->n];

    *m = (struct merging){.tally = tally, .tables = tables, .options = options, .rows = rows};
    m->count = drps_array_new(rows, sizeof(*m->count));
    m->size = drps_array_new(rows, sizeof(*m->size));
    m->into = drps_array_new(rows, sizeof(*m->into));
    m->merged = calloc((size_t)rows + 1, sizeof(*m->merged));
    if (!m->count || !m->size || !m->into || !m->merged)
        return drps_err_set(err, -ENOMEM, "no memory to merge %u rows", rows);
    for (uint32_t row = 0; row < rows; row++) {
        m->size[row] = 1;
        m->into[row] = row;
    }
    int rc = tally->ops->reset(tally, err);
    if (rc == 0) rc = tally->ops->counts(tally, m->count, err);
    return rc < 0 ? rc : make_masks(m, err);
}

void merging_end(struct merging *m)
{
    free(m->count);
    free(m->size);
    free(m->into);
    free(m->merged);
    for (size_t t = 0; t < DRPS_PLAN_TABLES; t++)
        free(m->keep[t]);
}

double merging_gain(const struct merging *m, uint32_t a, uint32_t b, uint32_t both)
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

/* One call of the tally: of one table, and of `with` those in it. */
struct count {
    size_t table;
    const uint32_t *with;
    size_t with_n;
    uint64_t pairs_bytes;
};

static int count_table(struct merging *m, const struct count *of, merging_take *take, void *ctx,
                       uint64_t *bytes_out, struct drps_err *err)
{
    const double least = m->options->min_gain * m->options->sample;
    struct block_pair_count *pairs;
    size_t n;

    int rc = m->tally->ops->pairs(m->tally, m->keep[of->table], of->with, of->with_n,
                                  of->pairs_bytes, &pairs, &n, err);
    *bytes_out = (uint64_t)n * sizeof(*pairs);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct candidate c = {.a = pairs[i].a, .b = pairs[i].b, .both = pairs[i].count};
        c.gain = merging_gain(m, c.a, c.b, c.both);
        c.time = m->time;
        if (c.gain > least && is_allowed(m, &c)) rc = take(ctx, &c, err);
    }
    free(pairs);
    return rc;
}

int merging_count(struct merging *m, const uint32_t *with, size_t n, uint64_t pairs_bytes,
                  merging_take *take, void *ctx, uint64_t *bytes_out, struct drps_err *err)
{
    size_t from = 0;
    int rc = 0;
    for (size_t t = 0; t < m->tables->n && rc == 0; t++) {
        size_t end = from;
        while (end < n && with[end] < m->tables->first[t + 1])
            end++;
        const struct count of = {t, with ? with + from : NULL, end - from, pairs_bytes};
        if (m->tables->first[t + 1] - m->tables->first[t] > 1 && (!with || end > from))
            rc = count_table(m, &of, take, ctx, bytes_out, err);
        from = end;
    }
    return rc;
}

void merging_merge(struct merging *m, const struct candidate *c)
{
    m->count[c->a] += m->count[c->b] - c->both;
    m->size[c->a] += m->size[c->b];
    m->count[c->b] = 0;
    m->size[c->b] = 0;
    m->into[c->b] = c->a;
    m->merged[c->a] = m->merged[c->b] = m->time + 1;
}

int merging_round(struct merging *m, const struct block_pair *pairs, size_t n, struct drps_err *err)
{
    m->time++;
    return m->tally->ops->merge(m->tally, pairs, n, err);
}

/* into[row] becomes the block that holds the row: it is smaller, so it is known before. */
static void find_blocks(struct merging *m)
{
    for (uint32_t row = 0; row < m->rows; row++)
        m->into[row] = m->into[m->into[row]];
}

int merging_layout(struct merging *m, struct block_layout *out, struct drps_err *err)
{
    size_t blocks = 0;
    uint32_t place = 0;

    *out = (struct block_layout){0};
    for (uint32_t row = 0; row < m->rows; row++)
        blocks += m->size[row] > 0;
    out->order = drps_array_new(m->rows, sizeof(*out->order));
    out->first = drps_array_new(blocks + 1, sizeof(*out->first));
    if (!out->order || !out->first)
        return drps_err_set(err, -ENOMEM, "no memory for a layout of %u rows", m->rows);
    find_blocks(m);
    uint32_t *next = m->merged; /* the next place in each block; times are over */
    for (uint32_t row = 0; row < m->rows; row++) {
        if (!m->size[row]) continue;
        out->first[out->blocks++] = next[row] = place;
        place += m->size[row];
    }
    out->first[blocks] = m->rows;
    for (uint32_t row = 0; row < m->rows; row++)
        out->order[next[m->into[row]]++] = row;
    return 0;
}
