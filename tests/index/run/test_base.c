/* Plans that go on from an earlier one: its rows keep their numbers, new ones follow, batches have
 * the new samples alone, and what does not fit the earlier plan is refused. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/folder/drps_manifest.h"
#include "index/drps_index.h"
#include "index/plan/drps_names.h"
#include "support/index_case.h"

enum { FIRST_FEATURES = 300, LATER_FEATURES = 500, SAMPLES = 1200 };

static const struct kind {
    const char *name, *algo;
    enum case_format format;
    int binary, rates;
} kinds[] = {
    {.name = "libsvm", .algo = "lor", .format = CASE_LIBSVM, .binary = 1},
    {.name = "regression", .algo = "lir", .format = CASE_LIBSVM},
    {.name = "ratings", .algo = "lmf", .format = CASE_RATINGS, .rates = 1},
    {.name = "ratings, fm", .algo = "fm", .format = CASE_RATINGS},
    {.name = "csv", .algo = "svm", .format = CASE_CSV, .binary = 1},
    {.name = "classes", .algo = "mlr", .format = CASE_LIBSVM},
    {.name = "libffm", .algo = "ffm", .format = CASE_LIBFFM, .binary = 1},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const char *input(struct scratch *s, const char *name, const struct kind *k, size_t features,
                         uint64_t seed)
{
    return case_input(s, name, k->format, SAMPLES, features, seed);
}

/* Set up a run of drps-index whose plan is called `name`. */
static void begin(struct case_run *c, struct scratch *s, const char *name, const char *input_path,
                  const char *algo)
{
    case_begin(c, s, input_path, algo);
    (void)snprintf(c->out, sizeof(c->out), "%s", scratch_path(s, name));
    c->options.force = 1;
}

static void make_first(struct scratch *s, const struct kind *k)
{
    struct case_run c;
    begin(&c, s, "first", input(s, "first.txt", k, FIRST_FEATURES, 21), k->algo);
    case_compile(&c);
}

/* Set up a run from more data that goes on from the plan `base`. */
static void begin_later(struct case_run *c, struct scratch *s, const struct kind *k,
                        const char *name, const char *base, uint64_t seed,
                        char base_dir[SCRATCH_PATH_BYTES])
{
    begin(c, s, name, input(s, "later.txt", k, LATER_FEATURES, seed), NULL);
    (void)snprintf(base_dir, SCRATCH_PATH_BYTES, "%s", scratch_path(s, base));
    c->options.base = base_dir;
}

struct stayed {
    struct drps_names *later;
    uint64_t n;
};

static int row_stays(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct stayed *s = ctx;
    uint32_t later;
    (void)field, (void)text, (void)bytes;
    if (drps_names_lookup(s->later, &key, 1, &later, err)) fail_msg("%s", err->text);
    if (later != row) fail_msg("key %016" PRIx64 " had row %u, and has %u", key, row, later);
    s->n++;
    return 0;
}

/* All features of the plan `before` have their rows in the plan `after`. */
static void rows_stay(const char *before, const char *after)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_names *names;
    struct stayed s = {.n = 0};
    if (drps_names_open(drps_io_os(), before, &names, &err) ||
        drps_names_open(drps_io_os(), after, &s.later, &err) ||
        drps_names_scan(names, row_stays, &s, &err))
        fail_msg("%s", err.text);
    assert_true(s.n > 0);
    drps_names_close(names);
    drps_names_close(s.later);
}

static void test_base_rows_stay_and_new_ones_follow(void **state)
{
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        struct case_run c;
        struct case_lines want, found;
        char base[SCRATCH_PATH_BYTES], later[SCRATCH_PATH_BYTES];
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_plan *first, *plan;
        make_first(s, &kinds[k]);
        begin_later(&c, s, &kinds[k], "later", "first", 22, base);
        plan = case_plan(&c);
        assert_int_equal(drps_plan_open(drps_io_os(), base, &first, &err), 0);
        (void)snprintf(later, sizeof(later), "%s", c.out);
        rows_stay(base, later);
        case_verify(later);
        assert_string_equal(plan->info.base, first->info.id);
        assert_int_equal(plan->info.base_rows, first->info.rows);
        assert_true(plan->info.rows > first->info.rows);
        assert_int_equal(plan->info.dim, first->info.dim);
        assert_string_equal(plan->info.loss, first->info.loss);
        if (kinds[k].rates) assert_string_equal(plan->info.tables[1].name, "rows");
        case_input_lines(c.input, 0, (float)kinds[k].binary, 1, &want);
        case_plan_lines(later, 0, 1, &found);
        assert_int_equal(found.n, want.n);
        const int scaled =
            kinds[k].format == CASE_CSV; /* as the first plan's, not as the input's */
        if (!scaled && !case_lines_equal(&want, &found))
            fail_msg("%s: samples changed", kinds[k].name);
        case_lines_free(&want);
        case_lines_free(&found);
        drps_plan_close(first);
        drps_plan_close(plan);
    }
}

static void test_base_bytes_do_not_depend_on_memory(void **state)
{
    static const uint64_t memory[] = {64 << 20, 1 << 30};
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        char base[SCRATCH_PATH_BYTES], out[2][SCRATCH_PATH_BYTES];
        make_first(s, &kinds[k]);
        for (size_t i = 0; i < 2; i++) {
            struct case_run c;
            begin_later(&c, s, &kinds[k], i ? "later-1" : "later-0", "first", 22, base);
            c.options.memory_bytes = memory[i];
            c.options.test_fraction = 0.2;
            case_compile(&c);
            case_verify(c.out);
            (void)snprintf(out[i], sizeof(out[i]), "%s", c.out);
        }
        if (!case_same_records(out[0], out[1])) fail_msg("%s", kinds[k].name);
    }
}

/* Day after day: rows of all days before stay. */
static void test_base_of_a_base(void **state)
{
    static const char *const names[] = {"first", "second", "third", "fourth"};
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        char base[SCRATCH_PATH_BYTES], paths[4][SCRATCH_PATH_BYTES];
        make_first(s, &kinds[k]);
        for (size_t i = 0; i < 4; i++)
            (void)snprintf(paths[i], sizeof(paths[i]), "%s", scratch_path(s, names[i]));
        for (size_t i = 1; i < 4; i++) {
            struct case_run c;
            begin_later(&c, s, &kinds[k], names[i], names[i - 1], 30 + i, base);
            case_compile(&c);
            case_verify(c.out);
            for (size_t j = 0; j < i; j++)
                rows_stay(paths[j], paths[i]);
        }
    }
}

/* Test samples may have features that only the base has been trained on. */
static void test_base_features_are_seen(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    make_first(s, &kinds[0]);
    begin_later(&c, s, &kinds[0], "later", "first", 23, base);
    (void)snprintf(c.input, sizeof(c.input), "%s", input(s, "few.txt", &kinds[0], 5, 24));
    (void)snprintf(c.test, sizeof(c.test), "%s", scratch_path(s, "first.txt"));
    c.options.tests_n = 1;
    case_compile(&c);
    case_verify(c.out);
    assert_int_equal(c.result.info.test_unseen, 0);
    assert_int_equal(c.result.info.rows, c.result.info.base_rows);
}

/* A day may have samples of one label alone, which is still the label that it was. */
static void test_base_settles_labels(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    make_first(s, &kinds[0]);
    begin_later(&c, s, &kinds[0], "later", "first", 23, base);
    FILE *f = fopen(scratch_path(s, "one.txt"), "w");
    assert_non_null(f);
    for (int i = 0; i < 200; i++)
        (void)fprintf(f, "1 %d:1\n", i % 50 + 1);
    assert_int_equal(fclose(f), 0);
    (void)snprintf(c.input, sizeof(c.input), "%s", scratch_path(s, "one.txt"));
    c.options.class_weights = "balanced";
    struct drps_plan *plan = case_plan(&c);
    assert_true(plan->info.classification && plan->info.label_positive == 1 &&
                plan->info.label_negative == 0 && plan->info.label_mean == 1);
    drps_plan_close(plan);
}

/* ---- Samples once more ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of both, sorted; moved from `more`. */
static void add_lines(struct case_lines *all, struct case_lines *more)
{
    all->line = realloc(all->line, (all->n + more->n) * sizeof(*all->line));
    assert_non_null(all->line);
    memcpy(all->line + all->n, more->line, more->n * sizeof(*all->line));
    all->n += more->n;
    free(more->line);
    *more = (struct case_lines){.line = NULL};
    qsort(all->line, all->n, sizeof(*all->line), by_text);
}

/* Compile a later plan that replays a share of the first one's samples. */
static void make_replayed(struct scratch *s, const struct kind *k, const char *name, double share,
                          uint64_t memory, struct case_run *c)
{
    static char base[SCRATCH_PATH_BYTES];
    begin_later(c, s, k, name, "first", 22, base);
    c->options.replay = share;
    c->options.memory_bytes = memory;
    case_compile(c);
    case_verify(c->out);
}

static void test_base_samples_are_replayed(void **state)
{
    struct scratch *s = *state;
    for (size_t k = 0; k < KINDS; k++) {
        struct case_run c;
        struct case_lines want, more, found;
        make_first(s, &kinds[k]);
        make_replayed(s, &kinds[k], "later", 0, 64 << 20, &c);
        assert_int_equal(c.result.replayed, 0);
        case_plan_lines(c.out, 0, 1, &want);
        const uint64_t rows = c.result.info.rows;
        case_plan_lines(scratch_path(s, "first"), 0, 1, &more);
        add_lines(&want, &more);
        make_replayed(s, &kinds[k], "replayed", 1, 64 << 20, &c);
        case_plan_lines(c.out, 0, 1, &found);
        assert_int_equal(c.result.replayed, SAMPLES);
        assert_int_equal(c.result.info.rows, rows);
        if (!case_lines_equal(&want, &found)) fail_msg("%s: other samples", kinds[k].name);
        case_lines_free(&want);
        case_lines_free(&found);
    }
}

static void test_base_share_of_samples_is_replayed(void **state)
{
    struct scratch *s = *state;
    char few[SCRATCH_PATH_BYTES];
    struct case_run c;
    make_first(s, &kinds[0]);
    make_replayed(s, &kinds[0], "few", 0.3, 64 << 20, &c);
    const uint64_t n = c.result.replayed;
    if (n < SAMPLES * 3 / 10 - 80 || n > SAMPLES * 3 / 10 + 80)
        fail_msg("%llu of %d samples", (unsigned long long)n, SAMPLES); /* 5 sigma */
    assert_int_equal(c.result.info.samples, SAMPLES + n);
    (void)snprintf(few, sizeof(few), "%s", c.out);
    make_replayed(s, &kinds[0], "again", 0.3, 1 << 30, &c);
    assert_true(case_same_records(few, c.out));
}

/* In given order they come first, as they came. */
static void test_base_replays_in_order(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines first, found;
    char base[SCRATCH_PATH_BYTES];
    begin(&c, s, "first", input(s, "first.txt", &kinds[0], FIRST_FEATURES, 21), "lor");
    c.options.order = "given";
    case_compile(&c);
    begin_later(&c, s, &kinds[0], "later", "first", 22, base);
    c.options.order = "given";
    c.options.replay = 1;
    case_compile(&c);
    case_plan_lines(base, 0, 0, &first);
    case_plan_lines(c.out, 0, 0, &found);
    for (size_t i = 0; i < first.n; i++)
        assert_string_equal(first.line[i], found.line[i]);
    case_lines_free(&first);
    case_lines_free(&found);
}

/* ---- Several workers ---- */

static void test_base_with_workers(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES], before[SCRATCH_PATH_BYTES];
    begin(&c, s, "first", input(s, "first.txt", &kinds[2], FIRST_FEATURES, 21), "lmf");
    c.options.workers = 3;
    c.options.partition = "auto"; /* rows of users and items mix */
    case_compile(&c);
    (void)snprintf(before, sizeof(before), "%s", c.out);
    for (uint32_t workers = 1; workers < 4; workers++) {
        begin_later(&c, s, &kinds[2], "later", "first", 22, base);
        c.options.workers = workers;
        struct drps_plan *plan = case_plan(&c);
        case_verify(c.out);
        rows_stay(before, c.out);
        assert_int_equal(plan->info.ranks.count, workers);
        drps_plan_close(plan);
    }
    struct case_run dealt; /* what is dealt anew goes on from the same plan */
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    char later[SCRATCH_PATH_BYTES];
    (void)snprintf(later, sizeof(later), "%s", c.out);
    begin(&dealt, s, "dealt", "", NULL);
    dealt.options.inputs_n = 0;
    dealt.options.from_plan = later;
    dealt.options.workers = 2;
    plan = case_plan(&dealt);
    assert_int_equal(plan->info.base_rows, c.result.info.base_rows);
    assert_true(plan->info.base[0]);
    drps_plan_close(plan);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), later, 1, &plan, &err), 0);
    assert_true(plan->info.base[0]);
    drps_plan_close(plan);
}

/* ---- Refusals ---- */

static void refused(struct case_run *c, int code, const char *says)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = drps_index_run(drps_io_os(), &c->options, &c->result, &err);
    if (rc != code || !strstr(err.text, says))
        fail_msg("'%s' and %d expected, found %d: %s", says, code, rc, err.text);
}

static void test_base_refuses_what_renumbers_rows(void **state)
{
    static const struct {
        const char *order, *blocks, *partition, *says;
        uint32_t workers, lanes;
    } cases[] = {{.order = "grid", .says = "order grid"},
                 {.lanes = 2, .says = "leave the lanes out"},
                 {.blocks = "auto", .says = "block builder"},
                 {.blocks = "id", .says = "block builder"},
                 {.partition = "auto", .workers = 2, .says = "this partition"},
                 {.partition = "hash", .workers = 2, .says = "this partition"}};
    struct scratch *s = *state;
    make_first(s, &kinds[2]);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        char base[SCRATCH_PATH_BYTES];
        begin_later(&c, s, &kinds[2], "later", "first", 22, base);
        c.options.order = cases[i].order;
        c.options.blocks.by = cases[i].blocks;
        c.options.partition = cases[i].partition;
        c.options.workers = cases[i].workers;
        c.options.lanes = cases[i].lanes;
        refused(&c, DRPS_E_CONFIG, cases[i].says);
    }
}

/* Batches as many as get lanes by themselves in a plan without a base. */
static void test_base_has_no_lanes(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    begin(&c, s, "first", input(s, "first.txt", &kinds[2], FIRST_FEATURES, 21), "lmf");
    c.options.batch_size = 2;
    struct drps_plan *plan = case_plan(&c);
    assert_int_equal(plan->info.lanes, 4);
    drps_plan_close(plan);
    begin_later(&c, s, &kinds[2], "later", "first", 22, base);
    c.options.batch_size = 2;
    plan = case_plan(&c);
    assert_true(plan->info.batches >= 512);
    assert_int_equal(plan->info.lanes, 0);
    drps_plan_close(plan);
}

static void test_base_refuses_to_replay(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    make_first(s, &kinds[0]);
    begin_later(&c, s, &kinds[0], "later", "first", 22, base);
    c.options.replay = 0.5;
    c.options.class_weights = "balanced";
    refused(&c, DRPS_E_CONFIG, "class weights would count twice");
    c.options.class_weights = NULL;
    c.options.replay = 1.5;
    refused(&c, DRPS_E_CONFIG, "between 0 and 1");
    begin(&c, s, "first", input(s, "first.txt", &kinds[0], 50, 21), "lor");
    c.options.replay = 0.5;
    refused(&c, DRPS_E_CONFIG, "needs a base");
    c.options.replay = 0;
    c.options.workers = 2;
    case_compile(&c);
    begin_later(&c, s, &kinds[0], "later", "first", 22, base);
    c.options.replay = 0.5;
    refused(&c, DRPS_E_CONFIG, "is for several workers");
}

static void write_lines(const char *path, const char *lines)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(lines, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_base_refuses_data_that_do_not_fit(void **state)
{
    static const struct {
        const char *name, *algo, *first, *later, *says;
        int code;
    } cases[] = {
        {"another label", "lor", "0 1:1\n1 2:1\n", "1 1:1\n2 2:1\n", "label 2; ", DRPS_E_FORMAT},
        {"another class", "mlr", "a 1:1\nb 2:1\n", "b 1:1\nc 2:1\n", "the label c is none of the 2",
         DRPS_E_FORMAT},
        {"another field", "ffm", "0 0:1:1 1:2:1\n1 0:3:1\n", "1 2:1:1\n", "the field 2",
         DRPS_E_FORMAT},
        {"another column", "lor", "label,a\n0,x\n1,y\n", "label,b\n0,x\n1,y\n", "", DRPS_E_CONFIG},
        {"one column more", "lor", "label,a\n0,x\n1,y\n", "label,a,b\n0,x,2\n1,y,3\n",
         "the input has the column", DRPS_E_CONFIG},
        {"another format", "lor", "0 1:1\n1 2:1\n", "label,a\n0,x\n1,y\n", "", DRPS_E_FORMAT},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        char base[SCRATCH_PATH_BYTES];
        write_lines(scratch_path(s, "a.txt"), cases[i].first);
        begin(&c, s, "first", scratch_path(s, "a.txt"), cases[i].algo);
        case_compile(&c);
        begin_later(&c, s, &kinds[0], "later", "first", 1, base);
        write_lines(scratch_path(s, "b.txt"), cases[i].later);
        (void)snprintf(c.input, sizeof(c.input), "%s", scratch_path(s, "b.txt"));
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_index_run(drps_io_os(), &c.options, &c.result, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].says))
            fail_msg("%s: %d: %s", cases[i].name, rc, err.text);
    }
}

static void test_base_refuses_plans_that_cannot_be_one(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    char base[SCRATCH_PATH_BYTES];
    begin(&c, s, "first", input(s, "first.txt", &kinds[0], 50, 21), "topic");
    c.options.factors = 3;
    case_compile(&c);
    begin_later(&c, s, &kinds[0], "later", "first", 22, base);
    refused(&c, DRPS_E_CONFIG, "a row of its own");

    begin(&c, s, "first", input(s, "first.txt", &kinds[2], 50, 21), "bpr");
    case_compile(&c);
    begin_later(&c, s, &kinds[2], "later", "first", 22, base);
    refused(&c, DRPS_E_CONFIG, "negatives are drawn from all items");

    begin(&c, s, "first", input(s, "first.txt", &kinds[0], 50, 21), "lor");
    c.options.workers = 2;
    case_compile(&c);
    begin_later(&c, s, &kinds[0], "later", "first/rank-1", 22, base);
    refused(&c, DRPS_E_CONFIG, "the part of one rank");

    make_first(s, &kinds[0]);
    FILE *f = fopen(scratch_path(s, "first/names.rec"), "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, 400, SEEK_SET), 0);
    (void)fputs("damaged", f);
    assert_int_equal(fclose(f), 0);
    begin_later(&c, s, &kinds[0], "later", "first", 22, base);
    refused(&c, DRPS_E_CORRUPT, "names.rec");
}

/* Give a member of the first plan's manifest another value, and sign it anew. */
static void edit(struct scratch *s, const char *member, json_t *value)
{
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_path(s, "first/plan.json");
    json_t *j = json_load_file(path, 0, NULL);
    assert_non_null(j);
    assert_int_equal(json_object_set_new(j, member, value), 0);
    (void)json_object_del(j, "checksum");
    if (drps_manifest_write(drps_io_os(), path, j, &err)) fail_msg("%s", err.text);
    json_decref(j);
}

/* A base that was edited is refused, whatever it says. */
static void test_base_that_was_edited_is_refused(void **state)
{
    const struct {
        const char *member, *json, *says;
        const struct kind *kind;
        int code;
    } cases[] = {
        {"string_names", "true", "the columns of features", &kinds[0], DRPS_E_CONFIG},
        {"format", "\"ratings\"", "where columns have changed", &kinds[0], DRPS_E_CONFIG},
        {"format", "\"strange\"", "strange", &kinds[0], DRPS_E_CONFIG},
        {"algo", "\"strange\"", "its algorithm is not known", &kinds[0], DRPS_E_CONFIG},
        {"algo", "\"topic\"", "", &kinds[0], DRPS_E_CONFIG},
        {"algo", "\"ffm\"", "has none", &kinds[0], DRPS_E_CONFIG},
        {"classes", "[\"a\", \"b\"]", "", &kinds[0], DRPS_E_CORRUPT},
        {"base", "{\"plan\": \"0\", \"rows\": 1000000}", "rows of the base", &kinds[0],
         DRPS_E_CORRUPT},
        {"base", "{\"plan\": \"\", \"rows\": 1}", "has no id", &kinds[0], DRPS_E_CORRUPT},
        {"fields", "[\"user\"]", "the input has the column item", &kinds[2], DRPS_E_CONFIG},
        {"field_count", "1", "", &kinds[6], DRPS_E_CORRUPT},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        char base[SCRATCH_PATH_BYTES];
        struct drps_err err = DRPS_ERR_INIT;
        make_first(s, cases[i].kind);
        edit(s, cases[i].member, json_loads(cases[i].json, JSON_DECODE_ANY, NULL));
        begin_later(&c, s, cases[i].kind, "later", "first", 22, base);
        c.options.replay = 0.5;
        const int rc = drps_index_run(drps_io_os(), &c.options, &c.result, &err);
        if (rc != cases[i].code || !strstr(err.text, cases[i].says))
            fail_msg("%s %s: %d: %s", cases[i].member, cases[i].json, rc, err.text);
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_base_rows_stay_and_new_ones_follow),
        SCRATCH_TEST(test_base_bytes_do_not_depend_on_memory),
        SCRATCH_TEST(test_base_of_a_base),
        SCRATCH_TEST(test_base_features_are_seen),
        SCRATCH_TEST(test_base_settles_labels),
        SCRATCH_TEST(test_base_samples_are_replayed),
        SCRATCH_TEST(test_base_share_of_samples_is_replayed),
        SCRATCH_TEST(test_base_replays_in_order),
        SCRATCH_TEST(test_base_refuses_to_replay),
        SCRATCH_TEST(test_base_with_workers),
        SCRATCH_TEST(test_base_refuses_what_renumbers_rows),
        SCRATCH_TEST(test_base_has_no_lanes),
        SCRATCH_TEST(test_base_refuses_data_that_do_not_fit),
        SCRATCH_TEST(test_base_refuses_plans_that_cannot_be_one),
        SCRATCH_TEST(test_base_that_was_edited_is_refused),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
