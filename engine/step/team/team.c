/*
 * The barrier counts arrivals; the last member turns the phase. Steps take some tens of
 * microseconds, so members spin a little before they sleep in the kernel, unless there are fewer
 * processors than members. Where other programs run, the kernel may wake members on one processor:
 * then each waits in vain for one that cannot run meanwhile, and sleeps, so that the kernel sees no
 * reason to part them. The one that waits leaves.
 */
#include "engine/step/team/drps_team.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/drps_engine.h"
#include "engine/step/team/apart.h"

enum { SPINS = 2000, LINE = 64 };

struct drps_team {
    atomic_uint members; /* constant but when starting failed half way */
    unsigned spins;
    drps_team_work work; /* written by member 0 before the barrier that starts a run */
    void *ctx;
    int stopping; /* written by member 0 before that barrier */
    unsigned started;
    pthread_t threads[DRPS_TRAIN_THREADS_MAX];
    atomic_int processors[DRPS_TRAIN_THREADS_MAX]; /* that members arrived on last */

    _Alignas(LINE) atomic_uint arrived;
    _Alignas(LINE) atomic_uint phase;
    atomic_uint sleepers;
    atomic_uint parted;
};

static _Thread_local unsigned own_number; /* of a member; callers are 0 */

struct member {
    struct drps_team *team;
    unsigned number;
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void note_processor(struct drps_team *team)
{
    atomic_int *own = &team->processors[own_number];
    const int now = sched_getcpu();
    if (atomic_load_explicit(own, memory_order_relaxed) != now)
        atomic_store_explicit(own, now, memory_order_relaxed);
}

static void leave_others(struct drps_team *team)
{
    const unsigned members = drps_team_members(team);
    int others[DRPS_TRAIN_THREADS_MAX], shared = 0;
    size_t n = 0;
    for (unsigned i = 0; i < members; i++) {
        if (i == own_number) continue;
        others[n] = atomic_load_explicit(&team->processors[i], memory_order_relaxed);
        shared |= others[n++] == sched_getcpu();
    }
    if (!shared || !drps_leave_processors(others, n)) return;
    note_processor(team);
    atomic_fetch_add_explicit(&team->parted, 1, memory_order_relaxed);
}

static void wait_for_turn(struct drps_team *team, unsigned phase)
{
    for (unsigned i = 0; i < team->spins; i++) {
        /* acquire: pairs with the release of the member that turned the phase */
        if (atomic_load_explicit(&team->phase, memory_order_acquire) != phase) return;
        pause_briefly();
    }
    if (team->spins) leave_others(team);
    /* Sequentially consistent, as is the turn below: either it sees this sleeper, or this load sees
     * the new phase. */
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(&team->phase) == phase)
        (void)syscall(SYS_futex, &team->phase, FUTEX_WAIT_PRIVATE, phase, NULL, NULL,
                      0); /* wakes may be spurious */
    atomic_fetch_sub(&team->sleepers, 1);
}

void drps_team_barrier(struct drps_team *team)
{
    if (drps_team_members(team) == 1) return;
    note_processor(team);
    unsigned phase =
        atomic_load_explicit(&team->phase, memory_order_relaxed); /* cannot turn before we arrive */
    /* acq_rel: the last to arrive has seen, and passes on, what all did before. */
    unsigned arrived = atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) + 1;
    if (arrived < drps_team_members(team)) {
        wait_for_turn(team, phase);
        return;
    }
    atomic_store_explicit(&team->arrived, 0, memory_order_relaxed); /* published by the turn */
    atomic_store(&team->phase, phase + 1);
    if (atomic_load(&team->sleepers))
        (void)syscall(SYS_futex, &team->phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *member_main(void *arg)
{
    struct member me = *(struct member *)arg;
    free(arg);
    own_number = me.number;
    for (;;) {
        drps_team_barrier(me.team);
        if (me.team->stopping) return NULL;
        me.team->work(me.team->ctx, me.number);
        drps_team_barrier(me.team);
    }
}

/* Spinning for a member that waits for our processor would only keep it from running. */
static unsigned spins_for(unsigned members)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set)) return 0;
    return (unsigned)CPU_COUNT(&set) >= members ? SPINS : 0;
}

int drps_team_start(unsigned members, struct drps_team **team_out, struct drps_err *err)
{
    *team_out = NULL;
    if (!members || members > DRPS_TRAIN_THREADS_MAX)
        return drps_err_set(err, DRPS_E_CONFIG, "%u threads: give 1 to %d", members,
                            DRPS_TRAIN_THREADS_MAX);
    struct drps_team *team = aligned_alloc(LINE, sizeof(*team));
    if (!team) return drps_err_set(err, -ENOMEM, "no memory for a team of threads");
    memset(team, 0, sizeof(*team));
    atomic_init(&team->members, members);
    for (unsigned i = 0; i < members; i++)
        atomic_init(&team->processors[i], -1);
    team->spins = spins_for(members);
    for (unsigned i = 1; i < members; i++) {
        struct member *me = malloc(sizeof(*me));
        int rc = me ? 0 : ENOMEM;
        if (me) {
            *me = (struct member){team, i};
            rc = pthread_create(&team->threads[i], NULL, member_main, me);
        }
        if (rc) {
            free(me);
            /* Threads that have started wait for a full team: make the team as large as it is. They
             * hold no work yet. */
            atomic_store_explicit(&team->members, team->started + 1, memory_order_relaxed);
            drps_team_stop(team);
            return drps_err_set(err, -rc, "cannot start thread %u of %u: %s", i + 1, members,
                                strerror(rc));
        }
        team->started++;
    }
    *team_out = team;
    return 0;
}

void drps_team_stop(struct drps_team *team)
{
    if (!team) return;
    team->stopping = 1;
    drps_team_barrier(team);
    for (unsigned i = 1; i <= team->started; i++)
        (void)pthread_join(team->threads[i], NULL); /* cannot fail for a thread of ours */
    free(team);
}

void drps_team_run(struct drps_team *team, drps_team_work work, void *ctx)
{
    team->work = work;
    team->ctx = ctx;
    drps_team_barrier(team);
    work(ctx, 0);
    drps_team_barrier(team);
}

unsigned drps_team_members(const struct drps_team *team)
{
    return atomic_load_explicit(&team->members, memory_order_relaxed);
}

unsigned drps_team_parted(const struct drps_team *team)
{
    return atomic_load_explicit(&team->parted, memory_order_relaxed);
}
