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
    SMALL_REQUESTS = 64, /* more than a disk's or a throttle's buffer takes at once */
    LARGE_REQUESTS = 24,
    ROUNDS = 3,
    FILE_BYTES = 64 << 20,
    MOST = 4 << 20,
    MEM_BYTES = DEPTH * MOST, /* the largest requests; more of small ones */
};

/* A pace: reads beside writes. */
enum {
    DEEP = 32,                  /* reads at a time, */
    BESIDE = 2,                 /* and writes */
    WRITE = 256 << 10,          /* bytes of one */
    UNIT_MOST = 64 << 10,       /* of a read */
    WRITES_AT = FILE_BYTES / 2, /* reads lie before, and writes from there on */
    SHORT_NS = 1000000,         /* of a trial of small reads, */
    LONG_NS = 32000000,         /* and of large ones, which say how fast bytes go: a disk moves more
                                   than it can keep up for some milliseconds */
    READS_MOST = 2048,          /* of a trial */
    PACE_NS = 400000000,        /* trials begin for so long */
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

/* Returns where request i lies in the first `room` bytes: at a multiple of its bytes, and no two
 * lie alike before all have been there. */
static uint64_t offset_of(uint32_t bytes, int apart, uint64_t room, uint64_t i)
{
    const uint64_t step = apart ? 3 * LARGE / bytes + 1 : 1;
    return i * step % (room / bytes) * bytes;
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
                                       .offset = offset_of(r->bytes, (int)r->apart, FILE_BYTES, i),
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
                                           .depth = DEEP + BESIDE,
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

/* ---- Reads far apart beside long writes ---- */

/* `reads` reads of `unit` bytes, and long writes of as many bytes. */
struct beside {
    uint32_t unit;
    unsigned reads;
    uint64_t first;                     /* reads that trials before have made: none is made again
                                           soon, as a disk remembers what it has read */
    uint64_t read_bytes, written_bytes; /* handed over */
};

static uint64_t read_at(const struct beside *b)
{
    return offset_of(b->unit, 1, WRITES_AT, b->first + b->read_bytes / b->unit);
}

static uint64_t write_at(const struct beside *b)
{
    const uint64_t before = b->first * b->unit / WRITE * WRITE;
    return WRITES_AT + (before + b->written_bytes) % (FILE_BYTES - WRITES_AT);
}

/* The next request into buffer `tag`, the last BESIDE of which are for writing. Returns 0 where
 * there is none: writes do not go ahead of reads. */
static int next_op(const struct probe *p, struct beside *b, uint32_t tag, struct drps_aio_op *op)
{
    const uint64_t bytes = (uint64_t)b->reads * b->unit;
    const int write = tag >= DEEP;
    const uint64_t left = bytes - (write ? b->written_bytes : b->read_bytes);
    const uint64_t most = write ? WRITE : b->unit;
    if (!left || (write && b->written_bytes > b->read_bytes)) return 0;
    *op = (struct drps_aio_op){
        .buf = p->mem + (write ? DEEP * UNIT_MOST + (tag - DEEP) * WRITE : tag * UNIT_MOST),
        .bytes = (uint32_t)(left < most ? left : most),
        .offset = write ? write_at(b) : read_at(b),
        .write = write,
        .tag = tag};
    *(write ? &b->written_bytes : &b->read_bytes) += op->bytes;
    return 1;
}

static int run_beside(struct probe *p, struct beside *b, struct drps_err *err)
{
    enum { TAGS = DEEP + BESIDE };
    struct drps_aio_op ops[TAGS];
    uint32_t idle[TAGS]; /* tags */
    size_t n = TAGS;
    for (uint32_t i = 0; i < TAGS; i++)
        idle[i] = i;
    for (;;) {
        size_t kept = 0, given = 0, done = 0;
        for (size_t i = 0; i < n; i++)
            if (next_op(p, b, idle[i], &ops[given]))
                given++;
            else
                idle[kept++] = idle[i];
        int rc = drps_io_stopped(p->io, err);
        if (rc == 0 && given) rc = drps_aio_submit(p->aio, ops, given, err);
        if (rc < 0 || !drps_aio_under_way(p->aio)) return rc;
        rc = drps_aio_wait(p->aio, 1, idle + kept, TAGS - kept, &done, err);
        if (rc < 0) return rc;
        n = kept + done;
    }
}

/* A size of reads, and what was measured of it. */
struct unit {
    uint32_t bytes;
    unsigned trial_ns; /* of a trial, about */
    unsigned reads;    /* of the next trial */
    uint64_t first;    /* reads of the trials before */
    double best_ns;    /* of a read; 0: not measured */
};

/* A trial of each unit. They take turns, so that all of them meet the disk when others leave it
 * alone; the best trial of each counts. */
static int run_trials(struct probe *p, struct unit *units, int n, struct drps_err *err)
{
    int rc = 0;
    for (struct unit *u = units; u < units + n && rc == 0; u++) {
        struct beside b = {.unit = u->bytes, .reads = u->reads, .first = u->first};
        const uint64_t start = p->now();
        rc = run_beside(p, &b, err);
        const double ns = (double)(p->now() - start + 1) / u->reads;
        u->first += u->reads;
        if (u->best_ns == 0 || ns < u->best_ns) u->best_ns = ns;
    }
    return rc;
}

/* Says how many reads fill a trial's time, by what was measured, which then counts no more. Returns
 * 0 where it has filled it already, on a slow disk. */
static int size_trial(struct unit *u)
{
    const double reads = u->trial_ns / u->best_ns;
    if (reads <= SMALL_REQUESTS) return 0;
    u->reads = reads < READS_MOST ? (unsigned)reads : READS_MOST;
    u->best_ns = 0;
    return 1;
}

static int measure_pace(struct probe *p, struct drps_disk_pace *out, struct drps_err *err)
{
    struct unit units[] = {{4 << 10, SHORT_NS, SMALL_REQUESTS, 0, 0},
                           {16 << 10, SHORT_NS, SMALL_REQUESTS, 0, 0},
                           {UNIT_MOST, LONG_NS, SMALL_REQUESTS, 0, 0}};
    enum { N = sizeof(units) / sizeof(*units) };
    struct drps_disk_trial best[N];
    const uint64_t start = p->now();
    int more = 0;
    int rc = run_trials(p, units, N, err);
    for (int i = 0; i < N && rc == 0; i++)
        more |= size_trial(&units[i]);
    for (; rc == 0 && (more || p->now() - start < PACE_NS); more = 0)
        rc = run_trials(p, units, N, err);
    for (int i = 0; i < N; i++)
        best[i] = (struct drps_disk_trial){units[i].bytes, units[i].best_ns};
    if (rc == 0) drps_disk_pace_fit(best, N, out);
    return rc;
}

int drps_disk_measure_pace(const struct drps_io *io, const char *dir, int no_uring,
                           uint64_t (*now)(void), struct drps_disk_pace *out, struct drps_err *err)
{
    struct probe p;
    *out = (struct drps_disk_pace){0};
    int rc = probe_open(&p, io, dir, no_uring, err);
    p.now = now;
    if (rc == 0) rc = fill(&p, err);
    if (rc == 0) rc = measure_pace(&p, out, err);
    return probe_close(&p, rc, err);
}

/* ---- Requests of one kind ---- */

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
    *out = (struct drps_disk_times){.random_bytes = block < SMALL  ? SMALL
                                                    : block > MOST ? MOST
                                                                   : (uint32_t)block};
    int rc = probe_open(&p, io, dir, 0, err);
    p.now = now;
    if (rc == 0) rc = fill(&p, err);
    if (rc == 0) rc = measure_pace(&p, &out->pace, err);
    if (rc == 0)
        out->long_bytes = (uint32_t)chunk_of(drps_disk_pace_seek_bytes(&out->pace)) / SMALL * SMALL;
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
