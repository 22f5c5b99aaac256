/*
 * How streams share their buffers: how large chunks are, how many tails there are, and whether rows
 * go to their windows in one move or by way of groups. relay.h explains these.
 *
 * A request costs the bytes that it moves and seek_bytes more. Chunks are read by a request each,
 * and many are written by one: a byte read costs 1 + seek_bytes / chunk, one written
 * 1 + seek_bytes / (chunk * write_chunks). One unfinished chunk a window makes small chunks; groups
 * move every byte twice, in larger ones; tails that windows share make partial chunks, of which
 * those of one window that follow each other are read by one request. The cheapest layout is taken.
 */
#include "storage/relay/stream_layout.h"

#include <errno.h>
#include <math.h>

#include "storage/io/drps_aio.h"
#include "storage/relay/drps_relay.h"

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
    PIECES_LEAST = 4,     /* chunks of each of these */
    READ_MOST = 16 << 20, /* more does not make the disk faster */
    BEHIND_MOST = 8 << 20,
    SEEK_LEAST = 16 << 10,
    WINDOW_EXTRA = 316, /* the last block of its held rows, which has room; head, hold limit,
                           counts, statistics; its stream, and a part of its group's */
    CHUNK_EXTRA = 18,   /* in the chunk map: checksum, length and successor; pins; three bits */
};

static uint64_t clamp(uint64_t v, uint64_t least, uint64_t most)
{
    return v < least ? least : v > most ? most : v;
}

/* ---- Chunks and groups ---- */

struct choice {
    struct drps_stream_layout layout;
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
static void share_rest(struct drps_stream_layout *l, uint64_t buffer_bytes, uint64_t seek_bytes)
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
static double cost_of(const struct drps_stream_layout *l, uint64_t seek_bytes)
{
    const double seeks = (double)seek_bytes / (double)l->chunk_bytes;
    return (l->span ? 2 : 1) * (1 + (seeks + seeks / l->write_chunks) / 2);
}

static struct choice choose(uint32_t windows, uint32_t span, uint64_t buffer_bytes,
                            uint64_t seek_bytes, uint64_t most)
{
    const uint64_t set_aside = buffer_bytes / READ_SHARE + buffer_bytes / BEHIND_SHARE;
    struct drps_stream_layout l = {.span = span};
    l.groups = span ? (windows + span - 1) / span : 0;
    l.tails = span ? 2 * (size_t)span + l.groups : windows;
    const uint64_t tail = piece_bytes(l.tails, buffer_bytes - set_aside, most);
    l.chunk_bytes = (size_t)piece_bytes(l.tails + 2 * PIECES_LEAST, buffer_bytes, tail);
    share_rest(&l, buffer_bytes, seek_bytes);
    const int fits = (l.tails + l.behind + l.read_chunks) * l.chunk_bytes <= buffer_bytes;
    return (struct choice){.layout = l, .cost = fits ? cost_of(&l, seek_bytes) : INFINITY};
}

/*
 * 2 span + windows / span is least at sqrt(windows / 2). A group's stream is passed on when the
 * first window of the group before closes, and a window opens when the second one before it closes:
 * so no group may have a single window.
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

/* Memory for what is kept for each window. */
static uint64_t windows_bytes(uint64_t windows)
{
    return clamp(windows * WINDOW_EXTRA, DRPS_STREAM_LAYOUT_WINDOWS_LEAST, UINT64_MAX);
}

static struct given given(const struct drps_store_config *config, uint64_t buffer_bytes)
{
    const uint32_t windows = config->windows->windows;
    const uint64_t kept = windows_bytes(windows);
    const uint64_t seek_bytes = config->seek_bytes > SEEK_LEAST ? config->seek_bytes : SEEK_LEAST;
    return (struct given){.bytes = buffer_bytes > kept ? buffer_bytes - kept : 0,
                          .seek_bytes = seek_bytes,
                          .most_chunk = most_chunk(config, seek_bytes)};
}

int drps_stream_layout_choose(const struct drps_store_config *config, uint64_t buffer_bytes,
                              struct drps_stream_layout *out, struct drps_err *err)
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
 * Chunks of the least size, by way of groups where windows are many. span_of() goes two up from
 * sqrt(windows / 2) at most, as windows - 1 has no three neighbours near that for divisors.
 */
uint64_t drps_stream_layout_sure_bytes(uint64_t windows)
{
    const uint64_t span = (uint64_t)ceil(sqrt((double)windows / 2)) + 2;
    const uint64_t grouped = 2 * span + (uint64_t)ceil(sqrt(2.0 * (double)windows));
    const uint64_t tails = windows < grouped ? windows : grouped;
    return windows_bytes(windows) + (tails + 2 * PIECES_LEAST) * CHUNK_LEAST;
}

int drps_stream_layout_fits(uint64_t buffer_bytes, uint32_t windows)
{
    const struct drps_window_source source = {.windows = windows};
    const struct drps_store_config config = {.windows = &source};
    struct drps_stream_layout layout;
    return drps_stream_layout_choose(&config, buffer_bytes, &layout, NULL) == 0;
}

/* ---- The file ---- */

/*
 * Chunks behind the cursor are all free when the file has as many as an epoch sends, as no row is
 * on its way for longer. Where that is too much, a quarter more than streams hold leaves pieces of
 * free chunks that hold three quarters of a request and more (measured). A group's chunk is taken
 * until all of it was passed on. Small chunks of shared tails get half more: what a window sends
 * then lies in one piece mostly, and is read so.
 */
uint64_t drps_stream_layout_file_chunks(const struct drps_stream_layout *l, uint64_t most_bytes,
                                        uint64_t sent_bytes)
{
    if (l->chunks_most) return l->chunks_most + l->chunks_most / 2 + l->behind;
    const uint64_t most = most_bytes / l->chunk_bytes + 1;
    const uint64_t sent = sent_bytes / l->chunk_bytes + 1;
    const uint64_t roomy = most + most / 4;
    const uint64_t wanted = sent < roomy && !l->span ? sent : roomy;
    return (wanted > most ? wanted : most) + l->behind;
}

/* ---- Shared tails ---- */

/* What a byte costs when tails are shared like this; cost_of() tells it where they are not. */
static double shared_cost(const struct drps_stream_layout *l, const struct drps_shared_tails *p,
                          uint64_t seek_bytes)
{
    const double moved = 2.0 * (double)p->chunks * (double)l->chunk_bytes;
    const double requests = (double)p->runs + (double)p->chunks / l->write_chunks;
    if (!p->sent_bytes) return INFINITY; /* any layout does */
    return (moved + requests * (double)seek_bytes) / (2 * (double)p->sent_bytes);
}

/* Tails get one part of READ_SHARE of the buffers; the chunk map takes its part, too. */
static int try_tails(const struct given *g, const struct drps_sends *sends,
                     const uint32_t *hold_limit, size_t row_bytes, struct choice *c,
                     struct drps_err *err)
{
    struct drps_stream_layout *l = &c->layout;
    struct drps_shared_tails p;
    c->cost = INFINITY;
    int rc =
        drps_sends_share_tails(sends, hold_limit, row_bytes, l->chunk_bytes, l->tails, &p, err);
    if (rc < 0) return rc;
    l->chunks_most = p.most + 1;
    const uint64_t kept = drps_stream_layout_file_chunks(l, 0, 0) * CHUNK_EXTRA;
    const uint64_t bytes = g->bytes > kept ? g->bytes - kept : 0;
    share_rest(l, bytes, g->seek_bytes);
    if ((l->tails + l->behind + l->read_chunks) * l->chunk_bytes <= bytes)
        c->cost = shared_cost(l, &p, g->seek_bytes);
    return 0;
}

int drps_stream_layout_share_tails(const struct drps_store_config *config, uint64_t buffer_bytes,
                                   const struct drps_sends *sends, const uint32_t *hold_limit,
                                   struct drps_stream_layout *layout, struct drps_err *err)
{
    const struct given g = given(config, buffer_bytes);
    double least = cost_of(layout, g.seek_bytes), before = INFINITY;
    if (!sends->known) return 0;
    for (uint64_t chunk = CHUNK_LEAST; chunk <= g.most_chunk; chunk *= 2) {
        struct choice c = {.layout = {.chunk_bytes = (size_t)chunk,
                                      .tails = (size_t)(g.bytes / READ_SHARE / chunk)}};
        if (!c.layout.tails) break;
        if (c.layout.tails >= sends->windows) continue; /* a tail each was weighed before */
        int rc = try_tails(&g, sends, hold_limit, config->row_bytes, &c, err);
        if (rc < 0) return rc;
        if (c.cost > before) break; /* larger chunks are emptier */
        before = c.cost;
        if (c.cost >= least) continue;
        least = c.cost;
        *layout = c.layout;
    }
    return 0;
}
