/*
 * What the files that count over shards share: questions to all of them, and their answers. Private
 * to index/blocks/remote/.
 */
#ifndef DRPS_INDEX_BLOCKS_REMOTE_REMOTE_INTERNAL_H
#define DRPS_INDEX_BLOCKS_REMOTE_REMOTE_INTERNAL_H

#include "index/blocks/remote/drps_remote.h"
#include "index/blocks/remote/remote_wire.h"

struct remote_counts {
    struct counts counts;
    struct drps_remote_link *link; /* own */
    void *part;                    /* own: an answer, before it is added up */
    size_t part_cap;
    unsigned owed; /* answers to merges, which come before all others */
    int broken;    /* a code: a shard is gone, or out of step */
};

static inline struct remote_counts *remote_of(struct counts *t)
{
    return (struct remote_counts *)t;
}

/* Ask all shards. */
DRPS_MUST_CHECK
int drps_remote_tell(struct remote_counts *c, enum remote_op op, uint64_t value,
                     const void *payload, uint64_t bytes, struct drps_err *err);

/* Take n bytes of a shard's answer. */
DRPS_MUST_CHECK
int drps_remote_receive(struct remote_counts *c, unsigned shard, void *bytes, uint64_t n,
                        struct drps_err *err);

/* The head of an answer; a failure that the shard reports is received whole. */
DRPS_MUST_CHECK
int drps_remote_receive_head(struct remote_counts *c, unsigned shard, struct remote_head *h,
                             struct drps_err *err);

/* Take the answers to merges that were not waited for. A shard in which one has failed is out of
 * step. */
DRPS_MUST_CHECK
int drps_remote_settle(struct remote_counts *c, struct drps_err *err);

/* Adds the answer in c->part to what out has. */
typedef void remote_combine(const struct remote_counts *c, void *out, size_t n);

/* Take answers of n numbers of `size` bytes from every shard; the first failure is told, the rest
 * is received all the same. */
DRPS_MUST_CHECK
int drps_remote_gather(struct remote_counts *c, remote_combine *add, void *out, size_t n,
                       size_t size, struct drps_err *err);

/* Note that nothing can be asked any more, and put the shard before the text of err. Returns rc. */
int drps_remote_broken(struct remote_counts *c, unsigned shard, int rc, struct drps_err *err);

/* The two answers that are not numbers: counts_ops.pairs (remote_pairs.c) and counts_ops.lists
 * (remote_lists.c). */
DRPS_MUST_CHECK
int drps_remote_pairs(struct counts *t, const uint32_t *with, size_t with_n, uint64_t memory_bytes,
                      struct block_pair_count **pairs_out, size_t *n_out, struct drps_err *err);
DRPS_MUST_CHECK
int drps_remote_lists(struct counts *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                      struct access *out, struct drps_err *err);

#endif
