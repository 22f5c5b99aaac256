/*
 * What the streams of a saved store hold, read without opening them: one chunk and a record of the
 * list of chunks are in memory, and a few words a stream. Nothing is written.
 */
#ifndef DRPS_STORAGE_RELAY_STREAMS_SAVED_STREAMS_H
#define DRPS_STORAGE_RELAY_STREAMS_SAVED_STREAMS_H

#include "storage/relay/streams/drps_streams.h"

struct drps_saved_streams; /* opaque */

/* Returns the memory that it takes for n streams in such chunks; `chunks` of them in the file while
 * it is opened. */
uint64_t drps_saved_streams_memory(uint64_t n, uint64_t chunk_bytes, uint64_t chunks);

/* Read the records of streams from config->saved, which must stay open until close and stands after
 * them then. Of config, io, path, saved, n, file_chunks, chunk_bytes and tails are used. Errors as
 * of drps_streams_open(). */
DRPS_MUST_CHECK
int drps_saved_streams_open(const struct drps_streams_config *config,
                            struct drps_saved_streams **s_out, struct drps_err *err);
void drps_saved_streams_close(struct drps_saved_streams *s); /* NULL-safe */

uint64_t drps_saved_streams_bytes(const struct drps_saved_streams *s, size_t stream);

/* Go to the first byte of a stream; then read exactly n bytes, any number of times. DRPS_E_CORRUPT
 * when the stream ends before, or a chunk is not what was written. */
void drps_saved_streams_begin(struct drps_saved_streams *s, size_t stream);
DRPS_MUST_CHECK
int drps_saved_streams_take(struct drps_saved_streams *s, void *bytes, size_t n,
                            struct drps_err *err);

#endif
