/*
 * Models: the kernels against their plain twins and, of all levels, against each other, the twins
 * against finite differences, losses against values worked out by hand, and the edges (no entries,
 * extreme scores, unusual ranks).
 *
 *   test_model [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernel/drps_level.h"
#include "base/drps_rng.h"
#include "engine/model/drps_model.h"

static uint64_t seed = 20240607;
static uint64_t counter;

static double uniform(double low, double high)
{
    return low + (high - low) * drps_unit_double(drps_rng_at(seed, counter++));
}

static size_t below(size_t n)
{
    return (size_t)(drps_rng_at(seed, counter++) % n);
}

/* How a batch is laid out; every combination is a case. */
struct form {
    int wide, valued, starts, bias, weighted;
};

enum { FORMS = 32 };

static struct form form_of(unsigned i)
{
    return (struct form){
        .wide = i & 1,
        .valued = i >> 1 & 1,
        .starts = i >> 2 & 1,
        .bias = i >> 3 & 1,
        .weighted = i >> 4 & 1,
    };
}

/* How many fields entries have: so many neighbouring entries of a sample have all of them. */
enum { FIELDS = 4 };

/* A batch that owns its arrays. */
struct sample_set {
    struct drps_batch b;
    float *labels, *weights, *values;
    uint32_t *starts, *local32;
    uint16_t *local16, *fields;
};

static void *must(void *p)
{
    assert_non_null(p);
    return p;
}

/*
 * n samples over m rows with at most `entries` entries each: distinct rows in a sample, shared ones
 * between samples. With starts some samples are empty. Row 0 is left to the intercept where there
 * is one. `classes` as drps_model_init() takes it.
 */
static void make_batch(struct sample_set *set, size_t n, size_t m, size_t entries, struct form form,
                       int classes)
{
    const size_t cap = n * entries + 1, low = form.bias ? 1 : 0;
    size_t nnz = 0;

    memset(set, 0, sizeof(*set));
    set->labels = must(malloc((n + 1) * sizeof(float)));
    set->weights = must(malloc((n + 1) * sizeof(float)));
    set->values = must(malloc(cap * sizeof(float)));
    set->starts = must(malloc((n + 1) * sizeof(uint32_t)));
    set->local32 = must(malloc(cap * sizeof(uint32_t)));
    set->local16 = must(malloc(cap * sizeof(uint16_t)));
    set->fields = must(malloc(cap * sizeof(uint16_t)));
    for (size_t s = 0; s < n; s++) {
        const size_t count = form.starts ? below(entries + 1) : entries;
        const size_t step =
            1 + below((m - low - 1) / entries); /* step * entries < m - low: distinct */
        const size_t at = below(m - low);
        set->starts[s] = (uint32_t)nnz;
        for (size_t e = 0; e < count; e++, nnz++) {
            set->local32[nnz] = (uint32_t)(low + (at + e * step) % (m - low));
            set->local16[nnz] = (uint16_t)set->local32[nnz];
            set->values[nnz] = (float)uniform(-1, 1);
            set->fields[nnz] = (uint16_t)((3 * e + s) % FIELDS);
        }
        set->labels[s] = classes > 1 ? (float)below((size_t)classes)
                         : classes   ? (below(2) ? 1.0f : -1.0f)
                                     : (float)uniform(-2, 2);
        set->weights[s] = form.weighted ? (float)(1 + below(5)) : 1;
    }
    set->starts[n] = (uint32_t)nnz;
    set->b = (struct drps_batch){
        .samples = n,
        .rows = m,
        .nnz = nnz,
        .labels = set->labels,
        .weights = form.weighted ? set->weights : NULL,
        .starts = form.starts ? set->starts : NULL,
        .per_sample = (uint32_t)entries,
        .local16 = form.wide ? NULL : set->local16,
        .local32 = form.wide ? set->local32 : NULL,
        .values = form.valued ? set->values : NULL,
        .fields = set->fields,
        .field_count = FIELDS,
    };
}

static void drop_batch(struct sample_set *set)
{
    free(set->labels);
    free(set->weights);
    free(set->values);
    free(set->starts);
    free(set->local32);
    free(set->local16);
    free(set->fields);
}

/* A model for any pair of algorithm and loss, also for pairs that drps_model_init() refuses. The
 * rank of mlr, and of svm where it is not 0, is how many classes there are. Field-aware ones
 * normalise samples where there is an intercept. */
static struct drps_model model_of(enum drps_algo algo, enum drps_loss loss, uint32_t rank, int bias)
{
    const uint32_t fields = drps_algorithm_has_fields(drps_algorithm(algo)) ? FIELDS : 0;
    const int named = drps_algorithm_takes_names(drps_algorithm(algo)) && rank;
    return (struct drps_model){.algo = algo,
                               .loss = loss,
                               .factors = named ? 0 : rank,
                               .fields = fields,
                               .dim = named ? rank : 1 + rank * (fields ? fields : 1),
                               .normalized = fields && bias,
                               .outputs = named ? rank : 1,
                               .has_bias = bias,
                               .seed = seed};
}

/* What labels the model takes, as drps_model_init() does. */
static int classes_of(const struct drps_model *model)
{
    if (model->outputs > 1) return (int)model->outputs;
    return drps_loss_is_classification(model->loss);
}

static float *random_params(size_t n)
{
    float *p = must(malloc((n + 1) * sizeof(*p)));
    for (size_t i = 0; i < n; i++)
        p[i] = (float)uniform(-0.5, 0.5);
    return p;
}

static const struct {
    enum drps_algo algo;
    uint32_t rank;
    size_t samples, entries;
} predictors[] = {
    {DRPS_ALGO_LOR, 0, 1100, 39}, /* more than two chunks */
    {DRPS_ALGO_LOR, 0, 7, 3},     {DRPS_ALGO_LMF, 1, 70, 2},   {DRPS_ALGO_LMF, 4, 70, 2},
    {DRPS_ALGO_LMF, 8, 70, 2},    {DRPS_ALGO_LMF, 16, 600, 2}, {DRPS_ALGO_LMF, 32, 70, 2},
    {DRPS_ALGO_LMF, 64, 70, 2},   {DRPS_ALGO_LMF, 13, 70, 2},  {DRPS_ALGO_FM, 1, 37, 9},
    {DRPS_ALGO_FM, 3, 37, 9},     {DRPS_ALGO_FM, 4, 37, 9},    {DRPS_ALGO_FM, 7, 37, 9},
    {DRPS_ALGO_FM, 8, 37, 9},     {DRPS_ALGO_FM, 16, 37, 9},   {DRPS_ALGO_FM, 16, 20, 1},
    {DRPS_ALGO_FM, 23, 37, 10},   {DRPS_ALGO_FM, 32, 37, 9},   {DRPS_ALGO_FM, 64, 37, 9},
    {DRPS_ALGO_FM, 100, 18, 9},   {DRPS_ALGO_FFM, 1, 37, 4},   {DRPS_ALGO_FFM, 3, 37, 9},
    {DRPS_ALGO_FFM, 4, 37, 4},    {DRPS_ALGO_FFM, 4, 37, 9},   {DRPS_ALGO_FFM, 4, 20, 1},
    {DRPS_ALGO_FFM, 7, 37, 4},    {DRPS_ALGO_FFM, 8, 37, 4},   {DRPS_ALGO_FFM, 8, 37, 9},
    {DRPS_ALGO_FFM, 12, 37, 4},   {DRPS_ALGO_FFM, 16, 37, 4},  {DRPS_ALGO_FFM, 16, 37, 9},
};

/* The losses of one score are the first. */
enum { PREDICTORS = sizeof(predictors) / sizeof(predictors[0]), LOSSES = DRPS_LOSS_SOFTMAX };

/*
 * Tolerance of kernels against twins: a float sum of T terms errs by at most T * 2^-24 times the
 * sum of their magnitudes. Here T stays below 1000 and typical sums of magnitudes below 100
 * (squares of sums for fm), and errors add like random steps, so 1e-5 * (that sum ^ 1/2 ~ 10) is
 * generous without hiding a wrong term.
 */
static const double abs_tolerance = 1e-4, rel_tolerance = 1e-4;

static void check_close(const char *what, size_t i, double expected, double found,
                        const struct drps_model *model, unsigned form)
{
    if (fabs(expected - found) <= abs_tolerance + rel_tolerance * fabs(expected)) return;
    fail_msg("%s %s rank %u, form %u, seed %llu: %s[%zu] expected %.9g, found %.9g",
             drps_algo_name(model->algo), drps_loss_name(model->loss), model->factors, form,
             (unsigned long long)seed, what, i, expected, found);
}

/* The kernels of each level of instructions that is here give the bytes of the others. */
static void check_levels(const struct drps_model *model, const struct sample_set *set, size_t m,
                         const float *params, const float *grads, const float *scores, double loss,
                         void *scratch)
{
    const enum drps_level usual = drps_level();
    const size_t samples = set->b.samples, n = samples * model->outputs, size = m * model->dim;
    float *of_level = must(malloc((n + size) * sizeof(float)));
    for (enum drps_level level = 0; level < DRPS_LEVELS; level++) {
        if (!drps_level_is_here(level)) continue;
        assert_int_equal(drps_level_set(drps_level_name(level), NULL), 0);
        memset(of_level, 0, (n + size) * sizeof(float));
        const double found = drps_model_gradient(model, &set->b, 0, samples, params, of_level + n,
                                                 of_level, scratch);
        if (memcmp(&loss, &found, sizeof(loss)) || memcmp(of_level, scores, n * sizeof(float)) ||
            memcmp(of_level + n, grads, size * sizeof(float)))
            fail_msg("%s %s rank %u, seed %llu: the kernels of %s give other bytes than those of "
                     "%s",
                     drps_algo_name(model->algo), drps_loss_name(model->loss), model->factors,
                     (unsigned long long)seed, drps_level_name(level), drps_level_name(usual));
    }
    assert_int_equal(drps_level_set(drps_level_name(usual), NULL), 0);
    free(of_level);
}

static void check_kernels(const struct drps_model *model, size_t samples, size_t entries,
                          unsigned form)
{
    const size_t m = 50 + samples / 10, dim = model->dim, n = samples * model->outputs;
    struct sample_set set;
    make_batch(&set, samples, m, entries, form_of(form), classes_of(model));
    float *params = random_params(m * dim);
    float *grads[2] = {must(calloc(m * dim, sizeof(float))), must(calloc(m * dim, sizeof(float)))};
    float *scores[3] = {must(calloc(n, sizeof(float))), must(calloc(n, sizeof(float))),
                        must(calloc(n, sizeof(float)))};
    void *scratch = must(malloc(drps_model_scratch_bytes(model, samples, m) + 1));

    const double expected =
        drps_model_gradient_ref(model, &set.b, 0, samples, params, grads[0], scores[0], scratch);
    const double found =
        drps_model_gradient(model, &set.b, 0, samples, params, grads[1], scores[1], scratch);
    drps_model_predict(model, &set.b, 0, samples, params, scores[2], scratch);
    check_close("loss", 0, expected, found, model, form);
    for (size_t s = 0; s < n; s++) {
        check_close("score", s, (double)scores[0][s], (double)scores[1][s], model, form);
        check_close("prediction", s, (double)scores[0][s], (double)scores[2][s], model, form);
    }
    for (size_t i = 0; i < m * dim; i++)
        check_close("gradient", i, (double)grads[0][i], (double)grads[1][i], model, form);
    check_levels(model, &set, m, params, grads[1], scores[1], found, scratch);

    free(scratch);
    for (int i = 0; i < 2; i++)
        free(grads[i]);
    for (int i = 0; i < 3; i++)
        free(scores[i]);
    free(params);
    drop_batch(&set);
}

/* Numbers of classes: of one vector and less, of many, odd ones; and more than one chunk of
 * samples. */
static const struct {
    uint32_t classes;
    size_t samples, entries;
} named[] = {{2, 40, 9},    {3, 40, 9},   {4, 40, 9},  {5, 40, 10}, {7, 9, 9},  {8, 9, 9},
             {10, 100, 39}, {16, 33, 1},  {17, 7, 3},  {20, 40, 9}, {33, 9, 8}, {63, 9, 9},
             {65, 9, 9},    {100, 40, 9}, {129, 9, 9}, {263, 5, 9}};

enum { NAMED = sizeof(named) / sizeof(named[0]) };

static const struct {
    enum drps_algo algo;
    enum drps_loss loss;
} of_classes[] = {{DRPS_ALGO_MLR, DRPS_LOSS_SOFTMAX},
                  {DRPS_ALGO_SVM, DRPS_LOSS_HINGE},
                  {DRPS_ALGO_SVM, DRPS_LOSS_SQUARED_HINGE}};

enum { OF_CLASSES = sizeof(of_classes) / sizeof(of_classes[0]) };

static void test_model_matrix_matches_its_twin(void **state)
{
    (void)state;
    for (size_t k = 0; k < OF_CLASSES; k++)
        for (size_t c = 0; c < NAMED; c++)
            for (unsigned form = 0; form < FORMS; form++) {
                const struct drps_model model = model_of(of_classes[k].algo, of_classes[k].loss,
                                                         named[c].classes, form_of(form).bias);
                check_kernels(&model, named[c].samples, named[c].entries, form);
            }
}

static void test_model_kernels_match_the_twins(void **state)
{
    (void)state;
    for (size_t p = 0; p < PREDICTORS; p++)
        for (unsigned loss = 0; loss < LOSSES; loss++)
            for (unsigned form = 0; form < FORMS; form++) {
                struct drps_model model = model_of(predictors[p].algo, (enum drps_loss)loss,
                                                   predictors[p].rank, form_of(form).bias);
                check_kernels(&model, predictors[p].samples, predictors[p].entries, form);
            }
}

/* Samples of more entries than a tile of the kernel has; in a build with sanitizers fewer of them.
 */
static void test_model_ffm_long_samples_match_the_twin(void **state)
{
    (void)state;
    for (uint32_t factors = 2; factors <= 8; factors += 2)
        for (unsigned form = 0; form<FORMS; form += DRPS_TEST_ONE_IN> 1 ? 3 : 1) {
            const struct drps_model model =
                model_of(DRPS_ALGO_FFM, DRPS_LOSS_LOGISTIC, factors, form_of(form).bias);
            check_kernels(&model, 200, 66, form);
        }
    const struct drps_model model = model_of(DRPS_ALGO_FFM, DRPS_LOSS_LOGISTIC, 4, 1);
    check_kernels(&model, 1000, 140, 0);
}

/* A mean over the batch is its sum, divided; parts of a batch are parts of its mean. */
static void check_mean(const struct drps_model *sum, unsigned form)
{
    enum { SAMPLES = 40, ROWS = 54, WORKERS = 3 };
    const size_t dim = sum->dim;
    struct drps_model mean = *sum;
    struct sample_set set;
    mean.mean_of = WORKERS;
    make_batch(&set, SAMPLES, ROWS, sum->algo == DRPS_ALGO_LMF ? 2 : 9, form_of(form),
               classes_of(sum));
    float *params = random_params(ROWS * dim), *scores = must(calloc(SAMPLES * 8, sizeof(float)));
    float *grads[3];
    for (int i = 0; i < 3; i++)
        grads[i] = must(calloc(ROWS * dim, sizeof(float)));
    void *scratch = must(malloc(drps_model_scratch_bytes(sum, SAMPLES, ROWS) + 1));
    (void)drps_model_gradient(sum, &set.b, 0, SAMPLES, params, grads[0], scores, scratch);
    (void)drps_model_gradient(&mean, &set.b, 0, 11, params, grads[1], scores, scratch);
    (void)drps_model_gradient(&mean, &set.b, 11, SAMPLES, params, grads[1], scores, scratch);
    (void)drps_model_gradient_ref(&mean, &set.b, 0, SAMPLES, params, grads[2], scores, scratch);
    double weight = 0; /* without weights all are 1 */
    for (size_t i = 0; i < SAMPLES; i++)
        weight += (double)set.weights[i];
    for (size_t i = 0; i < ROWS * dim; i++) {
        const double want = (double)grads[0][i] / (weight * WORKERS);
        for (int k = 1; k < 3; k++)
            if (fabs(want - (double)grads[k][i]) > 1e-6)
                fail_msg("%s, form %u, %s: mean gradient[%zu] expected %.9g, found %.9g",
                         drps_algo_name(sum->algo), form, k > 1 ? "twin" : "kernel", i, want,
                         (double)grads[k][i]);
    }
    free(scratch);
    for (int i = 0; i < 3; i++)
        free(grads[i]);
    free(scores);
    free(params);
    drop_batch(&set);
}

static void test_model_gradient_may_be_a_mean(void **state)
{
    (void)state;
    for (unsigned form = 0; form < FORMS; form++) {
        const struct drps_model models[] = {
            model_of(DRPS_ALGO_LOR, DRPS_LOSS_LOGISTIC, 0, form_of(form).bias),
            model_of(DRPS_ALGO_FM, DRPS_LOSS_SQUARED, 4, form_of(form).bias),
            model_of(DRPS_ALGO_MLR, DRPS_LOSS_SOFTMAX, 5, form_of(form).bias),
        };
        for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
            check_mean(&models[i], form);
    }
}

/* Hinge losses have a kink (or a jump of the second derivative) at margin 0: no sample may lie
 * close to it. */
static int near_kink(const struct drps_model *model, const struct drps_batch *b,
                     const float *scores)
{
    if (model->loss != DRPS_LOSS_HINGE && model->loss != DRPS_LOSS_SQUARED_HINGE) return 0;
    for (size_t i = 0; i < b->samples * model->outputs; i++) {
        const float label = b->labels[i / model->outputs];
        const float sign = model->outputs == 1                    ? label
                           : label == (float)(i % model->outputs) ? 1.0f
                                                                  : -1.0f;
        if (fabsf(1 - scores[i] * sign) < 0.02f) return 1;
    }
    return 0;
}

static void check_differences(const struct drps_model *model, unsigned form)
{
    enum { SAMPLES = 9, ROWS = 8 };
    const size_t dim = model->dim, entries = model->algo == DRPS_ALGO_LMF ? 2 : 4;
    const float h =
        0x1p-10f; /* parameters are multiples of 2^-12, so both ends of the difference are exact */
    struct sample_set set;
    float params[ROWS * 17], grads[2][ROWS * 17], scores[SAMPLES * 17], scratch[SAMPLES * 17];
    int tries = 0;

    assert_true(dim <= 17);
    make_batch(&set, SAMPLES, ROWS, entries, form_of(form), classes_of(model));
    do {
        for (size_t i = 0; i < ROWS * dim; i++)
            params[i] = (float)(floor(uniform(-2048, 2048)) * 0x1p-12);
        drps_model_predict_ref(model, &set.b, 0, SAMPLES, params, scores, scratch);
    } while (near_kink(model, &set.b, scores) && ++tries < 100);
    assert_true(tries < 100);

    memset(grads, 0, sizeof(grads));
    (void)drps_model_gradient_ref(model, &set.b, 0, SAMPLES, params, grads[0], scores, scratch);
    (void)drps_model_gradient(model, &set.b, 0, SAMPLES, params, grads[1], scores, scratch);
    for (size_t i = 0; i < ROWS * dim; i++) {
        float unused[ROWS * 17];
        const float at = params[i];
        params[i] = at + h;
        const double up =
            drps_model_gradient_ref(model, &set.b, 0, SAMPLES, params, unused, scores, scratch);
        params[i] = at - h;
        const double down =
            drps_model_gradient_ref(model, &set.b, 0, SAMPLES, params, unused, scores, scratch);
        params[i] = at;
        /* The error is h^2 / 6 = 1.6e-7 times a third derivative (at most a few), plus float sums
         * of 9 terms. */
        const double expected = (up - down) / (2 * (double)h);
        for (int k = 0; k < 2; k++)
            if (!(fabs(expected - (double)grads[k][i]) <= 1e-5 + 1e-5 * fabs(expected)))
                fail_msg(
                    "%s %s rank %u, form %u, seed %llu: %s gradient[%zu] expected %.9g, found %.9g",
                    drps_algo_name(model->algo), drps_loss_name(model->loss), model->factors, form,
                    (unsigned long long)seed, k ? "kernel's" : "twin's", i, expected,
                    (double)grads[k][i]);
    }
    drop_batch(&set);
}

static void test_model_gradients_match_finite_differences(void **state)
{
    static const struct {
        enum drps_algo algo;
        uint32_t rank;
    } cases[] = {{DRPS_ALGO_LIR, 0}, {DRPS_ALGO_LMF, 3}, {DRPS_ALGO_LMF, 16},
                 {DRPS_ALGO_FM, 4},  {DRPS_ALGO_FM, 6},  {DRPS_ALGO_FM, 16},
                 {DRPS_ALGO_FFM, 1}, {DRPS_ALGO_FFM, 3}, {DRPS_ALGO_FFM, 4}};

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
        for (unsigned loss = 0; loss < LOSSES; loss++)
            for (unsigned form = 0; form < FORMS; form++) {
                struct drps_model model = model_of(cases[c].algo, (enum drps_loss)loss,
                                                   cases[c].rank, form_of(form).bias);
                check_differences(&model, form);
            }
    for (size_t k = 0; k < OF_CLASSES; k++)
        for (uint32_t classes = 2; classes <= 17; classes += 5)
            for (unsigned form = 0; form < FORMS; form++) {
                const struct drps_model model =
                    model_of(of_classes[k].algo, of_classes[k].loss, classes, form_of(form).bias);
                check_differences(&model, form);
            }
}

/* Scores that differ by more than any float's exponent, equal ones, and one that is no number. */
static void test_softmax_at_its_edges(void **state)
{
    const float scores[] = {1000, -1000, 0, 5, 5, 5, -3e38f, 3e38f, 0, NAN, 1, 2};
    const double losses[] = {2000, log(3), INFINITY, NAN};
    const float labels[] = {1, 2, 0, 1}, none[] = {-1, 3, NAN};
    float slopes[12];

    (void)state;
    for (size_t s = 0; s < 3; s++) {
        const double loss = drps_softmax_sum(scores + 3 * s, labels + s, 1, 3, slopes);
        double sum = 0;
        if (!(fabs(loss - losses[s]) <= 1e-6 * losses[s]) && !(s == 2 && loss > 3e38))
            fail_msg("sample %zu: expected %g, found %g", s, losses[s], loss);
        for (size_t c = 0; c < 3; c++)
            sum += (double)slopes[c];
        assert_true(fabs(sum) < 1e-6);
    }
    assert_true(isnan(drps_softmax_sum(scores + 9, labels + 3, 1, 3, slopes)));
    for (size_t i = 0; i < 3; i++)
        assert_true(isnan(drps_softmax_sum(scores, none + i, 1, 3, slopes)));
    assert_int_equal(drps_softmax_best(scores + 3, 3), 0);
    assert_int_equal(drps_softmax_best(scores + 6, 3), 1);
}

/* A label that is no class, and scores that are no numbers or beyond a float's sums of squares. */
static void test_hinges_at_their_edges(void **state)
{
    const float scores[] = {1, -1, 0.5f, NAN, -2, 3, 3e38f, -3e38f, 0}, none[] = {-1, 3, NAN};
    float slopes[3], label = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_true(isnan(drps_hinges_sum(DRPS_LOSS_HINGE, scores, none + i, 1, 3, slopes)));
    assert_true(fabs(drps_hinges_sum(DRPS_LOSS_HINGE, scores, &label, 1, 3, slopes) - 1.5) < 1e-7);
    assert_true(slopes[0] == 0 && slopes[1] == 0 && slopes[2] == 1);
    assert_true(fabs(drps_hinges_sum(DRPS_LOSS_SQUARED_HINGE, scores, &label, 1, 3, NULL) - 2.25) <
                1e-6);
    for (label = 0; label < 3; label++)
        assert_true(isnan(drps_hinges_sum(DRPS_LOSS_HINGE, scores + 3, &label, 1, 3, slopes)) &&
                    isnan(slopes[0]));
    label = 1;
    assert_true(drps_hinges_sum(DRPS_LOSS_HINGE, scores + 6, &label, 1, 3, slopes) > 5e38);
}

/* The sum of exponentials without slopes, of many classes too, and the shares that they are. */
static void test_softmax_probabilities_are_those_of_its_loss(void **state)
{
    enum { CLASSES = 150 };
    float scores[CLASSES], slopes[CLASSES];
    double probabilities[CLASSES], sum = 0;

    (void)state;
    for (size_t c = 0; c < CLASSES; c++)
        scores[c] = (float)uniform(-8, 8);
    drps_softmax_probabilities(scores, CLASSES, probabilities);
    for (size_t c = 0; c < CLASSES; c++)
        sum += probabilities[c];
    assert_true(fabs(sum - 1) < 1e-12);
    for (size_t c = 0; c < CLASSES; c++) {
        const float label = (float)c;
        const double with = drps_softmax_sum(scores, &label, 1, CLASSES, slopes);
        const double without = drps_softmax_sum(scores, &label, 1, CLASSES, NULL);
        assert_true(fabs(with + log(probabilities[c])) < 1e-5);
        assert_true(fabs(without - with) < 1e-5);
        assert_true(fabs((double)slopes[c] + 1 - probabilities[c]) < 1e-6);
    }
}

static void test_model_scores_do_not_depend_on_the_range(void **state)
{
    (void)state;
    for (size_t p = 0; p < PREDICTORS; p++)
        for (unsigned form = 0; form < FORMS; form++) {
            const struct drps_model model = model_of(predictors[p].algo, DRPS_LOSS_LOGISTIC,
                                                     predictors[p].rank, form_of(form).bias);
            const size_t n = predictors[p].samples, m = 60;
            struct sample_set set;
            make_batch(&set, n, m, predictors[p].entries, form_of(form), 1);
            float *params = random_params(m * model.dim);
            float *whole = must(calloc(n, sizeof(float))), *parts = must(calloc(n, sizeof(float)));
            void *scratch = must(malloc(drps_model_scratch_bytes(&model, n, m) + 1));

            drps_model_predict(&model, &set.b, 0, n, params, whole, scratch);
            for (size_t s = 0; s < n;) {
                const size_t end = s + 1 + below(n - s);
                drps_model_predict(&model, &set.b, s, end, params, parts, scratch);
                s = end;
            }
            for (size_t s = 0; s < n; s++)
                if (whole[s] != parts[s])
                    fail_msg("%s rank %u, form %u, seed %llu: score[%zu] expected %.9g, found %.9g",
                             drps_algo_name(model.algo), model.factors, form,
                             (unsigned long long)seed, s, (double)whole[s], (double)parts[s]);
            free(scratch);
            free(whole);
            free(parts);
            free(params);
            drop_batch(&set);
        }
}

static void test_model_gradients_of_ranges_add_up(void **state)
{
    (void)state;
    for (size_t p = 0; p < PREDICTORS; p++) {
        const struct drps_model model =
            model_of(predictors[p].algo, DRPS_LOSS_LOGISTIC, predictors[p].rank, 1);
        const size_t n = predictors[p].samples, m = 60, floats = m * model.dim;
        struct sample_set set;
        make_batch(&set, n, m, predictors[p].entries, form_of(12), 1);
        float *params = random_params(floats), *scores = must(calloc(n, sizeof(float)));
        float *whole = must(calloc(floats, sizeof(float))),
              *parts = must(calloc(floats, sizeof(float)));
        void *scratch = must(malloc(drps_model_scratch_bytes(&model, n, m) + 1));
        double loss = 0;

        const double expected =
            drps_model_gradient(&model, &set.b, 0, n, params, whole, scores, scratch);
        for (size_t s = 0; s < n;) {
            const size_t end = s + 1 + below(n - s);
            loss += drps_model_gradient(&model, &set.b, s, end, params, parts, scores, scratch);
            s = end;
        }
        check_close("loss", 0, expected, loss, &model, 12);
        for (size_t i = 0; i < floats; i++)
            check_close("gradient", i, (double)whole[i], (double)parts[i], &model, 12);
        free(scratch);
        free(scores);
        free(whole);
        free(parts);
        free(params);
        drop_batch(&set);
    }
}

static void test_model_gradient_repeats_bit_for_bit(void **state)
{
    (void)state;
    for (size_t p = 0; p < PREDICTORS; p++) {
        const struct drps_model model =
            model_of(predictors[p].algo, DRPS_LOSS_LOGISTIC, predictors[p].rank, 1);
        const size_t n = predictors[p].samples, m = 60, floats = m * model.dim;
        struct sample_set set;
        make_batch(&set, n, m, predictors[p].entries, form_of(8), 1);
        float *params = random_params(floats), *scores = must(calloc(n, sizeof(float)));
        float *grads[2] = {must(calloc(floats, sizeof(float))),
                           must(calloc(floats, sizeof(float)))};
        void *scratch = must(malloc(drps_model_scratch_bytes(&model, n, m) + 1));
        double loss[2];

        for (int k = 0; k < 2; k++)
            loss[k] = drps_model_gradient(&model, &set.b, 0, n, params, grads[k], scores, scratch);
        assert_memory_equal(&loss[0], &loss[1], sizeof(loss[0]));
        assert_memory_equal(grads[0], grads[1], floats * sizeof(float));
        free(scratch);
        free(scores);
        free(grads[0]);
        free(grads[1]);
        free(params);
        drop_batch(&set);
    }
}

/* The samples of `set`, each as often as it weighs, in one batch without weights. */
static void make_copies(const struct drps_batch *b, struct sample_set *out)
{
    size_t n = 0, nnz = 0;
    for (size_t s = 0; s < b->samples; s++) {
        n += (size_t)b->weights[s];
        nnz += (size_t)b->weights[s] * (drps_batch_start(b, s + 1) - drps_batch_start(b, s));
    }
    memset(out, 0, sizeof(*out));
    out->labels = must(malloc((n + 1) * sizeof(float)));
    out->values = must(malloc((nnz + 1) * sizeof(float)));
    out->starts = must(malloc((n + 1) * sizeof(uint32_t)));
    out->local32 = must(malloc((nnz + 1) * sizeof(uint32_t)));
    out->fields = must(malloc((nnz + 1) * sizeof(uint16_t)));
    n = nnz = 0;
    for (size_t s = 0; s < b->samples; s++)
        for (size_t k = 0; k < (size_t)b->weights[s]; k++) {
            out->labels[n] = b->labels[s];
            out->starts[n++] = (uint32_t)nnz;
            for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++) {
                out->local32[nnz] = (uint32_t)drps_batch_local(b, j);
                out->fields[nnz] = b->fields ? b->fields[j] : 0;
                out->values[nnz++] = drps_batch_value(b, j);
            }
        }
    out->starts[n] = (uint32_t)nnz;
    out->b = (struct drps_batch){.samples = n,
                                 .rows = b->rows,
                                 .nnz = nnz,
                                 .labels = out->labels,
                                 .starts = out->starts,
                                 .local32 = out->local32,
                                 .fields = b->fields ? out->fields : NULL,
                                 .field_count = b->field_count,
                                 .values = out->values};
}

/* A sample of weight n has the loss and the gradient of n copies. */
static void check_weight_is_copies(const struct drps_model *model, size_t samples, size_t entries,
                                   unsigned form)
{
    const size_t m = 60, floats = m * model->dim;
    struct sample_set set, copies;
    make_batch(&set, samples, m, entries, form_of(form), classes_of(model));
    make_copies(&set.b, &copies);
    const size_t n = copies.b.samples;
    float *params = random_params(floats);
    float *scores = must(calloc((n + samples) * model->outputs, sizeof(float)));
    float *grads[2] = {must(calloc(floats, sizeof(float))), must(calloc(floats, sizeof(float)))};
    void *scratch = must(malloc(drps_model_scratch_bytes(model, n, m) + 1));
    const double expected =
        drps_model_gradient(model, &copies.b, 0, n, params, grads[0], scores, scratch);
    const double found =
        drps_model_gradient(model, &set.b, 0, samples, params, grads[1], scores, scratch);
    check_close("loss", 0, expected, found, model, form);
    for (size_t i = 0; i < floats; i++)
        check_close("gradient", i, (double)grads[0][i], (double)grads[1][i], model, form);
    if (model->outputs > 1) { /* sufficient vectors: slopes, then what they add up to */
        memset(grads[1], 0, floats * sizeof(float));
        float *slopes = must(calloc(samples * model->outputs, sizeof(float)));
        drps_model_predict(model, &set.b, 0, samples, params, scores, scratch);
        check_close("loss", 1, expected, drps_model_slopes(model, &set.b, scores, slopes, scratch),
                    model, form);
        drps_model_backward(model, &set.b, slopes, grads[1]);
        for (size_t i = 0; i < floats; i++)
            check_close("gradient of vectors", i, (double)grads[0][i], (double)grads[1][i], model,
                        form);
        free(slopes);
    }
    free(scratch);
    free(scores);
    free(params);
    for (int k = 0; k < 2; k++)
        free(grads[k]);
    drop_batch(&set);
    drop_batch(&copies);
}

static void test_model_weights_are_copies(void **state)
{
    (void)state;
    for (size_t p = 0; p < PREDICTORS; p++)
        for (unsigned loss = 0; loss < LOSSES; loss++)
            for (unsigned form = FORMS / 2; form < FORMS; form++) {
                struct drps_model model = model_of(predictors[p].algo, (enum drps_loss)loss,
                                                   predictors[p].rank, form_of(form).bias);
                model.mean_of = form % 3; /* a sum, or a mean, which is by weight */
                check_weight_is_copies(&model,
                                       predictors[p].samples < 100 ? predictors[p].samples : 100,
                                       predictors[p].entries, form);
            }
    for (size_t k = 0; k < OF_CLASSES; k++)
        for (size_t c = 0; c < NAMED; c++) {
            const struct drps_model model =
                model_of(of_classes[k].algo, of_classes[k].loss, named[c].classes, 1);
            check_weight_is_copies(&model, named[c].samples, named[c].entries, FORMS - 1);
        }
}

/* A weight of 1 changes no bit but where losses are summed. */
static void test_model_weights_of_one_change_nothing(void **state)
{
    (void)state;
    for (size_t p = 0; p < PREDICTORS; p++)
        for (unsigned loss = 0; loss < LOSSES; loss++) {
            const struct drps_model model =
                model_of(predictors[p].algo, (enum drps_loss)loss, predictors[p].rank, 1);
            const size_t n = predictors[p].samples, m = 60, floats = m * model.dim;
            struct sample_set set;
            make_batch(&set, n, m, predictors[p].entries, form_of(14), classes_of(&model));
            float *params = random_params(floats), *scores = must(calloc(n, sizeof(float)));
            float *grads[2] = {must(calloc(floats, sizeof(float))),
                               must(calloc(floats, sizeof(float)))};
            void *scratch = must(malloc(drps_model_scratch_bytes(&model, n, m) + 1));
            double sums[2];
            for (int k = 0; k < 2; k++) {
                set.b.weights = k ? set.weights : NULL;
                sums[k] =
                    drps_model_gradient(&model, &set.b, 0, n, params, grads[k], scores, scratch);
            }
            assert_memory_equal(grads[0], grads[1], floats * sizeof(float));
            assert_true(fabs(sums[0] - sums[1]) <= 1e-12 * fabs(sums[0]));
            free(scratch);
            free(scores);
            free(params);
            for (int k = 0; k < 2; k++)
                free(grads[k]);
            drop_batch(&set);
        }
}

static void test_model_empty_range_changes_nothing(void **state)
{
    float params[4] = {1, 2, 3, 4}, grads[4] = {5, 6, 7, 8}, scores[1] = {9};
    const struct drps_batch b = {
        .rows = 4, .labels = scores, .per_sample = 1, .local16 = (uint16_t[]){0}};
    const struct drps_model model = model_of(DRPS_ALGO_LOR, DRPS_LOSS_LOGISTIC, 0, 1);

    (void)state;
    assert_true(drps_model_gradient(&model, &b, 0, 0, params, grads, scores, NULL) == 0.0);
    drps_model_predict(&model, &b, 0, 0, params, scores, NULL);
    assert_true(grads[0] == 5 && grads[1] == 6 && grads[2] == 7 && grads[3] == 8 && scores[0] == 9);
}

/* Rows: intercept .5; (.1; 1, 2), (.2; 3, -1), (.3; .5, 4). Worked out by hand. */
static const float hand_params[] = {0.5f, 0, 0, 0.1f, 1, 2, 0.2f, 3, -1, 0.3f, 0.5f, 4};

static void test_model_fm_scores_by_hand(void **state)
{
    /* <1,2> = 1, <1,3> = 8.5, <2,3> = -2.5; first sample: .5 + .6 + 7; second: .5 + .2*2 + .3*-1 -
     * 2*-2.5 */
    const struct drps_batch b = {.samples = 3,
                                 .rows = 4,
                                 .nnz = 5,
                                 .starts = (uint32_t[]){0, 3, 5, 5},
                                 .local16 = (uint16_t[]){1, 2, 3, 2, 3},
                                 .values = (float[]){1, 1, 1, 2, -1}};
    const double expected[] = {8.1, 5.6, 0.5};
    const struct drps_model model = model_of(DRPS_ALGO_FM, DRPS_LOSS_SQUARED, 2, 1);
    float scores[3], scratch[6];

    (void)state;
    drps_model_predict(&model, &b, 0, 3, hand_params, scores, scratch);
    for (int s = 0; s < 3; s++)
        if (!(fabs((double)scores[s] - expected[s]) < 1e-5)) /* float rounding of sums below 100 */
            fail_msg("score[%d]: expected %g, found %.9g", s, expected[s], (double)scores[s]);
}

static void test_model_mf_scores_known_rows_only(void **state)
{
    /* user 1 and item 2: .5 + .1 + .2 + 1; item 3 alone: .5 + .3; nothing known: .5 */
    const struct drps_batch b = {.samples = 3,
                                 .rows = 4,
                                 .nnz = 3,
                                 .starts = (uint32_t[]){0, 2, 3, 3},
                                 .local32 = (uint32_t[]){1, 2, 3}};
    const double expected[] = {1.8, 0.8, 0.5};
    const struct drps_model model = model_of(DRPS_ALGO_LMF, DRPS_LOSS_SQUARED, 2, 1);
    float scores[3];

    (void)state;
    drps_model_predict(&model, &b, 0, 3, hand_params, scores, NULL);
    for (int s = 0; s < 3; s++)
        if (!(fabs((double)scores[s] - expected[s]) < 1e-6)) /* float rounding of sums below 4 */
            fail_msg("score[%d]: expected %g, found %.9g", s, expected[s], (double)scores[s]);
}

static void test_loss_value_matches_values_by_hand(void **state)
{
    const double ln2 = 0.69314718055994531, inf = (double)INFINITY;
    const struct {
        const char *name;
        enum drps_loss loss;
        float score, label;
        double value, slope;
    } cases[] = {
        {.name = "squared",
         .loss = DRPS_LOSS_SQUARED,
         .score = 3,
         .label = 1,
         .value = 2,
         .slope = 2},
        {.name = "squared, below",
         .loss = DRPS_LOSS_SQUARED,
         .score = -1,
         .label = 2,
         .value = 4.5,
         .slope = -3},
        {.name = "logistic at 0",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = 0,
         .label = 1,
         .value = ln2,
         .slope = -0.5},
        {.name = "logistic at -0",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = -0.0f,
         .label = -1,
         .value = ln2,
         .slope = 0.5},
        {.name = "logistic, right",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = 2,
         .label = 1,
         .value = 0.12692801104297250,
         .slope = -0.11920292202211755},
        {.name = "logistic, wrong",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = 2,
         .label = -1,
         .value = 2.12692801104297250,
         .slope = 0.88079707797788245},
        {.name = "logistic, far right",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = -40,
         .label = -1,
         .value = 4.2483542552915889e-18,
         .slope = 4.2483542552915889e-18},
        {.name = "logistic, far wrong",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = 10000,
         .label = -1,
         .value = 10000,
         .slope = 1},
        {.name = "logistic, largest float",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = -FLT_MAX,
         .label = 1,
         .value = (double)FLT_MAX,
         .slope = -1},
        {.name = "logistic, infinitely right",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = INFINITY,
         .label = 1,
         .value = 0,
         .slope = 0},
        {.name = "logistic, infinitely wrong",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = -INFINITY,
         .label = 1,
         .value = inf,
         .slope = -1},
        {.name = "logistic, least denormal",
         .loss = DRPS_LOSS_LOGISTIC,
         .score = 0x1p-149f,
         .label = 1,
         .value = ln2,
         .slope = -0.5},
        {.name = "hinge inside",
         .loss = DRPS_LOSS_HINGE,
         .score = 0.25f,
         .label = 1,
         .value = 0.75,
         .slope = -1},
        {.name = "hinge wrong",
         .loss = DRPS_LOSS_HINGE,
         .score = 2,
         .label = -1,
         .value = 3,
         .slope = 1},
        {.name = "hinge outside",
         .loss = DRPS_LOSS_HINGE,
         .score = -1.5f,
         .label = -1,
         .value = 0,
         .slope = 0},
        {.name = "hinge at infinity",
         .loss = DRPS_LOSS_HINGE,
         .score = INFINITY,
         .label = 1,
         .value = 0,
         .slope = 0},
        {.name = "squared hinge inside",
         .loss = DRPS_LOSS_SQUARED_HINGE,
         .score = 0.5f,
         .label = 1,
         .value = 0.25,
         .slope = -1},
        {.name = "squared hinge wrong",
         .loss = DRPS_LOSS_SQUARED_HINGE,
         .score = 1,
         .label = -1,
         .value = 4,
         .slope = 4},
        {.name = "squared hinge outside",
         .loss = DRPS_LOSS_SQUARED_HINGE,
         .score = 1,
         .label = 1,
         .value = 0,
         .slope = 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        float slopes[2];
        const double found[2] = {
            drps_loss_value(cases[i].loss, cases[i].score, cases[i].label, &slopes[0]),
            drps_loss_sum(cases[i].loss, &cases[i].score, &cases[i].label, 1, &slopes[1]),
        };
        for (int k = 0; k < 2; k++) { /* 4 float ulp: the vector form's error */
            const double slack = 4 * 0x1p-23;
            const int value_ok = found[k] == cases[i].value ||
                                 fabs(found[k] - cases[i].value) <= slack * fabs(cases[i].value);
            const int slope_ok =
                fabs((double)slopes[k] - cases[i].slope) <= slack * fabs(cases[i].slope);
            if (!value_ok || !slope_ok)
                fail_msg(
                    "%s (%s): score %g, label %g: expected %.17g and %.9g, found %.17g and %.9g",
                    cases[i].name, k ? "sum" : "value", (double)cases[i].score,
                    (double)cases[i].label, cases[i].value, cases[i].slope, found[k],
                    (double)slopes[k]);
        }
    }
}

static void test_loss_sum_is_within_ulps_of_libm(void **state)
{
    enum { N = 4096 };
    static float scores[N], labels[N], slopes[N];

    (void)state;
    for (int scale = -40; scale <= 10; scale++) {
        double expected_sum = 0;
        for (int i = 0; i < N; i++) {
            scores[i] = (float)ldexp(uniform(-1, 1), scale);
            labels[i] = below(2) ? 1.0f : -1.0f;
        }
        for (int i = 0; i < N; i++) { /* one at a time: the value; the runs below: the slopes */
            float slope;
            const double expected = drps_loss_value(DRPS_LOSS_LOGISTIC, scores[i], labels[i], NULL);
            const double found =
                drps_loss_sum(DRPS_LOSS_LOGISTIC, &scores[i], &labels[i], 1, &slope);
            expected_sum += expected;
            /* exp 2 ulp, log1p 3 ulp, rounding; the absolute part covers denormal results */
            if (!(fabs(found - expected) <= 6 * 0x1p-24 * expected + 0x1p-140))
                fail_msg("seed %llu: loss of score %.9g, label %g: expected %.9g, found %.9g",
                         (unsigned long long)seed, (double)scores[i], (double)labels[i], expected,
                         found);
        }
        const double sum = drps_loss_sum(DRPS_LOSS_LOGISTIC, scores, labels, N, slopes);
        if (!(fabs(sum - expected_sum) <= 1e-6 * expected_sum))
            fail_msg("seed %llu, scale %d: sum expected %.9g, found %.9g", (unsigned long long)seed,
                     scale, expected_sum, sum);
        for (int i = 0; i < N; i++) {
            const double y = (double)labels[i], expected = -y / (1 + exp(y * (double)scores[i]));
            if (!(fabs((double)slopes[i] - expected) <= 6 * 0x1p-24 * fabs(expected) + 0x1p-140))
                fail_msg("seed %llu: slope of score %.9g, label %g: expected %.9g, found %.9g",
                         (unsigned long long)seed, (double)scores[i], y, expected,
                         (double)slopes[i]);
        }
    }
}

static void test_loss_sum_does_not_hide_nan(void **state)
{
    (void)state;
    for (int loss = 0; loss < LOSSES; loss++) {
        float scores[19] = {0}, labels[19], slopes[19];
        for (int i = 0; i < 19; i++)
            labels[i] = 1;
        for (int at = 0; at < 19; at++) {
            scores[at] = NAN;
            assert_true(isnan(drps_loss_sum((enum drps_loss)loss, scores, labels, 19, slopes)));
            assert_true(isnan(slopes[at]));
            scores[at] = 0;
        }
    }
}

/* Each entry of the table is found by its name, and what it means by default is what it allows. */
static void test_algorithms_fit_their_losses(void **state)
{
    (void)state;
    assert_null(drps_algorithm_find("nosuch"));
    assert_null(drps_algorithm_find(NULL));
    for (int i = 0; i < DRPS_ALGOS; i++) {
        const struct drps_algorithm *a = drps_algorithm((enum drps_algo)i);
        const int named_labels = drps_algorithm_takes_names(a);
        const int real = a->labels != DRPS_LABELS_CLASSES && !named_labels;
        const int two = a->labels != DRPS_LABELS_REAL;
        assert_int_equal(a->algo, i);
        assert_ptr_equal(drps_algorithm_find(drps_algo_name(a->algo)), a);
        assert_true(drps_algorithm_has_loss(a, a->loss_of_reals));
        assert_true(drps_algorithm_has_loss(a, a->loss_of_classes));
        if (!drps_algorithm_has_text(a) && /* a text is of any labels */
            (drps_loss_is_classification(a->loss_of_reals) == real ||
             drps_loss_is_classification(a->loss_of_classes) != two))
            fail_msg("%s: losses %s and %s", a->name, drps_loss_name(a->loss_of_reals),
                     drps_loss_name(a->loss_of_classes));
        assert_int_equal(drps_algorithm_dim(a, 8, 3), named_labels ? 3 : a->has_factors ? 9 : 1);
        assert_int_equal(drps_algorithm_dim(a, 0, 1), 1);
        assert_non_null(a->tables[0]);
    }
}

static void test_model_init_knows_what_fits(void **state)
{
    static const struct {
        const char *algo, *loss;
        uint32_t rank;
        int classification; /* or how many named classes there are */
        int code;           /* 0, or what is expected */
        enum drps_loss found;
        uint32_t dim;
        const char *text; /* part of the error */
    } cases[] = {
        {.algo = "lir", .found = DRPS_LOSS_SQUARED, .dim = 1},
        {.algo = "lir",
         .loss = "squared",
         .classification = 1,
         .found = DRPS_LOSS_SQUARED,
         .dim = 1},
        {.algo = "lor", .classification = 1, .found = DRPS_LOSS_LOGISTIC, .dim = 1},
        {.algo = "svm", .classification = 1, .found = DRPS_LOSS_HINGE, .dim = 1},
        {.algo = "svm",
         .loss = "squared-hinge",
         .classification = 1,
         .found = DRPS_LOSS_SQUARED_HINGE,
         .dim = 1},
        {.algo = "lmf", .rank = 8, .found = DRPS_LOSS_SQUARED, .dim = 9},
        {.algo = "fm", .classification = 1, .found = DRPS_LOSS_LOGISTIC, .dim = 17},
        {.algo = "fm", .rank = 4, .found = DRPS_LOSS_SQUARED, .dim = 5},
        {.algo = "fm",
         .loss = "squared",
         .rank = 4,
         .classification = 1,
         .found = DRPS_LOSS_SQUARED,
         .dim = 5},
        {.algo = "mlr", .classification = 7, .found = DRPS_LOSS_SOFTMAX, .dim = 7},
        {.algo = "mlr", .classification = 65535, .found = DRPS_LOSS_SOFTMAX, .dim = 65535},
        {.algo = "mlr",
         .classification = 65536,
         .code = DRPS_E_CONFIG,
         .text = "mlr does not go with 65536 named classes"},
        {.algo = "mlr", .classification = 1, .code = DRPS_E_CONFIG, .text = "1 named classes"},
        {.algo = "mlr", .code = DRPS_E_CONFIG, .text = "real numbers"},
        {.algo = "mlr",
         .loss = "logistic",
         .classification = 3,
         .code = DRPS_E_CONFIG,
         .text = "mlr does not go with the logistic loss"},
        {.algo = "svm", .classification = 3, .found = DRPS_LOSS_HINGE, .dim = 3},
        {.algo = "svm",
         .loss = "squared-hinge",
         .classification = 2,
         .found = DRPS_LOSS_SQUARED_HINGE,
         .dim = 2},
        {.algo = "svm",
         .classification = 65536,
         .code = DRPS_E_CONFIG,
         .text = "svm does not go with 65536 named classes"},
        {.algo = "svm", .code = DRPS_E_CONFIG, .text = "real numbers"},
        {.algo = "lor", .classification = 3, .code = DRPS_E_CONFIG, .text = "3 named classes"},
        {.algo = "tree", .code = DRPS_E_CONFIG, .text = "\"tree\" is none of"},
        {.algo = "fm",
         .loss = "cubic",
         .rank = 4,
         .classification = 1,
         .code = DRPS_E_CONFIG,
         .text = "\"cubic\" is none of"},
        {.algo = "lor",
         .loss = "squared",
         .classification = 1,
         .code = DRPS_E_CONFIG,
         .text = "lor does not go with the squared loss"},
        {.algo = "fm",
         .loss = "hinge",
         .rank = 4,
         .classification = 1,
         .code = DRPS_E_CONFIG,
         .text = "fm does not go with the hinge loss"},
        {.algo = "lor", .code = DRPS_E_CONFIG, .text = "labels of two classes"},
        {.algo = "fm",
         .loss = "logistic",
         .rank = 4,
         .code = DRPS_E_CONFIG,
         .text = "labels of two classes"},
        {.algo = "svm",
         .rank = 3,
         .classification = 1,
         .code = DRPS_E_CONFIG,
         .text = "no factors"},
        {.algo = "fm",
         .rank = 5000,
         .classification = 1,
         .code = DRPS_E_CONFIG,
         .text = "5000 factors are too many: at most 4096"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_model model;
        const int rc = drps_model_init(&model, cases[i].algo, cases[i].loss, cases[i].rank,
                                       cases[i].classification, &err);
        const char *loss = cases[i].loss ? cases[i].loss : "usual";
        if (rc != cases[i].code)
            fail_msg("%s, %s: expected %d, found %d (%s)", cases[i].algo, loss, cases[i].code, rc,
                     err.text);
        if (rc && !strstr(err.text, cases[i].text))
            fail_msg("%s, %s: expected \"...%s...\", found \"%s\"", cases[i].algo, loss,
                     cases[i].text, err.text);
        if (rc) continue;
        assert_string_equal(drps_algo_name(model.algo), cases[i].algo);
        assert_string_equal(drps_loss_name(model.loss), drps_loss_name(cases[i].found));
        assert_int_equal(model.dim, cases[i].dim);
        const int named_labels = cases[i].classification > 1;
        assert_int_equal(model.factors, named_labels ? 0 : cases[i].dim - 1);
        assert_int_equal(model.outputs, named_labels ? cases[i].dim : 1);
        assert_int_equal(model.has_bias, 1);
    }
}

static void test_model_ffm_scores_by_hand(void **state)
{
    static const float params[] = {0.25f, 9, 9, 0.5f, 2, 3, -1, 5, 7}; /* bias, and two rows */
    static const struct {
        const char *name;
        uint16_t rows[2];
        float values[2], score;
        int normalized;
    } cases[] = {
        {"two rows", {1, 2}, {3, 4}, 0.25f + 1.5f - 4 + 12 * 3 * 5, 0},
        {"divided by its length, 5", {1, 2}, {3, 4}, 0.25f + (1.5f - 4) / 5 + 12 * 15 / 25.0f, 1},
        {"a row with two fields", {1, 1}, {1, 1}, 0.25f + 0.5f + 0.5f + 3 * 2, 0},
    };
    static const float label = 1;
    static const uint16_t fields[] = {0, 1};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_model model;
        float found[2];
        const struct drps_batch b = {.samples = 1,
                                     .rows = 3,
                                     .nnz = 2,
                                     .labels = &label,
                                     .per_sample = 2,
                                     .local16 = cases[i].rows,
                                     .values = cases[i].values,
                                     .fields = fields,
                                     .field_count = 2};
        assert_int_equal(drps_model_init(&model, "ffm", "squared", 1, 0, NULL), 0);
        assert_int_equal(drps_model_set_fields(&model, 2, cases[i].normalized, NULL), 0);
        drps_model_predict(&model, &b, 0, 1, params, &found[0], NULL);
        drps_model_predict_ref(&model, &b, 0, 1, params, &found[1], NULL);
        for (int k = 0; k < 2; k++)
            if (fabsf(found[k] - cases[i].score) > 1e-4f)
                fail_msg("%s: expected %g, found %g", cases[i].name, (double)cases[i].score,
                         (double)found[k]);
    }
}

static void test_model_fields_fit_the_algorithm(void **state)
{
    static const struct {
        const char *algo;
        uint32_t factors, fields;
        int normalized;
        uint32_t dim; /* 0: refused */
    } cases[] = {{"ffm", 4, 39, 1, 157},  {"ffm", 0, 39, 0, 157},     {"ffm", 4, 16383, 1, 65533},
                 {"ffm", 4, 16384, 1, 0}, {"ffm", 4096, 65535, 1, 0}, {"ffm", 4, 0, 0, 0},
                 {"fm", 4, 0, 0, 5},      {"fm", 4, 3, 0, 0},         {"fm", 4, 0, 1, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_model model;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(
            drps_model_init(&model, cases[i].algo, "squared", cases[i].factors, 0, NULL), 0);
        const int rc = drps_model_set_fields(&model, cases[i].fields, cases[i].normalized, &err);
        if (rc != (cases[i].dim ? 0 : DRPS_E_CONFIG)) fail_msg("case %zu: %d, %s", i, rc, err.text);
        if (rc == 0) assert_int_equal(model.dim, cases[i].dim);
        if (rc == 0) assert_int_equal(model.normalized, cases[i].normalized);
    }
}

static void test_init_row_depends_on_seed_and_id_only(void **state)
{
    struct drps_model model = model_of(DRPS_ALGO_FM, DRPS_LOSS_LOGISTIC, 16, 1);
    float a[17], b[17], other[17];

    (void)state;
    drps_model_init_row(&model, 12345, a);
    drps_model_init_row(&model, 7, other);
    drps_model_init_row(&model, 12345, b);
    assert_memory_equal(a, b, sizeof(a));
    assert_memory_not_equal(a, other, sizeof(a));
    model.seed++;
    drps_model_init_row(&model, 12345, other);
    assert_memory_not_equal(a, other, sizeof(a));
}

static void test_init_row_factors_are_uniform_and_weights_zero(void **state)
{
    enum { ROWS = 2000, RANK = 16 };
    static const float scales[] = {0, 0.25f};

    (void)state;
    for (size_t c = 0; c < 2; c++) {
        struct drps_model model = model_of(DRPS_ALGO_LMF, DRPS_LOSS_SQUARED, RANK, 1);
        model.init_scale = scales[c];
        const double scale = scales[c] > 0 ? (double)scales[c] : 0.1 / sqrt(RANK);
        double sum = 0, squares = 0;
        for (uint64_t id = 1; id <= ROWS; id++) {
            float row[1 + RANK];
            drps_model_init_row(&model, id, row);
            assert_true(row[0] == 0.0f);
            for (int f = 1; f <= RANK; f++) {
                assert_true(fabs((double)row[f]) < scale * (1 + 1e-6));
                sum += (double)row[f] / scale;
                squares += (double)row[f] / scale * (double)row[f] / scale;
            }
        }
        const double n = ROWS * RANK;
        /* mean 0 and variance 1/3, each within 5 standard errors */
        if (!(fabs(sum / n) < 5 * sqrt(1 / 3.0 / n) &&
              fabs(squares / n - 1 / 3.0) < 5 * sqrt(4 / 45.0 / n)))
            fail_msg("seed %llu: mean %g, second moment %g", (unsigned long long)seed, sum / n,
                     squares / n);
    }
}

/* What dropout leaves out follows from the intercept and from the last layer that has parameters:
 * one of the two may stay as it is. */
static void test_dropout_differs_from_step_to_step(void **state)
{
    enum { SAMPLES = 64, K = 4, DIM = 1 + K, ROWS = 3 /* 1 intercept, b, W and b: 10 floats */ };
    const struct drps_model_terms terms = {
        .algo = "net", .net = "h = bag 4\nh = dropout 0.5 h\nscore = full 1 h\n"};
    static const size_t changed[] = {SIZE_MAX, 0, 1 + K}; /* none, the intercept, W */
    float params[ROWS * DIM], labels[SAMPLES] = {0}, scores[3][SAMPLES] = {{0}}, grads[ROWS * DIM];
    uint16_t local[SAMPLES];
    struct drps_model model;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    if (drps_model_settle(&model, &terms, &err) < 0 ||
        drps_model_set_fields(&model, 0, 0, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(drps_model_common_rows(&model), ROWS - 1);
    for (size_t s = 0; s < SAMPLES; s++)
        local[s] = ROWS - 1;
    const struct drps_batch b = {.samples = SAMPLES,
                                 .rows = ROWS,
                                 .nnz = SAMPLES,
                                 .per_sample = 1,
                                 .labels = labels,
                                 .local16 = local};
    void *scratch = malloc(drps_model_scratch_bytes(&model, SAMPLES, ROWS));
    assert_non_null(scratch);
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < (size_t)ROWS * DIM; i++)
            params[i] = 1;
        if (changed[k] != SIZE_MAX) params[changed[k]] = nextafterf(1, 2);
        memset(grads, 0, sizeof(grads));
        for (int again = 0; again < 2; again++) {
            float before[SAMPLES];
            memcpy(before, scores[k], sizeof(before));
            (void)drps_model_gradient(&model, &b, 0, SAMPLES, params, grads, scores[k], scratch);
            if (again) assert_memory_equal(before, scores[k], sizeof(before));
        }
    }
    for (size_t k = 1; k < 3; k++) {
        size_t others = 0;
        for (size_t s = 0; s < SAMPLES; s++)
            others += fabsf(scores[k][s] - scores[0][s]) > 0.5f;
        assert_true(others > SAMPLES / 4);
    }
    free(scratch);
}

/* A net's parameters lie in the first rows one after another: J intercepts, of which the first has
 * a start of its own; weights that are random, as wide as their layer asks; biases and what is left
 * of the last row, which are 0. */
static void test_init_row_of_a_net(void **state)
{
    enum { INTERCEPTS = 2, HIDDEN = 3, DIM = 5, FIRST = INTERCEPTS + 4 /* b of the bag */ };
    enum { SECOND = FIRST + 5 * HIDDEN };
    enum { CROSS = SECOND + (HIDDEN + 1) * HIDDEN, LAST = CROSS + 2 * HIDDEN };
    enum { FLOATS = LAST + (HIDDEN + 1) * INTERCEPTS, ROWS = (FLOATS + DIM - 1) / DIM };
    const struct drps_model_terms terms = {.algo = "net",
                                           .net = "x = bag 4\nh = full 3 x\ng = full 3 h\n"
                                                  "h = cross h g\nscore = full classes h\n",
                                           .factors = 4,
                                           .classes = INTERCEPTS};
    struct drps_model model, other;
    struct drps_err err = DRPS_ERR_INIT;
    float first[ROWS * DIM], again[DIM], feature[DIM];
    (void)state;
    if (drps_model_settle(&model, &terms, &err) < 0 ||
        drps_model_set_fields(&model, 0, 0, &err) < 0)
        fail_msg("%s", err.text);
    model.bias_start = 3.5f;
    model.seed = seed;
    assert_int_equal(model.layers.floats, FLOATS);
    assert_int_equal(drps_model_common_rows(&model), ROWS);
    assert_true(ROWS * DIM > FLOATS);
    for (uint64_t id = 0; id < ROWS; id++)
        drps_model_init_row(&model, id, first + id * DIM);
    for (size_t i = 0; i < (size_t)ROWS * DIM; i++) {
        double wide = 0; /* 0: it is 0 */
        if (i >= FIRST && i < FIRST + 4 * HIDDEN) wide = sqrt(6.0 / 4);
        if (i >= SECOND && i < SECOND + HIDDEN * HIDDEN) wide = sqrt(6.0 / HIDDEN);
        if (i >= CROSS && i < CROSS + HIDDEN) wide = sqrt(1.0 / HIDDEN);
        if (i >= LAST && i < LAST + HIDDEN * INTERCEPTS) wide = sqrt(6.0 / HIDDEN);
        const double found = (double)first[i];
        if (i == 0 ? first[0] != 3.5f : wide > 0 ? found == 0 || fabs(found) > wide : found != 0)
            fail_msg("parameter %zu is %g", i, found);
        for (size_t j = FIRST; j < i && wide > 0; j++)
            if (first[j] == first[i]) fail_msg("parameters %zu and %zu are alike", j, i);
    }

    drps_model_init_row(&model, 2, again); /* weights of the first full layer */
    assert_memory_equal(again, first + 2 * DIM, sizeof(again));
    other = model;
    other.seed++;
    drps_model_init_row(&other, 2, again);
    for (size_t k = 0; k < DIM; k++)
        assert_true(again[k] != first[2 * DIM + k]);

    /* Rows behind them are features': no weight, and factors that are not those of the net. */
    drps_model_init_row(&model, ROWS, feature);
    assert_true(feature[0] == 0);
    for (size_t k = 1; k < DIM; k++)
        assert_true(feature[k] != 0 && fabsf(feature[k]) <= 0.1f / sqrtf(4));
}

static void test_init_row_intercept_starts_at_bias_start(void **state)
{
    static const struct {
        const char *name;
        int has_bias;
        uint64_t id;
        float first;
        int factors; /* whether they are non-zero */
    } cases[] = {{"intercept", 1, 0, 3.5f, 0},
                 {"row 0 without intercept", 0, 0, 0, 1},
                 {"row 1", 1, 1, 0, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_model model = model_of(DRPS_ALGO_FM, DRPS_LOSS_SQUARED, 4, cases[i].has_bias);
        float row[5] = {9, 9, 9, 9, 9};
        model.bias_start = 3.5f;
        drps_model_init_row(&model, cases[i].id, row);
        for (int f = 0; f < 5; f++) {
            const int ok = f ? (row[f] != 0) == cases[i].factors : row[f] == cases[i].first;
            if (!ok) fail_msg("%s: float %d is %g", cases[i].name, f, (double)row[f]);
        }
        model = model_of(DRPS_ALGO_LIR, DRPS_LOSS_SQUARED, 0, cases[i].has_bias);
        model.bias_start = 3.5f;
        drps_model_init_row(&model, cases[i].id, row);
        assert_true(row[0] == cases[i].first);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_gradient_may_be_a_mean),
        cmocka_unit_test(test_model_kernels_match_the_twins),
        cmocka_unit_test(test_model_matrix_matches_its_twin),
        cmocka_unit_test(test_model_ffm_long_samples_match_the_twin),
        cmocka_unit_test(test_softmax_at_its_edges),
        cmocka_unit_test(test_hinges_at_their_edges),
        cmocka_unit_test(test_softmax_probabilities_are_those_of_its_loss),
        cmocka_unit_test(test_model_gradients_match_finite_differences),
        cmocka_unit_test(test_model_scores_do_not_depend_on_the_range),
        cmocka_unit_test(test_model_gradients_of_ranges_add_up),
        cmocka_unit_test(test_model_gradient_repeats_bit_for_bit),
        cmocka_unit_test(test_model_weights_are_copies),
        cmocka_unit_test(test_model_weights_of_one_change_nothing),
        cmocka_unit_test(test_model_empty_range_changes_nothing),
        cmocka_unit_test(test_model_fm_scores_by_hand),
        cmocka_unit_test(test_model_ffm_scores_by_hand),
        cmocka_unit_test(test_model_fields_fit_the_algorithm),
        cmocka_unit_test(test_model_mf_scores_known_rows_only),
        cmocka_unit_test(test_loss_value_matches_values_by_hand),
        cmocka_unit_test(test_loss_sum_is_within_ulps_of_libm),
        cmocka_unit_test(test_loss_sum_does_not_hide_nan),
        cmocka_unit_test(test_model_init_knows_what_fits),
        cmocka_unit_test(test_init_row_depends_on_seed_and_id_only),
        cmocka_unit_test(test_init_row_factors_are_uniform_and_weights_zero),
        cmocka_unit_test(test_algorithms_fit_their_losses),
        cmocka_unit_test(test_dropout_differs_from_step_to_step),
        cmocka_unit_test(test_init_row_of_a_net),
        cmocka_unit_test(test_init_row_intercept_starts_at_bias_start),
    };

    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
