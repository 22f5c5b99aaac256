/* The MPI thread: it looks after what comes and goes, notices who is silent, and rests when nothing
 * happens. */
#include "net/mpi/mpi_internal.h"

#include <sched.h>

#include "base/drps_clock.h"

enum {
    SPIN_NS = 30000,    /* looks without a pause since something happened */
    NAP_MIN_NS = 20000, /* the first nap; each is twice as long as the one before */
    NAP_MOVING_NS =
        40000, /* the longest while MPI moves a frame, which takes looks of both sides */
    NAP_WAITED_NS = 200000, /* while a part waits for a message */
    NAP_MOST_NS = 1000000,  /* and while none does */
};

/* Lock held: peer r knows that this rank leaves, and everything before; or never will. */
static int has_parted(const struct net_mpi *m, uint32_t r)
{
    const struct net_mpi_peer *peer = &m->peers[r];
    if (peer->dead) return 1;
    return peer->bye_sent && !peer->n && (m->net.peers[r].left || !m->frames[r].greeted);
}

/* Lock held. 1: nothing is left to do, or it is too late. */
static int may_go(struct net_mpi *m)
{
    if (!m->leaving) return 0;
    uint32_t r = 0;
    while (r < m->net.o.count && (r == m->net.o.rank || has_parted(m, r)))
        r++;
    if (r == m->net.o.count) return 1;
    if (drps_clock_ns() < m->leave_by_ns) return 0;
    m->broken = 1; /* some peer has not heard of it */
    return 1;
}

/* Who has been silent for too long? Not after this process itself was stopped for a while. */
static void look_at_clock(struct net_mpi *m)
{
    const uint64_t now = drps_clock_ns(), silence_ns = m->net.o.silence_ms * UINT64_C(1000000);
    const int slept = now - m->tick_ns > silence_ns / 2;
    if (now - m->tick_ns < drps_frames_ping_ms(&m->net) * UINT64_C(1000000)) return;
    m->tick_ns = now;
    pthread_mutex_lock(&m->lock);
    for (uint32_t r = 0; r < m->net.o.count; r++) {
        struct net_frames *f = &m->frames[r];
        if (!f->greeted || m->peers[r].dead || m->net.peers[r].left) continue;
        if (slept) f->heard_ns = now;
        if (now - f->heard_ns <= silence_ns) continue;
        m->peers[r].dead = m->broken = 1;
        drps_frames_too_silent(&m->net, r);
    }
    pthread_mutex_unlock(&m->lock);
}

/* Lock held. */
static int somebody_waits(const struct net_mpi *m)
{
    for (size_t i = 0; i < WIRE_PARTS; i++)
        if (m->net.inbox[i].waiting) return 1;
    return 0;
}

/* 1: MPI has frames that it is not done with. */
static int is_moving(const struct net_mpi *m)
{
    uint32_t r = 0;
    while (r < m->net.o.count && (!m->peers[r].n || m->peers[r].dead))
        r++;
    return r < m->net.o.count || m->coming;
}

/* Lock held, and let go meanwhile: until a part sends or takes something, or for a nap. */
static void nap(struct net_mpi *m)
{
    const uint64_t most = is_moving(m)        ? NAP_MOVING_NS
                          : somebody_waits(m) ? NAP_WAITED_NS
                                              : NAP_MOST_NS;
    if (m->nap_ns > most) m->nap_ns = most;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)m->nap_ns;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    if (!m->woken) (void)pthread_cond_timedwait(&m->wake, &m->lock, &until);
    m->woken = 0;
    m->nap_ns *= 2;
}

/* Returns 1 when this rank may go. */
static int rest(struct net_mpi *m, int busy)
{
    const uint64_t now = drps_clock_ns();
    if (busy) {
        m->busy_ns = now;
        m->nap_ns = NAP_MIN_NS;
    }
    const int spin = now - m->busy_ns < SPIN_NS;
    pthread_mutex_lock(&m->lock);
    const int go = may_go(m);
    if (!go && !spin) nap(m);
    pthread_mutex_unlock(&m->lock);
    if (!go && spin && !busy) (void)sched_yield();
    return go;
}

void *drps_mpi_thread_main(void *arg)
{
    struct net_mpi *m = arg;
    m->tick_ns = drps_clock_ns();
    m->nap_ns = NAP_MIN_NS;
    for (int go = 0; !go;) {
        unsigned done = drps_mpi_receive(m);
        for (uint32_t r = 0; r < m->net.o.count; r++)
            if (r != m->net.o.rank) done += drps_mpi_send(m, r);
        look_at_clock(m);
        go = rest(m, done > 0);
    }
    if (m->broken) m->calls->give_up();
    return NULL;
}
