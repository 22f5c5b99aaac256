/* Forking and waiting for the processes of ranks, with waitpid() and a page that all of them
 * share. */
#include "net/drps_family.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "net/drps_net.h"

enum { LOOK_MS = 20 };

int drps_family_open(struct drps_family *f, uint32_t count, struct drps_err *err)
{
    *f = (struct drps_family){.count = count, .is_parent = 1};
    f->ranks = calloc(count, sizeof(*f->ranks));
    void *page =
        mmap(NULL, sizeof(*f->lost), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) f->lost = page;
    if (!f->ranks || !f->lost) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", count);
    atomic_init(f->lost, DRPS_NET_ANY);
    return 0;
}

void drps_family_close(struct drps_family *f)
{
    free(f->ranks);
    if (f->lost) (void)munmap(f->lost, sizeof(*f->lost));
    *f = (struct drps_family){0};
}

/* Called in a child, which ends with the parent's thread that has forked it and waits for all
 * ranks. Not by SIGTERM: that comes once for each thread of the parent, and the second ends a tool
 * at once anyway. What is left is the partial folder of a killed run, which the next run removes.
 */
static void end_with_parent(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* it is too late for that */
}

int drps_family_fork(struct drps_family *f, uint32_t r, struct drps_err *err)
{
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) return drps_err_set(err, -errno, "no process for rank %u", r);
    if (pid > 0) {
        f->ranks[r].pid = pid;
        return 0;
    }
    f->is_parent = 0;
    end_with_parent(parent);
    return 1;
}

/* ---- While they run ---- */

static void tell(struct drps_family *f, uint32_t r)
{
    unsigned none = DRPS_NET_ANY;
    (void)atomic_compare_exchange_strong(f->lost, &none, r);
}

static int has_failed(pid_t pid)
{
    siginfo_t info = {0};
    if (!pid || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
        return 0;
    return info.si_code != CLD_EXITED || info.si_status;
}

/* A rank that ends by itself says why to the others. That may still be on its way when its process
 * has gone, so a rank is lost when its end is seen for the second time. */
uint32_t drps_family_lost(void *family)
{
    struct drps_family *f = family;
    for (uint32_t r = 1; f->is_parent && r < f->count; r++) {
        struct drps_family_rank *k = &f->ranks[r];
        if (!has_failed(k->pid)) continue;
        if (k->seen) tell(f, r);
        k->seen = 1;
    }
    return atomic_load(f->lost);
}

/* ---- The end ---- */

static int has_ended(struct drps_family_rank *k, int how)
{
    pid_t pid;
    while ((pid = waitpid(k->pid, &k->status, how)) < 0 && errno == EINTR)
        continue;
    return pid != 0; /* or there is no such child any more */
}

/* waitpid() knows no limit of time: it is asked again and again. */
static void wait_until(struct drps_family_rank *k, uint64_t until_ns)
{
    int ended = has_ended(k, WNOHANG);
    while (!ended && drps_clock_ns() < until_ns) {
        (void)poll(NULL, 0, LOOK_MS);
        ended = has_ended(k, WNOHANG);
    }
    if (ended) return;
    k->shot = 1;
    (void)kill(k->pid, SIGKILL); /* our own child, which is not waited for yet */
    (void)has_ended(k, 0);
}

void drps_family_wait(struct drps_family *f, int rc, uint32_t most_ms)
{
    const int failed = rc < 0 && rc != DRPS_E_INTERRUPTED;
    const uint64_t until_ns = drps_clock_ns() + most_ms * UINT64_C(1000000);
    if (failed && f->lost) tell(f, 0);
    for (uint32_t r = 1; f->ranks && r < f->count; r++) {
        if (!f->ranks[r].pid) continue;
        if (failed)
            wait_until(&f->ranks[r], until_ns);
        else
            (void)has_ended(&f->ranks[r], 0);
    }
}

/* 0, 1, 2: it did not fail, ended by itself, was killed by somebody else. */
static int badness(const struct drps_family_rank *k)
{
    return !k->pid || k->shot || !k->status ? 0 : 1 + WIFSIGNALED(k->status);
}

static uint32_t worst(const struct drps_family *f)
{
    const uint32_t noticed = f->lost ? atomic_load(f->lost) : DRPS_NET_ANY;
    uint32_t who = 0;
    if (noticed < f->count && badness(&f->ranks[noticed])) return noticed;
    for (uint32_t r = 1; f->ranks && r < f->count; r++)
        if (badness(&f->ranks[r]) > badness(&f->ranks[who])) who = r;
    return who;
}

int drps_family_has_status(const struct drps_family *f, int status)
{
    for (uint32_t r = 1; f->ranks && r < f->count; r++)
        if (badness(&f->ranks[r]) == 1 && WEXITSTATUS(f->ranks[r].status) == status) return 1;
    return 0;
}

int drps_family_failure(const struct drps_family *f, struct drps_err *err)
{
    const uint32_t r = worst(f);
    if (!r) return 0;
    const int status = f->ranks[r].status, by = WTERMSIG(status);
    if (WIFSIGNALED(status))
        return drps_err_set(err, DRPS_E_PEER, "rank %u was killed by signal %d (%s)", r, by,
                            sigdescr_np(by) ? sigdescr_np(by) : "unknown");
    return drps_err_set(err, DRPS_E_PEER_FAILED, "rank %u ended with status %d", r,
                        WEXITSTATUS(status));
}
