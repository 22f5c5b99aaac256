/*
 * A row's list of batches stays where the accesses have it; the list of a merged block replaces
 * those of its parts in a pool, so that the incidences shrink as merging goes on. The pool is only
 * appended to, and squeezed when half of it is garbage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/blocks/counts/counts_local.h"

enum {
    POOL_HEAD = 2,    /* words before a list in the pool: its block, its length */
    GALLOP_RATIO = 16 /* lists so unequal are searched, not walked */
};

/* ---- Lists: n strictly increasing numbers ---- */

/* The first position p from `i` on with list[p] >= x. */
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

/* Whether the list of a block lies in the pool. Empty lists are nowhere. */
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

/* Make room for a list of n, before it is known whose it is. */
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

/* ---- Merging ---- */

uint32_t drps_counts_common(const struct local *l, struct block_pair p)
{
    return common(list_of(l, p.a), l->n[p.a], list_of(l, p.b), l->n[p.b]);
}

/* A list that holds the other serves for both; else a new one in the pool. */
int drps_counts_merge_lists(struct local *l, struct block_pair p, struct drps_err *err)
{
    const uint32_t an = l->n[p.a], bn = l->n[p.b], both = drps_counts_common(l, p),
                   n = an + bn - both;
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
