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
    if (work->apart && drps_disk_pace_is_known(&r->pace))
        s.disk =
            drps_disk_pace_seconds(&r->pace, work->read_bytes + work->written_bytes, work->apart);
    else
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

#define PACE_BYTES "paced_bytes_per_s"
#define PACE_READ "paced_read_ns"

struct speed {
    const char *key;
    double *value;
};
enum { SPEEDS = 6 };
static const double least = 1e-6, most = 1e18;

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
    if (!drps_disk_pace_is_known(&r->pace)) return j;
    drps_manifest_put(&j, PACE_BYTES, json_real(r->pace.bps));
    drps_manifest_put(&j, PACE_READ, json_real(r->pace.request_ns));
    return j;
}

static int out_of_range(const char *path, const char *key, double value, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: \"%s\" of the speeds is %g", path, key, value);
}

/* A read may cost nothing beside its bytes. */
static int get_pace(const json_t *j, const char *path, struct drps_disk_pace *out,
                    struct drps_err *err)
{
    if (!json_object_get(j, PACE_BYTES) && !json_object_get(j, PACE_READ)) return 0;
    int rc = drps_manifest_get_real(j, PACE_BYTES, path, &out->bps, err);
    if (rc == 0) rc = drps_manifest_get_real(j, PACE_READ, path, &out->request_ns, err);
    if (rc == 0 && !(out->bps >= least && out->bps <= most))
        rc = out_of_range(path, PACE_BYTES, out->bps, err);
    if (rc == 0 && !(out->request_ns >= 0 && out->request_ns <= most))
        rc = out_of_range(path, PACE_READ, out->request_ns, err);
    return rc;
}

int drps_speeds_from_json(const void *object, const char *path, struct drps_speeds *out,
                          struct drps_err *err)
{
    struct speed all[SPEEDS];
    int rc = 0;
    *out = (struct drps_speeds){0};
    list_speeds(out, all);
    for (size_t i = 0; object && i < SPEEDS && rc == 0; i++) {
        rc = drps_manifest_get_real(object, all[i].key, path, all[i].value, err);
        if (rc == 0 && !(*all[i].value >= least && *all[i].value <= most))
            rc = out_of_range(path, all[i].key, *all[i].value, err);
    }
    return rc == 0 && object ? get_pace(object, path, &out->pace, err) : rc;
}
