/* The sum of whole gradients, by an all-reduce. */
#include "engine/cluster/sv/exchange_internal.h"

#include <string.h>

#include "base/drps_clock.h"
#include "net/drps_allreduce.h"

/* The rows that some rank touches, from the sums of all. */
static void find_touched(struct drps_exchanging *x)
{
    const float *counts = x->dense + x->replica.rows * x->dim;
    struct sums *s = &x->sums;
    s->n = 0;
    for (uint64_t row = 0; row < x->replica.rows && s->n < s->most; row++) {
        if (!(counts[row] > 0)) continue;
        memcpy(s->grads + s->n * x->dim, x->dense + row * x->dim, x->dim * sizeof(*s->grads));
        if (s->has_touches) s->touches[s->n] = (uint32_t)counts[row];
        s->ids[s->n++] = (uint32_t)row;
    }
}

int exchange_dense(struct drps_exchanging *x, struct drps_err *err)
{
    const struct part *own = &x->parts[x->rank];
    const struct drps_worker *w = x->job.worker;
    const size_t n = (size_t)x->replica.rows * (x->dim + 1);
    float *counts = x->dense + x->replica.rows * x->dim;
    memset(x->dense, 0, n * sizeof(*x->dense));
    for (size_t i = 0; i < own->n; i++) {
        memcpy(x->dense + (size_t)own->ids[i] * x->dim, w->grads[0] + i * x->dim,
               x->dim * sizeof(*x->dense));
        counts[own->ids[i]] = w->has_touches ? (float)w->touches[0][i] : 1;
    }
    const struct drps_net_allreduce sum = {.values = x->dense,
                                           .n = n,
                                           .type = DRPS_NET_FLOAT32,
                                           .way = DRPS_NET_RING,
                                           .round = x->sums_done++};
    const uint64_t start = drps_clock_ns();
    int rc = drps_net_allreduce(x->job.net, &sum, x->job.wait_ms, err);
    x->wait_ns += drps_clock_ns() - start;
    if (rc < 0) return rc;
    const uint64_t bytes =
        drps_net_allreduce_bytes(DRPS_NET_RING, x->ranks, x->rank, n, DRPS_NET_FLOAT32);
    drps_traffic_add(&x->traffic, DRPS_TRAFFIC_EXCHANGED, (x->rank + 1) % x->ranks, x->replica.rows,
                     bytes);
    x->received += drps_net_allreduce_bytes(
        DRPS_NET_RING, x->ranks, (x->rank + x->ranks - 1) % x->ranks, n, DRPS_NET_FLOAT32);
    find_touched(x);
    replica_step(&x->replica, x->sums.ids, x->sums.n, x->sums.grads,
                 x->sums.has_touches ? x->sums.touches : NULL);
    return 0;
}
