/*
 * The memory of the runs, which these files share: runs.c opens them, runs_write.c fills chunks and
 * writes them, runs_read.c reads them back, runs_take.c takes rows from them, runs_merge.c merges
 * them, runs_save.c and runs_restore.c save and restore them, runs_io.c waits for requests. Private
 * to them.
 */
#ifndef DRPS_RELAY_RUNS_INTERNAL_H
#define DRPS_RELAY_RUNS_INTERNAL_H

#include "storage/relay/runs/chunk_map.h"
#include "storage/relay/runs/drps_runs.h"

#define DRPS_RUNS_NEVER UINT64_MAX /* a window that never comes */

enum {
    DRPS_RUNS_NONE = -1,
    DRPS_RUNS_WRITES = 32, /* under way at most */
    DRPS_RUNS_READS = 128, /* the same */
    DRPS_RUNS_LEVELS_MOST =
        64, /* runs of a level are made from runs of the one below; or of this one */
    DRPS_RUNS_CHUNK_BYTES_MOST = 1 << 30,
};

/* A run or the queue, and how far it was taken. A section is at hand when `left` is not 0. Without
 * one the chunk at hand begins with a header, and `window` is that of its section. */
struct drps_run {
    struct drps_chunk_list list; /* its chunks in the file */
    uint64_t bytes;              /* of its chunks from the one at hand on, also of those that are
                                    filled, collected or written */
    uint64_t window;
    uint64_t left;       /* rows of the section at hand */
    uint32_t chunk;      /* at hand; DRPS_NO_CHUNK: it has no more in the file */
    uint32_t at;         /* bytes taken of it */
    uint32_t level;      /* 0: it was never merged */
    int32_t first, last; /* buffers for reading: of the chunk at hand and the next ones; or
                            DRPS_RUNS_NONE */
    uint32_t extra;      /* how many of them are of the next ones */
};

/* What is being written: a run, the queue, or what runs are merged to. */
struct drps_runs_writer {
    uint64_t window; /* of the section that was begun last */
    int32_t tail;    /* buffer that is being filled, or DRPS_RUNS_NONE */
};

/* A buffer for writing. */
struct drps_runs_chunk {
    const struct drps_runs_writer *writer;
    uint64_t sum, need; /* as in the chunk map */
    uint32_t bytes;
};

/* A request that writes n chunks side by side in the file. */
struct drps_runs_write {
    uint32_t first, n;    /* chunks of the file */
    struct iovec *chunks; /* [write_chunks], of drps_runs.pieces */
};

/* A buffer for reading. */
struct drps_runs_read {
    uint32_t chunk; /* of the file, that it is for */
    int32_t next;   /* buffer of the run's next chunk, or DRPS_RUNS_NONE */
    uint8_t there;  /* 1: the chunk was read */
    uint8_t whole;  /* 1: and compared with its checksum */
};

/* Runs at + 1 .. at + n are being merged to run `at`. Of each window it has the rows that come
 * first. */
struct drps_runs_merging {
    uint32_t at; /* 0: none are */
    uint32_t n;
    uint64_t owed; /* bytes to be merged by now, that were not read in time */
    uint64_t room; /* bytes of runs that may be written until all is to be merged, where a run has
                      config.run_bytes */
};

/* What was there before rows are only looked at. */
struct drps_runs_aside {
    struct drps_run *runs; /* own: [config.runs + 2] */
    uint32_t n;
    int used; /* 1: between drps_runs_look() and drps_runs_looked() */
};

struct drps_runs {
    struct drps_runs_config config;
    struct drps_aio *aio;
    char *mem; /* own: [behind_n + reads_n][chunk_bytes] */
    size_t mem_bytes;
    struct drps_chunk_map map;
    uint8_t saves; /* bit k: there is a save number k */

    struct drps_run *runs; /* own: [config.runs + 2] the queue, then live ones, the oldest first */
    uint64_t *needs;       /* own: [config.runs + 2] window of the next row, or never */
    uint64_t *asks;        /* own: [config.runs + 2] window that needs the next chunk to ask for */
    uint32_t n;
    uint64_t window; /* that is taken from ... */
    uint32_t turn;   /* ... and the first of runs that may have rows of it left */
    struct drps_runs_aside aside;

    struct drps_run out;                            /* the run that is being written */
    struct drps_runs_writer writer, queuer, merger; /* of it, the queue, and merging.at */
    struct drps_runs_merging merging;
    uint64_t added; /* bytes of runs since some were merged last; one that is short counts whole */
    uint64_t merged_bytes;
    size_t behind_n;
    struct drps_runs_chunk *chunks; /* own: [behind_n] */
    int32_t *free;                  /* own: [behind_n] stack of free buffers */
    size_t free_n;
    int32_t *collected; /* own: [write_chunks] buffers to be written by the next request */
    uint32_t collected_n;
    struct drps_runs_write writes[DRPS_RUNS_WRITES];
    struct iovec *pieces;            /* own: [DRPS_RUNS_WRITES][write_chunks] */
    uint32_t idle[DRPS_RUNS_WRITES]; /* a stack of writes that are not under way */
    uint32_t idle_n;

    uint32_t ahead; /* chunks to read ahead: config.ahead, without those that are lent */
    size_t reads_n;
    struct drps_runs_read *reads; /* own: [reads_n] */
    int32_t *free_reads;          /* own: [reads_n] stack of free buffers */
    size_t free_reads_n;
    uint32_t extra[2]; /* buffers that runs have besides their first ones: others, those merged */
    uint32_t reads_under_way; /* those pending included */
    struct drps_aio_op pending[DRPS_RUNS_READS];
    size_t pending_n;

    /* Who is told what has finished; set when the runs are opened. */
    void (*written)(struct drps_runs *r, uint32_t number);   /* a write */
    void (*came)(struct drps_runs *r, uint32_t read);        /* a chunk to be read */
    int (*flush)(struct drps_runs *r, struct drps_err *err); /* write what is collected */
};

static inline char *drps_runs_buffer(const struct drps_runs *r, int32_t buffer)
{
    return r->mem + (size_t)buffer * r->config.chunk_bytes;
}

static inline char *drps_runs_read_buffer(const struct drps_runs *r, int32_t read)
{
    return drps_runs_buffer(r, (int32_t)r->behind_n + read);
}

/* ---- runs_io.c ---- */

/* Hand over the reads that are pending. */
DRPS_MUST_CHECK
int drps_runs_submit(struct drps_runs *r, struct drps_err *err);

/* See which requests have finished; wait for at least `least` of them. */
DRPS_MUST_CHECK
int drps_runs_reap(struct drps_runs *r, unsigned least, struct drps_err *err);

/* Wait until one request has finished; what was collected is written when nothing else is under
 * way. */
DRPS_MUST_CHECK
int drps_runs_await_one(struct drps_runs *r, struct drps_err *err);

/* Wait until all requests have finished. */
DRPS_MUST_CHECK
int drps_runs_await_all(struct drps_runs *r, struct drps_err *err);

/* Give the file and the map room for so many chunks, no fewer than they have. -ENOSPC: there is
 * none; all is as it was. */
DRPS_MUST_CHECK
int drps_runs_grow(struct drps_runs *r, uint64_t chunks, struct drps_err *err);

/* ---- runs_list.c: runs in order of age ---- */

/* A run of which nothing was read. */
void drps_run_init(struct drps_run *run);

/* The next chunk of the run to ask for, or DRPS_NO_CHUNK. */
uint32_t drps_run_next_to_ask(const struct drps_runs *r, const struct drps_run *run);

/* What run i has changed: note what it needs next. */
void drps_runs_note(struct drps_runs *r, uint32_t i);

/* A run joins the others in place i. */
void drps_runs_insert(struct drps_runs *r, uint32_t i, const struct drps_run *run);

/* Run i leaves when all of it was taken; returns whether it did. The queue stays, and what is
 * merged to. */
int drps_runs_leave_if_ended(struct drps_runs *r, uint32_t i);

/* The chunk comes to hand, after the one before was taken. DRPS_E_CORRUPT: it is for a window that
 * cannot come now. */
DRPS_MUST_CHECK
int drps_run_enter(const struct drps_runs *r, struct drps_run *run, uint32_t chunk,
                   struct drps_err *err);

/* DRPS_E_CORRUPT: the chunk is not what was written there. */
int drps_runs_wrong_chunk(const struct drps_runs *r, uint32_t chunk, struct drps_err *err);

/* ---- runs_write.c ---- */

/* The run that is written next has nothing yet. */
void drps_runs_begin_out(struct drps_runs *r);

/* All that a writer has goes to the file. -ENOSPC: it has no room; all stays, and can be ended
 * again. */
DRPS_MUST_CHECK
int drps_runs_end_writer(struct drps_runs *r, struct drps_runs_writer *w, struct drps_err *err);

/* Write the header of a section; then its rows, as bytes. */
DRPS_MUST_CHECK
int drps_runs_put_header(struct drps_runs *r, struct drps_runs_writer *w, uint64_t window,
                         uint64_t rows, struct drps_err *err);
DRPS_MUST_CHECK
int drps_runs_put_bytes(struct drps_runs *r, struct drps_runs_writer *w, const char *bytes,
                        size_t n, struct drps_err *err);

/* Write what is collected. */
DRPS_MUST_CHECK
int drps_runs_flush(struct drps_runs *r, struct drps_err *err);

/* What live runs have for windows up to this one is written, and can be read. */
DRPS_MUST_CHECK
int drps_runs_bring(struct drps_runs *r, uint64_t window, struct drps_err *err);

/* Returns the window of the first row of live runs that is not in the file yet, or never. */
uint64_t drps_runs_behind(const struct drps_runs *r);

/* ---- runs_read.c ---- */

/* Whether the next chunk of run i can be asked for now: its first one, or one of those that follow,
 * for which there is memory for config.ahead. Runs that are merged little by little have half of it
 * meanwhile. Where merging is done at once, a quarter is kept for it always. */
int drps_runs_can_ask(const struct drps_runs *r, uint32_t i);
void drps_runs_ask(struct drps_runs *r, uint32_t i);

/* Which runs are merged has changed: count their buffers anew. */
void drps_runs_count_extra(struct drps_runs *r);

/* Let go of all buffers that were read to, when no read is under way. From now on the first `lent`
 * buffers, of those to read ahead, are not used. */
void drps_runs_forget_reads(struct drps_runs *r, uint32_t lent);

/* The bytes of the chunk at hand of run i that were not taken yet: one or more. Valid until they
 * are skipped. */
DRPS_MUST_CHECK
int drps_runs_peek(struct drps_runs *r, uint32_t i, const char **at_out, size_t *n_out,
                   struct drps_err *err);
DRPS_MUST_CHECK
int drps_runs_skip(struct drps_runs *r, uint32_t i, size_t n, struct drps_err *err);

/* Go to the rows of the section that run i comes to now; it has one at hand afterwards. */
DRPS_MUST_CHECK
int drps_runs_open_section(struct drps_runs *r, uint32_t i, struct drps_err *err);
/* After the last row of a section: see what comes next, or let the run leave. */
DRPS_MUST_CHECK
int drps_runs_end_section(struct drps_runs *r, uint32_t i, int *left_out, struct drps_err *err);

/* ---- runs_merge.c ---- */

/* Merge some runs to one: those that are being merged, or others. */
DRPS_MUST_CHECK
int drps_runs_merge(struct drps_runs *r, struct drps_err *err);

/* Merge no further: what was merged is a run. -ENOSPC as of drps_runs_end_writer(). */
DRPS_MUST_CHECK
int drps_runs_stop_merging(struct drps_runs *r, struct drps_err *err);

/* ---- runs_restore.c ---- */

/* Read how many chunks the file has. */
DRPS_MUST_CHECK
int drps_runs_restore_size(const struct drps_runs_config *c, uint64_t *chunks_out,
                           struct drps_err *err);
/* Read what runs there are, after that. */
DRPS_MUST_CHECK
int drps_runs_restore(struct drps_runs *r, struct drps_err *err);

/* ---- Called when write `number`, or the read to reads[read], has finished ---- */

void drps_runs_written(struct drps_runs *r, uint32_t number);
void drps_runs_came(struct drps_runs *r, uint32_t read);

#endif
