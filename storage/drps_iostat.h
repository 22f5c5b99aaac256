/* Counters of disk I/O: how many operations and bytes, how many of them apart, and how long they
 * took. */
#ifndef DRPS_IOSTAT_H
#define DRPS_IOSTAT_H

#include <stdint.h>

enum { DRPS_LATENCY_BUCKETS = 64 };

/* Latencies in buckets of a quarter octave from 1 us: bucket b holds [2^(b/4), 2^((b+1)/4)) us. */
struct drps_latency {
    uint64_t count[DRPS_LATENCY_BUCKETS];
    uint64_t n;
    uint64_t sum_ns;
    uint64_t max_ns;
};

void drps_latency_add(struct drps_latency *l, uint64_t ns);
/* Returns the latency, in microseconds, that share q (0..1) of the operations did not exceed; 0
 * when there are none. */
double drps_latency_quantile_us(const struct drps_latency *l, double q);

/* What was done so far. */
struct drps_iostat {
    uint64_t reads, writes; /* values or chunks moved */
    uint64_t read_bytes, written_bytes;
    uint64_t read_calls, write_calls; /* calls of the engine or the kernel */
    uint64_t seeks; /* reads that did not begin where the one before ended; of asynchronous files
                       writes, too */
    uint64_t queue_depth_sum; /* operations under way, summed over read calls */
    struct drps_latency read_latency, write_latency; /* of one call */
};

void drps_iostat_merge(struct drps_iostat *s, const struct drps_iostat *other);

/* Bytes that the kernel says this process moved to and from block devices (/proc/self/io); 0 where
 * unknown. */
struct drps_process_io {
    uint64_t read_bytes, written_bytes;
};
void drps_process_io_now(struct drps_process_io *out);

/* How a key-value engine moves its values, where it says so; else zero. */
struct drps_kv_device {
    struct drps_iostat io; /* requests, and all bytes that they moved, those between values too */
    uint64_t gap_bytes;    /* reads go through gaps of at most so many */
    uint32_t sector;       /* bytes: requests are multiples of it */
    char io_engine[16];
    int direct;          /* past the page cache */
    char io_remark[128]; /* why not as wished; empty: as wished */
};

#endif
