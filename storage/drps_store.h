/*
 * Row stores: where parameter rows live while a plan is executed.
 *
 * A row is `row_bytes` bytes: dim float32 parameters, then the optimizer's float32 state. Rows are
 * known by their placed id (0 .. rows - 1). Execution is a sequence of steps: one batch each, the
 * training batches of an epoch followed by its evaluation batches, epoch after epoch. For one step
 * a store makes the step's rows addressable:
 *
 *     ops->step_open(st, step, ids, n, &rows, err)      drps_row_at(&rows, i) is row ids[i]
 *     ... read and, in training steps, change the rows ...
 *     ops->step_close(st, step, changed, err)
 *
 * Steps are opened in order, and closed before the next one opens; with config.open_steps several
 * may be open, to be closed in any order. Which rows the *next* steps need is known from the plan;
 * stores on disk are told (drps_future.h) and use it to read ahead and to write back. All stores
 * give the same bytes for the same steps: that is what the conformance suite checks.
 *
 * There are four kinds, one a folder:
 *
 *     resident.c  all rows are in memory
 *     device/     rows are in the memory of a device: drps_rows.base is an address there, which the
 *                 host cannot read; or those of two windows are, and all in a store below
 *     relay/      rows of two windows are in memory, and others that are used soon; the rest in
 *                 runs on disk, sorted by the window that needs them next; over io/
 *     pib/        blocks of rows, in a pool and in a key-value engine; over kv/
 */
#ifndef DRPS_STORE_H
#define DRPS_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "storage/drps_future.h"
#include "storage/drps_iostat.h"

struct drps_device_use;
struct drps_store; /* opaque: each store begins its own struct with `const struct drps_store_ops
                    *ops` */

/* The rows of one open step. */
struct drps_rows {
    char *base;            /* borrowed until the step closes */
    size_t stride;         /* bytes from one frame to the next */
    const uint32_t *index; /* [n] frame of each row; borrowed until the step closes or the next one
                              opens */
    size_t n;
};

static inline void *drps_row_at(const struct drps_rows *rows, size_t i)
{
    return rows->base + (size_t)rows->index[i] * rows->stride;
}

enum { DRPS_STORE_OPEN_MOST = 64 }; /* steps open at a time */

/* Fill n fresh rows, ids first .. first + n - 1, row_bytes apart. Pure: same ids, same bytes. Any
 * thread. Returns 0 or an error, which comes out of open(), step_open() or scan(). */
typedef int (*drps_row_init)(void *ctx, uint64_t first, size_t n, void *rows_out,
                             struct drps_err *err);

/* Receives all rows in placed order, in runs. Non-zero ends the scan. */
typedef int (*drps_row_visit)(void *ctx, uint64_t first, size_t n, const void *rows,
                              struct drps_err *err);

/* Which block a full block pool gives up; storage/pib/drps_evict.h explains the rules. */
enum drps_evict_rule { DRPS_EVICT_FARTHEST, DRPS_EVICT_CLOCK, DRPS_EVICT_LRU };

/* The most that one step needs of a block store; zero: unknown. */
struct drps_step_size {
    uint64_t blocks;
    uint64_t block_rows; /* of these blocks together, the rows that it does not use included; zero:
                            taken as those of as many blocks of the largest size */
    uint64_t rows;       /* that it uses; zero: taken as block_rows */
};

/* What a store is opened with. Zero where a member has no use for the store, or 0 is said to have a
 * meaning. */
struct drps_store_config {
    const struct drps_io *io;
    uint64_t rows;
    size_t row_bytes; /* a multiple of 4 */
    drps_row_init init;
    void *init_ctx;

    unsigned open_steps; /* step s opens once all below s + 1 - open_steps are closed; at most
                            DRPS_STORE_OPEN_MOST, in pib 8; 0: 1 */
    int scans_open;      /* 1: scan() may be called while steps are open, whose rows nobody touches
                            meanwhile; resident and relay */
    uint64_t mark_rows;  /* of a range for scan_changed(), which takes a bit of memory for each
                            range and open step; 0: that is not called */

    /* ---- device ---- */
    const struct drps_device_use *device; /* borrowed until close */
    uint64_t device_frames; /* tiered: rows that the device has room for; with `windows`. relay,
                               where it is below such a store: two windows have no more rows */

    /* ---- Stores on disk ---- */
    const char *dir;       /* an existing empty folder for the store's files */
    uint64_t memory_bytes; /* for rows, an engine's caches, buffers and tables together */

    size_t scan_bytes; /* of each row, what scan() may show in room that is set aside when the store
                          opens; 0: all */

    /* ---- relay, and pib on engine `file` ---- */
    uint64_t seek_bytes; /* that the disk would move in the time of one more request; 0: unknown */
    int no_uring;        /* 1: read and write by threads */

    /* ---- relay ---- */
    uint64_t epoch_steps;  /* for memory_need() before there are windows; 0: unknown */
    uint64_t first_step;   /* of the epoch, below its steps: step 0 of this store. Rows come from
                              init as they are before it */
    const char *saved_dir; /* NULL, or a folder that save() has filled: go on from it, with the init
                              of the store that was saved, for rows that no step has used yet, and
                              the rest of config as it was. first_step is the one before which it
                              was saved; `epochs` may be any. See forget() */
    uint64_t buffer_bytes; /* of memory_bytes, as of drps_relay_share; 0: as suits seek_bytes */
    void (*opened)(void *ctx); /* after step_ready() has said no: look again. Once, from the store's
                                  own thread, with no lock held; NULL: nobody asks */
    void *opened_ctx;
    const struct drps_window_source *windows; /* borrowed until close */
    size_t chunk_bytes; /* of chunks, at most; 0: 16 seek_bytes, 256 KiB to 4 MiB */

    /* ---- pib ---- */
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
 * entries, one for each block in memory. A block comes in when there are units and an entry for it.
 */
struct drps_pool_shape {
    uint32_t unit_rows; /* a power of two: that at which all blocks together take least */
    uint32_t units, entries;
    uint64_t least_bytes; /* for the blocks of the largest step */
    uint64_t most_bytes;  /* for all blocks */
};

/* What a tiered store has moved between the memory of a device and the process's. */
struct drps_tier_stats {
    uint64_t device_bytes; /* of the device's memory, that hold rows */
    uint64_t rows_kept;    /* of windows, summed as they were fetched: were there already */
    uint64_t rows_in, rows_out;
};

/* What a store has done since it was opened. */
struct drps_store_stats {
    struct drps_iostat io;        /* logical block or chunk I/O of the store */
    struct drps_kv_device device; /* block store, on an engine that says */
    uint64_t steps;               /* opened */
    uint64_t blocks_needed;       /* block uses over all steps */
    uint64_t blocks_hit;          /* of these: already in memory when the prefetch thread looked */
    uint64_t blocks_created;      /* made in memory, without a read */
    uint64_t blocks_evicted;
    uint64_t stall_ns;      /* time that step_open() waited */
    uint64_t stalled_steps; /* steps that waited at all */
    uint64_t pool_bytes;    /* memory that holds rows */
    /* Of pib, and of relay: steps, or windows, whose rows were in memory before they were come to.
     */
    uint64_t steps_ahead, windows_ahead;
    struct drps_tier_stats tiers; /* tiered */
    struct drps_pool_shape pool;  /* pib's */

    /* ---- relay; rows are summed over windows as they were opened ---- */
    uint64_t windows;
    uint64_t rows_kept, rows_arrived,
        rows_created;      /* stayed in memory; read back; made in memory */
    uint64_t rows_sent;    /* of an epoch: written once and read once */
    uint64_t merged_bytes; /* of rows: read and written once more */
    size_t chunk_bytes;    /* read by a request */
    size_t write_bytes;    /* written by a request, at most */
    uint64_t seek_bytes;   /* of the disk; 0: unknown */
    uint32_t runs;         /* on disk at a time, at most */
    char io_engine[16];
    int direct;          /* past the page cache */
    char io_remark[128]; /* why not as wished; empty: as wished */
};

/* What one window of the epoch cost, summed over epochs; rows as in drps_store_stats. */
struct drps_window_stats {
    uint64_t rows, kept, arrived, created;
    uint64_t read_bytes, written_bytes; /* of rows that arrived and that left */
    uint64_t stall_ns;                  /* training waited for it to open */
    uint64_t open_ns, close_ns;         /* the store's own thread was busy with it */
};

/* Saves of a store that was opened from config.saved_dir, for forget(). */
enum {
    DRPS_STORE_RESTORED = 0, /* that folder */
    DRPS_STORE_OLDER = 1     /* all that were not forgotten when it was saved */
};

/* A kind of store. */
struct drps_store_ops {
    const char *name; /* "resident", "relay", "pib", ... */

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

    /* Give the rows of an open step back. changed: 1 when the step may have changed them. */
    int (*step_close)(struct drps_store *st, uint64_t step, int changed, struct drps_err *err);

    /* The first `bytes` of all rows in placed order, as of the last closed step; what follows in a
     * row is undefined. 0, or more than a row: all of it. No step may be open. Steps go on after
     * it, and after most failures of it: of `visit`, of init, or -ENOSPC where config.scan_bytes is
     * less than `bytes` and the disk is full. */
    int (*scan)(struct drps_store *st, size_t bytes, drps_row_visit visit, void *ctx,
                struct drps_err *err);

    /* scan() of whole rows, but only of ranges of config.mark_rows rows, the last one shorter, in
     * which a step has changed rows since the store was opened or forget_changes() was called last.
     * Little else is read. NULL where a store cannot tell. */
    int (*scan_changed)(struct drps_store *st, drps_row_visit visit, void *ctx,
                        struct drps_err *err);

    /* What scan() or scan_changed() would show now is kept elsewhere. No step may be open. NULL
     * with scan_changed(). */
    void (*forget_changes)(struct drps_store *st);

    /*
     * Save the store as of the last closed step, so that another one can go on from
     * config.saved_dir = dir: what is in memory is written, what is on disk stays where it is.
     * `dir` is an empty folder. What is written to its files is synced by the caller, which does
     * not know the folder as saved before that. No step may be open. Steps go on after it, and
     * after failures but those of reading and writing the store's own files: -ENOTSUP  the store
     * cannot be saved into that folder: scan instead -ENOSPC   for the files, or as the store's
     * file needs room for what stays where it is The folder is of no use then. *save_out is a
     * number for forget(); eight saves may be there at a time. NULL where a store has no save().
     */
    int (*save)(struct drps_store *st, const char *dir, unsigned *save_out, struct drps_err *err);

    /* Nobody will go on from that save, once: what it names may be overwritten. Its folder was
     * removed, or never became durable. NULL with save(). */
    void (*forget)(struct drps_store *st, unsigned save);

    void (*stats)(struct drps_store *st, struct drps_store_stats *out);

    /* out [windows of an epoch]; NULL where a store has no windows. */
    void (*window_stats)(struct drps_store *st, struct drps_window_stats *out);

    int by_slot; /* 1: `ids` of step_open are slots of the step's window, not placed ids */
    void (*close)(struct drps_store *st); /* NULL-safe; stops threads; discards what is in memory */

    /* Returns 1 when step_open() of the next step does not wait for the store's own thread. Returns
     * 0 when it would; config.opened() is called when that thread has done what is waited for, or
     * has failed. Called by the thread that opens steps. NULL: always 1. */
    int (*step_ready)(struct drps_store *st);
};

extern const struct drps_store_ops drps_store_resident;
extern const struct drps_store_ops drps_store_device;
extern const struct drps_store_ops drps_store_tiered;      /* over resident */
extern const struct drps_store_ops drps_store_tiered_disk; /* over relay */
extern const struct drps_store_ops drps_store_pib;
extern const struct drps_store_ops drps_store_relay;

#endif
