/*
 * The layouts of one part and their prices (auto_part.h): each is priced by Eq. 1 and by a
 * simulated pool of an eighth of the part's rows, and one that is no worse by either replaces the
 * one before.
 */
#include "index/blocks/builders/auto_part.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/blocks/builders/builders.h"
#include "index/blocks/builders/merging.h"
#include "index/blocks/builders/pool_cost.h"
#include "index/blocks/builders/refine.h"
#include "index/blocks/builders/similar.h"
#include "index/blocks/counts/drps_stretches.h"

enum { POOL_SHARE = 8 };                /* of the rows the pool has room for one in so many */
#define GREEDY_STEPS UINT64_C(50000000) /* of counting all pairs: greedy takes half a second */

/* ---- Pages ---- */

size_t drps_auto_cut_pages(const struct portfolio *p, uint32_t from, uint32_t end, uint32_t base,
                           uint32_t *first_out)
{
    const struct block_options *o = p->options;
    uint32_t rows = 0; /* of the page */
    double sum = 0;    /* of its rows' counts */
    size_t n = 0;
    for (uint32_t row = from; row < end; row++) {
        sum += p->count[row];
        rows++;
        if (row == from || rows > o->max_rows ||
            (o->max_weight > 0 &&
             sum * (o->cost.seek + rows * o->cost.row) > o->max_weight * o->sample)) {
            first_out[n++] = base + (row - from);
            sum = p->count[row];
            rows = 1;
        }
    }
    return n;
}

static int pages_of(const struct portfolio *p, const struct auto_part *part,
                    struct block_layout *out, struct drps_err *err)
{
    const uint32_t rows = part->end - part->first;
    *out = (struct block_layout){.first = drps_array_new((size_t)rows + 1, sizeof(*out->first))};
    if (!out->first) return drps_err_set(err, -ENOMEM, "no memory to cut %u rows", rows);
    out->blocks = drps_auto_cut_pages(p, part->first, part->end, 0, out->first);
    out->first[out->blocks] = rows;
    return 0;
}

/* ---- Prices ---- */

struct price {
    double blocks, pool; /* by Eq. 1; what the pool reads */
};

static double cost_of(const struct portfolio *p, uint64_t blocks, uint64_t rows)
{
    return (double)blocks * p->options->cost.seek + (double)rows * p->options->cost.row;
}

static int price_pool(const struct portfolio *p, const struct pool_uses *uses, uint64_t pool_rows,
                      double *out, struct drps_err *err)
{
    struct pool_misses misses;
    int rc = drps_pool_simulate(uses, pool_rows, &misses, err);
    *out = cost_of(p, misses.blocks, misses.rows);
    return rc;
}

/* What a part has been compared with so far. */
struct best {
    const struct access *lists; /* borrowed: of its rows */
    struct auto_part *part;     /* borrowed: layout.order NULL: pages of rows as they are */
    struct price price;
    uint64_t pool_rows; /* an eighth of the rows, or what the largest batch needs of pages */
};

static int best_begin(const struct portfolio *p, const struct access *lists, struct auto_part *part,
                      struct best *out, struct drps_err *err)
{
    struct block_layout pages;
    struct pool_uses uses = {0};
    *out = (struct best){.lists = lists, .part = part, .pool_rows = lists->rows / POOL_SHARE};
    int rc = pages_of(p, part, &pages, err);
    if (rc == 0) rc = drps_pool_uses_list(lists, NULL, pages.first, pages.blocks, &uses, err);
    if (uses.step_rows > out->pool_rows) out->pool_rows = uses.step_rows;
    out->price.blocks = cost_of(p, uses.uses, uses.use_rows);
    if (rc == 0) rc = price_pool(p, &uses, out->pool_rows, &out->price.pool, err);
    drps_pool_uses_free(&uses);
    drps_block_layout_free(&pages);
    return rc;
}

/* Price a layout. The pool is simulated only if the layout may be taken. */
static int price_layout(const struct portfolio *p, const struct best *best,
                        const struct block_layout *layout, struct price *out, struct drps_err *err)
{
    struct pool_uses uses;
    int rc =
        drps_pool_uses_list(best->lists, layout->order, layout->first, layout->blocks, &uses, err);
    *out = (struct price){cost_of(p, uses.uses, uses.use_rows), INFINITY};
    if (rc == 0 && out->blocks <= best->price.blocks)
        rc = price_pool(p, &uses, best->pool_rows, &out->pool, err);
    drps_pool_uses_free(&uses);
    return rc;
}

/* The layout is taken or freed, also after a failure: taken if by both prices it is no worse. */
static int consider(const struct portfolio *p, struct best *best, struct block_layout *layout,
                    struct drps_err *err)
{
    struct price price;
    int rc = price_layout(p, best, layout, &price, err);
    if (rc == 0 && price.blocks <= best->price.blocks && price.pool <= best->price.pool &&
        price.blocks + price.pool < best->price.blocks + best->price.pool) {
        drps_block_layout_free(&best->part->layout);
        best->part->layout = *layout; /* moved */
        *layout = (struct block_layout){0};
        best->price = price;
        return 0;
    }
    drps_block_layout_free(layout);
    return rc;
}

/* ---- Merging ---- */

/* Blocks merged by minhash, by exact greedy from where it takes few steps. *lacked_out: the memory
 * that greedy lacked, or as it was. */
static int merge_blocks(struct merging *m, uint64_t *lacked_out, struct drps_err *err)
{
    uint64_t steps;
    int rc = drps_similar_merge(m, GREEDY_STEPS, &steps, err);
    if (rc < 0 || steps > GREEDY_STEPS) return rc;
    if (drps_greedy_bytes(m) <= m->options->memory_bytes) return drps_greedy_merge(m, 1, err);
    *lacked_out = drps_greedy_bytes(m);
    return 0;
}

/* Blocks of no batch, which are single rows, come last and are joined. */
static int join_unused(const uint32_t *count, uint32_t max_rows, const struct block_layout *from,
                       struct block_layout *out, struct drps_err *err)
{
    const uint32_t rows = from->first[from->blocks];
    uint32_t position = 0;
    out->order = drps_array_new(rows, sizeof(*out->order));
    out->first = drps_array_new(from->blocks + 1, sizeof(*out->first));
    if (!out->order || !out->first)
        return drps_err_set(err, -ENOMEM, "no memory for a layout of %u rows", rows);
    for (int used = 1; used >= 0; used--) {
        const size_t begin = out->blocks;
        for (size_t b = 0; b < from->blocks; b++) {
            const uint32_t *block = from->order + from->first[b];
            const uint32_t n = from->first[b + 1] - from->first[b];
            if ((count[*block] > 0) != used) continue;
            if (used || out->blocks == begin || position - out->first[out->blocks - 1] >= max_rows)
                out->first[out->blocks++] = position;
            memcpy(out->order + position, block, n * sizeof(*block));
            position += n;
        }
    }
    out->first[out->blocks] = rows;
    return 0;
}

static int merge_rows(struct portfolio *p, const struct access *lists, const struct auto_part *part,
                      struct block_layout *out, struct drps_err *err)
{
    const struct block_tables tables = {.first = {0, lists->rows}, .n = 1};
    struct block_options options = *p->options;
    struct block_layout layout = {0};
    struct access longer = {0};
    struct counts *counts = NULL;
    struct merging m = {0};

    options.min_count = options.keep_rows = 0; /* all rows */
    options.memory_bytes -= p->fixed_bytes + part->accesses * AUTO_MERGE_ACCESS_BYTES;
    int rc = drps_stretches_add(lists, &longer, err);
    if (rc == 0) rc = drps_counts_open(&longer, 1, 0, &counts, err);
    if (rc == 0) {
        counts->stop = p->counts->stop;
        rc = drps_merging_begin(&m, counts, &tables, &options, err);
    }
    if (rc == 0) rc = merge_blocks(&m, &p->lacked, err);
    if (rc == 0) rc = drps_merging_layout(&m, &layout, err);
    if (rc == 0) rc = join_unused(p->count + part->first, options.max_rows, &layout, out, err);
    drps_merging_end(&m);
    drps_block_layout_free(&layout);
    if (counts) counts->ops->close(counts);
    drps_access_free(&longer);
    return rc;
}

/* ---- Which is best ---- */

/* Make pages of rows in a finer order; order is NULL where the rows have it already. */
static int refine_rows(const struct portfolio *p, const struct access *lists,
                       const struct auto_part *part, struct block_layout *out, struct drps_err *err)
{
    int moved = 0;
    int rc = pages_of(p, part, out, err);
    if (rc == 0 && !(out->order = drps_array_new(lists->rows, sizeof(*out->order))))
        rc = drps_err_set(err, -ENOMEM, "no memory to order %u rows", lists->rows);
    if (rc == 0) rc = drps_refine_order(lists, p->options->max_rows, out->order, &moved, err);
    if (rc < 0 || !moved) drps_block_layout_free(out);
    return rc;
}

int drps_auto_choose(struct portfolio *p, const struct access *lists, struct auto_part *part,
                     struct drps_err *err)
{
    struct block_layout refined = {0}, merged = {0};
    struct best best;

    int rc = access_stopped(p->counts->stop, err);
    if (rc == 0 && p->options->max_weight <= 0) rc = refine_rows(p, lists, part, &refined, err);
    if (rc < 0 || (!refined.order && !p->merges)) return rc;
    rc = best_begin(p, lists, part, &best, err);
    if (rc == 0 && p->merges) rc = merge_rows(p, lists, part, &merged, err);
    if (rc == 0 && merged.order) rc = consider(p, &best, &merged, err);
    if (rc == 0 && refined.order) rc = consider(p, &best, &refined, err);
    drps_block_layout_free(&merged);
    drps_block_layout_free(&refined);
    return rc;
}
