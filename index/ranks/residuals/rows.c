/* The rows of a worker's batches that other servers have, a round at a time. */
#include "index/ranks/residuals/slots.h"

#include <errno.h>

#include "base/drps_alloc.h"

int residual_rows(struct slotting *s, uint64_t round, struct drps_err *err)
{
    const struct drps_plan_ranks *ranks = s->job->ranks;
    const uint64_t batch = round * ranks->workers + s->rank - ranks->first_worker;
    const uint32_t *first = s->job->owners->first, *rows = NULL;
    size_t n = 0;
    s->n = 0;
    if (!drps_rank_trains(ranks, s->rank)) return 0;
    if (batch >= s->job->batches) return 0; /* the last round may leave a worker without */
    int rc = drps_steps_rows(s->lists, batch, s->all, &rows, &n, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&s->remote, &s->cap, n, sizeof(*s->remote)))
        return drps_err_set(err, -ENOMEM, "no memory for the rows of a batch");
    for (size_t i = 0; i < n; i++)
        if (rows[i] < first[s->rank] || rows[i] >= first[s->rank + 1]) s->remote[s->n++] = rows[i];
    return 0;
}
