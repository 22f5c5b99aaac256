/* Opening and closing a rank's end over MPI; mpi_internal.h has the idea. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_clock.h"
#include "net/mpi/mpi_internal.h"

enum { REFUSAL_LINGER_MS = 1000 }; /* for telling why the start failed */

static struct net_mpi *this_end(struct drps_net *net)
{
    return (struct net_mpi *)net;
}

/* Lock held: the MPI thread has something to do. */
static void wake(struct net_mpi *m)
{
    m->woken = 1;
    pthread_cond_signal(&m->wake);
}

static void carry(struct drps_net *net, struct net_out *out)
{
    struct net_mpi *m = this_end(net);
    if (out->head.to == net->o.rank) {
        drps_net_deliver(net, drps_net_out_deliver(out));
        return;
    }
    drps_frames_add(&m->frames[out->head.to], out);
    wake(m);
}

static void took(struct drps_net *net, uint32_t from, unsigned part)
{
    if (from != net->o.rank) {
        wake(this_end(net));
        return;
    }
    net->peers[from].credit[part]++;
    pthread_cond_broadcast(&net->changed);
}

/* Ends with frames under way: MPI may still read or write their memory until the process ends. */
static _Atomic(struct net_mpi *) kept;

/* After the MPI thread has gone, or was never started. Accepts what a failed open left. */
static void free_all(struct net_mpi *m)
{
    if (m->peers) drps_mpi_drop(m);
    drps_frames_free(m->frames, m->net.o.count);
    drps_net_destroy(&m->net);
    if (m->lock_made) {
        pthread_cond_destroy(&m->wake);
        pthread_mutex_destroy(&m->lock);
    }
    if (m->broken) {
        m->kept_before = atomic_exchange(&kept, m);
        return;
    }
    free(m->peers);
    free(m);
}

static void leave(struct drps_net *net, uint32_t linger_ms, const struct drps_err *why)
{
    struct net_mpi *m = this_end(net);
    pthread_mutex_lock(&m->lock);
    m->leaving = 1;
    m->leave_by_ns = drps_clock_ns() + linger_ms * UINT64_C(1000000);
    if (why) (void)snprintf(m->why, sizeof(m->why), "%.*s", WIRE_TEXT_BYTES - 1, why->text);
    m->why_stays = why && !drps_err_may_pass(why->code);
    wake(m);
    pthread_mutex_unlock(&m->lock);
    if (m->started) pthread_join(m->thread, NULL);
    free_all(m);
}

static const struct net_ops ops = {NET_BORROWS, carry, NULL, took, leave};

static int allocate(struct net_mpi *m, const struct drps_net_options *o, struct drps_err *err)
{
    pthread_condattr_t attr;
    pthread_mutex_init(&m->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&m->wake, &attr);
    pthread_condattr_destroy(&attr);
    m->lock_made = 1;
    m->net.o = *o; /* for free_all() */
    m->last = &m->coming;
    m->peers = calloc(o->count, sizeof(*m->peers));
    m->frames = drps_frames_new(o->count);
    if (!m->peers || !m->frames)
        return drps_err_set(err, -ENOMEM, "no memory for rank %u", o->rank);
    return drps_net_init(&m->net, &ops, o, &m->lock, err);
}

static int start(struct net_mpi *m, struct drps_err *err)
{
    const int rc = pthread_create(&m->thread, NULL, drps_mpi_thread_main, m);
    if (rc) return drps_err_set(err, -rc, "cannot start a thread: %s", strerror(rc));
    m->started = 1;
    return 0;
}

int drps_mpi_open(const struct drps_net_options *options, const struct net_mpi_calls *calls,
                  void *ctx, int tag, struct drps_net **net_out, struct drps_err *err)
{
    struct drps_net_options o = *options;
    struct drps_err why = DRPS_ERR_INIT;
    *net_out = NULL;
    int rc = drps_net_options_check(&o, err);
    if (rc < 0) return rc;
    struct net_mpi *m = calloc(1, sizeof(*m));
    if (!m) return drps_err_set(err, -ENOMEM, "no memory for rank %u", o.rank);
    m->calls = calls;
    m->ctx = ctx;
    m->tag = tag;
    rc = allocate(m, &o, err);
    if (rc == 0) rc = start(m, err);
    if (rc < 0) {
        free_all(m);
        return rc;
    }
    rc = drps_frames_wait(&m->net, m->frames, "", &why);
    if (rc < 0) {
        drps_net_close(&m->net, REFUSAL_LINGER_MS, &why);
        return drps_err_set(err, rc, "%s", why.text);
    }
    *net_out = &m->net;
    return 0;
}

int drps_net_open_mpi(const struct drps_net_options *options, struct drps_net **net_out,
                      struct drps_err *err)
{
    const struct net_mpi_calls *calls;
    struct net_mpi_place place;
    char text[NET_MPI_TEXT_BYTES];
    *net_out = NULL;
    int rc = drps_mpi_load(&calls, err);
    if (rc < 0) return rc;
    if (calls->begin(0, &place, text) < 0)
        return drps_err_set(err, DRPS_E_BACKEND, "MPI cannot start: %s", text);
    if (place.rank != options->rank || place.count != options->count)
        rc = drps_err_set(err, DRPS_E_CONFIG,
                          "MPI says that this is rank %u of %u, and it should be %u of %u: start "
                          "all ranks with one mpirun or srun",
                          place.rank, place.count, options->rank, options->count);
    else
        rc = drps_mpi_open(options, calls, NULL, (int)(place.nets % NET_MPI_TAGS), net_out, err);
    if (rc < 0) calls->give_up(); /* the others may wait for this rank: they end, too */
    return rc;
}
