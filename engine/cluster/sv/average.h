/*
 * Replicas that differ meet: all become their average (periodic centralised synchronisation), or
 * each moves to the next rank (rotation of parameter replicas). The optimizer's state goes with the
 * parameters. Ranks call together.
 *
 * Source: Xie et al., "Orpheus", section 3.2.3. Private to engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_AVERAGE_H
#define DRPS_ENGINE_CLUSTER_SV_AVERAGE_H

#include "engine/cluster/sv/replica.h"

/* All-reduces have numbers of their own: *sums_done are the caller's so far. */
DRPS_MUST_CHECK
int replica_average(struct replica *r, struct drps_net *net, uint64_t *sums_done, uint32_t wait_ms,
                    struct drps_err *err);

/* Returns what the rank at this place sends for it. */
uint64_t replica_average_bytes(uint64_t rows, size_t row_bytes, uint32_t ranks, uint32_t place);

/* Rank r's rows go to rank r + 1, the last one's to the first. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int replica_rotate(struct replica *r, struct drps_net *net, uint32_t wait_ms, struct drps_err *err);

#endif
