/*
 * A number for each of 0 .. n - 1, given in any order and taken in turn: an array, or sorted when
 * that takes too much memory. Shared inside index/dictionary/.
 */
#ifndef DRPS_INDEX_DICTIONARY_SCATTER_H
#define DRPS_INDEX_DICTIONARY_SCATTER_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_extsort.h"
#include "base/drps_io.h"

#define SCATTER_NONE UINT32_MAX

struct scatter {
    uint64_t n, taken;
    uint32_t *array; /* [n], or NULL */
    struct drps_extsort *sort;
    const struct drps_sort_record *next; /* of sort; NULL at the end */
};

/* What is sorted goes to files dir/name*. Close also after a failure. */
DRPS_MUST_CHECK
int drps_scatter_open(const struct drps_io *io, const char *dir, const char *name, uint64_t n,
                      uint64_t memory_bytes, struct scatter *s, struct drps_err *err);
void drps_scatter_close(struct scatter *s);

DRPS_MUST_CHECK
int drps_scatter_put(struct scatter *s, uint64_t i, uint32_t value, struct drps_err *err);
/* Turn from giving numbers to taking them. */
DRPS_MUST_CHECK
int drps_scatter_finish(struct scatter *s, struct drps_err *err);
/* The next one's; SCATTER_NONE if none was given. */
DRPS_MUST_CHECK
int drps_scatter_next(struct scatter *s, uint32_t *value_out, struct drps_err *err);

#endif
