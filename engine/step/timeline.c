/* uses.rec, read ahead: a step's blocks, and when each is used again, for the block store. */
#include "engine/step/drps_timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/record/drps_recstream.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_window.h"

enum { DEPTH = 2 };

struct drps_uses {
    const struct drps_plan *plan;
    struct drps_recfile *file;
    struct drps_recstream *stream;
    uint64_t steps;              /* of an epoch */
    uint64_t first;              /* step of the epoch that step 0 of the timeline is */
    uint64_t all_steps;          /* of the timeline */
    uint64_t next;               /* step that is asked for next */
    uint32_t *blocks, *distance; /* [max_step_blocks] */
    uint64_t *next_use;          /* [max_step_blocks] */
};

int drps_uses_open(const struct drps_plan *plan, struct drps_uses **uses_out, struct drps_err *err)
{
    *uses_out = NULL;
    struct drps_uses *uses = calloc(1, sizeof(*uses));
    if (!uses) return drps_err_set(err, -ENOMEM, "no memory to read %s/" DRPS_FILE_USES, plan->dir);
    uses->plan = plan;
    uses->steps = plan->info.batches + plan->info.eval_batches;
    int rc = drps_plan_file(plan, DRPS_FILE_USES, DRPS_KIND_USES, &uses->file, err);
    if (rc == 0 && drps_recfile_count(uses->file) != uses->steps)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s/" DRPS_FILE_USES " holds %llu steps of %llu: make the plan anew",
                          plan->dir, (unsigned long long)drps_recfile_count(uses->file),
                          (unsigned long long)uses->steps);
    if (rc < 0) {
        drps_uses_close(uses);
        return rc;
    }
    *uses_out = uses;
    return 0;
}

void drps_uses_close(struct drps_uses *uses)
{
    if (!uses) return;
    drps_recstream_close(uses->stream);
    drps_recfile_close(uses->file);
    free(uses->blocks);
    free(uses->distance);
    free(uses->next_use);
    free(uses);
}

static struct drps_recstream_options stream_options(const struct drps_uses *uses,
                                                    uint64_t buffer_bytes)
{
    return (struct drps_recstream_options){
        .count = uses->steps, .buffer_bytes = buffer_bytes, .depth = DEPTH};
}

uint64_t drps_uses_memory(const struct drps_uses *uses, uint64_t buffer_bytes)
{
    const struct drps_recstream_options options = stream_options(uses, buffer_bytes);
    return uses->steps * 24 + drps_recstream_memory(uses->file, &options) +
           uses->plan->info.max_step_blocks * 16;
}

static int decode_step(struct drps_uses *uses, const void *record, size_t bytes, size_t *n_out,
                       struct drps_err *err)
{
    const uint32_t n = bytes >= 4 ? drps_list_count(record) : 0;
    if (n > uses->plan->info.max_step_blocks)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%u blocks, " DRPS_FILE_MANIFEST " says at most %llu", n,
                            (unsigned long long)uses->plan->info.max_step_blocks);
    int rc = drps_uses_decode(record, bytes, uses->blocks, uses->distance, err);
    if (rc < 0) return rc;
    if (n && uses->blocks[n - 1] >= uses->plan->info.blocks)
        return drps_err_set(err, DRPS_E_CORRUPT, "block %u of %llu", uses->blocks[n - 1],
                            (unsigned long long)uses->plan->info.blocks);
    *n_out = n;
    return 0;
}

static int step_blocks(void *ctx, uint64_t step, struct drps_step_blocks *out, struct drps_err *err)
{
    struct drps_uses *uses = ctx;
    const void *record;
    size_t bytes, n = 0;

    if (step != uses->next++)
        return drps_err_set(err, -EINVAL, "blocks of step %llu asked for out of order",
                            (unsigned long long)step);
    int rc = drps_recstream_next(uses->stream, &record, &bytes, err);
    if (rc == 0)
        return drps_err_set(err, DRPS_E_CORRUPT, DRPS_FILE_USES " ended before the training");
    if (rc > 0) rc = decode_step(uses, record, bytes, &n, err);
    if (rc < 0) {
        (void)drps_err_context(err, "%s/" DRPS_FILE_USES ": step %llu", uses->plan->dir,
                               (unsigned long long)((uses->first + step) % uses->steps));
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t next = step + uses->distance[i]; /* distances wrap into the next epoch */
        uses->next_use[i] = uses->distance[i] && next < uses->all_steps ? next : UINT64_MAX;
    }
    *out = (struct drps_step_blocks){.blocks = uses->blocks, .next_use = uses->next_use, .n = n};
    return 0;
}

int drps_uses_start(struct drps_uses *uses, uint64_t first, uint64_t epochs, uint64_t buffer_bytes,
                    struct drps_timeline *timeline_out, struct drps_err *err)
{
    const size_t cap = uses->plan->info.max_step_blocks;
    struct drps_recstream_options options = stream_options(uses, buffer_bytes);
    options.passes = epochs;
    options.begin = first;
    uses->first = first;
    uses->all_steps = epochs * uses->steps - first;
    uses->blocks = drps_array_new(cap, sizeof(*uses->blocks));
    uses->distance = drps_array_new(cap, sizeof(*uses->distance));
    uses->next_use = drps_array_new(cap, sizeof(*uses->next_use));
    if (!uses->blocks || !uses->distance || !uses->next_use)
        return drps_err_set(err, -ENOMEM, "no memory for the blocks of a step");
    *timeline_out = (struct drps_timeline){.ctx = uses,
                                           .steps = uses->all_steps,
                                           .max_use_distance = uses->steps,
                                           .step_blocks = step_blocks};
    return drps_recstream_open(uses->file, &options, &uses->stream, err);
}
