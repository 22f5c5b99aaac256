/* Lists of a record, one after another. */
#include "index/plan/codec/drps_lists.h"

#include <inttypes.h>

int drps_lists_next(struct drps_lists *lists, size_t most, int numbers, uint64_t end, uint32_t *out,
                    size_t *n_out, struct drps_err *err)
{
    size_t used = 0;
    *n_out = lists->left >= 4 ? drps_list_count(lists->at) : 0;
    if (*n_out > most)
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %zu of %zu rows", *n_out, most);
    int rc = numbers ? drps_numbers_decode(lists->at, lists->left, out, &used, err)
                     : drps_list_decode(lists->at, lists->left, out, &used, err);
    if (rc < 0) return rc;
    lists->at += used;
    lists->left -= used;
    for (size_t i = 0; i < *n_out; i++)
        if (out[i] >= end)
            return drps_err_set(err, DRPS_E_CORRUPT, "number %" PRIu32 " of %" PRIu64, out[i], end);
    return 0;
}
