/*
 * The phase that compiles windows: windows.rec and slots.rec of each part, for so much memory of
 * drps-train as this run has itself (index/windows/). Where all rows of a part fit it, there need
 * be none: training keeps the rows in memory, and a run with less memory cuts windows of its own.
 */
#include "index/run/run.h"

static int make_windows(struct part *part, const struct index_run *r, struct drps_err *err)
{
    const struct drps_window_options options = drps_part_windows(part, &r->options);
    struct drps_plan_info *info = &part->info;
    struct drps_window_result result;
    info->window_budget_bytes = options.budget_bytes;
    info->windows_later = r->options.windows_later && drps_parts_fit(info, r->options.memory_bytes);
    if (info->windows_later) {
        info->working_set_rows = info->rows;
        return 0;
    }
    int rc = drps_windows_compile(r->io, part->dir, part->dir, &options, &result, err);
    info->windows = result.windows;
    info->working_set_rows = result.working_set_rows;
    info->max_window_rows = result.max_window_rows;
    info->window_rows = result.rows_touched;
    info->window_rows_kept = result.rows_kept;
    info->window_rows_moved = result.rows_moved;
    return rc;
}

int drps_phase_window(struct index_run *r, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t i = r->own_first; i < r->own_end && rc == 0; i++)
        rc = make_windows(&r->parts[i], r, err);
    return rc;
}
