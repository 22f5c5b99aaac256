/* From pass to pass: what the sums over all rows say of its point, and where the next one goes. */
#include "engine/newton/drps_newton.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "engine/newton/newton_internal.h"

enum { IDLE_MOST = 5 }; /* steps in a row that hardly change the value */

static const double FLAT = 1e-12; /* s . y of a pair that says nothing, by the sizes of both */
static const double HARDLY = 1e-12;

/* ---- The object ---- */

uint64_t drps_newton_memory(const struct drps_optim *optim, uint64_t rows, uint32_t dim)
{
    const uint64_t matrix =
        drps_optim_has_matrix(optim->kind) ? newton_matrix_memory(rows * dim) : 0;
    return matrix == UINT64_MAX ? matrix : matrix + sizeof(struct drps_newton);
}

int drps_newton_open(const struct drps_optim *optim, uint64_t rows, uint32_t dim, int has_bias,
                     const struct drps_newton_state *from, struct drps_newton **newton_out,
                     struct drps_err *err)
{
    *newton_out = NULL;
    struct drps_newton *n = calloc(1, sizeof(*n));
    if (!n) return drps_err_set(err, -ENOMEM, "no memory for %s", drps_optim_name(optim->kind));
    n->optim = *optim;
    n->rows = rows;
    n->dim = dim;
    n->has_bias = has_bias;
    n->row_bytes = drps_optim_row_floats(optim, dim) * sizeof(float);
    n->state = (struct drps_newton_state){.pass = 1, .accepts = 1, .search.high = INFINITY};
    if (from) n->state = *from;
    int rc = drps_optim_has_matrix(optim->kind)
                 ? newton_matrix_init(&n->matrix, (size_t)rows * dim, err)
                 : 0;
    if (rc < 0)
        drps_newton_close(n);
    else
        *newton_out = n;
    return rc;
}

void drps_newton_close(struct drps_newton *n)
{
    if (!n) return;
    newton_matrix_destroy(&n->matrix);
    free(n);
}

const struct drps_newton_state *drps_newton_state(const struct drps_newton *n)
{
    return &n->state;
}

int drps_newton_check_state(const struct drps_newton_state *s, const struct drps_optim *optim,
                            const char *path, struct drps_err *err)
{
    const struct drps_newton_search *at = &s->search;
    int good = s->pass >= 1 && s->pass < UINT32_MAX && s->pairs <= optim->pairs &&
               s->slot <= optim->pairs && s->slot <= s->pairs && s->end <= DRPS_NEWTON_STALLED;
    if (s->keeps) good &= s->slot < s->pairs;
    good &= isfinite(s->on_gradient) && isfinite(at->value) && isfinite(at->slope) &&
            isfinite(at->step) && isfinite(at->low) && isfinite(at->low_slope) && at->step >= 0 &&
            at->low >= 0 && at->high > at->low && isfinite(s->first_norm);
    for (uint32_t i = 0; i < DRPS_OPTIM_PAIRS_MOST; i++)
        good &= isfinite(s->on_s[i]) && isfinite(s->on_y[i]);
    if (good) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: a state that no run of %s comes to", path,
                        drps_optim_name(optim->kind));
}

/* ---- Deciding ---- */

uint32_t newton_next_slot(const struct drps_newton *n)
{
    const struct drps_newton_state *s = &n->state;
    if (s->pairs < n->optim.pairs) return s->pairs;
    return (s->slot + 1) % s->pairs;
}

/* lbfgs: the pair of the point that is accepted. Without curvature it is of no use, and all pairs
 * are forgotten, as the sums have it in the place of the oldest. */
static void keep_pair(struct drps_newton *n)
{
    struct drps_newton_state *s = &n->state;
    const uint32_t next = newton_next_slot(n);
    const uint32_t pairs = s->pairs < n->optim.pairs ? s->pairs + 1 : s->pairs, y = pairs + next;
    const double sizes = sqrt(n->sums.dot[next][next] * n->sums.dot[y][y]);
    s->keeps = n->sums.dot[next][y] > FLAT * sizes;
    s->slot = s->keeps ? next : 0;
    s->pairs = s->keeps ? pairs : 0;
}

/* Returns the slope. Where no pair is known the gradient, which sums has behind those of a pair,
 * stands alone. */
static double lbfgs_direction(struct drps_newton *n, double gradient)
{
    struct drps_newton_state *s = &n->state;
    if (s->pass > 1) keep_pair(n);
    const uint32_t oldest = s->pairs && s->pairs == n->optim.pairs ? (s->slot + 1) % s->pairs : 0;
    double slope = s->pairs ? newton_direction(n->sums.dot, s->pairs, oldest, s) : 0;
    if (slope < 0) return slope;
    s->pairs = s->slot = 0;
    s->keeps = 0;
    s->on_gradient = -1;
    return -gradient;
}

static double matrix_direction(struct drps_newton *n)
{
    newton_matrix_accept(&n->matrix, n->optim.kind, n->state.pass > 1);
    return newton_matrix_direction(&n->matrix);
}

/* The point is accepted: a new direction. Along the gradient itself the first step has length 1. */
static void accept(struct drps_newton *n, double value, double norm)
{
    struct drps_newton_state *s = &n->state;
    const int is_same = s->pass > 1 && value > s->search.value - HARDLY * fabs(value);
    s->accepts = 1;
    s->idle = is_same ? s->idle + 1 : 0;
    const double slope = n->matrix.n ? matrix_direction(n) : lbfgs_direction(n, n->sums.gradient);
    const int knows = n->matrix.n ? n->matrix.begun : s->pairs > 0;
    newton_search_begin(&s->search, value, slope, knows ? 1 : 1 / norm);
    if (s->idle == IDLE_MOST) s->end = DRPS_NEWTON_STALLED;
}

struct drps_newton_pass drps_newton_decide(struct drps_newton *n, double loss)
{
    struct drps_newton_state *s = &n->state;
    const double value = loss + (double)n->optim.l2 / 2 * n->sums.weights;
    const double norm = sqrt(n->sums.gradient), step = s->pass > 1 ? s->search.step : 0;
    struct drps_newton_pass pass = {.objective = value, .gradient_norm = norm, .step = step};
    if (s->pass == 1) s->first_norm = norm;
    s->keeps = s->accepts = 0;
    if (norm <= (double)n->optim.tolerance * s->first_norm) {
        s->accepts = 1;
        s->end = DRPS_NEWTON_CONVERGED;
    } else {
        const enum newton_verdict verdict =
            s->pass > 1 ? newton_search_judge(&s->search, value, n->sums.along / step)
                        : NEWTON_ACCEPTED;
        if (verdict == NEWTON_ACCEPTED) accept(n, value, norm);
        if (verdict == NEWTON_STUCK) s->end = DRPS_NEWTON_STALLED;
    }
    s->pass++;
    pass.accepted = (uint64_t)s->accepts;
    return pass;
}
