/* Dot products of the rows' vectors after a pass, as if its point were accepted; and for a matrix
 * the vectors themselves. One row after another, in the order of their numbers. */
#include "engine/newton/newton_internal.h"

void drps_newton_sums_begin(struct drps_newton *n)
{
    memset(&n->sums, 0, sizeof(n->sums));
}

/* Pairs that rows have if the point of the pass is accepted, and its pair kept; and in which slot
 * that lies. The first pass has no pair. */
static uint32_t pairs_after(const struct drps_newton *n)
{
    const struct drps_newton_state *s = &n->state;
    return s->pass > 1 && s->pairs < n->optim.pairs ? s->pairs + 1 : s->pairs;
}

static void add_dots(struct newton_sums *sums, const double *v, uint32_t vectors)
{
    for (uint32_t i = 0; i < vectors; i++)
        for (uint32_t j = i; j < vectors; j++)
            sums->dot[i][j] += v[i] * v[j];
}

/* lbfgs: float d of all vectors; the pair of this pass takes the place that it would get. */
static void add_vectors(struct drps_newton *n, const float *row, size_t d, double g, double s)
{
    const uint32_t dim = n->dim, pairs = pairs_after(n), next = newton_next_slot(n);
    const float *pair = row + LANE_PAIRS * dim + d;
    double v[NEWTON_VECTORS_MOST];
    for (uint32_t k = 0; k < pairs; k++, pair += 2 * dim) {
        v[k] = (double)pair[0];
        v[pairs + k] = (double)pair[dim];
    }
    if (n->state.pass > 1) { /* as the row will keep it, in floats */
        v[next] = (double)(float)s;
        v[pairs + next] = (double)(float)(g - (double)row[LANE_OWN * dim + d]);
    }
    v[2 * pairs] = (double)(float)g;
    add_dots(&n->sums, v, 2 * pairs + 1);
}

static void add_row(struct drps_newton *n, uint64_t id, const float *row)
{
    const uint32_t dim = n->dim;
    const int is_intercept = n->has_bias && id == 0;
    for (size_t d = 0; d < dim; d++) {
        const double w = (double)row[d], s = w - (double)row[LANE_ACCEPTED * dim + d];
        const double g = newton_gradient(row, dim, d, is_intercept ? 0 : (double)n->optim.l2);
        if (!is_intercept) n->sums.weights += w * w;
        n->sums.gradient += g * g;
        n->sums.along += g * s;
        if (n->matrix.n) {
            n->matrix.s[(size_t)id * dim + d] = s;
            n->matrix.point_gradient[(size_t)id * dim + d] = g;
        } else {
            add_vectors(n, row, d, g, s);
        }
    }
}

int drps_newton_sums_add(void *ctx, uint64_t first, size_t n, const void *rows,
                         struct drps_err *err)
{
    struct drps_newton *newton = ctx;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const float *row =
            (const float *)(const void *)((const char *)rows + i * newton->row_bytes);
        if (newton_u32(row, newton->dim, LANE_MARK) == (uint32_t)newton->state.pass)
            add_row(newton, first + i, row);
    }
    return 0;
}
