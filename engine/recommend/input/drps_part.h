/* A scratch file that is written front to back, then read anywhere. Shared inside
 * engine/recommend/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_INPUT_PART_H
#define DRPS_ENGINE_RECOMMEND_INPUT_PART_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

struct drps_part; /* opaque */

enum { DRPS_PART_BYTES = 256 * 1024 }; /* its memory */

/* Make the file <number>.part in folder `dir`. */
DRPS_MUST_CHECK
int drps_part_open(const struct drps_io *io, const char *dir, unsigned number,
                   struct drps_part **p_out, struct drps_err *err);
void drps_part_close(struct drps_part *p); /* NULL-safe; removes the file */

DRPS_MUST_CHECK
int drps_part_add(struct drps_part *p, const void *data, size_t n, struct drps_err *err);
uint64_t drps_part_bytes(const struct drps_part *p); /* added so far */

/* All is there: from now on it is read. */
DRPS_MUST_CHECK
int drps_part_finish(struct drps_part *p, struct drps_err *err);
DRPS_MUST_CHECK
int drps_part_read(const struct drps_part *p, void *data, size_t n, uint64_t at,
                   struct drps_err *err);

#endif
