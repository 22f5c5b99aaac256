/*
 * Staging: a folder, or a file, appears whole or not at all. It is made in the folder
 * "<path>.partial", which one process at a time holds, and takes its name when it is complete. Only
 * what is provably ours is replaced or removed: a description lists what such a folder may hold.
 */
#ifndef DRPS_BASE_FOLDER_STAGE_H
#define DRPS_BASE_FOLDER_STAGE_H

#include "base/folder/drps_owned.h"

#define DRPS_STAGE_SUFFIX ".partial"

/* What is made: a folder with a manifest, or one file. */
struct drps_stage_kind {
    const char *manifest; /* "plan.json"; NULL: a file is made */
    const char *kind;     /* "drps-plan": what the manifest says that it describes */
    int version;          /* manifests of this and older versions are replaced */
    const char *file;     /* name of the file in the folder in which it is made; NULL: a folder */
    const struct drps_owned *owned; /* all that the folder may hold */
};

/* One result being made. */
struct drps_stage {
    const struct drps_io *io;
    const struct drps_stage_kind *kind;
    char *path;         /* own: the final name */
    char *dir;          /* own: the partial folder's name */
    char *old;          /* own: what an existing folder is called where names cannot be exchanged */
    int lock_fd;        /* -1: not locked */
    int replace;        /* 1: what has the final name is replaced */
    const char *synced; /* NULL after drps_stage_begin(); the caller may set the name of a folder
                           in `dir`, borrowed, whose files it has synced when it commits */
    struct drps_err left; /* after a commit: what is left of the old folder, and why; or clean */
};

/*
 * Make "<path>.partial" and lock it; files are then written under stage->dir. What killed runs left
 * is removed first, and a folder that one of them had moved aside gets its name back. `kind` is
 * borrowed until the end.
 * -EEXIST: <path> exists and `replace` is 0, or it is not ours to replace; or something that is not
 * ours has a name that is needed. Nothing was changed. -EBUSY: another process makes it.
 */
DRPS_MUST_CHECK
int drps_stage_begin(struct drps_stage *stage, const struct drps_io *io, const char *path,
                     const struct drps_stage_kind *kind, int replace, struct drps_err *err);

/*
 * Sync all that was written and give it its name. An existing folder exchanges names with it at
 * once, if the file system can; otherwise a kill may leave the old one as "<path>.replaced" for the
 * next drps_stage_begin() to put back. Then what is ours of the old one is removed; what
 * cannot be is no failure, and stage->left tells of it. After a failure the old one is there as
 * before; only a file whose folder cannot be synced has its new content already.
 */
DRPS_MUST_CHECK
int drps_stage_commit(struct drps_stage *stage, struct drps_err *err);

/*
 * Remove a whole folder of that kind, and what killed runs left of it. What is not there is no
 * error. -EEXIST: it is not ours, or no longer whole, and stays. -EBUSY: another process makes it.
 */
DRPS_MUST_CHECK
int drps_stage_remove(const struct drps_io *io, const char *path,
                      const struct drps_stage_kind *kind, struct drps_err *err);

/* Remove the partial folder unless it has become the result. NULL-safe and idempotent. */
void drps_stage_abort(struct drps_stage *stage);

#endif
