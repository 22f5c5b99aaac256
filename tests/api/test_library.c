/* The library as a program uses it: plans and models from memory are those of files, scores those
 * of drps-predict, and what is wrong is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/data.h"
#include "engine/predict/memory_rows.h"
#include "support/scratch.h"

enum { SETTINGS = 6, THREADS = 4 };

/* A model that is compiled, trained and used in each way. */
static const struct kind {
    const char *name;
    enum data_kind kind;
    const char *index[2 * SETTINGS]; /* name, value ... */
    const char *train[2 * SETTINGS];
} kinds[] = {
    {"lir", DATA_REALS, {"algo", "lir", "batch-size", "16"}, {"epochs", "2"}},
    {"lor", DATA_TWO, {"algo", "lor", "batch-size", "16"}, {"epochs", "2"}},
    {"mlr", DATA_CLASSES, {"algo", "mlr", "batch-size", "16"}, {"epochs", "2"}},
    {"svm", DATA_CLASSES, {"algo", "svm", "loss", "squared-hinge"}, {"epochs", "2"}},
    {"fm", DATA_REALS, {"algo", "fm", "factors", "4", "test-fraction", ".2"}, {"epochs", "2"}},
    {"ffm", DATA_FIELDS, {"algo", "ffm", "task", "regression"}, {"epochs", "2"}},
    {"expr", DATA_REALS, {"algo", "expr", "loss", "squared(y, w*x)"}, {"epochs", "2"}},
    {"topic", DATA_REALS, {"algo", "topic", "factors", "3"}, {"epochs", "2"}},
    {"lmf", DATA_RATINGS, {"algo", "lmf", "factors", "4"}, {"epochs", "3"}},
    {"bpr", DATA_RATINGS, {"algo", "bpr", "factors", "4"}, {"epochs", "3"}},
    {"hashed",
     DATA_CLASSES,
     {"algo", "mlr", "batch-size", "16", "hash-bits", "4"},
     {"epochs", "2"}},
    {"hashed-ffm",
     DATA_FIELDS,
     {"algo", "ffm", "task", "regression", "hash-bits", "2"},
     {"epochs", "2"}},
    {"oph",
     DATA_REALS,
     {"algo", "fm", "hash-bits", "9", "hash-kind", "oph", "hash-bins", "16"},
     {"epochs", "2"}},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

static void must(int rc, const struct drps_err *err, const char *what)
{
    if (rc < 0) fail_msg("%s: %d %s", what, rc, err->text);
}

static struct drps_settings *settings_of(enum drps_task task, const char *const *pairs)
{
    struct drps_settings *s;
    struct drps_err err = DRPS_ERR_INIT;
    must(drps_settings_new(task, &s, &err), &err, "settings");
    for (; *pairs; pairs += 2)
        must(drps_settings_set(s, pairs[0], pairs[1], &err), &err, pairs[0]);
    return s;
}

/* Both have the same files with the same bytes. Databases have numbers of their own in names. */
static void assert_same_folder(const char *a, const char *b)
{
    DIR *dir = opendir(a);
    const struct dirent *entry;
    char x[1024], y[1024];
    size_t files = 0;
    assert_non_null(dir);
    assert_int_equal(folder_entries(a), folder_entries(b));
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(x, sizeof(x), "%s/%s", a, entry->d_name);
        (void)snprintf(y, sizeof(y), "%s/%s", b, entry->d_name);
        if (!files_equal(x, y)) fail_msg("%s and %s are not the same", x, y);
        files++;
    }
    (void)closedir(dir);
    assert_true(files > 3);
}

/* The text behind "content": the checksum of all parameters. */
static const char *content_of(const char *json, char out[40])
{
    const char *at = strstr(json, "\"content\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"content\": %39[^,\n]", out), 1);
    return out;
}

/* ---- Plans and models ---- */

static const char *file_of(struct scratch *s, const struct data *d, const struct kind *k)
{
    char *text = malloc(DATA_TEXT);
    char name[64];
    assert_non_null(text);
    (void)snprintf(name, sizeof(name), "%s.txt", k->name);
    const char *path = scratch_file(s, name, text, data_text(d, k->kind, text));
    free(text);
    return path;
}

/* Compile the file and the matrix, wide and narrow: the plans are the same. */
static void compile(struct scratch *s, const struct data *d, const struct kind *k)
{
    struct drps_settings *settings = settings_of(DRPS_TASK_INDEX, k->index);
    struct drps_err err = DRPS_ERR_INIT;
    char plans[3][1024];
    const char *file = file_of(s, d, k);
    (void)snprintf(plans[0], sizeof(plans[0]), "%s/%s.plan", s->dir, k->name);
    (void)snprintf(plans[1], sizeof(plans[1]), "%s/%s.wide", s->dir, k->name);
    (void)snprintf(plans[2], sizeof(plans[2]), "%s/%s.narrow", s->dir, k->name);
    must(drps_index_files(settings, &file, 1, plans[0], NULL, NULL, &err), &err, k->name);
    for (int narrow = 0; narrow < 2; narrow++) {
        const struct drps_matrix m = data_matrix(d, k->kind, narrow);
        must(drps_index_matrix(settings, &m, NULL, plans[1 + narrow], NULL, NULL, &err), &err,
             k->name);
        assert_same_folder(plans[0], plans[1 + narrow]);
    }
    drps_settings_free(settings);
}

static void test_plans_from_memory_are_those_of_files(void **state)
{
    struct data *d = malloc(sizeof(*d));
    assert_non_null(d);
    data_make(d);
    for (size_t i = 0; i < KINDS; i++)
        compile(*state, d, &kinds[i]);
    free(d);
}

/* Test samples, and weights, are those of files, too. */
static void test_tests_and_weights_are_those_of_files(void **state)
{
    struct scratch *s = *state;
    struct data *d = malloc(sizeof(*d));
    struct drps_err err = DRPS_ERR_INIT;
    char weights[DATA_SAMPLES * 8], plan[1024], other[1024];
    size_t n = 0;
    assert_non_null(d);
    data_make(d);
    for (size_t i = 0; i < DATA_SAMPLES; i++)
        n += (size_t)snprintf(weights + n, sizeof(weights) - n, "%g\n", (double)d->weights[i]);
    const char *file = file_of(s, d, &kinds[0]);
    const char *const pairs[] = {
        "algo", "lir", "test", file, "weights", scratch_file(s, "weights", weights, n), NULL};
    struct drps_settings *of_files = settings_of(DRPS_TASK_INDEX, pairs);
    struct drps_settings *of_memory = settings_of(DRPS_TASK_INDEX, kinds[0].index);
    must(drps_settings_set(of_memory, "batch-size", "0.01%", &err), &err, "batch-size");
    struct drps_matrix m = data_matrix(d, DATA_REALS, 1), test = m;
    m.weights = (struct drps_array){d->weights, DRPS_F32};
    (void)snprintf(plan, sizeof(plan), "%s/weighted", s->dir);
    (void)snprintf(other, sizeof(other), "%s/weighted.matrix", s->dir);
    must(drps_index_files(of_files, &file, 1, plan, NULL, NULL, &err), &err, "files");
    must(drps_index_matrix(of_memory, &m, &test, other, NULL, NULL, &err), &err, "matrix");
    assert_same_folder(plan, other);
    drps_settings_free(of_files);
    drps_settings_free(of_memory);
    free(d);
}

/* ---- Models in use ---- */

/* Scores of drps-predict, as doubles. */
static size_t predicted(struct scratch *s, const char *model, const char *file, const char *flag,
                        double *scores, size_t most)
{
    const char *const pairs[] = {"force", "1", flag, "1", NULL};
    struct drps_settings *settings =
        settings_of(DRPS_TASK_PREDICT, flag ? pairs : (const char *const[]){"force", "1", NULL});
    struct drps_err err = DRPS_ERR_INIT;
    char out[1024];
    size_t n = 0, bytes;
    (void)snprintf(out, sizeof(out), "%s/scores", s->dir);
    must(drps_predict_files(settings, model, &file, 1, out, NULL, NULL, &err), &err, "predict");
    char *text = scratch_read(out, &bytes);
    char *at = text;
    if (flag) at = strchr(at, '\n') + 1; /* names of classes */
    for (char *end; n < most; at = end) {
        scores[n] = strtod(at, &end);
        if (end == at) break;
        n++;
    }
    free(text);
    drps_settings_free(settings);
    return n;
}

/* A file has nine digits, which say which float it is. */
static void assert_same_scores(const char *what, const double *found, const double *wanted,
                               size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "%.9g", found[i]);
        if (strtod(text, NULL) != wanted[i])
            fail_msg("%s: score %zu is %.17g, drps-predict says %.9g", what, i, found[i],
                     wanted[i]);
    }
}

/* Pairs of users and items, as a matrix. */
static struct drps_matrix pairs_of(const struct data *d, int64_t *starts, int64_t *indices)
{
    size_t n = 0;
    for (int64_t i = 0; i < DATA_SAMPLES; i++)
        for (int64_t k = d->starts[i]; k < d->starts[i + 1]; k++) {
            starts[n] = 2 * (int64_t)n;
            indices[2 * n] = i;
            indices[2 * n++ + 1] = d->indices[k];
        }
    starts[n] = 2 * (int64_t)n;
    return (struct drps_matrix){.samples = n,
                                .columns = DATA_SAMPLES,
                                .starts = {starts, DRPS_I64},
                                .indices = {indices, DRPS_I64}};
}

/* Memory for all, for names but not for rows, and for pages of both. */
enum room { ALL, NAMES, PAGES, ROOMS };

static uint64_t memory_of(const char *model, enum room room)
{
    struct drps_modeldir *md;
    uint64_t bytes = 0;
    if (room == ALL) return 0;
    assert_int_equal(drps_modeldir_open(drps_io_os(), model, 0, &md, NULL), 0);
    bytes = drps_modeldir_memory_least(md);
    if (room == NAMES) bytes += drps_memory_names_bytes(drps_modeldir_info(md));
    drps_modeldir_close(md);
    return bytes;
}

static void use(struct scratch *s, const struct data *d, const struct kind *k, enum room room)
{
    enum { MOST = DATA_SAMPLES * DATA_MOST * 3 };
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *p;
    char model[1024];
    double *wanted = calloc(MOST, sizeof(*wanted)), *found = calloc(MOST, sizeof(*found));
    int64_t *starts = calloc(MOST, sizeof(*starts)), *indices = calloc(MOST, sizeof(*indices));
    char *text = malloc(DATA_TEXT);
    size_t n = 0;
    assert_true(wanted && found && starts && indices && text);
    const char *file = file_of(s, d, k);
    (void)snprintf(model, sizeof(model), "%s/%s.model", s->dir, k->name);
    const int classes = k->kind == DATA_CLASSES && strcmp(k->name, "svm") != 0;
    if (k->kind != DATA_CLASSES || classes)
        n = predicted(s, model, file, classes ? "probabilities" : NULL, wanted, MOST);
    must(drps_predictor_open(model, memory_of(model, room), &p, &err), &err, model);
    const size_t outputs = drps_predictor_outputs(p);
    struct drps_matrix m =
        k->kind == DATA_RATINGS ? pairs_of(d, starts, indices) : data_matrix(d, k->kind, 1);
    m.labels.data = NULL;
    assert_true(m.samples * outputs <= MOST);
    must(drps_predictor_score(p, &m, DRPS_SCORE_USUAL, found, &err), &err, k->name);
    if (n) assert_int_equal(n, m.samples * outputs);
    assert_same_scores(k->name, found, wanted, n);

    /* Text, and single samples, get the same. */
    double *again = calloc(MOST, sizeof(*again));
    assert_non_null(again);
    size_t lines;
    const size_t bytes = data_text(d, k->kind, text);
    must(drps_predictor_score_text(p, text, bytes, DRPS_SCORE_USUAL, again, MOST / outputs, &lines,
                                   &err),
         &err, "text");
    assert_int_equal(lines, m.samples);
    assert_memory_equal(again, found, m.samples * outputs * sizeof(*found));
    for (uint64_t i = 0; i < m.samples && i < 20; i++) {
        struct drps_matrix one = m;
        one.samples = 1;
        one.starts.data = m.starts.type == DRPS_I64
                              ? (const void *)((const int64_t *)m.starts.data + i)
                              : (const void *)((const int32_t *)m.starts.data + i);
        must(drps_predictor_score(p, &one, DRPS_SCORE_USUAL, again, &err), &err, "one");
        assert_memory_equal(again, found + i * outputs, outputs * sizeof(*found));
    }
    assert_true((drps_predictor_reads(p, NULL) > 0) == (room != ALL));
    drps_predictor_close(p);
    free(again);
    free(text);
    free(wanted);
    free(found);
    free(starts);
    free(indices);
}

static void test_scores_are_those_of_predictions(void **state)
{
    struct scratch *s = *state;
    struct data *d = malloc(sizeof(*d));
    assert_non_null(d);
    data_make(d);
    for (size_t i = 0; i < KINDS; i++) {
        const struct kind *k = &kinds[i];
        struct drps_settings *settings = settings_of(DRPS_TASK_TRAIN, k->train);
        struct drps_err err = DRPS_ERR_INIT;
        char plan[1024], model[1024], again[1024], contents[2][40], *json;
        compile(s, d, k);
        (void)snprintf(plan, sizeof(plan), "%s/%s.plan", s->dir, k->name);
        (void)snprintf(model, sizeof(model), "%s/%s.model", s->dir, k->name);
        must(drps_train(settings, plan, model, NULL, &json, &err), &err, k->name);
        assert_non_null(strstr(json, "\"epochs\""));
        drps_free(json);
        must(drps_describe(model, &json, &err), &err, "describe");
        content_of(json, contents[0]);
        drps_free(json);
        (void)snprintf(plan, sizeof(plan), "%s/%s.wide", s->dir, k->name);
        (void)snprintf(again, sizeof(again), "%s/%s.again", s->dir, k->name);
        must(drps_train(settings, plan, again, NULL, NULL, &err), &err, k->name);
        must(drps_describe(again, &json, &err), &err, "describe");
        assert_string_equal(contents[0], content_of(json, contents[1]));
        drps_free(json);
        drps_settings_free(settings);
        for (int room = ALL; room < ROOMS; room++)
            use(s, d, k, (enum room)room);
    }
    free(d);
}

/* A calibrated model has the probabilities of its calibration, and raw scores as before. */
static void test_calibrated_scores_are_those_of_predictions(void **state)
{
    struct scratch *s = *state;
    const struct kind *k = &kinds[1];
    const char *const calibrate[] = {"calibrate", "platt", NULL};
    struct drps_settings *train = settings_of(DRPS_TASK_TRAIN, k->train);
    struct drps_settings *settings = settings_of(DRPS_TASK_PREDICT, calibrate);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *p;
    char plan[1024], model[1024];
    double scores[2][2][DATA_SAMPLES];
    struct data *d = malloc(sizeof(*d));
    assert_non_null(d);
    data_make(d);
    compile(s, d, k);
    const struct drps_matrix m = data_matrix(d, k->kind, 1);
    (void)snprintf(plan, sizeof(plan), "%s/%s.plan", s->dir, k->name);
    (void)snprintf(model, sizeof(model), "%s/%s.model", s->dir, k->name);
    must(drps_train(train, plan, model, NULL, NULL, &err), &err, k->name);
    for (int after = 0; after < 2; after++) {
        const char *file = file_of(s, d, k);
        if (after)
            must(drps_predict_files(settings, model, &file, 1, NULL, NULL, NULL, &err), &err,
                 "calibrate");
        must(drps_predictor_open(model, 0, &p, &err), &err, model);
        must(drps_predictor_score(p, &m, DRPS_SCORE_USUAL, scores[after][0], &err), &err, "usual");
        must(drps_predictor_score(p, &m, DRPS_SCORE_RAW, scores[after][1], &err), &err, "raw");
        drps_predictor_close(p);
        for (int room = ALL; room < ROOMS; room++)
            use(s, d, k, (enum room)room);
    }
    assert_memory_equal(scores[0][1], scores[1][1], sizeof(scores[0][1]));
    assert_memory_not_equal(scores[0][0], scores[1][0], sizeof(scores[0][0]));
    for (size_t i = 0; i < DATA_SAMPLES; i++)
        assert_true(fabs(scores[0][0][i] - 1 / (1 + exp(-scores[0][1][i]))) < 1e-12);
    drps_settings_free(train);
    drps_settings_free(settings);
    free(d);
}

/* ---- Fixture: one model for the rest ---- */

struct one_model {
    struct scratch scratch;
    struct data data;
    char plan[1024], model[1024];
};

static void make_model(struct one_model *f, const struct kind *k)
{
    struct drps_settings *index = settings_of(DRPS_TASK_INDEX, k->index);
    struct drps_settings *train = settings_of(DRPS_TASK_TRAIN, k->train);
    struct drps_err err = DRPS_ERR_INIT;
    data_make(&f->data);
    (void)snprintf(f->plan, sizeof(f->plan), "%s/plan", f->scratch.dir);
    (void)snprintf(f->model, sizeof(f->model), "%s/model", f->scratch.dir);
    const struct drps_matrix m = data_matrix(&f->data, k->kind, 0);
    must(drps_index_matrix(index, &m, NULL, f->plan, NULL, NULL, &err), &err, "index");
    must(drps_train(train, f->plan, f->model, NULL, NULL, &err), &err, "train");
    drps_settings_free(index);
    drps_settings_free(train);
}

static int begin_model(void **state)
{
    struct one_model *f = calloc(1, sizeof(*f));
    if (!f) return -1;
    scratch_begin(&f->scratch);
    *state = f;
    return 0;
}

static int end_model(void **state)
{
    struct one_model *f = *state;
    scratch_end(&f->scratch);
    free(f);
    return 0;
}

/* ---- Explaining and rows ---- */

struct rows_seen {
    size_t n, intercepts;
    float weight;
};

static int see_row(void *ctx, const struct drps_row *row)
{
    struct rows_seen *seen = ctx;
    seen->n++;
    if (row->name_bytes == 11 && memcmp(row->name, "(intercept)", 11) == 0) seen->intercepts++;
    if (row->name_bytes == 1 && row->name[0] == '7') seen->weight = row->params[0];
    return seen->n == 5 && seen->weight > 1e30f ? 17 : 0;
}

static void test_rows_are_found_by_name_and_explain_scores(void **state)
{
    struct one_model *f = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *p;
    struct rows_seen seen = {0};
    float row[4] = {0};
    size_t dim;
    char *json;
    double raw;
    make_model(f, &kinds[0]);
    must(drps_predictor_open(f->model, 0, &p, &err), &err, "open");
    must(drps_predictor_rows(p, see_row, &seen, &err), &err, "rows");
    assert_int_equal(seen.n, DATA_COLUMNS + 1);
    assert_int_equal(seen.intercepts, 1);
    must(drps_predictor_row(p, "7", NULL, 0, &dim, &err), &err, "row");
    assert_int_equal(dim, 1);
    must(drps_predictor_row(p, "7", row, 4, &dim, &err), &err, "row");
    assert_true(row[0] == seen.weight && row[0] != 0);
    assert_int_equal(drps_predictor_row(p, "4711", row, 4, NULL, &err), DRPS_E_NOT_FOUND);
    drps_err_clear(&err);
    seen = (struct rows_seen){.weight = 1e31f};
    assert_int_equal(drps_predictor_rows(p, see_row, &seen, &err), 17);
    drps_err_clear(&err);

    const int32_t starts[] = {0, 1}, indices[] = {7};
    const struct drps_matrix one = {.samples = 1,
                                    .columns = DATA_COLUMNS,
                                    .starts = {starts, DRPS_I32},
                                    .indices = {indices, DRPS_I32}};
    must(drps_predictor_score(p, &one, DRPS_SCORE_RAW, &raw, &err), &err, "score");
    must(drps_predictor_explain(p, &one, 3, &json, &err), &err, "explain");
    char wanted[64];
    (void)snprintf(wanted, sizeof(wanted), "\"contribution\": %.9g", (double)row[0]);
    if (!strstr(json, wanted) || !strstr(json, "\"feature\": \"7\"")) fail_msg("%s", json);
    assert_int_equal(json[strlen(json) - 1], '\n');
    drps_free(json);
    drps_predictor_close(p);
}

/* ---- Recommending ---- */

static void test_items_are_those_that_are_recommended_into_files(void **state)
{
    enum { N = 5, USERS = DATA_SAMPLES };
    struct one_model *f = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *p;
    char out[1024], names[USERS][8];
    const char *users[USERS];
    static uint32_t items[USERS * N];
    static double scores[USERS * N];
    size_t bytes;
    make_model(f, &kinds[8]);
    const char *const pairs[] = {"number", "5", "force", "1", NULL};
    struct drps_settings *s = settings_of(DRPS_TASK_RECOMMEND, pairs);
    (void)snprintf(out, sizeof(out), "%s/best", f->scratch.dir);
    must(drps_recommend_files(s, f->model, out, NULL, NULL, &err), &err, "files");
    must(drps_predictor_open(f->model, 0, &p, &err), &err, "open");
    for (size_t i = 0; i < USERS; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%zu", i);
        users[i] = names[i];
    }
    must(drps_predictor_recommend(p, users, USERS, NULL, N, items, scores, &err), &err, "memory");
    char *text = scratch_read(out, &bytes), *line = text;
    size_t lines = 0;
    for (char *end; *line; line = end + 1, lines++) {
        unsigned user, rank;
        char item[32], score[32], found[32];
        end = strchr(line, '\n');
        assert_int_equal(sscanf(line, "%u\t%u\t%31s\t%31s", &user, &rank, item, score), 4);
        const size_t at = user * N + rank - 1;
        assert_string_equal(item, drps_predictor_item(p, items[at]));
        (void)snprintf(found, sizeof(found), "%.9g", (double)(float)scores[at]);
        if (strtod(found, NULL) != strtod(score, NULL))
            fail_msg("%s: found %.17g", line, scores[at]);
    }
    assert_int_equal(lines, USERS * N);

    /* What was seen is left out, and an item is not like itself. */
    const int32_t starts[] = {0, 1}, first[] = {atoi(drps_predictor_item(p, items[0]))};
    const struct drps_matrix seen = {.samples = 1,
                                     .columns = DATA_COLUMNS,
                                     .starts = {starts, DRPS_I32},
                                     .indices = {first, DRPS_I32}};
    uint32_t best[N];
    must(drps_predictor_recommend(p, users, 1, &seen, N, best, NULL, &err), &err, "seen");
    assert_int_equal(best[0], items[1]);
    const char *name = drps_predictor_item(p, 3);
    must(drps_predictor_similar(p, &name, 1, N, best, scores, &err), &err, "similar");
    for (size_t i = 0; i < N; i++)
        assert_true(best[i] != 3 && scores[i] <= 1 && (!i || scores[i] <= scores[i - 1]));
    const char *nobody = "nobody";
    assert_int_equal(drps_predictor_recommend(p, &nobody, 1, NULL, N, best, NULL, &err),
                     DRPS_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "no user 'nobody'"));
    assert_null(drps_predictor_item(p, DRPS_NO_ITEM));
    free(text);
    drps_settings_free(s);
    drps_predictor_close(p);
}

/* ---- Threads ---- */

struct scoring {
    struct drps_predictor *p;
    const struct drps_matrix *m;
    double *scores;
    int rc;
};

static void *score_in_thread(void *arg)
{
    struct scoring *t = arg;
    struct drps_err err = DRPS_ERR_INIT;
    for (int i = 0; i < 5 && t->rc == 0; i++)
        t->rc = drps_predictor_score(t->p, t->m, DRPS_SCORE_USUAL, t->scores, &err);
    return NULL;
}

static void test_threads_score_at_a_time(void **state)
{
    struct one_model *f = *state;
    struct drps_err err = DRPS_ERR_INIT;
    make_model(f, &kinds[4]);
    const struct drps_matrix m = data_matrix(&f->data, DATA_REALS, 1);
    for (int room = ALL; room < ROOMS; room++) {
        struct drps_predictor *p;
        struct scoring of[THREADS];
        pthread_t threads[THREADS];
        must(drps_predictor_open(f->model, memory_of(f->model, (enum room)room), &p, &err), &err,
             "open");
        for (int i = 0; i < THREADS; i++) {
            of[i] = (struct scoring){p, &m, calloc(DATA_SAMPLES, sizeof(double)), 0};
            assert_int_equal(pthread_create(&threads[i], NULL, score_in_thread, &of[i]), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            assert_int_equal(of[i].rc, 0);
            assert_memory_equal(of[i].scores, of[0].scores, DATA_SAMPLES * sizeof(double));
        }
        for (int i = 0; i < THREADS; i++)
            free(of[i].scores);
        drps_predictor_close(p);
    }
}

/* A model that does not fit is read by blocks: rows are asked for once. */
static void test_reads_are_counted(void **state)
{
    struct one_model *f = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *p;
    double score;
    uint64_t bytes;
    make_model(f, &kinds[0]);
    struct drps_matrix one = data_matrix(&f->data, DATA_REALS, 1);
    one.samples = 1;
    must(drps_predictor_open(f->model, 0, &p, &err), &err, "open");
    must(drps_predictor_score(p, &one, DRPS_SCORE_USUAL, &score, &err), &err, "score");
    assert_int_equal(drps_predictor_reads(p, &bytes), 0);
    drps_predictor_close(p);
    /* What was read last stays: blocks, and a page of names. */
    uint64_t reads[2];
    for (int room = NAMES; room < ROOMS; room++) {
        must(drps_predictor_open(f->model, memory_of(f->model, (enum room)room), &p, &err), &err,
             "open");
        for (int i = 0; i < 2; i++) {
            must(drps_predictor_score(p, &one, DRPS_SCORE_USUAL, &score, &err), &err, "score");
            reads[i] = drps_predictor_reads(p, &bytes);
        }
        assert_true(reads[0] > 0 && bytes > 0);
        assert_int_equal(reads[1], reads[0]);
        drps_predictor_close(p);
    }
    assert_int_equal(drps_predictor_open(f->model, 1 << 20, &p, &err), DRPS_E_MEMORY_BUDGET);
    assert_null(p);
}

/* ---- Watching ---- */

struct watching {
    int progresses, epochs, messages, stop_at_epoch;
    char phases[200];
};

static int see_progress(void *ctx, const struct drps_watch_progress *p)
{
    struct watching *w = ctx;
    w->progresses++;
    if (!strstr(w->phases, p->phase))
        (void)snprintf(w->phases + strlen(w->phases), sizeof(w->phases) - strlen(w->phases), "%s ",
                       p->phase);
    return 0;
}

static int see_epoch(void *ctx, const char *json)
{
    struct watching *w = ctx;
    assert_non_null(strstr(json, "\"train_loss\""));
    return ++w->epochs == w->stop_at_epoch;
}

static void see_message(void *ctx, enum drps_level level, const char *text)
{
    struct watching *w = ctx;
    (void)level;
    assert_non_null(text);
    w->messages++;
}

static void test_a_run_is_watched_and_stopped(void **state)
{
    struct one_model *f = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct watching w = {.stop_at_epoch = 2};
    volatile int stop = 0;
    const struct drps_watch watch = {.ctx = &w,
                                     .message = see_message,
                                     .progress = see_progress,
                                     .epoch = see_epoch,
                                     .stop = &stop};
    struct drps_settings *index = settings_of(DRPS_TASK_INDEX, kinds[0].index);
    const char *const pairs[] = {"epochs", "50", NULL};
    struct drps_settings *train = settings_of(DRPS_TASK_TRAIN, pairs);
    char *json;
    make_model(f, &kinds[0]);
    char plan[1100], model[1100];
    (void)snprintf(plan, sizeof(plan), "%s.watched", f->plan);
    (void)snprintf(model, sizeof(model), "%s.watched", f->model);
    const struct drps_matrix m = data_matrix(&f->data, DATA_REALS, 0);
    must(drps_index_matrix(index, &m, NULL, plan, &watch, &json, &err), &err, "index");
    assert_non_null(strstr(json, "\"train_least_bytes\""));
    drps_free(json);
    if (!strstr(w.phases, "parse") || !strstr(w.phases, "batch")) fail_msg("phases: %s", w.phases);
    assert_int_equal(drps_train(train, plan, model, &watch, &json, &err), DRPS_E_INTERRUPTED);
    if (!strstr(err.text, "the model so far is")) fail_msg("%s", err.text);
    assert_int_equal(w.epochs, 2);
    assert_int_equal(stop, 1);
    assert_non_null(json); /* with the model so far */
    drps_free(json);
    drps_err_clear(&err);
    must(drps_describe(model, &json, &err), &err, "describe");
    drps_free(json);

    /* The flag is set already: nothing is left. */
    char other[1200];
    (void)snprintf(other, sizeof(other), "%s.other", plan);
    assert_int_equal(drps_index_matrix(index, &m, NULL, other, &watch, NULL, &err),
                     DRPS_E_INTERRUPTED);
    assert_false(path_exists(other));
    drps_settings_free(index);
    drps_settings_free(train);
}

/* ---- Hostile callers ---- */

static void test_bad_matrices_are_refused(void **state)
{
    static const int64_t good[] = {0, 1, 2}, falling[] = {0, 2, 1}, negative[] = {-1, 1, 2},
                         beyond[] = {0, 1, 9}, back[] = {0, 2, 0};
    static const int64_t columns[] = {0, 3}, outside[] = {0, 4}, below[] = {-1, 3};
    static const double values[] = {1, 2}, infinite[] = {1, (double)INFINITY}, large[] = {1, 1e300};
    static const double labels[] = {0, 1}, nan_labels[] = {0, (double)NAN}, minus[] = {1, -1};
    const struct drps_matrix fine = {.samples = 2,
                                     .columns = 4,
                                     .entries = 2,
                                     .starts = {good, DRPS_I64},
                                     .indices = {columns, DRPS_I64},
                                     .values = {values, DRPS_F64},
                                     .labels = {labels, DRPS_F64}};
    struct scratch *s = *state;
    const char *const pairs[] = {"algo", "lir", "force", "1", NULL};
    struct drps_settings *settings = settings_of(DRPS_TASK_INDEX, pairs);
    char plan[1024];
    (void)snprintf(plan, sizeof(plan), "%s/hostile", s->dir);
#define CHANGED(...)                                                                               \
    ({                                                                                             \
        struct drps_matrix m = fine;                                                               \
        __VA_ARGS__;                                                                               \
        m;                                                                                         \
    })
    const struct {
        const char *name, *told;
        struct drps_matrix m;
        int rc;
    } cases[] = {
        {"fine", "", fine, 0},
        {"nothing", "starts must be", {0}, DRPS_E_CONFIG},
        {"no samples", "no sample", CHANGED(m.samples = 0), DRPS_E_FORMAT},
        {"falling", "sample 1 goes from entry 2 to 1", CHANGED(m.starts.data = falling),
         DRPS_E_FORMAT},
        {"negative", "sample 0 goes from entry -1", CHANGED(m.starts.data = negative),
         DRPS_E_FORMAT},
        {"beyond", "there are 2 entries", CHANGED(m.starts.data = beyond), DRPS_E_FORMAT},
        {"outside", "has column 4; there are 4 columns", CHANGED(m.indices.data = outside),
         DRPS_E_FORMAT},
        {"below", "has column -1", CHANGED(m.indices.data = below), DRPS_E_FORMAT},
        {"infinite", "sample 1, column 3: the value inf", CHANGED(m.values.data = infinite),
         DRPS_E_FORMAT},
        {"large", "the value 1e+300", CHANGED(m.values.data = large), DRPS_E_FORMAT},
        {"label", "sample 1: the label nan", CHANGED(m.labels.data = nan_labels), DRPS_E_FORMAT},
        {"weight", "or is negative", CHANGED(m.weights = ((struct drps_array){minus, DRPS_F64})),
         DRPS_E_FORMAT},
        {"no labels", "no labels", CHANGED(m.labels.data = NULL), DRPS_E_CONFIG},
        {"no indices", "indices are missing", CHANGED(m.indices.data = NULL), DRPS_E_CONFIG},
        {"no indices of entries that starts take back", "indices are missing",
         CHANGED(m.indices.data = NULL; m.starts.data = back), DRPS_E_CONFIG},
        {"types", "indices must be an array of", CHANGED(m.indices.type = DRPS_F32), DRPS_E_CONFIG},
        {"no type", "values must be an array of", CHANGED(m.values.type = (enum drps_number)77),
         DRPS_E_CONFIG},
        {"huge", "larger than any memory", CHANGED(m.samples = UINT64_MAX), DRPS_E_CONFIG},
    };
#undef CHANGED
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_index_matrix(settings, &cases[i].m, NULL, plan, NULL, NULL, &err);
        if (rc != cases[i].rc || !strstr(err.text, cases[i].told))
            fail_msg("%s: found %d '%s', expected %d '%s'", cases[i].name, rc, err.text,
                     cases[i].rc, cases[i].told);
        if (rc == 0) continue;
        err = (struct drps_err)DRPS_ERR_INIT;
        assert_int_equal(drps_index_matrix(settings, &fine, &cases[i].m, plan, NULL, NULL, NULL),
                         rc);
    }
    drps_settings_free(settings);
}

/* Arrays of any numbers: what is not told is scored, and nothing beyond the arrays is read. */
static void test_random_matrices_do_no_harm(void **state)
{
    enum { N = 6, ROUNDS = 4000 / DRPS_TEST_ONE_IN };
    static const int64_t odd[] = {-1, 0, 1, 2, 3, 5, N, N + 1, INT64_MAX, INT64_MIN, UINT32_MAX};
    static const double odd_values[] = {0, 1, -2.5, 1e300, -1e-300, (double)NAN, (double)INFINITY};
    struct one_model *f = *state;
    struct random_source r = random_begin("random matrices");
    struct drps_predictor *p;
    size_t scored = 0;
    make_model(f, &kinds[5]);
    assert_int_equal(drps_predictor_open(f->model, 0, &p, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t starts[N + 1], indices[N], fields[N];
        double values[N], scores[N];
        const int tame = (int)random_below(&r, 3);
        for (size_t i = 0; i <= N; i++)
            starts[i] = tame ? (int64_t)i : odd[random_below(&r, sizeof(odd) / sizeof(*odd))];
        for (size_t i = 0; i < N; i++) {
            indices[i] = tame ? (int64_t)random_below(&r, N)
                              : odd[random_below(&r, sizeof(odd) / sizeof(*odd))];
            fields[i] = tame > 1 ? 1 : odd[random_below(&r, sizeof(odd) / sizeof(*odd))];
            values[i] = odd_values[random_below(
                &r, tame > 1 ? 3 : sizeof(odd_values) / sizeof(*odd_values))];
        }
        const struct drps_matrix m = {.samples = random_below(&r, N + 1),
                                      .columns = N,
                                      .entries = N,
                                      .starts = {starts, DRPS_I64},
                                      .indices = {indices, DRPS_I64},
                                      .values = {values, DRPS_F64},
                                      .fields = {fields, DRPS_I64}};
        const int rc = drps_predictor_score(p, &m, DRPS_SCORE_USUAL, scores, NULL);
        if (rc != 0 && rc != DRPS_E_FORMAT) fail_msg("round %d: %d", round, rc);
        scored += rc == 0 && m.samples;
    }
    assert_true(scored > ROUNDS / 10);
    drps_predictor_close(p);
}

static void test_nothing_is_refused(void **state)
{
    struct one_model *f = *state;
    struct drps_predictor *p;
    double score;
    size_t n;
    char *json;
    make_model(f, &kinds[0]);
    const struct drps_matrix m = data_matrix(&f->data, DATA_REALS, 0);
    assert_int_equal(drps_index_files(NULL, NULL, 3, "x", NULL, NULL, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_index_files(NULL, NULL, 0, NULL, NULL, NULL, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_index_matrix(NULL, NULL, NULL, "x", NULL, NULL, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_train(NULL, NULL, "x", NULL, NULL, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_train(NULL, "no such plan", "x", NULL, NULL, NULL), DRPS_E_NOT_FOUND);
    assert_int_equal(drps_predict_files(NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL),
                     DRPS_E_CONFIG);
    assert_int_equal(drps_predict_files(NULL, f->model, NULL, 0, "-", NULL, NULL, NULL),
                     DRPS_E_CONFIG);
    assert_int_equal(drps_recommend_files(NULL, f->model, "-", NULL, NULL, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_describe(NULL, &json, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_describe("no such folder", &json, NULL), DRPS_E_NOT_FOUND);
    assert_null(json);
    assert_int_equal(drps_predictor_open(NULL, 0, &p, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_predictor_open("no such model", 0, &p, NULL), DRPS_E_NOT_FOUND);
    assert_null(p);
    drps_predictor_close(NULL);
    drps_free(NULL);
    assert_int_equal(drps_predictor_open(f->model, 0, &p, NULL), 0);
    assert_int_equal(drps_predictor_score(p, NULL, DRPS_SCORE_USUAL, &score, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_predictor_score(p, &m, DRPS_SCORE_USUAL, NULL, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_predictor_score(p, &m, (enum drps_score)9, &score, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_predictor_score_text(p, "", 0, DRPS_SCORE_USUAL, NULL, 0, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(
        drps_predictor_score_text(p, "1 1:1\n1 2:1\n", 12, DRPS_SCORE_USUAL, &score, 1, &n, NULL),
        -ERANGE);
    assert_int_equal(
        drps_predictor_score_text(p, "1 1:x\n", 6, DRPS_SCORE_USUAL, &score, 1, &n, NULL),
        DRPS_E_FORMAT);
    assert_int_equal(drps_predictor_explain_text(p, NULL, 4, 0, &json, NULL), DRPS_E_CONFIG);
    assert_int_equal(drps_predictor_recommend(p, NULL, 1, NULL, 1, NULL, NULL, NULL),
                     DRPS_E_CONFIG);
    assert_int_equal(drps_predictor_items(p), 0);
    assert_null(drps_predictor_class(p, 0));
    drps_predictor_close(p);
}

/* Pieces of text that are scored as they come would cut sequences. */
static void test_sequences_are_scored_from_files(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predictor *p;
    char net[1024], plan[1024], model[1024];
    double scores[8];
    size_t n;
    (void)snprintf(
        net, sizeof(net), "%s",
        scratch_file(s, "net.txt", "x = bag 2\nh = lstm 2 x\nscore = full classes h\n", SIZE_MAX));
    (void)snprintf(plan, sizeof(plan), "%s/text.plan", s->dir);
    (void)snprintf(model, sizeof(model), "%s/text.model", s->dir);
    const char *file = scratch_file(s, "text.txt", "a b a b\n", SIZE_MAX);
    struct drps_settings *settings =
        settings_of(DRPS_TASK_INDEX, (const char *const[]){"algo", "net", "net", net, NULL});
    must(drps_index_files(settings, &file, 1, plan, NULL, NULL, &err), &err, "index");
    must(drps_train(NULL, plan, model, NULL, NULL, &err), &err, "train");
    must(drps_predictor_open(model, 0, &p, &err), &err, "open");
    assert_int_equal(
        drps_predictor_score_text(p, "a b\n", 4, DRPS_SCORE_USUAL, scores, 8, &n, &err),
        DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "reads sequences, which are scored from files"));
    drps_predictor_close(p);
    drps_settings_free(settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_plans_from_memory_are_those_of_files, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_tests_and_weights_are_those_of_files, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_scores_are_those_of_predictions, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_calibrated_scores_are_those_of_predictions,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_rows_are_found_by_name_and_explain_scores, begin_model,
                                        end_model),
        cmocka_unit_test_setup_teardown(test_items_are_those_that_are_recommended_into_files,
                                        begin_model, end_model),
        cmocka_unit_test_setup_teardown(test_threads_score_at_a_time, begin_model, end_model),
        cmocka_unit_test_setup_teardown(test_reads_are_counted, begin_model, end_model),
        cmocka_unit_test_setup_teardown(test_a_run_is_watched_and_stopped, begin_model, end_model),
        cmocka_unit_test_setup_teardown(test_bad_matrices_are_refused, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_random_matrices_do_no_harm, begin_model, end_model),
        cmocka_unit_test_setup_teardown(test_nothing_is_refused, begin_model, end_model),
        cmocka_unit_test_setup_teardown(test_sequences_are_scored_from_files, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
