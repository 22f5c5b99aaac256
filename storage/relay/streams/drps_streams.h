/*
 * Streams: many append-only byte streams in one preallocated file, each read back front to back.
 * They carry rows from the window that used them last to the window that needs them next, and
 * need the asynchronous file of storage/io.
 *
 *     stream file:  chunks of one size: | stream 7 | stream 2 | stream 7 | free | stream 5 | ...
 *     in memory:    the chunk that a stream is filling (its tail), chunks that are collected or
 *                   being written, chunks read ahead
 *
 * The stream file is a log that goes round. Full tails of whatever streams are collected, and one
 * request writes them to the next free chunks behind the ones before: writes are long and
 * sequential, however many streams there are. The chunk map (chunk_map.h) says where a stream's
 * chunks lie. They are read by a request each (or one for those that lie side by side), many at a
 * time. A chunk of the file is free again when it was read.
 *
 * A stream's last, unfinished chunk is read from memory, if there is a tail for every stream that
 * holds bytes. Where there are fewer, the tail that was appended to longest ago is collected as it
 * is, a *partial chunk*, to make room for another stream's: it takes a whole chunk of the file, and
 * its length is noted. Space is preallocated: a steady state extends and truncates nothing. A
 * checksum of every chunk written stays in memory and is compared when it is read.
 *
 * What streams hold can be saved while they go on (storage/relay/save.h): their chunks stay where
 * they are in the file, pinned, until the save is let go of.
 *
 * streams.c opens the file, streams_write.c fills and writes chunks, streams_read.c reads them
 * back, streams_io.c waits for requests; streams_save.c saves and restores lists of chunks, whose
 * records saved.c reads, and saved_streams.c all that they name; chunk_map.c knows the file's
 * chunks, rowcopy.c copies rows.
 *
 * One thread at a time calls these functions, except where one says otherwise. Every error but a
 * refused configuration is final: only drps_streams_close() may follow.
 */
#ifndef DRPS_RELAY_STREAMS_H
#define DRPS_RELAY_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "storage/io/drps_aio.h"
#include "storage/relay/streams/drps_saved.h"

struct drps_streams; /* opaque */

enum {
    DRPS_STREAMS_RESTORED = 0, /* the save that streams were opened from */
    DRPS_STREAMS_OLDER = 1,    /* all that were there when it was made */
};

struct drps_streams_config {
    const struct drps_io *io;
    const char *path;         /* of the file; borrowed until close */
    struct drps_saved *saved; /* NULL: the file is made. Else it exists, and these records, which
                                 open reads, say what streams hold: other members must be as
                                 they were when it was saved */
    size_t n;                 /* streams */
    uint64_t file_chunks;     /* room of the file: the most chunks that all streams hold at a time,
                              and more, so that free ones lie side by side. Below UINT32_MAX */
    size_t chunk_bytes;       /* a multiple of DRPS_AIO_ALIGN */
    size_t tails;             /* unfinished chunks at a time, at most, >= 1 */
    unsigned behind;          /* chunks collected and being written while others are filled */
    unsigned write_chunks;    /* written by one request, 1 to behind and DRPS_AIO_PIECES_MAX */
    unsigned read_chunks;     /* of memory to read into, >= 1 */
    int threads_only;         /* as of drps_aio_config */
};

DRPS_MUST_CHECK
int drps_streams_open(const struct drps_streams_config *config, struct drps_streams **s_out,
                      struct drps_err *err);
/* The file is emptied, unless a save has it, too. NULL-safe. */
void drps_streams_close(struct drps_streams *s);

/* ---- Writing ---- */

DRPS_MUST_CHECK
int drps_streams_append(struct drps_streams *s, size_t stream, const void *bytes, size_t n,
                        struct drps_err *err);

/* Append rows base + frames[i] * row_bytes, i = 0 .. n - 1. */
DRPS_MUST_CHECK
int drps_streams_append_rows(struct drps_streams *s, size_t stream, const char *base,
                             size_t row_bytes, const uint32_t *frames, size_t n,
                             struct drps_err *err);

/* Hand what was collected over to be written, without waiting for it. */
DRPS_MUST_CHECK
int drps_streams_flush(struct drps_streams *s, struct drps_err *err);

/* ---- Reading: one stream at a time ---- */

/* Begin to read ahead what the stream has on disk so far, without waiting. More may be appended to
 * it after that. */
DRPS_MUST_CHECK
int drps_streams_prefetch(struct drps_streams *s, size_t stream, struct drps_err *err);

/* Read the stream from its first byte; nothing may be appended to it until drps_streams_end(). What
 * is read is gone, unless `keep` is 1. */
DRPS_MUST_CHECK
int drps_streams_begin(struct drps_streams *s, size_t stream, int keep, struct drps_err *err);

/* The next bytes that lie in one piece; *n_out 0 at the end. Valid until drps_streams_skip(). */
DRPS_MUST_CHECK
int drps_streams_peek(struct drps_streams *s, const char **at_out, size_t *n_out,
                      struct drps_err *err);
DRPS_MUST_CHECK
int drps_streams_skip(struct drps_streams *s, size_t n, struct drps_err *err);

/* Read exactly n bytes, or n rows to base + frames[i] * row_bytes. DRPS_E_CORRUPT when the stream
 * ends before. */
DRPS_MUST_CHECK
int drps_streams_take(struct drps_streams *s, void *bytes, size_t n, struct drps_err *err);
DRPS_MUST_CHECK
int drps_streams_take_rows(struct drps_streams *s, char *base, size_t row_bytes,
                           const uint32_t *frames, size_t n, struct drps_err *err);

/* End the reading: without `keep` at the stream's end, which leaves it empty; with it anywhere, and
 * the stream is as it was before. */
DRPS_MUST_CHECK
int drps_streams_end(struct drps_streams *s, struct drps_err *err);

/* ---- Saving, while no stream is read ---- */

/* Write and sync what was collected, and give the file room for what the chunks that streams have
 * take once they are pinned. -ENOSPC: there is none; all is as it was. */
DRPS_MUST_CHECK
int drps_streams_save_begin(struct drps_streams *s, struct drps_err *err);
/* Write the records that say what streams hold, after drps_streams_save_begin(). */
DRPS_MUST_CHECK
int drps_streams_save(struct drps_streams *s, struct drps_recwriter *w, struct drps_err *err);
/* Pin what streams have; returns the number of the save. -EINVAL: there are too many. */
DRPS_MUST_CHECK
int drps_streams_pin(struct drps_streams *s, struct drps_err *err);
/* Let go of a save: of one that is there, once. */
void drps_streams_unpin(struct drps_streams *s, unsigned save);

/* Returns the bytes that the stream holds now. */
uint64_t drps_streams_bytes(const struct drps_streams *s, size_t stream);

/* What was read and written so far, and how. Any thread may ask. */
void drps_streams_stats(const struct drps_streams *s, struct drps_iostat *out);
void drps_streams_about(const struct drps_streams *s, struct drps_aio_about *out);

#endif
