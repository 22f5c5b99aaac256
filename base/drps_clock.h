/* Time for statistics and progress; nothing that training computes depends on it. */
#ifndef DRPS_CLOCK_H
#define DRPS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some fixed point; never goes back. */
static inline uint64_t drps_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Nanoseconds that the calling thread has had a processor: what it computes takes as long on a busy
 * machine. */
static inline uint64_t drps_clock_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Seconds since drps_clock_ns() was start_ns. */
static inline double drps_seconds_since(uint64_t start_ns)
{
    return (double)(drps_clock_ns() - start_ns) * 1e-9;
}

#endif
