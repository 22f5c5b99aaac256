/*
 * Losses that a program computes itself: multinomial regression by callbacks, on three ranks in
 * this process, is the built-in one to the bit where both compute the same; what compute_update
 * does is what rows get; and what cannot go with callbacks is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/model/drps_callbacks.h"
#include "engine/model/drps_model.h"
#include "support/world.h"

/* What the callbacks were called for. */
struct calls {
    atomic_ulong vectors, updates;
};

static double softmax(void *ctx, size_t n, size_t outputs, const float *scores, const float *labels,
                      float *u)
{
    struct calls *c = ctx;
    atomic_fetch_add_explicit(&c->vectors, n, memory_order_relaxed); /* a count, read at the end */
    return drps_softmax_sum(scores, labels, n, outputs, u);
}

static void outer(void *ctx, size_t outputs, const float *u, float x, float *grad)
{
    struct calls *c = ctx;
    atomic_fetch_add_explicit(&c->updates, 1, memory_order_relaxed);
    for (size_t k = 0; k < outputs; k++)
        grad[k] += x * u[k];
}

static double not_a_number(void *ctx, size_t n, size_t outputs, const float *scores,
                           const float *labels, float *u)
{
    (void)ctx, (void)scores, (void)labels;
    for (size_t i = 0; u && i < n * outputs; i++)
        u[i] = 0;
    return (double)NAN;
}

static void train(const struct world *w, enum drps_exchange way, const struct drps_callbacks *calls,
                  struct drps_train_result *r)
{
    struct drps_train_options o = world_options(w);
    o.exchange = way;
    o.callbacks = calls;
    o.replace = 1;
    world_train(w, &o, r);
}

static void test_callbacks_are_the_builtin_on_three_ranks(void **state)
{
    static const enum drps_exchange ways[] = {DRPS_EXCHANGE_SERVERS, DRPS_EXCHANGE_VECTORS,
                                              DRPS_EXCHANGE_ROWS};
    struct world *w = world_begin("mlr", CASE_LIBSVM, 50, 150, 5);
    (void)state;
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        struct calls count = {0};
        const struct drps_callbacks calls = {.ctx = &count, .compute_svg = softmax};
        struct drps_train_result built_in, called;
        train(w, ways[i], NULL, &built_in);
        train(w, ways[i], &calls, &called);
        assert_true(count.vectors > 0);
        assert_true(called.content == built_in.content);
        assert_true(called.epochs[1].train_loss == built_in.epochs[1].train_loss);
        drps_train_result_free(&built_in);
        drps_train_result_free(&called);
    }
    world_end(w);
}

static void test_callbacks_update_is_what_rows_get(void **state)
{
    struct world *w = world_begin("mlr", CASE_LIBSVM, 50, 150, 6);
    struct calls count = {0};
    const struct drps_callbacks calls = {&count, softmax, outer};
    struct drps_train_result built_in, called;
    (void)state;
    for (int vectors = 0; vectors < 2; vectors++) {
        const enum drps_exchange way = vectors ? DRPS_EXCHANGE_VECTORS : DRPS_EXCHANGE_SERVERS;
        count.updates = 0;
        train(w, way, NULL, &built_in);
        train(w, way, &calls, &called);
        assert_true(count.updates > 0);
        assert_true(fabs(called.epochs[1].train_loss - built_in.epochs[1].train_loss) < 1e-5);
        drps_train_result_free(&built_in);
        drps_train_result_free(&called);
    }
    world_end(w);
}

static void test_callbacks_of_held_out_samples_give_the_loss(void **state)
{
    struct calls count = {0};
    struct drps_model model;
    const struct drps_callbacks calls = {.ctx = &count, .compute_svg = softmax};
    const float scores[6] = {1, 0, -1, 0, 2, 0}, labels[2] = {0, 2};
    struct drps_quality plain, called;
    (void)state;
    assert_int_equal(drps_model_init(&model, "mlr", NULL, 0, 3, NULL), 0);
    for (int i = 0; i < 2; i++) {
        model.callbacks = i ? &calls : NULL;
        struct drps_metrics *m = drps_metrics_of(&model);
        assert_non_null(m);
        drps_metrics_add(m, scores, labels, NULL, 2);
        drps_metrics_result(m, i ? &called : &plain);
        drps_metrics_free(m);
    }
    assert_true(called.loss == plain.loss && called.accuracy == plain.accuracy);
}

static void refused(const char *algo, enum case_format format, const struct drps_callbacks *calls,
                    int code, const char *says)
{
    struct world *w = world_begin(algo, format, 50, 150, 7);
    struct drps_train_options o = world_options(w);
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    o.callbacks = calls;
    assert_int_equal(world_run(w, &o, &r, &err), code);
    if (!strstr(err.text, says)) fail_msg("%s", err.text);
    drps_train_result_free(&r);
    world_end(w);
}

static void test_callbacks_that_cannot_be_are_refused(void **state)
{
    struct calls count = {0};
    const struct drps_callbacks calls = {.ctx = &count, .compute_svg = softmax};
    const struct drps_callbacks none = {.ctx = &count};
    const struct drps_callbacks nan = {.compute_svg = not_a_number};
    (void)state;
    refused("fm", CASE_LIBSVM, &calls, DRPS_E_CONFIG, "callbacks are for linear scores");
    refused("mlr", CASE_LIBSVM, &none, DRPS_E_CONFIG, "callbacks without compute_svg");
    refused("mlr", CASE_LIBSVM, &nan, -ERANGE, "no finite number in epoch 1, step 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_callbacks_are_the_builtin_on_three_ranks),
        cmocka_unit_test(test_callbacks_update_is_what_rows_get),
        cmocka_unit_test(test_callbacks_of_held_out_samples_give_the_loss),
        cmocka_unit_test(test_callbacks_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
