/* The folders in which ranks train: the model's, and beside it one for each other rank. */
#include "engine/train/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/publish/drps_modeldir.h"

char *drps_job_beside(const struct drps_job *job, const char *suffix)
{
    const char *path = job->options->model_path;
    size_t n = strlen(path);
    char *name;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return asprintf(&name, "%.*s%s", (int)n, path, suffix) < 0 ? NULL : name;
}

/* The name that the stage of another rank than the one that writes the model has. */
static char *rank_path(const struct drps_job *job, uint32_t rank)
{
    char *path;
    return asprintf(&path, "%s.rank-%u", job->options->model_path, rank) < 0 ? NULL : path;
}

int drps_job_begin_stage(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    char *path = job->whole ? NULL : rank_path(job, job->cluster.rank);
    if (!path && !job->whole) return drps_err_set(err, -ENOMEM, "no memory for a path");
    int rc = drps_stage_begin(&job->stage, job->plan->io, path ? path : o->model_path,
                              &drps_modeldir_kind, o->replace && !path, err);
    free(path);
    return rc;
}

/* Whether a stage of that name is here. */
static int is_here(const char *path)
{
    struct stat st;
    char *dir;
    if (asprintf(&dir, "%s" DRPS_STAGE_SUFFIX, path) < 0) return 0;
    const int is = lstat(dir, &st) == 0;
    free(dir);
    return is;
}

void drps_job_clear_stage(const struct drps_job *job, uint32_t rank)
{
    struct drps_stage stage;
    struct drps_err ignored = DRPS_ERR_INIT; /* it is in use, or there to stay */
    char *path = rank_path(job, rank);
    if (path && is_here(path) &&
        drps_stage_begin(&stage, job->plan->io, path, &drps_modeldir_kind, 0, &ignored) == 0)
        drps_stage_abort(&stage);
    free(path);
}
