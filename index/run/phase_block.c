/*
 * The phase that makes blocks: a block builder decides which rows lie together, and renumbers them
 * if it must (index/blocks/). A plan for one worker is then whole: its part is the plan's folder.
 * Another phase then finds which blocks of such a plan each step uses.
 */
#include <sched.h>
#include <stdio.h>

#include "index/run/run.h"

unsigned drps_run_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

struct blocks_job drps_run_blocks_job(const struct index_run *r)
{
    const struct drps_blocks_options *o = &r->options.blocks;
    const struct drps_plan_info *info = r->info;
    return (struct blocks_job){
        .io = r->io,
        .from = r->batch_dir,
        .to = r->laid,
        .builder = drps_block_builder_find(o->by),
        .options = {.cost = {.seek = (double)o->seek_ns / 1e3,
                             .row = (double)info->row_bytes / (double)o->transfer_bps * 1e6},
                    .top_k = o->top_k,
                    .min_gain = o->min_gain_us,
                    .min_count = o->prune,
                    .keep_rows = o->prune_to,
                    .sample = o->sample,
                    .max_rows = drps_run_block_rows(r),
                    .seed = info->seed,
                    .threads = drps_run_processors(),
                    .memory_bytes = r->options.memory_bytes / 4 * 3},
        .keep_share = o->keep_share,
        .samples = o->sample_samples,
        .shards = o->shards,
        .remote = o->remote,
        .log = r->options.log,
        .stop = r->options.interrupt};
}

void drps_run_keep_whole(struct index_run *r)
{
    struct part *part = &r->parts[0];
    r->info->ranks = drps_plan_ranks_of(1, 1, 0);
    r->info->ranks.round_samples = r->info->max_batch_samples;
    r->info->ranks.max_round_rows = r->info->max_batch_rows;
    part->info = *r->info;
    part->block_first = r->block_first; /* moved */
    r->block_first = NULL;
    (void)snprintf(part->dir, sizeof(part->dir), "%s", r->stage.dir);
}

int drps_phase_uses(struct index_run *r, struct drps_err *err)
{
    const struct blocks_job blocks = drps_run_blocks_job(r);
    struct part *part = &r->parts[0];
    return drps_blocks_make_files(&blocks, part->dir, part->block_first, &part->info, err);
}

int drps_phase_block(struct index_run *r, struct drps_err *err)
{
    const struct drps_blocks_options *o = &r->options.blocks;
    struct drps_plan_info *info = r->info;

    info->seek_ns = o->seek_ns;
    info->transfer_bps = o->transfer_bps;
    const struct blocks_job job = drps_run_blocks_job(r);
    int rc = drps_blocks_make(&job, info, &r->block_first, err);
    if (rc == 0 && drps_run_numbers_by_lane(&r->options)) rc = drps_run_number_by_lane(r, err);
    if (rc == 0 && r->parts_n == 1) drps_run_keep_whole(r);
    return rc;
}
