/* Streams of a saved store, read chunk by chunk as its records list them. */
#include "storage/relay/streams/drps_saved_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "storage/relay/streams/streams_saved.h"

struct stream {
    uint64_t bytes;
    uint64_t first, n; /* entries of the lists */
    uint64_t tail;     /* the record of its tail; 0: it has none */
};

struct drps_saved_streams {
    struct drps_streams_config config;
    struct drps_streams_sizes sizes;
    uint64_t lists;                     /* the first record of the lists */
    struct stream *streams;             /* own: [n] */
    struct drps_streams_entry *entries; /* own: [DRPS_STREAMS_ENTRIES] of a record ... */
    uint64_t entries_of;                /* ... this one; UINT64_MAX: of none */
    char *chunk; /* own: [DRPS_STREAMS_TAIL_BYTES + chunk_bytes], aligned to 8 */
    int fd;
    const struct stream *at; /* the stream that is read */
    uint64_t taken;          /* entries of it that were read, and its tail */
    size_t from, to;         /* bytes of the chunk that are not taken yet */
};

static uint64_t chunk_room(uint64_t chunk_bytes)
{
    return DRPS_STREAMS_TAIL_BYTES + chunk_bytes;
}

uint64_t drps_saved_streams_memory(uint64_t n, uint64_t chunk_bytes, uint64_t chunks)
{
    return n * sizeof(struct stream) + chunk_room(chunk_bytes) +
           DRPS_STREAMS_ENTRIES * sizeof(struct drps_streams_entry) + chunks / 8 + 8;
}

/* ---- Opening ---- */

/* Streams come in turn, and no chunk twice; `listed` has a bit a chunk. */
static int add_entry(struct drps_saved_streams *s, uint64_t i, uint64_t *listed, uint32_t *last,
                     struct drps_err *err)
{
    const struct drps_streams_entry *e = &s->entries[i % DRPS_STREAMS_ENTRIES];
    if (e->chunk >= s->sizes.chunks || e->stream >= s->config.n || e->stream < *last || !e->bytes ||
        e->bytes > s->config.chunk_bytes || listed[e->chunk / 64] >> e->chunk % 64 & 1)
        return drps_saved_wrong(s->config.saved, "chunks of streams", err);
    struct stream *st = &s->streams[e->stream];
    listed[e->chunk / 64] |= UINT64_C(1) << e->chunk % 64;
    *last = e->stream;
    if (!st->n) st->first = i;
    st->n++;
    st->bytes += e->bytes;
    return 0;
}

/* Have the record with entry i in memory. */
static int load_entries(struct drps_saved_streams *s, uint64_t i, struct drps_err *err)
{
    const uint64_t record = i / DRPS_STREAMS_ENTRIES;
    const uint64_t left = s->sizes.listed - record * DRPS_STREAMS_ENTRIES;
    const uint64_t n = left < DRPS_STREAMS_ENTRIES ? left : DRPS_STREAMS_ENTRIES;
    struct drps_saved r = *s->config.saved;
    if (s->entries_of == record) return 0;
    r.at = s->lists + record;
    s->entries_of = UINT64_MAX;
    int rc =
        drps_saved_read(&r, s->entries, (size_t)n * sizeof(*s->entries), "chunks of streams", err);
    if (rc == 0) s->entries_of = record;
    return rc;
}

static int read_lists(struct drps_saved_streams *s, struct drps_err *err)
{
    uint64_t *listed = calloc((size_t)(s->sizes.chunks / 64) + 1, sizeof(*listed));
    uint32_t last = 0;
    int rc = listed ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", s->config.path);
    s->lists = s->config.saved->at;
    for (uint64_t i = 0; i < s->sizes.listed && rc == 0; i++) {
        rc = load_entries(s, i, err);
        if (rc == 0) rc = add_entry(s, i, listed, &last, err);
    }
    s->config.saved->at += (s->sizes.listed + DRPS_STREAMS_ENTRIES - 1) / DRPS_STREAMS_ENTRIES;
    free(listed);
    return rc;
}

static int read_tails(struct drps_saved_streams *s, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t i = 0; i < s->sizes.tails && rc == 0; i++) {
        const uint64_t record = s->config.saved->at;
        struct drps_streams_tail tail;
        rc = drps_streams_read_tail(&s->config, s->chunk, &tail, err);
        if (rc < 0) return rc;
        struct stream *st = &s->streams[tail.stream];
        if (st->tail) return drps_saved_wrong(s->config.saved, "unfinished chunks", err);
        st->tail = record;
        st->bytes += tail.bytes;
    }
    return rc;
}

int drps_saved_streams_open(const struct drps_streams_config *config,
                            struct drps_saved_streams **s_out, struct drps_err *err)
{
    *s_out = NULL;
    struct drps_saved_streams *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory to read %s", config->path);
    s->config = *config;
    s->entries_of = UINT64_MAX;
    s->fd = -1;
    s->streams = calloc(config->n + 1, sizeof(*s->streams));
    s->entries = drps_array_new(DRPS_STREAMS_ENTRIES, sizeof(*s->entries));
    s->chunk = malloc((size_t)chunk_room(config->chunk_bytes));
    int rc = s->streams && s->entries && s->chunk
                 ? drps_streams_read_sizes(config, &s->sizes, err)
                 : drps_err_set(err, -ENOMEM, "no memory to read %s", config->path);
    s->config.saved->at++; /* which chunks older saves name */
    if (rc == 0) rc = read_lists(s, err);
    if (rc == 0) rc = read_tails(s, err);
    if (rc == 0) rc = drps_io_open(config->io, config->path, O_RDONLY, &s->fd, err);
    if (rc < 0) {
        drps_saved_streams_close(s);
        return rc;
    }
    *s_out = s;
    return 0;
}

void drps_saved_streams_close(struct drps_saved_streams *s)
{
    if (!s) return;
    drps_io_close(s->config.io, s->fd);
    free(s->streams);
    free(s->entries);
    free(s->chunk);
    free(s);
}

uint64_t drps_saved_streams_bytes(const struct drps_saved_streams *s, size_t stream)
{
    return s->streams[stream].bytes;
}

/* ---- Reading ---- */

void drps_saved_streams_begin(struct drps_saved_streams *s, size_t stream)
{
    s->at = &s->streams[stream];
    s->taken = s->from = s->to = 0;
}

static int read_chunk(struct drps_saved_streams *s, uint64_t i, struct drps_err *err)
{
    int rc = load_entries(s, i, err);
    if (rc < 0) return rc;
    const struct drps_streams_entry *e = &s->entries[i % DRPS_STREAMS_ENTRIES];
    const uint64_t offset = e->chunk * (uint64_t)s->config.chunk_bytes;
    rc = drps_io_read_at(s->config.io, s->fd, s->chunk, e->bytes, offset, s->config.path, err);
    if (rc == 0 && drps_checksum(s->chunk, e->bytes) != e->sum)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s: the bytes from %llu on are damaged",
                          s->config.path, (unsigned long long)offset);
    s->from = 0;
    s->to = e->bytes;
    return rc;
}

static int read_tail(struct drps_saved_streams *s, struct drps_err *err)
{
    struct drps_saved r = *s->config.saved;
    struct drps_streams_config config = s->config;
    struct drps_streams_tail tail;
    config.saved = &r;
    r.at = s->at->tail;
    int rc = drps_streams_read_tail(&config, s->chunk, &tail, err);
    s->from = DRPS_STREAMS_TAIL_BYTES;
    s->to = rc == 0 ? DRPS_STREAMS_TAIL_BYTES + tail.bytes : s->from;
    return rc;
}

static int read_next(struct drps_saved_streams *s, struct drps_err *err)
{
    const uint64_t i = s->taken++;
    if (i < s->at->n) return read_chunk(s, s->at->first + i, err);
    if (i == s->at->n && s->at->tail) return read_tail(s, err);
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: stream %zu ends before all of its rows: the plan's windows contradict "
                        "each other; make the plan anew",
                        s->config.path, (size_t)(s->at - s->streams));
}

int drps_saved_streams_take(struct drps_saved_streams *s, void *bytes, size_t n,
                            struct drps_err *err)
{
    char *to = bytes;
    while (n) {
        int rc = s->from < s->to ? 0 : read_next(s, err);
        if (rc < 0) return rc;
        const size_t left = s->to - s->from, now = n < left ? n : left;
        memcpy(to, s->chunk + s->from, now);
        s->from += now;
        to += now;
        n -= now;
    }
    return 0;
}
