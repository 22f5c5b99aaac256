/* The list of what windows send, and a model of shared tails: what streams_write.c does, by bytes
 * alone. */
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
    for (uint32_t distance = 2; distance <= sends->windows && sends->known; distance++) {
        if (!rows[distance]) continue;
        sends->known = sends->n < sends->most;
        if (sends->known)
            sends->list[sends->n++] =
                (struct drps_send){.distance = distance, .rows = rows[distance]};
    }
    sends->end[w] = sends->n;
}

/* ---- Shared tails ---- */

#define NONE UINT32_MAX

struct stream {
    uint32_t used;         /* bytes of its tail; 0: it has none */
    uint32_t chunks;       /* on disk */
    uint32_t older, newer; /* streams with a tail, by when they were last appended to */
};

struct tails {
    struct stream *streams; /* own: [windows] */
    uint32_t oldest, newest;
    size_t n, most; /* of the tails */
    size_t chunk_bytes;
    uint64_t on_disk; /* chunks */
    uint32_t last;    /* the stream whose chunk was the last to be written */
    struct drps_shared_tails *out;
};

static void join_newest(struct tails *t, uint32_t s)
{
    t->streams[s].older = t->newest;
    t->streams[s].newer = NONE;
    *(t->newest == NONE ? &t->oldest : &t->streams[t->newest].newer) = s;
    t->newest = s;
    t->n++;
}

static void leave(struct tails *t, uint32_t s)
{
    const struct stream *st = &t->streams[s];
    *(st->older == NONE ? &t->oldest : &t->streams[st->older].newer) = st->newer;
    *(st->newer == NONE ? &t->newest : &t->streams[st->newer].older) = st->older;
    t->n--;
}

static void write_chunks(struct tails *t, uint32_t s, uint64_t n)
{
    if (!n) return;
    t->streams[s].chunks += (uint32_t)n;
    t->on_disk += n;
    t->out->chunks += n;
    t->out->runs += s != t->last;
    t->last = s;
    if (t->on_disk > t->out->most) t->out->most = t->on_disk;
}

static void append(struct tails *t, uint32_t s, uint64_t bytes)
{
    struct stream *st = &t->streams[s];
    if (st->used) {
        leave(t, s);
    } else if (t->n == t->most) {
        const uint32_t old = t->oldest;
        leave(t, old);
        t->streams[old].used = 0;
        write_chunks(t, old, 1);
    }
    t->out->sent_bytes += bytes;
    bytes += st->used;
    write_chunks(t, s, bytes / t->chunk_bytes);
    st->used = (uint32_t)(bytes % t->chunk_bytes);
    if (st->used) join_newest(t, s);
}

static void read_stream(struct tails *t, uint32_t s)
{
    struct stream *st = &t->streams[s];
    t->on_disk -= st->chunks;
    st->chunks = 0;
    if (st->used) leave(t, s);
    st->used = 0;
}

/* Window w closes; then the second window after it opens, which reads its stream. */
static void run_window(struct tails *t, const struct drps_sends *sends, const uint32_t *hold_limit,
                       size_t row_bytes, uint32_t w)
{
    for (size_t i = w ? sends->end[w - 1] : 0; i < sends->end[w]; i++) {
        const struct drps_send *send = &sends->list[i];
        if (send->distance > hold_limit[w])
            append(t, (w + send->distance) % sends->windows, (uint64_t)send->rows * row_bytes);
    }
    read_stream(t, (w + 2) % sends->windows);
}

int drps_sends_share_tails(const struct drps_sends *sends, const uint32_t *hold_limit,
                           size_t row_bytes, size_t chunk_bytes, size_t tails,
                           struct drps_shared_tails *out, struct drps_err *err)
{
    struct tails t = {.oldest = NONE,
                      .newest = NONE,
                      .last = NONE,
                      .most = tails,
                      .chunk_bytes = chunk_bytes,
                      .out = out};
    *out = (struct drps_shared_tails){0};
    t.streams = calloc(sends->windows, sizeof(*t.streams));
    if (!t.streams) return drps_err_set(err, -ENOMEM, "no memory to try %zu tails", tails);
    for (int epoch = 0; epoch < 2; epoch++) { /* in the first one, streams are empty at first */
        *out = (struct drps_shared_tails){.most = out->most};
        for (uint32_t i = 0; i < sends->windows; i++)
            run_window(&t, sends, hold_limit, row_bytes, (sends->first + i) % sends->windows);
    }
    free(t.streams);
    return 0;
}
