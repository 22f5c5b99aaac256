/*
 * What the parts of an exchange share: exchange.c is a round, from its batch to the store; own.c
 * computes the rank's batch, others.c sends and applies vectors and sparse rows, dense.c sums whole
 * gradients, apart.c does without rounds, open.c makes all this. Private to engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_EXCHANGE_INTERNAL_H
#define DRPS_ENGINE_CLUSTER_SV_EXCHANGE_INTERNAL_H

#include <pthread.h>

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
    uint64_t next;                    /* the epoch's step of which its next vectors are; without
                                         rounds: how many have come in the epoch */
    uint64_t sent;                    /* to that rank, in the epoch */
    int taken;                        /* 1: it is applied now */
    int last;                         /* without rounds: all of the epoch has come */
    struct sv_message parts;
    uint32_t *ids; /* own: [max_batch_rows] */
    size_t n;
};

/* What a thread makes gradients in, of a rank's batch at a time. */
struct gradient_room {
    float *grads;      /* own: [max_batch_rows][dim] */
    uint32_t *touches; /* own: [max_batch_rows] */
    void *plain;       /* own: [max_body_bytes] the batch, unpacked */
};

/* A batch: of which share, of which step of the epoch, and round of the run. */
struct turn {
    uint32_t share;
    uint64_t step, round;
};

struct drps_exchanging {
    struct drps_exchange_job job;
    uint32_t rank, ranks, dim;
    int apart;            /* 1: there are no rounds */
    pthread_mutex_t lock; /* without rounds: guards the replica's rows */
    struct receivers receivers;
    struct replica replica;
    struct sums sums;
    struct steps *numbers; /* own: the rows of the rank's batches */
    struct steps *lists;   /* own: the rows of its server in each round; job.slots alone */
    struct chosen chosen;  /* zeros: all vectors are sent */
    uint64_t round;        /* of the run; without rounds: the epoch's first */
    int begun;             /* a round was */
    struct part *parts;    /* own: [ranks] */
    struct drps_shared_buffer *sent;
    struct drps_shared_buffer *lending; /* a batch on its way to whoever computes it */
    struct gradient_room room;          /* of the worker's thread, */
    struct gradient_room taking; /* and of the one that takes what comes; without rounds alone */
    float *dense; /* own: [rows][dim], then [rows] samples that touch a row; dense alone */
    struct drps_feed_share batch;
    struct drps_feed_union opened;
    uint64_t sums_done; /* all-reduces so far */
    uint64_t wait_ns;   /* in this round: sending, and waiting for others */
    uint64_t others_ns; /* in this round: gradients of others' vectors */
    uint64_t received;
    struct drps_traffic traffic;
    struct drps_traffic lent; /* batches to other ranks */
};

static inline int sends_vectors(const struct drps_exchanging *x)
{
    return x->job.way == DRPS_EXCHANGE_VECTORS;
}

/* The rows of a batch of this rank's share, packed, and its body; valid until the next call. */
struct own_record {
    struct drps_piece list, body;
};
DRPS_MUST_CHECK
int exchange_read_own(struct drps_exchanging *x, uint64_t step, struct own_record *out,
                      struct drps_err *err);

/* Computes the vectors of x->batch, whose rows are those of this rank's part, to the message that
 * is sent, and the sum of its losses. */
DRPS_MUST_CHECK
int exchange_compute_vectors(struct drps_exchanging *x, const struct own_record *record,
                             const struct turn *turn, double *loss_out, struct drps_err *err);

/* In a round: computes what is sent of the rank's own batch, and the sum of its losses. */
DRPS_MUST_CHECK
int exchange_compute(struct drps_exchanging *x, const struct turn *turn, double *loss_out,
                     struct drps_err *err);

/* Sends that message to whom it goes. */
DRPS_MUST_CHECK
int exchange_send(struct drps_exchanging *x, const struct turn *turn, struct drps_err *err);

/* What a rank has sent becomes its part. DRPS_E_PROTO. */
DRPS_MUST_CHECK
int exchange_read(struct drps_exchanging *x, const struct drps_net_message *m,
                  struct drps_err *err);

/* The gradient that rank r's part says, weighed as it counts here. */
DRPS_MUST_CHECK
int exchange_gradient(struct drps_exchanging *x, uint32_t r, struct gradient_room *room,
                      struct drps_err *err);

/* In a round: sends it, and steps the replica with all gradients that are due: those of steps up to
 * `step` - `late` must have come. */
DRPS_MUST_CHECK
int exchange_with_others(struct drps_exchanging *x, uint64_t step, uint64_t late,
                         struct drps_err *err);

/* The first round may be within an epoch: nothing is due of those before it. */
void exchange_begin(struct drps_exchanging *x, uint64_t step);

/* Sums the gradients of all ranks by an all-reduce, and steps the replica. */
DRPS_MUST_CHECK
int exchange_dense(struct drps_exchanging *x, struct drps_err *err);

/* Replicas meet after x->round, if they are to; `last`: it is the epoch's last. */
DRPS_MUST_CHECK
int exchange_meet(struct drps_exchanging *x, int last, struct drps_err *err);

/* All steps of an epoch are done. */
DRPS_MUST_CHECK
int exchange_end_epoch(struct drps_exchanging *x, struct drps_err *err);

#endif
