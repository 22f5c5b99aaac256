/* Grid order: the serpentine and its numbers by themselves, then whole runs seen cell by cell. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/step/drps_windows.h"
#include "index/drps_index.h"
#include "index/order/drps_grid.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/drps_moves.h"
#include "support/index_case.h"
#include "support/owned_io.h"
#include "support/scratch.h"

/* --- the numbers
 * ----------------------------------------------------------------------------------------- */

static void test_grid_steps_to_a_neighbouring_cell(void **state)
{
    static const struct grid sizes[] = {{1, 1}, {2, 2}, {3, 3},  {16, 16}, {61, 61},
                                        {1, 7}, {7, 1}, {3, 40}, {40, 3},  {4096, 2}};
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const struct grid *g = &sizes[k];
        uint32_t cells = g->users * g->items;
        uint32_t *at = malloc(cells * sizeof(*at)); /* [cells] the cell visited at each time */
        uint32_t turns = 0;                         /* steps to another group of the outer table */
        assert_non_null(at);
        memset(at, 0xff, cells * sizeof(*at));
        for (uint32_t u = 0; u < g->users; u++)
            for (uint32_t i = 0; i < g->items; i++) {
                uint64_t when = grid_cell(g, u, i);
                if (when >= cells || at[when] != UINT32_MAX)
                    fail_msg("%u x %u: cell %u, %u is visited as number %" PRIu64, g->users,
                             g->items, u, i, when);
                at[when] = u * g->items + i;
            }
        for (uint32_t t = 1; t < cells; t++) {
            int users = abs((int)(at[t] / g->items) - (int)(at[t - 1] / g->items));
            int items = abs((int)(at[t] % g->items) - (int)(at[t - 1] % g->items));
            if (users + items != 1)
                fail_msg("%u x %u: from cell %u to %u", g->users, g->items, at[t - 1], at[t]);
            turns += g->users <= g->items ? (uint32_t)users : (uint32_t)items;
        }
        assert_int_equal(turns, (g->users < g->items ? g->users : g->items) - 1);
        free(at);
    }
}

static void test_grid_order_keeps_cells_apart(void **state)
{
    static const struct grid sizes[] = {
        {1, 1}, {2, 2}, {3, 5}, {16, 16}, {100, 37}, {DRPS_GRID_GROUPS_MAX, DRPS_GRID_GROUPS_MAX}};
    struct random_source r = random_begin("grid_order");
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const struct grid *g = &sizes[k];
        uint64_t cells = (uint64_t)g->users * g->items;
        for (int round = 0; round < 1000; round++) {
            uint64_t cell = random_below(&r, cells);
            uint64_t low = grid_order(g, 1, cell, round % 2 ? random_u64(&r) : 0);
            uint64_t high = grid_order(g, 1, cell, round % 3 ? random_u64(&r) : UINT64_MAX);
            uint64_t next = grid_order(g, 1, cell + 1, 0);
            int fine = low >= grid_order(g, 1, cell, 0);
            if (cell + 1 < cells) fine &= low < next && high < next;
            if (!fine)
                fail_msg("%u x %u, cell %" PRIu64 ": %" PRIx64 " %" PRIx64 " %" PRIx64, g->users,
                         g->items, cell, low, high, next);
        }
    }
}

/* Random names and times fill groups evenly, to one row, and buckets within 6 sigma. */
static void test_grid_is_even(void **state)
{
    enum { N = 200000, BUCKETS = 32 };
    static const struct grid sizes[] = {{2, 2}, {3, 7}, {16, 16}, {100, 3}};
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const struct grid *g = &sizes[k];
        uint32_t in_group[100] = {0};
        uint32_t in_bucket[BUCKETS] = {0};
        for (uint64_t n = 0; n < N; n++) {
            uint32_t user = grid_group(n, N, g->users);
            uint32_t item = grid_group(drps_rng_at(3, n) % 1000, 1000, g->items);
            assert_true(user < g->users && item < g->items);
            in_group[user]++;
            in_bucket[grid_order(g, 1, grid_cell(g, user, item), drps_rng_at(9, n)) >> 59]++;
        }
        for (uint32_t i = 0; i < g->users; i++)
            assert_in_range(in_group[i], N / g->users, N / g->users + 1);
        for (uint32_t i = 0; i < BUCKETS; i++) {
            double off = in_bucket[i] - (double)N / BUCKETS;
            if (off * off > 36.0 * N / BUCKETS)
                fail_msg("%u x %u: %.0f too many in bucket %u", g->users, g->items, off, i);
        }
    }
}

/* --- choosing
 * -------------------------------------------------------------------------------------------- */

static const struct grid_input tall = {
    .users = 60000, .items = 20000, .samples = 5000000, .batch_size = 1000, .room_rows = 20000};

static uint32_t outer_groups(const struct grid *g)
{
    return g->users < g->items ? g->users : g->items;
}

/* A quarter of the rows at a time: four groups of the users stay beside all items that pass by, and
 * move 60 + 4 x 20 thousand rows; so do two groups of the items, which are more of the memory. */
static void test_grid_choice_by_hand(void **state)
{
    struct grid_input in = tall;
    (void)state;
    struct grid g = drps_grid_choose(&in);
    assert_int_equal(g.users, 4);
    assert_in_range(g.items, 5, 100);
    in.room_rows = 30000; /* all items stay, users pass by once */
    g = drps_grid_choose(&in);
    assert_int_equal(g.items, 1);
    assert_true(g.users > 4);
}

/* 100 ratings a user and more: every outer row is used again and again during its pass. */
static void test_grid_choice_keeps_the_outer_group_in_memory(void **state)
{
    struct grid_input in = tall;
    uint32_t before = 0;
    (void)state;
    for (in.test_samples = 0; in.test_samples <= 500000; in.test_samples += 500000)
        for (in.room_rows = 40000; in.room_rows >= 4000; in.room_rows = in.room_rows * 3 / 4) {
            struct grid g = drps_grid_choose(&in);
            const uint64_t outer = (g.users < g.items ? in.users : in.items) / outer_groups(&g);
            if (outer > in.room_rows || outer < in.room_rows / 4)
                fail_msg("%u x %u for %" PRIu64 " rows", g.users, g.items, in.room_rows);
            before = outer_groups(&g);
        }
    assert_true(before > 4);
}

static void test_grid_choice_does_not_care_which_table_is_called_users(void **state)
{
    struct grid_input in = tall, other = tall;
    (void)state;
    for (in.room_rows = 40000; in.room_rows >= 2500; in.room_rows /= 2) {
        other.room_rows = in.room_rows;
        other.users = in.items;
        other.items = in.users;
        struct grid a = drps_grid_choose(&in), b = drps_grid_choose(&other);
        assert_int_equal(a.users, b.items);
        assert_int_equal(a.items, b.users);
    }
}

static void test_grid_choice_for_room_for_all_is_for_a_twelfth(void **state)
{
    struct grid_input in = tall;
    (void)state;
    in.items = 24000;
    in.room_rows = 7000;
    struct grid_input all = in;
    all.room_rows = 84000;
    struct grid a = drps_grid_choose(&in), b = drps_grid_choose(&all);
    assert_memory_equal(&a, &b, sizeof(a));
    assert_true(a.users > 1 && a.items > 1);
}

static void test_grid_choice_has_room_for_two_batches(void **state)
{
    struct grid_input in = tall, less = tall;
    (void)state;
    in.room_rows = 2000; /* users and items of two batches of 500 */
    less.room_rows = 10;
    struct grid a = drps_grid_choose(&in), b = drps_grid_choose(&less);
    assert_memory_equal(&a, &b, sizeof(a));
}

static void test_grid_choice_stays_within_bounds(void **state)
{
    static const struct grid_input inputs[] = {
        {.users = 1, .items = 1, .samples = 1, .batch_size = 1, .room_rows = 1},
        {.users = 1, .items = 1000, .samples = 10, .batch_size = 100, .room_rows = 2},
        {.users = 4000000000, .items = 200000000, .samples = 1, .batch_size = 1, .room_rows = 9},
        {.users = 4000000000,
         .items = 200000000,
         .samples = UINT64_MAX,
         .test_samples = 1,
         .batch_size = 1,
         .room_rows = 9},
        {.users = 60000, .items = 20000, .samples = 5, .batch_size = 4000000, .room_rows = 64},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
        struct grid g = drps_grid_choose(&inputs[i]);
        if (g.users - 1 >= DRPS_GRID_GROUPS_MAX || g.items - 1 >= DRPS_GRID_GROUPS_MAX)
            fail_msg("input %zu: %u x %u", i, g.users, g.items);
    }
}

/* --- whole runs
 * ------------------------------------------------------------------------------------------ */

enum { NAMES = 40, SAMPLES = 20000 }; /* dense: every cell of 4 x 4 has all its users and items */

static void must_run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct owned_io o;
    owned_io_init(&o, &drps_plan_kind);
    if (drps_index_run(&o.io, &c->options, &c->result, &err)) fail_msg("%s", err.text);
    case_verify(c->options.out);
}

static void begin(struct case_run *c, struct scratch *s, uint32_t users, uint32_t items)
{
    case_begin(c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, NAMES, 21), "lmf");
    c->options.order = "grid";
    c->options.grid_users = users;
    c->options.grid_items = items;
    c->options.force = 1;
}

/* Users are rows 0 .. NAMES - 1, items follow. */
struct keys {
    uint64_t key[2 * NAMES];
    uint32_t rank[2 * NAMES]; /* in their table, by seed 1 */
};

static void find_keys(struct keys *k)
{
    for (unsigned i = 0; i < 2 * NAMES; i++) {
        char name[16];
        uint32_t check;
        int n = snprintf(name, sizeof(name), "%c%u", i < NAMES ? 'u' : 'i', i % NAMES);
        drps_name_hash(i / NAMES, name, (size_t)n, 0, &k->key[i], &check);
    }
    for (unsigned i = 0; i < 2 * NAMES; i++) {
        k->rank[i] = 0;
        for (unsigned j = i / NAMES * NAMES; j < (i / NAMES + 1) * NAMES; j++)
            k->rank[i] += grid_hash(1, k->key[j]) < grid_hash(1, k->key[i]);
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

static uint64_t cell_of(const struct keys *k, const char *line, const struct grid *g)
{
    unsigned user, item;
    parse_line(k, line, &user, &item);
    return grid_cell(g, grid_group(k->rank[user], NAMES, g->users),
                     grid_group(k->rank[item], NAMES, g->items));
}

static void test_grid_run_visits_cell_after_cell(void **state)
{
    static const struct grid sizes[] = {{1, 1}, {2, 2}, {4, 7}, {7, 2}, {40, 40}, {4096, 4096}};
    struct scratch *s = *state;
    struct keys keys;
    find_keys(&keys);
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        struct case_run c;
        begin(&c, s, sizes[k].users, sizes[k].items);
        c.options.test_fraction = 0.2;
        must_run(&c);
        for (int evaluation = 0; evaluation < 2; evaluation++) {
            struct case_lines found;
            uint64_t before = evaluation ? UINT64_MAX : 0;
            case_plan_lines(c.out, evaluation, 0, &found);
            assert_in_range(found.n, SAMPLES / 10, SAMPLES);
            for (size_t i = 0; i < found.n; i++) {
                uint64_t cell = cell_of(&keys, found.line[i], &sizes[k]);
                if (evaluation ? cell > before : cell < before)
                    fail_msg("%u x %u, evaluation %d, sample %zu: cell %" PRIu64 " after %" PRIu64,
                             sizes[k].users, sizes[k].items, evaluation, i, cell, before);
                before = cell;
            }
            case_lines_free(&found);
        }
    }
}

static void test_grid_run_conserves_samples(void **state)
{
    static const struct grid sizes[] = {{0, 0}, {1, 1}, {3, 5}, {4096, 4096}};
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        struct case_run c;
        struct case_lines want, found;
        begin(&c, s, sizes[k].users, sizes[k].items);
        must_run(&c);
        case_input_lines(c.input, 0, 0, 1, &want);
        case_plan_lines(c.out, 0, 1, &found);
        if (!case_lines_equal(&want, &found))
            fail_msg("%u x %u: samples changed", sizes[k].users, sizes[k].items);
        case_lines_free(&want);
        case_lines_free(&found);
    }
}

static void test_grid_of_one_cell_is_the_shuffled_order(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct case_lines grid, shuffled;
    begin(&c, s, 1, 1);
    c.options.lanes = 1;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &grid);
    c.options.order = "shuffled";
    c.options.grid_users = c.options.grid_items = c.options.lanes = 0;
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
    begin(&c, s, 40, 40);
    c.options.order = "given";
    c.options.grid_users = c.options.grid_items = 0;
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &given);
    c.options.order = "grid";
    c.options.grid_users = c.options.grid_items = 1;
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
    begin(&c, s, 5, 5);
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
    static const struct grid grid = {G, G};
    unsigned size[2][G] = {{0}};
    find_keys(&keys);
    begin(&c, s, G, G);
    must_run(&c);
    case_plan_lines(c.out, 0, 0, &found);
    for (size_t i = 0; i < found.n; i++) {
        unsigned user, item;
        parse_line(&keys, found.line[i], &user, &item);
        uint64_t cell = cell_of(&keys, found.line[i], &grid);
        touches[cell][user] = touches[cell][item] = 1;
    }
    for (unsigned i = 0; i < 2 * NAMES; i++)
        size[i / NAMES][grid_group(keys.rank[i], NAMES, G)]++;
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

/* 50 ratings a user and an item; the grid that is chosen against shuffled and a square one. */
static void test_grid_windows_move_fewer_rows(void **state)
{
    static const struct {
        const char *order;
        uint32_t groups;
    } orders[] = {{"shuffled", 0}, {"grid", 16}, {"grid", 0}};
    struct scratch *s = *state;
    uint64_t bytes[3][3];
    for (unsigned k = 0; k < 3; k++) {
        struct case_run c;
        begin(&c, s, orders[k].groups, orders[k].groups);
        (void)case_input(s, "input", CASE_RATINGS, 100000, 2000, 22);
        c.options.order = orders[k].order;
        c.options.test_fraction = 0.1;
        must_run(&c);
        for (unsigned i = 0; i < 3; i++)
            bytes[k][i] = relay_bytes(&c.result, 2u << i);
    }
    for (unsigned i = 0; i < 3; i++)
        if (bytes[2][i] > bytes[0][i] / 4 || bytes[2][i] > bytes[1][i])
            fail_msg("memory 1/%u of the model: %" PRIu64 " bytes in a grid, %" PRIu64
                     " in 16 x 16, %" PRIu64 " shuffled",
                     2u << i, bytes[2][i], bytes[1][i], bytes[0][i]);
}

/* Rows that an epoch writes with so many frames, as drps-train counts them. */
static uint64_t rows_sent(struct scratch *s, const char *dir, uint64_t frames)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    struct drps_windows *windows;
    struct drps_window_source source;
    uint64_t sent = 0;
    if (drps_plan_open(drps_io_os(), dir, &plan, &err)) fail_msg("%s", err.text);
    const uint64_t row_bytes = plan->info.row_bytes;
    const struct drps_relay_share share = {
        .budget_bytes = frames * row_bytes, .row_bytes = row_bytes, .waiting_bytes = row_bytes};
    const struct drps_windows_options options = {
        .plan = plan, .dir = s->dir, .share = &share, .epochs = 1, .memory_bytes = 1 << 20};
    if (drps_windows_open(&options, &windows, &source, &err)) fail_msg("%s", err.text);
    assert_true(source.working_rows <= frames);
    struct drps_use_distances next = {
        .marks = calloc(DRPS_DISTANCE_WORDS(source.max_rows), sizeof(uint64_t)),
        .far = calloc(source.max_rows, sizeof(uint32_t))};
    struct drps_moves moves;
    assert_true(next.marks && next.far);
    assert_int_equal(drps_moves_init(&moves, source.windows, 8 << 20), 0);
    if (drps_moves_read(&moves, &source, frames, &next, &err)) fail_msg("%s", err.text);
    assert_int_equal(drps_moves_written(&moves, frames < plan->info.rows ? frames : 0,
                                        DRPS_RELAY_SPILL_SMALL, &sent),
                     0);
    drps_moves_destroy(&moves);
    free(next.marks);
    free(next.far);
    drps_windows_close(windows);
    drps_plan_close(plan);
    return sent;
}

static void put_ratings(const char *path, const struct grid_input *in, unsigned seed)
{
    struct random_source r = {.seed = seed};
    FILE *f = fopen(path, "w");
    if (!f) fail_msg("cannot make %s", path);
    for (uint64_t i = 0; i < in->samples; i++)
        (void)fprintf(f, "u%u\ti%u\t%u\n", (unsigned)random_below(&r, in->users),
                      (unsigned)random_below(&r, in->items), 1 + (unsigned)random_below(&r, 5));
    assert_int_equal(fclose(f), 0);
}

/* Returns how many of n rows the samples of a walk touch. */
static double passed(double n, double samples)
{
    return n * -expm1(-samples / n);
}

/* The least that training and evaluation move: outer groups as large as the memory, nothing lost
 * beside them. */
static double least_rows(const struct grid_input *in, double frames, double test_share)
{
    double least = INFINITY;
    for (int side = 0; side < 2; side++) {
        const double outer = (double)(side ? in->users : in->items);
        const double inner = (double)(side ? in->items : in->users);
        const double passes = outer / frames;
        double sum = 0;
        for (int test = 0; test < 2; test++) {
            const double n = (double)in->samples * (test ? test_share : 1 - test_share);
            sum += passed(outer, n) + passes * passed(inner, n / passes);
        }
        least = fmin(least, sum);
    }
    return least;
}

/* Memory for a twelfth of the rows, from 8 to 80 ratings a user: near what no grid could do
 * better. */
static void test_grid_moves_few_rows_more_than_it_must(void **state)
{
    static const struct grid_input shapes[] = {
        {.users = 6000, .items = 2000, .samples = 48000, .batch_size = 100},
        {.users = 6000, .items = 2000, .samples = 480000, .batch_size = 100},
        {.users = 2000, .items = 6000, .samples = 480000, .batch_size = 100},
        {.users = 4000, .items = 4000, .samples = 200000, .batch_size = 50},
        {.users = 12000, .items = 1000, .samples = 300000, .batch_size = 100},
    };
    const double test_share = 0.1;
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct grid_input *in = &shapes[i];
        struct case_run c;
        begin(&c, s, 0, 0);
        put_ratings(c.input, in, (unsigned)(31 + i));
        c.options.batch_size = in->batch_size;
        c.options.test_fraction = test_share;
        c.options.factors = 8;
        must_run(&c);
        const uint64_t frames = c.result.info.rows / 12;
        const uint64_t sent = rows_sent(s, c.out, frames);
        const double least = least_rows(in, (double)frames, test_share);
        if ((double)sent > 1.25 * least)
            fail_msg("%" PRIu64 " users, %" PRIu64 " items: %" PRIu64 " rows in a grid of %" PRIu64
                     " x %" PRIu64 ", the least is %.0f",
                     in->users, in->items, sent, c.result.info.grid_users, c.result.info.grid_items,
                     least);
    }
}

static void test_grid_is_in_the_plan(void **state)
{
    static const struct {
        const char *order;
        struct grid grid, want;
    } cases[] = {{"grid", {3, 5}, {3, 5}}, {"shuffled", {0, 0}, {0, 0}}, {"given", {0, 0}, {0, 0}}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        struct drps_plan *plan;
        struct drps_err err = DRPS_ERR_INIT;
        begin(&c, s, cases[i].grid.users, cases[i].grid.items);
        c.options.order = cases[i].order;
        must_run(&c);
        if (drps_plan_open(drps_io_os(), c.out, &plan, &err)) fail_msg("%s", err.text);
        assert_string_equal(plan->info.order, cases[i].order);
        assert_int_equal(plan->info.grid_users, cases[i].want.users);
        assert_int_equal(plan->info.grid_items, cases[i].want.items);
        drps_plan_close(plan);
    }
}

static void test_grid_is_chosen_for_the_tables(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    begin(&c, s, 0, 0);
    must_run(&c);
    const struct grid want =
        drps_grid_choose(&(struct grid_input){.users = NAMES,
                                              .items = NAMES,
                                              .samples = SAMPLES,
                                              .batch_size = c.result.info.batch_size,
                                              .room_rows = UINT64_MAX});
    assert_int_equal(c.result.info.grid_users, want.users);
    assert_int_equal(c.result.info.grid_items, want.items);
}

static void test_grid_refuses_what_it_does_not_fit(void **state)
{
    static const struct {
        const char *name, *algo, *order, *input;
        struct grid grid;
        const char *says;
    } cases[] = {
        {.name = "fm",
         .algo = "fm",
         .order = "grid",
         .input = "a b 1\n",
         .grid = {0, 0},
         .says = "needs the algorithm lmf"},
        {.name = "lor",
         .algo = "lor",
         .order = "grid",
         .input = "1 1:1\n0 2:1\n",
         .grid = {4, 4},
         .says = "needs the algorithm lmf"},
        {.name = "another format",
         .algo = "lmf",
         .order = "grid",
         .input = "1 1:1\n0 2:1\n",
         .grid = {0, 0},
         .says = "needs ratings"},
        {.name = "no order",
         .algo = "lmf",
         .input = "a b 1\n",
         .grid = {4, 4},
         .says = "order grid"},
        {.name = "another order",
         .algo = "lmf",
         .order = "given",
         .input = "a b 1\n",
         .grid = {4, 4},
         .says = "order grid"},
        {.name = "too many groups",
         .algo = "lmf",
         .order = "grid",
         .input = "a b 1\n",
         .grid = {DRPS_GRID_GROUPS_MAX + 1, 1},
         .says = "1 and 4096"},
        {.name = "too many of the other",
         .algo = "lmf",
         .order = "grid",
         .input = "a b 1\n",
         .grid = {1, DRPS_GRID_GROUPS_MAX + 1},
         .says = "1,4097"},
        {.name = "one number only",
         .algo = "lmf",
         .order = "grid",
         .input = "a b 1\n",
         .grid = {0, 3},
         .says = "0,3"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&c, s, scratch_file(s, "input", cases[i].input, SIZE_MAX), cases[i].algo);
        c.options.order = cases[i].order;
        c.options.grid_users = cases[i].grid.users;
        c.options.grid_items = cases[i].grid.items;
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
        cmocka_unit_test(test_grid_choice_by_hand),
        cmocka_unit_test(test_grid_choice_keeps_the_outer_group_in_memory),
        cmocka_unit_test(test_grid_choice_does_not_care_which_table_is_called_users),
        cmocka_unit_test(test_grid_choice_for_room_for_all_is_for_a_twelfth),
        cmocka_unit_test(test_grid_choice_has_room_for_two_batches),
        cmocka_unit_test(test_grid_choice_stays_within_bounds),
        SCRATCH_TEST(test_grid_run_visits_cell_after_cell),
        SCRATCH_TEST(test_grid_run_conserves_samples),
        SCRATCH_TEST(test_grid_of_one_cell_is_the_shuffled_order),
        SCRATCH_TEST(test_grid_run_shuffles_within_cells),
        SCRATCH_TEST(test_grid_run_depends_on_the_seed_alone),
        SCRATCH_TEST(test_grid_step_exchanges_one_group),
        SCRATCH_TEST(test_grid_windows_move_fewer_rows),
        SCRATCH_TEST(test_grid_moves_few_rows_more_than_it_must),
        SCRATCH_TEST(test_grid_is_in_the_plan),
        SCRATCH_TEST(test_grid_is_chosen_for_the_tables),
        SCRATCH_TEST(test_grid_refuses_what_it_does_not_fit),
    };
    return cmocka_run_group_tests_name("grid", tests, NULL, NULL);
}
