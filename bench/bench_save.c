/*
 * What it costs to save a relay store, beside a scan of all rows that is written to a file.
 *
 *   bench_save [--rows N] [--row-bytes B] [--memory SIZE] [--dir DIR]
 *
 * A row is used by two windows of the epoch: its own, in the order of rows, and one at random. The
 * store runs an epoch and a half, is scanned, saved, runs half an epoch more, is saved again, and
 * is opened from that. A line of tab-separated figures goes to stdout for each of these.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "base/drps_io.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "base/record/drps_recfile.h"
#include "storage/relay/drps_relay.h"

struct options {
    uint64_t rows, row_bytes, memory;
    const char *dir;
};

/* The windows of the epoch, a step each. */
struct windows {
    uint32_t n;
    uint64_t *first; /* [n + 1] where the uses of each window begin */
    uint32_t *row;   /* [first[n]] ids, increasing in a window */
    uint32_t *to;    /* the window that uses the row next, after this one, and used it last */
    size_t max_rows;
    uint64_t working_rows;
    uint32_t *slots; /* [max_rows] 0, 1, 2, ... */
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

static void check(int rc, const struct drps_err *err)
{
    if (rc >= 0) return;
    fprintf(stderr, "bench_save: %s\n", err->text);
    exit(1);
}

/* ---- Windows ---- */

static uint32_t own_window(const struct options *o, uint32_t windows, uint64_t row)
{
    return (uint32_t)(row * windows / o->rows);
}

static uint32_t other_window(uint32_t windows, uint64_t row)
{
    return (uint32_t)(drps_rng_at(7, row) % windows);
}

static void put_use(struct windows *w, uint64_t *end, uint32_t in, uint32_t row, uint32_t to)
{
    w->row[end[in]] = row;
    w->to[end[in]++] = to;
}

static void make_windows(const struct options *o, uint32_t n, struct windows *w)
{
    uint64_t *end = must(calloc(n + 1, sizeof(*end)));
    *w = (struct windows){.n = n, .first = must(calloc(n + 1, sizeof(*w->first)))};
    for (uint64_t r = 0; r < o->rows; r++) {
        const uint32_t a = own_window(o, n, r), b = other_window(n, r);
        w->first[a + 1]++;
        w->first[b + 1] += b != a;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (w->first[i + 1] > w->max_rows) w->max_rows = (size_t)w->first[i + 1];
        end[i + 1] = w->first[i + 1] += w->first[i];
    }
    w->row = must(malloc(w->first[n] * sizeof(*w->row)));
    w->to = must(malloc(w->first[n] * sizeof(*w->to)));
    w->slots = must(malloc(w->max_rows * sizeof(*w->slots)));
    for (uint64_t r = 0; r < o->rows; r++) {
        const uint32_t a = own_window(o, n, r), b = other_window(n, r);
        put_use(w, end, a, (uint32_t)r, b);
        if (b != a) put_use(w, end, b, (uint32_t)r, a);
    }
    for (uint32_t i = 0; i < w->max_rows; i++)
        w->slots[i] = i;
    w->working_rows = 2 * w->max_rows; /* at most */
    free(end);
}

static void free_windows(struct windows *w)
{
    free(w->first);
    free(w->row);
    free(w->to);
    free(w->slots);
}

static size_t rows_of(const struct windows *w, uint32_t i)
{
    return (size_t)(w->first[i + 1] - w->first[i]);
}

static void put_distance(struct drps_use_distances *d, size_t slot, uint32_t distance)
{
    if (distance == 1) return;
    d->marks[slot / 64] |= UINT64_C(1) << slot % 64;
    d->far[d->n_far++] = distance;
}

static void begin_distances(struct drps_use_distances *d, size_t n)
{
    memset(d->marks, 0, DRPS_DISTANCE_WORDS(n) * sizeof(*d->marks));
    d->n_far = 0;
}

/* Rows of window i that window `other` uses, too. */
static size_t shared_rows(const struct windows *w, uint32_t i, uint32_t other)
{
    size_t n = 0;
    for (uint64_t u = w->first[i]; u < w->first[i + 1]; u++)
        n += w->to[u] == other || other == i;
    return n;
}

static int read_window(void *ctx, uint32_t i, struct drps_store_window *out, uint32_t *rows,
                       struct drps_use_distances *next, struct drps_use_distances *prev,
                       struct drps_err *err)
{
    const struct windows *w = ctx;
    const size_t n = rows_of(w, i);
    (void)err;
    *out = (struct drps_store_window){.first_step = i, .steps = 1, .n = n};
    out->leaving = n - shared_rows(w, i, (i + 1) % w->n);
    out->arriving = n - shared_rows(w, i, (i + w->n - 1) % w->n);
    if (rows) memcpy(rows, w->row + w->first[i], n * sizeof(*rows));
    if (next) begin_distances(next, n);
    if (prev) begin_distances(prev, n);
    for (size_t s = 0; s < n; s++) {
        const uint32_t other = w->to[w->first[i] + s];
        if (next) put_distance(next, s, (other + w->n - i - 1) % w->n + 1);
        if (prev) put_distance(prev, s, (i + w->n - other - 1) % w->n + 1);
    }
    return 0;
}

/* The fewest windows that fit the memory. */
static void fit_windows(const struct options *o, struct windows *w)
{
    struct drps_relay_share share;
    drps_relay_share(o->memory, o->rows, o->row_bytes, 0, &share);
    const uint64_t bytes = drps_relay_window_bytes(&share, o->rows, 1);
    for (uint32_t n = 4;; n += 1 + n / 16) {
        if (4 * o->rows / n * share.row_bytes > bytes) continue;
        make_windows(o, n, w);
        if (w->working_rows * share.row_bytes <= bytes) return;
        free_windows(w);
    }
}

/* ---- Running ---- */

static int init_rows(void *ctx, uint64_t first, size_t n, void *rows_out, struct drps_err *err)
{
    const struct options *o = ctx;
    (void)err;
    for (size_t i = 0; i < n * o->row_bytes / 4; i++)
        ((float *)rows_out)[i] = (float)(first + i);
    return 0;
}

static void run_steps(struct drps_store *st, const struct windows *w, uint64_t *next, uint64_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_rows rows;
    for (uint64_t end = *next + n; *next < end; ++*next) {
        const size_t m = rows_of(w, (uint32_t)(*next % w->n));
        check(drps_store_relay.step_open(st, *next, w->slots, m, &rows, &err), &err);
        for (size_t i = 0; i < m; i++)
            *(float *)drps_row_at(&rows, i) += 1;
        check(drps_store_relay.step_close(st, *next, 1, &err), &err);
    }
}

struct moment {
    uint64_t ns;
    struct drps_process_io io;
};

static void begin(struct moment *m)
{
    drps_process_io_now(&m->io);
    m->ns = drps_clock_ns();
}

static void report(const char *what, const struct moment *m, double file_mb)
{
    struct drps_process_io io;
    const double s = drps_seconds_since(m->ns);
    drps_process_io_now(&io);
    printf("%s\t%.2f\t%.1f\t%.1f\t%.1f\n", what, s,
           (double)(io.read_bytes - m->io.read_bytes) / 1048576,
           (double)(io.written_bytes - m->io.written_bytes) / 1048576, file_mb);
}

static double file_mb(const char *dir, const char *name)
{
    struct stat st;
    char *path = must(drps_path_join(dir, name));
    if (stat(path, &st)) die(path);
    free(path);
    return (double)st.st_size / 1048576;
}

static void sync_file(const char *dir, const char *name)
{
    struct drps_err err = DRPS_ERR_INIT;
    int fd = -1;
    char *path = must(drps_path_join(dir, name));
    check(drps_io_open(drps_io_os(), path, O_RDWR, &fd, &err), &err);
    check(drps_io_sync(drps_io_os(), fd, path, &err), &err);
    drps_io_close(drps_io_os(), fd);
    free(path);
}

struct sink {
    struct drps_recwriter *w;
    uint64_t row_bytes;
};

static int write_rows(void *ctx, uint64_t first, size_t n, const void *rows, struct drps_err *err)
{
    const struct sink *s = ctx;
    const struct drps_piece piece = {.data = rows, .bytes = n * s->row_bytes};
    (void)first;
    return drps_recwriter_add(s->w, &piece, 1, err);
}

/* All rows, to a file that is synced. */
static void scan(const struct options *o, struct drps_store *st, const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct sink s = {.row_bytes = o->row_bytes};
    struct moment m;
    char *path = must(drps_path_join(dir, "rows.rec"));
    begin(&m);
    check(drps_recwriter_open(drps_io_os(), path, DRPS_REC_KIND('B', 'N', 'C', 'H'), &s.w, &err),
          &err);
    check(drps_store_relay.scan(st, 0, write_rows, &s, &err), &err);
    check(drps_recwriter_finish(s.w, &err), &err);
    drps_recwriter_close(s.w);
    sync_file(dir, "rows.rec");
    report("scan", &m, file_mb(dir, "rows.rec"));
    free(path);
}

static void save(struct drps_store *st, const char *store_dir, const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct moment m;
    unsigned number;
    const double before = file_mb(store_dir, "runs");
    begin(&m);
    check(drps_store_relay.save(st, dir, &number, &err), &err);
    sync_file(dir, "relay.rec");
    report("save", &m, file_mb(dir, "relay.rec"));
    printf("# run file: %.1f MB, then %.1f MB\n", before, file_mb(store_dir, "runs"));
}

static char *make_dir(const char *in, const char *name)
{
    char *path = must(drps_path_join(in, name));
    if (mkdir(path, 0700)) die(path);
    return path;
}

static void run(const struct options *o, const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct windows w;
    struct drps_store *st;
    struct moment m;
    uint64_t next = 0;
    char *dirs[] = {make_dir(dir, "store"), make_dir(dir, "save-1"), make_dir(dir, "save-2"),
                    make_dir(dir, "again")};
    fit_windows(o, &w);
    const struct drps_window_source source = {.ctx = &w,
                                              .windows = w.n,
                                              .epochs = 4,
                                              .max_rows = w.max_rows,
                                              .working_rows = w.working_rows,
                                              .read = read_window};
    struct drps_store_config config = {.io = drps_io_os(),
                                       .rows = o->rows,
                                       .row_bytes = o->row_bytes,
                                       .init = init_rows,
                                       .init_ctx = (void *)o,
                                       .dir = dirs[0],
                                       .memory_bytes = o->memory,
                                       .windows = &source};
    printf("# %llu rows of %llu bytes, %.0f MB, in %.0f MB of memory: %u windows\n",
           (unsigned long long)o->rows, (unsigned long long)o->row_bytes,
           (double)(o->rows * o->row_bytes) / 1048576, (double)o->memory / 1048576, w.n);
    printf("what\tseconds\tread_mb\twritten_mb\tfile_mb\n");
    check(drps_store_relay.open(&config, &st, &err), &err);
    begin(&m);
    run_steps(st, &w, &next, w.n + w.n / 2);
    report("run", &m, 0);
    scan(o, st, dir);
    save(st, dirs[0], dirs[1]);
    begin(&m);
    run_steps(st, &w, &next, w.n / 2);
    report("run", &m, 0);
    save(st, dirs[0], dirs[2]);
    drps_store_relay.close(st);
    config.dir = dirs[3];
    config.saved_dir = dirs[2];
    config.first_step = next % w.n;
    begin(&m);
    check(drps_store_relay.open(&config, &st, &err), &err);
    report("restore", &m, 0);
    next = 0;
    drps_store_relay.close(st);
    for (size_t i = 0; i < 4; i++)
        free(dirs[i]);
    free_windows(&w);
}

static void parse(int argc, char **argv, struct options *o)
{
    static const char *const names[] = {"--rows", "--row-bytes", "--memory"};
    uint64_t *const values[] = {&o->rows, &o->row_bytes, &o->memory};
    struct drps_err err = DRPS_ERR_INIT;
    for (int i = 1; i + 1 < argc; i += 2) {
        size_t k = 0;
        while (k < 3 && strcmp(argv[i], names[k]) != 0)
            k++;
        if (k < 3)
            check(drps_size_parse(argv[i + 1], values[k], &err), &err);
        else if (!strcmp(argv[i], "--dir"))
            o->dir = argv[i + 1];
        else {
            fprintf(stderr, "bench_save: unknown option %s\n", argv[i]);
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct options o = {.rows = 2000000, .row_bytes = 256, .memory = 64 << 20, .dir = "/tmp"};
    struct drps_err err = DRPS_ERR_INIT;
    char dir[4096];
    parse(argc, argv, &o);
    (void)snprintf(dir, sizeof(dir), "%s/bench_save.XXXXXX", o.dir);
    if (!mkdtemp(dir)) die(dir);
    run(&o, dir);
    check(drps_io_remove_tree(drps_io_os(), dir, &err), &err);
    return 0;
}
