/*
 * The best of several layouts: rows as they are, in pages; rows of similar batches side by side, in
 * pages; blocks merged by minhash until all pairs are few enough for exact greedy, if they ever
 * are. Each is priced exactly, with nothing kept in memory (Eq. 1), and with blocks kept for some
 * batches, which ranks layouts as a store with memory for an eighth of the rows does
 * (bench/RESULTS.md). The layout that the store likes best is taken, of those that lose little by
 * Eq. 1.
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

enum { LAYOUTS_MOST = 3 };
#define LOSS_MOST 1.25                  /* of the least price by Eq. 1 */
#define GREEDY_STEPS UINT64_C(50000000) /* of counting all pairs: greedy takes a second or two */

struct portfolio {
    struct tally *tally;
    const struct block_tables *tables;
    const struct block_options *options;
    struct block_layout layout[LAYOUTS_MOST]; /* own */
    struct layout_price price[LAYOUTS_MOST];
    size_t n;
    char note[sizeof(((struct block_layout *)0)->note)];
};

/* The layout is taken, also after a failure. */
static int consider(struct portfolio *p, struct block_layout *layout, struct drps_err *err)
{
    p->layout[p->n] = *layout;
    *layout = (struct block_layout){0};
    p->n++;
    return layout_price(p->tally, &p->layout[p->n - 1], &p->options->cost, &p->price[p->n - 1],
                        err);
}

/* Of equal ones the first. */
static size_t best(const struct portfolio *p)
{
    size_t best = 0;
    double least = p->price[0].blocks;
    for (size_t i = 1; i < p->n; i++)
        if (p->price[i].blocks < least) least = p->price[i].blocks;
    while (p->price[best].blocks > LOSS_MOST * least)
        best++;
    for (size_t i = best + 1; i < p->n; i++)
        if (p->price[i].blocks <= LOSS_MOST * least && p->price[i].kept < p->price[best].kept)
            best = i;
    return best;
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
    struct block_layout layout = {0};
    int rc = cut_pages(p, count, &layout, err);
    return rc < 0 ? rc : consider(p, &layout, err);
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

/* Memory, in bytes: of ordering rows alone, and with merging blocks of all incidences; what the
 * layouts and the tally's merged blocks take of it. */
struct needs {
    uint64_t order, merge, kept;
};

static struct needs needs_of(const struct portfolio *p, const uint32_t *count)
{
    /* Boundaries, and places but for rows as they are; tally.h */
    enum { LAYOUTS = (2 * LAYOUTS_MOST - 1) * sizeof(uint32_t), POOLED = 6 };
    const uint64_t rows = p->tally->blocks;
    uint64_t incidences = 0;
    for (uint64_t row = 0; row < rows; row++)
        incidences += count[row];
    const uint64_t kept = rows * LAYOUTS + (p->tally->streamed ? 0 : incidences * POOLED);
    return (struct needs){rows * (SIMILAR_ORDER_BYTES + LAYOUTS),
                          rows * SIMILAR_MERGE_BYTES + merging_bytes(p->tables) + kept, kept};
}

/* What little memory left out. */
static void explain(struct portfolio *p, const char *what, uint64_t needed)
{
    char wanted[32], given[32];
    (void)snprintf(p->note, sizeof(p->note),
                   "rows were %s: that needs %s of memory, more than the %s given", what,
                   drps_size_format(needed, wanted, sizeof(wanted)),
                   drps_size_format(p->options->memory_bytes, given, sizeof(given)));
}

/* Blocks merged by minhash, by exact greedy from where it takes few steps. *lacked_out: the memory
 * that greedy lacked, or 0. */
static int merge_blocks(struct merging *m, uint64_t *lacked_out, struct drps_err *err)
{
    uint64_t steps;
    *lacked_out = 0;
    int rc = similar_merge(m, GREEDY_STEPS, &steps, err);
    if (rc < 0 || steps > GREEDY_STEPS) return rc;
    const uint64_t needed = greedy_bytes(m);
    if (needed <= m->options->memory_bytes) {
        const uint32_t time = m->time;
        rc = greedy_merge(m, err);
        /* Streamed accesses of all blocks had no room; nothing has merged, and blocks are fine. */
        if (rc != DRPS_E_MEMORY_BUDGET || !m->tally->streamed || m->time != time) return rc;
        drps_err_clear(err);
    }
    *lacked_out = needed;
    return 0;
}

static int consider_merged(struct portfolio *p, const struct needs *needs, struct drps_err *err)
{
    struct block_options options = *p->options;
    struct block_layout blocks = {0}, layout = {0};
    struct merging m;
    uint64_t lacked = 0;

    options.min_count = 0; /* all rows */
    options.memory_bytes -= needs->kept;
    int rc = merging_begin(&m, p->tally, p->tables, &options, err);
    if (rc == 0) rc = merge_blocks(&m, &lacked, err);
    if (rc == 0) rc = merging_layout(&m, &blocks, err);
    merging_end(&m);
    if (rc == 0) rc = similar_arrange(p->tally, p->tables, options.max_rows, &blocks, &layout, err);
    block_layout_free(&blocks);
    if (rc == 0)
        rc = consider(p, &layout, err);
    else
        block_layout_free(&layout);
    if (rc == 0 && lacked)
        explain(p, "merged by likeness, not each compared with all others", needs->kept + lacked);
    return rc;
}

static int consider_all(struct portfolio *p, const uint32_t *count, struct drps_err *err)
{
    const struct needs needs = needs_of(p, count);

    if (needs.order > p->options->memory_bytes)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "ordering %u rows needs %" PRIu64 " bytes of memory, more than %" PRIu64
                            ": give more, or build blocks by pattern",
                            p->tally->blocks, needs.order, p->options->memory_bytes);
    int rc = consider_given(p, count, err);
    if (rc == 0) rc = consider_order(p, count, err);
    if (rc < 0) return rc;
    if (needs.merge > p->options->memory_bytes) {
        explain(p, "ordered but not merged into blocks", needs.merge);
        return 0;
    }
    return consider_merged(p, &needs, err);
}

int block_build_auto(struct tally *tally, const struct block_tables *tables,
                     const struct block_options *options, struct block_layout *layout_out,
                     struct drps_err *err)
{
    struct portfolio p = {.tally = tally, .tables = tables, .options = options};
    uint32_t *count = drps_array_new(tally->blocks, sizeof(*count));

    *layout_out = (struct block_layout){0};
    int rc = tally->ops->reset(tally, err);
    if (rc == 0 && !count)
        rc = drps_err_set(err, -ENOMEM, "no memory to count %u rows", tally->blocks);
    if (rc == 0) rc = tally->ops->counts(tally, count, err);
    if (rc == 0) rc = consider_all(&p, count, err);
    free(count);
    if (rc == 0) {
        struct block_layout *taken = &p.layout[best(&p)];
        *layout_out = *taken;
        *taken = (struct block_layout){0};
        (void)snprintf(layout_out->note, sizeof(layout_out->note), "%s", p.note);
    }
    for (size_t i = 0; i < p.n; i++)
        block_layout_free(&p.layout[i]);
    return rc;
}
