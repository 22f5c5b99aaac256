/*
 * Ranges of rows on their way between ranks, where rows circulate: what the steps of a plan do that
 * hand rows over (index/plan/drps_batch.h). A range departs to the rank before this one, and one
 * arrives from the rank after it; both know from the plan which rows these are, so that a message
 * has rows alone, in training with the optimizer's state.
 *
 * Sending does not wait for the receiver unless as many ranges are on their way to it as the grid
 * has cells. So many are needed: a rank sends a range of each cell before it takes the first one,
 * and with fewer all ranks would wait for all.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_CIRCULATION_H
#define DRPS_ENGINE_CLUSTER_CIRCULATION_H

#include "engine/cluster/traffic/drps_traffic.h"
#include "engine/step/drps_server.h"
#include "index/plan/drps_batch.h"
#include "net/drps_net.h"

struct drps_circulation; /* opaque */

struct drps_circulation_options { /* all borrowed until close */
    const struct drps_plan *plan; /* the rank's part */
    struct drps_net *net;
    const struct drps_server *server;
    uint32_t wait_ms; /* for a range that is due */
};

DRPS_MUST_CHECK
int drps_circulation_open(const struct drps_circulation_options *options,
                          struct drps_circulation **c_out, struct drps_err *err);
void drps_circulation_close(struct drps_circulation *c); /* NULL-safe; before the net */

/* Returns the memory of ranges that are on their way, here and with the neighbours. */
uint64_t drps_circulation_memory(const struct drps_plan_info *info, uint64_t row_bytes);

/* Returns how many ranges may be on their way from a rank to the one before. */
uint32_t drps_circulation_queue(const struct drps_plan_info *info);

/* Returns the bytes of the largest message, whatever the optimizer. */
uint64_t drps_circulation_message_bytes(const struct drps_plan_info *info);

/*
 * A step that hands rows over: `rows` are those of its row list, the intercept first if there is
 * one. They are copied into the message, or changed to what has arrived. One calling thread, in the
 * plan's order. DRPS_E_PROTO: what has come is not what was due; DRPS_E_CORRUPT: the plan's ranges
 * are larger than it says; and the errors of net.
 */
DRPS_MUST_CHECK
int drps_circulation_step(struct drps_circulation *c, const struct drps_batch *step,
                          const struct drps_rows *rows, struct drps_err *err);

struct drps_circulation_stats {
    uint64_t sent_bytes, received_bytes;
    uint64_t wait_ns; /* for ranges to arrive, or to be taken */
};
void drps_circulation_stats(const struct drps_circulation *c, struct drps_circulation_stats *out);

/* Add what was sent so far to *sum, by kind and by receiver. */
void drps_circulation_traffic(const struct drps_circulation *c, struct drps_traffic *sum);

/* What the plan says of the bytes, for so many epochs. */
void drps_circulation_forecast(const struct drps_plan_info *info, uint64_t row_bytes,
                               uint64_t epochs, struct drps_circulation_stats *out);

#endif
