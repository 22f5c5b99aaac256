/*
 * Streams against copies of them in memory: over many rounds of the file, on both engines, with
 * faults through the seam and bytes altered behind their back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/relay/sends.h"
#include "storage/relay/streams/streams_internal.h"
#include "support/fault_io.h"
#include "support/lists.h"
#include "support/scratch.h"

enum { CHUNK = 4096, STREAMS = 9, ROW = 520, ROWS_MOST = 300 };

static struct drps_streams_config config_of(const char *path, uint64_t file_chunks)
{
    return (struct drps_streams_config){.io = drps_io_os(),
                                        .path = path,
                                        .n = STREAMS,
                                        .file_chunks = file_chunks,
                                        .chunk_bytes = CHUNK,
                                        .tails = STREAMS,
                                        .behind = 12,
                                        .write_chunks = 4,
                                        .read_chunks = 7};
}

/* What each stream holds; bytes are numbered on over all streams. */
struct model {
    struct drps_streams *streams;
    struct random_source rng;
    char *holds[STREAMS]; /* own */
    size_t bytes[STREAMS];
    uint64_t pieces[STREAMS]; /* chunks at most, partial ones included */
    char *rows;               /* own: [ROWS_MOST][ROW] */
    uint64_t written;         /* ever */
    uint64_t most_chunks;     /* of all streams together */
    int few_tails;            /* less than streams */
};

static void model_begin(struct model *m, uint64_t seed, const struct drps_streams_config *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    *m = (struct model){
        .rng = {.seed = seed}, .most_chunks = c->file_chunks, .few_tails = c->tails < STREAMS};
    m->rows = must(malloc((size_t)ROWS_MOST * ROW));
    for (size_t i = 0; i < STREAMS; i++)
        m->holds[i] = must(malloc((size_t)c->file_chunks * CHUNK + CHUNK));
    if (drps_streams_open(c, &m->streams, &err) < 0) fail_msg("%s", err.text);
}

static void model_end(struct model *m)
{
    drps_streams_close(m->streams);
    for (size_t i = 0; i < STREAMS; i++)
        free(m->holds[i]);
    free(m->rows);
}

/* Each append may leave a partial chunk behind, where tails are few. */
static uint64_t chunks_at_most(const struct model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < STREAMS; i++)
        sum += m->few_tails ? m->pieces[i] : m->bytes[i] / CHUNK;
    return sum;
}

/* Append rows or bytes to a stream, as many as the file has room for. */
static int append_some(struct model *m, struct drps_err *err)
{
    const size_t stream = (size_t)random_below(&m->rng, STREAMS);
    const size_t n = 1 + (size_t)random_below(&m->rng, 60);
    uint32_t frames[60];
    if (chunks_at_most(m) + n * ROW / CHUNK + 2 > m->most_chunks) return 0;
    m->pieces[stream] += n * ROW / CHUNK + 2;
    for (size_t i = 0; i < n; i++) {
        frames[i] = (uint32_t)random_below(&m->rng, ROWS_MOST);
        char *row = m->rows + (size_t)frames[i] * ROW;
        memset(row, (int)(m->written++ % 251), ROW);
        memcpy(row, &m->written, sizeof(m->written));
    }
    for (size_t i = 0; i < n; i++) /* a frame that was drawn twice has the later row */
        memcpy(m->holds[stream] + m->bytes[stream] + i * ROW, m->rows + (size_t)frames[i] * ROW,
               ROW);
    m->bytes[stream] += n * ROW;
    if (random_below(&m->rng, 2))
        return drps_streams_append_rows(m->streams, stream, m->rows, ROW, frames, n, err);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = drps_streams_append(m->streams, stream, m->rows + (size_t)frames[i] * ROW, ROW, err);
    return rc;
}

static int read_bytes(struct model *m, size_t stream, struct drps_err *err)
{
    char got[3000];
    for (size_t at = 0; at < m->bytes[stream];) {
        const size_t left = m->bytes[stream] - at;
        size_t n = 1 + (size_t)random_below(&m->rng, sizeof(got));
        if (n > left) n = left;
        int rc = drps_streams_take(m->streams, got, n, err);
        if (rc < 0) return rc;
        assert_memory_equal(got, m->holds[stream] + at, n);
        at += n;
    }
    return 0;
}

static int read_rows(struct model *m, size_t stream, struct drps_err *err)
{
    uint32_t frames[ROWS_MOST];
    for (uint32_t i = 0; i < ROWS_MOST; i++)
        frames[i] = ROWS_MOST - 1 - i;
    for (size_t at = 0; at < m->bytes[stream];) {
        const size_t left = (m->bytes[stream] - at) / ROW;
        const size_t n = left < ROWS_MOST ? left : ROWS_MOST;
        int rc = drps_streams_take_rows(m->streams, m->rows, ROW, frames, n, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < n; i++)
            assert_memory_equal(m->rows + (size_t)frames[i] * ROW, m->holds[stream] + at + i * ROW,
                                ROW);
        at += n * ROW;
    }
    return 0;
}

/* Read a stream, with or without asking ahead, and keep it or not. */
static int read_one(struct model *m, size_t stream, struct drps_err *err)
{
    const char *at;
    size_t n = 0;
    const int keep = random_below(&m->rng, 4) == 0;
    int rc = 0;
    assert_int_equal(drps_streams_bytes(m->streams, stream), m->bytes[stream]);
    if (random_below(&m->rng, 2)) {
        rc = drps_streams_prefetch(m->streams, stream, err);
        for (int i = 0; i < 5 && rc == 0; i++)
            rc = append_some(m, err); /* to this one, too */
    }
    if (rc == 0) rc = drps_streams_begin(m->streams, stream, keep, err);
    if (rc == 0)
        rc = random_below(&m->rng, 2) ? read_rows(m, stream, err) : read_bytes(m, stream, err);
    if (rc == 0) rc = drps_streams_peek(m->streams, &at, &n, err);
    if (rc == 0) assert_int_equal(n, 0);
    if (rc == 0) rc = drps_streams_end(m->streams, err);
    if (rc == 0 && !keep) m->bytes[stream] = m->pieces[stream] = 0;
    return rc;
}

/* Rounds of appending and of reading a stream after the other. */
static int run_rounds(struct model *m, size_t rounds, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < rounds && rc == 0; i++) {
        for (size_t k = 0; k < 8 && rc == 0; k++)
            rc = append_some(m, err);
        if (rc == 0) rc = read_one(m, i % STREAMS, err);
    }
    return rc;
}

static void test_equal_copies_in_memory(void **state)
{
    const uint64_t seed = random_begin("streams").seed;
    static const struct {
        uint64_t file_chunks;
        size_t tails;
        unsigned behind, write_chunks, read_chunks;
        int threads_only;
    } cases[] = {
        {.file_chunks = 200,
         .tails = STREAMS,
         .behind = 12,
         .write_chunks = 4,
         .read_chunks = 7,
         .threads_only = 0},
        {.file_chunks = 200,
         .tails = STREAMS,
         .behind = 12,
         .write_chunks = 4,
         .read_chunks = 7,
         .threads_only = 1},
        {.file_chunks = 200,
         .tails = STREAMS,
         .behind = 1,
         .write_chunks = 1,
         .read_chunks = 1,
         .threads_only = 0},
        {.file_chunks = 60,
         .tails = STREAMS,
         .behind = 3,
         .write_chunks = 3,
         .read_chunks = 2,
         .threads_only = 0},
        {.file_chunks = 60,
         .tails = STREAMS,
         .behind = 1,
         .write_chunks = 1,
         .read_chunks = 1,
         .threads_only = 1},
        {.file_chunks = 500,
         .tails = STREAMS,
         .behind = 64,
         .write_chunks = 16,
         .read_chunks = 64,
         .threads_only = 0},
        {.file_chunks = 700,
         .tails = STREAMS,
         .behind = 99,
         .write_chunks = 99,
         .read_chunks = 3,
         .threads_only = 1},
        {.file_chunks = 64,
         .tails = STREAMS,
         .behind = 5,
         .write_chunks = 2,
         .read_chunks = 300,
         .threads_only = 0},
        {.file_chunks = 200,
         .tails = 1,
         .behind = 12,
         .write_chunks = 4,
         .read_chunks = 7,
         .threads_only = 0},
        {.file_chunks = 200,
         .tails = 1,
         .behind = 1,
         .write_chunks = 1,
         .read_chunks = 1,
         .threads_only = 1},
        {.file_chunks = 200,
         .tails = 2,
         .behind = 12,
         .write_chunks = 4,
         .read_chunks = 7,
         .threads_only = 0},
        {.file_chunks = 300,
         .tails = 2,
         .behind = 64,
         .write_chunks = 16,
         .read_chunks = 64,
         .threads_only = 1},
        {.file_chunks = 200,
         .tails = 3,
         .behind = 3,
         .write_chunks = 3,
         .read_chunks = 2,
         .threads_only = 0},
        {.file_chunks = 400,
         .tails = STREAMS / 2,
         .behind = 5,
         .write_chunks = 2,
         .read_chunks = 300,
         .threads_only = 0},
        {.file_chunks = 300,
         .tails = STREAMS - 1,
         .behind = 12,
         .write_chunks = 4,
         .read_chunks = 7,
         .threads_only = 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *path = scratch_path(*state, "streams");
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_iostat io;
        struct model m;
        struct drps_streams_config config = config_of(path, cases[i].file_chunks);
        config.tails = cases[i].tails;
        config.behind = cases[i].behind;
        config.write_chunks = cases[i].write_chunks;
        config.read_chunks = cases[i].read_chunks;
        config.threads_only = cases[i].threads_only;
        model_begin(&m, seed, &config);
        const int few = cases[i].tails < 10; /* each append writes a chunk */
        if (run_rounds(&m, few ? 60 : 400, &err) < 0) fail_msg("case %zu: %s", i, err.text);
        drps_streams_stats(m.streams, &io);
        assert_true(io.written_bytes >=
                    (few ? 2 : 10) * cases[i].file_chunks * CHUNK); /* chunks were used again */
        assert_true(io.writes <= io.written_bytes / CHUNK);
        if (cases[i].write_chunks == 1) assert_int_equal(io.writes, io.written_bytes / CHUNK);
        model_end(&m);
        assert_int_equal(unlink(path), 0);
    }
}

/* Chunks of several streams go to the disk together, and side by side. */
static void test_one_request_writes_many_chunks(void **state)
{
    struct drps_streams_config config = config_of(scratch_path(*state, "streams"), 64);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_iostat io;
    struct drps_streams *s;
    char chunk[CHUNK];
    assert_int_equal(drps_streams_open(&config, &s, &err), 0);
    for (int i = 0; i < 40; i++) {
        memset(chunk, i, CHUNK);
        assert_int_equal(drps_streams_append(s, (size_t)i % STREAMS, chunk, CHUNK, &err), 0);
    }
    for (size_t stream = 0; stream < STREAMS; stream++) {
        assert_int_equal(drps_streams_begin(s, stream, 0, &err), 0);
        for (int i = (int)stream; i < 40; i += STREAMS) {
            assert_int_equal(drps_streams_take(s, chunk, CHUNK, &err), 0);
            assert_int_equal(chunk[0], i);
            assert_int_equal(chunk[CHUNK - 1], i);
        }
        assert_int_equal(drps_streams_end(s, &err), 0);
    }
    drps_streams_stats(s, &io);
    assert_int_equal(io.writes, 10);
    assert_int_equal(io.seeks, 1 + io.reads); /* written front to back */
    assert_int_equal(io.written_bytes, 40 * CHUNK);
    drps_streams_close(s);
}

/* A stream that was written alone lies in one piece, and is read so. */
static void test_chunks_side_by_side_are_read_together(void **state)
{
    struct drps_streams_config config = config_of(scratch_path(*state, "streams"), 64);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_iostat io;
    struct drps_streams *s;
    static char bytes[28 * CHUNK], got[28 * CHUNK];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7 + i / CHUNK);
    assert_int_equal(drps_streams_open(&config, &s, &err), 0);
    assert_int_equal(drps_streams_append(s, 3, bytes, sizeof(bytes), &err), 0);
    assert_int_equal(drps_streams_begin(s, 3, 0, &err), 0);
    assert_int_equal(drps_streams_take(s, got, sizeof(got), &err), 0);
    assert_int_equal(drps_streams_end(s, &err), 0);
    assert_memory_equal(got, bytes, sizeof(bytes));
    drps_streams_stats(s, &io);
    assert_int_equal(io.writes, 7);
    assert_int_equal(io.read_bytes, 28 * CHUNK);
    assert_true(io.reads < 28);
    drps_streams_close(s);
}

static struct drps_streams *open_with_tails(const struct drps_streams_config *like, size_t tails)
{
    struct drps_streams_config config = *like;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_streams *s;
    config.tails = tails;
    if (drps_streams_open(&config, &s, &err) < 0) fail_msg("%s", err.text);
    return s;
}

static void append_text(struct drps_streams *s, size_t stream, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_streams_append(s, stream, text, strlen(text), &err) < 0) fail_msg("%s", err.text);
}

static void expect_text(struct drps_streams *s, size_t stream, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    char got[64] = "";
    assert_int_equal(drps_streams_bytes(s, stream), strlen(text));
    if (drps_streams_begin(s, stream, 0, &err) < 0 ||
        drps_streams_take(s, got, strlen(text), &err) < 0 || drps_streams_end(s, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(got, text);
    assert_int_equal(drps_streams_bytes(s, stream), 0);
}

/* The stream has n bytes of 5; or they are not what was written at the second chunk_number, and it
 * is said.
 */
static void expect_fives(struct drps_streams *s, size_t stream, size_t n, int want)
{
    struct drps_err err = DRPS_ERR_INIT;
    char got[CHUNK] = {0};
    int rc = drps_streams_begin(s, stream, 0, &err);
    if (rc == 0) rc = drps_streams_take(s, got, n, &err);
    assert_int_equal(rc, want);
    for (size_t i = 0; i < n && want == 0; i++)
        assert_int_equal(got[i], 5);
    if (want) assert_non_null(strstr(err.text, "streams: the 300 bytes at byte 4096 are not"));
}

/* What was appended to longest ago is written; a stream's chunks may all be partial. */
static void test_the_oldest_tail_is_written(void **state)
{
    const struct drps_streams_config config = config_of(scratch_path(*state, "streams"), 64);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_iostat io;
    struct drps_streams *s = open_with_tails(&config, 2);
    append_text(s, 0, "a");
    append_text(s, 1, "b");
    append_text(s, 0, "c");
    append_text(s, 2, "d"); /* 1 is written */
    append_text(s, 0, "e");
    append_text(s, 1, "f"); /* 2 */
    append_text(s, 3, "g"); /* 0 */
    append_text(s, 0, "h"); /* 1 */
    assert_int_equal(drps_streams_flush(s, &err), 0);
    expect_text(s, 2, "d");
    expect_text(s, 1, "bf");
    append_text(s, 1, "i"); /* 3 is written: 1 and 2 have none */
    expect_text(s, 0, "aceh");
    append_text(s, 4, "j"); /* nobody: 0 was read */
    expect_text(s, 3, "g");
    expect_text(s, 1, "i");
    expect_text(s, 4, "j");
    drps_streams_stats(s, &io);
    assert_int_equal(io.written_bytes, 5 * CHUNK);
    drps_streams_close(s);
}

/* The tail of a stream that is being read stays, though it is the oldest. */
static void test_a_tail_that_is_read_stays(void **state)
{
    const struct drps_streams_config config = config_of(scratch_path(*state, "streams"), 64);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_streams *s = open_with_tails(&config, 2);
    char got[8] = "";
    append_text(s, 0, "abc");
    append_text(s, 1, "d");
    assert_int_equal(drps_streams_begin(s, 0, 0, &err), 0);
    assert_int_equal(drps_streams_take(s, got, 1, &err), 0);
    append_text(s, 2, "e");
    append_text(s, 3, "f");
    assert_int_equal(drps_streams_take(s, got + 1, 2, &err), 0);
    assert_int_equal(drps_streams_end(s, &err), 0);
    assert_string_equal(got, "abc");
    expect_text(s, 1, "d");
    expect_text(s, 2, "e");
    expect_text(s, 3, "f");
    drps_streams_close(s);
    assert_int_equal(unlink(config.path), 0);

    s = open_with_tails(&config, 1);
    append_text(s, 0, "abc");
    assert_int_equal(drps_streams_begin(s, 0, 0, &err), 0);
    assert_int_equal(drps_streams_append(s, 1, "d", 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, config.path));
    drps_streams_close(s);
}

/* A partial chunk's checksum is of its own bytes: those behind them are nobody's. */
static void test_wrong_byte_of_a_partial_chunk_is_named(void **state)
{
    static const struct {
        long at;
        int rc;
    } cases[] = {{0, DRPS_E_CORRUPT}, {299, DRPS_E_CORRUPT}, {300, 0}, {CHUNK - 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_streams_config config = config_of(scratch_path(*state, "streams"), 16);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_streams *s = open_with_tails(&config, 1);
        char bytes[CHUNK];
        memset(bytes, 5, sizeof(bytes));
        for (size_t stream = 0; stream < 4; stream++)
            assert_int_equal(drps_streams_append(s, stream, bytes, 300, &err), 0);
        for (size_t stream = 0; stream < 3; stream++) { /* their chunks are written */
            assert_int_equal(drps_streams_begin(s, stream, 1, &err), 0);
            assert_int_equal(drps_streams_take(s, bytes, 300, &err), 0);
            assert_int_equal(drps_streams_end(s, &err), 0);
        }
        FILE *f = must(fopen(config.path, "r+b"));
        (void)fseek(f, CHUNK + cases[i].at, SEEK_SET);
        (void)fputc(1, f);
        assert_int_equal(fclose(f), 0);
        expect_fives(s, 0, 300, 0);
        expect_fives(s, 1, 300, cases[i].rc);
        drps_streams_close(s);
        assert_int_equal(unlink(config.path), 0);
    }
}

/* ---- What was tried in advance ---- */

/* Stream w + distance gets what window w sends it, then the second one after w is read; as relay
 * does.
 */
static void run_window(struct drps_streams *s, const struct drps_sends *sends, const char *bytes,
                       size_t row_bytes, uint32_t w)
{
    struct drps_err err = DRPS_ERR_INIT;
    int rc = 0;
    for (size_t i = w ? sends->end[w - 1] : 0; i < sends->end[w] && rc == 0; i++)
        rc = drps_streams_append(s, (w + sends->list[i].distance) % sends->windows, bytes,
                                 sends->list[i].rows * row_bytes, &err);
    const char *at;
    size_t n = 1;
    if (rc == 0) rc = drps_streams_begin(s, (w + 2) % sends->windows, 0, &err);
    while (rc == 0 && n) {
        rc = drps_streams_peek(s, &at, &n, &err);
        if (rc == 0) rc = drps_streams_skip(s, n, &err);
    }
    if (rc == 0) rc = drps_streams_end(s, &err);
    if (rc < 0) fail_msg("%s", err.text);
}

/* Ever, when nothing is under way. */
static uint64_t chunks_written(struct drps_streams *s)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_iostat io;
    int rc = drps_streams_flush(s, &err);
    while (rc == 0 && drps_aio_under_way(s->aio))
        rc = drps_streams_reap(s, 1, &err);
    if (rc < 0) fail_msg("%s", err.text);
    drps_streams_stats(s, &io);
    return io.written_bytes / s->config.chunk_bytes;
}

/* A file of just as many chunks as were said to be needed is never full, and as many chunks
 * are written in an epoch as were said. */
static void test_tails_do_as_was_tried(void **state)
{
    enum { WINDOWS = 40, ROWS = 60 };
    const size_t tails[] = {1, 2, 3, 10, WINDOWS};
    struct random_source rng = random_begin("tried");
    char *bytes = must(calloc(ROWS, ROW));
    for (int i = 0; i < 20; i++) {
        const size_t chunk_bytes = (size_t)CHUNK << random_below(&rng, 3);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_sends sends;
        struct drps_shared_tails tried;
        struct drps_streams *s;
        uint32_t limits[WINDOWS];
        assert_int_equal(drps_sends_init(&sends, WINDOWS, 1 << 20, &err), 0);
        for (uint32_t w = 0; w < WINDOWS; w++) {
            uint32_t rows[WINDOWS + 1] = {0};
            for (uint64_t n = random_below(&rng, 6); n > 0; n--)
                rows[2 + random_below(&rng, WINDOWS - 1)] = 1 + (uint32_t)random_below(&rng, ROWS);
            drps_sends_add(&sends, w, rows);
            limits[w] = 1;
        }
        assert_int_equal(
            drps_sends_share_tails(&sends, limits, ROW, chunk_bytes, tails[i % 5], &tried, &err),
            0);
        struct drps_streams_config config =
            config_of(scratch_path(*state, "streams"), tried.most ? tried.most : 1);
        config.n = WINDOWS;
        config.chunk_bytes = chunk_bytes;
        config.tails = tails[i % 5];
        assert_int_equal(drps_streams_open(&config, &s, &err), 0);
        for (int epoch = 0; epoch < 4; epoch++) {
            const uint64_t before = chunks_written(s);
            for (uint32_t w = 0; w < WINDOWS; w++)
                run_window(s, &sends, bytes, ROW, w);
            if (epoch) assert_int_equal(chunks_written(s) - before, tried.chunks);
        }
        drps_streams_close(s);
        drps_sends_destroy(&sends);
        assert_int_equal(unlink(config.path), 0);
    }
    free(bytes);
}

static void test_full_file_is_an_error(void **state)
{
    struct drps_streams_config config = config_of(scratch_path(*state, "streams"), 10);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_streams *s;
    char chunk[CHUNK] = {1};
    int rc = 0;
    assert_int_equal(drps_streams_open(&config, &s, &err), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(drps_streams_append(s, (size_t)i % 3, chunk, CHUNK, &err), 0);
    assert_int_equal(drps_streams_flush(s, &err), 0); /* all chunks of the file are taken */
    for (int i = 0; i < 4 && rc == 0; i++)
        rc = drps_streams_append(s, 1, chunk, CHUNK, &err);
    assert_int_equal(rc, DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "more rows are on their way"));
    assert_non_null(strstr(err.text, config.path));
    drps_streams_close(s);
}

/* Each chunk of a request that wrote four has a checksum of its own. */
static void test_wrong_byte_of_a_joined_write_is_named(void **state)
{
    for (long chunk_number = 0; chunk_number < 8; chunk_number++) {
        const char *path = scratch_path(*state, "streams");
        struct drps_streams_config config = config_of(path, 16);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_streams *s;
        char chunk[CHUNK] = {5}, offset[64];
        int rc = 0;
        assert_int_equal(drps_streams_open(&config, &s, &err), 0);
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(drps_streams_append(s, i, chunk, CHUNK, &err), 0);
        for (size_t i = 0; i < 8; i++) { /* all is written */
            assert_int_equal(drps_streams_begin(s, i, 1, &err), 0);
            assert_int_equal(drps_streams_take(s, chunk, CHUNK, &err), 0);
            assert_int_equal(drps_streams_end(s, &err), 0);
        }
        FILE *f = must(fopen(path, "r+b"));
        (void)fseek(f, chunk_number * CHUNK + 1234, SEEK_SET);
        (void)fputc(1, f);
        assert_int_equal(fclose(f), 0);
        size_t i = 0;
        for (; i < 8 && rc == 0; i++) {
            rc = drps_streams_begin(s, i, 0, &err);
            if (rc == 0) rc = drps_streams_take(s, chunk, CHUNK, &err);
            if (rc == 0) rc = drps_streams_end(s, &err);
        }
        assert_int_equal(rc, DRPS_E_CORRUPT);
        assert_int_equal(i, chunk_number + 1);
        (void)snprintf(offset, sizeof(offset), "at byte %ld ", chunk_number * CHUNK);
        assert_non_null(strstr(err.text, offset));
        assert_non_null(strstr(err.text, path));
        drps_streams_close(s);
        assert_int_equal(unlink(path), 0);
    }
}

static void test_short_transfers_are_continued(void **state)
{
    const uint64_t seed = random_begin("short").seed;
    for (long k = 1; k < 60; k += 7) {
        const char *path = scratch_path(*state, "streams");
        struct fault_io *f = fault_io_new(drps_io_os());
        struct drps_streams_config config = config_of(path, 150);
        struct drps_err err = DRPS_ERR_INIT;
        struct model m;
        config.io = &f->io;
        model_begin(&m, seed, &config);
        for (int i = 0; i < 10; i++) {
            fault_io_arm(f, FAULT_PREAD | FAULT_PWRITE, k, 0, FAULT_SHORT, 0);
            if (run_rounds(&m, 20, &err) < 0) fail_msg("%s", err.text);
        }
        assert_true(atomic_load(&f->fired) > 0);
        model_end(&m);
        fault_io_free(f);
        assert_int_equal(unlink(path), 0);
    }
}

static void test_faults_come_out(void **state)
{
    const uint64_t seed = random_begin("faults").seed;
    static const unsigned ops[] = {FAULT_PREAD, FAULT_PWRITE};
    for (int i = 0; i < 4; i++)
        for (long k = 1; k < 100; k += k < 8 ? 1 : 11) {
            const char *path = scratch_path(*state, "streams");
            struct fault_io *f = fault_io_new(drps_io_os());
            struct drps_streams_config config = config_of(path, 150);
            struct drps_err err = DRPS_ERR_INIT;
            struct model m;
            config.io = &f->io;
            model_begin(&m, seed, &config);
            fault_io_arm(f, ops[i % 2], k, 1, i < 2 ? FAULT_ERROR : FAULT_TORN, -EIO);
            if (i == 2) f->effect = FAULT_ERROR; /* reads are not torn */
            assert_int_equal(run_rounds(&m, 300, &err), -EIO);
            assert_non_null(strstr(err.text, path));
            assert_non_null(strstr(err.text, "offset"));
            model_end(&m);
            fault_io_free(f);
            assert_int_equal(unlink(path), 0);
        }
}

static void test_open_refuses(void **state)
{
    const struct drps_streams_config good = config_of(scratch_path(*state, "streams"), 10);
    struct drps_streams_config bad[9];
    for (size_t i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].chunk_bytes = 1000;
    bad[1].chunk_bytes = 0;
    bad[2].write_chunks = 0;
    bad[3].write_chunks = good.behind + 1;
    bad[4].write_chunks = bad[4].behind = DRPS_AIO_PIECES_MAX + 1;
    bad[5].read_chunks = 0;
    bad[6].file_chunks = 0;
    bad[7].file_chunks = UINT32_MAX;
    bad[8].tails = 0;
    for (size_t i = 0; i < 9; i++) {
        struct drps_streams *s;
        assert_int_equal(drps_streams_open(&bad[i], &s, NULL), -EINVAL);
        assert_null(s);
        assert_false(path_exists(good.path));
    }
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(test_equal_copies_in_memory),
        WITH_SCRATCH(test_one_request_writes_many_chunks),
        WITH_SCRATCH(test_chunks_side_by_side_are_read_together),
        WITH_SCRATCH(test_the_oldest_tail_is_written),
        WITH_SCRATCH(test_a_tail_that_is_read_stays),
        WITH_SCRATCH(test_wrong_byte_of_a_partial_chunk_is_named),
        WITH_SCRATCH(test_tails_do_as_was_tried),
        WITH_SCRATCH(test_full_file_is_an_error),
        WITH_SCRATCH(test_wrong_byte_of_a_joined_write_is_named),
        WITH_SCRATCH(test_short_transfers_are_continued),
        WITH_SCRATCH(test_faults_come_out),
        WITH_SCRATCH(test_open_refuses),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
