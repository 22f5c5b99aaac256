/* The options of drps-train: their values, and which go together. */
#include "tools/train/options.h"

#include <float.h>
#include <string.h>

#include "tools/drps_metrics_options.h"
#include "tools/train/option_table.h"
#include "tools/train/pull_options.h"
#include "tools/train/push_options.h"

enum {
    EPOCHS_MAX = 100000, /* what a model's manifest has room for */
    LATE = 3
}; /* rounds that vectors may come late under ssp */

/* Options whose value is kept as it is given. */
static int parse_plain(struct drps_cli *cli, struct train_options *o, int key, const char *arg)
{
    static const char *const optimizers[] = {"sgd", "adagrad", "ftrl",    "lbfgs", "bfgs",
                                             "dfp", "sr1",     "broyden", NULL};
    static const char *const stores[] = {"auto",    "resident", "relay", "file",
                                         "rocksdb", "leveldb",  NULL};
    static const char *const model_stores[] = {"rocksdb", "leveldb", NULL};
    static const char *const rules[] = {"farthest", "clock", "lru", NULL};
    const struct drps_cli_plain plain[] = {
        {.key = 'o', .text = &o->train.model_path},
        {.key = KEY_PUBLISH, .text = &o->publish},
        {.key = KEY_FROM, .text = &o->train.from},
        {.key = KEY_EXPORT_DELTA, .text = &o->train.delta},
        {.key = KEY_NO_STATE, .flag = &o->train.no_state},
        {.key = KEY_CHECKPOINT_DIR, .text = &o->train.checkpoint_dir},
        {.key = KEY_PEERS, .text = &o->ranks.peers},
        {.key = KEY_KEYS, .text = &o->ranks.keys},
        {.key = KEY_MAKE_KEYS, .text = &o->make_keys},
        {.key = KEY_EMULATE, .text = &o->emulate},
        {.key = KEY_FORCE, .flag = &o->train.replace},
        {.key = KEY_AUTO, .flag = &o->chooses_rate},
        {.key = KEY_BATCH_MEAN, .flag = &o->train.batch_mean},
        {.key = KEY_LOCAL_STEPS, .flag = &o->train.local_steps},
        {.key = KEY_NO_KEEP, .flag = &o->train.no_keep},
        {.key = KEY_ONE_BY_ONE, .flag = &o->train.one_by_one},
        {.key = KEY_RESUME, .flag = &o->train.resume},
        {.key = KEY_CHECKPOINT_ROWS, .flag = &o->train.checkpoint_rows},
        {.key = KEY_CHECKPOINT_VECTORS, .flag = &o->train.checkpoint_vectors},
        {.key = KEY_KEEP_CHECKPOINTS, .flag = &o->train.keep_checkpoints},
        {.key = KEY_INSECURE, .flag = &o->ranks.insecure},
        {.key = KEY_NO_CLAIM, .flag = &o->train.no_claim},
        {.key = KEY_NO_FRESH, .flag = &o->train.no_fresh},
        {.key = KEY_NO_HAND_ON, .flag = &o->train.no_hand_on},
        {.key = KEY_NO_OVERLAP, .flag = &o->train.no_overlap},
        {.key = KEY_PULL_CACHED, .flag = &o->train.pull_cached},
        {.key = KEY_OPTIMIZER, .text = &o->train.optimizer, .names = optimizers},
        {.key = KEY_STORE, .text = &o->train.store, .names = stores},
        {.key = KEY_MODEL_STORE, .text = &o->train.model_store, .names = model_stores},
        {.key = KEY_EVICT, .text = &o->train.evict, .names = rules},
    };
    return drps_cli_take(cli, plain, sizeof(plain) / sizeof(plain[0]), key, arg);
}

static int parse_learning(struct drps_cli *cli, struct drps_train_options *o, int key,
                          const char *arg)
{
    static const char *const metrics[] = {"loss",      "auc",     "rmse", "accuracy",
                                          "recall@10", "ndcg@10", NULL};
    static const char *const decays[] = {"constant", "inverse", "sqrt", "cosine", NULL};
    switch (key) {
    case KEY_METRIC:
        o->metric = (enum drps_metric)(DRPS_METRIC_LOSS + drps_cli_choice(cli, arg, metrics));
        return 0;
    case KEY_LR_DECAY:
        o->lr_decay = (enum drps_decay)(DRPS_DECAY_CONSTANT + drps_cli_choice(cli, arg, decays));
        return 0;
    case KEY_EPOCHS:
        o->epochs = drps_cli_count(cli, arg, 1, EPOCHS_MAX);
        return 0;
    case KEY_PATIENCE:
        o->patience = drps_cli_count(cli, arg, 1, 1000000);
        return 0;
    case KEY_LR:
        o->lr = (float)drps_cli_real(cli, arg, DBL_MIN, 1e30);
        if (!(o->lr > 0)) drps_cli_usage(cli, "'%s' is too small", arg); /* a float would be 0 */
        return 0;
    case KEY_L1:
        o->l1 = (float)drps_cli_real(cli, arg, 0, 1e30);
        return 0;
    case KEY_L2:
        o->l2 = (float)drps_cli_real(cli, arg, 0, 1e30);
        o->no_l2 = !(o->l2 > 0);
        return 0;
    case KEY_EPS:
        o->eps = (float)drps_cli_real(cli, arg, FLT_MIN, 1e30);
        return 0;
    case KEY_MEMORY_PAIRS:
        o->pairs = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_OPTIM_PAIRS_MOST);
        return 0;
    case KEY_TOLERANCE:
        o->tolerance = (float)drps_cli_real(cli, arg, FLT_MIN, 0.5);
        return 0;
    case KEY_SEED:
        o->seed = drps_cli_count(cli, arg, 0, INT64_MAX);
        return 0;
    case KEY_INIT_SCALE:
        o->init_scale = (float)drps_cli_real(cli, arg, DBL_MIN, 1e30);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A count and its unit, as "5m". */
static struct drps_checkpoint_every every(struct drps_cli *cli, const char *arg)
{
    static const struct {
        char unit;
        struct drps_checkpoint_every one;
    } units[] = {{'s', {DRPS_CHECKPOINT_SECONDS, 1}},
                 {'m', {DRPS_CHECKPOINT_SECONDS, 60}},
                 {'h', {DRPS_CHECKPOINT_SECONDS, 3600}},
                 {'b', {DRPS_CHECKPOINT_BATCHES, 1}},
                 {'e', {DRPS_CHECKPOINT_EPOCHS, 1}}};
    const size_t digits = strspn(arg, "0123456789");
    if (strcmp(arg, "never") == 0)
        return (struct drps_checkpoint_every){.unit = DRPS_CHECKPOINT_NEVER};
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
        char count[16] = "";
        if (!digits || digits >= sizeof(count) || arg[digits] != units[i].unit || arg[digits + 1])
            continue;
        memcpy(count, arg, digits);
        struct drps_checkpoint_every e = units[i].one;
        e.n *= drps_cli_count(cli, count, 1, 1000000000);
        return e;
    }
    drps_cli_usage(cli,
                   "'%s' is no time: give a count and a unit (30s, 5m, 2h, 1000b for batches, "
                   "1e for epochs), or never",
                   arg);
    return (struct drps_checkpoint_every){0};
}

static int parse_running(struct drps_cli *cli, struct drps_train_options *o, int key,
                         const char *arg)
{
    switch (key) {
    case KEY_MEMORY:
        o->memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    case KEY_THREADS:
        o->threads = (unsigned)drps_cli_count(cli, arg, 1, DRPS_TRAIN_THREADS_MAX);
        return 0;
    case KEY_PREFETCH:
        o->prefetch_steps = (int)drps_cli_count(cli, arg, 1, 8);
        return 0;
    case KEY_CHECKPOINT_EVERY:
        o->checkpoint_every = every(cli, arg);
        return 0;
    case KEY_RESUME_ROUND:
        o->resume = o->resume_at = 1;
        o->resume_round = drps_cli_count(cli, arg, 0, UINT64_MAX / 4);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int parse_ranks(struct drps_cli *cli, struct train_options *o, int key, const char *arg)
{
    static const char *const transports[] = {"zmq", "inproc", NULL};
    static const char *const exchanges[] = {"servers", "vectors", "rows", "dense", "auto", NULL};
    static const char *const rules[] = {"jmcss", "random", "project", NULL};
    static const char *const multicast_rules[] = {"random", "robin", "fixed", NULL};
    static const char *const failures[] = {"stop", "resume", NULL};
#define NAME(mode, name) [mode] = (name),
    static const char *const modes[] = {DRPS_SCHED_MODES(NAME) NULL};
#undef NAME
    switch (key) {
    case KEY_LOCAL:
        o->local = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 0;
    case KEY_ON_FAILURE:
        o->resumes = drps_cli_choice(cli, arg, failures) != 0;
        return 0;
    case KEY_TRANSPORT:
        o->has_transport = 1;
        o->ranks.transport =
            drps_cli_choice(cli, arg, transports) ? DRPS_RANKS_INPROC : DRPS_RANKS_ZMQ;
        return 0;
    case KEY_RANK:
        o->has_rank = 1;
        o->ranks.rank = (uint32_t)drps_cli_count(cli, arg, 0, DRPS_PLAN_WORKERS_MAX - 1);
        return 0;
    case KEY_SILENCE:
        o->ranks.cut_ms = (uint32_t)drps_cli_count(cli, arg, 1, 3600) * 1000;
        return 0;
    case KEY_TIMEOUT:
        o->ranks.wait_ms = (uint32_t)drps_cli_count(cli, arg, 1, 1000000) * 1000;
        return 0;
    case KEY_SYNC:
        o->train.sync = (enum drps_sched_mode)drps_cli_choice(cli, arg, modes);
        return 0;
    case KEY_EXCHANGE:
        o->train.exchange = (enum drps_exchange)drps_cli_choice(cli, arg, exchanges);
        return 0;
    case KEY_SV_COUNT:
        o->train.sv_count = (uint32_t)drps_cli_count(cli, arg, 1, 65536);
        return 0;
    case KEY_SV_RULE:
        o->train.sv_rule = (enum drps_sv_rule)drps_cli_choice(cli, arg, rules);
        return 0;
    case KEY_EXCHANGE_TO:
        o->train.multicast.to = (uint32_t)drps_cli_count(cli, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 0;
    case KEY_EXCHANGE_RULE:
        o->train.multicast.rule =
            (enum drps_multicast_rule)drps_cli_choice(cli, arg, multicast_rules);
        return 0;
    case KEY_EXCHANGE_LOSS:
        o->train.multicast.loss = drps_cli_share(cli, arg);
        return 0;
    case KEY_AVERAGE:
        o->train.multicast.average = drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_ROTATE:
        o->train.multicast.rotate = drps_cli_count(cli, arg, 1, UINT32_MAX);
        return 0;
    case KEY_FILTER_TARGET:
        o->filter_target = drps_cli_share(cli, arg);
        if (!(o->filter_target > 0)) drps_cli_usage(cli, "'%s' allows no filter at all", arg);
        return 0;
    case KEY_STALENESS:
        o->train.staleness = drps_cli_count(cli, arg, 1, 1000000);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void check(struct drps_cli *cli, const struct train_options *o)
{
    const int of_peers = o->ranks.keys || o->ranks.insecure;
    if (o->make_keys) return;
    if (o->publish && (o->plan || o->trains))
        drps_cli_usage(cli, "--publish makes a model of what is trained already: give -o MODEL, "
                            "and of the other options --force, --model-store and --memory alone");
    if (o->publish && !o->train.model_path)
        drps_cli_usage(cli, "-o MODEL is missing: the folder to make");
    if (o->publish) return;
    if (!o->plan) drps_cli_usage(cli, "no plan: name the folder that drps-index made");
    if (!o->train.model_path) drps_cli_usage(cli, "-o MODEL is missing: the folder to make");
    if (o->train.no_state && !o->train.from)
        drps_cli_usage(cli, "--no-state goes with --from: give that, too");
    if (o->local && o->ranks.peers)
        drps_cli_usage(cli, "--local runs all ranks here, --peers one of them: give one");
    if (o->has_rank && !o->ranks.peers)
        drps_cli_usage(cli, "--rank is this process's number of several, and needs --peers FILE; "
                            "the length of factors is set by drps-index --factors");
    if (of_peers && !o->ranks.peers) drps_cli_usage(cli, "--keys and --insecure need --peers FILE");
    if (o->resumes && o->train.checkpoint_every.unit == DRPS_CHECKPOINT_NEVER)
        drps_cli_usage(cli, "--on-failure resume goes on from checkpoints, and --checkpoint-every "
                            "never writes none");
    if (o->resumes && o->ranks.peers && !o->train.resume)
        drps_cli_usage(cli, "--on-failure resume with --peers needs --resume on every rank: one "
                            "that is started again must be told the same as the others");
    if (o->chooses_rate && o->train.lr > 0)
        drps_cli_usage(cli, "--auto chooses the learning rate: leave --lr out, or give it without");
    if (o->train.metric && !o->train.patience && !o->train.resume)
        drps_cli_usage(cli, "--metric says which epoch is the best, which --patience keeps: give "
                            "that, too");
    if (o->has_transport && !o->local) drps_cli_usage(cli, "--transport needs --local");
    if (o->train.delta && strcmp(o->train.delta, "-") == 0 &&
        (cli->json || cli->log.level > DRPS_LOG_WARN))
        drps_cli_usage(cli, "--export-delta - and the report both want standard output: give the "
                            "delta a file, or leave the report out (--quiet, without --json)");
    if (o->filter_target > 0 && (o->train.push.on || o->train.pull.on || o->train.pull_cached))
        drps_cli_usage(cli, "--filter-target chooses the filters: leave --push-values, "
                            "--push-filter, --push-top, --pull-values, --pull-filter and "
                            "--pull-cached out, or give them without it");
    if (o->filter_target > 0 && !o->local && !o->ranks.peers)
        drps_cli_usage(cli, "--filter-target is of several ranks: it needs --local or --peers");
}

/* Under ssp vectors come late, and no worker asks when it may start. */
static void settle_sync(struct drps_train_options *o)
{
    if (o->exchange != DRPS_EXCHANGE_VECTORS || o->sync != DRPS_SCHED_SSP) return;
    o->multicast.late = o->staleness ? o->staleness : LATE;
    o->staleness = 0;
    o->sync = DRPS_SCHED_BSP;
}

/* Says how a model is written, which --publish takes, too. */
static int publishes(int key)
{
    return key == KEY_PUBLISH || key == 'o' || key == KEY_FORCE || key == KEY_MODEL_STORE ||
           key == KEY_MEMORY;
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct train_options *o = cli->input;
    if (key == ARGP_KEY_ARG) {
        if (o->plan) drps_cli_usage(cli, "one plan at a time: '%s' is too much", arg);
        o->plan = arg;
        return 0;
    }
    if (key == ARGP_KEY_END) {
        check(cli, o);
        settle_sync(&o->train);
        return 0;
    }
    int rc = parse_plain(cli, o, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_learning(cli, &o->train, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_running(cli, &o->train, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_ranks(cli, o, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = train_push_option(cli, &o->train.push, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = train_pull_option(cli, &o->train.pull, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = metrics_option(cli, &o->train.metrics, key, arg);
    if (rc == 0 && !publishes(key)) o->trains = 1;
    return rc;
}

const struct drps_cli_tool train_tool = {
    .name = "drps-train",
    .args_doc = "PLAN -o MODEL\n--publish FOLDER -o MODEL",
    .doc = "Train the model of a plan that drps-index made, in bounded memory.\v"
           "Prints one line an epoch. When interrupted (Ctrl-C), the current step is finished "
           "and the model so "
           "far is written, with a checkpoint from which --resume goes on; the exit status is "
           "then 130. "
           "Where a model cannot be written, what "
           "was trained stays in MODEL.trained, for --publish.",
    .options = train_option_table,
    .parse = parse,
};
