/*
 * Model and optimizer in the terms of a device (device/drps_device.h). DRPS_E_CONFIG: no device has
 * kernels for them; err says for what. Private to engine/step/device/.
 */
#ifndef DRPS_ENGINE_STEP_OF_DEVICE_H
#define DRPS_ENGINE_STEP_OF_DEVICE_H

#include "base/drps_err.h"
#include "device/drps_device.h"
#include "engine/model/drps_model.h"
#include "engine/model/drps_optim.h"

/* layers [DRPS_LAYERS_MOST] are those of a net, which *out points to. */
DRPS_MUST_CHECK
int device_model_of(const struct drps_model *model, struct drps_device_layer *layers,
                    struct drps_device_model *out, struct drps_err *err);

DRPS_MUST_CHECK
int device_optim_of(const struct drps_optim *o, struct drps_device_optim *out,
                    struct drps_err *err);

#endif
