/*
 * A struct drps_io that passes calls on to another one and injects faults on the way.
 *
 * The countdown counts calls of the chosen operations: the call that brings it to 0 has the effect,
 * once or from then on. Apart from that, a disk of `disk_bytes` can run full, and files that were
 * renamed away before their bytes were synced are counted. Threads: any, as for every drps_io.
 */
#ifndef DRPS_TESTS_FAULT_IO_H
#define DRPS_TESTS_FAULT_IO_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/drps_io.h"

#define FAULT_OPS(X)                                                                               \
    X(OPEN)                                                                                        \
    X(CLOSE)                                                                                       \
    X(READ)                                                                                        \
    X(PREAD)                                                                                       \
    X(PWRITE)                                                                                      \
    X(FSYNC)                                                                                       \
    X(FTRUNCATE) X(FALLOCATE) X(SIZE) X(RENAME) X(UNLINK) X(MKDIR) X(RMDIR) X(EXCHANGE) X(LINK)

enum fault_number {
#define FAULT_NUMBER(name) FAULT_NR_##name,
    FAULT_OPS(FAULT_NUMBER)
#undef FAULT_NUMBER
        FAULT_NUMBERS
};

/* A set of operations is a sum of these. */
enum fault_op {
#define FAULT_BIT(name) FAULT_##name = 1 << FAULT_NR_##name,
    FAULT_OPS(FAULT_BIT)
#undef FAULT_BIT
};

/* FAULT_PWRITE is pwrite and pwritev: the bytes are counted in all pieces together. */
enum fault_effect {
    FAULT_ERROR, /* the call does nothing and returns `code` */
    FAULT_SHORT, /* a transfer moves half of its bytes, at least 1, and says so */
    FAULT_TORN,  /* a write moves half of its bytes, then returns `code` */
    FAULT_AGAIN, /* a write moves all of its bytes, then returns `code`: -EINTR makes it be done
                    once more, after others */
};

enum { FAULT_FILES = 1024, FAULT_PATH_BYTES = 512, FAULT_PIECES = 256, FAULT_REQUESTS = 4096 };

/* A request to io_uring that is under way and will fail. */
struct fault_request {
    int fd, write, code;
    uint64_t offset;
};

struct fault_io {
    struct drps_io io;           /* what the code under test gets */
    const struct drps_io *inner; /* borrowed */

    /* May change while other threads call. */
    atomic_uint ops;       /* FAULT_x | ... */
    atomic_long countdown; /* 0: no fault */
    atomic_int persistent;
    _Atomic enum fault_effect effect;
    atomic_int code; /* -EIO ... */
    _Atomic(const char *)
        only; /* borrowed: faults of pread and pwrite hit files of this name; NULL: all */
    uint64_t
        disk_bytes; /* pwrite fails with -ENOSPC once so many bytes were written; 0: no limit */

    atomic_int fired; /* faults so far */
    atomic_ulong calls[FAULT_NUMBERS];
    atomic_ulong requests; /* that went to io_uring; they are among the calls */
    atomic_ulong written_bytes;

    pthread_mutex_t lock;                       /* of the rest */
    char opened[FAULT_FILES][FAULT_PATH_BYTES]; /* path of each descriptor */
    char unsynced[FAULT_FILES][FAULT_PATH_BYTES];
    size_t unsynced_n;
    size_t unsynced_at_rename; /* files below a renamed path whose bytes were not synced */
    struct fault_request doomed[FAULT_REQUESTS];
    size_t doomed_n;
    char struck[FAULT_PATH_BYTES]; /* what the last open or fsync that failed was for */
};

/* No fault until ops and countdown are set. fault_io_free() it. */
struct fault_io *fault_io_new(const struct drps_io *inner);
void fault_io_free(struct fault_io *f);

/* Let requests go to io_uring where there is one, which count as pread and pwrite. Without this,
 * they are done by threads, with the calls. */
void fault_io_see_requests(struct fault_io *f);

/* Fail the k-th call from now on of the operations in `ops` with `code`. */
void fault_io_arm(struct fault_io *f, unsigned ops, long k, int persistent,
                  enum fault_effect effect, int code);

/* "pwrite", ... of one bit. */
const char *fault_op_name(unsigned op);

#endif
