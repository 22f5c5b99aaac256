/* The dictionary's hash table: ids and counts as a plain search gives them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/dictionary/key_table.h"

enum { KEYS = 60000, DISTINCT = 30000, MAX = 40000, RUN = 7, NO_SMALL = 0, SMALL = 1 << 15 };

/* Even seeds make small keys. Odd seeds make keys as large as hashes, but for every 16th. */
static uint64_t key_at(uint64_t seed, size_t i)
{
    const uint64_t name = drps_rng_at(seed + 1, i) % DISTINCT;
    return seed % 2 == 0 || name % 16 == 0 ? name : drps_rng_at(seed, name);
}

/* A run of keys is used at a time, or by a sample that does not train. */
static struct key_use use_at(size_t run)
{
    if (run % 5 == 0) return (struct key_use){0};
    return (struct key_use){.bit = (uint16_t)(1u << run % 16), .left = (uint16_t)(run * 7919)};
}

static void count_plainly(struct key_count *c, struct key_use use)
{
    if (!use.bit) return;
    if (!c->mask || use.left > c->left) c->left = use.left;
    c->mask |= use.bit;
    c->uses++;
}

static void assert_counts(const struct key_table *k, uint32_t id, const struct key_count *want)
{
    const struct key_count *c = key_table_count(k, id);
    assert_true(key_count_is_there(c) || id >= k->small_n);
    assert_int_equal(c->mask, want->mask);
    assert_int_equal(c->uses, want->uses);
    if (want->mask) assert_int_equal(key_count_first(c), UINT16_MAX - want->left);
}

/* What a plain search knows of a name. */
struct plain {
    uint32_t id;
    struct key_count count;
};

/* Uses keys[first .. last), as the dictionary does. */
static void use_run(struct key_table *k, const uint64_t *keys, size_t first, size_t last,
                    struct key_use use, uint32_t *ids)
{
    while (k->n + RUN > k->room)
        assert_int_equal(drps_key_table_grow(k), 0);
    if (drps_key_table_all_small(k, keys, first, last)) {
        drps_key_table_use_small(k, keys, first, last, KEYS, use, ids);
        return;
    }
    drps_key_table_add(k, keys, first, last, KEYS, ids);
    drps_key_table_use(k, ids, last - first, use);
}

/* Adds all keys and compares with arrays by name; the ids are looked at in runs. */
static void add_all(struct key_table *k, uint64_t seed)
{
    uint64_t *keys = malloc(KEYS * sizeof(*keys)), largest = 0;
    struct plain *expected = calloc(DISTINCT, sizeof(*expected));
    uint32_t ids[RUN], next = (uint32_t)k->small_n;
    assert_true(keys && expected);
    for (size_t i = 0; i < DISTINCT; i++)
        expected[i].id = KEY_TABLE_NONE;
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = key_at(seed, i);
    for (size_t i = 0, last; i < KEYS; i = last) {
        last = i + RUN < KEYS ? i + RUN : KEYS;
        use_run(k, keys, i, last, use_at(i / RUN), ids);
        for (size_t j = i; j < last; j++) {
            struct plain *p = &expected[drps_rng_at(seed + 1, j) % DISTINCT];
            const int small = keys[j] < k->small_n;
            if (p->id == KEY_TABLE_NONE) p->id = small ? (uint32_t)keys[j] : next++;
            if (small && keys[j] > largest) largest = keys[j];
            count_plainly(&p->count, use_at(i / RUN));
            if (ids[j - i] != p->id)
                fail_msg("key %zu of seed %llu: id %u, expected %u", j, (unsigned long long)seed,
                         ids[j - i], p->id);
        }
    }
    assert_int_equal(k->n, next - k->small_n);
    assert_true(key_table_small_end(k) > largest || !k->small_n);
    assert_true(key_table_small_end(k) <= k->small_n);
    assert_true(key_table_end(k) >= key_table_small_end(k));
    for (size_t j = 0; j < KEYS; j++) {
        const struct plain *p = &expected[drps_rng_at(seed + 1, j) % DISTINCT];
        if (keys[j] >= k->small_n) assert_int_equal(k->entries[p->id - k->small_n].key, keys[j]);
        assert_true(p->id < key_table_end(k));
        assert_counts(k, p->id, &p->count);
    }
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

/* Whether an array counts all keys, some, or none, the counts are the same. */
static void test_small_keys_are_counted_as_others(void **state)
{
    (void)state;
    for (uint64_t seed = 4; seed < 8; seed++) {
        for (size_t small = 0; small <= SMALL; small = small ? 2 * small : SMALL / 4) {
            struct key_table k = {0};
            assert_int_equal(drps_key_table_init(&k, MAX, small, 0), 0);
            add_all(&k, seed);
            drps_key_table_close(&k);
            assert_int_equal(drps_key_table_reopen(&k), 0);
            assert_int_equal(key_table_end(&k), 0);
            add_all(&k, seed + 1);
            drps_key_table_destroy(&k);
        }
    }
}

/* They take no room: lines for few keys do. */
static void test_small_keys_leave_the_lines_alone(void **state)
{
    struct key_table k = {0};
    uint64_t keys[RUN];
    uint32_t ids[RUN];
    const struct key_use use = {.bit = 1, .left = 1};
    (void)state;
    assert_int_equal(drps_key_table_init(&k, MAX, SMALL, 0), 0);
    const size_t lines = k.lines_n, room = k.room;
    for (uint64_t i = 0; i + RUN <= SMALL; i += RUN) {
        for (size_t j = 0; j < RUN; j++)
            keys[j] = i + j;
        assert_true(drps_key_table_all_small(&k, keys, 0, RUN));
        drps_key_table_use_small(&k, keys, 0, RUN, RUN, use, ids);
    }
    assert_int_equal(k.n, 0);
    assert_int_equal(k.lines_n, lines);
    assert_int_equal(k.room, room);
    drps_key_table_destroy(&k);
}

/* A key that a test sample has is there; what it leaves is no time of a use in training. */
static void test_marks_are_no_uses(void **state)
{
    struct key_table k = {0};
    const uint64_t key = 3;
    uint32_t id;
    const struct key_use at_end = {.bit = 1u << 15, .left = 0};
    (void)state;
    assert_int_equal(drps_key_table_init(&k, MAX, SMALL, 0), 0);
    const struct key_count *c = key_table_count(&k, (uint32_t)key);
    assert_false(key_count_is_there(c));
    assert_true(drps_key_table_all_small(&k, &key, 0, 1));
    drps_key_table_use_small(&k, &key, 0, 1, 1, (struct key_use){0}, &id);
    assert_int_equal(id, key);
    assert_true(key_count_is_there(c));
    assert_int_equal(c->uses, 0);
    assert_int_equal(key_table_end(&k), key + 1);
    drps_key_table_use_small(&k, &key, 0, 1, 1, at_end, &id);
    drps_key_table_use_small(&k, &key, 0, 1, 1, (struct key_use){0}, &id);
    assert_int_equal(key_count_first(c), UINT16_MAX);
    assert_int_equal(c->uses, 1);
    drps_key_table_destroy(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_numbered_as_they_come),
        cmocka_unit_test(test_keys_begin_again),
        cmocka_unit_test(test_keys_max_is_raised),
        cmocka_unit_test(test_keys_room_follows_max),
        cmocka_unit_test(test_small_keys_are_counted_as_others),
        cmocka_unit_test(test_small_keys_leave_the_lines_alone),
        cmocka_unit_test(test_marks_are_no_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
