/* The settings of drps-train: their values, and which go together. */
#include "api/settings/drps_train_settings.h"

#include <float.h>
#include <string.h>

#include "api/settings/drps_train_keys.h"
#include "api/settings/traffic.h"

/* A staleness of ssp that is another mode: bsp, and asp. */
enum { STALE_NONE = 1, STALE_ANY = 2 };

enum {
    EPOCHS_MAX = 100000, /* what a model's manifest has room for */
    LATE = 3
}; /* rounds that vectors may come late under ssp */

/* Settings whose value is kept as it is given. */
static int parse_plain(struct drps_values *v, struct drps_train_settings *o, int key,
                       const char *arg)
{
    static const char *const optimizers[] = {"sgd",  "adagrad", "ftrl", "adam",    "lbfgs",
                                             "bfgs", "dfp",     "sr1",  "broyden", NULL};
    static const char *const stores[] = {"auto",    "resident", "relay", "file",
                                         "rocksdb", "leveldb",  NULL};
    static const char *const model_stores[] = {"rocksdb", "leveldb", NULL};
    static const char *const rules[] = {"farthest", "clock", "lru", NULL};
    const struct drps_value_plain plain[] = {
        {.key = KEY_FROM, .text = &o->train.from},
        {.key = KEY_EXPORT_DELTA, .text = &o->train.delta},
        {.key = KEY_NO_STATE, .flag = &o->train.no_state},
        {.key = KEY_CHECKPOINT_DIR, .text = &o->train.checkpoint_dir},
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
        {.key = KEY_NO_CLAIM, .flag = &o->train.no_claim},
        {.key = KEY_NO_FRESH, .flag = &o->train.no_fresh},
        {.key = KEY_NO_HAND_ON, .flag = &o->train.no_hand_on},
        {.key = KEY_NO_OVERLAP, .flag = &o->train.no_overlap},
        {.key = KEY_PULL_CACHED, .flag = &o->train.pull_cached},
        {.key = KEY_OPTIMIZER, .text = &o->train.optimizer, .names = optimizers},
        {.key = KEY_STORE, .text = &o->train.store, .names = stores},
        {.key = KEY_DEVICE_LIBRARY, .text = &o->train.device_library},
        {.key = KEY_MODEL_STORE, .text = &o->train.model_store, .names = model_stores},
        {.key = KEY_EVICT, .text = &o->train.evict, .names = rules},
    };
    return drps_value_take(v, plain, sizeof(plain) / sizeof(plain[0]), key, arg);
}

static int parse_learning(struct drps_values *v, struct drps_train_options *o, int key,
                          const char *arg)
{
    static const char *const metrics[] = {"loss",      "auc",     "rmse", "accuracy",
                                          "recall@10", "ndcg@10", NULL};
    static const char *const decays[] = {"constant", "inverse", "sqrt", "cosine", NULL};
    switch (key) {
    case KEY_METRIC:
        o->metric = (enum drps_metric)(DRPS_METRIC_LOSS + drps_value_choice(v, arg, metrics));
        return 1;
    case KEY_LR_DECAY:
        o->lr_decay = (enum drps_decay)(DRPS_DECAY_CONSTANT + drps_value_choice(v, arg, decays));
        return 1;
    case KEY_EPOCHS:
        o->epochs = drps_value_count(v, arg, 1, EPOCHS_MAX);
        return 1;
    case KEY_PATIENCE:
        o->patience = drps_value_count(v, arg, 1, 1000000);
        return 1;
    case KEY_LR:
        o->lr = (float)drps_value_real(v, arg, DBL_MIN, 1e30);
        if (!(o->lr > 0)) drps_value_bad(v, "'%s' is too small", arg); /* a float would be 0 */
        return 1;
    case KEY_L1:
        o->l1 = (float)drps_value_real(v, arg, 0, 1e30);
        o->asked |= DRPS_ASKED_L1;
        return 1;
    case KEY_L2:
        o->l2 = (float)drps_value_real(v, arg, 0, 1e30);
        o->asked |= DRPS_ASKED_L2;
        return 1;
    case KEY_EPS:
        o->eps = (float)drps_value_real(v, arg, FLT_MIN, 1e30);
        return 1;
    case KEY_BETA1:
        o->beta1 = (float)drps_value_real(v, arg, FLT_MIN, (double)DRPS_OPTIM_BETAS_MOST);
        return 1;
    case KEY_BETA2:
        o->beta2 = (float)drps_value_real(v, arg, FLT_MIN, (double)DRPS_OPTIM_BETAS_MOST);
        return 1;
    case KEY_MEMORY_PAIRS:
        o->pairs = (uint32_t)drps_value_count(v, arg, 1, DRPS_OPTIM_PAIRS_MOST);
        return 1;
    case KEY_TOLERANCE:
        o->tolerance = (float)drps_value_real(v, arg, FLT_MIN, 0.5);
        return 1;
    case KEY_SEED:
        o->seed = drps_value_count(v, arg, 0, INT64_MAX);
        o->asked |= DRPS_ASKED_SEED;
        return 1;
    case KEY_INIT_SCALE:
        o->init_scale = (float)drps_value_real(v, arg, DBL_MIN, 1e30);
        return 1;
    default:
        return 0;
    }
}

/* A count and its unit, as "5m". */
static struct drps_checkpoint_every every(struct drps_values *v, const char *arg)
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
        e.n *= drps_value_count(v, count, 1, 1000000000);
        return e;
    }
    drps_value_bad(v,
                   "'%s' is no time: give a count and a unit (30s, 5m, 2h, 1000b for batches, "
                   "1e for epochs), or never",
                   arg);
    return (struct drps_checkpoint_every){0};
}

static int parse_running(struct drps_values *v, struct drps_train_options *o, int key,
                         const char *arg)
{
    static const char *const devices[] = {"cpu", "cuda", "auto", NULL};
    switch (key) {
    case KEY_DEVICE:
        o->device = (enum drps_train_device)drps_value_choice(v, arg, devices);
        return 1;
    case KEY_DEVICE_MEMORY:
        o->device_memory_bytes = drps_value_size(v, arg, 1, INT64_MAX);
        return 1;
    case KEY_MEMORY:
        o->memory_bytes = drps_value_size(v, arg, 1, INT64_MAX);
        return 1;
    case KEY_THREADS:
        o->threads = (unsigned)drps_value_count(v, arg, 1, DRPS_TRAIN_THREADS_MAX);
        return 1;
    case KEY_PREFETCH:
        o->prefetch_steps = (int)drps_value_count(v, arg, 1, 8);
        return 1;
    case KEY_CHECKPOINT_EVERY:
        o->checkpoint_every = every(v, arg);
        return 1;
    case KEY_RESUME_ROUND:
        o->resume = o->resume_at = 1;
        o->resume_round = drps_value_count(v, arg, 0, UINT64_MAX / 4);
        return 1;
    default:
        return 0;
    }
}

static int parse_ranks(struct drps_values *v, struct drps_train_settings *o, int key,
                       const char *arg)
{
    static const char *const exchanges[] = {"servers", "vectors", "rows", "dense", "auto", NULL};
    static const char *const common[] = {"auto", "servers", "sums", "vectors", NULL};
    static const char *const rules[] = {"jmcss", "random", "project", NULL};
    static const char *const multicast_rules[] = {"random", "robin", "fixed", NULL};
#define NAME(mode, name) [mode] = (name),
    static const char *const modes[] = {DRPS_SCHED_MODES(NAME) NULL};
    static const char *const stales[] = {DRPS_STALES(NAME) NULL};
#undef NAME
    switch (key) {
    case KEY_SYNC:
        o->train.sync = (enum drps_sched_mode)drps_value_choice(v, arg, modes);
        o->train.asked |= DRPS_ASKED_SYNC;
        return 1;
    case KEY_EXCHANGE:
        o->train.exchange = (enum drps_exchange)drps_value_choice(v, arg, exchanges);
        return 1;
    case KEY_NET_EXCHANGE:
        o->train.common = (enum drps_common_exchange)drps_value_choice(v, arg, common);
        return 1;
    case KEY_SV_COUNT:
        o->train.sv_count = (uint32_t)drps_value_count(v, arg, 1, 65536);
        return 1;
    case KEY_SV_RULE:
        o->train.sv_rule = (enum drps_sv_rule)drps_value_choice(v, arg, rules);
        return 1;
    case KEY_EXCHANGE_TO:
        o->train.multicast.to = (uint32_t)drps_value_count(v, arg, 1, DRPS_PLAN_WORKERS_MAX);
        return 1;
    case KEY_EXCHANGE_RULE:
        o->train.multicast.rule =
            (enum drps_multicast_rule)drps_value_choice(v, arg, multicast_rules);
        return 1;
    case KEY_EXCHANGE_LOSS:
        o->train.multicast.loss = drps_value_share(v, arg);
        return 1;
    case KEY_AVERAGE:
        o->train.multicast.average = drps_value_count(v, arg, 1, UINT32_MAX);
        return 1;
    case KEY_ROTATE:
        o->train.multicast.rotate = drps_value_count(v, arg, 1, UINT32_MAX);
        return 1;
    case KEY_FILTER_TARGET:
        o->filter_target = drps_value_share(v, arg);
        if (!(o->filter_target > 0)) drps_value_bad(v, "'%s' allows no filter at all", arg);
        return 1;
    case KEY_LR_STALE:
        o->train.lr_stale = (enum drps_stale)drps_value_choice(v, arg, stales);
        o->train.asked |= DRPS_ASKED_LR_STALE;
        return 1;
    default:
        return 0;
    }
}

/* How far workers may be apart, and what wsp waits by. */
static int parse_waiting(struct drps_values *v, struct drps_train_settings *o, int key,
                         const char *arg)
{
    struct drps_sched_tuning *wsp = &o->train.wsp;
    switch (key) {
    case KEY_STALENESS:
        o->extreme = strcmp(arg, "0") == 0 ? STALE_NONE : strcmp(arg, "inf") == 0 ? STALE_ANY : 0;
        o->train.staleness = o->extreme ? 0 : drps_value_count(v, arg, 1, 1000000);
        return 1;
    case KEY_WSP_LAMBDA:
        wsp->has_lambda = 1;
        wsp->lambda = drps_value_real(v, arg, 0, 1e9);
        return 1;
    case KEY_WSP_EMA:
        wsp->has_ema = 1;
        wsp->ema = drps_value_real(v, arg, 1e-9, 1);
        return 1;
    case KEY_WSP_PATIENCE:
        wsp->has_patience = 1;
        wsp->patience = drps_value_real(v, arg, 0, 1e9);
        return 1;
    default:
        return 0;
    }
}

void drps_train_settings_check(const struct drps_train_settings *o, int has_ranks,
                               struct drps_values *v)
{
    const struct drps_train_options *t = &o->train;
    if (t->no_state && !t->from) drps_value_bad(v, "{no-state} goes with {from}: give that, too");
    if (o->extreme && t->sync != DRPS_SCHED_SSP)
        drps_value_bad(v, "a {staleness} of 0 (bsp) or inf (asp) is of {sync} ssp: give that, too");
    if (o->chooses_rate && t->lr > 0)
        drps_value_bad(v, "{auto} chooses the learning rate: leave {lr} out, or give it without");
    if (t->metric && !t->patience && !t->resume)
        drps_value_bad(v, "{metric} says which epoch is the best, which {patience} keeps: give "
                          "that, too");
    if (o->filter_target > 0 && (t->push.on || t->pull.on || t->pull_cached))
        drps_value_bad(v, "{filter-target} chooses the filters: leave {push-values}, "
                          "{push-filter}, {push-top}, {pull-values}, {pull-filter} and "
                          "{pull-cached} out, or give them without it");
    if (o->filter_target > 0 && !has_ranks)
        drps_value_bad(v, "{filter-target} is of several ranks: it needs {local} or {peers}");
}

/* ssp whose bound is none, or never met, is the mode that it has become. Else, under ssp vectors
 * come late, and no worker asks when it may start. */
void drps_train_settings_complete(struct drps_train_settings *o)
{
    struct drps_train_options *t = &o->train;
    if (o->extreme) t->sync = o->extreme == STALE_NONE ? DRPS_SCHED_BSP : DRPS_SCHED_ASP;
    o->extreme = 0;
    if (t->exchange != DRPS_EXCHANGE_VECTORS || t->sync != DRPS_SCHED_SSP) return;
    t->multicast.late = t->staleness ? t->staleness : LATE;
    t->staleness = 0;
    t->sync = DRPS_SCHED_BSP;
}

void drps_train_settings_init(struct drps_train_settings *o)
{
    *o = (struct drps_train_settings){.train = {.seed = 1}};
}

int drps_train_setting(struct drps_train_settings *o, struct drps_values *v, int key,
                       const char *text)
{
    return parse_plain(v, o, key, text) || parse_learning(v, &o->train, key, text) ||
           parse_running(v, &o->train, key, text) || parse_ranks(v, o, key, text) ||
           parse_waiting(v, o, key, text) || settings_push(&o->train.push, v, key, text) ||
           settings_pull(&o->train.pull, v, key, text);
}
