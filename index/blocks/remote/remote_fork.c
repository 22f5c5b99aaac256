/* Shards as child processes, each at the other end of a pair of sockets. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "index/blocks/counts/drps_stream.h"
#include "index/blocks/remote/drps_remote.h"

struct sockets {
    struct drps_remote_link link;
    struct peer {
        int fd;    /* -1: none */
        pid_t pid; /* of the child; 0: the parent, or a child that has been waited for */
    } peer[REMOTE_SHARDS];
};

/* The peer has closed its end: a child only does so by ending. */
static int gone(struct peer *p, struct drps_err *err)
{
    int status = 0;
    if (p->pid > 0)
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
            ;
    p->pid = 0;
    if (WIFSIGNALED(status))
        return drps_err_set(err, DRPS_E_CLOSED, "its process was killed by signal %d (%s)",
                            WTERMSIG(status), strsignal(WTERMSIG(status)));
    return drps_err_set(err, DRPS_E_CLOSED, "its process has ended (status %d)",
                        WEXITSTATUS(status));
}

/* After a transfer that moved nothing: 0 if it is to be tried again. */
static int try_again(const struct drps_remote_link *l, const char *what, struct drps_err *err)
{
    if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
        return drps_err_set(err, -errno, "cannot %s: %s", what, strerror(errno));
    return access_stopped(l->stop, err);
}

static int sockets_send(struct drps_remote_link *l, unsigned peer, const void *bytes, size_t n,
                        struct drps_err *err)
{
    struct peer *p = &((struct sockets *)l)->peer[peer];
    for (const char *at = bytes; n > 0;) {
        ssize_t sent = send(p->fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return gone(p, err);
        if (sent < 0) {
            int rc = try_again(l, "send", err);
            if (rc < 0) return rc;
            continue;
        }
        at += sent;
        n -= (size_t)sent;
    }
    return 0;
}

static int sockets_receive(struct drps_remote_link *l, unsigned peer, void *bytes, size_t n,
                           struct drps_err *err)
{
    struct peer *p = &((struct sockets *)l)->peer[peer];
    for (char *at = bytes; n > 0;) {
        ssize_t got = recv(p->fd, at, n, 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) return gone(p, err);
        if (got < 0) {
            int rc = try_again(l, "receive", err);
            if (rc < 0) return rc;
            continue;
        }
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* End the children, which have nothing to lose and may be in the middle of counting. */
static void sockets_close(struct drps_remote_link *l)
{
    struct sockets *s = (struct sockets *)l;
    for (unsigned i = 0; i < l->peers; i++) {
        struct peer *p = &s->peer[i];
        if (p->fd >= 0) (void)close(p->fd); /* nothing is buffered */
        if (p->pid <= 0) continue;
        (void)kill(p->pid, SIGKILL); /* it has not been waited for: the number is still its own */
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    free(s);
}

static const struct drps_remote_link_ops socket_ops = {sockets_send, sockets_receive,
                                                       sockets_close};

static struct sockets *sockets_new(void)
{
    struct sockets *s = calloc(1, sizeof(*s));
    if (s) s->link.ops = &socket_ops;
    return s;
}

/* ---- In the child ---- */

static void shard_count(const struct access_source *from, unsigned shard, unsigned shards,
                        struct drps_remote_link *parent)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_io io = {.ops = from->io->ops, .ctx = from->io->ctx};
    struct access_source share = *from;
    struct counts *counts = NULL;
    const uint32_t first = remote_shard_begin(from->batches, shard, shards);
    const uint32_t end = remote_shard_begin(from->batches, shard + 1, shards);

    share.memory_bytes /= shards;
    share.stop = NULL; /* the parent ends it, */
    share.io = &io;    /* which looks at no flag either */
    err.code = drps_counts_make(&share, first, end, &counts, &err);
    (void)drps_remote_serve(parent, counts, &err, UINT64_MAX,
                            NULL); /* how it ended is the parent's to say */
    if (counts) counts->ops->close(counts);
}

/* Only its own socket stays open: that of the parent must be the parent's alone, for its end to
 * show. */
static void shard_run(const struct access_source *from, unsigned shard, unsigned shards,
                      struct sockets *older, int fd)
{
    struct sockets *s = sockets_new();
    for (unsigned i = 0; i < older->link.peers; i++)
        (void)close(older->peer[i].fd);
    if (s) {
        s->link.peers = 1;
        s->peer[0].fd = fd;
        shard_count(from, shard, shards, &s->link);
    }
    _exit(s ? 0 : 1); /* what the parent has open or buffered is not the child's to finish */
}

/* ---- In the parent ---- */

/* Transfers end with EAGAIN from time to time, for a look at `stop`; signals end them with EINTR.
 */
static int look_up(int fd)
{
    const struct timeval often = {.tv_usec = 100000};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof(often)) < 0 ||
                   setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &often, sizeof(often)) < 0
               ? -errno
               : 0;
}

static int shard_start(const struct access_source *from, unsigned shard, unsigned shards,
                       struct sockets *s, struct drps_err *err)
{
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
        return drps_err_set(err, -errno, "shard %u of %u: no socket: %s", shard + 1, shards,
                            strerror(errno));
    const pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fd[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* else it counts on until it has an answer */
        if (getppid() != parent) _exit(1);      /* too late for that */
        shard_run(from, shard, shards, s, fd[1]);
    }
    int failed = pid < 0 ? -errno : look_up(fd[0]);
    (void)close(fd[1]);
    s->peer[shard] = (struct peer){fd[0], pid > 0 ? pid : 0};
    s->link.peers = shard + 1;
    return failed ? drps_err_set(err, failed, "shard %u of %u: no process: %s", shard + 1, shards,
                                 strerror(-failed))
                  : 0;
}

int drps_remote_open(const struct access_source *from, unsigned shards, struct counts **t_out,
                     struct drps_err *err)
{
    int rc = 0;

    *t_out = NULL;
    if (shards < 1 || shards > REMOTE_SHARDS)
        return drps_err_set(err, DRPS_E_CONFIG, "%u shards: there may be 1 to %d", shards,
                            REMOTE_SHARDS);
    struct sockets *s = sockets_new();
    if (!s) return drps_err_set(err, -ENOMEM, "no memory for %u shards", shards);
    s->link.stop = from->stop;
    for (unsigned i = 0; i < shards && rc == 0; i++)
        rc = shard_start(from, i, shards, s, err);
    if (rc == 0) return drps_remote_over(&s->link, from->rows, from->batches, t_out, err);
    sockets_close(&s->link);
    return rc;
}
