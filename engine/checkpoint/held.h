/*
 * held.rec: what the worker of a rank holds back of gradients (engine/cluster/filters/), a row for
 * each residual slot. Private to engine/checkpoint/.
 */
#ifndef DRPS_ENGINE_CHECKPOINT_HELD_H
#define DRPS_ENGINE_CHECKPOINT_HELD_H

#include "engine/checkpoint/drps_checkpoint.h"

/* Write all rows to a new file. */
DRPS_MUST_CHECK
int drps_held_write(const struct drps_io *io, const char *path,
                    const struct drps_checkpoint_held *held, const void *rows,
                    struct drps_err *err);

/* Read all rows, into rows_out [slots][row_bytes] unless it is NULL. DRPS_E_CORRUPT: the file does
 * not hold them. DRPS_E_INTERRUPTED by io->stop. */
DRPS_MUST_CHECK
int drps_held_read(const struct drps_io *io, const char *path,
                   const struct drps_checkpoint_held *held, void *rows_out, struct drps_err *err);

#endif
