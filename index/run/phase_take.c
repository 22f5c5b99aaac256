/*
 * The phase that begins with a finished plan in place of text: its batches and blocks, as they were
 * before they were split by rank (index/ranks/drps_collect.h). What follows from how many workers
 * there are is made anew.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/ranks/drps_collect.h"
#include "index/run/run.h"

/* The plan's numbers, but for those that later phases count. */
static void take_info(struct index_run *r)
{
    struct drps_plan_info *info = r->info;
    const uint64_t memory_bytes = info->memory_bytes;
    *info = r->from->info;
    info->memory_bytes = memory_bytes;
    info->lanes = r->options.lanes;
    info->command = r->options.command;
    info->source = r->options.source;
    info->seek_ns = r->options.blocks.seek_ns; /* older plans do not say */
    info->transfer_bps = r->options.blocks.transfer_bps;
    info->max_block_rows = info->max_step_blocks = info->max_step_block_rows = 0;
    info->row_uses = info->block_uses = info->block_use_rows = info->runs = info->run_rows = 0;
    info->windows = info->windows_later = info->window_budget_bytes = info->working_set_rows = 0;
    info->max_window_rows = info->window_rows = 0;
    info->window_rows_kept = info->window_rows_moved = 0;
    memset(&info->ranks, 0, sizeof(info->ranks));
}

static int take_fields(struct index_run *r, struct drps_err *err)
{
    const size_t n = r->from->info.fields_n;
    r->fields = calloc(n + 1, sizeof(*r->fields));
    if (!r->fields) return drps_err_set(err, -ENOMEM, "no memory for %zu fields", n);
    for (; r->fields_n < n; r->fields_n++) {
        r->fields[r->fields_n] = strdup(r->from->fields[r->fields_n]);
        if (!r->fields[r->fields_n])
            return drps_err_set(err, -ENOMEM, "no memory for %zu fields", n);
    }
    return 0;
}

int drps_phase_take(struct index_run *r, struct drps_err *err)
{
    struct drps_plan_info *info = r->info;
    const struct collect_job job = {.io = r->io,
                                    .plan = r->from,
                                    .to = r->laid,
                                    .unmarked = r->from->info.lanes && !r->options.lanes,
                                    .memory_bytes = r->options.memory_bytes};
    take_info(r);
    int rc = take_fields(r, err);
    if (rc == 0) rc = drps_collect_batches(&job, &info->batches, &info->eval_batches, err);
    if (rc == 0) rc = drps_collect_blocks(r->from, &r->block_first, &info->blocks, err);
    if (rc == 0 && r->parts_n == 1) drps_run_keep_whole(r);
    return rc;
}
