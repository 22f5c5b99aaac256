#include "storage/relay/sends.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

/* ---- The list ---- */

int drps_sends_init(struct drps_sends *sends, uint32_t windows, uint64_t memory_bytes,
                    struct drps_err *err)
{
    const uint64_t ends = windows * sizeof(*sends->end);
    const uint64_t rest = memory_bytes > ends ? memory_bytes - ends : 0;
    *sends = (struct drps_sends){.windows = windows, .known = 1};
    sends->most = (size_t)(rest / sizeof(*sends->list));
    sends->list = drps_array_new(sends->most, sizeof(*sends->list));
    sends->end = drps_array_new(windows, sizeof(*sends->end));
    if (sends->list && sends->end) return 0;
    return drps_err_set(err, -ENOMEM, "no memory for what %u windows send", windows);
}

void drps_sends_destroy(struct drps_sends *sends)
{
    free(sends->list);
    free(sends->end);
}

void drps_sends_add(struct drps_sends *sends, uint32_t w, const uint32_t *rows)
{
    for (uint32_t way = 2; way <= sends->windows && sends->known; way++) {
        if (!rows[way]) continue;
        sends->known = sends->n < sends->most;
        if (sends->known)
            sends->list[sends->n++] = (struct drps_send){.way = way, .rows = rows[way]};
    }
    sends->end[w] = sends->n;
}

/* ---- A pool of tails ---- */

#define NONE UINT32_MAX

struct stream {
    uint32_t used;         /* bytes of its tail; 0: it has none */
    uint32_t chunks;       /* on disk */
    uint32_t older, newer; /* streams with a tail, by when they were last appended to */
};

struct pool {
    struct stream *streams; /* own: [windows] */
    uint32_t oldest, newest;
    size_t tails, tails_most;
    size_t chunk_bytes;
    uint64_t held; /* chunks on disk */
    uint32_t last; /* the stream whose chunk was the last to be written */
    struct drps_pooled *out;
};

static void join_newest(struct pool *p, uint32_t s)
{
    p->streams[s].older = p->newest;
    p->streams[s].newer = NONE;
    *(p->newest == NONE ? &p->oldest : &p->streams[p->newest].newer) = s;
    p->newest = s;
    p->tails++;
}

static void leave(struct pool *p, uint32_t s)
{
    const struct stream *st = &p->streams[s];
    *(st->older == NONE ? &p->oldest : &p->streams[st->older].newer) = st->newer;
    *(st->newer == NONE ? &p->newest : &p->streams[st->newer].older) = st->older;
    p->tails--;
}

static void write_chunks(struct pool *p, uint32_t s, uint64_t n)
{
    if (!n) return;
    p->streams[s].chunks += (uint32_t)n;
    p->held += n;
    p->out->chunks += n;
    p->out->runs += s != p->last;
    p->last = s;
    if (p->held > p->out->most) p->out->most = p->held;
}

static void append(struct pool *p, uint32_t s, uint64_t bytes)
{
    struct stream *st = &p->streams[s];
    if (st->used) {
        leave(p, s);
    } else if (p->tails == p->tails_most) {
        const uint32_t old = p->oldest;
        leave(p, old);
        p->streams[old].used = 0;
        write_chunks(p, old, 1);
    }
    p->out->sent_bytes += bytes;
    bytes += st->used;
    write_chunks(p, s, bytes / p->chunk_bytes);
    st->used = (uint32_t)(bytes % p->chunk_bytes);
    if (st->used) join_newest(p, s);
}

static void read_stream(struct pool *p, uint32_t s)
{
    struct stream *st = &p->streams[s];
    p->held -= st->chunks;
    st->chunks = 0;
    if (st->used) leave(p, s);
    st->used = 0;
}

/* Window w closes; then the second one after it opens. */
static void run_window(struct pool *p, const struct drps_sends *sends, const uint32_t *reach,
                       size_t row_bytes, uint32_t w)
{
    for (size_t i = w ? sends->end[w - 1] : 0; i < sends->end[w]; i++) {
        const struct drps_send *send = &sends->list[i];
        if (send->way > reach[w])
            append(p, (w + send->way) % sends->windows, (uint64_t)send->rows * row_bytes);
    }
    read_stream(p, (w + 2) % sends->windows);
}

int drps_sends_pool(const struct drps_sends *sends, const uint32_t *reach, size_t row_bytes,
                    size_t chunk_bytes, size_t tails, struct drps_pooled *out, struct drps_err *err)
{
    struct pool p = {.oldest = NONE,
                     .newest = NONE,
                     .last = NONE,
                     .tails_most = tails,
                     .chunk_bytes = chunk_bytes,
                     .out = out};
    *out = (struct drps_pooled){0};
    p.streams = calloc(sends->windows, sizeof(*p.streams));
    if (!p.streams) return drps_err_set(err, -ENOMEM, "no memory to try %zu tails", tails);
    for (int epoch = 0; epoch < 2; epoch++) { /* in the first one, streams are empty at first */
        *out = (struct drps_pooled){.most = out->most};
        for (uint32_t w = 0; w < sends->windows; w++)
            run_window(&p, sends, reach, row_bytes, w);
    }
    free(p.streams);
    return 0;
}
