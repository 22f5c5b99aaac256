/*
 * Messages that leave out rows which nobody has trained: random ones come back as they were, and
 * those that do not fit are refused.
 *
 *   test_fresh [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/drps_fresh.h"

enum { ROWS = 1000, FIRST_ROW = 70, MOST_DIM = 4 };

static uint64_t seed = 3, drawn;

static uint64_t draw(uint64_t n)
{
    return drps_rng_at(seed, drawn++) % n;
}

/* A server of rows that are all fresh. */
struct side {
    struct drps_plan part;
    struct drps_server server;
    struct drps_fresh *fresh;
};

static void open_side(struct side *k, uint32_t factors, int intercept, uint64_t first_row)
{
    *k = (struct side){.part.info.rows = ROWS};
    k->server.first_row = first_row;
    k->server.model = (struct drps_model){.factors = factors,
                                          .dim = factors + 1,
                                          .has_bias = intercept,
                                          .bias_start = 0.5f,
                                          .seed = seed};
    assert_int_equal(drps_fresh_open(&k->part, &k->server, 0, &k->fresh, NULL), 0);
}

/* Some rows: their numbers, frames, and values as the store has them; stepped ones are not as they
 * began. */
struct rows {
    uint32_t ids[ROWS], frames[ROWS], kept[ROWS];
    float values[ROWS][MOST_DIM];
    size_t n;
};

static void draw_rows(struct side *k, struct rows *r, uint64_t one_in)
{
    const struct drps_model *model = &k->server.model;
    r->n = 0;
    for (uint32_t id = 0; id < ROWS; id++) {
        if (draw(one_in)) continue;
        const size_t i = r->n++;
        r->ids[i] = id;
        r->frames[i] = (uint32_t)i; /* where its values are */
        drps_model_init_row(model, k->server.first_row + id, r->values[i]);
        if (draw(2)) continue;
        drps_fresh_step(k->fresh, &id, 1);
        for (uint32_t d = 0; d < model->dim; d++)
            r->values[i][d] = (float)draw(1000) - 500;
    }
    memcpy(r->kept, r->frames, sizeof(r->kept));
}

/* What a server sends of them; returns the bytes. */
static size_t write_message(const struct side *k, struct rows *r, unsigned char *data, int *packed)
{
    const size_t row = k->server.model.dim * sizeof(float);
    size_t n = r->n, at = drps_fresh_pack(k->fresh, r->ids, r->kept, &n,
                                          k->server.model.dim * sizeof(float), data);
    *packed = at > 0;
    for (size_t i = 0; i < n; i++, at += row)
        memcpy(data + at, r->values[r->kept[i]], row);
    return at;
}

/* The model becomes that of a net, whose parameters begin as random numbers in rows 0 to 41 where a
 * row is one float. */
static void make_net(struct side *k)
{
    struct drps_model *m = &k->server.model;
    struct drps_err err = DRPS_ERR_INIT;
    const char *text = m->factors == 3   ? "x = bag 3\nh = full 8 x\nscore = full 1 h"
                       : m->factors == 2 ? "x = bag 2\nh = full 8 x\nscore = full 1 h"
                       : m->factors      ? "x = bag 1\nh = full 8 x\nscore = full 1 h"
                                         : "x = numbers 3\nh = full 8 x\nscore = full 1 h";
    m->algo = DRPS_ALGO_NET;
    m->has_bias = 1;
    if (drps_layers_parse(&m->layers, text, &err) < 0 ||
        drps_layers_shape(&m->layers, 3, 1, &err) < 0)
        fail_msg("%s", err.text);
}

static void check_round_trip(uint32_t factors, int intercept, int net, uint64_t first_row,
                             uint64_t one_in)
{
    static struct rows r;
    static unsigned char data[ROWS * (MOST_DIM + 1) * sizeof(float)];
    struct drps_fresh_reader reader;
    struct side k;
    int packed;
    open_side(&k, factors, intercept, first_row);
    if (net) make_net(&k);
    draw_rows(&k, &r, one_in);
    const size_t row = k.server.model.dim * sizeof(float);
    const size_t bytes = write_message(&k, &r, data, &packed);
    assert_true(packed ? bytes < r.n * row : bytes == r.n * row);
    assert_int_equal(drps_fresh_read(&k.server.model, data, bytes, r.n,
                                     k.server.model.dim * sizeof(float), packed, &reader),
                     0);
    for (size_t i = 0; i < r.n; i++) {
        float got[MOST_DIM];
        drps_fresh_next(&reader, (char *)got);
        if (memcmp(got, r.values[i], row) != 0)
            fail_msg("seed %llu: row %zu of %zu, %u factors", (unsigned long long)seed, i, r.n,
                     factors);
    }
    /* One byte more or less, one row more or less: none of them fits. */
    for (int more = -1; more <= 1; more += 2) {
        if (bytes || more > 0)
            assert_int_equal(drps_fresh_read(&k.server.model, data, bytes + (size_t)more, r.n,
                                             k.server.model.dim * sizeof(float), packed, &reader),
                             -1);
        if (r.n && r.n % 64 && (r.n + (size_t)more) % 64)
            assert_int_equal(drps_fresh_read(&k.server.model, data, bytes, r.n + (size_t)more,
                                             k.server.model.dim * sizeof(float), packed, &reader),
                             -1);
    }
    drps_fresh_close(k.fresh);
}

static void test_fresh_messages_come_back_as_they_were(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++)
        check_round_trip((uint32_t)draw(MOST_DIM), (int)draw(2), (int)draw(2),
                         draw(2) * draw(FIRST_ROW), 1 + draw(40));
}

/* The intercept of a model without factors begins as something, which marks cannot say. */
static void test_the_intercept_without_factors_travels(void **state)
{
    enum { SOME = 200 };
    uint32_t ids[SOME], index[SOME];
    unsigned char data[SOME * sizeof(float)];
    (void)state;
    for (int at_zero = 0; at_zero < 2; at_zero++) {
        struct side k;
        size_t n = SOME;
        for (uint32_t i = 0; i < SOME; i++)
            ids[i] = index[i] = i;
        open_side(&k, 0, 1, at_zero ? 0 : FIRST_ROW);
        assert_int_equal(
            drps_fresh_pack(k.fresh, ids, index, &n, k.server.model.dim * sizeof(float), data),
            (SOME + 63) / 64 * 8);
        assert_int_equal(n, at_zero);
        assert_int_equal(data[0], at_zero ? 0xfe : 0xff);
        drps_fresh_close(k.fresh);
    }
}

/* Marks that would cost more than they save are left out. */
static void test_few_fresh_rows_are_sent(void **state)
{
    enum { SOME = 130 }; /* 24 bytes of marks */
    uint32_t ids[SOME], index[SOME];
    unsigned char data[SOME * sizeof(float)];
    (void)state;
    for (uint32_t left = 6; left <= 7; left++) { /* fresh rows, of 4 bytes */
        struct side k;
        size_t n = SOME;
        for (uint32_t i = 0; i < SOME; i++)
            ids[i] = index[i] = i;
        open_side(&k, 0, 0, 0);
        drps_fresh_step(k.fresh, ids, SOME - left);
        assert_int_equal(
            drps_fresh_pack(k.fresh, ids, index, &n, k.server.model.dim * sizeof(float), data),
            left > 6 ? 24 : 0);
        assert_int_equal(n, left > 6 ? SOME - left : SOME);
        drps_fresh_close(k.fresh);
    }
}

static void test_fresh_marks_beyond_the_rows_are_refused(void **state)
{
    const struct drps_model model = {.dim = 1};
    unsigned char data[16] = {0xff, 0x03}; /* ten rows */
    struct drps_fresh_reader reader;
    (void)state;
    assert_int_equal(drps_fresh_read(&model, data, 8, 10, model.dim * sizeof(float), 1, &reader),
                     0);
    assert_int_equal(drps_fresh_read(&model, data, 8, 9, model.dim * sizeof(float), 1, &reader),
                     -1);
    assert_int_equal(drps_fresh_read(&model, data, 12, 11, model.dim * sizeof(float), 1, &reader),
                     0);
    assert_int_equal(drps_fresh_read(&model, data, 7, 10, model.dim * sizeof(float), 1, &reader),
                     -1);
    assert_int_equal(drps_fresh_read(&model, data, 0, 0, model.dim * sizeof(float), 1, &reader), 0);
}

static void test_rows_of_others_are_refused(void **state)
{
    const uint32_t ids[] = {0, ROWS - 1, ROWS};
    uint32_t out[3];
    struct drps_err err = DRPS_ERR_INIT;
    struct side k;
    (void)state;
    open_side(&k, 0, 0, 0);
    const struct drps_feed_union fits = {.ids = ids, .n = 2}, beyond = {.ids = ids, .n = 3};
    assert_int_equal(drps_fresh_list(k.fresh, 5, &fits, out, &err), 0);
    assert_int_equal(out[1], ROWS - 1);
    assert_int_equal(drps_fresh_list(k.fresh, 5, &beyond, out, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "round 5 has row 1000 of 1000"));
    drps_fresh_close(k.fresh);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh_messages_come_back_as_they_were),
        cmocka_unit_test(test_the_intercept_without_factors_travels),
        cmocka_unit_test(test_few_fresh_rows_are_sent),
        cmocka_unit_test(test_rows_of_others_are_refused),
        cmocka_unit_test(test_fresh_marks_beyond_the_rows_are_refused),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    print_message("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
