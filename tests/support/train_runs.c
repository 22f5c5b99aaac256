/* Runs of training end by faults that are injected into the plan's file I/O, or by the flag that
 * stops them. */
#include "support/train_runs.h"

#include <errno.h>

#include "engine/publish/drps_modeldir.h"
#include "support/fault_io.h"
#include "support/plan_maker.h"

enum {
    CHANGES = FAULT_PWRITE | FAULT_FSYNC | FAULT_FTRUNCATE | FAULT_FALLOCATE | FAULT_RENAME |
              FAULT_UNLINK | FAULT_MKDIR | FAULT_RMDIR | FAULT_EXCHANGE | FAULT_LINK,
};

/* ---- Any run ---- */

const struct drps_log quiet = {.level = DRPS_LOG_ERROR};

/* Documents have rows of their own, behind those of words. */
static void add_documents(struct maker *m)
{
    m->classification = 0;
    m->no_bias = 1;
    for (size_t i = 0; i < m->n; i++)
        maker_entry(&m->train[i], m->features + (uint32_t)i, 0);
    m->features += (uint32_t)m->n;
}

struct drps_plan *train_plan(struct scratch *s, const char *algo, uint32_t factors)
{
    const int ratings = strcmp(algo, "lmf") == 0, topics = strcmp(algo, "topic") == 0;
    struct maker m;
    maker_init(&m, algo, ratings ? "squared" : topics ? "coding" : "logistic", 400, 20);
    m.rank = factors;
    m.small_windows = 1;
    maker_random(&m, 500, ratings ? 2 : 4, 0, 7);
    maker_random(&m, 90, ratings ? 2 : 4, 1, 8);
    if (topics) add_documents(&m);
    struct drps_plan *plan = maker_write(&m, scratch_path(s, "."), "plan");
    maker_free(&m);
    return plan;
}

void train_well(const struct drps_plan *plan, const struct drps_train_options *o,
                struct drps_train_result *r, const char *what)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_train_run(plan, o, r, &err) < 0) fail_msg("%s: %s", what, err.text);
}

void train_refused(const struct drps_plan *plan, const struct drps_train_options *o, int code,
                   const char *says)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    assert_int_equal(drps_train_run(plan, o, &r, &err), code);
    if (!strstr(err.text, says)) fail_msg("does not say '%s' but: %s", says, err.text);
    drps_train_result_free(&r);
}

int train_until(const struct drps_plan *plan, const struct drps_train_options *o, long k)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    struct drps_plan failing = *plan;
    struct fault_io *f = fault_io_new(drps_io_os());
    failing.io = &f->io;
    fault_io_arm(f, CHANGES, k, 1, k % 2 ? FAULT_ERROR : FAULT_TORN, -EIO);
    const int rc = drps_train_run(&failing, o, &r, &err);
    const int fired = atomic_load(&f->fired);
    drps_train_result_free(&r);
    fault_io_free(f);
    if (!fired && rc < 0) fail_msg("no fault: %s", err.text);
    return !fired;
}

long train_changes(const struct drps_plan *plan, const struct drps_train_options *o)
{
    struct drps_train_result r;
    struct drps_plan counted = *plan;
    struct fault_io *f = fault_io_new(drps_io_os());
    unsigned long n = 0;
    counted.io = &f->io;
    train_well(&counted, o, &r, "no fault");
    drps_train_result_free(&r);
    for (int i = 0; i < FAULT_NUMBERS; i++)
        if (CHANGES & (1 << i)) n += atomic_load(&f->calls[i]);
    fault_io_free(f);
    return (long)n;
}

void train_check_same(const struct drps_train_result *got, const struct drps_train_result *want,
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

float train_intercept(const char *model, size_t dim)
{
    struct drps_modeldir *md;
    const uint32_t id = 0;
    float *row = calloc(dim, sizeof(*row));
    assert_non_null(row);
    assert_int_equal(drps_modeldir_open(drps_io_os(), model, 16 << 20, &md, NULL), 0);
    assert_int_equal(drps_modeldir_gather(md, &id, 1, row, NULL), 0);
    drps_modeldir_close(md);
    const float intercept = row[0];
    free(row);
    return intercept;
}

void train_remove(const char *path)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_io_remove_tree(drps_io_os(), path, &err) < 0) fail_msg("%s: %s", path, err.text);
}

size_t train_checkpoints(const char *root, uint32_t rank,
                         uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST])
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoints c;
    size_t n = 0;
    if (drps_checkpoints_init(&c, drps_io_os(), root, rank, &err) < 0 ||
        drps_checkpoints_list(&c, numbers, &n, &err) < 0)
        fail_msg("checkpoints of rank %u: %s", rank, err.text);
    drps_checkpoints_destroy(&c);
    return n;
}

/* ---- A run that stops before a batch ---- */

static void count_batch(void *ctx, const struct drps_train_batch *batch)
{
    struct stopper *s = ctx;
    if (batch->rank == s->rank && batch->moment == DRPS_BATCH_PULLED && --s->left == 0)
        atomic_store(&s->stop, 1);
}

void stop_by(struct drps_train_options *o, struct stopper *s)
{
    o->stop = &s->stop;
    o->on_batch = count_batch;
    o->ctx = s;
}

void stop_by_nobody(struct drps_train_options *o)
{
    o->stop = NULL;
    o->on_batch = NULL;
    o->ctx = NULL;
}

/* ---- A run that is to go on ---- */

static void find_least(struct train_job *j)
{
    struct drps_err err = DRPS_ERR_INIT;
    j->o.memory_bytes = 1;
    assert_int_equal(drps_train_run(j->plan, &j->o, &j->want, &err), DRPS_E_MEMORY_BUDGET);
    j->o.memory_bytes = j->want.memory.used_bytes;
}

struct train_job *job_begin(const char *algo, uint32_t factors, const char *store)
{
    struct train_job *j = calloc(1, sizeof(*j));
    assert_non_null(j);
    scratch_begin(&j->s);
    j->plan = train_plan(&j->s, algo, factors);
    (void)snprintf(j->model, sizeof(j->model), "%s", scratch_path(&j->s, "model"));
    (void)snprintf(j->checkpoints, sizeof(j->checkpoints), "%s",
                   scratch_path(&j->s, "model.checkpoint"));
    j->o = (struct drps_train_options){.model_path = j->model,
                                       .epochs = JOB_EPOCHS,
                                       .seed = 5,
                                       .store = store,
                                       .replace = 1,
                                       .log = &quiet,
                                       .checkpoint_every = {DRPS_CHECKPOINT_NEVER, 0}};
    const int relay = strcmp(store, "relay") == 0;
    if (relay) find_least(j);
    job_want(j, &j->o);
    if (relay) assert_true(j->want.windows_n > 8);
    j->o.checkpoint_every = (struct drps_checkpoint_every){DRPS_CHECKPOINT_BATCHES, 7};
    return j;
}

void job_end(struct train_job *j)
{
    drps_train_result_free(&j->want);
    drps_plan_close(j->plan);
    scratch_end(&j->s);
    free(j);
}

void job_want(struct train_job *j, const struct drps_train_options *o)
{
    drps_train_result_free(&j->want);
    train_well(j->plan, o, &j->want, "undisturbed");
}

void job_clear(struct train_job *j)
{
    train_remove(j->model);
    train_remove(j->checkpoints);
    train_remove(scratch_path(&j->s, "model.partial"));
    train_remove(scratch_path(&j->s, "model.trained"));
}

size_t job_break_off(struct train_job *j, const struct drps_train_options *o, long k,
                     uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST])
{
    job_clear(j);
    if (train_until(j->plan, o, k)) fail_msg("it ends before change %ld of a file", k);
    return train_checkpoints(j->checkpoints, 0, numbers);
}

void job_leave_checkpoints(struct train_job *j, const struct drps_train_options *o)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    for (long k = 100; job_break_off(j, o, k, numbers) < 2;)
        k += 20;
}

static void check_absent(struct train_job *j, const char *name, const char *what, long k)
{
    if (path_exists(scratch_path(&j->s, name))) fail_msg("%s %ld: %s stays", what, k, name);
}

uint64_t job_resume(struct train_job *j, struct drps_train_options o, const char *what, long k)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_train_result r;
    o.resume = 1;
    o.replace = 0;
    if (drps_train_run(j->plan, &o, &r, &err) < 0) fail_msg("%s %ld: %s", what, k, err.text);
    if (r.already)
        assert_int_equal(r.content, j->want.content);
    else
        train_check_same(&r, &j->want, what, k);
    assert_true(path_exists(j->model));
    check_absent(j, "model.checkpoint", what, k);
    check_absent(j, "model.partial", what, k);
    check_absent(j, "model.trained", what, k);
    const uint64_t from = r.already ? 0 : r.resumed_epoch;
    drps_train_result_free(&r);
    return from;
}
