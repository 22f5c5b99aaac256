/*
 * How fast this machine computes a plan's samples: its own batches are trained for a moment, by the
 * kernels that training uses, and timed. Shared inside engine/, and for drps-index --calibrate.
 */
#ifndef DRPS_ENGINE_ARITHMETIC_H
#define DRPS_ENGINE_ARITHMETIC_H

#include <stdint.h>

#include "base/drps_err.h"
#include "index/plan/drps_plan.h"
#include "index/price/drps_speeds.h"

/*
 * Fill in sample_ns and test_sample_ns: one thread, all rows in memory, the plan's
 * usual optimizer, processor time. At most about half a second; of a plan for one worker, or a
 * rank's part, from which io, dir and info alone are taken: its manifest need not be there yet.
 * What it takes stays below memory_bytes. Rows that do not fit a share of that stand for others:
 * what they hold is not looked at. Returns 0; 1: nothing was measured, as there is nothing to
 * train, not enough memory, or the algorithm has no step of a batch (topics). Errors as of reading
 * the plan.
 */
DRPS_MUST_CHECK
int drps_arithmetic_measure(const struct drps_plan *plan, uint64_t memory_bytes,
                            struct drps_speeds *speeds, struct drps_err *err);

#endif
