/* A model gets a calibration, or loses it: model.json is written anew, and nothing else is. One
 * process at a time does so: it holds the lock of the model.json that it replaces. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/folder/drps_durable.h"
#include "base/folder/drps_lock.h"
#include "base/folder/drps_manifest.h"
#include "engine/publish/modeldir_internal.h"

/* A manifest about to be replaced. */
struct replacement {
    const struct drps_io *io; /* borrowed */
    const char *dir;          /* borrowed */
    char *path, *next;        /* own */
    int lock_fd;
};

/* A new file, whatever had its name, which nobody else may read or write than before. */
static int make_next(const struct replacement *r, struct drps_err *err)
{
    struct stat st;
    int rc = r->io->ops->unlink(r->io->ctx, r->next);
    if (rc < 0 && rc != -ENOENT)
        return drps_err_set(err, rc, "cannot remove %s: %s", r->next, drps_err_name(rc));
    rc = drps_io_reserve(r->io, r->next, 0, err);
    if (rc == 0 && (fstat(r->lock_fd, &st) || chmod(r->next, st.st_mode & 07777)))
        rc = drps_err_set(err, -errno, "cannot give %s the mode of %s: %s", r->next, r->path,
                          drps_err_name(-errno));
    return rc;
}

/* Puts `j` in the place of the manifest. */
static int replace_manifest(const struct replacement *r, json_t *j, struct drps_err *err)
{
    int rc = make_next(r, err);
    if (rc == 0) rc = drps_manifest_write(r->io, r->next, j, err);
    if (rc == 0) {
        rc = r->io->ops->rename(r->io->ctx, r->next, r->path);
        if (rc < 0)
            rc = drps_err_set(err, rc, "cannot rename %s to %s: %s", r->next, r->path,
                              drps_err_name(rc));
    }
    if (rc < 0) {
        (void)r->io->ops->unlink(r->io->ctx, r->next); /* the model is as it was */
        return drps_err_context(err, "the calibration of %s stays as it was", r->dir);
    }
    return drps_sync_folder(r->io, r->dir, err);
}

/* Puts the calibration into the manifest, and reads it back: what is written must be readable. */
static int put_member(json_t *j, const struct drps_calibration *c, const char *path,
                      struct drps_err *err)
{
    struct drps_calibration back;
    if (!c->kind) {
        (void)json_object_del(j, "calibration"); /* it may have none */
        return 0;
    }
    if (json_object_set_new(j, "calibration", drps_calibration_to_json(c)) < 0)
        return drps_err_set(err, -ENOMEM, "no memory to calibrate %s", path);
    const int rc = drps_calibration_get(j, path, &back, err);
    drps_calibration_free(&back);
    return rc;
}

static int lock(struct replacement *r, struct drps_err *err)
{
    struct stat st;
    if (!r->path || !r->next) return drps_err_set(err, -ENOMEM, "no memory to write to %s", r->dir);
    if (lstat(r->path, &st)) return 0; /* no model: opening it says so */
    int rc = drps_lock_take(r->io, r->path, &r->lock_fd, err);
    if (rc == -EBUSY)
        rc =
            drps_err_set(err, rc, "%s is being calibrated by another process: wait for it", r->dir);
    return rc;
}

int drps_modeldir_calibrate(const struct drps_io *io, const char *dir, uint64_t content,
                            const struct drps_calibration *c, struct drps_err *err)
{
    struct replacement r = {.io = io,
                            .dir = dir,
                            .path = drps_path_join(dir, DRPS_MODEL_MANIFEST),
                            .next = drps_path_join(dir, DRPS_MODEL_MANIFEST_NEXT),
                            .lock_fd = -1};
    struct drps_modeldir *md = NULL;
    int rc = lock(&r, err);
    if (rc == 0) rc = drps_modeldir_open(io, dir, 0, &md, err);
    if (rc == 0 && md->info.content != content)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "%s is another model than the one that was scored: it was replaced "
                          "meanwhile; calibrate it again",
                          dir);
    if (rc == 0) rc = put_member(md->json, c, r.path, err);
    if (rc == 0) rc = replace_manifest(&r, md->json, err);
    drps_modeldir_close(md);
    drps_io_close(io, r.lock_fd);
    free(r.path);
    free(r.next);
    return rc;
}
