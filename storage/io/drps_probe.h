/*
 * What requests cost on a disk: measured with a scratch file of 64 MiB, past the page cache where
 * the file system allows it, and within some tenths of a second; a disk that seeks takes a second
 * or two. The best of some rounds counts, as others may be using the disk.
 */
#ifndef DRPS_STORAGE_IO_PROBE_H
#define DRPS_STORAGE_IO_PROBE_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "storage/io/drps_pace.h"

/* Nanoseconds of one request, four being under way; and the pace. */
struct drps_disk_times {
    uint32_t random_bytes; /* of a request far from the one before */
    uint32_t long_bytes;   /* of a request right behind the one before */
    double random_read_ns, random_write_ns, long_read_ns, long_write_ns;
    struct drps_disk_pace pace;
};

/* What the times come to. */
struct drps_disk_cost {
    double read_seek_ns, write_seek_ns; /* of a random request, less its bytes at the rate below;
                                           1 at least */
    double read_bps, write_bps;         /* bytes a second of long requests */
};

/* Costs from times. */
void drps_disk_cost_of(const struct drps_disk_times *times, struct drps_disk_cost *out);

/*
 * Measure the disk of `dir`, with random requests of block_bytes (rounded up to 4 KiB, 4 MiB at
 * most) and long ones of chunk_of(drps_disk_pace_seek_bytes()) bytes; chunk_of is
 * drps_relay_chunk(), and now is drps_clock_ns(), except in tests. Returns 0, or the error of the
 * scratch file, which is removed.
 */
DRPS_MUST_CHECK
int drps_disk_measure(const struct drps_io *io, const char *dir, uint64_t block_bytes,
                      uint64_t (*chunk_of)(uint64_t seek_bytes), uint64_t (*now)(void),
                      struct drps_disk_times *out, struct drps_err *err);

/* Measure with random requests of 4 KiB and long ones of 1 MiB. */
DRPS_MUST_CHECK
int drps_disk_probe(const struct drps_io *io, const char *dir, struct drps_disk_cost *out,
                    struct drps_err *err);

/*
 * The pace of the disk of `dir`: reads of 4, 16 and 64 KiB far apart, 32 under way, beside long
 * writes of as many bytes. Trials take turns for four tenths of a second, and the best of each
 * size counts, so that what others do meanwhile hardly shows. now is drps_clock_ns(), except
 * in tests. Errors as of drps_disk_measure().
 */
DRPS_MUST_CHECK
int drps_disk_measure_pace(const struct drps_io *io, const char *dir, int no_uring,
                           uint64_t (*now)(void), struct drps_disk_pace *out, struct drps_err *err);

#endif
