/* The start: a rank waits until all others have answered, and says for whom it waits. */
#include "net/frames/drps_frames.h"

#include <errno.h>
#include <stdio.h>

enum {
    LOOK_MS = 100,       /* between looks at options->stop */
    SAY_MS = 3000,       /* of waiting for ranks, until that is said */
    MISSING_BYTES = 700, /* of the names of those that are missing */
};

/* Lock held: the first rank that has not answered, or count. */
static uint32_t missing(const struct drps_net *net, const struct net_frames *frames, uint32_t from)
{
    while (from < net->o.count && (from == net->o.rank || frames[from].answers))
        from++;
    return from;
}

/* Lock held: the names of all that have not answered, and why where that is known; of very many
 * the first ones. Returns text. */
static const char *name_missing(const struct drps_net *net, const struct net_frames *frames,
                                char text[MISSING_BYTES])
{
    size_t n = 0;
    text[0] = '\0';
    for (uint32_t r = missing(net, frames, 0); r < net->o.count; r = missing(net, frames, r + 1)) {
        const char *hint = frames[r].hint;
        const int some =
            snprintf(text + n, MISSING_BYTES - n, "%s%s%s%s%s", n ? ", " : "", net->peers[r].name,
                     hint[0] ? " (" : "", hint, hint[0] ? ")" : "");
        if (some < 0 || n + (size_t)some >= MISSING_BYTES - sizeof(", ...")) {
            (void)snprintf(text + n, MISSING_BYTES - n, "%s...", n ? ", " : "");
            break;
        }
        n += (size_t)some;
    }
    return text;
}

/* Seconds, in a text for people: "600", "0.5". */
static double start_seconds(const struct drps_net *net)
{
    return net->o.start_ms / 1000.0;
}

static int not_started(const struct drps_net *net, const struct net_frames *frames,
                       const char *hint, struct drps_err *err)
{
    char text[MISSING_BYTES];
    char refused[64] = "";
    if (net->stats.strangers)
        (void)snprintf(refused, sizeof(refused), "; connections refused here: %llu",
                       (unsigned long long)net->stats.strangers);
    return drps_err_set(err, -ETIMEDOUT, "%s did not start within %g s, or cannot be reached%s%s",
                        name_missing(net, frames, text), start_seconds(net), refused, hint);
}

/* Lock held, and let go meanwhile. */
static void say_waiting(struct drps_net *net, const struct net_frames *frames)
{
    char text[MISSING_BYTES];
    (void)name_missing(net, frames, text);
    pthread_mutex_unlock(net->lock);
    drps_log(net->o.log, DRPS_LOG_INFO, "waiting for %s, up to %g s", text, start_seconds(net));
    pthread_mutex_lock(net->lock);
}

static int is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* A signal's handler cannot wake anybody: whether to stop is looked up some times a second. */
int drps_frames_wait(struct drps_net *net, const struct net_frames *frames, const char *hint,
                     struct drps_err *err)
{
    const struct timespec deadline = drps_net_deadline(net->o.start_ms);
    const struct timespec say = drps_net_deadline(SAY_MS);
    int rc = 0, late = 0, said = !net->o.log;
    pthread_mutex_lock(net->lock);
    while (rc == 0 && missing(net, frames, 0) < net->o.count) {
        if (net->failure.code)
            rc = drps_err_set(err, net->failure.code, "%s", net->failure.text);
        else if (net->o.stop && atomic_load_explicit(net->o.stop, memory_order_relaxed))
            rc = drps_err_set(err, DRPS_E_INTERRUPTED, "interrupted while waiting for %s",
                              net->peers[missing(net, frames, 0)].name);
        else if (late)
            rc = not_started(net, frames, hint, err);
        else {
            const struct timespec look = drps_net_deadline(LOOK_MS);
            if (!said && is_later(&look, &say)) {
                said = 1;
                say_waiting(net, frames);
                continue;
            }
            const int last = is_later(&look, &deadline);
            late = pthread_cond_timedwait(&net->changed, net->lock, last ? &deadline : &look) ==
                       ETIMEDOUT &&
                   last;
        }
    }
    pthread_mutex_unlock(net->lock);
    return rc;
}
