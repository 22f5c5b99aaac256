/*
 * The scheduler: which workers start their next iteration, and when. BSP, ASP, SSP and WSP as one
 * pure state machine: it starts no thread, does no I/O and has no clock; whoever drives it tells
 * it what happened and when, and gets the workers that may start.
 *
 * Every iteration has a label, its round. A worker that has completed one passes two gates:
 *   1. its wait set (WSP alone): workers that it is worth to wait for, chosen on arrival;
 *   2. the bound (all modes): its next label may be at most `bound` ahead of the lowest label
 *      among live workers. 0 makes BSP, infinity ASP.
 * Under WSP a release jumps: its label is one above the highest completed one, so that a slow
 * worker is not held to account for what it missed.
 *
 * Times are nanoseconds of any clock that does not go back (base/drps_clock.h in the engine,
 * simulated time in bench/sim_sched.c). docs/scheduler.md has a diagram and the reasons.
 *
 * Source: "DRPS", section 6 (Eq. 7, Algorithm 4). We differ: an arrival counts in every wait set
 * that it is in, not in one; the bound is kept for the label that is given, and when it is given;
 * an overdue worker is not expected at once; waits are short and have an end, that of the first
 * round too; an outlier hardly counts. wsp-literal has the first two of these alone.
 */
#ifndef DRPS_SCHED_H
#define DRPS_SCHED_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

#define DRPS_SCHED_MODES(X)                                                                        \
    X(DRPS_SCHED_BSP, "bsp")                                                                       \
    X(DRPS_SCHED_ASP, "asp")                                                                       \
    X(DRPS_SCHED_SSP, "ssp")                                                                       \
    X(DRPS_SCHED_WSP, "wsp")                                                                       \
    X(DRPS_SCHED_WSP_LITERAL, "wsp-literal")

enum drps_sched_mode {
#define DRPS_SCHED_ENUM(mode, name) mode,
    DRPS_SCHED_MODES(DRPS_SCHED_ENUM)
#undef DRPS_SCHED_ENUM
};

enum { DRPS_SCHED_WORKERS_MAX = 4096, DRPS_SCHED_STALE_BINS = 16 };
/* A deadline of this value never comes; a bound of this value never binds. */
#define DRPS_SCHED_NEVER UINT64_MAX

/* How the machine decides. In parentheses: the defaults. */
struct drps_sched_config {
    enum drps_sched_mode mode;
    unsigned workers; /* 1 to DRPS_SCHED_WORKERS_MAX; they are numbered from 0 */
    uint64_t bound;   /* labels; BSP 0, ASP DRPS_SCHED_NEVER, SSP s (3; 0 is BSP's schedule, NEVER
                         ASP's), WSP delta (8 * workers, at least 1024) */
    /* The rest is read by WSP alone. */
    double lambda;   /* weight of waiting time against staleness, at least 0 (1) */
    double ema;      /* weight of the last iteration time in the expected one, above 0, at most 1
                        (.3; literal 1) */
    double patience; /* a wait ends when it has taken (1 + patience) times what was expected, at
                        least 0 (.2; literal: infinity, no end) */
    double longest;  /* no wait is chosen that is expected to take more than this many iterations
                        of the requester, at least 0 (.125; literal: infinity) */
    double outlier;  /* an iteration counts in the expected one as at most this many times what was
                        expected, at least 1 (2; literal: infinity) */
    double quorum;   /* share of the workers, above 0, at most 1: once so many have arrived, the
                        first round waits for the others as for overdue ones (.5; literal: 1) */
};

/* Numbers of WSP that somebody has chosen, of those above; the others are as they are. */
struct drps_sched_tuning {
    int has_lambda, has_ema, has_patience;
    double lambda, ema, patience;
};

enum drps_sched_state {
    DRPS_SCHED_RUN,      /* computes an iteration */
    DRPS_SCHED_LEAD,     /* waits for its own wait set */
    DRPS_SCHED_CAPTURED, /* arrived as a member of others' wait sets; waits for any of those */
    DRPS_SCHED_READY,    /* held by the bound alone, or by the first, synchronous round of WSP */
    DRPS_SCHED_GONE,     /* finished, failed, left, or without a batch: nobody waits for it */
};

/* A row of ITTable, and what was counted of the worker. */
struct drps_sched_worker {
    enum drps_sched_state state;
    uint64_t label;        /* I: of the iteration it runs; waiting: the least that it will get */
    uint64_t start_ns;     /* Ts: its last release */
    uint64_t end_ns;       /* Te: its last arrival (joining counts) */
    uint64_t iteration_ns; /* Titer: its last iteration */
    double expected_ns;    /* smoothed Titer; 0: not measured yet */
    uint64_t iterations;   /* completed */
    uint64_t busy_ns;      /* in completed iterations */
    uint64_t waited_ns;    /* between arrivals and releases; a wait that lasts is not in it */
    uint64_t waits;        /* arrivals that were not released at once */
    uint64_t lag_sum;      /* labels ahead of the slowest live worker, summed over releases */
    uint64_t lag_max;

    /* Staleness of an iteration: how many of others were completed between its release and its
     * arrival. Bins: 0, 1, 2 to 3, 4 to 7, ...; the last one has no upper end. */
    uint64_t stale[DRPS_SCHED_STALE_BINS], stale_sum, stale_max;
};

/* A row of SCTable. Row i of a decision: wait for the workers of rows 1 to i; row 0: for none. A
 * wait that would be too long has no row. */
struct drps_sched_strategy {
    unsigned worker;  /* the last one waited for; row 0: the requester */
    double wait_ns;   /* t_i: until that worker is expected */
    double staleness; /* sum over running workers not waited for of (I_r + 1 - I_l), over W */
    double gain;
};

/* SCTable: the last decision. rows == 0 before the first one. */
struct drps_sched_decision {
    unsigned requester;
    size_t rows, chosen; /* row `chosen` was taken */
    const struct drps_sched_strategy *row;
};

struct drps_sched; /* own: drps_sched_free(). One thread at a time. */

/* Returns the name of a mode, as in --sync; static storage. */
const char *drps_sched_mode_name(enum drps_sched_mode mode);

/* DRPS_E_CONFIG: no such mode; the text lists them. */
DRPS_MUST_CHECK
int drps_sched_mode_parse(const char *name, enum drps_sched_mode *mode_out, struct drps_err *err);

/* Returns the defaults of a mode for a number of workers. */
struct drps_sched_config drps_sched_defaults(enum drps_sched_mode mode, unsigned workers);

/* Put what was chosen into a configuration; drps_sched_new() checks it. */
void drps_sched_tune(const struct drps_sched_tuning *tuning, struct drps_sched_config *config);

/* Numbers that *tuning leaves open become those of `from`. */
void drps_sched_tuning_fill(struct drps_sched_tuning *tuning, const struct drps_sched_tuning *from);

/* 1: any number was chosen. */
static inline int drps_sched_is_tuned(const struct drps_sched_tuning *t)
{
    return t->has_lambda || t->has_ema || t->has_patience;
}

/* 1: a mode with wait sets, which alone has those numbers. */
static inline int drps_sched_has_waits(enum drps_sched_mode mode)
{
    return mode >= DRPS_SCHED_WSP;
}

/*
 * A machine whose workers all start round 0 at now_ns. Memory: workers^2 / 4 bytes and some.
 * DRPS_E_CONFIG: a field of the configuration is out of its range (named). -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_sched_new(const struct drps_sched_config *config, uint64_t now_ns,
                   struct drps_sched **sched_out, struct drps_err *err);
void drps_sched_free(struct drps_sched *s);

/*
 * The events. now_ns: not before that of the last event. released_out [workers] receives the
 * workers that start an iteration now, in rising order.
 * Returns how many these are, or -EINVAL with nothing changed: no such worker, or an event that its
 * state does not allow (the text has both).
 */

/* A running worker has completed its iteration and asks for the next one. */
DRPS_MUST_CHECK
int drps_sched_arrive(struct drps_sched *s, unsigned worker, uint64_t now_ns,
                      unsigned *released_out, struct drps_err *err);

/* A worker has finished, failed or left, or there is no batch for it; not if it is gone already. */
DRPS_MUST_CHECK
int drps_sched_gone(struct drps_sched *s, unsigned worker, uint64_t now_ns, unsigned *released_out,
                    struct drps_err *err);

/* A worker that was gone asks for an iteration. It begins level with the slowest worker, under WSP
 * with the fastest; its old times are kept as expectation. */
DRPS_MUST_CHECK
int drps_sched_joined(struct drps_sched *s, unsigned worker, uint64_t now_ns,
                      unsigned *released_out, struct drps_err *err);

/* End the waits whose deadline has come. Never fails. To be called at drps_sched_deadline(), after
 * the arrivals of that time; a late call only prolongs waits. */
int drps_sched_tick(struct drps_sched *s, uint64_t now_ns, unsigned *released_out);

/* Returns the time at which the next wait ends, or DRPS_SCHED_NEVER. */
uint64_t drps_sched_deadline(const struct drps_sched *s);

/* 1: were the running worker to arrive now, the bound would let it go on at once. Without label
 * jumps (asp, ssp) that stays so until it arrives: the lowest label never falls. */
int drps_sched_has_slack(const struct drps_sched *s, unsigned worker);

/* ITTable: [workers], borrowed, current until the machine is freed. */
const struct drps_sched_worker *drps_sched_workers(const struct drps_sched *s);

/* SCTable: borrowed, valid until the next arrival. */
const struct drps_sched_decision *drps_sched_decision(const struct drps_sched *s);

#endif
