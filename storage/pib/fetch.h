/*
 * The I/O threads of the block store, which share a list of blocks to write, to read or to create.
 * One thread serves an engine that sorts out requests itself. Private to storage/pib/.
 */
#ifndef DRPS_STORAGE_PIB_FETCH_H
#define DRPS_STORAGE_PIB_FETCH_H

#include <pthread.h>
#include <stddef.h>

#include "storage/drps_store.h"
#include "storage/pib/drps_pool.h"

enum { DRPS_FETCH_THREADS_MAX = 64 };

enum drps_fetch_what { DRPS_FETCH_WRITE, DRPS_FETCH_READ, DRPS_FETCH_CREATE };

/* Work for one block, between its units and the engine. */
struct drps_fetch_item {
    uint32_t block;
    uint32_t unit; /* the block's first */
    enum drps_fetch_what what;
};

struct drps_fetch_room; /* opaque: of one thread, for the arguments of an engine's call */

struct drps_fetch {
    const struct drps_store_config *config; /* borrowed */
    const struct drps_pool *pool;           /* borrowed */
    struct drps_kv *kv;                     /* borrowed */
    size_t chunk_least, chunk_most;         /* items handed out at a time */
    int threads;                            /* the calling thread included */
    int started;
    pthread_t thread[DRPS_FETCH_THREADS_MAX];
    struct drps_fetch_room *room; /* own: [threads] */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;  /* there may be items to take, or `stopping` */
    pthread_cond_t done;  /* the last busy thread has finished */
    int alive;            /* lock and conditions exist */
    int stopping;
    const struct drps_fetch_item *items; /* borrowed for one run */
    size_t n, next, chunk;
    int busy;        /* threads inside a chunk */
    int rooms_taken; /* each thread takes one when it starts */
    struct drps_err failure;
    struct drps_iostat io;
};

/* Returns the memory of the threads, for blocks of at most max_bytes each. */
uint64_t drps_fetch_bytes(const struct drps_store_config *config, size_t max_bytes);

/* `f` may be stopped whatever the result. */
int drps_fetch_start(struct drps_fetch *f, const struct drps_store_config *config,
                     const struct drps_pool *pool, struct drps_kv *kv, struct drps_err *err);

/*
 * Work through n items, blocks increasing, and return when all are done, the calling thread
 * helping. Every write is visible to the engine's reads by then. The first error ends the run;
 * DRPS_E_INTERRUPTED after drps_fetch_cancel().
 */
int drps_fetch_run(struct drps_fetch *f, const struct drps_fetch_item *items, size_t n,
                   struct drps_err *err);

/* Let this and all later runs end soon. Any thread. */
void drps_fetch_cancel(struct drps_fetch *f);

void drps_fetch_stats(struct drps_fetch *f, struct drps_iostat *out); /* any thread */

/* End the threads; no run may be under way. */
void drps_fetch_stop(struct drps_fetch *f);

#endif
