/* A + penalty I = L L'; then L y = b and L' x = y (Golub and Van Loan, Matrix Computations, section
 * 4.2). The lower triangle is overwritten by L. */
#include "engine/recommend/math/drps_solve.h"

#include <float.h>
#include <math.h>
#include <string.h>

void drps_normal_clear(struct drps_normal *s)
{
    s->n = 0;
    memset(s->matrix, 0, s->d * s->d * sizeof(*s->matrix));
    memset(s->right, 0, s->d * sizeof(*s->right));
}

void drps_normal_add(struct drps_normal *s, const float *rest, double y)
{
    s->n++;
    s->matrix[0] += 1;
    s->right[0] += y;
    for (size_t i = 1; i < s->d; i++) {
        const double z = (double)rest[i - 1];
        double *row = s->matrix + i * s->d;
        row[0] += z;
        for (size_t k = 1; k <= i; k++)
            row[k] += z * (double)rest[k - 1];
        s->right[i] += y * z;
    }
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* Returns 0 where a pivot is lost in rounding. */
static int decompose(double *matrix, size_t d)
{
    for (size_t i = 0; i < d; i++) {
        double *row = matrix + i * d;
        for (size_t k = 0; k < i; k++)
            row[k] = (row[k] - dot(row, matrix + k * d, k)) / matrix[k * d + k];
        const double pivot = row[i] - dot(row, row, i);
        if (!(pivot > row[i] * (double)d * DBL_EPSILON) || !isfinite(pivot)) return 0;
        row[i] = sqrt(pivot);
    }
    return 1;
}

int drps_normal_solve(struct drps_normal *s, double penalty)
{
    const size_t d = s->d;
    double *x = s->right;
    if (!s->n) return 1; /* x is 0 */
    for (size_t i = 0; i < d; i++)
        s->matrix[i * d + i] += penalty;
    if (!decompose(s->matrix, d)) return 0;
    for (size_t i = 0; i < d; i++)
        x[i] = (x[i] - dot(s->matrix + i * d, x, i)) / s->matrix[i * d + i];
    for (size_t i = d; i-- > 0;) {
        for (size_t k = i + 1; k < d; k++)
            x[i] -= s->matrix[k * d + i] * x[k];
        x[i] /= s->matrix[i * d + i];
    }
    return 1;
}
