/* What is trained and no model yet: its folder is made, filled, kept under a name, read and
 * removed. */
#include "engine/publish/drps_trained.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_checksum.h"
#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"

const char *const drps_trained_files[] = {DRPS_TRAINED_MANIFEST, DRPS_TRAINED_PARAMS,
                                          DRPS_TRAINED_NAMES, NULL};

static const char *params_name(int aside)
{
    return aside ? DRPS_TRAINED_PARAMS_NEXT : DRPS_TRAINED_PARAMS;
}

static char *path_in(const char *dir, const char *name, int *rc, struct drps_err *err)
{
    char *path = *rc == 0 ? drps_path_join(dir, name) : NULL;
    if (*rc == 0 && !path) *rc = drps_err_set(err, -ENOMEM, "no memory for a path in %s", dir);
    return path;
}

/* ---- Beginning ---- */

static int reserve(const struct drps_trained *t, const char *name, uint64_t bytes,
                   struct drps_err *err)
{
    int rc = 0;
    char *path = path_in(t->dir, name, &rc, err);
    if (rc == 0) rc = drps_io_reserve(t->io, path, bytes, err);
    free(path);
    return rc;
}

/* The copy of names.rec under way, and what is known of it so far. */
struct copy {
    const struct drps_io *io;
    const char *path;
    int fd;
    struct drps_summer *sum;
    uint64_t bytes;
};

static int copy_piece(void *ctx, const void *data, size_t n, struct drps_err *err)
{
    struct copy *c = ctx;
    int rc = drps_io_write_at(c->io, c->fd, data, n, c->bytes, c->path, err);
    drps_summer_add(c->sum, data, n);
    c->bytes += n;
    return rc;
}

/* Copy names.rec, which must be the plan's, and learn its size and checksum. */
static int copy_names(struct drps_trained *t, const struct drps_plan *plan, struct drps_err *err)
{
    int rc = 0;
    char *to = path_in(t->dir, DRPS_TRAINED_NAMES, &rc, err);
    struct copy c = {.io = t->io, .path = to, .fd = -1, .sum = drps_summer_new()};
    if (rc == 0 && !c.sum) rc = drps_err_set(err, -ENOMEM, "no memory to write %s", to);
    if (rc == 0) rc = drps_io_open(t->io, to, O_WRONLY | O_CREAT | O_TRUNC, &c.fd, err);
    if (rc == 0) rc = drps_plan_read_file(plan, DRPS_TRAINED_NAMES, copy_piece, &c, err);
    if (rc == 0) rc = drps_io_sync(t->io, c.fd, to, err);
    if (rc == 0) {
        t->names_bytes = c.bytes;
        t->names_sum = drps_summer_value(c.sum);
    }
    drps_io_close(t->io, c.fd);
    drps_summer_free(c.sum);
    free(to);
    return rc;
}

int drps_trained_begin(struct drps_trained *t, const struct drps_io *io, const char *dir,
                       const struct drps_trained_parts *parts, struct drps_err *err)
{
    *t = (struct drps_trained){
        .io = io, .rows = parts->rows, .dim = parts->dim, .pair = parts->pair};
    const uint64_t bytes = parts->rows * parts->dim * sizeof(float);
    t->dir = strdup(dir);
    if (!t->dir) return drps_err_set(err, -ENOMEM, "no memory for %s", dir);
    int rc = io->ops->mkdir(io->ctx, dir, 0777);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot create the folder %s: %s", dir, drps_err_name(rc));
    rc = reserve(t, params_name(0), bytes, err);
    if (rc == 0 && t->pair) rc = reserve(t, params_name(1), bytes, err);
    if (rc == 0) rc = reserve(t, DRPS_TRAINED_MANIFEST, parts->manifest_bytes, err);
    return rc == 0 && parts->plan ? copy_names(t, parts->plan, err) : rc;
}

int drps_trained_take_names(struct drps_trained *t, struct drps_err *err)
{
    int rc = 0;
    char *path = path_in(t->dir, DRPS_TRAINED_NAMES, &rc, err);
    if (rc == 0) rc = drps_copy_file(t->io, path, NULL, &t->names_bytes, &t->names_sum, err);
    free(path);
    return rc;
}

void drps_trained_end(struct drps_trained *t)
{
    free(t->dir);
    memset(t, 0, sizeof(*t));
}

/* ---- Writing ---- */

/* Returns the file that the next parameters go to. */
static int next_file(const struct drps_trained *t)
{
    return t->pair && t->complete ? !t->aside : t->aside;
}

int drps_trained_write(const struct drps_trained *t, size_t row_bytes, struct drps_params **w_out,
                       struct drps_err *err)
{
    int rc = 0;
    *w_out = NULL;
    char *path = path_in(t->dir, params_name(next_file(t)), &rc, err);
    if (rc == 0) rc = drps_params_open(t->io, path, t->rows, t->dim, row_bytes, w_out, err);
    free(path);
    return rc;
}

void drps_trained_accept(struct drps_trained *t, uint64_t content)
{
    t->aside = next_file(t);
    t->complete = 1;
    t->content = content;
}

char *drps_trained_params_path(const struct drps_trained *t)
{
    return drps_path_join(t->dir, params_name(t->aside));
}

int drps_trained_restore(struct drps_trained *t, const char *from, uint64_t content,
                         struct drps_err *err)
{
    uint64_t bytes, sum;
    char *to = drps_trained_params_path(t);
    if (!to) return drps_err_set(err, -ENOMEM, "no memory to read %s", from);
    int rc = drps_copy_file(t->io, from, to, &bytes, &sum, err);
    if (rc == 0 && (sum != content || bytes != t->rows * t->dim * sizeof(float)))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s is damaged", from);
    if (rc == 0) drps_trained_accept(t, content);
    free(to);
    return rc;
}

/* ---- Keeping ---- */

/* Removes the file that does not count and gives the other one the name params.bin. */
static int leave_one(struct drps_trained *t, struct drps_err *err)
{
    int rc = 0;
    char *first = path_in(t->dir, params_name(0), &rc, err);
    char *second = path_in(t->dir, params_name(1), &rc, err);
    if (rc == 0 && t->pair)
        rc = t->aside ? t->io->ops->rename(t->io->ctx, second, first)
                      : t->io->ops->unlink(t->io->ctx, second);
    if (rc == 0 && t->pair) t->pair = t->aside = 0;
    if (rc < 0 && rc != -ENOMEM)
        rc = drps_err_set(err, rc, "cannot complete %s: %s", t->dir, drps_err_name(rc));
    free(first);
    free(second);
    return rc;
}

static int write_manifest(const struct drps_trained *t, json_t *manifest, struct drps_err *err)
{
    int rc = 0;
    char *path = path_in(t->dir, DRPS_TRAINED_MANIFEST, &rc, err);
    json_t *files =
        json_pack("{s:{s:I}, s:{s:I, s:o}}", DRPS_TRAINED_PARAMS, "bytes",
                  (json_int_t)(t->rows * t->dim * sizeof(float)), DRPS_TRAINED_NAMES, "bytes",
                  (json_int_t)t->names_bytes, "checksum", drps_manifest_hex(t->names_sum));
    if (rc == 0 &&
        (json_object_set_new(manifest, "kind", json_string(DRPS_TRAINED_KIND)) < 0 ||
         json_object_set_new(manifest, "version", json_integer(DRPS_TRAINED_VERSION)) < 0 ||
         json_object_set_new(manifest, "content", drps_manifest_hex(t->content)) < 0 ||
         json_object_set(manifest, "files", files) < 0))
        rc = drps_err_set(err, -ENOMEM, "no memory for %s", path);
    if (rc == 0) rc = drps_manifest_write(t->io, path, manifest, err);
    json_decref(files);
    free(path);
    return rc;
}

/* `path`, or the first of path.2, path.3, ... that nothing has. */
static char *free_name(const char *path)
{
    struct stat st;
    char *name = strdup(path);
    for (int i = 2; name && lstat(name, &st) == 0 && i <= DRPS_TRAINED_NAMES_MOST; i++) {
        free(name);
        if (asprintf(&name, "%s.%d", path, i) < 0) name = NULL;
    }
    return name;
}

static int rename_to(struct drps_trained *t, const char *path, struct drps_err *err)
{
    char *name = free_name(path);
    if (!name) return drps_err_set(err, -ENOMEM, "no memory for the name of %s", path);
    int rc = t->io->ops->rename(t->io->ctx, t->dir, name);
    if (rc < 0) {
        rc = drps_err_set(err, rc, "cannot rename %s to %s: %s", t->dir, name, drps_err_name(rc));
        free(name);
        return rc;
    }
    free(t->dir);
    t->dir = name;
    t->kept = 1;
    return drps_sync_parent(t->io, t->dir, err);
}

int drps_trained_keep(struct drps_trained *t, void *manifest, const char *path,
                      struct drps_err *err)
{
    int rc = leave_one(t, err);
    if (rc == 0) rc = write_manifest(t, manifest, err);
    if (rc == 0) rc = drps_sync_folder(t->io, t->dir, err);
    return rc == 0 && path ? rename_to(t, path, err) : rc;
}

/* ---- Afterwards ---- */

static int read_about(struct drps_trained_about *about, json_t *j, const char *path,
                      struct drps_err *err)
{
    const json_t *names = json_object_get(json_object_get(j, "files"), DRPS_TRAINED_NAMES);
    uint64_t dim, bytes;
    int rc = drps_manifest_get_count(j, "rows", path, &about->rows, err);
    if (rc == 0) rc = drps_manifest_get_count(j, "dim", path, &dim, err);
    if (rc == 0) rc = drps_manifest_get_hex(j, "content", path, &about->content, err);
    if (rc == 0) rc = drps_manifest_get_count(names, "bytes", path, &about->names_bytes, err);
    if (rc == 0) rc = drps_manifest_get_hex(names, "checksum", path, &about->names_sum, err);
    if (rc < 0) return rc;
    if (!dim || dim > UINT32_MAX / sizeof(float) || about->rows > UINT32_MAX ||
        __builtin_mul_overflow(about->rows, dim * sizeof(float), &bytes) || bytes > INT64_MAX)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"dim\" or \"rows\" makes no sense", path);
    about->dim = (uint32_t)dim;
    return 0;
}

int drps_trained_open(const struct drps_io *io, const char *dir, struct drps_trained_about *about,
                      void **manifest_out, struct drps_err *err)
{
    int rc = 0;
    json_t *j = NULL;
    *manifest_out = NULL;
    memset(about, 0, sizeof(*about));
    char *path = path_in(dir, DRPS_TRAINED_MANIFEST, &rc, err);
    if (rc == 0)
        rc = drps_manifest_read(io, path, DRPS_TRAINED_KIND, DRPS_TRAINED_VERSION, &j, err);
    if (rc == -ENOENT || rc == -ENOTDIR) {
        drps_err_clear(err);
        rc = drps_err_set(err, DRPS_E_NOT_FOUND,
                          "%s holds nothing that drps-train has kept (no %s in it)", dir,
                          DRPS_TRAINED_MANIFEST);
    }
    if (rc == 0) rc = read_about(about, j, path, err);
    free(path);
    if (rc < 0) {
        json_decref(j);
        return rc;
    }
    (void)json_object_del(j, "files"); /* read_about() has seen it */
    *manifest_out = j;
    return 0;
}

static int remove_file(const struct drps_io *io, const char *dir, const char *name,
                       struct drps_err *err)
{
    int rc = 0;
    char *path = path_in(dir, name, &rc, err);
    if (rc == 0) rc = io->ops->unlink(io->ctx, path);
    if (rc == -ENOENT) rc = 0;
    if (rc < 0 && rc != -ENOMEM)
        rc = drps_err_set(err, rc, "cannot remove %s: %s", path, drps_err_name(rc));
    free(path);
    return rc;
}

/* The manifest goes first, and for good: what is left when this is killed, or when the power goes,
 * does not look complete. A disk that cannot sync is no reason to stop half way. */
int drps_trained_remove(const struct drps_io *io, const char *dir, struct drps_err *err)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    int rc = remove_file(io, dir, DRPS_TRAINED_MANIFEST, err);
    const int synced = drps_sync_folder(io, dir, &ignored);
    (void)synced;
    for (size_t i = 0; drps_trained_files[i] && rc == 0; i++)
        rc = remove_file(io, dir, drps_trained_files[i], err);
    if (rc < 0) return rc;
    rc = io->ops->rmdir(io->ctx, dir);
    return rc < 0 ? drps_err_set(err, rc, "cannot remove the folder %s: %s", dir, drps_err_name(rc))
                  : 0;
}
