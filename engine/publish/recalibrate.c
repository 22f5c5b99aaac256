/* A model gets a calibration, or loses it: model.json is written anew, and nothing else is. */
#include <errno.h>
#include <stdlib.h>

#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "engine/publish/modeldir_internal.h"

/* Puts `j` in the place of the manifest. */
static int replace_manifest(const struct drps_io *io, const char *dir, json_t *j,
                            struct drps_err *err)
{
    char *path = drps_path_join(dir, DRPS_MODEL_MANIFEST);
    char *next = drps_path_join(dir, DRPS_MODEL_MANIFEST_NEXT);
    int rc = path && next ? drps_manifest_write(io, next, j, err)
                          : drps_err_set(err, -ENOMEM, "no memory to write to %s", dir);
    if (rc == 0) {
        rc = io->ops->rename(io->ctx, next, path);
        if (rc < 0)
            rc = drps_err_set(err, rc, "cannot rename %s to %s: %s", next, path, drps_err_name(rc));
    }
    if (rc < 0 && next) (void)io->ops->unlink(io->ctx, next); /* the model is as it was */
    if (rc == 0) rc = drps_sync_folder(io, dir, err);
    free(path);
    free(next);
    return rc;
}

int drps_modeldir_calibrate(const struct drps_io *io, const char *dir,
                            const struct drps_calibration *c, struct drps_err *err)
{
    struct drps_modeldir *md;
    int rc = drps_modeldir_open(io, dir, 0, &md, err);
    if (rc < 0) return rc;
    json_t *j = md->json, *member = c->kind ? drps_calibration_to_json(c) : NULL;
    if (c->kind && json_object_set_new(j, "calibration", member) < 0)
        rc = drps_err_set(err, -ENOMEM, "no memory to calibrate %s", dir);
    if (!c->kind) (void)json_object_del(j, "calibration"); /* it may have none */
    if (rc == 0) rc = replace_manifest(io, dir, j, err);
    if (rc < 0) (void)drps_err_context(err, "the calibration of %s stays as it was", dir);
    drps_modeldir_close(md);
    return rc;
}
