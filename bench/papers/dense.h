/*
 * A dense net that drps-train has trained: its models read, pruned, and what each sample's own step
 * would change. What goes wrong ends the program.
 */
#ifndef DRPS_BENCH_PAPERS_DENSE_H
#define DRPS_BENCH_PAPERS_DENSE_H

#include <stddef.h>
#include <stdint.h>

enum { DENSE_LAYERS_MOST = 8 };

struct dense_samples {
    size_t n;
    uint32_t width;
    float *x;    /* own [n][width] */
    int *labels; /* own [n] */
};

/* libsvm: labels 0, 1, ...; features 1 to width. At most so many samples. */
struct dense_samples dense_samples_read(const char *path, uint32_t width, size_t most);
void dense_samples_free(struct dense_samples *s);

/* Parameters: of each layer and neuron its incoming weights, then its b. A relu follows each layer
 * but the last. */
struct dense {
    uint32_t layers;                   /* with the input */
    uint32_t width[DENSE_LAYERS_MOST]; /* [layers] */
    size_t first[DENSE_LAYERS_MOST];   /* of layer l, from 1 on, the first parameter */
    size_t n, neurons;
    float *params;   /* own [n] */
    uint8_t *pruned; /* own [n] also what the model has no row of, as no sample has the feature */
    uint32_t *runs;  /* own [neurons + 1] a neuron's parameters */
};

/* layers: "784:128:64:10" */
struct dense dense_of(const char *layers);
void dense_free(struct dense *net);

/* Read a model: `bag 128`, relu, `full 64`, relu, ..., `full classes`. Scores of the first samples
 * are compared with the library's. */
void dense_load(struct dense *net, const char *path, const struct dense_samples *s);

/* Prune the smallest weights until `share` of all are pruned; b stays. Returns the percentage. */
double dense_prune(struct dense *net, double share);

/* Which sample changes which units. */
struct dense_changes {
    size_t *starts;  /* own [samples + 1] */
    uint32_t *units; /* own */
    size_t cap;
};

/* A change counts if it is above `least`, at the learning rate `lr`. Returns how many percent of
 * the samples have the right class. */
double dense_changes_find(const struct dense *net, const struct dense_samples *s, float lr,
                          float least, const uint32_t *first, size_t units,
                          struct dense_changes *c);
void dense_changes_free(struct dense_changes *c);

#endif
