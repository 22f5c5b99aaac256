/* Cholesky factors of several Gram matrices, whose pivots are drawn from what is left of all. */
#include "engine/cluster/sv/select/drps_jmcss.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/drps_rng.h"

/* A vector with less than this share of its squared norm left adds no direction to its matrix. */
static const double least_share = 1e-9;
/* No product above this share of the largest one at the beginning: nothing is left to choose. */
static const double least_product = 1e-10;

/* What is left of one matrix. */
struct factor {
    const double *gram;
    double *left;    /* [n] squared norms */
    double *columns; /* [count][n] of the factor */
    double *scale;   /* 1 / the largest squared norm at the beginning: products stay finite */
};

struct work {
    const struct drps_jmcss *j;
    double *weights; /* [n] products of what is left; 0: chosen, or nothing is */
    double *taken;   /* [n] 1: chosen */
    double *memory;  /* of factors: their [count + 1][n] one after the other */
    double first;    /* the largest weight at the beginning */
};

static uint32_t choices(const struct drps_jmcss *j)
{
    return j->count < j->n ? j->count : j->n;
}

/* Doubles of one factor. */
static size_t factor_doubles(const struct drps_jmcss *j)
{
    return ((size_t)choices(j) + 1) * j->n + 1;
}

size_t drps_jmcss_scratch(const struct drps_jmcss *j)
{
    return (factor_doubles(j) * j->matrices + 2 * (size_t)j->n) * sizeof(double);
}

static struct factor factor_of(const struct work *w, uint32_t m)
{
    double *at = w->memory + m * factor_doubles(w->j);
    return (struct factor){w->j->grams[m], at + 1, at + 1 + w->j->n, at};
}

/* ---- Weights ---- */

static void weigh(struct work *w)
{
    const size_t n = w->j->n;
    for (size_t k = 0; k < n; k++)
        w->weights[k] = 1 - w->taken[k];
    for (uint32_t m = 0; m < w->j->matrices; m++) {
        const struct factor f = factor_of(w, m);
        for (size_t k = 0; k < n; k++)
            w->weights[k] *= f.left[k] * *f.scale;
    }
}

static double largest(const double *values, size_t n)
{
    double most = 0;
    for (size_t k = 0; k < n; k++)
        most = values[k] > most ? values[k] : most;
    return most;
}

static int begin(struct work *w, struct drps_err *err)
{
    const size_t n = w->j->n;
    for (uint32_t m = 0; m < w->j->matrices; m++) {
        const struct factor f = factor_of(w, m);
        for (size_t k = 0; k < n; k++) {
            f.left[k] = f.gram[k * n + k];
            if (!isfinite(f.left[k]))
                return drps_err_set(err, -EDOM,
                                    "sufficient vector %zu of %zu holds a value that is not "
                                    "finite: training diverges; a lower learning rate may help",
                                    k, n);
        }
        const double most = largest(f.left, n);
        *f.scale = most > 0 ? 1 / most : 0;
    }
    memset(w->taken, 0, n * sizeof(double));
    weigh(w);
    w->first = largest(w->weights, n);
    return 0;
}

/* ---- Choosing ---- */

/* The index at which the running sum of the weights passes r, 0 <= r < their sum. */
static uint32_t at_sum(const double *weights, uint32_t n, double r)
{
    uint32_t last = 0;
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (weights[k] <= 0) continue;
        last = k;
        sum += weights[k];
        if (sum > r) break;
    }
    return last;
}

static uint32_t draw(const double *weights, uint32_t n, uint64_t bits)
{
    double sum = 0;
    for (uint32_t k = 0; k < n; k++)
        sum += weights[k];
    return at_sum(weights, n, drps_unit_double(bits) * sum);
}

static uint32_t first_largest(const double *weights, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t k = 1; k < n; k++)
        if (weights[k] > weights[at]) at = k;
    return at;
}

/* ---- Projecting ---- */

/* Column t of the factor, whose pivot is i; what it explains is no longer left. */
static void project_out(const struct factor *f, size_t n, uint32_t t, uint32_t i)
{
    double *column = f->columns + t * n;
    const double pivot = f->left[i];
    if (!(pivot > least_share * f->gram[i * n + i])) {
        memset(column, 0, n * sizeof(double));
        return;
    }
    memcpy(column, f->gram + i * n, n * sizeof(double));
    for (uint32_t s = 0; s < t; s++) {
        const double *before = f->columns + s * n, by = before[i];
        for (size_t k = 0; k < n; k++)
            column[k] -= before[k] * by;
    }
    const double share = 1 / sqrt(pivot);
    for (size_t k = 0; k < n; k++) {
        column[k] *= share;
        const double left = f->left[k] - column[k] * column[k];
        f->left[k] = left > 0 ? left : 0;
    }
}

static void take(struct work *w, uint32_t t, uint32_t i)
{
    w->taken[i] = 1;
    for (uint32_t m = 0; m < w->j->matrices; m++) {
        const struct factor f = factor_of(w, m);
        project_out(&f, w->j->n, t, i);
    }
    weigh(w);
}

static void tell_residuals(const struct work *w, double *residuals_out)
{
    for (uint32_t m = 0; residuals_out && m < w->j->matrices; m++)
        memcpy(residuals_out + (size_t)m * w->j->n, factor_of(w, m).left, w->j->n * sizeof(double));
}

/* Chooses the rest with equal probabilities, from choice t on. */
static void fill(struct work *w, uint32_t t, uint32_t *picks)
{
    for (uint32_t k = 0; k < w->j->n; k++)
        w->weights[k] = 1 - w->taken[k];
    for (; t < choices(w->j); t++) {
        picks[t] = draw(w->weights, w->j->n, drps_rng_at(w->j->seed, t));
        w->weights[picks[t]] = 0;
    }
}

int drps_jmcss(const struct drps_jmcss *j, void *scratch, uint32_t *picks_out, uint32_t *drawn_out,
               double *residuals_out, struct drps_err *err)
{
    double *doubles = scratch;
    struct work w = {.j = j, .weights = doubles, .taken = doubles + j->n};
    uint32_t t = 0;
    w.memory = doubles + 2 * (size_t)j->n;
    *drawn_out = 0;
    int rc = begin(&w, err);
    if (rc < 0) return rc;
    for (; t < choices(j) && largest(w.weights, j->n) > least_product * w.first; t++) {
        picks_out[t] = j->largest ? first_largest(w.weights, j->n)
                                  : draw(w.weights, j->n, drps_rng_at(j->seed, t));
        take(&w, t, picks_out[t]);
    }
    *drawn_out = t;
    tell_residuals(&w, residuals_out);
    fill(&w, t, picks_out);
    return 0;
}
