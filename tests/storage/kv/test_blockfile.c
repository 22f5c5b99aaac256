/* The block file: the bytes of a plain array whatever is put and got, its requests, damage, faults.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "storage/kv/drps_extents.h"
#include "storage/kv/drps_kv.h"
#include "support/fault_io.h"
#include "support/store_plan.h"
#include "support/uring_here.h"

struct fixture {
    uint64_t seed, at; /* of the random numbers */
    uint32_t *first;   /* [blocks + 1] */
    size_t blocks, row_bytes;
    char *dir, *path;
    const struct drps_kv_ops *ops;
    struct drps_kv *kv;
    char *model;  /* all rows */
    char *stored; /* [blocks] */
};

static uint32_t draw(struct fixture *f, uint32_t n)
{
    return (uint32_t)(drps_rng_at(f->seed, f->at++) % n);
}

static int open_file(struct fixture *f, const struct drps_io *io, uint64_t gap,
                     struct drps_err *err)
{
    const struct drps_kv_options options = {.create = 1,
                                            .io = io,
                                            .block_first = f->first,
                                            .blocks = f->blocks,
                                            .row_bytes = f->row_bytes,
                                            .gap_bytes = gap};
    return f->ops->open(f->path, &options, &f->kv, err);
}

/* Blocks of 1 to max_rows rows. */
static struct fixture begin(uint64_t seed, size_t blocks, uint32_t max_rows, size_t row_bytes)
{
    struct fixture f = {.seed = seed, .blocks = blocks, .row_bytes = row_bytes};
    f.ops = drps_kv_find("file");
    assert_non_null(f.ops);
    f.dir = scratch_new();
    f.path = drps_path_join(f.dir, "blocks");
    f.first = calloc(blocks + 1, sizeof(*f.first));
    for (size_t b = 0; b < blocks; b++)
        f.first[b + 1] = f.first[b] + 1 + draw(&f, max_rows);
    f.model = calloc(f.first[blocks], row_bytes);
    f.stored = calloc(blocks, 1);
    assert_true(f.path && f.first && f.model && f.stored);
    return f;
}

static void end(struct fixture *f)
{
    f->ops->close(f->kv);
    free(f->path);
    free(f->first);
    free(f->model);
    free(f->stored);
    scratch_remove(f->dir);
}

static char *rows_of(const struct fixture *f, uint32_t b)
{
    return f->model + f->first[b] * f->row_bytes;
}

static size_t bytes_of(const struct fixture *f, uint32_t b)
{
    return (f->first[b + 1] - f->first[b]) * f->row_bytes;
}

/* Put keys [n] with new bytes, or get them and compare. */
static int put(struct fixture *f, const uint32_t *keys, size_t n, struct drps_err *err)
{
    const void **values = calloc(n + 1, sizeof(*values));
    size_t *sizes = calloc(n + 1, sizeof(*sizes));
    assert_true(values && sizes);
    for (size_t i = 0; i < n; i++) {
        char *rows = rows_of(f, keys[i]);
        sizes[i] = bytes_of(f, keys[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            rows[k] = (char)draw(f, 256);
        values[i] = rows;
    }
    int rc = f->ops->put_many(f->kv, keys, n, values, sizes, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        f->stored[keys[i]] = 1;
    free(values);
    free(sizes);
    return rc;
}

static int get(const struct fixture *f, const uint32_t *keys, size_t n, struct drps_err *err)
{
    void **values = calloc(n + 1, sizeof(*values));
    size_t *sizes = calloc(n + 1, sizeof(*sizes));
    assert_true(values && sizes);
    for (size_t i = 0; i < n; i++) {
        sizes[i] = bytes_of(f, keys[i]);
        values[i] = malloc(sizes[i]);
        assert_non_null(values[i]);
    }
    int rc = f->ops->get_many(f->kv, keys, n, values, sizes, err);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0 && memcmp(values[i], rows_of(f, keys[i]), sizes[i]) != 0)
            fail_msg("seed %llu: block %u has other bytes", (unsigned long long)f->seed, keys[i]);
        free(values[i]);
    }
    free(values);
    free(sizes);
    return rc;
}

/* Some increasing keys, close together or far apart; of the stored ones only, if asked for. */
static size_t some_keys(struct fixture *f, int stored, uint32_t *keys)
{
    const uint32_t stride = 1 + draw(f, 1 + draw(f, 20));
    size_t n = 0;
    for (uint32_t b = draw(f, (uint32_t)f->blocks); b < f->blocks; b += 1 + draw(f, stride))
        if (!stored || f->stored[b]) keys[n++] = b;
    return n;
}

static int see(void *ctx, uint32_t key, const void *value, size_t bytes, struct drps_err *err)
{
    struct fixture *f = ctx;
    (void)err;
    assert_true(key < f->blocks && f->stored[key]);
    assert_int_equal(bytes, bytes_of(f, key));
    assert_memory_equal(value, rows_of(f, key), bytes);
    f->stored[key] = 2;
    return 0;
}

static void scan_all(struct fixture *f)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (f->ops->scan(f->kv, 0, UINT32_MAX, see, f, &err) < 0) fail_msg("%s", err.text);
    for (size_t b = 0; b < f->blocks; b++) {
        assert_int_not_equal(f->stored[b], 1);
        f->stored[b] = f->stored[b] != 0;
    }
}

/* Rows from 4 bytes (a hundred blocks to a sector) to several pages, gaps from none to all. */
static void test_equals_an_array(void **state)
{
    static const struct {
        size_t blocks, row_bytes;
        uint32_t max_rows;
        uint64_t gap;
    } cases[] = {{2000, 4, 1, 1},         {3000, 8, 3, 4096},  {1500, 136, 9, 1},
                 {1500, 136, 9, 1 << 20}, {400, 512, 4, 8192}, {60, 8008, 30, 65536}};
    (void)state;
    uint64_t seed = test_seed("array");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct fixture f = begin(seed + i, cases[i].blocks, cases[i].max_rows, cases[i].row_bytes);
        uint32_t *keys = calloc(f.blocks, sizeof(*keys));
        assert_non_null(keys);
        assert_int_equal(open_file(&f, drps_io_os(), cases[i].gap, &err), 0);
        for (int round = 0; round < 40; round++) {
            size_t n = some_keys(&f, 0, keys);
            if (put(&f, keys, n, &err) < 0) fail_msg("%s", err.text);
            n = some_keys(&f, 1, keys);
            if (get(&f, keys, n, &err) < 0) fail_msg("%s", err.text);
            if (round % 10 == 9) scan_all(&f);
        }
        free(keys);
        end(&f);
    }
}

/* Pages make up the used sectors without overlap, and runs are where their
 * pages are. */
static void check_extents(const struct drps_extents *p, char *seen)
{
    size_t used = 0, taken = 0;
    memset(seen, 0, p->free.sectors);
    for (uint32_t page = 0; page < p->pages; page++)
        for (uint32_t i = 0; i < drps_extents_sectors(p, page); i++, taken++) {
            const uint32_t sector = p->page_at[page] + i;
            assert_true(sector < p->free.sectors);
            assert_false(seen[sector]);
            seen[sector] = 1;
            assert_true(p->free.used[sector >> 6] >> (sector & 63) & 1);
        }
    for (uint32_t sector = 0; sector < p->free.sectors; sector++)
        used += p->free.used[sector >> 6] >> (sector & 63) & 1;
    assert_int_equal(used, taken);
}

/* Whether a page that keys [n], from keys[k] on, are written to also has other stored blocks. Then
 * it is read before, and stays where it is. */
static int must_stay(const struct drps_extents *p, const uint64_t *stored, const uint32_t *keys,
                     size_t n, size_t k)
{
    const uint32_t page = drps_extents_page(p, keys[k]);
    for (uint32_t b = drps_extents_first(p, page); b < drps_extents_first(p, page + 1); b++) {
        if (k < n && keys[k] == b)
            k++;
        else if (stored[b >> 6] >> (b & 63) & 1)
            return 1;
    }
    return 0;
}

/* Runs that are enough if pages that may move always find the room they want: one for each stretch
 * of such pages up to the size of a run, and one for each page that must stay. */
static size_t enough_runs(const struct drps_extents *p, const uint64_t *stored,
                          const uint32_t *keys, size_t n)
{
    const uint32_t most = DRPS_RUN_BYTES / p->sector;
    size_t runs = 0;
    uint32_t sectors = most; /* of the stretch */
    for (size_t k = 0; k < n; k++) {
        const uint32_t page = drps_extents_page(p, keys[k]);
        if (k && page == drps_extents_page(p, keys[k - 1])) continue;
        const uint32_t extent = drps_extents_sectors(p, page);
        const int stays = must_stay(p, stored, keys, n, k);
        if (stays || sectors + extent > most) {
            runs++;
            sectors = 0;
        }
        sectors = stays ? most : sectors + extent;
    }
    return runs;
}

static void test_moved_pages_never_overlap(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        struct fixture f = begin(test_seed("extents"), 800, small ? 5 : 40, small ? 40 : 136);
        struct drps_extents p;
        uint32_t *keys = calloc(f.blocks, sizeof(*keys));
        uint64_t *stored = calloc(f.blocks / 64 + 1, sizeof(*stored));
        assert_int_equal(drps_extents_init(&p, f.first, f.blocks, f.row_bytes, 512), 0);
        char *seen = malloc(p.free.sectors);
        assert_true(keys && stored && seen);
        size_t runs = 0, pages = 0, enough = 0;
        for (int round = 0; round < 300; round++) {
            const size_t n = some_keys(&f, 0, keys);
            enough += enough_runs(&p, stored, keys, n);
            struct drps_run run;
            for (size_t i = 0; i < n; i += run.keys, runs++) {
                drps_extents_write_run(&p, keys, n, i, stored, &run);
                uint64_t at = run.offset;
                for (size_t k = i; k < i + run.keys; k++) {
                    const uint32_t page = drps_extents_page(&p, keys[k]);
                    if (k > i && page == drps_extents_page(&p, keys[k - 1])) continue;
                    assert_int_equal(drps_extents_offset(&p, page), at);
                    at += (uint64_t)drps_extents_sectors(&p, page) * p.sector;
                    pages++;
                }
                assert_int_equal(at, run.offset + run.bytes);
            }
            for (size_t i = 0; i < n; i++)
                stored[keys[i] >> 6] |= UINT64_C(1) << (keys[i] & 63);
            check_extents(&p, seen);
        }
        if (runs * 4 > enough * 4 + pages) /* fewer requests are what pages move for */
            fail_msg("seed %llu: %zu runs for %zu pages, %zu are enough",
                     (unsigned long long)f.seed, runs, pages, enough);
        free(seen);
        free(stored);
        free(keys);
        drps_extents_destroy(&p);
        end(&f);
    }
}

/* Blocks of two sectors or more: what is written together lies side by side, and is read through
 * gaps. */
static void test_requests_are_runs(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct fixture f = begin(1, 64, 1, 8192);
    const uint32_t all[] = {0, 1, 2, 3, 10, 11, 12, 40}, two[] = {1, 3}, gap[] = {0, 3, 10, 40};
    struct drps_kv_stats s;
    assert_int_equal(open_file(&f, drps_io_os(), 2 * 8192, &err), 0);
    assert_int_equal(put(&f, all, 8, &err), 0);
    f.ops->stats(f.kv, &s);
    assert_int_equal(s.device.io.writes, 1);
    assert_int_equal(s.device.io.written_bytes, 8 * 8192);
    assert_int_equal(s.device.io.reads, 0);
    assert_int_equal(put(&f, two, 2, &err), 0);
    f.ops->stats(f.kv, &s);
    assert_int_equal(s.device.io.writes, 2); /* 0 - 2 - 10 11 12 40 1 3 */
    assert_int_equal(s.device.io.written_bytes, 10 * 8192);
    assert_int_equal(get(&f, gap, 4, &err), 0);
    f.ops->stats(f.kv, &s);
    assert_int_equal(s.device.io.reads, 2); /* 0; 10 to 3 */
    assert_int_equal(s.device.io.read_bytes, 7 * 8192);
    assert_int_equal(s.gets, 4);
    assert_int_equal(s.get_bytes, 4 * 8192);
    end(&f);
}

/* Narrow rows: a write of a shared sector keeps its neighbours, and reads only what it must. */
static void test_shared_sectors(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct fixture f = begin(2, 4096, 1, 8);
    const uint32_t some[] = {5, 7, 9}, one[] = {6}, far[] = {4000};
    struct drps_kv_stats s;
    assert_int_equal(open_file(&f, drps_io_os(), 1, &err), 0);
    assert_int_equal(put(&f, some, 3, &err), 0);
    f.ops->stats(f.kv, &s);
    assert_int_equal(s.device.io.reads, 0); /* nothing was there to keep */
    assert_int_equal(s.device.io.writes, 1);
    assert_int_equal(s.device.io.written_bytes, s.device.sector);
    assert_int_equal(put(&f, one, 1, &err), 0);
    assert_int_equal(put(&f, far, 1, &err), 0);
    f.ops->stats(f.kv, &s);
    assert_int_equal(s.device.io.reads, 1);
    assert_int_equal(s.device.io.writes, 3);
    assert_int_equal(get(&f, some, 3, &err), 0);
    assert_int_equal(get(&f, one, 1, &err), 0);
    assert_int_equal(get(&f, far, 1, &err), 0);
    end(&f);
}

static void test_mistakes_are_named(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct fixture f = begin(3, 20, 3, 8);
    const uint32_t stored[] = {4, 9}, missing[] = {4, 5}, beyond[] = {4, 20}, back[] = {9, 4};
    char room[2][64];
    void *out[] = {room[0], room[1]};
    const size_t right[] = {bytes_of(&f, 4), 8}, wrong = bytes_of(&f, 4) + 8;
    assert_int_equal(open_file(&f, drps_io_os(), 0, &err), 0);
    assert_int_equal(put(&f, stored, 2, &err), 0);
    assert_int_equal(get(&f, missing, 2, &err), DRPS_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "block 5"));
    assert_int_equal(f.ops->get_many(f.kv, beyond, 2, out, right, NULL), -EINVAL);
    assert_int_equal(f.ops->get_many(f.kv, stored, 1, out, &wrong, NULL), DRPS_E_CORRUPT);
    assert_int_equal(get(&f, back, 2, NULL), -EINVAL);
    struct drps_kv *second;
    const struct drps_kv_options nothing = {.create = 1};
    assert_int_equal(f.ops->open(f.path, &nothing, &second, NULL), -EINVAL);
    assert_null(second);
    struct fixture again = f;
    assert_int_equal(open_file(&again, drps_io_os(), 0, NULL), -EEXIST);
    end(&f);
}

/* A flipped byte is named by file and offset; blocks of other pages are still right. */
static void test_damage_is_detected(void **state)
{
    (void)state;
    for (int write = 0; write < 2; write++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct fixture f = begin(4, 600, 1, 8); /* 64 blocks to a sector of 512 bytes */
        uint32_t keys[600];
        struct drps_kv_stats s;
        unsigned char byte;
        char where[32];
        assert_int_equal(open_file(&f, drps_io_os(), 0, &err), 0);
        for (uint32_t b = 0; b < 600; b++)
            keys[b] = b;
        assert_int_equal(put(&f, keys, 600, &err), 0);
        f.ops->stats(f.kv, &s);
        int fd = open(f.path, O_RDWR);
        assert_int_equal(pread(fd, &byte, 1, s.device.sector + 11), 1);
        byte ^= 4;
        assert_int_equal(pwrite(fd, &byte, 1, s.device.sector + 11), 1);
        assert_int_equal(fsync(fd), 0);
        (void)close(fd);
        const uint32_t bad = s.device.sector / 8 + 5, good = 1;
        assert_int_equal(get(&f, &good, 1, &err), 0);
        int rc = write ? put(&f, &bad, 1, &err) : get(&f, &bad, 1, &err);
        assert_int_equal(rc, DRPS_E_CORRUPT);
        (void)snprintf(where, sizeof(where), "offset %u ", s.device.sector);
        assert_non_null(strstr(err.text, f.path));
        assert_non_null(strstr(err.text, where));
        drps_err_clear(&err);
        assert_int_equal(get(&f, &good, 1, &err), 0);
        end(&f);
    }
}

/* Whichever call fails first, its code comes out, and closing releases everything. */
static int run_with_fault(long countdown, int *fired)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct fault_io *fault = uring_faults_new();
    struct fixture f = begin(5, 300, 4, 136);
    uint32_t *keys = calloc(f.blocks, sizeof(*keys));
    assert_true(keys && fault);
    fault_io_arm(fault, FAULT_OPEN | FAULT_PREAD | FAULT_PWRITE | FAULT_FALLOCATE | FAULT_UNLINK,
                 countdown, 1, FAULT_ERROR, -EIO);
    int rc = open_file(&f, &fault->io, 1, &err);
    for (int round = 0; round < 6 && rc == 0; round++) {
        rc = put(&f, keys, some_keys(&f, 0, keys), &err);
        if (rc == 0) rc = get(&f, keys, some_keys(&f, 1, keys), &err);
    }
    *fired = fault->fired;
    if (rc < 0) assert_int_not_equal(err.text[0], 0);
    free(keys);
    end(&f);
    uring_faults_free(fault);
    return rc;
}

static void test_every_fault_surfaces(void **state)
{
    (void)state;
    int fired = 1;
    for (long countdown = 1; fired; countdown += 1 + countdown / 8) {
        const int rc = run_with_fault(countdown, &fired);
        assert_int_equal(rc, fired ? -EIO : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_an_array),    cmocka_unit_test(test_moved_pages_never_overlap),
        cmocka_unit_test(test_requests_are_runs),  cmocka_unit_test(test_shared_sectors),
        cmocka_unit_test(test_mistakes_are_named), cmocka_unit_test(test_damage_is_detected),
    };
    const struct CMUnitTest faults[] = {
        cmocka_unit_test(test_every_fault_surfaces),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL) +
                       cmocka_run_group_tests_name("block file, faults", faults, NULL, NULL);
    return failed + RUN_OVER_URING("block file, faults", faults);
}
