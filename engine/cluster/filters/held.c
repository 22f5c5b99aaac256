/* Values that were held back: a packed list of rows, then their float32. */
#include "engine/cluster/filters/drps_held.h"

#include <string.h>

#include "index/plan/codec/drps_list.h"

size_t drps_held_encode(const struct drps_held *held, uint32_t dim, void *out)
{
    const size_t list = drps_list_encode_dense(held->rows, held->n, out);
    const size_t bytes = held->n * dim * sizeof(float);
    if (bytes) memcpy((char *)out + list, held->values, bytes);
    return list + bytes;
}

int drps_held_decode(const void *data, size_t bytes, size_t rows, uint32_t dim,
                     struct drps_held *out, struct drps_err *err)
{
    size_t list = 0;
    out->n = bytes >= 4 ? drps_list_count(data) : SIZE_MAX;
    if (out->n <= rows && drps_list_decode(data, bytes, out->rows, &list, NULL) == 0 &&
        (!out->n || out->rows[out->n - 1] < rows) && bytes - list == out->n * dim * sizeof(float)) {
        if (out->n) memcpy(out->values, (const char *)data + list, bytes - list);
        return 0;
    }
    return drps_err_set(err, DRPS_E_PROTO, "held back values that do not fit %zu rows", rows);
}
