/* Shares and windows as counters; drps_claim.h has the rules. It needs memory alone. */
#include "sched/drps_claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

/* What a worker does. */
struct holder {
    int holds;                     /* 1: it executes a batch */
    struct drps_claim_batch batch; /* that one */
};

struct drps_claim {
    unsigned workers;
    int claimable;
    uint64_t *ends;         /* [windows] one past the last step of each */
    size_t windows, window; /* the lowest that is not executed; it and the next one are open */
    uint64_t left[2];       /* batches of these two that are not executed */
    uint64_t all_left;
    uint64_t *next;        /* own: [workers] by share: the next step to hand out */
    struct holder *holder; /* own: [workers] */
};

void drps_claim_free(struct drps_claim *c)
{
    if (!c) return;
    free(c->ends);
    free(c->next);
    free(c->holder);
    free(c);
}

static uint64_t batches_of(const struct drps_claim *c, size_t window)
{
    if (window >= c->windows) return 0;
    return (c->ends[window] - (window ? c->ends[window - 1] : 0)) * c->workers;
}

static int options_check(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                         struct drps_err *err)
{
    uint64_t all;
    if (workers == 0 || steps == 0 || __builtin_mul_overflow(steps, (uint64_t)workers, &all))
        return drps_err_set(err, DRPS_E_CONFIG, "%u workers with %" PRIu64 " batches each", workers,
                            steps);
    if (windows == 0 || starts[0] != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "the first of %zu windows does not begin at step 0",
                            windows);
    for (size_t v = 1; v < windows; v++)
        if (starts[v] <= starts[v - 1] || starts[v] >= steps)
            return drps_err_set(err, DRPS_E_CONFIG,
                                "window %zu begins at step %" PRIu64 ", the one before at %" PRIu64
                                "; there are %" PRIu64 " steps",
                                v, starts[v], starts[v - 1], steps);
    return 0;
}

int drps_claim_new(unsigned workers, uint64_t steps, const uint64_t *starts, size_t windows,
                   int claimable, struct drps_claim **claim_out, struct drps_err *err)
{
    *claim_out = NULL;
    int rc = options_check(workers, steps, starts, windows, err);
    if (rc < 0) return rc;
    struct drps_claim *c = calloc(1, sizeof(*c));
    if (!c) return drps_err_set(err, -ENOMEM, "no memory to hand out batches");
    *c = (struct drps_claim){.workers = workers, .claimable = claimable, .windows = windows};
    c->ends = drps_array_new(windows, sizeof(*c->ends));
    c->next = calloc(workers, sizeof(*c->next));
    c->holder = calloc(workers, sizeof(*c->holder));
    if (!c->ends || !c->next || !c->holder) {
        drps_claim_free(c);
        return drps_err_set(err, -ENOMEM, "no memory to hand out batches of %u workers", workers);
    }
    for (size_t v = 0; v < windows; v++)
        c->ends[v] = v + 1 < windows ? starts[v + 1] : steps;
    c->left[0] = batches_of(c, 0);
    c->left[1] = batches_of(c, 1);
    c->all_left = steps * workers;
    *claim_out = c;
    return 0;
}

/* The share that w takes its next batch below step `end` from: its own one first, then the share
 * that is farthest behind. As many as there are workers if there is none. */
static unsigned choose_share(const struct drps_claim *c, unsigned w, uint64_t end)
{
    if (c->next[w] < end) return w;
    unsigned best = c->workers;
    if (!c->claimable) return best;
    for (unsigned i = 0; i < c->workers; i++) {
        if (c->next[i] >= end) continue;
        if (best == c->workers || c->next[i] < c->next[best]) best = i;
    }
    return best;
}

static int worker_check(const struct drps_claim *c, unsigned w, int holds, const char *event,
                        struct drps_err *err)
{
    if (w >= c->workers)
        return drps_err_set(err, -EINVAL, "worker %u %s: there are workers 0 to %u", w, event,
                            c->workers - 1);
    if (c->holder[w].holds == holds) return 0;
    return drps_err_set(err, -EINVAL, "worker %u %s, but it holds %s batch", w, event,
                        holds ? "no" : "a");
}

int drps_claim_next(struct drps_claim *c, unsigned w, struct drps_claim_batch *batch_out,
                    struct drps_err *err)
{
    int rc = worker_check(c, w, 0, "asks for a batch", err);
    if (rc < 0) return rc;
    struct holder *h = &c->holder[w];
    for (size_t v = c->window; !h->holds && v < c->windows && v < c->window + 2; v++) {
        unsigned share = choose_share(c, w, c->ends[v]);
        if (share == c->workers) continue;
        h->batch = (struct drps_claim_batch){share, c->next[share]++};
        h->holds = 1;
    }
    if (h->holds) *batch_out = h->batch;
    return h->holds;
}

int drps_claim_done(struct drps_claim *c, unsigned w, struct drps_err *err)
{
    int rc = worker_check(c, w, 1, "has executed a batch", err);
    if (rc < 0) return rc;
    struct holder *h = &c->holder[w];
    size_t before = c->window;
    h->holds = 0;
    c->all_left--;
    c->left[h->batch.step >= c->ends[c->window]]--;
    while (c->window < c->windows && c->left[0] == 0) {
        c->window++;
        c->left[0] = c->left[1];
        c->left[1] = batches_of(c, c->window + 1);
    }
    return c->window > before;
}

uint64_t drps_claim_left(const struct drps_claim *c)
{
    return c->all_left;
}
