/*
 * Grid order of ratings: users and items are each dealt into G groups by a hash of the name, a cell
 * is one (user group, item group), and the samples of a cell stand together, shuffled. Cells are
 * visited in a serpentine (row u of the grid from item group 0 to G - 1, row u + 1 back), so that
 * each step to the next cell exchanges one group's rows only. Private to index/.
 *
 * Source: the cells of DSGD (Gemulla, Haas, Nijkamp, Sismanis, KDD 2011); they run cells that share
 * no row in parallel, we run cells that share a group one after another.
 */
#ifndef DRPS_INDEX_GRID_H
#define DRPS_INDEX_GRID_H

#include <stdint.h>

#include "base/drps_rng.h"

enum { GRID_GROUPS = 16, GRID_GROUPS_MAX = 4096 };

/* The group of a user or an item: keys of the two differ already, so that one stream does. */
static inline uint32_t grid_group(uint64_t seed, uint64_t key, uint32_t groups)
{
    enum { GROUP_STREAM = 0x67726964 }; /* "grid" */
    return (uint32_t)((drps_rng_at(seed ^ GROUP_STREAM, key) >> 32) * groups >> 32);
}

/* When a cell is visited: 0 .. groups * groups - 1. */
static inline uint64_t grid_cell(uint32_t user_group, uint32_t item_group, uint32_t groups)
{
    return (uint64_t)user_group * groups + (user_group % 2 ? groups - 1 - item_group : item_group);
}

/*
 * A sample's place in the order: cells have equal ranges of the 64 bits, so that the spool's
 * buckets are equally full in expectation, and `random` decides within. The remainder is as good as
 * uniform: at most 2^24 of its values, 2^40 or more, are likelier than others. With one cell it is
 * `random` itself (but for one value), hence the shuffled order.
 */
static inline uint64_t grid_order(uint64_t cell, uint32_t groups, uint64_t random)
{
    uint64_t width = UINT64_MAX / ((uint64_t)groups * groups);
    return cell * width + random % width;
}

#endif
