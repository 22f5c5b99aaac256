/*
 * Models whose loss is a text: gradients of a batch beside finite differences, rows of samples
 * included; the built-in models beside the same loss computed as a text; and the first random rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/model/drps_metrics.h"
#include "engine/model/drps_model.h"

enum { SAMPLES = 70, FEATURES = 12, PER = 4, J = 3, ROWS = 1 + SAMPLES + FEATURES };

/* Row 0 is the intercept, then those of samples, then those of features. */
struct data {
    struct drps_batch batch;
    float labels[SAMPLES], values[SAMPLES * PER], params[ROWS * J], grads[ROWS * J];
    uint32_t starts[SAMPLES + 1], local[SAMPLES * PER];
    float scores[SAMPLES * J];
};

static float draw(uint64_t i)
{
    return 2 * drps_unit_float(drps_rng_at(11, i)) - 1;
}

static void make(struct data *d, const struct drps_model *m)
{
    memset(d, 0, sizeof(*d));
    for (uint32_t s = 0; s < SAMPLES; s++) {
        const uint32_t at = s * PER;
        d->starts[s + 1] = at + PER;
        d->labels[s] = m->classes > 1 ? (float)(s % J) : m->classes ? (s % 2 ? 1 : -1) : draw(s);
        d->local[at] = 1 + s; /* its own row */
        for (uint32_t k = 1; k < PER; k++) {
            d->local[at + k] = 1 + SAMPLES + (s + 5 * k) % FEATURES;
            d->values[at + k] = draw(1000 + at + k);
        }
    }
    for (size_t i = 0; i < ROWS * J; i++)
        d->params[i] = draw(5000 + i);
    d->batch = (struct drps_batch){.samples = SAMPLES,
                                   .rows = ROWS,
                                   .nnz = SAMPLES * PER,
                                   .labels = d->labels,
                                   .starts = d->starts,
                                   .local32 = d->local,
                                   .values = d->values};
}

static double gradient(const struct drps_model *m, struct data *d)
{
    void *scratch = malloc(drps_model_scratch_bytes(m, SAMPLES, ROWS) + 1);
    assert_non_null(scratch);
    memset(d->grads, 0, sizeof(d->grads));
    const double loss =
        drps_model_gradient(m, &d->batch, 0, SAMPLES, d->params, d->grads, d->scores, scratch);
    free(scratch);
    return loss;
}

struct text {
    const char *text;
    uint32_t outputs;
    int classes;
};

static struct drps_model model_of(const struct text *t)
{
    struct drps_model m;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_model_terms terms = {
        .algo = "expr", .expression = t->text, .outputs = t->outputs, .classes = t->classes};
    if (drps_model_settle(&m, &terms, &err) < 0) fail_msg("%s", err.text);
    return m;
}

static void test_expr_loss_gradients_are_differences(void **state)
{
    static const struct text texts[] = {
        {"cross_entropy(y, softmax(W*x + own)) + 0.3 * norm2(own)", 0, J},
        {"square(y - sum(own * sigmoid(W*x)))", J, 0},
        {"softplus(-y * (w*x + own)) + .1 * square(own)", 0, 1},
        {"squared(y, tanh(w*x))", 0, 0},
    };
    struct data *d = malloc(sizeof(*d));
    (void)state;
    assert_non_null(d);
    for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
        const struct drps_model m = model_of(&texts[t]);
        make(d, &m);
        (void)gradient(&m, d);
        for (size_t i = 0; i < ROWS * m.dim; i++) {
            struct data moved = *d;
            const float step = 0x1p-7f;
            moved.batch = d->batch; /* borrows d's, which are the same */
            moved.params[i] = d->params[i] + step;
            const double above = gradient(&m, &moved);
            moved.params[i] = d->params[i] - step;
            const double expected = (above - gradient(&m, &moved)) / (2 * (double)step);
            if (fabs(expected - (double)d->grads[i]) > 2e-3 + 1e-3 * fabs(expected))
                fail_msg("%s: parameter %zu: %g, expected %g", texts[t].text, i,
                         (double)d->grads[i], expected);
        }
    }
    free(d);
}

/* The gradient of a mean is a share of that of a sum, rows of samples included. */
static void test_expr_loss_means_are_shares_of_sums(void **state)
{
    struct drps_model m = model_of(&(struct text){"square(y - w*x - own)", 0, 0});
    struct data *d = malloc(sizeof(*d));
    float sums[ROWS];
    (void)state;
    assert_non_null(d);
    make(d, &m);
    const double loss = gradient(&m, d);
    memcpy(sums, d->grads, sizeof(sums));
    m.mean_of = 2;
    assert_true(gradient(&m, d) == loss);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(fabsf(d->grads[i] - sums[i] / (2 * SAMPLES)) < 1e-6f);
    free(d);
}

/* A sample of weight n counts as n samples, in its own row, too. */
static void test_expr_loss_weights_are_counts(void **state)
{
    const struct drps_model m = model_of(&(struct text){"square(y - w*x - own)", 0, 0});
    struct data *d = malloc(sizeof(*d));
    float ones[ROWS], weights[SAMPLES];
    double loss = 0;
    (void)state;
    assert_non_null(d);
    make(d, &m);
    (void)gradient(&m, d);
    memcpy(ones, d->grads, sizeof(ones));
    for (size_t s = 0; s < SAMPLES; s++) {
        const double left = (double)d->labels[s] - (double)d->scores[s] - (double)d->params[1 + s];
        weights[s] = (float)(1 + s % 3);
        loss += (double)weights[s] * left * left;
    }
    d->batch.weights = weights;
    assert_true(fabs(gradient(&m, d) - loss) < 1e-4 * loss);
    for (size_t s = 0; s < SAMPLES; s++) /* no other sample touches the row */
        assert_true(fabsf(d->grads[1 + s] - weights[s] * ones[1 + s]) < 1e-5f);
    free(d);
}

/* What is computed in double as a text is the built-in loss, to rounding; own rows have none. */
static void test_expr_loss_is_the_builtin(void **state)
{
    static const struct {
        struct text text, same;
        const char *algo;
    } cases[] = {
        {{"1 * cross_entropy(y, softmax(W*x))", 0, J},
         {"cross_entropy(y, softmax(W*x))", 0, J},
         "mlr"},
        {{"hinge(2*y - 1, W*x)", 0, J}, {NULL, 0, 0}, "svm"},
        {{"1 * logistic(y, w*x)", 0, 1}, {"logistic(y, w*x)", 0, 1}, "lor"},
        {{"1 * squared(y, w*x)", 0, 0}, {"squared(y, w*x)", 0, 0}, "lir"},
    };
    struct data *d = malloc(sizeof(*d)), *b = malloc(sizeof(*b));
    (void)state;
    assert_true(d && b);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_model m = model_of(&cases[i].text);
        struct drps_model built_in;
        assert_int_equal(
            drps_model_init(&built_in, cases[i].algo, NULL, 0, cases[i].text.classes, NULL), 0);
        make(d, &m);
        make(b, &built_in);
        const double loss = gradient(&m, d), expected = gradient(&built_in, b);
        assert_true(fabs(loss - expected) < 1e-4);
        for (size_t k = 0; k < ROWS * m.dim; k++)
            assert_true(fabsf(d->grads[k] - b->grads[k]) < 1e-5f);
        if (!cases[i].same.text) continue;
        const struct drps_model same = model_of(&cases[i].same);
        assert_int_equal(same.loss, built_in.loss);
        assert_true(gradient(&same, d) == expected);
        assert_memory_equal(d->grads, b->grads, sizeof(d->grads));
    }
    free(d);
    free(b);
}

static void test_expr_loss_says_which_sample(void **state)
{
    const struct drps_model m = model_of(&(struct text){"log(w*x + own) + own", 0, 0});
    double scratch[64];
    struct data *d = malloc(sizeof(*d));
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_non_null(d);
    make(d, &m);
    assert_true(drps_model_scratch_bytes(&m, SAMPLES, ROWS) <= sizeof(scratch));
    for (size_t s = 0; s < SAMPLES; s++) {
        d->scores[s] = 1;
        d->params[1 + s] = s == 40 ? -2 : 1;
    }
    assert_int_equal(drps_model_explain(&m, &d->batch, d->params, d->scores, 1, scratch, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "sample 41 of its 70"));
    assert_non_null(strstr(err.text, "column 1 a value is not a number"));
    drps_err_clear(&err);
    assert_int_equal(drps_model_explain(&m, &d->batch, d->params, d->scores, 0, scratch, &err),
                     DRPS_E_CONFIG);
    d->params[41] = 1;
    assert_int_equal(drps_model_explain(&m, &d->batch, d->params, d->scores, 1, scratch, NULL), 0);
    free(d);
}

/* Outputs of named classes begin alike; others would stay so. */
static void test_expr_loss_rows_begin(void **state)
{
    const struct drps_model named = model_of(&(struct text){"squared(y, W*x)", 0, J});
    const struct drps_model mixed = model_of(&(struct text){"square(y - sum(sigmoid(W*x)))", J, 0});
    float row[J], other[J];
    (void)state;
    drps_model_init_row(&named, 7, row);
    for (size_t c = 0; c < J; c++)
        assert_true(row[c] == 0);
    drps_model_init_row(&mixed, 7, row);
    drps_model_init_row(&mixed, 8, other);
    for (size_t c = 0; c < J; c++) {
        assert_true(row[c] != 0 && fabsf(row[c]) < 0.1f / sqrtf(J));
        assert_true(row[c] != row[(c + 1) % J] && row[c] != other[c]);
    }
    drps_model_init_row(&mixed, 0, row); /* the intercept */
    for (size_t c = 0; c < J; c++)
        assert_true(row[c] == 0);
    assert_int_equal(drps_model_random(&named), 0);
    assert_int_equal(drps_model_random(&mixed), J);
}

static void test_expr_loss_of_held_out_samples(void **state)
{
    const struct drps_model m = model_of(&(struct text){"hinge(2*y - 1, W*x)", 0, J});
    const float scores[2 * J] = {2, -2, -2, 0, 0, 0}, labels[2] = {0, 1};
    struct drps_metrics *metrics = drps_metrics_of(&m);
    struct drps_quality q;
    (void)state;
    assert_non_null(metrics);
    drps_metrics_add(metrics, scores, labels, NULL, 2);
    drps_metrics_result(metrics, &q);
    assert_true(q.loss == 1.5 && q.accuracy == 0.5 && isnan(q.auc) && isnan(q.rmse));
    drps_metrics_free(metrics);
}

static void test_expr_loss_model_is_refused(void **state)
{
    static const struct {
        struct drps_model_terms terms;
        const char *says;
    } cases[] = {
        {{.algo = "expr", .classes = 1}, "algorithm expr needs an expression"},
        {{.algo = "lor", .expression = "logistic(y, w*x)", .classes = 1},
         "lor does not go with an"},
        {{.algo = "expr", .expression = "squared(y, W*x)"},
         "expr does not go with 0 named classes"},
        {{.algo = "expr", .expression = "squared(y, w*x)", .classes = 3}, "with 3 named classes"},
        {{.algo = "expr", .expression = "squared(y, w*x)", .outputs = 3}, "with 3 outputs"},
        {{.algo = "expr", .expression = "square(sum(W*x) - y)", .outputs = 1}, "with 1 outputs"},
        {{.algo = "expr", .expression = "square(sum(W*x) - y)", .outputs = 70000}, "70000 outputs"},
        {{.algo = "expr", .expression = "squared(y, w*x)", .loss = "logistic"}, "not the loss"},
        {{.algo = "expr", .expression = "squared(y, w*x"}, "column 15: ) is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_model m;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_model_settle(&m, &cases[i].terms, &err), DRPS_E_CONFIG);
        if (!strstr(err.text, cases[i].says)) fail_msg("%zu: %s", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expr_loss_gradients_are_differences),
        cmocka_unit_test(test_expr_loss_means_are_shares_of_sums),
        cmocka_unit_test(test_expr_loss_weights_are_counts),
        cmocka_unit_test(test_expr_loss_is_the_builtin),
        cmocka_unit_test(test_expr_loss_says_which_sample),
        cmocka_unit_test(test_expr_loss_rows_begin),
        cmocka_unit_test(test_expr_loss_of_held_out_samples),
        cmocka_unit_test(test_expr_loss_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
