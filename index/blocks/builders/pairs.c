/*
 * The paper's builders. Source: DRPS, section 4, Eq. 1-3 and Algorithm 1.
 *
 * Every row begins as a block. A round takes pairs by falling gain; a pair of which neither block
 * has merged in this round merges; a round ends with its k-th merge, building with a round that
 * makes none. Pairs of merged blocks are counted again after the round, all others still hold.
 * `pairwise` makes the best merge a round: k = 1.
 *
 * A pair that a round has to skip would be counted again after it anyway: so pairs wait in one
 * heap, and what no longer holds is dropped when it comes up.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/blocks/builders/builders.h"
#include "index/blocks/builders/merging.h"

/* Shares of the memory: a part for pairs as they are counted, the rest for candidates. These are
 * twice as large, and half of them may be outdated. */
enum { PARTS = 1 + 2 * (int)(sizeof(struct candidate) / sizeof(struct block_pair_count)) };

struct search {
    struct merging m;
    struct candidates queue;
    size_t most;          /* candidates */
    size_t outdated;      /* of these came up since they were last dropped */
    uint64_t pairs_bytes; /* of pairs as they are counted */
    uint32_t k;
    struct block_pair *chosen; /* own: [k] a round's merges, */
    uint32_t *made;            /* own: [k] and the blocks that they make */
};

static void drop_outdated(struct search *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->queue.n; i++)
        if (merging_holds(&s->m, &s->queue.list[i])) s->queue.list[n++] = s->queue.list[i];
    s->queue.n = n;
    s->outdated = 0;
    drps_candidates_order(&s->queue);
}

static int take(void *ctx, const struct candidate *c, struct drps_err *err)
{
    struct search *s = ctx;
    if (s->queue.n >= s->most) {
        drop_outdated(s);
        if (s->queue.n > s->most / 2)
            return drps_merging_refuse(&s->m, 2 * s->m.options->memory_bytes, err);
    }
    return drps_candidates_push(&s->queue, c, err);
}

/* Find the candidates of the blocks in `with`, or of all. */
static int count(struct search *s, const uint32_t *with, size_t n, struct drps_err *err)
{
    uint64_t bytes = 0;
    int rc = drps_merging_count(&s->m, with, n, s->pairs_bytes, take, s, &bytes, err);
    if (rc == DRPS_E_MEMORY_BUDGET && bytes > s->pairs_bytes)
        return drps_merging_refuse(&s->m, drps_merging_bytes(s->m.tables) + PARTS * bytes, err);
    return rc;
}

/* The merges of a round; how many. */
static size_t choose(struct search *s)
{
    size_t n = 0;
    while (n < s->k && s->queue.n) {
        const struct candidate c = drps_candidates_pop(&s->queue);
        if (!merging_holds(&s->m, &c)) { /* to order what is left is cheaper than many of these */
            if (++s->outdated > s->queue.n / 16) drop_outdated(s);
            continue;
        }
        drps_merging_merge(&s->m, &c);
        s->chosen[n++] = (struct block_pair){c.a, c.b};
    }
    return n;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int merge_rounds(struct search *s, struct drps_err *err)
{
    int rc = 0;
    for (size_t n; rc == 0 && (n = choose(s)) > 0;) {
        rc = drps_merging_round(&s->m, s->chosen, n, err);
        for (size_t i = 0; i < n; i++)
            s->made[i] = s->chosen[i].a;
        qsort(s->made, n, sizeof(*s->made), by_number);
        if (rc == 0) rc = count(s, s->made, n, err);
    }
    return rc;
}

static int search_begin(struct search *s, struct counts *counts, const struct block_tables *tables,
                        const struct block_options *options, uint32_t k, struct drps_err *err)
{
    const uint64_t fixed = drps_merging_bytes(tables);
    const uint64_t rest = options->memory_bytes > fixed ? options->memory_bytes - fixed : 0;
    const uint32_t most_merges = tables->first[tables->n] / 2 + 1;

    *s = (struct search){.k = k < most_merges ? k : most_merges, .pairs_bytes = rest / PARTS};
    s->most = (size_t)((rest - s->pairs_bytes) / sizeof(struct candidate));
    s->chosen = drps_array_new(s->k, sizeof(*s->chosen));
    s->made = drps_array_new(s->k, sizeof(*s->made));
    if (!s->chosen || !s->made)
        return drps_err_set(err, -ENOMEM, "no memory for %u merges a round", s->k);
    return drps_merging_begin(&s->m, counts, tables, options, err);
}

static int build(struct counts *counts, const struct block_tables *tables,
                 const struct block_options *options, uint32_t k, struct block_layout *layout_out,
                 struct drps_err *err)
{
    struct search s;

    *layout_out = (struct block_layout){0};
    int rc = search_begin(&s, counts, tables, options, k, err);
    if (rc == 0) rc = count(&s, NULL, 0, err);
    if (rc == 0) rc = merge_rounds(&s, err);
    if (rc == 0) rc = drps_merging_layout(&s.m, layout_out, err);
    drps_merging_end(&s.m);
    drps_candidates_free(&s.queue);
    free(s.chosen);
    free(s.made);
    return rc;
}

int drps_block_build_pairwise(struct counts *counts, const struct block_tables *tables,
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
