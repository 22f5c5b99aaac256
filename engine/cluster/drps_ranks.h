/*
 * Running the ranks of a plan for several workers: all of them on this machine, or one of them here
 * and the others wherever the peers file says.
 */
#ifndef DRPS_ENGINE_CLUSTER_RANKS_H
#define DRPS_ENGINE_CLUSTER_RANKS_H

#include "engine/drps_engine.h"

enum drps_ranks_transport {
    DRPS_RANKS_ZMQ,    /* a process a rank; messages over ZeroMQ */
    DRPS_RANKS_INPROC, /* all ranks are threads of this process: the reference */
    DRPS_RANKS_MPI,    /* a process a rank, which mpirun or srun has started */
};

struct drps_ranks_options {
    const char *plan;                       /* folder of the whole plan */
    const struct drps_train_options *train; /* of each rank, whose `ranks` is not used; the
                                               callbacks are rank 0's */
    enum drps_ranks_transport transport;
    const char *peers; /* file of addresses, and of public keys; NULL: all ranks are here, or over
                          MPI */
    uint32_t rank;     /* with peers, or over MPI */
    uint32_t count;    /* over MPI: ranks that were started */
    const char *keys;  /* folder of this rank's keys; NULL: none */
    int insecure;      /* go without keys, also beyond this machine */
    uint32_t wait_ms;  /* for ranks that start, and for a message that is due; 0: 600,000 */
    uint32_t cut_ms;   /* a link that is cut for so long only costs time; a rank that is not heard
                          of for 2.3 times that and two seconds is dead; 0: 5,000 */
};

/*
 * All ranks of the plan, `count` of them, on this machine. memory_bytes is each process's (of the
 * transport inproc, of all); its default is shared among them. *result is rank 0's. Processes are
 * forked: call it before there are threads. One that is killed by a signal ends all within a
 * second, unless this process ignores SIGCHLD. DRPS_E_CONFIG: the plan is for another number.
 */
DRPS_MUST_CHECK
int drps_ranks_run_local(const struct drps_ranks_options *options, uint32_t count,
                         struct drps_train_result *result, struct drps_err *err);

/* 1: this process runs one rank of several. */
static inline int drps_ranks_is_one(const struct drps_ranks_options *options)
{
    return options->peers || options->transport == DRPS_RANKS_MPI;
}

/* Rank options->rank, of as many as there are peers, or processes of MPI. *result is its own. */
DRPS_MUST_CHECK
int drps_ranks_run_one(const struct drps_ranks_options *options, struct drps_train_result *result,
                       struct drps_err *err);

#endif
