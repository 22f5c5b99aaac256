/* Free sectors: what is found is what looking at one sector after the other finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/kv/free_sectors.h"
#include "support/store_plan.h"

/* The twin: a byte a sector. */
static int piece_behind(const char *used, uint32_t sectors, uint32_t from, uint32_t want,
                        uint32_t *at_out)
{
    uint32_t run = 0;
    for (uint32_t s = from; s < sectors; s++) {
        run = used[s] ? 0 : run + 1;
        if (run < want) continue;
        *at_out = s + 1 - want;
        return 1;
    }
    return 0;
}

static uint32_t longest_piece(const char *used, uint32_t sectors)
{
    uint32_t run = 0, longest = 0;
    for (uint32_t s = 0; s < sectors; s++) {
        run = used[s] ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static uint32_t find_by_looking(const char *used, uint32_t sectors, uint32_t from, uint32_t want,
                                uint32_t *at_out)
{
    const uint32_t longest = longest_piece(used, sectors);
    if (want > longest) want = longest;
    if (want && !piece_behind(used, sectors, from, want, at_out))
        assert_true(piece_behind(used, sectors, 0, want, at_out));
    return want;
}

struct fixture {
    uint64_t seed, at; /* of the random numbers */
    struct drps_free_sectors v;
    char *used;
};

static uint32_t draw(struct fixture *f, uint32_t n)
{
    return (uint32_t)(drps_rng_at(f->seed, f->at++) % n);
}

static void mark(struct fixture *f, uint32_t first, uint32_t n, int used)
{
    memset(f->used + first, used, n);
    drps_free_sectors_mark(&f->v, first, n, used);
}

static void compare(struct fixture *f, uint32_t from, uint32_t want)
{
    uint32_t at = 0, expected_at = 0;
    const uint32_t expected = find_by_looking(f->used, f->v.sectors, from, want, &expected_at);
    const uint32_t found = drps_free_sectors_find(&f->v, from, want, &at);
    if (found != expected || (found && at != expected_at))
        fail_msg("seed %llu, draw %llu: %u free sectors behind %u: expected %u at %u, found %u "
                 "at %u",
                 (unsigned long long)f->seed, (unsigned long long)f->at, want, from, expected,
                 expected_at, found, at);
}

static void begin(struct fixture *f, uint64_t seed, uint32_t sectors)
{
    *f = (struct fixture){.seed = seed};
    assert_int_equal(drps_free_sectors_init(&f->v, sectors), 0);
    f->used = calloc(sectors + 1, 1);
    assert_non_null(f->used);
}

static void end(struct fixture *f)
{
    drps_free_sectors_destroy(&f->v);
    free(f->used);
}

/* Pieces of any length, small holes, whole words and more; sizes at the borders of words and of the
 * tree. */
static void test_finds_what_looking_finds(void **state)
{
    static const uint32_t sizes[] = {1, 63, 64, 65, 128, 129, 700, 4096, 5000};
    (void)state;
    const uint64_t seed = test_seed("free");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const uint32_t n = sizes[i];
        struct fixture f;
        begin(&f, seed + i, n);
        for (int round = 0; round < 2000; round++) {
            const uint32_t first = draw(&f, n), longest = 1 + draw(&f, round % 3 ? 8 : n);
            const uint32_t length = 1 + draw(&f, longest);
            mark(&f, first, length < n - first ? length : n - first, (int)draw(&f, 2));
            compare(&f, draw(&f, n), 1 + draw(&f, draw(&f, 2) ? 12 : n));
        }
        end(&f);
    }
}

static void test_full_and_empty(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t at = 7;
    begin(&f, 1, 1000);
    compare(&f, 990, 1000);
    compare(&f, 0, 2000); /* all there are */
    mark(&f, 0, 1000, 1);
    assert_int_equal(drps_free_sectors_find(&f.v, 5, 1, &at), 0);
    mark(&f, 999, 1, 0);
    compare(&f, 0, 10);
    compare(&f, 999, 10);
    end(&f);
    begin(&f, 1, 0);
    assert_int_equal(drps_free_sectors_find(&f.v, 0, 1, &at), 0);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_what_looking_finds),
        cmocka_unit_test(test_full_and_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
