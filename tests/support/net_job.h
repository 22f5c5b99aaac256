/*
 * Jobs of several ranks in the test's process, over any transport, and threads for them. Checks in
 * these threads end the process: cmocka's assertions work in its own thread only.
 */
#ifndef DRPS_TESTS_NET_JOB_H
#define DRPS_TESTS_NET_JOB_H

#include <stdio.h>
#include <stdlib.h>

#include "net/drps_net.h"
#include "net/drps_peers.h"

#define NET_CHECK(ok)                                                                              \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #ok);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A call that must succeed; prints its error. `err` is a struct drps_err of the scope. */
#define NET_OK(call)                                                                               \
    do {                                                                                           \
        if ((call) < 0) {                                                                          \
            (void)fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, err.text);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { NET_RANKS = 17, NET_WAIT_MS = 60000 }; /* a wait that fails the test when it runs out */

enum net_kind { NET_INPROC, NET_ZMQ, NET_UNIX, NET_CURVE, NET_MPI, NET_KINDS };
extern const char *const net_kind_names[NET_KINDS];

struct net_job {
    uint32_t count;
    struct drps_net *nets[NET_RANKS];
};

/* 0: this build has no such transport, or the test was not started for it. */
int net_kind_there(enum net_kind kind);

/* A test of cmocka over each transport: it asks net_kind_of(state) which, and is skipped where that
 * is not there. */
#define NET_OVER_ALL(test)                                                                         \
    {#test " (inproc)", test, NULL, NULL, &net_kinds[NET_INPROC]},                                 \
        {#test " (zmq)", test, NULL, NULL, &net_kinds[NET_ZMQ]},                                   \
        {#test " (zmq over Unix sockets)", test, NULL, NULL, &net_kinds[NET_UNIX]},                \
        {#test " (zmq with keys)", test, NULL, NULL, &net_kinds[NET_CURVE]},                       \
    {                                                                                              \
#test " (mpi)", test, NULL, NULL, &net_kinds[NET_MPI]                                      \
    }
extern enum net_kind net_kinds[NET_KINDS];
enum net_kind net_kind_of(void **state);

/* Open all ranks; `options` without rank and count. */
void net_job_open(struct net_job *job, enum net_kind kind, uint32_t count,
                  const struct drps_net_options *options);
void net_job_close(struct net_job *job); /* of those that are open, at once */

/* Returns the bytes that a rank has sent to all others. */
uint64_t net_sent_bytes(struct drps_net *net);

/* work(net, rank, ctx) of all ranks at once, each in a thread. */
typedef void (*net_work)(struct drps_net *net, uint32_t rank, void *ctx);
void net_job_run(struct net_job *job, net_work work, void *ctx);

/* Addresses on loopback that no other test process uses, with keys for each rank; free with
 * drps_peers_destroy(). keys NULL: none. */
void net_peers(struct drps_peers *peers, uint32_t count, struct drps_net_keys *keys);

#endif
