/* drps-train executes a plan. This file says what is run; the work is done by engine/train/job.c,
 * and of several ranks by engine/cluster/ranks.c. */
#include <stdio.h>

#include "api/report/drps_train_report.h"
#include "base/drps_size.h"
#include "engine/cluster/drps_attempts.h"
#include "net/drps_launch.h"
#include "net/drps_peers.h"
#include "sched/drps_timing.h"
#include "tools/train/compile.h"
#include "tools/train/options.h"
#include "tools/train/progress.h"
#include "tools/train/rates.h"
#include "tools/train/report.h"
#include "tools/train/target.h"

static int make_keys(const char *dir, struct drps_err *err)
{
    struct drps_net_keys keys;
    int rc = drps_net_keys_make(drps_io_os(), dir, &keys, err);
    if (rc == 0) printf("%s\n", keys.public_key); /* for the peers file */
    drps_net_keys_forget(&keys);
    return rc;
}

static int publish(struct drps_cli *cli, const struct train_options *o, struct drps_err *err)
{
    struct train_progress progress = {.cli = cli};
    const struct drps_io io = {
        .ops = drps_io_os()->ops, .ctx = drps_io_os()->ctx, .stop = drps_cli_stop()};
    const struct drps_publish_options options = {.folder = o->publish,
                                                 .model_path = o->settings.train.model_path,
                                                 .replace = o->settings.train.replace,
                                                 .model_store = o->settings.train.model_store,
                                                 .memory_bytes = o->settings.train.memory_bytes,
                                                 .log = &cli->log,
                                                 .on_progress = train_progress_publishing,
                                                 .ctx = &progress};
    struct drps_publish_result r;
    int rc = drps_publish_run(&io, &options, &r, err);
    drps_cli_progress_end(cli);
    if (rc < 0)
        return drps_err_context(err, "%s stays as it is, and %s is not written", o->publish,
                                o->settings.train.model_path);
    return train_report_published(cli, &r, o->settings.train.model_path, err);
}

/* What is trained. */
struct job {
    struct drps_cli *cli;
    struct train_options *options;
    const struct drps_plan *plan;
};

/* Trains a plan for one worker, or one rank or all ranks of a plan for several. A drps_target_run.
 */
static int train(void *ctx, const struct drps_train_options *options,
                 struct drps_train_result *result, struct drps_err *err)
{
    const struct job *job = ctx;
    const struct train_options *o = job->options;
    struct drps_ranks_options ranks = o->ranks;
    ranks.train = options;
    if (drps_ranks_is_one(&ranks)) return drps_ranks_run_one(&ranks, result, err);
    if (o->local && (o->local > 1 || job->plan->info.ranks.count > 1))
        return drps_ranks_run_local(&ranks, o->local, result, err);
    return drps_train_run(job->plan, options, result, err);
}

/* Chooses by pilots what is to be chosen: the rate, and with it the filters. */
static int run_pilots(struct job *job, struct drps_found *found, struct drps_err *err)
{
    const struct train_target find = {
        .cli = job->cli, .options = job->options, .plan = job->plan, .run = train, .ctx = job};
    int rc = job->options->settings.chooses_rate ? train_rates_find(&find, &found->rates, err) : 0;
    if (rc == 0 && job->options->settings.filter_target > 0)
        rc = train_target_find(&find, &found->target, err);
    return rc;
}

/* Opens the whole plan where this process writes the model, else the part of its rank. */
static int open_plan(const struct train_options *o, struct drps_plan **plan_out,
                     struct drps_err *err)
{
    if (drps_ranks_is_one(&o->ranks) && o->ranks.rank)
        return drps_plan_open_rank(drps_io_os(), o->plan, o->ranks.rank, plan_out, err);
    return drps_plan_open(drps_io_os(), o->plan, plan_out, err);
}

/* Where what was trained has not become a model. */
static void say_how_to_publish(struct drps_cli *cli, const struct drps_train_result *r,
                               const char *model)
{
    if (!r->kept) return;
    drps_log(&cli->log, DRPS_LOG_WARN,
             "'drps-train --publish %s -o %s%s' makes a model of what was trained", r->kept, model,
             r->interrupted ? " --force" : "");
}

/* Prints what a run of training came to. Only the process that writes the model knows all of it. */
static int tell_result(const struct drps_cli *cli, const struct train_options *o,
                       const struct drps_plan_info *plan, const struct drps_train_result *r,
                       const struct drps_found *found, struct drps_err *err)
{
    char peak[32];
    if (drps_ranks_is_one(&o->ranks) && o->ranks.rank)
        drps_log(&cli->log, DRPS_LOG_INFO,
                 "rank %u is done: %zu epoch%s in %.1f s, %s of memory at most; rank 0 writes the "
                 "model",
                 o->ranks.rank, r->epochs_n, r->epochs_n == 1 ? "" : "s", r->seconds,
                 drps_size_format(r->peak_rss_bytes, peak, sizeof(peak)));
    else if (cli->json)
        return drps_cli_json_print(drps_train_json(&o->settings, plan, r, found), err);
    else if (cli->log.level >= DRPS_LOG_INFO && r->published)
        train_report_text(r, o->settings.train.model_path, cli->log.level >= DRPS_LOG_DEBUG);
    return 0;
}

static int train_plan(struct drps_cli *cli, struct train_options *o, const struct drps_plan *plan,
                      struct drps_attempt *attempt, struct drps_err *err)
{
    struct drps_train_result result = {0};
    struct drps_found found = {0};
    struct job job = {cli, o, plan};
    struct train_progress progress = {.cli = cli, .plan = &plan->info, .attempt = attempt};
    o->settings.train.stop = drps_cli_stop();
    o->settings.train.log = &cli->log;
    o->settings.train.command = cli->command;
    o->settings.train.metrics.in_folder = 1;
    train_progress_follow(&progress, &o->settings.train);
    o->ranks.plan = o->plan;
    int rc = run_pilots(&job, &found, err);
    if (rc == 0) rc = train(&job, &o->settings.train, &result, err);
    drps_cli_progress_end(cli);
    say_how_to_publish(cli, &result, o->settings.train.model_path);
    /* What is kept is worth more than another start. */
    cli->again = rc != DRPS_E_INTERRUPTED && drps_err_may_pass(rc) && !result.kept;
    if (rc == 0 || (rc == DRPS_E_INTERRUPTED && result.interrupted)) {
        const int told = tell_result(cli, o, &plan->info, &result, &found, err);
        if (rc == 0) rc = told;
    }
    drps_train_result_free(&result);
    return rc;
}

/* Which of several ranks this process is, as its launcher says. */
static int find_rank(struct drps_ranks_options *ranks, struct drps_err *err)
{
    struct drps_launch launch;
    if (ranks->peers) return drps_launch_rank(ranks->peers, "--rank", &ranks->rank, err);
    const int rc = drps_launch_mpi(&launch, err);
    ranks->rank = launch.rank;
    ranks->count = launch.count;
    return rc;
}

static int run(struct drps_cli *cli, struct train_options *o, struct drps_attempt *attempt,
               struct drps_err *err)
{
    struct drps_plan *plan = NULL;
    struct drps_timing *timing = NULL;
    int rc = 0;
    if (o->make_keys) return make_keys(o->make_keys, err);
    if (o->publish) return publish(cli, o, err);
    if (o->local || o->ranks.peers) drps_cli_raise_files(cli);
    if (drps_ranks_is_one(&o->ranks) && !o->has_rank) rc = find_rank(&o->ranks, err);
    if (rc == 0 && o->emulate) rc = drps_timing_open(drps_io_os(), o->emulate, &timing, err);
    if (rc == 0 && o->data.plan) rc = train_compile(cli, o, err);
    if (rc == 0) rc = open_plan(o, &plan, err);
    o->settings.train.emulate = timing;
    if (rc == 0) rc = train_plan(cli, o, plan, attempt, err);
    drps_plan_close(plan);
    drps_timing_close(timing);
    return rc;
}

/* ---- Attempts ---- */

struct work {
    struct drps_cli *cli;
    struct train_options *options;
};

/* Without --force there were no checkpoints when the first attempt began, so all are of this run;
 * with it there may be some of an earlier run until this one has written its own. */
static int attempt(void *ctx, struct drps_attempt *a)
{
    const struct work *w = ctx;
    struct drps_train_options *train = &w->options->settings.train;
    struct drps_err err = DRPS_ERR_INIT;
    if (!drps_attempt_is_first(a) && drps_attempt_has_checkpoint(a)) train->resume_at = 0;
    if (!drps_attempt_is_first(a))
        train->resume |= !train->replace || drps_attempt_has_checkpoint(a);
    const int rc = run(w->cli, w->options, a, &err);
    if (rc < 0 && w->cli->again) {
        drps_attempt_failed(a, &err);
        return fflush(stdout) ? DRPS_EXIT_FAILED : DRPS_EXIT_AGAIN;
    }
    return drps_cli_finish(w->cli, rc, &err);
}

static int run_attempts(struct drps_cli *cli, struct train_options *o, int *status,
                        struct drps_err *err)
{
    char name[32] = "training";
    struct work work = {cli, o};
    int rc = drps_cli_share_stop(err);
    if (rc == 0 && o->ranks.peers && !o->has_rank) {
        rc = find_rank(&o->ranks, err);
        o->has_rank = rc == 0;
    }
    if (rc < 0) return rc;
    if (o->local || o->ranks.peers) (void)snprintf(name, sizeof(name), "rank %u", o->ranks.rank);
    const struct drps_attempts_options options = {.name = name,
                                                  .run = attempt,
                                                  .ctx = &work,
                                                  .again = DRPS_EXIT_AGAIN,
                                                  .stop = drps_cli_stop(),
                                                  .log = &cli->log};
    return drps_attempts_run(&options, status, err);
}

int main(int argc, char **argv)
{
    struct train_options o = {.plan = NULL};
    struct train_tool tool;
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;

    int status = DRPS_EXIT_DONE;
    drps_train_settings_init(&o.settings);
    train_data_init(&o.data);
    train_tool_init(&tool);
    drps_cli_start(&cli, &tool.cli, &o, argc, argv);
    const int rc = o.resumes ? run_attempts(&cli, &o, &status, &err) : run(&cli, &o, NULL, &err);
    const int finished = drps_cli_finish(&cli, rc, &err);
    train_data_free(&o.data);
    return status ? status : finished;
}
