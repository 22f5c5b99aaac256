/*
 * The block file: what blockfile.c, which opens it and answers calls, and blockfile_runs.c, which
 * moves the bytes, share. Private to these.
 */
#ifndef DRPS_KV_BLOCKFILE_H
#define DRPS_KV_BLOCKFILE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/io/drps_aio.h"
#include "storage/kv/drps_extents.h"
#include "storage/kv/kv_internal.h"

enum { DRPS_BLOCKFILE_DEPTH = 128 }; /* runs under way, at most */

/* A run under way. */
struct drps_blockfile_run {
    struct drps_run run;
    size_t at;  /* where its bytes are in the buffers */
    int reads;  /* 1: it is being read; 0: it is being written */
    int writes; /* 1: it is to be written, maybe after a read */
    int done;   /* 1: nothing is left to do, but older runs of the ring may be under way */
};

struct drps_blockfile {
    const struct drps_kv_ops *ops;
    char *path;
    struct drps_extents extents;
    uint64_t gap_bytes;
    uint64_t *stored; /* own: bit b: block b has a value in the file */
    uint32_t *sum;    /* own: [pages] checksum of each page that has a stored block */
    struct drps_aio *aio;
    char *buffers; /* own: a ring of runs, given out and taken back in order */
    size_t buffers_bytes;
    size_t ring_at; /* where the next run begins */
    struct drps_blockfile_run ring[DRPS_BLOCKFILE_DEPTH];
    unsigned first, n; /* of the ring: runs under way or waiting for older ones */
    uint64_t *order;   /* own: [SORT_KEYS] of the keys being read */
    struct drps_aio_op op[DRPS_BLOCKFILE_DEPTH]; /* to submit */
    size_t ops_n;
    struct drps_kv_counters counters;
    pthread_mutex_t lock; /* one call at a time */
    int alive;            /* the lock exists */
};

/* One call of get_many or put_many. */
struct drps_blockfile_call {
    const uint32_t *keys;
    size_t n;
    size_t next;           /* key of the next run to plan */
    struct drps_run run;   /* planned, and waiting for room, unless it has no keys */
    const uint64_t *order; /* [n] of a read: see drps_extents_sort() */
    int write;
    void *const *out;      /* [n] of a read */
    const void *const *in; /* [n] of a write */
};

static inline int drps_blockfile_has(const struct drps_blockfile *kv, uint32_t block)
{
    return (int)(kv->stored[block >> 6] >> (block & 63) & 1);
}

/* Returns the bytes of the rows of a block. */
static inline size_t drps_blockfile_value_bytes(const struct drps_blockfile *kv, uint32_t key)
{
    return (size_t)drps_extents_between(&kv->extents, key, key + 1);
}

/* Move all values of the call. A failure of a write may have written some of them. Lock held. */
DRPS_MUST_CHECK
int drps_blockfile_move(struct drps_blockfile *kv, struct drps_blockfile_call *c,
                        struct drps_err *err);

#endif
