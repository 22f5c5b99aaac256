/* Reading streams: chunks are asked for ahead, those that lie side by side by one request, and each
 * is compared with its checksum once. */
#include <string.h>

#include "base/drps_checksum.h"
#include "storage/relay/streams/rowcopy.h"
#include "storage/relay/streams/streams_internal.h"

enum {
    READ_MOST = 1 << 20, /* bytes of a request, where chunks lie side by side */
    REFILL = 4,          /* more is read ahead when one part of so many is there for it */
};

void drps_streams_came(struct drps_streams *s, uint32_t read)
{
    const uint32_t n = s->reads[read].n;
    for (uint32_t i = 0; i < n; i++)
        s->reads[read + i].there = 1;
    s->reading.under_way--;
}

/* The chunk of the file to ask for next. */
static uint32_t next_to_ask(const struct drps_streams *s)
{
    const struct drps_streams_reading *r = &s->reading;
    if (r->asked == (r->keep ? 0 : r->taken)) return s->streams[r->stream].list.first;
    return s->map.next[s->reads[(r->asked - 1) % s->config.read_chunks].chunk];
}

/* How many chunks from `chunk` on one request can read: side by side on disk and in memory. */
static uint32_t side_by_side(const struct drps_streams *s, uint32_t chunk, uint64_t most)
{
    const uint32_t chunks = s->config.read_chunks;
    const uint64_t room = chunks - s->reading.asked % chunks;
    const uint64_t bytes = READ_MOST / s->config.chunk_bytes;
    uint32_t n = 1;
    if (most > room) most = room;
    if (most > bytes) most = bytes;
    while (n < most && s->map.next[chunk + n - 1] == chunk + n &&
           !drps_chunk_map_is_busy(&s->map, chunk + n))
        n++;
    return n;
}

static void ask(struct drps_streams *s, uint32_t chunk, uint32_t n)
{
    struct drps_streams_reading *r = &s->reading;
    const uint32_t at = (uint32_t)(r->asked % s->config.read_chunks);
    for (uint32_t i = 0; i < n; i++)
        s->reads[at + i] = (struct drps_streams_read){.chunk = chunk + i, .n = n};
    s->pending[s->pending_n++] = (struct drps_aio_op){
        .buf = drps_streams_read_buffer(s, r->asked),
        .bytes = n * (uint32_t)s->config.chunk_bytes,
        .offset = (uint64_t)chunk * s->config.chunk_bytes,
        .tag = DRPS_STREAMS_WRITES + at,
    };
    r->under_way++;
    r->asked += n;
}

/* Ask for chunks as far ahead as there is room for, up to one that is still being written. */
static int ask_ahead(struct drps_streams *s, struct drps_err *err)
{
    struct drps_streams_reading *r = &s->reading;
    const uint64_t chunks = s->config.read_chunks;
    const uint64_t ahead = r->asked - r->taken;
    if (ahead && chunks - ahead < chunks / REFILL) return 0;
    while (r->asked < r->limit && r->asked - r->taken < chunks &&
           r->under_way < DRPS_STREAMS_READS) {
        const uint64_t left = r->limit - r->asked, room = chunks - (r->asked - r->taken);
        const uint32_t chunk = next_to_ask(s);
        if (drps_chunk_map_is_busy(&s->map, chunk)) break;
        ask(s, chunk, side_by_side(s, chunk, left < room ? left : room));
    }
    return drps_streams_submit(s, err);
}

/* Until chunk number `nth` of the stream, which may be asked for, is there. */
static int await_chunk(struct drps_streams *s, uint64_t nth, struct drps_err *err)
{
    const struct drps_streams_reading *r = &s->reading;
    const struct drps_streams_read *read = &s->reads[nth % s->config.read_chunks];
    for (;;) {
        int rc = r->asked > nth ? 0 : ask_ahead(s, err);
        if (rc == 0 && r->asked > nth && read->there) return 0;
        if (rc == 0) rc = drps_streams_await_one(s, err);
        if (rc < 0) return rc;
    }
}

static int stop_reading(struct drps_streams *s, struct drps_err *err)
{
    struct drps_streams_reading *r = &s->reading;
    while (r->under_way) {
        int rc = drps_streams_await_one(s, err);
        if (rc < 0) return rc;
    }
    r->stream = DRPS_STREAMS_NONE;
    return 0;
}

static int start_reading(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    int rc = s->reading.stream == DRPS_STREAMS_NONE ? 0 : stop_reading(s, err);
    if (rc < 0) return rc;
    s->reading = (struct drps_streams_reading){.stream = (int64_t)stream};
    return 0;
}

int drps_streams_prefetch(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    int rc = start_reading(s, stream, err);
    if (rc == 0) rc = drps_streams_flush(s, err); /* gives all of its chunks room in the file */
    if (rc == 0) rc = drps_streams_reap(s, 0, err);
    if (rc < 0) return rc;
    s->reading.limit = s->streams[stream].chunks;
    return ask_ahead(s, err);
}

int drps_streams_begin(struct drps_streams *s, size_t stream, int keep, struct drps_err *err)
{
    int rc = s->reading.stream == (int64_t)stream ? 0 : start_reading(s, stream, err);
    if (rc == 0) rc = drps_streams_flush(s, err);
    if (rc < 0) return rc;
    s->reading.begun = 1;
    s->reading.keep = keep;
    s->reading.limit = s->streams[stream].chunks;
    return ask_ahead(s, err);
}

/* Returns where the chunk at hand lies in the file. */
static uint32_t chunk_at_hand(const struct drps_streams *s)
{
    return s->reads[s->reading.taken % s->config.read_chunks].chunk;
}

static int verify(struct drps_streams *s, struct drps_err *err)
{
    struct drps_streams_reading *r = &s->reading;
    const uint32_t chunk = chunk_at_hand(s);
    const uint32_t bytes = s->map.bytes[chunk];
    if (r->verified) return 0;
    if (drps_checksum(drps_streams_read_buffer(s, r->taken), bytes) != s->map.sums[chunk])
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: the %u bytes at byte %llu are not those that were written there: "
                            "check the disk and the memory of this machine, then train again",
                            s->config.path, bytes,
                            (unsigned long long)chunk * s->config.chunk_bytes);
    r->verified = 1;
    return 0;
}

int drps_streams_peek(struct drps_streams *s, const char **at_out, size_t *n_out,
                      struct drps_err *err)
{
    struct drps_streams_reading *r = &s->reading;
    const struct drps_stream *st = &s->streams[r->stream];
    *at_out = NULL;
    *n_out = 0;
    if (r->taken == st->chunks) { /* only the tail is left */
        *n_out = st->tail == DRPS_STREAMS_NONE ? 0 : s->chunks[st->tail].bytes - r->at;
        if (*n_out) *at_out = drps_streams_buffer(s, st->tail) + r->at;
        return 0;
    }
    int rc = await_chunk(s, r->taken, err);
    if (rc == 0) rc = verify(s, err);
    if (rc < 0) return rc;
    *at_out = drps_streams_read_buffer(s, r->taken) + r->at;
    *n_out = s->map.bytes[chunk_at_hand(s)] - r->at;
    return 0;
}

int drps_streams_skip(struct drps_streams *s, size_t n, struct drps_err *err)
{
    struct drps_streams_reading *r = &s->reading;
    r->at += n;
    if (r->taken == s->streams[r->stream].chunks || r->at < s->map.bytes[chunk_at_hand(s)])
        return 0;
    r->taken++;
    r->at = 0;
    r->verified = 0;
    if (!r->keep) drps_chunk_map_give_back(&s->map, &s->streams[r->stream].list);
    return ask_ahead(s, err);
}

/* drps_streams_peek() where more is due: an end here is an error. */
static int peek_due(struct drps_streams *s, const char **at_out, size_t *n_out,
                    struct drps_err *err)
{
    int rc = drps_streams_peek(s, at_out, n_out, err);
    if (rc < 0 || *n_out) return rc;
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "%s: stream %lld ends before all of its rows: the plan's windows "
                        "contradict each other; make the plan anew",
                        s->config.path, (long long)s->reading.stream);
}

int drps_streams_take(struct drps_streams *s, void *bytes, size_t n, struct drps_err *err)
{
    char *to = bytes;
    while (n) {
        const char *at;
        size_t left;
        int rc = peek_due(s, &at, &left, err);
        if (rc < 0) return rc;
        const size_t now = n < left ? n : left;
        memcpy(to, at, now);
        to += now;
        n -= now;
        rc = drps_streams_skip(s, now, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_streams_take_rows(struct drps_streams *s, char *base, size_t row_bytes,
                           const uint32_t *frames, size_t n, struct drps_err *err)
{
    while (n) {
        const char *at;
        size_t left;
        int rc = peek_due(s, &at, &left, err);
        if (rc < 0) return rc;
        const size_t whole = left / row_bytes;
        const size_t now = n < whole ? n : whole;
        if (!now) { /* across chunks */
            rc = drps_streams_take(s, base + frames[0] * row_bytes, row_bytes, err);
            if (rc < 0) return rc;
            frames++;
            n--;
            continue;
        }
        drps_rowcopy_scatter(at, base, row_bytes, frames, n, now);
        frames += now;
        n -= now;
        rc = drps_streams_skip(s, now * row_bytes, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_streams_end(struct drps_streams *s, struct drps_err *err)
{
    if (s->reading.stream == DRPS_STREAMS_NONE) return 0;
    struct drps_stream *st = &s->streams[s->reading.stream];
    const int read = !s->reading.keep;
    int rc = stop_reading(s, err);
    if (rc < 0 || !read) return rc;
    while (st->list.first != DRPS_NO_CHUNK)
        drps_chunk_map_give_back(&s->map, &st->list);
    if (st->tail != DRPS_STREAMS_NONE) {
        s->free[s->free_n++] = st->tail;
        drps_streams_drop_tail(s, (size_t)(st - s->streams));
    }
    st->bytes = 0;
    st->chunks = 0;
    return 0;
}
