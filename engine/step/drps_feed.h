/*
 * The feed: the plan's batches in order, epoch after epoch, read ahead and decoded. In the part of
 * a rank a batch and the row list of the same number are taken by two threads: the worker's own
 * batch, and the union of rows that its server opens for all workers. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_STEP_FEED_H
#define DRPS_ENGINE_STEP_FEED_H

#include <stddef.h>
#include <stdint.h>

#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"

struct drps_feed; /* opaque: the open plan files and the streams over them */

struct drps_feed_batch {
    struct drps_batch body;
    const uint32_t *ids; /* [body.rows] placed ids or slots, strictly increasing */
};

/* What the worker of a rank computes in a round, and what its server opens. */
struct drps_feed_share {
    struct drps_batch body;
    const uint32_t *shares; /* [workers] of its rows, those that each server has, in their order */
};
struct drps_feed_union {
    const uint32_t *ids; /* [n] ids of the server, or slots, strictly increasing */
    size_t n;
    const uint32_t *positions; /* worker w's rows are ids[positions[i]], i from part[w] on */
    const size_t *part;        /* [workers + 1] */
};

struct drps_feed_stats {
    uint64_t read_bytes, read_calls;
    uint64_t wait_ns; /* next() waited for the disk */
};

/* Open the plan's files of batches and check that they hold T + E steps. The plan is borrowed. */
DRPS_MUST_CHECK
int drps_feed_open(const struct drps_plan *plan, uint32_t common, struct drps_feed **feed_out,
                   struct drps_err *err);
void drps_feed_close(struct drps_feed *feed); /* NULL-safe */

/* Read past the page cache: memory is short. Before the start. */
void drps_feed_go_direct(struct drps_feed *feed);

/* Take slots instead of placed ids: the row lists are those of dir/slots.rec. Before the start. */
DRPS_MUST_CHECK
int drps_feed_use_slots(struct drps_feed *feed, const char *dir, struct drps_err *err);

/* Returns the memory of a started feed with buffers of about buffer_bytes each; `keep`: for all of
 * the files. */
uint64_t drps_feed_memory(const struct drps_feed *feed, uint64_t buffer_bytes, int keep);

/* Begin to read ahead, for so many epochs, of which the first one begins with its step `first`:
 * whatever is taken begins there. `keep`: read each step once. -EINVAL: an epoch has no such step.
 */
DRPS_MUST_CHECK
int drps_feed_start(struct drps_feed *feed, uint64_t first, uint64_t epochs, uint64_t buffer_bytes,
                    int keep, struct drps_err *err);

/*
 * The next batch, valid until the next call; checked against the numbers of the plan, so that
 * arrays sized by max_batch_rows and max_batch_samples hold it. One calling thread.
 */
DRPS_MUST_CHECK
int drps_feed_next(struct drps_feed *feed, struct drps_feed_batch *out, struct drps_err *err);

/*
 * The next batch's records, not decoded, so that several threads can decode: drps_feed_take() and
 * drps_feed_decode() are the halves of drps_feed_next(). Records are borrowed until the next call,
 * or until the end if drps_feed_keeps(). One thread takes them.
 */
struct drps_feed_raw {
    struct drps_piece body, list; /* aligned to 8 */
    uint64_t step;                /* of the epoch */
};
DRPS_MUST_CHECK
int drps_feed_take(struct drps_feed *feed, struct drps_feed_raw *out, struct drps_err *err);
int drps_feed_keeps(const struct drps_feed *feed);

/* Decode a record that was taken into ids [max_round_rows]; *out points to ids and to the record.
 * Any thread. */
DRPS_MUST_CHECK
int drps_feed_decode(const struct drps_feed *feed, const struct drps_feed_raw *record,
                     uint32_t *ids, struct drps_feed_batch *out, struct drps_err *err);

/* For the plan of a rank, in place of drps_feed_next(): the worker's batch, valid until the next
 * call, and the rows of the server, valid until the call after the next. Each is called by one
 * thread. */
DRPS_MUST_CHECK
int drps_feed_next_share(struct drps_feed *feed, struct drps_feed_share *out, struct drps_err *err);
DRPS_MUST_CHECK
int drps_feed_next_union(struct drps_feed *feed, struct drps_feed_union *out, struct drps_err *err);

/*
 * A batch of this rank on its way to another one, which executes it in its place: the records of
 * its body and its shares as the files hold them. Read on its own, beside the streams; by the
 * server's thread, valid until its next call.
 */
struct drps_feed_record {
    struct drps_piece body, shares; /* aligned to 8 */
};
DRPS_MUST_CHECK
int drps_feed_read_record(struct drps_feed *feed, uint64_t step, struct drps_feed_record *out,
                          struct drps_err *err);

/* Decode the records of a batch of rank `rank`, checked as this rank's own are. The worker's thread
 * calls; *out is valid as long as the records are, at most until drps_feed_next_share().
 * DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_feed_decode_record(struct drps_feed *feed, uint32_t rank, uint64_t step,
                            const struct drps_feed_record *record, struct drps_feed_share *out,
                            struct drps_err *err);

/* The same of a body alone, unpacked to room [max_body_bytes], aligned to 8, where *out lies. Any
 * thread. */
DRPS_MUST_CHECK
int drps_feed_decode_body(const struct drps_feed *feed, const struct drps_piece *body, void *room,
                          struct drps_batch *out, struct drps_err *err);

/* Returns the largest body and shares of any rank's, together. */
uint64_t drps_feed_record_bytes(const struct drps_plan_info *info);

void drps_feed_stats(struct drps_feed *feed, struct drps_feed_stats *out);

#endif
