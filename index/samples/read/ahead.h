/* A thread parses pieces of text ahead. Two pieces are in flight: one being parsed, one being
 * looked up by the caller. Private to index/samples/read/. */
#ifndef DRPS_INDEX_SAMPLES_READ_AHEAD_H
#define DRPS_INDEX_SAMPLES_READ_AHEAD_H

#include <pthread.h>

#include "index/reader/drps_reader.h"
#include "index/swap/drps_swap.h"
#include "index/watch/drps_index_watch.h"

enum { AHEAD_PIECES = 2 };

/* The caller sets the first three; the rest starts zeroed. */
struct ahead {
    struct drps_reader *reader;     /* borrowed */
    struct drps_index_watch *watch; /* borrowed; may be NULL */
    struct swap_ranks *ranks;       /* borrowed; NULL: this machine alone */
    struct drps_samples pieces[AHEAD_PIECES];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled, taken;
    int rc; /* of the reader: 1 going on, 0 at the end, < 0 failed */
    int stopping;
    struct drps_err err;
};

/* Start to read. The caller stops it, unless this fails. */
DRPS_MUST_CHECK
int drps_ahead_start(struct ahead *a, struct drps_err *err);
void drps_ahead_stop(struct ahead *a);

/* The next piece, borrowed until drps_ahead_done(). Returns 1, or 0 at the end, or what the reader
 * failed with. */
DRPS_MUST_CHECK
int drps_ahead_next(struct ahead *a, struct drps_samples **piece_out, struct drps_err *err);
void drps_ahead_done(struct ahead *a);

#endif
