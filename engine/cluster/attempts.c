/* Forking and watching attempts. What they say lies in a page that they share with the process that
 * watches, which reads it once an attempt has ended. */
#include "engine/cluster/drps_attempts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRUITLESS_MOST = 3 };

struct drps_attempt {
    uint32_t before;              /* attempts that have ended */
    uint64_t began;               /* number of the checkpoint that it goes on from; 0: of none */
    struct drps_train_cut newest; /* number 0: there is none */
    struct drps_err why;
};

int drps_attempt_is_first(const struct drps_attempt *a)
{
    return a->before == 0;
}

int drps_attempt_has_checkpoint(const struct drps_attempt *a)
{
    return a->newest.number != 0;
}

void drps_attempt_reached(struct drps_attempt *a, const struct drps_train_cut *cut)
{
    a->newest = *cut;
    if (cut->resumed) a->began = cut->number;
}

void drps_attempt_failed(struct drps_attempt *a, const struct drps_err *why)
{
    a->why = *why;
}

/* ---- Watching ---- */

static int run_child(const struct drps_attempts_options *o, struct drps_attempt *a, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(o->again); /* it is too late for that */
    _exit(o->run(o->ctx, a));
}

/* What a killed attempt has forked is killed with it, and has become our child: it holds files and
 * locks that the next attempt needs until it has ended, too. */
static void wait_for_others(void)
{
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        continue;
}

/* Returns the status as waitpid() has it. */
static int run_one(const struct drps_attempts_options *o, struct drps_attempt *a,
                   struct drps_err *err)
{
    const pid_t parent = getpid();
    int status;
    a->began = a->newest.number;
    drps_err_clear(&a->why);
    const pid_t pid = fork();
    if (pid < 0) return drps_err_set(err, -errno, "no process for %s", o->name);
    if (pid == 0) run_child(o, a, parent);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return drps_err_set(err, -errno, "waiting for %s: %s", o->name, strerror(errno));
    wait_for_others();
    a->before++;
    return status;
}

/* 1: it is worth another attempt, and a->why says why. */
static int is_lost(const struct drps_attempts_options *o, struct drps_attempt *a, int status)
{
    if (WIFEXITED(status)) return WEXITSTATUS(status) == o->again;
    const int by = WTERMSIG(status);
    drps_err_clear(&a->why);
    (void)drps_err_set(&a->why, DRPS_E_PEER, "%s was killed by signal %d (%s)", o->name, by,
                       sigdescr_np(by) ? sigdescr_np(by) : "unknown");
    return 1;
}

static void tell(const struct drps_attempts_options *o, const struct drps_attempt *a)
{
    const struct drps_train_cut *at = &a->newest;
    if (at->number)
        drps_log(o->log, DRPS_LOG_WARN, "%s: starting anew, from epoch %llu after %llu batches",
                 a->why.text, (unsigned long long)at->epoch, (unsigned long long)at->step);
    else
        drps_log(o->log, DRPS_LOG_WARN, "%s: starting anew, from the beginning", a->why.text);
}

static int run_all(const struct drps_attempts_options *o, struct drps_attempt *a, int *status_out,
                   struct drps_err *err)
{
    for (int fruitless = 0;;) {
        const int status = run_one(o, a, err);
        if (status < 0) return status;
        const int lost = is_lost(o, a, status);
        *status_out = lost ? o->again : WEXITSTATUS(status);
        if (!lost) return 0;
        fruitless = a->newest.number == a->began ? fruitless + 1 : 0;
        const int stops = atomic_load(o->stop);
        if (stops || fruitless == FRUITLESS_MOST) {
            drps_log(o->log, DRPS_LOG_ERROR, "%s%s", a->why.text,
                     stops ? "" : "; three attempts in a row ended so, without a new checkpoint");
            return 0;
        }
        tell(o, a);
    }
}

int drps_attempts_run(const struct drps_attempts_options *options, int *status_out,
                      struct drps_err *err)
{
    *status_out = options->again;
    struct drps_attempt *a =
        mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (a == MAP_FAILED) return drps_err_set(err, -errno, "no memory for attempts");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    const int rc = run_all(options, a, status_out, err);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
    (void)munmap(a, sizeof(*a));
    return rc;
}
