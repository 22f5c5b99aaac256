/*
 * Messages between the ranks of a job: bytes in, bytes out.
 *
 * A rank is one process (or, with the inproc transport, one of several in this process). Each has
 * the parts worker, server and, used on rank 0, master; a message goes from a rank to a part of a
 * rank. What a message means is the engine's: net sees a type, a round, a tag and bytes.
 *
 *   order     messages of one rank to one part of a rank arrive in the order in which they were
 *             sent, each once; between parts and ranks there is no order
 *   bounded   at most `queue_messages` messages of one rank to one part are under way or waiting
 *             there; then drps_net_send() waits. No message is larger than its receiver has said.
 *             So a rank holds at most (count - 1) * queue_messages * message_bytes[part] for each
 *             part, and as much of its own that others have not taken
 *   failure   a rank that dies, falls silent, gives up or breaks the protocol ends the job: every
 *             wait of every rank returns an error that names it (but see drps_net_need()). A slow
 *             rank only slows
 *   closing   comes after drps_net_barrier(): to wait for a rank that has closed is an error
 *
 * Threads: all calls from any thread, except that a part's messages are best received by one
 * thread. drps_net_close() makes calls that are waiting return; no call may begin after it.
 */
#ifndef DRPS_NET_NET_H
#define DRPS_NET_NET_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_checksum.h"
#include "base/drps_err.h"
#include "base/drps_log.h"

struct drps_net;   /* opaque: one rank's end of the job; owned by whoever opened it */
struct drps_peers; /* drps_peers.h */
struct drps_net_keys;

enum drps_net_part { DRPS_NET_WORKER, DRPS_NET_SERVER, DRPS_NET_MASTER, DRPS_NET_PARTS };

enum {
    DRPS_NET_TYPE_FIRST = 16, /* smaller types are net's own */
    DRPS_NET_RANKS_MAX = 1024,
    DRPS_NET_HASH_BYTES = 32,
    DRPS_NET_GROUP_BYTES = 1 << 20, /* bound of broadcast and gather */
};
#define DRPS_NET_ANY UINT32_MAX
#define DRPS_NET_MESSAGE_MAX (UINT64_C(1) << 36) /* bytes */

/* A rank's part in a job. */
struct drps_net_options {
    uint32_t rank, count; /* this rank, below count; count 1 to DRPS_NET_RANKS_MAX */
    uint64_t job_id;      /* the same on all ranks, another for every job: others are ignored */
    uint8_t plan_hash[DRPS_NET_HASH_BYTES]; /* must be the same on all ranks */
    uint64_t message_bytes[DRPS_NET_PARTS]; /* the largest message that this rank's part will take;
                                               0: 64 KiB */
    uint32_t queue_messages; /* of one rank to one part, 1 to 1024, the same on all ranks; 0: 8 */
    uint32_t silence_ms;     /* a rank not heard of for so long is dead, at least 100; 0: 10,000.
                                Ranks that compute are heard of all the same */
    uint32_t start_ms;       /* all ranks must have answered within; 0: 60,000 */
    const atomic_int *stop;  /* non-zero: do not wait for the others any longer. May be NULL */
    /* Asked some times a second, by one thread: a rank whose process has ended, as the caller knows
     * before it has been silent for long enough; DRPS_NET_ANY: none. May be NULL. ZeroMQ alone. */
    uint32_t (*lost)(void *ctx);
    void *lost_ctx;
    const struct drps_log *log; /* told whom this rank waits for, once that takes 3 seconds; only
                                   while the net is opened. May be NULL */
};

/* Returns the silence_ms with which a link that is cut for cut_ms (0: 5,000) only costs time: 2.3
 * times that and somewhat less than two seconds. */
uint32_t drps_net_silence_ms(uint32_t cut_ms);

/* All ranks of the job in this process: nets_out [options->count]; options->rank is ignored. */
DRPS_MUST_CHECK
int drps_net_open_inproc(const struct drps_net_options *options, struct drps_net **nets_out,
                         struct drps_err *err);

/*
 * This rank over ZeroMQ: bind this rank's address of `peers`, connect to the others', and wait
 * until every rank has said the same job, count, queue and plan.
 *
 * peers     one address a rank, options->count of them, with the ranks' public keys if `keys` is
 *           given; borrowed until return
 * keys      this rank's own: traffic is encrypted and only the peers' keys are let in. NULL: none,
 *           which is refused unless all addresses are loopback or `insecure` is set
 * insecure  1: go without keys. Whoever reaches the port can then read the traffic, send
 *           parameters of its own, and stop the job
 *
 *   DRPS_E_CONFIG   addresses, keys and options do not fit together; or another plan, count, queue
 *                   (the text names rank and difference); or this build has no ZeroMQ
 *   DRPS_E_VERSION  a rank speaks another version of the protocol
 *   -ETIMEDOUT      the ranks that did not answer within start_ms, and why where that is known
 *   DRPS_E_PEER     a rank gave up meanwhile
 *   DRPS_E_INTERRUPTED   options->stop was set
 */
DRPS_MUST_CHECK
int drps_net_open_zmq(const struct drps_net_options *options, const struct drps_peers *peers,
                      const struct drps_net_keys *keys, int insecure, struct drps_net **net_out,
                      struct drps_err *err);

/*
 * This rank over MPI: options->rank of the options->count processes that one mpirun or srun has
 * started. There are no addresses and no keys: who may take part, and who sees the traffic, is
 * MPI's matter. One net of a process at a time; they may follow each other. MPI starts with the
 * first one and ends with the process, which waits for all others then. After a rank was lost it
 * ends them instead, and no net can be opened any more: MPI has no way back.
 *
 *   DRPS_E_CONFIG   this build or this machine has no MPI; or rank and count are not MPI's; and as
 *                   drps_net_open_zmq()
 *   DRPS_E_BACKEND  MPI does not start
 *   others          as drps_net_open_zmq()
 */
DRPS_MUST_CHECK
int drps_net_open_mpi(const struct drps_net_options *options, struct drps_net **net_out,
                      struct drps_err *err);

/*
 * Leave the job. What was sent before is still delivered, within `linger_ms`. `why`, if it holds a
 * failure, ends the job of all others with its text. NULL-safe.
 */
void drps_net_close(struct drps_net *net, uint32_t linger_ms, const struct drps_err *why);

/* This rank is to stop: all of its waits, those under way too, end with DRPS_E_INTERRUPTED. Others
 * learn of it when it leaves. */
void drps_net_stop(struct drps_net *net);

/*
 * From now on only rank `rank` must stay (this one: nobody must): another that dies, gives up or
 * breaks the protocol does not end the job here, not even if that has been noticed already. What is
 * sent to it, or waited for from it alone, fails as though it had left.
 */
void drps_net_need(struct drps_net *net, uint32_t rank);

/* 1: that rank has left or was lost, and need not stay. */
int drps_net_is_missing(struct drps_net *net, uint32_t rank);

uint32_t drps_net_rank(const struct drps_net *net);
uint32_t drps_net_count(const struct drps_net *net);

/* A message to send. */
struct drps_net_send {
    uint32_t to; /* own rank allowed */
    enum drps_net_part part;
    uint8_t type; /* DRPS_NET_TYPE_FIRST to 255 */
    uint32_t tag; /* the caller's, for instance which table */
    uint64_t round;
    const struct drps_piece *pieces; /* [n] payload, in order; the array is borrowed until return */
    size_t n;
    /* NULL: the payload is copied before return. Else it is sent from where it lies, or even
     * received there, and must not change until done(ctx) has been called: once, from any thread,
     * perhaps before return, perhaps when the receiver frees the message or when a net is closed,
     * with no lock held. */
    void (*done)(void *ctx);
    void *ctx;
};

/*
 * Send a message; wait for room at the receiver at most timeout_ms. After a failure done() is not
 * called.
 *   -EINVAL         rank, part or type out of range
 *   -EMSGSIZE       larger than the receiver takes
 *   -ETIMEDOUT      no room
 *   DRPS_E_PEER, _PROTO and others   what ended the job
 *   DRPS_E_CLOSED   this end is being closed
 */
DRPS_MUST_CHECK
int drps_net_send(struct drps_net *net, const struct drps_net_send *send, uint32_t timeout_ms,
                  struct drps_err *err);

/* A message received. */
struct drps_net_message {
    uint32_t from;
    uint8_t type;
    uint32_t tag;
    uint64_t round;
    const void *data; /* [bytes], aligned to 8, or as its sender's memory is where it gave done() */
    size_t bytes;
};

/*
 * The next message to `part` from rank `from`, or from DRPS_NET_ANY; *message_out is the caller's
 * to free. Errors as drps_net_send(); -ETIMEDOUT: nothing came. While a message is there, a rank
 * that has left in good order is no error.
 */
DRPS_MUST_CHECK
int drps_net_receive(struct drps_net *net, enum drps_net_part part, uint32_t from,
                     uint32_t timeout_ms, struct drps_net_message **message_out,
                     struct drps_err *err);

/* drps_net_receive() until the clock (base/drps_clock.h) shows until_ns. */
DRPS_MUST_CHECK
int drps_net_receive_until(struct drps_net *net, enum drps_net_part part, uint32_t from,
                           uint64_t until_ns, struct drps_net_message **message_out,
                           struct drps_err *err);
void drps_net_message_free(struct drps_net_message *message); /* NULL-safe */

/* ---- Calls of a group: all ranks make them, in the same order and by one thread each. timeout_ms
 * bounds each message's wait. Rank 0 goes on without ranks that are missing, see
 * drps_net_is_missing(). DRPS_E_PROTO: a rank is in another call. -EBUSY: another thread of this
 * rank is in one. drps_allreduce.h has one more call. ---- */

/* Return when all ranks have called it. */
DRPS_MUST_CHECK
int drps_net_barrier(struct drps_net *net, uint32_t timeout_ms, struct drps_err *err);

/* Copy `data` [bytes, the same on all ranks, at most DRPS_NET_GROUP_BYTES] of rank `root` to all.
 */
DRPS_MUST_CHECK
int drps_net_broadcast(struct drps_net *net, uint32_t root, void *data, size_t bytes,
                       uint32_t timeout_ms, struct drps_err *err);

/* Copy `mine` [bytes] of every rank into all_out [count][bytes] of every rank, zeros for those that
 * are missing; count * bytes at most DRPS_NET_GROUP_BYTES. */
DRPS_MUST_CHECK
int drps_net_gather(struct drps_net *net, const void *mine, size_t bytes, void *all_out,
                    uint32_t timeout_ms, struct drps_err *err);

/* ---- What has come and gone ---- */

struct drps_net_peer_stats {
    uint64_t sent_messages, received_messages; /* to and from the rank, its own included */
    uint64_t sent_bytes, received_bytes;       /* payload */
};
struct drps_net_stats {
    uint64_t strangers; /* connections refused: no key, none that is listed, or said nothing */
    uint64_t malformed; /* frames dropped: damaged, not of this protocol, job or sender */
    uint64_t replayed;  /* frames dropped: their number had come before */
};

void drps_net_peer_stats(struct drps_net *net, uint32_t rank, struct drps_net_peer_stats *out);
void drps_net_stats(struct drps_net *net, struct drps_net_stats *out);

/* Log what strangers have tried so far, if any have. */
void drps_net_tell_strangers(struct drps_net *net, const struct drps_log *log);

#endif
