/*
 * How stale a gradient is when a server steps its rows with it: the server notes how many gradients
 * of others were in when it sent a batch's parameters, or the first of them. The worker's own
 * gradients do not count: it always has them.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/cluster/async/parts.h"

struct async_stale {
    const struct async_job *job;
    uint64_t span;   /* steps that are open at a time */
    uint64_t *shown; /* own: [span][ranks][2] gradients of others that were in, by step and share:
                        when the share's own worker got the parameters, and when another one did */
};

static uint64_t *shown_of(const struct async_stale *s, const struct drps_net_message *m)
{
    return s->shown + (m->round % s->span * s->job->ranks + m->tag) * 2 + (m->from != m->tag);
}

void drps_async_stale_show(struct async_stale *s, const struct drps_net_message *pull,
                           uint64_t of_others)
{
    if (s) *shown_of(s, pull) = of_others;
}

float drps_async_stale_divisor(const struct async_stale *s, const struct drps_net_message *gradient,
                               uint64_t of_others)
{
    if (!s) return 1;
    const uint64_t then = *shown_of(s, gradient);
    return drps_stale_divisor(s->job->o.train->lr_stale, of_others > then ? of_others - then : 0,
                              s->job->shape->workers - 1);
}

int drps_async_stale_new(const struct async_job *job, uint64_t span, struct async_stale **out,
                         struct drps_err *err)
{
    *out = NULL;
    if (!job->o.train || job->o.train->lr_stale == DRPS_STALE_SAME) return 0;
    struct async_stale *s = *out = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory to count how stale gradients are");
    s->job = job;
    s->span = span;
    s->shown = calloc((size_t)span, job->ranks * 2 * sizeof(*s->shown));
    if (s->shown) return 0;
    return drps_err_set(err, -ENOMEM, "no memory to count how stale gradients are");
}

void drps_async_stale_free(struct async_stale *s)
{
    if (!s) return;
    free(s->shown);
    free(s);
}
