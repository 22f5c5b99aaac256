/* Ranks that make a plan together (drps_together.h): one of them over a net, or all on this
 * machine. Shared inside index/. */
#ifndef DRPS_INDEX_TOGETHER_TOGETHER_RUN_H
#define DRPS_INDEX_TOGETHER_TOGETHER_RUN_H

#include "index/drps_index.h"
#include "net/drps_net.h"

/* What messages take, and what tells the ranks from those of other jobs; rank, count and the rest
 * are the caller's. */
void drps_together_net_options(struct drps_net_options *out);

/* Run one rank over a net that is open, with these options, and moves here. io NULL: the system's.
 * A net of one rank is a run of one machine. */
DRPS_MUST_CHECK
int drps_together_run_on(struct drps_net *net, const struct drps_io *io,
                         const struct drps_index_options *index, struct drps_index_result *result,
                         struct drps_err *err);

/* Run `count` ranks as processes; this one is rank 0. Each reads its share of the inputs. */
struct drps_together_local {
    const struct drps_index_options *index;
    const struct drps_io *io; /* of rank 0; NULL: the system's */
    uint32_t count;
    uint32_t cut_ms;
};
DRPS_MUST_CHECK
int drps_together_run_local(const struct drps_together_local *local,
                            struct drps_index_result *result, struct drps_err *err);

#endif
