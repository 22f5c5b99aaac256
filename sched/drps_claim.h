/*
 * Claims: which worker executes which batch. This is the second counter beside the scheduler's
 * labels: how far each share of the plan has been handed out.
 *
 * Worker i owns share i: its batches (i, 0) ... (i, steps - 1), handed out in order, and windows
 * are runs of steps that all shares have in common. A worker takes the next batch of its own
 * share; where it has none left in the window it claims the next batch of the share that is
 * farthest behind. So a slow worker does fewer batches and the epoch ends everywhere together.
 * Without claiming (BSP) a worker executes its own share alone.
 *
 * At most two windows are open: a batch of window v is handed out once every batch of windows up
 * to v - 2 has been executed. Every batch is executed once.
 *
 * One object is one epoch. No threads, no I/O, no clock. A released worker for which there is no
 * batch is drps_sched_gone() until there is one, then drps_sched_joined(): else others might wait
 * for it.
 */
#ifndef DRPS_CLAIM_H
#define DRPS_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* Batch number `step` of a share. */
struct drps_claim_batch {
    unsigned share;
    uint64_t step;
};

struct drps_claim; /* own: drps_claim_free(). One thread at a time. */

/*
 * starts     [windows] the first step of each window, rising, starts[0] = 0; borrowed until return
 * claimable  1: workers may take batches of others
 * DRPS_E_CONFIG: no worker, no step, or windows that do not rise or lie beyond the steps. -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                   int claimable, struct drps_claim **claim_out, struct drps_err *err);
void drps_claim_free(struct drps_claim *c);

/*
 * Hand a batch to a worker that holds none. Returns 1, or 0 when there is none for it now: it may
 * ask again after drps_claim_done() returned 1. -EINVAL: no such worker, or it holds a batch.
 */
DRPS_MUST_CHECK
int drps_claim_next(struct drps_claim *c, unsigned worker, struct drps_claim_batch *batch_out,
                    struct drps_err *err);

/* The worker has executed its batch. Returns 1 if that was a window's last one, else 0; -EINVAL if
 * it holds none. */
DRPS_MUST_CHECK
int drps_claim_done(struct drps_claim *c, unsigned worker, struct drps_err *err);

/* Batches that have not been executed; 0: the epoch is over. */
uint64_t drps_claim_left(const struct drps_claim *c);

#endif
