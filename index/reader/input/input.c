/* Opens input files and pipes and decompresses what they hold. Needs a codec of codec.h for each
 * compression. */
#include "index/reader/input/drps_input.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int drps_input_sizes(const char *const *paths, size_t n, uint64_t *bytes_out)
{
    int known = 1;
    struct stat st;
    *bytes_out = 0;
    for (size_t i = 0; i < n; i++) {
        const int is_known =
            strcmp(paths[i], "-") != 0 && stat(paths[i], &st) == 0 && S_ISREG(st.st_mode);
        if (is_known) *bytes_out += (uint64_t)st.st_size;
        known &= is_known;
    }
    return known;
}

int drps_input_init(struct drps_input *in, const struct drps_io *io, size_t buf_bytes,
                    uint64_t codec_limit_bytes, struct drps_err *err)
{
    memset(in, 0, sizeof(*in));
    in->io = io;
    in->fd = -1;
    in->buf_bytes = buf_bytes;
    in->codec_limit_bytes = codec_limit_bytes;
    in->buf = malloc(buf_bytes);
    if (!in->buf) return drps_err_set(err, -ENOMEM, "read buffer of %zu bytes", buf_bytes);
    return 0;
}

void drps_input_close(struct drps_input *in)
{
    if (in->codec && in->codec->close) in->codec->close(in->codec_state);
    in->codec = NULL;
    in->codec_state = NULL;
    if (in->is_open && !in->is_stdin) drps_io_close(in->io, in->fd);
    in->fd = -1;
    in->is_open = 0;
}

void drps_input_destroy(struct drps_input *in)
{
    drps_input_close(in);
    free(in->buf);
    in->buf = NULL;
}

/* A pipe may keep us waiting, also for its writer to come: look at the stop flag now and then.
 * Files are always ready, and interrupted all the same. */
static int wait_for_input(const struct drps_input *in, struct drps_err *err)
{
    enum { LOOK_MS = 100 };
    struct pollfd fd = {.fd = in->fd, .events = POLLIN};
    for (;;) {
        if (in->stop && atomic_load_explicit(in->stop, memory_order_relaxed))
            return drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted while reading %s", in->name);
        if (!in->waits) return 0;
        int ready = poll(&fd, 1, LOOK_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR)) return 0; /* read() reports faults */
    }
}

/* One read of the file at its position, or of its part. */
static ssize_t read_once(struct drps_input *in, void *buf, size_t n)
{
    if (!in->is_part) return in->io->ops->read(in->io->ctx, in->fd, buf, n);
    const uint64_t left = in->part_end - in->part_at;
    const ssize_t got =
        in->io->ops->pread(in->io->ctx, in->fd, buf, n < left ? n : (size_t)left, in->part_at);
    if (got > 0) in->part_at += (uint64_t)got;
    return got;
}

/* The next bytes of the file, into buf. */
static int read_file(struct drps_input *in, void *buf, size_t n, size_t *n_out,
                     struct drps_err *err)
{
    ssize_t got;

    *n_out = 0;
    int rc = wait_for_input(in, err);
    if (rc < 0) return rc;
    do {
        got = read_once(in, buf, n);
    } while (got == -EINTR);
    if (got == -EISDIR)
        return drps_err_set(err, -EISDIR, "%s is a folder: name the files in it", in->name);
    if (got < 0)
        return drps_err_set(err, (int)got, "%s: read at byte %llu: %s", in->name,
                            (unsigned long long)in->file_bytes, drps_err_name((int)got));
    in->file_bytes += (uint64_t)got;
    in->all_bytes += (uint64_t)got;
    *n_out = (size_t)got;
    return 0;
}

/* Read ahead until `want` bytes are there or the file ends; called with less than that left. */
static int refill(struct drps_input *in, size_t want, struct drps_err *err)
{
    memmove(in->buf, in->flow.in, in->flow.in_n);
    in->flow.in = in->buf;
    while (in->flow.in_n < want && !in->flow.in_end) {
        size_t got;
        int rc = read_file(in, in->buf + in->flow.in_n, in->buf_bytes - in->flow.in_n, &got, err);
        if (rc < 0) return rc;
        in->flow.in_n += got;
        in->flow.in_end = got == 0;
    }
    return 0;
}

static int open_codec(struct drps_input *in, struct drps_err *err)
{
    const struct drps_codec *codec = drps_codec_find(in->flow.in, in->flow.in_n);
    if (!codec) return 0;
    if (!codec->open) return drps_err_set(err, DRPS_E_CONFIG, "%s: %s", in->name, codec->missing);
    int rc = codec->open(in->codec_limit_bytes, &in->codec_state, err);
    if (rc < 0) {
        (void)drps_err_context(err, "%s", in->name); /* its result is the code, which rc has */
        return rc;
    }
    in->codec = codec;
    return 0;
}

static int open_file(struct drps_input *in, const char *path, struct drps_err *err)
{
    drps_input_close(in);
    in->is_stdin = strcmp(path, "-") == 0;
    in->name = in->is_stdin ? "stdin" : path;
    in->ended = 0;
    in->file_bytes = 0;
    in->is_part = 0;
    in->flow = (struct drps_codec_io){.in = in->buf};
    if (in->is_stdin) {
        in->fd = 0;
        in->waits = 1;
    } else {
        int rc = drps_io_open_data(in->io, path, 0, &in->fd, err);
        if (rc < 0) return rc;
        in->waits = rc;
    }
    in->is_open = 1;
    return 0;
}

int drps_input_open(struct drps_input *in, const char *path, struct drps_err *err)
{
    int rc = open_file(in, path, err);
    if (rc == 0) rc = refill(in, DRPS_CODEC_MAGIC_BYTES, err);
    return rc == 0 ? open_codec(in, err) : rc;
}

int drps_input_open_part(struct drps_input *in, const char *path, uint64_t from, uint64_t to,
                         struct drps_err *err)
{
    int rc = open_file(in, path, err);
    in->is_part = 1;
    in->part_at = from;
    in->part_end = to;
    return rc;
}

static int read_plain(struct drps_input *in, void *buf, size_t n, size_t *n_out,
                      struct drps_err *err)
{
    if (in->flow.in_n == 0) return in->flow.in_end ? 0 : read_file(in, buf, n, n_out, err);
    *n_out = n < in->flow.in_n ? n : in->flow.in_n; /* what was read ahead to see the magic bytes */
    memcpy(buf, in->flow.in, *n_out);
    in->flow.in += *n_out;
    in->flow.in_n -= *n_out;
    return 0;
}

static int read_decoded(struct drps_input *in, void *buf, size_t n, size_t *n_out,
                        struct drps_err *err)
{
    struct drps_codec_io *flow = &in->flow;

    flow->out = buf;
    flow->out_n = n;
    while (flow->out_n == n) {
        if (flow->in_n == 0) {
            int rc = refill(in, 1, err);
            if (rc < 0) return rc;
            if (flow->in_n == 0 && flow->done) return 0;
        }
        size_t before = flow->in_n;
        int rc = in->codec->decode(in->codec_state, flow, err);
        if (rc < 0) {
            (void)drps_err_context(err, "%s: before byte %llu", in->name,
                                   (unsigned long long)(in->file_bytes - flow->in_n));
            return rc;
        }
        if (flow->in_n != before || flow->out_n != n) continue;
        if (flow->in_n == 0 && (!flow->in_end || flow->done)) continue; /* refill() decides */
        return drps_err_set(
            err, DRPS_E_CORRUPT,
            "%s: the %s data ends early, at byte %llu: the file is cut off or damaged", in->name,
            in->codec->name, (unsigned long long)in->file_bytes);
    }
    *n_out = n - flow->out_n;
    return 0;
}

int drps_input_read(struct drps_input *in, void *buf, size_t n, size_t *n_out, struct drps_err *err)
{
    *n_out = 0;
    if (in->ended) return 0;
    int rc = in->codec ? read_decoded(in, buf, n, n_out, err) : read_plain(in, buf, n, n_out, err);
    in->ended = rc == 0 && *n_out == 0;
    return rc;
}
