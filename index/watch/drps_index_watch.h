/*
 * The numbers of a run of drps-index that others watch while it runs (base/monitor/):
 * docs/metrics.md has the table. Where nobody asked for them there is no watch, and every function
 * takes NULL. All but opening and closing: any thread, unless it says otherwise.
 */
#ifndef DRPS_INDEX_WATCH_H
#define DRPS_INDEX_WATCH_H

#include "index/drps_index.h"

struct drps_index_watch; /* opaque */

/* Open what options->metrics asks for; *out NULL: nothing. Options are borrowed. Errors as
 * drps_monitor_out_open(). */
DRPS_MUST_CHECK
int drps_index_watch_open(const struct drps_index_options *options,
                          const char *(*phase_name)(enum drps_index_phase phase),
                          struct drps_index_watch **out, struct drps_err *err);
void drps_index_watch_close(struct drps_index_watch *w); /* the last state is written */

/* Write a file in the folder that is made, too, if that is asked for; and leave it, before the
 * folder goes or gets its name. */
DRPS_MUST_CHECK
int drps_index_watch_enter_folder(struct drps_index_watch *w, const char *dir,
                                  struct drps_err *err);
void drps_index_watch_leave_folder(struct drps_index_watch *w);

/* How much memory the run may use. */
void drps_index_watch_memory(struct drps_index_watch *w, uint64_t bytes);

/* A phase begins, or has ended after so many seconds. */
void drps_index_watch_begin(struct drps_index_watch *w, enum drps_index_phase phase);
void drps_index_watch_end(struct drps_index_watch *w, enum drps_index_phase phase, double seconds);

/* How far it is, as options->progress is told. */
void drps_index_watch_done(struct drps_index_watch *w, enum drps_index_phase phase, uint64_t done,
                           uint64_t total);

/* A reader begins: what it has read comes on top of what those before it had. And so much it has
 * read, as its files have it. By one thread at a time. */
void drps_index_watch_next_reader(struct drps_index_watch *w);
void drps_index_watch_read(struct drps_index_watch *w, uint64_t file_bytes, uint64_t lines);

#endif
