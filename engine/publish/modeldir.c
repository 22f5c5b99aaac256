/*
 * An open model: the dictionary and the database of rows, within the memory that is given. Files
 * are described by model.json (model_manifest.c).
 */
#include "engine/publish/modeldir_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MIB = 1 << 20,
    NAMES_BYTES = MIB, /* one page of the dictionary, its strings included, and its directory */
    ENGINE_LEAST = 2 * MIB, /* for reading only */
    ENGINE_MOST = 64 * MIB,
    FRAMES_LEAST = 16,
    FRAMES_FEW = 128,
};

/* ---- Memory ---- */

/* Memory of the dictionary: its directory has some bytes for every page of some tens of thousands.
 */
static uint64_t names_memory(const struct drps_modeldir *md)
{
    return NAMES_BYTES + md->names_bytes / 1024;
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

/* How a memory of at least drps_modeldir_memory_least() is divided. */
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

/* ---- Opening and closing ---- */

/* Opens the dictionary; only drps_modeldir_verify() compares its bytes. */
static int open_names(struct drps_modeldir *md, struct drps_err *err)
{
    int rc = drps_names_open(md->io, md->dir, &md->names, err);
    if (rc < 0 || drps_names_bytes(md->names) == md->names_bytes) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s/%s has %llu bytes, %s says %llu", md->dir,
                        DRPS_MODEL_NAMES, (unsigned long long)drps_names_bytes(md->names),
                        DRPS_MODEL_MANIFEST, (unsigned long long)md->names_bytes);
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
    if (rc == 0) rc = drps_modeldir_read_manifest(md, err);
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
    drps_classes_free(md->classes);
    free(md->gram);
    drps_calibration_free(&md->info.calibration);
    json_decref(md->json);
    free(md->dir);
    free(md);
}

/* ---- Asking ---- */

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

int drps_modeldir_scan_names(struct drps_modeldir *md, drps_names_visit visit, void *ctx,
                             struct drps_err *err)
{
    return drps_names_scan(md->names, visit, ctx, err);
}

int drps_modeldir_gather(struct drps_modeldir *md, const uint32_t *ids, size_t n, float *params,
                         struct drps_err *err)
{
    return drps_blockcache_gather(&md->cache, ids, n, params, err);
}

uint64_t drps_modeldir_reads(const struct drps_modeldir *md, uint64_t *bytes_out)
{
    *bytes_out = md->cache.read_bytes;
    return md->cache.reads;
}
