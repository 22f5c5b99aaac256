/* Conformance of the key-value engines: the same cases run over each engine of the build. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_io.h"
#include "base/drps_rng.h"
#include "storage/kv/drps_kv.h"
#include "support/store_plan.h"

enum { VALUE = 600 };

struct fixture {
    const struct drps_kv_ops *ops;
    char *dir, *path;
    struct drps_kv *kv;
};

static void open_kv(struct fixture *f, int create, int read_only, int bulk)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_kv_options options = {.memory_bytes = 16 << 20,
                                      .value_bytes = VALUE,
                                      .create = create,
                                      .read_only = read_only,
                                      .bulk = bulk};
    if (f->ops->open(f->path, &options, &f->kv, &err) < 0) fail_msg("%s", err.text);
    assert_non_null(f->kv);
}

/* The engine's files are all in the list by which a model's folder is known: else it could not be
 * replaced. */
static void close_kv(struct fixture *f)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_owned_check(f->path, drps_kv_owned, 0, NULL, &err) < 0) fail_msg("%s", err.text);
    f->ops->close(f->kv);
    f->kv = NULL;
}

static struct fixture begin(void **state)
{
    struct fixture f = {.ops = *state, .dir = scratch_new()};
    f.path = drps_path_join(f.dir, "db");
    open_kv(&f, 1, 0, 0);
    return f;
}

static void end(struct fixture *f)
{
    close_kv(f);
    free(f->path);
    scratch_remove(f->dir);
}

/* The bytes of value `key` in its version `version`. */
static void fill(unsigned char *value, uint32_t key, uint32_t version, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        value[i] = (unsigned char)drps_rng_at(key * 31ull + version, i);
}

static int put_one(struct fixture *f, uint32_t key, uint32_t version, size_t bytes,
                   struct drps_err *err)
{
    unsigned char value[VALUE];
    const void *values[] = {value};
    fill(value, key, version, bytes);
    return f->ops->put_many(f->kv, &key, 1, values, &bytes, err);
}

static int get_one(struct fixture *f, uint32_t key, unsigned char *out, size_t bytes,
                   struct drps_err *err)
{
    void *values[] = {out};
    return f->ops->get_many(f->kv, &key, 1, values, &bytes, err);
}

static void expect(struct fixture *f, uint32_t key, uint32_t version)
{
    unsigned char expected[VALUE], found[VALUE];
    struct drps_err err = DRPS_ERR_INIT;
    fill(expected, key, version, VALUE);
    if (get_one(f, key, found, VALUE, &err) < 0) fail_msg("%s", err.text);
    assert_memory_equal(found, expected, VALUE);
}

/* Put keys first, first + stride, ... in groups. */
static void put_range(struct fixture *f, uint32_t first, uint32_t stride, uint32_t count,
                      uint32_t version)
{
    enum { GROUP = 50 };
    static unsigned char room[GROUP][VALUE];
    uint32_t keys[GROUP];
    const void *values[GROUP];
    size_t bytes[GROUP];
    struct drps_err err = DRPS_ERR_INIT;
    for (uint32_t at = 0; at < count; at += GROUP) {
        uint32_t n = count - at < GROUP ? count - at : GROUP;
        for (uint32_t i = 0; i < n; i++) {
            keys[i] = first + (at + i) * stride;
            values[i] = room[i];
            bytes[i] = VALUE;
            fill(room[i], keys[i], version, VALUE);
        }
        if (f->ops->put_many(f->kv, keys, n, values, bytes, &err) < 0) fail_msg("%s", err.text);
    }
}

static void test_gets_what_was_put(void **state)
{
    struct fixture f = begin(state);
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(put_one(&f, 7, 0, VALUE, &err), 0);
    assert_int_equal(put_one(&f, 0, 0, VALUE, &err), 0);
    assert_int_equal(put_one(&f, UINT32_MAX, 0, VALUE, &err), 0);
    expect(&f, 7, 0);
    expect(&f, 0, 0);
    expect(&f, UINT32_MAX, 0);
    assert_int_equal(put_one(&f, 7, 1, VALUE, &err), 0);
    expect(&f, 7, 1);
    end(&f);
}

/* More keys than one library call takes, of different sizes. */
static void test_gets_many(void **state)
{
    enum { N = 700 };
    struct fixture f = begin(state);
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t keys[N];
    size_t bytes[N];
    void *values[N];
    unsigned char *room = malloc(N * VALUE), expected[VALUE];
    assert_non_null(room);
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = 3 * i;
        bytes[i] = 1 + i % VALUE;
        values[i] = room + i * VALUE;
        assert_int_equal(put_one(&f, keys[i], 0, bytes[i], &err), 0);
    }
    if (f.ops->get_many(f.kv, keys, N, values, bytes, &err) < 0) fail_msg("%s", err.text);
    for (uint32_t i = 0; i < N; i++) {
        fill(expected, keys[i], 0, bytes[i]);
        assert_memory_equal(values[i], expected, bytes[i]);
    }
    struct drps_kv_stats stats;
    f.ops->stats(f.kv, &stats);
    assert_int_equal(stats.gets, N);
    assert_int_equal(stats.get_calls, 1);
    assert_int_equal(stats.puts, N);
    assert_int_equal(stats.put_calls, N);
    assert_int_equal(stats.get_bytes, stats.put_bytes);
    free(room);
    end(&f);
}

static void test_missing_key_is_named(void **state)
{
    struct fixture f = begin(state);
    unsigned char room[3][VALUE];
    const uint32_t keys[] = {1, 4242, 4300};
    void *values[] = {room[0], room[1], room[2]};
    const size_t bytes[] = {VALUE, VALUE, VALUE};
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(put_one(&f, 1, 0, VALUE, &err), 0);
    assert_int_equal(f.ops->get_many(f.kv, keys, 3, values, bytes, &err), DRPS_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "4242"));
    assert_null(strstr(err.text, "4300")); /* the first one */
    end(&f);
}

static void test_wrong_size_is_corrupt(void **state)
{
    struct fixture f = begin(state);
    unsigned char room[VALUE];
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(put_one(&f, 5, 0, 100, &err), 0);
    assert_int_equal(get_one(&f, 5, room, 101, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "block 5 has 100 bytes, expected 101"));
    end(&f);
}

struct seen {
    uint32_t stride, version, n, stop_after;
};

static int see(void *ctx, uint32_t key, const void *value, size_t bytes, struct drps_err *err)
{
    struct seen *s = ctx;
    unsigned char expected[VALUE];
    (void)err;
    assert_int_equal(key, s->n * s->stride);
    assert_int_equal(bytes, VALUE);
    fill(expected, key, s->version, VALUE);
    assert_memory_equal(value, expected, VALUE);
    return ++s->n == s->stop_after ? 77 : 0;
}

static void test_scans_in_key_order(void **state)
{
    enum { N = 5000, STRIDE = 257 }; /* keys beyond 2^16: byte order matters */
    struct fixture f = begin(state);
    struct drps_err err = DRPS_ERR_INIT;
    struct seen none = {0};
    assert_int_equal(f.ops->scan(f.kv, 0, UINT32_MAX, see, &none, &err), 0);
    assert_int_equal(none.n, 0);
    put_range(&f, 0, STRIDE, N, 1);
    put_range(&f, 0, STRIDE, N, 2);
    struct seen all = {.stride = STRIDE, .version = 2};
    assert_int_equal(f.ops->scan(f.kv, 0, UINT32_MAX, see, &all, &err), 0);
    assert_int_equal(all.n, N);
    struct seen some = {.stride = STRIDE, .version = 2, .stop_after = 10};
    assert_int_equal(f.ops->scan(f.kv, 0, UINT32_MAX, see, &some, &err), 77);
    assert_int_equal(some.n, 10);
    for (uint32_t first = 0; first < N; first += 611)
        for (uint32_t n = 0; n < 3 && first + n <= N; n++) { /* just these keys, or those between */
            struct seen range = {.stride = STRIDE, .version = 2, .n = first};
            const uint32_t from = first * STRIDE, to = (first + n) * STRIDE;
            assert_int_equal(f.ops->scan(f.kv, from, to, see, &range, &err), 0);
            assert_int_equal(range.n, first + n);
            assert_int_equal(f.ops->scan(f.kv, from + 1, from + STRIDE, see, &none, &err), 0);
        }
    assert_int_equal(none.n, 0);
    end(&f);
}

static void test_synced_values_survive_reopening(void **state)
{
    for (int bulk = 0; bulk < 2; bulk++) {
        struct fixture f = begin(state);
        struct drps_err err = DRPS_ERR_INIT;
        close_kv(&f);
        scratch_remove(f.dir);
        f.dir = scratch_new();
        free(f.path);
        f.path = drps_path_join(f.dir, "db");
        open_kv(&f, 1, 0, bulk);
        put_range(&f, 0, 1, 4000, 3);
        assert_int_equal(f.ops->sync(f.kv, &err), 0);
        close_kv(&f);
        open_kv(&f, 0, 0, bulk);
        struct seen all = {.stride = 1, .version = 3};
        assert_int_equal(f.ops->scan(f.kv, 0, UINT32_MAX, see, &all, &err), 0);
        assert_int_equal(all.n, 4000);
        expect(&f, 3999, 3);
        end(&f);
    }
}

/* A database that is written once. */
static struct fixture begin_bulk(void **state)
{
    struct fixture f = {.ops = *state, .dir = scratch_new()};
    f.path = drps_path_join(f.dir, "db");
    open_kv(&f, 1, 0, 1);
    return f;
}

/* More than a table file takes. */
static void test_bulk_of_many_megabytes_is_all_there(void **state)
{
    enum { N = 70, BYTES = 1 << 20 };
    struct fixture f = begin_bulk(state);
    struct drps_err err = DRPS_ERR_INIT;
    unsigned char *value = malloc(BYTES), *found = malloc(BYTES);
    assert_non_null(value);
    assert_non_null(found);
    for (uint32_t key = 0; key < N; key++) {
        const void *values[] = {value};
        const size_t bytes = BYTES;
        memset(value, (int)key, BYTES);
        if (f.ops->put_many(f.kv, &key, 1, values, &bytes, &err) < 0) fail_msg("%s", err.text);
    }
    if (f.ops->sync(f.kv, &err) < 0) fail_msg("%s", err.text);
    for (int again = 0; again < 2; again++) {
        for (uint32_t key = 0; key < N; key++) {
            memset(value, (int)key, BYTES);
            if (get_one(&f, key, found, BYTES, &err) < 0) fail_msg("%s", err.text);
            assert_memory_equal(found, value, BYTES);
        }
        close_kv(&f);
        open_kv(&f, 0, 1, 1);
    }
    free(value);
    free(found);
    end(&f);
}

/* What a run leaves that is killed while it writes a model can be told and removed: close_kv()
 * looks at it, too. */
static void test_bulk_given_up_leaves_what_is_ours(void **state)
{
    struct fixture f = begin_bulk(state);
    struct drps_err err = DRPS_ERR_INIT;
    put_range(&f, 0, 1, 4000, 3);
    close_kv(&f);
    if (drps_owned_remove(drps_io_os(), f.path, drps_kv_owned, NULL, &err) < 0)
        fail_msg("%s", err.text);
    open_kv(&f, 1, 0, 1);
    assert_int_equal(f.ops->sync(f.kv, &err), 0); /* of nothing at all */
    struct seen none = {.stride = 1};
    assert_int_equal(f.ops->scan(f.kv, 0, UINT32_MAX, see, &none, &err), 0);
    assert_int_equal(none.n, 0);
    end(&f);
}

static void test_read_only_reads_and_refuses_writes(void **state)
{
    struct fixture f = begin(state);
    struct drps_err err = DRPS_ERR_INIT;
    put_range(&f, 0, 1, 300, 0);
    assert_int_equal(f.ops->sync(f.kv, &err), 0);
    close_kv(&f);
    open_kv(&f, 0, 1, 1);
    expect(&f, 123, 0);
    assert_int_equal(put_one(&f, 1, 1, VALUE, &err), -EROFS);
    assert_int_equal(f.ops->sync(f.kv, NULL), 0);
    expect(&f, 1, 0);
    end(&f);
}

static void test_open_tells_missing_and_existing(void **state)
{
    struct fixture f = begin(state);
    struct drps_kv *kv = NULL;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_kv_options create = {.create = 1}, use = {.create = 0};
    close_kv(&f);
    assert_int_equal(f.ops->open(f.path, &create, &kv, &err), -EEXIST);
    assert_null(kv);
    drps_err_clear(&err);
    char *nowhere = drps_path_join(f.dir, "nothing");
    assert_int_equal(f.ops->open(nowhere, &use, &kv, &err), -ENOENT);
    assert_null(kv);
    assert_non_null(strstr(err.text, nowhere));
    drps_err_clear(&err);
    open_kv(&f, 0, 0, 0);
    assert_int_equal(f.ops->open(f.path, &use, &kv, &err), -EBUSY);
    f.ops->close(NULL);
    free(nowhere);
    end(&f);
}

/* Flip a byte in the middle of every table file. */
static int damage_tables(const char *path)
{
    int damaged = 0;
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!strstr(e->d_name, ".sst") && !strstr(e->d_name, ".ldb")) continue;
        char *name = drps_path_join(path, e->d_name);
        int fd = open(name, O_RDWR);
        struct stat s;
        unsigned char byte;
        assert_true(fd >= 0 && fstat(fd, &s) == 0);
        assert_int_equal(pread(fd, &byte, 1, s.st_size / 2), 1);
        byte ^= 0x40;
        assert_int_equal(pwrite(fd, &byte, 1, s.st_size / 2), 1);
        (void)close(fd);
        free(name);
        damaged++;
    }
    (void)closedir(d);
    return damaged;
}

static void test_damaged_bytes_are_detected(void **state)
{
    struct fixture f = begin(state);
    struct drps_err err = DRPS_ERR_INIT;
    close_kv(&f);
    scratch_remove(f.dir);
    f.dir = scratch_new();
    free(f.path);
    f.path = drps_path_join(f.dir, "db");
    open_kv(&f, 1, 0, 1);
    put_range(&f, 0, 1, 4000, 0);
    assert_int_equal(f.ops->sync(f.kv, &err), 0);
    close_kv(&f);
    assert_true(damage_tables(f.path) > 0);
    open_kv(&f, 0, 1, 1);
    int corrupt = 0;
    for (uint32_t key = 0; key < 4000; key++) {
        unsigned char found[VALUE], expected[VALUE];
        drps_err_clear(&err);
        int rc = get_one(&f, key, found, VALUE, &err);
        fill(expected, key, 0, VALUE);
        if (rc == 0)
            assert_memory_equal(found, expected, VALUE); /* never wrong bytes */
        else
            assert_int_equal(rc, DRPS_E_CORRUPT);
        corrupt += rc != 0;
    }
    assert_true(corrupt > 0 && corrupt < 4000);
    struct seen all = {.stride = 1};
    drps_err_clear(&err);
    assert_int_equal(f.ops->scan(f.kv, 0, UINT32_MAX, see, &all, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, f.path));
    end(&f);
}

struct party {
    struct fixture *f;
    uint32_t first; /* this thread's keys: first .. first + 199 */
    int failed;
};

static void *put_and_get(void *arg)
{
    struct party *p = arg;
    unsigned char found[VALUE], expected[VALUE];
    for (uint32_t version = 0; version < 4; version++)
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t key = p->first + i;
            uint32_t other = p->first + (i + 100) % 200;
            p->failed |= put_one(p->f, key, version, VALUE, NULL) < 0;
            int rc = get_one(p->f, other, found, VALUE, NULL);
            fill(expected, other, other < key ? version : version - 1, VALUE);
            if (version || other < key)
                p->failed |= rc < 0 || memcmp(found, expected, VALUE) != 0;
            else
                p->failed |= rc != DRPS_E_NOT_FOUND;
        }
    return NULL;
}

static void test_threads_get_and_put_together(void **state)
{
    enum { THREADS = 6 };
    struct fixture f = begin(state);
    pthread_t threads[THREADS];
    struct party parties[THREADS];
    for (uint32_t t = 0; t < THREADS; t++) {
        parties[t] = (struct party){.f = &f, .first = 1000 * t};
        assert_int_equal(pthread_create(&threads[t], NULL, put_and_get, &parties[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_join(threads[t], NULL), 0);
        assert_false(parties[t].failed);
    }
    end(&f);
}

/* Enough rewriting that files are flushed and merged underneath. */
static void test_survives_compaction(void **state)
{
    struct fixture f = begin(state);
    for (uint32_t version = 0; version < 6; version++)
        put_range(&f, version, 6, 4000, version);
    put_range(&f, 0, 2, 12000, 9);
    for (uint32_t key = 0; key < 24000; key += 37)
        expect(&f, key, key % 2 ? key % 6 : 9);
    end(&f);
}

static void test_engines_are_found_by_name(void **state)
{
    (void)state;
    assert_null(drps_kv_find("nonsense"));
    assert_non_null(drps_kv_engines()[0]);
    for (const struct drps_kv_ops *const *e = drps_kv_engines(); *e; e++)
        assert_ptr_equal(drps_kv_find((*e)->name), *e);
}

int main(void)
{
    static const struct CMUnitTest each[] = {
        cmocka_unit_test(test_gets_what_was_put),
        cmocka_unit_test(test_gets_many),
        cmocka_unit_test(test_missing_key_is_named),
        cmocka_unit_test(test_wrong_size_is_corrupt),
        cmocka_unit_test(test_scans_in_key_order),
        cmocka_unit_test(test_synced_values_survive_reopening),
        cmocka_unit_test(test_bulk_of_many_megabytes_is_all_there),
        cmocka_unit_test(test_bulk_given_up_leaves_what_is_ours),
        cmocka_unit_test(test_read_only_reads_and_refuses_writes),
        cmocka_unit_test(test_open_tells_missing_and_existing),
        cmocka_unit_test(test_damaged_bytes_are_detected),
        cmocka_unit_test(test_threads_get_and_put_together),
        cmocka_unit_test(test_survives_compaction),
    };
    enum { EACH = sizeof(each) / sizeof(*each) };
    static const struct CMUnitTest once[] = {cmocka_unit_test(test_engines_are_found_by_name)};
    int failed = cmocka_run_group_tests_name("kv", once, NULL, NULL);
    for (const struct drps_kv_ops *const *e = drps_kv_engines(); *e; e++) {
        struct CMUnitTest tests[EACH];
        if ((*e)->training_only) continue; /* test_blockfile.c */
        memcpy(tests, each, sizeof(each));
        for (size_t i = 0; i < EACH; i++)
            tests[i].initial_state = (void *)*e;
        failed += _cmocka_run_group_tests((*e)->name, tests, EACH, NULL, NULL);
    }
    return failed;
}
