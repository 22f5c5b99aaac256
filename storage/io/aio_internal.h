/*
 * What aio.c, aio_request.c and the two engines share. aio.c checks operations and makes each a
 * request, aio_request.c knows how far a request has come, aio_uring.c and aio_threads.c have the
 * system carry them out. Private to storage/io/.
 */
#ifndef DRPS_STORAGE_IO_AIO_INTERNAL_H
#define DRPS_STORAGE_IO_AIO_INTERNAL_H

#include <pthread.h>

#include "storage/io/drps_aio.h"

/* A request: an operation under way. While an engine has it, only the engine touches it. */
struct drps_aio_request {
    char *buf;
    const struct iovec *pieces; /* NULL: buf */
    unsigned pieces_n;
    uint64_t offset;
    uint64_t start_ns;
    uint32_t bytes;
    uint32_t moved; /* of these bytes; the rest is still to do */
    uint32_t tag;
    int write;
    int stalls; /* calls in a row that moved nothing */
    int result; /* when finished: 0 or a negative code */
};

struct drps_aio_engine {
    const char *name;
    /* Get ready; aio->engine_state has the engine's own memory. On failure, stop() is called. */
    int (*start)(struct drps_aio *aio, struct drps_err *err);
    /* Take n requests over, by their numbers; at most aio->depth are ever with the engine. */
    int (*submit)(struct drps_aio *aio, const uint32_t *requests, size_t n, struct drps_err *err);
    /* Give finished requests back: at least `least` (no more than the engine has, nor than cap). A
     * failed operation is no failure of the call. */
    int (*reap)(struct drps_aio *aio, size_t least, uint32_t *requests_out, size_t cap,
                size_t *n_out, struct drps_err *err);
    /* Returns when nothing touches the buffers any more. Accepts what a failed start() left. */
    void (*stop)(struct drps_aio *aio);
};

extern const struct drps_aio_engine drps_aio_uring;
extern const struct drps_aio_engine drps_aio_threads;

struct drps_aio {
    const struct drps_aio_engine *engine; /* NULL until one has started */
    void *engine_state;                   /* own, by the engine */
    const struct drps_io *io;             /* borrowed */
    const char *path;                     /* borrowed */
    enum drps_aio_file file;
    uint64_t file_bytes;
    uint32_t align;
    char *buffers; /* borrowed */
    size_t buffers_bytes;
    size_t register_bytes; /* a registered piece of the buffers, at most */
    int fd;                /* -1: not open */
    unsigned depth;
    unsigned under_way;
    uint32_t *free; /* own [depth]: a stack of the requests that are not in use */
    unsigned free_n;
    uint32_t *finished;                /* own [depth]: requests that the engine gives back */
    struct drps_aio_request *requests; /* own [depth] */
    uint64_t read_end, write_end;      /* where the last read ends, and the last write */
    struct drps_aio_about about;
    struct drps_err failure; /* kept for all later calls */
    pthread_mutex_t *lock;   /* own; guards io_stats, which any thread may ask a const aio for */
    struct drps_iostat io_stats;
};

/* drps_aio_open(), with registered pieces of at most register_bytes (a multiple of DRPS_AIO_ALIGN):
 * lets a test have operations that cross from one to the next. */
DRPS_MUST_CHECK
int drps_aio_open_pieces(const struct drps_aio_config *config, size_t register_bytes,
                         struct drps_aio **aio_out, struct drps_err *err);

/* Note in about.why that something is not as wished. */
void drps_aio_note(struct drps_aio *aio, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Memory that the next call for a request moves: one buffer, or pieces. */
struct drps_aio_part {
    char *buf;
    uint32_t bytes;
    const struct iovec *pieces; /* NULL: buf */
    unsigned pieces_n;
};

/* Returns the memory for the next call: what is left from request->moved on, or, where one of the
 * pieces was moved in part, the rest of that piece. */
struct drps_aio_part drps_aio_rest(const struct drps_aio_request *request);

/* The same, no more than the seam's table lets the kernel move of it; 0 bytes: nothing. */
struct drps_aio_part drps_aio_asked(const struct drps_aio *aio,
                                    const struct drps_aio_request *request);

/* What the table makes of the kernel's result for that part. */
int64_t drps_aio_told(const struct drps_aio *aio, const struct drps_aio_request *request, int got);

/*
 * A call for the rest of the request returned `got`, a count or -errno. Returns 1 when the
 * operation has finished, with request->result set; 0 when the rest from request->moved on is to be
 * called for.
 */
int drps_aio_advance(const struct drps_aio *aio, struct drps_aio_request *request, int64_t got);

/* Wait before asking again for what was refused (-EAGAIN) so many times in a row, from 1: longer
 * each time, up to 4 ms. */
void drps_aio_pause(int refusals);

#endif
