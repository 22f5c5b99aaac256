/* Access counts over lists in memory: what is counted on the lists of blocks, and the share of the
 * batches that is. */
#include "index/blocks/counts/counts_local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

enum {
    AHEAD = 16,       /* lists fetched into the cache before their turn */
    STOP_EVERY = 1024 /* blocks, or pairs, between looks whether to stop */
};

/* Look at the stop flag at the i-th of many steps, now and then. */
static int stopped(const struct counts *t, size_t i, struct drps_err *err)
{
    return i % STOP_EVERY ? 0 : access_stopped(t->stop, err);
}

/* ---- Operations ---- */

static int counts_counts(struct counts *t, uint32_t *count_out, struct drps_err *err)
{
    (void)err;
    memcpy(count_out, local_of(t)->n, t->blocks * sizeof(*count_out));
    return 0;
}

static void fetch_ahead(const struct local *l, uint32_t block)
{
    if (block + AHEAD < l->counts.blocks) __builtin_prefetch(list_of(l, block + AHEAD));
}

static int counts_signatures(struct counts *t, uint64_t *sig_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    uint64_t *hash = l->table;
    for (uint32_t b = 0; b < t->batches; b++)
        hash[b] = drps_mix64(b);
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        uint64_t sum = 0;
        int rc = stopped(t, block, err);
        if (rc < 0) return rc;
        fetch_ahead(l, block);
        for (uint32_t i = 0; i < l->n[block]; i++)
            sum += hash[list[i]];
        sig_out[block] = sum;
    }
    return 0;
}

static int counts_minhash(struct counts *t, uint64_t salt, uint32_t *min_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    uint32_t *hash = l->table;
    for (uint32_t b = 0; b < t->batches; b++)
        hash[b] = (uint32_t)(drps_mix64(b ^ salt) >> 32);
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        uint32_t least = UINT32_MAX;
        int rc = stopped(t, block, err);
        if (rc < 0) return rc;
        fetch_ahead(l, block);
        for (uint32_t i = 0; i < l->n[block]; i++)
            least = hash[list[i]] < least ? hash[list[i]] : least;
        min_out[block] = least;
    }
    return 0;
}

static void fetch_pair(const struct local *l, const struct block_pair *pairs, size_t i, size_t n)
{
    if (i + AHEAD < n) {
        __builtin_prefetch(list_of(l, pairs[i + AHEAD].a));
        __builtin_prefetch(list_of(l, pairs[i + AHEAD].b));
    }
    if (i + 2 * AHEAD < n) {
        __builtin_prefetch(&l->at[pairs[i + 2 * AHEAD].a]);
        __builtin_prefetch(&l->at[pairs[i + 2 * AHEAD].b]);
        __builtin_prefetch(&l->n[pairs[i + 2 * AHEAD].a]);
        __builtin_prefetch(&l->n[pairs[i + 2 * AHEAD].b]);
    }
}

static int counts_cocounts(struct counts *t, const struct block_pair *pairs, size_t n,
                           uint32_t *count_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    for (size_t i = 0; i < n; i++) {
        int rc = stopped(t, i, err);
        if (rc < 0) return rc;
        fetch_pair(l, pairs, i, n);
        count_out[i] = drps_counts_common(l, pairs[i]);
    }
    return 0;
}

static int counts_merge(struct counts *t, const struct block_pair *pairs, size_t n,
                        struct drps_err *err)
{
    struct local *l = local_of(t);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        fetch_pair(l, pairs, i, n);
        rc = stopped(t, i, err);
        if (rc == 0 && l->inverse.block) drps_counts_inverse_merge(l, &l->inverse, pairs[i]);
        if (rc == 0) rc = drps_counts_merge_lists(l, pairs[i], err);
    }
    return rc;
}

static int counts_groups(struct counts *t, const uint8_t *group, struct drps_err *err)
{
    struct local *l = local_of(t);
    (void)err;
    memcpy(l->group, group, t->blocks);
    drps_counts_inverse_free(&l->inverse);
    return 0;
}

static int counts_reset(struct counts *t, struct drps_err *err)
{
    struct local *l = local_of(t);
    (void)err;
    for (uint32_t row = 0; row < t->blocks; row++) {
        l->at[row] = l->access->start[row];
        l->n[row] = (uint32_t)(l->access->start[row + 1] - l->access->start[row]);
    }
    l->pool_n = l->pool_live = 0;
    drps_counts_inverse_free(&l->inverse);
    return 0;
}

static int counts_pair_work(struct counts *t, uint64_t *work_out, struct drps_err *err)
{
    const struct local *l = local_of(t);
    uint32_t *touched = l->table;
    uint64_t sum = 0;
    *work_out = 0;
    memset(touched, 0, t->batches * sizeof(*touched));
    for (uint32_t block = 0; block < t->blocks; block++) {
        const uint32_t *list = list_of(l, block);
        int rc = stopped(t, block, err);
        if (rc < 0) return rc;
        fetch_ahead(l, block);
        for (uint32_t i = 0; i < l->n[block]; i++)
            touched[list[i]]++;
    }
    for (uint32_t b = 0; b < t->batches; b++)
        sum += (uint64_t)touched[b] * touched[b];
    *work_out = sum;
    return 0;
}

/* ---- Lists ---- */

static int counts_lists(struct counts *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                        struct access *out, struct drps_err *err)
{
    const struct access *a = local_of(t)->access;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a->start[rows[i] + 1] - a->start[rows[i]];
    int rc = drps_access_new((uint32_t)n, t->batches, sum, memory_bytes, out, err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const uint64_t count = a->start[rows[i] + 1] - a->start[rows[i]];
        memcpy(out->batch + out->start[i], a->batch + a->start[rows[i]],
               count * sizeof(*out->batch));
        out->start[i + 1] = out->start[i] + count;
        if (i % STOP_EVERY == 0) rc = access_stopped(t->stop, err);
    }
    if (rc < 0) drps_access_free(out);
    return rc;
}

/* ---- Opening ---- */

static void counts_close(struct counts *t)
{
    if (!t) return;
    struct local *l = local_of(t);
    drps_access_free(&l->sampled);
    drps_counts_inverse_free(&l->inverse);
    free(l->at);
    free(l->n);
    free(l->group);
    free(l->pool);
    free(l->table);
    free(l);
}

static const struct counts_ops local_ops = {
    .counts = counts_counts,
    .signatures = counts_signatures,
    .minhash = counts_minhash,
    .cocounts = counts_cocounts,
    .groups = counts_groups,
    .pairs = drps_counts_pairs,
    .merge = counts_merge,
    .pair_work = counts_pair_work,
    .reset = counts_reset,
    .lists = counts_lists,
    .close = counts_close,
};

/* A copy with the incidences of the chosen batches only. */
static int sample(const struct access *all, double share, uint64_t seed, struct access *out)
{
    uint8_t *chosen = drps_array_new(all->batches, 1);
    uint64_t n = 0;
    *out = (struct access){.rows = all->rows, .batches = all->batches};
    for (uint32_t b = 0; chosen && b < all->batches; b++)
        chosen[b] = (double)drps_mix64(b ^ seed) < share * 0x1p64;
    for (uint64_t i = 0; chosen && i < incidences(all); i++)
        n += chosen[all->batch[i]];
    out->start = drps_array_new((size_t)all->rows + 1, sizeof(*out->start));
    out->batch = drps_array_new((size_t)n, sizeof(*out->batch));
    if (!chosen || !out->start || !out->batch) {
        free(chosen);
        return -ENOMEM;
    }
    n = 0;
    for (uint32_t row = 0; row < all->rows; row++) {
        out->start[row] = n;
        for (uint64_t i = all->start[row]; i < all->start[row + 1]; i++)
            if (chosen[all->batch[i]]) out->batch[n++] = all->batch[i];
    }
    out->start[all->rows] = n;
    free(chosen);
    return 0;
}

int drps_counts_open(const struct access *access, double share, uint64_t seed,
                     struct counts **t_out, struct drps_err *err)
{
    struct local *l = calloc(1, sizeof(*l));
    int rc = l ? 0 : -ENOMEM;

    *t_out = NULL;
    if (rc == 0 && share < 1) rc = sample(access, share, seed, &l->sampled);
    if (rc == 0) {
        l->access = share < 1 ? &l->sampled : access;
        l->counts = (struct counts){.ops = &local_ops,
                                    .blocks = access->rows,
                                    .batches = access->batches,
                                    .pair_accesses = UINT64_MAX};
        l->at = drps_array_new(access->rows, sizeof(*l->at));
        l->n = drps_array_new(access->rows, sizeof(*l->n));
        l->group = drps_array_new(access->rows, 1);
        l->table = drps_array_new(access->batches, sizeof(uint64_t));
        l->pool = drps_array_new(0, sizeof(*l->pool)); /* lists of no batch begin there */
        if (!l->at || !l->n || !l->group || !l->table || !l->pool) rc = -ENOMEM;
        if (rc == 0) memset(l->group, 1, access->rows);
    }
    if (rc == 0) rc = counts_reset(&l->counts, err);
    if (rc == 0)
        *t_out = &l->counts;
    else {
        counts_close(l ? &l->counts : NULL);
        (void)drps_err_set(err, rc, "no memory to count accesses of %u rows", access->rows);
    }
    return rc;
}

int drps_counts_load(const struct access_source *from, uint32_t first, uint32_t end,
                     struct counts **t_out, struct drps_err *err)
{
    struct access access;

    *t_out = NULL;
    int rc = drps_access_load(from, first, end, &access, err);
    if (rc == 0) rc = drps_counts_open(&access, from->share, from->seed, t_out, err);
    if (rc == 0 && from->share >= 1) {
        struct local *l = local_of(*t_out);
        l->sampled = access; /* moved */
        l->access = &l->sampled;
    } else {
        drps_access_free(&access);
    }
    if (rc < 0) return rc;
    (*t_out)->access_bytes = access_bytes(local_of(*t_out)->access);
    (*t_out)->stop = from->stop;
    return 0;
}
