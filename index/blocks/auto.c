/*
 * The best of several layouts: rows as they are, in pages; rows of similar batches side by side, in
 * pages; blocks merged by minhash, and by exact greedy where that takes few enough steps. Each is
 * priced exactly, the best by options->objective is kept, among those that are read in runs no
 * slower than the pages of rows as they are. So what counts is never above that of these pages, nor
 * is reading in runs, nor that above reading all rows (price.c).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/blocks/builders.h"
#include "index/blocks/merging.h"
#include "index/blocks/price.h"
#include "index/blocks/similar.h"

#define GREEDY_STEPS UINT64_C(200000000) /* some ten seconds */
#define RUNS_SEEK 0.3 /* of a seek is what a merge saves where neighbours are read in one run */

struct portfolio {
    struct tally *tally;
    const struct block_tables *tables;
    const struct block_options *options;
    struct block_layout best; /* own */
    struct layout_price price;
    double most_io; /* of rows as they are */
};

static double worth(const struct portfolio *p, const struct layout_price *price)
{
    return p->options->objective == BLOCK_RUNS ? price->io : price->blocks;
}

/* Keep the layout if it is the best; it is taken in any case. */
static int consider(struct portfolio *p, struct block_layout *layout, struct drps_err *err)
{
    struct layout_price price;
    int rc = layout_price(p->tally, layout, &p->options->cost, &price, err);
    if (rc == 0 && price.io <= p->most_io && worth(p, &price) < worth(p, &p->price)) {
        block_layout_free(&p->best);
        p->best = *layout;
        p->price = price;
        *layout = (struct block_layout){0};
    }
    block_layout_free(layout);
    return rc;
}

/*
 * Rows in this order (NULL: as they are), cut into pages as large as the limits allow; AccNum of a
 * page is taken for the sum over its rows, which it cannot exceed.
 */
static int cut_pages(const struct portfolio *p, const uint32_t *count, struct block_layout *out,
                     struct drps_err *err)
{
    const struct block_options *o = p->options;
    uint32_t rows = 0; /* of the page */
    double sum = 0;    /* of its rows' counts */
    out->first = drps_array_new((size_t)p->tally->blocks + 1, sizeof(*out->first));
    if (!out->first)
        return drps_err_set(err, -ENOMEM, "no memory to cut %u rows", p->tally->blocks);
    for (size_t t = 0; t < p->tables->n; t++)
        for (uint32_t at = p->tables->first[t]; at < p->tables->first[t + 1]; at++) {
            sum += count[out->order ? out->order[at] : at];
            rows++;
            if (at == p->tables->first[t] || rows > o->max_rows ||
                (o->max_weight > 0 &&
                 sum * (o->cost.seek + rows * o->cost.row) > o->max_weight * o->sample)) {
                out->first[out->blocks++] = at;
                sum = count[out->order ? out->order[at] : at];
                rows = 1;
            }
        }
    out->first[out->blocks] = p->tally->blocks;
    return 0;
}

static int consider_given(struct portfolio *p, const uint32_t *count, struct drps_err *err)
{
    int rc = cut_pages(p, count, &p->best, err);
    if (rc == 0) rc = layout_price(p->tally, &p->best, &p->options->cost, &p->price, err);
    p->most_io = p->price.io;
    return rc;
}

/* Rows of similar batches side by side. */
static int consider_order(struct portfolio *p, const uint32_t *count, struct drps_err *err)
{
    struct block_layout layout = {0};
    int rc = 0;
    layout.order = drps_array_new(p->tally->blocks, sizeof(*layout.order));
    if (!layout.order)
        rc = drps_err_set(err, -ENOMEM, "no memory to order %u rows", p->tally->blocks);
    if (rc == 0) rc = similar_order(p->tally, p->tables, count, layout.order, err);
    if (rc == 0) rc = cut_pages(p, count, &layout, err);
    if (rc == 0) return consider(p, &layout, err);
    block_layout_free(&layout);
    return rc;
}

/* Blocks in several orders. */
static int consider_blocks(struct portfolio *p, const struct block_layout *blocks,
                           struct drps_err *err)
{
    int rc = 0;
    for (int by = BY_TIER; by <= BY_ROW && rc == 0; by++) {
        struct block_layout layout;
        rc = similar_arrange(p->tally, p->tables, p->options->max_rows, (enum arrangement)by,
                             blocks, &layout, err);
        if (rc == 0)
            rc = consider(p, &layout, err);
        else
            block_layout_free(&layout);
    }
    return rc;
}

/* For merging. A weight that is within the scaled limit at a share of the seek is within the limit.
 */
static struct block_options merge_options(const struct block_options *given)
{
    struct block_options o = *given;
    o.min_count = 0; /* all rows */
    if (o.objective == BLOCK_RUNS) {
        o.cost.seek *= RUNS_SEEK;
        o.max_weight *= RUNS_SEEK;
    }
    return o;
}

static int consider_similar(struct portfolio *p, struct drps_err *err)
{
    const struct block_options options = merge_options(p->options);
    struct block_layout blocks = {0};
    struct merging m;

    int rc = merging_begin(&m, p->tally, p->tables, &options, err);
    if (rc == 0) rc = similar_merge(&m, err);
    if (rc == 0) rc = merging_layout(&m, &blocks, err);
    merging_end(&m);
    if (rc == 0) rc = consider_blocks(p, &blocks, err);
    block_layout_free(&blocks);
    return rc;
}

static int consider_greedy(struct portfolio *p, struct drps_err *err)
{
    const struct block_options options = merge_options(p->options);
    struct block_layout blocks = {0};

    int rc = block_build_greedy(p->tally, p->tables, &options, &blocks, err);
    if (rc == 0) rc = consider_blocks(p, &blocks, err);
    block_layout_free(&blocks);
    return rc;
}

/* Memory, in bytes: of ordering rows alone, and with merging blocks of all incidences. */
struct needs {
    uint64_t order, merge;
};

static struct needs needs_of(const struct portfolio *p, const uint32_t *count)
{
    enum { LAYOUTS = 2 * 2 * sizeof(uint32_t), POOLED = 6 }; /* the best one and another; tally.h */
    const uint64_t rows = p->tally->blocks;
    uint64_t incidences = 0;
    for (uint64_t row = 0; row < rows; row++)
        incidences += count[row];
    return (struct needs){rows * (SIMILAR_ORDER_BYTES + LAYOUTS),
                          rows * (SIMILAR_MERGE_BYTES + LAYOUTS) + merging_bytes(p->tables) +
                              incidences * POOLED};
}

static void explain(struct portfolio *p, const struct needs *needs)
{
    char needed[32], given[32];
    (void)snprintf(p->best.note, sizeof(p->best.note),
                   "rows were ordered but not merged into blocks: that needs %s of memory, more "
                   "than the %s given",
                   drps_size_format(needs->merge, needed, sizeof(needed)),
                   drps_size_format(p->options->memory_bytes, given, sizeof(given)));
}

static int consider_all(struct portfolio *p, const uint32_t *count, struct drps_err *err)
{
    const struct needs needs = needs_of(p, count);
    uint64_t steps = 0;

    if (needs.order > p->options->memory_bytes)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "ordering %u rows needs %" PRIu64 " bytes of memory, more than %" PRIu64
                            ": give more, or build blocks by pattern",
                            p->tally->blocks, needs.order, p->options->memory_bytes);
    int rc = consider_given(p, count, err);
    if (rc == 0) rc = consider_order(p, count, err);
    if (rc < 0) return rc;
    if (needs.merge > p->options->memory_bytes) {
        explain(p, &needs);
        return 0;
    }
    rc = p->tally->ops->pair_work(p->tally, &steps, err);
    if (rc == 0) rc = consider_similar(p, err);
    if (rc == 0 && steps <= GREEDY_STEPS) rc = consider_greedy(p, err);
    return rc;
}

int block_build_auto(struct tally *tally, const struct block_tables *tables,
                     const struct block_options *options, struct block_layout *layout_out,
                     struct drps_err *err)
{
    struct portfolio p = {.tally = tally, .tables = tables, .options = options};
    uint32_t *count = drps_array_new(tally->blocks, sizeof(*count));

    int rc = tally->ops->reset(tally, err);
    if (rc == 0 && !count)
        rc = drps_err_set(err, -ENOMEM, "no memory to count %u rows", tally->blocks);
    if (rc == 0) rc = tally->ops->counts(tally, count, err);
    if (rc == 0) rc = consider_all(&p, count, err);
    free(count);
    *layout_out = p.best;
    return rc;
}
