/*
 * What is ours in a folder. A description lists every file and folder that a program may have
 * written; what it does not list belongs to somebody else and is never removed. A symbolic link, a
 * pipe or a device is never ours, whatever its name.
 */
#ifndef DRPS_BASE_FOLDER_OWNED_H
#define DRPS_BASE_FOLDER_OWNED_H

#include "base/drps_io.h"

/* One thing that a folder may hold. A list of them ends with a NULL name. */
struct drps_owned {
    const char *name;                /* a '#' stands for a number: one or more digits */
    const struct drps_owned *inside; /* a folder that may hold these; NULL: a regular file */
    int unfinished;                  /* 1: only while the folder that lists it is being made */
};

/*
 * Returns 0 when all that is below the folder `dir` is in `list`. `lock` is the name of one more
 * file, an empty one, that `dir` itself may hold. `unfinished` 1: the folder is being made.
 * DRPS_E_NOT_FOUND names the first thing that is not ours.
 */
DRPS_MUST_CHECK
int drps_owned_check(const char *dir, const struct drps_owned *list, int unfinished,
                     const char *lock, struct drps_err *err);

/*
 * Remove what is in `list` below `dir`, unfinished things too, and folders that are empty then, but
 * neither `dir` nor its `lock`. What is not ours stays, as do the folders that hold it:
 * DRPS_E_NOT_FOUND names it.
 */
DRPS_MUST_CHECK
int drps_owned_remove(const struct drps_io *io, const char *dir, const struct drps_owned *list,
                      const char *lock, struct drps_err *err);

#endif
