/* Reading a peers file: a line a rank. What a line may be is checked here. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "net/drps_net.h"
#include "net/drps_peers.h"

enum { FILE_MAX = 1 << 20 };

static const char blanks[] = " \t\r";

static int port_ok(const char *text)
{
    const size_t n = strlen(text);
    return n >= 1 && n < DRPS_PEER_PORT_BYTES && strspn(text, "0123456789") == n &&
           atoi(text) >= 1 && atoi(text) <= 65535;
}

/* "host:port" or "[v6]:port", cut in place. */
static int parse_address(char *text, struct drps_peer *peer)
{
    char *colon = strrchr(text, ':');
    if (!colon || colon == text || !port_ok(colon + 1)) return 0;
    *colon = '\0';
    char *host = text;
    if (host[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
    } else if (strchr(host, ':')) {
        return 0; /* an IPv6 address without brackets */
    }
    if (!host[0] || host[0] == '/' || strlen(host) >= sizeof(peer->host)) return 0;
    strcpy(peer->host, host);      /* fits: checked */
    strcpy(peer->port, colon + 1); /* the same */
    return 1;
}

static int parse_line(char *line, const char *path, unsigned number, struct drps_peer *peer,
                      struct drps_err *err)
{
    char *rest = NULL;
    char *address = strtok_r(line, blanks, &rest);
    const char *key = strtok_r(NULL, blanks, &rest);
    memset(peer, 0, sizeof(*peer));
    if (!parse_address(address, peer))
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s:%u: '%s' is no address: expected host:port, for instance "
                            "10.0.0.7:7000 or [fd00::7]:7000",
                            path, number, address);
    if (key && strlen(key) != DRPS_NET_KEY_BYTES - 1)
        return drps_err_set(err, DRPS_E_FORMAT,
                            "%s:%u: the public key has %zu characters, expected %d", path, number,
                            strlen(key), DRPS_NET_KEY_BYTES - 1);
    if (key) strcpy(peer->public_key, key); /* fits: checked */
    if (strtok_r(NULL, blanks, &rest))
        return drps_err_set(err, DRPS_E_FORMAT, "%s:%u: more than host:port and a key", path,
                            number);
    return 0;
}

/* Ranks are told apart by address, and by key. */
static int check_new(const struct drps_peers *peers, const struct drps_peer *peer, const char *path,
                     unsigned number, struct drps_err *err)
{
    for (uint32_t r = 0; r < peers->count; r++) {
        const struct drps_peer *other = &peers->peers[r];
        if (strcmp(other->host, peer->host) == 0 && atoi(other->port) == atoi(peer->port))
            return drps_err_set(err, DRPS_E_FORMAT,
                                "%s:%u: %s:%s is the address of rank %u already: give each rank "
                                "one of its own, ranks of one machine different ports",
                                path, number, peer->host, peer->port, r);
        if (peer->public_key[0] && strcmp(other->public_key, peer->public_key) == 0)
            return drps_err_set(err, DRPS_E_FORMAT,
                                "%s:%u: the key is that of rank %u already: make each rank keys of "
                                "its own",
                                path, number, r);
    }
    return 0;
}

static int parse(char *text, const char *path, struct drps_peers *peers, struct drps_err *err)
{
    size_t cap = 0;
    unsigned number = 0;
    int rc = 0;
    for (char *line = text; line && rc == 0;) {
        char *end = strchr(line, '\n');
        if (end) *end++ = '\0';
        number++;
        line += strspn(line, blanks);
        if (*line && *line != '#') {
            if (peers->count == DRPS_NET_RANKS_MAX)
                return drps_err_set(err, DRPS_E_FORMAT, "%s:%u: more than %d ranks", path, number,
                                    DRPS_NET_RANKS_MAX);
            if (drps_array_reserve(&peers->peers, &cap, peers->count + 1, sizeof(*peers->peers)))
                return drps_err_set(err, -ENOMEM, "no memory for the peers of %s", path);
            rc = parse_line(line, path, number, &peers->peers[peers->count], err);
            if (rc == 0) rc = check_new(peers, &peers->peers[peers->count], path, number, err);
            if (rc == 0) peers->count++;
        }
        line = end;
    }
    if (rc == 0 && peers->count == 0)
        rc = drps_err_set(err, DRPS_E_FORMAT, "%s: no peers: expected host:port a line", path);
    return rc;
}

int drps_peers_read(const struct drps_io *io, const char *path, struct drps_peers *peers_out,
                    struct drps_err *err)
{
    struct drps_peers peers = {0, NULL};
    char *text;
    size_t n;
    *peers_out = peers;
    int rc = drps_io_read_text(io, path, FILE_MAX, &text, &n, err);
    if (rc < 0) return rc;
    rc = parse(text, path, &peers, err);
    free(text);
    if (rc < 0) {
        drps_peers_destroy(&peers);
        return rc;
    }
    *peers_out = peers;
    return 0;
}

void drps_peers_destroy(struct drps_peers *peers)
{
    free(peers->peers);
    *peers = (struct drps_peers){0, NULL};
}

int drps_peer_is_loopback(const struct drps_peer *peer)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (peer->host[0] == '/') return 1;
    if (inet_pton(AF_INET, peer->host, &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, peer->host, &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcmp(peer->host, "localhost") == 0;
}

uint64_t drps_peers_id(const struct drps_peers *peers)
{
    uint64_t id[2] = {0, 0};
    for (uint32_t r = 0; r < peers->count; r++) {
        const struct drps_peer *p = &peers->peers[r];
        id[1] = drps_checksum(p->host, strlen(p->host)) ^ drps_checksum(p->port, strlen(p->port));
        id[0] = drps_checksum(id, sizeof(id));
    }
    return id[0];
}
