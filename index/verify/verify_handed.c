/*
 * Rows that a rank's worker has itself: a row comes into a slot that is empty, from its server or
 * another worker, is used from a slot that holds one, and when it leaves its slot is empty; no slot
 * holds a row when training is over. Rows of the rank's own server are not among them.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_handed.h"
#include "index/plan/drps_round.h"

struct verifier {
    struct verify *check;
    const struct drps_plan_info *info;
    struct verify_bodies bodies;
    struct steps *shares, *records;
    struct drps_handed_most most;
    struct drps_handed_rows rows;
    uint32_t share[DRPS_PLAN_WORKERS_MAX]; /* of the round's batch */
    uint64_t *counts;                      /* own: [ranks] rows from or to each */
    unsigned char *held;                   /* own: [slots] */
    uint64_t held_n, highest;
    struct drps_plan_handed sum;
};

/* ---- Slots ---- */

static int fill(struct verifier *v, uint32_t slot, struct drps_err *err)
{
    if (v->held[slot])
        return drps_err_set(err, DRPS_E_CORRUPT, "a row comes into slot %" PRIu32 ", which has one",
                            slot);
    v->held[slot] = 1;
    v->held_n++;
    if (slot + UINT64_C(1) > v->highest) v->highest = slot + UINT64_C(1);
    return 0;
}

static int leave(struct verifier *v, uint32_t i, struct drps_err *err)
{
    const uint32_t slot = v->rows.slot[i];
    if (!v->held[slot])
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "a row is used from slot %" PRIu32 ", which holds none", slot);
    if (v->rows.to[i] == DRPS_HANDED_KEPT) return 0;
    v->held[slot] = 0;
    v->held_n--;
    return 0;
}

/* No two rows of a batch have one slot: those that are kept would both be there. */
static int check_distinct(struct verifier *v, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < v->rows.used_n; i++) {
        unsigned char *held = &v->held[v->rows.slot[i]];
        if (*held & 2)
            rc = drps_err_set(err, DRPS_E_CORRUPT, "two rows have slot %" PRIu32, v->rows.slot[i]);
        *held |= 2;
    }
    for (uint32_t i = 0; i < v->rows.used_n; i++)
        v->held[v->rows.slot[i]] &= 1;
    return rc;
}

static int check_slots(struct verifier *v, struct drps_err *err)
{
    const struct drps_handed_rows *rows = &v->rows;
    int rc = check_distinct(v, err);
    for (uint32_t i = 0; i < rows->arrive_n && rc == 0; i++)
        rc = fill(v, rows->arrive_slot[i], err);
    for (uint32_t i = 0; i < rows->used_n && rc == 0; i++)
        if (rows->taken[i]) rc = fill(v, rows->slot[i], err);
    for (uint32_t i = 0; i < rows->used_n && rc == 0; i++)
        rc = leave(v, i, err);
    return rc;
}

/* ---- What other ranks say of them ---- */

static void chain_counts(struct verifier *v, uint64_t *chains, uint64_t round, int arrived)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    for (uint32_t r = 0; r < ranks->count; r++) {
        const uint64_t pair = arrived ? (uint64_t)r * ranks->count + ranks->rank
                                      : (uint64_t)ranks->rank * ranks->count + r;
        if (v->counts[r]) drps_verify_chain(&chains[pair], round);
        if (v->counts[r]) drps_verify_chain(&chains[pair], v->counts[r]);
        v->counts[r] = 0;
    }
}

/* Rows go after a round, and arrive before the next. */
static void chain_workers(struct verifier *v, uint64_t round)
{
    const struct drps_handed_rows *rows = &v->rows;
    for (uint32_t i = 0; i < rows->arrive_n; i++)
        v->counts[rows->arrive_from[i]]++;
    chain_counts(v, v->check->pairs->arrived, round, 1);
    for (uint32_t i = 0; i < rows->used_n; i++)
        if (rows->to[i] < DRPS_HANDED_RETURNED) v->counts[rows->to[i]]++;
    chain_counts(v, v->check->pairs->handed, round + 1, 0);
}

/* Go on with the chain of the server that a row of the batch is of; `first`: its first row there.
 */
static void chain_server(struct verifier *v, uint64_t round, uint32_t server, uint32_t first,
                         uint32_t i)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    uint64_t *chain = &v->check->pairs->shares[(uint64_t)ranks->rank * ranks->count + server];
    const unsigned use = DRPS_LENT_AWAY | (v->rows.taken[i] ? DRPS_LENT_GIVEN : 0) |
                         (v->rows.to[i] == DRPS_HANDED_RETURNED ? DRPS_LENT_RETURNED : 0);
    drps_verify_chain(chain, round);
    drps_verify_chain(chain, (uint64_t)(v->rows.place[i] - first) << 3 | use);
}

static int check_servers(struct verifier *v, uint64_t round, struct drps_err *err)
{
    uint32_t server = 0, first = 0;
    for (uint32_t i = 0; i < v->rows.used_n; i++) {
        while (v->rows.place[i] - first >= v->share[server])
            first += v->share[server++];
        if (server == v->info->ranks.rank)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "row %" PRIu32 " of the batch is of the rank's own server",
                                v->rows.place[i]);
        if (v->check->pairs) chain_server(v, round, server, first, i);
    }
    return 0;
}

/* ---- Rounds ---- */

static void count(struct verifier *v)
{
    const struct drps_handed_rows *rows = &v->rows;
    v->sum.arrived += rows->arrive_n;
    v->sum.used += rows->used_n;
    for (uint32_t i = 0; i < rows->used_n; i++) {
        v->sum.taken += rows->taken[i];
        v->sum.returned += rows->to[i] == DRPS_HANDED_RETURNED;
        v->sum.handed += rows->to[i] < DRPS_HANDED_RETURNED;
    }
}

/* The batch's shares, and how many rows a record may name: of evaluation none. */
static int read_batch(struct verifier *v, uint64_t round, struct drps_err *err)
{
    const void *record;
    size_t bytes, rows = 0;
    int rc = drps_verify_body(v->check, &v->bodies, round, &rows, err);
    if (rc == 0) rc = drps_steps_record(v->shares, round, &record, &bytes, err);
    if (rc == 0) rc = drps_shares_decode(record, bytes, v->info->ranks.count, rows, v->share, err);
    if (rc == 0 && rows > v->info->max_batch_rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu rows", rows);
    v->most.rows = round < v->info->batches ? rows : 0;
    return rc;
}

static int check_round(struct verifier *v, uint64_t round, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = read_batch(v, round, err);
    if (rc == 0) rc = drps_steps_record(v->records, round, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_handed_decode(record, bytes, &v->most, &v->rows, err);
    if (rc == 0) rc = check_slots(v, err);
    if (rc == 0) rc = check_servers(v, round, err);
    if (rc == 0 && round + 1 == v->info->batches && v->held_n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%" PRIu64 " slots hold rows when training is over",
                          v->held_n);
    if (rc < 0) return drps_steps_fault(v->records, round, err);
    if (v->check->pairs) chain_workers(v, round);
    count(v);
    return 0;
}

static void check_numbers(struct verifier *v)
{
    const struct drps_plan_handed *h = &v->info->ranks.handed;
    const struct verify_number numbers[] = {
        {"slots", v->highest ? v->highest : 1, h->slots, 0},
        {"used", v->sum.used, h->used, 0},
        {"taken", v->sum.taken, h->taken, 0},
        {"returned", v->sum.returned, h->returned, 0},
        {"handed", v->sum.handed, h->handed, 0},
        {"arrived", v->sum.arrived, h->arrived, 0},
    };
    drps_verify_numbers(v->check, numbers, sizeof(numbers) / sizeof(*numbers));
}

static int open_all(struct verifier *v, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = &v->info->ranks;
    v->most = (struct drps_handed_most){.rows = v->info->max_batch_rows,
                                        .slots = ranks->handed.slots,
                                        .ranks = ranks->count,
                                        .rank = ranks->rank};
    v->held = calloc(ranks->handed.slots, sizeof(*v->held));
    v->counts = calloc(ranks->count, sizeof(*v->counts));
    if (!v->held || !v->counts)
        return drps_err_set(err, -ENOMEM, "no memory to verify %s", v->check->plan->dir);
    int rc = drps_handed_allocate(&v->rows, &v->most, err);
    if (rc == 0) rc = drps_verify_bodies_open(v->check, &v->bodies, err);
    if (rc == 0) rc = drps_verify_open(v->check, DRPS_FILE_SHARES, &v->shares, err);
    return rc == 0 ? drps_verify_open(v->check, DRPS_FILE_HANDED, &v->records, err) : rc;
}

int drps_verify_handed(struct verify *check, struct drps_err *err)
{
    const struct verify_sums sums = check->sums; /* bodies are added up by another check */
    const uint64_t before = check->found->problems;
    struct verifier v = {.check = check, .info = check->info};
    int rc = open_all(&v, err);
    for (uint64_t t = 0; t < check->steps && rc == 0; t++) {
        rc = drps_findings_take(check->found, check_round(&v, t, err), err);
        drps_verify_reach(check, t + 1, check->steps);
    }
    if (rc == 0 && check->found->problems == before) check_numbers(&v);
    check->sums = sums;
    drps_verify_bodies_close(&v.bodies);
    drps_steps_close(v.shares);
    drps_steps_close(v.records);
    drps_handed_free(&v.rows);
    free(v.held);
    free(v.counts);
    return rc;
}
