/* Samples wait in a list for each lane until they make a batch (drps_lanes.h). */
#include "index/batches/drps_lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { SAMPLE_ENTRIES = 2, AHEAD = 16 };

/* Samples that wait, [n] of them, entries one after another. */
struct lane {
    float *labels, *weights;
    uint32_t *starts; /* [n + 1] */
    uint32_t *ids;    /* [starts[n]] */
    float *values;    /* [starts[n]], where any sample has some */
    size_t n, label_cap, weight_cap, start_cap, id_cap, value_cap;
    int has_values;
};

struct lanes {
    struct batcher *to;
    size_t batch_size;
    uint32_t stratum; /* of the samples that wait; 0: none came yet */
    uint32_t count;
    struct lane lane[];
};

uint64_t drps_lanes_memory(uint64_t lanes, uint64_t batch_size)
{
    enum { SAMPLE_BYTES = 12 + SAMPLE_ENTRIES * 8 };
    return 2 * lanes * batch_size * SAMPLE_BYTES; /* arrays double as they grow */
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
    for (uint32_t i = 0; l && i < l->count; i++) {
        free(l->lane[i].labels);
        free(l->lane[i].weights);
        free(l->lane[i].starts);
        free(l->lane[i].ids);
        free(l->lane[i].values);
    }
    free(l);
}

/* Values are kept from the first sample on that has some; those before get ones. */
static int keep_values(struct lane *q, const struct spool_sample *s)
{
    const size_t at = q->starts[q->n];
    if (drps_array_reserve(&q->values, &q->value_cap, at + s->n, sizeof(*q->values)))
        return -ENOMEM;
    for (size_t j = 0; !q->has_values && j < at; j++)
        q->values[j] = 1;
    for (uint32_t j = 0; j < s->n; j++)
        q->values[at + j] = s->values ? s->values[j] : 1.0f;
    q->has_values = 1;
    return 0;
}

static int keep(struct lane *q, const struct spool_sample *s)
{
    if (drps_array_reserve(&q->labels, &q->label_cap, q->n + 1, sizeof(*q->labels)) ||
        drps_array_reserve(&q->weights, &q->weight_cap, q->n + 1, sizeof(*q->weights)) ||
        drps_array_reserve(&q->starts, &q->start_cap, q->n + 2, sizeof(*q->starts)))
        return -ENOMEM;
    if (!q->n) q->starts[0] = 0;
    const size_t at = q->starts[q->n];
    if (drps_array_reserve(&q->ids, &q->id_cap, at + s->n, sizeof(*q->ids)) ||
        ((s->values || q->has_values) && keep_values(q, s)))
        return -ENOMEM;
    memcpy(q->ids + at, s->ids, s->n * sizeof(*q->ids));
    q->weights[q->n] = s->weight;
    q->labels[q->n++] = s->label;
    q->starts[q->n] = (uint32_t)at + s->n;
    return 0;
}

/* The samples that wait in a lane become a batch. */
static int cut(struct lanes *l, uint32_t number, struct drps_err *err)
{
    struct lane *q = &l->lane[number];
    int rc = 0;
    drps_batcher_mark(l->to, l->stratum, number);
    for (size_t s = 0; s < q->n && rc == 0; s++) {
        if (s + AHEAD < q->n)
            drps_batcher_expect(l->to, q->ids + q->starts[s + AHEAD],
                                q->starts[s + AHEAD + 1] - q->starts[s + AHEAD]);
        const struct spool_sample sample = {.label = q->labels[s],
                                            .weight = q->weights[s],
                                            .n = q->starts[s + 1] - q->starts[s],
                                            .ids = q->ids + q->starts[s],
                                            .values =
                                                q->has_values ? q->values + q->starts[s] : NULL};
        rc = drps_batcher_add(l->to, &sample, err);
    }
    if (rc == 0 && q->n < l->batch_size) rc = drps_batcher_end(l->to, err);
    q->n = 0;
    q->has_values = 0;
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
    if (keep(q, sample) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %zu samples of a lane", q->n);
    return q->n == l->batch_size ? cut(l, lane, err) : 0;
}

int drps_lanes_finish(struct lanes *l, struct drps_err *err)
{
    int rc = end_stratum(l, err);
    drps_batcher_mark(l->to, 0, 0);
    return rc;
}
