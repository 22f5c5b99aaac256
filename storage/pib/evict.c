/* Three rules of eviction behind one interface; drps_evict.h explains them. */
#include "storage/pib/drps_evict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

#define NONE DRPS_NEXTUSE_NONE

static const char *const names[] = {"farthest", "clock", "lru"}; /* in the order of the rules */

const char *drps_evict_name(enum drps_evict_rule rule)
{
    return names[rule];
}

int drps_evict_find(const char *name, enum drps_evict_rule *rule_out)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(names[i], name) != 0) continue;
        *rule_out = (enum drps_evict_rule)i;
        return 0;
    }
    return -1;
}

enum { REQUEST_BYTES = 48 << 10 }; /* that a solid-state disk moves in the time of a request */
enum { ABSENT, UNUSED, USED }; /* of an entry under the clock: not in here; since the hand passed */

static int init_farthest(struct drps_evict *e, uint32_t most_units)
{
    e->classes = drps_evict_class(most_units) + 1;
    e->nextuse = calloc(e->classes, sizeof(*e->nextuse));
    e->key = drps_array_new(e->entries, sizeof(*e->key));
    if (!e->nextuse || !e->key) return -ENOMEM;
    for (unsigned c = 0; c < e->classes; c++)
        if (drps_nextuse_init(&e->nextuse[c], e->link, e->key) < 0) return -ENOMEM;
    return 0;
}

int drps_evict_init(struct drps_evict *e, enum drps_evict_rule rule, uint32_t entries,
                    uint32_t most_units, size_t unit_bytes)
{
    *e = (struct drps_evict){
        .rule = rule, .entries = entries, .unit_bytes = unit_bytes, .oldest = NONE, .newest = NONE};
    if (rule == DRPS_EVICT_CLOCK) {
        e->state = calloc(entries, sizeof(*e->state));
        return e->state ? 0 : -ENOMEM;
    }
    e->link = drps_array_new(entries, sizeof(*e->link));
    if (!e->link) return -ENOMEM;
    return rule == DRPS_EVICT_FARTHEST ? init_farthest(e, most_units) : 0;
}

void drps_evict_destroy(struct drps_evict *e)
{
    for (unsigned c = 0; e->nextuse && c < e->classes; c++)
        drps_nextuse_destroy(&e->nextuse[c]);
    free(e->nextuse);
    free(e->key);
    free(e->state);
    free(e->link);
    memset(e, 0, sizeof(*e));
}

uint64_t drps_evict_bytes(uint64_t entries, uint64_t span, uint32_t most_units)
{
    const uint64_t arrays = drps_nextuse_bytes(entries, 0) - drps_nextuse_bytes(0, 0);
    const uint64_t queue = drps_nextuse_bytes(0, span) + sizeof(struct drps_nextuse);
    return arrays + queue * (drps_evict_class(most_units) + 1); /* the other rules take less */
}

double drps_evict_worth(unsigned class, size_t unit_bytes, uint64_t steps)
{
    const double bytes = (double)unit_bytes * (double)(UINT64_C(1) << class);
    return (double)steps * bytes / (REQUEST_BYTES + bytes);
}

/* What evicting the last entry of the class brings. Infinite when no step uses its block again. */
static double worth(const struct drps_evict *e, unsigned class, uint32_t entry, uint64_t now)
{
    if (e->key[entry] == UINT64_MAX) return INFINITY;
    return drps_evict_worth(class, e->unit_bytes, e->key[entry] - now);
}

static uint32_t pop_farthest(struct drps_evict *e, uint64_t now)
{
    unsigned best = 0;
    double most = -1;
    for (unsigned c = 0; c < e->classes; c++) {
        const uint32_t entry = drps_nextuse_last(&e->nextuse[c]);
        const double w = entry == NONE ? -1 : worth(e, c, entry, now);
        if (w <= most) continue;
        most = w;
        best = c;
    }
    return drps_nextuse_pop(&e->nextuse[best]);
}

static void lru_append(struct drps_evict *e, uint32_t entry)
{
    e->link[entry] = (struct drps_nextuse_link){.prev = e->newest, .next = NONE};
    if (e->newest != NONE)
        e->link[e->newest].next = entry;
    else
        e->oldest = entry;
    e->newest = entry;
}

static void lru_remove(struct drps_evict *e, uint32_t entry)
{
    const struct drps_nextuse_link link = e->link[entry];
    if (link.prev != NONE)
        e->link[link.prev].next = link.next;
    else
        e->oldest = link.next;
    if (link.next != NONE)
        e->link[link.next].prev = link.prev;
    else
        e->newest = link.prev;
}

/* Take the entry under the hand. This ends within two turns: the first one leaves no entry used. */
static uint32_t clock_next(struct drps_evict *e)
{
    for (;;) {
        const uint32_t entry = e->hand;
        e->hand = entry + 1 < e->entries ? entry + 1 : 0;
        if (e->state[entry] == UNUSED) return entry;
        if (e->state[entry] == USED) e->state[entry] = UNUSED;
    }
}

int drps_evict_insert(struct drps_evict *e, uint32_t entry, uint32_t units, uint64_t next_use,
                      uint64_t now)
{
    if (e->rule == DRPS_EVICT_FARTHEST) {
        int rc = drps_nextuse_insert(&e->nextuse[drps_evict_class(units)], entry, next_use, now);
        if (rc < 0) return rc;
    } else if (e->rule == DRPS_EVICT_CLOCK) {
        e->state[entry] = USED;
    } else {
        lru_append(e, entry);
    }
    e->n++;
    return 0;
}

void drps_evict_remove(struct drps_evict *e, uint32_t entry, uint32_t units)
{
    if (e->rule == DRPS_EVICT_FARTHEST)
        drps_nextuse_remove(&e->nextuse[drps_evict_class(units)], entry);
    else if (e->rule == DRPS_EVICT_CLOCK)
        e->state[entry] = ABSENT;
    else
        lru_remove(e, entry);
    e->n--;
}

uint32_t drps_evict_pop(struct drps_evict *e, uint64_t now)
{
    uint32_t entry;
    if (!e->n) return NONE;
    e->n--;
    if (e->rule == DRPS_EVICT_FARTHEST) return pop_farthest(e, now);
    if (e->rule == DRPS_EVICT_CLOCK) {
        entry = clock_next(e);
        e->state[entry] = ABSENT;
    } else {
        entry = e->oldest;
        lru_remove(e, entry);
    }
    return entry;
}
