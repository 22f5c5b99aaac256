/* Projection, some columns of the new u at a time: what is between lies in double. */
#include "engine/cluster/sv/select/project.h"

#include <math.h>

enum { BLOCK = 64 }; /* columns of the u at a time */
static const double ridge = 1e-6;

size_t projection_block_bytes(uint32_t count)
{
    return (size_t)count * BLOCK * sizeof(double);
}

/* Columns [from, from + width) of the u. */
struct columns {
    size_t from, width;
};

static struct columns columns_at(const struct projection *p, size_t from)
{
    const size_t left = p->batch->dim - from;
    return (struct columns){from, left < BLOCK ? left : BLOCK};
}

static double *block_row(const struct projection *p, uint32_t c)
{
    return p->block + (size_t)c * BLOCK;
}

/* ---- The system of equations ---- */

static double gram_of_picks(const struct projection *p, uint32_t c, uint32_t d)
{
    return p->gram_x[(size_t)p->picks[c] * p->batch->n + p->picks[d]];
}

static double ridge_of(const struct projection *p)
{
    double most = 0;
    for (uint32_t c = 0; c < p->count; c++)
        most = fmax(most, gram_of_picks(p, c, c));
    return ridge * most;
}

/* 0 where it is not positive definite: all chosen x are zero, or too many are alike. */
static int factorise(const struct projection *p)
{
    const uint32_t n = p->count;
    const double r = ridge_of(p);
    double *l = p->factor;
    for (uint32_t c = 0; c < n; c++) {
        for (uint32_t d = 0; d <= c; d++) {
            double sum = gram_of_picks(p, c, d) + (c == d ? r : 0);
            for (uint32_t k = 0; k < d; k++)
                sum -= l[(size_t)c * n + k] * l[(size_t)d * n + k];
            if (c == d && !(sum > 0)) return 0;
            l[(size_t)c * n + d] = c == d ? sqrt(sum) : sum / l[(size_t)d * n + d];
        }
    }
    return 1;
}

/* row -= by * other */
static void subtract(double *row, double by, const double *other, size_t width)
{
    for (size_t k = 0; k < width; k++)
        row[k] -= by * other[k];
}

static void divide(double *row, double by, size_t width)
{
    for (size_t k = 0; k < width; k++)
        row[k] /= by;
}

/* The block becomes the solution of which it is the right side. */
static void solve(const struct projection *p, size_t width)
{
    const uint32_t n = p->count;
    const double *l = p->factor;
    for (uint32_t c = 0; c < n; c++) {
        for (uint32_t d = 0; d < c; d++)
            subtract(block_row(p, c), l[(size_t)c * n + d], block_row(p, d), width);
        divide(block_row(p, c), l[(size_t)c * n + c], width);
    }
    for (uint32_t c = n; c-- > 0;) {
        for (uint32_t d = c + 1; d < n; d++)
            subtract(block_row(p, c), l[(size_t)d * n + c], block_row(p, d), width);
        divide(block_row(p, c), l[(size_t)c * n + c], width);
    }
}

/* ---- The batch's gradient ---- */

/* S V' U */
static void take_gradient(const struct projection *p, struct columns at)
{
    const struct drps_vectors *v = p->batch;
    for (uint32_t c = 0; c < p->count; c++) {
        double *row = block_row(p, c);
        for (size_t k = 0; k < at.width; k++)
            row[k] = 0;
        for (size_t i = 0; i < v->n; i++) {
            const double by = p->gram_x[(size_t)p->picks[c] * v->n + i];
            const float *u = v->u + i * v->dim + at.from;
            for (size_t k = 0; by != 0 && k < at.width; k++)
                row[k] += by * (double)u[k];
        }
    }
}

/* Sum over the picks of the block's row times the new u. */
static double inner(const struct projection *p, struct columns at, const float *u)
{
    double sum = 0;
    for (uint32_t c = 0; c < p->count; c++)
        for (size_t k = 0; k < at.width; k++)
            sum += block_row(p, c)[k] * (double)u[(size_t)c * p->batch->dim + at.from + k];
    return sum;
}

static void write_solution(const struct projection *p, struct columns at, float *u_out)
{
    for (uint32_t c = 0; c < p->count; c++)
        for (size_t k = 0; k < at.width; k++)
            u_out[(size_t)c * p->batch->dim + at.from + k] = (float)block_row(p, c)[k];
}

/* S S' U' */
static void take_back(const struct projection *p, struct columns at, const float *u)
{
    for (uint32_t c = 0; c < p->count; c++) {
        double *row = block_row(p, c);
        for (size_t k = 0; k < at.width; k++)
            row[k] = 0;
        for (uint32_t d = 0; d < p->count; d++) {
            const double by = gram_of_picks(p, c, d);
            const float *other = u + (size_t)d * p->batch->dim + at.from;
            for (size_t k = 0; k < at.width; k++)
                row[k] += by * (double)other[k];
        }
    }
}

static double squared_norm(const struct projection *p)
{
    const size_t n = p->batch->n;
    double sum = 0;
    for (size_t i = 0; i < n * n; i++)
        sum += p->gram_u[i] * p->gram_x[i];
    return sum;
}

/* |dW - U'S|^2 = |dW|^2 - 2 <S V' U, U'> + <S S' U', U'> */
double project(const struct projection *p, float *u_out)
{
    const double all = squared_norm(p);
    double gained = 0;
    if (!factorise(p)) return 0;
    for (size_t from = 0; from < p->batch->dim; from += BLOCK) {
        const struct columns at = columns_at(p, from);
        take_gradient(p, at);
        solve(p, at.width);
        write_solution(p, at, u_out);
        take_gradient(p, at);
        gained += 2 * inner(p, at, u_out);
        take_back(p, at, u_out);
        gained -= inner(p, at, u_out);
    }
    return all > 0 ? gained / all : 1;
}

/* ---- What earlier projections left wrong ---- */

/* S E */
static void take_error(const struct projection *p, struct columns at, const float *error)
{
    const struct drps_vectors *v = p->batch;
    for (uint32_t c = 0; c < p->count; c++) {
        double *row = block_row(p, c);
        for (size_t k = 0; k < at.width; k++)
            row[k] = 0;
        for (uint32_t e = v->first[p->picks[c]]; e < v->first[p->picks[c] + 1]; e++) {
            const float *from = error + (size_t)v->ids[e] * v->dim + at.from;
            for (size_t k = 0; k < at.width; k++)
                row[k] += (double)v->values[e] * (double)from[k];
        }
    }
}

static void add_solution(const struct projection *p, struct columns at, float *u)
{
    for (uint32_t c = 0; c < p->count; c++)
        for (size_t k = 0; k < at.width; k++)
            u[(size_t)c * p->batch->dim + at.from + k] += (float)block_row(p, c)[k];
}

/* error += by * u x' of sample i */
static void add_outer(const struct drps_vectors *v, uint32_t i, const float *u, float by,
                      float *error)
{
    for (uint32_t e = v->first[i]; e < v->first[i + 1]; e++) {
        float *row = error + (size_t)v->ids[e] * v->dim;
        const float value = by * v->values[e];
        for (size_t k = 0; k < v->dim; k++)
            row[k] += value * u[k];
    }
}

void project_error(const struct projection *p, float *error, float *u_out)
{
    const struct drps_vectors *v = p->batch;
    for (size_t from = 0; from < v->dim; from += BLOCK) {
        const struct columns at = columns_at(p, from);
        take_error(p, at, error);
        solve(p, at.width);
        add_solution(p, at, u_out);
    }
    for (uint32_t i = 0; i < v->n; i++)
        add_outer(v, i, v->u + (size_t)i * v->dim, 1, error);
    for (uint32_t c = 0; c < p->count; c++)
        add_outer(v, p->picks[c], u_out + (size_t)c * v->dim, -1, error);
}
