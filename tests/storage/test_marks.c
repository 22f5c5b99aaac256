/* Marks of changed rows: those of a plain array, also where steps leave out what is marked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/drps_marks.h"

enum { ROWS = 1003, RANGE = 7, RANGES = (ROWS + RANGE - 1) / RANGE, SPAN = 3, STEPS = 400 };

static uint64_t draws;

static uint64_t draw(uint64_t below)
{
    return drps_rng_at(5, draws++) % below;
}

/* Some rows, increasing: often from the first or up to the last one, at times all between. */
static size_t make_ids(uint32_t *ids)
{
    size_t n = 0;
    const uint64_t gap = draw(3) ? 1 + draw(60) : 1;
    for (uint64_t id = draw(2) ? draw(ROWS) : 0; id < ROWS && n < ROWS; id += 1 + draw(gap))
        ids[n++] = (uint32_t)id;
    return n;
}

static void assert_marked(const struct drps_marks *m, const unsigned char *want)
{
    uint64_t first, end = 0, at = 0;
    while (drps_marks_next(m, end, &first, &end)) {
        for (; at < first; at++)
            assert_false(want[at / RANGE]);
        for (; at < end; at++)
            assert_true(want[at / RANGE]);
    }
    for (; at < ROWS; at++)
        assert_false(want[at / RANGE]);
}

/* Steps open SPAN at a time, close in order, and change their rows or not. */
static void test_marks_are_those_of_a_plain_array(void **state)
{
    static uint32_t ids[SPAN][ROWS];
    unsigned char want[RANGES] = {0};
    size_t n[SPAN];
    struct drps_marks m;
    const struct drps_store_config config = {.rows = ROWS, .mark_rows = RANGE, .open_steps = SPAN};
    (void)state;
    assert_int_equal(drps_marks_init(&m, &config, NULL), 0);
    for (uint64_t step = 0; step < STEPS; step += SPAN) {
        for (uint64_t k = 0; k < SPAN; k++) {
            n[k] = make_ids(ids[k]);
            drps_marks_open(&m, step + k, ids[k], n[k]);
        }
        for (uint64_t k = 0; k < SPAN; k++) {
            const int changed = draw(4) > 0;
            drps_marks_close(&m, step + k, changed);
            for (size_t i = 0; changed && i < n[k]; i++)
                want[ids[k][i] / RANGE] = 1;
            assert_marked(&m, want);
        }
        if (draw(12)) continue;
        drps_marks_clear(&m);
        memset(want, 0, sizeof(want));
        assert_marked(&m, want);
    }
    drps_marks_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks_are_those_of_a_plain_array),
    };
    return cmocka_run_group_tests_name("marks", tests, NULL, NULL);
}
