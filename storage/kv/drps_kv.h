/*
 * Key-value engines under the block store: one value a block, keys are block numbers.
 *
 * Keys are stored big-endian, so that the engine's order is the number's. Values are opaque bytes.
 * Each engine is one table of functions in this folder; nothing outside it includes a library's
 * header:
 *
 *     rocksdb.c, leveldb.c  databases, for training and for models that are served; mapped.c keeps
 *                           the kernel from reading too far ahead in LevelDB's files
 *     blockfile*.c          the engine `file`, for training alone: asynchronous runs of one file,
 *                           with extents.c and free_sectors.c to know where blocks lie
 *     kv.c, kv_shared.c     the list of engines, and what they share
 */
#ifndef DRPS_STORAGE_KV_KV_H
#define DRPS_STORAGE_KV_KV_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"
#include "base/drps_io.h"
#include "base/folder/drps_owned.h"
#include "storage/drps_iostat.h"

struct drps_kv; /* opaque: each engine begins its own struct with `const struct drps_kv_ops *ops` */

/* How to open a database. Zero is the default of every member. */
struct drps_kv_options {
    uint64_t memory_bytes; /* what the engine may use for its own buffers and caches; 0: 32 MiB; a
                              bound to aim at */
    size_t value_bytes;    /* typical value size, for tuning; 0: 4096 */
    int create;            /* 1: the folder must not hold a database yet; 0: it must */
    int read_only; /* 1: nothing is written, not even a log or a lock, where the engine can */
    /* What a training store knows of its blocks and its disk; engine `file` only. Borrowed until
     * close. */
    const struct drps_io *io;
    const uint32_t *block_first; /* [blocks + 1] first row of each block: value b has the bytes of
                                    rows block_first[b] to block_first[b + 1] - 1 */
    size_t blocks, row_bytes;
    uint64_t gap_bytes; /* reads go through gaps of at most so many; 0: 8 KiB */
    int no_uring;       /* 1: read and write by threads */
    int bulk; /* 1: a model, for few, large files: after open with `create`, values are put once in
                 increasing order of keys, then sync() is called once; what is put shows only then
               */
};

struct drps_kv_stats {
    uint64_t gets, puts;           /* values */
    uint64_t get_bytes, put_bytes; /* value bytes */
    uint64_t get_calls, put_calls; /* calls of get_many and put_many */
    struct drps_kv_device device;
};

/* Receives one value, borrowed until it returns. Non-zero ends the scan. */
typedef int (*drps_kv_visit)(void *ctx, uint32_t key, const void *value, size_t bytes,
                             struct drps_err *err);

struct drps_kv_ops {
    const char *name; /* "rocksdb", "leveldb", "file" */

    int training_only; /* 1: its values are gone when it is closed: no model can be kept in it */

    /* 1: get_many and put_many sort out requests by themselves: they are best called by one thread,
     * with all keys that there are */
    int one_thread;

    /* Least and most memory that is of use; options->memory_bytes is ignored. */
    void (*memory_need)(const struct drps_kv_options *options, uint64_t *least_out,
                        uint64_t *most_out);

    /* Open the database in folder `path` (the parent folder exists). */
    int (*open)(const char *path, const struct drps_kv_options *options, struct drps_kv **kv_out,
                struct drps_err *err);

    /*
     * Read n values. keys strictly increasing; values_out[i] points to caller's room of
     * value_bytes[i] bytes. DRPS_E_NOT_FOUND names the missing key; DRPS_E_CORRUPT a value of
     * another size or a failed checksum. Called from several threads at once; blocks.
     */
    int (*get_many)(struct drps_kv *kv, const uint32_t *keys, size_t n, void *const *values_out,
                    const size_t *value_bytes, struct drps_err *err);

    /* Write n values, all or none, visible to every later get. Several threads; blocks; borrowed
     * until return. */
    int (*put_many)(struct drps_kv *kv, const uint32_t *keys, size_t n, const void *const *values,
                    const size_t *value_bytes, struct drps_err *err);

    /* Visit the values of keys first to end - 1 in key order, reading little else; a non-zero
     * result of `visit` ends the scan and is returned. */
    int (*scan)(struct drps_kv *kv, uint32_t first, uint32_t end, drps_kv_visit visit, void *ctx,
                struct drps_err *err);

    /* Make everything written so far durable, and with options.bulk also compact. */
    int (*sync)(struct drps_kv *kv, struct drps_err *err);

    void (*stats)(const struct drps_kv *kv, struct drps_kv_stats *out); /* any thread */
    void (*close)(struct drps_kv *kv); /* NULL-safe; no call under way */

    /* The block pool above it is to have room for the blocks of so many of the largest steps, at
     * least, or else reads take nearly all of the time; 0: 1. */
    unsigned pool_steps;
    /* Disk that a database of so many bytes of values takes at most while options.bulk writes it.
     * NULL: training_only. */
    uint64_t (*bulk_bytes)(uint64_t value_bytes);
};

/* What a database's folder may hold: the files of all engines, also of those that are not in this
 * build. */
extern const struct drps_owned drps_kv_owned[];

/* Returns the engines of this build, NULL-terminated: databases, the preferred one first, then
 * those that are for training only. */
const struct drps_kv_ops *const *drps_kv_engines(void);

/* By name; NULL when unknown or not in this build. */
const struct drps_kv_ops *drps_kv_find(const char *name);

#endif
