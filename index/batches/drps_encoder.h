/*
 * Batches to be written: from the rows of their entries, in any order, to the list of these rows
 * and the body, packed where that is smaller. Shared inside index/.
 *
 * The entries are sorted by row, and put back to their samples: so a sample's are in the
 * order of their rows. Order changes no sample, and makes the differences small that packing stores
 * (drps_pack16.h).
 */
#ifndef DRPS_INDEX_BATCHES_ENCODER_H
#define DRPS_INDEX_BATCHES_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "index/plan/drps_batch.h"

/* The encoder and its memory, which it keeps from batch to batch. Zero it first. */
/* Ways to pack a body that drps of before cannot read. */
struct encoder_ways {
    int dense;  /* 1: entries may be a matrix (DRPS_BATCH_MATRIX) */
    int levels; /* 1: values may be numbers of a short list (DRPS_BATCH_LEVELS) */
};

struct batch_encoder {
    uint64_t *pairs,
        *aux;         /* own: [nnz] row << 32 | its sample, or its entry where these have values or
                         fields; then, in aux, each sample's entries in order, and their values */
    uint32_t *sample; /* own: [nnz] of each entry, where they have values or fields */
    uint16_t *fields; /* own: [nnz] of each sample's entries in order, where they have fields */
    uint32_t *next;   /* own: [samples] where a sample's next entry goes */
    uint32_t *list;   /* own: [rows] that the batch has, in order */
    unsigned char *listed; /* own: the same packed */
    void *packed, *matrix; /* own: the body, packed in two ways */
    uint8_t *bytes;        /* own: [samples][each] of numbers, which level each of them is */
    float levels[DRPS_DENSE_LEVELS]; /* of them */
    size_t pairs_cap, aux_cap, sample_cap, field_cap, next_cap, list_cap, listed_cap, packed_cap,
        matrix_cap, bytes_cap;
    struct encoder_ways ways;
    uint64_t max_bytes; /* of the bodies so far, plain */
};

/* What it takes to encode a batch, at most, beside the batch itself: of an entry, if it has a
 * value, and if it has a field; of a sample. */
enum {
    ENCODER_ENTRY_BYTES = 28,
    ENCODER_VALUE_BYTES = 4,
    ENCODER_FIELD_BYTES = 8,
    ENCODER_SAMPLE_BYTES = 5,
    ENCODER_LEVEL_BYTES = 1,  /* and where values may be numbers of a list */
    ENCODER_NUMBER_BYTES = 5, /* of a number by place: its level, and the number without zeros */
    /* and where entries may be a matrix */
    ENCODER_MATRIX_ENTRY_BYTES = 6,
    ENCODER_MATRIX_SAMPLE_BYTES = 5
};

/* What is written of one batch. */
struct encoded {
    struct drps_batch_pieces body;
    struct drps_piece list;
    size_t rows;
};

/*
 * The records of `b`, whose entries have rows [b->nnz], distinct within a sample, in place of b's
 * own indices and number of rows. It has rows 0 .. common - 1, too, which no entry has. *out
 * borrows from e, until the next call, and from b.
 */
DRPS_MUST_CHECK
int drps_batch_encoder_encode(struct batch_encoder *e, const struct drps_batch *b,
                              const uint32_t *rows, uint32_t common, struct encoded *out,
                              struct drps_err *err);
void drps_batch_encoder_end(struct batch_encoder *e);

#endif
