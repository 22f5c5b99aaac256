/*
 * What every phase of drps-index calls between two pieces of its work: it says how far the phase
 * is, and ends the run once it was told to stop. Shared inside index/.
 */
#ifndef DRPS_INDEX_PROGRESS_H
#define DRPS_INDEX_PROGRESS_H

#include <stdint.h>

#include "index/drps_index.h"

struct drps_index_watch; /* index/watch/ */

struct index_progress {
    const struct drps_index_options *options; /* borrowed */
    enum drps_index_phase phase;
    struct drps_index_watch *watch; /* own, of the run; NULL: nobody watches */
};

/* DRPS_E_INTERRUPTED once options->interrupt is set. */
DRPS_MUST_CHECK
int drps_index_check_interrupt(const struct drps_index_options *options, struct drps_err *err);

/* Call options->progress with samples or steps, total 0 if it is unknown, then check as above. From
 * the run's own thread. */
DRPS_MUST_CHECK
int drps_index_report(const struct index_progress *p, uint64_t done, uint64_t total,
                      struct drps_err *err);

#endif
