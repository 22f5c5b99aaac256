/*
 * The tally over accesses in memory. A row's list of batches stays where the accesses have it; the
 * list of a merged block replaces those of its parts in a pool, so that the incidences shrink as
 * merging goes on. The pool is only appended to, and squeezed when half of it is garbage.
 */
#include "index/blocks/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/extsort.h"

enum {
    AHEAD = 16,        /* lists fetched into the cache before their turn */
    POOL_HEAD = 2,     /* words before a list in the pool: its block, its length */
    GALLOP_RATIO = 16, /* lists so unequal are searched, not walked */
    RADIX_LEAST = 256, /* shorter lists are sorted by comparison */
    STOP_EVERY = 1024  /* blocks, or pairs, between looks whether to stop */
};

/*
 * The accesses the other way round, from the first call of pairs() on: which blocks of any group a
 * batch touches. Merging only marks the batches of the block that is no more; they are cleaned when
 * next visited.
 */
struct inverse {
    uint64_t *first; /* own: [batches] */
    uint32_t *n;     /* own: [batches] */
    uint32_t *block; /* own: of batch b: block[first[b]] and n[b] - 1 more, in any order; NULL:
                        there is no inverse yet */
    uint8_t *dirty;  /* own: [batches] it still has blocks that are no more */
    uint32_t *into;  /* own: [blocks] the block that took this one in, itself if it lives */
    uint8_t *mark;   /* own: [blocks] MARK_CLEAN, MARK_WITH; 0 between uses */
    uint32_t *count; /* own: [blocks] batches in common with the block in hand; 0 between uses */
    uint32_t *met, *aux; /* own: [blocks] blocks whose count is not 0; to sort them */
};
enum { MARK_CLEAN = 1, MARK_WITH = 2 };

struct local {
    struct tally tally;
    const struct access *access; /* borrowed, or &sampled */
    struct access sampled;       /* own: the share that is counted, or what was loaded */
    uint64_t *at;   /* own: [blocks] where the list begins; pool: behind the accesses */
    uint32_t *n;    /* own: [blocks] its length, AccNum; 0: dead or never touched */
    uint8_t *group; /* own: [blocks] */
    uint32_t *pool; /* own: [pool_cap] */
    size_t pool_n, pool_cap, pool_live;
    struct inverse inverse;
    void *table; /* own: [batches] of 8 bytes, of one call */
};

static struct local *local_of(struct tally *t)
{
    return (struct local *)t;
}

/* At the i-th of many steps. */
static int stopped(const struct tally *t, size_t i, struct drps_err *err)
{
    return i % STOP_EVERY ? 0 : access_stopped(t->stop, err);
}

static uint64_t incidences(const struct access *a)
{
    return a->start[a->rows];
}

static const uint32_t *list_of(const struct local *l, uint32_t block)
{
    const uint64_t base = incidences(l->access), at = l->at[block];
    return at < base ? l->access->batch + at : l->pool + (at - base);
}

/* ---- Lists: n strictly increasing numbers ---- */

/* The first place from `i` on with list[place] >= x. */
static uint32_t gallop(const uint32_t *list, uint32_t n, uint32_t i, uint32_t x)
{
    uint32_t step = 1, low = i;
    while (low < n && list[low] < x) {
        i = low + 1;
        low = n - low > step ? low + step : n;
        step *= 2;
    }
    while (i < low) {
        uint32_t middle = i + (low - i) / 2;
        if (list[middle] < x)
            i = middle + 1;
        else
            low = middle;
    }
    return i;
}

static uint32_t common(const uint32_t *a, uint32_t an, const uint32_t *b, uint32_t bn)
{
    uint32_t count = 0, i = 0, j = 0;
    if (an > bn) return common(b, bn, a, an);
    if (bn / GALLOP_RATIO >= an) {
        for (; i < an && j < bn; i++) {
            j = gallop(b, bn, j, a[i]);
            count += j < bn && b[j] == a[i];
        }
        return count;
    }
    while (i < an && j < bn) { /* no branch depends on the data */
        uint32_t x = a[i], y = b[j];
        count += x == y;
        i += x <= y;
        j += y <= x;
    }
    return count;
}

/* out has room for an + bn numbers less those in common. */
static void unite(const uint32_t *a, uint32_t an, const uint32_t *b, uint32_t bn, uint32_t *out)
{
    uint32_t i = 0, j = 0;
    while (i < an && j < bn) {
        uint32_t x = a[i], y = b[j];
        *out++ = x < y ? x : y;
        i += x <= y;
        j += y <= x;
    }
    memcpy(out, a + i, (an - i) * sizeof(*out));
    memcpy(out + (an - i), b + j, (bn - j) * sizeof(*out));
}

/* ---- The pool ---- */

/* Empty lists are nowhere. */
static int is_pooled(const struct local *l, uint32_t block)
{
    return l->n[block] && l->at[block] >= incidences(l->access);
}

static void squeeze(struct local *l)
{
    const uint64_t base = incidences(l->access);
    size_t to = 0;
    for (size_t from = 0; from < l->pool_n;) {
        const uint32_t block = l->pool[from];
        const size_t words = POOL_HEAD + (size_t)l->pool[from + 1];
        if (l->n[block] && l->at[block] == base + from + POOL_HEAD) {
            memmove(l->pool + to, l->pool + from, words * sizeof(*l->pool));
            l->at[block] = base + to + POOL_HEAD;
            to += words;
        }
        from += words;
    }
    l->pool_n = l->pool_live = to;
}

/* Room for a list of n, before it is known whose. */
static int reserve(struct local *l, uint32_t n, struct drps_err *err)
{
    const size_t words = POOL_HEAD + (size_t)n;
    if (l->pool_n + words <= l->pool_cap) return 0;
    if (l->pool_live < l->pool_n / 2) squeeze(l);
    if (l->pool_n + words <= l->pool_cap) return 0;
    const size_t cap = l->pool_n + words + l->pool_n / 2;
    uint32_t *pool = realloc(l->pool, cap * sizeof(*pool));
    if (!pool) return drps_err_set(err, -ENOMEM, "no memory for %zu batches of blocks", cap);
    l->pool = pool;
    l->pool_cap = cap;
    return 0;
}

/* The list of this block is garbage from now on. */
static void drop(struct local *l, uint32_t block)
{
    if (is_pooled(l, block)) l->pool_live -= POOL_HEAD + (size_t)l->n[block];
    l->n[block] = 0;
}

/* ---- Operations ---- */

static int tally_counts(struct tally *t, uint32_t *count_out, struct drps_err *err)
{
    (void)err;
    memcpy(count_out, local_of(t)->n, t->blocks * sizeof(*count_out));
    return 0;
}

static void fetch_ahead(const struct local *l, uint32_t block)
{
    if (block + AHEAD < l->tally.blocks) __builtin_prefetch(list_of(l, block + AHEAD));
}

static int tally_signatures(struct tally *t, uint64_t *sig_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    uint64_t *hash = l->table;
    for (uint32_t b = 0; b < t->batches; b++)
        hash[b] = drps_mix64(b);
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        uint64_t sum = 0;
        int rc = stopped(t, block, err);
        if (rc < 0) return rc;
        fetch_ahead(l, block);
        for (uint32_t i = 0; i < l->n[block]; i++)
            sum += hash[list[i]];
        sig_out[block] = sum;
    }
    return 0;
}

static int tally_minhash(struct tally *t, uint64_t salt, uint32_t *min_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    uint32_t *hash = l->table;
    for (uint32_t b = 0; b < t->batches; b++)
        hash[b] = (uint32_t)(drps_mix64(b ^ salt) >> 32);
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        uint32_t least = UINT32_MAX;
        int rc = stopped(t, block, err);
        if (rc < 0) return rc;
        fetch_ahead(l, block);
        for (uint32_t i = 0; i < l->n[block]; i++)
            least = hash[list[i]] < least ? hash[list[i]] : least;
        min_out[block] = least;
    }
    return 0;
}

static uint32_t common_of(const struct local *l, struct block_pair p)
{
    return common(list_of(l, p.a), l->n[p.a], list_of(l, p.b), l->n[p.b]);
}

static void fetch_pair(const struct local *l, const struct block_pair *pairs, size_t i, size_t n)
{
    if (i + AHEAD < n) {
        __builtin_prefetch(list_of(l, pairs[i + AHEAD].a));
        __builtin_prefetch(list_of(l, pairs[i + AHEAD].b));
    }
    if (i + 2 * AHEAD < n) {
        __builtin_prefetch(&l->at[pairs[i + 2 * AHEAD].a]);
        __builtin_prefetch(&l->at[pairs[i + 2 * AHEAD].b]);
        __builtin_prefetch(&l->n[pairs[i + 2 * AHEAD].a]);
        __builtin_prefetch(&l->n[pairs[i + 2 * AHEAD].b]);
    }
}

static int tally_cocounts(struct tally *t, const struct block_pair *pairs, size_t n,
                          uint32_t *count_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    for (size_t i = 0; i < n; i++) {
        int rc = stopped(t, i, err);
        if (rc < 0) return rc;
        fetch_pair(l, pairs, i, n);
        count_out[i] = common_of(l, pairs[i]);
    }
    return 0;
}

/* A list that holds the other serves for both; else a new one in the pool. */
static int merge_pair(struct local *l, struct block_pair p, struct drps_err *err)
{
    const uint32_t an = l->n[p.a], bn = l->n[p.b], both = common_of(l, p), n = an + bn - both;
    if (n == an) {
        drop(l, p.b);
        return 0;
    }
    if (n == bn) {
        drop(l, p.a);
        l->at[p.a] = l->at[p.b];
        l->n[p.a] = bn;
        l->n[p.b] = 0;
        if (is_pooled(l, p.a)) l->pool[l->at[p.a] - incidences(l->access) - POOL_HEAD] = p.a;
        return 0;
    }
    int rc = reserve(l, n, err);
    if (rc < 0) return rc;
    uint32_t *head = l->pool + l->pool_n;
    head[0] = p.a;
    head[1] = n;
    unite(list_of(l, p.a), an, list_of(l, p.b), bn, head + POOL_HEAD);
    drop(l, p.a);
    drop(l, p.b);
    l->at[p.a] = incidences(l->access) + l->pool_n + POOL_HEAD;
    l->n[p.a] = n;
    l->pool_n += POOL_HEAD + (size_t)n;
    l->pool_live += POOL_HEAD + (size_t)n;
    return 0;
}

/* ---- All pairs ---- */

static void inverse_free(struct inverse *v)
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
    const size_t blocks = l->tally.blocks, batches = l->tally.batches;
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

/* As blocks are now. */
static int inverse_fill(const struct local *l, struct inverse *v)
{
    const uint32_t batches = l->tally.batches, blocks = l->tally.blocks;
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
    inverse_free(&l->inverse);
    return drps_err_set(err, rc, "no memory to pair %u blocks", l->tally.blocks);
}

/* The live block that holds what was block b; paths are halved on the way. */
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
        sort_u32(v->met, v->aux, met);
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
    for (uint32_t a = 0; a < l->tally.blocks && rc == 0; a++) {
        if (!l->group[a] || !l->n[a]) continue;
        rc = access_stopped(l->tally.stop, err);
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
        rc = access_stopped(l->tally.stop, err);
        if (rc == 0 && l->group[with[i]]) rc = emit(v, with[i], meet(l, v, with[i], 0), list, err);
    }
    for (size_t i = 0; i < n; i++)
        v->mark[with[i]] &= (uint8_t)~MARK_WITH;
    if (rc == 0 && n > 1 && list->n <= list->most) rc = sort_pairs(list, l->tally.blocks, err);
    return rc;
}

static int tally_pairs(struct tally *t, const uint32_t *with, size_t with_n, uint64_t memory_bytes,
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

/* Before the lists merge. What a block of no group brings is not in: start anew when needed. */
static void inverse_merge(const struct local *l, struct inverse *v, struct block_pair p)
{
    const uint32_t *list = list_of(l, p.b);
    if (l->group[p.a] && !l->group[p.b]) {
        inverse_free(v);
        return;
    }
    v->into[p.b] = p.a;
    for (uint32_t i = 0; l->group[p.b] && i < l->n[p.b]; i++)
        v->dirty[list[i]] = 1;
}

static int tally_merge(struct tally *t, const struct block_pair *pairs, size_t n,
                       struct drps_err *err)
{
    struct local *l = local_of(t);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        fetch_pair(l, pairs, i, n);
        rc = stopped(t, i, err);
        if (rc == 0 && l->inverse.block) inverse_merge(l, &l->inverse, pairs[i]);
        if (rc == 0) rc = merge_pair(l, pairs[i], err);
    }
    return rc;
}

static int tally_groups(struct tally *t, const uint8_t *group, struct drps_err *err)
{
    struct local *l = local_of(t);
    (void)err;
    memcpy(l->group, group, t->blocks);
    inverse_free(&l->inverse);
    return 0;
}

static int tally_reset(struct tally *t, struct drps_err *err)
{
    struct local *l = local_of(t);
    (void)err;
    for (uint32_t row = 0; row < t->blocks; row++) {
        l->at[row] = l->access->start[row];
        l->n[row] = (uint32_t)(l->access->start[row + 1] - l->access->start[row]);
    }
    l->pool_n = l->pool_live = 0;
    inverse_free(&l->inverse);
    return 0;
}

static int tally_pair_work(struct tally *t, uint64_t *work_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    uint32_t *touched = l->table;
    uint64_t sum = 0;
    *work_out = 0;
    memset(touched, 0, t->batches * sizeof(*touched));
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        int rc = stopped(t, block, err);
        if (rc < 0) return rc;
        fetch_ahead(l, block);
        for (uint32_t i = 0; i < l->n[block]; i++)
            touched[list[i]]++;
    }
    for (uint32_t b = 0; b < t->batches; b++)
        sum += (uint64_t)touched[b] * touched[b];
    *work_out = sum;
    return 0;
}

/* ---- Lists ---- */

static int tally_lists(struct tally *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                       struct access *out, struct drps_err *err)
{
    const struct access *a = local_of(t)->access;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a->start[rows[i] + 1] - a->start[rows[i]];
    int rc = access_new((uint32_t)n, t->batches, sum, memory_bytes, out, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const uint64_t count = a->start[rows[i] + 1] - a->start[rows[i]];
        memcpy(out->batch + out->start[i], a->batch + a->start[rows[i]],
               count * sizeof(*out->batch));
        out->start[i + 1] = out->start[i] + count;
        if (i % STOP_EVERY == 0) rc = access_stopped(t->stop, err);
    }
    if (rc < 0) access_free(out);
    return rc;
}

/* ---- Opening ---- */

static void tally_close(struct tally *t)
{
    if (!t) return;
    struct local *l = local_of(t);
    access_free(&l->sampled);
    inverse_free(&l->inverse);
    free(l->at);
    free(l->n);
    free(l->group);
    free(l->pool);
    free(l->table);
    free(l);
}

static const struct tally_ops local_ops = {
    .counts = tally_counts,
    .signatures = tally_signatures,
    .minhash = tally_minhash,
    .cocounts = tally_cocounts,
    .groups = tally_groups,
    .pairs = tally_pairs,
    .merge = tally_merge,
    .pair_work = tally_pair_work,
    .reset = tally_reset,
    .lists = tally_lists,
    .close = tally_close,
};

/* A copy with the incidences of the chosen batches only. */
static int sample(const struct access *all, double share, uint64_t seed, struct access *out)
{
    uint8_t *chosen = drps_array_new(all->batches, 1);
    uint64_t n = 0;
    *out = (struct access){.rows = all->rows, .batches = all->batches};
    for (uint32_t b = 0; chosen && b < all->batches; b++)
        chosen[b] = (double)drps_mix64(b ^ seed) < share * 0x1p64;
    for (uint64_t i = 0; chosen && i < incidences(all); i++)
        n += chosen[all->batch[i]];
    out->start = drps_array_new((size_t)all->rows + 1, sizeof(*out->start));
    out->batch = drps_array_new((size_t)n, sizeof(*out->batch));
    if (!chosen || !out->start || !out->batch) {
        free(chosen);
        return -ENOMEM;
    }
    n = 0;
    for (uint32_t row = 0; row < all->rows; row++) {
        out->start[row] = n;
        for (uint64_t i = all->start[row]; i < all->start[row + 1]; i++)
            if (chosen[all->batch[i]]) out->batch[n++] = all->batch[i];
    }
    out->start[all->rows] = n;
    free(chosen);
    return 0;
}

int tally_open(const struct access *access, double share, uint64_t seed, struct tally **t_out,
               struct drps_err *err)
{
    struct local *l = calloc(1, sizeof(*l));
    int rc = l ? 0 : -ENOMEM;

    *t_out = NULL;
    if (rc == 0 && share < 1) rc = sample(access, share, seed, &l->sampled);
    if (rc == 0) {
        l->access = share < 1 ? &l->sampled : access;
        l->tally =
            (struct tally){.ops = &local_ops, .blocks = access->rows, .batches = access->batches};
        l->at = drps_array_new(access->rows, sizeof(*l->at));
        l->n = drps_array_new(access->rows, sizeof(*l->n));
        l->group = drps_array_new(access->rows, 1);
        l->table = drps_array_new(access->batches, sizeof(uint64_t));
        l->pool = drps_array_new(0, sizeof(*l->pool)); /* lists of no batch begin there */
        if (!l->at || !l->n || !l->group || !l->table || !l->pool) rc = -ENOMEM;
        if (rc == 0) memset(l->group, 1, access->rows);
    }
    if (rc == 0) rc = tally_reset(&l->tally, err);
    if (rc == 0)
        *t_out = &l->tally;
    else {
        tally_close(l ? &l->tally : NULL);
        (void)drps_err_set(err, rc, "no memory to count accesses of %u rows", access->rows);
    }
    return rc;
}

int tally_load(const struct access_source *from, uint32_t first, uint32_t end, struct tally **t_out,
               struct drps_err *err)
{
    struct access access;

    *t_out = NULL;
    int rc = access_load(from, first, end, &access, err);
    if (rc == 0) rc = tally_open(&access, from->share, from->seed, t_out, err);
    if (rc == 0 && from->share >= 1) {
        struct local *l = local_of(*t_out);
        l->sampled = access; /* moved */
        l->access = &l->sampled;
    } else {
        access_free(&access);
    }
    if (rc == 0) (*t_out)->stop = from->stop;
    return rc;
}
