/*
 * The readers' input: files, compression, pieces, memory, faults, and random text against a slow
 * parser.
 */
#include <time.h>
#include <unistd.h>

#ifdef DRPS_WITH_ZLIB
#include <zlib.h>
#endif
#ifdef DRPS_WITH_ZSTD
#include <zstd.h>
#endif
#ifdef DRPS_WITH_LZMA
#include <lzma.h>
#endif

#include "base/drps_rng.h"
#include "index/reader/input/drps_input.h"
#include "index/reader/reader_files.h"

static const uint64_t seed = 31415;

/* ---- Compression ---- */

struct bytes {
    uint8_t p[4096];
    size_t n;
};

#ifdef DRPS_WITH_ZLIB
static void gzip_add(struct bytes *b, const char *text)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)(uintptr_t)text;
    z.avail_in = (unsigned)strlen(text);
    z.next_out = b->p + b->n;
    z.avail_out = (unsigned)(sizeof(b->p) - b->n);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    b->n = sizeof(b->p) - z.avail_out;
    assert_int_equal(deflateEnd(&z), Z_OK);
}
#endif

#ifdef DRPS_WITH_ZSTD
static void zstd_add(struct bytes *b, const char *text)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    assert_non_null(c);
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1)));
    size_t n = ZSTD_compress2(c, b->p + b->n, sizeof(b->p) - b->n, text, strlen(text));
    assert_false(ZSTD_isError(n));
    b->n += n;
    (void)ZSTD_freeCCtx(c); /* cannot fail */
}
#endif

#ifdef DRPS_WITH_LZMA
static void xz_add(struct bytes *b, const char *text)
{
    assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, (const uint8_t *)text,
                                             strlen(text), b->p, &b->n, sizeof(b->p)),
                     LZMA_OK);
}
#endif

enum { MAGIC_BYTES = 6 }; /* with fewer, the file is not taken for a compressed one */

struct codec {
    const char *name;
    void (*add)(struct bytes *b, const char *text);
};

static const struct codec codecs[] = {
#ifdef DRPS_WITH_ZLIB
    {"gzip", gzip_add},
#endif
#ifdef DRPS_WITH_ZSTD
    {"zstd", zstd_add},
#endif
#ifdef DRPS_WITH_LZMA
    {"xz", xz_add},
#endif
    {NULL, NULL},
};

static void read_bytes(const void *p, size_t n, size_t step, struct outcome *o)
{
    struct files fs = {.step = step};
    struct drps_reader_options options = {.format = "libsvm", .memory_bytes = 1 << 20};
    files_add(&fs, p, n);
    read_files(&fs, &options, 0, o);
}

static void test_reader_decompresses(void **state)
{
    (void)state;
    for (const struct codec *c = codecs; c->name; c++) {
        for (size_t step = 0; step < 3; step++) {
            struct bytes b = {.n = 0};
            struct outcome o;
            c->add(&b, "1 1:1\n2 ");
            c->add(&b, "");
            c->add(&b, "2:2\n");
            read_bytes(b.p, b.n, step, &o);
            check_outcome(c->name, "three members", &o, "1 1:1\n2 2:2\n", NULL);
            assert_int_equal(o.bytes, 12);
            outcome_free(&o);
        }
    }
}

static void test_reader_refuses_cut_compression(void **state)
{
    (void)state;
    for (const struct codec *c = codecs; c->name; c++) {
        struct bytes b = {.n = 0};
        c->add(&b, "1 1:1\n2 1:5 2:4 3:2 4:5\n");
        for (size_t n = MAGIC_BYTES; n < b.n; n++) {
            struct outcome o;
            read_bytes(b.p, n, 0, &o);
            if (o.rc != DRPS_E_CORRUPT || strncmp(o.err.text, "0: ", 3) != 0)
                fail_msg("%s cut to %zu of %zu bytes\nexpected: an error naming the file\nfound:   "
                         " %d %s",
                         c->name, n, b.n, o.rc, o.err.text);
            outcome_free(&o);
        }
    }
}

/*
 * A changed byte is found by the format's checksum, except in header bytes that mean nothing here.
 */
static void test_reader_survives_damaged_compression(void **state)
{
    (void)state;
    for (const struct codec *c = codecs; c->name; c++) {
        struct bytes b = {.n = 0};
        size_t found = 0;
        c->add(&b, "1 1:1\n2 1:5 2:4 3:2 4:5\n");
        for (size_t i = MAGIC_BYTES; i < b.n; i++) {
            struct outcome o;
            b.p[i] ^= 0x55;
            read_bytes(b.p, b.n, 0, &o);
            b.p[i] ^= 0x55;
            found += o.rc < 0;
            if (o.rc == 0)
                check_outcome(c->name, "damaged", &o, "1 1:1\n2 1:5 2:4 3:2 4:5\n", NULL);
            outcome_free(&o);
        }
        if (2 * found < b.n) fail_msg("%s: only %zu of %zu damages found", c->name, found, b.n);
    }
}

static void test_reader_refuses_bytes_behind_compression(void **state)
{
    (void)state;
    for (const struct codec *c = codecs; c->name; c++) {
        struct bytes b = {.n = 0};
        struct outcome o;
        c->add(&b, "1 1:1\n");
        memcpy(b.p + b.n, "more text", 9);
        read_bytes(b.p, b.n + 9, 0, &o);
        if (o.rc != DRPS_E_CORRUPT)
            fail_msg("%s: garbage accepted: %d %s", c->name, o.rc, o.err.text);
        outcome_free(&o);
    }
}

#ifdef DRPS_WITH_ZLIB
static void test_reader_gzip_padding(void **state)
{
    struct bytes b = {.n = 0};
    struct outcome o;
    (void)state;
    gzip_add(&b, "1 1:1\n");
    memset(b.p + b.n, 0, 512);
    read_bytes(b.p, b.n + 512, 0, &o);
    check_outcome("zero bytes behind gzip", "", &o, "1 1:1\n", NULL);
    outcome_free(&o);
    b.n += 512;
    gzip_add(&b, "1 1:1\n");
    read_bytes(b.p, b.n, 0, &o);
    check_outcome("a member behind the zero bytes", "", &o, NULL,
                  "0: before byte 538: other bytes follow the gzip data");
    outcome_free(&o);
}
#endif

static void test_reader_names_unsupported_compression(void **state)
{
    static const struct {
        const char *magic, *error;
    } rows[] = {
        {"BZh91AY&SY", "0: bzip2 input is not supported: pipe it (bzip2 -dc FILE | ... -)"},
        {"\x04\x22\x4d\x18zzzz", "0: lz4 input is not supported: pipe it (lz4 -dc FILE | ... -)"},
        {"PK\x03\x04zzzz", "0: zip archives are not supported: unpack it first"},
#ifndef DRPS_WITH_ZLIB
        {"\x1f\x8bzzzz", "0: this build cannot read gzip (built without zlib, DRPS_WITH_ZLIB)"},
#endif
#ifndef DRPS_WITH_ZSTD
        {"\x28\xb5\x2f\xfdzzzz",
         "0: this build cannot read zstd (built without libzstd, DRPS_WITH_ZSTD)"},
#endif
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome o;
        read_text(rows[i].magic, NULL, &o);
        check_outcome("magic bytes", rows[i].magic, &o, NULL, rows[i].error);
        assert_int_equal(o.rc, DRPS_E_CONFIG);
        outcome_free(&o);
    }
}

/* ---- Files ---- */

static void test_reader_several_files(void **state)
{
    static const struct {
        const char *name, *format, *files[FILES_MAX], *expected, *error;
    } rows[] = {
        {.name = "no line spans files",
         .format = "libsvm",
         .files = {"1 1:1", "", "2 2:2"},
         .expected = "1 1:1\n2 2:2\n"},
        {.name = "lines are counted in each file",
         .format = "libsvm",
         .files = {"1 1:1\n", "\nx\n"},
         .error = "1:2:1: label is not a number: 'x'"},
        {.name = "empty files first",
         .files = {"", "", "1\t2\t3\n"},
         .expected = "3 user=1:1 item=2:1\n"},
        {.name = "all empty", .files = {"", ""}, .expected = ""},
        {.name = "each its separator and header",
         .format = "ratings",
         .files = {"u,i,r\n1,2,3\n", "u\ti\tr\n4\t5\t6\n"},
         .expected = "3 user=1:1 item=2:1\n6 user=4:1 item=5:1\n"},
        {.name = "same header",
         .format = "csv",
         .files = {"y,a\n1,x\n", "", "y,a\r\n2,y\n"},
         .expected = "1 a=x:1\n2 a=y:1\n"},
        {.name = "other header",
         .format = "csv",
         .files = {"y,a\n1,x\n", "y,b\n2,y\n"},
         .error = "1:1:1: the header differs from that of the first file: 'y,b'"},
        {.name = "docword",
         .format = "docword",
         .files = {"2\n9\n1\n2 3 1\n", "2\n9\n1\n1 3 1"},
         .expected = "0 3:1\n0 3:1\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_reader_options options = {.format = rows[i].format};
        struct files fs = {0};
        struct outcome o;
        for (size_t k = 0; k < FILES_MAX && rows[i].files[k]; k++)
            files_add(&fs, rows[i].files[k], strlen(rows[i].files[k]));
        read_files(&fs, &options, 0, &o);
        check_outcome(rows[i].name, rows[i].files[0], &o, rows[i].expected, rows[i].error);
        outcome_free(&o);
    }
}

static void test_reader_one_file_twice(void **state)
{
    static const char *const paths[] = {"0", "0"};
    struct files fs = {0};
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct outcome o;
    (void)state;
    files_add(&fs, "1 1:1\n", 6);
    read_paths(&io, paths, 2, NULL, 0, &o);
    check_outcome("twice", "1 1:1", &o, "1 1:1\n1 1:1\n", NULL);
    outcome_free(&o);
}

static void test_reader_checks_all_paths_first(void **state)
{
    static const char *const missing[] = {"0", "7"}, *const stdins[] = {"-", "-"};
    struct files fs = {0};
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct outcome o;
    (void)state;
    files_add(&fs, "1 1:1\n", 6);
    read_paths(&io, missing, 2, NULL, 0, &o);
    assert_int_equal(o.rc, -ENOENT);
    assert_non_null(strchr(o.err.text, '7'));
    assert_int_equal(fs.reads, 0);
    outcome_free(&o);
    read_paths(&io, stdins, 2, NULL, 0, &o);
    assert_int_equal(o.rc, DRPS_E_CONFIG);
    outcome_free(&o);
    read_paths(&io, stdins, 0, NULL, 0, &o);
    assert_int_equal(o.rc, DRPS_E_CONFIG);
    outcome_free(&o);
}

static void test_reader_refuses_a_folder(void **state)
{
    static const char *const paths[] = {"/"};
    struct outcome o;
    (void)state;
    read_paths(drps_io_os(), paths, 1, NULL, 0, &o);
    assert_int_equal(o.rc, -EISDIR);
    assert_string_equal(o.err.text, "/ is a folder: name the files in it");
    outcome_free(&o);
}

/* What is read from a pipe, is a folder, or is not there has no size that is known. */
static void test_reader_sizes_of_files(void **state)
{
    static const char *const others[] = {"-", "/", "/dev/null", "/nowhere/at/all"};
    char name[] = "/tmp/drps-sizes-XXXXXX";
    const char *paths[3] = {name, NULL, name};
    uint64_t bytes = 1;
    (void)state;
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "1 1:1\n", 6), 6);
    assert_int_equal(close(fd), 0);
    assert_int_equal(drps_input_sizes(paths, 0, &bytes), 1);
    assert_int_equal(bytes, 0);
    paths[1] = name;
    assert_int_equal(drps_input_sizes(paths, 3, &bytes), 1);
    assert_int_equal(bytes, 18);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        paths[1] = others[i];
        assert_int_equal(drps_input_sizes(paths, 3, &bytes), 0);
        assert_int_equal(bytes, 12);
    }
    assert_int_equal(unlink(name), 0);
}

static void test_reader_stdin(void **state)
{
    static const char *const paths[] = {"-"};
    static const char input[] = "1 1:1\nx\n";
    int ends[2], kept = dup(STDIN_FILENO);
    struct outcome o;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], input, sizeof(input) - 1), sizeof(input) - 1);
    close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    read_paths(drps_io_os(), paths, 1, &(struct drps_reader_options){.format = "libsvm"}, 0, &o);
    if (kept >= 0) assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
    check_outcome("stdin", input, &o, NULL, "stdin:2:1: label is not a number: 'x'");
    outcome_free(&o);
}

static void test_reader_too_little_memory(void **state)
{
    struct drps_reader_options options = {.memory_bytes = 1000};
    struct outcome o;
    (void)state;
    read_text("1 1:1\n", &options, &o);
    check_outcome("memory", "", &o, NULL,
                  "the reader's memory is 1000 bytes, it needs at least 1 MiB");
    outcome_free(&o);
}

/* ---- Pieces and memory ---- */

/*
 * A mebibyte of memory, and inputs that want more of one array or another: the pieces get smaller.
 */
static void test_reader_stays_within_memory(void **state)
{
    static const struct {
        const char *name, *format, *line;
        size_t times;
        uint64_t samples, features;
    } rows[] = {
        {.name = "blank lines",
         .format = "libsvm",
         .line = "\n",
         .times = 3000000,
         .samples = 0,
         .features = 0},
        {.name = "labels",
         .format = "libsvm",
         .line = "1\n",
         .times = 1000000,
         .samples = 1000000,
         .features = 0},
        {.name = "one feature",
         .format = "libsvm",
         .line = "1 1:1\n",
         .times = 500000,
         .samples = 500000,
         .features = 500000},
        {.name = "short names",
         .format = "ratings",
         .line = "1 2 3\n",
         .times = 500000,
         .samples = 500000,
         .features = 1000000},
        {.name = "empty columns",
         .format = "criteo",
         .line =
             "0\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\n",
         .times = 50000,
         .samples = 50000,
         .features = 50000 * 39},
    };
    enum { MEMORY = 1 << 20 };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_reader_options options = {.format = rows[i].format, .memory_bytes = MEMORY};
        struct files fs = {0};
        struct outcome o;
        size_t n = strlen(rows[i].line), all = n * rows[i].times;
        char *text = malloc(all);
        assert_non_null(text);
        for (size_t k = 0; k < rows[i].times; k++)
            memcpy(text + k * n, rows[i].line, n);
        files_add(&fs, text, all);
        read_files(&fs, &options, 1, &o);
        check_outcome(rows[i].name, rows[i].line, &o, "", NULL);
        if (o.samples != rows[i].samples || o.features != rows[i].features ||
            o.lines != rows[i].times || o.bytes != all || o.largest_bytes > MEMORY)
            fail_msg("%s\nexpected: %llu samples, %llu features, at most %d bytes\nfound:    %llu, "
                     "%llu, %llu bytes",
                     rows[i].name, (unsigned long long)rows[i].samples,
                     (unsigned long long)rows[i].features, MEMORY, (unsigned long long)o.samples,
                     (unsigned long long)o.features, (unsigned long long)o.largest_bytes);
        outcome_free(&o);
        free(text);
    }
}

/* One line of so many bytes: "1 1000000:1 1000001:1 ...", between two short ones. */
static char *long_line(size_t bytes, size_t *n_out, uint64_t *features_out)
{
    char *text = malloc(bytes + 64);
    size_t n = 6;
    uint64_t id = 1000000;

    assert_non_null(text);
    memcpy(text, "1 1:1\n1", 7);
    for (n = 7; n < bytes; n += 10, id++) {
        text[n] = ' ';
        for (uint64_t k = 7, v = id; k > 0; k--, v /= 10)
            text[n + k] = (char)('0' + v % 10);
        memcpy(text + n + 8, ":1", 2);
    }
    memcpy(text + n, "\n1 2:1\n", 7);
    *n_out = n + 7;
    *features_out = id - 1000000 + 2;
    return text;
}

static void test_reader_line_of_100_mb(void **state)
{
    struct drps_reader_options options = {.format = NULL, .memory_bytes = 512u << 20};
    struct files fs = {0};
    struct outcome o;
    uint64_t features;
    size_t n;
    char *text = long_line(80000000, &n, &features); /* with more, the ids would need 8 digits */

    (void)state;
    files_add(&fs, text, n);
    const clock_t start = clock(); /* of the processor: the machine may be busy */
    read_files(&fs, &options, 1, &o);
    check_outcome("long line", "", &o, "", NULL);
    assert_int_equal(o.samples, 3);
    assert_int_equal(o.features, features);
    assert_true(o.largest_bytes <= options.memory_bytes);
    /* 0.2 s, and far more under a sanitizer; not the square of its length */
    assert_true(clock() - start < 60 * CLOCKS_PER_SEC);
    outcome_free(&o);

    options.memory_bytes = 64 << 20;
    options.format = "libsvm";
    read_files(&fs, &options, 1, &o);
    check_outcome("longer than memory", "", &o, NULL,
                  "0:2: the line is longer than 33554432 bytes, half of the reader's memory (64 "
                  "MiB): is this a "
                  "text file? If so, give more memory");
    assert_int_equal(o.rc, DRPS_E_MEMORY_BUDGET);
    outcome_free(&o);
    free(text);
}

/* 100 MB of one unsorted line: order costs time, but a bounded one. A build with sanitizers has 10
 * MB. */
static void test_reader_long_unsorted_line(void **state)
{
    enum { BYTES = 100000000 / DRPS_TEST_ONE_IN, NUMBERS = 10000000 / DRPS_TEST_ONE_IN };
    struct drps_reader_options options = {.format = "libsvm", .memory_bytes = 512u << 20};
    struct files fs = {0};
    struct outcome o;
    char *text = malloc(BYTES + 64);
    size_t n = 1;

    (void)state;
    assert_non_null(text);
    text[0] = '1';
    for (uint64_t i = 0; n < BYTES; i++)
        n += (size_t)snprintf(text + n, 32, " %llu:1",
                              (unsigned long long)(drps_rng_at(seed, i) % NUMBERS));
    files_add(&fs, text, n);
    const clock_t start = clock(); /* of the processor: the machine may be busy */
    read_files(&fs, &options, 1, &o);
    check_outcome("unsorted line", "", &o, "", NULL);
    assert_int_equal(o.samples, 1);
    assert_true(o.features > NUMBERS / 10 * 6 && o.features < NUMBERS);
    assert_false(o.all_ones);
    assert_true(clock() - start < 100 * CLOCKS_PER_SEC); /* not the square of its length */
    outcome_free(&o);
    free(text);
}

static void test_reader_features_beyond_memory(void **state)
{
    struct drps_reader_options options = {.format = "libsvm", .memory_bytes = 1 << 20};
    struct files fs = {0};
    struct outcome o;
    struct text t = {0};

    (void)state;
    text_add(&t, "1");
    for (int i = 0; i < 90000; i++)
        text_add(&t, " 1:1");
    files_add(&fs, t.p, t.n);
    read_files(&fs, &options, 1, &o);
    assert_int_equal(o.rc, DRPS_E_MEMORY_BUDGET);
    assert_non_null(strstr(o.err.text, "0:1: a line of 360002 bytes needs 2 MiB for its features"));
    outcome_free(&o);
    free(t.p);
}

/* A document that spans many pieces, between two that do not. */
static void test_reader_long_document(void **state)
{
    enum { WORDS = 20000 };
    struct drps_reader_options options = {.format = NULL, .memory_bytes = 1 << 20};
    struct files fs = {0};
    struct outcome o;
    struct text t = {0}, expected = {0};

    (void)state;
    text_add(&t, "9\n%d\n%d\n1 1 1\n", WORDS, WORDS + 2);
    text_add(&expected, "0 1:1\n0");
    for (int i = 1; i <= WORDS; i++) {
        text_add(&t, "2 %d %d\n", i, i % 7 + 1);
        text_add(&expected, " %d:%d", i, i % 7 + 1);
    }
    text_add(&t, "9 5 1\n");
    text_add(&expected, "\n0 5:1\n");
    files_add(&fs, t.p, t.n);
    read_files(&fs, &options, 0, &o);
    assert_int_equal(o.rc, 0);
    assert_string_equal(o.text.p, expected.p);
    assert_true(t.n > 4 * 32768); /* the size of a piece */
    outcome_free(&o);
    free(t.p);
    free(expected.p);
}

/* ---- Faults ---- */

/* Every read fails once: an error comes back, nothing leaks, and the reader stays failed. */
static void test_reader_read_faults(void **state)
{
    struct text t = {0};
    (void)state;
    for (int i = 0; i < 20000; i++)
        text_add(&t, "1 %d:1\n", i);
    for (int at = 1;; at++) {
        struct drps_reader_options options = {.format = "libsvm", .memory_bytes = 1 << 20};
        struct files fs = {.step = 30000, .fail_at = at, .fail_code = -EIO};
        struct outcome o;
        files_add(&fs, t.p, t.n);
        read_files(&fs, &options, 1, &o);
        outcome_free(&o);
        if (fs.reads < at) {
            assert_int_equal(o.rc, 0);
            assert_true(at > 5);
            break;
        }
        assert_int_equal(o.rc, -EIO);
        assert_memory_equal(o.err.text, "0: read at byte ", 16);
    }
    free(t.p);
}

static void test_reader_repeats_interrupted_reads(void **state)
{
    (void)state;
    for (int at = 1; at < 4; at++) {
        struct files fs = {.step = 3, .fail_at = at, .fail_code = -EINTR};
        struct outcome o;
        files_add(&fs, "1 1:1\n", 6);
        read_files(&fs, NULL, 0, &o);
        check_outcome("interrupted", "1 1:1", &o, "1 1:1\n", NULL);
        outcome_free(&o);
    }
}

static void test_reader_stays_failed(void **state)
{
    static const char *const path = "0";
    struct files fs = {0};
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_samples s = {0};
    struct drps_reader *r;
    struct drps_err err = DRPS_ERR_INIT;

    (void)state;
    files_add(&fs, "1 1:1\n1 x\n1 1:1\n", 16);
    assert_int_equal(drps_reader_open(&io, &path, 1, NULL, &r, &err), 0);
    assert_int_equal(drps_reader_next(r, &s, &err), DRPS_E_FORMAT);
    assert_int_equal(s.n, 0);
    assert_int_equal(drps_reader_next(r, &s, NULL), DRPS_E_FORMAT);
    drps_reader_close(r);
    drps_samples_free(&s);
    drps_samples_free(NULL);
    drps_reader_close(NULL);
}

/* One piece may be filled by readers of different kinds in turn. */
static void test_reader_pieces_change_readers(void **state)
{
    static const char *const paths[] = {"0", "1"};
    struct files fs = {0};
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_samples s = {0};
    struct drps_err err = DRPS_ERR_INIT;

    (void)state;
    files_add(&fs, "1 1:1\n", 6);
    files_add(&fs, "1\t2\t3\n", 6);
    for (int i = 0; i < 4; i++) {
        struct drps_reader *r;
        size_t n_fields;
        assert_int_equal(drps_reader_open(&io, &paths[i % 2], 1, NULL, &r, &err), 0);
        assert_int_equal(drps_reader_next(r, &s, &err), 1);
        assert_int_equal(s.n, 1);
        assert_int_equal(s.names != NULL, i % 2);
        assert_int_equal(drps_reader_has_names(r), i % 2);
        (void)drps_reader_fields(r, &n_fields);
        assert_int_equal(n_fields, i % 2 * 2);
        assert_int_equal(drps_reader_next(r, &s, &err), 0);
        drps_reader_close(r);
    }
    drps_samples_free(&s);
}

/* ---- Random text ---- */

struct feature {
    uint64_t key;
    double value;
    int seen;
};

/*
 * The slow parser: one line, with the C library. Returns the features' number, or -1 when they
 * differ.
 */
static int check_sample(const char *line, const struct drps_samples *s, size_t i)
{
    struct feature f[64];
    int n = 0;
    char *p;
    float label = strtof(line, &p);

    if (memcmp(&label, &s->labels[i], sizeof(label)) != 0) return -1;
    for (;;) {
        p += strspn(p, " \t");
        if (*p == '\n' || *p == '\0') break;
        uint64_t key = strtoull(p, &p, 10);
        if (*p != ':') return -1;
        float value = strtof(p + 1, &p);
        int k = 0;
        while (k < n && f[k].key != key)
            k++;
        if (k == n) f[n++] = (struct feature){key, 0, 0};
        f[k].value += (double)value;
    }
    size_t found = 0;
    for (int k = 0; k < n; k++) {
        if ((float)f[k].value == 0) continue;
        found++;
        for (size_t j = s->starts[i]; j < s->starts[i + 1]; j++)
            f[k].seen += s->keys[j] == f[k].key && s->values[j] == (float)f[k].value;
        if (f[k].seen != 1) return -1;
    }
    return found == s->starts[i + 1] - s->starts[i] ? n : -1;
}

static void random_line(struct text *t, uint64_t i)
{
    uint64_t r = drps_rng_at(seed, i);
    text_add(t, "%.*g", (int)(r & 7) + 1, drps_unit_double(drps_rng_at(seed + 1, i)) * 8 - 4);
    uint64_t n = r >> 8 & 31, wide = r >> 16 & 63;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t a = drps_rng_at(seed + 2, 32 * i + k), b = drps_rng_at(seed + 3, 32 * i + k);
        text_add(t, "%s%llu:",
                 b & 1   ? " "
                 : b & 2 ? " \t "
                         : "  ",
                 (unsigned long long)(a >> wide));
        if (b & 4)
            text_add(t, "%d", (int)(b >> 8 & 15));
        else
            text_add(t, "%.*g", (int)(b >> 8 & 15), drps_unit_double(b) * 200 - 100);
    }
    text_add(t, "\n");
}

static void test_reader_random_lines(void **state)
{
    static const char *const path = "0";
    struct text t = {0};
    struct files fs = {.step = 7001};
    struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_reader_options options = {.format = "libsvm", .memory_bytes = 1 << 20};
    struct drps_samples s = {0};
    struct drps_reader *r;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t samples = 0;
    int rc;

    (void)state;
    for (uint64_t i = 0; i < 20000; i++)
        random_line(&t, i);
    files_add(&fs, t.p, t.n);
    assert_int_equal(drps_reader_open(&io, &path, 1, &options, &r, &err), 0);
    const char *line = t.p;
    while ((rc = drps_reader_next(r, &s, &err)) > 0) {
        for (size_t i = 0; i < s.n; i++, samples++) {
            if (check_sample(line, &s, i) < 0)
                fail_msg("sample %llu (seed %llu) differs\ninput: %.*s",
                         (unsigned long long)samples, (unsigned long long)seed,
                         (int)strcspn(line, "\n"), line);
            line += strcspn(line, "\n") + 1;
        }
    }
    assert_int_equal(rc, 0);
    assert_int_equal(samples, 20000);
    drps_reader_close(r);
    drps_samples_free(&s);
    free(t.p);
}

/* ---- Real data, when it is there ---- */

static void test_reader_real_data(void **state)
{
    static const struct {
        const char *file, *format;
        uint64_t samples, features; /* as the data's own description has them */
    } rows[] = {
        {"a9a/a9a.xz", "libsvm", 32561, 451592},
        {"a9a/a9a.t.xz", "libsvm", 16281, 225731},
        {"20news/20news.train.libsvm.xz", "libsvm", 11314, 1499981},
        {"imdb/imdb.train.libsvm.xz", "libsvm", 25000, 3369872},
        {"imdb/docword.imdb-unsup.txt.xz", "docword", 50000, 6762215},
        {"frappe/frappe.test.libfm.xz", "libsvm", 28860, 288600},
        {"ipinyou/train.fm.txt.xz", "libsvm", 26773, 428368},
        {"abalone/abalone.libsvm.xz", "libsvm", 4177, 32080}, /* zeros are not in the file */
        {"criteo-sample/train.csv.xz", "criteo", 7200, 280800},
        {"ml-1m/ratings.tsv.xz", "ratings", 1000209, 2000418},
        {"ml-100k/u.data.xz", "ratings", 100000, 200000},
    };
    (void)state;
#ifndef DRPS_WITH_LZMA
    print_message("skipped: built without liblzma\n");
    return;
#endif
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[600];
        const char *p = path;
        struct outcome o;
        (void)snprintf(path, sizeof(path), DRPS_TEST_SOURCE "/../shared/data/%s", rows[i].file);
        if (access(path, R_OK) != 0) {
            print_message("skipped: no %s\n", path);
            continue;
        }
        read_paths(drps_io_os(), &p, 1, NULL, 1, &o);
        check_outcome(rows[i].file, "", &o, "", NULL);
        assert_string_equal(o.format, rows[i].format);
        if (o.samples != rows[i].samples || o.features != rows[i].features)
            fail_msg("%s\nexpected: %llu samples, %llu features\nfound:    %llu, %llu",
                     rows[i].file, (unsigned long long)rows[i].samples,
                     (unsigned long long)rows[i].features, (unsigned long long)o.samples,
                     (unsigned long long)o.features);
        outcome_free(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader_decompresses),
        cmocka_unit_test(test_reader_refuses_cut_compression),
        cmocka_unit_test(test_reader_survives_damaged_compression),
        cmocka_unit_test(test_reader_refuses_bytes_behind_compression),
#ifdef DRPS_WITH_ZLIB
        cmocka_unit_test(test_reader_gzip_padding),
#endif
        cmocka_unit_test(test_reader_names_unsupported_compression),
        cmocka_unit_test(test_reader_several_files),
        cmocka_unit_test(test_reader_one_file_twice),
        cmocka_unit_test(test_reader_checks_all_paths_first),
        cmocka_unit_test(test_reader_refuses_a_folder),
        cmocka_unit_test(test_reader_sizes_of_files),
        cmocka_unit_test(test_reader_stdin),
        cmocka_unit_test(test_reader_too_little_memory),
        cmocka_unit_test(test_reader_stays_within_memory),
        cmocka_unit_test(test_reader_line_of_100_mb),
        cmocka_unit_test(test_reader_long_unsorted_line),
        cmocka_unit_test(test_reader_features_beyond_memory),
        cmocka_unit_test(test_reader_long_document),
        cmocka_unit_test(test_reader_read_faults),
        cmocka_unit_test(test_reader_repeats_interrupted_reads),
        cmocka_unit_test(test_reader_stays_failed),
        cmocka_unit_test(test_reader_pieces_change_readers),
        cmocka_unit_test(test_reader_random_lines),
        cmocka_unit_test(test_reader_real_data),
    };
    return cmocka_run_group_tests_name("reader_files", tests, NULL, NULL);
}
