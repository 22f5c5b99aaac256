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

struct drps_links_job {
    int touches;               /* gradients say how many samples touch a row */
    int hands_on;              /* rows are handed on */
    uint64_t row_bytes;        /* of a row with the optimizer's state */
    uint64_t epochs;           /* whole ones */
    const uint64_t *exchanged; /* [count] bytes that this rank sends each other one in the training
                                  of an epoch, where all have all rows; NULL: they have not */
};

/*
 * Fill in what the plan says of this rank's worker: `to` gradients, and rows that it returns or
 * hands on, `from` parameters, and rows that it is lent. (What its server sends and gets, the
 * workers of the others say.) Reads files of the plan; of rows that circulate, none.
 */
DRPS_MUST_CHECK
int drps_links_forecast(const struct drps_plan *part, const struct drps_links_job *job,
                        struct drps_links_mine *mine, struct drps_err *err);

/* Put what all ranks know together, on all of them; every rank calls. *out, own, is empty where
 * there are more ranks than DRPS_TRAIN_LINKS_MOST; of a rank that is lost the numbers are 0. */
DRPS_MUST_CHECK
int drps_links_gather(const struct drps_cluster *c, const struct drps_links_mine *mine,
                      struct drps_train_links *out, struct drps_err *err);

#endif
