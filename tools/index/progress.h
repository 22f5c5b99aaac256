/*
 * How far drps-index is, as a line on the terminal. Reading text and making batches say how many
 * samples they have done; of the other phases nobody knows the end, and the line says what they
 * have read and written. For that the run's files are opened through progress->io, which counts;
 * drps_progress.h makes the line.
 */
#ifndef DRPS_TOOLS_INDEX_PROGRESS_H
#define DRPS_TOOLS_INDEX_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/drps_io.h"
#include "index/drps_index.h"
#include "tools/drps_cli.h"

struct index_progress {
    struct drps_io io; /* for drps_index_run(): the system's, counted */

    /* Private to progress.c. */
    struct drps_io_ops ops;
    struct drps_cli *cli;
    uint64_t input_bytes;         /* of all input files; 0: a pipe is among them */
    int of_all;                   /* 1: reading is told of in bytes, of several machines */
    _Atomic uint64_t text_bytes;  /* read from them */
    _Atomic uint64_t moved_bytes; /* read from and written to files of the plan */
    pthread_mutex_t lock;         /* over what follows */
    pthread_cond_t ended;
    enum drps_index_phase phase;
    uint64_t phase_ns, moved_before; /* when it began, and moved_bytes then */
    uint64_t done, total;            /* as the run tells them */
    int ending;
    int ticks; /* `thread` runs: it shows what nobody tells */
    pthread_t thread;
};

/* Start showing. The inputs are only looked at for their sizes. */
void index_progress_start(struct index_progress *p, struct drps_cli *cli,
                          const struct drps_index_options *options, int of_all);
void index_progress_stop(struct index_progress *p);

/* For struct drps_index_options; ctx is the progress. */
void index_progress_tell(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total);

#endif
