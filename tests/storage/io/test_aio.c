/*
 * The asynchronous file on both engines: random operations against a copy in memory, faults
 * through the seam, and every step of falling back.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_clock.h"
#include "storage/io/aio_internal.h"
#include "support/fault_io.h"
#include "support/lists.h"
#include "support/no_uring.h"
#include "support/scratch.h"
#include "support/uring_here.h"

enum {
    PIECE = 16 << 10,
    PIECES = 256, /* of the file */
    FILE_BYTES = PIECE * PIECES,
    BUFFERS = 64,
    BUFFERS_BYTES = PIECE * BUFFERS,
    SKIPPED = 77
};

static char *buffers; /* [BUFFERS_BYTES] for every test */

static struct drps_aio_config config_of(const char *path, unsigned depth, int threads_only)
{
    return (struct drps_aio_config){.io = drps_io_os(),
                                    .path = path,
                                    .file_bytes = FILE_BYTES,
                                    .buffers = buffers,
                                    .buffers_bytes = BUFFERS_BYTES,
                                    .depth = depth,
                                    .threads_only = threads_only};
}

static struct drps_aio *open_ok(const struct drps_aio_config *config)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_aio *aio;
    assert_ok(drps_aio_open(config, &aio, &err), &err);
    return aio;
}

static struct drps_aio_op op_of(int write, unsigned buffer, unsigned piece)
{
    return (struct drps_aio_op){.buf = buffers + (size_t)buffer * PIECE,
                                .bytes = PIECE,
                                .offset = (uint64_t)piece * PIECE,
                                .write = write,
                                .tag = buffer};
}

/* Do one operation and wait for it; its code. */
static int do_one(struct drps_aio *aio, int write, unsigned buffer, unsigned piece,
                  struct drps_err *err)
{
    struct drps_aio_op op = op_of(write, buffer, piece);
    uint32_t tag = UINT32_MAX;
    size_t n;
    int rc = drps_aio_submit(aio, &op, 1, err);
    if (rc == 0) rc = drps_aio_wait(aio, 1, &tag, 1, &n, err);
    if (rc == 0 && (n != 1 || tag != buffer)) fail_msg("%zu tags, the first %u", n, tag);
    return rc;
}

static void fill(char *bytes, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(seed * 31 + i * 7 + (i >> 8));
}

/* --- random operations against a copy in memory --- */

struct model {
    struct drps_aio *aio;
    struct random_source rng;
    unsigned depth;
    char *shadow;                /* own [FILE_BYTES]: what the file holds when all is done */
    struct drps_aio_op *batch;   /* own [depth] */
    struct drps_aio_op *running; /* own [depth]: by tag */
    unsigned char busy[PIECES];  /* an operation under way has this piece */
    uint32_t *idle;              /* own [depth]: buffers that no operation has */
    unsigned idle_n;
    uint64_t reads, writes, bytes;
};

/* Up to three pieces in a row that nothing else has; 0 when none was found. */
static int draw_op(struct model *m, struct drps_aio_op *op)
{
    uint32_t step = BUFFERS / m->depth < 3 ? BUFFERS / m->depth : 3;
    uint32_t n = 1 + (uint32_t)random_below(&m->rng, step);
    uint32_t piece = (uint32_t)random_below(&m->rng, PIECES - n + 1);
    uint32_t tag = m->idle[m->idle_n - 1];
    for (uint32_t i = 0; i < n; i++)
        if (m->busy[piece + i]) return 0;
    memset(m->busy + piece, 1, n);
    *op = (struct drps_aio_op){.buf = buffers + (size_t)tag * step * PIECE,
                               .bytes = n * PIECE,
                               .offset = (uint64_t)piece * PIECE,
                               .write = (int)random_below(&m->rng, 2),
                               .tag = tag};
    m->idle_n--;
    m->running[tag] = *op;
    m->bytes += op->bytes;
    if (op->write) {
        fill(op->buf, op->bytes, random_u64(&m->rng));
        memcpy(m->shadow + op->offset, op->buf, op->bytes);
        m->writes++;
    } else {
        memset(op->buf, 0xee, op->bytes);
        m->reads++;
    }
    return 1;
}

static void check_finished(struct model *m, const uint32_t *tags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct drps_aio_op *op = &m->running[tags[i]];
        if (memcmp(op->buf, m->shadow + op->offset, op->bytes) != 0)
            fail_msg("%s of %u bytes at %llu: other bytes", op->write ? "write" : "read", op->bytes,
                     (unsigned long long)op->offset);
        memset(m->busy + op->offset / PIECE, 0, op->bytes / PIECE);
        m->idle[m->idle_n++] = tags[i];
    }
}

static void one_round(struct model *m)
{
    uint32_t tags[BUFFERS];
    struct drps_err err = DRPS_ERR_INIT;
    size_t n = 0, got;
    size_t want = random_below(&m->rng, m->idle_n + 1);
    for (unsigned tries = 0; n < want && tries < 200; tries++)
        n += (size_t)draw_op(m, &m->batch[n]);
    assert_ok(drps_aio_submit(m->aio, m->batch, n, &err), &err);
    unsigned under_way = drps_aio_under_way(m->aio);
    assert_int_equal(under_way, m->depth - m->idle_n);
    unsigned least = (unsigned)random_below(&m->rng, under_way + 1);
    size_t cap = least + random_below(&m->rng, BUFFERS - least + 1);
    assert_ok(drps_aio_wait(m->aio, least, tags, cap, &got, &err), &err);
    assert_true(got >= least && got <= cap);
    check_finished(m, tags, got);
    assert_int_equal(drps_aio_under_way(m->aio), under_way - got);
}

static void check_counts(const struct model *m)
{
    struct drps_iostat io;
    drps_aio_stats(m->aio, &io);
    assert_int_equal(io.reads, m->reads);
    assert_int_equal(io.writes, m->writes);
    assert_int_equal(io.read_calls, m->reads);
    assert_int_equal(io.write_calls, m->writes);
    assert_int_equal(io.read_bytes + io.written_bytes, m->bytes);
    assert_int_equal(io.read_latency.n, m->reads);
    assert_int_equal(io.write_latency.n, m->writes);
    assert_true(io.seeks <= m->reads + m->writes);
    assert_true(io.queue_depth_sum >= m->reads && io.queue_depth_sum <= m->reads * m->depth);
}

static void run_model(const struct drps_aio_config *config, size_t register_bytes, const char *name)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_aio_about about;
    struct model m = {.rng = random_begin(name), .depth = config->depth};
    uint32_t tags[BUFFERS];
    size_t n;
    m.shadow = must(calloc(1, FILE_BYTES)); /* preallocated bytes are zeros */
    m.batch = must(calloc(m.depth, sizeof(*m.batch)));
    m.running = must(calloc(m.depth, sizeof(*m.running)));
    m.idle = must(calloc(m.depth, sizeof(*m.idle)));
    while (m.idle_n < m.depth) {
        m.idle[m.idle_n] = m.idle_n;
        m.idle_n++;
    }
    assert_ok(drps_aio_open_pieces(config, register_bytes, &m.aio, &err), &err);
    drps_aio_about(m.aio, &about);
    print_message("%s: %s, depth %u, direct %d, registered %d, \"%s\"\n", name, about.engine,
                  m.depth, about.direct, about.registered, about.why);
    for (int i = 0; i < 400; i++)
        one_round(&m);
    assert_ok(drps_aio_wait(m.aio, drps_aio_under_way(m.aio), tags, BUFFERS, &n, &err), &err);
    check_finished(&m, tags, n);
    assert_int_equal(drps_aio_under_way(m.aio), 0);
    check_counts(&m);
    drps_aio_close(m.aio);
    char *bytes = scratch_read(config->path, &n);
    assert_int_equal(n, FILE_BYTES);
    assert_memory_equal(bytes, m.shadow, n);
    free(bytes);
    free(m.shadow);
    free(m.batch);
    free(m.running);
    free(m.idle);
}

static void test_random_operations(void **state)
{
    static const unsigned depths[] = {1, 8, 64};
    for (int threads_only = 0; threads_only < 2; threads_only++)
        for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
            const char *path = scratch_path(*state, "blocks");
            struct drps_aio_config config = config_of(path, depths[i], threads_only);
            run_model(&config, 1 << 30, threads_only ? "threads" : "uring");
            assert_int_equal(unlink(path), 0);
        }
}

/* Buffers larger than what may be registered at once: some operations cross from piece to piece. */
static void test_operations_across_registered_pieces(void **state)
{
    struct drps_aio_config config = config_of(scratch_path(*state, "blocks"), 16, 0);
    run_model(&config, 5 * DRPS_AIO_ALIGN, "pieces");
}

/* --- the rules of submit and wait --- */

static void test_several_batches_and_polling(void **state)
{
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        const char *path = scratch_path(*state, threads_only ? "t" : "u");
        struct drps_aio_config config = config_of(path, 8, threads_only);
        struct drps_aio *aio = open_ok(&config);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio_op ops[8];
        uint32_t tags[8];
        size_t n, seen = 0;
        assert_ok(drps_aio_wait(aio, 0, tags, 8, &n, &err), &err);
        assert_int_equal(n, 0);
        for (unsigned i = 0; i < 8; i++)
            ops[i] = op_of(1, i, i);
        assert_ok(drps_aio_submit(aio, ops, 0, &err), &err);
        assert_ok(drps_aio_submit(aio, ops, 3, &err), &err);
        assert_ok(drps_aio_submit(aio, ops + 3, 5, &err), &err);
        assert_int_equal(drps_aio_under_way(aio), 8);
        assert_ok(drps_aio_wait(aio, 0, tags, 0, &n, &err), &err); /* no room: none comes back */
        assert_int_equal(n, 0);
        assert_int_equal(drps_aio_under_way(aio), 8);
        while (seen < 8) { /* looks until all are there, two at a time */
            assert_ok(drps_aio_wait(aio, 0, tags, 2, &n, &err), &err);
            assert_true(n <= 2);
            seen += n;
        }
        assert_int_equal(drps_aio_under_way(aio), 0);
        drps_aio_close(aio);
    }
}

static void test_seeks_are_counted_by_kind(void **state)
{
    struct drps_aio_config config = config_of(scratch_path(*state, "blocks"), 8, 1);
    struct drps_aio *aio = open_ok(&config);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_iostat io;
    static const struct {
        int write;
        unsigned piece;
    } ops[] = {{0, 0}, {1, 9}, {0, 1}, {1, 10}, {0, 2}, {0, 4}, {1, 3}}; /* seeks: 0 9 4 3 */
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        assert_ok(do_one(aio, ops[i].write, 0, ops[i].piece, &err), &err);
    drps_aio_stats(aio, &io);
    assert_int_equal(io.seeks, 4);
    assert_int_equal(io.queue_depth_sum, 4); /* four reads, one at a time */
    drps_aio_close(aio);
}

static struct drps_aio_op whole(char *buf, uint32_t bytes, uint64_t offset, int write)
{
    return (struct drps_aio_op){.buf = buf, .bytes = bytes, .offset = offset, .write = write};
}

static struct drps_aio_op gathered(const struct iovec *pieces, unsigned n, uint32_t bytes,
                                   int write)
{
    return (struct drps_aio_op){
        .pieces = pieces, .pieces_n = n, .bytes = bytes, .write = write, .tag = 5};
}

/* Pieces of different sizes, from last to first in memory, at the file's piece 3. */
static int write_gathered(struct drps_aio *aio, struct drps_err *err)
{
    static const unsigned sizes[] = {1, 3, 1, 2};
    struct iovec pieces[4];
    unsigned at = 7;
    uint32_t tag;
    size_t n;
    for (size_t i = 0; i < 4; i++) {
        at -= sizes[i];
        pieces[i] = (struct iovec){buffers + (size_t)at * PIECE, (size_t)sizes[i] * PIECE};
    }
    struct drps_aio_op op = gathered(pieces, 4, 7 * PIECE, 1);
    op.offset = 3 * PIECE;
    int rc = drps_aio_submit(aio, &op, 1, err);
    if (rc == 0) rc = drps_aio_wait(aio, 1, &tag, 1, &n, err);
    if (rc == 0) assert_int_equal(tag, 5);
    return rc;
}

/* The file has what write_gathered() wrote, and nothing around it. */
static void check_gathered(struct drps_aio *aio)
{
    static const unsigned order[] = {6, 3, 4, 5, 2, 0, 1};
    static const char zeros[PIECE];
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_aio_op op = op_of(0, 10, 2);
    uint32_t tag;
    size_t n;
    op.bytes = 9 * PIECE;
    assert_ok(drps_aio_submit(aio, &op, 1, &err), &err);
    assert_ok(drps_aio_wait(aio, 1, &tag, 1, &n, &err), &err);
    const char *got = op.buf;
    assert_memory_equal(got, zeros, PIECE);
    for (size_t i = 0; i < 7; i++)
        assert_memory_equal(got + (1 + i) * PIECE, buffers + (size_t)order[i] * PIECE, PIECE);
    assert_memory_equal(got + 8 * PIECE, zeros, PIECE);
}

static void test_pieces_are_written_as_one(void **state)
{
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        const char *path = scratch_path(*state, "blocks");
        struct drps_aio_config config = config_of(path, 4, threads_only);
        struct drps_iostat io;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio *aio = open_ok(&config);
        fill(buffers, 7 * PIECE, 11);
        assert_ok(write_gathered(aio, &err), &err);
        drps_aio_stats(aio, &io);
        assert_int_equal(io.writes, 1);
        assert_int_equal(io.written_bytes, 7 * PIECE);
        check_gathered(aio);
        drps_aio_close(aio);
        assert_int_equal(unlink(path), 0);
    }
}

/* Wherever the transfer of pieces is cut, also inside of one. */
static void test_pieces_cut_short_are_continued(void **state)
{
    for (int direct = 0; direct < 2; direct++)
        for (long k = 1; k < 4; k++) {
            const char *path = scratch_path(*state, "blocks");
            struct fault_io *fault = uring_faults_new();
            struct drps_aio_config config = config_of(path, 4, 0);
            struct drps_err err = DRPS_ERR_INIT;
            config.io = &fault->io;
            if (!direct) fault_io_arm(fault, FAULT_OPEN, 2, 0, FAULT_ERROR, -EINVAL);
            struct drps_aio *aio = open_ok(&config);
            fill(buffers, 7 * PIECE, 12);
            fault_io_arm(fault, FAULT_PWRITE, 1, k > 1, FAULT_SHORT, 0);
            if (k == 3) fault_io_arm(fault, FAULT_PWRITE, 1, 0, FAULT_TORN, -EIO);
            int rc = write_gathered(aio, &err);
            assert_true(atomic_load(&fault->fired) >= 1);
            assert_int_equal(rc, k == 3 || (direct && k == 2) ? rc : 0);
            if (rc == 0)
                check_gathered(aio);
            else
                assert_non_null(strstr(err.text, path));
            if (k == 3) assert_int_equal(rc, -EIO);
            drps_aio_close(aio);
            uring_faults_free(fault);
            assert_int_equal(unlink(path), 0);
        }
}

/* What the next call is for, after so many bytes of three pieces. */
static void test_rest_of_pieces(void **state)
{
    static char memory[10];
    const struct iovec pieces[] = {{memory, 4}, {memory + 4, 1}, {memory + 5, 5}};
    static const struct {
        uint32_t moved;
        unsigned pieces_n; /* 0: one buffer */
        size_t at;
        uint32_t bytes;
    } cases[] = {{0, 3, 0, 0}, {1, 0, 1, 3}, {4, 2, 4, 0}, {5, 0, 5, 5}, {9, 0, 9, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct drps_aio_request request = {
            .pieces = pieces, .pieces_n = 3, .bytes = 10, .moved = cases[i].moved, .write = 1};
        const struct drps_aio_part part = drps_aio_rest(&request);
        assert_int_equal(part.pieces_n, cases[i].pieces_n);
        if (part.pieces) {
            assert_ptr_equal(part.pieces->iov_base, memory + cases[i].at);
        } else {
            assert_ptr_equal(part.buf, memory + cases[i].at);
            assert_int_equal(part.bytes, cases[i].bytes);
        }
    }
}

static void test_bad_requests_are_refused(void **state)
{
    struct drps_aio_op good = op_of(1, 0, 0);
    const struct iovec both[] = {{buffers, PIECE}, {buffers + PIECE, PIECE}};
    const struct iovec odd[] = {{buffers, PIECE - 512}, {buffers + PIECE, PIECE + 512}};
    const struct iovec beyond[] = {{buffers, PIECE}, {buffers + BUFFERS_BYTES, PIECE}};
    const struct {
        const char *name;
        size_t n;
        struct drps_aio_op op;
    } cases[] = {
        {"too many", 5, good},
        {"no bytes", 1, whole(good.buf, 0, 0, 1)},
        {"odd bytes", 1, whole(good.buf, 100, 0, 1)},
        {"odd offset", 1, whole(good.buf, PIECE, 512, 1)},
        {"odd buffer", 1, whole(buffers + 512, PIECE, 0, 1)},
        {"beyond the file", 1, whole(good.buf, PIECE, FILE_BYTES - PIECE / 2, 1)},
        {"far beyond the file", 1, whole(good.buf, PIECE, UINT64_MAX - 4095, 0)},
        {"beyond the buffers", 1, whole(buffers + BUFFERS_BYTES - PIECE / 2, PIECE, 0, 1)},
        {"below the buffers", 1, whole(buffers - PIECE, PIECE, 0, 1)},
        {"no pieces", 1, gathered(both, 0, 2 * PIECE, 1)},
        {"too many pieces", 1, gathered(both, DRPS_AIO_PIECES_MAX + 1, 2 * PIECE, 1)},
        {"pieces to read", 1, gathered(both, 2, 2 * PIECE, 0)},
        {"pieces of other bytes", 1, gathered(both, 2, PIECE, 1)},
        {"an odd piece", 1, gathered(odd, 2, 2 * PIECE, 1)},
        {"a piece beyond the buffers", 1, gathered(beyond, 2, 2 * PIECE, 1)},
    };
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        const char *path = scratch_path(*state, threads_only ? "t" : "u");
        struct drps_aio_config config = config_of(path, 4, threads_only);
        struct drps_aio *aio = open_ok(&config);
        struct drps_err err = DRPS_ERR_INIT;
        uint32_t tags[4];
        size_t n;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
            struct drps_aio_op ops[5];
            for (size_t k = 0; k < 5; k++)
                ops[k] = cases[i].op;
            drps_err_clear(&err);
            int rc = drps_aio_submit(aio, ops, cases[i].n, &err);
            if (rc != -EINVAL || !strstr(err.text, path))
                fail_msg("%s: code %d, text \"%s\"", cases[i].name, rc, err.text);
        }
        assert_int_equal(drps_aio_under_way(aio), 0);
        assert_int_equal(drps_aio_wait(aio, 1, tags, 4, &n, NULL), -EINVAL);
        drps_err_clear(&err);
        assert_ok(drps_aio_submit(aio, &good, 1, &err), &err); /* a refusal is no failure */
        assert_int_equal(drps_aio_wait(aio, 1, tags, 0, &n, NULL), -EINVAL);
        assert_ok(drps_aio_wait(aio, 1, tags, 4, &n, &err), &err);
        drps_aio_close(aio);
    }
}

static void test_close_with_operations_under_way(void **state)
{
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        const char *path = scratch_path(*state, threads_only ? "t" : "u");
        struct drps_aio_config config = config_of(path, BUFFERS, threads_only);
        struct drps_aio *aio = open_ok(&config);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio_op ops[BUFFERS];
        size_t n;
        fill(buffers, BUFFERS_BYTES, 5);
        for (unsigned i = 0; i < BUFFERS; i++)
            ops[i] = op_of(1, i, i);
        assert_ok(drps_aio_submit(aio, ops, BUFFERS, &err), &err);
        drps_aio_close(aio);
        char *bytes = scratch_read(path, &n);
        assert_memory_equal(bytes, buffers, BUFFERS_BYTES); /* the writes were waited for */
        free(bytes);
    }
    drps_aio_close(NULL);
    drps_aio_discard(NULL);
}

/* Whatever the kernel still does with the file, its room is free. */
static void test_discard_leaves_an_empty_file(void **state)
{
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        const char *path = scratch_path(*state, threads_only ? "t" : "u");
        struct drps_aio_config config = config_of(path, BUFFERS, threads_only);
        struct drps_aio *aio = open_ok(&config);
        struct drps_err err = DRPS_ERR_INIT;
        const struct drps_aio_op op = op_of(1, 0, 0);
        size_t n;
        assert_ok(drps_aio_submit(aio, &op, 1, &err), &err);
        drps_aio_discard(aio);
        free(scratch_read(path, &n));
        assert_int_equal(n, 0);
    }
}

struct observer {
    struct drps_aio *aio;
    atomic_int stop;
};

static void *observe(void *arg)
{
    struct observer *w = arg;
    struct drps_iostat io;
    do
        drps_aio_stats(w->aio, &io);
    while (!atomic_load(&w->stop));
    return NULL;
}

static void test_stats_from_another_thread(void **state)
{
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        const char *path = scratch_path(*state, threads_only ? "t" : "u");
        struct drps_aio_config config = config_of(path, 8, threads_only);
        struct drps_err err = DRPS_ERR_INIT;
        struct observer w = {.aio = open_ok(&config)};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, observe, &w), 0);
        for (unsigned i = 0; i < 200; i++)
            assert_ok(do_one(w.aio, i % 2, i % 8, i, &err), &err);
        atomic_store(&w.stop, 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        drps_aio_close(w.aio);
    }
}

struct handed {
    struct drps_aio *aio;
    int rc;
};

static void *handed_main(void *arg)
{
    struct handed *h = arg;
    h->rc = 0;
    for (unsigned i = 0; i < 20 && h->rc == 0; i++)
        h->rc = do_one(h->aio, 1, i % 8, i, NULL);
    return NULL;
}

/* Opened by one thread, used by a second, closed by the first. */
static void test_one_thread_after_another(void **state)
{
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        const char *path = scratch_path(*state, threads_only ? "t" : "u");
        struct drps_aio_config config = config_of(path, 8, threads_only);
        struct drps_err err = DRPS_ERR_INIT;
        struct handed h = {.aio = open_ok(&config)};
        pthread_t thread;
        assert_ok(do_one(h.aio, 1, 0, 0, &err), &err);
        assert_int_equal(pthread_create(&thread, NULL, handed_main, &h), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(h.rc, 0);
        assert_ok(do_one(h.aio, 0, 0, 0, &err), &err);
        drps_aio_close(h.aio);
    }
}

/* --- opening --- */

static void test_open_refuses(void **state)
{
    const char *path = scratch_path(*state, "blocks");
    struct drps_aio_config good = config_of(path, 8, 0);
    struct {
        const char *name;
        struct drps_aio_config config;
    } cases[] = {{"no depth", good},  {"too deep", good},   {"no bytes", good},
                 {"odd bytes", good}, {"no buffers", good}, {"odd buffers", good},
                 {"no length", good}};
    cases[0].config.depth = 0;
    cases[1].config.depth = DRPS_AIO_DEPTH_MAX + 1;
    cases[2].config.file_bytes = 0;
    cases[3].config.file_bytes = 4097;
    cases[4].config.buffers = NULL;
    cases[5].config.buffers = buffers + 512;
    cases[6].config.buffers_bytes = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio *aio;
        int rc = drps_aio_open(&cases[i].config, &aio, &err);
        if (rc != -EINVAL || aio || !strstr(err.text, path))
            fail_msg("%s: code %d, text \"%s\"", cases[i].name, rc, err.text);
        assert_false(path_exists(path));
    }
}

static void test_existing_file_is_untouched(void **state)
{
    const char *path = scratch_file(*state, "blocks", "keep me", SIZE_MAX);
    struct drps_aio_config config = config_of(path, 8, 0);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_aio *aio;
    size_t n;
    assert_int_equal(drps_aio_open(&config, &aio, &err), -EEXIST);
    assert_null(aio);
    assert_non_null(strstr(err.text, path));
    char *bytes = scratch_read(path, &n);
    assert_string_equal(bytes, "keep me");
    free(bytes);
}

static uint64_t bytes_of(const char *path)
{
    size_t n;
    free(scratch_read(path, &n));
    return n;
}

/* A file that is there is used as it is, and not removed when it does not do. */
static void test_uses_an_existing_file(void **state)
{
    const char *path = scratch_path(*state, "used");
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        struct drps_aio_config config = config_of(path, 4, threads_only);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio *aio;
        config.file = DRPS_AIO_USE;
        assert_int_equal(drps_aio_open(&config, &aio, &err), -ENOENT);
        drps_err_clear(&err);

        config.file = DRPS_AIO_MAKE;
        aio = open_ok(&config);
        fill(buffers, PIECE, 5);
        assert_ok(do_one(aio, 1, 0, 9, &err), &err);
        drps_aio_close(aio);

        config.file = DRPS_AIO_USE;
        aio = open_ok(&config);
        memset(buffers, 0, PIECE);
        assert_ok(do_one(aio, 0, 0, 9, &err), &err);
        fill(buffers + PIECE, PIECE, 5);
        assert_memory_equal(buffers, buffers + PIECE, PIECE);
        assert_ok(do_one(aio, 1, 1, 0, &err), &err);
        drps_aio_close(aio);
        config.file_bytes = FILE_BYTES + PIECE;
        assert_int_equal(drps_aio_open(&config, &aio, &err), DRPS_E_CORRUPT);
        assert_non_null(strstr(err.text, path));
        assert_int_equal(bytes_of(path), FILE_BYTES);
        (void)unlink(path);
    }
}

/* A file that grows has room there; one that cannot is as it was. */
static void test_grows(void **state)
{
    struct fault_io *f = must(fault_io_new(drps_io_os()));
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_path(*state, "grows");
    struct drps_aio_config config = config_of(path, 4, 1);
    config.io = &f->io;
    struct drps_aio *aio = open_ok(&config);
    assert_int_equal(do_one(aio, 1, 0, PIECES, &err), -EINVAL);
    drps_err_clear(&err);
    fault_io_arm(f, FAULT_FALLOCATE, 1, 0, FAULT_ERROR, -ENOSPC);
    const unsigned long cuts = f->calls[FAULT_NR_FTRUNCATE];
    assert_int_equal(drps_aio_grow(aio, FILE_BYTES + PIECE, &err), -ENOSPC);
    assert_int_equal(f->calls[FAULT_NR_FTRUNCATE], cuts + 1); /* a part that it got is given back */
    assert_int_equal(bytes_of(path), FILE_BYTES);
    drps_err_clear(&err);
    assert_int_equal(do_one(aio, 1, 0, PIECES, &err), -EINVAL);
    drps_err_clear(&err);
    assert_int_equal(drps_aio_grow(aio, FILE_BYTES - PIECE, &err), -EINVAL);
    assert_int_equal(drps_aio_grow(aio, FILE_BYTES + 1, &err), -EINVAL);
    drps_err_clear(&err);
    assert_ok(drps_aio_grow(aio, FILE_BYTES + PIECE, &err), &err);
    assert_int_equal(bytes_of(path), FILE_BYTES + PIECE);
    assert_ok(do_one(aio, 1, 0, PIECES, &err), &err);

    const unsigned long syncs = f->calls[FAULT_NR_FSYNC];
    assert_ok(drps_aio_sync(aio, &err), &err);
    assert_int_equal(f->calls[FAULT_NR_FSYNC], syncs + 1);
    fault_io_arm(f, FAULT_FSYNC, 1, 0, FAULT_ERROR, -EIO);
    assert_int_equal(drps_aio_sync(aio, &err), -EIO);
    drps_aio_close(aio);
    fault_io_free(f);
}

static void test_full_disk_is_refused_at_open(void **state)
{
    const char *path = scratch_path(*state, "blocks");
    struct fault_io *fault = must(fault_io_new(drps_io_os()));
    struct drps_aio_config config = config_of(path, 8, 0);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_aio *aio;
    config.io = &fault->io;
    fault_io_arm(fault, FAULT_FALLOCATE, 1, 0, FAULT_ERROR, -ENOSPC);
    assert_int_equal(drps_aio_open(&config, &aio, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "4194304 bytes"));
    assert_non_null(strstr(err.text, "free some space"));
    assert_false(path_exists(path));
    fault_io_free(fault);
}

/* Whichever call of the file system fails, open says so and leaves nothing. */
static void test_open_cleans_up(void **state)
{
    for (long k = 1;; k++) {
        const char *path = scratch_path(*state, "blocks");
        struct fault_io *fault = must(fault_io_new(drps_io_os()));
        struct drps_aio_config config = config_of(path, 8, 0);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio *aio;
        config.io = &fault->io;
        fault_io_arm(fault, FAULT_OPEN | FAULT_FALLOCATE, k, 0, FAULT_ERROR, -EIO);
        int rc = drps_aio_open(&config, &aio, &err);
        int fired = atomic_load(&fault->fired);
        drps_aio_close(aio);
        if (fired) {
            assert_int_equal(rc, -EIO);
            assert_non_null(strstr(err.text, path));
            assert_false(path_exists(path));
        }
        fault_io_free(fault);
        if (!fired) {
            assert_ok(rc, &err);
            assert_int_equal(k, 4); /* create, preallocate, open with O_DIRECT */
            break;
        }
    }
}

static void test_without_o_direct(void **state)
{
    struct fault_io *fault = must(fault_io_new(drps_io_os()));
    struct drps_aio_config config = config_of(scratch_path(*state, "blocks"), 8, 0);
    struct drps_aio_about about;
    struct drps_err err = DRPS_ERR_INIT;
    config.io = &fault->io;
    fault_io_arm(fault, FAULT_OPEN, 2, 0, FAULT_ERROR, -EINVAL);
    struct drps_aio *aio = open_ok(&config);
    drps_aio_about(aio, &about);
    assert_string_equal(about.engine, "threads");
    assert_int_equal(about.direct, 0);
    assert_int_equal(about.registered, 0);
    assert_non_null(strstr(about.why, "O_DIRECT"));
    assert_non_null(strstr(about.why, "io_uring"));
    assert_ok(do_one(aio, 1, 0, 3, &err), &err);
    assert_ok(do_one(aio, 0, 1, 3, &err), &err);
    assert_memory_equal(buffers, buffers + PIECE, PIECE);
    drps_aio_close(aio);
    fault_io_free(fault);
}

/* Memory as a disk: no O_DIRECT there on older kernels. */
static void test_on_tmpfs(void **state)
{
    char path[] = "/dev/shm/drps-test-XXXXXX";
    (void)state;
    if (!mkdtemp(path)) skip();
    for (int threads_only = 0; threads_only < 2; threads_only++) {
        char *file = must(drps_path_join(path, "blocks"));
        struct drps_aio_config config = config_of(file, 8, threads_only);
        run_model(&config, 1 << 30, "tmpfs");
        assert_int_equal(unlink(file), 0);
        free(file);
    }
    assert_int_equal(rmdir(path), 0);
}

/* --- faults of the transfers --- */

static void test_short_transfers_are_continued(void **state)
{
    static const unsigned ops[] = {FAULT_PREAD, FAULT_PWRITE};
    for (int direct = 0; direct < 2; direct++)
        for (size_t i = 0; i < 2; i++) {
            const char *path = scratch_path(*state, "blocks");
            struct fault_io *fault = uring_faults_new();
            struct drps_aio_config config = config_of(path, 4, 0);
            struct drps_err err = DRPS_ERR_INIT;
            config.io = &fault->io;
            if (!direct) fault_io_arm(fault, FAULT_OPEN, 2, 0, FAULT_ERROR, -EINVAL);
            struct drps_aio *aio = open_ok(&config);
            fill(buffers, PIECE, i + 3);
            /* 16 KiB by halves: past the page cache only down to whole aligned blocks */
            fault_io_arm(fault, ops[i], 1, !direct, FAULT_SHORT, 0);
            assert_ok(do_one(aio, 1, 0, 7, &err), &err);
            assert_ok(do_one(aio, 0, 1, 7, &err), &err);
            assert_true(atomic_load(&fault->fired) >= 1);
            assert_memory_equal(buffers, buffers + PIECE, PIECE);
            drps_aio_close(aio);
            uring_faults_free(fault);
            assert_int_equal(unlink(path), 0);
        }
}

static void test_interrupted_calls_are_repeated(void **state)
{
    static const int codes[] = {-EINTR, -EAGAIN};
    for (size_t i = 0; i < 2; i++) {
        const char *path = scratch_path(*state, i ? "a" : "b");
        struct fault_io *fault = uring_faults_new();
        struct drps_aio_config config = config_of(path, 4, 0);
        struct drps_err err = DRPS_ERR_INIT;
        config.io = &fault->io;
        struct drps_aio *aio = open_ok(&config);
        fault_io_arm(fault, FAULT_PREAD | FAULT_PWRITE, 1, 0, FAULT_ERROR, codes[i]);
        assert_ok(do_one(aio, 1, 0, 7, &err), &err);
        fault_io_arm(fault, FAULT_PREAD | FAULT_PWRITE, 1, 0, FAULT_ERROR, codes[i]);
        assert_ok(do_one(aio, 0, 1, 7, &err), &err);
        if (codes[i] == -EINTR) { /* but not for ever */
            fault_io_arm(fault, FAULT_PREAD, 1, 1, FAULT_ERROR, codes[i]);
            assert_int_equal(do_one(aio, 0, 1, 7, &err), codes[i]);
        }
        drps_aio_close(aio);
        uring_faults_free(fault);
    }
}

/* The more often in a row, the longer is waited before the call is made again. */
static void test_refused_calls_are_not_made_at_once(void **state)
{
    struct fault_io *fault = uring_faults_new();
    struct drps_aio_config config = config_of(scratch_path(*state, "blocks"), 4, 0);
    struct drps_err err = DRPS_ERR_INIT;
    config.io = &fault->io;
    struct drps_aio *aio = open_ok(&config);
    const uint64_t start = drps_clock_ns();
    fault_io_arm(fault, FAULT_PREAD, 1, 1, FAULT_ERROR, -EAGAIN);
    assert_int_equal(do_one(aio, 0, 1, 7, &err), -EAGAIN);
    const uint64_t took = drps_clock_ns() - start;
    assert_in_range(atomic_load(&fault->fired), 100, 1000);
    assert_true(took / (uint64_t)atomic_load(&fault->fired) > 1000000); /* a ms and more each */
    drps_aio_close(aio);
    uring_faults_free(fault);
}

static void test_failures_name_the_place_and_stay(void **state)
{
    static const struct {
        const char *name;
        unsigned op;
        int code;
        const char *text;
    } cases[] = {
        {"read", FAULT_PREAD, -EIO, "cannot read 16384 bytes at offset 114688 of"},
        {"write", FAULT_PWRITE, -EIO, "cannot write 16384 bytes at offset 114688 of"},
        {"full", FAULT_PWRITE, -ENOSPC, "writing 16384 bytes at offset 114688): free some space"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *path = scratch_path(*state, cases[i].name);
        struct fault_io *fault = uring_faults_new();
        struct drps_aio_config config = config_of(path, 4, 0);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio_op op = op_of(0, 0, 0);
        uint32_t tag;
        size_t n;
        config.io = &fault->io;
        struct drps_aio *aio = open_ok(&config);
        fault_io_arm(fault, cases[i].op, 1, 0, FAULT_ERROR, cases[i].code);
        int rc = do_one(aio, cases[i].op == FAULT_PWRITE, 0, 7, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].text) || !strstr(err.text, path))
            fail_msg("%s: code %d, text \"%s\"", cases[i].name, rc, err.text);
        assert_int_equal(drps_aio_submit(aio, &op, 1, NULL), cases[i].code);
        assert_int_equal(drps_aio_wait(aio, 0, &tag, 1, &n, NULL), cases[i].code);
        drps_aio_close(aio);
        uring_faults_free(fault);
    }
}

/* Many under way while each call fails in turn: nothing hangs, the good ones come back. */
static void test_every_fault_surfaces(void **state)
{
    for (long k = 1;; k++) {
        const char *path = scratch_path(*state, "blocks");
        struct fault_io *fault = uring_faults_new();
        struct drps_aio_config config = config_of(path, 16, 0);
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio_op ops[16];
        uint32_t tags[16];
        size_t n;
        config.io = &fault->io;
        struct drps_aio *aio = open_ok(&config);
        for (unsigned i = 0; i < 16; i++)
            ops[i] = op_of(i % 2, i, i);
        fault_io_arm(fault, FAULT_PREAD | FAULT_PWRITE, k, 0, FAULT_ERROR, -EIO);
        assert_ok(drps_aio_submit(aio, ops, 16, &err), &err);
        int rc = drps_aio_wait(aio, 16, tags, 16, &n, &err);
        int fired = atomic_load(&fault->fired);
        assert_int_equal(rc, fired ? -EIO : 0);
        assert_int_equal(n, fired ? 15 : 16);
        drps_aio_close(aio);
        uring_faults_free(fault);
        assert_int_equal(unlink(path), 0);
        if (!fired) break;
        assert_true(k <= 16);
    }
}

/* 16 transfers at once between the file's first pieces and the buffers from `buffer` on. */
static int move_many(struct drps_aio *aio, int write, unsigned buffer, struct drps_err *err)
{
    struct drps_aio_op ops[16];
    uint32_t tags[16];
    size_t n;
    for (unsigned i = 0; i < 16; i++)
        ops[i] = op_of(write, buffer + i, i);
    int rc = drps_aio_submit(aio, ops, 16, err);
    if (rc == 0) rc = drps_aio_wait(aio, 16, tags, 16, &n, err);
    return rc;
}

/* Wherever one of many is cut, delayed or done twice, in whatever order they come back, the bytes
 * are right; one that is torn and fails is told, and no other. */
static void test_each_transfer_disturbed(void **state)
{
    static const struct {
        const char *name;
        enum fault_effect effect;
        int code, fails;
    } cases[] = {
        {"short", FAULT_SHORT, 0, 0},           {"torn", FAULT_TORN, -EIO, 1},
        {"not begun", FAULT_ERROR, -EINTR, 0},  {"half, once more", FAULT_TORN, -EINTR, 0},
        {"done twice", FAULT_AGAIN, -EINTR, 0}, {"later", FAULT_ERROR, -EAGAIN, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int fired = 1;
        for (long k = 1; fired; k++) {
            const char *path = scratch_path(*state, "blocks");
            struct fault_io *fault = uring_faults_new();
            struct drps_aio_config config = config_of(path, 16, 0);
            struct drps_err err = DRPS_ERR_INIT;
            config.io = &fault->io;
            struct drps_aio *aio = open_ok(&config);
            fill(buffers, 16 * PIECE, (uint64_t)k);
            fault_io_arm(fault, FAULT_PREAD | FAULT_PWRITE, k, 0, cases[i].effect, cases[i].code);
            int rc = move_many(aio, 1, 0, &err);
            if (rc == 0) rc = move_many(aio, 0, 16, &err);
            fired = fault->fired;
            if (rc != (fired && cases[i].fails ? -EIO : 0))
                fail_msg("%s, transfer %ld: code %d, %s", cases[i].name, k, rc, err.text);
            if (rc == 0 && memcmp(buffers, buffers + 16 * PIECE, 16 * PIECE) != 0)
                fail_msg("%s, transfer %ld: other bytes", cases[i].name, k);
            drps_aio_close(aio);
            uring_faults_free(fault);
            assert_int_equal(unlink(path), 0);
            assert_true(k <= 34);
        }
    }
}

/* A file that was cut is noticed, also past the page cache, where the kernel refuses to go on at
 * an odd byte. */
static void test_cut_file_is_noticed(void **state)
{
    static const off_t ends[] = {7 * PIECE, 7 * PIECE + 4096, 7 * PIECE + 5120};
    for (int threads_only = 0; threads_only < 2; threads_only++)
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
            const char *path = scratch_path(*state, "blocks");
            struct drps_aio_config config = config_of(path, 4, threads_only);
            struct drps_err err = DRPS_ERR_INIT;
            char text[64];
            struct drps_aio *aio = open_ok(&config);
            assert_int_equal(truncate(path, ends[i]), 0);
            (void)snprintf(text, sizeof(text), "ends at byte %lld,", (long long)ends[i]);
            int rc = do_one(aio, 0, 0, 7, &err);
            if (rc != DRPS_E_CORRUPT || !strstr(err.text, text))
                fail_msg("%s: code %d, text \"%s\"", text, rc, err.text);
            drps_aio_close(aio);
            assert_int_equal(unlink(path), 0);
        }
}

/* --- what the kernel forbids, each in a child of its own --- */

static int uring_works(const char *path)
{
    struct drps_aio_config config = config_of(path, 4, 0);
    struct drps_aio_about about;
    struct drps_aio *aio = open_ok(&config);
    drps_aio_about(aio, &about);
    drps_aio_close(aio);
    assert_int_equal(unlink(path), 0);
    return strcmp(about.engine, "io_uring") == 0;
}

/* Open, write and read a piece in a child after `restrict_child`; its about.why must hold `why`. */
static void check_restricted(const char *path, int (*restrict_child)(void), const char *engine,
                             int registered, const char *why)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) { /* cmocka's assertions would run the parent's tests on */
        struct drps_aio_config config = config_of(path, 4, 0);
        struct drps_aio_about about;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_aio *aio;
        if (restrict_child() < 0) _exit(SKIPPED);
        if (drps_aio_open(&config, &aio, &err) < 0) _exit(1);
        drps_aio_about(aio, &about);
        (void)fprintf(stderr, "%s: %s, \"%s\"\n", engine, about.engine, about.why);
        if (strstr(about.why, "no io_uring: over the limit")) _exit(SKIPPED); /* by others */
        if (strcmp(about.engine, engine) != 0 || about.registered != registered) _exit(2);
        if (!strstr(about.why, why)) _exit(3);
        fill(buffers, PIECE, 9);
        if (do_one(aio, 1, 0, 3, &err) < 0 || do_one(aio, 0, 1, 3, &err) < 0) _exit(4);
        if (memcmp(buffers, buffers + PIECE, PIECE) != 0) _exit(5);
        drps_aio_close(aio);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SKIPPED) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_uring_forbidden(void **state)
{
    const char *path = scratch_path(*state, "blocks");
    if (!uring_works(path)) skip();
    check_restricted(path, no_uring, "threads", 0, "no io_uring: Operation not permitted");
}

/* The limit is of all processes of a user: root takes a user's number that nobody else has. */
static int forbid_locked_memory(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    struct rlimit little = {256 << 10, 256 << 10}; /* the ring itself has to fit */
    uid_t own = 1000000 + (uid_t)getpid();
    if (geteuid() == 0 && setresuid(own, 0, 0)) return -errno;
    if (setrlimit(RLIMIT_MEMLOCK, &little)) return -errno;
    if (syscall(SYS_capget, &head, data)) return -errno;
    data[0].effective &= ~(1u << CAP_IPC_LOCK); /* who has it is not limited */
    return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static void test_buffers_not_registered(void **state)
{
    const char *path = scratch_path(*state, "blocks");
    if (!uring_works(path)) skip();
    check_restricted(path, forbid_locked_memory, "io_uring", 0, "buffers not registered");
}

static void test_about(void **state)
{
    const char *path = scratch_path(*state, "blocks");
    struct drps_aio_config config = config_of(path, 4, 1);
    struct drps_aio_about about;
    struct drps_aio *aio = open_ok(&config);
    drps_aio_about(aio, &about);
    drps_aio_close(aio);
    assert_int_equal(unlink(path), 0);
    assert_string_equal(about.engine, "threads");
    assert_int_equal(about.registered, 0);
    assert_int_equal(about.direct, !strstr(about.why, "O_DIRECT"));
    if (about.direct) assert_string_equal(about.why, ""); /* threads are what was asked for */
    config.threads_only = 0;
    aio = open_ok(&config);
    drps_aio_about(aio, &about);
    drps_aio_close(aio);
    if (strcmp(about.engine, "io_uring") != 0) {
        assert_non_null(strstr(about.why, "no io_uring: "));
        skip();
    }
    assert_int_equal(unlink(path), 0);
    const atomic_int stop = 0; /* whoever may stop gets the same engine */
    const struct drps_io io = {.ops = drps_io_os()->ops, .ctx = drps_io_os()->ctx, .stop = &stop};
    config.io = &io;
    aio = open_ok(&config);
    drps_aio_about(aio, &about);
    drps_aio_close(aio);
    assert_string_equal(about.engine, "io_uring");
    assert_int_equal(about.direct, !strstr(about.why, "O_DIRECT"));
    assert_int_equal(about.registered, !strstr(about.why, "not registered"));
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(test_random_operations),
        WITH_SCRATCH(test_operations_across_registered_pieces),
        WITH_SCRATCH(test_several_batches_and_polling),
        WITH_SCRATCH(test_seeks_are_counted_by_kind),
        WITH_SCRATCH(test_bad_requests_are_refused),
        WITH_SCRATCH(test_pieces_are_written_as_one),
        WITH_SCRATCH(test_rest_of_pieces),
        WITH_SCRATCH(test_close_with_operations_under_way),
        WITH_SCRATCH(test_discard_leaves_an_empty_file),
        WITH_SCRATCH(test_stats_from_another_thread),
        WITH_SCRATCH(test_one_thread_after_another),
        WITH_SCRATCH(test_open_refuses),
        WITH_SCRATCH(test_existing_file_is_untouched),
        WITH_SCRATCH(test_uses_an_existing_file),
        WITH_SCRATCH(test_grows),
        WITH_SCRATCH(test_full_disk_is_refused_at_open),
        WITH_SCRATCH(test_open_cleans_up),
        WITH_SCRATCH(test_without_o_direct),
        WITH_SCRATCH(test_on_tmpfs),
        WITH_SCRATCH(test_refused_calls_are_not_made_at_once),
        WITH_SCRATCH(test_cut_file_is_noticed),
        WITH_SCRATCH(test_uring_forbidden),
        WITH_SCRATCH(test_buffers_not_registered),
        WITH_SCRATCH(test_about),
    };
    const struct CMUnitTest faults[] = {
        WITH_SCRATCH(test_pieces_cut_short_are_continued),
        WITH_SCRATCH(test_short_transfers_are_continued),
        WITH_SCRATCH(test_interrupted_calls_are_repeated),
        WITH_SCRATCH(test_failures_name_the_place_and_stay),
        WITH_SCRATCH(test_every_fault_surfaces),
        WITH_SCRATCH(test_each_transfer_disturbed),
    };
    buffers = aligned_alloc(DRPS_AIO_ALIGN, BUFFERS_BYTES);
    if (!buffers) return 1;
    memset(buffers, 0, BUFFERS_BYTES);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("faults", faults, NULL, NULL);
    failed += RUN_OVER_URING("faults", faults);
    free(buffers);
    return failed;
}
