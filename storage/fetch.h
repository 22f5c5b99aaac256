/* The I/O threads of the block store: they share out a list of frames to write, read and create. */
#ifndef DRPS_FETCH_H
#define DRPS_FETCH_H

#include <pthread.h>
#include <stddef.h>

#include "storage/drps_store.h"
#include "storage/pool.h"

enum { DRPS_FETCH_THREADS_MAX = 64 };

struct drps_fetch {
    const struct drps_store_config *config; /* borrowed */
    const struct drps_pool *pool;           /* borrowed */
    struct drps_kv *kv;                     /* borrowed */
    size_t chunk_max;                       /* items handed out at a time, at most */
    int threads;                            /* the calling thread included */
    int started;
    pthread_t thread[DRPS_FETCH_THREADS_MAX];

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;  /* there may be items to take, or `stopping` */
    pthread_cond_t done;  /* the last busy thread has finished */
    int alive;            /* lock and conditions exist */
    int stopping;
    const struct drps_fetch_item *items; /* borrowed for one run */
    size_t n, next, chunk;
    int busy; /* threads inside a chunk */
    struct drps_err failure;
    struct drps_iostat io;
};

/* `f` may be stopped whatever the result. */
int drps_fetch_start(struct drps_fetch *f, const struct drps_store_config *config,
                     const struct drps_pool *pool, struct drps_kv *kv, struct drps_err *err);

/*
 * Work through n items and return when all are done, the calling thread helping. Every write is
 * visible to the engine's reads by then. The first error ends the run; DRPS_E_INTERRUPTED after
 * drps_fetch_cancel().
 */
int drps_fetch_run(struct drps_fetch *f, const struct drps_fetch_item *items, size_t n,
                   struct drps_err *err);

/* Let this and all later runs end soon. Any thread. */
void drps_fetch_cancel(struct drps_fetch *f);

void drps_fetch_stats(struct drps_fetch *f, struct drps_iostat *out); /* any thread */

/* Ends the threads; no run may be under way. */
void drps_fetch_stop(struct drps_fetch *f);

#endif
