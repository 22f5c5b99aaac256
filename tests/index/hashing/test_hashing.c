/* Feature hashing: bins and signs, samples against plain twins, similarity of sets, and what
 * manifests say of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_rng.h"
#include "index/hashing/drps_hasher.h"

enum { SAMPLE = 60, BINS_MOST = 1024 };

static struct drps_hasher *hasher(const struct drps_hashing *of, uint64_t seed)
{
    struct drps_hasher *h = drps_hasher_new(of, seed);
    assert_non_null(h);
    return h;
}

static struct drps_hashed run(struct drps_hasher *h, const struct drps_hasher_input *in)
{
    struct drps_hashed out;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_hasher_run(h, in, &out, &err) < 0) fail_msg("%s", err.text);
    return out;
}

/* ---- Signed ---- */

/* As the formula of docs/formats.md gives them in Python, whose integers have no size. */
static void test_bins_and_signs_are_those_of_the_format(void **state)
{
    static const struct {
        uint64_t key, seed;
        uint32_t bits;
        uint64_t bin;
        int negative;
    } rows[] = {
        {0, 0, 18, 61893, 1},
        {1, 0, 18, 133590, 1},
        {2, 0, 18, 247819, 1},
        {432957, 0, 18, 209244, 1},
        {1, 7, 18, 84052, 1},
        {1, 0, 1, 1, 1},
        {1, 0, 30, 547184910, 1},
        {UINT64_MAX, 0, 22, 870092, 0},
        {UINT64_C(1311768467463790320), 42, 10, 130, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int negative;
        const uint64_t bin = drps_hash_bin(rows[i].key, rows[i].seed, rows[i].bits, &negative);
        if (bin != rows[i].bin || negative != rows[i].negative)
            fail_msg("key %llu, seed %llu, %u bits: bin %llu, sign %d; expected %llu, %d",
                     (unsigned long long)rows[i].key, (unsigned long long)rows[i].seed,
                     rows[i].bits, (unsigned long long)bin, negative,
                     (unsigned long long)rows[i].bin, rows[i].negative);
    }
}

/* Of 65536 keys in a row, each of 16 bins and signs has as many, to within five standard
 * deviations. */
static void test_bins_and_signs_are_even(void **state)
{
    enum { KEYS = 65536, CELLS = 32, MEAN = KEYS / CELLS };
    int counts[CELLS] = {0};
    (void)state;
    for (uint64_t key = 0; key < KEYS; key++) {
        int negative;
        const uint64_t bin = drps_hash_bin(key, 1, 4, &negative);
        counts[2 * bin + (uint64_t)negative]++;
    }
    for (int i = 0; i < CELLS; i++)
        assert_in_range(counts[i], MEAN - 5 * 45, MEAN + 5 * 45);
}

/* Keys are few, so that many share a bin, some with other signs, and some cancel out. */
static void make_sample(uint64_t seed, size_t n, uint64_t keys[SAMPLE], float values[SAMPLE],
                        uint16_t fields[SAMPLE])
{
    for (size_t i = 0; i < n; i++) {
        keys[i] = drps_rng_at(seed, i) % 1000;
        values[i] = (float)(drps_rng_at(~seed, i) % 3) + 1;
        fields[i] = (uint16_t)(drps_rng_at(seed ^ 77, i) % 3);
    }
}

/* One bin after another, in the order in which the sample has them first. *cancelled counts those
 * that come to 0. */
static size_t plain_signed(const struct drps_hasher_input *in, uint64_t seed, uint32_t bits,
                           uint64_t *bins, float *values, size_t *cancelled)
{
    double sums[SAMPLE];
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < in->n; i++) {
        int negative;
        uint64_t bin = drps_hash_bin(in->keys[i], seed, bits, &negative);
        if (in->fields) bin += in->fields[i] * (UINT64_C(1) << bits);
        size_t at = 0;
        while (at < n && bins[at] != bin)
            at++;
        if (at == n) sums[n++] = 0;
        bins[at] = bin;
        sums[at] += (negative ? -1 : 1) * (double)in->values[i];
    }
    for (size_t i = 0; i < n; i++) {
        *cancelled += (float)sums[i] == 0;
        if ((float)sums[i] == 0) continue;
        bins[kept] = bins[i];
        values[kept++] = (float)sums[i];
    }
    return kept;
}

static void test_features_of_a_bin_add_up(void **state)
{
    static const uint32_t bits[] = {1, 3, 6, 18};
    size_t shorter = 0, cancelled = 0;
    (void)state;
    for (size_t b = 0; b < sizeof(bits) / sizeof(bits[0]); b++) {
        const struct drps_hashing of = {.bits = bits[b]};
        struct drps_hasher *h = hasher(&of, 5);
        for (uint64_t seed = 0; seed < 200; seed++) {
            uint64_t keys[SAMPLE], bins[SAMPLE];
            float values[SAMPLE], expected[SAMPLE];
            uint16_t fields[SAMPLE];
            const int has_fields = seed % 2 != 0;
            struct drps_hasher_input in = {keys, values, has_fields ? fields : NULL, seed % SAMPLE};
            make_sample(seed, in.n, keys, values, fields);
            const size_t n = plain_signed(&in, 5, bits[b], bins, expected, &cancelled);
            const struct drps_hashed out = run(h, &in);
            assert_int_equal(out.n, n);
            assert_memory_equal(out.keys, bins, n * sizeof(*bins));
            assert_memory_equal(out.values, expected, n * sizeof(*expected));
            assert_int_equal(out.fields != NULL, has_fields);
            for (size_t i = 0; has_fields && i < n; i++)
                assert_int_equal(out.fields[i], bins[i] >> bits[b]);
            shorter += n < in.n;
        }
        drps_hasher_free(h);
    }
    assert_true(shorter > 100 && cancelled > 0);
}

static void test_a_sum_that_is_no_float_is_refused(void **state)
{
    const uint64_t keys[] = {4, 4};
    const float values[] = {FLT_MAX, FLT_MAX};
    const struct drps_hasher_input in = {.keys = keys, .values = values, .n = 2};
    const struct drps_hashing of = {.bits = 8};
    struct drps_hasher *h = hasher(&of, 0);
    struct drps_hashed out;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_hasher_run(h, &in, &out, &err), DRPS_E_FORMAT);
    assert_non_null(strstr(err.text, "infinity"));
    drps_hasher_free(h);
}

/* ---- One-permutation hashing ---- */

static const float ones[SAMPLE] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                   1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* As the formula of docs/formats.md gives them in Python. */
static void test_parts_are_those_of_the_format(void **state)
{
    static const struct {
        uint64_t keys[3];
        size_t n;
        uint64_t seed;
        struct drps_hashing of;
        uint64_t expected[8];
    } rows[] = {
        {{3, 17, 1000003}, 3, 0, {10, DRPS_HASH_OPH, 8}, {1, 210, 345, 388, 540, 726, 894, 1016}},
        {{3, 17, 1000003}, 3, 5, {10, DRPS_HASH_OPH, 8}, {122, 200, 347, 396, 604, 643, 812, 988}},
        {{UINT64_MAX}, 1, 0, {4, DRPS_HASH_OPH, 4}, {3, 5, 11, 15}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_hasher *h = hasher(&rows[i].of, rows[i].seed);
        const struct drps_hasher_input in = {.keys = rows[i].keys, .values = ones, .n = rows[i].n};
        const struct drps_hashed out = run(h, &in);
        assert_int_equal(out.n, rows[i].of.bins);
        assert_memory_equal(out.keys, rows[i].expected, out.n * sizeof(*out.keys));
        assert_true(out.all_ones);
        for (size_t p = 0; p < out.n; p++)
            assert_true(out.values[p] == 1);
        drps_hasher_free(h);
    }
}

/* The order of keys, a key that is there twice, and values change nothing; no key gives nothing. */
static void test_a_set_is_a_set(void **state)
{
    const struct drps_hashing of = {.bits = 16, .kind = DRPS_HASH_OPH, .bins = 64};
    const uint64_t keys[] = {9, 2, 700, 31}, again[] = {31, 9, 9, 700, 2};
    const float values[] = {1, 2, 3, 4, 5};
    struct drps_hasher *h = hasher(&of, 1);
    const struct drps_hasher_input in = {.keys = keys, .values = ones, .n = 4};
    const struct drps_hasher_input other = {.keys = again, .values = values, .n = 5};
    uint64_t first[64];
    (void)state;
    memcpy(first, run(h, &in).keys, sizeof(first));
    assert_false(drps_hasher_took_values(h));
    assert_memory_equal(run(h, &other).keys, first, sizeof(first));
    assert_true(drps_hasher_took_values(h));
    assert_int_equal(run(h, &(struct drps_hasher_input){.n = 0}).n, 0);
    assert_int_equal(drps_hashed_most(&of, 0), 0);
    assert_int_equal(drps_hashed_most(&of, 3), 64);
    drps_hasher_free(h);
}

/* Of two sets a share of the parts agrees that is their Jaccard similarity, whether parts have keys
 * of their own or not; where they differ, their lowest bits agree one time in 2^8. */
static void test_parts_agree_as_sets_do(void **state)
{
    static const struct {
        size_t n, common; /* keys of each, and of both */
        uint32_t bins;
    } rows[] = {{50, 25, 16}, {50, 25, 1024}, {20, 5, 256}, {6, 3, 256}};
    enum { SEEDS = 400 };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        uint32_t bits = 8;
        while (UINT32_C(1) << (bits - 8) < rows[r].bins)
            bits++;
        const struct drps_hashing of = {bits, DRPS_HASH_OPH, rows[r].bins};
        uint64_t a[SAMPLE], b[SAMPLE], first[BINS_MOST], agree = 0;
        for (size_t i = 0; i < rows[r].n; i++) {
            a[i] = 100 + i;
            b[i] = 100 + i + rows[r].n - rows[r].common;
        }
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct drps_hasher *h = hasher(&of, seed);
            const struct drps_hasher_input x = {.keys = a, .values = ones, .n = rows[r].n};
            const struct drps_hasher_input y = {.keys = b, .values = ones, .n = rows[r].n};
            memcpy(first, run(h, &x).keys, rows[r].bins * sizeof(*first));
            const uint64_t *second = run(h, &y).keys;
            for (uint32_t p = 0; p < rows[r].bins; p++)
                agree += first[p] == second[p];
            drps_hasher_free(h);
        }
        const double similar = (double)rows[r].common / (double)(2 * rows[r].n - rows[r].common);
        const double expected = similar + (1 - similar) / 256;
        const double found = (double)agree / SEEDS / rows[r].bins;
        if (found < expected - 0.02 || found > expected + 0.02)
            fail_msg("%zu of %zu keys in common, %u parts: %g agree, expected %g", rows[r].common,
                     rows[r].n, rows[r].bins, found, expected);
    }
}

/* Parts that are filled from the same one must not repeat it: all of 1024 parts are filled from
 * the few of 4 keys, and each key is the least of about a quarter. */
static void test_filled_parts_are_hashed_again(void **state)
{
    const struct drps_hashing of = {30, DRPS_HASH_OPH, 1024};
    const uint64_t keys[] = {1, 2, 3, 4};
    struct drps_hasher *h = hasher(&of, 3);
    const struct drps_hashed out =
        run(h, &(struct drps_hasher_input){.keys = keys, .values = ones, .n = 4});
    size_t distinct = 0;
    (void)state;
    for (size_t i = 0; i < out.n; i++) {
        size_t j = 0;
        while (j < i && ((out.keys[i] ^ out.keys[j]) & ((1 << 20) - 1)))
            j++;
        distinct += j == i;
    }
    assert_true(distinct > 1000);
    drps_hasher_free(h);
}

/* ---- What is said of it ---- */

static void test_numbers_have_bounds(void **state)
{
    static const struct {
        const char *name;
        struct drps_hashing of;
        const char *fault; /* NULL: there is none */
    } rows[] = {
        {"none", {0, DRPS_HASH_SIGNED, 0}, NULL},
        {"signed", {1, DRPS_HASH_SIGNED, 0}, NULL},
        {"most bits", {30, DRPS_HASH_SIGNED, 0}, NULL},
        {"too many bits", {31, DRPS_HASH_SIGNED, 0}, "1 to 30 bits, not 31"},
        {"no bits", {0, DRPS_HASH_OPH, 0}, "not into how many bits"},
        {"bins of signed", {8, DRPS_HASH_SIGNED, 8}, "one-permutation"},
        {"oph", {8, DRPS_HASH_OPH, 128}, NULL},
        {"as many bins as bits give", {8, DRPS_HASH_OPH, 256}, "from 2 to 128"},
        {"no power of two", {8, DRPS_HASH_OPH, 96}, "power of two"},
        {"one bin", {8, DRPS_HASH_OPH, 1}, "from 2"},
        {"more than 1024", {20, DRPS_HASH_OPH, 2048}, "to 1024"},
        {"one bit", {1, DRPS_HASH_OPH, 1}, "2 bits or more"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_hashing_check(&rows[i].of, &err);
        if (rc != (rows[i].fault ? DRPS_E_CONFIG : 0) ||
            (rows[i].fault && !strstr(err.text, rows[i].fault)))
            fail_msg("%s: %d, %s", rows[i].name, rc, err.text);
    }
    struct drps_hashing of = {.bits = 20, .kind = DRPS_HASH_OPH};
    drps_hashing_complete(&of);
    assert_int_equal(of.bins, 256);
    of = (struct drps_hashing){.bits = 5, .kind = DRPS_HASH_OPH};
    drps_hashing_complete(&of);
    assert_int_equal(of.bins, 16);
}

static void test_manifests_give_it_back(void **state)
{
    static const struct drps_hashing rows[] = {
        {0, DRPS_HASH_SIGNED, 0}, {18, DRPS_HASH_SIGNED, 0}, {22, DRPS_HASH_OPH, 512}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_t *j = json_object();
        struct drps_hashing found = {.bits = 99};
        drps_hashing_put(&j, &rows[i]);
        assert_int_equal(json_object_get(j, "hashing") != NULL, rows[i].bits > 0);
        assert_int_equal(drps_hashing_get(j, "plan.json", &found, NULL), 0);
        assert_true(drps_hashing_same(&found, &rows[i]));
        json_decref(j);
    }
}

static void test_manifests_are_checked(void **state)
{
    static const char *const texts[] = {
        "{\"hashing\": 3}",
        "{\"hashing\": {\"kind\": \"signed\"}}",
        "{\"hashing\": {\"kind\": \"signed\", \"bits\": 0}}",
        "{\"hashing\": {\"kind\": \"signed\", \"bits\": 31}}",
        "{\"hashing\": {\"kind\": \"signed\", \"bits\": -1}}",
        "{\"hashing\": {\"kind\": \"other\", \"bits\": 8}}",
        "{\"hashing\": {\"kind\": \"oph\", \"bits\": 8}}",
        "{\"hashing\": {\"kind\": \"oph\", \"bits\": 8, \"bins\": 3}}",
        "{\"hashing\": {\"kind\": \"oph\", \"bits\": 8, \"bins\": \"4\"}}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_hashing found;
        json_t *j = json_loads(texts[i], 0, NULL);
        assert_non_null(j);
        const int rc = drps_hashing_get(j, "plan.json", &found, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, "plan.json"))
            fail_msg("%s: %d, %s", texts[i], rc, err.text);
        json_decref(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bins_and_signs_are_those_of_the_format),
        cmocka_unit_test(test_bins_and_signs_are_even),
        cmocka_unit_test(test_features_of_a_bin_add_up),
        cmocka_unit_test(test_a_sum_that_is_no_float_is_refused),
        cmocka_unit_test(test_parts_are_those_of_the_format),
        cmocka_unit_test(test_a_set_is_a_set),
        cmocka_unit_test(test_parts_agree_as_sets_do),
        cmocka_unit_test(test_filled_parts_are_hashed_again),
        cmocka_unit_test(test_numbers_have_bounds),
        cmocka_unit_test(test_manifests_give_it_back),
        cmocka_unit_test(test_manifests_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
