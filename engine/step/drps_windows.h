/*
 * Windows for the relay store: those of the plan when they suit the memory of this run, else new
 * ones, compiled for it. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_STEP_WINDOWS_H
#define DRPS_ENGINE_STEP_WINDOWS_H

#include <stdatomic.h>

#include "base/drps_log.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_window.h"
#include "storage/drps_store.h"
#include "storage/relay/drps_relay.h"

struct drps_windows; /* opaque: an open windows.rec, and a thread that reads ahead in it */

struct drps_windows_options {
    const struct drps_plan *plan; /* borrowed */
    const char *dir;              /* an existing folder for new windows */
    const struct drps_relay_share *share;
    uint64_t epochs;
    uint64_t memory_bytes;  /* for compiling */
    const atomic_int *stop; /* ends compiling: DRPS_E_INTERRUPTED; may be NULL */
    const struct drps_log *log;
};

/* Open the plan's windows, or compile and open new ones. *source_out borrows the result. */
DRPS_MUST_CHECK
int drps_windows_open(const struct drps_windows_options *options, struct drps_windows **w_out,
                      struct drps_window_source *source_out, struct drps_err *err);
void drps_windows_close(struct drps_windows *w); /* NULL-safe; after the store that reads from it */

/* Returns the folder that holds windows.rec and slots.rec. */
const char *drps_windows_dir(const struct drps_windows *w);

/* Returns the longest windows of asynchronous rounds that this store has room for. It holds two of
 * its own windows; where the lowest step that is not complete is the last of one of these, the
 * steps that can be open besides are those of the next. So with windows of K steps, of which the
 * steps of two may be handed out, 2 K - 1 steps must fit each of the store's windows but the first;
 * one that reaches the end of training needs no room beyond. At least 1, UINT64_MAX where nothing
 * binds. */
uint64_t drps_windows_spread(const struct drps_windows *w, uint64_t train_steps);

/* What an epoch moves in the steady state, as the relay store has planned it. */
void drps_windows_forecast(const struct drps_windows *w, const struct drps_store_stats *stats,
                           uint64_t row_bytes, struct drps_forecast *out);

#endif
