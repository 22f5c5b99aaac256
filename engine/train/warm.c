/* A run that begins with the rows of an earlier one (engine/warm/). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_size.h"
#include "engine/delta/drps_delta.h"
#include "engine/train/job.h"

static int ranks_differ(const char *from, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CONFIG,
                        "not all ranks begin with the same rows: give all of them %s",
                        from ? "the same model or folder of checkpoints"
                             : "a model or a folder of checkpoints to begin with, or none");
}

/* Either all ranks begin with the same rows, or none with any. */
static int all_same(const struct drps_job *job, uint64_t mine, struct drps_err *err)
{
    uint64_t common;
    if (!job->ranks) return 0;
    int rc = drps_cluster_common(&job->cluster, &mine, 1, &common, err);
    return rc == 0 && common != mine ? ranks_differ(job->options->from, err) : rc;
}

static int open_from(struct drps_job *job, struct drps_err *err)
{
    const struct drps_io *io = job->plan->io;
    job->warm_io = (struct drps_io){.ops = io->ops, .ctx = io->ctx, .stop = job->options->stop};
    const struct drps_warm_options options = {.io = &job->warm_io,
                                              .from = job->options->from,
                                              .part = job->plan,
                                              .whole = job->whole,
                                              .no_state = job->options->no_state,
                                              .log = job->options->log};
    return drps_warm_open(&options, &job->warm, err);
}

/* Warns where a plan goes on from a base, and training begins without a model: rows of the base
 * that are in no batch then stay as they are initialised. */
static void remark_base(const struct drps_job *job)
{
    const struct drps_plan_info *info = &job->plan->info;
    if (!job->whole || !info->base[0] || job->options->from || job->options->pilot.on) return;
    drps_log(job->options->log, DRPS_LOG_WARN,
             "%s goes on from an earlier plan, and training begins with no model of that: what is "
             "not in its own batches stays unlearned",
             job->whole->dir);
}

/* Warns where the model is of a plan before the base, which has fewer rows than the base. */
static void remark_between(const struct drps_job *job, const struct drps_train_from *from)
{
    const struct drps_plan_info *info = &job->whole->info;
    char base[DRPS_COUNT_BYTES], rows[DRPS_COUNT_BYTES];
    if (!info->base[0] || from->rows >= info->base_rows) return;
    drps_log(job->options->log, DRPS_LOG_WARN,
             "%s goes on from a plan of %s rows, and %s has %s of them at most: the others begin "
             "anew; begin with the model of that plan to keep what was learned of them",
             job->whole->dir, drps_count_format(info->base_rows, base), job->options->from,
             drps_count_format(from->rows, rows));
}

/* Warns that a calibration is not taken over: it is for the scores of one model alone. */
static void remark_calibration(const struct drps_job *job)
{
    if (!job->whole || job->options->pilot.on || !drps_warm_is_calibrated(job->warm)) return;
    drps_log(job->options->log, DRPS_LOG_WARN,
             "%s is calibrated, and the new model will not be: once it is trained, calibrate it on "
             "samples that it was not trained with",
             job->options->from);
}

int drps_job_open_from(struct drps_job *job, struct drps_err *err)
{
    if (job->checkpoints.from || job->result->already) return 0;
    remark_base(job);
    int rc = job->options->from ? open_from(job, err) : 0;
    if (rc == 0 && job->warm) remark_calibration(job);
    return rc == 0 ? all_same(job, job->warm ? drps_warm_id(job->warm) : UINT64_MAX - 1, err) : rc;
}

uint64_t drps_job_rows_space(const struct drps_job *job)
{
    return job->warm ? drps_warm_space(job->plan->info.rows, job->server.row_bytes) : 0;
}

/* Returns the words for what becomes of the optimizer's state; empty where there is none, or none
 * was asked for. */
static const char *of_state(const struct drps_job *job, const struct drps_train_from *from)
{
    const struct drps_optim *optim = &job->server.optim;
    if (from->state) return ", with the optimizer's state";
    if (job->options->no_state || drps_optim_is_newton(optim->kind) || !drps_optim_states(optim))
        return "";
    return ", the optimizer's state begins anew";
}

/* Rank 0 says it for all. */
static void tell(const struct drps_job *job, const struct drps_train_from *from)
{
    char rows[DRPS_COUNT_BYTES], all[DRPS_COUNT_BYTES], left[DRPS_COUNT_BYTES];
    const char *rest = from->rows < from->all ? "; the others are new" : "";
    const uint32_t common = drps_model_common_rows(&job->server.model);
    if (!job->whole) return;
    drps_log(job->options->log, DRPS_LOG_INFO, "rows from %s: %s of %s%s%s", job->options->from,
             drps_count_format(from->rows, rows), drps_count_format(from->all, all),
             of_state(job, from), rest);
    if (from->left)
        drps_log(job->options->log, DRPS_LOG_INFO,
                 "%s row%s of %s %s left out: the plan does not have %s",
                 drps_count_format(from->left, left), from->left == 1 ? "" : "s",
                 job->options->from, from->left == 1 ? "is" : "are",
                 from->left == 1 ? "it" : "them");
    if (from->rows <= common)
        drps_log(job->options->log, DRPS_LOG_WARN,
                 "no feature of the plan has a name that %s knows: are its data of another kind?",
                 job->options->from);
    else
        remark_between(job, from);
}

/* The store is not open yet, and the model is not being written: theirs is the memory. */
int drps_job_make_rows(struct drps_job *job, struct drps_err *err)
{
    const struct drps_memory *m = &job->memory;
    struct drps_warm_found found;
    if (!job->warm) return 0;
    char *dir = drps_path_join(job->store_dir, DRPS_MODEL_BEGIN);
    if (!dir) return drps_err_set(err, -ENOMEM, "no memory for a path");
    int rc = drps_warm_make(job->warm, &job->server, dir, m->store_bytes + m->export_bytes,
                            &job->rows, &found, err);
    free(dir);
    drps_warm_close(job->warm);
    job->warm = NULL;
    if (rc < 0) return rc;
    job->result->from = (struct drps_train_from){
        .rows = found.rows, .all = found.all, .left = found.left, .state = found.state};
    tell(job, &job->result->from);
    return 0;
}

void drps_job_close_rows(struct drps_job *job)
{
    drps_warm_close(job->warm);
    drps_checkpoint_close(job->rows);
}

/* ---- What has changed ---- */

static struct drps_delta_options delta_options(const struct drps_job *job)
{
    const struct drps_train_options *o = job->options;
    /* A run that is resumed may have come as far as its delta. */
    const int again = o->delta && o->resume && drps_delta_is_one(job->plan->io, o->delta);
    return (struct drps_delta_options){.io = job->plan->io,
                                       .from = o->from,
                                       .model = o->model_path,
                                       .plan = job->whole->dir,
                                       .path = o->delta,
                                       .replace = o->replace || again,
                                       .memory_bytes = o->memory_bytes};
}

int drps_job_check_delta(const struct drps_job *job, struct drps_err *err)
{
    if (!job->whole || !job->options->delta || job->options->pilot.on) return 0;
    struct drps_delta_options o = delta_options(job);
    return drps_delta_check(&o, &job->whole->info, err);
}

int drps_job_write_delta(struct drps_job *job, struct drps_err *err)
{
    struct drps_train_delta *done = &job->result->delta;
    struct drps_delta delta = {0};
    if (!job->whole || !job->options->delta || job->result->interrupted) return 0;
    struct drps_delta_options o = delta_options(job);
    int rc = drps_delta_check(&o, &job->whole->info, err);
    if (rc == 0) rc = drps_delta_write(&o, &delta, err);
    *done = (struct drps_train_delta){delta.changed, delta.fresh, delta.bytes};
    return rc < 0 ? drps_err_context(err, "the model is written, but not the delta") : 0;
}
