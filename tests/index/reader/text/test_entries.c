/*
 * Entries by vectors against the plain parser: random libsvm text, of which much is nearly right,
 * gives the same samples and the same errors at each level of instructions.
 */
#include "index/reader/reader_files.h"

#include "base/drps_rng.h"
#include "base/kernel/drps_level.h"
#include "index/reader/text/drps_entries.h"

enum { ROUNDS = 10000 / DRPS_TEST_ONE_IN, LINES = 12, TEXT_BYTES = 1 << 14, READABLE = 64 };
static const uint64_t seed = 20261127;

static void use(enum drps_level level)
{
    assert_int_equal(drps_level_set(drps_level_name(level), NULL), 0);
}

/* ---- Random text ---- */

struct writer {
    char text[TEXT_BYTES];
    size_t n;
    uint64_t drawn;
};

static uint64_t draw(struct writer *w, uint64_t below)
{
    return drps_rng_at(seed, w->drawn++) % below;
}

static void put(struct writer *w, const char *text)
{
    const size_t n = strlen(text);
    assert_true(w->n + n + READABLE < sizeof(w->text));
    memcpy(w->text + w->n, text, n);
    w->n += n;
}

static void put_digits(struct writer *w, size_t n)
{
    while (n--)
        w->text[w->n++] = (char)('0' + draw(w, 10));
}

/* One in so many entries of a line is odd. */
static void put_entry(struct writer *w, uint64_t odd)
{
    static const char *const odd_ones[] = {
        "qid:3", ":1",    "7:",     "7",      "3:1:1", "x:1",   "-2:1",  "5:0",    "5:00", "5:-1",
        "5:.5",  "5:1e1", "5:1x",   "5:1e99", "5:12",  "5:+1",  "5 :1",  "5: 1",   "#",    "5:1#",
        "# 6:1", "\x80",  "5:\xb1", "\x01",   "\v5:1", "5:1\f", "5:nan", "5:1,6:1"};
    if (draw(w, odd)) {
        put_digits(w, 1 + draw(w, 8));
        put(w, ":");
        w->text[w->n++] = (char)('1' + draw(w, 9));
    } else if (draw(w, 3)) {
        put(w, odd_ones[draw(w, sizeof(odd_ones) / sizeof(odd_ones[0]))]);
    } else {
        put_digits(w, draw(w, 24));
        put(w, ":");
        put_digits(w, draw(w, 12));
    }
}

static void put_line(struct writer *w)
{
    static const char *const labels[] = {"1", "0", "-1", "+1", "0.5", "2:1", "", " 1", "x"};
    static const char *const ends[] = {"\n",     "\n",   "\r\n",   " \n",
                                       "\t\r\n", "\n\n", "\r\r\n", "  \n"};
    const uint64_t odd = 1 + draw(w, 60), n = draw(w, draw(w, 3) ? 8 : 60);
    put(w, labels[draw(w, draw(w, 4) ? 4 : sizeof(labels) / sizeof(labels[0]))]);
    for (uint64_t i = 0; i < n; i++) {
        put(w, draw(w, 3 * odd) ? " " : draw(w, 2) ? "\t" : "  ");
        put_entry(w, odd);
    }
    put(w, ends[draw(w, draw(w, 2) ? 2 : sizeof(ends) / sizeof(ends[0]))]);
}

/* Lines, the last of which may be cut anywhere, and bytes that are changed to any others. */
static void write_text(struct writer *w)
{
    w->n = 0;
    for (uint64_t i = 1 + draw(w, LINES); i--;)
        put_line(w);
    if (!draw(w, 4)) w->n -= draw(w, w->n);
    for (uint64_t i = draw(w, 4) ? 0 : draw(w, 5); i-- && w->n;)
        w->text[draw(w, w->n)] = (char)draw(w, 256);
}

/* ---- Reading it ---- */

/* What reading gave, and what it has said of lines that were skipped. */
struct reading {
    struct outcome outcome;
    struct text told;
};

static void keep_told(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    text_add(ctx, "%s\n", text);
}

static void read_at(enum drps_level level, const struct writer *w, int skip, struct reading *out)
{
    const struct drps_log log = {.level = DRPS_LOG_DEBUG, .sink = keep_told, .ctx = &out->told};
    const struct drps_reader_options options = {
        .format = "libsvm", .skip_bad_lines = skip, .log = &log};
    struct files fs = {0};
    memset(out, 0, sizeof(*out));
    text_add(&out->told, "%s", "");
    use(level);
    files_add(&fs, w->text, w->n);
    read_files(&fs, &options, 0, &out->outcome);
}

static int same(const struct reading *x, const struct reading *y)
{
    const struct outcome *a = &x->outcome, *b = &y->outcome;
    return a->rc == b->rc && strcmp(a->err.text, b->err.text) == 0 && a->text.n == b->text.n &&
           strcmp(a->text.p, b->text.p) == 0 && a->skipped == b->skipped && a->lines == b->lines &&
           strcmp(x->told.p, y->told.p) == 0;
}

static void reading_free(struct reading *r)
{
    outcome_free(&r->outcome);
    free(r->told.p);
}

static void check_text(const struct writer *w, enum drps_level level, int skip)
{
    struct reading plain, fast;
    read_at(DRPS_LEVEL_BASELINE, w, skip, &plain);
    read_at(level, w, skip, &fast);
    if (!same(&plain, &fast))
        fail_msg("seed %llu, %s\ninput:\n%.*s\nexpected: %s %s\n%s\nfound:    %s %s\n%s",
                 (unsigned long long)seed, drps_level_name(level), (int)w->n, w->text,
                 plain.outcome.text.p, plain.outcome.err.text, plain.told.p, fast.outcome.text.p,
                 fast.outcome.err.text, fast.told.p);
    reading_free(&plain);
    reading_free(&fast);
}

static void test_entries_levels_agree(void **state)
{
    static struct writer w;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        write_text(&w);
        for (enum drps_level level = DRPS_LEVEL_BASELINE + 1; level < DRPS_LEVELS; level++)
            if (drps_level_is_here(level)) check_text(&w, level, round & 1);
    }
    use(DRPS_LEVEL_BASELINE);
}

/* ---- Plain entries alone ---- */

/* A line's entries, with what may be read behind it and no byte more. */
static char *copy_line(const char *text, size_t n, const char *behind)
{
    char *line = malloc(n + READABLE);
    assert_non_null(line);
    memcpy(line, text, n);
    memset(line + n, 'x', READABLE);
    memcpy(line + n, behind, strlen(behind));
    return line;
}

/* Entries 1, 22, 333, ... with the values 1, 2, ...: all of them are taken, and nothing behind. */
static void check_plain(size_t entries, const char *behind)
{
    uint64_t *ids = malloc((entries + DRPS_ENTRIES_SLACK) * sizeof(*ids));
    float *values = malloc((entries + DRPS_ENTRIES_SLACK) * sizeof(*values));
    char text[1024];
    size_t n = 0;
    assert_non_null(ids);
    assert_non_null(values);
    for (size_t i = 0; i < entries; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s:%zu", i ? " " : "",
                              (int)(i % 8 + 1), "87654321", i % 9 + 1);
    char *line = copy_line(text, n, behind), *p = line;
    const int vectors = drps_level() != DRPS_LEVEL_BASELINE;
    assert_int_equal(drps_entries_plain(&p, line + n, ids, values), vectors ? entries : 0);
    assert_ptr_equal(p, vectors ? line + n : line);
    for (size_t i = 0; vectors && i < entries; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "%.*s", (int)(i % 8 + 1), "87654321");
        assert_int_equal(ids[i], strtoull(id, NULL, 10));
        assert_true(values[i] == (float)(i % 9 + 1));
    }
    free(line);
    free(ids);
    free(values);
}

static void test_entries_plain_are_all_taken(void **state)
{
    (void)state;
    for (enum drps_level level = DRPS_LEVEL_BASELINE; level < DRPS_LEVELS; level++) {
        if (!drps_level_is_here(level)) continue;
        use(level);
        for (size_t entries = 0; entries < 60; entries++) {
            check_plain(entries, "\n");
            check_plain(entries, "\n2:1 3:1 4:1\n"); /* the next line is none of this one */
            check_plain(entries, "\r\n5:1 6:1\n");
        }
    }
    use(DRPS_LEVEL_BASELINE);
}

static void test_entries_increase(void **state)
{
    static const uint64_t ids[] = {3, 4, 9, 9, 10, UINT64_MAX, 1};
    (void)state;
    for (enum drps_level level = DRPS_LEVEL_BASELINE; level < DRPS_LEVELS; level++) {
        if (!drps_level_is_here(level)) continue;
        use(level);
        for (size_t first = 0; first < 7; first++)
            for (size_t n = 0; first + n <= 7; n++) {
                int expected = 1;
                for (size_t i = first + 1; i < first + n; i++)
                    expected &= ids[i] > ids[i - 1];
                assert_int_equal(drps_entries_increase(ids + first, n), expected);
            }
    }
    use(DRPS_LEVEL_BASELINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries_levels_agree),
        cmocka_unit_test(test_entries_plain_are_all_taken),
        cmocka_unit_test(test_entries_increase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
