/* Opening and closing streams; drps_streams.h has the idea, streams_internal.h the memory. */
#include "storage/relay/streams/streams_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

static size_t buffers_needed(const struct drps_streams_config *c)
{
    return c->tails + c->behind;
}

static size_t chunks_in_memory(const struct drps_streams_config *c)
{
    return buffers_needed(c) + c->read_chunks;
}

/* ---- Opening and closing ---- */

void drps_streams_close(struct drps_streams *s)
{
    if (!s) return;
    if (s->saves)
        drps_aio_close(s->aio);
    else
        drps_aio_discard(s->aio);
    drps_pages_free(s->mem, s->mem_bytes);
    free(s->chunks);
    free(s->free);
    free(s->collected);
    free(s->pieces);
    free(s->streams);
    drps_chunk_map_destroy(&s->map);
    free(s->reads);
    free(s);
}

static int allocate(struct drps_streams *s, const struct drps_streams_config *c, uint64_t chunks)
{
    s->buffers_n = buffers_needed(c);
    s->mem_bytes = chunks_in_memory(c) * c->chunk_bytes;
    s->mem = drps_pages_new(s->mem_bytes);
    s->chunks = drps_array_new(s->buffers_n, sizeof(*s->chunks));
    s->free = drps_array_new(s->buffers_n, sizeof(*s->free));
    s->collected = drps_array_new(c->write_chunks, sizeof(*s->collected));
    s->pieces = drps_array_new((size_t)DRPS_STREAMS_WRITES * c->write_chunks, sizeof(*s->pieces));
    s->streams = calloc(c->n + 1, sizeof(*s->streams));
    s->reads = drps_array_new(c->read_chunks, sizeof(*s->reads));
    if (drps_chunk_map_init(&s->map, chunks) < 0) return -ENOMEM;
    return s->mem && s->chunks && s->free && s->collected && s->pieces && s->streams && s->reads
               ? 0
               : -ENOMEM;
}

static void lay_out(struct drps_streams *s, const struct drps_streams_config *c)
{
    while (s->free_n < s->buffers_n) {
        s->free[s->free_n] = (int32_t)(s->buffers_n - 1 - s->free_n);
        s->free_n++;
    }
    for (uint32_t i = 0; i < DRPS_STREAMS_WRITES; i++) {
        s->writes[i].chunks = s->pieces + (size_t)i * c->write_chunks;
        s->idle[s->idle_n++] = DRPS_STREAMS_WRITES - 1 - i;
    }
    for (size_t i = 0; i < c->n; i++)
        s->streams[i] =
            (struct drps_stream){.list = {DRPS_NO_CHUNK, DRPS_NO_CHUNK}, .tail = DRPS_STREAMS_NONE};
}

int drps_streams_open(const struct drps_streams_config *config, struct drps_streams **s_out,
                      struct drps_err *err)
{
    *s_out = NULL;
    if (!config->chunk_bytes || config->chunk_bytes % DRPS_AIO_ALIGN || !config->tails ||
        !config->read_chunks || !config->write_chunks ||
        config->write_chunks > DRPS_AIO_PIECES_MAX || config->behind < config->write_chunks ||
        chunks_in_memory(config) > INT32_MAX ||
        config->write_chunks > UINT32_MAX / config->chunk_bytes || !config->file_chunks ||
        config->file_chunks >= DRPS_NO_CHUNK)
        return drps_err_set(err, -EINVAL, "streams in chunks of %zu bytes", config->chunk_bytes);
    uint64_t chunks = config->file_chunks;
    int rc = config->saved ? drps_streams_restore_size(config, &chunks, err) : 0;
    if (rc < 0) return rc;
    struct drps_streams *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for %zu streams", config->n);
    s->config = *config;
    s->written = drps_streams_written;
    s->came = drps_streams_came;
    s->flush = drps_streams_flush;
    s->reading.stream = s->oldest = s->newest = DRPS_STREAMS_NONE;
    s->saves = config->saved ? 1 << DRPS_STREAMS_RESTORED | 1 << DRPS_STREAMS_OLDER : 0;
    rc = allocate(s, config, chunks);
    if (rc == 0)
        lay_out(s, config);
    else
        rc = drps_err_set(err, rc, "no memory for %zu chunks of %zu bytes",
                          chunks_in_memory(config), config->chunk_bytes);
    const struct drps_aio_config aio = {
        .io = config->io,
        .path = config->path,
        .file = config->saved ? DRPS_AIO_USE : DRPS_AIO_MAKE,
        .file_bytes = chunks * config->chunk_bytes,
        .buffers = s->mem,
        .buffers_bytes = s->mem_bytes,
        .depth = DRPS_STREAMS_WRITES + DRPS_STREAMS_READS,
        .threads_only = config->threads_only,
    };
    if (rc == 0) rc = drps_aio_open(&aio, &s->aio, err);
    if (rc == 0 && config->saved) rc = drps_streams_restore(s, err);
    if (rc < 0) {
        drps_streams_close(s);
        return rc;
    }
    s->config.saved = NULL; /* borrowed until here */
    *s_out = s;
    return 0;
}

/* ---- About ---- */

uint64_t drps_streams_bytes(const struct drps_streams *s, size_t stream)
{
    const struct drps_stream *st = &s->streams[stream];
    return st->bytes + (st->tail == DRPS_STREAMS_NONE ? 0 : s->chunks[st->tail].bytes);
}

void drps_streams_stats(const struct drps_streams *s, struct drps_iostat *out)
{
    drps_aio_stats(s->aio, out);
}

void drps_streams_about(const struct drps_streams *s, struct drps_aio_about *out)
{
    drps_aio_about(s->aio, out);
}
