/* What the stores of a device take of its memory. */
#ifndef DRPS_STORAGE_DEVICE_ROWS_H
#define DRPS_STORAGE_DEVICE_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of the device's memory that the tiered store of so many rows takes beside its
 * frames. */
uint64_t drps_device_rows_moving(size_t row_bytes, uint64_t rows);

#endif
