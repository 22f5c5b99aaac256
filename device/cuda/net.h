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

/* A net under way, on the host. */
struct net {
    struct drps_device *dev;
    const struct step *step;           /* whose room is laid out */
    const struct drps_device_step *is; /* the same as it came, with what is of the host */
    const struct drps_device_layer *layers;
    char *why;
};

/* net.cu: the passes. */
int net_forward(const struct net *net);
int net_backward(const struct net *net);
/* to [n][width] gets the row n times; NULL: zeros. */
int net_fill(const struct net *net, uint64_t n, uint32_t width, const float *row, float *to);
/* What layer i keeps from pass to pass. */
void *net_kept(const struct net *net, uint32_t i);

/* net_layers.cu: layer i; and the derivatives by its inputs and its parameters. */
int net_layer(const struct net *net, uint32_t i);
int net_layer_back(const struct net *net, uint32_t i);

/* conv.cu, pool.cu, lstm.cu: the same for layers of these kinds. */
int net_conv(const struct net *net, uint32_t i);
int net_conv_back(const struct net *net, uint32_t i);
int net_pool(const struct net *net, uint32_t i);
int net_pool_back(const struct net *net, uint32_t i);
int net_lstm(const struct net *net, uint32_t i);
int net_lstm_back(const struct net *net, uint32_t i);
/* Floats that the layer keeps for a sample. */
uint64_t net_lstm_kept(const struct drps_device_layer *layers, uint32_t i);
/* Floats of net_room.rows. */
size_t net_conv_room(const struct drps_device_model *model, size_t samples);

static inline uint32_t net_width(const struct drps_device_layer *y)
{
    return y->parts * y->each;
}

static inline float *net_out(const struct net *net, uint32_t i)
{
    return net->step->net.outs + (uint64_t)net->layers[i].at * net->step->is.batch.samples;
}

static inline float *net_slope(const struct net *net, uint32_t i)
{
    return net->step->net.slopes + (uint64_t)net->layers[i].at * net->step->is.batch.samples;
}

/* 1: nobody asks for the derivatives by its floats, which are numbers of the data. */
static inline int net_has_data(const struct drps_device_layer *y)
{
    return y->kind == DRPS_DEVICE_NUMBERS || y->kind == DRPS_DEVICE_IMAGE;
}

static __device__ inline uint64_t net_thread()
{
    return (uint64_t)blockIdx.x * THREADS + threadIdx.x;
}

/* net_rows.cu: rows of features, from the slopes of layers. */
int net_step_rows(struct drps_device *dev, const struct net_rows *rows, char *why);

/* net_sums.cu: to [width] = the sums over samples of x [samples][width], each times `by` [samples],
 * if that is not NULL. */
int net_sum_samples(struct drps_device *dev, uint32_t samples, uint32_t width, const float *x,
                    const float *by, float *to, char *why);
/* to [width] = the sums of very many rows x [n][width]: group by group in room
 * [net_sum_groups()][width], then these. */
int net_sum_rows(struct drps_device *dev, uint64_t n, uint32_t width, const float *x, float *room,
                 float *to, char *why);
uint64_t net_sum_groups(uint64_t n);

/* net_loss.cu: losses and slopes of scores. */
int net_losses(struct drps_device *dev, const struct step *step, float *slopes, char *why);

#endif
