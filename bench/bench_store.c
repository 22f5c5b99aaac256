/*
 * What a row store reaches on synthetic steps.
 *
 *   bench_store [--store resident|rocksdb|leveldb] [--rows N] [--row-bytes B] [--block-rows R]
 * [--step-rows N]
 *               [--cluster C] [--epoch-steps N] [--steps N] [--warm-steps N] [--memory SIZE]
 * [--threads T]
 *               [--prefetch-steps D] [--work K] [--dir DIR]
 *
 * A step draws clusters of C neighbouring rows; their blocks follow a Zipf law with exponent 1.05,
 * hot blocks first, as a block builder would lay them out. The same epoch of steps repeats. Each
 * row of a step is read and changed K times. One line of tab-separated figures goes to stdout;
 * steps before --warm-steps are left out of the speeds.
 *
 * The steps wait in a file, as a plan's would, so that the store's memory is nearly the whole
 * process.
 */
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "base/drps_io.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "storage/drps_store.h"
#include "storage/kv/drps_kv.h"

struct options {
    const char *store;
    const char *dir;
    uint64_t rows, row_bytes, block_rows, step_rows, cluster, epoch_steps, steps, warm_steps,
        memory, work;
    uint64_t threads, prefetch_steps;
};

/* One step in the trace file: counts, then ids[n_ids], blocks[n_blocks], gap[n_blocks] (steps to
 * the next use). */
struct step_head {
    uint64_t offset;
    uint32_t n_ids, n_blocks;
};

struct trace {
    const struct options *o;
    int fd;
    struct step_head *head; /* [epoch_steps] */
    uint32_t max_ids, max_blocks;
    uint32_t *ids;    /* of the step being run */
    uint32_t *blocks; /* of the step being prefetched, by the store's thread; gaps follow */
    uint64_t *next_use;
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void *must(void *p)
{
    if (!p) die("memory");
    return p;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

static uint64_t zipf(uint64_t n, double u)
{
    const double s = 1.05;
    double x = pow((pow((double)n + 1, 1 - s) - 1) * u + 1, 1 / (1 - s)) - 1;
    return x < (double)n ? (uint64_t)x : n - 1;
}

static uint32_t draw_step(const struct options *o, uint64_t step, uint32_t *ids)
{
    uint64_t blocks = (o->rows + o->block_rows - 1) / o->block_rows;
    uint32_t n = 0;
    for (uint64_t c = 0; n + o->cluster <= o->step_rows; c++) {
        uint64_t b = zipf(blocks, drps_unit_double(drps_rng_at(step, 2 * c)));
        uint64_t first = b * o->block_rows + drps_rng_at(step, 2 * c + 1) % o->block_rows;
        for (uint64_t i = 0; i < o->cluster; i++)
            if (first + i < o->rows) ids[n++] = (uint32_t)(first + i);
    }
    qsort(ids, n, sizeof(*ids), by_id);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!kept || ids[kept - 1] != ids[i]) ids[kept++] = ids[i];
    return kept;
}

/* Write the trace: forwards for rows and blocks, then backwards for the gaps. */
static void make_trace(const struct options *o, const char *path)
{
    FILE *f = fopen(path, "wb+");
    if (!f) die(path);
    uint64_t n_blocks = (o->rows + o->block_rows - 1) / o->block_rows;
    struct step_head *head = must(calloc(o->epoch_steps, sizeof(*head)));
    uint32_t *ids = must(malloc((o->step_rows + o->cluster) * 3 * sizeof(*ids)));
    uint64_t *seen = must(malloc(n_blocks * sizeof(*seen)));
    uint64_t at = o->epoch_steps * sizeof(*head);
    for (uint64_t s = 0; s < o->epoch_steps; s++) {
        uint32_t n = draw_step(o, s, ids);
        uint32_t *blocks = ids + n;
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t b = (uint32_t)(ids[i] / o->block_rows);
            if (!m || blocks[m - 1] != b) blocks[m++] = b;
        }
        head[s] = (struct step_head){at, n, m};
        if (fseek(f, (long)at, SEEK_SET) || fwrite(ids, 4, n + 2 * m, f) != n + 2 * m) die(path);
        at += 4ull * (n + 2 * m);
    }
    memset(seen, 0xff, n_blocks * sizeof(*seen));
    for (uint64_t i = 2 * o->epoch_steps; i-- > 0;) { /* twice around: the first pass only learns */
        const struct step_head *h = &head[i % o->epoch_steps];
        if (fseek(f, (long)(h->offset + 4ull * h->n_ids), SEEK_SET) ||
            fread(ids, 4, h->n_blocks, f) != h->n_blocks)
            die(path);
        for (uint32_t k = 0; k < h->n_blocks; k++) {
            uint32_t b = ids[k];
            ids[h->n_blocks + k] = seen[b] == UINT64_MAX ? 0 : (uint32_t)(seen[b] - i);
            seen[b] = i;
        }
        if (fseek(f, (long)(h->offset + 4ull * (h->n_ids + h->n_blocks)), SEEK_SET) ||
            fwrite(ids + h->n_blocks, 4, h->n_blocks, f) != h->n_blocks)
            die(path);
    }
    if (fseek(f, 0, SEEK_SET) || fwrite(head, sizeof(*head), o->epoch_steps, f) != o->epoch_steps)
        die(path);
    if (fclose(f)) die(path);
}

static void read_at(const struct trace *t, void *buf, size_t n, uint64_t offset)
{
    if (pread(t->fd, buf, n, (off_t)offset) != (ssize_t)n) die("trace");
}

static void open_trace(struct trace *t, const struct options *o, const char *path)
{
    *t = (struct trace){.o = o, .fd = open(path, O_RDONLY)};
    if (t->fd < 0) die(path);
    t->head = must(malloc(o->epoch_steps * sizeof(*t->head)));
    read_at(t, t->head, o->epoch_steps * sizeof(*t->head), 0);
    for (uint64_t s = 0; s < o->epoch_steps; s++) {
        if (t->head[s].n_ids > t->max_ids) t->max_ids = t->head[s].n_ids;
        if (t->head[s].n_blocks > t->max_blocks) t->max_blocks = t->head[s].n_blocks;
    }
    t->ids = must(malloc(4ull * t->max_ids));
    t->blocks = must(malloc(8ull * t->max_blocks));
    t->next_use = must(malloc(8ull * t->max_blocks));
}

static int step_blocks(void *ctx, uint64_t step, struct drps_step_blocks *out, struct drps_err *err)
{
    struct trace *t = ctx;
    (void)err;
    const struct step_head *h = &t->head[step % t->o->epoch_steps];
    read_at(t, t->blocks, 8ull * h->n_blocks, h->offset + 4ull * h->n_ids);
    for (uint32_t k = 0; k < h->n_blocks; k++) {
        uint32_t gap = t->blocks[h->n_blocks + k];
        t->next_use[k] = step + gap < t->o->steps ? step + gap : UINT64_MAX;
    }
    *out =
        (struct drps_step_blocks){.blocks = t->blocks, .next_use = t->next_use, .n = h->n_blocks};
    return 0;
}

static int init_rows(void *ctx, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    const struct options *o = ctx;
    float *row = rows_out;
    (void)err;
    for (size_t i = 0; i < n; i++, row += o->row_bytes / 4)
        for (uint64_t k = 0; k < o->row_bytes / 4; k++)
            row[k] = (float)(first + i);
    return 0;
}

static void change_rows(const struct options *o, const struct drps_rows *rows)
{
    size_t dim = rows->stride / 4;
    for (size_t i = 0; i < rows->n; i++) {
        float *row = drps_row_at(rows, i);
        for (uint64_t w = 0; w < o->work; w++)
            for (size_t k = 0; k < dim; k++)
                row[k] = row[k] * 0.999f + 0.5f;
    }
}

static int sum_rows(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    double *sum = ctx;
    (void)err;
    for (size_t i = 0; i < n; i++)
        sum[0] += sum[1] > 0 ? (double)*(const float *)((const char *)rows + i * (size_t)sum[1])
                             : (double)first;
    return 0;
}

static void check(int rc, const struct drps_err *err)
{
    if (rc >= 0) return;
    fprintf(stderr, "bench_store: %s\n", err->text);
    exit(1);
}

struct moment {
    uint64_t ns;
    uint64_t rows;
    struct drps_store_stats stats;
    struct drps_process_io io;
};

static void note(struct moment *m, const struct drps_store_ops *ops, struct drps_store *st,
                 uint64_t rows)
{
    m->ns = drps_clock_ns();
    m->rows = rows;
    ops->stats(st, &m->stats);
    drps_process_io_now(&m->io);
}

static void report(const struct options *o, const struct moment *a, const struct moment *b)
{
    double s = (double)(b->ns - a->ns) * 1e-9;
    double steps = (double)(o->steps - o->warm_steps);
    double need = (double)(b->stats.blocks_needed - a->stats.blocks_needed);
    const struct drps_iostat *io = &b->stats.io;
    printf("store\tmemory_mb\tsteps_s\trows_s\thit\tstall\tkb_read_step\tkb_written_step\tdisk_mb_"
           "read\t"
           "disk_mb_written\tread_p50_us\tread_p99_us\tpool_mb\tpeak_mb\n");
    printf("%s\t%.0f\t%.1f\t%.3g\t%.3f\t%.3f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\n",
           o->store, (double)o->memory / 1048576, steps / s, (double)(b->rows - a->rows) / s,
           need > 0 ? (double)(b->stats.blocks_hit - a->stats.blocks_hit) / need : 1.0,
           (double)(b->stats.stall_ns - a->stats.stall_ns) * 1e-9 / s,
           (double)(io->read_bytes - a->stats.io.read_bytes) / 1024 / steps,
           (double)(io->written_bytes - a->stats.io.written_bytes) / 1024 / steps,
           (double)(b->io.read_bytes - a->io.read_bytes) / 1048576,
           (double)(b->io.written_bytes - a->io.written_bytes) / 1048576,
           drps_latency_quantile_us(&io->read_latency, 0.5),
           drps_latency_quantile_us(&io->read_latency, 0.99), (double)b->stats.pool_bytes / 1048576,
           (double)drps_memory_peak() / 1048576);
}

static void run(const struct options *o, struct trace *t, const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_timeline timeline = {.ctx = t, .steps = o->steps, .step_blocks = step_blocks};
    size_t blocks = (o->rows + o->block_rows - 1) / o->block_rows;
    uint32_t *first = must(malloc((blocks + 1) * sizeof(*first)));
    for (size_t b = 0; b <= blocks; b++)
        first[b] = (uint32_t)(b * o->block_rows < o->rows ? b * o->block_rows : o->rows);
    int resident = !strcmp(o->store, "resident");
    const struct drps_store_ops *ops = resident ? &drps_store_resident : &drps_store_pib;
    struct drps_store_config config = {
        .io = drps_io_os(),
        .rows = o->rows,
        .row_bytes = o->row_bytes,
        .init = init_rows,
        .init_ctx = (void *)o,
        .dir = dir,
        .memory_bytes = resident ? 0 : o->memory,
        .block_first = first,
        .blocks = blocks,
        .timeline = &timeline,
        .kv = resident ? NULL : drps_kv_find(o->store),
        .threads = (int)o->threads,
        .step = {.blocks = t->max_blocks,
                 .block_rows = t->max_blocks * o->block_rows,
                 .rows = t->max_ids},
        .prefetch_steps = (int)o->prefetch_steps,
    };
    struct drps_store *st;
    struct drps_rows rows;
    struct moment warm, end;
    uint64_t n_rows = 0;
    check(ops->open(&config, &st, &err), &err);
    note(&warm, ops, st, 0);
    for (uint64_t step = 0; step < o->steps; step++) {
        const struct step_head *h = &t->head[step % o->epoch_steps];
        if (step == o->warm_steps) note(&warm, ops, st, n_rows);
        read_at(t, t->ids, 4ull * h->n_ids, h->offset);
        check(ops->step_open(st, step, t->ids, h->n_ids, &rows, &err), &err);
        change_rows(o, &rows);
        check(ops->step_close(st, step, 1, &err), &err);
        n_rows += h->n_ids;
    }
    note(&end, ops, st, n_rows);
    report(o, &warm, &end);
    uint64_t start = drps_clock_ns();
    double sum[2] = {0, (double)o->row_bytes};
    check(ops->scan(st, 0, sum_rows, sum, &err), &err);
    printf("scan\t%.2f s\tsum\t%.9g\tpeak_mb\t%.1f\n", drps_seconds_since(start), sum[0],
           (double)drps_memory_peak() / 1048576);
    ops->close(st);
    free(first);
}

static void parse(int argc, char **argv, struct options *o)
{
    static const char *const names[] = {"rows",    "row-bytes",   "block-rows", "step-rows",
                                        "cluster", "epoch-steps", "steps",      "warm-steps",
                                        "memory",  "work",        "threads",    "prefetch-steps"};
    uint64_t *const values[] = {&o->rows,    &o->row_bytes,   &o->block_rows, &o->step_rows,
                                &o->cluster, &o->epoch_steps, &o->steps,      &o->warm_steps,
                                &o->memory,  &o->work,        &o->threads,    &o->prefetch_steps};
    enum { N = sizeof(values) / sizeof(*values) };
    struct drps_err err = DRPS_ERR_INIT;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i] + 2;
        size_t k = 0;
        if (!strcmp(name, "store"))
            o->store = argv[i + 1];
        else if (!strcmp(name, "dir"))
            o->dir = argv[i + 1];
        else {
            while (k < N && strcmp(names[k], name) != 0)
                k++;
            if (k == N) {
                fprintf(stderr, "bench_store: unknown option %s\n", argv[i]);
                exit(2);
            }
            check(drps_size_parse(argv[i + 1], values[k], &err), &err);
        }
    }
}

int main(int argc, char **argv)
{
    struct options o = {.store = "rocksdb",
                        .dir = "/tmp",
                        .rows = 6840000,
                        .row_bytes = 64,
                        .block_rows = 64,
                        .step_rows = 25600,
                        .cluster = 5,
                        .epoch_steps = 200,
                        .steps = 400,
                        .warm_steps = 200,
                        .memory = 64 << 20,
                        .work = 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct trace t;
    char dir[4096];
    parse(argc, argv, &o);
    if (strcmp(o.store, "resident") != 0 && !drps_kv_find(o.store)) {
        fprintf(stderr, "bench_store: unknown store %s\n", o.store);
        return 2;
    }
    (void)mallopt(M_ARENA_MAX,
                  2); /* what the engines free should be of use to their next allocation */
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
    (void)snprintf(dir, sizeof(dir), "%s/bench_store.XXXXXX", o.dir);
    if (!mkdtemp(dir)) die(dir);
    char *path = must(drps_path_join(dir, "trace"));
    pid_t child = fork(); /* the trace is made elsewhere: its memory would blur the peak */
    if (child < 0) die("fork");
    if (!child) {
        make_trace(&o, path);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status) die("trace");
    open_trace(&t, &o, path);
    run(&o, &t, dir);
    check(drps_io_remove_tree(drps_io_os(), dir, &err), &err);
    free(t.head);
    free(t.ids);
    free(t.blocks);
    free(t.next_use);
    free(path);
    (void)close(t.fd);
    return 0;
}
