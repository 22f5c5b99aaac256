/* Passes of layers over images, for forward.c and backward.c, which say what each is called with.
 * A layer's floats are [n][pixels][channels]. */
#ifndef DRPS_ENGINE_MODEL_LAYERS_IMAGE_H
#define DRPS_ENGINE_MODEL_LAYERS_IMAGE_H

#include "engine/model/layers/passes.h"

/* Returns how many floats p->room has to have for the layers of a net and so many samples. */
size_t drps_layers_conv_room(const struct drps_layers *l, size_t samples);

void drps_layers_conv(const struct pass *p, const struct drps_layer *y);
void drps_layers_conv_back(const struct pass *p, const struct drps_layer *y, float *grads);

void drps_layers_pool(const struct pass *p, const struct drps_layer *y);
void drps_layers_pool_back(const struct pass *p, const struct drps_layer *y);

#endif
