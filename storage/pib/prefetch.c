/*
 * The prefetch thread: walks the timeline ahead of the open step. For each step it pins the blocks
 * that are in the pool, makes room for the others by evicting what is needed furthest ahead, lets
 * the I/O threads bring them in, and publishes the step.
 *
 * It cannot deadlock: it only ever waits for a step before this one to be closed, those are all
 * published, and once they are released nothing but this step holds pins, which open() has made
 * sure fits.
 *
 * What is evicted is written before anything comes in, in a run of the I/O threads of its own: the
 * memory can be used again, and a block that is needed again is read as it was last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/pib/pib_internal.h"

/* Unpin the blocks of closed steps. `now`: the step being prefetched. */
static int release_closed(struct drps_pib *st, uint64_t closed, uint64_t now, struct drps_err *err)
{
    for (; st->released < closed; st->released++) {
        const struct drps_pib_step *rec = &st->ring[st->released % st->depth];
        for (size_t i = 0; i < rec->n; i++)
            if (drps_pool_unpin(&st->pool, rec->entries[i], rec->changed, now) < 0)
                return drps_err_set(err, -ENOMEM, "eviction queue of the block pool");
    }
    return 0;
}

/* Wait until steps [0, least) are closed and no scan is under way, then release what is closed. */
static int wait_closed(struct drps_pib *st, uint64_t least, uint64_t now, struct drps_err *err)
{
    (void)pthread_mutex_lock(&st->lock);
    while (!st->stopping && (st->scanning || st->closed < least)) {
        st->idle = 1;
        (void)pthread_cond_broadcast(&st->news);
        (void)pthread_cond_wait(&st->wake, &st->lock);
    }
    st->idle = 0;
    int stopping = st->stopping;
    uint64_t closed = st->closed;
    (void)pthread_mutex_unlock(&st->lock);
    if (stopping) return drps_err_set(err, DRPS_E_INTERRUPTED, "the row store is closing");
    return release_closed(st, closed, now, err);
}

static int check_blocks(const struct drps_pib *st, uint64_t step, const struct drps_step_blocks *b,
                        struct drps_err *err)
{
    for (size_t i = 0; i < b->n; i++) {
        if (b->blocks[i] >= st->config.blocks || (i && b->blocks[i] <= b->blocks[i - 1]))
            return drps_err_set(err, DRPS_E_CORRUPT,
                                "timeline: step %llu lists block %u after block %u of %zu",
                                (unsigned long long)step, b->blocks[i], i ? b->blocks[i - 1] : 0,
                                st->config.blocks);
        if (b->next_use[i] <= step)
            return drps_err_set(
                err, DRPS_E_CORRUPT, "timeline: step %llu gives block %u the next use %llu",
                (unsigned long long)step, b->blocks[i], (unsigned long long)b->next_use[i]);
    }
    uint64_t units = 0;
    for (size_t i = 0; i < b->n; i++)
        units += drps_pool_block_units(&st->pool, b->blocks[i]);
    if (b->n > st->pool.entries || units > st->pool.units)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "step %llu needs %zu blocks of %llu rows at a time, the block pool has "
                            "room for %u blocks of %llu rows",
                            (unsigned long long)step, b->n,
                            (unsigned long long)units << st->pool.unit_shift, st->pool.entries,
                            (unsigned long long)st->pool.units << st->pool.unit_shift);
    return 0;
}

static int reserve(struct drps_pib *st, struct drps_pib_step *rec, size_t n)
{
    int rc = drps_array_reserve(&rec->blocks, &rec->blocks_cap, n, sizeof(*rec->blocks));
    if (!rc) rc = drps_array_reserve(&rec->entries, &rec->entries_cap, n, sizeof(*rec->entries));
    if (!rc) rc = drps_array_reserve(&st->next_use, &st->next_use_cap, n, sizeof(*st->next_use));
    return rc;
}

/* Fill the step's record: pin the blocks that are in the pool, and count the others and their
 * units. */
static int pin_present(struct drps_pib *st, uint64_t step, struct drps_pib_step *rec,
                       struct drps_err *err)
{
    struct drps_step_blocks b = {0};
    int rc = st->timeline.step_blocks(st->timeline.ctx, step, &b, err);
    if (!rc) rc = check_blocks(st, step, &b, err);
    if (rc < 0) return rc;
    if (reserve(st, rec, b.n) < 0)
        return drps_err_set(err, -ENOMEM, "record of step %llu", (unsigned long long)step);
    st->n_missing = st->missing_units = 0;
    for (size_t i = 0; i < b.n; i++) {
        rec->blocks[i] = b.blocks[i];
        rec->entries[i] = drps_pool_pin(&st->pool, b.blocks[i], b.next_use[i]);
        if (rec->entries[i] != DRPS_POOL_NONE) continue;
        st->next_use[st->n_missing++] = b.next_use[i];
        st->missing_units += drps_pool_block_units(&st->pool, b.blocks[i]);
    }
    rec->n = b.n;
    rec->changed = 0;
    return 0;
}

/*
 * Whether the missing blocks may come in now. A step that may open now takes what it needs; one
 * further ahead leaves a quarter of the pool to blocks that stay, as reading ahead would else evict
 * blocks that are about to be used.
 */
static int has_room(const struct drps_pib *st, uint64_t step)
{
    const struct drps_pool *pool = &st->pool;
    const int next = step - st->released < st->steps.span; /* set before this thread began */
    const uint32_t entries = next ? pool->entries : pool->entries - pool->entries / 4;
    const uint32_t units = next ? pool->units : pool->units - pool->units / 4;
    return pool->pinned + st->n_missing <= entries &&
           pool->pinned_units + st->missing_units <= units;
}

static int by_block(const void *a, const void *b)
{
    const struct drps_fetch_item *x = a, *y = b;
    return x->block < y->block ? -1 : x->block > y->block;
}

/* Make room and write what is newer in the pool than in the engine; in the order of blocks, so that
 * what is written together can be read together. */
static int evict(struct drps_pib *st, uint64_t step, size_t *evicted_out, struct drps_err *err)
{
    struct drps_pool *pool = &st->pool;
    const size_t evicted = drps_pool_evict(pool, st->n_missing, st->missing_units, step);
    size_t n = 0;
    *evicted_out = evicted;
    if (drps_array_reserve(&st->items, &st->items_cap, evicted, sizeof(*st->items)) < 0)
        return drps_err_set(err, -ENOMEM, "%zu blocks to give up", evicted);
    for (size_t i = 0; i < evicted; i++) {
        const struct drps_pool_entry *entry =
            &pool->entry[pool->spare[pool->n_spare - evicted + i]];
        if (!entry->dirty) continue;
        st->items[n++] = (struct drps_fetch_item){
            .block = entry->block, .unit = entry->unit, .what = DRPS_FETCH_WRITE};
        drps_pool_set_stored(pool, entry->block);
    }
    if (n) qsort(st->items, n, sizeof(*st->items), by_block);
    return drps_fetch_run(&st->fetch, st->items, n, err);
}

/* Bring in the blocks that the step misses. */
static int bring(struct drps_pib *st, struct drps_pib_step *rec, size_t *created_out,
                 struct drps_err *err)
{
    struct drps_pool *pool = &st->pool;
    size_t n = 0;
    *created_out = 0;
    if (drps_array_reserve(&st->items, &st->items_cap, st->n_missing, sizeof(*st->items)) < 0)
        return drps_err_set(err, -ENOMEM, "%zu blocks to read", st->n_missing);
    for (size_t i = 0; i < rec->n; i++) {
        if (rec->entries[i] != DRPS_POOL_NONE) continue;
        const uint32_t block = rec->blocks[i];
        const int stored = drps_pool_is_stored(pool, block);
        rec->entries[i] = drps_pool_admit(pool, block, st->next_use[n]);
        st->items[n++] =
            (struct drps_fetch_item){.block = block,
                                     .unit = pool->entry[rec->entries[i]].unit,
                                     .what = stored ? DRPS_FETCH_READ : DRPS_FETCH_CREATE};
        *created_out += !stored;
    }
    return drps_fetch_run(&st->fetch, st->items, n, err);
}

static void publish(struct drps_pib *st, uint64_t step, const struct drps_pib_step *rec,
                    size_t created, size_t evicted)
{
    (void)pthread_mutex_lock(&st->lock);
    st->stats.blocks_needed += rec->n;
    st->stats.blocks_hit += rec->n - st->n_missing;
    st->stats.blocks_created += created;
    st->stats.blocks_evicted += evicted;
    st->ready = step + 1;
    (void)pthread_cond_broadcast(&st->news);
    (void)pthread_mutex_unlock(&st->lock);
}

static int prefetch_step(struct drps_pib *st, uint64_t step, struct drps_err *err)
{
    struct drps_pib_step *rec = &st->ring[step % st->depth];
    size_t created = 0, evicted = 0;
    int rc = wait_closed(st, step + 1 > st->depth ? step + 1 - st->depth : 0, step, err);
    if (!rc) rc = pin_present(st, step, rec, err);
    while (!rc && !has_room(st, step))
        rc = wait_closed(st, st->released + 1, step, err);
    if (!rc) rc = evict(st, step, &evicted, err);
    if (!rc) rc = bring(st, rec, &created, err);
    if (!rc) publish(st, step, rec, created, evicted);
    return rc;
}

static void *thread_main(void *arg)
{
    struct drps_pib *st = arg;
    struct drps_err err = DRPS_ERR_INIT;
    int rc = 0;
    for (uint64_t step = 0; !rc && step < st->timeline.steps; step++)
        rc = prefetch_step(st, step, &err);
    (void)pthread_mutex_lock(&st->lock);
    if (rc)
        (void)drps_err_set(&st->failure, rc, "%s",
                           err.code ? err.text : "the timeline ended early");
    st->idle = 1;
    (void)pthread_cond_broadcast(&st->news);
    (void)pthread_mutex_unlock(&st->lock);
    return NULL;
}

int drps_prefetch_start(struct drps_pib *st, struct drps_err *err)
{
    int rc = pthread_create(&st->thread, NULL, thread_main, st);
    if (rc) return drps_err_set(err, -rc, "start the prefetch thread");
    st->started = 1;
    return 0;
}

void drps_prefetch_stop(struct drps_pib *st)
{
    if (!st->started) return;
    (void)pthread_mutex_lock(&st->lock);
    st->stopping = 1;
    (void)pthread_cond_broadcast(&st->wake);
    (void)pthread_mutex_unlock(&st->lock);
    drps_fetch_cancel(&st->fetch);        /* it may be in the middle of a run */
    (void)pthread_join(st->thread, NULL); /* cannot fail for a thread of ours */
    st->started = 0;
}
