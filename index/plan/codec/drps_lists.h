/* Packed lists (drps_list.h) that follow each other in a record, read and checked one by one. */
#ifndef DRPS_INDEX_PLAN_CODEC_LISTS_H
#define DRPS_INDEX_PLAN_CODEC_LISTS_H

#include "index/plan/codec/drps_list.h"

/* What of a record is still to be read. */
struct drps_lists {
    const unsigned char *at;
    size_t left;
};

/* The next list, of at most `most` numbers below `end`, to out [most]: strictly increasing, or with
 * `numbers` in any order. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_lists_next(struct drps_lists *lists, size_t most, int numbers, uint64_t end, uint32_t *out,
                    size_t *n_out, struct drps_err *err);

#endif
