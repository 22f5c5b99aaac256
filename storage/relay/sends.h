/*
 * How many rows each window sends to which later one, and what comes of it when streams share
 * tails. Private to storage/relay/.
 *
 * Both are known before the first step, so that nothing need be guessed: the windows of two epochs
 * are run through shared tails, without a row. Whether that pays depends on the plan. Where samples
 * are in random order, a window sends a little to every later one, and each of these pieces would
 * be a partial chunk. In grid order it sends much to one or two: their tails alone are in use.
 */
#ifndef DRPS_RELAY_SENDS_H
#define DRPS_RELAY_SENDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* What a window sends to one later window. */
struct drps_send {
    uint32_t distance, rows; /* to the window `distance` later, 2 .. windows */
};

struct drps_sends {
    uint32_t windows;
    uint32_t first;         /* the window that training begins with; the caller may set it */
    int known;              /* 0: they were too many for the list, which means nothing then */
    size_t most, n;         /* room in the list; entries */
    struct drps_send *list; /* own: by window, then distance */
    size_t *end;            /* own: [windows] the entry after the last one of each window */
};

/* An empty list that takes memory_bytes at most. 0 or -ENOMEM; drps_sends_destroy() is yours in
 * both cases. */
DRPS_MUST_CHECK
int drps_sends_init(struct drps_sends *sends, uint32_t windows, uint64_t memory_bytes,
                    struct drps_err *err);
void drps_sends_destroy(struct drps_sends *sends);

/* Window w, in turn from 0 on, sends rows[distance] rows; rows [windows + 1]. */
void drps_sends_add(struct drps_sends *sends, uint32_t w, const uint32_t *rows);

/* What an epoch does to the disk when streams share tails. */
struct drps_shared_tails {
    uint64_t sent_bytes; /* rows that leave windows and are not held */
    uint64_t chunks;     /* written and read, partial ones included */
    uint64_t runs;       /* of chunks that one stream writes one after the other */
    uint64_t most;       /* chunks that all streams hold at a time */
};

/* Run what is sent, but for the rows that hold_limit [windows] holds, through streams of
 * chunk_bytes with so many tails, as drps_streams.h has them. sends->known must be 1. 0 or -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_sends_share_tails(const struct drps_sends *sends, const uint32_t *hold_limit,
                           size_t row_bytes, size_t chunk_bytes, size_t tails,
                           struct drps_shared_tails *out, struct drps_err *err);

#endif
