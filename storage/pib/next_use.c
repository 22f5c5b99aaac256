/* Buckets in a ring and bitmaps above them; next_use.h has the idea. */
#include "storage/pib/next_use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

#define NONE DRPS_NEXTUSE_NONE

enum { FIRST_BUCKETS = 1024 };

static void map_set(struct drps_nextuse *q, uint64_t b)
{
    for (int l = 0; l < q->levels; l++, b >>= 6) {
        uint64_t before = q->map[l][b >> 6];
        q->map[l][b >> 6] = before | 1ull << (b & 63);
        if (before) return; /* the levels above know already */
    }
}

static void map_clear(struct drps_nextuse *q, uint64_t b)
{
    for (int l = 0; l < q->levels; l++, b >>= 6)
        if (q->map[l][b >> 6] &= ~(1ull << (b & 63))) return;
}

static unsigned top_bit(uint64_t word)
{
    return 63u - (unsigned)__builtin_clzll(word);
}

/* The largest set bit at or below b, or UINT64_MAX. */
static uint64_t map_find_down(const struct drps_nextuse *q, uint64_t b)
{
    for (int l = 0; l < q->levels; l++) {
        uint64_t word = q->map[l][b >> 6] & (UINT64_MAX >> (63 - (b & 63)));
        if (word) {
            b = (b >> 6) << 6 | top_bit(word);
            while (l-- > 0)
                b = b << 6 | top_bit(q->map[l][b]);
            return b;
        }
        if (!(b >> 6)) return UINT64_MAX;
        b = (b >> 6) - 1; /* continue with the words before this one */
    }
    return UINT64_MAX;
}

static void free_buckets(struct drps_nextuse *q)
{
    free(q->head);
    q->head = NULL;
    for (int l = 0; l < DRPS_NEXTUSE_LEVELS; l++) {
        free(q->map[l]);
        q->map[l] = NULL;
    }
}

static int make_buckets(struct drps_nextuse *q, uint64_t buckets)
{
    q->buckets = buckets;
    q->levels = 0;
    q->head = drps_array_new(buckets, sizeof(*q->head));
    if (!q->head) return -ENOMEM;
    memset(q->head, 0xff, buckets * sizeof(*q->head)); /* all NONE */
    for (uint64_t bits = buckets;; bits = (bits + 63) / 64) {
        if (q->levels == DRPS_NEXTUSE_LEVELS) return -ENOMEM;
        q->map[q->levels] = calloc((bits + 63) / 64, sizeof(uint64_t));
        if (!q->map[q->levels++]) return -ENOMEM;
        if (bits <= 64) return 0;
    }
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
        map_set(q, key & (q->buckets - 1));
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
    memset(q->map, 0, sizeof(q->map));
    if (make_buckets(q, buckets) < 0) {
        free_buckets(q);
        *q = old;
        return -ENOMEM;
    }
    for (uint64_t b = 0; b < old.buckets; b++) {
        if (old.head[b] == NONE) continue;
        uint64_t at = q->key[old.head[b]] & (buckets - 1);
        q->head[at] = old.head[b];
        map_set(q, at);
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
    if (*head == NONE && key != UINT64_MAX) map_clear(q, key & (q->buckets - 1));
    q->n--;
}

uint32_t drps_nextuse_last(const struct drps_nextuse *q)
{
    if (!q->n || q->never != NONE) return q->never;
    /* Keys from floor on lie in the ring from floor's bucket upwards and, past its end, below that
     * bucket. */
    uint64_t at = q->floor & (q->buckets - 1);
    uint64_t b = at ? map_find_down(q, at - 1) : UINT64_MAX;
    if (b == UINT64_MAX) b = map_find_down(q, q->buckets - 1);
    return q->head[b];
}

uint32_t drps_nextuse_pop(struct drps_nextuse *q)
{
    const uint32_t entry = drps_nextuse_last(q);
    if (entry != NONE) drps_nextuse_remove(q, entry);
    return entry;
}
