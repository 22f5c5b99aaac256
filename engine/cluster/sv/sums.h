/*
 * The sum of all ranks' gradients in a round, row by row, added in the order of ranks. Private to
 * engine/cluster/sv/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_SUMS_H
#define DRPS_ENGINE_CLUSTER_SV_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct sums {
    uint32_t dim;
    int has_touches;
    size_t most;      /* rows that there is room for */
    uint32_t *ids;    /* own: [n] strictly increasing, of all ranks */
    uint32_t *merged; /* own: [most] */
    size_t n;
    float *grads;      /* own: [n][dim] */
    uint32_t *touches; /* own: [n], or NULL */
};

DRPS_MUST_CHECK
int sums_open(struct sums *s, size_t most, uint32_t dim, int touches, struct drps_err *err);
void sums_close(struct sums *s);

/* A round: no rows. */
void sums_begin(struct sums *s);

/* The rows of a rank are among those of the round: ids [n], strictly increasing. All ranks' rows
 * together are at most as many as there is room for. */
void sums_unite(struct sums *s, const uint32_t *ids, size_t n);

/* All ranks' rows are in: their sums are zeros. */
void sums_zero(struct sums *s);

/* Add a rank's gradient of its rows: grads [n][dim], touches [n]. */
void sums_add(struct sums *s, const uint32_t *ids, size_t n, const float *grads,
              const uint32_t *touches);

#endif
