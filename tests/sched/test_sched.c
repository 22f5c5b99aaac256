/* The scheduler's decisions, one by one. Interleavings of many events: test_sched_explore.c. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/drps_sched.h"
#include "sched/wsp.h"

enum { MOST = 8, SECOND = 1000 }; /* a "second" of the examples, in ns */

struct event {
    enum { ARRIVE, GONE, JOIN, TICK } kind;
    unsigned worker;
    uint64_t at;
    const char *released; /* their numbers, like "0 2" */
};

static struct drps_sched *make(enum drps_sched_mode mode, unsigned workers)
{
    struct drps_sched_config c = drps_sched_defaults(mode, workers);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_sched *s;
    if (drps_sched_new(&c, 0, &s, &err)) fail_msg("%s", err.text);
    return s;
}

static int play(struct drps_sched *s, const struct event *e, unsigned *out, struct drps_err *err)
{
    switch (e->kind) {
    case ARRIVE:
        return drps_sched_arrive(s, e->worker, e->at, out, err);
    case GONE:
        return drps_sched_gone(s, e->worker, e->at, out, err);
    case JOIN:
        return drps_sched_joined(s, e->worker, e->at, out, err);
    case TICK:
        break;
    }
    return drps_sched_tick(s, e->at, out);
}

static void play_all(struct drps_sched *s, const struct event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        unsigned out[MOST];
        char text[4 * MOST] = "";
        int released = play(s, &events[i], out, &err);
        for (int j = 0; j < released; j++) {
            char number[16];
            (void)snprintf(number, sizeof(number), j ? " %u" : "%u", out[j]);
            strcat(text, number);
        }
        if (released < 0 || strcmp(text, events[i].released))
            fail_msg("event %zu (worker %u at %" PRIu64 "): expected '%s', found '%s' (%d %s)", i,
                     events[i].worker, events[i].at, events[i].released, text, released, err.text);
    }
}
#define PLAY(s, events) play_all(s, events, sizeof(events) / sizeof(events[0]))

static void assert_rows(const struct drps_sched_strategy *row, size_t rows,
                        const struct drps_sched_strategy *want, size_t wanted)
{
    assert_int_equal(rows, wanted);
    for (size_t i = 0; i < rows; i++)
        if (row[i].worker != want[i].worker || fabs(row[i].wait_ns - want[i].wait_ns) > 1e-9 ||
            fabs(row[i].gain - want[i].gain) > 1e-12)
            fail_msg("row %zu: expected worker %u, wait %g, gain %.15g; found %u, %g, %.15g", i,
                     want[i].worker, want[i].wait_ns, want[i].gain, row[i].worker, row[i].wait_ns,
                     row[i].gain);
}

/* Section 6.3: TE = 3, 5, 8 after the synchronous round, which ends at 8; the gains are the text's
 * "2/3, 2/3 + 1/3, 5/3". The second decision is the same figure's next table. */
static void paper_example(enum drps_sched_mode mode, double longest)
{
    static const struct event first[] = {{ARRIVE, 0, 3 * SECOND, ""},
                                         {ARRIVE, 1, 5 * SECOND, ""},
                                         {ARRIVE, 2, 8 * SECOND, "0 1 2"},
                                         {ARRIVE, 0, 11 * SECOND, "0"}};
    static const struct event second[] = {{ARRIVE, 1, 13 * SECOND, "1"}};
    static const struct drps_sched_strategy asks0[] = {
        {.worker = 0, .gain = -2. / 3}, {1, 2 * SECOND, 0, -1}, {2, 5 * SECOND, 0, -5. / 3}};
    static const struct drps_sched_strategy asks1[] = {{.worker = 1, .gain = -1. / 3},
                                                       {0, SECOND, 0, -1. / 5 - 1. / 3},
                                                       {2, 3 * SECOND, 0, -3. / 5}};
    struct drps_sched_config c = drps_sched_defaults(mode, 3);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_sched *s;
    c.longest = longest;
    assert_int_equal(drps_sched_new(&c, 0, &s, &err), 0);
    const struct drps_sched_decision *d = drps_sched_decision(s);
    const struct drps_sched_worker *it = drps_sched_workers(s);
    size_t rows = longest < 1 ? 1 : 3; /* the waits are of 1/5 and more */

    assert_int_equal(d->rows, 0);
    PLAY(s, first);
    assert_int_equal(d->requester, 0);
    assert_int_equal(d->chosen, 0);
    assert_rows(d->row, d->rows, asks0, rows);
    assert_int_equal(it[0].label, 2);
    assert_int_equal(it[0].start_ns, 11 * SECOND);
    assert_int_equal(it[0].end_ns, 11 * SECOND);
    assert_int_equal(it[0].iteration_ns, 3 * SECOND);
    PLAY(s, second);
    assert_int_equal(d->requester, 1);
    assert_int_equal(d->chosen, 0);
    assert_rows(d->row, d->rows, asks1, rows);
    assert_int_equal(it[1].label, 2);
    drps_sched_free(s);
}

static void test_wsp_decides_as_in_the_paper(void **state)
{
    (void)state;
    paper_example(DRPS_SCHED_WSP, INFINITY);
    paper_example(DRPS_SCHED_WSP, drps_sched_defaults(DRPS_SCHED_WSP, 3).longest);
    paper_example(DRPS_SCHED_WSP_LITERAL, INFINITY);
}

/* A decision of four workers that all take 10: worker 0 asks at 10. label of a worker that runs is
 * I, of the requester I + 1. Worker 2 is exactly due, or overdue by 2. */
static void test_wsp_chooses_whom_to_wait_for(void **state)
{
    static const struct {
        const char *name;
        struct drps_sched_worker it[4];
        double lambda;
        int literal;
        uint64_t now;
        size_t chosen, rows;
        double longest;
        struct drps_sched_strategy row[4];
    } cases[] = {
        {"golden: waits for 2 and 1",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 1, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 3, .start_ns = 0, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 9, .expected_ns = 10}},
         1,
         0,
         10,
         2,
         4,
         INFINITY,
         {{0, 0, 0, -1}, {2, 0, 0, -.5}, {1, 1, 0, -.35}, {3, 9, 0, -.9}}},
        {"golden, as configured by default",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 1, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 3, .start_ns = 0, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 9, .expected_ns = 10}},
         1,
         0,
         10,
         2,
         3,
         .125,
         {{0, 0, 0, -1}, {2, 0, 0, -.5}, {1, 1, 0, -.35}}},
        {"waiting weighs less: waits for all",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 1, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 3, .start_ns = 0, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 9, .expected_ns = 10}},
         .125,
         0,
         10,
         3,
         4,
         .9,
         {{0, 0, 0, -1}, {2, 0, 0, -.5}, {1, 1, 0, -.2625}, {3, 9, 0, -.1125}}},
        {"of greater gain, but a long wait: waits for 2 and 1",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 1, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 3, .start_ns = 0, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 9, .expected_ns = 10}},
         .125,
         0,
         10,
         2,
         3,
         .8,
         {{0, 0, 0, -1}, {2, 0, 0, -.5}, {1, 1, 0, -.2625}}},
        {"overdue: expected in as long as it ran",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 3, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 3, .start_ns = 0, .expected_ns = 10},
          {DRPS_SCHED_GONE, .label = 4}},
         1,
         0,
         12,
         1,
         3,
         2,
         {{0, 0, 0, -1}, {1, 1, 0, -.1 - 2. / 3}, {2, 12, 0, -1.2}}},
        {"overdue, literal: expected at once",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 3, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 3, .start_ns = 0, .expected_ns = 10},
          {DRPS_SCHED_GONE, .label = 4}},
         1,
         1,
         12,
         2,
         3,
         2,
         {{0, 0, 0, -1}, {2, 0, 0, -1. / 3}, {1, 1, 0, -.1}}},
        {"not measured: takes as long as the requester; who waits is not waited for",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 6},
          {DRPS_SCHED_LEAD, .label = 9, .expected_ns = 10},
          {DRPS_SCHED_CAPTURED, .label = 9, .expected_ns = 10}},
         1,
         0,
         10,
         0,
         2,
         2,
         {{0, 0, 0, -.25}, {1, 6, 0, -.6}}},
        {"equal gains: the shorter wait",
         {{DRPS_SCHED_READY, .label = 5, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 5, .expected_ns = 10},
          {DRPS_SCHED_GONE, .label = 4},
          {DRPS_SCHED_GONE, .label = 4}},
         1,
         0,
         10,
         0,
         2,
         2,
         {{0, 0, 0, -.5}, {1, 5, 0, -.5}}},
        {"slow requester: staleness is negative, no wait is worth it",
         {{DRPS_SCHED_READY, .label = 2, .expected_ns = 10},
          {DRPS_SCHED_RUN, .label = 4, .start_ns = 1, .expected_ns = 10},
          {DRPS_SCHED_GONE, .label = 4},
          {DRPS_SCHED_GONE, .label = 4}},
         1,
         0,
         10,
         0,
         2,
         2,
         {{0, 0, 0, 1}, {1, 1, 0, -.1}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_sched_strategy row[4];
        struct drps_sched_config c =
            drps_sched_defaults(cases[i].literal ? DRPS_SCHED_WSP_LITERAL : DRPS_SCHED_WSP, 4);
        c.lambda = cases[i].lambda;
        c.longest = cases[i].longest;
        size_t rows, chosen = drps_wsp_choose(&c, cases[i].it, 0, cases[i].now, row, &rows);
        print_message("%s\n", cases[i].name);
        assert_rows(row, rows, cases[i].row, cases[i].rows);
        assert_int_equal(chosen, cases[i].chosen);
    }
}

/* Two workers whose first round takes 10. At 19 worker 0 has TE = 9.7 and expects the other in 1:
 * -1/9.7 beats -1/2. */
static const struct event waits[] = {
    {ARRIVE, 0, 10 * SECOND, ""}, {ARRIVE, 1, 10 * SECOND, "0 1"}, {ARRIVE, 0, 19 * SECOND, ""}};

static void test_wsp_wait_ends_with_the_arrival(void **state)
{
    static const struct event events[] = {{ARRIVE, 1, 20 * SECOND, "0 1"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 2);
    const struct drps_sched_worker *it = drps_sched_workers(s);
    (void)state;
    PLAY(s, waits);
    assert_int_equal(it[0].state, DRPS_SCHED_LEAD);
    PLAY(s, events);
    assert_int_equal(it[0].label, 2);
    assert_int_equal(it[1].label, 2);
    assert_int_equal(it[0].waited_ns, SECOND);
    assert_int_equal(it[0].waits, 1);
    assert_int_equal(it[1].waited_ns, 0);
    assert_int_equal(drps_sched_deadline(s), DRPS_SCHED_NEVER);
    drps_sched_free(s);
}

static void test_wsp_wait_ends_with_patience(void **state)
{
    static const struct event events[] = {{TICK, 0, 20199, ""}, {TICK, 0, 20200, "0"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 2);
    (void)state;
    PLAY(s, waits);
    assert_int_equal(drps_sched_deadline(s), 20200); /* 19 + 1 * 1.2 */
    PLAY(s, events);
    assert_int_equal(drps_sched_workers(s)[0].lag_max, 1);
    drps_sched_free(s);
}

static void test_wsp_literal_waits_without_end(void **state)
{
    static const struct event events[] = {{TICK, 0, 1000 * SECOND, ""},
                                          {ARRIVE, 1, 1001 * SECOND, "0 1"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP_LITERAL, 2);
    (void)state;
    PLAY(s, waits); /* -1/9 beats -1/2: TE is the last iteration */
    assert_int_equal(drps_sched_deadline(s), DRPS_SCHED_NEVER);
    PLAY(s, events);
    drps_sched_free(s);
}

/* What is chosen of WSP's numbers is what the machine goes by: each on events of its own. */
static void test_wsp_goes_by_what_is_tuned(void **state)
{
    static const struct {
        const char *name;
        struct drps_sched_tuning tuning;
        uint64_t deadline;  /* of worker 0's wait; NEVER: it does not wait */
        double expected_ns; /* of worker 0 */
    } cases[] = {
        {"nothing", {0}, 20200, 9700},
        {"lambda: waiting costs more", {.has_lambda = 1, .lambda = 9}, DRPS_SCHED_NEVER, 9700},
        {"ema: the last iteration alone", {.has_ema = 1, .ema = 1}, 20200, 9000},
        {"patience: twice as long", {.has_patience = 1, .patience = 1}, 21000, 9700},
        {"patience: no longer", {.has_patience = 1}, 20000, 9700},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_sched_config c = drps_sched_defaults(DRPS_SCHED_WSP, 2);
        struct drps_sched *s;
        unsigned out[2];
        drps_sched_tune(&cases[i].tuning, &c);
        assert_int_equal(drps_sched_new(&c, 0, &s, NULL), 0);
        play_all(s, waits, 2);
        assert_true(play(s, &waits[2], out, NULL) >= 0);
        if (drps_sched_deadline(s) != cases[i].deadline)
            fail_msg("%s: deadline %llu", cases[i].name,
                     (unsigned long long)drps_sched_deadline(s));
        assert_float_equal(drps_sched_workers(s)[0].expected_ns, cases[i].expected_ns, 1e-9);
        drps_sched_free(s);
    }
}

static void test_wsp_wait_ends_when_the_other_is_gone(void **state)
{
    static const struct event events[] = {{GONE, 1, 19 * SECOND + 1, "0"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 2);
    (void)state;
    PLAY(s, waits);
    PLAY(s, events);
    drps_sched_free(s);
}

/* Worker 0 waits for 1 and 2, 1 arrives and is captured. When 0 goes, 1 may start. */
static void test_wsp_leader_that_goes_frees_the_captured(void **state)
{
    static const struct event events[] = {
        {ARRIVE, 0, 10 * SECOND, ""},      {ARRIVE, 1, 10 * SECOND, ""},
        {ARRIVE, 2, 10 * SECOND, "0 1 2"}, {ARRIVE, 0, 19 * SECOND, ""},
        {ARRIVE, 1, 19 * SECOND + 1, ""},  {GONE, 0, 20 * SECOND, "1"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 3);
    const struct drps_sched_worker *it = drps_sched_workers(s);
    (void)state;
    play_all(s, events, 5);
    assert_int_equal(it[0].state, DRPS_SCHED_LEAD);
    assert_int_equal(it[1].state, DRPS_SCHED_CAPTURED);
    play_all(s, events + 5, 1);
    assert_int_equal(it[0].state, DRPS_SCHED_GONE);
    assert_int_equal(it[0].waited_ns, SECOND);
    assert_int_equal(it[1].state, DRPS_SCHED_RUN);
    drps_sched_free(s);
}

/* A worker that took three rounds comes back at the front, not three rounds behind. */
static void test_wsp_release_jumps_to_the_front(void **state)
{
    static const struct event events[] = {{ARRIVE, 0, 10, ""},   {ARRIVE, 1, 100, "0 1"},
                                          {ARRIVE, 0, 105, "0"}, {ARRIVE, 0, 110, "0"},
                                          {ARRIVE, 0, 115, "0"}, {ARRIVE, 1, 150, "1"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 2);
    const struct drps_sched_worker *it = drps_sched_workers(s);
    (void)state;
    PLAY(s, events);
    assert_int_equal(it[0].label, 4);
    assert_int_equal(it[1].label, 4);
    assert_int_equal(it[0].lag_max, 3);
    assert_int_equal(it[0].lag_sum, 6); /* 1 + 2 + 3 */
    drps_sched_free(s);
}

/* Worker 0 completes three iterations during the second one of worker 1. */
static void test_staleness_counts_iterations_of_others(void **state)
{
    static const struct event events[] = {{ARRIVE, 0, 10, "0"},  {ARRIVE, 1, 100, "1"},
                                          {ARRIVE, 0, 105, "0"}, {ARRIVE, 0, 110, "0"},
                                          {ARRIVE, 0, 115, "0"}, {ARRIVE, 1, 150, "1"}};
    struct drps_sched *s = make(DRPS_SCHED_ASP, 2);
    const struct drps_sched_worker *it = drps_sched_workers(s);
    (void)state;
    PLAY(s, events);
    assert_int_equal(it[0].stale[0], 3);
    assert_int_equal(it[0].stale[1], 1);
    assert_int_equal(it[0].stale_sum, 1);
    assert_int_equal(it[1].stale[1], 1);
    assert_int_equal(it[1].stale[2], 1); /* 2 to 3 */
    assert_int_equal(it[1].stale_sum, 4);
    assert_int_equal(it[1].stale_max, 3);
    drps_sched_free(s);
}

/* The quorum has arrived at 10: who still runs is expected in 10, and waited for until 22. */
static void test_wsp_first_round_has_an_end(void **state)
{
    static const struct event quorum[] = {{ARRIVE, 2, 8, ""}, {ARRIVE, 0, 10, ""}};
    static const struct event late[] = {
        {TICK, 0, 21, ""}, {TICK, 0, 22, "0 2"}, {GONE, 3, 23, ""}, {ARRIVE, 1, 24, "1"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 4), *literal = make(DRPS_SCHED_WSP_LITERAL, 4);
    const struct drps_sched_worker *it = drps_sched_workers(s);
    (void)state;
    PLAY(s, quorum);
    assert_int_equal(drps_sched_deadline(s), 22);
    PLAY(s, late);
    assert_int_equal(drps_sched_deadline(s), DRPS_SCHED_NEVER);
    assert_int_equal(it[0].waited_ns, 12);
    assert_int_equal(it[0].lag_max, 1);
    assert_int_equal(it[1].label, 1);
    PLAY(literal, quorum);
    assert_int_equal(drps_sched_deadline(literal), DRPS_SCHED_NEVER);
    drps_sched_free(s);
    drps_sched_free(literal);
}

/* The quorum counts who is there: when two of four have gone, one that has arrived is enough. */
static void test_wsp_quorum_is_of_live_workers(void **state)
{
    static const struct event one[] = {{ARRIVE, 2, 8, ""}, {GONE, 0, 9, ""}};
    static const struct event two[] = {{GONE, 1, 10, ""}, {TICK, 0, 19, "2"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 4);
    (void)state;
    PLAY(s, one);
    assert_int_equal(drps_sched_deadline(s), DRPS_SCHED_NEVER);
    play_all(s, two, 1);
    assert_int_equal(drps_sched_deadline(s), 19); /* 10 + 8 * 1.2 */
    play_all(s, two + 1, 1);
    drps_sched_free(s);
}

static void test_wsp_outlier_hardly_counts(void **state)
{
    static const struct event events[] = {
        {ARRIVE, 0, 10, ""}, {ARRIVE, 1, 10, "0 1"}, {ARRIVE, 0, 110, "0"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 2), *literal = make(DRPS_SCHED_WSP_LITERAL, 2);
    (void)state;
    PLAY(s, events);
    assert_float_equal(drps_sched_workers(s)[0].expected_ns, .7 * 10 + .3 * 20, 1e-12);
    assert_int_equal(drps_sched_workers(s)[0].iteration_ns, 100);
    play_all(literal, events, 2);
    play_all(literal, (struct event[]){{ARRIVE, 0, 110, ""}}, 1); /* "0 left": waits */
    assert_float_equal(drps_sched_workers(literal)[0].expected_ns, 100, 1e-12);
    drps_sched_free(s);
    drps_sched_free(literal);
}

static void test_wsp_bound_holds_all_until_the_laggard_arrives(void **state)
{
    static const struct event events[] = {{ARRIVE, 0, 2, ""},         {ARRIVE, 1, 500, ""},
                                          {ARRIVE, 2, 1000, "0 1 2"}, {ARRIVE, 0, 1001, "0"},
                                          {ARRIVE, 0, 1002, ""},      {ARRIVE, 1, 1003, ""},
                                          {ARRIVE, 2, 2000, "0 1 2"}};
    struct drps_sched_config c = drps_sched_defaults(DRPS_SCHED_WSP, 3);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_sched *s;
    (void)state;
    c.bound = 1;
    c.lambda = 1000; /* never waits by choice */
    assert_int_equal(drps_sched_new(&c, 0, &s, &err), 0);
    play_all(s, events, 4);
    assert_false(drps_sched_has_slack(s, 0));
    assert_true(drps_sched_has_slack(s, 1));
    play_all(s, events + 4, 1);
    assert_false(drps_sched_has_slack(s, 1)); /* it would jump to worker 0's next label */
    play_all(s, events + 5, 1);
    /* Worker 1 is one behind worker 0, yet its label would be two ahead of worker 2's. */
    assert_int_equal(drps_sched_workers(s)[0].state, DRPS_SCHED_READY);
    assert_int_equal(drps_sched_workers(s)[1].state, DRPS_SCHED_READY);
    play_all(s, events + 6, 1);
    assert_int_equal(drps_sched_workers(s)[1].label, 3);
    drps_sched_free(s);
}

static void test_wsp_worker_that_joins_the_first_round_does_not_end_it(void **state)
{
    static const struct event events[] = {{GONE, 2, 1, ""},   {JOIN, 2, 2, "2"},
                                          {ARRIVE, 0, 3, ""}, {GONE, 2, 4, ""},
                                          {JOIN, 2, 5, ""},   {ARRIVE, 1, 6, "0 1 2"}};
    struct drps_sched *s = make(DRPS_SCHED_WSP, 3);
    (void)state;
    PLAY(s, events);
    assert_int_equal(drps_sched_decision(s)->rows, 0);
    drps_sched_free(s);
}

static void test_bsp_starts_a_round_when_all_finished_the_last(void **state)
{
    static const struct event events[] = {
        {ARRIVE, 2, 1, ""}, {ARRIVE, 0, 2, ""}, {ARRIVE, 1, 7, "0 1 2"}, {ARRIVE, 1, 8, ""},
        {GONE, 2, 9, ""},   {JOIN, 2, 10, "2"}, {ARRIVE, 0, 11, ""},     {ARRIVE, 2, 12, "0 1 2"},
        {GONE, 0, 13, ""},  {GONE, 1, 13, ""},  {ARRIVE, 2, 14, "2"}};
    struct drps_sched *s = make(DRPS_SCHED_BSP, 3);
    (void)state;
    PLAY(s, events);
    assert_int_equal(drps_sched_workers(s)[2].label, 3);
    assert_int_equal(drps_sched_workers(s)[2].waited_ns, 6); /* at 1 */
    drps_sched_free(s);
}

static void test_asp_never_waits(void **state)
{
    static const struct event events[] = {{ARRIVE, 0, 1, "0"}, {ARRIVE, 0, 2, "0"},
                                          {ARRIVE, 0, 3, "0"}, {ARRIVE, 1, 9, "1"},
                                          {GONE, 1, 10, ""},   {JOIN, 1, 11, "1"}};
    struct drps_sched *s = make(DRPS_SCHED_ASP, 2);
    (void)state;
    PLAY(s, events);
    assert_int_equal(drps_sched_workers(s)[0].lag_max, 3);
    assert_int_equal(drps_sched_workers(s)[1].label, 3); /* level with the slowest other one */
    drps_sched_free(s);
}

static void test_ssp_runs_ahead_by_its_bound(void **state)
{
    static const struct event events[] = {{ARRIVE, 0, 1, "0"},
                                          {ARRIVE, 0, 2, "0"},
                                          {ARRIVE, 0, 3, "0"},
                                          {ARRIVE, 0, 4, ""},
                                          {ARRIVE, 1, 9, "0 1"}};
    struct drps_sched *s = make(DRPS_SCHED_SSP, 2);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_true(drps_sched_has_slack(s, 0));
        play_all(s, events + i, 1);
    }
    assert_false(drps_sched_has_slack(s, 0));
    assert_true(drps_sched_has_slack(s, 1));
    play_all(s, events + 3, 2);
    assert_false(drps_sched_has_slack(s, 0));
    assert_int_equal(drps_sched_workers(s)[0].label, 4);
    assert_int_equal(drps_sched_workers(s)[0].waited_ns, 5);
    drps_sched_free(s);
}

static void test_sched_refuses_events_out_of_order(void **state)
{
    static const struct {
        struct event event;
        const char *text;
    } cases[] = {
        {{ARRIVE, 2, 5, ""}, "worker 2 arrives: there are workers 0 to 1"},
        {{ARRIVE, 0, 5, ""}, "worker 0 arrives, but it is waiting (bound)"},
        {{JOIN, 0, 5, ""}, "worker 0 joins, but it is waiting (bound)"},
        {{JOIN, 1, 5, ""}, "worker 1 joins, but it is running"},
        {{GONE, 7, 5, ""}, "worker 7 leaves: there are workers 0 to 1"},
    };
    static const struct event before[] = {{ARRIVE, 0, 1, ""}};
    static const struct event after[] = {{ARRIVE, 1, 6, "0 1"}, {GONE, 1, 7, ""}};
    struct drps_sched *s = make(DRPS_SCHED_BSP, 2);
    struct drps_err err = DRPS_ERR_INIT;
    unsigned out[MOST];
    (void)state;
    PLAY(s, before);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        drps_err_clear(&err);
        assert_int_equal(play(s, &cases[i].event, out, &err), -EINVAL);
        assert_string_equal(err.text, cases[i].text);
    }
    PLAY(s, after);
    drps_err_clear(&err);
    assert_int_equal(drps_sched_gone(s, 1, 8, out, &err), -EINVAL);
    assert_string_equal(err.text, "worker 1 leaves, but it is gone");
    drps_sched_free(s);
}

static void test_sched_refuses_bad_configurations(void **state)
{
    static const struct {
        const char *name;
        struct drps_sched_config c;
        const char *text;
    } cases[] = {
        {"no worker", {DRPS_SCHED_SSP, 0, 1, 1, 1, 1, 1, 1, 1}, "0 workers: give 1 to 4096"},
        {"many workers",
         {DRPS_SCHED_SSP, 4097, 1, 1, 1, 1, 1, 1, 1},
         "4097 workers: give 1 to 4096"},
        {"bsp", {DRPS_SCHED_BSP, 2, 1, 1, 1, 1, 1, 1, 1}, "staleness 1 under bsp: it is always 0"},
        {"asp", {DRPS_SCHED_ASP, 2, 9, 1, 1, 1, 1, 1, 1}, "staleness 9 under asp: it has no bound"},
        {"lambda", {DRPS_SCHED_WSP, 2, 9, -1, 1, 1, 1, 1, 1}, "lambda -1: give 0 or more"},
        {"lambda", {DRPS_SCHED_WSP, 2, 9, INFINITY, 1, 1, 1, 1, 1}, "lambda inf: give 0 or more"},
        {"ema", {DRPS_SCHED_WSP, 2, 9, 1, 0, 1, 1, 1, 1}, "ema 0: give more than 0, at most 1"},
        {"ema", {DRPS_SCHED_WSP, 2, 9, 1, 1.5, 1, 1, 1, 1}, "ema 1.5: give more than 0, at most 1"},
        {"patience", {DRPS_SCHED_WSP, 2, 9, 1, 1, NAN, 1, 1, 1}, "patience nan: give 0 or more"},
        {"longest", {DRPS_SCHED_WSP, 2, 9, 1, 1, 1, -1, 1, 1}, "longest wait -1: give 0 or more"},
        {"outlier", {DRPS_SCHED_WSP, 2, 9, 1, 1, 1, 1, .5, 1}, "outlier 0.5: give 1 or more"},
        {"quorum", {DRPS_SCHED_WSP, 2, 9, 1, 1, 1, 1, 1, 0}, "quorum 0: give more than 0"},
        {"quorum", {DRPS_SCHED_WSP, 2, 9, 1, 1, 1, 1, 1, 2}, "quorum 2: give more than 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_sched *s;
        int rc = drps_sched_new(&cases[i].c, 0, &s, &err);
        if (rc != DRPS_E_CONFIG || s || !strstr(err.text, cases[i].text))
            fail_msg("%s: expected '%s', found %d '%s'", cases[i].name, cases[i].text, rc,
                     err.text);
    }
}

static void test_sched_mode_names(void **state)
{
    static const char *const names[] = {"bsp", "asp", "ssp", "wsp", "wsp-literal"};
    struct drps_err err = DRPS_ERR_INIT;
    enum drps_sched_mode mode;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(drps_sched_mode_parse(names[i], &mode, &err), 0);
        assert_string_equal(drps_sched_mode_name(mode), names[i]);
    }
    assert_int_equal(drps_sched_mode_parse("WSP", &mode, &err), DRPS_E_CONFIG);
    assert_string_equal(err.text, "'WSP' is no parallel model: bsp, asp, ssp, wsp or wsp-literal");
}

static void test_sched_defaults(void **state)
{
    (void)state;
    assert_int_equal(drps_sched_defaults(DRPS_SCHED_WSP, 1).bound, 1024);
    assert_int_equal(drps_sched_defaults(DRPS_SCHED_WSP, 256).bound, 2048);
    for (unsigned m = DRPS_SCHED_BSP; m <= DRPS_SCHED_WSP_LITERAL; m++)
        drps_sched_free(make((enum drps_sched_mode)m, 1)); /* each is accepted */
}

static void test_open_numbers_are_filled_in_one_by_one(void **state)
{
    const struct drps_sched_tuning from = {.has_lambda = 1, .has_ema = 1, .lambda = 9, .ema = .5};
    struct drps_sched_tuning t = {.has_lambda = 1, .lambda = 2};
    (void)state;
    drps_sched_tuning_fill(&t, &from);
    assert_true(t.has_lambda && t.lambda == 2);
    assert_true(t.has_ema && t.ema == .5);
    assert_false(t.has_patience);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_numbers_are_filled_in_one_by_one),
        cmocka_unit_test(test_wsp_decides_as_in_the_paper),
        cmocka_unit_test(test_wsp_chooses_whom_to_wait_for),
        cmocka_unit_test(test_wsp_wait_ends_with_the_arrival),
        cmocka_unit_test(test_wsp_wait_ends_with_patience),
        cmocka_unit_test(test_wsp_literal_waits_without_end),
        cmocka_unit_test(test_wsp_goes_by_what_is_tuned),
        cmocka_unit_test(test_wsp_wait_ends_when_the_other_is_gone),
        cmocka_unit_test(test_wsp_leader_that_goes_frees_the_captured),
        cmocka_unit_test(test_wsp_release_jumps_to_the_front),
        cmocka_unit_test(test_staleness_counts_iterations_of_others),
        cmocka_unit_test(test_wsp_first_round_has_an_end),
        cmocka_unit_test(test_wsp_quorum_is_of_live_workers),
        cmocka_unit_test(test_wsp_outlier_hardly_counts),
        cmocka_unit_test(test_wsp_bound_holds_all_until_the_laggard_arrives),
        cmocka_unit_test(test_wsp_worker_that_joins_the_first_round_does_not_end_it),
        cmocka_unit_test(test_bsp_starts_a_round_when_all_finished_the_last),
        cmocka_unit_test(test_asp_never_waits),
        cmocka_unit_test(test_ssp_runs_ahead_by_its_bound),
        cmocka_unit_test(test_sched_refuses_events_out_of_order),
        cmocka_unit_test(test_sched_refuses_bad_configurations),
        cmocka_unit_test(test_sched_mode_names),
        cmocka_unit_test(test_sched_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
