/*
 * Logs of vectors: each round that is covered comes back bit for bit; what is logged is the smaller
 * of vectors and rows; a torn end is cut off, damage is told with its place, and a full disk loses
 * nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_checksum.h"
#include "base/drps_endian.h"
#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "engine/checkpoint/vectors/frame.h"
#include "engine/train/verify/drps_verify.h"
#include "support/fault_io.h"
#include "support/scratch.h"
#include "support/vector_rounds.h"

enum { ROWS = 50, DIM = 3, SAMPLES = 3, NNZ = 6, FIRST = 10 };

struct fixture {
    struct scratch s;
    struct drps_checkpoints c;
    struct vector_rounds v;
    struct drps_vector_log *log;
    json_t *manifest;
    char *got; /* own: room for a matrix */
};

static struct fixture *begin_sized(uint32_t rows, uint32_t dim, uint32_t samples, uint32_t nnz)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    scratch_begin(&f->s);
    assert_int_equal(
        drps_checkpoints_init(&f->c, drps_io_os(), scratch_path(&f->s, "all"), 0, NULL), 0);
    vector_rounds_begin(&f->v, rows, dim, samples, nnz, FIRST);
    f->manifest = json_object();
    f->got = malloc(vector_rounds_bytes(&f->v) + 1);
    assert_true(f->manifest && f->got);
    return f;
}

static struct fixture *begin(void)
{
    return begin_sized(ROWS, DIM, SAMPLES, NNZ);
}

static void end(struct fixture *f)
{
    drps_vector_log_close(f->log);
    drps_checkpoints_destroy(&f->c);
    vector_rounds_end(&f->v);
    json_decref(f->manifest);
    free(f->got);
    scratch_end(&f->s);
    free(f);
}

#define must(call)                                                                                 \
    do {                                                                                           \
        struct drps_err err = DRPS_ERR_INIT;                                                       \
        if ((call) < 0) fail_msg("%s", err.text);                                                  \
    } while (0)

static void open_log(struct fixture *f, struct drps_vector_log_options o)
{
    must(drps_vector_log_begin(&f->c, &f->v.shape, &o, f->v.last, f->v.matrix, f->manifest, &f->log,
                               &err));
}

static void resume(struct fixture *f, uint64_t round, struct drps_vector_log_options o)
{
    must(drps_vector_log_resume(&f->c, &o, round, &f->log, &err));
}

static void close_log(struct fixture *f)
{
    drps_vector_log_close(f->log);
    f->log = NULL;
}

static void add(struct fixture *f)
{
    vector_rounds_next(&f->v);
    must(drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 1000, &err));
}

static void sync_log(struct fixture *f)
{
    must(drps_vector_log_sync(f->log, &err));
}

static void snapshot(struct fixture *f)
{
    must(drps_vector_log_snapshot(f->log, f->v.matrix, f->manifest, &err));
}

static int restore(struct fixture *f, uint64_t round, uint64_t *got, struct drps_err *err)
{
    return drps_vector_log_restore(&f->c, &f->v.shape, round, vector_rounds_apply, &f->v, f->got,
                                   got, err);
}

static void check_round(struct fixture *f, uint64_t round)
{
    uint64_t got;
    must(restore(f, round, &got, &err));
    assert_int_equal(got, round);
    assert_memory_equal(f->got, vector_rounds_after(&f->v, round), vector_rounds_bytes(&f->v));
}

static void check_latest(struct fixture *f, uint64_t round)
{
    uint64_t got;
    must(restore(f, UINT64_MAX, &got, &err));
    assert_int_equal(got, round);
    assert_memory_equal(f->got, vector_rounds_after(&f->v, round), vector_rounds_bytes(&f->v));
}

static void check_refused(struct fixture *f, uint64_t round, int code, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t got;
    assert_int_equal(restore(f, round, &got, &err), code);
    if (!strstr(err.text, text)) fail_msg("%s", err.text);
}

static const char *log_path(struct fixture *f, uint64_t number)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "all/rank-0/%llu/vectors.log", (unsigned long long)number);
    return scratch_path(&f->s, name);
}

static uint64_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static struct drps_vector_log_stats stats_of(const struct fixture *f)
{
    struct drps_vector_log_stats s;
    drps_vector_log_stats(f->log, &s);
    return s;
}

/* ---- Restoring ---- */

/* Twenty rounds, a checkpoint whenever one is due, of which three are kept. */
static void test_each_covered_round_comes_back(void **state)
{
    struct fixture *f = begin();
    uint64_t first, last;
    (void)state;
    open_log(f, (struct drps_vector_log_options){.keep = 3});
    for (int i = 0; i < 20; i++) {
        add(f);
        if (drps_vector_log_due(f->log)) snapshot(f);
    }
    sync_log(f);
    const struct drps_vector_log_stats s = stats_of(f);
    assert_true(s.snapshots > 4 && s.as_vectors == 20);
    must(drps_vector_log_covered(&f->c, &first, &last, &err));
    assert_int_equal(last, FIRST + 20);
    assert_in_range(first, FIRST + 1, FIRST + 18);
    for (uint64_t r = first; r <= last; r++)
        check_round(f, r);
    check_latest(f, last);
    check_refused(f, last + 1, DRPS_E_NOT_FOUND, "round 31 is not covered by ");
    check_refused(f, last + 1, DRPS_E_NOT_FOUND, ": the last one there is 30");
    check_refused(f, first - 1, DRPS_E_NOT_FOUND, "the first one there is ");
    end(f);
}

/* Without a log there is the round of the checkpoint. */
static void test_no_round_was_synced(void **state)
{
    struct fixture *f = begin();
    uint64_t first, last;
    (void)state;
    check_refused(f, UINT64_MAX, DRPS_E_NOT_FOUND, "holds no checkpoints");
    open_log(f, (struct drps_vector_log_options){0});
    check_latest(f, FIRST);
    add(f);
    close_log(f);
    check_latest(f, FIRST);
    must(drps_vector_log_covered(&f->c, &first, &last, &err));
    assert_true(first == FIRST && last == FIRST);
    end(f);
}

/* Without averaged replicas being logged as rows, the next rounds would be applied to others. */
static void test_rows_that_no_batch_names(void **state)
{
    struct fixture *f = begin();
    (void)state;
    open_log(f, (struct drps_vector_log_options){0});
    add(f);
    vector_rounds_next(&f->v);
    for (size_t i = 0; i < vector_rounds_bytes(&f->v); i += 4)
        f->v.matrix[i] ^= 1;
    memcpy(f->v.after[2], f->v.matrix, vector_rounds_bytes(&f->v));
    f->v.round.all_rows = 1;
    must(drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 0, &err));
    add(f);
    sync_log(f);
    assert_int_equal(stats_of(f).as_rows, 1);
    for (uint64_t r = FIRST; r <= FIRST + 3; r++)
        check_round(f, r);
    end(f);
}

/* The next run goes on where the last one ended, with its log. */
static void test_resume_goes_on(void **state)
{
    struct fixture *f = begin_sized(400, DIM, SAMPLES, NNZ);
    (void)state;
    const struct drps_vector_log_options o = {.keep = 2, .replay_ns = 4500};
    open_log(f, o);
    for (int i = 0; i < 3; i++)
        add(f);
    sync_log(f);
    close_log(f);
    resume(f, FIRST + 3, o);
    add(f);
    assert_false(drps_vector_log_due(f->log)); /* 4 rounds of 1000 ns */
    add(f);
    assert_true(drps_vector_log_due(f->log));
    snapshot(f);
    add(f);
    sync_log(f);
    for (uint64_t r = FIRST; r <= FIRST + 6; r++)
        check_round(f, r);
    close_log(f);
    resume(f, FIRST + 5, o); /* where the second checkpoint is */
    vector_rounds_go_back(&f->v, FIRST + 5);
    add(f);
    sync_log(f);
    check_latest(f, FIRST + 6);
    end(f);
}

/* Going back to a round forgets those after it, and checkpoints of them. */
static void test_resume_after_an_earlier_round(void **state)
{
    (void)state;
    for (uint64_t back = 0; back <= 9; back++) {
        struct fixture *f = begin();
        open_log(f, (struct drps_vector_log_options){.keep = 4});
        for (int i = 1; i <= 9; i++) {
            add(f);
            if (i % 4 == 0) snapshot(f);
        }
        sync_log(f);
        close_log(f);
        check_round(f, FIRST + back);
        resume(f, FIRST + back, (struct drps_vector_log_options){.keep = 4});
        vector_rounds_go_back(&f->v, FIRST + back);
        check_latest(f, FIRST + back);
        for (int i = 0; i < 3; i++)
            add(f);
        sync_log(f);
        for (uint64_t r = FIRST; r <= FIRST + back + 3; r++)
            check_round(f, r);
        check_latest(f, FIRST + back + 3);
        end(f);
    }
}

/* A checkpoint that the caller writes has a log of its own, too: one that is new, and one that goes
 * on, without rounds that are not wanted. */
static void test_a_log_beside_any_checkpoint(void **state)
{
    struct fixture *f = begin();
    struct drps_checkpoint_writer *w;
    struct drps_checkpoint *cp;
    const struct drps_vector_log_options o = {0};
    uint64_t bytes, got;
    (void)state;
    must(drps_vector_log_describe(f->manifest, FIRST, DIM));
    must(drps_checkpoint_begin(&f->c, 3, ROWS, f->v.shape.row_bytes, &w, &err));
    must(drps_checkpoint_add(w, 0, ROWS, f->v.matrix, &err));
    must(drps_checkpoint_commit(w, f->manifest, &bytes, &err));
    must(drps_vector_log_open(&f->c, 3, &o, FIRST, &f->log, &err));
    for (int i = 0; i < 4; i++)
        add(f);
    sync_log(f);
    close_log(f);
    must(drps_vector_log_open(&f->c, 3, &o, FIRST + 2, &f->log, &err));
    vector_rounds_go_back(&f->v, FIRST + 2);
    add(f);
    sync_log(f);
    check_latest(f, FIRST + 3);
    must(drps_checkpoint_open(&f->c, 3, &cp, &err));
    must(drps_vector_log_replay(drps_io_os(), cp, &f->v.shape, FIRST + 1, vector_rounds_apply,
                                &f->v, f->got, &got, &err));
    assert_int_equal(got, FIRST + 1);
    assert_memory_equal(f->got, vector_rounds_after(&f->v, got), vector_rounds_bytes(&f->v));
    drps_checkpoint_close(cp);
    close_log(f);
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_vector_log_open(&f->c, 3, &o, FIRST + 4, &f->log, &err),
                     DRPS_E_NOT_FOUND);
    assert_null(f->log);
    end(f);
}

/* ---- Notes ---- */

struct noted {
    char text[64];
    uint32_t rounds, as_rows;
};

static int take_note(void *ctx, const struct drps_vector_round *round, void *matrix,
                     struct drps_err *err)
{
    struct noted *n = ctx;
    (void)matrix, (void)err;
    memcpy(n->text + strlen(n->text), round->note, round->note_bytes);
    n->as_rows += round->n == 0;
    n->rounds++;
    return 0;
}

/* What was noted comes back with each round, whether it was logged as vectors or as rows. */
static void test_notes_come_back(void **state)
{
    static const char *const notes[] = {"a", "", "bcd", "efghijklm"};
    struct fixture *f = begin();
    struct noted n = {{0}, 0, 0};
    uint64_t got;
    (void)state;
    open_log(f, (struct drps_vector_log_options){0});
    for (int i = 0; i < 4; i++) {
        vector_rounds_next(&f->v);
        f->v.round.note = notes[i];
        f->v.round.note_bytes = (uint32_t)strlen(notes[i]);
        f->v.round.all_rows = i % 2;
        must(drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 0, &err));
    }
    sync_log(f);
    check_latest(f, FIRST + 4);
    must(
        drps_vector_log_restore(&f->c, &f->v.shape, UINT64_MAX, take_note, &n, f->got, &got, &err));
    assert_string_equal(n.text, "abcdefghijklm");
    assert_int_equal(n.rounds, 4);
    assert_int_equal(n.as_rows, 2);
    vector_rounds_next(&f->v);
    f->v.round.note_bytes = DRPS_VECTOR_NOTE_MOST + 1;
    assert_int_equal(drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 0, NULL), -EINVAL);
    end(f);
}

/* ---- Writing aside ---- */

/* A file, and the round that comes back last. */
static char *log_of(int background, size_t *n_out)
{
    struct fixture *f = begin_sized(400, DIM, SAMPLES, NNZ);
    open_log(f, (struct drps_vector_log_options){.buffer_bytes = 1000, .background = background});
    for (int i = 0; i < 20; i++) {
        add(f);
        if (i % 7 == 0) must(drps_vector_log_flush(f->log, &err));
    }
    sync_log(f);
    check_latest(f, FIRST + 20);
    char *bytes = scratch_read(log_path(f, 1), n_out);
    end(f);
    return bytes;
}

/* The rounds are the same, whoever writes them; only what a frame says to be durable may be less.
 */
static void test_a_thread_writes_the_same(void **state)
{
    size_t n[2];
    char *bytes[2] = {log_of(0, &n[0]), log_of(1, &n[1])};
    struct frame a, b;
    (void)state;
    assert_int_equal(n[0], n[1]);
    for (size_t at = 0; at < n[0]; at += FRAME_HEAD_BYTES + (size_t)frame_padded(a.bytes)) {
        assert_true(frame_decode((unsigned char *)bytes[0] + at, at, &a));
        assert_true(frame_decode((unsigned char *)bytes[1] + at, at, &b));
        assert_true(b.synced <= a.synced && a.kind == b.kind && a.round == b.round);
        assert_int_equal(a.checksum, b.checksum);
        assert_memory_equal(bytes[0] + at + FRAME_HEAD_BYTES, bytes[1] + at + FRAME_HEAD_BYTES,
                            a.bytes);
    }
    free(bytes[0]);
    free(bytes[1]);
}

/* What a thread could not write is told by the next call, and written by the one after that. */
static void test_a_thread_that_fails(void **state)
{
    for (int torn = 0; torn < 2; torn++) {
        struct fixture *f = begin();
        struct fault_io *io = fault_io_new(drps_io_os());
        struct drps_err why = DRPS_ERR_INIT;
        (void)state;
        open_log(f, (struct drps_vector_log_options){.background = 1});
        f->c.io = &io->io;
        add(f);
        sync_log(f);
        fault_io_arm(io, FAULT_PWRITE, 1, 0, torn ? FAULT_TORN : FAULT_ERROR, -ENOSPC);
        add(f);
        add(f);
        must(drps_vector_log_flush(f->log, &err));
        add(f);
        assert_int_equal(drps_vector_log_sync(f->log, &why), -ENOSPC);
        assert_non_null(strstr(why.text, "vectors.log"));
        add(f);
        must(drps_vector_log_flush(f->log, &err));
        add(f);
        sync_log(f);
        for (uint64_t r = FIRST; r <= FIRST + 6; r++)
            check_round(f, r);
        f->c.io = drps_io_os();
        end(f);
        fault_io_free(io);
    }
}

/* ---- What is logged, and when checkpoints are due ---- */

/* 20 classes, 1000 features, 100 dense samples: 408,000 bytes of vectors, 80,000 of the matrix. */
static void test_the_matrix_where_it_is_smaller(void **state)
{
    const struct drps_matrix_shape shape = {1000, 80, 20};
    struct own_vectors dense = random_vectors(1, 100, 20, 1000, 1000),
                       sparse = random_vectors(1, 100, 20, 1000, 5),
                       few = random_vectors(1, 19, 20, 1000, 1000);
    const uint32_t source = 0;
    struct drps_vector_round round = {.n = 1, .batches = &dense.v, .sources = &source};
    (void)state;
    assert_int_equal(drps_vector_log_bytes(&shape, &round), 408000 + 24);
    assert_int_equal(drps_vector_log_rows_bytes(&shape, 1000), 80000 + 8);
    round.batches = &few.v; /* 19 (J + K) < J K < 20 (J + K) */
    assert_true(drps_vector_log_bytes(&shape, &round) < 80008);
    assert_int_equal(drps_vector_log_rows_bytes(&shape, 10), 8 + 10 * 84);
    round.batches = &sparse.v;
    const uint32_t nnz = sparse.first[100];
    assert_int_equal(drps_vector_log_bytes(&shape, &round),
                     8 + 16 + 4 * (100 * 20 + 101 + 2 * nnz));
    own_vectors_free(&dense);
    own_vectors_free(&sparse);
    own_vectors_free(&few);
}

/* What is chosen, and what that takes: a frame of 64 bytes before each round, 88 before all. */
static void test_bytes_of_logs(void **state)
{
    static const struct {
        const char *name;
        uint32_t rows, dim, samples, nnz;
        int as_rows;
    } cases[] = {
        {"dense, many samples: the matrix", 40, 3, 30, 40, 1},
        {"dense, one sample a rank: vectors", 40, 8, 1, 40, 0},
        {"sparse: vectors", 1000, 8, 5, 4, 0},
        {"sparse, many samples of few rows: rows", 16, 2, 60, 3, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture *f =
            begin_sized(cases[i].rows, cases[i].dim, cases[i].samples, cases[i].nnz);
        const uint64_t full = vector_rounds_bytes(&f->v);
        uint64_t want = 0;
        open_log(f, (struct drps_vector_log_options){0});
        for (int r = 0; r < 5; r++) {
            add(f);
            const uint64_t vectors = drps_vector_log_bytes(&f->v.shape, &f->v.round);
            want += 64 + ((cases[i].as_rows ? full + 8 : vectors) + 7) / 8 * 8;
            if (cases[i].as_rows != (full + 8 <= vectors)) fail_msg("%s", cases[i].name);
        }
        sync_log(f);
        assert_int_equal(stats_of(f).as_rows, cases[i].as_rows ? 5 : 0);
        assert_int_equal(stats_of(f).log_bytes, want);
        assert_int_equal(file_bytes(log_path(f, 1)), 88 + want);
        check_latest(f, FIRST + 5);
        end(f);
    }
}

/* One sample of 7 of 20 rows of 8 bytes: 92 bytes as vectors, and as rows, which it is then. */
static void test_rows_where_both_are_equal(void **state)
{
    struct fixture *f = begin_sized(20, 1, 0, 0);
    const float u = 1, values[7] = {1, 2, 3, 4, 5, 6, 7};
    const uint32_t first[] = {0, 7}, ids[] = {0, 1, 2, 5, 7, 11, 13}, source = 0;
    const struct drps_vectors batch = {1, 1, &u, first, ids, values};
    const struct drps_vector_round round = {
        .number = FIRST + 1, .n = 1, .batches = &batch, .sources = &source};
    (void)state;
    assert_int_equal(drps_vector_log_bytes(&f->v.shape, &round), 92);
    assert_int_equal(drps_vector_log_rows_bytes(&f->v.shape, 7), 92);
    open_log(f, (struct drps_vector_log_options){0});
    must(drps_vector_log_add(f->log, &round, f->v.matrix, 0, &err));
    assert_int_equal(stats_of(f).as_rows, 1);
    end(f);
}

/* Bytes written in 40 rounds, all of them, with a checkpoint whenever one is due, against a
 * checkpoint after each round; each round is durable in both. No more is written in checkpoints
 * than in the log, so where the rows are logged each time it is twice as much. */
static void test_bytes_against_full_checkpoints(void **state)
{
    static const struct {
        uint32_t rows, dim, samples, nnz;
        double least; /* times fewer bytes */
    } cases[] = {{400, 20, 2, 4, 15}, {1000, 8, 5, 10, 10}, {40, 3, 30, 40, .5}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t written[2];
        for (int full = 0; full < 2; full++) {
            struct fixture *f =
                begin_sized(cases[i].rows, cases[i].dim, cases[i].samples, cases[i].nnz);
            struct fault_io *io = fault_io_new(drps_io_os());
            f->c.io = &io->io;
            open_log(f, (struct drps_vector_log_options){0});
            for (int r = 0; r < 40; r++) {
                add(f);
                if (!full) sync_log(f);
                if (full ? 1 : drps_vector_log_due(f->log)) snapshot(f);
            }
            written[full] = io->written_bytes;
            if (full) written[1] -= stats_of(f).log_bytes + 40 * 88; /* logged as well */
            end(f);
            fault_io_free(io);
        }
        print_message("%u rows of %u: %llu bytes, %llu with full checkpoints\n", cases[i].rows,
                      cases[i].dim, (unsigned long long)written[0], (unsigned long long)written[1]);
        assert_true((double)written[1] > cases[i].least * (double)written[0]);
    }
}

static void test_due(void **state)
{
    struct fixture *f = begin();
    (void)state;
    open_log(f, (struct drps_vector_log_options){0});
    assert_false(drps_vector_log_due(f->log));
    while (stats_of(f).log_bytes < vector_rounds_bytes(&f->v)) {
        assert_false(drps_vector_log_due(f->log));
        add(f);
    }
    assert_true(drps_vector_log_due(f->log));
    snapshot(f);
    assert_false(drps_vector_log_due(f->log));
    assert_false(path_exists(log_path(f, 1)));
    end(f);
}

/* Also of a log that is gone on with after each round. */
static void test_due_after_resuming(void **state)
{
    struct fixture *f = begin();
    uint64_t logged = 0;
    (void)state;
    open_log(f, (struct drps_vector_log_options){0});
    while (logged < vector_rounds_bytes(&f->v)) {
        assert_false(drps_vector_log_due(f->log));
        add(f);
        sync_log(f);
        logged += stats_of(f).log_bytes;
        close_log(f);
        resume(f, f->v.last, (struct drps_vector_log_options){0});
    }
    assert_true(drps_vector_log_due(f->log));
    end(f);
}

/* Rounds are written together, when they fill the buffer. */
static void test_buffer(void **state)
{
    struct fixture *f = begin();
    (void)state;
    open_log(f, (struct drps_vector_log_options){.buffer_bytes = 1});
    for (uint64_t i = 1; i < 4; i++) {
        add(f);
        check_latest(f, FIRST + i);
    }
    end(f);
}

static void test_what_is_refused(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_vector_log *log;
    uint64_t got;
    (void)state;
    open_log(f, (struct drps_vector_log_options){0});
    vector_rounds_next(&f->v);
    vector_rounds_next(&f->v);
    assert_int_equal(drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 0, &err), -EINVAL);
    assert_string_equal(err.text, "round 12 cannot be logged after round 10");
    f->v.round.number = 11;
    f->v.batches[1].dim = 5;
    assert_int_equal(drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 0, NULL), -EINVAL);
    struct drps_matrix_shape other = f->v.shape;
    other.row_bytes += 4;
    drps_err_clear(&err);
    assert_int_equal(drps_vector_log_restore(&f->c, &other, UINT64_MAX, vector_rounds_apply, &f->v,
                                             f->got, &got, &err),
                     DRPS_E_CONFIG);
    assert_non_null(
        strstr(err.text, "50 rows of 24 bytes and 3 parameters, not of 50 of 28 and 3"));
    const struct drps_vector_log_options many = {.keep = DRPS_CHECKPOINT_LIST_MOST + 1}, o = {0};
    assert_int_equal(
        drps_vector_log_begin(&f->c, &f->v.shape, &many, 1, f->v.matrix, f->manifest, &log, NULL),
        -EINVAL);
    other = (struct drps_matrix_shape){4, 8, 3}; /* fewer bytes than parameters */
    assert_int_equal(
        drps_vector_log_begin(&f->c, &other, &o, 1, f->v.matrix, f->manifest, &log, NULL), -EINVAL);
    assert_int_equal(drps_vector_log_resume(&f->c, &o, 11, &log, NULL), DRPS_E_NOT_FOUND);
    assert_int_equal(drps_vector_log_resume(&f->c, &o, 9, &log, NULL), DRPS_E_NOT_FOUND);
    end(f);
}

/* ---- Torn ends and damage ---- */

/* Five rounds; of these the last two are synced together. */
static struct fixture *begin_written(void)
{
    struct fixture *f = begin();
    open_log(f, (struct drps_vector_log_options){0});
    for (int i = 1; i <= 5; i++) {
        add(f);
        if (i != 4) sync_log(f);
    }
    close_log(f);
    return f;
}

/* Where frames begin; [6] is the end. */
static void find_frames(const char *bytes, size_t n, size_t at[7])
{
    struct frame frame;
    at[0] = 0;
    for (int i = 0; i < 6; i++) {
        assert_true(frame_decode((const unsigned char *)bytes + at[i], at[i], &frame));
        at[i + 1] = at[i] + FRAME_HEAD_BYTES + frame_padded(frame.bytes);
    }
    assert_int_equal(at[6], n);
}

/* Cut anywhere, the log ends with the last whole round, and is gone on with from there. */
static void test_torn_ends(void **state)
{
    struct fixture *f = begin_written();
    const char *path = log_path(f, 1);
    size_t n, at[7];
    char *bytes = scratch_read(path, &n);
    (void)state;
    find_frames(bytes, n, at);
    for (size_t cut = 0; cut < n; cut += cut % 8 ? 1 + cut % 5 : 1) {
        uint64_t whole = 0;
        for (uint64_t i = 1; i < 6; i++)
            if (cut >= at[i + 1]) whole = i;
        scratch_write(path, bytes, cut);
        check_latest(f, FIRST + whole);
        check_refused(f, FIRST + whole + 1, DRPS_E_NOT_FOUND, "is not covered");
    }
    for (size_t i = 0; i < 6; i++) { /* also when other bytes follow */
        scratch_write(path, bytes, at[i] + 70);
        const uint64_t whole = FIRST + (i ? i - 1 : 0);
        resume(f, whole, (struct drps_vector_log_options){0});
        vector_rounds_go_back(&f->v, whole);
        add(f);
        sync_log(f);
        check_latest(f, whole + 1);
        close_log(f);
        path = log_path(f, 1);
        vector_rounds_go_back(&f->v, FIRST);
        f->v.seed = 1; /* the same rounds once more */
        while (f->v.last < FIRST + 5)
            vector_rounds_next(&f->v);
    }
    free(bytes);
    end(f);
}

/* Any byte that is another: it is told where, or the rounds before it come back; never others. Of
 * what was synced before something else was written it is told. */
static void test_damage(void **state)
{
    struct fixture *f = begin_written();
    const char *path = log_path(f, 1);
    size_t n, at[7];
    char *bytes = scratch_read(path, &n);
    (void)state;
    find_frames(bytes, n, at);
    for (size_t i = 0; i < n; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        char place[64];
        uint64_t got;
        size_t in = 0;
        while (at[in + 1] <= i)
            in++;
        bytes[i] ^= 0x10;
        scratch_write(path, bytes, n);
        bytes[i] ^= 0x10;
        const int rc = restore(f, UINT64_MAX, &got, &err);
        (void)snprintf(place, sizeof(place), "at byte %zu", at[in]);
        if (rc == 0) {
            assert_true(got <= FIRST + 5);
            assert_memory_equal(f->got, vector_rounds_after(&f->v, got),
                                vector_rounds_bytes(&f->v));
            if (in < 4 && got != FIRST + 5) fail_msg("byte %zu: nothing was told", i);
        } else if (rc != DRPS_E_CORRUPT || !strstr(err.text, path) || !strstr(err.text, place)) {
            fail_msg("byte %zu: %s", i, err.text);
        }
    }
    free(bytes);
    end(f);
}

/* The one frame that says so lies across two of the pieces that are looked through: 64 KiB from the
 * first place after the damaged frame's beginning, at byte 88 + 8. */
static void test_damage_far_from_what_tells_of_it(void **state)
{
    struct fixture *f = begin_sized(409, 20, 1, 1);
    const char *path = log_path(f, 1);
    size_t n;
    (void)state;
    open_log(f, (struct drps_vector_log_options){0});
    for (int i = 0; i < 2; i++) {
        vector_rounds_next(&f->v);
        f->v.round.all_rows = i == 0;
        must(drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 0, &err));
        sync_log(f);
    }
    char *bytes = scratch_read(path, &n);
    const size_t second = 88 + 64 + 8 + 409 * 160;
    assert_true(second < 96 + (1 << 16) && second + FRAME_HEAD_BYTES > 96 + (1 << 16));
    check_latest(f, FIRST + 2);
    bytes[1000] ^= 1;
    scratch_write(path, bytes, n);
    check_refused(f, UINT64_MAX, DRPS_E_CORRUPT, "what follows round 10, at byte 88,");
    free(bytes);
    end(f);
}

/* ---- Frames that are whole, and say what cannot be ---- */

/* Change the frame at `at`, and sign it. */
static void sign(unsigned char *bytes, size_t at)
{
    struct frame f;
    (void)frame_decode(bytes + at, at, &f);
    f.checksum = drps_checksum(bytes + at + FRAME_HEAD_BYTES, (size_t)f.bytes);
    frame_encode(&f, bytes + at);
}

static void put_head(unsigned char *bytes, size_t at, size_t field, uint64_t value)
{
    struct frame f;
    drps_put_u64(bytes + at + field, value);
    (void)frame_decode(bytes + at, at, &f);
    frame_encode(&f, bytes + at);
}

static void test_hostile_rounds(void **state)
{
    /* In the payload of round 3: a u32 at that offset becomes another. The first batch has 3
     * samples of 3 floats: u at 24, first at 60, ids at 76. */
    static const struct {
        size_t at;
        uint32_t value;
        const char *text;
    } cases[] = {
        {0, 4, "ends within a batch"},
        {4, 4, "ends within a batch"},
        {4, 1 << 16, "a note of 65536 bytes does not fit its round"},
        {4, UINT32_MAX, "a note of 4294967295 bytes does not fit its round"},
        {0, 2, "bytes too many"},
        {0, UINT32_MAX, "ends within a batch"},
        {12, 1 << 30, "ends within a batch"},
        {12, UINT32_MAX, "ends within a batch"},
        {16, UINT32_MAX, "ends within a batch"},
        {16, 0, "samples that do not fit it"},
        {20, 1, "a batch of 3 samples has "},
        {20, 2, "a batch of 3 samples has "},
        {60, 1, "samples that do not fit it"},
        {64, 1 << 20, "samples that do not fit it"},
        {72, 1 << 20, "samples that do not fit it"},
        {76, ROWS, "out of order or beyond them"},
        {80, 0, "out of order or beyond them"},
    };
    struct fixture *f = begin_written();
    const char *path = log_path(f, 1);
    size_t n, at[7];
    char *bytes = scratch_read(path, &n);
    (void)state;
    find_frames(bytes, n, at);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        unsigned char *changed = malloc(n);
        memcpy(changed, bytes, n);
        drps_put_u32(changed + at[3] + FRAME_HEAD_BYTES + cases[i].at, cases[i].value);
        sign(changed, at[3]);
        scratch_write(path, changed, n);
        check_refused(f, UINT64_MAX, DRPS_E_CORRUPT, cases[i].text);
        check_refused(f, UINT64_MAX, DRPS_E_CORRUPT, "round 13, at byte ");
        check_round(f, FIRST + 2);
        free(changed);
    }
    bytes[at[3] + FRAME_HEAD_BYTES + 80] = bytes[at[3] + FRAME_HEAD_BYTES + 76]; /* a row twice */
    sign((unsigned char *)bytes, at[3]);
    scratch_write(path, bytes, n);
    check_refused(f, UINT64_MAX, DRPS_E_CORRUPT, "out of order or beyond them");
    free(bytes);
    end(f);
}

static void test_hostile_frames(void **state)
{
    struct fixture *f = begin_written();
    const char *path = log_path(f, 1);
    size_t n, at[7];
    unsigned char *bytes = (void *)scratch_read(path, &n);
    (void)state;
    find_frames((char *)bytes, n, at);
    put_head(bytes, at[3], 8, FIRST + 4);
    scratch_write(path, bytes, n);
    check_refused(f, UINT64_MAX, DRPS_E_CORRUPT, "round 14 follows round 12, at byte ");
    put_head(bytes, at[3], 8, FIRST + 3);
    put_head(bytes, at[3], 32, UINT64_MAX - 8); /* a payload beyond the file */
    scratch_write(path, bytes, n);
    check_refused(f, UINT64_MAX, DRPS_E_CORRUPT, "what follows round 12, at byte ");
    put_head(bytes, 0, 8, FIRST + 1);
    scratch_write(path, bytes, n);
    check_refused(f, UINT64_MAX, DRPS_E_CORRUPT, "is the log of another checkpoint");
    free(bytes);
    end(f);
}

static void test_verify(void **state)
{
    struct fixture *f = begin_written();
    const char *path = log_path(f, 1);
    struct drps_checkpoint *cp;
    uint64_t first, last, problems[2];
    size_t n;
    char *bytes = scratch_read(path, &n);
    (void)state;
    must(drps_checkpoint_open(&f->c, 1, &cp, &err));
    must(drps_vector_log_verify(drps_io_os(), cp, &first, &last, &err));
    assert_int_equal(first, FIRST);
    assert_int_equal(last, FIRST + 5);
    assert_true(drps_vector_log_is_of(cp));
    drps_checkpoint_close(cp);
    /* As part of the check of all checkpoints: one problem more, where the log is damaged. */
    for (int damaged = 0; damaged < 2; damaged++) {
        struct drps_findings found = {0};
        bytes[200] ^= (char)damaged;
        scratch_write(path, bytes, n);
        must(drps_checkpoints_verify(drps_io_os(), scratch_path(&f->s, "all"), &found, &err));
        problems[damaged] = found.problems;
        if (damaged) assert_non_null(strstr(found.kept[found.problems - 1].text, "vectors.log"));
    }
    assert_int_equal(problems[1], problems[0] + 1);
    free(bytes);
    end(f);
}

/* ---- Calls that fail ---- */

/* Each write, sync and open fails once: the call that meets it says so, the log goes on, and in the
 * end every round is there. */
static void test_faults_lose_nothing(void **state)
{
    static const struct {
        unsigned ops;
        enum fault_effect effect;
        int code;
    } kinds[] = {{FAULT_PWRITE, FAULT_ERROR, -ENOSPC},
                 {FAULT_PWRITE, FAULT_TORN, -ENOSPC},
                 {FAULT_FSYNC, FAULT_ERROR, -EIO},
                 {FAULT_OPEN, FAULT_ERROR, -EMFILE},
                 {FAULT_MKDIR | FAULT_RENAME | FAULT_LINK | FAULT_EXCHANGE, FAULT_ERROR, -EIO}};
    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        int fired = 1;
        for (long k = 1; fired; k++) {
            struct fixture *f = begin();
            struct fault_io *io = fault_io_new(drps_io_os());
            int failed = 0;
            open_log(f, (struct drps_vector_log_options){0});
            f->c.io = &io->io;
            fault_io_arm(io, kinds[i].ops, k, 0, kinds[i].effect, kinds[i].code);
            for (int r = 1; r <= 5; r++) {
                struct drps_err err = DRPS_ERR_INIT;
                add(f);
                int rc = r == 3 ? drps_vector_log_snapshot(f->log, f->v.matrix, f->manifest, &err)
                                : drps_vector_log_sync(f->log, &err);
                if (rc < 0 && (rc != kinds[i].code || !err.text[0])) fail_msg("%s", err.text);
                failed += rc < 0;
            }
            fired = io->fired;
            f->c.io = drps_io_os();
            if (kinds[i].effect == FAULT_TORN) assert_int_equal(failed, fired);
            sync_log(f);
            check_latest(f, FIRST + 5);
            end(f);
            fault_io_free(io);
            assert_true(k < 100);
        }
    }
}

/* The disk is full until something is removed. */
static void test_no_space(void **state)
{
    struct fixture *f = begin();
    struct fault_io *io = fault_io_new(drps_io_os());
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    open_log(f, (struct drps_vector_log_options){0});
    f->c.io = &io->io;
    add(f);
    sync_log(f);
    io->disk_bytes = io->written_bytes + 100;
    add(f);
    assert_int_equal(drps_vector_log_sync(f->log, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "vectors.log"));
    assert_non_null(strstr(err.text, "free some space"));
    drps_err_clear(&err);
    assert_true(drps_vector_log_snapshot(f->log, f->v.matrix, f->manifest, &err) < 0);
    check_latest(f, FIRST + 1);
    io->disk_bytes = 0;
    add(f);
    sync_log(f);
    check_latest(f, FIRST + 3);
    end(f);
    fault_io_free(io);
}

static int refuse_round(void *ctx, const struct drps_vector_round *round, void *matrix,
                        struct drps_err *err)
{
    (void)ctx;
    (void)matrix;
    return round->number < 13 ? 0 : drps_err_set(err, -EDOM, "no");
}

static void test_what_stops_restoring(void **state)
{
    struct fixture *f = begin_written();
    struct drps_err err = DRPS_ERR_INIT;
    atomic_int stop = 1;
    struct drps_io io = *drps_io_os();
    uint64_t got;
    (void)state;
    assert_int_equal(drps_vector_log_restore(&f->c, &f->v.shape, UINT64_MAX, refuse_round, NULL,
                                             f->got, &got, &err),
                     -EDOM);
    assert_non_null(strstr(err.text, "vectors.log: round 13, at byte "));
    io.stop = &stop;
    f->c.io = &io;
    check_refused(f, UINT64_MAX, DRPS_E_INTERRUPTED, "interrupted");
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_covered_round_comes_back),
        cmocka_unit_test(test_no_round_was_synced),
        cmocka_unit_test(test_rows_that_no_batch_names),
        cmocka_unit_test(test_resume_goes_on),
        cmocka_unit_test(test_resume_after_an_earlier_round),
        cmocka_unit_test(test_a_log_beside_any_checkpoint),
        cmocka_unit_test(test_notes_come_back),
        cmocka_unit_test(test_a_thread_writes_the_same),
        cmocka_unit_test(test_a_thread_that_fails),
        cmocka_unit_test(test_the_matrix_where_it_is_smaller),
        cmocka_unit_test(test_bytes_of_logs),
        cmocka_unit_test(test_rows_where_both_are_equal),
        cmocka_unit_test(test_bytes_against_full_checkpoints),
        cmocka_unit_test(test_due),
        cmocka_unit_test(test_due_after_resuming),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_torn_ends),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damage_far_from_what_tells_of_it),
        cmocka_unit_test(test_hostile_rounds),
        cmocka_unit_test(test_hostile_frames),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_faults_lose_nothing),
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_what_stops_restoring),
    };
    return cmocka_run_group_tests_name("vector_log", tests, NULL, NULL);
}
