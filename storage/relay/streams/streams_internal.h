/*
 * The memory of the streams, which these files share: streams.c opens them, streams_write.c fills
 * chunks and writes them, streams_read.c reads them back, streams_save.c saves them, streams_io.c
 * waits for requests. Private to them.
 */
#ifndef DRPS_RELAY_STREAMS_INTERNAL_H
#define DRPS_RELAY_STREAMS_INTERNAL_H

#include "storage/relay/streams/chunk_map.h"
#include "storage/relay/streams/drps_streams.h"

enum {
    DRPS_STREAMS_NONE = -1,
    DRPS_STREAMS_WRITES = 32, /* under way at most */
    DRPS_STREAMS_READS = 128, /* the same */
};

struct drps_stream {
    struct drps_chunk_list list; /* its chunks in the file */
    uint64_t bytes;              /* in chunks that are collected, being written or on disk */
    uint32_t chunks;             /* how many chunks that are */
    int32_t tail;                /* buffer being filled, or DRPS_STREAMS_NONE */
};

/* A buffer for writing, while it is a tail and after that. */
struct drps_streams_chunk {
    uint64_t sum;
    uint32_t stream, bytes;
    int32_t older, newer; /* tails by when they were last appended to; DRPS_STREAMS_NONE: none */
};

/* A request that writes n chunks side by side in the file. */
struct drps_streams_write {
    uint32_t first, n;    /* chunks of the file */
    struct iovec *chunks; /* [write_chunks], of drps_streams.pieces */
};

/* The stream that is being read. Its chunk number i is read into buffer i % read_chunks of those
 * for reading. */
struct drps_streams_reading {
    int64_t stream;        /* DRPS_STREAMS_NONE: nothing is read */
    int begun;             /* 0: read ahead only; 1: its tail must stay in memory */
    uint64_t limit;        /* chunks that may be asked for */
    int keep;              /* 1: chunks that were read stay in the stream */
    uint64_t asked, taken; /* chunks */
    unsigned under_way;    /* requests */
    size_t at;             /* bytes taken of the chunk at hand */
    int verified;          /* the chunk at hand was compared with its checksum */
};

/* A buffer for reading. */
struct drps_streams_read {
    uint32_t chunk; /* of the file, that it is for */
    uint32_t n;     /* chunks of the request that begins here */
    int there;      /* 1: the chunk was read */
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
    struct drps_chunk_map map;
    uint8_t saves; /* bit k: there is a save number k */
    struct drps_aio_op pending[DRPS_STREAMS_READS];
    size_t pending_n;
    struct drps_streams_read *reads; /* own: [read_chunks] */
    struct drps_streams_reading reading;

    /* Who is told what has finished; set when the streams are opened. */
    void (*written)(struct drps_streams *s, uint32_t number);   /* a write */
    void (*came)(struct drps_streams *s, uint32_t read);        /* the request that begins there */
    int (*flush)(struct drps_streams *s, struct drps_err *err); /* write what is collected */
};

static inline char *drps_streams_buffer(const struct drps_streams *s, int32_t buffer)
{
    return s->mem + (size_t)buffer * s->config.chunk_bytes;
}

/* Returns the buffer for chunk number `nth` of the stream that is read. */
static inline char *drps_streams_read_buffer(const struct drps_streams *s, uint64_t nth)
{
    return drps_streams_buffer(s, (int32_t)(s->buffers_n + nth % s->config.read_chunks));
}

/* ---- streams_io.c ---- */

/* Hand over the reads that are pending. */
DRPS_MUST_CHECK
int drps_streams_submit(struct drps_streams *s, struct drps_err *err);

/* See which requests have finished; wait for at least `least` of them. */
DRPS_MUST_CHECK
int drps_streams_reap(struct drps_streams *s, unsigned least, struct drps_err *err);

/* Wait until one request has finished; what was collected is written when nothing else is under
 * way. */
DRPS_MUST_CHECK
int drps_streams_await_one(struct drps_streams *s, struct drps_err *err);

/* ---- streams_write.c ---- */

/* The stream has no tail from now on; the buffer is the caller's. */
void drps_streams_drop_tail(struct drps_streams *s, size_t stream);

/* ---- streams_save.c ---- */

/* Read how many chunks the file has. */
DRPS_MUST_CHECK
int drps_streams_restore_size(const struct drps_streams_config *c, uint64_t *chunks_out,
                              struct drps_err *err);
/* Read what streams hold, after that. */
DRPS_MUST_CHECK
int drps_streams_restore(struct drps_streams *s, struct drps_err *err);

/* ---- Called when write `number`, or the request that begins at reads[read], has finished ---- */

void drps_streams_written(struct drps_streams *s, uint32_t number);
void drps_streams_came(struct drps_streams *s, uint32_t read);

#endif
