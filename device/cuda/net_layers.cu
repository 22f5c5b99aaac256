/*
 * The layers of a net on the device. Most kernels have a thread for each float of a layer, which
 * alone adds to it; a layer that is several inputs of another one gets what each says by a kernel
 * of its own.
 */
#include "device/cuda/net.h"
#include "device/cuda/products.h"
#include "device/cuda/random.h"

/* One layer, or one input of one, as a kernel gets it. */
struct work {
    struct drps_device_batch b;
    struct drps_device_rows rows;
    const uint32_t *frames;
    uint32_t n; /* samples */
    enum drps_device_layer_kind kind;
    uint32_t parts, each, width;
    uint32_t index;       /* of the layer, of whose stream dropout's numbers are */
    const float *params;  /* the layer's */
    const uint64_t *seed; /* NULL: nothing is left out */
    float probability;
    float *out, *slope, *dots;
    const float *a, *b_out; /* its inputs' floats */
    float *of_a, *of_b;     /* derivatives by them */
    uint32_t a_width, at;   /* of one input: its width, and where it begins in a join */
    uint32_t a_parts, a_each;
    /* dots: all inputs. */
    uint32_t inputs, input_parts[DRPS_DEVICE_LAYER_INPUTS], input;
    const float *inputs_out[DRPS_DEVICE_LAYER_INPUTS];
};

struct layer_args {
    struct work w;
};

static __device__ const float *row_of(const struct work *w, uint32_t j)
{
    const uint32_t frame = w->frames[local_of(&w->b, j)];
    return (const float *)(const void *)((const char *)w->rows.base + frame * w->rows.stride);
}

/* ---- Layers of entries ---- */

/* Number i of those that are known by their place. */
static __device__ float number_of(const struct drps_device_batch *b, uint64_t i)
{
    return b->numbers ? b->numbers[i] : b->levels[b->numbers8[i]];
}

/* Float k of sample s, of what entries say. */
static __device__ float of_entries(const struct work *w, uint32_t s, uint32_t k)
{
    const struct drps_device_batch *b = &w->b;
    const uint32_t end = start_of(b, s + 1), part = k / w->each, f = k % w->each;
    float sum = w->kind == DRPS_DEVICE_BAG ? w->params[k] : 0.0f;
    if (b->each && (w->kind == DRPS_DEVICE_NUMBERS || w->kind == DRPS_DEVICE_IMAGE)) {
        const uint32_t place = w->kind == DRPS_DEVICE_IMAGE ? f * w->parts + part : k;
        return place < b->each ? number_of(b, (uint64_t)s * b->each + place) : 0.0f;
    }
    for (uint32_t j = start_of(b, s); j < end; j++) {
        const uint32_t field = b->fields ? b->fields[j] : 0;
        const float x = value_of(b, j);
        switch (w->kind) {
        case DRPS_DEVICE_EMBEDDING:
            if (field == part) sum += x * row_of(w, j)[1 + f];
            break;
        case DRPS_DEVICE_BAG:
            sum += x * row_of(w, j)[1 + k];
            break;
        case DRPS_DEVICE_WEIGHTS:
            sum += x * row_of(w, j)[0];
            break;
        case DRPS_DEVICE_NUMBERS:
            if (field == k) sum += x;
            break;
        default: /* image: field c * parts + pixel is float [pixel][c] */
            if (field < w->width && field / w->parts == f && field % w->parts == part) sum += x;
            break;
        }
    }
    return sum;
}

static __global__ void entries(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t i = net_thread();
    if (i < (uint64_t)w->n * w->width)
        w->out[i] = of_entries(w, (uint32_t)(i / w->width), (uint32_t)(i % w->width));
}

/* ---- Layers of single floats ---- */

static __device__ float mask_at(const struct work *w, uint64_t i)
{
    const uint64_t seed = rng_at(*w->seed, w->index);
    return unit_float(rng_at(seed, i)) < w->probability ? 0.0f : 1 / (1 - w->probability);
}

static __global__ void floats(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t i = net_thread();
    if (i >= (uint64_t)w->n * w->width) return;
    const float a = w->a[i];
    switch (w->kind) {
    case DRPS_DEVICE_RELU:
        w->out[i] = a < 0 ? 0 : a;
        break;
    case DRPS_DEVICE_SIGMOID:
        w->out[i] = 1 / (1 + expf(-a));
        break;
    case DRPS_DEVICE_TANH:
        w->out[i] = tanhf(a);
        break;
    default:
        w->out[i] = w->seed ? a * mask_at(w, i) : a;
        break;
    }
}

static __global__ void floats_back(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t i = net_thread();
    if (i >= (uint64_t)w->n * w->width) return;
    const float out = w->out[i], slope = w->slope[i];
    switch (w->kind) {
    case DRPS_DEVICE_RELU:
        w->of_a[i] += out > 0 ? slope : 0;
        break;
    case DRPS_DEVICE_SIGMOID:
        w->of_a[i] += slope * (out * (1 - out));
        break;
    case DRPS_DEVICE_TANH:
        w->of_a[i] += slope * (1 - out * out);
        break;
    default:
        w->of_a[i] += w->seed ? slope * mask_at(w, i) : slope;
        break;
    }
}

/* ---- Layers of parts ---- */

/* A warp a sample: each part meets the sum of those before it. */
static __global__ void fm(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint32_t s = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int is_sample = s < w->n;
    float met = 0;
    for (uint32_t k = lane; is_sample && k < w->a_each; k += WARP) {
        const float *a = w->a + (uint64_t)s * w->a_width + k;
        float sum = 0;
        for (uint32_t i = 0; i < w->a_parts; i++, a += w->a_each) {
            met += *a * sum;
            sum += *a;
        }
    }
    for (int d = WARP / 2; d; d /= 2)
        met += __shfl_xor_sync(ALL_LANES, met, d);
    if (is_sample && !lane) w->out[s] = met;
}

static __global__ void fm_back(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t i = net_thread();
    if (i >= (uint64_t)w->n * w->a_each) return;
    const uint64_t s = i / w->a_each, at = s * w->a_width + i % w->a_each;
    float sum = 0;
    for (uint32_t p = 0; p < w->a_parts; p++)
        sum += w->a[at + (uint64_t)p * w->a_each];
    for (uint32_t p = 0; p < w->a_parts; p++) {
        const uint64_t k = at + (uint64_t)p * w->a_each;
        w->of_a[k] += w->slope[s] * (sum - w->a[k]);
    }
}

/* Part number i of all inputs, of sample s. */
static __device__ const float *part_of(const struct work *w, uint64_t s, uint32_t i)
{
    uint32_t k = 0;
    while (i >= w->input_parts[k])
        i -= w->input_parts[k++];
    return w->inputs_out[k] + (s * w->input_parts[k] + i) * w->each;
}

/* Pairs (i, j), i < j < n, in their order: number of the first one of i. */
static __device__ uint32_t first_pair(uint32_t n, uint32_t i)
{
    return i * n - i * (i + 1) / 2;
}

static __global__ void dots(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t t = net_thread();
    if (t >= (uint64_t)w->n * w->width) return;
    const uint64_t s = t / w->width;
    const uint32_t pair = (uint32_t)(t % w->width);
    uint32_t i = 0;
    while (first_pair(w->parts, i + 1) <= pair)
        i++;
    const float *a = part_of(w, s, i), *b = part_of(w, s, i + 1 + pair - first_pair(w->parts, i));
    float dot = 0;
    for (uint32_t k = 0; k < w->each; k++)
        dot += a[k] * b[k];
    w->out[t] = dot;
}

/* Derivatives by the parts of one input, the first of which is number `at` of all. */
static __global__ void dots_back(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t t = net_thread();
    if (t >= (uint64_t)w->n * w->a_width) return;
    const uint64_t s = t / w->a_width;
    const uint32_t i = w->at + (uint32_t)(t % w->a_width) / w->each, k = (uint32_t)(t % w->each);
    const float *slope = w->slope + s * w->width;
    float sum = 0;
    for (uint32_t j = 0; j < w->parts; j++) {
        if (j == i) continue;
        const uint32_t low = i < j ? i : j, high = i < j ? j : i;
        sum += slope[first_pair(w->parts, low) + high - low - 1] * part_of(w, s, j)[k];
    }
    w->of_a[t] += sum;
}

/* A warp a sample: a (w . b) + v + b. */
static __global__ void cross(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint32_t s = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t width = s < w->n ? w->width : 0;
    const uint64_t at = (uint64_t)s * w->width;
    float dot = 0;
    for (uint32_t k = lane; k < width; k += WARP)
        dot += w->params[k] * w->b_out[at + k];
    for (int d = WARP / 2; d; d /= 2)
        dot += __shfl_xor_sync(ALL_LANES, dot, d);
    for (uint32_t k = lane; k < width; k += WARP)
        w->out[at + k] = w->a[at + k] * dot + w->params[w->width + k] + w->b_out[at + k];
}

/* Derivatives by the first input, and dots with it. */
static __global__ void cross_back_a(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint32_t s = blockIdx.x * WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const uint32_t width = s < w->n ? w->width : 0;
    const uint64_t at = (uint64_t)s * w->width;
    float of_b = 0, of_a = 0;
    for (uint32_t k = lane; k < width; k += WARP) {
        of_a += w->params[k] * w->b_out[at + k];
        of_b += w->slope[at + k] * w->a[at + k];
    }
    for (int d = WARP / 2; d; d /= 2) {
        of_a += __shfl_xor_sync(ALL_LANES, of_a, d);
        of_b += __shfl_xor_sync(ALL_LANES, of_b, d);
    }
    for (uint32_t k = lane; k < width; k += WARP)
        w->of_a[at + k] += of_a * w->slope[at + k];
    if (width && !lane) w->dots[s] = of_b;
}

static __global__ void cross_back_b(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t i = net_thread();
    if (i >= (uint64_t)w->n * w->width) return;
    w->of_b[i] += w->dots[i / w->width] * w->params[i % w->width] + w->slope[i];
}

/* ---- Layers of layers: one input ---- */

/* Puts, or adds, an input where it is in this layer. */
static __global__ void put_input(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t i = net_thread();
    if (i >= (uint64_t)w->n * w->a_width) return;
    float *to = w->out + i / w->a_width * w->width + w->at + i % w->a_width;
    *to = w->kind == DRPS_DEVICE_SUM && w->input ? *to + w->a[i] : w->a[i];
}

static __global__ void put_input_back(struct layer_args args)
{
    const struct work *w = &args.w;
    const uint64_t i = net_thread();
    if (i < (uint64_t)w->n * w->a_width)
        w->of_a[i] += w->slope[i / w->a_width * w->width + w->at + i % w->a_width];
}

/* ---- On the host ---- */

static struct layer_args args_of(const struct net *net, uint32_t i)
{
    const struct step *s = net->step;
    const struct drps_device_layer *y = &net->layers[i];
    struct layer_args args = {};
    struct work *w = &args.w;
    w->b = s->is.batch;
    w->rows = s->is.rows;
    w->frames = s->is.frames;
    w->n = s->is.batch.samples;
    w->kind = y->kind;
    w->parts = y->parts;
    w->each = y->each;
    w->width = net_width(y);
    w->index = i;
    w->params = s->net.params + y->first;
    w->seed = s->trains ? s->net.seed : NULL;
    w->probability = y->probability;
    w->out = net_out(net, i);
    w->slope = net_slope(net, i);
    w->dots = s->net.dots;
    return args;
}

/* The same with input k of the layer. */
static struct layer_args with_input(const struct net *net, uint32_t i, uint32_t k)
{
    const struct drps_device_layer *y = &net->layers[i], *in = &net->layers[y->input[k]];
    struct layer_args args = args_of(net, i);
    struct work *w = &args.w;
    w->input = k;
    w->a = net_out(net, y->input[k]);
    w->of_a = net_slope(net, y->input[k]);
    w->a_width = net_width(in);
    w->a_parts = in->parts;
    w->a_each = in->each;
    for (uint32_t l = 0; l < k; l++)
        w->at += y->kind == DRPS_DEVICE_JOIN   ? net_width(&net->layers[y->input[l]])
                 : y->kind == DRPS_DEVICE_DOTS ? net->layers[y->input[l]].parts
                                               : 0;
    return args;
}

/* All inputs of dots: `parts` become those of them all. */
static void take_inputs(const struct net *net, uint32_t i, struct work *w)
{
    const struct drps_device_layer *y = &net->layers[i];
    w->parts = 0;
    w->each = net->layers[y->input[0]].each;
    w->inputs = y->inputs_n;
    for (uint32_t k = 0; k < y->inputs_n; k++) {
        w->input_parts[k] = net->layers[y->input[k]].parts;
        w->inputs_out[k] = net_out(net, y->input[k]);
        w->parts += w->input_parts[k];
    }
}

static int launch(const struct net *net, void (*kernel)(struct layer_args),
                  const struct layer_args *args, uint64_t threads)
{
    return device_launch(net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, kernel, *args,
                         device_blocks(threads, THREADS), THREADS, net->why);
}

int net_layer(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i];
    struct layer_args args = y->inputs_n ? with_input(net, i, 0) : args_of(net, i);
    const uint64_t n = args.w.n, all = n * args.w.width;
    int rc = 0;
    switch (y->kind) {
    case DRPS_DEVICE_EMBEDDING:
    case DRPS_DEVICE_BAG:
    case DRPS_DEVICE_WEIGHTS:
    case DRPS_DEVICE_NUMBERS:
    case DRPS_DEVICE_IMAGE:
        return launch(net, entries, &args, all);
    case DRPS_DEVICE_FULL:
        rc = net_fill(net, n, args.w.width, args.w.params + args.w.width * (uint64_t)args.w.a_width,
                      args.w.out);
        return rc < 0 ? rc
                      : product(net->dev, n, args.w.a_width, args.w.width, args.w.a, args.w.params,
                                args.w.out, net->why);
    case DRPS_DEVICE_RELU:
    case DRPS_DEVICE_SIGMOID:
    case DRPS_DEVICE_TANH:
    case DRPS_DEVICE_DROPOUT:
        return launch(net, floats, &args, all);
    case DRPS_DEVICE_PAIRS:
        return launch(net, fm, &args, n * WARP);
    case DRPS_DEVICE_DOTS:
        take_inputs(net, i, &args.w);
        return launch(net, dots, &args, all);
    case DRPS_DEVICE_CROSS:
        args.w.b_out = net_out(net, y->input[1]);
        return launch(net, cross, &args, n * WARP);
    case DRPS_DEVICE_SUM:
    case DRPS_DEVICE_JOIN:
        for (uint32_t k = 0; k < y->inputs_n && rc == 0; k++) {
            args = with_input(net, i, k);
            rc = launch(net, put_input, &args, n * args.w.a_width);
        }
        return rc;
    case DRPS_DEVICE_CONV:
        return net_conv(net, i);
    case DRPS_DEVICE_POOL:
        return net_pool(net, i);
    case DRPS_DEVICE_LSTM:
        return net_lstm(net, i);
    }
    return rc;
}

static int backward_full(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i];
    const struct layer_args args = with_input(net, i, 0);
    const struct work *w = &args.w;
    float *grads = net->step->net.grads + y->first;
    int rc =
        product_weights(net->dev, w->n, w->a_width, w->width, w->slope, w->a, 0, grads, net->why);
    if (rc == 0)
        rc = net_sum_samples(net->dev, w->n, w->width, w->slope, NULL,
                             grads + (uint64_t)w->width * w->a_width, net->why);
    if (rc < 0 || net_has_data(&net->layers[y->input[0]])) return rc;
    return product_back(net->dev, w->n, w->a_width, w->width, w->slope, w->params, 1, w->of_a,
                        net->why);
}

static int backward_cross(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i];
    struct layer_args args = with_input(net, i, 0);
    const uint64_t n = args.w.n;
    float *grads = net->step->net.grads + y->first;
    args.w.b_out = net_out(net, y->input[1]);
    args.w.of_b = net_slope(net, y->input[1]);
    int rc = launch(net, cross_back_a, &args, n * WARP);
    if (rc == 0) rc = launch(net, cross_back_b, &args, n * args.w.width);
    if (rc == 0)
        rc = net_sum_samples(net->dev, args.w.n, args.w.width, args.w.b_out, args.w.dots, grads,
                             net->why);
    if (rc == 0)
        rc = net_sum_samples(net->dev, args.w.n, args.w.width, args.w.slope, NULL,
                             grads + args.w.width, net->why);
    return rc;
}

static int backward_inputs(const struct net *net, uint32_t i, void (*kernel)(struct layer_args))
{
    const struct drps_device_layer *y = &net->layers[i];
    int rc = 0;
    for (uint32_t k = 0; k < y->inputs_n && rc == 0; k++) {
        struct layer_args args = with_input(net, i, k);
        if (y->kind == DRPS_DEVICE_DOTS) take_inputs(net, i, &args.w);
        rc = launch(net, kernel, &args, (uint64_t)args.w.n * args.w.a_width);
    }
    return rc;
}

int net_layer_back(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i];
    const struct layer_args args = y->inputs_n ? with_input(net, i, 0) : args_of(net, i);
    switch (y->kind) {
    case DRPS_DEVICE_BAG: /* its b; its rows come last */
        return net_sum_samples(net->dev, args.w.n, args.w.width, args.w.slope, NULL,
                               net->step->net.grads + y->first, net->why);
    case DRPS_DEVICE_EMBEDDING:
    case DRPS_DEVICE_WEIGHTS:
    case DRPS_DEVICE_NUMBERS:
    case DRPS_DEVICE_IMAGE:
        return 0;
    case DRPS_DEVICE_FULL:
        return backward_full(net, i);
    case DRPS_DEVICE_RELU:
    case DRPS_DEVICE_SIGMOID:
    case DRPS_DEVICE_TANH:
    case DRPS_DEVICE_DROPOUT:
        return launch(net, floats_back, &args, (uint64_t)args.w.n * args.w.width);
    case DRPS_DEVICE_PAIRS:
        return launch(net, fm_back, &args, (uint64_t)args.w.n * args.w.a_each);
    case DRPS_DEVICE_DOTS:
        return backward_inputs(net, i, dots_back);
    case DRPS_DEVICE_CROSS:
        return backward_cross(net, i);
    case DRPS_DEVICE_SUM:
    case DRPS_DEVICE_JOIN:
        return backward_inputs(net, i, put_input_back);
    case DRPS_DEVICE_CONV:
        return net_conv_back(net, i);
    case DRPS_DEVICE_POOL:
        return net_pool_back(net, i);
    case DRPS_DEVICE_LSTM:
        return net_lstm_back(net, i);
    }
    return 0;
}
