/*
 * What do engine/net's transports cost against plain TCP sockets?
 *
 *   bench_net [BYTES]                  two threads: sockets, inproc, ZeroMQ, ZeroMQ with keys, on loopback
 *   bench_net rank R FOLDER [BYTES]    rank 0 or 1 of two processes, over what FOLDER/peers says (bench/net.sh)
 *   bench_net keys FOLDER              make keys and print the public one
 *
 * For each size: "pull" is an empty request and a reply of that size, in microseconds a pull; "stream" is messages of
 * that size one way, in MB/s (10^6 bytes of payload). Medians of three. BYTES, default 256M, bounds what a figure moves.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "engine/net/drps_net.h"
#include "engine/net/drps_peers.h"

enum { TYPE = DRPS_NET_TYPE_FIRST, WAIT_MS = 60000, LARGEST = 64 << 20, LAPS = 3, MOST = 4000 };

static const size_t sizes[] = {1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, LARGEST};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

/* One end of two: a rank of a job, or a socket. */
struct end {
    const char *name;
    struct drps_net *net; /* NULL: the socket */
    int fd;
    uint32_t rank;
    uint64_t budget;
    char *out, *in; /* LARGEST each */
};

static void die(const char *what, const struct drps_err *err)
{
    fprintf(stderr, "bench_net: %s: %s\n", what, err ? err->text : strerror(errno));
    exit(1);
}

static void socket_read(int fd, void *to, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = recv(fd, (char *)to + at, n - at, MSG_WAITALL);
        if (got <= 0) die("receive", NULL);
        at += (size_t)got;
    }
}

static void socket_write(int fd, const void *data, size_t n)
{
    uint64_t head = n;
    struct iovec v[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)data, n}};
    for (size_t i = 0; i < 2;) {
        const ssize_t put = writev(fd, v + i, (int)(2 - i));
        if (put < 0) die("send", NULL);
        size_t left = (size_t)put;
        for (; i < 2 && left >= v[i].iov_len; i++)
            left -= v[i].iov_len;
        if (i < 2) v[i] = (struct iovec){(char *)v[i].iov_base + left, v[i].iov_len - left};
    }
}

static void unchanged(void *ctx)
{
    (void)ctx; /* the payload is never changed: nobody waits for it */
}

static void put(struct end *e, size_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_piece piece = {e->out, n};
    const struct drps_net_send send = {.to = 1 - e->rank,
                                       .part = DRPS_NET_SERVER,
                                       .type = TYPE,
                                       .pieces = &piece,
                                       .n = 1,
                                       .done = unchanged};
    if (!e->net)
        socket_write(e->fd, e->out, n);
    else if (drps_net_send(e->net, &send, WAIT_MS, &err) < 0)
        die("send", &err);
}

static void get(struct end *e, size_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    uint64_t head = 0;
    if (!e->net) {
        socket_read(e->fd, &head, sizeof(head));
        socket_read(e->fd, e->in, n);
        if (head != n) die("wrong size", NULL);
        return;
    }
    if (drps_net_receive(e->net, DRPS_NET_SERVER, 1 - e->rank, WAIT_MS, &m, &err) < 0) die("receive", &err);
    if (m->bytes != n) die("wrong size", NULL);
    drps_net_message_free(m);
}

static unsigned times(const struct end *e, size_t n, unsigned most)
{
    const uint64_t fits = e->budget / n;
    return fits < 2 ? 2 : fits < most ? (unsigned)fits : most;
}

/* Microseconds a pull, at rank 0. */
static double pulls(struct end *e, size_t n)
{
    const unsigned laps = times(e, n, MOST / 4);
    const uint64_t start = drps_clock_ns();
    for (unsigned i = 0; i < laps; i++) {
        if (e->rank == 0) {
            put(e, 0);
            get(e, n);
        } else {
            get(e, 0);
            put(e, n);
        }
    }
    return drps_seconds_since(start) * 1e6 / laps;
}

/* MB/s from rank 0 to rank 1, until the last one has been taken. */
static double stream(struct end *e, size_t n)
{
    const unsigned laps = times(e, n, MOST * 4);
    const uint64_t start = drps_clock_ns();
    for (unsigned i = 0; i < laps; i++) {
        if (e->rank == 0) put(e, n);
        else get(e, n);
    }
    if (e->rank == 0) get(e, 1);
    else put(e, 1);
    return (double)n * laps * 1e-6 / drps_seconds_since(start);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct end *e, size_t n, double (*figure)(struct end *, size_t))
{
    double v[LAPS];
    for (int i = 0; i < LAPS; i++)
        v[i] = figure(e, n);
    qsort(v, LAPS, sizeof(*v), compare);
    return v[LAPS / 2];
}

static void *run(void *arg)
{
    struct end *e = arg;
    char text[32];
    e->out = malloc(LARGEST);
    e->in = malloc(LARGEST);
    if (!e->out || !e->in) die("memory", NULL);
    for (size_t i = 0; i < LARGEST / sizeof(uint64_t); i++) /* touch both; nothing that could be shortened */
        ((uint64_t *)(void *)e->out)[i] = ((uint64_t *)(void *)e->in)[i] = drps_rng_at(1, i);
    for (size_t i = 0; i < SIZES; i++) {
        const double us = median(e, sizes[i], pulls), mbs = median(e, sizes[i], stream);
        if (e->rank == 0)
            printf("%-16s %10s %12.1f %12.1f\n", e->name, drps_size_format(sizes[i], text, sizeof(text)), us, mbs);
        (void)fflush(stdout);
    }
    return NULL;
}

/* Payloads may be under way until the net is closed. */
static void end_close(struct end *e)
{
    if (e->fd >= 0) (void)close(e->fd);
    drps_net_close(e->net, 5000, NULL);
    free(e->out);
    free(e->in);
}

static void title(void)
{
    printf("%-16s %10s %12s %12s\n", "transport", "size", "pull us", "stream MB/s");
}

/* --- opening --- */

static struct drps_net_options options(uint32_t rank)
{
    return (struct drps_net_options){.rank = rank, .count = 2, .job_id = 1, .message_bytes = {0, LARGEST, 0}};
}

/* A connection between the two peers' addresses, on a port of its own: rank 1 listens. */
static int open_socket(const struct drps_peer *at, uint32_t rank)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char port[16];
    const int one = 1;
    (void)snprintf(port, sizeof(port), "%d", atoi(at->port) + 100);
    if (getaddrinfo(at->host, port, &hints, &found)) die(at->host, NULL);
    int fd = socket(found->ai_family, SOCK_STREAM, 0), conn = -1;
    if (fd < 0) die("socket", NULL);
    if (rank == 1) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1)) die("listen", NULL);
        conn = accept(fd, NULL, NULL);
        (void)close(fd);
    } else {
        for (const uint64_t start = drps_clock_ns(); conn < 0;) { /* until rank 1 listens */
            if (!connect(fd, found->ai_addr, found->ai_addrlen)) conn = fd;
            else if (errno != ECONNREFUSED || drps_seconds_since(start) > 60) die("connect", NULL);
        }
    }
    freeaddrinfo(found);
    if (conn < 0) die("connect", NULL);
    (void)setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return conn;
}

struct place {
    struct drps_peers peers;
    struct drps_net_keys keys[2];
    uint64_t budget;
};
enum transport { SOCKET, ZMQ, ZMQ_KEYS, TRANSPORTS };
static const char *const names[TRANSPORTS] = {"sockets", "zmq", "zmq with keys"};

static void run_rank(const struct place *p, enum transport t, uint32_t rank)
{
    struct end e = {.name = names[t], .rank = rank, .budget = p->budget, .fd = -1};
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_net_options o = options(rank);
    if (t == SOCKET) e.fd = open_socket(&p->peers.peers[1], rank);
    else if (drps_net_open_zmq(&o, &p->peers, t == ZMQ_KEYS ? &p->keys[rank] : NULL, 1, &e.net, &err) < 0)
        die("open", &err);
    (void)run(&e);
    end_close(&e);
}

struct job {
    const struct place *place;
    enum transport transport;
};

static void *run_rank_1(void *arg)
{
    const struct job *j = arg;
    run_rank(j->place, j->transport, 1);
    return NULL;
}

static void run_inproc(const struct place *p)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *nets[2];
    const struct drps_net_options o = options(0);
    pthread_t thread;
    if (drps_net_open_inproc(&o, nets, &err) < 0) die("open", &err);
    struct end e[2];
    for (uint32_t r = 0; r < 2; r++)
        e[r] = (struct end){.name = "inproc", .net = nets[r], .rank = r, .budget = p->budget, .fd = -1};
    if (pthread_create(&thread, NULL, run, &e[1])) die("thread", NULL);
    (void)run(&e[0]);
    (void)pthread_join(thread, NULL);
    for (int r = 0; r < 2; r++)
        end_close(&e[r]);
}

static void make_keys(const char *folder, uint32_t rank, struct place *p)
{
    struct drps_err err = DRPS_ERR_INIT;
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%u", folder, rank);
    if (drps_net_keys_make(drps_io_os(), path, &p->keys[rank], &err) < 0) die("keys", &err);
    memcpy(p->peers.peers[rank].public_key, p->keys[rank].public_key, DRPS_NET_KEY_BYTES);
}

static void run_here(struct place *p)
{
    struct drps_peer at[2] = {{"127.0.0.1", "17000", ""}, {"127.0.0.1", "17001", ""}};
    char folder[] = "/tmp/drps-bench-net.XXXXXX";
    p->peers = (struct drps_peers){2, at};
    if (!mkdtemp(folder)) die(folder, NULL);
    for (uint32_t r = 0; r < 2; r++)
        make_keys(folder, r, p);
    (void)drps_io_remove_tree(drps_io_os(), folder, NULL); /* kept in memory from here on */
    title();
    run_inproc(p);
    for (enum transport t = 0; t < TRANSPORTS; t++) {
        struct job j = {p, t};
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_rank_1, &j)) die("thread", NULL);
        run_rank(p, t, 0);
        (void)pthread_join(thread, NULL);
    }
}

static void run_there(struct place *p, uint32_t rank, const char *folder)
{
    struct drps_err err = DRPS_ERR_INIT;
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/peers", folder);
    int rc = drps_peers_read(drps_io_os(), path, &p->peers, &err);
    (void)snprintf(path, sizeof(path), "%s/%u", folder, rank);
    if (rc == 0) rc = drps_net_keys_load(drps_io_os(), path, &p->keys[rank], &err);
    if (rc < 0) die("peers", &err);
    if (rank == 0) title();
    for (enum transport t = 0; t < TRANSPORTS; t++)
        run_rank(p, t, rank);
    drps_peers_destroy(&p->peers);
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct place p = {.budget = 256 << 20};
    const int keys = argc == 3 && !strcmp(argv[1], "keys");
    const int there = argc >= 4 && !strcmp(argv[1], "rank") && (argv[2][0] == '0' || argv[2][0] == '1');
    const int last = there ? 4 : 1;
    if (keys) {
        if (drps_net_keys_make(drps_io_os(), argv[2], &p.keys[0], &err) < 0) die("keys", &err);
        printf("%s\n", p.keys[0].public_key);
        return 0;
    }
    if (argc > last + 1 || (argc > last && drps_size_parse(argv[last], &p.budget, &err) < 0)) {
        fprintf(stderr, "usage: bench_net [BYTES] | rank 0|1 FOLDER [BYTES] | keys FOLDER\n%s\n", err.text);
        return 2;
    }
    if (there) run_there(&p, argv[2][0] == '1', argv[3]);
    else run_here(&p);
    return 0;
}
