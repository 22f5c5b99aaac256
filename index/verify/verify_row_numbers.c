/*
 * Row numbers of a rank's worker: as many as its batch has rows, and those that its own server has
 * are the ones that this server opens for it.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_round.h"

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct verify_bodies bodies;
    struct steps *rows, *shares, *positions, *numbers;
    uint32_t *places; /* own: [max_round_uses] positions of a round */
    size_t part[DRPS_PLAN_WORKERS_MAX + 1];
};

/* Where in the batch's rows those of the rank's own server begin, and how many they are. */
static int find_own(struct verifier *v, uint64_t round, size_t rows, size_t *first_out,
                    uint32_t *own_out, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(v->shares, round, &record, &bytes, err);
    if (rc == 0) rc = drps_shares_decode(record, bytes, ranks->count, rows, shares, err);
    if (rc < 0) return rc;
    *first_out = 0;
    for (uint32_t s = 0; s < ranks->rank; s++)
        *first_out += shares[s];
    *own_out = shares[ranks->rank];
    return 0;
}

/* The places of the own worker's rows in the round's list, v->part says where. */
static int find_places(struct verifier *v, uint64_t round, const uint32_t **list_out,
                       struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    const void *record;
    size_t bytes, n;
    int rc = drps_steps_rows(v->rows, round, v->info->rows, list_out, &n, err);
    if (rc == 0) rc = drps_steps_record(v->positions, round, &record, &bytes, err);
    return rc < 0 ? rc
                  : drps_positions_decode(record, bytes, ranks->count, n, ranks->max_round_uses,
                                          v->places, v->part, err);
}

static int check_own(const struct verifier *v, const uint32_t *numbers, uint32_t own,
                     const uint32_t *list, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    const uint32_t *places = v->places + v->part[ranks->rank];
    if (v->part[ranks->rank + 1] - v->part[ranks->rank] != own)
        return 0; /* another check says so */
    for (uint32_t i = 0; i < own; i++)
        if (numbers[i] != ranks->first_row + list[places[i]])
            return drps_err_set(
                err, DRPS_E_CORRUPT, "the batch has row %u, and the server opens row %llu for it",
                numbers[i], (unsigned long long)(ranks->first_row + list[places[i]]));
    return 0;
}

static int check_round(struct verifier *v, uint64_t round, struct drps_err *err)
{
    const uint32_t *numbers, *list;
    uint32_t own = 0;
    size_t rows = 0, n, first = 0;
    int rc = drps_verify_body(v->check, &v->bodies, round, &rows, err);
    if (rc == 0) rc = find_own(v, round, rows, &first, &own, err);
    if (rc == 0) rc = find_places(v, round, &list, err);
    if (rc == 0) rc = drps_steps_rows(v->numbers, round, UINT32_MAX, &numbers, &n, err);
    if (rc < 0) return rc;
    rc = n == rows ? check_own(v, numbers + first, own, list, err)
                   : drps_err_set(err, DRPS_E_CORRUPT, "%zu rows; the batch has %zu", n, rows);
    return rc < 0 ? drps_steps_fault(v->numbers, round, err) : 0;
}

static int open_all(struct verifier *v, struct drps_err *err)
{
    const uint64_t uses = v->info->ranks.max_round_uses;
    v->places = drps_array_new(uses, sizeof(*v->places));
    if (!v->places)
        return drps_err_set(err, -ENOMEM, "no memory to verify %s", v->check->plan->dir);
    int rc = drps_verify_bodies_open(v->check, &v->bodies, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_ROWS, &v->rows, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_SHARES, &v->shares, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_POSITIONS, &v->positions, err);
    return rc == 0 ? drps_verify_open(v->check, DRPS_FILE_NUMBERS, &v->numbers, err) : rc;
}

int drps_verify_row_numbers(struct verify *check, struct drps_err *err)
{
    const struct verify_sums sums = check->sums; /* bodies are added up by another check */
    struct verifier v = {.check = check, .info = check->info};
    int rc = open_all(&v, err);
    for (uint64_t t = 0; t < check->steps && rc == 0; t++) {
        rc = drps_findings_take(check->found, check_round(&v, t, err), err);
        drps_verify_reach(check, t + 1, check->steps);
    }
    check->sums = sums;
    drps_verify_bodies_close(&v.bodies);
    drps_steps_close(v.rows);
    drps_steps_close(v.shares);
    drps_steps_close(v.positions);
    drps_steps_close(v.numbers);
    free(v.places);
    return rc;
}
