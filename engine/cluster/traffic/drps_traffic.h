/*
 * Counts what a part of a rank sends to other ranks, by kind and by receiver. A worker and a server
 * count apart, as they are threads; their counts are added between epochs. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_TRAFFIC_TRAFFIC_H
#define DRPS_ENGINE_CLUSTER_TRAFFIC_TRAFFIC_H

#include "engine/drps_engine.h"

struct drps_traffic {
    struct drps_traffic_sum kinds[DRPS_TRAFFIC_KINDS];
    uint64_t to[DRPS_PLAN_WORKERS_MAX]; /* bytes of all kinds */
};

/* So many rows of a kind went to another rank, in so many bytes. */
static inline void drps_traffic_add(struct drps_traffic *t, enum drps_traffic_kind kind,
                                    uint32_t to, uint64_t rows, uint64_t bytes)
{
    t->kinds[kind].rows += rows;
    t->kinds[kind].bytes += bytes;
    t->to[to] += bytes;
}

/* Returns the bytes of parameters, gradients, rows that circulate, and sums. */
uint64_t drps_traffic_values(const struct drps_traffic *t);

/* Add `more` to *sum. */
void drps_traffic_merge(struct drps_traffic *sum, const struct drps_traffic *more);

#endif
