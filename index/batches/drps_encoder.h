/*
 * Batches to be written: from the rows of their entries, in any order, to the list of these rows
 * and the body, packed where that is smaller. Shared inside index/.
 *
 * The entries are sorted by row, and dealt out to their samples again: so a sample's are in the
 * order of their rows. Order changes no sample, and makes the differences small that packing stores
 * (drps_pack16.h).
 */
#ifndef DRPS_INDEX_BATCHES_ENCODER_H
#define DRPS_INDEX_BATCHES_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/plan/drps_batch.h"

/* Zero it first. */
struct bodies {
    uint64_t *pairs,
        *aux;         /* own: [nnz] row << 32 | its sample, or its entry where these have values;
                         then, in aux, each sample's entries in order, and their values */
    uint32_t *sample; /* own: [nnz] of each entry, where they have values */
    uint32_t *next;   /* own: [samples] where a sample's next entry goes */
    uint32_t *list;   /* own: [rows] that the batch has, in order */
    unsigned char *listed; /* own: the same packed */
    void *packed;          /* own */
    size_t pairs_cap, aux_cap, sample_cap, next_cap, list_cap, listed_cap, packed_cap;
    uint64_t max_bytes; /* of the bodies so far, plain */
};

/* What it takes to encode a batch, at most, beside the batch itself: of an entry, and if it has a
 * value; of a sample. */
enum { BODIES_ENTRY_BYTES = 28, BODIES_VALUE_BYTES = 4, BODIES_SAMPLE_BYTES = 5 };

/* Of one batch: what is written. */
struct encoded {
    struct drps_batch_pieces body;
    struct drps_piece list;
    size_t rows;
};

/*
 * The records of `b`, whose entries have rows [b->nnz], distinct within a sample, in place of b's
 * own indices and number of rows. `bias`: it has row 0, too, which no entry has. *out borrows from
 * w, until the next call, and from b.
 */
DRPS_MUST_CHECK
int bodies_encode(struct bodies *w, const struct drps_batch *b, const uint32_t *rows, int bias,
                  struct encoded *out, struct drps_err *err);
void bodies_end(struct bodies *w);

#endif
