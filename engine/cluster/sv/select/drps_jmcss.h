/*
 * Joint matrix column subset selection: chooses vectors that stand for all, where each comes in
 * several matrices at once (a u and an x, for one matrix of a model). An index is drawn with a
 * probability proportional to the product over the matrices of the squared norms of what is left of
 * its vectors; these are projected out of all others; and so on.
 *
 * Source: Xie et al., "Orpheus", Algorithm 2. It projects by pseudo-inverses; here only the Gram
 * matrices are needed, by a Cholesky factorisation whose pivots are the indices drawn.
 *
 * Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_SV_SELECT_JMCSS_H
#define DRPS_ENGINE_CLUSTER_SV_SELECT_JMCSS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct drps_jmcss {
    uint32_t n;                 /* vectors of each matrix; at most 2^16 */
    uint32_t count;             /* to choose; all of them where there are no more */
    uint32_t matrices;          /* 1 or more */
    const double *const *grams; /* [matrices] of [n][n], borrowed */
    uint64_t seed;
    int largest; /* 1: instead of drawing takes the largest product, the first of equal ones */
};

/* Memory that drps_jmcss() uses, in bytes. */
size_t drps_jmcss_scratch(const struct drps_jmcss *j);

/*
 * scratch        of drps_jmcss_scratch() bytes, aligned for doubles
 * picks_out      [least of count and n] indices in the order in which they were chosen
 * drawn_out      how many of them were drawn: once no product is above 1e-10 of the largest one
 *                at the beginning, the others are chosen with equal probabilities
 * residuals_out  [matrices][n] squared norms of what is left of the vectors; or NULL
 *
 * -EDOM: a vector holds a value that is not finite; the text names it.
 */
DRPS_MUST_CHECK
int drps_jmcss(const struct drps_jmcss *j, void *scratch, uint32_t *picks_out, uint32_t *drawn_out,
               double *residuals_out, struct drps_err *err);

#endif
