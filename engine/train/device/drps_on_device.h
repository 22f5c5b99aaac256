/*
 * Whether a run computes on a device, and with how much of it: decided before anything is made.
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_TRAIN_ON_DEVICE_H
#define DRPS_ENGINE_TRAIN_ON_DEVICE_H

#include "device/drps_device_use.h"
#include "engine/drps_engine.h"
#include "engine/step/drps_server.h"

struct drps_on_device {
    struct drps_device_use use; /* own; use.ops NULL: the processor computes */
    struct drps_device_about about;
    uint64_t frames; /* rows that its memory has room for: all of them, or fewer, and the others lie
                        in the process's, or on disk */
    uint64_t keep_bytes;     /* of its memory, for batches that stay there */
    uint64_t keep_host_most; /* of the process's, for batches that do not: at most */
    uint64_t host_bytes;     /* of the process, for batches under way */
};

/*
 * Open the device that options->device asks for. Under DRPS_TRAIN_AUTO the processor computes where
 * there is none, or it cannot do what the run asks for, and the log says why; under DRPS_TRAIN_CUDA
 * that is an error. `server` has model and optimizer. Errors as of drps_device_open();
 * DRPS_E_CONFIG: the device cannot do what the options, the model or the plan ask for;
 * DRPS_E_MEMORY_BUDGET: the device's memory is too small.
 */
DRPS_MUST_CHECK
int drps_on_device_open(const struct drps_plan *plan, const struct drps_train_options *options,
                        const struct drps_server *server, struct drps_on_device *out,
                        struct drps_err *err);
void drps_on_device_close(struct drps_on_device *on); /* NULL-safe; not open too */

#endif
