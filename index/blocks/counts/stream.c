/*
 * Access counts that read rows.rec once for each answer (drps_stream.h): rows are taken to the
 * blocks that have merged them, batch after batch.
 */
#include "index/blocks/counts/drps_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_steps.h"

enum {
    READ_BUFFER = 1 << 20,
    ROW_BYTES = 13,
    LOADED_ROW_BYTES = 21,      /* start, and drps_counts.h */
    LOADED_BATCH_BYTES = 8,     /* drps_counts.h */
    LOADED_INCIDENCE_BYTES = 10 /* the batch, and its copy once the block has merged */
};
#define NONE UINT32_MAX

struct stream {
    struct counts counts;
    struct access_source from;
    uint32_t first, end; /* batches */
    struct steps *steps;
    uint32_t *into;  /* own: [blocks] the block that took this one in, itself if it lives */
    uint32_t *seen;  /* own: [blocks] the visit that last met it */
    uint32_t visit;  /* of a batch, counted over all passes */
    uint32_t *chain; /* own: [blocks] the first pair with this a; NONE between calls */
    uint8_t *group;  /* own: [blocks] */
    uint32_t *list;  /* own: [list_cap] blocks of the batch in hand */
    size_t list_cap;
    struct access lists;   /* own: batches of the blocks of any group, when there is */
    struct counts *loaded; /* own: counts of them; NULL: there is none yet */
};

static struct stream *stream_of(struct counts *t)
{
    return (struct stream *)t;
}

/* ---- Passes ---- */

/* The rows of a batch. None of one that is not in the share. */
static int visit_rows(struct stream *s, uint32_t batch, const uint32_t **rows_out, size_t *n_out,
                      struct drps_err *err)
{
    *n_out = 0;
    int rc = access_stopped(s->counts.stop, err);
    if (rc < 0) return rc;
    if (s->from.share < 1 && !((double)drps_mix64(batch ^ s->from.seed) < s->from.share * 0x1p64))
        return 0;
    rc = drps_steps_rows(s->steps, batch, s->counts.blocks, rows_out, n_out, err);
    if (rc == 0 && drps_array_reserve(&s->list, &s->list_cap, *n_out, sizeof(*s->list)))
        rc = drps_err_set(err, -ENOMEM, "no memory for %zu rows of a batch", *n_out);
    return rc;
}

/* The live block that holds what was block b; paths are halved as they are followed. */
static uint32_t find_block(uint32_t *into, uint32_t b)
{
    while (into[b] != b)
        b = into[b] = into[into[b]];
    return b;
}

/* Forget what has been seen. */
static void begin_visit(struct stream *s)
{
    if (++s->visit) return;
    memset(s->seen, 0, s->counts.blocks * sizeof(*s->seen));
    s->visit = 1;
}

/* s->list [n]: the blocks of a batch, in any order; s->seen of these is s->visit. */
static int visit_blocks(struct stream *s, uint32_t batch, size_t *n_out, struct drps_err *err)
{
    const uint32_t *rows = NULL;
    size_t n = 0, rows_n;
    int rc = visit_rows(s, batch, &rows, &rows_n, err);
    begin_visit(s);
    for (size_t i = 0; rc == 0 && i < rows_n; i++) {
        const uint32_t b = find_block(s->into, rows[i]);
        if (s->seen[b] == s->visit) continue;
        s->seen[b] = s->visit;
        s->list[n++] = b;
    }
    *n_out = n;
    return rc;
}

/* take() gets every batch with the n blocks in s->list. */
typedef void take_batch(struct stream *s, uint32_t batch, size_t n, void *ctx);
static int each_batch(struct stream *s, take_batch *take, void *ctx, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t batch = s->first; batch < s->end && rc == 0; batch++) {
        size_t n;
        rc = visit_blocks(s, batch, &n, err);
        if (rc == 0) take(s, batch, n, ctx);
    }
    return rc;
}

/* ---- Answers ---- */

static void add_counts(struct stream *s, uint32_t batch, size_t n, void *ctx)
{
    uint32_t *count = ctx;
    (void)batch;
    for (size_t i = 0; i < n; i++)
        count[s->list[i]]++;
}

static int stream_counts(struct counts *t, uint32_t *count_out, struct drps_err *err)
{
    memset(count_out, 0, t->blocks * sizeof(*count_out));
    return each_batch(stream_of(t), add_counts, count_out, err);
}

static void add_signatures(struct stream *s, uint32_t batch, size_t n, void *ctx)
{
    const uint64_t hash = drps_mix64(batch);
    uint64_t *sig = ctx;
    for (size_t i = 0; i < n; i++)
        sig[s->list[i]] += hash;
}

static int stream_signatures(struct counts *t, uint64_t *sig_out, struct drps_err *err)
{
    memset(sig_out, 0, t->blocks * sizeof(*sig_out));
    return each_batch(stream_of(t), add_signatures, sig_out, err);
}

struct least {
    uint64_t salt;
    uint32_t *least; /* [blocks] */
};

static void take_least(struct stream *s, uint32_t batch, size_t n, void *ctx)
{
    struct least *m = ctx;
    const uint32_t hash = (uint32_t)(drps_mix64(batch ^ m->salt) >> 32);
    for (size_t i = 0; i < n; i++)
        if (hash < m->least[s->list[i]]) m->least[s->list[i]] = hash;
}

static int stream_minhash(struct counts *t, uint64_t salt, uint32_t *min_out, struct drps_err *err)
{
    struct least m = {salt, min_out};
    memset(min_out, 0xff, t->blocks * sizeof(*min_out));
    return each_batch(stream_of(t), take_least, &m, err);
}

static void add_work(struct stream *s, uint32_t batch, size_t n, void *ctx)
{
    (void)s;
    (void)batch;
    *(uint64_t *)ctx += (uint64_t)n * n;
}

static int stream_pair_work(struct counts *t, uint64_t *work_out, struct drps_err *err)
{
    *work_out = 0;
    return each_batch(stream_of(t), add_work, work_out, err);
}

/* Pairs in chains by their a. */
struct chained {
    const struct block_pair *pairs;
    uint32_t *next; /* own: [n] */
    uint32_t *count;
};

static void add_cocounts(struct stream *s, uint32_t batch, size_t n, void *ctx)
{
    struct chained *c = ctx;
    (void)batch;
    for (size_t i = 0; i < n; i++)
        for (uint32_t p = s->chain[s->list[i]]; p != NONE; p = c->next[p])
            c->count[p] += s->seen[c->pairs[p].b] == s->visit;
}

static int stream_cocounts(struct counts *t, const struct block_pair *pairs, size_t n,
                           uint32_t *count_out, struct drps_err *err)
{
    struct stream *s = stream_of(t);
    struct chained c = {pairs, drps_array_new(n, sizeof(*c.next)), count_out};
    if (!c.next || n >= NONE) {
        free(c.next);
        return drps_err_set(err, -ENOMEM, "no memory for %zu pairs of blocks", n);
    }
    memset(count_out, 0, n * sizeof(*count_out));
    for (size_t i = 0; i < n; i++) {
        c.next[i] = s->chain[pairs[i].a];
        s->chain[pairs[i].a] = (uint32_t)i;
    }
    int rc = n ? each_batch(s, add_cocounts, &c, err) : 0;
    for (size_t i = 0; i < n; i++)
        s->chain[pairs[i].a] = NONE;
    free(c.next);
    return rc;
}

/* ---- Lists ---- */

/* Accesses of the chosen rows as they come: index of the row, batch by batch. */
struct accesses {
    uint32_t *row; /* own: [cap] */
    size_t n, cap, most;
    size_t *end; /* own: [batches] of each batch */
};

/* s->chain says which row is chosen, and as which. */
static int collect(struct stream *s, struct accesses *found, struct drps_err *err)
{
    int rc = 0;
    for (uint32_t batch = s->first; batch < s->end && rc == 0; batch++) {
        const uint32_t *rows = NULL;
        size_t n;
        rc = visit_rows(s, batch, &rows, &n, err);
        if (rc == 0 && drps_array_reserve(&found->row, &found->cap, found->n + n, sizeof(uint32_t)))
            rc = drps_err_set(err, -ENOMEM, "no memory for %zu accesses", found->n + n);
        for (size_t i = 0; rc == 0 && i < n; i++)
            if (s->chain[rows[i]] != NONE) found->row[found->n++] = s->chain[rows[i]];
        if (rc == 0 && found->n > found->most)
            rc = drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                              "the rows asked for have more than %zu accesses", found->most);
        found->end[batch] = found->n;
    }
    return rc;
}

/* Copy what was found to lists. As in access.c, start[row + 1] is where a row's batches begin, then
 * where they end. */
static void copy_lists(const struct stream *s, const struct accesses *found, struct access *out)
{
    size_t i = 0;
    for (size_t k = 0; k < found->n; k++)
        out->start[(size_t)found->row[k] + 2]++;
    for (size_t row = 2; row < (size_t)out->rows + 2; row++)
        out->start[row] += out->start[row - 1];
    for (uint32_t batch = s->first; batch < s->end; batch++)
        for (; i < found->end[batch]; i++)
            out->batch[out->start[(size_t)found->row[i] + 1]++] = batch;
}

static int stream_lists(struct counts *t, const uint32_t *rows, size_t n, uint64_t memory_bytes,
                        struct access *out, struct drps_err *err)
{
    struct stream *s = stream_of(t);
    struct accesses found = {.most = (size_t)(memory_bytes / sizeof(uint32_t)),
                             .end = drps_array_new(s->end, sizeof(*found.end))};
    *out = (struct access){0};
    if (!found.end) return drps_err_set(err, -ENOMEM, "no memory to list accesses");
    for (size_t i = 0; i < n; i++)
        s->chain[rows[i]] = (uint32_t)i;
    int rc = collect(s, &found, err);
    for (size_t i = 0; i < n; i++)
        s->chain[rows[i]] = NONE;
    if (rc == 0) rc = drps_access_new((uint32_t)n, t->batches, found.n, memory_bytes, out, err);
    if (rc == 0)
        copy_lists(s, &found, out);
    else
        drps_access_free(out);
    free(found.row);
    free(found.end);
    return rc;
}

/* ---- Pairs, of blocks that are loaded ---- */

static void unload(struct stream *s)
{
    if (s->loaded) s->loaded->ops->close(s->loaded);
    s->loaded = NULL;
    drps_access_free(&s->lists);
}

static uint64_t fixed_bytes(const struct access_source *from)
{
    return (uint64_t)from->rows * ROW_BYTES;
}

/* What pairs() takes beside accesses. */
static uint64_t loading_bytes(uint64_t blocks, uint64_t batches)
{
    return blocks * (ROW_BYTES + LOADED_ROW_BYTES) + batches * LOADED_BATCH_BYTES;
}

uint64_t drps_stream_pair_accesses(uint64_t blocks, uint64_t batches, uint64_t memory_bytes)
{
    const uint64_t taken = loading_bytes(blocks, batches);
    return memory_bytes > taken ? (memory_bytes - taken) / LOADED_INCIDENCE_BYTES : 0;
}

/* start[block + 2] is how many batches the block has; all of them, or they are refused. */
static int count_lists(struct stream *s, uint64_t *n_out, struct drps_err *err)
{
    const uint32_t blocks = s->counts.blocks;
    char needed[32], given[32];
    uint64_t n = 0;
    int rc = 0;
    for (uint32_t batch = s->first; batch < s->end && rc == 0; batch++) {
        size_t met;
        rc = visit_blocks(s, batch, &met, err);
        for (size_t i = 0; rc == 0 && i < met; i++) {
            if (!s->group[s->list[i]]) continue;
            s->lists.start[(size_t)s->list[i] + 2]++;
            n++;
        }
    }
    if (rc < 0) return rc;
    *n_out = n;
    const uint64_t bytes = loading_bytes(blocks, s->counts.batches) + n * LOADED_INCIDENCE_BYTES;
    if (bytes <= s->from.memory_bytes) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "comparing all blocks that may merge, which batches use %" PRIu64
                        " times, takes %s, more than %s: leave rows of few batches alone",
                        n, drps_size_format(bytes, needed, sizeof(needed)),
                        drps_size_format(s->from.memory_bytes, given, sizeof(given)));
}

/* Fill the lists of blocks. As in access.c, start[block + 1] is where a block's batches begin, then
 * where they end. */
static int fill_lists(struct stream *s, struct drps_err *err)
{
    uint64_t *start = s->lists.start;
    int rc = 0;
    for (size_t b = 2; b < (size_t)s->counts.blocks + 2; b++)
        start[b] += start[b - 1];
    for (uint32_t batch = s->first; batch < s->end && rc == 0; batch++) {
        size_t met;
        rc = visit_blocks(s, batch, &met, err);
        for (size_t i = 0; rc == 0 && i < met; i++)
            if (s->group[s->list[i]]) s->lists.batch[start[(size_t)s->list[i] + 1]++] = batch;
    }
    return rc;
}

static int load(struct stream *s, struct drps_err *err)
{
    const uint32_t blocks = s->counts.blocks;
    uint64_t n = 0;
    s->lists = (struct access){.rows = blocks, .batches = s->counts.batches};
    s->lists.start = calloc((size_t)blocks + 2, sizeof(*s->lists.start));
    int rc = s->lists.start ? count_lists(s, &n, err)
                            : drps_err_set(err, -ENOMEM, "no memory to pair %u blocks", blocks);
    if (rc == 0 && !(s->lists.batch = drps_array_new((size_t)n, sizeof(*s->lists.batch))))
        rc = drps_err_set(err, -ENOMEM, "no memory for %" PRIu64 " accesses", n);
    if (rc == 0) rc = fill_lists(s, err);
    if (rc == 0) rc = drps_counts_open(&s->lists, 1, 0, &s->loaded, err);
    if (rc == 0) {
        s->loaded->stop = s->counts.stop;
        rc = s->loaded->ops->groups(s->loaded, s->group, err);
    }
    if (rc < 0) unload(s);
    return rc;
}

static int stream_groups(struct counts *t, const uint8_t *group, struct drps_err *err)
{
    (void)err;
    memcpy(stream_of(t)->group, group, t->blocks);
    unload(stream_of(t));
    return 0;
}

static int stream_pairs(struct counts *t, const uint32_t *with, size_t with_n,
                        uint64_t memory_bytes, struct block_pair_count **pairs_out, size_t *n_out,
                        struct drps_err *err)
{
    struct stream *s = stream_of(t);
    *pairs_out = NULL;
    *n_out = 0;
    int rc = s->loaded ? 0 : load(s, err);
    if (rc < 0) return rc;
    return s->loaded->ops->pairs(s->loaded, with, with_n, memory_bytes, pairs_out, n_out, err);
}

/* ---- Merging ---- */

/* What is loaded follows, unless one of the two is not in it. */
static int merge_loaded(struct stream *s, const struct block_pair *p, struct drps_err *err)
{
    if (!s->loaded || (!s->group[p->a] && !s->group[p->b])) return 0;
    if (s->group[p->a] && s->group[p->b]) return s->loaded->ops->merge(s->loaded, p, 1, err);
    unload(s);
    return 0;
}

static int stream_merge(struct counts *t, const struct block_pair *pairs, size_t n,
                        struct drps_err *err)
{
    struct stream *s = stream_of(t);
    int rc = access_stopped(t->stop, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        s->into[pairs[i].b] = pairs[i].a;
        rc = merge_loaded(s, &pairs[i], err);
    }
    return rc;
}

static int stream_reset(struct counts *t, struct drps_err *err)
{
    struct stream *s = stream_of(t);
    (void)err;
    for (uint32_t b = 0; b < t->blocks; b++)
        s->into[b] = b;
    unload(s);
    return 0;
}

/* ---- Opening ---- */

static void stream_close(struct counts *t)
{
    if (!t) return;
    struct stream *s = stream_of(t);
    unload(s);
    drps_steps_close(s->steps);
    free(s->into);
    free(s->seen);
    free(s->chain);
    free(s->group);
    free(s->list);
    free(s);
}

static const struct counts_ops stream_ops = {
    .counts = stream_counts,
    .signatures = stream_signatures,
    .minhash = stream_minhash,
    .cocounts = stream_cocounts,
    .groups = stream_groups,
    .pairs = stream_pairs,
    .merge = stream_merge,
    .pair_work = stream_pair_work,
    .reset = stream_reset,
    .lists = stream_lists,
    .close = stream_close,
};

static int make_room(struct stream *s, struct drps_err *err)
{
    const size_t rows = s->from.rows;
    s->into = drps_array_new(rows, sizeof(*s->into));
    s->seen = calloc(rows + 1, sizeof(*s->seen));
    s->chain = drps_array_new(rows, sizeof(*s->chain));
    s->group = drps_array_new(rows, 1);
    if (!s->into || !s->seen || !s->chain || !s->group)
        return drps_err_set(err, -ENOMEM, "no memory to count accesses of %zu rows", rows);
    memset(s->chain, 0xff, rows * sizeof(*s->chain));
    memset(s->group, 1, rows);
    return stream_reset(&s->counts, err);
}

int drps_counts_stream(const struct access_source *from, uint32_t first, uint32_t end,
                       struct counts **t_out, struct drps_err *err)
{
    char needed[32], given[32];

    *t_out = NULL;
    if (fixed_bytes(from) > from->memory_bytes)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "to count accesses of %" PRIu32 " rows takes %s (%" PRIu64
                            " bytes) at least, more than the %s it may take",
                            from->rows, drps_size_format(fixed_bytes(from), needed, sizeof(needed)),
                            fixed_bytes(from),
                            drps_size_format(from->memory_bytes, given, sizeof(given)));
    struct stream *s = calloc(1, sizeof(*s));
    if (!s) return drps_err_set(err, -ENOMEM, "no memory to count accesses");
    s->counts = (struct counts){
        .ops = &stream_ops,
        .blocks = from->rows,
        .batches = from->batches,
        .streamed = 1,
        .access_bytes = from->memory_bytes,
        .pair_accesses = drps_stream_pair_accesses(from->rows, from->batches, from->memory_bytes),
        .stop = from->stop};
    s->from = *from;
    s->first = first;
    s->end = end;
    int rc = make_room(s, err);
    if (rc == 0)
        rc = drps_steps_open(from->io, from->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, from->batches,
                             READ_BUFFER, &s->steps, err);
    if (rc == 0)
        *t_out = &s->counts;
    else
        stream_close(&s->counts);
    return rc;
}

int drps_counts_make(const struct access_source *from, uint32_t first, uint32_t end,
                     struct counts **t_out, struct drps_err *err)
{
    int rc = drps_counts_load(from, first, end, t_out, err);
    if (rc != DRPS_E_MEMORY_BUDGET) return rc;
    drps_err_clear(err);
    return drps_counts_stream(from, first, end, t_out, err);
}
