/*
 * Where the time of rounds goes, as the worker sees it:
 *
 *     compute | gradient sent   reduce   rows stepped here   broadcast   parameters there | compute
 *
 * The server's clock is read when its parameters have come: until the worker's next gradient is
 * with it, it ends no round.
 */
#include "engine/cluster/rounds_internal.h"

/* What the store made the worker wait for since it was asked last. */
static uint64_t store_since(struct drps_rounds *r)
{
    struct rounds_worker *w = &r->worker;
    const uint64_t since = r->server.store_ns - w->store_ns;
    w->store_ns = r->server.store_ns;
    w->times.store_ns += since;
    return since;
}

/* The gradient that was sent last is in the rows of this rank. Returns when; a rank without rows
 * knows of no such time, and all that it waits for is the broadcast. */
static uint64_t count_reduce(struct drps_rounds *r)
{
    struct rounds_worker *w = &r->worker;
    const uint64_t stepped = rounds_serves(r) ? r->server.trained_ns : w->pushed_ns;
    if (stepped > w->pushed_ns) w->times.reduce_ns += stepped - w->pushed_ns;
    w->pushed_ns = 0;
    return stepped;
}

void drps_rounds_count_wait(struct drps_rounds *r, uint64_t start, uint64_t pulled)
{
    struct rounds_worker *w = &r->worker;
    const uint64_t wait = pulled - start, store = store_since(r);
    w->times.network_ns += wait > store ? wait - store : 0;
    const uint64_t stepped = w->pushed_ns ? count_reduce(r) : start;
    if (w->at < r->train) w->times.broadcast_ns += pulled - stepped;
}

void drps_rounds_count_rest(struct drps_rounds *r)
{
    (void)store_since(r);                           /* no message was waited for */
    if (r->worker.pushed_ns) (void)count_reduce(r); /* nobody waits for what comes then */
}

void drps_rounds_times(const struct drps_rounds *r, struct drps_rounds_times *out)
{
    *out = r->worker.times;
}
