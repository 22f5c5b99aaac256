/*
 * Published slots of a rank's server: a slot is one row's from the first copy that a worker of
 * another rank keeps until the last, and then nobody's for a round, and when training is over
 * nobody has a copy.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/codec/drps_published.h"
#include "index/plan/drps_round.h"

/* A slot, between two rounds. */
struct published_slot {
    uint32_t row;     /* that has it; DRPS_NOT_PUBLISHED: none */
    uint32_t copies;  /* of it, that workers have */
    uint64_t free_at; /* the first round in which another row may have it */
};

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct steps *lists, *positions, *published;
    struct drps_published_rows rows; /* [max_round_rows], [max_round_uses] */
    uint32_t *places;                /* own: [max_round_uses] */
    size_t part[DRPS_PLAN_WORKERS_MAX + 1];
    struct published_slot *slot; /* own: [slots] */
    uint32_t *slot_of;           /* own: [rows] or DRPS_NOT_PUBLISHED */
    uint64_t *has;               /* own: a bit for each slot and rank */
    uint64_t copies, most;
};

static int decode(struct verifier *v, uint64_t round, const uint32_t **ids_out,
                  struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    const void *record;
    size_t bytes, n = 0;
    int rc = drps_steps_rows(v->lists, round, v->info->rows, ids_out, &n, err);
    if (rc == 0 && n > ranks->max_round_rows) rc = drps_err_set(err, DRPS_E_CORRUPT, "%zu rows", n);
    if (rc == 0) rc = drps_steps_record(v->positions, round, &record, &bytes, err);
    if (rc == 0)
        rc = drps_positions_decode(record, bytes, ranks->count, n, ranks->max_round_uses, v->places,
                                   v->part, err);
    if (rc == 0) rc = drps_steps_record(v->published, round, &record, &bytes, err);
    if (rc < 0) return rc;
    const int training = round < v->info->batches;
    v->rows.n = training ? (uint32_t)n : 0;
    v->rows.uses = training ? (uint32_t)v->part[ranks->count] : 0;
    return drps_published_decode(record, bytes, ranks->published_slots, &v->rows, err);
}

/* A row has the slot that it had, or one that is free. */
static int take(struct verifier *v, uint64_t round, uint32_t row, uint32_t slot,
                struct drps_err *err)
{
    if (v->slot_of[row] != DRPS_NOT_PUBLISHED && v->slot_of[row] != slot)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "row %" PRIu32 " has a published slot, and comes without it", row);
    if (slot == DRPS_NOT_PUBLISHED) return 0;
    struct published_slot *s = &v->slot[slot];
    if (s->row != row && (s->row != DRPS_NOT_PUBLISHED || round < s->free_at))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "published slot %" PRIu32 " is another row's still", slot);
    s->row = row;
    v->slot_of[row] = slot;
    if (slot + UINT64_C(1) > v->most) v->most = slot + UINT64_C(1);
    return 0;
}

static int note(struct verifier *v, uint32_t worker, uint32_t slot, int keeps, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    if (slot == DRPS_NOT_PUBLISHED || worker == ranks->rank) {
        if (!keeps) return 0;
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a copy of a row of worker %" PRIu32 " that has no published slot",
                            worker);
    }
    const uint64_t bit = (uint64_t)slot * ranks->count + worker, one = UINT64_C(1) << bit % 64;
    const int had = (v->has[bit / 64] & one) != 0;
    v->has[bit / 64] = keeps ? v->has[bit / 64] | one : v->has[bit / 64] & ~one;
    v->slot[slot].copies += (uint32_t)keeps - (uint32_t)had;
    v->copies += (uint64_t)keeps - (uint64_t)had;
    return 0;
}

static void give_up(struct verifier *v, uint64_t round, uint32_t row, uint32_t slot)
{
    if (slot == DRPS_NOT_PUBLISHED || v->slot[slot].copies) return;
    v->slot[slot] = (struct published_slot){.row = DRPS_NOT_PUBLISHED, .free_at = round + 2};
    v->slot_of[row] = DRPS_NOT_PUBLISHED;
}

static int check_slots(struct verifier *v, uint64_t round, const uint32_t *ids,
                       struct drps_err *err)
{
    const struct drps_published_rows *rows = &v->rows;
    int rc = 0;
    for (uint32_t i = 0; i < rows->n && rc == 0; i++)
        rc = take(v, round, ids[i], rows->slot[i], err);
    for (uint32_t w = 0; rows->uses && w < v->info->ranks.count; w++)
        for (size_t i = v->part[w]; i < v->part[w + 1] && rc == 0; i++)
            rc = note(v, w, rows->slot[v->places[i]], rows->keeps[i], err);
    for (uint32_t i = 0; i < rows->n && rc == 0; i++)
        give_up(v, round, ids[i], rows->slot[i]);
    return rc;
}

static int check_round(struct verifier *v, uint64_t round, struct drps_err *err)
{
    const uint32_t *ids;
    int rc = decode(v, round, &ids, err);
    if (rc == 0) rc = check_slots(v, round, ids, err);
    if (rc == 0 && round + 1 == v->info->batches && v->copies)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "workers have %" PRIu64 " copies still when training is over", v->copies);
    return rc < 0 ? drps_steps_fault(v->published, round, err) : 0;
}

static int open_all(struct verifier *v, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    const uint64_t rows = ranks->max_round_rows, uses = ranks->max_round_uses;
    const uint64_t slots = ranks->published_slots;
    v->rows.slot = drps_array_new(rows, sizeof(*v->rows.slot));
    v->rows.keeps = drps_array_new(uses, sizeof(*v->rows.keeps));
    v->rows.room = drps_array_new(rows + (rows > uses ? rows : uses), sizeof(*v->rows.room));
    v->places = drps_array_new(uses, sizeof(*v->places));
    v->slot = drps_array_new(slots, sizeof(*v->slot));
    v->slot_of = drps_array_new(v->info->rows, sizeof(*v->slot_of));
    v->has = calloc(slots * ranks->count / 64 + 1, sizeof(*v->has));
    if (!v->rows.slot || !v->rows.keeps || !v->rows.room || !v->places || !v->slot || !v->slot_of ||
        !v->has)
        return drps_err_set(err, -ENOMEM, "no memory to verify %s", v->check->plan->dir);
    for (uint64_t i = 0; i < slots; i++)
        v->slot[i] = (struct published_slot){.row = DRPS_NOT_PUBLISHED};
    memset(v->slot_of, 0xff, v->info->rows * sizeof(*v->slot_of));
    int rc = drps_verify_open(v->check, DRPS_FILE_ROWS, &v->lists, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_POSITIONS, &v->positions, err);
    return rc == 0 ? drps_verify_open(v->check, DRPS_FILE_PUBLISHED, &v->published, err) : rc;
}

int drps_verify_published(struct verify *check, struct drps_err *err)
{
    const uint64_t before = check->found->problems;
    struct verifier v = {.check = check, .info = check->info};
    int rc = open_all(&v, err);
    for (uint64_t t = 0; t < check->steps && rc == 0; t++) {
        rc = drps_findings_take(check->found, check_round(&v, t, err), err);
        drps_verify_reach(check, t + 1, check->steps);
    }
    const struct verify_number slots = {"published_slots", v.most ? v.most : 1,
                                        v.info->ranks.published_slots, 0};
    if (rc == 0 && check->found->problems == before) drps_verify_numbers(check, &slots, 1);
    drps_steps_close(v.lists);
    drps_steps_close(v.positions);
    drps_steps_close(v.published);
    free(v.rows.slot);
    free(v.rows.keeps);
    free(v.rows.room);
    free(v.places);
    free(v.slot);
    free(v.slot_of);
    free(v.has);
    return rc;
}
