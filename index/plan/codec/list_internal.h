/*
 * Dense lists (list_dense.c), and decoding without vector instructions, whatever the processor: the
 * reference of drps_list_decode() and drps_numbers_decode(), for tests. Private to
 * index/plan/codec/.
 */
#ifndef DRPS_INDEX_PLAN_CODEC_LIST_INTERNAL_H
#define DRPS_INDEX_PLAN_CODEC_LIST_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

size_t drps_list_dense_bound(size_t n);
/* The plain twin of drps_list_encode_dense(), without vector instructions. */
size_t drps_list_encode_dense_ref(const uint32_t *list, size_t n, void *out);
DRPS_MUST_CHECK
int drps_list_dense_decode(const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
                           struct drps_err *err);
DRPS_MUST_CHECK
int drps_list_dense_decode_ref(const void *record, size_t bytes, uint32_t *list_out,
                               size_t *used_out, struct drps_err *err);
DRPS_MUST_CHECK
int drps_list_decode_ref(const void *record, size_t bytes, uint32_t *list_out, size_t *used_out,
                         struct drps_err *err);
DRPS_MUST_CHECK
int drps_numbers_decode_ref(const void *record, size_t bytes, uint32_t *numbers_out,
                            size_t *used_out, struct drps_err *err);

#endif
