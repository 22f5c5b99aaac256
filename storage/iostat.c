/* Adding up counters and latencies, and asking the kernel for its own. */
#include "storage/drps_iostat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Below 1 us everything is in bucket 0; the last bucket, from 2^(63/4) us = 55 ms on, has no upper
 * end. */
static unsigned latency_bucket(uint64_t ns)
{
    if (ns < 1000) return 0;
    double b = 4.0 * log2((double)ns * 1e-3);
    return b < DRPS_LATENCY_BUCKETS - 1 ? (unsigned)b : DRPS_LATENCY_BUCKETS - 1;
}

void drps_latency_add(struct drps_latency *l, uint64_t ns)
{
    l->count[latency_bucket(ns)]++;
    l->n++;
    l->sum_ns += ns;
    if (ns > l->max_ns) l->max_ns = ns;
}

static void merge_latency(struct drps_latency *l, const struct drps_latency *other)
{
    for (size_t b = 0; b < DRPS_LATENCY_BUCKETS; b++)
        l->count[b] += other->count[b];
    l->n += other->n;
    l->sum_ns += other->sum_ns;
    if (other->max_ns > l->max_ns) l->max_ns = other->max_ns;
}

double drps_latency_quantile_us(const struct drps_latency *l, double q)
{
    if (!l->n) return 0;
    double max_us = (double)l->max_ns * 1e-3;
    double want = ceil(q * (double)l->n);
    uint64_t below = 0;
    for (unsigned b = 0; b < DRPS_LATENCY_BUCKETS - 1; b++) {
        below += l->count[b];
        if (!below || (double)below < want) continue;
        double edge = exp2((b + 1) / 4.0); /* a bucket's upper end: at most 19 % too high */
        return edge < max_us ? edge : max_us;
    }
    return max_us;
}

void drps_iostat_merge(struct drps_iostat *s, const struct drps_iostat *other)
{
    s->reads += other->reads;
    s->writes += other->writes;
    s->read_bytes += other->read_bytes;
    s->written_bytes += other->written_bytes;
    s->read_calls += other->read_calls;
    s->write_calls += other->write_calls;
    s->seeks += other->seeks;
    s->queue_depth_sum += other->queue_depth_sum;
    merge_latency(&s->read_latency, &other->read_latency);
    merge_latency(&s->write_latency, &other->write_latency);
}

void drps_process_io_now(struct drps_process_io *out)
{
    memset(out, 0, sizeof(*out));
    FILE *f =
        fopen("/proc/self/io", "r"); /* a counter of the kernel's, not a file of ours: no drps_io */
    if (!f) return;
    char line[128];
    while (fgets(line, sizeof(line), f)) {
        unsigned long long v;
        if (sscanf(line, "read_bytes: %llu", &v) == 1) out->read_bytes = v;
        if (sscanf(line, "write_bytes: %llu", &v) == 1) out->written_bytes = v;
    }
    (void)fclose(f); /* only read from */
}
