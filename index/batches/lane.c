/* A list of samples, in arrays that grow (drps_lane.h). */
#include "index/batches/drps_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { SAMPLE_ENTRIES = 2, AHEAD = 16 };

uint64_t drps_lane_memory(uint64_t n)
{
    enum { SAMPLE_BYTES = 12 + SAMPLE_ENTRIES * 8 };
    return 2 * n * SAMPLE_BYTES; /* arrays double as they grow */
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

int drps_lane_keep(struct lane *q, const struct spool_sample *sample, struct drps_err *err)
{
    if (keep(q, sample) == 0) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for %zu samples of a lane", q->n);
}

int drps_lane_pass(const struct lane *q, size_t first, size_t last, struct batcher *to,
                   struct drps_err *err)
{
    int rc = 0;
    for (size_t s = first; s < last && rc == 0; s++) {
        if (s + AHEAD < last)
            drps_batcher_expect(to, q->ids + q->starts[s + AHEAD],
                                q->starts[s + AHEAD + 1] - q->starts[s + AHEAD]);
        const struct spool_sample sample = {.label = q->labels[s],
                                            .weight = q->weights[s],
                                            .n = q->starts[s + 1] - q->starts[s],
                                            .ids = q->ids + q->starts[s],
                                            .values =
                                                q->has_values ? q->values + q->starts[s] : NULL};
        rc = drps_batcher_add(to, &sample, err);
    }
    return rc;
}

void drps_lane_drop(struct lane *q, size_t n)
{
    const size_t left = q->n - n;
    if (!n) return;
    const uint32_t from = q->starts[n], entries = q->starts[q->n] - from;
    memmove(q->labels, q->labels + n, left * sizeof(*q->labels));
    memmove(q->weights, q->weights + n, left * sizeof(*q->weights));
    memmove(q->ids, q->ids + from, entries * sizeof(*q->ids));
    if (q->has_values) memmove(q->values, q->values + from, entries * sizeof(*q->values));
    for (size_t s = 0; s <= left; s++)
        q->starts[s] = q->starts[n + s] - from;
    q->n = left;
    q->has_values = q->has_values && left;
}

void drps_lane_free(struct lane *q)
{
    free(q->labels);
    free(q->weights);
    free(q->starts);
    free(q->ids);
    free(q->values);
    *q = (struct lane){0};
}
