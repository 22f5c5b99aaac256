/* SIGINT and SIGTERM set a flag, which processes may have in common. */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/drps_clock.h"
#include "tools/cli/cli_internal.h"

/* Signals that come so soon after the first are the same impatience: what is removed after the
 * first one stays removed. */
static const uint64_t patience_ns = 1000000000u;

/* Process-wide, as signals are. */
static atomic_int own_stop;
static atomic_uint_least64_t first_ns; /* when the first signal came; 0: none has */
static atomic_int *stop_flag = &own_stop;

static void on_signal(int number)
{
    uint_least64_t first = 0;
    const uint64_t now = drps_clock_ns();
    (void)number;
    if (atomic_compare_exchange_strong(&first_ns, &first, now))
        atomic_store(stop_flag, 1);
    else if (now - first >= patience_ns)
        _exit(DRPS_EXIT_INTERRUPTED);
}

const atomic_int *drps_cli_stop(void)
{
    return stop_flag;
}

int drps_cli_share_stop(struct drps_err *err)
{
    void *page =
        mmap(NULL, sizeof(*stop_flag), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return drps_err_set(err, -errno, "no memory for a flag");
    atomic_int *shared = page;
    atomic_init(shared, 0);
    stop_flag = shared;
    if (atomic_load(&own_stop)) atomic_store(shared, 1); /* a signal came meanwhile */
    return 0;
}

void cli_handle_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&ignore.sa_mask);
    sigemptyset(&usual.sa_mask);
    /* These fail only for wrong numbers. */
    (void)sigaction(SIGINT, &stop, NULL);
    (void)sigaction(SIGTERM, &stop, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    /* Whoever started this process may have ignored it, which is inherited: then processes end
     * without a trace, and nobody sees that a rank was killed. */
    (void)sigaction(SIGCHLD, &usual, NULL);
}
