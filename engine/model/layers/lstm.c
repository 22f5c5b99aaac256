/*
 * A layer `lstm`: gates s = W a + U h + b, of which W a + b is one product for all samples, and U h
 * one for each step. Both passes keep their numbers in the order of time (drps_layers_steps.h), so
 * that a step is a matrix without gaps, and what it reads of the step before are the first rows of
 * that.
 *
 * The backward pass puts the loss's derivatives by s in place of the gates.
 */
#include "engine/model/layers/lstm.h"

#include <assert.h>
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/layers/activations.h"
#include "engine/model/layers/drps_layers_steps.h"
#include "engine/model/layers/gemm.h"
#include "engine/model/layers/vectors.h"

/* The rows of s. */
enum { IN, FORGET, OUT, NEW, GATES };

/* What the passes keep, a row for each sample in the order of time. */
struct room {
    size_t w, N;   /* floats of a and of h */
    float *a;      /* [n][w]; backward: slopes of a */
    float *gates;  /* [n][4][N]: sigmoid(s), and tanh(s) of new ones; backward: slopes of s */
    float *c, *h;  /* [n][N] */
    float *before; /* [n][N]: h of the sample before; 0 where a sequence begins */
    float *of_h;   /* [n][N]: slopes of h */
    float *of_c;   /* [first step's][N]: slopes of c that the step after leaves */
    const float *W, *U, *b;
};

static struct room room_of(const struct pass *p, const struct drps_layer *y)
{
    const size_t w = width_of(input_of(p, y, 0)), N = width_of(y), n = p->n;
    struct room r = {.w = w, .N = N, .a = kept_of(p, y)};
    r.gates = r.a + n * w;
    r.c = r.gates + n * GATES * N;
    r.h = r.c + n * N;
    r.before = r.h + n * N;
    r.of_h = r.before + n * N;
    r.of_c = r.of_h + n * N;
    r.W = p->params + y->first;
    r.U = r.W + GATES * N * w;
    r.b = r.U + GATES * N * N;
    return r;
}

/* Rows of samples to their places, or back. */
static void to_places(const struct drps_layers_steps *s, size_t n, size_t width,
                      const float *of_samples, float *of_places)
{
    for (size_t i = 0; i < n; i++)
        memcpy(of_places + i * width, of_samples + s->sample[i] * width, width * sizeof(float));
}

static void to_samples(const struct drps_layers_steps *s, size_t n, size_t width,
                       const float *of_places, float *of_samples)
{
    for (size_t i = 0; i < n; i++)
        memcpy(of_samples + s->sample[i] * width, of_places + i * width, width * sizeof(float));
}

DRPS_INLINE void sigmoids(size_t N, float shift, float *restrict s)
{
    for (size_t k = 0; k < N; k++)
        s[k] = sigmoid_of(s[k] + shift);
}

DRPS_INLINE void tangents(size_t N, float *restrict s)
{
    for (size_t k = 0; k < N; k++)
        s[k] = tanh_of(s[k]);
}

DRPS_INLINE void products(size_t N, const float *restrict a, const float *restrict b,
                          float *restrict out)
{
    for (size_t k = 0; k < N; k++)
        out[k] = a[k] * b[k];
}

DRPS_INLINE void add_products(size_t N, const float *restrict a, const float *restrict b,
                              float *restrict out)
{
    for (size_t k = 0; k < N; k++)
        out[k] += a[k] * b[k];
}

DRPS_INLINE void show(size_t N, const float *restrict out, const float *restrict c,
                      float *restrict h)
{
    for (size_t k = 0; k < N; k++)
        h[k] = out[k] * tanh_of(c[k]);
}

/* c and h of one sample from s, which becomes its gates. `c_before` is NULL where a sequence
 * begins. */
DRPS_INLINE void sample_forward(size_t N, float *gates, const float *c_before, float *c, float *h)
{
    sigmoids(N, 0, gates + IN * N);
    sigmoids(N, 1, gates + FORGET * N);
    sigmoids(N, 0, gates + OUT * N);
    tangents(N, gates + NEW * N);
    products(N, gates + IN * N, gates + NEW * N, c);
    if (c_before) add_products(N, gates + FORGET * N, c_before, c);
    show(N, gates + OUT * N, c, h);
}

DRPS_INLINE void slopes(size_t N, float *restrict in, float *restrict forget, float *restrict out,
                        float *restrict new, const float *restrict c_before,
                        const float *restrict c, const float *restrict of_h, float *restrict of_c)
{
    for (size_t k = 0; k < N; k++) {
        const float i = in[k], f = forget[k], o = out[k], g = new[k], t = tanh_of(c[k]);
        const float slope = of_c[k] + of_h[k] * o * (1 - t * t);
        in[k] = slope * g * i * (1 - i);
        forget[k] = slope * c_before[k] * f * (1 - f);
        out[k] = of_h[k] * t * o * (1 - o);
        new[k] = slope *i *(1 - g * g);
        of_c[k] = slope * f;
    }
}

/* The loss's derivatives by s, in place of the gates, from those by h and, of the step after, by c,
 * which becomes that of the sample before. */
DRPS_INLINE void sample_backward(size_t N, float *gates, const float *c_before, const float *c,
                                 const float *of_h, float *of_c)
{
    slopes(N, gates + IN * N, gates + FORGET * N, gates + OUT * N, gates + NEW * N,
           c_before ? c_before : c, c, of_h, of_c);
    if (!c_before) memset(gates + FORGET * N, 0, N * sizeof(*gates));
}

static void step_forward(const struct room *r, const struct drps_layers_steps *s, size_t t)
{
    const size_t N = r->N, from = s->first[t], n = drps_layers_step_size(s, t);
    const size_t before = t ? s->first[t - 1] : 0;
    if (t)
        drps_layers_product(n, N, GATES * N, r->h + before * N, r->U, r->gates + from * GATES * N);
    for (size_t i = 0; i < n; i++) {
        float *gates = r->gates + (from + i) * GATES * N;
        float *c = r->c + (from + i) * N, *h = r->h + (from + i) * N;
        if (t)
            sample_forward(N, gates, r->c + (before + i) * N, c, h);
        else
            sample_forward(N, gates, NULL, c, h);
    }
}

static void step_backward(const struct room *r, const struct drps_layers_steps *s, size_t t)
{
    const size_t N = r->N, from = s->first[t], n = drps_layers_step_size(s, t);
    const size_t before = t ? s->first[t - 1] : 0;
    for (size_t i = 0; i < n; i++) {
        float *gates = r->gates + (from + i) * GATES * N;
        const float *c = r->c + (from + i) * N, *of_h = r->of_h + (from + i) * N;
        if (t)
            sample_backward(N, gates, r->c + (before + i) * N, c, of_h, r->of_c + i * N);
        else
            sample_backward(N, gates, NULL, c, of_h, r->of_c + i * N);
    }
    if (t)
        drps_layers_product_back(n, N, GATES * N, r->gates + from * GATES * N, r->U,
                                 r->of_h + before * N);
}

static void forward(const struct pass *p, const struct drps_layer *y)
{
    const struct room r = room_of(p, y);
    uint32_t places[DRPS_LAYERS_STEPS_WORDS(DRPS_SEQUENCE_MOST)];
    struct drps_layers_steps s;
    assert(p->n <= DRPS_SEQUENCE_MOST);
    drps_layers_steps_of(p->b, p->first, p->n, places, &s);
    to_places(&s, p->n, r.w, out_of(p, input_of(p, y, 0)), r.a);
    for (size_t i = 0; i < p->n; i++)
        memcpy(r.gates + i * GATES * r.N, r.b, GATES * r.N * sizeof(float));
    drps_layers_product(p->n, r.w, GATES * r.N, r.a, r.W, r.gates);
    for (size_t t = 0; t < s.n; t++)
        step_forward(&r, &s, t);
    to_samples(&s, p->n, r.N, r.h, out_of(p, y));
}

/* Copies for each sample what h was before it. */
static void gather_before(const struct room *r, const struct drps_layers_steps *s)
{
    float *to = r->before;
    memset(to, 0, s->first[1] * r->N * sizeof(*to));
    for (size_t t = 1; t < s->n; t++) {
        to = r->before + s->first[t] * r->N;
        memcpy(to, r->h + s->first[t - 1] * r->N, drps_layers_step_size(s, t) * r->N * sizeof(*to));
    }
}

/* Adds the gradient of W, U and b, from the derivatives by s. */
static void add_parameters(const struct pass *p, const struct drps_layer *y, const struct room *r,
                           const struct drps_layers_steps *s,
                           const struct drps_layers_vectors *kept, float *grads)
{
    const size_t rows = GATES * r->N;
    const struct chunk_vectors v = {r->a, r->before, r->gates};
    float *of_b = grads + y->first + rows * (r->w + r->N);
    gather_before(r, s);
    drps_layers_take_vectors(p, y, &v, kept, grads);
    for (size_t i = 0; i < p->n; i++)
        add_scaled(rows, 1, r->gates + i * rows, of_b);
}

/* Adds the slopes of a, which is not needed any more, to those of the input. */
static void add_input(const struct pass *p, const struct drps_layer *y, const struct room *r,
                      const struct drps_layers_steps *s)
{
    float *slopes = slope_of(p, input_of(p, y, 0));
    memset(r->a, 0, p->n * r->w * sizeof(float));
    drps_layers_product_back(p->n, r->w, GATES * r->N, r->gates, r->W, r->a);
    for (size_t i = 0; i < p->n; i++)
        add_scaled(r->w, 1, r->a + i * r->w, slopes + s->sample[i] * r->w);
}

static void backward(const struct pass *p, const struct drps_layer *y,
                     const struct drps_layers_vectors *kept, float *grads)
{
    const struct room r = room_of(p, y);
    uint32_t places[DRPS_LAYERS_STEPS_WORDS(DRPS_SEQUENCE_MOST)];
    struct drps_layers_steps s;
    assert(p->n <= DRPS_SEQUENCE_MOST);
    drps_layers_steps_of(p->b, p->first, p->n, places, &s);
    to_places(&s, p->n, r.N, slope_of(p, y), r.of_h);
    memset(r.of_c, 0, drps_layers_step_size(&s, 0) * r.N * sizeof(float));
    for (size_t t = s.n; t-- > 0;)
        step_backward(&r, &s, t);
    add_parameters(p, y, &r, &s, kept, grads);
    add_input(p, y, &r, &s);
}

DRPS_KERNEL(void, drps_lstm_forward, (const struct pass *p, const struct drps_layer *y), (p, y))
{
    forward(p, y);
}

DRPS_KERNEL(void, drps_lstm_backward,
            (const struct pass *p, const struct drps_layer *y,
             const struct drps_layers_vectors *kept, float *grads),
            (p, y, kept, grads))
{
    backward(p, y, kept, grads);
}
