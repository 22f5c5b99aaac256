/*
 * The ladder of filters, which gets stronger with each rung and fits each synchronisation; the
 * search, against tables of losses; and what is made of pilots, with runs that are made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cluster/target/drps_ladder.h"
#include "engine/cluster/target/drps_target.h"

/* ---- Rungs ---- */

static double top_of(const struct drps_train_options *o)
{
    return o->push.top > 0 ? o->push.top : 1;
}

/* Whether `b` sends no more than `a` of anything, and less of something. */
static int is_stronger(const struct drps_train_options *b, const struct drps_train_options *a)
{
    const int no_more = b->push.bits <= a->push.bits && b->pull.bits <= a->pull.bits &&
                        top_of(b) <= top_of(a) && b->pull.psi >= a->pull.psi &&
                        b->pull_cached >= a->pull_cached;
    const int less =
        b->push.bits < a->push.bits || top_of(b) < top_of(a) || b->pull.psi > a->pull.psi;
    return no_more && less;
}

static void test_each_rung_is_stronger(void **state)
{
    (void)state;
    for (int sync = DRPS_SCHED_BSP; sync <= DRPS_SCHED_WSP_LITERAL; sync++)
        for (uint32_t dim = 1; dim <= 8; dim += 7) {
            struct drps_train_options before = {.sync = (enum drps_sched_mode)sync};
            const unsigned rungs = drps_ladder_rungs(before.sync);
            drps_ladder_set(&before, 1, dim, 1);
            for (unsigned i = 2; i <= rungs; i++) {
                struct drps_train_options o = before;
                drps_ladder_set(&o, i, dim, 1);
                if (!is_stronger(&o, &before))
                    fail_msg("sync %d, rows of %u: rung %u is not stronger than the one before",
                             sync, dim, i);
                before = o;
            }
        }
}

static void test_rungs_fit_the_synchronisation(void **state)
{
    (void)state;
    for (int sync = DRPS_SCHED_BSP; sync <= DRPS_SCHED_WSP_LITERAL; sync++)
        for (unsigned i = 1; i <= drps_ladder_rungs((enum drps_sched_mode)sync); i++) {
            struct drps_train_options o = {.sync = (enum drps_sched_mode)sync};
            const int is_bsp = sync == DRPS_SCHED_BSP;
            drps_ladder_set(&o, i, 4, 1);
            assert_true(o.push.on && o.pull.on);
            assert_true(is_bsp || (o.pull.bits == 16 && !(o.pull.psi > 0) && !(o.pull.eps > 0)));
            assert_true(!(o.pull.psi > 0) || o.pull.eps >= DRPS_PULL_EPS);
            assert_true(!o.pull_cached || sync == DRPS_SCHED_SSP);
            drps_ladder_set(&o, i, 4, 0);
            assert_false(o.pull_cached);
            drps_ladder_set(&o, i, 1, 0);
            assert_int_equal(o.pull.bits, 16);
            drps_ladder_set(&o, 0, 4, 1);
            assert_false(o.push.on || o.pull.on || o.pull_cached);
        }
    struct drps_train_options ssp = {.sync = DRPS_SCHED_SSP};
    drps_ladder_set(&ssp, drps_ladder_rungs(DRPS_SCHED_SSP), 4, 1);
    assert_true(ssp.pull_cached);
}

/* ---- The search ---- */

enum { RUNGS = 15 };

static const struct {
    const char *name;
    double plain, share;
    double loss[RUNGS];
    unsigned want, trials;
} searches[] = {
    {"all are good", 1, .01, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 15, 4},
    {"none is", 1, .01, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 0, 4},
    {"the first alone", 1, .01, {1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 1, 4},
    {"better by too much",
     1,
     .01,
     {1, 1, 1, .991, .98, .97, .9, .9, .9, .9, .9, .9, 2, 2, 2},
     4,
     4},
    {"some", 1, .01, {.99, 1, 1, 1.001, 1.002, 1.0099, 1.0101, 2, 2, 2, 2, 2, 2, 2, 2}, 6, 4},
    {"just within", 1, .5, {1, 1, 1, 1, 1, 1, 1, 1, 1.5, 1.5, 1.51, 2, 2, 2, 2}, 10, 4},
    {"a share of it", 100, .01, {100, 100.5, 101, 101.1, 102, 102, 102, 102, 102}, 3, 4},
    {"below zero", -1, .1, {-1, -.95, -.905, -.89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 3, 4},
    {"diverged", 1, 1, {1, 1, 1, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, NAN, NAN}, 3, 4},
    /* Where more costs less at times, what was tried last and was good is taken. */
    {"a dent", 1, .01, {1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2}, 11, 4},
};

static void test_searches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(searches) / sizeof(*searches); i++) {
        struct drps_ladder_search s =
            drps_ladder_begin(searches[i].plain, searches[i].share, RUNGS);
        unsigned trials = 0, rung;
        while ((rung = drps_ladder_next(&s)) != 0 && trials++ < RUNGS) {
            const double loss = searches[i].loss[rung - 1];
            /* What a table leaves out is too much. */
            (void)drps_ladder_note(&s, rung,
                                   loss < 0 || loss > 0 || isnan(loss) ? loss
                                   : searches[i].plain < 0             ? 0
                                                                       : INFINITY);
        }
        if (s.within != searches[i].want || trials != searches[i].trials)
            fail_msg("%s: rung %u after %u trials, not %u after %u", searches[i].name, s.within,
                     trials, searches[i].want, searches[i].trials);
    }
}

/* Every number of rungs, and every one that may be the last that is good. */
static void test_finds_the_last(void **state)
{
    (void)state;
    for (unsigned rungs = 1; rungs <= RUNGS; rungs++)
        for (unsigned last = 0; last <= rungs; last++) {
            struct drps_ladder_search s = drps_ladder_begin(1, 0.25, rungs);
            unsigned trials = 0, rung;
            while ((rung = drps_ladder_next(&s)) != 0) {
                assert_true(rung <= rungs && trials++ < 4);
                assert_int_equal(drps_ladder_note(&s, rung, rung <= last ? 1.25 : 1.26),
                                 rung <= last);
            }
            assert_int_equal(s.within, last);
        }
}

/* ---- Pilots that are made up ---- */

struct tale {
    int good;                            /* rungs whose loss is that without filters */
    int rc[DRPS_TARGET_PILOTS_MOST + 1]; /* of each run */
    int resumes, already;
    double plain;
    unsigned runs, told;
    struct drps_train_options seen[DRPS_TARGET_PILOTS_MOST + 1];
};

static unsigned rung_of(const struct drps_train_options *o)
{
    for (unsigned i = 0; i <= drps_ladder_rungs(o->sync); i++) {
        struct drps_train_options rung = *o;
        drps_ladder_set(&rung, i, 4, 1);
        if (memcmp(&rung.push, &o->push, sizeof(rung.push)) == 0 &&
            memcmp(&rung.pull, &o->pull, sizeof(rung.pull)) == 0)
            return i;
    }
    fail_msg("these filters are of no rung");
    return 0;
}

static int made_up(void *ctx, const struct drps_train_options *o, struct drps_train_result *r,
                   struct drps_err *err)
{
    struct tale *t = ctx;
    const unsigned run = t->runs++;
    memset(r, 0, sizeof(*r));
    assert_true(run < DRPS_TARGET_PILOTS_MOST);
    t->seen[run] = *o;
    r->already = t->already;
    r->resumed_epoch = (uint64_t)t->resumes;
    if (t->rc[run]) return drps_err_set(err, t->rc[run], "as told");
    r->epochs = calloc(1, sizeof(*r->epochs));
    r->epochs_n = 1;
    const double loss = rung_of(o) <= (unsigned)t->good ? t->plain : 2 * t->plain;
    r->epochs[0].train_loss = loss;
    r->epochs[0].test.loss = NAN;
    r->ranks = calloc(2, sizeof(*r->ranks));
    r->ranks_n = 2;
    r->ranks[1].sent[DRPS_TRAFFIC_PUSHED].bytes = 100 - rung_of(o);
    r->ranks[0].sent[DRPS_TRAFFIC_PULLED].bytes = 1000;
    return 0;
}

static void count(void *ctx, const struct drps_target *target)
{
    struct tale *t = ctx;
    t->told++;
    assert_int_equal(t->told, target->pilots_n);
}

static atomic_int stop;

static void never_epoch(void *ctx, const struct drps_epoch *epoch)
{
    (void)ctx;
    (void)epoch;
    fail_msg("a pilot tells of its epoch");
}

static void never_cut(void *ctx, const struct drps_train_cut *cut)
{
    (void)ctx;
    (void)cut;
    fail_msg("a pilot tells of a checkpoint");
}

static const struct drps_train_options asked = {.model_path = "model",
                                                .epochs = 7,
                                                .resume = 1,
                                                .seed = 5,
                                                .stop = &stop,
                                                .emulate = (const struct drps_timing *)&stop,
                                                .on_epoch = never_epoch,
                                                .on_checkpoint = never_cut};

static int find(struct tale *t, const char *loss, struct drps_target *out, struct drps_err *err)
{
    struct drps_plan plan = {.info = {.algo = "fm", .dim = 4, .batches = 2000}};
    (void)strncpy(plan.info.loss, loss, sizeof(plan.info.loss) - 1);
    const struct drps_target_options options = {
        .train = &asked, .plan = &plan, .share = 0.01, .run = made_up, .on_pilot = count, .ctx = t};
    return drps_target_find(&options, out, err);
}

static void test_chooses_what_pilots_say(void **state)
{
    (void)state;
    for (int good = 0; good <= RUNGS; good++) {
        struct tale t = {.good = good, .plain = 0.5};
        struct drps_target target;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_options o = asked;
        if (find(&t, "logistic", &target, &err) < 0) fail_msg("%s", err.text);
        drps_target_apply(&target, &o);
        assert_int_equal(rung_of(&o), good);
        assert_int_equal(target.pilots[target.chosen].rung, good);
        assert_int_equal(target.pilots_n, 5);
        assert_int_equal(t.told, 5);
        assert_int_equal(target.rounds, DRPS_TARGET_ROUNDS);
        assert_int_equal(target.measure, DRPS_TARGET_TRAIN_LOSS);
        assert_int_equal(target.pilots[0].bytes, 1100);
        assert_true(drps_target_bytes(&target) < 5500);
        assert_int_equal(o.pilot.on, 0);
    }
}

/* Only the first one looks for what is there. */
static void test_options_of_pilots(void **state)
{
    struct tale t = {.good = 3, .plain = 0.5};
    struct drps_target target;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(find(&t, "logistic", &target, &err), 0);
    for (unsigned i = 0; i < t.runs; i++) {
        const struct drps_train_options *o = &t.seen[i];
        assert_true(o->pilot.on);
        assert_int_equal(o->pilot.rounds, DRPS_TARGET_ROUNDS);
        assert_int_equal(o->seed, 5);
        assert_null(o->emulate);
        assert_true(!o->on_epoch && !o->on_checkpoint);
        assert_int_equal(o->resume, i == 0);
        assert_int_equal(o->replace, i > 0);
    }
}

static void test_squared_losses_become_errors(void **state)
{
    struct tale t = {.good = 3, .plain = 0.5};
    struct drps_target target;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(find(&t, "squared", &target, &err), 0);
    assert_int_equal(target.measure, DRPS_TARGET_TRAIN_RMSE);
    assert_true(fabs(target.pilots[0].loss - 1) < 1e-12);
    assert_int_equal(target.pilots[target.chosen].rung, 3);
}

static void test_goes_on_without_pilots(void **state)
{
    (void)state;
    for (int already = 0; already < 2; already++) {
        struct tale t = {.good = 3, .plain = 0.5, .resumes = already ? 0 : 2, .already = already};
        struct drps_target target;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_train_options o = asked;
        assert_int_equal(find(&t, "logistic", &target, &err), 0);
        assert_int_equal(t.runs, 1);
        assert_int_equal(t.told, 0);
        assert_true(target.resumes);
        drps_target_apply(&target, &o);
        assert_false(o.push.on || o.pull.on);
    }
}

/* Filters with which training diverges are too strong; other failures are the caller's. */
static void test_failures(void **state)
{
    struct drps_target target;
    struct drps_err err = DRPS_ERR_INIT;
    struct tale diverges = {.good = RUNGS, .plain = 0.5, .rc = {0, -ERANGE}};
    (void)state;
    assert_int_equal(find(&diverges, "logistic", &target, &err), 0);
    assert_int_equal(err.code, 0);
    assert_true(isinf(target.pilots[1].loss));
    assert_int_equal(target.pilots[target.chosen].rung, 7);
    for (unsigned run = 0; run < 3; run++) {
        struct tale fails = {.good = 3, .plain = 0.5};
        fails.rc[run] = run ? DRPS_E_INTERRUPTED : -ERANGE;
        drps_err_clear(&err);
        assert_int_equal(find(&fails, "logistic", &target, &err), fails.rc[run]);
        assert_string_equal(
            err.text, run ? "interrupted while filters were tried: nothing is written" : "as told");
        assert_int_equal(fails.runs, run + 1);
    }
    /* A rank that stops before others know is no failure of theirs. */
    struct tale lost = {.good = 3, .plain = 0.5, .rc = {0, DRPS_E_PEER}};
    atomic_store(&stop, 1);
    drps_err_clear(&err);
    assert_int_equal(find(&lost, "logistic", &target, &err), DRPS_E_INTERRUPTED);
    assert_int_equal(err.code, DRPS_E_INTERRUPTED);
    atomic_store(&stop, 0);
    lost.runs = lost.told = 0;
    drps_err_clear(&err);
    assert_int_equal(find(&lost, "logistic", &target, &err), DRPS_E_PEER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_rung_is_stronger),
        cmocka_unit_test(test_rungs_fit_the_synchronisation),
        cmocka_unit_test(test_searches),
        cmocka_unit_test(test_finds_the_last),
        cmocka_unit_test(test_chooses_what_pilots_say),
        cmocka_unit_test(test_options_of_pilots),
        cmocka_unit_test(test_squared_losses_become_errors),
        cmocka_unit_test(test_goes_on_without_pilots),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
