/*
 * What the engines of a job say to each other: the types of their messages. docs/wire.md has who
 * sends each to whom, and with what. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_MESSAGES_H
#define DRPS_ENGINE_CLUSTER_MESSAGES_H

#include "net/drps_net.h"

enum drps_message {
    DRPS_MESSAGE_PARAMETERS = DRPS_NET_TYPE_FIRST,
    DRPS_MESSAGE_GRADIENT,
    DRPS_MESSAGE_FAILED, /* to the rank's own other parts */

    /* These are of asynchronous rounds alone. */
    DRPS_MESSAGE_GO,
    DRPS_MESSAGE_PULL,
    DRPS_MESSAGE_RECORD,
    DRPS_MESSAGE_ARRIVE,
    DRPS_MESSAGE_END,

    /* These go to rank 0, between rounds. */
    DRPS_MESSAGE_METRICS = DRPS_NET_TYPE_FIRST + 8,
    DRPS_MESSAGE_ROWS,

    DRPS_MESSAGE_OPENED,   /* to the rank's own server, in asynchronous rounds */
    DRPS_MESSAGE_AHEAD,    /* in rounds: parameters of the next one; in asynchronous ones: of a
                              batch whose turn it is not yet, asked for and answered */
    DRPS_MESSAGE_RANGE,    /* to the rank before, where rows circulate */
    DRPS_MESSAGE_FILTERED, /* a gradient that is shortened */

    /* In asynchronous rounds whose gradients are shortened. */
    DRPS_MESSAGE_CLAIMED = DRPS_NET_TYPE_FIRST + 24, /* to a worker: others execute its batches */
    DRPS_MESSAGE_HELD, /* to a server: what was held back of rows of such a batch */

    /* These have rows with the optimizer's state, in rounds. */
    DRPS_MESSAGE_LENT = DRPS_NET_TYPE_FIRST + 18, /* from a server to the worker that alone uses
                                                     them, and back */
    DRPS_MESSAGE_HANDED,                          /* from worker to worker */

    /* Where each rank has all rows. */
    DRPS_MESSAGE_REPLICA = DRPS_NET_TYPE_FIRST + 26, /* rows, when training begins */
    DRPS_MESSAGE_VECTORS,                            /* a round's sufficient vectors, */
    DRPS_MESSAGE_SPARSE,                             /* or its gradient's rows */

    DRPS_MESSAGE_STEPPED, /* of a topic model, to the rank's own worker: the round's rows are */
    DRPS_MESSAGE_COMMON,  /* in rounds: rows that all batches have, which each rank keeps */
};

/* Tags, as bits: a message says stop now, or (rounds alone) pause now; from a worker, that its rank
 * wants to. With parameters, the same bits this far up say what the rank of the server wants. */
enum { DRPS_MESSAGE_STOP = 1, DRPS_MESSAGE_PAUSE = 2, DRPS_MESSAGE_WANTS_SHIFT = 2 };

/* Tag of parameters in rounds: rows that nobody has trained are left out (fresh.h). */
enum { DRPS_MESSAGE_FRESH = 16 };

/* Tags of parameters in training rounds whose pulls are filtered: rows of which the worker has a
 * copy are left out; values are of so many bits. */
enum { DRPS_MESSAGE_COPIES = 32, DRPS_MESSAGE_16BIT = 64, DRPS_MESSAGE_8BIT = 128 };

/*
 * Between the halves of a rank a message holds where the values are, not the values: the server's
 * parameters stay until it has the gradient, the worker's gradient until it has the next
 * parameters.
 */
struct drps_message_here {
    const float *values;
    const uint32_t *touches;
    const float *common; /* with a gradient: sums of all ranks, of the server's common rows. NULL:
                            they are among `values` alone */
};

/* Bytes of needs, u64 [workers]: in asynchronous rounds with a bound, how many gradients of each
 * worker must be in the parameters that are asked for. */
static inline size_t drps_message_needs_bytes(uint32_t workers)
{
    return workers * sizeof(uint64_t);
}

#endif
