/*
 * slots.rec: where each row of a step lies in the step's window. Private to index/windows/.
 */
#ifndef DRPS_INDEX_WINDOWS_SLOTS_H
#define DRPS_INDEX_WINDOWS_SLOTS_H

#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "index/plan/drps_steps.h"
#include "index/plan/drps_window.h"
#include "index/windows/drps_cut.h"

/* out_dir/slots.rec being written. Own; one thread. */
struct slots;

/* lists, borrowed, reads dir/rows.rec; so does a second reader of its own. options, cut:
 * borrowed. */
DRPS_MUST_CHECK
int drps_slots_open(const struct drps_io *io, const char *dir, const char *out_dir,
                    const struct drps_window_options *options, const struct cut *cut,
                    struct steps *lists, struct slots **slots_out, struct drps_err *err);

/*
 * Append the records of window w; windows come in order, each once. *marked_out: a bit a placed id,
 * set for the window's rows, whole ranges of 65536 ids; borrowed until the next call.
 */
DRPS_MUST_CHECK
int drps_slots_window(struct slots *s, size_t w, const uint64_t **marked_out, struct drps_err *err);

DRPS_MUST_CHECK
int drps_slots_finish(struct slots *s, struct drps_err *err);
void drps_slots_close(
    struct slots *s); /* NULL-safe; a file that was not finished stays unreadable */

#endif
