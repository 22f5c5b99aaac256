/*
 * What servers publish: thresholds, short values, and a model of the protocol with random workers,
 * steps and restarts, whose recorded uses a checker goes through: each value that a worker computes
 * with must be the one that was published last. The paper's rule of stamps does not stand this.
 *
 *   test_published [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/cluster/published/drps_copies.h"
#include "engine/cluster/published/drps_published.h"
#include "engine/cluster/published/drps_rowvalues.h"

static uint64_t seed = 20240612, drawn;

static uint64_t draw(uint64_t n)
{
    return drps_rng_at(seed, drawn++) % n;
}

static float draw_value(void)
{
    const uint64_t x = drps_rng_at(seed, drawn++);
    return (x & 1 ? 1.0F : -1.0F) * ldexpf(drps_unit_float(x), (int)(x >> 1 & 7) - 6);
}

/* ---- Thresholds ---- */

static void test_threshold_golden(void **state)
{
    static const struct {
        double psi, d, at[3]; /* of rounds 1, 10 and 100 */
    } golden[] = {{.01, 1, {.01, .00302793107, .00178406715}},
                  {3e-4, .1, {3e-4, 2.43851189e-4, 2.05406713e-4}},
                  {.027, .5, {.027, .0125505943, .00817541388}}};
    static const uint64_t rounds[3] = {1, 10, 100};
    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            const struct drps_pull_options o = {.psi = golden[i].psi, .decay = golden[i].d};
            const double t = drps_published_threshold(&o, rounds[k]);
            if (!(fabs(t - golden[i].at[k]) < 1e-8 * golden[i].at[k]))
                fail_msg("psi %g, d %g, round %d: %.9g", o.psi, o.decay, (int)rounds[k], t);
        }
}

/* ---- Short values ---- */

enum { DIM_MOST = 20 };

static void check_row(uint32_t bits, const float *row, uint32_t dim, double most_error)
{
    unsigned char data[DIM_MOST * 4 + 1];
    float rounded[DIM_MOST], arrived[DIM_MOST], most = 0;
    memcpy(rounded, row, dim * sizeof(*row));
    assert_int_equal(drps_rowvalues_round(bits, rounded, dim), 1);
    for (uint32_t k = 0; k < dim; k++)
        most = fmaxf(most, fabsf(row[k]));
    for (uint32_t k = 0; k < dim; k++)
        if (!(fabs((double)rounded[k] - (double)row[k]) <= most_error * (double)most))
            fail_msg("%u bits: %.9g became %.9g", bits, (double)row[k], (double)rounded[k]);
    drps_rowvalues_write(bits, rounded, dim, data);
    assert_int_equal(drps_rowvalues_read(bits, data, dim, arrived), 0);
    assert_memory_equal(arrived, rounded, dim * sizeof(*rounded));
    assert_int_equal(drps_rowvalues_round(bits, rounded, dim), 1);
    assert_memory_equal(arrived, rounded, dim * sizeof(*rounded));
}

static void test_rounded_rows_arrive_as_they_are(void **state)
{
    (void)state;
    assert_int_equal(drps_rowvalues_bytes(32, 17), 68);
    assert_int_equal(drps_rowvalues_bytes(16, 17), 34);
    assert_int_equal(drps_rowvalues_bytes(8, 17), 18);
    for (int i = 0; i < 20000; i++) {
        float row[DIM_MOST];
        const uint32_t dim = 1 + (uint32_t)draw(DIM_MOST);
        const int scale = (int)draw(250) - 125;
        for (uint32_t k = 0; k < dim; k++)
            row[k] = draw(8) ? ldexpf(draw_value(), scale) : 0;
        check_row(32, row, dim, 0);
        if (scale < 110 && scale > -110) check_row(8, row, dim, 1 / 127.0);
        for (uint32_t k = 0; k < dim; k++)
            row[k] = draw_value();
        check_row(16, row, dim, 0x1p-11);
    }
}

static void test_rows_at_the_ends(void **state)
{
    float most[2] = {3.4e38F, -3.4e38F}, least[2] = {1e-45F, -1e-40F}, round_up[2] = {255.9F, 1};
    float odd[2] = {NAN, 1}, copy[2] = {NAN, 1};
    const unsigned char beyond[2] = {255, 127}, infinite[2] = {0, 0x7c};
    float out[2];
    (void)state;
    check_row(8, most, 2, 1 / 127.0);
    check_row(8, least, 2, 1);
    check_row(8, round_up, 2, 1 / 127.0);
    check_row(16, most, 2, 1); /* as far as float16 goes */
    assert_int_equal(drps_rowvalues_round(8, odd, 2), 0);
    assert_memory_equal(odd, copy, sizeof(odd));
    assert_int_equal(drps_rowvalues_read(8, beyond, 1, out), -1);
    assert_int_equal(drps_rowvalues_read(16, infinite, 1, out), -1);
}

/* ---- Rows stay exact ---- */

/* A thousand small steps. What the paper prints keeps a new value only if it differs enough from
 * the one before: then none of them counts. */
static void test_small_steps_are_not_lost(void **state)
{
    static const uint32_t all_bits[] = {32, 16};
    const double psi = .01;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct drps_pull_options o = {.on = 1, .bits = all_bits[i], .psi = psi, .eps = .01};
        struct drps_published *p = drps_published_new(&o, 1, 1, 2);
        float theta = 1, printed = 1, used = *drps_published_send(p, 0, 1, 1, &theta);
        unsigned sent = 0;
        for (int t = 1; t <= 1000; t++) {
            const float step = 0x1p-12F, next = printed + step;
            theta += step;
            if (fabsf(next - printed) >= (float)psi * printed) printed = next;
            drps_published_step(p, 0, &theta, psi);
            if (!drps_published_has(p, 0, 1))
                sent++, used = *drps_published_send(p, 0, 1, 1, &theta);
            assert_true(fabsf(theta - used) < (float)psi * used);
        }
        assert_true(theta == 1 + 1000 * 0x1p-12F); /* 1.244 */
        assert_true(printed == 1);
        assert_in_range(sent, 15, 30);
        drps_published_free(p);
    }
}

/* ---- A model of the protocol ---- */

enum { WORKERS = 5, ROWS = 60, DIM = 2, STALENESS = 8, EVENTS = 1000000 / DRPS_TEST_ONE_IN };

enum rule { OURS, PAPERS };

/* What the checker knows: of each row what was published last, and who has a copy of that. */
struct checker {
    struct drps_pull_options options;
    float last[ROWS][DIM];
    int is_valid[ROWS];
    uint32_t copies[ROWS];
    uint64_t uses, stale, kept;
};

static void rounded(const struct checker *c, const float *theta, float *out)
{
    memcpy(out, theta, DIM * sizeof(*out));
    (void)drps_rowvalues_round(c->options.bits, out, DIM);
}

static void see_step(struct checker *c, uint32_t row, const float *theta, double threshold)
{
    float now[DIM];
    int far = 0;
    rounded(c, theta, now);
    for (uint32_t k = 0; k < DIM; k++)
        far |= fabs((double)theta[k] - (double)c->last[row][k]) >=
               threshold * fmax(fabs((double)c->last[row][k]), c->options.eps);
    if (far && memcmp(now, c->last[row], sizeof(now)) != 0) c->is_valid[row] = 0;
}

static void see_use(struct checker *c, uint32_t row, uint32_t worker, int keeps, const float *used,
                    const float *theta)
{
    float now[DIM];
    rounded(c, theta, now);
    if (!c->is_valid[row]) c->copies[row] = 0;
    if (!c->copies[row]) memcpy(c->last[row], now, sizeof(now));
    c->is_valid[row] = 1;
    c->uses++;
    c->stale += memcmp(used, c->last[row], sizeof(now)) != 0;
    c->copies[row] = keeps ? c->copies[row] | 1U << worker : c->copies[row] & ~(1U << worker);
}

struct model {
    enum rule rule;
    struct checker checker;
    struct drps_published *published;
    float theta[ROWS][DIM];
    float copy[WORKERS][ROWS][DIM];
    int has[WORKERS][ROWS];
    uint64_t clock[WORKERS], stamp[ROWS], refused;
};

static void restart_server(struct model *m)
{
    drps_published_free(m->published);
    m->published = drps_published_new(&m->checker.options, ROWS, DIM, WORKERS);
    memset(m->checker.copies, 0, sizeof(m->checker.copies));
}

/* The paper's rule: rows whose version is that of the worker's last round or later are sent. */
static int papers_sends(uint64_t version, uint64_t w)
{
    return version >= w;
}

static int is_sent(const struct model *m, uint32_t row, uint32_t worker)
{
    if (m->rule == OURS) return !drps_published_has(m->published, row, worker);
    return !m->has[worker][row] ||
           papers_sends(m->stamp[row], m->clock[worker] ? m->clock[worker] - 1 : 0);
}

/* Returns whether the worker goes on. */
static int use(struct model *m, uint32_t row, uint32_t worker)
{
    const int keeps = draw(10) != 0;
    float *copy = m->copy[worker][row], *theta = m->theta[row];
    if (is_sent(m, row, worker)) {
        const float *sent =
            m->rule == OURS ? drps_published_send(m->published, row, worker, keeps, theta) : theta;
        memcpy(copy, sent, sizeof(m->copy[worker][row]));
    } else if (!m->has[worker][row]) {
        return 0;
    } else {
        m->checker.kept++;
        if (m->rule == OURS) (void)drps_published_leave_out(m->published, row, worker, keeps);
    }
    m->has[worker][row] = keeps;
    see_use(&m->checker, row, worker, keeps, copy, theta);
    return 1;
}

static void step(struct model *m, uint32_t row, uint32_t worker, double threshold)
{
    for (uint32_t k = 0; k < DIM; k++)
        if (draw(3)) m->theta[row][k] += draw_value() * .01F;
    m->stamp[row] = m->clock[worker];
    see_step(&m->checker, row, m->theta[row], threshold);
    if (m->rule == OURS) drps_published_step(m->published, row, m->theta[row], threshold);
}

static uint32_t next_worker(const struct model *m)
{
    uint64_t least = UINT64_MAX;
    uint32_t w;
    for (w = 0; w < WORKERS; w++)
        if (m->clock[w] < least) least = m->clock[w];
    do
        w = (uint32_t)draw(WORKERS);
    while (m->clock[w] > least + STALENESS);
    return w;
}

/* A worker that was restarted has no copies; that its server does not know yet. What it is not sent
 * then it refuses, and all ranks start anew. */
static void restart(struct model *m, uint32_t worker)
{
    if (draw(2)) {
        restart_server(m);
        return;
    }
    memset(m->has[worker], 0, sizeof(m->has[worker]));
    for (uint32_t row = 0; row < ROWS && m->rule == OURS; row++)
        if (!use(m, row, worker)) {
            m->refused++;
            break;
        }
    restart_server(m);
    memset(m->has, 0, sizeof(m->has));
}

static struct checker play(enum rule rule, const struct drps_pull_options *o, int restarts,
                           uint64_t *refused_out)
{
    struct model m = {.rule = rule, .checker.options = *o};
    restart_server(&m);
    while (m.checker.uses < EVENTS) {
        const uint32_t w = next_worker(&m);
        const double threshold = drps_published_threshold(o, m.clock[w] + 1);
        uint32_t rows[8];
        const size_t n = 1 + (size_t)draw(8);
        for (size_t i = 0; i < n; i++) {
            rows[i] = (uint32_t)draw(ROWS);
            if (!use(&m, rows[i], w)) fail_msg("row %u was left out without a copy", rows[i]);
        }
        for (size_t i = 0; i < n; i++)
            if (draw(2)) step(&m, rows[i], w, threshold);
        m.clock[w]++;
        if (restarts && !draw(500)) restart(&m, (uint32_t)draw(WORKERS));
    }
    drps_published_free(m.published);
    *refused_out = m.refused;
    return m.checker;
}

static void test_no_use_is_stale(void **state)
{
    static const struct drps_pull_options options[] = {
        {.on = 1, .bits = 32},
        {.on = 1, .bits = 32, .psi = .05, .decay = .1, .eps = .1},
        {.on = 1, .bits = 16, .psi = .2, .eps = .01},
        {.on = 1, .bits = 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        uint64_t refused;
        const struct checker c = play(OURS, &options[i], 1, &refused);
        assert_int_equal(c.stale, 0);
        assert_true(c.kept > c.uses / 20);
        assert_true(refused > 0);
    }
}

static void test_the_papers_stamps_are_stale(void **state)
{
    static const uint64_t versions[] = {15, 3, 15, 14, 15, 7, 15, 11, 15, 1};
    const struct drps_pull_options exact = {.on = 1, .bits = 32};
    struct drps_published *p = drps_published_new(&exact, 10, 1, 2);
    uint64_t refused, now[10];
    (void)state;
    for (uint32_t row = 0; row < 10; row++) /* its golden example */
        assert_int_equal(papers_sends(versions[row], 15), row % 2 == 0);
    memcpy(now, versions, sizeof(now));
    now[1] = now[4] = now[9] = 16;
    for (uint32_t row = 0; row < 10; row++)
        assert_int_equal(papers_sends(now[row], 16), row == 1 || row == 4 || row == 9);

    /* A worker that is in round 12 still changes row 3 after that. */
    float three = 3;
    (void)drps_published_send(p, 3, 1, 1, &three);
    three = 3.5F;
    drps_published_step(p, 3, &three, 0);
    assert_false(papers_sends(12, 16));
    assert_false(drps_published_has(p, 3, 1));
    drps_published_free(p);

    const struct checker c = play(PAPERS, &exact, 0, &refused);
    assert_true(c.stale > c.uses / 10);
}

/* ---- Copies ---- */

/* A slot goes to another row of the batch in which its row is used the last time. */
static void test_copies_move_with_their_slots(void **state)
{
    struct drps_copies *c = drps_copies_new(2, 1, 3);
    struct drps_residual_rows *rows = drps_copies_rows(c);
    static const struct {
        uint32_t slot[3];
        uint8_t whole[3];
        float params[4]; /* row 1 is the rank's own */
        float copies[3]; /* 0: none */
    } batches[] = {
        {{0, DRPS_NO_SLOT, 1}, {0, 1, 0}, {1, 9, 2, 3}, {0, 0, 0}},
        {{1, 0, DRPS_NO_SLOT}, {0, 1, 1}, {4, 9, 5, 6}, {3, 1, 0}},
        {{1, 1, 0}, {1, 0, 0}, {7, 9, 8, 10}, {4, 0, 0}},
        {{1, 0, DRPS_NO_SLOT}, {1, 1, 1}, {0, 0, 0, 0}, {8, 10, 0}},
    };
    (void)state;
    for (size_t b = 0; b < sizeof(batches) / sizeof(*batches); b++) {
        rows->n = 3;
        memcpy(rows->slot, batches[b].slot, sizeof(batches[b].slot));
        memcpy(rows->whole, batches[b].whole, sizeof(batches[b].whole));
        drps_copies_begin(c);
        for (size_t i = 0; i < 3; i++) {
            const float *copy = drps_copies_at(c, i);
            if (!copy != !(batches[b].copies[i] > 0) || (copy && *copy != batches[b].copies[i]))
                fail_msg("batch %zu, row %zu: %g", b, i, copy ? (double)*copy : -1);
        }
        assert_null(drps_copies_at(c, 3));
        drps_copies_keep(c, batches[b].params, 1, 1);
    }
    drps_copies_free(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threshold_golden),
        cmocka_unit_test(test_rounded_rows_arrive_as_they_are),
        cmocka_unit_test(test_rows_at_the_ends),
        cmocka_unit_test(test_small_steps_are_not_lost),
        cmocka_unit_test(test_no_use_is_stale),
        cmocka_unit_test(test_the_papers_stamps_are_stale),
        cmocka_unit_test(test_copies_move_with_their_slots),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
