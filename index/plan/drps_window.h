/*
 * Windows, slots and distances, the use of blocks, and the forecast of I/O: what follows from the
 * row lists of a plan once the placed ids are fixed. All of it is one analysis: *the next use of a
 * row*.
 *
 * The steps of an epoch (T training, then E evaluation) repeat. They are cut into windows: runs of
 * consecutive steps whose rows fit the budget together; two windows are open at a time, so that
 * |rows(w) u rows(w+1)| * row_bytes <= budget (w+1 wraps to 0). In window w a row's *slot* is its
 * rank among the window's rows in placed order. A window has the rows that its steps touch, and
 * those that both of its neighbours touch: these would leave and come back while it runs, and to
 * keep them takes no memory that the two open windows have not. Its *next* is the distance in
 * windows to its next use, its *prev* the distance from its last one, both counted round the end of
 * the epoch: 1 to K in an epoch of K windows. If row r of window w has next d, then it is in window
 * w + d with prev d and in none between. So rows that leave windows sorted by next, in slot order,
 * arrive sorted by prev, in slot order, and no slot need be stored with a row. Source: the
 * project's own; next use as in Belady 1966.
 */
#ifndef DRPS_INDEX_PLAN_WINDOW_H
#define DRPS_INDEX_PLAN_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "base/drps_log.h"
#include "index/plan/drps_plan.h"
#include "storage/drps_store.h"
#include "storage/relay/drps_relay.h"

struct drps_window_options {
    uint64_t steps;       /* records of rows.rec: one epoch, T + E */
    uint64_t train_steps; /* T: a window never mixes training and evaluation steps */
    uint64_t rows;
    uint64_t row_bytes;
    uint64_t budget_bytes; /* of the rows of two open windows */
    uint64_t
        memory_bytes; /* of the compiler itself: row tables larger than this are done in slices */
    uint64_t curve_uses; /* in an epoch, of blocks, that drps_forecast_curve() runs through pools,
                            and of rows, that drps_windows_measure() follows; 0: 2 Mi of each */
    const struct drps_log *log;
};

struct drps_window_result {
    uint64_t windows;
    uint64_t working_set_rows; /* most rows of two open windows */
    uint64_t max_window_rows;
    uint64_t rows_touched; /* sum over windows of their rows, also those that only stay */
    uint64_t rows_kept;    /* of these: with next 1, needed in the very next window, so they stay */
    uint64_t rows_moved;   /* the others: written once and read once an epoch, but for those that
                              the store holds in memory until then */
};

/*
 * Compile out_dir/windows.rec and out_dir/slots.rec from dir/rows.rec (out_dir may be dir). Fails
 * with DRPS_E_MEMORY_BUDGET and the number that would do when the rows of a single step (times two)
 * exceed the budget. One window when everything fits; one of training and one of evaluation steps
 * when there are both. The bytes written do not depend on memory_bytes. DRPS_E_CORRUPT names the
 * file and the record. A file that was not finished is refused by its readers; scratch files
 * (out_dir/windows.*.tmp) are gone when it returns. Memory: memory_bytes, and in any case three
 * quarters of a byte a row, 256 KiB for the smallest slice, some words a step, and one window's
 * record (about 4 bytes a row of it).
 *
 * Record s of slots.rec is the packed list of the slots of step s's rows in the window that the
 * step belongs to, in the order and number of record s of rows.rec.
 */
DRPS_MUST_CHECK
int drps_windows_compile(const struct drps_io *io, const char *dir, const char *out_dir,
                         const struct drps_window_options *options,
                         struct drps_window_result *result_out, struct drps_err *err);

enum { DRPS_WINDOW_MEASURE_MOST = 8 };

/* A relay store with memory for so many rows. */
struct drps_window_measure {
    struct drps_relay_share share; /* of its memory */
    struct drps_window_result cut; /* as drps_windows_compile() would report */
    uint64_t rows_sent;            /* of cut.rows_moved, those that it does not hold in memory */
};

/*
 * What a relay store with memory for frames[i] rows, i < n <= DRPS_WINDOW_MEASURE_MOST, would send
 * in an epoch, without writing anything: with windows cut for that memory, as drps-train cuts them
 * (options->budget_bytes is not used; row_bytes are those of a row alone). out[i].cut.windows is 0
 * when two steps do not fit. Where an epoch has more uses of rows than
 * options->curve_uses, or memory is short, rows_sent is an estimate from a share of the rows.
 */
DRPS_MUST_CHECK
int drps_windows_measure(const struct drps_io *io, const char *dir,
                         const struct drps_window_options *options, const uint64_t *frames,
                         size_t n, struct drps_window_measure *out, struct drps_err *err);

/*
 * One window as stored. Own arrays; zero the struct, decode into it as often as you like,
 * drps_window_free() it.
 *
 * The record (all numbers little-endian):
 *   0 u32 flags: 1 evaluation      4 u32 rows n           8 u64 first step         16 u64 steps
 *  24 u32 windows K of the epoch  28 u32 most rows of any window                   32 u32 arriving
 *  36 u32 leaving                 40 u32 sections        44 u32 zero
 *  48 u64 bytes of the nexts      56 u64 bytes of the prevs
 *  64 u64 XXH3-64 of bytes 0 to 63, the nexts and the prevs
 *  72 nexts, then prevs, then rows, each a section after another: a section is the rows of one
 *     aligned range of 65536 placed ids, ranges without rows left out, as packed distances of their
 *     nexts (drps_distances.h), as packed distances of their prevs, as a packed list of them
 *
 * What lies before the rows is the record's *front*. It has a checksum of its own, because after
 * the first epoch nobody needs the rows of a window any more: then fronts alone are read.
 */
enum { DRPS_WINDOW_ROWS = 1, DRPS_WINDOW_NEXT = 2, DRPS_WINDOW_PREV = 4 };
struct drps_window {
    uint64_t first_step, steps;
    int evaluation;
    uint32_t windows;   /* K, of the epoch */
    uint32_t max_rows;  /* of any window of the epoch */
    size_t n;           /* rows */
    size_t arriving;    /* of these: not in the window before (prev > 1) */
    size_t leaving;     /* of these: not in the next window (next > 1) */
    size_t front_bytes; /* of the record */
    uint32_t *rows;     /* [n] placed ids, strictly increasing: slot s holds rows[s] */
    uint32_t *next;     /* [n] windows until the row is used again: 1 .. K; K: only this window
                           uses it */
    uint32_t *prev;     /* [n] windows since it was used last: 1 .. K */
    size_t cap;
};
/* Only the head of a record, or front: no array is touched. DRPS_E_CORRUPT when its numbers
 * contradict each other or the record's size; n is 0 then. */
DRPS_MUST_CHECK
int drps_window_head(const void *record, size_t bytes, struct drps_window *w, struct drps_err *err);
/* A front that was read alone. DRPS_E_CORRUPT when its checksum is wrong. */
DRPS_MUST_CHECK
int drps_window_check_front(const void *front, size_t bytes, struct drps_err *err);
/*
 * The head and the parts asked for (DRPS_WINDOW_*), of a record or, without the rows, of its front;
 * what the other arrays hold is undefined, and they may be NULL. Checked of each part: counts,
 * order, distances from 1 to K, as many beyond 1 as the head says, that it ends where the next one
 * begins; with the rows, also that sections agree. After a failure n is 0.
 */
DRPS_MUST_CHECK
int drps_window_decode(const void *record, size_t bytes, unsigned parts, struct drps_window *w,
                       struct drps_err *err);
/* Decode the parts that are not NULL as drps_window_decode() does, but as use distances: the arrays
 * of `next` and `prev` are the caller's, for max_rows. w's own arrays but w->rows are not touched.
 */
DRPS_MUST_CHECK
int drps_window_decode_use_distances(const void *record, size_t bytes, int with_rows,
                                     struct drps_window *w, struct drps_use_distances *next,
                                     struct drps_use_distances *prev, struct drps_err *err);
void drps_window_free(struct drps_window *w);

struct drps_uses_result {
    uint64_t max_step_blocks;     /* of a step, the most */
    uint64_t max_step_block_rows; /* in all blocks of a step, the most */
    /* Sums over the steps: their rows, their blocks, and all rows of these; and what reading each
     * step's blocks takes when nothing is kept: requests, and rows that are read. */
    uint64_t row_uses, block_uses, block_use_rows, runs, run_rows;
};

/*
 * Compile dir/uses.rec: for each step its blocks (strictly increasing) and the distance in steps to
 * the next use of each (1 .. steps, wrapping). block_first [blocks + 1], strictly increasing from
 * 0. A record is the packed list of blocks, then the packed numbers of their distances, as many. A
 * request reads blocks that are at most `gap` rows apart, and what lies between.
 * The bytes written do not depend on memory_bytes.
 */
DRPS_MUST_CHECK
int drps_uses_compile(const struct drps_io *io, const char *dir, uint64_t steps,
                      const uint32_t *block_first, size_t blocks, uint64_t gap,
                      uint64_t memory_bytes, struct drps_uses_result *result_out,
                      struct drps_err *err);

/* Decode one uses record: blocks_out and distance_out have room for drps_list_count(record). */
DRPS_MUST_CHECK
int drps_uses_decode(const void *record, size_t bytes, uint32_t *blocks_out, uint32_t *distance_out,
                     struct drps_err *err);

/* I/O of one epoch in the steady state, for one store and memory size. */
struct drps_forecast {
    const char *store;     /* "resident", "pib", "relay" */
    uint64_t memory_bytes; /* that holds rows */
    uint64_t windows;      /* relay; 0 for others */
    uint64_t read_bytes, written_bytes;
    uint64_t ios;   /* blocks or chunks read and written */
    int feasible;   /* 0: a single step does not fit */
    double sampled; /* pib: share of the blocks that the counts were taken of; 1: all */
    struct drps_epoch_seconds seconds; /* of an epoch, one thread; 0: no speeds are known */
};

/* What moves them, if pib's blocks are in a file of their own (storage/kv/drps_extents.h). */
struct drps_forecast_requests {
    uint64_t n;           /* blocks next to each other together */
    uint64_t moved_bytes; /* also what lies between, and of shared sectors */
    double seconds;       /* of the disk, one request at a time */
};

/* The disk that a forecast is for. */
struct drps_forecast_disk {
    double seek_seconds, bytes_per_s;
    uint64_t gap_bytes; /* reads go through gaps of at most so many */
    uint32_t sector;    /* bytes */
};

enum { DRPS_FORECAST_CHUNK_BYTES = 256 * 1024 };

/* A solid-state disk, where none was measured. */
extern const struct drps_forecast_disk drps_forecast_usual_disk;

/*
 * The miss curve: pib (the pool itself run over uses.rec, cyclic, steady state: blocks of the
 * whole epoch once warm; evaluation steps do not dirty blocks; farthest next use) and relay
 * (windows cut for that memory, bytes = rows sent * row_bytes: held rows do not count; chunks of
 * 256 KiB; without groups), for memory = model, 1/2, 1/4 ... 1/64 of the model's row bytes. out has
 * room for `cap` entries; *n_out are filled. Where an epoch has more than options->curve_uses uses
 * of blocks, pib's counts are scaled up from a share of the blocks.
 */
DRPS_MUST_CHECK
int drps_forecast_curve(const struct drps_io *io, const char *dir,
                        const struct drps_window_options *options, const uint32_t *block_first,
                        size_t blocks, struct drps_forecast *out, size_t cap, size_t *n_out,
                        struct drps_err *err);

/*
 * One point of it: pib with a pool of that shape, which gives up blocks by that rule; used by
 * drps-train for its own run. With a disk, requests are counted, too; NULL: they are not, and
 * requests_out is zero. Memory: 4 bytes a block and a page, and what the pool keeps for its frames
 * and units.
 */
DRPS_MUST_CHECK
int drps_forecast_pib(const struct drps_io *io, const char *dir,
                      const struct drps_window_options *options, const uint32_t *block_first,
                      size_t blocks, const struct drps_pool_shape *shape, enum drps_evict_rule rule,
                      const struct drps_forecast_disk *disk, struct drps_forecast *out,
                      struct drps_forecast_requests *requests_out, struct drps_err *err);

#endif
