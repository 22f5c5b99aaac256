/*
 * The place where the ranks of a job meet, so that other users of their machine cannot take part.
 *
 * A job whose ranks are all on this machine needs no keys: its ranks meet at Unix sockets in a
 * folder that only this user may enter. Ranks on several machines have keys.
 */
#ifndef DRPS_NET_MEET_H
#define DRPS_NET_MEET_H

#include "net/drps_peers.h"

enum { DRPS_MEET_FOLDER_BYTES = 108 };

/* ---- All ranks of a job, started by one process ---- */

/* The place where all of them meet, as their parent process has set it up. */
struct drps_meet {
    struct drps_peers peers;             /* own */
    struct drps_net_keys *keys;          /* own [peers.count]; NULL: Unix sockets, without keys */
    char folder[DRPS_MEET_FOLDER_BYTES]; /* of the sockets; empty if there is none */
    struct drps_err why;                 /* why there is no folder */
    uint64_t job_id;                     /* another for every job */
};

/*
 * Set up the meeting of `count` ranks, before their processes are forked. The folder is
 * "drps-ranks.XXXXXX" below $XDG_RUNTIME_DIR, or else below $TMPDIR (/tmp if that is not set).
 * Where there can be none, the ranks get ports of the loopback interface, and keys that stay in
 * memory. Fails if there can be neither.
 */
DRPS_MUST_CHECK
int drps_meet_open(uint32_t count, struct drps_meet *meet_out, struct drps_err *err);

/* Rank `rank` is connected with all others: remove its socket, and the folder with the last socket,
 * and overwrite this process's copy of the keys. */
void drps_meet_done(struct drps_meet *meet, uint32_t rank);

/* All ranks have ended: remove what killed ranks have left of the folder. Accepts a zeroed struct.
 */
void drps_meet_close(struct drps_meet *meet);

/* ---- One rank of a peers file ---- */

/* The place where one rank meets the others. */
struct drps_meet_rank {
    struct drps_net_keys keys;
    int secured;                       /* 1: there are keys */
    char socket[DRPS_PEER_HOST_BYTES]; /* path of this rank's socket; empty if it has none */
    int claim;                         /* own: the file whose lock makes the socket ours; or -1 */
};

/*
 * How rank `rank` meets its `peers`: with the keys of the folder `keys`; or, without keys, at Unix
 * sockets in the folder /tmp/drps-ranks.UID if all of them are on loopback, in which case `peers`
 * become the sockets' paths. Neither of these with `insecure`, or where a peer is elsewhere.
 *   -EADDRINUSE  another process has this rank's address
 *   -EACCES      the folder is not one that only this user may enter
 *   errors of drps_net_keys_load()
 */
DRPS_MUST_CHECK
int drps_meet_rank_open(const char *keys, int insecure, uint32_t rank, struct drps_peers *peers,
                        struct drps_meet_rank *met_out, struct drps_err *err);

/* Remove this rank's socket, after the net has been closed. Accepts what a failed open left. */
void drps_meet_rank_close(struct drps_meet_rank *met);

#endif
