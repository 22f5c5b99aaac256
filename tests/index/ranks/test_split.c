/*
 * Plans for several workers against the plan for one of the same data: who has which rows, what a
 * round unites, what is sent; and damaged rounds.
 *
 *   test_index_ranks [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"
#include "index/drps_index.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_round.h"
#include "index/ranks/drps_owners.h"
#include "index/ranks/drps_placement.h"
#include "index/verify/drps_verify.h"
#include "support/batch_body.h"
#include "support/index_case.h"
#include "support/owned_io.h"

static uint64_t seed = 20240607;

/* One record of a plan's file, whole. */
struct record {
    struct drps_recfile *file;
    void *data;
    size_t bytes;
};

static void read_record(const struct drps_plan *plan, const char *name, uint32_t kind, uint64_t i,
                        struct record *out)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_file(plan, name, kind, &out->file, &err) < 0) fail_msg("%s", err.text);
    assert_true(i < drps_recfile_count(out->file));
    out->bytes = (size_t)drps_recfile_bytes(out->file, i);
    out->data = malloc((size_t)drps_recfile_run_bytes(out->file, i, 1) + 8);
    assert_int_equal(drps_recfile_read(out->file, i, 1, out->data, NULL), 0);
    drps_recfile_close(out->file);
}

static uint32_t *read_list(const struct drps_plan *plan, uint64_t i, size_t *n_out)
{
    struct record r;
    read_record(plan, "rows.rec", DRPS_KIND_ROWS, i, &r);
    *n_out = drps_list_count(r.data);
    uint32_t *list = calloc(*n_out + 1, sizeof(*list));
    assert_int_equal(drps_list_decode(r.data, r.bytes, list, NULL, NULL), 0);
    free(r.data);
    return list;
}

enum { WORKERS_MOST = 64 };

struct cluster {
    struct scratch scratch;
    struct case_run one, many;
    uint32_t workers;
    struct drps_plan *plan; /* of one worker */
    struct drps_plan *parts[WORKERS_MOST];
    uint32_t *old;              /* [rows] of a placed id of the many, that of the one */
    struct drps_dppa_wish dppa; /* of the many; set before cluster_make() */
    double balance;             /* the same */
    int weighted;               /* the same: the last machine counts as two */
};

static void must_run(struct case_run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct owned_io o;
    owned_io_init(&o, &drps_plan_kind);
    if (drps_index_run(&o.io, &run->options, &run->result, &err) < 0) fail_msg("%s", err.text);
    case_verify(run->out);
}

struct rows_by_name {
    uint32_t *rows; /* [most] in the order of names; the intercept, which has none, in front */
    size_t n, most;
};

static int add_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                    size_t bytes, struct drps_err *err)
{
    struct rows_by_name *names = ctx;
    (void)key, (void)field, (void)text, (void)bytes, (void)err;
    assert_true(names->n < names->most && row < names->most);
    names->rows[names->n++] = row;
    return 0;
}

static struct rows_by_name read_names(const char *dir, size_t rows)
{
    struct rows_by_name names = {.rows = calloc(rows, sizeof(uint32_t)), .n = 1, .most = rows};
    struct drps_names *file;
    assert_int_equal(drps_names_open(drps_io_os(), dir, &file, NULL), 0);
    assert_int_equal(drps_names_scan(file, add_name, &names, NULL), 0);
    assert_int_equal(names.n, rows);
    drps_names_close(file);
    return names;
}

/* Every row of the one is one of the many's. */
static void match_rows(struct cluster *c)
{
    const size_t rows = c->one.result.info.rows;
    struct rows_by_name one = read_names(c->one.out, rows);
    struct rows_by_name many = read_names(c->many.out, rows);
    c->old = malloc(rows * sizeof(*c->old));
    memset(c->old, 0xff, rows * sizeof(*c->old));
    for (size_t i = 0; i < rows; i++) {
        assert_int_equal(c->old[many.rows[i]], UINT32_MAX);
        c->old[many.rows[i]] = one.rows[i];
    }
    assert_int_equal(c->old[0], 0); /* the intercept */
    free(one.rows);
    free(many.rows);
}

static void cluster_make(struct cluster *c, uint32_t workers, enum case_format format,
                         const char *algo, size_t samples, const char *blocks,
                         const char *partition, const char *how)
{
    struct drps_err err = DRPS_ERR_INIT;
    scratch_begin(&c->scratch);
    const char *input = case_input(&c->scratch, "in", format, samples, 300, seed);
    assert_true(workers <= WORKERS_MOST);
    c->workers = workers;
    for (int several = 0; several < 2; several++) {
        struct case_run *run = several ? &c->many : &c->one;
        case_begin(run, &c->scratch, input, algo);
        (void)snprintf(run->out, sizeof(run->out), "%s",
                       scratch_path(&c->scratch, several ? "many" : "one"));
        run->options.blocks.by = blocks;
        run->options.test_fraction = 0.2;
        run->options.factors = strcmp(algo, "lmf") == 0 ? 2 : 0;
        run->options.workers = several ? workers : 1;
        run->options.partition = several ? partition : NULL;
        run->options.samples = several ? how : NULL;
        if (several) run->options.dppa = c->dppa;
        if (several) run->options.balance = c->balance;
        for (uint32_t w = 0; several && c->weighted && w < workers; w++)
            run->options.machine_weights[run->options.machine_weights_n++] = 1 + (w == workers - 1);
        must_run(run);
    }
    match_rows(c);
    if (drps_plan_open(drps_io_os(), c->one.out, &c->plan, &err) < 0) fail_msg("%s", err.text);
    for (uint32_t r = 0; workers > 1 && r < workers; r++)
        if (drps_plan_open_rank(drps_io_os(), c->many.out, r, &c->parts[r], &err) < 0)
            fail_msg("%s", err.text);
}

static void cluster_end(struct cluster *c)
{
    drps_plan_close(c->plan);
    for (uint32_t r = 0; r < c->workers; r++)
        drps_plan_close(c->parts[r]);
    free(c->old);
    scratch_end(&c->scratch);
}

/* What one server says of a round. */
struct served {
    uint32_t *ids, *positions;
    size_t n, part[WORKERS_MOST + 1];
};

static void read_served(const struct drps_plan *part, uint64_t round, struct served *out)
{
    const struct drps_plan_ranks *ranks = &part->info.ranks;
    struct record r;
    struct drps_err err = DRPS_ERR_INIT;
    out->ids = read_list(part, round, &out->n);
    out->positions = calloc(ranks->max_round_uses + 1, sizeof(*out->positions));
    read_record(part, "positions.rec", DRPS_KIND_POSITIONS, round, &r);
    if (drps_positions_decode(r.data, r.bytes, ranks->count, out->n, ranks->max_round_uses,
                              out->positions, out->part, &err) < 0)
        fail_msg("%s", err.text);
    free(r.data);
}

static uint32_t local_row(const struct drps_batch *b, size_t j)
{
    return b->local32 ? b->local32[j] : b->local16[j];
}

/* Entry j of a is one of b's in [from, to); a sample's rows are distinct. */
static void check_entry(const struct drps_batch *a, const uint32_t *rows_a, size_t j,
                        const struct drps_batch *b, const uint32_t *rows_b, size_t from, size_t to)
{
    while (from < to && rows_b[local_row(b, from)] != rows_a[local_row(a, j)])
        from++;
    assert_true(from < to);
    if (a->values) assert_memory_equal(a->values + j, b->values + from, sizeof(*a->values));
}

/* Both batches have the same samples of the same rows; rows_b [b->rows] have been named as rows_a
 * are. A sample's entries are in the order of each one's own numbers. */
static void check_same_batch(const struct drps_batch *a, const uint32_t *rows_a,
                             const struct drps_batch *b, const uint32_t *rows_b)
{
    assert_int_equal(a->samples, b->samples);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->nnz, b->nnz);
    assert_int_equal(!a->values, !b->values);
    assert_memory_equal(a->labels, b->labels, a->samples * sizeof(*a->labels));
    for (size_t s = 0; s <= a->samples; s++)
        assert_int_equal(drps_batch_start(a, s), drps_batch_start(b, s));
    for (size_t s = 0; s < a->samples; s++) {
        const size_t from = drps_batch_start(a, s), to = drps_batch_start(a, s + 1);
        for (size_t j = from; j < to; j++)
            check_entry(a, rows_a, j, b, rows_b, from, to);
    }
}

/* A worker's rows of the round: the parts of all servers, put together, as the one numbers them. */
static uint32_t *join_parts(const struct cluster *c, const struct served *served, uint64_t round,
                            uint32_t worker, size_t n)
{
    uint32_t shares[WORKERS_MOST];
    uint32_t *rows = calloc(n + 1, sizeof(*rows));
    struct record share;
    size_t at = 0;
    read_record(c->parts[worker], "shares.rec", DRPS_KIND_SHARES, round, &share);
    assert_int_equal(drps_shares_decode(share.data, share.bytes, c->workers, n, shares, NULL), 0);
    for (uint32_t s = 0; s < c->workers; s++) {
        const uint64_t first = c->parts[s]->info.ranks.first_row;
        assert_int_equal(served[s].part[worker + 1] - served[s].part[worker], shares[s]);
        for (size_t i = served[s].part[worker]; i < served[s].part[worker + 1]; i++)
            rows[at++] = c->old[first + served[s].ids[served[s].positions[i]]];
    }
    assert_int_equal(at, n);
    free(share.data);
    return rows;
}

/* A batch of the plan for one worker, or none. */
static void check_batch(const struct cluster *c, const struct served *served, uint64_t round,
                        uint32_t worker, uint64_t batch, int there)
{
    struct record body, own;
    struct drps_batch a, b;
    size_t n = 0;

    read_record(c->parts[worker], "data.rec", DRPS_KIND_DATA, round, &own);
    own.data = body_unpack(own.data, &own.bytes);
    assert_int_equal(drps_batch_decode(own.data, own.bytes, &b, NULL), 0);
    uint32_t *rows = join_parts(c, served, round, worker, b.rows);
    if (there) {
        uint32_t *want = read_list(c->plan, batch, &n);
        read_record(c->plan, "data.rec", DRPS_KIND_DATA, batch, &body);
        body.data = body_unpack(body.data, &body.bytes);
        assert_int_equal(drps_batch_decode(body.data, body.bytes, &a, NULL), 0);
        check_same_batch(&a, want, &b, rows);
        free(want);
        free(body.data);
    } else {
        assert_int_equal(b.samples, 0);
        assert_int_equal(b.rows, 0);
    }
    free(rows);
    free(own.data);
}

/* Every row that is opened is some worker's: the union has no others. */
static void check_needed(const struct served *s, uint32_t workers)
{
    unsigned char *seen = calloc(s->n + 1, 1);
    for (size_t i = 0; i < s->part[workers]; i++)
        seen[s->positions[i]] = 1;
    for (size_t i = 0; i < s->n; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
}

static void check_rounds(struct cluster *c, uint64_t rounds, uint64_t first_round,
                         uint64_t first_batch, uint64_t batches)
{
    struct served served[WORKERS_MOST];
    for (uint64_t t = 0; t < rounds; t++) {
        for (uint32_t s = 0; s < c->workers; s++) {
            read_served(c->parts[s], first_round + t, &served[s]);
            check_needed(&served[s], c->workers);
        }
        for (uint32_t w = 0; w < c->workers; w++) {
            const uint64_t k = t * c->workers + w;
            check_batch(c, served, first_round + t, w, first_batch + k, k < batches);
        }
        for (uint32_t s = 0; s < c->workers; s++) {
            free(served[s].ids);
            free(served[s].positions);
        }
    }
}

/* Returns how many rows other ranks pull from this server in the first training round that has
 * them. */
static uint64_t fresh_of(const struct cluster *c, uint32_t server)
{
    const struct drps_plan_info *info = &c->parts[server]->info;
    uint64_t *first = calloc((size_t)info->rows + 1, sizeof(*first)); /* round, from 1 */
    uint64_t fresh = 0;
    assert_non_null(first);
    for (uint64_t t = 0; t < info->batches; t++) {
        struct served s;
        read_served(c->parts[server], t, &s);
        for (uint32_t w = 0; w < c->workers; w++)
            for (size_t i = s.part[w]; i < s.part[w + 1]; i++) {
                const uint32_t id = s.ids[s.positions[i]];
                if (!first[id]) first[id] = t + 1;
                fresh += w != server && first[id] == t + 1;
            }
        free(s.ids);
        free(s.positions);
    }
    free(first);
    return fresh;
}

static void check_fresh(const struct cluster *c)
{
    uint64_t fresh = 0;
    for (uint32_t s = 0; s < c->workers; s++)
        fresh += fresh_of(c, s);
    assert_true(fresh > 0);
    assert_int_equal(c->many.result.links.fresh_rows, fresh);
}

static void check_case(uint32_t workers, enum case_format format, const char *algo, size_t samples,
                       const char *blocks, const char *partition)
{
    struct cluster *c = calloc(1, sizeof(*c));
    cluster_make(c, workers, format, algo, samples, blocks, partition, "dealt");
    const struct drps_plan_info *one = &c->plan->info, *part = &c->parts[0]->info;
    uint64_t rows = 0, pulled = 0, served = 0;
    assert_int_equal(part->batches, (one->batches + workers - 1) / workers);
    assert_int_equal(part->eval_batches, (one->eval_batches + workers - 1) / workers);
    check_rounds(c, part->batches, 0, 0, one->batches);
    check_rounds(c, part->eval_batches, part->batches, one->batches, one->eval_batches);
    for (uint32_t r = 0; r < workers; r++) {
        const struct drps_plan_ranks *k = &c->parts[r]->info.ranks;
        assert_int_equal(k->first_row, rows);
        assert_string_equal(k->whole, c->parts[0]->info.ranks.whole);
        rows += c->parts[r]->info.rows;
        pulled += k->pulled_rows + k->eval_pulled_rows;
        served += k->served_rows + k->eval_served_rows;
    }
    assert_int_equal(rows, one->rows);
    check_fresh(c);
    for (uint64_t i = 0; !partition && i < rows; i++)
        assert_int_equal(c->old[i], i); /* ranges of the rows as they are */
    assert_int_equal(pulled, served);   /* what one gets another gives */
    assert_true(pulled > 0);
    assert_true(c->many.result.info.row_uses <= one->row_uses);
    cluster_end(c);
    free(c);
}

static size_t block_of(const uint32_t *block_first, uint32_t row)
{
    size_t b = 0;
    while (block_first[b + 1] <= row)
        b++;
    return b;
}

/* What a builder did not merge, homes do not: rows of one block were in one block before. */
static void test_homes_keep_merged_blocks_apart(void **state)
{
    struct cluster *c = calloc(1, sizeof(*c));
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *before, *after;
    size_t joint = 0; /* rows that share a block with the one before them */
    (void)state;
    cluster_make(c, 3, CASE_LIBSVM, "lor", 700, "topk", "auto", "dealt");
    if (drps_plan_blocks(c->plan, &before, &err) < 0) fail_msg("%s", err.text);
    for (uint32_t r = 0; r < c->workers; r++) {
        const struct drps_plan_info *info = &c->parts[r]->info;
        const uint32_t *old = c->old + info->ranks.first_row;
        if (drps_plan_blocks(c->parts[r], &after, &err) < 0) fail_msg("%s", err.text);
        for (size_t b = 0; b < info->blocks; b++)
            for (uint32_t i = after[b] + 1; i < after[b + 1]; i++, joint++)
                assert_int_equal(block_of(before, old[i]), block_of(before, old[i - 1]));
        free(after);
    }
    assert_true(joint > 0);
    free(before);
    cluster_end(c);
    free(c);
}

static void test_parts_put_together_are_the_batches(void **state)
{
    (void)state;
    check_case(2, CASE_LIBSVM, "lor", 1000, "pattern", NULL);
    check_case(3, CASE_RATINGS, "lmf", 700, "topk", NULL);
    check_case(5, CASE_LIBSVM, "lor", 650, "id", NULL);
    check_case(3, CASE_LIBSVM, "lor", 700, "pattern", "counts");
    check_case(7, CASE_LIBSVM, "lor", 200, "none",
               NULL); /* a round has more workers than batches */
}

static void test_placed_parts_put_together_are_the_batches(void **state)
{
    (void)state;
    check_case(3, CASE_LIBSVM, "lor", 1000, "pattern", "auto");
    check_case(2, CASE_RATINGS, "lmf", 700, "topk", "greedy");
    check_case(5, CASE_RATINGS, "lmf", 700, "pattern", "auto");
    check_case(5, CASE_LIBSVM, "lor", 650, "id", "dppa");
    check_case(7, CASE_LIBSVM, "lor", 200, "none", "hash");
    check_case(64, CASE_LIBSVM, "lor", 400, "pattern", "hash"); /* fewer units than servers */
}

/* ---- Placement ---- */

enum { PLANTED_WORKERS = 3, PLANTED_BATCH = 20, PLANTED_ROWS = 40 };

/* Batches of a worker touch, of every three rows, their own, and in each sample one that all
 * share. */
static const char *planted(struct scratch *s)
{
    struct random_source r = {.seed = seed};
    const char *path = scratch_path(s, "planted");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < 60 * PLANTED_BATCH; i++) {
        const unsigned worker = i / PLANTED_BATCH % PLANTED_WORKERS;
        (void)fprintf(f, "%u %u:1 %u:1\n", i % 2, (unsigned)random_below(&r, 5),
                      100 + worker + PLANTED_WORKERS * (unsigned)random_below(&r, PLANTED_ROWS));
    }
    assert_int_equal(fclose(f), 0);
    return path;
}

static void test_auto_pulls_less_than_ranges_and_hash(void **state)
{
    static const char *const partitions[] = {"range", "hash", "greedy", "dppa", "auto"};
    enum { RANGE, HASH, AUTO = 4, ALL };
    struct scratch scratch;
    uint64_t pulled[ALL], uses[ALL];
    (void)state;
    scratch_begin(&scratch);
    const char *input = planted(&scratch);
    for (int p = 0; p < ALL; p++) {
        struct case_run run;
        case_begin(&run, &scratch, input, "lor");
        run.options.order = "given";
        run.options.blocks.by = "none";
        run.options.batch_size = PLANTED_BATCH;
        run.options.workers = PLANTED_WORKERS;
        run.options.partition = partitions[p];
        run.options.samples = "dealt";
        run.options.force = 1;
        must_run(&run);
        pulled[p] = run.result.info.ranks.pulled_rows;
        uses[p] = run.result.info.row_uses;
        assert_int_equal(run.result.info.max_block_rows, 1); /* though 2 KiB hold 256 */
    }
    assert_true(pulled[AUTO] <= pulled[RANGE]);
    assert_true(2 * pulled[AUTO] <= pulled[HASH]); /* the shared rows and the intercept remain */
    assert_int_equal(uses[AUTO], uses[RANGE]);
    scratch_end(&scratch);
}

/* Where the network is slow, greedy spares it; where it costs nothing, it only shares out the
 * disks' work. Without hot rows it places blocks as a whole. */
static void test_greedy_weighs_what_it_is_told(void **state)
{
    static const struct {
        uint64_t net_bps;
        double hot_share;
    } ways[] = {{1, 1}, {UINT64_C(1) << 60, 1}, {1, 0}};
    uint64_t pulled[3];
    struct scratch scratch;
    (void)state;
    scratch_begin(&scratch);
    const char *input = planted(&scratch);
    for (int i = 0; i < 3; i++) {
        struct case_run run;
        case_begin(&run, &scratch, input, "lor");
        run.options.order = "given";
        run.options.batch_size = PLANTED_BATCH;
        run.options.workers = PLANTED_WORKERS;
        run.options.partition = "greedy";
        run.options.samples = "dealt";
        run.options.net_bps = ways[i].net_bps;
        run.options.hot_share = ways[i].hot_share;
        run.options.has_hot_share = 1;
        run.options.force = 1;
        must_run(&run);
        pulled[i] = run.result.info.ranks.pulled_rows;
    }
    assert_true(pulled[0] < pulled[1]);
    assert_true(pulled[0] < pulled[2]);
    scratch_end(&scratch);
}

/* ---- Placed samples ---- */

/* Hashes of samples: label, and entries by row and value. */
struct hashes {
    uint64_t *hash; /* own */
    size_t n, cap;
};

static void add_samples(struct hashes *h, const struct drps_batch *b, const uint32_t *rows)
{
    assert_int_equal(drps_array_reserve(&h->hash, &h->cap, h->n + b->samples, sizeof(*h->hash)), 0);
    for (size_t s = 0; s < b->samples; s++) {
        uint32_t label;
        memcpy(&label, &b->labels[s], sizeof(label));
        uint64_t hash = drps_mix64(label);
        for (size_t j = drps_batch_start(b, s); j < drps_batch_start(b, s + 1); j++) {
            uint32_t value = 0x3f800000; /* 1 */
            if (b->values) memcpy(&value, &b->values[j], sizeof(value));
            hash += drps_mix64((uint64_t)rows[local_row(b, j)] << 32 | value); /* in any order */
        }
        h->hash[h->n++] = hash;
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void hash_one(const struct cluster *c, uint64_t first, uint64_t batches, struct hashes *out)
{
    for (uint64_t k = first; k < first + batches; k++) {
        struct record body;
        struct drps_batch b;
        size_t n;
        uint32_t *rows = read_list(c->plan, k, &n);
        read_record(c->plan, "data.rec", DRPS_KIND_DATA, k, &body);
        body.data = body_unpack(body.data, &body.bytes);
        assert_int_equal(drps_batch_decode(body.data, body.bytes, &b, NULL), 0);
        add_samples(out, &b, rows);
        free(rows);
        free(body.data);
    }
}

/* A round's batches; samples_out [workers] are added to. A worker's batches differ by one sample.
 */
static void hash_round(const struct cluster *c, uint64_t round, struct hashes *out, size_t *samples,
                       size_t *least, size_t *most)
{
    struct served served[WORKERS_MOST];
    for (uint32_t s = 0; s < c->workers; s++)
        read_served(c->parts[s], round, &served[s]);
    for (uint32_t w = 0; w < c->workers; w++) {
        struct record own;
        struct drps_batch b;
        read_record(c->parts[w], "data.rec", DRPS_KIND_DATA, round, &own);
        own.data = body_unpack(own.data, &own.bytes);
        assert_int_equal(drps_batch_decode(own.data, own.bytes, &b, NULL), 0);
        assert_true(b.samples <= c->parts[w]->info.batch_size * (1 + (size_t)c->weighted));
        uint32_t *rows = join_parts(c, served, round, w, b.rows);
        add_samples(out, &b, rows);
        samples[w] += b.samples;
        if (b.samples < least[w]) least[w] = b.samples;
        if (b.samples > most[w]) most[w] = b.samples;
        assert_true(most[w] - least[w] <= 1);
        free(rows);
        free(own.data);
    }
    for (uint32_t s = 0; s < c->workers; s++) {
        free(served[s].ids);
        free(served[s].positions);
    }
}

/* Every sample of the one is in one batch of one worker, and there is no other. */
static void check_all_are_there(const struct cluster *c, uint64_t first_batch, uint64_t batches,
                                uint64_t first_round, uint64_t rounds)
{
    struct hashes one = {0}, many = {0};
    size_t samples[WORKERS_MOST] = {0}, least[DRPS_PLAN_WORKERS_MAX], most[WORKERS_MOST] = {0},
           largest = 0;
    memset(least, 0xff, sizeof(least));
    hash_one(c, first_batch, batches, &one);
    for (uint64_t t = first_round; t < first_round + rounds; t++)
        hash_round(c, t, &many, samples, least, most);
    assert_int_equal(many.n, one.n);
    qsort(one.hash, one.n, sizeof(*one.hash), by_value);
    qsort(many.hash, many.n, sizeof(*many.hash), by_value);
    assert_memory_equal(one.hash, many.hash, one.n * sizeof(*one.hash));
    for (uint32_t w = 0; w < c->workers; w++) {
        const double limit = 1.02 * (double)one.n / c->workers,
                     even = (double)(one.n / c->workers + 1);
        assert_true((double)samples[w] <= (limit > even ? limit : even));
        if (samples[w] > largest) largest = samples[w];
    }
    const uint64_t size = c->parts[0]->info.batch_size;
    assert_int_equal(rounds,
                     (largest + size - 1) / size); /* no more rounds than the largest takes */
    free(one.hash);
    free(many.hash);
}

static void test_placed_samples_are_all_there(void **state)
{
    static const struct {
        uint32_t workers;
        enum case_format format;
        const char *algo, *blocks, *partition;
        size_t samples;
    } cases[] = {
        {.workers = 3,
         .format = CASE_LIBSVM,
         .algo = "lor",
         .blocks = "pattern",
         .partition = "auto",
         .samples = 1000},
        {.workers = 2,
         .format = CASE_RATINGS,
         .algo = "lmf",
         .blocks = "topk",
         .partition = "greedy",
         .samples = 700},
        {.workers = 5,
         .format = CASE_RATINGS,
         .algo = "lmf",
         .blocks = "pattern",
         .partition = "auto",
         .samples = 700},
        {.workers = 5,
         .format = CASE_CSV,
         .algo = "lor",
         .blocks = "id",
         .partition = "dppa",
         .samples = 650},
        {.workers = 7,
         .format = CASE_LIBSVM,
         .algo = "lor",
         .blocks = "none",
         .partition = "auto",
         .samples = 200},
        {.workers = 64,
         .format = CASE_LIBSVM,
         .algo = "lor",
         .blocks = "pattern",
         .partition = "auto",
         .samples = 400}, /* batches of a few samples, or none */
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cluster *c = calloc(1, sizeof(*c));
        cluster_make(c, cases[i].workers, cases[i].format, cases[i].algo, cases[i].samples,
                     cases[i].blocks, cases[i].partition, "placed");
        const struct drps_plan_info *one = &c->plan->info, *part = &c->parts[0]->info;
        check_all_are_there(c, 0, one->batches, 0, part->batches);
        check_all_are_there(c, one->batches, one->eval_batches, part->batches, part->eval_batches);
        c->many.options.force = 1; /* again: a hash of all batches and of who has which rows */
        must_run(&c->many);
        assert_string_equal(c->many.result.info.ranks.whole, part->ranks.whole);
        cluster_end(c);
        free(c);
    }
}

/* A round has the samples that it has where they are dealt, as many for every worker; but for the
 * last, which has what is left. */
static void check_round(const struct cluster *c, uint64_t round)
{
    const struct drps_plan_info *one = &c->plan->info;
    const uint64_t first = round * c->workers, left = one->batches - first;
    struct hashes dealt = {0}, found = {0};
    size_t samples[WORKERS_MOST] = {0}, least[WORKERS_MOST] = {0}, most[WORKERS_MOST] = {0};
    hash_one(c, first, left < c->workers ? left : c->workers, &dealt);
    memset(least, 0xff, sizeof(least));
    hash_round(c, round, &found, samples, least, most);
    assert_int_equal(found.n, dealt.n);
    qsort(dealt.hash, dealt.n, sizeof(*dealt.hash), by_value);
    qsort(found.hash, found.n, sizeof(*found.hash), by_value);
    assert_memory_equal(found.hash, dealt.hash, dealt.n * sizeof(*dealt.hash));
    for (uint32_t w = 0; w < c->workers; w++) {
        const double share =
            c->weighted ? (1.0 + (w == c->workers - 1)) / (c->workers + 1) : 1.0 / c->workers;
        assert_true((double)samples[w] < (double)dealt.n * share + 1);
        if (left > c->workers)
            assert_true((double)samples[w] > (double)(one->batch_size * c->workers) * share - 1);
    }
    free(dealt.hash);
    free(found.hash);
}

/* The entries of the worker with most of a round, to the mean. */
static double largest_of(const struct cluster *c, uint64_t round)
{
    double all = 0, most = 0, weights = 0;
    for (uint32_t w = 0; w < c->workers; w++) {
        struct record own;
        struct drps_batch b;
        read_record(c->parts[w], "data.rec", DRPS_KIND_DATA, round, &own);
        own.data = body_unpack(own.data, &own.bytes);
        assert_int_equal(drps_batch_decode(own.data, own.bytes, &b, NULL), 0);
        const double weight = 1 + (c->weighted && w == c->workers - 1);
        all += (double)b.nnz;
        weights += weight;
        if ((double)b.nnz / weight > most) most = (double)b.nnz / weight;
        free(own.data);
    }
    return most * weights / all;
}

/* The worst round is what the run says, and within the limit. */
static void check_balance(const struct cluster *c)
{
    const struct drps_index_links *links = &c->many.result.links;
    double largest = 0;
    for (uint64_t t = 0; t < c->parts[0]->info.batches; t++) {
        const double now = largest_of(c, t);
        if (now > largest) largest = now;
    }
    assert_true(fabs(largest - links->largest) < 1e-9);
    if (!(links->largest <= c->balance && links->largest_before > c->balance))
        fail_msg("%g of the mean, %g before; %g is asked for", links->largest,
                 links->largest_before, c->balance);
}

static void test_samples_stay_in_their_round(void **state)
{
    static const struct {
        uint32_t workers;
        enum case_format format;
        const char *algo, *partition, *how;
        size_t samples;
        double balance;
        int weighted;
    } cases[] = {
        {3, CASE_LIBSVM, "lor", "auto", "round", 1300, 0,
         0}, /* 1040 of training: the last has 140 */
        {2, CASE_RATINGS, "lmf", "greedy", "round", 1000, 0, 0},
        {5, CASE_CSV, "lor", "dppa", "round", 650, 0, 0}, /* less than a round */
        {3, CASE_LIBSVM, "lor", "auto", "round", 1300, 1.03, 0},
        {3, CASE_LIBSVM, "lor", "auto", "dealt", 1300, 1.03, 0},
        {3, CASE_LIBSVM, "lor", NULL, NULL, 1300, 1.03, 0},
        {3, CASE_LIBSVM, "lor", NULL, NULL, 1300, 0, 1},
        {4, CASE_LIBSVM, "lor", "counts", "dealt", 1300, 1.05, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cluster *c = calloc(1, sizeof(*c));
        c->balance = cases[i].balance;
        c->weighted = cases[i].weighted;
        cluster_make(c, cases[i].workers, cases[i].format, cases[i].algo, cases[i].samples,
                     "pattern", cases[i].partition, cases[i].how);
        const struct drps_plan_info *one = &c->plan->info, *part = &c->parts[0]->info;
        assert_int_equal(part->batches, (one->batches + c->workers - 1) / c->workers);
        for (uint64_t t = 0; t < part->batches; t++)
            check_round(c, t);
        if (c->balance > 0) check_balance(c);
        check_all_are_there(c, one->batches, one->eval_batches, part->batches, part->eval_batches);
        cluster_end(c);
        free(c);
    }
}

/* Samples of three kinds, in any order, each with rows of its own kind. */
static void test_placed_samples_pull_less(void **state)
{
    enum { KINDS = 3, FIELDS = 6, ROWS = 100, SAMPLES = 3000 };
    enum { DEALT, PLACED, USUAL, ROUND, HOWS };
    static const char *const how[] = {"dealt", "placed", NULL, "round"};
    struct random_source r = {.seed = seed};
    struct scratch scratch;
    uint64_t pulled[HOWS], hashed[HOWS];
    char whole[HOWS][DRPS_PLAN_ID_BYTES];
    (void)state;
    scratch_begin(&scratch);
    const char *input = scratch_path(&scratch, "kinds");
    FILE *f = fopen(input, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < SAMPLES; i++) {
        const unsigned kind = (unsigned)random_below(&r, KINDS);
        (void)fprintf(f, "%u", i % 2);
        for (unsigned k = 0; k < FIELDS; k++)
            (void)fprintf(f, " %u:1",
                          1 + (k * KINDS + kind) * ROWS + (unsigned)random_below(&r, ROWS));
        (void)fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
    for (int h = 0; h < HOWS; h++) {
        struct case_run run;
        case_begin(&run, &scratch, input, "lor");
        run.options.batch_size = 50;
        run.options.workers = KINDS;
        run.options.partition = "auto";
        run.options.samples = how[h];
        run.options.test_fraction = 0.2;
        run.options.force = 1;
        must_run(&run);
        const struct drps_index_links *links = &run.result.links;
        pulled[h] = run.result.info.ranks.pulled_rows + run.result.info.ranks.eval_pulled_rows;
        hashed[h] = links->hashed_rows;
        memcpy(whole[h], run.result.info.ranks.whole, sizeof(whole[h]));
        assert_int_equal(links->moved_rows, run.result.info.ranks.pulled_rows);
        assert_true(links->busiest_rows * KINDS >= 2 * links->moved_rows);
    }
    for (int h = PLACED; h < HOWS; h++) {
        if (!(4 * pulled[h] < pulled[DEALT]))
            fail_msg("%s: %" PRIu64 " rows pulled, %" PRIu64 " with samples dealt", how[h],
                     pulled[h], pulled[DEALT]);
        assert_int_equal(hashed[h], hashed[DEALT]); /* what they would use, were they dealt */
    }
    assert_string_equal(whole[USUAL], whole[ROUND]);
    assert_string_not_equal(whole[USUAL], whole[PLACED]);
    assert_true(hashed[DEALT] > pulled[DEALT]);
    scratch_end(&scratch);
}

/* ---- DPPA ---- */

/* touched [rows of the server]: bit w: worker w's training batches have the row. */
static uint64_t *touched_rows(const struct cluster *c, uint32_t server)
{
    const struct drps_plan_info *info = &c->parts[server]->info;
    uint64_t *touched = calloc((size_t)info->rows + 1, sizeof(*touched));
    for (uint64_t t = 0; t < info->batches; t++) {
        struct served s;
        read_served(c->parts[server], t, &s);
        for (uint32_t w = 0; w < c->workers; w++)
            for (size_t i = s.part[w]; i < s.part[w + 1]; i++)
                touched[s.ids[s.positions[i]]] |= (uint64_t)1 << w;
        free(s.ids);
        free(s.positions);
    }
    return touched;
}

/* What the run says of traffic by sets is what its parts have. By sets the machine that begins with
 * the least traffic takes all rows that it touches, but the intercept. */
static void check_sets(const struct cluster *c)
{
    uint64_t link[WORKERS_MOST] = {0}, pulls[WORKERS_MOST] = {0}, pulled = 0, busiest = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t server = 0; server < c->workers; server++) {
        uint64_t *touched = touched_rows(c, server);
        for (uint64_t r = 0; r < c->parts[server]->info.rows; r++) {
            const uint64_t others = touched[r] & ~((uint64_t)1 << server);
            link[server] += others != 0;
            for (uint32_t w = 0; w < c->workers; w++) {
                link[w] += others >> w & 1;
                pulls[w] += others >> w & 1;
                pulled += others >> w & 1;
            }
        }
        free(touched);
    }
    for (uint32_t w = 0; w < c->workers; w++) {
        if (link[w] > busiest) busiest = link[w];
        if (pulls[w] < least) least = pulls[w];
    }
    if (c->dppa.by_sets) assert_true(least <= 1);
    assert_int_equal(c->many.result.links.set_rows, pulled);
    assert_int_equal(c->many.result.links.busiest_set_rows, busiest);
}

static void test_dppa_places_samples_and_rows(void **state)
{
    static const struct {
        uint32_t workers;
        enum case_format format;
        const char *algo, *blocks;
        size_t samples;
        struct drps_dppa_wish dppa;
    } cases[] = {
        {3, CASE_LIBSVM, "lor", "pattern", 700, {0}},
        {4,
         CASE_CSV,
         "lor",
         "none",
         650,
         {.given = 1, .sample = 9, .single_rows = 1, .by_sets = 1}},
        {2, CASE_RATINGS, "lmf", "topk", 700, {.given = 1, .beta = 3, .single_rows = 1}},
        {3, CASE_LIBSVM, "lor", "pattern", 700, {.given = 1, .bins = 32}},
        {3, CASE_LIBSVM, "lor", "pattern", 700, {.given = 1, .sample = UINT32_MAX}},
        {3, CASE_LIBSVM, "lor", "pattern", 700, {.given = 1, .rows_first = 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cluster *c = calloc(1, sizeof(*c));
        c->dppa = cases[i].dppa;
        cluster_make(c, cases[i].workers, cases[i].format, cases[i].algo, cases[i].samples,
                     cases[i].blocks, "dppa", "dppa");
        const struct drps_plan_info *one = &c->plan->info, *part = &c->parts[0]->info;
        check_sets(c);
        if (!c->dppa.rows_first) /* which does not keep the numbers of samples even */
            check_all_are_there(c, 0, one->batches, 0, part->batches);
        check_all_are_there(c, one->batches, one->eval_batches, part->batches, part->eval_batches);
        cluster_end(c);
        free(c);
    }
}

/* Rows that are placed first are where Algorithm 1 put them, but for the intercept: nobody has more
 * than a third and one. */
static void test_dppa_keeps_rows_that_come_first(void **state)
{
    struct cluster *c = calloc(1, sizeof(*c));
    (void)state;
    c->dppa = (struct drps_dppa_wish){.given = 1, .rows_first = 1, .by_sets = 1};
    cluster_make(c, 3, CASE_LIBSVM, "lor", 700, "pattern", "dppa", "dppa");
    const uint64_t rows = c->plan->info.rows;
    for (uint32_t r = 0; r < 3; r++)
        assert_in_range(c->parts[r]->info.rows, rows / 3 - 1, rows / 3 + 2);
    cluster_end(c);
    free(c);
}

static void test_dppa_refuses(void **state)
{
    static const struct {
        const char *partition, *samples, *blocks, *says;
        struct drps_dppa_wish dppa;
        uint64_t memory_bytes;
        int rc;
    } cases[] = {
        {"auto", NULL, NULL, "say samples dppa", {.given = 1, .beta = 2}, 0, DRPS_E_CONFIG},
        {"auto",
         "dppa",
         NULL,
         "say partition dppa",
         {.given = 1, .single_rows = 1},
         0,
         DRPS_E_CONFIG},
        {"auto",
         "dppa",
         NULL,
         "say partition dppa",
         {.given = 1, .rows_first = 1},
         0,
         DRPS_E_CONFIG},
        {"dppa",
         "dppa",
         NULL,
         "leave out bins",
         {.given = 1, .rows_first = 1, .bins = 2},
         0,
         DRPS_E_CONFIG},
        {"dppa",
         "dppa",
         "topk",
         "builder topk gives new ones",
         {.given = 1, .rows_first = 1},
         0,
         DRPS_E_CONFIG},
        {"hash", "dppa", NULL, "not hash", {0}, 0, DRPS_E_CONFIG},
        {"dppa",
         "dppa",
         NULL,
         "lower alpha",
         {.given = 1, .alpha = 16, .sample = 500},
         0,
         DRPS_E_CONFIG},
        {"dppa",
         "dppa",
         NULL,
         "third of the memory limit",
         {.given = 1, .bins = 1 << 30},
         64 << 20,
         DRPS_E_MEMORY_BUDGET},
    };
    struct scratch scratch;
    struct case_run run;
    (void)state;
    scratch_begin(&scratch);
    const char *input = case_input(&scratch, "in", CASE_LIBSVM, 700, 300, seed);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        case_begin(&run, &scratch, input, "lor");
        run.options.workers = 2;
        run.options.partition = cases[i].partition;
        run.options.samples = cases[i].samples;
        run.options.blocks.by = cases[i].blocks;
        run.options.dppa = cases[i].dppa;
        if (cases[i].memory_bytes) run.options.memory_bytes = cases[i].memory_bytes;
        assert_int_equal(drps_index_run(drps_io_os(), &run.options, &run.result, &err),
                         cases[i].rc);
        if (!strstr(err.text, cases[i].says)) fail_msg("case %zu: %s", i, err.text);
    }
    scratch_end(&scratch);
}

static void test_placement_refuses(void **state)
{
    static const struct {
        const char *partition, *samples, *says;
        size_t features;
        uint32_t workers, servers;
        int separate, rc;
        uint64_t net_bps;
        double hot_share;
    } cases[] = {
        {.says = "for the partition greedy, not range",
         .features = 100,
         .workers = 2,
         .net_bps = 1,
         .rc = DRPS_E_CONFIG},
        {.partition = "auto",
         .says = "partition greedy, dppa or hash, not auto",
         .features = 100,
         .workers = 2,
         .hot_share = 0.5,
         .rc = DRPS_E_CONFIG},
        {.partition = "greedy",
         .says = "hot rows must lie between 0 and 1",
         .features = 100,
         .workers = 2,
         .hot_share = 1.5,
         .rc = DRPS_E_CONFIG},
        {.partition = "auto",
         .says = "needs 2 workers",
         .features = 100,
         .workers = 1,
         .rc = DRPS_E_CONFIG},
        {.partition = "metis",
         .says = "not metis",
         .features = 100,
         .workers = 2,
         .rc = DRPS_E_CONFIG},
        {.partition = "auto", .says = "only", .features = 4, .workers = 64, .rc = DRPS_E_CONFIG},
        {.partition = "greedy",
         .samples = "dealt",
         .says = "memory limit",
         .features = 700000,
         .workers = 64,
         .rc = DRPS_E_MEMORY_BUDGET},
        {.samples = "placed",
         .says = "partition auto, greedy or dppa, not range",
         .features = 100,
         .workers = 2,
         .rc = DRPS_E_CONFIG},
        {.partition = "hash",
         .samples = "placed",
         .says = "not hash",
         .features = 100,
         .workers = 2,
         .rc = DRPS_E_CONFIG},
        {.partition = "auto",
         .samples = "shared",
         .says = "dealt, kept, placed, round or dppa, not shared",
         .features = 100,
         .workers = 2,
         .rc = DRPS_E_CONFIG},
        {.partition = "greedy",
         .says = "on 2 servers of 5 workers: use auto, range or hash",
         .features = 100,
         .workers = 5,
         .servers = 2,
         .rc = DRPS_E_CONFIG},
        {.partition = "dppa",
         .says = "on machines that all have a worker",
         .features = 100,
         .workers = 2,
         .servers = 2,
         .separate = 1,
         .rc = DRPS_E_CONFIG},
        {.says = "servers must lie between 1 and 1024, not 1025",
         .features = 100,
         .workers = 2,
         .servers = 1025,
         .rc = DRPS_E_CONFIG},
        {.says = "1000 workers and 25 servers on machines of their own are 1025 ranks: at most",
         .features = 100,
         .workers = 1000,
         .servers = 25,
         .separate = 1,
         .rc = DRPS_E_CONFIG},
        {.says = "64 servers: there are only",
         .features = 4,
         .workers = 2,
         .servers = 64,
         .rc = DRPS_E_CONFIG},
    };
    struct scratch scratch;
    struct case_run run;
    (void)state;
    scratch_begin(&scratch);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const size_t samples = 10 + 4 * cases[i].features / 5;
        case_begin(&run, &scratch,
                   case_input(&scratch, "in", CASE_RATINGS, samples, cases[i].features, seed),
                   "lmf");
        run.options.blocks.by = "none";
        run.options.batch_size = 10000;
        run.options.workers = cases[i].workers;
        run.options.servers = cases[i].servers;
        run.options.separate = cases[i].separate;
        run.options.partition = cases[i].partition;
        run.options.samples = cases[i].samples;
        run.options.net_bps = cases[i].net_bps;
        run.options.hot_share = cases[i].hot_share;
        run.options.has_hot_share = cases[i].hot_share > 0;
        assert_int_equal(drps_index_run(drps_io_os(), &run.options, &run.result, &err),
                         cases[i].rc);
        if (!strstr(err.text, cases[i].says)) fail_msg("case %zu: %s", i, err.text);
    }
    scratch_end(&scratch);
}

/* Homes take 18 bytes a row and a quarter of the memory; nothing is read before that is checked. */
static void test_homes_refuse_too_little_memory(void **state)
{
    struct placement_job job = {.io = drps_io_os(), .algo = "auto", .servers = 2, .workers = 2};
    struct drps_plan_info info = {.rows = 1000, .row_bytes = 8, .block_bytes = 8};
    struct drps_err err = DRPS_ERR_INIT;
    struct owners owners;
    struct scratch scratch;
    uint32_t *block_first = NULL;
    (void)state;
    scratch_begin(&scratch);
    job.from = scratch_path(&scratch, "none");
    job.memory_bytes = 23990;
    assert_int_equal(drps_placement_make(&job, &info, &block_first, &owners, &err),
                     DRPS_E_MEMORY_BUDGET);
    assert_non_null(strstr(err.text, "partition auto: placing 1000 rows"));
    drps_err_clear(&err);
    job.memory_bytes = 24010; /* enough: there are no lists in that folder */
    assert_int_equal(drps_placement_make(&job, &info, &block_first, &owners, &err), -ENOENT);
    scratch_end(&scratch);
}

static void test_one_worker_has_the_plan_of_before(void **state)
{
    struct cluster *c = calloc(1, sizeof(*c));
    struct stat st;
    char path[SCRATCH_PATH_BYTES + 16];
    (void)state;
    cluster_make(c, 1, CASE_LIBSVM, "lor", 400, "pattern", NULL, NULL);
    (void)snprintf(path, sizeof(path), "%s/rank-0", c->one.out);
    assert_int_equal(stat(path, &st), -1);
    assert_true(case_same_records(c->one.out, c->many.out));
    assert_int_equal(c->plan->info.ranks.workers, 1);
    cluster_end(c);
    free(c);
}

/* ---- Owners ---- */

static void own(const uint32_t *block_first, size_t blocks, const char *dir, uint64_t steps,
                uint32_t servers, int want, struct owners *out)
{
    const struct owners_job job = {.io = drps_io_os(),
                                   .dir = dir,
                                   .steps = steps,
                                   .block_first = block_first,
                                   .blocks = blocks,
                                   .memory_bytes = 1 << 20};
    assert_int_equal(drps_owners_by_range(&job, servers, out, NULL), want);
}

static void write_lists(const char *dir, const uint32_t *const *lists, const size_t *n,
                        size_t steps)
{
    struct drps_recwriter *w;
    char path[SCRATCH_PATH_BYTES + 16];
    unsigned char packed[256];
    (void)snprintf(path, sizeof(path), "%s/rows.rec", dir);
    assert_int_equal(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_ROWS, &w, NULL), 0);
    for (size_t s = 0; s < steps; s++) {
        const struct drps_piece piece = {packed, drps_list_encode(lists[s], n[s], packed)};
        assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
}

/* Two blocks of 10 rows; 30 accesses to the first, 10 to the second. Weights: 0.5 + 0.75 and 0.5 +
 * 0.25. Half of all, 1, lies 0.8 into the first block: at row 8. Two thirds, 4/3, 0.111 into the
 * second one. */
/* Uses 3 3 1 1 1 1 1 1 1 0 0, 13 in all: a range ends where its part of them is nearest. */
static void test_owners_share_counts_alone(void **state)
{
    static const uint32_t rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, hot[] = {0, 1};
    static const uint32_t *const lists[] = {rows, hot, hot};
    static const size_t n[] = {9, 2, 2};
    static const uint32_t block_first[] = {0, 8, 11};
    static const struct {
        uint32_t servers, first[5];
    } cases[] = {{1, {0, 11}}, {2, {0, 3, 11}}, {3, {0, 1, 5, 11}}, {4, {0, 1, 3, 6, 11}}};
    struct scratch scratch;
    (void)state;
    scratch_begin(&scratch);
    const char *dir = scratch_path(&scratch, ".");
    struct owners_job job = {.io = drps_io_os(),
                             .dir = dir,
                             .steps = 3,
                             .training = 3,
                             .block_first = block_first,
                             .blocks = 2,
                             .memory_bytes = 1 << 20};
    write_lists(dir, lists, n, 3);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct owners o;
        if (drps_owners_by_counts(&job, cases[c].servers, &o, &err) < 0) fail_msg("%s", err.text);
        for (uint32_t r = 0; r <= cases[c].servers; r++)
            if (o.first[r] != cases[c].first[r])
                fail_msg("%u servers: server %u begins at %u, not %u", cases[c].servers, r,
                         o.first[r], cases[c].first[r]);
    }
    static const double share[] = {.5, .125, .375}; /* 6.5 and 8.1 of 13 */
    struct owners o;
    job.share = share;
    assert_int_equal(drps_owners_by_counts(&job, 3, &o, NULL), 0);
    assert_int_equal(o.first[1], 3);
    assert_int_equal(o.first[2], 4);
    job.training = 1; /* one use of each of the first nine: 4.5 and 5.6 */
    assert_int_equal(drps_owners_by_counts(&job, 3, &o, NULL), 0);
    assert_int_equal(o.first[1], 5);
    assert_int_equal(o.first[2], 6);
    job.memory_bytes = 80;
    assert_int_equal(drps_owners_by_counts(&job, 2, &o, NULL), DRPS_E_MEMORY_BUDGET);
    scratch_end(&scratch);
}

static void test_owners_share_rows_and_accesses(void **state)
{
    struct scratch scratch;
    struct owners o;
    const uint32_t block_first[] = {0, 10, 20};
    const uint32_t rows[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const uint32_t *const lists[] = {rows, rows, rows};
    const size_t n[] = {15, 10, 15};
    (void)state;
    scratch_begin(&scratch);
    const char *dir = scratch_path(&scratch, ".");
    write_lists(dir, lists, n, 3);
    own(block_first, 2, dir, 3, 1, 0, &o);
    assert_int_equal(o.first[1], 20);
    own(block_first, 2, dir, 3, 2, 0, &o);
    assert_int_equal(o.first[1], 8);
    own(block_first, 2, dir, 3, 3, 0, &o);
    assert_int_equal(o.first[1], 5);
    assert_int_equal(o.first[2], 11);
    own(block_first, 2, dir, 3, 20, 0, &o); /* a row each */
    for (uint32_t r = 0; r <= 20; r++)
        assert_int_equal(o.first[r], r);
    own(block_first, 2, dir, 3, 21, DRPS_E_CONFIG, &o);
    scratch_end(&scratch);
}

/* ---- Damage ---- */

static void test_shares_that_do_not_fit_are_refused(void **state)
{
    const uint32_t shares[] = {3, 0, 4};
    uint32_t out[3];
    unsigned char packed[64];
    const size_t bytes = drps_numbers_encode(shares, 3, packed);
    (void)state;
    assert_int_equal(drps_shares_decode(packed, bytes, 3, 7, out, NULL), 0);
    assert_memory_equal(out, shares, sizeof(shares));
    assert_int_equal(drps_shares_decode(packed, bytes, 3, 8, out, NULL), DRPS_E_CORRUPT);
    assert_int_equal(drps_shares_decode(packed, bytes, 2, 7, out, NULL), DRPS_E_CORRUPT);
    assert_int_equal(drps_shares_decode(packed, bytes - 1, 3, 7, out, NULL), DRPS_E_CORRUPT);
    assert_int_equal(drps_shares_decode(packed, 0, 3, 7, out, NULL), DRPS_E_CORRUPT);
}

static void test_positions_that_do_not_fit_are_refused(void **state)
{
    const uint32_t first[] = {0, 2, 3}, second[] = {1, 3};
    uint32_t out[5];
    size_t part[4];
    unsigned char packed[128];
    size_t bytes = drps_list_encode(first, 3, packed);
    (void)state;
    bytes += drps_list_encode(second, 0, packed + bytes);
    bytes += drps_list_encode(second, 2, packed + bytes);
    assert_int_equal(drps_positions_decode(packed, bytes, 3, 4, 5, out, part, NULL), 0);
    assert_int_equal(part[1], 3);
    assert_int_equal(part[2], 3);
    assert_int_equal(part[3], 5);
    assert_memory_equal(out, first, sizeof(first));
    assert_memory_equal(out + 3, second, sizeof(second));
    assert_int_equal(drps_positions_decode(packed, bytes, 3, 3, 5, out, part, NULL),
                     DRPS_E_CORRUPT); /* position 3 of 3 */
    assert_int_equal(drps_positions_decode(packed, bytes, 3, 4, 4, out, part, NULL),
                     DRPS_E_CORRUPT); /* no room for five */
    assert_int_equal(drps_positions_decode(packed, bytes, 2, 4, 5, out, part, NULL),
                     DRPS_E_CORRUPT); /* a list too many */
    for (size_t cut = 0; cut < bytes; cut++)
        assert_int_equal(drps_positions_decode(packed, cut, 3, 4, 5, out, part, NULL),
                         DRPS_E_CORRUPT);
}

/* Positions of another round: the files are whole, and yet do not belong together. */
static void test_rounds_that_do_not_fit_are_found(void **state)
{
    struct cluster *c = calloc(1, sizeof(*c));
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recwriter *w;
    char path[SCRATCH_PATH_BYTES + 32];
    (void)state;
    cluster_make(c, 2, CASE_LIBSVM, "lor", 600, "pattern", NULL, NULL);
    struct drps_plan *part = c->parts[1];
    const uint64_t rounds = part->info.batches + part->info.eval_batches;
    struct record *all = calloc(rounds, sizeof(*all));
    for (uint64_t t = 0; t < rounds; t++)
        read_record(part, "positions.rec", DRPS_KIND_POSITIONS, t, &all[t]);
    (void)snprintf(path, sizeof(path), "%s/rank-1/positions.rec", c->many.out);
    assert_int_equal(remove(path), 0);
    assert_int_equal(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_POSITIONS, &w, NULL), 0);
    for (uint64_t t = 0; t < rounds; t++) {
        const struct record *r = &all[(t + 1) % rounds];
        const struct drps_piece piece = {r->data, r->bytes};
        assert_int_equal(drps_recwriter_add(w, &piece, 1, NULL), 0);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
    assert_int_equal(drps_plan_save(drps_io_os(), part->dir, &part->info, part->fields, NULL, &err),
                     0); /* with the right checksum */
    drps_plan_close(part);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), c->many.out, 1, &c->parts[1], &err), 0);
    assert_int_equal(drps_plan_verify(c->parts[1], NULL, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "positions.rec"));
    for (uint64_t t = 0; t < rounds; t++)
        free(all[t].data);
    free(all);
    cluster_end(c);
    free(c);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_put_together_are_the_batches),
        cmocka_unit_test(test_placed_parts_put_together_are_the_batches),
        cmocka_unit_test(test_auto_pulls_less_than_ranges_and_hash),
        cmocka_unit_test(test_greedy_weighs_what_it_is_told),
        cmocka_unit_test(test_placed_samples_are_all_there),
        cmocka_unit_test(test_homes_keep_merged_blocks_apart),
        cmocka_unit_test(test_samples_stay_in_their_round),
        cmocka_unit_test(test_placed_samples_pull_less),
        cmocka_unit_test(test_dppa_places_samples_and_rows),
        cmocka_unit_test(test_dppa_keeps_rows_that_come_first),
        cmocka_unit_test(test_dppa_refuses),
        cmocka_unit_test(test_placement_refuses),
        cmocka_unit_test(test_homes_refuse_too_little_memory),
        cmocka_unit_test(test_one_worker_has_the_plan_of_before),
        cmocka_unit_test(test_owners_share_counts_alone),
        cmocka_unit_test(test_owners_share_rows_and_accesses),
        cmocka_unit_test(test_shares_that_do_not_fit_are_refused),
        cmocka_unit_test(test_positions_that_do_not_fit_are_refused),
        cmocka_unit_test(test_rounds_that_do_not_fit_are_found),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
