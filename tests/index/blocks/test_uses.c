/*
 * Block uses: an example by hand, random plans against a search, the same bytes whatever the
 * memory, damaged records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "index/plan/drps_batch.h"
#include "index/plan/drps_window.h"
#include "support/fault_io.h"
#include "support/lists.h"

/* Boundaries of blocks of random sizes; *blocks_out of them. */
static uint32_t *random_blocks(struct random_source *rng, uint64_t rows, uint64_t most_rows,
                               size_t *blocks_out)
{
    uint32_t *first = must(calloc(rows + 1, sizeof(*first)));
    size_t n = 0;
    for (uint64_t row = 0; row < rows; row += 1 + random_below(rng, most_rows))
        first[n++] = (uint32_t)row;
    first[n] = (uint32_t)rows;
    *blocks_out = n;
    return first;
}

struct record {
    void *data;
    size_t bytes;
};

static struct record *read_uses(const struct lists *l)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recfile *f;
    struct record *records = must(calloc(l->steps + 1, sizeof(*records)));
    char *path = must(drps_path_join(l->dir, "uses.rec"));
    assert_ok(drps_recfile_open(drps_io_os(), path, DRPS_KIND_USES, &f, &err), &err);
    assert_int_equal(drps_recfile_count(f), l->steps);
    for (uint64_t s = 0; s < l->steps; s++) {
        records[s].bytes = (size_t)drps_recfile_bytes(f, s);
        records[s].data = must(malloc((size_t)drps_recfile_run_bytes(f, s, 1)));
        assert_ok(drps_recfile_read(f, s, 1, records[s].data, &err), &err);
    }
    drps_recfile_close(f);
    free(path);
    path = must(drps_path_join(l->dir, "uses.tmp"));
    assert_int_not_equal(access(path, F_OK), 0);
    free(path);
    return records;
}

static void free_records(struct record *records, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        free(records[i].data);
    free(records);
}

static int step_uses(const struct lists *l, uint64_t s, uint32_t first, uint32_t end)
{
    for (size_t i = 0; i < l->n[s]; i++)
        if (l->list[s][i] >= first && l->list[s][i] < end) return 1;
    return 0;
}

static void check_uses(const struct lists *l, const struct record *records, const uint32_t *first,
                       size_t blocks, const struct drps_uses_result *most)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *list = must(calloc(blocks, sizeof(*list))),
             *distance = must(calloc(blocks, sizeof(*distance)));
    uint64_t found_most = 0, found_rows = 0;
    for (uint64_t s = 0; s < l->steps; s++) {
        size_t n = drps_list_count(records[s].data), k = 0;
        uint64_t rows = 0;
        assert_true(n <= blocks);
        assert_ok(drps_uses_decode(records[s].data, records[s].bytes, list, distance, &err), &err);
        for (size_t b = 0; b < blocks; b++) {
            if (!step_uses(l, s, first[b], first[b + 1])) continue;
            rows += first[b + 1] - first[b];
            uint32_t d = 1;
            while (!step_uses(l, (s + d) % l->steps, first[b], first[b + 1]))
                d++;
            assert_true(k < n);
            assert_int_equal(list[k], b);
            assert_int_equal(distance[k++], d);
        }
        assert_int_equal(k, n);
        if (n > found_most) found_most = n;
        if (rows > found_rows) found_rows = rows;
    }
    assert_int_equal(found_most, most->max_step_blocks);
    assert_int_equal(found_rows, most->max_step_block_rows);
    free(list);
    free(distance);
}

/* What a step's blocks cost, found row by row. */
static void check_price(const struct lists *l, const uint32_t *first, size_t blocks, uint32_t gap,
                        const struct drps_uses_result *sum)
{
    struct drps_uses_result want = {0};
    for (uint64_t s = 0; s < l->steps; s++) {
        uint32_t end = UINT32_MAX; /* of the run, if there is one */
        want.row_uses += l->n[s];
        for (size_t b = 0; b < blocks; b++) {
            if (!step_uses(l, s, first[b], first[b + 1])) continue;
            want.block_uses++;
            want.block_use_rows += first[b + 1] - first[b];
            if (end == UINT32_MAX || first[b] - end > gap) {
                want.runs++;
                end = first[b];
            }
            for (; end < first[b + 1]; end++)
                want.run_rows++;
        }
    }
    assert_int_equal(sum->row_uses, want.row_uses);
    assert_int_equal(sum->block_uses, want.block_uses);
    assert_int_equal(sum->block_use_rows, want.block_use_rows);
    assert_int_equal(sum->runs, want.runs);
    assert_int_equal(sum->run_rows, want.run_rows);
}

static void test_uses_example(void **state)
{
    (void)state;
    const char *const text[] = {"0 1 5", "2", "3"};
    const uint32_t first[] = {0, 2, 3, 6};
    static const uint32_t blocks[3][2] = {{0, 2}, {1}, {2}}, distance[3][2] = {{3, 2}, {3}, {1}},
                          n[] = {2, 1, 1};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_uses_result most;
    uint32_t b[2], d[2];
    struct lists l;
    lists_from_text(&l, text, 3, 3, 6);
    assert_ok(drps_uses_compile(drps_io_os(), l.dir, 3, first, 3, 0, 1 << 20, &most, &err), &err);
    assert_int_equal(most.max_step_blocks, 2);
    struct record *records = read_uses(&l);
    for (size_t s = 0; s < 3; s++) {
        assert_int_equal(drps_list_count(records[s].data), n[s]);
        assert_ok(drps_uses_decode(records[s].data, records[s].bytes, b, d, &err), &err);
        assert_memory_equal(b, blocks[s], n[s] * sizeof(*b));
        assert_memory_equal(d, distance[s], n[s] * sizeof(*d));
    }
    free_records(records, 3);
    lists_free(&l);
}

static void test_uses_random_against_search(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 200; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_uses_result most;
        size_t blocks;
        struct lists l;
        lists_random(&l, &rng, 1 + random_below(&rng, 500), 1 + random_below(&rng, 20),
                     1 + random_below(&rng, 100));
        uint32_t *first = random_blocks(&rng, l.rows, 1 + random_below(&rng, 20), &blocks);
        const uint32_t gap = (uint32_t)random_below(&rng, 10);
        assert_ok(drps_uses_compile(drps_io_os(), l.dir, l.steps, first, blocks, gap,
                                    random_below(&rng, 2000), &most, &err),
                  &err);
        struct record *records = read_uses(&l);
        check_uses(&l, records, first, blocks, &most);
        check_price(&l, first, blocks, gap, &most);
        free_records(records, l.steps);
        free(first);
        lists_free(&l);
    }
}

static void test_uses_same_bytes_whatever_the_memory(void **state)
{
    (void)state;
    static const uint64_t memory[] = {UINT64_C(1) << 30, 0, 1000, 3000};
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 10; round++) {
        struct record *whole = NULL;
        size_t blocks;
        struct lists l;
        lists_random(&l, &rng, 5000, 15, 1000);
        uint32_t *first = random_blocks(&rng, l.rows, 5, &blocks);
        for (size_t i = 0; i < 4; i++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_uses_result most;
            assert_ok(drps_uses_compile(drps_io_os(), l.dir, l.steps, first, blocks, 3, memory[i],
                                        &most, &err),
                      &err);
            struct record *records = read_uses(&l);
            for (uint64_t s = 0; i && s < l.steps; s++) {
                assert_int_equal(records[s].bytes, whole[s].bytes);
                assert_memory_equal(records[s].data, whole[s].data, whole[s].bytes);
            }
            if (i)
                free_records(records, l.steps);
            else
                whole = records;
        }
        free_records(whole, l.steps);
        free(first);
        lists_free(&l);
    }
}

static void test_uses_decode_survives_damage(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_uses_result most;
    size_t blocks;
    struct lists l;
    struct random_source rng = random_begin(__func__);
    lists_random(&l, &rng, 3000, 8, 100);
    uint32_t *first = random_blocks(&rng, l.rows, 5, &blocks);
    assert_ok(
        drps_uses_compile(drps_io_os(), l.dir, l.steps, first, blocks, 0, 1 << 20, &most, &err),
        &err);
    struct record *records = read_uses(&l);
    for (uint64_t s = 0; s < l.steps; s++) {
        for (size_t n = 0; n < records[s].bytes; n++) {
            unsigned char *copy = must(malloc(records[s].bytes));
            uint32_t *list = must(calloc(records[s].bytes, sizeof(*list)));
            uint32_t *distance = must(calloc(records[s].bytes, sizeof(*distance)));
            for (int bit = 0; bit < 8; bit++) {
                memcpy(copy, records[s].data, records[s].bytes);
                copy[n] ^= (unsigned char)(1 << bit);
                if (drps_list_count(copy) > records[s].bytes)
                    continue; /* readers bound it before they allocate */
                int rc = drps_uses_decode(copy, records[s].bytes, list, distance, NULL);
                assert_true(rc == 0 || rc == DRPS_E_CORRUPT);
            }
            unsigned char *cut = must(malloc(n + 1));
            memcpy(cut, records[s].data, n);
            assert_int_equal(drps_uses_decode(cut, n, list, distance, NULL), DRPS_E_CORRUPT);
            free(cut);
            free(copy);
            free(list);
            free(distance);
        }
    }
    free_records(records, l.steps);
    free(first);
    lists_free(&l);
}

static void test_uses_refuses_boundaries_out_of_order(void **state)
{
    (void)state;
    const char *const text[] = {"0 1 5"};
    const uint32_t first[][4] = {{1, 2, 3, 6}, {0, 3, 3, 6}, {0, 4, 3, 6}};
    struct lists l;
    struct drps_uses_result most;
    lists_from_text(&l, text, 1, 1, 6);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(drps_uses_compile(drps_io_os(), l.dir, 1, first[i], 3, 0, 0, &most, NULL),
                         -EINVAL);
    lists_free(&l);
}

static void test_uses_names_the_bad_record(void **state)
{
    (void)state;
    const char *const text[] = {"0 1 4", "0 1 5"};
    const uint32_t first[] = {0, 2, 5};
    struct drps_err err = DRPS_ERR_INIT;
    struct lists l;
    struct drps_uses_result most;
    lists_from_text(&l, text, 2, 2, 6);
    assert_int_equal(drps_uses_compile(drps_io_os(), l.dir, 2, first, 2, 0, 0, &most, &err),
                     DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "rows.rec: record 1: row 5 of 5"));
    lists_free(&l);
}

/* Each read and write in turn fails: the code comes through, no scratch file stays, an unfinished
 * file is refused. */
static void test_uses_survives_faults(void **state)
{
    (void)state;
    struct drps_recfile *file;
    struct lists l;
    int rc = -EIO;
    struct random_source rng = random_begin(__func__);
    struct drps_uses_result most;
    size_t blocks;
    lists_random(&l, &rng, 2000, 10, 500);
    uint32_t *first = random_blocks(&rng, l.rows, 5, &blocks);
    char *scratch = must(drps_path_join(l.dir, "uses.tmp"));
    char *final = must(drps_path_join(l.dir, "uses.rec"));
    for (long k = 1; rc < 0; k++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct fault_io *f = must(fault_io_new(drps_io_os()));
        fault_io_arm(f, FAULT_PREAD | FAULT_PWRITE, k, 0, FAULT_ERROR, -EIO);
        rc = drps_uses_compile(&f->io, l.dir, l.steps, first, blocks, 0, 1 << 20, &most, &err);
        assert_int_equal(rc, atomic_load(&f->fired) ? -EIO : 0);
        fault_io_free(f);
        assert_int_not_equal(access(scratch, F_OK), 0);
        int opened = drps_recfile_open(drps_io_os(), final, DRPS_KIND_USES, &file, NULL);
        assert_int_equal(opened == 0, rc == 0);
        drps_recfile_close(file);
    }
    free(scratch);
    free(final);
    free(first);
    lists_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uses_example),
        cmocka_unit_test(test_uses_random_against_search),
        cmocka_unit_test(test_uses_same_bytes_whatever_the_memory),
        cmocka_unit_test(test_uses_decode_survives_damage),
        cmocka_unit_test(test_uses_refuses_boundaries_out_of_order),
        cmocka_unit_test(test_uses_names_the_bad_record),
        cmocka_unit_test(test_uses_survives_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
