/* A generation's keys in order: small ones as the array has them, then all others, sorted. */
#include "index/dictionary/dict_internal.h"

#include <errno.h>
#include <string.h>

#include "base/drps_alloc.h"

void drps_dict_sort_keys(struct dict_keyed *keys, struct dict_keyed *aux, size_t n)
{
    enum { RADIX = 256, BYTES = 8 };
    size_t count[BYTES][RADIX] = {{0}};
    struct dict_keyed *from = keys, *to = aux;
    for (size_t i = 0; i < n; i++)
        for (unsigned b = 0; b < BYTES; b++)
            count[b][keys[i].key >> 8 * b & (RADIX - 1)]++;
    for (unsigned b = 0; n && b < BYTES; b++) {
        size_t *next = count[b], at = 0;
        if (next[keys[0].key >> 8 * b & (RADIX - 1)] == n) continue; /* they are all the same */
        for (size_t v = 0; v < RADIX; v++) {
            size_t c = next[v];
            next[v] = at;
            at += c;
        }
        for (size_t i = 0; i < n; i++)
            to[next[from[i].key >> 8 * b & (RADIX - 1)]++] = from[i];
        struct dict_keyed *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) memcpy(keys, from, n * sizeof(*keys));
}

int drps_dict_sort_table(struct dict *d, struct drps_err *err)
{
    const size_t n = d->keys.n;
    drps_key_table_close(&d->keys);
    struct dict_keyed *aux = drps_pages_new(n * sizeof(*aux));
    d->sorted = drps_pages_new(n * sizeof(*d->sorted));
    if (!aux || !d->sorted) {
        drps_pages_free(aux, n * sizeof(*aux));
        return drps_err_set(err, -ENOMEM, "no memory to sort %zu names", n);
    }
    for (size_t i = 0; i < n; i++)
        d->sorted[i] = (struct dict_keyed){d->keys.entries[i].key, (uint32_t)(d->keys.small_n + i)};
    drps_dict_sort_keys(d->sorted, aux, n);
    drps_pages_free(aux, n * sizeof(*aux));
    return 0;
}

/* Request what is looked at of a key some keys later. */
static void request(const struct dict *d, uint32_t id)
{
    if (d->keys.entries) __builtin_prefetch(key_table_count(&d->keys, id));
    if (d->placed) __builtin_prefetch(&d->placed[id]);
}

/* Which of the small keys first .. first + 63, below `end`, are there: a bit each. That one is can
 * hardly be predicted: no branch. */
static uint64_t look_at_small(const struct key_count *small, uint64_t first, uint64_t end)
{
    const unsigned n = end - first < 64 ? (unsigned)(end - first) : 64;
    uint64_t there = 0;
    for (unsigned i = 0; i < n; i++)
        there |= (uint64_t)key_count_is_there(&small[first + i]) << i;
    return there;
}

int drps_dict_next(const struct dict *d, struct dict_cursor *c, struct dict_keyed *out)
{
    const uint64_t end = key_table_small_end(&d->keys);
    for (; !c->there && c->small < end; c->small += 64)
        c->there = look_at_small(d->keys.small, c->small, end);
    if (c->there) {
        const uint64_t key = c->small - 64 + (unsigned)__builtin_ctzll(c->there);
        c->there &= c->there - 1;
        *out = (struct dict_keyed){key, (uint32_t)key};
        return 1;
    }
    if (c->sorted == d->keys.n) return 0;
    if (c->sorted + DICT_AHEAD < d->keys.n) request(d, d->sorted[c->sorted + DICT_AHEAD].id);
    *out = d->sorted[c->sorted++];
    return 1;
}
