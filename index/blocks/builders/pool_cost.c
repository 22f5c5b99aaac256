/*
 * Belady's rule in constant time a use: a block in the pool waits in a queue for the batch that
 * needs it next. So the blocks that a batch finds in the pool are those that wait for it, and those
 * that wait for the furthest batch go.
 */
#include "index/blocks/builders/pool_cost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_bit_tree.h"

#define NONE UINT32_MAX

/* ---- Uses ---- */

/* What is needed while uses are listed. */
struct listing {
    const struct access *a; /* borrowed, like order */
    const uint32_t *order;
    uint32_t *last; /* [a->batches] the block that the batch has met last */
    uint32_t *of;   /* [blocks] AccNum; then the batch that touches the block next */
};

/* The batches of block after block go to u->next, each once, and are counted in u->start. */
static void list_batches(const struct listing *l, struct pool_uses *u)
{
    const struct access *a = l->a;
    uint64_t n = 0;
    memset(l->last, 0xff, a->batches * sizeof(*l->last));
    for (size_t b = 0; b < u->blocks; b++) {
        const uint64_t from = n;
        for (uint32_t position = u->first[b]; position < u->first[b + 1]; position++) {
            const uint32_t row = l->order ? l->order[position] : position;
            for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++) {
                const uint32_t batch = a->batch[i];
                u->next[n] = batch; /* stays if it is a new one: no branch depends on the data */
                n += l->last[batch] != b;
                l->last[batch] = (uint32_t)b;
            }
        }
        for (uint64_t i = from; i < n; i++)
            u->start[u->next[i]]++;
        l->of[b] = (uint32_t)(n - from);
        u->use_rows += (n - from) * (u->first[b + 1] - u->first[b]);
    }
    u->uses = n;
}

/* Turn the batches of blocks into the blocks of batches: those of batch b begin at start[b]. */
static void list_blocks(const struct listing *l, struct pool_uses *u)
{
    uint64_t sum = 0, i = 0;
    for (uint32_t b = 0; b <= l->a->batches; b++) {
        const uint64_t count = u->start[b];
        u->start[b] = sum;
        sum += count;
    }
    for (size_t b = 0; b < u->blocks; b++)
        for (const uint64_t end = i + l->of[b]; i < end; i++)
            u->block[u->start[u->next[i]]++] = (uint32_t)b;
    memmove(u->start + 1, u->start, l->a->batches * sizeof(*u->start)); /* where they end, by now */
    u->start[0] = 0;
}

/* Go from the end of the epoch to its begin twice: the first time tells what comes after its end.
 */
static void find_next(const struct listing *l, struct pool_uses *u)
{
    for (unsigned turn = 0; turn < 2; turn++)
        for (uint32_t batch = u->batches; batch-- > 0;)
            for (uint64_t i = u->start[batch]; i < u->start[batch + 1]; i++) {
                if (turn) u->next[i] = l->of[u->block[i]];
                l->of[u->block[i]] = batch;
            }
}

static uint32_t rows_of(const struct pool_uses *u, uint32_t block)
{
    return u->first[block + 1] - u->first[block];
}

static void find_largest(struct pool_uses *u)
{
    for (uint32_t batch = 0; batch < u->batches; batch++) {
        uint64_t rows = 0;
        for (uint64_t i = u->start[batch]; i < u->start[batch + 1]; i++)
            rows += rows_of(u, u->block[i]);
        if (rows > u->step_rows) u->step_rows = rows;
    }
}

int drps_pool_uses_list(const struct access *a, const uint32_t *order, const uint32_t *first,
                        size_t blocks, struct pool_uses *u, struct drps_err *err)
{
    const size_t most = (size_t)(a->start[a->rows] - a->start[0]);
    struct listing l = {a, order, drps_array_new(a->batches, sizeof(*l.last)),
                        drps_array_new(blocks, sizeof(*l.of))};

    *u = (struct pool_uses){.first = first,
                            .blocks = blocks,
                            .batches = a->batches,
                            .start = calloc((size_t)a->batches + 1, sizeof(*u->start)),
                            .block = drps_array_new(most, sizeof(*u->block)),
                            .next = drps_array_new(most, sizeof(*u->next))};
    const int made = l.last && l.of && u->start && u->block && u->next;
    if (made) {
        list_batches(&l, u);
        list_blocks(&l, u);
        find_next(&l, u);
        find_largest(u);
    }
    free(l.last);
    free(l.of);
    return made ? 0
                : drps_err_set(err, -ENOMEM, "no memory to list the uses of %zu blocks", blocks);
}

void drps_pool_uses_free(struct pool_uses *u)
{
    free(u->start);
    free(u->block);
    free(u->next);
    *u = (struct pool_uses){0};
}

/* ---- The pool ---- */

struct layout_pool {
    const struct pool_uses *u; /* borrowed */
    uint32_t *waiting; /* own: [batches] the first block of the queue for the batch, or NONE */
    uint32_t *behind;  /* own: [blocks] the next one in its queue */
    struct drps_bit_tree some; /* batches whose queue is not empty */
    uint8_t *missing;          /* own: [blocks] 0: it is in the pool */
    uint64_t rows;             /* in the pool */
};

static int pool_make(struct layout_pool *p, const struct pool_uses *u)
{
    *p = (struct layout_pool){.u = u,
                              .waiting = drps_array_new(u->batches, sizeof(*p->waiting)),
                              .behind = drps_array_new(u->blocks, sizeof(*p->behind)),
                              .missing = drps_array_new(u->blocks, 1)};
    if (!p->waiting || !p->behind || !p->missing) return -ENOMEM;
    if (drps_bit_tree_init(&p->some, 1, (uint64_t)u->batches + 1) < 0) return -ENOMEM;
    memset(p->waiting, 0xff, u->batches * sizeof(*p->waiting));
    memset(p->missing, 1, u->blocks);
    return 0;
}

static void pool_free(struct layout_pool *p)
{
    free(p->waiting);
    free(p->behind);
    drps_bit_tree_destroy(&p->some);
    free(p->missing);
}

static void wait_for(struct layout_pool *p, uint32_t block, uint32_t batch)
{
    p->behind[block] = p->waiting[batch];
    p->waiting[batch] = block;
    drps_bit_tree_add(&p->some, 1, 0, batch);
}

static void leave(struct layout_pool *p, uint32_t batch)
{
    p->waiting[batch] = NONE;
    drps_bit_tree_remove(&p->some, 1, 0, batch);
}

/* Blocks go while there are more than `most` rows, the one needed furthest after batch `now` first.
 */
static void evict(struct layout_pool *p, uint32_t now, uint64_t most)
{
    while (p->rows > most) {
        uint64_t found = drps_bit_tree_at_most(&p->some, 1, 0, now); /* of the next epoch */
        if (found == DRPS_BIT_TREE_NONE)
            found = drps_bit_tree_at_most(&p->some, 1, 0, p->u->batches);
        if (found == DRPS_BIT_TREE_NONE) return;
        const uint32_t batch = (uint32_t)found;
        const uint32_t block = p->waiting[batch];
        if (p->behind[block] == NONE)
            leave(p, batch);
        else
            p->waiting[batch] = p->behind[block];
        p->missing[block] = 1;
        p->rows -= rows_of(p->u, block);
    }
}

/* The batch's blocks are in the pool while it is in hand, whatever room they take. */
static void step(struct layout_pool *p, uint32_t batch, uint64_t pool_rows, struct pool_misses *out)
{
    const struct pool_uses *u = p->u;
    uint64_t blocks = 0, rows = 0; /* missed */
    leave(p, batch);
    for (uint64_t i = u->start[batch]; i < u->start[batch + 1]; i++) {
        const uint32_t block = u->block[i];
        blocks += p->missing[block];
        rows += p->missing[block] * rows_of(u, block);
        p->missing[block] = 0;
    }
    out->blocks += blocks;
    out->rows += rows;
    p->rows += rows;
    evict(p, batch, pool_rows);
    for (uint64_t i = u->start[batch]; i < u->start[batch + 1]; i++)
        wait_for(p, u->block[i], u->next[i]);
}

int drps_pool_simulate(const struct pool_uses *u, uint64_t pool_rows, struct pool_misses *out,
                       struct drps_err *err)
{
    struct layout_pool p;

    *out = (struct pool_misses){0};
    int rc = pool_make(&p, u);
    for (unsigned epoch = 0; epoch < 2 && rc == 0; epoch++) { /* the first fills the pool */
        *out = (struct pool_misses){0};
        for (uint32_t batch = 0; batch < u->batches; batch++)
            step(&p, batch, pool_rows, out);
    }
    pool_free(&p);
    return rc < 0 ? drps_err_set(err, rc, "no memory to simulate a pool of %zu blocks", u->blocks)
                  : 0;
}
