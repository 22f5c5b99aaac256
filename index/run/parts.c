#include "index/run/parts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_alloc.h"

/* What drps-train takes beside rows: fixed, of the rest, and a row. */
enum { TRAIN_FIXED = 48 << 20, TRAIN_ROWS_PERCENT = 72, TRAIN_ROW_EXTRA = 45 };

void part_free(struct part *part)
{
    free(part->block_first);
    part->block_first = NULL;
}

/* ---- Dealing ---- */

/* The blocks of rows [first, end), their boundaries counted from first. */
static int cut_blocks(struct part *part, const uint32_t *block_first, uint32_t first, uint32_t end,
                      struct drps_err *err)
{
    const uint64_t all = part->info.blocks;
    uint64_t from = 0, to, n = 0;
    while (block_first[from + 1] <= first)
        from++;
    for (to = from; to < all && block_first[to] < end;)
        to++;
    part->block_first = drps_array_new(to - from + 1, sizeof(*part->block_first));
    if (!part->block_first) return drps_err_set(err, -ENOMEM, "no memory for block boundaries");
    part->block_first[n++] = 0;
    for (uint64_t b = from + 1; b < to; b++)
        part->block_first[n++] = block_first[b] - first;
    part->block_first[n] = end - first;
    part->info.blocks = n;
    return 0;
}

int part_deal(struct part *part, const struct deal_job *job, uint32_t rank,
              const uint32_t *block_first, struct drps_err *err)
{
    const uint32_t *first = job->owners->first;
    int rc = job->io->ops->mkdir(job->io->ctx, part->dir, 0777);
    if (rc < 0) return drps_err_set(err, rc, "cannot create %s: %s", part->dir, drps_err_name(rc));
    rc = deal_rank(job, rank, part->dir, &part->info.ranks, err);
    if (rc == 0) rc = cut_blocks(part, block_first, first[rank], first[rank + 1], err);
    part->info.rows = first[rank + 1] - first[rank];
    part->info.batches = deal_rounds(job->batches, job->owners->servers);
    part->info.eval_batches = deal_rounds(job->eval_batches, job->owners->servers);
    return rc;
}

/* ---- Windows and forecast ---- */

uint64_t parts_room_rows(uint64_t row_bytes, uint64_t memory_bytes)
{
    const uint64_t rest =
        memory_bytes > 2 * TRAIN_FIXED ? memory_bytes - TRAIN_FIXED : memory_bytes / 2;
    return rest / 100 * TRAIN_ROWS_PERCENT / (row_bytes + TRAIN_ROW_EXTRA);
}

static uint64_t window_budget(const struct drps_plan_info *info, uint64_t memory_bytes)
{
    const uint64_t rows = parts_room_rows(info->row_bytes, memory_bytes);
    const uint64_t least = 2 * info->ranks.max_round_rows;
    return (rows > least ? rows : least) * info->row_bytes;
}

static int make_windows(struct part *part, const struct drps_io *io, struct drps_err *err)
{
    struct drps_plan_info *info = &part->info;
    struct drps_window_result result;
    int rc = drps_windows_compile(io, part->dir, part->dir, &part->window, &result, err);
    info->windows = result.windows;
    info->window_budget_bytes = part->window.budget_bytes;
    info->working_set_rows = result.working_set_rows;
    info->max_window_rows = result.max_window_rows;
    info->window_rows = result.rows_touched;
    info->window_rows_kept = result.rows_kept;
    info->window_rows_moved = result.rows_moved;
    return rc;
}

struct forecasting {
    struct part *part;
    const struct drps_io *io;
    struct drps_err err;
    int rc;
};

static void *make_forecast(void *arg)
{
    struct forecasting *f = arg;
    struct part *part = f->part;
    f->rc =
        drps_forecast_curve(f->io, part->dir, &part->window, part->block_first, part->info.blocks,
                            part->forecast, DRPS_FORECASTS, &part->forecasts, &f->err);
    return NULL;
}

static int make_both(struct part *part, const struct drps_io *io, struct drps_err *err)
{
    struct forecasting f = {.part = part, .io = io, .err = DRPS_ERR_INIT};
    pthread_t thread;
    const int alone = pthread_create(&thread, NULL, make_forecast, &f) != 0;
    int rc = make_windows(part, io, err);
    if (alone)
        (void)make_forecast(&f); /* leaves its result in there */
    else
        (void)pthread_join(thread, NULL); /* cannot fail for a thread of ours */
    return rc < 0 || f.rc == 0 ? rc : drps_err_set(err, f.rc, "%s", f.err.text);
}

int part_study(struct part *part, const struct drps_io *io, uint64_t memory_bytes, int no_forecast,
               const struct drps_log *log, struct drps_err *err)
{
    const struct drps_plan_info *info = &part->info;
    part->window = (struct drps_window_options){.steps = info->batches + info->eval_batches,
                                                .train_steps = info->batches,
                                                .rows = info->rows,
                                                .row_bytes = info->row_bytes,
                                                .budget_bytes = window_budget(info, memory_bytes),
                                                .memory_bytes = memory_bytes / 2,
                                                .log = log};
    return no_forecast ? make_windows(part, io, err) : make_both(part, io, err);
}

/* ---- plan.json ---- */

static json_t *forecast_to_json(const struct part *part)
{
    json_t *list = json_array();
    for (size_t i = 0; i < part->forecasts; i++) {
        const struct drps_forecast *f = &part->forecast[i];
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:f}", "store", f->store, "memory_bytes",
                      (json_int_t)f->memory_bytes, "windows", (json_int_t)f->windows, "read_bytes",
                      (json_int_t)f->read_bytes, "written_bytes", (json_int_t)f->written_bytes,
                      "ios", (json_int_t)f->ios, "feasible", f->feasible, "sampled",
                      f->sampled)); /* a short list is caught by its reader */
    }
    return list;
}

int part_save(const struct part *part, const struct drps_io *io, char *const *fields,
              struct drps_err *err)
{
    json_t *list = forecast_to_json(part);
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
    raise(&sum->window_budget_bytes, info->window_budget_bytes);
    raise(&sum->working_set_rows, info->working_set_rows);
    raise(&sum->max_window_rows, info->max_window_rows);
    sum->window_rows += info->window_rows;
    sum->window_rows_kept += info->window_rows_kept;
    sum->window_rows_moved += info->window_rows_moved;
    raise(&ranks->max_round_rows, info->ranks.max_round_rows);
    raise(&ranks->max_round_uses, info->ranks.max_round_uses);
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
        if (f->sampled < sum->sampled) sum->sampled = f->sampled;
    }
}

void parts_sum(const struct part *parts, uint32_t n, struct drps_index_result *result)
{
    result->info.blocks = 0;
    for (uint32_t r = 0; r < n; r++) {
        const struct drps_plan_info *info = &parts[r].info;
        sum_info(&result->info, info);
        sum_forecast(result, &parts[r]);
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
    result->info.batches = parts[0].info.batches;
    result->info.eval_batches = parts[0].info.eval_batches;
}
