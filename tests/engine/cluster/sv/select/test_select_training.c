/*
 * Training with C of B sufficient vectors in place of all: multinomial regression by SGD, on
 * generated samples. With the new u of each rule it comes as far as with all; with the chosen
 * vectors as they were, without B/C, it does not. The losses are printed.
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
#include "engine/cluster/sv/select/drps_select.h"
#include "engine/model/drps_model.h"
#include "support/random_vectors.h"

enum {
    CLASSES = 8,
    ROWS = 300,
    SAMPLES = 2000,
    NNZ = 20,
    B = 100,
    EPOCHS = 5,
    C = 25,
    ALIKE = 12,
    CELLS = ROWS * CLASSES
};
static const double no_loss_less = 2.0794415416798357; /* ln 8: of weights that are 0 */

/* All samples: their features, and classes that a hidden matrix gives. */
struct data {
    struct own_vectors x;
    float labels[SAMPLES];
};

static float cell(uint64_t seed, uint64_t i)
{
    return 2 * drps_unit_float(drps_rng_at(seed, i)) - 1;
}

static void scores_of(const struct drps_vectors *v, uint32_t i, const float *w, float *scores)
{
    memset(scores, 0, CLASSES * sizeof(*scores));
    for (uint32_t e = v->first[i]; e < v->first[i + 1]; e++)
        for (uint32_t c = 0; c < CLASSES; c++)
            scores[c] += v->values[e] * w[v->ids[e] * CLASSES + c];
}

/* `alike`: features are multiples of those of one of ALIKE samples. */
static void make(struct data *d, int alike)
{
    static float hidden[CELLS];
    float scores[CLASSES];
    d->x = random_vectors(5, SAMPLES, 1, ROWS, alike ? ROWS : NNZ);
    for (uint32_t i = ALIKE; alike && i < SAMPLES; i++)
        for (uint32_t k = 0; k < ROWS; k++)
            d->x.values[i * ROWS + k] =
                d->x.values[i % ALIKE * ROWS + k] * (.5f + drps_unit_float(drps_rng_at(6, i)));
    for (int i = 0; i < CELLS; i++)
        hidden[i] = cell(77, (uint64_t)i);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        scores_of(&d->x.v, i, hidden, scores);
        d->labels[i] = (float)drps_softmax_best(scores, CLASSES);
    }
}

/* ---- Training ---- */

struct run {
    const struct data *data;
    struct drps_select_options options;
    float rate;
    int as_they_were; /* 1: the chosen u are not changed */
    int feedback;     /* 1: errors of projections are kept */
    float w[CELLS], error[CELLS];
    uint32_t projected; /* batches */
};

/* The batch that begins with sample `from`: u [B][CLASSES] are slopes. Returns its loss. */
static double slopes_of(const struct run *r, uint32_t from, float *u)
{
    float scores[B * CLASSES];
    for (uint32_t i = 0; i < B; i++)
        scores_of(&r->data->x.v, from + i, r->w, scores + i * CLASSES);
    return drps_softmax_sum(scores, r->data->labels + from, B, CLASSES, u);
}

static void step(struct run *r, const struct drps_vectors *v, uint32_t i, const float *u)
{
    for (uint32_t e = v->first[i]; e < v->first[i + 1]; e++)
        for (uint32_t c = 0; c < CLASSES; c++)
            r->w[v->ids[e] * CLASSES + c] -= r->rate * v->values[e] * u[c];
}

static double train_batch(struct run *r, uint32_t from, uint64_t seed)
{
    float u[B * CLASSES], chosen[B * CLASSES];
    uint32_t picks[B], first[B + 1];
    const struct drps_vectors *x = &r->data->x.v;
    struct drps_selected out = {.picks = picks, .u = chosen};
    const double loss = slopes_of(r, from, u);
    /* A batch of its own, whose entries begin with 0. */
    for (uint32_t i = 0; i <= B; i++)
        first[i] = x->first[from + i] - x->first[from];
    const struct drps_vectors batch = {
        B, CLASSES, u, first, x->ids + x->first[from], x->values + x->first[from]};
    r->options.seed = seed;
    void *scratch = malloc(drps_select_scratch(B, first[B], &r->options));
    assert_non_null(scratch);
    assert_int_equal(
        drps_select(&batch, &r->options, r->feedback ? r->error : NULL, scratch, &out, NULL), 0);
    free(scratch);
    for (uint32_t i = 0; i < out.n; i++)
        step(r, &batch, picks[i], r->as_they_were ? u + picks[i] * CLASSES : chosen + i * CLASSES);
    r->projected += (uint32_t)out.projected;
    return loss;
}

/* Mean loss of all samples after the epochs. */
static double train(struct run *r)
{
    double sum = 0;
    float u[B * CLASSES];
    for (uint32_t t = 0; t < EPOCHS * SAMPLES / B; t++)
        (void)train_batch(r, t * B % SAMPLES, t);
    for (uint32_t from = 0; from < SAMPLES; from += B)
        sum += slopes_of(r, from, u);
    return sum / SAMPLES;
}

/* Returns how far below that of no training the loss comes. */
static double gain_of(const struct data *d, const char *name, struct run run, uint32_t *projected)
{
    struct run *r = malloc(sizeof(*r));
    assert_non_null(r);
    *r = run;
    r->data = d;
    const double loss = train(r);
    print_message("%-45s loss %.4f, %u of %d batches projected\n", name, loss, r->projected,
                  EPOCHS * SAMPLES / B);
    if (projected) *projected = r->projected;
    free(r);
    return no_loss_less - loss;
}

#define RULE(of_rule, captured)                                                                    \
    .rate = .003f, .options = {.rule = (of_rule), .count = C, .least_captured = (captured)}

static void test_scaled_vectors_train_as_all_do(void **state)
{
    static const struct {
        const char *name;
        struct run run;
        double least, most; /* of what all vectors gain */
    } cases[] = {
        {"random", {RULE(DRPS_SELECT_RANDOM, 0)}, .95, 1.05},
        {"joint selection", {RULE(DRPS_SELECT_JMCSS, 0)}, .95, 1.05},
        {"projected where enough is captured",
         {RULE(DRPS_SELECT_PROJECT, 0), .feedback = 1},
         .95,
         1.05},
        {"projected always", {RULE(DRPS_SELECT_PROJECT, 1e-9), .feedback = 1}, .9, 1.05},
        {"projected always, errors forgotten", {RULE(DRPS_SELECT_PROJECT, 1e-9)}, .2, .5},
        {"random, as they were", {RULE(DRPS_SELECT_RANDOM, 0), .as_they_were = 1}, .2, .4},
        {"joint selection, as they were", {RULE(DRPS_SELECT_JMCSS, 0), .as_they_were = 1}, .2, .4},
    };
    static struct data d;
    (void)state;
    make(&d, 0);
    const double all = gain_of(&d, "all", (struct run){RULE(DRPS_SELECT_ALL, 0)}, NULL);
    assert_true(all > .2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const double gain = gain_of(&d, cases[i].name, cases[i].run, NULL);
        if (gain < cases[i].least * all || gain > cases[i].most * all)
            fail_msg("%s: %.4f of what all vectors gain", cases[i].name, gain / all);
    }
    own_vectors_free(&d.x);
}

/* Where few x span all, a quarter of the vectors says all; unless it misses some of these, as the u
 * have seven dimensions only, and the others are chosen evenly. */
static void test_projected_vectors_of_low_rank_are_as_good_as_all(void **state)
{
    static struct data d;
    uint32_t projected;
    struct run all = {RULE(DRPS_SELECT_ALL, 0)},
               few = {RULE(DRPS_SELECT_PROJECT, 0), .feedback = 1};
    (void)state;
    make(&d, 1);
    all.rate = few.rate = 3e-5f;
    const double gain = gain_of(&d, "alike: all", all, NULL);
    assert_true(gain > .2);
    assert_true(fabs(gain_of(&d, "alike: projected", few, &projected) - gain) < 1e-3 * gain);
    assert_true(projected > 9 * EPOCHS * SAMPLES / B / 10);
    own_vectors_free(&d.x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scaled_vectors_train_as_all_do),
        cmocka_unit_test(test_projected_vectors_of_low_rank_are_as_good_as_all),
    };
    return cmocka_run_group_tests_name("select_training", tests, NULL, NULL);
}
