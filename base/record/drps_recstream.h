/*
 * Record streams: a record file is read front to back, over and over, ahead of its consumer.
 * Threads keep `depth` buffers of verified records full. Memory is depth * buffer_bytes (more only
 * when one record is larger), or, where there is room for it, that of all records, which are then
 * read once. Records may be stored packed: then what is read ahead is held so, and these threads
 * unpack the few records that are next in turn.
 */
#ifndef DRPS_BASE_RECORD_RECSTREAM_H
#define DRPS_BASE_RECORD_RECSTREAM_H

#include "base/record/drps_recfile.h"

struct drps_recstream; /* opaque; owns threads */

/*
 * Unpacks one record, 8-byte aligned like the room that its plain form is written to. Called by
 * reading threads and the consumer's, one at a time. Returns 0 and the bytes of the plain record,
 * or a code with err set.
 */
typedef int (*drps_recstream_unpack)(const void *record, size_t bytes, void *room,
                                     size_t room_bytes, size_t *bytes_out, struct drps_err *err);

/* Zero is the default where 0 is said to have a meaning. */
struct drps_recstream_options {
    uint64_t first, count; /* records of one pass */
    uint64_t passes;       /* how often */
    uint64_t begin;        /* records that the first pass leaves out at its front; below count */
    uint64_t buffer_bytes; /* 0: 1 MiB */
    unsigned depth;        /* buffers; 0: 3 */
    unsigned readers;      /* threads that read, each another buffer; 0: 1, at most 4 */
    int keep; /* 1: room for all records of a pass, as they are used; it is read once, as far ahead
                 of the consumer as the readers get: from `begin` on, then what lies before it, for
                 later passes. Without unpack, depth is not looked at */
    drps_recstream_unpack unpack; /* NULL: records are used as they are stored */
    uint64_t plain_bytes;         /* with unpack: of the largest record, unpacked; no record is
                                     larger as it is stored */
    unsigned plain_records; /* with unpack and not keep: records that are unpacked at a time, the
                        consumer's included; 0: 4 */
};

/* The file is borrowed until close. -EINVAL: `begin` is not below count. */
DRPS_MUST_CHECK
int drps_recstream_open(struct drps_recfile *file, const struct drps_recstream_options *options,
                        struct drps_recstream **s_out, struct drps_err *err);

/*
 * The next record, borrowed until the next call (8-byte aligned). Returns 1, 0 after the last
 * record of the last pass, or the error that stopped the reading thread. One calling thread.
 */
DRPS_MUST_CHECK
int drps_recstream_next(struct drps_recstream *s, const void **record_out, size_t *bytes_out,
                        struct drps_err *err);

/* Time that next() waited for the disk, and bytes and calls of reading so far. */
struct drps_recstream_stats {
    uint64_t wait_ns;
    uint64_t read_bytes;
    uint64_t read_calls;
};
void drps_recstream_stats(struct drps_recstream *s, struct drps_recstream_stats *out);
void drps_recstream_close(struct drps_recstream *s); /* NULL-safe */

/* Returns the memory that a stream over `file` takes. */
uint64_t drps_recstream_memory(const struct drps_recfile *file,
                               const struct drps_recstream_options *options);

#endif
