/*
 * Convolution as a product of matrices, as on the host (engine/model/layers/conv.c): what a filter
 * sees is a row, for each pixel of the result, and rows are made for as many pixels at a time as
 * there is room for. In the backward pass each float of the image adds up its derivatives by all
 * rows that it is in.
 */
#include "device/cuda/image.h"
#include "device/cuda/products.h"

/* Rows of so many floats are made at a time, and one row at least. The emulated device makes fewer,
 * so that small tests have several pieces, too. */
enum { ROOM = DRPS_DEVICE_EMULATED ? 4 << 10 : 16 << 20 };

struct conv {
    struct windows w;
    const float *a;
    float *of_a, *rows;
    uint32_t sample, first; /* the sample of the first row, and its pixel of the result */
    uint32_t n, row;        /* so many rows, of so many floats each */
};

/* A thread a float of a row. */
static __global__ void make_rows(struct conv c)
{
    const struct windows *w = &c.w;
    const uint64_t i = net_thread();
    if (i >= (uint64_t)c.n * c.row) return;
    const uint32_t q = c.first + (uint32_t)i / c.row, parts = w->out_rows * w->out_columns;
    const struct pixel to = pixel_of(w->out_columns, 1, q % parts),
                       k = pixel_of(w->kernel, w->channels, (uint32_t)i % c.row);
    const uint32_t y =
        to.row * w->step + k.row - w->border; /* of the border: more than there are */
    const uint32_t x = to.column * w->step + k.column - w->border;
    const float *image =
        c.a + (uint64_t)(c.sample + q / parts) * w->rows * w->columns * w->channels;
    c.rows[i] = y < w->rows && x < w->columns
                    ? image[((uint64_t)y * w->columns + x) * w->channels + k.channel]
                    : 0.0f;
}

/* A thread a float of the images that rows were made from. */
static __global__ void gather_rows(struct conv c)
{
    const struct windows *w = &c.w;
    const uint32_t parts = w->out_rows * w->out_columns, width = w->rows * w->columns * w->channels;
    const uint64_t i = net_thread(), s = i / width;
    if (s * parts >= (uint64_t)c.first + c.n) return;
    const struct pixel p = pixel_of(w->columns, w->channels, (uint32_t)(i % width));
    const struct seen ys = seen_by(w, p.row + w->border, w->out_rows),
                      xs = seen_by(w, p.column + w->border, w->out_columns);
    float sum = 0;
    for (uint32_t y = ys.first; y < ys.end; y++)
        for (uint32_t x = xs.first; x < xs.end; x++) {
            const uint64_t q = s * parts + y * w->out_columns + x - c.first;
            const uint32_t ky = p.row + w->border - y * w->step,
                           kx = p.column + w->border - x * w->step;
            if (q < c.n) sum += c.rows[q * c.row + (ky * w->kernel + kx) * w->channels + p.channel];
        }
    c.of_a[(uint64_t)c.sample * width + i] += sum;
}

/* ---- On the host ---- */

static uint64_t row_floats(const struct drps_device_layer *layers, uint32_t i)
{
    const struct drps_device_layer *y = &layers[i];
    return (uint64_t)y->kernel * y->kernel * layers[y->input[0]].each;
}

/* Returns how many rows are made at a time. */
static uint64_t rows_most(const struct drps_device_layer *layers, uint32_t i, uint64_t samples)
{
    const uint64_t most = ROOM / row_floats(layers, i), all = samples * layers[i].parts;
    return all < most ? all : most ? most : 1;
}

size_t net_conv_room(const struct drps_device_model *model, size_t samples)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < model->n_layers; i++) {
        const struct drps_device_layer *y = &model->layers[i];
        if (y->kind != DRPS_DEVICE_CONV) continue;
        const uint64_t rows = rows_most(model->layers, i, samples) * row_floats(model->layers, i);
        const uint64_t sums = net_sum_groups(samples * y->parts) * y->each;
        most = rows > most ? rows : most;
        most = sums > most ? sums : most;
    }
    return (size_t)most;
}

/* The rows from result pixel `first` on, counted through all samples, as many as go together. */
static struct conv conv_of(const struct net *net, uint32_t i, uint64_t first)
{
    const struct drps_device_layer *y = &net->layers[i];
    const uint64_t samples = net->step->is.batch.samples, left = samples * y->parts - first;
    const uint64_t most = rows_most(net->layers, i, samples);
    struct conv c = {};
    c.w = windows_of(net, i);
    c.a = net_out(net, y->input[0]);
    c.of_a = net_slope(net, y->input[0]);
    c.rows = net->step->net.rows;
    c.sample = (uint32_t)(first / y->parts);
    c.first = (uint32_t)(first % y->parts);
    c.n = (uint32_t)(left < most ? left : most);
    c.row = (uint32_t)row_floats(net->layers, i);
    return c;
}

static int launch(const struct net *net, void (*kernel)(struct conv), const struct conv *c,
                  uint64_t threads)
{
    return device_launch(net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, kernel, *c,
                         device_blocks(threads, THREADS), THREADS, net->why);
}

int net_conv(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i];
    const uint64_t all = (uint64_t)net->step->is.batch.samples * y->parts;
    const uint32_t N = y->each;
    const float *weights = net->step->net.params + y->first;
    int rc = net_fill(net, all, N, weights + N * row_floats(net->layers, i), net_out(net, i));
    for (uint64_t q = 0; q < all && rc == 0;) {
        const struct conv c = conv_of(net, i, q);
        rc = launch(net, make_rows, &c, (uint64_t)c.n * c.row);
        if (rc == 0)
            rc = product(net->dev, c.n, c.row, N, c.rows, weights, net_out(net, i) + q * N,
                         net->why);
        q += c.n;
    }
    return rc;
}

/* Adds the derivatives by the image that the rows were made from. */
static int conv_of_image(const struct net *net, uint32_t i, const struct conv *c,
                         const float *slope)
{
    const struct drps_device_layer *y = &net->layers[i], *a = &net->layers[y->input[0]];
    const uint64_t samples = ((uint64_t)c->first + c->n - 1) / y->parts + 1;
    int rc = product_back(net->dev, c->n, c->row, y->each, slope, net->step->net.params + y->first,
                          0, c->rows, net->why);
    return rc < 0 ? rc : launch(net, gather_rows, c, samples * net_width(a));
}

int net_conv_back(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i];
    const uint64_t all = (uint64_t)net->step->is.batch.samples * y->parts;
    const uint32_t N = y->each;
    const float *slope = net_slope(net, i);
    float *grads = net->step->net.grads + y->first;
    int rc = net_sum_rows(net->dev, all, N, slope, net->step->net.rows,
                          grads + N * row_floats(net->layers, i), net->why);
    for (uint64_t q = 0; q < all && rc == 0;) {
        const struct conv c = conv_of(net, i, q);
        rc = launch(net, make_rows, &c, (uint64_t)c.n * c.row);
        if (rc == 0)
            rc = product_weights(net->dev, c.n, c.row, N, slope + q * N, c.rows, q != 0, grads,
                                 net->why);
        if (rc == 0 && !net_has_data(&net->layers[y->input[0]]))
            rc = conv_of_image(net, i, &c, slope + q * N);
        q += c.n;
    }
    return rc;
}
