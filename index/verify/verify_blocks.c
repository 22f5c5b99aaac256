/*
 * Blocks and their uses against the row lists. The distances of uses.rec: a table holds for each
 * block the first step that used it, and the step that is due to use it next.
 */
#include "index/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/blocks/builders/drps_builder.h"
#include "index/plan/drps_batch.h"

enum { NEVER = 0 };

struct due {
    uint32_t first, next; /* steps; next is past the epoch where it wraps, NEVER: not used yet */
};

struct verifier {
    struct verify *v;
    struct steps *uses, *lists;
    uint32_t *block_first;     /* [blocks + 1] */
    uint32_t *list, *distance; /* [most] of one step */
    uint64_t most;
    size_t n;          /* blocks of the step */
    struct due *table; /* [slice] */
    uint64_t slice;
    uint32_t gap; /* rows that a run of blocks reads through */
    struct {
        uint64_t row_uses, uses, use_rows, runs, run_rows, max_blocks, max_rows;
    } sum;
};

static int read_uses(struct verifier *b, uint64_t step, struct drps_err *err)
{
    const void *record;
    size_t bytes;
    int rc = drps_steps_record(b->uses, step, &record, &bytes, err);
    if (rc < 0) return rc;
    b->n = bytes >= 4 ? drps_list_count(record) : 0;
    if (b->n > b->most)
        rc =
            drps_err_set(err, DRPS_E_CORRUPT,
                         "%zu blocks, " DRPS_FILE_MANIFEST " says at most %" PRIu64, b->n, b->most);
    if (rc == 0) rc = drps_uses_decode(record, bytes, b->list, b->distance, err);
    for (size_t i = 0; i < b->n && rc == 0; i++)
        if (b->distance[i] > b->v->steps)
            rc = drps_err_set(err, DRPS_E_CORRUPT,
                              "block %" PRIu32 " is used next %" PRIu32
                              " steps on, in an epoch of %" PRIu64,
                              b->list[i], b->distance[i], b->v->steps);
    return rc < 0 ? drps_steps_fault(b->uses, step, err) : 0;
}

/* ---- Blocks of a step ---- */

static int wrong_block(const struct verifier *b, uint64_t step, uint32_t block,
                       struct drps_err *err)
{
    (void)drps_err_set(err, DRPS_E_CORRUPT,
                       "block %" PRIu32 " is not one of the rows that the step has", block);
    return drps_steps_fault(b->uses, step, err);
}

/* Each block has rows of the step, and each row one of these blocks. */
static int compare_lists(struct verifier *b, uint64_t step, const uint32_t *rows, size_t n,
                         struct drps_err *err)
{
    size_t at = 0;
    for (size_t i = 0; i < b->n; i++) {
        const uint32_t block = b->list[i];
        if (block >= b->v->info->blocks || at == n || rows[at] < b->block_first[block] ||
            rows[at] >= b->block_first[block + 1])
            return wrong_block(b, step, block, err);
        while (at < n && rows[at] < b->block_first[block + 1])
            at++;
    }
    if (at == n) return 0;
    (void)drps_err_set(err, DRPS_E_CORRUPT,
                       "the step has row %" PRIu32 ", but no block of it is listed", rows[at]);
    return drps_steps_fault(b->uses, step, err);
}

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static void add_to_sums(struct verifier *b, size_t rows)
{
    uint64_t end = 0, all = 0;
    for (size_t i = 0; i < b->n; i++) {
        const uint64_t begin = b->block_first[b->list[i]], next = b->block_first[b->list[i] + 1];
        const int goes_on = i && begin - end <= b->gap;
        all += next - begin;
        b->sum.runs += !goes_on;
        b->sum.run_rows += next - (goes_on ? end : begin);
        end = next;
    }
    b->sum.row_uses += rows;
    b->sum.uses += b->n;
    b->sum.use_rows += all;
    raise(&b->sum.max_blocks, b->n);
    raise(&b->sum.max_rows, all);
}

static int check_step(struct verifier *b, uint64_t step, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = drps_steps_rows(b->lists, step, b->v->info->rows, &rows, &n, err);
    if (rc == 0) rc = read_uses(b, step, err);
    if (rc == 0) rc = compare_lists(b, step, rows, n, err);
    if (rc == 0) add_to_sums(b, n);
    return rc;
}

/* ---- Distances ---- */

static int check_due(struct verifier *b, uint64_t step, uint64_t first, struct drps_err *err)
{
    int rc = read_uses(b, step, err);
    for (size_t i = 0; i < b->n && rc == 0; i++) {
        if (b->list[i] - first >= b->slice) continue; /* also those before: they wrap */
        struct due *due = &b->table[b->list[i] - first];
        if (due->next == NEVER)
            due->first = (uint32_t)step;
        else if (due->next != step)
            drps_findings_add(b->v->found,
                              "%s/" DRPS_FILE_USES ": record %" PRIu64 ": block %" PRIu32
                              " is used here, but the step before that uses it says step %" PRIu32,
                              b->v->plan->dir, step, b->list[i], due->next);
        due->next = (uint32_t)step + b->distance[i];
    }
    return rc;
}

/* The last use is followed by the first one of the next epoch. */
static void check_wrap(struct verifier *b, uint64_t first)
{
    const uint64_t blocks = b->v->info->blocks;
    for (uint64_t i = 0; i < b->slice && first + i < blocks; i++) {
        const struct due *due = &b->table[i];
        const uint64_t next = due->first + b->v->steps;
        if (due->next != NEVER && due->next != next)
            drps_findings_add(b->v->found,
                              "%s/" DRPS_FILE_USES ": block %" PRIu64
                              " is used first in step %" PRIu32 ", so next in step %" PRIu64
                              " of the epoch behind; the last step that uses it says %" PRIu32,
                              b->v->plan->dir, first + i, due->first, next, due->next);
    }
}

static int check_distances(struct verifier *b, uint64_t slices, struct drps_err *err)
{
    const uint64_t steps = b->v->steps;
    int rc = 0;
    for (uint64_t k = 0; k < slices && rc == 0; k++) {
        memset(b->table, 0, (size_t)b->slice * sizeof(*b->table));
        for (uint64_t s = 0; s < steps && rc == 0; s++) {
            rc = check_due(b, s, k * b->slice, err);
            drps_verify_reach(b->v, (k + 1) * steps + s + 1, (slices + 1) * steps);
        }
        if (rc == 0) check_wrap(b, k * b->slice);
    }
    return rc;
}

/* ---- All of it ---- */

static void check_numbers(struct verifier *b)
{
    const struct drps_plan_info *i = b->v->info;
    uint64_t largest = 0;
    for (uint64_t k = 0; k < i->blocks; k++)
        raise(&largest, b->block_first[k + 1] - b->block_first[k]);
    const struct verify_number numbers[] = {
        {"max_block_rows", largest, i->max_block_rows, 0},
        {"max_step_blocks", b->sum.max_blocks, i->max_step_blocks, 0},
        {"max_step_block_rows", b->sum.max_rows, i->max_step_block_rows, 1},
        {"row_uses", b->sum.row_uses, i->row_uses, 1},
        {"block_uses", b->sum.uses, i->block_uses, 1},
        {"block_use_rows", b->sum.use_rows, i->block_use_rows, 1},
        {"runs", b->sum.runs, i->runs, 1},
        {"run_rows", b->sum.run_rows, i->run_rows, 1},
    };
    drps_verify_numbers(b->v, numbers, sizeof(numbers) / sizeof(*numbers));
}

static int check_bounds(struct verifier *b, struct drps_err *err)
{
    for (uint64_t k = 0; k < b->v->info->blocks; k++)
        if (b->block_first[k] == b->block_first[k + 1])
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s/" DRPS_FILE_BLOCKS ": block %" PRIu64 " has no rows",
                                b->v->plan->dir, k);
    return 0;
}

static int open_all(struct verifier *b, struct drps_err *err)
{
    const struct drps_plan_info *i = b->v->info;
    const struct block_cost cost = {.seek = (double)i->seek_ns / 1e3,
                                    .row = (double)i->row_bytes / (double)i->transfer_bps * 1e6};
    int rc = drps_plan_blocks(b->v->plan, &b->block_first, err);
    if (rc == 0) rc = check_bounds(b, err);
    b->gap = i->transfer_bps ? block_cost_gap(&cost) : 0;
    b->most = i->max_step_blocks;
    b->slice = i->blocks < VERIFY_SLICE_ROWS ? i->blocks : VERIFY_SLICE_ROWS;
    if (rc < 0) return rc;
    b->list = drps_array_new(b->most, sizeof(*b->list));
    b->distance = drps_array_new(b->most, sizeof(*b->distance));
    b->table = drps_array_new((size_t)b->slice, sizeof(*b->table));
    if (!b->list || !b->distance || !b->table)
        return drps_err_set(err, -ENOMEM, "no memory for the blocks of %" PRIu64 " rows", i->rows);
    rc = drps_verify_open(b->v, DRPS_FILE_USES, &b->uses, err);
    return rc == 0 ? drps_verify_open(b->v, DRPS_FILE_ROWS, &b->lists, err) : rc;
}

static int check_all(struct verifier *b, struct drps_err *err)
{
    const uint64_t before = b->v->found->problems, steps = b->v->steps;
    const uint64_t slices = drps_verify_slices(b->v->info->blocks);
    int rc = open_all(b, err);
    if (rc < 0) return drps_findings_take(b->v->found, rc, err);
    for (uint64_t s = 0; s < steps && rc == 0; s++) {
        rc = drps_findings_take(b->v->found, check_step(b, s, err), err);
        drps_verify_reach(b->v, s + 1, (slices + 1) * steps);
    }
    if (rc < 0 || b->v->found->problems > before) return rc;
    check_numbers(b);
    return check_distances(b, slices, err);
}

int drps_verify_blocks(struct verify *v, struct drps_err *err)
{
    struct verifier b = {.v = v};
    int rc = check_all(&b, err);
    drps_steps_close(b.uses);
    drps_steps_close(b.lists);
    free(b.block_first);
    free(b.list);
    free(b.distance);
    free(b.table);
    return rc;
}
