/*
 * How a relay store's memory is shared, how large its chunks are, how many tails there are, and
 * whether rows go to their windows in one move or by way of groups.
 *
 * A request costs the bytes that it moves and seek_bytes more. Chunks are read by a request each,
 * and many are written by one: a byte read costs 1 + seek_bytes / chunk, one written
 * 1 + seek_bytes / (chunk * write_chunks). One unfinished chunk a window makes small chunks; groups
 * move every byte twice, in larger ones; tails that windows share make partial chunks, of which
 * those of one window that follow each other are read by one request. The cheapest way is taken.
 */
#include <errno.h>
#include <math.h>

#include "base/drps_size.h"
#include "storage/relay/drps_relay.h"
#include "storage/relay/relay.h"

enum {
    CHUNK_LEAST = DRPS_AIO_ALIGN,
    CHUNK_WANTED = 256 << 10,
    CHUNK_MOST = 4 << 20,
    SEEKS_A_CHUNK = 16,
    SEEKS_A_WRITE = 4,
    WRITE_WANTED = 512 << 10,
    WRITES_BEHIND = 4, /* requests' chunks: one being collected, the others being written */
    READ_SHARE = 4,    /* of the buffers, one part of so many is for reading ... */
    BEHIND_SHARE =
        8, /* ... and one for chunks that are collected and written; more if it is left */
    PIECES_LEAST = 4,     /* of each of these */
    READ_MOST = 16 << 20, /* more does not make the disk faster */
    BEHIND_MOST = 8 << 20,
    SEEK_LEAST = 16 << 10,
    BUFFER_SHARE = 5,       /* one part of so many is for buffers ... */
    BUFFER_SEEKS = 128,     /* ... or more on a disk that seeks, up to a half */
    BUFFER_LEAST = 1 << 20, /* enough for some thousand windows */
    BUFFER_MOST = 128 << 20,
    ROW_EXTRA = 45,     /* two windows' frames and distances; order, vacant frames, ids, last use;
                           a packed record; its place on a shelf; a bit */
    HELD_EXTRA = 5,     /* its place on a shelf; a bit */
    WINDOW_EXTRA = 316, /* the last block of its shelf, which has room; head, reach, counts,
                           statistics; its stream, and a part of its group's */
    WINDOWS_LEAST = 1 << 20, /* set aside for that; of more windows it is the buffers' */
    SLOT_EXTRA = 17,         /* its checksum, length and successor; two bits */
    HELD_SHARE = 3, /* for so many frames of windows, one that holds a row between windows */
};

/* ---- Memory ---- */

/* Partitions of half of it, each with a buffer of 16 KiB in the other half. */
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
    return clamp(BUFFER_SEEKS * seek_bytes, usual, most) + WINDOWS_LEAST;
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

/* ---- Chunks and groups ---- */

struct choice {
    struct drps_relay_layout layout;
    double cost; /* bytes moved for each byte that leaves a window; INFINITY: impossible */
};

uint64_t drps_relay_chunk(uint64_t seek_bytes)
{
    return clamp(SEEKS_A_CHUNK * seek_bytes, CHUNK_WANTED, CHUNK_MOST);
}

static uint64_t most_chunk(const struct drps_store_config *config, uint64_t seek_bytes)
{
    return config->chunk_bytes ? config->chunk_bytes : drps_relay_chunk(seek_bytes);
}

/* The largest size of so many pieces of `bytes`: a multiple of CHUNK_LEAST, as requests are. */
static uint64_t piece_bytes(uint64_t pieces, uint64_t bytes, uint64_t most)
{
    return clamp(bytes / pieces, CHUNK_LEAST, most) / CHUNK_LEAST * CHUNK_LEAST;
}

/*
 * What tails leave goes to reading and writing: what tails of a rounded size do not use, too. Two
 * thirds to reading: what is read ahead while rows are written is not waited for.
 */
static void share_rest(struct drps_relay_layout *l, uint64_t buffer_bytes, uint64_t seek_bytes)
{
    const uint64_t pieces = buffer_bytes / l->chunk_bytes;
    const uint64_t rest = pieces > l->tails ? pieces - l->tails : 0;
    const uint64_t wanted = clamp(SEEKS_A_WRITE * seek_bytes, WRITE_WANTED, UINT32_MAX);
    const uint64_t behind = clamp(BEHIND_MOST, WRITES_BEHIND * wanted, UINT32_MAX);
    l->behind = (unsigned)clamp(rest / 3, PIECES_LEAST, behind / l->chunk_bytes + PIECES_LEAST);
    l->read_chunks = (unsigned)clamp(rest > l->behind ? rest - l->behind : 0, PIECES_LEAST,
                                     READ_MOST / l->chunk_bytes + PIECES_LEAST);
    l->write_chunks =
        (unsigned)clamp(wanted / l->chunk_bytes, 1, clamp(l->behind / WRITES_BEHIND, 1, 256));
}

/* Half of the bytes are written, half are read. */
static double cost_of(const struct drps_relay_layout *l, uint64_t seek_bytes)
{
    const double seeks = (double)seek_bytes / (double)l->chunk_bytes;
    return (l->span ? 2 : 1) * (1 + (seeks + seeks / l->write_chunks) / 2);
}

static struct choice choose(uint32_t windows, uint32_t span, uint64_t buffer_bytes,
                            uint64_t seek_bytes, uint64_t most)
{
    const uint64_t set_aside = buffer_bytes / READ_SHARE + buffer_bytes / BEHIND_SHARE;
    struct drps_relay_layout l = {.span = span};
    l.groups = span ? (windows + span - 1) / span : 0;
    l.tails = span ? 2 * (size_t)span + l.groups : windows;
    const uint64_t tail = piece_bytes(l.tails, buffer_bytes - set_aside, most);
    l.chunk_bytes = (size_t)piece_bytes(l.tails + 2 * PIECES_LEAST, buffer_bytes, tail);
    share_rest(&l, buffer_bytes, seek_bytes);
    const int fits = (l.tails + l.behind + l.read_chunks) * l.chunk_bytes <= buffer_bytes;
    return (struct choice){.layout = l, .cost = fits ? cost_of(&l, seek_bytes) : INFINITY};
}

/*
 * 2 span + windows / span is least at sqrt(windows / 2). A group is dealt out when the first window
 * of the group before closes, and a window opens when the second one before it closes: so no group
 * may have a single window.
 */
static uint32_t span_of(uint32_t windows)
{
    uint32_t span = (uint32_t)ceil(sqrt((double)windows / 2));
    if (span < 2) span = 2;
    while (span < windows && windows % span == 1)
        span++;
    return span;
}

/* What the disk and the buffers are. */
struct given {
    uint64_t bytes, seek_bytes, most_chunk;
};

static uint64_t kept_for(uint64_t windows)
{
    return clamp(windows * WINDOW_EXTRA, WINDOWS_LEAST, UINT64_MAX);
}

static struct given given(const struct drps_store_config *config, uint64_t buffer_bytes)
{
    const uint32_t windows = config->windows->windows;
    const uint64_t kept = kept_for(windows);
    const uint64_t seek_bytes = config->seek_bytes > SEEK_LEAST ? config->seek_bytes : SEEK_LEAST;
    return (struct given){.bytes = buffer_bytes > kept ? buffer_bytes - kept : 0,
                          .seek_bytes = seek_bytes,
                          .most_chunk = most_chunk(config, seek_bytes)};
}

int drps_relay_lay_out(const struct drps_store_config *config, uint64_t buffer_bytes,
                       struct drps_relay_layout *out, struct drps_err *err)
{
    const uint32_t windows = config->windows->windows;
    const struct given g = given(config, buffer_bytes);
    const uint32_t span = span_of(windows);
    struct choice best = choose(windows, 0, g.bytes, g.seek_bytes, g.most_chunk);
    if (windows >= 3 * (uint64_t)span) { /* the current group, the next one, and others */
        const struct choice grouped = choose(windows, span, g.bytes, g.seek_bytes, g.most_chunk);
        if (grouped.cost < best.cost) best = grouped;
    }
    if (!isfinite(best.cost))
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "%u windows need %zu chunks of %d bytes and %d bytes each, %llu bytes "
                            "are there for them",
                            windows, best.layout.tails + 2 * PIECES_LEAST, CHUNK_LEAST,
                            WINDOW_EXTRA, (unsigned long long)buffer_bytes);
    *out = best.layout;
    return 0;
}

/* ---- Windows that are sure to fit ---- */

/*
 * Buffers of so many bytes have a layout for any number of windows up to this, whatever the disk:
 * chunks of the least size, by way of groups where there are many. span_of() goes two up from
 * sqrt(windows / 2) at most, as windows - 1 has no three neighbours near that for divisors.
 */
static uint64_t sure_buffers(uint64_t windows)
{
    const uint64_t span = (uint64_t)ceil(sqrt((double)windows / 2)) + 2;
    const uint64_t grouped = 2 * span + (uint64_t)ceil(sqrt(2.0 * (double)windows));
    const uint64_t tails = windows < grouped ? windows : grouped;
    return kept_for(windows) + (tails + 2 * PIECES_LEAST) * CHUNK_LEAST;
}

int drps_relay_fits(const struct drps_relay_share *share, uint32_t windows)
{
    const struct drps_window_source source = {.windows = windows};
    const struct drps_store_config config = {.windows = &source};
    struct drps_relay_layout layout;
    return drps_relay_lay_out(&config, share->buffer_bytes, &layout, NULL) == 0;
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

/* Memory for windows of so many pairs of steps. */
static uint64_t bytes_for(const struct drps_store_config *config, uint64_t pairs,
                          const struct drps_relay_share *share, uint64_t *buffer_bytes_out)
{
    const uint64_t wanted = 2 * pairs * config->step.rows;
    const uint64_t rows = wanted < config->rows ? wanted : config->rows;
    *buffer_bytes_out = sure_buffers(most_windows(config->epoch_steps, pairs));
    return rows * share->row_bytes + *buffer_bytes_out + share->scan_bytes;
}

/* The numbers of pairs that are tried, from 1 on. */
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

/* ---- Slots ---- */

/*
 * Slots behind the cursor are all vacant when the file has as many as an epoch sends chunks, as no
 * row is on its way for longer. Where that is too much, a quarter more than is held leaves pieces
 * of vacant slots that hold three quarters of a request's chunks and more (measured). A group's
 * chunk keeps its slot until all of it was dealt out. Small chunks of shared tails get half more:
 * what a window sends then lies in one piece mostly, and is read so.
 */
uint64_t drps_relay_slots(const struct drps_relay_layout *l, uint64_t most_bytes,
                          uint64_t sent_bytes)
{
    if (l->chunks_most) return l->chunks_most + l->chunks_most / 2 + l->behind;
    const uint64_t most = most_bytes / l->chunk_bytes + 1;
    const uint64_t sent = sent_bytes / l->chunk_bytes + 1;
    const uint64_t roomy = most + most / 4;
    const uint64_t wanted = sent < roomy && !l->span ? sent : roomy;
    return (wanted > most ? wanted : most) + l->behind;
}

/* ---- A pool of tails ---- */

/* As cost_of(), of what was tried. */
static double pooled_cost(const struct drps_relay_layout *l, const struct drps_pooled *p,
                          uint64_t seek_bytes)
{
    const double moved = 2.0 * (double)p->chunks * (double)l->chunk_bytes;
    const double requests = (double)p->runs + (double)p->chunks / l->write_chunks;
    if (!p->sent_bytes) return INFINITY; /* any layout does */
    return (moved + requests * (double)seek_bytes) / (2 * (double)p->sent_bytes);
}

/* Tails get as much as one part of so many, and slots what is kept for them. */
static int try_pool(const struct given *g, const struct drps_sends *sends, const uint32_t *reach,
                    size_t row_bytes, struct choice *c, struct drps_err *err)
{
    struct drps_relay_layout *l = &c->layout;
    struct drps_pooled p;
    c->cost = INFINITY;
    int rc = drps_sends_pool(sends, reach, row_bytes, l->chunk_bytes, l->tails, &p, err);
    if (rc < 0) return rc;
    l->chunks_most = p.most + 1;
    const uint64_t kept = drps_relay_slots(l, 0, 0) * SLOT_EXTRA;
    const uint64_t bytes = g->bytes > kept ? g->bytes - kept : 0;
    share_rest(l, bytes, g->seek_bytes);
    if ((l->tails + l->behind + l->read_chunks) * l->chunk_bytes <= bytes)
        c->cost = pooled_cost(l, &p, g->seek_bytes);
    return 0;
}

int drps_relay_pool_tails(const struct drps_store_config *config, uint64_t buffer_bytes,
                          const struct drps_sends *sends, const uint32_t *reach,
                          struct drps_relay_layout *layout, struct drps_err *err)
{
    const struct given g = given(config, buffer_bytes);
    double least = cost_of(layout, g.seek_bytes), before = INFINITY;
    if (!sends->known) return 0;
    for (uint64_t chunk = CHUNK_LEAST; chunk <= g.most_chunk; chunk *= 2) {
        struct choice c = {.layout = {.chunk_bytes = (size_t)chunk,
                                      .tails = (size_t)(g.bytes / READ_SHARE / chunk)}};
        if (!c.layout.tails) break;
        if (c.layout.tails >= sends->windows) continue; /* one each: that was weighed */
        int rc = try_pool(&g, sends, reach, config->row_bytes, &c, err);
        if (rc < 0) return rc;
        if (c.cost > before) break; /* larger chunks are emptier */
        before = c.cost;
        if (c.cost >= least) continue;
        least = c.cost;
        *layout = c.layout;
    }
    return 0;
}
