/* What rows do in a pass: move to its point when it opens them first, sum gradients, and, at any
 * time, show the accepted parameters. */
#include <math.h>

#include "engine/newton/newton_internal.h"

enum { FAR = 32 }; /* rows ahead whose first cache lines are requested */

void drps_newton_number(const struct drps_optim *optim, uint32_t dim, uint64_t first, size_t n,
                        void *rows)
{
    const size_t row_bytes = drps_optim_row_floats(optim, dim) * sizeof(float);
    for (size_t i = 0; drps_optim_has_matrix(optim->kind) && i < n; i++)
        newton_set_u32((char *)rows + i * row_bytes, dim, LANE_OWN, (uint32_t)(first + i));
}

/* lbfgs: accept the point, with its pair. */
static void accept(const struct drps_newton_state *s, uint32_t dim, float *row, size_t d, double l2)
{
    const double g = newton_gradient(row, dim, d, l2);
    float *const own = &row[LANE_OWN * dim + d], *const accepted = &row[LANE_ACCEPTED * dim + d];
    float *const pair = row + (LANE_PAIRS + 2 * (size_t)s->slot) * dim + d;
    if (s->keeps) {
        pair[0] = row[d] - *accepted;
        pair[dim] = (float)(g - (double)*own);
    }
    *own = (float)g;
    *accepted = row[d];
}

/* lbfgs: float d of the direction. */
static double towards(const struct drps_newton_state *s, uint32_t dim, const float *row, size_t d)
{
    const float *pair = row + LANE_PAIRS * dim + d;
    double sum = s->on_gradient * (double)row[LANE_OWN * dim + d];
    for (uint32_t k = 0; k < s->pairs; k++, pair += 2 * dim)
        sum += s->on_s[k] * (double)pair[0] + s->on_y[k] * (double)pair[dim];
    return sum;
}

/* A matrix: the same; a row that has lost its number leads nowhere. */
static double towards_by_matrix(const struct drps_newton *n, const float *row, size_t d)
{
    const uint32_t number = newton_u32(row, n->dim, LANE_OWN);
    return number < n->rows ? n->matrix.direction[(size_t)number * n->dim + d] : (double)NAN;
}

static void move(const struct drps_newton *n, float *row, double l2)
{
    const struct drps_newton_state *s = &n->state;
    const uint32_t dim = n->dim;
    const int has_matrix = n->matrix.n != 0;
    for (size_t d = 0; d < dim; d++) {
        float *const accepted = &row[LANE_ACCEPTED * dim + d];
        if (s->accepts && has_matrix)
            *accepted = row[d];
        else if (s->accepts)
            accept(s, dim, row, d, l2);
        const double to = has_matrix ? towards_by_matrix(n, row, d) : towards(s, dim, row, d);
        row[d] = (float)((double)*accepted + s->search.step * to);
        row[LANE_SUM * dim + d] = row[LANE_REST * dim + d] = 0;
    }
    newton_set_u32(row, dim, LANE_MARK, (uint32_t)s->pass);
}

void drps_newton_open_rows(const struct drps_newton *n, const struct drps_rows *rows, size_t first,
                           size_t last, float *params)
{
    const uint32_t dim = n->dim, pass = (uint32_t)n->state.pass;
    for (size_t i = first; i < last; i++) {
        if (last - i > FAR) __builtin_prefetch(drps_row_at(rows, i + FAR), 1);
        float *row = drps_row_at(rows, i);
        if (newton_u32(row, dim, LANE_MARK) != pass)
            move(n, row, n->has_bias && i == 0 ? 0 : (double)n->optim.l2);
        memcpy(params + i * dim, row, dim * sizeof(*row));
    }
}

/* sum + rest += g, without losing what rounding takes (Knuth's two-sum). */
static void add_exactly(float *sum, float *rest, float g)
{
    const float before = *sum, after = before + g, added = after - before;
    *rest += (before - (after - added)) + (g - added);
    *sum = after;
}

void drps_newton_add(const struct drps_newton *n, const struct drps_rows *rows, size_t first,
                     size_t last, const float *grads)
{
    const uint32_t dim = n->dim;
    for (size_t i = first; i < last; i++) {
        if (last - i > FAR) __builtin_prefetch(drps_row_at(rows, i + FAR), 1);
        float *row = drps_row_at(rows, i);
        for (size_t d = 0; d < dim; d++)
            add_exactly(&row[LANE_SUM * dim + d], &row[LANE_REST * dim + d], grads[i * dim + d]);
    }
}

/* ---- Accepted parameters ---- */

size_t drps_newton_accepted_bytes(const struct drps_newton *n)
{
    return (LANE_MARK + 1) * (size_t)n->dim * sizeof(float);
}

/* The lane that has them: a row that no pass has moved is as it began; one that this pass has moved
 * is under trial. */
static size_t accepted_lane(const struct drps_newton *n, const void *row)
{
    const uint32_t mark = newton_u32(row, n->dim, LANE_MARK);
    if (!mark) return LANE_POINT;
    if (mark == (uint32_t)n->state.pass) return LANE_ACCEPTED;
    return n->state.accepts ? LANE_POINT : LANE_ACCEPTED;
}

int drps_newton_visit_accepted(void *ctx, uint64_t first, size_t n, const void *rows,
                               struct drps_err *err)
{
    const struct drps_newton_visit *v = ctx;
    const char *row = rows;
    for (size_t i = 0, run; i < n; i += run) {
        const size_t lane = accepted_lane(v->newton, row + i * v->newton->row_bytes);
        for (run = 1; i + run < n; run++)
            if (accepted_lane(v->newton, row + (i + run) * v->newton->row_bytes) != lane) break;
        int rc = v->visit(v->ctx, first + i, run,
                          newton_lane(row + i * v->newton->row_bytes, v->newton->dim, lane), err);
        if (rc) return rc;
    }
    return 0;
}
