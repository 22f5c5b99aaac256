/* WSP's cost model (Eq. 7): the rows of SCTable, and the best of them; wsp.h has the formula. */
#include "sched/wsp.h"

#include <stdlib.h>

/* Time until worker l is expected. One that was never measured takes as long as the requester. */
static double remaining(const struct drps_sched_worker *l, double own_ns, uint64_t now_ns,
                        int literal)
{
    double expected = l->expected_ns > 0 ? l->expected_ns : own_ns;
    double elapsed = (double)(now_ns - l->start_ns);
    if (elapsed <= expected) return expected - elapsed;
    return literal ? 0 : drps_wsp_overdue_ns(elapsed);
}

static int by_expectation(const void *a, const void *b)
{
    const struct drps_sched_strategy *x = a, *y = b;
    if (x->wait_ns != y->wait_ns) return x->wait_ns < y->wait_ns ? -1 : 1;
    return (x->worker > y->worker) - (x->worker < y->worker);
}

size_t drps_wsp_choose(const struct drps_sched_config *c, const struct drps_sched_worker *it,
                       unsigned r, uint64_t now_ns, struct drps_sched_strategy *row_out,
                       size_t *rows_out)
{
    int literal = c->mode == DRPS_SCHED_WSP_LITERAL;
    double own_ns = it[r].expected_ns > 1 ? it[r].expected_ns : 1; /* instant iterations */
    double live = 0, stale = 0;
    size_t n = 1, best = 0;

    for (unsigned l = 0; l < c->workers; l++) {
        live += it[l].state != DRPS_SCHED_GONE;
        if (it[l].state != DRPS_SCHED_RUN) continue;
        double ahead = (double)it[r].label - (double)it[l].label;
        double wait_ns = remaining(&it[l], own_ns, now_ns, literal);
        stale += ahead;
        if (wait_ns > c->longest * own_ns) continue;
        row_out[n++] =
            (struct drps_sched_strategy){.worker = l, .wait_ns = wait_ns, .staleness = ahead};
    }
    row_out[0] = (struct drps_sched_strategy){.worker = r};
    qsort(row_out + 1, n - 1, sizeof(*row_out), by_expectation);
    for (size_t i = 0; i < n; i++) {
        stale -= row_out[i].staleness; /* whole numbers: exact */
        row_out[i].staleness = stale / live;
        row_out[i].gain = -c->lambda * row_out[i].wait_ns / own_ns - row_out[i].staleness;
        if (row_out[i].gain > row_out[best].gain) best = i;
    }
    *rows_out = n;
    return best;
}
