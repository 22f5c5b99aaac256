/*
 * Grid order of ratings: users and items are each cut into groups, a cell is one (user group,
 * item group), and the samples of a cell stand together, shuffled. Cells are visited in a
 * serpentine: one pass through the inner table's groups for each group of the outer table, every
 * second pass backwards, so that each step to the next cell exchanges one group's rows only. Outer
 * is the table with fewer groups (the users when they are equal). Shared inside index/.
 *
 * Within their table rows are placed by a hash of the name (see drps_dict.h), so that a group is a
 * run of placed ids, and groups differ by one row at most.
 *
 * Lanes: a cell's users and items are cut into as many sub-groups as there are lanes. Sub-cells
 * that share no row, one a lane, are a *stratum*, and in a stratum batches of all lanes alternate
 * (index/batches/drps_lanes.h). The strata of a cell follow on each other; where the outer table
 * has one group, the cells take turns, a stratum each. So an item part (a sub-group of the inner
 * table) that one lane has trained is trained by the next lane after a stratum of each other cell.
 *
 * Source: the cells of DSGD (Gemulla, Haas, Nijkamp, Sismanis, KDD 2011); they run cells that share
 * no row in parallel, as we run the sub-cells of a stratum; we run cells that share a group one
 * after another.
 */
#ifndef DRPS_INDEX_ORDER_GRID_H
#define DRPS_INDEX_ORDER_GRID_H

#include <stdint.h>

#include "base/drps_rng.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"

struct grid {
    uint32_t users, items; /* groups of each, 1 .. DRPS_GRID_GROUPS_MAX */
};

struct grid_input {
    uint64_t users, items;          /* rows of each */
    uint64_t samples, test_samples; /* of training, at least 1, and of evaluation */
    uint64_t batch_size;
    uint64_t room_rows; /* in memory, in training */
};

/*
 * The grid with which the fewest rows are expected to move in an epoch.
 *
 * Let x = X / p be a group of the outer table, of X rows in p groups; Y the rows of the inner
 * table; n samples. During a pass the outer group stays in memory and the inner rows go through
 * what it leaves, so that a walk through the cells moves about
 *
 *     X + p Y (1 - exp(-n / pY))
 *
 * rows: each outer row once (none when p = 1), each inner row once a pass that touches it. An outer
 * row need not be there before its first use of the pass, nor after the last: of l = n / X uses at
 * random, these are the share 1 - 2 (1 - exp(-l)) / l + exp(-l) of a pass apart. Where the rows of
 * the group that are there and the inner rows of two windows, of two batches each, exceed the
 * memory, by a share d of the former, those with the longest use distances have to leave
 * and come back. Use distances are exponential: those longer than s times the mean take (1 + s)
 * exp(-s) = d of the time of all, and are exp(-s) of their number; 1 + d times as many leave,
 * because holding has whole windows to choose from (fitted to counted walks). So x may be a little
 * too large for the memory, at a price that grows fast.
 *
 * Training and evaluation are one walk each. p is tried from 1 up, with either table outside, for a
 * little less than the room. The inner groups are a 32nd of the room, or a batch a cell if that is
 * more: small ones, so that windows end near a cell's border whatever the memory. A room for all
 * rows says nothing: then it is a twelfth of them. It is at least that of two batches.
 */
struct grid drps_grid_choose(const struct grid_input *in);

/* When a cell is visited: 0 .. users * items - 1. */
static inline uint64_t grid_cell(const struct grid *g, uint32_t user_group, uint32_t item_group)
{
    const int users_outside = g->users <= g->items;
    const uint32_t inner_n = users_outside ? g->items : g->users;
    const uint32_t outer = users_outside ? user_group : item_group;
    const uint32_t inner = users_outside ? item_group : user_group;
    return (uint64_t)outer * inner_n + (outer % 2 ? inner_n - 1 - inner : inner);
}

/* Rows of a table are placed by this number, of 62 bits. */
static inline uint64_t grid_hash(uint64_t seed, uint64_t key)
{
    enum { HASH_STREAM = 0x67726964 }; /* "grid" */
    return drps_rng_at(seed ^ HASH_STREAM, key) >> 2;
}

/* The group of row `rank` of a table. */
static inline uint32_t grid_group(uint64_t rank, uint64_t rows, uint32_t groups)
{
    return (uint32_t)(rank * groups / rows);
}

/* Where a sample belongs: its stratum 0 .. users * items * lanes - 1, and its lane there. With one
 * lane the strata are the cells. */
struct grid_position {
    uint64_t stratum;
    uint32_t lane;
};

/* 1: the outer table has one group, so that all cells lie along the inner one. */
static inline int grid_has_one_pass(const struct grid *g)
{
    return g->users == 1 || g->items == 1;
}

/* The position of a user group and an item group, of lanes times as many groups. A lane is a
 * sub-group of the outer table, whose rows it has in all strata of a pass: they stay in a thread's
 * cache. In turn k of a cell, lane l has sub-group (l + k) mod lanes of the inner table.
 */
static inline struct grid_position grid_position_of(const struct grid *g, uint32_t lanes,
                                                    uint32_t user, uint32_t item)
{
    const int users_outside = g->users <= g->items;
    const uint32_t lane = (users_outside ? user : item) % lanes;
    const uint32_t inner = (users_outside ? item : user) % lanes;
    const uint64_t cell = grid_cell(g, user / lanes, item / lanes);
    const uint64_t turn = (inner + lanes - lane) % lanes, cells = (uint64_t)g->users * g->items;
    return (struct grid_position){grid_has_one_pass(g) ? turn * cells + cell : cell * lanes + turn,
                                  lane};
}

/*
 * A sample's number in the order: strata have equal ranges of the 64 bits, so that the spool's
 * buckets are equally full in expectation, and `random` decides within. The remainder is as good as
 * uniform: at most 2^28 of its values, 2^36 or more, are likelier than others. With one stratum it
 * is `random` itself (but for one value), hence the shuffled order.
 */
static inline uint64_t grid_order(const struct grid *g, uint32_t lanes, uint64_t stratum,
                                  uint64_t random)
{
    uint64_t width = UINT64_MAX / ((uint64_t)g->users * g->items * lanes);
    return stratum * width + random % width;
}

#endif
