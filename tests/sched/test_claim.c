/* Which worker executes which batch: every interleaving of small epochs, to their end; and epochs
 * under the scheduler. */
#include <errno.h>
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
#include "sched/drps_claim.h"
#include "sched/drps_sched.h"
#include "support/lists.h"

enum { EPOCH_WORKERS = 5, EPOCH_STEPS = 12 };
enum { WORKERS = 3, BATCHES = 16, PATH = 96, SEEN = 1 << 22 };

struct setting {
    const char *name;
    unsigned workers;
    uint64_t steps, starts[4];
    size_t windows;
    int claimable;
};

enum kind { NEXT, DONE, KINDS };

/* What the claims must be, kept by the test. */
struct epoch {
    const struct setting *setting;
    struct drps_claim *claim;
    unsigned executed; /* bit: share * steps + step */
    int held[WORKERS]; /* the bit, or -1 */
};

struct search {
    const struct setting *setting;
    unsigned char path[PATH]; /* kind * WORKERS + worker */
    uint64_t *seen;           /* [SEEN] states, 0: free */
    size_t states, ends;
};

static size_t window_of(const struct setting *g, uint64_t step)
{
    size_t v = 0;
    while (v + 1 < g->windows && step >= g->starts[v + 1])
        v++;
    return v;
}

static void epoch_begin(struct epoch *e, const struct setting *g)
{
    struct drps_err err = DRPS_ERR_INIT;
    *e = (struct epoch){.setting = g, .held = {-1, -1, -1}};
    assert_ok(
        drps_claim_new(g->workers, g->steps, g->starts, g->windows, g->claimable, &e->claim, &err),
        &err);
}

/* The lowest window with a batch that is not executed. */
static size_t lowest_window(const struct epoch *e)
{
    const struct setting *g = e->setting;
    size_t lowest = g->windows;
    for (unsigned b = 0; b < g->workers * g->steps; b++)
        if (!(e->executed >> b & 1) && window_of(g, b % g->steps) < lowest)
            lowest = window_of(g, b % g->steps);
    return lowest;
}

static void check_handed(struct epoch *e, unsigned w, struct drps_claim_batch batch)
{
    const struct setting *g = e->setting;
    unsigned b = (unsigned)(batch.share * g->steps + batch.step);
    if (batch.share >= g->workers || batch.step >= g->steps || e->executed >> b & 1)
        fail_msg("%s: worker %u gets (%u, %" PRIu64 ")", g->name, w, batch.share, batch.step);
    for (unsigned other = 0; other < g->workers; other++)
        if (e->held[other] == (int)b) fail_msg("%s: batch %u is handed out twice", g->name, b);
    if (window_of(g, batch.step) > lowest_window(e) + 1)
        fail_msg("%s: window %zu while %zu is not executed", g->name, window_of(g, batch.step),
                 lowest_window(e));
    if (!g->claimable) assert_int_equal(batch.share, w);
    e->held[w] = (int)b;
}

/* Is the event possible here? If `play`, it takes place and is checked. */
static int event(struct epoch *e, enum kind kind, unsigned w, int play)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_claim_batch batch;
    int holds = e->held[w] >= 0;
    size_t lowest = lowest_window(e);

    if (kind == NEXT) {
        if (holds) return 0;
        if (!play) return 1;
        int rc = drps_claim_next(e->claim, w, &batch, &err);
        assert_true(rc == 0 || rc == 1);
        if (rc == 1) check_handed(e, w, batch);
    } else {
        if (!holds) return 0;
        if (!play) return 1;
        e->executed |= 1u << e->held[w];
        e->held[w] = -1;
        assert_int_equal(drps_claim_done(e->claim, w, &err), lowest_window(e) > lowest);
    }
    return 1;
}

/* A number for all that later events depend on: equal for equal states, and never 0. */
static uint64_t fingerprint(const struct epoch *e)
{
    uint64_t key = e->executed | UINT64_C(1) << 63;
    for (unsigned w = 0; w < WORKERS; w++)
        key |= (uint64_t)(e->held[w] + 1) << (BATCHES + 5 * w);
    return key;
}

static int seen_before(struct search *s, uint64_t key)
{
    size_t i = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 42;
    for (; s->seen[i]; i = (i + 1) % SEEN)
        if (s->seen[i] == key) return 1;
    s->seen[i] = key;
    assert_true(++s->states < SEEN / 2);
    return 0;
}

static void replay(struct search *s, size_t n, struct epoch *e)
{
    epoch_begin(e, s->setting);
    for (size_t i = 0; i < n; i++)
        (void)event(e, (enum kind)(s->path[i] / WORKERS), s->path[i] % WORKERS, 1);
}

/* If all workers ask, somebody gets a batch, or the epoch is over. */
static void assert_goes_on(struct search *s, size_t n)
{
    struct epoch e;
    replay(s, n, &e);
    int running = 0;
    for (unsigned w = 0; w < e.setting->workers; w++) {
        (void)event(&e, NEXT, w, 1);
        running |= e.held[w] >= 0;
    }
    if (!running && drps_claim_left(e.claim) > 0)
        fail_msg("%s: nobody gets a batch, %" PRIu64 " are left", e.setting->name,
                 drps_claim_left(e.claim));
    s->ends += drps_claim_left(e.claim) == 0;
    drps_claim_free(e.claim);
}

/* Every event that is possible after the first n of the path, and what follows it. */
static void explore(struct search *s, size_t n)
{
    struct epoch e;
    replay(s, n, &e);
    int old = seen_before(s, fingerprint(&e));
    if (!old)
        assert_int_equal(drps_claim_left(e.claim), s->setting->workers * s->setting->steps -
                                                       (unsigned)__builtin_popcount(e.executed));
    if (!old) assert_goes_on(s, n);
    for (unsigned i = 0; i < KINDS * WORKERS && !old; i++) {
        if (i % WORKERS >= s->setting->workers) continue;
        if (!event(&e, (enum kind)(i / WORKERS), i % WORKERS, 0)) continue;
        assert_true(n + 1 < PATH);
        s->path[n] = (unsigned char)i;
        explore(s, n + 1);
    }
    drps_claim_free(e.claim);
}

static void test_claim_every_interleaving(void **state)
{
    static const struct setting settings[] = {
        {.name = "one worker",
         .workers = 1,
         .steps = 6,
         .starts = {0, 2, 4},
         .windows = 3,
         .claimable = 1},
        {.name = "two workers, claims",
         .workers = 2,
         .steps = 6,
         .starts = {0, 2, 3, 4},
         .windows = 4,
         .claimable = 1},
        {.name = "two workers, own shares",
         .workers = 2,
         .steps = 6,
         .starts = {0, 2, 3, 4},
         .windows = 4,
         .claimable = 0},
        {.name = "three workers, claims",
         .workers = 3,
         .steps = 4,
         .starts = {0, 1, 2, 3},
         .windows = 4,
         .claimable = 1},
        {.name = "three workers, own shares",
         .workers = 3,
         .steps = 3,
         .starts = {0, 1, 2},
         .windows = 3,
         .claimable = 0},
        {.name = "three workers, one window",
         .workers = 3,
         .steps = 3,
         .starts = {0},
         .windows = 1,
         .claimable = 1},
    };
    struct search s = {.seen = must(calloc(SEEN, sizeof(*s.seen)))};
    (void)state;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        memset(s.seen, 0, SEEN * sizeof(*s.seen));
        s.setting = &settings[i];
        s.states = s.ends = 0;
        explore(&s, 0);
        print_message("%s: %zu states, %zu of them ends\n", settings[i].name, s.states, s.ends);
        assert_true(s.ends > 0);
    }
    free(s.seen);
}

static void expect(struct drps_claim *c, unsigned w, int rc, unsigned share, uint64_t step)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_claim_batch batch = {99, 99};
    int found = drps_claim_next(c, w, &batch, &err);
    if (found != rc || (rc == 1 && (batch.share != share || batch.step != step)))
        fail_msg("worker %u: expected %d (%u, %" PRIu64 "), found %d (%u, %" PRIu64 ") %s", w, rc,
                 share, step, found, batch.share, batch.step, err.text);
}

static void done(struct drps_claim *c, unsigned w, int rc)
{
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_claim_done(c, w, &err), rc);
}

/* Worker 0 stalls in its first batch: the fast one does the rest of that window and all of the
 * next, and then has to wait. */
static void test_claim_takes_from_the_slowest(void **state)
{
    static const uint64_t starts[] = {0, 2, 4};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_claim *c;
    (void)state;
    assert_ok(drps_claim_new(2, 6, starts, 3, 1, &c, &err), &err);
    expect(c, 0, 1, 0, 0);
    static const struct drps_claim_batch order[] = {{1, 0}, {1, 1}, {0, 1}, {1, 2},
                                                    {1, 3}, {0, 2}, {0, 3}};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        expect(c, 1, 1, order[i].share, order[i].step);
        done(c, 1, 0);
    }
    expect(c, 1, 0, 0, 0);
    done(c, 0, 1); /* both windows are executed */
    expect(c, 1, 1, 1, 4);
    expect(c, 0, 1, 0, 4);
    assert_int_equal(drps_claim_left(c), 4);
    drps_claim_free(c);
}

static void test_claim_off_keeps_to_its_share(void **state)
{
    static const uint64_t starts[] = {0, 1, 2};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_claim *c;
    (void)state;
    assert_ok(drps_claim_new(2, 3, starts, 3, 0, &c, &err), &err);
    for (uint64_t t = 0; t < 2; t++) {
        expect(c, 1, 1, 1, t);
        done(c, 1, 0);
    }
    expect(c, 1, 0, 0, 0); /* window 2 is closed while worker 0 is in window 0 */
    expect(c, 0, 1, 0, 0);
    done(c, 0, 1);
    expect(c, 0, 1, 0, 1);
    expect(c, 1, 1, 1, 2);
    drps_claim_free(c);
}

static void test_claim_refuses_events_out_of_order(void **state)
{
    static const uint64_t starts[] = {0};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_claim_batch batch;
    struct drps_claim *c;
    (void)state;
    assert_ok(drps_claim_new(2, 3, starts, 1, 1, &c, &err), &err);
    expect(c, 0, 1, 0, 0);
#define REFUSED(call, want)                                                                        \
    do {                                                                                           \
        drps_err_clear(&err);                                                                      \
        assert_int_equal(call, -EINVAL);                                                           \
        assert_string_equal(err.text, want);                                                       \
    } while (0)
    REFUSED(drps_claim_next(c, 0, &batch, &err), "worker 0 asks for a batch, but it holds a batch");
    REFUSED(drps_claim_next(c, 2, &batch, &err),
            "worker 2 asks for a batch: there are workers 0 to 1");
    REFUSED(drps_claim_done(c, 1, &err), "worker 1 has executed a batch, but it holds no batch");
    drps_claim_free(c);
}

static void test_claim_refuses_bad_windows(void **state)
{
    static const struct {
        const char *name;
        unsigned workers;
        uint64_t steps, starts[3];
        size_t windows;
    } cases[] = {
        {.name = "no worker", .workers = 0, .steps = 3, .starts = {0}, .windows = 1},
        {.name = "no step", .workers = 1, .steps = 0, .starts = {0}, .windows = 1},
        {.name = "no window", .workers = 1, .steps = 3, .starts = {0}, .windows = 0},
        {.name = "starts late", .workers = 1, .steps = 3, .starts = {1}, .windows = 1},
        {.name = "does not rise", .workers = 1, .steps = 3, .starts = {0, 2, 2}, .windows = 3},
        {.name = "beyond the end", .workers = 1, .steps = 3, .starts = {0, 3}, .windows = 2},
        {.name = "overflow", .workers = 4, .steps = UINT64_MAX / 2, .starts = {0}, .windows = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_claim *c;
        int rc = drps_claim_new(cases[i].workers, cases[i].steps, cases[i].starts, cases[i].windows,
                                1, &c, &err);
        if (rc != DRPS_E_CONFIG || c || !err.text[0])
            fail_msg("%s: expected DRPS_E_CONFIG, found %d '%s'", cases[i].name, rc, err.text);
    }
}

/* Scheduler and claims together, as the engine drives them: a released worker without a batch is
 * gone until there is one. */
struct machine {
    struct drps_sched *sched;
    struct drps_claim *claim;
    uint64_t now;
    int runs[EPOCH_WORKERS], idle[EPOCH_WORKERS];
    struct drps_claim_batch batch[EPOCH_WORKERS];
    unsigned released[2 * EPOCH_WORKERS], executed[EPOCH_WORKERS][EPOCH_STEPS];
    int n;
};

static void add_released(struct machine *m, int n, const struct drps_err *err)
{
    assert_ok(n < 0 ? n : 0, err);
    m->n += n;
}

static void start_released(struct machine *m)
{
    struct drps_err err = DRPS_ERR_INIT;
    while (m->n > 0) {
        unsigned k = m->released[--m->n];
        m->runs[k] = drps_claim_next(m->claim, k, &m->batch[k], &err);
        m->idle[k] = !m->runs[k];
        if (m->idle[k])
            add_released(m, drps_sched_gone(m->sched, k, m->now, m->released + m->n, &err), &err);
    }
}

static void finish_batch(struct machine *m, unsigned k)
{
    struct drps_err err = DRPS_ERR_INIT;
    m->executed[m->batch[k].share][m->batch[k].step]++;
    m->runs[k] = 0;
    int opened = drps_claim_done(m->claim, k, &err);
    add_released(m, drps_sched_arrive(m->sched, k, m->now, m->released, &err), &err);
    for (unsigned i = 0; i < EPOCH_WORKERS && opened; i++)
        if (m->idle[i]) {
            m->idle[i] = 0;
            add_released(m, drps_sched_joined(m->sched, i, m->now, m->released + m->n, &err), &err);
        }
    start_released(m);
}

static void run_epoch(enum drps_sched_mode mode, int claimable, uint64_t seed)
{
    static const uint64_t starts[] = {0, 3, 4, 8};
    struct drps_sched_config c = drps_sched_defaults(mode, EPOCH_WORKERS);
    struct drps_err err = DRPS_ERR_INIT;
    struct machine m = {.n = 0};
    assert_ok(drps_sched_new(&c, 0, &m.sched, &err), &err);
    assert_ok(drps_claim_new(EPOCH_WORKERS, EPOCH_STEPS, starts, 4, claimable, &m.claim, &err),
              &err);
    for (unsigned k = 0; k < EPOCH_WORKERS; k++)
        m.released[m.n++] = k;
    start_released(&m);
    for (uint64_t i = 0; drps_claim_left(m.claim) > 0; i++) { /* ends: every turn draws again */
        uint64_t bits = drps_rng_at(seed, i);
        unsigned k = (unsigned)(bits % EPOCH_WORKERS), running = 0;
        for (unsigned w = 0; w < EPOCH_WORKERS; w++)
            running += m.runs[w] != 0;
        if (!running)
            fail_msg("%s, claims %d, seed %" PRIu64 ": nobody runs, %" PRIu64 " batches are left",
                     drps_sched_mode_name(mode), claimable, seed, drps_claim_left(m.claim));
        m.now += bits >> 32 & 15;
        if (m.runs[k] && (k > 0 || (bits >> 40) % 4 == 0)) finish_batch(&m, k); /* 0 is slow */
    }
    for (unsigned share = 0; share < EPOCH_WORKERS; share++)
        for (unsigned t = 0; t < EPOCH_STEPS; t++)
            assert_int_equal(m.executed[share][t], 1);
    drps_sched_free(m.sched);
    drps_claim_free(m.claim);
}

static void test_claim_epoch_ends_under_every_mode(void **state)
{
    (void)state;
    for (unsigned mode = DRPS_SCHED_BSP; mode <= DRPS_SCHED_WSP_LITERAL; mode++)
        for (uint64_t seed = 0; seed < 200; seed++)
            run_epoch((enum drps_sched_mode)mode, seed % 2, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claim_every_interleaving),
        cmocka_unit_test(test_claim_takes_from_the_slowest),
        cmocka_unit_test(test_claim_off_keeps_to_its_share),
        cmocka_unit_test(test_claim_epoch_ends_under_every_mode),
        cmocka_unit_test(test_claim_refuses_events_out_of_order),
        cmocka_unit_test(test_claim_refuses_bad_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
