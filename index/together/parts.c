/* The numbers of each rank's folder, to all (drps_together.h). */
#include "index/together/drps_together.h"

#include <string.h>

static int send_part(struct swap *s, const struct swap_ranks *ranks,
                     const struct drps_plan_info *info, const struct drps_forecast *forecast,
                     size_t forecasts, struct drps_err *err)
{
    struct drps_plan_info sent;
    int rc = 0;
    memcpy(&sent, info, sizeof(sent)); /* holes, too: they are zeros */
    sent.classes = NULL;               /* addresses are nobody else's business */
    sent.command = NULL;
    for (uint32_t to = 0; to < ranks->count && rc == 0; to++) {
        rc = drps_swap_put(s, to, &sent, sizeof(sent), err);
        if (rc == 0) rc = drps_swap_put(s, to, forecast, forecasts * sizeof(*forecast), err);
    }
    return rc == 0 ? drps_swap_end(s, err) : rc;
}

/* The numbers that differ between the parts of a plan; texts and pointers stay. */
static void take_numbers(const struct drps_plan_info *from, struct drps_plan_info *to)
{
    const struct drps_plan_ranks *r = &from->ranks;
    to->rows = from->rows;
    to->blocks = from->blocks;
    to->max_block_rows = from->max_block_rows;
    to->max_step_blocks = from->max_step_blocks;
    to->max_step_block_rows = from->max_step_block_rows;
    to->row_uses = from->row_uses;
    to->block_uses = from->block_uses;
    to->block_use_rows = from->block_use_rows;
    to->runs = from->runs;
    to->run_rows = from->run_rows;
    to->windows = from->windows;
    to->windows_later = from->windows_later;
    to->window_budget_bytes = from->window_budget_bytes;
    to->working_set_rows = from->working_set_rows;
    to->max_window_rows = from->max_window_rows;
    to->window_rows = from->window_rows;
    to->window_rows_kept = from->window_rows_kept;
    to->window_rows_moved = from->window_rows_moved;
    to->ranks.max_round_rows = r->max_round_rows;
    to->ranks.max_round_uses = r->max_round_uses;
    to->ranks.pulled_rows = r->pulled_rows;
    to->ranks.eval_pulled_rows = r->eval_pulled_rows;
    to->ranks.served_rows = r->served_rows;
    to->ranks.eval_served_rows = r->eval_served_rows;
}

static int take_part(struct swap *s, uint32_t from, const struct drps_plan_info *mine,
                     const struct drps_forecast *forecast, size_t forecasts,
                     struct drps_plan_info *info_out, struct drps_forecast *forecast_out,
                     struct drps_err *err)
{
    struct drps_plan_info info;
    if (drps_swap_left(s, from) != sizeof(info) + forecasts * sizeof(*forecast))
        return drps_swap_fault(from, "another forecast than this rank has", err);
    int rc = drps_swap_take(s, from, &info, sizeof(info), err);
    if (rc == 0) rc = drps_swap_take(s, from, forecast_out, forecasts * sizeof(*forecast), err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < forecasts; i++)
        forecast_out[i].store = forecast[i].store;
    *info_out = *mine;
    take_numbers(&info, info_out);
    return 0;
}

int drps_together_share_part(struct swap_ranks *ranks, const struct drps_plan_info *info,
                             const struct drps_forecast *forecast, size_t forecasts,
                             struct drps_plan_info *info_out, struct drps_forecast *forecast_out,
                             struct drps_err *err)
{
    struct swap *s = NULL;
    int rc = drps_swap_open(ranks, &s, err);
    if (rc == 0) rc = send_part(s, ranks, info, forecast, forecasts, err);
    for (uint32_t r = 0; r < ranks->count && rc == 0; r++)
        rc = take_part(s, r, info, forecast, forecasts, &info_out[r],
                       &forecast_out[(size_t)r * DRPS_FORECASTS], err);
    drps_swap_close(s);
    return rc;
}
