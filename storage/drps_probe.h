/*
 * What requests cost on a disk: measured with a scratch file of 64 MiB, four requests under way,
 * past the page cache where the file system allows it; some hundredths of a second, on a disk that
 * seeks some tenths. The best of three rounds counts.
 */
#ifndef DRPS_PROBE_H
#define DRPS_PROBE_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

/* Small requests (4 KiB) far apart, long ones (1 MiB) one behind the other. */
struct drps_disk_cost {
    double read_seek_ns, write_seek_ns; /* of a small request, less its bytes at the rate below */
    double read_bps, write_bps;         /* bytes a second of long requests */
};

DRPS_MUST_CHECK
int drps_disk_probe(const struct drps_io *io, const char *dir, struct drps_disk_cost *out,
                    struct drps_err *err);

/*
 * The bytes that the disk of `dir` would move in the time of one more request: its sequential rate
 * times its time for a small request elsewhere, both writing. Some 50 KiB on a solid-state disk, a
 * MiB on a disk that seeks.
 */
DRPS_MUST_CHECK
int drps_relay_probe(const struct drps_io *io, const char *dir, int no_uring,
                     uint64_t *seek_bytes_out, struct drps_err *err);

#endif
