/* Lists of 32-bit numbers, packed: the rows of a batch, of a window, of a round. */
#ifndef DRPS_INDEX_PLAN_CODEC_LIST_H
#define DRPS_INDEX_PLAN_CODEC_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_endian.h"
#include "base/drps_err.h"

/*
 * Strictly increasing 32-bit lists, packed: u32 n, then the gaps to the number before minus 1 (the
 * first: the number itself) in 1 to 4 bytes each; the lengths lie in front, four to a byte.
 */
size_t drps_list_encode_bound(size_t n);                            /* of a dense one, too */
size_t drps_list_encode(const uint32_t *list, size_t n, void *out); /* returns bytes written */
/* Smaller for long lists with small gaps: eight gaps at a time have as many bits as the largest
 * needs. n is less than 2^31. */
size_t drps_list_encode_dense(const uint32_t *list, size_t n, void *out);
/* This bit of a list's count says that the list is dense. */
#define DRPS_LIST_DENSE (UINT32_C(1) << 31)
/* Numbers of a list, dense or not. */
static inline uint32_t drps_list_count(const void *record)
{
    return drps_get_u32(record) & ~DRPS_LIST_DENSE;
}

/* list_out has room for drps_list_count(). *used_out (NULL allowed): bytes consumed. DRPS_E_CORRUPT
 * when malformed. */
DRPS_MUST_CHECK
int drps_list_decode(const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
                     struct drps_err *err);

/* Any 32-bit numbers in any order, packed as the gaps of a list are. */
size_t drps_numbers_encode(const uint32_t *numbers, size_t n, void *out);
DRPS_MUST_CHECK
int drps_numbers_decode(const void *record, size_t bytes, uint32_t *numbers_out, size_t *used_out,
                        struct drps_err *err);

#endif
