/*
 * The twin of the forward pass: one sample after another of a sequence, layer after layer, each as
 * index/layers/drps_layers.h has it, in double.
 */
#include <math.h>
#include <stdlib.h>

#include "engine/model/layers/drps_layers_pass.h"

/* One sample's floats of all layers, as far as they are known. */
struct sample {
    const struct drps_layers *l;
    const struct drps_batch *b;
    const float *params;
    size_t number;     /* in the batch */
    size_t begin, end; /* its entries */
    int begins;        /* a sequence, as far as the twin knows */
    /* [l->width] each: its floats, and of lstm c; and those of the sample before. */
    double *floats, *c, *before, *c_before;
};

static const struct drps_layer *input(const struct sample *x, const struct drps_layer *y, size_t i)
{
    return &x->l->layers[y->input[i]];
}

/* Returns float k of part i of a layer. */
static double of_part(const struct sample *x, const struct drps_layer *y, size_t i, size_t k)
{
    return x->floats[y->at + i * y->each + k];
}

static double param(const struct sample *x, const struct drps_layer *y, size_t i)
{
    return (double)x->params[y->first + i];
}

/* Returns the sum of x times float k of rows, over entries of a field, or of all (-1). */
static double of_entries(const struct sample *x, long field, size_t k)
{
    double total = 0;
    for (size_t j = x->begin; j < x->end; j++) {
        const size_t at = drps_batch_local(x->b, j) * (1 + (size_t)x->l->factors) + k;
        if (field >= 0 && field != (x->b->fields ? x->b->fields[j] : 0)) continue;
        total += (double)drps_batch_value(x->b, j) * (double)x->params[at];
    }
    return total;
}

static double number(const struct sample *x, long field)
{
    const struct drps_dense *d = &x->b->numbers;
    double total = 0;
    if (d->each) return (double)drps_dense_number(d, x->number * d->each + (size_t)field);
    for (size_t j = x->begin; j < x->end; j++)
        if (field == (x->b->fields ? x->b->fields[j] : 0))
            total += (double)drps_batch_value(x->b, j);
    return total;
}

/* Returns float i of W a + b. */
static double full(const struct sample *x, const struct drps_layer *y, size_t i)
{
    const struct drps_layer *a = input(x, y, 0);
    const size_t width = (size_t)a->parts * a->each;
    double total = param(x, y, y->parts * y->each * width + i);
    for (size_t k = 0; k < width; k++)
        total += param(x, y, i * width + k) * x->floats[a->at + k];
    return total;
}

/* Returns the number of channel `channel` in a row and a column of an image, or 0 outside of it. */
static double pixel(const struct sample *x, const struct drps_layer *a, long row, long column,
                    size_t channel)
{
    if (row < 0 || row >= (long)a->rows || column < 0 || column >= (long)a->columns) return 0;
    return of_part(x, a, (size_t)row * a->columns + (size_t)column, channel);
}

/* Returns float i of an image: channel i % N of the pixel that all filters see together. */
static double conv(const struct sample *x, const struct drps_layer *y, size_t i)
{
    const struct drps_layer *a = input(x, y, 0);
    const size_t n = i % y->each, K = y->kernel, C = a->each;
    const long row = (long)(i / y->each / y->columns * y->step) - (long)y->border;
    const long column = (long)(i / y->each % y->columns * y->step) - (long)y->border;
    double total = param(x, y, y->each * K * K * C + n);
    for (size_t ky = 0; ky < K; ky++)
        for (size_t kx = 0; kx < K; kx++)
            for (size_t c = 0; c < C; c++)
                total += param(x, y, ((n * K + ky) * K + kx) * C + c) *
                         pixel(x, a, row + (long)ky, column + (long)kx, c);
    return total;
}

static double pool(const struct sample *x, const struct drps_layer *y, size_t i)
{
    const struct drps_layer *a = input(x, y, 0);
    const size_t row = i / y->each / y->columns * y->step,
                 column = i / y->each % y->columns * y->step;
    double most = -INFINITY;
    for (size_t ky = 0; ky < y->kernel; ky++)
        for (size_t kx = 0; kx < y->kernel; kx++)
            most = fmax(most, pixel(x, a, (long)(row + ky), (long)(column + kx), i % y->each));
    return most;
}

static double cross(const struct sample *x, const struct drps_layer *y, size_t i)
{
    const struct drps_layer *a = input(x, y, 0), *b = input(x, y, 1);
    const size_t width = (size_t)b->parts * b->each;
    double dot = 0;
    for (size_t k = 0; k < width; k++)
        dot += param(x, y, k) * x->floats[b->at + k];
    return x->floats[a->at + i] * dot + param(x, y, width + i) + x->floats[b->at + i];
}

/* Returns the inner product of part i of layer a and part j of layer b. */
static double inner(const struct sample *x, const struct drps_layer *a, size_t i,
                    const struct drps_layer *b, size_t j)
{
    double total = 0;
    for (size_t k = 0; k < a->each; k++)
        total += of_part(x, a, i, k) * of_part(x, b, j, k);
    return total;
}

static double fm(const struct sample *x, const struct drps_layer *y)
{
    const struct drps_layer *a = input(x, y, 0);
    double total = 0;
    for (size_t i = 0; i < a->parts; i++)
        for (size_t j = i + 1; j < a->parts; j++)
            total += inner(x, a, i, a, j);
    return total;
}

/* Returns the layer that has part *i of all inputs of y; *i becomes its number in that layer. */
static const struct drps_layer *part(const struct sample *x, const struct drps_layer *y, size_t *i)
{
    size_t n = 0;
    while (*i >= input(x, y, n)->parts)
        *i -= input(x, y, n++)->parts;
    return input(x, y, n);
}

/* Pairs (0, 1), (0, 2), and so on, then (1, 2): returns the inner product of pair `pair`. */
static double dot(const struct sample *x, const struct drps_layer *y, size_t pair)
{
    size_t parts = 0, i = 0;
    for (size_t n = 0; n < y->inputs_n; n++)
        parts += input(x, y, n)->parts;
    for (; pair >= parts - 1 - i; i++)
        pair -= parts - 1 - i;
    size_t j = i + 1 + pair;
    const struct drps_layer *a = part(x, y, &i), *b = part(x, y, &j);
    return inner(x, a, i, b, j);
}

static double sum(const struct sample *x, const struct drps_layer *y, size_t i)
{
    double total = 0;
    for (size_t n = 0; n < y->inputs_n; n++)
        total += x->floats[input(x, y, n)->at + i];
    return total;
}

static double join(const struct sample *x, const struct drps_layer *y, size_t i)
{
    size_t n = 0;
    for (; i >= (size_t)input(x, y, n)->parts * input(x, y, n)->each; n++)
        i -= (size_t)input(x, y, n)->parts * input(x, y, n)->each;
    return x->floats[input(x, y, n)->at + i];
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Returns float i of gate `gate` (in, forget, out, new) before its function. */
static double gate(const struct sample *x, const struct drps_layer *y, size_t gate, size_t i)
{
    const struct drps_layer *a = input(x, y, 0);
    const size_t width = (size_t)a->parts * a->each, N = y->each, row = gate * N + i;
    const size_t U = 4 * N * width, b = U + 4 * N * N;
    double total = param(x, y, b + row);
    for (size_t k = 0; k < width; k++)
        total += param(x, y, row * width + k) * x->floats[a->at + k];
    for (size_t k = 0; k < N && !x->begins; k++)
        total += param(x, y, U + row * N + k) * x->before[y->at + k];
    return total;
}

static double lstm(const struct sample *x, const struct drps_layer *y, size_t i)
{
    const double c = x->begins ? 0 : x->c_before[y->at + i];
    x->c[y->at + i] =
        sigmoid(gate(x, y, 1, i) + 1) * c + sigmoid(gate(x, y, 0, i)) * tanh(gate(x, y, 3, i));
    return sigmoid(gate(x, y, 2, i)) * tanh(x->c[y->at + i]);
}

/* Returns float i of the first input. */
static double of_input(const struct sample *x, const struct drps_layer *y, size_t i)
{
    return x->floats[input(x, y, 0)->at + i];
}

/* Returns float i of a layer. */
static double value(const struct sample *x, const struct drps_layer *y, size_t i)
{
    switch (y->kind) {
    case DRPS_LAYER_EMBEDDING:
        return of_entries(x, (long)(i / y->each), 1 + i % y->each);
    case DRPS_LAYER_BAG:
        return of_entries(x, -1, 1 + i) + (double)x->params[y->first + i];
    case DRPS_LAYER_LINEAR:
        return of_entries(x, -1, 0);
    case DRPS_LAYER_NUMBERS:
        return number(x, (long)i);
    case DRPS_LAYER_IMAGE:
        return number(x, (long)(i % y->each * y->parts + i / y->each));
    case DRPS_LAYER_CONV:
        return conv(x, y, i);
    case DRPS_LAYER_POOL:
        return pool(x, y, i);
    case DRPS_LAYER_FULL:
        return full(x, y, i);
    case DRPS_LAYER_RELU:
        return of_input(x, y, i) < 0 ? 0 : of_input(x, y, i);
    case DRPS_LAYER_SIGMOID:
        return sigmoid(of_input(x, y, i));
    case DRPS_LAYER_TANH:
        return tanh(of_input(x, y, i));
    case DRPS_LAYER_DROPOUT:
        return of_input(x, y, i);
    case DRPS_LAYER_FM:
        return fm(x, y);
    case DRPS_LAYER_DOTS:
        return dot(x, y, i);
    case DRPS_LAYER_CROSS:
        return cross(x, y, i);
    case DRPS_LAYER_SUM:
        return sum(x, y, i);
    case DRPS_LAYER_JOIN:
        return join(x, y, i);
    case DRPS_LAYER_LSTM:
        return lstm(x, y, i);
    }
    return NAN;
}

/* Whether a sample begins a sequence. */
static int begins(const struct drps_batch *b, size_t s)
{
    const size_t entry = drps_batch_start(b, s);
    return !b->fields || entry == drps_batch_start(b, s + 1) || b->fields[entry] == 0;
}

/* Fills in the floats of sample s; those of the sample before are in x. */
static void compute(struct sample *x, size_t s)
{
    double *floats = x->before, *c = x->c_before;
    x->before = x->floats;
    x->c_before = x->c;
    x->floats = floats;
    x->c = c;
    x->number = s;
    x->begin = drps_batch_start(x->b, s);
    x->end = drps_batch_start(x->b, s + 1);
    for (size_t k = 0; k < x->l->n; k++) {
        const struct drps_layer *y = &x->l->layers[k];
        for (size_t i = 0; i < (size_t)y->parts * y->each; i++)
            x->floats[y->at + i] = value(x, y, i);
    }
    x->begins = 0;
}

/* NaN where there is no memory. */
double drps_layers_score_ref(const struct drps_layers *l, const struct drps_batch *b, size_t s,
                             size_t c, const float *params)
{
    double *room = malloc(4 * (size_t)l->width * sizeof(*room)), score = NAN;
    size_t first = s;
    if (!room) return NAN;
    while (l->has_sequences && first && !begins(b, first))
        first--;
    struct sample x = {.l = l,
                       .b = b,
                       .params = params,
                       .begins = 1,
                       .floats = room,
                       .c = room + l->width,
                       .before = room + 2 * (size_t)l->width,
                       .c_before = room + 3 * (size_t)l->width};
    for (; first <= s; first++)
        compute(&x, first);
    score = (double)params[c] + x.floats[l->layers[l->n - 1].at + c];
    free(room);
    return score;
}
