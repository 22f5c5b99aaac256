/*
 * Ranges of placed ids for servers (drps_owners.h): cut so that a range has its part of the rows
 * and of the accesses, taken together, or of the accesses alone.
 */
#include "index/ranks/drps_owners.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_steps.h"
#include "index/swap/drps_swap.h"

/* Add a step's rows to their blocks; both are in order. */
static void count_step(const struct owners_job *job, const uint32_t *rows, size_t n,
                       uint64_t *accesses)
{
    size_t b = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i] >= job->block_first[b + 1]) {
            size_t high = job->blocks; /* block_first[b + 1] <= rows[i] < block_first[high] */
            b++;
            while (high - b > 1) {
                const size_t middle = b + (high - b) / 2;
                if (job->block_first[middle] <= rows[i])
                    b = middle;
                else
                    high = middle;
            }
        }
        accesses[b]++;
    }
}

static int count_accesses(const struct owners_job *job, uint64_t *accesses, struct drps_err *err)
{
    struct steps *lists = NULL;
    const uint32_t *rows;
    size_t n;
    int rc = drps_steps_open(job->io, job->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, job->steps,
                             job->memory_bytes / 8, &lists, err);
    for (uint64_t s = 0; s < job->steps && rc == 0; s++) {
        rc = drps_steps_rows(lists, s, job->block_first[job->blocks], &rows, &n, err);
        if (rc == 0) count_step(job, rows, n, accesses);
    }
    drps_steps_close(lists);
    return rc;
}

/* Where several machines make the plan, adds up the accesses that each has counted. */
static int add_ranks(const struct owners_job *job, uint64_t *accesses, struct drps_err *err)
{
    struct swap *swap = NULL;
    int rc = drps_swap_share(job->ranks, accesses, job->blocks * sizeof(*accesses), &swap, err);
    for (size_t b = 0; b < job->blocks; b++)
        accesses[b] = 0;
    for (uint32_t r = 0; r < job->ranks->count && rc == 0; r++)
        for (size_t b = 0; b < job->blocks && rc == 0; b++) {
            uint64_t more = 0;
            rc = drps_swap_take(swap, r, &more, sizeof(more), err);
            accesses[b] += more;
        }
    if (rc == 0) rc = drps_swap_all_taken(swap, err);
    drps_swap_close(swap);
    return rc;
}

/* What the first r servers are to have, of 1: sum_out [r]. */
static void sum_shares(const struct owners_job *job, uint32_t servers,
                       double sum_out[DRPS_PLAN_WORKERS_MAX])
{
    sum_out[0] = 0;
    for (uint32_t r = 1; r < servers; r++)
        sum_out[r] = job->share ? sum_out[r - 1] + job->share[r - 1] : (double)r / servers;
}

/* Walk the blocks; where the weight so far reaches the next share, a range ends. */
static void cut(const struct owners_job *job, const uint64_t *accesses, struct owners *out)
{
    const uint32_t rows = job->block_first[job->blocks];
    double before[DRPS_PLAN_WORKERS_MAX];
    double all = 0, weight = 0; /* of the blocks before; all rows weigh 2 */
    uint32_t r = 1;
    sum_shares(job, out->servers, before);
    for (size_t b = 0; b < job->blocks; b++)
        all += (double)accesses[b];
    for (size_t b = 0; b < job->blocks && r < out->servers; b++) {
        const uint32_t n = job->block_first[b + 1] - job->block_first[b];
        const double more =
            (double)n / rows + (all > 0 ? (double)accesses[b] / all : (double)n / rows);
        for (; r < out->servers; r++) {
            const double wanted = 2.0 * before[r];
            const double into = (wanted - weight) / more;
            if (!(weight + more >= wanted)) break;
            out->first[r] = job->block_first[b] + (uint32_t)(into * n);
        }
        weight += more;
    }
    for (; r < out->servers; r++) /* rounding kept the last shares from being reached */
        out->first[r] = rows;
}

void drps_owners_separate(struct owners *o)
{
    for (uint32_t r = 1; r < o->servers; r++)
        if (o->first[r] <= o->first[r - 1]) o->first[r] = o->first[r - 1] + 1;
    for (uint32_t r = o->servers; r-- > 1;)
        if (o->first[r] >= o->first[r + 1]) o->first[r] = o->first[r + 1] - 1;
}

int drps_owners_begin(uint32_t rows, uint32_t servers, struct owners *out, struct drps_err *err)
{
    if (servers > rows)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%" PRIu32 " servers: there are only %" PRIu32
                            " rows to share: name fewer "
                            "servers, or fewer workers",
                            servers, rows);
    *out = (struct owners){.servers = servers};
    out->first[servers] = rows;
    return 0;
}

int drps_owners_by_range(const struct owners_job *job, uint32_t servers, struct owners *out,
                         struct drps_err *err)
{
    int rc = drps_owners_begin(job->block_first[job->blocks], servers, out, err);
    if (rc < 0) return rc;
    uint64_t *accesses = calloc(job->blocks, sizeof(*accesses));
    if (!accesses) return drps_err_set(err, -ENOMEM, "no memory for %zu blocks", job->blocks);
    rc = count_accesses(job, accesses, err);
    if (rc == 0 && job->ranks) rc = add_ranks(job, accesses, err);
    if (rc == 0) {
        cut(job, accesses, out);
        drps_owners_separate(out);
    }
    free(accesses);
    return rc;
}

/* ---- By counts alone ---- */

/* uses [rows] */
static int count_uses(const struct owners_job *job, uint32_t *uses, struct drps_err *err)
{
    struct steps *lists = NULL;
    const uint32_t *rows;
    size_t n;
    int rc = drps_steps_open(job->io, job->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, job->steps,
                             job->memory_bytes / 8, &lists, err);
    for (uint64_t s = 0; s < job->training && rc == 0; s++) {
        rc = drps_steps_rows(lists, s, job->block_first[job->blocks], &rows, &n, err);
        for (size_t i = 0; i < n && rc == 0; i++)
            uses[rows[i]]++;
    }
    drps_steps_close(lists);
    return rc;
}

/* A range ends before or after the row that passes its share, where it is nearer. */
static void cut_by_counts(const struct owners_job *job, const uint32_t *uses, uint32_t rows,
                          struct owners *out)
{
    double share[DRPS_PLAN_WORKERS_MAX];
    double all = 0, before = 0;
    uint32_t r = 1;
    sum_shares(job, out->servers, share);
    for (uint32_t i = 0; i < rows; i++)
        all += uses[i];
    for (uint32_t i = 0; i < rows; i++) {
        const double after = before + uses[i];
        for (; r < out->servers; r++) {
            const double wanted = all * share[r];
            if (!(after >= wanted)) break;
            out->first[r] = wanted - before < after - wanted ? i : i + 1;
        }
        before = after;
    }
}

int drps_owners_by_counts(const struct owners_job *job, uint32_t servers, struct owners *out,
                          struct drps_err *err)
{
    const uint32_t rows = job->block_first[job->blocks];
    int rc = drps_owners_begin(rows, servers, out, err);
    if (rc < 0) return rc;
    if (rows > job->memory_bytes / 2 / sizeof(uint32_t))
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "partition counts: counting the uses of %" PRIu32
                            " rows takes half of the memory limit, and there is too little: raise "
                            "it, or use the partition range",
                            rows);
    uint32_t *uses = calloc(rows, sizeof(*uses));
    if (!uses)
        return drps_err_set(err, -ENOMEM, "no memory for the uses of %" PRIu32 " rows", rows);
    rc = count_uses(job, uses, err);
    if (rc == 0) {
        cut_by_counts(job, uses, rows, out);
        drps_owners_separate(out);
    }
    free(uses);
    return rc;
}
