/* Rows that circulate: the schedule by itself, the parts of ranks against the plan of one worker,
 * and parts that do not fit each other. */
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
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"
#include "index/ranks/drps_circulation.h"
#include "index/verify/drps_verify.h"
#include "support/index_case.h"
#include "support/scratch.h"

/* --- the schedule ------------------------------------------------------------------------------
 */

/* Ranks follow the schedule, each as far as it gets; at most `cells` ranges wait for a rank. */
enum { RANKS = 16, QUEUE = 8 };
struct ranks {
    const struct circulation *c;
    uint32_t *holder; /* [ranges] the rank that has the newest; UINT32_MAX: it is on its way */
    uint32_t way[RANKS][QUEUE];
    uint64_t sent[RANKS], got[RANKS];
    uint64_t at[RANKS]; /* twice the stratum, and 1 once its lanes are through */
};

static void use(const struct ranks *k, uint64_t stratum, uint32_t rank)
{
    const struct circulation *c = k->c;
    for (uint32_t lane = circulation_lane(c, rank); lane < circulation_lane(c, rank + 1); lane++) {
        const uint32_t range = circulation_range(c, stratum, lane);
        if (k->holder[range] == rank) continue; /* in evaluation, its home has it all the time */
        assert_true(stratum >= c->train && circulation_home(c, range) == rank);
    }
}

/* The next thing that a rank does. Returns 0 when it has to wait. */
static int follow(struct ranks *k, uint32_t rank)
{
    const struct circulation *c = k->c;
    const uint64_t stratum = k->at[rank] / 2;
    const uint32_t to = (rank + c->workers - 1) % c->workers;
    const uint32_t arrives = circulation_arrives(c, stratum, rank);
    const uint32_t departs = circulation_departs(c, stratum, rank);
    if (k->at[rank] % 2 == 0 && arrives != CIRCULATION_NONE) {
        if (k->got[rank] == k->sent[rank]) return 0;
        assert_int_equal(k->way[rank][k->got[rank]++ % QUEUE], arrives);
        k->holder[arrives] = rank;
    }
    if (k->at[rank] % 2 == 0 && stratum < c->strata) use(k, stratum, rank);
    if (k->at[rank] % 2 == 1 && departs != CIRCULATION_NONE) {
        if (k->sent[to] - k->got[to] == c->cells) return 0;
        k->way[to][k->sent[to]++ % QUEUE] = departs;
        k->holder[departs] = UINT32_MAX;
    }
    k->at[rank]++;
    return 1;
}

/* Training leaves every range at home; evaluation takes none away from there. */
static void check_home(const struct ranks *k)
{
    const struct circulation *c = k->c;
    for (uint32_t lane = 0; lane < c->lanes && c->strata == c->train; lane++)
        for (uint32_t r = 1; r <= c->cells; r++)
            assert_int_equal(k->holder[circulation_first_range(c, lane) + r],
                             circulation_home(c, circulation_first_range(c, lane) + r));
    for (uint32_t r = 0; r < c->workers; r++)
        assert_int_equal(k->sent[r], k->got[r]);
}

static void check_epoch(const struct circulation *c)
{
    struct ranks k = {.c = c, .holder = calloc(circulation_ranges(c), sizeof(uint32_t))};
    assert_non_null(k.holder);
    for (uint32_t r = 0; r < circulation_ranges(c); r++)
        k.holder[r] = circulation_home(c, r);
    for (int moved = 1; moved;) {
        moved = 0;
        for (uint32_t r = 0; r < c->workers; r++)
            while (k.at[r] < 2 * (c->strata + c->cells) && follow(&k, r))
                moved = 1;
    }
    for (uint32_t r = 0; r < c->workers; r++)
        assert_int_equal(k.at[r], 2 * (c->strata + c->cells));
    check_home(&k);
    free(k.holder);
}

/* In a stratum every range is with one lane. */
static void check_strata(const struct circulation *c)
{
    for (uint64_t s = 0; s < c->strata; s++)
        for (uint32_t lane = 0; lane < c->lanes; lane++)
            for (uint32_t other = 0; other < lane; other++)
                assert_int_not_equal(circulation_range(c, s, lane), circulation_range(c, s, other));
}

static void test_ranges_go_round(void **state)
{
    (void)state;
    for (uint32_t workers = 2; workers <= RANKS; workers++)
        for (uint32_t lanes = workers; lanes <= 16; lanes += workers)
            for (uint32_t cells = 1; cells <= 5; cells++)
                for (uint32_t walks = 1; walks <= 2; walks++) {
                    const uint64_t train = (uint64_t)cells * lanes;
                    const struct circulation c = {workers, lanes, cells, train, walks * train};
                    check_strata(&c);
                    check_epoch(&c);
                }
}

/* --- parts -------------------------------------------------------------------------------------
 */

enum { SAMPLES = 6000, USERS_AND_ITEMS = 160, BATCH = 50, LANES = 4 };

static void begin(struct case_run *c, struct scratch *s, const char *out, uint32_t workers,
                  uint32_t users, uint32_t items)
{
    case_begin(c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, USERS_AND_ITEMS, 5), "lmf");
    (void)snprintf(c->out, sizeof(c->out), "%s", scratch_path(s, out));
    c->options.out = c->out;
    c->options.order = "grid";
    c->options.grid_users = users;
    c->options.grid_items = items;
    c->options.lanes = LANES;
    c->options.workers = workers;
    c->options.batch_size = BATCH;
    c->options.test_fraction = 0.1;
    c->options.force = 1;
}

static void must_run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_index_run(drps_io_os(), &c->options, &c->result, &err)) fail_msg("%s", err.text);
}

/* The files of steps of a plan, or of a rank's part. */
struct side {
    struct drps_plan *plan;
    struct steps *bodies, *lists;
    uint64_t at;
};

static void side_open(struct side *side, const char *dir, uint32_t rank)
{
    struct drps_err err = DRPS_ERR_INIT;
    *side = (struct side){0};
    int rc = rank == DRPS_PLAN_WHOLE
                 ? drps_plan_open(drps_io_os(), dir, &side->plan, &err)
                 : drps_plan_open_rank(drps_io_os(), dir, rank, &side->plan, &err);
    if (rc < 0) fail_msg("%s", err.text);
    const uint64_t steps = side->plan->info.batches + side->plan->info.eval_batches;
    assert_int_equal(drps_steps_open(drps_io_os(), side->plan->dir, "data.rec", DRPS_KIND_DATA,
                                     steps, 1 << 16, &side->bodies, NULL),
                     0);
    assert_int_equal(drps_steps_open(drps_io_os(), side->plan->dir, "rows.rec", DRPS_KIND_ROWS,
                                     steps, 1 << 16, &side->lists, NULL),
                     0);
}

static void side_close(struct side *side)
{
    drps_steps_close(side->bodies);
    drps_steps_close(side->lists);
    drps_plan_close(side->plan);
}

/* The next batch of a rank has the body and the rows of this one, and is of the same walk. */
static void check_batch(struct side *part, const struct side *one, uint64_t step)
{
    const void *want, *found;
    const uint32_t *wanted, *listed;
    size_t bytes, n, found_bytes, found_n;
    for (;; part->at++) {
        assert_int_equal(drps_steps_record(part->bodies, part->at, &found, &found_bytes, NULL), 0);
        if (!drps_batch_hand_over(found, found_bytes)) break;
    }
    assert_int_equal(step < one->plan->info.batches, part->at < part->plan->info.batches);
    assert_int_equal(drps_steps_record(one->bodies, step, &want, &bytes, NULL), 0);
    assert_int_equal(bytes, found_bytes);
    assert_memory_equal(want, found, bytes);
    assert_int_equal(drps_steps_rows(one->lists, step, one->plan->info.rows, &wanted, &n, NULL), 0);
    assert_int_equal(
        drps_steps_rows(part->lists, part->at++, part->plan->info.rows, &listed, &found_n, NULL),
        0);
    assert_int_equal(n, found_n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(wanted[i], drps_plan_placed_id(&part->plan->info.ranks, listed[i]));
}

static void check_parts(const char *one_dir, const char *dir, uint32_t workers)
{
    struct side one, part[LANES];
    side_open(&one, one_dir, DRPS_PLAN_WHOLE);
    for (uint32_t r = 0; r < workers; r++)
        side_open(&part[r], dir, r);
    for (uint64_t s = 0; s < one.plan->info.batches + one.plan->info.eval_batches; s++) {
        const void *record;
        size_t bytes;
        assert_int_equal(drps_steps_record(one.bodies, s, &record, &bytes, NULL), 0);
        check_batch(&part[drps_batch_lane(record, bytes) * workers / LANES], &one, s);
    }
    for (uint32_t r = 0; r < workers; r++)
        side_close(&part[r]);
    side_close(&one);
}

static void test_parts_have_the_batches_of_one_worker(void **state)
{
    static const struct grid {
        uint32_t users, items;
    } grids[] = {{1, 2}, {2, 1}, {1, 1}, {1, 3}};
    struct scratch *s = *state;
    for (size_t g = 0; g < sizeof(grids) / sizeof(*grids); g++) {
        struct case_run one;
        begin(&one, s, "one", 1, grids[g].users, grids[g].items);
        must_run(&one);
        case_verify(one.out);
        for (uint32_t workers = 2; workers <= LANES; workers *= 2) {
            struct case_run c;
            begin(&c, s, "several", workers, grids[g].users, grids[g].items);
            must_run(&c);
            case_verify(c.out);
            check_parts(one.out, c.out, workers);
            const struct drps_plan_ranks *sums = &c.result.info.ranks;
            assert_int_equal(sums->pulled_rows, sums->served_rows);
            assert_int_equal(sums->eval_pulled_rows, sums->eval_served_rows);
            const uint64_t inner = USERS_AND_ITEMS; /* of each table, and all are used */
            assert_int_equal(sums->served_rows, workers * inner);
            assert_int_equal(sums->eval_served_rows, (workers - 1) * inner);
            assert_true(c.result.plain_rows > 4 * workers * inner);
        }
    }
}

static void test_without_evaluation_ranges_are_home_after_training(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    begin(&c, s, "several", 2, 0, 0);
    c.options.test_fraction = 0;
    c.options.no_bias = 1;
    must_run(&c);
    case_verify(c.out);
    assert_int_equal(c.result.info.eval_batches, 0);
    assert_int_equal(c.result.info.ranks.pulled_rows, c.result.info.ranks.served_rows);
}

/* --- damage ------------------------------------------------------------------------------------
 */

static void flip_flags(unsigned char *body, uint32_t flip)
{
    body[16] ^= (unsigned char)flip;
    body[17] ^= (unsigned char)(flip >> 8);
}

/* Write a rank's data.rec anew with the flags of its n-th hand-over changed, and save the part. */
static void change_hand_over(const char *dir, uint32_t rank, unsigned n, uint32_t flip)
{
    struct side side;
    struct drps_recwriter *w;
    char path[SCRATCH_PATH_BYTES + 32], moved[SCRATCH_PATH_BYTES + 32];
    side_open(&side, dir, rank);
    (void)snprintf(path, sizeof(path), "%s/data.rec", side.plan->dir);
    (void)snprintf(moved, sizeof(moved), "%s.new", dir);
    assert_int_equal(drps_recwriter_open(drps_io_os(), moved, DRPS_KIND_DATA, &w, NULL), 0);
    for (uint64_t s = 0; s < side.plan->info.batches + side.plan->info.eval_batches; s++) {
        const void *record;
        size_t bytes;
        assert_int_equal(drps_steps_record(side.bodies, s, &record, &bytes, NULL), 0);
        unsigned char *copy = malloc(bytes);
        assert_non_null(copy);
        memcpy(copy, record, bytes);
        if (drps_batch_hand_over(record, bytes) && !n--) flip_flags(copy, flip);
        const struct drps_piece piece = {copy, bytes};
        assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
        free(copy);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
    assert_int_equal(rename(moved, path), 0);
    assert_int_equal(drps_plan_save(drps_io_os(), side.plan->dir, &side.plan->info,
                                    side.plan->fields, NULL, NULL),
                     0);
    side_close(&side);
}

static void test_parts_that_do_not_fit_are_found(void **state)
{
    static const struct {
        const char *name, *says;
        unsigned n;
        uint32_t flip;
    } cases[] = {
        {"as it was", "", 3, 0},
        {"a range does not end", "hands over other rows", 0, DRPS_HANDS_LAST},
        {"departs where it should arrive", "hands over other rows", 2, DRPS_DEPARTS | DRPS_ARRIVES},
        {"without the state", "hands over other rows", 3, DRPS_HANDS_PARAMETERS},
        {"both ways", "data.rec", 1, DRPS_ARRIVES},
    };
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        struct case_run c;
        struct drps_plan *plan;
        struct drps_err err = DRPS_ERR_INIT;
        begin(&c, s, "several", 2, 0, 0);
        must_run(&c);
        change_hand_over(c.out, 1, cases[k].n, cases[k].flip);
        int rc = drps_plan_open(drps_io_os(), c.out, &plan, &err);
        if (rc == 0) rc = drps_plan_verify(plan, NULL, &err);
        if (rc != (cases[k].says[0] ? DRPS_E_CORRUPT : 0) || !strstr(err.text, cases[k].says))
            fail_msg("%s: %d '%s'", cases[k].name, rc, err.text);
        drps_plan_close(plan);
    }
}

static void test_what_circulates_is_not_dealt(void **state)
{
    struct scratch *s = *state;
    struct case_run c, next;
    struct drps_err err = DRPS_ERR_INIT;
    begin(&c, s, "several", 2, 0, 0);
    must_run(&c);
    begin(&next, s, "next", 1, 0, 0);
    next.options.inputs_n = 0;
    next.options.from_plan = c.out;
    assert_int_equal(drps_index_run(drps_io_os(), &next.options, &next.result, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "make a plan for others from the data"));
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_go_round),
        SCRATCH_TEST(test_parts_have_the_batches_of_one_worker),
        SCRATCH_TEST(test_without_evaluation_ranges_are_home_after_training),
        SCRATCH_TEST(test_parts_that_do_not_fit_are_found),
        SCRATCH_TEST(test_what_circulates_is_not_dealt),
    };
    return cmocka_run_group_tests_name("circulation", tests, NULL, NULL);
}
