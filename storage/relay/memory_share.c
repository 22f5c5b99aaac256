/*
 * How a relay store's memory is shared: rows, buffers of streams, and what a scan needs. The sizes
 * of what is kept for each row and window are counted here; stream_layout.c shares the buffers.
 */
#include <math.h>

#include "storage/relay/drps_relay.h"
#include "storage/relay/relay.h"
#include "storage/relay/streams/drps_saved_streams.h"

enum {
    BUFFER_SHARE = 5,       /* one part of so many is for buffers ... */
    BUFFER_SEEKS = 128,     /* ... or more on a disk that seeks, up to a half */
    BUFFER_LEAST = 1 << 20, /* enough for some thousand windows */
    BUFFER_MOST = 128 << 20,
    ROW_EXTRA = 45,  /* two windows' frames and use distances; order, free frames, ids, last use; a
                        packed record; its entry in a list of held rows; a bit */
    HELD_EXTRA = 5,  /* its entry in a list of held rows; a bit */
    LOOK_FRAME = 10, /* its row's id; its entry in a list of held rows, and room there; bits */
    LOOK_ROW = 33,   /* two windows' frames; order, free frames, ids, last use; marks; a packed
                        record */
    LOOK_WINDOW = 512,    /* as WINDOW_EXTRA of the layout, and counts of distances */
    LOOK_FIXED = 5 << 20, /* counts of distances where windows are few; a record of rows */
    HELD_SHARE = 3,       /* for so many frames of windows, one that holds a row between windows */
};

/* ---- The usual share ---- */

/* A scan has a partition in half of this, and buffers of 16 KiB for each partition in the other
 * half. */
static uint64_t scan_bytes(uint64_t rows, size_t row_bytes)
{
    const double bytes = (double)rows * (double)(row_bytes + sizeof(uint32_t));
    const uint64_t square = (uint64_t)(4 * sqrt(4096 * bytes));
    const uint64_t least = 4 * (row_bytes + sizeof(uint32_t)) + 4 * DRPS_AIO_ALIGN;
    return square > least ? square : least;
}

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static uint64_t buffer_bytes(uint64_t memory_bytes, uint64_t seek_bytes)
{
    const uint64_t usual = clamp(memory_bytes / BUFFER_SHARE, BUFFER_LEAST, BUFFER_MOST);
    const uint64_t most = memory_bytes / 2 > usual ? memory_bytes / 2 : usual;
    return clamp(BUFFER_SEEKS * seek_bytes, usual, most) + DRPS_STREAM_LAYOUT_WINDOWS_LEAST;
}

void drps_relay_share(uint64_t memory_bytes, uint64_t rows, size_t row_bytes, uint64_t seek_bytes,
                      struct drps_relay_share *out)
{
    *out = (struct drps_relay_share){
        .row_bytes = row_bytes + ROW_EXTRA,
        .held_bytes = row_bytes + HELD_EXTRA,
        .buffer_bytes = buffer_bytes(memory_bytes, seek_bytes),
        .scan_bytes = scan_bytes(rows, row_bytes),
    };
    const uint64_t fixed = out->buffer_bytes + out->scan_bytes;
    out->budget_bytes = memory_bytes > fixed ? memory_bytes - fixed : 0;
}

void drps_relay_share_of(const struct drps_store_config *config, struct drps_relay_share *out)
{
    drps_relay_share(config->memory_bytes, config->rows, config->row_bytes, config->seek_bytes,
                     out);
    if (!config->buffer_bytes) return;
    const uint64_t fixed = config->buffer_bytes + out->scan_bytes;
    out->buffer_bytes = config->buffer_bytes;
    out->budget_bytes = config->memory_bytes > fixed ? config->memory_bytes - fixed : 0;
}

uint64_t drps_relay_window_bytes(const struct drps_relay_share *share, uint64_t rows,
                                 uint64_t step_rows)
{
    const uint64_t most = share->budget_bytes;
    if (rows * share->row_bytes <= most) return most;
    const uint64_t each = share->row_bytes + share->held_bytes / HELD_SHARE;
    const uint64_t part = most / each * share->row_bytes;
    const uint64_t least = 2 * step_rows * share->row_bytes;
    if (share->coarse) return most;
    return clamp(part, least < most ? least : most, most);
}

void drps_relay_share_frames(uint64_t frames, uint64_t rows, uint64_t step_rows, size_t row_bytes,
                             struct drps_relay_share *out)
{
    drps_relay_share(0, rows, row_bytes, 0, out);
    const uint64_t held = out->held_bytes;
    if (frames > rows) frames = rows;
    const uint64_t part = frames * held / (held + held / HELD_SHARE);
    const uint64_t open = frames < rows ? clamp(2 * step_rows, part, frames) : rows;
    out->budget_bytes = open * out->row_bytes + (frames - open) * held;
}

uint64_t drps_relay_frames(const struct drps_relay_share *share, uint64_t working_rows,
                           uint64_t rows)
{
    const uint64_t open = working_rows * share->row_bytes;
    const uint64_t rest = share->budget_bytes > open ? share->budget_bytes - open : 0;
    const uint64_t frames = working_rows + rest / share->held_bytes;
    return frames < rows ? frames : rows;
}

/* ---- Looking at a saved store ---- */

uint64_t drps_relay_scan_saved_memory(const struct drps_store_config *config)
{
    const struct drps_window_source *w = config->windows;
    const uint64_t chunk =
        config->chunk_bytes ? config->chunk_bytes : drps_relay_chunk(config->seek_bytes);
    const uint64_t streams = 2 * (uint64_t)w->windows; /* groups are fewer than windows */
    struct drps_relay_share share;
    drps_relay_share_of(config, &share);
    const uint64_t frames = drps_relay_frames(&share, w->working_rows, config->rows);
    return share.scan_bytes + frames * LOOK_FRAME + w->max_rows * LOOK_ROW +
           w->windows * LOOK_WINDOW + LOOK_FIXED + 2 * config->row_bytes +
           drps_saved_streams_memory(streams, chunk, 0) + config->rows * config->row_bytes / chunk;
}

/* ---- The share with the least buffers ---- */

int drps_relay_fits(const struct drps_relay_share *share, uint32_t windows)
{
    return drps_stream_layout_fits(share->buffer_bytes, windows);
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
    *buffer_bytes_out = drps_stream_layout_sure_bytes(most_windows(config->epoch_steps, pairs));
    return rows * share->row_bytes + *buffer_bytes_out + share->scan_bytes;
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
    for (uint64_t pairs = 1; pairs == 1 || pairs <= config->epoch_steps;
         pairs = more_pairs(pairs)) {
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
    for (uint64_t pairs = 1; pairs == 1 || pairs <= config->epoch_steps; pairs = more_pairs(pairs))
        if (bytes_for(config, pairs, out, &buffers) <= memory_bytes || pairs == 1)
            out->buffer_bytes = buffers;
    const uint64_t fixed = out->buffer_bytes + out->scan_bytes;
    out->budget_bytes = memory_bytes > fixed ? memory_bytes - fixed : 0;
    out->coarse = 1;
}
