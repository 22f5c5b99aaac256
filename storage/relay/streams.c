#include "storage/relay/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"

enum {
    NONE = -1,
    BATCH = 8, /* operations handed over together */
    RUNS = DRPS_STREAMS_RUNS,
};

#define NO_EXTENT UINT32_MAX

struct stream {
    uint32_t first, last; /* extents; NO_EXTENT: none */
    uint64_t written;     /* full chunks handed to the disk */
    uint32_t writing;     /* of these, not there yet */
    uint32_t used;        /* bytes of the tail */
    int32_t tail;         /* buffer being filled, or NONE */
};

/* Consecutive chunks read by one request. */
struct run {
    uint64_t first;  /* chunk of the stream */
    uint32_t n;      /* chunks */
    uint32_t extent; /* that they are in */
    int there;       /* read */
};

/* The stream that is being read. */
struct reading {
    int64_t stream;        /* NONE: nothing is read */
    uint64_t limit;        /* chunks that may be asked for */
    int keep;              /* extents are not given back */
    uint64_t asked, taken; /* chunks */
    uint32_t extent;       /* of the chunk asked for last */
    uint64_t runs_asked, runs_taken;
    struct run runs[RUNS]; /* number i at i % RUNS */
    size_t at;             /* bytes taken of the chunk at hand */
    int verified;          /* the chunk at hand was compared with its checksum */
};

struct drps_streams {
    struct drps_streams_config config;
    struct drps_aio *aio;
    char *mem; /* own: [buffers_n][chunk_bytes], then [RUNS][run_chunks][chunk_bytes] */
    size_t mem_bytes;
    size_t buffers_n; /* chunks being filled or written */
    uint32_t *of;     /* own: [buffers_n] stream of each */
    int32_t *free;    /* own: [buffers_n] stack of free buffers */
    size_t free_n;
    struct stream *streams; /* own: [n] */
    uint64_t *sums;         /* own: [extents * run_chunks] checksum of each chunk written */
    uint32_t *next;         /* own: [extents] the extent that follows in its stream, or in the list
                               of free ones */
    uint32_t free_extent;   /* the first of that list */
    struct drps_aio_op pending[BATCH];
    size_t pending_n;
    unsigned depth;
    struct reading reading;
};

static size_t buffers_needed(const struct drps_streams_config *c)
{
    return c->tails + c->behind;
}

static size_t chunks_in_memory(const struct drps_streams_config *c)
{
    return buffers_needed(c) + RUNS * (size_t)c->run_chunks;
}

/* Every stream may have an extent that is filled in part, and one being read. */
static uint64_t extents_needed(const struct drps_streams_config *c)
{
    return c->max_bytes / c->chunk_bytes / c->run_chunks + c->tails + RUNS + 1;
}

static uint64_t file_bytes(const struct drps_streams_config *config)
{
    return extents_needed(config) * config->run_chunks * config->chunk_bytes;
}

/* ---- Opening and closing ---- */

void drps_streams_close(struct drps_streams *s)
{
    if (!s) return;
    drps_aio_close(s->aio);
    drps_pages_free(s->mem, s->mem_bytes);
    free(s->of);
    free(s->free);
    free(s->streams);
    free(s->sums);
    free(s->next);
    free(s);
}

static int lay_out(struct drps_streams *s, const struct drps_streams_config *c)
{
    const uint64_t extents = extents_needed(c);
    s->buffers_n = buffers_needed(c);
    s->mem_bytes = chunks_in_memory(c) * c->chunk_bytes;
    s->mem = drps_pages_new(s->mem_bytes);
    s->of = drps_array_new(s->buffers_n, sizeof(*s->of));
    s->free = drps_array_new(s->buffers_n, sizeof(*s->free));
    s->streams = calloc(c->n + 1, sizeof(*s->streams));
    s->sums = drps_array_new((size_t)extents * c->run_chunks, sizeof(*s->sums));
    s->next = drps_array_new((size_t)extents, sizeof(*s->next));
    if (!s->mem || !s->of || !s->free || !s->streams || !s->sums || !s->next) return -ENOMEM;
    while (s->free_n < s->buffers_n) {
        s->free[s->free_n] = (int32_t)(s->buffers_n - 1 - s->free_n);
        s->free_n++;
    }
    for (size_t i = 0; i < c->n; i++)
        s->streams[i] = (struct stream){.first = NO_EXTENT, .last = NO_EXTENT, .tail = NONE};
    for (uint64_t e = 0; e < extents; e++)
        s->next[e] = e + 1 < extents ? (uint32_t)(e + 1) : NO_EXTENT;
    return 0;
}

int drps_streams_open(const struct drps_streams_config *config, struct drps_streams **s_out,
                      struct drps_err *err)
{
    *s_out = NULL;
    if (!config->chunk_bytes || config->chunk_bytes % DRPS_AIO_ALIGN || !config->run_chunks ||
        !config->behind || chunks_in_memory(config) > INT32_MAX ||
        config->run_chunks > UINT32_MAX / config->chunk_bytes ||
        extents_needed(config) >= NO_EXTENT)
        return drps_err_set(err, -EINVAL, "streams in chunks of %zu bytes", config->chunk_bytes);
    struct drps_streams *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for %zu streams", config->n);
    s->config = *config;
    s->reading.stream = NONE;
    s->depth = RUNS + config->behind;
    int rc = lay_out(s, config);
    if (rc < 0)
        rc = drps_err_set(err, rc, "no memory for %zu chunks of %zu bytes",
                          chunks_in_memory(config), config->chunk_bytes);
    const struct drps_aio_config aio = {
        .io = config->io,
        .path = config->path,
        .file_bytes = file_bytes(config),
        .buffers = s->mem,
        .buffers_bytes = s->mem_bytes,
        .depth = s->depth,
        .threads_only = config->threads_only,
    };
    if (rc == 0) rc = drps_aio_open(&aio, &s->aio, err);
    if (rc < 0) {
        drps_streams_close(s);
        return rc;
    }
    *s_out = s;
    return 0;
}

/* ---- Buffers ---- */

static char *memory_of(const struct drps_streams *s, int32_t buffer)
{
    return s->mem + (size_t)buffer * s->config.chunk_bytes;
}

static char *memory_of_run(const struct drps_streams *s, uint64_t run)
{
    return memory_of(s, (int32_t)(s->buffers_n + run % RUNS * s->config.run_chunks));
}

/* Tags below buffers_n are chunks written, the others runs read. */
static void finished(struct drps_streams *s, uint32_t tag)
{
    if (tag >= s->buffers_n) {
        s->reading.runs[tag - s->buffers_n].there = 1;
        return;
    }
    s->streams[s->of[tag]].writing--;
    s->free[s->free_n++] = (int32_t)tag;
}

static int hand_over(struct drps_streams *s, struct drps_err *err)
{
    if (!s->pending_n) return 0;
    const size_t n = s->pending_n;
    s->pending_n = 0;
    return drps_aio_submit(s->aio, s->pending, n, err);
}

/* See what has finished; wait for `least` of it. */
static int reap(struct drps_streams *s, unsigned least, struct drps_err *err)
{
    uint32_t tags[64];
    size_t n = 0;
    int rc = drps_aio_wait(s->aio, least, tags, sizeof(tags) / sizeof(tags[0]), &n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++)
        finished(s, tags[i]);
    return 0;
}

/* Something must finish before this thread can go on. */
static int await_one(struct drps_streams *s, struct drps_err *err)
{
    int rc = hand_over(s, err);
    if (rc < 0) return rc;
    if (!drps_aio_under_way(s->aio))
        return drps_err_set(err, -EINVAL, "%s: all %zu chunks of memory are taken", s->config.path,
                            s->buffers_n);
    return reap(s, 1, err);
}

/* Queue an operation on n chunks of the file. */
static int queue(struct drps_streams *s, uint32_t tag, char *mem, uint64_t chunk, uint32_t n,
                 int write, struct drps_err *err)
{
    while (drps_aio_under_way(s->aio) + s->pending_n >= s->depth) {
        int rc = await_one(s, err);
        if (rc < 0) return rc;
    }
    s->pending[s->pending_n++] = (struct drps_aio_op){.buf = mem,
                                                      .bytes = n * (uint32_t)s->config.chunk_bytes,
                                                      .offset = chunk * s->config.chunk_bytes,
                                                      .write = write,
                                                      .tag = tag};
    return s->pending_n == BATCH ? hand_over(s, err) : 0;
}

int drps_streams_flush(struct drps_streams *s, struct drps_err *err)
{
    return hand_over(s, err);
}

/* ---- Writing ---- */

static int begin_tail(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    while (!s->free_n) {
        int rc = await_one(s, err);
        if (rc < 0) return rc;
    }
    s->streams[stream].tail = s->free[--s->free_n];
    s->streams[stream].used = 0;
    return 0;
}

/* The stream's next chunk begins an extent. */
static int add_extent(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    struct stream *st = &s->streams[stream];
    const uint32_t extent = s->free_extent;
    if (extent == NO_EXTENT)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: more rows are on their way than there are: the plan's windows "
                            "contradict each other; make the plan anew",
                            s->config.path);
    s->free_extent = s->next[extent];
    s->next[extent] = NO_EXTENT;
    if (st->last == NO_EXTENT)
        st->first = extent;
    else
        s->next[st->last] = extent;
    st->last = extent;
    return 0;
}

static int write_tail(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    struct stream *st = &s->streams[stream];
    const uint64_t at = st->written % s->config.run_chunks;
    const int32_t buffer = st->tail;
    int rc = at ? 0 : add_extent(s, stream, err);
    if (rc < 0) return rc;
    const uint64_t chunk = (uint64_t)st->last * s->config.run_chunks + at;
    s->sums[chunk] = drps_checksum(memory_of(s, buffer), s->config.chunk_bytes);
    s->of[buffer] = (uint32_t)stream;
    st->tail = NONE;
    st->used = 0;
    st->written++;
    st->writing++;
    return queue(s, (uint32_t)buffer, memory_of(s, buffer), chunk, 1, 1, err);
}

int drps_streams_append(struct drps_streams *s, size_t stream, const void *bytes, size_t n,
                        struct drps_err *err)
{
    struct stream *st = &s->streams[stream];
    const char *from = bytes;
    while (n) {
        int rc = st->tail == NONE ? begin_tail(s, stream, err) : 0;
        if (rc < 0) return rc;
        const size_t room = s->config.chunk_bytes - st->used;
        const size_t now = n < room ? n : room;
        memcpy(memory_of(s, st->tail) + st->used, from, now);
        st->used += (uint32_t)now;
        from += now;
        n -= now;
        if (now == room) rc = write_tail(s, stream, err);
        if (rc < 0) return rc;
    }
    return 0;
}

/* Small rows are copied by an instruction or two when the compiler knows their size. */
static void gather(char *to, const char *base, size_t row_bytes, const uint32_t *frames, size_t n)
{
    if (row_bytes == 8) {
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * 8, base + (size_t)frames[i] * 8, 8);
        return;
    }
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * row_bytes, base + frames[i] * row_bytes, row_bytes);
}

static void scatter(const char *from, char *base, size_t row_bytes, const uint32_t *frames,
                    size_t n)
{
    if (row_bytes == 8) {
        for (size_t i = 0; i < n; i++)
            memcpy(base + (size_t)frames[i] * 8, from + i * 8, 8);
        return;
    }
    for (size_t i = 0; i < n; i++)
        memcpy(base + frames[i] * row_bytes, from + i * row_bytes, row_bytes);
}

int drps_streams_append_rows(struct drps_streams *s, size_t stream, const char *base,
                             size_t row_bytes, const uint32_t *frames, size_t n,
                             struct drps_err *err)
{
    struct stream *st = &s->streams[stream];
    while (n) {
        int rc = st->tail == NONE ? begin_tail(s, stream, err) : 0;
        if (rc < 0) return rc;
        const size_t room = (s->config.chunk_bytes - st->used) / row_bytes;
        const size_t now = n < room ? n : room ? room : 1;
        if (room) {
            gather(memory_of(s, st->tail) + st->used, base, row_bytes, frames, now);
            st->used += (uint32_t)(now * row_bytes);
            if (st->used == s->config.chunk_bytes) rc = write_tail(s, stream, err);
        } else { /* it lies across chunks */
            rc = drps_streams_append(s, stream, base + frames[0] * row_bytes, row_bytes, err);
        }
        if (rc < 0) return rc;
        frames += now;
        n -= now;
    }
    return 0;
}

/* ---- Reading ---- */

/* Ask for chunks as far ahead as there is room for, an extent or the rest of one at a time. */
static int ask_ahead(struct drps_streams *s, struct drps_err *err)
{
    struct reading *r = &s->reading;
    const struct stream *st = &s->streams[r->stream];
    const uint32_t run_chunks = s->config.run_chunks;
    while (r->asked < r->limit && r->runs_asked - r->runs_taken < RUNS) {
        const uint32_t from = (uint32_t)(r->asked % run_chunks);
        const uint64_t left = r->limit - r->asked;
        const uint32_t n = left < run_chunks - from ? (uint32_t)left : run_chunks - from;
        const uint32_t at = (uint32_t)(r->runs_asked % RUNS);
        if (!from) r->extent = r->asked ? s->next[r->extent] : st->first;
        r->runs[at] = (struct run){.first = r->asked, .n = n, .extent = r->extent};
        int rc = queue(s, (uint32_t)s->buffers_n + at, memory_of_run(s, at),
                       (uint64_t)r->extent * run_chunks + from, n, 0, err);
        if (rc < 0) return rc;
        r->asked += n;
        r->runs_asked++;
    }
    return hand_over(s, err);
}

static int await_run(struct drps_streams *s, uint64_t run, struct drps_err *err)
{
    while (!s->reading.runs[run % RUNS].there) {
        int rc = await_one(s, err);
        if (rc < 0) return rc;
    }
    return 0;
}

static int stop_reading(struct drps_streams *s, struct drps_err *err)
{
    struct reading *r = &s->reading;
    for (; r->runs_taken < r->runs_asked; r->runs_taken++) {
        int rc = await_run(s, r->runs_taken, err);
        if (rc < 0) return rc;
    }
    r->stream = NONE;
    return 0;
}

static int start_reading(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    int rc = s->reading.stream == NONE ? 0 : stop_reading(s, err);
    if (rc < 0) return rc;
    s->reading = (struct reading){.stream = (int64_t)stream};
    return 0;
}

int drps_streams_prefetch(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    int rc = start_reading(s, stream, err);
    if (rc == 0) rc = reap(s, 0, err);
    if (rc < 0) return rc;
    const struct stream *st = &s->streams[stream];
    s->reading.limit = st->writing ? 0 : st->written;
    return ask_ahead(s, err);
}

int drps_streams_begin(struct drps_streams *s, size_t stream, int keep, struct drps_err *err)
{
    int rc = s->reading.stream == (int64_t)stream ? 0 : start_reading(s, stream, err);
    while (rc == 0 && s->streams[stream].writing)
        rc = await_one(s, err);
    if (rc < 0) return rc;
    s->reading.keep = keep;
    s->reading.limit = s->streams[stream].written;
    return ask_ahead(s, err);
}

/* Where the chunk at hand lies. */
static const char *chunk_at_hand(const struct drps_streams *s)
{
    const struct reading *r = &s->reading;
    const struct run *run = &r->runs[r->runs_taken % RUNS];
    return memory_of_run(s, r->runs_taken) + (r->taken - run->first) * s->config.chunk_bytes;
}

static int verify(struct drps_streams *s, struct drps_err *err)
{
    struct reading *r = &s->reading;
    const uint64_t chunk = (uint64_t)r->runs[r->runs_taken % RUNS].extent * s->config.run_chunks +
                           r->taken % s->config.run_chunks;
    if (r->verified) return 0;
    if (drps_checksum(chunk_at_hand(s), s->config.chunk_bytes) != s->sums[chunk])
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: the %zu bytes at byte %llu are not those that were written there: "
                            "check the disk and the memory of this machine, then train again",
                            s->config.path, s->config.chunk_bytes,
                            (unsigned long long)(chunk * s->config.chunk_bytes));
    r->verified = 1;
    return 0;
}

int drps_streams_peek(struct drps_streams *s, const char **at_out, size_t *n_out,
                      struct drps_err *err)
{
    struct reading *r = &s->reading;
    const struct stream *st = &s->streams[r->stream];
    *at_out = NULL;
    *n_out = 0;
    if (r->taken == st->written) { /* only the tail is left */
        *n_out = st->tail == NONE ? 0 : st->used - r->at;
        if (*n_out) *at_out = memory_of(s, st->tail) + r->at;
        return 0;
    }
    int rc = await_run(s, r->runs_taken, err);
    if (rc == 0) rc = verify(s, err);
    if (rc < 0) return rc;
    *at_out = chunk_at_hand(s) + r->at;
    *n_out = s->config.chunk_bytes - r->at;
    return 0;
}

static void give_back_first(struct drps_streams *s, struct stream *st)
{
    const uint32_t extent = st->first;
    st->first = s->next[extent];
    if (st->first == NO_EXTENT) st->last = NO_EXTENT;
    s->next[extent] = s->free_extent;
    s->free_extent = extent;
}

int drps_streams_skip(struct drps_streams *s, size_t n, struct drps_err *err)
{
    struct reading *r = &s->reading;
    r->at += n;
    if (r->taken == s->streams[r->stream].written || r->at < s->config.chunk_bytes) return 0;
    const struct run *run = &r->runs[r->runs_taken % RUNS];
    r->taken++;
    r->at = 0;
    r->verified = 0;
    if (r->taken < run->first + run->n) return 0;
    r->runs_taken++;
    if (!r->keep && (r->taken % s->config.run_chunks == 0 || r->taken == r->limit))
        give_back_first(s, &s->streams[r->stream]);
    return ask_ahead(s, err);
}

static int ended(const struct drps_streams *s, struct drps_err *err)
{
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
        int rc = drps_streams_peek(s, &at, &left, err);
        if (rc == 0 && !left) rc = ended(s, err);
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
        int rc = drps_streams_peek(s, &at, &left, err);
        if (rc == 0 && !left) rc = ended(s, err);
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
        scatter(at, base, row_bytes, frames, now);
        frames += now;
        n -= now;
        rc = drps_streams_skip(s, now * row_bytes, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_streams_end(struct drps_streams *s, struct drps_err *err)
{
    if (s->reading.stream == NONE) return 0;
    struct stream *st = &s->streams[s->reading.stream];
    const int read = !s->reading.keep;
    int rc = stop_reading(s, err);
    if (rc < 0 || !read) return rc;
    while (st->first != NO_EXTENT)
        give_back_first(s, st);
    if (st->tail != NONE) s->free[s->free_n++] = st->tail;
    st->tail = NONE;
    st->used = 0;
    st->written = 0;
    return 0;
}

uint64_t drps_streams_bytes(const struct drps_streams *s, size_t stream)
{
    const struct stream *st = &s->streams[stream];
    return st->written * s->config.chunk_bytes + (st->tail == NONE ? 0 : st->used);
}

void drps_streams_stats(const struct drps_streams *s, struct drps_iostat *out)
{
    drps_aio_stats(s->aio, out);
}

void drps_streams_about(const struct drps_streams *s, struct drps_aio_about *out)
{
    drps_aio_about(s->aio, out);
}
