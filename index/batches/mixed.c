/* Samples wait in a list for each stratum and lane until a stratum has enough (drps_mixed.h). */
#include "index/batches/drps_mixed.h"

#include <errno.h>
#include <stdlib.h>

#include "index/batches/drps_lane.h"
#include "index/plan/drps_batch.h"

struct mixed {
    struct batcher *to;
    size_t batch_size;
    uint32_t lanes;
    uint32_t cut;                     /* runs of batches so far: the number of the last one */
    size_t waiting[DRPS_BATCH_LANES]; /* samples of each stratum */
    struct lane lane[];               /* [stratum][lane] */
};

uint64_t drps_mixed_memory(uint64_t lanes, uint64_t batch_size)
{
    return drps_lane_memory(lanes * DRPS_MIXED_BATCHES * batch_size);
}

int drps_mixed_open(uint32_t lanes, size_t batch_size, struct batcher *to, struct mixed **m_out,
                    struct drps_err *err)
{
    struct mixed *m = calloc(1, sizeof(*m) + (size_t)lanes * lanes * sizeof(m->lane[0]));
    *m_out = m;
    if (!m) return drps_err_set(err, -ENOMEM, "no memory for %u lanes", lanes);
    m->to = to;
    m->batch_size = batch_size;
    m->lanes = lanes;
    return 0;
}

void drps_mixed_close(struct mixed *m)
{
    for (size_t i = 0; m && i < (size_t)m->lanes * m->lanes; i++)
        drps_lane_free(&m->lane[i]);
    free(m);
}

/* Samples [first, last) of a lane become a batch. */
static int cut_batch(struct mixed *m, const struct lane *of_stratum, uint32_t lane, size_t first,
                     size_t last, struct drps_err *err)
{
    drps_batcher_mark(m->to, m->cut, lane);
    int rc = drps_lane_pass(&of_stratum[lane], first, last, m->to, err);
    return rc == 0 && last - first < m->batch_size ? drps_batcher_end(m->to, err) : rc;
}

/* Batches of a stratum's lanes in turn: those that are full, or all. */
static int cut_stratum(struct mixed *m, uint32_t stratum, int all, struct drps_err *err)
{
    struct lane *of_stratum = &m->lane[(size_t)stratum * m->lanes];
    size_t first = 0;
    int rc = 0, found = 1;
    m->cut++;
    for (; found && rc == 0; first += m->batch_size) {
        found = 0;
        for (uint32_t l = 0; l < m->lanes && rc == 0; l++) {
            const size_t n = of_stratum[l].n, end = first + m->batch_size;
            if (n < end && (n <= first || !all)) continue;
            rc = cut_batch(m, of_stratum, l, first, n < end ? n : end, err);
            found = 1;
        }
    }
    m->waiting[stratum] = 0;
    for (uint32_t l = 0; l < m->lanes; l++) {
        struct lane *q = &of_stratum[l];
        drps_lane_drop(q, all ? q->n : q->n / m->batch_size * m->batch_size);
        m->waiting[stratum] += q->n;
    }
    return rc;
}

int drps_mixed_add(struct mixed *m, uint32_t stratum, uint32_t lane,
                   const struct spool_sample *sample, struct drps_err *err)
{
    int rc = drps_lane_keep(&m->lane[(size_t)stratum * m->lanes + lane], sample, err);
    if (rc < 0) return rc;
    if (++m->waiting[stratum] < DRPS_MIXED_BATCHES * m->batch_size) return 0;
    return cut_stratum(m, stratum, 0, err);
}

int drps_mixed_finish(struct mixed *m, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t k = 0; k < m->lanes && rc == 0; k++)
        if (m->waiting[k]) rc = cut_stratum(m, k, 1, err);
    drps_batcher_mark(m->to, 0, 0);
    return rc;
}
