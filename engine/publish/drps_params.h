/*
 * The trained parameters in one flat file: float32 [rows][dim] in placed order, nothing else. Room
 * for the file is set aside before training, so that no disk is too full for it afterwards. The
 * writer sees every parameter, and finds those that are no finite numbers. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_PUBLISH_PARAMS_H
#define DRPS_ENGINE_PUBLISH_PARAMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

struct drps_params; /* opaque: a file being written */

/* All bytes are set. */
struct drps_params_found {
    uint64_t content; /* XXH3 over all parameters */
    uint64_t bad;     /* values that are no finite numbers; of the first one of these: */
    uint64_t row, column;
    double value;
};

/* Write the file anew, where it lies. Rows come with row_bytes each, of which the first dim floats
 * are kept. Memory: one buffer of about 1 MiB, or of a
 * row and its page where that is more. */
DRPS_MUST_CHECK
int drps_params_open(const struct drps_io *io, const char *path, uint64_t rows, uint32_t dim,
                     size_t row_bytes, struct drps_params **w_out, struct drps_err *err);
void drps_params_close(struct drps_params *w); /* NULL-safe */

/* From now on `tell` hears how many of all bytes are written, some times a MiB. */
void drps_params_tell(struct drps_params *w,
                      void (*tell)(void *ctx, uint64_t bytes, uint64_t all_bytes), void *ctx);

/* A drps_row_visit: hand it, with the writer as ctx, to a store's scan. Rows must come in order and
 * be complete. */
DRPS_MUST_CHECK
int drps_params_add(void *writer, uint64_t first, size_t n, const void *rows, struct drps_err *err);

/* Rows that come as parameters alone, dim floats each. */
DRPS_MUST_CHECK
int drps_params_add_packed(struct drps_params *w, uint64_t first, size_t n, const void *params,
                           struct drps_err *err);

/* Write what is left and sync. Values that are no numbers are no error here: *found_out has them.
 */
DRPS_MUST_CHECK
int drps_params_finish(struct drps_params *w, struct drps_params_found *found_out,
                       struct drps_err *err);

/*
 * Read a file of rows * dim floats from its first byte to its last; `visit` gets them as packed
 * parameters. DRPS_E_CORRUPT: it has another size. Memory: as for writing.
 */
typedef int (*drps_params_visit)(void *ctx, uint64_t first, size_t n, const void *params,
                                 struct drps_err *err);
DRPS_MUST_CHECK
int drps_params_read(const struct drps_io *io, const char *path, uint64_t rows, uint32_t dim,
                     drps_params_visit visit, void *ctx, struct drps_err *err);

#endif
