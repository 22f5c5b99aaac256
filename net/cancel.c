#include "net/drps_cancel.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { LOOK_NS = 100000000 };

/* Lock held. */
static void fail(struct drps_cancel *w, const struct drps_err *why)
{
    if (!w->why.code) w->why = *why;
    atomic_store(&w->stop, 1);
}

/* Lock held. Nothing comes: what ends the wait before its time is that the job has failed. */
static void look_for_ranks(struct drps_cancel *w)
{
    struct drps_net_message *message = NULL;
    struct drps_err why = DRPS_ERR_INIT;
    int rc = drps_net_receive(w->net, DRPS_NET_WORKER, drps_net_rank(w->net), 0, &message, &why);
    if (rc == -ETIMEDOUT) return;
    if (rc == 0)
        (void)drps_err_set(&why, DRPS_E_PROTO, "message of type %u to the worker", message->type);
    drps_net_message_free(message);
    fail(w, &why);
}

static struct timespec next_look(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += LOOK_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void *run_watch(void *arg)
{
    struct drps_cancel *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->over) {
        const struct timespec until = next_look();
        if (w->user && atomic_load_explicit(w->user, memory_order_relaxed))
            atomic_store(&w->stop, 1);
        if (!w->alone && !w->why.code) look_for_ranks(w);
        (void)pthread_cond_timedwait(&w->changed, &w->lock, &until);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void destroy(struct drps_cancel *w)
{
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
}

int drps_cancel_start(struct drps_cancel *w, struct drps_net *net, const atomic_int *user,
                      struct drps_err *err)
{
    pthread_condattr_t attr;
    memset(w, 0, sizeof(*w));
    w->net = net;
    w->user = user;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, &attr);
    pthread_condattr_destroy(&attr);
    int rc = pthread_create(&w->thread, NULL, run_watch, w);
    if (rc == 0) return 0;
    destroy(w);
    return drps_err_set(err, -rc, "no thread to watch other ranks: %s", strerror(rc));
}

void drps_cancel_alone(struct drps_cancel *w)
{
    pthread_mutex_lock(&w->lock);
    w->alone = 1;
    pthread_mutex_unlock(&w->lock);
}

void drps_cancel_fail(struct drps_cancel *w, const struct drps_err *why)
{
    pthread_mutex_lock(&w->lock);
    fail(w, why);
    pthread_mutex_unlock(&w->lock);
}

int drps_cancel_end(struct drps_cancel *w, int rc, struct drps_err *err)
{
    pthread_mutex_lock(&w->lock);
    w->over = 1;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    destroy(w);
    if (rc != DRPS_E_INTERRUPTED || !w->why.code) return rc;
    drps_err_clear(err);
    return drps_err_set(err, w->why.code, "%s", w->why.text);
}
