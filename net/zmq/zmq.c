/* Opening and closing a rank's end over ZeroMQ: its sockets, the limits of memory and files, and
 * the start, when all ranks must have answered. zmq_internal.h has the idea. */
#include "net/drps_net.h"
#include "net/drps_peers.h"

#ifndef DRPS_WITH_ZMQ

int drps_net_open_zmq(const struct drps_net_options *options, const struct drps_peers *peers,
                      const struct drps_net_keys *keys, int insecure, struct drps_net **net_out,
                      struct drps_err *err)
{
    (void)options, (void)peers, (void)keys, (void)insecure;
    *net_out = NULL;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "this build has no ZeroMQ (DRPS_WITH_ZMQ): one process only");
}

#else

#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "net/zmq/zmq_internal.h"

enum {
    CURVE_BYTES = 64, /* that encryption adds to a frame, and more */
    CONNECT_MS = 3000,
    HANDSHAKE_MS = 2000, /* of a connection, to say who it is */
    RECONNECT_MS = 50,
    RECONNECT_MAX_MS = 1000,
    REFUSAL_LINGER_MS = 1000, /* for telling why the start failed */
    BACKLOG = 32,             /* connections that wait to be let in, beside one a peer */
    FILES_A_PEER = 4,         /* a socket's own, a connection each way, one more while it changes */
    FILES_BESIDE = 64,        /* open files of all else that the process does */
};

static struct net_zmq *this_end(struct drps_net *net)
{
    return (struct net_zmq *)net;
}

static void carry(struct drps_net *net, struct net_out *out)
{
    struct net_zmq *z = this_end(net);
    if (out->head.to == net->o.rank) {
        drps_net_deliver(net, drps_net_out_deliver(out));
        return;
    }
    drps_frames_add(&z->frames[out->head.to], out);
}

static void flush(struct drps_net *net, uint32_t to)
{
    struct net_zmq *z = this_end(net);
    if (to != net->o.rank && !drps_zmq_send_now(z, to)) drps_zmq_wake(z);
}

static void took(struct drps_net *net, uint32_t from, unsigned part)
{
    if (from != net->o.rank) {
        drps_zmq_wake(this_end(net));
        return;
    }
    net->peers[from].credit[part]++;
    pthread_cond_broadcast(&net->changed);
}

static void close_socket(void *socket, int linger_ms)
{
    if (!socket) return;
    (void)zmq_setsockopt(socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
    (void)zmq_close(socket);
}

static int linger_left(const struct net_zmq *z)
{
    const uint64_t now = drps_clock_ns();
    return now < z->leave_by_ns ? (int)((z->leave_by_ns - now) / 1000000) : 0;
}

/* After the socket thread has gone, or was never started. Accepts what a failed open left. */
static void free_all(struct net_zmq *z)
{
    const int linger_ms = linger_left(z);
    for (uint32_t r = 0; z->peers && r < z->net.o.count; r++)
        close_socket(z->peers[r].push, z->peers[r].bye_sent && !z->peers[r].dead ? linger_ms : 0);
    if (z->monitor) (void)zmq_socket_monitor(z->pull, NULL, 0);
    close_socket(z->monitor, 0);
    close_socket(z->zap, 0);
    close_socket(z->pull, 0);
    if (z->context) (void)zmq_ctx_term(z->context); /* waits for what lingers */
    for (uint32_t r = 0; z->peers && r < z->net.o.count; r++)
        pthread_mutex_destroy(&z->peers[r].sending);
    drps_frames_free(z->frames, z->net.o.count);
    if (z->wake >= 0) (void)close(z->wake);
    drps_net_destroy(&z->net);
    if (z->lock_made) pthread_mutex_destroy(&z->lock);
    free(z->items);
    free(z->peers);
    free(z);
}

static void leave(struct drps_net *net, uint32_t linger_ms, const struct drps_err *why)
{
    struct net_zmq *z = this_end(net);
    pthread_mutex_lock(&z->lock);
    z->leaving = 1;
    z->leave_by_ns = drps_clock_ns() + linger_ms * UINT64_C(1000000);
    if (why) (void)snprintf(z->why, sizeof(z->why), "%.*s", WIRE_TEXT_BYTES - 1, why->text);
    z->why_stays = why && !drps_err_may_pass(why->code);
    pthread_mutex_unlock(&z->lock);
    if (z->started) {
        drps_zmq_wake(z);
        pthread_join(z->thread, NULL);
    }
    free_all(z);
}

static const struct net_ops ops = {NET_BORROWS, carry, flush, took, leave};

/* Keys are there where they must be, and of a size that ZeroMQ takes. */
static int check_keys(const struct drps_net_options *o, const struct drps_peers *peers,
                      const struct drps_net_keys *keys, int insecure, struct drps_err *err)
{
    uint8_t key[32];
    if (peers->count != o->count)
        return drps_err_set(err, DRPS_E_CONFIG, "%u peers for %u ranks", peers->count, o->count);
    for (uint32_t r = 0; r < o->count; r++) {
        const struct drps_peer *p = &peers->peers[r];
        if (!keys && !insecure && !drps_peer_is_loopback(p))
            return drps_err_set(
                err, DRPS_E_CONFIG,
                "rank %u (%s:%s) has no loopback address: keys are needed, or leave to do "
                "without them, with which anyone who reaches the port can read and change what is "
                "trained",
                r, p->host, p->port);
        if (keys && !zmq_z85_decode(key, p->public_key))
            return drps_err_set(err, DRPS_E_CONFIG,
                                "rank %u (%s:%s) has no valid public key in the peers file", r,
                                p->host, p->port);
    }
    if (keys && strcmp(keys->public_key, peers->peers[o->rank].public_key) != 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "this rank's public key is not the one that the peers file has for "
                            "rank %u",
                            o->rank);
    if (keys && !zmq_has("curve"))
        return drps_err_set(err, DRPS_E_CONFIG, "this ZeroMQ was built without Curve: no keys");
    return 0;
}

static int set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value));
}

/* A socket with what all of them have. A connection that is ended drops what it has not sent. */
static void *open_socket(struct net_zmq *z, int type, const struct drps_peer *at)
{
    void *s = zmq_socket(z->context, type);
    if (!s) return NULL;
    const int64_t most = WIRE_PIECE_BYTES + CURVE_BYTES;
    if (set_int(s, ZMQ_SNDHWM, NET_ZMQ_QUEUED_PIECES) ||
        set_int(s, ZMQ_RCVHWM, NET_ZMQ_QUEUED_PIECES) || set_int(s, ZMQ_LINGER, 0) ||
        set_int(s, ZMQ_CONNECT_TIMEOUT, CONNECT_MS) ||
        set_int(s, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) ||
        set_int(s, ZMQ_RECONNECT_IVL, RECONNECT_MS) ||
        set_int(s, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS) ||
        set_int(s, ZMQ_IPV6, strchr(at->host, ':') != NULL) ||
        zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &most, sizeof(most))) {
        close_socket(s, 0);
        return NULL;
    }
    return s;
}

static int set_keys(void *socket, const struct drps_net_keys *keys, const char *server_key)
{
    const size_t n = DRPS_NET_KEY_BYTES;
    if (zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret_key, n)) return -1;
    if (!server_key) return set_int(socket, ZMQ_CURVE_SERVER, 1);
    return zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->public_key, n) ||
           zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key, n);
}

static int is_unix(const struct drps_peer *at)
{
    return at->host[0] == '/';
}

static void name_address(const struct drps_peer *at, char out[NET_ZMQ_ADDRESS_BYTES])
{
    const char *form = is_unix(at)             ? "ipc://%s%s"
                       : strchr(at->host, ':') ? "tcp://[%s]:%s"
                                               : "tcp://%s:%s";
    (void)snprintf(out, NET_ZMQ_ADDRESS_BYTES, form, at->host, at->port);
}

/* A socket that listens. ZeroMQ takes it over; the guard has it stop listening now and then. */
static int listen_at(const struct drps_peer *at, const char *address, int backlog, int *fd_out,
                     struct drps_err *err)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const int one = 1;
    int rc = getaddrinfo(at->host, at->port, &hints, &found);
    if (rc) return drps_err_set(err, DRPS_E_CONFIG, "%s: %s", at->host, gai_strerror(rc));
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
        bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, backlog))
        rc = drps_err_set(err, -errno, "cannot listen at %s: %s", address, strerror(errno));
    freeaddrinfo(found);
    if (rc < 0 && fd >= 0) (void)close(fd);
    *fd_out = rc < 0 ? -1 : fd;
    return rc;
}

static int bind_pull(struct net_zmq *z, const struct drps_peer *at, const char *address,
                     struct drps_err *err)
{
    int fd = -1;
    if (!is_unix(at)) {
        int rc = listen_at(at, address, (int)z->net.o.count + BACKLOG, &fd, err);
        if (rc < 0) return rc;
    }
    if ((fd < 0 || set_int(z->pull, ZMQ_USE_FD, fd) == 0) && zmq_bind(z->pull, address) == 0) {
        z->listener = fd;
        return 0;
    }
    const int rc = drps_zmq_failed("listen at", address, err);
    if (fd >= 0) (void)close(fd);
    return rc;
}

static int open_pull(struct net_zmq *z, const struct drps_peer *at,
                     const struct drps_net_keys *keys, struct drps_err *err)
{
    char address[NET_ZMQ_ADDRESS_BYTES];
    name_address(at, address);
    z->pull = open_socket(z, ZMQ_PULL, at);
    if (!z->pull || (keys && set_keys(z->pull, keys, NULL)))
        return drps_zmq_failed("open a socket for", address, err);
    const int rc = drps_zmq_guard_open(z, err);
    return rc < 0 ? rc : bind_pull(z, at, address, err);
}

static int open_push(struct net_zmq *z, uint32_t r, const struct drps_peer *at,
                     const struct drps_net_keys *keys, struct drps_err *err)
{
    struct net_zmq_peer *peer = &z->peers[r];
    name_address(at, peer->address);
    if (keys) (void)zmq_z85_decode(peer->public_key, at->public_key); /* valid: checked */
    peer->push = open_socket(z, ZMQ_PUSH, at);
    if (!peer->push || (keys && set_keys(peer->push, keys, at->public_key)) ||
        zmq_connect(peer->push, peer->address))
        return drps_zmq_failed("connect to", peer->address, err);
    peer->connected_ns = drps_clock_ns();
    return 0;
}

/* The limit of open files is seen before it is met in the middle of the job. */
static int check_files(uint32_t count, struct drps_err *err)
{
    const rlim_t need = FILES_A_PEER * (rlim_t)count + NET_ZMQ_STRANGERS_MAX + FILES_BESIDE;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= need) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%u ranks need up to %llu open files each, and the limit is %llu: raise it "
                        "with ulimit -n",
                        count, (unsigned long long)need, (unsigned long long)limit.rlim_cur);
}

/* A number that nobody can guess, not 0. */
static int draw(uint64_t *out, struct drps_err *err)
{
    do {
        if (getrandom(out, sizeof(*out), 0) != sizeof(*out))
            return drps_err_set(err, -errno, "no random numbers: %s", strerror(errno));
    } while (!*out);
    return 0;
}

/* Write what a rank is called: its number and its address as the peers file has it, which is also
 * the name of a loopback peer's socket. */
static void name_rank(const struct drps_peer *at, uint32_t r, char out[DRPS_NET_NAME_BYTES])
{
    const char *colon = is_unix(at) ? "" : ":";
    const char *last = is_unix(at) ? strrchr(at->host, '/') + 1 : at->host;
    (void)snprintf(out, DRPS_NET_NAME_BYTES, "rank %u (%s%s%s)", r,
                   strchr(last, ':') ? last : at->host, colon, at->port);
}

/* With keys ZeroMQ's own threads encrypt and decrypt, of which a context has one: a core's worth
 * for all links together. So each link has one of its own, as far as there are processors. */
static int io_threads(const struct net_zmq *z)
{
    cpu_set_t set;
    const int processors = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
    const int links = (int)z->net.o.count - 1;
    int n = links < processors ? links : processors;
    if (n > NET_ZMQ_IO_THREADS_MAX) n = NET_ZMQ_IO_THREADS_MAX;
    return z->secured && n > 1 ? n : 1;
}

static int allocate(struct net_zmq *z, const struct drps_net_options *o,
                    const struct drps_peers *peers, struct drps_err *err)
{
    pthread_mutex_init(&z->lock, NULL);
    z->lock_made = 1;
    z->net.o = *o; /* for free_all() */
    z->peers = calloc(o->count, sizeof(*z->peers));
    for (uint32_t r = 0; z->peers && r < o->count; r++)
        pthread_mutex_init(&z->peers[r].sending, NULL);
    z->frames = drps_frames_new(o->count);
    z->items = calloc(o->count + 4, sizeof(*z->items));
    z->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    z->context = zmq_ctx_new();
    if (z->context) {
        (void)zmq_ctx_set(z->context, ZMQ_MAX_SOCKETS, (int)o->count + NET_ZMQ_SOCKETS_BESIDE);
        (void)zmq_ctx_set(z->context, ZMQ_IO_THREADS, io_threads(z));
    }
    if (!z->peers || !z->frames || !z->items || z->wake < 0 || !z->context)
        return drps_err_set(err, -ENOMEM, "no memory or files for rank %u", o->rank);
    int rc = drps_net_init(&z->net, &ops, o, &z->lock, err);
    if (rc == 0) rc = draw(&z->incarnation, err);
    for (uint32_t r = 0; r < o->count && rc == 0; r++) {
        const struct drps_peer *at = &peers->peers[r];
        name_rank(at, r, z->net.peers[r].name);
        z->peers[r].frames = &z->frames[r];
    }
    return rc;
}

static int start(struct net_zmq *z, const struct drps_peers *peers,
                 const struct drps_net_keys *keys, struct drps_err *err)
{
    const uint32_t own = z->net.o.rank;
    int rc = open_pull(z, &peers->peers[own], keys, err);
    for (uint32_t r = 0; r < z->net.o.count && rc == 0; r++)
        if (r != own) rc = open_push(z, r, &peers->peers[r], keys, err);
    if (rc < 0) return rc;
    /* The sockets change their thread here, once; creating a thread orders memory. */
    rc = pthread_create(&z->thread, NULL, drps_zmq_thread_main, z);
    if (rc) return drps_err_set(err, -rc, "cannot start a thread: %s", strerror(rc));
    z->started = 1;
    return 0;
}

int drps_net_open_zmq(const struct drps_net_options *options, const struct drps_peers *peers,
                      const struct drps_net_keys *keys, int insecure, struct drps_net **net_out,
                      struct drps_err *err)
{
    struct drps_net_options o = *options;
    *net_out = NULL;
    int rc = drps_net_options_check(&o, err);
    if (rc == 0) rc = check_keys(&o, peers, keys, insecure, err);
    if (rc == 0) rc = check_files(o.count, err);
    if (rc < 0) return rc;
    struct net_zmq *z = calloc(1, sizeof(*z));
    if (!z) return drps_err_set(err, -ENOMEM, "no memory for rank %u", o.rank);
    z->wake = -1;
    z->listener = -1;
    z->secured = keys != NULL;
    rc = allocate(z, &o, peers, err);
    if (rc == 0) rc = start(z, peers, keys, err);
    if (rc < 0) {
        free_all(z);
        return rc;
    }
    struct drps_err why = DRPS_ERR_INIT;
    rc = drps_frames_wait(
        &z->net, z->frames,
        keys ? " (do all ranks have the same peers file and their own keys?)" : "", &why);
    if (rc < 0) {
        drps_net_close(&z->net, REFUSAL_LINGER_MS, &why);
        return drps_err_set(err, rc, "%s", why.text);
    }
    *net_out = &z->net;
    return 0;
}

#endif
