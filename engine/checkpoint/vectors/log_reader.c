/*
 * Where a frame is not whole, power may have gone while it was written; then nothing behind it was
 * durable either, whatever is found there. But a later frame that was written when this place was
 * durable already says that it is damaged.
 */
#include "engine/checkpoint/vectors/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/drps_endian.h"

enum { LOOK_BYTES = 1 << 16, BEGIN_BYTES = 24 };

/* ---- One frame ---- */

static int read_payload(struct log_reader *r, const struct frame *f, struct drps_err *err)
{
    if (drps_array_reserve(&r->payload, &r->cap, (size_t)f->bytes, 1))
        return drps_err_set(err, -ENOMEM, "no memory for a round of %llu bytes of %s",
                            (unsigned long long)f->bytes, r->path);
    return drps_io_read_at(r->io, r->fd, r->payload, (size_t)f->bytes, r->at + FRAME_HEAD_BYTES,
                           r->path, err);
}

/* 1: a whole frame begins at r->at; 0: it does not. */
static int read_frame(struct log_reader *r, struct frame *out, struct drps_err *err)
{
    unsigned char head[FRAME_HEAD_BYTES];
    const uint64_t left = r->size - r->at;
    if (left < FRAME_HEAD_BYTES) return 0;
    int rc = drps_io_read_at(r->io, r->fd, head, sizeof(head), r->at, r->path, err);
    if (rc < 0) return rc;
    if (!frame_decode(head, r->at, out) || out->bytes > left - FRAME_HEAD_BYTES ||
        frame_padded(out->bytes) > left - FRAME_HEAD_BYTES)
        return 0;
    rc = read_payload(r, out, err);
    if (rc < 0) return rc;
    return drps_checksum(r->payload, (size_t)out->bytes) == out->checksum;
}

/* ---- What is not whole ---- */

/* Whether a frame that begins among the n bytes read from `from` says that `at` was durable. */
static int says_durable(const unsigned char *bytes, size_t n, uint64_t from, uint64_t at)
{
    struct frame f;
    for (size_t i = 0; i + FRAME_HEAD_BYTES <= n; i += FRAME_UNIT)
        if (frame_decode(bytes + i, from + i, &f) && f.synced > at) return 1;
    return 0;
}

static int check_not_damaged(const struct log_reader *r, struct drps_err *err)
{
    unsigned char *bytes = malloc(LOOK_BYTES);
    int rc = bytes ? 0 : drps_err_set(err, -ENOMEM, "no memory to read %s", r->path);
    uint64_t from = r->at + FRAME_UNIT;
    while (rc == 0 && from + FRAME_HEAD_BYTES <= r->size) {
        const size_t n = r->size - from < LOOK_BYTES ? (size_t)(r->size - from) : LOOK_BYTES;
        rc = drps_io_read_at(r->io, r->fd, bytes, n, from, r->path, err);
        if (rc == 0 && says_durable(bytes, n, from, r->at))
            rc = drps_err_set(err, DRPS_E_CORRUPT,
                              "%s is damaged: what follows round %llu, at byte %llu, is no round",
                              r->path, (unsigned long long)r->round, (unsigned long long)r->at);
        from += LOOK_BYTES - FRAME_HEAD_BYTES;
    }
    free(bytes);
    return rc;
}

/* Like read_frame(), but 0 only where power may have cut the log off. */
static int next_frame(struct log_reader *r, struct frame *out, struct drps_err *err)
{
    int rc = r->fd < 0 ? 0 : read_frame(r, out, err);
    if (rc == 1) r->at += FRAME_HEAD_BYTES + frame_padded(out->bytes);
    return rc || r->fd < 0 ? rc : check_not_damaged(r, err);
}

/* ---- The log ---- */

static int check_begin(const struct log_reader *r, const struct frame *f, const struct snapshot *s,
                       struct drps_err *err)
{
    const struct drps_matrix_shape *shape = &s->shape;
    if (f->kind == FRAME_BEGIN && f->bytes == BEGIN_BYTES && f->round == s->round &&
        drps_get_u64(r->payload) == shape->rows &&
        drps_get_u64(r->payload + 8) == shape->row_bytes &&
        drps_get_u64(r->payload + 16) == shape->dim)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s is the log of another checkpoint", r->path);
}

int log_reader_open(struct log_reader *r, const struct drps_io *io, const char *path,
                    const struct snapshot *s, struct drps_err *err)
{
    struct frame begin;
    *r = (struct log_reader){.io = io, .path = path, .fd = -1, .round = s->round};
    int rc = drps_io_open(io, path, O_RDONLY, &r->fd, err);
    if (rc == -ENOENT) { /* no round was logged, or none is durable */
        drps_err_clear(err);
        return 0;
    }
    if (rc == 0) rc = drps_io_size(io, r->fd, path, &r->size, err);
    if (rc == 0) rc = next_frame(r, &begin, err);
    if (rc == 1) rc = check_begin(r, &begin, s, err);
    if (rc < 0) log_reader_close(r);
    return rc;
}

void log_reader_close(struct log_reader *r)
{
    drps_io_close(r->io, r->fd);
    free(r->payload);
    *r = (struct log_reader){.io = r->io, .fd = -1};
}

int log_reader_next(struct log_reader *r, struct frame *out, struct drps_err *err)
{
    if (!r->at) return 0; /* the first frame was not whole */
    const uint64_t at = r->at;
    int rc = next_frame(r, out, err);
    if (rc <= 0) return rc;
    if (out->kind == FRAME_BEGIN || out->round != r->round + 1)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s is damaged: round %llu follows round %llu, at byte %llu", r->path,
                            (unsigned long long)out->round, (unsigned long long)r->round,
                            (unsigned long long)at);
    r->round = out->round;
    return 1;
}
