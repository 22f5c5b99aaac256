/* Whether there is room on the disk for what training will write. Private to engine/. */
#ifndef DRPS_ENGINE_SPACE_H
#define DRPS_ENGINE_SPACE_H

#include <stdint.h>

#include "base/drps_err.h"
#include "engine/memory.h"
#include "index/drps_plan.h"

/*
 * Bytes that a store takes at least for rows with optimizer state: none in memory, relay's streams
 * all of them once (up to a quarter more, which opening the store tells), blocks in a file half as
 * much again.
 */
uint64_t drps_space_of_store(const struct drps_memory *memory, uint64_t rows, uint64_t row_bytes);

/*
 * -ENOSPC: the disk of `dir` has less than need_bytes free; the text has both. 0 where that is not
 * known: then writing will tell.
 */
DRPS_MUST_CHECK
int drps_space_check(const char *dir, uint64_t need_bytes, struct drps_err *err);

#endif
