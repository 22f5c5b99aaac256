#include "engine/windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"

struct drps_windows {
    const char *dir; /* borrowed: the plan's or the run's */
    struct drps_recfile *file;
    uint32_t windows, max_rows;
    uint64_t working_rows;
    struct drps_store_window *heads; /* own: [windows] */
    uint64_t *front_bytes;           /* own: [windows] */
    void *mem;                       /* own: room for the largest record */
    size_t mem_bytes;
    const void *record; /* in it: the one read last */
};

/* ---- Which windows ---- */

/* What windows of this run should take. */
static uint64_t wanted_bytes(const struct drps_plan_info *info,
                             const struct drps_relay_share *share)
{
    return drps_relay_window_bytes(share, info->rows, info->ranks.max_round_rows);
}

/* They fit, and are not much smaller than this run wants; what fits is not much larger: all of the
 * budget is less than 4/3 of that. */
static int plan_suits(const struct drps_plan_info *info, const struct drps_relay_share *share)
{
    const uint64_t bytes = info->working_set_rows * share->row_bytes;
    const uint64_t wanted = wanted_bytes(info, share);
    return bytes <= share->budget_bytes && 4 * bytes >= 3 * wanted;
}

static int compile(const struct drps_windows_options *o, uint64_t *working_rows_out,
                   struct drps_err *err)
{
    const struct drps_plan_info *info = &o->plan->info;
    const struct drps_window_options options = {
        .steps = info->batches + info->eval_batches,
        .train_steps = info->batches,
        .rows = info->rows,
        .row_bytes = o->share->row_bytes,
        .budget_bytes = wanted_bytes(info, o->share),
        .memory_bytes = o->memory_bytes,
        .log = o->log,
    };
    struct drps_window_result result;
    char bytes[32];
    drps_log(o->log, DRPS_LOG_INFO, "compiling windows for %s of rows",
             drps_size_format(options.budget_bytes, bytes, sizeof(bytes)));
    int rc = drps_windows_compile(o->plan->io, o->plan->dir, o->dir, &options, &result, err);
    *working_rows_out = result.working_set_rows;
    return rc;
}

/* ---- Opening ---- */

void drps_windows_close(struct drps_windows *w)
{
    if (!w) return;
    drps_recfile_close(w->file);
    free(w->heads);
    free(w->front_bytes);
    drps_pages_free(w->mem, w->mem_bytes);
    free(w);
}

static int open_file(struct drps_windows *w, const struct drps_io *io, struct drps_err *err)
{
    uint64_t most = 0;
    char *path = drps_path_join(w->dir, "windows.rec");
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s/windows.rec", w->dir);
    int rc = drps_recfile_open(io, path, DRPS_KIND_WINDOWS, &w->file, err);
    free(path);
    if (rc < 0) return rc;
    for (uint64_t i = 0; i < drps_recfile_count(w->file); i++)
        if (drps_recfile_run_bytes(w->file, i, 1) > most)
            most = drps_recfile_run_bytes(w->file, i, 1);
    drps_recfile_go_direct(w->file);
    w->mem_bytes = (size_t)drps_recfile_room(most);
    w->mem = drps_pages_new(w->mem_bytes);
    return w->mem ? 0 : drps_err_set(err, -ENOMEM, "no memory for a window's record");
}

static int read_record(struct drps_windows *w, uint32_t number, struct drps_window *head,
                       struct drps_err *err)
{
    int rc = drps_recfile_read_in(w->file, number, 1, w->mem, &w->record, err);
    if (rc == 0) rc = drps_window_head(w->record, drps_recfile_bytes(w->file, number), head, err);
    if (rc < 0) (void)drps_err_context(err, "%s/windows.rec: window %u", w->dir, number);
    return rc;
}

/* Without the rows. */
static int read_front(struct drps_windows *w, uint32_t number, struct drps_window *head,
                      struct drps_err *err)
{
    const size_t bytes = (size_t)w->front_bytes[number];
    int rc = drps_recfile_read_front(w->file, number, bytes, w->mem, &w->record, err);
    if (rc == 0) rc = drps_window_check_front(w->record, bytes, err);
    if (rc == 0) rc = drps_window_head(w->record, bytes, head, err);
    if (rc < 0) (void)drps_err_context(err, "%s/windows.rec: window %u", w->dir, number);
    return rc;
}

/* Every window's head. */
static int survey(struct drps_windows *w, const struct drps_plan_info *info, struct drps_err *err)
{
    const uint64_t count = drps_recfile_count(w->file);
    const uint64_t steps = info->batches + info->eval_batches;
    uint64_t next = 0;
    int rc = 0;
    w->heads = drps_array_new((size_t)count, sizeof(*w->heads));
    w->front_bytes = drps_array_new((size_t)count, sizeof(*w->front_bytes));
    if (!w->heads || !w->front_bytes)
        return drps_err_set(err, -ENOMEM, "no memory for %llu windows", (unsigned long long)count);
    for (uint64_t i = 0; i < count && rc == 0; i++) {
        struct drps_window head = {0};
        rc = read_record(w, (uint32_t)i, &head, err);
        if (rc < 0) return rc;
        if (head.windows != count || head.first_step != next || head.max_rows > info->rows)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s/windows.rec: window %llu does not follow the one before it: "
                                "make the plan anew",
                                w->dir, (unsigned long long)i);
        w->heads[i] = (struct drps_store_window){.first_step = head.first_step,
                                                 .steps = head.steps,
                                                 .n = head.n,
                                                 .arriving = head.arriving,
                                                 .leaving = head.leaving};
        w->front_bytes[i] = head.front_bytes;
        w->max_rows = head.max_rows;
        next = head.first_step + head.steps;
    }
    if (next != steps || !count)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s/windows.rec: windows of %llu steps, the plan has %llu: make the "
                            "plan anew",
                            w->dir, (unsigned long long)next, (unsigned long long)steps);
    w->windows = (uint32_t)count;
    return 0;
}

static int read_window(void *ctx, uint32_t number, struct drps_store_window *out, uint32_t *rows,
                       uint32_t *next, uint32_t *prev, struct drps_err *err)
{
    struct drps_windows *w = ctx;
    const unsigned parts = (rows ? DRPS_WINDOW_ROWS : 0U) | (next ? DRPS_WINDOW_NEXT : 0U) |
                           (prev ? DRPS_WINDOW_PREV : 0U);
    struct drps_window win = {0};

    *out = w->heads[number];
    if (!parts) return 0;
    int rc = rows ? read_record(w, number, &win, err) : read_front(w, number, &win, err);
    if (rc == 0 && win.n > w->max_rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s/windows.rec: window %u has %zu rows, at most %u",
                          w->dir, number, win.n, w->max_rows);
    if (rc < 0) return rc;
    win.rows = rows; /* the caller's arrays: they hold max_rows */
    win.next = next;
    win.prev = prev;
    win.cap = w->max_rows;
    const uint64_t bytes = rows ? drps_recfile_bytes(w->file, number) : w->front_bytes[number];
    rc = drps_window_decode(w->record, (size_t)bytes, parts, &win, err);
    if (rc == 0 && win.n != out->n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%zu rows, there were %zu before", win.n, out->n);
    if (rc < 0) (void)drps_err_context(err, "%s/windows.rec: window %u", w->dir, number);
    return rc;
}

int drps_windows_open(const struct drps_windows_options *o, struct drps_windows **w_out,
                      struct drps_window_source *source_out, struct drps_err *err)
{
    *w_out = NULL;
    struct drps_windows *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory to read windows");
    int rc = 0;
    if (plan_suits(&o->plan->info, o->share)) {
        w->dir = o->plan->dir;
        w->working_rows = o->plan->info.working_set_rows;
    } else {
        w->dir = o->dir;
        rc = compile(o, &w->working_rows, err);
    }
    if (rc == 0) rc = open_file(w, o->plan->io, err);
    if (rc == 0) rc = survey(w, &o->plan->info, err);
    if (rc < 0) {
        drps_windows_close(w);
        return rc;
    }
    *source_out = (struct drps_window_source){.ctx = w,
                                              .windows = w->windows,
                                              .epochs = o->epochs,
                                              .max_rows = w->max_rows,
                                              .working_rows = w->working_rows,
                                              .read = read_window};
    *w_out = w;
    return 0;
}

const char *drps_windows_dir(const struct drps_windows *w)
{
    return w->dir;
}

uint64_t drps_windows_spread(const struct drps_windows *w, uint64_t train_steps)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 1; i < w->windows; i++) {
        const struct drps_store_window *head = &w->heads[i];
        if (head->first_step + head->steps >= train_steps) break;
        if (head->steps < least) least = head->steps;
    }
    return least == UINT64_MAX ? least : (least + 1) / 2;
}

void drps_windows_forecast(const struct drps_windows *w, const struct drps_store_stats *stats,
                           uint64_t row_bytes, struct drps_forecast *out)
{
    const uint64_t bytes = stats->rows_sent * row_bytes;
    *out = (struct drps_forecast){.store = "relay",
                                  .memory_bytes = stats->pool_bytes,
                                  .windows = w->windows,
                                  .read_bytes = bytes,
                                  .written_bytes = bytes,
                                  .ios = 2 * (bytes / stats->chunk_bytes),
                                  .feasible = 1};
}
