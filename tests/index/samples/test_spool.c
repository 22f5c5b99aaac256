/* The spool: one order whatever the memory, ids rewritten by generation, values kept. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "index/plan/codec/drps_dense.h"
#include "index/samples/drps_spool.h"
#include "support/fault_io.h"
#include "support/scratch.h"

/* Sample i: all of it follows from i and the seed. The label is i, so that order can be checked. */
struct shape {
    uint64_t seed;
    uint32_t n;          /* samples */
    unsigned order_bits; /* that differ: few make many equal orders */
    uint32_t most;       /* features */
};

static uint64_t order_of(const struct shape *shape, uint32_t i)
{
    uint64_t order = drps_rng_at(shape->seed, i);
    return shape->order_bits == 64 ? order : order >> (64 - shape->order_bits) << 3;
}

static uint32_t features_of(const struct shape *shape, uint32_t i)
{
    return (uint32_t)(drps_rng_at(shape->seed + 1, i) % (shape->most + 1));
}

static uint32_t id_of(uint32_t i, uint32_t j)
{
    return i * 16 + j;
}

static float value_of(uint32_t i, uint32_t j)
{
    return (float)(i % 100) + (float)j / 8;
}

static int has_values(uint32_t i)
{
    return i % 3 == 0;
}

static float weight_of(uint32_t i)
{
    return i % 4 == 1 ? 0.25f * (float)i : 1;
}

static uint32_t owner_of(uint32_t i)
{
    return i % 7 < 4 ? i % 1024 : 0;
}

static int has_fields(uint32_t i)
{
    return i % 5 < 3;
}

static uint16_t field_of(uint32_t i, uint32_t j)
{
    return (uint16_t)(i * 7 + j);
}

/* A sample of one feature has numbers by place now and then, some of them many. */
static uint32_t numbers_of(uint32_t i, uint32_t n)
{
    return n != 1 ? 0 : i % 3 ? 0 : i % 41 ? 1 + i % 50 : 100000;
}

static float number_of(uint32_t i, uint32_t k)
{
    return (i + k) % 4 ? 0 : (float)(i + k);
}

static unsigned char *pack(uint32_t i, uint32_t each, size_t *bytes_out)
{
    float *numbers = malloc(each * sizeof(*numbers));
    unsigned char *packed = malloc((size_t)drps_dense_bound(each));
    uint8_t *room = malloc(each);
    assert_true(numbers && packed && room);
    for (uint32_t k = 0; k < each; k++)
        numbers[k] = number_of(i, k);
    *bytes_out = drps_dense_pack_floats(numbers, each, room, packed);
    free(numbers);
    free(room);
    return packed;
}

static void check_numbers(const struct spool_sample *sample, uint32_t i, uint32_t each)
{
    float *numbers = malloc((each + 1) * sizeof(*numbers));
    assert_non_null(numbers);
    assert_int_equal(sample->numbers != NULL, each > 0);
    assert_int_equal(drps_spool_numbers(sample, each ? each : 1, numbers), each > 0);
    if (each) assert_int_equal(drps_spool_numbers(sample, each + 1, numbers), 0);
    for (uint32_t k = 0; k < each; k++)
        assert_true(numbers[k] == number_of(i, k));
    free(numbers);
}

static int add(struct spool *s, const struct shape *shape, uint32_t i, uint32_t n,
               struct drps_err *err)
{
    uint32_t *ids = malloc(n * sizeof(*ids) + 1);
    float *values = malloc(n * sizeof(*values) + 1);
    assert_non_null(ids);
    uint16_t *fields = malloc(n * sizeof(*fields) + 1);
    assert_non_null(values);
    assert_non_null(fields);
    for (uint32_t j = 0; j < n; j++) {
        ids[j] = id_of(i, j);
        values[j] = value_of(i, j);
        fields[j] = field_of(i, j);
    }
    struct spool_sample sample = {.order = order_of(shape, i),
                                  .label = (float)i,
                                  .weight = weight_of(i),
                                  .owner = owner_of(i),
                                  .n = n,
                                  .ids = ids,
                                  .values = has_values(i) ? values : NULL,
                                  .fields = has_fields(i) ? fields : NULL};
    const uint32_t each = numbers_of(i, n);
    size_t bytes = 0;
    unsigned char *packed = each ? pack(i, each, &bytes) : NULL;
    sample.numbers = packed;
    sample.numbers_bytes = (uint32_t)bytes;
    int rc = drps_spool_add(s, &sample, err);
    free(packed);
    free(ids);
    free(values);
    free(fields);
    return rc;
}

struct seen {
    const struct shape *shape;
    uint32_t *order; /* sample numbers as visited */
    uint32_t n;
    uint32_t add;  /* to every id, by relabelling */
    uint32_t huge; /* number of the sample with huge_n features, UINT32_MAX: none */
    uint32_t huge_n;
    int stop_at;
};

static int look(void *ctx, struct spool_sample *sample, struct drps_err *err)
{
    struct seen *seen = ctx;
    uint32_t i = (uint32_t)sample->label;
    if (seen->stop_at && (int)seen->n == seen->stop_at)
        return drps_err_set(err, -ECANCELED, "stopped");
    assert_true(seen->n < seen->shape->n);
    assert_true(sample->order == order_of(seen->shape, i));
    assert_int_equal(sample->n, i == seen->huge ? seen->huge_n : features_of(seen->shape, i));
    assert_int_equal(sample->values != NULL, has_values(i));
    assert_true(sample->weight == weight_of(i));
    assert_int_equal(sample->owner, owner_of(i));
    assert_int_equal(sample->fields != NULL, has_fields(i));
    check_numbers(sample, i, numbers_of(i, sample->n));
    for (uint32_t j = 0; j < sample->n; j++) {
        if (sample->ids[j] != id_of(i, j) + seen->add)
            fail_msg("sample %u entry %u: id %u, expected %u", i, j, sample->ids[j],
                     id_of(i, j) + seen->add);
        if (sample->values) assert_true(sample->values[j] == value_of(i, j));
        if (sample->fields) assert_int_equal(sample->fields[j], field_of(i, j));
    }
    seen->order[seen->n++] = i;
    return 0;
}

/* Samples come as they arrived; `sorted`: by their places, and those of one place as they arrived.
 */
static void assert_in_order(const struct seen *seen, int sorted)
{
    assert_int_equal(seen->n, seen->shape->n);
    for (uint32_t k = 0; k < seen->n; k++) {
        if (!sorted) {
            assert_int_equal(seen->order[k], k);
            continue;
        }
        if (!k) continue;
        uint64_t a = order_of(seen->shape, seen->order[k - 1]);
        uint64_t b = order_of(seen->shape, seen->order[k]);
        if (a > b || (a == b && seen->order[k - 1] >= seen->order[k]))
            fail_msg("position %u: samples %u and %u out of order", k, seen->order[k - 1],
                     seen->order[k]);
    }
}

static struct spool *fill_with(const struct drps_io *io, const char *dir, unsigned buckets,
                               uint64_t kept, const struct shape *shape)
{
    struct spool *s;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_spool_open(io, dir, "spool", buckets, kept, &s, &err)) fail_msg("%s", err.text);
    for (uint32_t i = 0; i < shape->n; i++)
        assert_int_equal(add(s, shape, i, features_of(shape, i), &err), 0);
    assert_int_equal(drps_spool_finish(s, &err), 0);
    return s;
}

static struct spool *fill(const char *dir, unsigned buckets, uint64_t kept,
                          const struct shape *shape)
{
    return fill_with(drps_io_os(), dir, buckets, kept, shape);
}

static void test_spool_order_does_not_depend_on_memory(void **state)
{
    static const struct {
        const char *name;
        unsigned buckets;
        uint64_t memory, kept;
        unsigned order_bits;
    } cases[] = {
        {.name = "in memory",
         .buckets = SPOOL_BUCKETS,
         .memory = 1 << 30,
         .kept = 0,
         .order_bits = 64},
        {.name = "in memory from the start",
         .buckets = SPOOL_BUCKETS,
         .memory = 1 << 30,
         .kept = 32 << 18,
         .order_bits = 64},
        {.name = "some buckets kept",
         .buckets = SPOOL_BUCKETS,
         .memory = 1 << 30,
         .kept = 7 << 18,
         .order_bits = 64},
        {.name = "one level",
         .buckets = SPOOL_BUCKETS,
         .memory = 1 << 10,
         .kept = 0,
         .order_bits = 64},
        {.name = "in memory, one level",
         .buckets = SPOOL_BUCKETS,
         .memory = 1 << 10,
         .kept = 32 << 18,
         .order_bits = 64},
        {.name = "split to single samples",
         .buckets = SPOOL_BUCKETS,
         .memory = 1,
         .kept = 0,
         .order_bits = 64},
        {.name = "room for some buckets",
         .buckets = SPOOL_BUCKETS,
         .memory = 5 << 10,
         .kept = 3 << 18,
         .order_bits = 64},
        {.name = "many equal orders, in memory",
         .buckets = SPOOL_BUCKETS,
         .memory = 1 << 30,
         .kept = 0,
         .order_bits = 6},
        {.name = "many equal orders, split to the last bit",
         .buckets = SPOOL_BUCKETS,
         .memory = 1,
         .kept = 0,
         .order_bits = 6},
        {.name = "order of arrival", .buckets = 1, .memory = 1, .kept = 0, .order_bits = 64},
        {.name = "order of arrival, kept",
         .buckets = 1,
         .memory = 1,
         .kept = 1 << 18,
         .order_bits = 64},
    };
    struct scratch *s = *state;
    struct random_source r = random_begin("spool");
    for (size_t k = 0; k < 2 * sizeof(cases) / sizeof(cases[0]); k++) {
        const size_t c = k / 2;
        struct shape shape = {
            .seed = r.seed, .n = 300, .order_bits = cases[c].order_bits, .most = 12};
        struct seen seen = {
            .shape = &shape, .order = calloc(shape.n, sizeof(uint32_t)), .huge = UINT32_MAX};
        struct drps_err err = DRPS_ERR_INIT;
        struct spool *spool = fill(s->dir, cases[c].buckets, cases[c].kept, &shape);
        if (drps_spool_drain(spool, cases[c].memory,
                             &(struct spool_visitor){.visit = look, .ctx = &seen, .ahead = k % 2},
                             &err))
            fail_msg("%s: %s", cases[c].name, err.text);
        assert_in_order(&seen, cases[c].buckets > 1);
        assert_int_equal(folder_entries(s->dir), 0); /* consumed */
        drps_spool_close(spool);
        free(seen.order);
    }
    drps_spool_close(NULL);
}

/* A walk leaves everything as it was, whatever the visitor does. */
static int spoil(void *ctx, struct spool_sample *sample, struct drps_err *err)
{
    (void)err;
    ++*(uint32_t *)ctx;
    for (uint32_t j = 0; j < sample->n; j++)
        sample->ids[j] = 0;
    return 0;
}

static void test_spool_walks_and_stays(void **state)
{
    struct scratch *dir = *state;
    struct drps_err err = DRPS_ERR_INIT;
    const struct shape shape = {.seed = 5, .n = 40000, .order_bits = 64, .most = 12};
    struct seen seen = {.shape = &shape, .huge = UINT32_MAX};
    struct spool *s;
    uint32_t visited = 0;
    const struct spool_visitor spoiling = {.visit = spoil, .ctx = &visited};
    const struct spool_visitor looking = {.visit = look, .ctx = &seen};
    seen.order = calloc(shape.n, sizeof(*seen.order));
    if (drps_spool_open(drps_io_os(), dir->dir, "line", 1, 3 << 18, &s, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < shape.n; i++)
        assert_int_equal(add(s, &shape, i, features_of(&shape, i), &err), 0);
    assert_int_equal(drps_spool_finish(s, &err), 0);
    assert_int_equal(drps_spool_walk(s, &spoiling, &err), 0);
    assert_int_equal(visited, shape.n);
    assert_int_equal(drps_spool_walk(s, &looking, &err), 0);
    assert_in_order(&seen, 0);
    seen.n = 0;
    assert_int_equal(drps_spool_drain(s, 0, &looking, &err), 0);
    assert_in_order(&seen, 0);
    drps_spool_close(s);
    free(seen.order);
}

static void test_spool_no_samples(void **state)
{
    struct scratch *s = *state;
    struct shape shape = {.n = 0};
    struct seen seen = {.shape = &shape, .huge = UINT32_MAX};
    struct spool *spool = fill(s->dir, SPOOL_BUCKETS, 0, &shape);
    assert_int_equal(drps_spool_relabel(spool, 0, 0, NULL, NULL), 0);
    assert_int_equal(
        drps_spool_drain(spool, 0, &(struct spool_visitor){.visit = look, .ctx = &seen}, NULL), 0);
    drps_spool_close(spool);
}

/* Larger than the buffer that a bucket is walked with. */
static void test_spool_huge_sample(void **state)
{
    enum { HUGE_FEATURES = 3 << 20 };
    static const unsigned buckets[] = {1, SPOOL_BUCKETS, 1, SPOOL_BUCKETS, 1};
    /* none; the first chunks of the bucket; all of it */
    static const uint64_t kept[] = {0, 0, 5 << 18, 40 << 18, 64 << 18};
    struct scratch *s = *state;
    for (size_t c = 0; c < sizeof(buckets) / sizeof(buckets[0]); c++) {
        struct shape shape = {.seed = 9, .n = 50, .order_bits = 64, .most = 5};
        struct seen seen = {.shape = &shape,
                            .order = calloc(shape.n, sizeof(uint32_t)),
                            .huge = 21,
                            .huge_n = HUGE_FEATURES};
        struct drps_err err = DRPS_ERR_INIT;
        struct spool *spool;
        assert_int_equal(
            drps_spool_open(drps_io_os(), s->dir, "spool", buckets[c], kept[c], &spool, &err), 0);
        for (uint32_t i = 0; i < shape.n; i++)
            assert_int_equal(add(spool, &shape, i,
                                 i == seen.huge ? HUGE_FEATURES : features_of(&shape, i), &err),
                             0);
        assert_int_equal(drps_spool_finish(spool, &err), 0);
        if (drps_spool_drain(spool, 1 << 10, &(struct spool_visitor){.visit = look, .ctx = &seen},
                             &err))
            fail_msg("%s", err.text);
        assert_in_order(&seen, buckets[c] > 1);
        drps_spool_close(spool);
        free(seen.order);
    }
}

/* Generations of very different lengths, one of them empty: each gets its own map. */
static void test_spool_relabel_by_generation(void **state)
{
    static const uint32_t first[] = {0, 1, 700, 700, 2500, 3000}; /* samples of the generations */
    enum { GENERATIONS = 5 };
    static const unsigned buckets[] = {1, SPOOL_BUCKETS, SPOOL_BUCKETS, 1};
    static const uint64_t kept[] = {0, 0, 9 << 18, 1 << 18};
    struct scratch *s = *state;
    for (size_t c = 0; c < sizeof(buckets) / sizeof(buckets[0]); c++) {
        struct shape shape = {.seed = 4, .n = 3000, .order_bits = 64, .most = 12};
        struct seen seen = {.shape = &shape,
                            .order = calloc(shape.n, sizeof(uint32_t)),
                            .huge = UINT32_MAX,
                            .add = 1000000};
        struct drps_err err = DRPS_ERR_INIT;
        struct spool *spool;
        assert_int_equal(
            drps_spool_open(drps_io_os(), s->dir, "spool", buckets[c], kept[c], &spool, &err), 0);
        for (uint32_t g = 0; g < GENERATIONS; g++) {
            if (g) assert_int_equal(drps_spool_mark(spool, &err), 0);
            for (uint32_t i = first[g]; i < first[g + 1]; i++)
                assert_int_equal(add(spool, &shape, i, features_of(&shape, i), &err), 0);
        }
        assert_int_equal(drps_spool_finish(spool, &err), 0);
        for (uint32_t g = 0; g < GENERATIONS; g++) {
            uint32_t base = id_of(first[g], 0);
            uint32_t n = id_of(first[g + 1], 0) - base;
            uint32_t *map = malloc(n * sizeof(*map) + 1);
            assert_non_null(map);
            for (uint32_t k = 0; k < n; k++)
                map[k] = base + k + seen.add;
            if (drps_spool_relabel(spool, g, base, map, &err))
                fail_msg("generation %u: %s", g, err.text);
            free(map);
        }
        if (drps_spool_drain(spool, 1 << 14, &(struct spool_visitor){.visit = look, .ctx = &seen},
                             &err))
            fail_msg("%s", err.text);
        assert_in_order(&seen, buckets[c] > 1);
        drps_spool_close(spool);
        free(seen.order);
    }
}

static void test_spool_visitor_stops(void **state)
{
    struct scratch *s = *state;
    static const uint64_t memory[] = {1 << 30, 1 << 12};
    for (size_t k = 0; k < 4; k++) {
        const size_t c = k / 2;
        struct shape shape = {.seed = 4, .n = 3000, .order_bits = 64, .most = 12};
        struct seen seen = {.shape = &shape,
                            .order = calloc(shape.n, sizeof(uint32_t)),
                            .huge = UINT32_MAX,
                            .stop_at = 1234};
        struct spool *spool = fill(s->dir, SPOOL_BUCKETS, 5 << 18, &shape);
        const struct spool_visitor v = {.visit = look, .ctx = &seen, .ahead = k % 2};
        assert_int_equal(drps_spool_drain(spool, memory[c], &v, NULL), -ECANCELED);
        assert_int_equal(seen.n, 1234);
        drps_spool_close(spool);
        assert_int_equal(folder_entries(s->dir), 0);
        free(seen.order);
    }
}

static int all_steps(const struct drps_io *io, const char *dir, struct seen *seen, int ahead,
                     struct drps_err *err)
{
    struct spool *s = NULL;
    uint32_t *map = calloc(id_of(seen->shape->n, 0), sizeof(*map));
    assert_non_null(map);
    for (uint32_t i = 0; i < id_of(seen->shape->n, 0); i++)
        map[i] = i;
    int rc = drps_spool_open(io, dir, "spool", SPOOL_BUCKETS, 3 << 18, &s, err);
    for (uint32_t i = 0; rc == 0 && i < seen->shape->n; i++)
        rc = add(s, seen->shape, i, features_of(seen->shape, i), err);
    if (rc == 0) rc = drps_spool_finish(s, err);
    if (rc == 0) rc = drps_spool_relabel(s, 0, 0, map, err);
    const struct spool_visitor v = {.visit = look, .ctx = seen, .ahead = ahead};
    if (rc == 0) rc = drps_spool_drain(s, ahead ? 1 << 30 : 2000, &v, err);
    drps_spool_close(s);
    free(map);
    return rc;
}

static void test_spool_faults_are_told(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN, FAULT_PWRITE, FAULT_PREAD, FAULT_PREAD};
    struct scratch *s = *state;
    struct shape shape = {.seed = 4, .n = 200, .order_bits = 3, .most = 12};
    uint32_t order[200];
    for (size_t i = 0; i < 4; i++) {
        const int ahead = i == 3;
        shape.order_bits = ahead ? 64 : 3; /* in all buckets, or in one */
        for (long k = 1;; k += k < 40 || ahead ? 1 : 97) {
            struct fault_io *f = fault_io_new(drps_io_os());
            struct seen seen = {.shape = &shape, .order = order, .huge = UINT32_MAX};
            struct drps_err err = DRPS_ERR_INIT;
            assert_non_null(f);
            fault_io_arm(f, ops[i], k, 0, FAULT_ERROR, -EIO);
            int rc = all_steps(&f->io, s->dir, &seen, ahead, &err);
            int fired = atomic_load(&f->fired);
            fault_io_free(f);
            assert_int_equal(rc, fired ? -EIO : 0);
            assert_int_equal(folder_entries(s->dir), 0);
            if (!fired) break;
            assert_true(err.text[0] != '\0');
        }
    }
}

/* The operating system's calls; reads by the thread that set it up are told from those by others.
 */
struct watched_io {
    struct drps_io io;
    struct drps_io_ops ops;
    pthread_t caller;
    atomic_int by_caller, by_others;
};

static ssize_t watched_pread(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct watched_io *w = ctx;
    atomic_fetch_add(pthread_equal(pthread_self(), w->caller) ? &w->by_caller : &w->by_others, 1);
    return drps_io_os()->ops->pread(drps_io_os()->ctx, fd, buf, n, offset);
}

/* Buckets of 5 to 8 KiB with what sorting them takes. Memory for two: all but the first one are
 * read by a thread; for one, none is; for less, parts of a bucket are. */
static void test_spool_reads_ahead_where_memory_has_room(void **state)
{
    static const struct {
        const char *name;
        uint64_t memory;
        int ahead, least_ahead, most_ahead;
    } cases[] = {
        {"room for all", 1 << 30, 1, SPOOL_BUCKETS - 1, SPOOL_BUCKETS - 1},
        {"room for two", 17 << 10, 1, SPOOL_BUCKETS - 1, SPOOL_BUCKETS - 1},
        {"room for one", 9 << 10, 1, 0, 0},
        {"room for parts", 2 << 10, 1, 900,
         SPOOL_BUCKETS * (SPOOL_BUCKETS - 1)}, /* few are empty */
        {"no room", 1, 1, 0, 0},
        {"not asked for", 1 << 30, 0, 0, 0},
    };
    struct scratch *s = *state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct shape shape = {.seed = 11, .n = 4000, .order_bits = 64, .most = 0};
        struct seen seen = {
            .shape = &shape, .order = calloc(shape.n, sizeof(uint32_t)), .huge = UINT32_MAX};
        struct drps_err err = DRPS_ERR_INIT;
        struct watched_io w = {.ops = *drps_io_os()->ops, .caller = pthread_self()};
        w.ops.pread = watched_pread;
        w.io = (struct drps_io){.ops = &w.ops, .ctx = &w};
        struct spool *spool = fill_with(&w.io, s->dir, SPOOL_BUCKETS, 0, &shape);
        const struct spool_visitor v = {.visit = look, .ctx = &seen, .ahead = cases[c].ahead};
        if (drps_spool_drain(spool, cases[c].memory, &v, &err))
            fail_msg("%s: %s", cases[c].name, err.text);
        assert_in_order(&seen, 1);
        const int others = atomic_load(&w.by_others);
        if (others < cases[c].least_ahead || others > cases[c].most_ahead)
            fail_msg("%s: %d reads by a thread, %d by the caller", cases[c].name, others,
                     atomic_load(&w.by_caller));
        drps_spool_close(spool);
        free(seen.order);
    }
}

/* Whose samples came, and a thread that may read once one of them is refused. */
struct refusal {
    struct watched_io w;
    sem_t refused;
    atomic_int read;
};

static ssize_t read_after_refusal(void *ctx, int fd, void *buf, size_t n, uint64_t offset)
{
    struct refusal *r = ctx;
    if (!pthread_equal(pthread_self(), r->w.caller)) {
        (void)sem_wait(&r->refused);
        atomic_fetch_add(&r->read, 1);
    }
    return drps_io_os()->ops->pread(drps_io_os()->ctx, fd, buf, n, offset);
}

static int refuse(void *ctx, struct spool_sample *sample, struct drps_err *err)
{
    struct refusal *r = ctx;
    (void)sample;
    assert_int_equal(sem_post(&r->refused), 0);
    return drps_err_set(err, -ECANCELED, "refused");
}

/* A drain that fails waits for its thread, whatever that still does. */
static void test_spool_thread_ends_with_the_drain(void **state)
{
    struct scratch *s = *state;
    const struct shape shape = {.seed = 3, .n = 500, .order_bits = 64, .most = 3};
    struct refusal r = {.w = {.ops = *drps_io_os()->ops, .caller = pthread_self()}};
    struct drps_err err = DRPS_ERR_INIT;
    r.w.ops.pread = read_after_refusal;
    r.w.io = (struct drps_io){.ops = &r.w.ops, .ctx = &r};
    assert_int_equal(sem_init(&r.refused, 0, 0), 0);
    struct spool *spool = fill_with(&r.w.io, s->dir, SPOOL_BUCKETS, 0, &shape);
    const struct spool_visitor v = {.visit = refuse, .ctx = &r, .ahead = 1};
    assert_int_equal(drps_spool_drain(spool, 1 << 30, &v, &err), -ECANCELED);
    assert_int_equal(atomic_load(&r.read), 1);
    assert_string_equal(err.text, "refused");
    drps_spool_close(spool);
    assert_int_equal(folder_entries(s->dir), 0);
    (void)sem_destroy(&r.refused);
}

/* Bytes of pages that the spool has, now and at most; calls of drps_pages_new() and
 * drps_pages_free() come here. */
static atomic_size_t pages_now, pages_most;

void *__real_drps_pages_new(size_t bytes);
void *__wrap_drps_pages_new(size_t bytes);
void __real_drps_pages_free(void *pages, size_t bytes);
void __wrap_drps_pages_free(void *pages, size_t bytes);

void *__wrap_drps_pages_new(size_t bytes)
{
    const size_t now = atomic_fetch_add(&pages_now, bytes) + bytes;
    if (now > atomic_load(&pages_most)) atomic_store(&pages_most, now);
    return __real_drps_pages_new(bytes);
}

void __wrap_drps_pages_free(void *pages, size_t bytes)
{
    if (pages) atomic_fetch_sub(&pages_now, bytes);
    __real_drps_pages_free(pages, bytes);
}

static int count_ordered(void *ctx, struct spool_sample *sample, struct drps_err *err)
{
    (void)err;
    uint64_t *before = ctx; /* samples, and the order of the last one */
    assert_true(!before[0] || sample->order > before[1]);
    before[0]++;
    before[1] = sample->order;
    return 0;
}

/* Buckets of all sizes, in hundredths of what fits the memory: alone, in pairs, and in parts. */
static void test_spool_keeps_within_its_memory(void **state)
{
    static const uint32_t percent[SPOOL_BUCKETS] = {45, 90, 10, 10, 48, 48, 20, 70, 25, 170, 30, 60,
                                                    5,  0,  99, 99, 1,  0,  0,  50, 45, 110, 40, 3};
    enum { SAMPLES = 1000, SAMPLE = 16 + 2 * 16, MEMORY = SAMPLES * SAMPLE * 17 / 16 };
    struct scratch *dir = *state;
    for (int ahead = 0; ahead < 2; ahead++) {
        struct watched_io w = {.ops = *drps_io_os()->ops, .caller = pthread_self()};
        struct drps_err err = DRPS_ERR_INIT;
        uint64_t n = 0, visited[2] = {0};
        struct spool *s;
        w.ops.pread = watched_pread;
        w.io = (struct drps_io){.ops = &w.ops, .ctx = &w};
        assert_int_equal(drps_spool_open(&w.io, dir->dir, "spool", SPOOL_BUCKETS, 0, &s, &err), 0);
        for (uint64_t b = 0; b < SPOOL_BUCKETS; b++)
            for (uint64_t i = 0; i < percent[b] * SAMPLES / 100; i++, n++) {
                const struct spool_sample sample = {
                    .order = b << 59 | i % SPOOL_BUCKETS << 54 | n << 5, .weight = 1};
                assert_int_equal(drps_spool_add(s, &sample, &err), 0);
            }
        assert_int_equal(drps_spool_finish(s, &err), 0);
        atomic_store(&pages_most, 0);
        const struct spool_visitor v = {.visit = count_ordered, .ctx = visited, .ahead = ahead};
        if (drps_spool_drain(s, MEMORY, &v, &err)) fail_msg("%s", err.text);
        assert_int_equal(visited[0], n);
        if (pages_most > MEMORY || pages_most < MEMORY * 9 / 10)
            fail_msg("%zu bytes for %d", (size_t)pages_most, MEMORY);
        assert_int_equal(pages_now, 0);
        assert_int_equal(atomic_load(&w.by_others) > 5, ahead);
        drps_spool_close(s);
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_spool_order_does_not_depend_on_memory),
        SCRATCH_TEST(test_spool_walks_and_stays),
        SCRATCH_TEST(test_spool_no_samples),
        SCRATCH_TEST(test_spool_huge_sample),
        SCRATCH_TEST(test_spool_relabel_by_generation),
        SCRATCH_TEST(test_spool_visitor_stops),
        SCRATCH_TEST(test_spool_faults_are_told),
        SCRATCH_TEST(test_spool_reads_ahead_where_memory_has_room),
        SCRATCH_TEST(test_spool_thread_ends_with_the_drain),
        SCRATCH_TEST(test_spool_keeps_within_its_memory),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, NULL);
}
