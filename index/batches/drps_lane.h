/*
 * Samples of one lane that wait until they make a batch. Shared inside index/batches/.
 */
#ifndef DRPS_INDEX_BATCHES_LANE_H
#define DRPS_INDEX_BATCHES_LANE_H

#include "index/batches/drps_batcher.h"
#include "index/samples/drps_spool.h"

/* Samples that wait, [n] of them, entries one after another. All 0: none. */
struct lane {
    float *labels, *weights;
    uint32_t *starts; /* [n + 1] */
    uint32_t *ids;    /* [starts[n]] */
    float *values;    /* [starts[n]], where any sample has some */
    size_t n, label_cap, weight_cap, start_cap, id_cap, value_cap;
    int has_values;
};

/* At most so many bytes are taken by n samples of at most two ids. */
uint64_t drps_lane_memory(uint64_t n);

/* Copies a sample to the end. */
DRPS_MUST_CHECK
int drps_lane_keep(struct lane *q, const struct spool_sample *sample, struct drps_err *err);

/* Passes samples first to last - 1 on; they stay here. */
DRPS_MUST_CHECK
int drps_lane_pass(const struct lane *q, size_t first, size_t last, struct batcher *to,
                   struct drps_err *err);

/* Forgets the first n samples. */
void drps_lane_drop(struct lane *q, size_t n);

void drps_lane_free(struct lane *q);

#endif
