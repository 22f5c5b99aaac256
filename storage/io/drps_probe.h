/*
 * What requests cost on a disk: measured with a scratch file of 64 MiB, four requests under way,
 * past the page cache where the file system allows it; some hundredths of a second, on a disk that
 * seeks some tenths. The best of three rounds counts.
 */
#ifndef DRPS_STORAGE_IO_PROBE_H
#define DRPS_STORAGE_IO_PROBE_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

/* Nanoseconds of one request, four being under way. */
struct drps_disk_times {
    uint32_t random_bytes; /* of a request far from the one before */
    uint32_t long_bytes;   /* of a request right behind the one before */
    double random_read_ns, random_write_ns, long_read_ns, long_write_ns;
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
 * most) and long ones of chunk_of(drps_disk_seek_bytes()) bytes; chunk_of is drps_relay_chunk(),
 * and now is drps_clock_ns(), except in tests. Returns 0, or the error of the scratch file, which
 * is removed.
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
 * The bytes that the disk of `dir` would move in the time of one more request: its sequential rate
 * times its time for a small request elsewhere with 32 under way, both reading, as a relay store's
 * requests apart are reads of chunks. Some 50 KiB on a solid-state disk, a MiB on a disk that
 * seeks.
 */
DRPS_MUST_CHECK
int drps_disk_seek_bytes(const struct drps_io *io, const char *dir, int no_uring,
                         uint64_t *seek_bytes_out, struct drps_err *err);

#endif
