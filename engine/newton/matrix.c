/* Updates of the inverse Hessian by rank one or two, for bfgs, dfp, sr1 and broyden. */
#include "engine/newton/matrix.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VECTORS = 7, PARAMETERS_MOST = 1 << 24 };

static const double FLAT = 1e-12, SR1_LEAST = 1e-8;

uint64_t newton_matrix_memory(uint64_t n)
{
    return n > PARAMETERS_MOST ? UINT64_MAX : (n + VECTORS) * n * sizeof(double);
}

int newton_matrix_init(struct newton_matrix *m, size_t n, struct drps_err *err)
{
    double **const vectors[VECTORS] = {
        &m->gradient, &m->direction, &m->point_gradient, &m->s, &m->y, &m->hy, &m->sh};
    memset(m, 0, sizeof(*m));
    if (n > PARAMETERS_MOST)
        return drps_err_set(err, -ENOMEM, "a matrix of %zu x %zu is too large", n, n);
    m->h = calloc((n + VECTORS) * n, sizeof(*m->h));
    if (!m->h) return drps_err_set(err, -ENOMEM, "no memory for a matrix of %zu x %zu", n, n);
    for (size_t i = 0; i < VECTORS; i++)
        *vectors[i] = m->h + (n + i) * n;
    m->n = n;
    return 0;
}

void newton_matrix_destroy(struct newton_matrix *m)
{
    free(m->h);
    memset(m, 0, sizeof(*m));
}

/* ---- Arithmetic, in a fixed order ---- */

static double dot(size_t n, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* out = H v */
static void multiply(const struct newton_matrix *m, const double *v, double *out)
{
    for (size_t i = 0; i < m->n; i++)
        out[i] = dot(m->n, m->h + i * m->n, v);
}

/* out = v' H */
static void multiply_left(const struct newton_matrix *m, const double *v, double *out)
{
    memset(out, 0, m->n * sizeof(*out));
    for (size_t i = 0; i < m->n; i++)
        for (size_t j = 0; j < m->n; j++)
            out[j] += v[i] * m->h[i * m->n + j];
}

/* H += c a b' */
static void add_outer(struct newton_matrix *m, double c, const double *a, const double *b)
{
    for (size_t i = 0; i < m->n; i++)
        for (size_t j = 0; j < m->n; j++)
            m->h[i * m->n + j] += c * a[i] * b[j];
}

/* ---- Updates: hy = H y ---- */

static void bfgs(struct newton_matrix *m, double sy)
{
    const double yhy = dot(m->n, m->y, m->hy);
    add_outer(m, (1 + yhy / sy) / sy, m->s, m->s);
    add_outer(m, -1 / sy, m->hy, m->s);
    add_outer(m, -1 / sy, m->s, m->hy);
}

static void dfp(struct newton_matrix *m, double sy)
{
    add_outer(m, 1 / sy, m->s, m->s);
    add_outer(m, -1 / dot(m->n, m->y, m->hy), m->hy, m->hy);
}

/* hy becomes the residual s - H y; where it is nearly at right angles to y nothing is learned. */
static void sr1(struct newton_matrix *m)
{
    const double *r = m->hy;
    for (size_t i = 0; i < m->n; i++)
        m->hy[i] = m->s[i] - m->hy[i];
    const double ry = dot(m->n, r, m->y);
    const double sizes = sqrt(dot(m->n, r, r) * dot(m->n, m->y, m->y));
    if (fabs(ry) > SR1_LEAST * sizes) add_outer(m, 1 / ry, r, r);
}

static void broyden(struct newton_matrix *m)
{
    const double shy = dot(m->n, m->s, m->hy);
    const double sizes = sqrt(dot(m->n, m->s, m->s) * dot(m->n, m->hy, m->hy));
    multiply_left(m, m->s, m->sh);
    for (size_t i = 0; i < m->n; i++)
        m->hy[i] = m->s[i] - m->hy[i];
    if (fabs(shy) > SR1_LEAST * sizes) add_outer(m, 1 / shy, m->hy, m->sh);
}

/* The first matrix is the identity times what the curvature along s is. */
static void begin(struct newton_matrix *m, double sy)
{
    const double scale = sy / dot(m->n, m->y, m->y);
    memset(m->h, 0, m->n * m->n * sizeof(*m->h));
    for (size_t i = 0; i < m->n; i++)
        m->h[i * m->n + i] = scale;
    m->begun = 1;
}

/* Where H is too small along y, all of it grows: updates correct that slowly (Al-Baali 1998). */
static void enlarge(struct newton_matrix *m, double sy)
{
    const double yhy = dot(m->n, m->y, m->hy), scale = sy / yhy;
    if (!(yhy > 0) || !(scale > 1)) return;
    for (size_t i = 0; i < m->n * m->n; i++)
        m->h[i] *= scale;
    for (size_t i = 0; i < m->n; i++)
        m->hy[i] *= scale;
}

static void take_pair(struct newton_matrix *m, enum drps_optim_kind kind)
{
    for (size_t i = 0; i < m->n; i++)
        m->y[i] = m->point_gradient[i] - m->gradient[i];
    const double sy = dot(m->n, m->s, m->y);
    const double sizes = sqrt(dot(m->n, m->s, m->s) * dot(m->n, m->y, m->y));
    if (!(sy > FLAT * sizes)) {
        m->begun = 0;
        return;
    }
    if (!m->begun) begin(m, sy);
    multiply(m, m->y, m->hy);
    if (kind == DRPS_OPTIM_BFGS || kind == DRPS_OPTIM_DFP) enlarge(m, sy);
    switch (kind) {
    case DRPS_OPTIM_DFP:
        dfp(m, sy);
        break;
    case DRPS_OPTIM_SR1:
        sr1(m);
        break;
    case DRPS_OPTIM_BROYDEN:
        broyden(m);
        break;
    default:
        bfgs(m, sy);
        break;
    }
}

void newton_matrix_accept(struct newton_matrix *m, enum drps_optim_kind kind, int pair)
{
    if (pair) take_pair(m, kind);
    memcpy(m->gradient, m->point_gradient, m->n * sizeof(*m->gradient));
}

double newton_matrix_direction(struct newton_matrix *m)
{
    if (m->begun) {
        multiply(m, m->gradient, m->direction);
        for (size_t i = 0; i < m->n; i++)
            m->direction[i] = -m->direction[i];
        const double slope = dot(m->n, m->gradient, m->direction);
        if (slope < 0) return slope;
        m->begun = 0;
    }
    for (size_t i = 0; i < m->n; i++)
        m->direction[i] = -m->gradient[i];
    return -dot(m->n, m->gradient, m->gradient);
}
