/* Losses as texts: derivatives beside finite differences, the built-in softmax, and each message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "engine/model/drps_model.h"
#include "engine/model/expr/drps_slopes.h"
#include "index/expr/drps_expr.h"

enum { J = 3 };

/* A loss, and what it is of. */
struct at {
    float scores[J], own[J], y;
};

static size_t outputs_of(const struct drps_expr *e)
{
    return e->vector_scores ? J : 1;
}

static double loss_at(const struct drps_expr *e, const struct at *at, float *slopes, float *owns)
{
    double work[2 * DRPS_EXPR_NODES * J], loss;
    const struct drps_expr_sample s = {at->scores, at->y, at->own, slopes, owns};
    assert_true(drps_expr_work(e, outputs_of(e)) <= sizeof(work) / sizeof(*work));
    assert_int_equal(drps_expr_slopes(e, outputs_of(e), &s, work, &loss, NULL), 0);
    return loss;
}

static const struct {
    const char *text;
    int number_y;
} losses[] = {
    {"cross_entropy(y, softmax(W*x))", 0},
    {"cross_entropy(y, sigmoid(W*x))", 0},
    {"logistic(2*y-1, W*x)", 0},
    {"squared(y, W*x) + 0.1 * norm2(W*x)", 0},
    {"squared(y, w*x)", 0},
    {"logistic(y, w*x)", 0},
    {"dot(y, exp(W*x)) / (1 + sum(square(W*x)))", 0},
    {"sum(softplus(1 - (2*y-1) * tanh(W*x)))", 0},
    {"sum(log(softmax(W*x)) * y)", 0},
    {"sum(W*x - y) * sum(W*x)", 0},
    {"cross_entropy(y, softmax(W*x + own)) + .1 * norm2(own)", 0},
    {"squared(y, w*x + own) + norm1(own)", 0},
    {"square(y - sum(own * sigmoid(W*x)))", 1},
    {"huber(y - sum(sigmoid(W*x))) + norm1(W*x)", 1},
    {"logsumexp(W*x) - y * sum(W*x)", 1},
    {"-log(sigmoid(y * (w*x)))", 0},
    {"hinge(2*y - 1, W*x)", 0},
    {"sum(max(W*x, y) + min(0.4, W*x))", 0},
    {"sum(relu(W*x) * abs(W*x - own)) - -sum(sqrt(1 + square(W*x)))", 0},
    {"huber(3 * (w*x))", 0},
    {"cross_entropy(softmax(own), softmax(W*x))", 0},
    {"cross_entropy(softmax(W*x), softmax(W*x))", 0},
    {"squared(sqrt(y), W*x)", 0}, /* by a label that is 0 the derivative is infinite */
};
enum { LOSSES = sizeof(losses) / sizeof(*losses) };

/* Compares `slope` with the difference of the loss where *number is moved. */
static void check_slope(const struct drps_expr *e, struct at *at, float *number, float slope)
{
    const float was = *number, step = 0x1p-10f;
    *number = was + step;
    const double above = loss_at(e, at, NULL, NULL);
    *number = was - step;
    const double below = loss_at(e, at, NULL, NULL);
    *number = was;
    const double expected = (above - below) / (2 * (double)step);
    if (fabs(expected - (double)slope) >= 1e-5)
        fail_msg("%s: slope %g, expected %g", e->text, (double)slope, expected);
}

static void test_expr_slopes_are_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < LOSSES; i++) {
        struct at at = {{0.5f, -0.75f, 1.25f}, {0.3f, -0.2f, 0.7f}, 0};
        float slopes[J], owns[J];
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, losses[i].text, losses[i].number_y, NULL), 0);
        assert_string_equal(e.text, losses[i].text);
        at.y = e.vector_y ? 0 : -1;
        (void)loss_at(&e, &at, slopes, owns);
        for (size_t c = 0; c < outputs_of(&e); c++) {
            check_slope(&e, &at, &at.scores[c], slopes[c]);
            check_slope(&e, &at, &at.own[c], owns[c]);
        }
    }
}

static void test_expr_own_is_zero_where_there_is_none(void **state)
{
    const struct at zeros = {{0.5f, -0.75f, 1.25f}, {0}, 1};
    struct drps_expr e;
    double work[2 * DRPS_EXPR_NODES * J], loss;
    const struct drps_expr_sample none = {zeros.scores, zeros.y, NULL, NULL, NULL};
    (void)state;
    assert_int_equal(
        drps_expr_parse(&e, "cross_entropy(y, softmax(W*x + own)) + norm1(own)", 0, NULL), 0);
    assert_true(e.has_own);
    assert_int_equal(drps_expr_slopes(&e, J, &none, work, &loss, NULL), 0);
    assert_true(loss == loss_at(&e, &zeros, NULL, NULL));
}

/* The slope where a derivative jumps. */
static void test_expr_takes_a_slope_at_kinks(void **state)
{
    static const struct {
        const char *text;
        float score, slope;
    } cases[] = {
        {"abs(w*x)", 0, 0},          {"relu(w*x)", 0, 0},         {"norm1(w*x)", 0, 0},
        {"hinge(1, w*x)", 1, 0},     {"huber(w*x)", 1, 1},        {"max(2*(w*x), w*x)", 0, 2},
        {"max(w*x, 2*(w*x))", 0, 1}, {"min(2*(w*x), w*x)", 0, 2}, {"huber(w*x)", -3, -1},
        {"relu(w*x)", 2, 1},         {"hinge(1, w*x)", 0.5f, -1}, {"hinge(1, w*x)", 2, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct at at = {{cases[i].score}, {0}, 0};
        float slope;
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, cases[i].text, 0, NULL), 0);
        (void)loss_at(&e, &at, &slope, NULL);
        if (slope != cases[i].slope)
            fail_msg("%s at %g: %g", cases[i].text, (double)cases[i].score, (double)slope);
    }
}

static void test_expr_is_the_builtin_softmax(void **state)
{
    (void)state;
    const struct at at = {{0.5f, -200, 1.25f}, {0}, 1};
    float slopes[J], expected[J];
    struct drps_expr e;
    assert_int_equal(drps_expr_parse(&e, "cross_entropy(y, softmax(W*x))", 0, NULL), 0);
    const double loss = loss_at(&e, &at, slopes, NULL);
    assert_true(fabs(loss - drps_softmax_sum(at.scores, &at.y, 1, J, expected)) < 1e-4);
    for (int c = 0; c < J; c++)
        assert_true(fabs((double)slopes[c] - (double)expected[c]) < 1e-6);
}

static void test_expr_knows_the_builtin_losses(void **state)
{
    static const struct {
        const char *text;
        int classes;
        enum drps_loss loss;
    } cases[] = {
        {"cross_entropy(y, softmax(W*x))", 3, DRPS_LOSS_SOFTMAX},
        {" cross_entropy( y,softmax((W * x)) )", 3, DRPS_LOSS_SOFTMAX},
        {"cross_entropy(y, softmax(W*x + own))", 3, DRPS_LOSS_EXPRESSION},
        {"2 * cross_entropy(y, softmax(W*x))", 3, DRPS_LOSS_EXPRESSION},
        {"logistic(y, w*x)", 1, DRPS_LOSS_LOGISTIC},
        {"logistic(w*x, y)", 1, DRPS_LOSS_EXPRESSION},
        {"logistic(y, w*x)", 0, DRPS_LOSS_EXPRESSION},
        {"logistic(y, W*x)", 3, DRPS_LOSS_EXPRESSION},
        {"squared(y, w*x)", 0, DRPS_LOSS_SQUARED},
        {"squared(y, w*x)", 1, DRPS_LOSS_EXPRESSION},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, cases[i].text, 0, NULL), 0);
        if (drps_algorithm_text_loss(&e, cases[i].classes) != cases[i].loss)
            fail_msg("%s of %d classes", cases[i].text, cases[i].classes);
    }
}

static void test_expr_knows_softmaxes_of_scores(void **state)
{
    static const struct {
        const char *text;
        int has;
    } cases[] = {
        {"cross_entropy(y, softmax(W*x + own))", 1},
        {"sum(log(softmax(own + (W*x))) * y)", 1},
        {"cross_entropy(y, softmax(2*(W*x)))", 0},
        {"squared(y, W*x)", 0},
        {"squared(y, softmax(W*x))", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, cases[i].text, 0, NULL), 0);
        if (drps_expr_has_softmax(&e) != cases[i].has) fail_msg("%s", cases[i].text);
    }
}

static void test_expr_parse_says_where(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"squared(y, z)", "column 12: unknown name"},
        {"squared(y, W*x", "column 15: ) is missing"},
        {"squared(1, W*x)", "column 1: one operand is a vector and one a number"},
        {"W*x", "column 1: the loss is a vector"},
        {"1 + 2", "column 1: no scores in it"},
        {"square(y - own)", "column 1: no scores in it"},
        {"squared(y, W+x)", "column 12: W and w stand only"},
        {"softmax(w*x)", "column 1: this function needs a vector"},
        {"logsumexp(w*x)", "column 1: this function needs a vector"},
        {"sum(W*x) + w*x", "column 12: W*x (a vector) and w*x"},
        {"dot(y W*x)", "column 7: this function needs two"},
        {"exp(y, W*x)", "column 6: this function has one"},
        {"sum(W*x) 2", "column 10: nothing can follow"},
        {"sum(W*x))", "column 9: nothing can follow"},
        {"sum(W*x) +", "column 11: a number, a name or ("},
        {"sum(W*x) + .", "column 12: a number, a name or ("},
        {"-", "column 2: a number, a name or ("},
        {"sum W*x", "column 5: ( is missing"},
        {"1e999 * w*x", "column 1: the number is too large"},
        {"square(w*x - owner)", "column 14: unknown name"},
        {"((((((((((((((((((((((((((((((((((1", "more than 32 brackets"},
        {"square(w*x) + b\001d", "\n  square(w*x) + b?d\n                ^"},
        {"square(w*x) + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + z",
         "+ 1 + z\n                                      ^"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = {0};
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, cases[i].text, 0, &err), DRPS_E_CONFIG);
        if (!strstr(err.text, cases[i].says)) fail_msg("%s: %s", cases[i].text, err.text);
        assert_int_equal(e.n, 0);
    }
}

static void test_expr_y_has_the_shape_of_labels(void **state)
{
    struct drps_expr e;
    (void)state;
    assert_int_equal(drps_expr_parse(&e, "square(y - sum(W*x))", 0, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_expr_parse(&e, "square(y - sum(W*x))", 1, NULL), 0);
    assert_int_equal(drps_expr_parse(&e, "squared(y, W*x)", 1, NULL), DRPS_E_CONFIG);
}

static void test_expr_says_what_is_not_finite(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"log(w*x)", "column 1 a value is minus infinite"},
        {"1 / (w*x)", "column 3 a value is infinite"},
        {"sqrt(w*x)", "column 6 a derivative is infinite"},
        {"sqrt((w*x) - 1)", "column 1 a value is not a number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const float zero = 0;
        float slope;
        double work[2 * DRPS_EXPR_NODES], loss;
        const struct drps_expr_sample s = {&zero, 0, NULL, &slope, NULL};
        struct drps_err err = {0};
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, cases[i].text, 0, NULL), 0);
        assert_int_equal(drps_expr_slopes(&e, 1, &s, work, &loss, &err), DRPS_E_CONFIG);
        if (!strstr(err.text, cases[i].says)) fail_msg("%s: %s", cases[i].text, err.text);
        assert_true(isnan(loss));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expr_slopes_are_differences),
        cmocka_unit_test(test_expr_own_is_zero_where_there_is_none),
        cmocka_unit_test(test_expr_takes_a_slope_at_kinks),
        cmocka_unit_test(test_expr_is_the_builtin_softmax),
        cmocka_unit_test(test_expr_knows_the_builtin_losses),
        cmocka_unit_test(test_expr_knows_softmaxes_of_scores),
        cmocka_unit_test(test_expr_parse_says_where),
        cmocka_unit_test(test_expr_y_has_the_shape_of_labels),
        cmocka_unit_test(test_expr_says_what_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
