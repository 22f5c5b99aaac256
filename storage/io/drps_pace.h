/*
 * How long a disk takes for an epoch of a relay store: reads far apart, many under way, beside long
 * writes of as many bytes. By a line: bytes take their time, and each read some more. Pure
 * functions; drps_probe.h measures.
 */
#ifndef DRPS_STORAGE_IO_PACE_H
#define DRPS_STORAGE_IO_PACE_H

#include <stddef.h>
#include <stdint.h>

/* All 0: not measured. */
struct drps_disk_pace {
    double bps;        /* bytes a second, read and written together */
    double request_ns; /* of a read, beside its bytes; not negative */
};

static inline int drps_disk_pace_is_known(const struct drps_disk_pace *p)
{
    return p->bps > 0;
}

/* A read of `bytes` and as many bytes of long writes together took `ns`, in the mean over many. */
struct drps_disk_trial {
    uint32_t bytes; /* not 0 */
    double ns;      /* above 0 */
};

/*
 * Fit a line to trials [n] of different sizes, n at least 2: the one of least squares of errors,
 * each as a share of what was measured. Where its request_ns would be negative, the best line
 * through 0; where it would fall with bytes, all trials by the pace of the largest one's bytes.
 */
void drps_disk_pace_fit(const struct drps_disk_trial *trials, size_t n, struct drps_disk_pace *out);

/* Seconds for so many bytes, read and written together, by so many reads. Of a pace that is known.
 */
double drps_disk_pace_seconds(const struct drps_disk_pace *p, uint64_t bytes, uint64_t reads);

/* The bytes that the disk moves in the time of one more read; 4 KiB to 4 MiB. */
uint64_t drps_disk_pace_seek_bytes(const struct drps_disk_pace *p);

#endif
