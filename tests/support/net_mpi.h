/*
 * Nets over MPI for a test that has all ranks of a job in its process: `mpirun -n 2 TEST`. The
 * test runs in the first process. The second one is a mirror: all frames go there and come back,
 * so that they pass between processes as those of ranks do.
 */
#ifndef DRPS_TESTS_NET_MPI_H
#define DRPS_TESTS_NET_MPI_H

#include "net/drps_net.h"

/* 1: this process was started by mpirun. */
int net_mpi_there(void);

/* Under mpirun: start MPI, and leave out all tests but those named "... (mpi)". Returns 0 in the
 * process that is the test; in the mirror it returns 1 when the test has ended. */
int net_mpi_start(void);
void net_mpi_stop(void); /* the test's: it has ended */

/* Rank options->rank of a job; all ranks of a job have the same number, below 1000 and above 0. */
int net_mpi_open(const struct drps_net_options *options, unsigned job, struct drps_net **net_out,
                 struct drps_err *err);

#endif
