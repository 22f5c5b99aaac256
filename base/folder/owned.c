/* Walking a folder beside the description of what is ours, to look or to remove. */
#include "base/folder/drps_owned.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int is_named(const char *name, const char *pattern)
{
    for (; *pattern; pattern++) {
        if (*pattern != '#') {
            if (*name++ != *pattern) return 0;
            continue;
        }
        if (!isdigit((unsigned char)*name)) return 0;
        while (isdigit((unsigned char)*name))
            name++;
    }
    return !*name;
}

/* The entry of `list` that describes what lies at `path`, NULL if none does. */
static const struct drps_owned *find(const struct drps_owned *list, const char *name,
                                     const struct stat *st, int unfinished)
{
    for (; list->name; list++) {
        const int fits = list->inside ? S_ISDIR(st->st_mode) : S_ISREG(st->st_mode);
        if (fits && (unfinished || !list->unfinished) && is_named(name, list->name)) return list;
    }
    return NULL;
}

static int not_ours(const char *path, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_NOT_FOUND, "%s is not one of its files", path);
}

/* A visit of everything below a folder: to look, or to remove. */
struct visit {
    const struct drps_io *io; /* NULL: to look */
    int unfinished;
};

static int visit_folder(const struct visit *v, const char *dir, const struct drps_owned *list,
                        const char *lock, struct drps_err *err);

static int remove_entry(const struct drps_io *io, const char *path, int folder,
                        struct drps_err *err)
{
    const int rc = folder ? io->ops->rmdir(io->ctx, path) : io->ops->unlink(io->ctx, path);
    if (rc == 0 || rc == -ENOENT) return 0;
    return drps_err_set(err, rc, "cannot remove %s: %s", path, drps_err_name(rc));
}

/* A lock file of ours is empty. What vanishes meanwhile is no concern of ours. */
static int visit_entry(const struct visit *v, const char *path, const char *name,
                       const struct drps_owned *list, const char *lock, struct drps_err *err)
{
    struct stat st;
    if (lstat(path, &st)) {
        if (errno == ENOENT) return 0;
        return drps_err_set(err, -errno, "cannot look at %s: %s", path, strerror(errno));
    }
    if (lock && !strcmp(name, lock) && S_ISREG(st.st_mode) && !st.st_size) return 0;
    const struct drps_owned *entry = find(list, name, &st, v->unfinished);
    if (!entry) return not_ours(path, err);
    int rc = entry->inside ? visit_folder(v, path, entry->inside, NULL, err) : 0;
    return rc == 0 && v->io ? remove_entry(v->io, path, entry->inside != NULL, err) : rc;
}

static int visit_folder(const struct visit *v, const char *dir, const struct drps_owned *list,
                        const char *lock, struct drps_err *err)
{
    DIR *d = opendir(dir);
    const struct dirent *entry;
    int first = 0;
    if (!d && errno == ENOENT) return 0;
    if (!d) return drps_err_set(err, -errno, "cannot list %s: %s", dir, strerror(errno));
    while ((v->io || first == 0) && (entry = readdir(d))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..")) continue;
        char *path = drps_path_join(dir, name);
        const int rc = path ? visit_entry(v, path, name, list, lock, first ? NULL : err)
                            : drps_err_set(err, -ENOMEM, "no memory for what is in %s", dir);
        if (first == 0) first = rc; /* removing goes on with what is ours */
        free(path);
    }
    closedir(d);
    return first;
}

int drps_owned_check(const char *dir, const struct drps_owned *list, int unfinished,
                     const char *lock, struct drps_err *err)
{
    const struct visit v = {.unfinished = unfinished};
    return visit_folder(&v, dir, list, lock, err);
}

int drps_owned_remove(const struct drps_io *io, const char *dir, const struct drps_owned *list,
                      const char *lock, struct drps_err *err)
{
    const struct visit v = {.io = io, .unfinished = 1};
    return visit_folder(&v, dir, list, lock, err);
}
