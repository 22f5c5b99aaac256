/* A relay store that was saved goes on elsewhere with the same bytes, however far the run that it
 * was saved in went on; saves that are wrong or fail do no harm. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "base/folder/drps_durable.h"
#include "base/record/drps_recfile.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/runs/drps_saved.h"
#include "support/fault_io.h"
#include "support/power.h"
#include "support/relay_ways.h"
#include "support/scratch.h"
#include "support/store_run.h"
#include "support/uring_here.h"

enum { FEW = DRPS_TEST_ONE_IN > 1 };
enum { EPOCHS = 4, SEEDS = FEW ? 1 : 2, ROUNDS = FEW ? 4 : 10, SAVES = 2 };

/* ---- A run that is saved ---- */

struct saved {
    char *dir;
    char *model;
    size_t next;
    unsigned number;
};

struct run {
    const struct relay_way *way;
    struct plan *p;
    struct plan_store r;
    struct drps_store_config config;
    struct drps_window_source windows;
    char *dir;
    struct saved saves[SAVES + 1]; /* oldest first */
    size_t saves_n;
    uint64_t seed, draws;
};

static size_t draw(struct run *run, size_t n)
{
    return (size_t)(drps_rng_at(run->seed, run->draws++) % n);
}

static size_t model_bytes(const struct run *run)
{
    return (size_t)run->p->rows * run->p->row_bytes;
}

/* The config of a store whose step 0 is step `first` of the plan. */
static void begin_at(struct run *run, size_t first)
{
    run->windows = run->p->source;
    run->windows.epochs -= first / run->p->epoch_steps;
    run->config.windows = &run->windows;
    run->config.first_step = first % run->p->epoch_steps;
}

/* A store of fresh rows that begins with step `first`. */
static void run_begin(struct run *run, const struct relay_way *way, uint64_t seed, size_t first,
                      const struct drps_io *io)
{
    struct drps_err err = DRPS_ERR_INIT;
    *run = (struct run){.way = way, .p = relay_plan(way, 1, EPOCHS, seed), .seed = seed};
    run->config = relay_config(run->p, way);
    run->config.io = io;
    run->config.no_uring = (int)draw(run, 2) && !over_uring;
    run->config.dir = run->dir = scratch_new();
    begin_at(run, first);
    if (plan_open(&run->r, run->p, &drps_store_relay, &run->config, &err) < 0)
        fail_msg("%s: %s", way->name, err.text);
    run->r.first = run->r.next = first;
}

static void drop_save(struct run *run, size_t i)
{
    scratch_remove(run->saves[i].dir);
    free(run->saves[i].model);
    for (run->saves_n--; i < run->saves_n; i++)
        run->saves[i] = run->saves[i + 1];
}

static void run_end(struct run *run)
{
    plan_close(&run->r);
    scratch_remove(run->dir);
    while (run->saves_n)
        drop_save(run, 0);
    plan_free(run->p);
}

static void run_steps(struct run *run, size_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    const size_t left = run->p->n_steps - run->r.next;
    if (plan_steps(&run->r, run->r.next + (n < left ? n : left), &err) < 0)
        fail_msg("%s, seed %llu: %s", run->way->name, (unsigned long long)run->seed, err.text);
}

/* Save it; what fails leaves no save. */
static int run_save(struct run *run, struct drps_err *err)
{
    struct saved *s = &run->saves[run->saves_n];
    *s = (struct saved){
        .dir = scratch_new(), .model = malloc(model_bytes(run)), .next = run->r.next};
    assert_non_null(s->model);
    memcpy(s->model, run->r.model, model_bytes(run));
    const int rc = run->r.ops->save(run->r.st, s->dir, &s->number, err);
    run->saves_n++;
    if (rc < 0) drop_save(run, run->saves_n - 1);
    return rc;
}

static void forget_oldest(struct run *run)
{
    if (run->saves_n <= SAVES) return;
    const unsigned oldest = run->saves[0].number;
    drop_save(run, 0);
    run->r.ops->forget(run->r.st, oldest);
}

/* Save it, and let the oldest save go where there are too many. */
static void run_checkpoint(struct run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (run_save(run, &err) < 0) fail_msg("%s: %s", run->way->name, err.text);
    forget_oldest(run);
}

/* The store is gone, and its folder. */
static void run_crash(struct run *run)
{
    run->r.ops->close(run->r.st);
    run->r.st = NULL;
    scratch_remove(run->dir);
    run->config.dir = run->dir = scratch_new();
}

/* Go on from save i; newer ones are lost. */
static int run_restore(struct run *run, size_t i, struct drps_err *err)
{
    struct saved *s = &run->saves[i];
    struct drps_store_config config;
    begin_at(run, s->next);
    config = run->config;
    config.saved_dir = s->dir;
    const int rc = drps_store_relay.open(&config, &run->r.st, err);
    if (rc < 0) return rc;
    while (run->saves_n > i + 1)
        drop_save(run, run->saves_n - 1);
    s->number = DRPS_STORE_RESTORED;
    if (i) run->saves[0].number = DRPS_STORE_OLDER;
    memcpy(run->r.model, s->model, model_bytes(run));
    run->r.first = run->r.next = s->next;
    return 0;
}

static void must_restore(struct run *run, size_t i)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (run_restore(run, i, &err) < 0)
        fail_msg("%s, seed %llu: %s", run->way->name, (unsigned long long)run->seed, err.text);
}

static void run_scan(struct run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (plan_scan(&run->r, 0, &err) < 0) fail_msg("%s: %s", run->way->name, err.text);
}

/* ---- Scans of saves ---- */

struct expected {
    const struct run *run;
    const struct saved *save;
    uint64_t next;
};

static int compare_saved(void *ctx, uint64_t first, size_t n, const void *rows,
                         struct drps_err *err)
{
    struct expected *e = ctx;
    const size_t row_bytes = e->run->p->row_bytes;
    (void)err;
    assert_int_equal(first, e->next);
    if (memcmp(rows, e->save->model + first * row_bytes, n * row_bytes) != 0)
        fail_msg("%s, seed %llu: rows %llu + %zu differ in the save before step %zu",
                 e->run->way->name, (unsigned long long)e->run->seed, (unsigned long long)first, n,
                 e->save->next);
    e->next += n;
    return 0;
}

/* Scan save i through `io`; what it shows must be right as far as it gets. */
static int scan_save(struct run *run, size_t i, const struct drps_io *io, struct drps_err *err)
{
    struct expected e = {.run = run, .save = &run->saves[i]};
    struct drps_store_config config = run->config;
    char *dir = scratch_new();
    config.io = io;
    config.dir = dir;
    config.saved_dir = e.save->dir;
    config.windows = &run->p->source;
    config.first_step = 0;
    const int rc = drps_relay_scan_saved(&config, 0, compare_saved, &e, err);
    if (rc == 0) assert_int_equal(e.next, run->p->rows);
    scratch_remove(dir);
    return rc;
}

/* Every save that is alive shows the rows that it was made of. */
static void scan_saves(struct run *run)
{
    for (size_t i = 0; i < run->saves_n; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        if (scan_save(run, i, run->config.io, &err) < 0)
            fail_msg("%s: %s", run->way->name, err.text);
    }
}

/* ---- Going on ---- */

/* Any number of steps, saves, crashes: at the end all rows are those of a run without. */
static void test_goes_on_from_any_save(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, save");
    for (size_t i = 0; i < RELAY_WAYS; i++)
        for (uint64_t k = 0; k < SEEDS; k++) {
            struct drps_store_stats stats;
            struct run run;
            const size_t epoch = relay_ways[i].shape.epoch_steps;
            run_begin(&run, &relay_ways[i], seed + k, k ? drps_rng_at(seed, k) % epoch : 0,
                      drps_io_os());
            drps_store_relay.stats(run.r.st, &stats);
            if (!relay_ways[i].is(&stats)) fail_msg("not %s", relay_ways[i].name);
            for (size_t round = 0; round < ROUNDS; round++) {
                for (size_t saves = 1 + draw(&run, 4); saves; saves--) {
                    run_steps(&run, draw(&run, 2) ? draw(&run, 4) : draw(&run, epoch / 2));
                    run_checkpoint(&run);
                }
                run_steps(&run, draw(&run, epoch));
                if (draw(&run, 3) == 0) scan_saves(&run);
                if (run.r.next == run.p->n_steps) run_scan(&run);
                size_t from = draw(&run, run.saves_n);
                if (run.saves[from].next == run.p->n_steps) from = 0;
                if (run.saves[from].next == run.p->n_steps) break;
                run_crash(&run);
                must_restore(&run, from);
                if (draw(&run, 3) == 0) scan_saves(&run);
                if (draw(&run, 2)) run_scan(&run);
            }
            run_steps(&run, run.p->n_steps);
            run_scan(&run);
            run_end(&run);
        }
}

/* Saved before any step of two epochs, it goes on; before some of one where tests are few. */
static void test_goes_on_from_every_step(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, every step");
    for (size_t i = 0; i < RELAY_WAYS; i++) {
        struct run run;
        run_begin(&run, &relay_ways[i], seed + i, 0, drps_io_os());
        while (run.r.next < (FEW ? 1 : 2) * run.p->epoch_steps) {
            run_checkpoint(&run);
            run_steps(&run, (FEW ? 3 : 1) + draw(&run, 2));
            run_crash(&run);
            must_restore(&run, run.saves_n - 1);
            run_steps(&run, 1);
        }
        run_scan(&run);
        scan_saves(&run);
        run_end(&run);
    }
}

/* Open the store again, fresh or from the last save, for so many epochs and no more. */
static void open_for_epochs(struct run *run, uint64_t epochs)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config;
    run_crash(run);
    run->r.first = run->r.next = run->saves_n ? run->saves[0].next : 0;
    begin_at(run, run->r.next);
    run->windows.epochs = epochs;
    config = run->config;
    config.saved_dir = run->saves_n ? run->saves[0].dir : NULL;
    if (run->saves_n) memcpy(run->r.model, run->saves[0].model, model_bytes(run));
    if (drps_store_relay.open(&config, &run->r.st, &err) < 0) fail_msg("%s", err.text);
}

/* A run for one epoch is saved at its end, and goes on for more; one for many is saved in the last
 * window of an epoch, and goes on for the rest of that alone. */
static void test_goes_on_for_other_epochs(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, other epochs");
    for (size_t i = 0; i < RELAY_WAYS; i++) {
        struct run run;
        run_begin(&run, &relay_ways[i], seed + i, 0, drps_io_os());
        const size_t epoch = run.p->epoch_steps;
        open_for_epochs(&run, 1);
        run_steps(&run, epoch);
        run_checkpoint(&run);
        open_for_epochs(&run, 3);
        run_scan(&run);
        run_steps(&run, epoch * 2 - 1);
        drop_save(&run, 0);
        run_checkpoint(&run);
        open_for_epochs(&run, 1);
        run_scan(&run);
        run_steps(&run, 1);
        run_scan(&run);
        run_end(&run);
    }
}

/* The file grows by what saves pin and not by more; when they are forgotten it serves again. */
static void test_file_grows_by_what_is_pinned(void **state)
{
    (void)state;
    struct run run;
    struct stat before, first, after;
    run_begin(&run, &relay_ways[1], test_seed("relay, growth"), 0, drps_io_os());
    char *path = drps_path_join(run.dir, "runs");
    assert_int_equal(stat(path, &before), 0);
    run_steps(&run, run.p->epoch_steps);
    run_checkpoint(&run);
    assert_int_equal(stat(path, &first), 0);
    assert_true(first.st_size > before.st_size);
    for (size_t k = 0; k < 30; k++) {
        run_steps(&run, 3);
        run_checkpoint(&run);
    }
    assert_int_equal(stat(path, &after), 0);
    assert_true(after.st_size <= (SAVES + 2) * before.st_size);
    while (run.saves_n) {
        run.r.ops->forget(run.r.st, run.saves[0].number);
        drop_save(&run, 0);
    }
    run_steps(&run, run.p->n_steps);
    run_scan(&run);
    free(path);
    run_end(&run);
}

/* More saves than there may be are refused, and one more fits when one was forgotten. */
static void test_too_many_saves_are_refused(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct run run;
    unsigned number;
    run_begin(&run, &relay_ways[1], test_seed("relay, many saves"), 0, drps_io_os());
    run_steps(&run, 10);
    for (unsigned k = 0; k < 10; k++) {
        char *dir = scratch_new();
        const int rc = drps_store_relay.save(run.r.st, dir, &number, &err);
        assert_int_equal(rc, k == 8 ? -EINVAL : 0);
        if (rc < 0) drps_store_relay.forget(run.r.st, 3);
        if (k == 9) assert_int_equal(number, 3);
        scratch_remove(dir);
    }
    run_steps(&run, run.p->n_steps);
    run_end(&run);
}

static void test_open_step_is_refused(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_rows rows;
    struct run run;
    run_begin(&run, &relay_ways[1], 1, 0, drps_io_os());
    const struct plan_step *step = &run.p->steps[0];
    assert_int_equal(drps_store_relay.step_open(run.r.st, 0, step->slots, step->n_ids, &rows, &err),
                     0);
    assert_int_equal(run_save(&run, &err), -EINVAL);
    assert_int_equal(drps_store_relay.step_close(run.r.st, 0, 0, NULL), 0);
    run_end(&run);
}

/* ---- What does not fit ---- */

static int has_run_file(const char *dir)
{
    char *path = drps_path_join(dir, "runs");
    const int there = path_exists(path);
    free(path);
    return there;
}

static void refuse(struct run *run, const struct drps_store_config *config, int code,
                   const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store *st;
    struct drps_store_config other = *config;
    other.saved_dir = run->saves[0].dir;
    const int rc = drps_store_relay.open(&other, &st, &err);
    if (rc != code || !strstr(err.text, text)) fail_msg("code %d, \"%s\"", rc, err.text);
    assert_null(st);
    assert_int_equal(folder_entries(run->dir), 0);
}

static void refuse_scan(struct run *run, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = scan_save(run, 0, drps_io_os(), &err);
    if (rc != DRPS_E_CORRUPT || !strstr(err.text, text))
        fail_msg("scan: code %d, \"%s\"", rc, err.text);
}

static void test_other_stores_are_refused(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, other stores");
    struct run run;
    run_begin(&run, &relay_ways[3], seed, 0, drps_io_os());
    run_steps(&run, run.p->epoch_steps + 7);
    run_checkpoint(&run);
    run_crash(&run);
    begin_at(&run, run.saves[0].next);

    struct drps_relay_saved about;
    assert_int_equal(drps_relay_saved_about(drps_io_os(), run.saves[0].dir, &about, NULL), 0);
    assert_int_equal(about.rows, run.p->rows);
    assert_int_equal(about.row_bytes, run.p->row_bytes);
    assert_int_equal(about.memory_bytes, run.config.memory_bytes);
    assert_int_equal(about.buffer_bytes, run.config.buffer_bytes);
    assert_int_equal(about.windows, run.p->source.windows);
    assert_int_equal(about.epoch_step, 7);

    struct drps_store_config config = run.config;
    config.memory_bytes += 40 * run.p->row_bytes;
    refuse(&run, &config, DRPS_E_CONFIG, "rows in memory");
    config = run.config;
    config.first_step++;
    refuse(&run, &config, DRPS_E_CONFIG, "before step 7, not 8");
    config = run.config;
    config.rows++;
    refuse(&run, &config, DRPS_E_CONFIG, "rows");
    struct plan *other = relay_plan(&relay_ways[3], 1, EPOCHS, seed);
    plan_cut(other, seed + 1, 5);
    struct drps_store_config recut = relay_config(other, &relay_ways[3]);
    recut.dir = run.dir;
    recut.first_step = run.config.first_step;
    refuse(&run, &recut, DRPS_E_CONFIG, "windows");
    plan_free(other);
    must_restore(&run, 0);
    run_steps(&run, run.p->n_steps);
    run_end(&run);
}

/* A save is refused by a plan of as many windows and frames that has other rows in them. */
static void test_other_windows_are_refused(void **state)
{
    (void)state;
    const uint64_t seed = test_seed("relay, other windows");
    struct run run;
    run_begin(&run, &relay_ways[7], seed, 0, drps_io_os());
    run_steps(&run, run.p->epoch_steps);
    run_checkpoint(&run);
    run_crash(&run);
    begin_at(&run, run.saves[0].next);
    struct plan *other = relay_plan(&relay_ways[7], 1, EPOCHS, seed + 1);
    struct drps_window_source source = other->source;
    assert_int_equal(source.windows, run.p->source.windows); /* a step each */
    source.epochs = 1;
    source.max_rows = source.working_rows = run.p->source.working_rows;
    if (other->source.working_rows <= source.working_rows) {
        struct drps_store_config config = run.config;
        config.windows = &source;
        refuse(&run, &config, DRPS_E_CONFIG, "checksum of windows");
    }
    plan_free(other);
    run_end(&run);
}

static void cut_file(const char *dir, const char *name, uint64_t bytes)
{
    char *path = drps_path_join(dir, name);
    size_t n;
    char *all = scratch_read(path, &n);
    scratch_write(path, all, bytes < n ? bytes : n);
    free(all);
    free(path);
}

static void test_cut_files_are_refused(void **state)
{
    (void)state;
    struct run run;
    run_begin(&run, &relay_ways[1], test_seed("relay, cut files"), 0, drps_io_os());
    run_steps(&run, run.p->epoch_steps);
    run_checkpoint(&run);
    run_crash(&run);
    begin_at(&run, run.saves[0].next);
    cut_file(run.saves[0].dir, "runs", 4096);
    refuse(&run, &run.config, DRPS_E_CORRUPT, "runs");
    refuse_scan(&run, "runs");
    cut_file(run.saves[0].dir, "relay.rec", 1000);
    refuse(&run, &run.config, DRPS_E_CORRUPT, "relay.rec");
    refuse_scan(&run, "relay.rec");
    cut_file(run.saves[0].dir, "relay.rec", 0);
    refuse(&run, &run.config, DRPS_E_CORRUPT, "relay.rec");
    run_end(&run);
}

/* A byte of the run file: where a stream has it, a scan says so, and else it does not matter. */
static void test_scan_notices_damaged_chunks(void **state)
{
    (void)state;
    for (size_t i = 1; i < RELAY_WAYS; i++) {
        struct run run;
        size_t bytes, noticed = 0;
        run_begin(&run, &relay_ways[i], test_seed("relay, damaged chunks") + i, 0, drps_io_os());
        run_steps(&run, run.p->epoch_steps + 9);
        run_checkpoint(&run);
        run_crash(&run);
        char *path = drps_path_join(run.saves[0].dir, "runs");
        char *all = scratch_read(path, &bytes);
        for (size_t k = 0; k < 30; k++) { /* the last time, of every chunk */
            struct drps_err err = DRPS_ERR_INIT;
            const size_t first = k < 29 ? draw(&run, bytes) : 0, step = k < 29 ? bytes : 4096;
            for (size_t at = first; at < bytes; at += step)
                all[at] ^= 0x10;
            scratch_write(path, all, bytes);
            const int rc = scan_save(&run, 0, drps_io_os(), &err);
            if (rc && (rc != DRPS_E_CORRUPT || !strstr(err.text, "not those that were written")))
                fail_msg("code %d: %s", rc, err.text);
            noticed += rc != 0;
            for (size_t at = first; at < bytes; at += step)
                all[at] ^= 0x10;
        }
        assert_true(noticed > 0);
        free(all);
        free(path);
        run_end(&run);
    }
}

/* A store that is looked at takes a part of the memory that it had, whatever that was. */
static void test_scan_takes_little_memory(void **state)
{
    static const struct {
        size_t row_bytes;
        uint64_t part; /* of the memory: one of so many */
    } cases[] = {{8, 1}, {64, 2}, {256, 6}, {1024, 8}};
    const uint64_t memory = UINT64_C(2) << 30, rows = 1u << 26;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_relay_share share;
        drps_relay_share(memory, rows, cases[i].row_bytes, 0, &share);
        const uint64_t open = drps_relay_window_bytes(&share, rows, 1000) / share.row_bytes;
        const struct drps_window_source source = {
            .windows = 200, .max_rows = (size_t)(open / 2), .working_rows = open};
        const struct drps_store_config config = {.rows = rows,
                                                 .row_bytes = cases[i].row_bytes,
                                                 .memory_bytes = memory,
                                                 .windows = &source};
        const uint64_t bytes = drps_relay_scan_saved_memory(&config);
        if (bytes > memory / cases[i].part)
            fail_msg("rows of %zu bytes: %llu of %llu", cases[i].row_bytes,
                     (unsigned long long)bytes, (unsigned long long)memory);
    }
}

/* ---- Hostile records ---- */

struct records {
    uint64_t n;
    char **data;
    size_t *bytes;
};

static struct records read_records(const char *dir)
{
    struct drps_recfile *f;
    char *path = drps_saved_records_path(dir);
    assert_int_equal(drps_recfile_open(drps_io_os(), path, DRPS_KIND_SAVED_RELAY, &f, NULL), 0);
    struct records r = {.n = drps_recfile_count(f)};
    r.data = calloc(r.n, sizeof(*r.data));
    r.bytes = calloc(r.n, sizeof(*r.bytes));
    assert_non_null(r.data);
    assert_non_null(r.bytes);
    for (uint64_t i = 0; i < r.n; i++) {
        r.bytes[i] = (size_t)drps_recfile_bytes(f, i);
        r.data[i] = malloc(r.bytes[i] + 8);
        assert_int_equal(drps_recfile_read(f, i, 1, r.data[i], NULL), 0);
    }
    drps_recfile_close(f);
    free(path);
    return r;
}

static void write_records(const struct records *r, const char *dir)
{
    struct drps_recwriter *w;
    char *path = drps_saved_records_path(dir);
    assert_int_equal(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_SAVED_RELAY, &w, NULL), 0);
    for (uint64_t i = 0; i < r->n; i++) {
        const struct drps_piece piece = {.data = r->data[i], .bytes = r->bytes[i]};
        assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
    free(path);
}

static void free_records(struct records *r)
{
    for (uint64_t i = 0; i < r->n; i++)
        free(r->data[i]);
    free(r->data);
    free(r->bytes);
}

static int visit_nothing(void *ctx, uint64_t first, size_t n, const void *rows,
                         struct drps_err *err)
{
    (void)ctx, (void)first, (void)n, (void)rows, (void)err;
    return 0;
}

/* Look at the save. Returns 1 if all rows were shown, whatever they are. */
static int look_at_hostile(struct run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = run->config;
    char *dir = scratch_new();
    config.dir = dir;
    config.saved_dir = run->saves[0].dir;
    const int rc = drps_relay_scan_saved(&config, 0, visit_nothing, NULL, &err);
    scratch_remove(dir);
    return rc == 0;
}

/* Open the save, and scan and run what opens, whatever the rows are. Returns 1 if it opened. */
static int use_hostile(struct run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_store_config config = run->config;
    struct drps_store *st;
    struct drps_rows rows;
    config.saved_dir = run->saves[0].dir;
    if (drps_store_relay.open(&config, &st, &err) < 0) {
        assert_int_equal(folder_entries(run->dir), 0);
        return 0;
    }
    int rc = drps_store_relay.scan(st, 0, visit_nothing, NULL, NULL);
    for (size_t s = run->saves[0].next; s < run->p->n_steps && rc == 0; s++) {
        const struct plan_step *step = &run->p->steps[s];
        const uint64_t nr = s - run->saves[0].next;
        rc = drps_store_relay.step_open(st, nr, step->slots, step->n_ids, &rows, NULL);
        if (rc == 0) rc = drps_store_relay.step_close(st, nr, 1, NULL);
    }
    drps_store_relay.close(st);
    scratch_remove(run->dir);
    run->config.dir = run->dir = scratch_new();
    return 1;
}

/* Change a word of a record, or its length. */
static void change_record(struct run *run, char *data, size_t *bytes)
{
    static const uint32_t values[] = {0, 1, 7, UINT32_MAX, UINT32_MAX - 1, 1u << 31};
    const size_t words = *bytes / 4;
    const size_t how = draw(run, 8);
    if (!words || how == 0) {
        *bytes = draw(run, *bytes + 8);
        return;
    }
    const size_t at = draw(run, words) * 4;
    uint32_t v;
    memcpy(&v, data + at, sizeof(v));
    v = how < 3 ? v + 1 : how < 5 ? v - 1 : values[draw(run, 6)];
    memcpy(data + at, &v, sizeof(v));
}

/* Whatever its records say, a save does not make the store read or write where it must not. */
static void test_hostile_records_are_survived(void **state)
{
    enum { TRIES = FEW ? 20 : 60 };
    (void)state;
    const uint64_t seed = test_seed("relay, hostile records");
    size_t opened = 0,
           shown = 0; /* all ways together: of one, few tries may have no or every one */
    for (size_t i = 0; i < RELAY_WAYS; i++) {
        struct run run;
        run_begin(&run, &relay_ways[i], seed + i, 0, drps_io_os());
        run_steps(&run, 2 * run.p->epoch_steps + 3);
        run_checkpoint(&run);
        run_crash(&run);
        begin_at(&run, run.saves[0].next);
        struct records r = read_records(run.saves[0].dir);
        for (size_t k = 0; k < TRIES; k++) {
            const size_t which = draw(&run, draw(&run, 2) || r.n < 9 ? r.n : 9);
            char *was = r.data[which];
            const size_t bytes = r.bytes[which];
            char *changed = calloc(1, bytes + 8);
            assert_non_null(changed);
            memcpy(changed, was, bytes);
            r.data[which] = changed;
            change_record(&run, changed, &r.bytes[which]);
            write_records(&r, run.saves[0].dir);
            opened += (size_t)use_hostile(&run);
            shown += (size_t)look_at_hostile(&run);
            r.data[which] = was;
            r.bytes[which] = bytes;
            free(changed);
        }
        free_records(&r);
        run_end(&run);
    }
    assert_in_range(opened, 1, RELAY_WAYS * TRIES * 9 / 10); /* rows may be any */
    assert_in_range(shown, 1, RELAY_WAYS * TRIES * 9 / 10);
}

/* Whole records that contradict each other are refused, and the folder is as it was. */
static void test_contradicting_records_are_refused(void **state)
{
    enum { SIZES = 2, RUNS = 4, LISTS = 5, LISTED = 7 }; /* records, and a number of `sizes` */
    (void)state;
    struct run run;
    run_begin(&run, &relay_ways[3], test_seed("relay, contradictions"), 0, drps_io_os());
    run_steps(&run, run.p->epoch_steps + 5);
    run_checkpoint(&run);
    run_crash(&run);
    begin_at(&run, run.saves[0].next);
    struct records r = read_records(run.saves[0].dir);
    uint64_t sizes[8], place[5];
    memcpy(place, r.data[1], sizeof(place));
    memcpy(sizes, r.data[SIZES], sizeof(sizes));
    assert_true(sizes[LISTED] > 1 && sizes[LISTED] <= 4096);
    const size_t bits = LISTS + 1, window = bits + 1;
    uint32_t frame = 0, chunk;
    if (r.bytes[window]) memcpy(&frame, r.data[window], sizeof(frame));
    memcpy(&chunk, r.data[LISTS] + 16, sizeof(chunk));
    uint64_t free_word;
    size_t word = 0; /* one with a free frame */
    for (memcpy(&free_word, r.data[bits], 8); !free_word;
         memcpy(&free_word, r.data[bits] + word, 8))
        word += 8;
    const uint64_t less = free_word & (free_word - 1);
    const uint32_t more = UINT32_MAX;
    const uint64_t closing = place[2] + 3;
    const uint8_t used = (uint8_t)(r.data[bits][frame / 8] ^ 1 << frame % 8);
    const struct {
        size_t record, at;
        const void *data;
        size_t bytes;
        const char *text;
    } cases[] = {
        {1, 16, &closing, sizeof(closing), "steps"},
        {RUNS, 20, &more, sizeof(more), "runs"},                   /* merged too often */
        {RUNS, 24, &more, sizeof(more), "chunks of runs"},         /* more chunks than are listed */
        {LISTS, 24 + 16, &chunk, sizeof(chunk), "chunks of runs"}, /* twice */
        {LISTS, 24 + 16, &more, sizeof(more), "chunks of runs"},   /* of no file */
        {LISTS, 24 + 20, &more, sizeof(more), "chunks of runs"},   /* too long */
        {bits, word, &less, sizeof(less), "frames"},               /* one that nobody has */
        {bits, frame / 8, &used, sizeof(used), "frames"},          /* free, and used */
        {window, 4, &frame, sizeof(frame), "frames"},              /* twice */
        {window, 4, &more, sizeof(more), "frames"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char was[8];
        char *at = r.data[cases[i].record] + cases[i].at;
        if (cases[i].at + cases[i].bytes > r.bytes[cases[i].record]) continue; /* a small window */
        memcpy(was, at, cases[i].bytes);
        memcpy(at, cases[i].data, cases[i].bytes);
        write_records(&r, run.saves[0].dir);
        refuse(&run, &run.config, DRPS_E_CORRUPT, cases[i].text);
        refuse_scan(&run, cases[i].text);
        memcpy(at, was, cases[i].bytes);
    }
    r.n--; /* the last rows are missing */
    write_records(&r, run.saves[0].dir);
    refuse(&run, &run.config, DRPS_E_CORRUPT, "rows");
    refuse_scan(&run, "rows");
    r.n++;
    char *last = r.data[r.n - 1]; /* rows that no frame is for */
    r.data = realloc(r.data, (r.n + 1) * sizeof(*r.data));
    r.bytes = realloc(r.bytes, (r.n + 1) * sizeof(*r.bytes));
    r.data[r.n] = last;
    r.bytes[r.n] = 8;
    r.n++;
    write_records(&r, run.saves[0].dir);
    refuse(&run, &run.config, DRPS_E_CORRUPT, "more records");
    refuse_scan(&run, "more records");
    r.n--;
    write_records(&r, run.saves[0].dir);
    must_restore(&run, 0);
    run_steps(&run, run.p->n_steps);
    free_records(&r);
    run_end(&run);
}

/* ---- Faults ---- */

/* Run two steps and save; where a fault hit a write of the run file, go on from the last save
 * first. */
static void go_on_or_restore(struct run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    int rc = plan_steps(&run->r, run->r.next + 2, &err);
    if (rc == 0) rc = run_save(run, &err);
    if (rc == 0) {
        forget_oldest(run);
        return;
    }
    run_crash(run);
    must_restore(run, run->saves_n - 1);
    run_checkpoint(run);
}

/* Whichever call of a save fails, once: the run goes on, the saves before are as they were, and the
 * next save is whole. */
static void test_failed_saves_disturb_nothing(void **state)
{
    static const unsigned ops[] = {FAULT_LINK, FAULT_OPEN, FAULT_FALLOCATE, FAULT_PWRITE,
                                   FAULT_FSYNC};
    (void)state;
    const uint64_t seed = test_seed("relay, failed saves");
    for (size_t i = 0; i < RELAY_WAYS; i++)
        for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++) {
            struct fault_io *f = uring_faults_new();
            struct drps_err err = DRPS_ERR_INIT;
            struct run run;
            int fired = 1, met = 0;
            run_begin(&run, &relay_ways[i], seed + i, 0, &f->io);
            run_steps(&run, run.p->epoch_steps + draw(&run, 30));
            run_checkpoint(&run);
            for (long k = 1; fired; k++) {
                const int code = k % 2 ? -ENOSPC : -EIO;
                fault_io_arm(f, ops[o], k, 0, FAULT_ERROR, code);
                drps_err_clear(&err);
                const int rc = run_save(&run, &err);
                fired = f->fired;
                fault_io_arm(f, 0, 0, 0, FAULT_ERROR, 0);
                if (rc < 0 && rc != -EIO && rc != -ENOSPC) /* one may come late */
                    fail_msg("code %d: %s", rc, err.text);
                if (rc == 0) { /* one too many */
                    const unsigned number = run.saves[run.saves_n - 1].number;
                    drop_save(&run, run.saves_n - 1);
                    run.r.ops->forget(run.r.st, number);
                }
                met += rc < 0;
                go_on_or_restore(&run);
                if (k % 4 == 0) scan_saves(&run);
            }
            assert_true(met > 0 || ops[o] == FAULT_FALLOCATE); /* it need not grow */
            if (ops[o] == FAULT_LINK) {
                fault_io_arm(f, FAULT_LINK, 1, 0, FAULT_ERROR, -EXDEV);
                drps_err_clear(&err);
                assert_int_equal(run_save(&run, &err), -ENOTSUP);
            }
            run_checkpoint(&run);
            run_steps(&run, draw(&run, run.p->epoch_steps));
            run_crash(&run);
            must_restore(&run, run.saves_n - 1);
            run_steps(&run, run.p->n_steps);
            run_scan(&run);
            run_end(&run);
            uring_faults_free(f);
        }
}

/* A disk without room for what is pinned: nothing has changed. */
static void test_no_room_to_pin(void **state)
{
    (void)state;
    struct fault_io *f = uring_faults_new();
    struct drps_err err = DRPS_ERR_INIT;
    struct stat before, after;
    struct run run;
    run_begin(&run, &relay_ways[1], test_seed("relay, no room"), 0, &f->io);
    char *path = drps_path_join(run.dir, "runs");
    run_steps(&run, run.p->epoch_steps);
    assert_int_equal(stat(path, &before), 0);
    fault_io_arm(f, FAULT_FALLOCATE, 1, 1, FAULT_ERROR, -ENOSPC);
    assert_int_equal(run_save(&run, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "no space left"));
    assert_non_null(strstr(err.text, path));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    fault_io_arm(f, 0, 0, 0, FAULT_ERROR, 0);
    run_steps(&run, run.p->n_steps);
    run_scan(&run);
    free(path);
    run_end(&run);
    uring_faults_free(f);
}

/* Whichever call of an opening fails, once: it says so, and the save serves the next opening. */
static void test_failed_restores_disturb_nothing(void **state)
{
    static const unsigned ops[] = {FAULT_LINK, FAULT_OPEN, FAULT_FALLOCATE, FAULT_PREAD,
                                   FAULT_SIZE};
    (void)state;
    const uint64_t seed = test_seed("relay, failed restores");
    for (size_t i = 0; i < RELAY_WAYS; i++)
        for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++) {
            struct fault_io *f = uring_faults_new();
            struct drps_err err = DRPS_ERR_INIT;
            struct run run;
            int fired = 1;
            run_begin(&run, &relay_ways[i], seed + i, 0, &f->io);
            run_steps(&run, run.p->epoch_steps + draw(&run, 30));
            run_checkpoint(&run);
            run_steps(&run, draw(&run, 30));
            for (long k = 1; fired && k < 4000; k += 1 + k / (FEW ? 1 : 4)) {
                run_crash(&run);
                drps_err_clear(&err);
                fault_io_arm(f, ops[o], k, 0, FAULT_ERROR, -EIO);
                int rc = run_restore(&run, 0, &err);
                if (rc < 0) assert_false(has_run_file(run.dir));
                if (rc == 0) rc = plan_steps(&run.r, run.r.next + 5, &err);
                fired = f->fired;
                const int later = ops[o] == FAULT_PREAD; /* of what was only read ahead */
                if (rc != (fired ? -EIO : 0) && !(rc == 0 && later))
                    fail_msg("code %d: %s", rc, err.text);
                fault_io_arm(f, 0, 0, 0, FAULT_ERROR, 0);
                if (!fired) continue;
                run_crash(&run); /* a new folder */
                must_restore(&run, 0);
                run_steps(&run, 5);
            }
            run_crash(&run);
            must_restore(&run, 0);
            run_scan(&run);
            run_steps(&run, run.p->n_steps);
            run_scan(&run);
            run_end(&run);
            uring_faults_free(f);
        }
}

/* Whichever call of looking at a save fails, once: it says so, and the save is as it was. */
static void test_failed_scans_of_saves(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_FALLOCATE, FAULT_PREAD, FAULT_PWRITE,
                                   FAULT_SIZE};
    (void)state;
    for (size_t i = 0; i < RELAY_WAYS; i++) {
        struct fault_io *f = fault_io_new(drps_io_os());
        struct run run;
        run_begin(&run, &relay_ways[i], test_seed("relay, failed looks") + i, 0, drps_io_os());
        run_steps(&run, run.p->epoch_steps + draw(&run, 30));
        run_checkpoint(&run);
        for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++)
            for (long k = 1;; k += 1 + k / (FEW ? 1 : 8)) {
                struct drps_err err = DRPS_ERR_INIT;
                fault_io_arm(f, ops[o], k, 0, FAULT_ERROR, -EIO);
                const int rc = scan_save(&run, 0, &f->io, &err);
                if (rc != (f->fired ? -EIO : 0)) fail_msg("code %d: %s", rc, err.text);
                if (!f->fired) break;
            }
        scan_saves(&run);
        run_steps(&run, run.p->n_steps);
        run_scan(&run);
        run_end(&run);
        fault_io_free(f);
    }
}

/* ---- Losing power ---- */

static int sync_file(const struct drps_io *io, const char *dir, const char *name)
{
    int fd;
    char *path = drps_path_join(dir, name);
    assert_non_null(path);
    int rc = drps_io_open(io, path, O_RDONLY, &fd, NULL);
    if (rc == 0) rc = drps_io_sync(io, fd, path, NULL);
    drps_io_close(io, fd);
    free(path);
    return rc;
}

/* Run some steps and save. A save counts when its records and names are durable, too, which is the
 * caller's to do. */
static int steps_and_save(struct run *run, size_t steps, const char *disk)
{
    int rc = plan_steps(&run->r, run->r.next + steps, NULL);
    if (rc == 0) rc = run_save(run, NULL);
    if (rc < 0) return rc;
    const char *dir = run->saves[run->saves_n - 1].dir;
    rc = sync_file(run->config.io, dir, "relay.rec");
    if (rc == 0) rc = drps_sync_folder(run->config.io, dir, NULL);
    if (rc == 0) rc = drps_sync_folder(run->config.io, disk, NULL);
    if (rc < 0) drop_save(run, run->saves_n - 1);
    return rc;
}

/* Every save shows its rows in what is found after the cut. */
static void scan_found(struct run *run, struct power *p, uint64_t choice, const char *found)
{
    const struct drps_io *io = run->config.io;
    const int rc = power_found(p, choice, found);
    if (rc < 0) fail_msg("cannot make %s: %s", found, drps_err_name(rc));
    run->config.io = drps_io_os();
    for (size_t i = 0; i < run->saves_n; i++) {
        char *real = run->saves[i].dir;
        run->saves[i].dir = drps_path_join(found, strrchr(real, '/') + 1);
        assert_non_null(run->saves[i].dir);
        struct drps_err err = DRPS_ERR_INIT;
        if (scan_save(run, i, drps_io_os(), &err) < 0) fail_msg("%s: %s", found, err.text);
        free(run->saves[i].dir);
        run->saves[i].dir = real;
    }
    run->config.io = io;
    assert_int_equal(drps_io_remove_tree(drps_io_os(), found, NULL), 0);
}

/* One run, cut at change k after its first save. Returns whether it came to that change. */
static int run_until_cut(struct scratch *s, const struct relay_way *way, uint64_t seed, long k)
{
    struct run run;
    char *disk = drps_path_join(s->dir, "disk"), *found = drps_path_join(s->dir, "found");
    assert_true(disk && found);
    assert_int_equal(mkdir(disk, 0777), 0);
    assert_int_equal(setenv("TMPDIR", disk, 1), 0);
    struct power *p = power_new(drps_io_os(), disk);
    if (over_uring) power_see_requests(p);
    run_begin(&run, way, seed, 0, &p->io);
    assert_int_equal(steps_and_save(&run, run.p->epoch_steps, disk), 0);
    power_cut_at(p, POWER_CHANGES, k);
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        rc = steps_and_save(&run, run.p->epoch_steps / 4, disk);
    const int fired = p->off;
    /* Rows may move on after the last save, and then nobody has waited for what was cut. */
    if (rc == 0 && fired) rc = steps_and_save(&run, 0, disk);
    assert_int_equal(rc < 0, fired);
    if (over_uring && !fired) assert_true(p->requests > 0);
    power_cut(p);
    assert_int_equal(setenv("TMPDIR", s->dir, 1), 0);
    for (uint64_t choice = 0; choice < 4; choice++)
        scan_found(&run, p, choice < 2 ? choice : drps_rng_at(seed + (uint64_t)k, choice), found);
    run_end(&run);
    power_free(p);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), disk, NULL), 0);
    free(disk);
    free(found);
    return fired;
}

/* Whenever the power goes, with whatever is under way then: saves that were made are whole. */
static void test_saves_outlast_power(void **state)
{
    static const size_t some[] = {1, 7};
    struct scratch *s = *state;
    const char *tmp = getenv("TMPDIR");
    char *before = tmp ? strdup(tmp) : NULL;
    for (size_t i = 0; i < 2; i++) {
        const uint64_t seed = test_seed("relay, power");
        long k = 1;
        while (run_until_cut(s, &relay_ways[some[i]], seed, k))
            k++;
        assert_true(k > 5);
    }
    assert_int_equal(before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goes_on_from_any_save),
        cmocka_unit_test(test_goes_on_from_every_step),
        cmocka_unit_test(test_goes_on_for_other_epochs),
        cmocka_unit_test(test_file_grows_by_what_is_pinned),
        cmocka_unit_test(test_too_many_saves_are_refused),
        cmocka_unit_test(test_open_step_is_refused),
        cmocka_unit_test(test_other_stores_are_refused),
        cmocka_unit_test(test_other_windows_are_refused),
        cmocka_unit_test(test_cut_files_are_refused),
        cmocka_unit_test(test_hostile_records_are_survived),
        cmocka_unit_test(test_contradicting_records_are_refused),
        cmocka_unit_test(test_scan_notices_damaged_chunks),
        cmocka_unit_test(test_scan_takes_little_memory),
    };
    const struct CMUnitTest faults[] = {
        cmocka_unit_test(test_failed_saves_disturb_nothing),
        cmocka_unit_test(test_no_room_to_pin),
        cmocka_unit_test(test_failed_restores_disturb_nothing),
        cmocka_unit_test(test_failed_scans_of_saves),
        cmocka_unit_test_setup_teardown(test_saves_outlast_power, scratch_setup, scratch_teardown),
    };
    const int failed = cmocka_run_group_tests_name("relay, save", tests, NULL, NULL) +
                       cmocka_run_group_tests_name("relay, save, faults", faults, NULL, NULL);
    return failed + RUN_OVER_URING("relay, save, faults", faults);
}
