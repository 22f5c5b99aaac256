/*
 * Two ends that talk: over plain sockets and over each of engine/net's transports. What bench_net
 * and bench_pull compare.
 */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <stddef.h>
#include <stdint.h>

#include "net/drps_meet.h"
#include "net/drps_net.h"
#include "net/drps_peers.h"

/* The last one is between processes that mpirun has started. */
enum transport { INPROC, ZMQ_UNIX, SOCKETS, ZMQ, ZMQ_KEYS, TRANSPORTS, OVER_MPI = TRANSPORTS };
extern const char *const transport_names[TRANSPORTS + 1];

struct end {
    enum transport transport;
    uint32_t rank;        /* 0 or 1 */
    struct drps_net *net; /* NULL: the socket */
    int fd;
    void *room;                       /* own [LARGEST]: what a socket receives */
    struct drps_net_message *message; /* own: what the net received last */
};
enum { LARGEST = 64 << 20 }; /* bytes of a message */

/* Send n bytes, which must never change; they need not have gone on return. */
void end_put(struct end *e, const void *data, size_t n);
/* The next message, of n bytes; valid until the next call. */
const void *end_get(struct end *e, size_t n);

/* Seconds of processor time that this process has had, and that this machine was busy (all its
 * cores, everything that ran). */
double end_cpu(void);
double machine_cpu(void);

/* The addresses of the two ends. */
struct ends {
    struct drps_peer at[2];
    struct drps_peers peers;
    struct drps_meet meet; /* own: with both ends here */
    struct drps_net_keys keys[2];
};

/* What both ends do, each in a thread (inproc) or a process of its own. */
typedef void run_end(struct end *e, void *arg);

/* Run both ends on this machine: two processes on loopback, for INPROC two threads. */
void ends_here(struct ends *p);
void run_both(const struct ends *p, enum transport t, run_end *run, void *arg);
/* Run one end of two processes whose addresses FOLDER/peers has; over MPI `p` is not used. */
void ends_there(struct ends *p, uint32_t rank, const char *folder);
void run_one(const struct ends *p, enum transport t, uint32_t rank, run_end *run, void *arg);
void ends_free(struct ends *p);

/* End the process, naming what failed. */
_Noreturn void die(const char *what, const struct drps_err *err);

#endif
