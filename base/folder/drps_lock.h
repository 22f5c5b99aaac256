/* Locks: files that one process at a time holds. Advisory, of an open file: they end with the
 * process that holds them, however that ends. */
#ifndef DRPS_BASE_FOLDER_LOCK_H
#define DRPS_BASE_FOLDER_LOCK_H

#include "base/drps_io.h"

/*
 * Open the file `path`, which is made if it is not there, and lock it. *fd_out is the caller's to
 * close, and -1 on a failure. -EBUSY, without a text: another holds it, or the file has lost its
 * name meanwhile to one that has let go of it.
 */
DRPS_MUST_CHECK
int drps_lock_take(const struct drps_io *io, const char *path, int *fd_out, struct drps_err *err);

#endif
