/*
 * The largest of each K x K pixels, channel by channel. The first pass remembers which pixel it
 * was, of several the first one from the left and then from the top; backwards each pixel looks
 * where it was the largest. The slope of a NaN goes to nobody.
 */
#include "device/cuda/image.h"

#define NOBODY UINT32_MAX /* the place of a NaN */

struct pool {
    struct windows w;
    const float *a, *slope;
    float *out, *of_a;
    uint32_t *places; /* of each float of the result: which float of the image it is, or NOBODY */
    uint64_t n;       /* floats of all images; of the results */
};

/* A thread a float of the result. A NaN stays one. */
static __global__ void take_largest(struct pool p)
{
    const struct windows *w = &p.w;
    const uint32_t out_width = w->out_rows * w->out_columns * w->channels;
    const uint64_t i = net_thread(), width = (uint64_t)w->rows * w->columns * w->channels;
    if (i >= p.n) return;
    const struct pixel to = pixel_of(w->out_columns, w->channels, (uint32_t)(i % out_width));
    const float *image = p.a + i / out_width * width;
    float most = 0;
    uint32_t place = 0;
    for (uint32_t k = 0; k < w->kernel * w->kernel; k++) {
        const uint32_t y = to.row * w->step + k / w->kernel,
                       x = to.column * w->step + k % w->kernel;
        const uint32_t at = (y * w->columns + x) * w->channels + to.channel;
        const float a = image[at];
        if (k && !(a > most) && a == a) continue;
        most = a;
        place = at;
    }
    p.out[i] = most;
    p.places[i] = most == most ? place : NOBODY;
}

/* A thread a float of the image. */
static __global__ void give_slopes(struct pool p)
{
    const struct windows *w = &p.w;
    const uint32_t width = w->rows * w->columns * w->channels;
    const uint64_t i = net_thread();
    if (i >= p.n) return;
    const uint32_t at = (uint32_t)(i % width);
    const struct pixel from = pixel_of(w->columns, w->channels, at);
    const struct seen ys = seen_by(w, from.row, w->out_rows),
                      xs = seen_by(w, from.column, w->out_columns);
    const uint64_t results = i / width * w->out_rows * w->out_columns;
    float sum = 0;
    for (uint32_t y = ys.first; y < ys.end; y++)
        for (uint32_t x = xs.first; x < xs.end; x++) {
            const uint64_t to = (results + y * w->out_columns + x) * w->channels + from.channel;
            if (p.places[to] == at) sum += p.slope[to];
        }
    p.of_a[i] += sum;
}

/* ---- On the host ---- */

static int launch(const struct net *net, uint32_t i, void (*kernel)(struct pool), uint32_t width)
{
    const uint32_t input = net->layers[i].input[0];
    struct pool p = {};
    p.w = windows_of(net, i);
    p.a = net_out(net, input);
    p.of_a = net_slope(net, input);
    p.out = net_out(net, i);
    p.slope = net_slope(net, i);
    p.places = (uint32_t *)net_kept(net, i);
    p.n = (uint64_t)net->step->is.batch.samples * width;
    return device_launch(net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, kernel, p,
                         device_blocks(p.n, THREADS), THREADS, net->why);
}

int net_pool(const struct net *net, uint32_t i)
{
    return launch(net, i, take_largest, net_width(&net->layers[i]));
}

int net_pool_back(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *a = &net->layers[net->layers[i].input[0]];
    return net_has_data(a) ? 0 : launch(net, i, give_slopes, net_width(a));
}
