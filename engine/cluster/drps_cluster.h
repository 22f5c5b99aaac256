/*
 * What ranks settle outside of rounds: that they were started alike, how an epoch went, and one
 * model of the rows of all. Every call is made by all ranks in the same order. Shared inside
 * engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_CLUSTER_H
#define DRPS_ENGINE_CLUSTER_CLUSTER_H

#include "engine/cluster/drps_rounds.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_params.h"
#include "engine/step/drps_server.h"
#include "net/drps_net.h"

struct drps_cluster {
    struct drps_net *net;         /* borrowed, as are the next two */
    const struct drps_plan *part; /* this rank's */
    const struct drps_plan *whole;
    uint32_t rank, count;
    uint32_t wait_ms;
};

/* DRPS_E_CONFIG: plan, options and net do not fit together. */
DRPS_MUST_CHECK
int drps_cluster_init(struct drps_cluster *c, const struct drps_plan *part,
                      const struct drps_train_options *options, struct drps_err *err);

/* DRPS_E_CONFIG names the rank that was started with another plan, other options or another drps
 * than rank 0, on every rank. */
DRPS_MUST_CHECK
int drps_cluster_agree(const struct drps_cluster *c, const struct drps_train_options *options,
                       const struct drps_optim *optim, struct drps_err *err);

/*
 * Sum up an epoch: `epoch` and `sums` (of the training rounds) hold this rank's numbers; afterwards
 * those of all, with the quality that rank 0 has put together from the ranks'
 * `metrics` (NULL: none). Seconds and shares stay this rank's.
 */
struct drps_cluster_sums {
    uint64_t samples;
    double loss_sum;
    uint64_t train_ns; /* until training was done; of all: the longest */
};
DRPS_MUST_CHECK
int drps_cluster_epoch(const struct drps_cluster *c, struct drps_cluster_sums *sums,
                       struct drps_metrics *metrics, struct drps_epoch *epoch,
                       struct drps_err *err);

/* *value becomes the least one of all ranks that is not 0, or 0. */
DRPS_MUST_CHECK
int drps_cluster_least(const struct drps_cluster *c, uint64_t *value, struct drps_err *err);

/*
 * Each rank gives numbers mine [n], n the same on all and at most DRPS_CLUSTER_COMMON_MOST; 0 where
 * it has none. *common_out becomes the largest one that all ranks have, or 0. -EINVAL: n is 0 or
 * too large.
 */
enum { DRPS_CLUSTER_COMMON_MOST = 8 };
DRPS_MUST_CHECK
int drps_cluster_common(const struct drps_cluster *c, const uint64_t *mine, size_t n,
                        uint64_t *common_out, struct drps_err *err);

/* Rank 0 adds the rows of all ranks to `out` in placed order; others, whose `out` is NULL, send
 * theirs. */
DRPS_MUST_CHECK
int drps_cluster_export(const struct drps_cluster *c, const struct drps_server *server,
                        struct drps_params *out, struct drps_err *err);

/* What rank 0 found in them, to all. */
DRPS_MUST_CHECK
int drps_cluster_tell(const struct drps_cluster *c, struct drps_params_found *found,
                      struct drps_err *err);

/* How each rank fared, to all: ranks_out [count], free() it. Rank 0 has all rows then: from here on
 * it needs nobody, and the others need it alone. Of a rank that is lost the numbers are 0. */
DRPS_MUST_CHECK
int drps_cluster_report(const struct drps_cluster *c, const struct drps_train_rank *mine,
                        struct drps_train_rank **ranks_out, struct drps_err *err);

/* Wait until rank 0 has published the model. */
DRPS_MUST_CHECK
int drps_cluster_finish(const struct drps_cluster *c, struct drps_err *err);

/* All payload bytes that this rank has sent to others. */
uint64_t drps_cluster_sent(const struct drps_cluster *c);

/* Returns the bytes of the largest message between ranks that each have all rows (sv/): of a round,
 * or of rows that are copied to all, so many bytes at a time or one row. */
enum { DRPS_CLUSTER_COPY_BYTES = 1 << 18 };

/* Messages of one rank to another that are under way or wait: docs/wire.md counts them. */
enum { DRPS_CLUSTER_QUEUE = 6 };
uint64_t drps_cluster_exchange_bytes(const struct drps_plan_info *info);

/* Returns the memory of an epoch's sums and of a model being put together. */
uint64_t drps_cluster_memory(void);

#endif
