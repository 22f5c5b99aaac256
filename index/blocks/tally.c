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

enum {
    AHEAD = 16,       /* lists fetched into the cache before their turn */
    POOL_HEAD = 2,    /* words before a list in the pool: its block, its length */
    GALLOP_RATIO = 16 /* lists so unequal are searched, not walked */
};

struct local {
    struct tally tally;
    const struct access *access; /* borrowed, or &sampled */
    struct access sampled;       /* own: the share that is counted */
    uint64_t *at;   /* own: [blocks] where the list begins; pool: behind the accesses */
    uint32_t *n;    /* own: [blocks] its length, AccNum; 0: dead or never touched */
    uint32_t *pool; /* own: [pool_cap] */
    size_t pool_n, pool_cap, pool_live;
    void *table; /* own: [batches] of 8 bytes, of one call */
};

static struct local *local_of(struct tally *t)
{
    return (struct local *)t;
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
    (void)err;
    for (uint32_t b = 0; b < t->batches; b++)
        hash[b] = drps_mix64(b);
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        uint64_t sum = 0;
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
    (void)err;
    for (uint32_t b = 0; b < t->batches; b++)
        hash[b] = (uint32_t)(drps_mix64(b ^ salt) >> 32);
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        uint32_t least = UINT32_MAX;
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
    (void)err;
    for (size_t i = 0; i < n; i++) {
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

static int tally_merge(struct tally *t, const struct block_pair *pairs, size_t n,
                       struct drps_err *err)
{
    struct local *l = local_of(t);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        fetch_pair(l, pairs, i, n);
        rc = merge_pair(l, pairs[i], err);
    }
    return rc;
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
    return 0;
}

/* ---- All pairs ---- */

/* The accesses the other way round: the chosen blocks of each batch, increasing. */
struct inverse {
    uint64_t *next; /* own: [batches] first of the batch's blocks not yet passed */
    uint64_t *end;  /* own: [batches] */
    uint32_t *block;
};

static void inverse_free(struct inverse *v)
{
    free(v->next);
    free(v->end);
    free(v->block);
}

/* Of blocks with both flags set; also == NULL: with keep set. */
static int inverse_make(const struct local *l, const uint8_t *keep, const uint8_t *also,
                        struct inverse *v)
{
    const uint32_t batches = l->tally.batches, blocks = l->tally.blocks;
    uint64_t sum = 0;
    v->next = drps_array_new(batches, sizeof(*v->next));
    v->end = drps_array_new(batches, sizeof(*v->end));
    if (!v->next || !v->end) return -ENOMEM;
    memset(v->end, 0, batches * sizeof(*v->end));
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t i = 0; keep[b] && (!also || also[b]) && i < l->n[b]; i++)
            v->end[list_of(l, b)[i]]++;
    for (uint32_t i = 0; i < batches; i++) {
        v->next[i] = sum;
        sum += v->end[i];
        v->end[i] = v->next[i];
    }
    v->block = drps_array_new((size_t)sum, sizeof(*v->block));
    if (!v->block) return -ENOMEM;
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t i = 0; keep[b] && (!also || also[b]) && i < l->n[b]; i++)
            v->block[v->end[list_of(l, b)[i]]++] = b;
    return 0;
}

/* What finding pairs needs beside the tally. */
struct pairing {
    struct inverse all, with;
    uint32_t *count; /* own: [blocks] batches in common with the block in hand; 0 between blocks */
    uint32_t *met;   /* own: [blocks] blocks whose count is not 0 */
    struct block_pair_count *pairs; /* own until success */
    size_t n, cap, most;
};

static void pairing_free(struct pairing *p)
{
    inverse_free(&p->all);
    inverse_free(&p->with);
    free(p->count);
    free(p->met);
    free(p->pairs);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Count what block `a` has in common with the later ones of `v`; returns how many it met. */
static size_t meet(const struct local *l, struct pairing *p, struct inverse *v, uint32_t a)
{
    const uint32_t *list = list_of(l, a);
    size_t met = 0;
    for (uint32_t i = 0; i < l->n[a]; i++) {
        const uint32_t batch = list[i];
        while (v->next[batch] < v->end[batch] && v->block[v->next[batch]] <= a)
            v->next[batch]++;
        for (uint64_t k = v->next[batch]; k < v->end[batch]; k++)
            if (p->count[v->block[k]]++ == 0) p->met[met++] = v->block[k];
    }
    return met;
}

static int emit(struct pairing *p, uint32_t a, size_t met, struct drps_err *err)
{
    if (met > p->most - p->n)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "more than %zu pairs of blocks are used together: count fewer blocks, "
                            "or give more memory",
                            p->most);
    if (drps_array_reserve(&p->pairs, &p->cap, p->n + met, sizeof(*p->pairs)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu pairs of blocks", p->n + met);
    qsort(p->met, met, sizeof(*p->met), by_number);
    for (size_t i = 0; i < met; i++) {
        p->pairs[p->n++] = (struct block_pair_count){a, p->met[i], p->count[p->met[i]]};
        p->count[p->met[i]] = 0;
    }
    return 0;
}

static int tally_pairs(struct tally *t, const uint8_t *keep, const uint8_t *with,
                       uint64_t memory_bytes, struct block_pair_count **pairs_out, size_t *n_out,
                       struct drps_err *err)
{
    const struct local *l = local_of(t);
    struct pairing p = {.most = (size_t)(memory_bytes / sizeof(*p.pairs))};

    *pairs_out = NULL;
    *n_out = 0;
    p.count = calloc((size_t)t->blocks + 1, sizeof(*p.count));
    p.met = drps_array_new(t->blocks, sizeof(*p.met));
    int rc = p.count && p.met ? inverse_make(l, keep, NULL, &p.all) : -ENOMEM;
    if (rc == 0 && with) rc = inverse_make(l, keep, with, &p.with);
    if (rc < 0) (void)drps_err_set(err, rc, "no memory to pair %u blocks", t->blocks);
    for (uint32_t a = 0; a < t->blocks && rc == 0; a++)
        if (keep[a] && l->n[a])
            rc = emit(&p, a, meet(l, &p, with && !with[a] ? &p.with : &p.all, a), err);
    if (rc == 0) {
        *pairs_out = p.pairs;
        *n_out = p.n;
        p.pairs = NULL;
    }
    pairing_free(&p);
    return rc;
}

static int tally_pair_work(struct tally *t, uint64_t *work_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    uint32_t *touched = l->table;
    uint64_t sum = 0;
    (void)err;
    memset(touched, 0, t->batches * sizeof(*touched));
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        fetch_ahead(l, block);
        for (uint32_t i = 0; i < l->n[block]; i++)
            touched[list[i]]++;
    }
    for (uint32_t b = 0; b < t->batches; b++)
        sum += (uint64_t)touched[b] * touched[b];
    *work_out = sum;
    return 0;
}

/* ---- I/O of a layout ---- */

/* A batch reads the block at places [first, end); read_end: where its reading has come to. */
static void read_block(uint32_t first, uint32_t end, uint32_t gap_rows, uint32_t *read_end,
                       struct layout_io *io)
{
    if (*read_end == end) return; /* for another row of this block */
    io->blocks++;
    io->block_rows += end - first;
    if (*read_end != UINT32_MAX && first - *read_end <= gap_rows) {
        io->rows += end - *read_end;
    } else {
        io->requests++;
        io->rows += end - first;
    }
    *read_end = end;
}

static void fetch_rows(const struct access *a, const uint32_t *order, uint64_t place)
{
    if (place + AHEAD < a->rows) __builtin_prefetch(a->batch + a->start[order[place + AHEAD]]);
    if (place + 2 * AHEAD < a->rows) __builtin_prefetch(&a->start[order[place + 2 * AHEAD]]);
}

/* Blocks in the order of places; every batch remembers how far it has read. */
static int tally_layout_io(struct tally *t, const uint32_t *place, const uint32_t *first,
                           size_t blocks, uint32_t gap_rows, struct layout_io *out,
                           struct drps_err *err)
{
    const struct local *l = local_of(t);
    const struct access *a = l->access;
    uint32_t *read_end = l->table;
    uint32_t *order = drps_array_new(a->rows, sizeof(*order));
    struct layout_io io = {0};

    *out = io;
    if (!order) return drps_err_set(err, -ENOMEM, "no memory for an order of %u rows", a->rows);
    for (uint32_t row = 0; row < a->rows; row++)
        order[place[row]] = row;
    memset(read_end, 0xff, t->batches * sizeof(*read_end));
    for (size_t b = 0; b < blocks; b++)
        for (uint32_t p = first[b]; p < first[b + 1]; p++) {
            fetch_rows(a, order, p);
            for (uint64_t i = a->start[order[p]]; i < a->start[order[p] + 1]; i++)
                read_block(first[b], first[b + 1], gap_rows, &read_end[a->batch[i]], &io);
        }
    free(order);
    *out = io;
    return 0;
}

/* ---- Opening ---- */

static void tally_close(struct tally *t)
{
    if (!t) return;
    struct local *l = local_of(t);
    access_free(&l->sampled);
    free(l->at);
    free(l->n);
    free(l->pool);
    free(l->table);
    free(l);
}

static const struct tally_ops local_ops = {
    .counts = tally_counts,
    .signatures = tally_signatures,
    .minhash = tally_minhash,
    .cocounts = tally_cocounts,
    .pairs = tally_pairs,
    .merge = tally_merge,
    .pair_work = tally_pair_work,
    .reset = tally_reset,
    .layout_io = tally_layout_io,
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
        l->tally = (struct tally){&local_ops, access->rows, access->batches};
        l->at = drps_array_new(access->rows, sizeof(*l->at));
        l->n = drps_array_new(access->rows, sizeof(*l->n));
        l->table = drps_array_new(access->batches, sizeof(uint64_t));
        if (!l->at || !l->n || !l->table) rc = -ENOMEM;
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
