/* Whether a disk has room for what will be written. */
#ifndef DRPS_BASE_SPACE_H
#define DRPS_BASE_SPACE_H

#include <stdint.h>

#include "base/drps_err.h"

/*
 * Returns -ENOSPC when the disk of `dir` has less than need_bytes free for `what` ("training
 * needs"); the text has all three, and most_bytes, which will do, where they are more (0: that is
 * not known). Returns 0 when it has room, or when that is not known: then
 * writing tells.
 */
DRPS_MUST_CHECK
int drps_space_check(const char *dir, const char *what, uint64_t need_bytes, uint64_t most_bytes,
                     struct drps_err *err);

#endif
