/*
 * The worker of a device beside the plain twins: the same losses, scores and rows within a
 * tolerance, and the same bytes from run to run. Argument: the library of kernels; without a device
 * that it can open the test is skipped.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "engine/model/drps_model.h"
#include "engine/model/drps_optim.h"
#include "engine/step/device/drps_device_worker.h"
#include "engine/step/device/transpose.h"
#include "support/device_run.h"
#include "support/on_device.h"

enum { SAMPLES = 700, ROWS = 300, ENTRIES = 12, BATCHES = 4, MODEL_ROWS = 400 };

static struct drps_device_use use;
static uint64_t drawn;

static uint64_t below(uint64_t n)
{
    return drps_rng_at(20261128, drawn++) % n;
}

static float unit(void)
{
    return drps_unit_float(drps_rng_at(20261128, drawn++)) * 2 - 1;
}

/* ---- A case: a model, an optimizer, and what batches have ---- */

struct form {
    const char *algo, *loss;
    uint32_t factors;
    const char *optimizer;
    float l1, l2;
    int l1_all, wide, values, weights, starts, mean, fixed_bias;
    uint32_t fields;
    int normalized, shuffled; /* ffm: fields do not increase */
    size_t samples;
};

struct batch {
    struct drps_batch b;
    float labels[SAMPLES], weights[SAMPLES], values[SAMPLES * ENTRIES];
    uint32_t starts[SAMPLES + 1], local32[SAMPLES * ENTRIES], ids[ROWS];
    uint16_t local16[SAMPLES * ENTRIES], fields[SAMPLES * ENTRIES];
};

static int is_pairs(const struct form *f)
{
    return strcmp(f->algo, "lmf") == 0;
}

/* Rows of a sample are distinct; every sample has row 1, which is a long one then. */
static uint32_t draw_row(const struct form *f, size_t j, size_t n)
{
    const uint32_t each = (ROWS - 2) / ENTRIES;
    (void)n;
    if (j == 0 && !is_pairs(f)) return 1;
    return 2 + (uint32_t)j * each + (uint32_t)below(each);
}

static void fill_entries(const struct form *f, struct batch *out)
{
    size_t at = 0;
    for (size_t s = 0; s < f->samples; s++) {
        const size_t most = is_pairs(f) ? 2 : ENTRIES, n = f->starts ? below(most + 1) : most;
        out->starts[s] = (uint32_t)at;
        for (size_t j = 0; j < n; j++, at++) {
            out->local32[at] = draw_row(f, j, n);
            out->local16[at] = (uint16_t)out->local32[at];
            out->values[at] = unit();
            out->fields[at] = (uint16_t)(f->shuffled ? (7 * j) % 5 : j);
        }
        out->labels[s] = strcmp(f->loss, "squared") == 0 ? 3 * unit() : below(2) ? 1 : -1;
        out->weights[s] = 0.5f + (float)below(4);
    }
    out->starts[f->samples] = (uint32_t)at;
    out->b.nnz = at;
}

static void make_batch(const struct form *f, struct batch *out)
{
    uint32_t id = 0;
    memset(out, 0, sizeof(*out));
    fill_entries(f, out);
    for (size_t r = 0; r < ROWS; r++, id++) {
        if (r && below(3) == 0 && id + (ROWS - r) < MODEL_ROWS) id++; /* increasing */
        out->ids[r] = id;
    }
    out->b.samples = f->samples;
    out->b.rows = ROWS;
    out->b.labels = out->labels;
    out->b.weights = f->weights ? out->weights : NULL;
    out->b.starts = f->starts ? out->starts : NULL;
    out->b.per_sample = f->starts ? 0 : is_pairs(f) ? 2 : ENTRIES;
    out->b.values = f->values ? out->values : NULL;
    out->b.fields = f->fields ? out->fields : NULL;
    out->b.field_count = f->fields;
    out->b.local32 = f->wide ? out->local32 : NULL;
    out->b.local16 = f->wide ? NULL : out->local16;
}

/* ---- The run ---- */

static void settle(const struct form *f, struct drps_server *server)
{
    struct drps_model model;
    struct drps_optim optim;
    struct drps_err err = DRPS_ERR_INIT;
    const int classes = strcmp(f->loss, "squared") != 0;
    if (drps_model_init(&model, f->algo, f->loss, f->factors, classes, &err) < 0 ||
        drps_optim_init(&optim, f->optimizer, &err) < 0)
        fail_msg("%s", err.text);
    if (drps_model_set_fields(&model, f->fields, f->normalized, &err) < 0) fail_msg("%s", err.text);
    model.mean_of = f->mean ? 2 : 0;
    model.fixed_bias = f->fixed_bias;
    model.bias_start = 0.25f;
    model.init_scale = 0.3f;
    model.seed = 7;
    optim.l1 = f->l1;
    optim.l2 = f->l2;
    optim.l1_all = f->l1_all;
    drps_server_init(server, &model, &optim);
}

static void check_form(const struct form *f)
{
    const struct drps_plan_info info = {.max_batch_samples = SAMPLES,
                                        .max_batch_rows = ROWS,
                                        .max_batch_nnz = SAMPLES * ENTRIES,
                                        .batches = BATCHES,
                                        .eval_batches = 1};
    struct batch *batches = calloc(BATCHES + 1, sizeof(*batches));
    struct device_batch given[BATCHES + 1];
    struct drps_server server;
    assert_non_null(batches);
    for (size_t i = 0; i <= BATCHES; i++) {
        make_batch(f, &batches[i]);
        given[i] = (struct device_batch){&batches[i].b, batches[i].ids};
    }
    settle(f, &server);
    device_run(&use, &server, &info, MODEL_ROWS, given, BATCHES);
    free(batches);
}

static const struct form forms[] = {
    {.algo = "lor", .loss = "logistic", .optimizer = "adagrad", .samples = 50},
    {.algo = "lor",
     .loss = "logistic",
     .optimizer = "ftrl",
     .l1 = 0.01f,
     .l2 = 0.1f,
     .wide = 1,
     .values = 1,
     .starts = 1,
     .samples = 101},
    {.algo = "lor",
     .loss = "logistic",
     .optimizer = "sgd",
     .weights = 1,
     .mean = 1,
     .samples = SAMPLES},
    {.algo = "lir",
     .loss = "squared",
     .optimizer = "sgd",
     .l1 = 1e-4f,
     .l2 = 1e-3f,
     .l1_all = 1,
     .values = 1,
     .fixed_bias = 1,
     .samples = 33},
    {.algo = "svm",
     .loss = "hinge",
     .optimizer = "adagrad",
     .l1 = 1e-3f,
     .values = 1,
     .samples = 64},
    {.algo = "svm",
     .loss = "squared-hinge",
     .optimizer = "adagrad",
     .l2 = 1e-3f,
     .starts = 1,
     .weights = 1,
     .samples = 70},
    {.algo = "fm", .loss = "logistic", .factors = 1, .optimizer = "adagrad", .samples = 20},
    {.algo = "fm",
     .loss = "logistic",
     .factors = 4,
     .optimizer = "adagrad",
     .values = 1,
     .starts = 1,
     .samples = 40},
    {.algo = "fm",
     .loss = "squared",
     .factors = 8,
     .optimizer = "adagrad",
     .l2 = 1e-3f,
     .samples = 600},
    {.algo = "fm",
     .loss = "logistic",
     .factors = 13,
     .optimizer = "ftrl",
     .l1 = 1e-3f,
     .l2 = 1e-2f,
     .values = 1,
     .wide = 1,
     .samples = 70},
    {.algo = "lor",
     .loss = "logistic",
     .optimizer = "adam",
     .l1 = 1e-3f,
     .l2 = 1e-2f,
     .starts = 1,
     .samples = SAMPLES},
    {.algo = "lir",
     .loss = "squared",
     .optimizer = "adam",
     .l1 = 1e-3f,
     .l1_all = 1,
     .values = 1,
     .fixed_bias = 1,
     .samples = 33},
    {.algo = "fm",
     .loss = "logistic",
     .factors = 5,
     .optimizer = "adam",
     .l2 = 1e-3f,
     .values = 1,
     .samples = 80},
    {.algo = "lmf", .loss = "squared", .factors = 9, .optimizer = "adam", .samples = 70},
    {.algo = "fm",
     .loss = "logistic",
     .factors = 37,
     .optimizer = "sgd",
     .l1 = 1e-4f,
     .l2 = 1e-3f,
     .weights = 1,
     .mean = 1,
     .samples = 66},
    {.algo = "lmf", .loss = "squared", .factors = 8, .optimizer = "adagrad", .samples = 70},
    {.algo = "lmf",
     .loss = "squared",
     .factors = 40,
     .optimizer = "adagrad",
     .starts = 1,
     .values = 1,
     .l2 = 1e-3f,
     .samples = SAMPLES},
    {.algo = "ffm",
     .loss = "logistic",
     .factors = 4,
     .fields = ENTRIES,
     .optimizer = "adagrad",
     .samples = 70},
    {.algo = "ffm",
     .loss = "logistic",
     .factors = 3,
     .fields = ENTRIES,
     .optimizer = "sgd",
     .l2 = 1e-3f,
     .starts = 1,
     .values = 1,
     .normalized = 1,
     .samples = 90},
    {.algo = "ffm",
     .loss = "logistic",
     .factors = 5,
     .fields = ENTRIES,
     .optimizer = "adagrad",
     .shuffled = 1,
     .values = 1,
     .samples = 40},
    {.algo = "ffm",
     .loss = "logistic",
     .factors = 4,
     .fields = ENTRIES,
     .optimizer = "adam",
     .values = 1,
     .samples = 80},
    {.algo = "ffm",
     .loss = "logistic",
     .factors = 90,
     .fields = ENTRIES,
     .optimizer = "adagrad",
     .samples = 12},
};

static void test_steps_are_those_of_the_twins(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        print_message("%zu: %s, %s, %s, %u factors\n", i, forms[i].algo, forms[i].loss,
                      forms[i].optimizer, forms[i].factors);
        check_form(&forms[i]);
    }
}

static void test_what_a_device_cannot_is_refused(void **state)
{
    (void)state;
    const struct form known = forms[0];
    struct drps_server server;
    struct drps_err err = DRPS_ERR_INIT;
    settle(&known, &server);
    assert_int_equal(drps_device_worker_can(use.ops, &server.model, &server.optim, &err), 0);
    server.optim.kind = DRPS_OPTIM_LBFGS;
    assert_int_equal(drps_device_worker_can(use.ops, &server.model, &server.optim, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "lbfgs"));
    drps_err_clear(&err);
    settle(&known, &server);
    server.model.algo = DRPS_ALGO_TOPIC;
    assert_int_equal(drps_device_worker_can(use.ops, &server.model, &server.optim, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "topic"));
    drps_err_clear(&err);
    settle(&known, &server);
    server.model.late_bias = 1;
    assert_int_equal(drps_device_worker_can(use.ops, &server.model, &server.optim, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "lanes"));
}

/* Entries of each row, in the order of samples; a row of many is cut into pieces that follow on
 * each other. */
static void test_entries_are_in_the_order_of_rows(void **state)
{
    (void)state;
    struct batch *batch = calloc(1, sizeof(*batch));
    const struct form f = {
        .algo = "fm", .loss = "squared", .starts = 1, .values = 1, .samples = SAMPLES};
    uint32_t ends[ROWS + 2], seen = 0;
    assert_non_null(batch);
    make_batch(&f, batch);
    const size_t n = batch->b.nnz;
    struct transposed t = {.ends = ends,
                           .samples = malloc(n * 4),
                           .entries = malloc(n * 4),
                           .values = malloc(n * 4),
                           .pieces = calloc(transposed_pieces_most(n), sizeof(*t.pieces)),
                           .long_rows = calloc(transposed_long_most(n), sizeof(*t.long_rows))};
    transpose(&batch->b, &t);
    assert_int_equal(ends[0], 0);
    assert_int_equal(ends[ROWS], n);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t i = ends[r]; i < ends[r + 1]; i++) {
            const uint32_t j = t.entries[i], s = t.samples[i];
            assert_int_equal(drps_batch_local(&batch->b, j), r);
            assert_true(drps_batch_start(&batch->b, s) <= j &&
                        j < drps_batch_start(&batch->b, s + 1));
            assert_true(i == ends[r] || t.samples[i - 1] < s);
            assert_true(t.values[i] == batch->values[j]);
        }
    assert_true(t.n_long >= 1 && t.n_pieces > t.n_long);
    for (uint32_t l = 0; l < t.n_long; l++) {
        const struct drps_device_long_row *row = &t.long_rows[l];
        assert_true(ends[row->row + 1] - ends[row->row] > DRPS_DEVICE_LONG);
        assert_int_equal(row->first, seen);
        for (uint32_t p = row->first; p < row->first + row->count; p++, seen++) {
            assert_int_equal(t.pieces[p].row, row->row);
            assert_int_equal(t.pieces[p].first,
                             p == row->first ? ends[row->row] : t.pieces[p - 1].last);
        }
        assert_int_equal(t.pieces[seen - 1].last, ends[row->row + 1]);
    }
    assert_int_equal(seen, t.n_pieces);
    free(t.samples);
    free(t.entries);
    free(t.values);
    free(t.pieces);
    free(t.long_rows);
    free(batch);
}

static int all_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_are_in_the_order_of_rows),
        cmocka_unit_test(test_what_a_device_cannot_is_refused),
        cmocka_unit_test(test_steps_are_those_of_the_twins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, &use, all_tests);
}
