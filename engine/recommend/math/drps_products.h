/*
 * Scores of a block of queries and a block of items, as one product of matrices: by OpenBLAS, or by
 * drps's own loops. Both add up float products in some order of their own, so that scores of the
 * two differ in their last bits; drps_product_error() bounds how far a score is from the exact one.
 * Shared inside engine/recommend/.
 *
 * Shapes: Q queries, N items, D floats each.
 */
#ifndef DRPS_ENGINE_RECOMMEND_MATH_PRODUCTS_H
#define DRPS_ENGINE_RECOMMEND_MATH_PRODUCTS_H

#include <stddef.h>

/* A thread's product. scores [q][n] = queries [q][d] times items [n][d] transposed; `scratch` has
 * drps_product_scratch(d) bytes. The arrays do not overlap. */
typedef void (*drps_product)(const float *queries, size_t q, const float *items, size_t n, size_t d,
                             float *scores, void *scratch);

size_t drps_product_scratch(size_t d);

void drps_product_own(const float *queries, size_t q, const float *items, size_t n, size_t d,
                      float *scores, void *scratch);
/* One obvious loop, for tests. */
void drps_product_ref(const float *queries, size_t q, const float *items, size_t n, size_t d,
                      float *scores, void *scratch);

/* Whether this build has OpenBLAS; if not, drps_product_blas() is drps_product_own(). */
int drps_product_has_blas(void);
void drps_product_blas(const float *queries, size_t q, const float *items, size_t n, size_t d,
                       float *scores, void *scratch);

/*
 * A product's score s and the exact inner product e of the same floats: |s - e| <= error *
 * |query| * |item|, with Euclidean norms, plus DRPS_PRODUCT_TINY, unless a sum overflows. For any
 * order of additions, fused or not: Higham, Accuracy and Stability of Numerical Algorithms,
 * section 3.1, and the inequality of Cauchy and Schwarz.
 */
double drps_product_error(size_t d);
#define DRPS_PRODUCT_TINY 1e-30 /* far above what products that underflow lose */

#endif
