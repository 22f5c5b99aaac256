/* A line through what was measured, and seconds by it; drps_pace.h has the idea. */
#include "storage/io/drps_pace.h"

enum { SEEK_LEAST = 4 << 10, SEEK_MOST = 4 << 20 };

/* Weighted sums for the line y = a + b x: x are bytes both ways, y nanoseconds, and a trial weighs
 * 1 / y^2. */
struct sums {
    double w, x, y, xx, xy;
};

static struct sums add_up(const struct drps_disk_trial *trials, size_t n)
{
    struct sums s = {0};
    for (size_t i = 0; i < n; i++) {
        const double x = 2.0 * trials[i].bytes, y = trials[i].ns, w = 1 / (y * y);
        s.w += w;
        s.x += w * x;
        s.y += w * y;
        s.xx += w * x * x;
        s.xy += w * x * y;
    }
    return s;
}

/* Nanoseconds a byte of the largest trial. */
static double largest_byte_ns(const struct drps_disk_trial *trials, size_t n)
{
    const struct drps_disk_trial *largest = trials;
    for (size_t i = 1; i < n; i++)
        if (trials[i].bytes > largest->bytes) largest = &trials[i];
    return largest->ns / (2.0 * largest->bytes);
}

void drps_disk_pace_fit(const struct drps_disk_trial *trials, size_t n, struct drps_disk_pace *out)
{
    const struct sums s = add_up(trials, n);
    double byte_ns = (s.w * s.xy - s.x * s.y) / (s.w * s.xx - s.x * s.x);
    double request_ns = (s.y - byte_ns * s.x) / s.w;
    if (request_ns < 0) {
        request_ns = 0;
        byte_ns = s.xy / s.xx;
    } else if (!(byte_ns > 0)) {
        byte_ns = largest_byte_ns(trials, n);
        request_ns = (s.y - byte_ns * s.x) / s.w;
        if (request_ns < 0) request_ns = 0;
    }
    *out = (struct drps_disk_pace){.bps = 1e9 / byte_ns, .request_ns = request_ns};
}

double drps_disk_pace_seconds(const struct drps_disk_pace *p, uint64_t bytes, uint64_t reads)
{
    return (double)bytes / p->bps + 1e-9 * (double)reads * p->request_ns;
}

uint64_t drps_disk_pace_seek_bytes(const struct drps_disk_pace *p)
{
    const double bytes = 1e-9 * p->request_ns * p->bps;
    return bytes < SEEK_LEAST ? SEEK_LEAST : bytes > SEEK_MOST ? SEEK_MOST : (uint64_t)bytes;
}
