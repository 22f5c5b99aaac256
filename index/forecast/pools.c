/*
 * Several block pools in one pass over the uses (pools.h): queues of blocks by their next use, a
 * stack for each step and class of sizes, whose tops and sets of steps lie side by side for all
 * pools.
 */
#include "index/forecast/pools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_bit_tree.h"
#include "storage/pib/drps_evict.h"
#include "storage/pib/drps_pool.h"

#define NONE UINT32_MAX

enum { CLASSES = 32 };

/* One block for each pool. */
struct of_blocks {
    uint32_t of[POOLS_MOST];
};

/* The queues of the blocks of one class of sizes (storage/pib/drps_evict.h). */
struct queues {
    struct of_blocks *top;       /* own: [ring] by step; NULL: there are no such blocks */
    struct drps_bit_tree filled; /* for each pool, steps that have blocks */
};

struct block {
    uint32_t next_use;           /* modulo 2^32, of all pools that have it */
    uint8_t here, dirty, stored; /* a bit for each pool */
    uint8_t class;
};
_Static_assert(POOLS_MOST <= 8, "pools are bits of a byte");

struct simulated_pool {
    size_t frames, units; /* that are free */
    size_t missing_frames, missing_units;
    struct pools_count count;
};

struct pools {
    const uint32_t *block_first; /* borrowed */
    size_t blocks, row_bytes;
    unsigned unit_shift;
    uint64_t ring; /* a power of two, above `steps` */
    size_t n;
    uint8_t all; /* the bits of all pools */
    struct simulated_pool pool[POOLS_MOST];
    struct queues queues[CLASSES];
    struct block *block;     /* own: [blocks] */
    struct of_blocks *below; /* own: [blocks] in its queue */
};

/* ---- Making ---- */

static unsigned shift_of(uint32_t unit_rows)
{
    return (unsigned)__builtin_ctz(unit_rows);
}

/* A bit for each class that has blocks. */
static uint32_t classes_of(const struct pools_config *c)
{
    uint32_t classes = 0;
    for (size_t b = 0; b < c->blocks; b++)
        classes |=
            1u << drps_evict_class(drps_pool_units(c->block_first, shift_of(c->unit_rows), b));
    return classes;
}

static uint64_t ring_of(uint64_t steps)
{
    uint64_t ring = 64;
    while (ring <= steps)
        ring *= 2;
    return ring;
}

uint64_t drps_pools_bytes(const struct pools_config *c)
{
    const uint64_t ring = ring_of(c->steps);
    const uint64_t queue = ring * sizeof(struct of_blocks) +
                           (ring / 50 + DRPS_BIT_TREE_LEVELS) * POOLS_MOST * sizeof(uint64_t);
    return c->blocks * (sizeof(struct block) + sizeof(struct of_blocks)) +
           queue * (unsigned)__builtin_popcount(classes_of(c));
}

static int queues_open(struct queues *q, uint64_t ring)
{
    q->top = drps_array_new(ring, sizeof(*q->top));
    if (!q->top) return -ENOMEM;
    memset(q->top, 0xff, ring * sizeof(*q->top)); /* all NONE */
    return drps_bit_tree_init(&q->filled, POOLS_MOST, ring);
}

static int open_all(struct pools *p, const struct pools_config *c)
{
    const uint32_t classes = classes_of(c);
    p->block = calloc(p->blocks, sizeof(*p->block));
    p->below = drps_array_new(p->blocks, sizeof(*p->below));
    if (!p->block || !p->below) return -ENOMEM;
    for (size_t b = 0; b < p->blocks; b++)
        p->block[b].class =
            (uint8_t)drps_evict_class(drps_pool_units(p->block_first, p->unit_shift, b));
    for (unsigned k = 0; k < CLASSES; k++)
        if (classes >> k & 1 && queues_open(&p->queues[k], p->ring) < 0) return -ENOMEM;
    return 0;
}

int drps_pools_open(const struct pools_config *c, const struct drps_pool_shape *shapes, size_t n,
                    struct pools **p_out, struct drps_err *err)
{
    struct pools *p = *p_out = calloc(1, sizeof(*p));
    if (!p) return drps_err_set(err, -ENOMEM, "no memory to simulate pools");
    p->block_first = c->block_first;
    p->blocks = c->blocks;
    p->row_bytes = c->row_bytes;
    p->unit_shift = shift_of(c->unit_rows);
    p->ring = ring_of(c->steps);
    p->n = n;
    p->all = (uint8_t)((1u << n) - 1);
    for (size_t i = 0; i < n; i++)
        p->pool[i] = (struct simulated_pool){.frames = shapes[i].entries, .units = shapes[i].units};
    if (open_all(p, c) == 0) return 0;
    drps_pools_close(p);
    *p_out = NULL;
    return drps_err_set(err, -ENOMEM, "cannot simulate %zu blocks", c->blocks);
}

void drps_pools_close(struct pools *p)
{
    if (!p) return;
    for (unsigned k = 0; k < CLASSES; k++) {
        free(p->queues[k].top);
        drps_bit_tree_destroy(&p->queues[k].filled);
    }
    free(p->block);
    free(p->below);
    free(p);
}

/* ---- Queues ---- */

/* Every pool has the block. */
static void push(struct pools *p, uint32_t b, uint32_t next_use)
{
    struct queues *q = &p->queues[p->block[b].class];
    const uint64_t at = next_use & (p->ring - 1);
    p->below[b] = q->top[at];
    for (unsigned i = 0; i < POOLS_MOST; i++)
        q->top[at].of[i] = b;
    drps_bit_tree_add_all(&q->filled, POOLS_MOST, at);
}

/* What waits for step `now` is there, and held. */
static void take_queues(struct pools *p, uint64_t now)
{
    const uint64_t at = now & (p->ring - 1);
    for (unsigned k = 0; k < CLASSES; k++) {
        struct queues *q = &p->queues[k];
        if (!q->top) continue;
        for (unsigned i = 0; i < POOLS_MOST; i++) {
            if (q->top[at].of[i] == NONE) continue;
            q->top[at].of[i] = NONE;
            drps_bit_tree_remove(&q->filled, POOLS_MOST, i, at);
        }
    }
}

/* ---- Steps ---- */

static uint64_t bytes_of(const struct pools *p, uint32_t b)
{
    return (uint64_t)(p->block_first[b + 1] - p->block_first[b]) * p->row_bytes;
}

/* The class whose farthest block is worth most to be rid of, and where that waits. CLASSES: the
 * pool has no block that is not held. */
static unsigned choose_class(const struct pools *p, uint64_t now, unsigned pool, uint64_t *at_out)
{
    const size_t unit_bytes = ((size_t)1 << p->unit_shift) * p->row_bytes;
    unsigned best = CLASSES;
    double most = -1;
    for (unsigned k = 0; k < CLASSES; k++) {
        if (!p->queues[k].top) continue;
        const uint64_t at =
            drps_bit_tree_last(&p->queues[k].filled, POOLS_MOST, pool, now, p->ring);
        if (at == DRPS_BIT_TREE_NONE) continue;
        const double worth = drps_evict_worth(k, unit_bytes, (at - now) & (p->ring - 1));
        if (worth <= most) continue;
        most = worth;
        best = k;
        *at_out = at;
    }
    return best;
}

/* 0: there is nothing to give up. */
static int give_up_one(struct pools *p, uint64_t now, unsigned pool)
{
    struct simulated_pool *into = &p->pool[pool];
    const uint8_t bit = (uint8_t)(1u << pool);
    uint64_t at = 0;
    const unsigned k = choose_class(p, now, pool, &at);
    if (k == CLASSES) return 0;
    struct queues *q = &p->queues[k];
    const uint32_t b = q->top[at].of[pool];
    struct block *block = &p->block[b];
    q->top[at].of[pool] = p->below[b].of[pool];
    if (q->top[at].of[pool] == NONE) drps_bit_tree_remove(&q->filled, POOLS_MOST, pool, at);
    block->here &= (uint8_t)~bit;
    into->frames++;
    into->units += drps_pool_units(p->block_first, p->unit_shift, b);
    if (!(block->dirty & bit)) return 1;
    block->dirty &= (uint8_t)~bit;
    block->stored |= bit;
    into->count.written_bytes += bytes_of(p, b);
    into->count.ios++;
    return 1;
}

static int contradicts(uint64_t now, struct drps_err *err)
{
    return drps_err_set(err, DRPS_E_CORRUPT,
                        "the next uses of blocks contradict the blocks of step %" PRIu64, now);
}

/* What each pool lacks of the step. */
static int find_missing(struct pools *p, uint64_t now, const uint32_t *list, size_t n,
                        struct drps_err *err)
{
    int wrong = 0;
    for (size_t i = 0; i < n; i++) {
        const struct block *block = &p->block[list[i]];
        wrong |= block->here && block->next_use != (uint32_t)now;
        if (block->here == p->all) continue;
        const uint32_t units = drps_pool_units(p->block_first, p->unit_shift, list[i]);
        for (unsigned away = p->all & ~(unsigned)block->here; away; away &= away - 1) {
            struct simulated_pool *pool = &p->pool[__builtin_ctz(away)];
            pool->missing_frames++;
            pool->missing_units += units;
        }
    }
    return wrong ? contradicts(now, err) : 0;
}

static int make_room(struct pools *p, uint64_t now, struct drps_err *err)
{
    for (unsigned i = 0; i < p->n; i++) {
        struct simulated_pool *pool = &p->pool[i];
        while (pool->frames < pool->missing_frames || pool->units < pool->missing_units)
            if (!give_up_one(p, now, i)) return contradicts(now, err);
        pool->frames -= pool->missing_frames;
        pool->units -= pool->missing_units;
        pool->missing_frames = pool->missing_units = 0;
    }
    return 0;
}

static void bring(struct pools *p, uint32_t b)
{
    const struct block *block = &p->block[b];
    for (unsigned read = block->stored & ~(unsigned)block->here; read; read &= read - 1) {
        struct simulated_pool *pool = &p->pool[__builtin_ctz(read)];
        pool->count.read_bytes += bytes_of(p, b);
        pool->count.ios++;
    }
}

int drps_pools_step(struct pools *p, uint64_t now, const uint32_t *list, const uint32_t *distance,
                    size_t n, int changes, struct drps_err *err)
{
    int rc = find_missing(p, now, list, n, err);
    if (rc < 0) return rc;
    take_queues(p, now);
    rc = make_room(p, now, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct block *block = &p->block[list[i]];
        if (block->here != p->all) bring(p, list[i]);
        block->here = p->all;
        if (changes) block->dirty = p->all;
        block->next_use = (uint32_t)(now + distance[i]);
        push(p, list[i], block->next_use);
    }
    return rc;
}

struct pools_count drps_pools_counted(const struct pools *p, size_t i)
{
    return p->pool[i].count;
}

void drps_pools_forget(struct pools *p)
{
    for (size_t i = 0; i < p->n; i++)
        p->pool[i].count = (struct pools_count){0};
}
