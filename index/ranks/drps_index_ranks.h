/*
 * drps-index over several machines, in one of two ways. The plan is that of one machine.
 *
 *   together  each rank reads its own inputs and makes the folder of its own rank
 *             (index/together/drps_together.h)
 *   counting  where block builders count accesses: rank 0 reads the data and makes the plan; while
 *             it builds blocks, every rank counts over its share of the batches
 *             (index/blocks/remote/drps_remote_counts.h)
 */
#ifndef DRPS_INDEX_RANKS_INDEX_RANKS_H
#define DRPS_INDEX_RANKS_INDEX_RANKS_H

#include "index/drps_index.h"
#include "net/drps_net.h"

struct drps_index_ranks_options {
    const struct drps_index_options *index; /* counting: of ranks above 0 only `out`, beside which
                                               they keep their share, memory_bytes, log and
                                               interrupt count */
    const struct drps_io *io; /* together: where this rank reads and writes; NULL: the system's */
    uint32_t local;    /* together: all so many ranks, as processes on this machine, of which each
                          reads its share of the inputs; 0: one rank of `peers` */
    const char *peers; /* file of addresses, and of public keys; NULL: over MPI */
    uint32_t rank;
    uint32_t count;   /* over MPI: ranks that were started */
    const char *keys; /* folder of this rank's keys; NULL: none */
    int insecure;     /* go without keys, also beyond this machine */
    uint32_t wait_ms; /* for ranks that start; 0: 600,000 */
    uint32_t cut_ms;  /* a link that is cut for so long only costs time; 0: 5,000 */
};

/* 1: with these options ranks above 0 count alone. */
int drps_index_ranks_count_alone(const struct drps_index_options *index);

/*
 * Together: run rank options->rank, or all local ones. *result is the whole plan's on each rank.
 * DRPS_E_PEER and others: nothing is left on any rank.
 *
 * Counting:
 * Rank options->rank, of as many as there are peers, or processes of MPI. *result is rank 0's.
 * Others leave nothing behind, and return when the plan is made: with 0, or, should rank 0 fail,
 * with a text that names it. A rank that is interrupted, fails, or is not heard of any more ends
 * all others, rank 0 also while it does not count yet, with a text that names it (DRPS_E_PEER);
 * once there is nothing left to count, rank 0 goes on without it.
 */
DRPS_MUST_CHECK
int drps_index_ranks_run(const struct drps_index_ranks_options *options,
                         struct drps_index_result *result, struct drps_err *err);

/* Run over a net that is open, which moves here. It must have been opened with these options: what
 * messages take, and what tells its ranks from those of other jobs; rank, count and the rest are
 * the caller's. */
void drps_index_net_options(struct drps_net_options *out);
DRPS_MUST_CHECK
int drps_index_ranks_run_on(struct drps_net *net, const struct drps_index_options *index,
                            struct drps_index_result *result, struct drps_err *err);

#endif
