/*
 * How long does it take to compile windows and block uses, to decode windows, and to forecast the
 * I/O curve? The lists are made up: rows are drawn log-uniformly (row r with a probability of about
 * 1 / r, the shape of click logs whose rows are placed by frequency), blocks are of equal size.
 *
 *   bench_window [STEPS [ROWS [DRAWS [BLOCK_ROWS [MEMORY [BUDGET]]]]]]
 *
 * DRAWS: rows drawn a step, with repetition. BUDGET: of the rows of two windows, default 1/8 of the
 * model of 8 bytes a row. Scratch files go to a new folder below $TMPDIR.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_window.h"

enum { ROW_BYTES = 8, CURVE = 24 };

struct setting {
    uint64_t steps, rows, draws, block_rows;
    struct drps_window_options o;
};

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static size_t draw_step(const struct setting *g, uint64_t s, uint32_t *list)
{
    size_t n = 0;
    for (uint64_t i = 0; i < g->draws; i++) {
        double u = drps_unit_double(drps_rng_at(s, i));
        list[i] = (uint32_t)(pow((double)g->rows, u) - 1);
    }
    qsort(list, (size_t)g->draws, sizeof(*list), by_number);
    for (uint64_t i = 0; i < g->draws; i++)
        if (n == 0 || list[i] != list[n - 1]) list[n++] = list[i];
    return n;
}

static int write_lists(const struct setting *g, const char *dir, uint64_t *total_out,
                       struct drps_err *err)
{
    struct drps_recwriter *w;
    char *path = drps_path_join(dir, "rows.rec");
    uint32_t *list = drps_array_new((size_t)g->draws, sizeof(*list));
    void *packed = malloc(drps_list_encode_bound((size_t)g->draws));
    if (!path || !list || !packed) abort();
    int rc = drps_recwriter_open(drps_io_os(), path, DRPS_KIND_ROWS, &w, err);
    for (uint64_t s = 0; s < g->steps && rc == 0; s++) {
        size_t n = draw_step(g, s, list);
        struct drps_piece piece = {packed, drps_list_encode(list, n, packed)};
        *total_out += n;
        rc = drps_recwriter_add(w, &piece, 1, err);
    }
    if (rc == 0) rc = drps_recwriter_finish(w, err);
    drps_recwriter_close(w);
    free(path);
    free(list);
    free(packed);
    return rc;
}

static uint32_t *make_blocks(const struct setting *g, size_t *blocks_out)
{
    size_t blocks = (size_t)((g->rows + g->block_rows - 1) / g->block_rows);
    uint32_t *first = drps_array_new(blocks + 1, sizeof(*first));
    if (!first) abort();
    for (size_t b = 0; b < blocks; b++)
        first[b] = (uint32_t)(b * g->block_rows);
    first[blocks] = (uint32_t)g->rows;
    *blocks_out = blocks;
    return first;
}

static void print_curve(const struct drps_forecast *f, size_t n)
{
    char memory[32], read[32], written[32];
    for (size_t i = 0; i < n; i++)
        printf("  %-8s %10s windows %5" PRIu64 " read %10s written %10s ios %9" PRIu64 "%s\n",
               f[i].store, drps_size_format(f[i].memory_bytes, memory, sizeof(memory)),
               f[i].windows, drps_size_format(f[i].read_bytes, read, sizeof(read)),
               drps_size_format(f[i].written_bytes, written, sizeof(written)), f[i].ios,
               f[i].feasible ? "" : " infeasible");
}

/* Wall time says what a user waits for, processor time what it takes on a busy machine. */
struct stopwatch {
    uint64_t wall_ns;
    clock_t cpu;
};

static void stopwatch_start(struct stopwatch *w)
{
    *w = (struct stopwatch){drps_clock_ns(), clock()};
}

static void print_times(const char *what, const struct stopwatch *w)
{
    printf("%s %.3f s (%.3f s of processor)", what, drps_seconds_since(w->wall_ns),
           (double)(clock() - w->cpu) / CLOCKS_PER_SEC);
}

/* Parts of every window, over and over: numbers of 4 bytes a second of processor. */
static int time_decoding(const char *dir, unsigned parts, const char *what, struct drps_err *err)
{
    enum { ROUNDS = 10 };
    struct drps_recfile *f = NULL;
    struct drps_window w = {0};
    void *record = NULL;
    size_t cap = 0;
    uint64_t rows = 0, bytes = 0;
    double seconds = 0;
    char *path = drps_path_join(dir, "windows.rec");
    if (!path) abort();
    int rc = drps_recfile_open(drps_io_os(), path, DRPS_KIND_WINDOWS, &f, err);
    for (uint64_t k = 0; rc == 0 && k < drps_recfile_count(f); k++) {
        if (drps_array_reserve(&record, &cap, (size_t)drps_recfile_run_bytes(f, k, 1), 1)) abort();
        rc = drps_recfile_read(f, k, 1, record, err);
        size_t n = (size_t)drps_recfile_bytes(f, k);
        if (rc == 0) rc = drps_window_decode(record, n, parts, &w, err); /* makes its arrays */
        clock_t start = clock();
        for (int i = 0; i < ROUNDS && rc == 0; i++)
            rc = drps_window_decode(record, n, parts, &w, err);
        seconds += (double)(clock() - start) / CLOCKS_PER_SEC;
        rows += ROUNDS * (uint64_t)w.n;
        bytes += n;
    }
    if (rc == 0 && seconds > 0)
        printf(
            "decoding %-5s %6.0f M rows/s, %5.2f GB/s of numbers; the file has %.2f bytes a row\n",
            what, (double)rows / seconds * 1e-6,
            (double)rows * 4 * __builtin_popcount(parts) / seconds * 1e-9,
            rows ? (double)bytes * ROUNDS / (double)rows : 0.0);
    drps_window_free(&w);
    drps_recfile_close(f);
    free(record);
    free(path);
    return rc;
}

static int time_all(const struct setting *g, const char *dir, struct drps_err *err)
{
    struct drps_window_result r;
    struct drps_forecast curve[CURVE];
    struct drps_uses_result uses;
    size_t blocks, n;
    uint32_t *first = make_blocks(g, &blocks);
    struct stopwatch watch;

    stopwatch_start(&watch);
    int rc = drps_windows_compile(drps_io_os(), dir, dir, &g->o, &r, err);
    if (rc < 0) goto out;
    print_times("windows", &watch);
    printf(": %" PRIu64 " windows, %" PRIu64 " rows in two, %" PRIu64 " touched, %" PRIu64
           " moved\n",
           r.windows, r.working_set_rows, r.rows_touched, r.rows_moved);
    rc = time_decoding(dir, DRPS_WINDOW_ROWS, "rows", err);
    if (rc == 0) rc = time_decoding(dir, DRPS_WINDOW_NEXT, "next", err);
    if (rc == 0) rc = time_decoding(dir, DRPS_WINDOW_PREV, "prev", err);
    if (rc == 0)
        rc = time_decoding(dir, DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV, "all", err);
    if (rc < 0) goto out;
    stopwatch_start(&watch);
    rc = drps_uses_compile(drps_io_os(), dir, g->steps, first, blocks, 0, g->o.memory_bytes, &uses,
                           err);
    if (rc < 0) goto out;
    print_times("uses", &watch);
    printf(": %zu blocks, at most %" PRIu64 " a step\n", blocks, uses.max_step_blocks);
    stopwatch_start(&watch);
    rc = drps_forecast_curve(drps_io_os(), dir, &g->o, first, blocks, curve, CURVE, &n, err);
    if (rc < 0) goto out;
    print_times("curve", &watch);
    printf("\n");
    print_curve(curve, n);
out:
    free(first);
    return rc;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"STEPS", "ROWS", "DRAWS", "BLOCK_ROWS", "MEMORY", "BUDGET"};
    uint64_t value[] = {4000, 5000000, 18000, 64, UINT64_C(256) << 20, 0};
    struct drps_err err = DRPS_ERR_INIT;
    char dir[4096];
    uint64_t total = 0;
    int rc = 0;

    for (int i = 1; i < argc && i <= 6 && rc == 0; i++) {
        rc = drps_size_parse(argv[i], &value[i - 1], &err);
        if (rc < 0) (void)drps_err_context(&err, "%s", names[i - 1]);
    }
    if (rc < 0 || argc > 7 || !value[1] || value[1] > UINT32_MAX || !value[2] || !value[3]) {
        fprintf(stderr,
                "usage: bench_window [STEPS [ROWS [DRAWS [BLOCK_ROWS [MEMORY [BUDGET]]]]]]\n%s\n",
                err.text);
        return 2;
    }
    struct setting g = {value[0], value[1], value[2], value[3], {0}};
    g.o = (struct drps_window_options){.steps = g.steps,
                                       .train_steps = g.steps - g.steps / 10,
                                       .rows = g.rows,
                                       .row_bytes = ROW_BYTES,
                                       .budget_bytes = value[5] ? value[5] : g.rows * ROW_BYTES / 8,
                                       .memory_bytes = value[4]};
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(dir, sizeof(dir), "%s/bench_window.XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    rc = write_lists(&g, dir, &total, &err);
    printf("%" PRIu64 " steps, %" PRIu64 " rows, %.0f rows a step\n", g.steps, g.rows,
           g.steps ? (double)total / (double)g.steps : 0.0);
    if (rc == 0) rc = time_all(&g, dir, &err);
    (void)drps_io_remove_tree(drps_io_os(), dir, NULL); /* it is only a scratch folder */
    if (rc < 0) fprintf(stderr, "bench_window: %s\n", err.text);
    return rc < 0;
}
