/* Lines that are looked at before the input is read: all, or one of each share. */
#include "index/reader/input/drps_lines.h"
#include "index/reader/reader_files.h"

enum { LINES = 3000, MOST = 2 * LINES };

struct taken {
    unsigned text[MOST];
    uint64_t number[MOST];
    size_t n;
};

static int take(void *ctx, char *p, char *end, uint64_t line, struct drps_err *err)
{
    struct taken *t = ctx;
    (void)err;
    assert_true(t->n < MOST);
    assert_true(*end == '\n' || *end == '\r');
    t->number[t->n] = line;
    t->text[t->n++] = (unsigned)strtoul(p, NULL, 10);
    *p = 'x'; /* it may be written into */
    return 0;
}

/* Two files, the first of them after an empty one: a header, blank lines, and lines of numbers from
 * 0 on. Takes the lines, and checks that reading begins anew. */
static void take_all(int headers, uint64_t share, struct taken *t)
{
    static const char *const paths[] = {"0", "1", "2"};
    struct files fs = {.step = 1000};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct text texts[2] = {{0}};
    struct drps_chunks c;
    struct drps_err err = DRPS_ERR_INIT;
    for (unsigned i = 0; i < LINES; i++) {
        struct text *f = &texts[i >= LINES / 2];
        if (i % (LINES / 2) == 0) text_add(f, "\n%s", headers ? "99999\n" : "");
        text_add(f, i % 3 ? "%u\n" : "%u\r\n \n", i);
    }
    files_add(&fs, "", 0);
    files_add(&fs, texts[0].p, texts[0].n);
    files_add(&fs, texts[1].p, texts[1].n - 1); /* the last line has no end */
    assert_int_equal(drps_chunks_init(&c, &io, paths, 3, 1 << 20, &err), 0);
    assert_int_equal(drps_chunks_first_file(&c, &err), 0);
    t->n = 0;
    assert_int_equal(drps_lines_all(&c, headers, share, take, t, &err), 0);
    assert_string_equal(c.in.name, "1");
    assert_true(c.carry_n > 1000);
    assert_memory_equal(c.carry, texts[0].p, c.carry_n);
    drps_chunks_destroy(&c);
    free(texts[0].p);
    free(texts[1].p);
}

static void test_lines_of_all_files(void **state)
{
    static struct taken t;
    (void)state;
    for (int headers = 0; headers < 2; headers++) {
        take_all(headers, 1, &t);
        assert_int_equal(t.n, LINES);
        for (unsigned i = 0; i < LINES; i++) {
            const unsigned at =
                i % (LINES / 2); /* of each file; every third line has a blank one */
            const uint64_t before = at + (at + 2) / 3, number = 2 + (uint64_t)headers + before;
            if (t.text[i] != i || t.number[i] != number)
                fail_msg("line %u: %u, number %llu instead of %llu", i, t.text[i],
                         (unsigned long long)t.number[i], (unsigned long long)number);
        }
    }
}

/* One of 7 lines that follow on each other, each of the 7 in about a seventh of the cases: 61
 * times, with a standard deviation of 7. */
static void test_lines_of_a_share(void **state)
{
    static struct taken t;
    size_t times[7] = {0};
    (void)state;
    take_all(1, 7, &t);
    assert_in_range(t.n, LINES / 7, LINES / 7 + 1);
    for (size_t i = 0; i < LINES / 7; i++) {
        assert_int_equal(t.text[i] / 7, i);
        times[t.text[i] % 7]++;
    }
    for (size_t k = 0; k < 7; k++)
        assert_in_range(times[k], 30, 95);
}

static int refuse(void *ctx, char *p, char *end, uint64_t line, struct drps_err *err)
{
    size_t *left = ctx;
    (void)p;
    (void)end;
    return (*left)-- ? 0 : drps_err_set(err, -ENOMEM, "line %u", (unsigned)line);
}

/* What the taker returns ends it, and so does a file that cannot be read. */
static void test_lines_end_with_an_error(void **state)
{
    static const char *const path = "0";
    struct files fs = {.step = 2};
    const struct drps_io io = {.ops = &files_ops, .ctx = &fs};
    struct drps_chunks c;
    struct drps_err err = DRPS_ERR_INIT;
    size_t left = 2;
    (void)state;
    files_add(&fs, "1\n2\n3\n4\n", 8);
    assert_int_equal(drps_chunks_init(&c, &io, &path, 1, 1 << 20, &err), 0);
    assert_int_equal(drps_lines_all(&c, 0, 1, refuse, &left, &err), -ENOMEM);
    assert_string_equal(err.text, "line 3");
    left = 100;
    fs.fail_at = fs.reads + 3;
    fs.fail_code = -EIO;
    assert_int_equal(drps_lines_all(&c, 0, 1, refuse, &left, &err), -EIO);
    drps_chunks_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_all_files),
        cmocka_unit_test(test_lines_of_a_share),
        cmocka_unit_test(test_lines_end_with_an_error),
    };
    return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
