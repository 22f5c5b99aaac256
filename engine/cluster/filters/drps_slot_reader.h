/*
 * The slots of a worker's batches (index/plan/drps_residuals.h), read as training goes on: a record
 * a training batch of its share. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_CLUSTER_FILTERS_SLOT_READER_H
#define DRPS_ENGINE_CLUSTER_FILTERS_SLOT_READER_H

#include "index/plan/drps_plan.h"
#include "index/plan/drps_residuals.h"

struct drps_slot_reader; /* opaque */

/* Where training begins: `first` training batches of the first epoch are done, all of them where it
 * is evaluated only; `epochs` from that one on. */
struct drps_slot_range {
    uint64_t first, epochs;
};

/* Returns the memory of a reader. */
uint64_t drps_slot_reader_memory(const struct drps_plan_info *info);

/* Borrows the plan. */
DRPS_MUST_CHECK
int drps_slot_reader_open(const struct drps_plan *plan, const struct drps_slot_range *range,
                          struct drps_slot_reader **out, struct drps_err *err);
void drps_slot_reader_close(struct drps_slot_reader *reader); /* NULL-safe */

/* The slots of the next batch, of which other servers have so many rows; *out is valid until the
 * next call. DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int drps_slot_reader_next(struct drps_slot_reader *reader, size_t rows,
                          const struct drps_residual_rows **out, struct drps_err *err);

#endif
