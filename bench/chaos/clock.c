/*
 * A wall clock that jumps, for bench/chaos.sh: a library that is loaded before others (LD_PRELOAD)
 * and answers for CLOCK_REALTIME, gettimeofday() and time(). DRPS_CHAOS_CLOCK is
 * MILLISECONDS:SECONDS: so long after the start the clock is set forward by SECONDS, or back if
 * they are negative. Other clocks stay as they are.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long jump_at_ms = -1, jump_s; /* set once, before main() */

static int ask(clockid_t id, struct timespec *t)
{
    return (int)syscall(SYS_clock_gettime, id, t);
}

static long long passed_ms(void)
{
    struct timespec t;
    ask(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("DRPS_CHAOS_CLOCK");
    long long after;
    if (!text || sscanf(text, "%lld:%lld", &after, &jump_s) != 2) return;
    jump_at_ms = passed_ms() + after;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    const int rc = ask(id, t);
    const int jumps = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
    if (rc == 0 && jumps && jump_at_ms >= 0 && passed_ms() >= jump_at_ms) t->tv_sec += jump_s;
    return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
