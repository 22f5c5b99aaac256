/* Runs that log vectors beside their checkpoints, of ranks and of one process: they go on after any
 * round that is covered, within an epoch too, and end with the bits of a run that nobody disturbed;
 * also where the power goes, or the log is damaged, or cannot be written. */
#include "support/plan_maker.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_rng.h"
#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "engine/train/verify/drps_verify.h"
#include "support/fault_io.h"
#include "support/index_case.h"
#include "support/power_cuts.h"
#include "support/train_runs.h"
#include "support/world.h"

enum { BATCHES = 12, EPOCHS = 3, LAST = EPOCHS * BATCHES, SAMPLES = 1080 };
enum { FEW = DRPS_TEST_ONE_IN > 1 }; /* of each kind */

/* ---- The I/O of all ranks ---- */

static const struct drps_io *replaced; /* NULL: the operating system's */

const struct drps_io *__real_drps_io_os(void);
const struct drps_io *__wrap_drps_io_os(void);
const struct drps_io *__wrap_drps_io_os(void)
{
    return replaced ? replaced : __real_drps_io_os();
}

/* ---- Runs ---- */

static uint64_t seed = 20261124;
static uint32_t workers = WORLD_WORKERS; /* 1: one process without ranks */
static const char *algo = "mlr";
static int are_alike; /* 1: samples have as many entries each, of value 1 */

static void write_noise(FILE *to, uint64_t *drawn)
{
    for (unsigned f = 10; f < 2400; f += 1 + (unsigned)(drps_rng_at(3, (*drawn)++) % 400))
        (void)fprintf(to, " %u:%.2f", f, (double)(drps_rng_at(3, (*drawn)++) % 100) / 99);
}

static void write_noise_alike(FILE *to, uint64_t *drawn)
{
    for (unsigned f = 10; f < 2400; f += 400)
        (void)fprintf(to, " %u:1", f + (unsigned)(drps_rng_at(3, (*drawn)++) % 400));
}

/* Five classes, a feature each that tells them apart, and noise. */
static void write_samples(FILE *to)
{
    static const char *const names[] = {"ash", "beech", "elm", "oak", "yew"};
    uint64_t drawn = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const unsigned label = (unsigned)(drps_rng_at(3, drawn++) % 5);
        (void)fprintf(to, "%s %u:1", names[label], label + 1);
        (are_alike ? write_noise_alike : write_noise)(to, &drawn);
        (void)fputs("\n", to);
    }
}

/* `held_out`: the share of samples to evaluate with. */
static struct world *begin_with(double held_out, struct drps_train_options *o)
{
    struct world *w = calloc(1, sizeof(*w));
    struct case_run run;
    char *text;
    size_t bytes;
    assert_non_null(w);
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    w->workers = workers;
    scratch_begin(&w->scratch);
    (void)snprintf(w->plan, sizeof(w->plan), "%s", scratch_path(&w->scratch, "plan"));
    assert_int_equal(mkdir(scratch_path(&w->scratch, "disk"), 0777), 0);
    (void)snprintf(w->model, sizeof(w->model), "%s", scratch_path(&w->scratch, "disk/model"));
    write_samples(to);
    (void)fclose(to);
    case_begin(&run, &w->scratch, scratch_file(&w->scratch, "in", text, bytes), algo);
    free(text);
    (void)snprintf(run.out, sizeof(run.out), "%s", w->plan);
    run.options.workers = workers;
    run.options.test_fraction = held_out;
    run.options.batch_size = (held_out > 0 ? 75 : 90) / workers;
    case_compile(&run);
    assert_int_equal(run.result.info.batches, BATCHES);
    *o = world_options(w);
    o->epochs = EPOCHS;
    o->log = &quiet;
    if (workers > 1) o->exchange = DRPS_EXCHANGE_VECTORS;
    o->checkpoint_vectors = 1;
    o->checkpoint_log_bytes = 1;
    o->checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 2};
    return w;
}

static struct world *begin(struct drps_train_options *o)
{
    return begin_with(.2, o);
}

/* All ranks, or the one process. */
static int run_world(const struct world *w, const struct drps_train_options *o,
                     struct drps_train_result *r, struct drps_err *err)
{
    struct drps_plan *plan;
    if (workers > 1) return world_run(w, o, r, err);
    *r = (struct drps_train_result){0};
    int rc = drps_plan_open(drps_io_os(), w->plan, &plan, err);
    if (rc < 0) return rc;
    rc = drps_train_run(plan, o, r, err);
    drps_plan_close(plan);
    return rc;
}

static void train_world(const struct world *w, const struct drps_train_options *o,
                        struct drps_train_result *r)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (run_world(w, o, r, &err) < 0) fail_msg("%s", err.text);
}

/* Without checkpoints. */
static void train_plain(struct world *w, struct drps_train_options o, struct drps_train_result *r)
{
    o.checkpoint_vectors = 0;
    o.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    train_world(w, &o, r);
}

static void end(struct world *w, struct drps_train_result *want)
{
    drps_train_result_free(want);
    world_end(w);
}

static const char *at(struct world *w, const char *name)
{
    return scratch_path(&w->scratch, name);
}

/* The folder of the model and of checkpoints is another one's copy. */
static void put_disk(struct world *w, const char *from)
{
    char disk[SCRATCH_PATH_BYTES];
    (void)snprintf(disk, sizeof(disk), "%s", at(w, "disk"));
    train_remove(disk);
    power_copy(from, disk);
}

/* Train with checkpoints that stay, in <s>/kept. */
static void leave_checkpoints(struct world *w, struct drps_train_options o)
{
    struct drps_train_result r;
    char kept[SCRATCH_PATH_BYTES];
    o.keep_checkpoints = 1;
    train_world(w, &o, &r);
    if (r.checkpoints.rounds != LAST || !r.checkpoints.log_bytes || r.checkpoints.n < 3)
        fail_msg("%llu rounds, %llu checkpoints", (unsigned long long)r.checkpoints.rounds,
                 (unsigned long long)r.checkpoints.n);
    drps_train_result_free(&r);
    (void)snprintf(kept, sizeof(kept), "%s", at(w, "kept"));
    train_remove(kept);
    power_copy(at(w, "disk"), kept);
}

/* Go on after a round, or after the last; the test fails if that is not possible. */
static void go_on(struct world *w, struct drps_train_options o, const uint64_t *round,
                  const struct drps_train_result *want, const char *what)
{
    struct drps_train_result r;
    o.resume = 1;
    o.resume_at = round != NULL;
    o.resume_round = round ? *round : 0;
    train_world(w, &o, &r);
    train_check_same(&r, want, what, round ? (long)*round : -1);
    if (round && (r.resumed_epoch - 1) * BATCHES + r.resumed_step != *round)
        fail_msg("%s: after epoch %llu, batch %llu, not round %llu", what,
                 (unsigned long long)r.resumed_epoch, (unsigned long long)r.resumed_step,
                 (unsigned long long)*round);
    drps_train_result_free(&r);
}

/* A rank may hear that another has failed before it finds the same itself: the text is that one's.
 */
static void refused(struct world *w, const struct drps_train_options *o, int code, const char *says)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    const int rc = run_world(w, o, &r, &err);
    if (rc != DRPS_E_PEER_FAILED) assert_int_equal(rc, code);
    if (!strstr(err.text, says)) fail_msg("does not say '%s' but: %s", says, err.text);
    drps_train_result_free(&r);
}

/* The rounds that all ranks have in <s>/kept. */
static void covered(struct world *w, uint64_t *first_out, uint64_t *last_out)
{
    *first_out = 0;
    *last_out = UINT64_MAX;
    for (uint32_t r = 0; r < workers; r++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_checkpoints c;
        uint64_t first = 0, last = 0;
        if (drps_checkpoints_init(&c, drps_io_os(), at(w, "kept/model.checkpoint"), r, &err) < 0 ||
            drps_vector_log_covered(&c, &first, &last, &err) < 0)
            fail_msg("%s", err.text);
        drps_checkpoints_destroy(&c);
        if (first > *first_out) *first_out = first;
        if (last < *last_out) *last_out = last;
    }
}

/* ---- Rounds that are covered ---- */

static void set_sgd(struct drps_train_options *o)
{
    o->optimizer = "sgd";
    o->l2 = 1e-3f;
}
static void set_ftrl(struct drps_train_options *o)
{
    o->optimizer = "ftrl";
    o->l1 = .1f;
}
static void set_adam(struct drps_train_options *o)
{
    o->optimizer = "adam";
    o->l2 = 1e-3f;
}
static void set_chosen(struct drps_train_options *o)
{
    o->sv_count = 7;
    o->sv_rule = DRPS_SV_RANDOM;
}
static void set_relay(struct drps_train_options *o)
{
    o->store = "relay";
}
static void set_file(struct drps_train_options *o)
{
    o->store = "file";
}
static void set_patience(struct drps_train_options *o)
{
    o->patience = 2;
}
static void set_threads(struct drps_train_options *o)
{
    o->threads = 3;
    o->l1 = 1e-3f;
}
static void set_nothing(struct drps_train_options *o)
{
    (void)o;
}

static void test_each_covered_round_is_gone_on_from(void **state)
{
    static const struct {
        const char *name;
        void (*set)(struct drps_train_options *o);
        int of_ranks; /* alone */
    } cases[] = {{"adagrad", set_nothing, 0},   {"sgd with l2", set_sgd, 0},
                 {"ftrl", set_ftrl, 0},         {"adam", set_adam, 0},
                 {"patience", set_patience, 0}, {"three threads", set_threads, 0},
                 {"chosen", set_chosen, 1},     {"store relay", set_relay, 1},
                 {"store file", set_file, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        if (cases[i].of_ranks && workers == 1) continue;
        struct drps_train_options o;
        struct drps_train_result want;
        struct world *w = begin(&o);
        uint64_t first, last;
        const uint64_t step = FEW ? 9 : i ? 5 : 1;
        cases[i].set(&o);
        train_plain(w, o, &want);
        leave_checkpoints(w, o);
        covered(w, &first, &last);
        if (last != LAST || first >= LAST - 2)
            fail_msg("%s: rounds %llu to %llu", cases[i].name, (unsigned long long)first,
                     (unsigned long long)last);
        for (uint64_t round = first; round <= last; round += step) {
            put_disk(w, at(w, "kept"));
            go_on(w, o, &round, &want, cases[i].name);
        }
        end(w, &want);
    }
}

/* Without samples to evaluate with, an epoch is over with its last round. */
static void test_epochs_that_are_not_evaluated(void **state)
{
    struct drps_train_options o;
    struct drps_train_result want;
    struct world *w = begin_with(0, &o);
    uint64_t first, last;
    (void)state;
    if (workers > 1) set_chosen(&o); /* logs that cover more rounds */
    train_plain(w, o, &want);
    leave_checkpoints(w, o);
    covered(w, &first, &last);
    assert_true(first < LAST - (workers > 1 ? BATCHES : 2) && last == LAST);
    for (uint64_t round = first; round <= last; round += FEW ? 6 : 1) {
        put_disk(w, at(w, "kept"));
        go_on(w, o, &round, &want, "without evaluation");
    }
    end(w, &want);
}

/* A run of fewer epochs, or of servers that was stopped, has the same rows after a round. */
static void test_a_round_is_what_a_run_was_then(void **state)
{
    struct drps_train_options o, shorter, servers;
    struct drps_train_result want, r;
    struct world *w = begin(&o);
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t first, last, round;
    (void)state;
    leave_checkpoints(w, o);
    covered(w, &first, &last);
    for (round = first; round < LAST; round += FEW ? 9 : 2) {
        struct stopper s = {.rank = 0, .left = (long)round + 1};
        atomic_int now = 1;
        put_disk(w, at(w, "kept"));
        train_remove(at(w, "disk/model.checkpoint"));
        servers = o;
        servers.exchange = DRPS_EXCHANGE_SERVERS;
        servers.checkpoint_vectors = 0;
        servers.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
        stop_by(&servers, &s);
        assert_int_equal(run_world(w, &servers, &want, &err), DRPS_E_INTERRUPTED);
        put_disk(w, at(w, "kept"));
        shorter = o;
        shorter.resume = shorter.resume_at = 1;
        shorter.resume_round = (want.epochs_n * BATCHES) + want.steps;
        shorter.stop = &now;
        if (shorter.resume_round < first || shorter.resume_round >= LAST) {
            drps_train_result_free(&want);
            continue;
        }
        drps_err_clear(&err);
        assert_int_equal(run_world(w, &shorter, &r, &err), DRPS_E_INTERRUPTED);
        if (r.content != want.content)
            fail_msg("after round %llu: %016llx, of servers %016llx",
                     (unsigned long long)shorter.resume_round, (unsigned long long)r.content,
                     (unsigned long long)want.content);
        drps_train_result_free(&r);
        drps_train_result_free(&want);
    }
    world_end(w);
}

static void test_rounds_that_are_not_covered(void **state)
{
    struct drps_train_options o;
    struct world *w = begin(&o);
    uint64_t first, last;
    char says[128];
    (void)state;
    leave_checkpoints(w, o);
    covered(w, &first, &last);
    put_disk(w, at(w, "kept"));
    o.resume = o.resume_at = 1;
    o.resume_round = first - 1;
    (void)snprintf(says, sizeof(says), "round %llu is not covered by ",
                   (unsigned long long)first - 1);
    refused(w, &o, DRPS_E_NOT_FOUND, says);
    (void)snprintf(says, sizeof(says), "disk/model.checkpoint: rounds %llu to %llu are",
                   (unsigned long long)first, (unsigned long long)last);
    refused(w, &o, DRPS_E_NOT_FOUND, says);
    o.resume_round = last + 1;
    refused(w, &o, DRPS_E_NOT_FOUND, says);
    train_remove(at(w, "disk/model.checkpoint"));
    refused(w, &o, DRPS_E_NOT_FOUND, "holds no round that");
    world_end(w);
}

/* What one process logs is restored in memory, and applied batch by batch. */
static void test_what_does_not_go_with_one_process(void **state)
{
    struct drps_train_options o, p;
    struct world *w = begin(&o);
    (void)state;
    p = o;
    set_relay(&p);
    refused(w, &p, DRPS_E_CONFIG, "store relay cannot be, take resident");
    p = o;
    p.local_steps = 1;
    refused(w, &p, DRPS_E_CONFIG, "local steps apply no vectors");
    p = o;
    p.optimizer = "lbfgs";
    refused(w, &p, DRPS_E_CONFIG, "checkpoints of vectors do not go with lbfgs");
    p = o;
    p.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    refused(w, &p, DRPS_E_CONFIG, "and there are to be none");
    p = o;
    p.memory_bytes = 1 << 20;
    refused(w, &p, DRPS_E_MEMORY_BUDGET, "restoring a round");
    assert_false(path_exists(w->model));
    leave_checkpoints(w, o); /* rounds that are logged are not restored elsewhere either */
    o.checkpoint_vectors = 0;
    o.resume = o.resume_at = 1;
    o.resume_round = LAST - 1;
    set_file(&o);
    refused(w, &o, DRPS_E_CONFIG, "store file cannot be, take resident");
    world_end(w);
}

/* A model without classes has no vectors. */
static void test_models_without_vectors(void **state)
{
    struct train_job *j = job_begin("lor", 0, "resident");
    struct drps_train_options o = j->o;
    (void)state;
    o.checkpoint_vectors = 1;
    train_refused(j->plan, &o, DRPS_E_CONFIG, "of models of several scores");
    job_end(j);
}

static void test_what_does_not_go_together(void **state)
{
    struct drps_train_options o, p;
    struct world *w = begin(&o);
    (void)state;
    p = o;
    p.exchange = DRPS_EXCHANGE_ROWS;
    refused(w, &p, DRPS_E_CONFIG, "exchange vectors, or have checkpoints of rows written");
    p = o;
    p.exchange = DRPS_EXCHANGE_SERVERS;
    refused(w, &p, DRPS_E_CONFIG, "exchange vectors, or have checkpoints of rows written");
    p = o;
    p.checkpoint_every.unit = DRPS_CHECKPOINT_NEVER;
    refused(w, &p, DRPS_E_CONFIG, "and there are to be none");
    assert_false(path_exists(w->model));
    world_end(w);
}

/* ---- Ranks that have not the same ---- */

static void cut_log(struct world *w, uint32_t rank, uint64_t number, size_t bytes)
{
    char name[80];
    size_t n;
    (void)snprintf(name, sizeof(name), "disk/model.checkpoint/rank-%u/%llu/vectors.log", rank,
                   (unsigned long long)number);
    char *data = scratch_read(at(w, name), &n);
    scratch_write(at(w, name), data, n < bytes ? n : bytes);
    free(data);
}

/* Each rank has lost another part of its log, or its newest checkpoint: they go on together. */
static void test_ranks_go_on_from_what_all_have(void **state)
{
    struct drps_train_options o;
    struct drps_train_result want;
    struct world *w = begin(&o);
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST], drawn = 0;
    char name[64];
    (void)state;
    train_plain(w, o, &want);
    leave_checkpoints(w, o);
    assert_true(train_checkpoints(at(w, "kept/model.checkpoint"), 0, numbers) >= 2);
    for (int i = 0; i < 24 / DRPS_TEST_ONE_IN; i++) {
        put_disk(w, at(w, "kept"));
        for (uint32_t r = 0; r < workers; r++) {
            const uint64_t what = drps_rng_at(seed, drawn++) % 4;
            (void)snprintf(name, sizeof(name), "disk/model.checkpoint/rank-%u/%llu", r,
                           (unsigned long long)numbers[0]);
            if (what) train_remove(at(w, name));
            if (what > 1) cut_log(w, r, numbers[1], (size_t)(drps_rng_at(seed, drawn++) % 20000));
        }
        go_on(w, o, NULL, &want, "cut off");
    }
    end(w, &want);
}

/* ---- Damage ---- */

struct told {
    char text[4096];
};

static void tell(void *ctx, enum drps_log_level level, const char *text)
{
    struct told *t = ctx;
    const size_t n = strlen(t->text);
    (void)level;
    (void)snprintf(t->text + n, sizeof(t->text) - n, "%s\n", text);
}

/* Rounds before the damage are used, and what is damaged is named. */
static void test_a_damaged_log(void **state)
{
    struct drps_train_options o;
    struct drps_train_result want;
    struct world *w = begin(&o);
    struct told told = {{0}};
    const struct drps_log log = {DRPS_LOG_WARN, tell, &told};
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    char name[120], part[80];
    size_t n;
    (void)state;
    train_plain(w, o, &want);
    leave_checkpoints(w, o);
    put_disk(w, at(w, "kept"));
    const size_t all = train_checkpoints(at(w, "kept/model.checkpoint"), 0, numbers);
    assert_true(all >= 2);
    for (size_t i = 0; i < workers * (all - 1); i++) {
        (void)snprintf(name, sizeof(name), "disk/model.checkpoint/rank-%zu/%llu", i % workers,
                       (unsigned long long)numbers[i / workers]);
        train_remove(at(w, name));
    }
    (void)snprintf(part, sizeof(part), "model.checkpoint/rank-%u/%llu/vectors.log", workers - 1,
                   (unsigned long long)numbers[all - 1]);
    (void)snprintf(name, sizeof(name), "disk/%s", part);
    char *data = scratch_read(at(w, name), &n);
    data[n / 2] ^= 4;
    scratch_write(at(w, name), data, n);
    free(data);
    struct drps_findings found = {0};
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(
        drps_checkpoints_verify(drps_io_os(), at(w, "disk/model.checkpoint"), &found, &err), 0);
    assert_int_equal(found.problems, 1);
    assert_non_null(strstr(found.kept[0].text, part));
    o.log = &log;
    go_on(w, o, NULL, &want, "damaged");
    assert_non_null(strstr(told.text, "cannot be used: "));
    assert_non_null(strstr(told.text, part));
    end(w, &want);
}

/* ---- A disk that fails ---- */

/* The log cannot be written once: the model is the same, and there are checkpoints again. */
static void test_a_log_that_cannot_be_written(void **state)
{
    struct drps_train_options o;
    struct drps_train_result want, r;
    struct world *w = begin(&o);
    (void)state;
    train_plain(w, o, &want);
    o.keep_checkpoints = 1;
    for (long k = 1; k < 40; k += FEW ? 12 : 3) {
        struct fault_io *f = fault_io_new(drps_io_os());
        atomic_store(&f->only, "vectors.log");
        fault_io_arm(f, FAULT_PWRITE, k, 0, k % 2 ? FAULT_ERROR : FAULT_TORN, -ENOSPC);
        train_remove(at(w, "disk"));
        assert_int_equal(mkdir(at(w, "disk"), 0777), 0);
        replaced = &f->io;
        train_world(w, &o, &r);
        replaced = NULL;
        const int fired = atomic_load(&f->fired);
        fault_io_free(f);
        train_check_same(&r, &want, "a full disk", k);
        drps_train_result_free(&r);
        if (!fired) break;
        go_on(w, o, NULL, &want, "after a full disk");
    }
    end(w, &want);
}

/* Nothing can be written from some call on: the run ends, and the next one goes on. */
static void test_a_disk_that_stays_full(void **state)
{
    struct drps_train_options o;
    struct drps_train_result want, r;
    struct world *w = begin(&o);
    (void)state;
    train_plain(w, o, &want);
    for (long k = 30; k<330; k += DRPS_TEST_ONE_IN> 1 ? 100 : 30) {
        struct drps_err err = DRPS_ERR_INIT;
        struct fault_io *f = fault_io_new(drps_io_os());
        fault_io_arm(f, FAULT_PWRITE, k, 1, FAULT_TORN, -ENOSPC);
        train_remove(at(w, "disk"));
        assert_int_equal(mkdir(at(w, "disk"), 0777), 0);
        replaced = &f->io;
        const int rc = run_world(w, &o, &r, &err);
        replaced = NULL;
        fault_io_free(f);
        drps_train_result_free(&r);
        if (rc == 0) break;
        o.resume = 1;
        train_world(w, &o, &r);
        train_check_same(&r, &want, "after a disk that stays full", k);
        drps_train_result_free(&r);
        o.resume = 0;
    }
    end(w, &want);
}

/* ---- Power ---- */

/* The power goes at any change or sync of some rank; what may be found then is gone on from. */
static void test_power_loss(void **state)
{
    struct drps_train_options o;
    struct drps_train_result want, r;
    struct world *w = begin(&o);
    long resumed = 0, cuts = 0;
    char disk[SCRATCH_PATH_BYTES], found[SCRATCH_PATH_BYTES];
    (void)state;
    train_plain(w, o, &want);
    (void)snprintf(disk, sizeof(disk), "%s", at(w, "disk"));
    (void)snprintf(found, sizeof(found), "%s", at(w, "found"));
    for (uint64_t i = 0; i < 30 / DRPS_TEST_ONE_IN; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        train_remove(disk);
        assert_int_equal(mkdir(disk, 0777), 0);
        struct power *p = power_new(__real_drps_io_os(), disk);
        const long most = workers > 1 ? 900 : 250; /* a run has more calls */
        power_cut_at(p, POWER_CHANGES | POWER_SYNCS,
                     20 + (long)(drps_rng_at(seed, i) % (uint64_t)most));
        replaced = &p->io;
        const int rc = run_world(w, &o, &r, &err);
        replaced = NULL;
        drps_train_result_free(&r);
        for (uint64_t choice = 0; choice < 3 && rc < 0; choice++) {
            train_remove(found);
            assert_int_equal(power_found(p, choice < 2 ? choice : i + 2, found), 0);
            put_disk(w, found);
            o.resume = 1;
            train_world(w, &o, &r);
            train_check_same(&r, &want, "after the power was gone", (long)i);
            resumed += r.resumed_step > 0;
            drps_train_result_free(&r);
            o.resume = 0;
        }
        cuts += rc < 0;
        power_free(p);
    }
    print_message("seed %llu: the power went %ld times, %ld runs went on within an epoch\n",
                  (unsigned long long)seed, cuts, resumed);
    assert_true(cuts > 0 && resumed > 0);
    end(w, &want);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest of_ranks[] = {
        cmocka_unit_test(test_each_covered_round_is_gone_on_from),
        cmocka_unit_test(test_epochs_that_are_not_evaluated),
        cmocka_unit_test(test_a_round_is_what_a_run_was_then),
        cmocka_unit_test(test_rounds_that_are_not_covered),
        cmocka_unit_test(test_what_does_not_go_together),
        cmocka_unit_test(test_ranks_go_on_from_what_all_have),
        cmocka_unit_test(test_a_damaged_log),
        cmocka_unit_test(test_a_log_that_cannot_be_written),
        cmocka_unit_test(test_a_disk_that_stays_full),
        cmocka_unit_test(test_power_loss),
    };
    const struct CMUnitTest of_one[] = {
        cmocka_unit_test(test_each_covered_round_is_gone_on_from),
        cmocka_unit_test(test_epochs_that_are_not_evaluated),
        cmocka_unit_test(test_rounds_that_are_not_covered),
        cmocka_unit_test(test_what_does_not_go_with_one_process),
        cmocka_unit_test(test_models_without_vectors),
        cmocka_unit_test(test_ranks_go_on_from_what_all_have),
        cmocka_unit_test(test_a_damaged_log),
        cmocka_unit_test(test_a_log_that_cannot_be_written),
        cmocka_unit_test(test_a_disk_that_stays_full),
        cmocka_unit_test(test_power_loss),
    };
    const struct CMUnitTest of_svm[] = {
        cmocka_unit_test(test_each_covered_round_is_gone_on_from),
        cmocka_unit_test(test_epochs_that_are_not_evaluated),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    int failed = cmocka_run_group_tests(of_ranks, NULL, NULL);
    workers = 1;
    failed += cmocka_run_group_tests(of_one, NULL, NULL);
    algo = "svm"; /* one against the rest */
    are_alike = 1;
    failed += cmocka_run_group_tests(of_svm, NULL, NULL);
    return failed ? 1 : 0;
}
