/* Cutting samples into batches, against doing it the plain way. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "index/batches/batch_writer.h"
#include "index/batches/drps_batcher.h"
#include "index/plan/codec/drps_dense.h"
#include "index/plan/drps_batch.h"
#include "support/batch_body.h"
#include "support/fault_io.h"
#include "support/scratch.h"

struct shape {
    const char *name;
    size_t samples, batch_size;
    uint32_t least, most, rows; /* features of a sample, placed ids */
    uint32_t common;            /* rows that all batches have */
    int values;                 /* 0 none, 1 some samples, 2 all */
    int fields;                 /* 0 none, 1 each id has one, 2 any */
};

/* Some batches have weights, from some sample on that is not their first. */
static float weight_of(size_t sample)
{
    return sample % 16 == 5 ? 0.5f + (float)sample : 1;
}

struct samples {
    size_t *starts;
    uint32_t *ids;
    float *values;
    float *labels;
    int *valued;
    uint16_t *fields;
};

enum { FIELDS = 300 };

static struct samples draw(struct random_source *r, const struct shape *shape)
{
    struct samples s = {calloc(shape->samples + 1, sizeof(size_t)), NULL, NULL, NULL, NULL, NULL};
    size_t room = shape->samples * shape->most + 1;
    s.ids = malloc(room * sizeof(*s.ids));
    s.values = malloc(room * sizeof(*s.values));
    s.fields = malloc(room * sizeof(*s.fields));
    s.labels = malloc(shape->samples * sizeof(*s.labels) + 1);
    s.valued = malloc(shape->samples * sizeof(*s.valued) + 1);
    assert_true(s.starts && s.ids && s.values && s.labels && s.valued && s.fields);
    for (size_t i = 0; i < shape->samples; i++) {
        size_t n = shape->least + (size_t)random_below(r, shape->most - shape->least + 1);
        uint32_t at = shape->common + (uint32_t)random_below(r, shape->rows);
        s.labels[i] = (float)i;
        s.valued[i] = shape->values == 2 || (shape->values == 1 && random_below(r, 2));
        s.starts[i + 1] = s.starts[i] + n;
        for (size_t j = 0; j < n; j++) { /* distinct, not sorted */
            s.ids[s.starts[i] + j] = at;
            s.fields[s.starts[i] + j] =
                (uint16_t)(shape->fields == 2 ? random_below(r, FIELDS) : at % FIELDS);
            s.values[s.starts[i] + j] = s.valued[i] ? (float)random_below(r, 100) : 1.0f;
            at += 1 + (uint32_t)(j * 7);
        }
    }
    return s;
}

static void samples_free(struct samples *s)
{
    free(s->starts);
    free(s->ids);
    free(s->values);
    free(s->labels);
    free(s->valued);
    free(s->fields);
}

static struct drps_recfile *open_file(const char *path, uint32_t kind)
{
    struct drps_recfile *f;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_recfile_open(drps_io_os(), path, kind, &f, &err)) fail_msg("%s", err.text);
    return f;
}

static void *record_of(struct drps_recfile *f, uint64_t i)
{
    void *data = malloc((size_t)drps_recfile_run_bytes(f, i, 1));
    assert_non_null(data);
    assert_int_equal(drps_recfile_read(f, i, 1, data, NULL), 0);
    return data;
}

/* Batch k holds samples [first, last): rows increase, entries lead back to the ids. */
static void check_batch(const struct shape *shape, const struct samples *s, size_t first,
                        size_t last, struct drps_recfile *data, struct drps_recfile *rows,
                        uint64_t k, struct drps_plan_info *most)
{
    struct drps_batch b;
    struct drps_err err = DRPS_ERR_INIT;
    void *body = record_of(data, k);
    void *list = record_of(rows, k);
    uint32_t n = drps_list_count(list);
    uint32_t *row = malloc((n + 1) * sizeof(*row));
    unsigned char *used = calloc(n + 1, 1);
    uint32_t before = 0;
    int uniform = 1;
    int valued = 0, weighted = 0;

    assert_true(row && used);
    size_t bytes = (size_t)drps_recfile_bytes(data, k);
    body = body_unpack(body, &bytes);
    if (drps_batch_decode(body, bytes, &b, &err)) fail_msg("%s: %s", shape->name, err.text);
    assert_int_equal(drps_list_decode(list, (size_t)drps_recfile_bytes(rows, k), row, NULL, NULL),
                     0);
    assert_int_equal(b.samples, last - first);
    assert_int_equal(b.rows, n);
    assert_int_equal(b.nnz, s->starts[last] - s->starts[first]);
    assert_int_equal(b.local32 != NULL, n > 65536);
    assert_true(n >= shape->common);
    for (uint32_t i = 0; i < shape->common; i++) {
        assert_int_equal(row[i], i);
        used[i] = 1;
    }
    for (size_t i = first; i < last; i++) {
        size_t at = drps_batch_start(&b, i - first);
        assert_true(b.labels[i - first] == s->labels[i]);
        assert_int_equal(drps_batch_start(&b, i - first + 1) - at, s->starts[i + 1] - s->starts[i]);
        uniform &= s->starts[i + 1] - s->starts[i] == s->starts[first + 1] - s->starts[first];
        valued |= s->valued[i];
        weighted |= weight_of(i) != 1;
        if (b.weights) assert_true(b.weights[i - first] == weight_of(i));
        for (size_t j = 0; j < s->starts[i + 1] - s->starts[i]; j++) {
            uint32_t local = b.local32 ? b.local32[at + j] : b.local16[at + j];
            size_t of = s->starts[i]; /* the sample's entry with this row */
            while (of < s->starts[i + 1] && s->ids[of] != row[local])
                of++;
            assert_true(of < s->starts[i + 1]);
            if (j) assert_true(row[local] > before); /* distinct, so all are found */
            before = row[local];
            if (b.values) assert_true(b.values[at + j] == s->values[of]);
            if (b.fields) assert_int_equal(b.fields[at + j], s->fields[of]);
            used[local] = 1;
        }
    }
    assert_int_equal(b.starts == NULL, uniform);
    assert_int_equal(b.values != NULL, valued);
    assert_int_equal(b.weights != NULL, weighted);
    assert_int_equal(b.field_count, shape->fields ? FIELDS : 0);
    assert_int_equal(b.fields != NULL, shape->fields != 0);
    for (uint32_t i = 0; i < n; i++)
        if (!used[i])
            fail_msg("%s: batch %" PRIu64 " lists row %u for nothing", shape->name, k, row[i]);
    if (b.samples > most->max_batch_samples) most->max_batch_samples = b.samples;
    if (b.rows > most->max_batch_rows) most->max_batch_rows = b.rows;
    if (b.nnz > most->max_batch_nnz) most->max_batch_nnz = b.nnz;
    assert_true(drps_recfile_bytes(data, k) <= bytes);
    if (bytes > most->max_body_bytes) most->max_body_bytes = bytes;
    free(used);
    free(row);
    free(list);
    free(body);
}

static const struct shape shapes[] = {
    {.name = "batches for threads, and smaller ones between them",
     .samples = 3000,
     .batch_size = 100,
     .least = 1,
     .most = 82,
     .rows = 5000,
     .common = 1,
     .values = 1},
    {.name = "one sample",
     .samples = 1,
     .batch_size = 10,
     .least = 3,
     .most = 3,
     .rows = 100,
     .common = 1},
    {.name = "whole batches",
     .samples = 100,
     .batch_size = 10,
     .least = 1,
     .most = 20,
     .rows = 500,
     .common = 1,
     .values = 1},
    {.name = "a rest",
     .samples = 105,
     .batch_size = 10,
     .least = 1,
     .most = 20,
     .rows = 500,
     .values = 1},
    {.name = "uniform, all values",
     .samples = 64,
     .batch_size = 16,
     .least = 8,
     .most = 8,
     .rows = 1000,
     .common = 1,
     .values = 2},
    {.name = "uniform, no values",
     .samples = 64,
     .batch_size = 16,
     .least = 8,
     .most = 8,
     .rows = 1000},
    {.name = "samples without features",
     .samples = 50,
     .batch_size = 7,
     .most = 2,
     .rows = 50,
     .common = 1,
     .values = 1},
    {.name = "no features at all, intercept",
     .samples = 20,
     .batch_size = 7,
     .rows = 50,
     .common = 1},
    {.name = "no features at all, no intercept", .samples = 20, .batch_size = 7, .rows = 50},
    {.name = "many rows, narrow",
     .samples = 300,
     .batch_size = 300,
     .least = 150,
     .most = 200,
     .rows = 60000,
     .common = 1},
    {.name = "many rows, wide",
     .samples = 3000,
     .batch_size = 1500,
     .least = 100,
     .most = 100,
     .rows = 4000000,
     .common = 1,
     .values = 1},
    {.name = "wide, then narrow",
     .samples = 2600,
     .batch_size = 2500,
     .least = 100,
     .most = 100,
     .rows = 4000000},
    {.name = "handed to the thread, all",
     .samples = 1000,
     .batch_size = 50,
     .least = 100,
     .most = 120,
     .rows = 4000,
     .common = 1,
     .values = 1},
    {.name = "fields of rows",
     .samples = 400,
     .batch_size = 50,
     .least = 90,
     .most = 120,
     .rows = 4000,
     .common = 1,
     .fields = 1},
    {.name = "fields and values",
     .samples = 105,
     .batch_size = 10,
     .least = 1,
     .most = 20,
     .rows = 500,
     .values = 1,
     .fields = 2},
    {.name = "fields, wide",
     .samples = 1500,
     .batch_size = 1500,
     .least = 100,
     .most = 100,
     .rows = 4000000,
     .common = 1,
     .fields = 2},
    {.name = "five rows that all have",
     .samples = 300,
     .batch_size = 20,
     .least = 1,
     .most = 40,
     .rows = 500,
     .common = 5,
     .values = 1},
    {.name = "five rows that all have, no features",
     .samples = 20,
     .batch_size = 7,
     .most = 1,
     .rows = 50,
     .common = 5},
    {.name = "five rows that all have, wide",
     .samples = 1500,
     .batch_size = 1500,
     .least = 100,
     .most = 100,
     .rows = 4000000,
     .common = 5},
    {.name = "more rows that all have than entries, fields",
     .samples = 12,
     .batch_size = 4,
     .least = 1,
     .most = 2,
     .rows = 50,
     .common = 60000,
     .fields = 2},
    {.name = "more rows that all have than entries, wide, values",
     .samples = 12,
     .batch_size = 4,
     .least = 1,
     .most = 2,
     .rows = 50,
     .common = 70000,
     .values = 2,
     .fields = 1},
    {.name = "batches of one",
     .samples = 40,
     .batch_size = 1,
     .most = 5,
     .rows = 100,
     .common = 1,
     .values = 1},
};

enum { IDS = 5000000 };

/* Every shape, whole: batches hold their samples. */
static void check_shapes(struct scratch *s, int mapped, unsigned threads)
{
    struct random_source r = random_begin("batcher");
    uint32_t *map = malloc(IDS * sizeof(*map));
    assert_non_null(map);
    for (uint32_t id = 0; id < IDS; id++)
        map[id] = id + 1 < IDS ? IDS - id : 0; /* distinct; 0 is an intercept's */
    for (size_t c = 0; c < sizeof(shapes) / sizeof(shapes[0]); c++) {
        const struct shape *shape = &shapes[c];
        struct samples in = draw(&r, shape);
        const struct batcher_options options = {.batch_size = shape->batch_size,
                                                .common = shape->common,
                                                .map = mapped ? map : NULL,
                                                .threads = threads,
                                                .field_count = shape->fields ? FIELDS : 0};
        struct drps_recwriter *data, *rows;
        struct batcher *b;
        struct drps_plan_info info = {0};
        struct drps_plan_info most = {0};
        struct drps_err err = DRPS_ERR_INIT;
        const char *data_path = scratch_path(s, "data.rec");
        const char *rows_path = scratch_path(s, "rows.rec");
        assert_int_equal(drps_recwriter_open(drps_io_os(), data_path, DRPS_KIND_DATA, &data, &err),
                         0);
        assert_int_equal(drps_recwriter_open(drps_io_os(), rows_path, DRPS_KIND_ROWS, &rows, &err),
                         0);
        assert_int_equal(drps_batcher_open(data, rows, &options, &b, &err), 0);
        for (size_t i = 0; i < shape->samples; i++) {
            const struct spool_sample sample = {
                .label = in.labels[i],
                .weight = weight_of(i),
                .n = (uint32_t)(in.starts[i + 1] - in.starts[i]),
                .ids = in.ids + in.starts[i],
                .values = in.valued[i] ? in.values + in.starts[i] : NULL,
                .fields = shape->fields ? in.fields + in.starts[i] : NULL};
            assert_int_equal(drps_batcher_add(b, &sample, &err), 0);
        }
        assert_int_equal(drps_batcher_flush(b, &err), 0);
        assert_int_equal(drps_batcher_flush(b, &err), 0); /* nothing begun */
        for (size_t j = 0; mapped && j < in.starts[shape->samples]; j++)
            in.ids[j] = map[in.ids[j]]; /* what is expected */
        drps_batcher_maxima(b, &info);
        drps_batcher_close(b);
        assert_int_equal(drps_recwriter_finish(data, &err), 0);
        assert_int_equal(drps_recwriter_finish(rows, &err), 0);
        drps_recwriter_close(data);
        drps_recwriter_close(rows);

        struct drps_recfile *bodies = open_file(data_path, DRPS_KIND_DATA);
        struct drps_recfile *lists = open_file(rows_path, DRPS_KIND_ROWS);
        uint64_t want = (shape->samples + shape->batch_size - 1) / shape->batch_size;
        assert_int_equal(drps_recfile_count(bodies), want);
        assert_int_equal(drps_recfile_count(lists), want);
        for (uint64_t k = 0; k < want; k++) {
            size_t first = (size_t)k * shape->batch_size;
            size_t last = first + shape->batch_size < shape->samples ? first + shape->batch_size
                                                                     : shape->samples;
            check_batch(shape, &in, first, last, bodies, lists, k, &most);
        }
        assert_int_equal(info.max_batch_samples, most.max_batch_samples);
        assert_int_equal(info.max_batch_rows, most.max_batch_rows);
        assert_int_equal(info.max_batch_nnz, most.max_batch_nnz);
        assert_int_equal(info.max_body_bytes, most.max_body_bytes);
        drps_recfile_close(bodies);
        drps_recfile_close(lists);
        samples_free(&in);
    }
    free(map);
    drps_batcher_close(NULL);
}

static void test_batcher_takes_rows(void **state)
{
    check_shapes(*state, 0, 0);
}

static void test_batcher_maps_ids(void **state)
{
    check_shapes(*state, 1, 0);
}

/* One thread has all large batches in turn; two write them in the order in which they were handed
 * over, the caller small ones between these. */
static void test_batcher_writes_in_threads(void **state)
{
    check_shapes(*state, 0, 1);
    check_shapes(*state, 0, 2);
}

/* ---- Numbers by place ---- */

enum { NUMBERS = 1000 };

static float number_of(size_t sample, size_t k)
{
    return (sample + k) % 3 ? 0 : (float)((sample * 7 + k) % 400) / 8;
}

static int add_numbers(struct batcher *b, size_t sample, uint32_t each, struct drps_err *err)
{
    static float numbers[NUMBERS];
    static uint8_t room[NUMBERS];
    unsigned char *packed = malloc((size_t)drps_dense_bound(each));
    uint32_t id = 5;
    assert_non_null(packed);
    for (size_t k = 0; k < each; k++)
        numbers[k] = number_of(sample, k);
    const struct spool_sample s = {
        .label = 1,
        .weight = 1,
        .n = 1,
        .ids = &id,
        .numbers = packed,
        .numbers_bytes = (uint32_t)drps_dense_pack_floats(numbers, each, room, packed)};
    const int rc = drps_batcher_add(b, &s, err);
    free(packed);
    return rc;
}

struct numbered {
    struct drps_recwriter *data, *rows;
    struct batcher *b;
    const char *data_path;
};

static void numbered_begin(struct numbered *t, struct scratch *s, const struct batcher_options *o)
{
    struct drps_err err = DRPS_ERR_INIT;
    t->data_path = scratch_path(s, "data.rec");
    const char *rows = scratch_path(s, "rows.rec");
    assert_int_equal(
        drps_recwriter_open(drps_io_os(), t->data_path, DRPS_KIND_DATA, &t->data, &err), 0);
    assert_int_equal(drps_recwriter_open(drps_io_os(), rows, DRPS_KIND_ROWS, &t->rows, &err), 0);
    assert_int_equal(drps_batcher_open(t->data, t->rows, o, &t->b, &err), 0);
}

static void numbered_end(struct numbered *t)
{
    drps_batcher_close(t->b);
    drps_recwriter_close(t->data);
    drps_recwriter_close(t->rows);
}

/* Batches have the numbers of their samples, whichever thread writes them, and no larger body than
 * is told. Only the second batch has few different ones. */
static void test_batcher_numbers_by_place(void **state)
{
    enum { SAMPLES = 7, BATCH = 3 };
    for (unsigned threads = 0; threads < 3; threads++)
        for (uint32_t each = 1; each <= NUMBERS; each += 333) {
            const struct batcher_options o = {
                .batch_size = BATCH, .common = 2, .threads = threads, .numbers = each};
            struct drps_plan_info info = {0};
            struct drps_err err = DRPS_ERR_INIT;
            struct numbered t;
            uint64_t largest = 0;
            numbered_begin(&t, *state, &o);
            for (size_t i = 0; i < SAMPLES; i++)
                assert_int_equal(add_numbers(t.b, i, each, &err), 0);
            assert_int_equal(add_numbers(t.b, 0, each == 1 ? 2 : each - 1, &err), DRPS_E_CORRUPT);
            assert_int_equal(drps_batcher_flush(t.b, &err), 0);
            drps_batcher_maxima(t.b, &info);
            assert_int_equal(drps_recwriter_finish(t.data, &err), 0);
            assert_int_equal(drps_recwriter_finish(t.rows, &err), 0);
            numbered_end(&t);
            struct drps_recfile *bodies = open_file(t.data_path, DRPS_KIND_DATA);
            for (size_t k = 0, first = 0; first < SAMPLES; k++, first += BATCH) {
                void *body = record_of(bodies, k), *room = malloc((size_t)info.max_body_bytes);
                size_t bytes;
                struct drps_batch b;
                assert_non_null(room);
                assert_int_equal(drps_batch_unpack(body, drps_recfile_bytes(bodies, k), room,
                                                   (size_t)info.max_body_bytes, &bytes, &err),
                                 0);
                assert_int_equal(drps_batch_decode_unpacked(room, bytes, &b, &err), 0);
                if (bytes > largest) largest = bytes;
                assert_int_equal(b.numbers.each, each);
                assert_int_equal(b.nnz, b.samples);
                for (size_t i = 0; i < b.samples * each; i++)
                    assert_true(drps_dense_number(&b.numbers, i) ==
                                number_of(first + i / each, i % each));
                free(body);
                free(room);
            }
            assert_int_equal(info.max_body_bytes, largest);
            drps_recfile_close(bodies);
        }
}

/* A batch whose numbers do not fit its half of the memory is refused, with how many samples fit. */
static void test_batcher_numbers_take_memory(void **state)
{
    const struct batcher_options o = {
        .batch_size = 100, .common = 2, .numbers = NUMBERS, .memory_bytes = 2 * 3 * 9500};
    struct drps_err err = DRPS_ERR_INIT;
    struct numbered t;
    int rc = 0;
    size_t n = 0;
    numbered_begin(&t, *state, &o);
    for (; n < 10 && rc == 0; n++)
        rc = add_numbers(t.b, n, NUMBERS, &err);
    assert_int_equal(rc, DRPS_E_MEMORY_BUDGET);
    assert_int_equal(n, 4);
    assert_non_null(strstr(err.text, "a batch of 4 samples of 1000 numbers does not fit"));
    assert_non_null(strstr(err.text, "use batches of 3 samples or less"));
    numbered_end(&t);
}

/* A batcher that writes to a disk that fails, and a sample of its batches. */
struct failing {
    struct fault_io *f;
    struct drps_recwriter *data, *rows;
    struct batcher *b;
    uint32_t ids[100];
    float values[100];
    struct spool_sample sample;
};

static void failing_begin(struct failing *t, struct scratch *s, const struct batcher_options *o)
{
    enum { EACH = sizeof(t->ids) / sizeof(t->ids[0]) };
    struct drps_err err = DRPS_ERR_INIT;
    *t = (struct failing){.f = fault_io_new(drps_io_os()), .sample = {.label = 1, .weight = 1}};
    for (uint32_t i = 0; i < EACH; i++) {
        t->ids[i] = i;
        t->values[i] = 0.1f + (float)i;
    }
    t->sample.n = EACH;
    t->sample.ids = t->ids;
    t->sample.values = t->values;
    assert_int_equal(
        drps_recwriter_open(&t->f->io, scratch_path(s, "data.rec"), DRPS_KIND_DATA, &t->data, &err),
        0);
    assert_int_equal(
        drps_recwriter_open(&t->f->io, scratch_path(s, "rows.rec"), DRPS_KIND_ROWS, &t->rows, &err),
        0);
    assert_int_equal(drps_batcher_open(t->data, t->rows, o, &t->b, &err), 0);
}

static void failing_end(struct failing *t)
{
    drps_batcher_close(t->b);
    drps_recwriter_close(t->data);
    drps_recwriter_close(t->rows);
    fault_io_free(t->f);
}

/* A batch that fails in a thread is the last: those that were handed over after it, and what the
 * caller writes, are not written, even though the disk takes them. */
static void test_batcher_stays_failed_in_threads(void **state)
{
    enum { SAMPLES = 400, BATCHES = 40 };
    const struct batcher_options options = {.batch_size = SAMPLES, .threads = 2};
    struct drps_err err = DRPS_ERR_INIT;
    struct failing t;
    int rc = 0;
    failing_begin(&t, *state, &options);
    fault_io_arm(t.f, FAULT_PWRITE, 3, 0, FAULT_ERROR, -EIO);
    for (size_t i = 0; i < BATCHES * SAMPLES && rc == 0; i++)
        rc = drps_batcher_add(t.b, &t.sample, &err);
    if (rc == 0) rc = drps_batcher_flush(t.b, &err); /* if all were handed over before it failed */
    assert_int_equal(rc, -EIO);
    assert_int_equal(t.f->fired, 1);
    const uint64_t written = drps_recwriter_count(t.data);
    assert_in_range(written, 0, BATCHES - 1);
    assert_int_equal(drps_batcher_flush(t.b, &err), -EIO);
    assert_int_equal(drps_batcher_end(t.b, &err), -EIO);
    assert_int_equal(drps_recwriter_count(t.data), written);
    failing_end(&t);
}

/* A batch too large for threads fails as it is written: what comes after it is not, even though
 * the disk takes it again. */
static void test_batcher_stays_failed(void **state)
{
    enum { SAMPLES = 4000, MEMORY = 32 << 20 };
    const struct batcher_options options = {.batch_size = SAMPLES, .memory_bytes = MEMORY};
    struct drps_err err = DRPS_ERR_INIT, again = DRPS_ERR_INIT;
    struct failing t;
    failing_begin(&t, *state, &options);
    for (size_t i = 0; i + 1 < SAMPLES; i++)
        assert_int_equal(drps_batcher_add(t.b, &t.sample, &err), 0);
    fault_io_arm(t.f, FAULT_PWRITE, 1, 0, FAULT_ERROR, -EIO);
    assert_int_equal(drps_batcher_add(t.b, &t.sample, &err), -EIO);
    assert_int_equal(t.f->fired, 1);
    assert_int_equal(drps_batcher_add(t.b, &t.sample, &again), 0);
    assert_int_equal(drps_batcher_flush(t.b, &again), -EIO);
    assert_string_equal(again.text, err.text);
    failing_end(&t);
}

static size_t bytes_in_use(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* A batch as large as may be, then small ones: its arrays are not kept for them. */
static void test_batcher_gives_back_a_large_batch(void **state)
{
    enum { EACH = 100, SAMPLES = 1200, IDS_OF_LARGE = SAMPLES * EACH, MEMORY = 8 << 20 };
    const struct batcher_options options = {.batch_size = SAMPLES, .memory_bytes = MEMORY};
    struct scratch *s = *state;
    struct drps_recwriter *data, *rows;
    struct batcher *b;
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t ids[EACH];
    struct spool_sample sample = {.label = 1, .weight = 1, .n = EACH, .ids = ids};
    size_t before, gathered = 0;

    assert_int_equal(
        drps_recwriter_open(drps_io_os(), scratch_path(s, "data.rec"), DRPS_KIND_DATA, &data, &err),
        0);
    assert_int_equal(
        drps_recwriter_open(drps_io_os(), scratch_path(s, "rows.rec"), DRPS_KIND_ROWS, &rows, &err),
        0);
    assert_int_equal(drps_batcher_open(data, rows, &options, &b, &err), 0);
    before = bytes_in_use();
    for (uint32_t i = 0; i < SAMPLES; i++) {
        if (i + 1 == SAMPLES) gathered = bytes_in_use();
        for (uint32_t j = 0; j < EACH; j++)
            ids[j] = i * EACH + j;
        if (drps_batcher_add(b, &sample, &err) < 0) fail_msg("%s", err.text);
    }
    if (gathered > before) /* where it is counted: not under the sanitizers' allocators */
        assert_in_range(bytes_in_use(), 0, before + (gathered - before) / 16);
    sample.n = 1;
    for (uint32_t i = 0; i < 2 * SAMPLES; i++)
        if (drps_batcher_add(b, &sample, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_batcher_flush(b, &err), 0);
    drps_batcher_close(b);
    assert_int_equal(drps_recwriter_finish(data, &err), 0);
    assert_int_equal(drps_recwriter_finish(rows, &err), 0);
    drps_recwriter_close(data);
    drps_recwriter_close(rows);
    struct drps_recfile *lists = open_file(scratch_path(s, "rows.rec"), DRPS_KIND_ROWS);
    assert_int_equal(drps_recfile_count(lists), 3);
    for (uint64_t k = 0; k < 3; k++) {
        void *list = record_of(lists, k);
        assert_int_equal(drps_list_count(list), k ? 1 : IDS_OF_LARGE);
        free(list);
    }
    drps_recfile_close(lists);
}

/* Whether the caller gets arrays back when it hands over so many batches, one after the other. */
static void check_arrays(struct scratch *s, int large)
{
    struct drps_recwriter *data, *rows;
    struct batch_writer *w;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(
        drps_recwriter_open(drps_io_os(), scratch_path(s, "data.rec"), DRPS_KIND_DATA, &data, &err),
        0);
    assert_int_equal(
        drps_recwriter_open(drps_io_os(), scratch_path(s, "rows.rec"), DRPS_KIND_ROWS, &rows, &err),
        0);
    assert_int_equal(drps_batch_writer_open(data, rows, 0, (struct encoder_ways){0}, 1, &w, &err),
                     0);
    for (size_t i = 0; i <= BATCH_WRITER_HANDED_MOST; i++) {
        struct gathered g = {.n = 1, .nnz = 1};
        g.labels = calloc(1, sizeof(*g.labels));
        g.starts = calloc(2, sizeof(*g.starts));
        g.rows = calloc(1, sizeof(*g.rows));
        assert_true(g.labels && g.starts && g.rows);
        g.starts[1] = 1;
        assert_int_equal(drps_batch_writer_hand(w, &g, 1, large, &err), 0);
        assert_int_equal(g.rows != NULL, !large && i == BATCH_WRITER_HANDED_MOST);
        drps_gathered_free(&g);
    }
    assert_int_equal(drps_batch_writer_wait(w, &err), 0);
    assert_int_equal(drps_recwriter_count(data), BATCH_WRITER_HANDED_MOST + 1);
    drps_batch_writer_close(w);
    drps_recwriter_close(data);
    drps_recwriter_close(rows);
}

/* Arrays of batches that are written are kept for those that follow, unless memory is short. */
static void test_batch_writer_keeps_arrays_of_small_batches(void **state)
{
    check_arrays(*state, 0);
    check_arrays(*state, 1);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_batcher_takes_rows),
        SCRATCH_TEST(test_batcher_maps_ids),
        SCRATCH_TEST(test_batcher_writes_in_threads),
        SCRATCH_TEST(test_batcher_numbers_by_place),
        SCRATCH_TEST(test_batcher_numbers_take_memory),
        SCRATCH_TEST(test_batcher_stays_failed),
        SCRATCH_TEST(test_batcher_stays_failed_in_threads),
        SCRATCH_TEST(test_batcher_gives_back_a_large_batch),
        SCRATCH_TEST(test_batch_writer_keeps_arrays_of_small_batches),
    };
    return cmocka_run_group_tests_name("batcher", tests, NULL, NULL);
}
