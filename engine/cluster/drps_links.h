/*
 * Bytes from rank to rank: what each has sent, and what the plan says of it. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_LINKS_H
#define DRPS_ENGINE_CLUSTER_LINKS_H

#include "engine/cluster/drps_cluster.h"
#include "engine/cluster/traffic/drps_traffic.h"

/* What a rank knows of the bytes between it and each other one. */
struct drps_links_mine {
    uint64_t sent[DRPS_PLAN_WORKERS_MAX];
    /* By the plan: */
    uint64_t to[DRPS_PLAN_WORKERS_MAX];   /* it sends these */
    uint64_t from[DRPS_PLAN_WORKERS_MAX]; /* the other one sends these to it */
};

/*
 * Fill in what the plan says of this rank's worker, for so many whole epochs: `to` gradients,
 * `from` parameters. (What its server sends and gets, the workers of the others say.) Reads a file
 * of the plan; of rows that circulate, none.
 */
DRPS_MUST_CHECK
int drps_links_forecast(const struct drps_plan *part, int touches, uint64_t row_bytes,
                        uint64_t epochs, struct drps_links_mine *mine, struct drps_err *err);

/* Put what all ranks know together, on all of them; every rank calls. *out, own, is empty where
 * there are more ranks than DRPS_TRAIN_LINKS_MOST; of a rank that is lost the numbers are 0. */
DRPS_MUST_CHECK
int drps_links_gather(const struct drps_cluster *c, const struct drps_links_mine *mine,
                      struct drps_train_links *out, struct drps_err *err);

#endif
