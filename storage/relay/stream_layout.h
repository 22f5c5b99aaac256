/*
 * How the streams of a relay store share their buffers: the size of chunks, how many there are for
 * filling, writing and reading, and how many windows share a stream. Private to storage/relay/.
 *
 * It needs the number of windows, what a request costs on the disk, and, for shared tails, what
 * windows send to each other (sends.h).
 */
#ifndef DRPS_RELAY_STREAM_LAYOUT_H
#define DRPS_RELAY_STREAM_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "storage/drps_store.h"
#include "storage/relay/sends.h"

/* Bytes of the buffers that are set aside for what is kept for each window; where windows are more
 * than this suffices for, it takes more of the buffers. */
enum { DRPS_STREAM_LAYOUT_WINDOWS_LEAST = 1 << 20 };

struct drps_stream_layout {
    size_t chunk_bytes;
    uint32_t span;         /* windows a group; 0: no groups */
    uint32_t groups;       /* their streams are numbers K .. K + groups - 1, after the windows' */
    unsigned behind;       /* chunks that are collected and written while others are filled */
    unsigned write_chunks; /* written by one request, at most */
    unsigned read_chunks;  /* of memory to read into */
    size_t tails;          /* unfinished chunks at a time; fewer than streams: they share them */
    uint64_t chunks_most;  /* on disk at a time, at most, where tails are shared; 0: as many as all
                              rows take */
};

/* The cheapest layout with a tail for every stream, for the source's windows in buffer_bytes, which
 * also has what is kept for each window, on a disk of config->seek_bytes. DRPS_E_MEMORY_BUDGET when
 * there is none. */
DRPS_MUST_CHECK
int drps_stream_layout_choose(const struct drps_store_config *config, uint64_t buffer_bytes,
                              struct drps_stream_layout *out, struct drps_err *err);

/* Replace *layout by one in which the streams of `sends` share tails, if that is cheaper. 0 or
 * -ENOMEM. hold_limit [windows]: rows that are held are not sent. */
DRPS_MUST_CHECK
int drps_stream_layout_share_tails(const struct drps_store_config *config, uint64_t buffer_bytes,
                                   const struct drps_sends *sends, const uint32_t *hold_limit,
                                   struct drps_stream_layout *layout, struct drps_err *err);

/* 1: buffer_bytes have room for so many windows. */
int drps_stream_layout_fits(uint64_t buffer_bytes, uint32_t windows);

/* Buffers of so many bytes have a layout for any number of windows up to this, on any disk. */
uint64_t drps_stream_layout_sure_bytes(uint64_t windows);

/* Chunks of the stream file, for streams that hold most_bytes at a time, unless the layout knows
 * better, and are sent sent_bytes an epoch: enough for any order of appends, and room for long
 * writes. */
uint64_t drps_stream_layout_file_chunks(const struct drps_stream_layout *l, uint64_t most_bytes,
                                        uint64_t sent_bytes);

#endif
