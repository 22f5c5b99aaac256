/* Negatives in whole runs of drps-index: none is a choice of its user, the plan does not depend on
 * memory, and what has none is counted. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/drps_index.h"
#include "index/negatives/drps_negatives.h"
#include "support/index_case.h"
#include "support/scratch.h"

enum { ROLES = 40, PAIRS = 4096 };

/* A sample, by role: its keys. */
struct roles {
    double label;
    uint64_t key[ROLES];
    size_t n;
};

static struct roles parse(const char *line)
{
    struct roles r = {0};
    char *at;
    r.label = strtod(line, &at);
    while (*at == ' ') {
        const unsigned long role = strtoul(at, &at, 10);
        assert_true(role < ROLES && *at == ':');
        r.key[role] = strtoull(at + 1, &at, 10);
        at = strchr(at + 1, ' ') ? strchr(at + 1, ' ') : at + strlen(at);
        r.n++;
    }
    return r;
}

/* Choices of users, as pairs of keys. */
struct pairs {
    uint64_t user[PAIRS], item[PAIRS];
    size_t n;
};

static void add_pairs(struct pairs *p, const char *plan, int evaluation)
{
    struct case_lines lines;
    case_plan_lines(plan, evaluation, 0, &lines);
    for (size_t i = 0; i < lines.n; i++) {
        const struct roles r = parse(lines.line[i]);
        assert_true(p->n < PAIRS);
        p->user[p->n] = r.key[0];
        p->item[p->n++] = r.key[1];
    }
    case_lines_free(&lines);
}

static int has_pair(const struct pairs *p, uint64_t user, uint64_t item)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->user[i] == user && p->item[i] == item) return 1;
    return 0;
}

/* Returns how many of the negatives are in `others`, which is no mistake. */
static size_t check_lines(const char *plan, int evaluation, size_t most, const struct pairs *chosen,
                          const struct pairs *others)
{
    struct case_lines lines;
    size_t n = 0;
    case_plan_lines(plan, evaluation, 0, &lines);
    assert_true(lines.n > 0);
    for (size_t i = 0; i < lines.n; i++) {
        const struct roles r = parse(lines.line[i]);
        if (r.n < 3 || r.n > 2 + most) fail_msg("%s: %zu entries", lines.line[i], r.n);
        for (size_t k = 2; k < r.n; k++) {
            n += (size_t)has_pair(others, r.key[0], r.key[k]);
            if (has_pair(chosen, r.key[0], r.key[k]))
                fail_msg("%s: negative %zu is a choice", lines.line[i], k - 2);
        }
    }
    case_lines_free(&lines);
    return n;
}

static void test_negatives_are_no_choices(void **state)
{
    static const char *const ways[] = {"even", "popular"};
    for (size_t w = 0; w < 2; w++) {
        struct scratch s;
        struct case_run run;
        scratch_begin(&s);
        case_begin(&run, &s, case_input(&s, "input", CASE_RATINGS, 900, 30, 3), "bpr");
        run.options.test_fraction = 0.2;
        run.options.implicit = (struct drps_implicit_options){.each = 3, .test = 5, .by = ways[w]};
        drps_plan_close(case_plan(&run));
        struct pairs train = {.n = 0}, all;
        add_pairs(&train, run.out, 0);
        all = train;
        add_pairs(&all, run.out, 1);
        /* Training does not know what is held out. */
        assert_true(check_lines(run.out, 0, 3, &train, &all) > 0);
        assert_int_equal(check_lines(run.out, 1, 5, &all, &all), 0);
        case_verify(run.out);
        scratch_end(&s);
    }
    (void)state;
}

/* The sort goes to disk, and the dictionary starts over, with the smaller one. */
static void test_negatives_do_not_depend_on_memory(void **state)
{
    struct scratch s;
    struct case_run run;
    char first[SCRATCH_PATH_BYTES];
    (void)state;
    scratch_begin(&s);
    case_begin(&run, &s, case_input(&s, "input", CASE_RATINGS, 400000, 3000, 5), "bpr");
    run.options.test_fraction = 0.1;
    run.options.implicit.test = 4;
    case_compile(&run);
    (void)snprintf(first, sizeof(first), "%s", run.out);
    (void)snprintf(run.out, sizeof(run.out), "%s", scratch_path(&s, "other"));
    run.options.memory_bytes = 1 << 30;
    case_compile(&run);
    assert_true(case_same_records(first, run.out));
    scratch_end(&s);
}

/* The plan of a text, and its lines of training. */
/* `test` may be NULL: there is no test data. */
static const struct drps_plan_negatives *
compile_texts(struct case_run *run, struct scratch *s, const char *text, const char *test,
              const char *algo, struct drps_implicit_options implicit, struct case_lines *lines)
{
    case_begin(run, s, scratch_file(s, "input", text, SIZE_MAX), algo);
    if (test) {
        (void)snprintf(run->test, sizeof(run->test), "%s", scratch_file(s, "test", test, SIZE_MAX));
        run->options.tests_n = 1;
    }
    run->options.reader.format = "ratings";
    run->options.order = "given";
    run->options.force = 1;
    run->options.implicit = implicit;
    drps_plan_close(case_plan(run));
    case_plan_lines(run->out, 0, 0, lines);
    return &run->result.info.negatives;
}

static const struct drps_plan_negatives *compile_text(struct case_run *run, struct scratch *s,
                                                      const char *text, const char *algo,
                                                      struct drps_implicit_options implicit,
                                                      struct case_lines *lines)
{
    return compile_texts(run, s, text, NULL, algo, implicit, lines);
}

static void test_negatives_of_a_user_of_all_items_are_left_out(void **state)
{
    struct scratch s;
    struct case_run run;
    struct case_lines lines;
    (void)state;
    scratch_begin(&s);
    const struct drps_plan_negatives *n =
        compile_text(&run, &s, "a x 1\na y 1\na z 1\nb x 1\n", "bpr",
                     (struct drps_implicit_options){.each = 8}, &lines);
    assert_int_equal(n->few, 3);
    assert_int_equal(run.result.info.samples, 1);
    assert_int_equal(lines.n, 1);
    assert_int_equal(parse(lines.line[0]).n, 4); /* b, x, and both others */
    case_lines_free(&lines);
    scratch_end(&s);
}

static void test_each_draw_is_a_pass_with_other_negatives(void **state)
{
    enum { LINES = 40, DRAWS = 3 };
    struct scratch s;
    struct case_run run;
    struct case_lines lines;
    char text[LINES * 16];
    size_t at = 0, others = 0;
    (void)state;
    for (int i = 0; i < LINES; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "u%d i%d 1\n", i % 7, i);
    scratch_begin(&s);
    (void)compile_text(&run, &s, text, "warp",
                       (struct drps_implicit_options){.each = 2, .draws = DRAWS}, &lines);
    assert_int_equal(run.result.info.samples, LINES * DRAWS);
    assert_int_equal(lines.n, LINES * DRAWS);
    for (size_t i = LINES; i < lines.n; i++) { /* in the order of the pass before */
        const struct roles r = parse(lines.line[i]), before = parse(lines.line[i - LINES]);
        assert_int_equal(r.key[0], before.key[0]);
        assert_int_equal(r.key[1], before.key[1]);
        others += r.key[2] != before.key[2];
    }
    assert_true(others > LINES);
    case_lines_free(&lines);
    scratch_end(&s);
}

/* Users of c alone get a or b, which ten to one have chosen. */
static void test_popular_items_are_drawn_more_often(void **state)
{
    enum { OF_A = 400, OF_B = 40, OF_C = 440 };
    static const char *const ways[] = {"even", "popular"};
    static const double least[] = {0.4, 0.85}, most[] = {0.6, 0.96};
    static char text[(OF_A + OF_B + OF_C) * 12], test[8 * OF_A * 12];
    size_t at = 0;
    for (int i = 0; i < 8 * OF_A; i++) /* what is held out does not count */
        at += (size_t)snprintf(test + at, sizeof(test) - at, "u%d b 1\n", OF_A + OF_B + i % OF_C);
    at = 0;
    for (int i = 0; i < OF_A + OF_B + OF_C; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "u%d %c 1\n", i,
                               i < OF_A          ? 'a'
                               : i < OF_A + OF_B ? 'b'
                                                 : 'c');
    for (size_t w = 0; w < 2; w++) {
        struct scratch s;
        struct case_run run;
        struct case_lines lines;
        scratch_begin(&s);
        (void)compile_texts(&run, &s, text, test, "bpr",
                            (struct drps_implicit_options){.by = ways[w], .test = 1}, &lines);
        assert_int_equal(lines.n, OF_A + OF_B + OF_C); /* in the order of the text */
        const uint64_t a = parse(lines.line[0]).key[1];
        double drawn = 0;
        for (size_t i = OF_A + OF_B; i < lines.n; i++)
            drawn += parse(lines.line[i]).key[2] == a;
        if (!(drawn / OF_C > least[w] && drawn / OF_C < most[w]))
            fail_msg("%s: a is %g of the draws", ways[w], drawn / OF_C);
        case_lines_free(&lines);
        scratch_end(&s);
    }
    (void)state;
}

static void test_labels_are_what_losses_take(void **state)
{
    static const struct {
        const char *name, *text, *algo;
        struct drps_implicit_options implicit;
        size_t n;
        double label; /* of the last sample */
        uint64_t below;
        double weights; /* of all samples together; 0: all weigh 1 */
    } rows[] = {
        {"bpr: every line", "a x 1\nb y 0\nc z 5\n", "bpr", {0}, 3, 1, 0, 0},
        {"bpr: from a rating on",
         "a x 1\nb y 4\nc z 5\n",
         "bpr",
         {.has_least = 1, .least = 4},
         2,
         1,
         1,
         0},
        {"bpr: no rating", "a x\nb y\n", "bpr", {0}, 2, 1, 0, 0},
        {"wmf: above 0", "a x 0\nb y -1\nc z 3\nd x 2\n", "wmf", {.each = 1}, 2, 3, 2, 0},
        {"wmf: alpha",
         "a x 1\nb y 3\n",
         "wmf",
         {.each = 1, .has_alpha = 1, .alpha = 10},
         2,
         31,
         0,
         0},
        {"wmf: weight",
         "a x 1\nb y 3\n",
         "wmf",
         {.each = 1, .has_alpha = 1, .alpha = 10, .weight = 2},
         2,
         15.5,
         0,
         0},
        /* 2 of 4 items are others, for 2 choices */
        {"wmf: all others",
         "a x 1\na y 3\nb z 1\nb v 1\nc x 1\nc v 3\n",
         "wmf",
         {.each = 1, .has_alpha = 1, .alpha = 10, .weight_all = 1},
         6,
         31,
         0,
         0},
        {"wmf: all others of one",
         "a x 1\nb y 3\nc z 3\n",
         "wmf",
         {.each = 1, .has_alpha = 1, .alpha = 1, .weight_all = 1},
         3,
         2,
         0,
         6},
        {"wmf: no rating", "a x\nb y\n", "wmf", {.each = 1}, 2, 2, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scratch s;
        struct case_run run;
        struct case_lines lines;
        scratch_begin(&s);
        const struct drps_plan_negatives *n =
            compile_text(&run, &s, rows[i].text, rows[i].algo, rows[i].implicit, &lines);
        const double label = lines.n ? parse(lines.line[lines.n - 1]).label : 0;
        if (lines.n != rows[i].n || label != rows[i].label || n->below != rows[i].below ||
            run.result.info.weights.sum != rows[i].weights)
            fail_msg("%s: expected %zu samples, label %g, %d left out, weights %g; found %zu, %g, "
                     "%d, %g",
                     rows[i].name, rows[i].n, rows[i].label, (int)rows[i].below, rows[i].weights,
                     lines.n, label, (int)n->below, run.result.info.weights.sum);
        case_lines_free(&lines);
        scratch_end(&s);
    }
}

static void test_options_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        const char *algo, *order, *text, *says;
        struct drps_implicit_options implicit;
        const char *task;
    } rows[] = {
        {"lmf", NULL, "a x 1\nb y 1\n", "not lmf", {.each = 2}, NULL},
        {"bpr", NULL, "a x 1\nb y 1\n", "there is no test data", {.test = 5}, NULL},
        {"warp", NULL, "a x 1\nb y 1\n", "warp ranks items", {0}, "regression"},
        {"bpr", NULL, "a x 1\nb y 1\n", "alpha and the weight", {.has_alpha = 1, .alpha = 2}, NULL},
        {"bpr", NULL, "a x 1\nb y 1\n", "even or popular", {.by = "seldom"}, NULL},
        {"bpr", NULL, "a x 1\nb y 1\n", "at most 4096", {.test = 5000}, NULL},
        {"wmf", NULL, "a x 1\nb y 1\n", "give finite numbers", {.has_alpha = 1, .alpha = -1}, NULL},
        {"bpr", "grid", "a x 1\nb y 1\n", "needs the algorithm lmf", {0}, NULL},
        {"bpr", NULL, "a x 1\nb x 1\n", "every user has chosen all 1 items", {0}, NULL},
        {"bpr", NULL, "a x 1\nb y 1\n", "too small", {.has_least = 1, .least = 2}, NULL},
        {"wmf", NULL, "a x 3e38\nb y 1\n", "too large", {.has_alpha = 1, .alpha = 100}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scratch s;
        struct case_run run;
        struct drps_err err = DRPS_ERR_INIT;
        scratch_begin(&s);
        case_begin(&run, &s, scratch_file(&s, "input", rows[i].text, SIZE_MAX), rows[i].algo);
        run.options.reader.format = "ratings";
        run.options.order = rows[i].order;
        run.options.implicit = rows[i].implicit;
        run.options.task = rows[i].task;
        const int rc = drps_index_run(drps_io_os(), &run.options, &run.result, &err);
        if (rc == 0 || !strstr(err.text, rows[i].says))
            fail_msg("row %zu: expected '%s', found '%s' (%d)", i, rows[i].says, err.text, rc);
        scratch_end(&s);
    }
}

/* One sample of a user and an item, so many times. */
static struct spool *spool_of(struct scratch *s, const char *name, size_t n)
{
    struct spool *spool;
    uint32_t ids[] = {0, 1};
    const struct spool_sample sample = {.label = 1, .weight = 1, .n = 2, .ids = ids};
    assert_int_equal(drps_spool_open(drps_io_os(), s->dir, name, 1, 0, &spool, NULL), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(drps_spool_add(spool, &sample, NULL), 0);
    assert_int_equal(drps_spool_finish(spool, NULL), 0);
    return spool;
}

static void test_too_little_memory_is_refused_with_what_would_do(void **state)
{
    enum { MEMORY = 1 << 17 };
    static const struct {
        const char *name, *says;
        size_t samples;
        uint64_t items;
        int rc;
    } rows[] = {
        {"all fits", "", 300, 2, 0},
        {"items", "negatives of 100000 items do not fit the memory limit: use a limit of", 400,
         100000, DRPS_E_MEMORY_BUDGET},
        {"a user",
         "a user has 4000 choices, whose negatives do not fit the memory limit: use a "
         "limit of 5 MiB",
         4000, 2, DRPS_E_MEMORY_BUDGET},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scratch s;
        struct drps_err err = DRPS_ERR_INIT;
        struct negatives_drawn drawn;
        scratch_begin(&s);
        struct spool *train = spool_of(&s, "train", rows[i].samples),
                     *test = spool_of(&s, "test", 0);
        const struct negatives_job job = {.io = drps_io_os(),
                                          .dir = s.dir,
                                          .items = {.first = 1, .rows = rows[i].items},
                                          .how = {.each = 1, .test = 1, .draws = 1},
                                          .samples = rows[i].samples,
                                          .memory_bytes = MEMORY,
                                          .limit_bytes = 3 * MEMORY};
        const int rc = drps_negatives_draw(&job, &train, &test, &drawn, &err);
        if (rc != rows[i].rc || (rc < 0 && !strstr(err.text, rows[i].says)))
            fail_msg("%s: returned %d, '%s'", rows[i].name, rc, err.text);
        if (rc == 0) assert_int_equal(drawn.samples, rows[i].samples);
        drps_spool_close(train);
        drps_spool_close(test);
        scratch_end(&s);
    }
}

/* The limit that is named is one for the largest user, wherever it comes, and does. */
static void test_a_user_of_many_choices_is_counted_to_the_end(void **state)
{
    enum { MEMORY = 1 << 17, SAMPLES = 60000, FIRST = 1000 };
    uint64_t memory = MEMORY, named = 0;
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct scratch s;
        struct drps_err err = DRPS_ERR_INIT;
        struct negatives_drawn drawn;
        struct spool *train, *test;
        scratch_begin(&s);
        assert_int_equal(drps_spool_open(drps_io_os(), s.dir, "train", 1, 0, &train, NULL), 0);
        for (size_t i = 0; i < SAMPLES; i++) {
            uint32_t ids[] = {i < FIRST ? 0 : 1, 2};
            const struct spool_sample sample = {.label = 1, .weight = 1, .n = 2, .ids = ids};
            assert_int_equal(drps_spool_add(train, &sample, NULL), 0);
        }
        assert_int_equal(drps_spool_finish(train, NULL), 0);
        test = spool_of(&s, "test", 0);
        const struct negatives_job job = {.io = drps_io_os(),
                                          .dir = s.dir,
                                          .items = {.first = 2, .rows = 2},
                                          .how = {.each = 1, .test = 1, .draws = 1},
                                          .samples = SAMPLES,
                                          .memory_bytes = memory,
                                          .limit_bytes = 3 * memory};
        const int rc = drps_negatives_draw(&job, &train, &test, &drawn, &err);
        if (round == 0) {
            const char *at = strstr(err.text, "limit of ");
            assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
            assert_non_null(strstr(err.text, "a user has 59000 choices"));
            assert_non_null(at);
            named = strtoull(at + 9, NULL, 10) << 20;
            memory = named / 3;
        } else if (rc < 0) {
            fail_msg("%llu bytes, as was said: %s", (unsigned long long)named, err.text);
        }
        drps_spool_close(train);
        drps_spool_close(test);
        scratch_end(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_negatives_are_no_choices),
        cmocka_unit_test(test_negatives_do_not_depend_on_memory),
        cmocka_unit_test(test_negatives_of_a_user_of_all_items_are_left_out),
        cmocka_unit_test(test_each_draw_is_a_pass_with_other_negatives),
        cmocka_unit_test(test_popular_items_are_drawn_more_often),
        cmocka_unit_test(test_labels_are_what_losses_take),
        cmocka_unit_test(test_options_that_do_not_fit_are_refused),
        cmocka_unit_test(test_too_little_memory_is_refused_with_what_would_do),
        cmocka_unit_test(test_a_user_of_many_choices_is_counted_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
