/* Finds which rank this process is, as its launcher says in the environment. */
#ifndef DRPS_NET_LAUNCH_H
#define DRPS_NET_LAUNCH_H

#include <stdint.h>

#include "base/drps_err.h"

/* What a launcher says. */
struct drps_launch {
    const char *launcher; /* static: "mpirun (Open MPI)", ... */
    uint32_t rank, count; /* this process's rank, below count */
};

/*
 * Look for Open MPI's, PMI's (MPICH, Intel MPI), srun's and an indexed Kubernetes job's variables,
 * in this order. Kubernetes does not say how many ranks there are: `count` does, from the peers
 * file (0: unknown). Returns 1 when a launcher was found, 0 when none was, or DRPS_E_CONFIG when
 * variables make no sense or say another number of ranks than `count`.
 */
DRPS_MUST_CHECK
int drps_launch_find(uint32_t count, struct drps_launch *launch_out, struct drps_err *err);

/* What mpirun or srun says, whose ranks talk over MPI. DRPS_E_CONFIG: neither has started this. */
DRPS_MUST_CHECK
int drps_launch_mpi(struct drps_launch *launch_out, struct drps_err *err);

/*
 * This process's rank among those of the peers file, as its launcher says. DRPS_E_CONFIG: there is
 * no launcher, and the text names `option`, which says the rank instead; errors of
 * drps_peers_read().
 */
DRPS_MUST_CHECK
int drps_launch_rank(const char *peers_path, const char *option, uint32_t *rank_out,
                     struct drps_err *err);

#endif
