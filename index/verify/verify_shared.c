/* What the checks of a plan share: numbers of plan.json, opening files, and progress. */
#include "index/verify/verify.h"

#include "base/drps_checksum.h"

#include <inttypes.h>
#include <string.h>

void drps_verify_numbers(struct verify *v, const struct verify_number *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (numbers[i].counted == numbers[i].says || (numbers[i].later && !numbers[i].says))
            continue;
        drps_findings_add(v->found,
                          "%s/" DRPS_FILE_MANIFEST ": %s is %" PRIu64 ", the files have %" PRIu64,
                          v->plan->dir, numbers[i].key, numbers[i].says, numbers[i].counted);
    }
}

int drps_verify_open(struct verify *v, const char *name, struct steps **st_out,
                     struct drps_err *err)
{
    size_t i = 0;
    while (strcmp(drps_plan_files[i].name, name) != 0)
        i++;
    return drps_steps_open(v->io, v->plan->dir, name, drps_plan_files[i].kind,
                           drps_plan_files[i].per_step ? v->steps : v->info->windows,
                           VERIFY_BUFFER_BYTES, st_out, err);
}

void drps_verify_reach(struct verify *v, uint64_t done, uint64_t total)
{
    const double part = total ? (double)done / (double)total : 1;
    drps_findings_reach(v->found, v->base + (uint64_t)(part * (double)v->share));
}

uint64_t drps_verify_bytes(const struct drps_plan *plan, size_t i)
{
    const uint64_t most = UINT64_C(1) << 44;
    uint64_t bytes = 0, checksum;
    if (drps_plan_listed(plan, drps_plan_files[i].name, &bytes, &checksum, NULL) < 0) return 0;
    return bytes < most ? bytes : most;
}

uint64_t drps_verify_slices(uint64_t n)
{
    return n / VERIFY_SLICE_ROWS + (n % VERIFY_SLICE_ROWS != 0);
}

void drps_verify_chain(uint64_t *hash, uint64_t number)
{
    const uint64_t both[2] = {*hash, number};
    *hash = drps_checksum(both, sizeof(both));
}
