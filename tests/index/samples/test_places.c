/*
 * What is drawn for a sample follows from the number of its input and from its line: files that are
 * read apart give the samples that they give together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/plan/drps_algorithm.h"
#include "index/samples/drps_read_samples.h"
#include "support/index_case.h"
#include "support/scratch.h"

enum { SAMPLES = 400, FILES = 3, KEPT = 4 * SAMPLES * FILES };

/* What was read: the order, the label and the size of each sample, in order. */
struct kept {
    struct place {
        uint64_t order;
        float label;
        uint32_t entries;
    } sample[2][KEPT]; /* of training, of evaluation */
    size_t n[2];
};

struct keeping {
    struct kept *kept;
    int test;
};

static int keep(void *ctx, struct spool_sample *s, struct drps_err *err)
{
    const struct keeping *k = ctx;
    size_t *n = &k->kept->n[k->test];
    (void)err;
    assert_true(*n < KEPT);
    k->kept->sample[k->test][(*n)++] = (struct place){s->order, s->label, s->n};
    return 0;
}

static int by_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->order > y->order) - (x->order < y->order);
}

/* Reads what the options name, and adds it to what is kept. */
static void read_more(struct scratch *dir, struct drps_index_options *o, struct kept *to)
{
    struct read_samples out = {0};
    struct drps_err err = DRPS_ERR_INIT;
    o->algorithm = drps_algorithm_find(o->algo);
    o->memory_bytes = 64 << 20;
    const struct index_progress progress = {.options = o};
    if (drps_read_samples(drps_io_os(), &progress, dir->dir, &out, &err) < 0)
        fail_msg("%s", err.text);
    for (int test = 0; test < 2; test++) {
        struct keeping k = {to, test};
        const struct spool_visitor v = {.visit = keep, .ctx = &k};
        assert_int_equal(drps_spool_drain(test ? out.test : out.train, 1 << 20, &v, &err), 0);
        qsort(to->sample[test], to->n[test], sizeof(to->sample[test][0]), by_order);
    }
    drps_read_samples_free(&out);
}

static void assert_same(const struct kept *a, const struct kept *b, const char *what)
{
    for (int test = 0; test < 2; test++) {
        if (a->n[test] != b->n[test])
            fail_msg("%s: %zu samples, %zu expected", what, b->n[test], a->n[test]);
        for (size_t i = 0; i < a->n[test]; i++)
            if (by_order(&a->sample[test][i], &b->sample[test][i]) != 0 ||
                a->sample[test][i].label != b->sample[test][i].label ||
                a->sample[test][i].entries != b->sample[test][i].entries)
                fail_msg("%s: sample %zu differs", what, i);
    }
}

/* Three inputs, the second with comments and an empty line, and a file of evaluation. */
static void name_files(struct scratch *s, char paths[FILES + 1][SCRATCH_PATH_BYTES])
{
    for (int f = 0; f <= FILES; f++) {
        char name[16];
        size_t n;
        (void)snprintf(name, sizeof(name), "%d.txt", f);
        const char *path = case_input(s, name, CASE_LIBSVM, SAMPLES, 50, 7 + (uint64_t)f);
        (void)snprintf(paths[f], SCRATCH_PATH_BYTES, "%s", path);
        if (f != 1) continue;
        char *text = scratch_read(path, &n), *more = malloc(n + 32);
        assert_non_null(more);
        (void)snprintf(more, n + 32, "# a comment\n\n%s", text);
        scratch_write(path, more, strlen(more));
        free(text);
        free(more);
    }
}

static struct drps_index_options options_of(const char *const *inputs, size_t n)
{
    return (struct drps_index_options){.inputs = inputs,
                                       .inputs_n = n,
                                       .algo = "lor",
                                       .order = "shuffled",
                                       .seed = 5,
                                       .test_fraction = 0.2};
}

static void test_places_of_files_that_are_read_apart(void **state)
{
    static const char *const orders[] = {"shuffled", "given", "grid"};
    struct scratch *s = *state;
    char paths[FILES + 1][SCRATCH_PATH_BYTES];
    const char *inputs[FILES + 1] = {paths[0], paths[1], paths[2], paths[3]};
    struct kept *whole = malloc(sizeof(*whole)), *apart = malloc(sizeof(*apart));
    assert_true(whole && apart);
    name_files(s, paths);
    for (size_t o = 0; o < 3; o++) {
        struct drps_index_options options = options_of(inputs, FILES);
        whole->n[0] = whole->n[1] = apart->n[0] = apart->n[1] = 0;
        options.order = orders[o];
        options.tests = inputs + FILES;
        options.tests_n = 1;
        read_more(s, &options, whole);
        for (uint32_t f = 0; f < FILES; f++) {
            struct drps_index_options one = options_of(inputs + f, 1);
            one.order = orders[o];
            one.first_input = f;
            if (f == 0) {
                one.tests = inputs + FILES;
                one.tests_n = 1;
                one.first_test = FILES;
            }
            read_more(s, &one, apart);
        }
        assert_same(whole, apart, orders[o]);
        assert_int_equal(whole->n[0] + whole->n[1], (FILES + 1) * SAMPLES);
        assert_true(whole->n[1] > SAMPLES + SAMPLES * FILES / 10);
    }
    free(whole);
    free(apart);
}

/* Files that are read in shares of their bytes. */
static void test_places_of_shares(void **state)
{
    enum { SHARES = 4 };
    struct scratch *s = *state;
    char paths[FILES + 1][SCRATCH_PATH_BYTES];
    const char *inputs[FILES] = {paths[0], paths[1], paths[2]};
    struct kept *whole = calloc(1, sizeof(*whole)), *apart = calloc(1, sizeof(*apart));
    struct drps_err err = DRPS_ERR_INIT;
    assert_true(whole && apart);
    name_files(s, paths);
    struct drps_index_options options = options_of(inputs, FILES);
    read_more(s, &options, whole);
    for (uint32_t k = 0; k < SHARES; k++) {
        struct drps_reader_share share;
        assert_int_equal(drps_reader_share(drps_io_os(), inputs, FILES, k, SHARES, &share, &err),
                         0);
        assert_int_equal(drps_reader_share_lines(drps_io_os(), inputs[share.begin.path], 0,
                                                 share.begin.byte, &share.lines, &err),
                         0);
        options.share = &share;
        read_more(s, &options, apart);
    }
    assert_same(whole, apart, "shares");
    free(whole);
    free(apart);
}

/* The first input's lines are numbered from 0 on, so that its order is that of its samples' numbers
 * where each line has one. */
static void test_places_of_one_input_are_its_lines(void **state)
{
    struct scratch *s = *state;
    const char *input = case_input(s, "one.txt", CASE_LIBSVM, SAMPLES, 50, 3);
    struct drps_index_options options = options_of(&input, 1);
    struct kept *kept = calloc(1, sizeof(*kept));
    assert_non_null(kept);
    options.order = "given";
    read_more(s, &options, kept);
    size_t at[2] = {0, 0};
    for (uint64_t line = 0; line < SAMPLES; line++) {
        const int test = at[1] < kept->n[1] && kept->sample[1][at[1]].order == line;
        assert_int_equal(kept->sample[test][at[test]++].order, line);
    }
    free(kept);
}

static void test_places_of_clicks_are_two_a_line(void **state)
{
    struct scratch *s = *state;
    const char *input =
        scratch_file(s, "clicks.csv", "site,clicks,shown\na,1,5\nb,0,3\nc,2,2\n", SIZE_MAX);
    struct drps_index_options options = options_of(&input, 1);
    struct kept *kept = calloc(1, sizeof(*kept));
    assert_non_null(kept);
    options.order = "given";
    options.test_fraction = 0;
    options.reader.clicks = "clicks";
    options.reader.impressions = "shown";
    read_more(s, &options, kept);
    static const struct {
        uint64_t order;
        float label;
    } expected[] = {
        {0, 1}, {1, -1}, {2, 1}, {1ull << 39 | 0, -1}}; /* a header is no line of samples */
    assert_int_equal(kept->n[0], 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(kept->sample[0][i].order, expected[i].order);
        assert_float_equal(kept->sample[0][i].label, expected[i].label, 0);
    }
    free(kept);
}

/* A document has its number; documents without words leave gaps. */
static void test_places_of_documents_are_their_numbers(void **state)
{
    struct scratch *s = *state;
    const char *input =
        scratch_file(s, "docs.txt", "9\n4\n4\n2 1 3\n2 3 1\n5 2 1\n9 4 2\n", SIZE_MAX);
    struct drps_index_options options = options_of(&input, 1);
    struct kept *kept = calloc(1, sizeof(*kept));
    assert_non_null(kept);
    options.order = "given";
    options.algo = "topic";
    options.test_fraction = 0;
    read_more(s, &options, kept);
    static const uint64_t expected[] = {1, 4, 8};
    assert_int_equal(kept->n[0], 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kept->sample[0][i].order, expected[i]);
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_places_of_files_that_are_read_apart, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_places_of_shares, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_places_of_one_input_are_its_lines, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_places_of_clicks_are_two_a_line, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_places_of_documents_are_their_numbers, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
