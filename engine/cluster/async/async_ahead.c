/* What a worker has asked its servers for ahead. Each of them answers once; what is not wanted any
 * more is dropped as it comes. */
#include <string.h>

#include "engine/cluster/async/parts.h"

int drps_async_ahead_ask(struct async_ahead *a, const struct async_job *job, uint64_t step,
                         const uint64_t *needs, struct drps_err *err)
{
    const struct drps_piece piece = {needs, drps_async_needs_bytes(job)};
    int rc = 0;
    a->step = step;
    a->due = job->workers;
    a->wanted = 1;
    memset(a->answered, 0, job->workers);
    for (uint32_t s = 0; s < job->workers && rc == 0; s++) { /* its neighbour first */
        const struct drps_net_send send = {.to = (job->rank + 1 + s) % job->workers,
                                           .part = DRPS_NET_SERVER,
                                           .type = DRPS_MESSAGE_AHEAD,
                                           .tag = job->rank,
                                           .round = step,
                                           .pieces = &piece,
                                           .n = 1};
        rc = drps_net_send(job->o.net, &send, job->o.wait_ms, err);
    }
    return rc;
}

int drps_async_ahead_take(struct async_ahead *a, const struct async_job *job,
                          struct drps_net_message *m)
{
    if (m->type != DRPS_MESSAGE_AHEAD || m->tag != job->rank || m->round != a->step || !a->due ||
        a->answered[m->from])
        return 0;
    a->answered[m->from] = 1;
    a->due--;
    if (a->wanted)
        a->from[m->from] = m;
    else
        drps_net_message_free(m);
    return 1;
}

void drps_async_ahead_drop(struct async_ahead *a, uint32_t workers)
{
    a->wanted = 0;
    for (uint32_t s = 0; s < workers; s++) {
        drps_net_message_free(a->from[s]);
        a->from[s] = NULL;
    }
}
