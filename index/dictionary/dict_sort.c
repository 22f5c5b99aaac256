/* A generation's keys in order: sorted, or, when all are small, as the array has them. */
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

/* All keys are small: the array has them in order. */
static void list_small(struct dict *d)
{
    size_t listed = 0;
    for (uint64_t key = 0; listed < d->keys.n; key++)
        if (d->keys.small[key])
            d->sorted[listed++] = (struct dict_keyed){key, d->keys.small[key] - 1};
}

int drps_dict_sort_table(struct dict *d, struct drps_err *err)
{
    const size_t n = d->keys.n;
    const int small = d->keys.small_used == n;
    drps_key_table_close_lines(&d->keys);
    if (!small) drps_key_table_close(&d->keys);
    struct dict_keyed *aux = small ? NULL : drps_pages_new(n * sizeof(*aux));
    d->sorted = drps_pages_new(n * sizeof(*d->sorted));
    if ((!aux && !small) || !d->sorted) {
        drps_pages_free(aux, n * sizeof(*aux));
        return drps_err_set(err, -ENOMEM, "no memory to sort %zu names", n);
    }
    if (small) {
        list_small(d);
        drps_key_table_close(&d->keys);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        d->sorted[i] = (struct dict_keyed){d->keys.entries[i].key, (uint32_t)i};
    drps_dict_sort_keys(d->sorted, aux, n);
    drps_pages_free(aux, n * sizeof(*aux));
    return 0;
}
