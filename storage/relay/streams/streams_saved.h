/* The records that streams save of themselves: streams_save.c has their order. Private to
 * storage/relay/streams/. */
#ifndef DRPS_STORAGE_RELAY_STREAMS_STREAMS_SAVED_H
#define DRPS_STORAGE_RELAY_STREAMS_STREAMS_SAVED_H

#include "storage/relay/streams/drps_streams.h"

enum { DRPS_STREAMS_ENTRIES = 4096 }; /* of a record */

struct drps_streams_sizes {
    uint64_t streams, chunk_bytes, file_chunks; /* as in drps_streams_config */
    uint64_t chunks, cursor;                    /* of the chunk map */
    uint64_t listed, tails;                     /* chunks and tails that are saved */
};

struct drps_streams_entry {
    uint64_t sum;
    uint32_t chunk, stream, bytes, zero;
};

/* What a tail's record begins with; its bytes follow. */
struct drps_streams_tail {
    uint32_t stream, bytes;
};
#define DRPS_STREAMS_TAIL_BYTES sizeof(struct drps_streams_tail)

/* Read the sizes, which must be those of c. */
DRPS_MUST_CHECK
int drps_streams_read_sizes(const struct drps_streams_config *c, struct drps_streams_sizes *z,
                            struct drps_err *err);

/* Read the next record, a tail, into buf, which has room for DRPS_STREAMS_TAIL_BYTES and a chunk
 * and is aligned to 8. */
DRPS_MUST_CHECK
int drps_streams_read_tail(const struct drps_streams_config *c, char *buf,
                           struct drps_streams_tail *tail_out, struct drps_err *err);

#endif
