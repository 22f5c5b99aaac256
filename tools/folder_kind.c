#include "tools/drps_folder_kind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/publish/drps_model_files.h"
#include "engine/publish/drps_trained.h"
#include "index/plan/drps_plan_files.h"

static int has_file(const char *path, const char *name)
{
    struct stat st;
    char *file = drps_path_join(path, name);
    const int has = file && stat(file, &st) == 0;
    free(file);
    return has;
}

static int has_checkpoints(const char *path)
{
    const struct dirent *entry;
    DIR *dir = has_file(path, DRPS_FILE_MANIFEST) ? NULL : opendir(path);
    int has = 0;
    while (dir && !has && (entry = readdir(dir)))
        has = !strncmp(entry->d_name, DRPS_CHECKPOINT_RANK, strlen(DRPS_CHECKPOINT_RANK));
    if (dir) (void)closedir(dir);
    return has;
}

int folder_kind_of(const struct drps_io *io, const char *path, enum folder_kind *kind_out,
                   struct drps_err *err)
{
    int fd;
    char *manifest = drps_path_join(path, DRPS_MODEL_MANIFEST);
    *kind_out = FOLDER_MODEL;
    if (!manifest) return drps_err_set(err, -ENOMEM, "no memory");
    const int rc = drps_io_open(io, manifest, O_RDONLY, &fd, err);
    drps_io_close(io, fd);
    free(manifest);
    if (rc != -ENOENT && rc != -ENOTDIR) return rc;
    drps_err_clear(err);
    *kind_out = has_file(path, DRPS_TRAINED_MANIFEST) ? FOLDER_TRAINED
                : has_checkpoints(path)               ? FOLDER_CHECKPOINTS
                                                      : FOLDER_PLAN;
    return 0;
}

int folder_kind_unknown(const char *path, struct drps_err *err)
{
    char *run = NULL;
    drps_err_clear(err);
    if (access(path, F_OK) == 0)
        return drps_err_set(err, DRPS_E_NOT_FOUND,
                            "%s is neither a plan nor a model (no plan.json, no model.json in it)",
                            path);
    const int why = errno;
    if (asprintf(&run, "%s" DRPS_CHECKPOINT_SUFFIX, path) < 0) run = NULL;
    if (run && access(run, F_OK) == 0)
        (void)drps_err_set(err, DRPS_E_NOT_FOUND,
                           "%s: %s; its run has left %s: name that, or go on with drps-train "
                           "--resume",
                           path, drps_err_name(-why), run);
    else
        (void)drps_err_set(err, DRPS_E_NOT_FOUND, "%s: %s", path, drps_err_name(-why));
    free(run);
    return DRPS_E_NOT_FOUND;
}
