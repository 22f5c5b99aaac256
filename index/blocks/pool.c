/*
 * Belady's rule in constant time a use: a block in the pool waits in a queue for the batch that
 * needs it next. So the blocks that a batch finds in the pool are those that wait for it, and those
 * that wait for the furthest batch go.
 */
#include "index/blocks/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

#define NONE UINT32_MAX

/* Which blocks each batch touches, and which batch is the next to touch them: the first of the next
 * epoch after the last of this one. Own. */
struct uses {
    uint64_t *start; /* [batches + 1] */
    uint32_t *block; /* [start[batches]] increasing within a batch */
    uint32_t *next;  /* [start[batches]] */
    uint32_t *last;  /* [batches] of list_uses(): the block that the batch has met last */
    uint32_t *after; /* [blocks] the batch that touches the block next */
};

struct pool {
    const uint32_t *first; /* borrowed */
    uint32_t batches;
    uint32_t *waiting; /* own: [batches] the first block of the queue for the batch, or NONE */
    uint32_t *behind;  /* own: [blocks] the next one in its queue */
    uint64_t *some;    /* own: a bit for each batch whose queue is not empty */
    uint8_t *kept;     /* own: [blocks] it is in the pool */
    uint64_t rows;     /* in the pool */
};

/* ---- Uses ---- */

/* Every use is counted in start[batch], or put where start[batch] says, which moves on. */
static void list_uses(const struct access *a, const uint32_t *first, size_t blocks,
                      const struct uses *u, int put)
{
    memset(u->last, 0xff, a->batches * sizeof(*u->last));
    for (size_t b = 0; b < blocks; b++)
        for (uint64_t i = a->start[first[b]]; i < a->start[first[b + 1]]; i++) {
            const uint32_t batch = a->batch[i];
            if (u->last[batch] == b) continue;
            u->last[batch] = (uint32_t)b;
            if (put) u->block[u->start[batch]] = (uint32_t)b;
            u->start[batch]++;
        }
}

/* From the end of the epoch to its begin, twice: the first time tells what comes after its end. */
static void find_next(const struct uses *u, uint32_t batches)
{
    for (unsigned turn = 0; turn < 2; turn++)
        for (uint32_t batch = batches; batch-- > 0;)
            for (uint64_t i = u->start[batch]; i < u->start[batch + 1]; i++) {
                if (turn) u->next[i] = u->after[u->block[i]];
                u->after[u->block[i]] = batch;
            }
}

static int uses_make(struct uses *u, const struct access *a, const uint32_t *first, size_t blocks)
{
    const uint32_t n = a->batches;
    *u = (struct uses){.start = calloc((size_t)n + 1, sizeof(*u->start)),
                       .last = drps_array_new(n, sizeof(*u->last)),
                       .after = drps_array_new(blocks, sizeof(*u->after))};
    if (!u->start || !u->last || !u->after) return -ENOMEM;
    list_uses(a, first, blocks, u, 0);
    uint64_t sum = 0;
    for (uint32_t b = 0; b <= n; b++) {
        const uint64_t count = u->start[b];
        u->start[b] = sum;
        sum += count;
    }
    u->block = drps_array_new((size_t)sum, sizeof(*u->block));
    u->next = drps_array_new((size_t)sum, sizeof(*u->next));
    if (!u->block || !u->next) return -ENOMEM;
    list_uses(a, first, blocks, u, 1);
    memmove(u->start + 1, u->start, n * sizeof(*u->start)); /* where they end, by now */
    u->start[0] = 0;
    find_next(u, n);
    return 0;
}

static void uses_free(struct uses *u)
{
    free(u->start);
    free(u->block);
    free(u->next);
    free(u->last);
    free(u->after);
}

/* ---- The pool ---- */

static int pool_make(struct pool *p, uint32_t batches, const uint32_t *first, size_t blocks)
{
    *p = (struct pool){.first = first,
                       .batches = batches,
                       .waiting = drps_array_new(batches, sizeof(*p->waiting)),
                       .behind = drps_array_new(blocks, sizeof(*p->behind)),
                       .some = calloc((size_t)batches / 64 + 1, sizeof(*p->some)),
                       .kept = calloc(blocks + 1, 1)};
    if (!p->waiting || !p->behind || !p->some || !p->kept) return -ENOMEM;
    memset(p->waiting, 0xff, batches * sizeof(*p->waiting));
    return 0;
}

static void pool_free(struct pool *p)
{
    free(p->waiting);
    free(p->behind);
    free(p->some);
    free(p->kept);
}

static void wait_for(struct pool *p, uint32_t block, uint32_t batch)
{
    p->behind[block] = p->waiting[batch];
    p->waiting[batch] = block;
    p->some[batch / 64] |= UINT64_C(1) << batch % 64;
}

static void leave(struct pool *p, uint32_t batch)
{
    p->waiting[batch] = NONE;
    p->some[batch / 64] &= ~(UINT64_C(1) << batch % 64);
}

/* The last batch below `end` for which a block waits, or NONE. */
static uint32_t last_below(const struct pool *p, uint32_t end)
{
    uint64_t below = (UINT64_C(1) << end % 64) - 1;
    for (uint32_t word = end / 64;; word--) {
        const uint64_t bits = p->some[word] & below;
        if (bits) return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
        if (!word) return NONE;
        below = UINT64_MAX;
    }
}

static uint32_t rows_of(const struct pool *p, uint32_t block)
{
    return p->first[block + 1] - p->first[block];
}

/* Blocks go while there are more than `most` rows, the one needed furthest after batch `now` first.
 */
static void evict(struct pool *p, uint32_t now, uint64_t most)
{
    while (p->rows > most) {
        uint32_t batch = last_below(p, now + 1); /* of the next epoch */
        if (batch == NONE) batch = last_below(p, p->batches);
        if (batch == NONE) return;
        const uint32_t block = p->waiting[batch];
        if (p->behind[block] == NONE)
            leave(p, batch);
        else
            p->waiting[batch] = p->behind[block];
        p->kept[block] = 0;
        p->rows -= rows_of(p, block);
    }
}

/* The batch's blocks are in the pool while it is in hand, whatever room they take. */
static void step(struct pool *p, const struct uses *u, uint32_t batch, uint64_t pool_rows,
                 struct pool_reads *out)
{
    uint64_t rows = 0;
    leave(p, batch);
    for (uint64_t i = u->start[batch]; i < u->start[batch + 1]; i++) {
        const uint32_t block = u->block[i], n = rows_of(p, block);
        rows += n;
        if (p->kept[block]) continue;
        p->kept[block] = 1;
        p->rows += n;
        out->misses++;
        out->miss_rows += n;
    }
    out->uses += u->start[batch + 1] - u->start[batch];
    out->use_rows += rows;
    if (rows > out->step_rows) out->step_rows = rows;
    evict(p, batch, pool_rows);
    for (uint64_t i = u->start[batch]; i < u->start[batch + 1]; i++)
        wait_for(p, u->block[i], u->next[i]);
}

int pool_simulate(const struct access *a, const uint32_t *first, size_t blocks, uint64_t pool_rows,
                  struct pool_reads *out, struct drps_err *err)
{
    struct pool p = {0};
    struct uses u;

    *out = (struct pool_reads){0};
    int rc = uses_make(&u, a, first, blocks);
    if (rc == 0) rc = pool_make(&p, a->batches, first, blocks);
    for (unsigned epoch = 0; epoch < 2 && rc == 0; epoch++) { /* the first fills the pool */
        *out = (struct pool_reads){0};
        for (uint32_t batch = 0; batch < a->batches; batch++)
            step(&p, &u, batch, pool_rows, out);
    }
    pool_free(&p);
    uses_free(&u);
    return rc < 0 ? drps_err_set(err, rc, "no memory to simulate a pool of %zu blocks", blocks) : 0;
}
