#include "engine/publish/drps_modeldir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/folder/drps_manifest.h"
#include "engine/publish/blockcache.h"
#include "engine/publish/drps_trained.h"
#include "index/plan/drps_names.h"
#include "storage/kv/drps_kv.h"

enum {
    MIB = 1 << 20,
    NAMES_BYTES = MIB, /* one page of the dictionary, its strings included, and its directory */
    ENGINE_LEAST = 2 * MIB, /* for reading only */
    ENGINE_MOST = 64 * MIB,
    FRAMES_LEAST = 16,
    FRAMES_FEW = 128,
    VERIFY_BLOCKS = 64, /* read together: about a MiB */
};

/* Files of the row stores, and windows that are cut for a run. */
static const struct drps_owned store_owned[] = {
    {.name = "streams"},
    {.name = "transit"}, /* the streams of earlier versions */
    {.name = "scan"},
    {.name = "probe"},
    {.name = "blocks"}, /* engine file */
    {.name = "blocks", .inside = drps_kv_owned},
    {.name = DRPS_FILE_WINDOWS},
    {.name = DRPS_FILE_WINDOW_ROWS_TMP},
    {.name = DRPS_FILE_WINDOW_NEXT_TMP},
    {.name = DRPS_FILE_WINDOW_PREV_TMP},
    {.name = DRPS_FILE_SLOTS},
    {.name = NULL},
};
/* What is trained and no model yet: engine/publish/drps_trained.h. */
static const struct drps_owned trained_owned[] = {
    {.name = DRPS_TRAINED_MANIFEST},
    {.name = DRPS_TRAINED_PARAMS},
    {.name = DRPS_TRAINED_PARAMS_NEXT},
    {.name = DRPS_TRAINED_NAMES},
    {.name = NULL},
};
static const struct drps_owned model_owned[] = {
    {.name = DRPS_MODEL_MANIFEST},
    {.name = DRPS_MODEL_NAMES},
    {.name = DRPS_MODEL_ROWS, .inside = drps_kv_owned},
    {.name = DRPS_MODEL_STORE, .inside = store_owned, .unfinished = 1},
    {.name = DRPS_MODEL_TRAINED, .inside = trained_owned, .unfinished = 1},
    {.name = NULL},
};
const struct drps_stage_kind drps_modeldir_kind = {.manifest = DRPS_MODEL_MANIFEST,
                                                   .kind = "drps-model",
                                                   .version = DRPS_MODELDIR_VERSION,
                                                   .owned = model_owned};

struct drps_modeldir {
    const struct drps_io *io; /* borrowed */
    char *dir;                /* own */
    struct drps_modeldir_info info;
    json_t *json;             /* own */
    struct drps_names *names; /* own */
    const struct drps_kv_ops *ops;
    struct drps_kv *kv; /* own */
    struct drps_blockcache cache;
    uint64_t names_bytes; /* of names.rec */
};

/* ---- model.json ---- */

static json_t *tables_to_json(const struct drps_modeldir_info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->tables_n; i++)
        (void)json_array_append_new(list, json_pack("{s:s, s:I, s:I}", "name", info->tables[i].name,
                                                    "first", (json_int_t)info->tables[i].first,
                                                    "rows", (json_int_t)info->tables[i].rows));
    return list;
}

static json_t *fields_to_json(const struct drps_modeldir_info *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < info->fields_n; i++)
        (void)json_array_append_new(list, json_string(info->fields[i]));
    return list;
}

/* NULL when memory is gone. */
static json_t *info_to_json(const struct drps_modeldir_info *info)
{
    const struct drps_model *m = &info->model;
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:b, s:f, s:f, s:o, s:b, s:f, "
                     "s:f, s:f, s:o, s:b, "
                     "s:I, s:I, s:o, s:o, s:o}",
                     "kind", drps_modeldir_kind.kind, "version", DRPS_MODELDIR_VERSION, "made_by",
                     "drps-train " DRPS_VERSION, "plan", info->plan_id, "algo",
                     drps_algo_name(m->algo), "loss", drps_loss_name(m->loss), "format",
                     info->format, "rank", (int)m->rank, "dim", (int)m->dim, "has_bias",
                     m->has_bias, "bias_start", (double)m->bias_start, "init_scale",
                     (double)m->init_scale, "seed", drps_manifest_hex(m->seed), "classification",
                     info->classification, "label_negative", (double)info->label_negative,
                     "label_positive", (double)info->label_positive, "label_mean", info->label_mean,
                     "hash_seed", drps_manifest_hex(info->hash_seed), "string_names",
                     info->string_names, "rows", (json_int_t)info->rows, "block_rows",
                     (json_int_t)info->block_rows, "content", drps_manifest_hex(info->content),
                     "tables", tables_to_json(info), "fields", fields_to_json(info));
}

static int info_from_json(struct drps_modeldir_info *info, const json_t *j, const char *path,
                          struct drps_err *err)
{
    char algo[DRPS_PLAN_NAME_BYTES], loss[DRPS_PLAN_NAME_BYTES];
    struct drps_model *m = &info->model;
    float mean, bias_start, init_scale;
    uint32_t rank;
    uint64_t seed;

    int rc = drps_manifest_get_text(j, "plan", path, info->plan_id, sizeof(info->plan_id), err);
    if (rc == 0) rc = drps_manifest_get_text(j, "algo", path, algo, sizeof(algo), err);
    if (rc == 0) rc = drps_manifest_get_text(j, "loss", path, loss, sizeof(loss), err);
    if (rc == 0)
        rc = drps_manifest_get_text(j, "format", path, info->format, sizeof(info->format), err);
    if (rc == 0) rc = drps_manifest_get_u32(j, "rank", path, &rank, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "bias_start", path, &bias_start, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "init_scale", path, &init_scale, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "seed", path, &seed, err);
    if (rc == 0)
        rc = drps_manifest_get_float(j, "label_negative", path, &info->label_negative, err);
    if (rc == 0)
        rc = drps_manifest_get_float(j, "label_positive", path, &info->label_positive, err);
    if (rc == 0) rc = drps_manifest_get_float(j, "label_mean", path, &mean, err);
    if (rc == 0) rc = drps_manifest_get_real(j, "label_mean", path, &info->label_mean, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "hash_seed", path, &info->hash_seed, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "content", path, &info->content, err);
    if (rc < 0) return rc;
    info->classification = json_is_true(json_object_get(j, "classification"));
    info->string_names = json_is_true(json_object_get(j, "string_names"));
    struct drps_err inner = DRPS_ERR_INIT;
    if (drps_model_init(m, algo, loss, rank, info->classification, &inner) < 0)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %s", path, inner.text);
    m->has_bias = json_is_true(json_object_get(j, "has_bias"));
    m->bias_start = bias_start;
    m->init_scale = init_scale;
    m->seed = seed;
    return 0;
}

/* Every other number; those of "training" are only shown. A block of rows is not larger than it is
 * written, and rows are those of the tables. */
static int numbers_from_json(struct drps_modeldir *md, const json_t *j, const char *path,
                             struct drps_err *err)
{
    struct drps_modeldir_info *info = &md->info;
    const json_t *names = json_object_get(json_object_get(j, "files"), DRPS_MODEL_NAMES);
    const uint64_t dim = info->model.dim;
    uint64_t has_dim, rows = 0;
    int rc = drps_manifest_get_count(j, "dim", path, &has_dim, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "rows", path, &info->rows, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "block_rows", path, &info->block_rows, err);
    if (rc == 0) rc = drps_manifest_get_count(names, "bytes", path, &md->names_bytes, err);
    if (rc < 0) return rc;
    rc = drps_tables_check(info->tables, info->tables_n, path, &rows, err);
    const struct drps_bound bounds[] = {
        {"dim", has_dim, dim, dim, "the rank"},
        {"rows", info->rows, rows, rows, "the tables"},
        {"block_rows", info->block_rows, 1, drps_modeldir_block_rows(info->model.dim), "the dim"},
    };
    return rc == 0 ? drps_manifest_check(bounds, sizeof(bounds) / sizeof(bounds[0]), path, err)
                   : rc;
}

static int lists_from_json(struct drps_modeldir_info *info, const json_t *j, const char *path,
                           struct drps_err *err)
{
    const json_t *tables = json_object_get(j, "tables");
    const json_t *fields = json_object_get(j, "fields");
    const json_t *store = json_object_get(json_object_get(j, "files"), DRPS_MODEL_ROWS);
    int rc = drps_manifest_get_text(store, "store", path, info->store, sizeof(info->store), err);
    info->tables_n = json_array_size(tables);
    if (info->tables_n > DRPS_PLAN_TABLES)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: %zu tables; at most %d are known", path,
                            info->tables_n, DRPS_PLAN_TABLES);
    for (size_t i = 0; rc == 0 && i < info->tables_n; i++) {
        struct drps_table *t = &info->tables[i];
        const json_t *entry = json_array_get(tables, i);
        rc = drps_manifest_get_text(entry, "name", path, t->name, sizeof(t->name), err);
        if (rc == 0) rc = drps_manifest_get_count(entry, "first", path, &t->first, err);
        if (rc == 0) rc = drps_manifest_get_count(entry, "rows", path, &t->rows, err);
    }
    info->fields_n = 0;
    info->fields = calloc(json_array_size(fields) + 1, sizeof(*info->fields));
    if (!info->fields) return drps_err_set(err, -ENOMEM, "no memory for %s", path);
    for (; info->fields_n < json_array_size(fields); info->fields_n++) {
        const char *text = json_string_value(json_array_get(fields, info->fields_n));
        info->fields[info->fields_n] = strdup(text ? text : "");
        if (!info->fields[info->fields_n])
            return drps_err_set(err, -ENOMEM, "no memory for %s", path);
    }
    return rc;
}

/* ---- Writing ---- */

/* Number and bytes of the files in folder `path`, which an engine has written. */
static int measure_folder(const char *path, uint64_t *files_out, uint64_t *bytes_out,
                          struct drps_err *err)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    struct stat st;
    *files_out = *bytes_out = 0;
    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", path, drps_err_name(-errno));
    while ((entry = readdir(dir)))
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode)) {
            (*files_out)++;
            *bytes_out += (uint64_t)st.st_size;
        }
    closedir(dir);
    return 0;
}

void *drps_modeldir_describe(const struct drps_modeldir_info *info, void *training)
{
    json_t *j = info_to_json(info);
    if (!j || !training || json_object_set(j, "training", training) == 0) return j;
    json_decref(j);
    return NULL;
}

int drps_modeldir_finish(const struct drps_io *io, const char *dir, const char *store,
                         uint64_t names_bytes, uint64_t names_sum, void *description,
                         struct drps_err *err)
{
    char *rows = drps_path_join(dir, DRPS_MODEL_ROWS);
    char *manifest = drps_path_join(dir, DRPS_MODEL_MANIFEST);
    uint64_t rows_files, rows_bytes;
    int rc = rows && manifest ? 0 : drps_err_set(err, -ENOMEM, "no memory to finish %s", dir);

    if (rc == 0) rc = measure_folder(rows, &rows_files, &rows_bytes, err);
    if (rc == 0) {
        json_t *files = json_pack("{s:{s:I, s:o}, s:{s:s, s:I, s:I}}", DRPS_MODEL_NAMES, "bytes",
                                  (json_int_t)names_bytes, "checksum", drps_manifest_hex(names_sum),
                                  DRPS_MODEL_ROWS, "store", store, "files", (json_int_t)rows_files,
                                  "bytes", (json_int_t)rows_bytes);
        rc = json_object_set(description, "files", files) == 0
                 ? drps_manifest_write(io, manifest, description, err)
                 : drps_err_set(err, -ENOMEM, "no memory for %s", manifest);
        json_decref(files);
    }
    free(rows);
    free(manifest);
    return rc;
}

/* ---- Reading ---- */

static int read_manifest(struct drps_modeldir *md, struct drps_err *err)
{
    char *path = drps_path_join(md->dir, DRPS_MODEL_MANIFEST);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to open %s", md->dir);
    int rc = drps_manifest_read(md->io, path, drps_modeldir_kind.kind, DRPS_MODELDIR_VERSION,
                                &md->json, err);
    if (rc == -ENOENT || rc == -ENOTDIR) {
        drps_err_clear(err);
        rc = drps_err_set(err, DRPS_E_NOT_FOUND,
                          "%s is no drps model (no %s in it): make one with drps-train", md->dir,
                          DRPS_MODEL_MANIFEST);
    }
    if (rc == 0) rc = info_from_json(&md->info, md->json, path, err);
    if (rc == 0) rc = lists_from_json(&md->info, md->json, path, err);
    if (rc == 0) rc = numbers_from_json(md, md->json, path, err);
    free(path);
    return rc;
}

/* The dictionary's directory has some bytes for every page of some tens of thousands. */
static uint64_t names_memory(const struct drps_modeldir *md)
{
    return NAMES_BYTES + md->names_bytes / 1024;
}

/* Its bytes are compared by drps_modeldir_verify() alone. */
static int open_names(struct drps_modeldir *md, struct drps_err *err)
{
    int rc = drps_names_open(md->io, md->dir, &md->names, err);
    if (rc < 0 || drps_names_bytes(md->names) == md->names_bytes) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s/%s has %llu bytes, %s says %llu", md->dir,
                        DRPS_MODEL_NAMES, (unsigned long long)drps_names_bytes(md->names),
                        DRPS_MODEL_MANIFEST, (unsigned long long)md->names_bytes);
}

static uint64_t frame_bytes(const struct drps_modeldir *md)
{
    return drps_blockcache_memory(0, md->info.block_rows, md->info.model.dim * sizeof(float), 1);
}

static uint64_t fixed_memory(const struct drps_modeldir *md)
{
    return names_memory(md) + drps_blockcache_memory(md->info.rows, md->info.block_rows, 0, 0);
}

uint64_t drps_modeldir_memory_least(const struct drps_modeldir *md)
{
    return fixed_memory(md) + ENGINE_LEAST + FRAMES_LEAST * frame_bytes(md);
}

/* Who gets how much, of at least the least. */
struct share {
    uint64_t engine, frames;
};

static struct share share_out(const struct drps_modeldir *md, uint64_t memory_bytes)
{
    const uint64_t blocks = (md->info.rows + md->info.block_rows - 1) / md->info.block_rows;
    const uint64_t most = memory_bytes - fixed_memory(md) - FRAMES_LEAST * frame_bytes(md);
    struct share s = {.engine = memory_bytes / 4};
    if (s.engine < ENGINE_LEAST) s.engine = ENGINE_LEAST;
    if (s.engine > ENGINE_MOST) s.engine = ENGINE_MOST;
    if (s.engine > most) s.engine = most;
    s.frames = (memory_bytes - fixed_memory(md) - s.engine) / frame_bytes(md);
    /*
     * All blocks or a few: calls go through the rows in order, so that of a model that does not
     * fit, hardly a block is still there when the next call comes round. The caller has better use
     * for the memory.
     */
    if (s.frames >= blocks)
        s.frames = blocks ? blocks : 1;
    else if (s.frames > FRAMES_FEW)
        s.frames = FRAMES_FEW;
    return s;
}

uint64_t drps_modeldir_memory_used(const struct drps_modeldir *md, uint64_t memory_bytes)
{
    const struct share s = share_out(md, memory_bytes);
    return fixed_memory(md) + s.engine + s.frames * frame_bytes(md);
}

/* The engine opens its files by itself: a pipe among them would keep it waiting for ever. */
static int check_rows_files(const char *path, struct drps_err *err)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    struct stat st;
    int rc = 0;
    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", path, drps_err_name(-errno));
    while (rc == 0 && (entry = readdir(dir)))
        if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && !S_ISREG(st.st_mode) &&
            !S_ISDIR(st.st_mode))
            rc = drps_err_set(err, DRPS_E_CORRUPT,
                              "%s/%s is a pipe, a device or a socket, which no model has", path,
                              entry->d_name);
    closedir(dir);
    return rc;
}

int drps_modeldir_open_rows(struct drps_modeldir *md, uint64_t memory_bytes, struct drps_err *err)
{
    struct drps_blockcache *c = &md->cache;
    md->ops = drps_kv_find(md->info.store);
    if (!md->ops || md->ops->training_only)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is kept in %s, which is not in this build",
                            md->dir, md->info.store);
    if (memory_bytes < drps_modeldir_memory_least(md))
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "%llu bytes to read %s: at least %llu are needed",
                            (unsigned long long)memory_bytes, md->dir,
                            (unsigned long long)drps_modeldir_memory_least(md));
    const struct share share = share_out(md, memory_bytes);
    c->rows = md->info.rows;
    c->block_rows = md->info.block_rows;
    c->param_bytes = md->info.model.dim * sizeof(float);

    char *path = drps_path_join(md->dir, DRPS_MODEL_ROWS);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to open %s", md->dir);
    const struct drps_kv_options options = {.memory_bytes = share.engine,
                                            .value_bytes = c->block_rows * c->param_bytes,
                                            .read_only = 1,
                                            .bulk = 1};
    int rc = check_rows_files(path, err);
    if (rc == 0) rc = md->ops->open(path, &options, &md->kv, err);
    free(path);
    c->ops = md->ops;
    c->kv = md->kv;
    if (rc == 0 && drps_blockcache_init(c, (uint32_t)share.frames) < 0)
        rc = drps_err_set(err, -ENOMEM, "no memory for %llu blocks of %s",
                          (unsigned long long)share.frames, md->dir);
    return rc;
}

int drps_modeldir_open(const struct drps_io *io, const char *path, uint64_t memory_bytes,
                       struct drps_modeldir **md_out, struct drps_err *err)
{
    *md_out = NULL;
    struct drps_modeldir *md = calloc(1, sizeof(*md));
    if (!md) return drps_err_set(err, -ENOMEM, "no memory to open %s", path);
    md->io = io;
    md->dir = strdup(path);
    int rc = md->dir ? 0 : drps_err_set(err, -ENOMEM, "no memory to open %s", path);
    if (rc == 0) rc = read_manifest(md, err);
    if (rc == 0) rc = open_names(md, err);
    if (rc == 0 && memory_bytes) rc = drps_modeldir_open_rows(md, memory_bytes, err);
    if (rc < 0) {
        drps_modeldir_close(md);
        return rc;
    }
    *md_out = md;
    return 0;
}

void drps_modeldir_close(struct drps_modeldir *md)
{
    if (!md) return;
    drps_blockcache_destroy(&md->cache);
    if (md->ops) md->ops->close(md->kv);
    drps_names_close(md->names);
    for (size_t i = 0; i < md->info.fields_n; i++)
        free(md->info.fields[i]);
    free(md->info.fields);
    json_decref(md->json);
    free(md->dir);
    free(md);
}

const struct drps_modeldir_info *drps_modeldir_info(const struct drps_modeldir *md)
{
    return &md->info;
}

const void *drps_modeldir_json(const struct drps_modeldir *md)
{
    return md->json;
}

int drps_modeldir_lookup(struct drps_modeldir *md, const uint64_t *keys, size_t n,
                         uint32_t *rows_out, struct drps_err *err)
{
    return drps_names_lookup(md->names, keys, n, rows_out, err);
}

int drps_modeldir_gather(struct drps_modeldir *md, const uint32_t *ids, size_t n, float *params,
                         struct drps_err *err)
{
    return drps_blockcache_gather(&md->cache, ids, n, params, err);
}

/* ---- Verifying ---- */

static int wrong_names(const struct drps_modeldir *md, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s/%s is not the file that was written (size or checksum differ)", md->dir,
                        DRPS_MODEL_NAMES);
}

static int verify_names_file(const struct drps_modeldir *md, struct drps_err *err)
{
    const json_t *entry = json_object_get(json_object_get(md->json, "files"), DRPS_MODEL_NAMES);
    char *path = drps_path_join(md->dir, DRPS_MODEL_NAMES);
    uint64_t want_sum, bytes, sum;
    int rc = path ? 0 : drps_err_set(err, -ENOMEM, "no memory to verify %s", md->dir);

    if (rc == 0) rc = drps_manifest_get_hex(entry, "checksum", DRPS_MODEL_MANIFEST, &want_sum, err);
    if (rc == 0) rc = drps_trained_copy(md->io, path, NULL, &bytes, &sum, err);
    if (rc == 0 && (bytes != md->names_bytes || sum != want_sum)) rc = wrong_names(md, err);
    free(path);
    return rc;
}

/* The names in the order of their keys, which a search relies on, each of a row of the model. */
struct name_check {
    const struct drps_modeldir *md;
    uint64_t key; /* of the last one */
};

static int check_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                      size_t bytes, struct drps_err *err)
{
    struct name_check *check = ctx;
    (void)field, (void)text, (void)bytes;
    if (key < check->key || row >= check->md->info.rows)
        return drps_err_set(
            err, DRPS_E_CORRUPT, "%s/%s: name %016llx behind %016llx is row %u of %llu",
            check->md->dir, DRPS_MODEL_NAMES, (unsigned long long)key,
            (unsigned long long)check->key, row, (unsigned long long)check->md->info.rows);
    check->key = key;
    return 0;
}

/* As prediction reads them: by the keys of their blocks, some at a time. */
static int sum_rows(struct drps_modeldir *md, struct drps_summer *sum, struct drps_err *err)
{
    const struct drps_modeldir_info *info = &md->info;
    const uint64_t most = VERIFY_BLOCKS * info->block_rows;
    uint32_t *ids = drps_array_new((size_t)most, sizeof(*ids));
    float *params = drps_array_new((size_t)most, info->model.dim * sizeof(*params));
    int rc = ids && params ? 0 : drps_err_set(err, -ENOMEM, "no memory to verify %s", md->dir);
    for (uint64_t first = 0; rc == 0 && first < info->rows; first += most) {
        const uint64_t left = info->rows - first;
        const size_t n = (size_t)(left < most ? left : most);
        for (size_t i = 0; i < n; i++)
            ids[i] = (uint32_t)(first + i);
        rc = drps_io_stopped(md->io, err); /* the engine reads past the seam that looks */
        if (rc == 0) rc = drps_modeldir_gather(md, ids, n, params, err);
        if (rc == 0) drps_summer_add(sum, params, n * info->model.dim * sizeof(*params));
    }
    free(ids);
    free(params);
    return rc;
}

static int verify_rows(struct drps_modeldir *md, struct drps_err *err)
{
    struct drps_summer *sum = drps_summer_new();
    int rc = sum ? sum_rows(md, sum, err)
                 : drps_err_set(err, -ENOMEM, "no memory to verify %s", md->dir);
    if (rc == 0 && drps_summer_value(sum) != md->info.content)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s/%s: the parameters are not those that were written (content differs)",
                          md->dir, DRPS_MODEL_ROWS);
    drps_summer_free(sum);
    return rc;
}

int drps_modeldir_verify(struct drps_modeldir *md, struct drps_err *err)
{
    struct name_check check = {.md = md};
    int rc = verify_names_file(md, err);
    if (rc == 0) rc = drps_names_scan(md->names, check_name, &check, err);
    return rc == 0 ? verify_rows(md, err) : rc;
}
