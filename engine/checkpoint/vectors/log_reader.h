/*
 * Reading a log from front to back, up to where power cut it off. Private to
 * engine/checkpoint/vectors/.
 */
#ifndef DRPS_VECTORS_LOG_READER_H
#define DRPS_VECTORS_LOG_READER_H

#include "engine/checkpoint/vectors/frame.h"
#include "engine/checkpoint/vectors/snapshot.h"

struct log_reader {
    const struct drps_io *io;
    const char *path; /* borrowed */
    int fd;           /* -1: there is no log */
    uint64_t size;
    uint64_t at;            /* where the next frame begins, and whole rounds end */
    uint64_t round;         /* of the last whole frame */
    unsigned char *payload; /* own: of that frame, 8-byte aligned */
    size_t cap;
};

/* Open the log of a checkpoint, which may not be there, and check whose it is. */
DRPS_MUST_CHECK
int log_reader_open(struct log_reader *r, const struct drps_io *io, const char *path,
                    const struct snapshot *s, struct drps_err *err);
void log_reader_close(struct log_reader *r);

/* The next round: 1, and its payload lies in r->payload; 0: there is none; DRPS_E_CORRUPT. */
DRPS_MUST_CHECK
int log_reader_next(struct log_reader *r, struct frame *out, struct drps_err *err);

#endif
