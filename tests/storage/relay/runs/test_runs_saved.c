/* Records of saved runs that no save wrote: open refuses them, or what is read from them ends in an
 * error that says so. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "storage/relay/runs/runs_model.h"
#include "storage/relay/runs/runs_saved.h"
#include "support/lists.h"

enum { SEED = 11, RECORDS = 4 };
enum record { SIZES, PINNED, RUNS, CHUNKS };

/* The records of a save, in memory, where they can be altered. */
struct records {
    struct model m;
    const char *dir;
    char *path;            /* own: of the file with them */
    char *record[RECORDS]; /* own */
    size_t bytes[RECORDS];
};

static void read_records(struct records *s)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recfile *f;
    s->path = must(drps_saved_records_path(s->dir));
    assert_ok(drps_recfile_open(drps_io_os(), s->path, DRPS_KIND_SAVED_RELAY, &f, &err), &err);
    assert_int_equal(drps_recfile_count(f), RECORDS);
    for (size_t i = 0; i < RECORDS; i++) {
        s->bytes[i] = (size_t)drps_recfile_bytes(f, i);
        s->record[i] = must(malloc((size_t)drps_recfile_run_bytes(f, i, 1) + 8));
        assert_ok(drps_recfile_read(f, i, 1, s->record[i], &err), &err);
    }
    drps_recfile_close(f);
}

static void write_records(const struct records *s)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recwriter *w;
    assert_int_equal(unlink(s->path), 0);
    assert_ok(drps_recwriter_open(drps_io_os(), s->path, DRPS_KIND_SAVED_RELAY, &w, &err), &err);
    for (size_t i = 0; i < RECORDS; i++) {
        const struct drps_piece piece = {s->record[i], s->bytes[i]};
        assert_ok(drps_recwriter_add(w, &piece, 1, &err), &err);
    }
    assert_ok(drps_recwriter_finish(w, &err), &err);
    drps_recwriter_close(w);
}

/* Some runs and a queue, saved while sections are half taken. */
static struct records *records_begin(struct scratch *scratch)
{
    struct records *s = must(malloc(sizeof(*s)));
    struct drps_runs_config c = model_config(scratch);
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t frame = 0;
    model_begin(&s->m, scratch, SEED, &c);
    assert_ok(model_windows(&s->m, 60, &err), &err);
    assert_ok(drps_runs_take(s->m.runs, s->m.window, s->m.rows, &frame, 1, &err), &err);
    s->m.done = 1;
    assert_ok(model_save(&s->m, &s->dir, &err), &err);
    read_records(s);
    return s;
}

static void records_end(struct records *s)
{
    for (size_t i = 0; i < RECORDS; i++)
        free(s->record[i]);
    free(s->path);
    model_end(&s->m);
    free(s);
}

/* Take all rows of all windows, so long as there is no error. */
static int take_all(struct model *m, struct drps_err *err)
{
    const uint32_t frames[4] = {0, 1, 2, 3};
    int rc = 0;
    for (uint64_t rows = 0; rc == 0 && rows < 100000; rows++) {
        uint64_t least = DRPS_RUNS_NEVER;
        for (uint32_t i = 0; i < m->runs->n; i++)
            if (m->runs->needs[i] < least) least = m->runs->needs[i];
        if (least == DRPS_RUNS_NEVER) return 0;
        rc = drps_runs_prefetch(m->runs, least, err);
        if (rc == 0) rc = drps_runs_take(m->runs, least, m->rows, frames, 1 + rows % 2, err);
        if (rc == DRPS_E_CORRUPT && strstr(err->text, "fewer rows")) rc = 0; /* it had one alone */
    }
    return rc;
}

/* ---- One member after another ---- */

#define MEMBER(record, type, n, member, value)                                                     \
    {                                                                                              \
        record, (n) * sizeof(struct type) + offsetof(struct type, member),                         \
            sizeof(((struct type *)NULL)->member), value, #member                                  \
    }

static void test_each_member_is_checked(void **state)
{
    static const struct {
        enum record record;
        size_t at, bytes;
        uint64_t value;
        const char *name;
    } cases[] = {
        MEMBER(SIZES, drps_runs_sizes, 0, row_bytes, 8),
        MEMBER(SIZES, drps_runs_sizes, 0, chunk_bytes, 8192),
        MEMBER(SIZES, drps_runs_sizes, 0, file_chunks, 1),
        MEMBER(SIZES, drps_runs_sizes, 0, runs, 13),
        MEMBER(SIZES, drps_runs_sizes, 0, chunks, 59),
        MEMBER(SIZES, drps_runs_sizes, 0, chunks, 1 << 20),
        MEMBER(SIZES, drps_runs_sizes, 0, chunks, UINT32_MAX),
        MEMBER(SIZES, drps_runs_sizes, 0, chunks, UINT64_MAX),
        MEMBER(SIZES, drps_runs_sizes, 0, cursor, 1 << 20),
        MEMBER(SIZES, drps_runs_sizes, 0, saved, 0),
        MEMBER(SIZES, drps_runs_sizes, 0, saved, 2),
        MEMBER(SIZES, drps_runs_sizes, 0, saved, 14),
        MEMBER(SIZES, drps_runs_sizes, 0, saved, UINT64_MAX),
        MEMBER(SIZES, drps_runs_sizes, 0, listed, 3),
        MEMBER(SIZES, drps_runs_sizes, 0, listed, UINT64_MAX),
        MEMBER(RUNS, drps_runs_saved_run, 1, window, UINT64_MAX),
        MEMBER(RUNS, drps_runs_saved_run, 1, window, 0),
        MEMBER(RUNS, drps_runs_saved_run, 1, left, UINT64_MAX),
        MEMBER(RUNS, drps_runs_saved_run, 1, left, 1 << 20),
        MEMBER(RUNS, drps_runs_saved_run, 1, at, 4096),
        MEMBER(RUNS, drps_runs_saved_run, 1, at, UINT32_MAX),
        MEMBER(RUNS, drps_runs_saved_run, 1, level, 65),
        MEMBER(RUNS, drps_runs_saved_run, 2, level, 64),
        MEMBER(RUNS, drps_runs_saved_run, 1, chunks, 0),
        MEMBER(RUNS, drps_runs_saved_run, 1, chunks, UINT32_MAX),
        MEMBER(CHUNKS, drps_runs_saved_chunk, 3, need, UINT64_MAX),
        MEMBER(CHUNKS, drps_runs_saved_chunk, 3, chunk, UINT32_MAX),
        MEMBER(CHUNKS, drps_runs_saved_chunk, 3, bytes, 0),
        MEMBER(CHUNKS, drps_runs_saved_chunk, 3, bytes, 4097),
        MEMBER(CHUNKS, drps_runs_saved_chunk, 3, bytes, UINT32_MAX),
    };
    struct records *s = records_begin(*state);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        uint64_t good = 0;
        char *member = s->record[cases[i].record] + cases[i].at;
        assert_true(cases[i].at < s->bytes[cases[i].record]);
        memcpy(&good, member, cases[i].bytes);
        memcpy(member, &cases[i].value, cases[i].bytes);
        write_records(s);
        const int want = i < 4 ? DRPS_E_CONFIG : DRPS_E_CORRUPT;
        const int rc = model_reopen(&s->m, s->dir, 0, &err);
        if (rc != want) fail_msg("%zu, %s: %d", i, cases[i].name, rc);
        assert_null(s->m.runs);
        memcpy(member, &good, cases[i].bytes);
    }
    struct drps_err err = DRPS_ERR_INIT;
    write_records(s);
    assert_ok(model_reopen(&s->m, s->dir, 0, &err), &err);
    assert_ok(model_windows(&s->m, 20, &err), &err);
    records_end(s);
}

static void test_chunks_that_contradict_are_refused(void **state)
{
    struct records *s = records_begin(*state);
    struct drps_runs_saved_chunk *chunks = (struct drps_runs_saved_chunk *)s->record[CHUNKS];
    struct drps_runs_saved_run *runs = (struct drps_runs_saved_run *)s->record[RUNS];
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t good = chunks[4].chunk;
    chunks[4].chunk = chunks[2].chunk; /* twice, and a list might go round */
    write_records(s);
    assert_int_equal(model_reopen(&s->m, s->dir, 0, &err), DRPS_E_CORRUPT);
    chunks[4].chunk = good;

    size_t half = 0; /* a run that is in the midst of a section */
    while (!runs[half].left || !runs[half].at)
        assert_true(++half < s->bytes[RUNS] / sizeof(*runs));
    const uint64_t left = runs[half].left;
    runs[half].left = 0;
    write_records(s);
    assert_int_equal(model_reopen(&s->m, s->dir, 0, &err), DRPS_E_CORRUPT);
    runs[half].left = left;

    assert_true(runs[0].chunks > 1);
    chunks[0].need = chunks[1].need + 1; /* windows fall */
    write_records(s);
    assert_int_equal(model_reopen(&s->m, s->dir, 0, &err), DRPS_E_CORRUPT);
    records_end(s);
}

static void test_records_of_other_lengths_are_refused(void **state)
{
    struct records *s = records_begin(*state);
    for (size_t i = 0; i < RECORDS; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        s->bytes[i] -= 8;
        write_records(s);
        assert_int_equal(model_reopen(&s->m, s->dir, 0, &err), DRPS_E_CORRUPT);
        s->bytes[i] += 8;
    }
    records_end(s);
}

/* ---- Anything ---- */

/* The record's checksum of a chunk is that of what is there. */
static void sum_chunk(struct records *s, const char *file, struct drps_runs_saved_chunk *c)
{
    c->sum = drps_checksum(file + (size_t)c->chunk * s->m.config.chunk_bytes, c->bytes);
}

/* Some bytes of records or of chunks are others, and all checksums are right. */
static void alter(struct records *s, struct random_source *rng, char *file)
{
    struct drps_runs_saved_chunk *chunks = (struct drps_runs_saved_chunk *)s->record[CHUNKS];
    const size_t n = s->bytes[CHUNKS] / sizeof(*chunks);
    for (uint64_t k = 1 + random_below(rng, 3); k > 0; k--) {
        struct drps_runs_saved_chunk *c = &chunks[random_below(rng, n)];
        char *record = s->record[RUNS];
        size_t bytes = s->bytes[RUNS];
        if (random_below(rng, 4)) {
            record = file + (size_t)c->chunk * s->m.config.chunk_bytes;
            bytes = c->bytes < 200 || random_below(rng, 2) ? c->bytes : 200;
        } else if (random_below(rng, 2)) {
            record = s->record[CHUNKS];
            bytes = s->bytes[CHUNKS];
        }
        record[random_below(rng, bytes)] = (char)(random_below(rng, 3) ? random_u64(rng) : 0xff);
    }
    for (size_t i = 0; i < n; i++)
        if (chunks[i].chunk < 60 && chunks[i].bytes <= s->m.config.chunk_bytes)
            sum_chunk(s, file, &chunks[i]);
}

static void test_whatever_is_read_ends_well(void **state)
{
    struct random_source rng = {.seed = SEED};
    struct records *s = records_begin(*state);
    char *path = must(drps_saved_runs_path(s->dir)), *good[RECORDS];
    size_t n, ended[2] = {0}; /* at opening, later */
    char *bytes = scratch_read(path, &n), *file = must(malloc(n));
    for (size_t i = 0; i < RECORDS; i++) {
        good[i] = must(malloc(s->bytes[i]));
        memcpy(good[i], s->record[i], s->bytes[i]);
    }
    const int few = DRPS_TEST_ONE_IN > 1;
    for (int round = 0; round < (few ? 75 : 150); round++) {
        struct drps_err err = DRPS_ERR_INIT;
        memcpy(file, bytes, n);
        alter(s, &rng, file);
        scratch_write(path, file, n);
        write_records(s);
        int rc = model_reopen(&s->m, s->dir, round % 2, &err);
        const int opened = rc == 0;
        if (opened && round % 4 == 0 && drps_runs_live(s->m.runs) > 1)
            rc = drps_runs_merge(s->m.runs, &err);
        if (rc == 0) rc = take_all(&s->m, &err);
        if (rc < 0 && rc != DRPS_E_CORRUPT) fail_msg("round %d: %s", round, err.text);
        if (rc < 0) ended[opened]++;
        for (size_t i = 0; i < RECORDS; i++)
            memcpy(s->record[i], good[i], s->bytes[i]);
    }
    assert_true(ended[0] > 5 && ended[1] > (few ? 1 : 5));
    for (size_t i = 0; i < RECORDS; i++)
        free(good[i]);
    free(bytes);
    free(file);
    free(path);
    records_end(s);
}

static void test_damaged_chunk_is_found_by_verifying(void **state)
{
    struct records *s = records_begin(*state);
    const struct drps_runs_saved_chunk *chunks =
        (const struct drps_runs_saved_chunk *)s->record[CHUNKS];
    char *path = must(drps_saved_runs_path(s->dir));
    struct drps_err err = DRPS_ERR_INIT;
    FILE *f = must(fopen(path, "r+b"));
    const long at = (long)chunks[2].chunk * 4096 + 9;
    (void)fseek(f, at, SEEK_SET);
    const int byte = fgetc(f);
    (void)fseek(f, at, SEEK_SET);
    (void)fputc(byte ^ 1, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(drps_runs_verify_saved(drps_io_os(), s->dir, 0, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, path));
    free(path);
    records_end(s);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(test_each_member_is_checked),
        WITH_SCRATCH(test_chunks_that_contradict_are_refused),
        WITH_SCRATCH(test_records_of_other_lengths_are_refused),
        WITH_SCRATCH(test_whatever_is_read_ends_well),
        WITH_SCRATCH(test_damaged_chunk_is_found_by_verifying),
    };
    return cmocka_run_group_tests_name("runs saved", tests, NULL, NULL);
}
