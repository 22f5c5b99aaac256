/* A batch of keys is sorted, looked up in order, and the rows go back to where their keys were. */
#include "engine/recommend/input/keyrows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

uint64_t drps_keyrows_memory(size_t cap)
{
    return cap * (2 * (uint64_t)sizeof(struct drps_sort_record) + sizeof(uint64_t) +
                  2 * sizeof(uint32_t));
}

int drps_keyrows_init(struct drps_keyrows *k, size_t cap, struct drps_err *err)
{
    *k = (struct drps_keyrows){.cap = cap};
    k->rows = drps_array_new(cap, sizeof(*k->rows));
    k->records = drps_array_new(cap, sizeof(*k->records));
    k->aux = drps_array_new(cap, sizeof(*k->aux));
    k->keys = drps_array_new(cap, sizeof(*k->keys));
    k->sorted = drps_array_new(cap, sizeof(*k->sorted));
    if (k->rows && k->records && k->aux && k->keys && k->sorted) return 0;
    return drps_err_set(err, -ENOMEM, "no memory to look up %zu names", cap);
}

void drps_keyrows_destroy(struct drps_keyrows *k)
{
    free(k->rows);
    free(k->records);
    free(k->aux);
    free(k->keys);
    free(k->sorted);
    *k = (struct drps_keyrows){.cap = 0};
}

int drps_keyrows_find(struct drps_keyrows *k, struct drps_modeldir *md, struct drps_err *err)
{
    drps_sort_records(k->records, k->aux, k->n);
    for (size_t i = 0; i < k->n; i++)
        k->keys[i] = k->records[i].hi;
    const int rc = drps_modeldir_lookup(md, k->keys, k->n, k->sorted, err);
    for (size_t i = 0; rc == 0 && i < k->n; i++)
        k->rows[k->records[i].a] = k->sorted[i];
    return rc;
}
