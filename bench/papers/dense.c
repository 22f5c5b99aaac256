/* Dense nets of drps-train (dense.h). */
#include "bench/papers/dense.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/drps.h"
#include "base/drps_alloc.h"
#include "bench/data.h"
#include "partition/dynamic/drps_dynamic.h"

/* ---- Samples ---- */

struct dense_samples dense_samples_read(const char *path, uint32_t width, size_t most)
{
    struct dense_samples s = {.width = width};
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "r");
    if (!f) {
        perror(path);
        exit(1);
    }
    s.x = must(calloc(most * width, sizeof(*s.x)));
    s.labels = must(drps_array_new(most, sizeof(*s.labels)));
    while (s.n < most && getline(&line, &cap, f) > 0) {
        char *at = line;
        s.labels[s.n] = (int)strtol(at, &at, 10);
        for (;;) {
            char *end;
            const unsigned long feature = strtoul(at, &end, 10);
            if (end == at || *end != ':' || !feature || feature > width) break;
            s.x[s.n * width + feature - 1] = strtof(end + 1, &at);
        }
        s.n++;
    }
    free(line);
    fclose(f);
    return s;
}

void dense_samples_free(struct dense_samples *s)
{
    free(s->x);
    free(s->labels);
}

/* ---- The net ---- */

struct dense dense_of(const char *layers)
{
    struct dense net = {0};
    for (const char *at = layers; *at && net.layers < DENSE_LAYERS_MOST; at += *at == ':') {
        char *end;
        net.width[net.layers++] = (uint32_t)strtoul(at, &end, 10);
        at = end;
    }
    for (uint32_t l = 1; l < net.layers; l++)
        net.neurons += net.width[l];
    net.runs = must(drps_array_new(net.neurons + 1, sizeof(*net.runs)));
    uint32_t *run = net.runs;
    *run = 0;
    for (uint32_t l = 1; l < net.layers; l++) {
        net.first[l] = net.n;
        for (uint32_t i = 0; i < net.width[l]; i++, run++)
            run[1] = run[0] + net.width[l - 1] + 1;
        net.n = *run;
    }
    net.params = must(calloc(net.n, sizeof(*net.params)));
    net.pruned = must(calloc(net.n, sizeof(*net.pruned)));
    return net;
}

void dense_free(struct dense *net)
{
    free(net->params);
    free(net->pruned);
    free(net->runs);
}

struct loading {
    struct dense *net;
    float *flat; /* own [floats] rows of the net, one after another */
    size_t floats;
};

static int load_row(void *ctx, const struct drps_row *row)
{
    struct loading *l = ctx;
    const uint32_t hidden = l->net->width[1], width = l->net->width[0];
    if (strcmp(row->table, "net") == 0) {
        l->flat = must(realloc(l->flat, (l->floats + row->dim) * sizeof(*l->flat)));
        memcpy(l->flat + l->floats, row->params, row->dim * sizeof(*l->flat));
        l->floats += row->dim;
        return 0;
    }
    const unsigned long feature = strtoul(row->name, NULL, 10);
    if (row->dim != hidden + 1 || !feature || feature > width) return DRPS_E_CONFIG;
    for (uint32_t i = 0; i < hidden; i++)
        l->net->params[i * ((size_t)width + 1) + feature - 1] = row->params[1 + i];
    return 0;
}

/* The rows of the net: intercepts, then of each layer W and b; of the first b alone. */
static void take_flat(struct dense *net, const float *flat, size_t floats)
{
    const uint32_t outputs = net->width[net->layers - 1];
    size_t at = outputs;
    for (uint32_t l = 1; l < net->layers; l++) {
        const size_t in = net->width[l - 1], out = net->width[l], weights = l > 1 ? in * out : 0;
        float *params = &net->params[net->first[l]];
        if (at + weights + out > floats) {
            fprintf(stderr, "bench: the model has another net\n");
            exit(1);
        }
        for (size_t i = 0; i < out; i++) {
            if (l > 1) memcpy(&params[i * (in + 1)], &flat[at + i * in], in * sizeof(*flat));
            params[i * (in + 1) + in] = flat[at + weights + i];
            if (l == net->layers - 1) params[i * (in + 1) + in] += flat[i];
        }
        at += weights + out;
    }
}

/* Parameters that are pruned are 0. */
static void apply_pruning(struct dense *net)
{
    for (size_t i = 0; i < net->n; i++)
        if (net->pruned[i]) net->params[i] = 0;
}

/* ---- One sample ---- */

struct pass {
    float *value[DENSE_LAYERS_MOST]; /* own: of each layer, after relu; of the last the scores */
    float *delta[DENSE_LAYERS_MOST]; /* own: the derivative of the loss by what relu got */
    float *change;                   /* own [net->n] */
};

static struct pass pass_of(const struct dense *net)
{
    struct pass p = {0};
    for (uint32_t l = 0; l < net->layers; l++) {
        p.value[l] = must(calloc(net->width[l], sizeof(float)));
        p.delta[l] = must(calloc(net->width[l], sizeof(float)));
    }
    p.change = must(calloc(net->n, sizeof(float)));
    return p;
}

static void pass_free(struct pass *p)
{
    for (int l = 0; l < DENSE_LAYERS_MOST; l++) {
        free(p->value[l]);
        free(p->delta[l]);
    }
    free(p->change);
}

static void forward(const struct dense *net, struct pass *p, const float *x)
{
    memcpy(p->value[0], x, net->width[0] * sizeof(*x));
    for (uint32_t l = 1; l < net->layers; l++)
        for (size_t i = 0, in = net->width[l - 1]; i < net->width[l]; i++) {
            const float *w = &net->params[net->first[l] + i * (in + 1)];
            float sum = w[in];
            for (size_t k = 0; k < in; k++)
                sum += w[k] * p->value[l - 1][k];
            p->value[l][i] = l + 1 < net->layers && sum < 0 ? 0 : sum;
        }
}

/* Softmax and its loss: the derivatives of all layers. */
static void backward(const struct dense *net, struct pass *p, int label)
{
    const uint32_t last = net->layers - 1;
    float most = p->value[last][0], sum = 0;
    for (uint32_t i = 1; i < net->width[last]; i++)
        most = fmaxf(most, p->value[last][i]);
    for (uint32_t i = 0; i < net->width[last]; i++)
        sum += p->delta[last][i] = expf(p->value[last][i] - most);
    for (uint32_t i = 0; i < net->width[last]; i++)
        p->delta[last][i] = p->delta[last][i] / sum - ((int)i == label);
    for (uint32_t l = last; l > 1; l--) {
        const size_t in = net->width[l - 1];
        memset(p->delta[l - 1], 0, in * sizeof(float));
        for (size_t i = 0; i < net->width[l]; i++)
            for (size_t k = 0; k < in; k++)
                if (p->value[l - 1][k] > 0)
                    p->delta[l - 1][k] +=
                        p->delta[l][i] * net->params[net->first[l] + i * (in + 1) + k];
    }
}

static void change_by(const struct dense *net, struct pass *p, float lr)
{
    for (uint32_t l = 1; l < net->layers; l++)
        for (size_t i = 0, in = net->width[l - 1]; i < net->width[l]; i++) {
            float *change = &p->change[net->first[l] + i * (in + 1)];
            const float step = -lr * p->delta[l][i];
            for (size_t k = 0; k < in; k++)
                change[k] = step * p->value[l - 1][k];
            change[in] = step;
        }
}

static int is_right(const struct dense *net, const struct pass *p, int label)
{
    const float *scores = p->value[net->layers - 1];
    for (uint32_t i = 0; i < net->width[net->layers - 1]; i++)
        if ((int)i != label && scores[i] >= scores[label]) return 0;
    return 1;
}

/* ---- Models ---- */

/* The net here is the one that was trained: scores of the first samples are the library's. */
static void compare_scores(struct drps_predictor *m, const struct dense *net,
                           const struct dense_samples *s)
{
    enum { SOME = 20 };
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t outputs = net->width[net->layers - 1];
    const size_t n = s->n < SOME ? s->n : SOME, columns = (size_t)s->width + 1;
    int64_t starts[SOME + 1] = {0};
    int64_t *indices = must(drps_array_new(n * s->width, sizeof(*indices)));
    float *values = must(drps_array_new(n * s->width, sizeof(*values)));
    double *scores = must(drps_array_new(n * outputs, sizeof(*scores)));
    struct pass p = pass_of(net);
    for (size_t i = 0; i < n; i++) {
        starts[i + 1] = starts[i];
        for (uint32_t k = 0; k < s->width; k++)
            if (s->x[i * s->width + k] != 0) {
                values[starts[i + 1]] = s->x[i * s->width + k];
                indices[starts[i + 1]++] = (int64_t)k + 1;
            }
    }
    const struct drps_matrix matrix = {.samples = n,
                                       .columns = columns,
                                       .starts = {starts, DRPS_I64},
                                       .indices = {indices, DRPS_I64},
                                       .values = {values, DRPS_F32}};
    ok(drps_predictor_score(m, &matrix, DRPS_SCORE_RAW, scores, &err), &err);
    for (size_t i = 0; i < n; i++) {
        forward(net, &p, &s->x[i * s->width]);
        for (uint32_t j = 0; j < outputs; j++)
            if (!(fabs(scores[i * outputs + j] - (double)p.value[net->layers - 1][j]) < 1e-3)) {
                fprintf(stderr, "bench: sample %zu, class %u: %g, the model says %g\n", i,
                        (unsigned)j, (double)p.value[net->layers - 1][j], scores[i * outputs + j]);
                exit(1);
            }
    }
    free(indices);
    free(values);
    free(scores);
    pass_free(&p);
}

void dense_load(struct dense *net, const char *path, const struct dense_samples *s)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *m;
    struct loading l = {.net = net};
    ok(drps_predictor_open(path, 0, &m, &err), &err);
    if (drps_predictor_outputs(m) != net->width[net->layers - 1]) {
        fprintf(stderr, "bench: %s has other classes\n", path);
        exit(1);
    }
    for (uint32_t i = 0; i < net->width[net->layers - 1]; i++)
        if (!drps_predictor_class(m, i) ||
            strtol(drps_predictor_class(m, i), NULL, 10) != (long)i) {
            fprintf(stderr, "bench: %s: class %u is no %u\n", path, (unsigned)i, (unsigned)i);
            exit(1);
        }
    for (size_t i = 0; i < net->n; i++)
        net->params[i] = NAN;
    ok(drps_predictor_rows(m, load_row, &l, &err), &err);
    take_flat(net, l.flat, l.floats);
    for (size_t i = 0; i < net->n; i++)
        if (isnan(net->params[i])) {
            net->pruned[i] = 1; /* no sample has the feature */
            net->params[i] = 0;
        }
    compare_scores(m, net, s);
    drps_predictor_close(m);
    free(l.flat);
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Prunes until `share` of all weights are. */
double dense_prune(struct dense *net, double share)
{
    size_t weights = 0, n = 0, gone = 0;
    float *sorted = must(drps_array_new(net->n, sizeof(*sorted)));
    float *weighed = must(drps_array_new(net->n, sizeof(*weighed))); /* b infinite */
    memcpy(weighed, net->params, net->n * sizeof(*sorted));
    for (size_t run = 0; run < net->neurons; run++)
        weighed[net->runs[run + 1] - 1] = INFINITY;
    for (size_t i = 0; i < net->n; i++) {
        weights += isfinite(weighed[i]) != 0;
        if (isfinite(weighed[i]) && !net->pruned[i]) sorted[n++] = fabsf(weighed[i]);
    }
    gone = weights - n;
    const double wanted = share * (double)weights - (double)gone;
    qsort(sorted, n, sizeof(*sorted), by_size);
    if (wanted >= 1) {
        const size_t at = (size_t)wanted < n ? (size_t)wanted : n - 1;
        gone = drps_dynamic_prune(weighed, net->n, sorted[at], net->pruned);
    }
    free(sorted);
    free(weighed);
    apply_pruning(net);
    return 100 * (double)gone / (double)weights;
}

/* ---- Which sample changes which unit ---- */

double dense_changes_find(const struct dense *net, const struct dense_samples *s, float lr,
                          float least, const uint32_t *first, size_t units, struct dense_changes *c)
{
    struct pass p = pass_of(net);
    size_t n = 0, right = 0;
    if (!c->starts) c->starts = must(drps_array_new(s->n + 1, sizeof(*c->starts)));
    for (size_t i = 0; i < s->n; i++) {
        forward(net, &p, &s->x[i * s->width]);
        right += (size_t)is_right(net, &p, s->labels[i]);
        backward(net, &p, s->labels[i]);
        change_by(net, &p, lr);
        if (drps_array_reserve(&c->units, &c->cap, n + units, sizeof(*c->units)) < 0) must(NULL);
        c->starts[i] = n;
        n += drps_dynamic_changed(p.change, net->pruned, first, units, least, &c->units[n]);
    }
    c->starts[s->n] = n;
    pass_free(&p);
    return 100 * (double)right / (double)s->n;
}

void dense_changes_free(struct dense_changes *c)
{
    free(c->starts);
    free(c->units);
}
