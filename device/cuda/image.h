/* Which pixels of a result see a pixel. Private to device/cuda/. */
#ifndef DRPS_DEVICE_CUDA_IMAGE_H
#define DRPS_DEVICE_CUDA_IMAGE_H

#include "device/cuda/net.h"

/* A layer that looks at `kernel` x `kernel` pixels of an image, in steps. */
struct windows {
    uint32_t rows, columns, channels; /* of the image */
    uint32_t out_rows, out_columns;
    uint32_t kernel, step, border;
};

static inline struct windows windows_of(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i], *a = &net->layers[y->input[0]];
    struct windows w = {};
    w.rows = a->rows;
    w.columns = a->columns;
    w.channels = a->each;
    w.out_rows = y->rows;
    w.out_columns = y->columns;
    w.kernel = y->kernel;
    w.step = y->step;
    w.border = y->border;
    return w;
}

/* A float of an image. */
struct pixel {
    uint32_t row, column, channel;
};

static __device__ inline struct pixel pixel_of(uint32_t columns, uint32_t channels, uint32_t at)
{
    const uint32_t number = at / channels;
    const struct pixel p = {number / columns, number % columns, at % channels};
    return p;
}

/* Rows, or columns, of the result that see one of the image: `at` is its number, the border
 * included, and n how many rows the result has. */
struct seen {
    uint32_t first, end;
};

static __device__ inline struct seen seen_by(const struct windows *w, uint32_t at, uint32_t n)
{
    const uint32_t end = at / w->step + 1;
    const struct seen s = {at < w->kernel ? 0 : (at - w->kernel) / w->step + 1, end < n ? end : n};
    return s;
}

#endif
