/* A folder of trained parameters becomes a model folder under its final name. */
#include "engine/publish/drps_publish_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "base/folder/drps_space.h"
#include "base/folder/drps_durable.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/publish/drps_trained.h"
#include "storage/kv/drps_kv.h"

enum { MIB = 1 << 20, ENGINE_LEAST = 12 * MIB, ENGINE_MOST = 48 * MIB, PROGRAM_BYTES = 20 * MIB };

int drps_publish_engine(const char *name, const struct drps_kv_ops **kv_out, struct drps_err *err)
{
    *kv_out = name ? drps_kv_find(name) : drps_kv_engines()[0];
    if (*kv_out && !(*kv_out)->training_only) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "the model's engine %s is not in this build",
                        name ? name : "rocksdb or leveldb");
}

/* One folder being published. */
struct publication {
    const struct drps_io *io;
    const char *folder;
    const char *dir; /* of the stage */
    struct drps_trained_about about;
    json_t *manifest; /* own */
    const struct drps_publish_options *options;
    struct drps_modelrows *rows; /* own: being written */
};

static int join(const char *dir, const char *name, char **path_out, struct drps_err *err)
{
    *path_out = drps_path_join(dir, name);
    return *path_out ? 0 : drps_err_set(err, -ENOMEM, "no memory for a path in %s", dir);
}

/* A second name for the dictionary takes no room; on another disk it is copied. */
static int put_names(const struct publication *p, struct drps_err *err)
{
    char *from = NULL, *to = NULL;
    struct stat st;
    uint64_t bytes, sum;
    int rc = join(p->folder, DRPS_TRAINED_NAMES, &from, err);
    if (rc == 0) rc = join(p->dir, DRPS_TRAINED_NAMES, &to, err);
    if (rc == 0) {
        const int is_file = lstat(from, &st) == 0 && S_ISREG(st.st_mode);
        const int linked = is_file && p->io->ops->link(p->io->ctx, from, to) == 0;
        rc = drps_copy_file(p->io, from, linked ? NULL : to, &bytes, &sum, err);
    }
    if (rc == 0 && (bytes != p->about.names_bytes || sum != p->about.names_sum))
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s is not the file that was written (size or checksum differ)", from);
    free(from);
    free(to);
    return rc;
}

static int add_rows(void *ctx, uint64_t first, size_t n, const void *params, struct drps_err *err)
{
    const struct publication *p = ctx;
    const struct drps_publish_options *o = p->options;
    const uint64_t param_bytes = p->about.dim * sizeof(float);
    int rc = drps_modelrows_add(p->rows, first, n, params, err);
    if (rc == 0 && o->on_progress)
        o->on_progress(o->ctx, (first + n) * param_bytes, p->about.rows * param_bytes);
    return rc;
}

static int fill_rows(struct publication *p, const char *from, struct drps_err *err)
{
    uint64_t content = 0;
    int rc = drps_params_read(p->io, from, p->about.rows, p->about.dim, add_rows, p, err);
    if (rc == 0) rc = drps_modelrows_finish(p->rows, &content, err);
    if (rc == 0 && content != p->about.content)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s: the parameters are not those that were trained (content differs)",
                          from);
    return rc;
}

static int put_rows(struct publication *p, const struct drps_kv_ops *kv, uint64_t memory_bytes,
                    struct drps_err *err)
{
    const struct drps_trained_about *a = &p->about;
    char *from = NULL, *to = NULL;
    int rc = drps_space_check(p->dir, "the model needs",
                              kv->bulk_bytes(a->rows * a->dim * sizeof(float)), 0, err);
    if (rc == 0) rc = join(p->folder, DRPS_TRAINED_PARAMS, &from, err);
    if (rc == 0) rc = join(p->dir, DRPS_MODEL_ROWS, &to, err);
    if (rc == 0) rc = drps_modelrows_open(kv, to, a->rows, a->dim, memory_bytes, &p->rows, err);
    if (rc == 0) rc = fill_rows(p, from, err);
    drps_modelrows_close(p->rows);
    p->rows = NULL;
    free(from);
    free(to);
    return rc;
}

/* What was said of the training is said of the model; what depends on this build is new. */
static int put_manifest(const struct publication *p, const struct drps_kv_ops *kv,
                        struct drps_err *err)
{
    json_t *j = p->manifest, *training = json_object_get(j, "training");
    if (json_object_set_new(j, "kind", json_string("drps-model")) < 0 ||
        json_object_set_new(j, "version", json_integer(DRPS_MODELDIR_VERSION)) < 0 ||
        json_object_set_new(j, "block_rows",
                            json_integer((json_int_t)drps_modeldir_block_rows(p->about.dim))) < 0 ||
        (training && json_object_set_new(training, "model_store", json_string(kv->name)) < 0))
        return drps_err_set(err, -ENOMEM, "no memory for the model's manifest");
    return drps_modeldir_finish(p->io, p->dir, kv->name, p->about.names_bytes, p->about.names_sum,
                                j, err);
}

static int lies_in(const struct drps_stage *stage, const char *folder)
{
    const size_t n = strlen(stage->dir);
    return strncmp(folder, stage->dir, n) == 0 && folder[n] == '/';
}

int drps_publish_stage(struct drps_stage *stage, const char *folder, const struct drps_kv_ops *kv,
                       uint64_t memory_bytes, const struct drps_publish_options *options,
                       struct drps_publish_result *result, struct drps_err *err)
{
    const struct drps_log *log = options->log;
    struct publication p = {
        .io = stage->io, .folder = folder, .dir = stage->dir, .options = options};
    struct drps_err left = DRPS_ERR_INIT;
    void *manifest;
    const int is_inside = lies_in(stage, folder);
    int rc = drps_trained_open(p.io, folder, &p.about, &manifest, err);
    p.manifest = manifest;
    if (rc == 0) rc = put_names(&p, err);
    if (rc == 0) rc = put_rows(&p, kv, memory_bytes, err);
    if (rc == 0) rc = put_manifest(&p, kv, err);
    if (rc == 0 && is_inside) rc = drps_trained_remove(stage->io, folder, err);
    if (rc == 0) rc = drps_stage_commit(stage, err);
    json_decref(p.manifest);
    if (rc < 0) return rc;
    if (stage->left.code) drps_log(log, DRPS_LOG_WARN, "%s", stage->left.text);
    result->rows = p.about.rows;
    result->content = p.about.content;
    result->model_bytes = p.about.rows * p.about.dim * sizeof(float);
    result->model_store = kv->name;
    if (!is_inside &&
        drps_trained_remove(stage->io, folder, &left) < 0) /* the model is there all the same */
        drps_log(log, DRPS_LOG_WARN, "%s is not needed any more: %s", folder, left.text);
    return 0;
}

static uint64_t engine_memory(uint64_t memory_bytes)
{
    const uint64_t all = memory_bytes ? memory_bytes : drps_memory_available() / 2;
    const uint64_t left = all > PROGRAM_BYTES ? all - PROGRAM_BYTES : 0;
    return left < ENGINE_LEAST ? ENGINE_LEAST : left < ENGINE_MOST ? left : ENGINE_MOST;
}

int drps_publish_run(const struct drps_io *io, const struct drps_publish_options *o,
                     struct drps_publish_result *result, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    const struct drps_kv_ops *kv;
    struct drps_stage stage;
    memset(result, 0, sizeof(*result));
    int rc = drps_publish_engine(o->model_store, &kv, err);
    if (rc < 0) return rc;
    rc = drps_stage_begin(&stage, io, o->model_path, &drps_modeldir_kind, o->replace, err);
    if (rc < 0) return rc;
    rc = drps_publish_stage(&stage, o->folder, kv, engine_memory(o->memory_bytes), o, result, err);
    drps_stage_abort(&stage); /* nothing to do once committed */
    result->seconds = drps_seconds_since(start);
    return rc;
}
