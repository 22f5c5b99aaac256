#include "storage/relay/streams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"

enum {
    NONE = -1,
    WRITES = 32,         /* under way at most */
    READS = 128,         /* the same */
    READ_MOST = 1 << 20, /* bytes of a request, where chunks lie side by side */
    REFILL = 4,          /* more is read ahead when one part of so many is there for it */
};

#define NO_SLOT UINT32_MAX

struct stream {
    uint32_t first, last; /* slots of its chunks; NO_SLOT: none */
    uint64_t full;        /* chunks that are full: collected, being written or on disk */
    uint32_t used;        /* bytes of the tail */
    int32_t tail;         /* buffer being filled, or NONE */
};

/* A request that writes: chunks to consecutive slots. */
struct write {
    uint32_t slot, n;
    struct iovec *chunks; /* [write_chunks], of drps_streams.pieces */
};

/* The stream that is being read. Its chunk number i comes to lie in buffer i % read_chunks of those
 * for reading. */
struct reading {
    int64_t stream;        /* NONE: nothing is read */
    uint64_t limit;        /* chunks that may be asked for */
    int keep;              /* slots are not given back */
    uint64_t asked, taken; /* chunks */
    unsigned under_way;    /* requests */
    size_t at;             /* bytes taken of the chunk at hand */
    int verified;          /* the chunk at hand was compared with its checksum */
};

/* A buffer for reading. */
struct place {
    uint32_t slot; /* of the chunk that it is for */
    uint32_t n;    /* chunks of the request that begins here */
    int there;     /* read */
};

struct drps_streams {
    struct drps_streams_config config;
    struct drps_aio *aio;
    char *mem; /* own: [buffers_n + read_chunks][chunk_bytes] */
    size_t mem_bytes;
    size_t buffers_n; /* chunks being filled, collected or written */
    uint32_t *of;     /* own: [buffers_n] stream of each full one */
    uint64_t *sum_of; /* own: [buffers_n] its checksum */
    int32_t *free;    /* own: [buffers_n] stack of free buffers */
    size_t free_n;
    int32_t *collected; /* own: [write_chunks] full buffers to be written by the next request */
    unsigned collected_n;
    struct write writes[WRITES];
    struct iovec *pieces;  /* own: [WRITES][write_chunks] */
    uint32_t idle[WRITES]; /* a stack of writes that are not under way */
    unsigned idle_n;
    struct stream *streams; /* own: [n] */
    uint64_t *sums;         /* own: [slots] checksum of each chunk written */
    uint32_t *next;         /* own: [slots] the slot that follows in its stream */
    uint64_t *vacant;       /* own: bit i: slot i holds no chunk */
    uint64_t *busy;         /* own: bit i: slot i is being written */
    uint64_t cursor;        /* the slot where the next request may begin */
    struct drps_aio_op pending[READS];
    size_t pending_n;
    struct place *places; /* own: [read_chunks] */
    struct reading reading;
};

static size_t buffers_needed(const struct drps_streams_config *c)
{
    return c->tails + c->behind;
}

static size_t chunks_in_memory(const struct drps_streams_config *c)
{
    return buffers_needed(c) + c->read_chunks;
}

/* ---- Slots ---- */

static int has(const uint64_t *bits, uint64_t i)
{
    return (int)(bits[i / 64] >> i % 64 & 1);
}

static void set(uint64_t *bits, uint64_t i)
{
    bits[i / 64] |= UINT64_C(1) << i % 64;
}

static void clear(uint64_t *bits, uint64_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* The first vacant slot of [from, end), or end. */
static uint64_t find_vacant(const struct drps_streams *s, uint64_t from, uint64_t end)
{
    while (from < end) {
        const uint64_t word = s->vacant[from / 64] >> from % 64;
        if (word) {
            from += (uint64_t)__builtin_ctzll(word);
            return from < end ? from : end;
        }
        from = (from / 64 + 1) * 64;
    }
    return end;
}

/* The next vacant slots behind the cursor, which goes round the file: as many as lie side by side,
 * n at most. They are taken. *n_out 0: none is left. */
static uint64_t take_slots(struct drps_streams *s, uint32_t n, uint32_t *n_out)
{
    const uint64_t slots = s->config.slots;
    uint64_t first = find_vacant(s, s->cursor, slots);
    if (first == slots) first = find_vacant(s, 0, slots);
    uint64_t end = first;
    for (; end < slots && end - first < n && has(s->vacant, end); end++)
        clear(s->vacant, end);
    *n_out = (uint32_t)(end - first);
    s->cursor = end < slots ? end : 0;
    return first;
}

static void give_back_first(struct drps_streams *s, struct stream *st)
{
    set(s->vacant, st->first);
    st->first = s->next[st->first];
    if (st->first == NO_SLOT) st->last = NO_SLOT;
}

static void link_slot(struct drps_streams *s, struct stream *st, uint32_t slot)
{
    s->next[slot] = NO_SLOT;
    if (st->last == NO_SLOT)
        st->first = slot;
    else
        s->next[st->last] = slot;
    st->last = slot;
}

/* ---- Opening and closing ---- */

void drps_streams_close(struct drps_streams *s)
{
    if (!s) return;
    drps_aio_close(s->aio);
    drps_pages_free(s->mem, s->mem_bytes);
    free(s->of);
    free(s->sum_of);
    free(s->free);
    free(s->collected);
    free(s->pieces);
    free(s->streams);
    free(s->sums);
    free(s->next);
    free(s->vacant);
    free(s->busy);
    free(s->places);
    free(s);
}

static int allocate(struct drps_streams *s, const struct drps_streams_config *c)
{
    const size_t slots = (size_t)c->slots;
    s->buffers_n = buffers_needed(c);
    s->mem_bytes = chunks_in_memory(c) * c->chunk_bytes;
    s->mem = drps_pages_new(s->mem_bytes);
    s->of = drps_array_new(s->buffers_n, sizeof(*s->of));
    s->sum_of = drps_array_new(s->buffers_n, sizeof(*s->sum_of));
    s->free = drps_array_new(s->buffers_n, sizeof(*s->free));
    s->collected = drps_array_new(c->write_chunks, sizeof(*s->collected));
    s->pieces = drps_array_new((size_t)WRITES * c->write_chunks, sizeof(*s->pieces));
    s->streams = calloc(c->n + 1, sizeof(*s->streams));
    s->sums = drps_array_new(slots, sizeof(*s->sums));
    s->next = drps_array_new(slots, sizeof(*s->next));
    s->vacant = calloc(slots / 64 + 1, sizeof(*s->vacant));
    s->busy = calloc(slots / 64 + 1, sizeof(*s->busy));
    s->places = drps_array_new(c->read_chunks, sizeof(*s->places));
    return s->mem && s->of && s->sum_of && s->free && s->collected && s->pieces && s->streams &&
                   s->sums && s->next && s->vacant && s->busy && s->places
               ? 0
               : -ENOMEM;
}

static void lay_out(struct drps_streams *s, const struct drps_streams_config *c)
{
    while (s->free_n < s->buffers_n) {
        s->free[s->free_n] = (int32_t)(s->buffers_n - 1 - s->free_n);
        s->free_n++;
    }
    for (uint32_t i = 0; i < WRITES; i++) {
        s->writes[i].chunks = s->pieces + (size_t)i * c->write_chunks;
        s->idle[s->idle_n++] = WRITES - 1 - i;
    }
    for (size_t i = 0; i < c->n; i++)
        s->streams[i] = (struct stream){.first = NO_SLOT, .last = NO_SLOT, .tail = NONE};
    for (uint64_t i = 0; i < c->slots; i++)
        set(s->vacant, i);
}

int drps_streams_open(const struct drps_streams_config *config, struct drps_streams **s_out,
                      struct drps_err *err)
{
    *s_out = NULL;
    if (!config->chunk_bytes || config->chunk_bytes % DRPS_AIO_ALIGN || !config->read_chunks ||
        !config->write_chunks || config->write_chunks > DRPS_AIO_PIECES_MAX ||
        config->behind < config->write_chunks || chunks_in_memory(config) > INT32_MAX ||
        config->write_chunks > UINT32_MAX / config->chunk_bytes || !config->slots ||
        config->slots >= NO_SLOT)
        return drps_err_set(err, -EINVAL, "streams in chunks of %zu bytes", config->chunk_bytes);
    struct drps_streams *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for %zu streams", config->n);
    s->config = *config;
    s->reading.stream = NONE;
    int rc = allocate(s, config);
    if (rc == 0)
        lay_out(s, config);
    else
        rc = drps_err_set(err, rc, "no memory for %zu chunks of %zu bytes",
                          chunks_in_memory(config), config->chunk_bytes);
    const struct drps_aio_config aio = {
        .io = config->io,
        .path = config->path,
        .file_bytes = config->slots * config->chunk_bytes,
        .buffers = s->mem,
        .buffers_bytes = s->mem_bytes,
        .depth = WRITES + READS,
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

static char *memory_of_place(const struct drps_streams *s, uint64_t chunk)
{
    return memory_of(s, (int32_t)(s->buffers_n + chunk % s->config.read_chunks));
}

static void written(struct drps_streams *s, uint32_t number)
{
    const struct write *w = &s->writes[number];
    for (uint32_t i = 0; i < w->n; i++) {
        clear(s->busy, w->slot + i);
        s->free[s->free_n++] =
            (int32_t)((size_t)((char *)w->chunks[i].iov_base - s->mem) / s->config.chunk_bytes);
    }
    s->idle[s->idle_n++] = number;
}

static void came(struct drps_streams *s, uint32_t place)
{
    const uint32_t n = s->places[place].n;
    for (uint32_t i = 0; i < n; i++)
        s->places[place + i].there = 1;
    s->reading.under_way--;
}

/* Tags below WRITES are of writes, the others of reads. */
static void finished(struct drps_streams *s, uint32_t tag)
{
    if (tag < WRITES)
        written(s, tag);
    else
        came(s, tag - WRITES);
}

static int submit(struct drps_streams *s, struct drps_err *err)
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

/* Write the first n of what was collected to slots side by side. */
static int write_chunks(struct drps_streams *s, const int32_t *buffers, uint32_t n, uint64_t slot,
                        struct drps_err *err)
{
    while (!s->idle_n) {
        int rc = reap(s, 1, err);
        if (rc < 0) return rc;
    }
    const uint32_t number = s->idle[--s->idle_n];
    struct write *w = &s->writes[number];
    w->slot = (uint32_t)slot;
    w->n = n;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t b = buffers[i];
        w->chunks[i] =
            (struct iovec){.iov_base = memory_of(s, b), .iov_len = s->config.chunk_bytes};
        s->sums[slot + i] = s->sum_of[b];
        set(s->busy, slot + i);
        link_slot(s, &s->streams[s->of[b]], w->slot + i);
    }
    const struct drps_aio_op op = {.pieces = w->chunks,
                                   .pieces_n = n,
                                   .bytes = n * (uint32_t)s->config.chunk_bytes,
                                   .offset = slot * s->config.chunk_bytes,
                                   .write = 1,
                                   .tag = number};
    return drps_aio_submit(s->aio, &op, 1, err);
}

/* Write what was collected: by one request, when so many slots lie side by side. */
int drps_streams_flush(struct drps_streams *s, struct drps_err *err)
{
    const uint32_t n = s->collected_n;
    s->collected_n = 0;
    for (uint32_t done = 0, now; done < n; done += now) {
        const uint64_t slot = take_slots(s, n - done, &now);
        if (!now)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: more rows are on their way than there are: the plan's windows "
                                "contradict each other; make the plan anew",
                                s->config.path);
        int rc = write_chunks(s, s->collected + done, now, slot, err);
        if (rc < 0) return rc;
    }
    return 0;
}

/* Something must finish before this thread can go on. */
static int await_one(struct drps_streams *s, struct drps_err *err)
{
    int rc = submit(s, err);
    if (rc == 0 && !drps_aio_under_way(s->aio)) rc = drps_streams_flush(s, err);
    if (rc < 0) return rc;
    if (!drps_aio_under_way(s->aio))
        return drps_err_set(err, -EINVAL, "%s: all %zu chunks of memory are taken", s->config.path,
                            s->buffers_n);
    return reap(s, 1, err);
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

/* A full tail is collected, to be written with others. */
static int collect_tail(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    struct stream *st = &s->streams[stream];
    const int32_t b = st->tail;
    s->sum_of[b] = drps_checksum(memory_of(s, b), s->config.chunk_bytes);
    s->of[b] = (uint32_t)stream;
    st->tail = NONE;
    st->used = 0;
    st->full++;
    s->collected[s->collected_n++] = b;
    return s->collected_n == s->config.write_chunks ? drps_streams_flush(s, err) : 0;
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
        if (now == room) rc = collect_tail(s, stream, err);
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
            if (st->used == s->config.chunk_bytes) rc = collect_tail(s, stream, err);
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

/* The slot of the next chunk to ask for. */
static uint32_t next_to_ask(const struct drps_streams *s)
{
    const struct reading *r = &s->reading;
    if (r->asked == (r->keep ? 0 : r->taken)) return s->streams[r->stream].first;
    return s->next[s->places[(r->asked - 1) % s->config.read_chunks].slot];
}

/* Chunks from `slot` on that one request can read: side by side on disk and in memory. */
static uint32_t side_by_side(const struct drps_streams *s, uint32_t slot, uint64_t most)
{
    const uint32_t chunks = s->config.read_chunks;
    const uint64_t room = chunks - s->reading.asked % chunks;
    const uint64_t bytes = READ_MOST / s->config.chunk_bytes;
    uint32_t n = 1;
    if (most > room) most = room;
    if (most > bytes) most = bytes;
    while (n < most && s->next[slot + n - 1] == slot + n && !has(s->busy, slot + n))
        n++;
    return n;
}

static void ask(struct drps_streams *s, uint32_t slot, uint32_t n)
{
    struct reading *r = &s->reading;
    const uint32_t at = (uint32_t)(r->asked % s->config.read_chunks);
    for (uint32_t i = 0; i < n; i++)
        s->places[at + i] = (struct place){.slot = slot + i, .n = n};
    s->pending[s->pending_n++] = (struct drps_aio_op){
        .buf = memory_of_place(s, r->asked),
        .bytes = n * (uint32_t)s->config.chunk_bytes,
        .offset = (uint64_t)slot * s->config.chunk_bytes,
        .tag = WRITES + at,
    };
    r->under_way++;
    r->asked += n;
}

/* Ask for chunks as far ahead as there is room for, up to one that is still being written. */
static int ask_ahead(struct drps_streams *s, struct drps_err *err)
{
    struct reading *r = &s->reading;
    const uint64_t chunks = s->config.read_chunks;
    const uint64_t ahead = r->asked - r->taken;
    if (ahead && chunks - ahead < chunks / REFILL) return 0;
    while (r->asked < r->limit && r->asked - r->taken < chunks && r->under_way < READS) {
        const uint64_t left = r->limit - r->asked, room = chunks - (r->asked - r->taken);
        const uint32_t slot = next_to_ask(s);
        if (has(s->busy, slot)) break;
        ask(s, slot, side_by_side(s, slot, left < room ? left : room));
    }
    return submit(s, err);
}

/* Until chunk number `chunk`, which may be asked for, is there. */
static int await_chunk(struct drps_streams *s, uint64_t chunk, struct drps_err *err)
{
    const struct reading *r = &s->reading;
    const struct place *place = &s->places[chunk % s->config.read_chunks];
    for (;;) {
        int rc = r->asked > chunk ? 0 : ask_ahead(s, err);
        if (rc == 0 && r->asked > chunk && place->there) return 0;
        if (rc == 0) rc = await_one(s, err);
        if (rc < 0) return rc;
    }
}

static int stop_reading(struct drps_streams *s, struct drps_err *err)
{
    struct reading *r = &s->reading;
    while (r->under_way) {
        int rc = await_one(s, err);
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
    if (rc == 0) rc = drps_streams_flush(s, err); /* gives all of its full chunks slots */
    if (rc == 0) rc = reap(s, 0, err);
    if (rc < 0) return rc;
    s->reading.limit = s->streams[stream].full;
    return ask_ahead(s, err);
}

int drps_streams_begin(struct drps_streams *s, size_t stream, int keep, struct drps_err *err)
{
    int rc = s->reading.stream == (int64_t)stream ? 0 : start_reading(s, stream, err);
    if (rc == 0) rc = drps_streams_flush(s, err);
    if (rc < 0) return rc;
    s->reading.keep = keep;
    s->reading.limit = s->streams[stream].full;
    return ask_ahead(s, err);
}

static int verify(struct drps_streams *s, struct drps_err *err)
{
    struct reading *r = &s->reading;
    const uint32_t slot = s->places[r->taken % s->config.read_chunks].slot;
    if (r->verified) return 0;
    if (drps_checksum(memory_of_place(s, r->taken), s->config.chunk_bytes) != s->sums[slot])
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: the %zu bytes at byte %llu are not those that were written there: "
                            "check the disk and the memory of this machine, then train again",
                            s->config.path, s->config.chunk_bytes,
                            (unsigned long long)slot * s->config.chunk_bytes);
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
    if (r->taken == st->full) { /* only the tail is left */
        *n_out = st->tail == NONE ? 0 : st->used - r->at;
        if (*n_out) *at_out = memory_of(s, st->tail) + r->at;
        return 0;
    }
    int rc = await_chunk(s, r->taken, err);
    if (rc == 0) rc = verify(s, err);
    if (rc < 0) return rc;
    *at_out = memory_of_place(s, r->taken) + r->at;
    *n_out = s->config.chunk_bytes - r->at;
    return 0;
}

int drps_streams_skip(struct drps_streams *s, size_t n, struct drps_err *err)
{
    struct reading *r = &s->reading;
    r->at += n;
    if (r->taken == s->streams[r->stream].full || r->at < s->config.chunk_bytes) return 0;
    r->taken++;
    r->at = 0;
    r->verified = 0;
    if (!r->keep) give_back_first(s, &s->streams[r->stream]);
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
    while (st->first != NO_SLOT)
        give_back_first(s, st);
    if (st->tail != NONE) s->free[s->free_n++] = st->tail;
    st->tail = NONE;
    st->used = 0;
    st->full = 0;
    return 0;
}

uint64_t drps_streams_bytes(const struct drps_streams *s, size_t stream)
{
    const struct stream *st = &s->streams[stream];
    return st->full * s->config.chunk_bytes + (st->tail == NONE ? 0 : st->used);
}

void drps_streams_stats(const struct drps_streams *s, struct drps_iostat *out)
{
    drps_aio_stats(s->aio, out);
}

void drps_streams_about(const struct drps_streams *s, struct drps_aio_about *out)
{
    drps_aio_about(s->aio, out);
}
