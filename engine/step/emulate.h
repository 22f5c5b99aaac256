/*
 * Emulated computation, for measurements: an iteration's computation takes at least the time that a
 * timing gives for (worker, iteration). It is done for real, and the rest of the time is slept; so
 * more workers than there are cores run as if each had a machine, as long as what they really
 * compute is short. How often it was not is counted. Private to engine/step/.
 */
#ifndef DRPS_ENGINE_STEP_EMULATE_H
#define DRPS_ENGINE_STEP_EMULATE_H

#include "engine/drps_engine.h"

struct drps_emulate {
    const struct drps_timing *timing; /* borrowed; NULL: nothing is emulated */
    unsigned worker;
    struct drps_train_emulated done;
};

/* Wait at the end of a computation that began at start_ns (drps_clock_ns()), until it has taken as
 * long as it should. Returns the time that it waited. */
uint64_t drps_emulate_wait(struct drps_emulate *emulate, uint64_t start_ns);

#endif
