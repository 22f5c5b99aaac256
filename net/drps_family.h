/*
 * The processes of all ranks on one machine: rank 0 forks the others, sees how they end, and lets
 * all that are left know at once, where a rank on another machine is only noticed to be silent.
 */
#ifndef DRPS_NET_FAMILY_H
#define DRPS_NET_FAMILY_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/drps_err.h"

struct drps_family {
    uint32_t count;
    int is_parent; /* this process is rank 0's */
    struct drps_family_rank {
        pid_t pid;     /* 0: it was not started */
        int seen;      /* its failure was seen once */
        int status;    /* as waitpid() has it, once it was waited for */
        int shot;      /* it would not end, and was killed for that */
    } * ranks;         /* own [count]; of rank 0's process, which is not among them */
    atomic_uint *lost; /* own, shared by all processes: the first rank that failed; UINT32_MAX */
};

DRPS_MUST_CHECK
int drps_family_open(struct drps_family *f, uint32_t count, struct drps_err *err);

/* Fork rank r's process, which is killed when this one ends. Returns 1 there and 0 here; before
 * there are threads. */
DRPS_MUST_CHECK
int drps_family_fork(struct drps_family *f, uint32_t r, struct drps_err *err);

/* A drps_net_options.lost of every rank: a rank that has failed, or DRPS_NET_ANY. One thread. */
uint32_t drps_family_lost(void *family);

/* Rank 0 has come to `rc`: wait until the others have ended. Where it failed they hear of that, and
 * one that has not ended after most_ms is killed: it is stopped, or stuck. */
void drps_family_wait(struct drps_family *f, int rc, uint32_t most_ms);

/* After that: returns 0, or how the rank that was noticed first failed, or else one that was killed
 * by a signal, or else any. DRPS_E_PEER: by a signal; DRPS_E_PEER_FAILED: it ended by itself, and
 * has said why. */
int drps_family_failure(const struct drps_family *f, struct drps_err *err);

/* Returns 1 if a rank has ended by itself with this status. */
int drps_family_has_status(const struct drps_family *f, int status);

void drps_family_close(struct drps_family *f); /* what a failed open left, too */

#endif
