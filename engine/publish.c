/* From rows in a store to a model folder under its final name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "engine/drps_modeldir.h"
#include "engine/drps_report.h"
#include "engine/job.h"

/* All rows, into the stage: a new database in place of an earlier candidate's. */
static int write_rows(struct drps_job *job, struct drps_err *err)
{
    const struct drps_server *server = &job->server;
    struct drps_modelrows *w = NULL;
    char *path = drps_path_join(job->stage.dir, "rows");
    int rc = path ? 0 : drps_err_set(err, -ENOMEM, "no memory to write the model");

    if (rc == 0) rc = drps_io_remove_tree(job->plan->io, path, err);
    if (rc == 0)
        rc = drps_modelrows_open(job->model_kv, path, job->whole->info.rows, server->model.dim,
                                 server->row_bytes, job->memory.export_bytes, &w, err);
    if (rc == 0)
        rc = job->ranks ? drps_cluster_export(&job->cluster, server, w, err)
                        : server->ops->scan(server->store, drps_modelrows_add, w, err);
    if (rc == 0) rc = drps_modelrows_finish(w, &job->result->content, err);
    drps_modelrows_close(w);
    free(path);
    return rc;
}

int drps_job_export(struct drps_job *job, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    int rc = job->whole ? write_rows(job, err)
                        : drps_cluster_export(&job->cluster, &job->server, NULL, err);
    job->export_ns += drps_clock_ns() - start;
    return rc;
}

static void fill_info(const struct drps_job *job, struct drps_modeldir_info *info)
{
    const struct drps_plan_info *plan = &job->whole->info;
    *info = (struct drps_modeldir_info){
        .model = job->server.model,
        .classification = plan->classification,
        .label_negative = plan->label_negative,
        .label_positive = plan->label_positive,
        .label_mean = plan->label_mean,
        .hash_seed = plan->hash_seed,
        .string_names = plan->string_names,
        .rows = plan->rows,
        .block_rows = drps_modeldir_block_rows(job->server.model.dim),
        .content = job->result->content,
        .tables_n = plan->tables_n,
        .fields_n = plan->fields_n,
        .fields = job->whole->fields,
    };
    memcpy(info->plan_id, plan->id, sizeof(info->plan_id));
    memcpy(info->format, plan->format, sizeof(info->format));
    memcpy(info->tables, plan->tables, sizeof(info->tables));
    strncpy(info->store, job->model_kv->name, sizeof(info->store) - 1); /* the rest is zero */
}

/* The store's files lie in the stage, too, so that they vanish with it; the model must not keep
 * them. */
static int remove_store(struct drps_job *job, struct drps_err *err)
{
    char *path = drps_path_join(job->stage.dir, "store");
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to write the model");
    drps_server_close(&job->server);
    int rc = drps_io_remove_tree(job->plan->io, path, err);
    free(path);
    return rc;
}

int drps_job_publish(struct drps_job *job, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    struct drps_modeldir_info info;

    int rc = remove_store(job, err);
    if (rc < 0 || !job->whole) return rc;
    fill_info(job, &info);
    json_t *training = drps_report_json(job->options, job->result);
    if (!training) return drps_err_set(err, -ENOMEM, "no memory for the model's manifest");
    rc = drps_modeldir_finish(job->plan->io, job->stage.dir, job->whole, &info, training, err);
    json_decref(training);
    if (rc == 0) rc = drps_stage_commit(&job->stage, err);
    if (job->stage.left.code)
        drps_log(job->options->log, DRPS_LOG_WARN, "%s", job->stage.left.text);
    job->export_ns += drps_clock_ns() - start;
    return rc;
}
