/*
 * Placing units: the papers' examples, properties of random units against a recount, the
 * renumbering.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "partition/drps_partition.h"
#include "support/lists.h"

static const char *const algos[] = {"greedy", "dppa", "range", "hash"};
enum { ALGOS = sizeof(algos) / sizeof(algos[0]) };

/* Units written as a table of touches [units][machines]; one row and one byte each, unless set. */
static struct drps_units units_new(size_t n, uint32_t machines, const uint32_t *touches,
                                   const double *io_s, double net_s)
{
    struct drps_units u = {.n = n, .machines = machines, .row_net_s = net_s};
    u.first = must(calloc(n + 1, sizeof(*u.first)));
    u.bytes = must(calloc(n + 1, sizeof(*u.bytes)));
    u.io_s = must(calloc(n + 1, sizeof(*u.io_s)));
    u.hot = must(calloc(n + 1, sizeof(*u.hot)));
    u.starts = must(calloc(n + 1, sizeof(*u.starts)));
    u.touches = must(calloc(n * machines + 1, sizeof(*u.touches)));
    size_t t = 0;
    for (size_t p = 0; p < n; p++) {
        u.first[p + 1] = (uint32_t)p + 1;
        u.bytes[p] = 1;
        u.io_s[p] = io_s[p];
        for (uint32_t m = 0; m < machines; m++)
            if (touches[p * machines + m])
                u.touches[t++] = (struct drps_touch){m, touches[p * machines + m]};
        u.starts[p + 1] = t;
    }
    return u;
}

static void assert_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("expected %.17g, found %.17g", expected, found);
}

static struct drps_placement place(const struct drps_units *u, const char *algo)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_rows_options o = {.algo = algo, .seed = 7};
    struct drps_placement p;
    assert_ok(drps_rows_place(u, &o, &p, &err), &err);
    return p;
}

/* Units of every kind: untouched, touched by one, by all; many bytes or few; some hot. */
static struct drps_units random_units(struct random_source *rng, size_t n, uint32_t machines)
{
    uint32_t *touches = must(calloc(n * machines + 1, sizeof(*touches)));
    double *io = must(calloc(n + 1, sizeof(*io)));
    for (size_t p = 0; p < n; p++) {
        io[p] = (double)random_below(rng, 1000) * (random_below(rng, 8) ? 1 : 40);
        uint64_t dense = random_below(rng, 4);
        for (uint32_t m = 0; m < machines; m++)
            if (random_below(rng, 3) < dense)
                touches[p * machines + m] = (uint32_t)random_below(rng, 100);
    }
    struct drps_units u = units_new(n, machines, touches, io, 1 + (double)random_below(rng, 4));
    for (size_t p = 0; p < n; p++) {
        u.bytes[p] = 1 + random_below(rng, 50);
        u.hot[p] = random_below(rng, 10) == 0;
        if (!u.hot[p]) u.first[p + 1] = u.first[p] + 1 + (uint32_t)random_below(rng, 5);
        if (u.hot[p]) u.first[p + 1] = u.first[p] + 1;
    }
    free(touches);
    free(io);
    return u;
}

static uint32_t count_of(const struct drps_units *u, size_t p, uint32_t machine)
{
    for (size_t t = u->starts[p]; t < u->starts[p + 1]; t++)
        if (u->touches[t].machine == machine) return u->touches[t].count;
    return 0;
}

/* The load of machine m, from the formula (Eq. 4-6 and the disk), unit by unit. */
static struct drps_machine_load recount(const struct drps_units *u, const uint32_t *owner,
                                        uint32_t m)
{
    struct drps_machine_load l = {0};
    for (size_t p = 0; p < u->n; p++) {
        if (owner[p] != m) {
            l.pulled += count_of(u, p, m);
            continue;
        }
        l.disk_s += u->io_s[p];
        l.bytes += u->bytes[p];
        for (uint32_t other = 0; other < u->machines; other++)
            if (other != m) l.served += count_of(u, p, other);
    }
    l.net_s = u->row_net_s * (double)(l.pulled + l.served);
    return l;
}

static double largest_load(const struct drps_units *u, const uint32_t *owner)
{
    double most = 0;
    for (uint32_t m = 0; m < u->machines; m++) {
        struct drps_machine_load l = recount(u, owner, m);
        most = fmax(most, l.disk_s + l.net_s);
    }
    return most;
}

/*
 * The rule of the DRPS paper's Fig. 4: the bucket with the least cost first, then the block of
 * least cost in it. Costs on machines 0 and 1: unit 0: 14, 10; unit 1: 3, 3 (untouched); unit 2: 4,
 * 6; unit 3: 12, 7. Machine 0 takes unit 1 (then 3), machine 1 unit 2 (6), machine 0 unit 3 (15),
 * machine 1 what is left.
 */
static void test_greedy_least_bucket_then_least_block(void **state)
{
    static const uint32_t touches[] = {0, 4, 0, 0, 2, 0, 1, 6};
    static const double io[] = {10, 3, 4, 6};
    static const uint32_t expected[] = {1, 0, 1, 0};
    (void)state;
    struct drps_units u = units_new(4, 2, touches, io, 1);
    struct drps_placement p = place(&u, "greedy");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(p.owner[i], expected[i]);
    drps_placement_destroy(&p);
    drps_units_destroy(&u);
}

/* The plain form of Algorithm 3, on the whole matrix. */
static void greedy_ref(const struct drps_units *u, uint32_t *owner)
{
    double *cost = must(calloc(u->machines, sizeof(*cost)));
    uint8_t *done = must(calloc(u->n + 1, 1));
    for (size_t k = 0; k < u->n; k++) {
        uint32_t m = 0;
        size_t best = SIZE_MAX;
        double least = INFINITY;
        for (uint32_t i = 1; i < u->machines; i++)
            if (cost[i] < cost[m]) m = i;
        for (size_t p = 0; p < u->n; p++) {
            double c = u->io_s[p];
            for (uint32_t i = 0; i < u->machines; i++)
                if (i != m) c += u->row_net_s * count_of(u, p, i);
            if (done[p] || c > least) continue;
            /* of equal ones, those that the machine touches first */
            if (c == least && (count_of(u, best, m) || !count_of(u, p, m))) continue;
            least = c;
            best = p;
        }
        done[best] = 1;
        owner[best] = m;
        cost[m] += least;
    }
    free(cost);
    free(done);
}

static void test_greedy_equals_plain_matrix(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 50; turn++) {
        struct drps_units u =
            random_units(&rng, random_below(&rng, 60), 1 + (uint32_t)random_below(&rng, 7));
        uint32_t *owner = must(calloc(u.n + 1, sizeof(*owner)));
        struct drps_placement p = place(&u, "greedy");
        greedy_ref(&u, owner);
        for (size_t i = 0; i < u.n; i++)
            assert_int_equal(p.owner[i], owner[i]);
        free(owner);
        drps_placement_destroy(&p);
        drps_units_destroy(&u);
    }
}

/*
 * Data d1 .. d4 and rows p1 .. p4 as in the other paper's Fig. 4: delta({d3}) = {p1, p2}, and
 * delta({p1, p2}) = {d1, d2, d3, d4}. D_0 = {d1, d3}, D_1 = {d2, d4}, one batch a machine:
 * pulled is f(D_i, P \ P_i) = |delta(D_i) n (P \ P_i)|, served f(D \ D_i, P_i).
 */
static void test_dppa_correlation_sets(void **state)
{
    static const uint32_t d0[] = {0, 2, 1}, d1[] = {1, 3}; /* d1: p1 p3, d3: p1 p2; d2, d4: p2 p4 */
    static const uint32_t first[] = {0, 1, 2, 3, 4}, uses[4] = {0};
    struct drps_unit_costs costs = {.row_bytes = 4, .row_net_s = 1};
    struct drps_units_maker *maker;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_units u;
    (void)state;
    assert_ok(drps_units_new(first, 4, uses, 0, &costs, 2, &maker, &err), &err);
    assert_ok(drps_units_add(maker, 0, d0, 3, &err), &err);
    assert_ok(drps_units_add(maker, 1, d1, 2, &err), &err);
    assert_ok(drps_units_finish(maker, &u, &err), &err);
    drps_units_maker_free(maker);
    assert_int_equal(drps_units_touches(&u), 5);
    assert_int_equal(drps_units_affinity_bound(&u), 1); /* p2, which both need */

    struct drps_placement p = place(&u, "dppa");
    assert_int_equal(p.owner[0], 0);
    assert_int_equal(p.owner[2], 0);
    assert_int_equal(p.owner[3], 1);
    /* machine 1 has the least traffic (2) and takes p4, then (1) p2, which adds nothing */
    assert_int_equal(p.owner[1], 1);
    assert_int_equal(p.load[0].pulled, 1);
    assert_int_equal(p.load[0].served, 0);
    assert_int_equal(p.load[1].pulled, 0);
    assert_int_equal(p.load[1].served, 1);
    assert_int_equal(p.remote, 1);
    drps_placement_destroy(&p);
    drps_units_destroy(&u);
}

/* A machine's traffic as section 3.3 has it, unit by unit; owner `machines`: nobody yet. By sets a
 * unit counts once for who pulls it and once for who serves it. */
static int64_t traffic_ref(const struct drps_units *u, const uint32_t *owner, uint32_t m,
                           int by_sets)
{
    int64_t sum = 0;
    for (size_t p = 0; p < u->n; p++) {
        int64_t others = 0;
        for (uint32_t i = 0; i < u->machines; i++)
            if (i != m) others += count_of(u, p, i);
        int64_t crosses = owner[p] == m ? others : count_of(u, p, m);
        sum += by_sets ? crosses > 0 : crosses;
    }
    return sum;
}

/* Line 5: of the unassigned units that machine m touches, the one after which its traffic is least;
 * the units' number: none. */
static size_t cheapest_ref(const struct drps_units *u, uint32_t *owner, uint32_t m, int by_sets)
{
    size_t best = u->n;
    int64_t least = INT64_MAX;
    for (size_t p = 0; p < u->n; p++) {
        if (owner[p] != u->machines || !count_of(u, p, m)) continue;
        owner[p] = m;
        const int64_t now = traffic_ref(u, owner, m, by_sets);
        owner[p] = u->machines;
        if (now >= least) continue;
        least = now;
        best = p;
    }
    return best;
}

/* The plain form of Algorithm 2. What nobody touches comes last: to who has fewest bytes. */
static void dppa_ref(const struct drps_units *u, int by_sets, uint32_t *owner)
{
    uint64_t *bytes = must(calloc(u->machines, sizeof(*bytes)));
    for (size_t p = 0; p < u->n; p++)
        owner[p] = u->machines;
    for (;;) {
        uint32_t m = u->machines;
        for (uint32_t i = 0; i < u->machines; i++) {
            if (cheapest_ref(u, owner, i, by_sets) == u->n) continue;
            if (m == u->machines ||
                traffic_ref(u, owner, i, by_sets) < traffic_ref(u, owner, m, by_sets))
                m = i;
        }
        if (m == u->machines) break;
        const size_t p = cheapest_ref(u, owner, m, by_sets);
        owner[p] = m;
        bytes[m] += u->bytes[p];
    }
    for (size_t p = 0; p < u->n; p++) {
        if (owner[p] != u->machines) continue;
        owner[p] = 0;
        for (uint32_t i = 1; i < u->machines; i++)
            if (bytes[i] < bytes[owner[p]]) owner[p] = i;
        bytes[owner[p]] += u->bytes[p];
    }
    free(bytes);
}

static void test_dppa_equals_plain_algorithm(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 40; turn++) {
        struct drps_units u =
            random_units(&rng, random_below(&rng, 30), 1 + (uint32_t)random_below(&rng, 5));
        uint32_t *owner = must(calloc(u.n + 1, sizeof(*owner)));
        for (int by_sets = 0; by_sets < 2; by_sets++) {
            const struct drps_rows_options o = {.algo = "dppa", .by_sets = by_sets};
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_placement p;
            assert_ok(drps_rows_place(&u, &o, &p, &err), &err);
            dppa_ref(&u, by_sets, owner);
            for (size_t i = 0; i < u.n; i++)
                if (p.owner[i] != owner[i])
                    fail_msg("by sets %d, unit %zu of %zu: expected machine %u, found %u", by_sets,
                             i, u.n, owner[i], p.owner[i]);
            drps_placement_destroy(&p);
        }
        free(owner);
        drps_units_destroy(&u);
    }
}

static void check_accounts(const struct drps_units *u, const struct drps_placement *p)
{
    uint64_t pulled = 0, served = 0, bytes = 0, all_bytes = 0;
    double sum = 0;
    for (size_t i = 0; i < u->n; i++) {
        assert_true(p->owner[i] < u->machines);
        all_bytes += u->bytes[i];
    }
    for (uint32_t m = 0; m < u->machines; m++) {
        struct drps_machine_load l = recount(u, p->owner, m);
        assert_int_equal(p->load[m].pulled, l.pulled);
        assert_int_equal(p->load[m].served, l.served);
        assert_int_equal(p->load[m].bytes, l.bytes);
        assert_near(p->load[m].disk_s, l.disk_s, 1e-9 * (1 + l.disk_s));
        assert_near(p->load[m].net_s, l.net_s, 1e-9 * (1 + l.net_s));
        pulled += l.pulled;
        served += l.served;
        bytes += l.bytes;
        sum += l.disk_s + l.net_s;
    }
    assert_int_equal(pulled, served);
    assert_int_equal(p->remote, pulled);
    assert_int_equal(bytes, all_bytes);
    assert_near(p->average_s, sum / u->machines, 1e-9 * (1 + sum));
    assert_near(p->max_s, largest_load(u, p->owner), 1e-9 * (1 + sum));
    assert_true(p->remote >= drps_units_affinity_bound(u));
    assert_true(p->remote <= drps_units_touches(u));
}

static void test_accounts_equal_recount(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 40; turn++) {
        struct drps_units u =
            random_units(&rng, random_below(&rng, 200), 1 + (uint32_t)random_below(&rng, 9));
        for (int a = 0; a < ALGOS; a++) {
            struct drps_placement p = place(&u, algos[a]), again = place(&u, algos[a]);
            check_accounts(&u, &p);
            assert_memory_equal(p.owner, again.owner, u.n * sizeof(*p.owner));
            drps_placement_destroy(&p);
            drps_placement_destroy(&again);
        }
        drps_units_destroy(&u);
    }
}

static void test_renumber_hot_first_stable_and_whole(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 30; turn++) {
        struct drps_err err = DRPS_ERR_INIT;
        uint32_t machines = 1 + (uint32_t)random_below(&rng, 6);
        struct drps_units u = random_units(&rng, random_below(&rng, 80), machines);
        struct drps_placement p = place(&u, "greedy");
        uint32_t *first = must(calloc(u.n + 1, sizeof(*first)));
        uint32_t *machine_first = must(calloc(machines + 1, sizeof(*machine_first)));
        uint32_t rows = u.first[u.n], *unit_at = must(calloc(rows + 1, sizeof(*unit_at)));
        assert_ok(drps_rows_renumber(&u, p.owner, first, machine_first, &err), &err);
        for (size_t i = 0; i < u.n; i++) {
            for (uint32_t r = 0; r < u.first[i + 1] - u.first[i]; r++) {
                assert_true(first[i] + r >= machine_first[p.owner[i]]);
                assert_true(first[i] + r < machine_first[p.owner[i] + 1]);
                assert_int_equal(unit_at[first[i] + r], 0); /* no number twice */
                unit_at[first[i] + r] = (uint32_t)i + 1;
            }
        }
        assert_int_equal(machine_first[0], 0);
        assert_int_equal(machine_first[machines], rows);
        for (uint32_t r = 1; r < rows; r++) {
            size_t a = unit_at[r - 1] - 1, b = unit_at[r] - 1;
            if (p.owner[a] != p.owner[b] || a == b) continue;
            assert_true(u.hot[a] >= u.hot[b]);
            if (u.hot[a] == u.hot[b]) assert_true(a < b);
        }
        free(first);
        free(machine_first);
        free(unit_at);
        drps_placement_destroy(&p);
        drps_units_destroy(&u);
    }
}

/* Blocks {0..3} {4..5} {6..9}; rows 1 and 6 are hot: {0} {1}h {2,3} {4,5} {6}h {7..9}. */
static void test_units_cut_at_hot_rows(void **state)
{
    static const uint32_t first[] = {0, 4, 6, 10}, uses[] = {1, 9, 1, 1, 2, 1, 8, 2, 2, 1};
    static const uint32_t expected[] = {0, 1, 2, 4, 6, 7, 10};
    static const uint8_t hot[] = {0, 1, 0, 0, 1, 0};
    static const uint32_t batch0[] = {3, 1, 2}, batch1[] = {2, 6}, batch2[] = {9, 2, 7};
    struct drps_unit_costs costs = {
        .row_bytes = 10, .seek_s = 1, .byte_s = 0.5, .row_net_s = 3, .hot_block = 4};
    struct drps_units_maker *maker;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_units u;
    (void)state;
    assert_ok(drps_units_new(first, 3, uses, 0.2, &costs, 3, &maker, &err), &err);
    assert_ok(drps_units_add(maker, 0, batch0, 3, &err), &err);
    assert_ok(drps_units_add(maker, 0, batch1, 2, &err), &err);
    assert_ok(drps_units_add(maker, 2, batch2, 3, &err), &err);
    assert_ok(drps_units_finish(maker, &u, &err), &err);
    drps_units_maker_free(maker);
    assert_int_equal(u.n, 6);
    assert_memory_equal(u.first, expected, sizeof(expected));
    assert_memory_equal(u.hot, hot, sizeof(hot));
    assert_int_equal(u.bytes[2], 20);
    assert_near(u.io_s[2], 3 * (1 + 20 * 0.5), 0);    /* three batches touch {2, 3} */
    assert_near(u.io_s[1], 1 * (0.25 + 10 * 0.5), 0); /* hot: four rows share a request */
    assert_near(u.io_s[3], 0, 0);                     /* untouched */
    assert_int_equal(u.starts[3] - u.starts[2], 2);
    assert_int_equal(u.touches[u.starts[2]].count, 3); /* rows: 3, 2 and 2 again */
    assert_int_equal(count_of(&u, 2, 2), 1);
    assert_int_equal(count_of(&u, 5, 2), 2);
    drps_units_destroy(&u);
}

static void test_bad_input_is_named(void **state)
{
    static const uint32_t touches[] = {1, 2, 3, 4};
    static const double io[] = {1, 1};
    struct drps_rows_options o = {.algo = "best"};
    struct drps_placement p;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    struct drps_units u = units_new(2, 2, touches, io, 1);
    assert_int_equal(drps_rows_place(&u, &o, &p, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "'best'"));
    o.algo = "greedy";
    drps_err_clear(&err);
    u.io_s[1] = NAN;
    assert_int_equal(drps_rows_place(&u, &o, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "unit 1"));
    drps_err_clear(&err);
    u.io_s[1] = 1;
    u.touches[3].machine = 2;
    assert_int_equal(drps_rows_place(&u, &o, &p, &err), -EINVAL);
    assert_non_null(strstr(err.text, "machine 2 of 2"));
    drps_units_destroy(&u);
}

static void test_bad_blocks_and_batches_are_named(void **state)
{
    static const uint32_t gap[] = {1, 2}, empty[] = {0, 2, 2}, good[] = {0, 2}, uses[] = {1, 1};
    static const uint32_t row = 2;
    struct drps_unit_costs costs = {.row_bytes = 4};
    struct drps_units_maker *maker;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_units_new(gap, 1, uses, 0, &costs, 1, &maker, &err), -EINVAL);
    assert_int_equal(drps_units_new(empty, 2, uses, 0, &costs, 1, &maker, &err), -EINVAL);
    assert_int_equal(drps_units_new(good, 1, uses, 1.5, &costs, 1, &maker, &err), -EINVAL);
    assert_int_equal(drps_units_new(good, 1, uses, 0, &costs, 0, &maker, &err), -EINVAL);
    drps_err_clear(&err);
    assert_ok(drps_units_new(good, 1, uses, 0, &costs, 2, &maker, &err), &err);
    assert_int_equal(drps_units_add(maker, 0, &row, 1, &err), -EINVAL);
    assert_int_equal(drps_units_add(maker, 2, &row, 0, &err), -EINVAL);
    drps_err_clear(&err);
    assert_ok(drps_units_add(maker, 1, &row, 0, &err), &err);
    assert_int_equal(drps_units_add(maker, 0, &row, 0, &err), -EINVAL); /* machines rise */
    drps_units_maker_free(maker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_least_bucket_then_least_block),
        cmocka_unit_test(test_greedy_equals_plain_matrix),
        cmocka_unit_test(test_dppa_correlation_sets),
        cmocka_unit_test(test_dppa_equals_plain_algorithm),
        cmocka_unit_test(test_accounts_equal_recount),
        cmocka_unit_test(test_renumber_hot_first_stable_and_whole),
        cmocka_unit_test(test_units_cut_at_hot_rows),
        cmocka_unit_test(test_bad_input_is_named),
        cmocka_unit_test(test_bad_blocks_and_batches_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
