/*
 * The end of a training run, in two halves. The first writes the parameters to a folder in which
 * all room was set aside before training, and gives it a name of its own. The second makes the
 * model of that folder. Whatever happens to the second, or to the run once some parameters are
 * whole on disk, the folder stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "base/folder/drps_space.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_publish_stage.h"
#include "engine/train/drps_report.h"
#include "engine/train/job.h"
#include "index/plan/drps_names.h"
#include "storage/kv/drps_kv.h"

enum {
    MANIFEST_BYTES = 1 << 20, /* of trained.json; an epoch takes some 600 bytes of it */
    EPOCH_BYTES = 1 << 10,
    EPOCHS_MOST = 1 << 15,
    NAME_BYTES = 80, /* of a row, in a message */
};

/* ---- Before training ---- */

static uint64_t manifest_bytes(const struct drps_job *job)
{
    const uint64_t asked = job->options->epochs, epochs = asked < EPOCHS_MOST ? asked : EPOCHS_MOST;
    return MANIFEST_BYTES + epochs * EPOCH_BYTES + drps_modeldir_gram_memory(&job->server.model);
}

int drps_job_begin_export(struct drps_job *job, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    if (!job->whole || o->pilot.on) return 0;
    const struct drps_trained_parts parts = {.plan = job->whole,
                                             .rows = job->whole->info.rows,
                                             .dim = job->server.model.dim,
                                             .pair = o->patience > 0,
                                             .manifest_bytes = manifest_bytes(job)};
    char *dir = drps_path_join(job->stage.dir, DRPS_MODEL_TRAINED);
    if (!dir) return drps_err_set(err, -ENOMEM, "no memory to write the model");
    int rc = drps_trained_begin(&job->trained, job->plan->io, dir, &parts, err);
    free(dir);
    return rc;
}

/* Uses of rows in an epoch, each counted once for each batch; plans of earlier versions do not say.
 */
static uint64_t row_uses(const struct drps_job *job)
{
    const struct drps_plan_info *info = &job->plan->info;
    return info->row_uses ? info->row_uses
                          : drps_product(info->batches + info->eval_batches, info->max_batch_rows);
}

/* 0: the disk will be asked. */
static uint64_t seek_bytes(const struct drps_store_config *config)
{
    const int asks = config->rows * config->row_bytes >= DRPS_JOB_PROBE_LEAST;
    return config->seek_bytes || asks ? config->seek_bytes : 1;
}

static void space_of(const struct drps_job *job, const struct drps_store_config *config,
                     struct drps_space *s)
{
    const struct drps_memory *m = &job->memory;
    const uint64_t params = job->result->model_bytes;
    *s = (struct drps_space){
        .store = drps_space_of_store(m, config->rows, config->row_bytes),
        .reserved = !m->kv || m->kv->training_only,
        .scan = drps_space_of_scan(m, config->rows, drps_server_scan_bytes(&job->server)),
        .more = drps_space_of_store_more(m, config->rows, config->row_bytes, row_uses(job),
                                         seek_bytes(config)),
    };
    s->from = drps_job_rows_space(job) + drps_job_copy_space(job, s->store + s->scan);
    if (!job->whole) return;
    struct stat names = {.st_size = 0};
    char *path = drps_path_join(job->whole->dir, DRPS_TRAINED_NAMES);
    if (path) (void)stat(path, &names); /* that it is there was looked for before */
    free(path);
    s->trained =
        params * (job->options->patience ? 2 : 1) + (uint64_t)names.st_size + manifest_bytes(job);
    s->database = job->model_kv->bulk_bytes(params);
}

int drps_job_check_space(const struct drps_job *job, const struct drps_store_config *config,
                         int reserved, struct drps_err *err)
{
    struct drps_space s;
    space_of(job, config, &s);
    return reserved ? drps_space_check(job->store_dir, "what comes after training still needs",
                                       drps_space_still_needed(&s), 0, err)
                    : drps_space_check(job->store_dir, "training and the model need",
                                       drps_space_needed(&s), drps_space_most(&s), err);
}

void drps_job_say_space(const struct drps_job *job, const struct drps_store_config *config,
                        struct drps_err *err)
{
    struct drps_space s;
    char need[32];
    space_of(job, config, &s);
    const uint64_t most = drps_space_most(&s);
    (void)drps_err_context(
        err, "training and the model need %s %s", most ? "up to" : "more than",
        drps_size_format(most ? most : drps_space_needed(&s), need, sizeof(need)));
}

/* ---- Parameters ---- */

struct sought {
    const struct drps_plan *plan;
    uint64_t row;
    char name[NAME_BYTES];
};

static int seek_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct sought *s = ctx;
    const char *of = field < s->plan->info.fields_n ? s->plan->fields[field] : "";
    (void)err;
    if (row != s->row) return 0;
    if (text)
        (void)snprintf(s->name, sizeof(s->name), " (%s%s%.*s)", of, *of ? " " : "",
                       bytes < NAME_BYTES ? (int)bytes : NAME_BYTES, text); /* cut if long */
    else
        (void)snprintf(s->name, sizeof(s->name), " (%llu)", (unsigned long long)key);
    return 1;
}

/* Looks for the row's name in the whole dictionary, which is sorted by name. Without it the row's
 * number must do. */
static void name_row(const struct drps_job *job, struct sought *s)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    struct drps_names *names;
    if (!job->whole || drps_names_open(job->plan->io, job->whole->dir, &names, &ignored) < 0)
        return;
    const int rc = drps_names_scan(names, seek_name, s, &ignored);
    (void)rc;
    drps_names_close(names);
}

static int not_finite(const struct drps_job *job, const struct drps_params_found *found,
                      uint64_t epoch, struct drps_err *err)
{
    const struct drps_plan *plan = job->whole ? job->whole : job->plan;
    const double lr = (double)job->server.optim.lr;
    struct sought sought = {.plan = plan, .row = found->row, .name = ""};
    const char *table = "";
    for (size_t t = 0; t < plan->info.tables_n; t++)
        if (found->row - plan->info.tables[t].first < plan->info.tables[t].rows)
            table = plan->info.tables[t].name;
    name_row(job, &sought);
    return drps_err_set(
        err, -ERANGE,
        "row %llu%s of table %s has the value %g after epoch %llu, as have %llu "
        "values in all: training diverged; try a smaller learning rate (it is %g, try %g), "
        "or scale the data's values",
        (unsigned long long)found->row, sought.name, table, found->value, (unsigned long long)epoch,
        (unsigned long long)found->bad, lr, lr / 10);
}

static void tell(const struct drps_job *job, const char *what, uint64_t bytes, uint64_t all_bytes)
{
    const struct drps_train_options *o = job->options;
    if (o->on_write) o->on_write(o->ctx, what, bytes, all_bytes);
}

static void tell_written(void *ctx, uint64_t bytes, uint64_t all_bytes)
{
    tell(ctx, "writing the parameters", bytes, all_bytes);
}

static void tell_published(void *ctx, uint64_t bytes, uint64_t all_bytes)
{
    tell(ctx, "making the model", bytes, all_bytes);
}

static int write_params(struct drps_job *job, struct drps_params_found *found, struct drps_err *err)
{
    const struct drps_server *server = &job->server;
    struct drps_params *w = NULL;
    int rc = job->whole ? drps_trained_write(&job->trained, server->row_bytes, &w, err) : 0;
    if (rc == 0 && w) drps_params_tell(w, tell_written, job);
    if (rc == 0)
        rc = job->ranks ? drps_cluster_export(&job->cluster, server, w, err)
                        : drps_server_scan_parameters(server, drps_params_add, w, err);
    if (rc == 0 && w) rc = drps_params_finish(w, found, err);
    drps_params_close(w);
    if (rc == 0 && job->ranks) rc = drps_cluster_tell(&job->cluster, found, err);
    return rc;
}

int drps_job_export(struct drps_job *job, uint64_t epoch, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    struct drps_params_found found;
    memset(&found, 0, sizeof(found));
    int rc = write_params(job, &found, err);
    job->export_ns += drps_clock_ns() - start;
    if (rc == 0 && found.bad) return not_finite(job, &found, epoch, err);
    if (rc < 0 || !job->whole) return rc;
    drps_trained_accept(&job->trained, found.content);
    job->result->content = found.content;
    return 0;
}

/* ---- The folder ---- */

static void fill_info(const struct drps_job *job, struct drps_modeldir_info *info)
{
    const struct drps_plan_info *plan = &job->whole->info;
    *info = (struct drps_modeldir_info){
        .model = job->server.model,
        .classification = plan->classification,
        .label_negative = plan->label_negative,
        .label_positive = plan->label_positive,
        .label_mean = plan->label_mean,
        .classes = plan->classes,
        .hash_seed = plan->hash_seed,
        .hashing = plan->hashing,
        .string_names = plan->string_names,
        .sequences = plan->sequences,
        .rows = plan->rows,
        .block_rows = drps_modeldir_block_rows(job->server.model.dim),
        .content = job->trained.content,
        .tables_n = plan->tables_n,
        .fields_n = plan->fields_n,
        .fields = job->whole->fields,
        .separator = plan->separator,
        .headless = plan->headless,
        .plan_command = plan->command,
    };
    if (plan->sequences.lines) info->sequences.most = DRPS_SEQUENCE_MOST;
    if (job->topic) info->gram = drps_topic_gram(job->topic);
    info->topic_l1 = (double)job->server.optim.l1;
    memcpy(info->label_column, plan->label_column, sizeof(info->label_column));
    memcpy(info->plan_id, plan->id, sizeof(info->plan_id));
    memcpy(info->format, plan->format, sizeof(info->format));
    memcpy(info->tables, plan->tables, sizeof(info->tables));
}

/* Closes the store and removes its folder, with the windows cut for the run: the model needs the
 * room. */
static void remove_store(struct drps_job *job)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    drps_windows_close(job->windows);
    job->windows = NULL;
    drps_server_close(&job->server);
    if (job->store_dir) (void)drps_io_remove_tree(job->plan->io, job->store_dir, &ignored);
}

static int keep(struct drps_job *job, struct drps_err *err)
{
    struct drps_modeldir_info info;
    char *path = NULL;
    fill_info(job, &info);
    json_t *training = drps_report_json(job->options, job->result);
    json_t *manifest = training ? drps_modeldir_describe(&info, training) : NULL;
    if (asprintf(&path, "%s" DRPS_TRAINED_SUFFIX, job->stage.path) < 0) path = NULL;
    int rc = manifest && path ? drps_trained_keep(&job->trained, manifest, path, err)
                              : drps_err_set(err, -ENOMEM, "no memory to keep what was trained");
    json_decref(manifest);
    json_decref(training);
    free(path);
    return rc;
}

/* 1: less than an epoch was trained, which does not replace a whole model. */
static int is_less(const struct drps_job *job)
{
    struct stat st;
    return !job->result->best_epoch && !job->result->epochs_n && lstat(job->stage.path, &st) == 0;
}

static int publish(struct drps_job *job, struct drps_err *err)
{
    struct drps_publish_result done;
    if (is_less(job)) return 0;
    drps_watch_leave_folder(job->watch);
    const struct drps_publish_options options = {
        .log = job->options->log, .on_progress = tell_published, .ctx = job};
    int rc = drps_publish_stage(&job->stage, job->trained.dir, job->model_kv,
                                job->memory.export_bytes, &options, &done, err);
    job->result->published = rc == 0;
    return rc;
}

/* Puts before what went wrong that nothing is lost. */
static void say_kept(const struct drps_job *job, struct drps_err *err)
{
    (void)drps_err_context(err,
                           "what was trained is kept in %s, of which the model can be made on any "
                           "disk; no model was written",
                           job->trained.dir);
}

/* 1: a rank was lost while all trained. The run is to go on from its checkpoints, which have the
 * best epoch, too, and comes to a model itself. */
static int goes_on(const struct drps_job *job, int rc)
{
    const int lost = rc == DRPS_E_PEER || rc == DRPS_E_PROTO || rc == -ETIMEDOUT;
    return lost && job->options->checkpoint_every.unit != DRPS_CHECKPOINT_NEVER;
}

int drps_job_conclude(struct drps_job *job, int rc, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    const int nothing = job->result->interrupted && !job->result->epochs_n && !job->result->steps;
    if (!job->trained.complete || nothing || goes_on(job, rc)) return rc;
    remove_store(job);
    const int kept = keep(job, err);
    if (rc == 0) rc = kept;
    if (rc == 0) rc = publish(job, err);
    if (job->trained.kept && !job->result->published) {
        job->result->kept = strdup(job->trained.dir);
        if (rc < 0) say_kept(job, err);
    }
    job->export_ns += drps_clock_ns() - start;
    return rc;
}
