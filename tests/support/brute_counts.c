#include "support/brute_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "support/lists.h"

struct brute {
    struct counts counts;
    uint8_t *rows;  /* own: [batches][blocks] counted accesses of rows */
    uint8_t *now;   /* own: the same of merged blocks */
    uint8_t *group; /* own: [blocks] */
};

static int touches(struct counts *t, uint32_t batch, uint32_t block)
{
    return ((struct brute *)t)->now[(size_t)batch * t->blocks + block];
}

static int brute_read(struct counts *t, uint32_t *count_out, struct drps_err *err)
{
    (void)err;
    for (uint32_t i = 0; i < t->blocks; i++) {
        count_out[i] = 0;
        for (uint32_t b = 0; b < t->batches; b++)
            count_out[i] += (uint32_t)touches(t, b, i);
    }
    return 0;
}

static int brute_signatures(struct counts *t, uint64_t *sig_out, struct drps_err *err)
{
    (void)err;
    for (uint32_t i = 0; i < t->blocks; i++) {
        sig_out[i] = 0;
        for (uint32_t b = 0; b < t->batches; b++)
            if (touches(t, b, i)) sig_out[i] += drps_mix64(b);
    }
    return 0;
}

static int brute_minhash(struct counts *t, uint64_t salt, uint32_t *min_out, struct drps_err *err)
{
    (void)err;
    for (uint32_t i = 0; i < t->blocks; i++) {
        min_out[i] = UINT32_MAX;
        for (uint32_t b = 0; b < t->batches; b++) {
            const uint32_t hash = (uint32_t)(drps_mix64(b ^ salt) >> 32);
            if (touches(t, b, i) && hash < min_out[i]) min_out[i] = hash;
        }
    }
    return 0;
}

static uint32_t both(struct counts *t, uint32_t i, uint32_t j)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < t->batches; b++)
        count += touches(t, b, i) && touches(t, b, j);
    return count;
}

static int brute_cocounts(struct counts *t, const struct block_pair *pairs, size_t n,
                          uint32_t *count_out, struct drps_err *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        count_out[i] = both(t, pairs[i].a, pairs[i].b);
    return 0;
}

static int is_among(uint32_t block, const uint32_t *with, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (with[i] == block) return 1;
    return 0;
}

static int brute_groups(struct counts *t, const uint8_t *group, struct drps_err *err)
{
    (void)err;
    memcpy(((struct brute *)t)->group, group, t->blocks);
    return 0;
}

static int brute_pairs(struct counts *t, const uint32_t *with, size_t with_n, uint64_t memory_bytes,
                       struct block_pair_count **pairs_out, size_t *n_out, struct drps_err *err)
{
    const uint8_t *group = ((struct brute *)t)->group;
    struct block_pair_count *pairs = NULL;
    size_t n = 0, cap = 0;
    assert_int_equal(drps_array_reserve(&pairs, &cap, 1, sizeof(*pairs)), 0);
    for (uint32_t i = 0; i < t->blocks; i++)
        for (uint32_t j = i + 1; j < t->blocks; j++) {
            const int wanted = !with || is_among(i, with, with_n) || is_among(j, with, with_n);
            const uint32_t count = wanted && group[i] && group[i] == group[j] ? both(t, i, j) : 0;
            if (!count) continue;
            assert_int_equal(drps_array_reserve(&pairs, &cap, n + 1, sizeof(*pairs)), 0);
            pairs[n++] = (struct block_pair_count){i, j, count};
        }
    *n_out = n;
    *pairs_out = pairs;
    if (n * sizeof(*pairs) <= memory_bytes) return 0;
    free(pairs);
    *pairs_out = NULL;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET, "%zu pairs", n);
}

static int brute_pair_work(struct counts *t, uint64_t *work_out, struct drps_err *err)
{
    (void)err;
    *work_out = 0;
    for (uint32_t b = 0; b < t->batches; b++) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < t->blocks; i++)
            n += (uint64_t)touches(t, b, i);
        *work_out += n * n;
    }
    return 0;
}

static int brute_merge(struct counts *t, const struct block_pair *pairs, size_t n,
                       struct drps_err *err)
{
    uint8_t *now = ((struct brute *)t)->now;
    (void)err;
    for (size_t i = 0; i < n; i++)
        for (uint32_t b = 0; b < t->batches; b++) {
            uint8_t *batch = now + (size_t)b * t->blocks;
            batch[pairs[i].a] |= batch[pairs[i].b];
            batch[pairs[i].b] = 0;
        }
    return 0;
}

static int brute_reset(struct counts *t, struct drps_err *err)
{
    struct brute *brute = (struct brute *)t;
    (void)err;
    memcpy(brute->now, brute->rows, (size_t)t->batches * t->blocks);
    return 0;
}

static int brute_lists(struct counts *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                       struct access *out, struct drps_err *err)
{
    const uint8_t *used = ((struct brute *)t)->rows;
    uint64_t end = 0;
    int rc =
        drps_access_new((uint32_t)n, t->batches, (uint64_t)n * t->batches, UINT64_MAX, out, err);
    (void)memory_bytes;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        for (uint32_t b = 0; b < t->batches; b++)
            if (used[(size_t)b * t->blocks + rows[i]]) out->batch[end++] = b;
        out->start[i + 1] = end;
    }
    return rc;
}

static void brute_close(struct counts *t)
{
    if (!t) return;
    free(((struct brute *)t)->rows);
    free(((struct brute *)t)->now);
    free(((struct brute *)t)->group);
    free(t);
}

static const struct counts_ops ops = {
    .counts = brute_read,
    .signatures = brute_signatures,
    .minhash = brute_minhash,
    .cocounts = brute_cocounts,
    .groups = brute_groups,
    .pairs = brute_pairs,
    .pair_work = brute_pair_work,
    .merge = brute_merge,
    .reset = brute_reset,
    .lists = brute_lists,
    .close = brute_close,
};

struct counts *brute_counts_open(const struct access *a, double share, uint64_t seed)
{
    const size_t cells = (size_t)a->batches * a->rows;
    struct brute *brute = must(calloc(1, sizeof(*brute)));
    brute->counts = (struct counts){
        .ops = &ops, .blocks = a->rows, .batches = a->batches, .pair_accesses = UINT64_MAX};
    brute->rows = must(calloc(cells + 1, 1));
    brute->now = must(malloc(cells + 1));
    brute->group = must(malloc((size_t)a->rows + 1));
    memset(brute->group, 1, a->rows);
    for (uint32_t row = 0; row < a->rows; row++)
        for (uint64_t i = a->start[row]; i < a->start[row + 1]; i++) {
            const uint32_t b = a->batch[i];
            if (share >= 1 || (double)drps_mix64(b ^ seed) < share * 0x1p64)
                brute->rows[(size_t)b * a->rows + row] = 1;
        }
    (void)brute_reset(&brute->counts, NULL); /* cannot fail */
    return &brute->counts;
}
