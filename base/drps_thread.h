/* What threads tell the operating system's scheduler of themselves. */
#ifndef DRPS_THREAD_H
#define DRPS_THREAD_H

#include <pthread.h>
#include <sched.h>

/*
 * The calling thread works for others. A thread that computes wakes it as a rule; it then goes to
 * an idle processor or waits for its turn, and does not take the processor of the thread that woke
 * it (SCHED_BATCH). Where that is refused nothing changes.
 */
static inline void drps_thread_serves(void)
{
    const struct sched_param none = {0};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

#endif
