/* A batch as it is uploaded: all its arrays and its transposed index behind each other, in one
 * piece of memory. Private to engine/step/device/. */
#ifndef DRPS_ENGINE_STEP_DEVICE_BATCH_H
#define DRPS_ENGINE_STEP_DEVICE_BATCH_H

#include "device/drps_device.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"

/* Returns the bytes of the largest batch of the plan. */
uint64_t device_batch_most(const struct drps_plan_info *info);

/* Writes the batch to `host`; `trains`: with its transposed index; `pairs`: with the entries, too,
 * and fields. out gets its pointers as they are once the bytes lie at `device`. Returns how many
 * they are: at most device_batch_most(). */
size_t device_batch_lay_out(const struct drps_batch *batch, int trains, int pairs, char *host,
                            char *device, struct drps_device_batch *out);

/* Its bytes lie at `to`, and not at `from`: moves its pointers. */
void device_batch_move(struct drps_device_batch *batch, const char *from, const char *to);

#endif
