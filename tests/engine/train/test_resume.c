/* Checkpoints and resume: a run that ends at any instant, and goes on from its checkpoint, ends
 * with the model of a run that was not disturbed, bit for bit. */
#include "support/plan_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>

#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/train/drps_verify.h"
#include "storage/kv/drps_kv.h"
#include "support/fault_io.h"
#include "support/world.h"

enum {
    CHANGES = FAULT_PWRITE | FAULT_FSYNC | FAULT_FTRUNCATE | FAULT_FALLOCATE | FAULT_RENAME |
              FAULT_UNLINK | FAULT_MKDIR | FAULT_RMDIR | FAULT_EXCHANGE | FAULT_LINK,
    EPOCHS = 3,
    FLIPS = 24,        /* of bytes in a file */
    LAST_CHANGES = 60, /* of files, with which the model is made and all else removed */
};

/* ---- A plan, and runs of it ---- */

static void say_nothing(void *ctx, enum drps_log_level level, const char *text)
{
    (void)ctx;
    (void)level;
    (void)text;
}

static const struct drps_log quiet = {DRPS_LOG_ERROR, say_nothing, NULL};

struct job {
    char *dir; /* own */
    struct drps_plan *plan;
    char *model, *checkpoints; /* own */
    struct drps_train_options o;
    struct drps_train_result want; /* of the undisturbed run */
};

static void fail_run(const char *what, const struct drps_err *err)
{
    fail_msg("%s: %s", what, err->text);
}

/* The least memory: with more, all rows would be in one window. */
static void find_least(struct job *j)
{
    struct drps_err err = DRPS_ERR_INIT;
    j->o.memory_bytes = 1;
    assert_int_equal(drps_train_run(j->plan, &j->o, &j->want, &err), DRPS_E_MEMORY_BUDGET);
    j->o.memory_bytes = j->want.memory.used_bytes;
    drps_train_result_free(&j->want);
}

static struct job *begin(const char *algo, uint32_t factors, const char *store)
{
    struct job *j = calloc(1, sizeof(*j));
    struct drps_err err = DRPS_ERR_INIT;
    struct maker m;
    j->dir = temp_make();
    maker_init(&m, algo, strcmp(algo, "lmf") == 0 ? "squared" : "logistic", 400, 20);
    m.rank = factors;
    m.small_windows = 1;
    maker_random(&m, 500, strcmp(algo, "lmf") == 0 ? 2 : 4, 0, 7);
    maker_random(&m, 90, strcmp(algo, "lmf") == 0 ? 2 : 4, 1, 8);
    j->plan = maker_write(&m, j->dir, "plan");
    maker_free(&m);
    j->model = drps_path_join(j->dir, "model");
    j->checkpoints = drps_path_join(j->dir, "model.checkpoint");
    j->o = (struct drps_train_options){.model_path = j->model,
                                       .epochs = EPOCHS,
                                       .seed = 5,
                                       .store = store,
                                       .replace = 1,
                                       .log = &quiet,
                                       .checkpoint_every = {DRPS_CHECKPOINT_NEVER, 0}};
    if (strcmp(store, "relay") == 0) find_least(j);
    if (drps_train_run(j->plan, &j->o, &j->want, &err) < 0) fail_run("undisturbed", &err);
    if (strcmp(store, "relay") == 0) assert_true(j->want.windows_n > 8);
    j->o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 7};
    return j;
}

static void end(struct job *j)
{
    drps_train_result_free(&j->want);
    drps_plan_close(j->plan);
    temp_remove(j->dir);
    free(j->model);
    free(j->checkpoints);
    free(j);
}

static void remove_all(const struct job *j)
{
    struct drps_err err = DRPS_ERR_INIT;
    static const char *const names[] = {"model", "model.partial", "model.trained",
                                        "model.checkpoint"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char *path = drps_path_join(j->dir, names[i]);
        if (drps_io_remove_tree(drps_io_os(), path, &err) < 0) fail_run(names[i], &err);
        free(path);
    }
}

static int exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* The same parameters, and the same losses in all epochs. */
static void check_result(const struct drps_train_result *got, const struct drps_train_result *want,
                         const char *what, long k)
{
    if (got->content != want->content || got->epochs_n != want->epochs_n ||
        got->best_epoch != want->best_epoch)
        fail_msg("%s %ld: content %016llx after %zu epochs (best %llu), undisturbed %016llx after "
                 "%zu (best %llu)",
                 what, k, (unsigned long long)got->content, got->epochs_n,
                 (unsigned long long)got->best_epoch, (unsigned long long)want->content,
                 want->epochs_n, (unsigned long long)want->best_epoch);
    for (size_t e = 0; e < got->epochs_n; e++) {
        assert_memory_equal(&got->epochs[e].train_loss, &want->epochs[e].train_loss,
                            sizeof(double));
        assert_memory_equal(&got->epochs[e].test.loss, &want->epochs[e].test.loss, sizeof(double));
    }
}

static void check_absent(const struct job *j, const char *name, const char *what, long k)
{
    char *path = drps_path_join(j->dir, name);
    if (exists(path)) fail_msg("%s %ld: %s stays", what, k, name);
    free(path);
}

/* Go on, and check that the model is the undisturbed one and that nothing else is left. */
static uint64_t resume(const struct job *j, struct drps_train_options o, const char *what, long k)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    o.resume = 1;
    o.replace = 0;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_msg("%s %ld: %s", what, k, err.text);
    if (r.already)
        assert_int_equal(r.content, j->want.content);
    else
        check_result(&r, &j->want, what, k);
    assert_true(exists(j->model));
    check_absent(j, "model.checkpoint", what, k);
    check_absent(j, "model.partial", what, k);
    check_absent(j, "model.trained", what, k);
    const uint64_t from = r.already ? 0 : r.resumed_epoch;
    drps_train_result_free(&r);
    return from;
}

/* Run until the k-th change of a file fails, and all that follow: as if the power were gone.
 * Returns 1 if the run came to its end before. */
static int run_until(const struct job *j, const struct drps_train_options *o, long k,
                     enum fault_effect effect)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_plan plan = *j->plan;
    struct fault_io *f = fault_io_new(drps_io_os());
    plan.io = &f->io;
    fault_io_arm(f, CHANGES, k, 1, effect, -EIO);
    const int rc = drps_train_run(&plan, o, &r, &err);
    const int fired = atomic_load(&f->fired);
    drps_train_result_free(&r);
    fault_io_free(f);
    if (!fired && rc < 0) fail_run("no fault", &err);
    return !fired;
}

/* ---- Any instant ---- */

static void check_every_instant(const char *algo, uint32_t factors, const char *store,
                                uint64_t patience, long step)
{
    struct job *j = begin(algo, factors, store);
    struct drps_err err = DRPS_ERR_INIT;
    long resumed = 0, k = 1;
    if (patience) {
        drps_train_result_free(&j->want);
        j->o.patience = patience;
        j->o.lr = 1.0f; /* overfits soon */
        if (drps_train_run(j->plan, &j->o, &j->want, &err) < 0) fail_run("undisturbed", &err);
    }
    for (;; k += step) {
        remove_all(j);
        if (run_until(j, &j->o, k, k % 2 ? FAULT_ERROR : FAULT_TORN)) break;
        resumed += resume(j, j->o, store, k) > 0;
    }
    assert_true(k > 100);
    assert_true(resumed > 0);
    end(j);
}

static void test_resume_resident(void **state)
{
    (void)state;
    check_every_instant("lor", 0, "resident", 0, DRPS_TEST_ONE_IN > 1 ? 41 : 11);
    check_every_instant("fm", 4, "resident", 1, DRPS_TEST_ONE_IN > 1 ? 43 : 19);
}

static void test_resume_relay(void **state)
{
    (void)state;
    check_every_instant("fm", 4, "relay", 0, DRPS_TEST_ONE_IN > 1 ? 43 : 19);
    check_every_instant("lmf", 3, "relay", 0, DRPS_TEST_ONE_IN > 1 ? 43 : 19);
}

static void test_resume_blocks(void **state)
{
    (void)state;
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        check_every_instant("fm", 4, (*kv)->name, 0, DRPS_TEST_ONE_IN > 1 ? 83 : 37);
}

/* The number of changes of files until the model is whole and nothing else is left. */
static long count_changes(const struct job *j, const struct drps_train_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_plan plan = *j->plan;
    struct fault_io *f = fault_io_new(drps_io_os());
    unsigned long n = 0;
    remove_all(j);
    plan.io = &f->io;
    if (drps_train_run(&plan, o, &r, &err) < 0) fail_run("no fault", &err);
    drps_train_result_free(&r);
    for (int i = 0; i < FAULT_NUMBERS; i++)
        if (CHANGES & (1 << i)) n += atomic_load(&f->calls[i]);
    fault_io_free(f);
    return (long)n;
}

/* Every instant of the end, from the making of the model on: what was kept for the case that it
 * fails is not needed when it was made by another run. */
static void test_resume_at_the_end(void **state)
{
    struct job *j = begin("lor", 0, "resident");
    (void)state;
    const long all = count_changes(j, &j->o);
    for (long k = all - LAST_CHANGES; k <= all; k++) {
        remove_all(j);
        assert_false(run_until(j, &j->o, k, FAULT_ERROR));
        (void)resume(j, j->o, "at the end", k);
    }
    end(j);
}

/* What an earlier run has kept is another one's, and stays. */
static void test_resume_leaves_what_others_kept(void **state)
{
    static const char *const files[] = {"trained.json", "params.bin"};
    struct job *j = begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    (void)state;
    char *kept = drps_path_join(j->dir, "model.trained");
    struct drps_train_options o = j->o;
    o.epochs = 1;
    const long all = count_changes(j, &o);
    for (long k = all - LAST_CHANGES; !exists(kept); k++) { /* until it fails to make the model */
        remove_all(j);
        assert_true(k < all);
        (void)run_until(j, &o, k, FAULT_ERROR);
    }
    o.epochs = EPOCHS;
    o.resume = 1;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("resumed", &err);
    check_result(&r, &j->want, "others kept", 0);
    drps_train_result_free(&r);
    for (size_t i = 0; i < 2; i++) {
        char *path = drps_path_join(kept, files[i]);
        assert_true(exists(path));
        free(path);
    }
    free(kept);
    end(j);
}

/* ---- Elsewhere, otherwise ---- */

/* The numbers of the checkpoints that there are; returns how many. */
static size_t newest_of(const struct job *j, struct drps_checkpoints *c, uint64_t *numbers,
                        size_t *n)
{
    struct drps_err err = DRPS_ERR_INIT;
    *n = 0;
    if (drps_checkpoints_init(c, drps_io_os(), j->checkpoints, 0, &err) < 0 ||
        drps_checkpoints_list(c, numbers, n, &err) < 0)
        fail_run("list", &err);
    drps_checkpoints_destroy(c);
    return *n;
}

/* Leave checkpoints of a run that failed when it had done about a half. */
static void leave_checkpoints(const struct job *j, const struct drps_train_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    size_t n = 0;
    struct drps_checkpoints c;
    for (long k = 100; n < 2; k += 20) {
        remove_all(j);
        if (run_until(j, o, k, FAULT_ERROR)) fail_msg("no two checkpoints before the end");
        if (drps_checkpoints_init(&c, drps_io_os(), j->checkpoints, 0, &err) < 0 ||
            drps_checkpoints_list(&c, numbers, &n, &err) < 0)
            fail_run("list", &err);
        drps_checkpoints_destroy(&c);
    }
}

/* The store, its memory and the threads may be others. */
static void test_resume_with_another_store(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    struct job *j = begin("fm", 4, "resident");
    (void)state;
    for (size_t a = 0; a < 3; a++)
        for (size_t b = 0; b < 3; b++) {
            struct drps_train_options o = j->o;
            o.store = stores[a];
            leave_checkpoints(j, &o);
            o.store = stores[b];
            o.memory_bytes = 128 << 20;
            o.no_keep = a == b;
            assert_true(resume(j, o, stores[b], (long)a) > 0);
        }
    end(j);
}

/* What is not given is as it was: rate, optimizer, epochs. */
static void test_resume_takes_options(void **state)
{
    struct job *j = begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    drps_train_result_free(&j->want);
    remove_all(j);
    struct drps_train_options o = j->o;
    o.optimizer = "ftrl";
    o.lr = 0.03f;
    o.l1 = 0.001f;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    if (drps_train_run(j->plan, &o, &j->want, &err) < 0) fail_run("undisturbed", &err);
    o.checkpoint_every.unit = DRPS_CHECKPOINT_BATCHES;
    leave_checkpoints(j, &o);
    struct drps_train_options bare = {.model_path = j->model, .store = "resident"};
    assert_true(resume(j, bare, "bare", 0) > 0);

    leave_checkpoints(j, &o); /* another optimizer has other rows */
    struct drps_train_result r;
    bare.resume = 1;
    bare.optimizer = "adagrad";
    assert_int_equal(drps_train_run(j->plan, &bare, &r, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "ftrl"));
    drps_train_result_free(&r);
    assert_true(exists(j->checkpoints));
    end(j);
}

/* Checkpoints that are kept let more epochs follow, as if they had been asked for at once. */
static void test_resume_more_epochs(void **state)
{
    struct job *j = begin("fm", 4, "relay");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    (void)state;
    remove_all(j);
    struct drps_train_options o = j->o;
    o.epochs = 1;
    o.keep_checkpoints = 1;
    o.checkpoint_every = (struct drps_checkpoint_every){0};
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("one epoch", &err);
    assert_true(r.first_step_seconds > 0 && r.first_step_seconds < r.seconds);
    drps_train_result_free(&r);
    assert_true(exists(j->checkpoints));
    o.keep_checkpoints = 0;
    o.epochs = EPOCHS;
    assert_int_equal(resume(j, o, "more", 0), 2);

    remove_all(j); /* with nothing left to do the model is written once more */
    o.keep_checkpoints = 1;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("all epochs", &err);
    drps_train_result_free(&r);
    if (drps_io_remove_tree(drps_io_os(), j->model, &err) < 0) fail_run("remove", &err);
    o.keep_checkpoints = 0;
    o.resume = 1; /* there is no way back */
    o.epochs = EPOCHS - 1;
    drps_err_clear(&err);
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "no way back"));
    drps_train_result_free(&r);
    o.epochs = EPOCHS;
    assert_int_equal(resume(j, o, "none left", 0), EPOCHS + 1);
    end(j);
}

/* A run that was out of patience is so when its end is done once more. */
static void test_resume_out_of_patience(void **state)
{
    struct job *j = begin("fm", 4, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    struct drps_train_options o = j->o;
    o.epochs = 40;
    o.patience = 2;
    o.lr = 1.0f; /* overfits soon */
    o.keep_checkpoints = 1;
    drps_train_result_free(&j->want);
    remove_all(j);
    if (drps_train_run(j->plan, &o, &j->want, &err) < 0) fail_run("undisturbed", &err);
    assert_true(j->want.stopped_early);
    if (drps_io_remove_tree(drps_io_os(), j->model, &err) < 0) fail_run("remove", &err);
    o.keep_checkpoints = 0;
    assert_int_equal(resume(j, o, "out of patience", 0), j->want.epochs_n + 1);
    end(j);
}

/* ---- What is no end ---- */

static void stop_soon(void *ctx, const struct drps_epoch *epoch)
{
    (void)epoch;
    atomic_store((atomic_int *)ctx, 1);
}

/* A model is there, but the run that was to write another one was killed before its first
 * checkpoint; or it is what a stopped run had so far. Neither is the result. */
static void test_resume_takes_no_other_model(void **state)
{
    struct job *j = begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    atomic_int stop = 0;
    (void)state;
    struct drps_train_options o = j->o;
    char *stage = drps_path_join(j->dir, "model.partial");
    assert_int_equal(mkdir(stage, 0777), 0);
    o.resume = 1;
    o.replace = 0;
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), -EEXIST); /* says so */
    drps_train_result_free(&r);
    assert_false(exists(stage));

    drps_err_clear(&err);
    o.resume = 0;
    o.replace = 1;
    o.stop = &stop;
    o.on_epoch = stop_soon;
    o.ctx = &stop;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), DRPS_E_INTERRUPTED);
    drps_train_result_free(&r);
    drps_err_clear(&err);
    o.stop = NULL;
    o.on_epoch = NULL;
    o.resume = 1;
    o.replace = 0;
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), -EEXIST);
    drps_train_result_free(&r);
    drps_err_clear(&err);
    o.replace = 1;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("anew", &err);
    assert_false(r.already);
    check_result(&r, &j->want, "anew", 0);
    drps_train_result_free(&r);
    free(stage);
    end(j);
}

/* ---- Refusals ---- */

static void test_a_checkpoint_is_not_lost(void **state)
{
    struct job *j = begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    (void)state;
    leave_checkpoints(j, &j->o);
    struct drps_train_options o = j->o;
    o.replace = 0;
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "resume"));
    drps_train_result_free(&r);
    assert_true(exists(j->checkpoints));

    o.replace = 1; /* a run that starts anew replaces it when it has something better */
    drps_err_clear(&err);
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("anew", &err);
    assert_int_equal(r.resumed_epoch, 0);
    check_result(&r, &j->want, "anew", 0);
    drps_train_result_free(&r);
    assert_false(exists(j->checkpoints));
    end(j);
}

static void test_resume_refuses_another_plan(void **state)
{
    struct job *j = begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    (void)state;
    leave_checkpoints(j, &j->o);
    struct drps_train_options o = j->o;
    o.resume = 1;
    struct drps_plan other = *j->plan;
    other.info.id[0] ^= 1;
    assert_int_equal(drps_train_run(&other, &o, &r, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "train the plan that it is of"));
    drps_train_result_free(&r);
    assert_true(exists(j->checkpoints));
    end(j);
}

/* ---- Damage ---- */

static void flip(const char *path, size_t at)
{
    unsigned char byte;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    assert_int_equal(close(fd), 0);
}

static void count_fallbacks(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    *(int *)ctx += strstr(text, "the one before is looked for") != NULL;
}

/* The newest checkpoint damaged in any byte: the one before serves, and the user hears of it. */
static void test_resume_passes_over_a_damaged_one(void **state)
{
    static const char *const files[] = {"checkpoint.json", "rows/00000.rec", "best.bin"};
    struct job *j = begin("fm", 4, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    j->o.patience = 3;
    drps_train_result_free(&j->want);
    if (drps_train_run(j->plan, &j->o, &j->want, &err) < 0) fail_run("undisturbed", &err);
    for (size_t f = 0; f < 3; f++)
        for (size_t i = 0; i < FLIPS / DRPS_TEST_ONE_IN + 1; i++) {
            uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
            size_t n;
            struct drps_checkpoints c;
            struct stat st;
            char path[512];
            int fallbacks = 0;
            const struct drps_log log = {DRPS_LOG_WARN, count_fallbacks, &fallbacks};
            struct drps_train_options o = j->o;
            o.checkpoint_every.n = 30; /* past the first epoch, so that there is a best one */
            for (long k = 60;; k += 3) {
                remove_all(j);
                if (run_until(j, &o, k, FAULT_ERROR)) fail_msg("no checkpoint");
                if (drps_checkpoints_init(&c, drps_io_os(), j->checkpoints, 0, &err) < 0 ||
                    drps_checkpoints_list(&c, numbers, &n, &err) < 0)
                    fail_run("list", &err);
                (void)snprintf(path, sizeof(path), "%s/%llu/%s", c.dir,
                               (unsigned long long)(n ? numbers[0] : 0), files[f]);
                drps_checkpoints_destroy(&c);
                if (n >= 2 && stat(path, &st) == 0) break;
            }
            flip(path, (size_t)drps_rng_at(f, i) % (size_t)st.st_size);
            o.log = &log;
            struct drps_train_result r;
            o.resume = 1;
            const int rc = drps_train_run(j->plan, &o, &r, &err);
            if (rc < 0) fail_run(path, &err);
            check_result(&r, &j->want, files[f], (long)i);
            drps_train_result_free(&r);
            if (!fallbacks) fail_msg("%s: a flipped byte was not noticed", path);
        }
    end(j);
}

/* ---- Parts of rows ---- */

enum {
    PART_BYTES = 256
}; /* of some 400 rows: many parts, of which most do not change in a batch */

/* A run whose checkpoints share parts. */
static struct job *begin_parts(const char *store)
{
    struct job *j = begin("fm", 4, store);
    j->o.checkpoint_every.n = 1;
    j->o.checkpoint_part_bytes = PART_BYTES;
    return j;
}

/* Opens the newest checkpoint. */
static struct drps_checkpoint *open_newest(const struct job *j)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoints c;
    struct drps_checkpoint *cp;
    size_t n = 0;
    if (drps_checkpoints_init(&c, drps_io_os(), j->checkpoints, 0, &err) < 0 ||
        drps_checkpoints_list(&c, numbers, &n, &err) < 0 || !n ||
        drps_checkpoint_open(&c, numbers[0], &cp, &err) < 0)
        fail_run("newest", &err);
    drps_checkpoints_destroy(&c);
    return cp;
}

/* How many parts of a checkpoint have other names. */
static size_t shared_parts(const struct drps_checkpoint *cp)
{
    size_t n = 0;
    for (uint64_t i = 0; i < drps_checkpoint_parts(cp); i++) {
        struct stat st;
        char *path = drps_checkpoint_part(cp, i);
        assert_int_equal(stat(path, &st), 0);
        n += st.st_nlink > 1;
        free(path);
    }
    return n;
}

/* Ended at any time, such runs go on to the undisturbed model, and share parts with the checkpoint
 * that they go on from. */
static void check_every_instant_of_parts(const char *store, long step)
{
    struct job *j = begin_parts(store);
    long resumed = 0;
    for (long k = 1;; k += step) {
        remove_all(j);
        if (run_until(j, &j->o, k, k % 2 ? FAULT_ERROR : FAULT_TORN)) break;
        resumed += resume(j, j->o, store, k) > 0;
    }
    assert_true(resumed > 3);
    end(j);
}

static void test_resume_parts(void **state)
{
    (void)state;
    check_every_instant_of_parts("resident", DRPS_TEST_ONE_IN > 1 ? 997 : 401);
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        check_every_instant_of_parts((*kv)->name, DRPS_TEST_ONE_IN > 1 ? 1997 : 997);
}

/* The rows of the newest checkpoint. */
static char *rows_of_newest(const struct job *j, size_t *bytes_out, size_t *shared_out)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoint *cp = open_newest(j);
    const size_t n = (size_t)drps_checkpoint_rows(cp);
    *bytes_out = n * drps_checkpoint_row_bytes(cp);
    *shared_out = shared_parts(cp);
    char *rows = malloc(*bytes_out);
    assert_non_null(rows);
    if (drps_checkpoint_read(cp, 0, n, rows, &err) < 0) fail_run("rows", &err);
    drps_checkpoint_close(cp);
    return rows;
}

static void train_parts(const struct job *j, const struct drps_train_options *o,
                        const struct drps_io *io, struct drps_train_result *r)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan plan = *j->plan;
    remove_all(j);
    plan.io = io;
    if (drps_train_run(&plan, o, r, &err) < 0) fail_run("parts", &err);
    check_result(r, &j->want, "parts", 0);
}

static void check_rows_are(const struct job *j, const char *want, const char *what, long k)
{
    size_t bytes, shared;
    char *rows = rows_of_newest(j, &bytes, &shared);
    if (memcmp(rows, want, bytes) != 0) fail_msg("%s %ld: other rows", what, k);
    free(rows);
}

/* Whether the checkpoint after the last epoch is there: it may be the one that failed. */
static int has_last(const struct job *j)
{
    struct drps_checkpoint *cp = open_newest(j);
    const json_t *progress = json_object_get(drps_checkpoint_manifest(cp), "progress");
    const int is = json_integer_value(json_object_get(progress, "epoch")) == EPOCHS + 1;
    drps_checkpoint_close(cp);
    return is;
}

/* A checkpoint that shares parts has the rows of one that is written whole, also after some that
 * could not be written. */
static void check_rows_of_parts(const char *store)
{
    struct job *j = begin_parts(store);
    struct drps_train_result r;
    size_t bytes, shared;
    struct drps_train_options o = j->o;
    o.checkpoint_every.n = 7;
    o.keep_checkpoints = 1;
    o.checkpoint_rows = 1;
    train_parts(j, &o, drps_io_os(), &r);
    char *want = rows_of_newest(j, &bytes, &shared);
    const uint64_t all = r.checkpoints.bytes / r.checkpoints.n;
    assert_int_equal(shared, 0);
    drps_train_result_free(&r);

    o.checkpoint_every.n = 1;
    o.checkpoint_rows = 0;
    train_parts(j, &o, drps_io_os(), &r);
    assert_true(r.checkpoints.bytes / r.checkpoints.n < all * 3 / 4);
    drps_train_result_free(&r);
    check_rows_are(j, want, store, 0);

    /* In the last checkpoints: what they lack is not made good by later steps. */
    uint64_t failed = 0;
    long last = 0;
    for (long k = 0; !k || k > last - 600; k = (k ? k : last) - 41) {
        struct fault_io *f = fault_io_new(drps_io_os());
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_plan plan = *j->plan;
        remove_all(j);
        plan.io = &f->io;
        if (k) fault_io_arm(f, FAULT_FSYNC, k, 0, FAULT_ERROR, -EIO);
        const int rc = drps_train_run(&plan, &o, &r, &err); /* the fault may hit the model */
        if (rc == 0 && has_last(j)) {
            failed += r.checkpoints.failed;
            check_rows_are(j, want, store, k);
        }
        drps_train_result_free(&r);
        if (!k) last = (long)atomic_load(&f->calls[FAULT_NR_FSYNC]);
        fault_io_free(f);
    }
    assert_true(failed > 0);
    free(want);
    end(j);
}

static void test_parts_have_all_rows(void **state)
{
    (void)state;
    check_rows_of_parts("resident");
    for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++)
        check_rows_of_parts((*kv)->name);
}

static void remove_a_part(void *ctx, const struct drps_train_cut *cut)
{
    char path[512];
    if (cut->number % 5) return;
    (void)snprintf(path, sizeof(path), "%s/rank-0/%llu/rows/00003.rec", (const char *)ctx,
                   (unsigned long long)cut->number);
    assert_int_equal(unlink(path), 0);
}

/* Somebody removes a part: the next checkpoint is written whole. */
static void test_a_part_that_is_gone(void **state)
{
    struct job *j = begin_parts("resident");
    struct drps_train_result r;
    (void)state;
    struct drps_train_options o = j->o;
    o.on_checkpoint = remove_a_part;
    o.ctx = j->checkpoints;
    train_parts(j, &o, drps_io_os(), &r);
    assert_true(r.checkpoints.n > 10);
    assert_int_equal(r.checkpoints.failed, 0);
    drps_train_result_free(&r);
    end(j);
}

/* A part that is damaged: of the newest checkpoint alone, the one before serves; one that both
 * share is lost with both. */
static void test_resume_with_a_damaged_part(void **state)
{
    struct job *j = begin_parts("resident");
    (void)state;
    for (int share = 0; share < 2; share++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_result r;
        int fallbacks = 0, damaged = 0;
        const struct drps_log log = {DRPS_LOG_WARN, count_fallbacks, &fallbacks};
        leave_checkpoints(j, &j->o);
        struct drps_checkpoint *cp = open_newest(j);
        assert_true(shared_parts(cp) > 0);
        for (uint64_t i = 0; i < drps_checkpoint_parts(cp) && !damaged; i++) {
            struct stat st;
            char *path = drps_checkpoint_part(cp, i);
            assert_int_equal(stat(path, &st), 0);
            damaged = (st.st_nlink > 1) == share;
            if (damaged) flip(path, 70);
            free(path);
        }
        drps_checkpoint_close(cp);
        assert_true(damaged);
        struct drps_train_options o = j->o;
        o.log = &log;
        o.resume = 1;
        if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_run("damaged", &err);
        check_result(&r, &j->want, "damaged", share);
        assert_int_equal(fallbacks, 1 + share);
        assert_int_equal(r.resumed_epoch > 0, !share);
        drps_train_result_free(&r);
    }
    end(j);
}

/* Checkpoints of an earlier version are not read, and training does not begin anew unasked. */
static void test_resume_refuses_another_version(void **state)
{
    struct job *j = begin("lor", 0, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoints c;
    struct drps_train_result r;
    size_t n;
    (void)state;
    leave_checkpoints(j, &j->o);
    (void)newest_of(j, &c, numbers, &n);
    for (size_t i = 0; i < n; i++) {
        char path[512];
        json_t *manifest = json_pack("{s:s, s:i}", "kind", DRPS_CHECKPOINT_KIND, "version", 1);
        (void)snprintf(path, sizeof(path), "%s/rank-0/%llu/checkpoint.json", j->checkpoints,
                       (unsigned long long)numbers[i]);
        if (drps_manifest_write(drps_io_os(), path, manifest, &err) < 0) fail_run("write", &err);
        json_decref(manifest);
    }
    struct drps_train_options o = j->o;
    o.resume = 1;
    assert_int_equal(drps_train_run(j->plan, &o, &r, &err), DRPS_E_VERSION);
    assert_non_null(strstr(err.text, "start anew"));
    drps_train_result_free(&r);
    assert_true(exists(j->checkpoints));
    end(j);
}

/* ---- The check of checkpoints ---- */

static uint64_t problems_of(const struct job *j)
{
    struct drps_findings found = {0};
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_checkpoints_verify(drps_io_os(), j->checkpoints, &found, &err) < 0)
        fail_run("verify", &err);
    assert_true(found.files >= 4 && found.bytes > 0);
    return found.problems;
}

/* Whatever byte of whatever file is flipped, the check of all checkpoints names it. */
static void check_verify(const char *store, const char *const *files)
{
    struct job *j = begin("fm", 4, store);
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoints c;
    struct stat st;
    size_t n;
    char path[512];
    j->o.patience = 3;
    j->o.checkpoint_every.n = 30;
    for (long k = 60; newest_of(j, &c, numbers, &n) < 2; k += 3) {
        remove_all(j);
        if (run_until(j, &j->o, k, FAULT_ERROR)) fail_msg("no two checkpoints before the end");
    }
    assert_int_equal(problems_of(j), 0);
    for (; *files; files++) {
        (void)snprintf(path, sizeof(path), "%s/rank-0/%llu/%s", j->checkpoints,
                       (unsigned long long)numbers[0], *files);
        if (stat(path, &st)) continue; /* no epoch was the best yet */
        for (uint64_t i = 0; i < FLIPS / DRPS_TEST_ONE_IN + 1; i++) {
            const size_t at = (size_t)drps_rng_at(9, i) % (size_t)st.st_size;
            flip(path, at);
            if (!problems_of(j)) fail_msg("%s: byte %zu flipped, and not noticed", path, at);
            flip(path, at);
        }
    }
    assert_int_equal(problems_of(j), 0);
    end(j);
}

static void test_verify_finds_damage(void **state)
{
    static const char *const rows[] = {"checkpoint.json", "rows/00000.rec", "best.bin", "names.rec",
                                       NULL};
    static const char *const saved[] = {"checkpoint.json", "store/relay.rec", "best.bin",
                                        "names.rec", NULL};
    (void)state;
    check_verify("resident", rows);
    check_verify("relay", saved);
}

/* ---- No room ---- */

/* A checkpoint that cannot be written is told of; training goes on, and the model is right. */
static void test_no_room_is_a_warning(void **state)
{
    struct job *j = begin("fm", 4, "resident");
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    const long step = 13;
    uint64_t failed = 0;
    (void)state;
    for (long k = 1; k < 4000; k += step) {
        struct drps_plan plan = *j->plan;
        struct fault_io *f = fault_io_new(drps_io_os());
        remove_all(j);
        plan.io = &f->io;
        fault_io_arm(f, FAULT_PWRITE | FAULT_FALLOCATE | FAULT_MKDIR | FAULT_FSYNC | FAULT_RENAME,
                     k, 0, FAULT_ERROR, -ENOSPC);
        const int rc = drps_train_run(&plan, &j->o, &r, &err);
        const int fired = atomic_load(&f->fired);
        failed += r.checkpoints.failed;
        if (rc == 0) check_result(&r, &j->want, "no room", k);
        drps_train_result_free(&r);
        drps_err_clear(&err);
        fault_io_free(f);
        if (!fired) break;
    }
    assert_true(failed > 0);
    end(j);
}

/* ---- Several ranks ---- */

struct stopper {
    atomic_int stop;
    uint32_t rank;
    long left; /* batches until it stops */
};

static void stop_at(void *ctx, const struct drps_train_batch *batch)
{
    struct stopper *s = ctx;
    if (batch->rank == s->rank && batch->moment == DRPS_BATCH_PULLED && --s->left == 0)
        atomic_store(&s->stop, 1);
}

/* All ranks stop before the same round, leave a checkpoint each, and go on from there. */
static void test_ranks_go_on(void **state)
{
    static const char *const stores[] = {"resident", "relay", "file"};
    struct world *w = world_begin("fm", CASE_LIBSVM, 20, 60, 3);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result want, r;
    (void)state;
    struct drps_train_options o = world_options(w);
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    o.checkpoint_part_bytes = PART_BYTES;
    if (world_run(w, &o, &want, &err) < 0) fail_run("undisturbed", &err);
    for (size_t s = 0; s < 3; s++)
        for (long at = 1; at<30; at += DRPS_TEST_ONE_IN> 1 ? 11 : 3) {
            struct stopper stopper = {.rank = (uint32_t)(at % 3), .left = at};
            o.store = stores[s];
            o.replace = 1;
            o.resume = 0;
            o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 4};
            o.stop = &stopper.stop;
            o.on_batch = stop_at;
            o.ctx = &stopper;
            drps_err_clear(&err);
            const int rc = world_run(w, &o, &r, &err);
            drps_train_result_free(&r);
            if (rc == 0) continue; /* it came to its end before */
            assert_int_equal(rc, DRPS_E_INTERRUPTED);
            o.stop = NULL;
            o.on_batch = NULL;
            o.resume = 1;
            o.store = stores[(s + (size_t)at) % 3];
            drps_err_clear(&err);
            if (world_run(w, &o, &r, &err) < 0) fail_run("resumed", &err);
            assert_true(r.resumed_epoch > 0);
            check_result(&r, &want, stores[s], at);
            drps_train_result_free(&r);
        }
    drps_train_result_free(&want);
    world_end(w);
}

/* One rank has lost its newest checkpoint: all go on from the one before. */
static void test_ranks_take_what_all_have(void **state)
{
    struct world *w = world_begin("fm", CASE_LIBSVM, 20, 60, 4);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result want, r;
    struct stopper stopper = {.rank = 0, .left = 13};
    (void)state;
    struct drps_train_options o = world_options(w);
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    if (world_run(w, &o, &want, &err) < 0) fail_run("undisturbed", &err);
    o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 4};
    o.stop = &stopper.stop;
    o.on_batch = stop_at;
    o.ctx = &stopper;
    assert_int_equal(world_run(w, &o, &r, &err), DRPS_E_INTERRUPTED);
    drps_train_result_free(&r);

    char root[SCRATCH_PATH_BYTES + 16];
    struct drps_checkpoints c;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    size_t n;
    drps_err_clear(&err);
    (void)snprintf(root, sizeof(root), "%s.checkpoint", w->model);
    if (drps_checkpoints_init(&c, drps_io_os(), root, 2, &err) < 0 ||
        drps_checkpoints_list(&c, numbers, &n, &err) < 0 || n < 2 ||
        drps_checkpoints_remove(&c, numbers[0], &err) < 0)
        fail_run("checkpoints of rank 2", &err);
    drps_checkpoints_destroy(&c);
    o.stop = NULL;
    o.on_batch = NULL;
    o.resume = 1;
    if (world_run(w, &o, &r, &err) < 0) fail_run("resumed", &err);
    assert_true(r.resumed_epoch > 0);
    check_result(&r, &want, "the one before", 0);
    drps_train_result_free(&r);
    drps_train_result_free(&want);
    world_end(w);
}

/* The model is whole, and a rank was killed before it had removed what it leaves: that goes. */
static void test_ranks_clear_up(void **state)
{
    static const char *const left[] = {"%s.rank-2.partial", "%s.checkpoint/rank-2",
                                       "%s.checkpoint"};
    struct world *w = world_begin("fm", CASE_LIBSVM, 20, 60, 3);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result want, r;
    char path[SCRATCH_PATH_BYTES + 32], lock[SCRATCH_PATH_BYTES + 40];
    (void)state;
    struct drps_train_options o = world_options(w);
    if (world_run(w, &o, &want, &err) < 0) fail_run("undisturbed", &err);
    for (size_t i = 3; i--;) {
        (void)snprintf(path, sizeof(path), left[i], w->model);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    (void)snprintf(lock, sizeof(lock), "%s.rank-2.partial/lock", w->model);
    const int fd = open(lock, O_WRONLY | O_CREAT, 0666);
    assert_true(fd >= 0 && close(fd) == 0);
    o.resume = 1;
    o.replace = 0;
    if (world_run(w, &o, &r, &err) < 0) fail_run("resumed", &err);
    assert_true(r.already);
    assert_int_equal(r.content, want.content);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), left[i], w->model);
        if (exists(path)) fail_msg("%s stays", path);
    }
    drps_train_result_free(&r);
    drps_train_result_free(&want);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_resident),
        cmocka_unit_test(test_resume_relay),
        cmocka_unit_test(test_resume_blocks),
        cmocka_unit_test(test_resume_at_the_end),
        cmocka_unit_test(test_resume_leaves_what_others_kept),
        cmocka_unit_test(test_resume_with_another_store),
        cmocka_unit_test(test_resume_takes_options),
        cmocka_unit_test(test_resume_more_epochs),
        cmocka_unit_test(test_resume_out_of_patience),
        cmocka_unit_test(test_resume_takes_no_other_model),
        cmocka_unit_test(test_a_checkpoint_is_not_lost),
        cmocka_unit_test(test_resume_refuses_another_plan),
        cmocka_unit_test(test_resume_passes_over_a_damaged_one),
        cmocka_unit_test(test_resume_parts),
        cmocka_unit_test(test_parts_have_all_rows),
        cmocka_unit_test(test_a_part_that_is_gone),
        cmocka_unit_test(test_resume_with_a_damaged_part),
        cmocka_unit_test(test_resume_refuses_another_version),
        cmocka_unit_test(test_verify_finds_damage),
        cmocka_unit_test(test_no_room_is_a_warning),
        cmocka_unit_test(test_ranks_go_on),
        cmocka_unit_test(test_ranks_take_what_all_have),
        cmocka_unit_test(test_ranks_clear_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
