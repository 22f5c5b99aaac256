/*
 * Messages of filtered pulls as a worker reads them: whole ones, and what a peer may send in their
 * place.
 *
 *   test_rounds_pull [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/published/drps_rowvalues.h"
#include "engine/cluster/rounds_internal.h"
#include "support/world.h"

enum { ROWS = 70, WORDS = 2, DIM = 5 };

static uint64_t seed = 20240614, drawn;

static uint64_t draw(uint64_t n)
{
    return drps_rng_at(seed, drawn++) % n;
}

/* A worker that has a copy, of value i, of each third row i. */
struct side {
    struct world *world;
    struct drps_plan *part;
    struct drps_model model;
    struct drps_worker worker;
    struct drps_rounds rounds;
};

static int has_copy(size_t i)
{
    return i % 3 == 0;
}

static void give_copies(struct drps_copies *c)
{
    float params[ROWS][DIM];
    struct drps_residual_rows *rows = drps_copies_rows(c);
    rows->n = ROWS;
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0; k < DIM; k++)
            params[i][k] = (float)i;
        rows->slot[i] = i;
        rows->whole[i] = !has_copy(i);
    }
    drps_copies_begin(c);
    drps_copies_keep(c, params[0], ROWS, 0);
    memset(rows->whole, 0, ROWS);
    drps_copies_begin(c);
}

static struct side *begin(uint32_t bits)
{
    struct side *s = calloc(1, sizeof(*s));
    const struct drps_pull_options options = {.on = 1, .bits = bits};
    s->world = world_begin_residuals("lmf", CASE_RATINGS, 32, UINT64_MAX, seed);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), s->world->plan, 0, &s->part, NULL), 0);
    const struct drps_pull_job job = {
        .plan = s->part, .options = &options, .epoch = 1, .epochs = 1};
    assert_int_equal(drps_pull_open(&job, &s->rounds.o.pull, NULL), 0);
    s->model = (struct drps_model){.dim = DIM, .factors = DIM - 1, .seed = seed, .init_scale = .1F};
    s->worker.model = &s->model;
    s->rounds.dim = DIM;
    s->rounds.o.worker = &s->worker;
    s->rounds.worker.copies = drps_copies_new(ROWS, DIM, ROWS);
    give_copies(s->rounds.worker.copies);
    return s;
}

static void end(struct side *s)
{
    drps_copies_free(s->rounds.worker.copies);
    drps_pull_close(s->rounds.o.pull);
    drps_plan_close(s->part);
    world_end(s->world);
    free(s);
}

static uint32_t tag_of(uint32_t bits)
{
    return DRPS_MESSAGE_COPIES | (bits == 16 ? DRPS_MESSAGE_16BIT : 0) |
           (bits == 8 ? DRPS_MESSAGE_8BIT : 0);
}

/* All copies left out; the other rows are -1, -2, ... Returns the bytes. */
static size_t write_message(uint32_t bits, unsigned char *data)
{
    unsigned char *at = data + WORDS * sizeof(uint64_t);
    memset(data, 0, WORDS * sizeof(uint64_t));
    for (size_t i = 0; i < ROWS; i++) {
        if (has_copy(i)) {
            data[i / 8] |= (unsigned char)(1U << i % 8);
            continue;
        }
        float row[DIM];
        for (uint32_t k = 0; k < DIM; k++)
            row[k] = -(float)i;
        drps_rowvalues_write(bits, row, DIM, at);
        at += drps_rowvalues_bytes(bits, DIM);
    }
    return (size_t)(at - data);
}

/* Read a message of which no byte lies behind `bytes`. Returns how many rows came, or -1. */
static int read_message(const struct side *s, const unsigned char *data, size_t bytes, uint32_t tag,
                        float out[ROWS][DIM])
{
    struct rounds_reader reader;
    unsigned char *copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    unsigned char *exact = realloc(copy, bytes ? bytes : 1);
    int rows = -1;
    if (drps_rounds_read(&s->rounds, exact, bytes, ROWS, tag, &reader) == 0)
        for (rows = 0; rows < ROWS; rows++)
            if (drps_rounds_next_row(&s->rounds, &reader, (size_t)rows, out[rows]) < 0) break;
    free(exact);
    return rows;
}

static void check_bits(uint32_t bits)
{
    struct side *s = begin(bits);
    unsigned char data[WORDS * 8 + ROWS * DIM * 4 + 1], bad[sizeof(data)];
    float rows[ROWS][DIM];
    const uint32_t tag = tag_of(bits);
    const size_t n = write_message(bits, data);
    assert_int_equal(read_message(s, data, n, tag, rows), ROWS);
    for (size_t i = 0; i < ROWS; i++)
        for (uint32_t k = 0; k < DIM; k++)
            assert_true(rows[i][k] == (has_copy(i) ? (float)i : -(float)i));

    /* Of another length, with a mark of no row, with a row left out of which there is no copy. */
    for (size_t less = 1; less <= n; less += less < 20 ? 1 : 17)
        assert_int_equal(read_message(s, data, n - less, tag, rows), -1);
    assert_int_equal(read_message(s, data, n + 1, tag, rows), -1);
    memcpy(bad, data, n);
    bad[ROWS / 8] |= (unsigned char)(1U << ROWS % 8);
    assert_int_equal(read_message(s, bad, n - drps_rowvalues_bytes(bits, DIM), tag, rows), -1);
    memcpy(bad, data, n);
    bad[0] |= 1U << 4;
    assert_int_equal(read_message(s, bad, n - drps_rowvalues_bytes(bits, DIM), tag, rows), 4);

    /* In a round whose pulls are not filtered. */
    struct drps_copies *copies = s->rounds.worker.copies;
    s->rounds.worker.copies = NULL;
    assert_int_equal(read_message(s, data, n, tag, rows), -1);
    s->rounds.worker.copies = copies;

    for (int i = 0; i < 20000 / DRPS_TEST_ONE_IN; i++) {
        memcpy(bad, data, n);
        for (uint64_t k = 1 + draw(4); k; k--)
            bad[draw(n)] ^= (unsigned char)(1U << draw(8));
        (void)read_message(s, bad, (size_t)(draw(3) ? n : draw(n + 1)), (uint32_t)draw(256), rows);
    }
    end(s);
}

static void test_what_a_message_says_is_checked(void **state)
{
    (void)state;
    check_bits(32);
    check_bits(16);
    check_bits(8);
}

static void test_no_short_value_is_infinite(void **state)
{
    struct side *s = begin(16);
    unsigned char data[WORDS * 8 + ROWS * DIM * 4];
    float rows[ROWS][DIM];
    (void)state;
    const size_t n = write_message(16, data);
    data[WORDS * 8 + 1] = 0x7c;
    data[WORDS * 8] = 0;
    assert_int_equal(read_message(s, data, n, tag_of(16), rows), 1);
    end(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_message_says_is_checked),
        cmocka_unit_test(test_no_short_value_is_infinite),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
