/*
 * Learning rates that are smaller for stale gradients. A gradient is stale by the batches of other
 * workers whose gradients a server has stepped its rows with since it sent the parameters that the
 * gradient was computed with.
 *
 *   batches   the rate is divided by that number
 *   rounds    the rate is divided by that number over the other workers: by rounds, of which
 *             workers that are equally fast are late by one
 *
 * Never by less than 1. Sources: Zhang, Gupta, Lian, Liu: Staleness-aware async-SGD (IJCAI 2016),
 * which divides by the staleness; Jiang, Cui, Zhang, Yu: Heterogeneity-aware distributed parameter
 * servers (SIGMOD 2017), to which "DRPS" refers (section 2.3): there workers that keep up are not
 * slowed for it, which is `rounds`.
 */
#ifndef DRPS_SCHED_STALE_H
#define DRPS_SCHED_STALE_H

#include <stdint.h>

#define DRPS_STALES(X)                                                                             \
    X(DRPS_STALE_SAME, "same")                                                                     \
    X(DRPS_STALE_BATCHES, "batches")                                                               \
    X(DRPS_STALE_ROUNDS, "rounds")

enum drps_stale {
#define DRPS_STALE_ENUM(rule, name) rule,
    DRPS_STALES(DRPS_STALE_ENUM)
#undef DRPS_STALE_ENUM
};

const char *drps_stale_name(enum drps_stale rule); /* static storage */

/* Returns whether there is a rule of this name. */
int drps_stale_find(const char *name, enum drps_stale *out);

/* Returns what the rate of a gradient is divided by that lacks so many batches of `others`
 * workers: at least 1. */
float drps_stale_divisor(enum drps_stale rule, uint64_t batches, uint32_t others);

#endif
