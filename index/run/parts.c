/*
 * The parts of a plan (parts.h): how many rows their windows have room for, plan.json of each,
 * and their sums.
 */
#include "index/run/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "index/forecast/drps_plan_forecast.h"

/* What drps-train takes beside rows: fixed, of the rest, and a row. */
enum { TRAIN_FIXED = 48 << 20, TRAIN_ROWS_PERCENT = 72, TRAIN_ROW_EXTRA = 45 };

void drps_part_free(struct part *part)
{
    free(part->block_first);
    part->block_first = NULL;
}

/* ---- Windows ---- */

uint64_t drps_parts_room_rows(uint64_t row_bytes, uint64_t memory_bytes)
{
    const uint64_t rest =
        memory_bytes > 2 * TRAIN_FIXED ? memory_bytes - TRAIN_FIXED : memory_bytes / 2;
    return rest / 100 * TRAIN_ROWS_PERCENT / (row_bytes + TRAIN_ROW_EXTRA);
}

int drps_parts_fit(const struct drps_plan_info *info, uint64_t memory_bytes)
{
    return info->rows <= drps_parts_room_rows(info->row_bytes, memory_bytes);
}

static uint64_t window_budget(const struct drps_plan_info *info, uint64_t memory_bytes)
{
    const uint64_t rows = drps_parts_room_rows(info->row_bytes, memory_bytes);
    const uint64_t least = 2 * info->ranks.max_round_rows;
    return (rows > least ? rows : least) * info->row_bytes;
}

struct drps_window_options drps_part_windows(const struct part *part,
                                             const struct drps_index_options *options)
{
    const struct drps_plan_info *info = &part->info;
    return (struct drps_window_options){.steps = info->batches + info->eval_batches,
                                        .train_steps = info->batches,
                                        .rows = info->rows,
                                        .row_bytes = info->row_bytes,
                                        .budget_bytes = window_budget(info, options->memory_bytes),
                                        .memory_bytes = options->memory_bytes / 2,
                                        .log = options->log};
}

/* ---- plan.json ---- */

int drps_part_save(const struct part *part, const struct drps_io *io, char *const *fields,
                   int with_forecast, struct drps_err *err)
{
    json_t *list = with_forecast ? drps_forecast_to_json(part->forecast, part->forecasts) : NULL;
    if (with_forecast && !list) return drps_err_set(err, -ENOMEM, "no memory for the manifest");
    int rc = drps_plan_save(io, part->dir, &part->info, fields, list, err);
    json_decref(list);
    return rc;
}

/* ---- The whole ---- */

static void raise(uint64_t *most, uint64_t value)
{
    if (value > *most) *most = value;
}

static void sum_info(struct drps_plan_info *sum, const struct drps_plan_info *info)
{
    struct drps_plan_ranks *ranks = &sum->ranks;
    sum->blocks += info->blocks;
    raise(&sum->max_block_rows, info->max_block_rows);
    raise(&sum->max_step_blocks, info->max_step_blocks);
    raise(&sum->max_step_block_rows, info->max_step_block_rows);
    sum->row_uses += info->row_uses;
    sum->block_uses += info->block_uses;
    sum->block_use_rows += info->block_use_rows;
    sum->runs += info->runs;
    sum->run_rows += info->run_rows;
    raise(&sum->windows, info->windows);
    sum->windows_later &= info->windows_later;
    raise(&sum->window_budget_bytes, info->window_budget_bytes);
    raise(&sum->working_set_rows, info->working_set_rows);
    raise(&sum->max_window_rows, info->max_window_rows);
    sum->window_rows += info->window_rows;
    sum->window_rows_kept += info->window_rows_kept;
    sum->window_rows_moved += info->window_rows_moved;
    raise(&ranks->max_round_rows, info->ranks.max_round_rows);
    raise(&ranks->max_round_uses, info->ranks.max_round_uses);
    raise(&ranks->residual_slots, info->ranks.residual_slots);
    ranks->own_slots |= info->ranks.own_slots;
    raise(&ranks->published_slots, info->ranks.published_slots);
    drps_plan_handed_add(&ranks->handed, &info->ranks.handed);
    ranks->pulled_rows += info->ranks.pulled_rows;
    ranks->eval_pulled_rows += info->ranks.eval_pulled_rows;
    ranks->served_rows += info->ranks.served_rows;
    ranks->eval_served_rows += info->ranks.eval_served_rows;
}

static void sum_forecast(struct drps_index_result *result, const struct part *part)
{
    const int first = result->forecasts == 0;
    result->forecasts = part->forecasts; /* the same stores and shares of the rows for all */
    for (size_t i = 0; i < part->forecasts; i++) {
        struct drps_forecast *sum = &result->forecast[i];
        const struct drps_forecast *f = &part->forecast[i];
        if (first) {
            *sum = *f;
            continue;
        }
        sum->memory_bytes += f->memory_bytes;
        raise(&sum->windows, f->windows);
        sum->read_bytes += f->read_bytes;
        sum->written_bytes += f->written_bytes;
        sum->ios += f->ios;
        sum->feasible &= f->feasible;
        if (f->seconds.epoch > sum->seconds.epoch) sum->seconds = f->seconds; /* the slowest */
        if (f->sampled < sum->sampled) sum->sampled = f->sampled;
    }
}

void drps_parts_sum(const struct part *parts, uint32_t n, struct drps_index_result *result)
{
    if (n == 1) {
        result->info = parts[0].info;
        sum_forecast(result, &parts[0]);
        return;
    }
    result->info.blocks = 0;
    result->info.windows_later = 1; /* unless a part has windows */
    result->links.moved_rows = result->links.busiest_rows = 0;
    for (uint32_t r = 0; r < n; r++) {
        const struct drps_plan_info *info = &parts[r].info;
        sum_info(&result->info, info);
        sum_forecast(result, &parts[r]);
        result->links.moved_rows += info->ranks.pulled_rows;
        raise(&result->links.busiest_rows, info->ranks.pulled_rows + info->ranks.served_rows);
        result->ranks[r] = (struct drps_index_rank){
            .rows = info->rows,
            .row_uses = info->row_uses,
            .blocks = info->blocks,
            .windows = info->windows,
            .working_set_rows = info->working_set_rows,
            .pulled_rows = info->ranks.pulled_rows + info->ranks.eval_pulled_rows,
            .served_rows = info->ranks.served_rows + info->ranks.eval_served_rows,
        };
    }
    result->info.batches = result->info.eval_batches = 0; /* rounds; or the most that a rank has */
    for (uint32_t r = 0; r < n; r++) {
        raise(&result->info.batches, parts[r].info.batches);
        raise(&result->info.eval_batches, parts[r].info.eval_batches);
    }
}
