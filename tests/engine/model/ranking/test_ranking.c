/* Losses of implicit feedback: the kernel against its twin, both against finite differences and
 * against values by hand, and how items are placed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/model/drps_metrics.h"
#include "engine/model/drps_model.h"
#include "engine/model/ranking/drps_ranking.h"

enum { SAMPLES = 7, ROWS = 24, USERS = 5, NEGATIVES = 6, MOST = 33, ITEMS = 500 };

static const enum drps_loss losses[] = {DRPS_LOSS_BPR, DRPS_LOSS_WARP, DRPS_LOSS_WMF};
static const char *const names[] = {"bpr", "warp", "wmf"};
static uint64_t counter;

static double uniform(double low, double high)
{
    return low + (high - low) * drps_unit_double(drps_rng_at(11, counter++));
}

/* A batch whose samples have their entries in the order of rows, as in plans. */
struct set {
    struct drps_batch b;
    float labels[SAMPLES], weights[SAMPLES];
    uint32_t starts[SAMPLES + 1], local32[SAMPLES * (NEGATIVES + 2)];
    uint16_t local16[SAMPLES * (NEGATIVES + 2)], fields[SAMPLES * (NEGATIVES + 2)];
};

static void make_set(struct set *set, int wide, int weighted)
{
    size_t n = 0;
    memset(set, 0, sizeof(*set));
    for (size_t s = 0; s < SAMPLES; s++) {
        const size_t negatives = 1 + s % NEGATIVES, shift = s * 5;
        set->starts[s] = (uint32_t)n;
        set->labels[s] = (float)uniform(0.5, 3);
        set->weights[s] = (float)(1 + s % 3);
        set->local32[n] = (uint32_t)(s % USERS);
        set->fields[n++] = DRPS_ROLE_USER;
        for (size_t k = 0; k <= negatives; k++) { /* the positive is somewhere among them */
            set->local32[n] = (uint32_t)(USERS + 1 + k * 2 + s % 3);
            set->fields[n++] = (uint16_t)(DRPS_ROLE_POSITIVE + (k + shift) % (negatives + 1));
        }
    }
    set->starts[SAMPLES] = (uint32_t)n;
    for (size_t j = 0; j < n; j++)
        set->local16[j] = (uint16_t)set->local32[j];
    set->b = (struct drps_batch){.samples = SAMPLES,
                                 .rows = ROWS,
                                 .nnz = n,
                                 .labels = set->labels,
                                 .weights = weighted ? set->weights : NULL,
                                 .starts = set->starts,
                                 .local16 = wide ? NULL : set->local16,
                                 .local32 = wide ? set->local32 : NULL,
                                 .fields = set->fields,
                                 .field_count = NEGATIVES + 2};
}

static struct drps_model model_of(size_t k, uint32_t factors, int mean)
{
    struct drps_model m;
    assert_int_equal(drps_model_init(&m, names[k], NULL, factors, 0, NULL), 0);
    assert_int_equal(m.loss, losses[k]);
    m.has_bias = 0;
    m.mean_of = mean ? 3 : 0;
    drps_model_set_items(&m, ITEMS);
    return m;
}

static void random_params(float *params, size_t n)
{
    for (size_t i = 0; i < n; i++) /* multiples, so that both ends of a difference are exact */
        params[i] = (float)(floor(uniform(-4096, 4096)) * 0x1p-12);
}

static void test_kernel_matches_its_twin(void **state)
{
    static const uint32_t factors[] = {1, 3, 8, 16, 17, 32};
    static float params[ROWS * (MOST + 1)], grads[2][ROWS * (MOST + 1)];
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++)
            for (int form = 0; form < 8; form++) {
                const struct drps_model m = model_of(k, factors[f], form & 4);
                float out[2][SAMPLES * DRPS_RANKED];
                struct set set;
                make_set(&set, form & 1, form & 2);
                random_params(params, ROWS * m.dim);
                memset(grads, 0, sizeof(grads));
                const double want =
                    drps_model_gradient_ref(&m, &set.b, 0, SAMPLES, params, grads[0], out[0], NULL);
                double found =
                    drps_model_gradient(&m, &set.b, 0, 3, params, grads[1], out[1], NULL);
                found +=
                    drps_model_gradient(&m, &set.b, 3, SAMPLES, params, grads[1], out[1], NULL);
                if (!(fabs(want - found) <= 1e-5 * (1 + fabs(want))))
                    fail_msg("%s, %u factors, form %d: loss %.9g, of the twin %.9g", names[k],
                             factors[f], form, found, want);
                for (size_t i = 0; i < ROWS * m.dim; i++)
                    if (!(fabsf(grads[0][i] - grads[1][i]) <= 2e-5f * (1 + fabsf(grads[0][i]))))
                        fail_msg("%s, %u factors, form %d: gradient[%zu] %.9g, of the twin %.9g",
                                 names[k], factors[f], form, i, (double)grads[1][i],
                                 (double)grads[0][i]);
                for (size_t i = 0; i < SAMPLES * DRPS_RANKED; i++)
                    if (!(fabsf(out[0][i] - out[1][i]) <= 2e-5f * (1 + fabsf(out[0][i]))))
                        fail_msg("%s, %u factors, form %d: number %zu of samples %.9g, of the twin "
                                 "%.9g",
                                 names[k], factors[f], form, i, (double)out[1][i],
                                 (double)out[0][i]);
                memset(out[0], 0, sizeof(out[0]));
                drps_model_predict(&m, &set.b, 0, SAMPLES, params, out[0], NULL);
                assert_memory_equal(out[0], out[1], sizeof(out[0]));
            }
}

/* warp has jumps where a negative begins to count: losses on both sides of a parameter differ then
 * far more than slopes allow, and such parameters are left out. */
static void test_gradients_match_finite_differences(void **state)
{
    enum { DIM = 5 };
    const float h = 0x1p-10f;
    size_t compared = 0;
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (int round = 0; round < 10; round++) {
            const struct drps_model m = model_of(k, DIM - 1, 0);
            float params[ROWS * DIM], grads[ROWS * DIM] = {0}, none[ROWS * DIM];
            float out[SAMPLES * DRPS_RANKED];
            struct set set;
            make_set(&set, round & 1, round & 2);
            random_params(params, ROWS * DIM);
            (void)drps_model_gradient(&m, &set.b, 0, SAMPLES, params, grads, out, NULL);
            for (size_t i = 0; i < ROWS * DIM; i++) {
                const float at = params[i];
                double loss[3];
                for (int side = 0; side < 3; side++) {
                    params[i] = at + (float)(side - 1) * h;
                    loss[side] =
                        drps_model_gradient_ref(&m, &set.b, 0, SAMPLES, params, none, out, NULL);
                }
                params[i] = at;
                if (k == 1 && fabs(loss[2] - 2 * loss[1] + loss[0]) > 1e-4) continue;
                const double want = (loss[2] - loss[0]) / (2 * (double)h);
                compared++;
                if (!(fabs(want - (double)grads[i]) <= 2e-4 * (1 + fabs(want))))
                    fail_msg("%s, round %d: gradient[%zu] expected %.9g, found %.9g", names[k],
                             round, i, want, (double)grads[i]);
            }
        }
    assert_true(compared > 3000);
}

/* One user, of factor 1, and items whose scores are their biases. */
static void test_losses_by_hand(void **state)
{
    static const struct {
        enum drps_loss loss;
        float scores[4]; /* of the positive and three negatives */
        double want, place;
    } rows[] = {
        {DRPS_LOSS_BPR, {0, 0, 0, 0}, 0.6931471805599453, 1.5},
        {DRPS_LOSS_BPR,
         {2, 1, 2, 3},
         (0.3132616875182228 + 0.6931471805599453 + 1.3132616875182228) / 3,
         1.5},
        {DRPS_LOSS_WARP, {2, 0, 0.5f, 0}, 0, 0},
        /* the second of the draws is within the margin: floor(499 / 2) items are estimated before
         */
        {DRPS_LOSS_WARP, {2, 0, 1.5f, 3}, 5.517452896464707 * 0.5, 1},
        {DRPS_LOSS_WARP, {2, 3, 1.5f, 3}, 6.2126060957515188 * 2, 2},
        {DRPS_LOSS_WMF, {0.5f, 1, 2, 0}, 3 * 0.25 / 2 + (1.0 + 4 + 0) / 3 / 2, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct drps_ranking r = {rows[i].loss, 1, ITEMS};
        const uint16_t local[] = {0, 1, 2, 3, 4}, fields[] = {0, 1, 2, 3, 4};
        const float label = 3;
        float params[10] = {0}, out[DRPS_RANKED];
        for (size_t k = 0; k < 4; k++)
            params[2 + 2 * k] = rows[i].scores[k];
        const struct drps_batch b = {.samples = 1,
                                     .rows = 5,
                                     .nnz = 5,
                                     .labels = &label,
                                     .per_sample = 5,
                                     .local16 = local,
                                     .fields = fields,
                                     .field_count = 5};
        const double found = drps_ranking_pass(&r, &b, 0, 1, 1, params, NULL, out);
        if (!(fabs(found - rows[i].want) <= 1e-6 * (1 + found)) ||
            (double)out[DRPS_RANKED_PLACE] != rows[i].place)
            fail_msg("row %zu: expected %.9g, place %g; found %.9g, %g", i, rows[i].want,
                     rows[i].place, found, (double)out[DRPS_RANKED_PLACE]);
        assert_true(out[DRPS_RANKED_NEGATIVES] == 3);
    }
}

/* What is no sample at all has no loss, rather than a small one. */
static void test_a_sample_without_a_row_has_no_loss(void **state)
{
    static const uint16_t broken[][3] = {{0, 2, 3}, {1, 2, 3}, {0, 1, 1}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct drps_ranking r = {DRPS_LOSS_BPR, 1, ITEMS};
        const uint16_t local[] = {0, 1, 2};
        const float label = 1;
        float params[6] = {0}, grads[6] = {0}, out[DRPS_RANKED];
        const struct drps_batch b = {.samples = 1,
                                     .rows = 3,
                                     .nnz = 3,
                                     .labels = &label,
                                     .per_sample = 3,
                                     .local16 = local,
                                     .fields = broken[i],
                                     .field_count = 4};
        assert_true(isnan(drps_ranking_pass(&r, &b, 0, 1, 1, params, grads, out)));
    }
}

/* What was drawn counts for l2 in bpr alone; of pairs that are scored all does. */
static void test_touches_are_of_users_and_choices(void **state)
{
    (void)state;
    for (int form = 0; form < 6; form++) {
        const struct drps_model m = model_of((size_t)form / 2, 4, 0);
        struct set set;
        uint32_t found[ROWS] = {0}, want[ROWS] = {0}, all[ROWS] = {0};
        uint64_t sum = 0;
        make_set(&set, form % 2, 0);
        for (size_t j = set.starts[2]; j < set.starts[5]; j++)
            want[set.local32[j]] += set.fields[j] <= DRPS_ROLE_POSITIVE || form < 2;
        drps_model_touches(&m, &set.b, 2, 5, found);
        assert_memory_equal(found, want, sizeof(want));
        set.b.fields = NULL;
        drps_model_touches(&m, &set.b, 2, 5, all);
        for (size_t i = 0; i < ROWS; i++)
            sum += all[i];
        assert_int_equal(sum, set.starts[5] - set.starts[2]);
    }
}

static void test_metrics_are_of_places(void **state)
{
    /* loss, place, negatives; weights 1, 1, 2 */
    static const float ranked[] = {1, 0, 20, 2, 9.5f, 20, 3, 10, 20};
    static const float weights[] = {1, 1, 2};
    const struct drps_model m = model_of(0, 4, 0);
    struct drps_metrics *sum = drps_metrics_of(&m), *part = drps_metrics_of(&m);
    char data[512];
    struct drps_quality q;
    (void)state;
    assert_true(sum && part && drps_metrics_bound(part) <= sizeof(data));
    drps_metrics_add(sum, ranked, weights, weights, 1);
    drps_metrics_add(part, ranked + 3, weights, weights + 1, 2);
    assert_int_equal(drps_metrics_merge(sum, data, drps_metrics_encode(part, data), NULL), 0);
    drps_metrics_result(sum, &q);
    assert_true(fabs(q.loss - (1 + 2 + 2 * 3) / 4.0) < 1e-9);
    assert_true(fabs(q.auc - (1 + (1 - 9.5 / 20) + 2 * 0.5) / 4) < 1e-9);
    assert_true(fabs(q.recall - 2 / 4.0) < 1e-9);
    assert_true(fabs(q.ndcg - (1 + 1 / log2(11.5)) / 4) < 1e-9);
    assert_true(isnan(q.rmse) && isnan(q.accuracy));
    const size_t bytes = drps_metrics_encode(part, data);
    for (size_t at = bytes - 3 * sizeof(double); at < bytes; at += sizeof(double)) {
        static const double wrong[] = {-1, 4, (double)NAN, (double)INFINITY};
        char damaged[512];
        for (size_t i = 0; i < 4; i++) {
            memcpy(damaged, data, bytes);
            memcpy(damaged + at, &wrong[i], sizeof(wrong[i]));
            assert_int_equal(drps_metrics_merge(sum, damaged, bytes, NULL), DRPS_E_PROTO);
        }
    }
    assert_int_equal(drps_metrics_merge(sum, data, bytes - 1, NULL), DRPS_E_PROTO);
    drps_metrics_reset(sum);
    drps_metrics_result(sum, &q);
    assert_true(isnan(q.ndcg) && isnan(q.auc));
    drps_metrics_free(sum);
    drps_metrics_free(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_matches_its_twin),
        cmocka_unit_test(test_gradients_match_finite_differences),
        cmocka_unit_test(test_losses_by_hand),
        cmocka_unit_test(test_a_sample_without_a_row_has_no_loss),
        cmocka_unit_test(test_touches_are_of_users_and_choices),
        cmocka_unit_test(test_metrics_are_of_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
