/*
 * The rows of stores that keep every one of them at a place of its own, by its id: whether their
 * number and size can be. Shared inside storage/.
 */
#ifndef DRPS_STORAGE_ROW_SHAPE_H
#define DRPS_STORAGE_ROW_SHAPE_H

#include "storage/drps_store.h"

/* The bytes of all rows to *bytes_out. -EINVAL: a row is no whole number of floats; DRPS_E_CONFIG,
 * -EOVERFLOW: they are too many. */
DRPS_MUST_CHECK
int drps_row_shape(const struct drps_store_config *config, uint64_t *bytes_out,
                   struct drps_err *err);

#endif
