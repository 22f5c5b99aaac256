/*
 * One pass over all batches a rank: so only its own four files are open, however many ranks there
 * are.
 */
#include "index/ranks/drps_split.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "base/drps_find.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_round.h"
#include "index/plan/drps_steps.h"

struct splitting {
    const struct split_job *job;
    uint32_t rank, ranks;
    struct steps *lists, *bodies;
    struct drps_recwriter *out[DRPS_ROUND_FILES];
    struct drps_recwriter *numbers; /* of numbers.rec; NULL: there is none */
    struct drps_plan_ranks *counts;

    uint64_t *uses, *aux; /* [uses_n] of the round: local id << 32 | worker */
    uint32_t *ids;        /* [ids_n] union of them */
    uint32_t *positions;  /* [uses_n] workers' lists, one after another */
    size_t uses_n, uses_cap, aux_cap, ids_cap, positions_cap;
    size_t part[DRPS_PLAN_WORKERS_MAX + 1]; /* where each worker's begins */
    uint64_t *seen;                         /* a bit for each of the rank's rows */
    unsigned char *packed;
    size_t packed_cap;
};

static int add_record(struct splitting *d, int file, size_t bytes, struct drps_err *err)
{
    const struct drps_piece piece = {d->packed, bytes};
    return drps_recwriter_add(d->out[file], &piece, 1, err);
}

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for the rows of a round");
}

/* ---- The worker's part ---- */

/* How many of the batch's rows each rank has. */
static int write_shares(struct splitting *d, const uint32_t *rows, size_t n, struct drps_err *err)
{
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
    const uint32_t *first = d->job->owners->first;
    size_t at = 0;
    for (uint32_t s = 0; s < d->ranks; s++) {
        const size_t end = drps_count_below(rows, n, first[s + 1]);
        shares[s] = (uint32_t)(end - at);
        at = end;
    }
    if (drps_array_reserve(&d->packed, &d->packed_cap, drps_list_encode_bound(d->ranks), 1))
        return no_memory(err);
    return add_record(d, DRPS_ROUND_SHARES, drps_numbers_encode(shares, d->ranks, d->packed), err);
}

/* Which rows of the model they are, for a worker that has all of them. */
static int write_numbers(struct splitting *d, const uint32_t *rows, size_t n, struct drps_err *err)
{
    if (!d->numbers) return 0;
    if (drps_array_reserve(&d->packed, &d->packed_cap, drps_list_encode_bound(n), 1))
        return no_memory(err);
    const struct drps_piece piece = {d->packed, drps_list_encode(rows, n, d->packed)};
    return drps_recwriter_add(d->numbers, &piece, 1, err);
}

static int write_body(struct splitting *d, uint64_t batch, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(d->bodies, batch, &record, &bytes, err);
    const struct drps_piece piece = {record, bytes};
    return rc < 0 ? rc : drps_recwriter_add(d->out[DRPS_ROUND_DATA], &piece, 1, err);
}

/* The last round may leave a worker without samples; a rank without a worker has none. */
static int write_empty_body(struct splitting *d, struct drps_err *err)
{
    static const float none[1];
    static const uint16_t nothing[1];
    const struct drps_batch b = {.labels = none, .local16 = nothing};
    struct drps_batch_pieces body;
    drps_batch_encode(&b, &body);
    return drps_recwriter_add(d->out[DRPS_ROUND_DATA], body.pieces, body.n, err);
}

/* ---- The server's part ---- */

/* The part of a worker's row list that this server has, as ids of its own. */
static int add_uses(struct splitting *d, uint32_t worker, const uint32_t *rows, size_t n,
                    struct drps_err *err)
{
    const uint32_t first = d->job->owners->first[d->rank];
    const size_t from = drps_count_below(rows, n, first);
    const size_t to = drps_count_below(rows, n, d->job->owners->first[d->rank + 1]);
    if (drps_array_reserve(&d->uses, &d->uses_cap, d->uses_n + to - from, sizeof(*d->uses)))
        return no_memory(err);
    for (size_t i = from; i < to; i++)
        d->uses[d->uses_n++] = (uint64_t)(rows[i] - first) << 32 | worker;
    d->part[worker + 1] = d->uses_n;
    return 0;
}

/* The union of the uses, and where in it each worker's are. Returns its length. */
static size_t unite(struct splitting *d)
{
    size_t at[DRPS_PLAN_WORKERS_MAX];
    size_t n = 0;
    memcpy(at, d->part, d->ranks * sizeof(*at));
    drps_sort_keyed(d->uses, d->aux, d->uses_n);
    for (size_t i = 0; i < d->uses_n; i++) {
        const uint32_t id = (uint32_t)(d->uses[i] >> 32);
        if (!n || d->ids[n - 1] != id) d->ids[n++] = id;
        d->positions[at[(uint32_t)d->uses[i]]++] = (uint32_t)(n - 1);
    }
    return n;
}

static int write_union(struct splitting *d, struct drps_err *err)
{
    if (drps_array_reserve(&d->aux, &d->aux_cap, d->uses_n, sizeof(*d->aux)) ||
        drps_array_reserve(&d->ids, &d->ids_cap, d->uses_n, sizeof(*d->ids)) ||
        drps_array_reserve(&d->positions, &d->positions_cap, d->uses_n, sizeof(*d->positions)) ||
        drps_array_reserve(&d->packed, &d->packed_cap,
                           drps_list_encode_bound(d->uses_n) + d->ranks * drps_list_encode_bound(0),
                           1))
        return no_memory(err);
    const size_t n = unite(d);
    if (n > d->counts->max_round_rows) d->counts->max_round_rows = n;
    if (d->uses_n > d->counts->max_round_uses) d->counts->max_round_uses = d->uses_n;
    int rc = add_record(d, DRPS_ROUND_ROWS, drps_list_encode(d->ids, n, d->packed), err);
    size_t bytes = 0;
    for (uint32_t w = 0; w < d->ranks; w++)
        bytes += drps_list_encode(d->positions + d->part[w], d->part[w + 1] - d->part[w],
                                  d->packed + bytes);
    return rc < 0 ? rc : add_record(d, DRPS_ROUND_POSITIONS, bytes, err);
}

/* ---- Rows that nobody has trained ---- */

static int is_seen(const struct splitting *d, uint64_t use)
{
    return d->seen[use >> 38] >> (use >> 32) % 64 & 1;
}

/* The rows of a training round that no round before has, as workers of other ranks pull them. */
static void count_fresh(struct splitting *d)
{
    for (size_t i = 0; i < d->uses_n; i++)
        *d->job->fresh_rows += (uint32_t)d->uses[i] != d->rank && !is_seen(d, d->uses[i]);
    for (size_t i = 0; i < d->uses_n; i++)
        d->seen[d->uses[i] >> 38] |= UINT64_C(1) << (d->uses[i] >> 32) % 64;
}

/* ---- Rounds ---- */

/* What goes over the network: rows that another rank's worker pulls here, and that this worker
 * pulls there. */
static void count_links(struct splitting *d, uint32_t worker, size_t n, int evaluation)
{
    struct drps_plan_ranks *c = d->counts;
    const uint64_t here = d->part[worker + 1] - d->part[worker];
    if (worker == d->rank && !evaluation) *d->job->batch_rows += n;
    if (worker == d->rank)
        *(evaluation ? &c->eval_pulled_rows : &c->pulled_rows) += n - here;
    else
        *(evaluation ? &c->eval_served_rows : &c->served_rows) += here;
}

/* The batch of a rank in the round of `first`; `end` and more: it has none. */
static uint64_t batch_of(const struct splitting *d, uint64_t first, uint64_t end, uint32_t rank)
{
    const struct drps_plan_ranks *ranks = d->job->ranks;
    return drps_rank_trains(ranks, rank) ? first + rank - ranks->first_worker : end;
}

static int split_round(struct splitting *d, uint64_t first_batch, uint64_t end, int evaluation,
                       struct drps_err *err)
{
    const uint32_t all = d->job->owners->first[d->ranks];
    int rc = 0;
    d->uses_n = 0;
    for (uint32_t w = 0; w < d->ranks && rc == 0; w++) {
        const uint32_t *rows = NULL;
        size_t n = 0;
        const uint64_t batch = batch_of(d, first_batch, end, w);
        const int there = batch < end;
        if (there) rc = drps_steps_rows(d->lists, batch, all, &rows, &n, err);
        if (rc == 0) rc = add_uses(d, w, rows, n, err);
        if (rc == 0) count_links(d, w, n, evaluation);
        if (rc < 0 || w != d->rank) continue;
        rc = write_shares(d, rows, n, err);
        if (rc == 0) rc = write_numbers(d, rows, n, err);
        if (rc == 0) rc = there ? write_body(d, batch, err) : write_empty_body(d, err);
    }
    if (rc == 0 && !evaluation) count_fresh(d);
    return rc < 0 ? rc : write_union(d, err);
}

static int split_rounds_of(struct splitting *d, uint64_t first, uint64_t batches, int evaluation,
                           struct drps_err *err)
{
    int rc = 0;
    for (uint64_t k = 0; k < batches && rc == 0; k += d->job->ranks->workers)
        rc = split_round(d, first + k, first + batches, evaluation, err);
    return rc;
}

/* ---- Files ---- */

static int open_file(const struct splitting *d, const char *to, const char *name, uint32_t kind,
                     struct drps_recwriter **out, struct drps_err *err)
{
    char *path = drps_path_join(to, name);
    const int rc = path ? drps_recwriter_open(d->job->io, path, kind, out, err)
                        : drps_err_set(err, -ENOMEM, "no memory for a path");
    free(path);
    return rc;
}

static int open_files(struct splitting *d, const char *to, struct drps_err *err)
{
    const struct split_job *job = d->job;
    const uint64_t steps = job->batches + job->eval_batches;
    int rc = drps_steps_open(job->io, job->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS, steps,
                             job->memory_bytes / 8, &d->lists, err);
    if (rc == 0)
        rc = drps_steps_open(job->io, job->from, DRPS_FILE_DATA, DRPS_KIND_DATA, steps,
                             job->memory_bytes / 8, &d->bodies, err);
    for (int i = 0; i < DRPS_ROUND_FILES && rc == 0; i++)
        rc = open_file(d, to, drps_round_file[i].name, drps_round_file[i].kind, &d->out[i], err);
    if (rc == 0 && job->numbers)
        rc = open_file(d, to, DRPS_FILE_NUMBERS, DRPS_KIND_NUMBERS, &d->numbers, err);
    return rc;
}

static int finish_files(struct splitting *d, int rc, struct drps_err *err)
{
    for (int i = 0; i < DRPS_ROUND_FILES; i++) {
        if (rc == 0) rc = drps_recwriter_finish(d->out[i], err);
        drps_recwriter_close(d->out[i]);
    }
    if (rc == 0 && d->numbers) rc = drps_recwriter_finish(d->numbers, err);
    drps_recwriter_close(d->numbers);
    drps_steps_close(d->lists);
    drps_steps_close(d->bodies);
    return rc;
}

int drps_split_rank(const struct split_job *job, uint32_t rank, const char *to,
                    struct drps_plan_ranks *out, struct drps_err *err)
{
    struct splitting d = {.job = job, .rank = rank, .ranks = job->ranks->count, .counts = out};
    out->rank = rank;
    out->first_row = job->owners->first[rank];

    d.seen = calloc((job->owners->first[rank + 1] - out->first_row) / 64 + 1, sizeof(*d.seen));
    int rc = d.seen ? open_files(&d, to, err) : no_memory(err);
    if (rc == 0) rc = split_rounds_of(&d, 0, job->batches, 0, err);
    if (rc == 0) rc = split_rounds_of(&d, job->batches, job->eval_batches, 1, err);
    rc = finish_files(&d, rc, err);
    free(d.seen);
    free(d.uses);
    free(d.aux);
    free(d.ids);
    free(d.positions);
    free(d.packed);
    return rc;
}
