/*
 * Row stores: where parameter rows live while a plan is executed.
 *
 * A row is `row_bytes` bytes: dim float32 parameters, then the optimizer's float32 state. Rows are
 * known by their placed id (0 .. rows - 1). Execution is a sequence of steps: one batch each, the
 * training batches of an epoch followed by its evaluation batches, epoch after epoch. For one step
 * a store makes the step's rows addressable:
 *
 *     drps_store_step_open(st, step, ids, n, &rows)     rows.base + rows.index[i] * rows.stride is
 * row ids[i]
 *     ... read and, in training steps, change the rows ...
 *     drps_store_step_close(st, step, changed)
 *
 * Steps are opened in order, and closed before the next one opens; with config.open_steps several
 * may be open, to be closed in any order. Which rows the *next* steps need is known from the plan;
 * stores that keep rows on disk get it through `struct drps_timeline` and use it to prefetch and
 * evict. All stores give the same bytes for the same steps: that is what the conformance suite
 * checks.
 */
#ifndef DRPS_STORE_H
#define DRPS_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "storage/drps_iostat.h"

struct drps_store; /* opaque: each store begins its own struct with `const struct drps_store_ops
                    *ops` */

/* The rows of one open step. */
struct drps_rows {
    char *base;            /* borrowed until the step closes */
    size_t stride;         /* bytes from one slot to the next */
    const uint32_t *index; /* [n] slot of each row; borrowed until the step closes or the next one
                              opens */
    size_t n;
};

static inline void *drps_row_at(const struct drps_rows *rows, size_t i)
{
    return rows->base + (size_t)rows->index[i] * rows->stride;
}

enum { DRPS_STORE_OPEN_MOST = 64 };

/* Fill n fresh rows, ids first .. first + n - 1, row_bytes apart. Pure: same ids, same bytes. Any
 * thread. */
typedef void (*drps_row_init)(void *ctx, uint64_t first, size_t n, void *rows_out);

/* Receives all rows in placed order, in runs. Non-zero ends the scan. */
typedef int (*drps_row_visit)(void *ctx, uint64_t first, size_t n, const void *rows,
                              struct drps_err *err);

/* The blocks of one step: what the block store prefetches, and when each is needed next. */
struct drps_step_blocks {
    const uint32_t *blocks;   /* [n] strictly increasing */
    const uint64_t *next_use; /* [n] the next step (counted from the start of training) that needs
                                 the block; UINT64_MAX: none */
    size_t n;
};

/*
 * The known future. step_blocks is called with step = 0, 1, 2, ... by one thread of the store,
 * which may run ahead of the steps opened by some rounds; the arrays are borrowed until the next
 * call.
 */
struct drps_timeline {
    void *ctx;
    uint64_t steps; /* in the whole training */
    uint64_t reach; /* steps from a use of a block to its next one, at most; 0: not known */
    int (*step_blocks)(void *ctx, uint64_t step, struct drps_step_blocks *out,
                       struct drps_err *err);
};

/* One window of an epoch as the relay store runs it; index/plan/drps_window.h has the terms. */
struct drps_store_window {
    uint64_t first_step, steps; /* of the epoch */
    size_t n;                   /* rows */
    size_t arriving, leaving;   /* of these: not used by the window before; by the one after */
};

/*
 * The ways of a window's rows, by slot: windows from a use of a row to the one after, or before.
 * Most are 1, so that the others alone are listed. A row with a way above 1 is a *far* one.
 */
struct drps_use_distances {
    uint64_t *marks; /* [DRPS_DISTANCE_WORDS(n)] bit s: the row of slot s is far; from bit n on 0 */
    uint32_t *far;   /* [n_far] the ways of these rows, in slot order; room for n */
    size_t n_far;
};
#define DRPS_DISTANCE_WORDS(n) ((size_t)(n) / 64 + 2)

/*
 * The plan's windows. read() gives the head of window w < windows and, where a pointer is not NULL,
 * of its rows the placed ids [n] and the ways to the next use and from the last one (1 .. windows,
 * cyclic). One calling thread at a time.
 */
struct drps_window_source {
    void *ctx;
    uint32_t windows;      /* of an epoch */
    uint64_t epochs;       /* that will be run */
    size_t max_rows;       /* of one window */
    uint64_t working_rows; /* most rows of two neighbouring windows together */
    int (*read)(void *ctx, uint32_t w, struct drps_store_window *out, uint32_t *rows,
                struct drps_use_distances *next, struct drps_use_distances *prev,
                struct drps_err *err);
};

/* Which block a full pool gives up; storage/pib/drps_evict.h has more. */
enum drps_evict_rule { DRPS_EVICT_FARTHEST, DRPS_EVICT_CLOCK, DRPS_EVICT_LRU };

/* "farthest", "clock", "lru"; 0, or -1 for another name. */
const char *drps_evict_name(enum drps_evict_rule rule);
int drps_evict_find(const char *name, enum drps_evict_rule *rule_out);

/* The most that one step needs of a block store; zero: unknown. */
struct drps_step_size {
    uint64_t blocks;
    uint64_t block_rows; /* of these blocks together, the rows that it does not use included; zero:
                            taken as those of as many blocks of the largest size */
    uint64_t rows;       /* that it uses; zero: taken as block_rows */
};

struct drps_store_config {
    const struct drps_io *io;
    uint64_t rows;
    size_t row_bytes; /* a multiple of 4 */
    drps_row_init init;
    void *init_ctx;

    unsigned open_steps; /* step s opens once all below s + 1 - open_steps are closed; at most
                            DRPS_STORE_OPEN_MOST, in pib 8; 0: 1 */

    /* stores on disk */
    const char *dir;       /* an existing empty folder for the store's files */
    uint64_t memory_bytes; /* for pools, engine caches and buffers together */

    size_t scan_bytes; /* of each row, what scan shows; what follows is undefined; 0: all */

    /* relay, and pib on engine `file` */
    uint64_t seek_bytes; /* that the disk would move in the time of one more request; 0: unknown */
    int no_uring;        /* 1: read and write by threads */

    /* relay */
    uint64_t epoch_steps;      /* for memory_need() before there are windows; 0: unknown */
    uint64_t buffer_bytes;     /* of memory_bytes, as of drps_relay_share; 0: as suits seek_bytes */
    void (*opened)(void *ctx); /* after step_ready() has said no: look again. Once, from the store's
                                  own thread, with no lock held; NULL: nobody asks */
    void *opened_ctx;
    const struct drps_window_source *windows; /* borrowed until close */
    size_t chunk_bytes; /* of requests, at most; 0: 16 seek_bytes, 256 KiB to 4 MiB */

    /* pib */
    const uint32_t
        *block_first; /* [blocks + 1] first row of each block, last = rows; borrowed until close */
    size_t blocks;
    const struct drps_timeline *timeline; /* borrowed until close */
    const struct drps_kv_ops *kv;
    int threads;                /* I/O threads; 0: as many as suit the engine */
    struct drps_step_size step; /* the largest; where unknown, one too large fails when reached */
    int prefetch_steps; /* steps in memory at a time, the open one included: 1 reads nothing ahead;
                           0: up to 8 */
    enum drps_evict_rule evict;
};

/*
 * The block pool's memory: units of some rows, of which a block takes as many as it needs, and
 * frames, one for each block in memory. A block comes in when there are units and a frame for it.
 */
struct drps_pool_shape {
    uint32_t unit_rows; /* a power of two: that at which all blocks together take least */
    uint32_t units, frames;
    uint64_t least_bytes; /* for the blocks of the largest step */
    uint64_t most_bytes;  /* for all blocks */
};

/* The shape of a pool that takes `bytes` at most, for rows and what is kept for units and frames.
 * block_first [blocks + 1], blocks > 0. */
void drps_pool_shape(const uint32_t *block_first, size_t blocks, size_t row_bytes,
                     const struct drps_step_size *step, uint64_t bytes,
                     struct drps_pool_shape *out);

/* Of what a block store needs at least, the part of its engine: caches and buffers. */
uint64_t drps_pib_engine_least(const struct drps_store_config *config);

struct drps_store_stats {
    struct drps_iostat io;        /* logical block or chunk I/O of the store */
    struct drps_kv_device device; /* block store, on an engine that says */
    uint64_t steps;               /* opened */
    uint64_t blocks_needed;       /* block uses over all steps */
    uint64_t blocks_hit;          /* of these: already in memory when the prefetcher looked */
    uint64_t blocks_created;      /* made in place, no read */
    uint64_t blocks_evicted;
    uint64_t stall_ns;           /* time that step_open() waited */
    uint64_t stalled_steps;      /* steps that waited at all */
    uint64_t pool_bytes;         /* memory that holds rows */
    struct drps_pool_shape pool; /* of the block pool */

    /* relay: rows, summed over windows as they were opened */
    uint64_t windows;
    uint64_t rows_kept, rows_arrived, rows_created; /* stayed in memory; read back; made in place */
    uint64_t rows_sent;                             /* of an epoch: written once and read once */
    uint64_t regrouped_bytes; /* of groups' streams: read and written once more */
    size_t chunk_bytes;       /* read by a request */
    size_t write_bytes;       /* written by a request, at most */
    uint64_t seek_bytes;      /* of the disk; 0: unknown */
    size_t tails;             /* unfinished chunks in memory, at most */
    uint32_t groups;          /* 0: a stream a window */
    char io_engine[16];
    int direct;          /* past the page cache */
    char io_remark[128]; /* why not as wished; empty: as wished */
};

/* What one window of the epoch cost, summed over epochs. */
struct drps_window_stats {
    uint64_t rows, kept, arrived, created;
    uint64_t read_bytes, written_bytes; /* of rows that arrived and that left */
    uint64_t stall_ns;                  /* training waited for it to open */
    uint64_t open_ns, close_ns;         /* the store's own thread was busy with it */
};

struct drps_store_ops {
    const char *name;

    /* Bytes of memory that this store needs at least, and would use at most, for a config
     * (memory_bytes ignored). */
    int (*memory_need)(const struct drps_store_config *config, uint64_t *least_out,
                       uint64_t *most_out, struct drps_err *err);
    int (*open)(const struct drps_store_config *config, struct drps_store **st_out,
                struct drps_err *err);

    /* ids [n] strictly increasing, borrowed until step_close or the next step_open. Waits for the
     * rows. One calling thread. -EAGAIN, with no text: not before an earlier step has closed (the
     * relay store: the step is two windows ahead). */
    int (*step_open)(struct drps_store *st, uint64_t step, const uint32_t *ids, size_t n,
                     struct drps_rows *rows_out, struct drps_err *err);
    int (*step_close)(struct drps_store *st, uint64_t step, int changed, struct drps_err *err);

    /* All rows in placed order, as of the last closed step; no step may be open. */
    int (*scan)(struct drps_store *st, drps_row_visit visit, void *ctx, struct drps_err *err);

    void (*stats)(struct drps_store *st, struct drps_store_stats *out);

    /* Stores that run windows: out [windows of an epoch], NULL else. */
    void (*window_stats)(struct drps_store *st, struct drps_window_stats *out);

    int by_slot; /* 1: `ids` of step_open are slots in the step's window, not placed ids */
    void (*close)(struct drps_store *st); /* NULL-safe; stops threads; discards what is in memory */

    /* 1: step_open() of the next step does not wait for the store's own thread; 0: it would, and
     * config.opened() comes when that has done what is waited for, or failed. By the thread that
     * opens steps. NULL: always 1. */
    int (*step_ready)(struct drps_store *st);
};

extern const struct drps_store_ops drps_store_resident;
extern const struct drps_store_ops drps_store_pib;
extern const struct drps_store_ops drps_store_relay;

#endif
