/*
 * One flag that ends long work which does not look at the net: the user has said so, or the job has
 * failed. Shared inside net/.
 *
 * A thread looks at both ten times a second. It receives from this rank for the part worker, to
 * which nobody may send. Ranks that leave in good order are no failure.
 */
#ifndef DRPS_NET_CANCEL_H
#define DRPS_NET_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/drps_net.h"

struct drps_cancel {
    atomic_int stop; /* for the work to look at */

    struct drps_net *net;   /* borrowed */
    const atomic_int *user; /* borrowed, may be NULL */
    pthread_t thread;
    pthread_mutex_t lock; /* of these: */
    pthread_cond_t changed;
    int over;            /* nothing is to be watched any more, */
    int alone;           /* or only the user */
    struct drps_err why; /* the job has failed */
};

DRPS_MUST_CHECK
int drps_cancel_start(struct drps_cancel *w, struct drps_net *net, const atomic_int *user,
                      struct drps_err *err);

/* What becomes of other ranks does not matter any more. */
void drps_cancel_alone(struct drps_cancel *w);

/* The same as though the job had failed. */
void drps_cancel_fail(struct drps_cancel *w, const struct drps_err *why);

/* Ends the watch of work that came to rc, with the text in err: returns what it has come to, which
 * is no interruption if the job had failed. */
int drps_cancel_end(struct drps_cancel *w, int rc, struct drps_err *err);

#endif
