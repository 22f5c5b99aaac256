/*
 * A queue of the block pool's entries by the step that uses their block next, largest first
 * (Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
 * Journal 5, 1966).
 *
 * There is a bucket a step, in a ring, with a tree of bitmaps over the buckets: insert, remove and
 * take-the-largest touch a few words each, whatever the number of entries. One thread at a time.
 * Private to storage/pib/.
 */
#ifndef DRPS_STORAGE_PIB_NEXT_USE_H
#define DRPS_STORAGE_PIB_NEXT_USE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_bit_tree.h"

enum { DRPS_NEXTUSE_NONE = UINT32_MAX };

struct drps_nextuse_link {
    uint32_t prev, next; /* entries of the same bucket; DRPS_NEXTUSE_NONE at the ends */
};

struct drps_nextuse {
    struct drps_nextuse_link *link; /* [entries] borrowed */
    uint64_t *key;                  /* [entries] borrowed: the next use of an entry in the queue */
    uint32_t *head;                 /* [buckets] own: first entry of each */
    struct drps_bit_tree filled;    /* buckets that have entries */
    uint64_t buckets;               /* a power of two, at least 64 */
    uint64_t floor; /* every key in the queue is in [floor, floor + buckets) or UINT64_MAX */
    uint32_t never; /* entries whose block no step uses again: evicted first */
    uint32_t n;     /* entries in the queue */
};

/* Several queues may share the arrays: an entry is in one of them at most. 0 or -ENOMEM. `q` may be
 * destroyed in either case. */
int drps_nextuse_init(struct drps_nextuse *q, struct drps_nextuse_link *link, uint64_t *key);
void drps_nextuse_destroy(struct drps_nextuse *q);

/* Returns the memory for `entries` entries, arrays included, and next uses up to `span` steps
 * ahead. */
uint64_t drps_nextuse_bytes(uint64_t entries, uint64_t span);

/*
 * Insert an entry that is not in the queue. floor: no key in the queue, `key` included, is smaller;
 * it never falls. 0 or -ENOMEM with the queue unchanged.
 */
int drps_nextuse_insert(struct drps_nextuse *q, uint32_t entry, uint64_t key, uint64_t floor);

void drps_nextuse_remove(struct drps_nextuse *q, uint32_t entry);

/* Returns the entry used again last; DRPS_NEXTUSE_NONE when the queue is empty. */
uint32_t drps_nextuse_last(const struct drps_nextuse *q);

/* Remove and return that entry; DRPS_NEXTUSE_NONE when the queue is empty. */
uint32_t drps_nextuse_pop(struct drps_nextuse *q);

#endif
