/*
 * Chooses the block to evict, among entries that no step holds, by one of three rules.
 *
 *   farthest  the block that is used again last (next_use.h), as the plan knows. Of blocks of
 *             different sizes, the one with the largest (steps until then) x (bytes it frees) /
 *             (time to move it): it brings least for the memory it takes. Sizes count in powers of
 *             two; with one size this is Belady's rule
 *   clock     the first block that was not used since the hand came round last (Corbato, "A paging
 *             experiment with the Multics system", 1968)
 *   lru       the block used longest ago
 *
 * One thread at a time. Memory: drps_evict_bytes().
 */
#ifndef DRPS_STORAGE_PIB_EVICT_H
#define DRPS_STORAGE_PIB_EVICT_H

#include "storage/drps_store.h"
#include "storage/pib/next_use.h"

/* Name the rules: "farthest", "clock", "lru". drps_evict_find() returns 0, or -1 for another name.
 */
const char *drps_evict_name(enum drps_evict_rule rule);
int drps_evict_find(const char *name, enum drps_evict_rule *rule_out);

/* The entries that may be given up. */
struct drps_evict {
    enum drps_evict_rule rule;
    uint32_t entries;
    uint32_t n; /* entries in here */

    struct drps_nextuse *nextuse; /* farthest, own: [classes], by the logarithm of the size */
    unsigned classes;
    size_t unit_bytes;
    uint64_t *key; /* own: [entries] */

    uint8_t *state; /* clock, own: [entries] see evict.c */
    uint32_t hand;

    struct drps_nextuse_link *link; /* farthest and lru, own: [entries] */
    uint32_t oldest, newest;
};

/* Blocks have 1 to most_units units of unit_bytes. 0 or -ENOMEM. `e` may be destroyed in either
 * case. */
int drps_evict_init(struct drps_evict *e, enum drps_evict_rule rule, uint32_t entries,
                    uint32_t most_units, size_t unit_bytes);
void drps_evict_destroy(struct drps_evict *e);

/* Sizes count in powers of two: the class of a block is the logarithm of its units. */
static inline unsigned drps_evict_class(uint32_t units)
{
    return 31u - (unsigned)__builtin_clz(units);
}

/* What evicting a block of this class (the logarithm of its units) brings, when it is used again in
 * so many steps: the quotient above. */
double drps_evict_worth(unsigned class, size_t unit_bytes, uint64_t steps);

/* Returns the memory for so many entries, and next uses up to `span` steps ahead, whatever the
 * rule. */
uint64_t drps_evict_bytes(uint64_t entries, uint64_t span, uint32_t most_units);

/*
 * Insert an entry of a block of `units`, which was used just now and may be evicted from now on.
 * next_use >= now, and `now` never falls. 0 or -ENOMEM with nothing changed.
 */
int drps_evict_insert(struct drps_evict *e, uint32_t entry, uint32_t units, uint64_t next_use,
                      uint64_t now);

void drps_evict_remove(struct drps_evict *e, uint32_t entry, uint32_t units);

/* Remove and return the entry to evict in step `now`; DRPS_NEXTUSE_NONE when there is none. */
uint32_t drps_evict_pop(struct drps_evict *e, uint64_t now);

#endif
