/* Documents are coded on the dictionary as it is before the step. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/topic/topic_internal.h"

DRPS_KERNEL(double, topic_squares, (const struct drps_batch *b, size_t sample), (b, sample))
{
    const size_t end = drps_batch_start(b, sample + 1);
    double squares = 0;
    for (size_t e = drps_batch_start(b, sample); e < end; e++)
        squares += (double)drps_batch_value(b, e) * (double)drps_batch_value(b, e);
    return squares;
}

/* q = the sum of d c over the document's words. */
static void words(const struct drps_topic *t, const struct drps_topic_step *step, size_t sample,
                  double *q)
{
    const struct drps_batch *b = step->batch;
    const size_t end = drps_batch_start(b, sample + 1);
    memset(q, 0, t->topics * sizeof(*q));
    for (size_t e = drps_batch_start(b, sample); e < end; e++) {
        const double d = (double)drps_batch_value(b, e);
        if (d == 0) continue;
        const float *c = topic_code(t, step->before, drps_batch_local(b, e));
        for (size_t j = 0; j < t->topics; j++)
            q[j] += d * (double)c[j];
    }
}

/* p = B'd, from q. */
static void correlate(const struct drps_topic *t, const double *q, double *p)
{
    const size_t n = t->topics;
    if (t->is_scorer) {
        memcpy(p, q, n * sizeof(*p));
        return;
    }
    memset(p, 0, n * sizeof(*p));
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            p[j] += q[k] * t->m[k * n + j];
}

/* What the document adds to F. */
static double objective(const struct drps_topic *t, double squares, const double *p,
                        const double *a, const double *ha)
{
    double sum = squares / 2;
    for (size_t j = 0; j < t->topics; j++)
        sum += a[j] * (ha[j] / 2 - p[j] + t->options.l1);
    return sum;
}

/* Returns the topic that the sample begins; J: none. */
static size_t seed_of(const struct drps_topic *t, size_t sample)
{
    for (size_t i = 0; i < t->seeds_n; i++)
        if (t->seeds[i] == sample) return topic_of_seed(t, t->first_seed + i);
    return t->topics;
}

/* The document's row after the step. The first float says that it is a document's, also where the
 * square is too small for a float. */
static void put_row(const struct drps_topic *t, float *row, double squares, const double *a,
                    size_t seed)
{
    row[0] = squares > 0 ? fmaxf((float)squares, FLT_MIN) : 0;
    for (size_t j = 0; j < t->topics; j++)
        row[1 + j] = seed < t->topics ? 0 : (float)a[j];
    if (seed < t->topics) row[1 + seed] = (float)sqrt(squares);
}

static void code_one(struct drps_topic *t, const struct drps_topic_step *step, size_t sample,
                     double *scratch)
{
    const size_t n = t->topics;
    double *q = scratch, *p = q + n, *a = p + n, *ha = a + n;
    const size_t own = step->after ? drps_batch_sample_row(step->batch, sample) : step->batch->rows;
    const int has_row = own < step->batch->rows;
    const double squares = topic_squares(step->batch, sample);
    words(t, step, sample, q);
    correlate(t, q, p);
    for (size_t j = 0; j < n; j++)
        a[j] = has_row ? (double)topic_code(t, step->before, own)[j] : 0;
    topic_solve(n, t->h, p, t->options.l1, squares, a, ha);
    step->scores[sample] = (float)objective(t, squares, p, a, ha);
    if (has_row) put_row(t, step->after + own * (n + 1), squares, a, seed_of(t, sample));
    for (size_t j = 0; step->codes && j < n; j++)
        step->codes[sample * n + j] = (float)a[j];
}

DRPS_KERNEL(void, topic_code_documents,
            (struct drps_topic * t, const struct drps_topic_step *step, unsigned member),
            (t, step, member))
{
    double *scratch = t->member + (size_t)member * 4 * t->topics;
    for (size_t s = member; s < step->batch->samples; s += t->options.members)
        code_one(t, step, s, scratch);
}
