/*
 * What streams hold, saved and restored: which chunks of the file each stream has, with lengths and
 * checksums, and the tails themselves. The chunks stay where they are. Records, in this order:
 *
 *     sizes          what the streams were opened with, and how many records follow
 *     pinned         a bit a chunk of the file: an older save names it
 *     lists          entries of some chunks each: streams in turn, of each its chunks in order
 *     tails          one each, the one first that was appended to longest ago
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/relay/streams/streams_internal.h"
#include "storage/relay/streams/streams_saved.h"

static size_t bits_bytes(uint64_t chunks)
{
    return (size_t)(chunks / 64 + 1) * sizeof(uint64_t);
}

/* ---- Saving ---- */

/* Until everything collected is written. A failure of a request, now or before, comes out. */
static int settle(struct drps_streams *s, struct drps_err *err)
{
    int rc = drps_streams_submit(s, err);
    if (rc == 0) rc = drps_streams_flush(s, err);
    while (rc == 0 && drps_aio_under_way(s->aio))
        rc = drps_streams_reap(s, 1, err);
    return rc == 0 ? drps_streams_reap(s, 0, err) : rc;
}

/* However streams go on, they have file_chunks at most; so with as many besides those that are
 * pinned there is always a free one. */
static int grow(struct drps_streams *s, struct drps_err *err)
{
    const uint64_t chunks = s->config.file_chunks + drps_chunk_map_kept(&s->map);
    if (chunks <= s->map.n) return 0;
    if (chunks >= DRPS_NO_CHUNK || chunks > INT64_MAX / s->config.chunk_bytes)
        return drps_err_set(err, -ENOSPC, "%s: %llu chunks are too many", s->config.path,
                            (unsigned long long)chunks);
    int rc = drps_aio_grow(s->aio, chunks * s->config.chunk_bytes, err);
    if (rc == 0 && drps_chunk_map_grow(&s->map, chunks) < 0)
        rc = drps_err_set(err, -ENOMEM, "no memory for a map of %llu chunks",
                          (unsigned long long)chunks);
    return rc;
}

int drps_streams_save_begin(struct drps_streams *s, struct drps_err *err)
{
    int rc = settle(s, err);
    if (rc == 0) rc = grow(s, err);
    return rc == 0 ? drps_aio_sync(s->aio, err) : rc;
}

static int add(struct drps_recwriter *w, const void *data, size_t bytes, struct drps_err *err)
{
    const struct drps_piece piece = {.data = data, .bytes = bytes};
    return drps_recwriter_add(w, &piece, 1, err);
}

static int save_sizes(const struct drps_streams *s, struct drps_recwriter *w, struct drps_err *err)
{
    struct drps_streams_sizes z = {.streams = s->config.n,
                                   .chunk_bytes = s->config.chunk_bytes,
                                   .file_chunks = s->config.file_chunks,
                                   .chunks = s->map.n,
                                   .cursor = s->map.cursor,
                                   .tails = s->tails_n};
    for (size_t i = 0; i < s->config.n; i++)
        z.listed += s->streams[i].chunks;
    return add(w, &z, sizeof(z), err);
}

static int save_pinned(const struct drps_streams *s, struct drps_recwriter *w, struct drps_err *err)
{
    uint64_t *bits = calloc(1, bits_bytes(s->map.n));
    if (!bits) return drps_err_set(err, -ENOMEM, "no memory to save the streams of rows");
    for (uint64_t i = 0; i < s->map.n; i++)
        if (drps_chunk_map_is_pinned(&s->map, (uint32_t)i)) bits[i / 64] |= UINT64_C(1) << i % 64;
    int rc = add(w, bits, bits_bytes(s->map.n), err);
    free(bits);
    return rc;
}

static int save_lists(const struct drps_streams *s, struct drps_recwriter *w,
                      struct drps_streams_entry *entries, struct drps_err *err)
{
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < s->config.n; i++) {
        uint32_t c = s->streams[i].list.first;
        for (; c != DRPS_NO_CHUNK && rc == 0; c = s->map.next[c]) {
            entries[n++] = (struct drps_streams_entry){
                .chunk = c, .stream = (uint32_t)i, .bytes = s->map.bytes[c], .sum = s->map.sums[c]};
            if (n < DRPS_STREAMS_ENTRIES) continue;
            rc = add(w, entries, n * sizeof(*entries), err);
            n = 0;
        }
    }
    return rc == 0 && n ? add(w, entries, n * sizeof(*entries), err) : rc;
}

static int save_tails(const struct drps_streams *s, struct drps_recwriter *w, struct drps_err *err)
{
    int rc = 0;
    for (int32_t b = s->oldest; b != DRPS_STREAMS_NONE && rc == 0; b = s->chunks[b].newer) {
        const struct drps_streams_tail head = {.stream = s->chunks[b].stream,
                                               .bytes = s->chunks[b].bytes};
        const struct drps_piece pieces[] = {{&head, sizeof(head)},
                                            {drps_streams_buffer(s, b), head.bytes}};
        rc = drps_recwriter_add(w, pieces, 2, err);
    }
    return rc;
}

int drps_streams_save(struct drps_streams *s, struct drps_recwriter *w, struct drps_err *err)
{
    struct drps_streams_entry *entries = drps_array_new(DRPS_STREAMS_ENTRIES, sizeof(*entries));
    if (!entries) return drps_err_set(err, -ENOMEM, "no memory to save the streams of rows");
    int rc = save_sizes(s, w, err);
    if (rc == 0) rc = save_pinned(s, w, err);
    if (rc == 0) rc = save_lists(s, w, entries, err);
    if (rc == 0) rc = save_tails(s, w, err);
    free(entries);
    return rc;
}

int drps_streams_pin(struct drps_streams *s, struct drps_err *err)
{
    unsigned save = 0;
    while (save < DRPS_CHUNK_SAVES && s->saves >> save & 1)
        save++;
    if (save == DRPS_CHUNK_SAVES)
        return drps_err_set(err, -EINVAL, "%d saves are there: let go of one", DRPS_CHUNK_SAVES);
    drps_chunk_map_pin_taken(&s->map, save);
    s->saves |= (uint8_t)(1u << save);
    return (int)save;
}

void drps_streams_unpin(struct drps_streams *s, unsigned save)
{
    drps_chunk_map_unpin(&s->map, save);
    s->saves &= (uint8_t) ~(1u << save);
}

/* ---- Restoring ---- */

int drps_streams_read_sizes(const struct drps_streams_config *c, struct drps_streams_sizes *z,
                            struct drps_err *err)
{
    int rc = drps_saved_read(c->saved, z, sizeof(*z), "sizes of streams", err);
    if (rc < 0) return rc;
    if (z->streams != c->n || z->chunk_bytes != c->chunk_bytes || z->file_chunks != c->file_chunks)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: streams of another number or size were saved",
                            c->saved->path);
    const uint64_t most = c->file_chunks * (DRPS_CHUNK_SAVES + 2);
    if (z->chunks < c->file_chunks || z->chunks > most || z->chunks >= DRPS_NO_CHUNK ||
        z->chunks > INT64_MAX / c->chunk_bytes || z->cursor >= z->chunks ||
        z->listed > c->file_chunks || z->tails > c->tails)
        return drps_saved_wrong(c->saved, "sizes of streams", err);
    return 0;
}

int drps_streams_restore_size(const struct drps_streams_config *c, uint64_t *chunks_out,
                              struct drps_err *err)
{
    struct drps_streams_sizes z;
    int rc = drps_streams_read_sizes(c, &z, err);
    if (rc < 0) return rc;
    *chunks_out = z.chunks;
    c->saved->at--; /* drps_streams_restore() reads it, too */
    return 0;
}

static int restore_pinned(struct drps_streams *s, struct drps_err *err)
{
    uint64_t *bits = malloc(bits_bytes(s->map.n));
    if (!bits) return drps_err_set(err, -ENOMEM, "no memory to restore the streams of rows");
    int rc = drps_saved_read(s->config.saved, bits, bits_bytes(s->map.n), "pinned chunks", err);
    for (uint64_t i = 0; i < s->map.n && rc == 0; i++)
        if (bits[i / 64] >> i % 64 & 1)
            drps_chunk_map_pin(&s->map, (uint32_t)i, DRPS_STREAMS_OLDER);
    free(bits);
    return rc;
}

static int restore_chunk(struct drps_streams *s, const struct drps_streams_entry *e,
                         struct drps_err *err)
{
    if (e->chunk >= s->map.n || e->stream >= s->config.n || !e->bytes ||
        e->bytes > s->config.chunk_bytes || drps_chunk_map_is_taken(&s->map, e->chunk))
        return drps_saved_wrong(s->config.saved, "chunks of streams", err);
    struct drps_stream *st = &s->streams[e->stream];
    drps_chunk_map_append(&s->map, &st->list, e->chunk, e->bytes, e->sum);
    drps_chunk_map_written(&s->map, e->chunk);
    drps_chunk_map_pin(&s->map, e->chunk, DRPS_STREAMS_RESTORED);
    st->bytes += e->bytes;
    st->chunks++;
    return 0;
}

static int restore_lists(struct drps_streams *s, uint64_t listed,
                         struct drps_streams_entry *entries, struct drps_err *err)
{
    int rc = 0;
    while (listed && rc == 0) {
        const size_t now = listed < DRPS_STREAMS_ENTRIES ? (size_t)listed : DRPS_STREAMS_ENTRIES;
        rc = drps_saved_read(s->config.saved, entries, now * sizeof(*entries), "chunks of streams",
                             err);
        for (size_t i = 0; i < now && rc == 0; i++)
            rc = restore_chunk(s, &entries[i], err);
        listed -= now;
    }
    return rc;
}

int drps_streams_read_tail(const struct drps_streams_config *c, char *buf,
                           struct drps_streams_tail *tail_out, struct drps_err *err)
{
    size_t n;
    int rc = drps_saved_read_entries(c->saved, buf, 1, DRPS_STREAMS_TAIL_BYTES + c->chunk_bytes, &n,
                                     "unfinished chunks", err);
    if (rc < 0) return rc;
    memcpy(tail_out, buf, DRPS_STREAMS_TAIL_BYTES);
    if (n <= DRPS_STREAMS_TAIL_BYTES || n - DRPS_STREAMS_TAIL_BYTES != tail_out->bytes ||
        tail_out->bytes >= c->chunk_bytes || tail_out->stream >= c->n)
        return drps_saved_wrong(c->saved, "unfinished chunks", err);
    return 0;
}

static int restore_tail(struct drps_streams *s, char *buf, struct drps_err *err)
{
    struct drps_streams_tail tail;
    int rc = drps_streams_read_tail(&s->config, buf, &tail, err);
    if (rc < 0) return rc;
    if (s->streams[tail.stream].tail != DRPS_STREAMS_NONE)
        return drps_saved_wrong(s->config.saved, "unfinished chunks", err);
    return drps_streams_append(s, tail.stream, buf + DRPS_STREAMS_TAIL_BYTES, tail.bytes, err);
}

int drps_streams_restore(struct drps_streams *s, struct drps_err *err)
{
    struct drps_streams_sizes z;
    struct drps_streams_entry *entries = drps_array_new(DRPS_STREAMS_ENTRIES, sizeof(*entries));
    char *buf = malloc(DRPS_STREAMS_TAIL_BYTES + s->config.chunk_bytes);
    int rc = entries && buf ? 0 : drps_err_set(err, -ENOMEM, "no memory to restore streams");
    if (rc == 0) rc = drps_streams_read_sizes(&s->config, &z, err);
    if (rc == 0) rc = restore_pinned(s, err);
    if (rc == 0) rc = restore_lists(s, z.listed, entries, err);
    for (uint64_t i = 0; rc == 0 && i < z.tails; i++)
        rc = restore_tail(s, buf, err);
    if (rc == 0 && drps_chunk_map_kept(&s->map) + s->config.file_chunks > s->map.n)
        rc = drps_saved_wrong(s->config.saved, "sizes of streams", err);
    if (rc == 0) s->map.cursor = z.cursor;
    free(buf);
    free(entries);
    return rc;
}
