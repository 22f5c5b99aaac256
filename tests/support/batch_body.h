/* Records of data.rec, unpacked. */
#ifndef DRPS_TESTS_BATCH_BODY_H
#define DRPS_TESTS_BATCH_BODY_H

#include <stdlib.h>

#include "base/drps_endian.h"
#include "index/plan/drps_batch.h"

/* The plain body, which free() releases, instead of `record`, which is released; *bytes becomes its
 * size. */
static inline void *body_unpack(void *record, size_t *bytes)
{
    const unsigned char *head = record;
    struct drps_err err = DRPS_ERR_INIT;
    const size_t samples = drps_get_u32(head), nnz = (size_t)drps_get_u64(head + 8);
    const size_t room = DRPS_BATCH_HEAD_BYTES + 8 * samples + 10 * nnz + 64;
    void *plain = malloc(room);
    if (!plain || drps_batch_unpack(record, *bytes, plain, room, bytes, &err) < 0)
        fail_msg("%s", err.text);
    free(record);
    return plain;
}

#endif
