/* drps-index: compile data sets into plans. Argument parsing and printing; the work is
 * index/run/compile.c, of several machines index/ranks/index_ranks.c. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/drps_index.h"
#include "index/ranks/drps_index_ranks.h"
#include "net/drps_launch.h"
#include "tools/drps_cli.h"
#include "tools/reader_options.h"

enum {
    KEY_ALGO = DRPS_CLI_KEY,
    KEY_LOSS,
    KEY_TASK,
    KEY_RANK,
    KEY_NO_BIAS,
    KEY_WORKERS,
    KEY_PARTITION,
    KEY_SAMPLES,
    KEY_BATCH_SIZE,
    KEY_TEST,
    KEY_TEST_FRACTION,
    KEY_MEMORY,
    KEY_BLOCKS,
    KEY_BLOCK_BYTES,
    KEY_SEEK,
    KEY_TRANSFER,
    KEY_CALIBRATE,
    KEY_TOP_K,
    KEY_MIN_GAIN,
    KEY_PRUNE,
    KEY_PRUNE_TO,
    KEY_SAMPLE,
    KEY_SHARDS,
    KEY_PEERS,
    KEY_PEER_RANK,
    KEY_KEYS,
    KEY_INSECURE,
    KEY_TIMEOUT,
    KEY_SILENCE,
    KEY_ORDER,
    KEY_GRID,
    KEY_LANES,
    KEY_SEED,
    KEY_HASH_SEED,
    KEY_FORCE,
    KEY_NO_FORECAST,
};

static const struct argp_option option_table[] = {
    {"output", 'o', "PLAN", 0, "Folder to make (required)", 1},
    {"algo", KEY_ALGO, "NAME", 0, "Model: lir, lor, svm, lmf or fm (required)", 1},
    {"rank", KEY_RANK, "K", 0, "Factors a row, for lmf and fm (default 16)", 1},
    {"task", KEY_TASK, "NAME", 0,
     "For fm: auto (two distinct labels mean classification), regression, classification", 1},
    {"loss", KEY_LOSS, "NAME", 0,
     "squared, logistic, hinge, squared-hinge (default: the model's usual one)", 1},
    {"no-bias", KEY_NO_BIAS, NULL, 0, "No intercept", 1},
    READER_OPTIONS(2, "default auto"),
    {"hash-seed", KEY_HASH_SEED, "N", 0, "Seed of the keys of string names (default 0)", 2},
    {"test", KEY_TEST, "FILE", 0, "Samples for evaluation; may be given several times", 3},
    {"test-fraction", KEY_TEST_FRACTION, "P", 0,
     "Keep this share of the samples for evaluation (0.1 or 10%)", 3},
    {"workers", KEY_WORKERS, "N", 0,
     "Make a plan for N machines: a worker and a server each (default 1)", 4},
    {"partition", KEY_PARTITION, "NAME", 0,
     "Which rows each of the machines holds: range (default: equal runs), greedy (the paper's), "
     "dppa (least traffic), auto (even loads, then least traffic); to compare with, hash",
     4},
    {"samples", KEY_SAMPLES, "HOW", 0,
     "Which samples each of the machines trains on: placed with the rows that they use (default "
     "for "
     "--partition auto, greedy and dppa), or dealt in turn",
     4},
    {"batch-size", KEY_BATCH_SIZE, "B", 0,
     "Samples a batch of each worker, or a share as P% (default 0.01%, at least 100)", 4},
    {"order", KEY_ORDER, "NAME", 0,
     "Order of samples: shuffled (default), given, or, for lmf, grid: by groups of users and items",
     4},
    {"grid", KEY_GRID, "U,I", 0,
     "Groups of users and of items, or one number for both, for --order grid (1 to 4096; default: "
     "chosen for the memory)",
     4},
    {"lanes", KEY_LANES, "N", 0,
     "Batches that share no row side by side, for --order grid: work for as many threads (1, the "
     "default: none, to 16)",
     4},
    {"seed", KEY_SEED, "N", 0, "Seed of the shuffle and of the test split (default 1)", 4},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of this run, and of the grid and windows it cuts (default: half of the memory)", 5},
    {"blocks", KEY_BLOCKS, "NAME", 0,
     "Block builder, for drps-train --store rocksdb, leveldb or file: pattern (default: pages of "
     "rows "
     "with one access pattern), auto (merges what batches use together), topk and pairwise (the "
     "paper's merging), greedy (exact, small data), none (one row a block); to compare with, pages "
     "by id, frequency, or random",
     5},
    {"block-size", KEY_BLOCK_BYTES, "SIZE", 0, "Bytes a block at most (default 2K)", 5},
    {"seek-us", KEY_SEEK, "T", 0, "What a disk request costs beside its bytes (default 40)", 6},
    {"transfer-mbs", KEY_TRANSFER, "R", 0, "MB/s of long requests (default 1200)", 6},
    {"calibrate", KEY_CALIBRATE, "DIR", 0, "Measure both on the disk of this folder", 6},
    {"topk", KEY_TOP_K, "K", 0, "topk: pairs merged a round (default 50)", 6},
    {"min-gain", KEY_MIN_GAIN, "US", 0, "Merge only what saves more an epoch (default 0)", 6},
    {"prune", KEY_PRUNE, "F", 0, "Rows that fewer batches use stay alone (default: none do)", 6},
    {"prune-to", KEY_PRUNE_TO, "N", 0, "The same for all but the N most used rows", 6},
    {"sample", KEY_SAMPLE, "P", 0, "Count this share of the batches (default: all)", 6},
    {"shards", KEY_SHARDS, "N", 0, "Processes that count accesses, each a share of the batches", 6},
    {"peers", KEY_PEERS, "FILE", 0,
     "Count on several machines, a share of the batches each: FILE has \"host:port [public key]\" "
     "of each, a line a machine, as for drps-train",
     7},
    {"peer-rank", KEY_PEER_RANK, "R", 0,
     "Which line this process is, from 0 (default: as mpirun, srun or an indexed Kubernetes job "
     "say); 0 reads DATA and makes PLAN, others only count",
     7},
    {"keys", KEY_KEYS, "DIR", 0,
     "This machine's keys (drps-train --make-keys); needed beyond one machine", 7},
    {"insecure", KEY_INSECURE, NULL, 0, "Go without keys: in a network where all are trusted", 7},
    {"timeout", KEY_TIMEOUT, "S", 0, "Seconds to wait for the others to start (default 600)", 7},
    {"silence", KEY_SILENCE, "S", 0,
     "Seconds for which a link may be cut; who is not heard of for somewhat more than twice that "
     "is dead (default 5)",
     7},
    {"no-forecast", KEY_NO_FORECAST, NULL, 0,
     "Leave out what an epoch would move, which takes longest where many blocks are used", 8},
    {"force", KEY_FORCE, NULL, 0, "Replace PLAN if it exists", 8},
    {0},
};

struct paths {
    const char **list;
    size_t n, cap;
};

struct options {
    struct drps_index_options index;
    struct drps_index_ranks_options ranks; /* if it has peers */
    int has_rank, has_waits;
    struct paths inputs, tests;
};

static void add_path(struct drps_cli *cli, struct paths *paths, const char *path)
{
    if (drps_array_reserve(&paths->list, &paths->cap, paths->n + 1, sizeof(*paths->list)))
        drps_cli_usage(cli, "no memory for %zu file names", paths->n + 1);
    paths->list[paths->n++] = path;
}

static void parse_batch_size(struct drps_cli *cli, struct drps_index_options *o, char *arg)
{
    size_t n = strlen(arg);
    o->batch_size = 0;
    o->batch_percent = 0;
    if (n && arg[n - 1] == '%')
        o->batch_percent = drps_cli_share(cli, arg) * 100;
    else
        o->batch_size = drps_cli_count(cli, arg, 1, UINT32_MAX);
    if (!o->batch_size && o->batch_percent <= 0)
        drps_cli_usage(cli, "a batch needs at least one sample");
}

static const char *choice(struct drps_cli *cli, const char *arg, const char *const *names)
{
    return names[drps_cli_choice(cli, arg, names)];
}

static int parse_data_option(struct drps_cli *cli, struct drps_index_options *o, int key, char *arg)
{
    switch (key) {
    case KEY_HASH_SEED:
        o->reader.hash_seed = drps_cli_count(cli, arg, 0, INT64_MAX);
        return 0;
    case KEY_TEST_FRACTION:
        o->test_fraction = drps_cli_share(cli, arg);
        return 0;
    default:
        return reader_option(cli, &o->reader, key, arg);
    }
}

static int parse_blocks_option(struct drps_cli *cli, struct drps_index_options *options, int key,
                               char *arg)
{
    static const char *const builders[] = {"pattern", "auto", "topk",      "pairwise", "greedy",
                                           "none",    "id",   "frequency", "random",   NULL};
    struct drps_blocks_options *o = &options->blocks;
    switch (key) {
    case KEY_BLOCKS:
        o->by = choice(cli, arg, builders);
        return 0;
    case KEY_BLOCK_BYTES:
        o->bytes = drps_cli_size(cli, arg, 4, 1 << 30);
        return 0;
    case KEY_SEEK:
        o->seek_ns = (uint64_t)(drps_cli_real(cli, arg, 1e-3, 1e9) * 1e3);
        return 0;
    case KEY_TRANSFER:
        o->transfer_bps = (uint64_t)(drps_cli_real(cli, arg, 1e-3, 1e9) * 1e6);
        return 0;
    case KEY_CALIBRATE:
        o->calibrate = arg;
        return 0;
    case KEY_TOP_K:
        o->top_k = (uint32_t)drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_MIN_GAIN:
        o->min_gain_us = drps_cli_real(cli, arg, 0, 1e15);
        return 0;
    case KEY_PRUNE:
        o->prune = (uint32_t)drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_PRUNE_TO:
        o->prune_to = (uint32_t)drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_SAMPLE:
        o->sample = drps_cli_share(cli, arg);
        return 0;
    case KEY_SHARDS:
        o->shards = (unsigned)drps_cli_count(cli, arg, 1, 64);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int parse_ranks_option(struct drps_cli *cli, struct options *options, int key, char *arg)
{
    struct drps_index_ranks_options *o = &options->ranks;
    switch (key) {
    case KEY_PEERS:
        o->peers = arg;
        return 0;
    case KEY_PEER_RANK:
        options->has_rank = 1;
        o->rank = (uint32_t)drps_cli_count(cli, arg, 0, DRPS_REMOTE_PEERS_MAX - 1);
        return 0;
    case KEY_KEYS:
        o->keys = arg;
        return 0;
    case KEY_INSECURE:
        o->insecure = 1;
        return 0;
    case KEY_TIMEOUT:
        options->has_waits = 1;
        o->wait_ms = (uint32_t)drps_cli_count(cli, arg, 1, 1000000) * 1000;
        return 0;
    case KEY_SILENCE:
        options->has_waits = 1;
        o->cut_ms = (uint32_t)drps_cli_count(cli, arg, 1, 3600) * 1000;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* "U,I", or "G" for both. */
static void parse_grid(struct drps_cli *cli, struct drps_index_options *o, char *arg)
{
    char *items = strchr(arg, ',');
    if (items) *items++ = '\0';
    o->grid_users = (uint32_t)drps_cli_count(cli, arg, 1, 4096);
    o->grid_items = items ? (uint32_t)drps_cli_count(cli, items, 1, 4096) : o->grid_users;
}

static int parse_plan_option(struct drps_cli *cli, struct drps_index_options *o, int key, char *arg)
{
    static const char *const algos[] = {"lir", "lor", "svm", "lmf", "fm", NULL};
    static const char *const losses[] = {"squared", "logistic", "hinge", "squared-hinge", NULL};
    static const char *const tasks[] = {"auto", "regression", "classification", NULL};
    static const char *const orders[] = {"shuffled", "given", "grid", NULL};
    static const char *const partitions[] = {"range", "greedy", "dppa", "auto", "hash", NULL};
    static const char *const samples[] = {"dealt", "placed", NULL};
    switch (key) {
    case 'o':
        o->out = arg;
        return 0;
    case KEY_ALGO:
        o->algo = choice(cli, arg, algos);
        return 0;
    case KEY_LOSS:
        o->loss = choice(cli, arg, losses);
        return 0;
    case KEY_TASK:
        o->task = choice(cli, arg, tasks);
        return 0;
    case KEY_RANK:
        o->rank = (uint32_t)drps_cli_count(cli, arg, 1, 65535);
        return 0;
    case KEY_NO_BIAS:
        o->no_bias = 1;
        return 0;
    case KEY_WORKERS:
        o->workers = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 0;
    case KEY_PARTITION:
        o->partition = choice(cli, arg, partitions);
        return 0;
    case KEY_SAMPLES:
        o->samples = choice(cli, arg, samples);
        return 0;
    case KEY_BATCH_SIZE:
        parse_batch_size(cli, o, arg);
        return 0;
    case KEY_ORDER:
        o->order = choice(cli, arg, orders);
        return 0;
    case KEY_GRID:
        parse_grid(cli, o, arg);
        return 0;
    case KEY_LANES:
        o->lanes = (uint32_t)drps_cli_count(cli, arg, 1, 16);
        return 0;
    case KEY_SEED:
        o->seed = drps_cli_count(cli, arg, 0, INT64_MAX);
        return 0;
    case KEY_MEMORY:
        o->memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    case KEY_FORCE:
        o->force = 1;
        return 0;
    case KEY_NO_FORECAST:
        o->no_forecast = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int only_counts(const struct options *o)
{
    return o->ranks.peers && o->ranks.rank > 0;
}

static void check_ranks(struct drps_cli *cli, const struct options *o)
{
    const char *by = o->index.blocks.by ? o->index.blocks.by : "pattern";
    if (!o->ranks.peers && (o->has_rank || o->ranks.keys || o->ranks.insecure || o->has_waits))
        drps_cli_usage(
            cli, "--peer-rank, --keys, --insecure, --timeout and --silence need --peers FILE");
    if (o->ranks.peers && o->index.blocks.shards)
        drps_cli_usage(cli, "--shards counts on this machine, --peers on several: give one");
    if (o->ranks.peers && !only_counts(o) && !drps_index_counts(by))
        drps_cli_usage(
            cli,
            "--blocks %s counts nothing that several machines could share: --peers is for "
            "--blocks auto, topk, pairwise and greedy",
            by);
}

static void check(struct drps_cli *cli, const struct options *o)
{
    check_ranks(cli, o);
    if (!o->inputs.n && !only_counts(o))
        drps_cli_usage(cli, "no input: name at least one file, or - for stdin");
    if (!o->index.algo && !only_counts(o))
        drps_cli_usage(cli, "--algo is missing: lir, lor, svm, lmf or fm");
    if (!o->index.out) drps_cli_usage(cli, "-o PLAN is missing: the folder to make");
    if (o->index.grid_users && (!o->index.order || strcmp(o->index.order, "grid") != 0))
        drps_cli_usage(cli, "--grid needs --order grid");
    if (o->index.lanes > 1 && (!o->index.order || strcmp(o->index.order, "grid") != 0))
        drps_cli_usage(cli, "--lanes needs --order grid");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct options *o = cli->input;
    if (key == ARGP_KEY_ARG) {
        add_path(cli, &o->inputs, arg);
        return 0;
    }
    if (key == KEY_TEST) {
        add_path(cli, &o->tests, arg);
        return 0;
    }
    if (key == ARGP_KEY_END) {
        check(cli, o);
        return 0;
    }
    int rc = parse_data_option(cli, &o->index, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_blocks_option(cli, &o->index, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_ranks_option(cli, o, key, arg);
    return rc == ARGP_ERR_UNKNOWN ? parse_plan_option(cli, &o->index, key, arg) : rc;
}

/* ---- The columns of csv data ---- */

enum { COLUMNS_TOLD = 100 };

struct columns {
    struct drps_cli *cli;
    json_t *list; /* own; NULL: the data has none */
};

static const char *kind_name(enum drps_column_kind kind)
{
    static const char *const names[] = {[DRPS_COLUMN_IGNORE] = "ignore",
                                        [DRPS_COLUMN_LABEL] = "label",
                                        [DRPS_COLUMN_NUMBER] = "number",
                                        [DRPS_COLUMN_CATEGORY] = "category"};
    return names[kind];
}

/* A line each; of very many columns a line for neighbours of one kind. */
static void show_columns(void *ctx, const struct drps_reader_column *columns, size_t n)
{
    struct columns *c = ctx;
    const struct drps_log *log = &c->cli->log;
    c->list = json_array(); /* a NULL is caught when it is printed */
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(c->list,
                                    json_pack("{s:s, s:s, s:s}", "name", columns[i].name, "kind",
                                              kind_name(columns[i].kind), "why", columns[i].why));
    for (size_t i = 0, end; i < n; i = end) {
        const char *kind = kind_name(columns[i].kind);
        for (end = i + 1; n > COLUMNS_TOLD && end < n && columns[end].kind == columns[i].kind;)
            end++;
        if (end - i > 1)
            drps_log(log, DRPS_LOG_INFO, "%zu columns from %s to %s: %s", end - i, columns[i].name,
                     columns[end - 1].name, kind);
        else
            drps_log(log, DRPS_LOG_INFO, "column %s: %s (%s)", columns[i].name, kind,
                     columns[i].why);
    }
}

static void show_progress(void *ctx, enum drps_index_phase phase, uint64_t done, uint64_t total)
{
    if (total)
        drps_cli_progress(ctx, "%s: %.0f %%", drps_index_phase_name(phase),
                          100.0 * (double)done / (double)total);
    else
        drps_cli_progress(ctx, "%s: %llu", drps_index_phase_name(phase), (unsigned long long)done);
}

static const char *size(uint64_t bytes)
{
    static char bufs[8][32];
    static unsigned at;
    at = (at + 1) % 8;
    return drps_size_format(bytes, bufs[at], sizeof(bufs[at]));
}

static void print_forecast(const struct drps_index_result *r)
{
    uint64_t model = r->info.rows * r->info.row_bytes;
    const char *ended = ""; /* the store whose lines have ended: less memory does not fit either */
    double sampled = 1;
    if (!r->forecasts) return;
    printf("\nforecast of one epoch (rows of %llu bytes: parameters and one optimizer state)\n",
           (unsigned long long)r->info.row_bytes);
    printf("  %-9s %10s %6s %9s %11s %11s %11s\n", "store", "memory", "share", "windows", "read",
           "written", "I/Os");
    for (size_t i = 0; i < r->forecasts; i++) {
        const struct drps_forecast *f = &r->forecast[i];
        if (f->sampled < sampled) sampled = f->sampled;
        if (strcmp(f->store, ended) == 0) continue;
        printf("  %-9s %10s %5.1f%%", f->store, size(f->memory_bytes),
               100.0 * (double)f->memory_bytes / (double)model);
        if (f->feasible) {
            printf(" %9llu %11s %11s %11llu\n", (unsigned long long)f->windows, size(f->read_bytes),
                   size(f->written_bytes), (unsigned long long)f->ios);
            continue;
        }
        printf("   one batch does not fit\n");
        ended = f->store;
    }
    if (sampled < 1)
        printf("  pib: counted on %.3g%% of the blocks, and scaled up\n", 100 * sampled);
}

static void print_ranks(const struct drps_index_result *r)
{
    const struct drps_plan_info *i = &r->info;
    if (i->ranks.workers < 2) return;
    printf("\n%u workers and servers, in rounds of a batch each\n", i->ranks.workers);
    printf("  %4s %11s %12s %9s %8s  %s\n", "rank", "rows", "row uses", "plan", "windows",
           "an epoch's parameters from and to other ranks");
    for (uint32_t k = 0; k < i->ranks.workers; k++) {
        const struct drps_index_rank *rank = &r->ranks[k];
        printf("  %4u %11llu %12llu %9s %8llu  %s, %s\n", k, (unsigned long long)rank->rows,
               (unsigned long long)rank->row_uses, size(rank->plan_bytes),
               (unsigned long long)rank->windows, size(rank->pulled_rows * i->dim * 4),
               size(rank->served_rows * i->dim * 4));
    }
}

static void print_text(const struct drps_index_result *r)
{
    const struct drps_plan_info *i = &r->info;
    double parse_seconds = r->phase_seconds[DRPS_PHASE_PARSE];
    printf("plan %s: %s, %s loss%s\n", i->format, i->algo, i->loss, i->rank ? "" : ", linear");
    printf("  samples  %llu training, %llu evaluation", (unsigned long long)i->samples,
           (unsigned long long)i->test_samples);
    if (r->skipped_lines) printf(" (%llu bad lines skipped)", (unsigned long long)r->skipped_lines);
    printf(
        "\n  entries  %llu training, %llu evaluation (%llu more of features unseen in training)\n",
        (unsigned long long)i->nnz, (unsigned long long)i->test_nnz,
        (unsigned long long)i->test_unseen);
    printf("  rows     %llu of %u floats: %s, %s with one optimizer state\n",
           (unsigned long long)i->rows, i->dim, size(i->rows * i->dim * 4),
           size(i->rows * i->row_bytes));
    printf("  batches  %llu of %llu samples; at most %llu rows each\n",
           (unsigned long long)i->batches, (unsigned long long)i->batch_size,
           (unsigned long long)i->max_batch_rows);
    printf("  blocks   %llu (%s), at most %llu a batch\n", (unsigned long long)i->blocks,
           i->blocks_by, (unsigned long long)i->max_step_blocks);
    printf("  windows  %llu for %s of rows; two of them hold at most %llu rows (%s)\n",
           (unsigned long long)i->windows, size(i->window_budget_bytes),
           (unsigned long long)i->working_set_rows, size(i->working_set_rows * i->row_bytes));
    printf("  needs    %s of memory for all rows, or a pool of %s for the largest batch's blocks;\n"
           "           disk: %s for the model; while training out of core %s for rows (relay: up\n"
           "           to a quarter more), and the parameters once more at the end\n",
           size(i->rows * i->row_bytes),
           size(i->max_step_blocks * i->max_block_rows * i->row_bytes), size(i->rows * i->dim * 4),
           size(i->rows * i->row_bytes));
    print_ranks(r);
    print_forecast(r);
    printf("\n%s of text in %.1f s (parsing %.0f MB/s), plan %s, peak memory %s\n",
           size(r->input_bytes), r->seconds,
           parse_seconds > 0 ? (double)r->input_bytes / 1e6 / parse_seconds : 0.0,
           size(r->plan_bytes), size(drps_memory_peak()));
}

static json_t *forecast_json(const struct drps_forecast *f)
{
    json_t *j = json_pack("{s:s, s:b, s:f}", "store", f->store, "feasible", f->feasible, "sampled",
                          f->sampled);
    (void)json_object_set_new(
        j, "memory_bytes",
        drps_cli_json_count(f->memory_bytes)); /* a NULL j is caught when printed */
    (void)json_object_set_new(j, "windows", drps_cli_json_count(f->windows));
    (void)json_object_set_new(j, "read_bytes", drps_cli_json_count(f->read_bytes));
    (void)json_object_set_new(j, "written_bytes", drps_cli_json_count(f->written_bytes));
    (void)json_object_set_new(j, "ios", drps_cli_json_count(f->ios));
    return j;
}

static json_t *rank_json(const struct drps_index_result *r, uint32_t k)
{
    const struct drps_index_rank *rank = &r->ranks[k];
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"rank", k},
        {"rows", rank->rows},
        {"row_uses", rank->row_uses},
        {"blocks", rank->blocks},
        {"windows", rank->windows},
        {"working_set_bytes", rank->working_set_rows * r->info.row_bytes},
        {"pulled_bytes", rank->pulled_rows * r->info.dim * 4},
        {"served_bytes", rank->served_rows * r->info.dim * 4},
        {"plan_bytes", rank->plan_bytes},
    };
    json_t *j = json_object();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        (void)json_object_set_new(j, counts[i].key,
                                  drps_cli_json_count(counts[i].value)); /* see forecast_json() */
    return j;
}

static int print_json(const struct drps_index_result *r, json_t *columns, struct drps_err *err)
{
    const struct drps_plan_info *i = &r->info;
    json_t *j = json_pack("{s:s, s:s, s:s}", "format", i->format, "algo", i->algo, "loss", i->loss);
    json_t *forecast = json_array();
    json_t *phases = json_object();
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"samples", i->samples},
        {"test_samples", i->test_samples},
        {"rows", i->rows},
        {"nnz", i->nnz},
        {"test_nnz", i->test_nnz},
        {"test_unseen", i->test_unseen},
        {"workers", i->ranks.workers},
        {"batches", i->batches},
        {"test_batches", i->eval_batches},
        {"batch_size", i->batch_size},
        {"blocks", i->blocks},
        {"row_uses", i->row_uses},
        {"block_uses", i->block_uses},
        {"block_use_rows", i->block_use_rows},
        {"runs", i->runs},
        {"run_rows", i->run_rows},
        {"row_bytes", i->row_bytes},
        {"seek_ns", i->seek_ns},
        {"transfer_bps", i->transfer_bps},
        {"windows", i->windows},
        {"working_set_bytes", i->working_set_rows * i->row_bytes},
        {"model_bytes", i->rows * i->dim * 4},
        {"input_bytes", r->input_bytes},
        {"skipped_lines", r->skipped_lines},
        {"plan_bytes", r->plan_bytes},
        {"peak_rss_bytes", drps_memory_peak()},
    };
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
        (void)json_object_set_new(j, counts[k].key,
                                  drps_cli_json_count(counts[k].value)); /* see forecast_json() */
    for (size_t k = 0; k < r->forecasts; k++)
        (void)json_array_append_new(forecast, forecast_json(&r->forecast[k]));
    for (unsigned k = 0; k < DRPS_INDEX_PHASES; k++)
        (void)json_object_set_new(phases, drps_index_phase_name((enum drps_index_phase)k),
                                  drps_cli_json_real(r->phase_seconds[k]));
    if (columns) (void)json_object_set(j, "columns", columns);
    (void)json_object_set_new(j, "forecast", forecast);
    if (i->ranks.workers > 1) {
        json_t *ranks = json_array();
        for (uint32_t k = 0; k < i->ranks.workers; k++)
            (void)json_array_append_new(ranks, rank_json(r, k));
        (void)json_object_set_new(j, "ranks", ranks);
    }
    (void)json_object_set_new(j, "phase_seconds", phases);
    (void)json_object_set_new(j, "seconds", drps_cli_json_real(r->seconds));
    return drps_cli_json_print(j, err);
}

static int run(const struct drps_cli *cli, struct options *o, struct drps_index_result *result,
               struct drps_err *err)
{
    int rc = 0;
    if (!o->ranks.peers) return drps_index_run(drps_io_os(), &o->index, result, err);
    o->ranks.index = &o->index;
    drps_cli_raise_files(cli);
    if (!o->has_rank) rc = drps_launch_rank(o->ranks.peers, "--peer-rank", &o->ranks.rank, err);
    return rc < 0 ? rc : drps_index_ranks_run(&o->ranks, result, err);
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-index",
        .args_doc = "DATA... -o PLAN",
        .doc = "Compile data sets into a plan for drps-train: which rows each batch touches, which "
               "rows belong "
               "together on disk, and when each row is needed next.\v"
               "DATA are text files, plain or compressed (.gz .zst .xz), or - for stdin.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {.index = {.seed = 1}};
    struct drps_index_result result;
    struct drps_cli cli;
    struct columns columns = {.cli = &cli};
    struct drps_err err = DRPS_ERR_INIT;

    drps_cli_start(&cli, &tool, &o, argc, argv);
    o.index.inputs = o.inputs.list;
    o.index.inputs_n = o.inputs.n;
    o.index.tests = o.tests.list;
    o.index.tests_n = o.tests.n;
    o.index.log = &cli.log;
    o.index.reader.on_columns = show_columns;
    o.index.reader.columns_ctx = &columns;
    o.index.interrupt = drps_cli_stop();
    o.index.progress = show_progress;
    o.index.progress_ctx = &cli;
    int rc = run(&cli, &o, &result, &err);
    drps_cli_progress_end(&cli);
    if (rc == 0 && !only_counts(&o)) {
        if (cli.json)
            rc = print_json(&result, columns.list, &err);
        else if (cli.log.level >= DRPS_LOG_INFO)
            print_text(&result);
    }
    json_decref(columns.list);
    free(o.inputs.list);
    free(o.tests.list);
    return drps_cli_finish(&cli, rc, &err);
}
