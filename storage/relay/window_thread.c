/*
 * The window thread, which moves rows between windows. While the engine's thread runs window q it
 * closes window q - 1 and opens window q + 1 (windows.c), then has what lies on disk for window
 * q + 2 read ahead.
 */
#include <string.h>

#include "base/drps_thread.h"
#include "storage/relay/relay.h"

/* Call config.opened(), if the engine's thread was told to come back (`wanted`). Lock not held. */
static void tell(const struct drps_relay *st, int wanted)
{
    if (wanted && st->config.opened) st->config.opened(st->config.opened_ctx);
}

static void fail(struct drps_relay *st, const struct drps_err *err)
{
    (void)pthread_mutex_lock(&st->lock);
    st->failure = *err;
    st->idle = 1;
    const int wanted = st->tell;
    st->tell = 0;
    (void)pthread_cond_broadcast(&st->news);
    (void)pthread_mutex_unlock(&st->lock);
    tell(st, wanted);
}

static void publish(struct drps_relay *st, uint64_t ready)
{
    (void)pthread_mutex_lock(&st->lock);
    st->ready = ready;
    const int wanted = st->tell;
    st->tell = 0;
    (void)pthread_cond_broadcast(&st->news);
    (void)pthread_mutex_unlock(&st->lock);
    tell(st, wanted);
}

/* Idle until the engine's thread has left window q, unless it is to stay idle. Returns 0 when the
 * thread is to stop. */
static int await_left(struct drps_relay *st, uint64_t q)
{
    (void)pthread_mutex_lock(&st->lock);
    st->idle = 1;
    (void)pthread_cond_broadcast(&st->news);
    while (!st->stopping && (st->left <= q || st->still))
        (void)pthread_cond_wait(&st->wake, &st->lock);
    st->idle = 0;
    const int go = !st->stopping;
    (void)pthread_mutex_unlock(&st->lock);
    return go;
}

static int open_next(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    if (q >= st->all_windows) return 0;
    int rc = drps_relay_open_window(st, q, err);
    if (rc == 0) publish(st, q + 1);
    return rc;
}

/* What need not be done before training goes on: read ahead for window q and those after it, and
 * merge runs. */
static int look_ahead(struct drps_relay *st, uint64_t q, struct drps_err *err)
{
    if (q >= st->all_windows) return 0;
    int rc = drps_runs_prefetch(st->runs, q, err);
    if (rc == 0) rc = drps_runs_merge_some(st->runs, err);
    (void)pthread_mutex_lock(&st->lock);
    st->stats.merged_bytes = drps_runs_merged_bytes(st->runs);
    (void)pthread_mutex_unlock(&st->lock);
    return rc;
}

/* Run all windows. The last two stay open: training may end, or its rows be visited, at any time.
 */
static int run_windows(struct drps_relay *st, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t q = st->ready; q < st->closing + 2 && rc == 0; q++)
        rc = open_next(st, q, err);
    for (uint64_t q = st->closing; rc == 0; q++) {
        rc = look_ahead(st, q + 2, err);
        if (rc < 0 || !await_left(st, q)) return rc;
        if (q + 2 >= st->all_windows) continue;
        rc = drps_relay_close_window(st, q, err);
        st->closing = q + 1;
        if (rc == 0) rc = open_next(st, q + 2, err);
    }
    return rc;
}

static void *run(void *arg)
{
    struct drps_relay *st = arg;
    struct drps_err err = DRPS_ERR_INIT;
    drps_thread_serves();
    if (run_windows(st, &err) < 0) fail(st, &err);
    return NULL;
}

int drps_window_thread_start(struct drps_relay *st, struct drps_err *err)
{
    const int rc = pthread_create(&st->window_thread, NULL, run, st);
    if (rc) return drps_err_set(err, -rc, "cannot start the row store's thread: %s", strerror(rc));
    st->started = 1;
    return 0;
}

int drps_relay_stand_still(struct drps_relay *st, struct drps_err *err)
{
    int rc = 0;
    (void)pthread_mutex_lock(&st->lock);
    st->still = 1;
    while (!st->idle && !st->failure.code)
        (void)pthread_cond_wait(&st->news, &st->lock);
    if (st->failure.code) rc = drps_err_set(err, st->failure.code, "%s", st->failure.text);
    (void)pthread_mutex_unlock(&st->lock);
    return rc;
}

void drps_relay_go_on(struct drps_relay *st)
{
    (void)pthread_mutex_lock(&st->lock);
    st->still = 0;
    (void)pthread_cond_signal(&st->wake);
    (void)pthread_mutex_unlock(&st->lock);
}

void drps_window_thread_stop(struct drps_relay *st)
{
    if (!st->started) return;
    (void)pthread_mutex_lock(&st->lock);
    st->stopping = 1;
    (void)pthread_cond_broadcast(&st->wake);
    (void)pthread_mutex_unlock(&st->lock);
    (void)pthread_join(st->window_thread, NULL); /* cannot fail for a thread of ours */
    st->started = 0;
}
