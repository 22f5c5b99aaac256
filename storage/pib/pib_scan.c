/*
 * Rows in placed order, all or runs of them, merged from three sources: the pool where a block is
 * in it, the engine where it has the block, the initialiser for blocks that no step has changed.
 * The engine is read front to back.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "storage/kv/drps_kv.h"
#include "storage/pib/pib_internal.h"

enum {
    CREATE_BYTES = 256 << 10
}; /* rows that no step touched are created in pieces of this size */

struct scan {
    struct drps_pib *st;
    drps_row_visit visit;
    void *ctx;
    uint64_t first, end; /* the run of rows that is visited */
    uint32_t next;       /* the first block not yet visited */
    char *room;          /* own: created rows */
    size_t room_rows;
};

/* Show those of n rows of a block that are of the run. */
static int show(const struct scan *s, uint64_t first, size_t n, const char *rows,
                struct drps_err *err)
{
    const uint64_t from = first > s->first ? first : s->first;
    const uint64_t to = first + n < s->end ? first + n : s->end;
    if (from >= to) return 0;
    rows += (size_t)(from - first) * s->st->config.row_bytes;
    return s->visit(s->ctx, from, (size_t)(to - from), rows, err);
}

static int visit_block(struct scan *s, const void *rows, struct drps_err *err)
{
    const struct drps_pool *pool = &s->st->pool;
    uint32_t block = s->next++;
    return show(s, pool->block_first[block], drps_pool_block_rows(pool, block), rows, err);
}

/* Visit the next block, which is in the pool. */
static int visit_pooled(struct scan *s, struct drps_err *err)
{
    const struct drps_pool *pool = &s->st->pool;
    const uint32_t block = s->next++;
    uint64_t first = pool->block_first[block];
    uint32_t unit = pool->entry[pool->entry_of[block]].unit;
    int rc = 0;
    for (size_t left = drps_pool_block_rows(pool, block), n; left && !rc; left -= n) {
        n = drps_pool_rows_of_unit(pool, left);
        rc = show(s, first, n, drps_pool_unit_rows(pool, unit), err);
        first += n;
        unit = pool->next_unit[unit];
    }
    return rc;
}

static int visit_created(struct scan *s, uint64_t first, uint64_t end, struct drps_err *err)
{
    const struct drps_store_config *config = &s->st->config;
    if (first < s->first) first = s->first;
    if (end > s->end) end = s->end;
    while (first < end) {
        size_t n = end - first < s->room_rows ? (size_t)(end - first) : s->room_rows;
        int rc = config->init(config->init_ctx, first, n, s->room, err);
        if (rc == 0) rc = s->visit(s->ctx, first, n, s->room, err);
        if (rc) return rc;
        first += n;
    }
    return 0;
}

static int is_untouched(const struct drps_pool *pool, uint32_t block)
{
    return pool->entry_of[block] == DRPS_POOL_NONE && !drps_pool_is_stored(pool, block);
}

/* Visit the blocks before `end`, none of which the engine has shown. */
static int visit_before(struct scan *s, uint32_t end, struct drps_err *err)
{
    const struct drps_pool *pool = &s->st->pool;
    int rc = 0;
    while (!rc && s->next < end) {
        uint32_t from = s->next;
        while (s->next < end && is_untouched(pool, s->next))
            s->next++; /* a run of them is created in large pieces */
        if (s->next > from) {
            rc = visit_created(s, pool->block_first[from], pool->block_first[s->next], err);
        } else if (pool->entry_of[from] == DRPS_POOL_NONE) {
            rc = drps_err_set(err, DRPS_E_NOT_FOUND,
                              "block %u was written to the database but is not in it", from);
        } else {
            rc = visit_pooled(s, err);
        }
    }
    return rc;
}

static int visit_stored(void *ctx, uint32_t key, const void *value, size_t bytes,
                        struct drps_err *err)
{
    struct scan *s = ctx;
    const struct drps_pool *pool = &s->st->pool;
    if (key >= pool->blocks || !drps_pool_is_stored(pool, key))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "the database has block %u, which was never written", key);
    int rc = visit_before(s, key, err);
    if (rc) return rc;
    if (pool->entry_of[key] != DRPS_POOL_NONE)
        return visit_before(s, key + 1, err); /* newer than the value */
    if (bytes != drps_pool_block_bytes(pool, key))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "block %u has %zu bytes in the database, expected %zu", key, bytes,
                            drps_pool_block_bytes(pool, key));
    return visit_block(s, value, err);
}

/* Returns the block that holds a row. */
static uint32_t block_of(const struct drps_pool *pool, uint64_t row)
{
    uint32_t low = 0, high = (uint32_t)pool->blocks;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (pool->block_first[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int scan_run(struct scan *s, uint64_t first, uint64_t end, struct drps_err *err)
{
    struct drps_pib *st = s->st;
    const uint32_t last = block_of(&st->pool, end - 1) + 1;
    s->first = first;
    s->end = end;
    s->next = block_of(&st->pool, first);
    int rc = st->config.kv->scan(st->kv, s->next, last, visit_stored, s, err);
    return rc ? rc : visit_before(s, last, err);
}

int drps_pib_scan_rows(struct drps_pib *st, int changed, drps_row_visit visit, void *ctx,
                       struct drps_err *err)
{
    struct scan s = {.st = st, .visit = visit, .ctx = ctx};
    uint64_t first, end = 0;
    int rc = 0;
    s.room_rows = st->config.row_bytes < CREATE_BYTES ? CREATE_BYTES / st->config.row_bytes : 1;
    s.room = drps_array_new(s.room_rows, st->config.row_bytes);
    if (!s.room) return drps_err_set(err, -ENOMEM, "buffer for a scan");
    if (!changed) rc = scan_run(&s, 0, st->config.rows, err);
    while (changed && !rc && drps_marks_next(&st->marks, end, &first, &end))
        rc = scan_run(&s, first, end, err);
    free(s.room);
    return rc;
}
