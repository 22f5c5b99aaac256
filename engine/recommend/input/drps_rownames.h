/*
 * Names by row: the dictionary has them by key. They are held in memory if there is room, else
 * they lie in two scratch files: the texts in the order of keys, and where each row's text lies.
 * Shared inside engine/recommend/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_INPUT_ROWNAMES_H
#define DRPS_ENGINE_RECOMMEND_INPUT_ROWNAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "engine/publish/drps_modeldir.h"
#include "engine/recommend/input/drps_rowset.h"

struct drps_rownames; /* opaque */

/* Memory in which names are always found, from files. */
enum { DRPS_ROWNAMES_LEAST = 4 << 20 };

/* Names of the rows of sets [n]. `scratch` is a folder, in which files 1.run, 2.part and 3.part may
 * be made. All is borrowed until close. */
DRPS_MUST_CHECK
int drps_rownames_open(const struct drps_io *io, struct drps_modeldir *md,
                       const struct drps_rowset *const *sets, size_t n, uint64_t memory_bytes,
                       const char *scratch, struct drps_rownames **names_out, struct drps_err *err);
void drps_rownames_close(struct drps_rownames *names); /* NULL-safe; removes the files */

/* A row's name, borrowed until the next call. DRPS_E_CORRUPT: it has none. */
DRPS_MUST_CHECK
int drps_rownames_get(struct drps_rownames *names, uint32_t row, const char **text_out,
                      size_t *n_out, struct drps_err *err);

#endif
