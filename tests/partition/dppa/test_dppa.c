/*
 * Algorithm 1 of the compression and partition paper against a plain form that tries every subset;
 * parameters first; traffic by sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "partition/dppa/drps_dppa.h"
#include "support/lists.h"

enum { MOST = 6 };

/* Samples of 0 to MOST features; those of sample s mostly from community s % communities. */
static struct drps_sample_set random_set(struct random_source *rng, size_t n, uint32_t features_n,
                                         uint32_t communities)
{
    size_t *starts = must(calloc(n + 1, sizeof(*starts)));
    uint32_t *features = must(calloc(n * MOST + 1, sizeof(*features)));
    const uint32_t each = features_n / communities;
    for (size_t s = 0; s < n; s++) {
        size_t end = starts[s];
        for (uint64_t k = random_below(rng, MOST + 1); k > 0; k--) {
            uint32_t f = (uint32_t)(s % communities) * each + (uint32_t)random_below(rng, each);
            if (random_below(rng, 10) == 0) f = (uint32_t)random_below(rng, features_n);
            size_t i = starts[s];
            while (i < end && features[i] != f)
                i++;
            if (i == end) features[end++] = f;
        }
        starts[s + 1] = end;
    }
    return (struct drps_sample_set){n, features_n, starts, features};
}

static void set_free(struct drps_sample_set *set)
{
    free((void *)set->starts);
    free((void *)set->features);
}

static uint32_t *place(const struct drps_sample_set *set, const struct drps_dppa_options *o,
                       struct drps_dppa_report *report)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *owner = must(malloc((set->n + 1) * sizeof(*owner)));
    memset(owner, 0xff, (set->n + 1) * sizeof(*owner));
    assert_ok(drps_dppa_samples(set, o, owner, report, &err), &err);
    return owner;
}

/* ---- The plain form of Algorithm 1 ---- */

enum { NOBODY = UINT32_MAX };

struct plain {
    const struct drps_sample_set *set;
    const struct drps_dppa_options *o;
    double beta;
    uint32_t alpha, part;
    uint32_t *owner;           /* NOBODY: in D */
    uint32_t drawn[64], n;     /* S */
    uint32_t chosen[64];       /* of it, while subsets are tried */
    uint32_t best[64], best_n; /* S* */
    double least;              /* f(D_i + S*) - beta |D_i + S*| */
};

/* f(D_i + S') - beta |D_i + S'|, feature by feature. */
static double value_of(const struct plain *p, const uint32_t *subset, uint32_t n)
{
    const struct drps_sample_set *set = p->set;
    double value = 0;
    for (uint32_t f = 0; f < set->features_n; f++) {
        int touched = 0;
        for (size_t s = 0; s < set->n; s++) {
            int in = p->owner[s] == p->part;
            for (uint32_t k = 0; k < n; k++)
                in |= subset[k] == s;
            for (size_t i = set->starts[s]; in && i < set->starts[s + 1]; i++)
                touched |= set->features[i] == f;
        }
        value += touched;
    }
    for (size_t s = 0; s < set->n; s++)
        value -= p->owner[s] == p->part ? p->beta : 0;
    return value - p->beta * n;
}

/* Every subset of at most alpha, in the order of numbers. */
static void try_subsets(struct plain *p, uint32_t depth, uint32_t from)
{
    for (uint32_t k = from; k < p->n && depth < p->alpha; k++) {
        p->chosen[depth] = p->drawn[k];
        const double value = value_of(p, p->chosen, depth + 1);
        if (value < p->least) {
            p->least = value;
            p->best_n = depth + 1;
            memcpy(p->best, p->chosen, sizeof(p->best));
        }
        try_subsets(p, depth + 1, k + 1);
    }
}

/* Line 3: each sample of D with probability N / (W |D|); 0 where line 4 refuses S. */
static int draw_ref(struct plain *p, uint64_t turn, uint32_t left)
{
    const double share = (double)p->set->n / ((double)p->o->machines * left);
    const uint64_t seed = drps_rng_at(p->o->seed, turn);
    uint64_t most = 2 * (uint64_t)p->set->n / p->o->machines;
    if (most < 1) most = 1;
    p->n = 0;
    for (uint32_t s = 0; s < p->set->n; s++)
        if (p->owner[s] == NOBODY && drps_unit_double(drps_rng_at(seed, s)) < share)
            p->drawn[p->n++] = s;
    return p->n <= most;
}

static uint32_t smallest_ref(const struct plain *p)
{
    uint32_t sizes[16] = {0}, best = 0;
    for (size_t s = 0; s < p->set->n; s++)
        if (p->owner[s] != NOBODY) sizes[p->owner[s]]++;
    for (uint32_t m = 1; m < p->o->machines; m++)
        if (sizes[m] < sizes[best]) best = m;
    return best;
}

/* The sample of S after which f(D_i) is least. */
static void choose_cheapest(struct plain *p)
{
    const double beta = p->beta;
    p->beta = 0;
    p->least = 1e9;
    for (uint32_t k = 0; k < p->n; k++) {
        const double value = value_of(p, &p->drawn[k], 1);
        if (value >= p->least) continue;
        p->least = value;
        p->best[0] = p->drawn[k];
    }
    p->beta = beta;
    p->best_n = 1;
}

/* What is not printed: after 100 turns that assign nothing, or one where S is all of D, the
 * cheapest sample of S is taken. Returns how often. */
static uint64_t place_ref(struct plain *p)
{
    uint32_t left = (uint32_t)p->set->n, fruitless = 0;
    uint64_t forced = 0;
    for (uint64_t turn = 0; left > 0; turn++) {
        p->part = smallest_ref(p);
        p->best_n = 0;
        p->least = value_of(p, NULL, 0);
        if (!draw_ref(p, turn, left)) p->n = 0;
        try_subsets(p, 0, 0);
        if (!p->best_n || !(p->least < 0)) {
            fruitless++;
            if (!p->n || (fruitless < 100 && p->n < left)) continue;
            choose_cheapest(p);
            forced++;
        }
        for (uint32_t k = 0; k < p->best_n; k++)
            p->owner[p->best[k]] = p->part;
        left -= p->best_n;
        fruitless = 0;
    }
    return forced;
}

static void test_samples_equal_plain_algorithm(void **state)
{
    static const double betas[] = {1, 1.5, 2.5, 4, 7, 20};
    uint64_t forced = 0, taken = 0;
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 60; turn++) {
        struct drps_sample_set set = random_set(&rng, random_below(&rng, 17), 24, 3);
        const struct drps_dppa_options o = {.machines = 1 + (uint32_t)random_below(&rng, 4),
                                            .alpha = 1 + (uint32_t)random_below(&rng, 3),
                                            .sample = DRPS_DPPA_PRINTED,
                                            .beta = betas[turn % 6],
                                            .seed = random_u64(&rng)};
        struct drps_dppa_report report;
        uint32_t *owner = place(&set, &o, &report), expected[16];
        struct plain p = {
            .set = &set, .o = &o, .beta = o.beta, .alpha = o.alpha, .owner = expected};
        memset(expected, 0xff, sizeof(expected));
        forced += report.forced;
        taken += set.n;
        assert_int_equal(report.forced, place_ref(&p));
        for (size_t s = 0; s < set.n; s++)
            if (owner[s] != expected[s])
                fail_msg("alpha %u, beta %g, sample %zu of %zu: expected machine %u, found %u",
                         o.alpha, o.beta, s, set.n, expected[s], owner[s]);
        free(owner);
        set_free(&set);
    }
    assert_true(forced > 0 && forced < taken); /* both ways were gone */
}

/*
 * Samples a and b: {0, 1}, c: {2, 3, 4}, d: {2, 3, 5}; two machines, alpha 2, all looked at
 * together, so that nothing is left to chance.
 */
static void test_beta_says_what_is_worth_taking(void **state)
{
    static const size_t starts[] = {0, 2, 4, 7, 10};
    static const uint32_t features[] = {0, 1, 0, 1, 2, 3, 4, 2, 3, 5};
    const struct drps_sample_set set = {4, 6, starts, features};
    static const struct {
        const char *name;
        double beta;
        uint32_t owner[4];
        uint64_t forced;
    } cases[] = {
        /* a and b: 2 - 5; c and d: 4 - 5 */
        {"both pairs", 2.5, {0, 0, 1, 1}, 0},
        /* a and b: 2 - 3; then c and d are 4 - 3: neither is taken of itself, c comes first; with d
         * the part is worth 4 - 3 still */
        {"one pair", 1.5, {0, 0, 1, 1}, 2},
        /* a and b are 2 - 1: all are forced, one at a time, on the smallest part */
        {"none", 0.5, {0, 1, 0, 1}, 4},
        /* by default 3 + 1: as in the first case */
        {"default", 0, {0, 0, 1, 1}, 0},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const struct drps_dppa_options o = {
            .machines = 2, .alpha = 2, .sample = 4, .beta = cases[c].beta};
        struct drps_dppa_report report;
        uint32_t *owner = place(&set, &o, &report);
        for (int s = 0; s < 4; s++)
            if (owner[s] != cases[c].owner[s])
                fail_msg("%s: sample %d: expected machine %u, found %u", cases[c].name, s,
                         cases[c].owner[s], owner[s]);
        assert_int_equal(report.forced, cases[c].forced);
        free(owner);
    }
}

/* The smallest part takes: sizes differ by alpha at most, or by alpha of the longest samples. */
static void test_parts_are_even_and_repeat(void **state)
{
    static const uint32_t samples[] = {0, 5, DRPS_DPPA_PRINTED};
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 40; turn++) {
        struct drps_sample_set set = random_set(&rng, random_below(&rng, 300), 100, 4);
        const struct drps_dppa_options o = {.machines = 1 + (uint32_t)random_below(&rng, 9),
                                            .alpha = 1 + (uint32_t)random_below(&rng, 2),
                                            .sample = samples[turn % 3],
                                            .beta = (double)random_below(&rng, 8),
                                            .by_entries = turn / 3 % 2,
                                            .seed = random_u64(&rng)};
        struct drps_dppa_report report;
        uint32_t *owner = place(&set, &o, &report), *again = place(&set, &o, &report);
        uint64_t weight[9] = {0}, all = 0;
        for (size_t s = 0; s < set.n; s++) {
            const uint64_t w = o.by_entries ? set.starts[s + 1] - set.starts[s] : 1;
            assert_true(owner[s] < o.machines);
            assert_int_equal(owner[s], again[s]);
            weight[owner[s]] += w;
            all += w;
        }
        for (uint32_t m = 0; m < o.machines; m++)
            assert_true(weight[m] <= all / o.machines + o.alpha * (o.by_entries ? MOST : 1));
        free(owner);
        free(again);
        set_free(&set);
    }
}

/* The most for which there are no more subsets of S than rows: of 8 there are 8 of one, 28 of two,
 * 56 of three, 70 of four. */
static void test_alpha_adapts_to_rows(void **state)
{
    static const struct {
        uint32_t features_n, alpha;
    } cases[] = {{7, 1}, {35, 1}, {36, 2}, {91, 2}, {92, 3}, {161, 3}, {162, 4}};
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_sample_set set = random_set(&rng, 20, cases[c].features_n, 1);
        const struct drps_dppa_options o = {
            .machines = 2, .alpha = DRPS_DPPA_ADAPTIVE, .sample = 8};
        struct drps_dppa_report report;
        free(place(&set, &o, &report));
        assert_int_equal(report.alpha, cases[c].alpha);
        set_free(&set);
    }
}

/* Of communities, less than three quarters of the rows are pulled that are where samples are dealt.
 */
static void test_communities_come_together(void **state)
{
    (void)state;
    struct random_source rng = {.seed = 11};
    struct drps_sample_set set = random_set(&rng, 4000, 4000, 40);
    const struct drps_dppa_options o = {.machines = 4, .seed = 1};
    struct drps_dppa_report report;
    uint32_t *owner = place(&set, &o, &report);
    uint64_t touched[2] = {0}; /* rows of all parts: placed, dealt */
    for (uint32_t m = 0; m < 4; m++)
        for (int dealt = 0; dealt < 2; dealt++) {
            uint8_t *seen = must(calloc(set.features_n, 1));
            for (size_t s = 0; s < set.n; s++)
                for (size_t i = set.starts[s]; i < set.starts[s + 1]; i++)
                    if ((dealt ? s / 1000 : owner[s]) == m && !seen[set.features[i]]++)
                        touched[dealt]++;
            free(seen);
        }
    assert_true((double)touched[0] < .75 * (double)touched[1]);
    free(owner);
    set_free(&set);
}

/* Algorithm 2 with samples in place of rows: machine m's data are the rows it has, and each
 * touches the samples that use it. */
static uint32_t *follow_rows(const struct drps_sample_set *set, const uint32_t *rows,
                             uint32_t machines, int by_sets)
{
    const struct drps_rows_options o = {.algo = "dppa", .by_sets = by_sets};
    const struct drps_unit_costs costs = {.row_bytes = 1, .row_net_s = 1};
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *first = must(calloc(set->n + 1, sizeof(*first)));
    uint32_t *uses = must(calloc(set->n + 1, sizeof(*uses)));
    uint32_t *touched = must(calloc(set->n + 1, sizeof(*touched)));
    uint32_t *owner = must(calloc(set->n + 1, sizeof(*owner)));
    struct drps_units_maker *maker;
    struct drps_units units;
    struct drps_placement p;
    for (size_t s = 0; s <= set->n; s++)
        first[s] = (uint32_t)s;
    assert_ok(drps_units_new(first, set->n, uses, 0, &costs, machines, &maker, &err), &err);
    for (uint32_t m = 0; m < machines; m++)
        for (uint32_t f = 0; f < set->features_n; f++) {
            size_t n = 0;
            for (uint32_t s = 0; s < set->n && rows[f] == m; s++)
                for (size_t i = set->starts[s]; i < set->starts[s + 1]; i++)
                    if (set->features[i] == f) touched[n++] = s;
            assert_ok(drps_units_add(maker, m, touched, n, &err), &err);
        }
    assert_ok(drps_units_finish(maker, &units, &err), &err);
    assert_ok(drps_rows_place(&units, &o, &p, &err), &err);
    memcpy(owner, p.owner, set->n * sizeof(*owner));
    drps_placement_destroy(&p);
    drps_units_destroy(&units);
    drps_units_maker_free(maker);
    free(first);
    free(uses);
    free(touched);
    return owner;
}

/* Rows first is Algorithm 1 on the graph turned round; then the samples follow their rows. */
static void test_rows_first(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 20; turn++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_dppa_report report, turned_report;
        struct drps_sample_set set = random_set(&rng, random_below(&rng, 40), 30, 3);
        const struct drps_dppa_options o = {.machines = 1 + (uint32_t)random_below(&rng, 4),
                                            .alpha = 2,
                                            .beta = 1 + (double)random_below(&rng, 4),
                                            .by_sets = turn % 2,
                                            .seed = random_u64(&rng)};
        size_t starts[31] = {0}, n = 0;
        uint32_t samples[40 * MOST], rows[30], owner[40];
        for (uint32_t f = 0; f < 30; f++) {
            for (size_t s = 0; s < set.n; s++)
                for (size_t i = set.starts[s]; i < set.starts[s + 1]; i++)
                    if (set.features[i] == f) samples[n++] = (uint32_t)s;
            starts[f + 1] = n;
        }
        const struct drps_sample_set turned = {30, (uint32_t)set.n, starts, samples};
        uint32_t *expected = place(&turned, &o, &turned_report);
        assert_ok(drps_dppa_rows_first(&set, &o, rows, owner, &report, &err), &err);
        assert_memory_equal(rows, expected, sizeof(rows));
        assert_memory_equal(&report, &turned_report, sizeof(report));
        uint32_t *followed = follow_rows(&set, rows, o.machines, o.by_sets);
        assert_memory_equal(owner, followed, set.n * sizeof(*owner));
        free(followed);
        free(expected);
        set_free(&set);
    }
}

/*
 * Fig. 4 of the paper: delta({d3}) = {p1, p2}, delta({p1, p2}) = {d1, d2, d3, d4}. Here D_0 =
 * {d1, d3} touches p1, p2, p3 and D_1 = {d2, d4} p2 and p4, twice each, P_0 = {p1, p3}. Only p2
 * moves: once for machine 0, which pulls it, and once for machine 1.
 */
static void test_traffic_by_sets(void **state)
{
    static const uint32_t d0[] = {0, 2, 1}, d1[] = {1, 3}, owner[] = {0, 1, 0, 1},
                          other[] = {1, 0, 1, 0};
    static const uint32_t first[] = {0, 1, 2, 3, 4}, uses[4] = {0};
    struct drps_unit_costs costs = {.row_bytes = 4};
    struct drps_units_maker *maker;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_units u;
    struct drps_set_traffic load[3];
    (void)state;
    assert_ok(drps_units_new(first, 4, uses, 0, &costs, 3, &maker, &err), &err);
    assert_ok(drps_units_add(maker, 0, d0, 3, &err), &err);
    assert_ok(drps_units_add(maker, 1, d1, 2, &err), &err);
    assert_ok(drps_units_add(maker, 1, d1, 2, &err), &err);
    assert_ok(drps_units_add(maker, 2, d1, 2, &err), &err);
    assert_ok(drps_units_finish(maker, &u, &err), &err);
    drps_units_maker_free(maker);
    assert_int_equal(drps_dppa_traffic(&u, owner, load), 2);
    assert_int_equal(load[0].pulled, 1);
    assert_int_equal(load[0].served, 0);
    assert_int_equal(load[1].pulled, 0);
    assert_int_equal(load[1].served, 2); /* p2 to two others, and p4: once each */
    assert_int_equal(load[2].pulled, 2);
    assert_int_equal(drps_dppa_traffic(&u, other, load), 4);
    assert_int_equal(load[0].pulled, 2);
    assert_int_equal(load[0].served, 2);
    assert_int_equal(load[1].pulled, 2);
    assert_int_equal(load[1].served, 2);
    drps_units_destroy(&u);
}

static int stop_at_three(void *ctx, uint64_t placed, struct drps_err *err)
{
    *(uint64_t *)ctx = placed;
    return placed == 3 ? drps_err_set(err, -ECANCELED, "enough") : 0;
}

static void test_refusals_are_named(void **state)
{
    static const size_t starts[] = {0, 1};
    static const uint32_t feature = 3;
    static const struct {
        const char *name;
        struct drps_dppa_options o;
        uint32_t features_n;
        int code;
        const char *text;
    } cases[] = {
        {"machines", {.machines = 0}, 4, DRPS_E_CONFIG, "0 machines"},
        {"beta", {.machines = 2, .beta = -1}, 4, DRPS_E_CONFIG, "beta is -1"},
        {"alpha", {.machines = 2, .alpha = 17}, 4, DRPS_E_CONFIG, "alpha is 17; at most 16"},
        {"feature", {.machines = 2}, 3, -EINVAL, "feature 3 of 3"},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_dppa_report report;
        const struct drps_sample_set set = {1, cases[c].features_n, starts, &feature};
        uint32_t owner;
        assert_int_equal(drps_dppa_samples(&set, &cases[c].o, &owner, &report, &err),
                         cases[c].code);
        if (!strstr(err.text, cases[c].text))
            fail_msg("%s: expected '%s' in '%s'", cases[c].name, cases[c].text, err.text);
    }
}

/* A search that would not end is refused before it begins; one that takes long can be stopped. */
static void test_long_searches(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_dppa_report report;
    struct drps_sample_set set = random_set(&rng, 400, 100, 4);
    uint32_t *owner = must(calloc(set.n, sizeof(*owner)));
    uint64_t placed = 0;
    const struct drps_dppa_options hopeless = {.machines = 2, .alpha = 6, .sample = 200};
    assert_int_equal(drps_dppa_samples(&set, &hopeless, owner, &report, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "lower alpha"));
    drps_err_clear(&err);
    const struct drps_dppa_options stopped = {
        .machines = 2, .turn = stop_at_three, .turn_ctx = &placed};
    assert_int_equal(drps_dppa_samples(&set, &stopped, owner, &report, &err), -ECANCELED);
    assert_int_equal(placed, 3);
    free(owner);
    set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_equal_plain_algorithm),
        cmocka_unit_test(test_beta_says_what_is_worth_taking),
        cmocka_unit_test(test_parts_are_even_and_repeat),
        cmocka_unit_test(test_alpha_adapts_to_rows),
        cmocka_unit_test(test_communities_come_together),
        cmocka_unit_test(test_rows_first),
        cmocka_unit_test(test_traffic_by_sets),
        cmocka_unit_test(test_refusals_are_named),
        cmocka_unit_test(test_long_searches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
