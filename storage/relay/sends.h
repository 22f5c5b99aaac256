/*
 * How many rows each window sends to which later one, and what comes of it when streams share a
 * pool of tails. Private to storage/relay/.
 *
 * Both are known before the first step, so that a pool need not be guessed: the windows of two
 * epochs are run through it, without a row. Whether that pays depends on the plan. Where samples
 * are in random order, a window sends a little to every later one, and each of it would be a
 * partial chunk. In grid order it sends much to one or two: their tails alone are in use.
 */
#ifndef DRPS_RELAY_SENDS_H
#define DRPS_RELAY_SENDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct drps_send {
    uint32_t way, rows; /* to the window `way` later, 2 .. windows */
};

struct drps_sends {
    uint32_t windows;
    int known;              /* 0: they were too many to be kept */
    size_t most, n;         /* of the list */
    struct drps_send *list; /* own: by window, then way */
    size_t *end;            /* own: [windows] of each in the list */
};

/* For as many as memory_bytes have room for; drps_sends_destroy() is yours, on failure, too. */
DRPS_MUST_CHECK
int drps_sends_init(struct drps_sends *sends, uint32_t windows, uint64_t memory_bytes,
                    struct drps_err *err);
void drps_sends_destroy(struct drps_sends *sends);

/* Window w, the next one, sends rows[way] rows; [windows + 1]. */
void drps_sends_add(struct drps_sends *sends, uint32_t w, const uint32_t *rows);

/* What an epoch does to the disk. */
struct drps_pooled {
    uint64_t sent_bytes; /* rows that leave windows and are not held */
    uint64_t chunks;     /* written and read, partial ones included */
    uint64_t runs;       /* of these: begun by chunks that do not follow one of the same stream */
    uint64_t most;       /* chunks that all streams hold at a time */
};

/* Streams of chunk_bytes and so many tails, of `sends` that are known but for rows that are held
 * (hold.h), as streams.h has them. */
DRPS_MUST_CHECK
int drps_sends_pool(const struct drps_sends *sends, const uint32_t *reach, size_t row_bytes,
                    size_t chunk_bytes, size_t tails, struct drps_pooled *out,
                    struct drps_err *err);

#endif
