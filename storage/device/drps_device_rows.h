/* What the stores of a device take of its memory, and of the process's. */
#ifndef DRPS_STORAGE_DEVICE_ROWS_H
#define DRPS_STORAGE_DEVICE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "storage/drps_store.h"

/* Returns the bytes of the device's memory that rows in tiers take beside their frames. */
uint64_t drps_device_rows_moving(size_t row_bytes, uint64_t rows);

/* Returns how many of config->memory_bytes the relay store below a device has. Of config,
 * memory_bytes, rows, row_bytes, device_frames and epoch_steps are used. */
uint64_t drps_tiered_below_bytes(const struct drps_store_config *config);

#endif
