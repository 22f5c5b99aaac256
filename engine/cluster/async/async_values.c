/* Parameters on their way to another rank: as float32, or as float16. */
#include <math.h>
#include <string.h>

#include "engine/cluster/async/parts.h"
#include "engine/cluster/filters/drps_half.h"

#define HALF_MOST 65504.0F

/* What is no finite number stays none, so that training ends as it would. */
static uint16_t half_of(float value)
{
    return drps_half_from(isfinite(value) ? fmaxf(-HALF_MOST, fminf(HALF_MOST, value)) : value);
}

size_t drps_async_write_rows(const struct async_job *job, const struct drps_rows *rows, void *out)
{
    const size_t n = rows->n * job->dim;
    unsigned char *at = out;
    drps_rows_gather(rows, job->dim, 0, rows->n, out);
    for (size_t i = 0; job->half && i < n; i++) { /* in place: never before what is read */
        float value;
        memcpy(&value, at + i * sizeof(value), sizeof(value));
        const uint16_t half = half_of(value);
        memcpy(at + i * sizeof(half), &half, sizeof(half));
    }
    return rows->n * async_row_bytes(job);
}

void drps_async_read_rows(const struct async_job *job, const void *data, size_t rows, void *out)
{
    const unsigned char *from = data;
    unsigned char *to = out;
    if (!job->half) {
        if (rows) memcpy(to, from, rows * async_row_bytes(job));
        return;
    }
    for (size_t i = 0; i < rows * job->dim; i++) {
        uint16_t half;
        memcpy(&half, from + i * sizeof(half), sizeof(half));
        const float value = drps_half_to(half);
        memcpy(to + i * sizeof(value), &value, sizeof(value));
    }
}
