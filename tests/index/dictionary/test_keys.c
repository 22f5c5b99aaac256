/* The dictionary's hash table: numbers in the order of first adds, as a plain search gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/dictionary/key_table.h"

enum { KEYS = 60000, DISTINCT = 30000, MAX = 40000, RUN = 7, NO_SMALL = 0 };

/* Even seeds make small keys. Odd seeds make keys as large as hashes, but for every 16th. */
static uint64_t key_at(uint64_t seed, size_t i)
{
    const uint64_t name = drps_rng_at(seed + 1, i) % DISTINCT;
    return seed % 2 == 0 || name % 16 == 0 ? name : drps_rng_at(seed, name);
}

/* Adds all keys and compares with an array of numbers by key; the numbers are looked at in runs. */
static void add_all(struct key_table *k, uint64_t seed)
{
    uint64_t *keys = malloc(KEYS * sizeof(*keys));
    uint32_t *expected = malloc(DISTINCT * sizeof(*expected)), numbers[RUN];
    uint32_t next = 0;
    assert_true(keys && expected);
    for (size_t i = 0; i < DISTINCT; i++)
        expected[i] = KEY_TABLE_NONE;
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = key_at(seed, i);
    for (size_t i = 0, last; i < KEYS; i = last) {
        last = i + RUN < KEYS ? i + RUN : KEYS;
        while (k->n + RUN > k->room)
            assert_int_equal(drps_key_table_grow(k), 0);
        drps_key_table_add(k, keys, i, last, KEYS, numbers);
        for (size_t j = i; j < last; j++) {
            uint32_t *number = &expected[drps_rng_at(seed + 1, j) % DISTINCT];
            if (*number == KEY_TABLE_NONE) *number = next++;
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
    struct key_table k = {0};
    (void)state;
    assert_int_equal(drps_key_table_init(&k, MAX, NO_SMALL, 1), 0);
    add_all(&k, 1);
    drps_key_table_destroy(&k);
}

static void test_keys_begin_again(void **state)
{
    struct key_table k = {0};
    (void)state;
    assert_int_equal(drps_key_table_init(&k, MAX, NO_SMALL, 0), 0);
    add_all(&k, 2);
    drps_key_table_close(&k);
    assert_int_equal(drps_key_table_reopen(&k), 0);
    add_all(&k, 3);
    drps_key_table_destroy(&k);
}

static void test_keys_max_is_raised(void **state)
{
    struct key_table k = {0};
    const uint64_t key = 7;
    uint32_t number;
    (void)state;
    assert_int_equal(drps_key_table_init(&k, 0, NO_SMALL, 1), 0);
    drps_key_table_add(&k, &key, 0, 1, 1, &number);
    k.checks[number] = 9;
    assert_int_equal(drps_key_table_raise(&k, 2 * k.max), 0);
    assert_int_equal(k.checks[number], 9);
    assert_int_equal(k.entries[number].key, 7);
    assert_int_equal(drps_key_table_grow(&k), 0);
    assert_true(k.room == k.max);
    drps_key_table_destroy(&k);
}

/* Lines that were there for more keys than max allowed have room at once. */
static void test_keys_room_follows_max(void **state)
{
    struct key_table k = {0};
    (void)state;
    assert_int_equal(drps_key_table_init(&k, 0, 0, 0), 0);
    const size_t least = k.max; /* what the first lines hold */
    drps_key_table_destroy(&k);
    assert_int_equal(drps_key_table_init(&k, least + 1, 0, 0), 0);
    while (k.room < k.max)
        assert_int_equal(drps_key_table_grow(&k), 0);
    assert_int_equal(k.room, least + 1);
    assert_int_equal(drps_key_table_raise(&k, 2 * k.max), 0);
    assert_true(k.room > least + 1 && k.room <= k.max);
    drps_key_table_destroy(&k);
}

/* Whether an array has all numbers, some, or none, they are the same. */
static void test_small_keys_are_numbered_as_others(void **state)
{
    (void)state;
    for (uint64_t seed = 4; seed < 8; seed++) {
        for (size_t small = 0; small <= 2 * DISTINCT; small += DISTINCT / 2) {
            struct key_table k = {0};
            assert_int_equal(drps_key_table_init(&k, MAX, small, 0), 0);
            add_all(&k, seed);
            drps_key_table_close(&k);
            assert_int_equal(drps_key_table_reopen(&k), 0);
            assert_int_equal(k.small_used, 0);
            add_all(&k, seed + 1);
            drps_key_table_destroy(&k);
        }
    }
}

/* They take no slots: lines for few keys do. */
static void test_small_keys_leave_the_lines_alone(void **state)
{
    struct key_table k = {0};
    uint64_t keys[RUN];
    uint32_t numbers[RUN];
    (void)state;
    assert_int_equal(drps_key_table_init(&k, MAX, MAX, 0), 0);
    const size_t lines = k.lines_n, room = k.room;
    for (uint64_t i = 0; i + RUN <= MAX; i += RUN) {
        for (size_t j = 0; j < RUN; j++)
            keys[j] = i + j;
        assert_true(k.n + RUN <= k.room);
        drps_key_table_add(&k, keys, 0, RUN, RUN, numbers);
    }
    assert_int_equal(k.lines_n, lines);
    assert_true(k.room > room);
    assert_true(k.room <= k.max);
    drps_key_table_destroy(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_numbered_as_they_come),
        cmocka_unit_test(test_keys_begin_again),
        cmocka_unit_test(test_keys_max_is_raised),
        cmocka_unit_test(test_keys_room_follows_max),
        cmocka_unit_test(test_small_keys_are_numbered_as_others),
        cmocka_unit_test(test_small_keys_leave_the_lines_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
