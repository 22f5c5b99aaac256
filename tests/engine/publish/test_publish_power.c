/*
 * What was trained is not lost where the power goes at any call: while it is kept under a name, and
 * while a model is made of it. The database in the model does its own I/O: its files are seen when
 * the model's folder is synced, and count as not durable before.
 */
#include "support/plan_maker.h"

#include <jansson.h>

#include "base/folder/drps_durable.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_publish.h"
#include "engine/publish/drps_trained.h"
#include "support/power_cuts.h"

enum { ROWS = 700, DIM = 3, KEPT_SEEDS = 8 / DRPS_TEST_ONE_IN, SEEDS = 1 };

/* ---- Keeping ---- */

struct keeping {
    struct maker m;
    struct drps_plan *plan;
    int pair; /* two epochs are written, of which the second one counts */
    float params[ROWS * DIM];
};

static int write_params(struct drps_trained *t, const struct keeping *k)
{
    struct drps_params *w;
    struct drps_params_found found = {.content = 0};
    int rc = drps_trained_write(t, DIM * sizeof(float), &w, NULL);
    if (rc == 0) rc = drps_params_add_packed(w, 0, ROWS, k->params, NULL);
    if (rc == 0) rc = drps_params_finish(w, &found, NULL);
    drps_params_close(w);
    if (rc == 0) drps_trained_accept(t, found.content);
    return rc;
}

static int keep(void *ctx, const struct drps_io *io, const char *disk)
{
    const struct keeping *k = ctx;
    char dir[SCRATCH_PATH_BYTES], path[SCRATCH_PATH_BYTES];
    struct drps_trained t = {.io = NULL};
    const struct drps_trained_parts parts = {
        .plan = k->plan, .rows = ROWS, .dim = DIM, .pair = k->pair, .manifest_bytes = 4096};
    json_t *manifest = json_pack("{s:i, s:i}", "rows", ROWS, "dim", DIM);
    int rc = drps_trained_begin(&t, io, power_path(disk, "trained", dir), &parts, NULL);
    for (int i = 0; rc == 0 && i < 1 + k->pair; i++)
        rc = write_params(&t, k);
    if (rc == 0) rc = drps_trained_keep(&t, manifest, power_path(disk, "kept", path), NULL);
    json_decref(manifest);
    drps_trained_end(&t);
    return rc;
}

static int compare(void *ctx, uint64_t first, size_t n, const void *params, struct drps_err *err)
{
    const struct keeping *k = ctx;
    const int same = memcmp(k->params + first * DIM, params, n * DIM * sizeof(float)) == 0;
    return same ? 0 : drps_err_set(err, DRPS_E_CORRUPT, "rows from %d on differ", (int)first);
}

/* What has the name is whole. */
static void check_kept(void *ctx, const struct power_after *a)
{
    struct keeping *k = ctx;
    char dir[SCRATCH_PATH_BYTES], path[SCRATCH_PATH_BYTES];
    struct drps_trained_about about;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t bytes = 0, sum = 0;
    void *manifest;
    if (!path_exists(power_path(a->disk, "kept", dir))) {
        if (a->done) power_fail(a, "kept, and not there");
        return;
    }
    int rc = drps_trained_open(drps_io_os(), dir, &about, &manifest, &err);
    json_decref(manifest);
    if (rc == 0)
        rc = drps_params_read(drps_io_os(), power_path(dir, DRPS_TRAINED_PARAMS, path), ROWS, DIM,
                              compare, k, &err);
    if (rc == 0)
        rc = drps_copy_file(drps_io_os(), power_path(dir, DRPS_TRAINED_NAMES, path), NULL, &bytes,
                            &sum, &err);
    if (rc < 0) power_fail(a, "%s", err.text);
    if (bytes != about.names_bytes || sum != about.names_sum) power_fail(a, "other names");
    if (folder_entries(dir) != 3) power_fail(a, "%s holds more than it should", dir);
}

static void test_keep_is_whole_or_not_there(void **state)
{
    struct scratch *s = *state;
    struct keeping *k = calloc(1, sizeof(*k));
    assert_non_null(k);
    maker_init(&k->m, "lor", "logistic", 60, 10);
    maker_random(&k->m, 100, 3, 0, 11);
    k->plan = maker_write(&k->m, s->dir, "plan");
    for (size_t i = 0; i < ROWS * DIM; i++)
        k->params[i] = (float)i;
    for (k->pair = 0; k->pair < 2; k->pair++) {
        const struct power_case c = {.ctx = k,
                                     .job = keep,
                                     .after = check_kept,
                                     .calls = POWER_CHANGES | POWER_SYNCS,
                                     .seeds = KEPT_SEEDS};
        assert_true(power_each_cut(s, &c) > 10);
    }
    drps_plan_close(k->plan);
    maker_free(&k->m);
    free(k);
}

/* ---- Publishing ---- */

struct publishing {
    char start[SCRATCH_PATH_BYTES]; /* a folder with what was kept, and perhaps an old model */
    uint64_t content, old_content;  /* of the model, and of the old one; 0: there is none */
};

static int publish(const struct drps_io *io, const char *disk)
{
    char folder[SCRATCH_PATH_BYTES], model[SCRATCH_PATH_BYTES];
    struct drps_publish_result r;
    const struct drps_publish_options o = {.folder = power_path(disk, "model.trained", folder),
                                           .model_path = power_path(disk, "model", model),
                                           .replace = 1};
    return drps_publish_run(io, &o, &r, NULL);
}

static void start(void *ctx, const char *disk)
{
    const struct publishing *p = ctx;
    assert_int_equal(rmdir(disk), 0);
    power_copy(p->start, disk);
}

static int publish_job(void *ctx, const struct drps_io *io, const char *disk)
{
    (void)ctx;
    return publish(io, disk);
}

/* The content of a whole model; 0: there is none. */
static uint64_t model_content(const char *disk, const struct power_after *a)
{
    char path[SCRATCH_PATH_BYTES];
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    if (!path_exists(power_path(disk, "model", path))) return 0;
    int rc = drps_modeldir_open(drps_io_os(), path, 16 << 20, &md, &err);
    if (rc == 0) rc = drps_modeldir_verify(md, NULL, &err);
    if (rc < 0 && a) power_fail(a, "%s", err.text);
    if (rc < 0) fail_msg("%s", err.text);
    const uint64_t content = drps_modeldir_info(md)->content;
    drps_modeldir_close(md);
    return content;
}

static void check_published(void *ctx, const struct power_after *a)
{
    const struct publishing *p = ctx;
    char path[SCRATCH_PATH_BYTES];
    const uint64_t found = model_content(a->disk, a);
    if (found != p->content && found != p->old_content) power_fail(a, "another model");
    if (a->done && found != p->content) power_fail(a, "published, and not there");
    if (path_exists(power_path(a->disk, "model.trained/trained.json", path))) {
        const int rc = publish(drps_io_os(), a->disk);
        if (rc) power_fail(a, "what was kept makes no model: %d", rc);
        if (path_exists(power_path(a->disk, "model.partial", path)))
            power_fail(a, "%s is left", path);
    }
    if (model_content(a->disk, a) != p->content) power_fail(a, "what was trained is lost");
}

/* Train into "model.trained": the name of the model is taken meanwhile. */
static void take_name(void *ctx, const struct drps_epoch *epoch)
{
    char notes[SCRATCH_PATH_BYTES];
    if (epoch->epoch > 1) return;
    assert_int_equal(mkdir(ctx, 0777), 0);
    scratch_write(power_path(ctx, "notes", notes), "mine", 4);
}

static uint64_t train(const struct drps_plan *plan, const char *dir, const char *name, int kept)
{
    char model[SCRATCH_PATH_BYTES];
    struct drps_train_result r;
    struct drps_train_options o = {.model_path = power_path(dir, name, model), .epochs = 1};
    if (kept) o.on_epoch = take_name;
    o.seed = (uint64_t)kept;
    o.lr = kept ? 0.1F : 0.2F;
    o.ctx = model;
    const int rc = drps_train_run(plan, &o, &r, NULL);
    assert_int_equal(rc < 0, kept);
    assert_int_equal(r.kept != NULL, kept);
    if (kept) assert_int_equal(drps_io_remove_tree(drps_io_os(), model, NULL), 0);
    const uint64_t content = r.content;
    drps_train_result_free(&r);
    return content;
}

static void test_publish_loses_nothing(void **state)
{
    struct scratch *s = *state;
    struct maker m;
    maker_init(&m, "lor", "logistic", 60, 10);
    maker_random(&m, 100, 3, 0, 11);
    struct drps_plan *plan = maker_write(&m, s->dir, "plan");
    for (int old = 0; old < 2; old++) {
        struct publishing p = {.old_content = 0};
        const struct power_case c = {.ctx = &p,
                                     .before = start,
                                     .job = publish_job,
                                     .after = check_published,
                                     .calls = POWER_CHANGES | POWER_SYNCS,
                                     .seeds = SEEDS};
        (void)power_path(s->dir, old ? "with" : "without", p.start);
        assert_int_equal(mkdir(p.start, 0777), 0);
        p.content = train(plan, p.start, "model", 1);
        if (old) p.old_content = train(plan, p.start, "model", 0);
        assert_true(p.content != p.old_content);
        assert_true(power_each_cut(s, &c) > 15);
    }
    drps_plan_close(plan);
    maker_free(&m);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_keep_is_whole_or_not_there),
        SCRATCH_TEST(test_publish_loses_nothing),
    };
    return cmocka_run_group_tests_name("publish_power", tests, NULL, NULL);
}
