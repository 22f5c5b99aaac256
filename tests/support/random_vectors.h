/* Batches of sufficient vectors for tests: random ones, and what they come to as a matrix. */
#ifndef DRPS_TESTS_RANDOM_VECTORS_H
#define DRPS_TESTS_RANDOM_VECTORS_H

#include "engine/model/drps_vectors.h"

/* A batch that owns its arrays. */
struct own_vectors {
    struct drps_vectors v;
    float *u, *values;
    uint32_t *first, *ids;
};

/* n samples of `dim` floats, each with about `nnz` of `rows` features (all of them where nnz is
 * rows), values about -1 to 1; zeroed arrays for n = 0. Fails the process without memory. */
struct own_vectors random_vectors(uint64_t seed, uint32_t n, uint32_t dim, uint32_t rows,
                                  uint32_t nnz);
void own_vectors_free(struct own_vectors *o);

/* matrix [rows][dim] += by * sum over i of x_i u_i, in double. */
void vectors_add(const struct drps_vectors *v, double by, double *matrix);

/* A batch of the picks' x with these u, whose arrays it owns. */
struct own_vectors vectors_picked(const struct drps_vectors *v, const uint32_t *picks, uint32_t n,
                                  const float *u);

#endif
