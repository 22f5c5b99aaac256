/*
 * Nets of layers (index/layers/drps_layers.h): what the sources of their passes share. The floats
 * of a layer are a matrix [samples][width], as on the host; a pass goes through all samples of the
 * batch, layer by layer. Private to device/cuda/.
 */
#ifndef DRPS_DEVICE_CUDA_NET_H
#define DRPS_DEVICE_CUDA_NET_H

#include "device/cuda/step.h"

enum { ROW_LAYERS = DRPS_DEVICE_ROW_LAYERS };

/* A layer that reads rows: where its slopes are. */
struct row_layer {
    enum drps_device_layer_kind kind;
    uint32_t parts, each;
    const float *slopes;
};

struct net_rows {
    struct step s;
    uint32_t n;
    struct row_layer layers[ROW_LAYERS];
};

size_t net_room(struct net_room *room, const struct drps_device_model *model, void *base,
                size_t samples);

/* The passes of a step whose room is laid out; `layers` is the host's. */
int net_forward(struct drps_device *dev, const struct step *step,
                const struct drps_device_layer *layers, char *why);
int net_backward(struct drps_device *dev, const struct step *step,
                 const struct drps_device_layer *layers, char *why);

/* net_rows.cu: rows of features, from the slopes of layers. */
int net_step_rows(struct drps_device *dev, const struct net_rows *rows, char *why);

/* net_sums.cu: to [width] = the sums over samples of x [samples][width], each times `by` [samples],
 * if that is not NULL. */
int net_sum_samples(struct drps_device *dev, uint32_t samples, uint32_t width, const float *x,
                    const float *by, float *to, char *why);

/* net_loss.cu: losses and slopes of scores. */
int net_losses(struct drps_device *dev, const struct step *step, float *slopes, char *why);

#endif
