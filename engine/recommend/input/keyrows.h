/* Keys on their way to rows: they are looked up many at a time, so that the dictionary is read page
 * by page. Private to engine/recommend/input/. */
#ifndef DRPS_ENGINE_RECOMMEND_INPUT_KEYROWS_H
#define DRPS_ENGINE_RECOMMEND_INPUT_KEYROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_extsort.h"
#include "engine/publish/drps_modeldir.h"

struct drps_keyrows {
    size_t cap, n;
    uint32_t *rows; /* own: [cap] of key i its row, or DRPS_NO_ROW, after the look-up */

    struct drps_sort_record *records, *aux; /* own: [cap]: key and number */
    uint64_t *keys;                         /* own: [cap] in order */
    uint32_t *sorted;                       /* own: [cap] their rows */
};

uint64_t drps_keyrows_memory(size_t cap);
/* -ENOMEM. Destroy it in either case. */
DRPS_MUST_CHECK
int drps_keyrows_init(struct drps_keyrows *k, size_t cap, struct drps_err *err);
void drps_keyrows_destroy(struct drps_keyrows *k); /* zeroed too */

/* Add key number k->n; there must be room. */
static inline void drps_keyrows_add(struct drps_keyrows *k, uint64_t key)
{
    k->records[k->n] = (struct drps_sort_record){.hi = key, .a = (uint32_t)k->n};
    k->n++;
}

/* Fill rows [n]. The next keys have numbers from 0 on again once n is set to 0. */
DRPS_MUST_CHECK
int drps_keyrows_find(struct drps_keyrows *k, struct drps_modeldir *md, struct drps_err *err);

#endif
