/*
 * Sorting: radix sorts in memory, and an external sort for more records than memory has room for,
 * which sorts runs in memory, spills them to a file and merges them. The order is by (hi, lo), then
 * by order of arrival, so it does not depend on the memory given.
 */
#ifndef DRPS_BASE_EXTSORT_H
#define DRPS_BASE_EXTSORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

/* What is sorted. */
struct drps_sort_record {
    uint64_t hi, lo;
    uint32_t a, b; /* payload */
};

/* Sort n records, stably; `aux` has room for n. Bytes that all records share cost no pass. */
void drps_sort_records(struct drps_sort_record *records, struct drps_sort_record *aux, size_t n);

/* Sort n 32-bit numbers, which may be equal; aux has room for n. */
void drps_sort_u32(uint32_t *numbers, uint32_t *aux, size_t n);

/* Sort n pairs by their upper 32 bits, stably; the lower ones may be anything. aux has room for n.
 */
void drps_sort_keyed(uint64_t *pairs, uint64_t *aux, size_t n);

struct drps_extsort; /* opaque; its runs are the files dir/<name>.run */

/* Begin a sort in memory_bytes. io, dir and name are borrowed until drps_extsort_close(). */
DRPS_MUST_CHECK
int drps_extsort_open(const struct drps_io *io, const char *dir, const char *name,
                      uint64_t memory_bytes, struct drps_extsort **s_out, struct drps_err *err);
/* Add a record, which is copied. */
DRPS_MUST_CHECK
int drps_extsort_add(struct drps_extsort *s, const struct drps_sort_record *record,
                     struct drps_err *err);
/* There are no more records: get ready to deliver them. */
DRPS_MUST_CHECK
int drps_extsort_finish(struct drps_extsort *s, struct drps_err *err);
/* Returns 1 and the next record, borrowed until the next call, or 0 at the end. */
DRPS_MUST_CHECK
int drps_extsort_next(struct drps_extsort *s, const struct drps_sort_record **record_out,
                      struct drps_err *err);
/* Free, and remove the run file. NULL-safe. */
void drps_extsort_close(struct drps_extsort *s);

#endif
