/*
 * Lanes of the shuffled order: users and items are dealt to as many parts of each as there are
 * lanes. Lane l has the users of part l for good; in stratum k, 0 .. lanes - 1, it has those of
 * their ratings whose items are of part (l + k) mod lanes. So lanes of a stratum share no row.
 *
 * Rows that are used most have the lowest numbers of their table. Runs of them are dealt forwards
 * and backwards in turn, so that all parts have nearly as many ratings. A run is long enough that
 * few rows of two parts share a cache line, which two threads would take from each other.
 * Shared inside index/.
 */
#ifndef DRPS_INDEX_ORDER_MIX_H
#define DRPS_INDEX_ORDER_MIX_H

#include <stdint.h>

struct mix_position {
    uint32_t stratum, lane; /* below lanes */
};

/* The part of the row with number `rank` in its table. */
static inline uint32_t mix_part(uint32_t rank, uint32_t lanes)
{
    enum { RUN = 16 };
    const uint32_t run = rank / RUN, at = run % lanes;
    return run / lanes % 2 ? lanes - 1 - at : at;
}

static inline struct mix_position mix_position_of(uint32_t lanes, uint32_t user, uint32_t item)
{
    const uint32_t lane = mix_part(user, lanes);
    return (struct mix_position){(mix_part(item, lanes) + lanes - lane) % lanes, lane};
}

#endif
