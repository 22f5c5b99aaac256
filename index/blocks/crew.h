/*
 * A tally over several processes, the shards: each has a range of the batches, counts by itself,
 * and the answers are added up. Private to index/. Source: DRPS, section 4.1 (workers count, the
 * master adds up and merges).
 *
 * Every answer equals that of one tally over all batches, so builders build the same layout. Shards
 * are reached through a link, which moves bytes: here to child processes on this machine.
 */
#ifndef DRPS_INDEX_BLOCKS_CREW_H
#define DRPS_INDEX_BLOCKS_CREW_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "index/blocks/tally.h"

/* Bytes to and from peers, in order. A failure says what has become of the peer, or that `stop` was
 * seen while waiting. One thread. */
struct crew_link;
struct crew_link_ops {
    int (*send)(struct crew_link *l, unsigned peer, const void *bytes, size_t n,
                struct drps_err *err);
    int (*receive)(struct crew_link *l, unsigned peer, void *bytes, size_t n, struct drps_err *err);
    void (*close)(struct crew_link *l);
};
struct crew_link {
    const struct crew_link_ops *ops;
    unsigned peers;
    const atomic_int *stop; /* as in struct access_source */
};

enum { CREW_SHARDS = 64 };

/*
 * Starts `shards` processes (1 .. CREW_SHARDS), which load the batches. A process ends when the
 * tally is closed or this process is gone, in the middle of counting if need be: it is not asked
 * whether to stop. A failure names the shard. Memory beside the accesses: what each shard's tally
 * takes; the pairs of a shard take what the caller allows for all. Signals that this process
 * handles without ending are handled so in the shards too.
 */
DRPS_MUST_CHECK
int crew_open(const struct access_source *from, unsigned shards, struct tally **t_out,
              struct drps_err *err);

/* ---- Over any link ---- */

/* A tally over the peers of a link, which moves here (also on failure); waits until all are ready.
 */
DRPS_MUST_CHECK
int crew_over(struct crew_link *link, uint32_t blocks, uint32_t batches, struct tally **t_out,
              struct drps_err *err);

/*
 * The other side: says that `t` is ready (or why it is not: `failure`, if its code is not 0), then
 * answers. Returns why it stopped: DRPS_E_CLOSED: peer 0 of the link is gone; DRPS_E_CORRUPT: it
 * has sent no question; another code: it cannot go on, and the peer will see its end.
 */
int crew_serve(struct crew_link *link, struct tally *t, const struct drps_err *failure,
               struct drps_err *err);

#endif
