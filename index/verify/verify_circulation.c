/* Rows that circulate: what departs from each rank is what arrives at the one before it, step by
 * step, as numbers of the whole plan. */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "index/plan/drps_batch.h"

/* The steps of a rank that hand rows over in one direction. */
struct hands {
    struct drps_plan *part;
    struct steps *bodies, *lists;
    uint32_t direction;
    uint64_t step; /* the next one to look at */
    uint32_t flags;
    const uint32_t *rows; /* of the step found last: [n] */
    size_t n;
};

static uint64_t steps_of(const struct hands *h)
{
    return h->part->info.batches + h->part->info.eval_batches;
}

static int hands_open(struct hands *h, const struct drps_plan *whole, uint32_t rank,
                      uint32_t direction, struct drps_err *err)
{
    h->direction = direction;
    int rc = drps_plan_open_rank(whole->io, whole->dir, rank, &h->part, err);
    if (rc == 0)
        rc = drps_steps_open(whole->io, h->part->dir, DRPS_FILE_DATA, DRPS_KIND_DATA, steps_of(h),
                             VERIFY_BUFFER_BYTES, &h->bodies, err);
    return rc < 0 ? rc
                  : drps_steps_open(whole->io, h->part->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                                    steps_of(h), VERIFY_BUFFER_BYTES, &h->lists, err);
}

static void hands_close(struct hands *h)
{
    drps_steps_close(h->bodies);
    drps_steps_close(h->lists);
    drps_plan_close(h->part);
}

/* Find the next step; h->n is 0 where there is none. */
static int hands_next(struct hands *h, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = 0;
    for (h->n = 0; h->step < steps_of(h) && !h->n && rc == 0; h->step++) {
        rc = drps_steps_record(h->bodies, h->step, &record, &bytes, err);
        h->flags = rc == 0 ? drps_batch_hand_over(record, bytes) : 0;
        if (h->flags & h->direction)
            rc = drps_steps_rows(h->lists, h->step, h->part->info.rows, &h->rows, &h->n, err);
    }
    return rc;
}

static int same_rows(const struct hands *from, const struct hands *to)
{
    const uint32_t what = DRPS_HANDS_LAST | DRPS_HANDS_PARAMETERS;
    if (!from->n && !to->n) return 1;
    if (from->n != to->n || (from->flags & what) != (to->flags & what)) return 0;
    for (size_t i = 0; i < from->n; i++)
        if (drps_plan_placed_id(&from->part->info.ranks, from->rows[i]) !=
            drps_plan_placed_id(&to->part->info.ranks, to->rows[i]))
            return 0;
    return 1;
}

static int compare(struct hands *from, struct hands *to, struct drps_findings *found,
                   struct drps_err *err)
{
    int rc;
    do {
        rc = hands_next(from, err);
        if (rc == 0) rc = hands_next(to, err);
        if (rc == 0 && same_rows(from, to)) continue;
        if (rc == 0)
            drps_findings_add(found,
                              "%s: step %" PRIu64 " hands over other rows than arrive in step "
                              "%" PRIu64 " of %s",
                              from->part->dir, from->step - 1, to->step - 1, to->part->dir);
        return rc;
    } while (from->n);
    return rc;
}

int drps_verify_circulation(const struct drps_plan *whole, struct drps_findings *found,
                            struct drps_err *err)
{
    const uint32_t workers = whole->info.ranks.count;
    int rc = 0;
    for (uint32_t w = 0; w < workers && rc == 0; w++) {
        struct hands from = {0}, to = {0};
        rc = hands_open(&from, whole, w, DRPS_DEPARTS, err);
        if (rc == 0) rc = hands_open(&to, whole, (w + workers - 1) % workers, DRPS_ARRIVES, err);
        if (rc == 0) rc = compare(&from, &to, found, err);
        hands_close(&from);
        hands_close(&to);
        rc = drps_findings_take(found, rc, err);
    }
    return rc;
}
