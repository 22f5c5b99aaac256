/*
 * Placing samples: limits of weight, communities found again, batches, hashed features.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "partition/drps_partition.h"
#include "support/lists.h"

static const char *const algos[] = {"auto", "range", "hash"};
enum { ALGOS = sizeof(algos) / sizeof(algos[0]), MOST = 12 };

/* Samples of 0 to MOST features; those of sample s mostly from community s % communities. */
static struct drps_sample_set random_set(struct random_source *rng, size_t n, uint32_t features_n,
                                         uint32_t communities)
{
    size_t *starts = must(calloc(n + 1, sizeof(*starts)));
    uint32_t *features = must(calloc(n * MOST + 1, sizeof(*features)));
    uint32_t each = features_n / communities;
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

static uint32_t *place(const struct drps_sample_set *set, const struct drps_samples_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *owner = must(malloc((set->n + 1) * sizeof(*owner)));
    memset(owner, 0xff, (set->n + 1) * sizeof(*owner));
    assert_ok(drps_samples_place(set, o, owner, &err), &err);
    return owner;
}

/* Every sample on one machine, none above the limit that the header states; the same twice. */
static void test_limits_hold_and_results_repeat(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 60; turn++) {
        uint32_t machines = 1 + (uint32_t)random_below(&rng, 9);
        struct drps_sample_set set = random_set(&rng, random_below(&rng, 600), 100, 4);
        for (int a = 0; a < ALGOS; a++) {
            struct drps_samples_options o = {.algo = algos[a],
                                             .machines = machines,
                                             .batch_size = 10,
                                             .by_entries = (int)random_below(&rng, 2),
                                             .seed = random_u64(&rng)};
            uint32_t *owner = place(&set, &o), *again = place(&set, &o);
            uint64_t weight[9] = {0}, all = 0, heaviest = 0;
            for (size_t s = 0; s < set.n; s++) {
                uint64_t w = o.by_entries ? set.starts[s + 1] - set.starts[s] : 1;
                assert_true(owner[s] < machines);
                assert_int_equal(owner[s], again[s]);
                weight[owner[s]] += w;
                all += w;
                if (w > heaviest) heaviest = w;
            }
            uint64_t limit = (uint64_t)(1.02 * (double)all / machines);
            if (limit < all / machines + heaviest) limit = all / machines + heaviest;
            for (uint32_t m = 0; m < machines; m++)
                assert_true(weight[m] <= limit);
            free(owner);
            free(again);
        }
        set_free(&set);
    }
}

/* The least remote rows, with batches of ten. */
static uint64_t remote_of(const struct drps_sample_set *set, const uint32_t *owner,
                          uint32_t machines, uint64_t seed)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_unit_costs costs = {.row_bytes = 4};
    struct drps_units_maker *maker;
    struct drps_units units;
    uint32_t *first = must(calloc(set->features_n + 1, sizeof(*first)));
    uint32_t *uses = must(calloc(set->features_n, sizeof(*uses)));
    for (uint32_t f = 0; f <= set->features_n; f++)
        first[f] = f;
    assert_ok(drps_units_new(first, set->features_n, uses, 0, &costs, machines, &maker, &err),
              &err);
    assert_ok(drps_samples_batches(set, owner, machines, 10, seed, drps_units_add, maker, &err),
              &err);
    assert_ok(drps_units_finish(maker, &units, &err), &err);
    uint64_t remote = drps_units_affinity_bound(&units);
    drps_units_destroy(&units);
    drps_units_maker_free(maker);
    free(first);
    free(uses);
    return remote;
}

/* Communities: less than three quarters of what hashing leaves; without any, no more. */
static void test_communities_come_together(void **state)
{
    static const struct {
        const char *name;
        uint32_t communities;
        const char *algo;
        double share;
    } cases[] = {{"auto, 40 communities", 40, "auto", 0.75}, {"auto, none", 1, "auto", 1}};
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct random_source rng = {.seed = 11};
        struct drps_sample_set set = random_set(&rng, 8000, 4000, cases[c].communities);
        struct drps_samples_options o = {.algo = cases[c].algo, .machines = 4, .batch_size = 10};
        uint32_t *owner = place(&set, &o);
        o.algo = "hash";
        uint32_t *hashed = place(&set, &o);
        uint64_t ours = remote_of(&set, owner, 4, 0), hash = remote_of(&set, hashed, 4, 0);
        if ((double)ours > cases[c].share * (double)hash)
            fail_msg("%s: %llu remote rows, %llu hashed", cases[c].name, (unsigned long long)ours,
                     (unsigned long long)hash);
        free(owner);
        free(hashed);
        set_free(&set);
    }
}

struct seen {
    const struct drps_sample_set *set;
    uint32_t machine, stop_at;
    size_t batches, *entries; /* entries [R]: batches of `machine` that touch a row */
};

static int see(void *ctx, uint32_t machine, const uint32_t *rows, size_t n, struct drps_err *err)
{
    struct seen *seen = ctx;
    if (++seen->batches == seen->stop_at) return drps_err_set(err, -ECANCELED, "enough");
    assert_true(machine >= seen->machine);
    seen->machine = machine;
    for (size_t i = 0; i < n; i++) {
        assert_true(rows[i] < seen->set->features_n);
        seen->entries[rows[i]]++;
    }
    return 0;
}

/* Batches of one sample: each entry comes once, whoever owns it. An error ends the walk. */
static void test_batches_cover_every_entry(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_sample_set set = random_set(&rng, 300, 50, 5);
    uint32_t *owner = must(calloc(set.n, sizeof(*owner)));
    struct seen seen = {.set = &set, .entries = must(calloc(50, sizeof(size_t)))};
    for (size_t s = 0; s < set.n; s++)
        owner[s] = (uint32_t)random_below(&rng, 7);
    assert_ok(drps_samples_batches(&set, owner, 7, 1, 3, see, &seen, &err), &err);
    assert_int_equal(seen.batches, set.n);
    for (size_t i = 0; i < set.starts[set.n]; i++)
        seen.entries[set.features[i]]--;
    for (size_t f = 0; f < 50; f++)
        assert_int_equal(seen.entries[f], 0);

    seen = (struct seen){.set = &set, .entries = seen.entries, .stop_at = 5};
    assert_int_equal(drps_samples_batches(&set, owner, 7, 2, 3, see, &seen, &err), -ECANCELED);
    assert_int_equal(seen.batches, 5);
    free(seen.entries);
    free(owner);
    set_free(&set);
}

/* Bins below the number asked for, no bin twice in a sample, one feature always in one bin. */
static void test_hashed_features(void **state)
{
    enum { BINS = 16, FEATURES = 100 };
    uint32_t bin_of[FEATURES];
    (void)state;
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_sample_set set = random_set(&rng, 200, FEATURES, 1);
    size_t *starts = must(calloc(set.n + 1, sizeof(*starts)));
    uint32_t *bins = must(calloc(set.starts[set.n] + 1, sizeof(*bins)));
    for (uint32_t f = 0; f < FEATURES; f++) { /* one sample of one feature tells its bin */
        size_t one[] = {0, 1}, one_out[2];
        struct drps_sample_set single = {1, FEATURES, one, &f};
        assert_ok(drps_samples_hash_features(&single, BINS, 9, one_out, &bin_of[f], &err), &err);
        assert_true(bin_of[f] < BINS);
    }
    assert_ok(drps_samples_hash_features(&set, BINS, 9, starts, bins, &err), &err);
    for (size_t s = 0; s < set.n; s++) {
        uint32_t expected = 0, found = 0; /* as sets of bits */
        for (size_t i = set.starts[s]; i < set.starts[s + 1]; i++)
            expected |= 1u << bin_of[set.features[i]];
        for (size_t i = starts[s]; i < starts[s + 1]; i++) {
            assert_int_equal(found >> bins[i] & 1, 0);
            found |= 1u << bins[i];
        }
        assert_int_equal(found, expected);
    }
    assert_int_equal(drps_samples_hash_features(&set, 0, 9, starts, bins, &err), -EINVAL);
    free(starts);
    free(bins);
    set_free(&set);
}

/* ---- Streams ---- */

struct streamed {
    const struct drps_sample_set *set;
    unsigned walks, fail_at; /* fail_at: the walk that fails, from 1 */
};

static int walk(void *ctx, drps_sample_visit visit, void *visit_ctx, struct drps_err *err)
{
    struct streamed *st = ctx;
    const struct drps_sample_set *set = st->set;
    if (++st->walks == st->fail_at) return drps_err_set(err, -EIO, "walk %u", st->walks);
    int rc = 0;
    for (size_t s = 0; s < set->n && rc == 0; s++)
        rc = visit(visit_ctx, set->features + set->starts[s], set->starts[s + 1] - set->starts[s],
                   err);
    return rc;
}

/* Owners of both sets, in 32 bits; own. */
struct owners_of {
    uint32_t *training, *held_out;
    uint32_t least;
};

static struct owners_of stream(const struct drps_sample_set *training,
                               const struct drps_sample_set *held_out,
                               const struct drps_stream_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct streamed a = {.set = training}, b = {.set = held_out};
    const struct drps_sample_stream streams[] = {{training->n, walk, &a}, {held_out->n, walk, &b}};
    struct owners_of out = {must(calloc(training->n + 1, sizeof(uint32_t))),
                            must(calloc(held_out->n + 1, sizeof(uint32_t))), 0};
    uint16_t *owner[] = {must(malloc((training->n + 1) * sizeof(uint16_t))),
                         must(malloc((held_out->n + 1) * sizeof(uint16_t)))};
    assert_ok(drps_streams_place(&streams[0], &streams[1], o, owner[0], owner[1], &out.least, &err),
              &err);
    for (size_t s = 0; s < training->n; s++)
        out.training[s] = owner[0][s];
    for (size_t s = 0; s < held_out->n; s++)
        out.held_out[s] = owner[1][s];
    free(owner[0]);
    free(owner[1]);
    return out;
}

static void owners_of_free(struct owners_of *o)
{
    free(o->training);
    free(o->held_out);
}

/* Numbers of samples keep to their limit; entries to `slack` times theirs, which may yield to it.
 */
static void check_balance(const struct drps_sample_set *set, const uint32_t *owner,
                          uint32_t machines, double slack)
{
    uint64_t samples[9] = {0}, entries[9] = {0};
    for (size_t s = 0; s < set->n; s++) {
        assert_true(owner[s] < machines);
        samples[owner[s]]++;
        entries[owner[s]] += set->starts[s + 1] - set->starts[s];
    }
    for (uint32_t m = 0; m < machines; m++) {
        const double even = (double)set->n / machines;
        assert_true((double)samples[m] <= (even * 1.02 > even + 1 ? even * 1.02 : even + 1));
        const double most = 1.02 * (double)set->starts[set->n] / machines + MOST;
        if ((double)entries[m] > slack * most)
            fail_msg("machine %u of %u: %llu entries of %zu samples, limit %g", m, machines,
                     (unsigned long long)entries[m], set->n, most);
    }
}

static void test_streams_keep_limits_and_repeat(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 60; turn++) {
        const struct drps_stream_options o = {.features_n = 90, /* the last ones are unknown */
                                              .machines = 1 + (uint32_t)random_below(&rng, 9),
                                              .batch_size = 10,
                                              .seed = random_u64(&rng),
                                              .memory_bytes = 1 << 20};
        struct drps_sample_set set = random_set(&rng, 1 + random_below(&rng, 600), 100, 4);
        struct drps_sample_set held = random_set(&rng, random_below(&rng, 200), 100, 4);
        struct owners_of a = stream(&set, &held, &o), b = stream(&set, &held, &o);
        assert_memory_equal(a.training, b.training, set.n * sizeof(*a.training));
        assert_memory_equal(a.held_out, b.held_out, held.n * sizeof(*a.held_out));
        check_balance(&set, a.training, o.machines, 2);
        check_balance(&held, a.held_out, o.machines, 2);
        owners_of_free(&a);
        owners_of_free(&b);
        set_free(&set);
        set_free(&held);
    }
}

/* Every round's samples are dealt evenly among the machines; those held out are not cut. */
static void test_streams_keep_rounds(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int turn = 0; turn < 60; turn++) {
        const uint32_t machines = 1 + (uint32_t)random_below(&rng, 9);
        const struct drps_stream_options o = {.features_n = 100,
                                              .machines = machines,
                                              .batch_size = 10,
                                              .round = 1 + random_below(&rng, 100),
                                              .seed = random_u64(&rng),
                                              .memory_bytes = 1 << 20};
        struct drps_sample_set set = random_set(&rng, 1 + random_below(&rng, 600), 100, 4);
        struct drps_sample_set held = random_set(&rng, random_below(&rng, 200), 100, 4);
        struct owners_of a = stream(&set, &held, &o);
        for (size_t begin = 0; begin < set.n; begin += o.round) {
            const size_t n = set.n - begin < o.round ? set.n - begin : o.round;
            size_t on[9] = {0};
            for (size_t s = begin; s < begin + n; s++)
                on[a.training[s]]++;
            for (uint32_t m = 0; m < machines; m++)
                assert_true(on[m] <= (n + machines - 1) / machines);
        }
        check_balance(&held, a.held_out, machines, 2);
        owners_of_free(&a);
        set_free(&set);
        set_free(&held);
    }
}

/* Samples of four communities, of which two have ten times as many features as the others. */
static struct drps_sample_set uneven_set(struct random_source *rng, size_t n, uint32_t features_n)
{
    size_t *starts = must(calloc(n + 1, sizeof(*starts)));
    uint32_t *features = must(calloc(n * 40 + 1, sizeof(*features)));
    const uint32_t each = features_n / 4;
    for (size_t s = 0; s < n; s++) {
        const uint32_t of = (uint32_t)random_below(rng, 4), length = of < 2 ? 40 : 4;
        const uint32_t first = (uint32_t)random_below(rng, each - 2 * length);
        starts[s + 1] = starts[s] + length;
        for (uint32_t i = 0; i < length; i++)
            features[starts[s] + i] = of * each + first + 2 * i;
    }
    return (struct drps_sample_set){n, features_n, starts, features};
}

/* Entries of the heaviest machine of each round, to the average; of all rounds. */
static double heaviest_of_rounds(const struct drps_sample_set *set, const uint32_t *owner,
                                 size_t round, uint32_t machines)
{
    size_t heaviest = 0;
    for (size_t begin = 0; begin < set->n; begin += round) {
        size_t on[9] = {0}, most = 0;
        for (size_t s = begin; s < set->n && s < begin + round; s++)
            on[owner[s]] += set->starts[s + 1] - set->starts[s];
        for (uint32_t m = 0; m < machines; m++)
            if (on[m] > most) most = on[m];
        heaviest += most;
    }
    return (double)heaviest * machines / (double)set->starts[set->n];
}

/* Where samples that belong together are the long ones, they are shared out all the same. */
static void test_streams_balance_entries_of_rounds(void **state)
{
    (void)state;
    struct random_source rng = {.seed = 11};
    for (uint32_t machines = 2; machines < 9; machines++) {
        const struct drps_stream_options o = {.features_n = 4000,
                                              .machines = machines,
                                              .batch_size = 60,
                                              .round = 60 * machines,
                                              .seed = random_u64(&rng),
                                              .memory_bytes = 4 << 20};
        struct drps_sample_set set = uneven_set(&rng, 6000, 4000);
        struct drps_sample_set none = random_set(&rng, 0, 4000, 4);
        struct owners_of a = stream(&set, &none, &o);
        const double heaviest = heaviest_of_rounds(&set, a.training, o.round, machines);
        if (heaviest > 1.15) fail_msg("%u machines: %.2f of the average", machines, heaviest);
        owners_of_free(&a);
        set_free(&set);
        set_free(&none);
    }
}

/* Little memory leaves rare features out; what is left still brings communities together. */
static void test_streams_bring_communities_together(void **state)
{
    static const uint64_t spare[] = {1 << 20, 16 << 10}; /* beside what is fixed */
    static const double share[2][2] = {{0.75, 0.75}, {0.9, 0.9}};
    (void)state;
    struct random_source rng = {.seed = 11};
    struct drps_sample_set set = random_set(&rng, 8000, 4000, 40);
    struct drps_sample_set held = random_set(&rng, 2000, 4000, 40);
    struct drps_samples_options hash = {.algo = "hash", .machines = 4, .batch_size = 10};
    uint32_t *hashed = place(&set, &hash), *held_hashed = place(&held, &hash);
    for (int m = 0; m < 2; m++) {
        const struct drps_stream_options o = {.features_n = 4000,
                                              .machines = 4,
                                              .batch_size = 10,
                                              .memory_bytes =
                                                  spare[m] + 4000 * 16 + 65536 * 8 + 10000 * 2};
        struct owners_of placed = stream(&set, &held, &o);
        assert_int_equal(placed.least > 2, m);
        check_balance(&set, placed.training, 4, 1);
        check_balance(&held, placed.held_out, 4, 1.1);
        for (int h = 0; h < 2; h++) {
            const struct drps_sample_set *of = h ? &held : &set;
            const uint64_t ours = remote_of(of, h ? placed.held_out : placed.training, 4, 0);
            const uint64_t theirs = remote_of(of, h ? held_hashed : hashed, 4, 0);
            if ((double)ours > share[m][h] * (double)theirs)
                fail_msg("memory %d, held out %d: %llu remote rows, %llu hashed", m, h,
                         (unsigned long long)ours, (unsigned long long)theirs);
        }
        owners_of_free(&placed);
    }
    free(hashed);
    free(held_hashed);
    set_free(&set);
    set_free(&held);
}

static void test_streams_refuse(void **state)
{
    static const struct {
        const char *name;
        struct drps_stream_options o;
        unsigned fail_at;
        int code;
        const char *text;
    } cases[] = {
        {.name = "machines",
         .o = {.features_n = 9, .batch_size = 1, .memory_bytes = 1 << 20},
         .fail_at = 0,
         .code = DRPS_E_CONFIG,
         .text = "0 machines"},
        {.name = "batches",
         .o = {.features_n = 9, .machines = 2, .memory_bytes = 1 << 20},
         .fail_at = 0,
         .code = DRPS_E_CONFIG,
         .text = "batches of 0"},
        {.name = "memory",
         .o = {.features_n = 9, .machines = 2, .batch_size = 1, .memory_bytes = 1 << 18},
         .fail_at = 0,
         .code = DRPS_E_MEMORY_BUDGET,
         .text = "takes 1 MiB at least"},
        {.name = "first walk",
         .o = {.features_n = 9, .machines = 2, .batch_size = 1, .memory_bytes = 1 << 20},
         .fail_at = 1,
         .code = -EIO,
         .text = "walk 1"},
        {.name = "last walk",
         .o = {.features_n = 9, .machines = 2, .batch_size = 1, .memory_bytes = 1 << 20},
         .fail_at = 5,
         .code = -EIO,
         .text = "walk 5"},
    };
    static const size_t starts[] = {0, 1, 2};
    static const uint32_t features[] = {3, 3};
    const struct drps_sample_set set = {2, 9, starts, features};
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct streamed a = {.set = &set, .fail_at = cases[c].fail_at}, b = {.set = &set};
        const struct drps_sample_stream streams[] = {{2, walk, &a}, {2, walk, &b}};
        uint16_t owner[2], held[2];
        uint32_t least;
        assert_int_equal(
            drps_streams_place(&streams[0], &streams[1], &cases[c].o, owner, held, &least, &err),
            cases[c].code);
        if (!strstr(err.text, cases[c].text))
            fail_msg("%s: expected '%s' in '%s'", cases[c].name, cases[c].text, err.text);
    }
}

static void test_bad_options_are_named(void **state)
{
    static const size_t starts[] = {0, 1};
    static const uint32_t feature = 3;
    static const struct {
        const char *name;
        struct drps_samples_options o;
        uint32_t features_n;
        int code;
        const char *text;
    } cases[] = {
        {.name = "algorithm",
         .o = {.algo = "best", .machines = 2, .batch_size = 1},
         .features_n = 4,
         .code = DRPS_E_CONFIG,
         .text = "'best'"},
        {.name = "none",
         .o = {.machines = 2, .batch_size = 1},
         .features_n = 4,
         .code = DRPS_E_CONFIG,
         .text = "''"},
        {.name = "machines",
         .o = {.algo = "hash", .batch_size = 1},
         .features_n = 4,
         .code = DRPS_E_CONFIG,
         .text = "0 machines"},
        {.name = "batches",
         .o = {.algo = "hash", .machines = 2},
         .features_n = 4,
         .code = DRPS_E_CONFIG,
         .text = "batches of 0"},
        {.name = "feature",
         .o = {.algo = "hash", .machines = 2, .batch_size = 1},
         .features_n = 3,
         .code = -EINVAL,
         .text = "feature 3 of 3"},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_sample_set set = {1, cases[c].features_n, starts, &feature};
        uint32_t owner;
        assert_int_equal(drps_samples_place(&set, &cases[c].o, &owner, &err), cases[c].code);
        if (!strstr(err.text, cases[c].text))
            fail_msg("%s: expected '%s' in '%s'", cases[c].name, cases[c].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits_hold_and_results_repeat),
        cmocka_unit_test(test_communities_come_together),
        cmocka_unit_test(test_batches_cover_every_entry),
        cmocka_unit_test(test_hashed_features),
        cmocka_unit_test(test_streams_keep_limits_and_repeat),
        cmocka_unit_test(test_streams_keep_rounds),
        cmocka_unit_test(test_streams_balance_entries_of_rounds),
        cmocka_unit_test(test_streams_bring_communities_together),
        cmocka_unit_test(test_streams_refuse),
        cmocka_unit_test(test_bad_options_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
