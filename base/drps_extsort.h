/*
 * Sorting more records than memory holds: runs sorted in memory, spilled, merged. Private to
 * index/. The order is by (hi, lo), then by order of arrival, so it does not depend on the memory
 * given.
 */
#ifndef DRPS_BASE_EXTSORT_H
#define DRPS_BASE_EXTSORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"

struct sort_record {
    uint64_t hi, lo;
    uint32_t a, b; /* payload */
};

/* Stable radix sort of n records; `aux` has room for n. Bytes that all records share cost no pass.
 */
void sort_records(struct sort_record *records, struct sort_record *aux, size_t n);

/* Sort n distinct or equal 32-bit numbers; aux has room for n. */
void sort_u32(uint32_t *numbers, uint32_t *aux, size_t n);

/* Sort n pairs by their upper 32 bits, stably: a number to sort by, then what it belongs to. aux
 * has room for n. */
void sort_keyed(uint64_t *pairs, uint64_t *aux, size_t n);

struct extsort; /* opaque; its runs are the files dir/<name>.run */

DRPS_MUST_CHECK
int extsort_open(const struct drps_io *io, const char *dir, const char *name, uint64_t memory_bytes,
                 struct extsort **s_out, struct drps_err *err);
DRPS_MUST_CHECK
int extsort_add(struct extsort *s, const struct sort_record *record, struct drps_err *err);
/* No more records: prepare to deliver. */
DRPS_MUST_CHECK
int extsort_finish(struct extsort *s, struct drps_err *err);
/* 1 and a record (borrowed until the next call), or 0 at the end. */
DRPS_MUST_CHECK
int extsort_next(struct extsort *s, const struct sort_record **record_out, struct drps_err *err);
/* Free, and remove the run file. NULL-safe. */
void extsort_close(struct extsort *s);

#endif
