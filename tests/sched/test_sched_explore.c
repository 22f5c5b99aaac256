/*
 * The scheduler under many events: every interleaving of a few, and random ones. What must hold is
 * kept beside it in plain counts: nobody starts beyond the bound, nobody that BSP, ASP and SSP let
 * go waits, somebody runs while anyone is there, and everyone who waits is released.
 *
 * DRPS_SCHED_DEPTH adds to the number of events explored, DRPS_SCHED_EVENTS sets that of the random
 * ones.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "sched/drps_sched.h"

enum { WORKERS = 64, PATH = 64 };

enum kind { ARRIVE, ARRIVE_LATE, TICK, GONE, JOIN, KINDS };

struct event {
    enum kind kind;
    unsigned worker;
};

/* What the scheduler was told, and what it may do. */
struct observer {
    struct drps_sched_config config;
    struct drps_sched *sched;
    uint64_t now, front, events;
    enum { RUNS, WAITS, AWAY } state[WORKERS];
    uint64_t label[WORKERS]; /* as in drps_sched_worker */
    uint64_t order[WORKERS]; /* event number of the last release */
    struct event path[PATH]; /* the last events, for the message of a failure */
};

static uint64_t environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static int is_wsp(const struct observer *w)
{
    return w->config.mode >= DRPS_SCHED_WSP;
}

static void observe(struct observer *w, const struct drps_sched_config *c)
{
    struct drps_err err = DRPS_ERR_INIT;
    *w = (struct observer){.config = *c};
    if (drps_sched_new(c, 0, &w->sched, &err)) fail_msg("%s", err.text);
}

static void broken(const struct observer *w, const char *what, uint64_t found)
{
    static const char *const names[KINDS] = {"arrive", "arrive late", "tick", "gone", "join"};
    uint64_t from = w->events > PATH ? w->events - PATH : 0;
    print_error("%s, %u workers, bound %" PRIu64 ", the last events:\n",
                drps_sched_mode_name(w->config.mode), w->config.workers, w->config.bound);
    for (uint64_t i = from; i < w->events; i++)
        print_error("  %s %u\n", names[w->path[i % PATH].kind], w->path[i % PATH].worker);
    fail_msg("%s: %" PRIu64, what, found);
}

/* The label that worker k has or, by its mode, gets when it is released. */
static uint64_t next_label(const struct observer *w, unsigned k)
{
    return w->state[k] == WAITS && is_wsp(w) ? w->front : w->label[k];
}

static uint64_t lowest(const struct observer *w)
{
    uint64_t low = w->front;
    for (unsigned k = 0; k < w->config.workers; k++)
        if (w->state[k] != AWAY && next_label(w, k) < low) low = next_label(w, k);
    return low;
}

static void check_released(struct observer *w, unsigned k)
{
    uint64_t label = next_label(w, k), lag = label - lowest(w);
    if (w->state[k] != WAITS) broken(w, "released, but does not wait", k);
    if (lag > w->config.bound) broken(w, "labels ahead of the slowest", lag);
    w->label[k] = label;
    w->state[k] = RUNS;
    w->order[k] = w->events;
}

static void check_all(const struct observer *w)
{
    const struct drps_sched_worker *it = drps_sched_workers(w->sched);
    unsigned live = 0, runs = 0;
    for (unsigned k = 0; k < w->config.workers; k++) {
        live += w->state[k] != AWAY;
        runs += w->state[k] == RUNS;
        if ((it[k].state == DRPS_SCHED_RUN) != (w->state[k] == RUNS) ||
            (it[k].state == DRPS_SCHED_GONE) != (w->state[k] == AWAY))
            broken(w, "ITTable has another state for worker", k);
        if (w->state[k] == RUNS && it[k].label != w->label[k])
            broken(w, "ITTable has the label", it[k].label);
        if (!is_wsp(w) && w->state[k] == WAITS && w->label[k] - lowest(w) <= w->config.bound)
            broken(w, "waits without a reason, worker", k);
    }
    if (live > 0 && runs == 0) broken(w, "all wait", live);
}

/* Can this happen now? */
static int possible(const struct observer *w, struct event e)
{
    switch (e.kind) {
    case ARRIVE:
    case ARRIVE_LATE:
        return w->state[e.worker] == RUNS;
    case TICK:
        return e.worker == 0 && drps_sched_deadline(w->sched) != DRPS_SCHED_NEVER;
    case GONE:
        return w->state[e.worker] != AWAY;
    default:
        return w->state[e.worker] == AWAY;
    }
}

static int tell(struct observer *w, struct event e, unsigned *out, struct drps_err *err)
{
    uint64_t deadline = drps_sched_deadline(w->sched);
    w->now += e.kind == ARRIVE_LATE ? 9 : 1;
    switch (e.kind) {
    case ARRIVE:
    case ARRIVE_LATE:
        w->state[e.worker] = WAITS;
        w->label[e.worker]++;
        if (w->label[e.worker] > w->front) w->front = w->label[e.worker];
        return drps_sched_arrive(w->sched, e.worker, w->now, out, err);
    case GONE:
        w->state[e.worker] = AWAY;
        return drps_sched_gone(w->sched, e.worker, w->now, out, err);
    case JOIN:
        w->label[e.worker] = lowest(w);
        w->state[e.worker] = WAITS;
        return drps_sched_joined(w->sched, e.worker, w->now, out, err);
    default:
        if (deadline > w->now) w->now = deadline;
        return drps_sched_tick(w->sched, w->now, out);
    }
}

static void happen(struct observer *w, struct event e)
{
    struct drps_err err = DRPS_ERR_INIT;
    unsigned out[WORKERS];
    w->path[w->events++ % PATH] = e;
    int n = tell(w, e, out, &err);
    if (n < 0) fail_msg("%s", err.text);
    if (e.kind == TICK && drps_sched_deadline(w->sched) <= w->now)
        broken(w, "a deadline has passed", drps_sched_deadline(w->sched));
    for (int i = 0; i < n; i++)
        check_released(w, out[i]);
    check_all(w);
}

static unsigned longest_running(const struct observer *w)
{
    unsigned k = w->config.workers;
    for (unsigned i = 0; i < w->config.workers; i++)
        if (w->state[i] == RUNS && (k == w->config.workers || w->order[i] < w->order[k])) k = i;
    return k;
}

/* Let all who run arrive in turn, without any tick: everyone who waits now must get to run. */
static void drain(struct observer *w)
{
    uint64_t begin = w->events, limit = 20 * (uint64_t)w->config.workers;
    for (unsigned k = 0; k < w->config.workers; k++)
        while (w->state[k] == WAITS && w->order[k] <= begin) {
            if (w->events > begin + limit) broken(w, "is never released: worker", k);
            happen(w, (struct event){ARRIVE, longest_running(w)});
        }
}

struct search {
    struct drps_sched_config config;
    int times;     /* 2: arrivals after a short or a long time; 1: short */
    unsigned warm; /* arrivals in turn before it begins */
    unsigned depth;
    unsigned failures; /* at most so many a path */
    struct event path[PATH];
    uint64_t nodes;
};

static void replay(const struct search *s, unsigned n, struct observer *w)
{
    observe(w, &s->config);
    for (unsigned k = 0; k < s->warm; k++)
        happen(w, (struct event){k % 2 ? ARRIVE_LATE : ARRIVE, k % s->config.workers});
    for (unsigned i = 0; i < n; i++)
        happen(w, s->path[i]);
}

/* After every path of n events: what may come next, and does everyone come to run? */
static void explore(struct search *s, unsigned n, unsigned failures)
{
    struct observer w;
    replay(s, n, &w);
    s->nodes++;
    for (unsigned i = 0; i < KINDS * s->config.workers && n < s->depth; i++) {
        struct event e = {(enum kind)(i / s->config.workers), i % s->config.workers};
        unsigned fails = e.kind == GONE;
        if ((e.kind == ARRIVE_LATE && s->times < 2) || failures + fails > s->failures) continue;
        if (!possible(&w, e)) continue;
        s->path[n] = e;
        explore(s, n + 1, failures + fails);
    }
    drain(&w);
    drps_sched_free(w.sched);
}

static void test_sched_every_interleaving(void **state)
{
    static const struct {
        enum drps_sched_mode mode;
        unsigned workers;
        uint64_t bound;
        int times;
        unsigned warm, depth, failures;
    } cases[] = {
        {.mode = DRPS_SCHED_BSP, .workers = 3, .times = 1, .depth = 9, .failures = 1},
        {.mode = DRPS_SCHED_BSP, .workers = 4, .times = 1, .depth = 8, .failures = 1},
        {.mode = DRPS_SCHED_ASP,
         .workers = 3,
         .bound = DRPS_SCHED_NEVER,
         .times = 1,
         .depth = 6,
         .failures = 1},
        {.mode = DRPS_SCHED_SSP, .workers = 3, .bound = 1, .times = 1, .depth = 8, .failures = 1},
        {.mode = DRPS_SCHED_SSP, .workers = 4, .bound = 2, .times = 1, .depth = 7, .failures = 1},
        {.mode = DRPS_SCHED_WSP, .workers = 3, .bound = 16, .times = 2, .depth = 7, .failures = 1},
        {.mode = DRPS_SCHED_WSP, .workers = 4, .bound = 1, .times = 2, .depth = 5, .failures = 1},
        {.mode = DRPS_SCHED_WSP, .workers = 3, .bound = 16, .times = 2, .warm = 3, .depth = 7},
        {.mode = DRPS_SCHED_WSP,
         .workers = 3,
         .bound = 1,
         .times = 2,
         .warm = 3,
         .depth = 6,
         .failures = 1},
        {.mode = DRPS_SCHED_WSP, .workers = 4, .bound = 16, .times = 2, .warm = 4, .depth = 6},
        {.mode = DRPS_SCHED_WSP,
         .workers = 4,
         .bound = 1,
         .times = 2,
         .warm = 4,
         .depth = 5,
         .failures = 1},
        {.mode = DRPS_SCHED_WSP, .workers = 4, .bound = 2, .times = 2, .warm = 5, .depth = 6},
        {.mode = DRPS_SCHED_WSP_LITERAL,
         .workers = 3,
         .bound = 1,
         .times = 2,
         .warm = 3,
         .depth = 6,
         .failures = 1},
        {.mode = DRPS_SCHED_WSP_LITERAL,
         .workers = 3,
         .bound = 16,
         .times = 2,
         .warm = 3,
         .depth = 7},
        {.mode = DRPS_SCHED_WSP_LITERAL,
         .workers = 4,
         .bound = 16,
         .times = 2,
         .warm = 4,
         .depth = 6},
        {.mode = DRPS_SCHED_WSP_LITERAL,
         .workers = 4,
         .bound = 1,
         .times = 2,
         .warm = 4,
         .depth = 5,
         .failures = 1},
    };
    unsigned more = (unsigned)environment("DRPS_SCHED_DEPTH", 0);
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct search s = {.config = drps_sched_defaults(cases[i].mode, cases[i].workers),
                           .times = cases[i].times,
                           .warm = cases[i].warm,
                           .depth = cases[i].depth + more,
                           .failures = cases[i].failures};
        assert_true(s.depth < PATH);
        s.config.bound = cases[i].bound;
        explore(&s, 0, 0);
        print_message("%s, %u workers, bound %" PRIu64 ": %" PRIu64 " paths of up to %u events\n",
                      drps_sched_mode_name(cases[i].mode), cases[i].workers, cases[i].bound,
                      s.nodes, s.depth);
    }
}

/* A draw that can happen: mostly arrivals, worker 0 seldom. */
static struct event draw(const struct observer *w, uint64_t seed)
{
    for (uint64_t i = 0;; i++) {
        uint64_t bits = drps_rng_at(seed, i);
        unsigned what = (unsigned)(bits % 100), k = (unsigned)(bits >> 32) % w->config.workers;
        struct event e = {what < 50   ? ARRIVE
                          : what < 90 ? ARRIVE_LATE
                          : what < 94 ? TICK
                                      : JOIN,
                          k};
        if (what == 99 && bits >> 16 & 1) e.kind = GONE;
        if (e.kind == TICK) e.worker = 0;
        if (k == 0 && e.kind <= ARRIVE_LATE && bits >> 20 & 7) continue;
        if (possible(w, e)) return e;
    }
}

static void test_sched_random_events(void **state)
{
    uint64_t seed = environment("DRPS_TEST_SEED", 1);
    uint64_t events = environment("DRPS_SCHED_EVENTS", 1000000 / DRPS_TEST_ONE_IN);
    const uint64_t episode = 5000;
    uint64_t waits = 0, lag = 0, done = 0;
    (void)state;
    print_message("seed %" PRIu64 "\n", seed);
    for (uint64_t i = 0; done < events; i++) {
        uint64_t bits = drps_rng_at(seed, i);
        enum drps_sched_mode mode = (enum drps_sched_mode)(bits % 5);
        struct drps_sched_config c = drps_sched_defaults(mode, 1 + (unsigned)(bits >> 8) % WORKERS);
        struct observer w;
        if (mode >= DRPS_SCHED_SSP) c.bound = bits >> 40 & 1 ? bits >> 48 & 3 : 32;
        observe(&w, &c);
        while (w.events < episode) {
            happen(&w, draw(&w, bits + w.events));
            if (w.events % 500 == 0) drain(&w);
        }
        for (unsigned k = 0; k < c.workers; k++) {
            const struct drps_sched_worker *it = &drps_sched_workers(w.sched)[k];
            waits += it->waits;
            if (mode != DRPS_SCHED_ASP && it->lag_max > lag) lag = it->lag_max;
        }
        done += w.events;
        drps_sched_free(w.sched);
    }
    print_message("%" PRIu64 " events, %" PRIu64 " waits, lag up to %" PRIu64 "\n", done, waits,
                  lag);
    assert_true(waits > done / 100); /* or they were too easy */
    assert_int_equal(lag, 32);       /* the largest bound was reached, and held */
}

/* What is released, and what a mode with a bound that makes it another one releases. */
static void check_same_schedule(const struct drps_sched_config *a,
                                const struct drps_sched_config *b, uint64_t seed, uint64_t events)
{
    struct observer x, y;
    observe(&x, a);
    observe(&y, b);
    for (uint64_t i = 0; i < events; i++) {
        const struct event e = draw(&x, seed + i);
        happen(&x, e);
        happen(&y, e);
        for (unsigned k = 0; k < a->workers; k++) {
            const struct drps_sched_worker *p = &drps_sched_workers(x.sched)[k];
            const struct drps_sched_worker *q = &drps_sched_workers(y.sched)[k];
            if (p->state != q->state || p->label != q->label || p->start_ns != q->start_ns)
                fail_msg("seed %" PRIu64 ", event %" PRIu64 ", worker %u: %s label %" PRIu64
                         ", %s %" PRIu64,
                         seed, i, k, drps_sched_mode_name(a->mode), p->label,
                         drps_sched_mode_name(b->mode), q->label);
        }
    }
    drps_sched_free(x.sched);
    drps_sched_free(y.sched);
}

/* "DRPS", section 6.1: with a bound of 0 SSP is BSP, with none it is ASP. */
static void test_ssp_ends_in_bsp_and_asp(void **state)
{
    uint64_t seed = environment("DRPS_TEST_SEED", 1);
    (void)state;
    print_message("seed %" PRIu64 "\n", seed);
    for (unsigned workers = 1; workers <= 9; workers += 2) {
        struct drps_sched_config ssp = drps_sched_defaults(DRPS_SCHED_SSP, workers);
        const struct drps_sched_config bsp = drps_sched_defaults(DRPS_SCHED_BSP, workers);
        const struct drps_sched_config asp = drps_sched_defaults(DRPS_SCHED_ASP, workers);
        ssp.bound = 0;
        check_same_schedule(&bsp, &ssp, seed + workers, 3000);
        ssp.bound = DRPS_SCHED_NEVER;
        check_same_schedule(&asp, &ssp, seed + workers, 3000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sched_every_interleaving),
        cmocka_unit_test(test_sched_random_events),
        cmocka_unit_test(test_ssp_ends_in_bsp_and_asp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
