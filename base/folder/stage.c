/*
 * An advisory lock on the partial folder's lock file tells a running writer from what a killed one
 * left behind. What was left is ours when it holds nothing but what we write, and either an empty
 * lock file or a whole manifest. A folder is removed in such an order that this stays so until the
 * end, and that it does not look whole on the way: the manifest first, the lock last. Where the
 * order matters the folder is synced between, so that it holds when the power goes, too.
 */
#include "base/folder/drps_stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder/drps_durable.h"
#include "base/folder/drps_lock.h"
#include "base/folder/drps_manifest.h"

static const char lock_name[] = "lock";

/* ---- What is ours ---- */

/* Returns DRPS_E_NOT_FOUND, _CORRUPT or _VERSION when the folder is not a whole one of ours. The
 * manifest is opened last, when it is known to be a regular file. */
static int check_whole(const struct drps_stage *stage, const char *dir, int unfinished,
                       struct drps_err *err)
{
    const struct drps_io io = {.ops = stage->io->ops, .ctx = stage->io->ctx}; /* cleans up */
    const struct drps_stage_kind *kind = stage->kind;
    const char *proof = kind->manifest ? kind->manifest : lock_name;
    struct stat st;
    char *path = drps_path_join(dir, proof);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to look at %s", dir);
    int rc = kind->manifest && lstat(path, &st) == 0
                 ? drps_owned_check(dir, kind->owned, unfinished, lock_name, err)
                 : drps_err_set(err, DRPS_E_NOT_FOUND, "%s holds no %s", dir, proof);
    if (rc == 0) rc = drps_manifest_ours(&io, path, kind->kind, kind->version, err);
    free(path);
    return rc;
}

/* 1: the code is one of those above, and not a failure to find out. */
static int is_stranger(int rc)
{
    return rc == DRPS_E_NOT_FOUND || rc == DRPS_E_CORRUPT || rc == DRPS_E_VERSION;
}

/* ---- Locks ---- */

static int lock_folder(const struct drps_stage *stage, const char *dir, int *fd_out,
                       struct drps_err *err)
{
    char *path = drps_path_join(dir, lock_name);
    *fd_out = -1;
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the lock of %s", dir);
    int rc = drps_lock_take(stage->io, path, fd_out, err);
    if (rc == -EBUSY)
        rc = drps_err_set(
            err, -EBUSY,
            "%s is being written by another process: wait for it or choose another name", dir);
    free(path);
    return rc;
}

static int has_lock(const char *dir, int *has_out, struct drps_err *err)
{
    struct stat st;
    char *path = drps_path_join(dir, lock_name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for the lock of %s", dir);
    *has_out = lstat(path, &st) == 0 && S_ISREG(st.st_mode) && !st.st_size;
    free(path);
    return 0;
}

/* ---- Syncing ---- */

/* Sync every file below the folder, then the folder itself; of the folder `synced` in it (NULL:
 * none) only the folder. */
static int sync_tree(const struct drps_io *io, const char *path, const char *synced,
                     struct drps_err *err)
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
            rc = synced && !strcmp(entry->d_name, synced) ? drps_sync_folder(io, child, err)
                                                          : sync_tree(io, child, NULL, err);
        } else {
            rc = drps_io_open(io, child, O_RDONLY, &fd, err);
            if (rc == 0) rc = drps_io_sync(io, fd, child, err);
            drps_io_close(io, fd);
        }
        free(child);
    }
    closedir(dir);
    return rc < 0 ? rc : drps_sync_folder(io, path, err);
}

/* ---- Removing ---- */

static int remove_file(const struct drps_io *io, const char *dir, const char *name,
                       struct drps_err *err)
{
    char *path = drps_path_join(dir, name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to remove %s", dir);
    int rc = io->ops->unlink(io->ctx, path);
    if (rc < 0 && rc != -ENOENT)
        rc = drps_err_set(err, rc, "cannot remove %s: %s", path, drps_err_name(rc));
    else
        rc = 0;
    free(path);
    return rc;
}

/* A disk that cannot sync is no reason to stop half way. */
static void try_sync(const struct drps_io *io, const char *dir)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    const int rc = drps_sync_folder(io, dir, &ignored);
    (void)rc;
}

static int remove_manifest(const struct drps_stage *stage, const char *dir, struct drps_err *err)
{
    if (!stage->kind->manifest) return 0;
    const int rc = remove_file(stage->io, dir, stage->kind->manifest, err);
    try_sync(stage->io, dir);
    return rc;
}

/* Remove a folder that we hold. If it holds what is not ours, that and the lock stay. */
static int remove_ours(const struct drps_stage *stage, const char *dir, struct drps_err *err)
{
    const struct drps_io *io = stage->io;
    int rc = remove_manifest(stage, dir, err);
    if (rc == 0) rc = drps_owned_remove(io, dir, stage->kind->owned, lock_name, err);
    if (rc < 0) return rc;
    try_sync(io, dir);
    rc = remove_file(io, dir, lock_name, err);
    if (rc < 0) return rc;
    rc = io->ops->rmdir(io->ctx, dir);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot remove the folder %s: %s", dir, drps_err_name(rc));
    return 0;
}

/* Lock what a killed run left, so that a running one is never removed. */
static int claim_stale(const struct drps_stage *stage, const char *dir, int *fd_out,
                       struct drps_err *err)
{
    int locked = 0;
    *fd_out = -1;
    int rc = has_lock(dir, &locked, err);
    if (rc == 0 && !locked) rc = check_whole(stage, dir, 1, err);
    if (rc == 0) rc = lock_folder(stage, dir, fd_out, err);
    if (rc == 0 && locked) rc = drps_owned_check(dir, stage->kind->owned, 1, lock_name, err);
    if (rc == 0) try_sync(stage->io, dir);
    return rc;
}

static int clear_stale(const struct drps_stage *stage, const char *dir, struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    struct stat st;
    int fd = -1;
    if (lstat(dir, &st)) return 0;
    if (stage->io->ops->rmdir(stage->io->ctx, dir) == 0)
        return 0; /* killed before there was a lock, or after it was removed */
    int rc = S_ISDIR(st.st_mode) ? claim_stale(stage, dir, &fd, &why)
                                 : drps_err_set(&why, DRPS_E_NOT_FOUND, "it is no folder");
    if (rc == 0) rc = remove_ours(stage, dir, &why);
    drps_io_close(stage->io, fd);
    if (rc == 0) return 0;
    if (!is_stranger(rc)) return drps_err_set(err, rc, "%s", why.text);
    return drps_err_set(err, -EEXIST,
                        "%s is in the way and was not left by an earlier run: %s; move it away, or "
                        "choose another name",
                        dir, why.text);
}

/* ---- Beginning ---- */

static int rename_checked(const struct drps_io *io, const char *from, const char *to,
                          struct drps_err *err)
{
    int rc = io->ops->rename(io->ctx, from, to);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot rename %s to %s: %s", from, to, drps_err_name(rc));
    return 0;
}

/* Give a folder its name back that a run, killed between two renames, had moved aside. */
static int put_back(const struct drps_stage *stage, int *done_out, struct drps_err *err)
{
    struct drps_err why = DRPS_ERR_INIT;
    struct stat st;
    *done_out = 0;
    if (stage->kind->file || lstat(stage->old, &st) || !S_ISDIR(st.st_mode)) return 0;
    int rc = check_whole(stage, stage->old, 0, &why);
    if (is_stranger(rc)) return 0;
    if (rc < 0) return drps_err_set(err, rc, "%s", why.text);
    rc = rename_checked(stage->io, stage->old, stage->path, err);
    if (rc == 0) rc = drps_sync_parent(stage->io, stage->path, err);
    *done_out = rc == 0;
    return rc;
}

/* A folder is replaced when it is a whole one of ours, a file whatever it has in it. */
static int check_replaceable(const struct drps_stage *stage, const struct stat *st,
                             struct drps_err *err)
{
    const struct drps_stage_kind *kind = stage->kind;
    struct drps_err why = DRPS_ERR_INIT;
    int rc = 0;
    if (S_ISLNK(st->st_mode))
        rc = drps_err_set(&why, DRPS_E_NOT_FOUND,
                          "it is a symbolic link, and what it leads to would stay");
    else if (kind->file ? !S_ISREG(st->st_mode) : !S_ISDIR(st->st_mode))
        rc = drps_err_set(&why, DRPS_E_NOT_FOUND, "it is no %s", kind->file ? "file" : "folder");
    else if (!kind->file)
        rc = check_whole(stage, stage->path, 0, &why);
    if (rc == 0) return 0;
    if (!is_stranger(rc)) return drps_err_set(err, rc, "%s", why.text);
    return drps_err_set(err, -EEXIST,
                        "%s exists and is not replaced: %s; choose another name, or move %s away",
                        stage->path, why.text, stage->path);
}

/* Look at the final name; the partial folder is ours. */
static int settle_target(const struct drps_stage *stage, struct drps_err *err)
{
    struct stat st;
    int back = 0;
    if (lstat(stage->path, &st)) {
        int rc = put_back(stage, &back, err);
        if (rc < 0 || !back) return rc;
        if (lstat(stage->path, &st)) return 0;
    }
    if (!stage->replace)
        return drps_err_set(err, -EEXIST,
                            "%s exists already%s%s%s: choose another name, or have it replaced",
                            stage->path, back ? " (a killed run had left it as " : "",
                            back ? stage->old : "", back ? ")" : "");
    int rc = check_replaceable(stage, &st, err);
    return rc < 0 || stage->kind->file ? rc : clear_stale(stage, stage->old, err);
}

/* Make the partial folder and lock it. */
static int acquire(struct drps_stage *stage, struct drps_err *err)
{
    const struct drps_io *io = stage->io;
    int rc = clear_stale(stage, stage->dir, err);
    if (rc < 0) return rc;
    rc = io->ops->mkdir(io->ctx, stage->dir, 0777);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot create the folder %s: %s", stage->dir,
                            drps_err_name(rc));
    rc = lock_folder(stage, stage->dir, &stage->lock_fd, err);
    if (rc < 0)
        (void)io->ops->rmdir(io->ctx, stage->dir); /* goes only while nobody has put a lock there */
    return rc;
}

static char *without_slashes(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return strndup(path, n);
}

static int name_all(struct drps_stage *stage, const char *path, struct drps_err *err)
{
    stage->path = without_slashes(path);
    if (!stage->path || asprintf(&stage->dir, "%s" DRPS_STAGE_SUFFIX, stage->path) < 0)
        stage->dir = NULL;
    if (!stage->path || asprintf(&stage->old, "%s.replaced", stage->path) < 0) stage->old = NULL;
    if (!stage->dir || !stage->old)
        return drps_err_set(err, -ENOMEM, "no memory for the name of %s", path);
    const char *slash = strrchr(stage->path, '/');
    const char *last = slash ? slash + 1 : stage->path;
    if (*last && strcmp(last, ".") != 0 && strcmp(last, "..") != 0) return 0;
    return drps_err_set(err, DRPS_E_CONFIG, "'%s' is no name for a new %s: give it one", path,
                        stage->kind->file ? "file" : "folder");
}

int drps_stage_begin(struct drps_stage *stage, const struct drps_io *io, const char *path,
                     const struct drps_stage_kind *kind, int replace, struct drps_err *err)
{
    *stage = (struct drps_stage){.io = io, .kind = kind, .lock_fd = -1, .replace = replace};
    int rc = name_all(stage, path, err);
    if (rc == 0) rc = acquire(stage, err);
    if (rc < 0) { /* what has the partial folder's name is not ours to remove */
        free(stage->dir);
        stage->dir = NULL;
    }
    if (rc == 0) rc = drps_sync_folder(io, stage->dir, err);
    if (rc == 0) rc = settle_target(stage, err);
    if (rc < 0) drps_stage_abort(stage);
    return rc;
}

/* ---- Committing ---- */

/* How the folder has got its name, to be undone. */
enum named { NOT_PLACED, RENAMED, EXCHANGED, MOVED_ASIDE };

static int is_unsupported(int rc)
{
    return rc == -EINVAL || rc == -ENOSYS || rc == -ENOTSUP;
}

static int exchange_checked(const struct drps_stage *stage, struct drps_err *err)
{
    int rc = stage->io->ops->exchange(stage->io->ctx, stage->dir, stage->path);
    if (rc < 0 && !is_unsupported(rc))
        return drps_err_set(err, rc, "cannot exchange %s and %s: %s", stage->dir, stage->path,
                            drps_err_name(rc));
    return rc;
}

static int give_name_back(const struct drps_stage *stage, enum named named)
{
    const struct drps_io *io = stage->io;
    if (named == NOT_PLACED) return 0;
    if (named == EXCHANGED) return io->ops->exchange(io->ctx, stage->path, stage->dir);
    const int rc = io->ops->rename(io->ctx, stage->path, stage->dir);
    if (rc < 0 || named == RENAMED) return rc;
    (void)io->ops->rename(io->ctx, stage->old, stage->path); /* else the next run puts it back */
    return 0;
}

/* Replace a folder by two renames; put_back() mends what a kill between them leaves. */
static int replace_by_renames(const struct drps_stage *stage, struct drps_err *err)
{
    int rc = rename_checked(stage->io, stage->path, stage->old, err);
    if (rc < 0) return rc;
    rc = rename_checked(stage->io, stage->dir, stage->path, err);
    if (rc < 0) (void)stage->io->ops->rename(stage->io->ctx, stage->old, stage->path);
    return rc;
}

static int take_name(const struct drps_stage *stage, enum named *named_out, struct drps_err *err)
{
    struct stat st;
    int rc;
    *named_out = NOT_PLACED;
    if (!stage->replace || lstat(stage->path, &st)) {
        rc = rename_checked(stage->io, stage->dir, stage->path, err);
        if (rc == 0) *named_out = RENAMED;
        return rc;
    }
    rc = exchange_checked(stage, err);
    if (rc == 0) *named_out = EXCHANGED;
    if (!is_unsupported(rc)) return rc;
    rc = replace_by_renames(stage, err);
    if (rc == 0) *named_out = MOVED_ASIDE;
    return rc;
}

/* Remove the old folder, now that the new one has its name. What cannot be removed stays under a
 * name at which the next run looks. */
static void clear_old(struct drps_stage *stage, const char *dir)
{
    if (clear_stale(stage, dir, &stage->left) < 0)
        (void)drps_err_context(&stage->left, "what was replaced is left as %s", dir);
}

/*
 * Give the folder its name and make that last. The lock goes along and is removed only afterwards:
 * until then it must keep others from taking the folder for a stale one.
 */
static int publish_folder(struct drps_stage *stage, struct drps_err *err)
{
    enum named named;
    int rc = take_name(stage, &named, err);
    if (rc == 0) rc = remove_file(stage->io, stage->path, lock_name, err);
    if (rc == 0) rc = drps_sync_folder(stage->io, stage->path, err);
    if (rc == 0) rc = drps_sync_parent(stage->io, stage->path, err);
    if (rc < 0 && give_name_back(stage, named) == 0)
        return rc; /* the first failure is the one told */
    if (rc == 0 && (named == EXCHANGED || named == MOVED_ASIDE))
        clear_old(stage, named == EXCHANGED ? stage->dir : stage->old);
    free(stage->dir);
    stage->dir = NULL; /* abort has nothing to remove: by that name there is the old one, or none */
    return rc;
}

/* The folder in which the file was made is left to abort. */
static int publish_file(const struct drps_stage *stage, struct drps_err *err)
{
    struct stat st;
    if (!stage->replace && !lstat(stage->path, &st))
        return drps_err_set(err, -EEXIST, "%s has appeared meanwhile: it is not replaced",
                            stage->path);
    char *made = drps_path_join(stage->dir, stage->kind->file);
    if (!made) return drps_err_set(err, -ENOMEM, "no memory to publish %s", stage->path);
    int rc = rename_checked(stage->io, made, stage->path, err);
    free(made);
    return rc < 0 ? rc : drps_sync_parent(stage->io, stage->path, err);
}

int drps_stage_commit(struct drps_stage *stage, struct drps_err *err)
{
    int rc = sync_tree(stage->io, stage->dir, stage->synced, err);
    if (rc < 0) return rc;
    return stage->kind->file ? publish_file(stage, err) : publish_folder(stage, err);
}

void drps_stage_abort(struct drps_stage *stage)
{
    if (!stage || !stage->io) return;
    if (stage->dir) (void)remove_ours(stage, stage->dir, NULL); /* a leftover looks unfinished */
    drps_io_close(stage->io, stage->lock_fd);
    free(stage->dir);
    free(stage->old);
    free(stage->path);
    memset(stage, 0, sizeof(*stage));
    stage->lock_fd = -1;
}

/* What a kill leaves of a folder that is removed holds a lock, and is known by that. */
int drps_stage_remove(const struct drps_io *io, const char *path,
                      const struct drps_stage_kind *kind, struct drps_err *err)
{
    struct drps_stage stage = {.io = io, .kind = kind, .lock_fd = -1};
    int rc = name_all(&stage, path, err);
    if (rc == 0) rc = clear_stale(&stage, stage.dir, err);
    if (rc == 0) rc = clear_stale(&stage, stage.old, err);
    if (rc == 0) rc = clear_stale(&stage, stage.path, err);
    free(stage.path);
    free(stage.dir);
    free(stage.old);
    return rc;
}
