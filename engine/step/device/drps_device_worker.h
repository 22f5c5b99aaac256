/*
 * The worker of a step on a device: it takes the place of pull, gradient and push
 * (engine/step/drps_worker.h), where the store keeps rows in a device's memory. A batch is laid out
 * and transposed on the host and uploaded, while those before it are computed; losses come back
 * some batches later. The sums have another order than the host's, and the same one in each run.
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_STEP_DEVICE_WORKER_H
#define DRPS_ENGINE_STEP_DEVICE_WORKER_H

#include <stdint.h>

#include "device/drps_device_use.h"
#include "engine/step/drps_server.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"

struct drps_device_worker; /* opaque */

enum { DRPS_DEVICE_UNDER_WAY = 3 /* batches whose losses have not come back, at most */ };

struct drps_device_worker_parts {
    const struct drps_device_use *use; /* borrowed, as are the next two */
    const struct drps_server *server;  /* its store has rows on the device */
    const struct drps_plan_info *info;
    /* Memory of the device, and of the process, in which batches stay once they are laid out; 0:
     * they are laid out in each epoch. */
    uint64_t keep_bytes, keep_host_bytes;
};

/* DRPS_E_CONFIG: no device can compute this model or take this step; err says why. */
DRPS_MUST_CHECK
int drps_device_worker_can(const struct drps_device_ops *ops, const struct drps_model *model,
                           const struct drps_optim *optim, struct drps_err *err);

/* What it takes: of the process, of the device, and of either at most for batches that are kept. */
struct drps_device_worker_needs {
    uint64_t host_bytes, device_bytes, keep_most_bytes;
};
void drps_device_worker_needs(const struct drps_device_ops *ops, const struct drps_model *model,
                              const struct drps_optim *optim, const struct drps_plan_info *info,
                              struct drps_device_worker_needs *out);

DRPS_MUST_CHECK
int drps_device_worker_open(const struct drps_device_worker_parts *parts,
                            struct drps_device_worker **w_out, struct drps_err *err);
void drps_device_worker_close(struct drps_device_worker *w); /* NULL-safe; waits for all batches */

/* Give the batch of step `step` of the epoch to the device, on the server's open rows, which may be
 * closed then. A step has the same batch in each epoch. -EINVAL: more than
 * DRPS_DEVICE_UNDER_WAY batches are under way. */
DRPS_MUST_CHECK
int drps_device_worker_train(struct drps_device_worker *w, uint64_t step,
                             const struct drps_batch *batch, struct drps_err *err);

/* Returns 1 with the sum of the losses of the first batch whose losses have not been taken, while
 * more than `left` are under way; else 0. */
DRPS_MUST_CHECK
int drps_device_worker_take(struct drps_device_worker *w, unsigned left, double *loss_out,
                            struct drps_err *err);

/* scores [batch.samples][outputs] of the server's open rows. */
DRPS_MUST_CHECK
int drps_device_worker_predict(struct drps_device_worker *w, uint64_t step,
                               const struct drps_batch *batch, float *scores, struct drps_err *err);

#endif
