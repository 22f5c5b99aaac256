/*
 * How rows circulate between the ranks of a plan with lanes (index/order/drps_grid.h), in a grid of
 * a single pass. Pure; shared inside index/.
 *
 * Rank w has the lanes w m to w m + m - 1, of L = m W, and keeps their rows of the outer table. The
 * inner table is cut into C L parts, C cells with one for each lane. An epoch's strata are numbered
 * 0, 1, ..., training before evaluation; in stratum s lane l has part (l + s / C) mod L of cell
 * s mod C. So a part goes from lane to lane, downwards, and is wanted again C strata after it was
 * used. After an epoch every part is at *home*: with the lane that uses it first.
 *
 * Rows are numbered by *range*: for each lane that of its outer rows, then the parts at home there,
 * by cell. So what a rank has between epochs is one run of row numbers.
 *
 * Of a rank's lanes only the first one's range leaves the rank, and only the last one's comes from
 * another rank. The steps of a rank:
 *
 *     for each stratum s:  arrive what lane w m + m - 1 wants, if s >= C
 *                          train, or evaluate
 *                          depart what lane w m had
 *     and at the end:      arrive what that lane wants in strata 0 to C - 1 of the next epoch
 *
 * Evaluation begins with every range at home and changes none. So what departs after a stratum of
 * evaluation is parameters without the optimizer's state, and nothing goes to the rank where it is
 * at home, which has it.
 *
 * Ranks hand ranges on in one order, so that the n-th that departs from rank w is the n-th that
 * arrives at rank w - 1.
 *
 * Source: DSGD (Gemulla, Haas, Nijkamp, Sismanis, KDD 2011), whose strata end in a barrier; here a
 * range travels while the strata of the other cells are trained.
 */
#ifndef DRPS_INDEX_RANKS_CIRCULATION_H
#define DRPS_INDEX_RANKS_CIRCULATION_H

#include <stdint.h>

#include "index/plan/drps_plan.h"

struct circulation {
    uint32_t workers, lanes, cells;
    uint64_t train;  /* strata of training */
    uint64_t strata; /* of an epoch */
};

#define CIRCULATION_NONE UINT32_MAX

/* Returns the circulation of a plan whose grid has a single pass. */
static inline struct circulation circulation_of(const struct drps_plan_info *info, uint32_t workers)
{
    const uint64_t cells = info->grid_users * info->grid_items;
    const uint64_t train = cells * info->lanes;
    return (struct circulation){.workers = workers,
                                .lanes = (uint32_t)info->lanes,
                                .cells = (uint32_t)cells,
                                .train = train,
                                .strata = info->eval_batches ? 2 * train : train};
}

/* How many ranges there are, and where those of a lane begin: with that of its outer rows. */
static inline uint32_t circulation_ranges(const struct circulation *c)
{
    return c->lanes * (c->cells + 1);
}
static inline uint32_t circulation_first_range(const struct circulation *c, uint32_t lane)
{
    return lane * (c->cells + 1);
}

/* The range of the inner table that a lane has in a stratum. */
static inline uint32_t circulation_range(const struct circulation *c, uint64_t stratum,
                                         uint32_t lane)
{
    const uint32_t home = (uint32_t)((lane + stratum / c->cells) % c->lanes);
    return circulation_first_range(c, home) + 1 + (uint32_t)(stratum % c->cells);
}

/* The first lane of a rank; of rank `workers` the end. */
static inline uint32_t circulation_lane(const struct circulation *c, uint32_t rank)
{
    return c->lanes / c->workers * rank;
}

/* The rank where a range is at home. */
static inline uint32_t circulation_home(const struct circulation *c, uint32_t range)
{
    return range / (c->cells + 1) / (c->lanes / c->workers);
}

/* The range that departs from a rank after a stratum. */
static inline uint32_t circulation_departs(const struct circulation *c, uint64_t stratum,
                                           uint32_t rank)
{
    if (stratum >= c->strata) return CIRCULATION_NONE;
    const uint32_t range = circulation_range(c, stratum, circulation_lane(c, rank));
    const uint32_t to = (rank + c->workers - 1) % c->workers;
    return stratum >= c->train && circulation_home(c, range) == to ? CIRCULATION_NONE : range;
}

/* The range that arrives at a rank before a stratum, 0 to strata + cells - 1: those from `strata`
 * on are the first ones of the next epoch. */
static inline uint32_t circulation_arrives(const struct circulation *c, uint64_t stratum,
                                           uint32_t rank)
{
    if (stratum < c->cells) return CIRCULATION_NONE;
    const uint32_t range = circulation_range(c, stratum, circulation_lane(c, rank + 1) - 1);
    const int evaluation = stratum - c->cells >= c->train; /* departed in it */
    return evaluation && circulation_home(c, range) == rank ? CIRCULATION_NONE : range;
}

#endif
