/* The thread that looks at the user's flag and at the job, and sets one flag for both. */
#include "net/drps_cancel.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { LOOK_NS = 100000000 };

/* Lock held. */
static void fail(struct drps_cancel *c, const struct drps_err *why)
{
    if (!c->why.code) c->why = *why;
    atomic_store(&c->stop, 1);
}

/* Lock held. Nothing comes: what ends the wait before its time is that the job has failed. */
static void look_for_ranks(struct drps_cancel *c)
{
    struct drps_net_message *message = NULL;
    struct drps_err why = DRPS_ERR_INIT;
    int rc = drps_net_receive(c->net, DRPS_NET_WORKER, drps_net_rank(c->net), 0, &message, &why);
    if (rc == -ETIMEDOUT) return;
    if (rc == 0)
        (void)drps_err_set(&why, DRPS_E_PROTO, "message of type %u to the worker", message->type);
    drps_net_message_free(message);
    fail(c, &why);
}

/* Lock held. The user has said so. */
static void stop_all(struct drps_cancel *c)
{
    atomic_store(&c->stop, 1);
    if (!c->alone) drps_net_stop(c->net);
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

static void *look(void *arg)
{
    struct drps_cancel *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->over) {
        const struct timespec until = next_look();
        if (c->user && atomic_load_explicit(c->user, memory_order_relaxed))
            stop_all(c);
        else if (!c->alone && !c->why.code)
            look_for_ranks(c);
        (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void destroy(struct drps_cancel *c)
{
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

int drps_cancel_start(struct drps_cancel *c, struct drps_net *net, const atomic_int *user,
                      struct drps_err *err)
{
    pthread_condattr_t attr;
    memset(c, 0, sizeof(*c));
    c->net = net;
    c->user = user;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, &attr);
    pthread_condattr_destroy(&attr);
    int rc = pthread_create(&c->thread, NULL, look, c);
    if (rc == 0) return 0;
    destroy(c);
    return drps_err_set(err, -rc, "no thread to look after other ranks: %s", strerror(rc));
}

void drps_cancel_alone(struct drps_cancel *c)
{
    pthread_mutex_lock(&c->lock);
    c->alone = 1;
    pthread_mutex_unlock(&c->lock);
}

void drps_cancel_fail(struct drps_cancel *c, const struct drps_err *why)
{
    pthread_mutex_lock(&c->lock);
    fail(c, why);
    pthread_mutex_unlock(&c->lock);
}

int drps_cancel_end(struct drps_cancel *c, int rc, struct drps_err *err)
{
    pthread_mutex_lock(&c->lock);
    c->over = 1;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    destroy(c);
    if (rc != DRPS_E_INTERRUPTED || !c->why.code) return rc;
    drps_err_clear(err);
    return drps_err_set(err, c->why.code, "%s", c->why.text);
}
