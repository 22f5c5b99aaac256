/*
 * Rounds of a rank: every row of a union is some worker's, the rank's own worker has there as many
 * as its batch has in the range, and the sums are those of plan.json.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_round.h"

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct verify_bodies bodies;
    struct steps *rows, *shares, *positions;
    uint32_t *places;    /* [max_round_uses] positions of a round */
    unsigned char *seen; /* [max_round_rows] */
    struct {
        uint64_t pulled, eval_pulled, served, eval_served, max_rows, max_uses;
    } sum;
};

/* How many of the batch's rows this rank's own server has. */
static int check_shares(struct verifier *v, uint64_t round, uint32_t *own_out, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    struct verify_pairs *pairs = v->check->pairs;
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
    const void *record;
    size_t bytes, rows = 0;
    int rc = drps_verify_body(v->check, &v->bodies, round, &rows, err);
    if (rc == 0) rc = drps_steps_record(v->shares, round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_shares_decode(record, bytes, ranks->count, rows, shares, err);
    if (rc < 0) return drps_steps_fault(v->shares, round, err);
    if (rows && !drps_rank_trains(ranks, ranks->rank)) {
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu rows on a rank without samples",
                          rows);
        return drps_steps_fault(v->shares, round, err);
    }
    *own_out = shares[ranks->rank];
    *(round < v->info->batches ? &v->sum.pulled : &v->sum.eval_pulled) += rows - *own_out;
    for (uint32_t s = 0; pairs && s < ranks->count; s++)
        drps_verify_chain(&pairs->shares[(uint64_t)ranks->rank * ranks->count + s], shares[s]);
    return 0;
}

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static void add_to_sums(struct verifier *v, uint64_t round, size_t rows, const size_t *part)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    struct verify_pairs *pairs = v->check->pairs;
    const size_t own = part[ranks->rank + 1] - part[ranks->rank];
    *(round < v->info->batches ? &v->sum.served : &v->sum.eval_served) += part[ranks->count] - own;
    raise(&v->sum.max_rows, rows);
    raise(&v->sum.max_uses, part[ranks->count]);
    for (uint32_t w = 0; pairs && w < ranks->count; w++)
        drps_verify_chain(&pairs->positions[(uint64_t)w * ranks->count + ranks->rank],
                          part[w + 1] - part[w]);
}

static int check_union(struct verifier *v, const void *record, size_t bytes, size_t rows,
                       uint32_t own, size_t part[DRPS_PLAN_WORKERS_MAX + 1], struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    size_t seen = 0;
    if (rows > ranks->max_round_rows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%zu rows, " DRPS_FILE_MANIFEST " says at most %" PRIu64, rows,
                            ranks->max_round_rows);
    int rc = drps_positions_decode(record, bytes, ranks->count, rows, ranks->max_round_uses,
                                   v->places, part, err);
    if (rc < 0) return rc;
    memset(v->seen, 0, rows);
    for (size_t i = 0; i < part[ranks->count]; i++) {
        seen += !v->seen[v->places[i]];
        v->seen[v->places[i]] = 1;
    }
    if (seen != rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "workers have %zu of the round's %zu rows", seen,
                            rows);
    if (part[ranks->rank + 1] - part[ranks->rank] == own) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%zu positions of the rank's own worker; its batch has %" PRIu32
                        " rows here",
                        part[ranks->rank + 1] - part[ranks->rank], own);
}

static int check_round(struct verifier *v, uint64_t round, struct drps_err *err)
{
    size_t part[DRPS_PLAN_WORKERS_MAX + 1], rows, bytes;
    const uint32_t *list;
    const void *record;
    uint32_t own = 0;
    int rc = check_shares(v, round, &own, err);
    if (rc == 0) rc = drps_steps_rows(v->rows, round, v->info->rows, &list, &rows, err);
    if (rc == 0) rc = drps_steps_record(v->positions, round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = check_union(v, record, bytes, rows, own, part, err);
    if (rc < 0) return drps_steps_fault(v->positions, round, err);
    add_to_sums(v, round, rows, part);
    return 0;
}

static void check_numbers(struct verifier *v)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    const struct verify_number numbers[] = {
        {"pulled_rows", v->sum.pulled, ranks->pulled_rows, 0},
        {"test_pulled_rows", v->sum.eval_pulled, ranks->eval_pulled_rows, 0},
        {"served_rows", v->sum.served, ranks->served_rows, 0},
        {"test_served_rows", v->sum.eval_served, ranks->eval_served_rows, 0},
        {"max_round_rows", v->sum.max_rows, ranks->max_round_rows, 0},
        {"max_round_uses", v->sum.max_uses, ranks->max_round_uses, 0},
    };
    drps_verify_numbers(v->check, numbers, sizeof(numbers) / sizeof(*numbers));
}

static int open_all(struct verifier *v, struct drps_err *err)
{
    v->places = drps_array_new(v->info->ranks.max_round_uses, sizeof(*v->places));
    v->seen = drps_array_new(v->info->ranks.max_round_rows, 1);
    if (!v->places || !v->seen)
        return drps_err_set(err, -ENOMEM, "no memory to verify %s", v->check->plan->dir);
    int rc = drps_verify_bodies_open(v->check, &v->bodies, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_ROWS, &v->rows, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_SHARES, &v->shares, err);
    return rc == 0 ? drps_verify_open(v->check, DRPS_FILE_POSITIONS, &v->positions, err) : rc;
}

int drps_verify_rounds(struct verify *check, struct drps_err *err)
{
    const uint64_t before = check->found->problems;
    struct verifier v = {.check = check, .info = check->info};
    int rc = open_all(&v, err);
    for (uint64_t t = 0; t < check->steps && rc == 0; t++) {
        rc = drps_findings_take(check->found, check_round(&v, t, err), err);
        drps_verify_reach(check, t + 1, check->steps);
    }
    if (rc == 0 && check->found->problems == before) check_numbers(&v);
    drps_verify_bodies_close(&v.bodies);
    drps_steps_close(v.rows);
    drps_steps_close(v.shares);
    drps_steps_close(v.positions);
    free(v.places);
    free(v.seen);
    return rc;
}
