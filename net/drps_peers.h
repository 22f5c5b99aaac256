/*
 * Who takes part in a job: the ranks' addresses and public keys (a peers file), and the Curve keys
 * of this rank.
 */
#ifndef DRPS_NET_PEERS_H
#define DRPS_NET_PEERS_H

#include <stdint.h>

#include "base/drps_io.h"

enum {
    DRPS_PEER_HOST_BYTES = 256,
    DRPS_PEER_PORT_BYTES = 6,
    DRPS_NET_KEY_BYTES = 41, /* Z85 text and a zero byte */
};

/* One rank's address. */
struct drps_peer {
    char host[DRPS_PEER_HOST_BYTES];     /* name or address; IPv6 without its brackets; or the whole
                                            path of a Unix socket, never from a file */
    char port[DRPS_PEER_PORT_BYTES];     /* empty for a Unix socket */
    char public_key[DRPS_NET_KEY_BYTES]; /* empty: none given */
};

struct drps_peers {
    uint32_t count;
    struct drps_peer *peers; /* own [count], by rank */
};

/*
 * Read "host:port [public key]", one rank a line, in order of rank; empty lines and lines that
 * begin with '#' do not count. -ENOENT and others; DRPS_E_FORMAT names the line.
 */
DRPS_MUST_CHECK
int drps_peers_read(const struct drps_io *io, const char *path, struct drps_peers *peers_out,
                    struct drps_err *err);
void drps_peers_destroy(struct drps_peers *peers); /* accepts a zeroed struct */

/* 1: only processes of the peer's own machine can connect to it. */
int drps_peer_is_loopback(const struct drps_peer *peer);

/* Returns a job's id: the same on all ranks of these peers, so that a rank with another plan is
 * told apart from a stranger. */
uint64_t drps_peers_id(const struct drps_peers *peers);

/* A rank's pair of Curve keys, as text. */
struct drps_net_keys {
    char public_key[DRPS_NET_KEY_BYTES];
    char secret_key[DRPS_NET_KEY_BYTES];
};

/* Make a pair, in memory. DRPS_E_CONFIG: this build has no ZeroMQ, or one without Curve. */
DRPS_MUST_CHECK
int drps_net_keys_pair(struct drps_net_keys *keys_out, struct drps_err *err);

/*
 * Make a pair and write it to the folder `dir`, which is made if it is missing: "secret.key" (both
 * keys; mode 0600) and "public.key" (one line, for the peers file). -EEXIST: there are keys
 * already, which stay. DRPS_E_CONFIG: this build has no ZeroMQ, or one without Curve.
 */
DRPS_MUST_CHECK
int drps_net_keys_make(const struct drps_io *io, const char *dir, struct drps_net_keys *keys_out,
                       struct drps_err *err);

/* Read "secret.key" of `dir`. -EACCES: others than its owner may read it; DRPS_E_FORMAT. */
DRPS_MUST_CHECK
int drps_net_keys_load(const struct drps_io *io, const char *dir, struct drps_net_keys *keys_out,
                       struct drps_err *err);

/* Overwrite the secret. */
void drps_net_keys_forget(struct drps_net_keys *keys);

#endif
