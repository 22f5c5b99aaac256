/* Files and folders that outlive a loss of power. */
#ifndef DRPS_BASE_FOLDER_DURABLE_H
#define DRPS_BASE_FOLDER_DURABLE_H

#include "base/drps_io.h"

/* Make the names in a folder last. */
DRPS_MUST_CHECK
int drps_sync_folder(const struct drps_io *io, const char *path, struct drps_err *err);

/* Make the name of `path` last: sync the folder that holds it. */
DRPS_MUST_CHECK
int drps_sync_parent(const struct drps_io *io, const char *path, struct drps_err *err);

/* Make a folder whose name lasts, unless it is there. */
DRPS_MUST_CHECK
int drps_make_folder(const struct drps_io *io, const char *path, struct drps_err *err);

/* Copy a file, synced, or (to is NULL) only read it: its size and XXH3. */
DRPS_MUST_CHECK
int drps_copy_file(const struct drps_io *io, const char *from, const char *to, uint64_t *bytes_out,
                   uint64_t *sum_out, struct drps_err *err);

#endif
