/* Numbers picked by bits, against one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "storage/relay/pick.h"

enum { MOST = 700 };

static uint32_t from[MOST + DRPS_PICK_ROOM], to[MOST + DRPS_PICK_ROOM], want[MOST];
static uint64_t marks[MOST / 64 + 2];

static int marked(size_t s)
{
    return marks[s / 64] >> s % 64 & 1;
}

static void check(const struct drps_picker *p, size_t n, int of)
{
    size_t k = 0;
    for (size_t s = 0; s < n; s++)
        if (marked(s) == of) want[k++] = from[s];
    assert_int_equal(drps_pick(p, marks, n, of, from, to), k);
    assert_memory_equal(to, want, k * sizeof(*want));

    k = 0;
    for (uint32_t s = 0; s < n; s++)
        if (marked(s) == of) want[k++] = s;
    assert_int_equal(drps_pick_positions(p, marks, n, of, to), k);
    assert_memory_equal(to, want, k * sizeof(*want));

    drps_pick_spread(p, marks, n, of, from, to);
    k = 0;
    for (size_t s = 0; s < n; s++)
        if (marked(s) == of) assert_int_equal(to[s], from[k++]);
}

static void test_picks_as_one_by_one(void **state)
{
    (void)state;
    struct drps_picker p;
    drps_picker_init(&p);
    for (size_t i = 0; i < MOST + DRPS_PICK_ROOM; i++)
        from[i] = (uint32_t)drps_rng_at(1, i);
    for (size_t n = 0; n <= MOST; n += n < 140 ? 1 : 37)
        for (unsigned dense = 0; dense < 4; dense++) { /* none, some, most, all */
            for (size_t w = 0; w < MOST / 64 + 2; w++) {
                const uint64_t r = drps_rng_at(n, 8 * w + dense);
                marks[w] = dense == 0   ? 0
                           : dense == 1 ? r & drps_rng_at(n, 8 * w + 4)
                           : dense == 2 ? r | drps_rng_at(n, 8 * w + 5)
                                        : UINT64_MAX;
            }
            check(&p, n, 0);
            check(&p, n, 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_picks_as_one_by_one)};
    return cmocka_run_group_tests_name("pick", tests, NULL, NULL);
}
