/*
 * All pairs of blocks that batches touch together, counted on the inverse of the accesses:
 * the blocks of a batch.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "index/blocks/counts/counts_local.h"

enum { RADIX_LEAST = 256 }; /* shorter lists are sorted by comparison */
enum { MARK_CLEAN = 1, MARK_WITH = 2 };

/* ---- The inverse of the accesses ---- */

void drps_counts_inverse_free(struct inverse *v)
{
    free(v->first);
    free(v->n);
    free(v->block);
    free(v->dirty);
    free(v->into);
    free(v->mark);
    free(v->count);
    free(v->met);
    free(v->aux);
    *v = (struct inverse){0};
}

static int inverse_room(const struct local *l, struct inverse *v)
{
    const size_t blocks = l->counts.blocks, batches = l->counts.batches;
    v->first = calloc(batches + 1, sizeof(*v->first));
    v->n = calloc(batches + 1, sizeof(*v->n));
    v->dirty = calloc(batches + 1, 1);
    v->into = drps_array_new(blocks, sizeof(*v->into));
    v->mark = calloc(blocks + 1, 1);
    v->count = calloc(blocks + 1, sizeof(*v->count));
    v->met = drps_array_new(blocks, sizeof(*v->met));
    v->aux = drps_array_new(blocks, sizeof(*v->aux));
    for (size_t b = 0; v->into && b < blocks; b++)
        v->into[b] = (uint32_t)b;
    return v->first && v->n && v->dirty && v->into && v->mark && v->count && v->met && v->aux
               ? 0
               : -ENOMEM;
}

/* Make the inverse of the lists as blocks are now. */
static int inverse_fill(const struct local *l, struct inverse *v)
{
    const uint32_t batches = l->counts.batches, blocks = l->counts.blocks;
    uint64_t sum = 0;
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t i = 0; l->group[b] && i < l->n[b]; i++)
            v->n[list_of(l, b)[i]]++;
    for (uint32_t i = 0; i < batches; i++) {
        v->first[i] = sum;
        sum += v->n[i];
        v->n[i] = 0;
    }
    v->block = drps_array_new((size_t)sum, sizeof(*v->block));
    if (!v->block) return -ENOMEM;
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t i = 0; l->group[b] && i < l->n[b]; i++) {
            const uint32_t batch = list_of(l, b)[i];
            v->block[v->first[batch] + v->n[batch]++] = b;
        }
    return 0;
}

static int inverse_need(struct local *l, struct drps_err *err)
{
    if (l->inverse.block) return 0;
    int rc = inverse_room(l, &l->inverse);
    if (rc == 0) rc = inverse_fill(l, &l->inverse);
    if (rc == 0) return 0;
    drps_counts_inverse_free(&l->inverse);
    return drps_err_set(err, rc, "no memory to pair %u blocks", l->counts.blocks);
}

/* The live block that holds what was block b; paths are halved as they are followed. */
static uint32_t find_block(uint32_t *into, uint32_t b)
{
    while (into[b] != b)
        b = into[b] = into[into[b]];
    return b;
}

/* Blocks of a batch that have merged become one. */
static void clean(struct inverse *v, uint32_t batch)
{
    uint32_t *list = v->block + v->first[batch];
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n[batch]; i++) {
        const uint32_t b = find_block(v->into, list[i]);
        if (v->mark[b] & MARK_CLEAN) continue;
        v->mark[b] |= MARK_CLEAN;
        list[n++] = b;
    }
    for (uint32_t i = 0; i < n; i++)
        v->mark[list[i]] &= (uint8_t)~MARK_CLEAN;
    v->n[batch] = n;
    v->dirty[batch] = 0;
}

/* Bring the inverse to what it will be when the lists of p have merged. What a block of no group
 * brings is not in it: then it is made anew when needed. */
void drps_counts_inverse_merge(const struct local *l, struct inverse *v, struct block_pair p)
{
    const uint32_t *list = list_of(l, p.b);
    if (l->group[p.a] && !l->group[p.b]) {
        drps_counts_inverse_free(v);
        return;
    }
    v->into[p.b] = p.a;
    for (uint32_t i = 0; l->group[p.b] && i < l->n[p.b]; i++)
        v->dirty[list[i]] = 1;
}

/* ---- Pairs ---- */

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Count what block `a` has in common with the others from `least` on; returns how many it met. */
static size_t meet(const struct local *l, struct inverse *v, uint32_t a, uint32_t least)
{
    const uint32_t *list = list_of(l, a);
    const uint8_t group = l->group[a];
    size_t met = 0;
    for (uint32_t i = 0; i < l->n[a]; i++) {
        if (v->dirty[list[i]]) clean(v, list[i]);
        const uint32_t *block = v->block + v->first[list[i]], n = v->n[list[i]];
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t b = block[k];
            if (b < least || b == a || l->group[b] != group) continue;
            if (v->count[b]++ == 0) v->met[met++] = b;
        }
    }
    if (met < RADIX_LEAST)
        qsort(v->met, met, sizeof(*v->met), by_number);
    else
        drps_sort_u32(v->met, v->aux, met);
    return met;
}

/* The pairs found; beyond `most` they are counted only. */
struct pair_list {
    struct block_pair_count *pairs; /* own */
    size_t n, cap, most;
};

/* Pairs of `a` with what it met, but not those that a smaller block of `with` has made. */
static int emit(struct inverse *v, uint32_t a, size_t met, struct pair_list *out,
                struct drps_err *err)
{
    const size_t most = out->n + met < out->most ? out->n + met : out->most;
    if (drps_array_reserve(&out->pairs, &out->cap, most, sizeof(*out->pairs)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu pairs of blocks", out->n + met);
    for (size_t i = 0; i < met; i++) {
        const uint32_t b = v->met[i], count = v->count[b];
        v->count[b] = 0;
        if (b < a && v->mark[b] & MARK_WITH) continue;
        if (out->n < out->most)
            out->pairs[out->n] = (struct block_pair_count){a < b ? a : b, a < b ? b : a, count};
        out->n++;
    }
    return 0;
}

static int by_first(const void *a, const void *b)
{
    const struct block_pair_count *x = a, *y = b;
    if (x->a != y->a) return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* Pairs of one `a` were made in the order of b already. */
static int sort_pairs(struct pair_list *list, uint32_t blocks, struct drps_err *err)
{
    if (!list->n) return 0; /* there may be no list either */
    if (list->n < blocks / 4) {
        qsort(list->pairs, list->n, sizeof(*list->pairs), by_first);
        return 0;
    }
    struct block_pair_count *sorted = drps_array_new(list->n, sizeof(*sorted));
    size_t *at = calloc((size_t)blocks + 1, sizeof(*at));
    if (!sorted || !at) {
        free(sorted);
        free(at);
        return drps_err_set(err, -ENOMEM, "no memory to sort %zu pairs of blocks", list->n);
    }
    for (size_t i = 0; i < list->n; i++)
        at[list->pairs[i].a + 1]++;
    for (uint32_t b = 1; b <= blocks; b++)
        at[b] += at[b - 1];
    for (size_t i = 0; i < list->n; i++)
        sorted[at[list->pairs[i].a]++] = list->pairs[i];
    free(at);
    free(list->pairs);
    list->pairs = sorted;
    return 0;
}

static int pairs_of_all(const struct local *l, struct inverse *v, struct pair_list *list,
                        struct drps_err *err)
{
    int rc = 0;
    for (uint32_t a = 0; a < l->counts.blocks && rc == 0; a++) {
        if (!l->group[a] || !l->n[a]) continue;
        rc = access_stopped(l->counts.stop, err);
        if (rc == 0) rc = emit(v, a, meet(l, v, a, a + 1), list, err);
    }
    return rc;
}

static int pairs_with(const struct local *l, struct inverse *v, const uint32_t *with, size_t n,
                      struct pair_list *list, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        v->mark[with[i]] |= MARK_WITH;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = access_stopped(l->counts.stop, err);
        if (rc == 0 && l->group[with[i]]) rc = emit(v, with[i], meet(l, v, with[i], 0), list, err);
    }
    for (size_t i = 0; i < n; i++)
        v->mark[with[i]] &= (uint8_t)~MARK_WITH;
    if (rc == 0 && n > 1 && list->n <= list->most) rc = sort_pairs(list, l->counts.blocks, err);
    return rc;
}

int drps_counts_pairs(struct counts *t, const uint32_t *with, size_t with_n, uint64_t memory_bytes,
                      struct block_pair_count **pairs_out, size_t *n_out, struct drps_err *err)
{
    struct local *l = local_of(t);
    struct pair_list list = {.most = (size_t)(memory_bytes / sizeof(*list.pairs))};

    *pairs_out = NULL;
    *n_out = 0;
    int rc = inverse_need(l, err);
    if (rc == 0)
        rc = with ? pairs_with(l, &l->inverse, with, with_n, &list, err)
                  : pairs_of_all(l, &l->inverse, &list, err);
    *n_out = list.n;
    if (rc == 0 && list.n > list.most)
        rc = drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                          "%zu pairs of blocks are used together, and there is memory for %zu",
                          list.n, list.most);
    if (rc == 0)
        *pairs_out = list.pairs;
    else
        free(list.pairs);
    return rc;
}
