/* Decoded batches of one epoch: decoded as they are first asked for, handed out again afterwards.
 */
#include "engine/step/drps_batch_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

struct drps_batch_cache {
    const struct drps_plan_info *info;
    struct drps_feed *feed;
    struct drps_feed_batch *batches; /* own: [steps of an epoch] */
    uint32_t *ids;                   /* own: all row lists, and room for one that is too many */
    uint64_t used;                   /* of ids */
    uint64_t known, at; /* batches that are decoded; the step, in its epoch, of the one at hand */
};

static uint64_t steps_of(const struct drps_plan_info *info)
{
    return info->batches + info->eval_batches;
}

static uint64_t ids_bytes(const struct drps_plan_info *info)
{
    return (info->row_uses + info->ranks.max_round_rows) * sizeof(uint32_t);
}

uint64_t drps_batch_cache_memory(const struct drps_plan_info *info)
{
    if (!info->row_uses) return 0;
    return sizeof(struct drps_batch_cache) + steps_of(info) * sizeof(struct drps_feed_batch) +
           ids_bytes(info);
}

int drps_batch_cache_open(const struct drps_plan_info *info, struct drps_feed *feed,
                          struct drps_batch_cache **cache_out, struct drps_err *err)
{
    *cache_out = NULL;
    struct drps_batch_cache *cache = calloc(1, sizeof(*cache));
    if (!cache) return drps_err_set(err, -ENOMEM, "no memory to keep batches");
    cache->info = info;
    cache->feed = feed;
    cache->batches = drps_array_new((size_t)steps_of(info), sizeof(*cache->batches));
    cache->ids = drps_pages_new((size_t)ids_bytes(info));
    if (!cache->batches || !cache->ids) {
        drps_batch_cache_close(cache);
        return drps_err_set(err, -ENOMEM, "no memory to keep the rows of batches: %llu bytes",
                            (unsigned long long)drps_batch_cache_memory(info));
    }
    *cache_out = cache;
    return 0;
}

void drps_batch_cache_close(struct drps_batch_cache *cache)
{
    if (!cache) return;
    if (cache->ids) drps_pages_free(cache->ids, (size_t)ids_bytes(cache->info));
    free(cache->batches);
    free(cache);
}

static int decode(struct drps_batch_cache *cache, struct drps_err *err)
{
    struct drps_feed_raw raw;
    int rc = drps_feed_take(cache->feed, &raw, err);
    if (rc < 0) return rc;
    struct drps_feed_batch *batch = &cache->batches[raw.step];
    rc = drps_feed_decode(cache->feed, &raw, cache->ids + cache->used, batch, err);
    if (rc < 0) return rc;
    if (batch->body.rows > cache->info->row_uses - cache->used)
        return drps_err_set(
            err, DRPS_E_CORRUPT,
            "step %llu: batches up to it have more rows than the %llu that " DRPS_FILE_MANIFEST
            " counts for all",
            (unsigned long long)raw.step, (unsigned long long)cache->info->row_uses);
    cache->used += batch->body.rows;
    cache->known++;
    cache->at = raw.step;
    return 0;
}

int drps_batch_cache_next(struct drps_batch_cache *cache, struct drps_feed_batch *out,
                          struct drps_err *err)
{
    const uint64_t steps = steps_of(cache->info);
    int rc = 0;
    if (cache->known < steps)
        rc = decode(cache, err);
    else
        cache->at = cache->at + 1 < steps ? cache->at + 1 : 0;
    if (rc == 0) *out = cache->batches[cache->at];
    return rc;
}
