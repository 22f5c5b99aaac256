/* The options of drps-index: their values, and which go together. */
#include "tools/index/options.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "index/plan/drps_algorithm.h"
#include "tools/drps_metrics_options.h"
#include "tools/drps_reader_options.h"
#include "tools/index/option_table.h"

static void add_path(struct drps_cli *cli, struct index_paths *paths, const char *path)
{
    if (drps_array_reserve(&paths->list, &paths->cap, paths->n + 1, sizeof(*paths->list)))
        drps_cli_usage(cli, "no memory for %zu file names", paths->n + 1);
    paths->list[paths->n++] = path;
}

/* Options whose value is kept as it is given. */
static int parse_plain(struct drps_cli *cli, struct index_options *o, int key, const char *arg)
{
    static const char *const tasks[] = {"auto", "regression", "classification", NULL};
    static const char *const orders[] = {"shuffled", "given", "grid", NULL};
    static const char *const partitions[] = {"range", "greedy", "dppa", "auto", "hash", NULL};
    static const char *const draws[] = {"even", "popular", NULL};
    static const char *const samples[] = {"dealt", "placed", "round", NULL};
    static const char *const builders[] = {"pattern", "auto", "topk",      "pairwise", "greedy",
                                           "none",    "id",   "frequency", "random",   NULL};
    const struct drps_cli_plain plain[] = {
        {.key = 'o', .text = &o->index.out},
        {.key = KEY_FORCE, .flag = &o->index.force},
        {.key = KEY_NO_BIAS, .flag = &o->index.no_bias},
        {.key = KEY_DENSE, .flag = &o->index.dense},
        {.key = KEY_NO_NORMALIZE, .flag = &o->index.not_normalized},
        {.key = KEY_NO_FORECAST, .flag = &o->index.no_forecast},
        {.key = KEY_SEPARATE, .flag = &o->index.separate},
        {.key = KEY_FROM_PLAN, .text = &o->index.from_plan},
        {.key = KEY_BASE, .text = &o->index.base},
        {.key = KEY_CLASS_WEIGHTS, .text = &o->index.class_weights},
        {.key = KEY_CALIBRATE, .text = &o->index.blocks.calibrate},
        {.key = KEY_TASK, .text = &o->index.task, .names = tasks},
        {.key = KEY_ORDER, .text = &o->index.order, .names = orders},
        {.key = KEY_PARTITION, .text = &o->index.partition, .names = partitions},
        {.key = KEY_SAMPLES, .text = &o->index.samples, .names = samples},
        {.key = KEY_NEGATIVES, .text = &o->index.implicit.by, .names = draws},
        {.key = KEY_BLOCKS, .text = &o->index.blocks.by, .names = builders},
        {.key = KEY_PEERS, .text = &o->ranks.peers},
        {.key = KEY_KEYS, .text = &o->ranks.keys},
        {.key = KEY_INSECURE, .flag = &o->ranks.insecure},
    };
    return drps_cli_take(cli, plain, sizeof(plain) / sizeof(plain[0]), key, arg);
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

static int parse_data_option(struct drps_cli *cli, struct drps_index_options *o, int key, char *arg)
{
    switch (key) {
    case KEY_HASH_SEED:
        o->reader.hash_seed = drps_cli_count(cli, arg, 0, INT64_MAX);
        return 0;
    case KEY_REPLAY:
        o->replay = drps_cli_share(cli, arg);
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
    struct drps_blocks_options *o = &options->blocks;
    switch (key) {
    case KEY_BLOCK_BYTES:
        o->bytes = drps_cli_size(cli, arg, 4, 1 << 30);
        return 0;
    case KEY_SEEK:
        o->seek_ns = (uint64_t)(drps_cli_real(cli, arg, 1e-3, 1e9) * 1e3);
        return 0;
    case KEY_TRANSFER:
        o->transfer_bps = (uint64_t)(drps_cli_real(cli, arg, 1e-3, 1e9) * 1e6);
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

/* Floats of an optimizer's state for each parameter. */
static uint32_t parse_states(struct drps_cli *cli, const char *arg)
{
    for (uint32_t i = 0; i < 3; i++)
        if (strcmp(arg, drps_plan_states_name(i)) == 0) return i;
    drps_cli_usage(cli, "'%s' is not one of: sgd, adagrad, ftrl", arg);
}

static int parse_ranks_option(struct drps_cli *cli, struct index_options *options, int key,
                              char *arg)
{
    struct drps_index_ranks_options *o = &options->ranks;
    switch (key) {
    case KEY_PEER_RANK:
        options->has_rank = 1;
        o->rank = (uint32_t)drps_cli_count(cli, arg, 0, DRPS_REMOTE_PEERS_MAX - 1);
        return 0;
    case KEY_TIMEOUT:
        options->has_waits = 1;
        o->wait_ms = (uint32_t)drps_cli_count(cli, arg, 1, 1000000) * 1000;
        return 0;
    case KEY_HAND_ON:
        options->index.hand_on =
            strcmp(arg, "all") == 0 ? UINT64_MAX : drps_cli_count(cli, arg, 1, UINT32_MAX - 1);
        return 0;
    case KEY_HAND_ON_FOR:
        options->index.hand_on_states = parse_states(cli, arg);
        options->has_hand_on_for = 1;
        return 0;
    case KEY_LINK:
        options->link_bits = drps_cli_speed(cli, arg);
        return 0;
    case KEY_SILENCE:
        options->has_waits = 1;
        o->cut_ms = (uint32_t)drps_cli_count(cli, arg, 1, 3600) * 1000;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int parse_implicit_option(struct drps_cli *cli, struct drps_index_options *options, int key,
                                 char *arg)
{
    struct drps_implicit_options *o = &options->implicit;
    switch (key) {
    case KEY_POSITIVE_FROM:
        o->has_least = 1;
        o->least = drps_cli_real(cli, arg, -FLT_MAX, FLT_MAX);
        return 0;
    case KEY_NEGATIVES_PER:
        o->each = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_NEGATIVES_MOST);
        return 0;
    case KEY_NEGATIVE_DRAWS:
        o->draws = (uint32_t)drps_cli_count(cli, arg, 1, 1000);
        return 0;
    case KEY_TEST_NEGATIVES:
        o->test = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_NEGATIVES_MOST);
        return 0;
    case KEY_ALPHA:
        o->has_alpha = 1;
        o->alpha = drps_cli_real(cli, arg, 0, 1e6);
        return 0;
    case KEY_NEGATIVE_WEIGHT:
        o->weight_all = strcmp(arg, "all") == 0;
        o->weight = o->weight_all ? 0 : drps_cli_real(cli, arg, 1e-6, 1e6);
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
    char names[DRPS_ALGORITHM_NAMES_BYTES];
    switch (key) {
    case KEY_ALGO:
        if (!drps_algorithm_find(arg))
            drps_cli_usage(cli, "'%s' is not one of: %s", arg, drps_algo_names(names));
        o->algo = arg;
        return 0;
    case KEY_LOSS:
        o->loss = arg;
        return 0;
    case KEY_OUTPUTS:
        o->outputs =
            (uint32_t)drps_cli_count(cli, arg, DRPS_EXPR_OUTPUTS_LEAST, DRPS_EXPR_OUTPUTS_MOST);
        return 0;
    case KEY_FACTORS:
        o->factors = (uint32_t)drps_cli_count(cli, arg, 1, 65535);
        return 0;
    case KEY_RANK:
        drps_cli_usage(cli,
                       "a rank is a process of several, in drps-train; say --factors %s for "
                       "the length of the factors",
                       arg);
    case KEY_WORKERS:
        o->workers = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 0;
    case KEY_SERVERS:
        o->servers = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 0;
    case KEY_RESIDUALS:
        o->own_slots = strcmp(arg, "each") == 0;
        o->residual_slots = o->own_slots || strcmp(arg, "all") == 0
                                ? UINT64_MAX
                                : drps_cli_count(cli, arg, 1, UINT32_MAX - 1);
        return 0;
    case KEY_BATCH_SIZE:
        parse_batch_size(cli, o, arg);
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
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int index_only_counts(const struct index_options *o)
{
    return o->ranks.peers && o->ranks.rank > 0;
}

static void check_ranks(struct drps_cli *cli, const struct index_options *o)
{
    const char *by = o->index.blocks.by ? o->index.blocks.by : "pattern";
    if (!o->ranks.peers && (o->has_rank || o->ranks.keys || o->ranks.insecure || o->has_waits))
        drps_cli_usage(
            cli, "--peer-rank, --keys, --insecure, --timeout and --silence need --peers FILE");
    if (o->ranks.peers && o->index.blocks.shards)
        drps_cli_usage(cli, "--shards counts on this machine, --peers on several: give one");
    if (o->ranks.peers && !index_only_counts(o) && !drps_index_counts(by))
        drps_cli_usage(
            cli,
            "--blocks %s counts nothing that several machines could share: --peers is for "
            "--blocks auto, topk, pairwise and greedy",
            by);
}

/* A name, but for expr, whose loss is a text. */
static void check_loss(struct drps_cli *cli, const struct drps_index_options *o)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    char names[DRPS_ALGORITHM_NAMES_BYTES];
    enum drps_loss loss;
    const int has_text = a && drps_algorithm_has_text(a);
    if (o->outputs && !has_text) drps_cli_usage(cli, "--outputs needs --algo expr");
    if (has_text && !o->loss)
        drps_cli_usage(cli, "--algo expr needs --loss, such as --loss 'squared(y, w*x)'");
    if (!o->loss || has_text || drps_loss_find(o->loss, &loss)) return;
    drps_cli_usage(cli, "'%s' is not one of: %s; an expression needs --algo expr", o->loss,
                   drps_loss_names(names));
}

static void check_base(struct drps_cli *cli, const struct index_options *o)
{
    if (o->index.replay > 0 && !o->index.base)
        drps_cli_usage(cli, "--replay takes samples of a base: give --base PLAN");
    if (!o->index.base || !o->of_model) return;
    drps_cli_usage(cli,
                   "--base takes the model, the hash seed, the format and the columns from the "
                   "plan: leave out --algo, --factors, --task, --loss, --outputs, --no-bias, "
                   "--no-normalize, --hash-seed, --format, --label, --columns, --separator, "
                   "--header, --no-header, --scale and --cross");
}

/* Refuses options of implicit feedback without a model of it. */
static void check_implicit(struct drps_cli *cli, const struct drps_index_options *o)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    const struct drps_implicit_options *i = &o->implicit;
    const int is_of_wmf = i->has_alpha || i->weight > 0 || i->weight_all;
    const int any = i->each || i->test || i->draws || i->by || i->has_least || is_of_wmf;
    if (any && a && !drps_algorithm_draws(a))
        drps_cli_usage(cli,
                       "--positive-from, --negatives, --negatives-per, --negative-draws, "
                       "--negative-weight, --test-negatives and --alpha are for --algo bpr, warp "
                       "and wmf, not for %s",
                       a->name);
    if (is_of_wmf && a && a->algo != DRPS_ALGO_WMF)
        drps_cli_usage(cli, "--alpha and --negative-weight are for --algo wmf, not for %s",
                       a->name);
}

static void check(struct drps_cli *cli, struct index_options *o)
{
    char names[DRPS_ALGORITHM_NAMES_BYTES];
    check_base(cli, o);
    check_loss(cli, &o->index);
    check_implicit(cli, &o->index);
    check_ranks(cli, o);
    if (o->has_hand_on_for && !o->index.hand_on)
        drps_cli_usage(cli, "--hand-on-for says for which optimizer --hand-on counts: give both");
    if (!o->has_hand_on_for) o->index.hand_on_states = 1; /* adagrad */
    if (o->index.from_plan &&
        (o->of_text || o->inputs.n || o->tests.n || o->weights.n || o->test_weights.n))
        drps_cli_usage(cli, "--from-plan takes all but --workers, --servers, --separate, "
                            "--partition, --residuals, --hand-on, --hand-on-for, --link, --memory "
                            "and --no-forecast from the plan: give no other "
                            "options, and no DATA");
    if (o->index.separate && !o->index.servers)
        drps_cli_usage(cli, "--separate needs --servers M: how many machines hold the rows");
    if (!o->index.out) drps_cli_usage(cli, "-o PLAN is missing: the folder to make");
    if (o->index.from_plan) return;
    if (!o->inputs.n && !index_only_counts(o))
        drps_cli_usage(cli, "no input: name at least one file, or - for stdin");
    if (!o->index.algo && !o->index.base && !index_only_counts(o))
        drps_cli_usage(cli, "--algo is missing: %s", drps_algo_names(names));
    if (o->index.grid_users && (!o->index.order || strcmp(o->index.order, "grid") != 0))
        drps_cli_usage(cli, "--grid needs --order grid");
    if (o->index.lanes > 1 && (!o->index.order || strcmp(o->index.order, "grid") != 0))
        drps_cli_usage(cli, "--lanes needs --order grid");
}

/* Several machines pull and push the fewest rows that way. Rows circulate in grid order, and a plan
 * that is dealt anew, or goes on from another one, keeps its row numbers. */
static void place_rows(struct drps_index_options *o)
{
    const int is_grid = o->order && strcmp(o->order, "grid") == 0;
    if (o->workers > 1 && !o->partition && !o->from_plan && !o->base && !is_grid)
        o->partition = "auto";
}

/* Options that go with --from-plan. */
static int is_of_plans(int key)
{
    return key == 'o' || key == KEY_FORCE || key == KEY_WORKERS || key == KEY_SERVERS ||
           key == KEY_SEPARATE || key == KEY_PARTITION || key == KEY_MEMORY ||
           key == KEY_NO_FORECAST || key == KEY_FROM_PLAN || key == KEY_LINK ||
           key == KEY_RESIDUALS || key == KEY_HAND_ON || key == KEY_HAND_ON_FOR;
}

/* Returns 1 for an option that a base settles. */
static int is_of_model(int key)
{
    switch (key) {
    case KEY_ALGO:
    case KEY_FACTORS:
    case KEY_TASK:
    case KEY_LOSS:
    case KEY_OUTPUTS:
    case KEY_NO_BIAS:
    case KEY_NO_NORMALIZE:
    case KEY_HASH_SEED:
    case READER_KEY_FORMAT:
    case READER_KEY_LABEL:
    case READER_KEY_COLUMNS:
    case READER_KEY_SEPARATOR:
    case READER_KEY_HEADER:
    case READER_KEY_NO_HEADER:
    case READER_KEY_SCALE:
    case READER_KEY_CROSS:
        return 1;
    default:
        return 0;
    }
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct index_options *o = cli->input;
    if (key == ARGP_KEY_ARG) {
        add_path(cli, &o->inputs, arg);
        return 0;
    }
    struct index_paths *list = key == KEY_TEST             ? &o->tests
                               : key == READER_KEY_WEIGHTS ? &o->weights
                               : key == KEY_TEST_WEIGHTS   ? &o->test_weights
                                                           : NULL;
    if (list) {
        add_path(cli, list, arg);
        return 0;
    }
    if (key == ARGP_KEY_END) {
        check(cli, o);
        place_rows(&o->index);
        return 0;
    }
    int rc = parse_plain(cli, o, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_data_option(cli, &o->index, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_blocks_option(cli, &o->index, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_ranks_option(cli, o, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_implicit_option(cli, &o->index, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_plan_option(cli, &o->index, key, arg);
    if (rc == ARGP_ERR_UNKNOWN && metrics_option(cli, &o->index.metrics, key, arg) == 0) return 0;
    if (rc == 0 && !is_of_plans(key)) o->of_text = 1;
    if (rc == 0 && is_of_model(key)) o->of_model = 1;
    return rc;
}

static int refuses(const void *input, int key)
{
    const struct index_options *o = input;
    return o->index.base && is_of_model(key);
}

const struct drps_cli_tool index_tool = {
    .name = "drps-index",
    .args_doc = "DATA... -o PLAN\nDATA... --base PLAN -o NEW\n--from-plan PLAN --workers N -o NEW",
    .doc = "Compile data sets into a plan for drps-train: which rows each batch touches, which "
           "rows belong "
           "together on disk, and when each row is needed next.\v"
           "DATA are text files, plain or compressed (.gz .zst .xz), or - for stdin.",
    .options = index_option_table,
    .parse = parse,
    .refuses = refuses,
};

void index_options_free(struct index_options *o)
{
    free(o->inputs.list);
    free(o->tests.list);
    free(o->weights.list);
    free(o->test_weights.list);
}
