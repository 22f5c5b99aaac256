/*
 * Softmax: of a sample's scores s, one a class, and the class y of its label
 *   loss = log(sum of exp(s - m)) + m - s[y],   slope = exp(s - m) / sum of exp(s - m) - (c == y)
 * with the largest score m, so that nothing overflows. Exponentials are float vectors, losses are
 * summed in double.
 */
#include <math.h>
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/model/drps_model.h"
#include "engine/model/math/drps_exp.h"

/* Exponentials go by so many: the order of a sum does not depend on the machine's vectors. */
enum { LANES = 16 };

/* The largest score, NaN aside. */
static float largest(const float *scores, size_t n)
{
    float lanes[LANES], most = scores[0];
    size_t c = 0;
    for (size_t k = 0; k < LANES; k++)
        lanes[k] = -INFINITY;
    for (; c + LANES <= n; c += LANES)
        for (size_t k = 0; k < LANES; k++)
            lanes[k] = scores[c + k] > lanes[k] ? scores[c + k] : lanes[k];
    for (; c < n; c++)
        most = scores[c] > most ? scores[c] : most;
    for (size_t k = 0; k < LANES; k++)
        most = lanes[k] > most ? lanes[k] : most;
    return most;
}

/* terms [LANES] = exp(score - most), which is added to sums. */
static inline void add_exponentials(const float *restrict scores, float most, float *restrict terms,
                                    float *restrict sums)
{
#pragma omp simd
    for (size_t k = 0; k < LANES; k++) {
        terms[k] = exp_negative(scores[k] - most);
        sums[k] += terms[k];
    }
}

/* Returns the sum of exp(score - most); terms [n] get its parts, and may be NULL. */
static float exponentials(const float *scores, size_t n, float most, float *terms)
{
    float sums[LANES] = {0}, rest[LANES], of_rest[LANES];
    size_t c = 0;
    for (; c + LANES <= n; c += LANES)
        add_exponentials(scores + c, most, terms ? terms + c : of_rest, sums);
    if (c < n) {
        for (size_t k = 0; k < LANES; k++)
            rest[k] = k < n - c ? scores[c + k] : -INFINITY; /* whose exponential is 0 */
        add_exponentials(rest, most, of_rest, sums);
        if (terms) memcpy(terms + c, of_rest, (n - c) * sizeof(*terms));
    }
    for (size_t width = LANES / 2; width; width /= 2)
        for (size_t k = 0; k < width; k++)
            sums[k] += sums[k + width];
    return sums[0];
}

static int is_class(float label, size_t outputs)
{
    return label >= 0 && label < (float)outputs;
}

static double one(const float *scores, float label, size_t outputs, float *slopes)
{
    const float most = largest(scores, outputs);
    const float sum = exponentials(scores, outputs, most, slopes);
    if (slopes) {
        const float share = 1 / sum;
#pragma omp simd
        for (size_t c = 0; c < outputs; c++)
            slopes[c] *= share;
    }
    if (!is_class(label, outputs)) return (double)NAN;
    if (slopes) slopes[(size_t)label] -= 1;
    return log((double)sum) + ((double)most - (double)scores[(size_t)label]);
}

DRPS_KERNEL(double, drps_softmax_sum,
            (const float *scores, const float *labels, size_t n, size_t outputs, float *slopes),
            (scores, labels, n, outputs, slopes))
{
    double total = 0;
    for (size_t s = 0; s < n; s++)
        total +=
            one(scores + s * outputs, labels[s], outputs, slopes ? slopes + s * outputs : NULL);
    return total;
}

DRPS_KERNEL(size_t, drps_softmax_best, (const float *scores, size_t outputs), (scores, outputs))
{
    size_t best = 0;
    for (size_t c = 1; c < outputs; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

DRPS_KERNEL(void, drps_softmax_probabilities,
            (const float *scores, size_t outputs, double *probabilities),
            (scores, outputs, probabilities))
{
    const double most = (double)largest(scores, outputs);
    double sum = 0;
    for (size_t c = 0; c < outputs; c++)
        sum += probabilities[c] = exp((double)scores[c] - most);
    for (size_t c = 0; c < outputs; c++)
        probabilities[c] /= sum;
}
