/*
 * What the parts of an exchange share: exchange.c is a round, from its batch to the store; own.c
 * computes the rank's batch, others.c sends and applies vectors and sparse rows, dense.c sums whole
 * gradients, open.c makes all this. Private to engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_EXCHANGE_INTERNAL_H
#define DRPS_ENGINE_CLUSTER_SV_EXCHANGE_INTERNAL_H

#include "engine/cluster/sv/chosen.h"
#include "engine/cluster/sv/drps_exchange.h"
#include "engine/cluster/sv/message.h"
#include "engine/cluster/sv/receivers.h"
#include "engine/cluster/sv/replica.h"
#include "engine/cluster/sv/sums.h"
#include "index/plan/drps_steps.h"
#include "net/drps_shared_buffer.h"

/* What came of a rank in this round, or is of this one. */
struct part {
    struct drps_net_message *message; /* own; NULL: this rank's, or none */
    uint64_t next;                    /* the epoch's step of which its next vectors are */
    int taken;                        /* 1: it is applied now */
    struct sv_message parts;
    uint32_t *ids; /* own: [max_batch_rows] */
    size_t n;
};

struct drps_exchanging {
    struct drps_exchange_job job;
    uint32_t rank, ranks, dim;
    struct receivers receivers;
    struct replica replica;
    struct sums sums;
    struct steps *numbers; /* own: the rows of the rank's batches */
    struct steps *lists;   /* own: the rows of its server in each round; job.slots alone */
    struct chosen chosen;  /* job.select.count alone */
    uint64_t round;        /* of the run */
    int begun;             /* a round was */
    struct part *parts;    /* own: [ranks] */
    struct drps_shared_buffer *sent;
    float *grads;      /* own: [max_batch_rows][dim], of a rank at a time */
    uint32_t *touches; /* own: [max_batch_rows] */
    float *dense;      /* own: [rows][dim], then [rows] samples that touch a row; dense alone */
    struct drps_feed_share batch;
    struct drps_feed_union opened;
    uint64_t sums_done; /* all-reduces so far */
    uint64_t wait_ns;   /* in this round: sending, and waiting for others */
    uint64_t others_ns; /* in this round: gradients of others' vectors */
    uint64_t received;
    struct drps_traffic traffic;
};

static inline int sends_vectors(const struct drps_exchanging *x)
{
    return x->job.way == DRPS_EXCHANGE_VECTORS;
}

/* Computes what is sent of the rank's own batch, and the sum of its losses. */
DRPS_MUST_CHECK
int exchange_compute(struct drps_exchanging *x, uint64_t step, double *loss_out,
                     struct drps_err *err);

/* Sends it, and steps the replica with all gradients that are due: those of steps up to `step` -
 * `late` must have come. */
DRPS_MUST_CHECK
int exchange_with_others(struct drps_exchanging *x, uint64_t step, uint64_t late,
                         struct drps_err *err);

/* The first round may be within an epoch: nothing is due of those before it. */
void exchange_begin(struct drps_exchanging *x, uint64_t step);

/* Sums the gradients of all ranks by an all-reduce, and steps the replica. */
DRPS_MUST_CHECK
int exchange_dense(struct drps_exchanging *x, struct drps_err *err);

#endif
