/* Grid order: the serpentine and its numbers by themselves, then whole runs seen cell by cell. */
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
#include "index/grid.h"
#include "support/index_case.h"
#include "support/scratch.h"

/* --- the numbers
 * ----------------------------------------------------------------------------------------- */

static void test_grid_steps_to_a_neighbouring_cell(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 16, 61};
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        uint32_t groups = sizes[k];
        uint32_t cells = groups * groups;
        uint32_t *at = malloc(cells * sizeof(*at)); /* [cells] the cell visited at each time */
        assert_non_null(at);
        memset(at, 0xff, cells * sizeof(*at));
        for (uint32_t u = 0; u < groups; u++)
            for (uint32_t i = 0; i < groups; i++) {
                uint64_t when = grid_cell(u, i, groups);
                if (when >= cells || at[when] != UINT32_MAX)
                    fail_msg("%u groups: cell %u, %u is visited as number %" PRIu64, groups, u, i,
                             when);
                at[when] = u * groups + i;
            }
        for (uint32_t t = 1; t < cells; t++) {
            int rows = abs((int)(at[t] / groups) - (int)(at[t - 1] / groups));
            int columns = abs((int)(at[t] % groups) - (int)(at[t - 1] % groups));
            if (rows + columns != 1)
                fail_msg("%u groups: from cell %u to %u", groups, at[t - 1], at[t]);
        }
        free(at);
    }
}

static void test_grid_order_keeps_cells_apart(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 16, 100, GRID_GROUPS_MAX};
    struct random_source r = random_begin("grid_order");
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        uint64_t cells = (uint64_t)sizes[k] * sizes[k];
        for (int round = 0; round < 1000; round++) {
            uint64_t cell = random_below(&r, cells);
            uint64_t low = grid_order(cell, sizes[k], round % 2 ? random_u64(&r) : 0);
            uint64_t high = grid_order(cell, sizes[k], round % 3 ? random_u64(&r) : UINT64_MAX);
            uint64_t next = grid_order(cell + 1, sizes[k], 0);
            int fine = low >= grid_order(cell, sizes[k], 0);
            if (cell + 1 < cells) fine &= low < next && high < next;
            if (!fine)
                fail_msg("%u groups, cell %" PRIu64 ": %" PRIx64 " %" PRIx64 " %" PRIx64, sizes[k],
                         cell, low, high, next);
        }
    }
}

/* Random names and times fill groups and buckets evenly: within 6 sigma of the mean. */
static void test_grid_is_even(void **state)
{
    enum { N = 200000, BUCKETS = 32 };
    static const uint32_t sizes[] = {2, 3, 16, 100};
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        uint32_t g = sizes[k];
        uint32_t in_group[100] = {0};
        uint32_t in_bucket[BUCKETS] = {0};
        for (uint64_t n = 0; n < N; n++) {
            uint32_t user = grid_group(7, n, g);
            uint32_t item = grid_group(7, n + (UINT64_C(1) << 60), g);
            assert_true(user < g && item < g);
            in_group[user]++;
            in_bucket[grid_order(grid_cell(user, item, g), g, drps_rng_at(9, n)) >> 59]++;
        }
        for (uint32_t i = 0; i < g || i < BUCKETS; i++) {
            double groups = i < g ? in_group[i] - (double)N / g : 0;
            double buckets = i < BUCKETS ? in_bucket[i] - (double)N / BUCKETS : 0;
            if (groups * groups > 36.0 * N / g || buckets * buckets > 36.0 * N / BUCKETS)
                fail_msg("%u groups, number %u: %.0f too many in the group, %.0f in the bucket", g,
                         i, groups, buckets);
        }
    }
}

static void test_grid_seed_deals_groups(void **state)
{
    uint32_t same = 0;
    (void)state;
    for (uint64_t key = 0; key < 1000; key++)
        same += grid_group(1, key, 10) == grid_group(2, key, 10);
    assert_in_range(same, 50, 150); /* a tenth, within 5 sigma */
}

/* --- whole runs
 * ------------------------------------------------------------------------------------------ */

enum { NAMES = 40, SAMPLES = 20000 }; /* dense: every cell of 4 x 4 has all its users and items */

static void must_run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_index_run(drps_io_os(), &c->options, &c->result, &err)) fail_msg("%s", err.text);
    case_verify(c->options.out);
}

static void begin(struct case_run *c, struct scratch *s, uint32_t grid)
{
    case_begin(c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, NAMES, 21), "lmf");
    c->options.order = "grid";
    c->options.grid = grid;
    c->options.force = 1;
}

/* Users are rows 0 .. NAMES - 1, items follow. */
struct keys {
    uint64_t key[2 * NAMES];
};

static void find_keys(struct keys *k)
{
    for (unsigned i = 0; i < 2 * NAMES; i++) {
        char name[16];
        uint32_t check;
        int n = snprintf(name, sizeof(name), "%c%u", i < NAMES ? 'u' : 'i', i % NAMES);
        drps_name_hash(i / NAMES, name, (size_t)n, 0, &k->key[i], &check);
    }
}

/* The user and the item of a line "label key:1 key:1", in order of keys. */
static void parse_line(const struct keys *k, const char *line, unsigned *user, unsigned *item)
{
    uint64_t found[2];
    *user = *item = 2 * NAMES;
    if (sscanf(line, "%*f %" SCNu64 ":1 %" SCNu64 ":1", &found[0], &found[1]) != 2)
        fail_msg("'%s'", line);
    for (unsigned i = 0; i < 2 * NAMES; i++)
        if (k->key[i] == found[0] || k->key[i] == found[1]) *(i < NAMES ? user : item) = i;
    assert_true(*user < NAMES && *item < 2 * NAMES);
}

static uint64_t cell_of(const struct keys *k, const char *line, uint32_t groups)
{
    unsigned user, item;
    parse_line(k, line, &user, &item);
    return grid_cell(grid_group(1, k->key[user], groups), grid_group(1, k->key[item], groups),
                     groups);
}

static void test_grid_run_visits_cell_after_cell(void **state)
{
    static const uint32_t sizes[] = {1, 2, 4, 7, 40, 4096};
    struct scratch *s = *state;
    struct keys keys;
    find_keys(&keys);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        struct case_run c;
        begin(&c, s, sizes[k]);
        c.options.test_fraction = 0.2;
        must_run(&c);
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct case_lines found;
            uint64_t before = evaluation ? UINT64_MAX : 0;
            case_plan_lines(c.out, evaluation, 0, &found);
            assert_in_range(found.n, SAMPLES / 10, SAMPLES);
            for (size_t i = 0; i < found.n; i++) {
                uint64_t cell = cell_of(&keys, found.line[i], sizes[k]);
                if (evaluation ? cell > before : cell < before)
                    fail_msg("%u groups, evaluation %d, sample %zu: cell %" PRIu64
                             " after %" PRIu64,
                             sizes[k], evaluation, i, cell, before);
                before = cell;
            }
            case_lines_free(&found);
        }
    }
}

static void test_grid_run_conserves_samples(void **state)
{
    static const uint32_t sizes[] = {0, 1, 3, 4096};
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        struct case_run c;
        struct case_lines want, found;
        begin(&c, s, sizes[k]);
        must_run(&c);
        case_input_lines(c.input, 0, 0, 1, &want);
        case_plan_lines(c.out, 0, 1, &found);
        if (!case_lines_equal(&want, &found)) fail_msg("%u groups: samples changed", sizes[k]);
        case_lines_free(&want);
        case_lines_free(&found);
    }
}

static void test_grid_of_one_cell_is_the_shuffled_order(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines grid, shuffled;
    begin(&c, s, 1);
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &grid);
    c.options.order = "shuffled";
    c.options.grid = 0;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &shuffled);
    assert_true(case_lines_equal(&shuffled, &grid));
    case_lines_free(&grid);
    case_lines_free(&shuffled);
}

/* Samples of a cell are not in the order of the input. */
static void test_grid_run_shuffles_within_cells(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines grid, given;
    size_t ahead = 0;
    begin(&c, s, 40);
    c.options.order = "given";
    c.options.grid = 0;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &given);
    c.options.order = "grid";
    c.options.grid = 1;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &grid);
    for (size_t i = 0; i < grid.n; i++)
        ahead += strcmp(grid.line[i], given.line[i]) == 0;
    assert_true(ahead < SAMPLES / 100);
    case_lines_free(&grid);
    case_lines_free(&given);
}

static void test_grid_run_depends_on_the_seed_alone(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    begin(&c, s, 5);
    c.options.test_fraction = 0.1;
    for (int i = 0; i < 3; i++) {
        (void)snprintf(c.out, sizeof(c.out), "%s-%d", scratch_path(s, "plan"), i);
        c.options.memory_bytes = i == 1 ? 1 << 30 : 64 << 20;
        c.options.seed = i == 2 ? 2 : 1;
        must_run(&c);
    }
    assert_true(case_same_records(scratch_path(s, "plan-0"), scratch_path(s, "plan-1")));
    assert_false(case_same_records(scratch_path(s, "plan-0"), scratch_path(s, "plan-2")));
}

/* Let a window be a cell: the next one brings the rows of one group of users, or of items. */
static void test_grid_step_exchanges_one_group(void **state)
{
    enum { G = 4, CELLS = G * G };
    struct scratch *s = *state;
    struct keys keys;
    struct case_run c;
    struct case_lines found;
    static unsigned char touches[CELLS][2 * NAMES];
    unsigned size[2][G] = {{0}};
    find_keys(&keys);
    begin(&c, s, G);
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &found);
    for (size_t i = 0; i < found.n; i++) {
        unsigned user, item;
        parse_line(&keys, found.line[i], &user, &item);
        uint64_t cell = cell_of(&keys, found.line[i], G);
        touches[cell][user] = touches[cell][item] = 1;
    }
    for (unsigned i = 0; i < 2 * NAMES; i++)
        size[i / NAMES][grid_group(1, keys.key[i], G)]++;
    for (unsigned cell = 1; cell < CELLS; cell++) {
        unsigned row = cell / G;
        unsigned column = row % 2 ? G - 1 - cell % G : cell % G;
        unsigned fresh[2] = {0, 0};
        for (unsigned i = 0; i < 2 * NAMES; i++)
            fresh[i / NAMES] += touches[cell][i] && !touches[cell - 1][i];
        unsigned users = cell % G ? 0 : size[0][row];
        unsigned items = cell % G ? size[1][column] : 0;
        if (fresh[0] != users || fresh[1] != items)
            fail_msg("cell %u brings %u users and %u items instead of %u and %u", cell, fresh[0],
                     fresh[1], users, items);
    }
    case_lines_free(&found);
}

static uint64_t relay_bytes(const struct drps_index_result *r, uint64_t part)
{
    for (size_t i = 0; i < r->forecasts; i++) {
        const struct drps_forecast *f = &r->forecast[i];
        if (strcmp(f->store, "relay") == 0 &&
            f->memory_bytes == r->info.rows * r->info.row_bytes / part) {
            assert_true(f->feasible);
            return f->read_bytes;
        }
    }
    fail_msg("no forecast for 1/%" PRIu64, part);
    return 0;
}

static void test_grid_windows_move_fewer_rows(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    uint64_t shuffled[3];
    begin(&c, s, 16);
    (void)case_input(s, "input", CASE_RATINGS, 60000, 4000, 22);
    c.options.order = "shuffled";
    c.options.grid = 0;
    c.options.test_fraction = 0.1;
    must_run(&c);
    for (unsigned i = 0; i < 3; i++)
        shuffled[i] = relay_bytes(&c.result, 2u << i);
    c.options.order = "grid";
    must_run(&c);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t grid = relay_bytes(&c.result, 2u << i);
        if (grid > shuffled[i] / 2)
            fail_msg("memory 1/%u of the model: %" PRIu64 " bytes in a grid, %" PRIu64 " shuffled",
                     2u << i, grid, shuffled[i]);
    }
}

static void test_grid_is_in_the_plan(void **state)
{
    static const struct {
        const char *order;
        uint32_t grid, want;
    } cases[] = {{"grid", 3, 3}, {"grid", 0, GRID_GROUPS}, {"shuffled", 0, 0}, {"given", 0, 0}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        struct drps_plan *plan;
        struct drps_err err = DRPS_ERR_INIT;
        begin(&c, s, cases[i].grid);
        c.options.order = cases[i].order;
        must_run(&c);
        if (drps_plan_open(drps_io_os(), c.out, &plan, &err)) fail_msg("%s", err.text);
        assert_string_equal(plan->info.order, cases[i].order);
        assert_int_equal(plan->info.grid, cases[i].want);
        drps_plan_close(plan);
    }
}

static void test_grid_refuses_what_it_does_not_fit(void **state)
{
    static const struct {
        const char *name, *algo, *order, *input;
        uint32_t grid;
        const char *says;
    } cases[] = {
        {"fm", "fm", "grid", "a b 1\n", 0, "needs --algo lmf"},
        {"lor", "lor", "grid", "1 1:1\n0 2:1\n", 4, "needs --algo lmf"},
        {"another format", "lmf", "grid", "1 1:1\n0 2:1\n", 0, "needs ratings"},
        {"no order", "lmf", NULL, "a b 1\n", 4, "--order grid"},
        {"another order", "lmf", "given", "a b 1\n", 4, "--order grid"},
        {"too many groups", "lmf", "grid", "a b 1\n", GRID_GROUPS_MAX + 1, "1 and 4096"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, s, scratch_file(s, "input", cases[i].input, SIZE_MAX), cases[i].algo);
        c.options.order = cases[i].order;
        c.options.grid = cases[i].grid;
        int rc = drps_index_run(drps_io_os(), &c.options, &c.result, &err);
        if (rc != DRPS_E_CONFIG || !strstr(err.text, cases[i].says))
            fail_msg("%s: %d '%s'", cases[i].name, rc, err.text);
        if (folder_entries(s->dir) != 1) fail_msg("%s: something was left", cases[i].name);
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_steps_to_a_neighbouring_cell),
        cmocka_unit_test(test_grid_order_keeps_cells_apart),
        cmocka_unit_test(test_grid_is_even),
        cmocka_unit_test(test_grid_seed_deals_groups),
        SCRATCH_TEST(test_grid_run_visits_cell_after_cell),
        SCRATCH_TEST(test_grid_run_conserves_samples),
        SCRATCH_TEST(test_grid_of_one_cell_is_the_shuffled_order),
        SCRATCH_TEST(test_grid_run_shuffles_within_cells),
        SCRATCH_TEST(test_grid_run_depends_on_the_seed_alone),
        SCRATCH_TEST(test_grid_step_exchanges_one_group),
        SCRATCH_TEST(test_grid_windows_move_fewer_rows),
        SCRATCH_TEST(test_grid_is_in_the_plan),
        SCRATCH_TEST(test_grid_refuses_what_it_does_not_fit),
    };
    return cmocka_run_group_tests_name("index_grid", tests, NULL, NULL);
}
