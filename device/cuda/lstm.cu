/*
 * A layer `lstm`, as on the host (engine/model/layers/lstm.c): gates s = W a + U h + b, of which
 * W a + b is one product for all samples of the batch, and U h one for each step. The passes keep
 * their numbers in the order of time, so that a step is a matrix, and what it reads of the step
 * before are the first rows of that. A thread has one float of h of a sample, with its four gates.
 *
 * The backward pass puts the loss's derivatives by s in place of the gates.
 */
#include "device/cuda/net.h"
#include "device/cuda/products.h"

/* The rows of s. */
enum { IN, FORGET, OUT, NEW, GATES };

/* What the passes keep, a row for each sample in the order of time. */
struct room {
    float *a;      /* [n][w]; backward: slopes of a */
    float *gates;  /* [n][4][N]: sigmoid(s), and tanh(s) of new ones; backward: slopes of s */
    float *c, *h;  /* [n][N] */
    float *before; /* [n][N]: h of the sample before; 0 where a sequence begins */
    float *of_h;   /* [n][N]: slopes of h */
    float *of_c;   /* [first step's][N]: slopes of c that the step after leaves */
};

/* One step: places [first, first + count). */
struct lstm_step {
    struct room r;
    const uint32_t *order; /* [n] of each place its sample */
    float *out;            /* [n][N] of samples */
    uint32_t N, first, count;
    uint32_t first_before; /* of the step before */
};

static __device__ float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

static __global__ void show(struct lstm_step t)
{
    const uint64_t i = net_thread(), place = t.first + i / t.N, k = i % t.N;
    if (i >= (uint64_t)t.count * t.N) return;
    float *gates = t.r.gates + place * GATES * t.N + k;
    const float in = sigmoid(gates[IN * t.N]), forget = sigmoid(gates[FORGET * t.N] + 1);
    const float out = sigmoid(gates[OUT * t.N]), fresh = tanhf(gates[NEW * t.N]);
    float c = in * fresh;
    if (t.first) c += forget * t.r.c[(uint64_t)t.first_before * t.N + i];
    const float h = out * tanhf(c);
    gates[IN * t.N] = in;
    gates[FORGET * t.N] = forget;
    gates[OUT * t.N] = out;
    gates[NEW * t.N] = fresh;
    t.r.c[place * t.N + k] = c;
    t.r.h[place * t.N + k] = h;
    t.out[(uint64_t)t.order[place] * t.N + k] = h;
}

static __global__ void show_back(struct lstm_step t)
{
    const uint64_t i = net_thread(), place = t.first + i / t.N, k = i % t.N;
    if (i >= (uint64_t)t.count * t.N) return;
    float *gates = t.r.gates + place * GATES * t.N + k;
    const float in = gates[IN * t.N], forget = gates[FORGET * t.N];
    const float out = gates[OUT * t.N], fresh = gates[NEW * t.N];
    const float shown = tanhf(t.r.c[place * t.N + k]), of_h = t.r.of_h[place * t.N + k];
    const float c_before = t.first ? t.r.c[(uint64_t)t.first_before * t.N + i] : 0.0f;
    const float of_c = t.r.of_c[i] + of_h * out * (1 - shown * shown);
    gates[IN * t.N] = of_c * fresh * in * (1 - in);
    gates[FORGET * t.N] = of_c * c_before * forget * (1 - forget);
    gates[OUT * t.N] = of_h * shown * out * (1 - out);
    gates[NEW * t.N] = of_c * in * (1 - fresh * fresh);
    t.r.of_c[i] = of_c * forget;
}

/* ---- Between samples and places ---- */

struct moves {
    const uint32_t *order;
    const float *from;
    float *to;
    uint64_t n; /* floats */
    uint32_t width;
    uint32_t first_step; /* its places */
};

static __global__ void to_places(struct moves m)
{
    const uint64_t i = net_thread();
    if (i < m.n) m.to[i] = m.from[(uint64_t)m.order[i / m.width] * m.width + i % m.width];
}

static __global__ void add_to_samples(struct moves m)
{
    const uint64_t i = net_thread();
    if (i < m.n) m.to[(uint64_t)m.order[i / m.width] * m.width + i % m.width] += m.from[i];
}

/* What the sample before had, which is the one before it in the batch, too. */
static __global__ void put_before(struct moves m)
{
    const uint64_t i = net_thread(), place = i / m.width;
    if (i >= m.n) return;
    m.to[i] = place < m.first_step ? 0.0f
                                   : m.from[((uint64_t)m.order[place] - 1) * m.width + i % m.width];
}

/* ---- On the host ---- */

struct lstm {
    const struct net *net;
    struct room r;
    const float *W, *U, *b;
    uint32_t layer, input, n, N, w;
};

static struct lstm lstm_of(const struct net *net, uint32_t i)
{
    const struct drps_device_layer *y = &net->layers[i];
    const uint64_t n = net->step->is.batch.samples;
    struct lstm l = {};
    l.net = net;
    l.layer = i;
    l.input = y->input[0];
    l.n = (uint32_t)n;
    l.N = net_width(y);
    l.w = net_width(&net->layers[l.input]);
    l.r.a = (float *)net_kept(net, i);
    l.r.gates = l.r.a + n * l.w;
    l.r.c = l.r.gates + n * GATES * l.N;
    l.r.h = l.r.c + n * l.N;
    l.r.before = l.r.h + n * l.N;
    l.r.of_h = l.r.before + n * l.N;
    l.r.of_c = l.r.of_h + n * l.N;
    l.W = net->step->net.params + y->first;
    l.U = l.W + (uint64_t)GATES * l.N * l.w;
    l.b = l.U + (uint64_t)GATES * l.N * l.N;
    return l;
}

uint64_t net_lstm_kept(const struct drps_device_layer *layers, uint32_t i)
{
    return net_width(&layers[layers[i].input[0]]) + (GATES + 5) * (uint64_t)net_width(&layers[i]);
}

static int move(const struct lstm *l, void (*kernel)(struct moves), uint32_t width,
                const float *from, float *to)
{
    const struct drps_device_step *is = l->net->is;
    const struct moves m = {is->order, from, to, (uint64_t)l->n * width, width, is->steps[1]};
    return device_launch(l->net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, kernel, m,
                         device_blocks(m.n, THREADS), THREADS, l->net->why);
}

static struct lstm_step step_of(const struct lstm *l, uint64_t t)
{
    const struct drps_device_step *is = l->net->is;
    struct lstm_step at = {};
    at.r = l->r;
    at.order = is->order;
    at.out = net_out(l->net, l->layer);
    at.N = l->N;
    at.first = is->steps[t];
    at.count = is->steps[t + 1] - at.first;
    at.first_before = t ? is->steps[t - 1] : 0;
    return at;
}

static int launch(const struct lstm *l, void (*kernel)(struct lstm_step), const struct lstm_step *t)
{
    return device_launch(l->net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, kernel, *t,
                         device_blocks((uint64_t)t->count * l->N, THREADS), THREADS, l->net->why);
}

int net_lstm(const struct net *net, uint32_t i)
{
    const struct lstm l = lstm_of(net, i);
    const size_t N = l.N, rows = GATES * N;
    int rc = move(&l, to_places, l.w, net_out(net, l.input), l.r.a);
    if (rc == 0) rc = net_fill(net, l.n, (uint32_t)rows, l.b, l.r.gates);
    if (rc == 0) rc = product(net->dev, l.n, l.w, rows, l.r.a, l.W, l.r.gates, net->why);
    for (uint64_t t = 0; t < net->is->n_steps && rc == 0; t++) {
        const struct lstm_step at = step_of(&l, t);
        if (t)
            rc = product(net->dev, at.count, N, rows, l.r.h + at.first_before * N, l.U,
                         l.r.gates + at.first * rows, net->why);
        if (rc == 0) rc = launch(&l, show, &at);
    }
    return rc;
}

/* Back through time: the slopes of s. */
static int go_back(const struct lstm *l)
{
    const struct net *net = l->net;
    const size_t N = l->N, rows = GATES * N;
    int rc = move(l, to_places, l->N, net_slope(net, l->layer), l->r.of_h);
    if (rc == 0) rc = net_fill(net, net->is->steps[1], l->N, NULL, l->r.of_c);
    for (uint64_t t = net->is->n_steps; t-- > 0 && rc == 0;) {
        const struct lstm_step at = step_of(l, t);
        rc = launch(l, show_back, &at);
        if (rc == 0 && t)
            rc = product_back(net->dev, at.count, N, rows, l->r.gates + at.first * rows, l->U, 1,
                              l->r.of_h + at.first_before * N, net->why);
    }
    return rc;
}

/* The gradient of W, U and b. */
static int of_parameters(const struct lstm *l)
{
    const struct net *net = l->net;
    const size_t N = l->N, rows = GATES * N;
    float *grads = net->step->net.grads + net->layers[l->layer].first;
    int rc = move(l, put_before, l->N, net_out(net, l->layer), l->r.before);
    if (rc == 0)
        rc = product_weights(net->dev, l->n, l->w, rows, l->r.gates, l->r.a, 0, grads, net->why);
    if (rc == 0)
        rc = product_weights(net->dev, l->n, N, rows, l->r.gates, l->r.before, 0,
                             grads + rows * l->w, net->why);
    if (rc == 0)
        rc = net_sum_samples(net->dev, l->n, (uint32_t)rows, l->r.gates, NULL,
                             grads + rows * (l->w + N), net->why);
    return rc;
}

int net_lstm_back(const struct net *net, uint32_t i)
{
    const struct lstm l = lstm_of(net, i);
    int rc = go_back(&l);
    if (rc == 0) rc = of_parameters(&l);
    if (rc < 0 || net_has_data(&net->layers[l.input])) return rc;
    rc = product_back(net->dev, l.n, l.w, GATES * (size_t)l.N, l.r.gates, l.W, 0, l.r.a, net->why);
    return rc < 0 ? rc : move(&l, add_to_samples, l.w, l.r.a, net_slope(net, l.input));
}
