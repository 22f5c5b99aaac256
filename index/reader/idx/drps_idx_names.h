/* Finds the file of labels that belongs to an IDX file, by its name. Needs base/ for files. */
#ifndef DRPS_INDEX_READER_IDX_NAMES_H
#define DRPS_INDEX_READER_IDX_NAMES_H

#include "base/drps_io.h"

/*
 * The labels of DIR/..images-idx3.. are DIR/..labels-idx1.., as MNIST names them (a point may stand
 * in place of the hyphen). The new string (free() it) is the path of those that are compressed as
 * the items are, or else are there: plain, .gz, .xz or .zst. *found_out: there is such a file.
 * NULL: the name is none of these. -ENOMEM, or what the system says of a file that is there.
 */
DRPS_MUST_CHECK
int drps_idx_labels_path(const struct drps_io *io, const char *items, char **path_out,
                         int *found_out, struct drps_err *err);

#endif
