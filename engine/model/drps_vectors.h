/*
 * Sufficient vectors: a gradient of a matrix as a sum of outer products. A batch of n samples has
 * for a matrix of K rows of J floats (a plan's rows; the paper writes it J x K)
 *
 *   gradient of row k = sum over i of x_i[k] u_i        i = 0 .. n - 1
 *
 * with u_i [J] dense and x_i [K] sparse. Source: Xie et al., "Orpheus", section 3.1.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_MODEL_VECTORS_H
#define DRPS_ENGINE_MODEL_VECTORS_H

#include <stddef.h>
#include <stdint.h>

/* All arrays are borrowed. */
struct drps_vectors {
    uint32_t n;            /* samples */
    uint32_t dim;          /* J: floats of a u, and of a row */
    const float *u;        /* [n][dim] */
    const uint32_t *first; /* [n + 1] entries of sample i are [first[i], first[i + 1]) */
    const uint32_t *ids;   /* [first[n]] numbers of the matrix's rows, increasing in a sample */
    const float *values;   /* [first[n]] */
};

#endif
