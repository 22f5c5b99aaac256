/*
 * What does each parallel model cost and bring? Iteration times are replayed through the scheduler
 * in simulated time: the same times for every mode, and no thread, so that 1000 workers are
 * simulated in seconds.
 *
 *   sim_sched [--workers N] [--rounds N] [--timing MODEL[:SECONDS[:SEED]] | --timing FILE]
 *             [--network-ms X] [--epochs N] [--window-steps N] [--seed N]
 *             [--modes "bsp ssp:1 wsp"] [--set "longest=.25 quorum=1"] [--json]
 *
 * Timings are those of sched/drps_timing.h, which drps-train --emulate makes real: a model, of 100
 * ms and --seed unless it says otherwise, or a trace. --network-ms is added to every iteration: its
 * messages. --set: fields of the configuration of the WSP modes.
 *
 * A run lasts as long as `rounds` iterations of the timing's mean. Printed for each mode:
 *   rate       iterations a second, relative to ASP and to BSP
 *   waiting    share of the workers' time that is not spent in iterations: in all, in the first
 *              round, for the bound, in wait sets
 *   stale      others' iterations that came in during one, in rounds (over workers - 1): mean,
 *              largest
 *   lag        labels ahead of the slowest worker, at a release: mean, largest
 *   target     rounds of the mean until SGD has a hundredth of its first loss, at the best of some
 *              step sizes
 *   epoch      seconds of an epoch of `rounds` batches a worker in windows of --window-steps
 *              (default a tenth of them), over those that ASP's rate makes of it, with and without
 *              claiming: the mean of --epochs that follow on each other (default 1); each of them
 *              with --json
 *   decision   time of drps_sched_arrive(): mean, 99th percentile
 *
 * SGD: a quadratic whose curvatures span 1 to 1/64, gradients with noise, taken at the parameters
 * that the worker was released with and applied when it arrives. Every mode may choose its step
 * size, as one would.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "sched/drps_claim.h"
#include "sched/drps_sched.h"
#include "sched/drps_timing.h"

enum { DIM = 16, STEPS = 16, MODES_MAX = 16, EPOCHS_MAX = 1000 };
#define IDLE UINT64_MAX /* finish_ns of a worker that does not run */
#define NOISE .3
#define TARGET .01

enum cause { FIRST_ROUND, BOUND, WAIT_SET, CAUSES };

struct setting {
    unsigned workers;
    uint64_t rounds, seed, window_steps, epochs;
    const char *set; /* of the WSP modes: "NAME=VALUE ..." */
    const char *timing_name;
    struct drps_timing *timing; /* own */
    uint64_t mean_ns, network_ns;
    int json;
};

struct entry { /* a mode to run, and what was found */
    enum drps_sched_mode mode;
    char name[32];
    int bounded; /* is `bound` given? */
    uint64_t bound;
    uint64_t iterations;
    double waiting_for[CAUSES];
    double expected_ms, needed_ms; /* of a chosen wait, mean: until all were expected, and came */
    double rate, waiting, stale_mean, stale_max, lag_mean, lag_max, target, decision_us,
        decision_p99_us;
    double *epochs[2]; /* own: [setting->epochs] seconds, without and with claims */
};

struct sgd {
    double x[STEPS][DIM];
    double *snapshot; /* [workers][STEPS][DIM] */
    double first_loss;
    double reached_ns[STEPS]; /* infinity: not yet */
    uint64_t updates;
};

struct sim {
    const struct setting *setting;
    struct drps_sched *sched;
    struct drps_claim *claim; /* NULL: runs until the horizon */
    uint64_t now_ns, horizon_ns;
    uint64_t *finish_ns, *started; /* [workers]; started: iterations */
    int *without_batch;            /* [workers] */
    unsigned *released;            /* [2 * workers] a stack; an event adds at most workers */
    size_t n_released;
    uint64_t arrivals;
    double partial_ns; /* of iterations that the horizon cut */
    double waited_ns[CAUSES];
    uint64_t sets; /* waits that were chosen */
    double expected_ns, needed_ns;
    struct sgd *sgd;       /* NULL: none */
    uint32_t *decision_ns; /* [decisions_cap], one an arrival */
    size_t decisions_cap;
};

static void die(const char *what, const struct drps_err *err)
{
    fprintf(stderr, "sim_sched: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) die("no memory", NULL);
    return p;
}

static uint64_t iteration_ns(const struct setting *g, unsigned k, uint64_t i)
{
    return drps_timing_ns(g->timing, k, i) + g->network_ns;
}

/* ---- SGD ---- */

/* The step size of SGD, over the number of workers: 1/8 to 1.7. */
static double step_size(int s)
{
    return .125 * pow(2, s / 4.);
}

static double curvature(int d)
{
    return pow(2, -6. * d / (DIM - 1));
}

static void sgd_init(struct sgd *m, unsigned workers)
{
    m->snapshot = zeros((size_t)workers * STEPS * DIM, sizeof(double));
    for (int s = 0; s < STEPS; s++) {
        m->reached_ns[s] = INFINITY;
        for (int d = 0; d < DIM; d++)
            m->x[s][d] = 1 / sqrt(curvature(d)); /* a loss of 1/2 each */
    }
    m->first_loss = DIM / 2.;
}

static void sgd_pull(struct sgd *m, unsigned k)
{
    memcpy(m->snapshot + (size_t)k * STEPS * DIM, m->x, sizeof(m->x));
}

static void sgd_push(struct sgd *m, const struct setting *g, unsigned k, uint64_t now_ns)
{
    const double *at = m->snapshot + (size_t)k * STEPS * DIM;
    double loss[STEPS] = {0}, step[STEPS];
    for (int s = 0; s < STEPS; s++)
        step[s] = step_size(s) / g->workers;
    for (int d = 0; d < DIM; d++) {
        double u = drps_unit_double(drps_rng_at(g->seed + 77, m->updates * DIM + (uint64_t)d));
        double noise = NOISE * sqrt(12) * (u - .5), h = curvature(d);
        for (int s = 0; s < STEPS; s++) {
            m->x[s][d] -= step[s] * (h * at[s * DIM + d] + noise);
            loss[s] += h / 2 * m->x[s][d] * m->x[s][d];
        }
    }
    m->updates++;
    for (int s = 0; s < STEPS; s++)
        if (loss[s] < TARGET * m->first_loss && isinf(m->reached_ns[s]))
            m->reached_ns[s] = (double)now_ns;
}

static double sgd_target_rounds(const struct sgd *m, uint64_t mean_ns)
{
    double best = INFINITY;
    for (int s = 0; s < STEPS; s++)
        best = fmin(best, m->reached_ns[s]);
    return best / (double)mean_ns;
}

/* ---- A run ---- */

static void push_released(struct sim *m, int n, const struct drps_err *err)
{
    if (n < 0) die("scheduler", err);
    m->n_released += (size_t)n;
}

/* Workers that may start do so; a worker that gets no batch leaves until there is one. */
static void start_released(struct sim *m)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_claim_batch batch;
    while (m->n_released > 0) {
        unsigned k = m->released[--m->n_released];
        int rc = m->claim ? drps_claim_next(m->claim, k, &batch, &err) : 1;
        if (rc < 0) die("claims", &err);
        m->without_batch[k] = rc == 0;
        if (rc == 0) {
            push_released(
                m, drps_sched_gone(m->sched, k, m->now_ns, m->released + m->n_released, &err),
                &err);
            continue;
        }
        m->finish_ns[k] = m->now_ns + iteration_ns(m->setting, k, m->started[k]++);
        if (m->sgd) sgd_pull(m->sgd, k);
    }
}

static void count_arrival(struct sim *m, unsigned k)
{
    m->arrivals++;
    m->finish_ns[k] = IDLE;
    if (m->sgd) sgd_push(m->sgd, m->setting, k, m->now_ns);
}

/* If k waits for others by choice: how long for, as it was expected, and as it will be? */
static void count_set(struct sim *m, unsigned k)
{
    const struct drps_sched_decision *d = drps_sched_decision(m->sched);
    uint64_t last = m->now_ns;
    if (drps_sched_workers(m->sched)[k].state != DRPS_SCHED_LEAD) return;
    for (size_t i = 1; i <= d->chosen; i++)
        if (m->finish_ns[d->row[i].worker] > last) last = m->finish_ns[d->row[i].worker];
    m->sets++;
    m->expected_ns += d->row[d->chosen].wait_ns;
    m->needed_ns += (double)(last - m->now_ns);
}

/* Workers that had no batch may ask again. */
static void join_idle(struct sim *m)
{
    struct drps_err err = DRPS_ERR_INIT;
    for (unsigned k = 0; k < m->setting->workers; k++) {
        if (!m->without_batch[k]) continue;
        m->without_batch[k] = 0;
        push_released(
            m, drps_sched_joined(m->sched, k, m->now_ns, m->released + m->n_released, &err), &err);
    }
}

static void arrive(struct sim *m, unsigned k)
{
    struct drps_err err = DRPS_ERR_INIT;
    count_arrival(m, k);
    int opened = m->claim ? drps_claim_done(m->claim, k, &err) : 0;
    if (opened < 0) die("claims", &err);
    if (drps_array_reserve(&m->decision_ns, &m->decisions_cap, (size_t)m->arrivals,
                           sizeof(*m->decision_ns)))
        die("no memory", NULL);
    uint64_t before = drps_clock_ns();
    int n = drps_sched_arrive(m->sched, k, m->now_ns, m->released, &err);
    m->decision_ns[m->arrivals - 1] = (uint32_t)(drps_clock_ns() - before);
    push_released(m, n, &err);
    count_set(m, k);
    if (opened) join_idle(m);
    start_released(m);
}

/* Time passes: who waits, and what for? */
static void count_waiting(struct sim *m, uint64_t until_ns)
{
    const struct drps_sched_worker *it = drps_sched_workers(m->sched);
    double ns = (double)(until_ns - m->now_ns);
    for (unsigned k = 0; k < m->setting->workers; k++)
        if (it[k].state == DRPS_SCHED_LEAD || it[k].state == DRPS_SCHED_CAPTURED)
            m->waited_ns[WAIT_SET] += ns;
        else if (it[k].state == DRPS_SCHED_READY)
            m->waited_ns[it[k].iterations == 1 ? FIRST_ROUND : BOUND] += ns;
}

static void run(struct sim *m)
{
    unsigned workers = m->setting->workers;
    while (!m->claim || drps_claim_left(m->claim) > 0) {
        uint64_t deadline = drps_sched_deadline(m->sched);
        unsigned next = 0;
        for (unsigned k = 1; k < workers; k++)
            if (m->finish_ns[k] < m->finish_ns[next]) next = k;
        uint64_t then = m->finish_ns[next] <= deadline ? m->finish_ns[next] : deadline;
        if (then == IDLE) die("all workers wait", NULL);
        count_waiting(m, then < m->horizon_ns ? then : m->horizon_ns);
        if (then > m->horizon_ns) break;
        m->now_ns = then;
        if (m->finish_ns[next] == then)
            arrive(m, next);
        else {
            push_released(m, drps_sched_tick(m->sched, then, m->released), NULL);
            start_released(m);
        }
    }
    for (unsigned k = 0; k < workers; k++)
        if (m->finish_ns[k] != IDLE)
            m->partial_ns += (double)(m->horizon_ns - drps_sched_workers(m->sched)[k].start_ns);
}

/* --set */
static void configure(struct drps_sched_config *c, const char *set)
{
    const struct {
        const char *name;
        double *value;
    } fields[] = {{"lambda", &c->lambda},   {"ema", &c->ema},         {"patience", &c->patience},
                  {"longest", &c->longest}, {"outlier", &c->outlier}, {"quorum", &c->quorum}};
    const size_t n = sizeof(fields) / sizeof(fields[0]);
    for (const char *at = set + strspn(set, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, "= "), i = 0;
        char *end = NULL;
        while (i < n && (strlen(fields[i].name) != length || strncmp(at, fields[i].name, length)))
            i++;
        if (i < n && at[length] == '=') *fields[i].value = strtod(at + length + 1, &end);
        if (!end || end == at + length + 1 || (*end && *end != ' ')) {
            fprintf(stderr,
                    "sim_sched: --set '%s': NAME=NUMBER, of lambda, ema, patience, longest, "
                    "outlier and quorum\n",
                    at);
            exit(2);
        }
        at = end;
    }
}

static void sim_init(struct sim *m, const struct setting *g, const struct entry *e)
{
    struct drps_sched_config c = drps_sched_defaults(e->mode, g->workers);
    struct drps_err err = DRPS_ERR_INIT;
    if (e->bounded) c.bound = e->bound;
    if (e->mode >= DRPS_SCHED_WSP) configure(&c, g->set);
    *m = (struct sim){.setting = g, .horizon_ns = g->rounds * g->mean_ns};
    if (drps_sched_new(&c, 0, &m->sched, &err)) die("scheduler", &err);
    m->finish_ns = zeros(g->workers, sizeof(uint64_t));
    m->started = zeros(g->workers, sizeof(uint64_t));
    m->without_batch = zeros(g->workers, sizeof(int));
    m->released = zeros(2 * (size_t)g->workers, sizeof(unsigned));
    for (unsigned k = 0; k < g->workers; k++) {
        m->finish_ns[k] = IDLE;
        m->released[m->n_released++] = k;
    }
}

static void sim_destroy(struct sim *m)
{
    drps_sched_free(m->sched);
    drps_claim_free(m->claim);
    free(m->finish_ns);
    free(m->started);
    free(m->without_batch);
    free(m->released);
    free(m->decision_ns);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void summarise(struct sim *m, struct entry *e)
{
    const struct drps_sched_worker *it = drps_sched_workers(m->sched);
    const double round = m->setting->workers > 1 ? m->setting->workers - 1 : 1; /* of others */
    double busy = m->partial_ns, lag = 0, stale = 0, decisions = 0;
    for (unsigned k = 0; k < m->setting->workers; k++) {
        busy += (double)it[k].busy_ns;
        lag += (double)it[k].lag_sum;
        stale += (double)it[k].stale_sum;
        e->stale_max = fmax(e->stale_max, (double)it[k].stale_max / round);
        e->lag_max = fmax(e->lag_max, (double)it[k].lag_max);
    }
    size_t n = (size_t)m->arrivals;
    if (n == 0) die("no iteration ended: give more --rounds", NULL);
    for (size_t i = 0; i < n; i++)
        decisions += m->decision_ns[i];
    qsort(m->decision_ns, n, sizeof(*m->decision_ns), by_number);
    e->iterations = m->arrivals;
    e->rate = (double)n / ((double)m->horizon_ns * 1e-9);
    e->waiting = 1 - busy / ((double)m->horizon_ns * m->setting->workers);
    for (int i = 0; i < CAUSES; i++)
        e->waiting_for[i] = m->waited_ns[i] / ((double)m->horizon_ns * m->setting->workers);
    if (m->sets > 0) {
        e->expected_ms = m->expected_ns / (double)m->sets * 1e-6;
        e->needed_ms = m->needed_ns / (double)m->sets * 1e-6;
    }
    e->stale_mean = stale / round / (double)n;
    e->lag_mean = lag / (double)n;
    e->decision_us = decisions / (double)n * 1e-3;
    e->decision_p99_us = m->decision_ns[n - 1 - n / 100] * 1e-3;
}

static void run_horizon(const struct setting *g, struct entry *e)
{
    struct sgd sgd = {.first_loss = 0};
    struct sim m;
    sim_init(&m, g, e);
    sgd_init(&sgd, g->workers);
    m.sgd = &sgd;
    start_released(&m);
    run(&m);
    summarise(&m, e);
    e->target = sgd_target_rounds(&sgd, g->mean_ns);
    free(sgd.snapshot);
    sim_destroy(&m);
}

static void next_claim(struct sim *m, int claimable)
{
    const struct setting *g = m->setting;
    const size_t windows = (size_t)((g->rounds + g->window_steps - 1) / g->window_steps);
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t *starts = zeros(windows, sizeof(*starts));
    for (size_t v = 0; v < windows; v++)
        starts[v] = v * g->window_steps;
    drps_claim_free(m->claim);
    if (drps_claim_new(g->workers, g->rounds, starts, windows, claimable, &m->claim, &err))
        die("claims", &err);
    free(starts);
}

/* One epoch after the other, with one scheduler. */
static void run_epochs(const struct setting *g, struct entry *e, int claimable)
{
    struct sim m;
    sim_init(&m, g, e);
    m.horizon_ns = IDLE - 1;
    e->epochs[claimable] = zeros(g->epochs, sizeof(double));
    for (uint64_t i = 0; i < g->epochs; i++) {
        const uint64_t start_ns = m.now_ns;
        next_claim(&m, claimable);
        join_idle(&m); /* all of them, but for the first epoch */
        start_released(&m);
        run(&m);
        e->epochs[claimable][i] = (double)(m.now_ns - start_ns) * 1e-9;
    }
    sim_destroy(&m);
}

static double mean(const double *x, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* ---- Options and output ---- */

static void parse_modes(char *text, struct entry *e, size_t *n_out)
{
    struct drps_err err = DRPS_ERR_INIT;
    size_t n = 0;
    for (char *save, *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        if (n == MODES_MAX) die("too many modes", NULL);
        e[n] = (struct entry){.target = INFINITY};
        (void)snprintf(e[n].name, sizeof(e[n].name), "%s", word);
        char *colon = strchr(word, ':'), *end = NULL;
        if (colon) {
            *colon = 0;
            e[n].bound = strtoull(colon + 1, &end, 10);
            e[n].bounded = 1;
            if (end == colon + 1 || *end) die("--modes: MODE:BOUND has a whole number", NULL);
        }
        if (drps_sched_mode_parse(word, &e[n++].mode, &err)) die("--modes", &err);
    }
    *n_out = n;
}

static void print_list(const char *name, const double *x, uint64_t n)
{
    printf("\"%s\": [", name);
    for (uint64_t i = 0; i < n; i++)
        printf("%s%.4f", i ? ", " : "", x[i]);
    printf("], ");
}

static void print_json(const struct setting *g, const struct entry *e, size_t n)
{
    printf("{\"workers\": %u, \"rounds\": %" PRIu64 ", \"timing\": \"%s\", \"seed\": %" PRIu64
           ", \"modes\": [",
           g->workers, g->rounds, g->timing_name, g->seed);
    for (size_t i = 0; i < n; i++) {
        printf("%s\n {\"mode\": \"%s\", \"iterations\": %" PRIu64
               ", \"iterations_per_s\": %.3f, \"waiting_share\": %.4f, ",
               i ? "," : "", e[i].name, e[i].iterations, e[i].rate, e[i].waiting);
        printf("\"first_round_share\": %.4f, \"bound_share\": %.4f, \"wait_set_share\": %.4f, "
               "\"wait_expected_ms\": %.2f, \"wait_needed_ms\": %.2f, ",
               e[i].waiting_for[FIRST_ROUND], e[i].waiting_for[BOUND], e[i].waiting_for[WAIT_SET],
               e[i].expected_ms, e[i].needed_ms);
        printf("\"stale_rounds\": %.3f, \"max_stale_rounds\": %.2f, \"lag\": %.3f, \"max_lag\": "
               "%.0f, ",
               e[i].stale_mean, e[i].stale_max, e[i].lag_mean, e[i].lag_max);
        if (isfinite(e[i].target)) printf("\"target_rounds\": %.2f, ", e[i].target);
        print_list("epochs_s", e[i].epochs[0], g->epochs);
        print_list("epochs_claims_s", e[i].epochs[1], g->epochs);
        printf("\"epoch_s\": %.3f, \"epoch_claims_s\": %.3f, \"decision_us\": %.3f, "
               "\"decision_p99_us\": %.3f}",
               mean(e[i].epochs[0], g->epochs), mean(e[i].epochs[1], g->epochs), e[i].decision_us,
               e[i].decision_p99_us);
    }
    printf("\n]}\n");
}

/* The rate of the entry of that mode; 0: it was not run. */
static double rate_of(const struct entry *e, size_t n, enum drps_sched_mode mode)
{
    for (size_t i = 0; i < n; i++)
        if (e[i].mode == mode) return e[i].rate;
    return 0;
}

static void print_ratio(double a, double b)
{
    if (b > 0 && isfinite(a))
        printf(" %6.2f", a / b);
    else
        printf(" %6s", "-");
}

static void print_table(const struct setting *g, const struct entry *e, size_t n)
{
    double asp = rate_of(e, n, DRPS_SCHED_ASP), bsp = rate_of(e, n, DRPS_SCHED_BSP);
    printf("%u workers, %s, %" PRIu64 " rounds\n", g->workers, g->timing_name, g->rounds);
    printf("%-12s %6s %6s %26s %13s %13s %7s %14s %16s\n", "mode", "rate:", "rate:", "waiting, %",
           "stale rounds", "lag", "target", "epoch: claims,", "decision, us");
    printf("%-12s %6s %6s %5s %6s %6s %6s %6s %6s %6s %6s %7s %7s %6s %9s %6s\n", "", "of ASP",
           "of BSP", "all", "first", "bound", "sets", "mean", "max", "mean", "max", "rounds",
           "with", "w/o", "mean", "p99");
    for (size_t i = 0; i < n; i++) {
        double ideal = asp > 0 ? (double)g->rounds * g->workers / asp : 0;
        printf("%-12s", e[i].name);
        print_ratio(e[i].rate, asp);
        print_ratio(e[i].rate, bsp);
        printf(" %5.1f", e[i].waiting * 100);
        for (int w = 0; w < CAUSES; w++)
            printf(" %6.1f", e[i].waiting_for[w] * 100);
        printf(" %6.2f %6.1f %6.2f %6.0f ", e[i].stale_mean, e[i].stale_max, e[i].lag_mean,
               e[i].lag_max);
        print_ratio(e[i].target, 1);
        printf(" ");
        print_ratio(mean(e[i].epochs[1], g->epochs), ideal);
        print_ratio(mean(e[i].epochs[0], g->epochs), ideal);
        printf(" %9.2f %6.2f\n", e[i].decision_us, e[i].decision_p99_us);
    }
}

static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t x = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || x < least || x > most) {
        fprintf(stderr, "sim_sched: --%s '%s': give %" PRIu64 " to %" PRIu64 "\n", option, text,
                least, most);
        exit(2);
    }
    return x;
}

static double real(const char *option, const char *text, double most)
{
    char *end;
    double x = strtod(text, &end);
    if (end == text || *end || !(x >= 0 && x <= most)) {
        fprintf(stderr, "sim_sched: --%s '%s': give a number from 0 to %g\n", option, text, most);
        exit(2);
    }
    return x;
}

static void usage(void)
{
    fprintf(
        stderr,
        "usage: sim_sched [--workers N] [--rounds N] [--timing "
        "MODEL[:SECONDS[:SEED]] | --timing FILE]\n"
        "                 [--network-ms X] [--epochs N] [--window-steps N] [--seed N]\n"
        "                 [--modes \"MODE[:BOUND] ...\"] [--set \"NAME=VALUE ...\"] [--json]\n");
    exit(2);
}

/* A model's name alone gets 100 ms and --seed. */
static void open_timing(struct setting *g)
{
    struct drps_err err = DRPS_ERR_INIT;
    char full[64];
    const char *spec = g->timing_name;
    for (int m = 0; drps_timing_models[m]; m++)
        if (strcmp(spec, drps_timing_models[m]) == 0 ||
            (strncmp(spec, "tail=", 5) == 0 && !strchr(spec, ':'))) {
            (void)snprintf(full, sizeof(full), "%s:0.1:%" PRIu64, spec, g->seed);
            spec = full;
            break;
        }
    if (drps_timing_open(drps_io_os(), spec, &g->timing, &err)) die("--timing", &err);
    g->mean_ns = drps_timing_mean_ns(g->timing);
}

static void close_entries(struct entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(e[i].epochs[0]);
        free(e[i].epochs[1]);
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"workers", required_argument, NULL, 'w'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"timing", required_argument, NULL, 't'},
                                            {"network-ms", required_argument, NULL, 'n'},
                                            {"epochs", required_argument, NULL, 'e'},
                                            {"window-steps", required_argument, NULL, 'v'},
                                            {"modes", required_argument, NULL, 'm'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"set", required_argument, NULL, 'p'},
                                            {"json", no_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    char modes[] = "bsp asp ssp:1 ssp:3 ssp:10 wsp wsp-literal";
    struct setting g = {.workers = 16,
                        .rounds = 1000,
                        .seed = 1,
                        .epochs = 1,
                        .set = "",
                        .timing_name = "homogeneous"};
    struct entry e[MODES_MAX];
    char *chosen = modes;
    size_t n;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'w')
            g.workers = (unsigned)number("workers", optarg, 1, DRPS_SCHED_WORKERS_MAX);
        else if (c == 'r')
            g.rounds = number("rounds", optarg, 1, 1000000);
        else if (c == 't')
            g.timing_name = optarg;
        else if (c == 'n')
            g.network_ns = (uint64_t)(real("network-ms", optarg, 1e9) * 1e6);
        else if (c == 'e')
            g.epochs = number("epochs", optarg, 1, EPOCHS_MAX);
        else if (c == 'v')
            g.window_steps = number("window-steps", optarg, 1, 1000000);
        else if (c == 'm')
            chosen = optarg;
        else if (c == 's')
            g.seed = number("seed", optarg, 0, UINT32_MAX);
        else if (c == 'p')
            g.set = optarg;
        else if (c == 'j')
            g.json = 1;
        else
            usage();
    }
    if (optind < argc) usage();
    if (!g.window_steps) g.window_steps = (g.rounds + 9) / 10;
    open_timing(&g);
    parse_modes(chosen, e, &n);
    for (size_t i = 0; i < n; i++) {
        run_horizon(&g, &e[i]);
        for (int claims = 0; claims < 2; claims++)
            run_epochs(&g, &e[i], claims);
    }
    if (g.json)
        print_json(&g, e, n);
    else
        print_table(&g, e, n);
    close_entries(e, n);
    drps_timing_close(g.timing);
    return 0;
}
