/* Buckets in a ring and bitmaps above them; next_use.h has the idea. */
#include "storage/pib/next_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

#define NONE DRPS_NEXTUSE_NONE

enum { FIRST_BUCKETS = 1024 };

static void free_buckets(struct drps_nextuse *q)
{
    free(q->head);
    q->head = NULL;
    drps_bit_tree_destroy(&q->filled);
}

static int make_buckets(struct drps_nextuse *q, uint64_t buckets)
{
    q->buckets = buckets;
    q->head = drps_array_new(buckets, sizeof(*q->head));
    if (!q->head) return -ENOMEM;
    memset(q->head, 0xff, buckets * sizeof(*q->head)); /* all NONE */
    return drps_bit_tree_init(&q->filled, 1, buckets);
}

int drps_nextuse_init(struct drps_nextuse *q, struct drps_nextuse_link *link, uint64_t *key)
{
    *q = (struct drps_nextuse){.link = link, .key = key, .never = NONE};
    return make_buckets(q, FIRST_BUCKETS);
}

void drps_nextuse_destroy(struct drps_nextuse *q)
{
    free_buckets(q);
    memset(q, 0, sizeof(*q));
}

uint64_t drps_nextuse_bytes(uint64_t entries, uint64_t span)
{
    uint64_t buckets = FIRST_BUCKETS;
    while (buckets < span)
        buckets *= 2;
    return entries * (sizeof(struct drps_nextuse_link) + sizeof(uint64_t)) +
           buckets * sizeof(uint32_t) + buckets / 7;
}

static uint32_t *head_of(struct drps_nextuse *q, uint64_t key)
{
    return key == UINT64_MAX ? &q->never : &q->head[key & (q->buckets - 1)];
}

static void push(struct drps_nextuse *q, uint32_t entry, uint64_t key)
{
    uint32_t *head = head_of(q, key);
    q->key[entry] = key;
    q->link[entry] = (struct drps_nextuse_link){.prev = NONE, .next = *head};
    if (*head != NONE)
        q->link[*head].prev = entry;
    else if (key != UINT64_MAX)
        drps_bit_tree_add(&q->filled, 1, 0, key & (q->buckets - 1));
    *head = entry;
}

/* Make room for more buckets. Every entry of one bucket has the same key, so moving the buckets
 * moves everything. */
static int grow(struct drps_nextuse *q, uint64_t span)
{
    struct drps_nextuse old = *q;
    uint64_t buckets = q->buckets;
    while (buckets <= span)
        buckets *= 2;
    q->filled = (struct drps_bit_tree){.levels = 0};
    if (make_buckets(q, buckets) < 0) {
        free_buckets(q);
        *q = old;
        return -ENOMEM;
    }
    for (uint64_t b = 0; b < old.buckets; b++) {
        if (old.head[b] == NONE) continue;
        uint64_t at = q->key[old.head[b]] & (buckets - 1);
        q->head[at] = old.head[b];
        drps_bit_tree_add(&q->filled, 1, 0, at);
    }
    free_buckets(&old);
    return 0;
}

int drps_nextuse_insert(struct drps_nextuse *q, uint32_t entry, uint64_t key, uint64_t floor)
{
    q->floor = floor;
    if (key != UINT64_MAX && key - floor >= q->buckets && grow(q, key - floor) < 0) return -ENOMEM;
    push(q, entry, key);
    q->n++;
    return 0;
}

void drps_nextuse_remove(struct drps_nextuse *q, uint32_t entry)
{
    uint64_t key = q->key[entry];
    struct drps_nextuse_link link = q->link[entry];
    uint32_t *head = head_of(q, key);
    if (link.next != NONE) q->link[link.next].prev = link.prev;
    if (link.prev != NONE)
        q->link[link.prev].next = link.next;
    else
        *head = link.next;
    if (*head == NONE && key != UINT64_MAX)
        drps_bit_tree_remove(&q->filled, 1, 0, key & (q->buckets - 1));
    q->n--;
}

uint32_t drps_nextuse_last(const struct drps_nextuse *q)
{
    if (!q->n || q->never != NONE) return q->never;
    return q->head[drps_bit_tree_last(&q->filled, 1, 0, q->floor, q->buckets)];
}

uint32_t drps_nextuse_pop(struct drps_nextuse *q)
{
    const uint32_t entry = drps_nextuse_last(q);
    if (entry != NONE) drps_nextuse_remove(q, entry);
    return entry;
}
