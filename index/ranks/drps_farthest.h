/*
 * Rows that have a slot, by the round of their next use: so the one that is used again latest is
 * found at once. Rows of several workers lie in as many sets. Shared inside index/.
 */
#ifndef DRPS_INDEX_RANKS_FARTHEST_H
#define DRPS_INDEX_RANKS_FARTHEST_H

#include "base/drps_bit_tree.h"
#include "base/drps_err.h"

#define DRPS_FARTHEST_NONE UINT32_MAX

struct drps_farthest {
    uint32_t *next;             /* own: [rows] the round of a row's next use, of rows in a set */
    uint32_t *after, *before;   /* own: [rows] neighbours in the list of that round */
    uint32_t *head;             /* own: [sets][rounds] first row of a list, or NONE */
    struct drps_bit_tree lists; /* rounds whose list is not empty */
    unsigned sets;
    uint64_t rounds;
};

uint64_t drps_farthest_bytes(uint64_t rows, unsigned sets, uint64_t rounds);

/* Empty sets. destroy() also after a failure. */
DRPS_MUST_CHECK
int drps_farthest_init(struct drps_farthest *f, uint64_t rows, unsigned sets, uint64_t rounds,
                       struct drps_err *err);
void drps_farthest_destroy(struct drps_farthest *f);

/* A row, of no set, joins one. */
void drps_farthest_put(struct drps_farthest *f, unsigned set, uint32_t row, uint32_t next);

/* A row leaves its set. */
void drps_farthest_take(struct drps_farthest *f, unsigned set, uint32_t row);

/* Returns a row of the set that is used again latest; NONE: the set is empty. */
uint32_t drps_farthest_row(const struct drps_farthest *f, unsigned set);

#endif
