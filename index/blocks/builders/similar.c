/*
 * Merging by likeness (similar.h): rows, then blocks, are sorted by minhashes, and neighbours
 * that gain are merged, round after round with other hashes.
 */
#include "index/blocks/builders/similar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

enum { LEAST_ROUNDS = 20, MOST_ROUNDS = 80, MOST_NEAR = 8, PAIRS = 1 << 15 };
#define STEPS UINT64_C(50000000) /* of walking batch lists, if that is enough for LEAST_ROUNDS */
#define FIRST_THETA 0.9
#define FALLING 0.75 /* share of the rounds in which theta falls to 0 */
#define SALT UINT64_C(0x5d1f0a6b3c2e9874)

static int no_memory(uint32_t rows, struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to compare %u rows", rows);
}

static uint64_t salt_of(unsigned i)
{
    return drps_rng_at(SALT, i);
}

/* Blocks of more batches first, none last. */
static uint64_t tier_key(uint32_t count)
{
    return count ? (uint64_t)__builtin_clz(count) : 32;
}

static uint64_t key_of(size_t table, uint64_t tier, uint32_t minhash)
{
    return (uint64_t)table << 40 | tier << 32 | minhash;
}

static uint64_t table_key(const struct drps_sort_record *record)
{
    return record->hi >> 40;
}

/* ---- Rows ---- */

/* hi: table, tier, minhash; lo: signature; a: row. Sorted: [rows] records. */
static int sort_rows(struct counts *counts, const struct block_tables *tables,
                     const uint32_t *count, struct drps_sort_record *records,
                     struct drps_sort_record *aux, struct drps_err *err)
{
    const uint32_t rows = counts->blocks;
    uint32_t *minhash = drps_array_new(rows, sizeof(*minhash));
    uint64_t *sig = drps_array_new(rows, sizeof(*sig));
    int rc = minhash && sig ? 0 : no_memory(rows, err);

    if (rc == 0) rc = counts->ops->minhash(counts, salt_of(0), minhash, err);
    if (rc == 0) rc = counts->ops->signatures(counts, sig, err);
    for (size_t t = 0; rc == 0 && t < tables->n; t++)
        for (uint32_t row = tables->first[t]; row < tables->first[t + 1]; row++)
            records[row] = (struct drps_sort_record){key_of(t, tier_key(count[row]), minhash[row]),
                                                     sig[row], row, count[row]};
    free(minhash);
    free(sig);
    if (rc == 0) drps_sort_records(records, aux, rows);
    return rc;
}

/* ---- Merging ---- */

/* The state of merging in rounds. It owns its arrays. */
struct rounds {
    struct merging *m;
    struct drps_sort_record *records, *aux; /* [rows] */
    uint32_t *minhash[2];                   /* [rows] */
    struct block_pair *merges;              /* [rows / 2 + 1] of the round */
    size_t merges_n;
    struct block_pair *pairs; /* [PAIRS] to be compared */
    uint32_t *both;           /* [PAIRS] */
    struct candidate *chosen; /* [PAIRS] */
    unsigned number, near;    /* how many rounds, and how far apart compared records are */
};

static void rounds_free(struct rounds *r)
{
    free(r->records);
    free(r->minhash[0]);
    free(r->minhash[1]);
    free(r->merges);
    free(r->pairs);
    free(r->both);
    free(r->chosen);
}

/* Spend STEPS on comparing: first on rounds, then on neighbours, then on more rounds. */
static void plan_rounds(struct rounds *r)
{
    uint64_t incidences = 1;
    for (uint32_t row = 0; row < r->m->rows; row++)
        incidences += r->m->count[row];
    const uint64_t near = STEPS / incidences / LEAST_ROUNDS;
    r->near = near < 1 ? 1 : near > MOST_NEAR ? MOST_NEAR : (unsigned)near;
    const uint64_t rounds = STEPS / incidences / r->near;
    r->number = rounds < LEAST_ROUNDS  ? LEAST_ROUNDS
                : rounds > MOST_ROUNDS ? MOST_ROUNDS
                                       : (unsigned)rounds;
}

static int rounds_new(struct rounds *r, struct merging *m, struct drps_err *err)
{
    const size_t rows = m->rows;
    *r = (struct rounds){.m = m};
    r->records = drps_array_new(rows, 2 * sizeof(*r->records));
    r->aux = r->records + rows;
    r->minhash[0] = drps_array_new(rows, sizeof(*r->minhash[0]));
    r->minhash[1] = drps_array_new(rows, sizeof(*r->minhash[1]));
    r->merges = drps_array_new(rows / 2 + 1, sizeof(*r->merges));
    r->pairs = drps_array_new(PAIRS, sizeof(*r->pairs));
    r->both = drps_array_new(PAIRS, sizeof(*r->both));
    r->chosen = drps_array_new(PAIRS, sizeof(*r->chosen));
    plan_rounds(r);
    return r->records && r->minhash[0] && r->minhash[1] && r->merges && r->pairs && r->both &&
                   r->chosen
               ? 0
               : no_memory(m->rows, err);
}

static void merge(struct rounds *r, const struct candidate *c)
{
    drps_merging_merge(r->m, c);
    r->merges[r->merges_n++] = (struct block_pair){c->a, c->b};
}

static int end_round(struct rounds *r, struct drps_err *err)
{
    const size_t n = r->merges_n;
    r->merges_n = 0;
    return drps_merging_round(r->m, r->merges, n, err);
}

/* The most rows of a block that `count` batches touch: max_rows, or less where max_weight says so.
 */
static uint32_t most_rows(const struct merging *m, uint32_t count)
{
    const struct block_options *o = m->options;
    if (o->max_weight <= 0) return o->max_rows;
    const double rows = (o->max_weight * o->sample / count - o->cost.seek) / o->cost.row;
    return rows >= o->max_rows ? o->max_rows : rows < 1 ? 1 : (uint32_t)rows;
}

/* How many records from `i` on have the same batches, as many as a block may have. */
static size_t same(const struct rounds *r, size_t i, size_t n)
{
    const struct drps_sort_record *first = &r->records[i];
    const uint32_t most = most_rows(r->m, first->b);
    size_t len = 1;
    while (i + len < n && len < most && r->records[i + len].hi == first->hi &&
           r->records[i + len].lo == first->lo && r->records[i + len].b == first->b)
        len++;
    return len;
}

/* Merge every run of rows with the same batches: first in pairs, then pairs of pairs, and so on. */
static int merge_same(struct rounds *r, struct drps_err *err)
{
    const size_t rows = r->m->rows;
    size_t longest = 1;
    int rc = sort_rows(r->m->counts, r->m->tables, r->m->count, r->records, r->aux, err);

    for (size_t step = 1; rc == 0 && step <= longest; step *= 2) {
        for (size_t i = 0, len; i < rows; i += len) {
            len = r->records[i].b ? same(r, i, rows) : 1;
            if (len > longest) longest = len;
            for (size_t k = 0; k + step < len; k += 2 * step)
                merge(r, &(struct candidate){.a = r->records[i + k].a,
                                             .b = r->records[i + k + step].a,
                                             .both = r->records[i].b});
        }
        rc = end_round(r, err);
    }
    return rc;
}

/*
 * Sort the blocks that may still grow: by fresh minhashes, every third round by tier first, every
 * third as the rows came, which may be a good order already. How many.
 */
static int sort_blocks(struct rounds *r, unsigned round, size_t *n_out, struct drps_err *err)
{
    enum { BY_HASH, BY_TIER_FIRST, AS_GIVEN, KEYS };
    const struct merging *m = r->m;
    const unsigned key = round % KEYS;
    size_t n = 0;
    int rc = 0;
    for (unsigned i = 0; i < 2 && rc == 0 && key != AS_GIVEN; i++)
        rc = m->counts->ops->minhash(m->counts, salt_of(2 * round + 1 + i), r->minhash[i], err);
    for (size_t t = 0; t < m->tables->n && rc == 0; t++)
        for (uint32_t b = m->tables->first[t]; b < m->tables->first[t + 1]; b++) {
            if (!m->count[b] || m->size[b] >= most_rows(m, m->count[b])) continue;
            struct drps_sort_record *record = &r->records[n++];
            *record = (struct drps_sort_record){.hi = key_of(t, 0, 0), .a = b};
            if (key == AS_GIVEN) continue;
            record->hi =
                key_of(t, key == BY_TIER_FIRST ? tier_key(m->count[b]) : 0, r->minhash[0][b]);
            record->lo = (uint64_t)r->minhash[1][b] << 32;
        }
    *n_out = n;
    if (rc == 0 && key != AS_GIVEN) drps_sort_records(r->records, r->aux, n);
    return rc;
}

/* What a merge gains by Eq. 3, or 0 if the two are not to be merged. */
static double gain_of(const struct merging *m, struct block_pair p, uint32_t both, double theta)
{
    const struct block_options *o = m->options;
    const uint32_t more = m->count[p.a] > m->count[p.b] ? m->count[p.a] : m->count[p.b];
    const double gain = drps_merging_gain(m, p.a, p.b, both);
    if (m->size[p.a] + m->size[p.b] > most_rows(m, m->count[p.a] + m->count[p.b] - both) ||
        gain <= o->min_gain * o->sample || gain < theta * o->cost.seek * more)
        return 0;
    return gain;
}

static int by_gain(const void *a, const void *b)
{
    return candidate_before(a, b) ? -1 : candidate_before(b, a);
}

/* Merge the best of n pairs, then the best of those without its blocks, and so on.
 */
static int match(struct rounds *r, size_t n, double theta, struct drps_err *err)
{
    struct merging *m = r->m;
    size_t chosen = 0;
    int rc = m->counts->ops->cocounts(m->counts, r->pairs, n, r->both, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct candidate c = {.a = r->pairs[i].a, .b = r->pairs[i].b, .both = r->both[i]};
        c.gain = gain_of(m, r->pairs[i], c.both, theta);
        c.time = m->time;
        if (c.gain > 0) r->chosen[chosen++] = c;
    }
    qsort(r->chosen, chosen, sizeof(*r->chosen), by_gain);
    for (size_t i = 0; i < chosen; i++)
        if (merging_holds(m, &r->chosen[i])) merge(r, &r->chosen[i]);
    return rc;
}

static int may_merge(const struct rounds *r, const struct drps_sort_record *x,
                     const struct drps_sort_record *y)
{
    const struct merging *m = r->m;
    return m->merged[x->a] <= m->time && m->merged[y->a] <= m->time &&
           m->size[x->a] + m->size[y->a] <= m->options->max_rows;
}

static struct block_pair pair_of(const struct drps_sort_record *x, const struct drps_sort_record *y)
{
    return x->a < y->a ? (struct block_pair){x->a, y->a} : (struct block_pair){y->a, x->a};
}

/* Compare each of the n blocks with its neighbours and merge, so many pairs at a time. */
static int merge_neighbours(struct rounds *r, size_t n, double theta, struct drps_err *err)
{
    size_t pairs = 0;
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        const struct drps_sort_record *x = &r->records[i];
        for (size_t k = i + 1; k < n && k <= i + r->near; k++) {
            const struct drps_sort_record *y = &r->records[k];
            if (table_key(x) != table_key(y)) break;
            if (!may_merge(r, x, y)) continue;
            r->pairs[pairs++] = pair_of(x, y);
        }
        if (pairs + r->near <= PAIRS && i + 1 < n) continue;
        rc = match(r, pairs, theta, err);
        pairs = 0;
    }
    return rc < 0 ? rc : end_round(r, err);
}

int drps_similar_merge(struct merging *m, uint64_t enough, uint64_t *left_out, struct drps_err *err)
{
    struct rounds r;
    int rc = rounds_new(&r, m, err);
    if (rc == 0) rc = merge_same(&r, err);
    if (rc == 0) rc = m->counts->ops->pair_work(m->counts, left_out, err);
    for (unsigned t = 0; t < r.number && rc == 0 && *left_out > enough; t++) {
        const double theta = FIRST_THETA * (1 - t / (FALLING * r.number));
        size_t n = 0;
        rc = sort_blocks(&r, t, &n, err);
        if (rc == 0) rc = merge_neighbours(&r, n, theta > 0 ? theta : 0, err);
        if (rc == 0) rc = m->counts->ops->pair_work(m->counts, left_out, err);
    }
    rounds_free(&r);
    return rc;
}
