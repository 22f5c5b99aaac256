/*
 * Rounds of ranks that each have all rows (replicas), for models whose gradient is a sum of outer
 * products (several classes): no parameters travel, and each rank sends all others what its batch's
 * gradient is made of.
 *
 *   rank r, in round t
 *     scores of its batch's rows of the replica, slopes u = probabilities - label
 *     vectors: u and the batch's samples x, from which the others make its gradient sum of u x';
 *     sparse:  its gradient's rows;  dense: the sum of all gradients by an all-reduce
 *     gradients are added in the order of ranks, and stepped: by all ranks alike
 *     the rows of the rank's own server are copied to its store
 *
 * So stores, evaluation, checkpoints and export are those of rounds with servers, and with vectors
 * and sparse rows the model is theirs to the bit (of one thread: several compute scores alike, and
 * add up each gradient as one does). An all-reduce adds up in another order. Where some of a
 * batch's vectors stand for all (select/) it is another model, on all ranks the same. Ranks stop
 * between epochs alone.
 *
 * Under asp and wsp there are no rounds: see below.
 *
 * Source: Xie et al., "Orpheus", sections 3 and 4. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_EXCHANGE_H
#define DRPS_ENGINE_CLUSTER_SV_EXCHANGE_H

#include "engine/cluster/drps_cluster.h"
#include "engine/cluster/drps_rounds.h"
#include "engine/cluster/sv/select/drps_select.h"
#include "engine/cluster/traffic/drps_traffic.h"
#include "engine/drps_engine.h"
#include "engine/step/drps_feed.h"
#include "engine/step/drps_server.h"
#include "engine/step/drps_worker.h"
#include "net/drps_net.h"

struct drps_exchanging; /* opaque */

/* A batch whose vectors are applied in a round: of its samples, rows ids [batch->rows] by placed
 * id, and slopes u [batch->samples][dim]. All borrowed. */
struct drps_exchange_applied {
    uint32_t rank; /* whose it is */
    const struct drps_batch *batch;
    const uint32_t *ids;
    const float *slopes;
};

struct drps_exchange_job {
    const struct drps_plan *plan; /* the rank's part, of several classes */
    struct drps_net *net;
    struct drps_feed *feed;                 /* started */
    struct drps_server *server;             /* its store is open */
    struct drps_worker *worker;             /* started */
    enum drps_exchange way;                 /* vectors, rows or dense */
    const struct drps_train_options *train; /* sync, seed; vectors: sv_count, sv_rule, multicast */
    uint64_t first_round;                   /* of the run */
    int slots;                              /* 1: unions list slots */
    uint32_t wait_ms;
    /* vectors: called in each round for the batch of each rank, in the order in which their
     * gradients are added up. An error ends the round. NULL: nobody wants to know. */
    int (*applied)(void *ctx, const struct drps_exchange_applied *applied, struct drps_err *err);
    void *applied_ctx;
};

/* Called by all ranks together: rows are copied to all. Everything in job is borrowed until close.
 */
DRPS_MUST_CHECK
int drps_exchange_open(const struct drps_exchange_job *job, struct drps_exchanging **out,
                       struct drps_err *err);
void drps_exchange_close(struct drps_exchanging *x); /* NULL-safe */

/* The next training round, of the epoch's `step`. After the last one of an epoch all ranks have the
 * same rows. */
DRPS_MUST_CHECK
int drps_exchange_work(struct drps_exchanging *x, uint64_t step, struct drps_round *out,
                       struct drps_err *err);

/* All rows as they are between two rounds, [rows][row_bytes] by placed id; borrowed until close. */
const void *drps_exchange_replica(const struct drps_exchanging *x);

/* What projected vectors leave wrong, [rows][dim] by placed id, which checkpoints keep; borrowed
 * until close. NULL: nothing is projected. */
void *drps_exchange_left(struct drps_exchanging *x);

/* What was sent in training rounds so far is added to *sum; returns what was received. */
uint64_t drps_exchange_traffic(const struct drps_exchanging *x, struct drps_traffic *sum);

/* Returns the memory that it takes beside rounds; `way` is not read from the options. */
uint64_t drps_exchange_memory(const struct drps_plan_info *info, size_t row_bytes, int touches,
                              enum drps_exchange way, const struct drps_train_options *options);

/* ---- Without rounds (apart.c) ----
 *
 * Asynchronous rounds (engine/cluster/async/) say which batch a rank computes next, of its own
 * share or of another's. Two threads of a rank call: the worker takes its turns, and another thread
 * takes what comes to the rank's server: it applies the vectors of others, and reads batches of its
 * share for whoever computes them.
 */

/* A batch of `share`, whose record has come: computes its vectors with the replica as it is,
 * applies them, and sends them to the others. `record` is borrowed until return. */
DRPS_MUST_CHECK
int drps_exchange_turn(struct drps_exchanging *x, const struct drps_net_message *record,
                       uint32_t share, struct drps_round *out, struct drps_err *err);

/* The worker has had its last turn of the epoch: tells all ranks how much it has sent them. */
DRPS_MUST_CHECK
int drps_exchange_last(struct drps_exchanging *x, struct drps_err *err);

/* Takes a message to this rank's server, borrowed until return. Returns 0, or 1 when all that ranks
 * send it in this epoch is applied. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int drps_exchange_take(struct drps_exchanging *x, const struct drps_net_message *m,
                       struct drps_err *err);

/* All ranks together, when all have all of the epoch applied, in one thread: replicas become their
 * average, and stores have it. */
DRPS_MUST_CHECK
int drps_exchange_end(struct drps_exchanging *x, struct drps_err *err);

/* ---- Which way (exchange_bytes.c) ---- */

/* Bytes that this rank sends in the training rounds of an epoch, by way; those of servers with the
 * parameters. */
struct drps_exchange_bytes {
    uint64_t of[DRPS_EXCHANGES];
};

/* Reads the part's files. Of the options it reads how many vectors of a batch are sent, which is
 * about so, and to how many ranks, on average of broken links. */
DRPS_MUST_CHECK
int drps_exchange_forecast(const struct drps_plan *part, int touches,
                           const struct drps_train_options *options,
                           struct drps_exchange_bytes *out, struct drps_err *err);

/* Returns what averages and rotation of replicas, in that many epochs from `first` on, let the rank
 * at this place send. */
uint64_t drps_exchange_meeting_bytes(const struct drps_plan_info *info, size_t row_bytes,
                                     const struct drps_train_options *options, uint64_t first,
                                     uint64_t epochs, uint32_t place);

/* Bytes to each other rank, to_out [count], of what this rank sends by a way that is not servers.
 */
void drps_exchange_to(const struct drps_plan_ranks *ranks, enum drps_exchange way,
                      const struct drps_exchange_bytes *bytes, uint64_t *to_out);

/* Returns what this rank gets by that way: all_bytes are those of all ranks. */
uint64_t drps_exchange_received(const struct drps_plan_info *info, enum drps_exchange way,
                                const struct drps_exchange_bytes *bytes,
                                const struct drps_exchange_bytes *all_bytes);

/* Called by all ranks together: *bytes becomes that of all ranks, *fewest_out the way of fewest
 * bytes. fits: this rank has room for all rows; *fits_out: all have. */
DRPS_MUST_CHECK
int drps_exchange_choose(const struct drps_cluster *c, int fits, struct drps_exchange_bytes *bytes,
                         enum drps_exchange *fewest_out, int *fits_out, struct drps_err *err);

const char *drps_exchange_name(enum drps_exchange way);

/* Returns the rows of the whole model. */
uint64_t drps_exchange_rows(const struct drps_plan_info *info);

#endif
