/*
 * Records of windows.rec, one after another as the store asks for them. It works on each for some
 * time; threads read the next ones meanwhile, as many as some memory holds.
 */
#ifndef DRPS_INDEX_WINDOWS_RECORDS_H
#define DRPS_INDEX_WINDOWS_RECORDS_H

#include "base/record/drps_recfile.h"
#include "index/plan/drps_window.h"

struct drps_window_records; /* opaque; owns threads */

/* A window's record; not `whole`: its front_bytes, without the rows, which come last. */
struct drps_window_part {
    uint32_t number;
    int whole;
};

/* The file is borrowed until close. */
DRPS_MUST_CHECK
int drps_window_records_open(struct drps_recfile *file, struct drps_window_records **r_out,
                             struct drps_err *err);
void drps_window_records_close(struct drps_window_records *r); /* NULL-safe */

/*
 * A part and its head. A window is asked for whole first: else -EINVAL. *record_out is borrowed
 * until drps_window_records_done(), which has to follow, unless this fails. Those that come after
 * it are read ahead then: whole up to the end of the epoch if it is, and never from its begin on.
 * After a failure nothing is. One calling thread.
 */
DRPS_MUST_CHECK
int drps_window_records_read(struct drps_window_records *r, struct drps_window_part part,
                             struct drps_piece *record_out, struct drps_window *head_out,
                             struct drps_err *err);
void drps_window_records_done(struct drps_window_records *r);
/* Done with the record, if there is one, and nothing more is read ahead. */
void drps_window_records_rest(struct drps_window_records *r);

#endif
