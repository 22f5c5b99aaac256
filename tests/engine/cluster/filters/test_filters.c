/*
 * The arithmetic of filtered pushes: float16, values of 8 bits, thresholds and what they hold back,
 * the largest values, and messages, whole and damaged.
 *
 *   test_filters [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/filters/drps_marks.h"
#include "engine/cluster/filters/drps_half.h"
#include "engine/cluster/filters/drps_held.h"
#include "engine/cluster/filters/drps_push_message.h"
#include "engine/cluster/filters/drps_values.h"

static uint64_t seed = 20240607;

/* A value of a wide range of sizes, at times 0. */
static float random_value(uint64_t i)
{
    const uint64_t x = drps_rng_at(seed, i);
    if (x % 7 == 0) return 0;
    return (x & 8 ? 1.0F : -1.0F) * ldexpf(drps_unit_float(x), (int)(x >> 4 & 15) - 12);
}

/* ---- Values ---- */

static void test_float16_is_nearest_ties_to_even(void **state)
{
    static const struct {
        float from;
        uint16_t half;
    } golden[] = {{0.1F, 0x2e66},     {1 / 3.0F, 0x3555}, {0.001F, 0x1419},
                  {-2.5e-5F, 0x81a3}, {65519.0F, 0x7bff}, {65520.0F, 0x7c00},
                  {1e-8F, 0},         {3e-8F, 1},         {1.00048828125F, 0x3c00},
                  {-0.0F, 0x8000},    {INFINITY, 0x7c00}};
    (void)state;
    for (size_t i = 0; i < sizeof(golden) / sizeof(*golden); i++)
        assert_int_equal(drps_half_from(golden[i].from), golden[i].half);
    assert_true(fabsf(drps_half_to(1) - 5.96046448e-8F) < 1e-14F);
    assert_true(isnan(drps_half_to(drps_half_from(NAN))));
    for (uint32_t half = 0; half < 1 << 16; half++)
        if ((half & 0x7c00) != 0x7c00 || !(half & 0x03ff))
            assert_int_equal(drps_half_from(drps_half_to((uint16_t)half)), half);
}

static void check_values(uint32_t bits, size_t n, float most_error)
{
    float values[300], sent[300], read[300];
    unsigned char data[1300];
    for (size_t i = 0; i < n; i++)
        values[i] = sent[i] = random_value(1000 + i);
    assert_int_equal(drps_values_encode(bits, sent, n, data), drps_values_bytes(bits, n));
    assert_int_equal(drps_values_decode(bits, data, n, read, NULL), 0);
    assert_memory_equal(sent, read, n * sizeof(*read));
    for (size_t i = 0; i < n; i++) {
        float most = 0;
        for (size_t k = i / DRPS_VALUES_BLOCK * DRPS_VALUES_BLOCK;
             k < n && k < (i / DRPS_VALUES_BLOCK + 1) * DRPS_VALUES_BLOCK; k++)
            most = fmaxf(most, fabsf(values[k]));
        assert_true(fabsf(read[i] - values[i]) <= most * most_error);
    }
}

static void test_values_arrive_as_they_were_sent(void **state)
{
    (void)state;
    for (size_t n = 0; n < 300; n += 37) {
        check_values(32, n, 0);
        check_values(16, n, 0x1p-11F);
        check_values(8, n, 0.50001F / 127);
    }
    float large[2] = {1e6F, -1e6F};
    unsigned char data[4];
    (void)drps_values_encode(16, large, 2, data);
    assert_true(large[0] == 65504 && large[1] == -65504);
}

static void test_values_that_are_not_finite_are_refused(void **state)
{
    static const float scales[] = {INFINITY, NAN};
    const uint16_t half = 0x7c00;
    float read;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        unsigned char data[5] = {0, 0, 0, 0, 1};
        memcpy(data, &scales[i], sizeof(scales[i]));
        assert_int_equal(drps_values_decode(8, data, 1, &read, NULL), DRPS_E_PROTO);
    }
    assert_int_equal(drps_values_decode(16, &half, 1, &read, NULL), DRPS_E_PROTO);
}

/* ---- Which values are sent ---- */

static void test_thresholds_fall_with_time(void **state)
{
    static const struct {
        double phi, decay, at[3];
    } golden[] = {{.01, 1, {.01, .00302793107, .00178406715}},
                  {3e-4, .1, {3e-4, 2.43851189e-4, 2.05406713e-4}},
                  {.027, .5, {.027, .0125505943, .00817541388}}};
    static const uint64_t t[] = {1, 10, 100};
    (void)state;
    for (size_t g = 0; g < 3; g++)
        for (size_t i = 0; i < 3; i++) {
            const struct drps_push_options o = {.phi = golden[g].phi, .decay = golden[g].decay};
            assert_true(fabs(drps_push_threshold(&o, t[i]) / golden[g].at[i] - 1) < 1e-8);
        }
}

/* A message of one row and no whole ones, and what it leaves. */
static size_t send(const struct drps_push_choice *choice, uint32_t bits, const float *h, size_t n,
                   float *rest, float *arrived)
{
    static uint32_t room[4096];
    static float values[4096];
    static unsigned char data[1 << 16];
    const uint8_t whole = 0;
    const struct drps_push_shape shape = {1, (uint32_t)n, 0};
    const struct drps_push_gradient g = {
        .grads = h, .whole = &whole, .rest = rest, .room = room, .values = values};
    struct drps_push_counts counts = {0};
    const uint32_t *touches;
    const float *grads;
    struct drps_err err = DRPS_ERR_INIT;
    const size_t bytes =
        drps_push_encode(&shape, choice, &(struct drps_push_bits){bits, 32}, &g, data, &counts);
    assert_true(bytes <= drps_push_bound(&shape));
    struct drps_push_reader *reader = drps_push_reader_new(&shape);
    if (drps_push_decode(reader, &shape, data, bytes, &grads, &touches, &err) < 0)
        fail_msg("%s", err.text);
    memcpy(arrived, grads, n * sizeof(*grads));
    drps_push_reader_free(reader);
    return counts.values - counts.zero - counts.below - counts.beyond;
}

static void test_what_is_held_back_is_sent_later(void **state)
{
    static const float g[3][6] = {{.5F, -.02F, .03F, 0, -.2F, .05F},
                                  {.1F, -.03F, .03F, .04F, 0, -.04F},
                                  {0, -.06F, .05F, .04F, .1F, 0}};
    static const float sent[3][6] = {
        {.5F, 0, 0, 0, -.2F, 0}, {.1F, 0, .06F, 0, 0, 0}, {0, -.11F, .05F, .08F, .1F, 0}};
    static const float last[6] = {0, 0, 0, 0, 0, .01F};
    static const double thresholds[3] = {.1, .059062, .047651};
    const struct drps_push_options o = {.phi = .1, .decay = 1};
    float rest[6] = {0}, h[6], arrived[6];
    (void)state;
    for (uint64_t t = 0; t < 3; t++) {
        const struct drps_push_choice choice = {.threshold = drps_push_threshold(&o, t + 1),
                                                .chance = 1};
        assert_true(fabs(choice.threshold - thresholds[t]) < 1e-6);
        for (size_t i = 0; i < 6; i++)
            h[i] = g[t][i] + rest[i];
        (void)send(&choice, 32, h, 6, rest, arrived);
        for (size_t i = 0; i < 6; i++)
            assert_true(fabsf(arrived[i] - sent[t][i]) < 1e-7F);
    }
    for (size_t i = 0; i < 6; i++)
        assert_true(fabsf(rest[i] - last[i]) < 1e-7F);
}

static int by_size(const void *a, const void *b)
{
    const float x = fabsf(*(const float *)a), y = fabsf(*(const float *)b);
    return x > y ? -1 : x < y;
}

static void test_the_largest_values_are_sent(void **state)
{
    enum { N = 1000 };
    static const double tops[] = {.001, .1, .37, .99};
    static float h[N], sorted[N], rest[N], arrived[N];
    (void)state;
    for (size_t i = 0; i < N; i++)
        h[i] = sorted[i] = random_value(i) + (random_value(i) > 0 ? 1e-6F : -1e-6F) * (float)i;
    qsort(sorted, N, sizeof(*sorted), by_size);
    for (size_t k = 0; k < 4; k++) {
        const struct drps_push_choice choice = {.top = tops[k]};
        const size_t most = (size_t)ceil(tops[k] * N);
        (void)send(&choice, 32, h, N, rest, arrived);
        for (size_t i = 0; i < N; i++) {
            const int is_sent = fabsf(h[i]) >= fabsf(sorted[most - 1]);
            assert_true(is_sent ? arrived[i] == h[i] && rest[i] == 0
                                : arrived[i] == 0 && rest[i] == h[i]);
        }
    }
}

/* The paper's random filter alone: a share is held back, the same with each run. */
static void test_chance_holds_back_a_share(void **state)
{
    enum { N = 4000 };
    static float h[N], rest[N], arrived[N], again[N];
    const struct drps_push_choice choice = {.threshold = INFINITY, .chance = .3, .seed = seed};
    (void)state;
    for (size_t i = 0; i < N; i++)
        h[i] = 1;
    const size_t sent = send(&choice, 32, h, N, rest, arrived);
    assert_true(sent > N * 65 / 100 && sent < N * 75 / 100);
    (void)send(&choice, 32, h, N, rest, again);
    assert_memory_equal(arrived, again, sizeof(arrived));
}

static void test_what_is_not_finite_is_sent_as_it_is(void **state)
{
    float h[3] = {1, NAN, -INFINITY}, rest[3], arrived[3];
    const struct drps_push_choice choice = {.threshold = .5, .chance = 1};
    (void)state;
    (void)send(&choice, 8, h, 3, rest, arrived);
    assert_memory_equal(h, arrived, sizeof(h));
    for (size_t i = 0; i < 3; i++)
        assert_true(rest[i] == 0);
}

/* ---- Messages ---- */

enum { ROWS = 40, DIM = 5, VALUES = ROWS * DIM, BYTES = 1 << 14 };

struct message {
    struct drps_push_shape shape;
    struct drps_push_bits bits;
    float grads[VALUES], rest[VALUES];
    uint32_t touches[ROWS];
    uint8_t whole[ROWS];
    unsigned char data[BYTES];
    size_t bytes;
};

static void make(struct message *m, uint64_t k)
{
    static const uint32_t bits[] = {8, 16, 32};
    static uint32_t room[VALUES + ROWS];
    static float values[VALUES];
    const struct drps_push_choice choice = {
        .threshold = k % 4 ? .01 * (double)(k % 4) : 0, .chance = 1, .top = k % 5 ? 0 : .03};
    struct drps_push_counts counts = {0};
    m->shape = (struct drps_push_shape){k % 9 ? 1 + k % ROWS : 0, DIM, k % 2 != 0};
    for (size_t i = 0; i < VALUES; i++)
        m->grads[i] = random_value(k * VALUES + i);
    for (size_t i = 0; i < ROWS; i++) {
        m->touches[i] = (uint32_t)drps_rng_at(k, i) % 1000;
        m->whole[i] = (drps_rng_at(k, i) >> 20 & k % 3) != 0;
    }
    const struct drps_push_gradient g = {m->grads, m->touches, m->whole, m->rest, room, values};
    m->bits = (struct drps_push_bits){bits[k % 3], bits[k / 3 % 3]};
    m->bytes = drps_push_encode(&m->shape, &choice, &m->bits, &g, m->data, &counts);
    assert_true(m->bytes <= drps_push_bound(&m->shape) && m->bytes <= BYTES);
}

/* What has arrived and what is held back are the gradient. */
static void check_message(struct drps_push_reader *reader, const struct message *m)
{
    const uint32_t *touches;
    const float *grads, *rest[2] = {m->rest, m->rest};
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_push_decode(reader, &m->shape, m->data, m->bytes, &grads, &touches, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < m->shape.rows; i++)
        if (!m->whole[i]) rest[1] += DIM; /* those of whole rows lie behind the others */
    for (size_t i = 0; i < m->shape.rows; i++) {
        const int is_exact = m->whole[i] && m->bits.whole == 32;
        for (size_t d = 0; d < DIM; d++) {
            const float is = grads[i * DIM + d], was = m->grads[i * DIM + d];
            const float held = is_exact ? 0 : rest[m->whole[i]][d];
            assert_true(is_exact ? is == was : fabsf(is + held - was) <= fabsf(was) * 1e-6F);
        }
        rest[m->whole[i]] += DIM;
    }
    if (m->shape.touches)
        assert_memory_equal(touches, m->touches, m->shape.rows * sizeof(*touches));
}

static void test_messages_arrive(void **state)
{
    static struct message m;
    const struct drps_push_shape most = {ROWS, DIM, 1};
    struct drps_push_reader *reader = drps_push_reader_new(&most);
    (void)state;
    for (uint64_t k = 0; k < 2000; k++) {
        make(&m, k);
        check_message(reader, &m);
    }
    drps_push_reader_free(reader);
}

/* ---- Marks ---- */

enum { MARKS_MOST = 3000 };

static void check_marks(const uint32_t *list, size_t n, size_t end)
{
    static uint32_t out[MARKS_MOST];
    unsigned char *data = malloc(drps_marks_bound(end));
    struct drps_marks marks;
    const size_t bytes = drps_marks_encode(list, n, end, data);
    assert_true(bytes <= drps_marks_bound(end));
    for (size_t cut = 0; cut < bytes; cut++) {
        unsigned char *exact = malloc(cut + 1);
        memcpy(exact + 1, data, cut);
        assert_int_equal(drps_marks_decode(exact + 1, cut, end, out, &marks), -1);
        free(exact);
    }
    assert_int_equal(drps_marks_decode(data, bytes, end, out, &marks), 0);
    assert_int_equal(marks.n, n);
    assert_int_equal(marks.bytes, bytes);
    assert_int_equal(marks.all, n && n == end);
    if (n < end && n) assert_memory_equal(out, list, n * sizeof(*list));
    if (n && n < end) assert_int_equal(drps_marks_decode(data, bytes, n - 1, out, &marks), -1);
    free(data);
}

static void test_marks_arrive_in_few_bits(void **state)
{
    static uint32_t list[MARKS_MOST];
    (void)state;
    for (uint64_t k = 0; k < 600; k++) {
        const size_t end = drps_rng_at(seed, k) % (k % 7 ? 200 : MARKS_MOST);
        const double share = pow(2, -(double)(k % 11));
        size_t n = 0;
        for (size_t i = 0; i < end; i++)
            if (drps_unit_double(drps_rng_at(k, i)) < share) list[n++] = (uint32_t)i;
        check_marks(list, n, end);
    }
    for (uint32_t i = 0; i < MARKS_MOST / 50; i++)
        list[i] = 50 * i + 49;
    unsigned char data[MARKS_MOST];
    assert_int_equal(drps_marks_encode(list, MARKS_MOST / 50, MARKS_MOST, data),
                     2 + 60 * 7 / 8 + 1);
}

static void test_marks_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *name;
        unsigned char data[16];
        size_t bytes, end;
    } cases[] = {
        {"nothing", {0}, 0, 3},
        {"no count", {0}, 1, 3},
        {"a count without an end", {0, 0x80}, 2, 3},
        {"a count of more than 32 bits", {32, 0x80, 0x80, 0x80, 0x80, 0x10, 1}, 7, 3},
        {"a count of six bytes", {32, 0x81, 0x80, 0x80, 0x80, 0x80, 0, 1}, 8, 3},
        {"more than there are", {32, 4, 15}, 3, 3},
        {"packed in no known way", {35, 1, 1}, 3, 3},
        {"a bit behind the end", {32, 1, 8}, 3, 3},
        {"more bits than there are numbers", {32, 1, 3}, 3, 3},
        {"fewer bits", {32, 2, 1}, 3, 3},
        {"a gap without an end", {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 12, 3000},
        {"a gap behind the end", {0, 1, 8}, 3, 3},
        {"a gap of more than 32 bits", {31, 1, 0x10, 0, 0, 0, 0, 0}, 8, 3000},
    };
    uint32_t out[MARKS_MOST];
    struct drps_marks marks;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (drps_marks_decode(cases[i].data, cases[i].bytes, cases[i].end, out, &marks) != -1)
            fail_msg("%s: taken", cases[i].name);
}

/* A damaged message is refused, or is another one: nothing beyond it is touched. */
static void test_damaged_messages_are_refused(void **state)
{
    static struct message m;
    const struct drps_push_shape most = {ROWS, DIM, 1};
    struct drps_push_reader *reader = drps_push_reader_new(&most);
    const uint32_t *touches;
    const float *grads;
    (void)state;
    for (uint64_t k = 0; k < 400; k++) {
        make(&m, k);
        for (size_t cut = 0; cut < m.bytes; cut++) {
            unsigned char *exact = malloc(cut + 1); /* a sanitizer sees what lies beyond */
            memcpy(exact + 1, m.data, cut);
            assert_int_equal(
                drps_push_decode(reader, &m.shape, exact + 1, cut, &grads, &touches, NULL),
                DRPS_E_PROTO);
            free(exact);
        }
        for (uint64_t i = 0; i < 100; i++) {
            const uint64_t x = drps_rng_at(k, 7000 + i);
            unsigned char *exact = malloc(m.bytes);
            memcpy(exact, m.data, m.bytes);
            exact[x % (i % 2          ? m.bytes
                       : m.bytes < 24 ? m.bytes
                                      : 24)] ^= (unsigned char)(1U << (x >> 32) % 8);
            const int rc =
                drps_push_decode(reader, &m.shape, exact, m.bytes, &grads, &touches, NULL);
            assert_true(rc == 0 || rc == DRPS_E_PROTO);
            free(exact);
        }
    }
    drps_push_reader_free(reader);
}

/* Rows 2 and 5 of 6, of two values each; then what does not fit 6 rows. */
static void test_what_was_held_back_arrives(void **state)
{
    uint32_t rows[2] = {2, 5}, rows_out[6];
    float values[4] = {1, 2, 3, 4}, values_out[12];
    unsigned char data[64];
    const struct drps_held held = {rows, values, 2};
    struct drps_held out = {rows_out, values_out, 0};
    const size_t bytes = drps_held_encode(&held, 2, data);
    (void)state;
    assert_int_equal(drps_held_decode(data, bytes, 6, 2, &out, NULL), 0);
    assert_int_equal(out.n, 2);
    assert_memory_equal(rows_out, rows, sizeof(rows));
    assert_memory_equal(values_out, values, sizeof(values));
    assert_int_equal(drps_held_decode(data, bytes, 5, 2, &out, NULL), DRPS_E_PROTO);
    assert_int_equal(drps_held_decode(data, bytes, 1, 2, &out, NULL), DRPS_E_PROTO);
    assert_int_equal(drps_held_decode(data, bytes, 6, 1, &out, NULL), DRPS_E_PROTO);
    for (size_t n = 0; n < bytes; n++) {
        unsigned char *cut = malloc(n + 1);
        memcpy(cut, data, n);
        assert_int_equal(drps_held_decode(cut, n, 6, 2, &out, NULL), DRPS_E_PROTO);
        free(cut);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float16_is_nearest_ties_to_even),
        cmocka_unit_test(test_values_arrive_as_they_were_sent),
        cmocka_unit_test(test_values_that_are_not_finite_are_refused),
        cmocka_unit_test(test_thresholds_fall_with_time),
        cmocka_unit_test(test_what_is_held_back_is_sent_later),
        cmocka_unit_test(test_the_largest_values_are_sent),
        cmocka_unit_test(test_chance_holds_back_a_share),
        cmocka_unit_test(test_what_is_not_finite_is_sent_as_it_is),
        cmocka_unit_test(test_messages_arrive),
        cmocka_unit_test(test_marks_arrive_in_few_bits),
        cmocka_unit_test(test_marks_that_are_none_are_refused),
        cmocka_unit_test(test_damaged_messages_are_refused),
        cmocka_unit_test(test_what_was_held_back_arrives),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
