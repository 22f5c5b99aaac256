/* An emulated computation sleeps until its time is up; a timing of sched/ says how long it takes.
 */
#include "engine/step/emulate.h"

#include <errno.h>
#include <time.h>

#include "base/drps_clock.h"
#include "sched/drps_timing.h"

static void sleep_until(uint64_t ns)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000u),
                                .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue; /* a stop ends the run after this iteration, as it does without emulation */
}

uint64_t drps_emulate_wait(struct drps_emulate *emulate, uint64_t start_ns)
{
    if (!emulate->timing) return 0;
    struct drps_train_emulated *done = &emulate->done;
    const uint64_t takes_ns = drps_timing_ns(emulate->timing, emulate->worker, done->iterations++);
    const uint64_t computed_ns = drps_clock_ns() - start_ns;
    if (computed_ns < takes_ns)
        sleep_until(start_ns + takes_ns);
    else
        done->overruns++;
    done->emulated_ns += takes_ns;
    done->computed_ns += computed_ns;
    const uint64_t took_ns = drps_clock_ns() - start_ns;
    done->late_ns += took_ns - takes_ns;
    return took_ns - computed_ns;
}
