/*
 * Rows of a plan for several workers get their servers and new placed ids that follow
 * (drps_placement.h), one by one (homes.h) or in units (units.h); then blocks are cut and the files
 * renumbered.
 */
#include "index/ranks/drps_placement.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/blocks/drps_renumber.h"
#include "index/ranks/homes.h"
#include "index/ranks/units.h"
#include "index/swap/drps_swap.h"

/* What the new number of a row and its blocks take. */
enum { NUMBER_BYTES = 12 };

int drps_placement_renumbers(const char *algo)
{
    return algo && strcmp(algo, "range") != 0 && strcmp(algo, "counts") != 0;
}

int drps_placement_follows_samples(const char *algo)
{
    return drps_placement_renumbers(algo) && strcmp(algo, "hash") != 0;
}

/* Whether rows get homes one by one, not with the unit that they are in. */
static int has_homes(const char *algo)
{
    return strcmp(algo, "auto") == 0;
}

static int check_memory(const struct placement_job *job, const struct drps_plan_info *info,
                        struct drps_err *err)
{
    char need[32];
    const uint64_t bytes =
        info->rows * NUMBER_BYTES +
        (has_homes(job->algo) ? drps_homes_bytes(job, info) : drps_units_bytes(job, info));
    if (bytes <= job->memory_bytes) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "partition %s: placing %" PRIu64 " rows on %" PRIu32
                        " machines may take %s; raise the memory limit, or use the "
                        "partition range",
                        job->algo, info->rows, job->servers,
                        drps_size_format(bytes, need, sizeof(need)));
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

static int apply(const struct placement_job *job, struct drps_plan_info *info,
                 const uint32_t *new_id, const uint32_t *block, const struct owners *owners,
                 uint32_t **block_first, struct drps_err *err)
{
    uint32_t *first = drps_array_new(info->rows + 1, sizeof(*first));
    if (!first) return drps_err_set(err, -ENOMEM, "no memory for the new numbers of rows");
    info->blocks = cut_blocks(block, owners, job->block_rows, first);
    free(*block_first);
    *block_first = first;
    int rc = drps_renumber_some(job->io, job->from, job->to, info, job->records,
                                !job->ranks || !job->ranks->rank, new_id, err);
    if (rc == 0) drps_plan_mix_tables(info);
    return rc;
}

int drps_placement_make(const struct placement_job *job, struct drps_plan_info *info,
                        uint32_t **block_first, struct owners *out, struct drps_err *err)
{
    int rc = drps_owners_begin((uint32_t)info->rows, job->servers, out, err);
    if (rc == 0) rc = check_memory(job, info, err);
    if (rc < 0) return rc;
    uint32_t *new_id = drps_array_new(info->rows, sizeof(*new_id));
    uint32_t *block = drps_array_new(info->rows, sizeof(*block));
    if (!new_id || !block)
        rc = drps_err_set(err, -ENOMEM, "no memory for the new numbers of rows");
    else if (has_homes(job->algo))
        rc = drps_homes_number(job, info, *block_first, new_id, block, out, err);
    else
        rc = drps_units_number(job, info, *block_first, new_id, block, out, err);
    if (rc == 0) rc = apply(job, info, new_id, block, out, block_first, err);
    free(new_id);
    free(block);
    return rc;
}
