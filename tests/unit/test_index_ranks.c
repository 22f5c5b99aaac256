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

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "index/drps_batch.h"
#include "index/drps_index.h"
#include "index/drps_names.h"
#include "index/drps_round.h"
#include "index/owners.h"
#include "support/index_case.h"

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

struct cluster {
    struct scratch scratch;
    struct case_run one, many;
    uint32_t workers;
    struct drps_plan *plan; /* of one worker */
    struct drps_plan *parts[DRPS_PLAN_WORKERS_MAX];
    uint32_t *old; /* [rows] of a placed id of the many, that of the one */
};

static void must_run(struct case_run *run)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_index_run(drps_io_os(), &run->options, &run->result, &err) < 0)
        fail_msg("%s", err.text);
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
                         const char *partition)
{
    struct drps_err err = DRPS_ERR_INIT;
    scratch_begin(&c->scratch);
    const char *input = case_input(&c->scratch, "in", format, samples, 300, seed);
    c->workers = workers;
    for (int several = 0; several < 2; several++) {
        struct case_run *run = several ? &c->many : &c->one;
        case_begin(run, &c->scratch, input, algo);
        (void)snprintf(run->out, sizeof(run->out), "%s",
                       scratch_path(&c->scratch, several ? "many" : "one"));
        run->options.blocks.by = blocks;
        run->options.test_fraction = 0.2;
        run->options.rank = strcmp(algo, "lmf") == 0 ? 2 : 0;
        run->options.workers = several ? workers : 1;
        run->options.partition = several ? partition : NULL;
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
    size_t n, part[DRPS_PLAN_WORKERS_MAX + 1];
};

static void read_served(const struct drps_plan *part, uint64_t round, struct served *out)
{
    const struct drps_plan_ranks *ranks = &part->info.ranks;
    struct record r;
    struct drps_err err = DRPS_ERR_INIT;
    out->ids = read_list(part, round, &out->n);
    out->positions = calloc(ranks->max_round_uses + 1, sizeof(*out->positions));
    read_record(part, "positions.rec", DRPS_KIND_POSITIONS, round, &r);
    if (drps_positions_decode(r.data, r.bytes, ranks->workers, out->n, ranks->max_round_uses,
                              out->positions, out->part, &err) < 0)
        fail_msg("%s", err.text);
    free(r.data);
}

static uint32_t local_row(const struct drps_batch *b, size_t j)
{
    return b->local32 ? b->local32[j] : b->local16[j];
}

/* The same samples of the same rows; rows_b [b->rows] have been named as rows_a are. */
static void check_same_batch(const struct drps_batch *a, const uint32_t *rows_a,
                             const struct drps_batch *b, const uint32_t *rows_b)
{
    assert_int_equal(a->samples, b->samples);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->nnz, b->nnz);
    assert_int_equal(!a->values, !b->values);
    assert_memory_equal(a->labels, b->labels, a->samples * sizeof(*a->labels));
    if (a->values) assert_memory_equal(a->values, b->values, a->nnz * sizeof(*a->values));
    for (size_t s = 0; s <= a->samples; s++)
        assert_int_equal(drps_batch_start(a, s), drps_batch_start(b, s));
    for (size_t j = 0; j < a->nnz; j++)
        assert_int_equal(rows_a[local_row(a, j)], rows_b[local_row(b, j)]);
}

/* A worker's rows of the round: the parts of all servers, put together, as the one numbers them. */
static uint32_t *join_parts(const struct cluster *c, const struct served *served, uint64_t round,
                            uint32_t worker, size_t n)
{
    uint32_t shares[DRPS_PLAN_WORKERS_MAX];
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
    assert_int_equal(drps_batch_decode(own.data, own.bytes, &b, NULL), 0);
    uint32_t *rows = join_parts(c, served, round, worker, b.rows);
    if (there) {
        uint32_t *want = read_list(c->plan, batch, &n);
        read_record(c->plan, "data.rec", DRPS_KIND_DATA, batch, &body);
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
    struct served served[DRPS_PLAN_WORKERS_MAX];
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

static void check_case(uint32_t workers, enum case_format format, const char *algo, size_t samples,
                       const char *blocks, const char *partition)
{
    struct cluster *c = calloc(1, sizeof(*c));
    cluster_make(c, workers, format, algo, samples, blocks, partition);
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
    for (uint64_t i = 0; !partition && i < rows; i++)
        assert_int_equal(c->old[i], i); /* ranges of the rows as they are */
    assert_int_equal(pulled, served);   /* what one gets another gives */
    assert_true(pulled > 0);
    assert_true(c->many.result.info.row_uses <= one->row_uses);
    cluster_end(c);
    free(c);
}

static void test_parts_put_together_are_the_batches(void **state)
{
    (void)state;
    check_case(2, CASE_LIBSVM, "lor", 1000, "pattern", NULL);
    check_case(3, CASE_RATINGS, "lmf", 700, "topk", NULL);
    check_case(5, CASE_LIBSVM, "lor", 650, "id", NULL);
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
        run.options.blocks.bytes = 8; /* a row */
        run.options.batch_size = PLANTED_BATCH;
        run.options.workers = PLANTED_WORKERS;
        run.options.partition = partitions[p];
        run.options.force = 1;
        must_run(&run);
        pulled[p] = run.result.info.ranks.pulled_rows;
        uses[p] = run.result.info.row_uses;
        assert_int_equal(run.result.info.max_block_rows, 1); /* hot rows' blocks are no larger */
    }
    assert_true(pulled[AUTO] <= pulled[RANGE]);
    assert_true(2 * pulled[AUTO] <= pulled[HASH]); /* the shared rows and the intercept remain */
    assert_int_equal(uses[AUTO], uses[RANGE]);
    scratch_end(&scratch);
}

static void test_placement_refuses(void **state)
{
    static const struct {
        const char *partition, *says;
        size_t features;
        uint32_t workers;
        int rc;
    } cases[] = {
        {"auto", "--workers 2", 100, 1, DRPS_E_CONFIG},
        {"metis", "not metis", 100, 2, DRPS_E_CONFIG},
        {"auto", "only", 4, 64, DRPS_E_CONFIG},
        {"auto", "--memory", 100000, 64, DRPS_E_MEMORY_BUDGET},
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
        run.options.partition = cases[i].partition;
        assert_int_equal(drps_index_run(drps_io_os(), &run.options, &run.result, &err),
                         cases[i].rc);
        if (!strstr(err.text, cases[i].says)) fail_msg("case %zu: %s", i, err.text);
    }
    scratch_end(&scratch);
}

static void test_one_worker_has_the_plan_of_before(void **state)
{
    struct cluster *c = calloc(1, sizeof(*c));
    struct stat st;
    char path[SCRATCH_PATH_BYTES + 16];
    (void)state;
    cluster_make(c, 1, CASE_LIBSVM, "lor", 400, "pattern", NULL);
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
    assert_int_equal(owners_by_range(&job, servers, out, NULL), want);
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
    cluster_make(c, 2, CASE_LIBSVM, "lor", 600, "pattern", NULL);
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
    assert_int_equal(drps_plan_verify(c->parts[1], &err), DRPS_E_CORRUPT);
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
        cmocka_unit_test(test_placement_refuses),
        cmocka_unit_test(test_one_worker_has_the_plan_of_before),
        cmocka_unit_test(test_owners_share_rows_and_accesses),
        cmocka_unit_test(test_shares_that_do_not_fit_are_refused),
        cmocka_unit_test(test_positions_that_do_not_fit_are_refused),
        cmocka_unit_test(test_rounds_that_do_not_fit_are_found),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
