/* Which rates are tried and which is taken, with runs whose losses are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/target/drps_rates.h"

/* Losses fall towards the best rate, in decades; rates from `diverges` on diverge. */
struct made_up {
    double best, diverges;
    uint64_t resumed;
    int fails;
    size_t runs;
    struct drps_train_pilot pilot;
};

static int run(void *ctx, const struct drps_train_options *options,
               struct drps_train_result *result, struct drps_err *err)
{
    struct made_up *m = ctx;
    m->runs++;
    m->pilot = options->pilot;
    *result = (struct drps_train_result){.resumed_epoch = m->resumed};
    if (m->fails) return drps_err_set(err, m->fails, "made up");
    if ((double)options->lr >= m->diverges)
        return drps_err_set(err, -ERANGE, "with %g", (double)options->lr);
    result->epochs = calloc(1, sizeof(*result->epochs));
    result->epochs_n = 1;
    assert_non_null(result->epochs);
    result->epochs->train_loss = 1 + fabs(log10((double)options->lr / m->best));
    return 0;
}

static const struct drps_plan plan = {
    .dir = (char *)"made up",
    .info = {.algo = "lor",
             .loss = "logistic",
             .dim = 1,
             .classification = 1,
             .samples = 1000000,
             .nnz = 10000000,
             .batches = 100000,
             .ranks = {.count = 1, .workers = 1, .round_samples = 10}},
};

static int find_in(const struct drps_plan *of, struct made_up *m,
                   const struct drps_train_options *train, struct drps_rates *out,
                   struct drps_err *err)
{
    const struct drps_rates_options o = {.train = train, .plan = of, .run = run, .ctx = m};
    return drps_rates_find(&o, out, err);
}

static int find(struct made_up *m, const struct drps_train_options *train, struct drps_rates *out,
                struct drps_err *err)
{
    return find_in(&plan, m, train, out, err);
}

static void test_the_search_climbs(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double best, diverges;
        const char *tried, *chosen;
    } rows[] = {
        {"the usual rate", .05, 1e9, "0.05 0.15 0.017 ", "0.05"},
        {"a larger one", .5, 1e9, "0.05 0.15 0.45 1.4 ", "0.45"},
        {"a smaller one", .005, 1e9, "0.05 0.15 0.017 0.0056 0.0019 ", "0.0056"},
        {"larger ones diverge", .5, .15, "0.05 0.15 0.017 ", "0.05"},
        {"the usual one diverges", .01, .05, "0.05 0.005 0.015 0.045 ", "0.015"},
        {"all but tiny ones diverge", 1e-7, 3e-6,
         "0.05 0.005 0.0005 5e-05 5e-06 5e-07 1.5e-06 1.7e-07 5.6e-08 ", "1.7e-07"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct made_up m = {.best = rows[i].best, .diverges = rows[i].diverges};
        const struct drps_train_options train = {.epochs = 3};
        struct drps_rates r;
        char tried[256] = "", text[DRPS_RATE_BYTES];
        struct drps_err err = DRPS_ERR_INIT;
        if (find(&m, &train, &r, &err) < 0) fail_msg("%s: %s", rows[i].name, err.text);
        for (size_t k = 0; k < r.tried_n; k++) {
            strcat(strcat(tried, drps_rate_text(r.tried[k].lr, text)), " ");
            assert_true(strtof(text, NULL) == r.tried[k].lr); /* as --lr takes it */
        }
        if (strcmp(tried, rows[i].tried) != 0 ||
            strcmp(drps_rate_text(r.tried[r.chosen].lr, text), rows[i].chosen) != 0)
            fail_msg("%s: tried %s and took %s", rows[i].name, tried, text);
        assert_int_equal(m.runs, r.tried_n);
    }
}

static void test_a_pilot_is_of_a_share_of_the_batches(void **state)
{
    (void)state;
    struct made_up m = {.best = .05, .diverges = 1};
    const struct drps_train_options train = {.epochs = 3};
    struct drps_rates r;
    assert_int_equal(find(&m, &train, &r, NULL), 0);
    assert_int_equal(m.pilot.rounds, plan.info.batches / DRPS_RATES_SHARE);
    assert_int_equal(r.rounds, m.pilot.rounds);
    assert_true(m.pilot.on && !m.pilot.of_filters);
}

/* Lanes of the shuffled order change nothing; a grid is tried as a whole. */
static void test_a_pilot_in_lanes(void **state)
{
    (void)state;
    for (uint64_t users = 0; users <= 2; users += 2) {
        struct made_up m = {.best = .05, .diverges = 1};
        const struct drps_train_options train = {.epochs = 3};
        struct drps_plan lanes = plan;
        struct drps_rates r;
        lanes.info.lanes = 4;
        lanes.info.grid_users = lanes.info.grid_items = users;
        assert_int_equal(find_in(&lanes, &m, &train, &r, NULL), 0);
        assert_int_equal(m.pilot.rounds, users ? 0 : plan.info.batches / DRPS_RATES_SHARE);
    }
}

static void test_a_run_that_goes_on_tries_nothing(void **state)
{
    (void)state;
    struct made_up m = {.best = .05, .diverges = 1, .resumed = 2};
    const struct drps_train_options train = {.resume = 1};
    struct drps_rates r;
    assert_int_equal(find(&m, &train, &r, NULL), 0);
    assert_true(r.resumes && !r.tried_n);
    assert_int_equal(m.runs, 1);
}

static void test_failures_end_the_search(void **state)
{
    (void)state;
    struct made_up none = {.best = .05, .diverges = 0}, fails = {.fails = -EIO};
    const struct drps_train_options train = {.epochs = 3}, newton = {.optimizer = "lbfgs"};
    struct drps_rates r;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(find(&none, &train, &r, &err), -ERANGE);
    assert_non_null(strstr(err.text, "diverges with all learning rates"));
    assert_non_null(strstr(err.text, "down to 5e-10: scale"));
    assert_int_equal(none.runs, 1 + DRPS_RATES_LEAPS);
    drps_err_clear(&err);
    assert_int_equal(find(&fails, &train, &r, &err), -EIO);
    assert_int_equal(fails.runs, 1);
    drps_err_clear(&err);
    assert_int_equal(find(&fails, &newton, &r, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "lbfgs has no learning rate"));
}

static void test_a_loss_of_a_text_says_why_none_is_finite(void **state)
{
    (void)state;
    struct drps_plan text = plan;
    struct made_up none = {.best = .05, .diverges = 0};
    const struct drps_train_options train = {.epochs = 3};
    const struct drps_rates_options o = {.train = &train, .plan = &text, .run = run, .ctx = &none};
    struct drps_rates r;
    struct drps_err err = DRPS_ERR_INIT;
    strcpy(text.info.algo, "expr");
    strcpy(text.info.loss, "expression");
    strcpy(text.info.expression, "log(w*x)");
    if (drps_rates_find(&o, &r, &err) != -ERANGE) fail_msg("%s", err.text);
    assert_non_null(strstr(err.text, "tried, 0.05 to 5e-10; with the first: with 0.05"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_search_climbs),
        cmocka_unit_test(test_a_pilot_is_of_a_share_of_the_batches),
        cmocka_unit_test(test_a_pilot_in_lanes),
        cmocka_unit_test(test_a_run_that_goes_on_tries_nothing),
        cmocka_unit_test(test_failures_end_the_search),
        cmocka_unit_test(test_a_loss_of_a_text_says_why_none_is_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
