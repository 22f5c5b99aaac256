/*
 * The passes of nets: scores against the twin, the twin and gradients against numbers worked out by
 * hand, gradients against finite differences, what must not depend on chunks, and dropout.
 *
 *   test_layers_pass [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "base/kernel/drps_level.h"
#include "engine/model/layers/drps_layers_pass.h"
#include "engine/model/layers/gemm.h"

static uint64_t seed = 20250711;
static uint64_t counter;

static double uniform(double low, double high)
{
    return low + (high - low) * drps_unit_double(drps_rng_at(seed, counter++));
}

static size_t below(size_t n)
{
    return (size_t)(drps_rng_at(seed, counter++) % n);
}

static void *must(void *p)
{
    assert_non_null(p);
    return p;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- Nets ---- */

/* All kinds of layers, and inputs that several layers share, or one layer twice. */
static const struct net {
    const char *name, *text;
    uint32_t fields, outputs;
} nets[] = {
    {"linear", "score = linear", 0, 1},
    {"fm",
     "x = embedding 4\nfirst = linear\npairs = fm x\n"
     "score = sum first pairs",
     4, 1},
    {"deepfm",
     "x = embedding 3\nfirst = linear\npairs = fm x\nh = full 9 x\nh = relu h\n"
     "h = full 6 h\nh = relu h\ndeep = full 1 h\nscore = sum first pairs deep",
     5, 1},
    {"16 factors", "x = embedding 16\npairs = fm x\nd = dots x\nd = full 1 d\nscore = sum pairs d",
     4, 1},
    {"19 factors",
     "x = embedding 19\npairs = fm x\nb = bag 19\nd = dots b x\nd = full 1 d\n"
     "score = sum pairs d",
     3, 1},
    {"one factor", "x = embedding 1\nscore = fm x", 6, 1},
    {"bag", "x = bag 5\nh = full 7 x\nh = sigmoid h\nh = full 6 h\nh = tanh h\nscore = full 1 h", 0,
     1},
    {"bag of classes",
     "x = bag 5\nh = full 7 x\nh = sigmoid h\ng = full 7 h\ng = tanh g\n"
     "h = sum g h\nscore = full classes h",
     0, 3},
    {"dlrm",
     "x = embedding 4\nn = numbers 3\nh = full 5 n\nh = relu h\nh = full 4 h\n"
     "d = dots h x\nz = join d h\nz = full 8 z\nz = tanh z\nscore = full 1 z",
     4, 1},
    {"dcn of classes",
     "x = embedding 3\nc = cross x x\nc = cross x c\nc = cross x c\nh = full 6 x\n"
     "h = relu h\nh = join c h\nscore = full classes h",
     4, 3},
    {"inputs that are there twice",
     "x = embedding 4\nh = sum x x\nd = dots x x h\nj = join d x d\ng = full 6 j\ng = tanh g\n"
     "c = cross g g\nscore = full 1 c",
     3, 1},
    {"an input of many",
     "x = embedding 4\na = fm x\nb = dots x\nc = cross x x\nd = relu x\ne = sigmoid x\n"
     "f = tanh x\ng = dropout 0.5 x\ns = sum c d e f g x\np = fm s\nj = join a b s p x\n"
     "score = full classes j",
     3, 3},
    {"cross of other shapes",
     "x = embedding 4\nh = full 12 x\nh = tanh h\na = cross x h\nb = cross h x\n"
     "p = fm b\nq = full 1 a\nscore = sum p q",
     3, 1},
    {"numbers of few fields",
     "n = numbers 2\nm = relu n\nf = linear\nh = join n m f\n"
     "score = full classes h",
     5, 3},
    {"dropout that is off",
     "x = embedding 4\nh = dropout 0.3 x\np = fm h\nh = full 20 h\nh = relu h\n"
     "h = dropout 0.7 h\nh = full 1 h\nscore = sum p h",
     4, 1},
    {"linear of classes", "a = linear\nb = bag 2\nscore = join a b", 0, 3},
    {"lstm", "x = bag 5\nh = lstm 4 x\nscore = full 1 h", 0, 1},
    {"lstm of lstm",
     "x = bag 3\ng = lstm 6 x\nh = dropout 0.5 g\nh = lstm 5 h\nh = join g h x\n"
     "score = full classes h",
     0, 3},
    {"images",
     "x = image 2 5 6\nh = conv 4 3 1 1 x\nh = relu h\nh = pool 2 2 h\nh = conv 5 2 1 1 h\n"
     "h = tanh h\nh = pool 2 1 h\nh = full 6 h\nh = tanh h\nscore = full 1 h",
     65, 1},
    {"images of classes, steps and borders",
     "x = image 3 4 5\na = conv 2 3 2 2 x\nb = conv 2 4 2 2 x\nc = conv 2 2 2 0 x\n"
     "c = conv 2 1 1 0 c\nc = pool 1 1 c\nd = pool 2 1 x\nd = conv 1 2 1 0 d\n"
     "j = join a b c d x\nscore = full classes j",
     60, 3},
    {"an image that is read twice",
     "x = image 1 6 6\ny = linear\nh = conv 3 3 1 1 x\ns = sum h h\ng = conv 3 3 1 1 s\n"
     "s = sum g h\ns = dropout 0.5 s\np = pool 3 2 s\np = full 1 p\nscore = sum p y",
     36, 1},
    {"more rows than are made at a time",
     "x = image 1 26 26\nh = conv 2 7 1 3 x\nh = tanh h\nh = pool 3 3 h\nscore = full 1 h", 676, 1},
    {"many channels", "x = image 1 3 3\nh = conv 70 2 1 0 x\nh = pool 2 1 h\nscore = full 1 h", 9,
     1},
    {"wide",
     "x = embedding 8\nh = full 70 x\nh = tanh h\nh = full 33 h\nh = tanh h\n"
     "score = full classes h",
     9, 3},
};

enum { NETS = sizeof(nets) / sizeof(nets[0]) };

static struct drps_layers layers_of(const char *text, uint32_t fields, uint32_t outputs)
{
    struct drps_layers l;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_layers_parse(&l, text, &err) || drps_layers_shape(&l, fields, outputs, &err))
        fail_msg("%s: %s", text, err.text);
    return l;
}

/* ---- Batches ---- */

/* How entries are laid out; every combination is a case. */
enum { WIDE = 1, VALUED = 2, STARTS = 4, FORMS = 8 };

enum { FEATURES = 9, ENTRIES = 6 };

/* A net, a batch for it that owns its arrays, parameters and gradients. The last feature has no
 * entry. What no pass may read is NaN. */
struct set {
    struct drps_layers l;
    struct drps_batch b;
    uint32_t *starts, *local32;
    uint16_t *local16, *fields;
    float *values;
    size_t dim, own, floats; /* D; rows of the net; floats of all rows */
    float *params, *grads, *scores, *slopes;
    void *scratch;
    const struct drps_layers_vectors *vectors; /* where gradients leave some; NULL: nowhere */
};

/* Entries with rows and fields that may be those of other entries of the sample, too. With STARTS
 * their number differs, and sample 0 has none. */
static void make_entries(struct set *t, size_t n, unsigned form)
{
    const size_t most = n * ENTRIES + 1;
    size_t nnz = 0;
    t->starts = must(malloc((n + 1) * sizeof(*t->starts)));
    t->local32 = must(malloc(most * sizeof(*t->local32)));
    t->local16 = must(malloc(most * sizeof(*t->local16)));
    t->fields = must(malloc(most * sizeof(*t->fields)));
    t->values = must(malloc(most * sizeof(*t->values)));
    for (size_t s = 0; s < n; s++) {
        const size_t count = !(form & STARTS) ? ENTRIES : s ? below(ENTRIES + 1) : 0;
        t->starts[s] = (uint32_t)nnz;
        for (size_t e = 0; e < count; e++, nnz++) {
            t->local32[nnz] = (uint32_t)(t->own + below(FEATURES - 1));
            t->local16[nnz] = (uint16_t)t->local32[nnz];
            t->fields[nnz] =
                (uint16_t)(t->l.has_sequences ? below(4) > 0 : below(larger(t->l.fields, 1)));
            t->values[nnz] = (float)uniform(-1, 1);
        }
    }
    t->starts[n] = (uint32_t)nnz;
    t->b = (struct drps_batch){
        .samples = n,
        .rows = t->own + FEATURES,
        .nnz = nnz,
        .starts = form & STARTS ? t->starts : NULL,
        .per_sample = ENTRIES,
        .local16 = form & WIDE ? NULL : t->local16,
        .local32 = form & WIDE ? t->local32 : NULL,
        .values = form & VALUED ? t->values : NULL,
        .fields = t->l.has_fields || t->l.has_sequences ? t->fields : NULL,
        .field_count = t->l.has_sequences ? DRPS_SEQUENCE_MARKS : t->l.fields,
    };
}

static void make_floats(struct set *t, size_t n)
{
    const size_t outputs = t->l.outputs, used = t->floats - t->dim;
    t->params = must(malloc(t->floats * sizeof(float)));
    t->grads = must(calloc(t->floats, sizeof(float)));
    t->scores = must(calloc(n * outputs, sizeof(float)));
    t->slopes = must(malloc(n * outputs * sizeof(float)));
    for (size_t i = 0; i < t->floats; i++)
        t->params[i] = i >= used || (i >= t->l.floats && i < t->own * t->dim)
                           ? NAN
                           : (float)uniform(-0.5, 0.5);
    for (size_t i = 0; i < n * outputs; i++)
        t->slopes[i] = (float)uniform(-1, 1);
    t->scratch = must(malloc(drps_layers_scratch_bytes(&t->l, n)));
}

static void make(struct set *t, const struct net *net, size_t n, unsigned form)
{
    memset(t, 0, sizeof(*t));
    t->l = layers_of(net->text, net->fields, net->outputs);
    t->dim = 1 + t->l.factors;
    t->own = ((size_t)t->l.floats + t->dim - 1) / t->dim;
    t->floats = (t->own + FEATURES) * t->dim;
    make_entries(t, n, form);
    make_floats(t, n);
}

static void drop(struct set *t)
{
    free(t->starts);
    free(t->local32);
    free(t->local16);
    free(t->fields);
    free(t->values);
    free(t->params);
    free(t->grads);
    free(t->scores);
    free(t->slopes);
    free(t->scratch);
}

static const struct drps_dropout off;

static void forward(struct set *t, const struct drps_dropout *dropout, size_t chunk)
{
    for (size_t s = 0, end; s < t->b.samples; s = end) {
        end = s + chunk < t->b.samples ? s + chunk : t->b.samples;
        end = drps_layers_cut(&t->l, &t->b, end);
        drps_layers_forward(&t->l, &t->b, s, end, t->params, dropout, t->scores, t->scratch);
    }
}

/* Both passes of samples [first, last), where a sequence begins. */
static void both(struct set *t, const struct drps_dropout *dropout, size_t first, size_t last)
{
    drps_layers_forward(&t->l, &t->b, first, last, t->params, dropout, t->scores, t->scratch);
    drps_layers_backward(&t->l, &t->b, first, last, t->slopes + first * t->l.outputs, t->params,
                         dropout, t->vectors, t->scratch, t->grads);
}

/* ---- Numbers worked out by hand ---- */

enum { BY_HAND = 18 };

/* One sample: 2 times the feature of the row after the net's, field 0, and -1 times the one after
 * it, field 1. The factors are 1, 2 and 3, -4, so that an embedding is 2, 4, -3, 4. */
static const struct by_hand {
    const char *text;
    uint32_t outputs;
    float params[BY_HAND], slopes[8], scores[8], grads[BY_HAND];
} by_hand[] = {
    {"score = linear", 1, {0.5f, 3, 4}, {2}, {2.5f}, {0, 4, -2}},
    {"a = linear\nscore = sum a a a", 1, {0.5f, 3, 4}, {2}, {6.5f}, {0, 12, -6}},
    {"a = linear\nscore = sigmoid a",
     1,
     {0, 0.5f, 0},
     {2},
     {0.731058579f},
     {0, 4 * 0.196611933f, -2 * 0.196611933f}},
    {"a = linear\nscore = tanh a",
     1,
     {0, 0.5f, 0},
     {2},
     {0.761594156f},
     {0, 4 * 0.419974342f, -2 * 0.419974342f}},
    {"x = embedding 2\nscore = fm x",
     1,
     {0.5f, 0, 0, 9, 1, 2, 9, 3, -4},
     {2},
     {10.5f},
     {0, 0, 0, 0, -12, 16, 0, -4, -8}},
    {"x = embedding 2\ny = bag 2\nscore = dots x y",
     3,
     {1, 2, 3, 0, 0, 0, 9, 1, 2, 9, 3, -4},
     {1, 10, 100},
     {11, 32, 38},
     {0, 0, 0, -280, 440, 0, 0, -586, 1048, 0, 378, -1244}},
    {"x = embedding 2\nh = relu x\nscore = join h x",
     8,
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 2, 9, 3, -4},
     {1, 1, 1, 1, 1, 1, 1, 1},
     {2, 4, 0, 4, 2, 4, -3, 4},
     {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 0, -1, -2}},
    {"n = numbers 2\nscore = full 2 n",
     2,
     {100, 200, 1, 2, 3, 4, 10, 20, 9, 9},
     {1, 3},
     {110, 222},
     {0, 0, 2, -1, 6, -3, 1, 3, 0, 0}},
    /* the image is 2, -1; with its border a filter of 2 x 2 sees 2 x 3 places of it */
    {"x = image 1 1 2\nscore = conv 1 2 1 1 x",
     6,
     {0, 0, 0, 0, 0, 100, 1, 10, 100, 1000, 0.5f},
     {1, 2, 3, 4, 5, 6},
     {2000.5f, -799.5f, -99.5f, 20.5f, -7.5f, 99.5f},
     {0, 0, 0, 0, 0, 0, 4, 3, 1, 0, 21}},
    {"x = image 1 1 2\nh = conv 2 1 1 0 x\nscore = pool 1 1 h",
     4,
     {0, 0, 0, 0, 1, 3, 0.5f, 0},
     {1, 10, 100, 1000},
     {2.5f, 6, -0.5f, -3},
     {0, 0, 0, 0, -98, -980, 101, 1010}},
    /* w = 1, 0, 1, 0.5; v = 0.5, 0, 0, 0 */
    {"x = embedding 2\nscore = cross x x",
     4,
     {0, 0, 0, 1, 1, 0, 1, 0.5f, 0.5f, 0, 0, 0, 9, 1, 2, 9, 3, -4},
     {1, 0, 0, 2},
     {4.5f, 8, -6, 9},
     {0, 0, 0, 0, 20, 40, -30, 40, 1, 0, 0, 2, 0, 24, 0, 0, -10, -9}},
    /* W = 0.5, 9, -0.5, 1; U is not used; b = -1, 0, 1, -1.5; s = 0, 18, 0, 0.5 */
    {"a = linear\nscore = lstm 1 a",
     1,
     {0.5f, 0.5f, 9, -0.5f, 1, 7, 7, 7, 7, -1, 0, 1, -1.5f, 3, 4},
     {2},
     {0.613516304f},
     {0, 0.21914894f, 0, 0.227032609f, 0.745911224f, 0, 0, 0, 0, 0.10957447f, 0, 0.113516304f,
      0.372955612f, 0.74196939f, -0.370984695f}},
};

static void check_by_hand(const char *what, const char *text, size_t i, float expected, float found)
{
    if (!(fabsf(expected - found) <= 1e-5f * (1 + fabsf(expected))))
        fail_msg("%s: %s[%zu] expected %.9g, found %.9g", text, what, i, (double)expected,
                 (double)found);
}

static void test_layers_numbers_by_hand(void **state)
{
    static const uint16_t fields[] = {0, 1};
    static const float values[] = {2, -1};
    (void)state;
    for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
        const struct by_hand *h = &by_hand[i];
        const struct drps_layers l = layers_of(h->text, 2, h->outputs);
        const uint16_t own = (uint16_t)((l.floats + l.factors) / (1 + l.factors));
        const uint16_t local[] = {own, (uint16_t)(own + 1)};
        const struct drps_batch b = {.samples = 1,
                                     .rows = own + 2u,
                                     .nnz = 2,
                                     .per_sample = 2,
                                     .local16 = local,
                                     .values = values,
                                     .fields = fields,
                                     .field_count = 2};
        float scores[8] = {0}, grads[BY_HAND] = {0};
        void *scratch = must(malloc(drps_layers_scratch_bytes(&l, 1)));
        drps_layers_forward(&l, &b, 0, 1, h->params, &off, scores, scratch);
        drps_layers_backward(&l, &b, 0, 1, h->slopes, h->params, &off, NULL, scratch, grads);
        for (size_t c = 0; c < h->outputs; c++) {
            const double twin = drps_layers_score_ref(&l, &b, 0, c, h->params);
            check_by_hand("score", h->text, c, h->scores[c], scores[c]);
            check_by_hand("the twin's score", h->text, c, h->scores[c], (float)twin);
        }
        for (size_t k = 0; k < BY_HAND; k++)
            check_by_hand("gradient", h->text, k, h->grads[k], grads[k]);
        free(scratch);
    }
}

/* ---- The twin and finite differences ---- */

/* Sums of floats have up to some hundred terms of size 1, each rounded by 2^-24. */
static void check_scores(const struct net *net, const struct set *t, unsigned form)
{
    const size_t outputs = t->l.outputs;
    for (size_t s = 0; s < t->b.samples; s++)
        for (size_t c = 0; c < outputs; c++) {
            const double expected = drps_layers_score_ref(&t->l, &t->b, s, c, t->params);
            const double found = (double)t->scores[s * outputs + c];
            if (!(fabs(expected - found) <= 1e-5 * fmax(1, fabs(expected))))
                fail_msg("%s, form %u, seed %llu: score %zu of sample %zu expected %.9g, found "
                         "%.9g",
                         net->name, form, (unsigned long long)seed, c, s, expected, found);
        }
}

static void test_layers_scores_match_the_twin(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++)
        for (unsigned form = 0; form < FORMS; form++) {
            struct set t;
            make(&t, &nets[i], 23, form);
            forward(&t, &off, 23);
            check_scores(&nets[i], &t, form);
            drop(&t);
        }
}

/* The sum of all scores, each times its slope: by the twin, or by the forward pass. */
static double weighed(struct set *t, const struct drps_dropout *dropout)
{
    const size_t outputs = t->l.outputs;
    double sum = 0;
    if (dropout->trains) forward(t, dropout, t->b.samples);
    for (size_t i = 0; i < t->b.samples * outputs; i++)
        sum += (double)t->slopes[i] *
               (dropout->trains
                    ? (double)t->scores[i]
                    : drps_layers_score_ref(&t->l, &t->b, i / outputs, i % outputs, t->params));
    return sum;
}

/* The derivative by parameter i, in differences of twice `step`, as far as floats have it. */
static double difference(struct set *t, const struct drps_dropout *dropout, size_t i, float step)
{
    const float kept = t->params[i];
    const float up = kept + step, down = kept - step;
    t->params[i] = up;
    const double above = weighed(t, dropout);
    t->params[i] = down;
    const double low = weighed(t, dropout);
    t->params[i] = kept;
    return (above - low) / ((double)up - (double)down);
}

/* Gradients of parameters [begin, end), which are of one kind: their errors are measured by the
 * largest of them. Of very many some hundred are compared. */
static void check_gradients(const struct net *net, struct set *t,
                            const struct drps_dropout *dropout, size_t begin, size_t end,
                            float step, double tolerance)
{
    const size_t stride = (end - begin) / 200 | 1;
    double *expected = must(malloc((end - begin + 1) * sizeof(double))), most = 0;
    for (size_t i = begin; i < end; i += stride) {
        expected[i - begin] = difference(t, dropout, i, step);
        most = fmax(most, fabs(expected[i - begin]));
    }
    for (size_t i = begin; i < end; i += stride)
        if (!(fabs(expected[i - begin] - (double)t->grads[i]) <= tolerance * (most + 0.01)))
            fail_msg("%s, seed %llu: gradient %zu of [%zu, %zu) expected %.9g, found %.9g, the "
                     "largest is %g",
                     net->name, (unsigned long long)seed, i, begin, end, expected[i - begin],
                     (double)t->grads[i], most);
    free(expected);
}

/* Checks the gradient by the parameters of each layer, then by those of features, but of the one
 * that no entry has. */
static void check_all_gradients(const struct net *net, struct set *t,
                                const struct drps_dropout *dropout, float step, double tolerance)
{
    for (size_t i = 0; i < t->l.n; i++) {
        const struct drps_layer *y = &t->l.layers[i];
        check_gradients(net, t, dropout, y->first, y->first + y->floats, step, tolerance);
    }
    check_gradients(net, t, dropout, t->own * t->dim, t->floats - t->dim, step, tolerance);
}

/* Intercepts, what fills the net's last row, and the feature without entries have no gradient. */
static void check_others(const struct net *net, const struct set *t)
{
    for (size_t i = 0; i < t->floats; i++) {
        const int other = i < t->l.outputs || (i >= t->l.floats && i < t->own * t->dim) ||
                          i >= t->floats - t->dim;
        if (other && t->grads[i] != 0)
            fail_msg("%s: gradient %zu is %g and should not be touched", net->name, i,
                     (double)t->grads[i]);
    }
}

static void test_layers_gradients_match_finite_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++)
        for (unsigned form = 0; form < FORMS; form++) {
            struct set t;
            if (form % 7 && i % FORMS != form) continue; /* all forms, not of all nets */
            make(&t, &nets[i], 11, form);
            both(&t, &off, 0, 11);
            check_others(&nets[i], &t);
            /* The twin is in double: small steps, which few kinks of relu are near. */
            check_all_gradients(&nets[i], &t, &off, 0x1p-20f, 1e-4);
            drop(&t);
        }
}

/* ---- Chunks and sums ---- */

static void test_layers_scores_do_not_depend_on_the_chunk(void **state)
{
    static const size_t chunks[] = {1, 127, 128};
    enum { SAMPLES = 300 };
    (void)state;
    for (size_t i = 0; i < NETS; i++)
        for (int trains = 0; trains < 2; trains++) {
            const struct drps_dropout dropout = {.trains = trains, .seed = 7};
            float first[SAMPLES * 3];
            struct set t;
            make(&t, &nets[i], SAMPLES, STARTS | VALUED);
            for (size_t k = 0; k < 3; k++) {
                const size_t most = t.l.has_sequences ? SAMPLES : chunks[k];
                free(t.scratch);
                t.scratch = must(malloc(drps_layers_scratch_bytes(&t.l, most)));
                forward(&t, &dropout, chunks[k]);
                if (!k) memcpy(first, t.scores, SAMPLES * t.l.outputs * sizeof(float));
                for (size_t s = 0; s < SAMPLES * t.l.outputs; s++)
                    if (!(fabsf(first[s] - t.scores[s]) <= 1e-6f * fmaxf(1, fabsf(first[s]))))
                        fail_msg("%s, chunks of %zu, seed %llu: score %zu expected %.9g, found "
                                 "%.9g",
                                 nets[i].name, chunks[k], (unsigned long long)seed, s,
                                 (double)first[s], (double)t.scores[s]);
            }
            drop(&t);
        }
}

/* ---- Numbers by place ---- */

/* Has all entries of fields be numbers, which are then those of levels, if they are few. */
static struct drps_dense numbers_of(const struct drps_batch *b, int levels, float *numbers,
                                    uint8_t *bytes, float *list)
{
    const uint32_t each = b->field_count;
    for (size_t s = 0; s < b->samples; s++) {
        memset(numbers + s * each, 0, each * sizeof(*numbers));
        for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++)
            numbers[s * each + b->fields[j]] += drps_batch_value(b, j);
    }
    if (!levels) return (struct drps_dense){.each = each, .floats = numbers};
    const uint32_t n = drps_dense_levels(numbers, b->samples * each, bytes, list);
    assert_true(n > 1);
    return (struct drps_dense){.each = each, .levels_n = n, .bytes = bytes, .levels = list};
}

/* Nets that read numbers alone, of some fields or all. */
static const struct net of_numbers[] = {
    {"numbers", "x = numbers 7\nh = full 5 x\nh = tanh h\nscore = full classes h", 9, 3},
    {"images", "x = image 3 4 5\nh = conv 4 3 1 1 x\nh = pool 2 2 h\nscore = full 1 h", 60, 1},
    {"both", "x = image 1 3 3\ny = numbers 12\nj = join x y\nscore = full 1 j", 12, 1},
    {"channels", "x = image channels 3 2\nh = conv 2 2 1 0 x\nscore = full 1 h", 24, 1},
};

/* Scores and gradients are those of entries with fields, to the bit, and the twin's scores. */
static void test_layers_numbers_by_place(void **state)
{
    enum { SAMPLES = 30, EACH = 60 };
    static float numbers[SAMPLES * EACH], list[DRPS_DENSE_LEVELS];
    static uint8_t bytes[SAMPLES * EACH];
    (void)state;
    for (size_t i = 0; i < sizeof(of_numbers) / sizeof(*of_numbers); i++)
        for (int levels = 0; levels < 2; levels++) {
            float scores[SAMPLES * 3], again[SAMPLES * 3], first[SAMPLES * 3];
            struct set t;
            make(&t, &of_numbers[i], SAMPLES, STARTS | VALUED);
            const size_t n = t.floats * sizeof(float), m = SAMPLES * t.l.outputs;
            float *grads = must(malloc(n));
            both(&t, &off, 3, SAMPLES);
            memcpy(scores, t.scores, m * sizeof(float));
            memcpy(grads, t.grads, n);
            memset(t.grads, 0, n);
            memset(t.scores, 0, m * sizeof(float));
            for (size_t k = 0; k < m; k++)
                first[k] = (float)drps_layers_score_ref(&t.l, &t.b, k / t.l.outputs,
                                                        k % t.l.outputs, t.params);
            t.b.numbers = numbers_of(&t.b, levels, numbers, bytes, list);
            t.b.fields = NULL;
            both(&t, &off, 3, SAMPLES);
            if (memcmp(scores, t.scores, m * sizeof(float)) || memcmp(grads, t.grads, n))
                fail_msg("%s, levels %d: other scores or gradients", of_numbers[i].name, levels);
            for (size_t k = 0; k < m; k++)
                again[k] = (float)drps_layers_score_ref(&t.l, &t.b, k / t.l.outputs,
                                                        k % t.l.outputs, t.params);
            for (size_t k = 0; k < m; k++) /* sums of several entries are rounded to a float */
                assert_float_equal(first[k], again[k], 1e-5f);
            free(grads);
            drop(&t);
        }
}

/* Expects that gradients are `times` those of `once`, and what was there before. */
static void check_times(const struct net *net, const struct set *t, const float *once, float times,
                        float before)
{
    float most = 1;
    for (size_t i = 0; i < t->floats; i++)
        most = fmaxf(most, fabsf(once[i]));
    for (size_t i = 0; i < t->floats; i++)
        if (!(fabsf(before + times * once[i] - t->grads[i]) <= 1e-5f * most))
            fail_msg("%s, seed %llu: gradient %zu expected %.9g, found %.9g", net->name,
                     (unsigned long long)seed, i, (double)(before + times * once[i]),
                     (double)t->grads[i]);
}

static void test_layers_gradients_of_ranges_add_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++)
        for (int trains = 0; trains < 2; trains++) {
            const struct drps_dropout dropout = {.trains = trains, .seed = 11};
            struct set t;
            make(&t, &nets[i], 40, STARTS | VALUED);
            both(&t, &dropout, 0, 40);
            float *once = t.grads;
            t.grads = must(calloc(t.floats, sizeof(float)));
            for (size_t k = 0; k < t.floats; k++)
                t.grads[k] = 0.5f;
            const size_t cut = drps_layers_cut(&t.l, &t.b, 5);
            both(&t, &dropout, 0, cut);
            both(&t, &dropout, cut, cut);
            both(&t, &dropout, cut, 40);
            check_times(&nets[i], &t, once, 1, 0.5f);
            both(&t, &dropout, 0, 40);
            check_times(&nets[i], &t, once, 2, 0.5f);
            free(once);
            drop(&t);
        }
}

/* What the layers' gradients are made of, with room for so many samples. */
static void make_vectors(const struct set *t, size_t n, struct drps_layers_vectors *out)
{
    memset(out, 0, sizeof(*out));
    for (uint32_t i = 0; i < t->l.n; i++) {
        const struct drps_layers_widths v = drps_layers_vectors_of(&t->l, i);
        if (!v.w) continue;
        out->inputs[i] = must(malloc(n * v.w * sizeof(float)));
        out->deltas[i] = must(malloc(n * v.N * sizeof(float)));
    }
}

static void free_vectors(struct drps_layers_vectors *v)
{
    for (size_t i = 0; i < DRPS_LAYERS_MOST; i++) {
        free(v->inputs[i]);
        free(v->deltas[i]);
    }
}

/* The same chunks of samples give the same bits of W. */
static void check_products(const struct net *net, const struct set *t,
                           const struct drps_layers_vectors *v, const size_t *ends, size_t n)
{
    for (uint32_t i = 0; i < t->l.n; i++) {
        const struct drps_layers_widths widths = drps_layers_vectors_of(&t->l, i);
        const size_t w = widths.w, N = widths.N;
        if (!v->inputs[i]) continue;
        float *weights = must(calloc(N * w, sizeof(float)));
        for (size_t k = 0, s = 0; k < n; s = ends[k++])
            drps_layers_add_products(&t->l, i, ends[k] - s, v->inputs[i] + s * w,
                                     v->deltas[i] + s * N, weights);
        if (memcmp(weights, t->grads + t->l.layers[i].first, N * w * sizeof(float)) != 0)
            fail_msg("%s: layer %u has other products than gradients", net->name, i);
        free(weights);
    }
}

static void test_layers_vectors_make_the_gradient(void **state)
{
    enum { SAMPLES = 61 };
    size_t layers = 0;
    (void)state;
    for (size_t i = 0; i < NETS; i++) {
        const struct drps_dropout dropout = {.trains = 1, .seed = 13};
        struct drps_layers_vectors vectors;
        struct set t;
        make(&t, &nets[i], SAMPLES, STARTS | VALUED);
        make_vectors(&t, SAMPLES, &vectors);
        const size_t cut = drps_layers_cut(&t.l, &t.b, 23);
        const size_t ends[] = {cut, SAMPLES};
        both(&t, &dropout, 0, cut);
        if (cut < SAMPLES) both(&t, &dropout, cut, SAMPLES);
        float *without = t.grads;
        t.grads = must(calloc(t.floats, sizeof(float)));
        t.vectors = &vectors;
        both(&t, &dropout, 0, cut);
        if (cut < SAMPLES) both(&t, &dropout, cut, SAMPLES);
        assert_memory_equal(t.grads, without, t.floats * sizeof(float));
        check_products(&nets[i], &t, &vectors, ends, cut < SAMPLES ? 2 : 1);
        for (size_t k = 0; k < DRPS_LAYERS_MOST; k++)
            layers += vectors.inputs[k] != NULL;
        free(without);
        free_vectors(&vectors);
        drop(&t);
    }
    assert_true(layers > 20);
}

/* Where a batch of sequences may be divided: samples 0, 2, 3 and 1030 begin one. */
static void test_layers_sequences_stay_whole(void **state)
{
    enum { SAMPLES = 3000 };
    const struct drps_layers l = layers_of("x = bag 1\nscore = lstm 1 x", 0, 1),
                             other = layers_of("score = linear", 0, 1);
    static uint16_t fields[SAMPLES], local[SAMPLES];
    const struct drps_batch b = {
        .samples = SAMPLES, .nnz = SAMPLES, .per_sample = 1, .local16 = local, .fields = fields};
    (void)state;
    for (size_t s = 0; s < SAMPLES; s++)
        fields[s] = s == 2 || s == 3 || s == 1030 ? DRPS_SEQUENCE_BEGINS : DRPS_SEQUENCE_GOES_ON;
    assert_int_equal(drps_layers_chunk(&l), DRPS_SEQUENCE_MOST);
    assert_int_equal(drps_layers_cut(&l, &b, 0), 0);
    assert_int_equal(drps_layers_cut(&l, &b, 1), 2);
    assert_int_equal(drps_layers_cut(&l, &b, 3), 3);
    assert_int_equal(drps_layers_cut(&l, &b, 4), 1030);
    assert_int_equal(drps_layers_cut(&l, &b, 1031), SAMPLES);
    assert_int_equal(drps_layers_cut(&l, &b, SAMPLES), SAMPLES);
    assert_int_equal(drps_layers_end(&l, &b, 0, SAMPLES), 3); /* the next one has 1,027 samples */
    assert_int_equal(drps_layers_end(&l, &b, 3, SAMPLES), 3 + DRPS_SEQUENCE_MOST);
    assert_int_equal(drps_layers_end(&l, &b, 3 + DRPS_SEQUENCE_MOST, SAMPLES), 1030);
    assert_int_equal(drps_layers_end(&l, &b, 1030, SAMPLES), 1030 + DRPS_SEQUENCE_MOST);
    assert_int_equal(drps_layers_end(&l, &b, 2900, SAMPLES), SAMPLES);
    assert_int_equal(drps_layers_cut(&other, &b, 4), 4);
    assert_int_equal(drps_layers_end(&other, &b, 4, 9), 9);
    assert_int_equal(drps_layers_end(&other, &b, 4, SAMPLES), 4 + drps_layers_chunk(&other));
}

/* Chunks are of 128 samples, or of 64 MiB of floats, or of as many as the net has parameters. */
static void test_layers_chunks(void **state)
{
    static const struct {
        uint32_t width;
        uint64_t kept, floats;
        size_t chunk;
    } cases[] = {
        {1000, 0, 1000, 128},         {1 << 20, 0, 1000, 7},      {1 << 20, 1 << 21, 1000, 3},
        {1 << 20, 0, 16 << 20, 7},    {1 << 20, 0, 48 << 20, 23}, {1 << 20, 0, 256 << 20, 127},
        {1 << 16, 0, 256 << 20, 128}, {1 << 22, 0, 1000, 1},      {1 << 22, 1 << 25, 1000, 1},
    };
    static struct drps_layers l;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        l = (struct drps_layers){
            .width = cases[i].width, .kept = cases[i].kept, .floats = cases[i].floats};
        assert_int_equal(drps_layers_chunk(&l), cases[i].chunk);
    }
}

static void test_layers_empty_range_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++) {
        struct set t;
        make(&t, &nets[i], 3, 0);
        both(&t, &off, 2, 2);
        for (size_t k = 0; k < t.floats; k++)
            assert_true(t.grads[k] == 0);
        for (size_t k = 0; k < 3 * t.l.outputs; k++)
            assert_true(t.scores[k] == 0);
        drop(&t);
    }
}

static void test_layers_samples_without_entries_are_finite(void **state)
{
    (void)state;
    for (size_t i = 0; i < NETS; i++) {
        static const uint32_t starts[4];
        struct set t;
        make(&t, &nets[i], 3, 0);
        t.b.starts = starts;
        t.b.nnz = 0;
        both(&t, &off, 0, 3);
        check_scores(&nets[i], &t, 0);
        for (size_t k = 0; k < t.floats; k++)
            assert_true(isfinite(t.grads[k]));
        drop(&t);
    }
}

/* All levels of instructions give the bytes of the usual one, as do the passes a second time. */
static void test_layers_levels_give_the_same_bytes(void **state)
{
    static const struct drps_dropout dropout = {.trains = 1, .seed = 3};
    const enum drps_level usual = drps_level();
    (void)state;
    for (size_t i = 0; i < NETS; i++) {
        struct set t;
        make(&t, &nets[i], 30, VALUED);
        both(&t, &dropout, 0, 30);
        const size_t bytes = t.floats * sizeof(float), scored = 30 * t.l.outputs * sizeof(float);
        float *grads = must(malloc(bytes)), *scores = must(malloc(scored));
        memcpy(grads, t.grads, bytes);
        memcpy(scores, t.scores, scored);
        for (enum drps_level level = 0; level < DRPS_LEVELS; level++) {
            if (!drps_level_is_here(level)) continue;
            assert_int_equal(drps_level_set(drps_level_name(level), NULL), 0);
            memset(t.grads, 0, bytes);
            both(&t, &dropout, 0, 30);
            if (memcmp(scores, t.scores, scored) || memcmp(grads, t.grads, bytes))
                fail_msg("%s, seed %llu: the passes of %s give other bytes than those of %s",
                         nets[i].name, (unsigned long long)seed, drps_level_name(level),
                         drps_level_name(usual));
        }
        assert_int_equal(drps_level_set(drps_level_name(usual), NULL), 0);
        free(grads);
        free(scores);
        drop(&t);
    }
}

/* ---- Functions of single floats ---- */

/* Returns the net's score for a sample whose linear part is x. */
static float score_at(const char *text, float x)
{
    static const uint16_t local[] = {1};
    const struct drps_layers l = layers_of(text, 0, 1);
    const struct drps_batch b = {
        .samples = 1, .rows = 2, .nnz = 1, .per_sample = 1, .local16 = local};
    const float params[] = {0, x};
    float score = 0, scratch[8];
    assert_true(drps_layers_scratch_bytes(&l, 1) <= sizeof(scratch));
    drps_layers_forward(&l, &b, 0, 1, params, &off, &score, scratch);
    return score;
}

static void test_layers_functions_are_within_ulps_of_libm(void **state)
{
    static const float edges[] = {0,      1e-30f, -1e-30f, 0.6249f, 0.6251f,  -0.6249f, -0.6251f,
                                  87.5f,  -87.5f, 88.8f,   -88.8f,  103.9f,   -103.9f,  1e30f,
                                  -1e30f, 9.1f,   -9.1f,   -30,     INFINITY, -INFINITY};
    enum { EDGES = sizeof(edges) / sizeof(edges[0]), ALL = 400 };
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        const float x = i < EDGES ? edges[i] : (float)uniform(-12, 12);
        const double s = 1 / (1 + exp(-(double)x)), t = tanh((double)x);
        const double found[] = {(double)score_at("a = linear\nscore = sigmoid a", x),
                                (double)score_at("a = linear\nscore = tanh a", x)};
        if (!(fabs(found[0] - s) <= 4 * 0x1p-23 * s + 1e-37))
            fail_msg("sigmoid of %g expected %.9g, found %.9g", (double)x, s, found[0]);
        if (!(fabs(found[1] - t) <= 4 * 0x1p-23 * fabs(t)))
            fail_msg("tanh of %g expected %.9g, found %.9g", (double)x, t, found[1]);
    }
}

static void test_layers_functions_do_not_hide_nan(void **state)
{
    (void)state;
    assert_true(isnan(score_at("a = linear\nscore = relu a", NAN)));
    assert_true(isnan(score_at("a = linear\nscore = sigmoid a", NAN)));
    assert_true(isnan(score_at("a = linear\nscore = tanh a", NAN)));
}

/* ---- Images ---- */

enum { PIXELS = 4 };

/* Returns the net's score for a sample whose image has these numbers, with parameters of 1. */
static float score_of(const char *text, const float values[PIXELS])
{
    static const uint16_t fields[PIXELS] = {0, 1, 2, 3};
    static const uint16_t local[PIXELS]; /* no layer reads rows of entries */
    const struct drps_layers l = layers_of(text, PIXELS, 1);
    const struct drps_batch b = {.samples = 1,
                                 .rows = 1,
                                 .nnz = PIXELS,
                                 .per_sample = PIXELS,
                                 .local16 = local,
                                 .values = values,
                                 .fields = fields,
                                 .field_count = PIXELS};
    float *params = must(malloc(l.floats * sizeof(float))), score = 0;
    void *scratch = must(malloc(drps_layers_scratch_bytes(&l, 1)));
    for (size_t i = 0; i < l.floats; i++)
        params[i] = 1;
    drps_layers_forward(&l, &b, 0, 1, params, &off, &score, scratch);
    free(scratch);
    free(params);
    return score;
}

static void test_images_do_not_hide_nan(void **state)
{
    (void)state;
    for (size_t i = 0; i < PIXELS; i++) {
        float values[PIXELS] = {1, 2, -3, 4};
        values[i] = NAN;
        assert_true(isnan(score_of("x = image 1 2 2\nscore = pool 2 1 x", values)));
        assert_true(isnan(score_of("x = image 1 2 2\nscore = conv 1 2 1 0 x", values)));
    }
}

/* What one filter sees may be more than the rows that are made at a time: here most is border. */
static void test_images_filters_of_any_size(void **state)
{
    static const float values[PIXELS] = {1, 2, -3, 4};
    (void)state;
    assert_float_equal(score_of("x = image 1 2 2\nscore = conv 1 1200 2000 1198 x", values), 6, 0);
}

/* ---- Dropout ---- */

enum { MASKED = 40, MASKED_SAMPLES = 1280 };

/* Scores of a net whose last layer drops out of floats that are all 1. */
static void mask(const char *text, const struct drps_dropout *dropout, float *scores)
{
    static uint16_t local[MASKED_SAMPLES];
    static float params[3 * (1 + MASKED)]; /* the net has two rows */
    const struct drps_layers l = layers_of(text, 0, MASKED);
    const struct drps_batch b = {.samples = MASKED_SAMPLES,
                                 .rows = 3,
                                 .nnz = MASKED_SAMPLES,
                                 .per_sample = 1,
                                 .local16 = local};
    const size_t chunk = drps_layers_chunk(&l);
    assert_int_equal(MASKED_SAMPLES % chunk, 0);
    void *scratch = must(malloc(drps_layers_scratch_bytes(&l, chunk)));
    for (size_t s = 0; s < MASKED_SAMPLES; s++)
        local[s] = 2;
    for (size_t k = 1; k <= MASKED; k++)
        params[2 * (1 + MASKED) + k] = 1;
    for (size_t s = 0; s < MASKED_SAMPLES; s += chunk)
        drps_layers_forward(&l, &b, s, s + chunk, params, dropout, scores, scratch);
    free(scratch);
}

/* `kept` of the floats are there, within 5 standard deviations, and their mean is 1. */
static void check_mask(const char *text, double kept, const float *scores)
{
    const double n = MASKED * MASKED_SAMPLES, deviation = sqrt(kept * (1 - kept) * n);
    double there = 0, sum = 0;
    for (size_t i = 0; i < MASKED * MASKED_SAMPLES; i++) {
        there += scores[i] != 0;
        sum += (double)scores[i];
        if (scores[i] != 0 && !(fabs((double)scores[i] * kept - 1) < 1e-6))
            fail_msg("%s: float %zu is %g", text, i, (double)scores[i]);
    }
    if (!(fabs(there - kept * n) <= 5 * deviation))
        fail_msg("%s: %g of %g floats are there", text, there, n);
    if (!(fabs(sum - n) <= 5 * deviation / kept)) fail_msg("%s: the mean is %g", text, sum / n);
}

static void test_dropout_keeps_its_share_and_the_mean(void **state)
{
    static const struct {
        const char *text;
        double kept;
    } cases[] = {
        {"x = bag 40\nscore = dropout 0.25 x", 0.75},
        {"x = bag 40\nscore = dropout 0.5 x", 0.5},
        {"x = bag 40\nscore = dropout 0.9 x", 0.1},
        /* each layer has its own mask */
        {"x = bag 40\nx = dropout 0.5 x\nscore = dropout 0.5 x", 0.25},
    };
    static float scores[MASKED * MASKED_SAMPLES];
    const struct drps_dropout dropout = {.trains = 1, .seed = seed};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        mask(cases[i].text, &dropout, scores);
        check_mask(cases[i].text, cases[i].kept, scores);
    }
}

/* Masks of neighbouring samples, floats and seeds agree as often as independent ones do. */
static void test_dropout_depends_on_sample_float_and_seed(void **state)
{
    static const char text[] = "x = bag 40\nscore = dropout 0.5 x";
    static float scores[2][MASKED * MASKED_SAMPLES];
    const size_t n = MASKED * (MASKED_SAMPLES - 1);
    const struct drps_dropout one = {.trains = 1, .seed = 5}, other = {.trains = 1, .seed = 6};
    double same[3] = {0};
    (void)state;
    mask(text, &one, scores[0]);
    mask(text, &other, scores[1]);
    for (size_t i = 0; i < n; i++) {
        same[0] += scores[0][i] == scores[0][i + MASKED];
        same[1] += scores[0][i] == scores[0][i + 1];
        same[2] += scores[0][i] == scores[1][i];
    }
    for (size_t k = 0; k < 3; k++)
        if (!(fabs(same[k] - (double)n / 2) <= 5 * sqrt((double)n / 4)))
            fail_msg("%g of %zu floats are alike in comparison %zu", same[k], n, k);
    mask(text, &one, scores[1]);
    assert_memory_equal(scores[0], scores[1], sizeof(scores[0]));
}

static void test_dropout_leaves_predictions_alone(void **state)
{
    static float scores[2][MASKED * MASKED_SAMPLES];
    (void)state;
    mask("x = bag 40\nscore = dropout 0.5 x", &off, scores[0]);
    mask("x = bag 40\nscore = sum x", &off, scores[1]);
    assert_memory_equal(scores[0], scores[1], sizeof(scores[0]));
}

/* Without relu, since the steps have to be large: the forward pass is in float. */
static void test_dropout_gradients_match_finite_differences(void **state)
{
    static const struct net dropped[] = {
        {"of a layer",
         "x = embedding 3\nx = dropout 0.3 x\nh = full 6 x\nh = tanh h\n"
         "h = dropout 0.5 h\nscore = full 1 h",
         4, 1},
        {"with fm and classes",
         "x = embedding 3\ny = dropout 0.5 x\np = fm y\nz = dropout 0.5 x\n"
         "h = join p z y\nscore = full classes h",
         4, 3},
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct drps_dropout dropout = {.trains = 1, .seed = seed};
        struct set t;
        make(&t, &dropped[i], 20, STARTS | VALUED);
        both(&t, &dropout, 0, 20);
        check_others(&dropped[i], &t);
        check_all_gradients(&dropped[i], &t, &dropout, 0x1p-6f, 2e-3);
        drop(&t);
    }
}

/* ---- Products of matrices ---- */

typedef void product(size_t n, size_t w, size_t N, const float *x, const float *y, float *to);

/* Element (i, j) of a product with `inner` terms, whose operands have these strides. */
struct strides {
    size_t rows, columns, inner, x_row, x_inner, y_inner, y_column;
};

static void check_product(const char *name, product *multiply, size_t n, size_t w, size_t N,
                          struct strides d)
{
    const size_t xs = d.rows * d.inner, ys = d.inner * d.columns, tos = d.rows * d.columns;
    float *x = must(malloc((xs + ys + tos) * sizeof(float))), *y = x + xs, *to = y + ys;
    for (size_t i = 0; i < xs + ys; i++)
        x[i] = (float)uniform(-1, 1);
    for (size_t i = 0; i < tos; i++)
        to[i] = 0.25f;
    multiply(n, w, N, x, y, to);
    for (size_t i = 0; i < d.rows; i++)
        for (size_t j = 0; j < d.columns; j++) {
            double sum = 0.25;
            for (size_t k = 0; k < d.inner; k++)
                sum += (double)x[i * d.x_row + k * d.x_inner] *
                       (double)y[k * d.y_inner + j * d.y_column];
            if (!(fabs(sum - (double)to[i * d.columns + j]) <= 1e-5 * (1 + fabs(sum))))
                fail_msg("%s of %zu samples, %zu to %zu floats: element %zu, %zu expected %.9g, "
                         "found %.9g",
                         name, n, w, N, i, j, sum, (double)to[i * d.columns + j]);
        }
    free(x);
}

static void test_products_match_plain_sums(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 64};
    enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };
    (void)state;
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++)
            for (size_t k = 0; k < SIZES; k++) {
                const size_t n = sizes[i], w = sizes[j], N = sizes[k];
                const struct strides on = {n, N, w, w, 1, 1, w}, weights = {N, w, n, 1, N, w, 1},
                                     back = {n, w, N, N, 1, w, 1};
                check_product("product", drps_layers_product, n, w, N, on);
                check_product("own product", drps_layers_own_product, n, w, N, on);
                check_product("weights", drps_layers_product_weights, n, w, N, weights);
                check_product("own weights", drps_layers_own_weights, n, w, N, weights);
                check_product("back", drps_layers_product_back, n, w, N, back);
                check_product("own back", drps_layers_own_back, n, w, N, back);
            }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_match_plain_sums),
        cmocka_unit_test(test_layers_numbers_by_hand),
        cmocka_unit_test(test_layers_scores_match_the_twin),
        cmocka_unit_test(test_layers_gradients_match_finite_differences),
        cmocka_unit_test(test_layers_scores_do_not_depend_on_the_chunk),
        cmocka_unit_test(test_layers_numbers_by_place),
        cmocka_unit_test(test_layers_gradients_of_ranges_add_up),
        cmocka_unit_test(test_layers_vectors_make_the_gradient),
        cmocka_unit_test(test_layers_sequences_stay_whole),
        cmocka_unit_test(test_layers_chunks),
        cmocka_unit_test(test_layers_empty_range_changes_nothing),
        cmocka_unit_test(test_layers_samples_without_entries_are_finite),
        cmocka_unit_test(test_layers_levels_give_the_same_bytes),
        cmocka_unit_test(test_layers_functions_are_within_ulps_of_libm),
        cmocka_unit_test(test_layers_functions_do_not_hide_nan),
        cmocka_unit_test(test_images_do_not_hide_nan),
        cmocka_unit_test(test_images_filters_of_any_size),
        cmocka_unit_test(test_dropout_keeps_its_share_and_the_mean),
        cmocka_unit_test(test_dropout_depends_on_sample_float_and_seed),
        cmocka_unit_test(test_dropout_leaves_predictions_alone),
        cmocka_unit_test(test_dropout_gradients_match_finite_differences),
    };

    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
