/* The dictionary's hash table: numbers in the order of first adds, as a plain search gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/keys.h"

enum { KEYS = 60000, DISTINCT = 30000, MAX = 40000, RUN = 7 };

static uint64_t key_at(uint64_t seed, size_t i)
{
    return drps_rng_at(seed, drps_rng_at(seed + 1, i) % DISTINCT);
}

/* Adds all keys and compares with an array of numbers by key; the numbers are looked at in runs. */
static void add_all(struct keys *k, uint64_t seed)
{
    uint64_t *keys = malloc(KEYS * sizeof(*keys));
    uint32_t *expected = malloc(DISTINCT * sizeof(*expected)), numbers[RUN];
    uint32_t next = 0;
    assert_true(keys && expected);
    for (size_t i = 0; i < DISTINCT; i++)
        expected[i] = KEYS_NONE;
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = key_at(seed, i);
    for (size_t i = 0, last; i < KEYS; i = last) {
        last = i + RUN < KEYS ? i + RUN : KEYS;
        while (k->n + RUN > k->room)
            assert_int_equal(keys_grow(k), 0);
        keys_add(k, keys, i, last, KEYS, numbers);
        for (size_t j = i; j < last; j++) {
            uint32_t *number = &expected[drps_rng_at(seed + 1, j) % DISTINCT];
            if (*number == KEYS_NONE) *number = next++;
            if (numbers[j - i] != *number)
                fail_msg("key %zu of seed %llu: number %u, expected %u", j,
                         (unsigned long long)seed, numbers[j - i], *number);
        }
    }
    assert_int_equal(k->n, next);
    for (size_t j = 0; j < KEYS; j++)
        assert_int_equal(k->entries[expected[drps_rng_at(seed + 1, j) % DISTINCT]].key, keys[j]);
    free(keys);
    free(expected);
}

static void test_keys_are_numbered_as_they_come(void **state)
{
    struct keys k = {0};
    (void)state;
    assert_int_equal(keys_init(&k, MAX, 1), 0);
    add_all(&k, 1);
    keys_destroy(&k);
}

static void test_keys_begin_again(void **state)
{
    struct keys k = {0};
    (void)state;
    assert_int_equal(keys_init(&k, MAX, 0), 0);
    add_all(&k, 2);
    keys_close(&k);
    assert_int_equal(keys_reopen(&k), 0);
    add_all(&k, 3);
    keys_destroy(&k);
}

static void test_keys_max_is_raised(void **state)
{
    struct keys k = {0};
    const uint64_t key = 7;
    uint32_t number;
    (void)state;
    assert_int_equal(keys_init(&k, 0, 1), 0);
    keys_add(&k, &key, 0, 1, 1, &number);
    k.checks[number] = 9;
    assert_int_equal(keys_raise(&k, 2 * k.max), 0);
    assert_int_equal(k.checks[number], 9);
    assert_int_equal(k.entries[number].key, 7);
    assert_int_equal(keys_grow(&k), 0);
    assert_true(k.room == k.max);
    keys_destroy(&k);
}

/* Lines that were there for more keys than max allowed have room at once. */
static void test_keys_room_follows_max(void **state)
{
    struct keys k = {0};
    (void)state;
    assert_int_equal(keys_init(&k, 0, 0), 0);
    const size_t least = k.max; /* what the first lines hold */
    keys_destroy(&k);
    assert_int_equal(keys_init(&k, least + 1, 0), 0);
    while (k.room < k.max)
        assert_int_equal(keys_grow(&k), 0);
    assert_int_equal(k.room, least + 1);
    assert_int_equal(keys_raise(&k, 2 * k.max), 0);
    assert_true(k.room > least + 1 && k.room <= k.max);
    keys_destroy(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_numbered_as_they_come),
        cmocka_unit_test(test_keys_begin_again),
        cmocka_unit_test(test_keys_max_is_raised),
        cmocka_unit_test(test_keys_room_follows_max),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
