/* Samples wait in a list for each lane until they make a batch (drps_lanes.h). */
#include "index/batches/drps_lanes.h"

#include <errno.h>
#include <stdlib.h>

#include "index/batches/drps_lane.h"

struct lanes {
    struct batcher *to;
    size_t batch_size;
    uint32_t stratum; /* of the samples that wait; 0: none came yet */
    uint32_t count;
    struct lane lane[];
};

uint64_t drps_lanes_memory(uint64_t lanes, uint64_t batch_size)
{
    return drps_lane_memory(lanes * batch_size);
}

int drps_lanes_open(uint32_t lanes, size_t batch_size, struct batcher *to, struct lanes **l_out,
                    struct drps_err *err)
{
    struct lanes *l = calloc(1, sizeof(*l) + lanes * sizeof(l->lane[0]));
    *l_out = l;
    if (!l) return drps_err_set(err, -ENOMEM, "no memory for %u lanes", lanes);
    l->to = to;
    l->batch_size = batch_size;
    l->count = lanes;
    return 0;
}

void drps_lanes_close(struct lanes *l)
{
    for (uint32_t i = 0; l && i < l->count; i++)
        drps_lane_free(&l->lane[i]);
    free(l);
}

/* The samples that wait in a lane become a batch. */
static int cut(struct lanes *l, uint32_t number, struct drps_err *err)
{
    struct lane *q = &l->lane[number];
    drps_batcher_mark(l->to, l->stratum, number);
    int rc = drps_lane_pass(q, 0, q->n, l->to, err);
    if (rc == 0 && q->n < l->batch_size) rc = drps_batcher_end(l->to, err);
    drps_lane_drop(q, q->n);
    return rc;
}

static int end_stratum(struct lanes *l, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < l->count && rc == 0; i++)
        if (l->lane[i].n) rc = cut(l, i, err);
    return rc;
}

int drps_lanes_add(struct lanes *l, uint32_t stratum, uint32_t lane,
                   const struct spool_sample *sample, struct drps_err *err)
{
    int rc = stratum == l->stratum ? 0 : end_stratum(l, err);
    if (rc < 0) return rc;
    l->stratum = stratum;
    struct lane *q = &l->lane[lane];
    rc = drps_lane_keep(q, sample, err);
    if (rc < 0) return rc;
    return q->n == l->batch_size ? cut(l, lane, err) : 0;
}

int drps_lanes_finish(struct lanes *l, struct drps_err *err)
{
    int rc = end_stratum(l, err);
    drps_batcher_mark(l->to, 0, 0);
    return rc;
}
