#include "bench/ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/drps_clock.h"

enum { TYPE = DRPS_NET_TYPE_FIRST, WAIT_MS = 60000 };

const char *const transport_names[TRANSPORTS + 1] = {"inproc", "zmq, Unix",     "sockets",
                                                     "zmq",    "zmq with keys", "mpi"};

void die(const char *what, const struct drps_err *err)
{
    fprintf(stderr, "bench: %s: %s\n", what, err ? err->text : strerror(errno));
    exit(1);
}

double end_cpu(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

double machine_cpu(void)
{
    unsigned long long user, nice, system, idle, wait, irq, soft;
    FILE *f = fopen("/proc/stat", "r");
    if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
                     &wait, &irq, &soft) != 7)
        die("/proc/stat", NULL);
    (void)fclose(f);
    return (double)(user + nice + system + irq + soft) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- Messages ---- */

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

void end_put(struct end *e, const void *data, size_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_piece piece = {data, n};
    const struct drps_net_send send = {.to = 1 - e->rank,
                                       .part = DRPS_NET_SERVER,
                                       .type = TYPE,
                                       .pieces = &piece,
                                       .n = 1,
                                       .done = unchanged};
    if (!e->net)
        socket_write(e->fd, data, n);
    else if (drps_net_send(e->net, &send, WAIT_MS, &err) < 0)
        die("send", &err);
}

const void *end_get(struct end *e, size_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t head = 0;
    if (!e->net) {
        socket_read(e->fd, &head, sizeof(head));
        socket_read(e->fd, e->room, n);
        if (head != n) die("wrong size", NULL);
        return e->room;
    }
    drps_net_message_free(e->message);
    if (drps_net_receive(e->net, DRPS_NET_SERVER, 1 - e->rank, WAIT_MS, &e->message, &err) < 0)
        die("receive", &err);
    if (e->message->bytes != n) die("wrong size", NULL);
    return e->message->data;
}

/* ---- Opening ---- */

static struct drps_net_options options(uint32_t rank)
{
    return (struct drps_net_options){
        .rank = rank, .count = 2, .job_id = 1, .message_bytes = {0, LARGEST, 0}};
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
            if (!connect(fd, found->ai_addr, found->ai_addrlen))
                conn = fd;
            else if (errno != ECONNREFUSED || drps_seconds_since(start) > 60)
                die("connect", NULL);
        }
    }
    freeaddrinfo(found);
    if (conn < 0) die("connect", NULL);
    (void)setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return conn;
}

/* Payloads may be under way until the net is closed. */
static void end_close(struct end *e)
{
    drps_net_message_free(e->message);
    if (e->fd >= 0) (void)close(e->fd);
    drps_net_close(e->net, 5000, NULL);
    free(e->room);
}

void run_one(const struct ends *p, enum transport t, uint32_t rank, run_end *run, void *arg)
{
    struct end e = {.transport = t, .rank = rank, .fd = -1};
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_net_options o = options(rank);
    if (t == SOCKETS) {
        e.room = malloc(LARGEST);
        if (!e.room) die("memory", NULL);
        e.fd = open_socket(&p->peers.peers[1], rank);
    } else if (t == OVER_MPI) {
        if (drps_net_open_mpi(&o, &e.net, &err) < 0) die("open", &err);
    } else if (drps_net_open_zmq(&o, t == ZMQ_UNIX ? &p->meet.peers : &p->peers,
                                 t == ZMQ_KEYS ? &p->keys[rank] : NULL, 1, &e.net, &err) < 0) {
        die("open", &err);
    }
    run(&e, arg);
    end_close(&e);
}

struct thread {
    struct end end;
    run_end *run;
    void *arg;
};

static void *run_thread(void *arg)
{
    struct thread *t = arg;
    t->run(&t->end, t->arg);
    return NULL;
}

static void run_inproc(run_end *run, void *arg)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *nets[2];
    struct thread t[2];
    const struct drps_net_options o = options(0);
    pthread_t thread;
    if (drps_net_open_inproc(&o, nets, &err) < 0) die("open", &err);
    for (uint32_t r = 0; r < 2; r++)
        t[r] =
            (struct thread){{.transport = INPROC, .rank = r, .net = nets[r], .fd = -1}, run, arg};
    if (pthread_create(&thread, NULL, run_thread, &t[1])) die("thread", NULL);
    (void)run_thread(&t[0]);
    (void)pthread_join(thread, NULL);
    for (int r = 0; r < 2; r++)
        end_close(&t[r].end);
}

void run_both(const struct ends *p, enum transport t, run_end *run, void *arg)
{
    int status;
    if (t == INPROC) {
        run_inproc(run, arg);
        return;
    }
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child < 0) die("fork", NULL);
    run_one(p, t, child == 0, run, arg);
    if (child == 0) exit(0);
    if (waitpid(child, &status, 0) != child || status) die("the other end failed", NULL);
}

static void make_keys(const char *folder, uint32_t rank, struct ends *p)
{
    struct drps_err err = DRPS_ERR_INIT;
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%u", folder, rank);
    if (drps_net_keys_make(drps_io_os(), path, &p->keys[rank], &err) < 0) die("keys", &err);
    memcpy(p->at[rank].public_key, p->keys[rank].public_key, DRPS_NET_KEY_BYTES);
}

void ends_here(struct ends *p)
{
    char folder[] = "/tmp/drps-bench-net.XXXXXX";
    struct drps_err err = DRPS_ERR_INIT;
    *p = (struct ends){.at = {{"127.0.0.1", "17000", ""}, {"127.0.0.1", "17001", ""}}};
    p->peers = (struct drps_peers){2, p->at};
    if (!mkdtemp(folder)) die(folder, NULL);
    for (uint32_t r = 0; r < 2; r++)
        make_keys(folder, r, p);
    (void)drps_io_remove_tree(drps_io_os(), folder, NULL); /* kept in memory from here on */
    if (drps_meet_open(2, &p->meet, &err) < 0 || p->meet.keys) die("Unix sockets", &err);
}

void ends_there(struct ends *p, uint32_t rank, const char *folder)
{
    struct drps_err err = DRPS_ERR_INIT;
    char path[4096];
    *p = (struct ends){0};
    (void)snprintf(path, sizeof(path), "%s/peers", folder);
    int rc = drps_peers_read(drps_io_os(), path, &p->peers, &err);
    (void)snprintf(path, sizeof(path), "%s/%u", folder, rank);
    if (rc == 0) rc = drps_net_keys_load(drps_io_os(), path, &p->keys[rank], &err);
    if (rc < 0) die("peers", &err);
}

void ends_free(struct ends *p)
{
    if (p->peers.peers != p->at) drps_peers_destroy(&p->peers);
    drps_meet_close(&p->meet);
}
