/*
 * Folders that appear whole or not at all: everything is written under "<path>.partial" and renamed
 * at the end. An advisory lock on the partial folder's lock file tells a running writer from what a
 * killed one left behind.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_io.h"

static const char lock_name[] = "lock";

/* Whether path still names the open file: between open and lock another process may have taken the
 * folder. */
static int is_still(int fd, const char *path)
{
    struct stat mine, named;
    return !fstat(fd, &mine) && !lstat(path, &named) && mine.st_dev == named.st_dev &&
           mine.st_ino == named.st_ino;
}

static int lock_partial(struct drps_stage *stage, struct drps_err *err)
{
    char *path = drps_path_join(stage->dir, lock_name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the lock of %s", stage->dir);
    int rc = drps_io_open(stage->io, path, O_RDWR | O_CREAT, &stage->lock_fd, err);
    if (rc == 0 && (flock(stage->lock_fd, LOCK_EX | LOCK_NB) || !is_still(stage->lock_fd, path)))
        rc = drps_err_set(
            err, -EBUSY,
            "%s is being written by another process: wait for it or choose another name",
            stage->dir);
    free(path);
    return rc;
}

/*
 * Remove a partial folder, its lock last: whenever this is killed, what is left holds the lock
 * file, by which the next run knows it for a leftover, or nothing.
 */
static int remove_partial(const struct drps_stage *stage, struct drps_err *err)
{
    DIR *dir = opendir(stage->dir);
    const struct dirent *entry;
    int rc = 0;
    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", stage->dir, strerror(errno));
    while (rc == 0 && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, lock_name)) continue;
        char *child = drps_path_join(stage->dir, name);
        rc = child ? drps_io_remove_tree(stage->io, child, err)
                   : drps_err_set(err, -ENOMEM, "no memory to remove %s", stage->dir);
        free(child);
    }
    closedir(dir);
    return rc < 0 ? rc : drps_io_remove_tree(stage->io, stage->dir, err);
}

/* What a killed run left: lock it first, so that a running one is never removed. */
static int clear_stale(struct drps_stage *stage, struct drps_err *err)
{
    struct stat st;
    if (lstat(stage->dir, &st)) return 0;
    if (rmdir(stage->dir) == 0) return 0; /* killed before there was a lock */
    char *lock = drps_path_join(stage->dir, lock_name);
    if (!lock) return drps_err_set(err, -ENOMEM, "no memory for the lock of %s", stage->dir);
    int ours = lstat(lock, &st) == 0;
    free(lock);
    if (!ours)
        return drps_err_set(err, -EEXIST,
                            "%s is in the way and was not left by an earlier run: remove it",
                            stage->dir);
    int rc = lock_partial(stage, err);
    if (rc == 0) rc = remove_partial(stage, err);
    drps_io_close(stage->io, stage->lock_fd);
    stage->lock_fd = -1;
    return rc;
}

/* Only a folder that holds `marker`, the manifest of what is being made, may be replaced. */
static int check_target(const struct drps_stage *stage, const char *marker, struct drps_err *err)
{
    struct stat st;
    if (lstat(stage->path, &st)) return 0;
    if (!marker)
        return drps_err_set(err, -EEXIST,
                            "%s exists already: choose another name, or pass --force to replace it",
                            stage->path);
    char *path = drps_path_join(stage->path, marker);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the name of %s", stage->path);
    int found = lstat(path, &st) == 0;
    free(path);
    if (found) return 0;
    return drps_err_set(err, -EEXIST,
                        "%s exists and holds no %s: it is not replaced; choose another name",
                        stage->path, marker);
}

static char *without_slashes(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

int drps_stage_begin(struct drps_stage *stage, const struct drps_io *io, const char *path,
                     const char *replace, struct drps_err *err)
{
    memset(stage, 0, sizeof(*stage));
    stage->io = io;
    stage->lock_fd = -1;
    stage->replace = replace != NULL;
    stage->path = without_slashes(path);
    if (!stage->path || asprintf(&stage->dir, "%s.partial", stage->path) < 0) {
        stage->dir = NULL;
        drps_stage_abort(stage);
        return drps_err_set(err, -ENOMEM, "no memory for the name of %s", path);
    }
    int made = 0;
    int rc = check_target(stage, replace, err);
    if (rc == 0) rc = clear_stale(stage, err);
    if (rc == 0) {
        rc = io->ops->mkdir(io->ctx, stage->dir, 0777);
        if (rc < 0)
            rc = drps_err_set(err, rc, "cannot create the folder %s: %s", stage->dir,
                              drps_err_name(rc));
        made = rc == 0;
    }
    if (rc == 0) rc = lock_partial(stage, err);
    if (rc < 0) {
        if (made)
            (void)io->ops->rmdir(io->ctx,
                                 stage->dir); /* goes only while nobody has put a lock there */
        free(stage->dir);                     /* not ours to remove: another process may hold it */
        stage->dir = NULL;
        drps_stage_abort(stage);
    }
    return rc;
}

static int sync_dir(const struct drps_io *io, const char *path, struct drps_err *err)
{
    int fd;
    int rc = drps_io_open(io, path, O_RDONLY | O_DIRECTORY, &fd, err);
    if (rc == 0) rc = drps_io_sync(io, fd, path, err);
    drps_io_close(io, fd);
    return rc;
}

/* Sync every file below the folder, then the folder itself. */
static int sync_tree(const struct drps_io *io, const char *path, struct drps_err *err)
{
    int fd;
    DIR *dir = opendir(path);
    const struct dirent *entry;
    int rc = 0;

    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", path, strerror(errno));
    while (rc == 0 && (entry = readdir(dir))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char *child = drps_path_join(path, entry->d_name);
        struct stat st;
        if (!child) {
            rc = drps_err_set(err, -ENOMEM, "no memory to sync %s", path);
        } else if (!lstat(child, &st) && S_ISDIR(st.st_mode)) {
            rc = sync_tree(io, child, err);
        } else {
            rc = drps_io_open(io, child, O_RDONLY, &fd, err);
            if (rc == 0) rc = drps_io_sync(io, fd, child, err);
            drps_io_close(io, fd);
        }
        free(child);
    }
    closedir(dir);
    return rc < 0 ? rc : sync_dir(io, path, err);
}

static int sync_parent(const struct drps_io *io, const char *path, struct drps_err *err)
{
    const char *slash = strrchr(path, '/');
    char *parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!parent) return drps_err_set(err, -ENOMEM, "no memory to sync the folder of %s", path);
    int rc = sync_dir(io, parent, err);
    free(parent);
    return rc;
}

static int rename_checked(const struct drps_io *io, const char *from, const char *to,
                          struct drps_err *err)
{
    int rc = io->ops->rename(io->ctx, from, to);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot rename %s to %s: %s", from, to, drps_err_name(rc));
    return 0;
}

/* Move an existing folder aside to `old`; *moved_out tells whether there was one. */
static int move_aside(const struct drps_stage *stage, const char *old, int *moved_out,
                      struct drps_err *err)
{
    struct stat st;
    *moved_out = 0;
    if (!stage->replace || lstat(stage->path, &st)) return 0;
    int rc = drps_io_remove_tree(stage->io, old, err);
    if (rc == 0) rc = rename_checked(stage->io, stage->path, old, err);
    *moved_out = rc == 0;
    return rc;
}

/*
 * Rename the folder into place and make that last. A failure puts back what was there before. The
 * lock goes along and is removed only afterwards: until the rename it must keep others from taking
 * the folder for a stale one.
 */
static int publish(struct drps_stage *stage, const char *old, const char *lock,
                   struct drps_err *err)
{
    const struct drps_io *io = stage->io;
    int moved;
    int rc = move_aside(stage, old, &moved, err);
    if (rc < 0) return rc;
    rc = rename_checked(io, stage->dir, stage->path, err);
    int placed = rc == 0;
    if (rc == 0) rc = drps_io_remove_tree(io, lock, err);
    if (rc == 0) rc = sync_dir(io, stage->path, err);
    if (rc == 0) rc = sync_parent(io, stage->path, err);
    if (rc == 0) return 0;
    if (placed)
        (void)io->ops->rename(io->ctx, stage->path,
                              stage->dir); /* the first failure is the one told */
    if (moved) (void)io->ops->rename(io->ctx, old, stage->path);
    return rc;
}

int drps_stage_commit(struct drps_stage *stage, struct drps_err *err)
{
    char *old = NULL;
    char *lock = drps_path_join(stage->path, lock_name);
    int rc = sync_tree(stage->io, stage->dir, err);

    if (asprintf(&old, "%s.replaced", stage->path) < 0) old = NULL;
    if (rc == 0 && (!lock || !old))
        rc = drps_err_set(err, -ENOMEM, "no memory to publish %s", stage->path);
    if (rc == 0) rc = publish(stage, old, lock, err);
    if (rc == 0) {
        free(stage->dir);
        stage->dir = NULL; /* committed: abort has nothing to remove */
        /* The new folder is in place. What cannot be removed of the old one is removed at the next
         * replacement. */
        if (stage->replace) (void)drps_io_remove_tree(stage->io, old, NULL);
    }
    free(lock);
    free(old);
    return rc;
}

void drps_stage_abort(struct drps_stage *stage)
{
    if (!stage || !stage->io) return;
    if (stage->dir) (void)remove_partial(stage, NULL); /* a leftover looks unfinished */
    drps_io_close(stage->io, stage->lock_fd);
    free(stage->dir);
    free(stage->path);
    memset(stage, 0, sizeof(*stage));
    stage->lock_fd = -1;
}
