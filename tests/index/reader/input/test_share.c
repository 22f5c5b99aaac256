/* Files that several readers share: together they have the samples, and the lines, of one. */
#ifdef DRPS_WITH_ZLIB
#include <zlib.h>
#endif

#include "index/reader/input/drps_share.h"
#include "index/reader/reader_files.h"
#include "support/scratch.h"

enum { LINES = 120, SHARES = 7, PATHS = 3 };

/* Line i of a format, without its end; some are far longer than others. */
typedef void (*write_line)(struct text *t, unsigned i);

static void libsvm(struct text *t, unsigned i)
{
    text_add(t, i % 11 == 5 ? "# a comment" : "%d", i % 2 ? 1 : -1);
    for (unsigned j = 0; i % 11 != 5 && j < (i % 50 == 20 ? 900 : i % 5); j++)
        text_add(t, " %u:%u", i + j, 1 + j % 3);
}

static void libffm(struct text *t, unsigned i)
{
    text_add(t, "%u 0:%u:1 1:%u:0.5", i % 2, i, i * i);
}

static void ratings(struct text *t, unsigned i)
{
    text_add(t, "u%u,i%u,%u", i % 13, i % 17, i % 5 + 1);
}

static void colons(struct text *t, unsigned i)
{
    text_add(t, "u%u::i, %u::%u::100", i % 13, i % 17, i % 5 + 1);
}

static void criteo(struct text *t, unsigned i)
{
    text_add(t, "%u", i % 2);
    for (unsigned j = 0; j < 13; j++)
        text_add(t, "\t%u", i * j % 40);
    for (unsigned j = 0; j < 26; j++)
        text_add(t, "\tc%u", i * j % 7);
}

static void avazu(struct text *t, unsigned i)
{
    text_add(t, "%u,%u,141021%02u,s%u", 1000 + i, i % 2, i % 24, i % 9);
}

static void csv(struct text *t, unsigned i)
{
    text_add(t, "%u,\"s, %u\",%u", i % 2, i % 9, 100 * i);
}

static void numbers(struct text *t, unsigned i)
{
    text_add(t, "%u,%u,%u", i % 2, i % 9, 7 * i);
}

static void jsonl(struct text *t, unsigned i)
{
    text_add(t, "{\"label\": %u, \"site\": \"s%u\", \"n\": %u}", i % 2, i % 9, 100 * i);
}

static void vw(struct text *t, unsigned i)
{
    text_add(t, "%d |a x%u y |b z:%u", i % 2 ? 1 : -1, i % 9, i % 4);
}

static const struct shape {
    const char *name, *format, *header;
    write_line line;
    enum drps_csv_header csv_header;
} shapes[] = {
    {"libsvm", "auto", NULL, libsvm, DRPS_CSV_HEADER_BY_LINE},
    {"libffm", "auto", NULL, libffm, DRPS_CSV_HEADER_BY_LINE},
    {"ratings with a header", "ratings", "user,item,rating", ratings, DRPS_CSV_HEADER_BY_LINE},
    {"ratings", "auto", NULL, ratings, DRPS_CSV_HEADER_BY_LINE},
    {"ratings with colons", "auto", NULL, colons, DRPS_CSV_HEADER_BY_LINE},
    {"criteo", "auto", NULL, criteo, DRPS_CSV_HEADER_BY_LINE},
    {"avazu", "auto", "id,click,hour,site", avazu, DRPS_CSV_HEADER_BY_LINE},
    {"csv", "auto", "label,site,n", csv, DRPS_CSV_HEADER_BY_LINE},
    {"csv without a header", "csv", NULL, numbers, DRPS_CSV_NO_HEADER},
    {"jsonl", "auto", NULL, jsonl, DRPS_CSV_HEADER_BY_LINE},
    {"vw", "auto", NULL, vw, DRPS_CSV_HEADER_BY_LINE},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* How lines end, and whether the last one does. */
static const struct ends {
    const char *name, *feed;
    int last;
} ends[] = {{"LF", "\n", 1}, {"CRLF", "\r\n", 1}, {"no last LF", "\n", 0}};

/* Lines [from, to) as a file, some of them empty. */
static void write_file(struct scratch *s, const char *name, const struct shape *shape,
                       const struct ends *e, unsigned from, unsigned to, char *path)
{
    struct text t = {0};
    if (shape->header) text_add(&t, "%s%s", shape->header, e->feed);
    for (unsigned i = from; i < to; i++) {
        if (i % 17 == 3) text_add(&t, "%s", e->feed);
        shape->line(&t, i);
        if (i + 1 < to || e->last) text_add(&t, "%s", e->feed);
    }
    (void)snprintf(path, SCRATCH_PATH_BYTES, "%s", scratch_file(s, name, t.p ? t.p : "", t.n));
    free(t.p);
}

/* What was read: samples, and where they are. */
struct outcome_of {
    struct text samples, places;
    uint64_t lines;
    enum drps_reader_labels labels;
};

static void read_all(const char *const *paths, size_t n, const struct drps_reader_options *o,
                     struct outcome_of *to)
{
    struct drps_reader *r;
    struct drps_samples s = {0};
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_reader_open(drps_io_os(), paths, n, o, &r, &err);
    if (rc < 0) fail_msg("%s", err.text);
    while ((rc = drps_reader_next(r, &s, &err)) > 0) {
        text_add_samples(&to->samples, r, &s);
        for (size_t i = 0; i < s.n; i++)
            text_add(&to->places, "%zu:%llu\n", s.input, (unsigned long long)s.lines[i]);
    }
    if (rc < 0) fail_msg("%s", err.text);
    to->lines += drps_reader_lines(r);
    to->labels = drps_reader_labels(r);
    drps_samples_free(&s);
    drps_reader_close(r);
}

static void free_outcome(struct outcome_of *o)
{
    free(o->samples.p);
    free(o->places.p);
    memset(o, 0, sizeof(*o));
}

static void assert_same_text(const struct text *a, const struct text *b, const char *what)
{
    if (a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0)) return;
    fail_msg("%s: %zu bytes, %zu expected:\n%.*s\nexpected:\n%.*s", what, b->n, a->n, (int)b->n,
             b->p ? b->p : "", (int)a->n, a->p ? a->p : "");
}

/* All shares in turn; each counts the lines of its own bytes, and the next one adds them up. */
static void read_shares(const char *const *paths, size_t n, uint32_t shares,
                        struct drps_reader_options o, struct outcome_of *to)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_share_place at = {0, 0};
    for (uint32_t k = 0; k < shares; k++) {
        struct drps_reader_share share;
        assert_int_equal(drps_reader_share(drps_io_os(), paths, n, k, shares, &share, &err), 0);
        assert_true(share.begin.path == at.path && share.begin.byte == at.byte);
        at = share.end;
        if (share.begin.byte)
            assert_int_equal(drps_reader_share_lines(drps_io_os(), paths[share.begin.path], 0,
                                                     share.begin.byte, &share.lines, &err),
                             0);
        o.share = &share;
        read_all(paths, n, &o, to);
    }
    assert_true(at.path == n && at.byte == 0);
}

static void test_share_has_the_lines_of_the_whole(void **state)
{
    struct scratch *s = *state;
    for (size_t f = 0; f < SHAPES; f++)
        for (size_t e = 0; e < 3; e++) {
            char path[PATHS][SCRATCH_PATH_BYTES], what[128];
            const char *paths[PATHS] = {path[0], path[1], path[2]};
            const struct drps_reader_options o = {.format = shapes[f].format,
                                                  .csv_header = shapes[f].csv_header};
            struct outcome_of whole = {0};
            write_file(s, "0", &shapes[f], &ends[e], 0, LINES, path[0]);
            (void)snprintf(path[1], sizeof(path[1]), "%s", scratch_file(s, "1", "", 0));
            write_file(s, "2", &shapes[f], &ends[e], LINES, LINES + LINES / 3, path[2]);
            read_all(paths, PATHS, &o, &whole);
            for (uint32_t shares = 1; shares <= SHARES; shares++) {
                struct outcome_of dealt = {0};
                (void)snprintf(what, sizeof(what), "%s, %s, %u shares", shapes[f].name,
                               ends[e].name, shares);
                read_shares(paths, PATHS, shares, o, &dealt);
                assert_same_text(&whole.samples, &dealt.samples, what);
                assert_same_text(&whole.places, &dealt.places, what);
                assert_int_equal(whole.lines, dealt.lines);
                free_outcome(&dealt);
            }
            free_outcome(&whole);
        }
}

/* A line belongs to the share in which its first byte lies. */
static void test_share_begins_with_the_line_that_begins_there(void **state)
{
    struct scratch *s = *state;
    static const struct {
        const char *text;
        uint64_t begin; /* of the second of two shares */
    } cases[] = {{"1 1:1\n1 2:1\n", 6}, {"1 1:1\n1 2:1\n1 3:1\n", 12}, {"1 1:1\n1 2:12", 6}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = scratch_file(s, "0", cases[i].text, SIZE_MAX);
        struct drps_reader_share share;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_reader_share(drps_io_os(), &path, 1, 1, 2, &share, &err), 0);
        assert_int_equal(share.begin.byte, cases[i].begin);
        assert_int_equal(share.bytes, strlen(cases[i].text) - cases[i].begin);
    }
}

/* Lines are longer than a share: most shares are empty. */
static void test_share_may_be_empty(void **state)
{
    struct scratch *s = *state;
    char path[SCRATCH_PATH_BYTES];
    const char *paths[] = {path};
    const struct drps_reader_options o = {.format = "libsvm"};
    for (unsigned lines = 1; lines <= 3; lines++) {
        struct outcome_of whole = {0}, dealt = {0};
        write_file(s, "0", &shapes[0], &ends[0], 20, 20 + lines, path);
        read_all(paths, 1, &o, &whole);
        read_shares(paths, 1, SHARES, o, &dealt);
        assert_same_text(&whole.samples, &dealt.samples, "few lines");
        free_outcome(&whole);
        free_outcome(&dealt);
    }
}

/* What the first label is settles it for all shares: here it is a name. */
static void test_share_reads_labels_as_the_whole_does(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_file(s, "0", "a 1:1\n1 2:1\n2 1:1\n1 2:1\n2 1:1\n", SIZE_MAX);
    struct drps_err err = DRPS_ERR_INIT;
    for (uint32_t k = 0; k < 3; k++) {
        struct drps_reader_share share;
        struct outcome_of out = {0};
        struct drps_reader_options o = {.format = "libsvm",
                                        .classes = drps_classes_new(),
                                        .labels = DRPS_READER_AS_FIRST,
                                        .share = &share};
        assert_int_equal(drps_reader_share(drps_io_os(), &path, 1, k, 3, &share, &err), 0);
        read_all(&path, 1, &o, &out);
        assert_int_equal(out.labels, DRPS_READER_NAMES);
        drps_classes_free((struct drps_classes *)o.classes);
        free_outcome(&out);
    }
}

#ifdef DRPS_WITH_ZLIB
static void gzip_file(const char *path, const char *text)
{
    gzFile f = gzopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(gzputs(f, text), strlen(text));
    assert_int_equal(gzclose(f), Z_OK);
}

/* A compressed file is one reader's as a whole. */
static void test_share_of_compressed_files_is_whole(void **state)
{
    struct scratch *s = *state;
    char path[PATHS][SCRATCH_PATH_BYTES];
    const char *paths[PATHS] = {path[0], path[1], path[2]};
    const struct drps_reader_options o = {.format = "libsvm"};
    struct outcome_of whole = {0};
    write_file(s, "0", &shapes[0], &ends[0], 0, 10, path[0]);
    (void)snprintf(path[1], sizeof(path[1]), "%s", scratch_path(s, "1.gz"));
    gzip_file(path[1], "1 1:1\n-1 2:1\n1 3:1\n-1 4:1\n1 5:1 6:1 7:3\n");
    write_file(s, "2", &shapes[0], &ends[0], 10, 20, path[2]);
    read_all(paths, PATHS, &o, &whole);
    for (uint32_t shares = 1; shares <= SHARES; shares++) {
        struct outcome_of dealt = {0};
        read_shares(paths, PATHS, shares, o, &dealt);
        assert_same_text(&whole.samples, &dealt.samples, "compressed");
        assert_same_text(&whole.places, &dealt.places, "compressed");
        free_outcome(&dealt);
    }
    free_outcome(&whole);
}

#endif

static void assert_refused(const char *path, const struct drps_reader_options *options,
                           const char *text)
{
    struct drps_reader_options o = *options;
    struct drps_reader_share share;
    struct drps_reader *r;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_reader_share(drps_io_os(), &path, 1, 1, 2, &share, &err), 0);
    o.share = &share;
    assert_int_equal(drps_reader_open(drps_io_os(), &path, 1, &o, &r, &err), DRPS_E_CONFIG);
    if (!strstr(err.text, text)) fail_msg("'%s' expected in '%s'", text, err.text);
}

static void test_share_refuses_what_has_to_be_read_from_its_beginning(void **state)
{
    struct scratch *s = *state;
    const char *weights = scratch_file(s, "w", "1\n1\n1\n1\n", SIZE_MAX);
    const char *pipe = "-";
    struct drps_reader_share share;
    struct drps_err err = DRPS_ERR_INIT;
    assert_refused(scratch_file(s, "d", "3\n3\n3\n1 1 1\n2 1 1\n3 2 1\n", SIZE_MAX),
                   &(struct drps_reader_options){.format = "docword"}, "cannot be read in shares");
    assert_refused(scratch_file(s, "l", "1 1:1\n1 2:1\n1 3:1\n1 4:1\n", SIZE_MAX),
                   &(struct drps_reader_options){.weights = &weights, .weights_n = 1},
                   "cannot be read in shares");
    assert_int_equal(drps_reader_share(drps_io_os(), &pipe, 1, 0, 2, &share, &err), DRPS_E_CONFIG);
}

static void test_share_lines_are_line_feeds(void **state)
{
    struct scratch *s = *state;
    const char *path = scratch_file(s, "0", "a\nbb\r\n\nlast", SIZE_MAX);
    static const struct {
        uint64_t from, to, lines;
    } cases[] = {{0, UINT64_MAX, 3}, {0, 1, 0}, {0, 2, 1},  {2, 7, 2},
                 {7, 11, 0},         {3, 3, 0}, {50, 60, 0}};
    struct drps_err err = DRPS_ERR_INIT;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t lines;
        assert_int_equal(
            drps_reader_share_lines(drps_io_os(), path, cases[i].from, cases[i].to, &lines, &err),
            0);
        if (lines != cases[i].lines) fail_msg("case %zu: %llu lines", i, (unsigned long long)lines);
    }
    assert_int_equal(
        drps_reader_share_lines(drps_io_os(), "/no/such/file", 0, 1, &(uint64_t){0}, &err),
        -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_share_has_the_lines_of_the_whole, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_share_begins_with_the_line_that_begins_there,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_share_may_be_empty, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_share_reads_labels_as_the_whole_does, scratch_setup,
                                        scratch_teardown),
#ifdef DRPS_WITH_ZLIB
        cmocka_unit_test_setup_teardown(test_share_of_compressed_files_is_whole, scratch_setup,
                                        scratch_teardown),
#endif
        cmocka_unit_test_setup_teardown(test_share_refuses_what_has_to_be_read_from_its_beginning,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_share_lines_are_line_feeds, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
