/*
 * The paper's builders. Source: DRPS, section 4, Eq. 1-3 and Algorithm 1.
 *
 * Every row begins as a block. A round takes pairs by falling gain; a pair of which neither block
 * has merged in this round merges; a round ends with its k-th merge, building with a round that
 * makes none. `pairwise` makes the best merge a round: k = 1; `greedy` is another name of it.
 *
 * A block keeps its best candidates, as many as there is memory for, one at least, instead of all
 * pairs; the first of them that holds is in the queue. So memory is that of the rows.
 * Nothing better than these is missed: of two live blocks the one that was counted later has looked
 * at the other. What merges in a round is counted after it; until then a block that is counted does
 * not look at it. A candidate that no longer holds is at least as good as whatever the block it was
 * counted for has left; when a block's last one comes up and does not hold, it is counted again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/blocks/builders/builders.h"
#include "index/blocks/builders/merging.h"

struct greedy {
    struct merging *m;       /* borrowed */
    struct candidates queue; /* at most one that holds a block, at most [kept] in all */
    uint32_t *partner;       /* own: [rows] in the block's candidate; itself: it has none; WANTED */
    uint32_t *place;         /* own: [rows] of a row that is kept, among these */
    struct candidate *best;  /* own: [kept][depth] of each block, best first; both = 0: there is
                                none,  or it is gone */
    uint32_t depth;
    size_t together;      /* blocks that are counted at a time */
    uint64_t pairs_bytes; /* of one call of counts->ops->pairs() */
    uint32_t k;
    struct block_pair *chosen; /* own: [k] a round's merges, */
    uint32_t *made;            /* own: [k] and the blocks that they make */
};
enum {
    ROW_BYTES = 2 * sizeof(uint32_t),
    KEPT_BYTES = 2 * sizeof(struct candidate),
    PAIR_COPIES = 4, /* of the pairs, while their list grows or is sorted */
    /* memory of pairs(), a row and an incidence */
    COUNTS_ROW_BYTES = 25,
    COUNTS_INCIDENCE_BYTES = 4,
    SPARE_DEPTH = 8 /* candidates of a block beside those that a round can make worthless */
};
#define WANTED UINT32_MAX /* being counted: its best so far, in no queue */

/* ---- Candidates ---- */

static struct candidate *best_of(const struct greedy *g, uint32_t block)
{
    return g->best + (size_t)g->place[block] * g->depth;
}

static void improve(struct greedy *g, uint32_t block, const struct candidate *c)
{
    if (g->partner[block] != WANTED) return;
    struct candidate *best = best_of(g, block);
    uint32_t i = g->depth - 1;
    if (best[i].both && !candidate_before(c, &best[i])) return;
    for (; i > 0 && (!best[i - 1].both || candidate_before(c, &best[i - 1])); i--)
        best[i] = best[i - 1];
    best[i] = *c;
}

static int take(void *ctx, const struct candidate *c, struct drps_err *err)
{
    struct greedy *g = ctx;
    (void)err;
    if (!merging_holds(g->m, c)) return 0; /* it has merged in this round */
    improve(g, c->a, c);
    improve(g, c->b, c);
    return 0;
}

/* The first candidate of the block that holds joins the queue. So does one that does not, if the
 * list was full and ends with it: more may follow. */
static int queue_next(struct greedy *g, uint32_t block, struct drps_err *err)
{
    struct candidate *best = best_of(g, block);
    g->partner[block] = block;
    for (uint32_t i = 0; i < g->depth; i++) {
        if (!best[i].both) continue;
        if (i + 1 < g->depth && !merging_holds(g->m, &best[i])) {
            best[i].both = 0;
            continue;
        }
        g->partner[block] = best[i].a == block ? best[i].b : best[i].a;
        return drps_candidates_push(&g->queue, &best[i], err);
    }
    return 0;
}

/* Find the candidates of these blocks, of which there are no more than `together`. */
static int count_together(struct greedy *g, const uint32_t *blocks, size_t n, struct drps_err *err)
{
    uint64_t bytes;
    for (size_t i = 0; i < n; i++) {
        g->partner[blocks[i]] = WANTED;
        for (uint32_t d = 0; d < g->depth; d++)
            best_of(g, blocks[i])[d].both = 0;
    }
    int rc = drps_merging_count(g->m, blocks, n, g->pairs_bytes, take, g, &bytes, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = queue_next(g, blocks[i], err);
    return rc;
}

static int count(struct greedy *g, const uint32_t *blocks, size_t n, struct drps_err *err)
{
    int rc = 0;
    for (size_t at = 0; at < n && rc == 0; at += g->together)
        rc = count_together(g, blocks + at, n - at < g->together ? n - at : g->together, err);
    return rc;
}

/* All blocks that may merge. */
static int count_all(struct greedy *g, struct drps_err *err)
{
    uint32_t *blocks = drps_array_new(g->together, sizeof(*blocks));
    int rc = blocks ? 0 : drps_err_set(err, -ENOMEM, "no memory for %zu blocks", g->together);
    size_t n = 0;
    for (uint32_t row = 0; row < g->m->rows && rc == 0; row++) {
        if (g->m->count[row] && g->m->group[row]) blocks[n++] = row;
        if (n < g->together && row + 1 < g->m->rows) continue;
        rc = count(g, blocks, n, err);
        n = 0;
    }
    free(blocks);
    return rc;
}

/* ---- Rounds ---- */

/* A candidate no longer holds: if it was this block's, and the block is not gone, the next is. */
static int replace(struct greedy *g, const struct candidate *c, uint32_t block, uint32_t other,
                   struct drps_err *err)
{
    if (g->m->merged[block] > c->time || g->partner[block] != other) return 0;
    const struct candidate *last = best_of(g, block) + g->depth - 1;
    const int ends = last->both && last->a == c->a && last->b == c->b;
    return ends ? count(g, &block, 1, err) : queue_next(g, block, err);
}

/* The merges of a round. */
static int choose(struct greedy *g, size_t *n_out, struct drps_err *err)
{
    int rc = 0;
    *n_out = 0;
    while (*n_out < g->k && g->queue.n && rc == 0) {
        const struct candidate c = drps_candidates_pop(&g->queue);
        if (merging_holds(g->m, &c)) {
            drps_merging_merge(g->m, &c);
            g->chosen[(*n_out)++] = (struct block_pair){c.a, c.b};
        } else {
            rc = replace(g, &c, c.a, c.b, err);
            if (rc == 0) rc = replace(g, &c, c.b, c.a, err);
        }
    }
    return rc;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int merge_all(struct greedy *g, struct drps_err *err)
{
    size_t n;
    int rc = choose(g, &n, err);
    while (rc == 0 && n > 0) {
        rc = drps_merging_round(g->m, g->chosen, n, err);
        for (size_t i = 0; i < n; i++)
            g->made[i] = g->chosen[i].a;
        qsort(g->made, n, sizeof(*g->made), by_number);
        if (rc == 0) rc = count(g, g->made, n, err);
        if (rc == 0) rc = choose(g, &n, err);
    }
    return rc;
}

/* ---- Memory ---- */

static uint64_t fixed_bytes(const struct greedy_size *z)
{
    return drps_merging_bytes(z->rows) + z->rows * (ROW_BYTES + COUNTS_ROW_BYTES) +
           z->kept * KEPT_BYTES + z->accesses * COUNTS_INCIDENCE_BYTES;
}

uint64_t drps_greedy_size_bytes(const struct greedy_size *z)
{
    return fixed_bytes(z) + PAIR_COPIES * z->live * sizeof(struct block_pair_count);
}

static struct greedy_size size_of(const struct merging *m)
{
    struct greedy_size z = {.rows = m->rows};
    for (uint32_t row = 0; row < m->rows; row++) {
        if (!m->group[row]) continue;
        z.kept++;
        z.live += m->count[row] > 0;
        z.accesses += m->count[row];
    }
    return z;
}

uint64_t drps_greedy_bytes(const struct merging *m)
{
    const struct greedy_size z = size_of(m);
    return drps_greedy_size_bytes(&z);
}

/* Share out what memory there is beyond the least: half of it for candidates, the rest for pairs.
 */
static void share_memory(struct greedy *g, const struct greedy_size *z)
{
    const uint64_t spare = g->m->options->memory_bytes - drps_greedy_size_bytes(z);
    const uint64_t deep = UINT64_C(2) * g->k + SPARE_DEPTH;
    const uint64_t room = 1 + spare / 2 / ((z->kept + !z->kept) * sizeof(*g->best));
    const uint64_t pairs = (z->live + !z->live) * sizeof(struct block_pair_count); /* of a block */

    g->depth = (uint32_t)(room < deep ? room : deep);
    if (g->depth > z->kept) g->depth = (uint32_t)z->kept + !z->kept;
    g->pairs_bytes = pairs + spare / 2 / PAIR_COPIES;
    g->together = (size_t)(g->pairs_bytes / 2 / pairs); /* half: see drps_prune.h */
    if (g->together > z->live) g->together = (size_t)z->live;
    if (!g->together) g->together = 1;
}

static int greedy_begin(struct greedy *g, struct merging *m, uint32_t k, struct drps_err *err)
{
    const struct greedy_size z = size_of(m);
    const uint32_t most_merges = m->rows / 2 + 1;

    *g = (struct greedy){.m = m, .k = k < most_merges ? k : most_merges};
    if (m->options->memory_bytes < drps_greedy_size_bytes(&z))
        return drps_merging_refuse(m->options, drps_greedy_size_bytes(&z), err);
    share_memory(g, &z);
    g->partner = drps_array_new(m->rows, sizeof(*g->partner));
    g->place = drps_array_new(m->rows, sizeof(*g->place));
    g->best = drps_array_new((size_t)z.kept * g->depth, sizeof(*g->best));
    g->chosen = drps_array_new(g->k, sizeof(*g->chosen));
    g->made = drps_array_new(g->k, sizeof(*g->made));
    if (!g->partner || !g->place || !g->best || !g->chosen || !g->made)
        return drps_err_set(err, -ENOMEM, "no memory to merge %" PRIu32 " rows", m->rows);
    uint32_t n = 0;
    for (uint32_t row = 0; row < m->rows; row++) {
        g->partner[row] = row;
        if (m->group[row]) g->place[row] = n++;
    }
    return 0;
}

int drps_greedy_merge(struct merging *m, uint32_t k, struct drps_err *err)
{
    struct greedy g;
    int rc = greedy_begin(&g, m, k, err);
    if (rc == 0) rc = count_all(&g, err);
    if (rc == 0) rc = merge_all(&g, err);
    drps_candidates_free(&g.queue);
    free(g.partner);
    free(g.place);
    free(g.best);
    free(g.chosen);
    free(g.made);
    return rc;
}

/* ---- Builders ---- */

static int build(struct counts *counts, const struct block_tables *tables,
                 const struct block_options *options, uint32_t k, struct block_layout *layout_out,
                 struct drps_err *err)
{
    struct merging m;

    *layout_out = (struct block_layout){0};
    int rc = drps_merging_begin(&m, counts, tables, options, err);
    if (rc == 0) rc = drps_greedy_merge(&m, k, err);
    if (rc == 0) rc = drps_merging_layout(&m, layout_out, err);
    drps_merging_end(&m);
    return rc;
}

int drps_block_build_greedy(struct counts *counts, const struct block_tables *tables,
                            const struct block_options *options, struct block_layout *layout_out,
                            struct drps_err *err)
{
    return build(counts, tables, options, 1, layout_out, err);
}

int drps_block_build_topk(struct counts *counts, const struct block_tables *tables,
                          const struct block_options *options, struct block_layout *layout_out,
                          struct drps_err *err)
{
    *layout_out = (struct block_layout){0};
    if (!options->top_k)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "topk merges k pairs a round: k must be at least 1");
    return build(counts, tables, options, options->top_k, layout_out, err);
}
