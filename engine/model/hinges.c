/*
 * Hinge losses of classes, one versus the rest: with the sign t of a class, +1 for that of the
 * label and -1 for any other, and m = 1 - t * score where that is positive, else 0, a sample has
 *   loss = sum of m,    slope = m > 0 ? -t : 0                squared: sum of m^2 and -2 t m
 * Classes are float vectors; losses are summed in double.
 */
#include <math.h>

#include "base/kernel/drps_level.h"
#include "engine/model/drps_model.h"

/* Classes whose losses are summed together, as floats, and sums of every so many: the order does
 * not depend on the machine's vectors. */
enum { RUN = 64, LANES = 16 };

/* The loss of one class, whose slope goes to *slope; `squared` is constant. */
static inline float hinge(float score, int is_own, int squared, float *slope)
{
    const float t = is_own ? 1.0f : -1.0f;
    const float margin = 1 - t * score;
    const float m = margin < 0 ? 0 : margin; /* a NaN stays one */
    *slope = squared ? -2 * t * m : m > 0 ? -t : m;
    return squared ? m * m : m;
}

/* `own` is the class of the label, counted from the first of `scores`. */
static inline float hinges(const float *restrict scores, int n, int own, int squared,
                           float *restrict slopes)
{
    float sums[LANES] = {0};
    int c = 0;
    for (; c + LANES <= n; c += LANES)
#pragma omp simd
        for (int k = 0; k < LANES; k++)
            sums[k] += hinge(scores[c + k], c + k == own, squared, &slopes[c + k]);
    for (int k = 0; c < n; c++, k++)
        sums[k] += hinge(scores[c], c == own, squared, &slopes[c]);
    for (int width = LANES / 2; width; width /= 2)
        for (int k = 0; k < width; k++)
            sums[k] += sums[k + width];
    return sums[0];
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

DRPS_KERNEL(double, drps_hinges_sum,
            (enum drps_loss loss, const float *scores, const float *labels, size_t n,
             size_t outputs, float *slopes),
            (loss, scores, labels, n, outputs, slopes))
{
    const int squared = loss == DRPS_LOSS_SQUARED_HINGE;
    double total = 0;
    for (size_t s = 0; s < n; s++)
        total += one(scores + s * outputs, labels[s], (int)outputs, squared,
                     slopes ? slopes + s * outputs : NULL);
    return total;
}
