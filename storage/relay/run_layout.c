/*
 * How runs share their buffers. A request costs the bytes that it moves and seek_bytes more. Chunks
 * are read by a request each, and many are written by one. Small chunks leave memory for more runs,
 * so that fewer rows are merged, which moves them twice. The cheapest layout is taken.
 */
#include "storage/relay/run_layout.h"

#include <math.h>

#include "storage/io/drps_aio.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/runs/drps_runs.h"

enum {
    CHUNK_LEAST = DRPS_AIO_ALIGN,
    CHUNK_WANTED = 256 << 10,
    CHUNK_MOST = 4 << 20,
    SEEKS_A_CHUNK = 16,
    SEEK_LEAST = 16 << 10,
    SEEKS_A_WRITE = 4,
    WRITE_WANTED = 512 << 10,
    WRITE_MOST = 4 << 20,
    WRITES_BEHIND = 4, /* requests' chunks: one being collected, the others being written */
    BEHIND_SHARE = 5,  /* one part of so many of the buffers is for writing, */
    AHEAD_SHARE = 3,   /* and one of the rest for what is read ahead of need */
    AHEAD_MOST = 8 << 20,
    RUNS_MOST = 4096,
    SCAN_BUFFER = 16 << 10,     /* of a partition, where a scan borrows no memory; */
    SCAN_BUFFER_LENT = 8 << 10, /* the least where it does */
    SPARE_SHARE = 8,            /* one part of so many of the runs is left when merging begins */
    FILE_SHARE = 4,     /* the file has room for all rows, and for one part of so many more */
    HEADER_BYTES = 3,   /* of a section: few rows have one of their own */
    WINDOW_EXTRA = 300, /* its list of rows and the last block there; counts, statistics */
    CHUNK_EXTRA = 32,   /* in the chunk map */
    RUN_EXTRA = 256,    /* what is known of a run and its buffer */
};

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

uint64_t drps_relay_chunk(uint64_t seek_bytes)
{
    return clamp(SEEKS_A_CHUNK * seek_bytes, CHUNK_WANTED, CHUNK_MOST);
}

uint64_t drps_run_layout_windows(uint64_t windows)
{
    const uint64_t bytes = windows * WINDOW_EXTRA;
    return bytes > DRPS_RELAY_WINDOWS_LEAST ? bytes : DRPS_RELAY_WINDOWS_LEAST;
}

/* All rows, and for each live run a chunk that is not full. */
static uint64_t file_chunks(uint64_t rows, size_t row_bytes, size_t chunk, uint64_t runs)
{
    const uint64_t all = rows * (row_bytes + HEADER_BYTES) / chunk + 1;
    return all + all / FILE_SHARE + 2 * runs;
}

uint64_t drps_relay_file_more(const struct drps_relay_share *share, uint64_t rows, size_t row_bytes)
{
    const uint64_t all = rows * (row_bytes + HEADER_BYTES);
    return rows * HEADER_BYTES + all / FILE_SHARE + 2 * (share->buffer_bytes + CHUNK_MOST);
}

/* The layout with chunks of this size, for an epoch of so many runs; `runs` is 0 if it does not
 * fit.
 */
static struct drps_run_layout lay_out(uint64_t bytes, size_t chunk, uint64_t rows, size_t row_bytes,
                                      uint64_t seek_bytes, uint64_t epoch_runs)
{
    const uint64_t useful = clamp(2 * epoch_runs, DRPS_RUNS_LEAST, RUNS_MOST);
    const uint64_t map = file_chunks(rows, row_bytes, chunk, 0) * CHUNK_EXTRA;
    const uint64_t each = chunk + RUN_EXTRA;
    const uint64_t wanted = clamp(SEEKS_A_WRITE * seek_bytes, WRITE_WANTED, WRITE_MOST) / chunk;
    const uint64_t chunks = bytes > map ? (bytes - map) / each : 0;
    const uint64_t behind = clamp(chunks / BEHIND_SHARE, 4, WRITES_BEHIND * (wanted + 1) + 2);
    const uint64_t rest = chunks > behind ? chunks - behind : 0;
    const uint64_t ahead = clamp(rest / AHEAD_SHARE, 2, AHEAD_MOST / chunk + 2);
    const uint64_t runs = rest > ahead + 2 ? rest - ahead - 2 : 0; /* the queue; merging */
    struct drps_run_layout l = {
        .chunk_bytes = chunk, .ahead = (uint32_t)ahead, .behind = (uint32_t)behind};
    if (runs < DRPS_RUNS_LEAST) return l;
    l.runs = (uint32_t)clamp(runs, 0, useful);
    l.spare = l.runs / SPARE_SHARE + 1;
    l.write_chunks = (uint32_t)clamp(clamp(wanted, 1, (behind - 2) / (WRITES_BEHIND - 1)), 1,
                                     DRPS_AIO_PIECES_MAX);
    l.file_chunks = file_chunks(rows, row_bytes, chunk, l.runs);
    if (l.file_chunks >= UINT32_MAX) l.runs = 0;
    return l;
}

/* ---- Scans ---- */

/* A partition takes half of it, and buffers for each partition the other half. */
uint64_t drps_run_layout_scan(uint64_t rows, size_t row_bytes)
{
    const double entry = (double)row_bytes + sizeof(uint32_t), bytes = (double)rows * entry;
    const uint64_t square = (uint64_t)(2 * sqrt((double)SCAN_BUFFER * bytes));
    const uint64_t least = 4 * (row_bytes + sizeof(uint32_t)) + 4 * DRPS_AIO_ALIGN;
    return square > least ? square : least;
}

uint64_t drps_run_layout_part(uint64_t bytes, size_t row_bytes)
{
    const uint64_t words = 2 * sizeof(uint64_t); /* the bits begin with one, and end with one */
    const uint64_t rows = bytes > words ? 8 * (bytes - words) / (8 * (uint64_t)row_bytes + 1) : 0;
    return rows ? rows : 1;
}

/* A partition takes half of the runs' memory. What is lent at first makes a buffer for each. */
static int lends(const struct drps_run_layout *l, uint64_t rows, size_t row_bytes)
{
    const uint64_t entry = row_bytes + sizeof(uint32_t);
    const uint64_t first = (uint64_t)l->behind + drps_runs_ahead_lent(l->ahead);
    const uint64_t all = (uint64_t)l->behind + l->runs + 2 + l->ahead;
    const uint64_t half = all * l->chunk_bytes / 2;
    const uint64_t parts = (rows - 1) / drps_run_layout_part(half, row_bytes) + 1;
    const uint64_t buffer = first * l->chunk_bytes / parts;
    return half > 2 * entry && buffer >= entry && buffer >= SCAN_BUFFER_LENT;
}

/* The layout of these bytes; less what a scan needs, where it cannot borrow that. */
static struct drps_run_layout lay_out_with_scan(uint64_t bytes, size_t chunk,
                                                const struct drps_store_config *config,
                                                uint64_t seek_bytes, uint64_t runs)
{
    const uint64_t rows = config->rows, scan = drps_run_layout_scan(rows, config->row_bytes);
    struct drps_run_layout l = lay_out(bytes, chunk, rows, config->row_bytes, seek_bytes, runs);
    l.lends = l.runs && lends(&l, rows, config->row_bytes);
    if (l.lends) return l;
    return lay_out(bytes > scan ? bytes - scan : 0, chunk, rows, config->row_bytes, seek_bytes,
                   runs);
}

/* ---- The cheapest layout ---- */

/*
 * Bytes moved for each byte that is written once. Where rows' use distances are as in click logs,
 * and an epoch has 2^d times the runs that may be live, d * d / 25 of what is written is merged
 * (simulated, d up to 5).
 */
static double cost_of(const struct drps_run_layout *l, uint64_t runs, uint64_t seek_bytes)
{
    const double seeks = (double)seek_bytes / (double)l->chunk_bytes;
    const double doublings = runs > l->runs ? log2((double)runs / l->runs) : 0;
    const double merged = doublings * doublings / 25;
    return l->runs ? (1 + merged) * (2 + seeks + seeks / l->write_chunks) : INFINITY;
}

int drps_run_layout_choose(const struct drps_store_config *config, uint64_t buffer_bytes,
                           uint64_t runs, struct drps_run_layout *out, struct drps_err *err)
{
    const uint64_t kept = drps_run_layout_windows(config->windows->windows);
    const uint64_t bytes = buffer_bytes > kept ? buffer_bytes - kept : 0;
    const uint64_t seek_bytes = config->seek_bytes > SEEK_LEAST ? config->seek_bytes : SEEK_LEAST;
    const size_t most =
        config->chunk_bytes ? config->chunk_bytes : (size_t)drps_relay_chunk(seek_bytes);
    double least = INFINITY;
    for (size_t chunk = CHUNK_LEAST; chunk <= most; chunk *= 2) {
        struct drps_run_layout l = lay_out_with_scan(bytes, chunk, config, seek_bytes, runs);
        l.cost = cost_of(&l, runs, seek_bytes);
        if (l.cost >= least) continue;
        least = l.cost;
        *out = l;
    }
    if (isfinite(least)) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "%u windows and the chunks of rows on disk need %llu bytes, %llu are there "
                        "for them",
                        config->windows->windows,
                        (unsigned long long)drps_run_layout_least(config->windows->windows,
                                                                  config->rows, config->row_bytes),
                        (unsigned long long)buffer_bytes);
}

int drps_relay_plan_spills(const struct drps_store_config *config, uint64_t buffer_bytes,
                           const struct drps_moves *moves, uint64_t frames,
                           struct drps_spill_plan *out, struct drps_err *err)
{
    static const unsigned shares[] = {DRPS_RELAY_SPILL_SMALL, DRPS_RELAY_SPILL_LARGE};
    double least = INFINITY;
    *out = (struct drps_spill_plan){0};
    for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
        struct drps_spill_plan plan = {.spill_rows = drps_relay_spill_rows(frames, shares[i])};
        int rc = drps_moves_written(moves, frames < config->rows ? frames : 0, shares[i],
                                    &plan.rows_sent);
        if (rc < 0) return rc;
        const uint64_t runs = plan.rows_sent / plan.spill_rows;
        rc = drps_run_layout_choose(config, buffer_bytes, runs, &plan.layout, err);
        if (rc < 0) return rc;
        const double cost = (double)plan.rows_sent * plan.layout.cost;
        if (cost >= least) continue;
        least = cost;
        *out = plan;
        if (runs <= plan.layout.runs) break; /* none is merged */
    }
    return 0;
}

uint64_t drps_run_layout_least(uint64_t windows, uint64_t rows, size_t row_bytes)
{
    enum { /* as lay_out() shares them */
           REST = (DRPS_RUNS_LEAST + 2) * AHEAD_SHARE / (AHEAD_SHARE - 1),
           CHUNKS = 4 + REST
    };
    uint64_t least = UINT64_MAX;
    for (size_t chunk = CHUNK_LEAST; chunk <= CHUNK_WANTED; chunk *= 2) {
        const uint64_t bytes =
            file_chunks(rows, row_bytes, chunk, 0) * CHUNK_EXTRA + CHUNKS * (chunk + RUN_EXTRA);
        if (bytes < least && file_chunks(rows, row_bytes, chunk, RUNS_MOST) < UINT32_MAX)
            least = bytes;
    }
    return drps_run_layout_windows(windows) + drps_run_layout_scan(rows, row_bytes) + least;
}
