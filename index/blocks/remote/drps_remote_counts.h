/*
 * Block builders' counts over several processes (DRPS, section 4.1: workers count, the master adds
 * up and merges): what a transport above index/ gives, and what a counting process calls.
 *
 * The peers of a link are its counters. drps_index_run() deals the batches' row lists among them
 * (drps_index_options.blocks.remote), asks, and adds up; each counter calls drps_remote_count().
 * The plan is that of one process.
 */
#ifndef DRPS_INDEX_BLOCKS_REMOTE_REMOTE_COUNTS_H
#define DRPS_INDEX_BLOCKS_REMOTE_REMOTE_COUNTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

enum { DRPS_REMOTE_PEERS_MAX = 64 };

/*
 * Bytes to and from peers, in order. A failure says what has become of the peer, or that `stop` was
 * seen while waiting. One thread.
 */
struct drps_remote_link;
struct drps_remote_link_ops {
    int (*send)(struct drps_remote_link *l, unsigned peer, const void *bytes, size_t n,
                struct drps_err *err);
    /* DRPS_E_CLOSED: the peer will send nothing any more. */
    int (*receive)(struct drps_remote_link *l, unsigned peer, void *bytes, size_t n,
                   struct drps_err *err);
    void (*close)(struct drps_remote_link *l); /* nothing more will be asked */
};
struct drps_remote_link {
    const struct drps_remote_link_ops *ops;
    unsigned peers; /* at most DRPS_REMOTE_PEERS_MAX */
    int ranks; /* 1: peers are called rank 0, 1 ..., rank 0 is in the asking process, and failures
                  of send and receive name who is to blame; 0: shard 1, 2 ... */
    uint64_t memory_bytes;  /* that it takes in the asking process, besides a counter there */
    const atomic_int *stop; /* as in struct drps_io; NULL: never */
};

/* What a process counts with. Everything is borrowed. */
struct drps_remote_counter {
    const struct drps_io *io; /* its `stop` is looked at while counting, too */
    const char *scratch;      /* folder that is there, for the row lists it is sent */
    uint64_t memory_bytes;    /* of the process: accesses take 3/8 of it or stay on disk; another
                                 3/8 may the pairs of an answer take; it has 64 bytes a batch */
};

/*
 * Take row lists from peer 0 of the link, which is not closed here, and answer what it asks about
 * them, until it asks no more (0). Messages of at most 64 bytes need room for 64 on their way.
 *   DRPS_E_INTERRUPTED   `stop` of the link or of counter->io was set
 *   DRPS_E_CORRUPT       peer 0 has sent what is no question
 *   others               it cannot load the lists, which peer 0 has been told, or the link's
 */
DRPS_MUST_CHECK
int drps_remote_count(struct drps_remote_link *link, const struct drps_remote_counter *counter,
                      struct drps_err *err);

#endif
