/* The records that streams save of themselves: streams_save.c has their order. Private to
 * storage/relay/streams/. */
#ifndef DRPS_STORAGE_RELAY_STREAMS_STREAMS_SAVED_H
#define DRPS_STORAGE_RELAY_STREAMS_STREAMS_SAVED_H

#include "storage/relay/streams/drps_saved.h"

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

#endif
