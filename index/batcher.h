/* Cutting a stream of samples into batches: distinct rows, batch-local indices, records. Private to
 * index/. */
#ifndef DRPS_INDEX_BATCHER_H
#define DRPS_INDEX_BATCHER_H

#include "base/drps_recfile.h"
#include "index/drps_plan.h"

struct batcher;

/* data and rows are borrowed; has_bias: placed id 0 is in every batch, at local index 0. A
 * batch that takes more than memory_bytes while it is built is DRPS_E_MEMORY_BUDGET. */
DRPS_MUST_CHECK
int batcher_open(struct drps_recwriter *data, struct drps_recwriter *rows, size_t batch_size,
                 int has_bias, uint64_t memory_bytes, struct batcher **b_out, struct drps_err *err);

/* One sample: n placed ids (distinct) and values (NULL: all 1). */
DRPS_MUST_CHECK
int batcher_add(struct batcher *b, float label, uint32_t n, const uint32_t *ids,
                const float *values, struct drps_err *err);

/* Write the batch begun, if any. */
DRPS_MUST_CHECK
int batcher_flush(struct batcher *b, struct drps_err *err);

/* Write the batch begun, be it without samples, which then has no rows either. */
DRPS_MUST_CHECK
int batcher_end(struct batcher *b, struct drps_err *err);

/* Raise the maxima in info by what was written. */
void batcher_maxima(const struct batcher *b, struct drps_plan_info *info);
void batcher_close(struct batcher *b);

#endif
