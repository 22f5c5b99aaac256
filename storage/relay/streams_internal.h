/*
 * What the parts of the streams share: streams.c opens them, streams_write.c fills chunks and
 * writes them, streams_read.c reads them back, streams_io.c waits for requests. Private to these.
 */
#ifndef DRPS_RELAY_STREAMS_INTERNAL_H
#define DRPS_RELAY_STREAMS_INTERNAL_H

#include "storage/relay/chunk_map.h"
#include "storage/relay/streams.h"

enum {
    DRPS_STREAMS_NONE = -1,
    DRPS_STREAMS_WRITES = 32, /* under way at most */
    DRPS_STREAMS_READS = 128, /* the same */
};

struct drps_stream {
    struct drps_slot_list slots; /* of its chunks */
    uint64_t bytes;              /* of its chunks that are collected, being written or on disk */
    uint32_t chunks;             /* these */
    int32_t tail;                /* buffer being filled, or DRPS_STREAMS_NONE */
};

/* A buffer for writing, while it is a tail and after that. */
struct drps_streams_chunk {
    uint64_t sum;
    uint32_t stream, bytes;
    int32_t older, newer; /* tails by when they were last appended to; DRPS_STREAMS_NONE: none */
};

/* A request that writes: chunks to consecutive slots. */
struct drps_streams_write {
    uint32_t slot, n;
    struct iovec *chunks; /* [write_chunks], of drps_streams.pieces */
};

/* The stream that is being read. Its chunk number i comes to lie in buffer i % read_chunks of those
 * for reading. */
struct drps_streams_reading {
    int64_t stream;        /* DRPS_STREAMS_NONE: nothing is read */
    int begun;             /* not only read ahead: its tail stays where it is */
    uint64_t limit;        /* chunks that may be asked for */
    int keep;              /* slots are not given back */
    uint64_t asked, taken; /* chunks */
    unsigned under_way;    /* requests */
    size_t at;             /* bytes taken of the chunk at hand */
    int verified;          /* the chunk at hand was compared with its checksum */
};

/* A buffer for reading. */
struct drps_streams_place {
    uint32_t slot; /* of the chunk that it is for */
    uint32_t n;    /* chunks of the request that begins here */
    int there;     /* read */
};

struct drps_streams {
    struct drps_streams_config config;
    struct drps_aio *aio;
    char *mem; /* own: [buffers_n + read_chunks][chunk_bytes] */
    size_t mem_bytes;
    size_t buffers_n;                  /* chunks being filled, collected or written */
    struct drps_streams_chunk *chunks; /* own: [buffers_n] */
    int32_t oldest, newest;            /* of the tails */
    size_t tails_n;
    int32_t *free; /* own: [buffers_n] stack of free buffers */
    size_t free_n;
    int32_t *collected; /* own: [write_chunks] buffers to be written by the next request */
    unsigned collected_n;
    struct drps_streams_write writes[DRPS_STREAMS_WRITES];
    struct iovec *pieces;               /* own: [DRPS_STREAMS_WRITES][write_chunks] */
    uint32_t idle[DRPS_STREAMS_WRITES]; /* a stack of writes that are not under way */
    unsigned idle_n;
    struct drps_stream *streams; /* own: [n] */
    struct drps_chunk_map slots;
    struct drps_aio_op pending[DRPS_STREAMS_READS];
    size_t pending_n;
    struct drps_streams_place *places; /* own: [read_chunks] */
    struct drps_streams_reading reading;

    /* Who is told what has finished; set when the streams are opened. */
    void (*written)(struct drps_streams *s, uint32_t number); /* a write */
    void (*came)(struct drps_streams *s, uint32_t place);     /* the read that begins at a place */
    int (*flush)(struct drps_streams *s, struct drps_err *err); /* write what is collected */
};

static inline char *drps_streams_buffer(const struct drps_streams *s, int32_t buffer)
{
    return s->mem + (size_t)buffer * s->config.chunk_bytes;
}

/* Of a chunk of the stream that is read. */
static inline char *drps_streams_place(const struct drps_streams *s, uint64_t chunk)
{
    return drps_streams_buffer(s, (int32_t)(s->buffers_n + chunk % s->config.read_chunks));
}

/* ---- streams_io.c ---- */

/* Hand over the reads that are pending. */
DRPS_MUST_CHECK
int drps_streams_submit(struct drps_streams *s, struct drps_err *err);

/* See what has finished; wait for `least` of it. */
DRPS_MUST_CHECK
int drps_streams_reap(struct drps_streams *s, unsigned least, struct drps_err *err);

/* Something must finish before this thread can go on. */
DRPS_MUST_CHECK
int drps_streams_await_one(struct drps_streams *s, struct drps_err *err);

/* ---- streams_write.c ---- */

/* The stream has no tail from now on; the buffer is the caller's. */
void drps_streams_drop_tail(struct drps_streams *s, size_t stream);

/* ---- What has finished: a write, the read that begins at a place ---- */

void drps_streams_written(struct drps_streams *s, uint32_t number);
void drps_streams_came(struct drps_streams *s, uint32_t place);

#endif
