/* Configurations and steps that make no sense: every store refuses them with a text, before it has
 * made anything. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "storage/kv/drps_kv.h"
#include "support/scratch.h"
#include "support/store_run.h"

static const struct plan_shape shape = {.rows = 100,
                                        .max_block_rows = 5,
                                        .max_step_rows = 20,
                                        .row_bytes = 16,
                                        .epoch_steps = 4,
                                        .epochs = 1};

static void odd_rows(struct drps_store_config *c)
{
    c->row_bytes = 6;
}

static void empty_rows(struct drps_store_config *c)
{
    c->row_bytes = 0;
}

static void many_rows(struct drps_store_config *c)
{
    c->rows = UINT64_C(1) << 32;
}

static void large_rows(struct drps_store_config *c)
{
    c->rows = UINT32_MAX;
    c->row_bytes = SIZE_MAX / 4 / 4 * 4;
}

static void no_blocks(struct drps_store_config *c)
{
    c->blocks = 0;
}

static void short_blocks(struct drps_store_config *c)
{
    c->blocks--;
}

static void empty_block(struct drps_store_config *c)
{
    static uint32_t first[SCRATCH_PATH_BYTES];
    assert_true(c->blocks < SCRATCH_PATH_BYTES);
    memcpy(first, c->block_first, (c->blocks + 1) * sizeof(*first));
    first[1] = 0;
    c->block_first = first;
}

static void many_open(struct drps_store_config *c)
{
    c->open_steps = DRPS_STORE_OPEN_MOST;
}

static void no_timeline(struct drps_store_config *c)
{
    c->timeline = NULL;
}

static void no_engine(struct drps_store_config *c)
{
    c->kv = NULL;
}

static void little_memory(struct drps_store_config *c)
{
    c->memory_bytes = 1;
}

static const struct {
    const char *name;
    const struct drps_store_ops *ops;
    void (*edit)(struct drps_store_config *c);
    int code;
    const char *text;
} cases[] = {
    {"rows of half floats", &drps_store_resident, odd_rows, -EINVAL, "rows of 6 bytes"},
    {"rows of half floats", &drps_store_relay, odd_rows, -EINVAL, "rows of 6 bytes"},
    {"rows of half floats", &drps_store_pib, odd_rows, -EINVAL, "rows of 6 bytes"},
    {"rows of nothing", &drps_store_resident, empty_rows, -EINVAL, "rows of 0 bytes"},
    {"rows of nothing", &drps_store_relay, empty_rows, -EINVAL, "rows of 0 bytes"},
    {"rows of nothing", &drps_store_pib, empty_rows, -EINVAL, "rows of 0 bytes"},
    {"too many rows", &drps_store_resident, many_rows, DRPS_E_CONFIG, "4294967296 rows"},
    {"too many rows", &drps_store_relay, many_rows, -EINVAL, "4294967296 rows"},
    {"too many rows", &drps_store_pib, many_rows, -EINVAL, "there are 4294967296 rows"},
    {"too many bytes", &drps_store_resident, large_rows, -EOVERFLOW, "4294967295 rows"},
    {"no blocks", &drps_store_pib, no_blocks, -EINVAL, "0 blocks"},
    {"a block is missing", &drps_store_pib, short_blocks, -EINVAL, "there are 100 rows"},
    {"an empty block", &drps_store_pib, empty_block, -EINVAL, "block 0 begins at row 0"},
    {"many steps at a time", &drps_store_pib, many_open, -EINVAL, "64 steps open at a time"},
    {"no timeline", &drps_store_pib, no_timeline, -EINVAL, "needs a timeline"},
    {"no engine", &drps_store_pib, no_engine, -EINVAL, "needs a timeline, an engine"},
    {"little memory", &drps_store_pib, little_memory, DRPS_E_MEMORY_BUDGET, ""},
    {"little memory", &drps_store_relay, little_memory, DRPS_E_MEMORY_BUDGET, ""},
};

static void test_store_refuses_what_makes_no_sense(void **state)
{
    struct plan *p = plan_new(1, &shape);
    (void)state;
    plan_cut(p, 1, 2);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_store_config config = plan_config(p);
        struct drps_store *st;
        struct drps_err err = DRPS_ERR_INIT;
        char *dir = scratch_new();
        config.dir = dir;
        config.kv = drps_kv_engines()[0];
        config.memory_bytes = 64 << 20;
        cases[i].edit(&config);
        const int rc = cases[i].ops->open(&config, &st, &err);
        if (rc != cases[i].code || !err.text[0] || !strstr(err.text, cases[i].text))
            fail_msg("%s, %s: %d '%s'", cases[i].ops->name, cases[i].name, rc, err.text);
        assert_null(st);
        assert_int_equal(folder_entries(dir), 0);
        scratch_remove(dir);
    }
    plan_free(p);
}

/* Steps are opened in order, and there are so many. */
static void test_store_refuses_a_step_too_many(void **state)
{
    static const struct drps_store_ops *const all[] = {&drps_store_pib, &drps_store_relay};
    struct plan *p = plan_new(1, &shape);
    (void)state;
    plan_cut(p, 1, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct drps_store_ops *ops = all[i];
        struct drps_store_config config = plan_config(p);
        struct drps_store *st;
        struct drps_rows rows;
        struct drps_err err = DRPS_ERR_INIT;
        char *dir = scratch_new();
        config.dir = dir;
        config.kv = drps_kv_engines()[0];
        config.memory_bytes = 64 << 20;
        if (ops->open(&config, &st, &err) < 0) fail_msg("%s: %s", ops->name, err.text);
        for (size_t s = 0; s < p->n_steps; s++) {
            const struct plan_step *step = &p->steps[s];
            assert_int_equal(ops->step_open(st, s, ops->by_slot ? step->slots : step->ids,
                                            step->n_ids, &rows, &err),
                             0);
            assert_int_equal(ops->step_close(st, s, 0, &err), 0);
        }
        assert_int_equal(ops->step_open(st, p->n_steps, NULL, 0, &rows, &err), -EINVAL);
        if (!strstr(err.text, "step 4 opened, there are 4"))
            fail_msg("%s: %s", ops->name, err.text);
        ops->close(st);
        scratch_remove(dir);
    }
    plan_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_refuses_what_makes_no_sense),
        cmocka_unit_test(test_store_refuses_a_step_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
