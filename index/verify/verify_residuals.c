/*
 * Residual slots of a rank's worker: a record has the batch's rows that other servers have, no two
 * of them one slot, a slot is some row's from a push that holds back until one that does not, and
 * no slot holds anything when training is over. Where slots are the rows' own each row has one, and
 * a slot that was given up is no other row's.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_residuals.h"
#include "index/plan/drps_round.h"

enum { EMPTY, HELD, GIVEN_UP }; /* GIVEN_UP where slots are the rows' own */

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct verify_bodies bodies;
    struct steps *shares, *residuals;
    struct drps_residual_rows rows; /* [max_batch_rows] */
    unsigned char *held;            /* own: [slots] of these values */
    uint32_t *seen;                 /* own: [slots] 1 + the last round that had the slot */
    uint64_t held_n, most;
};

/* The batch's rows that other servers have; of evaluation none. */
static int count_rows(struct verifier *v, uint64_t round, uint32_t *out, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
    const void *record;
    size_t bytes, rows = 0;
    int rc = drps_verify_body(v->check, &v->bodies, round, &rows, err);
    if (rc == 0) rc = drps_steps_record(v->shares, round, &record, &bytes, err);
    if (rc == 0) rc = drps_shares_decode(record, bytes, ranks->count, rows, shares, err);
    if (rc == 0) *out = round < v->info->batches ? (uint32_t)rows - shares[ranks->rank] : 0;
    return rc;
}

static void count_slot(struct verifier *v, uint32_t slot)
{
    if (slot + UINT64_C(1) > v->most) v->most = slot + UINT64_C(1);
}

static int is_anothers(const struct verifier *v, uint32_t slot, struct drps_err *err)
{
    if (v->held[slot] != GIVEN_UP) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "slot %" PRIu32 " was given up, and a row has it that is another", slot);
}

/* A row gives its slot up, which it had, unless the slot is its own and this its only use. */
static int give_up(struct verifier *v, uint32_t slot, struct drps_err *err)
{
    const int own = v->info->ranks.own_slots;
    int rc = is_anothers(v, slot, err);
    if (rc < 0) return rc;
    if (!own && v->held[slot] != HELD)
        return drps_err_set(err, DRPS_E_CORRUPT, "slot %" PRIu32 " holds nothing, and is given up",
                            slot);
    v->held_n -= v->held[slot] == HELD;
    v->held[slot] = own ? GIVEN_UP : EMPTY;
    count_slot(v, slot);
    return 0;
}

/* A row has the slot from now on; no other row of the batch does. */
static int keep(struct verifier *v, uint32_t slot, uint64_t round, struct drps_err *err)
{
    int rc = is_anothers(v, slot, err);
    if (rc < 0) return rc;
    if (v->seen[slot] == round + 1)
        return drps_err_set(err, DRPS_E_CORRUPT, "two rows keep slot %" PRIu32, slot);
    v->seen[slot] = (uint32_t)(round + 1);
    v->held_n += v->held[slot] != HELD;
    v->held[slot] = HELD;
    count_slot(v, slot);
    return 0;
}

static int check_slots(struct verifier *v, uint64_t round, struct drps_err *err)
{
    const struct drps_residual_rows *rows = &v->rows;
    int rc = 0;
    for (uint32_t i = 0; i < rows->n && rc == 0; i++)
        if (rows->slot[i] == DRPS_NO_SLOT && v->info->ranks.own_slots)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "row %" PRIu32 " has no slot of its own", i);
        else if (rows->whole[i] && rows->slot[i] != DRPS_NO_SLOT)
            rc = give_up(v, rows->slot[i], err);
    for (uint32_t i = 0; i < rows->n && rc == 0; i++)
        if (!rows->whole[i]) rc = keep(v, rows->slot[i], round, err);
    return rc;
}

static int check_round(struct verifier *v, uint64_t round, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = count_rows(v, round, &v->rows.n, err);
    if (rc == 0) rc = drps_steps_record(v->residuals, round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_residuals_decode(record, bytes, v->info->ranks.residual_slots, &v->rows, err);
    if (rc == 0) rc = check_slots(v, round, err);
    if (rc == 0 && round + 1 == v->info->batches && v->held_n)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%" PRIu64 " slots are still held when training is over", v->held_n);
    return rc < 0 ? drps_steps_fault(v->residuals, round, err) : 0;
}

static int open_all(struct verifier *v, struct drps_err *err)
{
    const uint64_t rows = v->info->max_batch_rows, slots = v->info->ranks.residual_slots;
    v->rows.slot = drps_array_new(rows, sizeof(*v->rows.slot));
    v->rows.whole = drps_array_new(rows, sizeof(*v->rows.whole));
    v->rows.room = drps_array_new(2 * rows, sizeof(*v->rows.room));
    v->held = calloc(slots, sizeof(*v->held));
    v->seen = calloc(slots, sizeof(*v->seen));
    if (!v->rows.slot || !v->rows.whole || !v->rows.room || !v->held || !v->seen)
        return drps_err_set(err, -ENOMEM, "no memory to verify %s", v->check->plan->dir);
    int rc = drps_verify_bodies_open(v->check, &v->bodies, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_SHARES, &v->shares, err);
    return rc == 0 ? drps_verify_open(v->check, DRPS_FILE_RESIDUALS, &v->residuals, err) : rc;
}

int drps_verify_residuals(struct verify *check, struct drps_err *err)
{
    const struct verify_sums sums = check->sums; /* bodies are added up by another check */
    const uint64_t before = check->found->problems;
    struct verifier v = {.check = check, .info = check->info};
    int rc = open_all(&v, err);
    for (uint64_t t = 0; t < check->steps && rc == 0; t++) {
        rc = drps_findings_take(check->found, check_round(&v, t, err), err);
        drps_verify_reach(check, t + 1, check->steps);
    }
    const struct verify_number slots = {"residual_slots", v.most ? v.most : 1,
                                        v.info->ranks.residual_slots, 0};
    if (rc == 0 && check->found->problems == before) drps_verify_numbers(check, &slots, 1);
    check->sums = sums;
    drps_verify_bodies_close(&v.bodies);
    drps_steps_close(v.shares);
    drps_steps_close(v.residuals);
    free(v.rows.slot);
    free(v.rows.whole);
    free(v.rows.room);
    free(v.held);
    free(v.seen);
    return rc;
}
