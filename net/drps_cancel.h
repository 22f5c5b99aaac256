/*
 * Cancel: one flag that ends long work which does not look at the net, when the user has said so or
 * the job has failed.
 *
 * A thread looks at both ten times a second. What the user has said ends waits for other ranks,
 * too. To see a failure it receives from this rank for the part worker, to which nobody may send.
 * Ranks that leave in good order are no failure.
 */
#ifndef DRPS_NET_CANCEL_H
#define DRPS_NET_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/drps_net.h"

struct drps_cancel {
    atomic_int stop; /* the flag: non-zero when the work is to end */

    struct drps_net *net;   /* borrowed */
    const atomic_int *user; /* borrowed, may be NULL */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int over;            /* 1: the thread is to end */
    int alone;           /* 1: it is to look at the user's flag alone */
    struct drps_err why; /* why the job has failed; no code: it has not */
};

/* Start the thread. net and user are borrowed until drps_cancel_end(). 0 or -errno, with nothing to
 * end. */
DRPS_MUST_CHECK
int drps_cancel_start(struct drps_cancel *c, struct drps_net *net, const atomic_int *user,
                      struct drps_err *err);

/* From now on look at the user's flag alone: what becomes of other ranks does not matter, and waits
 * for them go on. */
void drps_cancel_alone(struct drps_cancel *c);

/* Set the flag as though the job had failed because of `why`. */
void drps_cancel_fail(struct drps_cancel *c, const struct drps_err *why);

/* End the thread when the work has returned rc, with its text in err. Returns rc, or the job's
 * failure in place of DRPS_E_INTERRUPTED if that was why the flag was set. */
int drps_cancel_end(struct drps_cancel *c, int rc, struct drps_err *err);

#endif
