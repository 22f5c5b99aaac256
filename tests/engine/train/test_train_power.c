/*
 * Whole training runs where the power goes at any sync: afterwards there is a whole model, or what
 * was trained and makes one, or nothing; and the next run can do its work and leaves nothing else.
 * The databases do their own I/O: while they train they count as not durable, which nothing asks of
 * them; in the model, their files are synced by the run.
 */
#include "support/plan_maker.h"

#include <errno.h>

#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/predict/drps_predict.h"
#include "engine/publish/drps_publish.h"
#include "storage/kv/drps_kv.h"
#include "support/power_cuts.h"
#include "support/uring_here.h"

/* Of a checkpoint's rows; some do not change between checkpoints, and share files. More would be
 * more syncs, and each is a run of its own here. */
enum { PARTS = 6 };

struct training {
    struct maker m;
    const char *store;
    uint64_t patience;
    uint64_t memory_bytes; /* 0: all rows fit */
    uint64_t content;      /* of the model of a run with power */
    char data[SCRATCH_PATH_BYTES];
    char start[SCRATCH_PATH_BYTES]; /* a folder with an old model; empty: there is none before */
    uint64_t old_content;
    int over_uring;
    int saves; /* it writes checkpoints, and the run after it goes on from them */
    uint64_t part_bytes;
    long resumed;
};

static struct drps_train_options options_of(const struct training *t, const char *disk, char *path)
{
    return (struct drps_train_options){
        .model_path = power_path(disk, "model", path),
        .replace = 1,
        .epochs = 2,
        .store = t->store,
        .memory_bytes = t->memory_bytes,
        .patience = t->patience,
        .checkpoint_every = {t->saves ? DRPS_CHECKPOINT_BATCHES : DRPS_CHECKPOINT_NEVER, 3},
        .checkpoint_part_bytes = t->part_bytes,
        .seed = 3};
}

static void start(void *ctx, const char *disk)
{
    const struct training *t = ctx;
    if (!t->start[0]) return;
    assert_int_equal(rmdir(disk), 0);
    power_copy(t->start, disk);
}

static int train(void *ctx, const struct drps_io *io, const char *disk)
{
    const struct training *t = ctx;
    char path[SCRATCH_PATH_BYTES];
    const struct drps_train_options o = options_of(t, disk, path);
    struct drps_err err = DRPS_ERR_INIT;
    return power_train(io, t->m.dir, &o, NULL, &err);
}

/* ---- Afterwards ---- */

static int predict(const struct training *t, const char *model, struct drps_err *err)
{
    char out[SCRATCH_PATH_BYTES];
    struct drps_predict_result r;
    const char *const inputs[] = {t->data};
    const struct drps_predict_options o = {.model = model,
                                           .inputs = inputs,
                                           .inputs_n = 1,
                                           .output = power_path(model, "../scores", out),
                                           .reader = {.format = "libsvm"}};
    int rc = drps_predict_run(drps_io_os(), &o, &r, err);
    if (rc == 0 && r.samples != 2) rc = drps_err_set(err, DRPS_E_CORRUPT, "a sample is missing");
    (void)unlink(out); /* there is none after a failure */
    return rc;
}

/* The content of the model, which is whole; 0: there is none. */
static uint64_t model_content(const struct training *t, const struct power_after *a)
{
    char path[SCRATCH_PATH_BYTES];
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    if (!path_exists(power_path(a->disk, "model", path))) return 0;
    int rc = drps_modeldir_open(drps_io_os(), path, 16 << 20, &md, &err);
    if (rc == 0) rc = drps_modeldir_verify(md, NULL, &err);
    const uint64_t content = rc == 0 ? drps_modeldir_info(md)->content : 0;
    drps_modeldir_close(md);
    if (rc == 0) rc = predict(t, path, &err);
    if (rc < 0) power_fail(a, "%s: %s", t->store, err.text);
    return content;
}

/* What was kept makes the model, and is gone then. */
static void publish_kept(const struct training *t, const struct power_after *a)
{
    char folder[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES];
    struct drps_publish_result r;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_publish_options o = {.folder = power_path(a->disk, "model.trained", folder),
                                           .model_path = power_path(a->disk, "later", model)};
    if (!path_exists(folder)) return;
    if (drps_publish_run(drps_io_os(), &o, &r, &err) < 0)
        power_fail(a, "%s: %s", t->store, err.text);
    if (r.content != t->content) power_fail(a, "%s: another model was kept", t->store);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), model, NULL), 0);
}

/* A checkpoint that has its name and its manifest has all of its rows. */
static void check_checkpoints(const struct training *t, const struct power_after *a)
{
    char root[SCRATCH_PATH_BYTES];
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoints c;
    struct drps_err err = DRPS_ERR_INIT;
    size_t n = 0;
    (void)power_path(a->disk, "model.checkpoint", root);
    assert_int_equal(drps_checkpoints_init(&c, drps_io_os(), root, 0, &err), 0);
    assert_int_equal(drps_checkpoints_list(&c, numbers, &n, &err), 0);
    for (size_t i = 0; i < n; i++) {
        struct drps_checkpoint *cp;
        int rc = drps_checkpoint_open(&c, numbers[i], &cp, &err);
        if (rc == 0) rc = drps_checkpoint_verify(cp, &err);
        if (rc < 0 && (cp || rc != -ENOENT)) power_fail(a, "%s: %s", t->store, err.text);
        drps_checkpoint_close(cp);
        drps_err_clear(&err);
    }
    drps_checkpoints_destroy(&c);
}

static void check(void *ctx, const struct power_after *a)
{
    struct training *t = ctx;
    char path[SCRATCH_PATH_BYTES];
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t content = model_content(t, a);
    if (content != t->content && content != t->old_content)
        power_fail(a, "%s: another model", t->store);
    if (a->done && content != t->content) power_fail(a, "%s: trained, and not there", t->store);
    if (path_exists(power_path(a->disk, "model.trained/trained.json", path))) publish_kept(t, a);
    check_checkpoints(t, a);
    t->resumed += path_exists(power_path(a->disk, "model.checkpoint/rank-0", path));
    struct drps_train_options o = options_of(t, a->disk, path);
    o.resume = t->saves;
    if (power_train(drps_io_os(), t->m.dir, &o, &content, &err) < 0)
        power_fail(a, "%s: the next run: %s", t->store, err.text);
    if (content != t->content || model_content(t, a) != content)
        power_fail(a, "%s: the next run made another model", t->store);
    const int kept = path_exists(power_path(a->disk, "model.trained", path));
    if (folder_entries(a->disk) != 1 + (size_t)kept) power_fail(a, "%s: leftovers", t->store);
}

/* ---- Tests ---- */

/* The least memory, so that rows are read and written while the run trains. */
static uint64_t least_memory(const struct training *t, const char *disk)
{
    char path[SCRATCH_PATH_BYTES];
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    struct drps_train_options o = options_of(t, disk, path);
    o.memory_bytes = 1;
    if (drps_plan_open(drps_io_os(), t->m.dir, &plan, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_train_run(plan, &o, &r, &err), DRPS_E_MEMORY_BUDGET);
    const uint64_t bytes = r.memory.used_bytes;
    drps_train_result_free(&r);
    drps_plan_close(plan);
    return bytes;
}

static struct training *begin_rows(struct scratch *s, const char *store, uint64_t patience,
                                   uint32_t factors)
{
    struct training *t = calloc(1, sizeof(*t));
    struct drps_err err = DRPS_ERR_INIT;
    char path[SCRATCH_PATH_BYTES];
    assert_non_null(t);
    t->store = store;
    t->patience = patience;
    const uint32_t rows = factors ? 200 : 60;
    t->part_bytes = (uint64_t)rows * (1 + factors) * 2 * sizeof(float) / PARTS;
    maker_init(&t->m, factors ? "fm" : "lor", "logistic", rows, 10);
    t->m.rank = factors;
    t->m.small_windows = strcmp(store, "relay") == 0;
    maker_random(&t->m, 100, 3, 0, 11);
    maker_random(&t->m, 40, 3, 1, 12);
    drps_plan_close(maker_write(&t->m, scratch_path(s, "."), "plan"));
    (void)snprintf(t->data, sizeof(t->data), "%s",
                   scratch_file(s, "data", "1 5:1 8:1\n0 11:1\n", SIZE_MAX));
    const struct drps_train_options o = options_of(t, s->dir, path);
    if (power_train(drps_io_os(), t->m.dir, &o, &t->content, &err) < 0) fail_msg("%s", err.text);
    return t;
}

static struct training *begin(struct scratch *s, const char *store, uint64_t patience)
{
    return begin_rows(s, store, patience, 0);
}

static void cut_everywhere(struct scratch *s, struct training *t, unsigned seeds)
{
    const struct power_case c = {.ctx = t,
                                 .before = start,
                                 .job = train,
                                 .after = check,
                                 .over_uring = t->over_uring,
                                 .calls = POWER_SYNCS,
                                 .seeds = seeds};
    const long cuts = power_each_cut(s, &c);
    assert_true(cuts > 10);
    assert_true(t->saves ? t->resumed > 3 : !t->resumed);
    maker_free(&t->m);
    free(t);
}

static void test_train_loses_power_with_each_store(void **state)
{
    const char *stores[8] = {"resident", "relay"};
    for (size_t i = 0; drps_kv_engines()[i]; i++)
        stores[2 + i] = drps_kv_engines()[i]->name;
    for (size_t i = 0; stores[i]; i++) {
        struct scratch s;
        scratch_begin(&s);
        cut_everywhere(&s, begin(&s, stores[i], 0), 0);
        scratch_end(&s);
    }
    (void)state;
}

/* Checkpoints are durable when they have their names: each run after a cut, and after writes and
 * names that were not synced are lost or reordered, ends with the model of the undisturbed one. */
static void test_train_goes_on_after_losing_power(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct scratch s;
        scratch_begin(&s);
        struct training *t = begin(&s, stores[i], i ? 0 : 2);
        t->saves = 1;
        cut_everywhere(&s, t, 1);
        scratch_end(&s);
    }
}

/* Blocks are written while the power goes, and checkpoints are made of blocks that were read. */
static void test_train_goes_on_with_requests_under_way(void **state)
{
    struct scratch *s = *state;
    if (!uring_here("losing power")) skip();
    struct training *t = begin_rows(s, "file", 0, 8);
    t->saves = t->over_uring = 1;
    t->memory_bytes = least_memory(t, s->dir);
    cut_everywhere(s, t, 1);
}

static void test_train_loses_power_with_patience(void **state)
{
    struct scratch *s = *state;
    cut_everywhere(s, begin(s, "resident", 1), 0);
}

/* An old model is there until the new one is. */
static void test_train_loses_power_replacing_a_model(void **state)
{
    struct scratch *s = *state;
    struct training *t = begin(s, "resident", 0);
    char path[SCRATCH_PATH_BYTES];
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(mkdir(power_path(s->dir, "old", t->start), 0777), 0);
    struct drps_train_options o = options_of(t, t->start, path);
    o.epochs = 1;
    if (power_train(drps_io_os(), t->m.dir, &o, &t->old_content, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(t->old_content != t->content);
    cut_everywhere(s, t, 1);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_train_loses_power_with_each_store),
        cmocka_unit_test(test_train_goes_on_after_losing_power),
        SCRATCH_TEST(test_train_goes_on_with_requests_under_way),
        SCRATCH_TEST(test_train_loses_power_with_patience),
        SCRATCH_TEST(test_train_loses_power_replacing_a_model),
    };
    return cmocka_run_group_tests_name("train_power", tests, NULL, NULL);
}
