/* Training a plan: the settings are taken, pilots find what is to be chosen, and the run is
 * watched. A plan for several workers is trained by as many ranks, threads of this process. */
#include "api/drps.h"

#include <math.h>
#include <string.h>

#include "api/report/drps_json.h"
#include "api/report/drps_train_report.h"
#include "api/settings.h"
#include "api/watch.h"
#include "engine/checkpoint/drps_epoch_json.h"
#include "engine/cluster/drps_ranks.h"

/* One run. */
struct job {
    struct watch watch;
    struct drps_train_settings settings;
    const char *path;       /* of the plan */
    struct drps_plan *plan; /* own */
    struct drps_found found;
};

/* ---- Watching ---- */

static void tell_progress(void *ctx, const struct drps_train_progress *t)
{
    struct job *job = ctx;
    struct drps_watch_progress p = {.phase = t->evaluates ? "evaluate" : "train",
                                    .unit = "steps",
                                    .done = t->step,
                                    .total = t->steps,
                                    .epoch = t->epoch,
                                    .epochs = t->epochs,
                                    .samples_per_s = t->samples_per_s,
                                    .train_loss = t->train_loss};
    watch_progress(&job->watch, &p);
}

static void tell_writing(void *ctx, const char *what, uint64_t bytes, uint64_t all_bytes)
{
    struct job *job = ctx;
    struct drps_watch_progress p = {.phase = "write",
                                    .unit = "bytes",
                                    .done = bytes,
                                    .total = all_bytes,
                                    .samples_per_s = (double)NAN,
                                    .train_loss = (double)NAN};
    (void)what; /* a text for people */
    watch_progress(&job->watch, &p);
}

static void tell_epoch(void *ctx, const struct drps_epoch *e)
{
    struct job *job = ctx;
    const struct drps_watch *given = job->watch.given;
    char *text;
    if (!given || !given->epoch) return;
    /* Without memory for its text the epoch is not told of; the result has it. */
    if (drps_json_text(drps_epoch_to_json(e), &text, NULL) < 0) return;
    watch_answer(&job->watch, given->epoch(given->ctx, text));
    drps_free(text);
}

/* ---- Running ---- */

/* A drps_target_run. */
static int train(void *ctx, const struct drps_train_options *options,
                 struct drps_train_result *result, struct drps_err *err)
{
    const struct job *job = ctx;
    const uint32_t ranks = job->plan->info.ranks.count;
    if (ranks < 2) return drps_train_run(job->plan, options, result, err);
    const struct drps_ranks_options local = {
        .plan = job->path, .train = options, .transport = DRPS_RANKS_INPROC};
    return drps_ranks_run_local(&local, ranks, result, err);
}

static int run_pilots(struct job *job, struct drps_err *err)
{
    struct drps_train_options *t = &job->settings.train;
    struct drps_found *found = &job->found;
    const struct drps_rates_options rates = {
        .train = t, .plan = job->plan, .run = train, .ctx = job};
    const struct drps_target_options target = {.train = t,
                                               .plan = job->plan,
                                               .share = job->settings.filter_target,
                                               .run = train,
                                               .ctx = job};
    int rc = 0;
    if (job->settings.chooses_rate) {
        rc = drps_rates_find(&rates, &found->rates, err);
        if (rc < 0) return rc;
        if (!found->rates.resumes) t->lr = found->rates.tried[found->rates.chosen].lr;
    }
    if (job->settings.filter_target > 0) {
        rc = drps_target_find(&target, &found->target, err);
        if (rc == 0) drps_target_apply(&found->target, t);
    }
    return rc;
}

static int check(struct job *job, struct drps_err *err)
{
    struct drps_err bad = DRPS_ERR_INIT;
    struct drps_values v = drps_settings_values(&bad);
    const char *delta = job->settings.train.delta;
    drps_train_settings_check(&job->settings, job->plan->info.ranks.count > 1, &v);
    if (delta && strcmp(delta, "-") == 0)
        drps_value_bad(&v, "{export-delta} needs a file: standard output is the program's own");
    drps_train_settings_complete(&job->settings);
    return bad.code ? drps_err_set(err, bad.code, "%s", bad.text) : 0;
}

static int run(struct job *job, char **json_out, struct drps_err *err)
{
    struct drps_train_options *t = &job->settings.train;
    struct drps_train_result result = {0};
    int rc = check(job, err);
    if (rc < 0) return rc;
    t->stop = job->watch.stop;
    t->log = &job->watch.log;
    t->on_epoch = tell_epoch;
    t->on_progress = tell_progress;
    t->on_write = tell_writing;
    t->ctx = job;
    rc = run_pilots(job, err);
    if (rc == 0) rc = train(job, t, &result, err);
    if (rc == 0 || (rc == DRPS_E_INTERRUPTED && result.interrupted)) {
        json_t *j = json_out
                        ? drps_train_json(&job->settings, &job->plan->info, &result, &job->found)
                        : NULL;
        const int told = json_out ? drps_json_text(j, json_out, err) : 0;
        if (rc == 0) rc = told;
    }
    drps_train_result_free(&result);
    return rc;
}

int drps_train_with_loss(const struct drps_settings *s, const char *plan, const char *model,
                         const struct drps_callbacks *loss, const struct drps_watch *watch,
                         char **json_out, struct drps_err *err)
{
    struct drps_err own = DRPS_ERR_INIT;
    struct job job = {.path = plan};
    err = watch_err(err, &own);
    if (json_out) *json_out = NULL;
    if (!plan || !model)
        return drps_err_set(err, DRPS_E_CONFIG, "training needs a plan, and a folder to be made");
    watch_begin(&job.watch, watch);
    int rc = drps_settings_of_train(s, &job.settings, err);
    job.settings.train.model_path = model;
    job.settings.train.callbacks = loss;
    if (rc == 0) rc = drps_plan_open(drps_io_os(), plan, &job.plan, err);
    if (rc == 0) rc = run(&job, json_out, err);
    drps_plan_close(job.plan);
    return rc;
}

int drps_train(const struct drps_settings *s, const char *plan, const char *model,
               const struct drps_watch *watch, char **json_out, struct drps_err *err)
{
    return drps_train_with_loss(s, plan, model, NULL, watch, json_out, err);
}
