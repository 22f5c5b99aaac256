/*
 * Rows numbered by units (units.h): uses are counted for each unit and worker, and partition/
 * places the units.
 */
#include "index/ranks/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_steps.h"
#include "partition/dppa/drps_dppa.h"
#include "partition/drps_partition.h"

/* What drps_units_new() holds of a row at most; what a unit takes, and what each touch of it; what
 * finding a row's home takes. */
enum { UNIT_ROW_BYTES = 40, UNIT_BYTES = 64, TOUCH_BYTES = 40, HOME_BYTES = 16 };

uint64_t drps_units_bytes(const struct placement_job *job, const struct drps_plan_info *info)
{
    const uint64_t uses = info->nnz + info->batches * drps_plan_common_rows(info); /* at most */
    uint64_t units = job->single ? info->rows : info->blocks * (job->by_home ? job->servers : 1U);
    units = (units < info->rows ? units : info->rows) +
            (uint64_t)(2 * job->hot_share * (double)info->rows);
    const uint64_t touches = units * job->servers < uses ? units * job->servers : uses;
    return info->rows * (UNIT_ROW_BYTES + (job->by_home ? (uint64_t)HOME_BYTES : 0)) +
           units * UNIT_BYTES + touches * TOUCH_BYTES;
}

/* How many training batches touch each row; own, [info->rows]. */
static int count_uses(struct steps *lists, const struct drps_plan_info *info, uint32_t **uses_out,
                      struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = 0;
    uint32_t *uses = *uses_out = calloc(info->rows, sizeof(*uses));
    if (!uses) return drps_err_set(err, -ENOMEM, "no memory for the uses of rows");
    for (uint64_t k = 0; k < info->batches && rc == 0; k++) {
        rc = drps_steps_rows(lists, k, info->rows, &rows, &n, err);
        for (size_t i = 0; i < n && rc == 0; i++)
            uses[rows[i]]++;
    }
    return rc;
}

/* ---- Homes ---- */

/* Rows in the order in which units are runs of them, and where blocks, or parts of them, begin. */
struct sorted {
    uint32_t
        *rows; /* own [info->rows]: the row at each position; NULL: each is at that of its number */
    uint32_t *position;    /* own [info->rows]: the inverse */
    const uint32_t *first; /* [blocks + 1]: cut, or, borrowed, as blocks are */
    const uint32_t *block; /* the same, but as blocks are where each row is alone */
    uint32_t *cut;         /* own; NULL: none */
    size_t blocks;
};

static void sorted_free(struct sorted *s)
{
    free(s->cut);
    free(s->rows);
    free(s->position);
}

/* Visit the training batches, one worker's after another's. */
static int walk_batches(struct steps *lists, const struct drps_plan_info *info, uint32_t workers,
                        drps_batch_visit visit, void *ctx, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = 0;
    for (uint32_t w = 0; w < workers && rc == 0; w++)
        for (uint64_t k = w; k < info->batches && rc == 0; k += workers) {
            rc = drps_steps_rows(lists, k, info->rows, &rows, &n, err);
            if (rc == 0) rc = visit(ctx, w, rows, n, err);
        }
    return rc;
}

struct homes {
    uint32_t rows_n, machine;
    uint32_t *here, *most; /* own [rows_n]: batches that use a row: this machine's; its home's */
    uint16_t *home;        /* own [rows_n]: the machine whose batches use it most */
};
_Static_assert(DRPS_PLAN_WORKERS_MAX <= UINT16_MAX, "a home has 16 bits");

static void close_home(struct homes *h)
{
    for (uint32_t r = 0; r < h->rows_n; r++) {
        if (h->here[r] > h->most[r]) {
            h->most[r] = h->here[r];
            h->home[r] = (uint16_t)h->machine;
        }
        h->here[r] = 0;
    }
}

static int count_homes(void *ctx, uint32_t machine, const uint32_t *rows, size_t n,
                       struct drps_err *err)
{
    struct homes *h = ctx;
    (void)err; /* cannot fail */
    if (machine != h->machine) close_home(h);
    h->machine = machine;
    for (size_t i = 0; i < n; i++)
        h->here[rows[i]]++;
    return 0;
}

/* A block's rows by their home, else in their order; blocks become parts of one home. */
static void sort_by_home(const uint16_t *home, const uint32_t *block_first, size_t blocks,
                         uint32_t servers, struct sorted *out)
{
    uint32_t at = 0;
    out->blocks = 0;
    for (size_t b = 0; b < blocks; b++)
        for (uint32_t m = 0; m < servers; m++) {
            const uint32_t begin = at;
            for (uint32_t r = block_first[b]; r < block_first[b + 1]; r++) {
                if (home[r] != m) continue;
                out->position[r] = at;
                out->rows[at++] = r;
            }
            if (at > begin) out->cut[out->blocks++] = begin;
        }
    out->cut[out->blocks] = at;
    out->first = out->block = out->cut;
}

/* Each row is a unit. */
static int single_rows(const struct drps_plan_info *info, struct sorted *out, struct drps_err *err)
{
    out->cut = drps_array_new(info->rows + 1, sizeof(*out->cut));
    if (!out->cut) return drps_err_set(err, -ENOMEM, "no memory for rows one by one");
    for (uint64_t i = 0; i <= info->rows; i++)
        out->cut[i] = (uint32_t)i;
    out->first = out->cut;
    out->blocks = info->rows;
    return 0;
}

/* Make *out the blocks as they are, or sorted by home, or single rows. */
static int sort_rows(const struct placement_job *job, const struct drps_plan_info *info,
                     struct steps *lists, const uint32_t *block_first, struct sorted *out,
                     struct drps_err *err)
{
    *out = (struct sorted){.first = block_first, .block = block_first, .blocks = info->blocks};
    if (job->single) return single_rows(info, out, err);
    if (!job->by_home) return 0;
    struct homes h = {.rows_n = (uint32_t)info->rows,
                      .here = calloc(info->rows, sizeof(*h.here)),
                      .most = calloc(info->rows, sizeof(*h.most)),
                      .home = calloc(info->rows, sizeof(*h.home))};
    out->rows = drps_array_new(info->rows, sizeof(*out->rows));
    out->position = drps_array_new(info->rows, sizeof(*out->position));
    out->cut = drps_array_new(info->rows + 1, sizeof(*out->cut));
    int rc = h.here && h.most && h.home && out->rows && out->position && out->cut
                 ? walk_batches(lists, info, job->servers, count_homes, &h, err)
                 : drps_err_set(err, -ENOMEM, "no memory for the homes of rows");
    if (rc == 0) {
        close_home(&h);
        sort_by_home(h.home, block_first, info->blocks, job->servers, out);
    }
    free(h.here);
    free(h.most);
    free(h.home);
    return rc;
}

/* ---- Units ---- */

struct unit_counting {
    const struct sorted *sorted;
    struct drps_units_maker *maker;
    uint32_t *rows; /* own: of a batch, by position */
    size_t cap;
};

static int add_batch(void *ctx, uint32_t worker, const uint32_t *rows, size_t n,
                     struct drps_err *err)
{
    struct unit_counting *c = ctx;
    if (!c->sorted->rows) return drps_units_add(c->maker, worker, rows, n, err);
    if (drps_array_reserve(&c->rows, &c->cap, n, sizeof(*c->rows)))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu rows", n);
    for (size_t i = 0; i < n; i++)
        c->rows[i] = c->sorted->position[rows[i]];
    return drps_units_add(c->maker, worker, c->rows, n, err);
}

/* Turn uses [info->rows] by row into uses by position. */
static int sort_uses(const struct sorted *sorted, const struct drps_plan_info *info,
                     uint32_t **uses, struct drps_err *err)
{
    if (!sorted->rows) return 0;
    uint32_t *by_position = drps_array_new(info->rows, sizeof(*by_position));
    if (!by_position) return drps_err_set(err, -ENOMEM, "no memory for the uses of rows");
    for (uint64_t i = 0; i < info->rows; i++)
        by_position[i] = (*uses)[sorted->rows[i]];
    free(*uses);
    *uses = by_position;
    return 0;
}

static int count_units(const struct placement_job *job, const struct drps_plan_info *info,
                       const uint32_t *block_first, struct sorted *sorted, struct drps_units *out,
                       struct drps_err *err)
{
    const struct drps_unit_costs costs = {
        .row_bytes = info->row_bytes,
        .seek_s = (double)info->seek_ns / 1e9,
        .byte_s = 2 / (double)info->transfer_bps,
        .row_net_s = 2.0 * info->dim * sizeof(float) / (double)job->net_bps,
        .hot_block = job->block_rows,
    };
    struct unit_counting counting = {.sorted = sorted};
    struct steps *lists = NULL;
    uint32_t *uses = NULL;
    int rc =
        drps_steps_open(job->io, job->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                        info->batches + info->eval_batches, job->memory_bytes / 8, &lists, err);
    if (rc == 0) rc = sort_rows(job, info, lists, block_first, sorted, err);
    if (rc == 0) rc = count_uses(lists, info, &uses, err);
    if (rc == 0) rc = sort_uses(sorted, info, &uses, err);
    if (rc == 0)
        rc = drps_units_new(sorted->first, sorted->blocks, uses, job->single ? 0 : job->hot_share,
                            &costs, job->servers, &counting.maker, err);
    free(uses);
    if (rc == 0) rc = walk_batches(lists, info, job->servers, add_batch, &counting, err);
    if (rc == 0) rc = drps_units_finish(counting.maker, out, err);
    drps_units_maker_free(counting.maker);
    free(counting.rows);
    drps_steps_close(lists);
    return rc;
}

/* ---- New numbers ---- */

/* The traffic of single rows, as the paper counts it. */
static int count_sets(const struct placement_job *job, const struct drps_units *units,
                      const uint32_t *owner, struct drps_err *err)
{
    struct drps_set_traffic *load = calloc(units->machines, sizeof(*load));
    if (!load) return drps_err_set(err, -ENOMEM, "no memory for %u machines", units->machines);
    *job->busiest_set_rows = drps_dppa_traffic(units, owner, load);
    *job->set_rows = 0;
    for (uint32_t m = 0; m < units->machines; m++)
        *job->set_rows += load[m].pulled;
    free(load);
    return 0;
}

/* Find the server of each unit: owner_out [units->n] is the caller's to free. */
static int find_owners(const struct placement_job *job, const struct drps_plan_info *info,
                       const struct drps_units *units, uint32_t **owner_out, struct drps_err *err)
{
    struct drps_placement placement = {0};
    int rc = 0;
    if (job->row_homes) {
        placement.owner = drps_array_new(units->n, sizeof(*placement.owner));
        if (!placement.owner) return drps_err_set(err, -ENOMEM, "no memory for %zu rows", units->n);
        memcpy(placement.owner, job->row_homes, units->n * sizeof(*job->row_homes));
    } else {
        const struct drps_rows_options options = {
            .algo = job->algo, .seed = info->seed, .by_sets = job->by_sets};
        rc = drps_rows_place(units, &options, &placement, err);
    }
    *owner_out = placement.owner;
    placement.owner = NULL;
    drps_placement_destroy(&placement);
    return rc;
}

/* Find where each unit begins among the new ids, [units->n], and each server, which has a row at
 * least.
 */
static int place_units(const struct placement_job *job, const struct drps_plan_info *info,
                       struct drps_units *units, uint32_t *new_first, struct owners *out,
                       struct drps_err *err)
{
    uint32_t *owner = NULL;
    int rc = find_owners(job, info, units, &owner, err);
    if (rc < 0) return rc;
    /* Their blocks, and units, are of no other rows. */
    for (size_t u = 0; u < units->n && units->first[u] < drps_plan_common_rows(info); u++) {
        owner[u] = 0;
        units->hot[u] = 1;
    }
    if (job->single) rc = count_sets(job, units, owner, err);
    if (rc == 0) rc = drps_rows_renumber(units, owner, new_first, out->first, err);
    free(owner);
    drps_owners_separate(out);
    return rc;
}

/* A new row's block: what was one and still is together, and the hot rows of a server. */
#define HOT UINT32_MAX

/* The new id of each row, and the block of each new one (of pages, 1); rows
 * that all batches have keep theirs. */
static void number_rows(const struct drps_units *units, const uint32_t *new_first,
                        const struct sorted *sorted, int pages, uint32_t *new_id, uint32_t *block)
{
    uint32_t b = 0;
    for (size_t u = 0; u < units->n; u++) {
        while (sorted->block[b + 1] <= units->first[u])
            b++;
        for (uint32_t i = units->first[u]; i < units->first[u + 1]; i++) {
            const uint32_t to = new_first[u] + i - units->first[u];
            new_id[sorted->rows ? sorted->rows[i] : i] = to;
            block[to] = units->hot[u] && i > 0 ? HOT : pages && i > 0 ? 1 : b;
        }
    }
}

int drps_units_number(const struct placement_job *job, const struct drps_plan_info *info,
                      const uint32_t *block_first, uint32_t *new_id, uint32_t *block,
                      struct owners *out, struct drps_err *err)
{
    struct drps_units units = {0};
    struct sorted sorted = {0};
    uint32_t *new_first = NULL;
    int rc = count_units(job, info, block_first, &sorted, &units, err);
    if (rc == 0) {
        new_first = drps_array_new(units.n, sizeof(*new_first));
        rc = new_first ? place_units(job, info, &units, new_first, out, err)
                       : drps_err_set(err, -ENOMEM, "no memory for %zu units", units.n);
    }
    if (rc == 0) number_rows(&units, new_first, &sorted, job->pages, new_id, block);
    sorted_free(&sorted);
    free(new_first);
    drps_units_destroy(&units);
    return rc;
}
