/*
 * The block store: rows in blocks (PIBs), one value a block in a key-value engine (storage/kv), and
 * a block pool that knows which step needs each block next. Private to storage/pib/.
 *
 * Three parties share its state:
 *
 *   engine's thread   opens and closes steps, scans           pib.c, pib_scan.c
 *   prefetch thread   decides what comes and what goes        prefetch.c, pool.c
 *   I/O threads       move bytes while it waits for them      fetch.c
 *
 * evict.c and next_use.c choose which block leaves the pool; pool_shape.c and pib_memory.c share
 * out the memory.
 *
 * Steps pass through a ring of records. The prefetch thread fills a record and publishes it
 * (`ready`), the engine's thread uses it between open and close and gives it back (`closed`: all
 * steps below), the prefetch thread releases its pins
 * (`released`) and fills it anew. released <= closed <= opened <= ready <= released + depth.
 *
 * With config.open_steps several steps are open between closed and opened, fewer than `depth`. The
 * pool has room for as many of the largest together, so the blocks of the next one to open never
 * wait for one of these to close.
 */
#ifndef DRPS_STORAGE_PIB_PIB_INTERNAL_H
#define DRPS_STORAGE_PIB_PIB_INTERNAL_H

#include <pthread.h>

#include "storage/drps_marks.h"
#include "storage/drps_open_steps.h"
#include "storage/kv/drps_kv.h"
#include "storage/pib/drps_pool.h"
#include "storage/pib/fetch.h"

enum { DRPS_PIB_DEPTH = 8 };

struct drps_pib_step {
    uint32_t *blocks;  /* own [n] increasing */
    uint32_t *entries; /* own [n] */
    size_t n;
    size_t blocks_cap, entries_cap;
    int changed; /* set by close */
};

struct drps_pib {
    const struct drps_store_ops *ops;
    struct drps_store_config config;
    struct drps_timeline timeline;
    struct drps_kv *kv;
    struct drps_pool pool;
    struct drps_fetch fetch;
    struct drps_pib_step ring[DRPS_PIB_DEPTH];
    uint64_t depth;
    pthread_t thread;
    int started;

    /* engine's thread only */
    struct drps_open_steps steps;
    struct drps_marks marks;
    uint32_t *index; /* own */
    size_t index_cap;

    /* prefetch thread only */
    uint64_t released;
    size_t n_missing, missing_units; /* blocks of the step that are not in the pool */
    uint64_t *next_use;              /* own: [n_missing] */
    struct drps_fetch_item *items;   /* own: of one run of the I/O threads */
    size_t items_cap, next_use_cap;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t news;  /* for the engine's thread: ready, idle or failure changed */
    pthread_cond_t wake;  /* for the prefetch thread: closed, scanning or stopping changed */
    int alive;            /* lock and conditions exist */
    uint64_t ready, closed;
    int idle;     /* the prefetch thread waits or has ended: pool and engine stand still */
    int scanning; /* it must go on to do so */
    int stopping;
    struct drps_err failure; /* the first error of the prefetch or an I/O thread */
    struct drps_store_stats stats;
};

/* ---- prefetch.c ---- */

int drps_prefetch_start(struct drps_pib *st, struct drps_err *err);
void drps_prefetch_stop(struct drps_pib *st);

/* ---- pib_memory.c: how config.memory_bytes is split ---- */

struct drps_pib_split {
    struct drps_kv_options engine; /* memory_bytes: all that it may come to use */
    struct drps_pool_shape pool;
};
int drps_pib_split_memory(const struct drps_store_config *config, struct drps_pib_split *split_out,
                          struct drps_err *err);
int drps_pib_memory_need(const struct drps_store_config *config, uint64_t *least_out,
                         uint64_t *most_out, struct drps_err *err);

/* ---- pib_scan.c ---- */

/* Visit all rows, or those that have changed. st->lock is free, and the prefetch thread stands
 * still. */
int drps_pib_scan_rows(struct drps_pib *st, int changed, drps_row_visit visit, void *ctx,
                       struct drps_err *err);

#endif
