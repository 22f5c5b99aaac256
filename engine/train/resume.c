/* Going on from a checkpoint: which one it is, what of the options it settles, and what the run has
 * from it beside the rows. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder/drps_durable.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/train/job.h"

/* What all ranks would say is told once. */
static enum drps_log_level level(const struct drps_job *job)
{
    return job->whole ? DRPS_LOG_INFO : DRPS_LOG_DEBUG;
}

/* ---- Which checkpoint ---- */

/* One that was looked at. */
enum { FOUND_MOST = 3 };
struct found {
    uint64_t number;
    struct drps_checkpoint *cp; /* own; NULL: it is of no use */
    struct drps_state state;    /* own */
    int logged;                 /* rounds of vectors follow it, up to this one: */
    uint64_t last_round;
};

/* A step of the intercept is due in plans in which it learns late, for batches that were trained.
 */
static int intercept_can_be_due(const struct drps_plan_info *info, const struct drps_state *s)
{
    return !s->part.intercept.batches ||
           (info->lanes > 1 && !info->grid_users && drps_plan_common_rows(info) &&
            s->part.intercept.batches <= s->part.step);
}

static int check_fit(const struct drps_job *job, const struct drps_state *s, const char *path,
                     struct drps_err *err)
{
    const struct drps_plan_info *info = &job->plan->info;
    if (strcmp(s->plan_id, info->id) != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is of plan %s, not of %s (%s): train the plan that it is of, or "
                            "move it away",
                            path, s->plan_id, job->plan->dir, info->id);
    if (s->rows != drps_plan_own_rows(info).rows ||
        s->part.step >= info->batches + info->eval_batches || s->part.step > info->batches ||
        s->part.samples > info->samples || !isfinite(s->part.loss) ||
        !isfinite(s->part.intercept.gradient) || !intercept_can_be_due(info, s))
        return drps_err_set(err, DRPS_E_CORRUPT, "%s contradicts its plan", path);
    return 0;
}

/* The parameters of the best epoch must be what the manifest says. */
static int check_best(const struct drps_job *job, const struct found *f, struct drps_err *err)
{
    uint64_t bytes, sum;
    if (!job->whole || !f->state.best_epoch) return 0;
    char *path = drps_path_join(drps_checkpoint_dir(f->cp), DRPS_CHECKPOINT_BEST);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    int rc = drps_copy_file(job->plan->io, path, NULL, &bytes, &sum, err);
    if (rc == 0 && sum != f->state.best_content)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s is damaged", path);
    free(path);
    return rc;
}

/* What is held beside rows must be there, and as large as the plan has it. */
static int check_held(const struct drps_job *job, const struct found *f, struct drps_err *err)
{
    const struct drps_checkpoint_held due = drps_job_held(job, &f->state.push);
    const struct drps_checkpoint_held *held = drps_checkpoint_held(f->cp);
    if (held->slots == due.slots && held->row_bytes == due.row_bytes) return 0;
    if (job->options->sv_rule == DRPS_SV_PROJECT || !due.slots)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s was written by a run that %s: go on with the options of that run",
                            drps_checkpoint_path(f->cp),
                            held->slots ? "keeps what was not sent" : "did not project vectors");
    return drps_err_set(err, DRPS_E_CORRUPT, "%s contradicts its plan in what it holds beside rows",
                        drps_checkpoint_path(f->cp));
}

/* Which rounds of vectors follow it. What is damaged of them is told of, and left out. */
static int look_at_log(const struct drps_job *job, struct found *f, struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    uint64_t first;
    f->logged = drps_vector_log_is_of(f->cp);
    f->last_round = drps_job_round(job, f->state.epoch, f->state.part.step);
    if (!f->logged) return 0;
    int rc = drps_vector_log_verify(job->plan->io, f->cp, &first, &f->last_round, &why);
    if (rc == 0 && first != drps_job_round(job, f->state.epoch, f->state.part.step))
        return drps_err_set(err, DRPS_E_CORRUPT, "%s contradicts itself in its round",
                            drps_checkpoint_path(f->cp));
    if (rc == 0) return 0;
    if (rc != DRPS_E_CORRUPT) return drps_err_set(err, rc, "%s", why.text);
    drps_log(job->options->log, DRPS_LOG_WARN, "rounds after %llu cannot be used: %s",
             (unsigned long long)f->last_round, why.text);
    return 0;
}

/* Open a checkpoint and read all of it: later it is too late to take another. */
static int look_at(const struct drps_job *job, struct found *f, struct drps_err *err)
{
    const struct drps_checkpoints *place = &job->checkpoints.place;
    int rc = drps_checkpoint_open(place, f->number, &f->cp, err);
    if (rc == 0)
        rc = drps_state_from_json(drps_checkpoint_manifest(f->cp), drps_checkpoint_path(f->cp),
                                  &f->state, err);
    if (rc == 0) rc = check_fit(job, &f->state, drps_checkpoint_path(f->cp), err);
    if (rc == 0 && (drps_checkpoint_rows(f->cp) != f->state.rows ||
                    drps_checkpoint_row_bytes(f->cp) != f->state.row_bytes))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s contradicts its rows",
                          drps_checkpoint_path(f->cp));
    if (rc == 0) rc = check_held(job, f, err);
    if (rc == 0) rc = drps_checkpoint_verify(f->cp, err);
    if (rc == 0 && drps_checkpoint_store(f->cp))
        rc = drps_relay_verify_saved(job->plan->io, drps_checkpoint_store(f->cp), err);
    if (rc == 0) rc = check_best(job, f, err);
    if (rc == 0) rc = look_at_log(job, f, err);
    return rc;
}

static void let_go(struct found *f)
{
    drps_checkpoint_close(f->cp);
    drps_state_destroy(&f->state);
    f->cp = NULL;
}

/* The newest checkpoint of the rank that is whole, and where ranks may lack it, or it is of rounds
 * that are logged, those before, too. A damaged one is told of and left out. Those that a warm
 * start begins with may be of another plan, and are no obstacle. Where all that there is has
 * another version the run is not begun anew unasked. */
static int find_whole(const struct drps_job *job, const uint64_t *numbers, size_t n,
                      struct found found[FOUND_MOST], struct drps_err *err)
{
    struct drps_err other = DRPS_ERR_INIT;   /* of one of another version */
    int goes_back = job->options->resume_at; /* to a round that an older one may have */
    size_t have = 0;
    for (size_t i = 0; i < n && have < FOUND_MOST && (!have || job->ranks || goes_back); i++) {
        struct drps_err why = DRPS_ERR_INIT;
        found[have].number = numbers[i];
        int rc = look_at(job, &found[have], &why);
        if (rc == 0) {
            goes_back |= found[have++].logged;
            continue;
        }
        let_go(&found[have]);
        found[have].number = 0;
        if (rc == DRPS_E_CONFIG && job->checkpoints.begins_with_own) continue; /* another plan's */
        if (rc == DRPS_E_VERSION) (void)drps_err_set(&other, rc, "%s", why.text);
        if (rc == DRPS_E_CONFIG || rc == DRPS_E_INTERRUPTED || rc == -ENOMEM)
            return drps_err_set(err, rc, "%s", why.text);
        drps_log(job->options->log, DRPS_LOG_WARN,
                 "checkpoint %llu cannot be used, the one before is looked for: %s",
                 (unsigned long long)numbers[i], why.text);
    }
    if (have || !other.code) return 0;
    return drps_err_set(err, other.code,
                        "%s; or finish the run with the drps that began it, or start anew",
                        other.text);
}

/* The newest that all ranks have. */
static int agree(const struct drps_job *job, const struct found found[FOUND_MOST],
                 uint64_t *number_out, struct drps_err *err)
{
    uint64_t mine[FOUND_MOST];
    for (size_t i = 0; i < FOUND_MOST; i++)
        mine[i] = found[i].number;
    *number_out = mine[0];
    if (!job->ranks) return 0;
    return drps_cluster_common(&job->cluster, mine, FOUND_MOST, number_out, err);
}

/* ---- What it settles ---- */

static void take_options(struct drps_train_options *o, const struct drps_state *s)
{
    if (!o->optimizer) o->optimizer = drps_optim_name(s->optim.kind);
    if (!(o->lr > 0)) o->lr = s->optim.lr;
    if (!(o->l1 > 0) && !(o->asked & DRPS_ASKED_L1)) o->l1 = s->optim.l1;
    if (!(o->l2 > 0) && !(o->asked & DRPS_ASKED_L2)) o->l2 = s->optim.l2;
    if (!(o->eps > 0)) o->eps = s->optim.eps;
    const int same = strcmp(o->optimizer, drps_optim_name(s->optim.kind)) == 0;
    if (same && !(o->beta1 > 0)) o->beta1 = s->optim.beta1;
    if (same && !(o->beta2 > 0)) o->beta2 = s->optim.beta2;
    if (!o->pairs && s->optim.kind == DRPS_OPTIM_LBFGS) o->pairs = s->optim.pairs;
    if (o->tolerance == 0) o->tolerance = s->optim.tolerance;
    if (!o->epochs) o->epochs = s->epochs;
    if (!o->patience) o->patience = s->patience;
    const int any_sync = o->sync == DRPS_SCHED_BSP && !(o->asked & DRPS_ASKED_SYNC);
    if (!o->staleness && any_sync) o->staleness = s->staleness;
    if (any_sync) o->sync = s->sync;
    if (drps_sched_has_waits(o->sync)) drps_sched_tuning_fill(&o->wsp, &s->wsp);
    if (!o->lr_stale && o->sync != DRPS_SCHED_BSP && !(o->asked & DRPS_ASKED_LR_STALE))
        o->lr_stale = s->lr_stale;
    o->seed = s->seed; /* of rows that no step has used */
    o->init_scale = s->init_scale;
    o->local_steps |= s->local_steps;
    o->no_claim |= s->no_claim;
    o->batch_mean |= s->batch_mean;
    if (!o->metric) o->metric = s->metric;
    if (!o->lr_decay) o->lr_decay = s->lr_decay;
    if (!o->push.on) o->push = s->push;
    if (!o->pull.on && (o->sync == DRPS_SCHED_BSP) == (s->sync == DRPS_SCHED_BSP))
        o->pull = s->pull;
    if (o->sync == DRPS_SCHED_SSP) o->pull_cached |= s->pull_cached;
}

/* Rows that no step has used are as the run made them that began. */
static int check_fresh_rows(const struct drps_train_options *o, const struct drps_state *s,
                            const char *path, struct drps_err *err)
{
    if ((o->asked & DRPS_ASKED_SEED) && o->seed != s->seed)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is of a run with seed %llu, whose rows have begun with it: seed "
                            "%llu cannot be taken, leave it out or begin anew",
                            path, (unsigned long long)s->seed, (unsigned long long)o->seed);
    if (o->init_scale > 0 && o->init_scale != s->init_scale)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is of a run with factors that have begun within %g: %g cannot be "
                            "taken, leave it out or begin anew",
                            path, (double)s->init_scale, (double)o->init_scale);
    return 0;
}

static int settle(struct drps_job *job, struct found *f, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    int rc = check_fresh_rows(job->options, &f->state, drps_checkpoint_path(f->cp), err);
    if (rc < 0) return rc;
    c->from = f->cp;
    c->from_number = c->read = c->newest = f->number;
    c->state = f->state;
    c->linked_best = f->state.best_epoch;
    c->logged = f->logged;
    memset(f, 0, sizeof(*f));
    take_options(&job->settled, &c->state);
    job->settled.replace = 1; /* a model that the interrupted run left */
    return 0;
}

/* The run cannot go back to where it had done less. All done, and not more, is as good as any. */
static int check_epochs(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_state *s = &job->checkpoints.state;
    const unsigned long long asked = job->options->epochs;
    if (!job->checkpoints.from || s->epoch <= asked || (s->epoch == asked + 1 && !s->part.step))
        return 0;
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "%s has done %llu epochs and %llu batches: with epochs %llu there is no way "
        "back, ask for more",
        drps_checkpoint_dir(job->checkpoints.from), (unsigned long long)(s->epoch - 1),
        (unsigned long long)s->part.step, asked);
}

/* ---- Finding ---- */

/* Whether a run was killed before its end: it has left its stage. Where memory is gone it has not.
 */
static int was_killed(const struct drps_job *job)
{
    struct stat st;
    char *stage = drps_job_beside(job, DRPS_STAGE_SUFFIX);
    const int is = stage && lstat(stage, &st) == 0;
    free(stage);
    return is;
}

/* The model, open, where it is there and whole: a run has ended. One that a killed run was to
 * replace, or that a stopped one has left, is not that. NULL: there is none. */
static struct drps_modeldir *open_ended(const struct drps_job *job)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    struct drps_modeldir *md;
    if (!job->whole || was_killed(job) ||
        drps_modeldir_open(job->plan->io, job->options->model_path, 0, &md, &ignored) < 0)
        return NULL;
    const json_t *training = json_object_get(drps_modeldir_json(md), "training");
    if (!json_is_true(json_object_get(training, "interrupted"))) return md;
    drps_modeldir_close(md);
    return NULL;
}

/* A run that has ended goes on to more epochs from checkpoints alone, unless it was to end early.
 */
static int check_no_more(const struct drps_job *job, const struct drps_modeldir *md,
                         struct drps_err *err)
{
    const json_t *training = json_object_get(drps_modeldir_json(md), "training");
    const size_t done = json_array_size(json_object_get(training, "epochs"));
    const unsigned long long asked = job->options->epochs;
    if (asked <= done || json_is_true(json_object_get(training, "stopped_early"))) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s was trained for %zu epoch%s, and no checkpoint is in %s from which its "
                        "run could go on to epoch %llu: begin another run with the model, or have "
                        "the first one keep its checkpoints",
                        job->options->model_path, done, done == 1 ? "" : "s",
                        job->checkpoints.place.dir, asked);
}

/* Returns whether the model is there already and of this plan: then only the end of the run was
 * missed. */
static int has_model(struct drps_job *job, uint64_t *has_out, struct drps_err *err)
{
    struct drps_modeldir *md = open_ended(job);
    int rc = 0;
    *has_out = md && strcmp(drps_modeldir_info(md)->plan_id, job->whole->info.id) == 0;
    if (*has_out) {
        job->result->content = drps_modeldir_info(md)->content;
        rc = check_no_more(job, md, err);
    }
    drps_modeldir_close(md);
    return rc;
}

/* Nothing to resume: training begins anew, unless it is done. `before`: there are checkpoints, but
 * of an earlier run than the one that is resumed. */
static int begin_anew(struct drps_job *job, int before, struct drps_err *err)
{
    uint64_t has = 0;
    int rc = job->options->replace ? 0 : has_model(job, &has, err);
    if (rc == 0 && job->ranks) rc = drps_cluster_least(&job->cluster, &has, err);
    job->result->already = has != 0;
    if (rc == 0)
        drps_log(job->options->log, level(job), "no checkpoint%s in %s: %s",
                 before ? " but those of an earlier run, over which another one was begun," : "",
                 job->checkpoints.place.dir,
                 has ? "the model is whole, nothing is left to do" : "training begins anew");
    return rc;
}

/* Either all ranks were told to resume, or none. */
static int all_resume(const struct drps_job *job, struct drps_err *err)
{
    const uint64_t mine = job->options->resume ? 1 : 2;
    uint64_t common;
    if (!job->ranks) return 0;
    int rc = drps_cluster_common(&job->cluster, &mine, 1, &common, err);
    if (rc < 0 || common) return rc;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "some ranks were started to resume and others were not: give all ranks the "
                        "same");
}

static int refuse(const struct drps_job *job, struct drps_err *err)
{
    struct drps_modeldir *md = open_ended(job);
    const int ended = md != NULL;
    drps_modeldir_close(md);
    if (ended)
        return drps_err_set(err, -EEXIST,
                            "%s exists already, with the checkpoints that its run has kept in %s: "
                            "choose another name, or have it replaced",
                            job->options->model_path, job->checkpoints.place.root);
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "%s has checkpoints of a run that has not ended, or that has kept them: resume it, "
        "or have it replaced by a run that starts anew",
        job->checkpoints.place.dir);
}

/* How many of these numbers, which decrease, are those of the newest run. */
static size_t of_this_run(const uint64_t *numbers, size_t n, uint64_t first)
{
    while (n && numbers[n - 1] < first)
        n--;
    return n;
}

/* Go on from the newest checkpoint that all ranks have. */
static int resume_newest(struct drps_job *job, struct found found[FOUND_MOST], int *any_out,
                         struct drps_err *err)
{
    uint64_t number = 0;
    int rc = agree(job, found, &number, err);
    for (size_t i = 0; i < FOUND_MOST && rc == 0 && number; i++)
        if (found[i].number == number) rc = settle(job, &found[i], err);
    *any_out = number != 0;
    return rc;
}

/* Go on from a round that some rank may have logged. Rounds after a newer checkpoint are that
 * one's.
 */
static int resume_logged(struct drps_job *job, struct found found[FOUND_MOST], int *any_out,
                         struct drps_err *err)
{
    struct drps_job_span spans[FOUND_MOST];
    uint64_t place;
    size_t n = 0, which = 0;
    for (; n < FOUND_MOST && found[n].number; n++) {
        spans[n] = drps_job_span(job, &found[n].state, found[n].last_round);
        if (n && spans[n].last > spans[n - 1].first)
            spans[n].last = spans[n - 1].first & ~UINT64_C(1);
    }
    int rc = drps_job_agree_on_place(job, spans, n, &place, &which, err);
    *any_out = rc == 1;
    if (rc <= 0) return rc;
    rc = settle(job, &found[which], err);
    return rc < 0 ? rc : drps_job_take_place(job, &spans[which], place, err);
}

/* Whether some rank has logged vectors, as all ranks learn. */
static int any_logged(const struct drps_job *job, const struct found found[FOUND_MOST],
                      int *any_out, struct drps_err *err)
{
    uint64_t any = job->options->resume_at != 0;
    for (size_t i = 0; i < FOUND_MOST; i++)
        any |= found[i].logged != 0;
    int rc = job->ranks ? drps_cluster_least(&job->cluster, &any, err) : 0;
    *any_out = any != 0;
    return rc;
}

static int resume(struct drps_job *job, const uint64_t *numbers, size_t n, uint64_t first,
                  struct drps_err *err)
{
    struct found found[FOUND_MOST] = {{0}};
    int logged = 0, any = 0;
    const size_t own = of_this_run(numbers, n, first);
    int rc = find_whole(job, numbers, own, found, err);
    if (rc == 0) rc = any_logged(job, found, &logged, err);
    if (rc == 0)
        rc = logged ? resume_logged(job, found, &any, err) : resume_newest(job, found, &any, err);
    if (rc == 0) rc = check_epochs(job, err);
    if (rc == 0 && !any) rc = begin_anew(job, own < n, err);
    for (size_t i = 0; i < FOUND_MOST; i++)
        let_go(&found[i]);
    return rc;
}

static int is_own(const struct drps_job *job, const char *path)
{
    struct stat from, own;
    return stat(path, &from) == 0 && stat(job->checkpoints.place.root, &own) == 0 &&
           from.st_dev == own.st_dev && from.st_ino == own.st_ino;
}

/* Returns whether options->from is where the run's own checkpoints lie, or a model beside them:
 * then these are no obstacle. */
static int begins_with_own(const struct drps_job *job)
{
    const char *from = job->options->from;
    if (!from) return 0;
    char *beside = drps_warm_state_path(from);
    const int is = is_own(job, from) || (beside && is_own(job, beside));
    free(beside);
    return is;
}

/* Numbers go on after the largest that any rank has. */
static int set_next(struct drps_job *job, uint64_t newest, struct drps_err *err)
{
    uint64_t most = UINT64_MAX - newest; /* the least of these is of the largest number */
    int rc = job->ranks ? drps_cluster_least(&job->cluster, &most, err) : 0;
    job->checkpoints.next = UINT64_MAX - most + 1;
    return rc;
}

static int init_place(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    char *root = o->checkpoint_dir ? strdup(o->checkpoint_dir)
                                   : drps_job_beside(job, DRPS_CHECKPOINT_SUFFIX);
    if (!root) return drps_err_set(err, -ENOMEM, "no memory for the folder of checkpoints");
    int rc = drps_checkpoints_init(&job->checkpoints.place, job->plan->io, root,
                                   job->ranks ? job->cluster.rank : 0, err);
    job->checkpoints.place.part_bytes = o->checkpoint_part_bytes;
    free(root);
    return rc;
}

/* No other run may use the folder of checkpoints meanwhile. One that writes none needs no folder.
 */
static int lock_place(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    struct drps_checkpoints *place = &job->checkpoints.place;
    struct stat st;
    const int writes = o->checkpoint_every.unit != DRPS_CHECKPOINT_NEVER || o->keep_checkpoints;
    return writes || stat(place->dir, &st) == 0 ? drps_checkpoints_lock(place, err) : 0;
}

/* A quasi-Newton method ends by itself. */
static uint64_t usual_epochs(const struct drps_train_options *o)
{
    struct drps_optim optim;
    const int is_newton = o->optimizer && drps_optim_init(&optim, o->optimizer, NULL) == 0 &&
                          drps_optim_is_newton(optim.kind);
    return is_newton ? 100 : 1;
}

int drps_job_find_checkpoint(struct drps_job *job, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST], first = 1;
    size_t n = 0;
    c->state = (struct drps_state){.epoch = 1, .best_score = INFINITY};
    job->best_score = INFINITY;
    int rc = init_place(job, err);
    if (rc == 0) rc = lock_place(job, err);
    if (rc == 0) rc = drps_checkpoints_list(&c->place, numbers, &n, err);
    if (rc == 0) rc = drps_checkpoints_first(&c->place, &first, err);
    if (rc == 0) rc = all_resume(job, err);
    if (rc == 0) rc = set_next(job, n && numbers[0] >= first ? numbers[0] : first - 1, err);
    c->begins_with_own = rc == 0 && begins_with_own(job);
    c->begins_over = !job->options->resume && n > 0;
    if (rc == 0 && job->options->resume) rc = resume(job, numbers, n, first, err);
    if (rc == 0 && !job->options->resume && n && !job->options->replace && !c->begins_with_own)
        rc = refuse(job, err);
    if (job->settled.pilot.on) job->settled.epochs = 1;
    if (!job->settled.epochs) job->settled.epochs = usual_epochs(&job->settled);
    return rc;
}

/* The best epoch of the checkpoint must be so by the same metric. */
static int check_judged(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_state *s = &job->checkpoints.state;
    if (!job->checkpoints.from || !s->best_epoch ||
        strcmp(drps_metric_name(s->metric), drps_metric_name(job->options->metric)) == 0)
        return 0;
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "the epochs of %s were judged by the metric %s, not %s: go on with that one",
        drps_checkpoint_dir(job->checkpoints.from), drps_metric_name(s->metric),
        drps_metric_name(job->options->metric));
}

int drps_job_check_rows(const struct drps_job *job, struct drps_err *err)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    const struct drps_optim *mine = &job->asked, *before = &c->state.optim;
    if (!c->from) return 0;
    if (c->state.row_bytes != job->server.row_bytes || before->kind != mine->kind)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s was trained with another optimizer (%s): go on with that one",
                            drps_checkpoint_dir(c->from), drps_optim_name(before->kind));
    if (drps_optim_is_newton(mine->kind) && before->l2 != mine->l2)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s was trained with l2 %g, of which its rows have the gradients: go "
                            "on with that, or begin anew with its parameters",
                            drps_checkpoint_dir(c->from), (double)before->l2);
    return check_judged(job, err);
}

/* ---- Taking up ---- */

/* Marks are of all rows that the rank holds: where rows circulate, these are more than its own. */
static int may_share_rows(const struct drps_job *job)
{
    return job->memory.store->scan_changed && !job->options->checkpoint_rows && !job->server.holds;
}

void drps_job_mark_rows(struct drps_job *job, struct drps_store_config *config)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    if (!may_share_rows(job)) return;
    c->marks_rows = 1;
    config->mark_rows = drps_checkpoint_part_rows(&c->place, config->rows, config->row_bytes);
    c->shares_rows = c->from && !drps_checkpoint_store(c->from) && !c->copy.dir &&
                     drps_checkpoint_rows_of_part(c->from) == config->mark_rows;
}

/* Puts a line below those that are there; where there is no room the oldest go. */
static void add_line(char lines[DRPS_TRAIN_CHANGED_BYTES], const char *line)
{
    char *all;
    if (asprintf(&all, "%s%s%s", lines, *lines ? "\n" : "", line) < 0) return;
    const char *kept = all;
    while (strlen(kept) >= DRPS_TRAIN_CHANGED_BYTES && strchr(kept, '\n'))
        kept = strchr(kept, '\n') + 1;
    snprintf(lines, DRPS_TRAIN_CHANGED_BYTES, "%s", kept);
    free(all);
}

/* Says which options of learning are others than before, and has the result say it. */
static int take_changes(struct drps_job *job, struct drps_err *err)
{
    const struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_state now;
    char *changes = NULL, *line = NULL;
    memcpy(job->result->changed, c->state.changed, sizeof(c->state.changed));
    if (c->state.epoch > job->options->epochs) return 0; /* there is no step that they are of */
    drps_job_state(job, c->state.epoch, &c->state.part, &now);
    int rc = drps_state_changes(&c->state, &now, &changes, err);
    if (rc == 0 && *changes &&
        asprintf(&line, "from epoch %llu, batch %llu on: %s", (unsigned long long)c->state.epoch,
                 (unsigned long long)c->state.part.step + 1, changes) < 0)
        rc = drps_err_set(err, -ENOMEM, "no memory to go on from a checkpoint");
    if (rc == 0 && *changes) {
        drps_log(job->options->log, job->whole ? DRPS_LOG_WARN : DRPS_LOG_DEBUG,
                 "other options than the run began with: %s", line);
        add_line(job->result->changed, line);
    }
    free(line);
    free(changes);
    return rc;
}

static int take_epochs(struct drps_job *job, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_train_result *r = job->result;
    r->epochs = c->state.done;
    r->epochs_n = (size_t)(c->state.epoch - 1);
    c->state.done = NULL;
    r->best_epoch = c->state.best_epoch;
    r->resumed_epoch = c->state.epoch;
    r->resumed_step = c->state.part.step;
    job->best_score = c->state.best_score;
    if (!job->whole || !c->state.best_epoch) return 0;
    char *best; /* not of c->from, which may be a copy of the rows */
    if (asprintf(&best, "%s/%llu/" DRPS_CHECKPOINT_BEST, c->place.dir,
                 (unsigned long long)c->from_number) < 0)
        return drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    int rc = drps_trained_restore(&job->trained, best, c->state.best_content, err);
    if (rc == 0) r->content = c->state.best_content;
    free(best);
    return rc;
}

int drps_job_take_up(struct drps_job *job, struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_err why = DRPS_ERR_INIT;
    uint64_t all = 0;
    if (c->begins_over) return drps_checkpoints_begin_run(&c->place, c->next, err);
    if (!c->from) return 0;
    int rc = take_changes(job, err);
    if (rc == 0) rc = take_epochs(job, err);
    if (rc < 0) return rc;
    if (drps_checkpoints_keep(&c->place, 1, c->from_number, 0, &why) < 0)
        drps_log(job->options->log, DRPS_LOG_DEBUG, "a newer checkpoint stays: %s", why.text);
    if (job->ranks) rc = drps_cluster_least(&job->cluster, &all, err); /* nobody is behind */
    if (rc < 0) return rc;
    const struct drps_train_cut cut = {.number = c->from_number,
                                       .epoch = c->state.epoch,
                                       .step = c->state.part.step,
                                       .resumed = 1};
    if (job->options->on_checkpoint) job->options->on_checkpoint(job->options->ctx, &cut);
    if (c->state.epoch > job->options->epochs)
        drps_log(job->options->log, level(job),
                 "the run has ended: checkpoint %llu is of its last epoch, %llu, and the model is "
                 "made of it again",
                 (unsigned long long)c->from_number, (unsigned long long)c->state.epoch - 1);
    else
        drps_log(job->options->log, level(job),
                 "going on from checkpoint %llu: epoch %llu, %llu of %llu batches done",
                 (unsigned long long)c->from_number, (unsigned long long)c->state.epoch,
                 (unsigned long long)c->state.part.step,
                 (unsigned long long)job->plan->info.batches);
    return rc;
}
