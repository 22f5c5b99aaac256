/*
 * The prefetch thread: walks the timeline ahead of the open step. For each step it pins the blocks
 * that are in the pool, makes room for the others by evicting what is needed furthest ahead, lets
 * the I/O threads bring them in, and publishes the step.
 *
 * It cannot deadlock: it only ever waits for a step before this one to be closed, those are all
 * published, and once they are released nothing but this step holds pins, which open() has made
 * sure fits.
 *
 * A block that was evicted and is needed again is read only by a later run of the I/O threads, and
 * a run ends after all of its writes: the newest bytes are read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "storage/pib_internal.h"

/* Unpin the blocks of closed steps. `now`: the step being prefetched. */
static int release_closed(struct drps_pib *st, uint64_t closed, uint64_t now, struct drps_err *err)
{
    for (; st->released < closed; st->released++) {
        const struct drps_pib_step *rec = &st->ring[st->released % st->depth];
        for (size_t i = 0; i < rec->n; i++)
            if (drps_pool_unpin(&st->pool, rec->frames[i], rec->changed, now) < 0)
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
    if (b->n > st->pool.frames)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "step %llu needs %zu blocks at a time, the block pool has room for %u",
                            (unsigned long long)step, b->n, st->pool.frames);
    return 0;
}

static int reserve(struct drps_pib *st, struct drps_pib_step *rec, size_t n)
{
    int rc = drps_array_reserve(&rec->blocks, &rec->blocks_cap, n, sizeof(*rec->blocks));
    if (!rc) rc = drps_array_reserve(&rec->frames, &rec->frames_cap, n, sizeof(*rec->frames));
    if (!rc) rc = drps_array_reserve(&st->items, &st->items_cap, n, sizeof(*st->items));
    if (!rc) rc = drps_array_reserve(&st->next_use, &st->next_use_cap, n, sizeof(*st->next_use));
    return rc;
}

/* Fill the record; pin what is there and list the rest in st->items. Returns how many these are, or
 * an error. */
static int pin_present(struct drps_pib *st, uint64_t step, struct drps_pib_step *rec,
                       size_t *missing_out, struct drps_err *err)
{
    struct drps_step_blocks b = {0};
    int rc = st->timeline.step_blocks(st->timeline.ctx, step, &b, err);
    if (!rc) rc = check_blocks(st, step, &b, err);
    if (rc < 0) return rc;
    if (reserve(st, rec, b.n) < 0)
        return drps_err_set(err, -ENOMEM, "record of step %llu", (unsigned long long)step);
    size_t missing = 0;
    for (size_t i = 0; i < b.n; i++) {
        rec->blocks[i] = b.blocks[i];
        rec->frames[i] = drps_pool_pin(&st->pool, b.blocks[i], b.next_use[i]);
        if (rec->frames[i] != DRPS_POOL_NONE) continue;
        st->items[missing].block = b.blocks[i];
        st->next_use[missing++] = b.next_use[i];
    }
    rec->n = b.n;
    rec->changed = 0;
    *missing_out = missing;
    return 0;
}

/*
 * Whether `missing` blocks may come in now. A step that nothing stands in front of takes what it
 * needs; one further ahead leaves a quarter of the pool to blocks that stay, or reading ahead would
 * eat the hits that it hides.
 */
static int has_room(const struct drps_pib *st, uint64_t step, size_t missing)
{
    if (drps_pool_available(&st->pool) < missing) return 0;
    return st->released == step ||
           st->pool.pinned + missing <= st->pool.frames - st->pool.frames / 4;
}

static void publish(struct drps_pib *st, uint64_t step, const struct drps_pib_step *rec,
                    size_t missing, size_t evicted)
{
    size_t created = 0;
    for (size_t i = 0; i < missing; i++)
        created += !st->items[i].read;
    (void)pthread_mutex_lock(&st->lock);
    st->stats.blocks_needed += rec->n;
    st->stats.blocks_hit += rec->n - missing;
    st->stats.blocks_created += created;
    st->stats.blocks_evicted += evicted;
    st->ready = step + 1;
    (void)pthread_cond_broadcast(&st->news);
    (void)pthread_mutex_unlock(&st->lock);
}

static int prefetch_step(struct drps_pib *st, uint64_t step, struct drps_err *err)
{
    struct drps_pib_step *rec = &st->ring[step % st->depth];
    size_t missing = 0;
    int rc = wait_closed(st, step + 1 > st->depth ? step + 1 - st->depth : 0, step, err);
    if (!rc) rc = pin_present(st, step, rec, &missing, err);
    while (!rc && !has_room(st, step, missing))
        rc = wait_closed(st, st->released + 1, step, err);
    if (rc < 0) return rc;
    size_t evicted = drps_pool_admit(&st->pool, st->items, st->next_use, missing);
    for (size_t i = 0, m = 0; i < rec->n; i++)
        if (rec->frames[i] == DRPS_POOL_NONE) rec->frames[i] = st->items[m++].frame;
    rc = drps_fetch_run(&st->fetch, st->items, missing, err);
    if (!rc) publish(st, step, rec, missing, evicted);
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
