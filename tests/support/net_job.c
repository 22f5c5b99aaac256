#include "support/net_job.h"

#include "net/drps_meet.h"
#include "support/net_mpi.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef DRPS_WITH_ZMQ
#include <zmq.h>
#endif

const char *const net_kind_names[NET_KINDS] = {"inproc", "zmq", "zmq over Unix sockets",
                                               "zmq with keys", "MPI"};

int net_kind_there(enum net_kind kind)
{
    if (kind == NET_MPI) return net_mpi_there();
#ifdef DRPS_WITH_ZMQ
    return kind < NET_KINDS;
#else
    return kind == NET_INPROC;
#endif
}

enum net_kind net_kinds[NET_KINDS] = {NET_INPROC, NET_ZMQ, NET_UNIX, NET_CURVE, NET_MPI};

enum net_kind net_kind_of(void **state)
{
    const enum net_kind kind = *(enum net_kind *)*state;
    print_message("  over %s\n", net_kind_names[kind]);
    if (!net_kind_there(kind)) {
        print_message(kind == NET_MPI ? "  skipped: not started by mpirun\n"
                                      : "  skipped: this build has no ZeroMQ\n");
        skip();
    }
    return kind;
}

static void make_keys(struct drps_net_keys *keys)
{
#ifdef DRPS_WITH_ZMQ
    NET_CHECK(zmq_curve_keypair(keys->public_key, keys->secret_key) == 0);
#else
    memset(keys, 0, sizeof(*keys));
#endif
}

void net_peers(struct drps_peers *peers, uint32_t count, struct drps_net_keys *keys)
{
    static unsigned port = 7000; /* below those that the system gives to clients */
    const unsigned pid = (unsigned)getpid();
    peers->count = count;
    peers->peers = calloc(count, sizeof(*peers->peers));
    NET_CHECK(peers->peers);
    for (uint32_t r = 0; r < count; r++) {
        struct drps_peer *p = &peers->peers[r];
        /* All of 127.0.0.0/8 is loopback: an address for each process. */
        (void)snprintf(p->host, sizeof(p->host), "127.%u.%u.%u", 1 + (pid >> 14) % 250,
                       (pid >> 7) & 127, 1 + (pid & 127));
        (void)snprintf(p->port, sizeof(p->port), "%u", port++ % 60000);
        if (!keys) continue;
        make_keys(&keys[r]);
        memcpy(p->public_key, keys[r].public_key, sizeof(p->public_key));
    }
}

struct opening {
    unsigned mpi_job; /* 0: over ZeroMQ */
    struct drps_net_options options;
    const struct drps_peers *peers;
    const struct drps_net_keys *keys;
    struct drps_net *net;
};

static void *open_one(void *arg)
{
    struct opening *o = arg;
    struct drps_err err = DRPS_ERR_INIT;
    if (o->mpi_job)
        NET_OK(net_mpi_open(&o->options, o->mpi_job, &o->net, &err));
    else
        NET_OK(drps_net_open_zmq(&o->options, o->peers, o->keys, 0, &o->net, &err));
    return NULL;
}

/* Open all ranks as `how` says, each in a thread, as each waits for the others. */
static void open_all(struct net_job *job, const struct drps_net_options *options,
                     const struct opening *how, const struct drps_net_keys *keys)
{
    struct opening openings[NET_RANKS];
    pthread_t threads[NET_RANKS];
    for (uint32_t r = 0; r < job->count; r++) {
        openings[r] = *how;
        openings[r].options = *options;
        openings[r].options.rank = r;
        if (keys) openings[r].keys = &keys[r];
        NET_CHECK(pthread_create(&threads[r], NULL, open_one, &openings[r]) == 0);
    }
    for (uint32_t r = 0; r < job->count; r++) {
        NET_CHECK(pthread_join(threads[r], NULL) == 0);
        job->nets[r] = openings[r].net;
    }
}

static void open_mpi(struct net_job *job, const struct drps_net_options *options)
{
    static unsigned jobs;
    const struct opening how = {.mpi_job = ++jobs};
    open_all(job, options, &how, NULL);
}

static void open_zmq(struct net_job *job, const struct drps_net_options *options,
                     enum net_kind kind)
{
    const int keyed = kind == NET_CURVE;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_meet meet = {0};
    struct drps_net_keys keys[NET_RANKS];
    struct drps_peers peers;
    if (kind == NET_UNIX) {
        NET_OK(drps_meet_open(job->count, &meet, &err));
        NET_CHECK(meet.folder[0]);
        peers = meet.peers;
    } else {
        net_peers(&peers, job->count, keyed ? keys : NULL);
    }
    const struct opening how = {.peers = &peers};
    open_all(job, options, &how, keyed ? keys : NULL);
    if (kind == NET_UNIX)
        drps_meet_close(&meet); /* all are connected: nobody looks for a socket any more */
    else
        drps_peers_destroy(&peers);
}

void net_job_open(struct net_job *job, enum net_kind kind, uint32_t count,
                  const struct drps_net_options *options)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_options o = *options;
    memset(job, 0, sizeof(*job));
    job->count = o.count = count;
    NET_CHECK(count <= NET_RANKS);
    if (kind == NET_INPROC)
        NET_OK(drps_net_open_inproc(&o, job->nets, &err));
    else if (kind == NET_MPI)
        open_mpi(job, &o);
    else
        open_zmq(job, &o, kind);
}

struct running {
    struct drps_net *net;
    uint32_t rank;
    net_work work;
    void *ctx;
};

static void *run_one(void *arg)
{
    const struct running *r = arg;
    r->work(r->net, r->rank, r->ctx);
    return NULL;
}

void net_job_run(struct net_job *job, net_work work, void *ctx)
{
    struct running running[NET_RANKS];
    pthread_t threads[NET_RANKS];
    for (uint32_t r = 0; r < job->count; r++) {
        running[r] = (struct running){job->nets[r], r, work, ctx};
        NET_CHECK(pthread_create(&threads[r], NULL, run_one, &running[r]) == 0);
    }
    for (uint32_t r = 0; r < job->count; r++)
        NET_CHECK(pthread_join(threads[r], NULL) == 0);
}

static void close_one(struct drps_net *net, uint32_t rank, void *ctx)
{
    (void)rank, (void)ctx;
    drps_net_close(net, 2000, NULL);
}

void net_job_close(struct net_job *job)
{
    net_job_run(job, close_one, NULL);
}

uint64_t net_sent_bytes(struct drps_net *net)
{
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < drps_net_count(net); r++) {
        struct drps_net_peer_stats stats;
        drps_net_peer_stats(net, r, &stats);
        bytes += stats.sent_bytes;
    }
    return bytes;
}
