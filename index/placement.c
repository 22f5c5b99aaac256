#include "index/placement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/renumber.h"
#include "index/steps.h"
#include "partition/drps_partition.h"

enum { HOT_ROWS_PART = 16, NETWORK_BPS = 125000000 }; /* 1 Gbit/s */

/* What drps_units_new() holds of a row at most; what a unit takes, and what each touch of it. */
enum { ROW_BYTES = 48, UNIT_BYTES = 64, TOUCH_BYTES = 40 };

int placement_renumbers(const char *algo)
{
    return algo && strcmp(algo, "range") != 0;
}

static int check_memory(const struct placement_job *job, const struct drps_plan_info *info,
                        struct drps_err *err)
{
    char need[32];
    const uint64_t units = info->blocks + 2 * info->rows / HOT_ROWS_PART;
    const uint64_t bytes =
        info->rows * ROW_BYTES + units * (UNIT_BYTES + (uint64_t)job->servers * TOUCH_BYTES);
    if (bytes <= job->memory_bytes) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "--partition %s: placing %" PRIu64 " rows on %" PRIu32
                        " machines may take %s; use more --memory, or --partition range",
                        job->algo, info->rows, job->servers,
                        drps_size_format(bytes, need, sizeof(need)));
}

/* ---- Units ---- */

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
        rc = steps_rows(lists, k, info->rows, &rows, &n, err);
        for (size_t i = 0; i < n && rc == 0; i++)
            uses[rows[i]]++;
    }
    return rc;
}

/* One worker's training batches after another's. */
static int add_batches(struct steps *lists, const struct drps_plan_info *info, uint32_t workers,
                       struct drps_units_maker *maker, struct drps_err *err)
{
    const uint32_t *rows;
    size_t n;
    int rc = 0;
    for (uint32_t w = 0; w < workers && rc == 0; w++)
        for (uint64_t k = w; k < info->batches && rc == 0; k += workers) {
            rc = steps_rows(lists, k, info->rows, &rows, &n, err);
            if (rc == 0) rc = drps_units_add(maker, w, rows, n, err);
        }
    return rc;
}

static int count_units(const struct placement_job *job, const struct drps_plan_info *info,
                       const uint32_t *block_first, struct drps_units *out, struct drps_err *err)
{
    const struct drps_unit_costs costs = {
        .row_bytes = info->row_bytes,
        .seek_s = (double)info->seek_ns / 1e9,
        .byte_s = 2 / (double)info->transfer_bps,
        .row_net_s = 2.0 * info->dim * sizeof(float) / NETWORK_BPS,
    };
    struct drps_units_maker *maker = NULL;
    struct steps *lists = NULL;
    uint32_t *uses = NULL;
    int rc = steps_open(job->io, job->from, "rows.rec", DRPS_KIND_ROWS,
                        info->batches + info->eval_batches, job->memory_bytes / 8, &lists, err);
    if (rc == 0) rc = count_uses(lists, info, &uses, err);
    if (rc == 0)
        rc = drps_units_new(block_first, info->blocks, uses, 1.0 / HOT_ROWS_PART, &costs,
                            job->servers, &maker, err);
    free(uses);
    if (rc == 0) rc = add_batches(lists, info, job->servers, maker, err);
    if (rc == 0) rc = drps_units_finish(maker, out, err);
    drps_units_maker_free(maker);
    steps_close(lists);
    return rc;
}

/* ---- New ids ---- */

/* Where each unit begins among the new ids, [units->n], and each server, which has a row at least.
 */
static int place_units(const struct placement_job *job, const struct drps_plan_info *info,
                       struct drps_units *units, uint32_t *new_first, struct owners *out,
                       struct drps_err *err)
{
    const struct drps_rows_options options = {.algo = job->algo, .seed = info->seed};
    struct drps_placement placement;
    int rc = drps_rows_place(units, &options, &placement, err);
    if (rc < 0) return rc;
    if (strcmp(info->tables[0].name, "bias") == 0) { /* whose block, and unit, is row 0 alone */
        placement.owner[0] = 0;
        units->hot[0] = 1;
    }
    rc = drps_rows_renumber(units, placement.owner, new_first, out->first, err);
    drps_placement_destroy(&placement);
    owners_separate(out);
    return rc;
}

/* A new row's block: what was one and still is together, and the hot rows of a server. */
#define HOT UINT32_MAX

/* The new id of each row, and the block of each new one; row 0, the intercept, keeps its own. */
static void number_rows(const struct drps_units *units, const uint32_t *new_first,
                        const uint32_t *block_first, uint32_t *place, uint32_t *block)
{
    uint32_t b = 0;
    for (size_t u = 0; u < units->n; u++) {
        while (block_first[b + 1] <= units->first[u])
            b++;
        for (uint32_t r = units->first[u]; r < units->first[u + 1]; r++) {
            place[r] = new_first[u] + r - units->first[u];
            block[place[r]] = units->hot[u] && r > 0 ? HOT : b;
        }
    }
}

/* Blocks end with a server's rows, where another begins, and at max_rows. Returns their number. */
static size_t cut_blocks(const uint32_t *block, const struct owners *owners, uint32_t max_rows,
                         uint32_t *first)
{
    const uint32_t rows = owners->first[owners->servers];
    uint32_t server = 0;
    size_t n = 0;
    for (uint32_t r = 0; r < rows; r++) {
        const int begins = r == owners->first[server];
        server += (uint32_t)begins;
        if (begins || block[r] != block[r - 1] || r - first[n - 1] == max_rows) first[n++] = r;
    }
    first[n] = rows;
    return n;
}

/* Rows of several tables mix; the intercept stays where it was. */
static void mix_tables(struct drps_plan_info *info)
{
    const size_t t = strcmp(info->tables[0].name, "bias") == 0;
    if (info->tables_n <= t + 1) return;
    (void)snprintf(info->tables[t].name, sizeof(info->tables[t].name), "rows");
    info->tables[t].rows = info->rows - info->tables[t].first;
    info->tables_n = t + 1;
}

static int apply(const struct placement_job *job, struct drps_plan_info *info,
                 const struct drps_units *units, const uint32_t *new_first,
                 const struct owners *owners, uint32_t **block_first, struct drps_err *err)
{
    const uint64_t max_rows = info->block_bytes / info->row_bytes;
    uint32_t *place = drps_array_new(info->rows, sizeof(*place));
    uint32_t *block = drps_array_new(info->rows, sizeof(*block));
    uint32_t *first = drps_array_new(info->rows + 1, sizeof(*first));
    int rc = place && block && first
                 ? 0
                 : drps_err_set(err, -ENOMEM, "no memory for the new numbers of rows");
    if (rc == 0) {
        number_rows(units, new_first, *block_first, place, block);
        info->blocks = cut_blocks(block, owners, max_rows ? (uint32_t)max_rows : 1, first);
        free(*block_first);
        *block_first = first;
        first = NULL;
        rc = renumber(job->io, job->from, job->to, info, place, err);
    }
    if (rc == 0) mix_tables(info);
    free(place);
    free(block);
    free(first);
    return rc;
}

int placement_make(const struct placement_job *job, struct drps_plan_info *info,
                   uint32_t **block_first, struct owners *out, struct drps_err *err)
{
    struct drps_units units = {0};
    uint32_t *new_first = NULL;
    int rc = owners_begin((uint32_t)info->rows, job->servers, out, err);
    if (rc == 0) rc = check_memory(job, info, err);
    if (rc == 0) rc = count_units(job, info, *block_first, &units, err);
    if (rc == 0) {
        new_first = drps_array_new(units.n, sizeof(*new_first));
        rc = new_first ? place_units(job, info, &units, new_first, out, err)
                       : drps_err_set(err, -ENOMEM, "no memory for %zu units", units.n);
    }
    if (rc == 0) rc = apply(job, info, &units, new_first, out, block_first, err);
    free(new_first);
    drps_units_destroy(&units);
    return rc;
}
