/* Lengths of vectors. Shared inside engine/recommend/. */
#ifndef DRPS_ENGINE_RECOMMEND_MATH_NORM_H
#define DRPS_ENGINE_RECOMMEND_MATH_NORM_H

#include <math.h>
#include <stddef.h>

/* The Euclidean norm of v [n]; not finite where an element is not. */
static inline double drps_norm(const float *v, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)v[k] * (double)v[k];
    return sqrt(sum);
}

/* Factors [n] become those of length 1 with the same direction; none stay none. */
static inline void drps_normalise(float *v, size_t n)
{
    const double norm = drps_norm(v, n);
    for (size_t k = 0; norm > 0 && k < n; k++)
        v[k] = (float)((double)v[k] / norm);
}

#endif
