/* Requests of several kinds on a scratch file, timed; drps_probe.h has the idea. It needs
 * storage/io/aio. */
#include "storage/io/drps_probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "storage/io/drps_aio.h"

enum {
    SMALL = DRPS_AIO_ALIGN,
    LARGE = 1 << 20,
    DEPTH = 4,
    DEEP = 32,           /* as a relay store reads chunks */
    SMALL_REQUESTS = 64, /* more than a disk's or a throttle's buffer takes at once */
    LARGE_REQUESTS = 24,
    ROUNDS = 3,
    FILE_BYTES = 64 << 20,
    LEAST = 16 << 10,
    MOST = 4 << 20,
    MEM_BYTES = DEPTH * MOST, /* the largest requests; more of small ones */
};

/* A scratch file and what is written from and read into. */
struct probe {
    const struct drps_io *io;
    char *path; /* own */
    char *mem;  /* own: [MEM_BYTES] */
    struct drps_aio *aio;
    uint64_t (*now)(void);
};

/* n requests, all alike, `depth` under way; `apart`: far from one another, else one behind the
 * other. */
struct requests {
    unsigned n, depth, write, apart;
    uint32_t bytes;
};
static const struct requests fill_all = {FILE_BYTES / LARGE, DEPTH, 1, 0, LARGE};

/* Returns where request i lies: at a multiple of its bytes, and no two lie alike before all have
 * been there. */
static uint64_t offset_of(const struct requests *r, unsigned i)
{
    const uint64_t positions = FILE_BYTES / r->bytes;
    const uint64_t step = r->apart ? 3 * LARGE / r->bytes + 1 : 1;
    return i * step % positions * r->bytes;
}

static int run(struct probe *p, const struct requests *r, uint64_t *ns_out, struct drps_err *err)
{
    const uint64_t start = p->now();
    uint32_t free[DEEP]; /* buffers, which are the tags of requests */
    size_t n = r->depth;
    int rc = 0;
    for (uint32_t i = 0; i < r->depth; i++)
        free[i] = i;
    for (unsigned i = 0; i < r->n && rc == 0; i++) {
        rc = drps_io_stopped(p->io, err);
        if (rc == 0 && !n) rc = drps_aio_wait(p->aio, 1, free, DEEP, &n, err);
        if (rc < 0) break;
        const uint32_t buffer = free[--n];
        const struct drps_aio_op op = {.buf = p->mem + (size_t)buffer * r->bytes,
                                       .bytes = r->bytes,
                                       .offset = offset_of(r, i),
                                       .write = (int)r->write,
                                       .tag = buffer};
        rc = drps_aio_submit(p->aio, &op, 1, err);
    }
    while (rc == 0 && drps_aio_under_way(p->aio))
        rc = drps_aio_wait(p->aio, 1, free, DEEP, &n, err);
    *ns_out = p->now() - start;
    return rc;
}

/* Nanoseconds of one request: the best of some rounds, as others may be using the disk. */
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
    char name[32]; /* others may measure at the same time */
    (void)snprintf(name, sizeof(name), "probe-%ld", (long)getpid());
    *p = (struct probe){.io = io,
                        .path = drps_path_join(dir, name),
                        .now = drps_clock_ns,
                        .mem = drps_pages_new(MEM_BYTES)};
    if (!p->path || !p->mem) return drps_err_set(err, -ENOMEM, "no memory to measure the disk");
    const struct drps_aio_config config = {.io = io,
                                           .path = p->path,
                                           .file_bytes = FILE_BYTES,
                                           .buffers = p->mem,
                                           .buffers_bytes = MEM_BYTES,
                                           .depth = DEEP,
                                           .threads_only = no_uring};
    return drps_aio_open(&config, &p->aio, err);
}

/* Returns rc, or if that is 0 what removing the file gave. */
static int probe_close(struct probe *p, int rc, struct drps_err *err)
{
    if (p->aio) {
        drps_aio_discard(p->aio);
        const int gone = drps_io_remove_tree(p->io, p->path, rc == 0 ? err : NULL);
        if (rc == 0) rc = gone;
    }
    drps_pages_free(p->mem, MEM_BYTES);
    free(p->path);
    return rc;
}

static int measure_random(struct probe *p, int write, uint32_t bytes, double *ns_out,
                          struct drps_err *err)
{
    const struct requests r = {SMALL_REQUESTS, DEPTH, (unsigned)write, 1, bytes};
    return measure(p, &r, ns_out, err);
}

static int measure_long(struct probe *p, int write, uint32_t bytes, double *ns_out,
                        struct drps_err *err)
{
    const uint32_t n = LARGE / bytes * LARGE_REQUESTS; /* as many bytes, if they are smaller */
    const struct requests r = {n > LARGE_REQUESTS ? n : LARGE_REQUESTS, DEPTH, (unsigned)write, 0,
                               bytes};
    return measure(p, &r, ns_out, err);
}

/* Fill the file: what was never written is not read from disk. */
static int fill(struct probe *p, struct drps_err *err)
{
    uint64_t ns;
    return run(p, &fill_all, &ns, err);
}

static int measure_seek_bytes(struct probe *p, uint64_t *seek_bytes_out, struct drps_err *err)
{
    static const struct requests apart = {SMALL_REQUESTS, DEEP, 0, 1, SMALL};
    double small = 0, large = 0;
    int rc = measure_long(p, 0, LARGE, &large, err);
    if (rc == 0) rc = measure(p, &apart, &small, err);
    if (rc < 0) return rc;
    const double bytes = LARGE / large * small;
    *seek_bytes_out = bytes < LEAST ? LEAST : bytes > MOST ? MOST : (uint64_t)bytes;
    return 0;
}

int drps_disk_seek_bytes(const struct drps_io *io, const char *dir, int no_uring,
                         uint64_t *seek_bytes_out, struct drps_err *err)
{
    struct probe p;
    int rc = probe_open(&p, io, dir, no_uring, err);
    if (rc == 0) rc = fill(&p, err);
    if (rc == 0) rc = measure_seek_bytes(&p, seek_bytes_out, err);
    return probe_close(&p, rc, err);
}

/* Time reads and writes of the sizes that are set, of a filled file. */
static int measure_times(struct probe *p, struct drps_disk_times *t, struct drps_err *err)
{
    int rc = measure_long(p, 1, t->long_bytes, &t->long_write_ns, err);
    if (rc == 0) rc = measure_long(p, 0, t->long_bytes, &t->long_read_ns, err);
    if (rc == 0) rc = measure_random(p, 1, t->random_bytes, &t->random_write_ns, err);
    if (rc == 0) rc = measure_random(p, 0, t->random_bytes, &t->random_read_ns, err);
    return rc;
}

int drps_disk_measure(const struct drps_io *io, const char *dir, uint64_t block_bytes,
                      uint64_t (*chunk_of)(uint64_t seek_bytes), uint64_t (*now)(void),
                      struct drps_disk_times *out, struct drps_err *err)
{
    const uint64_t block = (block_bytes + SMALL - 1) / SMALL * SMALL;
    struct probe p;
    uint64_t seek_bytes = 0;

    *out = (struct drps_disk_times){.random_bytes = block < SMALL  ? SMALL
                                                    : block > MOST ? MOST
                                                                   : (uint32_t)block};
    int rc = probe_open(&p, io, dir, 0, err);
    p.now = now;
    if (rc == 0) rc = fill(&p, err);
    if (rc == 0) rc = measure_seek_bytes(&p, &seek_bytes, err);
    out->long_bytes = (uint32_t)chunk_of(seek_bytes) / SMALL * SMALL;
    if (rc == 0) rc = measure_times(&p, out, err);
    return probe_close(&p, rc, err);
}

/* What one request costs beside its bytes, and how long a byte takes. */
static void fit(const struct drps_disk_times *t, double random_ns, double long_ns,
                double *seek_ns_out, double *bps_out)
{
    const double byte_ns = long_ns / t->long_bytes;
    const double seek_ns = random_ns - byte_ns * t->random_bytes;
    *seek_ns_out = seek_ns < 1 ? 1 : seek_ns;
    *bps_out = 1e9 / byte_ns;
}

void drps_disk_cost_of(const struct drps_disk_times *t, struct drps_disk_cost *out)
{
    fit(t, t->random_read_ns, t->long_read_ns, &out->read_seek_ns, &out->read_bps);
    fit(t, t->random_write_ns, t->long_write_ns, &out->write_seek_ns, &out->write_bps);
}

int drps_disk_probe(const struct drps_io *io, const char *dir, struct drps_disk_cost *out,
                    struct drps_err *err)
{
    struct drps_disk_times times = {.random_bytes = SMALL, .long_bytes = LARGE};
    struct probe p;

    *out = (struct drps_disk_cost){0};
    int rc = probe_open(&p, io, dir, 0, err);
    if (rc == 0) rc = fill(&p, err);
    if (rc == 0) rc = measure_times(&p, &times, err);
    rc = probe_close(&p, rc, err);
    if (rc == 0) drps_disk_cost_of(&times, out);
    return rc;
}
