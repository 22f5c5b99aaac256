/* What a request costs on a disk; see drps_store.h. */
#include "storage/drps_store.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "storage/aio.h"

enum {
    SMALL = DRPS_AIO_ALIGN,
    LARGE = 1 << 20,
    DEPTH = 4,
    SMALL_REQUESTS = 64, /* more than a disk's or a throttle's buffer takes at once */
    LARGE_REQUESTS = 24,
    ROUNDS = 3,
    FILE_BYTES = 64 << 20,
    LEAST = 16 << 10,
    MOST = 4 << 20,
};

/* Time of n writes of so many bytes, `stride` apart. */
static int time_writes(struct drps_aio *aio, char *mem, uint32_t bytes, uint64_t stride, unsigned n,
                       uint64_t *ns_out, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    uint32_t tags[DEPTH];
    size_t done = 0;
    int rc = 0;
    for (unsigned i = 0; i < n && rc == 0; i++) {
        if (drps_aio_under_way(aio) == DEPTH) rc = drps_aio_wait(aio, 1, tags, DEPTH, &done, err);
        const struct drps_aio_op op = {.buf = mem + i % DEPTH * LARGE,
                                       .bytes = bytes,
                                       .offset = i * stride % FILE_BYTES,
                                       .write = 1,
                                       .tag = i};
        if (rc == 0) rc = drps_aio_submit(aio, &op, 1, err);
    }
    while (rc == 0 && drps_aio_under_way(aio))
        rc = drps_aio_wait(aio, 1, tags, DEPTH, &done, err);
    *ns_out = drps_clock_ns() - start;
    return rc;
}

/* The best of some rounds: others may be using the disk. */
static int measure(struct drps_aio *aio, char *mem, uint64_t *bytes_out, struct drps_err *err)
{
    uint64_t small = UINT64_MAX, large = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ns;
        int rc = time_writes(aio, mem, LARGE, LARGE, LARGE_REQUESTS, &ns, err);
        if (rc == 0 && ns < large) large = ns;
        if (rc == 0) rc = time_writes(aio, mem, SMALL, 3 * LARGE + SMALL, SMALL_REQUESTS, &ns, err);
        if (rc < 0) return rc;
        if (ns < small) small = ns;
    }
    const double rate = (double)LARGE * LARGE_REQUESTS / (double)(large + 1);
    const double bytes = rate * (double)small / SMALL_REQUESTS;
    *bytes_out = bytes < LEAST ? LEAST : bytes > MOST ? MOST : (uint64_t)bytes;
    return 0;
}

int drps_relay_probe(const struct drps_io *io, const char *dir, int no_uring,
                     uint64_t *seek_bytes_out, struct drps_err *err)
{
    char *path = drps_path_join(dir, "probe");
    char *mem = drps_pages_new((size_t)DEPTH * LARGE);
    struct drps_aio *aio = NULL;
    int rc = path && mem ? 0 : drps_err_set(err, -ENOMEM, "no memory to measure the disk");
    const struct drps_aio_config config = {.io = io,
                                           .path = path,
                                           .file_bytes = FILE_BYTES,
                                           .buffers = mem,
                                           .buffers_bytes = (size_t)DEPTH * LARGE,
                                           .depth = DEPTH,
                                           .threads_only = no_uring};
    if (rc == 0) rc = drps_aio_open(&config, &aio, err);
    if (rc == 0) {
        rc = measure(aio, mem, seek_bytes_out, err);
        drps_aio_close(aio);
        const int gone = drps_io_remove_tree(io, path, rc == 0 ? err : NULL);
        if (rc == 0) rc = gone;
    }
    drps_pages_free(mem, (size_t)DEPTH * LARGE);
    free(path);
    return rc;
}
