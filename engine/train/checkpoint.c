/* Checkpoints are written while a run trains, and removed when its model is there. */
#include "engine/train/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_clock.h"
#include "base/folder/drps_manifest.h"
#include "engine/train/job.h"
#include "engine/warm/drps_warm.h"

void drps_job_state(const struct drps_job *job, uint64_t epoch, const struct drps_epoch_part *done,
                    struct drps_state *s)
{
    const struct drps_train_options *o = job->options;
    const struct drps_train_result *r = job->result;
    *s = (struct drps_state){.rows = drps_plan_own_rows(&job->plan->info).rows,
                             .row_bytes = job->server.row_bytes,
                             .optim = job->asked,
                             .sync = o->sync,
                             .epochs = o->epochs,
                             .patience = o->patience,
                             .staleness = o->staleness,
                             .local_steps = o->local_steps,
                             .no_claim = o->no_claim,
                             .batch_mean = o->batch_mean,
                             .metric = o->metric,
                             .lr_decay = o->lr_decay,
                             .wsp = o->wsp,
                             .lr_stale = o->lr_stale,
                             .push = o->push,
                             .pull = o->pull,
                             .pull_cached = o->pull_cached,
                             .seed = job->server.model.seed,
                             .init_scale = job->server.model.init_scale,
                             .epoch = epoch,
                             .part = *done,
                             .best_epoch = r->best_epoch,
                             .best_content = r->best_epoch ? r->content : 0,
                             .best_score = job->best_score,
                             .done = r->epochs};
    if (job->newton) s->newton = *drps_newton_state(job->newton);
    memcpy(s->plan_id, job->plan->info.id, sizeof(s->plan_id));
    memcpy(s->changed, r->changed, sizeof(s->changed));
}

/* The best epoch's parameters lie where the model is written. */
static int add_best(const struct drps_job *job, struct drps_checkpoint_writer *w,
                    struct drps_err *err)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    const uint64_t best = job->result->best_epoch;
    if (!job->whole || !best) return 0;
    if (c->newest && c->linked_best == best) {
        if (drps_checkpoint_link_best(w, c->newest, err) == 0) return 0;
        drps_err_clear(err); /* a file system without second names: copied again */
    }
    char *from = drps_trained_params_path(&job->trained);
    if (!from) return drps_err_set(err, -ENOMEM, "no memory to copy the best epoch");
    int rc = drps_checkpoint_add_best(w, from, err);
    free(from);
    return rc;
}

/* Have the store forget the saves of checkpoints first .. last, which are gone. */
static void forget(struct drps_job *job, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < DRPS_STORE_SAVES_MOST; i++) {
        struct drps_job_save *s = &job->checkpoints.saves[i];
        if (!s->number || s->number < first || s->number > last) continue;
        job->server.ops->forget(job->server.store, s->save);
        s->number = 0;
    }
}

/* Whether all rows must be there, for others than this run: it is told so, its checkpoints lie
 * where other machines may read them, or the run ends with this one. */
static int needs_rows(const struct drps_job *job, const struct drps_state *state)
{
    const struct drps_train_options *o = job->options;
    return o->checkpoint_rows || o->checkpoint_vectors || o->checkpoint_dir ||
           state->epoch > o->epochs || job->result->stopped_early;
}

/* Returns whether each row is in a batch, or evaluated; rows of a base may be in none. */
static int uses_all_rows(const struct drps_job *job)
{
    return !job->plan->info.base[0];
}

/* A store that saves itself goes on at its own next step, which is that of the state unless some
 * evaluation steps are done. It leaves rows that no step has used to be made anew: so these must be
 * fresh ones, or all rows have been used, which is sure after two epochs. */
static int can_save(const struct drps_job *job, const struct drps_state *state)
{
    const struct drps_server *server = &job->server;
    const uint64_t steps = job->plan->info.batches + job->plan->info.eval_batches;
    const uint64_t next = (job->checkpoints.state.part.step + server->steps) % steps;
    return server->ops->save && !server->holds && !needs_rows(job, state) &&
           next == state->part.step &&
           (!server->saved || (uses_all_rows(job) && server->steps >= 2 * steps));
}

static int save_store(struct drps_job *job, struct drps_checkpoint_writer *w, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_job_save *free_one = NULL;
    const char *dir;
    unsigned save;
    for (size_t i = 0; i < DRPS_STORE_SAVES_MOST; i++)
        if (!c->saves[i].number) free_one = &c->saves[i];
    if (!free_one) return -ENOTSUP;
    int rc = drps_checkpoint_make_store(w, &dir, err);
    if (rc == 0) rc = job->server.ops->save(job->server.store, dir, &save, err);
    if (rc == 0) *free_one = (struct drps_job_save){.number = c->next, .save = save};
    return rc;
}

/* How the rows come into a checkpoint: the store saves itself, or those come that have changed, or
 * all. */
enum way { BY_STORE, CHANGED_ROWS, ALL_ROWS };

static enum way choose_way(const struct drps_job *job, const struct drps_state *state)
{
    if (can_save(job, state)) return BY_STORE;
    return job->checkpoints.shares_rows ? CHANGED_ROWS : ALL_ROWS;
}

static int add_rows(struct drps_job *job, enum way way, struct drps_checkpoint_writer *w,
                    struct drps_err *err)
{
    const struct drps_server *server = &job->server;
    if (way == BY_STORE) return save_store(job, w, err);
    if (way == ALL_ROWS) return drps_server_scan(server, 0, drps_checkpoint_add, w, err);
    int rc = drps_checkpoint_take_rows(w, job->checkpoints.newest, err);
    return rc < 0 ? rc : server->ops->scan_changed(server->store, drps_checkpoint_add, w, err);
}

/* Begin the checkpoint, with its rows. -ENOTSUP: the store cannot save itself there. */
static int write_rows(struct drps_job *job, const struct drps_state *state, enum way way,
                      struct drps_checkpoint_writer **w_out, struct drps_err *err)
{
    int rc = drps_checkpoint_begin(&job->checkpoints.place, job->checkpoints.next, state->rows,
                                   (size_t)state->row_bytes, w_out, err);
    if (rc < 0) return rc;
    rc = add_rows(job, way, *w_out, err);
    if (rc == 0) return 0;
    drps_checkpoint_abort(*w_out);
    *w_out = NULL;
    return rc;
}

/* What there is beside rows: see drps_job_held(). */
static int add_held(const struct drps_job *job, struct drps_checkpoint_writer *w,
                    struct drps_err *err)
{
    const struct drps_checkpoint_held held = drps_job_held(job, &job->options->push);
    if (!held.slots) return 0;
    const void *rows = job->topic  ? (const void *)drps_topic_state(job->topic)
                       : job->push ? drps_push_slots(job->push)
                                   : drps_exchange_left(job->exchange);
    return drps_checkpoint_add_held(w, &held, rows, err);
}

/* With rank 0's the rows have their names. */
static int add_names(const struct drps_job *job, struct drps_checkpoint_writer *w,
                     struct drps_err *err)
{
    if (!job->whole) return 0;
    char *from = drps_path_join(job->trained.dir, DRPS_TRAINED_NAMES);
    if (!from) return drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
    int rc = drps_checkpoint_add_names(w, from, job->checkpoints.newest, err);
    free(from);
    return rc;
}

/* What the run has done, and what its rows are. */
static json_t *describe(const struct drps_job *job, const struct drps_state *state)
{
    json_t *j = drps_state_to_json(state);
    json_t *of = drps_warm_describe(job->plan, job->whole);
    json_t *names = job->whole
                        ? json_pack("{s:I, s:o}", "bytes", (json_int_t)job->trained.names_bytes,
                                    "checksum", drps_manifest_hex(job->trained.names_sum))
                        : json_null();
    const uint64_t round = drps_job_round(job, state->epoch, state->part.step);
    if (json_object_set_new(of, "names", names) == 0 &&
        json_object_set(j, DRPS_WARM_MEMBER, of) == 0 &&
        (!job->log || drps_vector_log_describe(j, round, job->server.model.dim) == 0)) {
        json_decref(of);
        return j;
    }
    json_decref(of);
    json_decref(j);
    return NULL;
}

static int write_in(struct drps_job *job, const struct drps_state *state, enum way way,
                    uint64_t *bytes_out, struct drps_err *err)
{
    struct drps_checkpoint_writer *w = NULL;
    json_t *manifest = describe(job, state);
    if (!manifest) return drps_err_set(err, -ENOMEM, "no memory to describe a checkpoint");
    int rc = write_rows(job, state, way, &w, err);
    if (rc < 0) {
        json_decref(manifest);
        return rc;
    }
    rc = add_best(job, w, err);
    if (rc == 0) rc = add_held(job, w, err);
    if (rc == 0) rc = add_names(job, w, err);
    if (rc == 0)
        rc = drps_checkpoint_commit(w, manifest, bytes_out, err);
    else
        drps_checkpoint_abort(w);
    json_decref(manifest);
    return rc;
}

/* Where the store cannot save itself, or a part of the checkpoint before is gone, all rows are
 * written. */
static int write_one(struct drps_job *job, const struct drps_state *state, enum way *way_out,
                     uint64_t *bytes_out, struct drps_err *err)
{
    *way_out = choose_way(job, state);
    int rc = write_in(job, state, *way_out, bytes_out, err);
    if (!(*way_out == BY_STORE && rc == -ENOTSUP) && !(*way_out == CHANGED_ROWS && rc == -ENOENT))
        return rc;
    drps_err_clear(err);
    *way_out = ALL_ROWS;
    return write_in(job, state, *way_out, bytes_out, err);
}

/* Whether some rank has failed to write it, as all ranks learn. */
static int any_failed(const struct drps_job *job, int failed, int *any_out, struct drps_err *err)
{
    uint64_t value = failed != 0;
    int rc = job->ranks ? drps_cluster_least(&job->cluster, &value, err) : 0;
    *any_out = value != 0;
    return rc;
}

/* Remove all checkpoints of another rank, as far as they lie here and nobody uses them. Returns 0
 * when there is no folder of it. */
static int remove_rank(const struct drps_job *job, uint32_t rank)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_checkpoints other;
    struct drps_err err = DRPS_ERR_INIT;
    struct stat st;
    int rc = drps_checkpoints_init(&other, c->place.io, c->place.root, rank, &err);
    const int is = rc == 0 && stat(other.dir, &st) == 0;
    if (is) rc = drps_checkpoints_lock(&other, &err);
    if (is && rc == 0) rc = drps_checkpoints_keep(&other, 1, 0, 0, &err);
    if (rc < 0)
        drps_log(job->options->log, rc == -EBUSY ? DRPS_LOG_DEBUG : DRPS_LOG_WARN,
                 "a checkpoint that is not needed stays: %s", err.text);
    drps_checkpoints_destroy(&other);
    return is;
}

/* What ranks have left that an earlier run had, and this one does not have. */
static void remove_other_ranks(const struct drps_job *job)
{
    uint32_t rank = job->ranks ? job->cluster.count : 1;
    while (job->whole && remove_rank(job, rank))
        rank++;
}

/* The first that is kept: of the newest two, or of three, so that a log that was cut short by the
 * last one does not leave but few rounds covered. */
static uint64_t first_kept(const struct drps_job *job)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    if (job->log && c->before && !drps_round_log_due(job->log)) return c->before;
    return c->newest ? c->newest : c->next;
}

/* Whether rows that the store has not changed yet are read from a checkpoint. */
static int reads_checkpoint(const struct drps_job *job)
{
    const struct drps_server *server = &job->server;
    return server->saved && server->saved_ctx == job->checkpoints.from &&
           !job->checkpoints.copy.dir;
}

/* The newest checkpoints of this run are kept, and the one that the store still reads; what cannot
 * be removed stays. */
static void remove_old(struct drps_job *job)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_err err = DRPS_ERR_INIT;
    const uint64_t first = first_kept(job);
    const uint64_t read = reads_checkpoint(job) ? c->read : 0;
    if (drps_checkpoints_keep(&c->place, first, c->next, read, &err) < 0)
        drps_log(job->options->log, DRPS_LOG_DEBUG, "an old checkpoint stays: %s", err.text);
    forget(job, 1, first - 1);
    remove_other_ranks(job);
}

/* The newest checkpoint has the rows as the store has them: the next one may share files with it,
 * and what the store has not changed yet is read from it, as the one of before will be removed. */
static int go_on_from_rows(struct drps_job *job, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_server *server = &job->server;
    c->shares_rows = c->marks_rows;
    if (c->shares_rows) server->ops->forget_changes(server->store);
    if (!reads_checkpoint(job)) return 0;
    const int rc = drps_checkpoint_follow(c->from, &c->place, c->next, err);
    if (rc == 0) c->read = c->next;
    return rc;
}

static void accept(struct drps_job *job, const struct drps_state *state, enum way way,
                   uint64_t bytes)
{
    const struct drps_train_options *o = job->options;
    struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_train_cut cut = {
        .number = c->next, .epoch = state->epoch, .step = state->part.step};
    struct drps_err why = DRPS_ERR_INIT;
    if (way == BY_STORE || go_on_from_rows(job, &why) == 0)
        remove_old(job);
    else
        drps_log(o->log, DRPS_LOG_WARN, "earlier checkpoints stay: %s", why.text);
    if (job->log) drps_job_log_after(job, c->next, state);
    c->before = c->newest;
    c->newest = c->next++;
    c->linked_best = job->result->best_epoch;
    job->result->checkpoints.n++;
    job->result->checkpoints.bytes += bytes;
    if (o->on_checkpoint) o->on_checkpoint(o->ctx, &cut);
}

/* Rounds are logged beside the checkpoint before; but that has not the best epoch, if it was this
 * one, and a run that went on from it would not know of that. */
static void put_off(struct drps_job *job)
{
    drps_round_log_put_off(job->log);
    if (job->options->patience) drps_round_log_close(job->log);
}

static void reject(struct drps_job *job, const struct drps_err *why)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    forget(job, c->next, c->next);
    const int rc = drps_checkpoints_remove(&c->place, c->next, NULL);
    (void)rc; /* else the next one replaces it */
    job->result->checkpoints.failed++;
    if (job->log) put_off(job);
    if (!why->code) return; /* the rank that failed says why */
    drps_log(job->options->log, c->told_failure ? DRPS_LOG_DEBUG : DRPS_LOG_WARN,
             "no checkpoint was written, training goes on%s: %s",
             c->newest ? " (the one before stays)" : "", why->text);
    c->told_failure = 1;
}

void drps_job_remark_failed(const struct drps_job *job)
{
    const unsigned long long n = job->result->checkpoints.failed;
    if (n < 2) return; /* the first was told of */
    drps_log(job->options->log, DRPS_LOG_WARN, "%llu checkpoint%s could not be written in %s", n,
             n == 1 ? "" : "s", job->checkpoints.place.root);
}

int drps_job_checkpoint(void *ctx, uint64_t epoch, const struct drps_epoch_part *done,
                        struct drps_err *err)
{
    struct drps_job *job = ctx;
    struct drps_state state;
    struct drps_err why = DRPS_ERR_INIT;
    const uint64_t start = drps_clock_ns();
    uint64_t bytes = 0;
    enum way way;
    int any;
    if (job->log) drps_job_sync_log(job); /* up to this checkpoint, each round can be restored */
    drps_job_state(job, epoch, done, &state);
    const int failed = write_one(job, &state, &way, &bytes, &why) < 0;
    int rc = any_failed(job, failed, &any, err);
    if (rc < 0) return rc;
    if (any)
        reject(job, &why);
    else
        accept(job, &state, way, bytes);
    const uint64_t took = drps_clock_ns() - start;
    job->result->checkpoints.seconds += (double)took * 1e-9;
    drps_job_set_due(job, epoch, done->step, took);
    return 0;
}

/* ---- The end ---- */

static void drop_checkpoints(struct drps_job *job)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_err err = DRPS_ERR_INIT;
    const int any = c->newest || job->result->already || c->begins_with_own;
    if (job->options->keep_checkpoints || !any) return;
    remove_other_ranks(job);
    if (drps_checkpoints_keep(&c->place, 1, 0, 0, &err) < 0)
        drps_log(job->options->log, DRPS_LOG_WARN, "checkpoints that are not needed stay: %s",
                 err.text);
}

/* A rank that was lost at the end, when nobody needed it, cannot clear up. One that is there still
 * uses its folders, and does so itself. */
static void clear_lost_ranks(const struct drps_job *job)
{
    for (uint32_t rank = 1; job->whole && job->ranks && rank < job->cluster.count; rank++) {
        if (!job->options->keep_checkpoints) (void)remove_rank(job, rank);
        drps_job_clear_stage(job, rank);
    }
}

/* A run that is killed while it makes the model leaves what was trained; so does the next one. */
static void drop_kept(const struct drps_job *job)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (!job->whole || !job->options->resume) return;
    char *path = drps_job_beside(job, DRPS_TRAINED_SUFFIX);
    int rc = path ? drps_trained_remove_same(job->plan->io, path, job->result->content, &err) : 0;
    if (rc < 0)
        drps_log(job->options->log, DRPS_LOG_WARN, "what a killed run has kept stays: %s",
                 err.text);
    free(path);
}

void drps_job_clear(struct drps_job *job)
{
    drop_kept(job);
    drop_checkpoints(job);
    clear_lost_ranks(job);
}

void drps_job_close_checkpoints(struct drps_job *job)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    drps_checkpoint_close(c->from);
    drps_checkpoints_destroy(&c->copy);
    drps_checkpoints_destroy(&c->place);
    drps_state_destroy(&c->state);
}
