/* The two passes of a layer `lstm`. */
#ifndef DRPS_ENGINE_MODEL_LAYERS_LSTM_H
#define DRPS_ENGINE_MODEL_LAYERS_LSTM_H

#include "engine/model/layers/passes.h"

void drps_lstm_forward(const struct pass *p, const struct drps_layer *y);
/* Adds to grads, and to the slopes of the layer's input. `kept`: drps_layers_take_vectors(). */
void drps_lstm_backward(const struct pass *p, const struct drps_layer *y,
                        const struct drps_layers_vectors *kept, float *grads);

#endif
