/* Rates as JSON, and seconds from them. */
#include "index/price/drps_speeds.h"

#include <math.h>

#include "base/folder/drps_manifest.h"

struct drps_epoch_seconds drps_speeds_price(const struct drps_speeds *r,
                                            const struct drps_epoch_work *work)
{
    const double read = (double)work->read_bytes, written = (double)work->written_bytes;
    const double reads = read > 0 ? (double)work->requests * read / (read + written) : 0;
    const double writes = (double)work->requests - reads;
    const double threads = work->threads ? work->threads : 1;
    struct drps_epoch_seconds s = {0};
    if (!drps_speeds_are_known(r)) return s;
    s.compute =
        1e-9 *
        ((double)work->samples * r->sample_ns + (double)work->test_samples * r->test_sample_ns) /
        threads;
    s.disk = read / r->read_bps + written / r->write_bps +
             1e-9 * (reads * r->read_request_ns + writes * r->write_request_ns);
    s.epoch = fmax(s.compute, s.disk);
    return s;
}

/* ---- JSON ---- */

void *drps_epoch_seconds_to_json(const struct drps_epoch_seconds *s)
{
    return json_pack("{s:f, s:f, s:f}", "compute", s->compute, "disk", s->disk, "epoch", s->epoch);
}

struct speed {
    const char *key;
    double *value;
};
enum { SPEEDS = 6 };

static void list_speeds(struct drps_speeds *r, struct speed out[SPEEDS])
{
    const struct speed all[SPEEDS] = {{"read_request_ns", &r->read_request_ns},
                                      {"write_request_ns", &r->write_request_ns},
                                      {"read_bytes_per_s", &r->read_bps},
                                      {"write_bytes_per_s", &r->write_bps},
                                      {"sample_ns", &r->sample_ns},
                                      {"test_sample_ns", &r->test_sample_ns}};
    for (size_t i = 0; i < SPEEDS; i++)
        out[i] = all[i];
}

void *drps_speeds_to_json(const struct drps_speeds *r)
{
    struct drps_speeds copy = *r;
    struct speed all[SPEEDS];
    json_t *j = json_object();
    list_speeds(&copy, all);
    for (size_t i = 0; i < SPEEDS; i++)
        drps_manifest_put(&j, all[i].key, json_real(*all[i].value));
    return j;
}

int drps_speeds_from_json(const void *object, const char *path, struct drps_speeds *out,
                          struct drps_err *err)
{
    static const double least = 1e-6, most = 1e18;
    struct speed all[SPEEDS];
    int rc = 0;
    *out = (struct drps_speeds){0};
    list_speeds(out, all);
    for (size_t i = 0; object && i < SPEEDS && rc == 0; i++) {
        rc = drps_manifest_get_real(object, all[i].key, path, all[i].value, err);
        if (rc == 0 && !(*all[i].value >= least && *all[i].value <= most))
            rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" of the speeds is %g", path,
                              all[i].key, *all[i].value);
    }
    return rc;
}
