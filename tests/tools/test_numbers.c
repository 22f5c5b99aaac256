/*
 * Every number of a manifest, wherever it lies in it, is set to what an attacker would choose, and
 * the manifest is signed anew. Then each tool either says what is wrong or does what it does with
 * the manifest as it was: the same model, the same scores. A process of its own tries the values of
 * one number, so that a crash or a loop fails the test with the name of the number. Databases have
 * threads that a fork loses, so that the test's own process opens none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/folder/drps_manifest.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/predict/drps_predict.h"
#include "storage/kv/drps_kv.h"
#include "support/index_case.h"
#include "tools/stat/tool.h"
#include "support/world.h"

enum { SECONDS_MOST = 100, MEMORY = 96 << 20, STORES = 8 };

static const int64_t values[] = {0,
                                 1,
                                 2,
                                 -1,
                                 INT64_C(1) << 31,
                                 (INT64_C(1) << 32) - 1,
                                 INT64_C(1) << 32,
                                 (INT64_C(1) << 32) + 1,
                                 INT64_C(1) << 60,
                                 INT64_C(1) << 61,
                                 (INT64_C(1) << 61) + 1, /* times 8, of 64 bits: 8 */
                                 INT64_C(1) << 62,
                                 (INT64_C(1) << 62) + 1,       /* times 4: 4 */
                                 INT64_C(1537228672809129302), /* times 12: 8 */
                                 INT64_C(922337203685477581),  /* times 20: 4 */
                                 INT64_MAX - 1,
                                 INT64_MAX};
enum { VALUES = sizeof(values) / sizeof(*values), TRIES = VALUES + 3 };

/* ---- Files that need not survive ---- */

static int sync_nothing(void *ctx, int fd)
{
    (void)ctx, (void)fd;
    return 0;
}

/* The system's calls but for fsync(), which takes most of the time of small models. */
static const struct drps_io *hasty(void)
{
    static struct drps_io_ops ops;
    static struct drps_io io;
    ops = *drps_io_os()->ops;
    ops.fsync = sync_nothing;
    io = *drps_io_os();
    io.ops = &ops;
    return &io;
}

/* ---- Numbers in a manifest ---- */

/* The k-th number below `at`, depth first; NULL: there are fewer. `path` becomes its name. */
static json_t *find_number(json_t *at, size_t *k, char *path, size_t cap)
{
    const size_t used = strlen(path);
    const char *key;
    json_t *child, *found = NULL;
    size_t i;
    if (json_is_number(at)) return (*k)-- == 0 ? at : NULL;
    json_object_foreach(at, key, child)
    {
        (void)snprintf(path + used, cap - used, ".%s", key);
        if ((found = find_number(child, k, path, cap))) return found;
    }
    json_array_foreach(at, i, child)
    {
        (void)snprintf(path + used, cap - used, "[%zu]", i);
        if ((found = find_number(child, k, path, cap))) return found;
    }
    path[used] = '\0';
    return NULL;
}

/* Set it to the t-th of TRIES; 0: it has no such value. */
static int set_number(json_t *number, size_t t)
{
    static const double reals[] = {0, -1, 4e38, 1e308};
    if (json_is_real(number))
        return t < sizeof(reals) / sizeof(*reals) && json_real_set(number, reals[t]) == 0;
    const json_int_t is = json_integer_value(number);
    const json_int_t value = t < VALUES        ? values[t]
                             : t == VALUES     ? is + 1
                             : t == VALUES + 1 ? is - 1
                                               : is / 2;
    return value != is && json_integer_set(number, value) == 0;
}

/* ---- Trying them ---- */

/* Shared with the child: what it is at, and what went wrong. */
struct news {
    char at[256], text[1024];
    size_t tried; /* of TRIES */
    int real;     /* a mean or a label: another one is another model, which nothing tells */
};

/* Shared with children. */
static void *shared_new(size_t bytes)
{
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return shared;
}

/* Run work(ctx) in a process of its own; returns its exit status, 0 when work() returned 0. */
static int in_child(int (*work)(void *ctx), void *ctx)
{
    int status = 0;
    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(SECONDS_MOST);
        _exit(work(ctx) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

struct sweep {
    const char *manifest; /* its path */
    const char *kind;
    int version;
    void (*probe)(void *ctx, struct news *news); /* in the child; sets news->text if it must not
                                                    have done what it did */
    int (*wanted)(const char *path);             /* NULL: all numbers */
    void *ctx;
    size_t every; /* of the numbers: one in so many */
};

static void wrong(struct news *news, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void wrong(struct news *news, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(news->text, sizeof(news->text), fmt, ap);
    va_end(ap);
}

static json_t *load(const struct sweep *s)
{
    struct drps_err err = DRPS_ERR_INIT;
    json_t *j;
    if (drps_manifest_read(drps_io_os(), s->manifest, s->kind, s->version, &j, &err))
        fail_msg("%s", err.text);
    return j;
}

struct number {
    const struct sweep *sweep;
    json_t *manifest, *number;
    const char *path; /* in the manifest */
    struct news *news;
};

static void name_number(const struct number *n)
{
    struct news *news = n->news;
    const char *manifest = n->sweep->manifest;
    news->real = json_is_real(n->number);
    if (json_is_real(n->number))
        (void)snprintf(news->at, sizeof(news->at), "%s: %s = %g", manifest, n->path,
                       json_real_value(n->number));
    else
        (void)snprintf(news->at, sizeof(news->at), "%s: %s = %lld", manifest, n->path,
                       (long long)json_integer_value(n->number));
}

static int try_number(void *ctx)
{
    const struct number *n = ctx;
    struct news *news = n->news;
    json_t *was = json_copy(n->number);
    for (size_t t = 0; t < TRIES && !news->text[0]; t++) {
        if (!set_number(n->number, t)) continue;
        news->tried = t;
        name_number(n);
        (void)json_object_del(n->manifest, "checksum"); /* of the one before */
        if (drps_manifest_write(hasty(), n->sweep->manifest, n->manifest, NULL))
            wrong(news, "cannot write it");
        else
            n->sweep->probe(n->sweep->ctx, news);
        if (json_is_real(n->number))
            (void)json_real_set(n->number, json_real_value(was));
        else
            (void)json_integer_set(n->number, json_integer_value(was));
    }
    json_decref(was);
    return news->text[0] != 0;
}

static void sweep(const struct sweep *s)
{
    struct news *news = shared_new(sizeof(*news));
    size_t found = 0, bytes;
    char *as_it_was = scratch_read(s->manifest, &bytes);
    json_t *j = load(s);
    for (size_t k = 0;; k++) {
        char path[256] = "";
        size_t left = k;
        struct number n = {.sweep = s, .manifest = j, .path = path, .news = news};
        n.number = find_number(j, &left, path, sizeof(path));
        if (!n.number) break;
        if (s->wanted && !s->wanted(path)) continue;
        if (found++ % s->every) continue;
        const int status = in_child(try_number, &n);
        if (status)
            fail_msg("%s: status %d: %s", news->at, status,
                     news->text[0] ? news->text : "the process ended");
    }
    assert_true(found > 3);
    scratch_write(s->manifest, as_it_was, bytes);
    free(as_it_was);
    json_decref(j);
    (void)munmap(news, sizeof(*news));
}

/* A refusal is a sentence, not a crash; that memory is gone must not come of a number. */
static void check_refusal(int rc, const struct drps_err *err, struct news *news)
{
    if (rc == -ENOMEM || err->code != rc || !err->text[0]) wrong(news, "%d: '%s'", rc, err->text);
}

/* ---- Training ---- */

struct training {
    const char *dir, *model;
    char swept[SCRATCH_PATH_BYTES]; /* the folder whose manifest is swept */
    uint32_t workers;
    struct drps_train_options options;
    const char *stores[STORES + 1]; /* NULL-terminated */
    uint64_t *content;              /* [STORES] shared: what each trains */
    int compare;                    /* the content: it does not depend on timing */
    struct drps_plan_info info;
};

static int train(const struct training *t, const char *store, struct drps_train_result *r,
                 struct drps_err *err)
{
    struct drps_train_options o = t->options;
    struct drps_plan *plan;
    *r = (struct drps_train_result){0};
    o.store = store;
    o.model_path = t->model;
    if (t->workers > 1) {
        const struct drps_ranks_options ranks = {
            .plan = t->dir, .train = &o, .transport = DRPS_RANKS_INPROC, .wait_ms = 30000};
        return drps_ranks_run_local(&ranks, t->workers, r, err);
    }
    int rc = drps_plan_open(hasty(), t->dir, &plan, err);
    if (rc == 0) rc = drps_train_run(plan, &o, r, err);
    drps_plan_close(plan);
    return rc;
}

/* 1: training would get the same numbers. */
static int same_info(const struct training *t)
{
    struct drps_plan *plan;
    if (drps_plan_open(drps_io_os(), t->swept, &plan, NULL)) return 0;
    const int same = memcmp(&plan->info, &t->info, sizeof(t->info)) == 0;
    drps_plan_close(plan);
    return same;
}

/* Small changes with all stores, the others with one after another. */
static void probe_training(void *ctx, struct news *news)
{
    const struct training *t = ctx;
    size_t stores = 0;
    if (same_info(t)) return;
    while (t->stores[stores])
        stores++;
    for (size_t i = 0; i < stores; i++) {
        if (news->tried < VALUES && news->tried % stores != i) continue;
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = train(t, t->stores[i], &r, &err);
        if (rc < 0)
            check_refusal(rc, &err, news);
        else if (t->compare && !news->real && r.content != t->content[i])
            wrong(news, "%s trained another model", t->stores[i]);
        drps_train_result_free(&r);
        if (rc == DRPS_E_CORRUPT && strstr(err.text, "plan.json")) return; /* not opened at all */
    }
}

/* Runs in the child. */
static int train_all(void *ctx)
{
    const struct training *t = ctx;
    for (size_t i = 0; t->stores[i]; i++) {
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        if (train(t, t->stores[i], &r, &err)) {
            (void)fprintf(stderr, "%s: %s\n", t->stores[i], err.text);
            return -1;
        }
        t->content[i] = r.content;
        drps_train_result_free(&r);
    }
    return 0;
}

static void begin_training(struct training *t)
{
    /* the quicker one, where there are two */
    if (!t->options.model_store && drps_kv_find("leveldb")) t->options.model_store = "leveldb";
    t->content = shared_new(STORES * sizeof(*t->content));
    assert_int_equal(in_child(train_all, t), 0);
}

/* `part`: the folder of the manifest below the plan's, or "". */
static void sweep_plan(struct training *t, const char *part, size_t every)
{
    char manifest[SCRATCH_PATH_BYTES + 16];
    struct drps_plan *plan;
    (void)snprintf(t->swept, sizeof(t->swept), "%s%s", t->dir, part);
    (void)snprintf(manifest, sizeof(manifest), "%s/plan.json", t->swept);
    assert_int_equal(drps_plan_open(drps_io_os(), t->swept, &plan, NULL), 0);
    t->info = plan->info;
    drps_plan_close(plan);
    const struct sweep s = {.manifest = manifest,
                            .kind = "drps-plan",
                            .version = DRPS_PLAN_VERSION,
                            .probe = probe_training,
                            .ctx = t,
                            .every = every};
    sweep(&s);
}

static void all_stores(struct training *t)
{
    size_t n = 2;
    t->stores[0] = "resident";
    t->stores[1] = "relay";
    for (size_t i = 0; drps_kv_engines()[i]; i++)
        t->stores[n++] = drps_kv_engines()[i]->name;
    assert_true(n <= STORES);
}

/* The optimizer is SGD, whose step size depends on the plan's counts. */
static void test_numbers_of_a_plan(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 150, 60, 3), "fm");
    c.options.factors = 2;
    c.options.batch_size = 20;
    c.options.test_fraction = 0.2;
    c.options.no_forecast = 1;
    case_compile(&c);
    struct training t = {.dir = c.out, .workers = 1, .compare = 1};
    char model[SCRATCH_PATH_BYTES];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    t.model = model;
    t.options = (struct drps_train_options){
        .replace = 1, .epochs = 2, .optimizer = "sgd", .memory_bytes = MEMORY};
    all_stores(&t);
    begin_training(&t);
    sweep_plan(&t, "", 1);
}

static void test_numbers_of_a_plan_with_lanes(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, 600, 40, 8), "lmf");
    c.options.factors = 2;
    c.options.order = "grid";
    c.options.grid_users = 2;
    c.options.grid_items = 2;
    c.options.lanes = 3;
    c.options.batch_size = 20;
    c.options.test_fraction = 0.1;
    c.options.no_forecast = 1;
    case_compile(&c);
    struct training t = {.dir = c.out, .workers = 1, .compare = 1, .stores = {"resident", "relay"}};
    char model[SCRATCH_PATH_BYTES];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    t.model = model;
    t.options = (struct drps_train_options){
        .replace = 1, .epochs = 1, .threads = 2, .memory_bytes = MEMORY};
    begin_training(&t);
    sweep_plan(&t, "", DRPS_TEST_ONE_IN > 1 ? 3 : 1);
}

static void sweep_ranks(struct training *t, size_t every)
{
    sweep_plan(t, "", every);
    sweep_plan(t, "/rank-0", every);
    sweep_plan(t, "/rank-1", every);
}

static void test_numbers_of_a_plan_whose_rows_circulate(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct drps_err err = DRPS_ERR_INIT;
    case_begin(&c, s, case_input(s, "input", CASE_RATINGS, 600, 40, 8), "lmf");
    c.options.factors = 2;
    c.options.order = "grid";
    c.options.workers = 2;
    c.options.batch_size = 20;
    c.options.test_fraction = 0.1;
    c.options.no_forecast = 1;
    if (drps_index_run(drps_io_os(), &c.options, &c.result, &err)) fail_msg("%s", err.text);
    struct training t = {.dir = c.out, .workers = 2, .compare = 1, .stores = {"resident", "relay"}};
    char model[SCRATCH_PATH_BYTES];
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    t.model = model;
    t.options = (struct drps_train_options){
        .replace = 1, .epochs = 1, .memory_bytes = 2 * (uint64_t)MEMORY};
    begin_training(&t);
    sweep_ranks(&t, DRPS_TEST_ONE_IN > 1 ? 7 : 1);
}

static struct training ranks_training(const struct world *w)
{
    struct training t = {.dir = w->plan, .model = w->model, .workers = w->workers, .compare = 1};
    t.options = world_options(w);
    t.options.epochs = 1;
    t.options.memory_bytes = (uint64_t)w->workers * MEMORY;
    t.stores[0] = "resident";
    return t;
}

static void test_numbers_of_a_plan_for_several_workers(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 64, 192, 5);
    struct training t = ranks_training(w);
    (void)state;
    t.options.optimizer = "sgd";
    begin_training(&t);
    sweep_ranks(&t, DRPS_TEST_ONE_IN > 1 ? 7 : 1);
    t = ranks_training(w);
    t.compare = 0; /* it depends on timing */
    t.options.sync = DRPS_SCHED_SSP;
    begin_training(&t);
    sweep_ranks(&t, DRPS_TEST_ONE_IN > 1 ? 17 : 3);
    world_end(w);
}

/* JSON has more digits than 64 bits, and numbers of other kinds. */
static void test_numbers_of_other_kinds_are_refused(void **state)
{
    static const char *const texts[] = {
        "18446744073709551615", "-1", "1.5", "1e3", "\"7\"", "true", "null"};
    struct scratch *s = *state;
    struct case_run c;
    struct drps_err err = DRPS_ERR_INIT;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 60, 20, 3), "lor");
    c.options.no_forecast = 1;
    case_compile(&c);
    char *path = drps_path_join(c.out, "plan.json");
    size_t n;
    char *text = scratch_read(path, &n);
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        struct drps_plan *plan;
        json_t *j = json_loads(text, 0, NULL), *value = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        drps_err_clear(&err);
        if (value) {
            (void)json_object_set_new(j, "samples", value);
            assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        } else { /* the library has no such number */
            char *at = strstr(text, "\"samples\": "), out[64];
            assert_non_null(at);
            const size_t digits = strspn(at + strlen("\"samples\": "), "0123456789");
            FILE *f = fopen(path, "w");
            (void)snprintf(out, sizeof(out), "\"samples\": %s", texts[i]);
            (void)fprintf(f, "%.*s%s%s", (int)(at - text), text, out,
                          at + strlen("\"samples\": ") + digits);
            assert_int_equal(fclose(f), 0);
        }
        if (drps_plan_open(drps_io_os(), c.out, &plan, &err) != DRPS_E_CORRUPT)
            fail_msg("%s: '%s'", texts[i], err.text);
        json_decref(j);
    }
    free(text);
    free(path);
}

/* ---- Models ---- */

struct scoring {
    const char *model, *data, *out;
    char *scores; /* as they were */
    size_t n;
};

static int predict(const struct scoring *p, struct drps_err *err)
{
    struct drps_predict_result r;
    const struct drps_predict_options o = {.model = p->model,
                                           .inputs = &p->data,
                                           .inputs_n = 1,
                                           .output = p->out,
                                           .replace = 1,
                                           .memory_bytes = MEMORY};
    return drps_predict_run(hasty(), &o, &r, err);
}

static void probe_prediction(void *ctx, struct news *news)
{
    const struct scoring *p = ctx;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    size_t n;
    int rc = predict(p, &err);
    if (rc < 0) {
        check_refusal(rc, &err, news);
    } else {
        char *scores = scratch_read(p->out, &n);
        if (n != p->n || memcmp(scores, p->scores, n) != 0) wrong(news, "other scores");
        free(scores);
    }
    drps_err_clear(&err);
    rc = drps_modeldir_open(drps_io_os(), p->model, MEMORY, &md, &err);
    if (rc == 0) rc = drps_modeldir_verify(md, NULL, &err);
    drps_modeldir_close(md);
    if (rc < 0) check_refusal(rc, &err, news);
}

/* How the model was made is only shown. Real numbers are the model's own. */
static int is_of_prediction(const char *path)
{
    return strncmp(path, ".training", 9) != 0 && !strstr(path, "bias_start") &&
           !strstr(path, "label") && !strstr(path, "init_scale");
}

/* ---- drps-stat ---- */

struct showing {
    const char *dir;
    const char *more; /* an option, or NULL */
    int out;          /* where it prints */
};

/* Whatever it shows, no size is that of a number below 0. */
static void probe_stat(void *ctx, struct news *news)
{
    static char text[1 << 18];
    const struct showing *w = ctx;
    char *argv[] = {(char *)"drps-stat", (char *)w->dir, (char *)w->more, NULL};
    if (dup2(w->out, STDOUT_FILENO) < 0 || dup2(w->out, STDERR_FILENO) < 0 ||
        ftruncate(w->out, 0) || lseek(w->out, 0, SEEK_SET))
        wrong(news, "no room for the output");
    const int code = stat_tool_main(w->more ? 3 : 2, argv);
    (void)fflush(NULL);
    const ssize_t n = pread(w->out, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    if (code != 0 && code != 1) wrong(news, "exit status %d", code);
    if (code == 0 && strstr(text, "16777216.0 TiB")) wrong(news, "it shows %s", text);
    /* no coordinate of a page is out of its chart for good */
    const int page = w->more && strncmp(w->more, "--html", 6) == 0;
    if (code == 0 && page && (strstr(text, "nan") || strstr(text, "inf")))
        wrong(news, "a chart has no numbers");
    if (code == 0 && page && !strstr(text, "</main></body></html>")) wrong(news, "half a page");
}

static void sweep_stat(const char *dir, const char *name, const char *kind, int version,
                       const char *more, size_t every)
{
    char manifest[SCRATCH_PATH_BYTES + 32];
    (void)snprintf(manifest, sizeof(manifest), "%s/%s", dir, name);
    struct showing w = {.dir = dir, .more = more, .out = memfd_create("out", 0)};
    assert_true(w.out >= 0);
    const struct sweep s = {.manifest = manifest,
                            .kind = kind,
                            .version = version,
                            .probe = probe_stat,
                            .ctx = &w,
                            .every = every};
    sweep(&s);
    (void)close(w.out);
}

static void train_once(const char *plan_dir, const char *store, const char *model_store,
                       const char *model)
{
    struct training t = {.dir = plan_dir, .model = model, .workers = 1, .stores = {store}};
    t.options = (struct drps_train_options){
        .replace = 1, .epochs = 2, .model_store = model_store, .memory_bytes = 256 << 20};
    begin_training(&t);
}

static int predict_once(void *scoring)
{
    struct drps_err err = DRPS_ERR_INIT;
    return predict(scoring, &err);
}

/* Models of one block of rows, or of several. */
static void sweep_models(struct scratch *s, size_t features, int one_block)
{
    struct case_run c;
    char input[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES], out[SCRATCH_PATH_BYTES];
    char manifest[SCRATCH_PATH_BYTES + 16];
    (void)snprintf(input, sizeof(input), "%s", case_input(s, "in", CASE_LIBSVM, 400, features, 3));
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    (void)snprintf(out, sizeof(out), "%s", scratch_path(s, "out"));
    (void)snprintf(manifest, sizeof(manifest), "%s/model.json", model);
    case_begin(&c, s, input, "fm");
    c.options.factors = 4;
    c.options.force = 1;
    case_compile(&c);
    assert_int_equal(c.result.info.rows <= drps_modeldir_block_rows(5), one_block);
    assert_true(c.result.info.rows > 300); /* more bytes than a page */
    for (size_t i = 0; drps_kv_engines()[i]; i++) {
        if (drps_kv_engines()[i]->training_only) continue;
        struct scoring p = {.model = model, .data = input, .out = out};
        train_once(c.out, "relay", drps_kv_engines()[i]->name, model);
        assert_int_equal(in_child(predict_once, &p), 0);
        p.scores = scratch_read(out, &p.n);
        const struct sweep sw = {.manifest = manifest,
                                 .kind = "drps-model",
                                 .version = DRPS_MODELDIR_VERSION,
                                 .probe = probe_prediction,
                                 .wanted = is_of_prediction,
                                 .ctx = &p,
                                 .every = 1};
        sweep(&sw);
        free(p.scores);
    }
}

static void test_numbers_of_a_model(void **state)
{
    sweep_models(*state, 700, 1);
    sweep_models(*state, 5000, 0);
}

static void test_numbers_that_are_shown(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char model[SCRATCH_PATH_BYTES];
    const size_t every = DRPS_TEST_ONE_IN > 1 ? 7 : 1;
    (void)snprintf(model, sizeof(model), "%s", scratch_path(s, "model"));
    case_begin(&c, s, case_input(s, "in", CASE_LIBSVM, 200, 60, 3), "lor");
    c.options.batch_size = 20;
    c.options.test_fraction = 0.2;
    case_compile(&c);
    sweep_stat(c.out, "plan.json", "drps-plan", DRPS_PLAN_VERSION, NULL, every);
    sweep_stat(c.out, "plan.json", "drps-plan", DRPS_PLAN_VERSION, "--verify", every);
    sweep_stat(c.out, "plan.json", "drps-plan", DRPS_PLAN_VERSION, "--html=-", every);
    train_once(c.out, "relay", NULL, model);
    sweep_stat(model, "model.json", "drps-model", DRPS_MODELDIR_VERSION, "--windows", every);
    sweep_stat(model, "model.json", "drps-model", DRPS_MODELDIR_VERSION, "--html=-", 2 * every);
    train_once(c.out, "file", NULL, model);
    sweep_stat(model, "model.json", "drps-model", DRPS_MODELDIR_VERSION, NULL, every);
    sweep_stat(model, "model.json", "drps-model", DRPS_MODELDIR_VERSION, "--html=-", 2 * every);
}

static void test_numbers_of_ranks_that_are_shown(void **state)
{
    struct world *w = world_begin("lor", CASE_LIBSVM, 64, 192, 5);
    struct training t = ranks_training(w);
    const size_t every = DRPS_TEST_ONE_IN > 1 ? 11 : 1;
    (void)state;
    char part[SCRATCH_PATH_BYTES + 16];
    (void)snprintf(part, sizeof(part), "%s/rank-1", w->plan);
    t.options.sync = DRPS_SCHED_WSP;
    begin_training(&t);
    sweep_stat(w->plan, "plan.json", "drps-plan", DRPS_PLAN_VERSION, NULL, every);
    sweep_stat(part, "plan.json", "drps-plan", DRPS_PLAN_VERSION, "--verify", every);
    sweep_stat(w->model, "model.json", "drps-model", DRPS_MODELDIR_VERSION, NULL, every);
    world_end(w);
}

/* ---- By name ---- */

/* Nothing bounds sizes that a user gives, and numbers that are only shown. */
static int is_bounded(const char *path)
{
    static const char *const free_ones[] = {
        ".files[",  ".files.rows",   ".forecast",           ".training",
        ".version", ".memory_bytes", ".window_budget_bytes"};
    for (size_t i = 0; i < sizeof(free_ones) / sizeof(*free_ones); i++)
        if (strncmp(path, free_ones[i], strlen(free_ones[i])) == 0) return 0;
    return 1;
}

/* Open what is there: it must be refused, and the text name the number. */
struct opening {
    const char *dir;
    int model;
};

static void probe_opening(void *ctx, struct news *news)
{
    const struct opening *o = ctx;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md = NULL;
    struct drps_plan *plan = NULL;
    char key[64];
    const char *number = strrchr(news->at, '='), *dot = strrchr(news->at, '.');
    if (news->real || strtoll(number + 1, NULL, 10) < INT64_C(1) << 61) return;
    (void)snprintf(key, sizeof(key), "\"%.*s\"", (int)(number - dot) - 2, dot + 1);
    const int rc = o->model ? drps_modeldir_open(drps_io_os(), o->dir, MEMORY, &md, &err)
                            : drps_plan_open(drps_io_os(), o->dir, &plan, &err);
    if (rc != DRPS_E_CORRUPT || !(strstr(err.text, key) || strstr(err.text, "names.rec has") ||
                                  strstr(err.text, "rank 4294967295")))
        wrong(news, "%d: '%s'", rc, err.text);
    drps_modeldir_close(md);
    drps_plan_close(plan);
}

static void open_each(const char *dir, int model)
{
    char manifest[SCRATCH_PATH_BYTES + 32];
    struct opening o = {.dir = dir, .model = model};
    (void)snprintf(manifest, sizeof(manifest), "%s/%s", dir, model ? "model.json" : "plan.json");
    const struct sweep s = {.manifest = manifest,
                            .kind = model ? "drps-model" : "drps-plan",
                            .version = model ? (int)DRPS_MODELDIR_VERSION : (int)DRPS_PLAN_VERSION,
                            .probe = probe_opening,
                            .wanted = is_bounded,
                            .ctx = &o,
                            .every = 1};
    sweep(&s);
}

static void test_large_numbers_are_named(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 64, 192, 5);
    char part[SCRATCH_PATH_BYTES + 16];
    (void)state;
    (void)snprintf(part, sizeof(part), "%s/rank-1", w->plan);
    open_each(w->one, 0);
    open_each(w->plan, 0);
    open_each(part, 0);
    train_once(w->one, "resident", NULL, w->model);
    open_each(w->model, 1);
    world_end(w);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_numbers_of_a_plan),
        SCRATCH_TEST(test_numbers_of_a_plan_with_lanes),
        SCRATCH_TEST(test_numbers_of_a_plan_whose_rows_circulate),
        cmocka_unit_test(test_numbers_of_a_plan_for_several_workers),
        SCRATCH_TEST(test_numbers_of_other_kinds_are_refused),
        SCRATCH_TEST(test_numbers_of_a_model),
        SCRATCH_TEST(test_numbers_that_are_shown),
        cmocka_unit_test(test_numbers_of_ranks_that_are_shown),
        cmocka_unit_test(test_large_numbers_are_named),
    };
    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
