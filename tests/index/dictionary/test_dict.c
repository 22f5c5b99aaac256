/* The dictionary: ids, counts and patterns; with memory for many or few keys the same placed ids
 * and names.rec. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "index/dictionary/dict_data.h"
#include "index/dictionary/dict_internal.h"
#include "index/dictionary/drps_dict.h"
#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_names.h"
#include "support/fault_io.h"
#include "support/scratch.h"

/* Memory for some 12,000 keys, and the counts of 16,384 small ones. */
enum { LITTLE = 1 << 19 };

/* What a dictionary made of the data. */
struct placed {
    size_t generations;
    uint64_t rows[2];
    uint32_t *row; /* [nnz] placed id of each entry */
};

/* What decides on the table of a name. */
enum tables { ONE, BY_FIELD, BY_KEY, WAYS };

static unsigned table_of(enum tables tables, uint32_t number, uint64_t key)
{
    if (tables == BY_KEY) return key < DRPS_SAMPLE_KEYS;
    return tables == BY_FIELD ? number % 2 : 0;
}

/* What a dictionary goes on from; dir NULL: nothing. */
struct earlier {
    const char *dir;
    uint64_t rows;
};

static int place_from(const struct earlier *base, const struct drps_io *io, const char *dir,
                      uint64_t memory, const struct data *data, enum tables tables,
                      uint32_t first_row, struct placed *out, struct drps_err *err)
{
    struct dict_options o = {.memory_bytes = memory,
                             .strings = data->strings,
                             .hash_seed = DATA_SEED,
                             .base_dir = base->dir,
                             .base_rows = base->rows,
                             .table_by_field = tables == BY_FIELD,
                             .table_by_key = tables == BY_KEY};
    struct dict *d = NULL;
    struct data_ids ids = data_ids_new(data);

    memset(out, 0, sizeof(*out));
    out->row = malloc((data->n * data->per_sample + 1) * sizeof(*out->row));
    assert_non_null(out->row);
    int rc = drps_dict_open(io, dir, &o, &d, err);
    if (rc == 0) rc = data_add(d, data, 0, data->n, &ids, err);
    if (rc == 0) rc = drps_dict_place(d, dir, first_row, out->rows, err);
    if (rc == 0) out->generations = drps_dict_generations(d);
    if (rc == 0) rc = data_rows(d, data, 0, data->n, &ids, out->row, err);
    drps_dict_close(d);
    data_ids_free(&ids);
    return rc;
}

static int place(const struct drps_io *io, const char *dir, uint64_t memory,
                 const struct data *data, enum tables tables, uint32_t first_row,
                 struct placed *out, struct drps_err *err)
{
    const struct earlier none = {.dir = NULL};
    return place_from(&none, io, dir, memory, data, tables, first_row, out, err);
}

struct listed {
    const struct data *data;
    uint32_t *row_of; /* [keys] by number of the name, from names.rec */
    uint64_t last;
    size_t n;
};

static int list_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                     size_t bytes, struct drps_err *err)
{
    struct listed *l = ctx;
    (void)err;
    assert_true(!l->n || key > l->last);
    l->last = key;
    l->n++;
    if (!l->data->strings) {
        assert_null(text);
        return 0;
    }
    uint64_t want;
    uint32_t check;
    drps_name_hash(field, text, bytes, 5, &want, &check);
    assert_true(want == key);
    char copy[DATA_TEXT_BYTES] = "";
    unsigned number = 0;
    memcpy(copy, text, bytes);
    if (bytes) assert_int_equal(sscanf(copy, "name %u", &number), 1);
    assert_int_equal(field, number % 2);
    l->row_of[number] = row;
    return 0;
}

/* Counts and masks as a naive pass finds them, by number of the name. */
struct naive {
    uint32_t *count, *mask, *first;
    uint64_t *key;
};

static struct naive count(const struct data *d)
{
    struct naive n = {calloc(d->keys, 4), calloc(d->keys, 4), malloc(d->keys * 4),
                      calloc(d->keys, 8)};
    assert_true(n.count && n.mask && n.first && n.key);
    memset(n.first, 0xff, d->keys * 4);
    for (size_t k = 0; k < d->n * d->per_sample; k++) {
        uint32_t time = d->time[k / d->per_sample];
        n.key[d->number[k]] = d->key[k];
        if (time == DICT_TEST) continue;
        n.count[d->number[k]]++;
        n.mask[d->number[k]] |= 1u << time / (DICT_TIMES / DICT_SEGMENTS);
        if (time < n.first[d->number[k]]) n.first[d->number[k]] = time;
    }
    return n;
}

/* The order that dict.c promises, rank by rank. by_row: number of the name at each placed id of one
 * table. */
static void assert_placed_order(const struct naive *n, const uint32_t *by_row, size_t rows)
{
    for (size_t i = 1; i < rows; i++) {
        uint32_t x = by_row[i - 1];
        uint32_t y = by_row[i];
        int px = __builtin_popcount(n->mask[x]);
        int py = __builtin_popcount(n->mask[y]);
        int hot = px == DICT_SEGMENTS && py == px;
        int same = n->mask[x] == n->mask[y];
        int tied = same && (hot || n->first[x] == n->first[y]);
        int fine = px > py || (px == py && !same) || (same && !hot && n->first[x] < n->first[y]) ||
                   (tied && n->count[x] > n->count[y]) ||
                   (tied && n->count[x] == n->count[y] && n->key[x] < n->key[y]);
        if (!fine)
            fail_msg("rows %zu, %zu: patterns %08x %08x, counts %u %u", i - 1, i, n->mask[x],
                     n->mask[y], n->count[x], n->count[y]);
    }
    for (size_t i = 1; i < rows; i++) /* equal patterns lie together */
        if (n->mask[by_row[i]] != n->mask[by_row[i - 1]] &&
            __builtin_popcount(n->mask[by_row[i]]) != DICT_SEGMENTS)
            for (size_t j = i + 1; j < rows && j < i + 200; j++)
                assert_true(n->mask[by_row[j]] != n->mask[by_row[i - 1]]);
}

static void test_dict_rows_follow_counts_and_patterns(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dict order");
    for (unsigned i = 0; i < WAYS * DATA_WAYS; i++) {
        const enum tables by = i % WAYS;
        const enum data_keys way = i / WAYS;
        if (by == BY_FIELD && way != DATA_NAMES) continue; /* numbers have no fields */
        struct data d = data_make(&r, 20000, 7, 3000, way);
        struct placed p;
        struct drps_err err = DRPS_ERR_INIT;
        struct naive n = count(&d);
        if (place(drps_io_os(), s->dir, 1 << 28, &d, by, 1, &p, &err)) fail_msg("%s", err.text);
        uint32_t *by_row = calloc(d.keys + 1, sizeof(*by_row));
        uint64_t trained[2] = {0, 0};
        assert_non_null(by_row);
        for (size_t k = 0; k < d.keys; k++)
            if (n.count[k]) trained[table_of(by, (uint32_t)k, n.key[k])]++;
        assert_int_equal(p.rows[0], trained[0]);
        assert_int_equal(p.rows[1], trained[1]);
        for (size_t k = 0; k < d.n * d.per_sample; k++) {
            uint32_t number = d.number[k];
            if (!n.count[number]) {
                assert_true(p.row[k] == DRPS_NO_ROW);
                continue;
            }
            assert_true(p.row[k] >= 1 && p.row[k] <= p.rows[0] + p.rows[1]);
            assert_int_equal(p.row[k] > p.rows[0], table_of(by, number, d.key[k]));
            by_row[p.row[k] - 1] = number;
        }
        assert_placed_order(&n, by_row, (size_t)p.rows[0]);
        assert_placed_order(&n, by_row + p.rows[0], (size_t)p.rows[1]);
        free(by_row);
        free(p.row);
        free(n.count);
        free(n.mask);
        free(n.first);
        free(n.key);
        data_free(&d);
    }
}

static void test_dict_generations_do_not_show(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dict generations");
    for (unsigned i = 0; i < WAYS * DATA_WAYS; i++) {
        const enum tables by = i % WAYS;
        const enum data_keys way = i / WAYS;
        if (by == BY_FIELD && way != DATA_NAMES) continue; /* numbers have no fields */
        struct data d = data_make(&r, 20000, 8, way == DATA_NUMBERS ? 120000 : 60000, way);
        struct placed one, many;
        struct drps_err err = DRPS_ERR_INIT;
        assert_int_equal(mkdir(scratch_path(s, "one"), 0777) && errno != EEXIST, 0);
        assert_int_equal(mkdir(scratch_path(s, "many"), 0777) && errno != EEXIST, 0);
        if (place(drps_io_os(), scratch_path(s, "one"), 1 << 30, &d, by, 1, &one, &err))
            fail_msg("%s", err.text);
        if (place(drps_io_os(), scratch_path(s, "many"), LITTLE, &d, by, 1, &many, &err))
            fail_msg("%s", err.text);
        assert_int_equal(one.generations, 1);
        if (many.generations < 4)
            fail_msg("%zu generations: the test has too few keys", many.generations);
        assert_int_equal(one.rows[0], many.rows[0]);
        assert_int_equal(one.rows[1], many.rows[1]);
        assert_memory_equal(one.row, many.row, d.n * d.per_sample * sizeof(*one.row));
        assert_true(
            files_equal(scratch_path(s, "one/names.rec"), scratch_path(s, "many/names.rec")));
        free(one.row);
        free(many.row);
        data_free(&d);
    }
}

/* Small keys are no reason to begin a new generation; where they are too many to be placed from the
 * table, they are placed from a run of it. */
static void test_dict_small_keys_need_no_generation(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dict small");
    struct data d = data_make(&r, 20000, 8, 16000, DATA_NUMBERS);
    struct placed one, little;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(mkdir(scratch_path(s, "one"), 0777), 0);
    assert_int_equal(mkdir(scratch_path(s, "little"), 0777), 0);
    if (place(drps_io_os(), scratch_path(s, "one"), 1 << 30, &d, ONE, 1, &one, &err) ||
        place(drps_io_os(), scratch_path(s, "little"), LITTLE, &d, ONE, 1, &little, &err))
        fail_msg("%s", err.text);
    assert_int_equal(one.generations, 1);
    assert_int_equal(little.generations, 1);
    assert_int_equal(access(scratch_path(s, "one/names-0.run"), F_OK), -1);
    assert_int_equal(access(scratch_path(s, "little/names-0.run"), F_OK), 0);
    assert_int_equal(one.rows[0], little.rows[0]);
    assert_memory_equal(one.row, little.row, d.n * d.per_sample * sizeof(*one.row));
    assert_true(files_equal(scratch_path(s, "one/names.rec"), scratch_path(s, "little/names.rec")));
    free(one.row);
    free(little.row);
    data_free(&d);
}

static void test_dict_names_file_lists_rows_and_strings(void **state)
{
    struct scratch *s = *state;
    struct random_source r = random_begin("dict names");
    for (enum data_keys way = 0; way < DATA_WAYS; way++) {
        struct data d = data_make(&r, 5000, 4, 9000, way);
        struct placed p;
        struct drps_names *names;
        struct drps_err err = DRPS_ERR_INIT;
        struct listed l = {.data = &d, .row_of = malloc(d.keys * sizeof(uint32_t))};
        assert_non_null(l.row_of);
        memset(l.row_of, 0xff, d.keys * sizeof(uint32_t));
        if (place(drps_io_os(), s->dir, 1 << 28, &d, ONE, 1, &p, &err)) fail_msg("%s", err.text);
        assert_int_equal(drps_names_open(drps_io_os(), s->dir, &names, &err), 0);
        assert_int_equal(drps_names_scan(names, list_name, &l, &err), 0);
        assert_int_equal(l.n, p.rows[0]);
        for (size_t k = 0; k < d.n * d.per_sample; k++) {
            uint32_t row;
            if (d.strings) assert_int_equal(l.row_of[d.number[k]], p.row[k]);
            assert_int_equal(drps_names_lookup(names, &d.key[k], 1, &row, NULL), 0);
            assert_int_equal(row, p.row[k]);
        }
        drps_names_close(names);
        free(l.row_of);
        free(p.row);
        data_free(&d);
    }
}

/* A key that is first trained in the last moment of the epoch, behind a generation in which only a
 * test has it, comes last, as where all is one generation. */
static void test_dict_tests_say_nothing_of_times(void **state)
{
    enum { KEYS = 20000, KEY = 7, LAST = DICT_TIMES - 1 };
    struct scratch *s = *state;
    struct random_source r = random_begin("dict last");
    struct data d = data_make(&r, KEYS + 3, 1, KEYS + 1, DATA_NUMBERS);
    struct placed one, many;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(mkdir(scratch_path(s, "one"), 0777), 0);
    assert_int_equal(mkdir(scratch_path(s, "many"), 0777), 0);
    for (size_t i = 0; i < KEYS + 3; i++) { /* the table is full before the last two */
        d.key[i] = i == 0 || i == KEYS + 1 ? KEY : i == KEYS + 2 ? KEY + 1 : (uint64_t)i << 32;
        d.time[i] = i == 0 ? DICT_TEST : i == KEYS + 1 ? LAST : i == KEYS + 2 ? LAST - 1 : 0;
    }
    if (place(drps_io_os(), scratch_path(s, "one"), 1 << 30, &d, ONE, 1, &one, &err) ||
        place(drps_io_os(), scratch_path(s, "many"), LITTLE, &d, ONE, 1, &many, &err))
        fail_msg("%s", err.text);
    assert_true(one.generations == 1 && many.generations == 2);
    assert_true(one.row[KEYS + 1] > one.row[KEYS + 2]);
    assert_memory_equal(one.row, many.row, d.n * sizeof(*one.row));
    free(one.row);
    free(many.row);
    data_free(&d);
}

/* Ids are never more than 32 bits have. */
static void test_dict_ids_end(void **state)
{
    static uint64_t keys[] = {(uint64_t)1 << 40, ((uint64_t)1 << 40) + 1, 5};
    static size_t starts[] = {0, 3};
    const struct drps_samples sample = {.n = 1, .starts = starts, .keys = keys};
    const struct dict_options o = {.memory_bytes = 1 << 29};
    struct scratch *s = *state;
    for (uint32_t left = 1 << 20; left; left = left == 1 << 20 ? 1 << 24 : 0) {
        struct drps_err err = DRPS_ERR_INIT;
        struct dict *d;
        uint32_t ids[3];
        assert_int_equal(drps_dict_open(drps_io_os(), s->dir, &o, &d, &err), 0);
        const int room = d->keys.small_n + 3 < left;
        d->bases[0] = DRPS_NO_ROW - left; /* as after other generations */
        const int rc = drps_dict_add(d, &sample, 0, 3, 0, ids, &err);
        assert_int_equal(rc, room ? 0 : DRPS_E_CONFIG);
        if (room) assert_true(ids[2] == d->bases[0] + 5 && ids[1] == ids[0] + 1 && ids[0] > ids[2]);
        if (!room) assert_non_null(strstr(err.text, "memory limit"));
        drps_dict_close(d);
    }
}

/* Few data have few keys: an array for many would be larger than they are. */
static void test_dict_few_data_have_few_small_keys(void **state)
{
    struct scratch *s = *state;
    struct dict_options o = {.memory_bytes = (uint64_t)1 << 32};
    for (uint64_t bytes = 1; bytes < (uint64_t)1 << 40; bytes <<= 8) {
        struct dict *d;
        o.input_bytes = bytes;
        assert_int_equal(drps_dict_open(drps_io_os(), s->dir, &o, &d, NULL), 0);
        assert_true(d->keys.small_n <= bytes / 4 + (1 << 16) && d->keys.small_n <= 1 << 24);
        assert_true(d->keys.small_n >= 1 << 16);
        drps_dict_close(d);
    }
}

static void test_dict_no_keys(void **state)
{
    struct scratch *s = *state;
    struct random_source r = {0};
    struct data d = data_make(&r, 1, 1, 2, DATA_ANY);
    struct placed p;
    d.n = 0;
    assert_int_equal(place(drps_io_os(), s->dir, 0, &d, 0, 0, &p, NULL), 0);
    assert_int_equal(p.rows[0] + p.rows[1], 0);
    free(p.row);
    data_free(&d);
}

/* More names in one sample than a small table holds, and more text than its share: the table grows.
 */
static void test_dict_one_sample_larger_than_memory(void **state)
{
    enum { N = 40000, LONG = 300 };
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    char *text = malloc((size_t)N * LONG);
    struct drps_name *names = malloc(N * sizeof(*names));
    uint64_t *keys = malloc(N * sizeof(*keys));
    uint32_t *ids = malloc(N * sizeof(*ids));
    size_t starts[2] = {0, N};
    struct drps_samples sample = {.n = 1, .starts = starts, .keys = keys, .names = names};
    assert_true(text && names && keys && ids);
    for (size_t j = 0; j < N; j++) {
        names[j] = (struct drps_name){.text = text + j * LONG, .bytes = LONG - 1};
        (void)snprintf(text + j * LONG, LONG, "%0*zu", LONG - 1, j);
        drps_name_hash(0, names[j].text, names[j].bytes, 0, &keys[j], &names[j].check);
    }
    for (int strings = 0; strings < 2; strings++) {
        const struct dict_options o = {.memory_bytes = strings ? 3 << 20 : 0, .strings = strings};
        struct dict *d;
        assert_int_equal(drps_dict_open(drps_io_os(), s->dir, &o, &d, &err), 0);
        assert_int_equal(drps_dict_add(d, &sample, 0, 10, 0, ids, &err), 0);
        int rc = drps_dict_add(d, &sample, 0, N, 0, ids, &err);
        if (rc != 1) fail_msg("strings %d: %d (%s)", strings, rc, err.text);
        for (uint32_t j = 0; j < N; j++)
            assert_int_equal(ids[j] - ids[0], j);
        assert_true(ids[0] >= 10); /* a new generation */
        drps_dict_close(d);
    }
    free(text);
    free(names);
    free(keys);
    free(ids);
}

/* Two names with one key: within a generation, and found when generations are merged. */
static void test_dict_collision_is_told(void **state)
{
    struct scratch *s = *state;
    for (int apart = 0; apart < 2; apart++) {
        const struct dict_options o = {.memory_bytes = 0, .strings = 1, .hash_seed = 77};
        enum { N = 20000 };
        struct drps_name *names = calloc(N, sizeof(*names));
        uint64_t *keys = malloc(N * sizeof(*keys));
        uint32_t ids[1];
        uint64_t rows[2];
        size_t starts[2] = {0, N};
        struct drps_samples sample = {.n = 1, .starts = starts, .keys = keys, .names = names};
        struct drps_err err = DRPS_ERR_INIT;
        struct dict *d;
        int rc;
        assert_true(names && keys);
        for (size_t j = 0; j < N; j++) {
            keys[j] = j;
            names[j] = (struct drps_name){.text = "innocent", .bytes = 8, .check = 1};
        }
        names[0] = (struct drps_name){.text = "first", .bytes = 5, .check = 1};
        size_t other = apart ? N - 1 : 1;
        keys[other] = keys[0];
        names[other] = (struct drps_name){.text = "second", .bytes = 6, .check = 2};
        assert_int_equal(drps_dict_open(drps_io_os(), s->dir, &o, &d, &err), 0);
        rc = 0;
        for (size_t j = 0; rc >= 0 && j < N; j++)
            rc = drps_dict_add(d, &sample, j, j + 1, 0, ids, &err);
        if (apart) {
            assert_true(rc >= 0);
            rc = drps_dict_place(d, s->dir, 0, rows, &err);
        }
        assert_int_equal(rc, DRPS_E_CONFIG);
        if (!strstr(err.text, "than 77") || !strstr(err.text, apart ? "'first'" : "'second'"))
            fail_msg("apart %d: %s", apart, err.text);
        drps_dict_close(d);
        free(names);
        free(keys);
    }
}

static void test_dict_faults_are_told(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_PWRITE, FAULT_PREAD};
    struct scratch *s = *state;
    struct random_source r = random_begin("dict faults");
    struct data d = data_make(&r, 6000, 6, 30000, DATA_NAMES);
    for (size_t i = 0; i < 3; i++) {
        for (long k = 1;; k++) {
            struct fault_io *f = fault_io_new(drps_io_os());
            struct drps_err err = DRPS_ERR_INIT;
            struct placed p;
            assert_non_null(f);
            fault_io_arm(f, ops[i], k, 0, FAULT_ERROR, -EIO);
            int rc = place(&f->io, s->dir, 0, &d, 0, 1, &p, &err);
            int fired = atomic_load(&f->fired);
            free(p.row);
            fault_io_free(f);
            if (rc != (fired ? -EIO : 0))
                fail_msg("%s %ld: %d (%s)", fault_op_name(ops[i]), k, rc, err.text);
            if (!fired) break;
            assert_true(err.text[0] != '\0');
        }
    }
    data_free(&d);
}

/* ---- An earlier plan ---- */

struct names_pair {
    struct drps_names *later;
    uint64_t n;
};

static int has_same_row(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                        size_t bytes, struct drps_err *err)
{
    struct names_pair *p = ctx;
    uint32_t later;
    (void)field, (void)text, (void)bytes;
    if (drps_names_lookup(p->later, &key, 1, &later, err)) fail_msg("%s", err->text);
    if (later != row) fail_msg("key %016" PRIx64 " had row %u, and has %u", key, row, later);
    p->n++;
    return 0;
}

/* All names of the folder have the same rows in the other one. Returns how many there are. */
static uint64_t names_stay(struct scratch *s, const char *before, const char *after)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_names *names;
    struct names_pair p = {.n = 0};
    assert_int_equal(drps_names_open(drps_io_os(), scratch_path(s, before), &names, &err), 0);
    assert_int_equal(drps_names_open(drps_io_os(), scratch_path(s, after), &p.later, &err), 0);
    if (drps_names_scan(names, has_same_row, &p, &err)) fail_msg("%s", err.text);
    drps_names_close(names);
    drps_names_close(p.later);
    return p.n;
}

static void make_folders(struct scratch *s, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(mkdir(scratch_path(s, names[i]), 0777) && errno != EEXIST, 0);
}

/* Names of the earlier plan keep their rows, new ones follow behind, whatever the memory. */
static void test_dict_earlier_rows_stay(void **state)
{
    static const char *const folders[] = {"before", "one", "many"};
    struct scratch *s = *state;
    struct random_source r = random_begin("dict earlier");
    make_folders(s, folders, 3);
    for (enum data_keys way = 0; way < DATA_WAYS; way++) {
        struct data first = data_make(&r, 4000, 6, 30000, way);
        struct data second = data_make(&r, 9000, 6, way == DATA_NUMBERS ? 120000 : 60000, way);
        struct drps_err err = DRPS_ERR_INIT;
        struct placed before, one, many;
        char dir[SCRATCH_PATH_BYTES];
        (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "before"));
        if (place(drps_io_os(), dir, 1 << 28, &first, ONE, 1, &before, &err))
            fail_msg("%s", err.text);
        const struct earlier base = {.dir = dir, .rows = 1 + before.rows[0]};
        const uint32_t behind = (uint32_t)base.rows;
        if (place_from(&base, drps_io_os(), scratch_path(s, "one"), 1 << 30, &second, ONE, behind,
                       &one, &err) ||
            place_from(&base, drps_io_os(), scratch_path(s, "many"), LITTLE, &second, ONE, behind,
                       &many, &err))
            fail_msg("%s", err.text);
        assert_true(one.generations == 1 && many.generations > 3);
        assert_int_equal(names_stay(s, "before", "one"), before.rows[0]);
        assert_int_equal(names_stay(s, "one", "many"), before.rows[0] + one.rows[0]);
        assert_true(one.rows[0] > 0 && one.rows[0] == many.rows[0]);
        size_t old_ones = 0;
        for (size_t k = 0; k < second.n * second.per_sample; k++) {
            assert_int_equal(one.row[k], many.row[k]);
            old_ones += one.row[k] < behind;
            assert_true(one.row[k] == DRPS_NO_ROW || one.row[k] < behind + one.rows[0]);
        }
        assert_true(old_ones > 0);
        free(before.row);
        free(one.row);
        free(many.row);
        data_free(&first);
        data_free(&second);
    }
}

/* A name that has the key of another one of the earlier plan, found in either way. */
static void test_dict_collision_with_an_earlier_name_is_told(void **state)
{
    static const char *const folders[] = {"before", "after"};
    struct scratch *s = *state;
    struct random_source r = random_begin("dict earlier collision");
    struct data d = data_make(&r, 3000, 6, 30000, DATA_NAMES);
    struct drps_err err = DRPS_ERR_INIT;
    struct placed before;
    char dir[SCRATCH_PATH_BYTES];
    make_folders(s, folders, 2);
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "before"));
    if (place(drps_io_os(), dir, 1 << 28, &d, ONE, 1, &before, &err)) fail_msg("%s", err.text);
    const struct earlier base = {.dir = dir, .rows = 1 + before.rows[0]};
    size_t has_row = 0; /* an entry whose feature some training sample has */
    while (before.row[has_row] == DRPS_NO_ROW)
        has_row++;
    for (size_t k = 0; k < d.n * d.per_sample; k++)
        if (d.key[k] == d.key[has_row]) d.names[k].text = "another", d.names[k].bytes = 7;
    for (int many = 0; many < 2; many++) {
        struct placed after;
        err = (struct drps_err)DRPS_ERR_INIT;
        assert_int_equal(place_from(&base, drps_io_os(), scratch_path(s, "after"),
                                    many ? 0 : 1 << 28, &d, ONE, (uint32_t)base.rows, &after, &err),
                         DRPS_E_CONFIG);
        if (!strstr(err.text, "'another'") || !strstr(err.text, "hash seed than 5"))
            fail_msg("%s", err.text);
        free(after.row);
    }
    free(before.row);
    data_free(&d);
}

/* Rows that the earlier plan cannot have, and faults of its file. */
static void test_dict_damaged_earlier_names_are_refused(void **state)
{
    static const char *const folders[] = {"before", "after"};
    struct scratch *s = *state;
    struct random_source r = random_begin("dict earlier damage");
    struct data d = data_make(&r, 300, 6, 3000, DATA_ANY);
    struct drps_err err = DRPS_ERR_INIT;
    struct placed before, after;
    char dir[SCRATCH_PATH_BYTES];
    make_folders(s, folders, 2);
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "before"));
    if (place(drps_io_os(), dir, 1 << 28, &d, ONE, 1, &before, &err)) fail_msg("%s", err.text);
    const struct earlier fewer = {.dir = dir, .rows = before.rows[0]}; /* one less than there are */
    assert_int_equal(place_from(&fewer, drps_io_os(), scratch_path(s, "after"), 1 << 28, &d, ONE,
                                (uint32_t)fewer.rows, &after, &err),
                     DRPS_E_CORRUPT);
    free(after.row);
    d.strings = 1; /* the names are numbers */
    const struct earlier base = {.dir = dir, .rows = 1 + before.rows[0]};
    err = (struct drps_err)DRPS_ERR_INIT;
    assert_int_equal(place_from(&base, drps_io_os(), scratch_path(s, "after"), 1 << 28, &d, ONE,
                                (uint32_t)base.rows, &after, &err),
                     DRPS_E_CORRUPT);
    if (!strstr(err.text, "another kind")) fail_msg("%s", err.text);
    free(after.row);
    free(before.row);
    data_free(&d);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_dict_rows_follow_counts_and_patterns),
        SCRATCH_TEST(test_dict_generations_do_not_show),
        SCRATCH_TEST(test_dict_small_keys_need_no_generation),
        SCRATCH_TEST(test_dict_names_file_lists_rows_and_strings),
        SCRATCH_TEST(test_dict_tests_say_nothing_of_times),
        SCRATCH_TEST(test_dict_ids_end),
        SCRATCH_TEST(test_dict_few_data_have_few_small_keys),
        SCRATCH_TEST(test_dict_no_keys),
        SCRATCH_TEST(test_dict_one_sample_larger_than_memory),
        SCRATCH_TEST(test_dict_collision_is_told),
        SCRATCH_TEST(test_dict_faults_are_told),
        SCRATCH_TEST(test_dict_earlier_rows_stay),
        SCRATCH_TEST(test_dict_collision_with_an_earlier_name_is_told),
        SCRATCH_TEST(test_dict_damaged_earlier_names_are_refused),
    };
    return cmocka_run_group_tests_name("dict", tests, NULL, NULL);
}
