/* The plan on disk: saved, opened, verified, and every change to it found. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/folder/drps_manifest.h"
#include "index/plan/drps_batch.h"
#include "index/blocks/builders/drps_builder.h"
#include "index/drps_index.h"
#include "index/verify/drps_verify.h"
#include "support/index_case.h"
#include "support/scratch.h"

static const char *const files[] = {"data.rec", "rows.rec",    "names.rec", "blocks.rec",
                                    "uses.rec", "windows.rec", "slots.rec"};
enum { FILES = sizeof(files) / sizeof(files[0]) };

/* A small plan at <scratch>/plan; its info as the run reported it. */
static struct drps_plan_info make(struct scratch *s, enum case_format format, const char *algo)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", format, 60, 20, 41), algo);
    c.options.batch_size = 10;
    c.options.test_fraction = 0.3;
    case_compile(&c);
    return c.result.info;
}

static struct drps_plan *open_plan(struct scratch *s)
{
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_open(drps_io_os(), scratch_path(s, "plan"), &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

static int open_and_verify(struct scratch *s, struct drps_err *err)
{
    struct drps_plan *plan;
    int rc = drps_plan_open(drps_io_os(), scratch_path(s, "plan"), &plan, err);
    if (rc == 0) rc = drps_plan_verify(plan, NULL, err);
    drps_plan_close(plan);
    return rc;
}

static void test_plan_gives_back_what_was_saved(void **state)
{
    struct scratch *s = *state;
    struct drps_plan_info info = make(s, CASE_RATINGS, "lmf");
    struct drps_plan *plan = open_plan(s);
    struct drps_plan_info found = plan->info;
    assert_int_equal(strlen(found.id), 16);
    memset(found.id, 0, sizeof(found.id)); /* known only when the files are written */
    memset(info.id, 0, sizeof(info.id));
#define SAME(field) assert_true(found.field == info.field)
    SAME(factors), SAME(dim), SAME(seed), SAME(samples), SAME(test_samples), SAME(rows), SAME(nnz),
        SAME(test_nnz);
    SAME(test_unseen), SAME(batch_size), SAME(batches), SAME(eval_batches), SAME(max_batch_samples);
    SAME(max_batch_rows), SAME(max_batch_nnz), SAME(max_body_bytes), SAME(row_bytes),
        SAME(block_bytes), SAME(blocks);
    SAME(max_block_rows), SAME(max_step_blocks), SAME(max_step_block_rows), SAME(windows),
        SAME(windows_later), SAME(window_budget_bytes), SAME(working_set_rows);
    SAME(max_window_rows), SAME(window_rows), SAME(window_rows_kept), SAME(window_rows_moved);
    SAME(memory_bytes), SAME(classification), SAME(string_names), SAME(tables_n), SAME(fields_n),
        SAME(label_mean), SAME(ones);
    assert_true(info.ones == 1); /* all values of ratings are */
    SAME(hash_seed), SAME(label_negative), SAME(label_positive);
#undef SAME
    assert_string_equal(found.algo, info.algo);
    assert_string_equal(found.loss, info.loss);
    assert_string_equal(found.format, info.format);
    assert_string_equal(found.order, info.order);
    assert_string_equal(found.blocks_by, info.blocks_by);
    uint64_t rows = 0;
    for (size_t i = 0; i < found.tables_n; i++) {
        assert_string_equal(found.tables[i].name, info.tables[i].name);
        assert_int_equal(found.tables[i].first, rows);
        rows += found.tables[i].rows;
    }
    assert_int_equal(rows, found.rows);
    assert_string_equal(plan->fields[0], "user");
    assert_string_equal(plan->fields[1], "item");
    drps_plan_close(plan);
    drps_plan_close(NULL);
}

/* Before --factors had its name, plan.json called it "rank". */
static void test_plan_of_before_says_rank(void **state)
{
    struct scratch *s = *state;
    const struct drps_plan_info info = make(s, CASE_RATINGS, "lmf");
    struct drps_plan *plan = open_plan(s);
    struct drps_err err = DRPS_ERR_INIT;
    json_t *j = json_deep_copy(plan->json);
    char *path = drps_path_join(plan->dir, "plan.json");
    assert_null(json_object_get(j, "rank"));
    assert_int_equal(json_object_set(j, "rank", json_object_get(j, "factors")), 0);
    assert_int_equal(json_object_del(j, "factors"), 0);
    if (drps_manifest_write(drps_io_os(), path, j, &err) < 0) fail_msg("%s", err.text);
    drps_plan_close(plan);
    plan = open_plan(s);
    assert_int_equal(info.factors, 16);
    assert_int_equal(plan->info.factors, info.factors);
    assert_non_null(json_object_get(plan->json, "factors"));
    assert_null(json_object_get(plan->json, "rank"));
    drps_plan_close(plan);
    json_decref(j);
    free(path);
}

/* Which share of values is 1 may be missing, as in plans of before it was counted, but is a share.
 */
static void test_plan_has_a_share_of_ones(void **state)
{
    static const struct {
        double ones; /* below 0: missing */
        int rc;
    } rows[] = {{0.25, 0}, {1, 0}, {-1, 0}, {1.01, DRPS_E_CORRUPT}};
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    (void)make(s, CASE_RATINGS, "lmf");
    struct drps_plan *plan = open_plan(s);
    json_t *whole = json_deep_copy(plan->json);
    char *path = drps_path_join(plan->dir, "plan.json");
    char *dir = strdup(plan->dir);
    drps_plan_close(plan);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *j = json_deep_copy(whole);
        if (rows[i].ones < 0)
            assert_int_equal(json_object_del(j, "ones"), 0);
        else
            assert_int_equal(json_object_set_new(j, "ones", json_real(rows[i].ones)), 0);
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        json_decref(j);
        const int rc = drps_plan_open(drps_io_os(), dir, &plan, &err);
        if (rc != rows[i].rc) fail_msg("%g: %s", rows[i].ones, err.text);
        if (rc == 0) assert_true(plan->info.ones == (rows[i].ones < 0 ? 0 : rows[i].ones));
        if (rc < 0) assert_non_null(strstr(err.text, "\"ones\" is no share"));
        drps_plan_close(plan);
    }
    json_decref(whole);
    free(dir);
    free(path);
}

/* How features are hashed must fit the algorithm, the fields and the names. */
static void test_plan_hashing_is_checked(void **state)
{
    static const struct {
        const char *name;
        enum case_format format;
        const char *algo, *hashing, *fault; /* NULL: it is taken */
    } rows[] = {
        {"signed", CASE_LIBSVM, "lor", "{\"kind\": \"signed\", \"bits\": 18}", NULL},
        {"oph", CASE_LIBSVM, "fm", "{\"kind\": \"oph\", \"bits\": 9, \"bins\": 4}", NULL},
        {"of fields", CASE_LIBFFM, "ffm", "{\"kind\": \"signed\", \"bits\": 8}", NULL},
        {"too many bits", CASE_LIBSVM, "lor", "{\"kind\": \"signed\", \"bits\": 31}", "30 bits"},
        {"of fields, oph", CASE_LIBFFM, "ffm", "{\"kind\": \"oph\", \"bits\": 8, \"bins\": 4}",
         "field of each"},
        {"of many bits and fields", CASE_LIBFFM, "ffm", "{\"kind\": \"signed\", \"bits\": 30}",
         "2^32"},
        {"ratings", CASE_RATINGS, "lmf", "{\"kind\": \"signed\", \"bits\": 8}", "strings"},
        {"names", CASE_CSV, "lor", "{\"kind\": \"signed\", \"bits\": 8}", "strings"},
        {"words", CASE_LIBSVM, "topic", "{\"kind\": \"signed\", \"bits\": 8}", "each word"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, s, case_input(s, "input", rows[i].format, 60, 20, 41), rows[i].algo);
        c.options.force = 1;
        case_compile(&c);
        struct drps_plan *plan = open_plan(s);
        json_t *j = json_deep_copy(plan->json);
        char *path = drps_path_join(plan->dir, "plan.json"), *dir = strdup(plan->dir);
        drps_plan_close(plan);
        assert_int_equal(json_object_set_new(j, "hashing", json_loads(rows[i].hashing, 0, NULL)),
                         0);
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        const int rc = drps_plan_open(drps_io_os(), dir, &plan, &err);
        if (rc != (rows[i].fault ? DRPS_E_CORRUPT : 0) ||
            (rows[i].fault && !strstr(err.text, rows[i].fault)))
            fail_msg("%s: %d %s", rows[i].name, rc, err.text);
        drps_plan_close(plan);
        json_decref(j);
        free(path);
        free(dir);
    }
}

/* Change tables[0] of a plan. */
static void set_table(json_t *j, const char *member, json_t *value)
{
    json_t *table = json_array_get(json_object_get(j, "tables"), 0);
    assert_int_equal(json_object_set_new(table, member, value), 0);
}

/* Move `n` rows from the second table to the first one. */
static void move_rows(json_t *j, json_int_t n)
{
    json_t *tables = json_object_get(j, "tables");
    json_t *a = json_array_get(tables, 0), *b = json_array_get(tables, 1);
    set_table(j, "rows", json_integer(json_integer_value(json_object_get(a, "rows")) + n));
    json_int_t first = json_integer_value(json_object_get(b, "first"));
    json_int_t rows = json_integer_value(json_object_get(b, "rows"));
    assert_int_equal(json_object_set_new(b, "first", json_integer(first + n)), 0);
    assert_int_equal(json_object_set_new(b, "rows", json_integer(rows - n)), 0);
}

#define NET "x = embedding 4\nh = full 3 x\nscore = full 1 h\n"

enum net_change { NET_TEXT, NET_NONE, NET_ROWS, NET_TABLE, NET_DIM, NET_FACTORS, NET_NUMBERS };

/* A net is whole, of the algorithm that has one, and fills the first rows of its plan. */
static void test_plan_net_is_checked(void **state)
{
    static const struct {
        const char *name, *algo;
        enum net_change change;
        const char *text; /* the net's */
        json_int_t value;
        const char *fault; /* NULL: it is taken */
    } rows[] = {
        {"as it is", "net", NET_TEXT, NET, 0, NULL},
        {"another remark", "net", NET_TEXT, NET "# as wide", 0, NULL},
        {"no text", "net", NET_NONE, "", 0, "the algorithm net with no net"},
        {"an empty text", "net", NET_TEXT, "", 0, "the algorithm net with no net"},
        {"no net's", "ffm", NET_TEXT, NET, 0, "the algorithm ffm with a net"},
        {"damaged", "net", NET_TEXT, "x = embeding 4\nscore = full 1 x\n", 0,
         "line 1: there is no layer `embeding`"},
        {"as wide as no score", "net", NET_TEXT, "x = embedding 4\nscore = full 2 x\n", 0,
         "line 2: score has 2 floats"},
        {"of other factors", "net", NET_TEXT,
         "x = embedding 5\nh = full 2 x\nh = full 3 h\nscore = full 1 h\n", 0,
         "for a net of 5 factors"},
        {"of more parameters", "net", NET_TEXT, "x = embedding 4\nh = full 4 x\nscore = full 1 h\n",
         0, "for a net of 4 factors and"},
        {"as large, without fields", "net", NET_TEXT,
         "x = bag 4\nh = full 11 x\nscore = full 1 h\n", 0, "for a net of 4 factors and"},
        {"a row more", "net", NET_ROWS, NET, 1, "for a net of 4 factors and"},
        {"a row less", "net", NET_ROWS, NET, -1, "for a net of 4 factors and"},
        {"no table", "net", NET_TABLE, NET, 0, "4 factors, 5 floats a row, 0 rows"},
        {"another dim", "net", NET_DIM, NET, 6, "4 factors, 6 floats a row"},
        {"other factors", "net", NET_FACTORS, NET, 5, "factors"},
        {"numbers in place of features", "net", NET_NUMBERS, NET, 0, "for a net of 4 factors and"},
        {"numbers of no net", "ffm", NET_NUMBERS, NULL, 0, "numbers by place, and no net"},
        {"an intercept of two rows", "lor", NET_ROWS, NULL, 1, "an intercept of 2 rows"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        const int due = strcmp(rows[i].algo, "net") == 0;
        case_begin(&c, s, case_input(s, "input", CASE_LIBFFM, 60, 20, 41), rows[i].algo);
        scratch_write(scratch_path(s, "net.txt"), NET, sizeof(NET) - 1);
        c.options.net = due ? scratch_path(s, "net.txt") : NULL;
        c.options.force = 1;
        case_compile(&c);
        struct drps_plan *plan = open_plan(s);
        json_t *j = json_deep_copy(plan->json);
        char *path = drps_path_join(plan->dir, "plan.json"), *dir = strdup(plan->dir);
        drps_plan_close(plan);
        if (rows[i].change == NET_NONE) assert_int_equal(json_object_del(j, "net"), 0);
        if (rows[i].change == NET_TEXT)
            assert_int_equal(json_object_set_new(j, "net", json_string(rows[i].text)), 0);
        if (rows[i].change == NET_ROWS) move_rows(j, rows[i].value);
        if (rows[i].change == NET_NUMBERS)
            assert_int_equal(json_object_set_new(j, "numbers", json_true()), 0);
        if (rows[i].change == NET_TABLE) set_table(j, "name", json_string("w"));
        if (rows[i].change == NET_DIM)
            assert_int_equal(json_object_set_new(j, "dim", json_integer(rows[i].value)), 0);
        if (rows[i].change == NET_FACTORS)
            assert_int_equal(json_object_set_new(j, "factors", json_integer(rows[i].value)), 0);
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        const int rc = drps_plan_open(drps_io_os(), dir, &plan, &err);
        if (rc != (rows[i].fault ? DRPS_E_CORRUPT : 0) ||
            (rows[i].fault && !strstr(err.text, rows[i].fault)))
            fail_msg("%s: %d %s", rows[i].name, rc, err.text);
        drps_plan_close(plan);
        json_decref(j);
        free(path);
        free(dir);
    }
}

/* Plans of before some members had their names of today. */
static void test_plan_of_older_names_opens(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_plan_info info = make(s, CASE_RATINGS, "lmf");
    struct drps_plan *plan = open_plan(s);
    json_t *j = plan->json;
    assert_true(info.eval_batches > 0);
    assert_int_equal(json_object_set(j, "eval_batches", json_object_get(j, "test_batches")), 0);
    assert_int_equal(json_object_del(j, "test_batches"), 0);
    assert_int_equal(drps_manifest_write(drps_io_os(), scratch_path(s, "plan/plan.json"), j, &err),
                     0);
    drps_plan_close(plan);
    plan = open_plan(s);
    assert_true(plan->info.eval_batches == info.eval_batches);
    assert_non_null(json_object_get(plan->json, "test_batches"));
    assert_null(json_object_get(plan->json, "eval_batches"));
    drps_plan_close(plan);
}

/* ---- Ranks that are not alike ---- */

/* Change a member of `cluster` in a plan's manifest, and open it: a part's by its rank's name. */
static int open_changed(struct scratch *s, const char *folder, const char *member, json_int_t value,
                        struct drps_err *err)
{
    struct drps_plan *plan;
    json_t *j = NULL;
    char dir[SCRATCH_PATH_BYTES];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, folder));
    char *path = drps_path_join(dir, "plan.json");
    assert_int_equal(drps_plan_open(drps_io_os(), dir, &plan, err), 0);
    j = json_deep_copy(plan->json);
    drps_plan_close(plan);
    json_t *in = strcmp(member, "rows") == 0 ? j : json_object_get(j, "cluster");
    assert_int_equal(json_object_set_new(in, member, json_integer(value)), 0);
    assert_int_equal(drps_manifest_write(drps_io_os(), path, j, err), 0);
    json_decref(j);
    free(path);
    const int rc = drps_plan_open(drps_io_os(), dir, &plan, err);
    drps_plan_close(plan);
    return rc;
}

static void make_shaped(struct scratch *s, uint32_t workers, uint32_t servers, int separate)
{
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 60, 20, 41), "lor");
    c.options.batch_size = 10;
    c.options.workers = workers;
    c.options.servers = servers;
    c.options.separate = separate;
    c.options.force = 1;
    case_compile(&c);
}

/* As many servers as workers are said by no member: such a plan is as it always was. */
static void test_plan_says_how_many_servers(void **state)
{
    static const struct {
        uint32_t workers, servers;
        int separate;
        uint32_t ranks, first_worker;
        const char *text;
    } cases[] = {{3, 3, 0, 3, 0, "3 workers"},
                 {3, 2, 0, 3, 0, "3 workers and 2 servers on 3 ranks"},
                 {1, 2, 0, 2, 0, "1 worker and 2 servers on 2 ranks"},
                 {2, 1, 1, 3, 1, "2 workers and 1 server on 3 ranks"},
                 {2, 2, 1, 4, 2, "2 workers and 2 servers on 4 ranks"}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[DRPS_PLAN_RANKS_TEXT_BYTES];
        make_shaped(s, cases[i].workers, cases[i].servers, cases[i].separate);
        struct drps_plan *plan = open_plan(s);
        const json_t *cluster = json_object_get(plan->json, "cluster");
        const struct drps_plan_ranks *ranks = &plan->info.ranks;
        assert_int_equal(json_object_get(cluster, "servers") != NULL, i > 0);
        assert_int_equal(json_object_get(cluster, "first_worker") != NULL, i > 0);
        assert_int_equal(ranks->workers, cases[i].workers);
        assert_int_equal(ranks->servers, cases[i].servers);
        assert_int_equal(ranks->count, cases[i].ranks);
        assert_int_equal(ranks->first_worker, cases[i].first_worker);
        assert_string_equal(drps_plan_ranks_text(ranks, text), cases[i].text);
        drps_plan_close(plan);
    }
}

static void test_plan_bounds_its_ranks(void **state)
{
    static const struct {
        const char *folder, *member;
        json_int_t value;
        const char *says;
    } cases[] = {{"plan", "servers", 0, "\"servers\" is 0"},
                 {"plan", "servers", 1025, "\"servers\" is 1025"},
                 {"plan", "workers", 0, "\"workers\" is 0"},
                 {"plan", "workers", 1025, "\"workers\" is 1025"},
                 {"plan", "first_worker", 1, "\"first_worker\" is 1"},
                 {"plan", "first_worker", 3, "\"first_worker\" is 3"},
                 {"plan/rank-2", "rank", 3, "\"rank\" is 3"},
                 {"plan/rank-2", "rows", 1, "\"rows\" is 1"},
                 {"plan/rank-2", "max_round_rows", 1, "\"max_round_rows\" is 1"},
                 {"plan/rank-0", "rows", 0, "\"rows\" is 0"},
                 {"plan/rank-2", "rank", 1, "\"rows\" is 0"}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        make_shaped(s, 3, 2, 0);
        const int rc = open_changed(s, cases[i].folder, cases[i].member, cases[i].value, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, cases[i].says))
            fail_msg("%s %s: %d '%s'", cases[i].folder, cases[i].member, rc, err.text);
    }
}

static void test_plan_blocks_come_back(void **state)
{
    enum { BLOCKS = 200000 }; /* several records */
    struct scratch *s = *state;
    uint32_t *first = malloc((BLOCKS + 1) * sizeof(*first));
    uint32_t *back;
    struct drps_err err = DRPS_ERR_INIT;
    assert_non_null(first);
    first[0] = 0;
    for (uint32_t i = 0; i < BLOCKS; i++)
        first[i + 1] = first[i] + 1 + i % 300 * (i % 7 == 0);
    assert_int_equal(drps_blocks_write(drps_io_os(), s->dir, first, BLOCKS, &err), 0);
    struct drps_plan plan = {.io = drps_io_os(), .dir = s->dir};
    plan.info.blocks = BLOCKS;
    plan.info.rows = first[BLOCKS];
    if (drps_plan_blocks(&plan, &back, &err)) fail_msg("%s", err.text);
    assert_memory_equal(back, first, (BLOCKS + 1) * sizeof(*first));
    free(back);
    static const int64_t off[][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {-200000, 0}};
    for (size_t i = 0; i < 5; i++) {
        plan.info.blocks = (uint64_t)(BLOCKS + off[i][0]);
        plan.info.rows = (uint64_t)((int64_t)first[BLOCKS] + off[i][1]);
        drps_err_clear(&err);
        assert_int_equal(drps_plan_blocks(&plan, &back, &err), DRPS_E_CORRUPT);
        assert_null(back);
        assert_non_null(strstr(err.text, "blocks.rec"));
    }
    free(first);
}

/* One bit at a time: everywhere in the small parts, in steps through the rest. */
static void test_plan_verify_finds_every_flipped_byte(void **state)
{
    struct scratch *s = *state;
    (void)make(s, CASE_LIBSVM, "lor");
    assert_int_equal(open_and_verify(s, NULL), 0);
    for (size_t i = 0; i < FILES; i++) {
        char name[64];
        size_t n;
        (void)snprintf(name, sizeof(name), "plan/%s", files[i]);
        const char *path = scratch_path(s, name);
        char *data = scratch_read(path, &n);
        int fd = open(path, O_WRONLY);
        assert_true(fd >= 0);
        for (size_t at = 0; at<n; at += n> 500 ? 13 : 1) {
            struct drps_err err = DRPS_ERR_INIT;
            char flipped = (char)(data[at] ^ 1 << at % 8);
            assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
            int rc = open_and_verify(s, &err);
            if (rc != DRPS_E_CORRUPT || !strstr(err.text, files[i]))
                fail_msg("%s, byte %zu: %d (%s)", files[i], at, rc, err.text);
            assert_int_equal(pwrite(fd, &data[at], 1, (off_t)at), 1);
        }
        (void)close(fd);
        free(data);
    }
    assert_int_equal(open_and_verify(s, NULL), 0);
}

static void test_plan_verify_finds_missing_and_swapped_files(void **state)
{
    struct scratch *s = *state;
    (void)make(s, CASE_LIBSVM, "lor");
    for (size_t i = 0; i < FILES; i++) {
        char name[64];
        struct drps_err err = DRPS_ERR_INIT;
        (void)snprintf(name, sizeof(name), "plan/%s", files[i]);
        assert_int_equal(rename(scratch_path(s, name), scratch_path(s, "aside")), 0);
        assert_int_equal(open_and_verify(s, &err), -ENOENT);
        assert_non_null(strstr(err.text, files[i]));
        assert_int_equal(rename(scratch_path(s, "aside"), scratch_path(s, name)), 0);
    }
    assert_int_equal(rename(scratch_path(s, "plan/data.rec"), scratch_path(s, "aside")), 0);
    assert_int_equal(rename(scratch_path(s, "plan/rows.rec"), scratch_path(s, "plan/data.rec")), 0);
    assert_int_equal(rename(scratch_path(s, "aside"), scratch_path(s, "plan/rows.rec")), 0);
    assert_int_equal(open_and_verify(s, NULL), DRPS_E_CORRUPT);
}

/* Every byte of plan.json changed: an error, or a spelling of the very same content (1e-5 as 1E-5).
 */
static void test_plan_changed_manifest_is_found(void **state)
{
    struct scratch *s = *state;
    struct drps_plan_info info;
    char path[SCRATCH_PATH_BYTES];
    size_t n;
    size_t same = 0;
    (void)snprintf(path, sizeof(path), "%s/plan/plan.json", s->dir);
    (void)make(s, CASE_RATINGS, "lmf");
    struct drps_plan *plan = open_plan(s);
    info = plan->info;
    drps_plan_close(plan);
    char *data = scratch_read(path, &n);
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (size_t at = 0; at < n; at++) {
        struct drps_err err = DRPS_ERR_INIT;
        char flipped = (char)(data[at] ^ 1 << at % 7);
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        int rc = drps_plan_open(drps_io_os(), scratch_path(s, "plan"), &plan, &err);
        if (rc == 0) {
            same++;
            if (memcmp(&plan->info, &info, sizeof(info)) != 0)
                fail_msg("byte %zu '%c': not found", at, data[at]);
        } else if (rc != DRPS_E_CORRUPT && rc != DRPS_E_VERSION) {
            fail_msg("byte %zu: %d (%s)", at, rc, err.text);
        } else if (!strstr(err.text, "plan.json")) {
            fail_msg("byte %zu: '%s'", at, err.text);
        }
        drps_plan_close(plan);
        assert_int_equal(pwrite(fd, &data[at], 1, (off_t)at), 1);
    }
    (void)close(fd);
    assert_true(same < 10);
    char *longer = malloc(n + 3);
    assert_non_null(longer);
    memcpy(longer, data, n);
    memcpy(longer + n, "\0 x", 3);
    scratch_write(path, longer, n + 3);
    assert_int_equal(open_and_verify(s, NULL), DRPS_E_CORRUPT);
    for (size_t cut = 0; cut < n; cut += 7) {
        scratch_write(path, data, cut);
        assert_int_equal(open_and_verify(s, NULL), DRPS_E_CORRUPT);
    }
    free(longer);
    free(data);
}

static void test_plan_other_version_is_refused(void **state)
{
    static const char manifest[] =
        "{\"kind\": \"drps-plan\", \"version\": 5, \"checksum\": \"0000000000000000\"}";
    static const char other[] = "{\"kind\": \"drps-model\", \"version\": 1}";
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    (void)make(s, CASE_LIBSVM, "lor");
    scratch_write(scratch_path(s, "plan/plan.json"), manifest, strlen(manifest));
    assert_int_equal(open_and_verify(s, &err), DRPS_E_VERSION);
    assert_non_null(strstr(err.text, "version 5; this program reads 4"));
    drps_err_clear(&err);
    scratch_write(scratch_path(s, "plan/plan.json"), other, strlen(other));
    assert_int_equal(open_and_verify(s, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "does not describe a drps plan"));
}

static void test_plan_no_plan_says_how_to_make_one(void **state)
{
    struct scratch *s = *state;
    const char *paths[] = {s->dir, scratch_path(s, "missing"), scratch_file(s, "file", "x", 1)};
    for (size_t i = 0; i < 3; i++) {
        struct drps_plan *plan;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(drps_plan_open(drps_io_os(), paths[i], &plan, &err), DRPS_E_NOT_FOUND);
        assert_null(plan);
        assert_non_null(
            strstr(err.text, i == 1 ? "No such file or directory" : "make one with drps-index"));
        assert_non_null(strstr(err.text, paths[i]));
    }
}

static void test_blocks_builders_cut_tables(void **state)
{
    static const struct {
        const char *name, *builder;
        uint32_t max_rows;
        uint32_t rows[3];
        size_t tables, blocks;
        uint32_t first[8];
    } cases[] = {
        {.name = "none",
         .builder = "none",
         .max_rows = 512,
         .rows = {1, 3},
         .tables = 2,
         .blocks = 4,
         .first = {0, 1, 2, 3, 4}},
        {.name = "pattern",
         .builder = "pattern",
         .max_rows = 4,
         .rows = {1, 9},
         .tables = 2,
         .blocks = 4,
         .first = {0, 1, 5, 9, 10}},
        {.name = "whole blocks",
         .builder = "pattern",
         .max_rows = 4,
         .rows = {4, 8},
         .tables = 2,
         .blocks = 3,
         .first = {0, 4, 8, 12}},
        {.name = "one row a block",
         .builder = "pattern",
         .max_rows = 1,
         .rows = {3},
         .tables = 1,
         .blocks = 3,
         .first = {0, 1, 2, 3}},
        {.name = "an empty table",
         .builder = "pattern",
         .max_rows = 4,
         .rows = {1, 0, 2},
         .tables = 3,
         .blocks = 2,
         .first = {0, 1, 3}},
        {.name = "no rows",
         .builder = "pattern",
         .max_rows = 4,
         .rows = {0},
         .tables = 1,
         .blocks = 0,
         .first = {0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct block_options options = {.max_rows = cases[i].max_rows};
        struct block_tables tables = {.n = cases[i].tables};
        struct block_layout got;
        for (size_t t = 0; t < tables.n; t++)
            tables.first[t + 1] = tables.first[t] + cases[i].rows[t];
        assert_int_equal(
            drps_block_builder_find(cases[i].builder)->build(NULL, &tables, &options, &got, NULL),
            0);
        assert_null(got.order);
        if (got.blocks != cases[i].blocks ||
            memcmp(got.first, cases[i].first, (got.blocks + 1) * sizeof(*got.first)) != 0)
            fail_msg("%s: %zu blocks", cases[i].name, got.blocks);
        drps_block_layout_free(&got);
    }
    assert_null(drps_block_builder_find("nobody"));
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

/* Samples have the numbers that plan.json says, all of them or none. */
static void test_plan_numbers_of_a_batch(void **state)
{
    static const float numbers[6] = {0}, label[2] = {1, 1};
    static const uint16_t local[2] = {1, 1};
    struct drps_plan_info info = {
        .field_count = 3, .numbers = 1, .max_batch_samples = 2, .max_batch_rows = 2, .rows = 2};
    struct drps_batch b = {.samples = 2,
                           .rows = 2,
                           .nnz = 2,
                           .labels = label,
                           .per_sample = 1,
                           .local16 = local,
                           .numbers = {.each = 3, .floats = numbers}};
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_plan_numbers_each(&info), 3);
    assert_int_equal(drps_plan_entry_fields(&info), 0);
    assert_int_equal(drps_plan_check_batch(&info, &b, &err), 0);
    for (uint32_t each = 0; each < 5; each++) {
        b.numbers.each = each;
        assert_int_equal(drps_plan_check_batch(&info, &b, &err), each == 3 ? 0 : DRPS_E_CORRUPT);
        drps_err_clear(&err);
    }
    b.numbers.each = 3;
    b.field_count = 3; /* entries have none */
    assert_int_equal(drps_plan_check_batch(&info, &b, &err), DRPS_E_CORRUPT);
    drps_err_clear(&err);
    info.numbers = 0;
    assert_int_equal(drps_plan_numbers_each(&info), 0);
    assert_int_equal(drps_plan_check_batch(&info, &b, &err), DRPS_E_CORRUPT);
    b.numbers.each = 0;
    drps_err_clear(&err);
    assert_int_equal(drps_plan_check_batch(&info, &b, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_numbers_of_a_batch),
        SCRATCH_TEST(test_plan_gives_back_what_was_saved),
        SCRATCH_TEST(test_plan_of_before_says_rank),
        SCRATCH_TEST(test_plan_has_a_share_of_ones),
        SCRATCH_TEST(test_plan_hashing_is_checked),
        SCRATCH_TEST(test_plan_net_is_checked),
        SCRATCH_TEST(test_plan_of_older_names_opens),
        SCRATCH_TEST(test_plan_says_how_many_servers),
        SCRATCH_TEST(test_plan_bounds_its_ranks),
        SCRATCH_TEST(test_plan_blocks_come_back),
        SCRATCH_TEST(test_plan_verify_finds_every_flipped_byte),
        SCRATCH_TEST(test_plan_verify_finds_missing_and_swapped_files),
        SCRATCH_TEST(test_plan_changed_manifest_is_found),
        SCRATCH_TEST(test_plan_other_version_is_refused),
        SCRATCH_TEST(test_plan_no_plan_says_how_to_make_one),
        cmocka_unit_test(test_blocks_builders_cut_tables),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
