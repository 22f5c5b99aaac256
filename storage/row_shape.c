/* Checks the number and size of rows. */
#include "storage/drps_row_shape.h"

#include <errno.h>

int drps_row_shape(const struct drps_store_config *config, uint64_t *bytes_out,
                   struct drps_err *err)
{
    *bytes_out = 0;
    if (!config->row_bytes || config->row_bytes % 4)
        return drps_err_set(err, -EINVAL, "rows of %zu bytes: not a multiple of 4",
                            config->row_bytes);
    if (config->rows > UINT32_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%llu rows: a store holds at most %u",
                            (unsigned long long)config->rows, UINT32_MAX);
    if (__builtin_mul_overflow(config->rows, config->row_bytes, bytes_out) ||
        *bytes_out > SIZE_MAX / 2)
        return drps_err_set(err, -EOVERFLOW, "%llu rows of %zu bytes",
                            (unsigned long long)config->rows, config->row_bytes);
    return 0;
}
