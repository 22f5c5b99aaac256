/*
 * The scheduler's state machine; drps_sched.h has the idea. A wait set belongs to its leader:
 * `pending` are the workers still waited for, `held` those that arrived in it and wait with the
 * leader. One set a leader, so leader and set share a number.
 *
 * Nobody waits for ever: pending holds running workers only (they run when the set is made, and an
 * arrival takes the worker out of every set), and a set without pending workers closes. So if no
 * worker ran, no set would be open; and the bound holds nobody back when nobody runs. While
 * the bound holds anyone under WSP it holds everyone, so those ahead cannot run further away.
 */
#include "sched/drps_sched.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "sched/wsp.h"

struct wait_set {
    uint64_t *pending, *held; /* [words] a bit a worker; borrowed from drps_sched.bits */
    size_t left;              /* bits in pending */
    int open;
    uint64_t deadline_ns;
};

struct drps_sched {
    struct drps_sched_config config;
    int selects;                      /* WSP: wait sets, label jump */
    int first_round;                  /* of WSP: it measures the workers once, and is synchronous */
    uint64_t first_deadline_ns;       /* of the first round; NEVER: there is no quorum yet */
    uint64_t front;                   /* the highest completed label + 1 */
    uint64_t completed;               /* iterations, of all workers */
    struct drps_sched_worker *worker; /* [workers] ITTable */
    uint64_t *completed_then;         /* [workers] at the worker's last release */
    struct wait_set *set;             /* [workers], by leader */
    uint64_t *bits;                   /* [2][workers][words] */
    size_t words;
    struct drps_sched_strategy *row; /* [workers] SCTable */
    struct drps_sched_decision decision;
};

static const char *const mode_names[] = {
#define MODE_NAME(mode, name) [mode] = name,
    DRPS_SCHED_MODES(MODE_NAME)
#undef MODE_NAME
};
enum { MODES = sizeof(mode_names) / sizeof(mode_names[0]) };

const char *drps_sched_mode_name(enum drps_sched_mode mode)
{
    return mode_names[mode];
}

int drps_sched_mode_parse(const char *name, enum drps_sched_mode *mode_out, struct drps_err *err)
{
    for (unsigned i = 0; i < MODES; i++)
        if (strcmp(name, mode_names[i]) == 0) {
            *mode_out = (enum drps_sched_mode)i;
            return 0;
        }
    return drps_err_set(err, DRPS_E_CONFIG,
                        "'%s' is no parallel model: bsp, asp, ssp, wsp or wsp-literal", name);
}

struct drps_sched_config drps_sched_defaults(enum drps_sched_mode mode, unsigned workers)
{
    static const uint64_t bound[MODES] = {
        [DRPS_SCHED_ASP] = DRPS_SCHED_NEVER, [DRPS_SCHED_SSP] = 3};
    struct drps_sched_config c = {.mode = mode,
                                  .workers = workers,
                                  .bound = bound[mode],
                                  .lambda = 1,
                                  .ema = .3,
                                  .patience = .2,
                                  .longest = .125,
                                  .outlier = 2,
                                  .quorum = .5};
    if (mode == DRPS_SCHED_WSP_LITERAL) {
        c.ema = 1;
        c.patience = c.longest = c.outlier = INFINITY;
        c.quorum = 1;
    }
    if (drps_sched_has_waits(mode)) c.bound = workers <= 128 ? 1024 : 8 * (uint64_t)workers;
    return c;
}

void drps_sched_tune(const struct drps_sched_tuning *tuning, struct drps_sched_config *config)
{
    if (tuning->has_lambda) config->lambda = tuning->lambda;
    if (tuning->has_ema) config->ema = tuning->ema;
    if (tuning->has_patience) config->patience = tuning->patience;
}

static void fill(int *has, double *value, int from_has, double from)
{
    if (*has || !from_has) return;
    *has = 1;
    *value = from;
}

void drps_sched_tuning_fill(struct drps_sched_tuning *tuning, const struct drps_sched_tuning *from)
{
    fill(&tuning->has_lambda, &tuning->lambda, from->has_lambda, from->lambda);
    fill(&tuning->has_ema, &tuning->ema, from->has_ema, from->ema);
    fill(&tuning->has_patience, &tuning->patience, from->has_patience, from->patience);
}

static int config_check(const struct drps_sched_config *c, struct drps_err *err)
{
    if (c->workers < 1 || c->workers > DRPS_SCHED_WORKERS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u workers: give 1 to %d", c->workers,
                            DRPS_SCHED_WORKERS_MAX);
    if (c->mode == DRPS_SCHED_BSP && c->bound != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "staleness %" PRIu64 " under bsp: it is always 0; ssp takes one",
                            c->bound);
    if (c->mode == DRPS_SCHED_ASP && c->bound != DRPS_SCHED_NEVER)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "staleness %" PRIu64 " under asp: it has no bound; ssp takes one",
                            c->bound);
    if (!(c->lambda >= 0) || isinf(c->lambda))
        return drps_err_set(err, DRPS_E_CONFIG, "lambda %g: give 0 or more", c->lambda);
    if (!(c->ema > 0 && c->ema <= 1))
        return drps_err_set(err, DRPS_E_CONFIG, "ema %g: give more than 0, at most 1", c->ema);
    if (!(c->patience >= 0))
        return drps_err_set(err, DRPS_E_CONFIG, "patience %g: give 0 or more", c->patience);
    if (!(c->longest >= 0))
        return drps_err_set(err, DRPS_E_CONFIG, "longest wait %g: give 0 or more", c->longest);
    if (!(c->outlier >= 1))
        return drps_err_set(err, DRPS_E_CONFIG, "outlier %g: give 1 or more", c->outlier);
    if (!(c->quorum > 0 && c->quorum <= 1))
        return drps_err_set(err, DRPS_E_CONFIG, "quorum %g: give more than 0, at most 1",
                            c->quorum);
    return 0;
}

void drps_sched_free(struct drps_sched *s)
{
    if (!s) return;
    free(s->worker);
    free(s->completed_then);
    free(s->set);
    free(s->bits);
    free(s->row);
    free(s);
}

int drps_sched_new(const struct drps_sched_config *config, uint64_t now_ns,
                   struct drps_sched **sched_out, struct drps_err *err)
{
    *sched_out = NULL;
    int rc = config_check(config, err);
    if (rc < 0) return rc;
    size_t n = config->workers;
    struct drps_sched *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory to schedule %zu workers", n);
    s->config = *config;
    s->selects = drps_sched_has_waits(config->mode);
    s->first_round = s->selects;
    s->first_deadline_ns = DRPS_SCHED_NEVER;
    s->words = (n + 63) / 64;
    s->worker = calloc(n, sizeof(*s->worker));
    s->completed_then = calloc(n, sizeof(*s->completed_then));
    s->set = calloc(n, sizeof(*s->set));
    s->bits = calloc(2 * n * s->words, sizeof(*s->bits));
    s->row = drps_array_new(n, sizeof(*s->row));
    if (!s->worker || !s->completed_then || !s->set || !s->bits || !s->row) {
        drps_sched_free(s);
        return drps_err_set(err, -ENOMEM, "no memory to schedule %zu workers", n);
    }
    for (size_t k = 0; k < n; k++) {
        s->worker[k].start_ns = now_ns; /* state: RUN, label: 0 */
        s->set[k].pending = s->bits + 2 * k * s->words;
        s->set[k].held = s->set[k].pending + s->words;
    }
    s->decision.row = s->row;
    *sched_out = s;
    return 0;
}

static int bit_get(const uint64_t *bits, unsigned i)
{
    return (int)(bits[i / 64] >> (i % 64) & 1);
}

static void bit_set(uint64_t *bits, unsigned i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void bit_clear(uint64_t *bits, unsigned i)
{
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* Take k out of the pending workers of every set. Returns in how many it was. */
static unsigned leave_pending(struct drps_sched *s, unsigned k, int held)
{
    unsigned found = 0;
    for (unsigned g = 0; g < s->config.workers; g++) {
        struct wait_set *set = &s->set[g];
        if (!set->open || !bit_get(set->pending, k)) continue;
        bit_clear(set->pending, k);
        set->left--;
        if (held) bit_set(set->held, k);
        found++;
    }
    return found;
}

static void leave_held(struct drps_sched *s, unsigned k)
{
    for (unsigned g = 0; g < s->config.workers; g++)
        if (s->set[g].open) bit_clear(s->set[g].held, k);
}

/* The leader and those who wait with it are free to go, as far as the bound lets them. */
static void set_close(struct drps_sched *s, unsigned leader)
{
    struct wait_set *set = &s->set[leader];
    for (unsigned k = 0; k < s->config.workers; k++)
        if (bit_get(set->held, k)) s->worker[k].state = DRPS_SCHED_READY;
    if (s->worker[leader].state == DRPS_SCHED_LEAD) s->worker[leader].state = DRPS_SCHED_READY;
    memset(set->pending, 0, 2 * s->words * sizeof(*set->pending)); /* held follows it */
    set->open = 0;
    set->left = 0;
}

/* The label of the slowest live worker. Under WSP a worker that waits will jump to the front. */
static uint64_t lowest_label(const struct drps_sched *s)
{
    uint64_t lowest = s->front;
    for (unsigned k = 0; k < s->config.workers; k++) {
        const struct drps_sched_worker *w = &s->worker[k];
        int counts = s->selects ? w->state == DRPS_SCHED_RUN : w->state != DRPS_SCHED_GONE;
        if (counts && w->label < lowest) lowest = w->label;
    }
    return lowest;
}

static void release(struct drps_sched *s, unsigned k, uint64_t lowest, uint64_t now_ns)
{
    struct drps_sched_worker *w = &s->worker[k];
    if (s->selects) {
        w->label = s->front;
        leave_held(s, k);
    }
    uint64_t lag = w->label - lowest;
    w->lag_sum += lag;
    if (lag > w->lag_max) w->lag_max = lag;
    w->waits += now_ns > w->end_ns;
    w->waited_ns += now_ns - w->end_ns;
    w->start_ns = now_ns;
    w->state = DRPS_SCHED_RUN;
    s->completed_then[k] = s->completed;
}

/* When a wait from now_ns on ends that is expected to take expected_ns. */
static uint64_t wait_end(const struct drps_sched *s, double expected_ns, uint64_t now_ns)
{
    double most = expected_ns * (1 + s->config.patience); /* 0 * infinity: NaN */
    return most < 0x1p62 ? now_ns + (uint64_t)most : DRPS_SCHED_NEVER;
}

/* Once the quorum of the first round has arrived, those still running are overdue. */
static void first_round_check(struct drps_sched *s, uint64_t now_ns)
{
    unsigned live = 0, arrived = 0;
    uint64_t longest = 0;
    if (!s->first_round || s->first_deadline_ns != DRPS_SCHED_NEVER) return;
    for (unsigned k = 0; k < s->config.workers; k++) {
        const struct drps_sched_worker *w = &s->worker[k];
        live += w->state != DRPS_SCHED_GONE;
        if (w->state != DRPS_SCHED_READY || w->iterations == 0) continue;
        arrived++;
        if (w->iteration_ns > longest) longest = w->iteration_ns;
    }
    if (arrived > 0 && arrived >= s->config.quorum * live)
        s->first_deadline_ns = wait_end(s, drps_wsp_overdue_ns((double)longest), now_ns);
}

/* After every event: close the sets that nobody is missing from, release whom the bound lets go. */
static int settle(struct drps_sched *s, uint64_t now_ns, unsigned *released_out)
{
    int n = 0;
    for (unsigned g = 0; g < s->config.workers; g++)
        if (s->set[g].open && s->set[g].left == 0) set_close(s, g);
    uint64_t lowest = lowest_label(s); /* no release lowers or raises it */
    first_round_check(s, now_ns);
    uint64_t bound = s->first_round ? 0 : s->config.bound;
    for (unsigned k = 0; k < s->config.workers; k++) {
        if (s->worker[k].state != DRPS_SCHED_READY) continue;
        uint64_t next = s->selects ? s->front : s->worker[k].label;
        if (next - lowest > bound) continue;
        release(s, k, lowest, now_ns);
        released_out[n++] = k;
    }
    if (n && s->front > 0) s->first_round = 0; /* a worker may join it: that does not end it */
    return n;
}

/* The states (a mask) in which an event makes sense. */
static int event_check(const struct drps_sched *s, unsigned k, unsigned states, const char *event,
                       struct drps_err *err)
{
    static const char *const names[] = {"running", "waiting (leader)", "waiting (captured)",
                                        "waiting (bound)", "gone"};
    if (k >= s->config.workers)
        return drps_err_set(err, -EINVAL, "worker %u %s: there are workers 0 to %u", k, event,
                            s->config.workers - 1);
    if (!(states >> s->worker[k].state & 1))
        return drps_err_set(err, -EINVAL, "worker %u %s, but it is %s", k, event,
                            names[s->worker[k].state]);
    return 0;
}

static void count_staleness(struct drps_sched *s, unsigned k)
{
    struct drps_sched_worker *w = &s->worker[k];
    uint64_t stale = s->completed++ - s->completed_then[k];
    unsigned bin = stale ? 64 - (unsigned)__builtin_clzll(stale) : 0;
    w->stale[bin < DRPS_SCHED_STALE_BINS ? bin : DRPS_SCHED_STALE_BINS - 1]++;
    w->stale_sum += stale;
    if (stale > w->stale_max) w->stale_max = stale;
}

static void measure(struct drps_sched *s, struct drps_sched_worker *w, uint64_t now_ns)
{
    w->end_ns = now_ns;
    w->iteration_ns = now_ns - w->start_ns;
    w->busy_ns += w->iteration_ns;
    w->iterations++;
    double ns = (double)w->iteration_ns, ema = s->config.ema;
    if (w->expected_ns > 0)
        w->expected_ns =
            (1 - ema) * w->expected_ns + ema * fmin(ns, s->config.outlier * w->expected_ns);
    else
        w->expected_ns = ns;
}

/* Let k wait for the workers that are worth it, if there are any. */
static void select_wait(struct drps_sched *s, unsigned k, uint64_t now_ns)
{
    struct drps_sched_decision *d = &s->decision;
    struct wait_set *set = &s->set[k];
    d->requester = k;
    d->chosen = drps_wsp_choose(&s->config, s->worker, k, now_ns, s->row, &d->rows);
    if (d->chosen == 0) return;
    for (size_t i = 1; i <= d->chosen; i++)
        bit_set(set->pending, s->row[i].worker);
    set->left = d->chosen;
    set->open = 1;
    set->deadline_ns = wait_end(s, s->row[d->chosen].wait_ns, now_ns);
    s->worker[k].state = DRPS_SCHED_LEAD;
}

int drps_sched_arrive(struct drps_sched *s, unsigned k, uint64_t now_ns, unsigned *released_out,
                      struct drps_err *err)
{
    int rc = event_check(s, k, 1u << DRPS_SCHED_RUN, "arrives", err);
    if (rc < 0) return rc;
    struct drps_sched_worker *w = &s->worker[k];
    measure(s, w, now_ns);
    count_staleness(s, k);
    w->label++;
    if (w->label > s->front) s->front = w->label;
    w->state = DRPS_SCHED_READY;
    if (s->selects && !s->first_round) {
        if (leave_pending(s, k, 1))
            w->state = DRPS_SCHED_CAPTURED;
        else
            select_wait(s, k, now_ns);
    }
    return settle(s, now_ns, released_out);
}

int drps_sched_gone(struct drps_sched *s, unsigned k, uint64_t now_ns, unsigned *released_out,
                    struct drps_err *err)
{
    int rc = event_check(s, k, ~(1u << DRPS_SCHED_GONE), "leaves", err);
    if (rc < 0) return rc;
    struct drps_sched_worker *w = &s->worker[k];
    if (w->state != DRPS_SCHED_RUN) w->waited_ns += now_ns - w->end_ns;
    w->state = DRPS_SCHED_GONE;
    (void)leave_pending(s, k, 0); /* how many lose it does not matter */
    leave_held(s, k);
    if (s->set[k].open) set_close(s, k);
    return settle(s, now_ns, released_out);
}

int drps_sched_joined(struct drps_sched *s, unsigned k, uint64_t now_ns, unsigned *released_out,
                      struct drps_err *err)
{
    int rc = event_check(s, k, 1u << DRPS_SCHED_GONE, "joins", err);
    if (rc < 0) return rc;
    s->worker[k].label = lowest_label(s); /* WSP replaces it on release */
    s->worker[k].end_ns = now_ns;
    s->worker[k].state = DRPS_SCHED_READY;
    return settle(s, now_ns, released_out);
}

int drps_sched_tick(struct drps_sched *s, uint64_t now_ns, unsigned *released_out)
{
    for (unsigned g = 0; g < s->config.workers; g++)
        if (s->set[g].open && s->set[g].deadline_ns <= now_ns) set_close(s, g);
    if (s->first_deadline_ns <= now_ns) s->first_round = 0;
    return settle(s, now_ns, released_out);
}

uint64_t drps_sched_deadline(const struct drps_sched *s)
{
    uint64_t first = s->first_round ? s->first_deadline_ns : DRPS_SCHED_NEVER;
    for (unsigned g = 0; g < s->config.workers; g++)
        if (s->set[g].open && s->set[g].deadline_ns < first) first = s->set[g].deadline_ns;
    return first;
}

int drps_sched_has_slack(const struct drps_sched *s, unsigned k)
{
    uint64_t next = s->worker[k].label + 1;
    if (s->selects && s->front > next) next = s->front;
    return next - lowest_label(s) <= s->config.bound;
}

const struct drps_sched_worker *drps_sched_workers(const struct drps_sched *s)
{
    return s->worker;
}

const struct drps_sched_decision *drps_sched_decision(const struct drps_sched *s)
{
    return &s->decision;
}
