/*
 * Sums over ranks: the bits that drps_allreduce.h promises, over every transport, with the shortest
 * queue; bytes that are sent; ranks that are lost, late, or in another call.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "net/drps_allreduce.h"
#include "net/drps_transport.h"
#include "net/drps_wire.h"
#include "support/net_job.h"
#include "support/net_mpi.h"

enum { SUMS = 48, MOST_FLOAT32 = DRPS_NET_GROUP_BYTES / 4, MOST_FLOAT64 = MOST_FLOAT32 / 2 };

/* Nobody is lost by silence: a busy machine may keep a rank from being heard of. */
static const struct drps_net_options shortest = {.queue_messages = 1, .silence_ms = NET_WAIT_MS};

/* ---- The plain twin: sums in the order that the header says ---- */

struct sum {
    enum drps_net_float type;
    enum drps_net_way way;
    size_t n;
    uint64_t seed;
    void *expected; /* [n] of `type` */
};

static size_t width_of(const struct sum *s)
{
    return s->type == DRPS_NET_FLOAT32 ? 4 : 8;
}

/* Value i of the rank at place p: of many magnitudes, so that the order of adding shows; and some
 * are -0 on all ranks, of which the sum is that, too, unless it begins with 0. */
static double value_at(const struct sum *s, uint32_t p, size_t i)
{
    if (i % 11 == 5) return -0.0;
    const uint64_t bits = drps_rng_at(s->seed * 1000 + p, i);
    const double v = (drps_unit_double(bits) - 0.5) * (double)(1 << bits % 24);
    return s->type == DRPS_NET_FLOAT32 ? (double)(float)v : v;
}

static double add(const struct sum *s, double a, double b)
{
    return s->type == DRPS_NET_FLOAT32 ? (double)((float)a + (float)b) : a + b;
}

static double ring_sum(const struct sum *s, uint32_t count, size_t i)
{
    uint32_t c = 0;
    for (size_t first = 0; c < count; c++) {
        first += s->n / count + (c < s->n % count);
        if (i < first) break;
    }
    double v = value_at(s, c, i);
    for (uint32_t k = 1; k < count; k++)
        v = add(s, v, value_at(s, (c + k) % count, i));
    return v;
}

static double tree_sum(const struct sum *s, uint32_t count, uint32_t p, size_t i)
{
    double v = value_at(s, p, i);
    for (uint32_t d = 1; (p == 0 || d < (p & -p)) && p + d < count; d *= 2)
        v = add(s, v, tree_sum(s, count, p + d, i));
    return v;
}

/* What one rank adds up of all vectors; it begins with zeros. */
static double plain_sum(const struct sum *s, uint32_t count, size_t i)
{
    double v = 0;
    for (uint32_t p = 0; p < count; p++)
        v = add(s, v, value_at(s, p, i));
    return v;
}

static double sum_by(const struct sum *s, enum drps_net_way way, uint32_t count, size_t i)
{
    if (way == DRPS_NET_IN_ORDER) return plain_sum(s, count, i);
    return way == DRPS_NET_RING ? ring_sum(s, count, i) : tree_sum(s, count, 0, i);
}

static void put(const struct sum *s, void *values, size_t i, double v)
{
    if (s->type == DRPS_NET_FLOAT32)
        ((float *)values)[i] = (float)v;
    else
        ((double *)values)[i] = v;
}

static void *new_values(const struct sum *s)
{
    void *values = malloc(s->n * width_of(s) + 1);
    NET_CHECK(values);
    return values;
}

/* The way is not by size. */
static void expect(struct sum *s, uint32_t count, enum drps_net_way way)
{
    s->expected = new_values(s);
    for (size_t i = 0; i < s->n; i++)
        put(s, s->expected, i, sum_by(s, way, count, i));
}

/* ---- Sums of all ranks ---- */

struct sums {
    struct sum sum[SUMS];
    size_t n;
};

static void sum_one(struct drps_net *net, const struct sum *s, uint32_t place,
                    const struct drps_net_allreduce *list)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_allreduce sum = *list;
    const uint32_t count = sum.ranks ? sum.count : drps_net_count(net);
    const uint64_t before = net_sent_bytes(net);
    sum.values = new_values(s);
    sum.n = s->n;
    sum.type = s->type;
    sum.way = s->way;
    sum.round = s->seed;
    for (size_t i = 0; i < s->n; i++)
        put(s, sum.values, i, value_at(s, place, i));
    NET_OK(drps_net_allreduce(net, &sum, NET_WAIT_MS, &err));
    NET_CHECK(memcmp(sum.values, s->expected, s->n * width_of(s)) == 0);
    NET_CHECK(net_sent_bytes(net) - before ==
              drps_net_allreduce_bytes(s->way, count, place, s->n, s->type));
    free(sum.values);
}

/* A message to each worker waits there all the time: sums are not in its way. */
static void sum_all(struct drps_net *net, uint32_t rank, void *ctx)
{
    const struct sums *sums = ctx;
    const struct drps_net_allreduce all = {.ranks = NULL};
    const struct drps_net_send send = {.to = (rank + 1) % drps_net_count(net),
                                       .type = DRPS_NET_TYPE_FIRST};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    NET_OK(drps_net_send(net, &send, NET_WAIT_MS, &err));
    for (size_t i = 0; i < sums->n; i++) {
        sum_one(net, &sums->sum[i], rank, &all);
        if (i % 3 == 0) NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
    }
    NET_OK(drps_net_receive(net, DRPS_NET_WORKER, DRPS_NET_ANY, NET_WAIT_MS, &m, &err));
    drps_net_message_free(m);
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
}

static void add_sum(struct sums *sums, uint32_t count, enum drps_net_float type,
                    enum drps_net_way way, size_t n)
{
    assert_true(sums->n < SUMS);
    struct sum *s = &sums->sum[sums->n++];
    *s = (struct sum){.type = type, .way = way, .n = n, .seed = count * 100 + sums->n};
    expect(s, count, way);
}

static void free_sums(struct sums *sums)
{
    for (size_t i = 0; i < sums->n; i++)
        free(sums->sum[i].expected);
}

static void sum_lengths(enum net_kind kind, uint32_t count, const size_t *n, size_t lengths)
{
    struct sums sums = {.n = 0};
    struct net_job job;
    for (enum drps_net_float type = DRPS_NET_FLOAT32; type <= DRPS_NET_FLOAT64; type++)
        for (enum drps_net_way way = DRPS_NET_RING; way <= DRPS_NET_IN_ORDER; way++)
            for (size_t i = 0; i < lengths; i++)
                add_sum(&sums, count, type, way, n[i]);
    net_job_open(&job, kind, count, &shortest);
    net_job_run(&job, sum_all, &sums);
    net_job_close(&job);
    free_sums(&sums);
}

/* Vectors of no value, of fewer values than ranks, and of more; any number of ranks. */
static void test_allreduce_sums_in_the_order_that_is_promised(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    const uint32_t first = kind == NET_INPROC ? 1 : 2;
    const uint32_t last = kind != NET_INPROC ? 5 : DRPS_TEST_ONE_IN > 1 ? 9 : NET_RANKS;
    for (uint32_t count = first; count <= last; count++) {
        const size_t n[] = {0, 1, count - 1, count, count + 1, 1000};
        sum_lengths(kind, count, n, sizeof(n) / sizeof(*n));
    }
}

/* Of the first of these a ring's first chunk takes a message more than its others. */
static void test_allreduce_cuts_long_vectors(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    for (uint32_t count = 2; count <= (DRPS_TEST_ONE_IN > 1 ? 2 : 3); count++) {
        const size_t n[] = {count * MOST_FLOAT32 + 1, 2 * MOST_FLOAT64};
        sum_lengths(kind, count, n, sizeof(n) / sizeof(*n));
    }
}

/* ---- Lists of ranks ---- */

struct lists {
    struct sum one, other;
};

/* Ranks 1, 2 and 4 sum while 0 and 3 do, more often; 5 does neither. */
static void sum_lists(struct drps_net *net, uint32_t rank, void *ctx)
{
    static const uint32_t one[] = {1, 2, 4}, other[] = {0, 3}, place[] = {0, 0, 1, 1, 2, 0};
    const struct lists *l = ctx;
    struct drps_err err = DRPS_ERR_INIT;
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
    if (rank == 0 || rank == 3)
        for (int i = 0; i < 5; i++)
            sum_one(net, &l->other, place[rank],
                    &(struct drps_net_allreduce){.ranks = other, .count = 2});
    else if (rank < 5)
        sum_one(net, &l->one, place[rank], &(struct drps_net_allreduce){.ranks = one, .count = 3});
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
}

static void test_allreduce_sums_over_lists_of_ranks(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    for (enum drps_net_way way = DRPS_NET_RING; way <= DRPS_NET_IN_ORDER; way++) {
        struct lists l = {{DRPS_NET_FLOAT64, way, 100, 1, NULL},
                          {DRPS_NET_FLOAT32, way, 33, 2, NULL}};
        struct net_job job;
        expect(&l.one, 3, way);
        expect(&l.other, 2, way);
        net_job_open(&job, kind, 6, &shortest);
        net_job_run(&job, sum_lists, &l);
        net_job_close(&job);
        free(l.one.expected);
        free(l.other.expected);
    }
}

/* ---- NaN ---- */

enum { ODD = 300 };

static float odd_float(uint32_t rank, uint32_t i)
{
    const uint32_t bits = 0x7fc00000 + rank * 1000 + i; /* a NaN that tells whose it is */
    float nan;
    memcpy(&nan, &bits, sizeof(nan));
    return (i + rank) % 3 == 0 ? nan : (i + rank) % 3 == 1 ? INFINITY : -INFINITY;
}

static void sum_odd(struct drps_net *net, uint32_t rank, void *ctx)
{
    float values[ODD], all[NET_RANKS][ODD];
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_allreduce sum = {.values = values, .n = ODD, .way = *(enum drps_net_way *)ctx};
    for (uint32_t i = 0; i < ODD; i++)
        values[i] = odd_float(rank, i);
    NET_OK(drps_net_allreduce(net, &sum, NET_WAIT_MS, &err));
    NET_OK(drps_net_gather(net, values, sizeof(values), all, NET_WAIT_MS, &err));
    for (uint32_t r = 0; r < drps_net_count(net); r++)
        NET_CHECK(memcmp(all[r], values, sizeof(values)) == 0);
    for (uint32_t i = 0; i < ODD; i++)
        NET_CHECK(isnan(values[i]));
}

static void test_allreduce_gives_all_ranks_the_same_nan(void **state)
{
    (void)state;
    for (enum drps_net_way way = DRPS_NET_RING; way <= DRPS_NET_IN_ORDER; way++) {
        struct net_job job;
        net_job_open(&job, NET_INPROC, 7, &shortest);
        net_job_run(&job, sum_odd, &way);
        net_job_close(&job);
    }
}

/* ---- Which way, and what it costs ---- */

static void test_allreduce_chooses_by_size(void **state)
{
    static const struct {
        const char *name;
        uint32_t count;
        uint64_t bytes;
        enum drps_net_way way;
    } cases[] = {
        {"alone", 1, 1000, DRPS_NET_RING},
        {"two ranks", 2, 4, DRPS_NET_RING},
        {"three ranks", 3, 0, DRPS_NET_RING},
        {"four ranks, nothing", 4, 0, DRPS_NET_TREE},
        {"four ranks, short", 4, 13107, DRPS_NET_TREE}, /* 2 * 29491 < 3 * 19661 */
        {"four ranks, long", 4, 13108, DRPS_NET_RING},
        {"17 ranks, short", 17, 44403, DRPS_NET_TREE}, /* 5 * 60787 < 16 * 18996 */
        {"17 ranks, long", 17, 44404, DRPS_NET_RING},
        {"1024 ranks", 1024, 1 << 20, DRPS_NET_TREE},
        {"the longest", 1024, DRPS_NET_MESSAGE_MAX, DRPS_NET_RING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const enum drps_net_way way = drps_net_allreduce_way(cases[i].count, cases[i].bytes);
        if (way != cases[i].way) fail_msg("%s: way %d", cases[i].name, (int)way);
    }
}

/* In order two steps do, where a ring of five has eight. */
static void test_allreduce_knows_what_it_costs(void **state)
{
    (void)state;
    assert_int_equal(drps_net_allreduce_cost(DRPS_NET_IN_ORDER, 1, 1000), 0);
    assert_int_equal(drps_net_allreduce_cost(DRPS_NET_IN_ORDER, 5, 101), 2 * (4 * 21 + 16384));
    assert_int_equal(drps_net_allreduce_cost(DRPS_NET_RING, 5, 101), 8 * (21 + 16384));
    assert_int_equal(drps_net_allreduce_cost(DRPS_NET_TREE, 5, 101), 6 * (101 + 16384));
}

static void test_allreduce_does_what_it_chooses(void **state)
{
    struct sums sums = {.n = 0};
    struct net_job job;
    (void)state;
    add_sum(&sums, 5, DRPS_NET_FLOAT64, DRPS_NET_TREE, 10);
    add_sum(&sums, 5, DRPS_NET_FLOAT32, DRPS_NET_RING, 20000);
    for (size_t i = 0; i < sums.n; i++) {
        struct sum *s = &sums.sum[i];
        assert_int_equal(drps_net_allreduce_way(5, s->n * width_of(s)), s->way);
        s->way = DRPS_NET_BY_SIZE;
    }
    net_job_open(&job, NET_INPROC, 5, &(struct drps_net_options){0});
    net_job_run(&job, sum_all, &sums);
    net_job_close(&job);
    free_sums(&sums);
}

static void sum_full_messages(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct drps_net_allreduce sum = *(const struct drps_net_allreduce *)ctx;
    struct drps_net_peer_stats stats;
    struct drps_err err = DRPS_ERR_INIT;
    sum.values = calloc(sum.n, 8);
    NET_CHECK(sum.values);
    NET_OK(drps_net_allreduce(net, &sum, NET_WAIT_MS, &err));
    drps_net_peer_stats(net, 1 - rank, &stats);
    NET_CHECK(stats.sent_messages == 2 && stats.sent_bytes == 2 * DRPS_NET_GROUP_BYTES);
    free(sum.values);
}

/* By the ring two chunks of a message each, by the tree two messages each way. */
static void test_allreduce_fills_its_messages(void **state)
{
    (void)state;
    for (enum drps_net_way way = DRPS_NET_RING; way <= DRPS_NET_IN_ORDER; way++) {
        struct drps_net_allreduce sum = {
            .n = 2 * MOST_FLOAT64, .type = DRPS_NET_FLOAT64, .way = way};
        struct net_job job;
        net_job_open(&job, NET_INPROC, 2, &shortest);
        net_job_run(&job, sum_full_messages, &sum);
        net_job_close(&job);
    }
}

/* What is sent is compared with these in every sum above. */
static void test_allreduce_counts_bytes(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 70; count++) {
        const uint64_t n = 24 * count, each = 2 * (count - 1) * n / count;
        uint64_t tree = 0, uneven = 0, ordered = 0;
        for (uint32_t p = 0; p < count; p++) {
            assert_int_equal(drps_net_allreduce_bytes(DRPS_NET_RING, count, p, n, DRPS_NET_FLOAT32),
                             4 * each);
            tree += drps_net_allreduce_bytes(DRPS_NET_TREE, count, p, n, DRPS_NET_FLOAT64);
            uneven += drps_net_allreduce_bytes(DRPS_NET_RING, count, p, 11, DRPS_NET_FLOAT64);
            assert_int_equal(
                drps_net_allreduce_bytes(DRPS_NET_IN_ORDER, count, p, n, DRPS_NET_FLOAT32),
                4 * each);
            uint64_t to_others = 0;
            for (uint32_t q = 0; q < count; q++)
                to_others +=
                    q == p ? 0 : drps_net_allreduce_bytes_to(count, p, q, 11, DRPS_NET_FLOAT64);
            assert_int_equal(
                drps_net_allreduce_bytes(DRPS_NET_IN_ORDER, count, p, 11, DRPS_NET_FLOAT64),
                to_others);
            ordered += to_others;
        }
        assert_int_equal(ordered, 2 * (count - 1) * 11 * 8);
        assert_int_equal(tree, 2 * (count - 1) * n * 8);
        assert_int_equal(uneven, 2 * (count - 1) * 11 * 8);
    }
    assert_int_equal(drps_net_allreduce_bytes(DRPS_NET_TREE, 8, 0, 1, DRPS_NET_FLOAT32), 12);
    assert_int_equal(drps_net_allreduce_bytes(DRPS_NET_TREE, 8, 4, 1, DRPS_NET_FLOAT32), 12);
    assert_int_equal(drps_net_allreduce_bytes(DRPS_NET_TREE, 7, 6, 1, DRPS_NET_FLOAT32), 4);
    assert_int_equal(drps_net_allreduce_bytes(DRPS_NET_BY_SIZE, 8, 7, 1, DRPS_NET_FLOAT32), 4);
}

/* ---- What is refused ---- */

static void test_allreduce_checks_what_is_asked(void **state)
{
    static const uint32_t equal[] = {0, 0, 1}, back[] = {2, 0}, far[] = {0, 3}, without[] = {1, 2};
    static float values[1];
    static const struct {
        const char *name;
        struct drps_net_allreduce sum;
        const char *text;
    } cases[] = {
        {"twice", {.ranks = equal, .count = 3}, "rank 0 at place 1 of a sum's list"},
        {"descending", {.ranks = back, .count = 2}, "rank 0 at place 1"},
        {"not there", {.ranks = far, .count = 2}, "rank 3 at place 1"},
        {"not in it", {.ranks = without, .count = 2}, "rank 0 sums, but is not in"},
        {"nobody", {.ranks = equal, .count = 0}, "is not in"},
        {"type", {.type = (enum drps_net_float)2}, "type 2"},
        {"way", {.way = (enum drps_net_way)4}, "way 4"},
        {"length", {.n = DRPS_NET_MESSAGE_MAX / 4 + 1}, "17179869185 values of 4 bytes"},
        {"overflow", {.n = SIZE_MAX / 8 + 2, .type = DRPS_NET_FLOAT64}, "values of 8 bytes"},
    };
    struct net_job job;
    (void)state;
    net_job_open(&job, NET_INPROC, 3, &shortest);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_net_allreduce sum = cases[i].sum;
        struct drps_err err = DRPS_ERR_INIT;
        sum.values = values;
        if (drps_net_allreduce(job.nets[0], &sum, 0, &err) != -EINVAL ||
            !strstr(err.text, cases[i].text))
            fail_msg("%s: %s", cases[i].name, err.text);
    }
    assert_int_equal(net_sent_bytes(job.nets[0]), 0);
    net_job_close(&job);
}

static void *sum_once(void *arg)
{
    struct drps_err err = DRPS_ERR_INIT;
    float value = 1;
    const struct drps_net_allreduce sum = {.values = &value, .n = 1};
    NET_OK(drps_net_allreduce(arg, &sum, NET_WAIT_MS, &err));
    NET_CHECK(value == 2);
    return NULL;
}

static void test_allreduce_is_one_call_of_the_group(void **state)
{
    struct net_job job;
    struct drps_err err = DRPS_ERR_INIT;
    pthread_t thread;
    float value = 1;
    const struct drps_net_allreduce sum = {.values = &value, .n = 1};
    net_job_open(&job, net_kind_of(state), 2, &shortest);
    assert_int_equal(pthread_create(&thread, NULL, sum_once, job.nets[0]), 0);
    while (!atomic_load(&job.nets[0]->in_group)) /* it waits there for rank 1 */
        ;
    assert_int_equal(drps_net_allreduce(job.nets[0], &sum, NET_WAIT_MS, &err), -EBUSY);
    assert_int_equal(drps_net_barrier(job.nets[0], NET_WAIT_MS, NULL), -EBUSY);
    assert_true(value == 1);
    (void)sum_once(job.nets[1]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    net_job_close(&job);
}

/* ---- Ranks that do something else ---- */

struct answer {
    const char *name;
    int type, bytes, tag, round; /* more than what was expected */
    const char *text;
};

struct stranger {
    struct drps_net *net;
    const struct answer *answer;
    enum drps_net_way way;
};

static void *sum_with_stranger(void *arg)
{
    const struct stranger *s = arg;
    const struct answer *a = s->answer;
    struct drps_err err = DRPS_ERR_INIT;
    float values[8] = {0};
    const struct drps_net_allreduce sum = {.values = values, .n = 8, .way = s->way, .round = 7};
    const int rc = drps_net_allreduce(s->net, &sum, NET_WAIT_MS, &err);
    if (a->text[0])
        NET_CHECK(rc == DRPS_E_PROTO && strstr(err.text, "rank 1") && strstr(err.text, a->text));
    else
        NET_CHECK(rc == 0 && values[0] == 1); /* of the first that came, or the last */
    return NULL;
}

/* Answer each of two messages with the same values as what came, but for what the case says. */
static void answer_twice(struct drps_net *net, const struct answer *a)
{
    struct drps_err err = DRPS_ERR_INIT;
    static const float ones[16] = {1, 1, 1, 1};
    for (int i = 0; i < (a->text[0] ? 1 : 2); i++) {
        struct drps_net_message *m;
        NET_OK(drps_net_receive_part(net, WIRE_GROUP, 0, NET_WAIT_MS, &m, &err));
        NET_CHECK(m->type == WIRE_SUM && m->round == 7 && m->bytes == 16);
        const struct drps_piece piece = {ones, (size_t)((int)m->bytes + a->bytes)};
        const struct drps_net_send send = {.type = (uint8_t)(m->type + a->type),
                                           .tag = m->tag + (uint32_t)a->tag,
                                           .round = m->round + (uint64_t)a->round,
                                           .pieces = &piece,
                                           .n = 1};
        drps_net_message_free(m);
        NET_OK(drps_net_send_part(net, &send, WIRE_GROUP, NET_WAIT_MS, &err));
    }
}

static void test_allreduce_refuses_messages_of_something_else(void **state)
{
    static const struct answer cases[] = {
        {"right", 0, 0, 0, 0, ""},
        {"broadcast", -1, 0, 0, 0, "it sent type 6"},
        {"longer", 0, 4, 0, 0, "call 7, 20 bytes; expected"},
        {"shorter", 0, -4, 0, 0, "call 7, 12 bytes; expected"},
        {"nothing", 0, -16, 0, 0, "call 7, 0 bytes; expected"},
        {"tag", 0, 0, 1, 0, "is in another call of the group"},
        {"round before", 0, 0, 0, -1, "call 6, 16 bytes"},
        {"round after", 0, 0, 0, 1, "call 8, 16 bytes"},
    };
    const size_t n = sizeof(cases) / sizeof(*cases);
    for (size_t i = 0; i < 2 * n; i++) {
        struct net_job job;
        pthread_t thread;
        struct stranger s = {.answer = &cases[i % n],
                             .way = i < n ? DRPS_NET_RING : DRPS_NET_IN_ORDER};
        print_message("    %s\n", cases[i % n].name);
        net_job_open(&job, net_kind_of(state), 2, &shortest);
        s.net = job.nets[0];
        assert_int_equal(pthread_create(&thread, NULL, sum_with_stranger, &s), 0);
        answer_twice(job.nets[1], s.answer);
        assert_int_equal(pthread_join(thread, NULL), 0);
        net_job_close(&job);
    }
}

/* A rank's part in a sum that fails: it leaves the job, and says why. */
struct failing {
    struct net_job *job;
    struct drps_net_allreduce sum[NET_RANKS];
    int leaves; /* 1: rank 1 does, in good order; 2: it gives up; 0: it sums as well */
    int rc[NET_RANKS];
    struct drps_err err[NET_RANKS];
};

static void fail_to_sum(struct drps_net *net, uint32_t rank, void *ctx)
{
    static const struct drps_err why = {.code = -EIO, .text = "its disk is full"};
    struct failing *f = ctx;
    double values[64] = {0};
    f->sum[rank].values = values;
    f->job->nets[rank] = NULL;
    if (rank == 1 && f->leaves) {
        drps_net_close(net, NET_WAIT_MS, f->leaves == 2 ? &why : NULL);
        return;
    }
    f->rc[rank] = drps_net_allreduce(net, &f->sum[rank], NET_WAIT_MS, &f->err[rank]);
    drps_net_close(net, NET_WAIT_MS, &f->err[rank]);
}

static void test_allreduce_finds_out_that_ranks_sum_different_things(void **state)
{
    static const uint32_t some[] = {0, 1};
    static const struct {
        const char *name;
        struct drps_net_allreduce sum, other; /* of all but rank 1, and of rank 1 */
    } cases[] = {
        {"longer", {.n = 21}, {.n = 22}},
        {"type", {.n = 42}, {.n = 21, .type = DRPS_NET_FLOAT64}}, /* as many bytes */
        {"way", {.n = 0}, {.n = 0, .way = DRPS_NET_TREE}},
        {"list", {.n = 0}, {.n = 0, .ranks = some, .count = 2}},
        {"round", {.n = 21}, {.n = 21, .round = 1}},
    };
    const enum net_kind kind = net_kind_of(state);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct net_job job;
        struct failing f = {.job = &job};
        int found = 0;
        net_job_open(&job, kind, 3, &shortest);
        for (uint32_t r = 0; r < 3; r++)
            f.sum[r] = r == 1 ? cases[i].other : cases[i].sum;
        net_job_run(&job, fail_to_sum, &f);
        for (uint32_t r = 0; r < 3; r++) {
            if (f.rc[r] >= 0) fail_msg("%s: rank %u has sums", cases[i].name, r);
            found += f.rc[r] == DRPS_E_PROTO &&
                     strstr(f.err[r].text, "is in another call of the group") != NULL;
        }
        if (!found) fail_msg("%s: %s, %s", cases[i].name, f.err[0].text, f.err[1].text);
    }
}

/* The rank that is not there is named by all, whether they wait for it or for each other. */
static void test_allreduce_names_a_rank_that_has_left(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    for (int leaves = 1; leaves <= 2; leaves++)
        for (enum drps_net_way way = DRPS_NET_RING; way <= DRPS_NET_IN_ORDER; way++) {
            struct net_job job;
            struct failing f = {.job = &job, .leaves = leaves};
            for (uint32_t r = 0; r < 5; r++)
                f.sum[r] = (struct drps_net_allreduce){.n = 64, .way = way};
            net_job_open(&job, kind, 5, &shortest);
            net_job_run(&job, fail_to_sum, &f);
            for (uint32_t r = 0; r < 5; r++)
                if (r != 1 && ((f.rc[r] != DRPS_E_PEER && f.rc[r] != DRPS_E_PEER_FAILED) ||
                               !strstr(f.err[r].text, "rank 1")))
                    fail_msg("leaves %d, way %d, rank %u: %d: %s", leaves, (int)way, r, f.rc[r],
                             f.err[r].text);
        }
}

static void test_allreduce_does_not_wait_for_ever(void **state)
{
    const enum net_kind kind = net_kind_of(state);
    float value = 1;
    for (enum drps_net_way way = DRPS_NET_RING; way <= DRPS_NET_IN_ORDER; way++) {
        struct net_job job;
        const struct drps_net_allreduce sum = {.values = &value, .n = 1, .way = way};
        struct drps_err err = DRPS_ERR_INIT;
        net_job_open(&job, kind, 2, &shortest);
        assert_int_equal(drps_net_allreduce(job.nets[0], &sum, 5, &err), -ETIMEDOUT);
        assert_non_null(strstr(err.text, "nothing came from rank 1"));
        assert_non_null(strstr(err.text, "for the group within 5 ms"));
        net_job_close(&job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET_OVER_ALL(test_allreduce_sums_in_the_order_that_is_promised),
        NET_OVER_ALL(test_allreduce_cuts_long_vectors),
        NET_OVER_ALL(test_allreduce_sums_over_lists_of_ranks),
        cmocka_unit_test(test_allreduce_gives_all_ranks_the_same_nan),
        cmocka_unit_test(test_allreduce_chooses_by_size),
        cmocka_unit_test(test_allreduce_knows_what_it_costs),
        cmocka_unit_test(test_allreduce_does_what_it_chooses),
        cmocka_unit_test(test_allreduce_counts_bytes),
        cmocka_unit_test(test_allreduce_fills_its_messages),
        cmocka_unit_test(test_allreduce_checks_what_is_asked),
        NET_OVER_ALL(test_allreduce_is_one_call_of_the_group),
        NET_OVER_ALL(test_allreduce_refuses_messages_of_something_else),
        NET_OVER_ALL(test_allreduce_finds_out_that_ranks_sum_different_things),
        NET_OVER_ALL(test_allreduce_names_a_rank_that_has_left),
        NET_OVER_ALL(test_allreduce_does_not_wait_for_ever),
    };
    if (net_mpi_start()) return 0; /* a mirror */
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    net_mpi_stop();
    return failed;
}
