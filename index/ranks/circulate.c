/*
 * One pass over all batches a rank. Bodies stay as they are: a rank numbers its rows in the order
 * of the whole plan, so that only row lists change.
 */
#include "index/ranks/drps_circulate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"

enum { HAND_OVER_BYTES = 64 << 10 };

struct circulating {
    const struct circulate_job *job;
    const struct circulation *c;
    uint32_t rank, common; /* rows that all batches have */
    struct steps *lists, *bodies;
    struct drps_recwriter *data, *rows;
    struct drps_plan_info *out;
    uint64_t stratum; /* that is being written */
    uint64_t plain;
    uint32_t *ids; /* own [cap] */
    unsigned char *packed;
    size_t cap, packed_cap;
};

/* ---- What a rank holds ---- */

static uint64_t most_handed(const struct circulate_job *job)
{
    const uint64_t rows = HAND_OVER_BYTES / job->info->row_bytes;
    return rows > job->info->max_batch_rows ? rows : job->info->max_batch_rows;
}

static uint64_t largest_range(const struct circulate_job *job)
{
    const struct circulation *c = job->circulation;
    uint64_t most = 0;
    for (uint32_t s = 0; s < circulation_ranges(c); s++) {
        const uint64_t rows = job->range_first[s + 1] - job->range_first[s];
        if (s % (c->cells + 1) && rows > most) most = rows;
    }
    return most;
}

uint64_t drps_circulate_most_rows(const struct circulate_job *job)
{
    const uint32_t common = drps_plan_common_rows(job->info);
    const uint64_t range = largest_range(job), limit = most_handed(job);
    const uint64_t most = (range < limit ? range : limit) + common;
    return most > job->info->max_batch_rows ? most : job->info->max_batch_rows;
}

uint32_t drps_circulate_first_row(const struct circulate_job *job, uint32_t rank)
{
    const struct circulation *c = job->circulation;
    return rank ? job->range_first[circulation_first_range(c, circulation_lane(c, rank))] : 0;
}

int drps_circulate_check(const struct circulate_job *job, struct drps_err *err)
{
    for (uint32_t r = 0; r < job->circulation->workers; r++)
        if (drps_circulate_first_row(job, r) == drps_circulate_first_row(job, r + 1))
            return drps_err_set(err, DRPS_E_CONFIG,
                                "%" PRIu32 " workers: there are too few users and items for rank "
                                "%" PRIu32 " to have some",
                                job->circulation->workers, r);
    return 0;
}

/* Adds rows [first, end), unless there are none. */
static void hold(struct drps_plan_info *out, uint32_t first, uint32_t end)
{
    struct drps_plan_ranks *r = &out->ranks;
    if (first == end) return;
    r->held[r->held_n++] = (struct drps_row_range){.first = first, .rows = end - first};
    out->rows += end - first;
}

/* The rows that all batches have, the rank's own rows, and what is at home with lanes of other
 * ranks. */
static void hold_rows(const struct circulating *d)
{
    const struct circulation *c = d->c;
    const uint32_t first = circulation_lane(c, d->rank), end = circulation_lane(c, d->rank + 1);
    const uint32_t *range_first = d->job->range_first;
    d->out->rows = d->out->ranks.held_n = 0;
    if (d->rank) hold(d->out, 0, d->common);
    for (uint32_t lane = 0; lane < c->lanes; lane++) {
        const uint32_t range = circulation_first_range(c, lane);
        if (lane == first)
            hold(d->out, drps_circulate_first_row(d->job, d->rank),
                 drps_circulate_first_row(d->job, d->rank + 1));
        if (lane < first || lane >= end)
            hold(d->out, range_first[range + 1], range_first[range + c->cells + 1]);
    }
}

/* Row numbers of the plan become those of the rank; both are in order. */
static int localize(const struct circulating *d, const uint32_t *rows, size_t n, uint32_t *ids,
                    struct drps_err *err)
{
    const struct drps_plan_ranks *r = &d->out->ranks;
    uint64_t base = 0;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        while (k < r->held_n && rows[i] >= r->held[k].first + r->held[k].rows)
            base += r->held[k++].rows;
        if (k == r->held_n || rows[i] < r->held[k].first)
            return drps_err_set(err, DRPS_E_CORRUPT, "row %" PRIu32 " never comes to rank %" PRIu32,
                                rows[i], d->rank);
        ids[i] = (uint32_t)(base + rows[i] - r->held[k].first);
    }
    return 0;
}

/* ---- Steps ---- */

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory for the rows of a step");
}

/* The row list of a step, of rows of the plan; the list may be d->ids itself. */
static int write_list(struct circulating *d, const uint32_t *rows, size_t n, struct drps_err *err)
{
    struct drps_plan_ranks *r = &d->out->ranks;
    if (drps_array_reserve(&d->ids, &d->cap, n, sizeof(*d->ids)) ||
        drps_array_reserve(&d->packed, &d->packed_cap, drps_list_encode_bound(n), 1))
        return no_memory(err);
    int rc = localize(d, rows, n, d->ids, err);
    if (rc < 0) return rc;
    if (n > r->max_round_rows) r->max_round_rows = r->max_round_uses = n;
    const struct drps_piece list = {d->packed, drps_list_encode(d->ids, n, d->packed)};
    return drps_recwriter_add(d->rows, &list, 1, err);
}

static int write_batch(struct circulating *d, uint64_t step, struct drps_err *err)
{
    const uint32_t *rows;
    const void *record;
    size_t n, bytes;
    int rc = drps_steps_rows(d->lists, step, d->job->info->rows, &rows, &n, err);
    if (rc == 0) rc = write_list(d, rows, n, err);
    if (rc == 0) rc = drps_steps_record(d->bodies, step, &record, &bytes, err);
    if (rc < 0) return rc;
    d->plain += n * (step < d->job->info->batches ? 2U : 1U);
    const struct drps_piece body = {record, bytes};
    return drps_recwriter_add(d->data, &body, 1, err);
}

static int write_hand_over(struct circulating *d, uint32_t first, uint32_t end, uint32_t hand_over,
                           struct drps_err *err)
{
    static const float none[1];
    static const uint16_t nothing[1];
    const uint32_t n = end - first + d->common;
    const struct drps_batch b = {
        .rows = n, .labels = none, .local16 = nothing, .hand_over = hand_over};
    struct drps_batch_pieces body;
    if (drps_array_reserve(&d->ids, &d->cap, n, sizeof(*d->ids))) return no_memory(err);
    for (uint32_t i = 0; i < n; i++)
        d->ids[i] = i < d->common ? i : first + i - d->common;
    int rc = write_list(d, d->ids, n, err);
    drps_batch_encode(&b, &body);
    return rc < 0 ? rc : drps_recwriter_add(d->data, body.pieces, body.n, err);
}

/* The steps that hand a range over which departs after a stratum. */
static int hand_over(struct circulating *d, uint32_t range, uint64_t departs, uint32_t direction,
                     struct drps_err *err)
{
    struct drps_plan_ranks *r = &d->out->ranks;
    const uint32_t most = (uint32_t)most_handed(d->job);
    const int evaluation = departs >= d->c->train;
    int rc = 0;
    if (range == CIRCULATION_NONE) return 0;
    const uint32_t first = d->job->range_first[range], end = d->job->range_first[range + 1];
    uint64_t *counted = direction == DRPS_DEPARTS
                            ? (evaluation ? &r->eval_served_rows : &r->served_rows)
                            : (evaluation ? &r->eval_pulled_rows : &r->pulled_rows);
    *counted += end - first;
    if (evaluation) direction |= DRPS_HANDS_PARAMETERS;
    for (uint32_t at = first, to; at < end && rc == 0; at = to) {
        to = end - at > most ? at + most : end;
        rc = write_hand_over(d, at, to, direction | (to == end ? DRPS_HANDS_LAST : 0U), err);
    }
    return rc;
}

/* ---- Strata ---- */

static int end_stratum(struct circulating *d, struct drps_err *err)
{
    const uint32_t range = circulation_departs(d->c, d->stratum, d->rank);
    int rc = hand_over(d, range, d->stratum, DRPS_DEPARTS, err);
    if (rc == 0 && ++d->stratum == d->c->train) d->out->batches = drps_recwriter_count(d->data);
    return rc;
}

static int begin_stratum(struct circulating *d, struct drps_err *err)
{
    const uint32_t range = circulation_arrives(d->c, d->stratum, d->rank);
    return hand_over(d, range, d->stratum - d->c->cells, DRPS_ARRIVES, err);
}

/* Ends strata and begins others, until it is that one's turn. */
static int go_to(struct circulating *d, uint64_t stratum, struct drps_err *err)
{
    int rc = 0;
    while (d->stratum < stratum && rc == 0) {
        rc = end_stratum(d, err);
        if (rc == 0) rc = begin_stratum(d, err);
    }
    return rc;
}

static int write_step(struct circulating *d, uint64_t step, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(d->bodies, step, &record, &bytes, err);
    if (rc < 0) return rc;
    const uint64_t stratum = drps_batch_stratum(record, bytes) - 1U;
    const uint32_t lane = drps_batch_lane(record, bytes);
    const int evaluation = step >= d->job->info->batches;
    if (stratum < d->stratum || stratum >= d->c->strata || (stratum >= d->c->train) != evaluation)
        return drps_err_set(err, DRPS_E_CORRUPT, "batch %" PRIu64 " is of stratum %" PRIu64, step,
                            stratum);
    rc = go_to(d, stratum, err);
    const int mine =
        lane >= circulation_lane(d->c, d->rank) && lane < circulation_lane(d->c, d->rank + 1);
    return rc == 0 && mine ? write_batch(d, step, err) : rc;
}

static int write_steps(struct circulating *d, struct drps_err *err)
{
    const uint64_t steps = d->job->info->batches + d->job->info->eval_batches;
    int rc = 0;
    for (uint64_t s = 0; s < steps && rc == 0; s++)
        rc = write_step(d, s, err);
    if (rc == 0) rc = go_to(d, d->c->strata + d->c->cells - 1, err);
    if (d->c->strata == d->c->train) d->out->batches = drps_recwriter_count(d->data);
    d->out->eval_batches = drps_recwriter_count(d->data) - d->out->batches;
    return rc;
}

/* ---- Files ---- */

static int open_writer(const struct circulate_job *job, const char *to, const char *name,
                       uint32_t kind, struct drps_recwriter **out, struct drps_err *err)
{
    char *path = drps_path_join(to, name);
    int rc = path ? drps_recwriter_open(job->io, path, kind, out, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
    free(path);
    return rc;
}

static int open_files(struct circulating *d, const char *to, struct drps_err *err)
{
    const struct circulate_job *job = d->job;
    const uint64_t steps = job->info->batches + job->info->eval_batches;
    int rc = drps_steps_open(job->io, job->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS, steps,
                             job->memory_bytes / 8, &d->lists, err);
    if (rc == 0)
        rc = drps_steps_open(job->io, job->from, DRPS_FILE_DATA, DRPS_KIND_DATA, steps,
                             job->memory_bytes / 8, &d->bodies, err);
    if (rc == 0) rc = open_writer(job, to, DRPS_FILE_DATA, DRPS_KIND_DATA, &d->data, err);
    return rc < 0 ? rc : open_writer(job, to, DRPS_FILE_ROWS, DRPS_KIND_ROWS, &d->rows, err);
}

static int close_files(struct circulating *d, int rc, struct drps_err *err)
{
    if (rc == 0) rc = drps_recwriter_finish(d->data, err);
    if (rc == 0) rc = drps_recwriter_finish(d->rows, err);
    drps_recwriter_close(d->data);
    drps_recwriter_close(d->rows);
    drps_steps_close(d->lists);
    drps_steps_close(d->bodies);
    free(d->ids);
    free(d->packed);
    return rc;
}

int drps_circulate_rank(const struct circulate_job *job, uint32_t rank, const char *to,
                        struct drps_plan_info *out, uint64_t *plain_out, struct drps_err *err)
{
    struct circulating d = {.job = job, .c = job->circulation, .rank = rank, .out = out};
    d.common = drps_plan_common_rows(job->info);
    out->ranks.rank = rank;
    out->ranks.first_row = drps_circulate_first_row(job, rank);
    out->ranks.max_range_rows = largest_range(job);
    hold_rows(&d);
    int rc = open_files(&d, to, err);
    if (rc == 0) rc = write_steps(&d, err);
    *plain_out = d.plain;
    return close_files(&d, rc, err);
}
