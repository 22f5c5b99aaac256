/* What requests cost on a disk, and bytes. */
#include "storage/drps_probe.h"

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

/* A scratch file and what is written from and read into. */
struct probe {
    const struct drps_io *io;
    char *path; /* own */
    char *mem;  /* own: [DEPTH][LARGE] */
    struct drps_aio *aio;
};

/* n requests, all alike. */
struct requests {
    unsigned n, write;
    uint32_t bytes;
    uint64_t stride; /* from one to the next, wrapping */
};
static const struct requests fill = {FILE_BYTES / LARGE, 1, LARGE, LARGE};
static const struct requests small_writes = {SMALL_REQUESTS, 1, SMALL, 3 * LARGE + SMALL};
static const struct requests small_reads = {SMALL_REQUESTS, 0, SMALL, 3 * LARGE + SMALL};
static const struct requests large_writes = {LARGE_REQUESTS, 1, LARGE, LARGE};
static const struct requests large_reads = {LARGE_REQUESTS, 0, LARGE, LARGE};

static int run(struct probe *p, const struct requests *r, uint64_t *ns_out, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    uint32_t tags[DEPTH];
    size_t done = 0;
    int rc = 0;
    for (unsigned i = 0; i < r->n && rc == 0; i++) {
        if (drps_aio_under_way(p->aio) == DEPTH)
            rc = drps_aio_wait(p->aio, 1, tags, DEPTH, &done, err);
        const struct drps_aio_op op = {.buf = p->mem + i % DEPTH * LARGE,
                                       .bytes = r->bytes,
                                       .offset = i * r->stride % FILE_BYTES,
                                       .write = (int)r->write,
                                       .tag = i};
        if (rc == 0) rc = drps_aio_submit(p->aio, &op, 1, err);
    }
    while (rc == 0 && drps_aio_under_way(p->aio))
        rc = drps_aio_wait(p->aio, 1, tags, DEPTH, &done, err);
    *ns_out = drps_clock_ns() - start;
    return rc;
}

/* Nanoseconds of one: the best of some rounds, as others may be using the disk. */
static int measure(struct probe *p, const struct requests *r, double *ns_out, struct drps_err *err)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t ns;
        int rc = run(p, r, &ns, err);
        if (rc < 0) return rc;
        if (ns < best) best = ns;
    }
    *ns_out = (double)(best + 1) / r->n;
    return 0;
}

static int probe_open(struct probe *p, const struct drps_io *io, const char *dir, int no_uring,
                      struct drps_err *err)
{
    *p = (struct probe){.io = io,
                        .path = drps_path_join(dir, "probe"),
                        .mem = drps_pages_new((size_t)DEPTH * LARGE)};
    if (!p->path || !p->mem) return drps_err_set(err, -ENOMEM, "no memory to measure the disk");
    const struct drps_aio_config config = {.io = io,
                                           .path = p->path,
                                           .file_bytes = FILE_BYTES,
                                           .buffers = p->mem,
                                           .buffers_bytes = (size_t)DEPTH * LARGE,
                                           .depth = DEPTH,
                                           .threads_only = no_uring};
    return drps_aio_open(&config, &p->aio, err);
}

/* Returns rc, or if that is 0 what removing the file gave. */
static int probe_close(struct probe *p, int rc, struct drps_err *err)
{
    if (p->aio) {
        drps_aio_close(p->aio);
        const int gone = drps_io_remove_tree(p->io, p->path, rc == 0 ? err : NULL);
        if (rc == 0) rc = gone;
    }
    drps_pages_free(p->mem, (size_t)DEPTH * LARGE);
    free(p->path);
    return rc;
}

int drps_relay_probe(const struct drps_io *io, const char *dir, int no_uring,
                     uint64_t *seek_bytes_out, struct drps_err *err)
{
    struct probe p;
    double small = 0, large = 0;

    int rc = probe_open(&p, io, dir, no_uring, err);
    if (rc == 0) rc = measure(&p, &large_writes, &large, err);
    if (rc == 0) rc = measure(&p, &small_writes, &small, err);
    if (rc == 0) {
        const double bytes = LARGE / large * small;
        *seek_bytes_out = bytes < LEAST ? LEAST : bytes > MOST ? MOST : (uint64_t)bytes;
    }
    return probe_close(&p, rc, err);
}

/* What one request costs beside its bytes, and how long a byte takes. */
static void fit(double small, double large, double *seek_ns_out, double *byte_ns_out)
{
    *byte_ns_out = large / LARGE;
    *seek_ns_out = small - *byte_ns_out * SMALL;
    if (*seek_ns_out < 1) *seek_ns_out = 1;
}

int drps_disk_probe(const struct drps_io *io, const char *dir, struct drps_disk_cost *out,
                    struct drps_err *err)
{
    struct probe p;
    uint64_t ns;
    double small_w = 0, large_w = 0, small_r = 0, large_r = 0, seek_w, seek_r, byte_w, byte_r;

    *out = (struct drps_disk_cost){0};
    int rc = probe_open(&p, io, dir, 0, err);
    if (rc == 0) rc = run(&p, &fill, &ns, err); /* what was never written is not read from disk */
    if (rc == 0) rc = measure(&p, &large_writes, &large_w, err);
    if (rc == 0) rc = measure(&p, &large_reads, &large_r, err);
    if (rc == 0) rc = measure(&p, &small_writes, &small_w, err);
    if (rc == 0) rc = measure(&p, &small_reads, &small_r, err);
    rc = probe_close(&p, rc, err);
    if (rc < 0) return rc;
    fit(small_w, large_w, &seek_w, &byte_w);
    fit(small_r, large_r, &seek_r, &byte_r);
    *out = (struct drps_disk_cost){.read_seek_ns = seek_r,
                                   .write_seek_ns = seek_w,
                                   .read_bps = 1e9 / byte_r,
                                   .write_bps = 1e9 / byte_w};
    return 0;
}
