/*
 * Lists of batches get the stretches of 8 and of 32 batches that they have a batch in
 * (drps_stretches.h).
 */
#include "index/blocks/counts/drps_stretches.h"

#include <errno.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { LENGTHS = STRETCHES_MOST - 1 };
static const uint32_t lengths[LENGTHS] = {8, 32};

static uint32_t stretches_of(uint32_t batches, uint32_t length)
{
    return batches / length + (batches % length > 0);
}

/* The stretches of n increasing batches, numbered from `base` on; how many. out NULL: counts only.
 */
static size_t list_stretches(const uint32_t *batch, uint64_t n, uint32_t length, uint32_t base,
                             uint32_t *out)
{
    uint32_t end = 0; /* of the stretch that was met last */
    size_t met = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (batch[i] < end) continue;
        const uint32_t stretch = batch[i] / length;
        end = (stretch + 1) * length;
        if (out) out[met] = base + stretch;
        met++;
    }
    return met;
}

static uint64_t count_all(const struct access *a)
{
    uint64_t sum = a->start[a->rows] - a->start[0];
    for (uint32_t row = 0; row < a->rows; row++)
        for (unsigned k = 0; k < LENGTHS; k++)
            sum += list_stretches(a->batch + a->start[row], a->start[row + 1] - a->start[row],
                                  lengths[k], 0, NULL);
    return sum;
}

int drps_stretches_add(const struct access *a, struct access *out, struct drps_err *err)
{
    uint64_t end = 0;

    *out = (struct access){.rows = a->rows, .batches = a->batches};
    out->start = drps_array_new((size_t)a->rows + 1, sizeof(*out->start));
    out->batch = drps_array_new((size_t)count_all(a), sizeof(*out->batch));
    if (!out->start || !out->batch) {
        drps_access_free(out);
        return drps_err_set(err, -ENOMEM, "no memory for the stretches of %u rows", a->rows);
    }
    for (unsigned k = 0; k < LENGTHS; k++)
        out->batches += stretches_of(a->batches, lengths[k]);
    for (uint32_t row = 0; row < a->rows; row++) {
        const uint32_t *batch = a->batch + a->start[row];
        const uint64_t n = a->start[row + 1] - a->start[row];
        uint32_t base = a->batches;
        out->start[row] = end;
        memcpy(out->batch + end, batch, n * sizeof(*batch));
        end += n;
        for (unsigned k = 0; k < LENGTHS; k++) {
            end += list_stretches(batch, n, lengths[k], base, out->batch + end);
            base += stretches_of(a->batches, lengths[k]);
        }
    }
    out->start[a->rows] = end;
    return 0;
}
