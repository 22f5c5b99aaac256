/*
 * Published slots: where the server of a rank keeps the values that it has published of rows of
 * which workers of other ranks keep copies (published.rec, a record a round). A worker keeps a copy
 * of a row as long as the row has one of its residual slots
 * (index/plan/drps_residuals.h). The row has a
 * published slot from the first round after which a worker has a copy until the last round before
 * which one has; another row may have the slot from the next round but one on. So an epoch's
 * training begins and ends without copies.
 */
#ifndef DRPS_INDEX_PLAN_CODEC_PUBLISHED_H
#define DRPS_INDEX_PLAN_CODEC_PUBLISHED_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

#define DRPS_NOT_PUBLISHED UINT32_MAX

/* The rows that a server opens in a round, and their uses: the rows of worker 0, 1, ... */
struct drps_published_rows {
    uint32_t *slot; /* [n] or DRPS_NOT_PUBLISHED */
    uint8_t *keeps; /* [uses] 1: the worker has a copy of the row after this round */
    uint32_t *room; /* [n + the larger of n and uses] that coding needs */
    uint32_t n, uses;
};

/* Returns the bytes that a record of so many rows and uses takes at most. */
size_t drps_published_encode_bound(size_t n, size_t uses);

/* Returns the bytes written. */
size_t drps_published_encode(const struct drps_published_rows *rows, void *out);

/* Fill in slot and keeps. DRPS_E_CORRUPT: the record is malformed, or is not of so many rows, uses
 * and slots. Who has a slot when is not looked at: drps-stat --verify does that. */
DRPS_MUST_CHECK
int drps_published_decode(const void *record, size_t bytes, uint64_t slots,
                          const struct drps_published_rows *rows, struct drps_err *err);

#endif
