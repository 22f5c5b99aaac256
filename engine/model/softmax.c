/*
 * Softmax: of a sample's scores s, one a class, and the class y of its label
 *   loss = log(sum of exp(s - m)) + m - s[y],   slope = exp(s - m) / sum of exp(s - m) - (c == y)
 * with the largest score m, so that nothing overflows. Exponentials are float vectors, losses are
 * summed in double.
 */
#include <math.h>

#include "engine/model/drps_model.h"
#include "engine/model/exp.h"

static float largest(const float *scores, size_t n)
{
    float most = scores[0];
    for (size_t c = 1; c < n; c++)
        most = scores[c] > most ? scores[c] : most;
    return most;
}

/* Returns the sum of exp(score - most); terms [n] get its parts. */
static float exponentials(const float *restrict scores, size_t n, float most, float *restrict terms)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (size_t c = 0; c < n; c++) {
        terms[c] = exp_negative(scores[c] - most);
        sum += terms[c];
    }
    return sum;
}

static float sum_of_exponentials(const float *scores, size_t n, float most)
{
    enum { RUN = 64 };
    float terms[RUN], sum = 0;
    for (size_t c = 0; c < n; c += RUN)
        sum += exponentials(scores + c, n - c < RUN ? n - c : RUN, most, terms);
    return sum;
}

static int is_class(float label, size_t outputs)
{
    return label >= 0 && label < (float)outputs;
}

static double one(const float *scores, float label, size_t outputs, float *slopes)
{
    const float most = largest(scores, outputs);
    const float sum = slopes ? exponentials(scores, outputs, most, slopes)
                             : sum_of_exponentials(scores, outputs, most);
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

double drps_softmax_sum(const float *scores, const float *labels, size_t n, size_t outputs,
                        float *slopes)
{
    double total = 0;
    for (size_t s = 0; s < n; s++)
        total +=
            one(scores + s * outputs, labels[s], outputs, slopes ? slopes + s * outputs : NULL);
    return total;
}

size_t drps_softmax_best(const float *scores, size_t outputs)
{
    size_t best = 0;
    for (size_t c = 1; c < outputs; c++)
        if (scores[c] > scores[best]) best = c;
    return best;
}

void drps_softmax_probabilities(const float *scores, size_t outputs, double *probabilities)
{
    const double most = (double)largest(scores, outputs);
    double sum = 0;
    for (size_t c = 0; c < outputs; c++)
        sum += probabilities[c] = exp((double)scores[c] - most);
    for (size_t c = 0; c < outputs; c++)
        probabilities[c] /= sum;
}
