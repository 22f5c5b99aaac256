/*
 * Ids come sorted, so the blocks of a call are met in order. They are taken in rounds of as many
 * blocks as fit: first those that are not in memory are read together, into frames that this round
 * does not use, then rows are copied. A victim is the next frame, clockwise, that was not used in
 * this round or the one before.
 */
#include "engine/publish/blockcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

enum { ROUND_BLOCKS = 64 };

static uint64_t block_count(uint64_t rows, uint64_t block_rows)
{
    return (rows + block_rows - 1) / block_rows;
}

uint64_t drps_blockcache_memory(uint64_t rows, uint64_t block_rows, size_t param_bytes,
                                uint64_t frames)
{
    return block_count(rows, block_rows) * 4 + frames * (block_rows * param_bytes + 12);
}

int drps_blockcache_init(struct drps_blockcache *c, uint32_t frames)
{
    const uint64_t blocks = block_count(c->rows, c->block_rows);
    c->frames = frames;
    c->data_bytes = (size_t)frames * c->block_rows * c->param_bytes;
    c->data = drps_pages_new(c->data_bytes);
    c->frame_of = drps_array_new(blocks, sizeof(*c->frame_of));
    c->block_of = drps_array_new(frames, sizeof(*c->block_of));
    c->used = calloc(frames, sizeof(*c->used));
    if (!c->data || !c->frame_of || !c->block_of || !c->used) return -ENOMEM;
    memset(c->frame_of, 0xff, blocks * sizeof(*c->frame_of));
    memset(c->block_of, 0xff, frames * sizeof(*c->block_of));
    c->round = 2; /* so that fresh frames, used in round 0, are free */
    return 0;
}

void drps_blockcache_destroy(struct drps_blockcache *c)
{
    drps_pages_free(c->data, c->data_bytes);
    free(c->frame_of);
    free(c->block_of);
    free(c->used);
    c->data = NULL;
    c->frame_of = c->block_of = NULL;
    c->used = NULL;
}

/* A frame that this round does not use; there is one, since a round has at most `frames` blocks. */
static uint32_t victim(struct drps_blockcache *c)
{
    for (uint64_t tries = 0;; tries++) {
        const uint32_t f = c->hand;
        c->hand = c->hand + 1 < c->frames ? c->hand + 1 : 0;
        const uint64_t since =
            tries < c->frames ? c->round - 1 : c->round; /* the second time round be less choosy */
        if (c->used[f] >= since) continue;
        if (c->block_of[f] != DRPS_BLOCKCACHE_NONE)
            c->frame_of[c->block_of[f]] = DRPS_BLOCKCACHE_NONE;
        c->block_of[f] = DRPS_BLOCKCACHE_NONE;
        c->used[f] = c->round;
        return f;
    }
}

static size_t bytes_of(const struct drps_blockcache *c, uint32_t block)
{
    const uint64_t left = c->rows - block * c->block_rows;
    return (size_t)(left < c->block_rows ? left : c->block_rows) * c->param_bytes;
}

static char *frame_data(const struct drps_blockcache *c, uint32_t frame)
{
    return c->data + (size_t)frame * c->block_rows * c->param_bytes;
}

/* Bring in the round's blocks that are not in memory; all of them are marked as used. */
static int load(struct drps_blockcache *c, const uint32_t *blocks, size_t n, struct drps_err *err)
{
    uint32_t keys[ROUND_BLOCKS], frames[ROUND_BLOCKS];
    void *values[ROUND_BLOCKS];
    size_t bytes[ROUND_BLOCKS];
    size_t missing = 0;

    for (size_t i = 0; i < n; i++)
        if (c->frame_of[blocks[i]] != DRPS_BLOCKCACHE_NONE)
            c->used[c->frame_of[blocks[i]]] = c->round;
    for (size_t i = 0; i < n; i++) {
        if (c->frame_of[blocks[i]] != DRPS_BLOCKCACHE_NONE) continue;
        keys[missing] = blocks[i];
        frames[missing] = victim(c);
        values[missing] = frame_data(c, frames[missing]);
        bytes[missing++] = bytes_of(c, blocks[i]);
    }
    if (!missing) return 0;
    int rc = c->ops->get_many(c->kv, keys, missing, values, bytes, err);
    if (rc < 0) return rc; /* the frames stay empty */
    c->reads += missing;
    for (size_t i = 0; i < missing; i++) {
        c->read_bytes += bytes[i];
        c->block_of[frames[i]] = keys[i];
        c->frame_of[keys[i]] = frames[i];
    }
    return 0;
}

/* The distinct blocks of ids from `at` on, as many as fit a round; returns the end of their ids. */
static size_t next_round(const struct drps_blockcache *c, const uint32_t *ids, size_t at, size_t n,
                         uint32_t *blocks, size_t *blocks_n)
{
    const size_t most = c->frames < ROUND_BLOCKS ? c->frames : ROUND_BLOCKS;
    size_t found = 0;
    while (at < n) {
        const uint32_t block = (uint32_t)(ids[at] / c->block_rows);
        if (!found || blocks[found - 1] != block) {
            if (found == most) break;
            blocks[found++] = block;
        }
        at++;
    }
    *blocks_n = found;
    return at;
}

int drps_blockcache_gather(struct drps_blockcache *c, const uint32_t *ids, size_t n, void *params,
                           struct drps_err *err)
{
    uint32_t blocks[ROUND_BLOCKS];
    char *out = params;

    if (n && ids[n - 1] >= c->rows)
        return drps_err_set(err, DRPS_E_CORRUPT, "row %u asked for: the model has %llu", ids[n - 1],
                            (unsigned long long)c->rows);
    for (size_t at = 0; at < n;) {
        size_t blocks_n;
        const size_t end = next_round(c, ids, at, n, blocks, &blocks_n);
        c->round++;
        int rc = load(c, blocks, blocks_n, err);
        if (rc < 0) return rc;
        for (; at < end; at++, out += c->param_bytes) {
            const uint32_t block = (uint32_t)(ids[at] / c->block_rows);
            memcpy(out,
                   frame_data(c, c->frame_of[block]) + ids[at] % c->block_rows * c->param_bytes,
                   c->param_bytes);
        }
    }
    return 0;
}
