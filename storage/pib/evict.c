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
enum { ABSENT, UNUSED, USED }; /* of a frame under the clock: not in here; since the hand passed */

static int init_farthest(struct drps_evict *e, uint32_t most_units)
{
    e->classes = drps_evict_class(most_units) + 1;
    e->nextuse = calloc(e->classes, sizeof(*e->nextuse));
    e->key = drps_array_new(e->frames, sizeof(*e->key));
    if (!e->nextuse || !e->key) return -ENOMEM;
    for (unsigned c = 0; c < e->classes; c++)
        if (drps_nextuse_init(&e->nextuse[c], e->link, e->key) < 0) return -ENOMEM;
    return 0;
}

int drps_evict_init(struct drps_evict *e, enum drps_evict_rule rule, uint32_t frames,
                    uint32_t most_units, size_t unit_bytes)
{
    *e = (struct drps_evict){
        .rule = rule, .frames = frames, .unit_bytes = unit_bytes, .oldest = NONE, .newest = NONE};
    if (rule == DRPS_EVICT_CLOCK) {
        e->state = calloc(frames, sizeof(*e->state));
        return e->state ? 0 : -ENOMEM;
    }
    e->link = drps_array_new(frames, sizeof(*e->link));
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

uint64_t drps_evict_bytes(uint64_t frames, uint64_t span, uint32_t most_units)
{
    const uint64_t arrays = drps_nextuse_bytes(frames, 0) - drps_nextuse_bytes(0, 0);
    const uint64_t queue = drps_nextuse_bytes(0, span) + sizeof(struct drps_nextuse);
    return arrays + queue * (drps_evict_class(most_units) + 1); /* the other rules take less */
}

double drps_evict_worth(unsigned class, size_t unit_bytes, uint64_t steps)
{
    const double bytes = (double)unit_bytes * (double)(UINT64_C(1) << class);
    return (double)steps * bytes / (REQUEST_BYTES + bytes);
}

/* Of the class's last frame for now. Infinite when nothing needs it. */
static double worth(const struct drps_evict *e, unsigned class, uint32_t frame, uint64_t now)
{
    if (e->key[frame] == UINT64_MAX) return INFINITY;
    return drps_evict_worth(class, e->unit_bytes, e->key[frame] - now);
}

static uint32_t pop_farthest(struct drps_evict *e, uint64_t now)
{
    unsigned best = 0;
    double most = -1;
    for (unsigned c = 0; c < e->classes; c++) {
        const uint32_t frame = drps_nextuse_last(&e->nextuse[c]);
        const double w = frame == NONE ? -1 : worth(e, c, frame, now);
        if (w <= most) continue;
        most = w;
        best = c;
    }
    return drps_nextuse_pop(&e->nextuse[best]);
}

static void lru_append(struct drps_evict *e, uint32_t frame)
{
    e->link[frame] = (struct drps_nextuse_link){.prev = e->newest, .next = NONE};
    if (e->newest != NONE)
        e->link[e->newest].next = frame;
    else
        e->oldest = frame;
    e->newest = frame;
}

static void lru_remove(struct drps_evict *e, uint32_t frame)
{
    const struct drps_nextuse_link link = e->link[frame];
    if (link.prev != NONE)
        e->link[link.prev].next = link.next;
    else
        e->oldest = link.next;
    if (link.next != NONE)
        e->link[link.next].prev = link.prev;
    else
        e->newest = link.prev;
}

/* Ends within two turns: the first one leaves no frame used. */
static uint32_t clock_next(struct drps_evict *e)
{
    for (;;) {
        const uint32_t frame = e->hand;
        e->hand = frame + 1 < e->frames ? frame + 1 : 0;
        if (e->state[frame] == UNUSED) return frame;
        if (e->state[frame] == USED) e->state[frame] = UNUSED;
    }
}

int drps_evict_insert(struct drps_evict *e, uint32_t frame, uint32_t units, uint64_t next_use,
                      uint64_t now)
{
    if (e->rule == DRPS_EVICT_FARTHEST) {
        int rc = drps_nextuse_insert(&e->nextuse[drps_evict_class(units)], frame, next_use, now);
        if (rc < 0) return rc;
    } else if (e->rule == DRPS_EVICT_CLOCK) {
        e->state[frame] = USED;
    } else {
        lru_append(e, frame);
    }
    e->n++;
    return 0;
}

void drps_evict_remove(struct drps_evict *e, uint32_t frame, uint32_t units)
{
    if (e->rule == DRPS_EVICT_FARTHEST)
        drps_nextuse_remove(&e->nextuse[drps_evict_class(units)], frame);
    else if (e->rule == DRPS_EVICT_CLOCK)
        e->state[frame] = ABSENT;
    else
        lru_remove(e, frame);
    e->n--;
}

uint32_t drps_evict_pop(struct drps_evict *e, uint64_t now)
{
    uint32_t frame;
    if (!e->n) return NONE;
    e->n--;
    if (e->rule == DRPS_EVICT_FARTHEST) return pop_farthest(e, now);
    if (e->rule == DRPS_EVICT_CLOCK) {
        frame = clock_next(e);
        e->state[frame] = ABSENT;
    } else {
        frame = e->oldest;
        lru_remove(e, frame);
    }
    return frame;
}
