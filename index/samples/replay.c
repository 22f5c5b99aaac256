/* Unpacks batches of an earlier plan, and draws from their samples. */
#include "index/samples/drps_replay.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"

#define REPLAY_STREAM 0x7265706c6179u /* "replay" */

enum { BUFFER_BYTES = 256 << 10 };

struct replaying {
    const struct drps_plan *plan;
    double share;
    uint64_t seed, number; /* of the next sample */
    drps_replay_visit visit;
    void *ctx;
    struct steps *data, *rows; /* own */
    void *plain;               /* own: [info.max_body_bytes] */
    uint32_t *ids;             /* own: of a sample */
    size_t ids_cap;
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
    return r->visit(r->ctx, &sample, err);
}

static int replay_batch(struct replaying *r, uint64_t step, struct drps_err *err)
{
    const struct drps_plan_info *info = &r->plan->info;
    const void *record;
    const uint32_t *rows;
    struct drps_batch b;
    size_t bytes, n;
    int rc = drps_steps_record(r->data, step, &record, &bytes, err);
    if (rc == 0)
        rc = drps_batch_unpack(record, bytes, r->plain, (size_t)info->max_body_bytes, &bytes, err);
    if (rc == 0) rc = drps_batch_decode(r->plain, bytes, &b, err);
    if (rc < 0) return drps_steps_fault(r->data, step, err);
    rc = drps_steps_rows(r->rows, step, info->rows, &rows, &n, err);
    if (rc == 0 && n != b.rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: batch %llu has %zu rows, not %zu", r->plan->dir,
                          (unsigned long long)step, n, b.rows);
    if (rc == 0 && b.nnz && !b.fields != !info->field_count)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: of batch %llu %s have fields", r->plan->dir,
                          (unsigned long long)step, b.fields ? "entries" : "no entries");
    for (size_t s = 0; s < b.samples && rc == 0; s++, r->number++)
        if (is_drawn(r, r->number)) rc = replay_sample(r, &b, rows, s, err);
    return rc;
}

static int open_files(struct replaying *r, struct drps_err *err)
{
    const struct drps_plan *p = r->plan;
    const uint64_t steps = p->info.batches + p->info.eval_batches;
    int rc = drps_steps_open(p->io, p->dir, DRPS_FILE_DATA, DRPS_KIND_DATA, steps, BUFFER_BYTES,
                             &r->data, err);
    if (rc == 0)
        rc = drps_steps_open(p->io, p->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, steps, BUFFER_BYTES,
                             &r->rows, err);
    if (rc < 0)
        return drps_err_context(err, "samples to replay are taken from the batches of %s", p->dir);
    r->plain = malloc((size_t)p->info.max_body_bytes + 1);
    return r->plain ? 0 : drps_err_set(err, -ENOMEM, "no memory for a batch of %s", p->dir);
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
    int rc = open_files(&r, err);
    for (uint64_t t = 0; t < plan->info.batches && rc == 0; t++)
        rc = replay_batch(&r, t, err);
    drps_steps_close(r.data);
    drps_steps_close(r.rows);
    free(r.plain);
    free(r.ids);
    return rc;
}
