/* Prediction: the scores that training's evaluation had, whatever the memory; unseen features;
 * other formats. */
#include "support/plan_maker.h"

#include <errno.h>
#include <math.h>

#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/predict/drps_predict.h"
#include "index/drps_index.h"
#include "support/fault_io.h"
#include "support/scratch.h"

enum { TINY_MEMORY = 36 << 20 };

static char *join(const char *dir, const char *name)
{
    char *path = drps_path_join(dir, name);
    assert_non_null(path);
    return path;
}

/* Samples as libsvm text; `unseen` adds features that no plan of the maker has. */
static char *write_libsvm(const char *dir, const char *name, const struct maker *m,
                          const struct maker_sample *samples, size_t n, int unseen)
{
    char *path = join(dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(f, "%.9g", (double)samples[i].label);
        if (unseen) (void)fprintf(f, " 1:0.5");
        for (uint32_t k = 0; k < samples[i].n; k++) {
            if (m->fields) (void)fprintf(f, " %u", k % m->fields);
            (void)fprintf(f, "%c%llu:%.9g", m->fields ? ':' : ' ',
                          (unsigned long long)maker_key(samples[i].features[k]),
                          (double)samples[i].values[k]);
        }
        if (unseen)
            (void)fprintf(f, " %llu:2", (unsigned long long)maker_key(m->features + (uint32_t)i));
        (void)fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
    return path;
}

static char *read_text(const char *path, size_t *n_out)
{
    char *text;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_io_read_file(drps_io_os(), path, 64 << 20, &text, n_out, &err) < 0)
        fail_msg("%s", err.text);
    return text;
}

static struct drps_predict_result predict(const char *model, const char *data, const char *out,
                                          struct drps_predict_options o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predict_result r;
    o.model = model;
    o.inputs = &data;
    o.inputs_n = 1;
    o.output = out;
    o.replace = 1;
    if (drps_predict_run(drps_io_os(), &o, &r, &err) < 0) fail_msg("%s", err.text);
    return r;
}

struct fixture {
    char *dir, *model, *data, *out;
    struct maker m;
    struct drps_plan *plan;
    struct drps_train_result trained;
};

static void setup(struct fixture *f, const char *algo, const char *loss, uint32_t rank)
{
    const uint32_t entries = strcmp(algo, "lmf") == 0 ? 2 : 4;
    struct drps_err err = DRPS_ERR_INIT;
    memset(f, 0, sizeof(*f));
    f->dir = temp_make();
    maker_init(&f->m, algo, loss, 8000, 50);
    f->m.rank = rank;
    f->m.fields = strcmp(algo, "ffm") == 0 ? 3 : 0; /* two of the entries have one */
    maker_random(&f->m, 2000, entries, 0, 31);
    maker_random(&f->m, 700, entries, 1, 32);
    f->plan = maker_write(&f->m, f->dir, "plan");
    f->model = join(f->dir, "model");
    f->out = join(f->dir, "scores");
    f->data = write_libsvm(f->dir, "test.libsvm", &f->m, f->m.test, f->m.test_n, 0);
    const struct drps_train_options o = {.model_path = f->model, .epochs = 2, .seed = 3};
    if (drps_train_run(f->plan, &o, &f->trained, &err) < 0) fail_msg("%s", err.text);
}

static void teardown(struct fixture *f)
{
    drps_train_result_free(&f->trained);
    drps_plan_close(f->plan);
    maker_free(&f->m);
    free(f->model);
    free(f->out);
    free(f->data);
    temp_remove(f->dir);
}

static uint32_t dim_of(const struct maker *m)
{
    return 1 + m->rank * (m->fields ? m->fields : 1);
}

/* A sample's score in double from the model's parameters. */
static double score_of(const struct maker *m, const struct maker_sample *s, const float *params)
{
    const uint32_t dim = dim_of(m);
    double score = (double)params[0], squares = 0;
    for (uint32_t k = 0; k < s->n; k++)
        squares += (double)s->values[k] * (double)s->values[k];
    const double scale = m->fields ? 1 / sqrt(squares) : 1;
    for (uint32_t k = 0; k < s->n; k++)
        score += scale * (double)s->values[k] * (double)params[(s->features[k] + 1) * dim];
    for (uint32_t a = 0; a < s->n; a++)
        for (uint32_t b = a + 1; b < s->n; b++) {
            const double x = scale * (double)s->values[a] * scale * (double)s->values[b];
            const uint32_t of_a = m->fields ? b % m->fields * m->rank : 0;
            const uint32_t of_b = m->fields ? a % m->fields * m->rank : 0;
            for (uint32_t d = 1; d <= m->rank; d++)
                score += x * (double)params[(s->features[a] + 1) * dim + of_a + d] *
                         (double)params[(s->features[b] + 1) * dim + of_b + d];
        }
    return score;
}

static void test_predict_equals_the_evaluation_of_training(void **state)
{
    static const struct {
        const char *algo, *loss;
        uint32_t rank;
        int probability;
    } cases[] = {{"lor", "logistic", 0, 1}, {"svm", "hinge", 0, 0},  {"lir", "squared", 0, 0},
                 {"fm", "logistic", 4, 1},  {"fm", "squared", 3, 0}, {"lmf", "squared", 4, 0},
                 {"ffm", "logistic", 4, 1}, {"ffm", "squared", 3, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture f;
        size_t n;
        setup(&f, cases[i].algo, cases[i].loss, cases[i].rank);
        const struct drps_predict_result r =
            predict(f.model, f.data, f.out, (struct drps_predict_options){.metrics = 1});
        const struct drps_quality *want = &f.trained.epochs[1].test;
        assert_int_equal(r.samples, f.m.test_n);
        assert_int_equal(r.unseen, 0);
        /* Batches of another form may fuse operations, so scores differ by some units in the last
         * place. */
        assert_true(fabs(r.quality.loss - want->loss) < 1e-6 * (1 + want->loss));
        if (f.m.classification) {
            assert_true(fabs(r.quality.auc - want->auc) < 1e-4);
            assert_true(fabs(r.quality.accuracy - want->accuracy) < 1e-4);
        } else {
            assert_true(fabs(r.quality.rmse - want->rmse) < 1e-6 * (1 + want->rmse));
        }

        /* Each line against the parameters, computed in double: floats of a few terms agree to
         * 1e-5. */
        struct drps_modeldir *md;
        const uint32_t rows = f.m.features + 1, dim = dim_of(&f.m);
        uint32_t *ids = calloc(rows, sizeof(*ids));
        float *params = calloc((size_t)rows * dim, sizeof(*params));
        for (uint32_t k = 0; k < rows; k++)
            ids[k] = k;
        assert_int_equal(drps_modeldir_open(drps_io_os(), f.model, 16 << 20, &md, NULL), 0);
        assert_int_equal(drps_modeldir_gather(md, ids, rows, params, NULL), 0);
        drps_modeldir_close(md);
        char *text = read_text(f.out, &n);
        char *at = text;
        for (size_t s = 0; s < f.m.test_n; s++) {
            double score = score_of(&f.m, &f.m.test[s], params);
            if (cases[i].probability) score = 1 / (1 + exp(-score));
            const double got = strtod(at, &at);
            if (!(fabs(got - score) < 1e-5 + 1e-5 * fabs(score)) || *at++ != '\n')
                fail_msg("%s: sample %zu: %.9g, expected %.9g", cases[i].algo, s, got, score);
        }
        assert_true(at == text + n);
        free(text);
        free(ids);
        free(params);
        teardown(&f);
    }
}

static void test_predict_leaves_unseen_features_out(void **state)
{
    (void)state;
    struct fixture f;
    size_t n, n2;
    setup(&f, "fm", "logistic", 4);
    predict(f.model, f.data, f.out, (struct drps_predict_options){.metrics = 0});
    char *want = read_text(f.out, &n);
    char *data = write_libsvm(f.dir, "more.libsvm", &f.m, f.m.test, f.m.test_n, 1);
    const struct drps_predict_result r =
        predict(f.model, data, f.out, (struct drps_predict_options){.metrics = 0});
    char *got = read_text(f.out, &n2);
    assert_int_equal(r.unseen, 2 * f.m.test_n);
    assert_int_equal(r.nnz, 4 * f.m.test_n);
    assert_int_equal(n, n2);
    assert_memory_equal(want, got, n);
    free(want);
    free(got);
    free(data);
    teardown(&f);
}

static void test_predict_with_tiny_memory_gives_the_same_bytes(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_predict_result r;
    size_t n, n2;
    setup(&f, "fm", "logistic", 40); /* 8001 rows of 164 bytes: more than the blocks that fit */
    /* Many samples, so that the smallest batches are several. */
    char *data = write_libsvm(f.dir, "train.libsvm", &f.m, f.m.train, f.m.n, 0);
    predict(f.model, data, f.out, (struct drps_predict_options){.metrics = 0});
    char *want = read_text(f.out, &n);
    predict(f.model, data, f.out, (struct drps_predict_options){.memory_bytes = TINY_MEMORY});
    char *got = read_text(f.out, &n2);
    assert_int_equal(n, n2);
    assert_memory_equal(want, got, n);
    const char *inputs[] = {data};
    const struct drps_predict_options o = {.model = f.model,
                                           .inputs = inputs,
                                           .inputs_n = 1,
                                           .output = f.out,
                                           .memory_bytes = 8 << 20};
    assert_int_equal(drps_predict_run(drps_io_os(), &o, &r, &err), DRPS_E_MEMORY_BUDGET);
    assert_non_null(strstr(err.text, "at least"));
    free(want);
    free(got);
    free(data);
    teardown(&f);
}

static void test_predict_refuses_what_does_not_fit(void **state)
{
    static const struct {
        const char *name, *text, *says;
        int code, metrics;
    } cases[] = {
        {"label", "1 5:1\n7 5:1\n", "sample 2 has label 7", DRPS_E_FORMAT, 1},
        {"bad line", "1 5:1\n1 x:1\n", ":2", DRPS_E_FORMAT, 0},
    };
    (void)state;
    struct fixture f;
    struct stat st;
    setup(&f, "lor", "logistic", 0);
    char *data = join(f.dir, "bad.libsvm");
    char *partial = join(f.dir, "scores.partial");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_predict_result r;
        FILE *file = fopen(data, "w");
        assert_non_null(file);
        (void)fputs(cases[i].text, file);
        assert_int_equal(fclose(file), 0);
        const char *inputs[] = {data};
        const struct drps_predict_options o = {.model = f.model,
                                               .inputs = inputs,
                                               .inputs_n = 1,
                                               .output = f.out,
                                               .metrics = cases[i].metrics};
        const int rc = drps_predict_run(drps_io_os(), &o, &r, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].name, rc, err.text);
        assert_int_not_equal(stat(f.out, &st), 0); /* no output, not even part of it */
        assert_int_not_equal(stat(partial, &st), 0);
    }
    /* Without metrics any label will do. */
    FILE *file = fopen(data, "w");
    assert_non_null(file);
    (void)fputs("7 5:1\n", file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(
        predict(f.model, data, f.out, (struct drps_predict_options){.metrics = 0}).samples, 1);
    free(data);
    free(partial);
    teardown(&f);
}

/* A csv file whose columns come in another order, with one unknown column and one unknown category.
 */
static void test_predict_matches_columns_by_name(void **state)
{
    (void)state;
    char *dir = temp_make();
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_index_result indexed;
    struct drps_train_result trained;
    struct drps_plan *plan;
    char *train = join(dir, "train.csv"), *same = join(dir, "same.csv"),
         *moved = join(dir, "moved.csv");
    char *plan_path = join(dir, "plan"), *model = join(dir, "model"), *out = join(dir, "scores");
    FILE *a = fopen(train, "w"), *b = fopen(same, "w"), *c = fopen(moved, "w");
    assert_true(a && b && c);
    (void)fputs("label,color,size\n", a);
    (void)fputs("label,color,size\n", b);
    (void)fputs("extra,size,label,color\n", c);
    for (int i = 0; i < 200; i++) {
        static const char *const colors[] = {"red", "green", "blue"};
        const char *color = colors[i % 3];
        (void)fprintf(a, "%d,%s,%s\n", i % 3 == 1, color, i % 2 ? "big" : "small");
        if (i >= 10) continue;
        (void)fprintf(b, "%d,%s,%s\n", i % 3 == 1, i == 4 ? "violet" : color,
                      i % 2 ? "big" : "small");
        (void)fprintf(c, "x,%s,%d,%s\n", i % 2 ? "big" : "small", i % 3 == 1,
                      i == 4 ? "violet" : color);
    }
    assert_true(fclose(a) == 0 && fclose(b) == 0 && fclose(c) == 0);
    const char *inputs[] = {train};
    const struct drps_index_options index = {.inputs = inputs,
                                             .inputs_n = 1,
                                             .algo = "lor",
                                             .batch_size = 20,
                                             .seed = 1,
                                             .out = plan_path,
                                             .reader = {.format = "csv", .hash_seed = 77}};
    if (drps_index_run(drps_io_os(), &index, &indexed, &err) < 0) fail_msg("%s", err.text);
    if (drps_plan_open(drps_io_os(), plan_path, &plan, &err) < 0) fail_msg("%s", err.text);
    const struct drps_train_options o = {.model_path = model, .epochs = 5};
    if (drps_train_run(plan, &o, &trained, &err) < 0) fail_msg("%s", err.text);

    size_t n, n2;
    const struct drps_predict_result r =
        predict(model, same, out, (struct drps_predict_options){.metrics = 1});
    char *want = read_text(out, &n);
    assert_int_equal(r.samples, 10);
    assert_int_equal(r.unseen, 1);
    assert_true(r.quality.auc > 0.9);
    const struct drps_predict_result r2 =
        predict(model, moved, out, (struct drps_predict_options){.metrics = 1});
    char *got = read_text(out, &n2);
    assert_int_equal(r2.unseen, 1); /* the column that the model does not have does not count */
    assert_true(r.nnz == 19 && r2.nnz == 19);
    assert_true(r2.quality.loss == r.quality.loss);
    double x, y;
    char *p = want, *q = got;
    for (int i = 0; i < 10; i++) {
        x = strtod(p, &p);
        y = strtod(q, &q);
        assert_true(fabs(x - y) < 1e-6); /* the features of a sample are added in another order */
    }
    /* Numbers are no names. */
    char *numbers = join(dir, "n.libsvm");
    FILE *f = fopen(numbers, "w");
    assert_non_null(f);
    (void)fputs("1 5:1\n", f);
    assert_int_equal(fclose(f), 0);
    const char *wrong[] = {numbers};
    struct drps_predict_result r3;
    const struct drps_predict_options po = {.model = model,
                                            .inputs = wrong,
                                            .inputs_n = 1,
                                            .output = out,
                                            .replace = 1,
                                            .reader = {.format = "libsvm"}};
    assert_int_equal(drps_predict_run(drps_io_os(), &po, &r3, &err), DRPS_E_CONFIG);
    free(numbers);
    free(want);
    free(got);
    drps_train_result_free(&trained);
    drps_plan_close(plan);
    free(train);
    free(same);
    free(moved);
    free(plan_path);
    free(model);
    free(out);
    temp_remove(dir);
}

static void test_predict_no_samples_give_an_empty_file(void **state)
{
    (void)state;
    struct fixture f;
    size_t n;
    setup(&f, "lor", "logistic", 0);
    char *data = join(f.dir, "empty.libsvm");
    FILE *file = fopen(data, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    const struct drps_predict_result r =
        predict(f.model, data, f.out, (struct drps_predict_options){.metrics = 1});
    assert_int_equal(r.samples, 0);
    assert_true(isnan(r.quality.loss));
    char *text = read_text(f.out, &n);
    assert_int_equal(n, 0);
    free(text);
    free(data);
    teardown(&f);
}

/* ---- Which file is written ---- */

/* A run that may fail; the output may be any path. */
static int try_predict(const struct fixture *f, const struct drps_io *io, const char *out,
                       int replace, struct drps_err *err)
{
    const char *inputs[] = {f->data};
    struct drps_predict_result r;
    const struct drps_predict_options o = {
        .model = f->model, .inputs = inputs, .inputs_n = 1, .output = out, .replace = replace};
    *err = (struct drps_err)DRPS_ERR_INIT;
    return drps_predict_run(io, &o, &r, err);
}

static void assert_text(const char *path, const char *want)
{
    size_t n;
    char *text = read_text(path, &n);
    assert_string_equal(text, want);
    free(text);
}

static void test_predict_replaces_only_when_told(void **state)
{
    (void)state;
    struct fixture f;
    struct drps_err err;
    size_t n;
    setup(&f, "lor", "logistic", 0);
    char *partial = join(f.dir, "scores.partial");
    char *lock = join(f.dir, "scores.partial/lock");
    char *text = join(f.dir, "scores.partial/text");
    scratch_write(f.out, "old", 3);
    assert_int_equal(try_predict(&f, drps_io_os(), f.out, 0, &err), -EEXIST);
    assert_non_null(strstr(err.text, "have it replaced"));
    assert_text(f.out, "old");
    assert_false(path_exists(partial));

    assert_int_equal(mkdir(partial, 0777), 0); /* as a killed run leaves it */
    scratch_write(lock, "", 0);
    scratch_write(text, "0.5\n0.", 6);
    assert_int_equal(try_predict(&f, drps_io_os(), f.out, 1, &err), 0);
    char *scores = read_text(f.out, &n);
    assert_true(n > 3 * f.m.test_n);
    free(scores);
    assert_false(path_exists(partial));

    scratch_write(partial, "mine", 4); /* and what no run leaves */
    assert_int_equal(try_predict(&f, drps_io_os(), f.out, 1, &err), -EEXIST);
    assert_non_null(strstr(err.text, partial));
    assert_text(partial, "mine");
    free(text);
    free(lock);
    free(partial);
    teardown(&f);
}

/* By whatever name the output is what is read, it is refused, --force or not. */
static void test_predict_never_writes_what_it_reads(void **state)
{
    static const char *const in_model[] = {"model/scores", "model/names.rec", "model/rows/scores",
                                           "model/../model/scores", "link/rows/../scores"};
    (void)state;
    struct fixture f;
    struct drps_err err;
    setup(&f, "lor", "logistic", 0);
    char *soft = join(f.dir, "soft");
    char *hard = join(f.dir, "hard");
    char *link_path = join(f.dir, "link");
    char *roundabout = join(f.dir, "model/../test.libsvm");
    assert_int_equal(symlink(f.data, soft), 0);
    assert_int_equal(link(f.data, hard), 0);
    assert_int_equal(symlink(f.model, link_path), 0);
    const char *const same[] = {f.data, soft, hard, roundabout};
    for (int replace = 0; replace < 2; replace++) {
        for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
            const int rc = try_predict(&f, drps_io_os(), same[i], replace, &err);
            if (rc != DRPS_E_CONFIG || !strstr(err.text, "is the input"))
                fail_msg("%s: %d, %s", same[i], rc, err.text);
        }
        for (size_t i = 0; i < sizeof(in_model) / sizeof(in_model[0]); i++) {
            char *path = join(f.dir, in_model[i]);
            const int rc = try_predict(&f, drps_io_os(), path, replace, &err);
            if (rc != DRPS_E_CONFIG || !strstr(err.text, "lies in the folder"))
                fail_msg("%s: %d, %s", path, rc, err.text);
            free(path);
        }
        assert_int_equal(try_predict(&f, drps_io_os(), f.model, replace, &err), -EISDIR);
    }
    assert_int_equal(try_predict(&f, drps_io_os(), f.out, 0, &err), 0); /* all is as it was */
    free(roundabout);
    free(link_path);
    free(hard);
    free(soft);
    teardown(&f);
}

struct second {
    const struct fixture *f;
    int runs, wrong;
};

static void run_beside(void *ctx, const struct drps_predict_progress *p)
{
    struct second *s = ctx;
    struct drps_err err;
    /* All of a small file is read before its first sample is scored. */
    s->wrong += p->read_bytes != p->input_bytes || !p->input_bytes;
    const int rc = try_predict(s->f, drps_io_os(), s->f->out, s->runs++ & 1, &err);
    s->wrong += rc != -EBUSY || !strstr(err.text, "is being written by another process");
}

static void test_predict_two_at_once_on_one_file(void **state)
{
    (void)state;
    struct fixture f;
    setup(&f, "lor", "logistic", 0);
    struct second s = {.f = &f};
    predict(f.model, f.data, f.out,
            (struct drps_predict_options){.on_progress = run_beside, .ctx = &s});
    assert_true(s.runs > 0);
    assert_int_equal(s.wrong, 0);
    teardown(&f);
}

/* Whichever call fails: the old file is there as it was, and nothing else; or, after the last four
 * calls, which sync its folder and the one in which it was made, the new one. */
static void test_predict_failing_calls_keep_the_old_file(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_PWRITE, FAULT_FSYNC, FAULT_RENAME,
                                   FAULT_MKDIR};
    (void)state;
    struct fixture f;
    struct drps_err err;
    size_t n;
    setup(&f, "lor", "logistic", 0);
    assert_int_equal(try_predict(&f, drps_io_os(), f.out, 0, &err), 0);
    char *whole = read_text(f.out, &n);
    const size_t entries = folder_entries(f.dir);
    int was_old = 0, news = 0;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        for (long k = 1;; k++) {
            struct fault_io *io = fault_io_new(drps_io_os());
            scratch_write(f.out, "old", 3);
            fault_io_arm(io, ops[i], k, 0, FAULT_ERROR, -EIO);
            const int rc = try_predict(&f, &io->io, f.out, 1, &err);
            const int fired = atomic_load(&io->fired);
            const size_t path_n = strlen(f.out);
            const int removing = strncmp(io->struck, f.out, path_n) == 0 &&
                                 strcmp(io->struck + path_n, ".partial") == 0;
            assert_int_equal(io->unsynced_at_rename, 0);
            fault_io_free(io);
            if (!fired) {
                assert_int_equal(rc, 0);
                break;
            }
            if (rc || !removing) assert_int_equal(rc, -EIO);
            assert_int_equal(folder_entries(f.dir), entries);
            char *text = read_text(f.out, &n);
            was_old += strcmp(text, "old") == 0;
            if (strcmp(text, "old") != 0 && strcmp(text, whole) != 0)
                fail_msg("%s %ld: '%s'", fault_op_name(ops[i]), k, text);
            news += strcmp(text, whole) == 0;
            free(text);
        }
    }
    assert_true(was_old > 10);
    assert_int_equal(news, 4);
    free(whole);
    teardown(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predict_equals_the_evaluation_of_training),
        cmocka_unit_test(test_predict_leaves_unseen_features_out),
        cmocka_unit_test(test_predict_with_tiny_memory_gives_the_same_bytes),
        cmocka_unit_test(test_predict_refuses_what_does_not_fit),
        cmocka_unit_test(test_predict_matches_columns_by_name),
        cmocka_unit_test(test_predict_no_samples_give_an_empty_file),
        cmocka_unit_test(test_predict_replaces_only_when_told),
        cmocka_unit_test(test_predict_never_writes_what_it_reads),
        cmocka_unit_test(test_predict_two_at_once_on_one_file),
        cmocka_unit_test(test_predict_failing_calls_keep_the_old_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
