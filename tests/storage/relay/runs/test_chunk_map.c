/* The chunk map against arrays that say of each chunk which list and which saves have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "storage/relay/runs/chunk_map.h"
#include "support/scratch.h"

enum { CHUNKS = 300, GROWN = 420, LISTS = 5, SAVES = 3 };

struct model {
    struct drps_chunk_map map;
    struct drps_chunk_list lists[LISTS];
    uint32_t order[LISTS][GROWN]; /* chunks of each list */
    size_t n[LISTS];
    uint8_t taken[GROWN], pins[GROWN];
    struct random_source rng;
};

static size_t count_free(const struct model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->map.n; i++)
        n += !m->taken[i] && !m->pins[i];
    return n;
}

/* Take up to `most` chunks for a list: none that a list or a save has. */
static void take(struct model *m, size_t list, uint32_t most)
{
    uint32_t n;
    const size_t free = count_free(m);
    const uint64_t first = drps_chunk_map_take(&m->map, most, &n);
    assert_int_equal(n > 0, free > 0);
    for (uint64_t c = first; c < first + n; c++) {
        assert_true(c < m->map.n && !m->taken[c] && !m->pins[c]);
        drps_chunk_map_append(&m->map, &m->lists[list], (uint32_t)c, 10, c, c + 1);
        assert_true(drps_chunk_map_is_busy(&m->map, (uint32_t)c));
        drps_chunk_map_written(&m->map, (uint32_t)c);
        m->taken[c] = 1;
        m->order[list][m->n[list]++] = (uint32_t)c;
    }
}

static void give_back(struct model *m, size_t list)
{
    if (!m->n[list]) return;
    const uint32_t c = m->order[list][0];
    assert_int_equal(m->lists[list].first, c);
    drps_chunk_map_give_back(&m->map, &m->lists[list]);
    m->taken[c] = 0;
    memmove(m->order[list], m->order[list] + 1, --m->n[list] * sizeof(c));
}

static void pin(struct model *m, unsigned save)
{
    drps_chunk_map_pin_taken(&m->map, save);
    for (size_t i = 0; i < m->map.n; i++)
        if (m->taken[i]) m->pins[i] |= (uint8_t)(1u << save);
}

static void unpin(struct model *m, unsigned save)
{
    drps_chunk_map_unpin(&m->map, save);
    for (size_t i = 0; i < m->map.n; i++)
        m->pins[i] &= (uint8_t) ~(1u << save);
}

static void check(const struct model *m)
{
    uint64_t kept = 0;
    for (uint32_t i = 0; i < m->map.n; i++) {
        assert_int_equal(drps_chunk_map_is_taken(&m->map, i), m->taken[i]);
        assert_int_equal(drps_chunk_map_is_pinned(&m->map, i), m->pins[i] != 0);
        kept += m->taken[i] || m->pins[i];
    }
    assert_int_equal(drps_chunk_map_kept(&m->map), kept);
}

static void do_one(struct model *m)
{
    const size_t list = (size_t)random_below(&m->rng, LISTS);
    const unsigned save = (unsigned)random_below(&m->rng, SAVES);
    switch (random_below(&m->rng, 12)) {
    case 0:
        pin(m, save);
        break;
    case 1:
        unpin(m, save);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        take(m, list, 1 + (uint32_t)random_below(&m->rng, 9));
        break;
    default:
        for (uint64_t n = random_below(&m->rng, 9); n; n--)
            give_back(m, list);
    }
}

static void test_equals_model(void **state)
{
    (void)state;
    struct model *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    m->rng = random_begin("chunk map");
    assert_int_equal(drps_chunk_map_init(&m->map, CHUNKS), 0);
    for (size_t i = 0; i < LISTS; i++)
        m->lists[i] = (struct drps_chunk_list){DRPS_NO_CHUNK, DRPS_NO_CHUNK};
    for (size_t k = 0; k < 20000; k++) {
        if (k == 10000) assert_int_equal(drps_chunk_map_grow(&m->map, GROWN), 0);
        do_one(m);
        if (k % 100 == 0) check(m);
    }
    for (unsigned save = 0; save < SAVES; save++)
        unpin(m, save);
    for (size_t i = 0; i < LISTS; i++)
        while (m->n[i])
            give_back(m, i);
    check(m);
    for (size_t left = GROWN; left; left = count_free(m)) /* every chunk can be had again */
        take(m, 0, 7);
    assert_int_equal(m->n[0], GROWN);
    drps_chunk_map_destroy(&m->map);
    free(m);
}

/* Chunks come from a gap that has as many as are wanted, or from the longest one. */
static void test_chunks_lie_side_by_side(void **state)
{
    (void)state;
    static const char map[] = "#.##..###....##."; /* '.': free */
    static const struct {
        uint32_t wanted, first, n;
    } takes[] = {{3, 9, 3}, {2, 4, 2}, {5, 12, 1}, {1, 15, 1}, {2, 1, 1}, {1, 0, 0}};
    struct drps_chunk_list kept = {DRPS_NO_CHUNK, DRPS_NO_CHUNK}, given = kept;
    struct drps_chunk_map m;
    uint32_t n;
    assert_int_equal(drps_chunk_map_init(&m, sizeof(map) - 1), 0);
    for (uint32_t c = 0; map[c]; c++) {
        assert_int_equal(drps_chunk_map_take(&m, 1, &n), c);
        drps_chunk_map_append(&m, map[c] == '.' ? &given : &kept, c, 10, c, c);
    }
    while (given.first != DRPS_NO_CHUNK)
        drps_chunk_map_give_back(&m, &given);
    for (size_t i = 0; i < sizeof(takes) / sizeof(*takes); i++) {
        const uint64_t first = drps_chunk_map_take(&m, takes[i].wanted, &n);
        assert_int_equal(n, takes[i].n);
        if (n) assert_int_equal(first, takes[i].first);
    }
    drps_chunk_map_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_model),
        cmocka_unit_test(test_chunks_lie_side_by_side),
    };
    return cmocka_run_group_tests_name("chunk map", tests, NULL, NULL);
}
