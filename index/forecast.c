/*
 * I/O of an epoch, before it is run.
 *
 * The block pool is simulated exactly: a block in memory sits in the bucket of the step (of the
 * epoch) that uses it next, and the victim is taken from the bucket farthest ahead. Seen from step
 * s the order of buckets, nearest first, is s + 1 ... steps - 1, 0 ... s, and bucket s has been
 * emptied when the step begins: so a ring of one bucket a step is enough, and a map of non-empty
 * buckets finds the farthest. Blocks that the step uses are taken out before anything is evicted,
 * and those it misses come in after: they are pinned together. The first epoch fills the pool, the
 * second one is counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/drps_window.h"

#include "base/drps_alloc.h"
#include "index/drps_batch.h"
#include "index/steps.h"

enum { CURVE_POINTS = 7 };
#define NONE UINT32_MAX
#define DIRTY (UINT32_C(1) << 31) /* of a block's key; steps are below it */

struct block {
    uint32_t key;  /* the bucket it is in, with DIRTY; NONE: not in memory */
    uint32_t next; /* in the same bucket */
};

struct pool {
    uint64_t frames, used;
    struct block *block; /* [blocks] */
    uint32_t *head;      /* [steps] first block of a bucket */
    uint32_t *count;     /* [steps] blocks in a bucket */
    uint64_t *map;       /* bit s: bucket s has blocks */
    uint64_t *map_top;   /* bit i: word i of map is not zero */
    size_t words, top_words;
    uint64_t read_rows, written_rows, ios; /* since the last reset */
};

struct simulation {
    const struct drps_window_options *options;
    const uint32_t *block_first;
    size_t blocks;
    uint64_t max_block_rows, max_step_blocks;
    struct steps *uses;
    uint32_t *list, *distance; /* [cap] of one step */
    size_t list_cap, distance_cap;
};

static void pool_destroy(struct pool *p)
{
    free(p->block);
    free(p->head);
    free(p->count);
    free(p->map);
    free(p->map_top);
}

/* Destroy also after a failure. */
static int pool_init(struct pool *p, uint64_t frames, size_t blocks, uint64_t steps,
                     struct drps_err *err)
{
    size_t n = (size_t)steps;
    *p = (struct pool){.frames = frames, .words = n / 64 + 1, .top_words = n / 4096 + 1};
    p->block = drps_array_new(blocks, sizeof(*p->block));
    p->head = drps_array_new(n, sizeof(*p->head));
    p->count = calloc(n + 1, sizeof(*p->count));
    p->map = calloc(p->words, sizeof(*p->map));
    p->map_top = calloc(p->top_words, sizeof(*p->map_top));
    if (!p->block || !p->head || !p->count || !p->map || !p->map_top)
        return drps_err_set(err, -ENOMEM, "no memory to simulate %zu blocks", blocks);
    memset(p->block, 0xff, blocks * sizeof(*p->block));
    memset(p->head, 0xff, n * sizeof(*p->head));
    return 0;
}

static void bucket_push(struct pool *p, uint32_t bucket, uint32_t b, uint32_t dirty)
{
    p->block[b] = (struct block){bucket | dirty, p->head[bucket]};
    p->head[bucket] = b;
    p->count[bucket]++;
    p->map[bucket / 64] |= UINT64_C(1) << bucket % 64;
    p->map_top[bucket / 4096] |= UINT64_C(1) << bucket / 64 % 64;
}

static void bucket_emptied(struct pool *p, uint32_t bucket)
{
    p->head[bucket] = NONE;
    p->count[bucket] = 0;
    p->map[bucket / 64] &= ~(UINT64_C(1) << bucket % 64);
    if (!p->map[bucket / 64]) p->map_top[bucket / 4096] &= ~(UINT64_C(1) << bucket / 64 % 64);
}

static uint32_t top_bit(uint64_t word)
{
    return 63 - (uint32_t)__builtin_clzll(word);
}

/* The last non-empty bucket <= at, or NONE. */
static uint32_t last_bucket(const struct pool *p, uint32_t at)
{
    uint32_t word = at / 64;
    uint64_t bits = p->map[word] & (UINT64_MAX >> (63 - at % 64));
    if (bits) return word * 64 + top_bit(bits);
    if (word-- == 0) return NONE;
    uint32_t top = word / 64;
    bits = p->map_top[top] & (UINT64_MAX >> (63 - word % 64));
    while (!bits) {
        if (top-- == 0) return NONE;
        bits = p->map_top[top];
    }
    word = top * 64 + top_bit(bits);
    return word * 64 + top_bit(p->map[word]);
}

/* The non-empty bucket farthest ahead of `step`, whose own bucket is empty. NONE: all are empty. */
static uint32_t farthest_bucket(const struct pool *p, uint32_t step, uint64_t steps)
{
    uint32_t bucket = last_bucket(p, step);
    return bucket != NONE ? bucket : last_bucket(p, (uint32_t)steps - 1);
}

static uint64_t block_rows(const struct simulation *m, uint32_t b)
{
    return m->block_first[b + 1] - m->block_first[b];
}

static int evict(struct pool *p, const struct simulation *m, uint32_t step, uint64_t n,
                 struct drps_err *err)
{
    for (; n; n--) {
        uint32_t bucket = farthest_bucket(p, step, m->options->steps);
        if (bucket == NONE)
            return drps_err_set(err, DRPS_E_CORRUPT, "no block to give up in the simulation");
        uint32_t b = p->head[bucket];
        if (p->block[b].key & DIRTY) {
            p->written_rows += block_rows(m, b);
            p->ios++;
        }
        p->head[bucket] = p->block[b].next;
        p->count[bucket]--;
        if (p->head[bucket] == NONE) bucket_emptied(p, bucket);
        p->block[b].key = NONE;
        p->used--;
    }
    return 0;
}

/* Count what the step finds and what it reads. Everything it finds must be in its bucket, and
 * nothing else. */
static int look_up(struct pool *p, const struct simulation *m, uint32_t step, size_t n,
                   uint64_t *misses_out, struct drps_err *err)
{
    uint64_t misses = 0, astray = 0, rows = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t b = m->list[i];
        uint32_t key = p->block[b].key;
        if (key == NONE) {
            misses++;
            rows += block_rows(m, b);
        } else {
            astray |= (key & ~DIRTY) ^ step;
        }
    }
    if (astray || n - misses != p->count[step])
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "an earlier step names another next use of a block");
    p->read_rows += rows;
    p->ios += misses;
    *misses_out = misses;
    return 0;
}

static int pool_step(struct pool *p, const struct simulation *m, uint32_t step, size_t n,
                     struct drps_err *err)
{
    uint64_t misses = 0;
    uint32_t steps = (uint32_t)m->options->steps;
    uint32_t makes_dirty = step < m->options->train_steps ? DIRTY : 0;
    int rc = look_up(p, m, step, n, &misses, err);

    if (rc < 0) return rc;
    bucket_emptied(p, step);
    if (p->used + misses > p->frames) rc = evict(p, m, step, p->used + misses - p->frames, err);
    if (rc < 0) return rc;
    p->used += misses;
    for (size_t i = 0; i < n; i++) {
        uint32_t b = m->list[i];
        uint32_t key = p->block[b].key;
        uint32_t bucket = step + m->distance[i];
        if (bucket >= steps) bucket -= steps;
        bucket_push(p, bucket, b, makes_dirty | (key == NONE ? 0 : key & DIRTY));
    }
    return 0;
}

/* ---- The records ---- */

static void simulation_destroy(struct simulation *m)
{
    steps_close(m->uses);
    free(m->list);
    free(m->distance);
}

static int check_step(const struct simulation *m, size_t n, struct drps_err *err)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = m->distance[i] > most ? m->distance[i] : most;
    if (n && (m->list[n - 1] >= m->blocks || most > m->options->steps))
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "block %" PRIu32 " of %zu, a distance of %" PRIu32 " in %" PRIu64
                            " steps",
                            m->list[n - 1], m->blocks, most, m->options->steps);
    return 0;
}

static int decode_step(struct simulation *m, const void *record, size_t bytes, size_t *n_out,
                       struct drps_err *err)
{
    size_t n = bytes >= 4 ? drps_list_count(record) : 0;

    if (n > bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "a list of %zu blocks in %zu bytes", n, bytes);
    if (drps_array_reserve(&m->list, &m->list_cap, n, sizeof(*m->list)) ||
        drps_array_reserve(&m->distance, &m->distance_cap, n, sizeof(*m->distance)))
        return drps_err_set(err, -ENOMEM, "no memory for %zu blocks", n);
    int rc = drps_uses_decode(record, bytes, m->list, m->distance, err);
    if (rc < 0) return rc;
    *n_out = n;
    return check_step(m, n, err);
}

static int read_step(struct simulation *m, uint64_t step, size_t *n_out, struct drps_err *err)
{
    const void *record;
    size_t bytes;

    *n_out = 0;
    int rc = steps_record(m->uses, step, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = decode_step(m, record, bytes, n_out, err);
    return rc < 0 ? steps_fault(m->uses, step, err), rc : 0;
}

static int simulation_open(struct simulation *m, const struct drps_io *io, const char *dir,
                           const struct drps_window_options *o, const uint32_t *block_first,
                           size_t blocks, struct drps_err *err)
{
    *m = (struct simulation){.options = o, .block_first = block_first, .blocks = blocks};
    if (o->steps >= INT32_MAX || blocks >= UINT32_MAX)
        return drps_err_set(err, -EINVAL, "a forecast for %" PRIu64 " steps and %zu blocks",
                            o->steps, blocks);
    for (size_t b = 0; b < blocks; b++)
        if (block_rows(m, (uint32_t)b) > m->max_block_rows)
            m->max_block_rows = block_rows(m, (uint32_t)b);
    int rc = steps_open(io, dir, "uses.rec", DRPS_KIND_USES, o->steps, o->memory_bytes / 8,
                        &m->uses, err);
    for (uint64_t s = 0; s < o->steps && rc == 0; s++) {
        size_t n;
        rc = read_step(m, s, &n, err);
        if (n > m->max_step_blocks) m->max_step_blocks = n;
    }
    return rc;
}

/* Two epochs through all pools; what is counted is the second. */
static int run_pools(struct simulation *m, struct pool *pools, size_t n_pools, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t i = 0; i < 2 * m->options->steps && n_pools && rc == 0; i++) {
        uint64_t step = i % m->options->steps;
        size_t n;
        if (i == m->options->steps)
            for (size_t k = 0; k < n_pools; k++)
                pools[k].read_rows = pools[k].written_rows = pools[k].ios = 0;
        rc = read_step(m, step, &n, err);
        if (rc < 0) return rc;
        for (size_t k = 0; k < n_pools && rc == 0; k++)
            rc = pool_step(&pools[k], m, (uint32_t)step, n, err);
        if (rc < 0) (void)steps_fault(m->uses, step, err);
    }
    return rc;
}

/* Fill out[0 .. n) for frames[0 .. n), whose pools are simulated side by side. */
static int simulate(struct simulation *m, const uint64_t *frames, size_t n,
                    struct drps_forecast *out, struct drps_err *err)
{
    int rc = 0;
    size_t used = 0;
    struct pool *pools = calloc(n, sizeof(*pools));

    if (!pools) return drps_err_set(err, -ENOMEM, "no memory to simulate pools");
    for (size_t i = 0; i < n && rc == 0; i++) {
        out[i].feasible = frames[i] >= m->max_step_blocks;
        if (out[i].feasible)
            rc = pool_init(&pools[used++], frames[i], m->blocks, m->options->steps, err);
    }
    if (rc == 0) rc = run_pools(m, pools, used, err);
    for (size_t i = 0, k = 0; i < n && rc == 0; i++) {
        if (!out[i].feasible) continue;
        out[i].read_bytes = pools[k].read_rows * m->options->row_bytes;
        out[i].written_bytes = pools[k].written_rows * m->options->row_bytes;
        out[i].ios = pools[k].ios;
        k++;
    }
    for (size_t i = 0; i < used; i++)
        pool_destroy(&pools[i]);
    free(pools);
    return rc;
}

/* ---- Points of the curve ---- */

int drps_forecast_pib(const struct drps_io *io, const char *dir,
                      const struct drps_window_options *options, const uint32_t *block_first,
                      size_t blocks, uint64_t frames, struct drps_forecast *out,
                      struct drps_err *err)
{
    struct simulation m;

    *out = (struct drps_forecast){.store = "pib"};
    int rc = simulation_open(&m, io, dir, options, block_first, blocks, err);
    out->memory_bytes = frames * m.max_block_rows * options->row_bytes;
    if (rc == 0) rc = simulate(&m, &frames, 1, out, err);
    simulation_destroy(&m);
    return rc;
}

static int curve_pib(struct simulation *m, struct drps_forecast *out, struct drps_err *err)
{
    uint64_t frames[CURVE_POINTS];
    uint64_t frame_bytes = m->max_block_rows * m->options->row_bytes;
    uint64_t each = m->blocks * sizeof(struct block) + m->options->steps * 9;
    size_t group = each && m->options->memory_bytes / each < CURVE_POINTS
                       ? (size_t)(m->options->memory_bytes / each)
                       : CURVE_POINTS;
    int rc = 0;

    if (group == 0) group = 1;
    for (size_t i = 0; i < CURVE_POINTS; i++)
        frames[i] = frame_bytes ? out[i].memory_bytes / frame_bytes : 0;
    for (size_t i = 0; i < CURVE_POINTS && rc == 0; i += group)
        rc = simulate(m, frames + i, CURVE_POINTS - i < group ? CURVE_POINTS - i : group, out + i,
                      err);
    return rc;
}

static uint64_t chunks(uint64_t bytes)
{
    return (bytes + DRPS_FORECAST_CHUNK_BYTES - 1) / DRPS_FORECAST_CHUNK_BYTES;
}

static int curve_relay(const struct drps_io *io, const char *dir,
                       const struct drps_window_options *o, struct drps_forecast *out,
                       struct drps_err *err)
{
    uint64_t budgets[CURVE_POINTS];
    struct drps_window_result results[CURVE_POINTS];

    for (size_t i = 0; i < CURVE_POINTS; i++)
        budgets[i] = out[i].memory_bytes;
    int rc = drps_windows_measure(io, dir, o, budgets, CURVE_POINTS, results, err);
    for (size_t i = 0; i < CURVE_POINTS && rc == 0; i++) {
        out[i].feasible = o->steps == 0 || results[i].windows > 0;
        out[i].windows = results[i].windows;
        out[i].read_bytes = out[i].written_bytes = results[i].rows_moved * o->row_bytes;
        out[i].ios = 2 * chunks(out[i].read_bytes);
    }
    return rc;
}

int drps_forecast_curve(const struct drps_io *io, const char *dir,
                        const struct drps_window_options *options, const uint32_t *block_first,
                        size_t blocks, struct drps_forecast *out, size_t cap, size_t *n_out,
                        struct drps_err *err)
{
    struct drps_forecast all[1 + 2 * CURVE_POINTS];
    struct drps_forecast *pib = all + 1, *relay = all + 1 + CURVE_POINTS;
    struct simulation m;
    uint64_t model = options->rows * options->row_bytes;

    *n_out = 0;
    all[0] = (struct drps_forecast){.store = "resident", .memory_bytes = model, .feasible = 1};
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        pib[i] = (struct drps_forecast){.store = "pib", .memory_bytes = model >> i};
        relay[i] = (struct drps_forecast){.store = "relay", .memory_bytes = model >> i};
    }
    int rc = simulation_open(&m, io, dir, options, block_first, blocks, err);
    if (rc == 0) rc = curve_pib(&m, pib, err);
    simulation_destroy(&m);
    if (rc == 0) rc = curve_relay(io, dir, options, relay, err);
    if (rc < 0) return rc;
    size_t n = sizeof(all) / sizeof(all[0]);
    *n_out = n < cap ? n : cap;
    memcpy(out, all, *n_out * sizeof(*out));
    return 0;
}
