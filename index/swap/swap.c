/* Streams between ranks (drps_swap.h): messages out, and a thread that writes what comes to files.
 */
#include "index/swap/drps_swap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { LOOK_MS = 100 };      /* how often waiting looks at the stop flag */
enum { GROUP_MS = 3600000 }; /* ends of phases: all ranks come to them at about the same time */
enum { TAKE_BYTES = 64 << 10 };
enum { TYPE_BYTES = DRPS_NET_TYPE_FIRST, TYPE_END };

/* What has come from one rank. */
struct stream {
    int fd;
    char *path;
    uint64_t bytes, taken;
    int ended;  /* 1: the rank has said that no more will come */
    char *read; /* own: [TAKE_BYTES] of the file from read_at on, read_n of them */
    uint64_t read_at;
    size_t read_n;
};

/* What goes to one rank. */
struct outgoing {
    char *bytes; /* own: [SWAP_MESSAGE_BYTES] */
    size_t n;
};

struct swap {
    struct swap_ranks *ranks;
    struct stream *from; /* own: [count] */
    struct outgoing *to; /* own: [count] */
    uint64_t sent_bytes; /* to others */
    pthread_t receiver;
    int receiving;       /* 1: it is to be joined */
    atomic_int given_up; /* 1: it is to end */
    atomic_int failed;   /* 1: it has ended by itself, with an error: */
    int received;        /* what it returned, with its text */
    struct drps_err why;
};

void drps_swap_net_options(struct drps_net_options *out)
{
    *out = (struct drps_net_options){.queue_messages = SWAP_QUEUE};
    out->message_bytes[DRPS_NET_SERVER] = SWAP_MESSAGE_BYTES;
}

/* ---- Coming ---- */

static int append(const struct swap *s, struct stream *from, const void *bytes, size_t n,
                  struct drps_err *err)
{
    int rc = drps_io_write_at(s->ranks->io, from->fd, bytes, n, from->bytes, from->path, err);
    if (rc == 0) from->bytes += n;
    return rc;
}

/* Returns 1 when the stream has ended. */
static int take_message(struct swap *s, const struct drps_net_message *m, struct drps_err *err)
{
    struct stream *from = &s->from[m->from];
    if (from->ended) return drps_swap_fault(m->from, "more after the end of its stream", err);
    from->ended = m->type == TYPE_END;
    if (from->ended) return 1;
    if (m->type == TYPE_BYTES) return append(s, from, m->data, m->bytes, err);
    return drps_err_set(err, DRPS_E_PROTO, "rank %" PRIu32 " sent a message of type %u", m->from,
                        m->type);
}

static int receive_streams(struct swap *s, struct drps_err *err)
{
    uint32_t open = s->ranks->count - 1;
    int rc = 0;
    while (open && rc >= 0 && !atomic_load_explicit(&s->given_up, memory_order_relaxed)) {
        struct drps_net_message *m = NULL;
        struct drps_err why = DRPS_ERR_INIT;
        rc = drps_net_receive(s->ranks->net, DRPS_NET_SERVER, DRPS_NET_ANY, LOOK_MS, &m, &why);
        if (rc == -ETIMEDOUT)
            rc = drps_io_stopped(s->ranks->io, err);
        else if (rc < 0)
            rc = drps_err_set(err, rc, "%s", why.text);
        else
            rc = take_message(s, m, err);
        open -= rc == 1;
        drps_net_message_free(m);
    }
    return rc < 0 ? rc : 0;
}

static void *run_receiver(void *arg)
{
    struct swap *s = arg;
    s->received = receive_streams(s, &s->why);
    atomic_store(&s->failed, s->received < 0);
    return NULL;
}

static int join_receiver(struct swap *s, struct drps_err *err)
{
    if (!s->receiving) return 0;
    (void)pthread_join(s->receiver, NULL);
    s->receiving = 0;
    return s->received < 0 ? drps_err_set(err, s->received, "%s", s->why.text) : 0;
}

/* ---- Going ---- */

/* A rank that cannot take streams any more sends none either: two such ranks would wait for each
 * other. */
static int may_send(struct swap *s, struct drps_err *err)
{
    if (atomic_load(&s->failed)) return join_receiver(s, err);
    return drps_io_stopped(s->ranks->io, err);
}

static int send_message(struct swap *s, uint32_t to, uint8_t type, struct drps_err *err)
{
    struct outgoing *o = &s->to[to];
    const struct drps_piece piece = {o->bytes, o->n};
    const struct drps_net_send send = {
        .to = to, .part = DRPS_NET_SERVER, .type = type, .pieces = &piece, .n = o->n ? 1 : 0};
    int rc = may_send(s, err);
    while (rc == 0) {
        struct drps_err why = DRPS_ERR_INIT;
        const int sent = drps_net_send(s->ranks->net, &send, LOOK_MS, &why);
        if (sent == 0) break;
        rc = sent == -ETIMEDOUT ? may_send(s, err) : drps_err_set(err, sent, "%s", why.text);
    }
    if (rc == 0) s->sent_bytes += o->n;
    o->n = 0;
    return rc;
}

static int flush(struct swap *s, uint32_t to, struct drps_err *err)
{
    struct outgoing *o = &s->to[to];
    if (!o->n) return 0;
    if (to != s->ranks->rank) return send_message(s, to, TYPE_BYTES, err);
    const int rc = append(s, &s->from[to], o->bytes, o->n, err);
    o->n = 0;
    return rc;
}

int drps_swap_put(struct swap *s, uint32_t to, const void *bytes, size_t n, struct drps_err *err)
{
    struct outgoing *o = &s->to[to];
    for (const char *at = bytes; n;) {
        const size_t room = SWAP_MESSAGE_BYTES - o->n, part = n < room ? n : room;
        memcpy(o->bytes + o->n, at, part);
        o->n += part;
        at += part;
        n -= part;
        if (o->n < SWAP_MESSAGE_BYTES) break;
        int rc = flush(s, to, err);
        if (rc < 0) return rc;
    }
    return 0;
}

int drps_swap_end(struct swap *s, struct drps_err *err)
{
    struct swap_ranks *ranks = s->ranks;
    int rc = 0;
    for (uint32_t to = 0; to < ranks->count && rc == 0; to++) {
        rc = flush(s, to, err);
        if (rc == 0 && to != ranks->rank) rc = send_message(s, to, TYPE_END, err);
    }
    if (rc == 0) rc = join_receiver(s, err);
    for (uint32_t to = 0; to < ranks->count; to++) {
        free(s->to[to].bytes);
        s->to[to].bytes = NULL;
    }
    ranks->sent_bytes += s->sent_bytes;
    /* Nobody sends of the next streams before all have these. */
    return rc == 0 ? drps_net_barrier(ranks->net, GROUP_MS, err) : rc;
}

/* ---- Taking ---- */

uint64_t drps_swap_left(const struct swap *s, uint32_t from)
{
    return s->from[from].bytes - s->from[from].taken;
}

static int read_more(struct swap *s, struct stream *f, struct drps_err *err)
{
    const uint64_t left = f->bytes - f->taken;
    const size_t n = left < TAKE_BYTES ? (size_t)left : TAKE_BYTES;
    if (!f->read) f->read = malloc(TAKE_BYTES);
    if (!f->read) return drps_err_set(err, -ENOMEM, "no memory for what other ranks sent");
    f->read_at = f->taken;
    f->read_n = n;
    return drps_io_read_at(s->ranks->io, f->fd, f->read, n, f->taken, f->path, err);
}

int drps_swap_take(struct swap *s, uint32_t from, void *bytes, size_t n, struct drps_err *err)
{
    struct stream *f = &s->from[from];
    if (n > drps_swap_left(s, from))
        return drps_err_set(err, DRPS_E_PROTO, "rank %" PRIu32 " sent %" PRIu64 " bytes too few",
                            from, (uint64_t)n - drps_swap_left(s, from));
    for (char *at = bytes; n;) {
        const uint64_t into = f->taken - f->read_at;
        if (into >= f->read_n) {
            int rc = read_more(s, f, err);
            if (rc < 0) return rc;
            continue;
        }
        const size_t there = f->read_n - (size_t)into, part = n < there ? n : there;
        memcpy(at, f->read + into, part);
        f->taken += part;
        at += part;
        n -= part;
    }
    return 0;
}

void drps_swap_rewind(struct swap *s)
{
    for (uint32_t from = 0; from < s->ranks->count; from++)
        s->from[from].taken = 0;
}

/* ---- Beginning and end ---- */

static int open_stream(const struct swap *s, uint32_t from, struct drps_err *err)
{
    struct stream *f = &s->from[from];
    if (asprintf(&f->path, "%s/from-%" PRIu32, s->ranks->dir, s->ranks->files++) < 0) {
        f->path = NULL;
        return drps_err_set(err, -ENOMEM, "no memory for streams between ranks");
    }
    return drps_io_open(s->ranks->io, f->path, O_RDWR | O_CREAT | O_TRUNC, &f->fd, err);
}

static int open_all(struct swap *s, struct drps_err *err)
{
    const uint32_t count = s->ranks->count;
    s->from = calloc(count, sizeof(*s->from));
    s->to = calloc(count, sizeof(*s->to));
    if (!s->from || !s->to) return drps_err_set(err, -ENOMEM, "no memory for %u streams", count);
    for (uint32_t r = 0; r < count; r++)
        s->from[r].fd = -1;
    int rc = 0;
    for (uint32_t r = 0; r < count && rc == 0; r++) {
        s->to[r].bytes = malloc(SWAP_MESSAGE_BYTES);
        rc = s->to[r].bytes ? open_stream(s, r, err)
                            : drps_err_set(err, -ENOMEM, "no memory for %u streams", count);
    }
    if (rc < 0) return rc;
    rc = pthread_create(&s->receiver, NULL, run_receiver, s);
    if (rc) return drps_err_set(err, -rc, "no thread for streams: %s", strerror(rc));
    s->receiving = 1;
    return 0;
}

int drps_swap_open(struct swap_ranks *ranks, struct swap **s_out, struct drps_err *err)
{
    struct swap *s = *s_out = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for streams between ranks");
    s->ranks = ranks;
    int rc = open_all(s, err);
    if (rc == 0) return 0;
    drps_swap_close(s);
    *s_out = NULL;
    return rc;
}

void drps_swap_close(struct swap *s)
{
    if (!s) return;
    atomic_store(&s->given_up, 1);
    (void)join_receiver(s, NULL);
    for (uint32_t r = 0; r < s->ranks->count && s->from && s->to; r++) {
        struct stream *f = &s->from[r];
        free(s->to[r].bytes);
        free(f->read);
        if (f->fd >= 0) drps_io_close(s->ranks->io, f->fd);
        if (f->path) (void)drps_io_remove_tree(s->ranks->io, f->path, NULL);
        free(f->path);
    }
    free(s->from);
    free(s->to);
    free(s);
}

int drps_swap_all_taken(const struct swap *s, struct drps_err *err)
{
    for (uint32_t from = 0; from < s->ranks->count; from++)
        if (drps_swap_left(s, from))
            return drps_err_set(err, DRPS_E_PROTO,
                                "rank %" PRIu32 " sent %" PRIu64 " bytes too many", from,
                                drps_swap_left(s, from));
    return 0;
}

int drps_swap_share(struct swap_ranks *ranks, const void *bytes, size_t n, struct swap **s_out,
                    struct drps_err *err)
{
    int rc = drps_swap_open(ranks, s_out, err);
    for (uint32_t to = 0; to < ranks->count && rc == 0; to++)
        rc = drps_swap_put(*s_out, to, bytes, n, err);
    return rc == 0 ? drps_swap_end(*s_out, err) : rc;
}

int drps_swap_fault(uint32_t from, const char *what, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_PROTO, "rank %" PRIu32 " sent %s", from, what);
}

int drps_swap_gather(const struct swap_ranks *ranks, const uint64_t *mine, size_t n,
                     uint64_t **all_out, struct drps_err *err)
{
    uint64_t *all = *all_out = drps_array_new(ranks->count * n, sizeof(*all));
    int rc = all ? drps_net_gather(ranks->net, mine, n * sizeof(*mine), all, GROUP_MS, err)
                 : drps_err_set(err, -ENOMEM, "no memory for %" PRIu32 " ranks", ranks->count);
    if (rc == 0) return 0;
    free(all);
    *all_out = NULL;
    return rc;
}
