/* The phases over blocks: rows in blocks, blocks on machines, windows, forecast. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/blocks/remote/drps_remote.h"
#include "index/ranks/drps_owners.h"
#include "index/ranks/drps_placement.h"
#include "index/run/run.h"

/* Batches and row lists of all, once they are dealt. */
static int remove_batches(struct run *r, struct drps_err *err)
{
    static const char *const names[] = {DRPS_FILE_DATA, DRPS_FILE_ROWS};
    int rc = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && rc == 0; i++) {
        char *path = drps_path_join(r->stage.dir, names[i]);
        rc = path ? drps_io_remove_tree(r->io, path, err)
                  : drps_err_set(err, -ENOMEM, "no memory for a path");
        free(path);
    }
    return rc;
}

/* Those that this process may use; 1 when that cannot be told. */
static unsigned processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static struct layout_job layout_job(const struct run *r)
{
    const struct drps_blocks_options *o = &r->options.blocks;
    const struct drps_plan_info *info = r->info;
    const uint64_t rows = info->block_bytes / info->row_bytes;
    return (struct layout_job){
        .io = r->io,
        .from = r->batch_dir,
        .to = r->laid,
        .builder = block_builder_find(o->by),
        .options = {.cost = {.seek = (double)o->seek_ns / 1e3,
                             .row = (double)info->row_bytes / (double)o->transfer_bps * 1e6},
                    .top_k = o->top_k,
                    .min_gain = o->min_gain_us,
                    .min_count = o->prune,
                    .sample = o->sample,
                    .max_rows = rows ? (uint32_t)rows : 1,
                    .seed = info->seed,
                    .threads = processors(),
                    .memory_bytes = r->options.memory_bytes / 4 * 3},
        .prune_to = o->prune_to,
        .shards = o->shards,
        .crew = o->crew,
        .log = r->options.log,
        .stop = r->options.interrupt};
}

/* What ranks call the plan: a hash of all batches and of who has what. */
static int name_whole(struct run *r, const struct owners *owners, struct drps_err *err)
{
    static const char *const names[] = {DRPS_FILE_DATA, DRPS_FILE_ROWS, DRPS_FILE_NAMES};
    struct drps_plan_ranks *ranks = &r->info->ranks;
    uint64_t hash[2];
    int rc = drps_plan_hash(r->io, r->stage.dir, names, 3, &hash[0], err);
    hash[1] = drps_checksum(owners->first, (owners->servers + 1) * sizeof(*owners->first));
    ranks->workers = owners->servers;
    ranks->rank = DRPS_PLAN_WHOLE;
    ranks->round_samples = r->info->batch_size * owners->servers;
    if (ranks->round_samples > r->info->samples) ranks->round_samples = r->info->samples;
    (void)snprintf(ranks->whole, sizeof(ranks->whole), "%016llx",
                   (unsigned long long)drps_checksum(hash, sizeof(hash)));
    return rc;
}

/* Ranges of the rows as they are, or the rows renumbered first. */
static int choose_owners(struct run *r, uint32_t **block_first, struct owners *out,
                         struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    const struct owners_job ranges = {.io = r->io,
                                      .dir = r->stage.dir,
                                      .steps = info->batches + info->eval_batches,
                                      .block_first = *block_first,
                                      .blocks = info->blocks,
                                      .memory_bytes = r->options.memory_bytes};
    const struct placement_job placement = {.io = r->io,
                                            .from = r->laid,
                                            .to = r->stage.dir,
                                            .algo = r->options.partition,
                                            .servers = r->parts_n,
                                            .by_home = run_places_samples(&r->options),
                                            .pages =
                                                !block_builder_find(r->options.blocks.by)->merges,
                                            .memory_bytes = r->options.memory_bytes};
    if (!placement_renumbers(r->options.partition))
        return owners_by_range(&ranges, r->parts_n, out, err);
    int rc = placement_make(&placement, info, block_first, out, err);
    return rc < 0 ? rc : drps_io_remove_tree(r->io, r->laid, err);
}

/* A part for each rank; the dictionary stays with the whole. */
static int deal_parts(struct run *r, const struct layout_job *layout, uint32_t **block_first,
                      struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    struct owners owners;
    const struct deal_job job = {.io = r->io,
                                 .from = r->stage.dir,
                                 .batches = info->batches,
                                 .eval_batches = info->eval_batches,
                                 .owners = &owners,
                                 .memory_bytes = r->options.memory_bytes};
    int rc = choose_owners(r, block_first, &owners, err);
    if (rc == 0) rc = name_whole(r, &owners, err);
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++) {
        struct part *part = &r->parts[i];
        part->info = *info;
        rc = drps_plan_rank_dir(r->stage.dir, i, part->dir, err);
        if (rc == 0) rc = part_deal(part, &job, i, *block_first, err);
        if (rc == 0) rc = layout_write(layout, part->dir, part->block_first, &part->info, err);
        if (rc == 0) rc = check_interrupt(&r->options, err);
    }
    return rc < 0 ? rc : remove_batches(r, err);
}

/* The plan itself is the one part. */
static int keep_whole(struct run *r, const struct layout_job *layout, uint32_t **block_first,
                      struct drps_err *err)
{
    struct part *part = &r->parts[0];
    r->info->ranks = (struct drps_plan_ranks){.workers = 1,
                                              .rank = DRPS_PLAN_WHOLE,
                                              .round_samples = r->info->max_batch_samples,
                                              .max_round_rows = r->info->max_batch_rows};
    part->info = *r->info;
    part->block_first = *block_first; /* moved */
    *block_first = NULL;
    (void)snprintf(part->dir, sizeof(part->dir), "%s", r->stage.dir);
    return layout_write(layout, part->dir, part->block_first, &part->info, err);
}

int run_make_blocks(struct run *r, struct drps_err *err)
{
    const struct drps_blocks_options *o = &r->options.blocks;
    struct drps_plan_info *info = r->info;
    uint32_t *block_first = NULL;

    info->seek_ns = o->seek_ns;
    info->transfer_bps = o->transfer_bps;
    const struct layout_job job = layout_job(r);
    int rc = layout_make(&job, info, &block_first, err);
    if (rc == 0)
        rc = r->parts_n > 1 ? deal_parts(r, &job, &block_first, err)
                            : keep_whole(r, &job, &block_first, err);
    free(block_first);
    return rc;
}

/* And the forecast, beside them: its phase has only to put together what that of parts says. */
int run_make_windows(struct run *r, struct drps_err *err)
{
    const struct drps_index_options *o = &r->options;
    int rc = 0;
    for (uint32_t i = 0; i < r->parts_n && rc == 0; i++)
        rc = part_study(&r->parts[i], r->io, o->memory_bytes, o->no_forecast, o->log, err);
    return rc;
}

int run_forecast(struct run *r, struct drps_err *err)
{
    struct drps_index_result *result = r->result;
    (void)err;
    if (r->parts_n > 1) {
        parts_sum(r->parts, r->parts_n, result);
        return 0;
    }
    *r->info = r->parts[0].info;
    result->forecasts = r->parts[0].forecasts;
    memcpy(result->forecast, r->parts[0].forecast, sizeof(result->forecast));
    return 0;
}
