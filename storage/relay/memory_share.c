/*
 * How a relay store's memory is shared: rows, and buffers of runs, which a scan borrows. The sizes
 * of what is kept for each row are counted here; run_layout.c shares the buffers.
 */
#include <math.h>

#include "storage/io/drps_aio.h"
#include "storage/relay/drps_moves.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/relay.h"
#include "storage/relay/run_layout.h"

enum {
    BUFFER_SHARE = 5,       /* one part of so many is for buffers ... */
    BUFFER_SEEKS = 128,     /* ... or more on a disk that seeks, up to a half */
    BUFFER_LEAST = 1 << 20, /* enough for some thousand windows */
    BUFFER_MOST = 128 << 20,
    ROW_EXTRA = 49,    /* two windows' frames and use distances; order, frames that come and leave,
                          ids, last use; a packed record; its entry in a list of waiting rows; a bit */
    WAITING_EXTRA = 5, /* its entry in a list of waiting rows; a bit */
    LOOK_FRAME = 10,   /* its row's id; its entry in a list of waiting rows, and room there; bits */
    LOOK_BUFFERS = 3,  /* quarters of the buffers: nothing is written, and little read ahead */
    LOOK_ROW = 33,     /* two windows' frames; order, free frames, ids, last use; marks; a packed
                          record */
    LOOK_WINDOW = 512, /* what is kept for it, and counts of distances */
    LOOK_FIXED = 5 << 20, /* counts of distances where windows are few; a record of rows */
    WAITING_FRAMES = 2,   /* for each frame of windows, those of rows that wait between windows */
};

/* ---- The usual share ---- */

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static uint64_t buffer_bytes(uint64_t memory_bytes, uint64_t seek_bytes, uint64_t rows,
                             size_t row_bytes)
{
    const uint64_t least = drps_run_layout_least(0, rows, row_bytes);
    const uint64_t usual = clamp(memory_bytes / BUFFER_SHARE, BUFFER_LEAST, BUFFER_MOST);
    const uint64_t most = memory_bytes / 2 > usual ? memory_bytes / 2 : usual;
    const uint64_t bytes = clamp(BUFFER_SEEKS * seek_bytes, usual, most) +
                           DRPS_RELAY_WINDOWS_LEAST + drps_run_layout_scan(rows, row_bytes);
    return bytes > least ? bytes : least;
}

void drps_relay_share(uint64_t memory_bytes, uint64_t rows, size_t row_bytes, uint64_t seek_bytes,
                      struct drps_relay_share *out)
{
    *out = (struct drps_relay_share){
        .row_bytes = row_bytes + ROW_EXTRA,
        .waiting_bytes = row_bytes + WAITING_EXTRA,
        .buffer_bytes = buffer_bytes(memory_bytes, seek_bytes, rows, row_bytes),
        .chunks_least = drps_run_layout_least(0, rows, row_bytes) - drps_run_layout_windows(0),
    };
    const uint64_t fixed = out->buffer_bytes;
    out->budget_bytes = memory_bytes > fixed ? memory_bytes - fixed : 0;
}

void drps_relay_share_of(const struct drps_store_config *config, struct drps_relay_share *out)
{
    drps_relay_share(config->memory_bytes, config->rows, config->row_bytes, config->seek_bytes,
                     out);
    if (!config->buffer_bytes) return;
    const uint64_t fixed = config->buffer_bytes;
    out->buffer_bytes = config->buffer_bytes;
    out->budget_bytes = config->memory_bytes > fixed ? config->memory_bytes - fixed : 0;
}

uint64_t drps_relay_open_bytes(const struct drps_relay_share *share)
{
    const uint64_t rows = share->budget_bytes / share->row_bytes;
    const int is_bound = share->most_rows && share->most_rows < rows;
    return is_bound ? share->most_rows * share->row_bytes : share->budget_bytes;
}

uint64_t drps_relay_window_bytes(const struct drps_relay_share *share, uint64_t rows,
                                 uint64_t step_rows)
{
    const uint64_t most = drps_relay_open_bytes(share);
    if (rows * share->row_bytes <= most) return most;
    const uint64_t each = share->row_bytes + WAITING_FRAMES * share->waiting_bytes;
    const uint64_t part = share->budget_bytes / each * share->row_bytes;
    const uint64_t least = 2 * step_rows * share->row_bytes;
    if (share->coarse) return most;
    return clamp(part, least < most ? least : most, most);
}

void drps_relay_share_frames(uint64_t frames, uint64_t rows, uint64_t step_rows, size_t row_bytes,
                             struct drps_relay_share *out)
{
    drps_relay_share(0, rows, row_bytes, 0, out);
    if (frames > rows) frames = rows;
    const uint64_t part = frames / (1 + WAITING_FRAMES);
    const uint64_t open = frames < rows ? clamp(2 * step_rows, part, frames) : rows;
    out->budget_bytes = open * out->row_bytes + (frames - open) * out->waiting_bytes;
}

uint64_t drps_relay_frames(const struct drps_relay_share *share, uint64_t working_rows,
                           uint64_t rows)
{
    const uint64_t open = working_rows * share->row_bytes;
    const uint64_t rest = share->budget_bytes > open ? share->budget_bytes - open : 0;
    const uint64_t frames = working_rows + rest / share->waiting_bytes;
    return frames < rows ? frames : rows;
}

/* ---- Chunks, where frames alone are known ---- */

/* The buffers of a store with so many bytes beside them: they are a share of the whole, which is
 * what is looked for. A share of a half at most, so each guess is off by half of the last one. */
static uint64_t buffers_beside(uint64_t bytes, const struct drps_store_config *config)
{
    enum { GUESSES = 40 };
    struct drps_relay_share share = {0};
    for (int i = 0; i < GUESSES; i++)
        drps_relay_share(bytes + share.buffer_bytes, config->rows, config->row_bytes,
                         config->seek_bytes, &share);
    return share.buffer_bytes;
}

uint64_t drps_relay_forecast_chunk(const struct drps_store_config *config, uint64_t frames,
                                   uint64_t rows_sent)
{
    struct drps_relay_share share;
    struct drps_run_layout layout;
    drps_relay_share_frames(frames, config->rows, config->step.rows, config->row_bytes, &share);
    const uint64_t buffers = buffers_beside(share.budget_bytes, config);
    const uint64_t runs = rows_sent / drps_relay_spill_rows(frames, DRPS_RELAY_SPILL_SMALL);
    return drps_run_layout_choose(config, buffers, runs, &layout, NULL) < 0 ? DRPS_AIO_ALIGN
                                                                            : layout.chunk_bytes;
}

/* Buffers that have no layout are those of a store that takes the least of them, whose rows leave
 * in small shares. */
int drps_relay_forecast_sent(const struct drps_store_config *config,
                             const struct drps_relay_share *share, const struct drps_moves *moves,
                             uint64_t frames, uint64_t *rows_out)
{
    struct drps_spill_plan plan;
    const uint64_t buffers = buffers_beside(share->budget_bytes, config);
    int rc = drps_relay_plan_spills(config, buffers, moves, frames, &plan, NULL);
    *rows_out = plan.rows_sent;
    if (rc != DRPS_E_MEMORY_BUDGET) return rc;
    return drps_moves_written(moves, frames < config->rows ? frames : 0, DRPS_RELAY_SPILL_SMALL,
                              rows_out);
}

/* ---- Looking at a saved store ---- */

uint64_t drps_relay_scan_saved_memory(const struct drps_store_config *config)
{
    const struct drps_window_source *w = config->windows;
    struct drps_relay_share share;
    drps_relay_share_of(config, &share);
    const uint64_t frames = drps_relay_frames(&share, w->working_rows, config->rows);
    return drps_run_layout_scan(config->rows, config->row_bytes) +
           share.buffer_bytes / 4 * LOOK_BUFFERS + frames * LOOK_FRAME + w->max_rows * LOOK_ROW +
           w->windows * LOOK_WINDOW + LOOK_FIXED + 2 * config->row_bytes;
}

/* ---- The share with the least buffers ---- */

int drps_relay_fits(const struct drps_relay_share *share, uint32_t windows)
{
    return share->buffer_bytes >= drps_run_layout_windows(windows) + share->chunks_least;
}

/*
 * Windows of an epoch, at most, where two neighbours may together have the rows of `pairs` pairs of
 * its largest step. A window ends before a step that would give it the rows of more than `pairs`
 * steps, or it and the one before those of more than 2 * pairs (index/windows/cut.c): of two
 * neighbours, the second one ended so has `pairs` steps or makes them 2 * pairs together, and the
 * other one has a step at least. Others end with training and with the epoch.
 */
static uint64_t most_windows(uint64_t steps, uint64_t pairs)
{
    const uint64_t most = 2 * (steps / (pairs + 1)) + 5;
    return most < steps ? most : steps;
}

/* The least memory for windows of so many pairs of steps. */
static uint64_t bytes_for(const struct drps_store_config *config, uint64_t pairs,
                          const struct drps_relay_share *share, uint64_t *buffer_bytes_out)
{
    const uint64_t wanted = 2 * pairs * config->step.rows;
    const uint64_t rows = wanted < config->rows ? wanted : config->rows;
    *buffer_bytes_out = drps_run_layout_least(most_windows(config->epoch_steps, pairs),
                                              config->rows, config->row_bytes);
    return rows * share->row_bytes + *buffer_bytes_out;
}

/* The most pairs of steps whose rows two windows may have. */
static uint64_t most_pairs(const struct drps_store_config *config)
{
    const uint64_t two_steps = 2 * config->step.rows, frames = config->device_frames;
    const uint64_t pairs = frames && two_steps ? frames / two_steps : config->epoch_steps;
    return pairs < config->epoch_steps ? pairs : config->epoch_steps;
}

/* The number of pairs to try after `pairs`. */
static uint64_t more_pairs(uint64_t pairs)
{
    return pairs + 1 + pairs / 8;
}

uint64_t drps_relay_sure_bytes(const struct drps_store_config *config)
{
    struct drps_relay_share share;
    uint64_t buffers, least = UINT64_MAX;
    drps_relay_share(0, config->rows, config->row_bytes, 0, &share);
    for (uint64_t pairs = 1; pairs == 1 || pairs <= most_pairs(config); pairs = more_pairs(pairs)) {
        const uint64_t bytes = bytes_for(config, pairs, &share, &buffers);
        if (bytes < least) least = bytes;
    }
    return least;
}

void drps_relay_share_surely(uint64_t memory_bytes, const struct drps_store_config *config,
                             struct drps_relay_share *out)
{
    uint64_t buffers;
    drps_relay_share(memory_bytes, config->rows, config->row_bytes, 0, out);
    out->most_rows = config->device_frames;
    for (uint64_t pairs = 1; pairs == 1 || pairs <= most_pairs(config); pairs = more_pairs(pairs))
        if (bytes_for(config, pairs, out, &buffers) <= memory_bytes || pairs == 1)
            out->buffer_bytes = buffers;
    const uint64_t fixed = out->buffer_bytes;
    out->budget_bytes = memory_bytes > fixed ? memory_bytes - fixed : 0;
    out->coarse = 1;
}
