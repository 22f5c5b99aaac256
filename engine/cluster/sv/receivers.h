/*
 * To whom a rank sends its vectors in a round. A pure function that all ranks know, so that
 * receivers know from whom to wait: of the seed, the round and the two ranks alone.
 *
 *   random  Q of the other ranks, drawn anew in each round
 *   robin   the next Q in a fixed circle, so that it meets all in (P - 1) / Q rounds, rounded up
 *   fixed   always the Q ranks behind it (deterministic multicast)
 *
 * Of robin and fixed each rank has Q senders, of random Q on average. What is received counts
 * (P - 1) / Q times, so that it stands for what was not.
 *
 * Source: Xie et al., "Orpheus", section 3.2.2 and Figures 11 and 12. The factor is ours. Private
 * to engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_RECEIVERS_H
#define DRPS_ENGINE_CLUSTER_SV_RECEIVERS_H

#include <stdint.h>

#include "engine/drps_engine.h"

struct receivers {
    uint32_t ranks, to; /* P; Q, from 1 to P - 1 */
    enum drps_multicast_rule rule;
    double loss; /* share of pairs of ranks whose link is broken in a round, both ways */
    uint64_t seed;
};

/* Does rank `from` send to another rank `to` in this round? */
int receivers_has(const struct receivers *r, uint64_t round, uint32_t from, uint32_t to);

/* Returns the factor of what is received. */
float receivers_scale(const struct receivers *r);

#endif
