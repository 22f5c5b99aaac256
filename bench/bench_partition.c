/*
 * How good, and how fast, is the placement of rows and samples? One line for each number of
 * machines, placement of samples and placement of rows; tab-separated, a header first.
 *
 *   bench_partition FORMAT FILE   BATCH [BLOCK_BYTES [MACHINES...]]
 *   bench_partition ctr    N      BATCH [BLOCK_BYTES [MACHINES...]]
 *
 * The second makes N samples of clicks: a user, an advertisement and a site, each drawn by a 1 /
 * rank law, give 12, 12 and 8 of a sample's 39 features; 7 are drawn for themselves.
 *
 * Rows have 68 bytes (16 factors and a weight). They are put in the order of drps-index: by use,
 * then by min-hash of their batches, and cut into blocks (default 4096 bytes); one row in 16, the
 * most used ones, are units of their own. A seek takes 40 us, the disk moves 1.2 GB/s each way, the
 * network 1 Gbit/s: a row goes and comes back in 1.1 us.
 *
 * Columns: `remote` of the same line is the remote rows of an epoch, to those of samples and rows
 * both at random (of_hash), to the least possible with these samples, row by row (of_bound), to
 * greedy's with these samples (of_greedy); busiest_of_avg: the busiest link, of what a machine
 * pulls and serves, to the average, and busiest_of_greedy to greedy's; bytes_of_avg; seconds to
 * place the rows, and (samples_s) the samples. Rows are placed as units, and one by one (homes).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "bench/data.h"
#include "partition/dppa/drps_dppa.h"
#include "partition/drps_homes.h"

enum { FIELDS = 39, ROW_BYTES = 68, SEED = 1 };

#define HOT_SHARE (1.0 / 16)

/* 0 .. n - 1, rank r with a probability of about 1 / r. */
static uint64_t draw_rank(uint64_t bits, uint64_t n)
{
    return (uint64_t)(pow((double)n + 1, drps_unit_double(bits)) - 1);
}

static void make_clicks(struct data *d, uint64_t n)
{
    static const struct {
        int fields;
        uint64_t share; /* one of an entity's kind for so many samples */
    } kinds[] = {{12, 10}, {12, 100}, {8, 200}};
    uint64_t x = 0;
    for (uint64_t s = 0; s < n; s++) {
        uint64_t keys[FIELDS];
        int f = 0;
        for (int kind = 0; kind < 3; kind++) {
            uint64_t entity = draw_rank(drps_rng_at(SEED, x++), n / kinds[kind].share + 10);
            for (int i = 0; i < kinds[kind].fields; i++, f++) { /* the first is the entity itself */
                uint64_t values = (n / kinds[kind].share + 10) >> i;
                keys[f] =
                    (uint64_t)f << 40 |
                    (i == 0 ? entity : draw_rank(drps_rng_at((uint64_t)f, entity), values + 3));
            }
        }
        for (; f < FIELDS; f++)
            keys[f] = (uint64_t)f << 40 | draw_rank(drps_rng_at(SEED, x++), 10u << (2 * (f - 32)));
        data_add(d, keys, FIELDS);
    }
}

/* ---- rows in placed order, blocks, units ------------------------------------------------------
 */

struct rows {
    uint32_t *uses;    /* [R] batches that touch a row */
    uint64_t *minhash; /* [R] over those batches */
    uint32_t *home;    /* [R] the machine whose batches touch it most, of those that are through */
    uint32_t *most;    /* [R] how often those do */
    uint32_t *here;    /* [R] how often the batches of `machine` do, so far */
    uint32_t rows_n, machine;
    uint64_t batches;
};

static void close_machine(struct rows *r)
{
    for (uint32_t i = 0; i < r->rows_n; i++) {
        if (r->here[i] > r->most[i]) {
            r->most[i] = r->here[i];
            r->home[i] = r->machine;
        }
        r->here[i] = 0;
    }
}

static int count_rows(void *ctx, uint32_t machine, const uint32_t *rows, size_t n,
                      struct drps_err *err)
{
    struct rows *r = ctx;
    uint64_t hash = drps_mix64(r->batches++);
    (void)err; /* cannot fail */
    if (machine != r->machine) close_machine(r);
    r->machine = machine;
    for (size_t i = 0; i < n; i++) {
        r->uses[rows[i]]++;
        r->here[rows[i]]++;
        if (hash < r->minhash[rows[i]]) r->minhash[rows[i]] = hash;
    }
    return 0;
}

struct ranked_row {
    uint32_t tier, home, row;
    uint64_t minhash;
};

static int by_use(const void *a, const void *b)
{
    const struct ranked_row *x = a, *y = b;
    if (x->tier != y->tier) return x->tier < y->tier ? 1 : -1;
    if (x->home != y->home) return x->home < y->home ? -1 : 1;
    if (x->minhash != y->minhash) return x->minhash < y->minhash ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static struct rows count_all(const struct drps_sample_set *set, const uint32_t *owner,
                             uint32_t machines, uint32_t batch)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t n = set->features_n;
    struct rows r = {.uses = must(calloc(n + 1, sizeof(*r.uses))),
                     .minhash = must(drps_array_new(n, sizeof(*r.minhash))),
                     .home = must(calloc(n + 1, sizeof(*r.home))),
                     .most = must(calloc(n + 1, sizeof(*r.most))),
                     .here = must(calloc(n + 1, sizeof(*r.here))),
                     .rows_n = n};
    memset(r.minhash, 0xff, n * sizeof(*r.minhash));
    ok(drps_samples_batches(set, owner, machines, batch, SEED, count_rows, &r, &err), &err);
    close_machine(&r);
    free(r.most);
    free(r.here);
    return r;
}

/* The features of all samples with rows renumbered: by use, home, min-hash; own. uses_out [R] of
 * the new numbers. */
static uint32_t *order_rows(const struct drps_sample_set *set, const uint32_t *owner,
                            uint32_t machines, uint32_t batch, uint32_t *uses_out)
{
    uint32_t rows_n = set->features_n;
    struct rows r = count_all(set, owner, machines, batch);
    struct ranked_row *ranked = must(drps_array_new(rows_n, sizeof(*ranked)));
    uint32_t *number = must(drps_array_new(rows_n, sizeof(*number)));
    uint32_t *features = must(drps_array_new(set->starts[set->n], sizeof(*features)));
    for (uint32_t i = 0; i < rows_n; i++) {
        uint32_t tier = r.uses[i] ? 32 - (uint32_t)__builtin_clz(r.uses[i]) : 0;
        ranked[i] = (struct ranked_row){tier, r.home[i], i, r.minhash[i]};
    }
    qsort(ranked, rows_n, sizeof(*ranked), by_use);
    for (uint32_t i = 0; i < rows_n; i++) {
        number[ranked[i].row] = i;
        uses_out[i] = r.uses[ranked[i].row];
    }
    for (size_t i = 0; i < set->starts[set->n]; i++)
        features[i] = number[set->features[i]];
    free(r.uses);
    free(r.minhash);
    free(r.home);
    free(ranked);
    free(number);
    return features;
}

/* Blocks of so many rows, and hot rows; or, of one row, all rows. */
static struct drps_units make_units(const struct drps_sample_set *set, const uint32_t *owner,
                                    uint32_t machines, uint32_t batch, uint32_t each)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_unit_costs costs = {ROW_BYTES, 40e-6, 2 / 1.2e9, 2 * ROW_BYTES * 8 / 1e9, each};
    uint32_t rows_n = set->features_n;
    uint32_t *uses = must(drps_array_new(rows_n, sizeof(*uses)));
    uint32_t *first = must(drps_array_new((size_t)rows_n + 1, sizeof(*first)));
    struct drps_sample_set placed = *set;
    struct drps_units_maker *maker;
    struct drps_units units;
    size_t blocks = 0;
    uint32_t *features = order_rows(set, owner, machines, batch, uses);
    placed.features = features;
    for (uint32_t row = 0; row < rows_n; row += each)
        first[blocks++] = row;
    first[blocks] = rows_n;
    ok(drps_units_new(first, blocks, uses, HOT_SHARE, &costs, machines, &maker, &err), &err);
    ok(drps_samples_batches(&placed, owner, machines, batch, SEED, drps_units_add, maker, &err),
       &err);
    ok(drps_units_finish(maker, &units, &err), &err);
    drps_units_maker_free(maker);
    free(uses);
    free(first);
    free(features);
    return units;
}

/* ---- placements -------------------------------------------------------------------------------
 */

/* What a placement comes to. */
struct outcome {
    uint64_t remote, links, busiest, bytes; /* links: pulled and served, of all machines */
    double seconds;
};

static void add_machine(struct outcome *o, uint64_t link, uint64_t bytes)
{
    o->links += link;
    o->remote = o->links / 2;
    if (link > o->busiest) o->busiest = link;
    if (bytes > o->bytes) o->bytes = bytes;
}

static struct outcome place_units(const struct drps_units *units, const char *algo)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_rows_options o = {.algo = algo, .seed = SEED};
    struct outcome out = {0};
    struct drps_placement p;
    uint64_t start = drps_clock_ns();
    ok(drps_rows_place(units, &o, &p, &err), &err);
    out.seconds = drps_seconds_since(start);
    for (uint32_t m = 0; m < units->machines; m++)
        add_machine(&out, p.load[m].pulled + p.load[m].served, p.load[m].bytes);
    drps_placement_destroy(&p);
    return out;
}

static struct outcome find_homes(struct drps_units *rows)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_row_stream stream = {(uint32_t)rows->n, data_walk_rows, rows};
    const struct drps_homes_options o = {.machines = rows->machines};
    uint16_t *home = must(drps_array_new(rows->n, sizeof(*home)));
    struct drps_home_load *load = must(drps_array_new(rows->machines, sizeof(*load)));
    struct outcome out = {0};
    uint64_t start = drps_clock_ns();
    ok(drps_homes_place(&stream, &o, home, load, &err), &err);
    out.seconds = drps_seconds_since(start);
    for (uint32_t m = 0; m < rows->machines; m++)
        add_machine(&out, load[m].pulled + load[m].served, load[m].rows * ROW_BYTES);
    free(home);
    free(load);
    return out;
}

/* remote_hash: of samples and rows at random; set by the first call for a number of machines. rows:
 * the same as units, one by one. */
static void place_rows(const char *samples, double samples_s, const struct drps_units *units,
                       struct drps_units *rows, uint64_t *remote_hash)
{
    static const char *const algos[] = {"hash", "range", "greedy", "dppa", "homes"};
    enum { ALGOS = sizeof(algos) / sizeof(algos[0]), GREEDY = 2, HOMES = 4 };
    struct outcome found[ALGOS];
    const double bound = (double)drps_units_affinity_bound(rows);
    for (int i = 0; i < ALGOS; i++)
        found[i] = i == HOMES ? find_homes(rows) : place_units(units, algos[i]);
    if (*remote_hash == 0) *remote_hash = found[0].remote;
    for (int i = 0; i < ALGOS; i++) {
        const struct outcome *o = &found[i];
        const double machines = units->machines;
        printf("%u\t%s\t%s\t%zu\t%zu\t%llu\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.2f\n",
               units->machines, samples, algos[i], units->n, units->starts[units->n],
               (unsigned long long)o->remote, (double)o->remote / (double)*remote_hash,
               (double)o->remote / bound, (double)o->remote / (double)found[GREEDY].remote,
               (double)o->busiest * machines / (double)o->links,
               (double)o->busiest / (double)found[GREEDY].busiest,
               (double)o->bytes * machines / ((double)rows->n * ROW_BYTES), o->seconds, samples_s);
    }
    fflush(stdout);
}

/* Samples by the paper's Algorithm 1, of 32 at a time, or as `o` says. */
static void place_samples(const struct drps_sample_set *set, const struct drps_samples_options *o,
                          uint32_t *owner)
{
    const struct drps_dppa_options dppa = {.machines = o->machines, .seed = o->seed};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_dppa_report report;
    if (strcmp(o->algo, "dppa") == 0)
        ok(drps_dppa_samples(set, &dppa, owner, &report, &err), &err);
    else
        ok(drps_samples_place(set, o, owner, &err), &err);
}

static void run(const struct drps_sample_set *set, uint32_t machines, uint32_t batch,
                uint32_t block_rows)
{
    static const char *const algos[] = {"hash", "dppa", "auto"};
    uint32_t *owner = must(drps_array_new(set->n, sizeof(*owner)));
    uint64_t remote_hash = 0;
    for (int i = 0; i < 3; i++) {
        struct drps_samples_options o = {
            .algo = algos[i], .machines = machines, .batch_size = batch, .seed = SEED};
        uint64_t start = drps_clock_ns();
        place_samples(set, &o, owner);
        double seconds = drps_seconds_since(start);
        struct drps_units units = make_units(set, owner, machines, batch, block_rows);
        struct drps_units rows = make_units(set, owner, machines, batch, 1);
        place_rows(algos[i], seconds, &units, &rows, &remote_hash);
        drps_units_destroy(&units);
        drps_units_destroy(&rows);
    }
    free(owner);
}

int main(int argc, char **argv)
{
    static char *defaults[] = {"5", "8", "16", "64"};
    struct data d = {0};
    uint64_t batch, block_bytes = 4096, n;
    struct drps_err err = DRPS_ERR_INIT;
    if (argc < 4) {
        fprintf(stderr, "usage: bench_partition FORMAT FILE | ctr N   BATCH [BLOCK_BYTES "
                        "[MACHINES...]]\n");
        return 2;
    }
    ok(drps_size_parse(argv[3], &batch, &err), &err);
    if (argc > 4) ok(drps_size_parse(argv[4], &block_bytes, &err), &err);
    if (strcmp(argv[1], "ctr") == 0) {
        ok(drps_size_parse(argv[2], &n, &err), &err);
        make_clicks(&d, n);
    } else {
        data_read(&d, argv[1], argv[2]);
    }
    struct drps_sample_set set = {d.n, d.features_n, d.starts, d.features};
    fprintf(stderr, "%s: %zu samples, %u features, %zu entries\n", argv[2], set.n, set.features_n,
            set.starts[set.n]);
    printf("machines\tsamples\trows\tunits\ttouches\tremote\tof_hash\tof_bound\tof_greedy\t"
           "busiest_of_avg\tbusiest_of_greedy\tbytes_of_avg\trows_s\tsamples_s\n");
    char **machines = argc > 5 ? argv + 5 : defaults;
    int machines_n = argc > 5 ? argc - 5 : 4;
    for (int i = 0; i < machines_n; i++)
        run(&set, (uint32_t)atoi(machines[i]), (uint32_t)batch,
            block_bytes > ROW_BYTES ? (uint32_t)(block_bytes / ROW_BYTES) : 1);
    data_free(&d);
    return 0;
}
