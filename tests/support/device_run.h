/*
 * Training on a device beside the same on the host: losses, scores and rows are to be alike, and
 * the bytes the same from run to run. Fails the test where they are not.
 */
#ifndef DRPS_TESTS_SUPPORT_DEVICE_RUN_H
#define DRPS_TESTS_SUPPORT_DEVICE_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "device/drps_device_use.h"
#include "engine/step/drps_server.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"

/* A batch, and which rows of the model it has. */
struct device_batch {
    const struct drps_batch *b;
    const uint32_t *ids; /* [b->rows] */
};

/* Trains n batches twice, as two epochs do, and then predicts batches[n]: by the device, in two
 * runs, and by the plain twins. `server` has model and optimizer, and the model `rows` rows. */
void device_run(struct drps_device_use *use, const struct drps_server *server,
                const struct drps_plan_info *info, uint64_t rows,
                const struct device_batch *batches, size_t n);

#endif
