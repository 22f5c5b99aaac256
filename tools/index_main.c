/* drps-index compiles data sets into plans. This file parses arguments and prints; the work is done
 * by index/run/compile.c, and of several machines by index/ranks/index_ranks.c. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_size.h"
#include "index/drps_index.h"
#include "index/plan/drps_algorithm.h"
#include "index/ranks/drps_index_ranks.h"
#include "net/drps_launch.h"
#include "tools/drps_cli.h"
#include "tools/index_progress.h"
#include "tools/index_report.h"
#include "tools/reader_options.h"

enum {
    KEY_ALGO = DRPS_CLI_KEY,
    KEY_LOSS,
    KEY_TASK,
    KEY_FACTORS,
    KEY_RANK, /* of drps-train; here a mistake that is told */
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
    KEY_FROM_PLAN,
};

/* clang-format off */
static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "Result and model:", 1},
    {"output", 'o', "PLAN", 0, "Folder to make (required)", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace PLAN if it exists", 1},
    {"algo", KEY_ALGO, "NAME", 0, "Model: lir, lor, svm, lmf or fm (required)", 1},
    {"factors", KEY_FACTORS, "K", 0, "Factors a row, for lmf and fm: the length of its vector (default 16)", 1},
    {"rank", KEY_RANK, "R", OPTION_HIDDEN, NULL, 1},
    {"task", KEY_TASK, "NAME", 0,
     "For fm: auto (default; two distinct labels mean classification), regression, classification", 1},
    {"loss", KEY_LOSS, "NAME", 0,
     "squared, logistic, hinge, squared-hinge (default: the model's usual one)", 1},
    {"no-bias", KEY_NO_BIAS, NULL, 0, "No intercept", 1},

    {NULL, 0, NULL, 0, "Input:", 2},
    READER_OPTIONS(2, "default auto", "label, target, y or click", "numbers where all are"),
    {"hash-seed", KEY_HASH_SEED, "N", 0, "Seed of the keys of string names (default 0)", 2},
    {"test", KEY_TEST, "FILE", 0, "Test samples, which are not trained on; may be given several times", 2},
    {"test-fraction", KEY_TEST_FRACTION, "P", 0,
     "Take this share of the samples as test samples (0.1 or 10%; default 0)", 2},

    {NULL, 0, NULL, 0, "Batches:", 3},
    {"batch-size", KEY_BATCH_SIZE, "B", 0,
     "Samples a batch of each worker, or a share as P% (default 0.01%, at least 100)", 3},
    {"order", KEY_ORDER, "NAME", 0,
     "Order of samples: shuffled (default), given, or, for lmf, grid: by groups of users and items", 3},
    {"grid", KEY_GRID, "U,I", 0,
     "Groups of users and of items, or one number for both, for --order grid (1 to 4096; default: "
     "chosen for the memory)", 3},
    {"lanes", KEY_LANES, "N", 0,
     "Batches that share no row side by side, for --order grid: work for as many threads (1 to 16; "
     "default: as many as --workers)", 3},
    {"seed", KEY_SEED, "N", 0, "Seed of the shuffle and of the test split (default 1)", 3},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of this run, and of the grid and windows it cuts (default: half of the memory)", 3},
    {"no-forecast", KEY_NO_FORECAST, NULL, 0,
     "Leave out what an epoch would move, which takes longest where many blocks are used", 3},

    {NULL, 0, NULL, 0, "Training on several machines:", 4},
    {"workers", KEY_WORKERS, "N", 0,
     "Make a plan for N machines: a worker and a server each (default 1)", 4},
    {"from-plan", KEY_FROM_PLAN, "PLAN", 0,
     "In place of DATA: deal the batches of a finished plan to --workers machines; with -o, --force, "
     "--partition, --memory and --no-forecast alone", 4},
    {"partition", KEY_PARTITION, "NAME", 0,
     "Which rows each of the machines holds: range (default: runs of neighbouring rows that share "
     "memory and accesses evenly; but with --order grid ranges of rows circulate, between at most "
     "16), greedy (the paper's), dppa (least traffic), auto (even loads, "
     "then least traffic); to compare with, hash", 4},
    {"samples", KEY_SAMPLES, "HOW", 0,
     "Which samples each of the machines trains on: placed with the rows that they use (default "
     "for --partition auto, greedy and dppa), or dealt in turn", 4},

    {NULL, 0, NULL, 0, "Blocks, for drps-train --store rocksdb, leveldb or file:", 5},
    {"blocks", KEY_BLOCKS, "NAME", 0,
     "Block builder: pattern (default: pages of rows with one access pattern), auto (merges what "
     "batches use together), topk and pairwise (the paper's merging), greedy (exact, small data), "
     "none (one row a block); to compare with, pages by id, frequency, or random", 5},
    {"block-size", KEY_BLOCK_BYTES, "SIZE", 0, "Bytes a block at most (default 2K)", 5},
    {"seek-us", KEY_SEEK, "T", 0, "What a disk request costs beside its bytes (default 40)", 5},
    {"transfer-mbs", KEY_TRANSFER, "R", 0, "MB/s of long requests (default 1200)", 5},
    {"calibrate", KEY_CALIBRATE, "DIR", 0, "Measure --seek-us and --transfer-mbs on the disk of this folder", 5},
    {"topk", KEY_TOP_K, "K", 0, "topk: pairs merged a round (default 50)", 5},
    {"min-gain", KEY_MIN_GAIN, "US", 0, "Merge only what saves more an epoch (default 0)", 5},
    {"prune", KEY_PRUNE, "F", 0, "Rows that fewer batches use stay alone (default: none do)", 5},
    {"prune-to", KEY_PRUNE_TO, "N", 0, "All rows but the N most used stay alone (default: none do)", 5},
    {"sample", KEY_SAMPLE, "P", 0, "Count this share of the batches (default: all)", 5},
    {"shards", KEY_SHARDS, "N", 0, "Processes that count accesses, each a share of the batches (default 1)", 5},

    {NULL, 0, NULL, 0, "Counting on several machines, for --blocks auto, topk, pairwise and greedy:", 6},
    {"peers", KEY_PEERS, "FILE", 0,
     "Count a share of the batches on each: FILE has \"host:port [public key]\" of each, a line a "
     "machine, as for drps-train", 6},
    {"peer-rank", KEY_PEER_RANK, "R", 0,
     "Which line this process is, from 0 (default: as mpirun, srun or an indexed Kubernetes job "
     "say); 0 reads DATA and makes PLAN, others only count", 6},
    {"keys", KEY_KEYS, "DIR", 0,
     "This machine's keys (drps-train --make-keys); needed beyond one machine", 6},
    {"insecure", KEY_INSECURE, NULL, 0, "Go without keys: in a network where all are trusted", 6},
    {"timeout", KEY_TIMEOUT, "S", 0, "Seconds to wait for the others to start (default 600)", 6},
    {"silence", KEY_SILENCE, "S", 0,
     "Seconds for which a link may be cut; who is not heard of for somewhat more than twice that "
     "is dead (default 5)", 6},
    {0},
};
/* clang-format on */

struct paths {
    const char **list;
    size_t n, cap;
};

struct options {
    struct drps_index_options index;
    struct drps_index_ranks_options ranks; /* if it has peers */
    int has_rank, has_waits;
    int of_text; /* an option was given that says how text becomes a plan */
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
        if (!(o->sample > 0)) drps_cli_usage(cli, "'%s' counts no batch", arg);
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

/* Take "U,I", or "G" for both. */
static void parse_grid(struct drps_cli *cli, struct drps_index_options *o, char *arg)
{
    char *items = strchr(arg, ',');
    if (items) *items++ = '\0';
    o->grid_users = (uint32_t)drps_cli_count(cli, arg, 1, 4096);
    o->grid_items = items ? (uint32_t)drps_cli_count(cli, items, 1, 4096) : o->grid_users;
}

static int parse_plan_option(struct drps_cli *cli, struct drps_index_options *o, int key, char *arg)
{
    static const char *const tasks[] = {"auto", "regression", "classification", NULL};
    static const char *const orders[] = {"shuffled", "given", "grid", NULL};
    static const char *const partitions[] = {"range", "greedy", "dppa", "auto", "hash", NULL};
    static const char *const samples[] = {"dealt", "placed", NULL};
    char names[DRPS_ALGORITHM_NAMES_BYTES];
    enum drps_loss loss;
    switch (key) {
    case 'o':
        o->out = arg;
        return 0;
    case KEY_ALGO:
        if (!drps_algorithm_find(arg))
            drps_cli_usage(cli, "'%s' is not one of: %s", arg, drps_algo_names(names));
        o->algo = arg;
        return 0;
    case KEY_LOSS:
        if (!drps_loss_find(arg, &loss))
            drps_cli_usage(cli, "'%s' is not one of: %s", arg, drps_loss_names(names));
        o->loss = arg;
        return 0;
    case KEY_TASK:
        o->task = choice(cli, arg, tasks);
        return 0;
    case KEY_FACTORS:
        o->factors = (uint32_t)drps_cli_count(cli, arg, 1, 65535);
        return 0;
    case KEY_RANK:
        drps_cli_usage(cli,
                       "a rank is a process of several, in drps-train; say --factors %s for "
                       "the length of the factors",
                       arg);
    case KEY_NO_BIAS:
        o->no_bias = 1;
        return 0;
    case KEY_WORKERS:
        o->workers = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 0;
    case KEY_FROM_PLAN:
        o->from_plan = arg;
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
    if (o->index.from_plan && (o->of_text || o->inputs.n || o->tests.n))
        drps_cli_usage(cli, "--from-plan takes all but --workers, --partition, --memory and "
                            "--no-forecast from the plan: give no other options, and no DATA");
    if (!o->index.out) drps_cli_usage(cli, "-o PLAN is missing: the folder to make");
    if (o->index.from_plan) return;
    if (!o->inputs.n && !only_counts(o))
        drps_cli_usage(cli, "no input: name at least one file, or - for stdin");
    if (!o->index.algo && !only_counts(o))
        drps_cli_usage(cli, "--algo is missing: lir, lor, svm, lmf or fm");
    if (o->index.grid_users && (!o->index.order || strcmp(o->index.order, "grid") != 0))
        drps_cli_usage(cli, "--grid needs --order grid");
    if (o->index.lanes > 1 && (!o->index.order || strcmp(o->index.order, "grid") != 0))
        drps_cli_usage(cli, "--lanes needs --order grid");
}

/* Options that go with --from-plan. */
static int is_of_plans(int key)
{
    return key == 'o' || key == KEY_FORCE || key == KEY_WORKERS || key == KEY_PARTITION ||
           key == KEY_MEMORY || key == KEY_NO_FORECAST || key == KEY_FROM_PLAN;
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
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_plan_option(cli, &o->index, key, arg);
    if (rc == 0 && !is_of_plans(key)) o->of_text = 1;
    return rc;
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

/* Tell each column on a line; of very many columns, neighbours of one kind together. */
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

static int run(const struct drps_cli *cli, struct options *o, const struct drps_io *io,
               struct drps_index_result *result, struct drps_err *err)
{
    int rc = 0;
    if (o->index.from_plan) drps_cli_raise_files(cli); /* some of each rank */
    if (!o->ranks.peers) return drps_index_run(io, &o->index, result, err);
    o->ranks.index = &o->index;
    drps_cli_raise_files(cli);
    if (!o->has_rank) rc = drps_launch_rank(o->ranks.peers, "--peer-rank", &o->ranks.rank, err);
    return rc < 0 ? rc : drps_index_ranks_run(&o->ranks, result, err);
}

static int report(const struct drps_cli *cli, const struct options *o,
                  const struct drps_index_result *result, const json_t *columns,
                  struct drps_err *err)
{
    struct index_report report = {.result = result, .options = &o->index, .columns = columns};
    if (!cli->json && cli->log.level < DRPS_LOG_INFO) return 0;
    int rc = index_report_needs(&report, err);
    if (rc < 0)
        return drps_err_context(err, "%s is made, but what it needs cannot be told", o->index.out);
    if (cli->json) return index_report_json(&report, err);
    index_report_text(&report, cli->log.level >= DRPS_LOG_DEBUG);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-index",
        .args_doc = "DATA... -o PLAN\n--from-plan PLAN --workers N -o NEW",
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
    struct index_progress progress;
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
    o.index.progress = index_progress_tell;
    o.index.progress_ctx = &progress;
    index_progress_start(&progress, &cli, &o.index);
    int rc = run(&cli, &o, &progress.io, &result, &err);
    index_progress_stop(&progress);
    if (rc == 0 && !only_counts(&o)) rc = report(&cli, &o, &result, columns.list, &err);
    json_decref(columns.list);
    free(o.inputs.list);
    free(o.tests.list);
    return drps_cli_finish(&cli, rc, &err);
}
