/* Cutting a stream of samples into batches, and these into records. Private to
 * index/. */
#ifndef DRPS_INDEX_BATCHES_BATCHER_H
#define DRPS_INDEX_BATCHES_BATCHER_H

#include "base/record/drps_recfile.h"
#include "index/batches/drps_encoder.h"
#include "index/plan/drps_plan.h"
#include "index/samples/drps_spool.h"

struct batcher;

struct batcher_options {
    size_t batch_size;
    uint32_t common;       /* so many rows from 0 on, which no sample names, are in every batch, at
                              the same local indices */
    uint64_t memory_bytes; /* a batch that takes more while it is built is DRPS_E_MEMORY_BUDGET; 0:
                              no bound */
    const uint32_t *map;   /* borrowed: rows by the samples' ids; NULL: ids are rows */
    struct encoder_ways ways;
    unsigned threads; /* that encode beside the caller, two at most; 0: the caller does all. What is
                         written is the same. */
    uint32_t field_count; /* each entry has a field below it; 0: entries have no fields */
    uint32_t numbers;     /* each sample has so many by place; 0: samples have none */
    uint32_t sequence;    /* samples of a sequence, at most, and of a batch, at least: a batch ends
                             where one begins that might not fit, so that it has whole ones. A
                             sample's first field says where (enum drps_sequence_mark). 0: there are
                             no sequences */
};

/* Open a batcher, which writes to data and rows, both borrowed. */
DRPS_MUST_CHECK
int drps_batcher_open(struct drps_recwriter *data, struct drps_recwriter *rows,
                      const struct batcher_options *options, struct batcher **b_out,
                      struct drps_err *err);

/* One sample; the order of its ids does not count. They are distinct, but that of one id and
 * several fields; it has fields if batches have them. */
DRPS_MUST_CHECK
int drps_batcher_add(struct batcher *b, const struct spool_sample *sample, struct drps_err *err);

/* A sample that will be added soon: request what it needs from memory. */
void drps_batcher_expect(const struct batcher *b, const uint32_t *ids, uint32_t n);

/* The stratum and lane of the batches that end from now on; at the start 0. */
void drps_batcher_mark(struct batcher *b, uint32_t stratum, uint32_t lane);

/* Write the batch begun, if any. */
DRPS_MUST_CHECK
int drps_batcher_flush(struct batcher *b, struct drps_err *err);

/* Write the batch begun, be it without samples, which then has no rows either. */
DRPS_MUST_CHECK
int drps_batcher_end(struct batcher *b, struct drps_err *err);

/* Raise the maxima in info by what was written. */
void drps_batcher_maxima(const struct batcher *b, struct drps_plan_info *info);
void drps_batcher_close(struct batcher *b);

#endif
