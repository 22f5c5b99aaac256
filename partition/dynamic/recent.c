/*
 * Recent samples, least recently trained out first. Each is found by looking at all: training one
 * sample costs much more than passing over the numbers of some thousand.
 */
#include "partition/dynamic/recent.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

int drps_recent_new(const struct drps_recent_options *o, struct drps_recent **out,
                    struct drps_err *err)
{
    *out = NULL;
    if (!o->width || !o->units || !o->samples)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "recent samples: width %" PRIu32 ", %" PRIu32 " units, %" PRIu32
                            " samples: none may be 0",
                            o->width, o->units, o->samples);
    const uint64_t words = ((uint64_t)o->units + 63) / 64;
    const uint64_t each = 4 * (uint64_t)o->width + 8 * words + 16;
    uint64_t most = o->samples;
    if (o->memory_bytes && most > o->memory_bytes / each) most = o->memory_bytes / each;
    if (!most)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "recent samples: one takes %" PRIu64 " bytes, the limit is %" PRIu64,
                            each, o->memory_bytes);
    struct drps_recent *r = most <= SIZE_MAX / each ? calloc(1, sizeof(*r)) : NULL;
    if (!r) return drps_err_set(err, -ENOMEM, "recent samples");
    r->width = o->width;
    r->units = o->units;
    r->most = (uint32_t)most;
    r->words = words;
    r->sample = drps_array_new(most, sizeof(*r->sample));
    r->trained = drps_array_new(most, sizeof(*r->trained));
    r->x = drps_array_new(most, (size_t)o->width * sizeof(*r->x));
    r->changed = drps_array_new(most, words * sizeof(*r->changed));
    if (!r->sample || !r->trained || !r->x || !r->changed) {
        drps_recent_free(r);
        return drps_err_set(err, -ENOMEM, "%" PRIu64 " recent samples of %" PRIu64 " bytes", most,
                            each);
    }
    *out = r;
    return 0;
}

void drps_recent_free(struct drps_recent *r)
{
    if (!r) return;
    free(r->sample);
    free(r->trained);
    free(r->x);
    free(r->changed);
    free(r);
}

uint32_t drps_recent_count(const struct drps_recent *r)
{
    return r->count;
}

uint32_t drps_recent_most(const struct drps_recent *r)
{
    return r->most;
}

/* The place of a sample that was trained: its earlier one, a free one, or that of the oldest. */
static uint32_t place_of(struct drps_recent *r, uint64_t sample)
{
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->sample[i] == sample) return i;
        if (r->trained[i] < r->trained[oldest]) oldest = i;
    }
    return r->count < r->most ? r->count++ : oldest;
}

int drps_recent_add(struct drps_recent *r, uint64_t sample, const float *x, const uint32_t *changed,
                    size_t n, struct drps_err *err)
{
    for (uint32_t i = 0; i < r->width; i++)
        if (!isfinite(x[i]))
            return drps_err_set(err, -EINVAL, "sample %" PRIu64 ": value %" PRIu32 " is not finite",
                                sample, i);
    for (size_t i = 0; i < n; i++)
        if (changed[i] >= r->units)
            return drps_err_set(err, -EINVAL,
                                "sample %" PRIu64 ": unit %" PRIu32 ", there are %" PRIu32, sample,
                                changed[i], r->units);
    const size_t at = place_of(r, sample);
    uint64_t *bits = &r->changed[at * r->words];
    r->sample[at] = sample;
    r->trained[at] = ++r->clock;
    memcpy(&r->x[at * r->width], x, r->width * sizeof(*x));
    memset(bits, 0, r->words * sizeof(*bits));
    for (size_t i = 0; i < n; i++)
        bits[changed[i] / 64] |= (uint64_t)1 << changed[i] % 64;
    return 0;
}

static double distance_of(const float *a, const float *b, uint32_t width)
{
    double sum = 0;
    for (uint32_t i = 0; i < width; i++) {
        const double difference = (double)a[i] - (double)b[i];
        sum += difference * difference;
    }
    return sqrt(sum);
}

static int is_nearer(const struct drps_recent *r, const struct drps_near *a,
                     const struct drps_near *b)
{
    if (a->distance != b->distance) return a->distance < b->distance;
    return r->trained[a->at] > r->trained[b->at];
}

uint32_t drps_recent_nearest(const struct drps_recent *r, const float *x, uint32_t most,
                             struct drps_near *near_out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count && most; i++) {
        const struct drps_near one = {distance_of(x, &r->x[(size_t)i * r->width], r->width),
                                      r->sample[i], i};
        if (n == most && !is_nearer(r, &one, &near_out[n - 1])) continue;
        uint32_t k = n < most ? n++ : n - 1;
        for (; k && is_nearer(r, &one, &near_out[k - 1]); k--)
            near_out[k] = near_out[k - 1];
        near_out[k] = one;
    }
    return n;
}
