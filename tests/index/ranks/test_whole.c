/* The name of a plan for several ranks: it follows from what each rank says of itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/ranks/drps_whole.h"
#include "support/index_case.h"
#include "support/scratch.h"

enum { RANKS = 3 };

struct named {
    uint64_t rank_hash[RANKS];
    uint32_t first[RANKS + 1];
    struct whole_parts parts;
    struct drps_plan_info info;
};

static void begin(struct named *n)
{
    *n = (struct named){.rank_hash = {1, 2, 3}, .first = {0, 10, 20, 30}};
    n->parts = (struct whole_parts){.rank_hash = n->rank_hash, .names_hash = 4, .first = n->first};
    n->info.ranks = (struct drps_plan_ranks){.count = RANKS, .workers = RANKS, .servers = RANKS};
    drps_whole_name(&n->parts, &n->info);
}

/* Names it again, and checks that it has another name. */
static void assert_renamed(struct named *n, const char *what)
{
    struct named as_it_was;
    begin(&as_it_was);
    drps_whole_name(&n->parts, &n->info);
    if (strcmp(n->info.ranks.whole, as_it_was.info.ranks.whole) == 0)
        fail_msg("the name does not depend on %s", what);
}

static void test_whole_name_depends_on_all_of_it(void **state)
{
    struct named n;
    (void)state;
    begin(&n);
    assert_int_equal(strlen(n.info.ranks.whole), 16);
    n.rank_hash[0] = 2; /* two ranks have changed places */
    n.rank_hash[1] = 1;
    assert_renamed(&n, "the order of ranks");
    begin(&n);
    n.parts.names_hash = 5;
    assert_renamed(&n, "the dictionary");
    begin(&n);
    n.first[1] = 11;
    assert_renamed(&n, "who has which rows");
    begin(&n);
    n.parts.hand_on = 1;
    assert_renamed(&n, "rows that are handed on");
    begin(&n);
    n.info.ranks.servers = 1;
    assert_renamed(&n, "who serves");
    begin(&n);
    (void)snprintf(n.info.expression, sizeof(n.info.expression), "squared(y, w*x)");
    assert_renamed(&n, "the text of the loss");
}

/* Every rank of a plan can say its part alone. */
static void test_whole_name_is_made_of_the_parts(void **state)
{
    struct scratch *s = *state;
    struct case_run c;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t hash[RANKS];
    uint32_t first[RANKS + 1] = {0};
    case_begin(&c, s, case_input(s, "in", CASE_LIBSVM, 900, 80, 1), "lor");
    c.options.workers = RANKS;
    struct drps_plan *whole = case_plan(&c);
    struct whole_parts parts = {.rank_hash = hash, .first = first};
    struct drps_plan_info info = whole->info;
    info.ranks.whole[0] = '\0';
    for (uint32_t r = 0; r < RANKS; r++) {
        struct drps_plan *part;
        assert_int_equal(drps_plan_open_rank(drps_io_os(), whole->dir, r, &part, &err), 0);
        assert_string_equal(part->info.ranks.whole, whole->info.id);
        assert_int_equal(drps_whole_hash_rank(drps_io_os(), part->dir, &part->info, &hash[r], &err),
                         0);
        first[r + 1] = first[r] + (uint32_t)part->info.rows;
        drps_plan_close(part);
    }
    assert_int_equal(drps_whole_hash_names(drps_io_os(), whole->dir, &parts.names_hash, &err), 0);
    drps_whole_name(&parts, &info);
    assert_string_equal(info.ranks.whole, whole->info.id);
    drps_plan_close(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_name_depends_on_all_of_it),
        cmocka_unit_test_setup_teardown(test_whole_name_is_made_of_the_parts, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
