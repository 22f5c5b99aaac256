/*
 * What was trained is not lost: a run whose model cannot be written keeps a folder from which the
 * same model is made later; less than an epoch replaces nothing; what diverged is not published.
 */
#include "support/plan_maker.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>

#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_publish.h"
#include "engine/publish/drps_trained.h"
#include "engine/train/space.h"
#include "storage/kv/drps_kv.h"
#include "support/scratch.h"

struct fixture {
    struct scratch *s;
    struct maker m;
    struct drps_plan *plan;
    char *model; /* own: a name */
};

static void begin(struct fixture *f, struct scratch *s, const char *algo, const char *loss)
{
    f->s = s;
    maker_init(&f->m, algo, loss, 60, 10);
    f->m.rank = strcmp(algo, "fm") == 0 ? 4 : 0;
    maker_random(&f->m, 100, 3, 0, 11);
    maker_random(&f->m, 40, 3, 1, 12);
    f->plan = maker_write(&f->m, s->dir, "plan");
    f->model = strdup(scratch_path(s, "model"));
}

static void end(struct fixture *f)
{
    drps_plan_close(f->plan);
    maker_free(&f->m);
    free(f->model);
}

/* Train; fails the test where the run does not come to `want`. The text stays in *err. */
static void train(const struct fixture *f, struct drps_train_options o, int want,
                  struct drps_train_result *r, struct drps_err *err)
{
    if (!o.model_path) o.model_path = f->model;
    *err = (struct drps_err)DRPS_ERR_INIT;
    const int rc = drps_train_run(f->plan, &o, r, err);
    if (rc != want) fail_msg("%d instead of %d: %s", rc, want, err->text);
}

static uint64_t content_of(const struct fixture *f, const char *name, struct drps_train_options o)
{
    struct drps_err err;
    struct drps_train_result r;
    o.model_path = scratch_path(f->s, name);
    o.on_epoch = NULL;
    train(f, o, 0, &r, &err);
    const uint64_t content = r.content;
    drps_train_result_free(&r);
    return content;
}

/* The model verifies, and has this content. */
static void check_model(const char *path, uint64_t content)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    int rc = drps_modeldir_open(drps_io_os(), path, 16 << 20, &md, &err);
    if (rc == 0) rc = drps_modeldir_verify(md, NULL, &err);
    if (rc < 0) fail_msg("%s: %s", path, err.text);
    assert_true(drps_modeldir_info(md)->content == content);
    drps_modeldir_close(md);
}

static void count_lines(void *ctx, enum drps_log_level level, const char *text)
{
    (void)text;
    *(int *)ctx += level == DRPS_LOG_WARN;
}

static int publish(const char *folder, const char *model, int replace, uint64_t *content,
                   struct drps_err *err)
{
    struct drps_publish_result r;
    int warnings = 0;
    const struct drps_log log = {DRPS_LOG_WARN, count_lines, &warnings};
    const struct drps_publish_options o = {
        .folder = folder, .model_path = model, .replace = replace, .log = &log};
    *err = (struct drps_err)DRPS_ERR_INIT;
    const int rc = drps_publish_run(drps_io_os(), &o, &r, err);
    if (content) *content = r.content;
    assert_int_equal(warnings, rc == 0 && path_exists(folder)); /* what could not be removed */
    return rc;
}

/* ---- The folder ---- */

/* Another program takes the name of the output while training goes on. */
static void take_name(void *ctx, const struct drps_epoch *epoch)
{
    struct fixture *f = ctx;
    if (epoch->epoch > 1) return;
    assert_int_equal(mkdir(f->model, 0777), 0);
    (void)scratch_file(f->s, "model/notes", "mine", 4);
}

static void train_to_kept(struct fixture *f, struct drps_train_options o,
                          struct drps_train_result *r, struct drps_err *err)
{
    o.on_epoch = take_name;
    o.ctx = f;
    o.model_path = f->model;
    *err = (struct drps_err)DRPS_ERR_INIT;
    const int rc = drps_train_run(f->plan, &o, r, err);
    if (rc != -EEXIST && rc != -ENOTEMPTY) fail_msg("%s: %d, %s", o.store, rc, err->text);
    assert_non_null(r->kept);
    assert_false(r->published);
    assert_true(path_exists(scratch_path(f->s, "model/notes")));
    assert_false(path_exists(scratch_path(f->s, "model.partial")));
}

/* It holds what its list says, and nothing else. */
static void check_files(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        int known = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        n += !known;
        for (size_t i = 0; drps_trained_files[i]; i++)
            known |= strcmp(entry->d_name, drps_trained_files[i]) == 0;
        if (!known) fail_msg("%s holds %s", folder, entry->d_name);
    }
    assert_int_equal(n, 3);
    (void)closedir(dir);
}

static void test_publish_what_every_store_has_kept(void **state)
{
    const char *stores[8] = {"resident", "relay"};
    for (size_t i = 0; drps_kv_engines()[i]; i++)
        stores[2 + i] = drps_kv_engines()[i]->name;
    for (size_t i = 0; stores[i]; i++)
        for (uint64_t patience = 0; patience < 3; patience += 2) {
            struct scratch *s = *state;
            struct fixture f;
            struct drps_err err;
            struct drps_train_result r;
            uint64_t content;
            const struct drps_train_options o = {
                .epochs = 3, .store = stores[i], .patience = patience};
            begin(&f, s, "fm", "logistic");
            train_to_kept(&f, o, &r, &err);
            assert_string_equal(r.kept, scratch_path(s, "model.trained"));
            assert_non_null(strstr(err.text, "model.trained, of which"));
            check_files(r.kept);
            const char *later = scratch_path(s, "later");
            if (publish(r.kept, later, 0, &content, &err) < 0) fail_msg("%s", err.text);
            assert_false(path_exists(r.kept));
            assert_true(content == content_of(&f, "want", o));
            check_model(later, content);
            drps_train_result_free(&r);
            end(&f);
            scratch_end(s);
            scratch_begin(s);
        }
}

static void test_publish_the_folder_replaces_none(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    struct drps_err err;
    struct drps_train_result r;
    begin(&f, s, "lor", "logistic");
    assert_int_equal(mkdir(scratch_path(s, "model.trained"), 0777), 0);
    train_to_kept(&f, (struct drps_train_options){.epochs = 1}, &r, &err);
    assert_string_equal(r.kept, scratch_path(s, "model.trained.2"));
    assert_non_null(strstr(err.text, "model.trained.2, of which"));
    drps_train_result_free(&r);
    end(&f);
}

static void test_publish_leaves_the_folder_when_it_fails(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    struct drps_err err;
    struct drps_train_result r;
    begin(&f, s, "lor", "logistic");
    train_to_kept(&f, (struct drps_train_options){.epochs = 1}, &r, &err);
    assert_int_equal(publish(f.plan->dir, scratch_path(s, "x"), 0, NULL, &err), DRPS_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "trained.json"));
    assert_int_equal(publish(r.kept, f.model, 0, NULL, &err), -EEXIST);
    assert_int_equal(publish(r.kept, f.model, 1, NULL, &err), -EEXIST); /* it is no model */
    check_files(r.kept);
    drps_train_result_free(&r);
    end(&f);
}

static void test_publish_removes_only_what_it_knows(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    struct drps_err err;
    struct drps_train_result r;
    begin(&f, s, "lor", "logistic");
    train_to_kept(&f, (struct drps_train_options){.epochs = 1}, &r, &err);
    (void)scratch_file(s, "model.trained/notes", "mine", 4);
    assert_int_equal(publish(r.kept, scratch_path(s, "later"), 0, NULL, &err), 0);
    check_model(scratch_path(s, "later"), r.content);
    assert_true(path_exists(scratch_path(s, "model.trained/notes")));
    assert_false(path_exists(scratch_path(s, "model.trained/trained.json")));
    drps_train_result_free(&r);
    end(&f);
}

static void test_publish_damage_is_named(void **state)
{
    static const struct {
        const char *file;
        long at; /* whose byte changes, from the end if negative; 0: the last byte is cut off */
    } cases[] = {{"params.bin", 40},   {"params.bin", -1},   {"params.bin", 0},
                 {"names.rec", 30},    {"names.rec", -4},    {"names.rec", 0},
                 {"trained.json", 40}, {"trained.json", -30}};
    struct scratch *s = *state;
    struct fixture f;
    struct drps_err err;
    struct drps_train_result r;
    begin(&f, s, "lor", "logistic");
    train_to_kept(&f, (struct drps_train_options){.epochs = 1}, &r, &err);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        size_t n;
        char *path = drps_path_join(r.kept, cases[i].file);
        char *whole = scratch_read(path, &n), *damaged = malloc(n);
        assert_non_null(damaged);
        memcpy(damaged, whole, n);
        const size_t at = cases[i].at < 0 ? n - (size_t)-cases[i].at : (size_t)cases[i].at;
        damaged[at] ^= 1;
        scratch_write(path, cases[i].at ? damaged : whole, cases[i].at ? n : n - 1);
        const int rc = publish(r.kept, scratch_path(s, "later"), 0, NULL, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, cases[i].file))
            fail_msg("%s at %ld: %d, %s", cases[i].file, cases[i].at, rc, err.text);
        assert_false(path_exists(scratch_path(s, "later")));
        assert_false(path_exists(scratch_path(s, "later.partial")));
        scratch_write(path, whole, n);
        check_files(r.kept);
        free(whole);
        free(damaged);
        free(path);
    }
    assert_int_equal(publish(r.kept, scratch_path(s, "later"), 0, NULL, &err), 0);
    drps_train_result_free(&r);
    end(&f);
}

/* ---- Divergence ---- */

static void count_warnings(void *ctx, enum drps_log_level level, const char *text)
{
    *(int *)ctx += level == DRPS_LOG_WARN && strstr(text, "the model is that of epoch 1") != NULL;
}

static void test_publish_patience_keeps_its_best_epoch_when_training_diverges(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    struct drps_err err;
    struct drps_train_result r;
    int warned = 0;
    const struct drps_log log = {DRPS_LOG_WARN, count_warnings, &warned};
    struct drps_train_options o = {
        .epochs = 100, .optimizer = "sgd", .lr = 1, .patience = 100, .log = &log};
    begin(&f, s, "lir", "squared");
    train(&f, o, 0, &r, &err);
    assert_int_equal(r.best_epoch, 1); /* whose losses grow from the start */
    assert_true(r.diverged_epoch > 1 && r.diverged_epoch < 100);
    assert_true(r.stopped_early && r.published);
    assert_null(r.kept);
    assert_int_equal(warned, 1);
    o.epochs = 1;
    o.patience = 0;
    assert_true(content_of(&f, "want", o) == r.content);
    check_model(f.model, r.content);
    drps_train_result_free(&r);

    o.epochs = 100; /* without patience there is no better one */
    o.model_path = scratch_path(s, "none");
    train(&f, o, -ERANGE, &r, &err);
    assert_false(path_exists(scratch_path(s, "none")));
    assert_null(r.kept);
    drps_train_result_free(&r);
    end(&f);
}

/* The last batch of the only epoch has a value whose square no float holds: the losses are finite,
 * and the parameter is not. */
static void test_publish_no_value_that_is_not_finite(void **state)
{
    static const char *const optimizers[] = {"adagrad", "ftrl", "adam"};
    static const char *const stores[] = {"resident", "relay"};
    for (unsigned i = 0; i < 12; i++) {
        struct scratch *s = *state;
        struct fixture f;
        struct drps_err err;
        struct drps_train_result r;
        const struct drps_train_options o = {.epochs = 1,
                                             .optimizer = optimizers[i % 3],
                                             .store = stores[i / 3 % 2],
                                             .l1 = i / 6 ? 0.01f : 0,
                                             .patience = i / 6};
        f.s = s;
        maker_init(&f.m, "lor", "logistic", 61, 10);
        f.m.loss = "squared hinge"; /* values that are not all 1 */
        maker_random(&f.m, 100, 3, 0, 11);
        maker_random(&f.m, 40, 3, 1, 12);
        f.m.loss = "logistic";
        f.m.train[99].n = 0;
        maker_entry(&f.m.train[99], 60, 1e25f);
        f.plan = maker_write(&f.m, s->dir, "plan");
        f.model = strdup(scratch_path(s, "model"));
        train(&f, o, -ERANGE, &r, &err);
        /* row 61 behind the intercept is feature 60, whose name is 3 * 60 + 5 */
        if (!strstr(err.text, "row 61 (185) of table w ") || !strstr(err.text, "after epoch 1"))
            fail_msg("%s: %s", o.optimizer, err.text);
        assert_int_equal(r.epochs_n, 1);
        assert_true(isfinite(r.epochs[0].train_loss));
        assert_false(path_exists(f.model));
        assert_false(path_exists(scratch_path(s, "model.trained")));
        assert_false(path_exists(scratch_path(s, "model.partial")));
        drps_train_result_free(&r);
        end(&f);
        scratch_end(s);
        scratch_begin(s);
    }
}

/* ---- Ctrl-C ---- */

static void stop_now(void *ctx, const struct drps_train_progress *p)
{
    (void)p;
    atomic_store((atomic_int *)ctx, 1);
}

static void test_publish_less_than_an_epoch_replaces_no_model(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    struct drps_err err;
    struct drps_train_result r;
    atomic_int stop = 0;
    uint64_t content;
    begin(&f, s, "lor", "logistic");
    const uint64_t whole = content_of(&f, "model", (struct drps_train_options){.epochs = 2});
    const struct drps_train_options o = {
        .epochs = 2, .replace = 1, .stop = &stop, .on_progress = stop_now, .ctx = &stop};
    train(&f, o, DRPS_E_INTERRUPTED, &r, &err);
    assert_int_equal(r.steps, 1);
    assert_string_equal(r.kept, scratch_path(s, "model.trained"));
    assert_non_null(strstr(err.text, "stays as it was"));
    assert_non_null(strstr(err.text, "can be put in its place"));
    check_model(f.model, whole);
    const uint64_t step = r.content;
    assert_true(step != whole);
    if (publish(r.kept, f.model, 1, &content, &err) < 0) fail_msg("%s", err.text);
    assert_true(content == step);
    check_model(f.model, step);
    drps_train_result_free(&r);
    end(&f);
}

static void test_publish_nothing_of_no_step(void **state)
{
    struct scratch *s = *state;
    struct fixture f;
    struct drps_err err;
    struct drps_train_result r;
    atomic_int stop = 1;
    begin(&f, s, "lor", "logistic");
    struct drps_train_options o = {.epochs = 2, .replace = 1, .stop = &stop};
    for (int there = 0; there < 2; there++) {
        uint64_t whole = 0;
        if (there) whole = content_of(&f, "model", (struct drps_train_options){.epochs = 1});
        train(&f, o, DRPS_E_INTERRUPTED, &r, &err);
        assert_non_null(strstr(err.text, "before the first step"));
        assert_null(r.kept);
        assert_false(r.published);
        assert_false(path_exists(scratch_path(s, "model.trained")));
        assert_int_equal(path_exists(f.model), there);
        if (there) check_model(f.model, whole);
        drps_train_result_free(&r);
    }
    end(&f);
}

/* ---- Room ---- */

static void test_space_is_what_is_there_at_a_time(void **state)
{
    static const struct {
        const char *name;
        struct drps_space space;
        uint64_t needed, still;
    } cases[] = {
        {"in memory", {.reserved = 1, .trained = 100, .database = 90}, 190, 90},
        {"the store makes way for the model",
         {.store = 200, .reserved = 1, .trained = 100, .scan = 60, .database = 90},
         360,
         0},
        {"not for all of it",
         {.store = 20, .reserved = 1, .trained = 100, .scan = 60, .database = 90},
         190,
         10},
        {"a store that grows",
         {.store = 200, .more = UINT64_MAX, .trained = 100, .database = 250},
         350,
         250},
        {"a file that is larger",
         {.store = 200, .more = 70, .reserved = 1, .trained = 100},
         300,
         0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint64_t needed = drps_space_needed(&cases[i].space);
        const uint64_t still = drps_space_still_needed(&cases[i].space);
        const uint64_t most = drps_space_most(&cases[i].space);
        if (most && most - cases[i].space.more - (1 << 20) != needed)
            fail_msg("%s: at most %llu", cases[i].name, (unsigned long long)most);
        if ((most == 0) != (cases[i].space.more == UINT64_MAX))
            fail_msg("%s: at most %llu", cases[i].name, (unsigned long long)most);
        if (needed != cases[i].needed || still != cases[i].still)
            fail_msg("%s: %llu and %llu", cases[i].name, (unsigned long long)needed,
                     (unsigned long long)still);
    }
}

/* Each use of a row counts in the windows that are cut for the run; a plan that says too many
 * leaves the most unknown. */
static void test_space_of_windows(void **state)
{
    const struct drps_memory relay = {.store = &drps_store_relay, .relay_bytes = 10 << 20};
    const struct drps_memory resident = {0};
    const uint64_t none = drps_space_of_store_more(&relay, 1000, 8, 0, 1);
    struct drps_space space = {.store = 8000, .reserved = 1};
    (void)state;
    assert_true(none > 0);
    assert_int_equal(drps_space_of_store_more(&relay, 1000, 8, 5000, 1), none + 8 * 5000);
    assert_int_equal(drps_space_of_store_more(&resident, 1000, 8, 5000, 1), 0);
    space.more = drps_space_of_store_more(&relay, 1000, 8, UINT64_MAX / 8 + 2, 1);
    assert_int_equal(drps_space_most(&space), 0);
}

#define SCRATCH_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_publish_what_every_store_has_kept),
        SCRATCH_TEST(test_publish_the_folder_replaces_none),
        SCRATCH_TEST(test_publish_leaves_the_folder_when_it_fails),
        SCRATCH_TEST(test_publish_removes_only_what_it_knows),
        SCRATCH_TEST(test_publish_damage_is_named),
        SCRATCH_TEST(test_publish_patience_keeps_its_best_epoch_when_training_diverges),
        SCRATCH_TEST(test_publish_no_value_that_is_not_finite),
        SCRATCH_TEST(test_publish_less_than_an_epoch_replaces_no_model),
        SCRATCH_TEST(test_publish_nothing_of_no_step),
        cmocka_unit_test(test_space_is_what_is_there_at_a_time),
        cmocka_unit_test(test_space_of_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
