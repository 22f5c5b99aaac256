/*
 * Runs: rows that leave memory together, written to one file in the order in which windows use them
 * next, and read back front to back as these windows open. An external merge sort of rows by their
 * next use, whose last merge is done bit by bit while training goes on.
 *
 *     run file:   | run 7 | run 5 | run 7 | free | run 8 | ...     chunks of one size
 *     a run:      sections: a header (which window, how many rows), then the rows
 *     in memory:  of each run the chunk at hand, chunks read ahead, chunks being filled and written
 *
 * A run has all rows that waited in memory for its windows when it was written. So the rows of one
 * window come from the older runs first, in the order in which they came to wait for it, and no row
 * needs its number. Rows that are used once an epoch leave and come back in the same order: they go
 * to the *queue*, a run without end, whose rows come before those of all other runs.
 *
 * A run is live until its last row was taken, and takes a chunk of memory while it is. Before as
 * many are live as there may be, some neighbouring runs are merged to one. Most rows of an old run
 * have been taken by then. Merging goes on while others are written and taken from.
 *
 * The run file is a log that goes round: chunks of whatever runs go to the next free ones behind
 * the cursor, many by one request. The chunk map (chunk_map.h) says where a run's chunks lie. A
 * chunk of the file is free again when all of it was taken, unless a save pins it (storage/relay/
 * save.h). A checksum of every chunk stays in memory and is compared when the chunk is read.
 *
 * One thread at a time calls these functions, except where one says otherwise. Every error but a
 * refused configuration, and -ENOSPC of a save, a look and the end of a run, is final: only
 * drps_runs_close() may follow.
 */
#ifndef DRPS_RELAY_RUNS_H
#define DRPS_RELAY_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "storage/io/drps_aio.h"
#include "storage/relay/runs/drps_saved.h"

struct drps_runs; /* opaque */

enum {
    DRPS_RUNS_RESTORED = 0, /* number of the save that runs were opened from */
    DRPS_RUNS_OLDER = 1,    /* the same of all that were there when it was made */
    DRPS_RUNS_LEAST = 8,    /* config.runs */
};

struct drps_runs_config {
    const struct drps_io *io;
    const char *path;         /* of the file; borrowed until close */
    struct drps_saved *saved; /* NULL: the file is made. Else it exists, and these records, which
                                 open reads, say what runs there are: other members must be as they
                                 were when it was saved */
    int looking;              /* 1, with `saved`: nothing is written, and the file stays as it is */
    size_t row_bytes;
    size_t chunk_bytes;   /* a multiple of DRPS_AIO_ALIGN */
    uint64_t file_chunks; /* room of the file: the most chunks that runs have at a time, and more,
                             so that free ones lie side by side. It grows where that is too little.
                             Below UINT32_MAX */
    uint32_t runs;        /* live at a time, at most, without the queue; >= DRPS_RUNS_LEAST */
    uint32_t spare; /* drps_runs_merge_some() begins a merge when only so many more runs may live,
                       if it is two at least; 0: it begins none */
    uint64_t run_bytes; /* that a run usually has: drps_runs_merge_some() reckons with it */
    uint32_t ahead;     /* chunks of memory to read ahead, besides one for each run; >= 1 */
    uint32_t behind;    /* chunks of memory to fill and write; >= write_chunks + 2: a run, the queue
                           and what is merged are filled, all but one of which can wait */
    uint32_t write_chunks; /* written by one request, 1 to DRPS_AIO_PIECES_MAX */
    int threads_only;      /* as of drps_aio_config */
};

/* Returns the bytes of memory that such runs take, the chunk map included. */
uint64_t drps_runs_memory(const struct drps_runs_config *config);

DRPS_MUST_CHECK
int drps_runs_open(const struct drps_runs_config *config, struct drps_runs **r_out,
                   struct drps_err *err);
/* The file is emptied, unless a save has it, too. NULL-safe. */
void drps_runs_close(struct drps_runs *r);

/* ---- Writing ---- */

/* Begin a run, the youngest one. Others are merged first where there are too many. */
DRPS_MUST_CHECK
int drps_runs_begin(struct drps_runs *r, struct drps_err *err);
/* Append rows base + frames[i] * row_bytes, i = 0 .. n - 1, n > 0, which `window` uses next;
 * windows come in increasing order, none of them before the one that is taken from next. The frames
 * may be used for other rows once it returns. */
DRPS_MUST_CHECK
int drps_runs_add(struct drps_runs *r, uint64_t window, const char *base, const uint32_t *frames,
                  size_t n, struct drps_err *err);
/* End the run, and hand it over to be written, without waiting for it. -ENOSPC: the file cannot
 * grow; the run goes on, and can be ended again. */
DRPS_MUST_CHECK
int drps_runs_end(struct drps_runs *r, struct drps_err *err);

/* Begin to merge runs, or go on with it, when nearly as many live as there may be: as far as keeps
 * up with the runs that were written since the last call, but no further than the disk has read
 * what is merged. The next calls make up for that. Without these calls, and when as many live as
 * there may be, drps_runs_begin() merges all that is needed at once. */
DRPS_MUST_CHECK
int drps_runs_merge_some(struct drps_runs *r, struct drps_err *err);

/* Append rows to the queue, also while a run is written: as drps_runs_add(), from one call to the
 * next, too. */
DRPS_MUST_CHECK
int drps_runs_queue(struct drps_runs *r, uint64_t window, const char *base, const uint32_t *frames,
                    size_t n, struct drps_err *err);

/* ---- Reading ---- */

/* Begin to read what `window`, which is taken from next, and windows after it need, as far ahead as
 * there is memory, without waiting. */
DRPS_MUST_CHECK
int drps_runs_prefetch(struct drps_runs *r, uint64_t window, struct drps_err *err);

/* Take the next n rows of a window to base + frames[i] * row_bytes: those of the queue, then those
 * of runs, the oldest one first. Windows come in increasing order, of each all rows.
 * DRPS_E_CORRUPT: it has fewer, or a chunk is not what was written. */
DRPS_MUST_CHECK
int drps_runs_take(struct drps_runs *r, uint64_t window, char *base, const uint32_t *frames,
                   size_t n, struct drps_err *err);
/* After its last row: DRPS_E_CORRUPT if the window has more, or one before it was left out. */
DRPS_MUST_CHECK
int drps_runs_taken(struct drps_runs *r, uint64_t window, struct drps_err *err);

/* Between these two, which nest in nothing, rows are taken only to be looked at: afterwards all
 * runs are as before. Nothing is added meanwhile. The second is called also after a failure in
 * between. */
DRPS_MUST_CHECK
int drps_runs_look(struct drps_runs *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_runs_looked(struct drps_runs *r, struct drps_err *err);

/* Memory of the buffers that is not in use, for the caller to use, without `looking`. Between the
 * two it is that of chunks to write and of most of those to read ahead. After drps_runs_looked() it
 * is that of all chunks, until any other function is called but those below. */
struct drps_runs_lent {
    char *at; /* aligned to DRPS_AIO_ALIGN */
    size_t bytes;
};
struct drps_runs_lent drps_runs_lend(const struct drps_runs *r);

/* Returns how many of `ahead` chunks are lent while rows are looked at. */
static inline uint32_t drps_runs_ahead_lent(uint32_t ahead)
{
    return ahead - ahead / 4 - 1;
}

/* ---- Saving, while no run is written ---- */

/* Write and sync all of it, and give the file room for what runs have once it is pinned. What is
 * being merged becomes a run. -ENOSPC: there is none; all rows are as they were. */
DRPS_MUST_CHECK
int drps_runs_save_begin(struct drps_runs *r, struct drps_err *err);
/* Write the records that say what runs there are, after drps_runs_save_begin(). */
DRPS_MUST_CHECK
int drps_runs_save(struct drps_runs *r, struct drps_recwriter *w, struct drps_err *err);
/* Pin the chunks of runs; returns the number of the save. -EINVAL: there are too many. */
DRPS_MUST_CHECK
int drps_runs_pin(struct drps_runs *r, struct drps_err *err);
/* Let go of a save: of one that is there, once. */
void drps_runs_unpin(struct drps_runs *r, unsigned save);

/* ---- About ---- */

/* Returns the bytes of rows that were merged so far, and so written twice. */
uint64_t drps_runs_merged_bytes(const struct drps_runs *r);
/* Returns how many runs are live, without the queue. */
uint32_t drps_runs_live(const struct drps_runs *r);
/* What was read and written so far, and how. Any thread may ask. */
void drps_runs_stats(const struct drps_runs *r, struct drps_iostat *out);
void drps_runs_about(const struct drps_runs *r, struct drps_aio_about *out);

#endif
