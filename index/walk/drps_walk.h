/* A plan's batches, decoded one after another, with their rows. Shared inside index/ and engine/.
 */
#ifndef DRPS_INDEX_WALK_WALK_H
#define DRPS_INDEX_WALK_WALK_H

#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_steps.h"

struct drps_walk {
    const struct drps_plan *plan; /* borrowed */
    struct steps *data, *rows;    /* own */
    void *room;                   /* own: of a plain body */
};

enum { DRPS_WALK_BUFFER_BYTES = 1 << 20 };

/* Bytes that a walk takes. */
static inline uint64_t drps_walk_memory(const struct drps_plan_info *info)
{
    return 2 * (uint64_t)DRPS_WALK_BUFFER_BYTES + info->max_body_bytes +
           info->max_batch_rows * sizeof(uint32_t);
}

/* DRPS_E_CONFIG: the plan is dealt to several workers; close it in either case. */
DRPS_MUST_CHECK
int drps_walk_open(struct drps_walk *w, const struct drps_plan *plan, struct drps_err *err);
void drps_walk_close(struct drps_walk *w); /* zeroed too */

/* Decode batch `step`: rows_out[i] is the placed id of its row i. All is borrowed until the next
 * call. DRPS_E_CORRUPT names file and record. */
DRPS_MUST_CHECK
int drps_walk_read(struct drps_walk *w, uint64_t step, struct drps_batch *b,
                   const uint32_t **rows_out, struct drps_err *err);

#endif
