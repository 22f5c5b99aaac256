/* Means over epochs, and JSON of them. */
#include "index/price/drps_limit.h"

#include <math.h>

#include "base/folder/drps_manifest.h"

static double mean_with(double mean, double value, uint64_t n)
{
    return mean + (value - mean) / (double)n;
}

void drps_limit_add(struct drps_epoch_limit *limit, const struct drps_epoch_spent *spent)
{
    struct drps_epoch_seconds *least = &limit->least;
    if (!drps_disk_pace_is_known(&limit->pace)) return;
    const double disk = drps_disk_pace_seconds(&limit->pace, spent->bytes, spent->reads);
    const double compute = fmax(spent->seconds - spent->waited, 0);
    const uint64_t n = ++limit->epochs;
    least->disk = mean_with(least->disk, disk, n);
    least->compute = mean_with(least->compute, compute, n);
    least->epoch = fmax(least->disk, least->compute);
    limit->measured = mean_with(limit->measured, spent->seconds, n);
}

double drps_limit_reached(const struct drps_epoch_limit *limit)
{
    if (!(limit->measured > 0)) return 0;
    return fmin(limit->least.epoch / limit->measured, 1);
}

void *drps_limit_to_json(const struct drps_epoch_limit *limit)
{
    json_t *j = drps_epoch_seconds_to_json(&limit->least);
    drps_manifest_put(&j, "measured", json_real(limit->measured));
    drps_manifest_put(&j, "reached", json_real(drps_limit_reached(limit)));
    drps_manifest_put(&j, "epochs", json_integer((json_int_t)limit->epochs));
    drps_manifest_put(&j, "bytes_per_s", json_real(limit->pace.bps));
    drps_manifest_put(&j, "request_seconds", json_real(1e-9 * limit->pace.request_ns));
    drps_manifest_put(&j, "by_plan", json_boolean(limit->by_plan));
    return j;
}
