/* Training as a whole: the same numbers whatever the store, known optima, early stopping,
 * interruption, refusals. */
#include "support/plan_maker.h"

#include <errno.h>
#include <math.h>

#include <jansson.h>

#include "engine/drps_engine.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/train/drps_report.h"
#include "storage/kv/drps_kv.h"
#include "support/owned_io.h"

/* Train into <dir>/<name>; fails the test when training does. */
static struct drps_train_result train(const struct drps_plan *plan, const char *dir,
                                      const char *name, struct drps_train_options o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    char *path = drps_path_join(dir, name);
    struct drps_plan watched = *plan;
    struct owned_io watch;
    owned_io_init(&watch, &drps_modeldir_kind);
    watched.io = &watch.io;
    o.model_path = path;
    if (drps_train_run(&watched, &o, &r, &err) < 0) fail_msg("%s: %s", name, err.text);
    assert_true(atomic_load(&watch.looks) > 1);
    free(path);
    return r;
}

/* Train, expecting failure; the text stays in *err. */
static int train_fails(const struct drps_plan *plan, const char *dir, struct drps_train_options o,
                       struct drps_train_result *r, struct drps_err *err)
{
    struct stat st;
    char *path = drps_path_join(dir, "failed");
    char *partial = drps_path_join(dir, "failed.partial");
    o.model_path = path;
    *err = (struct drps_err)DRPS_ERR_INIT;
    int rc = drps_train_run(plan, &o, r, err);
    assert_true(rc < 0);
    assert_int_not_equal(stat(path, &st), 0); /* nothing is left, neither whole nor half */
    assert_int_not_equal(stat(partial, &st), 0);
    free(path);
    free(partial);
    return rc;
}

static uint64_t content_of(const struct drps_plan *plan, const char *dir, const char *name,
                           struct drps_train_options o)
{
    struct drps_train_result r = train(plan, dir, name, o);
    const uint64_t content = r.content;
    drps_train_result_free(&r);
    return content;
}

static void read_params(const char *dir, const char *name, const uint32_t *ids, size_t n,
                        float *params)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    char *path = drps_path_join(dir, name);
    if (drps_modeldir_open(drps_io_os(), path, 16 << 20, &md, &err) < 0) fail_msg("%s", err.text);
    if (drps_modeldir_gather(md, ids, n, params, &err) < 0) fail_msg("%s", err.text);
    drps_modeldir_close(md);
    free(path);
}

/* The least memory that training takes with `o`: as often as it is refused, what it asks for. */
static uint64_t least_memory(const struct drps_plan *plan, const char *dir,
                             struct drps_train_options o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    o.memory_bytes = 1;
    assert_int_equal(train_fails(plan, dir, o, &r, &err), DRPS_E_MEMORY_BUDGET);
    return r.memory.used_bytes;
}

/* ---- Stores ---- */

static void count_compiled(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    *(int *)ctx += strstr(text, "cutting windows") != NULL;
}

/* Relay in many windows and in few: one time the plan's, the other time its own. The rows are so
 * few that they fit unfinished chunks: that they go to disk and back is tests/e2e/stores.sh's. */
static void check_relay(const struct drps_plan *plan, int plan_has_few, const char *dir,
                        const char *what, struct drps_train_options o,
                        const struct drps_train_result *want)
{
    static const struct {
        const char *name;
        int all_memory; /* else the least */
        size_t windows; /* at least */
    } cases[] = {{"many windows", 0, 10}, {"training, evaluation", 1, 2}};
    o.store = "relay";
    o.memory_bytes = 0;
    const uint64_t least = least_memory(plan, dir, o);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int compiled = 0;
        const struct drps_log log = {DRPS_LOG_INFO, count_compiled, &compiled};
        char name[64];
        (void)snprintf(name, sizeof(name), "relay-%d-%zu", plan_has_few, i);
        o.log = &log;
        o.memory_bytes = cases[i].all_memory ? 0 : least;
        struct drps_train_result got = train(plan, dir, name, o);
        if (got.content != want->content || got.epochs_n != want->epochs_n)
            fail_msg("%s, %s: content %016llx after %zu epochs, resident %016llx", what,
                     cases[i].name, (unsigned long long)got.content, got.epochs_n,
                     (unsigned long long)want->content);
        if (compiled != (plan_has_few != cases[i].all_memory) || got.windows_n < cases[i].windows)
            fail_msg("%s, %s: %zu windows, compiled %d time(s)", what, cases[i].name, got.windows_n,
                     compiled);
        for (size_t e = 0; e < got.epochs_n; e++) {
            assert_memory_equal(&got.epochs[e].train_loss, &want->epochs[e].train_loss,
                                sizeof(double));
            assert_memory_equal(&got.epochs[e].test.loss, &want->epochs[e].test.loss,
                                sizeof(double));
        }
        drps_train_result_free(&got);
    }
}

static void test_engine_stores_agree_bit_for_bit(void **state)
{
    static const struct {
        const char *name, *algo, *loss, *optimizer;
        uint32_t rank, fields;
        int local_steps;
        float l1, l2;
    } cases[] = {
        {.name = "lor adagrad",
         .algo = "lor",
         .loss = "logistic",
         .optimizer = "adagrad",
         .rank = 0,
         .local_steps = 0,
         .l1 = 0,
         .l2 = 0},
        {.name = "lir sgd l2",
         .algo = "lir",
         .loss = "squared",
         .optimizer = "sgd",
         .rank = 0,
         .local_steps = 0,
         .l1 = 0,
         .l2 = 0.001f},
        {.name = "svm ftrl l1",
         .algo = "svm",
         .loss = "hinge",
         .optimizer = "ftrl",
         .rank = 0,
         .local_steps = 0,
         .l1 = 0.01f,
         .l2 = 0},
        {.name = "fm adagrad l1",
         .algo = "fm",
         .loss = "logistic",
         .optimizer = "adagrad",
         .rank = 40,
         .local_steps = 0,
         .l1 = 1e-4f,
         .l2 = 0},
        {.name = "lmf adagrad, local steps",
         .algo = "lmf",
         .loss = "squared",
         .optimizer = "adagrad",
         .rank = 4,
         .local_steps = 1,
         .l1 = 0,
         .l2 = 0},
        {.name = "ffm adagrad l2",
         .algo = "ffm",
         .loss = "logistic",
         .optimizer = "adagrad",
         .rank = 4,
         .fields = 4,
         .l2 = 1e-3f},
        {.name = "ffm ftrl, fields of several entries",
         .algo = "ffm",
         .loss = "squared",
         .optimizer = "ftrl",
         .rank = 3,
         .fields = 2},
        {.name = "fm adam l1 l2",
         .algo = "fm",
         .loss = "logistic",
         .optimizer = "adam",
         .rank = 6,
         .l1 = 1e-4f,
         .l2 = 1e-3f},
        {.name = "lor adam", .algo = "lor", .loss = "logistic", .optimizer = "adam"},
        {.name = "lmf adam", .algo = "lmf", .loss = "squared", .optimizer = "adam", .rank = 4},
        {.name = "lmf adam, local steps",
         .algo = "lmf",
         .loss = "squared",
         .optimizer = "adam",
         .rank = 4,
         .local_steps = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *dir = temp_make();
        struct maker m;
        maker_init(&m, cases[i].algo, cases[i].loss, 600, 20);
        m.rank = cases[i].rank;
        m.fields = cases[i].fields;
        m.small_windows = 1;
        maker_random(&m, 700, strcmp(cases[i].algo, "lmf") == 0 ? 2 : 4, 0, 7);
        maker_random(&m, 90, strcmp(cases[i].algo, "lmf") == 0 ? 2 : 4, 1, 8);
        struct drps_plan *plan = maker_write(&m, dir, "plan");
        struct drps_train_options o = {.epochs = 3,
                                       .optimizer = cases[i].optimizer,
                                       .l1 = cases[i].l1,
                                       .l2 = cases[i].l2,
                                       .local_steps = cases[i].local_steps,
                                       .seed = 5,
                                       .store = "resident"};
        struct drps_train_result want = train(plan, dir, "resident", o);

        for (const struct drps_kv_ops *const *kv = drps_kv_engines(); *kv; kv++) {
            o.store = (*kv)->name;
            o.memory_bytes = 0;
            const uint64_t least = least_memory(plan, dir, o);
            for (int k = 0; k < 4; k++) {
                char name[64];
                (void)snprintf(name, sizeof(name), "%s-%d", o.store, k);
                o.memory_bytes =
                    k == 3 ? 0
                           : least + (uint64_t)k *
                                         4096; /* pools of one step and little more, and of all */
                o.prefetch_steps = k == 2 ? 1 : 0;
                struct drps_train_result got = train(plan, dir, name, o);
                if (got.content != want.content)
                    fail_msg("%s on %s: content %016llx, resident %016llx", cases[i].name, name,
                             (unsigned long long)got.content, (unsigned long long)want.content);
                if (k == 0 && (*kv)->pool_steps <= 1)
                    assert_true(got.store_stats.io.reads >
                                0); /* the pool was too small for all blocks */
                assert_int_equal(got.epochs_n, 3);
                for (size_t e = 0; e < 3; e++) {
                    assert_memory_equal(&got.epochs[e].train_loss, &want.epochs[e].train_loss,
                                        sizeof(double));
                    assert_memory_equal(&got.epochs[e].test.loss, &want.epochs[e].test.loss,
                                        sizeof(double));
                }
                drps_train_result_free(&got);
            }
        }
        check_relay(plan, 0, dir, cases[i].name, o, &want);
        drps_plan_close(plan);
        m.small_windows = 0;
        plan = maker_write(&m, dir, "plan of few windows");
        check_relay(plan, 1, dir, cases[i].name, o, &want);
        drps_train_result_free(&want);
        drps_plan_close(plan);
        maker_free(&m);
        temp_remove(dir);
    }
}

static void test_engine_auto_takes_memory_when_it_suffices(void **state)
{
    (void)state;
    char *dir = temp_make();
    struct maker m;
    maker_init(&m, "lor", "logistic", 300, 20);
    maker_random(&m, 100, 4, 0, 1);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    struct drps_train_result r = train(plan, dir, "a", (struct drps_train_options){.epochs = 1});
    assert_string_equal(r.store, "resident");
    assert_true(isnan(r.epochs[0].test.loss)); /* no test samples */
    drps_train_result_free(&r);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

/* Batches that stay in memory are read once, and are the same as those read in each epoch. */
static void test_engine_keeps_batches_unless_it_is_told_not_to(void **state)
{
    (void)state;
    char *dir = temp_make();
    struct maker m;
    maker_init(&m, "fm", "logistic", 300, 20);
    m.rank = 4;
    maker_random(&m, 200, 4, 0, 1);
    maker_random(&m, 20, 4, 1, 2);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    struct drps_train_options o = {.epochs = 3, .store = "resident"};
    struct drps_train_result kept = train(plan, dir, "kept", o);
    o.no_keep = 1;
    struct drps_train_result read = train(plan, dir, "read", o);
    assert_true(kept.plan_read_bytes > 0);
    assert_int_equal(read.plan_read_bytes, 3 * kept.plan_read_bytes);
    assert_true(read.memory.used_bytes <= kept.memory.used_bytes);
    assert_int_equal(read.content, kept.content);
    for (size_t e = 0; e < 3; e++)
        assert_memory_equal(&read.epochs[e].test.loss, &kept.epochs[e].test.loss, sizeof(double));
    drps_train_result_free(&kept);
    drps_train_result_free(&read);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

static void test_engine_refuses_too_little_memory_with_a_number_that_would_do(void **state)
{
    static const char *const stores[] = {"auto", "resident", "relay"};
    enum { STORES = sizeof(stores) / sizeof(*stores) };
    (void)state;
    char *dir = temp_make();
    struct maker m;
    maker_init(&m, "lor", "logistic", 300, 20);
    maker_random(&m, 200, 4, 0, 1);
    maker_random(&m, 20, 4, 1, 2);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    for (size_t i = 0; i < STORES || drps_kv_engines()[i - STORES]; i++) {
        struct drps_train_options o = {
            .epochs = 1, .store = i < STORES ? stores[i] : drps_kv_engines()[i - STORES]->name};
        struct drps_train_result r;
        struct drps_err err;
        o.memory_bytes = 1 << 20;
        assert_int_equal(train_fails(plan, dir, o, &r, &err), DRPS_E_MEMORY_BUDGET);
        assert_non_null(strstr(err.text, "a memory limit of 1.0 MiB is too small: at least "));
        assert_non_null(strstr(err.text, "program"));
        if (strcmp(o.store, "rocksdb") == 0 || strcmp(o.store, "leveldb") == 0)
            assert_non_null(strstr(err.text, "caches and buffers of the store's engine 24.0 MiB"));
        o.memory_bytes = r.memory.used_bytes - 1;
        assert_int_equal(train_fails(plan, dir, o, &r, &err), DRPS_E_MEMORY_BUDGET);
        o.memory_bytes = r.memory.used_bytes;
        struct drps_train_result ok = train(plan, dir, o.store, o);
        drps_train_result_free(&ok);
    }
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

/* ---- Threads ---- */

static void test_engine_threads_are_deterministic_and_close_to_one(void **state)
{
    static const struct {
        const char *algo, *loss;
        uint32_t rank;
        float l2;
        int local_steps;
    } cases[] = {{"lor", "logistic", 0, 0.001f, 0},
                 {"fm", "logistic", 8, 0, 0},
                 {"ffm", "logistic", 4, 0, 0},
                 {"lir", "squared", 0, 0, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *dir = temp_make();
        struct maker m;
        maker_init(&m, cases[i].algo, cases[i].loss, 400, 50);
        m.rank = cases[i].rank;
        m.fields = strcmp(cases[i].algo, "ffm") == 0 ? 4 : 0;
        maker_random(&m, 1000, 4, 0, 3);
        maker_random(&m, 200, 4, 1, 4);
        struct drps_plan *plan = maker_write(&m, dir, "plan");
        struct drps_train_options o = {
            .epochs = 3, .l2 = cases[i].l2, .local_steps = cases[i].local_steps, .lr = 0.05f};
        struct drps_train_result one = train(plan, dir, "1", o);
        for (unsigned n = 2; n <= 3; n++) {
            const char *const stores[] = {"resident", "relay", drps_kv_engines()[0]->name};
            char name[32];
            uint64_t content[3];
            for (int again = 0; again < 3; again++) {
                o.threads = n;
                o.store = stores[again];
                (void)snprintf(name, sizeof(name), "%u-%d", n, again);
                struct drps_train_result r = train(plan, dir, name, o);
                content[again] = r.content;
                /* Sums of floats in another order: some ulp a step, 60 steps. */
                for (size_t e = 0; e < r.epochs_n; e++) {
                    assert_true(fabs(r.epochs[e].train_loss - one.epochs[e].train_loss) < 1e-4);
                    assert_true(fabs(r.epochs[e].test.loss - one.epochs[e].test.loss) < 1e-4);
                }
                drps_train_result_free(&r);
            }
            assert_int_equal(content[0], content[1]);
            assert_int_equal(content[0], content[2]);
            if (cases[i].local_steps)
                assert_int_equal(content[0], one.content); /* these are sequential anyway */
        }
        drps_train_result_free(&one);
        drps_plan_close(plan);
        maker_free(&m);
        temp_remove(dir);
    }
}

/* Where one processor is all there is, row lists are unpacked by the training thread itself. */
/* ---- Learning ---- */

static void test_engine_learns_separable_data(void **state)
{
    static const char *const algos[][2] = {
        {"lor", "logistic"}, {"svm", "hinge"}, {"svm", "squared-hinge"}};
    static const char *const optimizers[] = {"sgd", "adagrad", "ftrl", "adam"};
    (void)state;
    char *dir = temp_make();
    for (size_t a = 0; a < 3; a++) {
        struct maker m;
        char name[32];
        maker_init(&m, algos[a][0], algos[a][1], 40, 10);
        for (uint32_t i = 0; i < 200; i++) { /* feature 0 or 1 decides; the rest is noise */
            struct maker_sample *s = maker_add(&m, i >= 150, i % 2 ? 1 : -1);
            maker_entry(s, i % 2, 1);
            maker_entry(s, 2 + i * 7 % 38, 1);
        }
        (void)snprintf(name, sizeof(name), "plan%zu", a);
        struct drps_plan *plan = maker_write(&m, dir, name);
        for (size_t k = 0; k < 4; k++) {
            (void)snprintf(name, sizeof(name), "model%zu%zu", a, k);
            struct drps_train_options o = {.epochs = 10, .optimizer = optimizers[k], .lr = 0.1f};
            struct drps_train_result r = train(plan, dir, name, o);
            assert_true(r.epochs[9].train_loss < 0.5 * r.epochs[0].train_loss);
            assert_true(r.epochs[9].test.accuracy == 1);
            assert_true(r.epochs[9].test.auc == 1);
            drps_train_result_free(&r);
        }
        drps_plan_close(plan);
        maker_free(&m);
    }
    temp_remove(dir);
}

/*
 * x = (1,0), (0,1), (1,1); y = 1, 2, 4. X'X = [2 1; 1 2], X'y = (5, 6), so w = (4/3, 7/3).
 * Full-batch gradient descent at rate 0.3 shrinks the error by at least 1 - 0.3 * 1 a step
 * (eigenvalues 1 and 3).
 */
static void test_engine_reaches_a_least_squares_optimum(void **state)
{
    static const uint32_t ids[] = {0, 1};
    (void)state;
    char *dir = temp_make();
    struct maker m;
    float w[2];
    maker_init(&m, "lir", "squared", 2, 3);
    m.no_bias = 1;
    maker_entry(maker_add(&m, 0, 1), 0, 1);
    maker_entry(maker_add(&m, 0, 2), 1, 1);
    struct maker_sample *both = maker_add(&m, 0, 4);
    maker_entry(both, 0, 1);
    maker_entry(both, 1, 1);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    struct drps_train_result r =
        train(plan, dir, "model",
              (struct drps_train_options){.epochs = 100, .optimizer = "sgd", .lr = 0.3f});
    read_params(dir, "model", ids, 2, w);
    assert_true(fabsf(w[0] - 4.0f / 3) < 1e-5f);
    assert_true(fabsf(w[1] - 7.0f / 3) < 1e-5f);
    /* residuals -1/3, -1/3, 1/3 */
    assert_true(fabs(r.epochs[99].train_loss - 1.0 / 18) < 1e-6);
    drps_train_result_free(&r);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

/*
 * Two steps of logistic regression with AdaGrad (rate 0.1, eps 1e-8), one sample each: (y = 1, x =
 * 1), (y = -1, x = 2). Scores 0 and b + 2w = 0.3. In double: losses 0.6931471805599453 and
 * 0.854355241021872, then b = 0.024570973898442483 and w = 0.008307145661639759. Floats and eps
 * differ by some 1e-8.
 */
static void test_engine_golden_two_steps_of_adagrad(void **state)
{
    static const uint32_t ids[] = {0, 1};
    (void)state;
    char *dir = temp_make();
    struct maker m;
    float w[2];
    maker_init(&m, "lor", "logistic", 1, 1);
    maker_entry(maker_add(&m, 0, 1), 0, 1);
    maker_entry(maker_add(&m, 0, -1), 0, 2);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    struct drps_train_result r = train(plan, dir, "model", (struct drps_train_options){.lr = 0.1f});
    read_params(dir, "model", ids, 2, w);
    assert_true(fabs((double)w[0] - 0.024570973898442483) < 1e-7);
    assert_true(fabs((double)w[1] - 0.008307145661639759) < 1e-7);
    assert_true(fabs(r.epochs[0].train_loss - 0.7737512107909086) < 1e-7);
    drps_train_result_free(&r);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

/* The eps that a run reports is the one it was given, else its algorithm's and optimizer's. */
static void test_engine_takes_an_eps_that_suits_the_algorithm(void **state)
{
    static const struct {
        const char *algo, *loss, *optimizer;
        float given, eps;
    } cases[] = {
        {.algo = "lor", .loss = "logistic", .optimizer = "adagrad", .given = 0, .eps = 1e-8f},
        {.algo = "fm", .loss = "logistic", .optimizer = "adagrad", .given = 0, .eps = 1e-8f},
        {.algo = "lmf", .loss = "squared", .optimizer = "adagrad", .given = 0, .eps = 0.1f},
        {.algo = "lmf", .loss = "squared", .optimizer = "adagrad", .given = 1e-8f, .eps = 1e-8f},
        {.algo = "lor", .loss = "logistic", .optimizer = "adagrad", .given = 2, .eps = 2},
        {.algo = "lmf", .loss = "squared", .optimizer = "sgd", .given = 0, .eps = 1e-8f},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *dir = temp_make();
        struct maker m;
        maker_init(&m, cases[i].algo, cases[i].loss, 60, 20);
        m.rank = strcmp(cases[i].algo, "lor") == 0 ? 0 : 4;
        maker_random(&m, 100, 2, 0, 11);
        struct drps_plan *plan = maker_write(&m, dir, "plan");
        struct drps_train_result r = train(
            plan, dir, "model",
            (struct drps_train_options){.optimizer = cases[i].optimizer, .eps = cases[i].given});
        if (r.optim.eps < cases[i].eps || r.optim.eps > cases[i].eps)
            fail_msg("%s %s, given %g: eps %g, expected %g", cases[i].algo, cases[i].optimizer,
                     (double)cases[i].given, (double)r.optim.eps, (double)cases[i].eps);
        drps_train_result_free(&r);
        drps_plan_close(plan);
        maker_free(&m);
        temp_remove(dir);
    }
}

/* Sample after sample on the batch's copy is what batches of one sample do: bit for bit. */
static void test_engine_local_steps_equal_batches_of_one(void **state)
{
    static const struct {
        const char *algo, *loss, *optimizer;
        uint32_t rank, fields;
        float l1, l2;
        int no_bias;
    } cases[] = {
        {.algo = "lor",
         .loss = "logistic",
         .optimizer = "adagrad",
         .rank = 0,
         .l1 = 0,
         .l2 = 0,
         .no_bias = 0},
        {.algo = "lor",
         .loss = "logistic",
         .optimizer = "ftrl",
         .rank = 0,
         .l1 = 0.1f,
         .l2 = 0.01f,
         .no_bias = 0},
        {.algo = "lir",
         .loss = "squared",
         .optimizer = "sgd",
         .rank = 0,
         .l1 = 0,
         .l2 = 0.01f,
         .no_bias = 1},
        {.algo = "svm",
         .loss = "squared-hinge",
         .optimizer = "sgd",
         .rank = 0,
         .l1 = 0.01f,
         .l2 = 0,
         .no_bias = 0},
        {.algo = "fm",
         .loss = "logistic",
         .optimizer = "adagrad",
         .rank = 5,
         .l1 = 0,
         .l2 = 0.01f,
         .no_bias = 0},
        {.algo = "fm",
         .loss = "squared",
         .optimizer = "ftrl",
         .rank = 3,
         .l1 = 0,
         .l2 = 0,
         .no_bias = 1},
        {.algo = "lmf",
         .loss = "squared",
         .optimizer = "adagrad",
         .rank = 4,
         .l1 = 0,
         .l2 = 0,
         .no_bias = 0},
        {.algo = "ffm", .loss = "logistic", .optimizer = "adagrad", .rank = 4, .fields = 3},
        {.algo = "fm", .loss = "squared", .optimizer = "adam", .rank = 3, .l1 = 0.01f, .l2 = 0.01f},
    };
    static const size_t batches[] = {1, 7, 32};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *dir = temp_make();
        uint64_t content[4];
        for (size_t k = 0; k < 4; k++) { /* 0: normal steps, batches of one */
            struct maker m;
            char name[32];
            maker_init(&m, cases[i].algo, cases[i].loss, 60, k ? batches[k - 1] : 1);
            m.rank = cases[i].rank;
            m.fields = cases[i].fields;
            m.no_bias = cases[i].no_bias;
            maker_random(&m, 100, strcmp(cases[i].algo, "lmf") == 0 ? 2 : 3, 0, 11);
            (void)snprintf(name, sizeof(name), "plan%zu", k);
            struct drps_plan *plan = maker_write(&m, dir, name);
            (void)snprintf(name, sizeof(name), "model%zu", k);
            content[k] = content_of(plan, dir, name,
                                    (struct drps_train_options){.epochs = 2,
                                                                .optimizer = cases[i].optimizer,
                                                                .lr = 0.05f,
                                                                .l1 = cases[i].l1,
                                                                .l2 = cases[i].l2,
                                                                .local_steps = k > 0});
            drps_plan_close(plan);
            maker_free(&m);
        }
        for (size_t k = 1; k < 4; k++)
            if (content[k] != content[0])
                fail_msg("%s %s: local steps in batches of %zu differ", cases[i].algo,
                         cases[i].optimizer, batches[k - 1]);
        temp_remove(dir);
    }
}

static void test_engine_seed_decides_factors(void **state)
{
    (void)state;
    char *dir = temp_make();
    struct maker m;
    maker_init(&m, "fm", "logistic", 60, 16);
    m.rank = 4;
    maker_random(&m, 100, 3, 0, 11);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    const uint64_t a = content_of(plan, dir, "a", (struct drps_train_options){.seed = 1});
    const uint64_t b = content_of(plan, dir, "b", (struct drps_train_options){.seed = 1});
    const uint64_t c = content_of(plan, dir, "c", (struct drps_train_options){.seed = 2});
    const uint64_t d =
        content_of(plan, dir, "d", (struct drps_train_options){.seed = 1, .init_scale = 0.5f});
    assert_true(a == b);
    assert_true(a != c);
    assert_true(a != d);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

/* ---- Ends ---- */

struct stopper {
    atomic_int flag;
    int at_step; /* stop at the first progress report, else after the first epoch */
    int steps_told;
};

static void stop_at_step(void *ctx, const struct drps_train_progress *p)
{
    struct stopper *s = ctx;
    assert_true(p->step <= p->steps && p->epoch >= 1);
    s->steps_told++;
    if (s->at_step) atomic_store(&s->flag, 1);
}

static void stop_at_epoch(void *ctx, const struct drps_epoch *e)
{
    struct stopper *s = ctx;
    (void)e;
    if (!s->at_step) atomic_store(&s->flag, 1);
}

static void test_engine_interrupt_leaves_the_model_so_far(void **state)
{
    (void)state;
    for (int at_step = 0; at_step < 2; at_step++) {
        char *dir = temp_make();
        struct maker m;
        struct drps_train_result r;
        struct drps_err err = DRPS_ERR_INIT;
        struct stopper stop = {.at_step = at_step};
        maker_init(&m, "lor", "logistic", 60, 10);
        maker_random(&m, 100, 3, 0, 11);
        struct drps_plan *plan = maker_write(&m, dir, "plan");
        char *path = drps_path_join(dir, "model");
        struct drps_train_options o = {.model_path = path,
                                       .epochs = 5,
                                       .stop = &stop.flag,
                                       .on_epoch = stop_at_epoch,
                                       .on_progress = stop_at_step,
                                       .ctx = &stop};
        assert_int_equal(drps_train_run(plan, &o, &r, &err), DRPS_E_INTERRUPTED);
        assert_int_equal(r.interrupted, 1);
        assert_int_equal(r.epochs_n, at_step ? 0 : 1);
        assert_int_equal(r.steps, at_step ? 1 : 0);

        /* The model equals one that was trained for just as long. */
        struct maker first = m;
        first.mean_n = m.n;
        if (at_step) first.n = 10;
        struct drps_plan *shorter = maker_write(&first, dir, "shorter");
        assert_true(content_of(shorter, dir, "want", (struct drps_train_options){.epochs = 1}) ==
                    r.content);
        struct drps_modeldir *md;
        assert_int_equal(drps_modeldir_open(drps_io_os(), path, 16 << 20, &md, &err), 0);
        const json_t *training = json_object_get(drps_modeldir_json(md), "training");
        assert_true(json_is_true(json_object_get(training, "interrupted")));
        assert_int_equal(json_integer_value(json_object_get(training, "steps")), r.steps);
        drps_modeldir_close(md);
        free(path);
        drps_train_result_free(&r);
        drps_plan_close(plan);
        drps_plan_close(shorter);
        maker_free(&m);
        temp_remove(dir);
    }
}

/* Remove what is measured again at the very end of a run. */
static void drop_last_moments(json_t *report)
{
    static const char *const keys[] = {"seconds", "peak_rss_bytes", "process_read_bytes",
                                       "process_written_bytes"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_int_equal(json_object_del(report, keys[i]), 0);
    assert_int_equal(json_object_del(json_object_get(report, "phase_seconds"), "export"), 0);
}

/* What a caller prints is what the model keeps. */
static void test_engine_report_is_the_model_s(void **state)
{
    (void)state;
    static const char *const promised[] = {"store",          "rows",    "model_bytes",
                                           "peak_rss_bytes", "seconds", "content"};
    static const char *const promised_of_epoch[] = {
        "epoch",    "seconds",       "samples_per_s", "train_loss", "test_loss",
        "test_auc", "test_accuracy", "test_rmse",     "read_bytes", "written_bytes",
        "reads",    "writes",        "stall_share"};
    static const char *const promised_of_windows[] = {
        "windows", "pool_bytes", "chunk_bytes",  "runs",         "merged_bytes", "io_engine",
        "direct",  "remark",     "rows_arrived", "rows_created", "rows_kept"};
    const char *const stores[] = {"resident", drps_kv_engines()[0]->name, "relay"};
    char *dir = temp_make();
    struct maker m;
    maker_init(&m, "lor", "logistic", 60, 10);
    maker_random(&m, 100, 3, 0, 11);
    maker_random(&m, 20, 3, 1, 12);
    struct drps_plan *plan = maker_write(&m, dir, "plan");

    for (size_t i = 0; i < 3; i++) {
        struct drps_train_options o = {.epochs = 2, .store = stores[i]};
        struct drps_train_result r = train(plan, dir, stores[i], o);
        json_t *report = drps_report_json(&o, &r);
        for (size_t k = 0; k < sizeof(promised) / sizeof(promised[0]); k++)
            if (!json_object_get(report, promised[k])) fail_msg("no member %s", promised[k]);
        const json_t *epochs = json_object_get(report, "epochs");
        assert_int_equal(json_array_size(epochs), 2);
        for (size_t k = 0; k < sizeof(promised_of_epoch) / sizeof(promised_of_epoch[0]); k++)
            if (!json_object_get(json_array_get(epochs, 1), promised_of_epoch[k]))
                fail_msg("no member %s of an epoch", promised_of_epoch[k]);
        assert_true(json_is_object(json_object_get(report, "io")));
        assert_int_equal(json_is_object(json_object_get(report, "blocks")), i == 1);
        assert_int_equal(json_is_null(json_object_get(report, "blocks")), i != 1);
        const json_t *windows = json_object_get(report, "windows");
        assert_int_equal(json_is_null(windows), i != 2);
        assert_int_equal(json_array_size(json_object_get(windows, "list")), i == 2 ? 2 : 0);
        for (size_t k = 0; i == 2 && k < sizeof(promised_of_windows) / sizeof(char *); k++)
            if (!json_object_get(windows, promised_of_windows[k]))
                fail_msg("no member %s of windows", promised_of_windows[k]);

        struct drps_err err = DRPS_ERR_INIT;
        struct drps_modeldir *md;
        char *path = drps_path_join(dir, stores[i]);
        if (drps_modeldir_open(drps_io_os(), path, 16 << 20, &md, &err) < 0)
            fail_msg("%s", err.text);
        json_t *kept = json_deep_copy(json_object_get(drps_modeldir_json(md), "training"));
        drop_last_moments(report);
        drop_last_moments(kept);
        assert_true(json_equal(report, kept));
        json_decref(report);
        json_decref(kept);
        drps_modeldir_close(md);
        free(path);
        drps_train_result_free(&r);
    }
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

static void test_engine_diverging_loss_is_an_error(void **state)
{
    (void)state;
    char *dir = temp_make();
    struct maker m;
    struct drps_train_result r;
    struct drps_err err;
    maker_init(&m, "lir", "squared", 60, 10);
    maker_random(&m, 100, 3, 0, 11);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    struct drps_train_options o = {.epochs = 5, .optimizer = "sgd", .lr = 1e20f};
    assert_int_equal(train_fails(plan, dir, o, &r, &err), -ERANGE);
    assert_non_null(strstr(err.text, "epoch 1, step "));
    assert_non_null(strstr(err.text, "smaller learning rate"));
    drps_train_result_free(&r);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

static void test_engine_patience_keeps_the_best_epoch(void **state)
{
    (void)state;
    char *dir = temp_make();
    struct maker m;
    maker_init(&m, "lor", "logistic", 400, 20);
    maker_random(&m, 200, 4, 0, 21); /* few samples for many features: it over-fits soon */
    maker_random(&m, 200, 4, 1, 22);
    for (size_t i = 0; i < m.n; i += 4)
        m.train[i].label = -m.train[i].label;
    m.small_windows = 1;
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    struct drps_train_options o = {.epochs = 60, .lr = 0.3f, .patience = 2};
    struct drps_train_result r = train(plan, dir, "stopped", o);
    assert_int_equal(r.stopped_early, 1);
    assert_true(r.best_epoch >= 1 && r.epochs_n < 60);
    assert_int_equal(r.epochs_n, r.best_epoch + 2);
    for (size_t e = 0; e < r.epochs_n; e++)
        assert_true(r.epochs[e].test.loss >= r.epochs[r.best_epoch - 1].test.loss);
    o.store = "relay"; /* writes its rows between two epochs, and goes on */
    o.memory_bytes = least_memory(plan, dir, o);
    struct drps_train_result relay = train(plan, dir, "relay", o);
    assert_true(relay.windows_n >= 10);
    assert_int_equal(relay.epochs_n, r.epochs_n);
    assert_true(relay.content == r.content);
    drps_train_result_free(&relay);
    o.store = NULL;
    o.epochs = r.best_epoch;
    o.patience = 0;
    assert_true(content_of(plan, dir, "best", o) == r.content);
    drps_train_result_free(&r);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

static void test_engine_refuses_options_that_do_not_fit(void **state)
{
    static const struct {
        const char *name, *says;
        struct drps_train_options o;
    } cases[] = {
        {"patience", "patience needs test samples", {.patience = 1}},
        {"optimizer", "adamax", {.optimizer = "adamax"}},
        {"store", "none of auto, resident", {.store = "paper"}},
        {"store of a device",
         "none of auto, resident",
         {.store = "paper", .device = DRPS_TRAIN_CUDA}},
        {"model store", "paper", {.model_store = "paper"}},
        {"rate", "learning rate -1", {.lr = -1}},
        {"l2", "l2 -1", {.l2 = -1}},
        {"threads", "1000 threads", {.threads = 1000}},
    };
    (void)state;
    char *dir = temp_make();
    struct maker m;
    maker_init(&m, "lor", "logistic", 60, 10);
    maker_random(&m, 100, 3, 0, 11);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_train_result r;
        struct drps_err err;
        const int rc = train_fails(plan, dir, cases[i].o, &r, &err);
        if (rc != DRPS_E_CONFIG || !strstr(err.text, cases[i].says))
            fail_msg("%s: %d, %s", cases[i].name, rc, err.text);
        drps_train_result_free(&r);
    }
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

static void test_engine_replaces_a_model_only_when_told(void **state)
{
    (void)state;
    char *dir = temp_make();
    struct maker m;
    struct drps_train_result r;
    struct drps_err err = DRPS_ERR_INIT;
    maker_init(&m, "lor", "logistic", 60, 10);
    maker_random(&m, 100, 3, 0, 11);
    struct drps_plan *plan = maker_write(&m, dir, "plan");
    char *path = drps_path_join(dir, "model");
    struct drps_train_options o = {.model_path = path, .epochs = 1};
    assert_int_equal(drps_train_run(plan, &o, &r, &err), 0);
    const uint64_t first = r.content;
    drps_train_result_free(&r);
    o.epochs = 2;
    assert_int_equal(drps_train_run(plan, &o, &r, &err), -EEXIST);
    drps_train_result_free(&r);
    drps_err_clear(&err);
    o.replace = 1;
    assert_int_equal(drps_train_run(plan, &o, &r, &err), 0);
    assert_true(r.content != first);
    drps_train_result_free(&r);
    free(path);
    drps_plan_close(plan);
    maker_free(&m);
    temp_remove(dir);
}

static void flip_byte(const char *dir, const char *name, long at)
{
    char *path = drps_path_join(dir, name);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int c = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    (void)fputc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
    free(path);
}

static void test_engine_damaged_plan_is_never_trained_on(void **state)
{
    static const char *const files[] = {"data.rec", "rows.rec", "uses.rec", "blocks.rec"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char *dir = temp_make();
        struct maker m;
        struct drps_train_result r;
        struct drps_err err;
        maker_init(&m, "lor", "logistic", 60, 10);
        maker_random(&m, 100, 3, 0, 11);
        struct drps_plan *plan = maker_write(&m, dir, "plan");
        flip_byte(m.dir, files[i], 100);
        struct drps_train_options o = {.epochs = 1, .store = drps_kv_engines()[0]->name};
        const int rc = train_fails(plan, dir, o, &r, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, files[i]))
            fail_msg("%s: %d, %s", files[i], rc, err.text);
        drps_train_result_free(&r);
        drps_plan_close(plan);
        maker_free(&m);
        temp_remove(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_stores_agree_bit_for_bit),
        cmocka_unit_test(test_engine_auto_takes_memory_when_it_suffices),
        cmocka_unit_test(test_engine_keeps_batches_unless_it_is_told_not_to),
        cmocka_unit_test(test_engine_refuses_too_little_memory_with_a_number_that_would_do),
        cmocka_unit_test(test_engine_threads_are_deterministic_and_close_to_one),
        cmocka_unit_test(test_engine_learns_separable_data),
        cmocka_unit_test(test_engine_reaches_a_least_squares_optimum),
        cmocka_unit_test(test_engine_golden_two_steps_of_adagrad),
        cmocka_unit_test(test_engine_takes_an_eps_that_suits_the_algorithm),
        cmocka_unit_test(test_engine_local_steps_equal_batches_of_one),
        cmocka_unit_test(test_engine_seed_decides_factors),
        cmocka_unit_test(test_engine_interrupt_leaves_the_model_so_far),
        cmocka_unit_test(test_engine_report_is_the_model_s),
        cmocka_unit_test(test_engine_diverging_loss_is_an_error),
        cmocka_unit_test(test_engine_patience_keeps_the_best_epoch),
        cmocka_unit_test(test_engine_refuses_options_that_do_not_fit),
        cmocka_unit_test(test_engine_replaces_a_model_only_when_told),
        cmocka_unit_test(test_engine_damaged_plan_is_never_trained_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
