/* Counts in memory against counting every batch of every block, while blocks are merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "index/blocks/counts/drps_counts.h"
#include "support/lists.h"

/* Who touches what, as a table of bytes; rows that are merged share the block's number. */
struct oracle {
    uint32_t rows, batches;
    uint8_t *touches; /* own: [rows][batches] */
    uint8_t *counted; /* own: [batches] in the share */
    uint32_t *block;  /* own: [rows] */
    uint8_t *group;   /* own: [rows] */
};

static int oracle_touches(const struct oracle *o, uint32_t block, uint32_t batch)
{
    int touched = 0;
    for (uint32_t row = 0; row < o->rows; row++)
        touched |= o->block[row] == block && o->touches[row * o->batches + batch];
    return touched && o->counted[batch];
}

static uint32_t oracle_common(const struct oracle *o, uint32_t a, uint32_t b)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < o->batches; i++)
        count += (uint32_t)(oracle_touches(o, a, i) && oracle_touches(o, b, i));
    return count;
}

static void oracle_begin(struct oracle *o, struct random_source *rng, uint32_t rows,
                         uint32_t batches, double share, uint64_t seed)
{
    *o = (struct oracle){rows,
                         batches,
                         must(calloc(rows * (size_t)batches + 1, 1)),
                         must(calloc(batches + 1, 1)),
                         must(calloc(rows + 1, sizeof(uint32_t))),
                         must(malloc((size_t)rows + 1))};
    memset(o->group, 1, rows);
    for (uint32_t row = 0; row < rows; row++) {
        uint64_t rare = 1 + random_below(rng, 12); /* all batches, or a few, or (below) none */
        o->block[row] = row;
        for (uint32_t b = 0; b < batches && row % 7 != 6; b++)
            o->touches[row * batches + b] = random_below(rng, rare) == 0;
        if (row % 5 == 4) /* the same batches as another row */
            memcpy(o->touches + row * batches, o->touches + (row - 1) * batches, batches);
    }
    for (uint32_t b = 0; b < batches; b++)
        o->counted[b] = share >= 1 || (double)drps_mix64(b ^ seed) < share * 0x1p64;
}

static void oracle_end(struct oracle *o)
{
    free(o->touches);
    free(o->counted);
    free(o->block);
    free(o->group);
}

static struct access access_of(const struct oracle *o)
{
    struct access a = {o->rows, o->batches, must(calloc((size_t)o->rows + 1, sizeof(*a.start))),
                       must(calloc(o->rows * (size_t)o->batches + 1, sizeof(*a.batch)))};
    uint64_t n = 0;
    for (uint32_t row = 0; row < o->rows; row++) {
        a.start[row] = n;
        for (uint32_t b = 0; b < o->batches; b++)
            if (o->touches[row * o->batches + b]) a.batch[n++] = b;
    }
    a.start[o->rows] = n;
    return a;
}

static void check_blocks(struct counts *t, const struct oracle *o)
{
    const uint64_t salt = 77;
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *count = must(calloc((size_t)o->rows + 1, sizeof(*count)));
    uint32_t *least = must(calloc((size_t)o->rows + 1, sizeof(*least)));
    uint64_t *sig = must(calloc((size_t)o->rows + 1, sizeof(*sig)));
    uint64_t work, expected_work = 0;

    assert_ok(t->ops->counts(t, count, &err), &err);
    assert_ok(t->ops->signatures(t, sig, &err), &err);
    assert_ok(t->ops->minhash(t, salt, least, &err), &err);
    assert_ok(t->ops->pair_work(t, &work, &err), &err);
    for (uint32_t block = 0; block < o->rows; block++) {
        uint64_t sum = 0;
        uint32_t low = UINT32_MAX;
        for (uint32_t b = 0; b < o->batches; b++) {
            uint32_t hash = (uint32_t)(drps_mix64(b ^ salt) >> 32);
            if (!oracle_touches(o, block, b)) continue;
            sum += drps_mix64(b);
            if (hash < low) low = hash;
        }
        assert_int_equal(count[block], oracle_common(o, block, block));
        assert_int_equal(sig[block], sum);
        assert_int_equal(least[block], low);
    }
    for (uint32_t b = 0; b < o->batches; b++) {
        uint64_t touched = 0;
        for (uint32_t block = 0; block < o->rows; block++)
            touched += (uint64_t)oracle_touches(o, block, b);
        expected_work += touched * touched;
    }
    assert_int_equal(work, expected_work);
    free(count);
    free(least);
    free(sig);
}

static void check_cocounts(struct counts *t, const struct oracle *o, struct random_source *rng)
{
    enum { PAIRS = 60 };
    struct drps_err err = DRPS_ERR_INIT;
    struct block_pair pairs[PAIRS];
    uint32_t count[PAIRS];
    if (o->rows < 2) return;
    for (int i = 0; i < PAIRS; i++) {
        pairs[i].b = 1 + (uint32_t)random_below(rng, o->rows - 1);
        pairs[i].a = (uint32_t)random_below(rng, pairs[i].b);
    }
    assert_ok(t->ops->cocounts(t, pairs, PAIRS, count, &err), &err);
    for (int i = 0; i < PAIRS; i++)
        assert_int_equal(count[i], oracle_common(o, pairs[i].a, pairs[i].b));
}

/* Pairs with one in `use_with` of the blocks, 0: NULL. Now and then with other groups. */
static void check_pairs(struct counts *t, struct oracle *o, struct random_source *rng, int use_with)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int regroup = random_below(rng, 2) == 0; /* else groups stay */
    uint8_t *group = o->group;
    uint8_t *in_with = must(calloc((size_t)o->rows + 1, 1));
    uint32_t *with = must(calloc((size_t)o->rows + 1, sizeof(*with)));
    struct block_pair_count *pairs;
    size_t with_n = 0, n, i = 0;

    for (uint32_t b = 0; b < o->rows; b++) {
        if (regroup) group[b] = (uint8_t)random_below(rng, 4);
        in_with[b] = !use_with || random_below(rng, (uint64_t)use_with) == 0;
        if (in_with[b]) with[with_n++] = b;
    }
    if (regroup) assert_ok(t->ops->groups(t, group, &err), &err);
    assert_ok(t->ops->pairs(t, use_with ? with : NULL, with_n, 1 << 20, &pairs, &n, &err), &err);
    for (uint32_t a = 0; a < o->rows; a++)
        for (uint32_t b = a + 1; b < o->rows; b++) {
            uint32_t count = oracle_common(o, a, b);
            if (!group[a] || group[a] != group[b] || !count || (!in_with[a] && !in_with[b]))
                continue;
            assert_true(i < n);
            assert_int_equal(pairs[i].a, a);
            assert_int_equal(pairs[i].b, b);
            assert_int_equal(pairs[i++].count, count);
        }
    assert_int_equal(i, n);
    struct block_pair_count *again; /* with no more memory than they take */
    if (regroup) assert_ok(t->ops->groups(t, group, &err), &err);
    assert_ok(
        t->ops->pairs(t, use_with ? with : NULL, with_n, n * sizeof(*pairs), &again, &i, &err),
        &err);
    assert_int_equal(i, n);
    if (n) assert_memory_equal(again, pairs, n * sizeof(*pairs));
    free(again);
    free(pairs);
    if (n > 0) {
        int rc = t->ops->pairs(t, use_with ? with : NULL, with_n, n * sizeof(*pairs) - 1, &pairs,
                               &n, &err);
        assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
        assert_int_equal(n, i);
        assert_null(pairs);
    }
    free(with);
    free(in_with);
}

/* Merge random pairs of live blocks, in both. */
static void merge_some(struct counts *t, struct oracle *o, struct random_source *rng)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct block_pair *pairs = must(calloc((size_t)o->rows + 1, sizeof(*pairs)));
    size_t n = 0;
    uint32_t waiting = UINT32_MAX;
    for (uint32_t b = 0; b < o->rows; b++) {
        if (o->block[b] != b || random_below(rng, 2)) continue;
        if (waiting == UINT32_MAX) {
            waiting = b;
            continue;
        }
        pairs[n++] = (struct block_pair){waiting, b};
        waiting = UINT32_MAX;
    }
    assert_ok(t->ops->merge(t, pairs, n, &err), &err);
    for (size_t i = 0; i < n; i++)
        for (uint32_t row = 0; row < o->rows; row++)
            if (o->block[row] == pairs[i].b) o->block[row] = pairs[i].a;
    free(pairs);
}

static void test_counts_are_those_of_the_oracle_while_blocks_merge(void **state)
{
    struct random_source rng = random_begin(__func__);
    static const uint32_t shape[][2] = {{40, 30}, {60, 9}, {12, 400}, {1, 5}, {0, 0}, {30, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
        for (double share = 1; share >= 0.25; share /= 2) {
            struct drps_err err = DRPS_ERR_INIT;
            struct oracle o;
            struct counts *t;
            oracle_begin(&o, &rng, shape[i][0], shape[i][1], share, i);
            struct access a = access_of(&o);
            assert_ok(drps_counts_open(&a, share, i, &t, &err), &err);
            assert_int_equal(t->blocks, o.rows);
            assert_int_equal(t->batches, o.batches);
            for (int round = 0; round < 8; round++) {
                if (round == 6) { /* all over again */
                    assert_ok(t->ops->reset(t, &err), &err);
                    for (uint32_t row = 0; row < o.rows; row++)
                        o.block[row] = row;
                }
                check_blocks(t, &o);
                check_cocounts(t, &o, &rng);
                check_pairs(t, &o, &rng, round % 3); /* all, with all, with half */
                merge_some(t, &o, &rng);
            }
            check_blocks(t, &o);
            t->ops->close(t);
            drps_access_free(&a);
            oracle_end(&o);
        }
}

/* Many merges of lists that differ: the pool is squeezed over and over. */
static void test_counts_keep_lists_when_the_pool_is_squeezed(void **state)
{
    enum { ROWS = 512, BATCHES = 640 };
    struct drps_err err = DRPS_ERR_INIT;
    struct access a = {ROWS, BATCHES, must(calloc(ROWS + 1, sizeof(*a.start))),
                       must(calloc(ROWS * 4, sizeof(*a.batch)))};
    struct counts *t;
    uint32_t count[ROWS];
    (void)state;
    for (uint32_t row = 0; row < ROWS; row++) { /* row, row + 1, row + 2, and the last batch */
        a.start[row] = row * 4;
        for (uint32_t i = 0; i < 4; i++)
            a.batch[row * 4 + i] = i < 3 ? row + i : BATCHES - 1;
    }
    a.start[ROWS] = ROWS * 4;
    assert_ok(drps_counts_open(&a, 1, 0, &t, &err), &err);
    for (uint32_t step = 1; step < ROWS; step *= 2)
        for (uint32_t b = 0; b < ROWS; b += 2 * step) {
            struct block_pair pair = {b, b + step};
            assert_ok(t->ops->merge(t, &pair, 1, &err), &err);
            assert_ok(t->ops->counts(t, count, &err), &err);
            assert_int_equal(count[b], 2 * step + 3);
            assert_int_equal(count[b + step], 0);
        }
    t->ops->close(t);
    drps_access_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_are_those_of_the_oracle_while_blocks_merge),
        cmocka_unit_test(test_counts_keep_lists_when_the_pool_is_squeezed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
