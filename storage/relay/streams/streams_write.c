/* Writing streams: tails are filled, collected when they are full or when another stream needs one,
 * and written many at a time. */
#include <errno.h>
#include <string.h>

#include "base/drps_checksum.h"
#include "storage/relay/streams/rowcopy.h"
#include "storage/relay/streams/streams_internal.h"

void drps_streams_written(struct drps_streams *s, uint32_t number)
{
    const struct drps_streams_write *w = &s->writes[number];
    for (uint32_t i = 0; i < w->n; i++) {
        drps_chunk_map_written(&s->map, w->first + i);
        s->free[s->free_n++] =
            (int32_t)((size_t)((char *)w->chunks[i].iov_base - s->mem) / s->config.chunk_bytes);
    }
    s->idle[s->idle_n++] = number;
}

/* Write n chunks to the file, where `first` and those behind it are free. */
static int write_chunks(struct drps_streams *s, const int32_t *buffers, uint32_t n, uint64_t first,
                        struct drps_err *err)
{
    while (!s->idle_n) {
        int rc = drps_streams_reap(s, 1, err);
        if (rc < 0) return rc;
    }
    const uint32_t number = s->idle[--s->idle_n];
    struct drps_streams_write *w = &s->writes[number];
    w->first = (uint32_t)first;
    w->n = n;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t b = buffers[i];
        w->chunks[i] =
            (struct iovec){.iov_base = drps_streams_buffer(s, b), .iov_len = s->config.chunk_bytes};
        const struct drps_streams_chunk *c = &s->chunks[b];
        drps_chunk_map_append(&s->map, &s->streams[c->stream].list, w->first + i, c->bytes, c->sum);
    }
    const struct drps_aio_op op = {.pieces = w->chunks,
                                   .pieces_n = n,
                                   .bytes = n * (uint32_t)s->config.chunk_bytes,
                                   .offset = first * s->config.chunk_bytes,
                                   .write = 1,
                                   .tag = number};
    return drps_aio_submit(s->aio, &op, 1, err);
}

/* Write what was collected: by one request, when so many free chunks lie side by side. */
int drps_streams_flush(struct drps_streams *s, struct drps_err *err)
{
    const uint32_t n = s->collected_n;
    s->collected_n = 0;
    for (uint32_t done = 0, now; done < n; done += now) {
        const uint64_t first = drps_chunk_map_take(&s->map, n - done, &now);
        if (!now)
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "%s: more rows are on their way than there are: the plan's windows "
                                "contradict each other; make the plan anew",
                                s->config.path);
        int rc = write_chunks(s, s->collected + done, now, first, err);
        if (rc < 0) return rc;
    }
    return 0;
}

/* ---- Tails ---- */

static void join_newest(struct drps_streams *s, int32_t b)
{
    s->chunks[b].older = s->newest;
    s->chunks[b].newer = DRPS_STREAMS_NONE;
    *(s->newest == DRPS_STREAMS_NONE ? &s->oldest : &s->chunks[s->newest].newer) = b;
    s->newest = b;
    s->tails_n++;
}

static void leave(struct drps_streams *s, int32_t b)
{
    const struct drps_streams_chunk *c = &s->chunks[b];
    *(c->older == DRPS_STREAMS_NONE ? &s->oldest : &s->chunks[c->older].newer) = c->newer;
    *(c->newer == DRPS_STREAMS_NONE ? &s->newest : &s->chunks[c->newer].older) = c->older;
    s->tails_n--;
}

void drps_streams_drop_tail(struct drps_streams *s, size_t stream)
{
    leave(s, s->streams[stream].tail);
    s->streams[stream].tail = DRPS_STREAMS_NONE;
}

/* A tail, full or not, is collected, to be written with other chunks. */
static int collect_tail(struct drps_streams *s, int32_t b, struct drps_err *err)
{
    struct drps_streams_chunk *c = &s->chunks[b];
    struct drps_stream *st = &s->streams[c->stream];
    drps_streams_drop_tail(s, c->stream);
    c->sum = drps_checksum(drps_streams_buffer(s, b), c->bytes);
    st->bytes += c->bytes;
    st->chunks++;
    s->collected[s->collected_n++] = b;
    return s->collected_n == s->config.write_chunks ? drps_streams_flush(s, err) : 0;
}

/* When there are as many tails as there may be, the one that was appended to longest ago is
 * collected. A tail whose stream is being read stays. */
static int make_room(struct drps_streams *s, struct drps_err *err)
{
    int32_t b = s->oldest;
    if (s->tails_n < s->config.tails) return 0;
    if (s->reading.begun && s->chunks[b].stream == s->reading.stream) b = s->chunks[b].newer;
    if (b == DRPS_STREAMS_NONE)
        return drps_err_set(err, -EINVAL, "%s: the only unfinished chunk is being read",
                            s->config.path);
    return collect_tail(s, b, err);
}

static int begin_tail(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    int rc = make_room(s, err);
    while (rc == 0 && !s->free_n)
        rc = drps_streams_await_one(s, err);
    if (rc < 0) return rc;
    const int32_t b = s->free[--s->free_n];
    s->chunks[b] = (struct drps_streams_chunk){.stream = (uint32_t)stream};
    s->streams[stream].tail = b;
    join_newest(s, b);
    return 0;
}

/* The stream's tail, which has room, and counts as the one appended to last. */
static int use_tail(struct drps_streams *s, size_t stream, struct drps_streams_chunk **tail_out,
                    struct drps_err *err)
{
    const struct drps_stream *st = &s->streams[stream];
    int rc = 0;
    if (st->tail == DRPS_STREAMS_NONE) {
        rc = begin_tail(s, stream, err);
    } else if (st->tail != s->newest) {
        leave(s, st->tail);
        join_newest(s, st->tail);
    }
    *tail_out = rc == 0 ? &s->chunks[st->tail] : NULL;
    return rc;
}

/* n bytes were put into the tail, which is collected once it is full. */
static int fill_tail(struct drps_streams *s, struct drps_streams_chunk *tail, size_t n,
                     struct drps_err *err)
{
    tail->bytes += (uint32_t)n;
    return tail->bytes == s->config.chunk_bytes ? collect_tail(s, (int32_t)(tail - s->chunks), err)
                                                : 0;
}

static char *end_of(const struct drps_streams *s, const struct drps_streams_chunk *tail)
{
    return drps_streams_buffer(s, (int32_t)(tail - s->chunks)) + tail->bytes;
}

/* ---- Appending ---- */

int drps_streams_append(struct drps_streams *s, size_t stream, const void *bytes, size_t n,
                        struct drps_err *err)
{
    const char *from = bytes;
    while (n) {
        struct drps_streams_chunk *tail;
        int rc = use_tail(s, stream, &tail, err);
        if (rc < 0) return rc;
        const size_t room = s->config.chunk_bytes - tail->bytes;
        const size_t now = n < room ? n : room;
        memcpy(end_of(s, tail), from, now);
        from += now;
        n -= now;
        rc = fill_tail(s, tail, now, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_streams_append_rows(struct drps_streams *s, size_t stream, const char *base,
                             size_t row_bytes, const uint32_t *frames, size_t n,
                             struct drps_err *err)
{
    while (n) {
        struct drps_streams_chunk *tail;
        int rc = use_tail(s, stream, &tail, err);
        if (rc < 0) return rc;
        const size_t room = (s->config.chunk_bytes - tail->bytes) / row_bytes;
        const size_t now = n < room ? n : room ? room : 1;
        if (room) {
            drps_rowcopy_gather(end_of(s, tail), base, row_bytes, frames, n, now);
            rc = fill_tail(s, tail, now * row_bytes, err);
        } else { /* it lies across chunks */
            rc = drps_streams_append(s, stream, base + frames[0] * row_bytes, row_bytes, err);
        }
        if (rc < 0) return rc;
        frames += now;
        n -= now;
    }
    return 0;
}
