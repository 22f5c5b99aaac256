/* Writing: rounds are gathered as frames in memory, and stay there until they are durable. */
#include <errno.h>
#include <pthread.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/drps_endian.h"
#include "base/folder/drps_durable.h"
#include "engine/checkpoint/vectors/log_reader.h"
#include "engine/checkpoint/vectors/payload.h"

enum { BEGIN_BYTES = 24 };
static const uint64_t usual_buffer_bytes = 4 << 20;

/* Frames that a thread makes durable; nobody else touches them, the file or `named` meanwhile. */
struct writing {
    int under_way;
    pthread_t thread;
    unsigned char *bytes; /* own */
    size_t n, cap;        /* n: 0 when there are none */
    int rc;
    struct drps_err err;
};

struct drps_vector_log {
    const struct drps_checkpoints *c;
    struct drps_vector_log_options options;
    struct snapshot snapshot; /* the newest checkpoint */
    struct row_set changed;   /* by the round that is added */
    char *path;               /* own: of the log */
    int fd;                   /* -1: the file is not there yet */
    int named;                /* 1: its name is durable */
    uint64_t synced;          /* its bytes that are durable */
    unsigned char *buffer;    /* own: frames that follow them, and those that are being written */
    size_t buffered, cap;
    struct writing writing;
    uint64_t logged, replay_ns; /* since the checkpoint: bytes of rounds, time to apply them */
    struct drps_vector_log_stats stats;
};

static int no_memory(struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to log sufficient vectors");
}

/* ---- Frames ---- */

static uint64_t frame_bytes(uint64_t payload)
{
    return FRAME_HEAD_BYTES + frame_padded(payload);
}

/* Room for a frame behind those that are held. */
static int reserve(struct drps_vector_log *log, uint64_t payload, struct drps_err *err)
{
    return drps_array_reserve(&log->buffer, &log->cap, log->buffered + (size_t)frame_bytes(payload),
                              1)
               ? no_memory(err)
               : 0;
}

static unsigned char *payload_at(struct drps_vector_log *log)
{
    return log->buffer + log->buffered + FRAME_HEAD_BYTES;
}

/* Completes the frame whose payload lies there already. */
static void put_frame(struct drps_vector_log *log, enum frame_kind kind, uint64_t round,
                      uint64_t payload, uint64_t apply_ns)
{
    unsigned char *at = payload_at(log);
    const struct frame f = {.kind = kind,
                            .round = round,
                            .offset = log->synced + log->writing.n + log->buffered,
                            .synced = log->synced,
                            .bytes = payload,
                            .apply_ns = apply_ns,
                            .checksum = drps_checksum(at, (size_t)payload)};
    memset(at + payload, 0, (size_t)(frame_padded(payload) - payload));
    frame_encode(&f, at - FRAME_HEAD_BYTES);
    log->buffered += (size_t)frame_bytes(payload);
}

/* The log of a checkpoint that has none; there is room for its first frame. */
static void begin_frames(struct drps_vector_log *log)
{
    const struct drps_matrix_shape *shape = &log->snapshot.shape;
    log->synced = log->logged = log->replay_ns = 0;
    log->buffered = 0;
    log->named = 0;
    drps_put_u64(payload_at(log), shape->rows);
    drps_put_u64(payload_at(log) + 8, shape->row_bytes);
    drps_put_u64(payload_at(log) + 16, shape->dim);
    put_frame(log, FRAME_BEGIN, log->snapshot.round, BEGIN_BYTES, 0);
}

/* ---- Checkpoints ---- */

static int keep_newest(const struct drps_vector_log *log, struct drps_err *err)
{
    const uint64_t keep = log->options.keep, number = log->snapshot.number;
    return drps_checkpoints_keep(log->c, number > keep ? number - keep + 1 : 1, number, 0, err);
}

/* A checkpoint after the last round; from now on its log is written. */
static int take_snapshot(struct drps_vector_log *log, const void *matrix, const json_t *manifest,
                         struct drps_err *err)
{
    struct snapshot s = log->snapshot;
    uint64_t bytes;
    s.number++;
    s.round = log->stats.round;
    char *path = snapshot_log(log->c, s.number); /* what needs memory comes first */
    int rc = path ? reserve(log, BEGIN_BYTES, err) : no_memory(err);
    if (rc == 0) rc = snapshot_write(log->c, &s, matrix, manifest, &bytes, err);
    if (rc < 0) {
        free(path);
        return rc;
    }
    drps_io_close(log->c->io, log->fd);
    free(log->path);
    log->fd = -1;
    log->path = path;
    log->snapshot = s;
    log->stats.snapshots++;
    log->stats.rows_bytes += bytes;
    begin_frames(log);
    return keep_newest(log, err);
}

static int newest_number(const struct drps_checkpoints *c, uint64_t *number_out,
                         struct drps_err *err)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    size_t n;
    int rc = drps_checkpoints_list(c, numbers, &n, err);
    *number_out = rc == 0 && n ? numbers[0] : 0;
    return rc;
}

/* ---- Beginning ---- */

static int check_options(const struct drps_matrix_shape *shape,
                         const struct drps_vector_log_options *options, struct drps_err *err)
{
    if (shape->rows > UINT32_MAX || !shape->dim || shape->row_bytes / sizeof(float) < shape->dim)
        return drps_err_set(err, -EINVAL, "a matrix of %llu rows of %zu bytes and %u parameters",
                            (unsigned long long)shape->rows, shape->row_bytes, shape->dim);
    if (options->keep > DRPS_CHECKPOINT_LIST_MOST)
        return drps_err_set(err, -EINVAL, "%llu checkpoints cannot be kept, only %d",
                            (unsigned long long)options->keep, DRPS_CHECKPOINT_LIST_MOST);
    return 0;
}

static int log_new(const struct drps_checkpoints *c, const struct drps_matrix_shape *shape,
                   const struct drps_vector_log_options *options, struct drps_vector_log **log_out,
                   struct drps_err *err)
{
    int rc = check_options(shape, options, err);
    if (rc < 0) return rc;
    struct drps_vector_log *log = calloc(1, sizeof(*log));
    if (!log) return no_memory(err);
    *log = (struct drps_vector_log){.c = c, .options = *options, .fd = -1};
    log->snapshot.shape = *shape;
    if (!options->buffer_bytes) log->options.buffer_bytes = usual_buffer_bytes;
    if (!options->keep) log->options.keep = 1;
    if (row_set_init(&log->changed, shape->rows) < 0) {
        drps_vector_log_close(log);
        return no_memory(err);
    }
    *log_out = log;
    return 0;
}

void drps_vector_log_close(struct drps_vector_log *log)
{
    if (!log) return;
    if (log->writing.under_way) (void)pthread_join(log->writing.thread, NULL);
    free(log->writing.bytes);
    drps_io_close(log->c->io, log->fd);
    row_set_destroy(&log->changed);
    free(log->buffer);
    free(log->path);
    free(log);
}

int drps_vector_log_begin(const struct drps_checkpoints *c, const struct drps_matrix_shape *shape,
                          const struct drps_vector_log_options *options, uint64_t round,
                          const void *matrix, const json_t *manifest,
                          struct drps_vector_log **log_out, struct drps_err *err)
{
    struct drps_vector_log *log = NULL;
    *log_out = NULL;
    int rc = log_new(c, shape, options, &log, err);
    if (rc < 0) return rc;
    log->stats.round = round;
    rc = newest_number(c, &log->snapshot.number, err);
    if (rc == 0) rc = take_snapshot(log, matrix, manifest, err);
    if (rc == 0)
        *log_out = log;
    else
        drps_vector_log_close(log);
    return rc;
}

/* ---- Going on ---- */

/* Read the log up to `round`: where it ends is where writing goes on. */
static int find_end(struct drps_vector_log *log, uint64_t round, struct drps_err *err)
{
    struct log_reader r;
    struct frame f;
    int rc = log_reader_open(&r, log->c->io, log->path, &log->snapshot, err);
    if (rc < 0) return rc;
    while (r.round < round && (rc = log_reader_next(&r, &f, err)) == 1) {
        log->logged += frame_bytes(f.bytes);
        log->replay_ns += f.apply_ns;
    }
    log->synced = r.at;
    log->stats.round = r.round;
    if (rc >= 0 && r.round < round)
        rc = drps_err_set(err, DRPS_E_NOT_FOUND,
                          "round %llu is not covered by %s: the last one there is %llu",
                          (unsigned long long)round, log->c->dir, (unsigned long long)r.round);
    log_reader_close(&r);
    return rc < 0 ? rc : 0;
}

/* Cut off what follows, and make the rest durable. */
static int cut(struct drps_vector_log *log, struct drps_err *err)
{
    const struct drps_io *io = log->c->io;
    int rc = reserve(log, BEGIN_BYTES, err);
    if (rc == 0) rc = drps_io_open(io, log->path, O_RDWR | O_CREAT | O_NOFOLLOW, &log->fd, err);
    if (rc == 0) rc = drps_io_resize(io, log->fd, log->path, log->synced, err);
    if (rc == 0) rc = drps_io_sync(io, log->fd, log->path, err);
    if (rc == 0) rc = drps_sync_parent(io, log->path, err);
    if (rc == 0 && !log->synced) begin_frames(log);
    log->named = 1;
    return rc;
}

/* Go on with the log of this checkpoint; `newer`: checkpoints after it are removed before. */
static int open_log(const struct drps_checkpoints *c, const struct snapshot *s,
                    const struct drps_vector_log_options *options, uint64_t round, int newer,
                    struct drps_vector_log **log_out, struct drps_err *err)
{
    struct drps_vector_log *log = NULL;
    int rc = log_new(c, &s->shape, options, &log, err);
    if (rc < 0) return rc;
    log->snapshot = *s;
    log->path = snapshot_log(c, s->number);
    rc = log->path ? find_end(log, round, err) : no_memory(err);
    if (rc == 0 && newer) rc = drps_checkpoints_keep(c, 1, s->number, 0, err);
    if (rc == 0) rc = cut(log, err);
    if (rc == 0)
        *log_out = log;
    else
        drps_vector_log_close(log);
    return rc;
}

int drps_vector_log_resume(const struct drps_checkpoints *c,
                           const struct drps_vector_log_options *options, uint64_t round,
                           struct drps_vector_log **log_out, struct drps_err *err)
{
    struct drps_checkpoint *cp;
    struct snapshot s;
    *log_out = NULL;
    int rc = snapshot_open(c, round, &cp, &s, err);
    drps_checkpoint_close(cp);
    return rc == 0 ? open_log(c, &s, options, round, 1, log_out, err) : rc;
}

int drps_vector_log_open(const struct drps_checkpoints *c, uint64_t number,
                         const struct drps_vector_log_options *options, uint64_t round,
                         struct drps_vector_log **log_out, struct drps_err *err)
{
    struct drps_checkpoint *cp;
    struct snapshot s;
    *log_out = NULL;
    int rc = drps_checkpoint_open(c, number, &cp, err);
    if (rc == 0) rc = snapshot_read(cp, number, &s, err);
    drps_checkpoint_close(cp);
    return rc == 0 ? open_log(c, &s, options, round, 0, log_out, err) : rc;
}

/* ---- Rounds ---- */

static int add_round(struct drps_vector_log *log, const struct drps_vector_round *round,
                     const void *matrix, uint64_t apply_ns, struct drps_err *err)
{
    const struct drps_matrix_shape *shape = &log->snapshot.shape;
    row_set_of(&log->changed, round);
    const uint64_t as_rows = drps_vector_log_rows_bytes(shape, log->changed.n);
    const uint64_t as_vectors = drps_vector_log_bytes(shape, round);
    const int rows = round->all_rows || as_rows <= as_vectors;
    const uint64_t bytes = rows ? as_rows : as_vectors, payload = bytes + round->note_bytes;
    int rc = reserve(log, payload, err);
    if (rc < 0) return rc;
    if (rows)
        payload_put_rows(shape, &log->changed, matrix, payload_at(log));
    else
        payload_put_vectors(shape, round, payload_at(log));
    drps_put_u32(payload_at(log) + 4, round->note_bytes);
    if (round->note_bytes) memcpy(payload_at(log) + bytes, round->note, round->note_bytes);
    put_frame(log, rows ? FRAME_ROWS : FRAME_VECTORS, round->number, payload, apply_ns);
    *(rows ? &log->stats.as_rows : &log->stats.as_vectors) += 1;
    log->logged += frame_bytes(payload);
    log->stats.log_bytes += frame_bytes(payload);
    return 0;
}

int drps_vector_log_add(struct drps_vector_log *log, const struct drps_vector_round *round,
                        const void *matrix, uint64_t apply_ns, struct drps_err *err)
{
    if (round->number != log->stats.round + 1)
        return drps_err_set(err, -EINVAL, "round %llu cannot be logged after round %llu",
                            (unsigned long long)round->number,
                            (unsigned long long)log->stats.round);
    if (round->note_bytes > DRPS_VECTOR_NOTE_MOST)
        return drps_err_set(err, -EINVAL, "a note of %u bytes cannot be logged", round->note_bytes);
    for (uint32_t b = 0; b < round->n; b++)
        if (round->batches[b].dim != log->snapshot.shape.dim)
            return drps_err_set(err, -EINVAL, "vectors of %u floats cannot be logged, only of %u",
                                round->batches[b].dim, log->snapshot.shape.dim);
    int rc = add_round(log, round, matrix, apply_ns, err);
    if (rc < 0) return rc;
    log->stats.round = round->number;
    log->replay_ns += apply_ns;
    return log->buffered < log->options.buffer_bytes ? 0 : drps_vector_log_flush(log, err);
}

/* ---- Making them durable ---- */

/* Writes frames behind those that are durable. */
static int write_out(struct drps_vector_log *log, const unsigned char *bytes, size_t n,
                     struct drps_err *err)
{
    const struct drps_io *io = log->c->io;
    int rc = 0;
    if (log->fd < 0) rc = drps_io_open(io, log->path, O_RDWR | O_CREAT | O_NOFOLLOW, &log->fd, err);
    if (rc == 0) rc = drps_io_write_at(io, log->fd, bytes, n, log->synced, log->path, err);
    if (rc == 0) rc = drps_io_sync(io, log->fd, log->path, err);
    if (rc == 0 && !log->named) rc = drps_sync_parent(io, log->path, err);
    if (rc == 0) log->named = 1;
    return rc;
}

static void *write_aside(void *ctx)
{
    struct drps_vector_log *log = ctx;
    struct writing *w = &log->writing;
    w->rc = write_out(log, w->bytes, w->n, &w->err);
    return NULL;
}

/* Frames that could not be written come before those that were added since. */
static int take_back(struct drps_vector_log *log, struct drps_err *err)
{
    struct writing *w = &log->writing;
    if (drps_array_reserve(&w->bytes, &w->cap, w->n + log->buffered, 1)) return no_memory(err);
    if (log->buffered) memcpy(w->bytes + w->n, log->buffer, log->buffered);
    unsigned char *spare = log->buffer;
    const size_t cap = log->cap;
    log->buffer = w->bytes;
    log->cap = w->cap;
    log->buffered += w->n;
    w->bytes = spare;
    w->cap = cap;
    w->n = 0;
    return 0;
}

/* Waits for the thread. */
static int wait_for_writing(struct drps_vector_log *log, struct drps_err *err)
{
    struct writing *w = &log->writing;
    if (w->under_way) {
        (void)pthread_join(w->thread, NULL); /* it is there, and joined once */
        w->under_way = 0;
        if (w->rc == 0) {
            log->synced += w->n;
            w->n = 0;
        }
    }
    if (!w->n) return 0;
    int rc = take_back(log, err);
    return rc < 0 ? rc : drps_err_set(err, w->rc, "%s", w->err.text);
}

int drps_vector_log_sync(struct drps_vector_log *log, struct drps_err *err)
{
    int rc = wait_for_writing(log, err);
    if (rc < 0 || !log->buffered) return rc;
    rc = write_out(log, log->buffer, log->buffered, err);
    if (rc < 0) return rc;
    log->synced += log->buffered;
    log->buffered = 0;
    return 0;
}

int drps_vector_log_flush(struct drps_vector_log *log, struct drps_err *err)
{
    struct writing *w = &log->writing;
    if (!log->options.background) return drps_vector_log_sync(log, err);
    int rc = wait_for_writing(log, err);
    if (rc < 0 || !log->buffered) return rc;
    const struct writing spare = *w;
    *w = (struct writing){.bytes = log->buffer, .n = log->buffered, .cap = log->cap};
    log->buffer = spare.bytes;
    log->cap = spare.cap;
    log->buffered = 0;
    rc = pthread_create(&w->thread, NULL, write_aside, log);
    w->under_way = rc == 0;
    if (rc == 0) return 0;
    rc = take_back(log, err); /* there is nothing to move: it cannot fail for memory */
    return rc < 0 ? rc : drps_vector_log_sync(log, err);
}

int drps_vector_log_due(const struct drps_vector_log *log)
{
    const struct drps_matrix_shape *shape = &log->snapshot.shape;
    if (!log->logged) return 0;
    return log->logged >= shape->rows * shape->row_bytes ||
           (log->options.replay_ns && log->replay_ns > log->options.replay_ns);
}

int drps_vector_log_snapshot(struct drps_vector_log *log, const void *matrix,
                             const json_t *manifest, struct drps_err *err)
{
    int rc = drps_vector_log_sync(log, err);
    return rc < 0 ? rc : take_snapshot(log, matrix, manifest, err);
}

void drps_vector_log_stats(const struct drps_vector_log *log, struct drps_vector_log_stats *out)
{
    *out = log->stats;
}
