/* What the head of a body record says, packed or not, without decoding it. */
#include <string.h>

#include "index/plan/body/body.h"

uint32_t drps_batch_stratum(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0
                                         : drps_get_u32((const char *)record + BODY_DIAGONAL_AT);
}

uint32_t drps_batch_lane(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES
               ? 0
               : drps_get_u32((const char *)record + BODY_DIAGONAL_AT + 4);
}

void drps_batch_unmark(const void *record, char head_out[DRPS_BATCH_HEAD_BYTES])
{
    memcpy(head_out, record, DRPS_BATCH_HEAD_BYTES);
    memset(head_out + BODY_DIAGONAL_AT, 0, 8);
}

static uint32_t flags_of(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0 : drps_get_u32((const char *)record + BODY_FLAGS_AT);
}

uint32_t drps_batch_hand_over(const void *record, size_t bytes)
{
    return flags_of(record, bytes) & BODY_HAND_FLAGS;
}

uint32_t drps_batch_samples(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0 : drps_get_u32(record);
}

uint64_t drps_batch_entries(const void *record, size_t bytes)
{
    return bytes < DRPS_BATCH_HEAD_BYTES ? 0 : drps_get_u64((const char *)record + 8);
}

int drps_batch_is_matrix(const void *record, size_t bytes)
{
    return (flags_of(record, bytes) & DRPS_BATCH_MATRIX) != 0;
}

int drps_batch_has_levels(const void *record, size_t bytes)
{
    return (flags_of(record, bytes) & DRPS_BATCH_LEVELS) != 0;
}
