/*
 * Residual slots: where the worker of a rank keeps what its filtered pushes hold back of a row
 * (residuals.rec, a record a round). Rows have no ids there: the plan gives each of the batch's
 * rows that other servers have a slot of the worker's memory. A row without a slot is sent whole.
 * A row whose use is the last one before its slot is another row's, or the last one of the epoch,
 * is sent whole with the rest that the slot holds; then the slot is empty, and another row of the
 * same batch may have it. So an epoch's training begins and ends with empty slots.
 *
 * Where slots are the rows' own (drps_plan_ranks.own_slots) each row has one, the same in all
 * batches and no other row's. Then pushes may leave it filled until a later epoch.
 *
 * Where pulls are filtered the slot is also that of a copy of the row's parameters, from a use that
 * keeps the slot until the one that gives it up.
 */
#ifndef DRPS_INDEX_PLAN_RESIDUALS_H
#define DRPS_INDEX_PLAN_RESIDUALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

#define DRPS_NO_SLOT UINT32_MAX

/* The rows of a batch that other servers have, in their order. */
struct drps_residual_rows {
    uint32_t *slot; /* [n] or DRPS_NO_SLOT */
    uint8_t *whole; /* [n] 1: the row is sent whole, and its slot is empty then */
    uint32_t *room; /* [2 n] that coding needs */
    uint32_t n;
};

/* Returns the bytes that a record of n rows takes at most. */
size_t drps_residuals_encode_bound(size_t n);

/* Returns the bytes written. Rows without a slot must be whole. */
size_t drps_residuals_encode(const struct drps_residual_rows *rows, void *out);

/* Fill in slot and whole. DRPS_E_CORRUPT: the record is malformed, or is not of so many rows and
 * slots. Who has a slot when is not looked at: drps-stat --verify does that. */
DRPS_MUST_CHECK
int drps_residuals_decode(const void *record, size_t bytes, uint64_t slots,
                          const struct drps_residual_rows *rows, struct drps_err *err);

#endif
