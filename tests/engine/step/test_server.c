/* Sums of the gradients of a team: in the members' order, into any member's array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "engine/step/drps_server.h"

enum { MEMBERS = 4, ROWS = 700, DIM = 9, FIRST = 3, LAST = 697 };

struct parts {
    float grads[MEMBERS][ROWS * DIM];
    uint32_t touches[MEMBERS][ROWS];
};

/* Gradients have sizes from 2^-8 to 2^8, so that the order of additions shows. */
static void fill(struct parts *p)
{
    uint64_t r = 0;
    for (size_t k = 0; k < MEMBERS; k++)
        for (size_t i = 0; i < ROWS * DIM; i++, r++) {
            const float scale = (float)(1 << (drps_rng_at(2, r) & 15)) / 256;
            p->grads[k][i] = (drps_unit_float(drps_rng_at(1, r)) - 0.5f) * scale;
            p->touches[k][i / DIM] = (uint32_t)(r % 7);
        }
}

static void test_gradients_sum_is_that_of_the_members_in_order(void **state)
{
    static struct parts before, after;
    (void)state;
    fill(&before);
    for (unsigned n = 1; n <= MEMBERS; n++)
        for (unsigned into = 0; into < n; into++) {
            float *grads[MEMBERS];
            uint32_t *touches[MEMBERS];
            after = before;
            for (unsigned k = 0; k < n; k++) {
                grads[k] = after.grads[k];
                touches[k] = after.touches[k];
            }
            const struct drps_gradients g = {grads, touches, n};
            drps_gradients_sum(DIM, FIRST, LAST, &g, into);
            for (size_t i = 0; i < ROWS * DIM; i++) {
                float want = before.grads[0][i];
                for (unsigned k = 1; k < n; k++)
                    want += before.grads[k][i];
                if (i / DIM < FIRST || i / DIM >= LAST) want = before.grads[into][i];
                assert_memory_equal(&after.grads[into][i], &want, sizeof(want));
            }
            for (size_t i = 0; i < ROWS; i++) {
                uint32_t want = 0;
                for (unsigned k = 0; k < n; k++)
                    want += before.touches[k][i];
                if (i < FIRST || i >= LAST) want = before.touches[into][i];
                assert_int_equal(after.touches[into][i], want);
            }
            for (unsigned k = 0; k < MEMBERS; k++)
                if (k != into) {
                    assert_memory_equal(after.grads[k], before.grads[k], sizeof(after.grads[k]));
                    assert_memory_equal(after.touches[k], before.touches[k],
                                        sizeof(after.touches[k]));
                }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_sum_is_that_of_the_members_in_order),
    };
    return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
