/* Lanes: strata of sub-cells, batches marked with them, and plans whose marks are wrong. */
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
#include "index/order/drps_grid.h"
#include "index/plan/drps_batch.h"
#include "index/verify/drps_verify.h"
#include "support/batch_body.h"
#include "support/index_case.h"
#include "support/scratch.h"

/* --- sub-cells ---------------------------------------------------------------------------------
 */

/* Each stratum has one sub-cell a lane, and these share neither users nor items. */
static void check_strata(const struct grid *g, uint32_t lanes)
{
    const uint64_t cells = (uint64_t)g->users * g->items;
    uint32_t *user = calloc(cells * lanes * lanes, sizeof(*user)); /* [stratum][lane], plus 1 */
    uint32_t *item = calloc(cells * lanes * lanes, sizeof(*item));
    assert_non_null(user);
    assert_non_null(item);
    for (uint32_t u = 0; u < g->users * lanes; u++)
        for (uint32_t i = 0; i < g->items * lanes; i++) {
            const struct grid_position position = grid_position_of(g, lanes, u, i);
            assert_true(position.stratum < cells * lanes && position.lane < lanes);
            const uint64_t cell = grid_cell(g, u / lanes, i / lanes);
            assert_int_equal(g->users == 1 || g->items == 1 ? position.stratum % cells
                                                            : position.stratum / lanes,
                             cell);
            const uint64_t at = position.stratum * lanes + position.lane;
            if (user[at]) fail_msg("two sub-cells in a lane of stratum %" PRIu64, position.stratum);
            user[at] = u + 1;
            item[at] = i + 1;
        }
    for (uint64_t d = 0; d < cells * lanes; d++)
        for (uint32_t a = 0; a < lanes; a++)
            for (uint32_t b = 0; b < a; b++)
                if (user[d * lanes + a] == user[d * lanes + b] ||
                    item[d * lanes + a] == item[d * lanes + b])
                    fail_msg("%u x %u, %u lanes: lanes %u and %u of stratum %" PRIu64, g->users,
                             g->items, lanes, a, b, d);
    free(user);
    free(item);
}

static void test_lanes_of_a_stratum_share_nothing(void **state)
{
    static const struct grid sizes[] = {{1, 1}, {2, 2}, {3, 5}, {5, 3}, {1, 7}, {16, 2}};
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
        for (uint32_t lanes = 1; lanes <= DRPS_BATCH_LANES; lanes++)
            check_strata(&sizes[k], lanes);
}

/* A lane keeps its rows of the outer table as long as the walk keeps their group. */
static void test_lanes_keep_their_outer_rows(void **state)
{
    static const struct grid sizes[] = {{2, 6}, {6, 2}, {4, 4}};
    enum { LANES = 3 };
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const struct grid *g = &sizes[k];
        for (uint32_t u = 0; u < g->users * LANES; u++)
            for (uint32_t i = 0; i < g->items * LANES; i++)
                assert_int_equal(grid_position_of(g, LANES, u, i).lane,
                                 (g->users <= g->items ? u : i) % LANES);
    }
}

/* In a grid of a single pass an item part goes from lane to lane, and has the strata of all other
 * cells to get there. */
static void test_lanes_hand_parts_on(void **state)
{
    static const struct grid sizes[] = {{1, 2}, {2, 1}, {1, 1}, {1, 5}};
    enum { LANES = 4 };
    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        const struct grid *g = &sizes[k];
        const uint32_t cells = g->users * g->items;
        for (uint32_t lane = 0; lane < LANES; lane++)
            for (uint32_t part = 0; part < cells * LANES; part++) {
                const int users_outside = g->users <= g->items;
                const struct grid_position p = grid_position_of(
                    g, LANES, users_outside ? lane : part, users_outside ? part : lane);
                const uint32_t turn = (part + LANES - lane) % LANES;
                assert_int_equal(p.lane, lane);
                assert_int_equal(p.stratum, turn * cells + part / LANES);
            }
    }
}

/* --- whole runs --------------------------------------------------------------------------------
 */

enum { SAMPLES = 20000, NAMES = 300, BATCH = 100 };

static void begin(struct case_run *c, struct scratch *s, uint32_t groups, uint32_t lanes)
{
    case_begin(c, s, case_input(s, "input", CASE_RATINGS, SAMPLES, NAMES, 5), "lmf");
    c->options.order = "grid";
    c->options.grid_users = c->options.grid_items = groups;
    c->options.lanes = lanes;
    c->options.batch_size = BATCH;
    c->options.test_fraction = 0.1;
    c->options.force = 1;
}

static void must_run(struct case_run *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_index_run(drps_io_os(), &c->options, &c->result, &err)) fail_msg("%s", err.text);
    case_verify(c->options.out);
}

/* Records of a plan's file, one a step. */
struct records {
    struct drps_plan *plan;
    struct drps_recfile *file;
    char *data; /* own: the one read last */
};

static void records_open(struct records *r, const char *dir, const char *name, uint32_t kind)
{
    memset(r, 0, sizeof(*r));
    assert_int_equal(drps_plan_open(drps_io_os(), dir, &r->plan, NULL), 0);
    assert_int_equal(drps_plan_file(r->plan, name, kind, &r->file, NULL), 0);
}

static void records_close(struct records *r)
{
    free(r->data);
    drps_recfile_close(r->file);
    drps_plan_close(r->plan);
}

static const void *records_read(struct records *r, uint64_t step, size_t *bytes)
{
    free(r->data);
    r->data = malloc(drps_recfile_run_bytes(r->file, step, 1));
    assert_non_null(r->data);
    assert_int_equal(drps_recfile_read(r->file, step, 1, r->data, NULL), 0);
    *bytes = (size_t)drps_recfile_bytes(r->file, step);
    return r->data + drps_recfile_offset_in_run(r->file, step, step);
}

static const void *body_read(struct records *r, uint64_t step, size_t *bytes)
{
    const void *record = records_read(r, step, bytes);
    memmove(r->data, record, *bytes);
    r->data = body_unpack(r->data, bytes);
    return r->data;
}

static void test_lanes_mark_training_batches(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct records r;
    begin(&c, s, 2, 3);
    must_run(&c);
    assert_int_equal(c.result.info.lanes, 3);
    records_open(&r, c.out, "data.rec", DRPS_KIND_DATA);
    uint32_t before = 1, lanes_seen = 0;
    uint64_t changes = 0, samples = 0;
    for (uint64_t t = 0; t < c.result.info.batches + c.result.info.eval_batches; t++) {
        struct drps_batch b;
        size_t bytes;
        const void *data = body_read(&r, t, &bytes);
        assert_int_equal(drps_batch_decode(data, bytes, &b, NULL), 0);
        assert_in_range(b.samples, 1, BATCH);
        if (t >= c.result.info.batches) { /* it walks back, where lanes would share rows */
            assert_int_equal(b.stratum, 0);
            continue;
        }
        assert_in_range(b.stratum, before, 2 * 2 * 3);
        changes += b.stratum != before;
        before = b.stratum;
        assert_true(b.lane < 3);
        lanes_seen |= 1U << b.lane;
        samples += b.samples;
    }
    assert_int_equal(changes, 2 * 2 * 3 - 1);
    assert_int_equal(lanes_seen, 7);
    assert_int_equal(samples, c.result.info.samples);
    records_close(&r);
}

/* Strata of evaluation go on where those of training end, with the same lanes. */
static void test_lanes_mark_evaluation_of_a_single_pass(void **state)
{
    enum { LANES = 3, STRATA = 2 * LANES };
    struct scratch *s = *state;
    struct case_run c;
    struct records r;
    uint32_t seen[2] = {0};
    begin(&c, s, 1, LANES);
    c.options.grid_items = 2;
    must_run(&c);
    records_open(&r, c.out, "data.rec", DRPS_KIND_DATA);
    for (uint64_t t = 0; t < c.result.info.batches + c.result.info.eval_batches; t++) {
        size_t bytes;
        const int evaluation = t >= c.result.info.batches;
        const void *data = records_read(&r, t, &bytes);
        const uint32_t stratum = drps_batch_stratum(data, bytes) - 1;
        assert_int_equal(stratum / STRATA, evaluation);
        seen[evaluation] |= 1U << (stratum % STRATA);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(seen[i], (1U << STRATA) - 1);
    records_close(&r);
}

/* In a stratum no lane is done long before another: look some batches ahead, and find all. */
static void test_lanes_alternate(void **state)
{
    enum { LANES = 4, AHEAD = 3 * LANES };
    struct scratch *s = *state;
    struct case_run c;
    struct records r;
    unsigned count[LANES] = {0};
    begin(&c, s, 1, LANES);
    must_run(&c);
    records_open(&r, c.out, "data.rec", DRPS_KIND_DATA);
    for (uint64_t t = 0; t < AHEAD; t++) {
        struct drps_batch b;
        size_t bytes;
        const void *data = body_read(&r, t, &bytes);
        assert_int_equal(drps_batch_decode(data, bytes, &b, NULL), 0);
        assert_int_equal(b.stratum, 1);
        count[b.lane]++;
    }
    for (unsigned k = 0; k < LANES; k++)
        assert_in_range(count[k], 1, AHEAD / 2);
    records_close(&r);
}

static void test_lanes_conserve_samples(void **state)
{
    struct scratch *s = *state;
    for (uint32_t lanes = 0; lanes <= DRPS_BATCH_LANES; lanes = lanes * 2 + 1) {
        struct case_run c;
        struct case_lines want, found;
        begin(&c, s, 3, lanes < DRPS_BATCH_LANES ? lanes : DRPS_BATCH_LANES);
        c.options.test_fraction = 0;
        must_run(&c);
        case_input_lines(c.input, 0, 0, 1, &want);
        case_plan_lines(c.out, 0, 1, &found);
        if (!case_lines_equal(&want, &found)) fail_msg("%u lanes: samples changed", lanes);
        case_lines_free(&want);
        case_lines_free(&found);
    }
}

/* Blocks that renumber rows write all batches anew. */
static void test_lanes_outlive_renumbering(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct records r;
    begin(&c, s, 1, 2);
    c.options.blocks.by = "frequency";
    must_run(&c);
    records_open(&r, c.out, "data.rec", DRPS_KIND_DATA);
    for (uint64_t t = 0; t < c.result.info.batches; t++) {
        size_t bytes;
        const void *data = records_read(&r, t, &bytes);
        assert_in_range(drps_batch_stratum(data, bytes), 1, 2);
    }
    records_close(&r);
}

/* Write data.rec anew, with every batch's mark changed, and save the plan with its checksum. */
static void change_marks(const char *dir, uint64_t lanes, void (*change)(struct drps_batch *b))
{
    struct records r;
    struct drps_recwriter *w;
    char path[SCRATCH_PATH_BYTES + 16], moved[SCRATCH_PATH_BYTES + 16];
    records_open(&r, dir, "data.rec", DRPS_KIND_DATA);
    (void)snprintf(path, sizeof(path), "%s/data.rec", dir);
    (void)snprintf(moved, sizeof(moved), "%s.new", dir);
    assert_int_equal(drps_recwriter_open(drps_io_os(), moved, DRPS_KIND_DATA, &w, NULL), 0);
    for (uint64_t t = 0; t < drps_recfile_count(r.file); t++) {
        struct drps_batch b;
        struct drps_batch_pieces pieces;
        size_t bytes;
        const void *data = body_read(&r, t, &bytes);
        assert_int_equal(drps_batch_decode(data, bytes, &b, NULL), 0);
        change(&b);
        drps_batch_encode(&b, &pieces);
        assert_int_equal(drps_recwriter_add(w, pieces.pieces, pieces.n, NULL), 0);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
    assert_int_equal(rename(moved, path), 0);
    r.plan->info.lanes = lanes;
    assert_int_equal(drps_plan_save(drps_io_os(), dir, &r.plan->info, r.plan->fields, NULL, NULL),
                     0);
    records_close(&r);
}

static void one_stratum(struct drps_batch *b)
{
    if (b->stratum) b->stratum = 1;
}

static void nothing(struct drps_batch *b)
{
    (void)b;
}

static void mark_all(struct drps_batch *b)
{
    b->stratum = UINT32_MAX;
    b->lane = 0;
}

static void test_lanes_that_share_rows_are_found(void **state)
{
    static const struct {
        const char *name;
        void (*change)(struct drps_batch *b);
        uint64_t lanes;
        int rc;
        const char *says;
    } cases[] = {
        {.name = "as it was", .change = nothing, .lanes = 3, .rc = 0, .says = ""},
        {.name = "two strata at once",
         .change = one_stratum,
         .lanes = 3,
         .rc = DRPS_E_CORRUPT,
         .says = "rows.rec"},
        {.name = "a lane too many",
         .change = nothing,
         .lanes = 2,
         .rc = DRPS_E_CORRUPT,
         .says = "data.rec"},
        {.name = "evaluation, too",
         .change = mark_all,
         .lanes = 3,
         .rc = DRPS_E_CORRUPT,
         .says = "data.rec"},
        {.name = "more lanes than there can be",
         .change = nothing,
         .lanes = 17,
         .rc = DRPS_E_CORRUPT,
         .says = "plan.json"},
    };
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct case_run c;
        struct drps_plan *plan;
        struct drps_err err = DRPS_ERR_INIT;
        begin(&c, s, 2, 3);
        must_run(&c);
        change_marks(c.out, cases[k].lanes, cases[k].change);
        int rc = drps_plan_open(drps_io_os(), c.out, &plan, &err);
        if (rc == 0) rc = drps_plan_verify(plan, NULL, &err);
        if (rc != cases[k].rc || !strstr(err.text, cases[k].says))
            fail_msg("%s: %d '%s'", cases[k].name, rc, err.text);
        drps_plan_close(plan);
    }
}

static void test_lanes_refuse_what_they_do_not_fit(void **state)
{
    static const struct {
        const char *name, *order, *partition;
        uint32_t lanes, workers, groups, servers;
        uint64_t batch_size;
        int rc;
        const char *says;
    } cases[] = {
        {.name = "another order",
         .order = "given",
         .lanes = 2,
         .workers = 1,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "orders shuffled and grid"},
        {.name = "several workers",
         .order = "shuffled",
         .lanes = 2,
         .workers = 2,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "for rows that circulate"},
        {.name = "rounds",
         .order = "grid",
         .partition = "range",
         .lanes = 2,
         .workers = 2,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "without a partition"},
        {.name = "more for some workers",
         .order = "grid",
         .lanes = 3,
         .workers = 2,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "each worker must have as many"},
        {.name = "too many workers",
         .order = "grid",
         .workers = DRPS_BATCH_LANES + 1,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "between 16 at most"},
        {.name = "several passes",
         .order = "grid",
         .groups = 2,
         .workers = 2,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "must be one group"},
        {.name = "other servers",
         .order = "grid",
         .workers = 3,
         .servers = 2,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "leave the number of servers out, or name a partition"},
        {.name = "one worker with servers",
         .order = "grid",
         .partition = "range",
         .lanes = 2,
         .workers = 1,
         .servers = 2,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "without a partition"},
        {.name = "too many",
         .order = "grid",
         .lanes = DRPS_BATCH_LANES + 1,
         .workers = 1,
         .batch_size = BATCH,
         .rc = DRPS_E_CONFIG,
         .says = "1 and 16"},
        {.name = "large batches",
         .order = "grid",
         .lanes = 16,
         .workers = 1,
         .batch_size = 100000,
         .rc = DRPS_E_MEMORY_BUDGET,
         .says = "16 lanes"},
    };
    struct scratch *s = *state;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        begin(&c, s, cases[k].groups, cases[k].lanes);
        c.options.partition = cases[k].partition;
        c.options.order = cases[k].order;
        c.options.workers = cases[k].workers;
        c.options.servers = cases[k].servers;
        c.options.batch_size = cases[k].batch_size;
        c.options.memory_bytes = 64 << 20;
        int rc = drps_index_run(drps_io_os(), &c.options, &c.result, &err);
        if (rc != cases[k].rc || !strstr(err.text, cases[k].says))
            fail_msg("%s: %d '%s'", cases[k].name, rc, err.text);
    }
}

static void test_lanes_are_asked_for(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    begin(&c, s, 1, 0);
    must_run(&c);
    assert_int_equal(c.result.info.lanes, 0);
    c.options.lanes = 4;
    must_run(&c);
    assert_int_equal(c.result.info.lanes, 4);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes_of_a_stratum_share_nothing),
        cmocka_unit_test(test_lanes_keep_their_outer_rows),
        cmocka_unit_test(test_lanes_hand_parts_on),
        SCRATCH_TEST(test_lanes_mark_evaluation_of_a_single_pass),
        SCRATCH_TEST(test_lanes_mark_training_batches),
        SCRATCH_TEST(test_lanes_alternate),
        SCRATCH_TEST(test_lanes_conserve_samples),
        SCRATCH_TEST(test_lanes_outlive_renumbering),
        SCRATCH_TEST(test_lanes_that_share_rows_are_found),
        SCRATCH_TEST(test_lanes_refuse_what_they_do_not_fit),
        SCRATCH_TEST(test_lanes_are_asked_for),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
