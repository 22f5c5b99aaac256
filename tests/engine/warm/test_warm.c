/* A warm start: every row of the new plan is that of the same name in the earlier run, or fresh, as
 * a search without any index finds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_trained.h"
#include "engine/warm/drps_warm.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_names_writer.h"
#include "support/index_case.h"
#include "support/plan_maker.h"

static const struct drps_log quiet = {.level = DRPS_LOG_ERROR};

enum { NAME_BYTES = 64 };

/* ---- Plans and models ---- */

struct data {
    const char *text; /* a name in the scratch folder; NULL: made as the next three say */
    size_t samples, features;
    uint64_t seed;
    uint64_t hash_seed, order_seed;
    uint32_t workers, factors;
    const char *loss;
    int not_normalized;
};

static void make_plan(struct scratch *s, const char *name, const char *algo,
                      enum case_format format, const struct data *d, char *path_out)
{
    struct case_run run;
    char input[SCRATCH_PATH_BYTES], in[32];
    (void)snprintf(in, sizeof(in), "%s.in", name);
    (void)snprintf(input, sizeof(input), "%s",
                   d->text ? scratch_path(s, d->text)
                           : case_input(s, in, format, d->samples, d->features, d->seed));
    case_begin(&run, s, input, algo);
    (void)snprintf(run.out, sizeof(run.out), "%s", scratch_path(s, name));
    (void)snprintf(path_out, SCRATCH_PATH_BYTES, "%s", run.out);
    run.options.factors = d->factors;
    run.options.workers = d->workers;
    run.options.seed = d->order_seed + 1;
    run.options.loss = d->loss;
    run.options.not_normalized = d->not_normalized;
    run.options.reader.hash_seed = d->hash_seed;
    case_compile(&run);
}

/* A model, and its checkpoints at the end of the last epoch: as MODEL-state, where they are not
 * taken for the model's own. */
static void train(const char *plan, const char *model, const char *optimizer)
{
    struct drps_err err = DRPS_ERR_INIT;
    char checkpoints[SCRATCH_PATH_BYTES + 16], apart[SCRATCH_PATH_BYTES + 16];
    struct drps_plan *p;
    struct drps_train_result r;
    const struct drps_train_options o = {.model_path = model,
                                         .optimizer = optimizer,
                                         .keep_checkpoints = 1,
                                         .seed = 3,
                                         .memory_bytes = 256 << 20,
                                         .log = &quiet};
    if (drps_plan_open(drps_io_os(), plan, &p, &err) < 0) fail_msg("%s", err.text);
    if (drps_train_run(p, &o, &r, &err) < 0) fail_msg("%s", err.text);
    drps_train_result_free(&r);
    drps_plan_close(p);
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s.checkpoint", model);
    (void)snprintf(apart, sizeof(apart), "%s-state", model);
    assert_int_equal(rename(checkpoints, apart), 0);
}

/* ---- The search without an index ---- */

struct named {
    char text[NAME_BYTES]; /* field, and name or number */
    uint32_t row;
};

struct names {
    struct named *list; /* own */
    size_t n, cap;
    char *const *fields;
    size_t fields_n;
};

static int take_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct names *names = ctx;
    (void)err;
    assert_int_equal(
        drps_array_reserve(&names->list, &names->cap, names->n + 1, sizeof(*names->list)), 0);
    struct named *n = &names->list[names->n++];
    n->row = row;
    if (text && field < names->fields_n)
        (void)snprintf(n->text, NAME_BYTES, "%s/%.*s", names->fields[field], (int)bytes, text);
    else if (text)
        (void)snprintf(n->text, NAME_BYTES, "%u/%.*s", field, (int)bytes, text);
    else
        (void)snprintf(n->text, NAME_BYTES, "%llu", (unsigned long long)key);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->text, ((const struct named *)b)->text);
}

static void read_names(const char *dir, char *const *fields, size_t fields_n, struct names *out)
{
    struct drps_names *names;
    struct drps_err err = DRPS_ERR_INIT;
    *out = (struct names){.fields = fields, .fields_n = fields_n};
    if (drps_names_open(drps_io_os(), dir, &names, &err) < 0) fail_msg("%s", err.text);
    if (drps_names_scan(names, take_name, out, &err) < 0) fail_msg("%s", err.text);
    drps_names_close(names);
    qsort(out->list, out->n, sizeof(*out->list), by_text);
}

/* What a model has of each row of a plan: [rows][dim]; *has[row] says whether it has it. */
static float *expected_params(const char *model, const struct drps_plan *whole, char **has_out,
                              uint64_t *found_out)
{
    struct drps_modeldir *md;
    struct drps_err err = DRPS_ERR_INIT;
    struct names old, now;
    if (drps_modeldir_open(drps_io_os(), model, 64 << 20, &md, &err) < 0) fail_msg("%s", err.text);
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    const uint32_t dim = info->model.dim;
    float *params = calloc(whole->info.rows, dim * sizeof(*params));
    char *has = calloc(whole->info.rows, 1);
    read_names(model, info->fields, info->fields_n, &old);
    read_names(whole->dir, whole->fields, whole->info.fields_n, &now);
    *found_out = 0;
    for (size_t i = 0; i <= now.n; i++) {
        const struct named intercept = {.row = 0};
        const struct named *n = i < now.n ? &now.list[i] : &intercept;
        const struct named *o =
            i < now.n ? bsearch(n, old.list, old.n, sizeof(*o), by_text) : &intercept;
        if (i == now.n && !(info->model.has_bias && drps_plan_common_rows(&whole->info))) continue;
        if (!o) continue;
        has[n->row] = 1;
        ++*found_out;
        if (drps_modeldir_gather(md, &o->row, 1, params + (size_t)n->row * dim, &err) < 0)
            fail_msg("%s", err.text);
    }
    drps_modeldir_close(md);
    free(old.list);
    free(now.list);
    *has_out = has;
    return params;
}

/* ---- Comparing ---- */

static void init_server(const struct drps_plan *part, const char *optimizer, struct drps_server *s)
{
    const struct drps_plan_info *info = &part->info;
    struct drps_model model;
    struct drps_optim optim;
    assert_int_equal(
        drps_model_init(&model, info->algo, info->loss, info->factors, info->classification, NULL),
        0);
    assert_int_equal(drps_model_set_fields(&model, info->field_count, info->normalized, NULL), 0);
    model.has_bias = drps_plan_common_rows(info) > 0;
    model.bias_start = 0.375f;
    model.seed = 99;
    assert_int_equal(drps_optim_init(&optim, optimizer, NULL), 0);
    optim.lr = 0.1f;
    drps_server_init(s, &model, &optim);
    s->first_row = info->ranks.first_row;
}

/* All rows of a part are what they should be. */
static void check_rows(struct drps_checkpoint *rows, const struct drps_server *s,
                       const float *params, const char *has, uint64_t n)
{
    const size_t param_bytes = s->model.dim * sizeof(float);
    float *got = malloc(s->row_bytes), *want = malloc(s->row_bytes);
    assert_int_equal(drps_checkpoint_rows(rows), n);
    assert_int_equal(drps_checkpoint_row_bytes(rows), s->row_bytes);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t id = s->first_row + i;
        drps_server_fresh(s, i, 1, want);
        if (has[id]) {
            memcpy(want, params + id * s->model.dim, param_bytes);
            drps_optim_init_row(&s->optim, s->model.dim, s->model.has_bias && id == 0, want);
        }
        assert_int_equal(drps_checkpoint_read(rows, i, 1, got, NULL), 0);
        if (memcmp(got, want, s->row_bytes) != 0)
            fail_msg("row %llu (%s): %g, %g expected", (unsigned long long)id,
                     has[id] ? "found" : "fresh", (double)got[0], (double)want[0]);
    }
    free(got);
    free(want);
}

/* Begin the plan with `from`; the model has the same parameters. */
static uint64_t check_begin(struct scratch *s, const char *from, const char *model,
                            const char *plan, const char *optimizer, uint64_t memory)
{
    struct drps_plan *whole, *part;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t found;
    char *has;
    if (drps_plan_open(drps_io_os(), plan, &whole, &err) < 0) fail_msg("%s", err.text);
    float *params = expected_params(model, whole, &has, &found);
    const uint32_t workers = whole->info.ranks.workers;
    for (uint32_t r = 0; r < workers; r++) {
        struct drps_warm_options o = {.io = drps_io_os(), .from = from, .log = &quiet};
        struct drps_warm_found f;
        struct drps_checkpoint *rows;
        struct drps_warm *w;
        struct drps_server server;
        if (workers == 1) part = whole;
        if (workers > 1 && drps_plan_open_rank(drps_io_os(), plan, r, &part, &err) < 0)
            fail_msg("%s", err.text);
        o.part = part;
        o.whole = r ? NULL : whole;
        init_server(part, optimizer, &server);
        const char *dir = scratch_path(s, "work");
        if (drps_warm_open(&o, &w, &err) < 0) fail_msg("%s", err.text);
        if (drps_warm_make(w, &server, dir, memory, &rows, &f, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(f.rows, found);
        assert_int_equal(f.all, whole->info.rows);
        assert_int_equal(f.state, 0);
        check_rows(rows, &server, params, has, part->info.rows);
        assert_int_equal(folder_entries(dir), 1); /* what is in between is gone */
        drps_checkpoint_close(rows);
        drps_warm_close(w);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), dir, NULL), 0);
        if (workers > 1) drps_plan_close(part);
    }
    free(params);
    free(has);
    drps_plan_close(whole);
    return found;
}

/* ---- Names of all kinds ---- */

static void write_csv(struct scratch *s, const char *name, const char *header, const int *columns,
                      size_t columns_n, uint64_t seed)
{
    struct random_source r = {.seed = seed};
    FILE *f = fopen(scratch_path(s, name), "w");
    assert_non_null(f);
    (void)fprintf(f, "%s\n", header);
    for (int i = 0; i < 600; i++) {
        const unsigned v[4] = {(unsigned)random_below(&r, 2), (unsigned)random_below(&r, 50),
                               (unsigned)random_below(&r, 50), (unsigned)random_below(&r, 9)};
        for (size_t k = 0; k < columns_n; k++)
            (void)fprintf(f, columns[k] ? "%sx%u" : "%s%u", k ? "," : "", v[columns[k]]);
        (void)fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

/* The new plan has the same names, more or fewer, in another order, split otherwise or hashed
 * otherwise. */
static void test_rows_are_found_by_name(void **state)
{
    static const struct {
        const char *what, *algo;
        enum case_format format;
        struct data old, now;
    } cases[] = {
        {"the same plan",
         "lor",
         CASE_LIBSVM,
         {.samples = 600, .features = 300},
         {.samples = 600, .features = 300}},
        {"more features, another order",
         "fm",
         CASE_LIBSVM,
         {.samples = 600, .features = 300, .factors = 3},
         {.samples = 900, .features = 500, .seed = 4, .order_seed = 8, .factors = 3}},
        {"fewer features",
         "fm",
         CASE_LIBSVM,
         {.samples = 900, .features = 500, .factors = 3},
         {.samples = 200, .features = 90, .seed = 5, .factors = 3}},
        {"several workers",
         "fm",
         CASE_LIBSVM,
         {.samples = 900, .features = 500, .factors = 3},
         {.samples = 900, .features = 700, .seed = 5, .workers = 3, .factors = 3}},
        {"users and items",
         "lmf",
         CASE_RATINGS,
         {.samples = 900, .features = 200, .factors = 4},
         {.samples = 1200, .features = 300, .seed = 6, .factors = 4}},
        {"another hash seed",
         "lmf",
         CASE_RATINGS,
         {.samples = 900, .features = 200, .factors = 4},
         {.samples = 1200, .features = 300, .seed = 6, .hash_seed = 77, .factors = 4}},
        {"fields",
         "ffm",
         CASE_LIBFFM,
         {.samples = 600, .features = 300, .factors = 3},
         {.samples = 900, .features = 500, .seed = 4, .order_seed = 8, .factors = 3}},
        {"columns",
         "lor",
         CASE_CSV,
         {.samples = 500, .features = 90},
         {.samples = 500, .features = 120, .seed = 7}},
        {"columns in another order", "lor", CASE_CSV, {.text = "abc.csv"}, {.text = "cdab.csv"}},
    };
    static const int abc[] = {0, 1, 2}, cdab[] = {2, 3, 0, 1};
    struct scratch *s = *state;
    write_csv(s, "abc.csv", "label,alpha,beta", abc, 3, 1);
    write_csv(s, "cdab.csv", "beta,gamma,label,alpha", cdab, 4, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char old[SCRATCH_PATH_BYTES], now[SCRATCH_PATH_BYTES];
        char model[SCRATCH_PATH_BYTES], checkpoints[SCRATCH_PATH_BYTES];
        char name[32];
        print_message("%s\n", cases[i].what);
        (void)snprintf(name, sizeof(name), "old%zu", i);
        make_plan(s, name, cases[i].algo, cases[i].format, &cases[i].old, old);
        (void)snprintf(name, sizeof(name), "now%zu", i);
        make_plan(s, name, cases[i].algo, cases[i].format, &cases[i].now, now);
        (void)snprintf(name, sizeof(name), "model%zu", i);
        (void)snprintf(model, sizeof(model), "%s", scratch_path(s, name));
        (void)snprintf(name, sizeof(name), "model%zu-state", i);
        (void)snprintf(checkpoints, sizeof(checkpoints), "%s", scratch_path(s, name));
        train(old, model, "adagrad");
        const uint64_t found = check_begin(s, model, model, now, "adagrad", 64 << 20);
        assert_true(found > 40);
        assert_int_equal(check_begin(s, checkpoints, model, now, "sgd", 64 << 20), found);
        assert_int_equal(check_begin(s, checkpoints, model, now, "ftrl", 64 << 20), found);
        assert_int_equal(check_begin(s, checkpoints, model, now, "adam", 64 << 20), found);
    }
}

/* Rows come in pieces where memory is short; the result is the same. */
static void test_memory_is_bounded(void **state)
{
    const struct data old = {.samples = 20000, .features = 30000, .factors = 16};
    const struct data now = {.samples = 24000, .features = 40000, .seed = 2, .factors = 16};
    struct scratch *s = *state;
    char a[SCRATCH_PATH_BYTES], b[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES];
    make_plan(s, "old", "fm", CASE_LIBSVM, &old, a);
    make_plan(s, "now", "fm", CASE_LIBSVM, &now, b);
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    train(a, model, "adagrad");
    const uint64_t found = check_begin(s, model, model, b, "adagrad", 64 << 20);
    assert_true(found > 8000);
    assert_int_equal(check_begin(s, model, model, b, "adagrad", 8 << 20), found);

    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_warm *w;
    struct drps_server server;
    struct drps_checkpoint *rows;
    struct drps_warm_found f;
    if (drps_plan_open(drps_io_os(), b, &plan, &err) < 0) fail_msg("%s", err.text);
    const struct drps_warm_options o = {
        .io = drps_io_os(), .from = model, .part = plan, .whole = plan};
    init_server(plan, "adagrad", &server);
    const char *dir = scratch_path(s, "work");
    if (drps_warm_open(&o, &w, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_warm_make(w, &server, dir, 1 << 20, &rows, &f, &err),
                     DRPS_E_MEMORY_BUDGET);
    assert_null(rows);
    drps_warm_close(w);
    drps_plan_close(plan);
}

/* ---- Refusals ---- */

static void expect_refusal(const char *from, const char *plan, int code, const char *text)
{
    struct drps_plan *p;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_warm *w;
    if (drps_plan_open(drps_io_os(), plan, &p, &err) < 0) fail_msg("%s", err.text);
    const struct drps_warm_options o = {.io = drps_io_os(), .from = from, .part = p, .whole = p};
    const int rc = drps_warm_open(&o, &w, &err);
    if (rc != code || !strstr(err.text, text))
        fail_msg("'%s' expected, got %d: %s", text, rc, err.text);
    assert_null(w);
    drps_plan_close(p);
}

static void test_what_does_not_fit_is_refused(void **state)
{
    const struct data three = {.samples = 300, .features = 100, .factors = 3};
    const struct data four = {.samples = 300, .features = 100, .factors = 4};
    const struct data none = {.samples = 300, .features = 100};
    struct scratch *s = *state;
    char fm3[SCRATCH_PATH_BYTES], fm4[SCRATCH_PATH_BYTES], lor[SCRATCH_PATH_BYTES];
    char csv[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES], lor_model[SCRATCH_PATH_BYTES];
    char checkpoints[SCRATCH_PATH_BYTES];
    make_plan(s, "fm3", "fm", CASE_LIBSVM, &three, fm3);
    make_plan(s, "fm4", "fm", CASE_LIBSVM, &four, fm4);
    make_plan(s, "lor", "lor", CASE_LIBSVM, &none, lor);
    make_plan(s, "csv", "lor", CASE_CSV, &none, csv);
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    (void)snprintf(lor_model, sizeof(lor_model), "%s", scratch_path(s, "lormodel"));
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s", scratch_path(s, "model-state"));
    train(fm3, model, "adagrad");
    train(lor, lor_model, "adagrad");
    expect_refusal(model, lor, DRPS_E_CONFIG, "algorithm fm");
    expect_refusal(checkpoints, lor, DRPS_E_CONFIG, "algorithm fm");
    expect_refusal(model, fm4, DRPS_E_CONFIG, "3 factors");
    expect_refusal(checkpoints, fm4, DRPS_E_CONFIG, "3 factors");
    const struct data hinge = {.samples = 300, .features = 100, .loss = "hinge"};
    const struct data squared = {.samples = 300, .features = 100, .loss = "squared-hinge"};
    char svm[SCRATCH_PATH_BYTES], svm2[SCRATCH_PATH_BYTES], svm_model[SCRATCH_PATH_BYTES];
    make_plan(s, "svm", "svm", CASE_LIBSVM, &hinge, svm);
    make_plan(s, "svm2", "svm", CASE_LIBSVM, &squared, svm2);
    (void)snprintf(svm_model, sizeof(svm_model), "%s", scratch_path(s, "svmmodel"));
    train(svm, svm_model, "adagrad");
    expect_refusal(svm_model, svm2, DRPS_E_CONFIG, "loss hinge, the plan is for squared-hinge");
    char ffm[SCRATCH_PATH_BYTES], ffm_csv[SCRATCH_PATH_BYTES], ffm_model[SCRATCH_PATH_BYTES];
    char whole[SCRATCH_PATH_BYTES];
    const struct data whole_samples = {.samples = 300, .features = 100, .not_normalized = 1};
    make_plan(s, "ffm", "ffm", CASE_LIBFFM, &none, ffm);
    make_plan(s, "ffmcsv", "ffm", CASE_CSV, &none, ffm_csv);
    make_plan(s, "ffmwhole", "ffm", CASE_LIBFFM, &whole_samples, whole);
    (void)snprintf(ffm_model, sizeof(ffm_model), "%s", scratch_path(s, "ffmmodel"));
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s", scratch_path(s, "ffmmodel-state"));
    train(ffm, ffm_model, "adagrad");
    expect_refusal(ffm_model, ffm_csv, DRPS_E_CONFIG, "has 5 fields, and the plan 3");
    expect_refusal(ffm_model, whole, DRPS_E_CONFIG, "normalised, those of the plan are not");
    expect_refusal(checkpoints, whole, DRPS_E_CONFIG, "normalised, those of the plan are not");
    expect_refusal(lor_model, csv, DRPS_E_CONFIG, "numbers");
    expect_refusal(fm3, fm3, DRPS_E_CONFIG, "neither a model");
    expect_refusal(scratch_path(s, "nothing"), fm3, DRPS_E_CONFIG, "neither a model");
}

/* Any byte of any file of a checkpoint: it is refused, as is one without a file. */
static void test_damage_is_noticed(void **state)
{
    static const char *const files[] = {"checkpoint.json", "rows/00000.rec", "names.rec"};
    const struct data d = {.samples = 300, .features = 100, .factors = 3};
    struct scratch *s = *state;
    char plan[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES], checkpoints[SCRATCH_PATH_BYTES];
    make_plan(s, "plan", "fm", CASE_LIBSVM, &d, plan);
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s", scratch_path(s, "model-state"));
    train(plan, model, "adagrad");
    for (size_t f = 0; f < 3; f++) {
        char path[2 * SCRATCH_PATH_BYTES];
        size_t n;
        (void)snprintf(path, sizeof(path), "%s/rank-0/1/%s", checkpoints, files[f]);
        char *data = scratch_read(path, &n);
        for (size_t i = 0; i < 40; i++) {
            struct drps_plan *p;
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_warm *w;
            const size_t at = (size_t)drps_rng_at(f, i) % n;
            data[at] ^= 8;
            scratch_write(path, data, n);
            data[at] ^= 8;
            if (drps_plan_open(drps_io_os(), plan, &p, &err) < 0) fail_msg("%s", err.text);
            const struct drps_warm_options o = {
                .io = drps_io_os(), .from = checkpoints, .part = p, .whole = p, .log = &quiet};
            if (drps_warm_open(&o, &w, &err) == 0)
                fail_msg("%s: byte %zu of %zu is another one", path, at, n);
            drps_plan_close(p);
        }
        scratch_write(path, data, n); /* the model may have the same file */
        assert_int_equal(remove(path), 0);
        expect_refusal(checkpoints, plan, -ENOENT, "");
        scratch_write(path, data, n);
        free(data);
    }
    (void)check_begin(s, checkpoints, model, plan, "sgd", 64 << 20);
}

/* ---- Manifests that were written anew, with a checksum that is right ---- */

struct edit {
    const char *what;
    const char *object, *member; /* of the manifest; a NULL object is the manifest itself */
    json_int_t value;
};

static void edit_manifest(const char *path, const struct edit *e)
{
    struct drps_err err = DRPS_ERR_INIT;
    json_t *j;
    if (drps_manifest_read(drps_io_os(), path, DRPS_CHECKPOINT_KIND, DRPS_CHECKPOINT_VERSION, &j,
                           &err) < 0)
        fail_msg("%s", err.text);
    json_t *object = e->object ? json_object_get(j, e->object) : j;
    assert_non_null(json_object_get(object, e->member));
    assert_int_equal(json_object_set_new(object, e->member, json_integer(e->value)), 0);
    if (drps_manifest_write(drps_io_os(), path, j, &err) < 0) fail_msg("%s", err.text);
    json_decref(j);
}

static void test_numbers_are_checked(void **state)
{
    static const struct edit edits[] = {
        {"more workers than there are", "of", "workers", 2},
        {"no workers", "of", "workers", 0},
        {"too many workers", "of", "workers", 1 << 30},
        {"another rank", "of", "rank", 1},
        {"another first row", "of", "first_row", 1},
        {"more rows", "of", "rows", 1000},
        {"no rows", "of", "rows", 0},
        {"another dim", "of", "dim", 7},
        {"no optimizer", "optimizer", "name", 3},
    };
    const struct data d = {.samples = 300, .features = 100, .factors = 3};
    struct scratch *s = *state;
    char plan[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES], checkpoints[SCRATCH_PATH_BYTES];
    char path[SCRATCH_PATH_BYTES + 32];
    size_t n;
    make_plan(s, "plan", "fm", CASE_LIBSVM, &d, plan);
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s", scratch_path(s, "model-state"));
    (void)snprintf(path, sizeof(path), "%s/rank-0/1/checkpoint.json", checkpoints);
    train(plan, model, "adagrad");
    char *data = scratch_read(path, &n);
    for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
        struct drps_plan *p;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_warm *w;
        edit_manifest(path, &edits[i]);
        if (drps_plan_open(drps_io_os(), plan, &p, &err) < 0) fail_msg("%s", err.text);
        const struct drps_warm_options o = {
            .io = drps_io_os(), .from = checkpoints, .part = p, .whole = p, .log = &quiet};
        if (drps_warm_open(&o, &w, &err) == 0) fail_msg("%s: accepted", edits[i].what);
        drps_plan_close(p);
        scratch_write(path, data, n);
    }
    free(data);
}

/* A dictionary that gives two names one row, or a name no row. */
static void test_names_are_checked(void **state)
{
    const struct data d = {.samples = 300, .features = 100, .factors = 3};
    static const uint32_t rows[2][3] = {{1, 2, 2}, {1, 2, 1000}};
    struct scratch *s = *state;
    char plan[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES], checkpoints[SCRATCH_PATH_BYTES];
    char dir[SCRATCH_PATH_BYTES + 32], path[SCRATCH_PATH_BYTES + 64];
    make_plan(s, "plan", "fm", CASE_LIBSVM, &d, plan);
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    (void)snprintf(checkpoints, sizeof(checkpoints), "%s", scratch_path(s, "model-state"));
    (void)snprintf(dir, sizeof(dir), "%s/rank-0/1", checkpoints);
    (void)snprintf(path, sizeof(path), "%s/checkpoint.json", dir);
    train(plan, model, "adagrad");
    for (size_t i = 0; i < 2; i++) {
        struct names_writer *names;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_plan *p;
        struct drps_warm *w;
        struct drps_server server;
        struct drps_checkpoint *made;
        struct drps_warm_found found;
        uint64_t bytes, sum;
        json_t *j;
        char file[SCRATCH_PATH_BYTES + 64];
        (void)snprintf(file, sizeof(file), "%s/names.rec", dir);
        assert_int_equal(remove(file), 0);
        assert_int_equal(drps_names_writer_open(drps_io_os(), dir, 0, &names, NULL), 0);
        for (uint32_t k = 0; k < 3; k++) /* keys that the plan has, of small numbers */
            assert_int_equal(drps_names_writer_add(names, 10 + k, rows[i][k], 0, NULL, 0, NULL), 0);
        assert_int_equal(drps_names_writer_finish(names, NULL), 0);
        drps_names_writer_close(names);
        assert_int_equal(drps_copy_file(drps_io_os(), file, NULL, &bytes, &sum, NULL), 0);
        if (drps_manifest_read(drps_io_os(), path, DRPS_CHECKPOINT_KIND, DRPS_CHECKPOINT_VERSION,
                               &j, &err) < 0)
            fail_msg("%s", err.text);
        json_t *of = json_object_get(json_object_get(j, "of"), "names");
        assert_int_equal(json_object_set_new(of, "bytes", json_integer((json_int_t)bytes)), 0);
        assert_int_equal(json_object_set_new(of, "checksum", drps_manifest_hex(sum)), 0);
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, NULL), 0);
        json_decref(j);

        if (drps_plan_open(drps_io_os(), plan, &p, &err) < 0) fail_msg("%s", err.text);
        const struct drps_warm_options o = {
            .io = drps_io_os(), .from = checkpoints, .part = p, .whole = p, .log = &quiet};
        if (drps_warm_open(&o, &w, &err) < 0) fail_msg("%s", err.text);
        init_server(p, "adagrad", &server);
        assert_int_equal(drps_warm_make(w, &server, scratch_path(s, i ? "b" : "a"), 64 << 20, &made,
                                        &found, &err),
                         DRPS_E_CORRUPT);
        if (!strstr(err.text, i ? "row 1000" : "row 2 twice")) fail_msg("%s", err.text);
        drps_warm_close(w);
        drps_plan_close(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows_are_found_by_name, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_memory_is_bounded, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_refused, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_damage_is_noticed, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_numbers_are_checked, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_names_are_checked, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
