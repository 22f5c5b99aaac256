/*
 * Folders of Unix sockets that one user may enter, ports of the loopback interface, and locks by
 * which a process claims its socket. It needs the file system and the user's id; drps_meet.h has
 * the idea.
 */
#include "net/drps_meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/drps_checksum.h"
#include "base/drps_clock.h"
#include "net/drps_net.h"

#define FOLDER_NAME "drps-ranks.XXXXXX"
enum {
    SOCKET_NAME_BYTES = 6, /* "/1023" and a zero byte */
    SOCKET_PATH_BYTES = sizeof(((struct sockaddr_un *)NULL)->sun_path),
    LOCK_PATH_BYTES = DRPS_PEER_HOST_BYTES + sizeof(".lock")
};
_Static_assert(DRPS_NET_RANKS_MAX <= 10000, "a socket's name has four digits");
_Static_assert((int)SOCKET_PATH_BYTES <= (int)DRPS_MEET_FOLDER_BYTES, "a folder's path fits");

/* ---- Unix sockets ---- */

/* Nobody else may be able to put another folder in place of ours. */
static int check_base(const char *base, struct drps_err *err)
{
    struct stat st;
    if (stat(base, &st)) return drps_err_set(err, -errno, "%s: %s", base, strerror(errno));
    if ((st.st_uid != 0 && st.st_uid != geteuid()) ||
        ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX)))
        return drps_err_set(err, -EACCES, "%s: others can rename what is there", base);
    return 0;
}

static int make_folder(const char *base, char path[DRPS_MEET_FOLDER_BYTES], struct drps_err *err)
{
    char whole[SOCKET_PATH_BYTES - SOCKET_NAME_BYTES + 1];
    const int n = snprintf(whole, sizeof(whole), "%s/" FOLDER_NAME, base);
    if (base[0] != '/') return drps_err_set(err, -EINVAL, "%s: not an absolute path", base);
    if (n < 0 || (size_t)n >= sizeof(whole))
        return drps_err_set(err, -ENAMETOOLONG, "%s: too long for the path of a socket", base);
    int rc = check_base(base, err);
    if (rc < 0) return rc;
    if (!mkdtemp(whole)) /* mode 0700 */
        return drps_err_set(err, -errno, "cannot make a folder in %s: %s", base, strerror(errno));
    (void)snprintf(path, DRPS_MEET_FOLDER_BYTES, "%s", whole);
    return 0;
}

static int find_folder(char path[DRPS_MEET_FOLDER_BYTES], struct drps_err *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    if (runtime && *runtime && make_folder(runtime, path, NULL) == 0) return 0;
    return make_folder(temporary && *temporary ? temporary : "/tmp", path, err);
}

/* ---- Ports and keys ---- */

/* Find a port of the loopback interface that nobody has; the socket in *socket_out keeps it ours.
 */
static int take_port(int *socket_out, struct drps_peer *peer, struct drps_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof(at);
    *socket_out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*socket_out < 0 || bind(*socket_out, (struct sockaddr *)&at, n) < 0 ||
        getsockname(*socket_out, (struct sockaddr *)&at, &n) < 0)
        return drps_err_set(err, -errno, "no port on the loopback interface: %s", strerror(errno));
    (void)snprintf(peer->host, sizeof(peer->host), "127.0.0.1");
    (void)snprintf(peer->port, sizeof(peer->port), "%u", (unsigned)ntohs(at.sin_port));
    return 0;
}

/* Each rank gets another port. They are given back for ZeroMQ to take: should another program be
 * faster, that rank says that its port is taken. */
static int take_ports(struct drps_peers *peers, struct drps_err *err)
{
    int rc = 0;
    int *sockets = calloc(peers->count, sizeof(*sockets));
    if (!sockets) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", peers->count);
    uint32_t taken = 0;
    for (; taken < peers->count && rc == 0; taken++)
        rc = take_port(&sockets[taken], &peers->peers[taken], err);
    for (uint32_t r = 0; r < taken; r++)
        if (sockets[r] >= 0) (void)close(sockets[r]);
    free(sockets);
    return rc;
}

static int make_keys(struct drps_meet *m, struct drps_err *err)
{
    int rc = 0;
    m->keys = calloc(m->peers.count, sizeof(*m->keys));
    if (!m->keys) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", m->peers.count);
    for (uint32_t r = 0; r < m->peers.count && rc == 0; r++) {
        rc = drps_net_keys_pair(&m->keys[r], err);
        memcpy(m->peers.peers[r].public_key, m->keys[r].public_key, DRPS_NET_KEY_BYTES);
    }
    return rc;
}

int drps_meet_open(uint32_t count, struct drps_meet *meet_out, struct drps_err *err)
{
    const uint64_t seed[2] = {drps_clock_ns(), (uint64_t)getpid()};
    struct drps_meet m = {.why = DRPS_ERR_INIT, .job_id = drps_checksum(seed, sizeof(seed))};
    *meet_out = m;
    m.peers = (struct drps_peers){count, calloc(count, sizeof(*m.peers.peers))};
    if (!m.peers.peers) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", count);
    int rc = find_folder(m.folder, &m.why);
    if (rc == 0) {
        for (uint32_t r = 0; r < count; r++)
            (void)snprintf(m.peers.peers[r].host, sizeof(m.peers.peers[r].host), "%s/%u", m.folder,
                           r);
    } else {
        rc = take_ports(&m.peers, err);
        if (rc == 0) rc = make_keys(&m, err);
        if (rc < 0) (void)drps_err_context(err, "no Unix sockets (%s), and no keys", m.why.text);
    }
    if (rc < 0) drps_meet_close(&m);
    *meet_out = m;
    return rc;
}

static void forget_keys(struct drps_meet *m)
{
    for (uint32_t r = 0; m->keys && r < m->peers.count; r++)
        drps_net_keys_forget(&m->keys[r]);
}

void drps_meet_done(struct drps_meet *m, uint32_t rank)
{
    forget_keys(m);
    if (!m->folder[0]) return;
    (void)unlink(m->peers.peers[rank].host);
    (void)rmdir(m->folder); /* not while others are still meeting */
}

void drps_meet_close(struct drps_meet *m)
{
    forget_keys(m);
    for (uint32_t r = 0; m->folder[0] && r < m->peers.count; r++)
        (void)unlink(m->peers.peers[r].host);
    if (m->folder[0]) (void)rmdir(m->folder);
    free(m->keys);
    drps_peers_destroy(&m->peers);
    *m = (struct drps_meet){.why = DRPS_ERR_INIT};
}

/* ---- One rank of a peers file ---- */

/* Make the folder if it is missing, and make sure that it is this user's alone. */
static int enter_folder(const char *path, struct drps_err *err)
{
    struct stat st;
    if (mkdir(path, 0700) && errno != EEXIST)
        return drps_err_set(err, -errno, "cannot make folder %s: %s", path, strerror(errno));
    if (lstat(path, &st)) return drps_err_set(err, -errno, "%s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & (S_IRWXG | S_IRWXO)))
        return 0;
    return drps_err_set(err, -EACCES,
                        "%s, where ranks without keys meet, is not a folder that only this user "
                        "may enter: remove it, or give each rank keys",
                        path);
}

static void lock_path(const char *path, char out[LOCK_PATH_BYTES])
{
    (void)snprintf(out, LOCK_PATH_BYTES, "%s.lock", path);
}

/* 1: `fd` is the file of that name, which may have been removed since it was opened. */
static int is_there(int fd, const char *path)
{
    struct stat ours, there;
    return !fstat(fd, &ours) && !stat(path, &there) && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* A socket is one process's, until it ends however it does: ZeroMQ takes any that is there. */
static int claim_socket(const char *path, int *fd_out, struct drps_err *err)
{
    char lock[LOCK_PATH_BYTES];
    lock_path(path, lock);
    for (;;) {
        *fd_out = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (*fd_out < 0) return drps_err_set(err, -errno, "%s: %s", lock, strerror(errno));
        if (flock(*fd_out, LOCK_EX | LOCK_NB))
            return drps_err_set(err, errno == EWOULDBLOCK ? -EADDRINUSE : -errno,
                                "another process is the rank at %s", path);
        if (is_there(*fd_out, lock)) return 0;
        (void)close(*fd_out);
    }
}

static int all_on_loopback(const struct drps_peers *peers)
{
    uint32_t r = 0;
    while (r < peers->count && drps_peer_is_loopback(&peers->peers[r]))
        r++;
    return r == peers->count;
}

/* The address becomes the path of a socket in the folder. */
static int place_peer(const char *folder, struct drps_peer *p, struct drps_err *err)
{
    char path[SOCKET_PATH_BYTES];
    const int n = snprintf(path, sizeof(path), "%s/%s:%s", folder, p->host, p->port);
    if (n < 0 || (size_t)n >= sizeof(path))
        return drps_err_set(err, -ENAMETOOLONG, "%s/%s:%s: too long for a socket's path", folder,
                            p->host, p->port);
    *p = (struct drps_peer){.port = ""};
    memcpy(p->host, path, (size_t)n + 1);
    return 0;
}

static int meet_in_folder(struct drps_peers *peers, uint32_t rank, struct drps_meet_rank *met,
                          struct drps_err *err)
{
    char folder[40];
    (void)snprintf(folder, sizeof(folder), "/tmp/drps-ranks.%lu", (unsigned long)geteuid());
    int rc = enter_folder(folder, err);
    for (uint32_t r = 0; r < peers->count && rc == 0; r++)
        rc = place_peer(folder, &peers->peers[r], err);
    if (rc < 0) return rc;
    (void)snprintf(met->socket, sizeof(met->socket), "%s", peers->peers[rank].host);
    rc = claim_socket(met->socket, &met->claim, err);
    if (rc < 0) met->socket[0] = '\0'; /* another's */
    return rc;
}

int drps_meet_rank_open(const char *keys, int insecure, uint32_t rank, struct drps_peers *peers,
                        struct drps_meet_rank *met_out, struct drps_err *err)
{
    *met_out = (struct drps_meet_rank){.claim = -1};
    met_out->secured = keys != NULL;
    if (keys) return drps_net_keys_load(drps_io_os(), keys, &met_out->keys, err);
    if (insecure || !all_on_loopback(peers)) return 0;
    return meet_in_folder(peers, rank, met_out, err);
}

void drps_meet_rank_close(struct drps_meet_rank *met)
{
    char lock[LOCK_PATH_BYTES];
    drps_net_keys_forget(&met->keys);
    if (met->socket[0]) {
        lock_path(met->socket, lock);
        (void)unlink(met->socket);
        (void)unlink(lock); /* while it is locked: it is ours */
    }
    if (met->claim >= 0) (void)close(met->claim);
    *met = (struct drps_meet_rank){.claim = -1};
}
