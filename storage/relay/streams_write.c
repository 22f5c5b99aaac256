/* Tails are filled, collected when they are full, and written many at a time. */
#include <string.h>

#include "base/drps_checksum.h"
#include "storage/relay/streams_internal.h"

void drps_streams_written(struct drps_streams *s, uint32_t number)
{
    const struct drps_streams_write *w = &s->writes[number];
    for (uint32_t i = 0; i < w->n; i++) {
        drps_slots_written(&s->slots, w->slot + i);
        s->free[s->free_n++] =
            (int32_t)((size_t)((char *)w->chunks[i].iov_base - s->mem) / s->config.chunk_bytes);
    }
    s->idle[s->idle_n++] = number;
}

/* Write the first n of what was collected to slots side by side. */
static int write_chunks(struct drps_streams *s, const int32_t *buffers, uint32_t n, uint64_t slot,
                        struct drps_err *err)
{
    while (!s->idle_n) {
        int rc = drps_streams_reap(s, 1, err);
        if (rc < 0) return rc;
    }
    const uint32_t number = s->idle[--s->idle_n];
    struct drps_streams_write *w = &s->writes[number];
    w->slot = (uint32_t)slot;
    w->n = n;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t b = buffers[i];
        w->chunks[i] =
            (struct iovec){.iov_base = drps_streams_buffer(s, b), .iov_len = s->config.chunk_bytes};
        drps_slots_append(&s->slots, &s->streams[s->of[b]].slots, w->slot + i, s->sum_of[b]);
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
        const uint64_t slot = drps_slots_take(&s->slots, n - done, &now);
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

static int begin_tail(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    while (!s->free_n) {
        int rc = drps_streams_await_one(s, err);
        if (rc < 0) return rc;
    }
    s->streams[stream].tail = s->free[--s->free_n];
    s->streams[stream].used = 0;
    return 0;
}

/* A full tail is collected, to be written with others. */
static int collect_tail(struct drps_streams *s, size_t stream, struct drps_err *err)
{
    struct drps_stream *st = &s->streams[stream];
    const int32_t b = st->tail;
    s->sum_of[b] = drps_checksum(drps_streams_buffer(s, b), s->config.chunk_bytes);
    s->of[b] = (uint32_t)stream;
    st->tail = DRPS_STREAMS_NONE;
    st->used = 0;
    st->full++;
    s->collected[s->collected_n++] = b;
    return s->collected_n == s->config.write_chunks ? drps_streams_flush(s, err) : 0;
}

int drps_streams_append(struct drps_streams *s, size_t stream, const void *bytes, size_t n,
                        struct drps_err *err)
{
    struct drps_stream *st = &s->streams[stream];
    const char *from = bytes;
    while (n) {
        int rc = st->tail == DRPS_STREAMS_NONE ? begin_tail(s, stream, err) : 0;
        if (rc < 0) return rc;
        const size_t room = s->config.chunk_bytes - st->used;
        const size_t now = n < room ? n : room;
        memcpy(drps_streams_buffer(s, st->tail) + st->used, from, now);
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

int drps_streams_append_rows(struct drps_streams *s, size_t stream, const char *base,
                             size_t row_bytes, const uint32_t *frames, size_t n,
                             struct drps_err *err)
{
    struct drps_stream *st = &s->streams[stream];
    while (n) {
        int rc = st->tail == DRPS_STREAMS_NONE ? begin_tail(s, stream, err) : 0;
        if (rc < 0) return rc;
        const size_t room = (s->config.chunk_bytes - st->used) / row_bytes;
        const size_t now = n < room ? n : room ? room : 1;
        if (room) {
            gather(drps_streams_buffer(s, st->tail) + st->used, base, row_bytes, frames, now);
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
