/* Reads batches of an earlier plan (index/walk/), and draws from their samples. */
#include "index/samples/read/replay.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/plan/codec/drps_dense.h"
#include "index/samples/read/numbers.h"
#include "index/walk/drps_walk.h"

#define REPLAY_STREAM 0x7265706c6179u /* "replay" */

struct replaying {
    const struct drps_plan *plan;
    double share;
    uint64_t seed, number; /* of the next sample */
    drps_replay_visit visit;
    void *ctx;
    struct drps_walk batches; /* own */
    uint32_t *ids;            /* own: of a sample */
    size_t ids_cap;
    float *plain; /* own: numbers of a sample */
    size_t plain_cap;
    struct sample_numbers numbers;
};

/* Returns a label as the data had it. */
static float label_of(const struct drps_plan_info *info, float stored)
{
    if (!info->classification || info->classes) return stored;
    return stored > 0 ? info->label_positive : info->label_negative;
}

static int is_drawn(const struct replaying *r, uint64_t number)
{
    return drps_unit_double(drps_rng_at(r->seed ^ REPLAY_STREAM, number)) < r->share;
}

static int pack_numbers(struct replaying *r, const struct drps_batch *b, size_t s,
                        struct spool_sample *sample, struct drps_err *err)
{
    const uint32_t each = b->numbers.each;
    if (!each) return 0;
    if (drps_array_reserve(&r->plain, &r->plain_cap, each, sizeof(*r->plain)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample of %u numbers", each);
    drps_dense_floats(&b->numbers, s * (size_t)each, each, r->plain);
    return sample_numbers_pack(&r->numbers, r->plain, each, sample, err);
}

static int replay_sample(struct replaying *r, const struct drps_batch *b, const uint32_t *rows,
                         size_t s, struct drps_err *err)
{
    const size_t first = drps_batch_start(b, s), n = drps_batch_start(b, s + 1) - first;
    struct spool_sample sample = {.order = r->number,
                                  .label = label_of(&r->plan->info, b->labels[s]),
                                  .weight = b->weights ? b->weights[s] : 1,
                                  .n = (uint32_t)n,
                                  .values = b->values ? b->values + first : NULL,
                                  .fields = b->fields ? b->fields + first : NULL};
    if (n >= SPOOL_ENTRIES_MOST || drps_array_reserve(&r->ids, &r->ids_cap, n, sizeof(*r->ids)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample with %zu features", n);
    for (size_t j = 0; j < n; j++)
        r->ids[j] = rows[drps_batch_local(b, first + j)];
    sample.ids = r->ids;
    const int rc = pack_numbers(r, b, s, &sample, err);
    return rc < 0 ? rc : r->visit(r->ctx, &sample, err);
}

static int replay_batch(struct replaying *r, uint64_t step, struct drps_err *err)
{
    const uint32_t *rows;
    struct drps_batch b;
    int rc = drps_walk_read(&r->batches, step, &b, &rows, err);
    for (size_t s = 0; rc == 0 && s < b.samples; s++, r->number++)
        if (is_drawn(r, r->number)) rc = replay_sample(r, &b, rows, s, err);
    return rc;
}

int drps_replay(const struct drps_plan *plan, double share, uint64_t seed, drps_replay_visit visit,
                void *ctx, struct drps_err *err)
{
    struct replaying r = {.plan = plan, .share = share, .seed = seed, .visit = visit, .ctx = ctx};
    if (plan->info.ranks.count > 1)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is for several workers, and samples are replayed from a plan for "
                            "one: have it dealt to one worker first",
                            plan->dir);
    int rc = drps_walk_open(&r.batches, plan, err);
    if (rc < 0)
        (void)drps_err_context(err, "samples to replay are taken from the batches of %s",
                               plan->dir);
    for (uint64_t t = 0; t < plan->info.batches && rc == 0; t++)
        rc = replay_batch(&r, t, err);
    drps_walk_close(&r.batches);
    free(r.ids);
    free(r.plain);
    sample_numbers_destroy(&r.numbers);
    return rc;
}
