/* Folders of what was trained that killed runs have left, once a model has the same parameters. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/folder/drps_owned.h"
#include "engine/publish/drps_trained.h"

/* What a killed drps_trained_remove() leaves: the manifest goes first, and only once there is a
 * model. */
static const struct drps_owned half_removed[] = {
    {.name = DRPS_TRAINED_PARAMS},
    {.name = DRPS_TRAINED_NAMES},
    {.name = NULL},
};

/* The name of number n, from 1: path, path.2, path.3, ... */
static char *name_of(const char *path, unsigned n)
{
    char *name;
    if (n == 1) return strdup(path);
    return asprintf(&name, "%s.%u", path, n) < 0 ? NULL : name;
}

/* 1: nothing is lost with the folder. */
static int is_spare(const struct drps_io *io, const char *dir, uint64_t content)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    struct drps_trained_about about;
    void *manifest;
    const int rc = drps_trained_open(io, dir, &about, &manifest, &ignored);
    json_decref(manifest);
    if (rc == 0) return about.content == content;
    return rc == DRPS_E_NOT_FOUND && drps_owned_check(dir, half_removed, 0, NULL, &ignored) == 0;
}

static int remove_spare(const struct drps_io *io, const char *dir, uint64_t content,
                        struct drps_err *err)
{
    struct stat st;
    if (lstat(dir, &st) || !S_ISDIR(st.st_mode) || !is_spare(io, dir, content)) return 0;
    return drps_trained_remove(io, dir, err);
}

static unsigned count_names(const char *path)
{
    struct stat st;
    unsigned n = 0;
    for (int there = 1; there && n < DRPS_TRAINED_NAMES_MOST; n += (unsigned)there) {
        char *name = name_of(path, n + 1);
        there = name && lstat(name, &st) == 0;
        free(name);
    }
    return n;
}

/* The last name goes first: where this is killed, those that stay are found again. */
int drps_trained_remove_same(const struct drps_io *io, const char *path, uint64_t content,
                             struct drps_err *err)
{
    int rc = 0;
    for (unsigned n = count_names(path); n && rc == 0; n--) {
        char *name = name_of(path, n);
        rc = name ? remove_spare(io, name, content, err)
                  : drps_err_set(err, -ENOMEM, "no memory for the name of %s", path);
        free(name);
    }
    return rc;
}
