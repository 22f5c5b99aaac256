/*
 * A net on the device: layer by layer forwards, and backwards, then the steps of its rows and of
 * its own parameters.
 */
#include "device/cuda/net.h"

#include "device/cuda/products.h"
#include "device/cuda/random.h"

struct scores {
    const float *out, *intercepts; /* out [n] of the last layer */
    float *scores;
    uint64_t n, outputs;
};

static __global__ void put_scores(struct scores a)
{
    const uint64_t i = net_thread();
    if (i < a.n) a.scores[i] = a.intercepts[i % a.outputs] + a.out[i];
}

struct rows {
    const float *row; /* [width]; NULL: zeros */
    float *to;
    uint64_t n, width;
};

static __global__ void put_rows(struct rows a)
{
    const uint64_t i = net_thread();
    if (i < a.n) a.to[i] = a.row ? a.row[i % a.width] : 0.0f;
}

/* What dropout leaves out follows from the net's last parameters, which differ from step to step:
 * whole numbers, whose sum has no order. */
enum { SEED_FLOATS = 16 << 10 };

struct seeding {
    const float *params;
    uint64_t n, seed, *out;
};

static __global__ void make_seed(struct seeding a)
{
    __shared__ uint64_t sums[THREADS];
    uint64_t sum = 0;
    for (uint64_t i = threadIdx.x; i < a.n; i += THREADS) {
        uint32_t bits;
        memcpy(&bits, &a.params[i], sizeof(bits));
        sum += mix64(bits + (i << 32));
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x) return;
    for (uint32_t i = 1; i < THREADS; i++)
        sum += sums[i];
    *a.out = mix64(sum ^ a.seed);
}

/* Steps the net's own parameters. */
struct own_step {
    struct step s;
    const float *grads;
    uint64_t n;
};

static __global__ void step_own(struct own_step a)
{
    const uint64_t i = net_thread();
    const uint32_t dim = a.s.is.model.dim;
    if (i < a.n) step_float(&a.s, (uint32_t)(i / dim), (uint32_t)(i % dim), a.grads[i], 0, 1);
}

/* ---- On the host ---- */

int net_fill(const struct net *net, uint64_t n, uint32_t width, const float *row, float *to)
{
    const struct rows a = {row, to, n * width, width};
    return device_launch(net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, put_rows, a,
                         device_blocks(a.n, THREADS), THREADS, net->why);
}

/* Floats that layer i keeps for a sample, besides its own. */
static uint64_t kept_of(const struct drps_device_layer *layers, uint32_t i)
{
    return layers[i].kind == DRPS_DEVICE_POOL   ? net_width(&layers[i])
           : layers[i].kind == DRPS_DEVICE_LSTM ? net_lstm_kept(layers, i)
                                                : 0;
}

void *net_kept(const struct net *net, uint32_t i)
{
    float *at = net->step->net.kept;
    for (uint32_t k = 0; k < i; k++)
        at += kept_of(net->layers, k) * net->step->is.batch.samples;
    return at;
}

size_t net_room(struct net_room *room, const struct drps_device_model *model, void *base,
                size_t samples)
{
    const size_t own = (size_t)model->common * model->dim, floats = model->width * samples;
    size_t kept = 0;
    for (uint32_t i = 0; i < model->n_layers; i++)
        kept += kept_of(model->layers, i) * samples;
    room->workspace = (char *)base + (PRODUCTS_ALIGN - (uintptr_t)base % PRODUCTS_ALIGN);
    float *at = (float *)((char *)room->workspace + PRODUCTS_WORKSPACE);
    room->seed = (uint64_t *)at;
    room->params = at + 4;
    room->grads = room->params + own;
    room->outs = room->grads + own;
    room->slopes = room->outs + floats;
    room->dots = room->slopes + floats;
    room->kept = room->dots + samples;
    room->rows = room->kept + kept;
    return PRODUCTS_ALIGN + PRODUCTS_WORKSPACE +
           (4 + 2 * own + 2 * floats + samples + kept + net_conv_room(model, samples)) *
               sizeof(float);
}

static int has_dropout(const struct net *net)
{
    for (uint32_t i = 0; i < net->step->is.model.n_layers; i++)
        if (net->layers[i].kind == DRPS_DEVICE_DROPOUT) return 1;
    return 0;
}

static int put_all_scores(const struct net *net)
{
    const struct step *s = net->step;
    const struct drps_device_model *m = &s->is.model;
    const uint64_t n = (uint64_t)s->is.batch.samples * m->outputs;
    const struct scores a = {net_out(net, m->n_layers - 1), s->net.params, s->scores, n,
                             m->outputs};
    return device_launch(net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, put_scores, a,
                         device_blocks(n, THREADS), THREADS, net->why);
}

int net_forward(const struct net *net)
{
    const struct step *s = net->step;
    const struct drps_device_model *m = &s->is.model;
    const uint64_t most = SEED_FLOATS, seeds = m->floats < most ? m->floats : most;
    const struct seeding seeding = {s->net.params + m->floats - seeds, seeds, m->seed, s->net.seed};
    int rc = products_open(net->dev, s->net.workspace, net->why);
    if (rc == 0)
        rc = device_gather(net->dev, DRPS_DEVICE_COMPUTE, &s->is.rows, s->is.frames, m->common,
                           m->dim * sizeof(float), s->net.params, net->why);
    if (rc == 0 && s->trains && has_dropout(net))
        rc = device_launch(net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, make_seed, seeding, 1,
                           THREADS, net->why);
    for (uint32_t i = 0; i < m->n_layers && rc == 0; i++)
        rc = net_layer(net, i);
    return rc < 0 ? rc : put_all_scores(net);
}

static int step_rows(const struct net *net)
{
    struct net_rows rows = {};
    rows.s = *net->step;
    for (uint32_t i = 0; i < net->step->is.model.n_layers; i++) {
        const struct drps_device_layer *y = &net->layers[i];
        if (y->kind != DRPS_DEVICE_EMBEDDING && y->kind != DRPS_DEVICE_BAG &&
            y->kind != DRPS_DEVICE_WEIGHTS)
            continue;
        rows.layers[rows.n].kind = y->kind;
        rows.layers[rows.n].parts = y->parts;
        rows.layers[rows.n].each = y->each;
        rows.layers[rows.n++].slopes = net_slope(net, i);
    }
    return net_step_rows(net->dev, &rows, net->why);
}

static int step_params(const struct net *net)
{
    const uint64_t n = net->step->is.model.floats;
    const struct own_step own = {*net->step, net->step->net.grads, n};
    return device_launch(net->dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_LAYER, step_own, own,
                         device_blocks(n, THREADS), THREADS, net->why);
}

int net_backward(const struct net *net)
{
    const struct step *s = net->step;
    const struct drps_device_model *m = &s->is.model;
    float *last = net_slope(net, m->n_layers - 1);
    int rc = net_fill(net, s->is.batch.samples, m->width, NULL, s->net.slopes);
    if (rc == 0) rc = net_losses(net->dev, s, last, net->why);
    if (rc == 0)
        rc = net_sum_samples(net->dev, s->is.batch.samples, m->outputs, last, NULL, s->net.grads,
                             net->why);
    for (uint32_t i = m->n_layers; i-- > 0 && rc == 0;)
        rc = net_layer_back(net, i);
    if (rc == 0) rc = step_rows(net);
    return rc < 0 ? rc : step_params(net);
}
