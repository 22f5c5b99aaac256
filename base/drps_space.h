/* Whether a disk has room for what will be written. */
#ifndef DRPS_BASE_SPACE_H
#define DRPS_BASE_SPACE_H

#include <stdint.h>

#include "base/drps_err.h"

/*
 * -ENOSPC: the disk of `dir` has less than need_bytes free for `what` ("training needs"); the text
 * has all three. 0 where that is not known: then writing will tell.
 */
DRPS_MUST_CHECK
int drps_space_check(const char *dir, const char *what, uint64_t need_bytes, struct drps_err *err);

#endif
