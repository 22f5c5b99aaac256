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
#include "engine/model/expr/drps_expr.h"

enum { J = 3 };

static double loss_at(const struct drps_expr *e, const float *scores, const float *y, float *slopes)
{
    double work[2 * DRPS_EXPR_NODES * J], loss;
    const size_t outputs = e->vector_scores ? J : 1;
    assert_true(drps_expr_work(e, outputs) <= sizeof(work) / sizeof(*work));
    assert_int_equal(drps_expr_slopes(e, outputs, scores, y, work, &loss, slopes, NULL), 0);
    return loss;
}

static const char *const losses[] = {
    "cross_entropy(y, softmax(W*x))",
    "cross_entropy(y, sigmoid(W*x))",
    "logistic(2*y-1, W*x)",
    "squared(y, W*x) + 0.1 * norm2(W*x)",
    "squared(y, w*x)",
    "logistic(y, w*x)",
    "dot(y, exp(W*x)) / (1 + sum(square(W*x)))",
    "sum(softplus(1 - (2*y-1) * tanh(W*x)))",
    "sum(log(softmax(W*x)) * y)",
    "sum(W*x - y) * sum(W*x)",
};

static void test_expr_slopes_are_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
        float scores[J] = {0.5f, -0.75f, 1.25f}, y[J] = {1, 0, 0}, slopes[J], unused[J];
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, losses[i], NULL), 0);
        (void)loss_at(&e, scores, y, slopes);
        for (int c = 0; c < (e.vector_scores ? J : 1); c++) {
            const float at = scores[c], step = 0x1p-10f;
            scores[c] = at + step;
            const double above = loss_at(&e, scores, y, unused);
            scores[c] = at - step;
            const double below = loss_at(&e, scores, y, unused);
            scores[c] = at;
            assert_true(fabs((above - below) / (2 * (double)step) - (double)slopes[c]) < 1e-5);
        }
    }
}

static void test_expr_is_the_builtin_softmax(void **state)
{
    (void)state;
    const float scores[J] = {0.5f, -200, 1.25f}, y[J] = {0, 1, 0}, label = 1;
    float slopes[J], expected[J];
    struct drps_expr e;
    assert_int_equal(drps_expr_parse(&e, "cross_entropy(y, softmax(W*x))", NULL), 0);
    const double loss = loss_at(&e, scores, y, slopes);
    assert_true(fabs(loss - drps_softmax_sum(scores, &label, 1, J, expected)) < 1e-4);
    for (int c = 0; c < J; c++)
        assert_true(fabs((double)slopes[c] - (double)expected[c]) < 1e-6);
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
        {"1 + 2", "column 1: the loss has no scores"},
        {"squared(y, W+x)", "column 12: W and w stand only"},
        {"softmax(w*x)", "column 1: softmax of a number"},
        {"sum(W*x) + w*x", "column 12: W*x (a vector) and w*x"},
        {"dot(y W*x)", "column 7: this function needs two"},
        {"sum(W*x) 2", "column 10: nothing can follow"},
        {"sum(W*x) +", "column 11: a number, a name or ("},
        {"sum W*x", "column 5: ( is missing"},
        {"1e999 * w*x", "column 1: the number is too large"},
        {"((((((((((((((((((((((((((((((((((1", "more than 32 brackets"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = {0};
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, cases[i].text, &err), DRPS_E_CONFIG);
        if (!strstr(err.text, cases[i].says)) fail_msg("%s: %s", cases[i].text, err.text);
    }
}

static void test_expr_says_what_is_not_finite(void **state)
{
    static const char *const texts[] = {"log(w*x)", "1 / (w*x)"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const float zero = 0;
        float slope;
        double work[2 * DRPS_EXPR_NODES], loss;
        struct drps_err err = {0};
        struct drps_expr e;
        assert_int_equal(drps_expr_parse(&e, texts[i], NULL), 0);
        assert_int_equal(drps_expr_slopes(&e, 1, &zero, &zero, work, &loss, &slope, &err),
                         DRPS_E_CONFIG);
        assert_non_null(
            strstr(err.text, i ? "column 3: a value is inf" : "column 1: a value is -inf"));
        assert_true(isnan(loss));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expr_slopes_are_differences),
        cmocka_unit_test(test_expr_is_the_builtin_softmax),
        cmocka_unit_test(test_expr_parse_says_where),
        cmocka_unit_test(test_expr_says_what_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
