/*
 * Counts over several processes, the shards: each has a range of the batches, counts by itself,
 * and the answers are added up. Shared inside index/. Source: DRPS, section 4.1 (workers count, the
 * master adds up and merges).
 *
 * Every answer equals that of one process over all batches, so builders build the same layout.
 * Shards are reached through a link (drps_remote_counts.h), which moves bytes: here to child
 * processes on this machine.
 */
#ifndef DRPS_INDEX_BLOCKS_REMOTE_REMOTE_H
#define DRPS_INDEX_BLOCKS_REMOTE_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "index/blocks/counts/drps_counts.h"
#include "index/blocks/remote/drps_remote_counts.h"

enum { REMOTE_SHARDS = DRPS_REMOTE_PEERS_MAX };

/*
 * Starts `shards` processes (1 .. REMOTE_SHARDS), which load the batches. A process ends when the
 * counts are closed or this process is gone, in the middle of counting if need be: it is not asked
 * whether to stop. A failure names the shard. Memory beside the accesses: what each shard's counts
 * takes; the pairs of a shard take what the caller allows for all. Signals that this process
 * handles without ending are handled so in the shards too.
 */
DRPS_MUST_CHECK
int drps_remote_open(const struct access_source *from, unsigned shards, struct counts **t_out,
                     struct drps_err *err);

/* ---- Over any link ---- */

/*
 * Splits the batches among the peers of a link: each gets the row lists of a run of them, and
 * counts by drps_remote_count(). The link moves here (also on failure).
 */
DRPS_MUST_CHECK
int drps_remote_split(const struct access_source *from, struct drps_remote_link *link,
                      struct counts **t_out, struct drps_err *err);

/* Returns the first batch of shard `shard` of `shards`; for shard `shards`, the end of all. */
static inline uint32_t remote_shard_begin(uint32_t batches, unsigned shard, unsigned shards)
{
    return (uint32_t)((uint64_t)batches * shard / shards);
}

/* Put before the text of a failure of the link which of its peers it is of; of ranks the link has
 * said so itself. */
void drps_remote_name_lost(const struct drps_remote_link *link, unsigned shard,
                           struct drps_err *err);

/* Counts over the peers of a link, which moves here (also on failure); waits until all are ready.
 */
DRPS_MUST_CHECK
int drps_remote_over(struct drps_remote_link *link, uint32_t blocks, uint32_t batches,
                     struct counts **t_out, struct drps_err *err);

/*
 * The other side: says that `t` is ready (or why it is not: `failure`, if its code is not 0), then
 * answers. Lists and pairs of an answer take no more than most_bytes, whatever is asked for.
 * Returns why it stopped: DRPS_E_CLOSED: peer 0 of the link is gone; DRPS_E_CORRUPT: it has sent no
 * question; another code: it cannot go on, and the peer will see its end.
 */
int drps_remote_serve(struct drps_remote_link *link, struct counts *t,
                      const struct drps_err *failure, uint64_t most_bytes, struct drps_err *err);

#endif
