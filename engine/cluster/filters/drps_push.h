/*
 * The filters of a worker's pushes: what is not sent of a row is kept in its residual
 * slot (index/plan/drps_residuals.h), and added to the row's next gradient. So nothing is lost:
 * what was sent and what is kept add up to the gradients. When the training of an epoch is over in
 * which all is flushed nothing is kept but what rounding has taken from rows that were sent whole
 * in fewer than 32 bits. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_PUSH_H
#define DRPS_ENGINE_CLUSTER_FILTERS_PUSH_H

#include "engine/cluster/filters/drps_push_message.h"

struct drps_push; /* opaque: slots, and the stream of records */

struct drps_push_job {
    const struct drps_plan *plan;            /* the rank's part; borrowed */
    const struct drps_push_options *options; /* copied */
    int touches;
    uint64_t epoch, first; /* where training begins: the epoch, from 1, and the step of it */
    uint64_t epochs;       /* from that one on */
    uint64_t seed;
};

/* The largest part of any message: of a server's rows of a batch. */
struct drps_push_shape drps_push_most(const struct drps_plan_info *info, int touches);

/* Returns the bytes of a batch's messages to all servers, at most. */
uint64_t drps_push_messages_bytes(const struct drps_plan_info *info, int touches);

/* Returns the memory of a worker's filters and of a server's reading, with messages. */
uint64_t drps_push_memory(const struct drps_plan_info *info, int touches);

/* Whether rows must have slots of their own, as something is kept over epochs. */
int drps_push_needs_own_slots(const struct drps_push_options *options);

/* DRPS_E_CONFIG: the plan has no residual slots, or not those that the options need. */
DRPS_MUST_CHECK
int drps_push_open(const struct drps_push_job *job, struct drps_push **push_out,
                   struct drps_err *err);
void drps_push_close(struct drps_push *push); /* NULL-safe */

/*
 * The gradient of the next training batch: rows [own_first, own_first + own_n) of its `rows` are
 * this rank's own, and are left alone. What was kept of the others is added to theirs.
 */
DRPS_MUST_CHECK
int drps_push_begin(struct drps_push *push, float *grads, size_t rows, size_t own_first,
                    size_t own_n, struct drps_err *err);

/* Write the message to one server, which has rows [first, first + n) of the batch; each of these
 * rows goes to one server. Returns its bytes, at most drps_push_bound(). */
size_t drps_push_write(struct drps_push *push, uint32_t server, size_t first, size_t n,
                       const float *grads, const uint32_t *touches, void *out);

/*
 * The next training batch is executed by another worker, who sends its gradient whole: nothing of
 * it is kept. What was kept of rows that give up their slots with it is written for each server as
 * drps_push_write() writes gradients (drps_held.h).
 */
DRPS_MUST_CHECK
int drps_push_skip(struct drps_push *push, size_t rows, size_t own_first, size_t own_n,
                   struct drps_err *err);
size_t drps_push_write_held(struct drps_push *push, size_t first, size_t n, void *out);

/* A gradient of another worker's batch goes whole, in so many bytes. */
void drps_push_count_whole(struct drps_push *push, uint64_t bytes);

/* What is kept, [residual_slots][dim]: between epochs another run's may be put there. */
float *drps_push_slots(struct drps_push *push);

struct drps_push_kept {
    uint64_t rows; /* of which something is kept */
    double sum;    /* of all sizes */
};
void drps_push_kept(const struct drps_push *push, struct drps_push_kept *out);

/* What it came to so far. */
const struct drps_push_counts *drps_push_counts(const struct drps_push *push);

#endif
