/*
 * Rows that a rank's server lends: each use that is not a plain one is the only one of its row in
 * the round, and not of the rank's own worker; a row that is away was given before, and returned
 * before others use it; when training is over, all rows are here.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_handed.h"
#include "index/plan/drps_round.h"

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct steps *unions, *positions, *records;
    uint32_t *places;   /* own: [max_round_uses] */
    uint32_t *times;    /* own: [max_round_rows] uses of a row in the round */
    unsigned char *out; /* own: [rows] 1: a worker has the row */
    uint64_t out_n;
    struct drps_lent_rows uses; /* own: [max_round_uses] */
    struct drps_plan_handed sum;
};

/* A round's lists. */
struct round {
    uint64_t number;
    const uint32_t *rows; /* of the union */
    size_t part[DRPS_PLAN_WORKERS_MAX + 1];
};

static int bad_use(const struct verifier *v, const struct round *r, size_t i, const char *what,
                   struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "row %" PRIu32 " of the server %s",
                        r->rows[v->places[i]], what);
}

/* A use of a row by a worker. */
static int check_use(struct verifier *v, const struct round *r, uint32_t worker, size_t i,
                     struct drps_err *err)
{
    unsigned char *out = &v->out[r->rows[v->places[i]]];
    const uint8_t use = v->uses.use[i];
    if (!use && *out && r->number < v->info->batches)
        return bad_use(v, r, i, "is used here, and a worker has it", err);
    if (!use) return 0;
    if (worker == v->info->ranks.rank || v->times[v->places[i]] > 1)
        return bad_use(v, r, i, "is lent, and used here too", err);
    if (!*out == !(use & DRPS_LENT_GIVEN))
        return bad_use(v, r, i, *out ? "is given, and not here" : "is away, and was not given",
                       err);
    *out = !(use & DRPS_LENT_RETURNED);
    v->out_n +=
        (uint64_t)((use & DRPS_LENT_GIVEN) != 0) - (uint64_t)((use & DRPS_LENT_RETURNED) != 0);
    v->sum.away++;
    v->sum.given += (use & DRPS_LENT_GIVEN) != 0;
    v->sum.regained += (use & DRPS_LENT_RETURNED) != 0;
    return 0;
}

static void chain(struct verifier *v, const struct round *r, uint32_t worker, size_t i)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    if (!v->check->pairs || !v->uses.use[i]) return;
    uint64_t *chain = &v->check->pairs->positions[(uint64_t)worker * ranks->count + ranks->rank];
    drps_verify_chain(chain, r->number);
    drps_verify_chain(chain, (uint64_t)(i - r->part[worker]) << 3 | v->uses.use[i]);
}

static int check_uses(struct verifier *v, const struct round *r, struct drps_err *err)
{
    const uint32_t ranks = v->info->ranks.count;
    int rc = 0;
    for (size_t i = 0; i < r->part[ranks]; i++)
        v->times[v->places[i]] = 0;
    for (size_t i = 0; i < r->part[ranks]; i++)
        v->times[v->places[i]]++;
    for (uint32_t w = 0; w < ranks; w++)
        for (size_t i = r->part[w]; i < r->part[w + 1] && rc == 0; i++) {
            rc = check_use(v, r, w, i, err);
            if (rc == 0) chain(v, r, w, i);
        }
    return rc;
}

static int read_round(struct verifier *v, struct round *r, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    const void *record;
    size_t rows, bytes;
    int rc = drps_steps_rows(v->unions, r->number, v->info->rows, &r->rows, &rows, err);
    if (rc == 0) rc = drps_steps_record(v->positions, r->number, &record, &bytes, err);
    if (rc == 0 && rows > ranks->max_round_rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a round of %zu rows", rows);
    if (rc == 0)
        rc = drps_positions_decode(record, bytes, ranks->count, rows, ranks->max_round_uses,
                                   v->places, r->part, err);
    v->uses.n = rc == 0 && r->number < v->info->batches ? (uint32_t)r->part[ranks->count] : 0;
    memset(v->uses.use, 0, ranks->max_round_uses);
    return rc;
}

static int check_round(struct verifier *v, uint64_t round, struct drps_err *err)
{
    struct round r = {.number = round};
    const void *record;
    size_t bytes;
    int rc = read_round(v, &r, err);
    if (rc == 0) rc = drps_steps_record(v->records, round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_lent_decode(record, bytes, &v->uses, err);
    if (rc == 0) rc = check_uses(v, &r, err);
    if (rc == 0 && round + 1 == v->info->batches && v->out_n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%" PRIu64 " rows are away when training is over",
                          v->out_n);
    return rc < 0 ? drps_steps_fault(v->records, round, err) : 0;
}

static void check_numbers(struct verifier *v)
{
    const struct drps_plan_handed *h = &v->info->ranks.handed;
    const struct verify_number numbers[] = {
        {"away", v->sum.away, h->away, 0},
        {"given", v->sum.given, h->given, 0},
        {"regained", v->sum.regained, h->regained, 0},
    };
    drps_verify_numbers(v->check, numbers, sizeof(numbers) / sizeof(*numbers));
}

static int open_all(struct verifier *v, struct drps_err *err)
{
    const uint64_t uses = v->info->ranks.max_round_uses, rows = v->info->ranks.max_round_rows;
    v->places = drps_array_new(uses, sizeof(*v->places));
    v->times = drps_array_new(rows, sizeof(*v->times));
    v->out = calloc(v->info->rows + 1, sizeof(*v->out));
    v->uses.use = drps_array_new(uses, sizeof(*v->uses.use));
    v->uses.room = drps_array_new(2 * uses, sizeof(*v->uses.room));
    if (!v->places || !v->times || !v->out || !v->uses.use || !v->uses.room)
        return drps_err_set(err, -ENOMEM, "no memory to verify %s", v->check->plan->dir);
    int rc = drps_verify_open(v->check, DRPS_FILE_ROWS, &v->unions, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_POSITIONS, &v->positions, err);
    return rc == 0 ? drps_verify_open(v->check, DRPS_FILE_LENT, &v->records, err) : rc;
}

int drps_verify_lent(struct verify *check, struct drps_err *err)
{
    const uint64_t before = check->found->problems;
    struct verifier v = {.check = check, .info = check->info};
    int rc = open_all(&v, err);
    for (uint64_t t = 0; t < check->steps && rc == 0; t++) {
        rc = drps_findings_take(check->found, check_round(&v, t, err), err);
        drps_verify_reach(check, t + 1, check->steps);
    }
    if (rc == 0 && check->found->problems == before) check_numbers(&v);
    drps_steps_close(v.unions);
    drps_steps_close(v.positions);
    drps_steps_close(v.records);
    free(v.places);
    free(v.times);
    free(v.out);
    free(v.uses.use);
    free(v.uses.room);
    return rc;
}
