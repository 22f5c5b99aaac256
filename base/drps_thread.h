/* What threads say of themselves to the scheduler. */
#ifndef DRPS_THREAD_H
#define DRPS_THREAD_H

#include <pthread.h>
#include <sched.h>

/*
 * The calling thread works for others: when it is woken, by one that computes as a rule, it goes to
 * an idle processor or waits for its turn, and does not take that one's (SCHED_BATCH). Where that
 * is refused nothing changes.
 */
static inline void drps_thread_serves(void)
{
    const struct sched_param none = {0};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

#endif
