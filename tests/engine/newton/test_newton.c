/* Quasi-Newton methods: directions against the textbook, the search along them, and whole runs on
 * quadratic functions whose rows lie in an array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "engine/newton/newton_internal.h"

static uint64_t random_state;
static double random_real(void) /* in (-1, 1) */
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int32_t)(random_state >> 32) / 2147483648.0;
}

static double dot(size_t n, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- The direction of L-BFGS ---- */

enum { N = 12 };

/* The two-loop recursion on vectors, as in Nocedal and Wright, algorithm 7.4; oldest pair first. */
static void textbook(uint32_t pairs, double s[][N], double y[][N], const double *g, double *out)
{
    double alpha[DRPS_OPTIM_PAIRS_MOST];
    memcpy(out, g, N * sizeof(*out));
    for (uint32_t i = pairs; i-- > 0;) {
        alpha[i] = dot(N, s[i], out) / dot(N, s[i], y[i]);
        for (size_t d = 0; d < N; d++)
            out[d] -= alpha[i] * y[i][d];
    }
    const double *last_s = s[pairs ? pairs - 1 : 0], *last_y = y[pairs ? pairs - 1 : 0];
    const double scale = pairs ? dot(N, last_s, last_y) / dot(N, last_y, last_y) : 1;
    for (size_t d = 0; d < N; d++)
        out[d] *= scale;
    for (uint32_t i = 0; i < pairs; i++) {
        const double beta = dot(N, y[i], out) / dot(N, s[i], y[i]);
        for (size_t d = 0; d < N; d++)
            out[d] += (alpha[i] - beta) * s[i][d];
    }
    for (size_t d = 0; d < N; d++)
        out[d] = -out[d];
}

static void check_direction(uint32_t pairs, uint32_t oldest)
{
    static double s[DRPS_OPTIM_PAIRS_MOST][N], y[DRPS_OPTIM_PAIRS_MOST][N];
    static double v[NEWTON_VECTORS_MOST][N], dots[NEWTON_VECTORS_MOST][NEWTON_VECTORS_MOST];
    double g[N], want[N];
    struct drps_newton_state state = {0};
    for (uint32_t i = 0; i < pairs; i++)
        for (size_t d = 0; d < N; d++) {
            s[i][d] = random_real();
            y[i][d] = s[i][d] * (1.5 + random_real()); /* curvature */
        }
    for (size_t d = 0; d < N; d++)
        g[d] = random_real();
    textbook(pairs, s, y, g, want);
    for (uint32_t i = 0; i < pairs; i++) { /* by slot */
        const uint32_t slot = (oldest + i) % pairs;
        memcpy(v[slot], s[i], sizeof(s[i]));
        memcpy(v[pairs + slot], y[i], sizeof(y[i]));
    }
    memcpy(v[2 * pairs], g, sizeof(g));
    for (uint32_t i = 0; i <= 2 * pairs; i++)
        for (uint32_t j = i; j <= 2 * pairs; j++)
            dots[i][j] = dot(N, v[i], v[j]);

    const double slope = newton_direction(dots, pairs, oldest, &state);
    for (size_t d = 0; d < N; d++) {
        double got = state.on_gradient * g[d];
        for (uint32_t k = 0; k < pairs; k++)
            got += state.on_s[k] * v[k][d] + state.on_y[k] * v[pairs + k][d];
        if (!(fabs(got - want[d]) <= 1e-9 * (1 + fabs(want[d]))))
            fail_msg("%u pairs, oldest in slot %u, float %zu: %.15g instead of %.15g", pairs,
                     oldest, d, got, want[d]);
    }
    assert_true(fabs(slope - dot(N, g, want)) <= 1e-9 * fabs(slope));
}

static void test_direction_is_the_textbooks(void **state)
{
    (void)state;
    random_state = 7;
    check_direction(0, 0);
    for (uint32_t pairs = 1; pairs <= 10; pairs++)
        for (uint32_t oldest = 0; oldest < pairs; oldest++)
            check_direction(pairs, oldest);
    check_direction(DRPS_OPTIM_PAIRS_MOST, 5);
}

/* ---- The search ---- */

/* Steps along f(a) = (a - at)^2 from a = 0, until one is accepted; returns how many were tried. */
static unsigned steps_to(double at, double first, double *step_out)
{
    struct drps_newton_search s;
    newton_search_begin(&s, at * at, -2 * at, first);
    for (unsigned n = 1; n < 100; n++) {
        const double a = s.step;
        const enum newton_verdict v = newton_search_judge(&s, (a - at) * (a - at), 2 * (a - at));
        *step_out = a;
        if (v == NEWTON_ACCEPTED) return n;
        assert_int_equal(v, NEWTON_AGAIN);
    }
    return 100;
}

static void test_search_finds_a_step(void **state)
{
    static const struct {
        const char *name;
        double at, first;
        unsigned most;
    } cases[] = {
        {"right at once", 1, 1, 1},
        {"a little long", 1, 1.9, 1},
        {"too long", 1, 5, 2},
        {"much too long", 1, 1e6, 5},
        {"too short", 1, 0.01, 3},
        {"much too short", 1, 1e-6, 8},
        {"short, but not by much", 1, 0.11, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double step = 0;
        const double at = cases[i].at;
        const unsigned n = steps_to(at, cases[i].first, &step);
        const int lower = (step - at) * (step - at) <= at * at - 1e-4 * step * 2 * at;
        const int flatter = 2 * (step - at) >= -0.9 * 2 * at;
        if (n > cases[i].most || !lower || !flatter)
            fail_msg("%s: %u tried, at most %u are due; step %g", cases[i].name, n, cases[i].most,
                     step);
    }
}

/* Far out the sum of losses is linear, so that slopes say nothing of how near the least value is:
 * the search still comes down from a step that is ten million times too long. */
static void test_search_comes_back_from_far_out(void **state)
{
    struct drps_newton_search s;
    enum newton_verdict v = NEWTON_AGAIN;
    (void)state;
    const double at_0 = 1.3 / (1 + exp(4)) - 1; /* slope of 1.3 log(1 + exp(4 (a - 1))) / 4 - a */
    newton_search_begin(&s, 1.3 * log1p(exp(-4)) / 4, at_0, 1e7);
    while (v == NEWTON_AGAIN) {
        const double x = 4 * (s.step - 1), e = exp(-fabs(x));
        const double value = 1.3 * (fmax(x, 0) + log1p(e)) / 4 - s.step;
        v = newton_search_judge(&s, value, 1.3 * (x > 0 ? 1 : e) / (1 + e) - 1);
    }
    assert_int_equal(v, NEWTON_ACCEPTED);
}

/* Where the value only grows there is no step, and the search ends. */
static void test_search_gets_stuck(void **state)
{
    struct drps_newton_search s;
    unsigned n = 0;
    (void)state;
    newton_search_begin(&s, 1, -1, 1);
    enum newton_verdict v = NEWTON_AGAIN;
    for (; v == NEWTON_AGAIN && n < 100; n++) {
        assert_true(s.step > 0 && s.step < 1.5);
        v = newton_search_judge(&s, n % 2 ? (double)NAN : 2, 3);
    }
    assert_int_equal(v, NEWTON_STUCK);
    assert_true(n < 30);
}

/* Values that rounding has made alike are judged by the slope. */
static void test_search_at_the_last_digits(void **state)
{
    struct drps_newton_search s;
    (void)state;
    newton_search_begin(&s, 1e6, -1e-3, 1);
    assert_int_equal(newton_search_judge(&s, 1e6 + 1e-3, 1e-5), NEWTON_ACCEPTED);
    newton_search_begin(&s, 1e6, -1e-3, 1);
    assert_int_equal(newton_search_judge(&s, 1e6 + 1e-3, 2e-3), NEWTON_AGAIN); /* went up */
    newton_search_begin(&s, 1e6, -1e-3, 1);
    assert_int_equal(newton_search_judge(&s, 1e6 + 1, 1e-5), NEWTON_AGAIN);
}

/* ---- Matrices ---- */

/* A = L L' + I; f(x) = x' A x / 2 - b' x */
struct quadratic {
    double a[N][N], b[N];
};

static struct quadratic random_quadratic(uint64_t seed)
{
    struct quadratic q;
    double l[N][N];
    random_state = seed;
    for (size_t i = 0; i < N; i++) {
        q.b[i] = random_real();
        for (size_t j = 0; j < N; j++)
            l[i][j] = random_real();
    }
    for (size_t i = 0; i < N; i++)
        for (size_t j = 0; j < N; j++)
            q.a[i][j] = dot(N, l[i], l[j]) + (i == j);
    return q;
}

static void gradient_at(const struct quadratic *q, const double *x, double *g)
{
    for (size_t i = 0; i < N; i++)
        g[i] = dot(N, q->a[i], x) - q->b[i];
}

/* Returns the steps, each to the minimum along the direction, until the gradient is `small` of the
 * first; at most 100. */
static unsigned steps_of(const struct quadratic *q, enum drps_optim_kind kind, double small)
{
    struct newton_matrix m;
    double x[N] = {0}, ad[N];
    assert_int_equal(newton_matrix_init(&m, N, NULL), 0);
    gradient_at(q, x, m.point_gradient);
    const double first = sqrt(dot(N, m.point_gradient, m.point_gradient));
    unsigned n = 0;
    for (; n < 100 && sqrt(dot(N, m.point_gradient, m.point_gradient)) > small * first; n++) {
        newton_matrix_accept(&m, kind, n > 0);
        const double slope = newton_matrix_direction(&m);
        assert_true(slope < 0);
        for (size_t i = 0; i < N; i++)
            ad[i] = dot(N, q->a[i], m.direction);
        const double step = -slope / dot(N, m.direction, ad);
        for (size_t i = 0; i < N; i++) {
            m.s[i] = step * m.direction[i];
            x[i] += m.s[i];
        }
        gradient_at(q, x, m.point_gradient);
    }
    newton_matrix_destroy(&m);
    return n;
}

/* With steps to the minimum, n of them solve a quadratic problem of n unknowns; Broyden's method,
 * whose matrix is not symmetric, has no such bound with these. */
static void test_quadratics_take_n_steps(void **state)
{
    static const struct {
        enum drps_optim_kind kind;
        unsigned most;
    } kinds[] = {{DRPS_OPTIM_BFGS, N}, {DRPS_OPTIM_DFP, N}, {DRPS_OPTIM_BROYDEN, 4 * N}};
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct quadratic q = random_quadratic(seed);
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
            const unsigned n = steps_of(&q, kinds[k].kind, 1e-8);
            if (n > kinds[k].most)
                fail_msg("%s, seed %llu: %u steps", drps_optim_name(kinds[k].kind),
                         (unsigned long long)seed, n);
        }
    }
}

/* sr1 knows the inverse Hessian after n steps in independent directions, whichever; and one before
 * them, which sets the scale of the first matrix so that there is nothing else to learn from it. */
static void test_sr1_learns_the_hessian(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct quadratic q = random_quadratic(seed);
        struct newton_matrix m;
        double x[N] = {0}, back[N];
        assert_int_equal(newton_matrix_init(&m, N, NULL), 0);
        for (size_t k = 0; k <= N + 1; k++) {
            for (size_t i = 0; k && i < N; i++) {
                m.s[i] = random_real();
                x[i] += m.s[i];
            }
            gradient_at(&q, x, m.point_gradient);
            newton_matrix_accept(&m, DRPS_OPTIM_SR1, k > 0);
        }
        for (size_t i = 0; i < N; i++)
            m.hy[i] = dot(N, m.h + i * N, m.gradient);
        for (size_t i = 0; i < N; i++)
            back[i] = x[i] - m.hy[i]; /* a step of Newton's method */
        gradient_at(&q, back, m.y);
        const double left = sqrt(dot(N, m.y, m.y) / dot(N, m.gradient, m.gradient));
        if (left > 1e-6) fail_msg("seed %llu: %g of the gradient", (unsigned long long)seed, left);
        newton_matrix_destroy(&m);
    }
}

/* A pair without curvature is of no use: the next direction is that of the gradient. */
static void test_a_matrix_forgets(void **state)
{
    struct newton_matrix m;
    (void)state;
    assert_int_equal(newton_matrix_init(&m, 2, NULL), 0);
    m.point_gradient[0] = 1;
    newton_matrix_accept(&m, DRPS_OPTIM_BFGS, 0);
    (void)newton_matrix_direction(&m);
    m.s[0] = -1;
    m.point_gradient[0] = 0.5;
    newton_matrix_accept(&m, DRPS_OPTIM_BFGS, 1);
    assert_true(m.begun);
    (void)newton_matrix_direction(&m);
    assert_true(fabs(m.direction[0] + 1) < 1e-12); /* H = s / y = 2 */
    m.point_gradient[0] = 0.7;                     /* it has grown along s */
    newton_matrix_accept(&m, DRPS_OPTIM_BFGS, 1);
    assert_false(m.begun);
    assert_true(newton_matrix_direction(&m) < 0);
    assert_true(m.direction[0] == -0.7);
    newton_matrix_destroy(&m);
    assert_true(newton_matrix_memory(1000) > 8000000);
    assert_true(newton_matrix_memory(UINT64_MAX / 2) == UINT64_MAX);
}

/* ---- Whole runs ---- */

enum { ROWS = 6, DIM = 2, MOST_FLOATS = DIM * (1 + DRPS_OPTIM_NEWTON_STATES + 2 * 32) };

/* Rows in an array, all of them in each of the batches of a pass; f is a quadratic of ROWS * DIM =
 * N unknowns, the batches have a part of its gradient each. Row 0 is the intercept. */
struct table {
    struct drps_optim optim;
    struct drps_newton *newton;
    size_t floats;
    float rows[ROWS * MOST_FLOATS];
    uint32_t index[ROWS];
    float params[ROWS * DIM];
};

static void table_begin(struct table *t, const char *optimizer, float l2)
{
    memset(t, 0, sizeof(*t));
    assert_int_equal(drps_optim_init(&t->optim, optimizer, NULL), 0);
    t->optim.l2 = l2;
    t->optim.tolerance = 1e-6f;
    if (t->optim.pairs) t->optim.pairs = 4;
    t->floats = drps_optim_row_floats(&t->optim, DIM);
    drps_newton_number(&t->optim, DIM, 0, ROWS, t->rows);
    for (uint32_t i = 0; i < ROWS; i++)
        t->index[i] = i;
    assert_int_equal(drps_newton_open(&t->optim, ROWS, DIM, 1, NULL, &t->newton, NULL), 0);
}

/* A pass; returns the value without the penalty. */
static double pass(struct table *t, const struct quadratic *q, unsigned batches)
{
    const struct drps_rows rows = {(char *)t->rows, t->floats * sizeof(float), t->index, ROWS};
    double x[N], g[N], value = 0;
    float part[N];
    for (unsigned b = 0; b < batches; b++) {
        drps_newton_open_rows(t->newton, &rows, 0, ROWS, t->params);
        for (size_t i = 0; i < N; i++)
            x[i] = (double)t->params[i];
        gradient_at(q, x, g);
        for (size_t i = 0; i < N; i++)
            part[i] = (float)(g[i] / batches);
        drps_newton_add(t->newton, &rows, 0, 2, part);
        drps_newton_add(t->newton, &rows, 2, ROWS, part);
    }
    for (size_t i = 0; i < N; i++)
        value += x[i] * (g[i] - q->b[i]) / 2;
    drps_newton_sums_begin(t->newton);
    assert_int_equal(drps_newton_sums_add(t->newton, 0, 4, t->rows, NULL), 0);
    assert_int_equal(drps_newton_sums_add(t->newton, 4, 2, t->rows + 4 * t->floats, NULL), 0);
    return value;
}

static int keep_params(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    struct table *t = ctx;
    (void)err;
    for (size_t i = 0; i < n; i++)
        memcpy(t->params + (first + i) * DIM, (const float *)rows + i * t->floats,
               DIM * sizeof(float));
    return 0;
}

/* The accepted parameters. */
static void accepted(struct table *t, double *x)
{
    struct drps_newton_visit v = {t->newton, keep_params, t};
    assert_int_equal(drps_newton_visit_accepted(&v, 0, ROWS, t->rows, NULL), 0);
    for (size_t i = 0; i < N; i++)
        x[i] = (double)t->params[i];
}

/* Runs to the end; returns the passes. The accepted value never grows, and is that of the accepted
 * parameters. */
static unsigned run(struct table *t, const struct quadratic *q, unsigned batches)
{
    const double l2 = (double)t->optim.l2;
    double x[N], g[N], best = INFINITY;
    unsigned n = 0;
    while (drps_newton_state(t->newton)->end == DRPS_NEWTON_GOES_ON && n++ < 200) {
        const struct drps_newton_pass p = drps_newton_decide(t->newton, pass(t, q, batches));
        if (!p.accepted) assert_true(p.objective > best - 1e-9);
        if (p.accepted) best = p.objective;
        accepted(t, x);
        gradient_at(q, x, g);
        double value = 0;
        for (size_t i = 0; i < N; i++)
            value += x[i] * (g[i] - q->b[i]) / 2 + (i < DIM ? 0 : l2 / 2 * x[i] * x[i]);
        if (fabs(value - best) > 1e-6 * (1 + fabs(best)))
            fail_msg("pass %u: the value of the accepted parameters is %.12g, not %.12g", n, value,
                     best);
    }
    return n;
}

static void check_run(const char *optimizer, float l2, uint64_t seed)
{
    const struct quadratic q = random_quadratic(seed);
    struct table one, three;
    double x[N], g[N];
    table_begin(&one, optimizer, l2);
    const unsigned n = run(&one, &q, 1);
    accepted(&one, x);
    gradient_at(&q, x, g);
    for (size_t i = DIM; i < N; i++)
        g[i] += (double)l2 * x[i]; /* not of the intercept */
    const double norm = sqrt(dot(N, g, g));
    if (norm > 2e-5 || drps_newton_state(one.newton)->end == DRPS_NEWTON_GOES_ON)
        fail_msg("%s, l2 %g, seed %llu: gradient %g after %u passes", optimizer, (double)l2,
                 (unsigned long long)seed, norm, n);
    table_begin(&three, optimizer, l2); /* a gradient in three parts */
    (void)run(&three, &q, 3);
    accepted(&three, g);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs(g[i] - x[i]) < 1e-4);
    drps_newton_close(one.newton);
    drps_newton_close(three.newton);
}

static void test_runs_come_to_the_minimum(void **state)
{
    static const char *const optimizers[] = {"lbfgs", "bfgs", "dfp", "sr1", "broyden"};
    (void)state;
    for (size_t k = 0; k < 5; k++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            check_run(optimizers[k], 0, seed);
            check_run(optimizers[k], 0.5f, seed);
        }
}

/* Gradients whose parts nearly cancel are summed without loss. */
static void test_sums_keep_what_rounding_takes(void **state)
{
    struct table t;
    float part[N] = {0};
    (void)state;
    table_begin(&t, "lbfgs", 0);
    const struct drps_rows rows = {(char *)t.rows, t.floats * sizeof(float), t.index, ROWS};
    drps_newton_open_rows(t.newton, &rows, 0, ROWS, t.params);
    static const float parts[] = {16777216, 1, 1, 1, -16777216};
    for (size_t i = 0; i < 5; i++) {
        part[3] = parts[i];
        drps_newton_add(t.newton, &rows, 0, ROWS, part);
    }
    assert_true(newton_gradient(t.rows + t.floats, DIM, 1, 0) == 3);
    drps_newton_close(t.newton);
}

/* Rows that no pass has moved do not count, and keep their parameters. */
static void test_rows_that_no_sample_uses(void **state)
{
    struct table t;
    double x[N];
    (void)state;
    table_begin(&t, "lbfgs", 1);
    float *last = t.rows + (ROWS - 1) * t.floats;
    last[0] = 5;
    const struct drps_rows rows = {(char *)t.rows, t.floats * sizeof(float), t.index, ROWS - 1};
    drps_newton_open_rows(t.newton, &rows, 0, ROWS - 1, t.params);
    drps_newton_sums_begin(t.newton);
    assert_int_equal(drps_newton_sums_add(t.newton, 0, ROWS, t.rows, NULL), 0);
    const struct drps_newton_pass p = drps_newton_decide(t.newton, 3);
    assert_true(p.objective == 3 && p.gradient_norm == 0);
    assert_int_equal(drps_newton_state(t.newton)->end, DRPS_NEWTON_CONVERGED);
    accepted(&t, x);
    assert_true(x[(ROWS - 1) * DIM] == 5);
    drps_newton_close(t.newton);
}

/* A run that goes on from the state between two passes comes to the same bits. */
static void test_a_run_goes_on(void **state)
{
    const struct quadratic q = random_quadratic(3);
    struct table a, b;
    double x[N], y[N];
    (void)state;
    table_begin(&a, "lbfgs", 0.5f);
    (void)run(&a, &q, 1);
    accepted(&a, x);
    table_begin(&b, "lbfgs", 0.5f);
    while (drps_newton_state(b.newton)->end == DRPS_NEWTON_GOES_ON) {
        struct drps_newton *next;
        (void)drps_newton_decide(b.newton, pass(&b, &q, 1));
        const struct drps_newton_state s = *drps_newton_state(b.newton);
        assert_int_equal(drps_newton_check_state(&s, &b.optim, "x", NULL), 0);
        assert_int_equal(drps_newton_open(&b.optim, ROWS, DIM, 1, &s, &next, NULL), 0);
        drps_newton_close(b.newton);
        b.newton = next;
    }
    accepted(&b, y);
    assert_memory_equal(x, y, sizeof(x));
    drps_newton_close(a.newton);
    drps_newton_close(b.newton);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_direction_is_the_textbooks),
        cmocka_unit_test(test_search_finds_a_step),
        cmocka_unit_test(test_search_comes_back_from_far_out),
        cmocka_unit_test(test_search_gets_stuck),
        cmocka_unit_test(test_search_at_the_last_digits),
        cmocka_unit_test(test_quadratics_take_n_steps),
        cmocka_unit_test(test_sr1_learns_the_hessian),
        cmocka_unit_test(test_a_matrix_forgets),
        cmocka_unit_test(test_runs_come_to_the_minimum),
        cmocka_unit_test(test_sums_keep_what_rounding_takes),
        cmocka_unit_test(test_rows_that_no_sample_uses),
        cmocka_unit_test(test_a_run_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
