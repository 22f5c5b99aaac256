/* The two small problems of a step: a positive definite inverse, and one document's code. */
#include <math.h>
#include <string.h>

#include "base/kernel/drps_level.h"
#include "engine/topic/topic_internal.h"

enum { SWEEPS_MOST = 1000 };

static const double ENOUGH = 1e-12; /* of a document's scale, for a sweep's largest gain */
static const double DEAD = 1e-12;   /* a topic's |b|^2, by the largest of them: it is not used */

/* Lower Cholesky factor of a + rho I into l, whose pivots cannot be below rho. */
static void factor(size_t n, const double *a, double rho, double *l)
{
    memset(l, 0, n * n * sizeof(*l));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= l[i * n + k] * l[j * n + k];
            if (i == j)
                l[i * n + i] = sqrt(sum > 0 ? sum + rho : rho);
            else
                l[i * n + j] = sum / l[j * n + j];
        }
}

/* The inverse of l, lower triangular, in its place; row by row. */
static void invert_lower(size_t n, double *l)
{
    for (size_t i = 0; i < n; i++) {
        double *row = l + i * n;
        const double pivot = 1 / row[i];
        for (size_t j = 0; j < i; j++) {
            double sum = 0;
            for (size_t k = j; k < i; k++)
                sum += row[k] * l[k * n + j];
            row[j] = -sum * pivot;
        }
        row[i] = pivot;
    }
}

DRPS_KERNEL(void, topic_inverse,
            (size_t topics, const double *a, double rho, double *m, double *work),
            (topics, a, rho, m, work))
{
    const size_t n = topics;
    factor(n, a, rho, work);
    invert_lower(n, work);
    memset(m, 0, n * n * sizeof(*m));
    for (size_t k = 0; k < n; k++) /* m = l^-T l^-1 */
        for (size_t i = 0; i <= k; i++) {
            const double x = work[k * n + i];
            for (size_t j = 0; j <= k; j++)
                m[i * n + j] += x * work[k * n + j];
        }
}

static double largest(size_t topics, const double *h)
{
    double most = 0;
    for (size_t j = 0; j < topics; j++)
        most = h[j * topics + j] > most ? h[j * topics + j] : most;
    return most;
}

/* Best value of a[j], the others fixed. */
static double best(double a, double slope, double curvature)
{
    const double x = a - slope / curvature;
    return x > 0 ? x : 0;
}

DRPS_KERNEL(void, topic_solve,
            (size_t topics, const double *h, const double *p, double l1, double scale, double *a,
             double *ha),
            (topics, h, p, l1, scale, a, ha))
{
    const double dead = DEAD * largest(topics, h);
    memset(ha, 0, topics * sizeof(*ha));
    for (size_t j = 0; j < topics; j++) {
        if (!(h[j * topics + j] > dead)) a[j] = 0;
        for (size_t k = 0; a[j] != 0 && k < topics; k++)
            ha[k] += a[j] * h[j * topics + k];
    }
    for (unsigned sweep = 0; sweep < SWEEPS_MOST; sweep++) {
        double most = 0;
        for (size_t j = 0; j < topics; j++) {
            const double *row = h + j * topics;
            if (!(row[j] > dead)) continue;
            const double step = best(a[j], ha[j] - p[j] + l1, row[j]) - a[j];
            if (step == 0) continue;
            a[j] += step;
            for (size_t k = 0; k < topics; k++)
                ha[k] += step * row[k];
            most = fmax(most, row[j] * step * step);
        }
        if (!(most > ENOUGH * scale)) return;
    }
}
