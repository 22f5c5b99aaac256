#include "storage/evict.h"

#include <errno.h>
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

enum { ABSENT, UNUSED, USED }; /* of a frame under the clock: not in here; since the hand passed */

int drps_evict_init(struct drps_evict *e, enum drps_evict_rule rule, uint32_t frames)
{
    *e = (struct drps_evict){.rule = rule, .frames = frames, .oldest = NONE, .newest = NONE};
    switch (rule) {
    case DRPS_EVICT_CLOCK:
        e->state = calloc(frames, sizeof(*e->state));
        return e->state ? 0 : -ENOMEM;
    case DRPS_EVICT_LRU:
        e->link = drps_array_new(frames, sizeof(*e->link));
        return e->link ? 0 : -ENOMEM;
    case DRPS_EVICT_FARTHEST:
        break;
    }
    return drps_nextuse_init(&e->nextuse, frames);
}

void drps_evict_destroy(struct drps_evict *e)
{
    drps_nextuse_destroy(&e->nextuse);
    free(e->state);
    free(e->link);
    memset(e, 0, sizeof(*e));
}

uint64_t drps_evict_bytes(uint64_t frames, uint64_t span)
{
    return drps_nextuse_bytes(frames, span); /* the others take less */
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

int drps_evict_insert(struct drps_evict *e, uint32_t frame, uint64_t next_use, uint64_t now)
{
    if (e->rule == DRPS_EVICT_FARTHEST) {
        int rc = drps_nextuse_insert(&e->nextuse, frame, next_use, now);
        if (rc < 0) return rc;
    } else if (e->rule == DRPS_EVICT_CLOCK) {
        e->state[frame] = USED;
    } else {
        lru_append(e, frame);
    }
    e->n++;
    return 0;
}

void drps_evict_remove(struct drps_evict *e, uint32_t frame)
{
    if (e->rule == DRPS_EVICT_FARTHEST)
        drps_nextuse_remove(&e->nextuse, frame);
    else if (e->rule == DRPS_EVICT_CLOCK)
        e->state[frame] = ABSENT;
    else
        lru_remove(e, frame);
    e->n--;
}

uint32_t drps_evict_pop(struct drps_evict *e)
{
    uint32_t frame;
    if (!e->n) return NONE;
    if (e->rule == DRPS_EVICT_FARTHEST) {
        e->n--;
        return drps_nextuse_pop(&e->nextuse);
    }
    frame = e->rule == DRPS_EVICT_CLOCK ? clock_next(e) : e->oldest;
    drps_evict_remove(e, frame);
    return frame;
}
