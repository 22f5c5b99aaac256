/*
 * Hinge losses of classes, one versus the rest: with the sign t of a class, +1 for that of the
 * label and -1 for any other, and m = 1 - t * score where that is positive, else 0, a sample has
 *   loss = sum of m,    slope = m > 0 ? -t : 0                squared: sum of m^2 and -2 t m
 * Classes are float vectors; losses are summed in double.
 */
#include <math.h>

#include "engine/model/drps_model.h"

enum { RUN = 64 }; /* classes whose losses are summed together, as floats */

/* `own` is the class of the label, counted from the first of `scores`; `squared` is constant. */
static inline float hinges(const float *restrict scores, int n, int own, int squared,
                           float *restrict slopes)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < n; c++) {
        const float t = c == own ? 1.0f : -1.0f;
        const float margin = 1 - t * scores[c];
        const float m = margin < 0 ? 0 : margin; /* a NaN stays one */
        sum += squared ? m * m : m;
        slopes[c] = squared ? -2 * t * m : m > 0 ? -t : m;
    }
    return sum;
}

static double one(const float *scores, float label, int outputs, int squared, float *slopes)
{
    float unused[RUN];
    double sum = 0;
    if (!(label >= 0 && label < (float)outputs)) return (double)NAN;
    for (int c = 0; c < outputs; c += RUN) {
        const int n = outputs - c < RUN ? outputs - c : RUN, own = (int)label - c;
        float *to = slopes ? slopes + c : unused;
        sum += (double)(squared ? hinges(scores + c, n, own, 1, to)
                                : hinges(scores + c, n, own, 0, to));
    }
    return sum;
}

double drps_hinges_sum(enum drps_loss loss, const float *scores, const float *labels, size_t n,
                       size_t outputs, float *slopes)
{
    const int squared = loss == DRPS_LOSS_SQUARED_HINGE;
    double total = 0;
    for (size_t s = 0; s < n; s++)
        total += one(scores + s * outputs, labels[s], (int)outputs, squared,
                     slopes ? slopes + s * outputs : NULL);
    return total;
}
