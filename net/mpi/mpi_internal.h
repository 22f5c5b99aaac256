/*
 * The transport over MPI: ranks are those of MPI_COMM_WORLD, and a frame is one message of MPI,
 * header and payload.
 *
 * All calls of MPI but its start and its end come from one thread, the rank's MPI thread, which
 * never waits for a part or a peer: credit bounds what is under way, and of each peer only so many
 * frames are given to MPI at a time; what they point to stays until MPI is done with it. MPI has
 * no wait that another thread could end, so the thread looks again and again: without a pause just
 * after something has happened, then after naps that get longer, and end when a part sends.
 *
 * mpi.c opens and closes a rank's end, mpi_thread.c is the MPI thread, mpi_frames.c moves its
 * frames, mpi_load.c finds MPI.
 */
#ifndef DRPS_NET_MPI_MPI_INTERNAL_H
#define DRPS_NET_MPI_MPI_INTERNAL_H

#include "net/frames/drps_frames.h"
#include "net/mpi/mpi_calls.h"

enum { NET_MPI_FRAMES = 4 }; /* of each peer that are given to MPI and not done */

/* A frame that was given to MPI. */
struct net_mpi_sending {
    struct net_mpi_handle request;
    struct net_out *out;           /* own, a hold: the payload lies there; NULL: in `copy` */
    void *copy;                    /* own: header and payload, of a short frame */
    uint8_t head[WIRE_HEAD_BYTES]; /* of a long one */
};

/* A frame that is being received. */
struct net_mpi_coming {
    struct net_mpi_coming *next;
    struct net_mpi_handle request;
    uint32_t from;
    struct net_message *message; /* own: header and payload */
};

struct net_mpi_peer {
    struct net_mpi_sending sending[NET_MPI_FRAMES]; /* a ring */
    unsigned first, n;
    int hello_sent, bye_sent;
    int dead;        /* it has been silent for too long, or MPI cannot reach it */
    uint64_t looked; /* of the net's looks, the last that found its first frame not yet there */
};

/* This rank's end. While the MPI thread runs, it alone uses the fields whose comment says nothing
 * else. */
struct net_mpi {
    struct drps_net net; /* first: callers hold a pointer to it */
    pthread_mutex_t lock;
    int lock_made;
    pthread_cond_t wake;
    struct net_frames *frames;  /* own [count] */
    struct net_mpi_peer *peers; /* own [count]; this rank's own is unused */
    struct net_mpi_coming *coming, **last;
    const struct net_mpi_calls *calls;
    void *ctx; /* of the calls */
    int tag;   /* of this net's messages: each has another */
    pthread_t thread;
    int started;
    uint64_t looks;              /* at what comes */
    uint64_t busy_ns;            /* when something happened last */
    uint64_t nap_ns;             /* the next one */
    uint64_t tick_ns;            /* when the clock was looked at last */
    int broken;                  /* frames are under way that will never be done */
    int deaf;                    /* nothing can be received any more */
    struct net_mpi *kept_before; /* where memory of this end is kept: the end kept before it */

    /* under the lock */
    int woken;
    int leaving;
    uint64_t leave_by_ns;
    char why[WIRE_TEXT_BYTES];
    int why_stays;
};

/* mpi_load.c: the calls of the module. DRPS_E_CONFIG: it cannot be loaded. */
DRPS_MUST_CHECK
int drps_mpi_load(const struct net_mpi_calls **calls_out, struct drps_err *err);

/* mpi.c: drps_net_open_mpi() over these calls, which have begun. */
DRPS_MUST_CHECK
int drps_mpi_open(const struct drps_net_options *options, const struct net_mpi_calls *calls,
                  void *ctx, int tag, struct drps_net **net_out, struct drps_err *err);

/* mpi_thread.c */
void *drps_mpi_thread_main(void *m);

/* mpi_frames.c, the MPI thread's. Return how much has happened. */
unsigned drps_mpi_send(struct net_mpi *m, uint32_t r); /* what is due to peer r */
unsigned drps_mpi_receive(struct net_mpi *m);
/* After the thread: give messages back that were under way. Copies and heads stay. */
void drps_mpi_drop(struct net_mpi *m);

#endif
