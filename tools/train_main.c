/* drps-train executes a plan. This file parses arguments and prints; the work is done by
 * engine/train/job.c, and of several ranks by engine/cluster/ranks.c. */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_clock.h"
#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/cluster/drps_attempts.h"
#include "engine/cluster/drps_ranks.h"
#include "engine/drps_engine.h"
#include "engine/publish/drps_publish.h"
#include "engine/train/drps_report.h"
#include "net/drps_launch.h"
#include "net/drps_peers.h"
#include "sched/drps_timing.h"
#include "tools/drps_cli.h"
#include "tools/forecast_text.h"
#include "tools/drps_progress.h"
#include "tools/train_ranks.h"

enum { EPOCHS_MAX = 100000 }; /* what a model's manifest has room for */

enum {
    KEY_EPOCHS = DRPS_CLI_KEY,
    KEY_LR,
    KEY_L1,
    KEY_L2,
    KEY_EPS,
    KEY_OPTIMIZER,
    KEY_STORE,
    KEY_MEMORY,
    KEY_THREADS,
    KEY_LOCAL_STEPS,
    KEY_ONE_BY_ONE,
    KEY_PATIENCE,
    KEY_SEED,
    KEY_INIT_SCALE,
    KEY_MODEL_STORE,
    KEY_NO_KEEP,
    KEY_PREFETCH,
    KEY_EVICT,
    KEY_LOCAL,
    KEY_TRANSPORT,
    KEY_RANK,
    KEY_PEERS,
    KEY_KEYS,
    KEY_MAKE_KEYS,
    KEY_INSECURE,
    KEY_TIMEOUT,
    KEY_SILENCE,
    KEY_SYNC,
    KEY_STALENESS,
    KEY_NO_CLAIM,
    KEY_EMULATE,
    KEY_FORCE,
    KEY_PUBLISH,
    KEY_RESUME,
    KEY_CHECKPOINT_EVERY,
    KEY_CHECKPOINT_DIR,
    KEY_CHECKPOINT_ROWS,
    KEY_KEEP_CHECKPOINTS,
    KEY_FROM,
    KEY_ON_FAILURE,
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "The model:", 1},
    {"output", 'o', "MODEL", 0, "Folder to make (required)", 1},
    {"force", KEY_FORCE, NULL, 0, "Replace MODEL if it exists", 1},
    {"model-store", KEY_MODEL_STORE, "NAME", 0,
     "Database that the model is written as: rocksdb, leveldb (default: the first that this build "
     "has)",
     1},
    {"publish", KEY_PUBLISH, "FOLDER", 0,
     "In place of a plan: make the model of what an earlier run kept in FOLDER, because writing "
     "the model failed",
     1},
    {NULL, 0, NULL, 0, "Learning:", 2},
    {"from", KEY_FROM, "OLD", 0,
     "Begin with the parameters of the model OLD, or with the rows of OLD, a folder of checkpoints "
     "(MODEL.checkpoint); features that it does not have begin anew",
     2},
    {"epochs", KEY_EPOCHS, "E", 0, "Passes over the training samples (default 1)", 2},
    {"patience", KEY_PATIENCE, "P", 0,
     "Stop after P epochs without a better test loss and keep the best epoch's model (default: "
     "train all epochs and keep the last)",
     2},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "sgd, adagrad (default) or ftrl", 2},
    {"lr", KEY_LR, "RATE", 0,
     "Learning rate (default: adagrad 0.05, for fm 0.01, for lmf 0.1; ftrl 0.1; sgd: by the size "
     "of "
     "a batch)",
     2},
    {"l1", KEY_L1, "X", 0, "L1 regularisation of weights and biases (default 0)", 2},
    {"l2", KEY_L2, "X", 0, "L2 regularisation (default 0)", 2},
    {"eps", KEY_EPS, "X", 0,
     "adagrad: added to the sum of squares (default 1e-8, for lmf 0.1); larger makes first steps "
     "smaller",
     2},
    {"local-steps", KEY_LOCAL_STEPS, NULL, 0,
     "Step after every sample, on the batch's own copy of its rows", 2},
    {"seed", KEY_SEED, "N", 0, "Seed of the initial factors (default 1)", 2},
    {"init-scale", KEY_INIT_SCALE, "X", 0,
     "Factors start between -X and X (default 0.1 / sqrt(factors a row))", 2},
    {NULL, 0, NULL, 0, "Memory and disk:", 3},
    {"store", KEY_STORE, "NAME", 0,
     "Where rows live: resident (all in memory), relay (in memory while a few batches need them, "
     "then on disk until the next that do), file, rocksdb or leveldb (blocks in such a store, the "
     "busy ones in memory), or auto (default): resident if all fit --memory, else relay",
     3},
    {"memory", KEY_MEMORY, "SIZE", 0,
     "Memory of the whole process (default: half of what it may use)", 3},
    {"no-keep", KEY_NO_KEEP, NULL, 0,
     "Store resident: read the plan's batches in each epoch, also where they fit --memory", 3},
    {"threads", KEY_THREADS, "N", 0, "Threads that compute (default 1: reproducible bit for bit)",
     3},
    {"one-by-one", KEY_ONE_BY_ONE, NULL, 0,
     "A plan with lanes: one batch after another, each by all threads", 3},
    {"prefetch-steps", KEY_PREFETCH, "N", 0,
     "Stores of blocks: batches whose rows are in memory, the current one included (1 to 8, the "
     "default)",
     3},
    {"evict", KEY_EVICT, "RULE", 0,
     "Stores of blocks: which leave memory when it is full: farthest (default; used again last), "
     "clock, lru",
     3},
    {NULL, 0, NULL, 0, "Checkpoints, from which training goes on after a crash:", 4},
    {"resume", KEY_RESUME, NULL, 0,
     "Go on from the newest checkpoint, with the options of the run that wrote it where none are "
     "given; begin anew where there is none",
     4},
    {"checkpoint-every", KEY_CHECKPOINT_EVERY, "TIME", 0,
     "Write one every so often: 30s, 5m, 2h, 1000b (batches), 1e (epochs), or never (default: 5m, "
     "or longer where they would take more than 1 % of the time)",
     4},
    {"checkpoint-dir", KEY_CHECKPOINT_DIR, "DIR", 0,
     "Where they lie, of all ranks (default: MODEL.checkpoint)", 4},
    {"checkpoint-rows", KEY_CHECKPOINT_ROWS, NULL, 0,
     "Let them hold all rows, also with store relay, which otherwise writes only what is in memory "
     "and keeps what is on disk; so it is with --checkpoint-dir",
     4},
    {"keep-checkpoints", KEY_KEEP_CHECKPOINTS, NULL, 0,
     "Leave them when the model is written, with one of the last epoch, so that more epochs can "
     "follow",
     4},
    {"on-failure", KEY_ON_FAILURE, "WHAT", 0,
     "When a rank, or the only process, is lost, or a disk is full: stop (default), or resume: "
     "start anew from the newest checkpoint, until three attempts in a row have come no further",
     4},
    {NULL, 0, NULL, 0, "A plan for several workers:", 5},
    {"local", KEY_LOCAL, "N", 0, "Run all N ranks on this machine, a process each", 5},
    {"peers", KEY_PEERS, "FILE", 0,
     "Run one rank; FILE has \"host:port [public key]\" of each, a line a rank", 5},
    {"rank", KEY_RANK, "R", 0,
     "Which rank this process is, from 0 (default: as mpirun, srun or an indexed Kubernetes job "
     "say)",
     5},
    {"keys", KEY_KEYS, "DIR", 0, "This rank's keys; needed beyond one machine", 5},
    {"make-keys", KEY_MAKE_KEYS, "DIR", 0, "Make such keys, and end", 5},
    {"insecure", KEY_INSECURE, NULL, 0, "Go without keys: in a network where all are trusted", 5},
    {"transport", KEY_TRANSPORT, "NAME", 0,
     "With --local: zmq (default), or inproc: threads of one process", 5},
    {"sync", KEY_SYNC, "MODE", 0,
     "When a worker starts its next batch: bsp (default; all together, reproducible), asp (at "
     "once), ssp (at most --staleness ahead), wsp (when waiting costs more than stale parameters), "
     "wsp-literal",
     5},
    {"staleness", KEY_STALENESS, "S", 0,
     "ssp, wsp: batches that a worker may be ahead of the slowest (default: ssp 3; wsp 8 a "
     "worker, at least 1024)",
     5},
    {"no-claim", KEY_NO_CLAIM, NULL, 0,
     "Other modes than bsp: no worker takes over batches of a slower one", 5},
    {"timeout", KEY_TIMEOUT, "S", 0,
     "Seconds to wait for ranks to start, and for what a rank owes (default 600)", 5},
    {"silence", KEY_SILENCE, "S", 0,
     "Seconds for which a link may be cut; a rank that is not heard of for somewhat more than "
     "twice that is dead (default 5)",
     5},
    {"emulate", KEY_EMULATE, "TIMES", 0,
     "For measurements: training batches take at least as long as in TIMES: NAME:SECONDS[:SEED], "
     "where NAME is homogeneous, straggler, pauses or tail, or a file with a line of seconds for "
     "each rank",
     5},
    {0},
};

struct options {
    struct drps_train_options train;
    struct drps_ranks_options ranks;
    uint32_t local; /* ranks to run on this machine; 0 without --local */
    int has_rank, has_transport;
    int resumes; /* --on-failure resume */
    const char *make_keys;
    const char *emulate;
    const char *plan;
    const char *publish;
    int trains; /* an option of training was given, which does not go with `publish` */
};

/* The callbacks of training get this. */
struct view {
    struct drps_cli *cli;
    const struct drps_plan_info *plan;
    struct drps_attempt *attempt; /* that this process is; NULL: there are no others */
    int epochs;                   /* lines printed */
    const char *writing;          /* what is being written, NULL before; since writing_ns */
    uint64_t writing_ns;
};

static const char *choice(struct drps_cli *cli, const char *arg, const char *const *names)
{
    return names[drps_cli_choice(cli, arg, names)];
}

static int parse_learning(struct drps_cli *cli, struct drps_train_options *o, int key, char *arg)
{
    static const char *const optimizers[] = {"sgd", "adagrad", "ftrl", NULL};
    switch (key) {
    case KEY_FROM:
        o->from = arg;
        return 0;
    case KEY_EPOCHS:
        o->epochs = drps_cli_count(cli, arg, 1, EPOCHS_MAX);
        return 0;
    case KEY_PATIENCE:
        o->patience = drps_cli_count(cli, arg, 1, 1000000);
        return 0;
    case KEY_OPTIMIZER:
        o->optimizer = choice(cli, arg, optimizers);
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
        return 0;
    case KEY_EPS:
        o->eps = (float)drps_cli_real(cli, arg, FLT_MIN, 1e30);
        return 0;
    case KEY_LOCAL_STEPS:
        o->local_steps = 1;
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

/* Options that --publish takes, too: they say how the model is written. */
static int parse_publishing(struct drps_cli *cli, struct drps_train_options *o, int key, char *arg)
{
    static const char *const model_stores[] = {"rocksdb", "leveldb", NULL};
    switch (key) {
    case 'o':
        o->model_path = arg;
        return 0;
    case KEY_MEMORY:
        o->memory_bytes = drps_cli_size(cli, arg, 1, INT64_MAX);
        return 0;
    case KEY_MODEL_STORE:
        o->model_store = choice(cli, arg, model_stores);
        return 0;
    case KEY_FORCE:
        o->replace = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int parse_running(struct drps_cli *cli, struct drps_train_options *o, int key, char *arg)
{
    static const char *const stores[] = {"auto",    "resident", "relay", "file",
                                         "rocksdb", "leveldb",  NULL};
    static const char *const rules[] = {"farthest", "clock", "lru", NULL};
    switch (key) {
    case KEY_STORE:
        o->store = choice(cli, arg, stores);
        return 0;
    case KEY_NO_KEEP:
        o->no_keep = 1;
        return 0;
    case KEY_ONE_BY_ONE:
        o->one_by_one = 1;
        return 0;
    case KEY_THREADS:
        o->threads = (unsigned)drps_cli_count(cli, arg, 1, DRPS_TRAIN_THREADS_MAX);
        return 0;
    case KEY_PREFETCH:
        o->prefetch_steps = (int)drps_cli_count(cli, arg, 1, 8);
        return 0;
    case KEY_EVICT:
        o->evict = choice(cli, arg, rules);
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

static int parse_checkpoints(struct drps_cli *cli, struct drps_train_options *o, int key, char *arg)
{
    switch (key) {
    case KEY_RESUME:
        o->resume = 1;
        return 0;
    case KEY_CHECKPOINT_EVERY:
        o->checkpoint_every = every(cli, arg);
        return 0;
    case KEY_CHECKPOINT_DIR:
        o->checkpoint_dir = arg;
        return 0;
    case KEY_CHECKPOINT_ROWS:
        o->checkpoint_rows = 1;
        return 0;
    case KEY_KEEP_CHECKPOINTS:
        o->keep_checkpoints = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int parse_ranks(struct drps_cli *cli, struct options *o, int key, char *arg)
{
    static const char *const transports[] = {"zmq", "inproc", NULL};
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
    case KEY_PEERS:
        o->ranks.peers = arg;
        return 0;
    case KEY_KEYS:
        o->ranks.keys = arg;
        return 0;
    case KEY_MAKE_KEYS:
        o->make_keys = arg;
        return 0;
    case KEY_INSECURE:
        o->ranks.insecure = 1;
        return 0;
    case KEY_SILENCE:
        o->ranks.cut_ms = (uint32_t)drps_cli_count(cli, arg, 1, 3600) * 1000;
        return 0;
    case KEY_EMULATE:
        o->emulate = arg;
        return 0;
    case KEY_TIMEOUT:
        o->ranks.wait_ms = (uint32_t)drps_cli_count(cli, arg, 1, 1000000) * 1000;
        return 0;
    case KEY_SYNC:
        o->train.sync = (enum drps_sched_mode)drps_cli_choice(cli, arg, modes);
        return 0;
    case KEY_STALENESS:
        o->train.staleness = drps_cli_count(cli, arg, 1, 1000000);
        return 0;
    case KEY_NO_CLAIM:
        o->train.no_claim = 1;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void check(struct drps_cli *cli, const struct options *o)
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
    if (o->has_transport && !o->local) drps_cli_usage(cli, "--transport needs --local");
}

static int parse(struct drps_cli *cli, int key, char *arg)
{
    struct options *o = cli->input;
    if (key == ARGP_KEY_ARG) {
        if (o->plan) drps_cli_usage(cli, "one plan at a time: '%s' is too much", arg);
        o->plan = arg;
        return 0;
    }
    if (key == ARGP_KEY_END) {
        check(cli, o);
        return 0;
    }
    if (key == KEY_PUBLISH) {
        o->publish = arg;
        return 0;
    }
    int rc = parse_publishing(cli, &o->train, key, arg);
    if (rc != ARGP_ERR_UNKNOWN) return rc;
    rc = parse_learning(cli, &o->train, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_running(cli, &o->train, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_checkpoints(cli, &o->train, key, arg);
    if (rc == ARGP_ERR_UNKNOWN) rc = parse_ranks(cli, o, key, arg);
    if (rc == 0) o->trains = 1;
    return rc;
}

/* ---- While training ---- */

static void show_progress(void *ctx, const struct drps_train_progress *t)
{
    const struct view *v = ctx;
    const uint64_t samples = v->plan->samples + v->plan->test_samples;
    char what[96], loss[32], time[DRPS_PROGRESS_TIME], all[DRPS_PROGRESS_TIME + 8];
    (void)snprintf(loss, sizeof(loss), "loss %.4f", t->train_loss);
    (void)snprintf(what, sizeof(what), "epoch %llu of %llu, %s", (unsigned long long)t->epoch,
                   (unsigned long long)t->epochs, t->evaluates ? "test samples" : loss);
    struct drps_progress p = {
        .what = what, .unit = "samples", .total = samples, .seconds = t->seconds};
    p.done = (uint64_t)((double)samples * (double)t->step / (double)t->steps);
    const double left = drps_progress_left(&p);
    (void)snprintf(
        all, sizeof(all), "%s of all",
        drps_progress_time(left + (double)(t->epochs - t->epoch) * (t->seconds + left), time));
    if (t->epoch < t->epochs) p.more = all;
    drps_progress_show(v->cli, &p);
}

static void show_writing(void *ctx, const char *what, uint64_t bytes, uint64_t all_bytes)
{
    struct view *v = ctx;
    if (v->writing != what) v->writing_ns = drps_clock_ns();
    v->writing = what;
    drps_progress_show(v->cli,
                       &(struct drps_progress){.what = what,
                                               .unit = DRPS_PROGRESS_BYTES,
                                               .done = bytes,
                                               .total = all_bytes,
                                               .seconds = drps_seconds_since(v->writing_ns)});
}

static void show_publishing(void *ctx, uint64_t bytes, uint64_t all_bytes)
{
    show_writing(ctx, "making the model", bytes, all_bytes);
}

static const char *size(uint64_t bytes)
{
    static char bufs[8][32];
    static unsigned at;
    at = (at + 1) % 8;
    return drps_size_format(bytes, bufs[at], sizeof(bufs[at]));
}

static void note_checkpoint(void *ctx, const struct drps_train_cut *cut)
{
    const struct view *v = ctx;
    if (v->attempt) drps_attempt_reached(v->attempt, cut);
}

static void print_head(const struct view *v)
{
    printf("%5s  %10s", "epoch", "train loss");
    if (v->plan->eval_batches)
        printf(v->plan->classification ? "  %10s  %8s  %8s" : "  %10s  %10s", "test loss",
               v->plan->classification ? "AUC" : "RMSE", "accuracy");
    printf("  %11s  %8s  %10s  %10s  %7s\n", "samples/s", "seconds", "rows read", "written",
           "waited");
}

static void print_epoch(void *ctx, const struct drps_epoch *e)
{
    struct view *v = ctx;
    drps_cli_progress_end(v->cli);
    if (v->cli->json || v->cli->log.level < DRPS_LOG_INFO) return;
    if (!v->epochs++) print_head(v);
    printf("%5llu  %10.6f", (unsigned long long)e->epoch, e->train_loss);
    if (v->plan->eval_batches && v->plan->classification)
        printf("  %10.6f  %8.5f  %8.5f", e->test.loss, e->test.auc, e->test.accuracy);
    else if (v->plan->eval_batches)
        printf("  %10.6f  %10.6f", e->test.loss, e->test.rmse);
    printf("  %11.0f  %8.2f  %10s  %10s  %5.1f %%\n", e->samples_per_s, e->seconds,
           size(e->read_bytes), size(e->written_bytes), 100 * e->stall_share);
    (void)fflush(stdout); /* a failure is told at the end of main */
}

/* ---- Results ---- */

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Says how well the blocks in memory served, for --verbose; other stores have none. */
static void print_pool(const struct drps_store_stats *s)
{
    if (!s->blocks_needed) return;
    printf("  blocks    room in memory for %llu rows (%s); of the blocks that batches used %.1f %% "
           "were there, %.1f %% were new\n",
           (unsigned long long)s->pool.units * s->pool.unit_rows, size(s->pool_bytes),
           share(s->blocks_hit, s->blocks_needed), share(s->blocks_created, s->blocks_needed));
}

/* Says how rows came into windows, for --verbose; only store relay has windows. */
static void print_windows(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    const uint64_t rows = s->rows_kept + s->rows_arrived + s->rows_created;
    if (!r->windows_n) return;
    printf("  windows   %zu an epoch (runs of batches whose rows are in memory together)",
           r->windows_n);
    if (s->groups) printf(", in %u groups", s->groups);
    printf("; of their rows %.1f %% were in memory already, %.1f %% came from disk, %.1f %% were "
           "new\n",
           share(s->rows_kept, rows), share(s->rows_arrived, rows), share(s->rows_created, rows));
    printf("  chunks    %s each, by %s%s%s%s\n", size(s->chunk_bytes), s->io_engine,
           s->direct ? ", past the page cache" : ", through the page cache",
           *s->io_remark ? "; " : "", s->io_remark);
}

static void print_traffic(const char *name, uint64_t n, uint64_t bytes, double seconds)
{
    printf("  %-9s %llu (%s, %.1f MB/s)", name, (unsigned long long)n, size(bytes),
           seconds > 0 ? (double)bytes / 1e6 / seconds : 0);
}

static void print_latency(const struct drps_latency *l)
{
    printf("; half took less than %.0f us, 99 %% less than %.0f us\n",
           drps_latency_quantile_us(l, 0.5), drps_latency_quantile_us(l, 0.99));
}

/* The forecast is compared with the last epoch, as rows that are new in the first one are not
 * read. */
static void print_forecast(const struct drps_train_result *r)
{
    const struct forecast_relay relay = {
        .windows = r->windows_n, .groups = r->store_stats.groups, .tails = r->store_stats.tails};
    char why[FORECAST_REASON];
    if (!r->has_forecast || !r->forecast.feasible || !r->epochs_n) return;
    const struct drps_epoch *last = &r->epochs[r->epochs_n - 1];
    if (!last->written_bytes && !r->forecast.written_bytes) return;
    printf("  forecast  an epoch reads %s and writes %s; %s read %s and wrote %s%s\n",
           size(r->forecast.read_bytes), size(r->forecast.written_bytes),
           last->epoch == 1 ? "the first, whose rows are new," : "the last", size(last->read_bytes),
           size(last->written_bytes),
           forecast_reason(&relay, r->forecast.written_bytes, last->written_bytes, why));
}

static double step_seconds(const struct drps_phases *p)
{
    return p->plan + p->wait_store + p->gather + p->compute + p->step + p->evaluate + p->hand_over;
}

static void print_from(const struct drps_train_from *f)
{
    char rows[DRPS_CLI_COUNT_BYTES], all[DRPS_CLI_COUNT_BYTES];
    if (!f->all) return;
    printf("  from      %s of %s rows of an earlier run%s%s\n", drps_cli_grouped(f->rows, rows),
           drps_cli_grouped(f->all, all), f->state ? ", with the optimizer's state" : "",
           f->rows < f->all ? "; the others were new" : "");
}

static void print_checkpoints(const struct drps_train_result *r)
{
    const struct drps_train_checkpoints *c = &r->checkpoints;
    if (r->resumed_epoch)
        printf("  resumed   in epoch %llu, after %llu batches of it; disk and time are of this run "
               "alone\n",
               (unsigned long long)r->resumed_epoch, (unsigned long long)r->resumed_step);
    if (!c->n && !c->failed) return;
    printf("  saved     %llu checkpoints, %s, %.2f s", (unsigned long long)c->n, size(c->bytes),
           c->seconds);
    if (c->failed) printf("; %llu could not be written", (unsigned long long)c->failed);
    printf("\n");
}

/* Says what only somebody who looks into the store wants to know. */
static void print_disk_details(const struct drps_train_result *r)
{
    const struct drps_store_stats *s = &r->store_stats;
    const struct drps_iostat *io = &s->io;
    const double seconds = step_seconds(&r->phases);
    print_pool(s);
    print_windows(r);
    print_traffic("reads", io->reads, io->read_bytes, seconds);
    printf(", %llu seeks, %.1f at a time", (unsigned long long)io->seeks,
           io->read_calls ? (double)io->queue_depth_sum / (double)io->read_calls : 0);
    print_latency(&io->read_latency);
    print_traffic("writes", io->writes, io->written_bytes, seconds);
    print_latency(&io->write_latency);
    if (s->device.sector) {
        const struct drps_iostat *d = &s->device.io;
        print_traffic("requests", d->reads, d->read_bytes, seconds);
        printf(" to read, %llu (%s) to write\n", (unsigned long long)d->writes,
               size(d->written_bytes));
    }
}

static void print_rows(const struct drps_train_result *r, int details)
{
    const struct drps_store_stats *s = &r->store_stats;
    const double seconds = step_seconds(&r->phases);
    const char *all = size(r->rows * r->row_bytes);
    if (!s->blocks_needed && !r->windows_n) {
        printf("  rows      %s with the optimizer's state, all in memory (store %s)\n", all,
               r->store);
        return;
    }
    printf(
        "  rows      %s with the optimizer's state, of which %s in memory at a time (store %s)\n",
        all, size(s->pool_bytes), r->store);
    printf(
        "  disk      %s of rows read, %s written; training waited for rows %.1f %% of the time\n",
        size(s->io.read_bytes), size(s->io.written_bytes),
        seconds > 0 ? 100 * (double)s->stall_ns * 1e-9 / seconds : 0);
    print_forecast(r);
    if (details) print_disk_details(r);
}

static void print_emulated(const struct drps_train_emulated *e)
{
    printf("  emulated  %llu batches of %.1f s together, of which %.1f s computed; %.2f %% took "
           "longer than they should, %.2f %% late in all\n",
           (unsigned long long)e->iterations, (double)e->emulated_ns * 1e-9,
           (double)e->computed_ns * 1e-9, share(e->overruns, e->iterations),
           share(e->late_ns, e->emulated_ns));
}

static void print_text(const struct drps_train_result *r, const char *model, int details)
{
    const struct drps_phases *p = &r->phases;
    char rows[DRPS_CLI_COUNT_BYTES];
    printf("\nmodel %s: %s rows, %s of parameters in %s", model, drps_cli_grouped(r->rows, rows),
           size(r->model_bytes), r->model_store);
    if (r->best_epoch) printf(", of epoch %llu", (unsigned long long)r->best_epoch);
    if (r->stopped_early) printf(" (stopped early)");
    printf("\n  content   %016llx (a checksum of all parameters)\n",
           (unsigned long long)r->content);
    printf("  optimizer %s, learning rate %g\n", drps_optim_name(r->optim.kind),
           (double)r->optim.lr);
    print_rows(r, details);
    print_from(&r->from);
    print_checkpoints(r);
    train_ranks_print(stdout, r->ranks, r->ranks_n, details);
    if (r->emulated.iterations) print_emulated(&r->emulated);
    if (details)
        printf(
            "  files     %s of the plan read; disk traffic of the process: %s read, %s written\n",
            size(r->plan_read_bytes), size(r->process_io.read_bytes),
            size(r->process_io.written_bytes));
    printf(
        "  time      %.2f s: reading the plan %.2f, waiting for rows %.2f, collecting rows %.2f, "
        "gradients %.2f, optimizer %.2f, test samples %.2f, writing the model %.2f\n",
        r->seconds, p->plan, p->wait_store, p->gather, p->compute, p->step, p->evaluate, p->export);
    if (p->hand_over > 0)
        printf("            handing rows over to other ranks, and waiting for theirs: %.2f s\n",
               p->hand_over);
    printf("  memory    %s at most, %s allowed\n", size(r->peak_rss_bytes),
           size(r->memory.limit_bytes));
}

static int make_keys(const char *dir, struct drps_err *err)
{
    struct drps_net_keys keys;
    int rc = drps_net_keys_make(drps_io_os(), dir, &keys, err);
    if (rc == 0) printf("%s\n", keys.public_key); /* for the peers file */
    drps_net_keys_forget(&keys);
    return rc;
}

static json_t *published_json(const struct drps_publish_result *r)
{
    return json_pack("{s:s, s:I, s:I, s:o, s:f}", "model_store", r->model_store, "rows",
                     (json_int_t)r->rows, "model_bytes", (json_int_t)r->model_bytes, "content",
                     drps_manifest_hex(r->content), "seconds", r->seconds);
}

static int publish(struct drps_cli *cli, const struct options *o, struct drps_err *err)
{
    struct view view = {.cli = cli};
    const struct drps_io io = {
        .ops = drps_io_os()->ops, .ctx = drps_io_os()->ctx, .stop = drps_cli_stop()};
    const struct drps_publish_options options = {.folder = o->publish,
                                                 .model_path = o->train.model_path,
                                                 .replace = o->train.replace,
                                                 .model_store = o->train.model_store,
                                                 .memory_bytes = o->train.memory_bytes,
                                                 .log = &cli->log,
                                                 .on_progress = show_publishing,
                                                 .ctx = &view};
    struct drps_publish_result r;
    char rows[DRPS_CLI_COUNT_BYTES];
    int rc = drps_publish_run(&io, &options, &r, err);
    drps_cli_progress_end(cli);
    if (rc < 0)
        return drps_err_context(err, "%s stays as it is, and %s is not written", o->publish,
                                o->train.model_path);
    if (cli->json) return drps_cli_json_print(published_json(&r), err);
    if (cli->log.level >= DRPS_LOG_INFO)
        printf("model %s: %s rows, %s of parameters in %s, %.2f s\n  content   %016llx (a checksum "
               "of all parameters)\n",
               o->train.model_path, drps_cli_grouped(r.rows, rows), size(r.model_bytes),
               r.model_store, r.seconds, (unsigned long long)r.content);
    return 0;
}

/* Trains a plan for one worker, or one rank or all ranks of a plan for several. */
static int train(struct options *o, const struct drps_plan *plan, struct drps_train_result *result,
                 struct drps_err *err)
{
    if (o->ranks.peers) return drps_ranks_run_one(&o->ranks, result, err);
    if (o->local && (o->local > 1 || plan->info.ranks.workers > 1))
        return drps_ranks_run_local(&o->ranks, o->local, result, err);
    return drps_train_run(plan, &o->train, result, err);
}

/* Opens the whole plan where this process writes the model, else the part of its rank. */
static int open_plan(const struct options *o, struct drps_plan **plan_out, struct drps_err *err)
{
    if (o->ranks.peers && o->ranks.rank)
        return drps_plan_open_rank(drps_io_os(), o->plan, o->ranks.rank, plan_out, err);
    return drps_plan_open(drps_io_os(), o->plan, plan_out, err);
}

/* Where what was trained has not become a model. */
static void say_how_to_publish(struct drps_cli *cli, const struct drps_train_result *r,
                               const char *model)
{
    if (!r->kept) return;
    drps_log(&cli->log, DRPS_LOG_WARN,
             "'drps-train --publish %s -o %s%s' makes a model of what was trained", r->kept, model,
             r->interrupted ? " --force" : "");
}

static int run(struct drps_cli *cli, struct options *o, struct drps_attempt *attempt,
               struct drps_err *err)
{
    struct drps_plan *plan = NULL;
    struct drps_timing *timing = NULL;
    struct drps_train_result result = {0};

    if (o->make_keys) return make_keys(o->make_keys, err);
    if (o->publish) return publish(cli, o, err);
    if (o->local || o->ranks.peers) drps_cli_raise_files(cli);
    int rc = o->ranks.peers && !o->has_rank
                 ? drps_launch_rank(o->ranks.peers, "--rank", &o->ranks.rank, err)
                 : 0;
    if (rc == 0 && o->emulate) rc = drps_timing_open(drps_io_os(), o->emulate, &timing, err);
    if (rc == 0) rc = open_plan(o, &plan, err);
    if (rc < 0) {
        drps_timing_close(timing);
        return rc;
    }
    struct view view = {.cli = cli, .plan = &plan->info, .attempt = attempt};
    const int prints = !o->ranks.peers || o->ranks.rank == 0;
    o->train.stop = drps_cli_stop();
    o->train.log = &cli->log;
    o->train.emulate = timing;
    o->train.on_epoch = print_epoch;
    o->train.on_progress = show_progress;
    o->train.on_write = show_writing;
    o->train.on_checkpoint = note_checkpoint;
    o->train.ctx = &view;
    o->ranks.plan = o->plan;
    o->ranks.train = &o->train;
    rc = train(o, plan, &result, err);
    drps_cli_progress_end(cli);
    say_how_to_publish(cli, &result, o->train.model_path);
    /* What is kept is worth more than another start. */
    cli->again = rc != DRPS_E_INTERRUPTED && drps_err_may_pass(rc) && !result.kept;
    const int trained = rc == 0 || (rc == DRPS_E_INTERRUPTED && result.interrupted);
    if (!prints && trained)
        drps_log(&cli->log, DRPS_LOG_INFO,
                 "rank %u is done: %zu epoch%s in %.1f s, %s of memory at most; rank 0 writes the "
                 "model",
                 o->ranks.rank, result.epochs_n, result.epochs_n == 1 ? "" : "s", result.seconds,
                 size(result.peak_rss_bytes));
    if (prints && trained) {
        int printed = 0;
        if (cli->json)
            printed = drps_cli_json_print(drps_report_json(&o->train, &result), err);
        else if (cli->log.level >= DRPS_LOG_INFO && result.published)
            print_text(&result, o->train.model_path, cli->log.level >= DRPS_LOG_DEBUG);
        if (rc == 0) rc = printed;
    }
    drps_train_result_free(&result);
    drps_plan_close(plan);
    drps_timing_close(timing);
    return rc;
}

/* ---- Attempts ---- */

struct work {
    struct drps_cli *cli;
    struct options *options;
};

/* Without --force there were no checkpoints when the first attempt began, so all are of this run;
 * with it there may be some of an earlier run until this one has written its own. */
static int attempt(void *ctx, struct drps_attempt *a)
{
    const struct work *w = ctx;
    struct drps_train_options *train = &w->options->train;
    struct drps_err err = DRPS_ERR_INIT;
    if (!drps_attempt_is_first(a))
        train->resume |= !train->replace || drps_attempt_has_checkpoint(a);
    const int rc = run(w->cli, w->options, a, &err);
    if (rc < 0 && w->cli->again) {
        drps_attempt_failed(a, &err);
        return fflush(stdout) ? DRPS_EXIT_FAILED : DRPS_EXIT_AGAIN;
    }
    return drps_cli_finish(w->cli, rc, &err);
}

static int run_attempts(struct drps_cli *cli, struct options *o, int *status, struct drps_err *err)
{
    char name[32] = "training";
    struct work work = {cli, o};
    int rc = drps_cli_share_stop(err);
    if (rc == 0 && o->ranks.peers && !o->has_rank) {
        rc = drps_launch_rank(o->ranks.peers, "--rank", &o->ranks.rank, err);
        o->has_rank = rc == 0;
    }
    if (rc < 0) return rc;
    if (o->local || o->ranks.peers) (void)snprintf(name, sizeof(name), "rank %u", o->ranks.rank);
    const struct drps_attempts_options options = {.name = name,
                                                  .run = attempt,
                                                  .ctx = &work,
                                                  .again = DRPS_EXIT_AGAIN,
                                                  .stop = drps_cli_stop(),
                                                  .log = &cli->log};
    return drps_attempts_run(&options, status, err);
}

int main(int argc, char **argv)
{
    static const struct drps_cli_tool tool = {
        .name = "drps-train",
        .args_doc = "PLAN -o MODEL\n--publish FOLDER -o MODEL",
        .doc = "Train the model of a plan that drps-index made, in bounded memory.\v"
               "Prints one line an epoch. When interrupted (Ctrl-C), the current step is finished "
               "and the model so "
               "far is written, with a checkpoint from which --resume goes on; the exit status is "
               "then 130. "
               "Where a model cannot be written, what "
               "was trained stays in MODEL.trained, for --publish.",
        .options = option_table,
        .parse = parse,
    };
    struct options o = {.train = {.seed = 1}};
    struct drps_cli cli;
    struct drps_err err = DRPS_ERR_INIT;

    int status = DRPS_EXIT_DONE;
    drps_cli_start(&cli, &tool, &o, argc, argv);
    const int rc = o.resumes ? run_attempts(&cli, &o, &status, &err) : run(&cli, &o, NULL, &err);
    const int finished = drps_cli_finish(&cli, rc, &err);
    return status ? status : finished;
}
