/* Rows numbered by their homes (homes.h). */
#include "index/ranks/homes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/ranks/row_uses.h"

enum { COUNT_BYTES = 4, HOME_BYTES = 2, SLICE_SHARE = 8 /* of the memory */ };

_Static_assert((int)DRPS_PLAN_WORKERS_MAX <= (int)DRPS_HOMES_MACHINES, "every server has rows");

uint64_t drps_homes_bytes(const struct placement_job *job, const struct drps_plan_info *info)
{
    return info->rows * (COUNT_BYTES + HOME_BYTES) + 2 * (job->memory_bytes / SLICE_SHARE);
}

static uint32_t machines_of(const struct placement_job *job)
{
    const uint32_t end = job->first_worker + job->workers;
    return end > job->servers ? end : job->servers;
}

static int find_homes(const struct placement_job *job, const struct drps_plan_info *info,
                      uint16_t *home, struct drps_home_load *load, struct drps_err *err)
{
    const struct row_uses_job counting = {.io = job->io,
                                          .dir = job->from,
                                          .batches = job->batches,
                                          .records = job->records,
                                          .rows = (uint32_t)info->rows,
                                          .workers = job->workers,
                                          .first_machine = job->first_worker,
                                          .memory_bytes = job->memory_bytes / SLICE_SHARE,
                                          .ranks = job->ranks};
    const struct drps_homes_options options = {.machines = machines_of(job),
                                               .holders = job->servers,
                                               .first_stay = drps_plan_common_rows(info)};
    struct row_uses *uses = NULL;
    int rc = drps_row_uses_open(&counting, &uses, err);
    const struct drps_row_stream stream = {(uint32_t)info->rows, drps_row_uses_walk, uses};
    if (rc == 0) rc = drps_homes_place(&stream, &options, home, load, err);
    drps_row_uses_close(uses);
    return rc;
}

/* Sort rows by home, by counting. */
static void number(const struct placement_job *job, const struct drps_plan_info *info,
                   const uint16_t *home, const uint32_t *block_first, uint32_t *next,
                   uint32_t *new_id, uint32_t *block)
{
    uint32_t b = 0;
    for (uint32_t r = 0; r < info->rows; r++) {
        if (r >= block_first[b + 1]) b++;
        new_id[r] = next[home[r]]++;
        block[new_id[r]] = job->pages && r > 0 ? 1 : b;
    }
}

int drps_homes_number(const struct placement_job *job, const struct drps_plan_info *info,
                      const uint32_t *block_first, uint32_t *new_id, uint32_t *block,
                      struct owners *out, struct drps_err *err)
{
    uint16_t *home = drps_array_new(info->rows, sizeof(*home));
    struct drps_home_load *load = calloc(machines_of(job), sizeof(*load));
    uint32_t *next = calloc(job->servers, sizeof(*next));
    int rc =
        home && load && next
            ? find_homes(job, info, home, load, err)
            : drps_err_set(err, -ENOMEM, "no memory for the homes of %" PRIu64 " rows", info->rows);
    for (uint32_t m = 0; m < job->servers && rc == 0; m++) {
        next[m] = out->first[m];
        out->first[m + 1] = out->first[m] + (uint32_t)load[m].rows;
    }
    if (rc == 0) {
        number(job, info, home, block_first, next, new_id, block);
        drps_owners_separate(out);
    }
    free(home);
    free(load);
    free(next);
    return rc;
}
