/* Which windows a run takes, and how the store reads them. */
#include "engine/step/drps_windows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/windows/drps_window_records.h"
#include "storage/relay/drps_relay.h"

struct drps_windows {
    const char *dir; /* borrowed: the plan's or the run's */
    struct drps_recfile *file;
    uint64_t rows; /* of the plan */
    uint32_t windows, max_rows;
    uint64_t working_rows;
    struct drps_store_window *heads; /* own: [windows] */
    struct drps_window_records *records;
};

/* ---- Which windows ---- */

/* What windows of this run should take. */
static uint64_t wanted_bytes(const struct drps_plan_info *info,
                             const struct drps_relay_share *share)
{
    return drps_relay_window_bytes(share, info->rows, info->ranks.max_round_rows);
}

/* Returns 1 if the plan has windows that fit, and are not much smaller than this run wants: at
 * least 3/4 of that. A run with coarse windows wants the largest that fit, and so cuts its own. */
static int plan_suits(const struct drps_plan_info *info, const struct drps_relay_share *share)
{
    const uint64_t bytes = info->working_set_rows * share->row_bytes;
    const uint64_t most = drps_relay_open_bytes(share);
    const uint64_t wanted = wanted_bytes(info, share);
    return !info->windows_later && !share->coarse && bytes <= most && 4 * bytes >= 3 * wanted;
}

/* What was just written lies in the page cache, from where reads past it would each write their
 * part of it first. */
static int sync_windows(const struct drps_io *io, const char *dir, struct drps_err *err)
{
    int fd = -1;
    char *path = drps_path_join(dir, DRPS_FILE_WINDOWS);
    int rc = path ? drps_io_open(io, path, O_RDONLY, &fd, err)
                  : drps_err_set(err, -ENOMEM, "no memory to write %s/" DRPS_FILE_WINDOWS, dir);
    if (rc == 0) rc = drps_io_sync(io, fd, path, err);
    drps_io_close(io, fd);
    free(path);
    return rc;
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
    const struct drps_io io = {.ops = o->plan->io->ops, .ctx = o->plan->io->ctx, .stop = o->stop};
    struct drps_window_result result;
    char bytes[32];
    drps_log(o->log, DRPS_LOG_INFO,
             "cutting windows: runs of batches whose rows fit %s of memory together",
             drps_size_format(options.budget_bytes, bytes, sizeof(bytes)));
    int rc = drps_windows_compile(&io, o->plan->dir, o->dir, &options, &result, err);
    *working_rows_out = result.working_set_rows;
    return rc == 0 ? sync_windows(&io, o->dir, err) : rc;
}

/* ---- Reading ---- */

static int read_part(struct drps_windows *w, struct drps_window_part part,
                     struct drps_piece *record_out, struct drps_window *head_out,
                     struct drps_err *err)
{
    int rc = drps_window_records_read(w->records, part, record_out, head_out, err);
    if (rc < 0)
        (void)drps_err_context(err, "%s/" DRPS_FILE_WINDOWS ": window %u", w->dir, part.number);
    return rc;
}

/* ---- Opening ---- */

void drps_windows_close(struct drps_windows *w)
{
    if (!w) return;
    drps_window_records_close(w->records);
    drps_recfile_close(w->file);
    free(w->heads);
    free(w);
}

static int open_file(struct drps_windows *w, const struct drps_io *io, struct drps_err *err)
{
    char *path = drps_path_join(w->dir, DRPS_FILE_WINDOWS);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read %s/" DRPS_FILE_WINDOWS, w->dir);
    int rc = drps_recfile_open(io, path, DRPS_KIND_WINDOWS, &w->file, err);
    free(path);
    if (rc < 0) return rc;
    const size_t count = (size_t)drps_recfile_count(w->file);
    drps_recfile_go_direct(w->file);
    w->heads = drps_array_new(count, sizeof(*w->heads));
    if (!w->heads) return drps_err_set(err, -ENOMEM, "no memory for %zu windows", count);
    return drps_window_records_open(w->file, &w->records, err);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Every window's head. */
static int survey(struct drps_windows *w, const struct drps_plan_info *info, struct drps_err *err)
{
    const uint64_t count = drps_recfile_count(w->file);
    const uint64_t steps = info->batches + info->eval_batches;
    uint64_t next = 0, working_rows = 0;
    int rc = 0;
    for (uint64_t i = 0; i < count && rc == 0; i++) {
        struct drps_piece record;
        struct drps_window head;
        rc = read_part(w, (struct drps_window_part){(uint32_t)i, 1}, &record, &head, err);
        if (rc < 0) return rc;
        drps_window_records_done(w->records);
        if (head.windows != count || head.first_step != next || head.max_rows > info->rows)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s/" DRPS_FILE_WINDOWS
                                ": window %llu does not follow the one before it: "
                                "make the plan anew",
                                w->dir, (unsigned long long)i);
        w->heads[i] = (struct drps_store_window){.first_step = head.first_step,
                                                 .steps = head.steps,
                                                 .n = head.n,
                                                 .arriving = head.arriving,
                                                 .leaving = head.leaving};
        w->max_rows = head.max_rows;
        if (i) working_rows = larger(working_rows, w->heads[i - 1].n + head.arriving);
        next = head.first_step + head.steps;
    }
    drps_window_records_rest(w->records);
    if (count) working_rows = larger(working_rows, w->heads[count - 1].n + w->heads[0].arriving);
    if (next != steps || !count)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s/" DRPS_FILE_WINDOWS
                            ": windows of %llu steps, the plan has %llu: make the "
                            "plan anew",
                            w->dir, (unsigned long long)next, (unsigned long long)steps);
    if (working_rows > w->working_rows)
        return drps_err_set(
            err, DRPS_E_CORRUPT,
            "%s/" DRPS_FILE_WINDOWS ": two windows have %llu rows, at most %llu are expected: "
            "make the plan anew",
            w->dir, (unsigned long long)working_rows, (unsigned long long)w->working_rows);
    w->windows = (uint32_t)count;
    return 0;
}

/* The record at hand, into the caller's arrays for max_rows, or NULL. */
static int decode(const struct drps_windows *w, struct drps_window_part part,
                  const struct drps_piece *record, struct drps_window *win, uint32_t *rows_out,
                  struct drps_use_distances *next, struct drps_use_distances *prev,
                  struct drps_err *err)
{
    const size_t rows = w->heads[part.number].n;
    win->rows = rows_out;
    win->cap = w->max_rows;
    int rc = drps_window_decode_use_distances(record->data, record->bytes, part.whole, win, next,
                                              prev, err);
    if (rc == 0 && win->n != rows)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%zu rows, there were %zu before", win->n, rows);
    if (rc == 0 && part.whole && win->n && rows_out[win->n - 1] >= w->rows) /* increasing */
        rc = drps_err_set(err, DRPS_E_CORRUPT, "row %u of %llu", rows_out[win->n - 1],
                          (unsigned long long)w->rows);
    if (rc < 0)
        (void)drps_err_context(err, "%s/" DRPS_FILE_WINDOWS ": window %u", w->dir, part.number);
    return rc;
}

static int read_window(void *ctx, uint32_t number, struct drps_store_window *out, uint32_t *rows,
                       struct drps_use_distances *next, struct drps_use_distances *prev,
                       struct drps_err *err)
{
    struct drps_windows *w = ctx;
    const struct drps_window_part part = {number, rows != NULL};
    struct drps_window win;
    struct drps_piece record;

    *out = w->heads[number];
    if (!rows && !next && !prev) return 0;
    int rc = read_part(w, part, &record, &win, err);
    if (rc < 0) return rc;
    if (win.n > w->max_rows || win.windows != w->windows)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s/" DRPS_FILE_WINDOWS
                          ": window %u of %u has %zu rows; they were %u, of at most %u",
                          w->dir, number, win.windows, win.n, w->windows, w->max_rows);
    if (rc == 0) rc = decode(w, part, &record, &win, rows, next, prev, err);
    drps_window_records_done(w->records);
    return rc;
}

int drps_windows_open(const struct drps_windows_options *o, struct drps_windows **w_out,
                      struct drps_window_source *source_out, struct drps_err *err)
{
    *w_out = NULL;
    struct drps_windows *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory to read windows");
    w->rows = o->plan->info.rows;
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
                                  .ios = bytes / stats->chunk_bytes + bytes / stats->write_bytes,
                                  .feasible = 1};
}
