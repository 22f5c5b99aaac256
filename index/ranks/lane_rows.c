/*
 * The range of each row is found by walking the training batches, whose marks say which lane had it
 * when: so it does not matter how blocks have ordered the rows before.
 */
#include "index/ranks/drps_lane_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/blocks/drps_renumber.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"

enum { ROW_BYTES = 16 }; /* of the arrays below, a row */

/* ---- Slots ---- */

struct finding {
    const struct circulation *c;
    uint32_t first, inner_first, inner_end; /* rows of the tables: outer and inner, from `first` */
    uint32_t *range_of;                     /* [rows] or CIRCULATION_NONE */
};

static struct finding begin_finding(const struct circulation *c, const struct drps_plan_info *info)
{
    const struct drps_table *items = &info->tables[info->tables_n - 1], *users = items - 1;
    const struct drps_table *inner = info->grid_users <= info->grid_items ? items : users;
    return (struct finding){.c = c,
                            .first = (uint32_t)users->first,
                            .inner_first = (uint32_t)inner->first,
                            .inner_end = (uint32_t)(inner->first + inner->rows)};
}

static int add_batch(const struct finding *f, uint64_t stratum, uint32_t lane, const uint32_t *rows,
                     size_t n, struct drps_err *err)
{
    const uint32_t outer = circulation_first_range(f->c, lane);
    const uint32_t range = circulation_range(f->c, stratum, lane);
    for (size_t i = 0; i < n; i++) {
        if (rows[i] < f->first) continue;
        const int inner = rows[i] >= f->inner_first && rows[i] < f->inner_end;
        const uint32_t here = inner ? range : outer;
        uint32_t *its = &f->range_of[rows[i]];
        if (*its != CIRCULATION_NONE && *its != here)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "row %" PRIu32 " is of range %" PRIu32
                                ", and is used where range %" PRIu32 " is",
                                rows[i], *its, here);
        *its = here;
    }
    return 0;
}

static int find_ranges(const struct lane_rows_job *job, const struct drps_plan_info *info,
                       uint32_t *range_of, struct drps_err *err)
{
    const uint64_t steps = info->batches + info->eval_batches;
    struct finding f = begin_finding(job->circulation, info);
    struct steps *lists = NULL, *bodies = NULL;
    const uint32_t *rows;
    const void *body;
    size_t n, bytes;
    f.range_of = range_of;
    int rc = drps_steps_open(job->io, job->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS, steps,
                             job->memory_bytes / 8, &lists, err);
    if (rc == 0)
        rc = drps_steps_open(job->io, job->from, DRPS_FILE_DATA, DRPS_KIND_DATA, steps,
                             job->memory_bytes / 8, &bodies, err);
    for (uint64_t s = 0; s < info->batches && rc == 0; s++) {
        rc = drps_steps_rows(lists, s, info->rows, &rows, &n, err);
        if (rc == 0) rc = drps_steps_record(bodies, s, &body, &bytes, err);
        if (rc == 0)
            rc = add_batch(&f, drps_batch_stratum(body, bytes) - 1U, drps_batch_lane(body, bytes),
                           rows, n, err);
    }
    drps_steps_close(lists);
    drps_steps_close(bodies);
    return rc;
}

/* ---- Numbers ---- */

/* Where each range begins: the rows that all batches have are before them. */
static int count_ranges(const struct circulation *c, const struct drps_plan_info *info,
                        const uint32_t *range_of, uint32_t *first, struct drps_err *err)
{
    const uint32_t ranges = circulation_ranges(c), common = drps_plan_common_rows(info);
    memset(first, 0, (ranges + 1) * sizeof(*first));
    for (uint64_t r = common; r < info->rows; r++) {
        if (range_of[r] >= ranges)
            return drps_err_set(err, DRPS_E_CORRUPT, "row %" PRIu64 " is in no training batch", r);
        first[range_of[r] + 1]++;
    }
    first[0] = common;
    for (uint32_t s = 0; s < ranges; s++)
        first[s + 1] += first[s];
    return 0;
}

/* new_id [rows]; block [rows]: by the new number, the block of before (of pages, 0). next: where
 * each range begins, and then where it ends. */
static void number_rows(const struct drps_plan_info *info, const uint32_t *range_of, uint32_t *next,
                        const uint32_t *block_first, int pages, uint32_t *new_id, uint32_t *block)
{
    const uint32_t common = drps_plan_common_rows(info);
    uint32_t b = 0;
    for (uint32_t r = 0; r < info->rows; r++) {
        while (block_first[b + 1] <= r)
            b++;
        new_id[r] = r < common ? r : next[range_of[r]]++;
        block[new_id[r]] = pages ? 0 : b;
    }
}

/* Blocks end with the intercept, a range, a block of before, and at max_rows. */
static size_t cut_blocks(const struct drps_plan_info *info, const uint32_t *range_first,
                         const uint32_t *block, uint32_t max_rows, uint32_t *first)
{
    size_t n = 0;
    uint32_t s = 0;
    for (uint32_t r = 0; r < info->rows; r++) {
        int begins = r == 0;
        for (; r == range_first[s]; s++)
            begins = 1;
        if (begins || block[r] != block[r - 1] || r - first[n - 1] == max_rows) first[n++] = r;
    }
    first[n] = (uint32_t)info->rows;
    return n;
}

/* What numbering works with; own. */
struct numbering {
    uint32_t *range_of, *new_id, *block, *blocks, *next;
};

static int number(const struct lane_rows_job *job, struct drps_plan_info *info, struct numbering *n,
                  uint32_t **block_first, uint32_t *range_first, struct drps_err *err)
{
    const struct circulation *c = job->circulation;
    memset(n->range_of, 0xff, info->rows * sizeof(*n->range_of)); /* CIRCULATION_NONE */
    int rc = find_ranges(job, info, n->range_of, err);
    if (rc == 0) rc = count_ranges(c, info, n->range_of, range_first, err);
    if (rc < 0) return rc;
    memcpy(n->next, range_first, circulation_ranges(c) * sizeof(*n->next));
    number_rows(info, n->range_of, n->next, *block_first, job->pages, n->new_id, n->block);
    info->blocks = cut_blocks(info, range_first, n->block, job->block_rows, n->blocks);
    free(*block_first);
    *block_first = n->blocks;
    n->blocks = NULL;
    rc = drps_renumber_rows(job->io, job->from, job->to, info, n->new_id, err);
    if (rc == 0) drps_plan_mix_tables(info);
    return rc;
}

static int check_memory(const struct lane_rows_job *job, const struct drps_plan_info *info,
                        struct drps_err *err)
{
    char need[32];
    const uint64_t bytes = info->rows * ROW_BYTES;
    if (bytes <= job->memory_bytes) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "numbering %" PRIu64 " rows by lanes takes %s: raise the memory limit",
                        info->rows, drps_size_format(bytes, need, sizeof(need)));
}

int drps_lane_rows_make(const struct lane_rows_job *job, struct drps_plan_info *info,
                        uint32_t **block_first, uint32_t **range_first_out, struct drps_err *err)
{
    const size_t rows = (size_t)info->rows, ranges = circulation_ranges(job->circulation);
    *range_first_out = NULL;
    int rc = check_memory(job, info, err);
    if (rc < 0) return rc;
    struct numbering n = {.range_of = drps_array_new(rows, sizeof(*n.range_of)),
                          .new_id = drps_array_new(rows, sizeof(*n.new_id)),
                          .block = drps_array_new(rows, sizeof(*n.block)),
                          .blocks = drps_array_new(rows + 1, sizeof(*n.blocks)),
                          .next = drps_array_new(ranges, sizeof(*n.next))};
    *range_first_out = drps_array_new(ranges + 1, sizeof(**range_first_out));
    rc = n.range_of && n.new_id && n.block && n.blocks && n.next && *range_first_out
             ? number(job, info, &n, block_first, *range_first_out, err)
             : drps_err_set(err, -ENOMEM, "no memory for the new numbers of rows");
    free(n.range_of);
    free(n.new_id);
    free(n.block);
    free(n.blocks);
    free(n.next);
    return rc;
}
