/*
 * Exact lazy greedy: merges the best of all pairs until none gains, as pairwise does, but keeps one
 * candidate a block, its best, instead of all pairs.
 *
 * Nothing better than the best candidate is missed: of two live blocks the one that was counted
 * later has looked at the other. A candidate that no longer holds is at least as good as whatever
 * the block it was counted for has left; when it comes up, that block is counted again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/blocks/builders/builders.h"
#include "index/blocks/builders/merging.h"

#define MOST_WORK UINT64_C(10000000000) /* counting every pair once: minutes */

struct greedy {
    struct merging *m;       /* borrowed */
    struct candidates queue; /* at most one that holds a block, at most [rows] in all */
    struct candidate *best;  /* own: [rows] of blocks being counted */
    uint32_t *partner;       /* own: [rows] in the block's candidate; itself: it has none; WANTED */
    uint32_t *blocks;        /* own: [rows] to be counted, increasing */
    uint64_t pairs_bytes;    /* of one call of counts->ops->pairs() */
};
enum {
    ROW_BYTES = 2 * sizeof(struct candidate) + 2 * sizeof(uint32_t),
    PAIR_COPIES = 4, /* of the pairs, while their list grows or is sorted */
    /* memory of pairs(), a row and an incidence */
    COUNTS_ROW_BYTES = 25,
    COUNTS_INCIDENCE_BYTES = 4
};
#define WANTED UINT32_MAX /* being counted: no candidate yet, or best[block] */

static void improve(struct greedy *g, uint32_t block, const struct candidate *c)
{
    if (g->partner[block] != WANTED) return;
    if (!g->best[block].both || candidate_before(c, &g->best[block])) g->best[block] = *c;
}

static int take(void *ctx, const struct candidate *c, struct drps_err *err)
{
    struct greedy *g = ctx;
    (void)err;
    improve(g, c->a, c);
    improve(g, c->b, c);
    return 0;
}

/* The best candidate of each of these blocks joins the queue. */
static int count(struct greedy *g, const uint32_t *blocks, size_t n, struct drps_err *err)
{
    uint64_t bytes;
    for (size_t i = 0; i < n; i++) {
        g->partner[blocks[i]] = WANTED;
        g->best[blocks[i]].both = 0;
    }
    int rc = drps_merging_count(g->m, blocks, n, g->pairs_bytes, take, g, &bytes, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        const uint32_t block = blocks[i];
        const struct candidate *best = &g->best[block];
        g->partner[block] = !best->both ? block : best->a == block ? best->b : best->a;
        if (best->both) rc = drps_candidates_push(&g->queue, best, err);
    }
    return rc;
}

/* What greedy takes beside the pairs; n: live blocks. */
static uint64_t fixed_bytes(const struct merging *m, size_t *n_out)
{
    uint64_t incidences = 0;
    *n_out = 0;
    for (uint32_t row = 0; row < m->rows; row++) {
        *n_out += m->count[row] > 0;
        incidences += m->count[row];
    }
    return drps_merging_bytes(m->tables) + (uint64_t)m->rows * (ROW_BYTES + COUNTS_ROW_BYTES) +
           incidences * COUNTS_INCIDENCE_BYTES;
}

uint64_t drps_greedy_bytes(const struct merging *m)
{
    size_t n;
    const uint64_t fixed = fixed_bytes(m, &n);
    return fixed + PAIR_COPIES * (uint64_t)n * sizeof(struct block_pair_count);
}

/* All blocks, as many at a time as their pairs have room. */
static int count_all(struct greedy *g, struct drps_err *err)
{
    size_t n = 0;
    int rc = 0;

    for (uint32_t row = 0; row < g->m->rows; row++)
        if (g->m->count[row]) g->blocks[n++] = row;
    const size_t most = n ? (size_t)(g->pairs_bytes / (n * sizeof(struct block_pair_count))) : 0;
    for (size_t at = 0; at < n && rc == 0; at += most)
        rc = count(g, g->blocks + at, n - at < most ? n - at : most, err);
    return rc;
}

/* The candidate was this block's and is not known to be gone. */
static int recount(struct greedy *g, const struct candidate *c, uint32_t block, uint32_t other,
                   struct drps_err *err)
{
    const int lost = g->m->merged[block] <= c->time && g->partner[block] == other;
    return lost ? count(g, &block, 1, err) : 0;
}

static int merge_all(struct greedy *g, struct drps_err *err)
{
    int rc = 0;
    while (rc == 0 && g->queue.n) {
        const struct candidate c = drps_candidates_pop(&g->queue);
        if (merging_holds(g->m, &c)) {
            drps_merging_merge(g->m, &c);
            rc = drps_merging_round(g->m, &(struct block_pair){c.a, c.b}, 1, err);
            if (rc == 0) rc = count(g, &c.a, 1, err);
        } else {
            rc = recount(g, &c, c.a, c.b, err);
            if (rc == 0) rc = recount(g, &c, c.b, c.a, err);
        }
    }
    return rc;
}

static int greedy_begin(struct greedy *g, struct merging *m, struct drps_err *err)
{
    const uint64_t needed = drps_greedy_bytes(m), given = m->options->memory_bytes;
    size_t n;

    *g = (struct greedy){.m = m};
    if (given < needed) return drps_merging_refuse(m, needed, err);
    g->pairs_bytes = (given - fixed_bytes(m, &n)) / PAIR_COPIES;
    g->best = drps_array_new(m->rows, sizeof(*g->best));
    g->partner = drps_array_new(m->rows, sizeof(*g->partner));
    g->blocks = drps_array_new(m->rows, sizeof(*g->blocks));
    if (!g->best || !g->partner || !g->blocks)
        return drps_err_set(err, -ENOMEM, "no memory to merge %" PRIu32 " rows", m->rows);
    for (uint32_t row = 0; row < m->rows; row++)
        g->partner[row] = row;
    return 0;
}

int drps_greedy_merge(struct merging *m, struct drps_err *err)
{
    struct greedy g;
    int rc = greedy_begin(&g, m, err);
    if (rc == 0) rc = count_all(&g, err);
    if (rc == 0) rc = merge_all(&g, err);
    drps_candidates_free(&g.queue);
    free(g.best);
    free(g.partner);
    free(g.blocks);
    return rc;
}

static int check_work(struct counts *counts, struct drps_err *err)
{
    uint64_t work;
    int rc = counts->ops->pair_work(counts, &work, err);
    if (rc == 0 && work > MOST_WORK)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "greedy would count %" PRIu64
                          " pairs of rows in batches, more than %" PRIu64
                          ": take another builder, smaller batches, or a sample of them",
                          work, MOST_WORK);
    return rc;
}

int drps_block_build_greedy(struct counts *counts, const struct block_tables *tables,
                            const struct block_options *options, struct block_layout *layout_out,
                            struct drps_err *err)
{
    struct merging m;

    *layout_out = (struct block_layout){0};
    int rc = drps_merging_begin(&m, counts, tables, options, err);
    if (rc == 0) rc = check_work(counts, err);
    if (rc == 0) rc = drps_greedy_merge(&m, err);
    if (rc == 0) rc = drps_merging_layout(&m, layout_out, err);
    drps_merging_end(&m);
    return rc;
}
