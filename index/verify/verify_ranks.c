/*
 * What ranks say of each other. In each round worker r has as many rows at server s as s says: each
 * side has chained its numbers of all rounds, and where these chains differ, the round is looked
 * for.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_round.h"

/* The plans of a worker and of a server that disagree. */
struct pair {
    struct drps_plan *worker, *server;
    struct steps *shares, *positions;
    uint32_t *numbers, *places;
};

/* How many rows of a round the worker says that it has at the server, and the server says. */
static int read_round(struct pair *p, uint64_t round, uint64_t *worker_out, uint64_t *server_out,
                      struct drps_err *err)
{
    const struct drps_plan_ranks *w = &p->worker->info.ranks, *s = &p->server->info.ranks;
    size_t part[DRPS_PLAN_WORKERS_MAX + 1], bytes;
    const void *record;
    int rc = drps_steps_record(p->shares, round, &record, &bytes, err);
    if (rc == 0 && (bytes < 4 || drps_list_count(record) != w->count))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "its shares are not %" PRIu32, w->count);
    if (rc == 0) rc = drps_numbers_decode(record, bytes, p->numbers, NULL, err);
    if (rc == 0) rc = drps_steps_record(p->positions, round, &record, &bytes, err);
    if (rc == 0)
        rc = drps_positions_decode(record, bytes, s->count, UINT32_MAX, s->max_round_uses,
                                   p->places, part, err);
    if (rc < 0) return rc;
    *worker_out = p->numbers[s->rank];
    *server_out = part[w->rank + 1] - part[w->rank];
    return 0;
}

static int find_round(struct pair *p, uint64_t rounds, struct drps_findings *found,
                      struct drps_err *err)
{
    uint64_t worker, server;
    for (uint64_t t = 0; t < rounds; t++) {
        int rc = read_round(p, t, &worker, &server, err);
        if (rc < 0) return rc;
        if (worker == server) continue;
        drps_findings_add(
            found,
            "%s/" DRPS_FILE_SHARES ": record %" PRIu64 ": %" PRIu64 " rows are of rank %" PRIu32
            "; the same record of %s/" DRPS_FILE_POSITIONS " has %" PRIu64,
            p->worker->dir, t, worker, p->server->info.ranks.rank, p->server->dir, server);
        return 0;
    }
    return 0;
}

static int open_pair(struct pair *p, const struct drps_plan *whole, uint32_t worker,
                     uint32_t server, struct drps_err *err)
{
    const uint64_t rounds = whole->info.batches + whole->info.eval_batches;
    int rc = drps_plan_open_rank(whole->io, whole->dir, worker, &p->worker, err);
    if (rc == 0) rc = drps_plan_open_rank(whole->io, whole->dir, server, &p->server, err);
    if (rc < 0) return rc;
    p->numbers = drps_array_new(whole->info.ranks.count, sizeof(*p->numbers));
    p->places = drps_array_new(p->server->info.ranks.max_round_uses, sizeof(*p->places));
    if (!p->numbers || !p->places)
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
    rc = drps_steps_open(whole->io, p->worker->dir, DRPS_FILE_SHARES, DRPS_KIND_SHARES, rounds,
                         VERIFY_BUFFER_BYTES, &p->shares, err);
    if (rc < 0) return rc;
    return drps_steps_open(whole->io, p->server->dir, DRPS_FILE_POSITIONS, DRPS_KIND_POSITIONS,
                           rounds, VERIFY_BUFFER_BYTES, &p->positions, err);
}

/* Two ranks say otherwise of rows that are handed on: which, each of them says round by round. */
static void add_handed(const struct drps_plan *whole, uint32_t a, uint32_t b, const char *file,
                       struct drps_findings *found)
{
    drps_findings_add(found,
                      "%s: rank %" PRIu32 "'s " DRPS_FILE_HANDED " and rank %" PRIu32
                      "'s %s disagree on which rows are handed on",
                      whole->dir, a, b, file);
}

static int check_pair(const struct drps_plan *whole, uint32_t worker, uint32_t server,
                      struct drps_findings *found, struct drps_err *err)
{
    struct pair p = {0};
    int rc = open_pair(&p, whole, worker, server, err);
    if (rc == 0) rc = find_round(&p, whole->info.batches + whole->info.eval_batches, found, err);
    drps_steps_close(p.shares);
    drps_steps_close(p.positions);
    drps_plan_close(p.worker);
    drps_plan_close(p.server);
    free(p.numbers);
    free(p.places);
    return drps_findings_take(found, rc, err);
}

int drps_verify_pairs(const struct drps_plan *whole, const struct verify_pairs *pairs,
                      struct drps_findings *found, struct drps_err *err)
{
    const uint32_t workers = whole->info.ranks.count;
    int rc = 0;
    for (uint64_t i = 0; i < (uint64_t)workers * workers && rc == 0; i++) {
        const uint32_t a = (uint32_t)(i / workers), b = (uint32_t)(i % workers);
        const uint64_t before = found->problems;
        if (pairs->shares[i] != pairs->positions[i]) rc = check_pair(whole, a, b, found, err);
        if (pairs->shares[i] != pairs->positions[i] && found->problems == before)
            add_handed(whole, a, b, DRPS_FILE_LENT, found);
        if (pairs->handed[i] != pairs->arrived[i]) add_handed(whole, a, b, DRPS_FILE_HANDED, found);
    }
    return rc;
}
