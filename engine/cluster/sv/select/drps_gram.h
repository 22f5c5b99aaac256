/*
 * Gram matrices: the inner products of all pairs of n vectors, in double, so that no float that is
 * finite makes one that is not. OpenBLAS multiplies dense vectors where the build has it.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_SELECT_GRAM_H
#define DRPS_ENGINE_CLUSTER_SV_SELECT_GRAM_H

#include "engine/model/drps_vectors.h"

/* Memory that drps_gram_dense() uses, in bytes. n at most 2^16. */
size_t drps_gram_scratch(uint32_t n);

/*
 * Of the batch's u. gram_out: [n][n], symmetric. scratch: of drps_gram_scratch(n) bytes, aligned
 * for doubles. With OpenBLAS it sets that library's threads to one, for the whole process.
 */
void drps_gram_dense(const struct drps_vectors *batch, void *scratch, double *gram_out);

/* The same by three loops, in another order of additions. */
void drps_gram_dense_plain(const struct drps_vectors *batch, double *gram_out);

/* Memory that drps_gram_sparse() uses, in bytes, for vectors of so many entries in all. */
size_t drps_gram_sparse_scratch(uint32_t entries);

/* Of the batch's x. gram_out: [n][n], symmetric. scratch: aligned for doubles. */
void drps_gram_sparse(const struct drps_vectors *batch, void *scratch, double *gram_out);

#endif
