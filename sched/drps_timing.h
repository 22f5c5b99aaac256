/*
 * How long iterations take: models of slow workers, and traces of times. What bench/sim_sched.c
 * replays in simulated time and what drps-train --emulate makes real iterations last is computed
 * here, so that both see the same times.
 *
 * Models, in means of `seconds`, each with +- 5 % drawn evenly:
 *   homogeneous   nothing else
 *   straggler     worker 0 takes three times as long, always
 *   pauses        4 % of the iterations take 5 to 10 times as long
 *   tail          Pareto instead, alpha 2: seconds / 2 at least, of infinite variance;
 *   tail=ALPHA    Pareto with this alpha, above 1 and at most 100
 *
 * A trace is a text file with a line of seconds for every worker, used over and over; with fewer
 * lines than workers, lines too. Empty lines and lines that begin with # do not count.
 *
 * Times are a function of (seed, worker, iteration), whatever the order of calls.
 */
#ifndef DRPS_TIMING_H
#define DRPS_TIMING_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"

/* All models' names; NULL-terminated. */
extern const char *const drps_timing_models[];

struct drps_timing; /* own: drps_timing_close(). Constant: any number of threads may ask. */

/*
 * spec  MODEL:SECONDS[:SEED] (seconds of the mean, above 0 and at most 1e6; seed by default 1), or
 *       the path of a trace
 * Returns 0; DRPS_E_CONFIG: the spec names a model and does not fit it; DRPS_E_FORMAT: the trace is
 * malformed, err names file, line and column; -ENOENT and others of reading it; -ENOMEM.
 */
DRPS_MUST_CHECK
int drps_timing_open(const struct drps_io *io, const char *spec, struct drps_timing **timing_out,
                     struct drps_err *err);
void drps_timing_close(struct drps_timing *timing); /* NULL-safe */

/* Nanoseconds of the worker's i-th iteration; both count from 0. */
uint64_t drps_timing_ns(const struct drps_timing *timing, unsigned worker, uint64_t i);

/* Returns the mean of a model, or of all times of a trace, in nanoseconds. */
uint64_t drps_timing_mean_ns(const struct drps_timing *timing);

#endif
