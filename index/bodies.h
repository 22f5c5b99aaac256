/*
 * Bodies of batches to be written: a sample's entries in the order of their rows, packed where that is
 * smaller. Private to index/.
 *
 * Order changes no sample, and makes the differences small that packing stores (pack16.h).
 */
#ifndef DRPS_INDEX_BODIES_H
#define DRPS_INDEX_BODIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/drps_batch.h"

/* Zero it first. */
struct bodies {
    uint32_t *first;  /* own: [rows + 1] where a row's entries begin, or end, among all by row */
    uint32_t *sample; /* own: [nnz] of each entry by row */
    float *value;     /* own: [nnz] of each entry by row */
    uint32_t *next;   /* own: [samples] where a sample's next entry goes */
    uint32_t *local;  /* own: [nnz] of each entry, in order */
    float *values;    /* own: [nnz] of each entry, in order */
    void *packed;     /* own */
    size_t first_cap, sample_cap, value_cap, next_cap, local_cap, values_cap, packed_cap;
    uint64_t max_bytes; /* of the bodies so far, plain */
};

/*
 * The record of `b`, whose local indices are local [nnz], all below b->rows, instead of its own.
 * *out borrows from w, until the next call, and from b.
 */
DRPS_MUST_CHECK
int bodies_encode(struct bodies *w, const struct drps_batch *b, const uint32_t *local,
                  struct drps_batch_pieces *out, struct drps_err *err);
void bodies_end(struct bodies *w);

#endif
